//! What may have changed between two sights, and what did.

use super::identity::ThingId;
use super::sights::{Sight, When};
use super::writes::{Origin, Outcome, Write};
use super::{History, SETTLE};
use crate::case::Case;
use crate::compare::{as_text, instant, leaves_open};
use crate::evidence::Event;
use conformant_base::json;
use conformant_rulebook::Does;
use conformant_rulebook::annotations::{Annotations, Counts, Derived, Transition};
use serde_json::Value;
use std::time::Duration;

/// A field that two sights show.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<'a> {
    /// Where.
    pub pointer: String,
    /// What the first one shows.
    pub before: &'a Value,
    /// What the later one shows.
    pub after: &'a Value,
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

    /// Fields of a thing that both sights show: those that apply in both faces, that no rule of their own
    /// hides, and that nothing has moved without naming them.
    pub fn compared<'a>(
        &self,
        case: &Case<'a>,
        id: ThingId,
        first: &Sight<'_>,
        later: &Sight<'_>,
    ) -> Vec<Change<'a>> {
        let pair = first.representation(case).zip(later.representation(case));
        let Some((a, b)) = pair else {
            return Vec::new();
        };
        let about = |face: &str| Some(&case.rulebook.kinds.get(face)?.about);
        let between = Between {
            history: self,
            case,
            id,
            first,
            later,
            abouts: [about(first.face), about(later.face)],
        };
        let mut found = Vec::new();
        leaves(
            a.value,
            b.value,
            &mut String::with_capacity(json::POINTER_BYTES),
            &mut |pointer, before, after| {
                let is_shown = !a.hides(pointer) && !b.hides(pointer);
                let applies = first.face == later.face
                    || !(leaves_open(pointer, before) || leaves_open(pointer, after));
                if is_shown && applies && !between.may_move(pointer, before, after) {
                    found.push(Change {
                        pointer: pointer.to_owned(),
                        before,
                        after,
                    });
                }
            },
        );
        found
    }

    /// Whether something that moves a thing's derived field was done between two moments, or so shortly
    /// before them that the field may have followed within `lag`. What names another thing moves nothing.
    pub fn moved_by(
        &self,
        case: &Case<'_>,
        id: ThingId,
        by: &[String],
        (from, until): (&When, &When),
        lag: Duration,
    ) -> bool {
        // Operations are named with their service, what people do is not.
        if case.evidence.deeds_unseen && by.iter().any(|by| !by.contains('/')) {
            return true;
        }
        self.writes.iter().any(|write| {
            let since = from.span.began.duration_since(write.when.span.ended);
            let is_over = write.when.is_before(from) && since.unsigned_abs() >= lag;
            let is_between = !is_over && !until.is_before(&write.when);
            is_between
                && write.outcome != Outcome::Refused
                && by.contains(&done_by(case, write))
                && self.names(case, write, id)
        })
    }

    /// Whether a write says which thing it is about, by its key or name or by those of what it
    /// is known by.
    fn names(&self, case: &Case<'_>, write: &Write<'_>, id: ThingId) -> bool {
        let sent = |text: &str| match write.origin {
            Origin::Exchange(index) => {
                let mut sent = case.seen[index].exchange.sent.values();
                sent.any(|value| says(value, text))
            }
            Origin::Hook(event) => match case.evidence.events.get(event) {
                Some(Event::Hook(call)) => says(&call.arguments, text),
                Some(Event::Exchange(_) | Event::Delivery(_) | Event::Passed(_)) | None => false,
            },
        };
        if write.thing == Some(id) || self.is_known_by(id, sent) {
            return true;
        }
        let thing = self.things.get(id);
        if !thing.key.contains('\n') {
            return false;
        }
        // A write to a member says whose it is by that member.
        let is_written = |text: &str| {
            let written = write.thing.into_iter();
            let mut names = written.flat_map(|written| self.things.names_of(written));
            names.any(|name| name == text)
        };
        let said = |text: &str| sent(text) || is_written(text);
        thing.key.split('\n').all(|part| {
            let mut parents = thing.parents.iter();
            let parent = parents.find(|&&parent| self.things.get(parent).key == part);
            // Who was never seen may be called by any name.
            let may_be = |parent: ThingId| {
                self.is_known_by(parent, said) || self.things.names_of(parent).next().is_none()
            };
            said(part) || parent.is_none_or(|&parent| may_be(parent))
        })
    }

    /// Whether a thing's key or one of its names was said.
    fn is_known_by(&self, id: ThingId, said: impl Fn(&str) -> bool) -> bool {
        said(&self.things.get(id).key) || self.things.names_of(id).any(|name| said(name))
    }
}

