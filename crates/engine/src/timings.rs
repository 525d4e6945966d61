//! Measures the duration of scenarios and computes a lower bound for the duration of the run.

use super::plan::Planned;
use super::scheduler::{Concurrency, ResourceClaim};
use conformant_base::clock;
use conformant_base::parallel::{lock, recovered};
use conformant_record::{ScenarioTime, Spent, Timings};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Instant;

/// Rounds to milliseconds.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// Records when scenarios began and ended.
pub(super) struct Timekeeper {
    began: Instant,
    scenarios: Mutex<Vec<(usize, ScenarioTime)>>,
}

impl Timekeeper {
    pub(super) fn new() -> Self {
        Self {
            began: clock::monotonic(),
            scenarios: Mutex::default(),
        }
    }

    /// Records a scenario that has just ended; `index` is its position in the plan.
    pub(super) fn record(
        &self,
        (index, planned): (usize, &Planned<'_>),
        lane: usize,
        began: Instant,
        waited: &Spent,
    ) {
        let took = began.elapsed().as_secs_f64();
        let mut spent = Spent {
            own: (took - waited.all()).max(0.0),
            ..*waited
        };
        for (_, part) in Spent::PARTS {
            *part(&mut spent) = rounded(*part(&mut spent));
        }
        let scenario_time = ScenarioTime {
            scenario: planned.scenario.id.clone(),
            lane: lane + 1,
            began: rounded(began.saturating_duration_since(self.began).as_secs_f64()),
            seconds: rounded(took),
            spent,
        };
        let mut scenarios = lock(&self.scenarios);
        scenarios.push((index, scenario_time));
    }

    /// The timings of the whole run.
    pub(super) fn finish(
        self,
        claims: &[ResourceClaim],
        jobs: usize,
        phone_numbers: usize,
    ) -> Timings {
        let mut scenarios = recovered(self.scenarios.into_inner());
        scenarios.sort_by(|(_, a), (_, b)| a.began.total_cmp(&b.began).then(a.lane.cmp(&b.lane)));
        let (lower_bound, because) = bound(&scenarios, claims, jobs, phone_numbers);
        let mut spent = Spent::default();
        for (_, scenario_time) in &scenarios {
            spent.add(&scenario_time.spent);
        }
        Timings {
            jobs,
            spent,
            lower_bound,
            because,
            scenarios: scenarios
                .into_iter()
                .map(|(_, scenario_time)| scenario_time)
                .collect(),
        }
    }
}

/// The share of each of `number` equal parts.
fn among(seconds: f64, number: usize) -> f64 {
    seconds / f64::from(u32::try_from(number.max(1)).unwrap_or(u32::MAX))
}

/// The lower bound of the run's duration, and its reason: the longest scenario, scenarios that cannot overlap, or the
/// work of all jobs.
fn bound(
    scenarios: &[(usize, ScenarioTime)],
    claims: &[ResourceClaim],
    jobs: usize,
    phone_numbers: usize,
) -> (f64, String) {
    let unclaimed = ResourceClaim::default();
    let claimed = scenarios.iter().map(|(index, scenario_time)| {
        let claim = claims.get(*index).unwrap_or(&unclaimed);
        (claim, scenario_time.spent.by_itself())
    });
    let claimed: Vec<(&ResourceClaim, f64)> = claimed.collect();
    let those = |holds: &dyn Fn(&ResourceClaim) -> bool| -> Vec<f64> {
        let those = claimed.iter().filter(|(claim, _)| holds(claim));
        those.map(|(_, seconds)| *seconds).collect()
    };
    let mut bounds = Vec::new();
    let longest = scenarios
        .iter()
        .max_by(|(_, a), (_, b)| a.spent.by_itself().total_cmp(&b.spent.by_itself()));
    if let Some((_, scenario_time)) = longest {
        let why = format!("{} alone takes that long", scenario_time.scenario);
        bounds.push((scenario_time.spent.by_itself(), why));
    }
    // A scenario that waits for time or callbacks frees its job.
    let spent = scenarios
        .iter()
        .map(|(_, scenario_time)| &scenario_time.spent);
    let work = spent.map(|spent| spent.by_itself() - spent.time - spent.callbacks);
    let why = format!("the work of all scenarios among {jobs} jobs");
    bounds.push((among(work.sum(), jobs), why));
    let services: BTreeSet<&String> = claims.iter().flat_map(|room| &room.services).collect();
    for service in services {
        let on_service = |is_exclusive: bool| {
            those(&|claim| {
                claim.services.contains(service)
                    && (claim.concurrency == Concurrency::Exclusive) == is_exclusive
            })
        };
        let exclusive: f64 = on_service(true).iter().sum();
        let shared = on_service(false).into_iter().fold(0.0, f64::max);
        if exclusive > 0.0 {
            let why = format!(
                "scenarios that need exclusive access to the {service} service run one after the other"
            );
            bounds.push((exclusive + shared, why));
        }
    }
    let with_phone_number: f64 = those(&|claim| claim.needs_phone_number).iter().sum();
    if with_phone_number > 0.0 && phone_numbers < usize::MAX {
        let why = format!(
            "scenarios with an exclusive phone number, of which {phone_numbers} can run at a time"
        );
        bounds.push((among(with_phone_number, phone_numbers), why));
    }
    let most = bounds.into_iter().max_by(|(a, _), (b, _)| a.total_cmp(b));
    let (bound, why) = most.unwrap_or_default();
    (rounded(bound), why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expects a bound and a part of its reason for scenarios of these durations (own and for callbacks).
    #[track_caller]
    fn bounded(
        scenarios: &[(f64, f64)],
        claims: &[ResourceClaim],
        (jobs, phone_numbers): (usize, usize),
        (expected, reason): (f64, &str),
    ) {
        let scenario_time = |(index, (own, callbacks)): (usize, &(f64, f64))| {
            let spent = Spent {
                own: *own,
                callbacks: *callbacks,
                turn: 5.0,
                ..Spent::default()
            };
            let scenario_time = ScenarioTime {
                scenario: format!("scenario_time-{index}"),
                spent,
                ..ScenarioTime::default()
            };
            (index, scenario_time)
        };
        let scenarios: Vec<_> = scenarios.iter().enumerate().map(scenario_time).collect();
        let (bound, why) = bound(&scenarios, claims, jobs, phone_numbers);
        assert!((bound - expected).abs() < 1e-9, "{bound}: {why}");
        assert!(why.contains(reason), "{why}");
    }

    fn room(concurrency: Concurrency, needs_phone_number: bool) -> ResourceClaim {
        ResourceClaim {
            services: BTreeSet::from(["flow".to_owned()]),
            concurrency,
            needs_phone_number,
            ..ResourceClaim::default()
        }
    }

    #[test]
    fn turns_and_overlapping_waits_do_not_raise_the_bound() {
        let free = [(); 2].map(|()| room(Concurrency::Shared, false));
        let longest = (3.0, "scenario_time-0 alone takes that long");
        bounded(&[(1.0, 2.0), (1.5, 0.5)], &free, (2, usize::MAX), longest);
    }

    #[test]
    fn the_work_is_shared_among_the_jobs() {
        let scenarios = [(1.0, 0.0), (1.5, 0.0), (1.1, 9.0)];
        let all = (2.5, "the work of all scenarios among 1 jobs");
        bounded(&scenarios[..2], &[], (1, usize::MAX), all);
        bounded(
            &scenarios[..2],
            &[],
            (2, usize::MAX),
            (1.5, "scenario_time-1"),
        );
        bounded(&scenarios, &[], (1, usize::MAX), (10.1, "scenario_time-2"));
    }

    #[test]
    fn exclusive_scenarios_add_up() {
        let [alone, shared] = [Concurrency::Exclusive, Concurrency::Shared];
        let claims = [alone, alone, shared].map(|concurrency| room(concurrency, false));
        let scenarios = [(1.0, 0.0), (1.5, 0.0), (0.5, 0.0)];
        let exclusive = (3.0, "exclusive access to the flow service");
        bounded(&scenarios, &claims, (8, usize::MAX), exclusive);
    }

    #[test]
    fn phone_numbers_bound_the_duration() {
        let claims = [(); 3].map(|()| room(Concurrency::Shared, true));
        bounded(&[(2.0, 0.0); 3], &claims, (8, 2), (3.0, "of which 2"));
    }

    #[test]
    fn an_empty_run_has_no_bound() {
        let timings = Timekeeper::new().finish(&[], 4, usize::MAX);
        assert!(timings.lower_bound.abs() < 1e-9 && timings.scenarios.is_empty());
    }
}
