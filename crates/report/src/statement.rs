//! An in-toto `test-result` statement for release notes: what was judged with which rulebook.
//!
//! Its subject is the digest of the record, because a deployment has none. The publisher signs it.

use super::Settings;
use super::cards;
use conformant_base::text;
use conformant_record::{RuleResult, RunRecord, Verdict};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const PREDICATE: &str = "https://in-toto.io/attestation/test-result/v0.1";

pub(super) fn render(record: &RunRecord, settings: Settings) -> String {
    let whole = cards::whole(record, settings);
    let judged = whole.judged();
    // Never "passed" if too little was judged.
    let result = if whole.broken > 0 || whole.error > 0 || !record.complete || judged == 0 {
        "FAILED"
    } else if whole.warned + whole.waived > 0 {
        "WARNED"
    } else {
        "PASSED"
    };
    let json = super::json::render(record);
    let ids = |is: &dyn Fn(&RuleResult) -> bool| -> Vec<&str> {
        record
            .rules
            .iter()
            .filter(|rule| is(rule))
            .map(|rule| rule.id.as_str())
            .collect()
    };
    let fails =
        |rule: &RuleResult| super::view::of_rule(rule, settings) == super::view::Outcome::Failed;
    let mut configuration = vec![json!({
        "name": "rulebook",
        "digest": {"sha256": record.rulebook.digest},
        "annotations": {
            "tool": format!("{} {}", record.tool.name, record.tool.version),
            "invocation": record.invocation,
            "seed": record.seed,
            "complete": record.complete,
            "rules": record.rules.len(),
            "judged": judged,
            "notJudged": whole.unjudged(),
            "open": whole.open,
            "waived": ids(&|rule| rule.verdict == Verdict::Waived),
        },
    })];
    configuration.extend(
        record
            .targets
            .iter()
            .map(|(service, url)| json!({"name": format!("target {service}"), "uri": url})),
    );
    let statement: Value = json!({
        "_type": STATEMENT,
        "subject": [{
            "name": "run.json",
            "digest": {"sha256": text::hex(Sha256::digest(json))},
        }],
        "predicateType": PREDICATE,
        "predicate": {
            "result": result,
            "configuration": configuration,
            "passedTests": ids(&|rule| rule.verdict == Verdict::Pass),
            "warnedTests": ids(&|rule| {
                rule.verdict == Verdict::Waived || (rule.verdict == Verdict::Fail && !fails(rule))
            }),
            "failedTests": ids(&|rule| rule.verdict == Verdict::Fail && fails(rule)),
        },
    });
    text::safe_json(&statement).expect("map keys are strings")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::sample::sample;

    fn statement(record: &RunRecord) -> Value {
        serde_json::from_str(&Format::Statement.render(record, Settings::default())).unwrap()
    }

    #[test]
    fn it_says_what_was_judged_by_what() {
        let record = sample();
        let told = statement(&record);
        assert_eq!(
            (&told["_type"], &told["predicateType"]),
            (&STATEMENT.into(), &PREDICATE.into())
        );
        let digest = text::hex(Sha256::digest(
            Format::Json.render(&record, Settings::default()),
        ));
        assert_eq!(told["subject"][0]["digest"]["sha256"], digest);
        let predicate = &told["predicate"];
        assert_eq!(predicate["result"], "FAILED");
        assert_eq!(predicate["failedTests"], json!(["flow/execution/status"]));
        assert_eq!(
            predicate["warnedTests"],
            json!(["flow/execution/context", "flow/execution/no-other-fields"])
        );
        assert_eq!(predicate["configuration"][0]["annotations"]["notJudged"], 5);
        assert_eq!(
            predicate["configuration"][1]["uri"],
            "http://127.0.0.1:4010/flow"
        );
    }

    #[test]
    fn what_was_cut_short_or_never_judged_has_not_passed() {
        let mut record = sample();
        record.rules.retain(|rule| rule.verdict == Verdict::Pass);
        assert_eq!(statement(&record)["predicate"]["result"], "PASSED");
        record.complete = false;
        assert_eq!(statement(&record)["predicate"]["result"], "FAILED");
        (record.complete, record.rules) = (true, Vec::new());
        assert_eq!(statement(&record)["predicate"]["result"], "FAILED");
    }
}
