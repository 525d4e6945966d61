//! Rate limits of a target: scenarios wait as requested and continue, at the rate that the target's answers show.
//!
//! - A rejected request is repeated whatever its method, because a rate limit means that it was not processed.
//! - A limit holds for the rejected operation. Once three operations are rejected within a minute, it holds for all requests.
//! - The first rate is the number of requests that the target answered during the last N seconds, where N is its `Retry-After`;
//!   or what remains of the limit, spread over the time until it is reset.
//! - Each further rejection lowers the rate by a fraction, and it rises again by a fixed amount each second. Several runs on
//!   one target therefore come to share its limit evenly, and none starves.
//! - If lower rates do not help, the rejections do not depend on the rate. Then only the rejected request waits.
//! - A rejected change that overlapped another change does not lower the rate: the target may reject changes because they
//!   arrive at the same time.

use super::rate_limit::{is_limit, remaining, requested_wait, time_until_reset};
use super::waits::WaitCounts;
use conformant_base::clock;
use conformant_base::http::{Headers, Response};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of retries without `Retry-After`.
pub(super) const TRIES_MAX: u32 = 5;
/// The first such wait; each further one is twice as long.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Interval between requests after the first limit.
const INTERVAL_FIRST: Duration = Duration::from_millis(5);
const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// The least delay after which a slot counts as missed.
const LATE_FROM: Duration = Duration::from_millis(50);
/// Least and longest period in which served requests are counted.
const PERIOD_MIN: Duration = Duration::from_secs(1);
pub(super) const PERIOD_MAX: Duration = Duration::from_secs(60);
/// Shortest time over which the rest of a limit is spread.
const SPREAD_FROM: Duration = Duration::from_secs(5);
/// Number of operations that are rejected within the longest period if the limit is that of all requests.
const OPERATIONS_OF_ALL: usize = 3;
/// Number of served requests after which a rate has proved to be low enough.
const SERVED_MIN: u32 = 100;
/// Number of rates in a row that were rejected earlier than that, after which rejections do not depend on the rate.
const USELESS_MAX: u32 = 4;
/// Number of served requests for each rejected one below which rejections do depend on the rate after all.
const SERVED_BETWEEN: u32 = 4;
/// How often a rate rises.
const RISE_EVERY: Duration = Duration::from_secs(1);
/// By how much it rises each time: this part of the highest rate that was measured.
const RISE: f64 = 0.01;
/// Time without a rejection after which the rate rises by [`RISE_LATER`] of itself too.
const RISE_LATER_AFTER: Duration = Duration::from_secs(10);
const RISE_LATER: f64 = 0.05;
/// The operation of a hook. Hooks often count towards the limit of the target.
const HOOK: &str = "hook";

/// The request schedule, shared by all scenarios.
#[derive(Debug)]
pub(super) struct Schedule {
    state: Mutex<State>,
    pub(super) waits: WaitCounts,
}

#[derive(Debug)]
struct State {
    /// The pace of all requests.
    all: Pace,
    /// Those of single operations, by name.
    operations: BTreeMap<String, Pace>,
    /// Until when the target's limit holds, and the interval that spreads what remains of it.
    window: Option<(Instant, Duration)>,
    /// The last wait that was not reported yet: the service and the reason.
    unreported: Option<(String, String)>,
}

/// The pace of some requests.
#[derive(Debug)]
struct Pace {
    /// The earliest time of the next request.
    open_at: Instant,
    /// No request is sent before, whatever its slot.
    blocked_until: Instant,
    /// Interval between requests; zero until the target sets a limit.
    interval: Duration,
    /// The shortest interval that was measured.
    shortest: Option<Duration>,
    /// When the rate rose or was lowered last, and when it was lowered last.
    changed_at: Instant,
    lowered_at: Instant,
    /// How often the rate was lowered.
    epoch: u32,
    /// Requests since the rate was lowered last.
    served: u32,
    /// How many lower rates in a row did not help.
    useless: u32,
    /// When requests were served within the longest period.
    served_at: VecDeque<Instant>,
    /// When one of them was rejected last.
    rejected_at: Option<Instant>,
}

/// A slot of the schedule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The time at which to send.
    pub(super) at: Instant,
    /// The epochs of all requests and of those of the operation.
    epochs: (u32, u32),
}

