//! The judge: evidence and rulebook in, findings out; pure.
//!
//! It sends nothing, waits for nothing and knows no clock. Each predicate is one file; with too
//! little evidence a predicate says nothing, and the rule stays not judged.

mod acceptance;
mod case;
pub mod evidence;
mod listing;
mod observe;
mod operation;
mod parameter;
pub mod payload;
mod reproduce;
mod story;

mod at_most_after;
mod bounded;
mod configured;
mod default;
mod duplicates;
mod echoes;
mod filtered_by;
mod in_format;
mod increasing_within;
mod never_after;
mod no_longer_than;
mod one_spelling;
mod ordered_by;
mod plain_json;
mod same_resource;
mod transition;
mod unique_within;

pub use acceptance::{Acceptance, acceptance};
pub use case::{Case, Judgement, Tally};
pub use story::holds;

use crate::rulebook::rules::Check;
use crate::rulebook::{Origin, Rule, Rulebook};
use crate::schema::Schemas;
use crate::verdict::Level;
use evidence::Evidence;
use std::collections::BTreeSet;

/// Judges the evidence of one story by every rule of the rulebook that it bears on.
pub fn judge(rulebook: &Rulebook, schemas: &Schemas, evidence: &Evidence) -> Judgement {
    let mut judgement = Judgement::default();
    let case = Case::new(rulebook, schemas, evidence, &mut judgement);
    operation::judge(&case, &mut judgement);
    parameter::judge(&case, &mut judgement);
    listing::judge(&case, &mut judgement);
    story::judge(&case, &mut judgement);
    for rule in rulebook.rules.values() {
        if let Origin::Written(check) = &rule.origin {
            written(&case, rule, check, &mut judgement);
        }
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
            Acceptance::Rejected(_) => operation.error.as_ref(),
            Acceptance::Inconclusive(_) => None,
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

/// One written rule over one case.
fn written(case: &Case<'_>, rule: &Rule, check: &Check, judgement: &mut Judgement) {
    match check {
        // Judged with the statement or the payload they belong to.
        Check::Story {} | Check::Conforms { .. } | Check::PresentOnlyWhen { .. } => {}
        Check::Configured { kind, at, key } => {
            configured::judge(case, rule, kind, at, key, judgement);
        }
        Check::AtMostAfter {
            kind,
            at,
            after,
            seconds,
        } => {
            at_most_after::judge(
                case,
                rule,
                kind,
                (at.as_deref(), after.as_deref()),
                *seconds,
                judgement,
            );
        }
        Check::InFormat { parameter } => in_format::judge(case, rule, parameter, judgement),
        Check::Echoes {
            operations,
            parameter,
            at,
            compare,
            or,
        } => {
            echoes::judge(
                case,
                rule,
                operations,
                parameter,
                &echoes::Way {
                    at,
                    compare: *compare,
                    or,
                },
                judgement,
            );
        }
        Check::Default {
            operations,
            parameter,
            at,
            value,
        } => {
            default::judge(case, rule, operations, parameter, at, value, judgement);
        }
        Check::OrderedBy {
            operation,
            at,
            direction,
        } => {
            ordered_by::judge(case, rule, operation, at, *direction, judgement);
        }
        Check::FilteredBy {
            operation,
            parameter,
            at,
            keeps,
        } => {
            filtered_by::judge(case, rule, operation, parameter, at, *keeps, judgement);
        }
        Check::Bounded {
            operations,
            at,
            at_most,
        } => {
            bounded::judge(case, rule, operations, at, *at_most, judgement);
        }
        Check::NoLongerThan {
            operations,
            at,
            size,
        } => {
            no_longer_than::judge(case, rule, operations, at, size, judgement);
        }
        Check::SameResource { kind, key, fields } => {
            same_resource::judge(case, rule, kind, key, fields, judgement);
        }
        Check::UniqueWithin {
            kind,
            key,
            at,
            scope,
        } => {
            unique_within::judge(case, rule, kind, key, at, scope, judgement);
        }
        Check::IncreasingWithin {
            operation,
            at,
            scope,
        } => {
            increasing_within::judge(case, rule, operation, at, scope, judgement);
        }
        Check::Transition {
            kind,
            key,
            at,
            steps,
        } => {
            transition::judge(case, rule, kind, key, at, steps, judgement);
        }
        Check::NeverAfter {
            after,
            operation,
            parameters,
        } => {
            never_after::judge(case, rule, after, operation, parameters, judgement);
        }
        Check::PlainJson {} => plain_json::judge(case, rule, judgement),
        Check::OneSpelling { kind, at, of } => {
            one_spelling::judge(case, rule, kind, at, of, judgement);
        }
    }
}
