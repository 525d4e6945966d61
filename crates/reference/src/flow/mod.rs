//! The flow service (D3): flows, executions and steps.
//!
//! Checks credentials and routes requests. `resources` has state and representations, `executions` creates and
//! lists executions, `hooks` has actions of people.

mod executions;
mod hooks;
mod overview;
mod resources;

use self::resources::FlowResource;
use super::credentials::{self, CredentialFaults, authenticate};
use super::{Answer, Call, Control, Core, Fault, Listing, Order, Refusal, Variant};
use crate::listing::url_of;
use conformant_base::http::Response;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Flow {
    flows: Vec<FlowResource>,
    /// SIDs of contacts by address: each person has one for all executions.
    contacts: BTreeMap<String, String>,
    /// Sequence number of listed items.
    sequence: u64,
}

impl Flow {
    /// A fresh account with one published and one draft flow.
    pub(super) fn new(core: &mut Core) -> Self {
        let mut flow = Self {
            flows: Vec::new(),
            contacts: BTreeMap::new(),
            sequence: 0,
        };
        flow.add_flow(core, "Appointment reminder");
        flow.flows[0].publish(core);
        flow.add_flow(core, "Survey");
        flow
    }

    pub(super) fn handle(&mut self, core: &mut Core, call: &Call<'_>) -> Answer {
        if let Err(refusal) = authenticate(core, call, &CREDENTIALS) {
            self.act_though_refused(core, call);
            return Err(refusal);
        }
        if core.fails(Fault::FlowPromptEndsByItself) {
            self.end_prompts(core);
        }
        let (method, path) = call.route();
        match (method, path.as_slice()) {
            ("GET", ["v1", "Flows"]) => self.read_flows(core, call),
            ("GET", ["v1", "Flows", flow]) => {
                let flow = self.flow(flow)?;
                Ok(core.ok(&flow.represent(core)))
            }
            ("DELETE", ["v1", "Flows", flow]) => self.delete_flow(core, flow),
            ("GET", ["v1", "Flows", flow, "Engagements"]) => {
                let flow = self.flow(flow)?;
                Ok(core.ok(&json!({"flow_sid": flow.sid, "engagements": []})))
            }
            ("POST", ["v1", "Flows", flow, "Executions"]) => {
                self.create_execution(core, call, flow)
            }
            ("GET", ["v1", "Flows", flow, "Executions"]) => self.read_executions(core, call, flow),
            ("GET", ["v1", "Flows", flow, "Executions", execution]) => {
                let flow = self.parent(core, flow, execution, Fault::FlowExecutionInEveryFlow);
                self.fetch_execution(core, &flow, execution)
            }
            ("GET", ["v1", "Flows", flow, "Executions", execution, "Context"]) => {
                let execution = self.flow(flow)?.execution(execution)?;
                Ok(core.ok(&json!({
                    "flow_sid": execution.flow_sid,
                    "execution_sid": execution.sid,
                    "context": execution.context(),
                })))
            }
            ("GET", ["v1", "Flows", flow, "Executions", execution, "Steps"]) => {
                let flow = self.parent(core, flow, execution, Fault::FlowStepsInEveryFlow);
                self.read_steps(core, call, &flow, execution)
            }
            ("GET", ["v1", "Flows", flow, "Executions", execution, "Steps", step]) => {
                let flow = self.flow(flow)?;
                let execution = flow.execution(execution)?;
                if let Ok(step) = flow.any_step(step)
                    && core.fails(Fault::FlowStepShownAsAsked)
                {
                    let step = step.shown_in(&execution.sid);
                    return Ok(core.ok(&step.represent(core)));
                }
                let step = match execution.step(step) {
                    Err(_) if core.fails(Fault::FlowStepInEveryExecution) => flow.any_step(step),
                    found => found,
                }?;
                let newest = execution
                    .steps
                    .last()
                    .filter(|newest| newest.sid != step.sid);
                let step = match newest {
                    Some(newest) if core.fails(Fault::FlowStepFetchNewest) => newest,
                    Some(_) if core.fails(Fault::FlowEarlierStepGone) => {
                        return Err(Refusal::not_found());
                    }
                    _ => step,
                };
                if execution.ended && core.fails(Fault::FlowStepsOfEndedGone) {
                    return Err(Refusal::not_found());
                }
                Ok(core.ok(&step.represent(core)))
            }
            (
                "GET",
                [
                    "v1",
                    "Flows",
                    flow,
                    "Executions",
                    execution,
                    "Steps",
                    step,
                    "Context",
                ],
            ) => {
                let step = self.flow(flow)?.execution(execution)?.step(step)?;
                Ok(core.ok(&json!({"step_sid": step.sid, "context": step.context})))
            }
            _ => Err(Refusal::not_found()),
        }
    }

