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
use conformant_base::text::count;
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

#[derive(Debug, Default)]
pub(super) struct Payloads {
    /// Those that were valid and now break a rule, with that rule.
    pub(super) broken: Vec<String>,
    /// Number of payloads of a changed type that were valid.
    checked: usize,
    /// Number of payloads of other types, and of invalid ones.
    others: usize,
    /// Files and lines that are not JSON.
    unreadable: Vec<String>,
    /// Payloads that are valid under several of the changed types.
    ambiguous: Vec<String>,
}

impl Payloads {
    /// One line with what was checked and what was not.
    pub(super) fn summary(&self, folder: &Path) -> String {
        let warning = if self.checked == 0 { "warning: " } else { "" };
        let checked = count(self.checked, "payload");
        let mut line = format!("{warning}--sdk {}: {checked} checked", folder.display());
        let mut skipped = Vec::new();
        if self.others > 0 {
            skipped.push(format!(
                "{} of no changed type or invalid before",
                self.others
            ));
        }
        for (places, why) in [
            (&self.unreadable, "not JSON"),
            (&self.ambiguous, "valid under several changed types"),
        ] {
            if let Some(first) = places.first() {
                skipped.push(format!("{} {why}, such as {first}", places.len()));
            }
        }
        if !skipped.is_empty() {
            line += &format!("; skipped: {}", skipped.join("; "));
        }
        line
    }
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

    /// Reads the payloads of a folder and judges those of a changed type.
    pub(super) fn payloads(&self, folder: &Path) -> Result<Payloads, Failure> {
        let mut found = Payloads::default();
        for file in stored_payloads(folder, "--sdk", &["json", "ndjson", "jsonl", "har"]) {
            let StoredPayloads {
                inside,
                ending,
                bytes,
            } = file?;
            match ending.as_str() {
                "har" => self.recording(&inside, &bytes, &mut found),
                "json" => self.payload(&inside, &inside, &bytes, &mut found),
                _ => {
                    let lines = (1..).zip(bytes.split(|b| *b == b'\n'));
                    for (number, line) in lines.filter(|(_, line)| !line.trim_ascii().is_empty()) {
                        self.payload(&inside, &format!("{inside}:{number}"), line, &mut found);
                    }
                }
            }
        }
        Ok(found)
    }

    fn payload(&self, path: &str, place: &str, bytes: &[u8], found: &mut Payloads) {
        let Ok(parsed) = json::parse(bytes, Limits::default()) else {
            found.unreadable.push(place.to_owned());
            return;
        };
        let named = |(old, _): &&(String, String)| is_named(path, old);
        let right = |(old, _): &&(String, String)| self.is_right(old, &parsed.value);
        let by_path = self.kinds.iter().find(named);
        let by_value: Vec<_> = self.kinds.iter().filter(right).collect();
        let pair = match (by_path, by_value.as_slice()) {
            (Some(pair), _) => pair,
            (None, [pair]) => *pair,
            (None, []) => {
                found.others += 1;
                return;
            }
            (None, [_, _, ..]) => {
                found.ambiguous.push(place.to_owned());
                return;
            }
        };
        self.judge(pair, place, &parsed.value, found);
    }

    /// Checks the accepted responses of a recording, by the operation that returned them.
    fn recording(&self, path: &str, bytes: &[u8], found: &mut Payloads) {
        let Ok(recording) = serde_json::from_slice::<Value>(bytes) else {
            found.unreadable.push(path.to_owned());
            return;
        };
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
            match pair {
                Some(pair) => self.judge(pair, &place, &parsed.value, found),
                None => found.others += 1,
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
        found: &mut Payloads,
    ) {
        if !self.is_right(old, value) {
            found.others += 1;
            return;
        }
        found.checked += 1;
        let judged = validate_payload(self.new.0, &self.new.1, new, value);
        found.broken.extend(judged.violations.iter().map(|one| {
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

/// A file with payloads.
pub(super) struct StoredPayloads {
    /// Its path below the folder.
    pub(super) inside: String,
    pub(super) ending: String,
    pub(super) bytes: Vec<u8>,
}

/// The files below a folder whose names have one of these endings.
pub(super) fn stored_payloads<'a>(
    folder: &'a Path,
    what: &'a str,
    endings: &'a [&str],
) -> impl Iterator<Item = Result<StoredPayloads, Failure>> + 'a {
    let entries = walkdir::WalkDir::new(folder).sort_by_file_name();
    let is_wanted = |path: &Path| {
        let ending = path.extension().and_then(|e| e.to_str());
        ending.is_some_and(|ending| endings.contains(&ending))
    };
    let read = move |entry: walkdir::Result<walkdir::DirEntry>| {
        let entry = entry.map_err(|e| {
            Failure::Usage(format!("failed to read {what} {}: {e}", folder.display()))
        })?;
        let path = entry.path();
        if !entry.file_type().is_file() || !is_wanted(path) {
            return Ok(None);
        }
        let inside = path.strip_prefix(folder).unwrap_or(path);
        let ending = path.extension().unwrap_or_default();
        Ok(Some(StoredPayloads {
            inside: inside.display().to_string(),
            ending: ending.to_string_lossy().into_owned(),
            bytes: files::read(path, files::STORED_BYTES_MAX)?,
        }))
    };
    entries
        .into_iter()
        .filter_map(move |entry| read(entry).transpose())
}

/// Whether a path is below the name of a type: `events/MessageSent/4/….json` or `….ndjson`.
pub(super) fn is_named(path: &str, kind: &str) -> bool {
    path.find(kind).is_some_and(|at| {
        let (before, behind) = (&path[..at], &path[at + kind.len()..]);
        (before.is_empty() || before.ends_with('/')) && behind.starts_with(['/', '.'])
    })
}
