//! Rules about one payload alone: its schema, and the predicates `conforms` and
//! `present-only-when`.
//!
//! What the configuration, the clock, an exchange or a history adds is judged elsewhere. A place that is broken already is not
//! judged a second time.

use crate::json;
use crate::rulebook::rules::Check;
use crate::rulebook::{Origin, Rule, Rulebook};
use crate::schema::Schemas;
use crate::verdict::Level;
use serde_json::Value;

pub use crate::schema::Violation;

/// What was concluded of one payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rules that it gave something to judge for, each once.
    pub judged: Vec<String>,
    /// By rule and pointer.
    pub violations: Vec<Violation>,
}

/// Judges a document as a representation of `kind`, list items included.
pub fn judge_payload(rulebook: &Rulebook, schemas: &Schemas, kind: &str, value: &Value) -> Outcome {
    let examined = schemas.examine(rulebook, kind, value);
    let mut outcome = Outcome {
        judged: examined.judged,
        violations: examined.violations,
    };
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
            let judging = Judging {
                schemas,
                root: &known.schema,
                rule,
                prefix: &prefix,
                value,
                broken: &broken,
            };
            judging.judge(&mut outcome);
        }
    }
    outcome.judged.sort();
    outcome.judged.dedup();
    outcome
}

/// The document itself and, where it is a page, each of its items.
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
            .or_else(|| value.pointer("/meta/key").and_then(Value::as_str));
        let list = key.and_then(|key| Some((key, value.get(key)?.as_array()?)));
        if let Some((key, items)) = list {
            let prefix = json::join("", key);
            let items = items.iter().enumerate();
            found.extend(items.map(|(n, v)| (item.clone(), format!("{prefix}/{n}"), v)));
        }
    }
    found
}

/// One rule over one representation.
struct Judging<'a> {
    schemas: &'a Schemas,
    root: &'a Value,
    rule: &'a Rule,
    prefix: &'a str,
    value: &'a Value,
    broken: &'a [String],
}

/// What is wrong at a place of the representation.
struct Wrong {
    at: String,
    kind: &'static str,
    expected: String,
    actual: String,
    message: String,
}

