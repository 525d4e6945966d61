//! Declared changes: breaking ones that were made on purpose, each with its reason.
//!
//! A declaration that declares nothing any more shuts the gate too: an exception must not outlive
//! its reason.

use super::Comparison;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A file of declarations.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeclaredFile {
    /// The declarations.
    pub changes: Vec<Declaration>,
}

/// One change that is meant.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// Id of the change, whole.
    pub id: String,
    /// Why it is made nevertheless.
    pub reason: String,
}

impl Comparison {
    /// Marks what is declared, and lists the declarations that declare nothing.
    pub fn declare(&mut self, declarations: &[Declaration]) {
        let mut reasons: BTreeMap<&str, &str> = declarations
            .iter()
            .map(|d| (d.id.as_str(), d.reason.as_str()))
            .collect();
        for change in &mut self.changes {
            if let Some(reason) = reasons.remove(change.id.as_str()) {
                change.declared = Some(reason.to_owned());
            }
        }
        self.stale = reasons.into_keys().map(str::to_owned).collect();
    }
}
