"""A minimal client of the chat service that respects Retry-After."""

import base64
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request

KEY = base64.b64encode(b"reference-api-key:reference-api-secret").decode()
TRIES = 5


class Chat:
    def __init__(self, base):
        self.base = base
        # Setting IMPATIENT disables retries, which makes the tests fail.
        self.tries = 1 if os.environ.get("IMPATIENT") else TRIES

    def ask(self, method, path, form=None):
        body = urllib.parse.urlencode(form).encode() if form else None
        request = urllib.request.Request(self.base + path, body, {"Authorization": f"Basic {KEY}"}, method=method)
        for left in reversed(range(self.tries)):
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as refusal:
                if refusal.code not in (429, 503) or left == 0:
                    raise
                time.sleep(float(refusal.headers.get("Retry-After", "1")))

    def create_service(self, name):
        return self.ask("POST", "/chat/v2/Services", {"FriendlyName": name})

    def services(self):
        return self.ask("GET", "/chat/v2/Services")["services"]
