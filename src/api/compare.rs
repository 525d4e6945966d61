//! Versions compared.

use super::error::Error;
use super::rulebook::Rulebook;
use conformant_versions::{Class, CompareError, Comparison};

/// One change between two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The same for the same change in every comparison: what a declaration accepts it by.
    pub id: String,
    /// Where, for a person: `events/MessageSent/5 at /from/channel`.
    pub place: String,
    /// One sentence that says what changed, and why it breaks whom it breaks.
    pub says: String,
    /// Whether a consumer that was right may be wrong now.
    pub breaks_consumers: bool,
    /// Whether a producer that was right may be wrong now.
    pub breaks_producers: bool,
}

impl Change {
    /// Whether somebody who was right may be wrong now.
    pub fn is_breaking(&self) -> bool {
        self.breaks_consumers || self.breaks_producers
    }
}

/// What is different between two rulebooks, by id: what `conformant diff OLD NEW` tells.
///
/// ```
/// let rulebook = conformant::Rulebook::embedded()?;
/// assert!(conformant::diff(&rulebook, &rulebook).is_empty());
/// # Ok::<(), conformant::Error>(())
/// ```
pub fn diff(old: &Rulebook, new: &Rulebook) -> Vec<Change> {
    changes(conformant_versions::rulebooks(
        ("old", &old.inner),
        ("new", &new.inner),
    ))
}

/// What is different between two kinds of one rulebook, such as versions of an event, which may leave their
/// folder out: `MessageSent/3` and `MessageSent/4`.
///
/// ```
/// let rulebook = conformant::Rulebook::embedded()?;
/// let changes = conformant::diff_kinds(&rulebook, "chat/channel", "chat/channel-v3")?;
/// assert!(changes.iter().any(|change| change.is_breaking()));
/// # Ok::<(), conformant::Error>(())
/// ```
///
/// # Errors
/// [`Error::Unknown`] with a near name.
pub fn diff_kinds(rulebook: &Rulebook, old: &str, new: &str) -> Result<Vec<Change>, Error> {
    match conformant_versions::kinds(&rulebook.inner, old, new) {
        Ok(comparison) => Ok(changes(comparison)),
        Err(CompareError::NoSuchKind { name, .. }) => {
            let known: Vec<&str> = rulebook.kinds().collect();
            Err(Error::unknown("kind", &name, &known, "kinds"))
        }
    }
}

fn changes(comparison: Comparison) -> Vec<Change> {
    let change = |change: conformant_versions::Change| {
        let breaks = |class| change.class.contains(&class);
        Change {
            breaks_consumers: breaks(Class::BreakingForConsumers),
            breaks_producers: breaks(Class::BreakingForProducers),
            id: change.id,
            place: change.place,
            says: change.message,
        }
    };
    comparison.changes.into_iter().map(change).collect()
}
