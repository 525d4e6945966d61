//! Rate limits of a target: scenarios wait as requested and continue, at the rate that the target's answers show.
//!
//! - A rejected request is repeated whatever its method, because a rate limit means that it was not processed.
//! - A limit holds for the rejected operation. Once three operations are rejected within a minute, it holds for all requests.
//!   Hooks are one operation.
//! - `pace` computes the rate from the requests that the target served and rejected.
//! - What remains of a limit by the target's headers is spread over the time until it is reset.
//! - A rejected change that overlapped another change does not lower the rate, unless the target has rejected a change that
//!   was alone: the target may reject changes because they arrive at the same time.

use super::pace::{INTERVAL_MAX, PERIOD_MAX, Pace};
use super::rate_limit::{is_limit, remaining, requested_wait, time_until_reset};
use conformant_base::clock;
use conformant_base::http::{Headers, Response};
use conformant_base::parallel::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Maximum number of retries without `Retry-After`.
pub(super) const TRIES_MAX: u32 = 5;
/// The first such wait; each further one is twice as long.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The least delay after which a slot counts as missed.
const LATE_FROM: Duration = Duration::from_millis(50);
/// Shortest time over which the rest of a limit is spread.
const SPREAD_FROM: Duration = Duration::from_secs(5);
/// Number of operations that are rejected within the longest period if the limit is that of all requests.
const OPERATIONS_OF_ALL: usize = 3;
/// The operation of a hook. Hooks often count towards the limit of the target.
const HOOK: &str = "hook";

/// The request schedule, shared by all scenarios.
#[derive(Debug)]
pub(super) struct Schedule(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The pace of all requests.
    all: Pace,
    /// Those of single operations, by name.
    operations: BTreeMap<String, Pace>,
    /// Until when the target's limit holds, and the interval that spreads what remains of it.
    window: Option<(Instant, Duration)>,
}

/// A time reserved for one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestSlot {
    /// The time at which to send.
    pub(super) at: Instant,
    /// The numbers of rejections so far, of all requests and of this operation, when it was reserved.
    epochs: (u32, u32),
}

/// One try of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestAttempt {
    pub(super) slot: RequestSlot,
    /// Number of tries before it.
    pub(super) tries: u32,
    /// Whether a rejection may come from another change of this run that was in flight together with it, instead of a rate.
    pub(super) may_be_a_conflict: bool,
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
        Self(Mutex::new(State::new(clock::monotonic())))
    }

    /// Reserves the next slot of an operation.
    pub(super) fn reserve(&self, operation: &str) -> RequestSlot {
        lock(&self.0).reserve(operation, clock::monotonic())
    }

    /// Whether a rejection forbids such a request now, so that the slot is void.
    pub(super) fn is_blocked(&self, operation: &str) -> bool {
        lock(&self.0).is_blocked(operation, clock::monotonic())
    }

    /// Whether a slot passed unused, if slots have intervals.
    pub(super) fn is_missed(&self, operation: &str, slot: &RequestSlot) -> bool {
        let state = lock(&self.0);
        let pace = state.operations.get(operation);
        let own = pace.map_or(Duration::ZERO, |pace| pace.interval);
        let interval = state.spacing(slot.at).max(own);
        let late = clock::monotonic().saturating_duration_since(slot.at);
        !interval.is_zero() && late > interval.max(LATE_FROM)
    }

    /// Reserves the next slot for a hook.
    pub(super) fn reserve_for_hook(&self) -> Instant {
        self.reserve(HOOK).at
    }

    /// Counts a hook that was called.
    pub(super) fn count_hook(&self) {
        let (mut state, now) = (lock(&self.0), clock::monotonic());
        state.record_served(HOOK, now);
    }

    /// Adapts the schedule to a hook that must wait because of a rate limit.
    pub(super) fn learn_from_hook(&self, wait: Duration) {
        let (mut state, now) = (lock(&self.0), clock::monotonic());
        let is_of_all = state.record_rejected(HOOK, now);
        let pace = state.pace(is_of_all, HOOK, now);
        // Hooks in flight at the same time are rejected together, which counts once.
        if pace.blocked_until <= now {
            pace.slow_down(wait, now);
        }
        if !pace.is_given_up() {
            pace.block(now + wait.min(PERIOD_MAX));
        }
    }

    /// Whether the target has a rate limit for all requests.
    #[cfg(test)]
    pub(super) fn is_limited(&self) -> bool {
        !lock(&self.0).all.interval.is_zero()
    }

    /// Adapts the schedule to an answer to the given attempt at an operation.
    pub(super) fn learn(
        &self,
        operation: &str,
        response: &Response,
        attempt: &RequestAttempt,
        deadline: Instant,
    ) -> Next {
        let (mut state, now) = (lock(&self.0), clock::monotonic());
        state.learn((operation, response), attempt, deadline, now)
    }

    /// Adapts the schedule to the response to a request of a race. Returns the requested wait if it was rejected and names one.
    pub(super) fn learn_in_race(&self, response: &Response) -> Option<Duration> {
        if is_limit(response) {
            return requested_wait(&response.headers).filter(|wait| !wait.is_zero());
        }
        let (mut state, now) = (lock(&self.0), clock::monotonic());
        state.all.record_served(now);
        state.read_headers(&response.headers, now);
        None
    }
}

