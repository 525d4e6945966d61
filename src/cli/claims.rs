//! `--claims FILE`: fails a run that did not judge what the implementation claims.

use super::{Failure, parse_file, read_file};
use conformant_base::text::did_you_mean;
use conformant_engine::{features, need_in};
use conformant_record::RunRecord;
use conformant_record::claims::{ALL, ClaimsFile};
use conformant_record::waivers::{Waiver, WaiverFile};
use conformant_rulebook::Rulebook;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The claims of a run, if any.
#[derive(Debug)]
pub(super) struct Claims(Option<(PathBuf, ClaimsFile)>);

impl Claims {
    pub(super) fn read(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Self(None));
        };
        Ok(Self(Some((path.to_owned(), parse_file(path)?))))
    }

    /// The waivers of a flag, or those that the claims name.
    pub(super) fn waivers(&self, flag: Option<&Path>) -> Result<Vec<Waiver>, Failure> {
        let claimed = self.0.as_ref().and_then(|(path, file)| {
            let waivers = file.waivers.as_ref()?;
            Some(path.parent().unwrap_or(Path::new("")).join(waivers))
        });
        let path = match (flag, claimed) {
            (Some(flag), Some(claimed)) if flag != claimed => {
                return Err(Failure::Usage(format!(
                    "--waivers {}: the claims name {}; expected one of the two files",
                    flag.display(),
                    claimed.display()
                )));
            }
            (Some(flag), _) => flag.to_owned(),
            (None, Some(claimed)) => claimed,
            (None, None) => return Ok(Vec::new()),
        };
        read_waivers(&path)
    }

    /// Rejects services and features that the rulebook does not have.
    pub(super) fn check_names(&self, rulebook: &Rulebook) -> Result<(), Failure> {
        let Some((path, file)) = &self.0 else {
            return Ok(());
        };
        if file.services.is_empty() {
            return Err(Failure::Usage(format!(
                "{}: `services` is empty: expected what is claimed, such as `flow: [all]`",
                path.display()
            )));
        }
        let features = features(rulebook);
        let mut problems = Vec::new();
        for (service, claimed) in &file.services {
            let Some(known) = features.get(service) else {
                let known: Vec<&str> = features.keys().map(String::as_str).collect();
                let what = format!("services: unknown service `{service}`");
                problems.push(unknown(&what, service, &known));
                continue;
            };
            let known: BTreeSet<&str> = known.keys().map(String::as_str).collect();
            for feature in claimed {
                if feature != ALL && !known.contains(feature.as_str()) {
                    let mut known: Vec<&str> = known.iter().copied().collect();
                    known.push(ALL);
                    let what = format!("services.{service}: unknown feature `{feature}`");
                    problems.push(unknown(&what, feature, &known));
                }
            }
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Failure::Usage(format!(
                "{}: {}",
                path.display(),
                problems.join("; ")
            ))),
        }
    }

    /// Adds the claims to the record. Returns one line for each claim that was not judged.
    pub(super) fn judge(&self, record: &mut RunRecord) -> Vec<String> {
        let Some((_, file)) = &self.0 else {
            return Vec::new();
        };
        let result = file.judge(record, need_in);
        let unjudged = result.unjudged.iter().map(|claim| claim.says());
        let unjudged = unjudged.collect();
        record.claims = Some(result);
        unjudged
    }
}

pub(super) fn read_waivers(path: &Path) -> Result<Vec<Waiver>, Failure> {
    let bytes = read_file(path)?;
    let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#"));
    if first.is_some_and(|line| line.starts_with(b"- ")) {
        return Err(Failure::Usage(format!(
            "{}: found a list, expected the key `waivers`; write the line `waivers:` above the list",
            path.display()
        )));
    }
    Ok(parse_file::<WaiverFile>(path)?.waivers)
}

fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    let hint = did_you_mean(word, known)
        .map(|name| format!("did you mean `{name}`? "))
        .unwrap_or_default();
    format!("{what}: {hint}expected one of {}", known.join(", "))
}
