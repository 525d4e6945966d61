//! Session of one scenario with live targets: requests, waits, held resources, and disturbances by other clients.

use super::admission::Closed;
use super::barrier::Participant;
use super::clock::{ADVANCE_FROM, ADVANCE_FURTHER_FROM, CLOCK_OFF_MS};
use super::lease::Lease;
use super::pacing::{Next, RequestAttempt, RequestSlot, TRIES_MAX};
use super::phone_numbers::UsedNumbers;
use super::rate_limit::is_limit;
use super::slots::Slot;
use super::target::{Live, NO_CALLBACK_YET, SET_CALLBACK, WAIT_SLICE};
use crate::provision::is_freed;
use crate::session::race::{Acted, Action};
use crate::session::{Callbacks, Holder, HookFault, SendFault, Session};
use crate::settings::Settings;
use crate::stop::Stop;
use conformant_base::clock::{self, Timestamp};
use conformant_base::http::{Cause, Request, Response};
use conformant_base::parallel::lock;
use conformant_net::transport::{Answer, BaseUrl, BudgetShare};
use conformant_record::{Part, Spent};
use conformant_rulebook::hooks::ADVANCE_CLOCK;
use conformant_rulebook::scenario::Credentials;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Status for missing or wrong credentials.
const UNAUTHORIZED: u16 = 401;

/// How long to listen for an unexpected callback, as a multiple of the longest observed delay.
const SILENCE_TIMES: u32 = 5;
/// The minimum time to wait for a callback that was missing before.
const CONFIRMED_AFTER: Duration = Duration::from_secs(5);

/// Waits in a row without a callback after which further ones for the same rules are short: these rules are broken.
const KNOWN_AFTER: u32 = 2;

/// Whether a request may change something.
fn is_change(request: &Request) -> bool {
    !matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS")
}

/// The requests that a rate limit of one operation concerns: those of the same method and path, whatever the identifiers in it.
pub(super) fn shape_of(host: &str, request: &Request) -> String {
    let path = request.target.split(['?', '#']).next().unwrap_or_default();
    let is_name = |text: &&str| !text.contains(|c: char| c.is_ascii_digit() || c == '%');
    let segments = path.split('/').filter(is_name);
    format!(
        "{host} {} {}",
        request.method,
        segments.collect::<Vec<_>>().join("/")
    )
}

pub(super) struct LiveScenario<'a> {
    pub(super) live: &'a Live,
    /// Number of sessions that were opened before it.
    pub(super) nth: u64,
    pub(super) callbacks: Callbacks,
    /// Its share of the clock barrier; `None` if its waits do not move the target's clock.
    pub(super) participant: Option<Participant<'a>>,
    /// Released once the scenario is judged, because its evidence occupies memory.
    pub(super) share: BudgetShare,
    /// `None` while it waits.
    pub(super) slot: RefCell<Option<Slot<'a>>>,
    pub(super) opened: Instant,
    /// Offset of the target's clock at the beginning, plus the exact advances by this scenario. Later estimates would
    /// distort the time between its exchanges.
    pub(super) ahead_ms: Cell<i64>,
    /// How far another client had moved the clock when this scenario moved it.
    pub(super) off_ms: Cell<i64>,
    /// A request on a connection that the target closed.
    pub(super) cut_off: RefCell<Option<String>>,
    /// Whether its last request was in flight together with another one of the run.
    pub(super) has_overlapped: Cell<bool>,
    /// Whether it set the callback address of a whole application.
    pub(super) address_set: Cell<bool>,
    /// The kinds of callbacks whose address it set.
    pub(super) callback_kinds: RefCell<BTreeSet<String>>,
    /// Whether an expected callback did not come.
    pub(super) callback_missed: Cell<bool>,
    /// Whether a wait for callbacks ended without one before, so that a shorter wait confirms it.
    pub(super) confirms_missing_callback: Cell<bool>,
    /// Its values of the exclusive setting.
    pub(super) numbers: Option<UsedNumbers<'a>>,
    /// A service that rejected a request before it had accepted any.
    pub(super) turned_away: RefCell<Option<String>>,
    pub(super) lease: Option<Lease<'a>>,
    /// Why the lease that it needs is missing.
    pub(super) withheld: Option<Stop>,
    pub(super) waited: Cell<Spent>,
    /// Whether its waits moved the target's clock.
    pub(super) has_moved: Cell<bool>,
}

