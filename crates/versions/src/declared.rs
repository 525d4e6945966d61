//! Declarations of intended breaking changes, each with a reason.
//!
//! A declaration without a matching change also fails the gate, so that exceptions are removed with their reason.

use super::Comparison;
use conformant_base::sorted::SortedMap;
use schemars::JsonSchema;
use serde::Deserialize;

/// A file of declarations.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeclaredFile {
    /// The declarations.
    pub changes: Vec<Declaration>,
}

/// One intended change.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// Complete id of the change.
    pub id: String,
    /// Reason for it.
    pub reason: String,
}

impl Comparison {
    /// Marks declared changes, and lists declarations without a matching change.
    pub fn declare(&mut self, declarations: &[Declaration]) {
        let mut reasons: SortedMap<&str, &str> = declarations
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
