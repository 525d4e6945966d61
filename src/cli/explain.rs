//! `explain`: prints everything the rulebook contains about one id.

mod search;
mod source;

use super::args::ExplainArgs;
use super::{Done, Exit, Failure, glossary, load_to_tell, print};
use conformant_base::text;
use conformant_engine::{Planned, plan};
use conformant_judge::predicate_of;
use conformant_reference::{Fault, Variant};
use conformant_rulebook::{Origin, Rule, Rulebook};
use source::Sources;
use std::fmt::Write as _;
use std::mem::ManuallyDrop;
use std::path::Path;

/// Ids that are listed for a name.
const LISTED_MAX: usize = 40;

pub(super) fn explain(args: &ExplainArgs) -> Done {
    let rulebook = load_to_tell(&args.specs, true)?;
    let specs = args.specs.specs.as_deref();
    let sources = Sources::new(&rulebook, specs);
    let mut text = describe(&rulebook, &sources, specs, &args.id);
    if text.is_empty() {
        let planned = ManuallyDrop::new(plan::all(&rulebook));
        let names = glossary::names(&rulebook);
        let known = known(&rulebook, &planned, &names);
        text = match search::similar(&known, &args.id)[..] {
            [] => return Err(unknown(&known, &args.id)),
            [id] => describe(&rulebook, &sources, specs, id),
            ref ids => listed(&rulebook, &args.id, ids),
        };
    }
    print(&text);
    Ok(Exit::Conformant)
}

