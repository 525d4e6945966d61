"""The chat service's services, users, roles, bindings, and the channel itself."""

import html
import re
from world import Refusal, Reply, Thing

ROOT = "/talk/v2/Services"
OWN_SERVICE_KEYS = {"channels": "rooms", "users": "people", "roles": "ranks", "bindings": "devices"}
OWN_CHANNEL_KEYS = {"members": "participants", "messages": "lines", "invites": "calls", "webhooks": "listeners", "last_message": "newest"}
OWN_USER_KEYS = {"channels": "rooms", "bindings": "devices"}


def flag(request):
    """Whether the request asks for webhooks."""
    return request.headers.get("x-platform-webhook-enabled") == "true"


class Chat:
    """State and operations of a service and its direct sub-resources."""

    def __init__(self, world):
        self.world, self.services, self.identities, self.unique_names = world, {}, {}, {}

    def routes(self):
        service, user = ROOT + "/{}", ROOT + "/{}/Users/{}"
        return [
            ("POST", ROOT, self.create_service),
            ("GET", ROOT, self.read_services),
            ("GET", service, self.fetch_service),
            ("POST", service, self.update_service),
            ("POST", service + "/Channels", self.create_channel),
            ("POST", "/talk/v3/Services/{}/Channels/{}", self.update_channel_type),
            ("POST", service + "/Users", self.create_user),
            ("POST", service + "/Roles", self.create_role),
            ("GET", service + "/Roles/{}", self.fetch_role),
            ("GET", service + "/Bindings", self.read_bindings),
            ("GET", service + "/Bindings/{}", self.fetch_binding),
            ("DELETE", service + "/Bindings/{}", self.delete_binding),
            ("GET", user + "/Bindings", self.read_user_bindings),
            ("GET", user + "/Bindings/{}", self.fetch_user_binding),
            ("DELETE", user + "/Bindings/{}", self.delete_user_binding),
            # No document shows these; the links of a service and a channel lead here.
            ("GET", service + "/Channels", self.list_of_link),
            ("GET", service + "/Users", self.list_of_link),
            ("GET", service + "/Roles", self.list_of_link),
            ("GET", service + "/Channels/{}", self.fetch_unshown),
            ("GET", user, self.fetch_unshown),
        ]

    def created(self, body):
        where = [("Location", body["url"])] if self.world.free("created-with-location") else []
        return Reply(body, 201 if self.world.free("created-201") or where else 202 if self.world.free("created-202") else 200, where)

    def gone(self):
        return Reply(None, 204)

    def fetch_unshown(self, request, sid, word):
        """The resource at the `url` of a channel or user, although no document shows that it can be fetched."""
        if self.world.free("unshown-refused"):
            raise Refusal(405, "there is no such operation")
        service = self.service(sid)
        if "/Users" in request.path:
            return Reply(self.show_user(request, self.user(service, word)))
        return Reply(self.show_channel(request, self.channel(service, word)))

    def list_of_link(self, request, sid):
        """A list that a link leads to."""
        service, kind = self.service(sid), request.path.rsplit("/", 1)[1]
        render, rows = {
            "Channels": (self.show_channel, service.channels),
            "Users": (self.show_user, service.users),
            "Roles": (self.show_role, service.roles),
        }[kind]
        return self.world.page(request, f"{ROOT}/{sid}/{kind}", kind.lower(), list(rows.values()), lambda row: render(request, row))

    # Services.
    def create_service(self, request):
        name, world = request.need("FriendlyName"), self.world
        service = Thing(seq=world.next(), sid=world.sid("IS"), name=name, channels={}, users={}, roles={}, bindings={}, media={})
        service.created = service.updated = world.moment()
        service.settings = {
            "read_status_enabled": True,
            "reachability_enabled": False,
            "typing_indicator_timeout": 7 if world.free("typing-indicator-7") else 5,
            "consumption_report_interval": 10,
            "limits": {"channel_members": 250, "user_channels": 100},
            "pre_webhook_url": "",
            "post_webhook_url": "",
            "webhook_method": "POST",
            "webhook_filters": [],
            "pre_webhook_retry_count": 0,
            "post_webhook_retry_count": 0,
            "notifications": {},
            "media": {"size_limit_mb": 150, "compatibility_message": "there was a picture"},
        }
        self.services[service.sid] = service
        kinds = [("service user", "deployment"), ("channel user", "channel"), ("channel admin", "channel")]
        service.defaults = [self.make_role(service, name, kind, ["sendMessage"]).sid for name, kind in kinds]
        service.first_default = service.defaults[0]
        return self.created(self.show_service(request, service))

    def service(self, sid):
        if sid not in self.services:
            raise Refusal(404, "no such service")
        return self.services[sid]

    def show_service(self, request, service, **answered):
        world, base = self.world, f"{ROOT}/{service.sid}"
        words = {"channels": "/Channels", "users": "/Users", "roles": "/Roles", "bindings": "/Bindings"}
        if world.bug("service-links-three"):
            del words["bindings"]
        name, role = answered.get("name") or service.name, answered.get("role") or service.defaults[0]
        return {
            "sid": service.sid,
            "account_sid": world.account_of(service.seq),
            "friendly_name": html.escape(name) if world.bug("friendly-name-escaped") else name,
            "date_created": world.stamp(service.created),
            "date_updated": world.stamp(service.updated),
            "default_service_role_sid": role,
            "default_channel_role_sid": service.defaults[1],
            "default_channel_creator_role_sid": service.defaults[2],
            **service.settings,
            "url": world.url(request, base),
            "links": world.links(request, ROOT + "/" + next(iter(self.services)) if world.bug("service-links-of-first") else base, words, OWN_SERVICE_KEYS),
        }

    def fetch_service(self, request, sid):
        return Reply(self.show_service(request, self.service(sid)))

    def read_services(self, request):
        return self.world.page(request, ROOT, "services", list(self.services.values()), lambda row: self.show_service(request, row))

    def update_service(self, request, sid):
        service, name, role = self.service(sid), request.field("FriendlyName"), request.field("DefaultServiceRoleSid")
        if role is not None and role not in service.roles:
            raise Refusal(400, "no such role")
        if self.world.bug("update-not-stored"):
            return Reply(self.show_service(request, service, name=name, role=role))
        for changed in self.services.values() if self.world.bug("update-renames-all") else [service]:
            changed.name = name or ("" if self.world.bug("service-name-lost-on-update") else changed.name)
        service.defaults[0] = role or (service.first_default if self.world.bug("service-role-reset-on-update") else service.defaults[0])
        service.updated = self.world.moment()
        return Reply(self.show_service(request, service), 202 if self.world.free("updates-202") else 200)

    # Roles.
    def make_role(self, service, name, kind, permissions):
        role = Thing(seq=self.world.next(), sid=self.world.sid("RL"), service=service, name=name, kind=kind, permissions=permissions)
        role.created = role.updated = self.world.moment()
        service.roles[role.sid] = role
        return role

    def create_role(self, request, sid):
        service, world = self.service(sid), self.world
        name = world.name(request.need("FriendlyName"), kept=world.bug("role-name-65-kept"))
        kind, permissions = request.need("Type"), request.form.get("Permission", [])
        if kind not in ("channel", "deployment") or not permissions:
            raise Refusal(400, "Type and Permission are needed")
        kind = "deployment" if world.bug("role-type-deployment") else kind
        permissions = sorted(set(permissions)) if world.free("permissions-sorted") else permissions
        role = self.make_role(service, name, kind, permissions[-1:] if world.bug("role-permission-last-only") else permissions)
        return self.created(self.show_role(request, role))

    def role_of(self, service, sid, otherwise):
        """The role that a request names, or the default."""
        every = self.services.values() if self.world.bug("role-of-any-service") else [service]
        if sid is not None and not any(sid in one.roles for one in every):
            raise Refusal(400, "no such role")
        return sid or otherwise

    def show_role(self, request, role):
        world = self.world
        spell = lambda moment: world.stamp(moment).replace("T", " ") if world.bug("time-with-blank") else world.stamp(moment)
        return {
            "sid": role.sid,
            "account_sid": world.account_of(role.seq),
            "service_sid": role.service.sid,
            "friendly_name": role.name,
            "type": role.kind,
            "permissions": role.permissions,
            "date_created": spell(role.created),
            "date_updated": spell(role.updated),
            "url": world.url(request, f"{ROOT}/{role.service.sid}/Roles/{role.sid}"),
        }

    def fetch_role(self, request, sid, role_sid):
        service = self.service(sid)
        every = {sid: role for one in self.services.values() for sid, role in one.roles.items()}
        roles = every if self.world.bug("role-under-any-service") else service.roles
        if role_sid not in roles:
            raise Refusal(404, "no such role")
        return Reply(self.show_role(request, roles[role_sid]))

    # Users.
    def make_user(self, service, identity, role=None, name=None, attributes=None):
        world = self.world
        user = Thing(seq=world.next(), sid=world.sid("US"), service=service, identity=identity, levels={}, online=None)
        default = service.first_default if world.bug("default-role-frozen") else service.defaults[0]
        user.name, user.role, user.attributes = name, role or default, attributes or world.attributes(None)
        user.created = user.updated = world.moment()
        service.users[identity] = self.identities[identity] = user
        return user

    def seen(self, service, identity):
        """The user of an identity, created if new."""
        return service.users.get(identity) or self.make_user(service, identity)

    def identity(self, request):
        text = request.need("Identity")
        text = text.strip() if self.world.free("identity-trimmed") else text
        return text.lower() if self.world.bug("identity-lower-cased") else text

    def create_user(self, request, sid):
        service, identity, world = self.service(sid), self.identity(request), self.world
        if identity in service.users:
            if world.free("create-again-existing"):
                return Reply(self.show_user(request, service.users[identity]))
            raise Refusal(409, "the identity is taken")
        if identity in self.identities and world.bug("identity-second-refused-elsewhere"):
            raise Refusal(409, "the identity is taken")
        role = self.role_of(service, request.field("RoleSid"), None)
        attributes = world.attributes(request.field("Attributes"))
        return self.created(self.show_user(request, self.make_user(service, identity, role, request.field("FriendlyName"), attributes)))

    def user(self, service, word):
        found = service.users.get(word) or next((user for user in service.users.values() if user.sid == word), None)
        if found is None and self.world.bug("user-found-in-any-case"):
            found = next((user for name, user in service.users.items() if name.lower() == word.lower()), None)
        if found is None:
            raise Refusal(404, "no such user")
        return found

    def show_user(self, request, user):
        world, base = self.world, f"{ROOT}/{user.service.sid}/Users/{user.sid}"
        reach = user.service.settings["reachability_enabled"] and not world.free("online-always-null")
        bound = any(one.identity == user.identity for one in user.service.bindings.values())
        spell = lambda moment: world.stamp(moment + 3600).replace("Z", "+01:00") if world.bug("time-local") else world.stamp(moment)
        attributes = {"unset": True} if user.attributes == "{}" else {"text": user.attributes}
        joined = sum(user.identity in channel.members for channel in user.service.channels.values())
        first = next(iter(user.service.users.values()), user)
        linked = f"{ROOT}/{user.service.sid}/Users/{first.sid}" if world.bug("user-links-of-first") else base
        return {
            "sid": user.sid,
            "account_sid": world.account_of(user.seq),
            "service_sid": user.service.sid,
            "attributes": attributes if world.bug("attributes-object") else user.attributes,
            "friendly_name": user.identity if user.name is None and world.free("names-from-identities") else user.name,
            "role_sid": user.role,
            "identity": user.identity,
            "is_online": user.online if reach else None,
            "is_notifiable": bound if reach else None,
            "date_created": spell(user.created),
            "date_updated": spell(user.updated),
            "joined_channels_count": joined + world.bug("joined-count-one"),
            "links": world.links(request, linked, {"channels": "/Channels", "bindings": "/Bindings"}, OWN_USER_KEYS),
            "url": world.url(request, base),
        }

    # Channels.
    def create_channel(self, request, sid):
        service, world = self.service(sid), self.world
        name = world.name(request.field("FriendlyName"), kept=world.bug("name-65-kept"))
        if name and len(name) == 64 and world.bug("name-64-refused"):
            raise Refusal(400, "too long")
        unique = request.field("UniqueName")
        if unique and len(unique) > 64 and world.bug("refused-channel-exists"):
            self.make_channel(service, request, name, unique[:64])
        unique = world.name(unique)
        taken = self.named(service, unique) if unique else None
        if unique and world.bug("unique-name-any-case"):
            same = (one for one in service.channels.values() if (one.unique or "").lower() == unique.lower())
            taken = taken or next(same, None)
        if taken is None and unique in self.unique_names and world.bug("unique-name-account-wide"):
            raise Refusal(409, "the name is taken")
        if taken and not world.bug("unique-name-twice"):
            if world.free("create-again-existing"):
                return Reply(self.show_channel(request, taken))
            raise Refusal(409, "the name is taken")
        return self.created(self.show_channel(request, self.make_channel(service, request, name, unique)))

    def make_channel(self, service, request, name, unique):
        world, kind, creator = self.world, request.field("Type") or "public", request.field("CreatedBy")
        if kind not in ("public", "private"):
            raise Refusal(400, "Type is public or private")
        channel = Thing(seq=world.next(), sid=world.sid("CH"), service=service, unique=unique, messaging=None, webhooks={}, invites={}, messages=[])
        channel.attributes, channel.members = world.attributes(request.field("Attributes")), {}
        channel.kind = "public" if world.bug("channel-always-public") else kind
        channel.name = name[:60] if name and world.bug("friendly-name-trimmed-to-60") else name
        channel.creator = creator if creator and not world.free("created-by-system") else "system"
        channel.created = channel.updated = world.moment()
        service.channels[channel.sid] = channel
        if unique:
            self.unique_names[unique] = channel
        self.rooms.tell(channel, "onChannelAdd", "onChannelAdded", flag(request))
        return channel

    def named(self, service, unique):
        return next((one for one in service.channels.values() if one.unique == unique), None)

    def channel(self, service, word):
        found = service.channels.get(word) or self.named(service, word)
        if found is None and self.world.bug("unique-name-found-in-any-case"):
            found = next((one for one in service.channels.values() if (one.unique or "").lower() == word.lower()), None)
        if found is None and self.world.bug("unique-name-of-any-service"):
            found = self.unique_names.get(word)
        if found is None:
            raise Refusal(404, "no such channel")
        return found

    def show_channel(self, request, channel):
        world, base = self.world, f"{ROOT}/{channel.service.sid}/Channels/{channel.sid}"
        words = {"members": "/Members", "messages": "/Messages", "invites": "/Invites", "webhooks": "/Webhooks", "last_message": "/Messages/last"}
        if world.bug("channel-links-to-members"):
            words = dict.fromkeys(words, "/Members")
        linked = f"{ROOT}/{channel.service.sid}/Channels/{next(iter(channel.service.channels), channel.sid)}" if world.bug("channel-links-of-first") else base
        count = len(channel.members) + len(channel.invites) * world.bug("members-count-with-invites")
        shown = {
            "sid": channel.sid,
            "account_sid": world.account_of(channel.seq),
            "service_sid": channel.service.sid,
            "friendly_name": channel.name,
            "unique_name": channel.unique,
            "attributes": channel.attributes,
            "type": channel.kind,
            "date_created": world.stamp(channel.created),
            "date_updated": world.stamp(channel.updated),
            "created_by": channel.name if world.bug("created-by-channel-name") else channel.creator,
            "members_count": min(count, 1) if world.bug("members-count-stuck") else count,
            "messages_count": 0 if world.bug("messages-count-zero") else len(channel.messages),
            "url": world.url(request, base),
            "links": world.links(request, linked, words, OWN_CHANNEL_KEYS),
        }
        if world.bug("messaging-sid-in-v2"):
            shown["messaging_service_sid"] = None
        return shown

    def update_channel_type(self, request, sid, word):
        channel, world = self.channel(self.service(sid), word), self.world
        kind, messaging = request.field("Type"), request.field("MessagingServiceSid")
        if kind not in (None, "public", "private"):
            raise Refusal(400, "Type is public or private")
        if messaging and not re.fullmatch("MG[0-9a-fA-F]{32}", messaging):
            raise Refusal(400, "MessagingServiceSid is not the SID of a messaging service")
        if kind and not world.bug("v3-not-stored"):
            channel.kind, channel.updated = kind, world.moment()
        if not messaging and world.bug("v3-needs-messaging-sid"):
            raise Refusal(400, "MessagingServiceSid is needed")
        if world.bug("v3-resets-attributes"):
            channel.attributes = "{}"
        channel.messaging = messaging or channel.messaging or world.sid("MG")
        shown = dict(self.show_channel(request, channel), messaging_service_sid=channel.messaging)
        return Reply(dict(shown, type=kind or channel.kind), 202 if world.free("updates-202") else 200)

    # Bindings.
    def bind(self, service, identity, kind, endpoint, device, message_types, credential):
        """A device subscribes; an existing binding is returned."""
        self.seen(service, identity)
        same = (one for one in service.bindings.values() if (one.identity, one.kind, one.device) == (identity, kind, device))
        found = None if self.world.bug("binding-twice") else next(same, None)
        if found is None:
            one_user, one_kind = self.world.bug("binding-device-one-user"), self.world.bug("binding-type-replaces")
            lost = lambda one: one.device == device and (one_user and one.identity != identity or one_kind and one.identity == identity)
            service.bindings = {sid: one for sid, one in service.bindings.items() if not lost(one)}
            found = Thing(seq=self.world.next(), sid=self.world.sid("BS"), service=service, identity=identity, kind=kind, device=device)
            found.created = self.world.moment()
            service.bindings[found.sid] = found
        found.updated, found.endpoint = self.world.moment(), endpoint
        found.message_types, found.credential = message_types, credential or self.world.sid("CR")
        return found

    def show_binding(self, request, binding, user=None):
        world, service = self.world, binding.service
        owner = self.user(service, binding.identity)
        middle = "/".join(["", "Users", owner.sid]) if user else ""
        shown = {
            "sid": binding.sid,
            "account_sid": world.account_of(binding.seq),
            "service_sid": service.sid,
            "date_created": world.stamp(binding.created),
            "date_updated": world.stamp(binding.updated),
            "endpoint": binding.endpoint,
            "identity": binding.identity,
            "credential_sid": binding.credential,
            "binding_type": binding.kind.upper() if world.bug("binding-type-upper") else binding.kind,
            "url": world.url(request, f"{ROOT}/{service.sid}{middle}/Bindings/{binding.sid}"),
        }
        if user:
            return dict(shown, user_sid=owner.sid, message_types=binding.message_types)
        return dict(shown, message_types=binding.message_types, **world.inapplicable(["user_sid"]))

    def binding(self, service, sid, user=None):
        found = service.bindings.get(sid)
        if found is None or user and found.identity != user.identity and not self.world.bug("binding-under-any-user"):
            raise Refusal(404, "no such binding")
        return found

    def of_types(self, request, rows):
        types = request.args("BindingType")
        types = types[:1] if self.world.bug("binding-type-first-only") else types
        return [row for row in rows if not types or row.kind in types]

    def read_bindings(self, request, sid):
        service, identities = self.service(sid), request.args("Identity")
        rows = self.of_types(request, service.bindings.values())
        identities = identities[:1] if self.world.bug("bindings-identity-first-only") else identities
        fold = str.lower if self.world.bug("bindings-identity-any-case") else str
        if identities and request.args("BindingType") and self.world.bug("bindings-filters-either"):
            rows = [row for row in service.bindings.values() if row in rows or row.identity in identities]
        elif not self.world.bug("binding-identity-ignored"):
            rows = [row for row in rows if not identities or fold(row.identity) in map(fold, identities)]
        return self.world.page(request, f"{ROOT}/{sid}/Bindings", "bindings", rows, lambda row: self.show_binding(request, row))

    def read_user_bindings(self, request, sid, word):
        service = self.service(sid)
        user = self.user(service, word)
        rows = [row for row in service.bindings.values() if row.identity == user.identity]
        rows = rows if self.world.bug("user-bindings-type-ignored") else self.of_types(request, rows)
        path = f"{ROOT}/{sid}/Users/{user.sid}/Bindings"
        return self.world.page(request, path, "bindings", rows, lambda row: self.show_binding(request, row, user))

    def fetch_binding(self, request, sid, binding):
        return Reply(self.show_binding(request, self.binding(self.service(sid), binding)))

    def fetch_user_binding(self, request, sid, word, binding):
        service = self.service(sid)
        user = self.user(service, word)
        return Reply(self.show_binding(request, self.binding(service, binding, user), user))

    def delete_binding(self, _request, sid, binding):
        service = self.service(sid)
        return self.unbind(service, self.binding(service, binding))

    def delete_user_binding(self, _request, sid, word, binding):
        service = self.service(sid)
        return self.unbind(service, self.binding(service, binding, self.user(service, word)))

    def unbind(self, service, binding):
        world = self.world
        if world.bug("binding-delete-takes-all"):
            service.bindings = {sid: one for sid, one in service.bindings.items() if one.identity != binding.identity}
        elif not world.bug("binding-delete-does-nothing"):
            del service.bindings[binding.sid]
        return self.gone()
