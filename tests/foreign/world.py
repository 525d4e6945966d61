"""Common parts of all services: the clock, SIDs, spellings, credentials, pages of lists."""

import base64
import datetime
import json
import secrets
import threading
import time
import urllib.parse
import variations

MINUTE, DAY = 60, 86400


class Refusal(Exception):
    """A rejection: `status` and a text."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status, self.text = status, text


class Thing:
    """A stored object: attributes and nothing more."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


class Reply:
    """An answer: `body` is a JSON value, bytes, or None."""

    def __init__(self, body=None, status=200, headers=()):
        self.body, self.status, self.headers = body, status, list(headers)


class World:
    """All state of one target, behind one lock."""

    def __init__(self, allowed, defects, public):
        self.allowed, self.defects, self.public = allowed, defects, public
        self.lock = threading.RLock()
        self.offset, self.count = 0.0, 0
        self.account, self.account_token = "AC" + "5eed" * 8, "account-Token-of-the-foreign-target"
        self.key, self.secret = "SKforeign0001", "Correct-Horse-Battery-Staple"
        self.bearer_until = {}
        self.callbacks, self.lease = {}, (None, 0.0)

    def free(self, name):
        assert name in variations.ALLOWED, name
        return name in self.allowed

    def bug(self, name):
        assert name in variations.DEFECTS, name
        return name in self.defects

    # Time and names.
    def now(self):
        return time.time() + self.offset

    def moment(self):
        """Now, with the precision of its spelling."""
        now = self.now()
        if self.free("times-fractions"):
            return round(now, 6)
        if self.free("times-comma"):
            return int(now * 1000) / 1000
        return float(int(now) // MINUTE * MINUTE if self.free("times-minutes") else int(now))

    def stamp(self, moment):
        if moment is None:
            return None
        at = datetime.datetime.fromtimestamp(moment, datetime.timezone.utc)
        plain = at.strftime("%Y-%m-%dT%H:%M:%S")
        if self.bug("time-without-zone"):
            return plain
        if self.bug("time-rfc-2822"):
            return at.strftime("%a, %d %b %Y %H:%M:%S +0000")
        spellings = {
            "times-offset": plain + "+00:00",
            "times-short-offset": plain + "+00",
            "times-basic-offset": plain + "+0000",
            "times-fractions": f"{plain}.{at.microsecond:06}Z",
            "times-comma": f"{plain},{round(at.microsecond / 1000):03}Z",
            "times-basic": at.strftime("%Y%m%dT%H%M%SZ"),
            "times-minutes": at.strftime("%Y-%m-%dT%H:%MZ"),
        }
        return next((text for name, text in spellings.items() if name in self.allowed), plain + "Z")

    def next(self):
        self.count += 1
        return self.count

    def sid(self, prefix):
        digits = secrets.token_hex(16)
        return prefix + (digits.upper() if self.free("sids-upper") else digits)

    def account_of(self, seq):
        return "AC" + "bad0" * 8 if self.bug("account-of-second") and seq % 2 == 0 else self.account

    # Texts.
    def attributes(self, text, unset="{}"):
        """The stored form of `Attributes`: JSON text."""
        if text is None:
            return "" if self.bug("attributes-unset-empty") else unset
        try:
            value = json.loads(text)
        except ValueError:
            if self.bug("attributes-invalid-accepted"):
                return text
            raise Refusal(400, "Attributes is not JSON") from None
        if self.bug("attributes-keys-lower") and isinstance(value, dict):
            return json.dumps({name.lower(): item for name, item in value.items()})
        if self.bug("attributes-nulls-dropped") and isinstance(value, dict):
            return json.dumps({name: item for name, item in value.items() if item is not None})
        return json.dumps(value, indent=1, sort_keys=True) if self.free("attributes-rewritten") else text

    def name(self, text, longest=64, kept=False):
        """A text with a bound. A longer text is rejected or truncated; both are legal."""
        if text is not None and len(text) > longest and not kept:
            if self.free("over-long-cut"):
                return text[:longest]
            raise Refusal(400, f"longer than {longest} characters")
        return text

    def inapplicable(self, fields):
        """Fields that do not apply here: null, empty or absent."""
        if self.free("not-applicable-absent"):
            return {}
        return dict.fromkeys(fields, "" if self.free("not-applicable-empty") else None)

    # Addresses.
    def url(self, request, path, absolute=False):
        if self.free("urls-with-query"):
            path += "?view=full"
        if self.free("links-relative") and not absolute:
            return path
        return request.origin + path

    def links(self, request, base, named, own):
        """Links whose keys the documents name in words: `named` maps the word to the rest of the path."""
        keys = own if self.free("link-keys-own") else {}
        return {keys.get(word, word): self.url(request, base + rest) for word, rest in named.items()}

    # Credentials.
    def admit(self, request, service):
        """Checks the Basic or bearer credentials of chat, media and flow; returns a rejection if they are invalid."""
        if service == "media" and self.bug("media-without-key"):
            return
        if service == "flow" and request.method == "GET" and self.bug("reading-without-key"):
            return
        if request.arg("PageToken") and self.bug("page-token-is-a-key"):
            return
        open_to_all = {"POST": "writing-without-key", "DELETE": "deleting-without-key"}.get(request.method)
        if open_to_all and self.bug(open_to_all):
            return
        scheme, _, rest = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.bearer_until.get(rest, 0) > time.time():
            return
        if scheme.lower() == "basic" and self.known(rest.strip()):
            return
        raise Refusal(401, "who are you?")

    def known(self, encoded):
        try:
            name, _, word = base64.b64decode(encoded, validate=True).decode().partition(":")
        except ValueError:
            return False
        word = word.strip() if self.bug("password-trimmed") else word
        if name == self.account and word == self.secret and self.bug("account-with-secret-of-key"):
            return True
        if name == self.account:
            return word == self.account_token and not self.bug("account-refused")
        if name != self.key:
            return False
        return (
            word == self.secret
            or self.bug("name-alone")
            or self.bug("secret-any-case") and word.lower() == self.secret.lower()
            or self.bug("secret-by-prefix") and len(word) >= 14 and word[:14] == self.secret[:14]
        )

    # Lists.
    def page(self, request, path, key, rows, render, newest_first=False, most=1000):
        """One page of `rows`, ordered by `seq`."""
        query = dict_of(request.query)
        token = unpack(request.arg("PageToken")) if request.arg("PageToken") else {}
        query = token.get("q", query)
        size = self.page_size(query.get("PageSize", [None])[0], most)
        order = (lambda row: -row.seq) if newest_first else (lambda row: row.seq)
        if self.bug("lists-end-at-sixty"):
            rows = rows[:60]
        if self.free("lists-newest-first") and not newest_first:
            rows, order = list(reversed(rows)), (lambda row: -row.seq)
        start = self.page_start(token, rows, order, size)
        number = token.get("p", 0)
        asked, size = size, 2 if size == 1 and self.bug("page-size-one-is-two") else size
        shown = rows[start:] if key == "steps" and self.bug("steps-ignore-page-size") else rows[start : start + size]
        left = start + len(shown) < len(rows)
        if self.free("last-page-empty") and len(shown) == size:
            left = True
        if key == "webhooks" and self.bug("list-misses-newest") and not left and len(shown) > 1:
            shown = shown[:-1]
        if number and self.bug("page-skips-first"):
            shown = shown[1:]
        if number and self.bug("page-repeats-last"):
            shown = rows[start - 1 : start] + shown

        def link(token_of_page, unfiltered=False):
            return self.page_url(request, path, {} if unfiltered else query, size, token_of_page)

        after = {"a": order(rows[start + size - 1]), "p": number + 1} if left and shown else None
        if left and number == 1 and self.bug("next-leads-to-itself"):
            after = dict(token)
        if left and start + 2 * size > len(rows) and self.bug("last-page-unreached"):
            after = None
        before = {"b": order(rows[start]) if start < len(rows) else None, "p": number - 1} if number else None
        if number > 1 and self.bug("previous-skips-a-page"):
            before = {"b": order(rows[max(0, start - size)]), "p": number - 2}
        if before and self.bug("previous-leads-to-first"):
            before = {"p": 0}
        if after is None and self.bug("last-page-loops") and number:
            after = {"p": 0}
        if key == "bindings" and path.count("/") == 5 and self.free("bindings-key-own"):
            key = "subscriptions"
        if number and self.bug("key-wrong-on-page-2"):
            key_said = "items"
        else:
            key_said = key
        here = link({name: value for name, value in token.items() if name != "q"} or {"p": number})
        said = len(shown) if self.bug("page-size-of-items") else asked
        meta = {
            "page": 0 if self.bug("page-number-stays") else number,
            "page_size": str(size) if self.bug("page-size-text") else said,
            "first_page_url": here if self.bug("first-page-url-is-this") else link({"p": 0}, self.bug("first-page-loses-filter")),
            "previous_page_url": link(before, self.bug("previous-loses-filter")) if before and not self.bug("previous-lost") else None,
            "url": here.replace(path, path.rsplit("/", 1)[0] + "/Others") if self.bug("meta-url-elsewhere") else here,
            "next_page_url": link(after) if after else None,
            "key": key_said,
        }
        if self.free("page-urls-empty"):
            meta = {name: "" if value is None else value for name, value in meta.items()}
        if self.free("page-urls-null"):
            meta.update(first_page_url=None, url=None)
        items = [render(row) for row in shown]
        if self.free("more-fields"):
            items = [dict(item, x_revision=7) for item in items]
        if self.bug("listed-without-optional"):
            items = [{name: value for name, value in item.items() if value is not None} for item in items]
        return Reply({"meta": meta, key: items})

    def page_start(self, token, rows, order, size):
        if "a" in token:
            return next((at for at, row in enumerate(rows) if order(row) > token["a"]), len(rows))
        if "b" in token:
            first = next((at for at, row in enumerate(rows) if token["b"] is not None and order(row) >= token["b"]), len(rows))
            return max(0, first - size)
        return 0

    def page_size(self, text, most):
        if text is None:
            return 20 if self.bug("default-page-20") else 50
        try:
            size = int(text)
        except ValueError:
            raise Refusal(400, "PageSize is not a number") from None
        if size == 0 and self.bug("page-size-0-accepted"):
            return 0
        if size == 1001 and self.bug("page-size-1001-accepted"):
            return 1001
        if not 1 <= size <= 1000:
            if not self.free("page-size-clamped"):
                raise Refusal(400, "PageSize is out of bounds")
            size = min(max(size, 1), 1000)
        return min(size, most)

    def page_url(self, request, path, query, size, token):
        """The address of a page that begins at `token`."""
        query = {name: values for name, values in query.items() if name not in ("PageSize", "Page", "PageToken")}
        later = token.get("p", 0) > 0
        if later and self.bug("page2-loses-date-filter"):
            query = {name: values for name, values in query.items() if not name.startswith("DateCreated")}
        if later and self.bug("page2-loses-identity-filter"):
            query.pop("Identity", None)
        sized = not (later and self.bug("page2-loses-page-size"))
        if self.free("opaque-page-links"):
            inner = dict(query, PageSize=[str(size)]) if sized else query
            pairs = [("PageToken", pack(dict(token, q=inner)))]
        else:
            pairs = [(name, value) for name, values in query.items() for value in values]
            pairs += [("PageSize", size)] * sized + [("Page", token.get("p", 0))]
            if "a" in token or "b" in token:
                pairs.append(("PageToken", pack(token)))
        target = path + "?" + urllib.parse.urlencode(pairs)
        if self.free("pages-relative"):
            return target
        return (self.public if self.free("pages-on-public-origin") else request.origin) + target


def dict_of(pairs):
    """`pairs` as a map from each name to its values."""
    found = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def pack(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def unpack(text):
    try:
        value = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return value if isinstance(value, dict) else {}
    except ValueError:
        raise Refusal(400, "unknown PageToken") from None
