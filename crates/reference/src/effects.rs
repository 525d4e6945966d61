//! Effects: faults and allowed variations that only change a value of a request or of a response.
//!
//! - A *switch* is a fault or an allowed variation. It is on or off for a whole run.
//! - `faults.json` and `variants.json` list the effects of a switch with its text. [`Core`] applies effects on requests
//!   before the operation is handled, and effects on responses after it.
//! - A test run records which switches the reference reads. A switch that was not read cannot have made a difference, so
//!   that the run need not be repeated with it. So an effect reads its switch only if it would change something.
//! - Behavior that depends on the state, or that accepts invalid requests, is not an effect. The code of the operation reads
//!   such a switch itself.

use super::garble::Garble;
use super::{Call, Core, Params, Refusal, Switch, switches};
use conformant_base::clock::Timestamp;
use conformant_base::ids;
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// One change of a request or a response.
#[derive(Debug, Deserialize)]
struct Effect {
    /// Where it applies, as alternatives separated by `|`: the collections at the end of the path, such as
    /// `Users/Channels`; the name of a service, for all its operations; or the name of a callback.
    #[serde(rename = "in")]
    places: String,
    /// The action that it applies to; `None` for every action.
    action: Option<Action>,
    #[serde(flatten)]
    change: Change,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Change {
    /// Changes each resource in a response.
    Resource(ResponseChange),
    /// Changes the body of a list, outside its items.
    Page(ResponseChange),
    /// Changes a parameter of a request.
    Request(RequestChange),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResponseChange {
    /// Pointers to the changed values, separated by `|`. `*` stands for every member.
    #[serde(rename = "at")]
    pointers: String,
    #[serde(rename = "shows")]
    shown: Shown,
    /// All of them must be met.
    #[serde(rename = "when", default)]
    conditions: Vec<ResponseCondition>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestChange {
    /// Names of parameters, separated by `|`. `{Name}` is the identifier after the segment `Name` of the path. A name that
    /// begins with `X-` is a header field.
    #[serde(rename = "parameter")]
    names: String,
    #[serde(rename = "reads")]
    sent: Sent,
    #[serde(rename = "if")]
    condition: RequestCondition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    Create,
    Fetch,
    List,
    Update,
    Delete,
}

/// What a response shows in place of a value.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Shown {
    /// Null.
    Null,
    /// This text.
    Text(String),
    /// This JSON.
    Json(Value),
    /// Nothing: the member is removed.
    Removed,
    /// The object with one more member: its name and its JSON.
    Added(String, Value),
    /// The object with only this member.
    Only(String),
    /// The object with other names: each begins with this text.
    Prefixed(String),
    /// The object without its second member.
    SecondRemoved,
    /// Only this number of items or members, also of a JSON object in a text.
    First(usize),
    /// The value at another pointer, unless that is null.
    Copied(String),
    /// The value in the first resource of the collection.
    OfFirst,
    /// The link with the SID of the first resource of the collection.
    LinkOfFirst,
    /// Each text with another last hexadecimal digit. SIDs and dates stay valid; links lead to nothing.
    DigitChanged,
    /// Each text with lost or changed characters.
    Garbled(Garble),
    /// Each text with the first part replaced by the second.
    Replaced(String, String),
    /// Each text with the first part replaced by the second or, if it lacks the first, the second by the first.
    Swapped(String, String),
    /// The link without this number of segments at its end.
    Shortened(usize),
    /// The link without this query parameter.
    Without(String),
    /// The link of a page without filters.
    Unfiltered,
    /// The link of a page with filters that are not escaped.
    Unescaped,
    /// The current time.
    Now,
    /// The date, moved by this number of seconds.
    Later(i64),
    /// The date at another pointer, moved by this number of seconds.
    After(String, i64),
    /// The date as a text with the seconds since 1970.
    Epoch,
    /// Each number increased by this one.
    Plus(i64),
    /// The number, or this one if it is greater.
    AtMost(u64),
    /// The number without its fraction.
    Whole,
    /// Integers beyond 2^53, also in a text of JSON, as the nearest number of 64 bits with a floating point.
    Rounded,
    /// The list from its end to its beginning.
    ListReversed,
    /// The JSON as a text.
    AsText,
    /// The number in a text.
    AsNumber,
    /// Each number as a text.
    NumbersAsText,
    /// The list in alphabetical order.
    Sorted,
    /// The JSON in a text, formatted differently.
    Reformatted,
    /// The object with members of other types. Members that are objects stay as they are.
    Mistyped,
}

/// The condition of a change of a response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ResponseCondition {
    /// The value at this pointer of the resource equals this JSON.
    AtEquals(String, Value),
    /// The value at this pointer of the resource is another one.
    AtDiffers(String, Value),
    /// The text at this pointer of the resource contains this part.
    AtContains(String, String),
    /// The resource has a value at this pointer.
    AtPresent(String),
    /// The changed value is a text that contains this part.
    Contains(String),
    /// The changed value equals this JSON.
    Equals(Value),
    /// The changed value has this type; `nested` means an object or a list.
    Type(String),
    /// The response is XML.
    Xml,
    /// The response is a page after the first one of a list.
    LaterPage,
}

/// What the reference reads in place of a parameter.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Sent {
    /// Nothing, as if it had not been sent.
    Dropped,
    /// This value, even if the parameter was not sent.
    Set(String),
    /// The value with lost or changed characters.
    Misspelled(Garble),
    /// Only the first of its values.
    FirstOnly,
    /// Only the last of its values.
    LastOnly,
    /// Its values without the second one.
    SecondDropped,
    /// Nothing: the request is rejected.
    Refused,
}

