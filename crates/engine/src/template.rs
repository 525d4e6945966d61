//! Interpolation of `${name.field.0}` and of generated values (`$text`, `$json`, `$time`, `$repeat`, `$near`,
//! `$file`, `$number`).
//!
//! Values are expanded once. Captured text is data and never expanded.

use super::boundary::BoundaryChange;
use super::stop::Stop;
use conformant_base::clock::{self, Timestamp};
use conformant_base::instant::is_in_minutes;
use conformant_base::json;
use conformant_base::text;
use conformant_judge::{DocumentCache, payload};
use conformant_rulebook::step::Wait;
use conformant_rulebook::{Rulebook, kebab};
use conformant_schema::Schemas;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The consistency window: how long a scenario waits for lists and other reads that may lag behind writes (`wait: settled`).
/// Slightly longer than [`conformant_judge::history::SETTLE`], after which the rules report, so that they can report.
pub(crate) const CONSISTENCY_WINDOW: Duration = Duration::from_secs(11);

/// The names that a scenario can read.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    rulebook: &'a Rulebook,
    schemas: &'a Schemas,
    /// `target`, as configured.
    target: Value,
    /// Makes `unique.NAME` unique: the run's seed and the scenario's id.
    salt: String,
    /// The number of which `$number` uses the last digits; see `Planned::first_number`.
    first_number: u64,
    captured: BTreeMap<String, Captured>,
    /// `with`, `matrix`, `index`.
    local: BTreeMap<String, Value>,
    now: Timestamp,
    /// Captures that are missing because of a broken rule, with that rule.
    masked: BTreeMap<String, String>,
    /// The broken rule of a value that was used nevertheless; see [`Scope::take_taint`].
    taint: RefCell<Option<String>>,
    /// Cached validation results of captured answers.
    memo: DocumentCache,
}

/// A captured result.
#[derive(Debug)]
struct Captured {
    /// Shared with the evidence, because an answer may be large.
    value: Arc<Value>,
    /// The answer it belongs to, if any.
    origin: Option<Origin>,
    /// Its places that break rules, with those rules.
    broken: OnceCell<Vec<(String, String)>>,
}

/// The answer that a result came from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// The type it is judged as.
    pub(super) kind: String,
    /// Parameters of the request.
    pub(super) sent: BTreeMap<String, Value>,
}

/// Why a text could not be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The name or field does not exist.
    #[error("`${{{0}}}` is undefined: no earlier answer contains it")]
    Missing(String),
    /// The value broke a rule and cannot be determined otherwise.
    #[error("`${{{name}}}` is undefined: masked by {rule}")]
    Masked {
        name: String,
        /// The broken rule.
        rule: String,
    },
    /// A generated value is malformed.
    #[error("{0}")]
    Malformed(String),
}

impl From<TemplateError> for Stop {
    fn from(error: TemplateError) -> Self {
        match error {
            TemplateError::Missing(ref name) if name.starts_with("target.") => {
                Self::NotApplicable(format!("not configured: {}", configuration_key(name)))
            }
            TemplateError::Missing(name) => Self::Inconclusive(format!(
                "no answer so far contains `{}`, which a later step needs",
                place_in_answer(&name)
            )),
            TemplateError::Masked { rule, .. } => Self::Masked(rule),
            TemplateError::Malformed(why) => Self::Error(why),
        }
    }
}

/// The place in an answer that a template reads. The result of a step that calls an address holds the answer below `json`,
/// so that `again.json.links.last_message` is `links.last_message`.
pub(super) fn place_in_answer(name: &str) -> &str {
    name.split_once(".json.").map_or(name, |(_, place)| place)
}

/// The configuration key of `target.SERVICE.KEY`.
fn configuration_key(name: &str) -> String {
    name.strip_prefix("target.people.").map_or_else(
        || format!("targets.{}", name.trim_start_matches("target.")),
        |key| format!("people.{key}"),
    )
}

