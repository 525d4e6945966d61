//! A finding of exploration as a scenario: name, file, and validity.

use conformant_base::sorted::SortedMap;
use conformant_base::text;
use conformant_record::Finding;
use conformant_rulebook::scenario::Scenario;
use conformant_rulebook::step::{Call, Concurrently, Step};
use conformant_rulebook::{ParameterLocation, Rulebook, Service, interpolations, kebab};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A finding with the shortest sequence.
#[derive(Debug)]
pub struct Shrunk {
    pub scenario: Scenario,
    pub finding: Finding,
    /// Number of its first sequence.
    pub sequence: u64,
    /// Whether it was reproduced.
    pub certainty: Certainty,
}

/// Whether a finding was reproduced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// Reproduced with the shortest sequence.
    Sure,
    /// Not reproduced: requests and responses of both attempts, one a line.
    Flaky {
        /// Of the attempt with the finding.
        first: Vec<String>,
        /// Of the attempt without it.
        again: Vec<String>,
    },
    /// Not confirmed, because nothing could be sent any more. The sequence may not be the shortest.
    Untried,
}

impl Shrunk {
    /// Whether it was not reproduced.
    pub fn is_flaky(&self) -> bool {
        matches!(self.certainty, Certainty::Flaky { .. })
    }

    /// The sequence for people, one step a line.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (index, step) in self.scenario.steps.iter().enumerate() {
            let _ = writeln!(text, "  {}. {}", index + 1, step.summary());
        }
        text
    }
}

/// `flow/execution/status` on `flow/fetch-execution` is `execution-status-on-fetch-execution`.
pub(super) fn name(rule: &str, operation: &str) -> String {
    let without_service = |id: &str| {
        id.split_once('/')
            .map_or(id, |(_, rest)| rest)
            .replace('/', "-")
    };
    kebab(
        format!(
            "{}-on-{}",
            without_service(rule),
            without_service(operation)
        )
        .trim_end_matches('-'),
    )
}

/// A scenario of these steps.
pub(super) fn scenario(service: &str, name: &str, steps: Vec<Step>) -> Scenario {
    Scenario {
        id: format!("{service}/explored/{name}"),
        says: "A random sequence of exploration.".to_owned(),
        matrix: SortedMap::new(),
        steps,
    }
}

/// Whether the captures of each step precede it, each path is complete, and each hook has its required arguments.
pub(super) fn is_sound(rulebook: &Rulebook, service: &Service, scenario: &Scenario) -> bool {
    let mut known: BTreeSet<String> = ALWAYS.map(str::to_owned).into();
    are_sound(rulebook, service, &scenario.steps, &mut known)
}

fn are_sound(
    rulebook: &Rulebook,
    service: &Service,
    steps: &[Step],
    known: &mut BTreeSet<String>,
) -> bool {
    steps.iter().all(|step| {
        if let Some(race) = step.race() {
            let before = known.clone();
            let is_sound = race.concurrently.iter().all(|step| {
                let one = std::slice::from_ref(step);
                are_sound(rulebook, service, one, &mut before.clone())
            });
            known.extend(brought(rulebook, service, step));
            return is_sound && Concurrently::SIZES.contains(&race.size());
        }
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
            .filter(|p| p.place == ParameterLocation::Path);
        let has = |name: &String| step.with().is_some_and(|with| with.contains_key(name));
        let hook = step.hook().and_then(|name| rulebook.index.hook(name));
        let mut required = hook.into_iter().flat_map(|hook| &hook.required);
        let is_whole = path.all(|p| has(&p.name)) && required.all(has);
        known.extend(brought(rulebook, service, step));
        is_known && is_whole
    })
}

