//! A neighbour: the set-up of an operation played a second time under other names, but for what the
//! two share. What belongs to it exists, and is another's.

use super::cases::{Cases, rename, rename_text, roots};
use crate::rulebook::scenario::Step;
use crate::rulebook::{Rulebook, Service, interpolations};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// In front of the names of whatever is the neighbour's.
const THEIRS: &str = "their";
/// The flow that the configuration names, and the phone of the people that stories register; the
/// neighbour has its own of each.
const FLOW: &str = "target.flow.flow_sid";
/// That of those which may be deleted.
pub(crate) const DOOMED_FLOW: &str = "target.flow.disposable_flow_sid";
const PHONE: &str = "target.people.cellphone";
const THEIR_PHONE: &str = "target.people.second_cellphone";
/// Groups within groups.
const DEPTH_MAX: usize = 16;

/// Another thing beside the one that a happy path is about.
pub(super) struct Neighbour {
    /// How it is made.
    pub(super) steps: Vec<Step>,
    shared: BTreeSet<String>,
}

impl Neighbour {
    /// The neighbour that shares what these values name, and has everything else for itself.
    pub(super) fn sharing<'v>(
        cases: &Cases<'_>,
        values: impl IntoIterator<Item = &'v Value>,
    ) -> Self {
        let mut shared = BTreeSet::new();
        for value in values {
            shared.extend(roots(value).into_iter().filter(|root| root != "unique"));
            shared.extend(whole_names(value));
        }
        let mut neighbour = Self {
            steps: Vec::new(),
            shared,
        };
        let ours = expand(
            cases.rulebook,
            cases.service,
            &cases.happy.setup,
            &Map::new(),
            0,
        );
        let theirs: Vec<Step> = ours
            .into_iter()
            .filter(|step| {
                !step
                    .capture
                    .as_ref()
                    .is_some_and(|c| neighbour.shared.contains(c))
            })
            .map(|step| neighbour.step(step))
            .collect();
        let with = Value::Object(cases.happy.with.clone());
        let needs_a_flow = |name: &str| {
            let named = |value: &Value| whole_names(value).iter().any(|n| n == name);
            let reads = |step: &Step| step.with.values().any(named);
            !neighbour.shared.contains(name) && (named(&with) || expanded_reads(cases, &reads))
        };
        if needs_a_flow(FLOW) || needs_a_flow(DOOMED_FLOW) {
            neighbour.steps = a_flow();
        }
        neighbour.steps.extend(theirs);
        neighbour
    }

    /// The neighbour's value where ours is `value`.
    pub(super) fn value(&self, value: &Value) -> Value {
        rename(value, &|name| self.name(name))
    }

    /// The neighbour's values.
    pub(super) fn values(&self, with: &Map<String, Value>) -> Map<String, Value> {
        let values = with.iter();
        values
            .map(|(name, value)| (name.clone(), self.value(value)))
            .collect()
    }

    fn step(&self, step: Step) -> Step {
        let name = |name: &str| self.name(name);
        let text = |text: Option<String>| text.map(|text| rename_text(&text, &name));
        let until = step.until.map(|mut until| {
            until.equals = until.equals.map(|v| self.value(&v));
            until
        });
        let token = step.token.map(|mut token| {
            token.custom_user_id = text(token.custom_user_id);
            token
        });
        Step {
            with: self.values(&step.with),
            capture: step.capture.map(|capture| format!("{THEIRS}-{capture}")),
            get: text(step.get),
            setup: true,
            until,
            token,
            ..step
        }
    }

    fn name(&self, name: &str) -> Option<String> {
        let root = name.split('.').next().unwrap_or_default();
        if self.shared.contains(name) || matches!(root, "now" | "index" | "matrix" | "with") {
            return None;
        }
        match root {
            "unique" => Some(name.replacen("unique.", &format!("unique.{THEIRS}-"), 1)),
            "target" if name == PHONE => Some(THEIR_PHONE.to_owned()),
            "target" if name == FLOW || name == DOOMED_FLOW => {
                Some(format!("{THEIRS}-flow.flow_sid"))
            }
            "target" => None,
            _ if self.shared.contains(root) => None,
            _ => Some(format!("{THEIRS}-{name}")),
        }
    }
}

/// Whether any step of the set-up does so.
fn expanded_reads(cases: &Cases<'_>, reads: &dyn Fn(&Step) -> bool) -> bool {
    let steps = expand(
        cases.rulebook,
        cases.service,
        &cases.happy.setup,
        &Map::new(),
        0,
    );
    steps.iter().any(reads)
}

/// A published flow of the neighbour's.
fn a_flow() -> Vec<Step> {
    let hook = |name: &str, with: Value, capture: Option<String>| Step {
        hook: Some(name.to_owned()),
        with: with.as_object().cloned().unwrap_or_default(),
        setup: true,
        capture,
        ..Step::default()
    };
    let flow = format!("{THEIRS}-flow");
    let sid = format!("${{{flow}.flow_sid}}");
    let name = json!({"friendly_name": format!("${{unique.{flow}}}")});
    vec![
        hook("create_flow", name, Some(flow)),
        hook("publish_flow", json!({"flow_sid": sid}), None),
    ]
}

/// The names of a value's interpolations, whole: `target.flow.flow_sid`.
fn whole_names(value: &Value) -> Vec<String> {
    let text = value.to_string();
    let found = interpolations(&text).unwrap_or_default();
    found.into_iter().map(|one| one.path.join(".")).collect()
}

/// The steps with those of groups in place of their names, so that each can be renamed or left out.
pub(crate) fn expand(
    rulebook: &Rulebook,
    service: &Service,
    steps: &[Step],
    with: &Map<String, Value>,
    depth: usize,
) -> Vec<Step> {
    let mut expanded = Vec::new();
    for step in steps {
        let filled = |values: &Map<String, Value>| -> Map<String, Value> {
            let values = values.iter();
            values.map(|(k, v)| (k.clone(), fill(v, with))).collect()
        };
        let group = step.r#use.as_deref().and_then(|name| {
            let (service, name) = match name.split_once('/') {
                Some((other, name)) => (rulebook.services.get(other)?, name),
                None => (service, name),
            };
            Some((service, service.groups.get(name)?))
        });
        match group {
            Some((service, group)) if depth < DEPTH_MAX => {
                let mut inner = group.with.clone();
                inner.extend(filled(&step.with));
                let steps = expand(rulebook, service, &group.steps, &inner, depth + 1);
                expanded.extend(steps);
            }
            Some(_) | None => {
                let call = step.call.as_ref().map(|call| match call.contains('/') {
                    true => call.clone(),
                    false => format!("{}/{call}", service.name),
                });
                expanded.push(Step {
                    call,
                    with: filled(&step.with),
                    ..step.clone()
                });
            }
        }
    }
    expanded
}

/// A value with `${with.NAME}` in place.
fn fill(value: &Value, with: &Map<String, Value>) -> Value {
    if let Some(name) = value
        .as_str()
        .and_then(|text| text.strip_prefix("${with.")?.strip_suffix('}'))
        && let Some(given) = with.get(name)
    {
        return given.clone();
    }
    match value {
        Value::Object(members) => {
            let members = members.iter();
            Value::Object(members.map(|(k, v)| (k.clone(), fill(v, with))).collect())
        }
        Value::Array(items) => items.iter().map(|item| fill(item, with)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
