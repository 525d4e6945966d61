//! Tests of `waivers`.

use crate::sample::{finding, rule};
use conformant_record::waivers::{Waiver, Waivers, place_of};
use conformant_record::{Finding, Level, PartOf, RunRecord, Verdict};

const TODAY: jiff::civil::Date = jiff::civil::date(2026, 6, 1);

#[test]
fn a_waiver_of_another_kind_names_the_kind_of_the_finding() {
    let mut record = sample();
    record.findings[0].kind = "type".to_owned();
    let waivers = [Waiver {
        kind: Some("tpye".to_owned()),
        ..waiver("flow/execution/status")
    }];
    for is_whole in [true, false] {
        assert_eq!(
            Waivers::on(&waivers, TODAY).apply(&mut record, is_whole),
            [
                "the waiver of flow/execution/status accepts no finding: its kind is `tpye`, that of the finding is `type`"
            ]
        );
    }
    record.findings[0].level = Level::Should;
    let of_part = Waivers::on(&waivers, TODAY).apply(&mut record, false);
    assert_eq!(
        of_part,
        Vec::<String>::new(),
        "another part may need the waiver"
    );
}

/// One broken and one passed rule.
fn sample() -> RunRecord {
    RunRecord {
        complete: true,
        rules: vec![
            rule("flow/execution/status", Verdict::Fail),
            rule("flow/execution/sid", Verdict::Pass),
        ],
        findings: vec![finding("flow/execution/status")],
        ..RunRecord::default()
    }
}

fn waiver(rule: &str) -> Waiver {
    Waiver {
        rule: rule.to_owned(),
        pointer: None,
        operation: None,
        kind: None,
        owner: None,
        reason: "ticket 1".to_owned(),
        expires: jiff::civil::date(2027, 1, 31),
    }
}

#[test]
fn an_id_means_that_rule_alone() {
    for (pattern, verdict_after) in [
        ("flow/execution/status", Verdict::Waived),
        ("flow/execution", Verdict::Fail),
        ("flow/execution/", Verdict::Fail),
        ("flow/execution/*", Verdict::Waived),
        ("*/status", Verdict::Waived),
    ] {
        let mut record = sample();
        let waivers = [waiver(pattern)];
        Waivers::on(&waivers, TODAY).apply(&mut record, true);
        assert_eq!(record.rules[0].verdict, verdict_after, "{pattern}");
    }
}

#[test]
fn what_is_waived_stays_in_the_record_with_reason_and_expiry() {
    let mut record = sample();
    let waivers = [waiver("flow/execution/status"), waiver("flow/execution/s*")];
    let problems = Waivers::on(&waivers, TODAY).apply(&mut record, true);
    assert_eq!(problems, Vec::<String>::new(), "both are used");
    let waived = record.findings.iter().map(|f| f.waived.as_str());
    assert!(waived.eq(["ticket 1 (until 2027-01-31)"]));
}

#[test]
fn a_bound_waiver_accepts_nothing_elsewhere() {
    let bound = Waiver {
        pointer: Some(place_of("/flows/3/status")),
        operation: Some("flow/read-flows".to_owned()),
        kind: Some("enum".to_owned()),
        ..waiver("flow/flow/status")
    };
    let known = Finding {
        rule: "flow/flow/status".to_owned(),
        service: "flow".to_owned(),
        operation: "read-flows".to_owned(),
        pointer: "/flows/0/status".to_owned(),
        kind: "enum".to_owned(),
        ..Finding::default()
    };
    assert!(bound.accepts(&known));
    for change in [
        (|f| f.rule.push('x')) as fn(&mut Finding),
        |f| f.operation = "fetch-flow".to_owned(),
        |f| f.service = "chat".to_owned(),
        |f| f.pointer = "/flows/0/sid".to_owned(),
        |f| f.pointer = "/flows/0/status/x".to_owned(),
        |f| f.kind = "type".to_owned(),
    ] {
        let mut elsewhere = known.clone();
        change(&mut elsewhere);
        assert!(!bound.accepts(&elsewhere), "{elsewhere:?}");
    }
}

#[test]
fn an_id_with_a_version_gets_advice_without_it() {
    let mut record = sample();
    record.rules[0].id = "events/message-sent/from".to_owned();
    let waivers = [
        waiver("events/message-sent/4/from"),
        waiver("events/message-sent/4/gone"),
    ];
    let warnings = Waivers::on(&waivers, TODAY).apply(&mut record, false);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].ends_with("write events/message-sent/from"),
        "{warnings:?}"
    );
}

#[test]
fn stale_waivers_are_reported_if_a_whole_run_judged_the_rule() {
    let passed = "flow/execution/sid";
    let waivers = [waiver(passed), waiver("flow/nobody/judged-this")];
    let stale = |is_whole: bool, change: &dyn Fn(&mut RunRecord)| {
        let mut record = sample();
        change(&mut record);
        Waivers::on(&waivers, TODAY).apply(&mut record, is_whole)
    };
    let warnings = stale(true, &|_| {});
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains(passed));
    assert_eq!(stale(false, &|_| {}).len(), 0);
    let part = PartOf {
        kind: "hash".to_owned(),
        part: 1,
        of: 4,
    };
    assert_eq!(stale(true, &|r| r.partition = Some(part.clone())).len(), 0);
    let later = jiff::civil::date(2027, 2, 1);
    let expired = Waivers::on(&waivers, later).apply(&mut sample(), false);
    assert_eq!(expired.len(), 2, "{expired:?}");
}
