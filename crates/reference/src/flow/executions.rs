//! Creating, fetching and listing executions (D3, Endpoints).

use super::resources::Execution;
use super::{Answer, Call, Core, Fault, Flow, Listing, Refusal, Variant, most_recent_first};
use conformant_base::clock::Timestamp;
use conformant_base::http::Response;
use conformant_base::ids;
use serde_json::{Map, Value, json};
use std::time::Duration;

impl Flow {
    /// D3, States: an accepted create makes an active execution.
    pub(super) fn create_execution(
        &mut self,
        core: &mut Core,
        call: &Call<'_>,
        flow_sid: &str,
    ) -> Answer {
        let is_there = self.flow(flow_sid).is_ok();
        let was_there = core.read_or_stale(Fault::FlowRaceDelete, || is_there);
        if was_there && let Some(flow) = self.flows.iter_mut().find(|flow| flow.sid == flow_sid) {
            flow.deleted = false;
        }
        let mut flows = self.flows.iter_mut();
        if let Some(deleted) = flows.find(|flow| flow.sid == flow_sid && flow.deleted)
            && core.fails(Fault::FlowDeletedFlowRuns)
        {
            deleted.deleted = false;
        }
        let flow = self.flow(flow_sid)?;
        if !flow.published && core.varies(Variant::FlowDraftRefusesExecutions) {
            return Err(Refusal::conflict("the flow is not published"));
        }
        let flow_sid = flow.sid.clone();
        let count = flow.executions.len();
        let to = to_address(call)?;
        let from = from_address(call)?;
        let data = self.data(core, call, &flow_sid);
        if data.is_err() {
            self.end_though_refused(core, &flow_sid);
        }
        let (mut data, refusal) = data?;
        self.enter_again(core, &flow_sid, &to)?;
        if let Some(ended) = self.come_back(core, call, &flow_sid, &to, &mut data)? {
            return Ok(ended);
        }
        let raced = |fault| core.read_or_stale(fault, || count) < count;
        let (shares_context, shares_sid) =
            (raced(Fault::FlowRaceContext), raced(Fault::FlowRaceSid));
        let last = self.flow(&flow_sid)?.executions.last();
        if let Some(last) = last.filter(|_| shares_context) {
            data.clone_from(&last.data);
        }
        let raced_sid = last.filter(|_| shares_sid);
        let reused = match raced_sid {
            None if core.fails(Fault::FlowExecutionSidReused) => self.any_execution(),
            raced => raced,
        };
        let reused = reused.map(|earlier| earlier.sid.clone());
        let is_late = raced(Fault::FlowRaceOrder);
        let kept = core.read_or_stale(Fault::FlowRaceList, || count);
        let sid = reused.unwrap_or_else(|| core.sid("FN"));
        let contact_sid = self
            .contacts
            .entry(to.clone())
            .or_insert_with(|| core.sid("FC"))
            .clone();
        let sequence = self.execution_sequence(core);
        let mut execution = Execution {
            sid,
            flow_sid: flow_sid.clone(),
            contact_sid,
            sequence,
            to,
            from,
            data,
            variables: Map::new(),
            ended: false,
            fetches_when_ended: 0,
            created: core.now - Duration::from_secs(u64::from(is_late)),
            updated: core.now,
            steps: Vec::new(),
        };
        self.first_steps(core, &mut execution);
        let answer = core.created(&execution.represent(core));
        if core.varies(Variant::FlowExecutionEndsAtOnce) {
            execution.end(core.now);
        }
        if !core.fails(Fault::FlowExecutionNotStored) {
            let flow = self.flow_mut(&flow_sid)?;
            flow.executions.truncate(kept);
            if core.fails(Fault::FlowEndedReturnsWithAnother) {
                let ended = flow.executions.iter_mut();
                let others = ended.filter(|other| other.to != execution.to);
                others.for_each(|other| other.ended = false);
            }
            if core.fails(Fault::FlowExecutionMadeTwice) {
                let sid = core.sid("FN");
                let mut twin = execution.clone();
                twin.sid = sid;
                flow.executions.push(twin);
            }
            flow.executions.push(execution);
            if core.varies(Variant::FlowUpdatedByExecution) {
                flow.updated = Some(core.now);
            }
        }
        refusal.map_or(Ok(answer), Err)
    }

