//! Runs the same function for many items on several threads, and locks what threads share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Number of processors; 1 if unknown.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Locks a mutex, also after another holder panicked: the panic is reported where it happened.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    recovered(mutex.lock())
}

/// The guard or value of a lock, also after a holder panicked.
pub fn recovered<T>(locked: LockResult<T>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}

/// Maps `items` on up to `jobs` threads, at least one; results keep the order of the items.
pub fn parallel_map<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let lane = || {
        let mut done = Vec::new();
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(turn) else {
                return done;
            };
            done.push((turn, work(item)));
        }
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        // This thread is one of the workers.
        let others = 1..jobs.min(items.len());
        let others: Vec<_> = others.map(|_| scope.spawn(lane)).collect();
        let mut done = lane();
        for other in others {
            let other = other.join();
            done.append(&mut other.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_by_key(|(turn, _)| *turn);
    done.into_iter().map(|(_, result)| result).collect()
}
