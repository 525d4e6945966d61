//! Faults and variations as data: what they change in a request or in an answer.
//!
//! - `faults.rs` and `variants.rs` list the effects of a switch behind its text. [`Core`] applies those of requests before the handler and those of
//!   answers after it.
//! - Only an effect that would change something queries its switch.
//! - What depends on the state, or accepts what is invalid, is not an effect: the code of the behavior contains it.

use super::garble::Garble;
use super::{Call, Core, Params, Refusal, Switch};
use conformant_base::clock::Timestamp;
use conformant_base::ids;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

/// One change of a request or an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effect {
    /// Collections at the end of the path, such as `Users/Channels`; a service for all its operations; the name of a callback.
    /// Several are separated by `|`.
    places: &'static str,
    /// `None` for every action.
    action: Option<Action>,
    change: Change,
}

#[derive(Clone, Copy, Debug)]
enum Change {
    /// Of each resource in an answer, at pointers separated by `|`; `*` stands for every member.
    Shown(&'static str, Shown, [When; 2]),
    /// Of the body of a list.
    Page(&'static str, Shown, [When; 2]),
    /// Of a parameter; `{Name}` is the identifier behind `Name` in the path, and `X-` begins a header field.
    Sent(&'static str, Sent, If),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Create,
    Fetch,
    List,
    Update,
    Delete,
}

/// What is shown in place of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    Null,
    /// This text.
    Text(&'static str),
    /// This JSON.
    Json(&'static str),
    /// Nothing.
    Removed,
    /// The object with a further member.
    Added(&'static str, &'static str),
    /// The object with this member only.
    Only(&'static str),
    /// The object without its second member.
    SecondLost,
    /// The value at another pointer, unless it is null.
    Copied(&'static str),
    /// The value that the first resource of the collection showed.
    OfFirst,
    /// Links with the SID of the first resource of the collection.
    LinkOfFirst,
    /// Texts with another last hexadecimal digit: SIDs and dates stay valid, links lead nowhere.
    Turned,
    /// Texts with lost or changed characters.
    Garbled(Garble),
    /// Texts with one part in place of another.
    Replaced(&'static str, &'static str),
    /// Texts with two parts in each other's place.
    Exchanged(&'static str, &'static str),
    /// The link that is shorter by this number of segments.
    Upwards(usize),
    /// The link without a query parameter.
    Without(&'static str),
    /// The link of a page without filters.
    Unfiltered,
    /// The link of a page with filters that are not escaped.
    Unescaped,
    /// The current time.
    Now,
    /// The date, moved by seconds.
    Later(i64),
    /// The date at another pointer, moved by seconds.
    After(&'static str, i64),
    /// The date in seconds since 1970, as a text.
    Epoch,
    /// Numbers that are greater.
    Plus(i64),
    AtMost(u64),
    /// Numbers without a fraction.
    Whole,
    /// The JSON as a text.
    AsText,
    /// The number in a text.
    AsNumber,
    /// Members of other types. Objects are skipped.
    Mistyped,
}

/// Condition of a change that is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    Always,
    /// The JSON at a pointer.
    Is(&'static str, &'static str),
    /// A part of the text at a pointer.
    Has(&'static str, &'static str),
    /// Something is at a pointer.
    Present(&'static str),
    /// A part of the text itself.
    Holds(&'static str),
    /// The value itself.
    Equals(&'static str),
    /// The value itself has this type; `nested` is an object or a list.
    Type(&'static str),
    /// The answer is XML.
    Xml,
}

/// What becomes of a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sent {
    Dropped,
    /// It has this value, given or not.
    Set(&'static str),
    /// It has lost or changed characters.
    Misread(Garble),
    /// Only its first value counts.
    FirstOnly,
    /// Only its last value counts.
    LastOnly,
    /// Its second value does not count.
    SecondDropped,
    /// The request is refused.
    Refused,
}

/// Condition of a change of a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum If {
    Given,
    /// Absent or empty.
    Absent,
    Is(&'static str),
    Chars(usize),
    /// More characters than that.
    Over(usize),
    /// Number of values.
    Count(usize),
    NotAscii,
    /// JSON with an object in an object, or with a list if `true`.
    Nested(bool),
    /// An identifier in the path that is not a SID.
    NotSid,
    /// An identifier in the path that begins like a SID.
    NearSid(&'static str),
    /// Another parameter is given too and begins like this.
    With(&'static str, &'static str),
    /// No parameter at all.
    Empty,
}

macro_rules! answers {
    ($($name:ident: $action:expr;)*) => {$(
        /// Answers of this action.
        pub(crate) const fn $name(places: &'static str, at: &'static str, shown: Shown) -> Effect {
            let change = Change::Shown(at, shown, [When::Always; 2]);
            Effect { places, action: $action, change }
        }
    )*};
}

macro_rules! requests {
    ($($name:ident: $action:expr;)*) => {$(
        /// Requests of this action.
        pub(crate) const fn $name(places: &'static str, name: &'static str, sent: Sent, when: If) -> Effect {
            let change = Change::Sent(name, sent, when);
            Effect { places, action: $action, change }
        }
    )*};
}

answers! {
    shown: None;
    created: Some(Action::Create);
    fetched: Some(Action::Fetch);
    listed: Some(Action::List);
    updated: Some(Action::Update);
}

requests! {
    on_any: None;
    on_create: Some(Action::Create);
    on_fetch: Some(Action::Fetch);
    on_list: Some(Action::List);
    on_update: Some(Action::Update);
    on_delete: Some(Action::Delete);
}

/// Pages of a service's lists.
pub(crate) const fn paged(service: &'static str, at: &'static str, shown: Shown) -> Effect {
    let change = Change::Page(at, shown, [When::Always; 2]);
    Effect {
        places: service,
        action: None,
        change,
    }
}

impl Effect {
    /// The same under a further condition, at most two in all.
    pub(crate) const fn when(mut self, when: When) -> Self {
        if let Change::Shown(_, _, all) | Change::Page(_, _, all) = &mut self.change {
            all[if matches!(all[0], When::Always) { 0 } else { 1 }] = when;
        }
        self
    }
}

/// A switch, one of the places of its effect, and the effect.
type PlacedEffect = (Switch, &'static str, Effect);

/// Effects by the last segment of their places.
static BY_PLACE: LazyLock<HashMap<&'static str, Vec<PlacedEffect>>> = LazyLock::new(|| {
    let mut all: HashMap<_, Vec<PlacedEffect>> = HashMap::new();
    for switch in Switch::all() {
        for effect in switch.effects() {
            for place in effect.places.split('|') {
                let last = place.rsplit('/').next().unwrap_or_default();
                all.entry(last).or_default().push((switch, place, *effect));
            }
        }
    }
    all
});

/// What a request asks for, as far as effects depend on it.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    service: String,
    /// Service and collections: `chat/v2/Services/Channels`.
    chain: String,
    /// The parents in the path.
    scope: String,
    action: Action,
    is_xml: bool,
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
        }
    }

    /// A callback or an event.
    pub(super) fn callback(name: &str) -> Self {
        Self {
            service: String::new(),
            chain: format!("/{name}"),
            scope: String::new(),
            action: Action::Create,
            is_xml: false,
        }
    }

    /// Effects on this operation.
    fn effects(&self) -> impl Iterator<Item = (Switch, Change)> + '_ {
        let last = self.chain.rsplit('/').next().unwrap_or_default();
        [last, self.service.as_str()]
            .into_iter()
            .filter_map(|name| BY_PLACE.get(name))
            .flatten()
            .filter(|(_, place, effect)| {
                let before = self.chain.strip_suffix(place);
                effect.action.is_none_or(|action| action == self.action)
                    && (*place == self.service || before.is_some_and(|rest| rest.ends_with('/')))
            })
            .map(|(switch, _, effect)| (*switch, effect.change))
    }
}

impl Core {
    /// Changes the parameters of a request as the switches say, or refuses it.
    pub(super) fn misread(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        for (switch, change) in self.operation.effects() {
            if let Change::Sent(name, sent, when) = change
                && !self.is_settled(switch)
            {
                self.misread_one(call, switch, (name, sent, when))?;
            }
        }
        Ok(())
    }

    fn misread_one(
        &self,
        call: &mut Call<'_>,
        switch: Switch,
        (name, sent, when): (&str, Sent, If),
    ) -> Result<(), Refusal> {
        for name in name.split('|') {
            let header = name
                .starts_with("X-")
                .then(|| call.request.headers.get(name));
            let in_path = name
                .strip_prefix('{')
                .map(|name| identifier_behind(call.path, name.trim_end_matches('}')));
            let is_query = call.request.method == "GET";
            let given = if is_query { &call.query } else { &call.form };
            let values: Vec<&str> = match header.or(in_path) {
                Some(value) => value.into_iter().collect(),
                None => given.all(name).collect(),
            };
            if !when.holds(&values, given) {
                continue;
            }
            let mut changed: Vec<Cow<'_, str>> = values.iter().map(|v| Cow::Borrowed(*v)).collect();
            match sent {
                Sent::Dropped => changed.clear(),
                Sent::Set(text) => changed = vec![Cow::Borrowed(text)],
                Sent::Misread(garble) => changed
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

    /// The answer as the switches show it.
    pub(super) fn shown<'a>(&self, operation: &Operation, value: &'a Value) -> Cow<'a, Value> {
        let mut body = Cow::Borrowed(value);
        for (switch, change) in operation.effects() {
            let (at, shown, when) = match change {
                Change::Shown(at, shown, when) | Change::Page(at, shown, when) => (at, shown, when),
                Change::Sent(..) => continue,
            };
            if self.is_settled(switch) {
                continue;
            }
            let list = Some(&body["meta"]["key"])
                .and_then(Value::as_str)
                .map(str::to_owned);
            let items = match (
                change,
                list.and_then(|key| Some((body[&key].as_array()?.len(), key))),
            ) {
                (Change::Page(..), None) => continue,
                (Change::Page(..), Some(_)) | (_, None) => vec![String::new()],
                (_, Some((count, key))) => (0..count).map(|n| format!("/{key}/{n}")).collect(),
            };
            let place = Place {
                core: self,
                operation,
                switch,
                shown,
                when,
            };
            for item in &items {
                for at in at.split('|') {
                    place.apply(&mut body, item, at);
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
            firsts.entry(key).or_insert_with(|| body.clone());
        }
    }
}

/// The identifier behind a name in a path.
fn identifier_behind<'a>(path: &'a [String], name: &str) -> Option<&'a str> {
    let at = path.iter().position(|segment| segment == name)?;
    path.get(at + 1).map(String::as_str)
}

impl If {
    fn holds(self, values: &[&str], given: &Params) -> bool {
        let Some(value) = values.first() else {
            return matches!(self, Self::Absent)
                || matches!(self, Self::Empty) && given.0.is_empty();
        };
        match self {
            Self::Given => true,
            Self::Absent => value.is_empty(),
            Self::Is(text) => *value == text,
            Self::Chars(count) => value.chars().count() == count,
            Self::Over(count) => value.chars().count() > count,
            Self::Count(count) => values.len() == count,
            Self::NotAscii => !value.is_ascii(),
            Self::Nested(lists) => serde_json::from_str::<Map<String, Value>>(value)
                .is_ok_and(|map| map.values().any(|v| v.is_object() || lists && v.is_array())),
            Self::NotSid => value
                .get(..2)
                .is_none_or(|prefix| !ids::is_sid(value, prefix)),
            Self::NearSid(prefix) => value.starts_with(prefix) && !ids::is_sid(value, prefix),
            Self::With(name, text) => given
                .get(name)
                .is_some_and(|v| !v.is_empty() && v.starts_with(text)),
            Self::Empty => given.0.is_empty(),
        }
    }
}

/// A change of the value at a pointer.
struct Place<'a> {
    core: &'a Core,
    operation: &'a Operation,
    switch: Switch,
    shown: Shown,
    when: [When; 2],
}

impl Place<'_> {
    /// Changes what is at `at` below `item`, if the switch is on.
    fn apply(&self, body: &mut Cow<'_, Value>, item: &str, at: &str) {
        let Some((above, below)) = at.split_once("/*") else {
            return self.apply_exactly(body, item, at);
        };
        let parent = body.pointer(&format!("{item}{above}"));
        let names: Vec<String> = match parent {
            Some(Value::Object(members)) => members.keys().cloned().collect(),
            _ => Vec::new(),
        };
        for name in names {
            let name = name.replace('~', "~0").replace('/', "~1");
            self.apply(body, item, &format!("{above}/{name}{below}"));
        }
    }

    fn apply_exactly(&self, body: &mut Cow<'_, Value>, item: &str, at: &str) {
        let (Some(root), Some(value)) = (body.pointer(item), body.pointer(&format!("{item}{at}")))
        else {
            return;
        };
        if !self
            .when
            .iter()
            .all(|when| when.holds(self.operation, root, value))
        {
            return;
        }
        let changed = self.shown.result(self, root, at, value);
        if matches!(&changed, Some(changed) if changed == value) || !self.core.has(self.switch) {
            return;
        }
        let at = format!("{item}{at}");
        match changed {
            Some(changed) => {
                if let Some(place) = body.to_mut().pointer_mut(&at) {
                    *place = changed;
                }
            }
            None => {
                let (parent, name) = at.rsplit_once('/').unwrap_or_default();
                let name = name.replace("~1", "/").replace("~0", "~");
                if let Some(Value::Object(members)) = body.to_mut().pointer_mut(parent) {
                    members.shift_remove(&name);
                }
            }
        }
    }
}

impl When {
    fn holds(self, operation: &Operation, root: &Value, value: &Value) -> bool {
        let is = |value: &Value, text: &str| json_of(text) == *value;
        let has =
            |value: &Value, part: &str| value.as_str().is_some_and(|text| text.contains(part));
        match self {
            Self::Always => true,
            Self::Is(at, text) => root.pointer(at).is_some_and(|value| is(value, text)),
            Self::Has(at, part) => root.pointer(at).is_some_and(|value| has(value, part)),
            Self::Present(at) => root.pointer(at).is_some(),
            Self::Holds(part) => has(value, part),
            Self::Equals(text) => is(value, text),
            Self::Type(name) => match value {
                Value::Null => name == "null",
                Value::Bool(_) => name == "boolean",
                Value::Number(_) => name == "number",
                Value::String(_) => name == "string",
                Value::Array(_) | Value::Object(_) => name == "nested",
            },
            Self::Xml => operation.is_xml,
        }
    }
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).expect("effects contain valid JSON")
}

impl Shown {
    /// What is shown in place of `value`; `None` if nothing.
    fn result(self, place: &Place<'_>, root: &Value, at: &str, value: &Value) -> Option<Value> {
        let text = |change: &dyn Fn(&str) -> String| texts(value, change);
        let date = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
        let moved = |at: Option<Timestamp>, seconds: i64| {
            let by = Duration::from_secs(seconds.unsigned_abs());
            at.map(|at| place.core.date(if seconds < 0 { at - by } else { at + by }))
        };
        let first = || place.core.first(place.operation);
        Some(match self {
            Self::Removed => return None,
            Self::Null => Value::Null,
            Self::Text(text) => json!(text),
            Self::Json(text) => json_of(text),
            Self::Added(name, text) => with_members(value, |all| {
                all.insert(name.to_owned(), json_of(text));
            }),
            Self::Only(name) => with_members(value, |all| all.retain(|key, _| key == name)),
            Self::SecondLost => with_members(value, |all| {
                if let Some(second) = all.keys().nth(1).cloned() {
                    all.shift_remove(&second);
                }
            }),
            Self::Copied(from) => match root.pointer(from) {
                None | Some(Value::Null) => value.clone(),
                Some(other) => other.clone(),
            },
            Self::OfFirst => first()
                .and_then(|first| first.pointer(at).cloned())
                .unwrap_or_else(|| value.clone()),
            Self::LinkOfFirst => match (first(), root["sid"].as_str()) {
                (Some(first), Some(own)) => {
                    let sid = first["sid"].as_str().unwrap_or_default();
                    text(&|link| link.replace(own, sid))
                }
                _ => value.clone(),
            },
            Self::Turned => text(&turned),
            Self::Garbled(garble) => text(&|text| garble.apply(text)),
            Self::Replaced(one, other) => text(&|text| text.replace(one, other)),
            Self::Exchanged(one, other) => text(&|text| {
                if text.contains(one) {
                    text.replace(one, other)
                } else {
                    text.replace(other, one)
                }
            }),
            Self::Upwards(count) => text(&|text| {
                text.rsplitn(count + 1, '/')
                    .last()
                    .unwrap_or_default()
                    .to_owned()
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
            Self::Now => {
                date(value).map_or_else(|| value.clone(), |_| place.core.date(place.core.now))
            }
            Self::Later(seconds) => moved(date(value), seconds).unwrap_or_else(|| value.clone()),
            Self::After(from, seconds) => {
                let from = root.pointer(from).and_then(date);
                moved(from, seconds).unwrap_or_else(|| value.clone())
            }
            Self::Epoch => {
                date(value).map_or_else(|| value.clone(), |at| json!(at.as_second().to_string()))
            }
            Self::Plus(by) => plus(value, by),
            Self::AtMost(most) => value
                .as_u64()
                .map_or_else(|| value.clone(), |n| json!(n.min(most))),
            Self::Whole => match value.as_f64().filter(|_| value.is_f64()) {
                Some(number) => json!(number.trunc()),
                None => value.clone(),
            },
            Self::AsText => json!(value.to_string()),
            Self::AsNumber => {
                let number = value.as_str().and_then(|text| text.parse::<u64>().ok());
                number.map_or_else(|| value.clone(), |number| json!(number))
            }
            Self::Mistyped => with_members(value, |all| all.values_mut().for_each(mistype)),
        })
    }
}

impl Core {
    /// The first resource of the collection.
    fn first(&self, operation: &Operation) -> Option<Value> {
        let key = (operation.chain.clone(), operation.scope.clone());
        self.firsts.borrow().get(&key).cloned()
    }
}

/// The same JSON with every text changed.
fn texts(value: &Value, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(items) => items.iter().map(|item| texts(item, change)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), texts(value, change)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// The same JSON with every number increased.
fn plus(value: &Value, by: i64) -> Value {
    match value {
        Value::Number(number) => number.as_i64().map_or(Value::Null, |n| json!(n + by)),
        Value::Array(items) => items.iter().map(|item| plus(item, by)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), plus(value, by)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

fn with_members(value: &Value, change: impl FnOnce(&mut Map<String, Value>)) -> Value {
    let mut value = value.clone();
    if let Value::Object(members) = &mut value {
        change(members);
    }
    value
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
fn turned(text: &str) -> String {
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
        Core::new(Settings {
            faults: fault.into_iter().collect(),
            ..Settings::default()
        })
    }

    fn operation(request: &str) -> Operation {
        let (method, path) = request.split_once(' ').unwrap();
        let request = Request::new(method, path);
        let segments = request.segments();
        let call = Call::new(&request, &segments[1..], Timestamp::UNIX_EPOCH);
        Operation::from_call(&segments[0], &call)
    }

    #[test]
    fn every_json_of_an_effect_is_valid() {
        for effect in Switch::all().flat_map(Switch::effects) {
            let (Change::Shown(_, shown, when) | Change::Page(_, shown, when)) = effect.change
            else {
                continue;
            };
            if let Shown::Json(text) | Shown::Added(_, text) = shown {
                json_of(text);
            }
            for when in when {
                if let When::Is(_, text) | When::Equals(text) = when {
                    json_of(text);
                }
            }
        }
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
        core.shown(&operation, &json!({"sid": "FW0", "url": "x/FW0"}));
        let root = json!({"sid": "FW1", "n": 7, "date": "2026-01-01T00:00:00Z"});
        for (shown, before, after) in [
            (Shown::Null, "1", "null"),
            (Shown::Added("b", "2"), r#"{"a":1}"#, r#"{"a":1,"b":2}"#),
            (Shown::Only("a"), r#"{"a":1,"b":2}"#, r#"{"a":1}"#),
            (
                Shown::SecondLost,
                r#"{"a":1,"b":2,"c":3}"#,
                r#"{"a":1,"c":3}"#,
            ),
            (Shown::Copied("/n"), "1", "7"),
            (Shown::Copied("/absent"), "1", "1"),
            (Shown::LinkOfFirst, r#""x/FW1/a""#, r#""x/FW0/a""#),
            (Shown::OfFirst, r#""x/FW1""#, r#""x/FW0""#),
            (
                Shown::Turned,
                r#"{"a":["CH0a",null,1]}"#,
                r#"{"a":["CH00",null,1]}"#,
            ),
            (Shown::Turned, r#""http://x/Users""#, r#""http://x/Us0rs""#),
            (Shown::Replaced("a", "b"), r#""a-c""#, r#""b-c""#),
            (Shown::Exchanged("a", "b"), r#""b""#, r#""a""#),
            (Shown::Upwards(2), r#""http://x/a/b/c""#, r#""http://x/a""#),
            (Shown::Without("Page"), r#""x?Page=1&b=2""#, r#""x?b=2""#),
            (
                Shown::Unfiltered,
                r#""x?PageSize=1&b=2""#,
                r#""x?PageSize=1""#,
            ),
            (Shown::Unescaped, r#""x?a=%2B%26""#, r#""x?a=+&""#),
            (
                Shown::Now,
                r#""2026-01-01T00:00:00Z""#,
                r#""1970-01-01T00:00:00Z""#,
            ),
            (
                Shown::Later(-60),
                r#""2026-01-01T00:01:00Z""#,
                r#""2026-01-01T00:00:00Z""#,
            ),
            (
                Shown::After("/date", 1),
                "null",
                r#""2026-01-01T00:00:01Z""#,
            ),
            (Shown::Epoch, r#""1970-01-01T00:00:09Z""#, r#""9""#),
            (
                Shown::Plus(1),
                r#"{"a":1,"b":["x",2]}"#,
                r#"{"a":2,"b":["x",3]}"#,
            ),
            (Shown::AtMost(10), "11", "10"),
            (Shown::Whole, "2.5", "2.0"),
            (Shown::AsText, r#"{"a":1}"#, r#""{\"a\":1}""#),
            (Shown::AsNumber, r#""60027""#, "60027"),
            (
                Shown::Mistyped,
                r#"{"a":"x","b":1,"c":null}"#,
                r#"{"a":1,"b":"1","c":{}}"#,
            ),
        ] {
            let place = Place {
                core: &core,
                operation: &operation,
                switch: Switch::Fault(Fault::FlowNameNull),
                shown,
                when: [When::Always; 2],
            };
            let seen = shown.result(&place, &root, "/url", &json_of(before));
            assert_eq!(seen, Some(json_of(after)), "{shown:?}");
        }
    }

    #[test]
    fn only_an_effect_that_changes_something_queries_its_fault() {
        let core = core(Some(Fault::FlowNameNull));
        let flow = json!({"friendly_name": "a", "status": "published"});
        let shown = core.shown(&operation("GET /flow/v1/Flows/FW1"), &flow);
        assert_eq!(shown["friendly_name"], Value::Null);
        let asked = core.newly_asked();
        assert!(asked.contains(&Switch::Fault(Fault::FlowNameNull)));
        assert!(!asked.contains(&Switch::Fault(Fault::FlowDraftShownPublished)));
    }

    #[test]
    fn items_of_a_list_and_its_page_are_changed_apart() {
        let page = json!({
            "meta": {"key": "flows", "page": 1},
            "flows": [{"friendly_name": "a"}, {"friendly_name": "b"}],
        });
        let operation = operation("GET /flow/v1/Flows");
        let shown = |fault| core(Some(fault)).shown(&operation, &page).into_owned();
        assert!(shown(Fault::FlowNameNull)["flows"][1]["friendly_name"].is_null());
        assert_eq!(shown(Fault::FlowPageNumberStuck)["meta"]["page"], 0);
    }

    #[test]
    fn parameters_are_changed_or_refused() {
        for (fault, path, sent, read) in [
            (
                Fault::ChatChannelTypeIgnored,
                "Channels",
                "Type=private&A=b",
                Some("A=b"),
            ),
            (
                Fault::ChatUniqueNameLowered,
                "Channels",
                "UniqueName=Ab",
                Some("UniqueName=ab"),
            ),
            (
                Fault::ChatChannelTypePrivateRefused,
                "Channels",
                "Type=private",
                None,
            ),
            (
                Fault::ChatChannelTypePrivateRefused,
                "Channels",
                "Type=a",
                Some("Type=a"),
            ),
            (
                Fault::ChatCreateMemberUniqueNameUnknown,
                "Channels/lobby/Members",
                "",
                None,
            ),
            (
                Fault::ChatUserIdentityOptional,
                "Users",
                "",
                Some("Identity=anyone"),
            ),
            (
                Fault::ChatSecondFilterDropped,
                "Channels/c/Webhooks",
                FILTERS,
                Some(FIRST_AND_THIRD),
            ),
            (
                Fault::ChatRoleLastPermissionOnly,
                "Roles",
                "Permission=a&Permission=b",
                Some("Permission=b"),
            ),
        ] {
            let mut request = Request::new("POST", format!("/chat/v2/Services/IS1/{path}"));
            request.body = sent.into();
            let segments = request.segments();
            let mut call = Call::new(&request, &segments[1..], Timestamp::UNIX_EPOCH);
            let mut core = core(Some(fault));
            core.operation = Operation::from_call(&segments[0], &call);
            let seen = core.misread(&mut call).ok().map(|()| {
                let mut form = url::form_urlencoded::Serializer::new(String::new());
                form.extend_pairs(&call.form.0).finish()
            });
            assert_eq!(seen.as_deref(), read, "{fault:?}");
        }
    }

    const FILTERS: &str = "Configuration.Filters=a&Configuration.Filters=b&Configuration.Filters=c";
    const FIRST_AND_THIRD: &str = "Configuration.Filters=a&Configuration.Filters=c";
}
