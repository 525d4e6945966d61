//! Statement about a run: in-toto Statement v1 with the test-result predicate.
//!
//! - Subjects: the target, the evidence file and the JSON record, each with a digest. The configuration is the rulebook.
//! - Tests are rules. A rule that is not decided is in no list.
//! - Not signed: other tools sign statements.

use super::json;
use conformant_base::text;
use conformant_record::{Level, RunRecord, Subject, VACUOUS, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const PREDICATE: &str = "https://in-toto.io/attestation/test-result/v0.1";
const SHA256: &str = "sha256";
/// The annotation with the digest of the evidence's first line.
const RUN: &str = "run";
/// The annotation with the exit code of the run, which also follows from flags, claims and waivers.
const EXIT: &str = "exit";

const TARGET: &str = "target";
const EVIDENCE: &str = "evidence";
const RECORD: &str = "record";
const RULEBOOK: &str = "rulebook";

/// The verdict of a rule in no list.
const NOT_JUDGED: &str = "not judged";
const WITHDRAWN: &str = "withdrawn";

/// A statement about one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Resource>,
    predicate_type: String,
    predicate: TestResult,
}

/// A resource descriptor, as far as a statement uses it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Resource {
    name: String,
    digest: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

/// The predicate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TestResult {
    result: Outcome,
    configuration: Vec<Resource>,
    #[serde(flatten)]
    tests: Tests,
}

/// The result of a whole run, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Outcome {
    /// Something passed and nothing failed.
    Passed,
    /// The same, with findings of level `should` or waived findings.
    Warned,
    /// A must-rule failed, the run is incomplete, nothing was judged, or the run did not exit 0.
    Failed,
}

impl Outcome {
    /// The result of a run that ended with this exit code.
    #[must_use]
    pub const fn of_exit(self, exit: Option<u8>) -> Self {
        match exit {
            Some(0) | None => self,
            Some(_) => Self::Failed,
        }
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Passed => "PASSED",
            Self::Warned => "WARNED",
            Self::Failed => "FAILED",
        }
    }
}

/// Rules by verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tests {
    #[serde(rename = "passedTests")]
    pub passed: BTreeSet<String>,
    /// Broken rules of level `should`, and waived rules.
    #[serde(rename = "warnedTests")]
    pub warned: BTreeSet<String>,
    #[serde(rename = "failedTests")]
    pub failed: BTreeSet<String>,
    /// Rules whose pass the run withdrew, because no mutation breaks them. Evidence alone does not show it.
    #[serde(rename = "withdrawnTests", skip_serializing_if = "BTreeSet::is_empty")]
    pub withdrawn: BTreeSet<String>,
}

impl Tests {
    /// The rules of a record.
    pub fn of(record: &RunRecord) -> Self {
        let mut tests = Self::default();
        let rules = record.rules.iter();
        for rule in rules.filter(|rule| rule.subject == Subject::Service) {
            let list = match rule.verdict {
                Verdict::Pass => &mut tests.passed,
                Verdict::Fail if rule.level == Level::Must => &mut tests.failed,
                Verdict::Fail | Verdict::Waived => &mut tests.warned,
                Verdict::NotJudged if rule.reason.starts_with(VACUOUS) => &mut tests.withdrawn,
                Verdict::Open
                | Verdict::Inconclusive
                | Verdict::NotApplicable
                | Verdict::Error
                | Verdict::NotJudged => continue,
            };
            list.insert(rule.id.clone());
        }
        tests
    }

    /// The verdict of a rule in words.
    pub fn verdict(&self, rule: &str) -> &'static str {
        let lists = [
            ("passed", &self.passed),
            ("warned", &self.warned),
            ("failed", &self.failed),
            (WITHDRAWN, &self.withdrawn),
        ];
        let mut named = lists.into_iter().filter(|(_, list)| list.contains(rule));
        match (named.next(), named.next()) {
            (None, _) => NOT_JUDGED,
            (Some((verdict, _)), None) => verdict,
            (Some(_), Some(_)) => "several verdicts",
        }
    }

    /// The result of a run with these verdicts.
    pub fn outcome(&self, is_complete: bool) -> Outcome {
        if !is_complete || !self.failed.is_empty() || self.passed.is_empty() {
            Outcome::Failed
        } else if self.warned.is_empty() {
            Outcome::Passed
        } else {
            Outcome::Warned
        }
    }

    /// Rules whose verdict differs from the one that was found. A withdrawn pass does not differ from a pass.
    pub fn differing(&self, found: &Self) -> Vec<String> {
        let all = |tests: &Self| {
            let judged = tests.passed.iter().chain(&tests.warned);
            judged
                .chain(&tests.failed)
                .chain(&tests.withdrawn)
                .cloned()
                .collect::<BTreeSet<_>>()
        };
        let rules = &all(self) | &all(found);
        let is_withdrawn =
            |rule: &String| self.verdict(rule) == WITHDRAWN && found.passed.contains(rule);
        rules
            .into_iter()
            .filter(|rule| self.verdict(rule) != found.verdict(rule) && !is_withdrawn(rule))
            .collect()
    }
}

