//! Evaluates rules: evidence and rulebook in, findings out.
//!
//! - No I/O, no waiting, no clock.
//! - One file per predicate.
//! - With insufficient evidence, a rule is not judged.

mod acceptance;
mod alternatives;
mod cache;
mod change;
pub mod clients;
mod compare;
mod context;
mod duplicates;
pub mod evidence;
#[cfg(test)]
mod examples;
mod former;
pub mod history;
mod listing;
pub mod load;
mod mutation;
mod observe;
mod operation;
mod parameter;
pub mod payload;
mod predicate;
mod predicates;
pub mod prove;
mod race;
mod reproduce;
mod rule_mutations;
mod sites;
mod statement;
mod verdicts;

pub use acceptance::{Acceptance, acceptance, acceptance_among, another_document, is_plain_error};
pub use cache::DocumentCache;
pub use change::{Change, Other};
use context::Detail;
pub use context::{Context, Representation, Seen};
pub use load::rules_schema;
pub use mutation::{Mutation, Undo};
pub use predicate::{Need, Predicate, predicate_of};
pub use reproduce::{Shell, UNKNOWN, WRONG, configured_word, curl, shell_word};
pub use rule_mutations::{
    closed_object_pointer, mutations_of, resolve_pointer, schema_violations, validate_site,
};
pub use sites::{Site, Sites};
pub use statement::holds;
use verdicts::Recorder;
pub use verdicts::{Fact, Instance, Judgment, Tallies, Tally, Vacuity, Verdicts};

use conformant_record::Level;
use conformant_rulebook::{Action, Rule, Rulebook};
use conformant_schema::Schemas;
use evidence::Evidence;
use std::collections::BTreeSet;

/// Evaluates all rules that apply to the evidence of one scenario.
pub fn judge(rulebook: &Rulebook, schemas: &Schemas, evidence: &Evidence) -> Judgment {
    let known = (None, Detail::Whole);
    collect_verdicts(Judgment::default(), rulebook, schemas, evidence, known)
}

/// As `judge`, with a maximum number of examples per rule. Fills the cache with the results of single documents.
pub fn judge_with_cache(
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
    cache: &DocumentCache,
    examples: usize,
) -> Judgment {
    let known = (Some(cache), Detail::Whole);
    let empty = Judgment::with_examples(examples);
    collect_verdicts(empty, rulebook, schemas, evidence, known)
}

/// Evaluates mutated evidence: only which rules are violated and where. Valid documents are not counted, open points are not
/// observed, and findings have no diff.
pub fn judge_mutated(
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
    cache: &DocumentCache,
) -> Judgment {
    let known = (Some(cache), Detail::Broken);
    collect_verdicts(Judgment::default(), rulebook, schemas, evidence, known)
}

/// Evaluates the rules about single representations and this one: only what is violated and where. Valid documents are not
/// counted, and findings have no diff.
pub fn judge_rule(
    rule: &Rule,
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
    cache: &DocumentCache,
) -> Judgment {
    let mut judgment = Judgment::default();
    let context = Context::with_cache(
        rulebook,
        schemas,
        evidence,
        (Some(cache), Detail::Broken),
        &mut judgment,
    );
    let mut verdicts = Recorder::new(&context, &mut judgment);
    // Steps also name written rules for acceptance and rejection.
    operation::evaluate(&context, &mut verdicts);
    match predicate_of(rule) {
        Some(predicate) => predicate.evaluate(&mut verdicts.on(rule)),
        None => {
            parameter::evaluate(&context, &mut verdicts);
            listing::evaluate(&context, &mut verdicts);
        }
    }
    discard_nonbinding(rulebook, &mut judgment);
    judgment
}

fn collect_verdicts(
    mut judgment: Judgment,
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
    (cache, detail): (Option<&DocumentCache>, Detail),
) -> Judgment {
    let known = (cache, detail);
    let context = Context::with_cache(rulebook, schemas, evidence, known, &mut judgment);
    let mut verdicts = Recorder::new(&context, &mut judgment);
    operation::evaluate(&context, &mut verdicts);
    parameter::evaluate(&context, &mut verdicts);
    listing::evaluate(&context, &mut verdicts);
    for rule in rulebook.rules.applicable_to(&context.selection()) {
        if let Some(predicate) = predicate_of(rule) {
            predicate.evaluate(&mut verdicts.on(rule));
        }
    }
    if cfg!(debug_assertions) && detail == Detail::Whole {
        assert_selection_is_complete(&context, &mut verdicts);
    }
    if detail == Detail::Whole {
        observe::observe(&context, &mut judgment);
    }
    for missed in &evidence.missed {
        match &missed.masked_by {
            Some(broken) => judgment.masked(&missed.rule, broken),
            None => judgment.inconclusive(&missed.rule, &missed.why),
        }
    }
    discard_nonbinding(rulebook, &mut judgment);
    judgment.findings.sort_by_key(|f| f.step);
    judgment
}

