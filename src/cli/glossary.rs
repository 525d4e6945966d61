//! What `explain` prints for names other than rules: hooks, types, event types and versions, settings, causes of
//! missing answers, and the words of reports.

use super::config;
use conformant_base::http::Cause;
use conformant_engine::Planned;
use conformant_rulebook::hooks::ADVANCE_CLOCK;
use conformant_rulebook::service::ServiceIndex;
use conformant_rulebook::{Rulebook, is_one_event};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

/// Number of scenarios listed for a hook.
const SCENARIOS_MAX: usize = 8;
/// Number of settings listed below a key.
const KEYS_MAX: usize = 40;
/// Number of fields listed for a type.
const FIELDS_MAX: usize = 60;

/// Descriptions of everything with this name.
pub(super) fn describe(rulebook: &Rulebook, planned: &[Planned<'_>], name: &str) -> String {
    let mut text = String::new();
    hook(rulebook, planned, name, &mut text);
    form(name, &mut text);
    kind(
        rulebook,
        name.strip_prefix("events/").unwrap_or(name),
        &mut text,
    );
    key(name, &mut text);
    variable(name, &mut text);
    cause(name, &mut text);
    report_word(name, &mut text);
    document(rulebook, name, &mut text);
    text
}

/// All names with a description.
pub(super) fn names(rulebook: &Rulebook) -> Vec<String> {
    let mut names: Vec<String> = rulebook
        .index
        .hooks()
        .map(|hook| hook.name.clone())
        .collect();
    names.extend(rulebook.kinds.keys().cloned());
    names.extend(rulebook.event_types.keys().cloned());
    names.extend(keys().into_iter().map(|(key, _)| key));
    names.extend(causes().into_iter().map(|(cause, _)| cause));
    let described = rows(WORDS).chain(rows(FORMS));
    names.extend(described.map(|(name, _)| name.to_owned()));
    names
}

/// Words of reports: levels, bases and verdicts of rules, and terms of mutation testing.
const WORDS: &str = include_str!("glossary/words.txt");
/// Values of `check --as` other than representations.
const FORMS: &str = include_str!("glossary/forms.txt");

/// The rows of a table: a name and what it means.
fn rows(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    table.lines().filter_map(|line| line.split_once(": "))
}

fn report_word(name: &str, text: &mut String) {
    let name = name.replace(' ', "-");
    let singular = name.strip_suffix('s').unwrap_or(&name);
    let mut words = rows(WORDS);
    if let Some((word, says)) = words.find(|(word, _)| *word == name || *word == singular) {
        let _ = writeln!(text, "word {word}\n  {says}");
    }
}

/// One of the documents, such as `D3`.
fn document(rulebook: &Rulebook, name: &str, text: &mut String) {
    let documents = rulebook.index.documents();
    if let Some((id, title)) = documents.iter().find(|(id, _)| id.to_string() == name) {
        let _ = writeln!(
            text,
            "document {id}\n  \"{title}\", a source of the rules; `conformant list rules` shows the lines"
        );
    }
}

fn form(name: &str, text: &mut String) {
    if let Some((form, says)) = rows(FORMS).find(|(form, _)| *form == name) {
        let _ = writeln!(
            text,
            "kind {form}\n  {says}\n  check      conformant check FILE --as {form}"
        );
    }
}

fn hook(rulebook: &Rulebook, planned: &[Planned<'_>], name: &str, text: &mut String) {
    let Some(hook) = rulebook.index.hook(name) else {
        return;
    };
    let mut arguments: Vec<String> = hook.required.clone();
    arguments.extend(hook.optional.iter().map(|a| format!("{a}?")));
    if hook.open {
        arguments.push("others".to_owned());
    }
    let arguments = match arguments.is_empty() {
        true => "none".to_owned(),
        false => arguments.join(", "),
    };
    let _ = writeln!(text, "hook {name}\n  arguments  {arguments}");
    for (argument, values) in &hook.values {
        let words = values
            .iter()
            .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned));
        let words: Vec<String> = words.collect();
        let _ = writeln!(text, "  values     {argument}: {}", words.join(", "));
    }
    // The table of the guide: names, arguments, result, effect, example.
    let row = conformant_specs::text("README.md")
        .lines()
        .find(|line| line.starts_with("| `") && line.contains(&format!("`{name}`")));
    let cells: Vec<&str> = row
        .into_iter()
        .flat_map(|row| row.split('|').map(str::trim))
        .collect();
    for (label, at) in [("result", 3), ("effect", 4), ("example", 5)] {
        if let Some(cell) = cells.get(at).filter(|cell| !cell.is_empty()) {
            let _ = writeln!(text, "  {label:<10} {}", cell.replace('`', ""));
        }
    }
    if let Some(probe) = &hook.probe {
        let probe = Value::Object(probe.clone());
        let effect = match name == ADVANCE_CLOCK {
            true => ", which changes nothing, and moves the clock by 5 s, to see whether it moves",
            false => ", which changes nothing",
        };
        let _ = writeln!(
            text,
            "  probe      `conformant doctor --probe` calls it with {probe}{effect}"
        );
    }
    let _ = writeln!(
        text,
        "  configure  hooks: {{ {name}: {{ command: [./{}.sh] }} }}, or --hooks URL for POST URL/{name}",
        name.replace('_', "-")
    );
    let uses: Vec<&str> = planned
        .iter()
        .filter(|planned| planned.any_step(&|step| step.hook() == Some(name)))
        .map(|planned| planned.scenario.id.as_str())
        .collect();
    push_list("scenarios", &uses, SCENARIOS_MAX, text);
}

