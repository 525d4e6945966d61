"""Deliveries to subscribers: webhooks with retries, callbacks without."""

import http.client
import json
import threading
import time
import urllib.parse

RETRIED = {429, 503, 504}
TIMEOUT = 5  # seconds; D2, Limits
PAUSE = 0.05


class Callbacks:
    """Each delivery has its own thread."""

    def __init__(self, world, delay):
        self.world, self.delay = world, delay
        # Retries by address, if they are counted over all calls.
        self.used = {}

    def call(self, url, method, said, retries):
        """A webhook of the chat service: form parameters."""
        threading.Thread(target=self.attempts, args=(url, method, said, retries), daemon=True).start()

    def attempts(self, url, method, said, retries):
        world = self.world
        retries += (world.bug("one-retry-more") and retries > 0) - (world.bug("one-retry-less") and retries > 0)
        if world.bug("retries-used-up"):
            retries, self.used[url] = max(0, retries - self.used.get(url, 0)), retries
        text = urllib.parse.urlencode(said)
        silent = {status for status, name in ((504, "no-retry-504"), (429, "no-retry-429")) if world.bug(name)}
        again = RETRIED - silent
        again |= {200} if world.bug("retry-after-200") else set()
        again |= {500} if world.bug("retry-on-500") else set()
        again |= {0} if world.free("refused-calls-repeated") else set()
        self.wait()
        for attempt in range(retries + 1):
            if attempt:
                time.sleep(PAUSE)
            if method == "GET":
                answer = self.send(url + ("&" if "?" in url else "?") + text, "GET", None, {})
            else:
                answer = self.send(url, "POST", text, {"Content-Type": "application/x-www-form-urlencoded"})
            if answer not in again and (answer is not None or world.bug("no-retry-timeout")):
                return

    def post(self, url, value):
        """A callback of the authentication service or an event: JSON."""
        times = 2 if self.world.free("callbacks-twice") else 1
        threading.Thread(target=self.posts, args=(url, value, times), daemon=True).start()

    def posts(self, url, value, times):
        self.wait()
        for _ in range(times):
            self.send(url, "POST", json.dumps(value), {"Content-Type": "application/json"})

    def wait(self):
        if self.world.free("slow-callbacks"):
            time.sleep(self.delay)

    def send(self, url, method, text, headers):
        """The status of the answer; `None` if none arrived in time."""
        parts = urllib.parse.urlsplit(url)
        patience = 10 if self.world.bug("timeout-10s") else 3 if self.world.bug("timeout-3s") else TIMEOUT
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=patience)
        try:
            path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except TimeoutError:
            return None
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()