impl State {
    fn new(now: Instant) -> Self {
        Self {
            all: Pace::new(now),
            operations: BTreeMap::new(),
            window: None,
        }
    }

    fn reserve(&mut self, operation: &str, now: Instant) -> RequestSlot {
        let at = self.all.open_at.max(now);
        self.all.open_at = at + self.spacing(at);
        let epoch = self.all.epoch;
        let Some(pace) = self.operations.get_mut(operation) else {
            return RequestSlot {
                at,
                epochs: (epoch, 0),
            };
        };
        let at = at.max(pace.open_at);
        pace.open_at = at + pace.interval;
        RequestSlot {
            at,
            epochs: (epoch, pace.epoch),
        }
    }

    fn is_blocked(&self, operation: &str, now: Instant) -> bool {
        let pace = self.operations.get(operation);
        self.all.blocked_until > now || pace.is_some_and(|pace| pace.blocked_until > now)
    }

    fn learn(
        &mut self,
        (operation, response): (&str, &Response),
        attempt: &RequestAttempt,
        deadline: Instant,
        now: Instant,
    ) -> Next {
        let tries = attempt.tries;
        if !is_limit(response) {
            self.record_served(operation, now);
            self.read_headers(&response.headers, now);
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
        let Some(until) = now.checked_add(wait).filter(|until| *until < deadline) else {
            return Next::GiveUp;
        };
        let is_of_all = self.record_rejected(operation, now);
        let (of_all, of_operation) = attempt.slot.epochs;
        let epoch = if is_of_all { of_all } else { of_operation };
        let pace = self.pace(is_of_all, operation, now);
        // Requests in flight at the same time are rejected together, which counts once.
        if epoch == pace.epoch && !attempt.may_be_a_conflict {
            pace.slow_down(requested.unwrap_or_default(), now);
        }
        if pace.is_given_up() {
            return Next::AgainAlone(wait);
        }
        pace.block(until);
        Next::Again(wait)
    }

    /// The time between a request and the next one.
    fn spacing(&self, at: Instant) -> Duration {
        let spread = self.window.filter(|(until, _)| at < *until);
        let spread = spread.map_or(Duration::ZERO, |(_, interval)| interval);
        self.all.interval.max(spread)
    }

    /// Counts a rejected request; returns whether the rejection concerns all requests.
    fn record_rejected(&mut self, operation: &str, now: Instant) -> bool {
        self.operation(operation, now).rejected_at = Some(now);
        let is_recent = |at: Instant| now.saturating_duration_since(at) <= PERIOD_MAX;
        let rejected = self.operations.values().filter_map(|pace| pace.rejected_at);
        let is_of_all = !self.all.interval.is_zero()
            || self.all.is_given_up()
            || rejected.filter(|at| is_recent(*at)).count() >= OPERATIONS_OF_ALL;
        if is_of_all {
            for pace in self.operations.values_mut() {
                pace.interval = Duration::ZERO;
            }
        }
        is_of_all
    }

    /// The pace of all requests or of an operation.
    fn pace(&mut self, is_of_all: bool, operation: &str, now: Instant) -> &mut Pace {
        match is_of_all {
            true => &mut self.all,
            false => self.operation(operation, now),
        }
    }

    fn operation(&mut self, name: &str, now: Instant) -> &mut Pace {
        self.operations
            .entry(name.to_owned())
            .or_insert_with(|| Pace::new(now))
    }

    fn record_served(&mut self, operation: &str, now: Instant) {
        self.operation(operation, now).record_served(now);
        self.all.record_served(now);
    }

    fn read_headers(&mut self, headers: &Headers, now: Instant) {
        match remaining(headers) {
            // A short time is often a rounded number of seconds: too coarse to replace a rate that rejections have shown, and to
            // spread requests over it.
            Some((0, reset)) if reset >= SPREAD_FROM || self.all.interval.is_zero() => {
                let until = now + reset.min(PERIOD_MAX);
                self.all.open_at = self.all.open_at.max(until);
            }
            Some((left, reset)) if left > 0 && (SPREAD_FROM..=PERIOD_MAX).contains(&reset) => {
                let even = reset.checked_div(left).unwrap_or_default();
                self.window = Some((now + reset, even.min(INTERVAL_MAX)));
            }
            Some(_) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pace::USELESS_MAX;
    use super::*;

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
            slot: schedule.reserve(READ),
            tries,
            may_be_a_conflict: false,
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
        let interval = || {
            lock(&schedule.0)
                .operation(READ, clock::monotonic())
                .interval
        };
        served(40);
        assert!(interval().is_zero());
        let overlapping = RequestAttempt {
            may_be_a_conflict: true,
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
        assert!(schedule.reserve(READ).at > clock::monotonic() + Duration::from_millis(900));
    }

    #[test]
    fn hooks_take_slots_of_a_limited_target() {
        let schedule = Schedule::new();
        assert!(schedule.reserve_for_hook() <= clock::monotonic());
        (0..40).for_each(|_| schedule.count_hook());
        let hour = clock::monotonic() + Duration::from_secs(3600);
        for operation in ["GET /", "POST /", "GET /a"] {
            let attempt = alone(&schedule, 0);
            schedule.learn(operation, &answer(429, Some("1")), &attempt, hour);
        }
        assert_eq!(
            lock(&schedule.0).all.interval,
            Duration::from_millis(25) * 21 / 20
        );
        assert!(schedule.reserve_for_hook() > clock::monotonic() + Duration::from_millis(900));
    }

    #[test]
    fn a_limit_of_hooks_spaces_hooks_and_leaves_requests() {
        let schedule = Schedule::new();
        (0..40).for_each(|_| schedule.count_hook());
        schedule.learn_from_hook(Duration::from_secs(1));
        schedule.learn_from_hook(Duration::from_secs(1));
        let now = clock::monotonic();
        let first = schedule.reserve_for_hook();
        assert!(first > now + Duration::from_millis(900));
        let measured = Duration::from_millis(25) * 21 / 20;
        assert_eq!(schedule.reserve_for_hook() - first, measured);
        assert!(!schedule.is_limited() && !schedule.is_blocked(READ));
        assert!(schedule.reserve(READ).at <= clock::monotonic());
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
        assert!(
            lock(&schedule.0)
                .operation(READ, clock::monotonic())
                .interval
                .is_zero()
        );
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
        assert!(schedule.reserve(READ).at <= clock::monotonic());
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
            let state = lock(&schedule.0);
            state.spacing(clock::monotonic()).as_millis()
        };
        assert_eq!(pause("many", "9"), 0);
        assert_eq!(pause("2", "1"), 0, "a short window is not spread");
        assert_eq!(pause("40", "8"), 200);
        assert_eq!(pause("10", "999"), 200, "too far away");
        assert_eq!(pause("160", "8"), 50, "a new window has a rate of its own");
        pause("0", "3");
        assert!(schedule.reserve(READ).at > clock::monotonic() + Duration::from_secs(2));
        let mut rejection = answer(429, None);
        rejection.headers.set("RateLimit-Remaining", "0");
        rejection.headers.set("RateLimit-Reset", "7");
        let next = schedule.learn(READ, &rejection, &alone(&schedule, TRIES_MAX), hour);
        assert_eq!(next, Next::Again(Duration::from_secs(7)));
    }

    /// How a target limits requests, each second.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Limit {
        /// So many between two whole seconds.
        Window(u32),
        /// So many on average, after a burst.
        Bucket { burst: u32, rate: u32 },
    }

    /// A simulated target.
    struct Target {
        limit: Limit,
        has_retry_after: bool,
        /// Whether it states what remains of the limit.
        has_headers: bool,
        left: f64,
        at: Duration,
    }

    impl Target {
        fn new(limit: Limit) -> Self {
            let (Limit::Window(left) | Limit::Bucket { burst: left, .. }) = limit;
            Self {
                limit,
                has_retry_after: true,
                has_headers: false,
                left: f64::from(left),
                at: Duration::ZERO,
            }
        }

        fn answer(&mut self, at: Duration) -> Response {
            match self.limit {
                Limit::Window(rate) if at.as_secs() != self.at.as_secs() => {
                    self.left = f64::from(rate);
                }
                Limit::Window(_) => {}
                Limit::Bucket { burst, rate } => {
                    let more = at.saturating_sub(self.at).as_secs_f64() * f64::from(rate);
                    self.left = (self.left + more).min(f64::from(burst));
                }
            }
            self.at = at;
            let is_served = self.left >= 1.0;
            self.left -= if is_served { 1.0 } else { 0.0 };
            let wait = self.has_retry_after.then_some("1");
            let mut response = match is_served {
                true => answer(200, None),
                false => answer(429, wait),
            };
            if self.has_headers {
                let left = self.left.floor().to_string();
                response.headers.set("RateLimit-Remaining", &left);
                response.headers.set("RateLimit-Reset", "1");
            }
            response
        }
    }

    #[derive(Default)]
    struct Simulated {
        served: u32,
        rejected: u32,
        /// How often rejections were taken not to depend on the rate.
        given_up: u32,
        /// How long it took to serve this many requests.
        took: Duration,
    }

    /// What a worker does next.
    enum Turn {
        Reserve,
        Send(RequestSlot),
        Receive(RequestSlot, Box<Response>),
    }

    /// Eight workers send requests of four operations until so many were served, and each answer takes 20 ms.
    fn simulate(mut target: Target, requests: u32) -> Simulated {
        const WORKERS: usize = 8;
        const OPERATIONS: [&str; 4] = ["GET /", "POST /", "GET /a", "POST /a"];
        let began = clock::monotonic();
        let deadline = began + Duration::from_secs(100_000);
        let mut state = State::new(began);
        let mut seen = Simulated::default();
        let mut was_given_up = false;
        let mut order = 0;
        let mut due: BTreeMap<(Instant, usize), (u32, usize, Turn)> = (0..WORKERS)
            .map(|worker| ((began, worker), (0, worker, Turn::Reserve)))
            .collect();
        while let Some(((now, _), (tries, worker, turn))) = due.pop_first() {
            order += 1;
            let operation = OPERATIONS[(worker + seen.served as usize) % OPERATIONS.len()];
            let (at, tries, turn) = match turn {
                Turn::Reserve => {
                    let slot = state.reserve(operation, now);
                    (slot.at, tries, Turn::Send(slot))
                }
                Turn::Send(_) if state.is_blocked(operation, now) => (now, tries, Turn::Reserve),
                Turn::Send(slot) => {
                    let response = Box::new(target.answer(now - began));
                    let at = now + Duration::from_millis(20);
                    (at, tries, Turn::Receive(slot, response))
                }
                Turn::Receive(slot, response) => {
                    let attempt = RequestAttempt {
                        slot,
                        tries,
                        may_be_a_conflict: false,
                    };
                    let next = state.learn((operation, &response), &attempt, deadline, now);
                    let is_given_up = state.all.is_given_up();
                    seen.given_up += u32::from(is_given_up && !was_given_up);
                    was_given_up = is_given_up;
                    match next {
                        Next::Take => {
                            seen.served += 1;
                            (now, 0, Turn::Reserve)
                        }
                        Next::Again(_) => {
                            seen.rejected += 1;
                            (now, tries + 1, Turn::Reserve)
                        }
                        Next::AgainAlone(wait) => {
                            seen.rejected += 1;
                            (now + wait, tries + 1, Turn::Reserve)
                        }
                        Next::GiveUp => panic!("{:?}: given up", target.limit),
                    }
                }
            };
            if seen.served == requests {
                seen.took = now - began;
                break;
            }
            due.insert((at, WORKERS + order), (tries, worker, turn));
        }
        seen
    }

    #[test]
    fn a_limit_is_used_whatever_its_rate_and_headers() {
        const SECONDS: u32 = 300;
        for rate in [5, 10, 20, 40] {
            for burst in [rate, 100] {
                for (has_retry_after, has_headers) in [(true, false), (false, false), (true, true)]
                {
                    let limits = [Limit::Window(rate), Limit::Bucket { burst, rate }];
                    for limit in limits {
                        let seen = simulate(
                            Target {
                                has_retry_after,
                                has_headers,
                                ..Target::new(limit)
                            },
                            rate * SECONDS,
                        );
                        let case = format!(
                            "{limit:?}, Retry-After {has_retry_after}, headers {has_headers}: {} s, {} rejected, given up {}",
                            seen.took.as_secs(),
                            seen.rejected,
                            seen.given_up
                        );
                        assert!(seen.took.as_secs_f64() < f64::from(SECONDS) * 1.2, "{case}");
                        // The first rate after a burst is far too high, which looks as if lower ones did not help.
                        let is_high = limit == Limit::Bucket { burst: 100, rate } && rate < 40;
                        let given_up_max = if is_high { 3 } else { 0 };
                        assert!(seen.given_up <= given_up_max, "{case}");
                        assert!(seen.rejected < 60 || is_high, "{case}");
                    }
                }
            }
        }
    }
}