    pub(super) fn fetch_execution(&mut self, core: &Core, flow: &str, sid: &str) -> Answer {
        // D3 does not say what becomes of the executions of a deleted flow.
        let outlives = core.varies(Variant::FlowDeleteKeepsExecutions);
        let execution = self
            .flows
            .iter_mut()
            .find(|known| known.sid == flow && (!known.deleted || outlives))
            .ok_or_else(Refusal::not_found)?
            .execution_mut(sid)?;
        if execution.ended {
            execution.fetches_when_ended += 1;
        }
        Ok(core.ok(&execution.represent(core)))
    }

    pub(super) fn read_executions(&self, core: &Core, call: &Call<'_>, flow: &str) -> Answer {
        let flow = self.flow(flow)?;
        let window = Window::parse(core, call)?;
        let newest = flow.executions.last().map(|execution| &execution.sid);
        let items = self
            .flows
            .iter()
            .filter(|other| other.sid == flow.sid || core.fails(Fault::FlowExecutionsOfAllListed))
            .flat_map(|flow| &flow.executions)
            .filter(|execution| {
                let is_later = call.query.has("PageToken") && !window.given.is_empty();
                let is_filtered = !window.given.is_empty();
                let at = match execution.updated {
                    updated
                        if is_filtered
                            && updated != execution.created
                            && core.fails(Fault::FlowFilterByUpdate) =>
                    {
                        updated
                    }
                    _ => execution.created,
                };
                window.holds(core, at)
                    || (is_later && core.fails(Fault::FlowFirstPageFiltered))
                    || (execution.ended && core.fails(Fault::FlowEndedNotFiltered))
            })
            .filter(|execution| !(execution.ended && core.fails(Fault::FlowEndedNotListed)))
            .filter(|execution| {
                let is_filtered = !window.given.is_empty();
                !(is_filtered && execution.ended && core.fails(Fault::FlowEndedNotInWindow))
            })
            // D3 does not say how soon a list shows what was created.
            .filter(|execution| {
                let age = core.now.duration_since(execution.created).as_secs();
                (age >= 1 || !core.varies(Variant::FlowListsLag))
                    && (age >= 5 || !core.varies(Variant::FlowListsLagLonger))
                    && (age >= 9 || !core.varies(Variant::FlowListsLagMost))
            })
            .filter(|execution| {
                Some(&execution.sid) != newest || !core.fails(Fault::FlowNewestNotListed)
            })
            .map(|execution| {
                let is_first = !execution.ended
                    && flow.executions.iter().any(|other| other.ended)
                    && core.fails(Fault::FlowActiveListedFirst);
                let ahead = if is_first { 1 << 60 } else { 0 };
                (execution.sequence + ahead, move || {
                    execution.represent(core)
                })
            });
        let order = most_recent_first(core, Fault::FlowExecutionsOldestFirst);
        let listing = Listing {
            filters: window.given.clone(),
            ..Listing::new("executions", flow.url(core) + "/Executions", order)
        };
        listing.page(core, call, items)
    }

    /// Initial data of an execution, and the refusal that a fault ignores.
    fn data(
        &self,
        core: &Core,
        call: &Call<'_>,
        flow_sid: &str,
    ) -> Result<(Value, Option<Refusal>), Refusal> {
        let (mut data, refusal) = match parameters(core, call) {
            Ok(data) => (data, None),
            Err(refusal) if core.fails(Fault::FlowRefusedExecutionStays) => {
                (json!({}), Some(refusal))
            }
            Err(refusal) => return Err(refusal),
        };
        if let Some(first) = self.flow(flow_sid)?.executions.first()
            && first.data != data
            && core.fails(Fault::FlowSecondParametersLost)
        {
            data.clone_from(&first.data);
        }
        if self.flow(flow_sid)?.executions.len() > 3 && core.fails(Fault::FlowFifthParametersLost) {
            data = json!({});
        }
        if let Some(members) = data.as_object_mut()
            && members.len() > 8
            && core.fails(Fault::FlowLaterParametersCut)
        {
            *members = std::mem::take(members).into_iter().take(8).collect();
        }
        let to = call.form.get("To");
        let others = self.flows.iter().filter(|other| other.sid != flow_sid);
        let mut of_person = others
            .flat_map(|other| &other.executions)
            .filter(|other| to.is_some_and(|to| to == other.to));
        if call.form.get("Parameters").is_none()
            && let Some(other) = of_person.next_back()
            && core.fails(Fault::FlowDataOfOtherFlow)
        {
            data.clone_from(&other.data);
        }
        if let Some(last) = self.flow(flow_sid)?.executions.last()
            && core.fails(Fault::FlowParametersLeak)
            && let (Some(own), Some(earlier)) = (data.as_object_mut(), last.data.as_object())
        {
            own.extend(earlier.clone());
        }
        Ok((data, refusal))
    }