impl<'a> Scope<'a> {
    pub(super) fn new(
        rulebook: &'a Rulebook,
        schemas: &'a Schemas,
        target: Value,
        salt: String,
    ) -> Self {
        Self {
            rulebook,
            schemas,
            target,
            salt,
            first_number: 0,
            captured: BTreeMap::new(),
            local: BTreeMap::new(),
            now: Timestamp::UNIX_EPOCH,
            masked: BTreeMap::new(),
            taint: RefCell::default(),
            memo: DocumentCache::default(),
        }
    }

    /// The cached validation results of captured answers.
    pub(super) fn into_memo(self) -> DocumentCache {
        self.memo
    }

    /// Notes that a capture is missing because of a broken rule.
    pub(super) fn mask(&mut self, name: &str, rule: &str) {
        self.captured.remove(name);
        self.masked.insert(name.to_owned(), rule.to_owned());
    }

    /// The broken rule of a value that was filled in since the last call. If the request with this value is rejected,
    /// the rejection is not evidence.
    pub(super) fn take_taint(&self) -> Option<String> {
        self.taint.take()
    }

    /// Sets `${now}`.
    pub(super) fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Sets `with`, `matrix` or `index`, and returns the previous value.
    pub(super) fn set_local(&mut self, name: &str, value: Option<Value>) -> Option<Value> {
        match value {
            Some(value) => self.local.insert(name.to_owned(), value),
            None => self.local.remove(name),
        }
    }

    /// Sets a value under `target.SERVICE.KEY`, and returns the previous one.
    pub(super) fn set_target(&mut self, service: &str, key: &str, value: Value) -> Value {
        std::mem::replace(&mut self.target[service][key], value)
    }

    /// Stores a result; `origin` is the answer it is judged as.
    pub(super) fn capture(
        &mut self,
        name: &str,
        value: impl Into<Arc<Value>>,
        origin: Option<Origin>,
    ) {
        self.masked.remove(name);
        let value = value.into();
        let broken = OnceCell::new();
        let captured = Captured {
            value,
            origin,
            broken,
        };
        self.captured.insert(name.to_owned(), captured);
    }

    /// Names captured or missing so far.
    pub(super) fn captures(&self) -> BTreeSet<String> {
        self.captured
            .keys()
            .chain(self.masked.keys())
            .cloned()
            .collect()
    }

    /// Removes the capture of that name if it is not in `before`.
    pub(super) fn take_since(&mut self, before: &BTreeSet<String>, name: &str) -> Option<Value> {
        (!before.contains(name))
            .then(|| self.captured.remove(name))
            .flatten()
            .map(|captured| Arc::unwrap_or_clone(captured.value))
    }

    /// Adds a prefix to the captures that are not in `before`: `channel` becomes `prefix.channel`.
    pub(super) fn prefix_since(&mut self, before: &BTreeSet<String>, prefix: &str) {
        for name in self.captures().difference(before) {
            let longer = format!("{prefix}.{name}");
            if let Some(captured) = self.captured.remove(name) {
                self.captured.insert(longer.clone(), captured);
            }
            if let Some(rule) = self.masked.remove(name) {
                self.masked.insert(longer, rule);
            }
        }
    }

    /// Fills in a value: interpolates texts, generates values and copies the rest.
    pub(super) fn fill(&self, value: &Value) -> Result<Value, TemplateError> {
        match value {
            Value::String(text) => self.fill_text(text),
            Value::Array(items) => items
                .iter()
                .map(|item| self.fill(item))
                .collect::<Result<_, _>>()
                .map(Value::Array),
            Value::Object(members) => self.fill_object(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
        }
    }

    /// Fills in every value of an object.
    pub(super) fn fill_map(
        &self,
        map: &Map<String, Value>,
    ) -> Result<Map<String, Value>, TemplateError> {
        map.iter()
            .map(|(name, value)| Ok((name.clone(), self.fill(value)?)))
            .collect()
    }

    /// Fills in a text; one that is a single interpolation keeps the value's type.
    pub(super) fn fill_text(&self, text: &str) -> Result<Value, TemplateError> {
        if let Some(name) = text.strip_prefix("${").and_then(|t| t.strip_suffix('}'))
            && !name.contains("${")
        {
            return self.lookup(name);
        }
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let Some(end) = rest[start..].find('}') else {
                break;
            };
            filled.push_str(&rest[..start]);
            let value = self.lookup(&rest[start + 2..start + end])?;
            match value.as_str() {
                Some(text) => filled.push_str(text),
                None => filled.push_str(&value.to_string()),
            }
            rest = &rest[start + end + 1..];
        }
        filled.push_str(rest);
        Ok(Value::String(filled))
    }

