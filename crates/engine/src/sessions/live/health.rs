//! Detects a service that answered before and does no more, which ends the run.
//!
//! - A sign is a refused connection, silence for a time, an answer of a gateway without a service behind it, or a rejection of
//!   credentials that were accepted before.
//! - A probe confirms a sign: it repeats the last read that the service answered. Any other answer shows that it is there.
//! - A service that is not asked for a time is probed as well, because all scenarios may wait.

use super::rate_limit::requested_wait;
use super::target::Live;
use crate::session::SendFault;
use conformant_base::clock;
use conformant_base::http::{Cause, Request, Response};
use conformant_base::parallel::lock;
use conformant_net::transport::Limits;
use conformant_rulebook::scenario::Credentials;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a service may refuse connections, or only its gateway may answer; it may be restarting.
const GONE_AFTER: Duration = Duration::from_secs(2);
/// How long a service that answered quickly may not answer at all, if an exchange may take the default time.
const SILENT_AFTER: Duration = Duration::from_millis(4_300);
/// How many times the slowest answer of the run a service may not answer at all, up to the time limit of exchanges.
const SILENT_AFTER_SLOWEST: u32 = 4;
/// The time without an answer after which a service is probed.
const PROBED_AFTER: Duration = Duration::from_millis(1_800);
/// The minimum time for the answer to a probe.
const PROBE_MIN: Duration = Duration::from_millis(1_500);
/// Interval between two looks at all services, and between two probes.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const PROBE_EVERY: Duration = Duration::from_millis(300);
/// A response with a larger body is not requested again as a probe.
const PROBE_BODY_MAX: usize = 64 * 1024;
/// Requests without any answer in time, to a service that never answered, with which the run ends.
const UNANSWERED_TO_END: usize = 3;
/// Longest pause that a gateway may ask for.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Why a service is gone for a run whose credentials it accepted before.
pub const EXPIRED: &str =
    "it answers 401 to the credentials that it accepted before: they may have expired";

/// The state of all services.
#[derive(Debug, Default)]
pub(super) struct Health {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    services: BTreeMap<String, Service>,
    /// The service that ended the run, and why.
    gone: Option<(String, String)>,
    exchanges: u64,
}

#[derive(Debug, Default)]
struct Service {
    /// When it answered last; `None` before its first answer.
    answered_at: Option<Instant>,
    /// The longest time of an answer so far.
    slowest: Duration,
    /// The last read that it answered, and whether that read had the configured credentials.
    read: Option<(Request, bool)>,
    /// Whether it accepted a request with the configured credentials.
    has_admitted: bool,
    /// When the exchanges in flight began.
    in_flight: BTreeMap<u64, Instant>,
    doubt: Option<Doubt>,
    probed_at: Option<Instant>,
    /// Why it could not be reached, if it never answered.
    unreached: Option<String>,
    /// How many requests ended with their time limit, if it never answered.
    unanswered: usize,
}

/// A sign that a service is gone.
#[derive(Clone, Debug)]
struct Doubt {
    since: Instant,
    /// When the last sign was seen. An answer to an earlier request does not refute it.
    seen_at: Instant,
    why: String,
    /// How long it must last.
    lasting: Duration,
}

/// An exchange in flight, until it is dropped.
pub(super) struct InFlightExchange<'a> {
    health: &'a Health,
    service: &'a str,
    number: u64,
    began: Instant,
}

impl Health {
    /// Registers an exchange before it is sent.
    pub(super) fn begin<'a>(&'a self, service: &'a str) -> InFlightExchange<'a> {
        let began = clock::monotonic();
        let mut state = lock(&self.state);
        state.exchanges += 1;
        let number = state.exchanges;
        let known = state.services.entry(service.to_owned()).or_default();
        known.in_flight.insert(number, began);
        InFlightExchange {
            health: self,
            service,
            number,
            began,
        }
    }

    /// Whether a request was sent to a service.
    pub(super) fn has_been_tried(&self, service: &str) -> bool {
        lock(&self.state).services.contains_key(service)
    }

