"""Gives Schemathesis the values of path parameters, taken from the generated data that `serve` begins with.

Usage: schemathesis.py OPENAPI WORLD SERVICE: writes a schemathesis.toml to standard output. Without it every path names
nothing, and all that is ever seen is a refusal. Nothing is sent and nothing is judged here.
"""

import json
import re
import sys
from pathlib import Path

openapi, world, service = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
# The resource type of the last name in a path, by the segment before it.
KINDS = {
    "Services": "chat/service", "Channels": "chat/channel", "Members": "chat/member", "Users": "chat/user", "Roles": "chat/role",
    "Invites": "chat/invite", "Webhooks": "chat/webhook", "Bindings": "chat/binding", "Media": "media/media", "Flows": "flow/flow",
    "Executions": "flow/execution", "Steps": "flow/step", "approval_requests": "auth/approval-request-fetch",
    "users": "auth/user-create", "{FORMAT}": "auth/user-create",
}
# Where it stands below a user instead.
BELOW_USERS = {"Channels": "chat/user-channel", "Bindings": "chat/user-binding"}


def row(kind, number):
    rows = (world / f"{kind}.ndjson").read_text("utf-8").splitlines()
    return json.loads(rows[number % len(rows)])


def parameters(path, number):
    """A value for each name of a path: those of one resource and of its parents."""
    names = re.findall(r"([^/]+)/\{(\w+)\}", path)
    names = [(before, name) for before, name in names if name != "FORMAT"]
    found = {"FORMAT": "json"} if "{FORMAT}" in path else {}
    if not names:
        return found
    before, last = names[-1]
    thing = row((BELOW_USERS.get(before) if "{UserSid}" in path else None) or KINDS[before], number)
    for _, name in names:
        own = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removeprefix("Chat")).lower()
        if name == "PUSH_UUID":
            found[name] = thing["approval_request"]["uuid"]
        elif name == "AUTH_ID":
            found[name] = str(thing["user"]["id"])
        else:
            found[name] = thing[own] if own in thing else thing["sid"]
        assert name == last or own in thing, (path, name)
    return found


document = json.loads((openapi / f"{service}.openapi.json").read_text("utf-8"))
# Each operation has a separate resource, so that one's deletion does not affect the others.
number = 0
for path, item in document["paths"].items():
    for method, operation in item.items():
        if method not in ("get", "post", "put", "delete"):
            continue
        number += 1
        print(f'[[operations]]\ninclude-operation-id = {json.dumps(operation["operationId"])}')
        print("[operations.parameters]")
        for name, value in parameters(path, number).items():
            print(f"{json.dumps('path.' + name)} = {json.dumps(value)}")
