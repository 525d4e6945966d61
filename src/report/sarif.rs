//! SARIF 2.1.0, for code scanning: one result per finding.
//!
//! Own types for the few parts that are used. A result has no place in anybody's source: its
//! logical location is the operation and scenario, and because scanners refuse results without a
//! file, its physical one is the configuration that named the target.

use super::Settings;
use super::view;
use crate::text;
use crate::verdict::{Finding, Level, RuleResult, RunRecord};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// Where the adopter says what is tested, in the root of their repository.
const ANCHOR: &str = "conformant.yaml";

#[derive(Serialize)]
struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Value,
    invocations: [Value; 1],
    results: Vec<SarifResult>,
    properties: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    rule_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_index: Option<usize>,
    level: &'static str,
    message: Value,
    locations: [Value; 1],
    partial_fingerprints: Value,
    properties: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressions: Vec<Value>,
}

pub(super) fn render(record: &RunRecord, settings: Settings) -> String {
    let rules: BTreeMap<&str, (usize, &RuleResult)> = record
        .rules
        .iter()
        .enumerate()
        .map(|(at, rule)| (rule.id.as_str(), (at, rule)))
        .collect();
    let results = record.findings.iter().map(|finding| {
        let rule = rules.get(finding.rule.as_str()).copied();
        result(finding, rule, settings)
    });
    let log = Log {
        schema: SCHEMA,
        version: "2.1.0",
        runs: [Run {
            tool: json!({"driver": {
                "name": record.tool.name,
                "semanticVersion": record.tool.version,
                "rules": record.rules.iter().map(|r| rule(r, settings)).collect::<Vec<_>>(),
            }}),
            invocations: [json!({"executionSuccessful": record.complete})],
            results: results.collect(),
            properties: json!({"rulebook": record.rulebook.digest, "seed": record.seed}),
        }],
    };
    text::safe_json(&log).expect("a report's map keys are texts")
}

fn rule(rule: &RuleResult, settings: Settings) -> Value {
    let level = match rule.level {
        Level::Must => "error",
        Level::Should if settings.strict => "error",
        Level::Should => "warning",
        Level::May | Level::Open => "none",
    };
    json!({
        "id": rule.id,
        "shortDescription": {"text": rule.id},
        "help": {"text": format!("{}; `conformant explain {}`", rule.source, rule.id)},
        "defaultConfiguration": {"level": level},
        "properties": {"source": rule.source.to_string(), "verdict": view::name(rule.verdict)},
    })
}

fn result(
    finding: &Finding,
    rule: Option<(usize, &RuleResult)>,
    settings: Settings,
) -> SarifResult {
    let waived = rule.filter(|(_, rule)| rule.verdict == crate::verdict::Verdict::Waived);
    SarifResult {
        rule_id: finding.rule.clone(),
        rule_index: rule.map(|(at, _)| at),
        level: if view::fails(finding, settings) {
            "error"
        } else {
            "warning"
        },
        message: json!({"text": format!("{}\n{}", finding.message, view::describe(finding))}),
        locations: [json!({
            "physicalLocation": {
                "artifactLocation": {"uri": ANCHOR},
                "region": {"startLine": 1},
            },
            "logicalLocations": [{
                "name": finding.operation,
                "fullyQualifiedName": view::place(finding),
            }],
        })],
        partial_fingerprints: json!({"defect/v1": fingerprint(finding)}),
        properties: json!({"pointer": finding.pointer, "kind": finding.kind}),
        suppressions: waived
            .map(|(_, rule)| json!({"kind": "external", "justification": rule.reason}))
            .into_iter()
            .collect(),
    }
}

/// The same for the same defect in any run: what is broken, and where in which operation.
fn fingerprint(finding: &Finding) -> String {
    let mut hash = Sha256::new();
    let parts = [
        &finding.rule,
        &finding.service,
        &finding.operation,
        &finding.scenario,
    ];
    for part in parts.into_iter().chain([&finding.pointer, &finding.kind]) {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    text::hex(hash.finalize().into_iter().take(16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Format;
    use crate::report::sample::{HOSTILE, every_text_is, sample};

    fn rendered(record: &RunRecord) -> Value {
        let text = Format::Sarif.render(record, Settings::default());
        assert!(!text.contains(text::is_deceptive));
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_run_reads_like_this() {
        let log = rendered(&sample());
        assert_eq!(log["version"], "2.1.0");
        let run = &log["runs"][0];
        assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), 10);
        let levels: Vec<_> = run["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| &r["level"])
            .collect();
        assert_eq!(levels, ["error", "warning", "error"]);
        let result = &run["results"][0];
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(
            run["tool"]["driver"]["rules"][index]["id"],
            result["ruleId"]
        );
        assert!(
            result["message"]["text"]
                .as_str()
                .unwrap()
                .contains("  expected  one of")
        );
    }

    #[test]
    fn fingerprints_tell_defects_apart_and_runs_alike() {
        let record = sample();
        let mut again = record.findings[0].clone();
        (again.exchange, again.actual) = (99, "other".into());
        assert_eq!(fingerprint(&record.findings[0]), fingerprint(&again));
        assert_ne!(
            fingerprint(&record.findings[0]),
            fingerprint(&record.findings[2])
        );
    }

    #[test]
    fn waived_findings_are_suppressed_with_their_reason() {
        let mut record = sample();
        record.findings[0].rule = "flow/execution/context".into();
        let log = rendered(&record);
        let suppression = &log["runs"][0]["results"][0]["suppressions"][0];
        assert_eq!(suppression["justification"], "known until 2.4");
    }

    #[test]
    fn hostile_texts_are_kept_as_data() {
        for text in HOSTILE {
            let log = rendered(&every_text_is(text));
            assert_eq!(log["runs"][0]["results"][0]["ruleId"], *text);
        }
    }
}