/// Two sights of a thing, and what may have moved it in between.
struct Between<'h, 'c> {
    history: &'h History<'h>,
    case: &'c Case<'c>,
    id: ThingId,
    first: &'h Sight<'h>,
    later: &'h Sight<'h>,
    /// What is known of the kinds that they show it as.
    abouts: [Option<&'c Annotations>; 2],
}

impl Between<'_, '_> {
    /// Whether a field may have moved without being named.
    fn may_move(&self, pointer: &str, before: &Value, after: &Value) -> bool {
        self.abouts.into_iter().flatten().any(|about| {
            let mut counts = about.counts.iter();
            if let Some((_, counts)) = counts.find(|(at, _)| json::within(at, pointer)) {
                return self.counts(counts);
            }
            let derived = about.derived_at(pointer);
            if derived.is_some_and(Derived::is_free) {
                return true;
            }
            if same(before, after) {
                return false;
            }
            if self.history.deeds_unseen && self.is_beyond_requests(pointer) {
                return true;
            }
            derived.is_some_and(|how| self.derives(how, before))
                || about
                    .steps_at(pointer)
                    .is_some_and(|steps| self.steps(steps, before, after))
        })
    }

    /// Whether people set a field of things that they change, and no request does.
    fn is_beyond_requests(&self, pointer: &str) -> bool {
        let kind = self.history.things.get(self.id).kind;
        let services = self.case.rulebook.services.values();
        let operations = services.flat_map(|service| service.operations.values());
        let ours = operations.filter(|o| o.response.as_deref() == Some(self.later.face));
        let mut parameters = ours.flat_map(|operation| &operation.parameters);
        let is_set = parameters.any(|parameter| {
            let echo = parameter.echo.as_ref();
            echo.is_some_and(|echo| json::within(&echo.at, pointer))
        });
        self.case.rulebook.index.does(Does::Changes, kind) && !is_set
    }

    fn derives(&self, how: &Derived, before: &Value) -> bool {
        let is_across = how.across.as_ref().is_some_and(|name| {
            let sent = |sight: &Sight<'_>| {
                let exchange = self.case.seen[sight.exchange?].exchange;
                exchange.sent.get(name)
            };
            let is_other_face = self.first.face != self.later.face;
            is_other_face || sent(self.first).is_none() || sent(self.first) != sent(self.later)
        });
        is_across || (how.once && is_unset(before)) || self.moved_by(&how.by)
    }

    fn moved_by(&self, by: &[String]) -> bool {
        let moments = (&self.first.when, &self.later.when);
        self.history
            .moved_by(self.case, self.id, by, moments, SETTLE)
    }

    /// Whether anything that is counted may have come or gone, or the thing itself was touched.
    fn counts(&self, counts: &Counts) -> bool {
        let (first, later) = (&self.first.when, &self.later.when);
        self.history.writes.iter().any(|write| {
            !write.when.is_settled(first)
                && !later.is_before(&write.when)
                && write.outcome != Outcome::Refused
                && (write.kind == counts.of
                    || write.kind.is_empty()
                    || self.history.names(self.case, write, self.id))
        })
    }

    /// Whether the steps that were taken lead from one state to the other.
    fn steps(&self, steps: &[Transition], before: &Value, after: &Value) -> bool {
        let taken =
            |step: &&Transition| step.by == "time" || self.moved_by(std::slice::from_ref(&step.by));
        let taken: Vec<&Transition> = steps.iter().filter(taken).collect();
        let mut reached: Vec<&str> = before.as_str().into_iter().collect();
        let mut next = 0;
        while let Some(state) = reached.get(next).copied() {
            for step in &taken {
                if step.from == state && !reached.contains(&step.to.as_str()) {
                    reached.push(&step.to);
                }
            }
            next += 1;
        }
        after.as_str().is_some_and(|after| reached.contains(&after))
    }
}

/// The operation with its service, or the hook, that did something.
fn done_by(case: &Case<'_>, write: &Write<'_>) -> String {
    match write.origin {
        Origin::Exchange(index) => {
            let exchange = case.seen[index].exchange;
            format!("{}/{}", exchange.service, exchange.operation)
        }
        Origin::Hook(event) => match case.evidence.events.get(event) {
            Some(Event::Hook(call)) => call.name.clone(),
            Some(Event::Exchange(_) | Event::Delivery(_) | Event::Passed(_)) | None => {
                String::new()
            }
        },
    }
}

/// Whether a text stands within a value, or a number that is written so.
fn says(value: &Value, text: &str) -> bool {
    match value {
        Value::String(said) => said == text,
        Value::Number(number) => number.as_str() == text,
        Value::Array(items) => items.iter().any(|item| says(item, text)),
        Value::Object(members) => members.values().any(|member| says(member, text)),
        Value::Null | Value::Bool(_) => false,
    }
}

impl Change<'_> {
    /// Whether the two sights differ.
    pub fn is_changed(&self) -> bool {
        !same(self.before, self.after)
    }
}

/// Fields that both documents have; an object on both sides is looked into.
fn leaves<'a>(
    a: &'a Value,
    b: &'a Value,
    at: &mut String,
    visit: &mut dyn FnMut(&str, &'a Value, &'a Value),
) {
    let (Value::Object(mine), Value::Object(others)) = (a, b) else {
        return visit(at, a, b);
    };
    let above = at.len();
    for (name, member) in mine {
        if let Some(other) = json::member(others, name) {
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
        // What no schema names has no type in XML: it is a text there, and a number in JSON. Where one
        // does, its own rule says which of the two is wrong.
        (Value::String(text), scalar @ (Value::Number(_) | Value::Bool(_)))
        | (scalar @ (Value::Number(_) | Value::Bool(_)), Value::String(text)) => {
            as_text(scalar) == *text
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
