//! A sandbox: one reference, its clock, and its callbacks.
//!
//! Opens no socket; a [`Deliver`] object sends callbacks. Handles the hooks `advance_clock` and `reset`,
//! because the reference has neither a clock nor an initial state.

use super::develop::{Answered, InitialState, Wire};
use super::page::PageSettings;
use super::refusal;
use super::script::{self, Action, Script};
use super::seeds::{Seed, SeedError, Step};
use conformant_base::clock::{self, Timestamp, VirtualClock};
use conformant_base::http::{Request, Response};
use conformant_base::parallel::lock;
use conformant_reference::{Callback, Delivery, Reference, Settings, StaleReads, Switch};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Part of `GET /_control` by which a run recognizes the reference.
pub const REFERENCE: (&str, &str) = ("implementation", "the reference of conformant");

/// Delivers one callback; called without any lock held.
pub trait Deliver: Send + Sync {
    /// Makes one attempt.
    fn deliver(&self, callback: &Callback) -> Outcome;
}

impl<F: Fn(&Callback) -> Outcome + Send + Sync> Deliver for F {
    fn deliver(&self, callback: &Callback) -> Outcome {
        self(callback)
    }
}

/// Result of one attempt, before it is compared with the callback's timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A response after some time.
    Answered { status: u16, after: Duration },
    /// No response within the callback's timeout.
    Silent,
    /// No connection, or no HTTP.
    Unreachable,
}

/// The time in a sandbox.
#[derive(Debug)]
pub enum WorldClock {
    /// Moves only when advanced; waiting costs nothing.
    Virtual(VirtualClock),
    /// Real time plus an offset.
    Real {
        /// The offset in milliseconds.
        ahead_ms: AtomicI64,
    },
}

impl WorldClock {
    /// A virtual clock at its default start.
    pub fn stands_still() -> Self {
        Self::Virtual(VirtualClock::default())
    }

    pub fn passes() -> Self {
        Self::Real {
            ahead_ms: AtomicI64::new(0),
        }
    }

    pub fn now(&self) -> Timestamp {
        match self {
            Self::Virtual(clock) => clock.now(),
            Self::Real { ahead_ms } => {
                let ahead_ms = ahead_ms.load(Ordering::SeqCst);
                clock::from_unix_ms(clock::now().as_millisecond().saturating_add(ahead_ms))
            }
        }
    }

    pub fn advance(&self, by: Duration) {
        match self {
            Self::Virtual(clock) => clock.advance(by),
            Self::Real { ahead_ms } => {
                let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX / 4);
                ahead_ms.fetch_add(by_ms, Ordering::SeqCst);
            }
        }
    }

    /// An independent clock that shows the same time.
    fn fork(&self) -> Self {
        match self {
            Self::Virtual(clock) => Self::Virtual(VirtualClock::at(clock.now())),
            Self::Real { ahead_ms } => Self::Real {
                ahead_ms: AtomicI64::new(ahead_ms.load(Ordering::SeqCst)),
            },
        }
    }

    fn is_virtual(&self) -> bool {
        match self {
            Self::Virtual(_) => true,
            Self::Real { .. } => false,
        }
    }
}

/// One reference with its clock; shared between threads, each request is handled atomically.
pub struct World {
    beginning: InitialState,
    clock: WorldClock,
    state: Mutex<State>,
    deliver: Arc<dyn Deliver>,
    /// Number of changing requests under way over sockets.
    pub(super) under_way: AtomicUsize,
    /// Held while a request is served, if they are served one after the other.
    pub(super) turn: Mutex<()>,
}

#[derive(Clone)]
pub(super) struct State {
    pub(super) reference: Reference,
    /// The reference before the last change, while a script may show it.
    before: Option<Box<Reference>>,
    pub(super) script: Script,
    /// With the current switches.
    pub(super) settings: Settings,
    /// Seed data.
    pub(super) begun_with: Vec<Step>,
    /// Changing requests since then, and the time of the last one.
    pub(super) since: Vec<Step>,
    pub(super) last_change: Timestamp,
    /// Raised by `reset`: outcomes of earlier callbacks must not reach the new reference.
    generation: u64,
    /// Owner of an exclusive lease and its end, in real time.
    lease: Option<(String, Instant)>,
}

