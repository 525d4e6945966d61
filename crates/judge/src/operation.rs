//! Operation and credentials rules: expected acceptances and rejections, and no access without credentials.

use super::acceptance::Acceptance;
use super::context::{Context, Seen};
use super::evidence::Expectation;
use super::sites::Site;
use super::verdicts::{Fact, Recorder};
use conformant_rulebook::{Origin, Rule};
use std::collections::BTreeSet;

/// Evaluates the expectation of every exchange.
pub(super) fn evaluate(context: &Context<'_>, verdicts: &mut Recorder<'_>) {
    for (index, seen) in context.seen.iter().enumerate() {
        credentials(context, index, seen, verdicts);
        let (rule, wanted) = match &seen.exchange.expectation {
            Expectation::Either => {
                doubtful_success(context, seen, verdicts);
                continue;
            }
            // A failed setup step violates no rule; the scenario reports that it stopped there.
            Expectation::Accepted(_) if seen.exchange.setup => continue,
            Expectation::Accepted(rule) => (rule, true),
            Expectation::Rejected(rule) => (rule, false),
        };
        match &seen.acceptance {
            Acceptance::Inconclusive(why) => verdicts.inconclusive(rule, why),
            Acceptance::Accepted if !wanted => {
                let fact = accepted_fact(seen);
                if is_sound(context, seen, rule) {
                    verdicts.conclude(rule, Site::Exchange(index), Some(fact));
                }
            }
            Acceptance::Rejected(why) if wanted => {
                let status = seen.exchange.status().unwrap_or_default();
                let was = match status {
                    200..=299 => "was not answered as documented",
                    _ => "was refused",
                };
                let fact = Fact {
                    kind: "refused",
                    expected: "an accepted request: 2xx with the documented representation".into(),
                    actual: why.clone(),
                    message: format!("{} {was}: {why}", seen.exchange.operation),
                };
                verdicts.conclude(rule, Site::Exchange(index), Some(fact));
            }
            Acceptance::Accepted | Acceptance::Rejected(_) => {
                verdicts.conclude(rule, Site::Exchange(index), None);
            }
        }
    }
}

/// A success without the documented representation may be a refusal, so that it decides nothing about its operation.
fn doubtful_success(context: &Context<'_>, seen: &Seen<'_>, verdicts: &mut Recorder<'_>) {
    let exchange = seen.exchange;
    let Acceptance::Rejected(why) = &seen.acceptance else {
        return;
    };
    let rule = format!("{}/{}", exchange.service, exchange.operation);
    let service = context.rulebook.index.get(&exchange.service);
    let is_stated = exchange
        .document()
        .zip(service)
        .is_some_and(|(document, service)| service.rejection(document).is_some());
    let is_success = exchange.status().is_some_and(|s| (200..300).contains(&s));
    if is_success && !is_stated && context.rulebook.rules.contains_key(&rule) {
        verdicts.inconclusive(&rule, &format!("{why}, which may be a refusal"));
    }
}

/// Whether an accepted response can be counted as the acceptance of an invalid request. If a field violates its own rule here
/// but not in other responses, that field may be the rejection in another form. Caller identities are not fields of responses.
fn is_sound(context: &Context<'_>, seen: &Seen<'_>, rule: &str) -> bool {
    let rules = &context.rulebook.rules;
    let of_credentials = |rule: &Rule| matches!(rule.origin, Origin::Credentials { .. });
    if seen.broken.is_empty() || rules.get(rule).is_some_and(of_credentials) {
        return true;
    }
    let alike = context.seen.iter().filter(|other| {
        let of_it = &other.exchange;
        of_it.service == seen.exchange.service
            && of_it.operation == seen.exchange.operation
            && !matches!(of_it.expectation, Expectation::Rejected(_))
    });
    let always: BTreeSet<&String> = alike.flat_map(|other| &other.broken).collect();
    seen.broken.iter().all(|pointer| always.contains(pointer))
}

/// The rule `SERVICE/OPERATION/credentials`, for missing or wrong credentials.
fn credentials(context: &Context<'_>, index: usize, seen: &Seen<'_>, verdicts: &mut Recorder<'_>) {
    let Some(how) = seen.exchange.credentials.flaw() else {
        return;
    };
    let rule = format!(
        "{}/{}/credentials",
        seen.exchange.service, seen.exchange.operation
    );
    let expected_already = matches!(&seen.exchange.expectation,
        Expectation::Accepted(r) | Expectation::Rejected(r) if *r == rule);
    if expected_already || !context.rulebook.rules.contains_key(&rule) {
        return;
    }
    match &seen.acceptance {
        Acceptance::Accepted => {
            let fact = Fact {
                message: format!("accepted {how}"),
                ..accepted_fact(seen)
            };
            verdicts.conclude(&rule, Site::Exchange(index), Some(fact));
        }
        Acceptance::Rejected(_) => {
            verdicts.conclude(&rule, Site::Exchange(index), None);
        }
        Acceptance::Inconclusive(why) => verdicts.inconclusive(&rule, why),
    }
}

fn accepted_fact(seen: &Seen<'_>) -> Fact {
    let status = seen.exchange.status().unwrap_or_default();
    Fact {
        kind: "accepted",
        expected: "a refusal".into(),
        actual: format!("accepted with {status}"),
        message: format!(
            "{} was accepted, but must be rejected",
            seen.exchange.operation
        ),
    }
}
