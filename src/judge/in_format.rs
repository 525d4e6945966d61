//! `in-format`: an answer is written in the format that a parameter asks for.

use super::acceptance::Acceptance;
use super::case::{Case, Fact, Judgement};
use super::echoes::as_text;
use super::evidence::Outcome;
use crate::rulebook::Rule;

/// Judges every accepted answer with a body to a request of the service with that parameter.
pub(super) fn judge(case: &Case<'_>, rule: &Rule, parameter: &str, judgement: &mut Judgement) {
    for (index, seen) in case.seen.iter().enumerate() {
        let exchange = seen.exchange;
        let Some(asked) = exchange.sent.get(parameter).map(as_text) else {
            continue;
        };
        let Outcome::Answered { response, .. } = &exchange.outcome else {
            continue;
        };
        let accepted = seen.acceptance == Acceptance::Accepted;
        if exchange.service != rule.service || !accepted || response.body.is_empty() {
            continue;
        }
        let is_xml = response.body.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'<');
        let got = if is_xml { "xml" } else { "json" };
        if asked != "xml" && asked != "json" {
            continue;
        }
        let finding = (got != asked).then(|| {
            let fact = Fact {
                kind: "format",
                expected: format!("{asked}, as {parameter} asks"),
                actual: got.to_owned(),
                ..Fact::default()
            };
            case.finding(&rule.id, Some(index), fact)
        });
        judgement.conclude(&rule.id, finding);
    }
}
