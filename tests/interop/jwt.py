#!/usr/bin/env python3
"""Registration tokens between this program and a JWT library of another language.

usage: jwt.py BINARY        (needs PyJWT: pip install PyJWT==2.*)

Tokens that PyJWT makes are judged rightly by `conformant check`, and those of `conformant token` are
valid to PyJWT. Ends with an error at the first difference, and if nothing was compared.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

# This file is named like the library that it needs.
sys.path = [folder for folder in sys.path if os.path.abspath(folder) != os.path.dirname(os.path.abspath(__file__))]
import jwt  # noqa: E402

KEY = "interop-production-key-of-32-bytes!!"
APPLICATION = {"NAME": "Interop App", "ID": "77", "SCHEME": "interop"}


def run(binary, arguments, text=None):
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("CONFORMANT_")},
        **{f"CONFORMANT_AUTH_APPLICATION_{name}": value for name, value in APPLICATION.items()},
        "CONFORMANT_AUTH_API_KEY": KEY,
    }
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            [os.path.abspath(binary), *arguments], input=text, cwd=folder, env=environment,
            capture_output=True, text=True, timeout=120,
        )


def judged(binary, kind, text):
    """Rules that the text breaks, shortened."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        result = run(binary, ["check", "-", "--as", kind, "--report", f"json={report}"], text)
        if not os.path.exists(report):
            sys.exit(f"check --as {kind} wrote no report: exit {result.returncode}: {result.stderr}")
        with open(report, encoding="utf-8") as file:
            findings = json.load(file)["findings"]
    rules = sorted(f["rule"].removeprefix("auth/registration-") for f in findings)
    if (result.returncode != 0) != bool(rules):
        sys.exit(f"check --as {kind}: exit {result.returncode} with {rules}: {result.stderr}")
    return rules


def claims(**changes):
    now = int(time.time())
    context = {"custom_user_id": "0f8fad5b-d9cb-469f-a165-70867728950e", "auth_app_id": 77}
    return {"iss": APPLICATION["NAME"], "iat": now, "exp": now + 600, "context": context, **changes}


def token(payload, key=KEY, algorithm="HS256", **headers):
    return jwt.encode(payload, key, algorithm=algorithm, headers=headers or None)


def main(binary):
    now = int(time.time())
    other_app = {"custom_user_id": "u", "auth_app_id": "78"}
    cases = [
        ("as the document says", token(claims()), []),
        ("further claims", token(claims(jti="x", aud=["y"])), []),
        ("fractions of seconds", token(claims(iat=now + 0.5, exp=now + 600.25)), []),
        ("a key identifier", token(claims(), kid="1"), []),
        ("HS384", token(claims(), algorithm="HS384"), ["token/header/alg"]),
        ("HS512", token(claims(), algorithm="HS512"), ["token/header/alg"]),
        ("none", token(claims(), key=None, algorithm="none"), ["token/header/alg"]),
        ("another type", token(claims(), typ="at+jwt"), ["token/header/typ"]),
        ("another key", token(claims(), key="another-key-that-is-as-long-as-it"), ["token/signature"]),
        ("another issuer", token(claims(iss="Other")), ["token/issuer-is-application"]),
        ("another application", token(claims(context=other_app)), ["token/application-id"]),
        ("issued long ago", token(claims(iat=now - 1000)), ["token/lifetime"]),
        ("from the future", token(claims(iat=now + 600, exp=now + 1400)), ["token/expiry-bound"]),
        ("expired", token(claims(iat=now - 700, exp=now - 100)), ["token/not-expired"]),
        ("no issuer", token({k: v for k, v in claims().items() if k != "iss"}), ["token/claims/iss"]),
        ("truncated", token(claims())[:-9], ["token/signature"]),
    ]
    compared = 0
    for name, text, expected in cases:
        found = judged(binary, "token", text)
        if found != expected:
            sys.exit(f"{name}: expected {expected}, found {found}: {text}")
        compared += 1
    qr = f"{APPLICATION['SCHEME']}://account?token={token(claims())}"
    if judged(binary, "qr", qr):
        sys.exit(f"a QR string with a token of PyJWT is not taken: {qr}")
    for arguments, prefix in [(["token"], ""), (["token", "--qr"], f"{APPLICATION['SCHEME']}://account?token=")]:
        made = run(binary, [*arguments, "--custom-user-id", "u-1", "--expires", "15m"])
        text = made.stdout.strip()
        if made.returncode != 0 or not text.startswith(prefix):
            sys.exit(f"{arguments}: exit {made.returncode}: {made.stderr}{text}")
        required = {"require": ["iss", "iat", "exp"]}
        read = jwt.decode(text.removeprefix(prefix), KEY, algorithms=["HS256"], issuer=APPLICATION["NAME"], options=required)
        if read["context"] != {"custom_user_id": "u-1", "auth_app_id": "77"} or read["exp"] - read["iat"] != 900:
            sys.exit(f"{arguments}: PyJWT reads {read}")
        if jwt.get_unverified_header(text.removeprefix(prefix)) != {"alg": "HS256", "typ": "JWT"}:
            sys.exit(f"{arguments}: another header: {text}")
        compared += 1
    if compared != len(cases) + 2:
        sys.exit("nothing was compared")
    print(f"{compared + 1} tokens are judged alike")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
