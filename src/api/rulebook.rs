//! The rulebook and its rules.

use super::error::Error;
use conformant_record::Level;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The rules, schemas, operations and scenarios of the documents.
///
/// Loading takes some 40 ms; clones share the loaded data.
///
/// ```
/// let rulebook = conformant::Rulebook::embedded()?;
/// let rule = rulebook.rule("flow/read-flows/page-size").ok_or("no such rule")?;
/// assert_eq!(rule.source(), "D3 \"Endpoints\", lines 77, 106");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rulebook {
    pub(super) inner: Arc<conformant_rulebook::Rulebook>,
    /// The folder that it was read from.
    pub(super) folder: Option<PathBuf>,
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule<'a>(&'a conformant_rulebook::Rule);

impl Rulebook {
    /// The embedded rulebook.
    ///
    /// # Errors
    /// [`Error::Rulebook`], which the tests of this crate exclude.
    pub fn embedded() -> Result<Self, Error> {
        Self::of(None)
    }

    /// The rulebook in a folder such as `specs/`.
    ///
    /// # Errors
    /// [`Error::Rulebook`] with all problems of all files.
    pub fn from_dir(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::of(Some(folder.as_ref()))
    }

    fn of(folder: Option<&Path>) -> Result<Self, Error> {
        let inner = conformant_judge::load::load(folder, &[]).map_err(Error::Rulebook)?;
        Ok(Self {
            inner: Arc::new(inner),
            folder: folder.map(Path::to_owned),
        })
    }

    /// SHA-256 of all files with rules, in hexadecimal.
    pub fn digest(&self) -> &str {
        self.inner.digest()
    }

    /// All rules about services, by id.
    pub fn rules(&self) -> impl Iterator<Item = Rule<'_>> {
        self.inner.rules.values().map(Rule)
    }

    /// The rule with that id.
    pub fn rule(&self, id: &str) -> Option<Rule<'_>> {
        self.inner.rules.get(id).map(Rule)
    }

    /// Names of all types of documents for [`check`](conformant_check()) and [`fixtures`](conformant_fixtures()):
    /// `flow/execution`, `chat/channel[]` for a page of them, `events/MessageSent/4`.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.inner.kinds.keys().map(String::as_str)
    }
}

impl<'a> Rule<'a> {
    /// Its id: `chat/channel/unique-name`.
    pub fn id(self) -> &'a str {
        &self.0.id
    }

    /// Its level.
    pub fn level(self) -> Level {
        self.0.level
    }

    /// The requirement, in one sentence.
    pub fn says(self) -> &'a str {
        &self.0.says
    }

    /// Its source in the documents: `D2 "Limits", line 12`.
    pub fn source(self) -> String {
        self.0.source.to_string()
    }
}
