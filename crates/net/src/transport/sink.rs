//! Received callbacks and their planned responses, without a socket.
//!
//! A [`Listener`](super::Listener) or an in-process sandbox delivers requests; both get the same responses
//! and leave the same record. Bodies are kept as bytes.

use conformant_base::clock::{self, Timestamp};
use conformant_base::http::{Request, percent_decode, percent_encode};
use conformant_base::parallel::{lock, recovered};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Callbacks kept in one run.
const CALLBACKS: usize = 10_000;
/// How long a caller waits for a response: 5 s in the documents (D2, Limits), less what the network takes.
const RESPONSE_MAX: Duration = Duration::from_millis(4_800);
/// Bytes of callbacks kept in one run.
const CALLBACK_BYTES: usize = 64 * 1024 * 1024;

/// A request from the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callback {
    /// Name of its place, as given to [`Sink::open`].
    pub name: String,
    /// The request. Its target is `/` with the query; the path contains a secret and is left out.
    pub request: Request,
    /// Position among all callbacks of the run, counted from 0.
    pub order: usize,
    /// Arrival on the run's clock.
    pub at: Timestamp,
    pub answered: Reply,
    /// True if it came after [`Sink::close`].
    pub late: bool,
}

/// The response to one callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// Delay of the response.
    pub after: Duration,
}

impl Default for Reply {
    /// 200 at once.
    fn default() -> Self {
        Self::status(200)
    }
}

impl Reply {
    /// Responds with a status at once.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            after: Duration::ZERO,
        }
    }
}

/// Places for callbacks, and all received callbacks.
#[derive(Debug)]
pub struct Sink {
    base: String,
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    places: BTreeMap<String, Place>,
    callbacks: Vec<Arc<Callback>>,
    bytes: usize,
    dropped: usize,
}

#[derive(Debug, Default)]
struct Place {
    plan: Vec<Reply>,
    /// Callbacks since the plan was set, also those beyond it.
    answered: usize,
    /// Callbacks received, kept or not.
    received: usize,
    kept: Vec<Arc<Callback>>,
    closed: bool,
    /// The duration of the last response that was late although its plan was not.
    overdue: Option<Duration>,
}

impl Sink {
    /// A sink whose addresses start with `base`, a URL without a trailing slash.
    pub fn new(base: impl Into<String>) -> Self {
        Self {
            base: base.into(),
            state: Mutex::default(),
            arrived: Condvar::new(),
        }
    }

    /// Opens a place and returns its address. Callbacks get the planned replies in turn; the last one repeats,
    /// and without a plan it is 200. Opening it again replaces the plan.
    pub fn open(&self, name: &str, plan: Vec<Reply>) -> String {
        let mut state = lock(&self.state);
        let place = state.places.entry(name.to_owned()).or_default();
        place.plan = plan;
        place.answered = 0;
        place.closed = false;
        self.address(name)
    }

    /// Closes a place; later callbacks get a response and are recorded as late.
    pub fn close(&self, name: &str) {
        if let Some(place) = lock(&self.state).places.get_mut(name) {
            place.closed = true;
        }
    }

    /// The address of a place, open or not.
    pub fn address(&self, name: &str) -> String {
        format!("{}/{}", self.base, percent_encode(name))
    }

    /// The place of an address of this sink; a query is ignored.
    pub fn name_at(&self, address: &str) -> Option<String> {
        let path = address.split(['?', '#']).next().unwrap_or_default();
        Self::name_of_segment(path.strip_prefix(&self.base)?.strip_prefix('/')?)
    }

    /// The name of a place from its path segment, which is percent-encoded.
    pub(super) fn name_of_segment(segment: &str) -> Option<String> {
        (!segment.is_empty() && !segment.contains('/')).then(|| percent_decode(segment))
    }

