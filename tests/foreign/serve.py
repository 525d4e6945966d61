"""Third-party implementation: a second implementation of large parts of the documents, to test the judge. Standard library only.

    python3 serve.py [--variation NAME|all]... [--defect NAME]... [--tls CERT KEY] [--rate N] [--port N]

Prints one line of JSON with its addresses and serves until its standard input ends. Written from the documents and their
reading only, without knowledge of the rulebook and the reference. HTTP/1.1 with keep-alive, a thread for each connection.
"""

import argparse
import email.utils
import gzip
import json
import re
import socket
import ssl
import sys
import threading
import time
import urllib.parse
import variations
import world as worlds
from auth import APPLICATION, KEY, KEY_HEADER, Auth
from callbacks import Callbacks
from chat import Chat
from events import Events
from flow import Flow
from media import Media
from people import People
from rooms import Rooms
from world import Refusal, Reply, World

STATUS = {200: "OK", 201: "Created", 204: "No Content", 302: "Found", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}
BODY_MAX = 64 * 1024 * 1024


class Request:
    """A request whose parts are decoded on demand."""

    def __init__(self, method, target, headers, body, scheme):
        self.method, self.headers, self.body = method, headers, body
        self.path, _, query = target.partition("?")
        self.query = urllib.parse.parse_qsl(query, keep_blank_values=True)
        self.origin = f"{scheme}://{headers.get('host', 'localhost')}"
        self._form = None

    def open_page_token(self):
        """Adds the filters that a page token carries."""
        token = worlds.unpack(self.arg("PageToken")) if self.arg("PageToken") else {}
        self.query += [(name, value) for name, values in token.get("q", {}).items() for value in values]

    def args(self, name):
        return [value for key, value in self.query if key == name]

    def arg(self, name):
        return next(iter(self.args(name)), None)

    @property
    def form(self):
        """The form's fields, each with its values in their order."""
        if self._form is None:
            try:
                self._form = worlds.dict_of(urllib.parse.parse_qsl(self.body.decode(), keep_blank_values=True))
            except UnicodeDecodeError:
                raise Refusal(400, "no UTF-8") from None
        return self._form

    def field(self, name):
        return self.form.get(name, [None])[0]

    def need(self, name):
        if not self.field(name):
            raise Refusal(400, f"{name} is needed")
        return self.field(name)

    def json(self):
        try:
            return json.loads(self.body or b"null")
        except ValueError:
            raise Refusal(400, "no JSON") from None

    def tree(self):
        """A JSON body, or a form with brackets, as one tree."""
        if "json" in self.headers.get("content-type", ""):
            pairs = (self.json() or {}).items()
        else:
            pairs = [(name, value) for name, values in self.form.items() for value in values]
        tree = {}
        for name, value in pairs:
            graft(tree, re.findall(r"[^\[\]]+|\[\]", name), value)
        return tree


def graft(tree, keys, value):
    """Sets `value` at the place that `user[email]` or `logos[][res]` names; a list's next element begins where a key repeats."""
    key, rest = keys[0], keys[1:]
    if not rest:
        tree[key] = value
    elif rest[0] == "[]" or rest[0].isdigit() and key == "logos":
        items = tree.setdefault(key, [])
        if len(rest) == 1:
            items.append(value)
        else:
            if not items or rest[1] in items[-1]:
                items.append({})
            graft(items[-1], rest[1:], value)
    else:
        graft(tree.setdefault(key, {}), rest, value)