    /// Whether a service has answered none of several requests in time.
    pub(super) fn is_mute(&self, service: &str) -> bool {
        let state = lock(&self.state);
        let known = state.services.get(service);
        known.is_some_and(|known| {
            known.answered_at.is_none() && known.unanswered >= UNANSWERED_TO_END
        })
    }

    pub(super) fn gone(&self) -> Option<(String, String)> {
        lock(&self.state).gone.clone()
    }

    /// The services that never answered, and why.
    pub(super) fn never_reached(&self) -> BTreeMap<String, String> {
        let state = lock(&self.state);
        let unreached = state.services.iter();
        unreached
            .filter_map(|(name, service)| Some((name.clone(), service.unreached.clone()?)))
            .collect()
    }

    /// Whether there is a sign that a service is gone.
    fn is_in_doubt(&self, service: &str) -> bool {
        let state = lock(&self.state);
        let service = state.services.get(service);
        service.is_some_and(|service| service.doubt.is_some())
    }

    /// Services in doubt, or from which nothing came for a time.
    fn to_probe(&self, now: Instant) -> Vec<String> {
        let state = lock(&self.state);
        let is_due = |service: &&Service| {
            let is_early = |at: Instant| now.saturating_duration_since(at) < PROBE_EVERY;
            let quiet = service.quiet_for(now);
            let is_quiet = quiet.is_some_and(|quiet| quiet >= PROBED_AFTER.max(service.slowest));
            (service.doubt.is_some() || is_quiet) && !service.probed_at.is_some_and(is_early)
        };
        let due = state.services.iter().filter(|(_, service)| is_due(service));
        due.map(|(name, _)| name.clone()).collect()
    }

    /// Leaves out time in which this program did not run, because its machine was overloaded.
    fn leave_out(&self, late: Duration) {
        for service in lock(&self.state).services.values_mut() {
            let times = service.in_flight.values_mut();
            let times = times.chain(&mut service.answered_at);
            let since = service.doubt.as_mut().map(|doubt| &mut doubt.since);
            times.chain(since).for_each(|time| *time += late);
        }
    }
}

impl InFlightExchange<'_> {
    /// Evaluates the outcome of the exchange.
    pub(super) fn note(
        self,
        request: &Request,
        outcome: &Result<Response, SendFault>,
        has_own_credentials: bool,
    ) {
        let mut state = lock(&self.health.state);
        let Some(service) = state.services.get_mut(self.service) else {
            return;
        };
        match outcome {
            Ok(response) => {
                match sign_in_answer(response, has_own_credentials && service.has_admitted) {
                    Some((why, lasting)) => service.doubt(self.began, why, lasting),
                    None => {
                        // What other credentials get says nothing of those that may have expired.
                        let is_expiring = |doubt: &Doubt| doubt.why == EXPIRED;
                        if has_own_credentials || !service.doubt.as_ref().is_some_and(is_expiring) {
                            service.answered(self.began);
                        }
                        service.has_admitted |= has_own_credentials && response.is_success();
                        let is_read = request.method == "GET" && response.is_success();
                        // A read with the configured credentials also shows that they are still accepted.
                        let is_better = has_own_credentials
                            || service.read.as_ref().is_none_or(|(_, has_own)| !has_own);
                        if is_read && is_better && response.body.len() <= PROBE_BODY_MAX {
                            service.read = Some((request.clone(), has_own_credentials));
                        }
                    }
                }
            }
            Err(fault) if service.answered_at.is_none() => {
                if let Some(why) = why_unreached(fault) {
                    service.unreached.get_or_insert(why);
                    service.unanswered += usize::from(is_silence(&fault.cause));
                }
            }
            Err(fault) if is_sign(&fault.cause) => {
                // An exchange that ends with its time limit has been silent since it began.
                let why = fault.to_string();
                service.doubt(self.began, why, GONE_AFTER);
            }
            Err(_) => {}
        }
    }
}

