//! Comparison of versions.

use super::error::Error;
use super::rulebook::Rulebook;
use conformant_versions::{Class, CompareError, Comparison};

/// One change between two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// Id of the change, the same in every comparison, for declarations.
    pub id: String,
    /// Place, for people: `events/MessageSent/5 at /from/channel`.
    pub place: String,
    /// One sentence with the change and what it breaks.
    pub says: String,
    /// Whether a correct consumer may break.
    pub breaks_consumers: bool,
    /// Whether a correct producer may break.
    pub breaks_producers: bool,
}

impl Change {
    /// Whether a correct consumer or producer may break.
    pub fn is_breaking(&self) -> bool {
        self.breaks_consumers || self.breaks_producers
    }
}

/// The differences between two rulebooks, by id, like `conformant diff OLD NEW`.
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

/// The differences between two types of one rulebook, such as versions of an event: `MessageSent/3` and
/// `MessageSent/4`.
///
/// ```
/// let rulebook = conformant::Rulebook::embedded()?;
/// let changes = conformant::diff_kinds(&rulebook, "chat/channel", "chat/channel-v3")?;
/// assert!(changes.iter().any(|change| change.is_breaking()));
/// # Ok::<(), conformant::Error>(())
/// ```
///
/// # Errors
/// [`Error::Unknown`] with a similar name.
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
