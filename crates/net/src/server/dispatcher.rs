//! Delivers callbacks independently of request handling.
//!
//! Each receiver gets its callbacks in order; receivers are served in parallel, so that a timeout of one
//! delays no other. The sandbox decides about retries.

use super::world::{PendingCallback, World};
use conformant_base::parallel::lock;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Pending callbacks by receiver.
#[derive(Clone, Default)]
pub(super) struct Dispatcher(Arc<Shared>);

/// One queue per receiver; each has a thread that serves it.
type Queues = BTreeMap<String, VecDeque<(Arc<World>, PendingCallback)>>;

#[derive(Default)]
struct Shared {
    lanes: Mutex<Queues>,
    closed: AtomicBool,
}

impl Dispatcher {
    /// Threads; further receivers share one more.
    const LANES_MAX: usize = 64;

    /// Queues callbacks of a sandbox and returns at once.
    pub(super) fn take(&self, world: &Arc<World>, callbacks: Vec<PendingCallback>) {
        for callback in callbacks {
            self.enqueue(Arc::clone(world), callback);
        }
    }

    /// Stops deliveries; attempts in progress finish.
    pub(super) fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
        lock(&self.0.lanes).clear();
    }

    fn enqueue(&self, world: Arc<World>, callback: PendingCallback) {
        let mut lanes = lock(&self.0.lanes);
        if self.0.closed.load(Ordering::SeqCst) {
            return;
        }
        let url = callback.callback.url.clone();
        let crowded = lanes.len() >= Self::LANES_MAX && !lanes.contains_key(&url);
        let name = if crowded { String::new() } else { url };
        if let Some(lane) = lanes.get_mut(&name) {
            lane.push_back((world, callback));
            return;
        }
        lanes.insert(name.clone(), VecDeque::from([(world, callback)]));
        let dispatcher = self.clone();
        std::thread::spawn(move || dispatcher.serve(&name));
    }

    /// Serves one queue until it is empty.
    fn serve(&self, name: &str) {
        while let Some((world, callback)) = self.next(name) {
            let due = world.run(&callback);
            self.take(&world, due);
        }
    }

    fn next(&self, name: &str) -> Option<(Arc<World>, PendingCallback)> {
        let mut lanes = lock(&self.0.lanes);
        let next = lanes.get_mut(name).and_then(VecDeque::pop_front);
        if next.is_none() {
            lanes.remove(name);
        }
        next
    }
}