impl Drop for InFlightExchange<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.health.state);
        if let Some(service) = state.services.get_mut(self.service) {
            service.in_flight.remove(&self.number);
        }
    }
}

impl Service {
    fn answered(&mut self, began: Instant) {
        let now = clock::monotonic();
        self.answered_at = Some(now);
        self.slowest = self.slowest.max(now.saturating_duration_since(began));
        self.unreached = None;
        match &mut self.doubt {
            Some(doubt) if began < doubt.seen_at => doubt.since = doubt.since.max(now),
            doubt => *doubt = None,
        }
    }

    fn doubt(&mut self, since: Instant, why: String, lasting: Duration) {
        // Only a service that answered before can be gone.
        let Some(answered_at) = self.answered_at else {
            return;
        };
        let known = self.doubt.get_or_insert_with(|| Doubt {
            since: since.max(answered_at),
            seen_at: since,
            why: why.clone(),
            lasting,
        });
        known.seen_at = clock::monotonic();
        known.why = why;
        known.lasting = known.lasting.max(lasting);
        known.since = known.since.min(since.max(answered_at));
    }

    /// How long nothing has come from it, if it answered before.
    fn quiet_for(&self, now: Instant) -> Option<Duration> {
        let oldest = self.in_flight.values().min();
        let since = self
            .answered_at?
            .max(oldest.copied().unwrap_or(self.answered_at?));
        Some(now.saturating_duration_since(since))
    }
}

impl Live {
    /// Looks at all services until the run is done.
    pub(super) fn watch_services(&self, is_done: &dyn Fn() -> bool) {
        let mut looked_at = clock::monotonic();
        while !is_done() && !self.is_over() {
            clock::sleep(LOOK_EVERY);
            let now = clock::monotonic();
            let late = now.saturating_duration_since(looked_at + LOOK_EVERY);
            if late > LOOK_EVERY {
                self.health.leave_out(late);
            }
            for service in self.health.to_probe(now) {
                self.probe(&service);
            }
            looked_at = clock::monotonic();
        }
    }

    /// Why what a scenario observed says nothing about these services, once it is known whether they still answer.
    pub(super) fn lost(&self, services: &[&str]) -> Option<String> {
        for service in services {
            while self.health.is_in_doubt(service) && !self.is_over() {
                if self.probe(service).is_some() {
                    clock::sleep(LOOK_EVERY);
                }
            }
        }
        let gone = self.health.gone();
        let gone = gone.map(|(service, _)| format!("{service} stopped answering"));
        gone.or_else(|| {
            let mut doubtful = services.iter().filter(|s| self.health.is_in_doubt(s));
            let service = doubtful.next()?;
            Some(format!("the run ended before {service} answered again"))
        })
    }

