//! Visits every text of a record or event, for redaction and escaping.
//!
//! Destructures every type, so that no new field is forgotten.

use conformant_base::redact::Redactor;
use conformant_base::source::Source;
use conformant_base::text;
use conformant_record::{
    ArchiveCounts, Blind, Build, ClaimsResult, Defect, Delivery, Detection, DocumentCount,
    EarlierRun, EvidenceStamp, ExchangeDifference, Finding, FindingCount, History, OpenPointResult,
    PartOf, Proof, Raise, RepeatedRule, RepeatedRun, Repeats, RuleResult, RulebookStamp, RunEvent,
    RunRecord, ScenarioResult, ScenarioTime, ShownExchange, StepResult, Summary, Timings, Tool,
    UnjudgedClaim, WaiverResult, WallClock,
};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Whether a text may have several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Line,
    Block,
}

type Visit<'a> = &'a mut dyn FnMut(&mut String, Shape);

/// Redacts every text of a record.
pub fn redact_record(record: &mut RunRecord, redactor: &Redactor) {
    visit_record(record, &mut |text, _| redactor.redact_in_place(text));
}

/// Redacts every text of an event.
pub fn redact_event(event: &mut RunEvent, redactor: &Redactor) {
    let visit: Visit = &mut |text, _| redactor.redact_in_place(text);
    match event {
        RunEvent::Started {
            scenarios: _,
            targets,
        } => visit_map(targets, visit),
        RunEvent::ScenarioBegan { id } | RunEvent::ScenarioPlayed { id, verdict: _ } => {
            visit(id, Shape::Line);
        }
        RunEvent::Waiting { service, why } => {
            visit(service, Shape::Line);
            visit(why, Shape::Line);
        }
        RunEvent::Alive { seconds: _ } => {}
        RunEvent::ScenarioEnded {
            result,
            findings,
            exchanges: _,
        } => {
            visit_scenario(result, visit);
            for finding in findings {
                visit_finding(finding, visit);
            }
        }
        RunEvent::Finished { record } => visit_record(record, visit),
    }
}

/// A record with every text escaped for display; single lines stay single.
#[must_use]
pub fn escaped(record: &RunRecord) -> RunRecord {
    let mut shown = record.clone();
    visit_record(&mut shown, &mut escape);
    shown
}

/// A scenario result escaped for display.
pub(super) fn escaped_scenario(result: &ScenarioResult) -> ScenarioResult {
    let mut shown = result.clone();
    visit_scenario(&mut shown, &mut escape);
    shown
}

fn escape(text: &mut String, shape: Shape) {
    let escaped = match shape {
        Shape::Line => text::escape_line(text),
        Shape::Block => text::escape(text),
    };
    if let Cow::Owned(escaped) = escaped {
        *text = escaped;
    }
}

#[expect(clippy::too_many_lines, reason = "destructures every field")]
fn visit_record(record: &mut RunRecord, visit: Visit) {
    let RunRecord {
        schema_version: _,
        tool: Tool { name, version },
        rulebook: RulebookStamp { digest },
        targets,
        seed: _,
        complete: _,
        ended_early,
        partition,
        summary:
            Summary {
                rules: _,
                scenarios: scenario_counts,
                exchanges: _,
                seconds: _,
                clock_seconds: _,
                services,
            },
        rules,
        findings,
        open_points,
        scenarios,
        defects,
        exchanges,
        deliveries,
        waivers,
        detection,
        proof,
        invocation,
        exit: _,
        places,
        history,
        wall,
        evidence,
        claims,
        archive,
        repeats,
        build,
    } = record;
    for text in [name, version, digest] {
        visit(text, Shape::Line);
    }
    if let Some(PartOf {
        kind,
        part: _,
        of: _,
    }) = partition
    {
        visit(kind, Shape::Line);
    }
    visit_map(targets, visit);
    visit_keys(scenario_counts, visit);
    visit_keys(services, visit);
    for rule in rules {
        visit_rule(rule, visit);
    }
    for finding in findings {
        visit_finding(finding, visit);
    }
    for point in open_points {
        let OpenPointResult {
            id,
            observed,
            says,
            treatment,
        } = point;
        for text in [id, says, treatment] {
            visit(text, Shape::Line);
        }
        visit_lines(observed, visit);
    }
    for result in scenarios {
        visit_scenario(result, visit);
    }
    for defect in defects {
        visit_defect(defect, visit);
    }
    for exchange in exchanges {
        visit_exchange(exchange, visit);
    }
    for delivery in deliveries {
        visit_delivery(delivery, visit);
    }
    for waiver in waivers {
        visit_waiver(waiver, visit);
    }
    if let Some(Detection {
        percent: _,
        low: _,
        high: _,
        raised_by,
    }) = detection
    {
        for Raise { by, percent: _ } in raised_by {
            visit(by, Shape::Line);
        }
    }
    if let Some(proof) = proof {
        visit_proof(proof, visit);
    }
    visit(invocation, Shape::Line);
    if let Some(why) = ended_early {
        visit(why, Shape::Line);
    }
    visit_map(places, visit);
    if let Some(history) = history {
        visit_history(history, visit);
    }
    if let Some(WallClock {
        started,
        seconds: _,
        timings,
    }) = wall
    {
        visit(started, Shape::Line);
        if let Some(timings) = timings {
            visit_timings(timings, visit);
        }
    }
    if let Some(EvidenceStamp { name, sha256, run }) = evidence {
        for text in [name, sha256, run] {
            visit(text, Shape::Line);
        }
    }
    if let Some(claims) = claims {
        visit_claims(claims, visit);
    }
    if let Some(archive) = archive {
        visit_archive(archive, visit);
    }
    if let Some(repeats) = repeats {
        visit_repeats(repeats, visit);
    }
    if let Some(Build { url, revision }) = build {
        visit(url, Shape::Line);
        visit(revision, Shape::Line);
    }
}

