//! Scheduler: picks the next scenario and decides which scenarios may run concurrently.
//!
//! Resources that a target has once, such as its clock or a list that all scenarios share, are held by one scenario at
//! a time. Scenarios that do not need them continue in parallel.

use conformant_base::parallel::processors;
use conformant_judge::prove::Priority;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Which other scenarios may run at the same time. The order of the variants is the order of execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concurrency {
    /// None that touches the same services: the scenario claims a resource that the target has once.
    Exclusive,
    /// Others whose waits move the target's clock. They share a clock barrier.
    SharedClock,
    /// All scenarios that need neither the clock nor a list for themselves.
    #[default]
    Shared,
}

/// The target resources that a scenario claims while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceClaim {
    /// Services that it calls or changes.
    pub touches: BTreeSet<String>,
    /// Which other scenarios may touch the same services at the same time.
    pub concurrency: Concurrency,
    /// Whether it moves the target's clock, which all services share.
    pub moves_the_clock: bool,
    /// Whether it needs a phone number of the pool, which may be small.
    pub needs_phone_number: bool,
    /// Estimated length of its steps and waits.
    pub length: Duration,
    /// Estimated real duration. The longest scenarios start first.
    pub duration: Duration,
}

impl ResourceClaim {
    /// The order of execution. Exclusive scenarios run first, while the lists that they walk are short, and among them
    /// those that do not move the clock. Then the longest run first, or the shortest where waits take no real time.
    pub(super) fn priority(&self) -> Priority {
        let (concurrency, moves) = (self.concurrency as u8, u8::from(self.moves_the_clock));
        (2 * concurrency + moves, Reverse(self.duration), self.length)
    }

    /// Whether both may run at the same time. The clock does not move elsewhere during an exclusive scenario, because
    /// that would force a retry.
    fn is_compatible_with(&self, other: &Self) -> bool {
        use Concurrency::{Exclusive, Shared, SharedClock};
        match (self.concurrency, other.concurrency) {
            (SharedClock, SharedClock) | (Shared, Shared) => true,
            (Exclusive, _) if other.moves_the_clock => false,
            (_, Exclusive) if self.moves_the_clock => false,
            _ => self.touches.is_disjoint(&other.touches),
        }
    }
}

/// The default number of jobs. Waiting for a remote target needs no processor; an in-process run needs one per job.
pub fn jobs_default(is_in_process: bool) -> usize {
    const MOST: usize = 8;
    if is_in_process {
        MOST.min(processors() + 1)
    } else {
        MOST
    }
}

/// Counts how many scenarios can use a phone number at the same time.
pub(super) type PhoneNumberLimit<'a> = Box<dyn Fn() -> usize + Send + Sync + 'a>;

/// The scenarios of a run, by their index in the plan.
pub(super) struct Scheduler<'a> {
    claims: Vec<ResourceClaim>,
    /// How many scenarios can use a phone number at the same time.
    phone_numbers: PhoneNumberLimit<'a>,
    state: Mutex<State>,
    finished: Condvar,
}

#[derive(Debug)]
struct State {
    /// By priority.
    waiting: Vec<usize>,
    running: BTreeSet<usize>,
}

/// The claim of a running scenario, released on drop.
pub(super) struct RunningScenario<'a> {
    scheduler: &'a Scheduler<'a>,
    /// Index of the scenario.
    pub(super) index: usize,
}

impl<'a> Scheduler<'a> {
    /// Orders the scenarios by priority. Where they were shuffled, only exclusive scenarios are moved to the front.
    pub(super) fn new(
        claims: Vec<ResourceClaim>,
        are_shuffled: bool,
        phone_numbers: PhoneNumberLimit<'a>,
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
            phone_numbers,
            state: Mutex::new(State { waiting, running }),
            finished: Condvar::new(),
        }
    }

    /// Waits for the next scenario that can start; `None` when all have started.
    pub(super) fn start_next(&self) -> Option<RunningScenario<'_>> {
        self.start_first(|_| true)
    }

    /// Waits until this scenario can start; `None` if it has started before.
    pub(super) fn start(&self, index: usize) -> Option<RunningScenario<'_>> {
        self.start_first(|other| other == index)
    }

    /// Waits for the first matching scenario that can start; `None` when all of them have started.
    fn start_first(&self, is_candidate: impl Fn(usize) -> bool) -> Option<RunningScenario<'_>> {
        let mut state = self.state();
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
                return Some(RunningScenario {
                    scheduler: self,
                    index,
                });
            }
            state = self
                .finished
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The first scenario that can start and does not delay an incompatible one with a higher priority, which would
    /// otherwise starve.
    fn first_startable(
        &self,
        waiting: &[(usize, usize)],
        running: &BTreeSet<usize>,
    ) -> Option<(usize, usize)> {
        let mut before: Vec<&ResourceClaim> = Vec::new();
        for &(at, index) in waiting {
            let claim = &self.claims[index];
            if self.can_start(index, running)
                && before.iter().all(|other| claim.is_compatible_with(other))
            {
                return Some((at, index));
            }
            if claim.concurrency != Concurrency::Shared && !before.contains(&claim) {
                before.push(claim);
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
            && (!claim.needs_phone_number || with_phone_number() < (self.phone_numbers)())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningScenario<'_> {
    fn drop(&mut self) {
        self.scheduler.state().running.remove(&self.index);
        self.scheduler.finished.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(touches: &[&str], concurrency: Concurrency, length: u64) -> ResourceClaim {
        ResourceClaim {
            touches: touches.iter().map(|&t| t.to_owned()).collect(),
            concurrency,
            moves_the_clock: concurrency == Concurrency::SharedClock,
            duration: Duration::from_secs(length),
            ..ResourceClaim::default()
        }
    }

    #[test]
    fn exclusive_scenarios_start_first_and_other_services_continue() {
        let scheduler = Scheduler::new(
            vec![
                claim(&["flow"], Concurrency::Shared, 0),
                ResourceClaim {
                    length: Duration::from_millis(1),
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
        assert_eq!(chat.index, 1, "its steps are longer");
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
