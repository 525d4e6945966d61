//! Draws the schedule of a run: a row per lane, a bar per scenario.

use crate::timings::{longest, parts};
use conformant_record::{RunRecord, ScenarioTime, Spent};
use minijinja::{Value, context};

/// Scenarios listed by name.
const NAMED_MAX: usize = 8;
/// Width in drawing units.
const WIDTH: f64 = 1000.0;
/// Height of a row and of its bar.
const ROW: usize = 7;
const BAR: usize = 6;

/// The schedule, if it was requested.
pub(super) fn schedule(record: &RunRecord) -> Option<Value> {
    let timings = record.wall.as_ref()?.timings.as_ref()?;
    let end = timings
        .scenarios
        .iter()
        .map(|timed| timed.began + timed.seconds)
        .fold(0.001, f64::max);
    let rows = timings.scenarios.iter().map(|timed| timed.lane).max()?;
    let bars: Vec<Value> = timings
        .scenarios
        .iter()
        .map(|timed| bar(timed, end))
        .collect();
    let named: Vec<Value> = longest(&timings.scenarios)
        .into_iter()
        .take(NAMED_MAX)
        .map(|timed| {
            let seconds = format!("{:.1} s", timed.seconds);
            context! { seconds, id => timed.scenario.as_str(), parts => parts(&timed.spent) }
        })
        .collect();
    let keys: Vec<&str> = Spent::PARTS.iter().map(|(name, _)| *name).collect();
    Some(context! {
        lead => format!(
            "{} jobs, {:.1} s. Lower bound for any order: {:.1} s ({}).",
            timings.jobs, end, timings.lower_bound, timings.because
        ),
        label => format!("{} scenarios in {rows} rows, {end:.1} s from left to right", timings.scenarios.len()),
        bound => place(timings.lower_bound, end),
        height => rows * ROW,
        spent => parts(&timings.spent),
        bars,
        named,
        keys,
    })
}

fn place(seconds: f64, end: f64) -> String {
    format!("{:.1}", seconds / end * WIDTH)
}

fn bar(timed: &ScenarioTime, end: f64) -> Value {
    let most = timed
        .spent
        .parts()
        .into_iter()
        .enumerate()
        .max_by(|(_, (_, a)), (_, (_, b))| a.total_cmp(b));
    context! {
        x => place(timed.began, end),
        y => timed.lane.saturating_sub(1) * ROW,
        width => place(timed.seconds.max(end / WIDTH), end),
        height => BAR,
        part => most.map_or(0, |(at, _)| at),
        said => format!("{}, {:.1} s: {}", timed.scenario, timed.seconds, parts(&timed.spent)),
    }
}
