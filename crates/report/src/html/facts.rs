//! Settings and durations of the run.

use super::words::duration;
use conformant_base::text;
use conformant_record::RunRecord;

/// Slowest scenarios shown.
const SLOWEST_MAX: usize = 5;

pub(super) fn facts(record: &RunRecord) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("version", record.tool.version.clone()),
        ("seed", record.seed.to_string()),
        (
            "rulebook",
            text::excerpt(&record.rulebook.digest, 64).into_owned(),
        ),
        (
            "complete",
            match (&record.ended_early, record.complete) {
                (_, true) => "yes".to_owned(),
                (Some(why), false) => format!("no: {why}"),
                (None, false) => "no: interrupted".to_owned(),
            },
        ),
    ];
    if let Some(part) = &record.partition {
        facts.push((
            "part",
            format!("{} of {} by {}", part.part, part.of, part.kind),
        ));
    }
    if let Some(exit) = record.exit {
        facts.push(("exit code", exit.to_string()));
    }
    if let Some(wall) = &record.wall {
        facts.push(("began", wall.started.clone()));
    }
    facts
}

pub(super) fn time_said(record: &RunRecord) -> String {
    let summary = &record.summary;
    let played = summary
        .clock_seconds
        .map(|seconds| format!(", {} simulated", duration(seconds)));
    match &record.wall {
        Some(wall) => format!(
            "Scenarios took {}{}",
            duration(wall.seconds),
            played.unwrap_or_default()
        ),
        None => format!("Scenarios took {} simulated", duration(summary.seconds)),
    }
}

pub(super) fn slowest(record: &RunRecord) -> Vec<(String, String)> {
    let mut all: Vec<_> = record
        .scenarios
        .iter()
        .filter(|s| s.seconds > 0.0)
        .collect();
    all.sort_by(|a, b| {
        b.seconds
            .total_cmp(&a.seconds)
            .then_with(|| a.id.cmp(&b.id))
    });
    let slowest = all.iter().take(SLOWEST_MAX);
    slowest
        .map(|scenario| (duration(scenario.seconds), scenario.id.clone()))
        .collect()
}
