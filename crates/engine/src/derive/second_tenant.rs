//! Second tenant: the set-up of an operation repeated with other names, except for what both tenants share.
//!
//! Its resources exist and belong to another.

use super::cases::{Cases, rename, rename_all, rename_text, roots};
use super::notifications::steps;
use conformant_rulebook::step::{Step, Verb};
use conformant_rulebook::{Rulebook, Service, interpolations};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Prefix of the second tenant's names.
const FOREIGN_PREFIX: &str = "their";
/// The configured flow and the phone of registered people. The second tenant has its own.
const FLOW: &str = "target.flow.flow_sid";
/// The configured flow that may be deleted.
pub const DISPOSABLE_FLOW: &str = "target.flow.disposable_flow_sid";
const PHONE: &str = "target.people.cellphone";
const FOREIGN_PHONE: &str = "target.people.second_cellphone";
/// Maximum nesting of groups.
const DEPTH_MAX: usize = 16;

/// A sibling of the resource of a happy path.
pub(super) struct SecondTenant {
    /// The steps that create it.
    pub(super) steps: Vec<Step>,
    shared: BTreeSet<String>,
}

impl SecondTenant {
    /// The second tenant that shares the resources that these values identify.
    pub(super) fn sharing<'v>(
        cases: &Cases<'_>,
        values: impl IntoIterator<Item = &'v Value>,
    ) -> Self {
        let mut shared = BTreeSet::new();
        for value in values {
            shared.extend(roots(value).into_iter().filter(|root| root != "unique"));
            shared.extend(whole_names(value));
        }
        let mut second_tenant = Self {
            steps: Vec::new(),
            shared,
        };
        let ours = cases.expanded_setup();
        let foreign: Vec<Step> = ours
            .iter()
            .filter(|step| {
                !step
                    .capture()
                    .is_some_and(|c| second_tenant.shared.contains(c))
            })
            .map(|step| second_tenant.step(step.clone()))
            .collect();
        let with = Value::Object(cases.happy.with.clone());
        let needs_a_flow = |name: &str| {
            let named = |value: &Value| whole_names(value).iter().any(|n| n == name);
            let is_read = named(&with) || ours.iter().flat_map(Step::values).any(named);
            !second_tenant.shared.contains(name) && is_read
        };
        if needs_a_flow(FLOW) || needs_a_flow(DISPOSABLE_FLOW) {
            second_tenant.steps = a_flow();
        }
        second_tenant.steps.extend(foreign);
        second_tenant
    }

    /// The second tenant's counterpart of a value.
    pub(super) fn value(&self, value: &Value) -> Value {
        rename(value, &|name| self.name(name))
    }

    /// The second tenant's counterparts of all values.
    pub(super) fn values(&self, with: &Map<String, Value>) -> Map<String, Value> {
        rename_all(with, &|name| self.name(name))
    }

    fn step(&self, step: Step) -> Step {
        let mut step = step.of_setup();
        let text = |text: &mut String| *text = rename_text(text, &|name| self.name(name));
        if let Some(with) = step.with_mut() {
            *with = self.values(with);
        }
        if let Some(capture) = step.capture_mut().and_then(Option::as_mut) {
            *capture = format!("{FOREIGN_PREFIX}-{capture}");
        }
        if let Verb::Get(get) = &mut step.verb {
            text(&mut get.get);
        } else if let Verb::Token(token) = &mut step.verb {
            token.token.custom_user_id.as_mut().map(text);
        } else if let Verb::Call(call) = &mut step.verb {
            let until = call.until.as_mut().and_then(|until| until.equals.as_mut());
            if let Some(awaited) = until {
                *awaited = self.value(awaited);
            }
        }
        step
    }

    fn name(&self, name: &str) -> Option<String> {
        let root = name.split('.').next().unwrap_or_default();
        if self.shared.contains(name) || matches!(root, "now" | "index" | "matrix" | "with") {
            return None;
        }
        match root {
            "unique" => Some(name.replacen("unique.", &format!("unique.{FOREIGN_PREFIX}-"), 1)),
            "target" if name == PHONE => Some(FOREIGN_PHONE.to_owned()),
            "target" if name == FLOW || name == DISPOSABLE_FLOW => {
                Some(format!("{FOREIGN_PREFIX}-flow.flow_sid"))
            }
            "target" => None,
            _ if self.shared.contains(root) => None,
            _ => Some(format!("{FOREIGN_PREFIX}-{name}")),
        }
    }
}

/// A published flow of the second tenant.
fn a_flow() -> Vec<Step> {
    let flow = format!("{FOREIGN_PREFIX}-flow");
    let (sid, name) = (
        format!("${{{flow}.flow_sid}}"),
        format!("${{unique.{flow}}}"),
    );
    steps(json!([
        {"hook": "create_flow", "with": {"friendly_name": name}, "capture": flow, "setup": true},
        {"hook": "publish_flow", "with": {"flow_sid": sid}, "setup": true},
    ]))
}

/// The full names of a value's interpolations, such as `target.flow.flow_sid`.
fn whole_names(value: &Value) -> Vec<String> {
    let text = value.to_string();
    let found = interpolations(&text).unwrap_or_default();
    found.into_iter().map(|one| one.path.join(".")).collect()
}

/// Replaces groups by their steps, so that each step can be renamed or left out.
pub fn expand(
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
        let group = step.group().and_then(|g| rulebook.group(service, &g.r#use));
        match group {
            Some((service, group)) if depth < DEPTH_MAX => {
                let mut inner = group.with.clone();
                inner.extend(step.with().map(filled).unwrap_or_default());
                let steps = expand(rulebook, service, &group.steps, &inner, depth + 1);
                expanded.extend(steps);
            }
            Some(_) | None => {
                let mut step = step.clone();
                if let Some(with) = step.with_mut() {
                    *with = filled(with);
                }
                if let Verb::Call(call) = &mut step.verb
                    && !call.call.contains('/')
                {
                    call.call = format!("{}/{}", service.name, call.call);
                }
                expanded.push(step);
            }
        }
    }
    expanded
}

/// Fills in `${with.NAME}`.
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
