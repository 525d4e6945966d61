//! Why something could not be done: one type for all of the interface.

use conformant_rulebook::Problems;
use std::error::Error as StdError;

/// Why something could not be done. What is wrong with a target is no error but a
/// [`Finding`](crate::Finding).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Files of the rulebook are wrong: all problems of all files, each with file, line and what to do.
    #[error("the rulebook cannot be loaded: {0}")]
    Rulebook(#[source] Problems),
    /// A name that stands for nothing: of a kind, a service, a key, a fault, a variant.
    #[error("no {what} is named `{name}`; {help}")]
    Unknown {
        /// What was named.
        what: &'static str,
        /// As given.
        name: String,
        /// A near one, or where all are listed.
        help: String,
    },
    /// What was given cannot be used, such as an address that is none.
    #[error("{what}: {why}")]
    Unusable {
        /// What was given.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The machine did not do its part: a port, a file.
    #[error("failed to {what}: {source}")]
    Machine {
        /// What was to be done.
        what: String,
        /// What the system said.
        source: Box<dyn StdError + Send + Sync>,
    },
}

impl Error {
    /// A name that stands for nothing, with a near one or the list that has all.
    pub(super) fn unknown(what: &'static str, name: &str, known: &[&str], list: &str) -> Self {
        let near = conformant_base::text::did_you_mean(name, known);
        Self::Unknown {
            what,
            name: name.to_owned(),
            help: near.map_or_else(
                || format!("see `conformant list {list}`"),
                |near| format!("did you mean `{near}`?"),
            ),
        }
    }

    pub(super) fn machine(
        what: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        let (what, source) = (what.into(), source.into());
        Self::Machine { what, source }
    }
}
