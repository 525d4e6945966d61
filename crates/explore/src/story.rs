//! What exploration found as a scenario: its name, its file, and whether a loader would take it.

use conformant_record::Finding;
use conformant_rulebook::scenario::Scenario;
use conformant_rulebook::step::{Call, Step};
use conformant_rulebook::{Place, Rulebook, Service, interpolations, kebab};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A finding with the shortest sequence that brings it.
#[derive(Debug)]
pub struct Shrunk {
    /// The sequence.
    pub scenario: Scenario,
    /// The finding.
    pub finding: Finding,
    /// The sequence that it came by first.
    pub sequence: u64,
    /// How far it is known that it comes again.
    pub certainty: Certainty,
}

/// How far it is known that a finding comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It came again, by the shortest sequence.
    Sure,
    /// It did not come when the same was sent again: what happened the first time and then, a request a line.
    Flaky {
        /// When it came.
        first: Vec<String>,
        /// When it did not.
        again: Vec<String>,
    },
    /// Nothing could be sent any more: the sequence is the whole one.
    Untried,
}

impl Shrunk {
    pub(super) fn new(
        scenario: Scenario,
        finding: Finding,
        sequence: u64,
        certainty: Certainty,
    ) -> Self {
        Self {
            scenario,
            finding,
            sequence,
            certainty,
        }
    }

    /// Whether it came once, and not again.
    pub fn is_flaky(&self) -> bool {
        matches!(self.certainty, Certainty::Flaky { .. })
    }

    /// The sequence as a person reads it, a step a line.
    pub fn told(&self) -> String {
        let mut text = String::new();
        for (index, step) in self.scenario.steps.iter().enumerate() {
            let _ = writeln!(text, "  {}. {}", index + 1, step.summary());
        }
        text
    }
}

/// `flow/execution/status` on `flow/fetch-execution` is `execution-status-on-fetch-execution`.
pub(super) fn name(rule: &str, operation: &str) -> String {
    let behind = |id: &str| {
        id.split_once('/')
            .map_or(id, |(_, rest)| rest)
            .replace('/', "-")
    };
    kebab(format!("{}-on-{}", behind(rule), behind(operation)).trim_end_matches('-'))
}

/// A scenario of these steps.
pub(super) fn scenario(service: &str, name: &str, steps: Vec<Step>) -> Scenario {
    Scenario {
        id: format!("{service}/explored/{name}"),
        says: "A sequence that exploration drew.".to_owned(),
        matrix: BTreeMap::new(),
        steps,
    }
}

/// Whether what each step reads is there before it, and each path is whole.
pub(super) fn is_sound(rulebook: &Rulebook, service: &Service, scenario: &Scenario) -> bool {
    let mut known: BTreeSet<String> = ALWAYS.map(str::to_owned).into();
    scenario.steps.iter().all(|step| {
        let with = step.with().cloned().unwrap_or_default();
        let reads = Value::Object(with).to_string() + step.address().unwrap_or_default();
        let found = interpolations(&reads).unwrap_or_default();
        let is_known = found.iter().all(|one| known.contains(&one.path[0]));
        let operation = step
            .operation()
            .and_then(|call| rulebook.called(&service.name, call));
        let mut path = operation
            .iter()
            .flat_map(|o| &o.parameters)
            .filter(|p| p.place == Place::Path);
        let is_whole = path.all(|p| step.with().is_some_and(|with| with.contains_key(&p.name)));
        known.extend(brought(rulebook, service, step));
        is_known && is_whole
    })
}