    fn fill_object(&self, members: &Map<String, Value>) -> Result<Value, TemplateError> {
        let maker = members.keys().find(|name| name.starts_with('$'));
        let Some(maker) = maker else {
            return self.fill_map(members).map(Value::Object);
        };
        let what = self.fill(&members[maker.as_str()])?;
        let option = |name: &str| members.get(name).map(|v| self.fill(v)).transpose();
        match maker.as_str() {
            "$text" => {
                let length = option("length")?
                    .as_ref()
                    .and_then(Value::as_u64)
                    .unwrap_or_default();
                let text = what.as_str().filter(|t| !t.is_empty()).unwrap_or("x");
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                Ok(Value::String(repeat_to_length(text, length)))
            }
            "$json" => Ok(Value::String(what.to_string())),
            "$time" => {
                let plus = option("plus")?;
                let offset = option("offset")?;
                made_time(&what, plus.as_ref(), offset.as_ref())
            }
            "$near" => {
                let by = option("by")?;
                let near = by
                    .as_ref()
                    .and_then(Value::as_str)
                    .and_then(BoundaryChange::named);
                let near =
                    near.ok_or_else(|| TemplateError::Malformed(format!("$near: {by:?}")))?;
                Ok(Value::String(near.apply(what.as_str().unwrap_or_default())))
            }
            "$number" => {
                let place = option("place")?.as_ref().and_then(Value::as_u64);
                let pattern = what.as_str().unwrap_or_default();
                Ok(Value::String(self.number(pattern, place.unwrap_or(0))))
            }
            "$repeat" => {
                let times = option("times")?
                    .as_ref()
                    .and_then(Value::as_u64)
                    .unwrap_or_default();
                Ok(Value::Array((0..times).map(|_| what.clone()).collect()))
            }
            "$file" => {
                let mut file = self.fill_map(
                    &members
                        .iter()
                        .filter(|(n, _)| *n != maker)
                        .map(|(n, v)| (n.clone(), v.clone()))
                        .collect(),
                )?;
                file.insert("$file".to_owned(), what);
                Ok(Value::Object(file))
            }
            other => Err(TemplateError::Malformed(format!("`{other}` makes nothing"))),
        }
    }

    fn lookup(&self, name: &str) -> Result<Value, TemplateError> {
        let missing = || TemplateError::Missing(name.to_owned());
        let (root, path) = name.split_once('.').unwrap_or((name, ""));
        let pointer = pointer_of(path);
        match root {
            "unique" => return Ok(Value::String(self.unique(path))),
            "now" => return Ok(Value::String(clock::iso_seconds(self.now))),
            "target" => {
                return json::get(&self.target, &pointer)
                    .filter(|v| !v.is_null())
                    .cloned()
                    .ok_or_else(missing);
            }
            _ => {}
        }
        if let Some(value) = self.local.get(root) {
            let value = json::get(value, &pointer);
            return value.cloned().ok_or_else(missing);
        }
        let Some((captured, pointer)) = self.captured(name) else {
            return Err(self.masked_or_missing(name));
        };
        let value = json::get(&captured.value, &pointer);
        let Some(rule) = self.broken(captured, &pointer) else {
            return value.cloned().ok_or_else(|| self.masked_or_missing(name));
        };
        // A malformed value may still identify its resource; otherwise it may be known by other means.
        let value = value.filter(|v| is_usable(v)).cloned();
        let value = value.or_else(|| captured.derived(&pointer));
        self.taint.borrow_mut().get_or_insert_with(|| rule.clone());
        value.ok_or_else(|| TemplateError::Masked {
            name: name.to_owned(),
            rule,
        })
    }

