//! Flow, execution and step: state and representations (D3, Resources).

use super::{Core, Fault, Refusal, Variant, account, url_of};
use crate::garble::{Garble, garbled_within};
use conformant_base::clock::Timestamp;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Response type; without faults all have the same representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// The response to a creation.
    Created,
    /// The response to a fetch.
    Fetched,
    /// An item of a list.
    Listed,
}

/// A flow (D3, Flow).
#[derive(Clone, Debug)]
pub(super) struct FlowResource {
    pub(super) sid: String,
    /// The first flow of the account.
    pub(super) first_sid: Option<String>,
    pub(super) sequence: u64,
    pub(super) friendly_name: String,
    pub(super) published: bool,
    pub(super) version: i64,
    pub(super) created: Timestamp,
    pub(super) updated: Option<Timestamp>,
    pub(super) deleted: bool,
    pub(super) executions: Vec<Execution>,
}

/// One person's run through a flow (D3, Execution).
#[derive(Clone, Debug)]
pub(super) struct Execution {
    pub(super) sid: String,
    pub(super) flow_sid: String,
    pub(super) contact_sid: String,
    /// The first execution of the flow.
    pub(super) first_sid: Option<String>,
    pub(super) sequence: u64,
    pub(super) to: String,
    pub(super) from: String,
    /// `Parameters`, readable as `flow.data` (D3, Resources).
    pub(super) data: Value,
    /// Variables by widget.
    pub(super) variables: Map<String, Value>,
    pub(super) ended: bool,
    /// Number of fetches since its end.
    pub(super) fetches_when_ended: u32,
    pub(super) created: Timestamp,
    pub(super) updated: Timestamp,
    pub(super) steps: Vec<Step>,
}

/// The processing of one widget (D3, Step).
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) sid: String,
    pub(super) flow_sid: String,
    pub(super) execution_sid: String,
    pub(super) parent_step_sid: Option<String>,
    pub(super) sequence: u64,
    pub(super) name: String,
    pub(super) widget: String,
    pub(super) context: Value,
    pub(super) transitioned_from: Option<String>,
    pub(super) transitioned_to: Option<String>,
    pub(super) created: Timestamp,
    pub(super) updated: Option<Timestamp>,
}

impl FlowResource {
    pub(super) fn draft(
        core: &mut Core,
        sequence: u64,
        friendly_name: &str,
        now: Timestamp,
    ) -> Self {
        Self {
            sid: core.sid("FW"),
            first_sid: None,
            sequence,
            friendly_name: friendly_name.to_owned(),
            published: false,
            // D3, Flow: default 0.
            version: i64::from(core.fails(Fault::FlowVersionStartsAtOne)),
            created: now,
            updated: None,
            deleted: false,
            executions: Vec::new(),
        }
    }

    /// Publishes the draft and increments the version.
    pub(super) fn publish(&mut self, core: &Core, now: Timestamp) {
        self.published = !core.fails(Fault::FlowPublishIgnored);
        self.version += if core.fails(Fault::FlowVersionFalls) {
            -1
        } else if core.varies(Variant::FlowVersionStays) {
            0
        } else if core.varies(Variant::FlowVersionSkips) {
            10
        } else {
            1
        };
        if core.fails(Fault::FlowPublishMovesCreation) {
            self.created = now;
        }
        self.updated = Some(now);
    }

    pub(super) fn execution(&self, sid: &str) -> Result<&Execution, Refusal> {
        self.executions
            .iter()
            .find(|execution| execution.sid == sid)
            .ok_or_else(Refusal::not_found)
    }

    /// A step of any of its executions.
    pub(super) fn any_step(&self, sid: &str) -> Result<&Step, Refusal> {
        self.executions
            .iter()
            .flat_map(|execution| &execution.steps)
            .find(|step| step.sid == sid)
            .ok_or_else(Refusal::not_found)
    }

    pub(super) fn execution_mut(&mut self, sid: &str) -> Result<&mut Execution, Refusal> {
        self.executions
            .iter_mut()
            .find(|execution| execution.sid == sid)
            .ok_or_else(Refusal::not_found)
    }

    pub(super) fn url(&self, core: &Core) -> String {
        url_of(core.link_origin(), &["flow", "v1", "Flows", &self.sid])
    }

