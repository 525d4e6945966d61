"""Starts the third-party implementation for a trial and writes its configuration."""

import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
HOOKS = {
    "create_flow": "draw_flow",
    "publish_flow": "release_flow",
    "end_execution": "hang_up",
    "advance_step": "reply",
    "configure_service": "console",
    "register_binding": "subscribe",
    "set_online": "connect",
    "join_channel": "enter_room",
    "leave_channel": "leave_room",
    "approve_request": "say_yes",
    "deny_request": "say_no",
    "announce_registration": "show_code",
    "scan_registration": "scan_code",
    "install_app": "get_app",
    "set_callback": "listen",
    "send_bulk_message": "blast",
    "collect_events": "happened",
    "advance_clock": "wait_for",
    "lease": "reserve",
    "call_back": "ring",
}
# Pointers to the results of hooks in a bench with different names.
RESULTS = {
    "create_flow": "flow_sid",
    "advance_step": "step_sid",
    "register_binding": "binding_sid",
    "scan_registration": "registered",
    "send_bulk_message": "operation_id",
    "collect_events": "events",
    "advance_clock": "now",
    "lease": "granted",
}
ENVIRONMENT = {"FOREIGN_SECRET": "secret", "FOREIGN_TOKEN": "account_token", "FOREIGN_IDENTITY_KEY": "auth_key"}


CERTIFIED = """
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=private-authority
openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=foreign
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out server.pem -extfile names
openssl req -newkey rsa:2048 -nodes -keyout client.key -out client.csr -subj /CN=harness
openssl x509 -req -in client.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out client.pem -extfile harness
"""


def certify(folder):
    """A private authority with certificates for the target as 127.0.0.1 and for the harness."""
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    # Without extensions some versions of openssl write certificates of version 1, which are rejected.
    (folder / "harness").write_text("extendedKeyUsage=clientAuth\n")
    for line in CERTIFIED.strip().splitlines():
        subprocess.run(line.split(), cwd=folder, capture_output=True, check=True)
    return folder


class Target:
    """A running third-party implementation; a context manager."""

    def __init__(self, allowed=(), defects=(), tls=None, bearer=False, more=()):
        words = [sys.executable, "-B", str(HERE / "serve.py")]
        self.tls, self.bearer = tls, bearer
        if tls:
            words += ["--tls", str(tls / "server.pem"), str(tls / "server.key"), "--client-ca", str(tls / "ca.pem")]
        words += more
        words += [word for name in allowed for word in ("--variation", name)]
        words += [word for name in defects for word in ("--defect", name)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the third-party implementation did not start")
        self.facts = json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def environment(self):
        """The secrets that the configuration reads."""
        secrets = {name: self.facts[key] for name, key in ENVIRONMENT.items()}
        return dict(os.environ, FOREIGN_APPLICATION_KEY=self.facts["application"]["key"], **secrets)

    def configuration(self):
        """The contents of conformant.yaml, as JSON."""
        facts, free = self.facts, set(self.facts["variations"])
        basic = {
            "username": facts["key"],
            "password": "${FOREIGN_SECRET}",
            "account_sid": facts["account"],
            "auth_token": "${FOREIGN_TOKEN}",
        }
        more = {}
        if self.bearer:
            keys = [str(self.tls / name) for name in ("ca.pem", "client.pem", "client.key")] if self.tls else []
            basic = {"credentials": {"command": [sys.executable, "-B", str(HERE / "bearer.py"), facts["url"] + "/token", *keys]}}
        if self.tls:
            more["tls"] = {"ca": str(self.tls / "ca.pem")}
            more["tls"].update(client_certificate=str(self.tls / "client.pem"), client_key=str(self.tls / "client.key"))
        messaging = {"message_service_sid": "MG" + "77" * 16}
        application = {key: facts["application"][key] for key in ("name", "scheme")}
        application.update(id=str(facts["application"]["id"]), api_key="${FOREIGN_APPLICATION_KEY}")
        status = "/protected/users/{AUTH_ID}/status" if "status-path-without-format" in free else "/protected/{FORMAT}/users/{AUTH_ID}/status"
        below = lambda path: {"url": facts["url"] + path, "public_url": facts["public_url"] + path}
        targets = {
            "auth": {
                "url": facts["url"] + "/identity",
                "headers": {facts["auth_header"]: "${FOREIGN_IDENTITY_KEY}"},
                "format": "both",
                "application": application,
                "user_status_path": status,
            },
            "chat": {**below("/talk"), **basic, **messaging},
            "media": {**below("/files"), **basic, "content_origins": [facts["public_url"]]},
            "flow": {
                **below("/journeys"),
                **basic,
                **messaging,
                # The hook that creates flows provides one for each scenario; with variations all share one.
                **({"flow_sid": facts["flow_sid"]} if free else {}),
                "to": "+12025550155",
                "from": "+12025550111",
            },
        }
        hooks = {}
        for name, own in HOOKS.items():
            hooks[name] = {"http": {"url": f"{facts['url']}/bench/{own}"}}
            if "hook-results-wrapped" in free and name in RESULTS:
                hooks[name]["result"] = {RESULTS[name]: "/data/id"}
        return {"targets": targets, "hooks": hooks, **more}


def judged(binary, target, folder, *flags, timeout=600):
    """Runs `conformant run` against a target: exit code, record and what it printed."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "conformant.yaml"
    config.write_text(json.dumps(target.configuration(), indent=1))
    report = folder / "run.json"
    report.unlink(missing_ok=True)
    words = [binary, "run", "--config", str(config), "--report", f"json={report}", *flags]
    done = subprocess.run(words, env=target.environment(), cwd=folder, capture_output=True, text=True, timeout=timeout, check=False)
    record = json.loads(report.read_text()) if report.exists() else None
    return done.returncode, record, done.stdout + done.stderr


def broken(record):
    """Ids of the rules that failed at level must."""
    return sorted(rule["id"] for rule in record["rules"] if rule["verdict"] == "fail" and rule["level"] == "must") if record else []