    /// The capture with the longest name that is a prefix of this one, and the pointer into it.
    fn captured(&self, name: &str) -> Option<(&Captured, String)> {
        let ends = name.rmatch_indices('.').map(|(at, _)| at);
        std::iter::once(name.len()).chain(ends).find_map(|end| {
            let captured = self.captured.get(&name[..end])?;
            Some((captured, pointer_of(&name[end..])))
        })
    }

    fn masked_or_missing(&self, name: &str) -> TemplateError {
        let ends = name.match_indices('.').map(|(at, _)| at);
        let mut starts = ends.chain([name.len()]).map(|end| &name[..end]);
        let rule = starts.find_map(|start| self.masked.get(start));
        let name = name.to_owned();
        match rule.cloned() {
            Some(rule) => TemplateError::Masked { name, rule },
            None => TemplateError::Missing(name),
        }
    }

    /// The rule that the value at `pointer` breaks. Judged on first use.
    fn broken(&self, captured: &Captured, pointer: &str) -> Option<String> {
        let origin = captured.origin.as_ref()?;
        let broken = captured.broken.get_or_init(|| {
            let (kind, value) = (&origin.kind, &captured.value);
            let judge = || payload::validate_payload(self.rulebook, self.schemas, kind, value);
            let outcome = self.memo.get_or_validate(kind, value, judge);
            let broken = outcome.violations.iter();
            broken
                .filter(|v| v.level == conformant_record::Level::Must)
                .map(|v| (v.pointer.clone(), v.rule.clone()))
                .collect()
        });
        broken
            .iter()
            .find(|(at, _)| {
                pointer == at
                    || (!at.is_empty()
                        && pointer
                            .strip_prefix(at.as_str())
                            .is_some_and(|rest| rest.starts_with('/')))
            })
            .map(|(_, rule)| rule.clone())
    }

    /// Sets the first number that `$number` draws.
    pub(super) fn set_first_number(&mut self, first: u64) {
        self.first_number = first;
    }

    /// The pattern with a digit for each `#`: those of the first number plus `place`.
    fn number(&self, pattern: &str, place: u64) -> String {
        let mut number = self.first_number + place;
        let mut digits: Vec<char> = pattern.chars().collect();
        for digit in digits.iter_mut().rev().filter(|c| **c == '#') {
            *digit = char::from(b"0123456789"[usize::try_from(number % 10).unwrap_or_default()]);
            number /= 10;
        }
        digits.into_iter().collect()
    }

    /// A word that is unique among scenarios, runs and seeds, and constant within a scenario.
    fn unique(&self, name: &str) -> String {
        let digest = Sha256::digest(format!("{}\n{name}", self.salt).as_bytes());
        format!("{name}-{}", text::hex(digest.into_iter().take(5)))
    }
}

impl Captured {
    /// The value at `pointer`, derived from the resource's URL or the request parameters.
    fn derived(&self, pointer: &str) -> Option<Value> {
        let (above, field) = pointer.rsplit_once('/')?;
        if field == "sid" {
            let url = self.value.pointer(&format!("{above}/url"))?.as_str()?;
            let path = url.split(['?', '#']).next()?.trim_end_matches('/');
            let (_, last) = path.rsplit_once('/')?;
            return (!last.is_empty())
                .then(|| Value::from(conformant_base::http::percent_decode(last)));
        }
        let sent = &self.origin.as_ref()?.sent;
        let same = |name: &str| kebab(name).replace('-', "_") == field;
        let (_, value) = sent.iter().find(|(name, _)| same(name))?;
        (above.is_empty() && is_usable(value)).then(|| value.clone())
    }
}

/// The first `length` characters of the repeated text.
fn repeat_to_length(text: &str, length: usize) -> String {
    let characters = text.chars().count();
    let rest = text.chars().take(length % characters);
    let rest = &text[..rest.map(char::len_utf8).sum::<usize>()];
    text.repeat(length / characters) + rest
}