/// The names that later steps read by what a step captures, those of its group included.
fn brought(rulebook: &Rulebook, service: &Service, step: &Step) -> Vec<String> {
    let mut names: Vec<String> = step.names().cloned().into_iter().collect();
    let group = step.group().filter(|group| group.r#as.is_none());
    if let Some((service, group)) = group.and_then(|g| rulebook.group(service, &g.r#use)) {
        let inner = group.steps.iter();
        names.extend(inner.flat_map(|inner| brought(rulebook, service, inner)));
    }
    names
}

/// The file that `run --scenarios DIR` reads, with its path below the folder.
pub fn file_of(shrunk: &Shrunk) -> (String, String) {
    let Shrunk {
        scenario, finding, ..
    } = shrunk;
    let says = format!(
        "Broke {}: {}",
        finding.rule,
        conformant_base::text::excerpt(&finding.message, 160)
    );
    file(
        scenario,
        "Found by exploration and shrunk; it states nothing: the rules judge it.",
        &says,
    )
}

/// A scenario as a file, with its path below the folder: `SERVICE/NAME.yaml`.
pub(super) fn file(scenario: &Scenario, comment: &str, says: &str) -> (String, String) {
    let mut words = scenario.id.split('/');
    let (service, name) = (
        words.next().unwrap_or_default(),
        words.next_back().unwrap_or_default(),
    );
    let mut text = format!(
        "# {comment}\nscenarios:\n  - id: {}\n    says: {}\n    steps:\n",
        scenario.id,
        json!(says),
    );
    for step in &scenario.steps {
        let _ = writeln!(text, "      - {}", written(step));
    }
    (format!("{service}/{name}.yaml"), text)
}

/// The steps with an accepted call behind each refused one that has none, for a refusal says something only beside it; where nothing
/// is known that would be accepted, the refusal is not demanded.
pub(super) fn with_twins(rulebook: &Rulebook, service: &Service, steps: Vec<Step>) -> Vec<Step> {
    let whole = |call: &str| match call.contains('/') {
        true => call.to_owned(),
        false => format!("{}/{call}", service.name),
    };
    let is_demanded = |step: &Step| step.rejected().is_none() && !step.is_either();
    let mut accepted: BTreeSet<String> = steps
        .iter()
        .filter(|step| is_demanded(step))
        .filter_map(|step| step.operation().map(whole))
        .collect();
    let mut known: BTreeSet<String> = ALWAYS.map(str::to_owned).into();
    let mut all = Vec::with_capacity(steps.len());
    for mut step in steps {
        known.extend(brought(rulebook, service, &step));
        let refused = step.call().filter(|call| call.demand.rejected().is_some());
        let refused = refused.map(|refused| (refused.call.clone(), whole(&refused.call)));
        let Some((written, call)) = refused.filter(|(_, call)| !accepted.contains(call)) else {
            all.push(step);
            continue;
        };
        let happy = call.split_once('/').and_then(|(of, id)| {
            let happy = rulebook.services.get(of)?.happy.get(id)?;
            let reads = Value::Object(happy.with.clone()).to_string();
            let reads = interpolations(&reads).ok()?;
            reads
                .iter()
                .all(|one| known.contains(&one.path[0]))
                .then_some(happy)
        });
        let Some(happy) = happy else {
            step.demand_nothing();
            all.push(step);
            continue;
        };
        let twin = Step::from(Call {
            call: written,
            with: happy.with.clone(),
            ..Call::default()
        });
        accepted.insert(call);
        all.extend([step, twin.of_setup()]);
    }
    all
}

/// What can be read without any step before.
const ALWAYS: [&str; 5] = ["target", "unique", "now", "index", "with"];

/// A step as one line of a scenario file, without what says nothing.
fn written(step: &Step) -> Value {
    let whole = serde_json::to_value(step).unwrap_or_default();
    let Value::Object(members) = whole else {
        return Value::Null;
    };
    let mut kept = Map::new();
    for (name, value) in members {
        let value = if name == "with" { value } else { pruned(value) };
        let is_empty = value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty);
        let is_usual = name == "credentials" && value == json!("default");
        let says_nothing = value.is_null() || value == json!(false) || is_empty || is_usual;
        if !says_nothing {
            kept.insert(name, value);
        }
    }
    Value::Object(kept)
}

/// Without members that were not given.
fn pruned(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members
                .into_iter()
                .filter(|(_, v)| !v.is_null() && *v != json!(false));
            Value::Object(kept.map(|(name, value)| (name, pruned(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(pruned).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}