/// A pending callback.
#[derive(Debug)]
pub(super) struct PendingCallback {
    pub(super) callback: Callback,
    generation: u64,
    attempts: u32,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

impl World {
    /// Limit of attempts, even if the reference is wrong.
    const ATTEMPTS_MAX: u32 = 32;

    /// A sandbox in the state of a fresh account.
    pub fn new(settings: Settings, clock: WorldClock, deliver: Arc<dyn Deliver>) -> Self {
        let now = clock.now();
        let state = State {
            reference: Reference::new(settings.clone(), now),
            before: None,
            script: Script::default(),
            settings,
            begun_with: Vec::new(),
            since: Vec::new(),
            last_change: now,
            generation: 0,
            lease: None,
        };
        Self {
            beginning: InitialState::default(),
            clock,
            state: Mutex::new(state),
            deliver,
            under_way: AtomicUsize::new(0),
            turn: Mutex::default(),
        }
    }

    /// Adds scripted responses and applies seed data.
    pub(super) fn with_initial_state(
        mut self,
        beginning: InitialState,
        seed: Option<&Seed>,
    ) -> Result<Self, SeedError> {
        let now = self.now();
        self.beginning = beginning;
        let mut state = self.state();
        state.script = self.beginning.script.clone();
        if let Some(seed) = seed {
            state.settings.seed = seed.number.unwrap_or(state.settings.seed);
            let settings = state.settings.clone();
            state.reference = super::develop::replay(settings, &seed.steps, now)?;
            state.begun_with.clone_from(&seed.steps);
        }
        drop(state);
        Ok(self)
    }

