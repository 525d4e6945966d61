//! Overview of flows for the page.

use super::Flow;
use crate::overview::newest;
use conformant_base::clock;
use serde_json::{Value, json};

impl Flow {
    pub(crate) fn overview(&self) -> Value {
        let flows: Vec<_> = self.flows.iter().filter(|flow| !flow.deleted).collect();
        newest(flows.into_iter(), |flow| {
            json!({
                "sid": flow.sid,
                "name": flow.friendly_name,
                "state": if flow.published { "published" } else { "draft" },
                "executions": newest(flow.executions.iter(), |execution| json!({
                    "sid": execution.sid,
                    "to": execution.to,
                    "state": if execution.ended { "ended" } else { "active" },
                    "widget": execution.steps.last().map(|step| &step.widget),
                    "steps": execution.steps.len(),
                    "at": clock::iso_seconds(execution.created),
                })),
            })
        })
    }
}
