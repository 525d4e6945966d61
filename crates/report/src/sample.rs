//! The example run of all format tests: one rule per verdict, two kinds of finding.

use conformant_base::source::Source;
use conformant_base::text;
use conformant_record::{
    ArchiveCounts, Asked, Basis, Blind, Build, Changes, ClaimsResult, Defect, Delivery, Detection,
    DocumentCount, EarlierRun, EvidenceStamp, ExchangeDifference, Finding, FindingCount, History,
    Level, OpenPointResult, Proof, RaceTimes, Raise, RepeatedRule, RepeatedRun, Repeats,
    RuleCounts, RuleResult, RulebookStamp, RunRecord, SCHEMA_VERSION, Sample, ScenarioResult,
    ScenarioTime, ShownExchange, StepResult, Summary, Timings, Tool, UnjudgedClaim, Verdict,
    WaiverResult, WallClock,
};
use std::collections::BTreeMap;

/// Exchanges of the only service.
fn services() -> BTreeMap<String, Asked> {
    let asked = Asked {
        exchanges: 12,
        milliseconds: 1_212,
        longest_milliseconds: 950,
    };
    [("flow".to_owned(), asked)].into()
}

fn defects() -> Vec<Defect> {
    vec![
        Defect {
            title: "An execution has a third state".into(),
            known: vec!["flow/execution-status-wrong".into()],
            service: "flow".into(),
            level: Level::Must,
            rules: vec!["flow/execution/status".into()],
            findings: 2,
            scenarios: 1,
        },
        Defect {
            title: "/shape is not a documented field".into(),
            known: Vec::new(),
            service: "flow".into(),
            level: Level::Should,
            rules: vec!["flow/execution/no-other-fields".into()],
            findings: 1,
            scenarios: 1,
        },
    ]
}

/// A finished run with an example of everything.
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
        ended_early: None,
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
            services: services(),
        },
        rules: rules(),
        findings: findings(),
        open_points: vec![OpenPointResult {
            id: "flow/unset-attributes".into(),
            observed: vec!["null".into(), "{}".into()],
            says: "What does a member look like that was never set?".into(),
            treatment: "Any value passes.".into(),
        }],
        scenarios: scenarios(),
        defects: defects(),
        exchanges: vec![exchange()],
        deliveries: vec![Delivery {
            scenario: "flow/create-execution/happy".into(),
            step: 3,
            pointer: "/requests/0".into(),
            what: "callback".into(),
            body: "{\n  \"count\": 0\n}".into(),
            marked: 2,
            cause: 4,
            action: "end_execution {}".into(),
        }],
        waivers: vec![WaiverResult {
            rule: "flow/execution/context".into(),
            pointer: "/context".into(),
            reason: "known until 2.4".into(),
            expires: "2027-01-31".into(),
            findings: 3,
        }],
        proof: Some(proof()),
        detection: Some(Detection {
            percent: 84,
            low: 76,
            high: 92,
            raised_by: vec![Raise {
                by: "hook end_execution".into(),
                percent: 87,
            }],
        }),
        invocation: "conformant run --seed 7".into(),
        exit: Some(1),
        places: std::collections::BTreeMap::new(),
        history: None,
        wall: None,
        evidence: None,
        claims: None,
        archive: None,
        repeats: None,
        build: None,
    }
}

/// Counts of an archive of events.
pub(super) fn archive() -> ArchiveCounts {
    let findings = |rule: &str, day: &str, findings| FindingCount {
        kind: "events/MessageSent".into(),
        version: "2".into(),
        rule: rule.into(),
        day: day.into(),
        findings,
    };
    ArchiveCounts {
        documents: vec![DocumentCount {
            kind: "events/MessageSent".into(),
            version: "2".into(),
            documents: 1_200,
            rejected: 5,
        }],
        findings: vec![
            findings("events/message-sent/body", "2026-01-30", 3),
            findings("events/message-sent/body", "2026-02-01", 2),
            findings("events/schema-address", "", 1),
        ],
        unreadable: 1,
        schema_ids: BTreeMap::new(),
    }
}

