//! Invariants of the page for any record; `tests/browser/page.mjs` tests its behavior in a browser.

use super::page::{ANATOMIES_MAX, BYTES_MAX, SCRIPT, STYLE, hash};
use super::render;
use crate::sample::{HOSTILE, archive, assert_contains, every_text_is, sample};
use crate::texts::escaped;
use crate::{Format, Settings};
use conformant_record::{
    Build, EarlierRun, Finding, History, Level, Quote, RuleCounts, RuleResult, RunRecord,
    ScenarioTime, Spent, StepResult, Subject, Timings, Verdict, WallClock,
};

fn rendered(record: &RunRecord) -> String {
    Format::Html.render(record, Settings::default())
}

/// Tags with attribute names, as a browser parses them.
fn tags(html: &str) -> Vec<String> {
    let body = html.replace(STYLE, "").replace(SCRIPT, "");
    let tags = body.split('<').skip(1).map(|rest| {
        let (tag, _) = rest.split_once('>').expect("every `<` opens a tag");
        let mut names = String::new();
        for (at, part) in tag.split('"').enumerate() {
            if at % 2 == 0 {
                names.push_str(part);
            }
        }
        names
    });
    tags.collect()
}

#[test]
fn a_run_reads_like_this() {
    let html = rendered(&sample());
    assert_contains(
        &html,
        &[
            "</svg>Not conformant</h1>",
            "2 defects: 1 explains the broken rule, 1 is a warning. 1 rule passes; 5 not decided.",
            "resembles the fault <code>flow&#x2f;execution-status-wrong</code>",
            "<b>Configure the hook end_execution</b>",
            "<b class=\"num\">84&nbsp;%</b><p>of the defects of an unknown implementation of flow, range 76 to 92&nbsp;%. To raise it: configure the hook end_execution (87\u{a0}%).",
            "What does a member look like that was never set?",
            "known until 2.4</td>",
            "<pre>conformant run --seed 7</pre>",
        ],
    );
}

#[test]
fn what_fails_what_warns_and_what_is_advice_stand_under_headings_of_their_own() {
    let mut record = sample();
    let heads = |record: &RunRecord| -> Vec<bool> {
        let html = rendered(record);
        ["h-defects", "h-warnings", "h-advice"]
            .map(|id| html.contains(&format!("<h2 id=\"{id}\">")))
            .into()
    };
    assert_eq!(heads(&record), [true, true, false]);
    for finding in record
        .findings
        .iter_mut()
        .filter(|f| f.level == Level::Should)
    {
        finding.subject = Subject::Request;
    }
    assert_eq!(heads(&record), [true, false, true]);
    record
        .findings
        .retain(|finding| finding.level == Level::Should);
    record.defects.clear();
    assert_eq!(heads(&record), [false, false, true]);
}

#[test]
fn the_policy_allows_this_style_and_script_and_nothing_else() {
    let html = rendered(&sample());
    let between = |open: &str, close: &str| {
        let (_, rest) = html.split_once(open).unwrap();
        rest.split_once(close).unwrap().0.to_owned()
    };
    let (style, script) = (
        between("<style>", "</style>"),
        between("<script>", "</script>"),
    );
    let policy = format!(
        "content=\"default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; \
         form-action 'none'\"",
        hash(&style),
        hash(&script)
    )
    .replace('/', "&#x2f;");
    assert!(html.replace('/', "&#x2f;").contains(&policy), "{policy}");
    let page = html.replace(&style, "").replace(&script, "");
    assert!(!page.contains(" style=") && !page.contains(" src="));
    assert!(!html.contains("url(") && !page.contains(" onclick="));
    for link in page.split(" href=\"").skip(1) {
        assert!(link.starts_with('#'), "a link leads out: {link:.80}");
    }
    for unsafe_name in [
        "innerHTML",
        "eval(",
        "insertAdjacent",
        "document.write",
        "fetch(",
    ] {
        assert!(!script.contains(unsafe_name), "{unsafe_name}");
    }
}

#[test]
fn hostile_texts_make_no_tag_and_no_attribute() {
    let harmless = tags(&rendered(&every_text_is("x\nx\nx\nx\nx\nx\nx")));
    for text in HOSTILE {
        // As many lines as the harmless text, so that diffs have equally many spans.
        let text = format!("{text}{}", "\nx".repeat(6 - text.matches('\n').count()));
        let html = rendered(&every_text_is(&text));
        let written = tags(&html);
        for tag in &written {
            let known = harmless.iter().any(|harmless| harmless == tag);
            assert!(known, "{text:?} makes <{tag}>");
        }
        assert!(!html.contains("<script>alert"), "{text:?}");
        assert_eq!(html.matches("<script").count(), 1, "{text:?}");
    }
}

