//! The error type of the library.

use conformant_rulebook::Problems;
use std::error::Error as StdError;

/// Why an operation failed. A defect of a target is not an error but a [`Finding`](crate::Finding).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Invalid rulebook files: all problems of all files, each with file, line and advice.
    #[error("failed to load the rulebook: {0}")]
    Rulebook(#[source] Problems),
    /// An unknown name of a type, service, key, fault or variation.
    #[error("no {what} is named `{name}`; {help}")]
    Unknown {
        /// What the name stands for.
        what: &'static str,
        /// The name.
        name: String,
        /// A similar name, or how to list all.
        help: String,
    },
    /// An unusable argument, such as an invalid address.
    #[error("{what}: {why}")]
    Unusable {
        /// The argument.
        what: String,
        /// Why it cannot be used.
        why: String,
    },
    /// A system error, such as for a port or a file.
    #[error("failed to {what}: {source}")]
    Machine {
        /// The failed action.
        what: String,
        /// The error of the system.
        source: Box<dyn StdError + Send + Sync>,
    },
}

impl Error {
    /// An unknown name, with a similar one or the command that lists all.
    pub(super) fn unknown(what: &'static str, name: &str, known: &[&str], list: &str) -> Self {
        let near = conformant_base::text::did_you_mean(name, known);
        // Without its service, a name can belong to several.
        let same: Vec<String> = known
            .iter()
            .filter(|id| id.split_once('/').is_some_and(|(_, rest)| rest == name))
            .map(|id| format!("`{id}`"))
            .collect();
        if !same.is_empty() {
            return Self::Unknown {
                what,
                name: name.to_owned(),
                help: format!("did you mean {}?", same.join(" or ")),
            };
        }
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