    /// Present if there is a page.
    pub(super) fn people(&self) -> Option<&PageSettings> {
        self.beginning.people.as_ref()
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Switches that the reference queried since the last call.
    pub fn newly_asked(&self) -> Vec<Switch> {
        self.state().reference.newly_asked()
    }

    /// An independent copy with only this switch on.
    #[must_use]
    pub fn fork(&self, switch: Option<Switch>, deliver: Arc<dyn Deliver>) -> Self {
        let mut state = self.state().clone();
        state.settings = state.settings.with(switch);
        let Settings {
            faults, variants, ..
        } = state.settings.clone();
        state.reference.switch(faults, variants);
        Self {
            beginning: self.beginning.clone(),
            clock: self.clock.fork(),
            state: Mutex::new(state),
            deliver,
            under_way: AtomicUsize::new(0),
            turn: Mutex::default(),
        }
    }

    /// Advances the time at once.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Handles a request and delivers all its callbacks, retries included, before it returns. A virtual
    /// clock advances by the time that receivers take.
    pub fn handle(&self, request: &Request) -> Response {
        self.settle(self.answer(request)).response
    }

    /// Delivers the callbacks of a response before it is sent.
    pub(super) fn settle(&self, mut answered: Answered) -> Answered {
        let mut waiting = VecDeque::from(std::mem::take(&mut answered.callbacks));
        while let Some(callback) = waiting.pop_front() {
            waiting.extend(self.run(&callback));
        }
        answered
    }

    /// Handles a request; the caller must [`run`](Self::run) the due callbacks.
    pub(super) fn answer(&self, request: &Request) -> Answered {
        self.answer_with_stale_reads(request, None)
    }

    /// The same for a request of a race, with what it read before the others wrote.
    pub(super) fn answer_with_stale_reads(
        &self,
        request: &Request,
        stale: Option<StaleReads>,
    ) -> Answered {
        if let Some(response) = self.develop(request) {
            return response.into();
        }
        if let Some(answered) = self.show(request) {
            return answered;
        }
        let response = match request.path() {
            "/_control/call_back" => return self.call_back(request),
            "/_control/advance_clock" => self.advance_by_hook(request),
            "/_control/reset" => self.reset(),
            "/_control/lease" => self.lease(request),
            path if path.starts_with("/_control/") => return self.carry_out(request, stale),
            _ => return self.answer_scripted(request, stale),
        };
        response.into()
    }

    /// A request to a service, which may have a scripted response.
    fn answer_scripted(&self, request: &Request, stale: Option<StaleReads>) -> Answered {
        let met = self.state().script.match_call(request);
        let Some((name, act)) = met else {
            return self.carry_out(request, stale);
        };
        let mut answered = match (script::refusal(act), act) {
            (Some(response), _) => response.into(),
            (None, Action::Stale) => self.answer_stale(request),
            (None, _) => self.carry_out(request, stale),
        };
        answered.wire = match act {
            Action::Delay(by) => Wire::Delay(by),
            Action::Cut => Wire::Cut,
            Action::Truncate => Wire::Truncate,
            Action::TooMany(_) | Action::Unavailable(_) | Action::Stale => Wire::Whole,
        };
        answered.scripted = Some(name);
        answered
    }

    /// The response from the state before the last change; only for reads.
    fn answer_stale(&self, request: &Request) -> Answered {
        let now = self.now();
        let mut state = self.state();
        match state.before.as_deref_mut() {
            Some(before) if request.method == "GET" => before.handle(request, now).into(),
            Some(_) | None => {
                drop(state);
                self.carry_out(request, None)
            }
        }
    }

    /// The response of the reference.
    fn carry_out(&self, request: &Request, stale: Option<StaleReads>) -> Answered {
        let now = self.now();
        let mut state = self.state();
        if let Some(origin) = self.beginning.origin_for(request) {
            state.reference.reached_at(origin);
        }
        let may_change = request.method != "GET" && request.method != "HEAD";
        let before =
            (may_change && state.script.needs_history()).then(|| Box::new(state.reference.clone()));
        let response = match stale {
            Some(stale) => state.reference.write_late(request, now, stale),
            None => state.reference.handle(request, now),
        };
        if may_change && response.is_success() {
            state.before = before;
            if self.beginning.keeps && state.since.len() < InitialState::KEPT_MAX {
                let after = now.duration_since(state.last_change).as_millis();
                let step = Step::from_request(request, u64::try_from(after).unwrap_or_default());
                state.since.push(step);
                state.last_change = now;
            }
        }
        let callbacks = state.callbacks(None);
        Answered {
            callbacks,
            ..response.into()
        }
    }

    /// Delivers one callback and returns the next ones.
    pub(super) fn run(&self, pending: &PendingCallback) -> Vec<PendingCallback> {
        let timeout = pending.callback.timeout;
        let outcome = self.deliver.deliver(&pending.callback);
        if let Some(people) = self.people() {
            let (now, attempt) = (self.now(), pending.attempts);
            people
                .log
                .callback(now, &pending.callback, attempt, outcome);
        }
        let (delivery, took) = match outcome {
            Outcome::Answered { status, after } if after < timeout => {
                (Delivery::Answered(status), after)
            }
            Outcome::Answered { .. } | Outcome::Silent => (Delivery::TimedOut, timeout),
            Outcome::Unreachable => (Delivery::Unreachable, Duration::ZERO),
        };
        if self.clock.is_virtual() {
            self.clock.advance(took);
        }
        let mut state = self.state();
        if state.generation != pending.generation {
            return Vec::new();
        }
        state.reference.delivered(pending.callback.id, delivery);
        state.callbacks(Some(pending))
    }

    /// `{"url": TEXT}`: sends one request, as a callback would be sent.
    fn call_back(&self, request: &Request) -> Answered {
        const TIMEOUT: Duration = Duration::from_secs(5);
        let arguments: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let Some(url) = arguments.get("url").and_then(Value::as_str) else {
            return refusal(422, "argument `url` (string) is required").into();
        };
        let callbacks = self.callbacks(url, Request::new("POST", ""), TIMEOUT, 0);
        Answered {
            callbacks,
            ..Response::json(200, &json!({})).into()
        }
    }

    /// A callback that no service caused.
    pub(super) fn callbacks(
        &self,
        url: &str,
        request: Request,
        timeout: Duration,
        retries: u32,
    ) -> Vec<PendingCallback> {
        let mut state = self.state();
        state.reference.send(url, request, timeout, retries);
        state.callbacks(None)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// `{"seconds": NUMBER}`, not negative.
    fn advance_by_hook(&self, request: &Request) -> Response {
        // Two hundred years: beyond any expiry, within the range of dates.
        const SECONDS_MAX: f64 = 6.4e9;
        let seconds = serde_json::from_slice::<Value>(&request.body)
            .ok()
            .and_then(|args| args.get("seconds")?.as_f64())
            .filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds));
        let far_ahead = Timestamp::from_second(32_503_680_000).expect("the year 3000 is a date");
        match seconds.map(Duration::try_from_secs_f64) {
            Some(Ok(by)) if self.now() + by <= far_ahead => {
                self.clock.advance(by);
                Response::json(200, &json!({"now": clock::iso_seconds(self.now())}))
            }
            _ => {
                let why = "argument `seconds` (non-negative number) is missing or too large";
                refusal(422, why)
            }
        }
    }