/// The condition of a change of a parameter. Most conditions are about the first of its values.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RequestCondition {
    /// The parameter is sent.
    Given,
    /// The parameter is not sent, or it is empty.
    Absent,
    /// The value equals this text.
    Equals(String),
    /// The value has this number of characters.
    Chars(usize),
    /// The value has more characters than this number.
    Over(usize),
    /// The parameter has this number of values.
    Count(usize),
    /// The value has a character that is not ASCII.
    NotAscii,
    /// The value is a JSON object with an object in it.
    NestedObject,
    /// The value is a JSON object with an object or a list in it.
    NestedObjectOrList,
    /// The identifier in the path is not a SID.
    NotSid,
    /// The identifier in the path begins with this prefix of a SID, but is not a SID.
    NearSid(String),
    /// Another parameter is sent, too, and its value begins with this prefix.
    OtherGiven { name: String, prefix: String },
    /// The request has no parameter at all.
    Empty,
}

/// A switch, one of the places of its effect, and the effect.
type PlacedEffect = (Switch, &'static str, &'static Effect);

/// The effects of all switches, in their order.
static EFFECTS: LazyLock<Vec<(Switch, Vec<Effect>)>> =
    LazyLock::new(|| switches::data("effects").collect());

/// Effects by the last segment of their places.
static BY_PLACE: LazyLock<HashMap<&'static str, Vec<PlacedEffect>>> = LazyLock::new(|| {
    let mut all: HashMap<_, Vec<PlacedEffect>> = HashMap::new();
    for (switch, effects) in EFFECTS.iter() {
        for effect in effects {
            for place in effect.places.split('|') {
                let last = place.rsplit('/').next().unwrap_or_default();
                all.entry(last).or_default().push((*switch, place, effect));
            }
        }
    }
    all
});

/// The operation that a request calls, as far as effects depend on it.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    service: String,
    /// The service and the collections of the path: `chat/v2/Services/Channels`.
    chain: String,
    /// The path up to the collection, with the identifiers of the parents: `v2/Services/IS1/Channels`.
    scope: String,
    action: Action,
    pub(super) is_xml: bool,
    is_later_page: bool,
}

