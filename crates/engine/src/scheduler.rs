//! Scheduler: picks the next scenario and decides which scenarios may run concurrently.
//!
//! - A target has some resources only once, such as its clock or a list that all scenarios share. Each scenario has a claim,
//!   which says whether it needs one for itself. Scenarios with incompatible claims never run at the same time.
//! - Scenarios that need none for themselves (`Shared`) run in parallel.

use conformant_base::parallel::processors;
use conformant_base::parallel::{lock, recovered};
use conformant_judge::prove::Priority;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Which other scenarios may run at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concurrency {
    /// The scenario claims a resource that its services have only once. No scenario that uses one of these services runs
    /// at the same time, and no scenario that moves the clock.
    Exclusive,
    /// The scenario moves the target's clock. Other scenarios that move it may run at the same time: the clock moves
    /// once all of them wait. A `Shared` scenario may run at the same time if it uses none of the same services.
    SharedClock,
    /// The scenario needs no resource for itself. It runs alongside other `Shared` scenarios.
    #[default]
    Shared,
}

/// The target resources that a scenario claims while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceClaim {
    /// The services that it calls or changes.
    pub services: BTreeSet<String>,
    pub concurrency: Concurrency,
    /// Whether it moves the target's clock, which all services share. True of each `SharedClock` scenario, possible in an
    /// `Exclusive` one, and false in a `Shared` one.
    pub moves_the_clock: bool,
    /// Whether it needs a phone number of the pool, which may be small.
    pub needs_phone_number: bool,
    /// Estimated time of its steps and waits on the target's clock.
    pub target_time: Duration,
    /// Estimated real time; zero if the target's clock is virtual.
    pub real_time: Duration,
}

impl ResourceClaim {
    /// The position in the order of execution; the lowest runs first. Compared in this order:
    ///
    /// 1. the class of concurrency: `Exclusive`, then `SharedClock`, then `Shared`. Exclusive scenarios run first, while the
    ///    lists that they walk are short; among them, those that do not move the clock run first.
    /// 2. the real time, the longest first.
    /// 3. the target time, the shortest first.
    pub(super) fn priority(&self) -> Priority {
        let concurrency = match self.concurrency {
            Concurrency::Exclusive => 0,
            Concurrency::SharedClock => 2,
            Concurrency::Shared => 4,
        };
        let class = concurrency + u8::from(self.moves_the_clock);
        (class, Reverse(self.real_time), self.target_time)
    }

    /// Whether both may run at the same time. No other scenario moves the clock during an exclusive one, because the
    /// exclusive one would have to be retried.
    fn is_compatible_with(&self, other: &Self) -> bool {
        use Concurrency::{Exclusive, Shared, SharedClock};
        match (self.concurrency, other.concurrency) {
            (SharedClock, SharedClock) | (Shared, Shared) => true,
            (Exclusive, _) if other.moves_the_clock => false,
            (_, Exclusive) if self.moves_the_clock => false,
            _ => self.services.is_disjoint(&other.services),
        }
    }
}

/// The default number of jobs. Waiting for a remote target needs no processor; an in-process run keeps one busy per job, and
/// another job prepares the next scenario.
pub fn jobs_default(is_in_process: bool) -> usize {
    const MOST: usize = 8;
    if is_in_process {
        MOST.min(processors() + 1)
    } else {
        MOST
    }
}

/// Returns the number of scenarios that can use a phone number at the same time.
pub(super) type PhoneNumberLimit<'a> = Box<dyn Fn() -> usize + Send + Sync + 'a>;

/// The scenarios of a run, by their index in the plan.
pub(super) struct Scheduler<'a> {
    claims: Vec<ResourceClaim>,
    phone_number_limit: PhoneNumberLimit<'a>,
    state: Mutex<State>,
    /// Notified when a scenario has finished.
    finished: Condvar,
}

#[derive(Debug)]
struct State {
    /// Scenarios that have not started, in the order of execution.
    waiting: Vec<usize>,
    running: BTreeSet<usize>,
}

/// A guard for a running scenario. Dropping it releases the scenario's claim.
pub(super) struct RunGuard<'a> {
    scheduler: &'a Scheduler<'a>,
    /// Index of the scenario.
    pub(super) index: usize,
}

impl<'a> Scheduler<'a> {
    /// Orders the scenarios by priority. Where they were shuffled, only the class of concurrency counts.
    pub(super) fn new(
        claims: Vec<ResourceClaim>,
        are_shuffled: bool,
        phone_number_limit: PhoneNumberLimit<'a>,
    ) -> Self {
        let mut waiting: Vec<usize> = (0..claims.len()).collect();
        if are_shuffled {
            waiting.sort_by_key(|&index| claims[index].priority().0);
        } else {
            waiting.sort_by_key(|&index| claims[index].priority());
        }
        let running = BTreeSet::new();
        Self {
            claims,
            phone_number_limit,
            state: Mutex::new(State { waiting, running }),
            finished: Condvar::new(),
        }
    }

