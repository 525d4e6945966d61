//! The run that every format's tests show: one rule of each verdict, two kinds of finding.

use crate::source::{Document, Source};
use crate::text;
use crate::verdict::{
    Finding, Level, OpenPointResult, RuleCounts, RuleResult, RulebookStamp, RunRecord,
    SCHEMA_VERSION, ScenarioResult, Summary, Tool, Verdict,
};

/// A finished run with something of everything.
pub(super) fn sample() -> RunRecord {
    RunRecord {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            name: "conformant".into(),
            version: "0.1.0".into(),
        },
        rulebook: RulebookStamp {
            digest: "0123456789abcdef".into(),
        },
        targets: [("flow".to_owned(), "http://127.0.0.1:4010/flow".to_owned())].into(),
        seed: 7,
        complete: true,
        partition: None,
        summary: Summary {
            rules: RuleCounts {
                pass: 1,
                fail: 2,
                open: 1,
                inconclusive: 1,
                not_applicable: 2,
                waived: 1,
                error: 1,
                not_judged: 1,
            },
            scenarios: [
                ("fail", 1),
                ("inconclusive", 1),
                ("not-applicable", 1),
                ("pass", 1),
            ]
            .map(|(verdict, count)| (verdict.to_owned(), count))
            .into(),
            exchanges: 12,
            seconds: 1.25,
            clock_seconds: None,
        },
        rules: rules(),
        findings: findings(),
        open_points: vec![OpenPointResult {
            id: "flow/unset-attributes".into(),
            observed: vec!["null".into(), "{}".into()],
        }],
        scenarios: scenarios(),
    }
}

/// A record in which every text is the given one.
pub(super) fn every_text_is(text: &str) -> RunRecord {
    let all = || text.to_owned();
    let mut record = sample();
    record.tool = Tool {
        name: all(),
        version: all(),
    };
    record.rulebook.digest = all();
    record.targets = [(all(), all())].into();
    record.summary.scenarios = [(all(), 1)].into();
    record.open_points = vec![OpenPointResult {
        id: all(),
        observed: vec![all()],
    }];
    for rule in &mut record.rules {
        (rule.id, rule.source.section, rule.reason) = (all(), all(), all());
    }
    for scenario in &mut record.scenarios {
        (scenario.id, scenario.reason) = (all(), all());
    }
    record.findings = vec![Finding {
        rule: all(),
        level: all(),
        service: all(),
        operation: all(),
        scenario: all(),
        step: 1,
        exchange: 2,
        pointer: all(),
        kind: all(),
        expected: all(),
        actual: all(),
        message: all(),
        reproduce: all(),
        waived: String::new(),
        diff: all(),
    }];
    record
}

/// Texts that attack what reads a report; each format is tested with all of them.
pub(super) const HOSTILE: [&str; 14] = [
    "\u{1b}[2J\u{1b}]52;c;Zm9v\u{7}\u{9b}31m\u{8}\r\0",
    "\u{202e}txt.exe\u{2066}\u{200b}\u{2028}\u{feff}",
    "::error::pwned\n  ::set-output name=a::b\r\n::add-mask::x",
    "##vso[task.complete result=Succeeded;]\n##[error]x ##teamcity[testFinished]",
    "section_start:1:a\r\u{1b}[0K",
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "\" onmouseover=\"alert(1)\" x='",
    "]]></failure><x>&lt;&#0;\u{fffe}\u{ffff}",
    "{{ 7*7 }}{% raw %}",
    "`` ``` a`b\n```\n# heading\n| a | b |\n<b>x</b> [l](javascript:x) @all",
    "\\` | \\| \\\\| x",
    "=1+1 @x -x",
    "ok 1 - # TODO x # SKIP\nBail out!\n1..0\n  ...\n---\nyaml: [",
    "%0A%0D,title=x::y",
];

