//! Rules about a single payload: its schema, and predicates that need only the payload.
//!
//! Rules that also need configuration, clock, exchange or history are evaluated elsewhere. A place with a violation is not judged
//! twice.

use super::predicate::predicate_of;
use conformant_base::json;
use conformant_record::Level;
use conformant_rulebook::{Rule, Rulebook, event_version, items_at};
use conformant_schema::Schemas;
use serde_json::Value;

pub use conformant_schema::{Examination, Violation};

/// Validates a document as a representation of `kind`, including list items.
pub fn validate_payload(
    rulebook: &Rulebook,
    schemas: &Schemas,
    kind: &str,
    value: &Value,
) -> Examination {
    let examined = schemas.examine(rulebook, kind, value);
    with_written(examined, rulebook, schemas, kind, value)
}

/// As `validate_payload`, without the list of judged rules.
pub fn violations(
    rulebook: &Rulebook,
    schemas: &Schemas,
    kind: &str,
    value: &Value,
) -> Vec<Violation> {
    let outcome = Examination {
        judged: Vec::new(),
        violations: schemas.violations(rulebook, kind, value),
    };
    with_written(outcome, rulebook, schemas, kind, value).violations
}

/// Violations of the schema and of written rules about single representations.
fn with_written(
    mut outcome: Examination,
    rulebook: &Rulebook,
    schemas: &Schemas,
    kind: &str,
    value: &Value,
) -> Examination {
    let broken: Vec<String> = outcome
        .violations
        .iter()
        .filter(|v| v.level == Level::Must)
        .map(|v| v.pointer.clone())
        .collect();
    for (kind, prefix, value) in representations(rulebook, kind, value) {
        let Some(known) = rulebook.kinds.get(&kind) else {
            continue;
        };
        for rule in schemas.payload_rules(rulebook, &kind) {
            let Some(rule) = rulebook.rules.get(rule) else {
                continue;
            };
            let document = Document {
                schemas,
                root: &known.schema,
                rule,
                prefix: &prefix,
                value,
                broken: &broken,
            };
            document.evaluate(&mut outcome);
        }
    }
    evaluate_page_key(rulebook, kind, value, &mut outcome);
    // Rule ids name the event; the message adds the version.
    if let Some((event, version)) = event_version(kind) {
        for violation in &mut outcome.violations {
            violation
                .message
                .push_str(&format!(" ({event} version {version})"));
        }
    }
    outcome.judged.sort();
    outcome.judged.dedup();
    outcome
}

/// Whether `meta.key` of a page is the name of its array, where the documents state that name.
fn evaluate_page_key(rulebook: &Rulebook, kind: &str, value: &Value, outcome: &mut Examination) {
    let page = rulebook.kinds.get(kind).and_then(|k| k.page_of.as_ref());
    let Some((_, Some(key))) = page else { return };
    let mut operations = rulebook.operations();
    let Some(list) = operations.find(|o| o.response.as_deref() == Some(kind)) else {
        return;
    };
    let Some(given) = json::get(value, "/meta/key").filter(|_| !list.is_list_key_undocumented)
    else {
        return;
    };
    let (Some(given), true) = (given.as_str(), value.get(key).is_some()) else {
        return;
    };
    let rule = format!("{}/{}/key", list.service, list.id);
    let Some(level) = rulebook.rules.get(&rule).map(|rule| rule.level) else {
        return;
    };
    outcome.judged.push(rule.clone());
    if given != key {
        let (expected, actual) = (format!("`{key}`"), json::short(&Value::from(given)));
        outcome.violations.push(Violation {
            pointer: "/meta/key".to_owned(),
            rule,
            level,
            kind: "list-key",
            message: format!("expected {expected}, got {actual}"),
            expected,
            actual,
        });
    }
}

/// The document and, if it is a page, each of its items.
fn representations<'a>(
    rulebook: &Rulebook,
    kind: &str,
    value: &'a Value,
) -> Vec<(String, String, &'a Value)> {
    let mut found = vec![(kind.to_owned(), String::new(), value)];
    let page = rulebook.kinds.get(kind).and_then(|k| k.page_of.as_ref());
    if let Some((item, key)) = page {
        let key = key
            .as_deref()
            .or_else(|| json::get(value, "/meta/key").and_then(Value::as_str));
        let at = key.map(items_at);
        let list = at.and_then(|at| Some((json::get(value, &at)?.as_array()?, at)));
        if let Some((items, prefix)) = list {
            let items = items.iter().enumerate();
            found.extend(items.map(|(n, v)| (item.clone(), format!("{prefix}/{n}"), v)));
        }
    }
    found
}