class Target:
    """All services behind one address: routing, credentials, the rate limit."""

    def __init__(self, world, delay, rate, latency):
        self.world, self.rate, self.latency = world, rate, latency
        self.second, self.spent = 0, 0
        callbacks = Callbacks(world, delay)
        self.auth, self.chat, self.flow = Auth(world, callbacks), Chat(world), Flow(world)
        media = Media(world, self.chat)
        rooms = Rooms(world, self.chat, media, callbacks)
        people = People(world, self.auth, self.chat, rooms, self.flow, Events(world, callbacks))
        self.routes = {}
        for service in (self.auth, self.chat, self.flow, media, rooms, people):
            for method, path, run in service.routes():
                self.routes.setdefault((method, path.count("/")), []).append((pattern(path), run))
        for name in ("front desk", "after hours", "to be thrown away"):
            self.flow.make_flow(name, status="published")

    def answer(self, request):
        time.sleep(self.latency)
        limited = self.limited(request)
        if limited:
            return limited
        with self.world.lock:
            try:
                request.open_page_token()
                return self.route(request)
            except Refusal as refusal:
                return self.refused(request, refusal)

    def route(self, request):
        service = request.path.split("/", 2)[1]
        if service == "identity":
            self.auth.admit(request)
        elif service in ("talk", "files", "journeys"):
            self.world.admit(request, {"talk": "chat", "files": "media", "journeys": "flow"}[service])
        elif request.path == "/token":
            return self.token()
        for known, run in self.routes.get((request.method, request.path.count("/")), []):
            found = known.fullmatch(request.path)
            if found:
                return run(request, *map(urllib.parse.unquote, found.groups()))
        raise Refusal(404, "nothing here")

    def token(self):
        """A bearer token for chat, media and flow that is valid for some seconds."""
        word = self.world.sid("")
        self.world.bearer_until[word] = time.time() + 3
        return Reply({"access_token": word, "expires_in": 3})

    def limited(self, request):
        """A rejection if this second's requests are used up; the bench and tokens are not limited."""
        world = self.world
        if not (world.free("rate-limit") or world.free("rate-limit-503")) or request.path.startswith(("/bench", "/token")):
            return None
        with world.lock:
            now = int(time.monotonic())
            self.second, self.spent = now, self.spent + 1 if now == self.second else 1
            if self.spent <= self.rate:
                return None
        if world.free("rate-limit-503"):
            return Reply(b"", 503, [("Retry-After", email.utils.formatdate(time.time() + 1, usegmt=True))])
        return Reply({"message": "slower, please"}, 429, [("Retry-After", "1")])

    def refused(self, request, refusal):
        world = self.world
        if request.path.startswith("/identity"):
            status = 200 if world.free("auth-refusals-200") else refusal.status
            form = "xml" if "/xml/" in request.path else "json"
            return self.auth.answer(form, {"message": refusal.text, "success": False}, status)
        if world.free("refusals-empty"):
            return Reply(None, refusal.status)
        if world.free("refusals-text"):
            return Reply(refusal.text.encode(), refusal.status, [("Content-Type", "text/plain")])
        return Reply({"message": refusal.text}, refusal.status)


def pattern(path):
    return re.compile("([^/]+)".join(map(re.escape, path.split("{}"))))


def serve(listener, target, context, scheme):
    """Accepts connections."""
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=converse, args=(connection, target, context, scheme), daemon=True).start()


def converse(connection, target, context, scheme):
    """Serves one connection until it ends."""
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(60)
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        with connection, connection.makefile("rb", 65536) as reader:
            while exchange(connection, reader, target, scheme):
                pass
    except (OSError, ValueError):
        connection.close()


def exchange(connection, reader, target, scheme):
    """Answers one request; returns whether another may follow."""
    words = reader.readline(65536).decode("latin-1").split()
    if len(words) != 3:
        return False
    headers = {}
    while line := reader.readline(65536).decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    if headers.get("expect", "").lower() == "100-continue":
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = read_body(reader, headers)
    reply = target.answer(Request(words[0], words[1], headers, body, scheme))
    free = target.world.allowed
    connection.sendall(rendered(reply, words[0], free))
    return headers.get("connection", "").lower() != "close" and "answers-close" not in free


def read_body(reader, headers):
    if headers.get("transfer-encoding", "").lower() == "chunked":
        chunks = []
        while size := int(reader.readline(64).split(b";")[0], 16):
            chunks.append(reader.read(size))
            reader.readline(8)
        reader.readline(8)
        return b"".join(chunks)
    return reader.read(min(int(headers.get("content-length", 0)), BODY_MAX))


