"""Actions of people, devices and consoles: the hooks, with different names. Represents a test bench, not a part of the services."""

import datetime
import threading
import time
from world import Reply

BASE = "/bench"


class People:
    """One method for each action of the bench; its arguments are the JSON members of the request."""

    def __init__(self, world, auth, chat, rooms, flow, events):
        self.world, self.auth, self.chat, self.rooms, self.flow, self.events = world, auth, chat, rooms, flow, events

    def routes(self):
        return [("POST", BASE + "/{}", self.ask)]

    def ask(self, request, name):
        if name not in ASKED:
            return Reply({"reason": "this bench does not support it"}, 501)
        given = request.json() or {}
        given = {key: value for key, value in given.items() if value not in (None, "")}
        found = getattr(self, name)(**given) or {}
        return Reply({"data": found} if self.world.free("hook-results-wrapped") else found)

    def named(self, theirs, value):
        """A result under the requested name, or under a different one."""
        return {"id": value} if self.world.free("hook-results-wrapped") else {theirs: value}

    # Flow.
    def draw_flow(self, friendly_name="drawn"):
        return self.named("flow_sid", self.flow.make_flow(friendly_name).sid)

    def release_flow(self, flow_sid):
        flow = self.flow.flow(flow_sid)
        flow.status, flow.version, flow.updated = "published", flow.version + 1, self.world.moment()

    def hang_up(self, flow_sid, execution_sid):
        self.flow.end(flow_sid, execution_sid)

    def reply(self, flow_sid, execution_sid):
        return self.named("step_sid", self.flow.enter(self.flow.execution(flow_sid, execution_sid)).sid)

    # Chat.
    def console(self, service_sid, **settings):
        service = self.chat.service(service_sid)
        roles = ["default_service_role_sid", "default_channel_role_sid", "default_channel_creator_role_sid"]
        for name, value in settings.items():
            if name in roles:
                service.defaults[roles.index(name)] = value
                continue
            known = service.settings.get(name)
            service.settings[name] = dict(known, **value) if isinstance(known, dict) and isinstance(value, dict) else value
        service.updated = self.world.moment()

    def subscribe(self, service_sid, identity, binding_type, endpoint, device=None, message_types=None, credential_sid=None):
        service, types = self.chat.service(service_sid), message_types or ["new_message"]
        binding = self.chat.bind(service, identity, binding_type, endpoint, device or endpoint, types, credential_sid)
        return self.named("binding_sid", binding.sid)

    def connect(self, service_sid, identity, online):
        self.chat.user(self.chat.service(service_sid), identity).online = online

    def enter_room(self, service_sid, channel_sid, identity):
        channel = self.rooms.at(service_sid, channel_sid)
        if identity not in channel.members:
            self.rooms.join(channel, identity)
            self.rooms.tell(channel, "onMemberAdd", "onMemberAdded", True)

    def leave_room(self, service_sid, channel_sid, identity):
        channel = self.rooms.at(service_sid, channel_sid)
        if not self.world.bug("leave-leaves-nothing"):
            channel.members.pop(identity, None)
            channel.__dict__.setdefault("left", set()).add(identity)

    # Authentication.
    def say_yes(self, uuid):
        self.auth.react(uuid, "approved")

    def say_no(self, uuid):
        self.auth.react(uuid, "denied")

    def show_code(self, custom_user_id, qr=None, token=None):
        self.auth.announce(custom_user_id, qr)

    def scan_code(self, qr, cellphone="5005550123", country_code="1"):
        return self.named("registered", self.auth.scan(qr, str(cellphone), str(country_code)))

    def get_app(self, cellphone, country_code):
        self.auth.apps.add((str(cellphone).translate({ord(sign): None for sign in "-. "}), int(country_code)))

    def listen(self, kind, url=None):
        """Sets an address; none unsets it."""
        self.world.callbacks[kind] = url or None

    def ring(self, url):
        threading.Thread(target=self.auth.callbacks.send, args=(url, "POST", "", {}), daemon=True).start()

    # Messages and time.
    def blast(self, **asked):
        return self.named("operation_id", self.events.send(**asked))

    def happened(self, operation_id=None):
        chosen = [operation_id] if operation_id else list(self.events.operations)
        return self.named("events", [event for name in chosen for event in self.events.collected(name)])

    def reserve(self, owner, seconds=0):
        """Exclusive resources are held by one run at a time."""
        held_by, until = self.world.lease
        is_free = held_by in (None, owner) or time.monotonic() >= until
        if is_free:
            self.world.lease = (owner if seconds else None, time.monotonic() + float(seconds))
        return self.named("granted", is_free)

    def wait_for(self, seconds=0):
        self.world.offset += float(seconds)
        for wanted in list(self.auth.requests.values()):
            self.auth.state(wanted)
        now = datetime.datetime.fromtimestamp(self.world.now(), datetime.timezone.utc)
        return self.named("now", now.strftime("%Y-%m-%dT%H:%M:%SZ"))


ASKED = {name for name in vars(People) if not name.startswith("_") and name not in ("routes", "ask", "named")}
