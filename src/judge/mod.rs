//! The judge: evidence and rulebook in, findings out; pure.
//!
//! It sends nothing, waits for nothing and knows no clock. Each predicate is one file; with too
//! little evidence a predicate says nothing, and the rule stays not judged.

mod acceptance;
mod case;
mod catalogue;
mod compare;
mod duplicates;
pub mod evidence;
mod examples;
pub mod history;
mod listing;
mod mutation;
mod observe;
mod operation;
mod parameter;
pub mod payload;
mod predicate;
pub(crate) mod predicates;
mod reproduce;
mod sites;
mod story;
mod verdicts;

pub use acceptance::{Acceptance, acceptance, is_plain_error};
pub use case::{Case, Representation, Seen};
pub use catalogue::rules_schema;
pub use examples::{ComesTo, Example, Scene};
pub use mutation::{Change, Mutation};
pub use predicate::{Loaded, Need, Predicate};
pub use reproduce::{Shell, UNKNOWN, WRONG, shell_word};
pub use sites::{Site, Sites};
pub use story::holds;
pub use verdicts::{Fact, Instance, Judged, Judgement, Tally, Trivial, Verdicts};

use crate::rulebook::{Rule, Rulebook};
use crate::schema::Schemas;
use crate::verdict::Level;
use evidence::Evidence;
use std::collections::BTreeSet;

/// Judges the evidence of one story by every rule of the rulebook that it bears on.
pub fn judge(rulebook: &Rulebook, schemas: &Schemas, evidence: &Evidence) -> Judgement {
    judge_into(Judgement::default(), rulebook, schemas, evidence)
}

/// The same, and keeps every instance.
pub fn judge_instances(rulebook: &Rulebook, schemas: &Schemas, evidence: &Evidence) -> Judgement {
    judge_into(Judgement::with_instances(), rulebook, schemas, evidence)
}

fn judge_into(
    mut judgement: Judgement,
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
) -> Judgement {
    let case = Case::new(rulebook, schemas, evidence, &mut judgement);
    let mut verdicts = Verdicts::new(&case, &mut judgement);
    operation::judge(&case, &mut verdicts);
    parameter::judge(&case, &mut verdicts);
    listing::judge(&case, &mut verdicts);
    for (rule, predicate) in in_order(rulebook) {
        predicate.judge(&case, rule, &mut verdicts);
    }
    observe::observe(&case, &mut judgement);
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

/// Written rules in the order of their predicates: what an earlier one accuses is hidden from those
/// behind it.
fn in_order(rulebook: &Rulebook) -> Vec<(&Rule, &Loaded)> {
    let rules = rulebook.rules.values();
    let mut written: Vec<_> = rules.filter_map(|r| Some((r, Loaded::of(r)?))).collect();
    written.sort_by_key(|(_, predicate)| predicate.rank());
    written
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
        if !binds(id) {
            tally.findings = 0;
        }
    }
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
                .and_then(|k| value.get(k))
                .and_then(serde_json::Value::as_array);
            if items.is_some_and(|i| !i.is_empty()) {
                kinds.insert(item.clone());
            }
        }
    }
    kinds
}
