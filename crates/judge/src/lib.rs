//! The judge: evidence and rulebook in, findings out; pure.
//!
//! It sends nothing, waits for nothing and knows no clock. Each predicate is one file; with too
//! little evidence a predicate says nothing, and the rule stays not judged.

mod acceptance;
mod alternatives;
mod breaking;
mod case;
mod change;
pub mod clients;
mod compare;
mod duplicates;
pub mod evidence;
#[cfg(test)]
mod examples;
mod former;
pub mod history;
mod listing;
pub mod load;
mod memo;
mod mutation;
mod observe;
mod operation;
mod parameter;
pub mod payload;
mod predicate;
pub mod predicates;
pub mod prove;
mod reproduce;
mod sites;
mod story;
mod verdicts;

pub use acceptance::{Acceptance, acceptance, is_plain_error};
pub use breaking::{closed_at, judge_site, mutations_of, of_property, place};
use case::Detail;
pub use case::{Case, Representation, Seen};
pub use change::{Change, Other};
pub use load::rules_schema;
pub use memo::Memo;
pub use mutation::{Mutation, Undo};
pub use predicate::{Need, Predicate, predicate_of};
pub use reproduce::{Shell, UNKNOWN, WRONG, configured_word, curl, shell_word};
pub use sites::{Site, Sites};
pub use story::holds;
pub use verdicts::{Fact, Instance, Judgement, Tallies, Tally, Trivial, Verdicts};

use conformant_record::Level;
use conformant_rulebook::{Does, Rule, Rulebook};
use conformant_schema::Schemas;
use evidence::Evidence;
use std::collections::BTreeSet;

/// Judges the evidence of one story by every rule of the rulebook that it bears on.
pub fn judge(rulebook: &Rulebook, schemas: &Schemas, evidence: &Evidence) -> Judgement {
    let known = (None, Detail::Whole);
    judge_into(Judgement::default(), rulebook, schemas, evidence, known)
}

/// The same, and keeps so many examples of each rule; the memory learns what was concluded of each document.
pub fn judge_known(
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
    memo: &Memo,
    examples: usize,
) -> Judgement {
    let known = (Some(memo), Detail::Whole);
    let empty = Judgement::with_examples(examples);
    judge_into(empty, rulebook, schemas, evidence, known)
}

/// Which rules are broken and where, for evidence of which most was judged before: sound documents are not counted, nothing
/// is observed, and findings show no difference.
pub fn judge_again(
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
    memo: &Memo,
) -> Judgement {
    let known = (Some(memo), Detail::Broken);
    judge_into(Judgement::default(), rulebook, schemas, evidence, known)
}

/// Judges by the rules about single representations and by this one alone. Tells what is broken and where: sound
/// documents are not counted, and findings show no difference.
pub fn judge_by(
    rule: &Rule,
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
    memo: &Memo,
) -> Judgement {
    let mut judgement = Judgement::default();
    let case = Case::remembering(
        rulebook,
        schemas,
        evidence,
        (Some(memo), Detail::Broken),
        &mut judgement,
    );
    let mut verdicts = Verdicts::new(&case, &mut judgement);
    // Steps name written rules, too, for what is accepted or refused.
    operation::judge(&case, &mut verdicts);
    match predicate_of(rule) {
        Some(predicate) => predicate.judge(&case, rule, &mut verdicts),
        None => {
            parameter::judge(&case, &mut verdicts);
            listing::judge(&case, &mut verdicts);
        }
    }
    only_binding(rulebook, &mut judgement);
    judgement
}

fn judge_into(
    mut judgement: Judgement,
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
    (memo, detail): (Option<&Memo>, Detail),
) -> Judgement {
    let known = (memo, detail);
    let case = Case::remembering(rulebook, schemas, evidence, known, &mut judgement);
    let mut verdicts = Verdicts::new(&case, &mut judgement);
    operation::judge(&case, &mut verdicts);
    parameter::judge(&case, &mut verdicts);
    listing::judge(&case, &mut verdicts);
    for rule in rulebook.rules.bearing_on(&case.came_by()) {
        if let Some(predicate) = predicate_of(rule) {
            predicate.judge(&case, rule, &mut verdicts);
        }
    }
    if cfg!(debug_assertions) {
        others_conclude_nothing(&case, &mut verdicts);
    }
    if detail == Detail::Whole {
        observe::observe(&case, &mut judgement);
    }
    for missed in &evidence.missed {
        match &missed.masked_by {
            Some(broken) => judgement.masked(&missed.rule, broken),
            None => judgement.inconclusive(&missed.rule, &missed.why),
        }
    }
    only_binding(rulebook, &mut judgement);
    judgement.findings.sort_by_key(|f| f.step);
    judgement
}

/// Panics where a rule that was passed over would have concluded something: what it says it bears on is wrong.
fn others_conclude_nothing(case: &Case<'_>, verdicts: &mut Verdicts<'_>) {
    let judged: BTreeSet<&str> = {
        let bearing = case.rulebook.rules.bearing_on(&case.came_by());
        bearing.map(|rule| rule.id.as_str()).collect()
    };
    for rule in case.rulebook.rules.in_order() {
        let passed_over = predicate_of(rule).filter(|_| !judged.contains(rule.id.as_str()));
        if let Some(predicate) = passed_over {
            let before = verdicts.tally(&rule.id).cloned();
            predicate.judge(case, rule, verdicts);
            let after = verdicts.tally(&rule.id).cloned();
            assert_eq!(after, before, "{} bears on more than it says", rule.id);
        }
    }
}

/// What the documents leave open or permit is observed and never accused.
fn only_binding(rulebook: &Rulebook, judgement: &mut Judgement) {
    let binds = |id: &str| {
        let level = rulebook
            .rules
            .get(id)
            .map_or(Level::Must, |rule| rule.level);
        matches!(level, Level::Must | Level::Should)
    };
    judgement.findings.retain(|finding| binds(&finding.rule));
    for (id, tally) in &mut judgement.tallies {
        if tally.findings > 0 && !binds(id) {
            tally.findings = 0;
        }
    }
}

/// Lists that may merely lag behind what was done in a story: the first page of each as an index
/// into its exchanges.
pub fn lagging(rulebook: &Rulebook, evidence: &Evidence) -> Vec<usize> {
    let is_list = |exchange: &evidence::Exchange| {
        let operation = rulebook.operation(&exchange.service, &exchange.operation);
        operation.is_some_and(|operation| operation.does == Does::Lists)
    };
    if !evidence.exchanges.iter().any(is_list) {
        return Vec::new();
    }
    let case = Case::unjudged(rulebook, evidence);
    case.history.lagging(&case)
}

/// The kinds of the representations in the evidence, pages and their metadata included.
pub fn kinds_of(rulebook: &Rulebook, evidence: &Evidence) -> BTreeSet<String> {
    let mut kinds: BTreeSet<String> = evidence.payloads.iter().map(|p| p.kind.clone()).collect();
    for exchange in &evidence.exchanges {
        let Some(operation) = rulebook.operation(&exchange.service, &exchange.operation) else {
            continue;
        };
        let shown = match acceptance(rulebook, exchange, Some(operation)) {
            Acceptance::Accepted => operation.response.as_ref(),
            Acceptance::Rejected(_) if !is_plain_error(exchange) => operation.error.as_ref(),
            Acceptance::Rejected(_) | Acceptance::Inconclusive(_) => None,
        };
        let Some((shown, value)) = shown.zip(exchange.document()) else {
            continue;
        };
        let Some(kind) = rulebook.kinds.get(shown) else {
            continue;
        };
        kinds.insert(shown.clone());
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
