//! Delivers callbacks independently of request handling.
//!
//! Each receiver gets its callbacks in order; receivers are served in parallel, so that a timeout of one
//! delays no other. The sandbox decides about retries.

use super::world::{Errand, World};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Pending callbacks by receiver.
#[derive(Clone, Default)]
pub(super) struct Courier(Arc<Shared>);

/// One queue per receiver; each has a thread that serves it.
type Lanes = BTreeMap<String, VecDeque<(Arc<World>, Errand)>>;

#[derive(Default)]
struct Shared {
    lanes: Mutex<Lanes>,
    closed: AtomicBool,
}

impl Courier {
    /// Threads; further receivers share one more.
    const LANES_MAX: usize = 64;

    /// Queues callbacks of a sandbox and returns at once.
    pub(super) fn take(&self, world: &Arc<World>, errands: Vec<Errand>) {
        for errand in errands {
            self.enqueue(Arc::clone(world), errand);
        }
    }

    /// Stops deliveries; attempts in progress finish.
    pub(super) fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
        self.lanes().clear();
    }

    fn enqueue(&self, world: Arc<World>, errand: Errand) {
        let mut lanes = self.lanes();
        if self.0.closed.load(Ordering::SeqCst) {
            return;
        }
        let url = errand.callback.url.clone();
        let crowded = lanes.len() >= Self::LANES_MAX && !lanes.contains_key(&url);
        let name = if crowded { String::new() } else { url };
        if let Some(lane) = lanes.get_mut(&name) {
            lane.push_back((world, errand));
            return;
        }
        lanes.insert(name.clone(), VecDeque::from([(world, errand)]));
        let courier = self.clone();
        std::thread::spawn(move || courier.serve(&name));
    }

    /// Serves one queue until it is empty.
    fn serve(&self, name: &str) {
        while let Some((world, errand)) = self.next(name) {
            let due = world.run(&errand);
            self.take(&world, due);
        }
    }

    fn next(&self, name: &str) -> Option<(Arc<World>, Errand)> {
        let mut lanes = self.lanes();
        let next = lanes.get_mut(name).and_then(VecDeque::pop_front);
        if next.is_none() {
            lanes.remove(name);
        }
        next
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.0.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
