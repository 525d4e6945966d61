//! `baseline`: accepts today's failures of a target as waivers, so that only new ones fail.
//!
//! A waiver names the rule, operation, place and type of difference, so that a new failure of the same rule elsewhere
//! is still reported. Judges nothing itself: reads the record of a run.

use super::args::BaselineArgs;
use super::claims::read_waivers;
use super::{Done, Exit, Failure, hint, note, stored, today};
use conformant_record::waivers::{Waiver, place_of};
use conformant_record::{Finding, Level, RunRecord, Verdict};
use conformant_rulebook::Rulebook;
use jiff::civil::Date;
use std::path::Path;

/// Days until a waiver expires, by default.
const DAYS: i64 = 90;

/// Refuses waivers that no rule of the rulebook can use.
pub(super) fn check_ids(rulebook: &Rulebook, waivers: &[Waiver]) -> Result<(), Failure> {
    let known: Vec<&str> = rulebook.rules.iter().map(|(id, _)| id.as_str()).collect();
    let names_one = |waiver: &Waiver| known.iter().any(|id| waiver.names(id));
    let unknown = waivers.iter().filter(|waiver| {
        let has_version = waiver
            .without_version()
            .is_some_and(|id| known.contains(&id.as_str()));
        !has_version && !names_one(waiver)
    });
    let unknown = unknown.map(|waiver| {
        let id = &waiver.rule;
        let hint = hint(id, &known);
        format!("--waivers: no rule is named {id}{hint} (`conformant list rules` shows them)")
    });
    let unusable = waivers.iter().flat_map(|waiver| unusable(rulebook, waiver));
    Failure::unless_empty(&unknown.chain(unusable).collect::<Vec<_>>())
}

/// The members of a waiver that can match no finding, and a missing reason.
fn unusable(rulebook: &Rulebook, waiver: &Waiver) -> Vec<String> {
    let mut problems = Vec::new();
    let rule = &waiver.rule;
    if !rule.is_empty() && rule.chars().all(|c| matches!(c, '*' | '/')) {
        problems.push(format!(
            "--waivers: `{rule}` would accept every failure: name the rules, such as `flow/step/*`"
        ));
    }
    if let Some(id) = &waiver.operation
        && rulebook.operation_by_id(id).is_none()
    {
        problems.push(format!(
            "--waivers: {rule}: {}",
            super::no_operation(rulebook, id)
        ));
    }
    let pointer = waiver.pointer.as_deref().unwrap_or_default();
    if !pointer.is_empty() && !pointer.starts_with('/') {
        problems.push(format!(
            "--waivers: {rule}: invalid pointer `{pointer}`: expected a JSON Pointer, such as /meta/page_size"
        ));
    }
    if waiver.reason.trim().is_empty() {
        problems.push(format!(
            "--waivers: {rule}: the reason is empty: write why the failure is accepted"
        ));
    }
    problems
}

pub(super) fn baseline(args: &BaselineArgs) -> Done {
    let record = stored::read(&args.run)?;
    let is_judged = |verdict| matches!(verdict, Verdict::Pass | Verdict::Fail | Verdict::Waived);
    let why = if !record.complete {
        Some("was interrupted, so that its findings are incomplete")
    } else if !record.rules.iter().any(|rule| is_judged(rule.verdict)) {
        Some("judged nothing, so that it shows neither failures nor what is fixed")
    } else {
        None
    };
    if let Some(why) = why {
        let run = args.run.display();
        return Err(Failure::Usage(format!("{run}: the run {why}")));
    }
    // An update of a file that does not exist is a mistake in its name.
    let known = if args.update || args.out.exists() {
        read_waivers(&args.out)?
    } else {
        Vec::new()
    };
    let (waivers, summary) = if args.update {
        let part = part_of(&record);
        let (keep, gone): (Vec<Waiver>, Vec<Waiver>) = known
            .into_iter()
            .partition(|waiver| part.is_some() || !is_fixed(waiver, &record));
        if let Some(part) = &part {
            note(&format!(
                "{}: the run had {part}, so that it does not show what is fixed: no waiver is removed; repeat the update with a run of all scenarios",
                args.run.display()
            ));
        }
        let summary = format!("{} removed, {} kept", gone.len(), keep.len());
        (keep, summary)
    } else {
        let reason = args.reason.as_deref().unwrap_or_default();
        let owner = args.owner.as_deref().unwrap_or_default();
        if reason.trim().is_empty() || owner.trim().is_empty() {
            let why = "--reason TEXT and --owner NAME are required: why the failures are accepted, and who is responsible for them";
            return Err(Failure::Usage(why.to_owned()));
        }
        let expires = expiry(args.expires.as_deref())?;
        let kept = known.len();
        let waivers = accepting(&record, known, args.strict, &|finding| Waiver {
            rule: finding.rule.clone(),
            operation: operation_of(finding),
            pointer: Some(place_of(&finding.pointer)),
            kind: Some(finding.kind.clone()),
            reason: reason.to_owned(),
            owner: Some(owner.to_owned()),
            expires,
        });
        let summary = format!("{} added, {kept} kept", waivers.len() - kept);
        (waivers, summary)
    };
    let broken = record
        .rules
        .iter()
        .filter(|rule| rule.verdict == Verdict::Fail);
    for rule in broken {
        let listed = record.findings.iter().filter(|f| f.rule == rule.id).count();
        if listed < rule.findings {
            let all = rule.findings;
            note(&format!(
                "{}: {listed} of {all} findings are listed in the record; to accept the others, write a waiver that names the rule alone",
                rule.id
            ));
        }
    }
    write(&args.out, &waivers)?;
    note(&format!("{}: {summary}", args.out.display()));
    Ok(Exit::Conformant)
}