    /// Receives a callback and returns the response.
    ///
    /// - An unknown place gets 404 and is not recorded.
    /// - HEAD and OPTIONS get a response and are not callbacks.
    /// - Beyond the limits a callback is counted but not kept.
    pub fn receive(&self, name: &str, request: Request, at: Timestamp) -> Reply {
        let mut state = lock(&self.state);
        let State {
            places,
            callbacks,
            bytes,
            dropped,
        } = &mut *state;
        let Some(place) = places.get_mut(name) else {
            return Reply::status(404);
        };
        if matches!(request.method.as_str(), "HEAD" | "OPTIONS") {
            return Reply::default();
        }
        let planned = place.plan.get(place.answered).or(place.plan.last());
        let answered = planned.copied().unwrap_or_default();
        place.answered += 1;
        place.received += 1;
        let weight = weight(&request);
        if callbacks.len() < CALLBACKS && *bytes + weight <= CALLBACK_BYTES {
            *bytes += weight;
            let callback = Arc::new(Callback {
                name: name.to_owned(),
                request,
                order: callbacks.len(),
                at,
                answered,
                late: place.closed,
            });
            place.kept.push(Arc::clone(&callback));
            callbacks.push(callback);
        } else {
            *dropped += 1;
        }
        self.arrived.notify_all();
        answered
    }

    /// Records how long after its arrival the response to a callback left, where `planned` was its delay.
    pub fn note_response_time(&self, name: &str, planned: Duration, took: Duration) {
        let mut state = lock(&self.state);
        if let Some(place) = state.places.get_mut(name)
            && planned < RESPONSE_MAX
            && took >= RESPONSE_MAX
        {
            place.overdue = Some(took);
        }
    }

    /// The duration of the last response of this place that was late although its plan was not: this process was too
    /// slow.
    pub fn overdue(&self, name: &str) -> Option<Duration> {
        lock(&self.state).places.get(name)?.overdue
    }

    /// Waits in real time for `count` callbacks to a place; returns how many there are.
    pub fn wait(&self, name: &str, count: usize, within: Duration) -> usize {
        let deadline = clock::monotonic() + within;
        let mut state = lock(&self.state);
        loop {
            let received = state.places.get(name).map_or(0, |place| place.received);
            let left = deadline.saturating_duration_since(clock::monotonic());
            if received >= count || left.is_zero() {
                return received;
            }
            state = recovered(self.arrived.wait_timeout(state, left)).0;
        }
    }

    /// All callbacks in order of arrival.
    pub fn snapshot(&self) -> Vec<Arc<Callback>> {
        lock(&self.state).callbacks.clone()
    }

    /// The callbacks to one place in order of arrival.
    pub fn callbacks(&self, name: &str) -> Vec<Arc<Callback>> {
        let state = lock(&self.state);
        state
            .places
            .get(name)
            .map_or_else(Vec::new, |place| place.kept.clone())
    }

    /// Callbacks that got a response but were not kept because of the limits.
    pub fn dropped(&self) -> usize {
        lock(&self.state).dropped
    }
}