/// Panics if a rule that was not selected has a verdict: its `applies_to` is wrong.
fn assert_selection_is_complete(context: &Context<'_>, verdicts: &mut Recorder<'_>) {
    let judged: BTreeSet<&str> = {
        let bearing = context.rulebook.rules.applicable_to(&context.selection());
        bearing.map(|rule| rule.id.as_str()).collect()
    };
    for rule in context.rulebook.rules.in_order() {
        let passed_over = predicate_of(rule).filter(|_| !judged.contains(rule.id.as_str()));
        if let Some(predicate) = passed_over {
            let before = verdicts.tally(&rule.id).cloned();
            predicate.evaluate(&mut verdicts.on(rule));
            let after = verdicts.tally(&rule.id).cloned();
            assert_eq!(
                after, before,
                "{} applies to more evidence than its `applies_to` selects",
                rule.id
            );
        }
    }
}

/// Removes findings of rules that are unspecified or permitted behavior.
fn discard_nonbinding(rulebook: &Rulebook, judgment: &mut Judgment) {
    let binds = |id: &str| {
        let level = rulebook
            .rules
            .get(id)
            .map_or(Level::Must, |rule| rule.level);
        matches!(level, Level::Must | Level::Should)
    };
    judgment.findings.retain(|finding| binds(&finding.rule));
    for (id, tally) in &mut judgment.tallies {
        if tally.findings > 0 && !binds(id) {
            tally.findings = 0;
        }
    }
}

/// Whether a collection of events lacks some that may still come.
pub fn lacks_events(rulebook: &Rulebook, evidence: &Evidence) -> bool {
    let context = Context::without_validation(rulebook, evidence);
    let mut judgment = Judgment::default();
    let mut verdicts = Recorder::new(&context, &mut judgment);
    for rule in rulebook.rules.in_order() {
        let waits = rule.check().is_some_and(|check| {
            check.predicate == "event-emitted"
                || check.parameters.get("how") == Some(&serde_json::Value::from("each"))
        });
        if let Some(predicate) = predicate_of(rule).filter(|_| waits) {
            predicate.evaluate(&mut verdicts.on(rule));
        }
    }
    !judgment.findings.is_empty()
}

/// Lists that may lag behind the actions of a scenario: the first page of each, as an index into the exchanges. If the
/// target's clock was moved, its time does not show how long a list has lagged.
pub fn lagging(rulebook: &Rulebook, evidence: &Evidence, is_moved: bool) -> Vec<usize> {
    let is_list = |exchange: &evidence::Exchange| {
        let operation = rulebook.operation(&exchange.service, &exchange.operation);
        operation.is_some_and(|operation| operation.does == Action::Lists)
    };
    if !evidence.exchanges.iter().any(is_list) {
        return Vec::new();
    }
    let context = Context::without_validation(rulebook, evidence);
    context.history.lagging(&context, is_moved)
}

/// The resource types of all representations in the evidence, including pages and their metadata.
pub fn kinds_of(rulebook: &Rulebook, evidence: &Evidence) -> BTreeSet<String> {
    let mut kinds: BTreeSet<String> = evidence.payloads.iter().map(|p| p.kind.clone()).collect();
    for exchange in &evidence.exchanges {
        let operation = rulebook.operation(&exchange.service, &exchange.operation);
        let acceptance = acceptance(rulebook, exchange, operation);
        let shown = context::shown_type(exchange, operation, &acceptance);
        let shown = shown.and_then(|shown| rulebook.kinds.get(shown));
        let Some((kind, value)) = shown.zip(exchange.document()) else {
            continue;
        };
        kinds.insert(kind.name.clone());
        if let Some((item, key)) = &kind.page_of {
            kinds.insert(format!("{}/list-meta", exchange.service));
            let items = key
                .as_ref()
                .and_then(|k| value.pointer(&conformant_rulebook::items_at(k)))
                .and_then(serde_json::Value::as_array);
            if items.is_some_and(|i| !i.is_empty()) {
                kinds.insert(item.clone());
            }
        }
    }
    kinds
}