/// The existing waivers, and a new one for each failure that none of them accepts.
fn accepting(
    record: &RunRecord,
    mut waivers: Vec<Waiver>,
    strict: bool,
    waiver_of: &dyn Fn(&Finding) -> Waiver,
) -> Vec<Waiver> {
    let fails = |finding: &&Finding| {
        finding.level == Level::Must || strict && finding.level == Level::Should
    };
    for finding in record.findings.iter().filter(fails) {
        if !waivers.iter().any(|waiver| waiver.accepts(finding)) {
            waivers.push(waiver_of(finding));
        }
    }
    waivers
}

/// The operation of a finding, such as `flow/read-flows`; none for a payload without an operation.
fn operation_of(finding: &Finding) -> Option<String> {
    let is_of_one = !finding.operation.is_empty();
    is_of_one.then(|| format!("{}/{}", finding.service, finding.operation))
}

/// The flags that left scenarios of the judged services out of the run.
fn part_of(record: &RunRecord) -> Option<String> {
    let flags = conformant_report::limits(record);
    let partition = record.partition.as_ref().map(|_| "--partition".to_owned());
    let is_partition = |flag: &String| flag.starts_with("--partition");
    let has_none = !flags.iter().any(is_partition);
    let flags: Vec<String> = flags
        .into_iter()
        .chain(partition.filter(|_| has_none))
        .filter(|flag| {
            !["--service", "--prove", "--global-timeout"]
                .iter()
                .any(|other| flag.starts_with(other))
        })
        .collect();
    (!flags.is_empty()).then(|| flags.join(" "))
}

/// Whether the rule was judged at the waiver's operation and no failure is left.
fn is_fixed(waiver: &Waiver, record: &RunRecord) -> bool {
    let concluded = |verdict| matches!(verdict, Verdict::Pass | Verdict::Fail | Verdict::Waived);
    let mut rules = record.rules.iter().filter(|rule| waiver.names(&rule.id));
    let was_judged = rules.any(|rule| rule.judged > 0 && concluded(rule.verdict));
    // A service without a target has no scenarios.
    let was_played = waiver.operation.as_ref().is_none_or(|operation| {
        let own = format!("{operation}/");
        let mut scenarios = record.scenarios.iter().filter(|s| s.id.starts_with(&own));
        scenarios.any(|scenario| concluded(scenario.verdict))
    });
    was_judged
        && was_played
        && !record
            .findings
            .iter()
            .any(|finding| waiver.accepts(finding))
}

fn expiry(text: Option<&str>) -> Result<Date, Failure> {
    let today = today();
    let Some(text) = text else {
        return Ok(today.saturating_add(jiff::Span::new().days(DAYS)));
    };
    let date: Date = text.parse().map_err(|_| {
        Failure::Usage(format!(
            "invalid --expires `{text}`: expected a date, such as 2027-01-31"
        ))
    })?;
    if date < today {
        return Err(Failure::Usage(format!(
            "--expires {date} is in the past: the waivers would not accept anything; name {today} or a later day"
        )));
    }
    Ok(date)
}

fn write(path: &Path, waivers: &[Waiver]) -> Result<(), Failure> {
    let mut text = String::from(
        "# Accepted failures, for `conformant run --waivers`. `conformant baseline --update` removes\n\
         # those whose rules pass again.\nwaivers:",
    );
    if waivers.is_empty() {
        text.push_str(" []");
    }
    text.push('\n');
    for waiver in waivers {
        text.push_str(&shown(waiver));
    }
    std::fs::write(path, text).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))
}

/// A waiver as YAML; a JSON string is valid YAML.
fn shown(waiver: &Waiver) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = format!("  - rule: {}\n", quoted(&waiver.rule));
    for (key, value) in [
        ("operation", &waiver.operation),
        ("pointer", &waiver.pointer),
        ("kind", &waiver.kind),
        ("owner", &waiver.owner),
    ] {
        if let Some(value) = value {
            text.push_str(&format!("    {key}: {}\n", quoted(value)));
        }
    }
    text.push_str(&format!("    reason: {}\n", quoted(&waiver.reason)));
    text.push_str(&format!("    expires: {}\n", waiver.expires));
    text
}
