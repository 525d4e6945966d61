//! What may have changed between two sights, and what did.

use super::History;
use super::identity::ThingId;
use super::sights::{Sight, When};
use crate::json;
use crate::judge::case::Case;
use crate::judge::compare::instant;
use serde_json::Value;

/// A field that two sights show.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Where.
    pub pointer: String,
    /// What the first one shows.
    pub before: Value,
    /// What the later one shows.
    pub after: Value,
}

impl History<'_> {
    /// Whether strangers have no way to it: this case made it, or is alone.
    pub fn is_own(&self, id: ThingId) -> bool {
        self.alone || self.things.get(id).is_ours
    }

    /// Whether something that was not refused may have touched a thing between two moments.
    pub fn may_have_changed(&self, id: ThingId, after: &When, before: &When) -> bool {
        let kind = self.things.get(id).kind;
        self.writes
            .iter()
            .filter(|write| !write.when.is_before(after) && !before.is_before(&write.when))
            .any(|write| write.may_touch(id, kind))
    }

    /// Fields that both sights show: those that no rule of their own hides, and that do not change
    /// without being named.
    pub fn compared(&self, case: &Case<'_>, first: &Sight<'_>, later: &Sight<'_>) -> Vec<Change> {
        let pair = first.representation(case).zip(later.representation(case));
        let Some((a, b)) = pair else {
            return Vec::new();
        };
        let about = |face: &str| case.rulebook.kinds.get(face).map(|kind| &kind.about);
        let derived = |pointer: &str| {
            let mut faces = [first.face, later.face].into_iter();
            faces.any(|face| about(face).is_some_and(|about| about.is_derived(pointer)))
        };
        let mut found = Vec::new();
        leaves(
            a.value,
            b.value,
            &mut String::new(),
            &mut |pointer, before, after| {
                let is_shown = a.value(pointer).is_some() && b.value(pointer).is_some();
                if is_shown && !derived(pointer) {
                    found.push(Change {
                        pointer: pointer.to_owned(),
                        before: before.clone(),
                        after: after.clone(),
                    });
                }
            },
        );
        found
    }

    /// Those of them that the two show in different ways. In two faces, addresses are left out.
    pub fn changes(&self, case: &Case<'_>, first: &Sight<'_>, later: &Sight<'_>) -> Vec<Change> {
        let mut found = self.compared(case, first, later);
        found.retain(Change::is_changed);
        found
    }
}

impl Change {
    /// Whether the two sights differ.
    pub fn is_changed(&self) -> bool {
        !same(&self.before, &self.after)
    }
}

/// Fields that both documents have; an object on both sides is looked into.
fn leaves(a: &Value, b: &Value, at: &mut String, visit: &mut dyn FnMut(&str, &Value, &Value)) {
    let (Value::Object(mine), Value::Object(others)) = (a, b) else {
        return visit(at, a, b);
    };
    let above = at.len();
    for (name, member) in mine {
        if let Some(other) = others.get(name) {
            json::push(at, name);
            leaves(member, other, at, visit);
            at.truncate(above);
        }
    }
}

/// Whether two values say the same: instants as instants, texts that are JSON as JSON, lists of
/// texts as sets, and what was never set however that is written.
pub fn same(a: &Value, b: &Value) -> bool {
    if json::equal(a, b) || (is_unset(a) && is_unset(b)) {
        return true;
    }
    match (a, b) {
        (Value::String(x), Value::String(y)) => {
            if let (Some(x), Some(y)) = (instant(a), instant(b)) {
                return x == y;
            }
            let parsed = json::parse_text(x).zip(json::parse_text(y));
            parsed.is_some_and(|(x, y)| (x.is_object() || x.is_array()) && json::equal(&x, &y))
        }
        (Value::Array(x), Value::Array(y)) => {
            let texts = |items: &[Value]| -> Option<Vec<String>> {
                let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
                let mut texts: Vec<String> = texts.collect::<Option<_>>()?;
                texts.sort();
                texts.dedup();
                Some(texts)
            };
            texts(x).is_some_and(|x| Some(x) == texts(y))
        }
        _ => false,
    }
}

/// XML writes nothing, an empty text and an empty object alike, and so do forms.
fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::same;
    use serde_json::json;

    #[test]
    fn values_are_compared_by_what_they_say() {
        for (a, b) in [
            (
                json!("2026-01-01T00:00:00Z"),
                json!("2026-01-01T00:00:00.0+00:00"),
            ),
            (json!("{\"a\":1,\"b\":2}"), json!("{ \"b\": 2, \"a\": 1 }")),
            (json!(["x", "y"]), json!(["y", "x"])),
            (json!(null), json!("")),
            (json!({}), json!(null)),
            (json!(1), json!(1.0)),
        ] {
            assert!(same(&a, &b), "{a} {b}");
        }
        for (a, b) in [
            (json!("2026-01-01T00:00:00Z"), json!("2026-01-01T00:00:01Z")),
            (json!("{}"), json!("{\"a\":1}")),
            (json!(["x"]), json!(["x", "y"])),
            (json!([1, 2]), json!([2, 1])),
            (json!("1"), json!("1.0")),
            (json!(null), json!(false)),
            (json!("a"), json!("A")),
        ] {
            assert!(!same(&a, &b), "{a} {b}");
        }
    }
}
