//! `response-format` with `parameter`: the response has the format that a parameter requests.
//!
//! `response-format`: JSON has no byte order mark and no duplicate members.
//!
//! Duplicates of documented fields are judged with the payload. This predicate judges all other members.
//!
//! `response-format` with `of`: a response documented as empty has no body.

use super::prelude::*;
use crate::evidence::Outcome;
use conformant_base::json::Note;

/// The body of an accepted response, or of a rejection whose body is documented, is written in the format that this path
/// parameter names, `json` or `xml`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestedFormat {
    /// Path parameter as the document spells it: `FORMAT`.
    parameter: String,
}

impl Predicate for RequestedFormat {
    fn subject(&self) -> Subject {
        Subject::Parameter(self.parameter.clone())
    }

    fn references(&self, references: &mut References) {
        references.any_parameter("parameter", &self.parameter);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for (index, seen) in context.seen.iter().enumerate() {
            let exchange = seen.exchange;
            let Some(asked) = exchange.sent.get(&self.parameter).map(as_text) else {
                continue;
            };
            let Outcome::Answered { response, .. } = &exchange.outcome else {
                continue;
            };
            // The bodies of other rejections are not documented, such as those of a rate limit.
            let is_documented = match seen.acceptance {
                Acceptance::Accepted => true,
                Acceptance::Rejected(_) => {
                    let mut payloads = context.evidence.payloads.iter();
                    matches!(response.status, 200..=299 | 400 | 422)
                        && payloads.any(|payload| payload.step == exchange.step)
                }
                Acceptance::Inconclusive(_) => false,
            };
            let named = asked == "xml" || asked == "json";
            if exchange.service != verdicts.rule.service
                || !is_documented
                || response.body.is_empty()
                || !named
            {
                continue;
            }
            // A byte order mark is not part of the text, and the width of characters does not matter here.
            let mut text = response.body.iter().filter(|b| b.is_ascii_graphic());
            let is_xml = text.next() == Some(&b'<');
            let got = if is_xml { "xml" } else { "json" };
            let fact = (got != asked).then(|| {
                let expected = format!("{asked}, as {} asks", self.parameter);
                Fact::new("format", expected, got.to_owned())
            });
            verdicts.conclude(Site::Exchange(index), fact);
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        Mutation::at(sites.last(), ["{}", "<a/>"].map(Change::Text))
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let rule = Example::for_rule("auth", json!({"parameter": "FORMAT"}));
        let shown = |format: &str| {
            let user = r#"{"success": true, "user": {"id": 1}, "message": ""}"#;
            rule.written("create-user", json!({"FORMAT": format}), user)
        };
        let refused = rule.refused("create-user", json!({"FORMAT": "xml"}));
        let error = "auth/user-create-error";
        vec![
            shown("json").passes(),
            shown("xml").fails(""),
            shown("yaml").not_judged(),
            refused.rejected_as(400, error, "<hash/>").passes(),
            refused.rejected_as(400, error, "{}").fails(""),
            refused.not_judged(),
            refused.rejected_as(429, error, "{}").not_judged(),
        ]
    }
}

/// JSON of the service has no byte order mark and names no member twice.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainJson {}

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
        Mutation::at(sites.last(), [Change::Marked])
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

/// The accepted response of this operation has no body.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyResponse {
    /// The operation with its service.
    of: OperationName,
}

impl Predicate for EmptyResponse {
    fn references(&self, references: &mut References) {
        references.operation("of", self.of.name());
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn fits(model: &Model<'_>) -> Option<Vec<String>> {
        Some(operations(model, |o| {
            o.does == Action::Ends && o.response.is_none()
        }))
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        for (index, seen) in verdicts.exchanges_of(self.of.id()) {
            let Outcome::Answered { response, .. } = &seen.exchange.outcome else {
                continue;
            };
            if seen.acceptance != Acceptance::Accepted {
                continue;
            }
            let wrong = (!response.body.is_empty()).then(|| {
                Fact::new(
                    "unexpected-body",
                    "no body",
                    format!("{} bytes", response.body.len()),
                )
            });
            verdicts.conclude(Site::Exchange(index), wrong);
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let rule = Example::for_rule("chat", json!({"of": "chat/delete-binding"}));
        let operation = "delete-binding";
        vec![
            rule.deleted(operation, json!({})).passes(),
            rule.written(operation, json!({}), "{}").fails(""),
            rule.refused(operation, json!({})).not_judged(),
        ]
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        Mutation::at(sites.last(), [Change::Text("{}")])
    }
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
