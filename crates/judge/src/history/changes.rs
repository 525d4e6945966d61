//! Changes between two observations: what may have changed, and what did.

use super::identity::ResourceId;
use super::observations::{Moment, Observation};
use super::writes::{Origin, Outcome, Write};
use super::{History, SETTLE};
use crate::compare::{as_text, instant, is_unspecified};
use crate::context::Context;
use conformant_base::json;
use conformant_rulebook::Action;
use conformant_rulebook::annotations::{Annotations, Counts, Derived, Transition};
use serde_json::Value;
use std::time::Duration;

/// A field in two observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<'a> {
    pub pointer: String,
    pub before: &'a Value,
    pub after: &'a Value,
}

impl History<'_> {
    /// Whether no other client can reach it: this scenario created it, or is the only writer.
    pub fn is_exclusive(&self, id: ResourceId) -> bool {
        self.alone || self.resources.get(id).is_ours
    }

    /// The write that created a resource.
    pub fn creation_of(&self, id: ResourceId) -> Option<&Write<'_>> {
        Some(&self.writes[self.resources.get(id).made?])
    }

    /// The writes that may have changed a resource between two moments, including these.
    pub fn writes_between<'h>(
        &'h self,
        id: ResourceId,
        (after, until): (&'h Moment, &'h Moment),
    ) -> impl Iterator<Item = &'h Write<'h>> {
        let kind = self.resources.get(id).kind;
        self.writes.iter().filter(move |write| {
            !write.moment.is_before(after)
                && !until.is_before(&write.moment)
                && write.may_touch(id, kind)
        })
    }

    /// Fields of a resource in both observations: those that apply to both representations, violate no rule, and were not
    /// changed indirectly in between.
    pub fn compared<'a>(
        &self,
        context: &Context<'a>,
        id: ResourceId,
        first: &Observation<'_>,
        later: &Observation<'_>,
    ) -> Vec<Change<'a>> {
        let pair = first
            .representation(context)
            .zip(later.representation(context));
        let Some((a, b)) = pair else {
            return Vec::new();
        };
        let about = |shown_type: &str| Some(&context.rulebook.kinds.get(shown_type)?.annotations);
        let between = Interval {
            history: self,
            context,
            id,
            first,
            later,
            abouts: [about(first.shown_type), about(later.shown_type)],
        };
        let mut found = Vec::new();
        leaves(
            a.value,
            b.value,
            &mut String::with_capacity(json::POINTER_BYTES),
            &mut |pointer, before, after| {
                let is_shown = !a.hides(pointer) && !b.hides(pointer);
                let applies = first.shown_type == later.shown_type
                    || !(is_unspecified(pointer, before) || is_unspecified(pointer, after));
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

    /// Whether an action between two moments may have changed a derived field, or one so shortly before them that the
    /// field follows within `lag`. Actions on other resources do not count.
    pub fn moved_by(
        &self,
        context: &Context<'_>,
        id: ResourceId,
        by: &[String],
        (from, until): (&Moment, &Moment),
        lag: Duration,
    ) -> bool {
        // Operations are named with their service, hooks are not.
        if context.evidence.has_unobserved_actions && by.iter().any(|by| !by.contains('/')) {
            return true;
        }
        self.writes.iter().any(|write| {
            let is_between = !write.moment.is_over(from, lag) && !until.is_before(&write.moment);
            is_between
                && write.outcome != Outcome::Refused
                && by.contains(&done_by(context, write))
                && self.names(context, write, id)
        })
    }

    /// Whether a write names the resource that it changes: by its key or name, or by those of its other
    /// representations.
    fn names(&self, context: &Context<'_>, write: &Write<'_>, id: ResourceId) -> bool {
        let sent = |text: &str| match write.origin {
            Origin::Exchange(index) => {
                let mut sent = context.seen[index].exchange.sent.values();
                sent.any(|value| says(value, text))
            }
            Origin::Hook(event) => {
                let call = context.evidence.hook(event);
                call.is_some_and(|call| says(&call.arguments, text))
            }
        };
        if write.resource == Some(id) || self.is_known_by(id, sent) {
            return true;
        }
        let resource = self.resources.get(id);
        if !resource.key.contains('\n') {
            return false;
        }
        // A write to a member names its identity by that member.
        let is_written = |text: &str| {
            let written = write.resource.into_iter();
            let mut names = written.flat_map(|written| self.resources.names_of(written));
            names.any(|name| name == text)
        };
        let said = |text: &str| sent(text) || is_written(text);
        resource.key.split('\n').all(|part| {
            let mut parents = resource.parents.iter();
            let parent = parents.find(|&&parent| self.resources.get(parent).key == part);
            // A resource that was never observed may have any name.
            let may_be = |parent: ResourceId| {
                self.is_known_by(parent, said) || self.resources.names_of(parent).next().is_none()
            };
            said(part) || parent.is_none_or(|&parent| may_be(parent))
        })
    }

    /// Whether the key or a name of a resource was sent.
    fn is_known_by(&self, id: ResourceId, said: impl Fn(&str) -> bool) -> bool {
        said(&self.resources.get(id).key) || self.resources.names_of(id).any(|name| said(name))
    }
}

/// Two observations of a resource, and the actions in between.
struct Interval<'h, 'c> {
    history: &'h History<'h>,
    context: &'c Context<'c>,
    id: ResourceId,
    first: &'h Observation<'h>,
    later: &'h Observation<'h>,
    /// Annotations of the two resource types.
    abouts: [Option<&'c Annotations>; 2],
}

impl Interval<'_, '_> {
    /// Whether a field may have changed without being named.
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
            if is_equivalent(before, after) {
                return false;
            }
            if self.history.has_unobserved_actions && self.is_beyond_requests(pointer) {
                return true;
            }
            derived.is_some_and(|how| self.derives(how, before))
                || about
                    .steps_at(pointer)
                    .is_some_and(|steps| self.steps(steps, before, after))
        })
    }

    /// Whether a field is set by people through hooks, and by no request.
    fn is_beyond_requests(&self, pointer: &str) -> bool {
        let kind = self.history.resources.get(self.id).kind;
        let operations = self.context.rulebook.operations();
        let ours = operations.filter(|o| o.response.as_deref() == Some(self.later.shown_type));
        let mut parameters = ours.flat_map(|operation| &operation.parameters);
        let is_set = parameters.any(|parameter| {
            let echo = parameter.echo.as_ref();
            echo.is_some_and(|echo| json::within(&echo.at, pointer))
        });
        self.context.rulebook.index.does(Action::Changes, kind) && !is_set
    }

    fn derives(&self, how: &Derived, before: &Value) -> bool {
        let is_across = how.across.as_ref().is_some_and(|name| {
            let sent = |observation: &Observation<'_>| {
                let exchange = self.context.seen[observation.exchange?].exchange;
                exchange.sent.get(name)
            };
            let has_other_type = self.first.shown_type != self.later.shown_type;
            has_other_type || sent(self.first).is_none() || sent(self.first) != sent(self.later)
        });
        is_across || (how.once && is_unset(before)) || self.moved_by(&how.by)
    }

    fn moved_by(&self, by: &[String]) -> bool {
        let moments = (&self.first.moment, &self.later.moment);
        self.history
            .moved_by(self.context, self.id, by, moments, SETTLE)
    }

    /// Whether counted resources, or the resource itself, may have been created, changed or deleted.
    fn counts(&self, counts: &Counts) -> bool {
        let (first, later) = (&self.first.moment, &self.later.moment);
        self.history.writes.iter().any(|write| {
            !write.moment.is_settled(first)
                && !later.is_before(&write.moment)
                && write.outcome != Outcome::Refused
                && (write.kind.is_none_or(|kind| kind == counts.of)
                    || self.history.names(self.context, write, self.id))
        })
    }

    /// Whether the documented transitions in between lead from one state to the other.
    fn steps(&self, steps: &[Transition], before: &Value, after: &Value) -> bool {
        let taken =
            |step: &&Transition| step.by == "time" || self.moved_by(std::slice::from_ref(&step.by));
        let taken: Vec<&Transition> = steps.iter().filter(taken).collect();
        let taken = || {
            taken
                .iter()
                .map(|step| (step.from.as_str(), step.to.as_str()))
        };
        let ends = before.as_str().zip(after.as_str());
        ends.is_some_and(|(before, after)| can_reach(before, after, taken))
    }
}