    /// Repeats the last read of a service. Returns the fault if it was not answered, and ends the run if that lasts.
    pub(super) fn probe(&self, service: &str) -> Option<SendFault> {
        let base = self.bases.get(service)?;
        let now = clock::monotonic();
        let (request, within, silent_after) = {
            let mut state = lock(&self.health.state);
            // All services may be on one loaded machine.
            let slowest = state.services.values().map(|known| known.slowest).max();
            let silent_after =
                silent_after(self.client.limits().timeout, slowest.unwrap_or_default());
            let known = state.services.entry(service.to_owned()).or_default();
            known.probed_at = Some(now);
            let quiet = known.quiet_for(now).unwrap_or_default();
            let least = PROBE_MIN.max(known.slowest * 2);
            let within = silent_after.saturating_sub(quiet).max(least);
            let read = known.read.clone();
            let is_own = read.as_ref().is_some_and(|(_, has_own)| *has_own);
            let documented = (known.has_admitted && !is_own)
                .then(|| self.probe_with(service, Credentials::Default));
            let documented = documented.flatten().map(|request| (request, true));
            (documented.or(read), within, silent_after)
        };
        let (request, has_own_credentials) =
            request.unwrap_or_else(|| (Request::new("OPTIONS", "/"), false));
        let limits = Limits {
            connect: self.client.limits().connect,
            timeout: within,
            body: self.client.limits().body,
            rate: None,
        };
        // A client of its own tries to connect although the other one gave up.
        let client = self.settings.reach.client(limits, &self.bases);
        let client = client.interrupted_by(std::sync::Arc::clone(&self.interrupted));
        let answer = client.send(base, &request, within);
        let answer = answer.map_err(SendFault::from);
        if answer.is_ok() {
            self.client.try_again(base.origin());
        }
        let mut state = lock(&self.health.state);
        let known = state.services.get_mut(service)?;
        let (why, since, lasting) = match &answer {
            Ok(response) => match sign_in_answer(response, has_own_credentials) {
                Some((why, lasting)) => (why, now, lasting),
                None => {
                    known.answered(now);
                    return None;
                }
            },
            Err(fault) if is_sign(&fault.cause) => {
                let why = fault.to_string();
                let quiet = known.quiet_for(now).unwrap_or_default();
                match fault.cause.is_unreachable() {
                    true => (why, now, GONE_AFTER),
                    false => (why, now.checked_sub(quiet).unwrap_or(now), silent_after),
                }
            }
            Err(_) => return answer.err(),
        };
        known.doubt(since, why.clone(), lasting);
        let is_gone = |doubt: &Doubt| doubt.since.elapsed() >= doubt.lasting;
        if known.doubt.as_ref().is_some_and(is_gone) && state.gone.is_none() {
            state.gone = Some((service.to_owned(), why.clone()));
            self.interrupted.store(true, Ordering::Relaxed);
        }
        answer
            .err()
            .or(Some(SendFault::new(Cause::Unreachable, why)))
    }
}

/// How long a service may be silent, for the time limit of exchanges and the slowest answer of the run.
fn silent_after(limit: Duration, slowest: Duration) -> Duration {
    let by_limit = SILENT_AFTER.max(limit * 43 / 100);
    by_limit.max(limit.min(slowest * SILENT_AFTER_SLOWEST))
}

/// Whether no answer came, for a reason on the way to the service.
fn is_sign(cause: &Cause) -> bool {
    cause.is_unreachable()
        || matches!(
            cause,
            Cause::WriteTimeout { .. }
                | Cause::FirstByteTimeout
                | Cause::HeadersTimeout
                | Cause::BodyTimeout { .. }
                | Cause::Reset
                | Cause::EmptyResponse
                | Cause::Truncated
                | Cause::Tls
        )
}

/// Whether a request was not answered in time.
fn is_silence(cause: &Cause) -> bool {
    matches!(cause, Cause::WriteTimeout { .. } | Cause::FirstByteTimeout)
}

/// Why a service without any answer so far cannot be reached. A part of an HTTP answer shows that it can.
fn why_unreached(fault: &SendFault) -> Option<String> {
    let cause = &fault.cause;
    if cause.is_unreachable() || *cause == Cause::Tls {
        return Some(fault.detail.clone());
    }
    if *cause == Cause::NotHttp {
        return Some(format!(
            "what answers does not speak HTTP: {}",
            fault.detail
        ));
    }
    let is_silent = is_silence(cause) || matches!(cause, Cause::Reset | Cause::EmptyResponse);
    is_silent.then(|| format!("it answered no request ({cause}: {})", fault.detail))
}

