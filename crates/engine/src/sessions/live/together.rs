//! Time that stories let pass together. Each that waits on the target's clock waits until all who share it do; then the
//! clock is moved to where the first of them wants it, as if nothing happened between. So none of them sees more time
//! pass than it asked for, however many there are, and the clock stands still while any of them acts.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What those who share the target's clock know of one another.
#[derive(Debug, Default)]
pub(super) struct Together {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Those who share the clock and do not wait for it.
    acting: usize,
    /// By how much it was moved since the run began.
    passed: Duration,
    /// Where those who wait want it.
    until: Vec<Duration>,
    /// Whether somebody is about to move it.
    is_moved: bool,
    /// How often it could not be moved.
    failed: usize,
}

impl State {
    /// Goes on to that instant, with all who waited for it.
    fn go_on(&mut self, to: Duration) {
        let waiting = self.until.len();
        self.passed = to;
        self.until.retain(|&until| until > to);
        self.acting += waiting - self.until.len();
    }

    /// It cannot be moved: all who waited for it let real time pass, side by side.
    fn give_up(&mut self) {
        self.acting += self.until.len();
        self.until.clear();
        self.failed += 1;
    }

    /// One of those who wait does so no longer, although the time has not come.
    fn leave(&mut self, until: Duration) {
        if let Some(at) = self.until.iter().position(|&other| other == until) {
            self.until.swap_remove(at);
            self.acting += 1;
        }
    }
}

/// Somebody who shares the clock, until dropped.
#[derive(Debug)]
pub(super) struct Sharer<'a> {
    together: &'a Together,
}

impl Together {
    /// Nobody begins while the clock is moved.
    pub(super) fn join(&self) -> Sharer<'_> {
        let moved = self
            .changed
            .wait_while(self.state(), |state| state.is_moved);
        moved.unwrap_or_else(PoisonError::into_inner).acting += 1;
        Sharer { together: self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sharer<'_> {
    /// Waits until so much more has passed. `shift` moves the clock, and says whether it could; `follow` is told by how
    /// much others moved it; `look` is how often `is_over` is asked. Returns whether the time has passed.
    pub(super) fn wait(
        &self,
        duration: Duration,
        shift: impl Fn(Duration) -> bool,
        follow: impl Fn(Duration),
        (look, is_over): (Duration, impl Fn() -> bool),
    ) -> bool {
        let mut state = self.together.state();
        let mut seen = state.passed;
        let until = seen + duration;
        let failed = state.failed;
        state.until.push(until);
        state.acting -= 1;
        self.together.changed.notify_all();
        loop {
            follow(state.passed.saturating_sub(seen));
            seen = state.passed;
            // Who moved it for this one has counted it among those who act.
            if seen >= until {
                return true;
            }
            if state.failed > failed {
                return false;
            }
            if is_over() {
                state.leave(until);
                return false;
            }
            let is_first = state.until.iter().all(|&other| until <= other);
            if state.acting > 0 || state.is_moved || !is_first {
                let waited = self.together.changed.wait_timeout(state, look);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            state.is_moved = true;
            drop(state);
            let could = shift(until.saturating_sub(seen));
            state = self.together.state();
            state.is_moved = false;
            if could {
                state.go_on(until);
                seen = until;
            } else {
                state.give_up();
            }
            self.together.changed.notify_all();
        }
    }
}

impl Drop for Sharer<'_> {
    fn drop(&mut self) {
        self.together.state().acting -= 1;
        self.together.changed.notify_all();
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

    /// Two who wait so long at once, one of them twice; how the clock was moved.
    #[test]
    fn it_is_moved_to_each_instant_that_somebody_waits_for() {
        let together = Together::default();
        let moves = Mutex::new(Vec::new());
        let both = Barrier::new(2);
        let tell = |waits: &[u64]| {
            let sharer = together.join();
            both.wait();
            let passed = Mutex::new(Duration::ZERO);
            for &wait in waits {
                let shift = |by| {
                    moves.lock().unwrap().push(by);
                    *passed.lock().unwrap() += by;
                    true
                };
                let follow = |by| *passed.lock().unwrap() += by;
                assert!(sharer.wait(seconds(wait), shift, follow, (LOOK, || false)));
            }
            passed.into_inner().unwrap()
        };
        std::thread::scope(|scope| {
            let twice = scope.spawn(|| tell(&[2, 7]));
            assert_eq!(tell(&[11]), seconds(11));
            assert_eq!(twice.join().unwrap(), seconds(9));
        });
        assert_eq!(moves.into_inner().unwrap(), [2, 7, 2].map(seconds));
    }

    #[test]
    fn who_leaves_is_no_longer_waited_for() {
        let together = Together::default();
        let (one, other) = (together.join(), together.join());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| one.wait(seconds(3), |_| true, |_| {}, (LOOK, || false)));
            drop(other);
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn nobody_begins_while_it_is_moved() {
        let together = Together::default();
        let sharer = together.join();
        let begun = Mutex::new(0);
        std::thread::scope(|scope| {
            let shift = |_| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let late = together.join();
                        *begun.lock().unwrap() += 1;
                        assert!(late.wait(seconds(1), |_| true, |_| {}, (LOOK, || false)));
                    });
                }
                std::thread::yield_now();
                *begun.lock().unwrap() == 0 && together.state().acting == 0
            };
            assert!(sharer.wait(seconds(3), shift, |_| {}, (LOOK, || false)));
            drop(sharer);
        });
        let state = together.state();
        assert_eq!((state.acting, state.until.len()), (0, 0));
        assert!(state.passed > seconds(3));
    }

    #[test]
    fn a_clock_that_cannot_be_moved_holds_nobody() {
        let together = Together::default();
        let sharer = together.join();
        assert!(!sharer.wait(seconds(3), |_| false, |_| {}, (LOOK, || false)));
        let tries = Mutex::new(0);
        let both = Barrier::new(2);
        let tell = || {
            let sharer = together.join();
            both.wait();
            let shift = |_| {
                *tries.lock().unwrap() += 1;
                false
            };
            assert!(!sharer.wait(seconds(3), shift, |_| {}, (LOOK, || false)));
            both.wait();
        };
        std::thread::scope(|scope| {
            let other = together.join();
            scope.spawn(tell);
            scope.spawn(tell);
            // These two wait until this one does, too.
            drop((other, sharer));
        });
        assert_eq!(
            *tries.lock().unwrap(),
            1,
            "neither waits for the other's real time"
        );
        let sharer = together.join();
        let _acts = together.join();
        assert!(!sharer.wait(seconds(3), |_| true, |_| {}, (LOOK, || true)));
        assert_eq!(together.state().acting, 2);
    }
}