impl Judging<'_> {
    fn judge(&self, outcome: &mut Outcome) {
        let Origin::Written(check) = &self.rule.origin else {
            return;
        };
        let found = match check {
            Check::Conforms { at, schema, .. } => self.conforms(at, schema),
            Check::PresentOnlyWhen {
                field,
                when,
                is,
                may_be_absent,
                ..
            } => self.present_only_when(field, when, is, *may_be_absent),
            Check::Story {}
            | Check::Configured { .. }
            | Check::AtMostAfter { .. }
            | Check::Echoes { .. }
            | Check::Default { .. }
            | Check::OrderedBy { .. }
            | Check::FilteredBy { .. }
            | Check::Bounded { .. }
            | Check::InFormat { .. }
            | Check::PlainJson {}
            | Check::NoLongerThan { .. }
            | Check::SameResource { .. }
            | Check::UniqueWithin { .. }
            | Check::IncreasingWithin { .. }
            | Check::Transition { .. }
            | Check::NeverAfter { .. }
            | Check::OneSpelling { .. } => None,
        };
        let Some(wrong) = found else { return };
        outcome.judged.push(self.rule.id.clone());
        let level = self.rule.level;
        if matches!(level, Level::May | Level::Open) {
            return;
        }
        for wrong in wrong {
            outcome.violations.push(Violation {
                pointer: format!("{}{}", self.prefix, wrong.at),
                rule: self.rule.id.clone(),
                level,
                kind: wrong.kind,
                expected: wrong.expected,
                actual: wrong.actual,
                message: wrong.message,
            });
        }
    }

    /// True when that place, one above it or one below it is broken already.
    fn is_broken(&self, at: &str) -> bool {
        let whole = format!("{}{at}", self.prefix);
        let within = |outer: &str, inner: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.broken
            .iter()
            .any(|b| within(b, &whole) || within(&whole, b))
    }

    /// True when that very place or one above it is broken already.
    fn is_under_broken(&self, at: &str) -> bool {
        let whole = format!("{}{at}", self.prefix);
        self.broken.iter().any(|b| {
            whole
                .strip_prefix(b.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    fn conforms(&self, at: &str, schema: &Value) -> Option<Vec<Wrong>> {
        let mut places = json::expand(self.value, at);
        places.retain(|(at, _)| !self.is_under_broken(at));
        if places.is_empty() {
            return None;
        }
        let mut wrong = Vec::new();
        for (at, value) in places {
            for defect in self.schemas.misfits(&self.rule.id, schema, value) {
                let defect = defect.renamed_in(self.root, self.value, &at);
                if self.is_under_broken(&defect.pointer) {
                    continue;
                }
                wrong.push(Wrong {
                    message: defect.message(),
                    at: defect.pointer,
                    kind: defect.kind,
                    expected: defect.expected,
                    actual: defect.actual,
                });
            }
        }
        Some(wrong)
    }

    fn present_only_when(
        &self,
        field: &str,
        when: &str,
        is: &[Value],
        may_be_absent: bool,
    ) -> Option<Vec<Wrong>> {
        let decides = json::get(self.value, when)?;
        if self.is_broken(field) || self.is_broken(when) {
            return None;
        }
        let due = is.iter().any(|value| json::equal(value, decides));
        // Null says that nothing is there, in another spelling.
        let there = json::get(self.value, field).filter(|v| !v.is_null());
        let state = format!("{when} is {}", json::excerpt(decides, 60));
        let wrong = match (due, there) {
            (true, None) if !may_be_absent => Wrong {
                at: field.to_owned(),
                kind: "missing-field",
                expected: format!("present, as {state}"),
                actual: "nothing".to_owned(),
                message: format!("{field} is missing although {state}"),
            },
            (false, Some(value)) => Wrong {
                at: field.to_owned(),
                kind: "extra-field",
                expected: format!("absent, as {state}"),
                actual: json::excerpt(value, 160),
                message: format!("{field} is present although {state}"),
            },
            (true, _) | (false, None) => return Some(Vec::new()),
        };
        Some(vec![wrong])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn rulebook(check: Check) -> Rulebook {
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
            basis: crate::verdict::Basis::Stated,
            source: crate::source::Source {
                document: crate::source::Document::D1,
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
        let kind = crate::rulebook::Kind {
            name: "auth/thing".to_owned(),
            schema,
            page_of: None,
        };
        let rules = [
            rule("auth/thing/status", property("status")),
            rule("auth/thing/device", property("device")),
            rule("auth/thing/written", Origin::Written(check)),
        ];
        Rulebook {
            digest: String::new(),
            rules: rules.into_iter().map(|r| (r.id.clone(), r)).collect(),
            services: BTreeMap::new(),
            open_points: BTreeMap::new(),
            kinds: BTreeMap::from([(kind.name.clone(), kind)]),
            event_types: BTreeMap::new(),
        }
    }

    fn judged(check: Check, value: &Value) -> (bool, Vec<String>) {
        let rulebook = rulebook(check);
        let schemas = Schemas::default();
        let outcome = judge_payload(&rulebook, &schemas, "auth/thing", value);
        let judged = outcome.judged.iter().any(|r| r == "auth/thing/written");
        let found = outcome.violations.into_iter();
        (
            judged,
            found
                .map(|v| format!("{} {} {}", v.rule, v.pointer, v.kind))
                .collect(),
        )
    }

    const SILENT: Vec<String> = Vec::new();

    #[test]
    fn a_field_comes_and_goes_with_another() {
        let judge = |may_be_absent: bool, value: Value| {
            let check = Check::PresentOnlyWhen {
                kind: "auth/thing".to_owned(),
                field: "/device".to_owned(),
                when: "/status".to_owned(),
                is: vec![json!("approved")],
                may_be_absent,
            };
            judged(check, &value)
        };
        assert_eq!(
            judge(false, json!({"status": "approved", "device": {}})),
            (true, SILENT)
        );
        assert_eq!(judge(false, json!({"status": "pending"})), (true, SILENT));
        assert_eq!(
            judge(false, json!({"status": "pending", "device": null})),
            (true, SILENT)
        );
        assert_eq!(judge(true, json!({"status": "approved"})), (true, SILENT));
        assert_eq!(judge(false, json!({"device": {}})), (false, SILENT));
        let (_, found) = judge(false, json!({"status": "approved"}));
        assert_eq!(found, ["auth/thing/written /device missing-field"]);
        let (_, found) = judge(false, json!({"status": "pending", "device": {}}));
        assert_eq!(found, ["auth/thing/written /device extra-field"]);
        // Broken by its schema already: one defect, one finding.
        let (told, found) = judge(false, json!({"status": "pending", "device": 1}));
        assert_eq!(
            (told, found),
            (false, vec!["auth/thing/device /device type".to_owned()])
        );
    }

    #[test]
    fn a_second_opinion_about_a_field() {
        let judge = |value: Value| {
            let check = Check::Conforms {
                kind: "auth/thing".to_owned(),
                at: "/device".to_owned(),
                schema: json!({"type": "object", "required": ["id"]}),
            };
            judged(check, &value)
        };
        assert_eq!(judge(json!({"device": {"id": 1}})), (true, SILENT));
        assert_eq!(judge(json!({})), (false, SILENT));
        assert_eq!(
            judge(json!({"device": null})).1,
            ["auth/thing/written /device null"]
        );
        assert_eq!(
            judge(json!({"device": {}})).1,
            ["auth/thing/written /device/id missing-field"]
        );
        assert_eq!(
            judge(json!({"device": 1})),
            (false, vec!["auth/thing/device /device type".to_owned()])
        );
    }
}