fn visit_repeats(repeats: &mut Repeats, visit: Visit) {
    let Repeats {
        requested: _,
        runs,
        rules,
    } = repeats;
    for RepeatedRun {
        names,
        complete: _,
        rules: _,
    } in runs
    {
        visit(names, Shape::Line);
    }
    for RepeatedRule {
        rule,
        verdicts: _,
        flaky: _,
        difference,
    } in rules
    {
        visit(rule, Shape::Line);
        let Some(ExchangeDifference {
            scenario,
            step: _,
            operation,
            place,
            passed,
            failed,
            passed_run: _,
            failed_run: _,
        }) = difference
        else {
            continue;
        };
        for text in [scenario, operation, place, passed, failed] {
            visit(text, Shape::Line);
        }
    }
}

fn visit_claims(claims: &mut ClaimsResult, visit: Visit) {
    let ClaimsResult {
        implementation,
        services,
        unjudged,
    } = claims;
    visit(implementation, Shape::Line);
    visit_keys(services, visit);
    for features in services.values_mut() {
        visit_lines(features, visit);
    }
    for UnjudgedClaim {
        service,
        feature,
        reason,
        ids,
    } in unjudged
    {
        for text in [service, feature, reason] {
            visit(text, Shape::Line);
        }
        visit_lines(ids, visit);
    }
}

fn visit_archive(archive: &mut ArchiveCounts, visit: Visit) {
    let ArchiveCounts {
        documents,
        findings,
        unreadable: _,
        schema_ids: _,
    } = archive;
    for DocumentCount {
        kind,
        version,
        documents: _,
        rejected: _,
    } in documents
    {
        visit(kind, Shape::Line);
        visit(version, Shape::Line);
    }
    for FindingCount {
        kind,
        version,
        rule,
        day,
        findings: _,
    } in findings
    {
        for text in [kind, version, rule, day] {
            visit(text, Shape::Line);
        }
    }
}

fn visit_timings(timings: &mut Timings, visit: Visit) {
    let Timings {
        jobs: _,
        spent: _,
        lower_bound: _,
        because,
        scenarios,
    } = timings;
    visit(because, Shape::Line);
    for scenario in scenarios {
        let ScenarioTime {
            scenario,
            lane: _,
            began: _,
            seconds: _,
            spent: _,
        } = scenario;
        visit(scenario, Shape::Line);
    }
}

fn visit_history(history: &mut History, visit: Visit) {
    let History {
        earlier,
        new,
        fixed,
        flaky,
        first_seen,
        changed,
    } = history;
    for EarlierRun {
        name,
        broken: _,
        judged: _,
    } in earlier
    {
        visit(name, Shape::Line);
    }
    for lines in [new, fixed, flaky, changed] {
        visit_lines(lines, visit);
    }
    visit_map(first_seen, visit);
}

fn visit_lines(lines: &mut [String], visit: Visit) {
    for text in lines {
        visit(text, Shape::Line);
    }
}

fn visit_defect(defect: &mut Defect, visit: Visit) {
    let Defect {
        title,
        known,
        service,
        level: _,
        rules,
        findings: _,
        scenarios: _,
    } = defect;
    visit(title, Shape::Line);
    visit(service, Shape::Line);
    visit_lines(known, visit);
    visit_lines(rules, visit);
}

fn visit_exchange(exchange: &mut ShownExchange, visit: Visit) {
    let ShownExchange {
        exchange: _,
        pointer,
        operation,
        method,
        url,
        request_headers,
        request_body,
        status: _,
        fault,
        oddities,
        milliseconds: _,
        response_headers,
        response_body,
        response_bytes: _,
        marked: _,
    } = exchange;
    for text in [pointer, operation, method, url, fault] {
        visit(text, Shape::Line);
    }
    visit_lines(request_headers, visit);
    visit_lines(response_headers, visit);
    visit_lines(oddities, visit);
    for text in [request_body, response_body] {
        visit(text, Shape::Block);
    }
}

fn visit_delivery(delivery: &mut Delivery, visit: Visit) {
    let Delivery {
        scenario,
        step: _,
        pointer,
        what,
        body,
        marked: _,
        cause: _,
        action,
    } = delivery;
    for text in [scenario, pointer, what, action] {
        visit(text, Shape::Line);
    }
    visit(body, Shape::Block);
}