/// Why a statement is not read.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    #[error(
        "this is a signed envelope: check its signature with the tool that signed it, then give its payload \
         (`jq -r .payload ENVELOPE | base64 -d > statement.json`)"
    )]
    Envelope,
    #[error("expected an in-toto statement from `--report statement=PATH`: {0}")]
    Shape(#[from] serde_json::Error),
    #[error("expected {field} `{expected}`, got `{found}`")]
    Kind {
        field: &'static str,
        expected: &'static str,
        found: String,
    },
    #[error("expected a {SHA256} digest of the {0}, got none")]
    Digest(&'static str),
}

impl Statement {
    /// The statement about a redacted record.
    pub fn of(record: &RunRecord) -> Self {
        let tests = Tests::of(record);
        let outcome = tests.outcome(record.complete).of_exit(record.exit);
        let target = Resource {
            annotations: record.targets.clone(),
            ..Resource::new(TARGET, target_digest(&record.targets))
        };
        let evidence = record.evidence.iter().map(|evidence| Resource {
            name: evidence.name.clone(),
            annotations: [(RUN.to_owned(), evidence.run.clone())].into(),
            ..Resource::new(EVIDENCE, evidence.sha256.clone())
        });
        let digest = text::hex(Sha256::digest(json::render(record)));
        let exit = record.exit.map(|exit| (EXIT.to_owned(), exit.to_string()));
        let record_resource = Resource {
            annotations: exit.into_iter().collect(),
            ..Resource::new(RECORD, digest)
        };
        let version = format!("{} {}", record.tool.name, record.tool.version);
        let rulebook = Resource {
            annotations: [("tool".to_owned(), version)].into(),
            ..Resource::new(RULEBOOK, record.rulebook.digest.clone())
        };
        Self {
            kind: STATEMENT.to_owned(),
            subject: [target, record_resource]
                .into_iter()
                .chain(evidence)
                .collect(),
            predicate_type: PREDICATE.to_owned(),
            predicate: TestResult {
                result: outcome,
                configuration: vec![rulebook],
                tests,
            },
        }
    }

    /// Reads what `--report statement=` wrote.
    pub fn read(bytes: &[u8]) -> Result<Self, StatementError> {
        let value: Value = serde_json::from_slice(bytes)?;
        if value.get("payloadType").is_some() && value.get("signatures").is_some() {
            return Err(StatementError::Envelope);
        }
        for (field, expected) in [("_type", STATEMENT), ("predicateType", PREDICATE)] {
            let found = value.get(field).and_then(Value::as_str).unwrap_or_default();
            if found != expected {
                let found = found.to_owned();
                return Err(StatementError::Kind {
                    field,
                    expected,
                    found,
                });
            }
        }
        let statement: Self = serde_json::from_value(value)?;
        statement.rulebook()?;
        statement.target()?;
        statement.evidence()?;
        Ok(statement)
    }

    /// The digest of the rulebook.
    pub fn rulebook(&self) -> Result<&str, StatementError> {
        sha256_of(&self.predicate.configuration, RULEBOOK, |resource| {
            resource.name == RULEBOOK
        })
    }

    /// The digest of the target's identity.
    pub fn target(&self) -> Result<&str, StatementError> {
        sha256_of(&self.subject, TARGET, |resource| resource.name == TARGET)
    }

    /// The digest of the evidence file.
    pub fn evidence(&self) -> Result<&str, StatementError> {
        sha256_of(&self.subject, EVIDENCE, |resource| resource.run().is_some())
    }

    /// The digest that identifies the run.
    pub fn run(&self) -> Option<&str> {
        self.subject.iter().find_map(Resource::run)
    }

    /// What it says of the run besides verdicts and the four digests, and what the evidence shows instead.
    #[expect(clippy::missing_panics_doc, reason = "map keys are strings")]
    pub fn contradictions(&self, evidence: &Self) -> Vec<String> {
        let without_digest = |statement: &Self| {
            let mut subject = statement.subject.clone();
            // Neither the name of the file nor the record follows from the evidence.
            for resource in &mut subject {
                resource.digest.clear();
                if resource.run().is_some() {
                    EVIDENCE.clone_into(&mut resource.name);
                } else if resource.name == RECORD {
                    resource.annotations.clear();
                }
            }
            subject
        };
        let shown = |resource: Option<&Resource>| {
            resource.map_or_else(
                || "none".to_owned(),
                |resource| {
                    let text = serde_json::to_string(&resource.annotations);
                    format!("{} {}", resource.name, text.expect("map keys are strings"))
                },
            )
        };
        let (stated, found) = (without_digest(self), without_digest(evidence));
        (0..stated.len().max(found.len()))
            .map(|at| (stated.get(at), found.get(at)))
            .filter(|(stated, found)| stated != found)
            .map(|(stated, found)| {
                format!(
                    "subject: expected {} (statement), got {} (evidence)",
                    shown(stated),
                    shown(found)
                )
            })
            .collect()
    }

    /// The exit code of the run.
    pub fn exit(&self) -> Option<u8> {
        let record = self.subject.iter().find(|one| one.name == RECORD)?;
        record.annotations.get(EXIT)?.parse().ok()
    }

    pub fn tests(&self) -> &Tests {
        &self.predicate.tests
    }

    pub fn outcome(&self) -> Outcome {
        self.predicate.result
    }
}

impl Resource {
    fn new(name: &str, sha256: String) -> Self {
        Self {
            name: name.to_owned(),
            digest: [(SHA256.to_owned(), sha256)].into(),
            annotations: BTreeMap::new(),
        }
    }

    fn run(&self) -> Option<&str> {
        // The target's annotations are services, which may have any name.
        let is_file = self.name != TARGET;
        let run = self.annotations.get(RUN).filter(|_| is_file);
        run.map(String::as_str)
    }
}

fn sha256_of<'a>(
    resources: &'a [Resource],
    what: &'static str,
    is: impl Fn(&Resource) -> bool,
) -> Result<&'a str, StatementError> {
    let found = resources.iter().find(|resource| is(resource));
    let digest = found.and_then(|resource| resource.digest.get(SHA256));
    digest
        .map(String::as_str)
        .ok_or(StatementError::Digest(what))
}

