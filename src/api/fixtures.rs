//! Fixtures in memory.

use super::error::Error;
use super::rulebook::Rulebook;
use conformant_fixtures::{Filing, SetError, Text, VALID_DEFAULT, Wanted, make, subjects};
use conformant_schema::Schemas;
use std::sync::atomic::AtomicBool;

/// A document of a type: valid, or invalid in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fixture {
    /// Name in the set: `flow/execution/valid-0.json`.
    pub name: String,
    /// The document: JSON, XML for some responses of `auth`, a token, or the text of a QR code.
    pub text: String,
    /// The only rule that it breaks; none if it is valid.
    pub breaks: Option<Break>,
}

/// The mutation of an invalid fixture.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Break {
    /// The broken rule.
    pub rule: String,
    /// The place, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// Name of the mutation: `missing`, `null`, `type`, `too-long`, …
    pub change: String,
    /// Name of its baseline fixture, from which it differs in that place only.
    pub twin: String,
}

/// Ten valid documents of a type, and invalid ones that break exactly one rule each, like
/// `conformant fixtures generate --invalid --kind KIND`. The same seed gives the same bytes.
///
/// `kind` is one of [`Rulebook::kinds`], the body of a request as `SERVICE/OPERATION`, `token` or `qr`.
///
/// ```
/// let rulebook = conformant::Rulebook::embedded()?;
/// let fixtures = conformant::fixtures(&rulebook, "events/MessageSent/4", 7)?;
/// let (valid, broken): (Vec<_>, Vec<_>) = fixtures.iter().partition(|f| f.breaks.is_none());
/// assert!(valid.len() >= 10 && !broken.is_empty());
/// # Ok::<(), conformant::Error>(())
/// ```
///
/// # Errors
/// [`Error::Unknown`] for an unknown type, [`Error::Unusable`] for a schema of a custom rulebook that the generator
/// does not support.
pub fn fixtures(rulebook: &Rulebook, kind: &str, seed: u64) -> Result<Vec<Fixture>, Error> {
    let all = subjects(&rulebook.inner);
    let subject = all.iter().find(|subject| subject.name == kind);
    let text = Text::named(kind);
    if subject.is_none() && text.is_none() {
        let texts = Text::ALL.map(Text::name);
        let names = all.iter().map(|subject| subject.name.as_str());
        let known: Vec<&str> = names.chain(texts).collect();
        return Err(Error::unknown("kind", kind, &known, "kinds"));
    }
    let wanted = Wanted {
        subjects: subject.into_iter().collect(),
        texts: text.into_iter().collect(),
        seed,
        valid_count: VALID_DEFAULT,
        invalid: true,
        filing: Filing::Tree,
        jobs: 1,
    };
    let unusable = |why: SetError| Error::Unusable {
        what: kind.to_owned(),
        why: why.to_string(),
    };
    let made = make(
        &rulebook.inner,
        &Schemas::default(),
        &wanted,
        &AtomicBool::new(false),
    );
    let mut set = made.map_err(unusable)?;
    let fixture = |entry: conformant_fixtures::Entry| {
        let bytes = set.files.remove(&entry.file).unwrap_or_default();
        Fixture {
            name: entry.name,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            breaks: entry.breaks_rule.map(|rule| Break {
                rule,
                pointer: entry.pointer.unwrap_or_default(),
                change: entry.change.unwrap_or_default(),
                twin: entry.twin.unwrap_or_default(),
            }),
        }
    };
    Ok(set.manifest.fixtures.into_iter().map(fixture).collect())
}
