//! Formats the time of a run.

use conformant_record::{ScenarioTime, Spent, WallClock};
use std::fmt::Write as _;

/// Slowest scenarios listed.
const LONGEST_MAX: usize = 10;

/// The schedule of a run; empty if it was not requested.
pub fn render(wall: &WallClock) -> String {
    let Some(timings) = &wall.timings else {
        return String::new();
    };
    let mut out = format!(
        "time        {:.1} s with {} jobs; lower bound for any order {:.1} s: {}\n",
        wall.seconds, timings.jobs, timings.lower_bound, timings.because
    );
    let _ = writeln!(
        out,
        "spent       {} (sum over all scenarios)",
        parts(&timings.spent)
    );
    for (at, timed) in longest(&timings.scenarios)
        .into_iter()
        .take(LONGEST_MAX)
        .enumerate()
    {
        let label = if at == 0 { "longest" } else { "" };
        let _ = writeln!(
            out,
            "{label:<11} {:5.1} s  {}: {}",
            timed.seconds,
            timed.scenario,
            parts(&timed.spent)
        );
    }
    out
}

/// Scenarios by duration, the longest first.
pub(super) fn longest(scenarios: &[ScenarioTime]) -> Vec<&ScenarioTime> {
    let mut all: Vec<&ScenarioTime> = scenarios.iter().collect();
    all.sort_by(|a, b| {
        let longer = b.seconds.total_cmp(&a.seconds);
        longer.then_with(|| a.scenario.cmp(&b.scenario))
    });
    all
}

/// `callbacks 3.1 s, answers 0.2 s`.
pub(super) fn parts(spent: &Spent) -> String {
    let parts = spent.noticeable();
    if parts.is_empty() {
        return "none".to_owned();
    }
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(name, seconds)| format!("{name} {seconds:.1} s"))
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_record::Timings;

    #[test]
    fn the_longest_come_first_with_what_they_waited_for() {
        let timed = |scenario: &str, seconds: f64, callbacks: f64| ScenarioTime {
            scenario: scenario.to_owned(),
            seconds,
            spent: Spent {
                callbacks,
                answers: 0.06,
                turn: 0.01,
                ..Spent::default()
            },
            ..ScenarioTime::default()
        };
        let mut wall = WallClock {
            seconds: 3.5,
            ..WallClock::default()
        };
        assert_eq!(render(&wall), "", "it was not asked for");
        wall.timings = Some(Timings {
            jobs: 8,
            lower_bound: 2.25,
            because: "flow/b alone takes that long".to_owned(),
            scenarios: vec![timed("flow/a", 1.0, 0.0), timed("flow/b", 2.25, 2.0)],
            ..Timings::default()
        });
        assert_eq!(
            render(&wall),
            "time        3.5 s with 8 jobs; lower bound for any order 2.2 s: flow/b alone takes that long\n\
             spent       none (sum over all scenarios)\n\
             longest       2.2 s  flow/b: callbacks 2.0 s, answers 0.1 s\n            \
             \u{20}\u{20}1.0 s  flow/a: answers 0.1 s\n"
        );
    }
}
