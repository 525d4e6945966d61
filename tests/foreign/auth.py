"""The second-factor authentication service: users, approval requests, registration without personal data."""

import base64
import binascii
import hashlib
import hmac
import json
import re
import uuid
from world import DAY, MINUTE, Refusal, Reply, Thing

BASE = "/identity"
APPLICATION = {"id": 7001, "name": "Foreign App", "scheme": "foreignapp", "key": "a-production-key-of-the-foreign-application-0001"}
KEY_HEADER, KEY = "x-identity-key", "identity-Key-7001-abcdef"
DEVICE = {
    "city": None, "country": "US", "ip": "192.0.2.7", "region": None, "registration_city": None, "registration_country": "US",
    "registration_ip": "192.0.2.8", "registration_method": "sms", "registration_region": None, "os_type": "android",
    "last_account_recovery_at": None, "id": 81, "registration_date": 1690000000, "last_sync_date": 1690000001,
    "enabled_unlock_methods": "pin", "last_unlock_method_used": "pin", "last_unlock_date": 1690000002,
}  # fmt: skip


class Auth:
    """State and operations of one application."""

    def __init__(self, world, callbacks):
        self.world, self.callbacks = world, callbacks
        self.users, self.requests, self.registrations, self.apps = [], {}, {}, set()
        self.reacted = False

    def routes(self):
        status = BASE + ("/protected/users/{}/status" if self.world.free("status-path-without-format") else "/protected/{}/users/{}/status")
        return [
            ("POST", BASE + "/protected/{}/users/new", self.create_user),
            ("GET", status, self.user_status),
            ("GET", BASE + "/protected/{}/registrations/status", self.registration_status),
            ("POST", BASE + "/onetouch/{}/users/{}/approval_requests", self.create_request),
            ("GET", BASE + "/onetouch/{}/approval_requests/{}", self.fetch_request),
        ]

    def admit(self, request):
        if request.headers.get(KEY_HEADER) != KEY:
            raise Refusal(401, "the application's key, please")

    def format(self, word):
        if word not in ("json", "xml"):
            raise Refusal(404, "json or xml")
        return word

    def answer(self, form, value, status=200):
        """`value` in the requested format."""
        if form == "json":
            return Reply(value, status)
        text = '<?xml version="1.0" encoding="UTF-8"?>\n' + self.xml("hash", value)
        return Reply(text.encode(), status, [("Content-Type", "application/xml; charset=utf-8")])

    def xml(self, name, value):
        kind, name = "", re.sub("^(?=[^A-Za-z_])", "_", re.sub("[^A-Za-z0-9_.-]", "_", name))
        if isinstance(value, bool):
            words = ("yes", "no") if self.world.bug("xml-boolean-words") else ("true", "false")
            kind, inner = "boolean", words[0] if value else words[1]
        elif isinstance(value, int):
            kind, inner = "integer", str(value)
        elif isinstance(value, dict):
            inner = "".join(self.xml(key, item) for key, item in value.items())
        elif isinstance(value, list):
            kind, inner = "array", "".join(self.xml(name.rstrip("s") or "item", item) for item in value)
        elif value is None:
            return f'<{name} nil="true"/>'
        else:
            if self.world.free("xml-cdata") and value and "]]>" not in value:
                return f"<!-- a text --><{name}><![CDATA[{value}]]></{name}>"
            escaped = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            inner = value if self.world.bug("xml-unescaped") else escaped
        typed = f' type="{kind}"' if kind and not self.world.free("xml-untyped") else ""
        return f"<{name}{typed}>{inner}</{name}>"

    # Users.
    def create_user(self, request, word):
        form, world = self.format(word), self.world
        given = request.tree().get("user", {})
        mail, phone, country = (str(given.get(name) or "") for name in ("email", "cellphone", "country_code"))
        if not re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", mail) and not (world.bug("email-unchecked") and mail):
            return self.invalid(form, "60027", {"email": "is invalid"})
        if "send_install_link_via_sms" in request.tree() and world.bug("install-link-refused"):
            raise Refusal(400, "unknown user")
        digits = re.sub("[-. ]", "", phone)
        wrong = "." in phone and world.bug("phone-dots-refused")
        if not re.fullmatch("[0-9]{5,15}", digits) or not re.fullmatch("[0-9]{1,4}", country) or wrong:
            code = "60033" if world.free("phone-error-own-code") else "60027"
            return self.invalid(form, code, {"cellphone": "is invalid"})
        user = self.enrol(mail, phone if world.bug("phone-spelled-new-id") else digits, int(country))
        shown = str(user.id) if world.bug("auth-id-text") else user.id
        value = {"message": "User created successfully.", "user": {"id": shown}, "success": True}
        return self.answer("json" if world.bug("xml-answers-json") else form, value)

    def invalid(self, form, code, wrong):
        world = self.world
        errors = {**wrong, "message": "User was not valid"}
        if world.free("error-members-other-types") and form == "json":
            errors = {name: [text] if name != "message" else {"text": text} for name, text in errors.items()}
        value = {"message": "User was not valid", "success": False, "errors": errors, **wrong}
        value["error_code"] = int(code) if world.bug("error-code-integer") else code
        if world.bug("error-success-missing"):
            del value["success"]
        return self.answer(form, value, 200 if world.free("auth-refusals-200") else 400)

    def enrol(self, mail, digits, country):
        """The user of a phone, created if new."""
        world = self.world
        last = -7 if world.bug("phones-by-the-last-seven") else 0
        same = lambda one: one.phone[last:] == digits[last:] and (one.country == country or world.bug("country-ignored"))
        user = next(filter(same, self.users), None)
        if user is None and world.free("email-changes-phone") and mail:
            user = next((one for one in self.users if mail in one.mails), None)
        if user and mail not in user.mails and world.bug("same-phone-new-id"):
            user = None
        if user is None and world.bug("second-phone-same-id") and self.users and self.users[-1].country == country:
            user = self.users[-1]
        if user is None:
            user = Thing(id=(2**53 + 1 if world.free("ids-large") else 4000) + world.next(), mails=[], phone=digits, country=country)
            self.users.append(user)
        user.phone = digits
        user.mails += [mail] * (bool(mail) and mail not in user.mails)
        return user

    def user(self, word):
        found = next((one for one in self.users if str(one.id) == word), None)
        if found is None:
            raise Refusal(404, "no such user")
        return self.users[0] if self.world.bug("status-of-first-user") else found

    def user_status(self, _request, *words):
        form, user, world = self.format(words[0]) if len(words) == 2 else "json", self.user(words[-1]), self.world
        there = (user.phone, user.country) in self.apps and not world.bug("registered-never")
        masked = user.phone if world.bug("phone-unmasked") else "XXX-XXX-" + user.phone[-4:]
        status = {
            "auth_id": user.id,
            "confirmed": there,
            "registered": there,
            "country_code": str(user.country) if world.bug("status-country-text") else user.country,
            "phone_number": masked,
            "email": user.mails[0] if user.mails else "",
            "devices": ["android"] if there else [],
        }
        return self.answer(form, {"status": status, "message": "User status.", "success": True})

    # Approval requests.
    def create_request(self, request, word, user_id):
        form, world, given = self.format(word), self.world, request.tree()
        try:
            user = self.user(user_id)
        except Refusal:
            if not world.bug("request-for-nobody"):
                raise
            user = Thing(id=0, mails=[""])
        if not given.get("message") and not world.bug("message-optional"):
            raise Refusal(400, "message is needed")
        details = self.hash(given.get("details"), 21 if world.bug("details-key-21") else 19 if world.bug("details-key-20-refused") else 20)
        hidden = self.hash(given.get("hidden_details"), 21 if world.bug("hidden-key-21") else 20)
        self.look_at_logos(given.get("logos"))
        try:
            usual = 3600 if world.bug("default-expiry-hour") else DAY
            seconds = int(given.get("seconds_to_expire", usual))
        except (TypeError, ValueError):
            raise Refusal(400, "seconds_to_expire is not an integer") from None
        if seconds < 0:
            raise Refusal(400, "seconds_to_expire is negative")
        hidden = dict(list(hidden.items())[:1]) if world.bug("hidden-first-only") else hidden
        wanted = Thing(seq=world.next(), user=user, message=given.get("message"), details=details, hidden=hidden, seconds=seconds)
        wanted.uuid, wanted.made, wanted.created = str(uuid.uuid4()), world.now(), world.moment()
        wanted.uuid = wanted.uuid.upper() if world.free("uuid-upper") else wanted.uuid
        wanted.uuid = wanted.uuid.replace("-", "") if world.bug("uuid-without-dashes") else wanted.uuid
        wanted.reaction, wanted.told, wanted.processed = None, False, None
        self.requests[wanted.uuid] = wanted
        brief = {"uuid": wanted.uuid}
        if not world.free("approval-create-uuid-only"):
            brief.update(created_at=world.stamp(wanted.created), status="pending")
        return self.answer(form, {"approval_request": brief, "success": True})

    def hash(self, value, longest):
        if value in (None, ""):
            return {}
        looked_at = 1 if self.world.bug("details-first-key-checked") else None
        if not isinstance(value, dict) or any(len(key) > longest for key in list(value)[:looked_at]):
            raise Refusal(400, f"a hash with keys of at most {longest} characters, please")
        return value

    def look_at_logos(self, logos):
        world = self.world
        if not logos:
            return
        if not isinstance(logos, list) or not all(isinstance(one, dict) for one in logos):
            raise Refusal(400, "logos are a list")
        logos = logos[:1] if world.bug("logo-second-unchecked") else logos
        if not any(one.get("res") == "default" for one in logos) and not world.bug("logo-without-default"):
            raise Refusal(400, "one logo is the default")
        secure = all(str(one.get("url", "")).startswith("https://") for one in logos) or world.bug("logo-http")
        if not secure or any(one.get("res") not in ("default", "low", "med", "high") for one in logos):
            raise Refusal(400, "logos are low, med, high or default, and behind https")

    def state(self, wanted):
        if wanted.reaction:
            return wanted.reaction
        world, seconds = self.world, wanted.seconds
        if seconds == 0 and not world.bug("zero-expires"):
            return "pending"
        seconds -= 2 if world.bug("expires-two-seconds-early") else 0
        late = world.now() >= wanted.made + seconds * (2 if world.bug("expires-late") else 1)
        if late and not wanted.told and world.free("callback-on-expiry"):
            wanted.told = True
            self.tell(wanted, "expired")
        return "expired" if late else "pending"

    def fetch_request(self, _request, word, sought):
        form, world = self.format(word), self.world
        wanted = self.requests.get(sought)
        if wanted is None and world.bug("fetch-any-uuid") and self.requests:
            wanted = Thing(**dict(list(self.requests.values())[0].__dict__, uuid=sought, reaction="pending"))
        if wanted is None:
            raise Refusal(404, "no such request")
        return self.answer(form, {"approval_request": self.show_request(wanted, form == "xml" and world.bug("xml-forever-pending")), "success": True})

    def show_request(self, wanted, stuck=False):
        world, status = self.world, "pending" if stuck else self.state(wanted)
        shown = {"status": status, "uuid": wanted.uuid}
        if not world.free("approval-few-fields"):
            shown.update(
                notified=True, hidden_details={} if wanted.reaction and world.bug("hidden-lost-on-decision") else wanted.hidden, created_at=world.stamp(world.moment() if world.bug("created-at-moves") else wanted.created),
                updated_at=world.stamp(wanted.processed or wanted.created), processed_at=world.stamp(wanted.processed),
                seconds_to_expire=str(wanted.seconds) if world.bug("seconds-text") else wanted.seconds, app_id="app", user_id="user", _id="id" + wanted.uuid[:8], _app_serial_id=1,
                _app_name=APPLICATION["name"], _user_email=wanted.user.mails[0] if wanted.user.mails else "", _auth_id=wanted.user.id,
            )  # fmt: skip
            if world.bug("hidden-in-details"):
                shown["details"] = {**wanted.details, **wanted.hidden}
            if world.free("details-dated"):
                shown["details"] = dict(wanted.details, Timestamp="2026-01-31 10:20")
        early = status == "pending" and world.bug("device-while-pending") or status == "expired" and world.bug("device-after-expiry")
        if status in ("approved", "denied") or early:
            shown["device"] = dict(DEVICE, id="81") if world.bug("device-id-text") else dict(DEVICE)
        if status == "denied" and world.bug("no-device-on-denial"):
            del shown["device"]
        return shown

    def react(self, sought, reaction):
        """The person approves or denies, which changes nothing if the request is no longer pending."""
        world, wanted = self.world, self.requests.get(sought)
        if wanted is None:
            raise Refusal(404, "no such request")
        reaction = "approved" if world.bug("denial-approves") else reaction
        state = self.state(wanted)
        late = state == "expired" and world.bug("denied-after-expiry" if reaction == "denied" else "approved-after-expiry")
        if state != "pending" and not late and not (wanted.reaction and world.bug("decision-changes")):
            return
        same = [one for one in self.requests.values() if one.user is wanted.user and self.state(one) == "pending"]
        for decided in same if world.bug("approval-approves-all") and reaction == "approved" else [wanted]:
            decided.reaction, decided.processed = reaction, world.moment()
        if not (reaction == "denied" and world.bug("no-callback-on-denial")) and not (self.reacted and world.bug("callback-once-only")):
            self.tell(wanted, reaction)
        self.reacted = True

    def tell(self, wanted, status):
        url, world = self.world.callbacks.get("approval"), self.world
        if url is None:
            return
        said = {"uuid": wanted.uuid, "status": status, "callback_action": "approval_request_status"}
        if world.free("callback-uuid-in-address"):
            del said["uuid"]
            url += ("&" if "?" in url else "?") + "uuid=" + wanted.uuid
        if world.free("callback-uuid-deep"):
            said = {"status": status, "approval_request": {"transaction": {"uuid": wanted.uuid}}}
        if world.free("approval-callback-by-get"):
            self.callbacks.call(url, "GET", {name: value for name, value in said.items() if isinstance(value, str)}, 0)
            return
        self.callbacks.post(url, said)

    # Registration without personal data.
    def announce(self, custom_user_id, qr=None):
        """A QR code is displayed: the registration is pending until its token expires."""
        until = self.world.now() + 15 * MINUTE
        try:
            until = min(until, float(parts_of(qr)[1]["exp"])) if qr else until
        except (KeyError, TypeError, ValueError):
            pass
        self.registrations[custom_user_id] = Thing(id=None, until=until)

    def registration_status(self, request, word):
        form, world, sought = self.format(word), self.world, request.arg("custom_user_id")
        found = self.registrations.get(sought)
        if found is None and world.bug("registration-any-case"):
            found = next((one for name, one in self.registrations.items() if name.lower() == (sought or "").lower()), None)
        if world.bug("registration-of-last") and self.registrations:
            found = list(self.registrations.values())[-1]
        if found is None:
            if world.free("unknown-registration-refused"):
                raise Refusal(404, "unknown registration")
            return self.answer(form, {"registration": {"status": "expired" if world.free("unknown-registration-expired") else "pending"}, "success": True})
        gone = world.bug("completed-expires") and world.now() >= found.until
        if found.id is not None and not world.bug("registration-stays-pending") and not gone:
            shown = {"status": "completed", "auth_id": str(found.id) if world.bug("registration-id-text") else found.id}
        else:
            over = world.now() >= found.until and not world.bug("registration-never-expires")
            shown = {"status": "expired" if over else "pending"}
        return self.answer(form, {"registration": shown, "success": True})

    def scan(self, qr, phone, country):
        """A person scans a QR code; returns whether they are registered."""
        world = self.world
        try:
            claims = self.claims(qr)
        except (KeyError, TypeError, ValueError, binascii.Error):
            objects = {"error": {"s_code": 60000 if world.bug("failed-code-integer") else "60000"}}
            if world.bug("failed-says-registration"):
                objects["registration"] = {"s_app_id": APPLICATION["id"], "s_auth_id": 0, "s_custom_id": ""}
            self.emit("user_registration_failed", objects)
            return False
        identity = claims["context"]["custom_user_id"]
        user = self.enrol("", re.sub("[-. ]", "", phone), int(country))
        self.apps.add((user.phone, user.country))
        self.registrations[identity] = Thing(id=user.id, until=float(claims["exp"]))
        objects = {
            "registration": {
                "s_app_id": APPLICATION["id"],
                "s_auth_id": user.id,
                "s_custom_id": "" if world.bug("completed-custom-id-lost") else identity,
            },
            "user": {
                "as_auth_ids": [str(user.id)], "b_banned": False, "s_auth_id": str(user.id), "s_country_code": str(user.country), "s_errors": "",
                "s_locale": "en", "s_phone_number": hashlib.sha256(user.phone.encode()).hexdigest(),
            },
        }  # fmt: skip
        if world.bug("auth-ids-not-listed"):
            objects["user"]["as_auth_ids"] = str(user.id)
        if world.bug("webhook-phone-plain"):
            objects["user"]["s_phone_number"] = user.phone
        if world.bug("app-id-text"):
            objects["registration"]["s_app_id"] = str(APPLICATION["id"])
        if world.bug("completed-carries-error"):
            objects["error"] = {"s_code": "0"}
        if world.bug("completed-without-user"):
            del objects["user"]
        self.emit("user_registration_completed", objects)
        return True

    def claims(self, qr):
        """The claims of a valid token; `ValueError` if it is invalid."""
        world, now = self.world, self.world.now()
        head, claims, signed, signature = parts_of(qr)
        long = world.bug("token-hs512-taken") and head.get("alg") == "HS512"
        good = hmac.new(APPLICATION["key"].encode(), signed, hashlib.sha512 if long else hashlib.sha256).digest()
        issuer = claims["iss"]
        any_case = world.bug("token-iss-any-case") and str(issuer).lower() == APPLICATION["name"].lower()
        if any_case or world.bug("token-iss-prefix") and str(issuer).startswith(APPLICATION["name"]):
            claims["iss"] = APPLICATION["name"]
        unsigned = world.bug("token-alg-none") and str(head.get("alg")).lower() == "none"
        if head.get("alg") != "HS256" and not unsigned and not long or claims["iss"] != APPLICATION["name"] and not world.bug("token-iss-unchecked"):
            raise ValueError("alg or iss")
        if world.bug("token-unsigned-part"):
            good = good[: len(signature)]
        if not hmac.compare_digest(good, signature) and not unsigned and not world.bug("token-key-unchecked"):
            raise ValueError("signature")
        context = claims["context"]
        if not world.free("token-lenient") and (head.get("typ") != "JWT" or str(context["auth_app_id"]) != str(APPLICATION["id"])):
            raise ValueError("typ or application")
        issued, expires = float(claims["iat"]), float(claims["exp"])
        if expires - issued > 15 * MINUTE and not world.bug("token-hour"):
            raise ValueError("lives too long")
        if expires > now + 15 * MINUTE + 1 and not world.bug("token-future-taken") and not world.bug("token-hour"):
            raise ValueError("expires too late")
        if expires <= now and not world.bug("token-expired-taken"):
            raise ValueError("expired")
        if not context["custom_user_id"]:
            raise ValueError("whose?")
        return claims

    def emit(self, event, objects):
        world, url = self.world, self.world.callbacks.get("registration")
        if url is None or event == "user_registration_failed" and world.bug("failed-unsent"):
            return
        app = {
            "b_custom_code_allowed": False, "b_custom_message_allowed": True, "s_account_sid": world.account, "s_device_app": None,
            "s_errors": "", "s_id": str(APPLICATION["id"]), "s_name": APPLICATION["name"], "s_type": None,
        }  # fmt: skip
        told = {
            "event": event,
            "time": int(world.now()) if world.bug("completed-time-epoch") else world.stamp(world.moment()),
            "objects": {"app": app, **objects},
            "request": {"id": world.sid(""), "ip": hashlib.sha256(b"192.0.2.7").hexdigest()},
            "public": True,
        }
        told["public"] = "true" if world.bug("public-text") else True
        named = 17 if world.bug("webhook-id-integer") else "WB" + world.sid("")
        said = {"method": "POST", "url": url, "params": {"webhook_id": named, "events": told if world.bug("events-no-list") else [told]}}
        if world.bug("registration-webhook-by-get"):
            self.callbacks.call(url, "GET", {"said": json.dumps(said)}, 0)
            return
        self.callbacks.post(url, said)


def parts_of(qr):
    """Header, claims, signed part and signature of the token in a QR string."""
    scheme, _, token = qr.partition("://account?token=")
    head, claims, signature = token.split(".")
    if scheme != APPLICATION["scheme"]:
        raise ValueError("another app's")
    decode = lambda text: base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return json.loads(decode(head)), json.loads(decode(claims)), f"{head}.{claims}".encode(), decode(signature)