    pub(super) fn represent(&self, core: &Core, view: View) -> Value {
        let url = self.url(core);
        let differs = view == View::Listed && core.fails(Fault::FlowListedFlowDiffers);
        let mut links = json!({
            "engagements": (!core.fails(Fault::FlowEngagementsLinkNull)).then(|| format!("{url}/Engagements")),
            "executions": if core.fails(Fault::FlowExecutionsLinkWrong) {
                format!("{url}/Runs")
            } else {
                match &self.first_sid {
                    Some(first) if core.fails(Fault::FlowExecutionsLinkOfAnother) => {
                        format!("{}/Executions", url.replace(&self.sid, first))
                    }
                    _ => format!("{url}/Executions"),
                }
            },
        });
        let name = if !self.friendly_name.is_ascii() && core.fails(Fault::FlowNameMisread) {
            self.friendly_name.bytes().map(char::from).collect()
        } else {
            self.friendly_name.clone()
        };
        if core.varies(Variant::FlowNoLinks) {
            links = json!({});
        }
        if core.varies(Variant::FlowMoreLinks) {
            links["test_users"] = json!(format!("{url}/TestUsers"));
        }
        json!({
            "sid": shown_sid(core, &self.sid, view, Fault::FlowFlowSidChanges),
            "account_sid": account_sid(core, view),
            "friendly_name": if core.fails(Fault::FlowNameNull) {
                None
            } else if differs {
                Some("Untitled")
            } else {
                Some(name.as_str())
            },
            "status": if self.published || core.fails(Fault::FlowDraftShownPublished) { "published" } else { "draft" },
            "version": self.version,
            "date_created": shown_created(core, self.created, view),
            "date_updated": nullable_updated(core, self.created, self.updated),
            "url": shown_url(core, url, Fault::FlowFlowUrlWrong),
            "links": links,
        })
    }
}

impl Execution {
    pub(super) fn step(&self, sid: &str) -> Result<&Step, Refusal> {
        self.steps
            .iter()
            .find(|step| step.sid == sid)
            .ok_or_else(Refusal::not_found)
    }

    pub(super) fn url(&self, core: &Core) -> String {
        let path = [
            "flow",
            "v1",
            "Flows",
            &self.flow_sid,
            "Executions",
            &self.sid,
        ];
        url_of(core.link_origin(), &path)
    }

    /// The state that widgets read as variables (D3, Resources: variables available in flows).
    pub(super) fn context(&self, core: &Core) -> Value {
        let to = (!core.fails(Fault::FlowContextLosesTo)).then_some(&self.to);
        let is_lost = core.fails(Fault::FlowContextLosesFrom)
            || (self.from.starts_with("MG") && core.fails(Fault::FlowContextLosesService));
        let from = (!is_lost).then_some(&self.from);
        let data = if core.fails(Fault::FlowParametersLost) {
            json!({})
        } else if core.fails(Fault::FlowParametersStayText) {
            json!(self.data.to_string())
        } else {
            let mut data = self.data.clone();
            misread(core, &mut data);
            garbled_within(core, &mut data, PARAMETER_TEXTS);
            data
        };
        let mut context = json!({
            "contact": {"channel": {"address": to}},
            "flow": {"channel": {"address": from}, "data": data},
            "widgets": self.variables,
        });
        if core.varies(Variant::FlowMoreContext) {
            context["trigger"] = json!({"request": {"to": self.to, "from": self.from}});
        }
        context
    }

