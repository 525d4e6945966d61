//! The faults that the self-test knows, with the rules that catch them: names for the defects of a record.

use conformant_base::files;
use conformant_record::{FaultPattern, FirstRun, KnownDefects};
use conformant_reference::Fault;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The kill matrix of this binary.
pub fn caught_by() -> &'static str {
    conformant_specs::text("kill-matrix.yaml")
}

/// Path in the project.
pub const CAUGHT_BY_FILE: &str = "specs/kill-matrix.yaml";

/// The classes of rules that report each defect of a third-party implementation, without its name.
pub const THIRD_PARTY_FILE: &str = "third-party-defects.yaml";

/// How many defects the first runs against implementations reported that no rule was written for.
const FIRST_RUNS_FILE: &str = "first-runs.yaml";

/// The faults and third-party defects for a rulebook; no faults without a kill matrix.
pub fn known_defects(specs: Option<&Path>) -> KnownDefects {
    KnownDefects {
        faults: faults(specs),
        third_party: read::<ThirdParty>(specs, THIRD_PARTY_FILE).defects,
        first_runs: read::<FirstRuns>(specs, FIRST_RUNS_FILE).implementations,
    }
}

/// The file with the classes of third-party defects.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ThirdParty {
    defects: Vec<Vec<String>>,
}

/// The file with the first runs.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstRuns {
    implementations: Vec<FirstRun>,
}

/// A file of the given rulebook, or the embedded one where it has none.
fn read<T: Default + serde::de::DeserializeOwned>(specs: Option<&Path>, name: &str) -> T {
    let given = specs.map(|folder| files::read(&folder.join(name), files::WRITTEN_BYTES_MAX));
    let bytes = match given {
        Some(Ok(bytes)) => bytes,
        Some(Err(_)) | None => conformant_specs::text(name).as_bytes().to_vec(),
    };
    conformant_rulebook::parse_file(name, &bytes).unwrap_or_default()
}

/// The faults of the reference with the rules that catch them; none for a rulebook without a kill matrix.
fn faults(specs: Option<&Path>) -> Vec<FaultPattern> {
    rows(specs)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(name, rules)| {
            let fault = Fault::from_id(name.strip_prefix("fault ")?)?;
            Some(FaultPattern {
                id: fault.id().to_owned(),
                says: fault.says().to_owned(),
                rules,
            })
        })
        .collect()
}

/// The kill matrix: embedded, or in the given rulebook.
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