def rendered(reply, method, free=()):
    """The bytes of an answer."""
    names = {name.lower() for name, _ in reply.headers}
    body, headers = reply.body, reply.headers + [("Date", email.utils.formatdate(usegmt=True))]
    if isinstance(body, (dict, list)):
        pretty = "json-pretty" in free
        text = json.dumps(body, ensure_ascii="json-escaped" in free, indent=2 if pretty else None, sort_keys=pretty)
        body = (text.replace("/", "\\/") if "json-escaped" in free else text).encode()
        kinds = {"content-type-text": "text/plain", "content-type-bare": "application/json", "content-type-json-suffix": "application/vnd.foreign+json"}
        kind = next((kind for name, kind in kinds.items() if name in free), "application/json; charset=utf-8")
        headers += [("Content-Type", kind)] * ("content-type" not in names)
        if "answers-gzip" in free:
            body = gzip.compress(body)
            headers.append(("Content-Encoding", "gzip"))
    body = body or b""
    chunked = "answers-chunked" in free and reply.status not in (204, 304)
    if chunked:
        headers.append(("Transfer-Encoding", "chunked"))
    elif reply.status != 204:
        headers.append(("Content-Length", str(len(body))))
    if "answers-close" in free:
        headers.append(("Connection", "close"))
    head = f"HTTP/1.1 {reply.status} {STATUS.get(reply.status, 'Refused')}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers)
    if chunked:
        parts = [body[at : at + 100] for at in range(0, len(body), 100)]
        body = b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts) + b"0\r\n\r\n"
    return head.encode("latin-1") + b"\r\n" + (b"" if method == "HEAD" else body)


def arguments():
    said = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    said.add_argument("--variation", action="append", default=[], help="an allowed variation; all: one of each group")
    said.add_argument("--round", type=int, default=0, help="which of each group `--variation all` selects, modulo its size")
    said.add_argument("--defect", action="append", default=[], help="a fault")
    said.add_argument("--tls", nargs=2, metavar=("CERT", "KEY"))
    said.add_argument("--client-ca", help="certificates that clients must be able to show, with --tls")
    said.add_argument("--rate", type=int, default=150, help="requests a second, if a variation limits them")
    said.add_argument("--callback-delay", type=float, default=3.0, help="seconds, if callbacks are slow")
    said.add_argument("--latency", type=float, default=0.0, help="delay of each answer in seconds")
    said.add_argument("--port", type=int, default=0)
    said.add_argument("--list", choices=["variations", "defects"])
    return said.parse_args()


def main():
    said = arguments()
    if said.list:
        print("\n".join(variations.ALLOWED if said.list == "variations" else variations.DEFECTS))
        return
    allowed = variations.allowed(said.variation, said.round)
    defects = variations.chosen(said.defect, variations.DEFECTS, "defect")
    context = None
    if said.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*said.tls)
        if said.client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(said.client_ca)
    scheme = "https" if context else "http"
    listeners = [socket.create_server(("127.0.0.1", port), backlog=256) for port in (said.port, 0)]
    origins = [f"{scheme}://127.0.0.1:{one.getsockname()[1]}" for one in listeners]
    world = World(allowed, defects, origins[1])
    target = Target(world, said.callback_delay, said.rate, said.latency)
    for listener in listeners:
        threading.Thread(target=serve, args=(listener, target, context, scheme), daemon=True).start()
    flows = list(target.flow.flows)
    facts = {
        "url": origins[0], "public_url": origins[1], "key": world.key, "secret": world.secret, "account": world.account,
        "account_token": world.account_token, "auth_header": KEY_HEADER, "auth_key": KEY, "application": APPLICATION,
        "flow_sid": flows[0], "disposable_flow_sid": flows[2], "variations": sorted(allowed), "defects": sorted(defects),
    }  # fmt: skip
    print(json.dumps(facts), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
