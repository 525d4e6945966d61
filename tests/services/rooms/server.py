"""Meeting rooms and bookings, as openapi.yaml describes them, with at most one defect."""

import base64
import datetime
import pathlib
import re
import sys
import uuid

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from web import PASSWORD, Refused, Service, serve, stamp

STATUSES = ("tentative", "confirmed", "cancelled")
EQUIPMENT = ("screen", "whiteboard", "camera", "phone")
DEFAULT_LIMIT, MAX_LIMIT = 10, 50


def text(most):
    def check(value):
        return isinstance(value, str) and 1 <= len(value) <= most

    return check


def whole(least, most):
    def check(value):
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return check


def moment(value):
    try:
        return datetime.datetime.fromisoformat(value.replace("Z", "+00:00")).tzinfo is not None and "T" in value
    except (AttributeError, ValueError):
        return False


def equipment(value):
    return isinstance(value, list) and len(value) <= 8 and all(one in EQUIPMENT for one in value)


def email(value):
    return isinstance(value, str) and re.fullmatch(r"[^@\s]+@[^@\s]+", value) is not None


def notes(value):
    return value is None or isinstance(value, str) and len(value) <= 2000


ROOM = {"title": text(80), "floor": whole(-3, 40), "seats": whole(1, 200), "equipment": equipment}
ROOM_DEFAULTS = {"floor": 0, "equipment": []}
ROOM_CHANGES = ("title", "floor", "seats")
BOOKING = {"title": text(120), "organizer": email, "status": STATUSES.__contains__, "startsAt": moment, "endsAt": moment, "notes": notes}
BOOKING_DEFAULTS = {"status": "tentative", "notes": None}
BOOKING_CHANGES = ("title", "status", "notes")


class Rooms(Service):
    """The meeting rooms."""

    DEFECTS = {
        "patch-lost": "a changed title is returned and not stored",
        "other-room": "a booking is found under another room",
        "deleted-found": "a deleted booking can still be fetched",
        "text-in-lists": "lists show the seats of a room as a text",
        "cursor-repeats": "a page begins with the last item of the page before",
        "cursor-skips": "an item between two pages is on none of them",
        "limit-exceeded": "a page has one item more than the limit",
        "patch-resets": "a change sets the fields that it does not give to their defaults",
        "sibling-patched": "a change of a room also changes the newest other room",
        "key-not-checked": "a booking can be deleted without a key",
        "title-optional": "a booking without a title is created",
        "bound-ignored": "a room can have any number of seats",
    }

    def __init__(self, defect):
        super().__init__(defect)
        self.rooms, self.bookings, self.deleted = {}, {}, {}

    def handle(self, request):
        free = self.has("key-not-checked") and request.method == "DELETE" and len(request.parts) == 4
        if request.headers.get("X-Api-Key") != PASSWORD and not free:
            raise Refused(401, "expected a valid key")
        match request.method, request.parts:
            case "GET", ["rooms"]:
                rooms = list(self.rooms.values())
                if self.has("text-in-lists"):
                    rooms = [{**room, "seats": str(room["seats"])} for room in rooms]
                return 200, self.page(request, rooms)
            case "POST", ["rooms"]:
                return 201, self.made(self.rooms, self.checked(request.body(), ROOM, ("title", "seats"), ROOM_DEFAULTS))
            case "GET", ["rooms", room]:
                return 200, self.room(room)
            case "PATCH", ["rooms", room]:
                return 200, self.changed(self.room(room), request.body(), ROOM, ROOM_CHANGES, ROOM_DEFAULTS, self.rooms)
            case "DELETE", ["rooms", room]:
                del self.rooms[self.room(room)["id"]]
                self.bookings = {key: one for key, one in self.bookings.items() if one["roomId"] != room}
                return 204, None
            case "GET", ["rooms", room, "bookings"]:
                self.room(room)
                status = request.query.get("status")
                if status is not None and status not in STATUSES:
                    raise Refused(422, "invalid status")
                bookings = [one for one in self.bookings.values() if one["roomId"] == room]
                return 200, self.page(request, [one for one in bookings if status in (None, one["status"])])
            case "POST", ["rooms", room, "bookings"]:
                self.room(room)
                required = ("organizer", "startsAt", "endsAt") if self.has("title-optional") else ("title", "organizer", "startsAt", "endsAt")
                fields = self.checked(request.body(), BOOKING, required, {"title": "Booking", **BOOKING_DEFAULTS})
                return 201, self.made(self.bookings, {"roomId": room, **fields})
            case "GET", ["rooms", room, "bookings", booking]:
                if self.has("deleted-found") and booking in self.deleted:
                    return 200, self.deleted[booking]
                return 200, self.booking(room, booking)
            case "PATCH", ["rooms", room, "bookings", booking]:
                return 200, self.changed(self.booking(room, booking), request.body(), BOOKING, BOOKING_CHANGES, BOOKING_DEFAULTS, {})
            case "DELETE", ["rooms", room, "bookings", booking]:
                found = self.booking(room, booking)
                self.deleted[found["id"]] = self.bookings.pop(found["id"])
                return 204, None
        raise Refused(404, "there is no such path")

    def room(self, room):
        if room not in self.rooms:
            raise Refused(404, "there is no such room")
        return self.rooms[room]

    def booking(self, room, booking):
        self.room(room)
        found = self.bookings.get(booking)
        if not found or found["roomId"] != room and not self.has("other-room"):
            raise Refused(404, "there is no such booking")
        return found

    def checked(self, body, checks, required, defaults):
        for name in required:
            if name not in body:
                raise Refused(422, f"{name} is missing")
        for name, value in body.items():
            if name in checks and not checks[name](value) and not (self.has("bound-ignored") and name == "seats"):
                raise Refused(422, f"{name} is invalid")
        return {name: body.get(name, defaults.get(name)) for name in checks}

    def made(self, resources, fields):
        now = stamp(self.now())
        made = {"id": str(uuid.uuid4()), **fields, "createdAt": now, "updatedAt": now}
        resources[made["id"]] = made
        return made

    def changed(self, found, body, checks, names, defaults, siblings):
        fields = self.checked(body, checks, (), defaults)
        changes = {name: fields[name] for name in names if name in body}
        if self.has("patch-resets"):
            changes = {**{name: value for name, value in defaults.items() if name in names}, **changes}
        changes["updatedAt"] = stamp(self.now())
        if self.has("sibling-patched") and "title" in changes:
            for other in [one for one in siblings.values() if one is not found][-1:]:
                other["title"] = changes["title"]
        shown = {**found, **changes}
        if self.has("patch-lost"):
            changes.pop("title", None)
        found.update(changes)
        return shown

    def page(self, request, items):
        try:
            limit = int(request.query.get("limit", DEFAULT_LIMIT))
            begin = int(base64.urlsafe_b64decode(request.query["cursor"])) if "cursor" in request.query else 0
        except ValueError:
            raise Refused(422, "invalid limit or cursor") from None
        if not 1 <= limit <= MAX_LIMIT or begin < 0:
            raise Refused(422, "invalid limit or cursor")
        end = begin + limit
        further = end + 1 if self.has("cursor-skips") else end - 1 if self.has("cursor-repeats") and limit > 1 else end
        cursor = base64.urlsafe_b64encode(str(further).encode()).decode() if end < len(items) else None
        return {"items": items[begin : end + 1 if self.has("limit-exceeded") else end], "nextCursor": cursor}


if __name__ == "__main__":
    serve(Rooms)
