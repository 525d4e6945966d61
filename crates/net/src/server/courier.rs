//! Delivers callbacks beside the answering of requests.
//!
//! One receiver gets its callbacks in order, different receivers side by side, so that one that
//! times out delays nobody else. Knows nothing of retries: the world says what is due next.

use super::world::{Errand, World};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What waits at the receivers that are being served.
#[derive(Clone, Default)]
pub(super) struct Courier(Arc<Shared>);

/// What waits, by receiver; a lane that is there has a thread that serves it.
type Lanes = BTreeMap<String, VecDeque<(Arc<World>, Errand)>>;

#[derive(Default)]
struct Shared {
    lanes: Mutex<Lanes>,
    closed: AtomicBool,
}

impl Courier {
    /// Threads at once; the receivers beyond share one more.
    const LANES_MAX: usize = 64;

    /// Takes errands of a world and returns at once.
    pub(super) fn take(&self, world: &Arc<World>, errands: Vec<Errand>) {
        for errand in errands {
            self.enqueue(Arc::clone(world), errand);
        }
    }

    /// Delivers nothing more; an attempt under way ends by itself.
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

    /// Serves one lane until nothing waits there.
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