impl Operation {
    pub(super) fn from_call(service: &str, call: &Call<'_>) -> Self {
        let is_auth = service == "auth";
        let mut chain = service.to_owned();
        let mut identifiers = 0;
        for (at, segment) in call.path.iter().enumerate() {
            let is_name = if is_auth {
                at > 1 && !segment.contains(|c: char| c.is_ascii_digit())
            } else {
                at == 0 || at % 2 == 1
            };
            if is_name {
                chain.push('/');
                chain.push_str(segment);
            } else {
                identifiers = at;
            }
        }
        let is_item = if is_auth {
            call.request.method == "GET"
        } else {
            call.path.len() % 2 == 1
        };
        let action = match (call.request.method.as_str(), is_item) {
            ("POST", false) => Action::Create,
            ("POST", true) => Action::Update,
            ("DELETE", _) => Action::Delete,
            (_, false) => Action::List,
            (_, true) => Action::Fetch,
        };
        let parents = if is_item {
            identifiers
        } else {
            call.path.len()
        };
        Self {
            service: service.to_owned(),
            scope: call.path[..parents].join("/"),
            chain,
            action,
            is_xml: is_auth && call.path.get(1).is_some_and(|format| format == "xml"),
            is_later_page: call.query.has("PageToken"),
        }
    }

    /// The operation that stands for sending a callback or an event.
    pub(super) fn callback(name: &str) -> Self {
        Self {
            service: String::new(),
            chain: format!("/{name}"),
            scope: String::new(),
            action: Action::Create,
            is_xml: false,
            is_later_page: false,
        }
    }

    /// The effects that apply to this operation, each with its switch.
    fn effects(&self) -> impl Iterator<Item = (Switch, &'static Change)> + '_ {
        let last = self.chain.rsplit('/').next().unwrap_or_default();
        [last, self.service.as_str()]
            .into_iter()
            .filter_map(|name| BY_PLACE.get(name))
            .flatten()
            .filter(|(_, place, effect)| {
                let rest = self.chain.strip_suffix(place);
                effect.action.is_none_or(|action| action == self.action)
                    && (*place == self.service || rest.is_some_and(|rest| rest.ends_with('/')))
            })
            .map(|(switch, _, effect)| (*switch, &effect.change))
    }
}

impl Core {
    /// Applies the effects on requests: changes parameters, or rejects the request.
    pub(super) fn change_request(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        for (switch, change) in self.operation.effects() {
            if let Change::Request(change) = change
                && !self.is_known_off(switch)
            {
                self.change_parameters(call, switch, change)?;
            }
        }
        Ok(())
    }

    fn change_parameters(
        &self,
        call: &mut Call<'_>,
        switch: Switch,
        RequestChange {
            names,
            sent,
            condition,
        }: &RequestChange,
    ) -> Result<(), Refusal> {
        for name in names.split('|') {
            let header = name
                .starts_with("X-")
                .then(|| call.request.headers.get(name));
            let in_path = name
                .strip_prefix('{')
                .map(|name| identifier_after(call.path, name.trim_end_matches('}')));
            let is_query = call.request.method == "GET";
            let given = if is_query { &call.query } else { &call.form };
            let values: Vec<&str> = match header.or(in_path) {
                Some(value) => value.into_iter().collect(),
                None => given.all(name).collect(),
            };
            if !condition.is_met(&values, given) {
                continue;
            }
            let mut changed: Vec<Cow<'_, str>> = values.iter().map(|v| Cow::Borrowed(*v)).collect();
            match sent {
                Sent::Dropped => changed.clear(),
                Sent::Set(text) => changed = vec![Cow::Borrowed(text)],
                Sent::Misspelled(garble) => changed
                    .iter_mut()
                    .for_each(|value| *value = Cow::Owned(garble.apply(value))),
                Sent::FirstOnly => changed.truncate(1),
                Sent::LastOnly => changed = changed.pop().into_iter().collect(),
                Sent::SecondDropped if changed.len() > 1 => drop(changed.remove(1)),
                Sent::SecondDropped => {}
                Sent::Refused if !self.has(switch) => return Ok(()),
                Sent::Refused if name.starts_with('{') => return Err(Refusal::not_found()),
                Sent::Refused => return Err(Refusal::bad_parameter(name, "is refused")),
            }
            if changed == values || !self.has(switch) {
                continue;
            }
            let changed: Vec<_> = changed.into_iter().map(Cow::into_owned).collect();
            let given = if is_query {
                &mut call.query
            } else {
                &mut call.form
            };
            given.set(name, changed);
        }
        Ok(())
    }