    /// Faults: what a request without valid credentials asks for happens behind the refusal.
    fn act_though_refused(&mut self, core: &mut Core, call: &Call<'_>) {
        let (method, path) = call.route();
        match (method, path.as_slice()) {
            ("POST", ["v1", "Flows", flow, "Executions"])
                if core.fails(Fault::FlowUnauthorisedExecutionMade) =>
            {
                let _ = self.create_execution(core, call, flow);
            }
            ("DELETE", ["v1", "Flows", flow])
                if core.fails(Fault::FlowUnauthorisedDeletionDone) =>
            {
                let _ = self.delete_flow(core, flow);
            }
            _ => {}
        }
    }

    /// The flow in the path or, under the fault, that of the execution.
    fn parent(&self, core: &Core, named: &str, execution: &str, anywhere: Fault) -> String {
        let has = |flow: &&FlowResource| flow.execution(execution).is_ok();
        let is_right = self.flow(named).is_ok_and(|flow| has(&flow));
        match self.flows.iter().find(has) {
            Some(own) if !is_right && self.flow(named).is_ok() && core.fails(anywhere) => {
                own.sid.clone()
            }
            _ => named.to_owned(),
        }
    }

    fn flow(&self, sid: &str) -> Result<&FlowResource, Refusal> {
        let found = self.flows.iter().find(|flow| flow.sid == sid);
        let there = found.filter(|flow| !flow.deleted);
        there.ok_or_else(Refusal::not_found)
    }

