//! Sample records for tests.

use conformant_base::source::Source;
use conformant_record::{
    Asked, Finding, Level, OpenPointResult, RuleCounts, RuleResult, RulebookStamp, RunRecord,
    SCHEMA_VERSION, ScenarioResult, Summary, Tool, Verdict,
};

/// A complete run that judged these rules in one scenario; a failing rule has one finding.
pub(crate) fn run(scenario: &str, rules: &[(&str, Verdict)]) -> RunRecord {
    let findings: Vec<Finding> = rules
        .iter()
        .filter(|(_, verdict)| *verdict == Verdict::Fail)
        .map(|(rule, _)| Finding {
            rule: (*rule).to_owned(),
            level: Level::Must,
            scenario: scenario.into(),
            exchange: 1,
            message: "broken".into(),
            ..Finding::default()
        })
        .collect();
    let rules: Vec<RuleResult> = rules
        .iter()
        .map(|(id, verdict)| rule(id, *verdict))
        .collect();
    let service = scenario.split('/').next().unwrap_or_default().to_owned();
    let verdict = if findings.is_empty() {
        Verdict::Pass
    } else {
        Verdict::Fail
    };
    RunRecord {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            name: "conformant".into(),
            version: "0".into(),
        },
        rulebook: RulebookStamp { digest: "d".into() },
        targets: [(service.clone(), "reference".to_owned())].into(),
        seed: 1,
        complete: true,
        partition: None,
        summary: Summary {
            rules: RuleCounts::count(&rules),
            scenarios: [(verdict.word().to_owned(), 1)].into(),
            exchanges: 2,
            seconds: 0.5,
            clock_seconds: None,
            services: [(service, Asked::once(20))].into(),
        },
        rules,
        findings,
        open_points: Vec::new(),
        scenarios: vec![ScenarioResult {
            id: scenario.into(),
            verdict,
            seconds: 0.5,
            reason: String::new(),
            failed_before: Vec::new(),
            steps: Vec::new(),
        }],
        ..RunRecord::default()
    }
}

/// The same with an answer to an unspecified behavior.
pub(crate) fn answering(mut run: RunRecord, id: &str, words: &[&str]) -> RunRecord {
    let observed = words.iter().map(|word| (*word).to_owned()).collect();
    run.open_points.push(OpenPointResult {
        id: id.into(),
        observed,
        says: String::new(),
        treatment: String::new(),
    });
    run
}

fn rule(id: &str, verdict: Verdict) -> RuleResult {
    let judged = usize::from(matches!(
        verdict,
        Verdict::Pass | Verdict::Fail | Verdict::Waived
    ));
    RuleResult {
        subject: conformant_record::Subject::Service,
        masked_by: None,
        id: id.into(),
        level: Level::Must,
        source: Source {
            document: "D3".parse().expect("it is a document"),
            section: "Flow".into(),
            lines: vec![1],
        },
        verdict,
        judged,
        findings: usize::from(verdict == Verdict::Fail),
        reason: String::new(),
        says: String::new(),
        basis: None,
        needs: Vec::new(),
    }
}