    /// Applies the effects on responses to a body.
    pub(super) fn with_effects<'a>(
        &self,
        operation: &Operation,
        value: &'a Value,
    ) -> Cow<'a, Value> {
        let mut body = Cow::Borrowed(value);
        for (switch, change) in operation.effects() {
            let (change, is_page) = match change {
                Change::Resource(change) => (change, false),
                Change::Page(change) => (change, true),
                Change::Request(_) => continue,
            };
            if self.is_known_off(switch) {
                continue;
            }
            let list = Some(&body["meta"]["key"])
                .and_then(Value::as_str)
                .map(str::to_owned);
            let list = list.and_then(|key| Some((body[&key].as_array()?.len(), key)));
            // Pointers to the changed objects: the page, each item of a list, or the resource.
            let objects = match (is_page, list) {
                (true, None) => continue,
                (true, Some(_)) | (false, None) => vec![String::new()],
                (false, Some((count, key))) => (0..count).map(|n| format!("/{key}/{n}")).collect(),
            };
            let change = SwitchedChange {
                core: self,
                operation,
                switch,
                change,
            };
            for object in &objects {
                for at in change.change.pointers.split('|') {
                    change.apply(&mut body, object, at);
                }
            }
        }
        self.remember_first(operation, &body);
        body
    }

    /// Remembers the first resource of each collection.
    fn remember_first(&self, operation: &Operation, body: &Value) {
        if body.get("sid").is_some() {
            let key = (operation.chain.clone(), operation.scope.clone());
            let mut firsts = self.firsts.borrow_mut();
            firsts.entry(key).or_insert_with(|| Arc::new(body.clone()));
        }
    }
}

/// The identifier after a segment of a path.
fn identifier_after<'a>(path: &'a [String], name: &str) -> Option<&'a str> {
    let at = path.iter().position(|segment| segment == name)?;
    path.get(at + 1).map(String::as_str)
}

impl RequestCondition {
    fn is_met(&self, values: &[&str], given: &Params) -> bool {
        let Some(value) = values.first() else {
            return matches!(self, Self::Absent)
                || matches!(self, Self::Empty) && given.0.is_empty();
        };
        let has_nested = |is_nested: fn(&Value) -> bool| {
            serde_json::from_str::<Map<String, Value>>(value)
                .is_ok_and(|map| map.values().any(is_nested))
        };
        match self {
            Self::Given => true,
            Self::Absent => value.is_empty(),
            Self::Equals(text) => value == text,
            Self::Chars(count) => value.chars().count() == *count,
            Self::Over(count) => value.chars().count() > *count,
            Self::Count(count) => values.len() == *count,
            Self::NotAscii => !value.is_ascii(),
            Self::NestedObject => has_nested(Value::is_object),
            Self::NestedObjectOrList => has_nested(|v| v.is_object() || v.is_array()),
            Self::NotSid => value
                .get(..2)
                .is_none_or(|prefix| !ids::is_sid(value, prefix)),
            Self::NearSid(prefix) => value.starts_with(prefix) && !ids::is_sid(value, prefix),
            Self::OtherGiven { name, prefix } => given
                .get(name)
                .is_some_and(|v| !v.is_empty() && v.starts_with(prefix)),
            Self::Empty => given.0.is_empty(),
        }
    }
}

/// A change of a response with what it depends on.
struct SwitchedChange<'a> {
    core: &'a Core,
    operation: &'a Operation,
    switch: Switch,
    change: &'a ResponseChange,
}