    fn flow_mut(&mut self, sid: &str) -> Result<&mut FlowResource, Refusal> {
        let found = self.flows.iter_mut().find(|flow| flow.sid == sid);
        let there = found.filter(|flow| !flow.deleted);
        there.ok_or_else(Refusal::not_found)
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn add_flow(&mut self, core: &mut Core, friendly_name: &str) -> String {
        let sequence = self.next_sequence();
        let mut flow = FlowResource::draft(core, sequence, friendly_name);
        flow.first_sid = self.flows.first().map(|first| first.sid.clone());
        let sid = flow.sid.clone();
        self.flows.push(flow);
        sid
    }

    fn read_flows(&self, core: &Core, call: &Call<'_>) -> Answer {
        let items = self
            .flows
            .iter()
            .filter(|flow| !flow.deleted || core.fails(Fault::FlowDeletedStaysListed))
            .map(|flow| (flow.sequence, || flow.represent(core)));
        let newest_first = core.varies(Variant::FlowFlowsNewestFirst);
        let order = if newest_first {
            Order::Descending
        } else {
            Order::Ascending
        };
        let url = url(core, &[]);
        Listing::new("flows", url, order).page(core, call, items)
    }

    /// Deletes a flow with all resources below it.
    fn delete_flow(&mut self, core: &mut Core, sid: &str) -> Answer {
        let last = self.flow(sid)?.represent(core);
        for deleted in self.flows.iter_mut().filter(|flow| flow.deleted) {
            if core.fails(Fault::FlowDeletedFlowReturnsOnDeletion) {
                deleted.deleted = false;
            }
        }
        for other in self.flows.iter_mut().filter(|flow| flow.sid != sid) {
            if other.published && core.fails(Fault::FlowDeleteUnpublishesOthers) {
                other.published = false;
            }
        }
        if core.fails(Fault::FlowDeleteTakesAll) {
            self.flows.iter_mut().for_each(|flow| flow.deleted = true);
        } else if core.fails(Fault::FlowDeleteByName) {
            let name = self.flow(sid)?.friendly_name.clone();
            let named = self.flows.iter_mut().filter(|f| f.friendly_name == name);
            named.for_each(|flow| flow.deleted = true);
        } else if !core.fails(Fault::FlowDeleteDoesNothing) {
            self.flow_mut(sid)?.deleted = true;
        }
        let has_executions = |flow: &FlowResource| flow.sid != sid && !flow.executions.is_empty();
        if self.flows.iter().any(has_executions)
            && core.fails(Fault::FlowDeleteTakesExecutionsOfOthers)
        {
            self.flows
                .iter_mut()
                .for_each(|flow| flow.executions.clear());
        }
        let now = core.now;
        let others = self.flows.iter_mut().filter(|flow| flow.sid != sid);
        let others = others.flat_map(|flow| flow.executions.iter_mut());
        for execution in others.filter(|execution| !execution.ended) {
            if core.fails(Fault::FlowDeleteEndsExecutionsOfOthers) {
                execution.end(now);
            }
        }
        // D3, Endpoints: the body of this response is not shown.
        Ok(if core.varies(Variant::FlowDeleteAnswersBody) {
            core.ok(&last)
        } else if core.varies(Variant::FlowDeleteAnswers202) {
            Response::empty(202)
        } else {
            Response::empty(204)
        })
    }

    fn read_steps(&self, core: &Core, call: &Call<'_>, flow: &str, execution: &str) -> Answer {
        let flow = self.flow(flow)?;
        let execution = flow.execution(execution)?;
        let as_own = core.fails(Fault::FlowStepsShownAsAsked);
        let of_others = flow.executions.iter().filter(|other| {
            other.sid != execution.sid && (as_own || core.fails(Fault::FlowStepsOfAllListed))
        });
        let items = std::iter::once(execution)
            .chain(of_others)
            .flat_map(|execution| execution.steps.iter().enumerate())
            .filter(|(n, _)| *n < 5 || !core.fails(Fault::FlowSixthStepMissing))
            .map(|(_, step)| step)
            .filter(|_| !core.fails(Fault::FlowStepsMissing))
            .filter(|_| !(execution.ended && core.fails(Fault::FlowStepsGoWithTheEnd)))
            .map(|step| {
                (step.sequence, move || {
                    let shown = if as_own {
                        step.shown_in(&execution.sid)
                    } else {
                        step.clone()
                    };
                    shown.represent(core)
                })
            });
        let order = most_recent_first(core, Fault::FlowStepsOldestFirst);
        let url = execution.url(core) + "/Steps";
        Listing::new("steps", url, order).page(core, call, items)
    }

    /// Runs hooks of flows and executions; `None` for other hooks.
    pub(super) fn control(&mut self, core: &mut Core, hook: &str, args: &Value) -> Control {
        match hook {
            "create_flow" => Some(self.create_flow(core, args)),
            "publish_flow" => Some(self.publish_flow(core, args)),
            "end_execution" => Some(self.end_execution(core, args)),
            "advance_step" => Some(self.advance_step(core, args)),
            "start_subflow" => Some(self.start_subflow(core, args)),
            _ => None,
        }
    }
}

const CREDENTIALS: CredentialFaults = CredentialFaults {
    account_refused: Fault::FlowAccountSidRefused,
    api_key_refused: Fault::FlowApiKeyRefused,
    accepting: &[
        (Fault::FlowCredentialsNotNeeded, credentials::missing),
        (Fault::FlowPasswordNotChecked, credentials::wrong_password),
        (Fault::FlowUserNotChecked, credentials::unknown_user),
        (Fault::FlowUserAnyCase, credentials::other_case),
        (Fault::FlowPasswordPrefix, credentials::prefix),
        (Fault::FlowHalvesOfTwoPairs, credentials::halves),
        (Fault::FlowSecretOfAnyAccount, credentials::other_account),
        (Fault::FlowPasswordEmpty, credentials::empty_password),
        (Fault::FlowOtherScheme, credentials::other_scheme),
        (Fault::FlowLaterPageOpen, credentials::open_page),
        (Fault::FlowNestedReadOpen, credentials::open_nested),
        (Fault::FlowDeleteOpen, credentials::open_delete),
    ],
};

/// The URL of a flow or of a resource below it.
fn url(core: &Core, below: &[&str]) -> String {
    let path = [&["flow", "v1", "Flows"], below].concat();
    url_of(core.link_origin(), &path)
}

/// D3, Endpoints: executions and steps are listed most recent first.
fn most_recent_first(core: &Core, turned: Fault) -> Order {
    if core.fails(turned) {
        Order::Ascending
    } else {
        Order::Descending
    }
}

#[cfg(test)]
mod tests;