/// This many broken rules with this many findings in total.
fn broken_everywhere(rules: usize, findings: usize) -> RunRecord {
    let mut record = sample();
    let finding = record.findings[0].clone();
    record.defects.clear();
    record.rules = (0..rules)
        .map(|n| RuleResult {
            id: format!("flow/thing-{n}/field"),
            verdict: Verdict::Fail,
            judged: 9,
            findings: findings / rules,
            ..record.rules[3].clone()
        })
        .collect();
    record.findings = (0..findings)
        .map(|n| Finding {
            rule: record.rules[n % rules].id.clone(),
            scenario: format!("flow/story-{}/part-{n}", n % 40),
            pointer: format!("/{}/x", n % rules),
            message: format!(
                "{} is \"{}\", expected one of active, ended",
                n % 9,
                "y".repeat(120)
            ),
            ..finding.clone()
        })
        .collect();
    record.summary.rules = RuleCounts::count(&record.rules);
    record
}

#[test]
fn the_worst_record_stays_within_the_budget() {
    let html = rendered(&broken_everywhere(1_058, 6_500));
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    assert!(html.len() > 500_000, "{} bytes: what is left?", html.len());
    let full = html
        .matches("<summary><span class=\"chev\"></span><span>Exchange ")
        .count();
    assert!(full <= ANATOMIES_MAX, "{full}");
    let mut vast = broken_everywhere(1_058, 6_500);
    for finding in &mut vast.findings {
        finding.expected = "&".repeat(1_900);
    }
    let html = rendered(&vast);
    assert!(html.len() < BYTES_MAX + 100_000, "{} bytes", html.len());
    assert!(html.contains("To limit the size of this page"));
}

#[test]
fn without_a_script_everything_can_be_read() {
    let html = rendered(&sample());
    for rule in &sample().rules {
        let says = rule.says.replace('/', "&#x2f;");
        assert!(html.contains(&says), "{says}");
    }
    assert!(
        !html.contains("<noscript"),
        "nothing is missing without scripts"
    );
}

#[test]
fn counts_agree_wherever_they_stand() {
    let record = sample();
    let html = render(&escaped(&record), Settings::default());
    let cells = html.matches("<i></i>").count() + html.matches("<i class=").count();
    assert_eq!(cells, record.rules.len(), "a cell for each rule");
    let (rules, scenarios) = html.split_once("id=\"scenario-list\"").expect("both lists");
    let lines = |list: &str| -> usize {
        list.split("<pre>")
            .filter(|pre| pre.starts_with("flow&#x2f;"))
            .map(|pre| pre.split("</pre>").next().unwrap_or_default())
            .map(|pre| pre.lines().filter(|line| line.contains(' ')).count())
            .sum()
    };
    assert_eq!(lines(rules), record.rules.len(), "a line for each rule");
    let count = record.scenarios.len();
    assert_eq!(lines(scenarios), count, "a line for each scenario");
}

#[test]
fn defects_stand_above_services_with_the_first_mismatch_in_each_row() {
    let html = rendered(&sample());
    let place = |part: &str| {
        html.find(part)
            .unwrap_or_else(|| panic!("{part} is missing"))
    };
    assert!(place("id=\"h-defects\"") < place("id=\"h-services\""));
    let mismatch = "<span class=\"mismatch\"><span>expected</span> <code>one of active, ended</code> \
                    <span>got</span> <code class=\"fail\">&quot;running&quot;</code></span>";
    // The summaries of the defect and of its rule.
    assert_eq!(html.matches(mismatch).count(), 2, "{html}");
}

#[test]
fn a_mistake_of_a_client_is_no_defect_of_the_service() {
    let mut record = sample();
    record
        .findings
        .retain(|finding| finding.level == Level::Must);
    for finding in &mut record.findings {
        finding.subject = Subject::Request;
    }
    let html = rendered(&record);
    assert!(
        html.contains("Mistakes of clients") && html.contains("Clients break 1 rule."),
        "{html}"
    );
    assert!(
        !html.contains("Not conformant") && !html.contains("Fix this first"),
        "{html}"
    );
    let junit = Format::Junit.render(&record, Settings::default());
    assert!(junit.contains("classname=\"flow.clients\""), "{junit}");
    assert!(!junit.contains("flow.defects"), "{junit}");
}

#[test]
fn a_broken_rule_has_the_sentence_that_it_cites() {
    let quote = Quote {
        line: 37,
        text: "Either <active> or ended.".to_owned(),
    };
    let record = RunRecord {
        quotes: [("flow/execution/status".to_owned(), vec![quote])].into(),
        ..sample()
    };
    let html = rendered(&record);
    let quoted = "<blockquote><span>line 37</span>Either &lt;active&gt; or ended.</blockquote>";
    assert_eq!(html.matches(quoted).count(), 1, "{html}");
}