impl SwitchedChange<'_> {
    /// Changes the value at the pointer `at` of an object of the body, if the switch is on. `object` is the pointer to the
    /// object.
    fn apply(&self, body: &mut Cow<'_, Value>, object: &str, at: &str) {
        let Some((above, below)) = at.split_once("/*") else {
            return self.apply_at(body, object, at);
        };
        let parent = body.pointer(&format!("{object}{above}"));
        let names: Vec<String> = match parent {
            Some(Value::Object(members)) => members.keys().cloned().collect(),
            _ => Vec::new(),
        };
        for name in names {
            let name = name.replace('~', "~0").replace('/', "~1");
            self.apply(body, object, &format!("{above}/{name}{below}"));
        }
    }

    /// The same for a pointer without `*`.
    fn apply_at(&self, body: &mut Cow<'_, Value>, object: &str, at: &str) {
        let whole = format!("{object}{at}");
        let (Some(root), Some(value)) = (body.pointer(object), body.pointer(&whole)) else {
            return;
        };
        let mut conditions = self.change.conditions.iter();
        if !conditions.all(|condition| condition.is_met(self.operation, root, value)) {
            return;
        }
        let changed = self.change.shown.result(self, root, at, value);
        let is_change = match &changed {
            Some(changed) => changed != value,
            None => matches!(self.change.shown, Shown::Removed),
        };
        if !is_change || !self.core.has(self.switch) {
            return;
        }
        match changed {
            Some(changed) => {
                if let Some(place) = body.to_mut().pointer_mut(&whole) {
                    *place = changed;
                }
            }
            None => {
                let (parent, name) = whole.rsplit_once('/').unwrap_or_default();
                if let Some(Value::Object(members)) = body.to_mut().pointer_mut(parent) {
                    members.shift_remove(&*conformant_base::json::unescape(name));
                }
            }
        }
    }
}

impl ResponseCondition {
    fn is_met(&self, operation: &Operation, root: &Value, value: &Value) -> bool {
        let contains =
            |value: &Value, part: &str| value.as_str().is_some_and(|text| text.contains(part));
        match self {
            Self::AtEquals(at, json) => root.pointer(at) == Some(json),
            Self::AtDiffers(at, json) => root.pointer(at).is_some_and(|value| value != json),
            Self::AtContains(at, part) => {
                root.pointer(at).is_some_and(|value| contains(value, part))
            }
            Self::AtPresent(at) => root.pointer(at).is_some(),
            Self::Contains(part) => contains(value, part),
            Self::Equals(json) => value == json,
            Self::Type(name) => match value {
                Value::Null => name == "null",
                Value::Bool(_) => name == "boolean",
                Value::Number(_) => name == "number",
                Value::String(_) => name == "string",
                Value::Array(_) | Value::Object(_) => name == "nested",
            },
            Self::Xml => operation.is_xml,
            Self::LaterPage => operation.is_later_page,
        }
    }
}