/// One try of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestAttempt {
    pub(super) place: Place,
    /// Number of tries before it.
    pub(super) tries: u32,
    /// Whether it is a change that was in flight together with another change of this run.
    pub(super) has_overlapped: bool,
}

/// The action after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Use the answer.
    Take,
    /// Retry at the next slot of the schedule; contains the requested wait.
    Again(Duration),
    /// Retry after that wait, while other requests go on.
    AgainAlone(Duration),
    /// Give up: the limit lasts longer than the run, or the target rejects all retries without `Retry-After`.
    GiveUp,
}

impl Schedule {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                all: Pace::new(),
                operations: BTreeMap::new(),
                window: None,
                unreported: None,
            }),
            waits: WaitCounts::default(),
        }
    }

    /// Reserves the next slot of an operation.
    pub(super) fn place(&self, operation: &str) -> Place {
        let mut state = self.state();
        let at = state.all.open_at.max(clock::monotonic());
        state.all.open_at = at + state.spacing(at);
        let epoch = state.all.epoch;
        let Some(pace) = state.operations.get_mut(operation) else {
            return Place {
                at,
                epochs: (epoch, 0),
            };
        };
        let at = at.max(pace.open_at);
        pace.open_at = at + pace.interval;
        Place {
            at,
            epochs: (epoch, pace.epoch),
        }
    }

    /// Whether the target rejected such a request since the slot was reserved, so that it is too early.
    pub(super) fn is_blocked(&self, operation: &str) -> bool {
        let (state, now) = (self.state(), clock::monotonic());
        let pace = state.operations.get(operation);
        state.all.blocked_until > now || pace.is_some_and(|pace| pace.blocked_until > now)
    }

    /// Whether a slot passed unused, if slots have intervals.
    pub(super) fn is_missed(&self, operation: &str, place: &Place) -> bool {
        let state = self.state();
        let pace = state.operations.get(operation);
        let own = pace.map_or(Duration::ZERO, |pace| pace.interval);
        let interval = state.spacing(place.at).max(own);
        let late = clock::monotonic().saturating_duration_since(place.at);
        !interval.is_zero() && late > interval.max(LATE_FROM)
    }

    /// Reserves the next slot for a hook; `None` without a rate limit for all requests.
    pub(super) fn place_hook(&self) -> Option<Instant> {
        self.is_limited().then(|| self.place(HOOK).at)
    }

    /// Counts a hook that was called.
    pub(super) fn count_hook(&self) {
        self.state().all.record_served(clock::monotonic());
    }

    /// Adapts the schedule to a hook that must wait because of a rate limit.
    pub(super) fn learn_from_hook(&self, wait: Duration) {
        let until = clock::monotonic() + wait.min(PERIOD_MAX);
        let mut state = self.state();
        let epoch = state.all.epoch;
        let (pace, _) = state.pace_of_rejected(HOOK, (epoch, 0));
        // Hooks in flight at the same time are rejected together, which counts once.
        if pace.blocked_until < clock::monotonic() {
            pace.slow_down(wait, clock::monotonic());
        }
        pace.open_at = pace.open_at.max(until);
        pace.blocked_until = pace.blocked_until.max(until);
    }

    /// Whether the target has a rate limit for all requests.
    pub(super) fn is_limited(&self) -> bool {
        !self.state().all.interval.is_zero()
    }

    /// Adapts the schedule to an answer to the given attempt at an operation.
    pub(super) fn learn(
        &self,
        operation: &str,
        response: &Response,
        attempt: &RequestAttempt,
        deadline: Instant,
    ) -> Next {
        let tries = attempt.tries;
        let mut state = self.state();
        if !is_limit(response) {
            state.record_served(operation, &response.headers);
            return Next::Take;
        }
        // A wait of zero says nothing; it may come from a slow clock.
        let requested = requested_wait(&response.headers)
            .filter(|wait| !wait.is_zero())
            .or_else(|| time_until_reset(&response.headers));
        if requested.is_none() && tries >= TRIES_MAX {
            return Next::GiveUp;
        }
        let wait = requested.unwrap_or(FIRST_WAIT * 2u32.saturating_pow(tries.min(16)));
        let now = clock::monotonic();
        let Some(until) = now.checked_add(wait).filter(|until| *until < deadline) else {
            return Next::GiveUp;
        };
        let (pace, epoch) = state.pace_of_rejected(operation, attempt.place.epochs);
        // Requests in flight at the same time are rejected together, which counts once.
        if epoch == pace.epoch && !attempt.has_overlapped {
            pace.slow_down(requested.unwrap_or_default(), now);
        }
        if pace.useless >= USELESS_MAX {
            return Next::AgainAlone(wait);
        }
        pace.open_at = pace.open_at.max(until);
        pace.blocked_until = pace.blocked_until.max(until);
        Next::Again(wait)
    }

    /// Adapts the schedule to the response to a request of a race. Returns the requested wait if it was rejected.
    pub(super) fn learn_in_race(&self, response: &Response) -> Option<Duration> {
        if is_limit(response) {
            return requested_wait(&response.headers).filter(|wait| !wait.is_zero());
        }
        self.state().record_headers(&response.headers);
        None
    }

    /// Stores the reason for a wait until it is reported.
    pub(super) fn report(&self, service: &str, status: u16, wait: Duration) {
        let span = match wait.as_millis() {
            ms if ms.is_multiple_of(1_000) => format!("{} s", ms / 1_000),
            ms => format!("{ms} ms"),
        };
        self.state().unreported = Some((service.to_owned(), format!("{status}, waiting {span}")));
    }

    /// The last wait for a rate limit since the last call, or else the scenarios that wait now.
    pub(super) fn waits(&self) -> Option<(String, String)> {
        let rate_limit = self.state().unreported.take();
        rate_limit.or_else(|| Some((String::new(), self.waits.report()?)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The time between a request and the next one.
    fn spacing(&self, at: Instant) -> Duration {
        let spread = self.window.filter(|(until, _)| at < *until);
        let spread = spread.map_or(Duration::ZERO, |(_, interval)| interval);
        self.all.interval.max(spread)
    }

    /// The pace that a rejection concerns, with its epoch when the request got its slot.
    fn pace_of_rejected(&mut self, operation: &str, epochs: (u32, u32)) -> (&mut Pace, u32) {
        let now = clock::monotonic();
        self.operation(operation).rejected_at = Some(now);
        let is_recent = |at: Instant| now.saturating_duration_since(at) <= PERIOD_MAX;
        let rejected = self.operations.values().filter_map(|pace| pace.rejected_at);
        let is_of_all = !self.all.interval.is_zero() || self.all.useless >= USELESS_MAX;
        if is_of_all || rejected.filter(|at| is_recent(*at)).count() >= OPERATIONS_OF_ALL {
            for pace in self.operations.values_mut() {
                pace.interval = Duration::ZERO;
            }
            (&mut self.all, epochs.0)
        } else {
            (self.operation(operation), epochs.1)
        }
    }

    fn operation(&mut self, name: &str) -> &mut Pace {
        self.operations
            .entry(name.to_owned())
            .or_insert_with(Pace::new)
    }

    fn record_served(&mut self, operation: &str, headers: &Headers) {
        self.operation(operation).record_served(clock::monotonic());
        self.record_headers(headers);
    }

    fn record_headers(&mut self, headers: &Headers) {
        let now = clock::monotonic();
        self.all.record_served(now);
        match remaining(headers) {
            Some((0, reset)) => {
                let until = now + reset.min(PERIOD_MAX);
                self.all.open_at = self.all.open_at.max(until);
                self.all.interval = self.all.interval.max(INTERVAL_FIRST);
            }
            // A short time is too coarse to spread requests over it: it is often a rounded number of seconds.
            Some((left, reset)) if (SPREAD_FROM..=PERIOD_MAX).contains(&reset) => {
                let even = reset.checked_div(left).unwrap_or_default();
                self.window = Some((now + reset, even.min(INTERVAL_MAX)));
                self.all.interval = self.all.interval.max(INTERVAL_FIRST);
            }
            Some(_) | None => {}
        }
    }
}

impl Pace {
    fn new() -> Self {
        let now = clock::monotonic();
        Self {
            open_at: now,
            blocked_until: now,
            interval: Duration::ZERO,
            shortest: None,
            changed_at: now,
            lowered_at: now,
            epoch: 0,
            served: 0,
            useless: 0,
            served_at: VecDeque::new(),
            rejected_at: None,
        }
    }

    /// Lowers the rate to that at which the target served requests in the period that it asks to wait, and at least a little.
    fn slow_down(&mut self, requested: Duration, now: Instant) {
        let served = std::mem::take(&mut self.served);
        self.epoch += 1;
        if self.useless >= USELESS_MAX && served >= SERVED_BETWEEN {
            return;
        }
        let is_useless = !self.interval.is_zero() && served < SERVED_MIN;
        self.useless = if is_useless { self.useless + 1 } else { 0 };
        if self.useless >= USELESS_MAX {
            self.interval = Duration::ZERO;
            return;
        }
        let measured = self.measured(requested.clamp(PERIOD_MIN, PERIOD_MAX), now);
        self.shortest = match (self.shortest, measured) {
            (Some(shortest), Some(measured)) => Some(shortest.min(measured)),
            (one, other) => one.or(other),
        };
        (self.changed_at, self.lowered_at) = (now, now);
        self.interval = match (self.interval.is_zero(), measured) {
            // A little slower, because clocks differ.
            (true, measured) => measured.unwrap_or_default() * 21 / 20,
            (false, None) => self.interval * 2,
            // Other runs may have taken part of what the target serves, and they slow down as well.
            (false, Some(measured)) => measured.clamp(self.interval * 10 / 9, self.interval * 2),
        }
        .clamp(INTERVAL_FIRST, INTERVAL_MAX);
    }

    /// The mean interval between requests that were served within this period.
    fn measured(&self, period: Duration, now: Instant) -> Option<Duration> {
        let is_recent = |at: &&Instant| now.saturating_duration_since(**at) <= period;
        let count = self.served_at.iter().filter(is_recent).count();
        u32::try_from(count)
            .ok()
            .and_then(|n| period.checked_div(n))
    }

    fn record_served(&mut self, now: Instant) {
        self.served_at.push_back(now);
        let is_old = |at: &Instant| now.saturating_duration_since(*at) > PERIOD_MAX;
        while self.served_at.front().is_some_and(is_old) {
            self.served_at.pop_front();
        }
        self.served += 1;
        let rose_at = self.changed_at.max(self.blocked_until);
        if !self.interval.is_zero() && now.saturating_duration_since(rose_at) >= RISE_EVERY {
            self.rise(now);
        }
    }

    fn rise(&mut self, now: Instant) {
        self.changed_at = now;
        let rate = 1.0 / self.interval.as_secs_f64();
        let highest = 1.0 / self.shortest.unwrap_or(self.interval).as_secs_f64();
        let is_later = now.saturating_duration_since(self.lowered_at) >= RISE_LATER_AFTER;
        let more = if is_later { rate * RISE_LATER } else { 0.0 };
        self.interval = Duration::from_secs_f64(1.0 / (rate + highest * RISE + more));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_that_wait_are_reported_unless_a_rate_limit_is() {
        let schedule = Schedule::new();
        let waiting = schedule.waits.for_callbacks();
        schedule.report("flow", 429, Duration::from_secs(1));
        let (service, _) = schedule.waits().expect("it waits");
        assert_eq!(service, "flow");
        let (service, why) = schedule.waits().expect("it waits");
        assert_eq!(
            (service.as_str(), why.as_str()),
            ("", "1 scenario waits for callbacks")
        );
        drop(waiting);
        assert_eq!(schedule.waits(), None);
    }

    const READ: &str = "GET /";

    fn answer(status: u16, retry_after: Option<&str>) -> Response {
        let mut response = Response::empty(status);
        if let Some(text) = retry_after {
            response.headers.set("Retry-After", text);
        }
        response
    }

    fn alone(schedule: &Schedule, tries: u32) -> RequestAttempt {
        RequestAttempt {
            place: schedule.place(READ),
            tries,
            has_overlapped: false,
        }
    }

    #[test]
    fn a_limit_is_respected_within_the_deadline() {
        let hour = clock::monotonic() + Duration::from_secs(3600);
        let again = |ms| Next::Again(Duration::from_millis(ms));
        for (status, header, tries, next) in [
            (200, None, 0, Next::Take),
            (503, None, 0, Next::Take),
            (429, Some("3"), 0, again(3000)),
            (503, Some("3"), 40, again(3000)),
            (503, Some("-1"), 0, Next::Take),
            (429, None, 0, again(500)),
            (429, Some("soon"), 2, again(2000)),
            (429, Some("0"), 0, again(500)),
            (503, Some("0"), TRIES_MAX, Next::GiveUp),
            (
                429,
                Some("Thu, 01 Jan 1998 00:00:00 GMT"),
                TRIES_MAX,
                Next::GiveUp,
            ),
            (429, None, TRIES_MAX, Next::GiveUp),
            (429, Some("999999999"), 0, Next::GiveUp),
            (429, Some("18446744073709551615"), 0, Next::GiveUp),
        ] {
            let schedule = Schedule::new();
            let seen = schedule.learn(
                READ,
                &answer(status, header),
                &alone(&schedule, tries),
                hour,
            );
            assert_eq!(seen, next, "{status} {header:?} {tries}");
        }
    }

    #[test]
    fn the_schedule_takes_the_rate_of_the_target() {
        let schedule = Schedule::new();
        let hour = clock::monotonic() + Duration::from_secs(3600);
        let served = |times: usize| {
            for _ in 0..times {
                schedule.learn(READ, &answer(200, None), &alone(&schedule, 0), hour);
            }
        };
        let interval = || schedule.state().operation(READ).interval;
        served(40);
        assert!(interval().is_zero());
        let overlapping = RequestAttempt {
            has_overlapped: true,
            ..alone(&schedule, 0)
        };
        schedule.learn(READ, &answer(429, Some("1")), &overlapping, hour);
        assert!(interval().is_zero() && schedule.is_blocked(READ));
        assert!(!schedule.is_blocked("POST /"), "another operation goes on");
        let in_flight = [(); 3].map(|()| alone(&schedule, 0));
        for attempt in in_flight {
            schedule.learn(READ, &answer(429, Some("1")), &attempt, hour);
        }
        let measured = Duration::from_millis(25) * 21 / 20;
        assert_eq!(interval(), measured, "rejected together, which counts once");
        assert!(schedule.is_blocked(READ) && !schedule.is_limited());
        assert!(schedule.place(READ).at > clock::monotonic() + Duration::from_millis(900));
    }

    /// The target serves 40 requests a second; another run takes 39 of them for a while.
    #[test]
    fn a_rate_falls_to_half_at_most_and_rises_with_time() {
        let mut pace = Pace::new();
        let mut now = clock::monotonic();
        let mut serve = |pace: &mut Pace, times: u32, each: Duration| {
            for _ in 0..times {
                now += each;
                pace.record_served(now);
            }
            now
        };
        let now = serve(&mut pace, 40, Duration::from_millis(25));
        pace.slow_down(Duration::ZERO, now);
        let first = Duration::from_millis(25) * 21 / 20;
        assert_eq!(pace.interval, first);
        let second = Duration::from_secs(1);
        let now = serve(&mut pace, 1, second);
        pace.slow_down(second, now);
        let halved = first * 19 / 10..=first * 2;
        assert!(halved.contains(&pace.interval), "{:?}", pace.interval);
        let now = serve(&mut pace, 2, second);
        pace.slow_down(second, now);
        assert!(pace.interval < first * 4, "it rose meanwhile");
        let before = pace.interval;
        serve(&mut pace, 10, second);
        let after_ten = pace.interval;
        assert!(after_ten < before * 3 / 4, "{before:?} {after_ten:?}");
        serve(&mut pace, 30, second);
        assert!(pace.interval < first, "{:?}", pace.interval);
    }

    #[test]
    fn hooks_take_slots_of_a_limited_target() {
        let schedule = Schedule::new();
        assert_eq!(schedule.place_hook(), None);
        (0..40).for_each(|_| schedule.count_hook());
        let hour = clock::monotonic() + Duration::from_secs(3600);
        for operation in ["GET /", "POST /", "GET /a"] {
            let attempt = alone(&schedule, 0);
            schedule.learn(operation, &answer(429, Some("1")), &attempt, hour);
        }
        assert_eq!(
            schedule.state().all.interval,
            Duration::from_millis(25) * 21 / 20
        );
        assert!(schedule.place_hook() > Some(clock::monotonic() + Duration::from_millis(900)));
    }

    #[test]
    fn a_limit_of_several_operations_is_one_of_all() {
        let schedule = Schedule::new();
        let hour = clock::monotonic() + Duration::from_secs(3600);
        for (operation, is_limited) in [("POST /a", false), ("POST /b", false), ("GET /a", true)] {
            let attempt = alone(&schedule, 0);
            schedule.learn(operation, &answer(429, Some("1")), &attempt, hour);
            assert_eq!(schedule.is_limited(), is_limited, "{operation}");
        }
        assert!(schedule.is_blocked(READ));
    }

    /// The target rejects every tenth request, whatever the rate.
    #[test]
    fn if_lower_rates_do_not_help_only_the_rejected_request_waits() {
        let schedule = Schedule::new();
        let hour = clock::monotonic() + Duration::from_secs(3600);
        let rejected = |served: usize| {
            for _ in 0..served {
                schedule.learn(READ, &answer(200, None), &alone(&schedule, 0), hour);
            }
            let rejection = answer(503, Some("1"));
            schedule.learn(READ, &rejection, &alone(&schedule, 0), hour)
        };
        let wait = Duration::from_secs(1);
        for _ in 0..USELESS_MAX {
            assert_eq!(rejected(9), Next::Again(wait));
        }
        assert_eq!(rejected(9), Next::AgainAlone(wait));
        assert_eq!(rejected(4), Next::AgainAlone(wait));
        assert!(schedule.state().operation(READ).interval.is_zero());
        assert_eq!(rejected(3), Next::Again(wait), "there is a limit after all");
    }

    #[test]
    fn a_rejection_within_a_race_leaves_the_rate() {
        let schedule = Schedule::new();
        let wait = |status, header| schedule.learn_in_race(&answer(status, header));
        assert_eq!(wait(429, Some("3")), Some(Duration::from_secs(3)));
        assert_eq!(wait(503, Some("1")), Some(Duration::from_secs(1)));
        for (status, header) in [(429, None), (429, Some("0")), (503, None), (200, Some("9"))] {
            assert_eq!(wait(status, header), None, "{status} {header:?}");
        }
        assert!(!schedule.is_limited());
        assert!(schedule.place(READ).at <= clock::monotonic());
    }

    #[test]
    fn the_schedule_reads_how_many_requests_remain() {
        let schedule = Schedule::new();
        let hour = clock::monotonic() + Duration::from_secs(3600);
        let pause = |left: &str, reset: &str| {
            let mut response = answer(200, None);
            response.headers.set("X-RateLimit-Remaining", left);
            response.headers.set("X-RateLimit-Reset", reset);
            schedule.learn(READ, &response, &alone(&schedule, 0), hour);
            let state = schedule.state();
            state.spacing(clock::monotonic()).as_millis()
        };
        assert_eq!(pause("many", "9"), 0);
        assert_eq!(pause("2", "1"), 0, "a short window is not spread");
        assert_eq!(pause("40", "8"), 200);
        assert_eq!(pause("10", "999"), 200, "too far away");
        assert_eq!(pause("160", "8"), 50, "a new window has a rate of its own");
        pause("0", "3");
        assert!(schedule.place(READ).at > clock::monotonic() + Duration::from_secs(2));
        let mut rejection = answer(429, None);
        rejection.headers.set("RateLimit-Remaining", "0");
        rejection.headers.set("RateLimit-Reset", "7");
        let next = schedule.learn(READ, &rejection, &alone(&schedule, TRIES_MAX), hour);
        assert_eq!(next, Next::Again(Duration::from_secs(7)));
    }

    #[test]
    fn a_wait_is_reported_once() {
        let schedule = Schedule::new();
        assert_eq!(schedule.waits(), None);
        for (wait_ms, expected) in [
            (1_000, "429, waiting 1 s"),
            (500, "429, waiting 500 ms"),
            (90_000, "429, waiting 90 s"),
        ] {
            schedule.report("flow", 429, Duration::from_millis(wait_ms));
            assert_eq!(schedule.waits(), Some(("flow".into(), expected.into())));
            assert_eq!(schedule.waits(), None);
        }
    }
}