/// Approximate memory of a request.
fn weight(request: &Request) -> usize {
    let fields = request.headers.iter().map(|(n, v)| n.len() + v.len() + 48);
    request.body.len() + request.target.len() + fields.sum::<usize>() + 256
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callback(body: &str) -> Request {
        Request {
            body: body.as_bytes().to_vec(),
            ..Request::new("POST", "/")
        }
    }

    #[test]
    fn only_a_response_that_is_late_against_its_plan_is_overdue() {
        let sink = Sink::new("http://callbacks.test");
        sink.open("a", vec![]);
        let seconds = Duration::from_secs;
        sink.note_response_time("a", Duration::ZERO, seconds(1));
        sink.note_response_time("a", seconds(7), seconds(7));
        assert_eq!(sink.overdue("a"), None);
        sink.note_response_time("a", Duration::ZERO, seconds(6));
        assert_eq!(sink.overdue("a"), Some(seconds(6)));
        assert_eq!(sink.overdue("b"), None);
    }

    #[test]
    fn head_and_options_are_not_callbacks() {
        let sink = Sink::new("http://callbacks.test");
        sink.open("a", vec![Reply::status(503)]);
        for method in ["HEAD", "OPTIONS"] {
            let asked = sink.receive("a", Request::new(method, "/"), clock::now());
            assert_eq!(asked.status, 200, "{method}");
        }
        assert_eq!(sink.receive("a", callback("x"), clock::now()).status, 503);
        assert_eq!(sink.snapshot().len(), 1);
    }

    #[test]
    fn callbacks_are_answered_by_the_plan_and_kept_in_order() {
        let sink = Sink::new("http://callbacks.test");
        let busy = Reply {
            status: 503,
            after: Duration::from_secs(6),
        };
        sink.open("a", vec![busy, Reply::status(429), Reply::status(200)]);
        sink.open("b", vec![]);
        let statuses: Vec<u16> = ["a", "b", "a", "a", "a", "never"]
            .iter()
            .map(|name| sink.receive(name, callback(name), clock::now()).status)
            .collect();
        assert_eq!(statuses, [503, 200, 429, 200, 200, 404]);
        let kept: Vec<_> = sink
            .snapshot()
            .iter()
            .map(|c| (c.order, c.name.clone()))
            .collect();
        let expect = [(0, "a"), (1, "b"), (2, "a"), (3, "a"), (4, "a")];
        assert_eq!(kept, expect.map(|(order, name)| (order, name.to_owned())));
        assert_eq!(sink.callbacks("b").len(), 1);
        assert_eq!(sink.callbacks("a")[0].answered, busy);
        sink.open("a", vec![Reply::status(500)]);
        assert_eq!(
            sink.receive("a", callback("again"), clock::now()).status,
            500
        );
        assert_eq!(sink.callbacks("a").len(), 5, "what came before is kept");
    }

    #[test]
    fn late_ones_are_marked() {
        let sink = Sink::new("http://callbacks.test");
        sink.open("a", vec![]);
        sink.receive("a", callback("1"), clock::now());
        sink.close("a");
        assert_eq!(sink.receive("a", callback("2"), clock::now()).status, 200);
        let late: Vec<bool> = sink.snapshot().iter().map(|c| c.late).collect();
        assert_eq!(late, [false, true]);
    }

    #[test]
    fn addresses_lead_back_to_their_places() {
        let sink = Sink::new("http://callbacks.test/t");
        for name in ["a", "chat/channel webhooks/ü", "?", "%"] {
            let address = sink.open(name, vec![]);
            assert_eq!(sink.name_at(&address).as_deref(), Some(name), "{address}");
            assert_eq!(
                sink.name_at(&format!("{address}?q=1")).as_deref(),
                Some(name)
            );
        }
        for foreign in [
            "http://callbacks.test/t",
            "http://callbacks.test/t/",
            "http://other/t/a",
            "http://callbacks.test/t/a/b",
            "http://callbacks.test/tt/a",
        ] {
            assert_eq!(sink.name_at(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn too_many_are_counted_but_not_kept() {
        let sink = Sink::new("http://callbacks.test");
        sink.open("a", vec![]);
        for _ in 0..CALLBACKS + 5 {
            assert_eq!(sink.receive("a", callback(""), clock::now()).status, 200);
        }
        assert_eq!((sink.snapshot().len(), sink.dropped()), (CALLBACKS, 5));

        let sink = Sink::new("http://callbacks.test");
        sink.open("a", vec![]);
        let large = callback(&"x".repeat(1 << 20));
        for _ in 0..64 {
            sink.receive("a", large.clone(), clock::now());
        }
        assert_eq!((sink.snapshot().len(), sink.dropped()), (63, 1));
    }

    #[test]
    fn waiting_ends_with_the_callback_or_the_deadline() {
        let sink = Sink::new("http://callbacks.test");
        sink.open("a", vec![]);
        assert_eq!(sink.wait("a", 1, Duration::from_millis(20)), 0);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| sink.wait("a", 2, Duration::from_secs(5)));
            sink.receive("a", callback("1"), clock::now());
            sink.receive("a", callback("2"), clock::now());
            assert_eq!(waiter.join().expect("no panic"), 2);
        });
    }
}
