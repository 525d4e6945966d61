//! SARIF 2.1.0 for code scanning: one result per defect, and one suppressed result per waiver.
//!
//! The logical location of a result is its operation and scenario. Scanners require a file, so the physical
//! location is the configuration of the target.

use super::Settings;
use super::cards::{self, Card};
use super::view::{self, Effect};
use conformant_base::text;
use conformant_record::{Finding, Level, RuleResult, RunRecord, WaiverResult};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The configuration file in the root of the adopter's repository.
const ANCHOR: &str = "conformant.yaml";

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
    let of_rule = |id: &str| rules.get(id).map(|(at, _)| *at);
    let cards = cards::cards(record, settings);
    let defects = cards
        .iter()
        .filter_map(|card| result(record, card, &of_rule));
    let waived = record.waivers.iter().filter(|waiver| waiver.findings > 0);
    let results = defects.chain(waived.map(|waiver| accepted(waiver, &of_rule)));
    let errors = view::errors(record, settings);
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            // No `informationUri`, which is optional and absolute: the project has no address yet
            // (`repository` in Cargo.toml). Each rule's help says where it can be read offline.
            "tool": {"driver": {
                "name": record.tool.name,
                "semanticVersion": record.tool.version,
                "rules": record.rules.iter().map(|r| rule(r, settings)).collect::<Vec<_>>(),
            }},
            "invocations": [{
                "executionSuccessful": record.complete && errors.is_empty(),
                "toolExecutionNotifications": errors
                    .iter()
                    .map(|error| json!({"level": "error", "message": {"text": error}}))
                    .collect::<Vec<_>>(),
            }],
            "results": results.collect::<Vec<_>>(),
            "properties": {
                "targets": record.targets,
                "rulebook": record.rulebook.digest,
                "seed": record.seed,
            },
        }],
    });
    text::safe_json(&log).expect("map keys are strings")
}

fn rule(rule: &RuleResult, settings: Settings) -> Value {
    let level = match rule.level {
        Level::Must => "error",
        Level::Should if settings.strict => "error",
        Level::Should => "warning",
        Level::May | Level::Open => "none",
    };
    let says = if rule.says.is_empty() {
        &rule.id
    } else {
        &rule.says
    };
    let basis = rule
        .basis
        .map(|basis| format!(" ({})", basis.word()))
        .unwrap_or_default();
    let help = format!(
        "{says}\n\n{}{basis}. Details: `conformant explain {}`.",
        rule.source, rule.id
    );
    json!({
        "id": rule.id,
        "shortDescription": {"text": says},
        "fullDescription": {"text": format!("{says} {}", rule.source)},
        "help": {"text": help},
        "defaultConfiguration": {"level": level},
        "properties": {"source": rule.source.to_string(), "verdict": rule.verdict.word()},
    })
}

fn level(effect: Effect) -> &'static str {
    match effect {
        Effect::Fails => "error",
        Effect::Warns => "warning",
        Effect::Advises => "note",
    }
}

/// One defect, under its most broken rule.
fn result(
    record: &RunRecord,
    card: &Card,
    index: &dyn Fn(&str) -> Option<usize>,
) -> Option<SarifResult> {
    let broken = card.rules.first()?;
    let finding = *broken.findings.first()?;
    let ids: Vec<&str> = card.rules.iter().map(|rule| rule.id).collect();
    let guess = card
        .guess()
        .map(|guess| format!("\n{guess}"))
        .unwrap_or_default();
    let text = format!(
        "{}\n{}{guess}\nbroken: {}\n\n{}\n{}",
        card.defect.title,
        card.extent(),
        ids.join(", "),
        finding.message,
        view::describe(record, finding)
    );
    let (file, line) = view::written_at(record, finding).unwrap_or((ANCHOR, 1));
    Some(SarifResult {
        rule_id: broken.id.to_owned(),
        rule_index: index(broken.id),
        level: level(card.effect),
        message: json!({"text": text}),
        locations: [location(
            file,
            line,
            &finding.operation,
            &view::place(finding),
        )],
        partial_fingerprints: json!({"defect/v2": fingerprint(card, finding)}),
        properties: json!({
            "rules": ids, "known": card.defect.similar_faults, "findings": card.defect.findings,
            "scenarios": card.defect.scenarios, "pointer": finding.pointer, "kind": finding.kind,
        }),
        suppressions: Vec::new(),
    })
}

/// A waiver as a suppressed result with its reason.
fn accepted(waiver: &WaiverResult, index: &dyn Fn(&str) -> Option<usize>) -> SarifResult {
    let text = format!(
        "{} accepted until {}",
        view::count(waiver.findings, "finding"),
        waiver.expires
    );
    SarifResult {
        rule_id: waiver.rule.clone(),
        rule_index: index(&waiver.rule),
        level: "warning",
        message: json!({"text": text}),
        locations: [location(ANCHOR, 1, &waiver.rule, &waiver.pointer)],
        partial_fingerprints: json!({"waiver/v1": hash_of(&[&waiver.rule, &waiver.pointer])}),
        properties: json!({"expires": waiver.expires}),
        suppressions: vec![json!({"kind": "external", "justification": waiver.reason})],
    }
}

fn location(file: &str, line: usize, name: &str, whole: &str) -> Value {
    json!({
        "physicalLocation": {
            "artifactLocation": {"uri": file},
            "region": {"startLine": line},
        },
        "logicalLocations": [{"name": name, "fullyQualifiedName": whole}],
    })
}

/// Equal for the same defect in any run: by the fault that it resembles, or else by what is broken where.
fn fingerprint(card: &Card, finding: &Finding) -> String {
    match card.defect.similar_faults.as_slice() {
        [known] => hash_of(&[known]),
        _ => hash_of(&[
            &finding.rule,
            &finding.service,
            &finding.operation,
            &finding.pointer,
            &finding.kind,
        ]),
    }
}

fn hash_of(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    text::hex(hash.finalize().into_iter().take(16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::sample::{HOSTILE, every_text_is, sample};

    fn rendered(record: &RunRecord) -> Value {
        let text = Format::Sarif.render(record, Settings::default());
        assert!(!text.contains(text::is_deceptive));
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn rules_have_their_levels() {
        let log = rendered(&sample());
        let results = log["runs"][0]["results"].as_array().unwrap().iter();
        let levels: Vec<_> = results.map(|result| &result["level"]).collect();
        assert_eq!(levels, ["error", "warning", "warning"]);
    }

    #[test]
    fn fingerprints_differ_by_defect_and_not_by_run() {
        let prints = |record: &RunRecord| -> Vec<Value> {
            let log = rendered(record);
            let results = log["runs"][0]["results"].as_array().unwrap().clone();
            results
                .iter()
                .map(|r| r["partialFingerprints"].clone())
                .collect()
        };
        let mut again = sample();
        for finding in &mut again.findings {
            (finding.exchange, finding.actual, finding.scenario) =
                (99, "other".into(), "other".into());
        }
        assert_eq!(prints(&sample()), prints(&again));
        assert_ne!(prints(&sample())[0], prints(&sample())[1]);
    }

    #[test]
    fn waived_findings_are_suppressed_with_their_reason() {
        let log = rendered(&sample());
        let suppression = &log["runs"][0]["results"][2]["suppressions"][0];
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
