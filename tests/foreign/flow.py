"""The flow service: flows, executions, steps, and the actions of people."""

import datetime
import json
import re
import time
from world import Refusal, Reply, Thing

BASE = "/journeys/v1/Flows"
E164 = re.compile(r"\+[1-9][0-9]{6,14}")
STEPS = ["trigger", "ask_name", "say_thanks", "farewell"]


def spelled(value):
    """The value with each number as a text."""
    if isinstance(value, dict):
        return {name: spelled(item) for name, item in value.items()}
    if isinstance(value, list):
        return [spelled(item) for item in value]
    return json.dumps(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


class Flow:
    """State and operations; `routes` maps requests to operations."""

    def __init__(self, world):
        self.world, self.flows, self.executions = world, {}, {}

    def routes(self):
        return [
            ("GET", BASE, self.read_flows),
            ("GET", BASE + "/{}", self.fetch_flow),
            ("DELETE", BASE + "/{}", self.delete_flow),
            ("POST", BASE + "/{}/Executions", self.create_execution),
            ("GET", BASE + "/{}/Executions", self.read_executions),
            ("GET", BASE + "/{}/Executions/{}", self.fetch_execution),
            ("GET", BASE + "/{}/Executions/{}/Steps", self.read_steps),
            ("GET", BASE + "/{}/Executions/{}/Steps/{}", self.fetch_step),
            ("GET", BASE + "/{}/Executions/{}/Context", self.context),
            ("GET", BASE + "/{}/Executions/{}/Steps/{}/Context", self.context),
            ("GET", BASE + "/{}/Engagements", self.engagements),
        ]

    # Flows.
    def make_flow(self, name, status="draft", sid=None):
        flow = Thing(seq=self.world.next(), sid=sid or self.world.sid("FW"), name=name, status=status, gone=False)
        flow.version, flow.created, flow.updated = 0 if status == "draft" else 1, self.world.moment(), None
        self.flows[flow.sid] = flow
        return flow

    def flow(self, sid, creating=False):
        flow = self.flows.get(sid)
        if flow is None or flow.gone and not creating:
            raise Refusal(404, "no such flow")
        return flow

    def show_flow(self, request, flow):
        world, base = self.world, f"{BASE}/{flow.sid}"
        links = {"executions": base + "/Executions", "engagements": base + "/Engagements"}
        return {
            "sid": flow.sid,
            "account_sid": world.account_of(flow.seq),
            "friendly_name": flow.name,
            "status": flow.status.capitalize() if world.bug("flow-status-capital") else flow.status,
            "version": str(flow.version) if world.bug("version-text") else flow.version,
            "date_created": world.stamp(flow.created),
            "date_updated": world.stamp(flow.updated) or ("" if world.bug("flow-update-date-text") else None),
            "url": world.url(request, base),
            "links": {} if world.free("flow-links-none") else {key: world.url(request, path) for key, path in links.items()},
        }

    def read_flows(self, request):
        rows = [flow for flow in self.flows.values() if not flow.gone or self.world.bug("deleted-flow-listed")]
        return self.world.page(request, BASE, "flows", rows, lambda flow: self.show_flow(request, flow))

    def fetch_flow(self, request, sid):
        return Reply(self.show_flow(request, self.flow(sid)))

    def delete_flow(self, _request, sid):
        flow = self.flow(sid)
        if not self.world.bug("delete-flow-does-nothing"):
            flow.gone = True
        if self.world.bug("delete-takes-neighbour"):
            older = [other for other in self.flows.values() if other.seq < flow.seq and not other.gone and other.status == "draft"]
            if older:
                older[-1].gone = True
        return Reply({"deleted": True}) if self.world.free("deletion-with-body") else Reply(None, 204)

    def engagements(self, _request, sid):
        self.flow(sid)
        return Reply({})

    # Executions.
    def create_execution(self, request, flow_sid):
        flow, world = self.flow(flow_sid, self.world.bug("execution-in-deleted-flow")), self.world
        to, sender = request.field("To"), request.field("From")
        if not to and world.bug("to-optional"):
            to = "+15005550006"
        if not E164.fullmatch(to or ""):
            raise Refusal(400, "To is not a phone number")
        if sender and sender.startswith("MG") and world.bug("from-messaging-refused"):
            raise Refusal(400, "From is not a phone number")
        if not sender and world.bug("from-optional"):
            sender = "+15005550007"
        if not E164.fullmatch(sender or "") and not re.fullmatch("MG[0-9a-fA-F]{32}", sender or ""):
            if world.bug("refused-yet-created"):
                self.begin(flow, to, "", {})
            raise Refusal(400, "From is neither a phone number nor a messaging service")
        busy = any(run.to == to and run.active and run.flow is flow for run in self.executions.values())
        if world.free("one-execution-a-person"):
            busy = any(run.to == to and run.active for run in self.executions.values())
            if busy:
                raise Refusal(409, "in another flow")
        if world.free("one-execution-per-to") and busy:
            raise Refusal(409, "already in this flow")
        earlier = [run for run in self.executions.values() if run.flow is flow and run.to == to and not run.active]
        if earlier and world.bug("who-left-gets-the-last"):
            return Reply(self.show_execution(request, earlier[-1]))
        parameters = self.parameters(request.field("Parameters"))
        if world.free("numbers-as-texts"):
            parameters = spelled(parameters)
        if earlier and not parameters and world.bug("data-of-the-last-visit"):
            parameters = earlier[-1].context["flow"]["data"]
        run = self.begin(flow, to, sender, parameters)
        return Reply(self.show_execution(request, run), 201 if world.free("created-201") else 200)

    def parameters(self, text):
        if not text:
            return {}
        try:
            value = json.loads(text)
        except ValueError:
            if self.world.bug("parameters-any-text"):
                return {}
            raise Refusal(400, "Parameters is not JSON") from None
        if not isinstance(value, dict):
            raise Refusal(400, "Parameters is not an object")
        if self.world.bug("parameters-first-only"):
            value = dict(list(value.items())[:1])
        if self.world.bug("parameters-leak"):
            value = self.leaked = {**getattr(self, "leaked", {}), **value}
        if self.world.bug("parameters-nested-lost"):
            value = {name: item for name, item in value.items() if not isinstance(item, (dict, list))}
        if self.world.bug("parameters-null-lost"):
            value = {name: item for name, item in value.items() if item is not None}
        if self.world.bug("parameters-booleans-words"):
            value = {name: str(item).lower() if isinstance(item, bool) else item for name, item in value.items()}
        if self.world.bug("parameters-as-texts"):
            value = {name: str(item) if isinstance(item, (int, float)) else item for name, item in value.items()}
        return value

    def begin(self, flow, to, sender, parameters):
        world = self.world
        digits = 33 if world.bug("sid-31-digits") else 34
        run = Thing(seq=world.next(), sid=world.sid("FN")[:digits], flow=flow, to=to, sender=sender, active=True, steps=[])
        run.created = run.updated = world.moment()
        run.contact = "FC" + "0" * 32 if world.free("contact-placeholder") else world.sid("FC")
        seen = (sender, to) if world.bug("addresses-swapped") else (to, sender)
        run.context = {
            "contact": {"channel": {"address": seen[0]}},
            "flow": {"channel": {"address": seen[1]}, "data": parameters, "flow_sid": flow.sid},
            "widgets": {},
        }
        run.begun = time.monotonic()
        self.executions[run.sid] = run
        run.active = not world.free("executions-end-at-once")
        self.enter(run)
        return run

    def enter(self, run):
        """The person comes to the next widget."""
        at = len(run.steps)
        step = Thing(seq=self.world.next(), sid=self.world.sid("FT"), run=run, at=at, created=self.world.moment())
        step.name = "incomingRequest" if at == 0 else "incomingMessage"
        run.steps.append(step)
        if at and self.world.bug("data-lost-on-step"):
            run.context["flow"]["data"] = {}
        return step

    def execution(self, flow_sid, sid):
        flow, run = self.flow(flow_sid), self.executions.get(sid)
        if run is None or run.flow is not flow and not self.world.bug("execution-under-any-flow"):
            raise Refusal(404, "no such execution")
        if not run.active and self.world.bug("ended-not-found"):
            raise Refusal(404, "no such execution")
        return run

    def show_execution(self, request, run, listed=False):
        world, base = self.world, f"{BASE}/{run.flow.sid}/Executions/{run.sid}"
        elsewhere = base
        if world.bug("execution-url-of-another"):
            older = [other for other in self.executions.values() if other.flow is run.flow and other.seq < run.seq]
            elsewhere = base.replace(run.sid, older[-1].sid) if older else base
        ended = "finished" if world.bug("status-finished") else "ended"
        steps = base.rsplit("/", 1)[0] if world.bug("steps-link-to-executions") else base + "/Steps"
        if world.bug("steps-link-of-first"):
            steps = steps.replace(run.sid, next(other.sid for other in self.executions.values() if other.flow is run.flow))
        active = run.active or listed and world.bug("list-says-active")
        shown = {
            "sid": run.sid,
            "account_sid": world.account_of(run.seq),
            "flow_sid": run.flow.sid,
            "contact_sid": run.contact,
            "contact_channel_address": run.sender if world.bug("address-of-from") else run.to.lstrip("+") if world.bug("address-without-plus") else run.to,
            "context": None if world.bug("execution-context-null") else run.context,
            "status": "active" if active else ended,
            "date_created": world.stamp(world.moment() if world.bug("execution-created-now") else run.created),
            "date_updated": world.stamp(run.updated),
            "url": world.url(request, elsewhere),
            "links": {"steps": world.url(request, steps), "execution_context": world.url(request, base + ("/Contexts" if world.bug("context-link-dead") else "/Context"))},
        }
        if listed and world.bug("listed-without-context"):
            del shown["context"]
        return shown

    def fetch_execution(self, request, flow_sid, sid):
        return Reply(self.show_execution(request, self.execution(flow_sid, sid)))

    def read_executions(self, request, flow_sid):
        flow, world = self.flow(flow_sid), self.world
        since, until = (self.instant(request.arg(name)) for name in ("DateCreatedFrom", "DateCreatedTo"))
        if request.arg("PageSize") and world.bug("date-from-lost-beside-size"):
            since = None
        if since is not None and world.bug("date-to-lost-beside-from"):
            until = None
        rows = [run for run in self.executions.values() if run.flow is flow]
        if world.free("executions-listed-late"):
            rows = [run for run in rows if time.monotonic() - run.begun >= 8]
        if world.bug("ended-unlisted"):
            rows = [run for run in rows if run.active]
        if world.bug("date-filter-by-day"):
            since, until = (at and at // 86400 * 86400 for at in (since, until))
        if world.bug("date-filter-by-update"):
            rows = [run for run in rows if (since is None or run.updated >= since) and (until is None or run.updated < until)]
            since = until = None
        if since is not None:
            rows = [run for run in rows if run.created > since or run.created == since and not world.bug("date-from-exclusive")]
        if until is not None:
            rows = [run for run in rows if run.created < until or run.created == until and world.bug("date-to-inclusive")]
        newest = not world.bug("executions-oldest-first")
        rows.sort(key=lambda run: -run.seq if newest else run.seq)
        if world.bug("executions-sorted-by-sid"):
            rows = [Thing(**dict(run.__dict__, seq=at, run=run)) for at, run in enumerate(sorted(rows, key=lambda run: run.sid))]
            newest = False
        render = lambda run: self.show_execution(request, getattr(run, "run", run), listed=True)
        return world.page(request, f"{BASE}/{flow.sid}/Executions", "executions", rows, render, newest_first=newest)

    def instant(self, text):
        """The instant of a date filter, or `None` without one."""
        if not text:
            return None
        if self.world.bug("date-offset-ignored"):
            text = text[:19] + "-00:00"
        if self.world.bug("date-offset-sign"):
            text = text[:19] + text[19:].replace("-", "+")
        try:
            at = datetime.datetime.fromisoformat(text.replace(" ", "+"))
        except ValueError:
            raise Refusal(400, "no date-time") from None
        return (at if at.tzinfo else at.replace(tzinfo=datetime.timezone.utc)).timestamp()

    # Steps.
    def show_step(self, request, step):
        world, run = self.world, step.run
        base = f"{BASE}/{run.flow.sid}/Executions/{run.sid}/Steps/{step.sid}"
        widget = STEPS[step.at % len(STEPS)]
        first = next(other for other in self.executions.values() if other.flow is run.flow)
        before = STEPS[(step.at - 1) % len(STEPS)] if step.at else "Trigger"
        if world.free("step-ends-null"):
            before = before if step.at else None
            widget = widget if step.at + 1 < len(run.steps) else None
        return {
            "sid": step.sid,
            "account_sid": world.account_of(step.seq),
            "flow_sid": run.sid if world.bug("flow-sid-of-execution") else run.flow.sid,
            "execution_sid": first.sid if world.bug("step-of-first-execution") else run.sid,
            "parent_step_sid": None,
            "name": step.name,
            "context": run.context,
            "transitioned_from": before,
            "transitioned_to": widget,
            "date_created": world.stamp(step.created - (5 * 3600 if world.bug("step-dated-locally") else 0)),
            "date_updated": None,
            "url": world.url(request, base),
            "links": {"context" if world.bug("step-context-key") else "step_context": world.url(request, base + "/Context")},
        }

    def read_steps(self, request, flow_sid, sid):
        run, world = self.execution(flow_sid, sid), self.world
        rows = [step for step in run.steps if step.created + 1 <= world.now()] if world.free("steps-later") else run.steps
        rows = [] if world.bug("steps-of-ended-none") and not run.active else list(rows)
        if world.bug("steps-of-all"):
            rows = [step for other in self.executions.values() if other.flow is run.flow for step in other.steps]
        newest = not world.bug("steps-oldest-first")
        rows.sort(key=lambda step: -step.seq if newest else step.seq)
        path = f"{BASE}/{run.flow.sid}/Executions/{run.sid}/Steps"
        return world.page(request, path, "steps", rows, lambda step: self.show_step(request, step), newest_first=newest)

    def fetch_step(self, request, flow_sid, run_sid, sid):
        run = self.execution(flow_sid, run_sid)
        runs = self.executions.values() if self.world.bug("step-under-any-execution") else [run]
        for step in (step for other in runs for step in other.steps if step.sid == sid):
            return Reply(self.show_step(request, run.steps[-1] if self.world.bug("step-fetch-newest") else step))
        raise Refusal(404, "no such step")

    def context(self, request, flow_sid, run_sid, step_sid=None):
        run = self.execution(flow_sid, run_sid)
        if step_sid:
            self.fetch_step(request, flow_sid, run_sid, step_sid)
        return Reply({} if self.world.free("sub-resources-empty") else {"context": run.context})

    # Actions of people.
    def end(self, flow_sid, sid):
        run = self.execution(flow_sid, sid)
        every = [other for other in self.executions.values() if other.flow is run.flow]
        for ended in every if self.world.bug("end-ends-all") else [run]:
            ended.active, ended.updated = False, self.world.moment()