/// Several ids of which a name is part.
fn listed(rulebook: &Rulebook, name: &str, ids: &[&str]) -> String {
    let mut text = format!(
        "{} contain `{name}`; `conformant explain ID` explains one:\n",
        text::count(ids.len(), "id")
    );
    let width = ids.iter().take(LISTED_MAX).map(|id| id.len()).max();
    for id in ids.iter().take(LISTED_MAX) {
        let rule = rulebook.rule(id).map(|rule| rule.says.as_str());
        let says = rule.or_else(|| Some(Fault::from_id(id)?.says()));
        let says = says.or_else(|| Some(Variant::from_id(id)?.says()));
        let says = says.unwrap_or_default();
        let line = format!("  {id:width$}  {says}", width = width.unwrap_or_default());
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if ids.len() > LISTED_MAX {
        let _ = writeln!(text, "  and {} more", ids.len() - LISTED_MAX);
    }
    text
}

/// Everything about one id; empty if there is none.
fn describe(rulebook: &Rulebook, sources: &Sources<'_>, specs: Option<&Path>, id: &str) -> String {
    let planned = ManuallyDrop::new(plan::about(rulebook, id));
    let mut text = String::new();
    if let Some(rule) = rulebook.rule(id) {
        explain_rule(rulebook, sources, &planned, rule, &mut text);
    }
    explain_operation(rulebook, sources, id, &mut text);
    if let Some(entry) = rulebook.open_points.get(id) {
        let point = &entry.point;
        let _ = writeln!(text, "unspecified behavior {id}\n  {}", point.says);
        sources.print(id, &entry.source, &mut text);
        let _ = writeln!(
            text,
            "  treatment  {}\n  place      {}",
            point.treatment, entry.place
        );
    }
    if let Some(planned) = planned.iter().find(|p| p.scenario.id == id) {
        let _ = writeln!(text, "scenario {id}\n  {}", planned.scenario.says);
        for (index, step) in planned.scenario.steps.iter().enumerate() {
            let _ = writeln!(text, "  {:>2}. {}", index + 1, step.summary());
        }
        let _ = writeln!(text, "  run it     conformant run --filter '{id}'");
    }
    if let Some(fault) = Fault::from_id(id) {
        let _ = writeln!(
            text,
            "fault {id}\n  {}\n  serve it   conformant serve --fault {id}",
            fault.says()
        );
        let known = conformant_selftest::known_defects(specs);
        let caught_by = known.faults.iter().filter(|known| known.id == id);
        let rules = caught_by.flat_map(|known| &known.rules);
        glossary::push_rows("caught by", rules, &mut text);
    }
    if let Some(variant) = Variant::from_id(id) {
        let _ = writeln!(
            text,
            "variant {id}\n  {}\n  serve it   conformant serve --variant {id}",
            variant.says()
        );
    }
    text += &glossary::describe(rulebook, &planned, id);
    text
}

fn explain_rule(
    rulebook: &Rulebook,
    sources: &Sources<'_>,
    planned: &[Planned<'_>],
    rule: &Rule,
    text: &mut String,
) {
    let level = serde_word(&rule.level);
    let basis = serde_word(&rule.basis);
    let _ = writeln!(
        text,
        "rule {}\n  {}\n  level      {level}, {basis}",
        rule.id, rule.says
    );
    sources.print(&rule.id, &rule.source, text);
    let _ = writeln!(
        text,
        "  place      {}\n  judges     {}",
        rule.place,
        judges(rulebook, rule)
    );
    if let Some(predicate) = predicate_of(rule) {
        let needs: Vec<&str> = predicate.needs().iter().map(|need| need.words()).collect();
        let _ = writeln!(text, "  needs      {}", needs.join(", "));
    }
    let scenarios = planned.iter().map(|planned| &planned.scenario);
    let named = scenarios.filter(|one| one.steps.iter().any(|step| step.names_rule(&rule.id)));
    glossary::push_rows("scenarios", named.map(|scenario| &scenario.id), text);
}

fn judges(rulebook: &Rulebook, rule: &Rule) -> String {
    if rulebook.requests.contains_key(&rule.id) {
        return format!(
            "clients, in recorded traffic, by `proxy` and by `serve`: {}",
            sent(&rule.origin)
        );
    }
    match &rule.origin {
        Origin::Property { kind, pointer } => format!("{pointer} of every {kind}"),
        Origin::NoOtherFields { kind } => format!("fields of every {kind} that are not listed"),
        Origin::Operation { operation } => format!("every {operation} that should be accepted"),
        Origin::Parameter {
            operation,
            parameter,
        } => format!("{parameter} of every {operation}"),
        Origin::Credentials { operation } => {
            format!("every {operation} without or with wrong credentials")
        }
        Origin::ListKey { operation } => format!("every page of {operation}"),
        Origin::ListWalk { operation } => format!("every walk over the pages of {operation}"),
        Origin::Written(written) => {
            format!("{}: {}", written.predicate, written.parameters)
        }
        Origin::Either => "all answers of a run together".to_owned(),
    }
}

/// The part of a request that a rule about clients judges.
fn sent(origin: &Origin) -> String {
    match origin {
        Origin::Parameter {
            operation,
            parameter,
        } => format!("{parameter} of every request of {operation}"),
        Origin::Credentials { operation } => format!("credentials of every {operation}"),
        Origin::Operation { operation } => format!("the body of every {operation}"),
        Origin::Property { .. }
        | Origin::NoOtherFields { .. }
        | Origin::ListKey { .. }
        | Origin::ListWalk { .. }
        | Origin::Written(_)
        | Origin::Either => "nothing".to_owned(),
    }
}

fn explain_operation(rulebook: &Rulebook, sources: &Sources<'_>, id: &str, text: &mut String) {
    let Some((service, name)) = id.split_once('/') else {
        return;
    };
    let Some(operation) = rulebook.operation(service, name) else {
        return;
    };
    let path = operation.path_from.as_ref().map_or_else(
        || operation.path.clone(),
        |key| format!("<{key} of the configuration>"),
    );
    let _ = writeln!(
        text,
        "operation {id}\n  {}\n  request    {} {path}",
        operation.summary, operation.method
    );
    sources.print(id, &operation.source, text);
    for parameter in &operation.parameters {
        let required = match parameter.required {
            true => "required",
            false => "optional",
        };
        let place = format!("{:?}", parameter.place).to_lowercase();
        let _ = writeln!(
            text,
            "  {place:<10} {} ({required}): {}",
            parameter.name, parameter.description
        );
    }
    if let Some(kind) = &operation.response {
        let _ = writeln!(text, "  answer     {kind}");
    }
}

fn serde_word<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// All ids and names that are explained.
fn known<'a>(
    rulebook: &'a Rulebook,
    planned: &'a [Planned<'_>],
    names: &'a [String],
) -> Vec<&'a str> {
    let mut known: Vec<&str> = rulebook.rules.keys().map(String::as_str).collect();
    known.extend(rulebook.requests.keys().map(String::as_str));
    known.extend(rulebook.open_points.keys().map(String::as_str));
    known.extend(planned.iter().map(|p| p.scenario.id.as_str()));
    known.extend(Fault::ALL.iter().map(|f| f.id()));
    known.extend(Variant::ALL.iter().map(|v| v.id()));
    known.extend(names.iter().map(String::as_str));
    known
}

fn unknown(known: &[&str], id: &str) -> Failure {
    let near = text::did_you_mean(id, known);
    let help = near.map_or_else(
        || "see `conformant list rules`".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    Failure::Usage(format!(
        "unknown id `{id}`: no rule, operation, unspecified behavior, scenario, fault, variation, hook, type, event, setting or cause has it; {help}"
    ))
}