#[test]
fn a_timeline_has_both_sides_of_each_exchange_hook_and_callback() {
    let mut record = sample();
    record.scenarios[0].steps.push(StepResult {
        step: 2,
        verb: "hook".into(),
        what: "end_execution".into(),
        outcome: "done".into(),
        sent: "{\n  \"execution_sid\": \"FN00\"\n}".into(),
        received: "{\n  \"ended\": true\n}".into(),
        ..StepResult::default()
    });
    let html = rendered(&record);
    let timeline = html.split("timeline\">").nth(1).expect("a timeline");
    let timeline = timeline.split("</ol>").next().expect("its end");
    assert_contains(
        timeline,
        &[
            "call <code>flow&#x2f;read-flows</code> <b>200</b>",
            "<details open><summary><span class=\"chev\"></span><span>call <code>flow&#x2f;create-execution</code>",
            "<span class=\"a\">  &quot;status&quot;: &quot;running&quot;</span>",
            "hook <code>end_execution</code> <b>done</b>",
            "<p><b>arguments</b></p><pre><span>{</span>",
            "<span>  &quot;ended&quot;: true</span>",
        ],
    );
}

#[test]
fn only_a_web_address_of_a_build_becomes_a_link() {
    let mut record = sample();
    let mut built = |url: &str| {
        record.build = Some(Build {
            url: url.to_owned(),
            revision: "c0ffee00c0ffee00".to_owned(),
        });
        rendered(&record)
    };
    let html = built("https://ci.example/7");
    assert!(html.contains("revision <code>c0ffee00c0ff</code>"));
    let link = "<a href=\"https:&#x2f;&#x2f;ci.example&#x2f;7\" rel=\"noreferrer noopener\">";
    assert!(html.contains(link), "{html}");
    assert!(!built("javascript:alert(1)").contains("javascript:alert"));
}

#[test]
fn a_trend_is_drawn_only_where_there_are_earlier_runs() {
    let mut record = sample();
    assert!(!rendered(&record).contains("Since the last run"));
    record.history = Some(History {
        earlier: vec![EarlierRun::default()],
        ..History::default()
    });
    assert!(rendered(&record).contains("Since the last run"));
}

#[test]
fn counts_of_an_archive_are_drawn_by_kind_rule_and_day() {
    let mut record = sample();
    assert!(!rendered(&record).contains("id=\"archive\""));
    record.archive = Some(archive());
    let html = rendered(&record);
    assert_contains(
        &html,
        &[
            "5 of 1200 documents are rejected. 1 line contains no readable document or event.",
            "<title>2026-01-30: 3 findings</title>",
            "<td><code>events&#x2f;MessageSent 2</code></td><td data-h=\"rejected\" class=\"num\">5</td>",
            "<td class=\"num\">5</td><td><code>events&#x2f;message-sent&#x2f;body</code></td>",
        ],
    );
}

#[test]
fn waived_rules_do_not_count_as_passed() {
    let mut record = sample();
    record.findings.clear();
    record
        .rules
        .retain(|rule| matches!(rule.verdict, Verdict::Pass | Verdict::Waived));
    assert_eq!(record.rules.len(), 2);
    assert!(rendered(&record).contains("<br>12 exchanges<"));
    // With a real clock the page has response times.
    record.wall = Some(WallClock {
        started: "2026-01-02T03:04:05Z".to_owned(),
        seconds: 1.25,
        timings: None,
    });
    let html = rendered(&record);
    assert!(html.contains("1 rule passes, one is broken but waived."));
    assert!(!html.contains("none is broken"));
    assert!(html.contains("12 exchanges, 101 ms each, at most 950"));
    assert!(!html.contains("The schedule"), "it was not asked for");
}

#[test]
fn the_schedule_is_drawn_where_it_was_asked_for() {
    let mut record = sample();
    let timed = |scenario: &str, lane: usize, began: f64, callbacks: f64| ScenarioTime {
        scenario: scenario.to_owned(),
        lane,
        began,
        seconds: 1.0,
        spent: Spent {
            callbacks,
            answers: 0.4,
            ..Spent::default()
        },
    };
    record.wall = Some(WallClock {
        timings: Some(Timings {
            jobs: 2,
            lower_bound: 1.0,
            because: "flow/a alone takes that long".to_owned(),
            scenarios: vec![timed("flow/a", 1, 0.0, 0.6), timed("flow/b", 2, 1.0, 0.0)],
            ..Timings::default()
        }),
        ..WallClock::default()
    });
    let html = rendered(&record);
    let lead =
        "2 jobs, 2.0 s. Lower bound for any order: 1.0 s (flow&#x2f;a alone takes that long).";
    assert!(html.contains(lead), "{html}");
    let bar = r#"<rect class="p4" x="0.0" y="0" width="500.0" height="6"><title>flow&#x2f;a, 1.0 s: callbacks 0.6 s, answers 0.4 s</title>"#;
    assert!(html.contains(bar), "{html}");
    assert!(
        html.contains(r#"<rect class="p0" x="500.0" y="7""#),
        "{html}"
    );
}
