//! Fixtures in memory.

use super::error::Error;
use super::rulebook::Rulebook;
use conformant_fixtures::{Filing, SetError, Text, VALID_DEFAULT, Wanted, make, subjects};
use conformant_schema::Schemas;
use std::sync::atomic::AtomicBool;

/// A document of a kind, flawless or broken in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fixture {
    /// What it is called in the set: `flow/execution/valid-0.json`.
    pub name: String,
    /// The document: JSON, for some answers of `auth` XML, a token or what a QR code says.
    pub text: String,
    /// The one rule that it breaks; nothing for a flawless one.
    pub breaks: Option<Break>,
}

/// What is wrong with a broken fixture.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Break {
    /// The rule.
    pub rule: String,
    /// Where, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// What was done to its twin: `missing`, `null`, `type`, `too-long`, …
    pub change: String,
    /// Name of the flawless fixture that it differs from in that place alone.
    pub twin: String,
}

/// Ten flawless documents of a kind, and further ones that break exactly one rule each: what
/// `conformant fixtures generate --invalid --kind KIND` writes. The same seed gives the same bytes.
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
/// [`Error::Unknown`] for a kind that there is not, [`Error::Unusable`] for a schema of one's own rulebook that
/// nothing can be made of.
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
        valid: VALID_DEFAULT,
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
