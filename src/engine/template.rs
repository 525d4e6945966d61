//! Interpolation: `${name.field.0}` and the few values that are made (`$text`, `$json`, `$time`,
//! `$repeat`, `$file`). Expanded once: captured text is data and never expanded again.

use crate::clock::{self, Timestamp};
use crate::judge::payload;
use crate::rulebook::Rulebook;
use crate::schema::Schemas;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::time::Duration;

/// Names that a scenario can read.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    rulebook: &'a Rulebook,
    schemas: &'a Schemas,
    /// `target`, as configured.
    target: Value,
    /// What makes `unique.NAME` unique: the run's seed and the scenario's id.
    salt: String,
    captured: BTreeMap<String, Captured>,
    /// `with`, `matrix`, `index`.
    local: BTreeMap<String, Value>,
    now: Timestamp,
}

/// A result kept under a name.
#[derive(Debug)]
struct Captured {
    value: Value,
    /// The kind it is judged as, where it is an answer.
    kind: Option<String>,
    broken: OnceCell<Vec<String>>,
}

/// Why a text could not be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The name or field is not there.
    #[error("`${{{0}}}` has no value")]
    Missing(String),
    /// The value broke a rule of its own, so nothing may be built on it.
    #[error("`${{{name}}}` breaks a rule of its own")]
    Broken {
        /// What was asked for.
        name: String,
    },
    /// A made value is not well-formed.
    #[error("{0}")]
    Malformed(String),
}

impl<'a> Scope<'a> {
    /// A scope with nothing captured.
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
            captured: BTreeMap::new(),
            local: BTreeMap::new(),
            now: Timestamp::UNIX_EPOCH,
        }
    }

    /// Sets what `${now}` is.
    pub(super) fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Sets `with`, `matrix` or `index`, and returns what it was.
    pub(super) fn set_local(&mut self, name: &str, value: Option<Value>) -> Option<Value> {
        match value {
            Some(value) => self.local.insert(name.to_owned(), value),
            None => self.local.remove(name),
        }
    }

    /// Sets a value under `target.SERVICE.KEY`.
    pub(super) fn set_target(&mut self, service: &str, key: &str, value: Value) {
        self.target[service][key] = value;
    }

    /// Keeps a result; `kind` says what it is judged as.
    pub(super) fn capture(&mut self, name: &str, value: Value, kind: Option<String>) {
        self.captured.insert(
            name.to_owned(),
            Captured {
                value,
                kind,
                broken: OnceCell::new(),
            },
        );
    }

    /// Names captured so far.
    pub(super) fn captures(&self) -> Vec<String> {
        self.captured.keys().cloned().collect()
    }

    /// Takes captures out that were not there before, as one object.
    pub(super) fn collect_since(&mut self, before: &[String]) -> Map<String, Value> {
        let new: Vec<String> = self
            .captured
            .keys()
            .filter(|name| !before.contains(name))
            .cloned()
            .collect();
        let mut object = Map::new();
        for name in new {
            if let Some(captured) = self.captured.remove(&name) {
                object.insert(name, captured.value);
            }
        }
        object
    }

    /// Fills in a value: texts are interpolated, made values are made, the rest is copied.
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
            match &value {
                Value::String(text) => filled.push_str(text),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_) => filled.push_str(&value.to_string()),
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
                Ok(Value::String(text.chars().cycle().take(length).collect()))
            }
            "$json" => Ok(Value::String(what.to_string())),
            "$time" => {
                let plus = option("plus")?;
                let offset = option("offset")?;
                made_time(&what, plus.as_ref(), offset.as_ref())
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
        let pointer = path
            .split('.')
            .filter(|s| !s.is_empty())
            .fold(String::new(), |mut p, s| {
                crate::json::push(&mut p, s);
                p
            });
        match root {
            "unique" => return Ok(Value::String(self.unique(path))),
            "now" => return Ok(Value::String(clock::iso_seconds(self.now))),
            "target" => {
                return self
                    .target
                    .pointer(&pointer)
                    .filter(|v| !v.is_null())
                    .cloned()
                    .ok_or_else(missing);
            }
            _ => {}
        }
        if let Some(value) = self.local.get(root) {
            return value.pointer(&pointer).cloned().ok_or_else(missing);
        }
        let captured = self.captured.get(root).ok_or_else(missing)?;
        if self.is_broken(captured, &pointer) {
            return Err(TemplateError::Broken {
                name: name.to_owned(),
            });
        }
        captured
            .value
            .pointer(&pointer)
            .cloned()
            .ok_or_else(missing)
    }

    /// Whether the value at `pointer` breaks a rule of its own; judged when first asked for.
    fn is_broken(&self, captured: &Captured, pointer: &str) -> bool {
        let Some(kind) = &captured.kind else {
            return false;
        };
        let broken = captured.broken.get_or_init(|| {
            payload::judge_payload(self.rulebook, self.schemas, kind, &captured.value)
                .violations
                .into_iter()
                .filter(|v| v.level == crate::verdict::Level::Must)
                .map(|v| v.pointer)
                .collect()
        });
        broken
            .iter()
            .any(|b| pointer == b || (!b.is_empty() && pointer.starts_with(&format!("{b}/"))))
    }

    /// A word that no other scenario, run or seed makes; the same each time within a scenario.
    fn unique(&self, name: &str) -> String {
        let digest = Sha256::digest(format!("{}\n{name}", self.salt).as_bytes());
        let tail: String = digest.iter().take(5).map(|b| format!("{b:02x}")).collect();
        format!("{name}-{tail}")
    }
}

/// A duration as scenarios and configurations write it: `500ms`, `3s`, `-1s`, `10m`, `1h`.
pub(super) fn duration(text: &str) -> Option<jiff::SignedDuration> {
    text.parse().ok()
}

/// A duration that is not negative.
pub(super) fn wait_of(text: &str) -> Option<Duration> {
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
        .and_then(|t| t.parse().ok())
        .ok_or_else(|| malformed("not an instant"))?;
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
    }

    #[test]
    fn durations_are_read_as_written() {
        assert_eq!(wait_of("3s"), Some(Duration::from_secs(3)));
        assert_eq!(wait_of("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(wait_of("-1s"), None);
        assert_eq!(duration("-5m"), Some(jiff::SignedDuration::from_mins(-5)));
    }
}