impl Drop for LiveScenario<'_> {
    /// Unsets callback addresses, and ends the holders of exclusive numbers.
    fn drop(&mut self) {
        let are_exclusive = self.live.phone_numbers.are_exclusive() && self.numbers.is_some();
        for kind in self.callback_kinds.take() {
            // Only if no other run can have set its own address meanwhile.
            if self.lease.is_some() || !self.live.settings.is_shared {
                let arguments = json!({"kind": kind, "url": ""});
                self.live.clean_up(SET_CALLBACK, &arguments);
            }
        }
        if are_exclusive {
            // If this fails, the next scenario finds the holder and waits for it.
            self.live.end_holders(self.live.holders.of(self.nth));
        }
        self.live.holders.leave(self.nth);
    }
}

impl Session for LiveScenario<'_> {
    fn settings(&self) -> &Settings {
        &self.live.settings
    }

    fn send(&self, service: &str, request: &Request) -> Result<Response, SendFault> {
        let base = &self.live.bases[service];
        self.send_within_limits((service, request), &|| {
            let response = self.noted(service, base, request)?;
            let again =
                (response.status == UNAUTHORIZED).then(|| self.with_new_token(service, request));
            match again.flatten() {
                Some(request) => self.noted(service, base, &request),
                None => Ok(response),
            }
        })
    }

    fn get_elsewhere(&self, origin: &str, request: &Request) -> Result<Response, SendFault> {
        let base = BaseUrl::parse(origin)
            .map_err(|why| SendFault::new(Cause::Redirect, format!("{origin}: {why}")))?;
        self.send_within_limits((origin, request), &|| self.exchange(&base, request))
    }

    /// Interrupts the run if the service rejects all credentials, or if its address leads elsewhere.
    fn answered(
        &self,
        service: &str,
        operation: &str,
        credentials: Credentials,
        answer: &Response,
    ) {
        let admission = &self.live.admission;
        if credentials != Credentials::Default {
            if admission.note_other_credentials(service, operation, answer) {
                self.turned_away.replace(Some(service.to_owned()));
            }
            return;
        }
        let ends_the_run = match admission.note(service, operation, answer) {
            Some(Closed::Denied) => self.live.is_denied(service),
            Some(Closed::Elsewhere) => self.live.leads_elsewhere(service).is_some(),
            None => false,
        } || self.live.is_read_only(service);
        if ends_the_run {
            self.live.interrupted.store(true, Ordering::Relaxed);
        }
        if admission.is_doubtful(service) {
            self.turned_away.replace(Some(service.to_owned()));
        }
    }

    fn has_hook(&self, name: &str) -> bool {
        self.live.settings.hooks.contains_key(name)
    }

    fn hook(&self, name: &str, arguments: &Value) -> Result<Value, HookFault> {
        let hook = self.live.settings.hooks.get(name);
        let hook = hook.ok_or(HookFault::Unsupported)?;
        self.idle(self.live.schedule.reserve_for_hook(), |s| &mut s.held_back);
        if name == ADVANCE_CLOCK {
            return self.advance_clock(hook, arguments);
        }
        let answer = self.spending(|s| &mut s.hooks, || self.live.call(hook, arguments))?;
        if name == SET_CALLBACK {
            self.address_set.set(true);
            let kind = arguments.get("kind").and_then(Value::as_str);
            let kinds = &self.callback_kinds;
            kinds.borrow_mut().extend(kind.map(str::to_owned));
        }
        if let Some(exclusive) = self.live.settings.exclusive()
            && exclusive.how.freed_by.hook == name
        {
            let argument = arguments.get(&exclusive.how.freed_by.holder);
            let ended = argument.and_then(Value::as_str).unwrap_or_default();
            self.live.holders.remove(ended);
        }
        Ok(answer)
    }

    fn act_concurrently(&self, actions: &[Action<'_>]) -> Result<Vec<Acted>, SendFault> {
        self.race(actions)
    }

    /// Long waits move the target's time by `advance_clock`; others take real time.
    fn wait(&self, duration: Duration) {
        let _counted = self.live.waits.for_time();
        self.let_pass(duration, ADVANCE_FURTHER_FROM, |s| &mut s.time);
    }

    fn wait_between_polls(&self, duration: Duration) {
        let _counted = self.live.waits.for_results();
        self.idle(clock::monotonic() + duration, |s| &mut s.time);
    }

    fn has_moved_the_clock(&self) -> bool {
        self.has_moved.get()
    }

    fn has_moved_the_clock_unseen(&self) -> bool {
        self.live.is_clock_unseen.load(Ordering::Relaxed)
    }

    fn listen(&self, duration: Duration) {
        let _counted = self.live.waits.for_callbacks();
        self.let_pass(duration, ADVANCE_FROM, |s| &mut s.callbacks);
    }

    fn waited(&self) -> Spent {
        self.waited.get()
    }

    fn now(&self) -> Timestamp {
        clock::from_unix_ms(
            clock::now()
                .as_millisecond()
                .saturating_add(self.ahead_ms.get()),
        )
    }

    fn callbacks(&self) -> Option<&Callbacks> {
        Some(&self.callbacks)
    }

    fn callback_max(&self, _declared: Duration, rules: &[&str]) -> Duration {
        let whole = self.live.settings.callback_max;
        if self.is_known_missing(rules) {
            let seen = Duration::from_millis(self.callback_ms_seen().unwrap_or_default());
            return whole.min((seen * SILENCE_TIMES).max(CONFIRMED_AFTER));
        }
        match self.confirms_missing_callback.get() {
            true => self.silence(whole, CONFIRMED_AFTER),
            false => whole,
        }
    }

    fn confirm_missing_callback(&self) {
        self.confirms_missing_callback.set(true);
    }

    /// A silence is observed for a multiple of the longest delay so far.
    fn silence(&self, declared: Duration, least: Duration) -> Duration {
        match self.callback_ms_seen() {
            None => declared,
            Some(seen) => declared.min((Duration::from_millis(seen) * SILENCE_TIMES).max(least)),
        }
    }

    fn callback_took(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).unwrap_or(NO_CALLBACK_YET - 1);
        let keep = |seen: u64| {
            let is_first = seen == NO_CALLBACK_YET;
            Some(if is_first { ms } else { seen.max(ms) })
        };
        // The closure always returns `Some`, so the result carries no information.
        let _ = self
            .live
            .callback_ms_max
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, keep);
    }

    fn address_is_shared(&self) -> bool {
        self.address_set.get()
    }

    fn callback_missing(&self, rules: &[String]) {
        self.callback_missed.set(true);
        let mut missing = lock(&self.live.missing_callbacks);
        for rule in rules {
            *missing.entry(rule.clone()).or_default() += 1;
        }
    }

    fn callbacks_came(&self, rules: &[&str], unmet: &[String]) {
        let is_met = |rule: &String| rules.contains(&rule.as_str()) && !unmet.contains(rule);
        lock(&self.live.missing_callbacks).retain(|rule, _| !is_met(rule));
    }

    fn has_missed_callback(&self) -> bool {
        self.callback_missed.get()
    }

    fn address_may_be_overwritten(&self) -> bool {
        let settings = &self.live.settings;
        let is_contended = settings.is_one_of_several && settings.is_shared;
        self.address_set.get() && self.lease.is_none() && is_contended
    }

    fn reachability_fault(&self, service: &str) -> Option<SendFault> {
        self.live.probe(service)
    }

    fn withheld(&self) -> Option<Stop> {
        self.withheld.clone()
    }

    fn lost(&self, services: &[&str]) -> Option<String> {
        self.live.lost(services)
    }

    fn is_live(&self) -> bool {
        true
    }

    fn seconds_since(&self, _began: Timestamp) -> f64 {
        self.opened.elapsed().as_secs_f64()
    }

    fn phone_number(&self) -> Option<String> {
        self.numbers.as_ref()?.assigned.clone()
    }

    fn shares_phone_number(&self, number: &str) -> bool {
        self.numbers
            .as_ref()
            .is_some_and(|used| used.may_share(number))
    }

    fn are_phone_numbers_exclusive(&self) -> bool {
        self.live.phone_numbers.are_exclusive()
    }

    fn make_phone_numbers_exclusive(&self) {
        self.live.phone_numbers.make_exclusive();
    }

    fn record_holder(&self, holder: Holder) {
        self.live.holders.record(holder, self.nth);
    }

    fn made_holders(&self, value: &str) -> Vec<Holder> {
        self.live.holders.with(value)
    }

    fn is_held_by_a_sibling(&self, holder: &str) -> bool {
        self.live.holders.is_of_another(holder, self.nth)
    }

    fn is_held_elsewhere(&self, value: &str, scope: &str) -> bool {
        self.live.holders.is_held_elsewhere(value, scope, self.nth)
    }

    fn may_be_needed_elsewhere(&self, holder: &str) -> bool {
        self.live.settings.is_shared && !self.live.holders.has_made(holder)
    }

    fn note_rejected_account(&self, service: &str) {
        self.live.admission.note_rejected_account(service);
    }

    fn turned_away(&self) -> Option<String> {
        let service = self.turned_away.borrow().clone();
        service.filter(|service| self.live.admission.is_doubtful(service))
    }

    fn avoid_overlap(&self) -> bool {
        let has_overlapped = self.has_overlapped.take();
        if has_overlapped {
            self.live.in_flight.serialize();
        }
        has_overlapped
    }

    fn cut_off(&self) -> Option<String> {
        self.cut_off.borrow().clone()
    }

    /// Another run may have moved the target's clock, or another scenario may have needed the same number.
    fn disturbed(&self) -> Option<String> {
        if self.check_phone_number() {
            return Some("another scenario used the same phone number".to_owned());
        }
        self.update_clock(self.live.query_clock()?);
        let off_ms = self.off_ms.get();
        (off_ms > CLOCK_OFF_MS).then(|| {
            format!(
                "another client moved the target's clock in the meantime, by {} s",
                off_ms / 1000
            )
        })
    }
}