    /// Fault: a refused creation ends the active executions of the flow.
    fn end_though_refused(&mut self, core: &Core, flow_sid: &str) {
        let flow = self.flows.iter_mut().find(|flow| flow.sid == flow_sid);
        let executions = flow.into_iter().flat_map(|flow| flow.executions.iter_mut());
        for execution in executions.filter(|execution| !execution.ended) {
            if core.fails(Fault::FlowRefusedExecutionEndsActive) {
                execution.end(core.now);
            }
        }
    }

    /// A person who left a flow can enter it again, except under faults.
    fn come_back(
        &mut self,
        core: &Core,
        call: &Call<'_>,
        flow_sid: &str,
        to: &str,
        data: &mut Value,
    ) -> Result<Option<Response>, Refusal> {
        let mut earlier = self.flow_mut(flow_sid)?.executions.iter_mut().rev();
        let Some(last) = earlier.find(|earlier| earlier.to == to) else {
            return Ok(None);
        };
        if call.form.get("Parameters").is_none() && core.fails(Fault::FlowParametersOfLastTime) {
            data.clone_from(&last.data);
        }
        if !last.ended {
            return Ok(None);
        }
        if core.fails(Fault::FlowWhoLeftRefused) {
            return Err(Refusal::conflict("the person has left the flow"));
        }
        if core.fails(Fault::FlowReentryRevives) {
            last.ended = false;
        }
        let comes_back = core.fails(Fault::FlowEndedComesBack);
        Ok(comes_back.then(|| core.created(&last.represent(core))))
    }

    /// D3 does not define a second execution of the same person.
    fn enter_again(&mut self, core: &Core, flow_sid: &str, to: &str) -> Result<(), Refusal> {
        let flows = self.flows.iter().filter(|flow| !flow.deleted);
        let mut all = flows.flat_map(|flow| &flow.executions);
        if all.any(|e| !e.ended && e.to == to) && core.varies(Variant::FlowOnePerPerson) {
            return Err(Refusal::conflict("the person is in a flow already"));
        }
        let flow = self.flow_mut(flow_sid)?;
        let active = flow
            .executions
            .iter_mut()
            .filter(|e| !e.ended && e.to == to);
        for execution in active {
            if core.varies(Variant::FlowSecondExecutionRefused) {
                return Err(Refusal::conflict("the person is in the flow already"));
            }
            if core.varies(Variant::FlowSecondExecutionEndsFirst) {
                execution.end(core.now);
            }
        }
        Ok(())
    }

    fn any_execution(&self) -> Option<&Execution> {
        self.flows.iter().flat_map(|flow| &flow.executions).next()
    }

    /// Later executions have greater numbers. D3 does not define the order within one second: a variant puts the
    /// older one first.
    fn execution_sequence(&mut self, core: &Core) -> u64 {
        const PER_SECOND: u64 = 1 << 24;
        let sequence = self.next_sequence() % PER_SECOND;
        if !core.varies(Variant::FlowTiesOldestFirst) {
            return self.sequence;
        }
        let second = u64::try_from(core.now.as_second()).unwrap_or_default();
        second * PER_SECOND + (PER_SECOND - 1 - sequence)
    }
}

impl Execution {
    /// The person stops or is removed, which ends the running step.
    pub(super) fn end(&mut self, now: Timestamp) {
        self.ended = true;
        self.updated = now;
        if let Some(step) = self.steps.last_mut() {
            step.updated.get_or_insert(now);
        }
    }
}

/// `To`: a phone number, or one of two other forms of an address (D3, Execution).
fn to_address(call: &Call<'_>) -> Result<String, Refusal> {
    match call.form.get("To").filter(|to| !to.is_empty()) {
        Some(to) if is_phone(to) || is_sip(to) || is_client(to) => Ok(to.to_owned()),
        Some(_) => Err(Refusal::bad_parameter("To", "not an address")),
        None => Err(Refusal::bad_parameter("To", "is required")),
    }
}

