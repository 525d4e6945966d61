//! Released event versions never change: `specs/events/released.lock` has a digest of each.
//!
//! The digest covers the requirements of a version with its references, not its texts and citations. An unlisted version
//! is a draft.

use super::keywords::bare;
use conformant_base::sorted::SortedMap;
use conformant_base::text;
use conformant_rulebook::{Rulebook, event_version};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

const HEAD: &str = "\
# SHA-256 of what each released event version demands. Lines are added by `conformant events check --release --specs DIR`
# and never change: begin a new version with `conformant events new NAME`.
";

/// The released versions with their digests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released(SortedMap<String, String>);

/// An invalid line of the lock.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to read line {line} of the lock: expected `NAME/VERSION DIGEST`, found `{found}`")]
pub struct ReleasedError {
    pub line: usize,
    pub found: String,
}

impl Released {
    /// Reads the lock.
    pub fn parse(lock: &str) -> Result<Self, ReleasedError> {
        let mut versions = SortedMap::new();
        for (n, line) in lock.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fault = || ReleasedError {
                line: n + 1,
                found: line.to_owned(),
            };
            let (version, digest) = line.split_once(' ').ok_or_else(fault)?;
            let is_digest = digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit());
            let kind = format!("events/{version}");
            let is_new = versions
                .insert(version.to_owned(), digest.to_owned())
                .is_none();
            if !is_digest || !is_new || event_version(&kind).is_none() {
                return Err(fault());
            }
        }
        Ok(Self(versions))
    }

    /// Violations of the lock by a rulebook, one sentence each.
    pub fn problems(&self, rulebook: &Rulebook) -> Vec<String> {
        let mut problems = Vec::new();
        for (version, locked) in &self.0 {
            match digest(rulebook, version) {
                None => problems.push(format!("the released version {version} is gone")),
                Some(digest) if digest != *locked => problems.push(format!(
                    "the released version {version} was edited: put it back and begin the next one \
                     with `conformant events new {}`",
                    version.split('/').next().unwrap_or_default()
                )),
                Some(_) => {}
            }
        }
        problems.extend(gaps(rulebook));
        for kind in rulebook.event_types.values().flatten() {
            let version = kind.strip_prefix("events/").unwrap_or(kind);
            if !self.0.contains_key(version) {
                problems.push(format!(
                    "an event type has the version {version}, which is not released: \
                     `conformant events check --release --specs DIR` releases it"
                ));
            }
        }
        problems
    }

    /// Versions of a rulebook that are neither released nor named by an event type.
    pub fn unused(&self, rulebook: &Rulebook) -> Vec<String> {
        let is_used = |kind: &str| rulebook.event_types.values().flatten().any(|k| k == kind);
        let kinds = rulebook.kinds.keys().filter(|kind| !is_used(kind));
        kinds
            .filter_map(|kind| kind.strip_prefix("events/"))
            .filter(|version| !self.0.contains_key(*version))
            .map(str::to_owned)
            .collect()
    }

    /// Adds the versions in use; existing lines are kept.
    #[must_use]
    pub fn with_current(&self, rulebook: &Rulebook) -> Self {
        let mut versions = self.0.clone();
        for kind in rulebook.event_types.values().flatten() {
            let version = kind.strip_prefix("events/").unwrap_or(kind);
            if let Some(digest) = digest(rulebook, version) {
                versions.entry(version.to_owned()).or_insert(digest);
            }
        }
        Self(versions)
    }

    /// The text of the lock.
    pub fn lock(&self) -> String {
        let mut lock = HEAD.to_owned();
        for (version, digest) in &self.0 {
            writeln!(lock, "{version} {digest}").expect("writing to a String succeeds");
        }
        lock
    }
}

fn digest(rulebook: &Rulebook, version: &str) -> Option<String> {
    let kind = rulebook.kinds.get(&format!("events/{version}"))?;
    Some(text::hex(Sha256::digest(
        text::canonical_json(&bare(&kind.schema)).as_bytes(),
    )))
}

/// Missing versions between the first and the last of an event.
fn gaps(rulebook: &Rulebook) -> Vec<String> {
    let mut by_event: SortedMap<&str, Vec<u64>> = SortedMap::new();
    for (event, version) in rulebook.kinds.keys().filter_map(|kind| event_version(kind)) {
        by_event.entry(event).or_default().push(version);
    }
    let mut problems = Vec::new();
    for (event, mut versions) in by_event {
        versions.sort_unstable();
        for pair in versions.windows(2) {
            if pair[1] - pair[0] > 1 {
                problems.push(format!(
                    "{event} goes from version {} to {}",
                    pair[0], pair[1]
                ));
            }
        }
    }
    problems
}