/// The sign in an answer, and how long it must last. A rejection is one where the same credentials were accepted before.
fn sign_in_answer(response: &Response, was_admitted: bool) -> Option<(String, Duration)> {
    if response.status == 401 && was_admitted {
        return Some((EXPIRED.to_owned(), GONE_AFTER));
    }
    let pause = requested_wait(&response.headers).unwrap_or_default();
    matches!(response.status, 502..=504).then(|| {
        let why = format!("it answers nothing but status {}", response.status);
        (why, GONE_AFTER + pause.min(PAUSE_MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::{Health, SILENT_AFTER, silent_after};
    use crate::session::SendFault;
    use conformant_base::http::{Cause, Request, Response};
    use std::time::Duration;

    #[test]
    fn only_the_answer_to_a_later_request_shows_that_a_service_is_there() {
        let health = Health::default();
        let ask = Request::new("POST", "/");
        let answered: Result<_, SendFault> = Ok(Response::new(200, "text/plain", ""));
        let failed: Result<_, SendFault> = Ok(Response::new(502, "text/plain", ""));
        health.begin("chat").note(&ask, &answered, false);
        let earlier = health.begin("chat");
        health.begin("chat").note(&ask, &failed, false);
        earlier.note(&ask, &answered, false);
        assert!(health.is_in_doubt("chat"));
        health.begin("chat").note(&ask, &answered, false);
        assert!(!health.is_in_doubt("chat"));
    }

    #[test]
    fn a_rejection_is_a_sign_where_the_credentials_were_accepted_before() {
        let answered = |status| Ok::<_, SendFault>(Response::new(status, "text/plain", ""));
        for (method, first, has_own, second, is_sign) in [
            ("GET", Some(200), true, true, true),
            ("POST", Some(201), true, true, true),
            ("GET", Some(200), true, false, false),
            ("GET", Some(200), false, true, false),
            ("GET", Some(401), true, true, false),
            ("GET", None, true, true, false),
        ] {
            let health = Health::default();
            let ask = Request::new(method, "/");
            if let Some(status) = first {
                health.begin("chat").note(&ask, &answered(status), has_own);
            }
            health.begin("chat").note(&ask, &answered(401), second);
            assert_eq!(
                health.is_in_doubt("chat"),
                is_sign,
                "{method} {first:?} {has_own} {second}"
            );
        }
    }

    #[test]
    fn what_other_credentials_get_does_not_show_that_the_own_ones_are_accepted() {
        let health = Health::default();
        let ask = Request::new("POST", "/");
        let answered = |status| Ok::<_, SendFault>(Response::new(status, "text/plain", ""));
        health.begin("chat").note(&ask, &answered(201), true);
        health.begin("chat").note(&ask, &answered(401), true);
        health.begin("chat").note(&ask, &answered(401), false);
        assert!(health.is_in_doubt("chat"));
        health.begin("chat").note(&ask, &answered(400), true);
        assert!(!health.is_in_doubt("chat"));
    }

    #[test]
    fn a_service_that_answers_no_request_in_time_was_never_reached() {
        let health = Health::default();
        let ask = Request::new("GET", "/");
        let late = || -> Result<Response, SendFault> {
            Err(SendFault::new(Cause::FirstByteTimeout, "nothing within 2s"))
        };
        health.begin("chat").note(&ask, &late(), false);
        let why = &health.never_reached()["chat"];
        assert!(why.starts_with("it answered no request (timeout"), "{why}");
        health.begin("chat").note(&ask, &late(), false);
        assert!(!health.is_mute("chat"));
        health.begin("chat").note(&ask, &late(), false);
        assert!(health.is_mute("chat"));
        let answered = Ok(Response::new(200, "text/plain", ""));
        health.begin("chat").note(&ask, &answered, false);
        health.begin("chat").note(&ask, &late(), false);
        assert!(health.never_reached().is_empty());
    }

    #[test]
    fn a_slow_service_may_be_silent_for_longer() {
        let after = |limit, slowest| {
            silent_after(Duration::from_secs(limit), Duration::from_millis(slowest))
        };
        assert_eq!(after(10, 0), SILENT_AFTER);
        assert_eq!(after(10, 1_000), SILENT_AFTER);
        assert_eq!(after(10, 2_000), Duration::from_secs(8));
        // An exchange beyond its time limit is a failure of its own.
        assert_eq!(after(10, 5_000), Duration::from_secs(10));
        assert_eq!(after(1, 900), SILENT_AFTER);
        assert_eq!(after(100, 0), Duration::from_secs(43));
    }
}
