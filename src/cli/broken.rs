//! `diff --sdk`: finds payloads in a folder that are valid in the old version and invalid in the new one.
//!
//! Reads JSON files, lines of NDJSON, and responses in recordings. The type of a payload follows from
//!
//! - its path (`chat/channel/….json`, `events/MessageSent/4.ndjson`),
//! - the operation that returned it,
//! - or the only changed type under which it is valid.

use super::Failure;
use conformant_base::files;
use conformant_base::json::{self, Limits};
use conformant_judge::payload::validate_payload;
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use conformant_versions::{Comparison, Subject};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Both versions, and the types that differ: older name and newer name.
pub(super) struct Bump<'a> {
    old: (&'a Rulebook, Schemas),
    new: (&'a Rulebook, Schemas),
    kinds: BTreeSet<(String, String)>,
}

impl<'a> Bump<'a> {
    pub(super) fn new(comparison: &Comparison, old: &'a Rulebook, new: &'a Rulebook) -> Self {
        let pairs = comparison.changes.iter().filter_map(|change| {
            let Subject::Representation { old, new, .. } = &change.subject else {
                return None;
            };
            Some((old.clone(), new.clone()))
        });
        let both =
            |(a, b): &(String, String)| old.kinds.contains_key(a) && new.kinds.contains_key(b);
        Self {
            old: (old, Schemas::default()),
            new: (new, Schemas::default()),
            kinds: pairs.filter(both).collect(),
        }
    }

    /// The payloads of a folder that were valid and now break a rule, with that rule.
    pub(super) fn broken(&self, folder: &Path) -> Result<Vec<String>, Failure> {
        let mut found = Vec::new();
        for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
            let entry = entry.map_err(|e| {
                Failure::Usage(format!("failed to read --sdk {}: {e}", folder.display()))
            })?;
            let path = entry.path();
            let ending = path
                .extension()
                .and_then(|e| e.to_str())
                .unwrap_or_default();
            if !entry.file_type().is_file()
                || !matches!(ending, "json" | "ndjson" | "jsonl" | "har")
            {
                continue;
            }
            let inside = path
                .strip_prefix(folder)
                .unwrap_or(path)
                .display()
                .to_string();
            let bytes = files::read(path, files::STORED_BYTES_MAX)?;
            match ending {
                "har" => self.recording(&inside, &bytes, &mut found),
                "json" => self.payload(&inside, &inside, &bytes, &mut found),
                _ => {
                    for (number, line) in (1..).zip(bytes.split(|b| *b == b'\n')) {
                        self.payload(&inside, &format!("{inside}:{number}"), line, &mut found);
                    }
                }
            }
        }
        Ok(found)
    }

    fn payload(&self, path: &str, place: &str, bytes: &[u8], found: &mut Vec<String>) {
        let Ok(parsed) = json::parse(bytes, Limits::default()) else {
            return;
        };
        let named = |(old, _): &&(String, String)| is_named(path, old);
        let right = |(old, _): &&(String, String)| self.is_right(old, &parsed.value);
        let by_path = self.kinds.iter().find(named);
        let by_value: Vec<_> = self.kinds.iter().filter(right).collect();
        let pair = match (by_path, by_value.as_slice()) {
            (Some(pair), _) => pair,
            (None, [pair]) => *pair,
            (None, _) => return,
        };
        self.judge(pair, place, &parsed.value, found);
    }

    /// Checks the accepted responses of a recording, by the operation that returned them.
    fn recording(&self, path: &str, bytes: &[u8], found: &mut Vec<String>) {
        let recording: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let entries = recording.pointer("/log/entries").and_then(Value::as_array);
        for (number, entry) in (1..).zip(entries.into_iter().flatten()) {
            let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str);
            let status = entry.pointer("/response/status").and_then(Value::as_u64);
            let (Some(method), Some(url)) = (text("/request/method"), text("/request/url")) else {
                continue;
            };
            let Some(body) = text("/response/content/text") else {
                continue;
            };
            if !status.is_some_and(|status| (200..300).contains(&status)) {
                continue;
            }
            let Ok(parsed) = json::parse(body.as_bytes(), Limits::default()) else {
                continue;
            };
            let place = format!("{path}, entry {number}");
            let kind = self.replacement(method, url);
            let pair = self
                .kinds
                .iter()
                .find(|(old, _)| Some(old) == kind.as_ref());
            if let Some(pair) = pair {
                self.judge(pair, &place, &parsed.value, found);
            }
        }
    }

    /// The type that the operation with that address returns.
    fn replacement(&self, method: &str, url: &str) -> Option<String> {
        let path = url.split_once("://").map_or(url, |(_, rest)| rest);
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let asked: Vec<&str> = path.split('/').collect();
        let services = self.old.0.services.values();
        let operations = services.flat_map(|service| service.operations.values());
        let leads = |template: &str| {
            let known: Vec<&str> = template.split('/').skip(1).collect();
            let begins = asked.len().checked_sub(known.len());
            begins.is_some_and(|begins| {
                let alike =
                    |(known, asked): (&&str, &&str)| known.starts_with('{') || known == asked;
                known.iter().zip(&asked[begins..]).all(alike)
            })
        };
        let mut found =
            operations.filter(|o| o.method == method && !o.path.is_empty() && leads(&o.path));
        found.next()?.response.clone()
    }

    fn judge(
        &self,
        (old, new): &(String, String),
        place: &str,
        value: &Value,
        found: &mut Vec<String>,
    ) {
        if !self.is_right(old, value) {
            return;
        }
        let judged = validate_payload(self.new.0, &self.new.1, new, value);
        found.extend(judged.violations.iter().map(|one| {
            format!(
                "{place}: {} at `{}`: {}",
                one.rule, one.pointer, one.message
            )
        }));
    }

    fn is_right(&self, kind: &str, value: &Value) -> bool {
        validate_payload(self.old.0, &self.old.1, kind, value)
            .violations
            .is_empty()
    }
}

/// Whether a path is below the name of a type: `events/MessageSent/4/….json` or `….ndjson`.
pub(super) fn is_named(path: &str, kind: &str) -> bool {
    path.find(kind).is_some_and(|at| {
        let (before, behind) = (&path[..at], &path[at + kind.len()..]);
        (before.is_empty() || before.ends_with('/')) && behind.starts_with(['/', '.'])
    })
}