/// One representation, for a rule about it alone.
#[derive(Debug)]
pub struct Document<'a> {
    pub(super) schemas: &'a Schemas,
    /// The schema of its resource type.
    pub(super) root: &'a Value,
    pub(super) rule: &'a Rule,
    prefix: &'a str,
    pub(super) value: &'a Value,
    broken: &'a [String],
}

impl Document<'_> {
    fn evaluate(&self, outcome: &mut Examination) {
        let found =
            predicate_of(self.rule).and_then(|predicate| predicate.payload_mismatches(self));
        let Some(wrong) = found else { return };
        outcome.judged.push(self.rule.id.clone());
        let level = self.rule.level;
        if matches!(level, Level::May | Level::Open) {
            return;
        }
        for (at, wrong) in wrong {
            outcome.violations.push(Violation {
                pointer: format!("{}{at}", self.prefix),
                rule: self.rule.id.clone(),
                level,
                kind: wrong.kind,
                expected: wrong.expected,
                actual: wrong.actual,
                message: wrong.message,
            });
        }
    }

    /// Whether the place, one above it or one below it has a violation.
    pub(super) fn is_broken(&self, at: &str) -> bool {
        let whole = format!("{}{at}", self.prefix);
        let mut broken = self.broken.iter();
        broken.any(|b| json::within(b, &whole) || json::within(&whole, b))
    }

    /// Whether the place or one above it has a violation.
    pub(super) fn is_under_broken(&self, at: &str) -> bool {
        let whole = format!("{}{at}", self.prefix);
        self.broken.iter().any(|b| json::within(b, &whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_base::sorted::SortedMap;
    use conformant_rulebook::{Check, Origin};
    use serde_json::json;

    fn rulebook(predicate: &str, parameters: &Value) -> Rulebook {
        let check = Check::from_json(crate::load::predicates(), predicate, parameters);
        let schema = json!({
            "type": "object",
            "properties": {
                "status": {"type": "string", "x-rule-id": "auth/thing/status"},
                "device": {"type": ["object", "null"], "x-rule-id": "auth/thing/device"},
            },
        });
        let rule = |id: &str, origin: Origin| Rule {
            id: id.to_owned(),
            service: "auth".to_owned(),
            level: Level::Must,
            basis: conformant_record::Basis::Stated,
            source: conformant_base::source::Source {
                document: "D1".parse().unwrap(),
                section: "Device".to_owned(),
                lines: vec![1],
            },
            says: String::new(),
            place: String::new(),
            origin,
        };
        let property = |name: &str| Origin::Property {
            kind: "auth/thing".to_owned(),
            pointer: format!("/{name}"),
        };
        let kind = conformant_rulebook::Kind {
            name: "auth/thing".to_owned(),
            schema,
            page_of: None,
            annotations: conformant_rulebook::annotations::Annotations::default(),
        };
        let rules = [
            rule("auth/thing/status", property("status")),
            rule("auth/thing/device", property("device")),
            rule("auth/thing/written", Origin::Written(check)),
        ];
        Rulebook {
            rules: rules.into_iter().collect(),
            kinds: SortedMap::from([(kind.name.clone(), kind)]),
            ..Rulebook::default()
        }
    }

    fn judged(predicate: &str, parameters: &Value, value: &Value) -> (bool, Vec<String>) {
        let rulebook = rulebook(predicate, parameters);
        let schemas = Schemas::default();
        let outcome = validate_payload(&rulebook, &schemas, "auth/thing", value);
        let judged = outcome.judged.iter().any(|r| r == "auth/thing/written");
        let found = outcome.violations.into_iter();
        (
            judged,
            found
                .map(|v| format!("{} {} {}", v.rule, v.pointer, v.kind))
                .collect(),
        )
    }

    #[test]
    fn what_broke_by_its_schema_is_not_judged_again() {
        let device = (false, vec!["auth/thing/device /device type".to_owned()]);
        let comes_and_goes = json!({
            "kind": "auth/thing", "field": "/device", "when": "/status", "is": ["approved"], "otherwise": "absent",
        });
        let early = json!({"status": "pending", "device": 1});
        assert_eq!(judged("field-presence", &comes_and_goes, &early), device);
        let opinion = json!({
            "kind": "auth/thing", "at": "/device", "schema": {"type": "object", "required": ["id"]},
        });
        assert_eq!(judged("conforms", &opinion, &json!({"device": 1})), device);
        // Null fits the kind's own schema, and not the second opinion.
        let (_, found) = judged("conforms", &opinion, &json!({"device": null}));
        assert_eq!(found, ["auth/thing/written /device null"]);
    }
}