impl Shown {
    /// The value in place of `value`, which is at the pointer `at` of `root`. `None` if nothing changes, or all is removed.
    fn result(
        &self,
        change: &SwitchedChange<'_>,
        root: &Value,
        at: &str,
        value: &Value,
    ) -> Option<Value> {
        let core = change.core;
        let text = |map: &dyn Fn(&str) -> String| Some(with_texts(value, map));
        let members = |change: &dyn Fn(&mut Map<String, Value>)| {
            let mut members = value.as_object()?.clone();
            change(&mut members);
            Some(Value::Object(members))
        };
        let date = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
        let moved = |at: Timestamp, by: i64| core.date(at + SignedDuration::from_secs(by));
        let first = || core.first(change.operation);
        match self {
            Self::Removed => None,
            Self::Null => Some(Value::Null),
            Self::Text(text) => Some(json!(text)),
            Self::Json(json) => Some(json.clone()),
            Self::Added(name, json) => members(&|all| {
                all.insert(name.clone(), json.clone());
            }),
            Self::Only(name) => members(&|all| all.retain(|key, _| key == name)),
            Self::Prefixed(prefix) => members(&|all| {
                let old = std::mem::take(all).into_iter();
                all.extend(old.map(|(name, value)| (format!("{prefix}{name}"), value)));
            }),
            Self::SecondRemoved => members(&|all| {
                if let Some(second) = all.keys().nth(1).cloned() {
                    all.shift_remove(&second);
                }
            }),
            Self::First(count) => first_of(value, *count),
            Self::Copied(from) => root.pointer(from).filter(|other| !other.is_null()).cloned(),
            Self::OfFirst => first()?.pointer(at).cloned(),
            Self::LinkOfFirst => {
                let (first, own) = (first()?, root["sid"].as_str()?);
                let sid = first["sid"].as_str().unwrap_or_default();
                text(&|link| link.replace(own, sid))
            }
            Self::DigitChanged => text(&with_other_digit),
            Self::Garbled(garble) => text(&|text| garble.apply(text)),
            Self::Replaced(one, other) => text(&|text| text.replace(one, other)),
            Self::Swapped(one, other) => text(&|text| {
                if text.contains(one) {
                    text.replace(one, other)
                } else {
                    text.replace(other, one)
                }
            }),
            Self::Shortened(count) => text(&|text| {
                let kept = text.rsplitn(count + 1, '/').last();
                kept.unwrap_or_default().to_owned()
            }),
            Self::Without(name) => text(&|link| with_query(link, |key| key != name)),
            Self::Unfiltered => {
                text(&|link| with_query(link, |key| key.starts_with("Page") || key == "Cache"))
            }
            Self::Unescaped => text(&|text| {
                text.replace("%2B", "+")
                    .replace("%26", "&")
                    .replace("%25", "%")
            }),
            Self::Now => date(value).map(|_| core.date(core.now)),
            Self::Later(by) => Some(moved(date(value)?, *by)),
            Self::After(from, by) => Some(moved(date(root.pointer(from)?)?, *by)),
            Self::Epoch => Some(json!(date(value)?.as_second().to_string())),
            Self::Plus(by) => Some(with_leaves(value, &|leaf| {
                if leaf.is_number() {
                    *leaf = json!(leaf.as_i64().map(|number| number + by));
                }
            })),
            Self::AtMost(most) => Some(json!(value.as_u64()?.min(*most))),
            Self::Whole => Some(json!(value.as_f64().filter(|_| value.is_f64())?.trunc())),
            Self::Rounded => Some(with_leaves(value, &round)),
            Self::ListReversed => Some(value.as_array()?.iter().rev().cloned().collect()),
            Self::AsText => Some(json!(value.to_string())),
            Self::AsNumber => Some(json!(value.as_str()?.parse::<u64>().ok()?)),
            Self::NumbersAsText => Some(with_leaves(value, &|leaf| {
                if leaf.is_number() {
                    *leaf = json!(leaf.to_string());
                }
            })),
            Self::Sorted => {
                let mut sorted = value.as_array()?.clone();
                sorted.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
                Some(Value::Array(sorted))
            }
            Self::Reformatted => {
                let held: Value = serde_json::from_str(value.as_str()?).ok()?;
                Some(json!(format!("{held:#}")))
            }
            Self::Mistyped => members(&|all| all.values_mut().for_each(mistype)),
        }
    }
}

impl Core {
    /// The first resource of the collection that the operation returned.
    fn first(&self, operation: &Operation) -> Option<Arc<Value>> {
        let key = (operation.chain.clone(), operation.scope.clone());
        self.firsts.borrow().get(&key).cloned()
    }
}

/// The same JSON with each value changed that is neither a list nor an object.
fn with_leaves(value: &Value, change: &dyn Fn(&mut Value)) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| with_leaves(item, change)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), with_leaves(value, change)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let mut leaf = value.clone();
            change(&mut leaf);
            leaf
        }
    }
}

/// The same JSON with every text changed.
fn with_texts(value: &Value, change: &dyn Fn(&str) -> String) -> Value {
    with_leaves(value, &|leaf| {
        if let Value::String(text) = leaf {
            *text = change(text);
        }
    })
}

