"""Stations and parcels, as depot.md describes them, with at most one defect."""

import pathlib
import secrets
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from web import BASIC, Refused, Service, serve, stamp

SIZES, OPENINGS = ("small", "medium", "large"), ("day", "night", "always")
DEFAULT_SIZE, MAX_SIZE = 20, 100


def text(body, name, most, required=False):
    value = body.get(name)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= most:
        raise Refused(422, f"{name}: expected a text of 1 to {most} characters")
    return value


def word(value, name, words):
    if value not in words:
        raise Refused(422, f"{name}: expected one of {', '.join(words)}")
    return value


class Depot(Service):
    """The parcel depot."""

    HOOKS = ("visit_station", "collect_notices")
    DEFECTS = {
        "lost-update": "an update is returned and not stored",
        "found-elsewhere": "a parcel is found under another station",
        "filter-first-page": "the filter of a list is lost from page two on",
        "deleted-listed": "a deleted parcel stays in lists",
        "enum-in-lists": "lists show the state of a parcel in capital letters",
        "count-drifts": "a deleted parcel stays in parcels_count",
        "name-twice": "a second station gets the name of the first",
        "notice-of-another": "a notice names the station in place of the parcel",
        "sibling-updated": "an update of a parcel also sets the note of the one before",
        "unknown-station-empty": "the list of a station that does not exist is an empty one",
        "page-repeats": "a page begins with the last item of the page before",
        "time-goes-back": "an update moves updated_at back to before created_at",
    }

    def __init__(self, defect):
        super().__init__(defect)
        self.stations, self.parcels, self.notices = {}, {}, []
        self.deleted = []

    def handle(self, request):
        if request.headers.get("Authorization") != BASIC:
            raise Refused(401, "expected valid credentials")
        match request.method, request.parts:
            case "POST", ["v1", "stations"]:
                return 201, self.create_station(request.body())
            case "GET", ["v1", "stations"]:
                return 200, self.page(request, "stations", [self.shown(one) for one in self.stations.values()])
            case "GET", ["v1", "stations", station]:
                return 200, self.shown(self.station(station))
            case "POST", ["v1", "stations", station, "parcels"]:
                return 201, self.create_parcel(self.station(station), request.body())
            case "GET", ["v1", "stations", station, "parcels"]:
                return 200, self.read_parcels(station, request)
            case "GET", ["v1", "stations", station, "parcels", parcel]:
                return 200, self.parcel(station, parcel)
            case "PATCH", ["v1", "stations", station, "parcels", parcel]:
                return 200, self.update_parcel(self.parcel(station, parcel), request.body())
            case "DELETE", ["v1", "stations", station, "parcels", parcel]:
                self.deleted.append(self.parcels.pop(self.parcel(station, parcel)["id"]))
                return 204, None
        raise Refused(404, "there is no such endpoint")

    def station(self, station):
        if station not in self.stations:
            raise Refused(404, "there is no such station")
        return self.stations[station]

    def parcel(self, station, parcel):
        self.station(station)
        found = self.parcels.get(parcel)
        if not found or found["station_id"] != station and not self.has("found-elsewhere"):
            raise Refused(404, "there is no such parcel")
        return found

    def shown(self, station):
        parcels = list(self.parcels.values()) + (self.deleted if self.has("count-drifts") else [])
        count = sum(parcel["station_id"] == station["id"] for parcel in parcels)
        return {**station, "parcels_count": count}

    def create_station(self, body):
        name = text(body, "name", 40, required=True)
        if any(station["name"] == name for station in self.stations.values()) and not self.has("name-twice"):
            raise Refused(409, "the name is taken")
        now = stamp(self.now())
        station = {"id": f"st_{secrets.token_hex(5)}", "name": name, "opening": word(body.get("opening", "day"), "opening", OPENINGS)}
        station.update(created_at=now, updated_at=now)
        self.stations[station["id"]] = station
        return self.shown(station)

    def create_parcel(self, station, body):
        now = stamp(self.now())
        parcel = {"id": f"pa_{secrets.token_hex(5)}", "station_id": station["id"]}
        parcel.update(recipient=text(body, "recipient", 60, required=True), size=word(body.get("size"), "size", SIZES))
        parcel.update(note=text(body, "note", 10000), state="waiting", created_at=now, updated_at=now)
        self.parcels[parcel["id"]] = parcel
        return parcel

    def update_parcel(self, parcel, body):
        changes = {}
        if "recipient" in body:
            changes["recipient"] = text(body, "recipient", 60, required=True)
        if "note" in body:
            changes["note"] = text(body, "note", 10000)
        changes["updated_at"] = stamp(self.now())
        if self.has("time-goes-back"):
            changes["updated_at"] = "2020-02-02T02:02:02.000Z"
        if self.has("sibling-updated") and "note" in changes:
            siblings = [one for one in self.parcels.values() if one["station_id"] == parcel["station_id"] and one is not parcel]
            for sibling in siblings[-1:]:
                sibling["note"] = changes["note"]
        if self.has("lost-update"):
            return {**parcel, **changes}
        parcel.update(changes)
        return parcel

    def read_parcels(self, station, request):
        if not (self.has("unknown-station-empty") and station not in self.stations):
            self.station(station)
        parcels = list(self.parcels.values()) + (self.deleted if self.has("deleted-listed") else [])
        parcels = [parcel for parcel in parcels if parcel["station_id"] == station]
        size = request.query.get("size")
        if size is not None:
            word(size, "size", SIZES)
            if not (self.has("filter-first-page") and int(request.query.get("after", 0))):
                parcels = [parcel for parcel in parcels if parcel["size"] == size]
        if self.has("enum-in-lists"):
            parcels = [{**parcel, "state": parcel["state"].upper()} for parcel in parcels]
        return self.page(request, "parcels", parcels)

    def page(self, request, key, items):
        try:
            size, after = int(request.query.get("page_size", DEFAULT_SIZE)), int(request.query.get("after", 0))
        except ValueError:
            raise Refused(422, "page_size: expected a number") from None
        if not 1 <= size <= MAX_SIZE:
            raise Refused(422, f"page_size: expected 1 to {MAX_SIZE}")
        begin = after - 1 if after and self.has("page-repeats") else after
        rest = "".join(f"&{name}={value}" for name, value in request.query.items() if name == "size")
        further = f"{request.path}?page_size={size}&after={begin + size}{rest}" if begin + size < len(items) else None
        return {"meta": {"key": key, "page_size": size, "next_page_url": further}, key: items[begin : begin + size]}

    def visit_station(self, station_id, parcel_id, outcome):
        parcel = self.parcel(station_id, parcel_id)
        if outcome not in ("collected", "refused") or parcel["state"] != "waiting":
            raise Refused(422, "expected a waiting parcel, to be collected or refused")
        visit = f"vi_{secrets.token_hex(5)}"
        parcel.update(state=outcome, updated_at=stamp(self.now()))
        named = station_id if self.has("notice-of-another") else parcel_id
        payload = {"visit_id": visit, "station_id": station_id, "parcel_id": named, "at": stamp(self.now())}
        self.notices.append({"type": f"depot.parcel.{outcome}", "payload": payload})
        return {"visit_id": visit}

    def collect_notices(self, visit_id=None):
        return {"events": [one for one in self.notices if visit_id in (None, one["payload"]["visit_id"])]}


if __name__ == "__main__":
    serve(Depot)
