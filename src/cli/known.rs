//! The defects that the self-test knows, with the rules that catch them: what a record's own defects
//! are named after.

use super::Failure;
use super::args::Specs;
use crate::reference::Fault;
use crate::rulebook;
use crate::selftest::Recorded;
use crate::verdict::KnownDefect;
use std::path::Path;

/// The record that the binary was built with.
const RECORDED: &str = include_str!("../../specs/kill-matrix.yaml");
/// Where it stands in the project.
pub(super) const RECORD_FILE: &str = "specs/kill-matrix.yaml";

/// The kill matrix as it is recorded: embedded, or beside the given rulebook.
pub(super) fn recorded(specs: &Specs) -> Result<Recorded, Failure> {
    let file = specs
        .specs
        .as_ref()
        .map(|folder| folder.join("kill-matrix.yaml"));
    let bytes = match &file {
        Some(path) => super::read_file(path)?,
        None => RECORDED.as_bytes().to_vec(),
    };
    let name = file
        .as_deref()
        .unwrap_or(Path::new(RECORD_FILE))
        .display()
        .to_string();
    rulebook::parse_file(&name, &bytes).map_err(Failure::Problems)
}

/// The deliberate defects of the reference with what catches them; none where a rulebook of one's own
/// has no kill matrix.
pub(super) fn defects(specs: &Specs) -> Vec<KnownDefect> {
    let rows = recorded(specs).unwrap_or_default();
    rows.into_iter()
        .filter_map(|(name, rules)| {
            let fault = Fault::from_id(name.strip_prefix("fault ")?)?;
            Some(KnownDefect {
                id: fault.id().to_owned(),
                says: fault.says().to_owned(),
                rules,
            })
        })
        .collect()
}
