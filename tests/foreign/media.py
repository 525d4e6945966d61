"""The media service: upload, description, content."""

import email.parser
import email.policy
from world import DAY, Refusal, Reply, Thing

ROOT = "/files/v1/Services/{}/Media"


class Media:
    """State and operations of uploaded files."""

    def __init__(self, world, chat):
        self.world, self.chat = world, chat

    def routes(self):
        return [
            ("POST", ROOT, self.upload),
            ("GET", ROOT + "/{}", self.retrieve),
            ("GET", ROOT + "/{}/Content", self.content),
            ("GET", "/store/{}/{}", self.stored),
        ]

    def upload(self, request, sid):
        service, world = self.chat.service(sid), self.world
        kind = request.headers.get("content-type", "")
        if not kind.startswith("multipart/form-data") or "boundary" not in kind:
            raise Refusal(415, "multipart/form-data, please")
        part = self.part(kind, request.body)
        content = part.get_payload(decode=True)
        if len(content) > service.settings["media"]["size_limit_mb"] * 1024 * 1024 and not world.bug("media-limit-ignored"):
            raise Refusal(413, "too large")
        same = [other for other in service.media.values() if other.content == content]
        if same and world.bug("media-once-by-content"):
            return self.chat.created(self.show(request, same[0]))
        medium = Thing(seq=world.next(), sid=world.sid("ME"), service=service, content=content, channel=None, message=None)
        medium.kind = "application/octet-stream" if world.bug("media-type-octet") else part.get_content_type()
        medium.name = "media" if world.bug("media-name-lost") else part.get_filename()
        medium.size = len(request.body) if world.bug("media-size-of-request") else len(content)
        medium.created, medium.ticket = world.moment(), world.sid("")
        service.media[medium.sid] = medium
        return self.chat.created(self.show(request, medium))

    def part(self, kind, body):
        """The part named media."""
        head = f"Content-Type: {kind}\r\nMIME-Version: 1.0\r\n\r\n".encode()
        whole = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
        for part in whole.iter_parts() if whole.is_multipart() else []:
            if part.get_param("name", header="content-disposition") == "media":
                return part
        raise Refusal(400, "no part is named media")

    def of(self, service, sid):
        """The media of a service, without those of other services."""
        if sid not in service.media:
            raise Refusal(400, "no such media")
        return service.media[sid]

    def medium(self, sid, name):
        service = self.chat.service(sid)
        services = self.chat.services.values() if self.world.bug("media-under-any-service") else [service]
        found = next((one.media[name] for one in services if name in one.media), None)
        if found is None:
            raise Refusal(404, "no such media")
        return found

    def show(self, request, medium):
        world, base = self.world, f"/files/v1/Services/{medium.service.sid}/Media/{medium.sid}"
        day = lambda moment: world.stamp(moment // DAY * DAY)[:10] if world.free("media-dates") else world.stamp(moment)
        used = medium.message is not None and not world.bug("media-message-unlinked")
        shown = {
            "sid": medium.sid,
            "account_sid": world.account_of(medium.seq),
            "service_sid": medium.service.sid,
            "date_created": day(medium.created),
            "date_updated": None,
            "size": medium.size,
            "content_type": medium.kind,
            "file_name": medium.name,
            "author": "system",
            "url": base if world.bug("media-url-relative") else world.url(request, base, absolute=True),
            "links": {
                "content": world.url(request, base + "/Content"),
                "content_direct_temporary": world.url(request, f"/store/{medium.sid}/{medium.ticket}"),
            },
        }
        if used:
            return dict(shown, channel_sid=medium.channel.sid, message_sid=medium.message.sid)
        return dict(shown, **world.inapplicable(["channel_sid", "message_sid"]))

    def retrieve(self, request, sid, name):
        return Reply(self.show(request, self.medium(sid, name)))

    def bytes(self, medium):
        world, content = self.world, medium.content
        content = content[:-1] if world.bug("media-content-cut") else content
        content = content.decode("utf-8", "replace").encode() if world.bug("media-bytes-as-text") else content
        content = content.replace(b"\r\n", b"\n") if world.bug("media-line-ends") else content
        content = list(medium.service.media.values())[-1].content if world.bug("media-content-of-last") else content
        return Reply(content, headers=[("Content-Type", "application/octet-stream" if world.bug("media-content-octet") else medium.kind)])

    def content(self, request, sid, name):
        medium = self.medium(sid, name)
        if self.world.free("content-redirect"):
            return Reply(None, 302, [("Location", f"{self.world.public}/store/{medium.sid}/{medium.ticket}")])
        return self.bytes(medium)

    def stored(self, request, name, ticket):
        """The store behind the service: it requires a ticket and rejects credentials, as stores do."""
        if "authorization" in request.headers:
            raise Refusal(400, "only one way to authenticate, please")
        for service in self.chat.services.values():
            if name in service.media and service.media[name].ticket == ticket:
                return self.bytes(service.media[name])
        raise Refusal(403, "no such ticket")
