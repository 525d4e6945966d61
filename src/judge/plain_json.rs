//! `plain-json`: JSON that every reader takes alike: no byte order mark, no member named twice.
//!
//! What a table of fields says of a second member is judged with the payload; here are the members
//! that no table covers.

use super::acceptance::Acceptance;
use super::case::{Case, Fact, Judgement};
use super::evidence::Outcome;
use crate::json::Note;
use crate::rulebook::Rule;

/// Judges every accepted answer and every payload of the service.
pub(super) fn judge(case: &Case<'_>, rule: &Rule, judgement: &mut Judgement) {
    for (index, seen) in case.seen.iter().enumerate() {
        let exchange = seen.exchange;
        let Outcome::Answered { response, .. } = &exchange.outcome else {
            continue;
        };
        let is_xml = response.body.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'<');
        let accepted = seen.acceptance == Acceptance::Accepted;
        if exchange.service != rule.service || !accepted || is_xml || exchange.document().is_none()
        {
            continue;
        }
        judgement.judged(&rule.id);
        for note in exchange.notes() {
            let place = (index + 1, exchange.step);
            if !is_told(judgement, place, note) {
                judgement.add(case.finding(&rule.id, Some(index), fact(note)));
            }
        }
    }
    for payload in &case.evidence.payloads {
        if payload.kind.split('/').next() != Some(rule.service.as_str()) {
            continue;
        }
        judgement.judged(&rule.id);
        for note in &payload.notes {
            if !is_told(judgement, (0, payload.step), note) {
                let mut finding = case.finding(&rule.id, None, fact(note));
                finding.step = payload.step;
                judgement.add(finding);
            }
        }
    }
}

/// Whether a table of fields has that member on its own account already.
fn is_told(judgement: &Judgement, place: (usize, usize), note: &Note) -> bool {
    match note {
        Note::ByteOrderMark => false,
        Note::DuplicateKey { pointer, .. } => judgement.findings.iter().any(|f| {
            f.kind == "duplicate-key" && f.pointer == *pointer && (f.exchange, f.step) == place
        }),
    }
}

fn fact(note: &Note) -> Fact {
    let (pointer, kind, expected) = match note {
        Note::ByteOrderMark => (
            String::new(),
            "byte-order-mark",
            "JSON from the first byte on",
        ),
        Note::DuplicateKey { pointer, .. } => {
            (pointer.clone(), "duplicate-key", "each member once")
        }
    };
    Fact {
        pointer,
        kind,
        expected: expected.to_owned(),
        actual: note.to_string(),
        message: note.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use crate::json::{Limits, parse};
    use crate::judge::evidence::{Evidence, Payload};
    use crate::judge::judge;
    use crate::rulebook::Rulebook;
    use crate::schema::Schemas;
    use std::sync::Arc;

    /// Rule, pointer and kind of what is found in a flow that is written so.
    fn found(before: &str, links: &str) -> Vec<String> {
        let flow = format!(
            r#"{before}{{"sid": "FW{0}", "account_sid": "AC{0}", "friendly_name": "A flow",
            "status": "draft", "version": 1, "date_created": "2026-01-02T03:04:05Z",
            "date_updated": null, "url": "http://h/x", "links": {links}}}"#,
            "0".repeat(32)
        );
        let parsed = parse(flow.as_bytes(), Limits::default()).expect("a document");
        let payload = Payload {
            kind: "flow/flow".to_owned(),
            value: Arc::new(parsed.value),
            notes: parsed.notes,
            step: 7,
        };
        let evidence = Evidence {
            payloads: vec![payload],
            ..Evidence::default()
        };
        let rulebook = Rulebook::embedded().expect("the embedded rulebook is sound");
        let judgement = judge(&rulebook, &Schemas::default(), &evidence);
        assert_eq!(judgement.tallies["flow/json/plain"].judged, 1);
        let found = judgement.findings.iter();
        found
            .inspect(|f| assert_eq!(f.step, 7))
            .map(|f| format!("{} {} {} {}", f.rule, f.level, f.pointer, f.kind))
            .collect()
    }

    #[test]
    fn a_mark_and_a_member_that_no_table_covers_are_told_once() {
        let links = r#"{"executions": "http://h/a"}"#;
        assert_eq!(found("", links), [""; 0]);
        assert_eq!(
            found("\u{feff}", links),
            ["flow/json/plain should  byte-order-mark"]
        );
        assert_eq!(
            found(
                "",
                r#"{"executions": "http://h/a", "executions": "http://h/b"}"#
            ),
            ["flow/json/plain should /links/executions duplicate-key"]
        );
        let told = found("", r#"{}, "status": "published""#);
        assert_eq!(
            told,
            ["flow/flow/no-other-fields should /status duplicate-key"]
        );
    }
}
