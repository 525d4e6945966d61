//! Clock barrier: scenarios share the advances of the target's clock.
//!
//! When all participants wait, the clock is moved to the earliest instant that one of them waits for. So each
//! participant sees exactly the time that it waited for, and the clock stands still while any of them acts.

use conformant_base::parallel::{lock, recovered};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Shared state of the clock barrier.
#[derive(Debug, Default)]
pub(super) struct ClockBarrier {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Participants that are not waiting.
    acting: usize,
    /// Total advance since the run began.
    passed: Duration,
    /// The instants that participants wait for.
    until: Vec<Duration>,
    /// Whether a participant is moving the clock.
    is_moving: bool,
    /// Number of failed advances.
    failed: usize,
}

impl State {
    /// Moves on to that instant and releases the participants that waited for it.
    fn advance_to(&mut self, to: Duration) {
        let waiting = self.until.len();
        self.passed = to;
        self.until.retain(|&until| until > to);
        self.acting += waiting - self.until.len();
    }

    /// Releases all waiting participants, which then wait in real time.
    fn release_all(&mut self) {
        self.acting += self.until.len();
        self.until.clear();
        self.failed += 1;
    }

    /// Removes a participant that stops waiting early.
    fn remove(&mut self, until: Duration) {
        if let Some(at) = self.until.iter().position(|&other| other == until) {
            self.until.swap_remove(at);
            self.acting += 1;
        }
    }
}

/// A participant of the barrier, until dropped.
#[derive(Debug)]
pub(super) struct Participant<'a> {
    barrier: &'a ClockBarrier,
}

impl ClockBarrier {
    /// Waits while the clock is being moved.
    pub(super) fn join(&self) -> Participant<'_> {
        let moved = self
            .changed
            .wait_while(lock(&self.state), |state| state.is_moving);
        recovered(moved).acting += 1;
        Participant { barrier: self }
    }
}

impl Participant<'_> {
    /// Waits until the duration has passed; returns whether it has.
    ///
    /// - `shift` moves the clock and returns whether it could.
    /// - `follow` receives the advances by others.
    /// - `look` is the interval of `is_over`.
    pub(super) fn wait(
        &self,
        duration: Duration,
        shift: impl Fn(Duration) -> bool,
        follow: impl Fn(Duration),
        (look, is_over): (Duration, impl Fn() -> bool),
    ) -> bool {
        let mut state = lock(&self.barrier.state);
        let mut seen = state.passed;
        let until = seen + duration;
        let failed = state.failed;
        state.until.push(until);
        state.acting -= 1;
        self.barrier.changed.notify_all();
        loop {
            follow(state.passed.saturating_sub(seen));
            seen = state.passed;
            // The participant that moved the clock counts this one as active.
            if seen >= until {
                return true;
            }
            if state.failed > failed {
                return false;
            }
            if is_over() {
                state.remove(until);
                return false;
            }
            let is_first = state.until.iter().all(|&other| until <= other);
            if state.acting > 0 || state.is_moving || !is_first {
                let waited = self.barrier.changed.wait_timeout(state, look);
                state = recovered(waited).0;
                continue;
            }
            state.is_moving = true;
            drop(state);
            let could = shift(until.saturating_sub(seen));
            state = lock(&self.barrier.state);
            state.is_moving = false;
            if could {
                state.advance_to(until);
                seen = until;
            } else {
                state.release_all();
            }
            self.barrier.changed.notify_all();
        }
    }
}

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        lock(&self.barrier.state).acting -= 1;
        self.barrier.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    const LOOK: Duration = Duration::from_millis(5);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Waits of two participants at the same time, one with a second wait; returns the advances.
    #[test]
    fn the_clock_moves_to_each_awaited_instant() {
        let barrier = ClockBarrier::default();
        let moves = Mutex::new(Vec::new());
        let both = Barrier::new(2);
        let run = |waits: &[u64]| {
            let participant = barrier.join();
            both.wait();
            let passed = Mutex::new(Duration::ZERO);
            for &wait in waits {
                let shift = |by| {
                    moves.lock().unwrap().push(by);
                    *passed.lock().unwrap() += by;
                    true
                };
                let follow = |by| *passed.lock().unwrap() += by;
                assert!(participant.wait(seconds(wait), shift, follow, (LOOK, || false)));
            }
            passed.into_inner().unwrap()
        };
        std::thread::scope(|scope| {
            let twice = scope.spawn(|| run(&[2, 7]));
            assert_eq!(run(&[11]), seconds(11));
            assert_eq!(twice.join().unwrap(), seconds(9));
        });
        assert_eq!(moves.into_inner().unwrap(), [2, 7, 2].map(seconds));
    }

    #[test]
    fn a_dropped_participant_is_not_waited_for() {
        let barrier = ClockBarrier::default();
        let (one, other) = (barrier.join(), barrier.join());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| one.wait(seconds(3), |_| true, |_| {}, (LOOK, || false)));
            drop(other);
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn joining_waits_for_an_advance() {
        let barrier = ClockBarrier::default();
        let participant = barrier.join();
        let begun = Mutex::new(0);
        std::thread::scope(|scope| {
            let shift = |_| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let late = barrier.join();
                        *begun.lock().unwrap() += 1;
                        assert!(late.wait(seconds(1), |_| true, |_| {}, (LOOK, || false)));
                    });
                }
                std::thread::yield_now();
                *begun.lock().unwrap() == 0 && lock(&barrier.state).acting == 0
            };
            assert!(participant.wait(seconds(3), shift, |_| {}, (LOOK, || false)));
            drop(participant);
        });
        let state = lock(&barrier.state);
        assert_eq!((state.acting, state.until.len()), (0, 0));
        assert!(state.passed > seconds(3));
    }

    #[test]
    fn a_failed_advance_releases_all_participants() {
        let barrier = ClockBarrier::default();
        let participant = barrier.join();
        assert!(!participant.wait(seconds(3), |_| false, |_| {}, (LOOK, || false)));
        let tries = Mutex::new(0);
        let both = Barrier::new(2);
        let run = || {
            let participant = barrier.join();
            both.wait();
            let shift = |_| {
                *tries.lock().unwrap() += 1;
                false
            };
            assert!(!participant.wait(seconds(3), shift, |_| {}, (LOOK, || false)));
            both.wait();
        };
        std::thread::scope(|scope| {
            let other = barrier.join();
            scope.spawn(run);
            scope.spawn(run);
            // The two wait until this one waits, too.
            drop((other, participant));
        });
        assert_eq!(
            *tries.lock().unwrap(),
            1,
            "neither waits for the other's real time"
        );
        let participant = barrier.join();
        let _acts = barrier.join();
        assert!(!participant.wait(seconds(3), |_| true, |_| {}, (LOOK, || true)));
        assert_eq!(lock(&barrier.state).acting, 2);
    }
}