    /// `{"owner": TEXT, "seconds": NUMBER}`: one owner at a time, until it releases the lease or the lease expires.
    fn lease(&self, request: &Request) -> Response {
        let arguments: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let owner = arguments.get("owner").and_then(Value::as_str);
        let seconds = arguments.get("seconds").and_then(Value::as_u64);
        let (Some(owner), Some(seconds)) = (owner, seconds) else {
            let why = "arguments `owner` (string) and `seconds` (number) are required";
            return refusal(422, why);
        };
        let now = clock::monotonic();
        let mut state = self.state();
        let is_free = match &state.lease {
            Some((holder, until)) => holder == owner || *until <= now,
            None => true,
        };
        if is_free {
            let until = now.checked_add(Duration::from_secs(seconds)).unwrap_or(now);
            state.lease = (seconds > 0).then(|| (owner.to_owned(), until));
        }
        Response::json(200, &json!({"granted": is_free}))
    }

    /// Restores the initial state under the same seed; the time stays.
    fn reset(&self) -> Response {
        let mut state = self.state();
        let steps = std::mem::take(&mut state.begun_with);
        self.restart(&mut state, steps)
    }

    /// Restarts with these requests.
    pub(super) fn restart(&self, state: &mut State, steps: Vec<Step>) -> Response {
        let now = self.now();
        let reference = match super::develop::replay(state.settings.clone(), &steps, now) {
            Ok(reference) => reference,
            Err(error) => return refusal(422, &error.to_string()),
        };
        state.reference = reference;
        state.before = None;
        state.begun_with = steps;
        state.since = Vec::new();
        state.last_change = now;
        state.script.rewind();
        state.generation += 1;
        Response::json(200, &json!({}))
    }
}

impl State {
    /// Due callbacks; retries of `after` continue its attempt count.
    fn callbacks(&mut self, after: Option<&PendingCallback>) -> Vec<PendingCallback> {
        let generation = self.generation;
        self.reference
            .take_callbacks()
            .into_iter()
            .map(|callback| PendingCallback {
                attempts: match after {
                    Some(pending) if pending.callback.id == callback.id => pending.attempts + 1,
                    _ => 1,
                },
                callback,
                generation,
            })
            .filter(|pending| pending.attempts <= World::ATTEMPTS_MAX)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Responds to each callback with the next outcome, then with 200.
    fn receiver(outcomes: &[Outcome]) -> Arc<dyn Deliver> {
        let left = Mutex::new(VecDeque::from(outcomes.to_vec()));
        let (status, after) = (200, Duration::ZERO);
        Arc::new(move |_: &Callback| {
            let next = lock(&left).pop_front();
            next.unwrap_or(Outcome::Answered { status, after })
        })
    }

    fn world(clock: WorldClock) -> World {
        let settings = Settings {
            origin: "http://x".to_owned(),
            ..Settings::default()
        };
        World::new(settings, clock, receiver(&[]))
    }

    fn hook(world: &World, name: &str, body: &str) -> (u16, Value) {
        let mut request = Request::new("POST", format!("/_control/{name}"));
        request.body = body.into();
        let response = world.handle(&request);
        (
            response.status,
            serde_json::from_slice(&response.body).unwrap(),
        )
    }

    #[test]
    fn the_clock_is_advanced_by_a_hook() {
        let world = world(WorldClock::stands_still());
        let check = |body: &str, status: u16, now: &str| {
            assert_eq!(hook(&world, "advance_clock", body).0, status, "{body}");
            assert_eq!(world.now().to_string(), now, "{body}");
        };
        check(r#"{"seconds": 86400}"#, 200, "2026-01-02T00:00:00Z");
        check(r#"{"seconds": 0.25}"#, 200, "2026-01-02T00:00:00.25Z");
        for wrong in [
            "",
            "{}",
            r#"{"seconds": -1}"#,
            r#"{"seconds": 1e300}"#,
            r#"{"seconds": "1"}"#,
        ] {
            check(wrong, 422, "2026-01-02T00:00:00.25Z");
        }
        for _ in 0..6 {
            hook(&world, "advance_clock", r#"{"seconds": 6e9}"#);
        }
        assert!(world.now().to_string().as_str() < "3000");
    }

    #[test]
    fn a_real_clock_passes_and_can_be_ahead() {
        let clock = WorldClock::passes();
        let before = clock::now();
        clock.advance(Duration::from_secs(3600));
        let ahead = clock.now().duration_since(before).as_secs();
        // Milliseconds are truncated, so it may be one second less.
        assert!((3599..3660).contains(&ahead), "{ahead}");
    }

    #[test]
    fn one_owner_at_a_time_has_the_lease() {
        let world = world(WorldClock::stands_still());
        let granted = |owner: &str, seconds: u64| {
            let body = json!({"owner": owner, "seconds": seconds}).to_string();
            hook(&world, "lease", &body).1["granted"] == true
        };
        assert!(granted("a", 60) && granted("a", 60));
        assert!(!granted("b", 60));
        assert!(!granted("b", 0), "it is not b's to give back");
        assert!(granted("a", 0) && granted("b", 60));
        assert_eq!(hook(&world, "lease", "{}").0, 422);
    }

    #[test]
    fn reset_restarts_with_the_same_seed() {
        let world = world(WorldClock::stands_still());
        let (_, first) = hook(&world, "create_flow", "{}");
        let (_, second) = hook(&world, "create_flow", "{}");
        assert_ne!(first, second);
        assert_eq!(hook(&world, "reset", "").0, 200);
        assert_eq!(hook(&world, "create_flow", "{}").1, first);
        assert_eq!(hook(&world, "no_such_hook", "{}").0, 404);
    }

    /// Sends one callback with three retries to a scripted receiver; returns the attempts and the time passed.
    fn attempts(outcomes: &[Outcome]) -> (usize, Duration) {
        let clock = WorldClock::stands_still();
        let world = World::new(Settings::default(), clock, receiver(outcomes));
        let before = world.now();
        let (url, request) = ("http://127.0.0.1:1/hook", Request::new("POST", ""));
        let first = world.callbacks(url, request, Duration::from_secs(5), 3);
        let mut waiting = VecDeque::from(first);
        let mut made = 0;
        while let Some(callback) = waiting.pop_front() {
            made += 1;
            waiting.extend(world.run(&callback));
        }
        let passed = world.now().duration_since(before);
        (made, passed.unsigned_abs())
    }

    #[test]
    fn callbacks_are_retried_and_time_outs_cost_virtual_time_only() {
        let answered = |status, after_ms| Outcome::Answered {
            status,
            after: Duration::from_millis(after_ms),
        };
        let check = |outcomes: &[Outcome], made: usize, passed_ms: u64| {
            let seen = attempts(outcomes);
            assert_eq!(
                seen,
                (made, Duration::from_millis(passed_ms)),
                "{outcomes:?}"
            );
        };
        check(&[answered(200, 300)], 1, 300);
        check(&[answered(500, 0)], 1, 0);
        check(&[Outcome::Unreachable], 1, 0);
        check(&[answered(503, 0), answered(429, 0)], 3, 0);
        check(&[answered(200, 4_999)], 1, 4_999);
        check(&[answered(200, 6_000), Outcome::Silent], 3, 10_000);
        check(&[Outcome::Silent; 9], 4, 20_000);
    }
}