fn exchange() -> ShownExchange {
    ShownExchange {
        exchange: 4,
        pointer: "/status".into(),
        operation: "flow/create-execution".into(),
        method: "POST".into(),
        url: "http://127.0.0.1:4010/flow/v1/Flows/FW00/Executions".into(),
        request_headers: vec!["Authorization: [redacted]".into()],
        request_body: "To=%2B12025550123\n&From=%2B12025550100".into(),
        status: 201,
        fault: String::new(),
        oddities: Vec::new(),
        milliseconds: 0,
        response_headers: vec!["Content-Type: application/json".into()],
        response_body: "{\n  \"sid\": \"FN00\",\n  \"status\": \"running\"\n}".into(),
        response_bytes: 41,
        marked: 3,
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
    record.summary.services = [(all(), Asked::once(1))].into();
    record.open_points = vec![OpenPointResult {
        id: all(),
        observed: vec![all()],
        says: all(),
        treatment: all(),
    }];
    record.invocation = all();
    record.places = [(all(), format!("{text}:1"))].into();
    record.history = Some(History {
        earlier: vec![EarlierRun {
            name: all(),
            broken: 3,
            judged: 9,
        }],
        new: vec![all()],
        fixed: vec![all()],
        flaky: vec![all()],
        first_seen: [(all(), all())].into(),
        changed: vec![all()],
    });
    record.wall = Some(WallClock {
        started: all(),
        seconds: 1.0,
        timings: Some(Timings {
            jobs: 2,
            lower_bound: 0.5,
            because: all(),
            scenarios: vec![ScenarioTime {
                scenario: all(),
                lane: 1,
                ..ScenarioTime::default()
            }],
            ..Timings::default()
        }),
    });
    every_addition_is(&mut record, text);
    record.detection = Some(Detection {
        raised_by: vec![Raise {
            by: all(),
            percent: 1,
        }],
        ..Detection::default()
    });
    for waiver in &mut record.waivers {
        (waiver.rule, waiver.pointer) = (all(), all());
        (waiver.reason, waiver.expires) = (all(), all());
    }
    for defect in &mut record.defects {
        (defect.title, defect.service) = (all(), all());
        (defect.known, defect.rules) = (vec![all()], vec![all()]);
    }
    every_shown_text_is(&mut record, text);
    for rule in &mut record.rules {
        (rule.id, rule.source.section, rule.reason) = (all(), all(), all());
        (rule.says, rule.needs) = (all(), vec![all()]);
    }
    every_step_text_is(&mut record, text);
    record.findings = vec![Finding {
        rule: all(),
        level: Level::Must,
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
        subject: conformant_record::Subject::Service,
        waived: String::new(),
        diff: all(),
    }];
    record
}

fn every_addition_is(record: &mut RunRecord, text: &str) {
    let all = || text.to_owned();
    record.evidence = Some(EvidenceStamp {
        name: all(),
        sha256: all(),
        run: all(),
    });
    record.claims = Some(ClaimsResult {
        implementation: all(),
        services: [(all(), vec![all()])].into(),
        unjudged: vec![UnjudgedClaim {
            service: all(),
            feature: all(),
            reason: all(),
            ids: vec![all()],
        }],
    });
    record.archive = Some(ArchiveCounts {
        documents: vec![DocumentCount {
            kind: all(),
            version: all(),
            documents: 2,
            rejected: 1,
        }],
        findings: vec![FindingCount {
            kind: all(),
            version: all(),
            rule: all(),
            day: all(),
            findings: 1,
        }],
        unreadable: 1,
        schema_ids: [(7, 2)].into(),
    });
    record.repeats = Some(repeats(text));
    record.build = Some(Build {
        url: all(),
        revision: all(),
    });
}

/// Two runs with a flaky rule.
pub(super) fn repeats(text: &str) -> Repeats {
    let all = || text.to_owned();
    let run = RepeatedRun {
        names: all(),
        complete: true,
        rules: RuleCounts::default(),
    };
    Repeats {
        requested: 3,
        runs: vec![run.clone(), run],
        rules: vec![RepeatedRule {
            rule: all(),
            verdicts: vec![Verdict::Pass, Verdict::Fail],
            flaky: true,
            difference: Some(ExchangeDifference {
                scenario: all(),
                step: 2,
                operation: all(),
                place: all(),
                passed: all(),
                failed: all(),
                passed_run: 1,
                failed_run: 2,
            }),
        }],
    }
}

fn every_step_text_is(record: &mut RunRecord, text: &str) {
    let all = || text.to_owned();
    for scenario in &mut record.scenarios {
        (scenario.id, scenario.reason) = (all(), all());
        scenario.failed_before = vec![all()];
        scenario.steps = vec![StepResult {
            step: 1,
            verb: all(),
            what: all(),
            at: Some(0.5),
            outcome: all(),
            exchange: 2,
            setup: false,
            broken: vec![all()],
            race: Some(RaceTimes {
                number: 1,
                sent: 0.5,
                received: 1.5,
                answer: all(),
            }),
            sent: all(),
            received: all(),
        }];
    }
}

fn every_shown_text_is(record: &mut RunRecord, text: &str) {
    let all = || text.to_owned();
    record.exchanges = vec![ShownExchange {
        exchange: 2,
        pointer: all(),
        operation: all(),
        method: all(),
        url: all(),
        request_headers: vec![all()],
        request_body: all(),
        status: 200,
        fault: all(),
        oddities: Vec::new(),
        milliseconds: 7,
        response_headers: vec![all()],
        response_body: all(),
        response_bytes: 1,
        marked: 1,
    }];
    record.deliveries = vec![Delivery {
        scenario: all(),
        step: 1,
        pointer: all(),
        what: all(),
        body: all(),
        marked: 1,
        cause: 2,
        action: all(),
    }];
}

fn proof() -> Proof {
    let changes = |made, noticed, broke| Changes {
        made,
        noticed,
        broke,
    };
    let services = BTreeMap::from([("flow".to_owned(), changes(8, 6, 5))]);
    Proof {
        mode: "sample".into(),
        proven: 1,
        vacuous: 1,
        unproven: 0,
        services: services.clone(),
        rules: BTreeMap::from([
            ("flow/execution/sid".to_owned(), changes(5, 5, 5)),
            ("flow/executions/order".to_owned(), changes(3, 1, 0)),
        ]),
        sample: Some(Sample {
            made: 8,
            noticed: 6,
            per_story: 4,
            services,
            blind: vec![Blind {
                of: "flow/fetch-execution".into(),
                pointer: "/context".into(),
                changes: vec!["missing".into(), "near".into()],
                made: 3,
                noticed: 1,
                would: vec!["hook end_execution".into()],
            }],
            more: 2,
        }),
    }
}

/// Texts that attack readers of a report; each format is tested with all of them.
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

#[expect(clippy::too_many_lines, reason = "an example of everything")]
fn rules() -> Vec<RuleResult> {
    let rule = |id: &str, level, line, verdict, (judged, findings), reason: &str| RuleResult {
        subject: conformant_record::Subject::Service,
        masked_by: None,
        id: id.into(),
        level,
        source: Source {
            document: "D3".parse().unwrap(),
            section: "Execution (FN)".into(),
            lines: vec![line],
        },
        verdict,
        judged,
        findings,
        reason: reason.into(),
        says: format!("What {id} asks for."),
        basis: Some(Basis::Stated),
        needs: if reason == MISSING {
            vec!["hook end_execution".into()]
        } else {
            Vec::new()
        },
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
        steps: if verdict == Verdict::Fail {
            steps()
        } else {
            Vec::new()
        },
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

fn steps() -> Vec<StepResult> {
    let call = |step, what: &str, at, outcome: &str, exchange, broken: &[&str]| StepResult {
        step,
        verb: "call".into(),
        what: what.into(),
        at: Some(at),
        outcome: outcome.into(),
        exchange,
        broken: broken.iter().map(|rule| (*rule).to_owned()).collect(),
        ..StepResult::default()
    };
    vec![
        call(1, "flow/read-flows", 0.0, "200", 3, &[]),
        call(
            1,
            "flow/create-execution",
            0.25,
            "201",
            4,
            &["flow/execution/status"],
        ),
        StepResult {
            step: 3,
            verb: "await".into(),
            what: "ended".into(),
            outcome: "no call came".into(),
            ..StepResult::default()
        },
    ]
}

fn findings() -> Vec<Finding> {
    let status = Finding {
        rule: "flow/execution/status".into(),
        level: Level::Must,
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
        subject: conformant_record::Subject::Service,
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
        level: Level::Should,
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