/// The names that a step captures, with those of its group.
fn brought(rulebook: &Rulebook, service: &Service, step: &Step) -> Vec<String> {
    let mut names: Vec<String> = step.names().cloned().into_iter().collect();
    let racers = step.race().map_or(&[][..], |race| &race.concurrently);
    names.extend(racers.iter().filter_map(Step::capture).cloned());
    let group = step.group().filter(|group| group.r#as.is_none());
    if let Some((service, group)) = group.and_then(|g| rulebook.group(service, &g.r#use)) {
        let inner = group.steps.iter();
        names.extend(inner.flat_map(|inner| brought(rulebook, service, inner)));
    }
    names
}

/// The scenario file with its path, for `run --scenarios DIR`.
pub fn file_of(shrunk: &Shrunk) -> (String, String) {
    let Shrunk {
        scenario, finding, ..
    } = shrunk;
    let says = format!(
        "Broke {}: {}",
        finding.rule,
        text::excerpt(&finding.message, 160)
    );
    file(
        scenario,
        "Found by exploration and shrunk. It has no expectations of its own: the rules judge it.",
        &says,
    )
}

/// A scenario as a file `SERVICE/NAME.yaml`.
pub(super) fn file(scenario: &Scenario, comment: &str, says: &str) -> (String, String) {
    let mut words = scenario.id.split('/');
    let (service, name) = (
        words.next().unwrap_or_default(),
        words.next_back().unwrap_or_default(),
    );
    let mut text = format!(
        "# {comment}\nscenarios:\n  - id: {}\n    says: {}\n    steps:\n",
        scenario.id,
        visible(&json!(says)),
    );
    for step in &scenario.steps {
        let _ = writeln!(text, "      - {}", visible(&written(step)));
    }
    (format!("{service}/{name}.yaml"), text)
}

/// Adds an accepted call where an operation is only refused, because a refusal counts only with its counterpart; without a known
/// counterpart the refusal is not required. It comes after the last refused call, because it may delete what that call needs.
pub(super) fn with_twins(rulebook: &Rulebook, service: &Service, steps: Vec<Step>) -> Vec<Step> {
    let whole = |call: &str| match call.contains('/') {
        true => call.to_owned(),
        false => format!("{}/{call}", service.name),
    };
    let is_demanded = |step: &Step| step.rejected().is_none() && !step.is_either();
    let accepted: BTreeSet<String> = steps
        .iter()
        .filter(|step| is_demanded(step))
        .filter_map(|step| step.operation().map(whole))
        .collect();
    let refused = |step: &Step| {
        let refused = step.call().filter(|call| call.demand.rejected().is_some());
        let call = refused.map(|refused| whole(&refused.call));
        call.filter(|call| !accepted.contains(call))
    };
    let mut known: BTreeSet<String> = ALWAYS.map(str::to_owned).into();
    let mut twins: SortedMap<String, (usize, Option<Step>)> = SortedMap::new();
    for (index, step) in steps.iter().enumerate() {
        known.extend(brought(rulebook, service, step));
        let Some(call) = refused(step) else { continue };
        let happy = call.split_once('/').and_then(|(of, id)| {
            let happy = rulebook.services.get(of)?.happy.get(id)?;
            let reads = Value::Object(happy.with.clone()).to_string();
            let reads = interpolations(&reads).ok()?;
            let mut reads = reads.iter();
            reads
                .all(|one| known.contains(&one.path[0]))
                .then_some(happy)
        });
        let written = step.operation().unwrap_or_default().to_owned();
        let twin = happy.map(|happy| {
            let twin = Call {
                call: written,
                with: happy.with.clone(),
                ..Call::default()
            };
            Step::from(twin).of_setup()
        });
        twins.insert(call, (index, twin));
    }
    let mut all = Vec::with_capacity(steps.len());
    for (index, mut step) in steps.into_iter().enumerate() {
        let twin = refused(&step).and_then(|call| twins.get(&call));
        if matches!(twin, Some((_, None))) {
            step.demand_nothing();
        }
        all.push(step);
        if let Some((last, Some(twin))) = twin
            && *last == index
        {
            all.push(twin.clone());
        }
    }
    all
}

/// Captures that need no earlier step.
const ALWAYS: [&str; 5] = ["target", "unique", "now", "index", "with"];

/// A step as one line of a scenario file, without defaults.
fn written(step: &Step) -> Value {
    let whole = serde_json::to_value(step).unwrap_or_default();
    let Value::Object(members) = whole else {
        return Value::Null;
    };
    let mut kept = Map::new();
    for (name, value) in members {
        let value = match (name.as_str(), step.race()) {
            ("with", _) => value,
            // `null` and `false` are values to compare with.
            ("expect", _) => stated(value),
            ("concurrently", Some(race)) => race.concurrently.iter().map(written).collect(),
            _ => pruned(value),
        };
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

/// Statements without the members that have defaults.
fn stated(mut all: Value) -> Value {
    let statements = all.as_array_mut().into_iter().flatten();
    for statement in statements.filter_map(Value::as_object_mut) {
        statement.retain(|name, value| name != "or-absent" || *value != json!(false));
    }
    all
}

/// JSON as YAML reads it, with characters that deceive a reader or a log as escapes of the same character.
fn visible(json: &Value) -> String {
    let json = json.to_string();
    if text::escape_line(&json) == json {
        return json;
    }
    // Commands of CI services, which can only stand in strings.
    let json = json.replace("::", ":\\x3a").replace("##", "#\\x23");
    let mut out = String::new();
    for c in json.chars() {
        match u32::from(c) {
            code @ 0..=0xffff if text::is_deceptive(c) => {
                let _ = write!(out, "\\u{code:04x}");
            }
            code if text::is_deceptive(c) => {
                let _ = write!(out, "\\U{code:08x}");
            }
            _ => out.push(c),
        }
    }
    out
}

/// Removes members with default values.
fn pruned(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            // The comparison of `until`.
            let is_given = |name: &str, value: &Value| {
                name == "equals" || !(value.is_null() || *value == json!(false))
            };
            let kept = members.into_iter().filter(|(name, v)| is_given(name, v));
            let kept = kept.map(|(name, value)| match name.as_str() {
                "equals" | "one-of" => (name, value),
                _ => (name, pruned(value)),
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.into_iter().map(pruned).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_rulebook::step::Hook;

    #[test]
    fn a_hook_without_a_required_argument_is_not_sound() {
        let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
        let flow = &rulebook.services["flow"];
        let sound = |with: Value| {
            let hook = Hook {
                hook: "end_execution".to_owned(),
                with: with.as_object().cloned().unwrap_or_default(),
                ..Hook::default()
            };
            is_sound(&rulebook, flow, &scenario("flow", "one", vec![hook.into()]))
        };
        assert!(sound(json!({"flow_sid": "a", "execution_sid": "b"})));
        assert!(!sound(json!({"flow_sid": "a"})));
    }

    #[test]
    fn each_step_of_a_scenario_is_written_with_all_that_it_states() {
        let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
        let all = conformant_engine::plan::all(&rulebook);
        let steps = all.iter().flat_map(|planned| &planned.scenario.steps);
        let whole = |step: &Step| serde_json::to_value(step).expect("it can be written");
        let mut seen = BTreeSet::new();
        for step in steps {
            let text = visible(&written(step));
            if !seen.insert(text.clone()) {
                continue;
            }
            let read: Step = conformant_rulebook::parse_file("a.yaml", text.as_bytes())
                .unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(whole(&read), whole(step), "{text}");
        }
        assert!(seen.len() > 1000, "{}", seen.len());
    }

    #[test]
    fn scenario_files_keep_every_character_of_a_text() {
        let value = "a\u{200d}b\u{7f}c\u{85}d🚀e\u{e0041}f'g\"h\\i\u{1b} ##[error] ::warning";
        let text = visible(&json!({ "with": { "Body": value } }));
        assert!(!text.contains(text::is_deceptive), "{text}");
        assert!(!text.contains("##[") && !text.contains("::"), "{text}");
        let read: Value = conformant_rulebook::parse_file("a.yaml", text.as_bytes()).unwrap();
        assert_eq!(read["with"]["Body"], value);
    }
}
