//! `response-format`: JSON has no byte order mark and no duplicate members.
//!
//! Duplicates of documented fields are judged with the payload. This predicate judges all other members.

use super::prelude::*;
use crate::acceptance::Acceptance;
use crate::evidence::Outcome;
use conformant_base::json::Note;

/// JSON of the service has no byte order mark and names no member twice.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlainJson {}

impl Predicate for PlainJson {
    fn references(&self, _: &mut References) {}

    fn needs(&self) -> &'static [Need] {
        &[Need::Document]
    }

    /// Judges every accepted response and every payload of the service.
    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for (index, seen) in context.seen.iter().enumerate() {
            let exchange = seen.exchange;
            let Outcome::Answered { response, .. } = &exchange.outcome else {
                continue;
            };
            let is_xml = response.body.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'<');
            let accepted = seen.acceptance == Acceptance::Accepted;
            let is_document = exchange.document().is_some() && !is_xml;
            if exchange.service == verdicts.rule.service && accepted && is_document {
                let site = |pointer: &str| Site::answer(index, pointer);
                evaluate(exchange.notes(), site, (index + 1, exchange.step), verdicts);
            }
        }
        for (payload, one) in context.evidence.payloads.iter().enumerate() {
            if one.kind.split('/').next() == Some(verdicts.rule.service.as_str()) {
                let site = |pointer: &str| Site::payload(payload, pointer);
                evaluate(&one.notes, site, (0, one.step), verdicts);
            }
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        vec![Mutation::new(sites.last().clone(), Change::Marked)]
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let rule = Example::for_rule("media", json!({}));
        let shown = |kind: &str| rule.payload(kind, json!({"sid": "ME1"}));
        vec![
            shown("media/media").passes(),
            shown("media/media").noted(&Note::ByteOrderMark).fails(""),
            shown("flow/flow").not_judged(),
        ]
    }
}

/// Judges one document by what was odd about its text.
fn evaluate(
    notes: &[Note],
    site: impl Fn(&str) -> Site,
    place: (usize, usize),
    verdicts: &mut Verdicts<'_>,
) {
    let mut is_plain = true;
    for note in notes {
        let (pointer, fact) = fact(note);
        if !is_reported(verdicts, place, note) {
            verdicts.conclude(site(pointer), Some(fact));
            is_plain = false;
        }
    }
    if is_plain {
        verdicts.conclude(site(""), None);
    }
}

/// Whether a table of fields has that member on its own account already.
fn is_reported(verdicts: &Verdicts<'_>, place: (usize, usize), note: &Note) -> bool {
    match note {
        Note::ByteOrderMark => false,
        Note::DuplicateKey { pointer, .. } => verdicts.findings().iter().any(|f| {
            f.kind == "duplicate-key" && f.pointer == *pointer && (f.exchange, f.step) == place
        }),
    }
}

fn fact(note: &Note) -> (&str, Fact) {
    let (pointer, kind, expected) = match note {
        Note::ByteOrderMark => ("", "byte-order-mark", "JSON from the first byte on"),
        Note::DuplicateKey { pointer, .. } => {
            (pointer.as_str(), "duplicate-key", "each member once")
        }
    };
    let fact = Fact {
        kind,
        expected: expected.to_owned(),
        actual: note.to_string(),
        message: note.to_string(),
    };
    (pointer, fact)
}

#[cfg(test)]
mod tests {
    use crate::evidence::{Evidence, Payload};
    use crate::judge;
    use conformant_base::json::{Limits, parse};

    use conformant_schema::Schemas;
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
        let rulebook = crate::load::embedded().expect("the embedded rulebook is sound");
        let judgment = judge(&rulebook, &Schemas::default(), &evidence);
        assert_eq!(judgment.tallies["flow/json/plain"].judged(), 1);
        let found = judgment.findings.iter();
        found
            .inspect(|f| assert_eq!(f.step, 7))
            .map(|f| format!("{} {} {} {}", f.rule, f.level.word(), f.pointer, f.kind))
            .collect()
    }

    #[test]
    fn a_mark_and_a_member_that_no_table_covers_are_reported_once() {
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
        let doubled = found("", r#"{}, "status": "published""#);
        assert_eq!(
            doubled,
            ["flow/flow/no-other-fields should /status duplicate-key"]
        );
    }
}