    fn status(&self, core: &Core) -> &'static str {
        let revived = self.fetches_when_ended > 1 && core.fails(Fault::FlowEndedBecomesActive);
        if self.ended && !revived && !core.fails(Fault::FlowExecutionNeverEnds) {
            "ended"
        } else {
            "active"
        }
    }

    pub(super) fn represent(&self, core: &Core, view: View) -> Value {
        let url = self.url(core);
        let masked = (view == View::Fetched && core.fails(Fault::FlowAddressMaskedOnFetch))
            || (view == View::Listed && core.fails(Fault::FlowListedExecutionDiffers));
        let address = if core.fails(Fault::FlowContactAddressIsFrom) {
            self.from.clone()
        } else if masked {
            "+*********".to_owned()
        } else if self.to.starts_with('+') && core.fails(Fault::FlowToWithoutPlus) {
            self.to[1..].to_owned()
        } else {
            self.to.clone()
        };
        let steps = if core.fails(Fault::FlowStepsLinkWrong) {
            format!("{url}/Widgets")
        } else if core.fails(Fault::FlowStepsLinkToExecutions) {
            let (executions, _) = url.rsplit_once('/').unwrap_or_default();
            executions.to_owned()
        } else {
            match &self.first_sid {
                Some(first) if core.fails(Fault::FlowStepsLinkOfAnother) => {
                    format!("{}/Steps", url.replace(&self.sid, first))
                }
                _ => format!("{url}/Steps"),
            }
        };
        let mut links = json!({"steps": steps});
        if !core.fails(Fault::FlowContextLinkMissing) {
            links["execution_context"] = json!(context_url(core, &url, Fault::FlowContextLinkDead));
        }
        if core.varies(Variant::FlowMoreLinks) {
            links["flow"] = json!(url_of(
                core.link_origin(),
                &["flow", "v1", "Flows", &self.flow_sid]
            ));
        }
        let updated = if core.fails(Fault::FlowUpdatedBeforeCreated) {
            self.created - Duration::from_secs(60)
        } else {
            self.updated
        };
        json!({
            "sid": shown_sid(core, &self.sid, view, Fault::FlowExecutionSidChanges),
            "account_sid": account_sid(core, view),
            "flow_sid": parent_sid(core, &self.flow_sid, Fault::FlowExecutionFlowSidWrong),
            "contact_sid": if core.varies(Variant::FlowContactPlaceholder) {
                "placeholder"
            } else if core.varies(Variant::FlowContactSidEmpty) {
                ""
            } else {
                self.contact_sid.as_str()
            },
            "contact_channel_address": address,
            "context": self.context(core),
            "status": if self.ended && view == View::Listed && core.fails(Fault::FlowListedStatusStale) {
                "active"
            } else {
                self.status(core)
            },
            "date_created": shown_created(core, self.created, view),
            "date_updated": if core.fails(Fault::FlowUpdatedNull) {
                Value::Null
            } else {
                core.date(updated)
            },
            "url": match &self.first_sid {
                Some(first) if core.fails(Fault::FlowExecutionUrlOfAnother) => url.replace(&self.sid, first),
                _ => shown_url(core, url, Fault::FlowExecutionUrlWrong),
            },
            "links": links,
        })
    }
}

impl Step {
    /// As the representation of another execution.
    pub(super) fn shown_in(&self, execution: &str) -> Self {
        Self {
            execution_sid: execution.to_owned(),
            ..self.clone()
        }
    }

    pub(super) fn represent(&self, core: &Core, view: View) -> Value {
        let execution = [
            "flow",
            "v1",
            "Flows",
            &self.flow_sid,
            "Executions",
            &self.execution_sid,
        ];
        let url = format!(
            "{}/Steps/{}",
            url_of(core.link_origin(), &execution),
            self.sid
        );
        let differs = view == View::Listed && core.fails(Fault::FlowListedStepDiffers);
        let from = self
            .transitioned_from
            .as_ref()
            .filter(|_| view == View::Fetched || !core.fails(Fault::FlowListedStepFromNowhere));
        let mut links = json!({});
        if !core.fails(Fault::FlowContextLinkMissing) {
            links["step_context"] = json!(context_url(core, &url, Fault::FlowStepContextLinkDead));
        }
        if core.varies(Variant::FlowMoreLinks) {
            links["execution"] = json!(url_of(core.link_origin(), &execution));
        }
        let created = if core.fails(Fault::FlowStepsBehind) {
            self.created - Duration::from_secs(5 * 3600)
        } else {
            self.created
        };
        json!({
            "sid": shown_sid(core, &self.sid, view, Fault::FlowStepSidChanges),
            "account_sid": account_sid(core, view),
            "flow_sid": parent_sid(core, &self.flow_sid, Fault::FlowStepFlowSidWrong),
            "execution_sid": parent_sid(core, &self.execution_sid, Fault::FlowStepExecutionSidWrong),
            "parent_step_sid": self.parent_step_sid,
            "name": if core.varies(Variant::FlowOtherEventNames) {
                "next"
            } else if differs { "unknown" } else { self.name.as_str() },
            "context": self.context,
            "transitioned_from": transition(core, from),
            "transitioned_to": transition(core, self.transitioned_to.as_ref()),
            "date_created": shown_created(core, created, view),
            "date_updated": nullable_updated(core, self.created, self.updated),
            "url": shown_url(core, url, Fault::FlowStepUrlWrong),
            "links": links,
        })
    }
}