/// The digest of a target's identity: its base URLs by service, as JSON with sorted keys and without blanks.
#[expect(clippy::missing_panics_doc, reason = "map keys are strings")]
pub fn target_digest(targets: &BTreeMap<String, String>) -> String {
    let text = serde_json::to_vec(targets).expect("map keys are strings");
    text::hex(Sha256::digest(text))
}

pub(super) fn render(record: &RunRecord) -> String {
    text::safe_json(&Statement::of(record)).expect("map keys are strings")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sample;
    use conformant_record::EvidenceStamp;
    use serde_json::json;

    fn judged() -> RunRecord {
        RunRecord {
            evidence: Some(EvidenceStamp {
                name: "run.gz".to_owned(),
                sha256: "ab".to_owned(),
                run: "cd".to_owned(),
            }),
            ..sample()
        }
    }

    #[test]
    fn a_statement_has_four_digests_and_reads_back_equal() {
        let text = render(&judged());
        let read = Statement::read(text.as_bytes()).unwrap();
        assert_eq!(read, Statement::of(&judged()));
        assert_eq!(read.rulebook().unwrap(), "0123456789abcdef");
        assert_eq!(read.target().unwrap(), target_digest(&judged().targets));
        assert_eq!((read.evidence().unwrap(), read.run()), ("ab", Some("cd")));
        let value: Value = serde_json::from_str(&text).unwrap();
        let record = text::hex(Sha256::digest(json::render(&judged())));
        assert_eq!(value["subject"][1]["digest"][SHA256], json!(record));
        assert_eq!(value["predicate"]["result"], json!("FAILED"));
        assert_eq!(
            value["predicate"]["failedTests"],
            json!(["flow/execution/status"])
        );
    }

    #[test]
    fn other_documents_are_rejected() {
        let why = |value: Value| {
            let error = Statement::read(value.to_string().as_bytes()).unwrap_err();
            error.to_string()
        };
        let envelope = json!({"payloadType": "x", "payload": "", "signatures": []});
        assert!(why(envelope).starts_with("this is a signed envelope"));
        assert!(why(json!({})).starts_with("expected _type `https://in-toto.io/Statement/v1`"));
        let mut other = serde_json::to_value(Statement::of(&judged())).unwrap();
        other["predicateType"] = json!("https://slsa.dev/provenance/v1");
        assert!(why(other).contains("got `https://slsa.dev/provenance/v1`"));
        let without = serde_json::to_value(Statement::of(&sample())).unwrap();
        assert_eq!(
            why(without),
            "expected a sha256 digest of the evidence, got none"
        );
    }

    #[test]
    fn verdicts_that_differ_are_named() {
        let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        let stated = Tests {
            passed: set(&["a", "b", "c"]),
            warned: set(&["d"]),
            failed: set(&[]),
            withdrawn: set(&["w"]),
        };
        let found = Tests {
            passed: set(&["a", "w", "x"]),
            warned: set(&["d"]),
            failed: set(&["b", "y"]),
            withdrawn: set(&[]),
        };
        assert_eq!(stated.differing(&found), ["b", "c", "x", "y"]);
        assert_eq!(stated.differing(&stated), [] as [&str; 0]);
        for list in [&["a"], &["d"], &["v"]] {
            let mut twice = stated.clone();
            twice.withdrawn.extend(list.map(str::to_owned));
            assert_eq!(twice.differing(&stated), *list);
        }
        let mut twice = stated.clone();
        twice.failed = set(&["a"]);
        assert_eq!(twice.differing(&stated), ["a"]);
        assert_eq!(stated.outcome(true), Outcome::Warned);
        assert_eq!(stated.outcome(false), Outcome::Failed);
        assert_eq!(found.outcome(true), Outcome::Failed);
    }
}
