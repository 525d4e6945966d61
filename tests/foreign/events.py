"""Message events of bulk sends."""

import time

PREFIX = "com.svc.comms-api."
VERSIONS = {
    "operation.processing": "OperationProcessing/2", "operation.completed": "OperationCompleted/2", "operation.scheduled": "OperationScheduled/2",
    "message.queued": "MessageQueued/3", "message.sent": "MessageSent/4", "message.failed": "MessageFailed/4",
    "message.delivered": "MessageDelivered/4", "message.undelivered": "MessageUndelivered/4", "message.read": None,
}  # fmt: skip
OUTCOMES = {"delivered": ["sent", "delivered"], "failed": ["failed"], "undelivered": ["sent", "undelivered"], "read": ["sent", "delivered", "read"]}


class Events:
    """Every send completes at once; a request for its events returns all of them."""

    def __init__(self, world, callbacks):
        self.world, self.callbacks, self.operations, self.sent_at = world, callbacks, {}, {}

    def send(self, channel, to, tags=None, scheduled=False, outcome="delivered"):
        operation = self.world.sid("OP")
        events = [self.event("operation.scheduled", {"operation_id": operation})] if scheduled else []
        events.append(self.event("operation.processing", {"operation_id": operation}))
        for at, address in enumerate(to):
            named = self.world.sid("OP") if at == 1 and self.world.bug("operation-of-another") else operation
            events += self.message(named, channel, address, tags, outcome)
        completed = {"operation_id": operation}
        if self.world.bug("completed-extra"):
            completed["messages"] = str(len(to))
        events.append(self.event("operation.completed", completed))
        if self.world.free("events-shuffled"):
            events.sort(key=lambda event: self.world.sid(""))
        self.operations[operation] = events
        self.sent_at[operation] = time.monotonic()
        url = self.world.callbacks.get("events")
        for event in events if url else []:
            self.callbacks.post(url, {"type": event["type"], "schema": event.get("schema"), "payload": event["payload"]})
        return operation

    def collected(self, operation):
        """The events of a send that can be read by now."""
        if self.world.free("events-late") and time.monotonic() - self.sent_at.get(operation, 0) < 6:
            return []
        return self.operations.get(operation, [])

    def message(self, operation, channel, address, tags, outcome):
        world, message = self.world, self.world.sid("MM")
        common = {
            "operation_id": operation,
            "message_id": message,
            "attempt": 1 if world.bug("attempt-integer") else "1",
            "downstream_id": world.sid("SM"),
            "from": {"id": world.sid("SE"), "address": "+15005550001", "channel": channel},
            "to": {"id": world.sid("RC"), "address": str(address), "channel": channel.upper() if world.bug("channel-capital") else channel},
        }
        if world.free("events-bare"):
            common = {name: common[name] for name in ("operation_id", "message_id")}
            tags = None
        if world.bug("from-to-swapped"):
            common["from"], common["to"] = common["to"], common["from"]
        if world.bug("operation-id-integer"):
            common["operation_id"] = 17
        if world.bug("to-extra"):
            common["to"]["name"] = "somebody"
        if tags:
            whole = lambda value: [value] if world.bug("tags-nested") else int(value) if world.bug("tags-integers") and value.isdigit() else value
            common["tags"] = {name: whole(str(value)) for name, value in tags.items()}
        first = dict(common, account_sid=world.account)
        if world.bug("downstream-null"):
            first["downstream_id"] = None
        told = [self.event("message.queued", first)]
        for kind in OUTCOMES[outcome]:
            payload = dict(common)
            if kind == "delivered" and world.bug("account-not-in-queued-but-delivered"):
                payload["account_sid"] = world.account
            if kind in ("failed", "undelivered"):
                payload["error_code"] = None if kind == "failed" and world.bug("error-code-null") else "30003"
            if kind == "sent" and world.bug("account-in-sent"):
                payload["account_sid"] = world.account
            if kind == "delivered" and world.bug("error-in-delivered"):
                payload["error_code"] = "0"
            told.append(self.event("message." + kind, payload))
        return told

    def event(self, kind, payload):
        version = VERSIONS[kind]
        if kind == "message.sent" and self.world.bug("schema-of-last-year"):
            version = "MessageSent/3"
        event = {"type": ("" if self.world.bug("type-without-prefix") else PREFIX) + kind, "payload": payload}
        if version:
            event["schema"] = "https://events-schemas.foreign.test/CommsApi." + version
            if self.world.bug("schema-lower"):
                event["schema"] = event["schema"].lower()
        return event