/// `From`: a phone number or, for SMS, a messaging service (D3, Endpoints).
fn from_address(call: &Call<'_>) -> Result<String, Refusal> {
    match call.form.get("From").filter(|from| !from.is_empty()) {
        Some(from) if is_phone(from) || ids::is_sid(from, "MG") => Ok(from.to_owned()),
        Some(_) => Err(Refusal::bad_parameter("From", "not an address")),
        None => Err(Refusal::bad_parameter("From", "is required")),
    }
}

/// `Parameters`: JSON in a string; members become `flow.data.<name>`. Whether other JSON is accepted is
/// undefined.
fn parameters(core: &Core, call: &Call<'_>) -> Result<Value, Refusal> {
    let Some(text) = call.form.get("Parameters") else {
        return Ok(json!({}));
    };
    match serde_json::from_str::<Value>(text) {
        Ok(data) if data.is_object() || !core.varies(Variant::FlowParametersObjectsOnly) => {
            Ok(data)
        }
        _ if core.fails(Fault::FlowParametersNotParsed) => Ok(json!(text)),
        _ => Err(Refusal::bad_parameter("Parameters", "not JSON")),
    }
}

/// E.164: a plus sign and up to fifteen digits, the first not zero.
fn is_phone(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|digits| {
        (2..=15).contains(&digits.len())
            && !digits.starts_with('0')
            && digits.bytes().all(|b| b.is_ascii_digit())
    })
}

/// `name@company`.
fn is_sip(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, company)| {
        !name.is_empty() && !company.is_empty() && !text.contains(char::is_whitespace)
    })
}

/// `client:name`.
fn is_client(text: &str) -> bool {
    text.strip_prefix("client:")
        .is_some_and(|name| !name.is_empty())
}

/// Filter by creation: `from` inclusive, `to` exclusive.
struct Window {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    /// The original parameters, for page links.
    given: Vec<(String, String)>,
}

impl Window {
    fn parse(core: &Core, call: &Call<'_>) -> Result<Self, Refusal> {
        let mut given = Vec::new();
        let mut bound = |name: &str| -> Result<Option<Timestamp>, Refusal> {
            let Some(text) = call.query.get(name) else {
                return Ok(None);
            };
            given.push((name.to_owned(), text.to_owned()));
            let text = match text.get(..19) {
                Some(local) if core.fails(Fault::FlowFilterOffsetIgnored) => format!("{local}Z"),
                _ => text.to_owned(),
            };
            let instant = text
                .parse()
                .map_err(|_| Refusal::bad_parameter(name, "not a date-time with an offset"))?;
            Ok(Some(instant))
        };
        let from: Option<Timestamp> = bound("DateCreatedFrom")?;
        let to = bound("DateCreatedTo")?;
        let is_far = |from: Timestamp| from > core.now + Duration::from_secs(7200);
        if from.is_some_and(is_far) && core.fails(Fault::FlowFutureFilterRefused) {
            return Err(Refusal::bad_parameter("DateCreatedFrom", "not yet"));
        }
        Ok(Self { from, to, given })
    }

    fn holds(&self, core: &Core, created: Timestamp) -> bool {
        // Representations have whole seconds, so limits are compared in whole seconds.
        let created = Timestamp::from_second(created.as_second()).unwrap_or(created);
        let on_or_after = self.from.is_none_or(|from| {
            core.fails(Fault::FlowFromFilterIgnored)
                || created > from
                || (created == from && !core.fails(Fault::FlowFromFilterExclusive))
        });
        let before = self.to.is_none_or(|to| {
            core.fails(Fault::FlowToFilterIgnored)
                || created < to
                || (created == to && core.fails(Fault::FlowToFilterInclusive))
        });
        if let (Some(from), Some(to)) = (self.from, self.to)
            && to <= from
            && core.fails(Fault::FlowInvertedSpanIgnored)
        {
            return true;
        }
        if self.from.is_some() && self.to.is_some() && core.fails(Fault::FlowFiltersNotCombined) {
            return on_or_after || before;
        }
        on_or_after && before
    }
}