/// Whether a request can name a resource by this value.
fn is_usable(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Number(_) | Value::Bool(_) => true,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// `.field.0` as a pointer.
fn pointer_of(path: &str) -> String {
    let mut pointer = String::new();
    for segment in path.split('.').filter(|s| !s.is_empty()) {
        json::push(&mut pointer, segment);
    }
    pointer
}

/// A duration in the notation of scenarios and configurations: `500ms`, `3s`, `-1s`, `10m`, `1h`.
pub(super) fn duration(text: &str) -> Option<jiff::SignedDuration> {
    text.parse().ok()
}

/// A duration that is not negative, or the consistency window.
pub(super) fn wait_of(text: &str) -> Option<Duration> {
    if text == Wait::SETTLED {
        return Some(CONSISTENCY_WINDOW);
    }
    duration(text).and_then(|d| Duration::try_from(d).ok())
}

/// `YYYY-MM-DDThh:mm:ss-hh:mm` with an offset, else with `Z`.
fn made_time(
    what: &Value,
    plus: Option<&Value>,
    offset: Option<&Value>,
) -> Result<Value, TemplateError> {
    let malformed = |why: &str| TemplateError::Malformed(format!("$time: {why}: {what}"));
    let at: Timestamp = what
        .as_str()
        .and_then(|t| {
            t.parse()
                .ok()
                .or_else(|| conformant_base::instant::instant(t))
        })
        .ok_or_else(|| malformed("not an instant"))?;
    // A time that was cut to minutes does not determine its seconds.
    if what.as_str().is_some_and(is_in_minutes) {
        return Err(TemplateError::Missing(format!("the second of {what}")));
    }
    let shift = match plus.and_then(Value::as_str) {
        Some(text) => duration(text).ok_or_else(|| malformed("`plus` is not a duration"))?,
        None => jiff::SignedDuration::ZERO,
    };
    let at = at
        .checked_add(shift)
        .map_err(|_| malformed("out of range"))?;
    let Some(offset) = offset.and_then(Value::as_str) else {
        return Ok(json!(clock::iso_seconds(at)));
    };
    let seconds = offset_seconds(offset).ok_or_else(|| malformed("`offset` is not -hh:mm"))?;
    let local = at
        .checked_add(jiff::SignedDuration::from_secs(seconds))
        .map_err(|_| malformed("out of range"))?;
    Ok(json!(format!(
        "{}{offset}",
        local.strftime("%Y-%m-%dT%H:%M:%S")
    )))
}

fn offset_seconds(text: &str) -> Option<i64> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("-", rest) => (-1, rest),
        ("+", rest) => (1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shifted_and_spelled_with_their_offset() {
        let at = json!("2026-01-01T00:00:00Z");
        for (plus, offset, made) in [
            (None, None, "2026-01-01T00:00:00Z"),
            (Some("-1s"), None, "2025-12-31T23:59:59Z"),
            (Some("1s"), Some("-05:30"), "2025-12-31T18:30:01-05:30"),
            (None, Some("-00:00"), "2026-01-01T00:00:00-00:00"),
        ] {
            let (plus, offset) = (plus.map(Value::from), offset.map(Value::from));
            assert_eq!(
                made_time(&at, plus.as_ref(), offset.as_ref()).unwrap(),
                json!(made)
            );
        }
        assert!(made_time(&json!("soon"), None, None).is_err());
        let cut = made_time(&json!("2026-01-01T00:00Z"), None, None);
        assert!(matches!(cut, Err(TemplateError::Missing(_))), "{cut:?}");
    }

    #[test]
    fn durations_are_read_as_written() {
        assert_eq!(wait_of("3s"), Some(Duration::from_secs(3)));
        assert_eq!(wait_of("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(wait_of("-1s"), None);
        assert_eq!(duration("-5m"), Some(jiff::SignedDuration::from_mins(-5)));
    }
}
