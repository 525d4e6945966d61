//! Tests of `claims`.

use crate::sample::{owned, rule};
use conformant_record::claims::{ALL, ClaimsFile};
use conformant_record::{RuleResult, RunRecord, ScenarioResult, Verdict};

/// The need of rules that are for files.
const CHECK: &str = "check";
const HOOK: &str = "hook end_execution";

fn record() -> RunRecord {
    let lacks = |id, need| RuleResult {
        needs: owned(&[need]),
        ..rule(id, Verdict::NotApplicable)
    };
    RunRecord {
        rules: vec![
            rule("flow/a", Verdict::Pass),
            lacks("flow/b", HOOK),
            lacks("flow/c", "service media"),
            lacks("flow/d", CHECK),
        ],
        ..RunRecord::default()
    }
}

fn unjudged(services: &[(&str, &[&str])], record: &RunRecord) -> Vec<(String, String)> {
    let services = services.iter();
    let claims = ClaimsFile {
        services: services
            .map(|(service, features)| ((*service).to_owned(), owned(features)))
            .collect(),
        ..ClaimsFile::default()
    };
    let result = claims.judge(record, |reason| Some(reason.to_owned()));
    let unjudged = result.unjudged.into_iter();
    unjudged.map(|one| (one.service, one.feature)).collect()
}

fn pair(service: &str, feature: &str) -> (String, String) {
    (service.to_owned(), feature.to_owned())
}

#[test]
fn only_claimed_features_have_to_be_judged() {
    let record = record();
    assert_eq!(unjudged(&[("flow", &[])], &record), []);
    for features in [&[HOOK][..], &[ALL]] {
        let found = unjudged(&[("flow", features)], &record);
        assert_eq!(found, [pair("flow", HOOK)]);
    }
}

#[test]
fn a_claimed_service_has_to_be_part_of_the_run() {
    let found = unjudged(&[("flow", &[]), ("media", &[])], &record());
    let expected = [pair("flow", "service media"), pair("media", "")];
    assert_eq!(found, expected);
}

#[test]
fn an_inconclusive_rule_of_a_claimed_service_is_not_judged() {
    let mut record = record();
    record.rules[0].verdict = Verdict::Inconclusive;
    assert_eq!(unjudged(&[("flow", &[])], &record), [pair("flow", "")]);
    assert_eq!(unjudged(&[], &record), []);
}

#[test]
fn a_scenario_that_lacks_a_claimed_feature_counts() {
    let mut record = record();
    record.rules.truncate(1);
    record.scenarios = vec![ScenarioResult {
        id: "flow/x".to_owned(),
        verdict: Verdict::NotApplicable,
        reason: HOOK.to_owned(),
        ..ScenarioResult::default()
    }];
    assert_eq!(unjudged(&[("flow", &[])], &record), []);
    assert_eq!(
        unjudged(&[("flow", &[HOOK])], &record),
        [pair("flow", HOOK)]
    );
}
