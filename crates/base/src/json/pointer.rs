//! Pointers (RFC 6901), and patterns in which `*` stands for any segment.

use serde_json::{Map, Value};
use std::borrow::Cow;

/// Longest pointer of nearly every validated document.
pub const POINTER_BYTES: usize = 64;

/// Escapes one segment of a pointer: `~` and `/` (RFC 6901).
pub fn escape(segment: &str) -> Cow<'_, str> {
    if segment.contains(['~', '/']) {
        Cow::Owned(segment.replace('~', "~0").replace('/', "~1"))
    } else {
        Cow::Borrowed(segment)
    }
}

/// Appends a segment, escaping it.
pub fn push(pointer: &mut String, segment: &str) {
    pointer.push('/');
    pointer.push_str(&escape(segment));
}

/// The pointer one segment longer.
pub fn join(pointer: &str, segment: &str) -> String {
    let mut longer = pointer.to_owned();
    push(&mut longer, segment);
    longer
}

/// The unescaped segments of a pointer; a pointer that does not begin with `/` has none.
pub fn segments(pointer: &str) -> impl Iterator<Item = String> {
    steps(pointer).map(Cow::into_owned)
}

/// The unescaped segments, borrowed where nothing in them is escaped.
fn steps(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    pointer.split('/').skip(1).map(unescape)
}

/// A segment of a pointer without its escapes.
pub fn unescape(segment: &str) -> Cow<'_, str> {
    match segment.contains('~') {
        true => Cow::Owned(segment.replace("~1", "/").replace("~0", "~")),
        false => Cow::Borrowed(segment),
    }
}

/// The value at a pointer without wildcards; the whole for the empty one.
pub fn get<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.is_empty() {
        return Some(value);
    }
    let mut segments = pointer.strip_prefix('/')?.split('/');
    if pointer.contains('~') {
        return steps(pointer).try_fold(value, |value, segment| child(value, &segment));
    }
    segments.try_fold(value, child)
}

/// The member of that name. Few members are scanned, which is faster than a hash that resists hostile keys.
pub fn member<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    const FEW: usize = 24;
    if members.len() > FEW {
        return members.get(name);
    }
    let mut members = members.iter();
    members
        .find(|(own, _)| *own == name)
        .map(|(_, value)| value)
}

fn child<'a>(value: &'a Value, segment: &str) -> Option<&'a Value> {
    match value {
        Value::Object(members) => member(members, segment),
        // RFC 6901 writes an index without a sign or leading zeros.
        Value::Array(items) => {
            let is_index = segment == "0" || !segment.starts_with(['0', '+']);
            items.get(segment.parse::<usize>().ok().filter(|_| is_index)?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Every existing value that a pattern matches, with its pointer, in document order. `*` matches each
/// array item and each member.
pub fn expand<'a>(value: &'a Value, pattern: &str) -> Vec<(String, &'a Value)> {
    let mut reached = vec![(String::new(), value)];
    for segment in steps(pattern) {
        reached = reached
            .into_iter()
            .flat_map(|(at, value)| children(&at, value, &segment))
            .collect();
    }
    reached
}

fn children<'a>(at: &str, value: &'a Value, segment: &str) -> Vec<(String, &'a Value)> {
    match value {
        Value::Array(items) if segment == "*" => items
            .iter()
            .enumerate()
            .map(|(n, item)| (join(at, &n.to_string()), item))
            .collect(),
        Value::Object(members) if segment == "*" => members
            .iter()
            .map(|(key, member)| (join(at, key), member))
            .collect(),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            let found = child(value, segment);
            found
                .map(|child| (join(at, segment), child))
                .into_iter()
                .collect()
        }
    }
}

/// Visits the values in a document that are neither objects nor lists, each with its pointer, in document order.
pub fn visit_leaves<'a>(value: &'a Value, visit: &mut dyn FnMut(&str, &'a Value)) {
    fn below<'a>(at: &mut String, value: &'a Value, visit: &mut dyn FnMut(&str, &'a Value)) {
        let above = at.len();
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    push(at, name);
                    below(at, member, visit);
                    at.truncate(above);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    push(at, &index.to_string());
                    below(at, item, visit);
                    at.truncate(above);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => visit(at, value),
        }
    }
    below(&mut String::with_capacity(POINTER_BYTES), value, visit);
}

/// Sets the value at a pointer; a missing member is added to its object. Returns false if the place does not exist.
pub fn set(document: &mut Value, pointer: &str, value: Value) -> bool {
    if let Some(slot) = document.pointer_mut(pointer) {
        *slot = value;
        return true;
    }
    let Some((above, name)) = pointer.rsplit_once('/') else {
        return false;
    };
    match document.pointer_mut(above) {
        Some(Value::Object(members)) => {
            members.insert(unescape(name).into_owned(), value);
            true
        }
        Some(_) | None => false,
    }
}

/// True if `inner` is `outer` or a place below it.
pub fn within(outer: &str, inner: &str) -> bool {
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// True if a pattern, in which `*` matches any segment, matches `place` or a place above or below it.
pub fn overlap(pattern: &str, place: &str) -> bool {
    steps(pattern)
        .zip(steps(place))
        .all(|(p, s)| p == "*" || p == s)
}

/// True if a document has at most `nodes` values.
pub fn has_at_most(value: &Value, nodes: usize) -> bool {
    fn left(value: &Value, nodes: usize) -> Option<usize> {
        let nodes = nodes.checked_sub(1)?;
        match value {
            Value::Array(items) => items.iter().try_fold(nodes, |n, item| left(item, n)),
            Value::Object(members) => members
                .values()
                .try_fold(nodes, |n, member| left(member, n)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(nodes),
        }
    }
    left(value, nodes).is_some()
}
