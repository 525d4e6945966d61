"""The contents of a channel: members, messages, invites, webhooks, and the user's view of the channel."""

import html
import re
import urllib.parse
from chat import ROOT, flag
from world import Refusal, Reply, Thing

CHANNEL = ROOT + "/{}/Channels/{}"


class Rooms:
    """Operations below a channel, whose state is stored in the channel."""

    def __init__(self, world, chat, media, callbacks):
        self.world, self.chat, self.media, self.callbacks = world, chat, media, callbacks
        self.last_lists = {}
        chat.rooms = self

    def routes(self):
        return [
            ("POST", CHANNEL + "/Members", self.create_member),
            ("GET", CHANNEL + "/Members", self.read_members),
            ("GET", CHANNEL + "/Members/{}", self.fetch_member),
            ("POST", CHANNEL + "/Members/{}", self.update_member),
            ("POST", CHANNEL + "/Messages", self.create_message),
            ("GET", CHANNEL + "/Messages", self.read_messages),
            ("GET", CHANNEL + "/Messages/{}", self.fetch_message),
            ("POST", CHANNEL + "/Invites", self.create_invite),
            ("GET", CHANNEL + "/Invites", self.read_invites),
            ("GET", CHANNEL + "/Invites/{}", self.fetch_invite),
            ("POST", CHANNEL + "/Webhooks", self.create_webhook),
            ("GET", CHANNEL + "/Webhooks", self.read_webhooks),
            ("GET", CHANNEL + "/Webhooks/{}", self.fetch_webhook),
            ("POST", CHANNEL + "/Webhooks/{}", self.update_webhook),
            ("GET", ROOT + "/{}/Users/{}/Channels", self.read_user_channels),
            ("GET", ROOT + "/{}/Users/{}/Channels/{}", self.fetch_user_channel),
            ("POST", ROOT + "/{}/Users/{}/Channels/{}", self.update_user_channel),
        ]

    def at(self, sid, word):
        return self.chat.channel(self.chat.service(sid), word)

    def base(self, channel):
        return f"{ROOT}/{channel.service.sid}/Channels/{channel.sid}"

    # Members.
    def join(self, channel, identity, role=None, attributes=None):
        """A person becomes a member; the caller has checked that this is possible."""
        world, service = self.world, channel.service
        most = service.settings["limits"]["channel_members"]
        most += 1 if world.bug("channel-members-one-more") else -1 if world.bug("channel-members-one-less") else 0
        joined = sum(identity in other.members for other in service.channels.values())
        if identity in channel.__dict__.get("left", ()) and world.bug("who-left-stays-out"):
            raise Refusal(409, "a member already")
        if len(channel.members) >= most or joined >= service.settings["limits"]["user_channels"]:
            raise Refusal(400, "full")
        if not world.bug("member-makes-no-user"):
            self.chat.seen(service, identity)
        prefix = "US" if world.bug("member-sid-prefix") else "MB"
        member = Thing(seq=world.next(), sid=world.sid(prefix), channel=channel, identity=identity, consumed=None, consumed_at=None)
        defaults = service.defaults
        creator = identity == channel.creator or world.bug("creator-role-for-all")
        usual = defaults[2] if creator else defaults[1]
        member.role = role or (defaults[0] if world.bug("member-gets-service-role") else usual)
        member.attributes = attributes or world.attributes(None)
        member.created = member.updated = world.moment()
        channel.members[identity] = member
        if not world.free("invites-stay"):
            channel.invites = {sid: one for sid, one in channel.invites.items() if one.identity != identity}
        return member

    def create_member(self, request, sid, word):
        channel, identity, world = self.at(sid, word), self.chat.identity(request), self.world
        if identity in channel.members:
            if world.free("create-again-existing"):
                return Reply(self.show_member(request, channel.members[identity]))
            raise Refusal(409, "already a member")
        role = self.chat.role_of(channel.service, request.field("RoleSid"), None)
        role = None if world.bug("role-of-member-ignored") else role
        consumed = None if world.free("no-backup-parameters") else self.consumed(request)
        member = self.join(channel, identity, role, world.attributes(request.field("Attributes")))
        self.consume(member, consumed)
        self.tell(channel, "onMemberAdd", "onMemberAdded", flag(request))
        return self.chat.created(self.show_member(request, member))

    def consumed(self, request):
        """The last consumed message in the request, if any."""
        text = request.field("LastConsumedMessageIndex")
        try:
            return int(text) if text and not (text == "0" and self.world.bug("consumed-zero-null")) else None
        except ValueError:
            raise Refusal(400, "LastConsumedMessageIndex is not an integer") from None

    def consume(self, member, index):
        if index is not None:
            member.consumed, member.consumed_at = index, self.world.moment()

    def member(self, channel, word):
        found = channel.members.get(word) or next((one for one in channel.members.values() if one.sid == word), None)
        if found is None and self.world.bug("identity-found-in-any-case"):
            found = next((one for one in channel.members.values() if one.identity.lower() == word.lower()), None)
        if found is None and self.world.bug("member-under-any-channel"):
            others = (one for other in channel.service.channels.values() for one in other.members.values())
            found = next((one for one in others if word in (one.sid, one.identity)), None)
        if found is None:
            raise Refusal(404, "no such member")
        return found

    def show_member(self, request, member):
        world, channel = self.world, member.channel
        parent = list(channel.service.channels.values())[-1] if world.bug("member-of-next-channel") else channel
        text = world.bug("consumed-index-text") and member.consumed is not None
        made = member.__dict__.setdefault("made", member.role)
        stale = request.method == "GET" and request.path.endswith("/Members") and world.bug("members-listed-as-made")
        return {
            "sid": member.sid,
            "account_sid": world.account_of(member.seq),
            "channel_sid": parent.sid,
            "service_sid": channel.service.sid,
            "identity": member.identity,
            "role_sid": made if stale else member.role,
            "last_consumed_message_index": str(member.consumed) if text else member.consumed,
            "last_consumption_timestamp": world.stamp(member.consumed_at),
            "date_created": world.stamp(member.created - (3600 if world.bug("member-dated-locally") else 0)),
            "date_updated": world.stamp(member.updated - (3600 if world.bug("member-dated-locally") else 0)),
            "attributes": member.attributes,
            "url": world.url(request, f"{self.base(channel)}/Members/{member.sid}"),
        }

    def fetch_member(self, request, sid, word, member):
        return Reply(self.show_member(request, self.member(self.at(sid, word), member)))

    def read_members(self, request, sid, word):
        channel, identities, world = self.at(sid, word), request.args("Identity"), self.world
        identities = identities[:1] if world.bug("members-filter-first-only") else identities
        identities = [] if world.bug("members-filter-ignored") else identities
        rows = list(channel.members.values())
        if world.bug("members-list-stale"):
            rows, self.last_lists[channel.sid] = self.last_lists.get(channel.sid, rows[:-1]), rows
        fold = str.lower if world.bug("members-filter-any-case") else str
        near = (lambda has, asked: has.startswith(asked)) if world.bug("members-filter-prefix") else (lambda has, asked: fold(has) == fold(asked))
        found = [row for row in rows if not identities or any(near(row.identity, one) for one in identities)]
        rows = found if found or not world.bug("members-filter-none-is-all") else rows
        return world.page(request, self.base(channel) + "/Members", "members", rows, lambda row: self.show_member(request, row))

    def update_member(self, request, sid, word, name):
        channel, world = self.at(sid, word), self.world
        member = self.member(channel, name)
        role = self.chat.role_of(channel.service, request.field("RoleSid"), None)
        consumed = self.consumed(request)
        attributes = None if request.field("Attributes") is None else world.attributes(request.field("Attributes"))
        namesakes = [other.members.get(member.identity) for other in channel.service.channels.values()]
        before = member.consumed
        for changed in filter(None, namesakes) if world.bug("update-hits-namesake") else [member]:
            changed.role = role if role and not world.bug("role-not-updated") else changed.role
            if attributes is not None:
                changed.attributes = attributes
            elif role and world.bug("update-resets-attributes"):
                changed.attributes = "{}"
            if role and consumed is None and world.bug("member-update-resets-consumed"):
                changed.consumed = changed.consumed_at = None
            self.consume(changed, consumed)
            changed.updated = world.moment()
            if world.bug("update-moves-creation"):
                changed.created += 1
        shown = self.show_member(request, member)
        if world.bug("consumed-not-stored"):
            member.consumed = before
        return Reply(shown)

    # Messages.
    def create_message(self, request, sid, word):
        channel, world, body, medium = self.at(sid, word), self.world, request.field("Body"), None
        if request.field("MediaSid"):
            medium = self.media.of(channel.service, request.field("MediaSid"))
        author = request.field("From") or "system"
        if author != "system":
            self.chat.seen(channel.service, author)
        count = len(channel.messages)
        message = Thing(seq=world.next(), sid=world.sid("IM"), channel=channel, medium=medium)
        message.index = 7 + 3 * count if world.free("index-gaps") else count
        if world.free("index-over-the-service"):
            message.index = sum(len(one.messages) for one in channel.service.channels.values())
        if world.bug("index-one-digit"):
            message.index = count % 10
        if world.bug("index-repeats") and count % 3 == 2:
            message.index = channel.messages[-1].index
        message.body = self.text(body)
        message.author = "system" if world.bug("from-lost") else author
        message.updater = request.field("LastUpdatedBy")
        message.attributes, message.created = world.attributes(request.field("Attributes")), world.moment()
        channel.messages.append(message)
        if medium:
            medium.channel, medium.message = channel, message
        self.tell(channel, "onMessageSend", "onMessageSent", flag(request), message.body or "")
        return self.chat.created(self.show_message(request, message))

    def text(self, body):
        """The stored form of a message's body."""
        world = self.world
        if body is None:
            return None if world.free("empty-body-null") else ""
        if not body and world.bug("sent-body-null"):
            return None
        if world.bug("body-escaped"):
            body = html.escape(body)
        if world.bug("body-decoded-twice"):
            body = urllib.parse.unquote(body)
        if world.bug("body-null-word") and body == "null":
            body = ""
        if world.bug("body-trimmed"):
            body = body.strip()
        if world.bug("body-lines-joined"):
            body = body.replace("\n", " ")
        return body.encode("ascii", "replace").decode() if world.bug("body-ascii") else body

    def show_message(self, request, message):
        world, channel, medium = self.world, message.channel, message.medium
        name = "file_name" if world.bug("message-media-filename") else "filename"
        shown = medium and {"content_type": medium.kind, name: medium.name, "sid": medium.sid, "size": len(medium.content)}
        return {
            "sid": message.sid,
            "account_sid": world.account_of(message.seq),
            "service_sid": channel.service.sid,
            "to": channel.service.sid if world.bug("message-to-service") else channel.sid,
            "channel_sid": channel.sid,
            "attributes": "{}" if medium and world.bug("attributes-lost-beside-media") else message.attributes,
            "date_created": world.stamp(message.created),
            "date_updated": world.stamp(message.created),
            "last_updated_by": message.updater,
            "was_edited": False,
            "from": message.author,
            "body": "" if medium and world.bug("body-lost-beside-media") else int(message.body) if world.bug("body-number") and (message.body or "").isdecimal() else message.body,
            "index": message.index,
            "type": "media" if medium and not world.bug("message-type-text") else "text",
            "media": shown or None,
            "url": world.url(request, f"{self.base(channel)}/Messages/{message.sid}"),
        }

    def read_messages(self, request, sid, word):
        channel = self.at(sid, word)
        path = self.base(channel) + "/Messages"
        return self.world.page(request, path, "messages", channel.messages, lambda row: self.show_message(request, row))

    def fetch_message(self, request, sid, word, name):
        channel = self.at(sid, word)
        rows = channel.messages[-1:] if name == "last" else [one for one in channel.messages if one.sid == name]
        if not rows or name != "last" and self.world.free("unshown-refused"):
            raise Refusal(404, "no such message")
        return Reply(self.show_message(request, rows[0]))

    # Invites.
    def create_invite(self, request, sid, word):
        channel, identity, world = self.at(sid, word), self.chat.identity(request), self.world
        known = next((one for one in channel.invites.values() if one.identity == identity), None)
        if known and world.free("create-again-existing"):
            return Reply(self.show_invite(request, known))
        if known or identity in channel.members:
            raise Refusal(409, "already here")
        role = self.chat.role_of(channel.service, request.field("RoleSid"), channel.service.defaults[1])
        role = channel.service.defaults[1] if world.bug("invite-role-lost") else role
        self.chat.seen(channel.service, identity)
        invite = Thing(seq=world.next(), sid=world.sid("IN"), channel=channel, identity=identity, role=role, created=world.moment())
        channel.invites[invite.sid] = invite
        if world.bug("invite-joins"):
            kept = channel.invites
            self.join(channel, identity)
            channel.invites = kept
        return self.chat.created(self.show_invite(request, invite))

    def show_invite(self, request, invite):
        world, channel = self.world, invite.channel
        return {
            "sid": invite.sid,
            "account_sid": world.account_of(invite.seq),
            "channel_sid": channel.sid,
            "service_sid": channel.service.sid,
            "identity": invite.identity,
            "role_sid": invite.role,
            "created_by": "system",
            "date_created": world.stamp(invite.created),
            "date_updated": world.stamp(invite.created),
            "url": world.url(request, f"{self.base(channel)}/Invites/{invite.sid}"),
        }

    def fetch_invite(self, request, sid, word, name):
        channel = self.at(sid, word)
        every = {sid: one for other in channel.service.channels.values() for sid, one in other.invites.items()}
        invites = every if self.world.bug("invite-under-any-channel") else channel.invites
        if name not in invites:
            raise Refusal(404, "no such invite")
        return Reply(self.show_invite(request, invites[name]))

    def read_invites(self, request, sid, word):
        channel = self.at(sid, word)
        rows, path = list(channel.invites.values()), self.base(channel) + "/Invites"
        return self.world.page(request, path, "invites", rows, lambda row: self.show_invite(request, row))

    # Webhooks.
    def create_webhook(self, request, sid, word):
        channel, world, kind = self.at(sid, word), self.world, request.need("Type")
        most = 6 if world.bug("sixth-webhook") else 4 if world.bug("fifth-webhook-refused") else 5
        folded = kind.lower() if world.bug("webhook-type-any-case") else kind
        counted = [one for one in channel.webhooks.values() if one.kind == kind or not world.bug("five-webhooks-of-each-type")]
        if folded not in ("webhook", "studio", "trigger") or len(counted) >= most:
            raise Refusal(400, "no such type, or too many webhooks")
        hook = Thing(seq=world.next(), sid=world.sid("WH"), channel=channel, kind=kind, filters=[], triggers=[], flow=None, retries=0)
        hook.url, hook.method, hook.created = None, "GET" if world.free("method-given") else None, world.moment()
        self.configure(hook, request)
        channel.webhooks[hook.sid] = hook
        return self.chat.created(self.show_webhook(request, hook))

    def configure(self, hook, request):
        """Applies the parameters of the request after all of them have been validated."""
        world, many = self.world, request.form.get
        given = {name: request.field("Configuration." + name) for name in ("Url", "Method", "FlowSid", "RetryCount")}
        filters, triggers = many("Configuration.Filters"), many("Configuration.Triggers")
        try:
            retries = hook.retries if given["RetryCount"] is None else int(given["RetryCount"])
        except ValueError:
            raise Refusal(400, "RetryCount is not an integer") from None
        most = 4 if world.bug("retry-4-kept") else 2 if world.bug("retry-3-refused") else 3
        if given["Method"] not in (None, "GET", "POST") or not 0 <= retries <= most or len(triggers or []) > 5:
            raise Refusal(400, "out of bounds")
        if given["Url"] and world.bug("update-resets-filters") and hook.url:
            hook.filters = []
        hook.called = hook.url if hook.url and world.bug("update-url-old-called") else given["Url"] or hook.url
        if world.bug("webhook-update-resets-retry") and given["RetryCount"] is None:
            retries = 0
        if world.bug("webhook-update-resets-method"):
            hook.method = None
        hook.url, hook.method, hook.retries = given["Url"] or hook.url, given["Method"] or hook.method, retries
        hook.flow = None if world.bug("flow-sid-lost") else given["FlowSid"] or hook.flow
        hook.heard = hook.filters or filters or [] if world.bug("webhook-update-old-filters-heard") else filters or hook.filters
        hook.filters = hook.filters if filters is None else filters
        hook.triggers = hook.triggers if triggers is None else triggers
        hook.updated = world.moment()

    def show_webhook(self, request, hook):
        world, channel = self.world, hook.channel
        configuration = {"url": hook.url, "method": hook.method, "filters": hook.filters, "retry_count": hook.retries}
        if hook.kind == "studio":
            configuration = {"flow_sid": hook.flow, **world.inapplicable(configuration)}
        else:
            configuration.update(world.inapplicable(["flow_sid"]))
            if hook.kind == "trigger":
                configuration.pop("filters")
                configuration.update(world.inapplicable(["filters"]))
        return {
            "sid": hook.sid,
            "account_sid": world.account_of(hook.seq),
            "service_sid": channel.service.sid,
            "channel_sid": channel.sid,
            "type": hook.kind,
            "configuration": configuration,
            "url": world.url(request, f"{self.base(channel)}/Webhooks/{next(iter(channel.webhooks)) if world.bug('webhook-url-of-first') else hook.sid}"),
            "date_created": world.stamp(world.moment() if world.bug("created-now-each-time") else hook.created),
            "date_updated": world.stamp(hook.updated),
        }

    def webhook(self, sid, word, name):
        channel = self.at(sid, word)
        if name not in channel.webhooks:
            raise Refusal(404, "no such webhook")
        return channel.webhooks[name]

    def fetch_webhook(self, request, sid, word, name):
        return Reply(self.show_webhook(request, self.webhook(sid, word, name)))

    def read_webhooks(self, request, sid, word):
        channel = self.at(sid, word)
        rows, path = list(channel.webhooks.values()), self.base(channel) + "/Webhooks"
        return self.world.page(request, path, "webhooks", rows, lambda row: self.show_webhook(request, row))

    def update_webhook(self, request, sid, word, name):
        hook = self.webhook(sid, word, name)
        if not request.form and self.world.bug("empty-update-loses-filters"):
            hook.filters = []
        self.configure(hook, request)
        if self.world.bug("webhook-update-new-sid"):
            del hook.channel.webhooks[hook.sid]
            hook.sid = self.world.sid("WH")
            hook.channel.webhooks[hook.sid] = hook
        return Reply(self.show_webhook(request, hook))

    def tell(self, channel, before, after, asked, text=None):
        """Calls the subscribers of an event: the service's two targets and the channel's webhooks."""
        settings, world = channel.service.settings, self.world
        if not asked and not world.free("webhooks-without-header"):
            return
        said = {"ChannelSid": channel.sid, "Body": text or ""}
        for when, event in (("pre", before), ("post", after)):
            if settings[f"{when}_webhook_url"] and (event in settings["webhook_filters"] or when == "post" and world.bug("service-filters-ignored")):
                retries = settings[f"{when}_webhook_retry_count"]
                method = "POST" if world.bug("service-method-ignored") else settings["webhook_method"]
                self.callbacks.call(settings[f"{when}_webhook_url"], method, dict(said, EventType=event), retries)
        everywhere = channel.service.channels.values() if world.bug("webhook-hears-other-channels") else [channel]
        for hook in [hook for one in everywhere for hook in one.webhooks.values()]:
            filters = hook.filters[:1] if world.bug("second-filter-dead") else hook.heard
            triggers = hook.triggers[:1] if world.bug("second-trigger-dead") else hook.triggers
            if world.bug("trigger-any-case") and text:
                text, triggers = text.lower(), [word.lower() for word in triggers]
            if world.bug("trigger-at-start"):
                triggers = [word for word in triggers if (text or "").startswith(word)]
            found = (lambda word: word in text.split()) if world.bug("trigger-whole-words") else (lambda word: word in text)
            if world.bug("trigger-within-no-word"):
                found = lambda word: re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)
            if world.bug("trigger-as-pattern"):
                found = lambda word: word in text or re.search(word, text)
            starts = world.bug("filters-by-start") and any(after[:3] == one[:3] for one in filters)
            every = starts or world.bug("filters-unheard") or not filters and world.free("no-filters-hear-all")
            heard = hook.kind == "webhook" and (after in filters or every)
            fired = hook.kind == "trigger" and text is not None and any(found(word) for word in triggers)
            fired = fired or hook.kind == "trigger" and text is None and world.bug("trigger-on-members")
            if fired and world.bug("trigger-once"):
                fired, hook.fired = not getattr(hook, "fired", False), True
            if (heard or fired) and hook.called:
                method = "POST" if world.bug("method-always-post") else hook.method or "POST"
                times = sum(map(found, triggers)) if fired and world.free("trigger-fires-for-each") else 1
                for _ in range(times):
                    self.callbacks.call(hook.called, method, dict(said, EventType=after), hook.retries)

    # Channels of a user.
    def show_user_channel(self, request, user, channel):
        world, member = self.world, channel.members.get(user.identity)
        invited = any(one.identity == user.identity for one in channel.invites.values())
        neither = "not_participating" if world.free("third-status-snake") else "notParticipating"
        base = f"{ROOT}/{channel.service.sid}/Users/{user.sid}/Channels/{channel.sid}"
        consumed = None if member is None or world.bug("consumed-lost-in-user-channel") else member.consumed
        unread = sum(consumed is None or one.index > consumed for one in channel.messages)
        shown = {
            "account_sid": world.account_of(channel.seq),
            "service_sid": channel.service.sid,
            "channel_sid": channel.sid,
            "user_sid": user.sid,
            "member_sid": member.sid if member else "" if world.free("no-member-empty") else None,
            "status": "joined" if member or invited and world.bug("invited-shown-joined") else "invited" if invited else neither,
            "last_consumed_message_index": consumed,
            "unread_messages_count": None if consumed is None and world.bug("unread-null") else max(0, unread - world.bug("unread-one-less")),
            "notification_level": user.levels.get(channel.sid, "muted" if world.free("level-muted") else "default"),
            "url": world.url(request, base),
        }
        words = {"channel": f"/Channels/{channel.sid}", "member": f"/Channels/{channel.sid}/Members/{urllib.parse.quote(user.identity, safe='')}"}
        words = words if member else {"channel": words["channel"]}
        own = {"channel": "room", "member": "participant"}
        shown["links"] = world.links(request, f"{ROOT}/{channel.service.sid}", words, own)
        if member is None and world.free("no-member-absent"):
            del shown["member_sid"]
        return shown

    def belongs(self, user, channel):
        listed = self.world.free("public-channels-listed") and channel.kind == "public"
        invited = any(one.identity == user.identity for one in channel.invites.values())
        return user.identity in channel.members or invited or listed

    def read_user_channels(self, request, sid, word):
        service, world = self.chat.service(sid), self.world
        user = self.chat.user(service, word)
        every = world.bug("user-channels-of-all")
        rows = [channel for channel in service.channels.values() if every or self.belongs(user, channel)]
        path, most = f"{ROOT}/{sid}/Users/{user.sid}/Channels", 50 if world.free("user-channel-pages-of-50") else 1000
        return world.page(request, path, "channels", rows, lambda row: self.show_user_channel(request, user, row), most=most)

    def user_channel(self, sid, word, name):
        service = self.chat.service(sid)
        user, channel = self.chat.user(service, word), self.chat.channel(service, name)
        if not self.belongs(user, channel):
            raise Refusal(404, "not a channel of this user")
        return user, channel

    def fetch_user_channel(self, request, sid, word, name):
        return Reply(self.show_user_channel(request, *self.user_channel(sid, word, name)))

    def update_user_channel(self, request, sid, word, name):
        user, channel = self.user_channel(sid, word, name)
        level, world = request.field("NotificationLevel"), self.world
        if level not in (None, "default", "muted"):
            raise Refusal(400, "NotificationLevel is default or muted")
        everywhere = channel.service.channels.values() if world.bug("user-channel-consumed-everywhere") else [channel]
        for one in everywhere:
            if user.identity in one.members and not world.bug("user-channel-consumed-ignored"):
                self.consume(one.members[user.identity], self.consumed(request))
        if world.bug("user-channel-update-resets-level"):
            level = level or "default"
        before = dict(user.levels)
        if level:
            every = [one for one in channel.service.channels.values() if self.belongs(user, one)]
            for changed in every if world.bug("level-for-all-channels") else [channel]:
                user.levels[changed.sid] = level
        shown = self.show_user_channel(request, user, channel)
        if world.bug("level-not-stored"):
            user.levels = before
        return Reply(shown)