fn visit_waiver(waiver: &mut WaiverResult, visit: Visit) {
    let WaiverResult {
        rule,
        pointer,
        reason,
        expires,
        findings: _,
    } = waiver;
    for text in [rule, pointer, reason, expires] {
        visit(text, Shape::Line);
    }
}

fn visit_proof(proof: &mut Proof, visit: Visit) {
    let Proof {
        mode,
        proven: _,
        vacuous: _,
        unproven: _,
        services: _,
        rules: _,
        sample,
    } = proof;
    visit(mode, Shape::Line);
    for blind in sample.iter_mut().flat_map(|sample| &mut sample.blind) {
        let Blind {
            of,
            pointer,
            changes,
            made: _,
            noticed: _,
            would,
        } = blind;
        visit(of, Shape::Line);
        visit(pointer, Shape::Line);
        visit_lines(changes, visit);
        visit_lines(would, visit);
    }
}

fn visit_step(step: &mut StepResult, visit: Visit) {
    let StepResult {
        step: _,
        verb,
        what,
        at: _,
        outcome,
        exchange: _,
        setup: _,
        broken,
        race,
        sent,
        received,
    } = step;
    for text in [verb, what, outcome] {
        visit(text, Shape::Line);
    }
    for text in [sent, received] {
        visit(text, Shape::Block);
    }
    visit_lines(broken, visit);
    if let Some(race) = race {
        visit(&mut race.answer, Shape::Line);
    }
}

fn visit_rule(rule: &mut RuleResult, visit: Visit) {
    let RuleResult {
        id,
        level: _,
        source:
            Source {
                document: _,
                section,
                lines: _,
            },
        verdict: _,
        judged: _,
        findings: _,
        reason,
        subject: _,
        masked_by,
        says,
        basis: _,
        needs,
    } = rule;
    for text in [id, section, reason, says].into_iter().chain(masked_by) {
        visit(text, Shape::Line);
    }
    visit_lines(needs, visit);
}

fn visit_finding(finding: &mut Finding, visit: Visit) {
    let Finding {
        rule,
        level: _,
        service,
        operation,
        scenario,
        step: _,
        exchange: _,
        pointer,
        kind,
        expected,
        actual,
        message,
        reproduce,
        subject: _,
        waived,
        diff,
    } = finding;
    for text in [
        rule, service, operation, scenario, pointer, kind, message, waived,
    ] {
        visit(text, Shape::Line);
    }
    for text in [expected, actual, reproduce, diff] {
        visit(text, Shape::Block);
    }
}

fn visit_scenario(result: &mut ScenarioResult, visit: Visit) {
    let ScenarioResult {
        id,
        verdict: _,
        seconds: _,
        reason,
        failed_before,
        steps,
    } = result;
    visit(id, Shape::Line);
    visit(reason, Shape::Line);
    visit_lines(failed_before, visit);
    for step in steps {
        visit_step(step, visit);
    }
}

fn visit_map(map: &mut BTreeMap<String, String>, visit: Visit) {
    visit_keys(map, visit);
    for text in map.values_mut() {
        visit(text, Shape::Line);
    }
}

fn visit_keys<T>(map: &mut BTreeMap<String, T>, visit: Visit) {
    *map = std::mem::take(map)
        .into_iter()
        .map(|(mut key, value)| {
            visit(&mut key, Shape::Line);
            (key, value)
        })
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{every_text_is, sample};
    use conformant_base::text::is_deceptive;

    #[test]
    fn no_text_of_a_record_keeps_a_secret() {
        let secret = "hunter2-hunter2";
        let redactor = Redactor::new([secret]);
        let mut record = every_text_is(&format!("a {secret} b"));
        let mut ended = RunEvent::ScenarioEnded {
            result: record.scenarios[0].clone(),
            findings: record.findings.clone(),
            exchanges: 1,
        };
        let mut started = RunEvent::Started {
            scenarios: 1,
            targets: record.targets.clone(),
        };
        redact_record(&mut record, &redactor);
        redact_event(&mut ended, &redactor);
        redact_event(&mut started, &redactor);
        for shown in [
            format!("{record:?}"),
            format!("{ended:?}"),
            format!("{started:?}"),
        ] {
            assert!(!shown.contains(secret), "{shown}");
            assert!(shown.contains("[redacted]"));
        }
    }

    #[test]
    fn no_text_of_a_shown_record_deceives() {
        let shown = escaped(&every_text_is("\u{1b}[2J\n::error::x\u{202e}"));
        let json = serde_json::to_string(&shown).unwrap();
        assert!(!json.contains(is_deceptive), "{json}");
        assert!(!shown.rules[0].id.contains('\n'));
        assert!(shown.findings[0].actual.contains('\n'));
    }

    #[test]
    fn ordinary_records_are_shown_as_they_are() {
        assert_eq!(escaped(&sample()), sample());
    }
}