/// Faults of strings within `Parameters`.
const PARAMETER_TEXTS: &[(Fault, Garble)] = &[
    (Fault::FlowParametersTrimmed, Garble::Trimmed),
    (Fault::FlowParametersEmojiDropped, Garble::EmojiDropped),
    (Fault::FlowParametersEscaped, Garble::Escaped),
    (Fault::FlowParametersCut, Garble::Cut255),
];

/// Members of `Parameters` named like fields of an execution.
const RESERVED: [&str; 3] = ["To", "sid", "status"];

/// Faults of other JSON types in `Parameters`.
fn misread(core: &Core, data: &mut Value) {
    let Value::Object(fields) = data else { return };
    fields.retain(|name, _| {
        !RESERVED.contains(&name.as_str()) || !core.fails(Fault::FlowParametersReserved)
    });
    fields.retain(|_, value| match value {
        Value::Null => !core.fails(Fault::FlowParametersNullsDropped),
        Value::Array(_) | Value::Object(_) => !core.fails(Fault::FlowParametersNestedDropped),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    });
    for value in fields.values_mut() {
        let changed = match &*value {
            Value::Bool(flag) if core.fails(Fault::FlowParametersFlagsAsText) => {
                json!(flag.to_string())
            }
            Value::Number(number) if core.fails(Fault::FlowParametersNumbersAsText) => {
                json!(number.to_string())
            }
            Value::Number(number)
                if number.is_f64() && core.fails(Fault::FlowParametersFractionsCut) =>
            {
                json!(number.as_f64().unwrap_or_default().trunc())
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => continue,
        };
        *value = changed;
    }
}

/// Missing previous or next widget; D3 does not define the value.
fn transition(core: &Core, widget: Option<&String>) -> Value {
    match widget {
        Some(widget) => json!(widget),
        None if core.varies(Variant::FlowEmptyTransitions) => json!(""),
        None => Value::Null,
    }
}

/// D3, Flow and Step: `date_updated` may be null.
fn nullable_updated(core: &Core, created: Timestamp, updated: Option<Timestamp>) -> Value {
    if core.varies(Variant::FlowNeverUpdated) {
        return Value::Null;
    }
    match updated {
        Some(updated) => core.date(updated),
        None if core.varies(Variant::FlowAlwaysUpdated) => core.date(created),
        None => Value::Null,
    }
}

fn shown_created(core: &Core, created: Timestamp, view: View) -> Value {
    let moved = view == View::Fetched && core.fails(Fault::FlowDateCreatedMoves);
    let created = if moved {
        created + Duration::from_secs(2)
    } else {
        created
    };
    core.creation(created, Fault::FlowCreationIsNow)
}

fn account_sid(core: &Core, view: View) -> String {
    let other = view == View::Listed && core.fails(Fault::FlowAccountSidDiffers);
    if other {
        turned(account::SID)
    } else {
        account::SID.to_owned()
    }
}

fn shown_sid(core: &Core, sid: &str, view: View, changes: Fault) -> String {
    if view == View::Fetched && core.fails(changes) {
        turned(sid)
    } else {
        sid.to_owned()
    }
}

fn parent_sid(core: &Core, sid: &str, wrong: Fault) -> String {
    if core.fails(wrong) {
        turned(sid)
    } else {
        sid.to_owned()
    }
}

/// The URL of the context.
fn context_url(core: &Core, url: &str, dead: Fault) -> String {
    let name = if core.fails(dead) { "State" } else { "Context" };
    format!("{url}/{name}")
}

fn shown_url(core: &Core, url: String, wrong: Fault) -> String {
    if core.fails(wrong) { turned(&url) } else { url }
}

/// Changes the last hexadecimal digit: well formed, but unknown.
fn turned(text: &str) -> String {
    let (head, last) = text.split_at(text.len() - 1);
    format!("{head}{}", if last == "0" { "1" } else { "0" })
}
