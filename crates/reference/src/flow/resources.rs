//! Flow, execution and step: state and representations (D3, Resources).

use super::{Core, Fault, Refusal, Variant, url};
use conformant_base::clock::Timestamp;
use serde_json::{Map, Value, json};

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
    pub(super) fn draft(core: &mut Core, sequence: u64, friendly_name: &str) -> Self {
        Self {
            sid: core.sid("FW"),
            first_sid: None,
            sequence,
            friendly_name: friendly_name.to_owned(),
            published: false,
            // D3, Flow: default 0.
            version: 0,
            created: core.now,
            updated: None,
            deleted: false,
            executions: Vec::new(),
        }
    }

    /// Publishes the draft and increments the version.
    pub(super) fn publish(&mut self, core: &Core) {
        self.published = true;
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
            self.created = core.now;
        }
        self.updated = Some(core.now);
    }

    pub(super) fn execution(&self, sid: &str) -> Result<&Execution, Refusal> {
        let found = self
            .executions
            .iter()
            .find(|execution| execution.sid == sid);
        found.ok_or_else(Refusal::not_found)
    }

    /// A step of any of its executions.
    pub(super) fn any_step(&self, sid: &str) -> Result<&Step, Refusal> {
        let mut steps = self.executions.iter().flat_map(|one| &one.steps);
        let found = steps.find(|step| step.sid == sid);
        found.ok_or_else(Refusal::not_found)
    }

    pub(super) fn execution_mut(&mut self, sid: &str) -> Result<&mut Execution, Refusal> {
        let found = self.executions.iter_mut().find(|one| one.sid == sid);
        found.ok_or_else(Refusal::not_found)
    }

    pub(super) fn url(&self, core: &Core) -> String {
        url(core, &[&self.sid])
    }

    pub(super) fn represent(&self, core: &Core) -> Value {
        let url = self.url(core);
        let executions = match &self.first_sid {
            Some(first) if core.fails(Fault::FlowExecutionsLinkOfAnother) => {
                url.replace(&self.sid, first)
            }
            _ => url.clone(),
        };
        json!({
            "sid": self.sid,
            "account_sid": core.account_sid,
            "friendly_name": self.friendly_name,
            "status": if self.published { "published" } else { "draft" },
            "version": self.version,
            "date_created": core.date(self.created),
            "date_updated": self.updated.map(|at| core.date(at)),
            "url": url,
            "links": {
                "engagements": format!("{url}/Engagements"),
                "executions": format!("{executions}/Executions"),
            },
        })
    }
}

impl Execution {
    pub(super) fn step(&self, sid: &str) -> Result<&Step, Refusal> {
        let found = self.steps.iter().find(|step| step.sid == sid);
        found.ok_or_else(Refusal::not_found)
    }

    pub(super) fn url(&self, core: &Core) -> String {
        url(core, &[&self.flow_sid, "Executions", &self.sid])
    }

    /// The state that widgets read as variables (D3, Resources: variables available in flows).
    pub(super) fn context(&self) -> Value {
        json!({
            "contact": {"channel": {"address": self.to}},
            "flow": {"channel": {"address": self.from}, "data": self.data},
            "widgets": self.variables,
        })
    }

    fn status(&self, core: &Core) -> &'static str {
        let revived = self.fetches_when_ended > 1 && core.fails(Fault::FlowEndedBecomesActive);
        if self.ended && !revived {
            "ended"
        } else {
            "active"
        }
    }

    pub(super) fn represent(&self, core: &Core) -> Value {
        let url = self.url(core);
        json!({
            "sid": self.sid,
            "account_sid": core.account_sid,
            "flow_sid": self.flow_sid,
            "contact_sid": self.contact_sid,
            "contact_channel_address": self.to,
            "context": self.context(),
            "status": self.status(core),
            "date_created": core.date(self.created),
            "date_updated": core.date(self.updated),
            "url": url,
            "links": {
                "steps": format!("{url}/Steps"),
                "execution_context": format!("{url}/Context"),
            },
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

    pub(super) fn represent(&self, core: &Core) -> Value {
        let below = [
            &self.flow_sid,
            "Executions",
            &self.execution_sid,
            "Steps",
            &self.sid,
        ];
        let url = url(core, &below);
        json!({
            "sid": self.sid,
            "account_sid": core.account_sid,
            "flow_sid": self.flow_sid,
            "execution_sid": self.execution_sid,
            "parent_step_sid": self.parent_step_sid,
            "name": self.name,
            "context": self.context,
            "transitioned_from": self.transitioned_from,
            "transitioned_to": self.transitioned_to,
            "date_created": core.date(self.created),
            "date_updated": self.updated.map(|at| core.date(at)),
            "url": url,
            "links": {"step_context": format!("{url}/Context")},
        })
    }
}
