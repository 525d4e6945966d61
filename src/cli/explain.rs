//! `explain`: prints everything the rulebook contains about one id.

use super::args::ExplainArgs;
use super::{Done, Exit, Failure, glossary, load_to_tell, print};
use conformant_engine::{Planned, plan};
use conformant_judge::predicate_of;
use conformant_reference::{Fault, Variant};
use conformant_rulebook::{Origin, Rule, Rulebook};
use std::fmt::Write as _;
use std::mem::ManuallyDrop;

pub(super) fn explain(args: &ExplainArgs) -> Done {
    let rulebook = load_to_tell(&args.specs, true)?;
    let id = args.id.as_str();
    let planned = ManuallyDrop::new(plan::about(&rulebook, id));
    let mut text = String::new();
    if let Some(rule) = rulebook.rule(id) {
        explain_rule(&rulebook, &planned, rule, &mut text);
    }
    explain_operation(&rulebook, id, &mut text);
    if let Some(entry) = rulebook.open_points.get(id) {
        let point = &entry.point;
        let _ = writeln!(
            text,
            "unspecified behavior {id}\n  {}\n  source     {}\n  treatment  {}\n  place      {}",
            point.says, entry.source, point.treatment, entry.place
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
    }
    if let Some(variant) = Variant::from_id(id) {
        let _ = writeln!(
            text,
            "variant {id}\n  {}\n  serve it   conformant serve --variant {id}",
            variant.says()
        );
    }
    text += &glossary::describe(&rulebook, &planned, id);
    if text.is_empty() {
        return Err(unknown(&rulebook, &plan::all(&rulebook), id));
    }
    print(&text);
    Ok(Exit::Conformant)
}

fn explain_rule(rulebook: &Rulebook, planned: &[Planned<'_>], rule: &Rule, text: &mut String) {
    let level = serde_word(&rule.level);
    let basis = serde_word(&rule.basis);
    let _ = writeln!(
        text,
        "rule {}\n  {}\n  level      {level}, {basis}\n  source     {}\n  place      {}\n  judges     {}",
        rule.id,
        rule.says,
        rule.source,
        rule.place,
        judges(rulebook, rule)
    );
    if let Some(predicate) = predicate_of(rule) {
        let needs: Vec<&str> = predicate.needs().iter().map(|need| need.words()).collect();
        let _ = writeln!(text, "  needs      {}", needs.join(", "));
    }
    let named: Vec<String> = planned
        .iter()
        .filter(|p| {
            p.scenario
                .steps
                .iter()
                .any(|step| step.names_rule(&rule.id))
        })
        .map(|p| p.scenario.id.clone())
        .collect();
    for (index, id) in named.iter().enumerate() {
        let label = if index == 0 { "scenarios" } else { "" };
        let _ = writeln!(text, "  {label:<10} {id}");
    }
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

fn explain_operation(rulebook: &Rulebook, id: &str, text: &mut String) {
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
        "operation {id}\n  {}\n  request    {} {path}\n  source     {}",
        operation.summary, operation.method, operation.source
    );
    for parameter in &operation.parameters {
        let required = if parameter.required {
            "required"
        } else {
            "optional"
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

fn unknown(rulebook: &Rulebook, planned: &[Planned<'_>], id: &str) -> Failure {
    let mut known: Vec<&str> = rulebook.rules.keys().map(String::as_str).collect();
    known.extend(rulebook.requests.keys().map(String::as_str));
    known.extend(rulebook.open_points.keys().map(String::as_str));
    known.extend(planned.iter().map(|p| p.scenario.id.as_str()));
    known.extend(Fault::ALL.iter().map(|f| f.id()));
    known.extend(Variant::ALL.iter().map(|v| v.id()));
    let names = glossary::names(rulebook);
    known.extend(names.iter().map(String::as_str));
    let near = conformant_base::text::did_you_mean(id, &known);
    let help = near.map_or_else(
        || "see `conformant list rules`".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    Failure::Usage(format!(
        "unknown id `{id}`: no rule, operation, unspecified behavior, scenario, fault, variation, hook, type, event, setting or cause has it; {help}"
    ))
}