    /// Waits for the next scenario that can start; `None` when all have started.
    pub(super) fn start_next(&self) -> Option<RunGuard<'_>> {
        self.start_first(|_| true)
    }

    /// Waits until this scenario can start; `None` if it has started before.
    pub(super) fn start(&self, index: usize) -> Option<RunGuard<'_>> {
        self.start_first(|other| other == index)
    }

    /// Waits for the first matching scenario that can start; `None` when all of them have started.
    fn start_first(&self, is_candidate: impl Fn(usize) -> bool) -> Option<RunGuard<'_>> {
        let mut state = lock(&self.state);
        loop {
            let candidates = state.waiting.iter().enumerate();
            let candidates = candidates.filter(|(_, index)| is_candidate(**index));
            let candidates: Vec<(usize, usize)> =
                candidates.map(|(at, &index)| (at, index)).collect();
            if candidates.is_empty() {
                return None;
            }
            if let Some((at, index)) = self.first_startable(&candidates, &state.running) {
                state.waiting.remove(at);
                state.running.insert(index);
                return Some(RunGuard {
                    scheduler: self,
                    index,
                });
            }
            state = recovered(self.finished.wait(state));
        }
    }

    /// The first scenario that can start. While a scenario that is not `Shared` waits for the running ones, no later
    /// scenario that is incompatible with it starts. Otherwise it could wait forever.
    fn first_startable(
        &self,
        candidates: &[(usize, usize)],
        running: &BTreeSet<usize>,
    ) -> Option<(usize, usize)> {
        let mut passed_over: Vec<&ResourceClaim> = Vec::new();
        for &(at, index) in candidates {
            let claim = &self.claims[index];
            if self.can_start(index, running)
                && passed_over
                    .iter()
                    .all(|other| claim.is_compatible_with(other))
            {
                return Some((at, index));
            }
            if claim.concurrency != Concurrency::Shared && !passed_over.contains(&claim) {
                passed_over.push(claim);
            }
        }
        None
    }

    /// The claims of all scenarios.
    pub(super) fn claims(&self) -> &[ResourceClaim] {
        &self.claims
    }

    fn can_start(&self, index: usize, running: &BTreeSet<usize>) -> bool {
        let claim = &self.claims[index];
        let others = || running.iter().map(|&other| &self.claims[other]);
        let with_phone_number = || others().filter(|other| other.needs_phone_number).count();
        others().all(|other| claim.is_compatible_with(other))
            && (!claim.needs_phone_number || with_phone_number() < (self.phone_number_limit)())
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        lock(&self.scheduler.state).running.remove(&self.index);
        self.scheduler.finished.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(services: &[&str], concurrency: Concurrency, seconds: u64) -> ResourceClaim {
        ResourceClaim {
            services: services.iter().map(|&s| s.to_owned()).collect(),
            concurrency,
            moves_the_clock: concurrency == Concurrency::SharedClock,
            real_time: Duration::from_secs(seconds),
            ..ResourceClaim::default()
        }
    }

    #[test]
    fn exclusive_scenarios_start_first_and_other_services_continue() {
        let scheduler = Scheduler::new(
            vec![
                claim(&["flow"], Concurrency::Shared, 0),
                ResourceClaim {
                    target_time: Duration::from_millis(1),
                    ..claim(&["chat"], Concurrency::Shared, 0)
                },
                claim(&["chat"], Concurrency::Shared, 0),
                claim(&["chat", "media"], Concurrency::Shared, 5),
                claim(&["flow"], Concurrency::Exclusive, 0),
                claim(&["flow", "auth"], Concurrency::Exclusive, 0),
            ],
            false,
            Box::new(|| 1),
        );
        let (walk, longest) = (
            scheduler.start_next().unwrap(),
            scheduler.start_next().unwrap(),
        );
        assert_eq!((walk.index, longest.index), (4, 3));
        let chat = scheduler.start_next().unwrap();
        assert_eq!(chat.index, 2, "the others wait for the walk");
        let chat = scheduler.start_next().unwrap();
        assert_eq!(chat.index, 1, "its target time is longer");
        drop(walk);
        let second = scheduler.start_next().unwrap();
        assert_eq!(second.index, 5, "it still precedes shared scenarios");
        drop(second);
        assert_eq!(scheduler.start_next().unwrap().index, 0);
        assert!(scheduler.start_next().is_none());
    }

    #[test]
    fn scenarios_that_move_the_clock_share_it_and_are_not_starved() {
        let scheduler = Scheduler::new(
            vec![
                claim(&["chat", "auth"], Concurrency::SharedClock, 2),
                claim(&["flow", "auth"], Concurrency::SharedClock, 1),
                claim(&["flow"], Concurrency::Exclusive, 0),
                claim(&["flow"], Concurrency::Shared, 9),
                claim(&["events"], Concurrency::Shared, 0),
            ],
            false,
            Box::new(|| 1),
        );
        let (walk, elsewhere) = (
            scheduler.start_next().unwrap(),
            scheduler.start_next().unwrap(),
        );
        assert_eq!((walk.index, elsewhere.index), (2, 4));
        drop(walk);
        let mover = scheduler.start_next().unwrap();
        let other = scheduler.start_next().unwrap();
        assert_eq!((mover.index, other.index), (0, 1), "at the same time");
        drop((mover, other));
        assert_eq!(scheduler.start_next().unwrap().index, 3);
        assert!(scheduler.start(3).is_none());
    }

    #[test]
    fn a_requested_scenario_does_not_wait_for_unstarted_ones() {
        let claims = vec![
            claim(&["flow"], Concurrency::Exclusive, 0),
            claim(&["flow"], Concurrency::Shared, 0),
        ];
        let scheduler = Scheduler::new(claims, false, Box::new(|| 1));
        assert_eq!(scheduler.start(1).map(|running| running.index), Some(1));
    }

    #[test]
    fn phone_numbers_limit_concurrent_scenarios() {
        let few = ResourceClaim {
            needs_phone_number: true,
            ..ResourceClaim::default()
        };
        let scheduler = Scheduler::new(
            vec![few.clone(), few, ResourceClaim::default()],
            false,
            Box::new(|| 1),
        );
        let first = scheduler.start_next().unwrap();
        let free = scheduler.start_next().unwrap();
        assert_eq!((first.index, free.index), (0, 2));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| scheduler.start_next().map(|running| running.index));
            drop(first);
            assert_eq!(waiting.join().unwrap(), Some(1));
        });
    }
}
