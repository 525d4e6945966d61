//! Duplicate members of an object. Parsers differ in which value they keep, so both values are judged.
//!
//! The second one is also judged as an unlisted member. Not judged: objects with a partial table or with free member names.

use super::payload;
use conformant_base::json::{self, Note};
use conformant_rulebook::Rulebook;
use conformant_schema::{Schemas, Violation};
use serde_json::Value;

/// Violations by the earlier values, and violations by the presence of a second member. `known` are the violations of
/// the document as most parsers read it, with the later values.
pub(super) fn violations(
    rulebook: &Rulebook,
    schemas: &Schemas,
    kind: &str,
    value: &Value,
    notes: &[Note],
    known: &[Violation],
) -> Vec<Violation> {
    let twice: Vec<DuplicateMember<'_>> = notes
        .iter()
        .filter_map(DuplicateMember::from_note)
        .collect();
    if twice.is_empty() {
        return Vec::new();
    }
    let mut found = second_members(rulebook, schemas, kind, value, &twice);
    found.extend(
        earlier_values(rulebook, schemas, kind, value, &twice)
            .into_iter()
            .filter(|v| {
                !known
                    .iter()
                    .any(|k| k.rule == v.rule && k.pointer == v.pointer)
            }),
    );
    found
}

/// A duplicate member.
struct DuplicateMember<'a> {
    pointer: &'a str,
    /// Positions in the text.
    places: String,
    earlier: &'a Value,
}

impl<'a> DuplicateMember<'a> {
    fn from_note(note: &'a Note) -> Option<Self> {
        match note {
            Note::ByteOrderMark => None,
            Note::DuplicateKey {
                pointer,
                first,
                second,
                earlier,
            } => Some(Self {
                pointer,
                places: format!("at {first} and at {second}"),
                earlier,
            }),
        }
    }

    /// The object, and an unused name in it that represents the second member.
    fn alias(&self) -> Option<(&'a str, String)> {
        let (object, name) = self.pointer.rsplit_once('/')?;
        Some((object, format!("{} (again)", json::unescape(name))))
    }
}

fn second_members(
    rulebook: &Rulebook,
    schemas: &Schemas,
    kind: &str,
    value: &Value,
    twice: &[DuplicateMember<'_>],
) -> Vec<Violation> {
    let mut doubled = value.clone();
    for (object, alias) in twice.iter().filter_map(DuplicateMember::alias) {
        if let Some(Value::Object(members)) = doubled.pointer_mut(object) {
            members.insert(alias, Value::Null);
        }
    }
    let extra = payload::violations(rulebook, schemas, kind, &doubled);
    let of = |one: &DuplicateMember<'_>| {
        let (object, alias) = one.alias()?;
        let at = json::join(object, &alias);
        let unlisted = extra
            .iter()
            .find(|v| v.kind == "extra-field" && v.pointer == at)?;
        Some(Violation {
            pointer: one.pointer.to_owned(),
            kind: "duplicate-key",
            expected: "each member once".to_owned(),
            actual: format!("twice, {}", one.places),
            message: format!("duplicate key {} {}", one.pointer, one.places),
            ..unlisted.clone()
        })
    };
    twice.iter().filter_map(of).collect()
}

fn earlier_values(
    rulebook: &Rulebook,
    schemas: &Schemas,
    kind: &str,
    value: &Value,
    twice: &[DuplicateMember<'_>],
) -> Vec<Violation> {
    let mut as_others_read = value.clone();
    for one in twice {
        if let Some(slot) = as_others_read.pointer_mut(one.pointer) {
            *slot = one.earlier.clone();
        }
    }
    let mut found = payload::violations(rulebook, schemas, kind, &as_others_read);
    found.retain(|v| {
        twice
            .iter()
            .any(|one| json::within(one.pointer, &v.pointer))
    });
    for violation in &mut found {
        violation.message = format!("{} (the earlier of two values)", violation.message);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_base::json::{Limits, parse};

    /// Rule, pointer and kind of what is found in a flow with these members twice.
    fn found(extra: &str) -> Vec<String> {
        let flow = format!(
            r#"{{{extra} "sid": "FW{0}", "account_sid": "AC{0}", "friendly_name": "A flow",
            "status": "draft", "version": 1, "date_created": "2026-01-02T03:04:05Z",
            "date_updated": null, "url": "http://h/x", "links": {{"executions": "http://h/a", "executions": "http://h/b"}}}}"#,
            "0".repeat(32)
        );
        let rulebook = crate::load::embedded().expect("the embedded rulebook is sound");
        let parsed = parse(flow.as_bytes(), Limits::default()).expect("a document");
        let schemas = Schemas::default();
        let known = payload::violations(&rulebook, &schemas, "flow/flow", &parsed.value);
        assert!(known.is_empty(), "{known:?}");
        violations(
            &rulebook,
            &schemas,
            "flow/flow",
            &parsed.value,
            &parsed.notes,
            &known,
        )
        .into_iter()
        .map(|v| format!("{} {} {} {:?}", v.rule, v.pointer, v.kind, v.level))
        .collect()
    }

    #[test]
    fn a_duplicate_member_is_unlisted_and_both_values_are_judged() {
        assert_eq!(found("").len(), 0, "the table of links is partial");
        assert_eq!(
            found(r#""status": "published","#),
            ["flow/flow/no-other-fields /status duplicate-key Should"]
        );
        assert_eq!(
            found(r#""status": 7,"#),
            [
                "flow/flow/no-other-fields /status duplicate-key Should",
                "flow/flow/status /status type Must"
            ]
        );
    }
}