/// The operation with its service, or the hook, of a write.
fn done_by(context: &Context<'_>, write: &Write<'_>) -> String {
    match write.origin {
        Origin::Exchange(index) => {
            let exchange = context.seen[index].exchange;
            format!("{}/{}", exchange.service, exchange.operation)
        }
        Origin::Hook(event) => {
            let call = context.evidence.hook(event);
            call.map_or_else(String::new, |call| call.name.clone())
        }
    }
}

/// Whether a text occurs in a value, also as a number.
fn says(value: &Value, text: &str) -> bool {
    match value {
        Value::String(said) => said == text,
        Value::Number(number) => number.as_str() == text,
        Value::Array(items) => items.iter().any(|item| says(item, text)),
        Value::Object(members) => members.values().any(|member| says(member, text)),
        Value::Null | Value::Bool(_) => false,
    }
}

/// Whether these steps lead from one state to another; each state leads to itself.
pub(crate) fn can_reach<'s, I: Iterator<Item = (&'s str, &'s str)>>(
    from: &str,
    to: &str,
    steps: impl Fn() -> I,
) -> bool {
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(state) = reached.get(next).copied() {
        for (_, after) in steps().filter(|(before, _)| *before == state) {
            if !reached.contains(&after) {
                reached.push(after);
            }
        }
        next += 1;
    }
    reached.contains(&to)
}

impl Change<'_> {
    /// Whether the two observations differ.
    pub fn is_changed(&self) -> bool {
        !is_equivalent(self.before, self.after)
    }
}

/// Visits fields of both documents; objects on both sides are compared member by member.
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

/// Whether two values are equivalent: instants as instants, JSON texts as JSON, lists of texts as sets, and all
/// spellings of an unset value.
pub fn is_equivalent(a: &Value, b: &Value) -> bool {
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
        // Without a schema, a value has no type in XML: a text there may be a number in JSON. With one,
        // its own rule judges the type.
        (Value::String(text), scalar @ (Value::Number(_) | Value::Bool(_)))
        | (scalar @ (Value::Number(_) | Value::Bool(_)), Value::String(text)) => {
            as_text(scalar) == *text
        }
        _ => false,
    }
}

/// XML and forms write null, an empty text and an empty object alike.
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
    use super::is_equivalent;
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
            assert!(is_equivalent(&a, &b), "{a} {b}");
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
            assert!(!is_equivalent(&a, &b), "{a} {b}");
        }
    }
}
