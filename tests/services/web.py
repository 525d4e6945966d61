"""A JSON server for the services of this folder.

    server.py [--port N] [--defect NAME]    prints `listening URL` and serves until its standard input ends
    server.py --list                        prints the defects
"""

import argparse
import base64
import datetime
import http.server
import json
import sys
import threading
import time
import urllib.parse

USERNAME, PASSWORD = "keeper", "open-sesame"
BASIC = "Basic " + base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()


class Refused(Exception):
    """A request that the service does not accept."""

    def __init__(self, status, reason):
        super().__init__(reason)
        self.status = status


class Request:
    """A request with its body and query read."""

    def __init__(self, method, target, headers, body):
        url = urllib.parse.urlsplit(target)
        self.method, self.headers, self.path = method, headers, url.path
        self.query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        self.parts = [urllib.parse.unquote(part) for part in url.path.strip("/").split("/")]
        self.raw = body

    def body(self):
        try:
            body = json.loads(self.raw or b"{}")
        except ValueError:
            raise Refused(400, "the body is not JSON") from None
        if not isinstance(body, dict):
            raise Refused(400, "the body is not an object")
        return body


class Service:
    """State, a clock that can be moved, and at most one defect."""

    DEFECTS = {}

    def __init__(self, defect):
        self.defect, self.moved = defect, 0.0

    def has(self, defect):
        if defect not in self.DEFECTS:
            raise KeyError(defect)
        return self.defect == defect

    def now(self):
        return time.time() + self.moved

    def advance_clock(self, seconds):
        self.moved += seconds
        return {"now": stamp(self.now())}


def stamp(seconds):
    """A time as ISO 8601 in GMT."""
    at = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def serve(kind):
    said = argparse.ArgumentParser(description=kind.__doc__)
    said.add_argument("--port", type=int, default=0)
    said.add_argument("--defect", choices=kind.DEFECTS)
    said.add_argument("--list", action="store_true")
    said = said.parse_args()
    if said.list:
        print("\n".join(f"{name:<22} {text}" for name, text in kind.DEFECTS.items()))
        return
    service, lock = kind(said.defect), threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self):
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.command, self.path, self.headers, raw)
            try:
                with lock:
                    hook = request.parts[1] if request.parts[0] == "_people" and len(request.parts) == 2 else None
                    status, body = (200, people(service, hook, request.body())) if hook else service.handle(request)
            except Refused as refused:
                status, body = refused.status, {"error": str(refused)}
            text = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            if text:
                self.send_header("Content-Type", "application/json")
            if status != 204:
                self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", said.port), Handler)
    server.daemon_threads = True
    print(f"listening http://127.0.0.1:{server.server_port}", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


def people(service, name, arguments):
    """What people do, as hooks ask for it."""
    hook = getattr(service, name, None) if name in ("advance_clock", *getattr(service, "HOOKS", ())) else None
    if not hook:
        raise Refused(501, f"no hook {name}")
    return hook(**arguments)