fn rules() -> Vec<RuleResult> {
    let rule = |id: &str, level, line, verdict, (judged, findings), reason: &str| RuleResult {
        masked_by: None,
        id: id.into(),
        level,
        source: Source {
            document: Document::D3,
            section: "Execution (FN)".into(),
            lines: vec![line],
        },
        verdict,
        judged,
        findings,
        reason: reason.into(),
    };
    vec![
        rule(
            "flow/execution/context",
            Level::Must,
            41,
            Verdict::Waived,
            (3, 3),
            "known until 2.4",
        ),
        rule(
            "flow/execution/no-other-fields",
            Level::Should,
            28,
            Verdict::Fail,
            (3, 1),
            "",
        ),
        rule(
            "flow/execution/sid",
            Level::Must,
            31,
            Verdict::Pass,
            (3, 0),
            "",
        ),
        rule(
            "flow/execution/status",
            Level::Must,
            37,
            Verdict::Fail,
            (3, 2),
            "",
        ),
        rule(
            "flow/execution/steps",
            Level::Must,
            44,
            Verdict::Error,
            (0, 0),
            "predicate panicked",
        ),
        rule(
            "flow/execution/unset",
            Level::Open,
            45,
            Verdict::Open,
            (3, 0),
            "",
        ),
        rule(
            "flow/executions/ends",
            Level::Must,
            60,
            Verdict::NotApplicable,
            (0, 0),
            MISSING,
        ),
        rule(
            "flow/executions/order",
            Level::Must,
            86,
            Verdict::Inconclusive,
            (0, 0),
            "timeout",
        ),
        rule(
            "flow/executions/steps",
            Level::Must,
            61,
            Verdict::NotApplicable,
            (0, 0),
            MISSING,
        ),
        rule(
            "flow/executions/walk",
            Level::Must,
            77,
            Verdict::NotJudged,
            (0, 0),
            "one page only",
        ),
    ]
}

const MISSING: &str = "hook missing: end_execution";

fn scenarios() -> Vec<ScenarioResult> {
    let scenario = |id: &str, verdict, seconds, reason: &str| ScenarioResult {
        id: id.into(),
        verdict,
        seconds,
        reason: reason.into(),
        failed_before: Vec::new(),
    };
    vec![
        scenario("flow/create-execution/happy", Verdict::Fail, 0.5, ""),
        scenario(
            "flow/executions/ended",
            Verdict::NotApplicable,
            0.0,
            MISSING,
        ),
        scenario("flow/fetch-execution/happy", Verdict::Pass, 0.25, ""),
        scenario(
            "flow/read-executions/walk",
            Verdict::Inconclusive,
            0.5,
            "timeout(first-byte)",
        ),
    ]
}

fn findings() -> Vec<Finding> {
    let status = Finding {
        rule: "flow/execution/status".into(),
        level: "must".into(),
        service: "flow".into(),
        operation: "create-execution".into(),
        scenario: "flow/create-execution/happy".into(),
        step: 1,
        exchange: 4,
        pointer: "/status".into(),
        kind: "enum".into(),
        expected: "one of active, ended".into(),
        actual: "\"running\"".into(),
        message: "/status is \"running\", expected one of active, ended".into(),
        reproduce: "curl -X POST 'http://127.0.0.1:4010/flow/v1/Flows/FW00/Executions' \\\n  \
                    -H 'Authorization: [redacted]'"
            .into(),
        waived: String::new(),
        diff: text::unified_diff(
            "{\n  \"status\": \"active\"\n}\n",
            "{\n  \"status\": \"running\"\n}\n",
        ),
    };
    let again = Finding {
        operation: "fetch-execution".into(),
        step: 2,
        exchange: 5,
        diff: String::new(),
        ..status.clone()
    };
    let extra = Finding {
        rule: "flow/execution/no-other-fields".into(),
        level: "should".into(),
        pointer: "/shape".into(),
        kind: "extra-field".into(),
        expected: "no field of that name".into(),
        actual: "\"round\"".into(),
        message: "/shape is not a documented field".into(),
        diff: String::new(),
        ..status.clone()
    };
    vec![status, extra, again]
}
