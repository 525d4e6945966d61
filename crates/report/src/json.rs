//! The stable JSON report: the record itself, written and read back.
//!
//! Complete, so that a later version can judge, merge, compare and render a stored run.

use conformant_base::text;
use conformant_record::{RunRecord, SCHEMA_VERSION, SCHEMA_VERSION_MIN};
use serde::Deserialize;

/// Why a stored run was refused.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(
        "failed to read the stored run: {0}; expected a record, as `conformant run --report json=FILE` writes it"
    )]
    Shape(#[from] serde_json::Error),
    #[error(
        "failed to read the stored run: its schema_version is {found}, this version reads \
         {SCHEMA_VERSION_MIN} to {SCHEMA_VERSION}; use the version of conformant that wrote it"
    )]
    Version { found: u64 },
}

/// The part that every version has.
#[derive(Deserialize)]
struct Versioned {
    schema_version: u64,
}

pub(super) fn render(record: &RunRecord) -> String {
    text::safe_json(record).expect("map keys are strings")
}

/// Reads what `--report json=` wrote.
pub fn read(json: &[u8]) -> Result<RunRecord, ReadError> {
    // The version first, to avoid a misleading "missing field".
    let Versioned { schema_version } = serde_json::from_slice(json)?;
    if !(u64::from(SCHEMA_VERSION_MIN)..=u64::from(SCHEMA_VERSION)).contains(&schema_version) {
        return Err(ReadError::Version {
            found: schema_version,
        });
    }
    Ok(serde_json::from_slice(json)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{HOSTILE, every_text_is, sample};

    #[test]
    fn the_shape_is_frozen_and_the_version_comes_first() {
        let json = render(&sample());
        assert!(
            json.starts_with("{\n  \"schema_version\": 2,\n  \"tool\": {"),
            "{json}"
        );
        let value: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&json).unwrap();
        let keys: Vec<&str> = value.keys().map(String::as_str).collect();
        assert_eq!(
            keys.join(" "),
            "schema_version tool rulebook targets seed complete summary rules findings \
             open_points scenarios defects exchanges deliveries waivers detection proof invocation exit"
        );
    }

    #[test]
    fn records_read_back_equal_whatever_they_hold() {
        assert_eq!(read(render(&sample()).as_bytes()).unwrap(), sample());
        for text in HOSTILE {
            let record = every_text_is(text);
            let json = render(&record);
            assert!(!json.contains(text::is_deceptive), "{json}");
            assert!(!json.contains("##vso["), "{json}");
            assert_eq!(read(json.as_bytes()).unwrap(), record);
        }
    }

    #[test]
    fn records_of_the_first_version_are_read() {
        let mut old = serde_json::to_value(sample()).unwrap();
        old["schema_version"] = 1.into();
        let members = old.as_object_mut().unwrap();
        let later = "defects exchanges deliveries waivers detection proof invocation exit";
        for later in later.split(' ') {
            assert!(members.remove(later).is_some(), "{later}");
        }
        for rule in old["rules"].as_array_mut().unwrap() {
            rule.as_object_mut()
                .unwrap()
                .retain(|name, _| !["says", "basis", "needs"].contains(&name.as_str()));
        }
        let read = read(old.to_string().as_bytes()).unwrap();
        assert_eq!((read.schema_version, read.defects.len()), (1, 0));
        assert_eq!(read.findings, sample().findings);
    }

    #[test]
    fn other_versions_and_other_files_are_refused_by_name() {
        let error = |json: &str| read(json.as_bytes()).unwrap_err().to_string();
        assert!(error(r#"{"schema_version": 3}"#).contains("is 3, this version reads 1 to 2"));
        assert!(error(r#"{"log": {}}"#).contains("schema_version"));
        assert!(error("<html>").contains("line 1 column 1"));
    }
}
