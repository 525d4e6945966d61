//! The defects that the self-test knows, with the rules that catch them: what a record's own defects
//! are named after.

use conformant_base::files;
use conformant_record::KnownDefect;
use conformant_reference::Fault;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What each fault is caught by, as the binary was built with it.
pub fn caught_by() -> &'static str {
    conformant_specs::text("kill-matrix.yaml")
}

/// Where it stands in the project.
pub const CAUGHT_BY_FILE: &str = "specs/kill-matrix.yaml";

/// The deliberate defects of the reference with what catches them; none where a rulebook of one's own
/// has no kill matrix.
pub fn known_defects(specs: Option<&Path>) -> Vec<KnownDefect> {
    rows(specs)
        .unwrap_or_default()
        .into_iter()
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

/// The kill matrix as it is recorded: built in, or beside the given rulebook.
fn rows(specs: Option<&Path>) -> Option<BTreeMap<String, BTreeSet<String>>> {
    let bytes = match specs {
        Some(folder) => {
            let name = Path::new(CAUGHT_BY_FILE).file_name()?;
            files::read(&folder.join(name), files::WRITTEN_BYTES_MAX).ok()?
        }
        None => caught_by().as_bytes().to_vec(),
    };
    conformant_rulebook::parse_file(CAUGHT_BY_FILE, &bytes).ok()
}
