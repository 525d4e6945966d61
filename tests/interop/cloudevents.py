#!/usr/bin/env python3
"""Event streams that a public CloudEvents SDK writes, judged by this program.

usage: cloudevents.py BINARY        (needs the SDK: pip install cloudevents==2.*)

What the SDK writes as structured JSON, a line each and as a batch, with data as JSON and as bytes, is
judged event by event. Ends with an error at the first difference.
"""
import json
import os
import subprocess
import sys
import tempfile

# This file is named like the library that it needs.
sys.path = [folder for folder in sys.path if os.path.abspath(folder) != os.path.dirname(os.path.abspath(__file__))]
from cloudevents.core.bindings.http import to_structured_event  # noqa: E402
from cloudevents.core.v1.event import CloudEvent  # noqa: E402

SCHEMAS = "https://events.example"


def event(number, kind, schema, data, **more):
    attributes = {
        "specversion": "1.0", "id": str(number), "source": "/bulk/1", "type": f"com.svc.comms-api.{kind}",
        "dataschema": f"{SCHEMAS}/CommsApi.{schema}", "datacontenttype": "application/json", **more,
    }
    return to_structured_event(CloudEvent(attributes, data)).body.decode()


# Each with the rule that it breaks, or none.
MESSAGE = {"operation_id": "o1", "message_id": "m1", "attempt": "1", "to": {"channel": "sms"}, "tags": {"a": "b"}}
EVENTS = [
    (event(1, "operation.processing", "OperationProcessing/2", {"operation_id": "o1"}), None),
    (event(2, "message.queued", "MessageQueued/3", {**MESSAGE, "account_sid": "a"}), None),
    (event(3, "message.sent", "MessageSent/4", MESSAGE), None),
    (event(4, "message.sent", "MessageSent/4", json.dumps(MESSAGE).encode(), datacontenttype="application/octet-stream"), None),
    (event(5, "message.sent", "MessageSent/4", {**MESSAGE, "attempt": 1}), "/attempt"),
    (event(6, "message.delivered", "MessageFailed/4", MESSAGE), "/dataschema"),
    (event(7, "operation.completed", "OperationCompleted/2", MESSAGE), "/message_id"),
]


def judged(binary, name, text):
    """The record of a stream, and its findings by line."""
    with tempfile.TemporaryDirectory() as folder:
        path, report = os.path.join(folder, name), os.path.join(folder, "report.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(
            [os.path.abspath(binary), "check", path, "--as", "events", "--report", f"json={report}"],
            cwd=folder, capture_output=True, text=True, timeout=120,
        )
        with open(report, encoding="utf-8") as file:
            record = json.load(file)
    found = {}
    for finding in record["findings"]:
        found.setdefault(finding["exchange"], set()).add(finding["pointer"])
    return done.returncode, found


def main():
    binary = sys.argv[1]
    streams = {
        "events.ndjson": "\n".join(text for text, _ in EVENTS),
        "batch.json": "[" + ",".join(text for text, _ in EVENTS) + "]",
    }
    wanted = {number: pointer for number, (_, pointer) in enumerate(EVENTS, 1) if pointer}
    for name, text in streams.items():
        code, found = judged(binary, name, text)
        if code != 1 or set(found) != set(wanted) or any(p not in found[n] for n, p in wanted.items()):
            sys.exit(f"{name}: exit {code}, expected findings {wanted}, got {found}")
        flawless = [text for text, pointer in EVENTS if pointer is None]
        code, found = judged(binary, "flawless.ndjson", "\n".join(flawless))
        if code != 0 or found:
            sys.exit(f"valid events: exit {code}, {found}")
    print(f"{len(EVENTS)} events of the SDK, a line each and as a batch: judged as they should be")


if __name__ == "__main__":
    main()
