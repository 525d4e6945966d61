//! A neighbour: the set-up of an operation played a second time under other names, but for what the
//! two share. What belongs to it exists, and is another's.

use super::cases::{Cases, rename, rename_text, roots};
use conformant_rulebook::step::{Hook, Step, Verb};
use conformant_rulebook::{Rulebook, Service, interpolations};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// In front of the names of whatever is the neighbour's.
const THEIRS: &str = "their";
/// The flow that the configuration names, and the phone of the people that stories register; the
/// neighbour has its own of each.
const FLOW: &str = "target.flow.flow_sid";
/// That of those which may be deleted.
pub const DOOMED_FLOW: &str = "target.flow.disposable_flow_sid";
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
            .filter(|step| !step.capture().is_some_and(|c| neighbour.shared.contains(c)))
            .map(|step| neighbour.step(step))
            .collect();
        let with = Value::Object(cases.happy.with.clone());
        let needs_a_flow = |name: &str| {
            let named = |value: &Value| whole_names(value).iter().any(|n| n == name);
            let reads = |step: &Step| step.values().any(named);
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
        let mut step = step.of_setup();
        let text = |text: &mut String| *text = rename_text(text, &|name| self.name(name));
        if let Some(with) = step.with_mut() {
            *with = self.values(with);
        }
        if let Some(capture) = step.capture_mut().and_then(Option::as_mut) {
            *capture = format!("{THEIRS}-{capture}");
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
    let hook = |name: &str, with: Value, capture: Option<String>| {
        let hook = Hook {
            hook: name.to_owned(),
            with: with.as_object().cloned().unwrap_or_default(),
            capture,
            ..Hook::default()
        };
        Step::from(hook).of_setup()
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