/// Rounds an integer; a text that holds JSON is changed only if it holds such integers.
fn round(leaf: &mut Value) {
    if let Value::String(text) = leaf
        && let Ok(held @ (Value::Array(_) | Value::Object(_) | Value::Number(_))) =
            serde_json::from_str::<Value>(text)
    {
        let rounded = with_leaves(&held, &round);
        if rounded != held {
            *text = rounded.to_string();
        }
    } else if let Value::Number(number) = leaf
        && let Ok(whole) = number.to_string().parse::<i128>()
        && whole.unsigned_abs() > 1 << 53
    {
        let nearest: f64 = whole.to_string().parse().unwrap_or_default();
        let text = format!("{nearest:.0}");
        *leaf = serde_json::from_str(&text).expect("it is a number");
    }
}

/// The first items of a list, or the first members of an object or of a JSON object in a text.
fn first_of(value: &Value, count: usize) -> Option<Value> {
    match value {
        Value::Array(items) => Some(items.iter().take(count).cloned().collect()),
        Value::Object(members) => Some(members.clone().into_iter().take(count).collect()),
        Value::String(text) => {
            let held: Map<String, Value> = serde_json::from_str(text).ok()?;
            Some(json!(first_of(&Value::Object(held), count)?.to_string()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The link with only those query parameters.
fn with_query(link: &str, keep: impl Fn(&str) -> bool) -> String {
    let Some((path, query)) = link.split_once('?') else {
        return link.to_owned();
    };
    let kept = |pair: &&str| keep(pair.split('=').next().unwrap_or_default());
    let query: Vec<&str> = query.split('&').filter(kept).collect();
    format!("{path}?{}", query.join("&"))
}

/// The text with another last hexadecimal digit.
fn with_other_digit(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(at) = text.rfind(|c: char| c.is_ascii_hexdigit()) {
        let digit = if text[at..].starts_with('0') {
            "1"
        } else {
            "0"
        };
        text.replace_range(at..=at, digit);
    }
    text
}

/// Replaces a value by one of another type.
fn mistype(value: &mut Value) {
    match value {
        Value::String(_) => *value = json!(1),
        Value::Number(_) | Value::Bool(_) => *value = json!(value.to_string()),
        Value::Array(items) if items.iter().all(Value::is_string) => *value = json!([1]),
        Value::Array(_) => *value = json!("none"),
        Value::Null => *value = json!({}),
        Value::Object(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, Settings};
    use conformant_base::http::Request;

    fn core(fault: Option<Fault>) -> Core {
        let settings = Settings::default().with(fault.map(Switch::Fault));
        Core::new(settings, Timestamp::UNIX_EPOCH)
    }

    fn operation(request: &str) -> Operation {
        let (method, path) = request.split_once(' ').unwrap();
        let request = Request::new(method, path);
        let segments = request.segments();
        let call = Call::new(&request, &segments[1..]);
        Operation::from_call(&segments[0], &call)
    }

    #[test]
    fn an_operation_is_named_by_the_collections_in_its_path() {
        for (request, chain, action) in [
            ("GET /flow/v1/Flows", "flow/v1/Flows", Action::List),
            ("GET /flow/v1/Flows/F1", "flow/v1/Flows", Action::Fetch),
            ("POST /chat/v2/S/I1/C", "chat/v2/S/C", Action::Create),
            ("POST /chat/v3/S/I1/C/C1", "chat/v3/S/C", Action::Update),
            ("DELETE /chat/v2/S/I1/B/B1", "chat/v2/S/B", Action::Delete),
            (
                "GET /auth/protected/xml/users/1/status",
                "auth/users/status",
                Action::Fetch,
            ),
            (
                "POST /auth/onetouch/xml/users/1/a",
                "auth/users/a",
                Action::Create,
            ),
        ] {
            let seen = operation(request);
            assert_eq!((seen.chain.as_str(), seen.action), (chain, action));
            assert_eq!(seen.is_xml, request.contains("xml"));
        }
        assert_eq!(operation("POST /chat/v2/S/I1/C").scope, "v2/S/I1/C");
        assert_eq!(operation("GET /chat/v2/S/I1/C/C1").scope, "v2/S/I1/C");
    }

    #[test]
    fn each_change_shows_its_value() {
        let core = core(None);
        let operation = operation("GET /flow/v1/Flows/FW1");
        core.with_effects(&operation, &json!({"sid": "FW0", "url": "x/FW0"}));
        let root = json!({"sid": "FW1", "n": 7, "date": "2026-01-01T00:00:00Z"});
        for (shown, before, after) in
            serde_json::from_str::<Vec<(Value, Value, Value)>>(CHANGES).unwrap()
        {
            let change = SwitchedChange {
                core: &core,
                operation: &operation,
                switch: Switch::Fault(Fault::FlowNameNull),
                change: &ResponseChange {
                    pointers: "/url".into(),
                    shown: Shown::deserialize(&shown).unwrap(),
                    conditions: Vec::new(),
                },
            };
            let seen = change.change.shown.result(&change, &root, "/url", &before);
            assert_eq!(seen.unwrap_or(before), after, "{shown}");
        }
    }

    /// A change, the value before and the value after it.
    const CHANGES: &str = r#"[
        ["null", 1, null],
        [{ "added": ["b", 2] }, { "a": 1 }, { "a": 1, "b": 2 }],
        [{ "only": "a" }, { "a": 1, "b": 2 }, { "a": 1 }],
        [{ "prefixed": "an_" }, { "a": 1, "b": 2 }, { "an_a": 1, "an_b": 2 }],
        ["second-removed", { "a": 1, "b": 2, "c": 3 }, { "a": 1, "c": 3 }],
        [{ "copied": "/n" }, 1, 7],
        [{ "copied": "/absent" }, 1, 1],
        ["link-of-first", "x/FW1/a", "x/FW0/a"],
        ["of-first", "x/FW1", "x/FW0"],
        ["digit-changed", { "a": ["CH0a", null, 1] }, { "a": ["CH00", null, 1] }],
        ["digit-changed", "http://x/Users", "http://x/Us0rs"],
        [{ "replaced": ["a", "b"] }, "a-c", "b-c"],
        [{ "swapped": ["a", "b"] }, "b", "a"],
        [{ "shortened": 2 }, "http://x/a/b/c", "http://x/a"],
        [{ "without": "Page" }, "x?Page=1&b=2", "x?b=2"],
        ["unfiltered", "x?PageSize=1&b=2", "x?PageSize=1"],
        ["unescaped", "x?a=%2B%26", "x?a=+&"],
        ["now", "2026-01-01T00:00:00Z", "1970-01-01T00:00:00Z"],
        [{ "later": -60 }, "2026-01-01T00:01:00Z", "2026-01-01T00:00:00Z"],
        [{ "after": ["/date", 1] }, null, "2026-01-01T00:00:01Z"],
        ["epoch", "1970-01-01T00:00:09Z", "9"],
        [{ "plus": 1 }, { "a": 1, "b": ["x", 2] }, { "a": 2, "b": ["x", 3] }],
        [{ "at-most": 10 }, 11, 10],
        ["whole", 2.5, 2.0],
        ["as-text", { "a": 1 }, "{\"a\":1}"],
        ["as-number", "60027", 60027],
        ["numbers-as-text", { "a": [1.5, "b"] }, { "a": ["1.5", "b"] }],
        ["sorted", ["b", "a"], ["a", "b"]],
        ["reformatted", "{\"a\":[]}", "{\n  \"a\": []\n}"],
        ["mistyped", { "a": "x", "b": 1, "c": null }, { "a": 1, "b": "1", "c": {} }]
    ]"#;

    #[test]
    fn only_an_effect_that_changes_something_reads_its_fault() {
        let core = core(Some(Fault::FlowNameNull));
        let flow = json!({"friendly_name": "a", "status": "published"});
        let shown = core.with_effects(&operation("GET /flow/v1/Flows/FW1"), &flow);
        assert_eq!(shown["friendly_name"], Value::Null);
        let asked = core.newly_asked();
        assert!(asked.contains(&Switch::Fault(Fault::FlowNameNull)));
        assert!(!asked.contains(&Switch::Fault(Fault::FlowDraftShownPublished)));
    }
}
