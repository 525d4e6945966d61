//! `configured`: a value is the one in the service's configuration.

use super::case::{Case, Fact, Judgement};
use super::echoes::as_text;
use crate::json;
use crate::rulebook::Rule;

/// Judges every representation of the kind; nothing where the configuration is silent.
pub(super) fn judge(
    case: &Case<'_>,
    rule: &Rule,
    kind: &str,
    at: &str,
    key: &str,
    judgement: &mut Judgement,
) {
    let pointer = format!("/{}/{}", rule.service, key.replace('.', "/"));
    let Some(wanted) = case.evidence.configured.pointer(&pointer) else {
        return;
    };
    for thing in case.of_kind(kind) {
        let Some(value) = thing.value(at) else {
            continue;
        };
        let finding = (as_text(value) != as_text(wanted)).then(|| {
            let fact = Fact {
                pointer: format!("{}{at}", thing.prefix),
                kind: "configured",
                expected: format!("{}, as {key} is configured", json::short(wanted)),
                actual: json::short(value),
                ..Fact::default()
            };
            case.finding(&rule.id, thing.exchange, fact)
        });
        judgement.conclude(&rule.id, finding);
    }
}