impl LiveScenario<'_> {
    /// The longest delay of a callback so far, in milliseconds.
    fn callback_ms_seen(&self) -> Option<u64> {
        let seen = self.live.callback_ms_max.load(Ordering::Relaxed);
        (seen != NO_CALLBACK_YET).then_some(seen)
    }

    /// Whether callbacks that each of these rules demands did not come in whole waits before. A shorter wait for another one
    /// can then break no further rule.
    fn is_known_missing(&self, rules: &[&str]) -> bool {
        let missing = lock(&self.live.missing_callbacks);
        let is_known = |rule: &&str| {
            missing
                .get(*rule)
                .is_some_and(|count| *count >= KNOWN_AFTER)
        };
        !rules.is_empty() && rules.iter().all(is_known)
    }

    /// Sends a request and notes whether the service answers.
    fn noted(
        &self,
        service: &str,
        base: &BaseUrl,
        request: &Request,
    ) -> Result<Response, SendFault> {
        let in_flight = self.live.health.begin(service);
        let answer = self.exchange(base, request);
        let has_own = self.live.has_fixed_credentials(service, request);
        in_flight.note(request, &answer, has_own);
        if answer.is_err() && self.live.health.is_mute(service) {
            self.live.interrupted.store(true, Ordering::Relaxed);
        }
        if let Ok(answer) = &answer
            && has_own
            && is_change(request)
        {
            let shape = shape_of("", request);
            self.live
                .admission
                .note_write(service, shape, answer.status);
        }
        if let Ok(answer) = &answer
            && self.live.admission.note_attempt(service, answer.status)
        {
            self.turned_away.replace(Some(service.to_owned()));
        }
        answer
    }

    fn exchange(&self, base: &BaseUrl, request: &Request) -> Result<Response, SendFault> {
        let client = &self.live.client;
        client
            .exchange_in(&self.share, base, request, client.limits().timeout)
            .map(response_of)
            .map_err(|fault| {
                if fault.on_kept {
                    self.cut_off.replace(Some(fault.to_string()));
                }
                fault.into()
            })
    }

    /// The request with a new token, if a command prints tokens, because a token may expire early. Intentionally wrong
    /// credentials stay.
    fn with_new_token(&self, service: &str, request: &Request) -> Option<Request> {
        let bearer = self.live.settings.targets[service].bearer.as_ref()?;
        let carried = request
            .headers
            .get("Authorization")?
            .strip_prefix("Bearer ")?;
        let refused = (carried != conformant_judge::UNKNOWN).then_some(carried)?;
        // If the command fails now, the rejection is kept.
        let token = bearer.after(refused).ok()?;
        let mut again = request.clone();
        again
            .headers
            .set("Authorization", format!("Bearer {token}"));
        Some(again)
    }

    /// Sends a request, and retries as requested if there is a rate limit. After the first rejection of overlapping changes
    /// they are sent one after the other; reads never are.
    fn send_within_limits(
        &self,
        (host, request): (&str, &Request),
        send: &dyn Fn() -> Result<Response, SendFault>,
    ) -> Result<Response, SendFault> {
        let live = self.live;
        let operation = shape_of(host, request);
        let mut tries = 0;
        loop {
            let slot = self.await_request_slot(&operation);
            let sent = is_change(request).then(|| {
                self.spending(
                    |s| &mut s.turn,
                    || live.in_flight.register(1, || live.is_over()),
                )
            });
            let response = self.spending(|s| &mut s.answers, send)?;
            let has_overlapped = sent.is_some_and(|sent| sent.has_overlapped());
            self.has_overlapped.set(has_overlapped);
            if is_limit(&response) {
                match has_overlapped {
                    true => live.in_flight.serialize(),
                    false => live.in_flight.allow_overlap(),
                }
            }
            let attempt = RequestAttempt {
                slot,
                tries,
                may_be_a_conflict: has_overlapped && !live.in_flight.is_rate_limited(),
            };
            let next = live
                .schedule
                .learn(&operation, &response, &attempt, live.deadline);
            match next {
                Next::Take | Next::GiveUp => return Ok(response),
                Next::Again(wait) | Next::AgainAlone(wait) => {
                    live.waits.store_rate_limit(host, response.status, wait);
                    live.limit_reported.call_once(|| {
                        let ms = wait.as_millis();
                        (live.notify)(&format!(
                            "{host} has a rate limit (status {}): the run waits as requested, {ms} ms this time",
                            response.status
                        ));
                    });
                    tries += 1;
                    if tries >= TRIES_MAX && live.admission.is_unserved(host) {
                        live.interrupted.store(true, Ordering::Relaxed);
                        return Ok(response);
                    }
                    if matches!(next, Next::AgainAlone(_)) {
                        self.idle(clock::monotonic() + wait, |s| &mut s.held_back);
                    }
                }
            }
            if live.is_over() {
                return Ok(response);
            }
        }
    }

    /// Waits for the next slot of an operation. One that the scenario missed, for example while others computed, is replaced,
    /// because missed slots would be used all at once.
    fn await_request_slot(&self, operation: &str) -> RequestSlot {
        const MISSED_MAX: usize = 3;
        let schedule = &self.live.schedule;
        let mut missed = 0;
        loop {
            let slot = schedule.reserve(operation);
            self.idle(slot.at, |s| &mut s.held_back);
            let is_missed = missed < MISSED_MAX && schedule.is_missed(operation, &slot);
            if self.live.is_over() || !is_missed && !schedule.is_blocked(operation) {
                return slot;
            }
            missed += usize::from(is_missed);
        }
    }

    /// Waits until then without a slot.
    pub(super) fn idle(&self, until: Instant, on: Part) {
        if until <= clock::monotonic() {
            return;
        }
        drop(self.slot.take());
        self.spending(on, || self.live.pass(until));
        let slot = self.spending(|s| &mut s.turn, || self.live.slots.take(self.nth));
        self.slot.replace(Some(slot));
    }

    /// Runs `work` and records its duration.
    pub(super) fn spending<T>(&self, on: Part, work: impl FnOnce() -> T) -> T {
        let began = clock::monotonic();
        let done = work();
        let mut waited = self.waited.get();
        *on(&mut waited) += began.elapsed().as_secs_f64();
        self.waited.set(waited);
        done
    }

    /// Advances the target's time if possible and the duration is long enough, otherwise waits.
    fn let_pass(&self, duration: Duration, moved_from: Duration, on: Part) {
        let participant = self.participant.as_ref();
        let participant = participant.filter(|_| duration >= moved_from);
        let has_moved = participant.is_some_and(|p| self.wait_with_others(p, duration));
        if has_moved {
            self.has_moved.set(true);
        } else {
            self.idle(clock::monotonic() + duration, on);
        }
    }

    /// Waits at the clock barrier; false if the clock cannot be moved.
    fn wait_with_others(&self, participant: &Participant<'_>, duration: Duration) -> bool {
        let shift = |by: Duration| {
            let seconds = match by.subsec_nanos() {
                0 => json!(by.as_secs()),
                _ => json!(by.as_secs_f64()),
            };
            // The lease may be old if the barrier has been shared for long.
            let _renewed = self.lease.as_ref().map(|_| self.live.lease());
            let moved = self.hook(ADVANCE_CLOCK, &json!({ "seconds": seconds }));
            if let Err(fault) = &moved {
                self.live.clock_reported.call_once(|| {
                    (self.live.notify)(&format!(
                        "hook {ADVANCE_CLOCK} failed: {fault}; the run waits in real time instead"
                    ));
                });
            }
            moved.is_ok()
        };
        let follow = |by: Duration| {
            let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
            self.ahead_ms.set(self.ahead_ms.get().saturating_add(by_ms));
        };
        let look = (WAIT_SLICE, || self.live.is_over());
        let (began, before) = (clock::monotonic(), self.waited.get().hooks);
        drop(self.slot.take());
        let has_passed = participant.wait(duration, shift, follow, look);
        self.slot.replace(Some(self.live.slots.take(self.nth)));
        let mut waited = self.waited.get();
        // The duration of the hook is recorded separately.
        waited.turn += began.elapsed().as_secs_f64() - (waited.hooks - before);
        self.waited.set(waited);
        has_passed
    }

    /// Whether numbers turned out to be exclusive while it shared them. If its own request shows that they are, all scenarios
    /// of the run have numbers of their own from now on.
    fn check_phone_number(&self) -> bool {
        let phone_numbers = &self.live.phone_numbers;
        let Some(used) = self.numbers.as_ref().filter(|used| used.is_shared) else {
            return false;
        };
        let is_freed = |made: &Holder| is_freed(self, &made.path);
        let may_be_freed = used.assigned.is_some() && !phone_numbers.are_exclusive();
        if may_be_freed && self.live.holders.of(self.nth).iter().any(is_freed) {
            phone_numbers.make_exclusive();
        }
        phone_numbers.are_exclusive()
    }
}

/// An answer with its anomalies on the wire, except those that depend on timing.
pub(super) fn response_of(answer: Answer) -> Response {
    Response {
        oddities: answer
            .notes
            .iter()
            .filter(|note| note.is_written_by_target())
            .map(ToString::to_string)
            .collect(),
        ..answer.response
    }
}