/// Rows below each other, the first one after a label.
pub(super) fn push_rows(
    label: &str,
    rows: impl IntoIterator<Item = impl Display>,
    text: &mut String,
) {
    for (at, row) in rows.into_iter().enumerate() {
        let label = if at == 0 { label } else { "" };
        let line = format!("  {label:<10} {row}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// The first rows, and the number of the others.
fn push_list(label: &str, rows: &[impl Display], max: usize, text: &mut String) {
    push_rows(label, rows.iter().take(max), text);
    if rows.len() > max {
        let _ = writeln!(text, "  {:<10} and {} more", "", rows.len() - max);
    }
}

/// A type of representation, an event type, or a version of an event.
fn kind(rulebook: &Rulebook, name: &str, text: &mut String) {
    match rulebook.event_types.get(name) {
        Some(Some(current)) => {
            let _ = writeln!(
                text,
                "event type {name}\n  schema     {current}\n  check      conformant check FILE --as {name}"
            );
        }
        Some(None) => {
            let _ = writeln!(
                text,
                "event type {name}\n  not judged, because the documents do not describe its payload"
            );
        }
        None => {}
    }
    let event = format!("events/{name}");
    let versions: Vec<&str> = rulebook
        .kinds
        .keys()
        .filter(|kind| {
            kind.strip_prefix(&event)
                .is_some_and(|rest| rest.starts_with('/'))
        })
        .map(String::as_str)
        .collect();
    if !versions.is_empty() {
        let _ = writeln!(text, "event {name}");
        push_list("versions", &versions, SCENARIOS_MAX, text);
    }
    let known = rulebook
        .kinds
        .get_key_value(name)
        .or_else(|| rulebook.kinds.get_key_value(&event));
    let Some((id, kind)) = known else {
        return;
    };
    let says = kind
        .schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let _ = writeln!(
        text,
        "kind {id}\n  {says}\n  check      conformant check FILE --as {id}"
    );
    let members = kind.schema.get("properties").and_then(Value::as_object);
    let names: Vec<&str> = members
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .take(FIELDS_MAX)
        .collect();
    if !names.is_empty() {
        let _ = writeln!(text, "  fields     {}", names.join(", "));
    }
    let rules = rulebook.rules.values().filter(|rule| {
        rule.kind()
            .is_some_and(|kind| kind == id || is_one_event(kind, id))
    });
    let rules: Vec<&str> = rules.map(|rule| rule.id.as_str()).collect();
    push_list("rules", &rules, SCENARIOS_MAX, text);
}

/// A key of `conformant.yaml`, such as `limits.rate` or `targets.flow.url`.
fn key(name: &str, text: &mut String) {
    let wanted: Vec<&str> = name.split('.').collect();
    let fits = |key: &str| {
        let parts: Vec<&str> = key.split('.').collect();
        parts.len() == wanted.len()
            && parts
                .iter()
                .zip(&wanted)
                .all(|(part, name)| *part == "NAME" || part == name)
    };
    let all = keys();
    let Some((key, says)) = all.iter().find(|(key, _)| key == name || fits(key)) else {
        return;
    };
    let _ = writeln!(text, "key {key} of conformant.yaml\n  {says}");
    if let ["targets", service, "url"] = wanted.as_slice() {
        let _ = writeln!(
            text,
            "  also       CONFORMANT_{}_URL, --target {service}=URL",
            service.to_uppercase()
        );
    }
    let below: BTreeMap<&str, &str> = all
        .iter()
        .filter_map(|(inner, says)| {
            let rest = inner.strip_prefix(key.as_str())?.strip_prefix('.')?;
            let is_direct = !rest.trim_start_matches("NAME.").contains('.');
            is_direct.then_some((rest, says.as_str()))
        })
        .collect();
    let width = below
        .keys()
        .map(|name| name.len())
        .max()
        .unwrap_or_default();
    let lines: Vec<String> = below
        .iter()
        .map(|(inner, says)| format!("{inner:width$}  {says}"))
        .collect();
    push_list("keys", &lines, KEYS_MAX, text);
}

/// A variable of the environment, by the key whose value it replaces.
fn variable(name: &str, text: &mut String) {
    const KEYS: &str = "url username password account_sid auth_token bearer";
    let parts = name.strip_prefix("CONFORMANT_");
    let Some((service, of_target)) = parts.and_then(|parts| parts.split_once('_')) else {
        return;
    };
    let (service, of_target) = (service.to_lowercase(), of_target.to_lowercase());
    if !ServiceIndex::embedded().is_target(&service) || !KEYS.split(' ').any(|key| key == of_target)
    {
        return;
    }
    let at = format!("targets.{service}.{of_target}");
    let _ = writeln!(
        text,
        "variable {name} of the environment\n  Replaces the value of {at}."
    );
    key(&at, text);
}

/// Keys of the configuration with descriptions; `NAME` is a name that the user chooses.
pub(super) fn keys() -> Vec<(String, String)> {
    let schema = config::schema(ServiceIndex::embedded());
    let mut keys = Vec::new();
    collect(&schema, &schema, "", 0, &mut keys);
    keys
}

fn collect(
    root: &Value,
    part: &Value,
    above: &str,
    depth: usize,
    keys: &mut Vec<(String, String)>,
) {
    const DEPTH_MAX: usize = 8;
    let reference = part["$ref"]
        .as_str()
        .map(|path| path.trim_start_matches('#'));
    let part = reference
        .and_then(|path| root.pointer(path))
        .unwrap_or(part);
    if depth > DEPTH_MAX {
        return;
    }
    for option in ["anyOf", "oneOf"]
        .iter()
        .filter_map(|name| part[*name].as_array())
        .flatten()
    {
        collect(root, option, above, depth + 1, keys);
    }
    for (name, member) in part["properties"].as_object().into_iter().flatten() {
        let key = if above.is_empty() {
            name.clone()
        } else {
            format!("{above}.{name}")
        };
        let says = member["description"]
            .as_str()
            .unwrap_or_default()
            .replace('\n', " ");
        keys.push((key.clone(), says));
        collect(root, member, &key, depth + 1, keys);
    }
    if part["additionalProperties"].is_object() {
        collect(
            root,
            &part["additionalProperties"],
            &format!("{above}.NAME"),
            depth + 1,
            keys,
        );
    }
}

/// Causes of missing answers with descriptions, each once.
pub(super) fn causes() -> Vec<(String, String)> {
    let causes = Cause::examples();
    let named = causes.iter();
    let mut named: Vec<_> = named
        .map(|cause| (word(&cause.to_string()), cause.says().to_owned()))
        .collect();
    named.sort();
    named.dedup();
    named
}

/// A cause, or a family of them: `timeout` is every `timeout(…)`.
fn cause(name: &str, text: &mut String) {
    let wanted = word(name);
    let family = format!("{wanted}(");
    for (cause, says) in causes() {
        if cause == wanted || cause.starts_with(&family) {
            let _ = writeln!(
                text,
                "cause {cause}\n  {says}\n  verdict    inconclusive: nothing is reported"
            );
        }
    }
}

/// Shortens `body-over-limit(4 MiB)` to `body-over-limit`, `timeout(body, 3/10)` to `timeout(body)`.
fn word(cause: &str) -> String {
    match cause.split_once('(') {
        Some((word, rest)) if rest.starts_with(|c: char| c.is_ascii_lowercase()) => {
            let what = rest.split([',', ')']).next().unwrap_or_default();
            format!("{word}({what})")
        }
        Some((word, _)) => word.to_owned(),
        None => cause.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_engine::plan;

    fn embedded() -> Rulebook {
        conformant_judge::load::embedded().unwrap_or_else(|problems| panic!("{problems}"))
    }

    #[test]
    fn each_sort_of_name_is_explained() {
        let rulebook = embedded();
        let planned = plan::all(&rulebook);
        for (name, begin) in [
            (
                "end_execution",
                "hook end_execution\n  arguments  flow_sid, execution_sid\n",
            ),
            ("flow/execution", "kind flow/execution\n"),
            ("MessageSent/4", "kind events/MessageSent/4\n"),
            (
                "MessageSent",
                "event MessageSent\n  versions   events/MessageSent/4\n",
            ),
            ("limits.rate", "key limits.rate of conformant.yaml\n"),
            (
                "targets.flow.url",
                "key targets.NAME.url of conformant.yaml\n",
            ),
            (
                "events/MessageSent",
                "event MessageSent\n  versions   events/MessageSent/4\n",
            ),
            ("vacuous", "word vacuous\n"),
            ("not judged", "word not-judged\n"),
            ("har", "kind har\n  A recording of traffic"),
            ("timeout", "cause timeout("),
            (
                "refused",
                "cause refused\n  Nothing listens at the address.",
            ),
        ] {
            let text = describe(&rulebook, &planned, name);
            assert!(text.starts_with(begin), "{name}: {text}");
        }
        assert_eq!(describe(&rulebook, &planned, "no-such-thing"), "");
    }

    #[test]
    fn a_key_lists_the_keys_below_it() {
        let mut text = String::new();
        key("limits", &mut text);
        assert!(
            text.contains("\n  keys       ") && text.contains(" rate "),
            "{text}"
        );
    }

    #[test]
    fn each_cause_is_explained_by_its_word_in_reports() {
        let rulebook = embedded();
        let planned = plan::all(&rulebook);
        for cause in Cause::examples() {
            let text = describe(&rulebook, &planned, &cause.to_string());
            assert!(text.contains(cause.says()), "{cause}: {text}");
        }
    }

    #[test]
    fn every_offered_name_is_explained() {
        let rulebook = embedded();
        let planned = plan::all(&rulebook);
        for name in names(&rulebook) {
            assert_ne!(describe(&rulebook, &planned, &name), "", "{name}");
        }
    }
}
