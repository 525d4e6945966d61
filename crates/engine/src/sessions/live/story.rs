//! A story's session with living targets: what it sends, waits for and holds while it is told, and how others disturb it.

use super::ahead::Ahead;
use super::clock::{ADVANCE_CLOCK, ADVANCE_FROM, ADVANCE_FURTHER_FROM, CLOCK_OFF_MS, asked_ms};
use super::lease::Lease;
use super::limited::Next;
use super::persons::{Person, Persons};
use super::slots::Slot;
use super::target::{Live, SET_CALLBACK, WAIT_SLICE};
use super::together::Sharer;
use crate::provision::{freeing, is_freed};
use crate::race::{Acted, Action};
use crate::session::{Callbacks, HookFault, SendFault, Session};
use crate::sessions::hooks;
use crate::settings::Settings;
use conformant_base::clock::{self, Timestamp};
use conformant_base::http::{Cause, Request, Response};
use conformant_net::transport::{Answer, BaseUrl, BudgetShare};
use conformant_record::{Part, Spent};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// HTTP's word for credentials that are missing or no good.
const UNAUTHORIZED: u16 = 401;

/// Silence after callbacks is listened to for this many times as long as they took to come.
const SILENCE_TIMES: u32 = 5;
/// And at least for this long.
const SILENCE_MIN: Duration = Duration::from_secs(1);

pub(super) struct LiveStory<'a> {
    pub(super) live: &'a Live,
    /// How many stories were begun before it.
    pub(super) nth: u64,
    pub(super) callbacks: Callbacks,
    /// With those whose waits move the target's clock; nothing where its own do not.
    pub(super) sharer: Option<Sharer<'a>>,
    /// Given back once the story is judged: what it holds is its evidence.
    pub(super) share: RefCell<BudgetShare>,
    /// Nothing while it waits.
    pub(super) slot: RefCell<Option<Slot<'a>>>,
    pub(super) opened: Instant,
    /// How far the target's clock was ahead when it began, and then by its own moves, which are known exactly:
    /// what it learns meanwhile would make the time between two of its exchanges longer or shorter than it was.
    pub(super) ahead_ms: Cell<i64>,
    /// How far the clock had been moved by somebody else when this story moved it.
    pub(super) off_ms: Cell<i64>,
    /// A request that met a connection which the target closed.
    pub(super) cut_off: RefCell<Option<String>>,
    /// Callbacks of a whole application were led here.
    pub(super) address_set: Cell<bool>,
    pub(super) person: Option<Person<'a>>,
    /// A service that refused a request of this story before it had let in any.
    pub(super) turned_away: RefCell<Option<String>>,
    /// Holders of exclusive values that it made and did not end.
    pub(super) holders: RefCell<Vec<Holder>>,
    pub(super) lease: Option<Lease<'a>>,
    pub(super) waited: Cell<Spent>,
}

/// A holder of an exclusive value.
#[derive(Debug)]
pub(super) struct Holder {
    /// What the value is taken within.
    scope: String,
    /// Its key.
    key: String,
    /// The path that shows it.
    path: String,
}

impl Drop for LiveStory<'_> {
    /// Where a person can be in a flow once, nobody is left in one.
    fn drop(&mut self) {
        let is_once = self.live.persons.as_ref().is_some_and(Persons::is_once);
        if self.person.is_none() || !is_once || self.live.is_over() {
            return;
        }
        let Some(exclusive) = self.live.settings.exclusive() else {
            return;
        };
        for made in self.holders.take() {
            let arguments = freeing(exclusive.how, &made.scope, &made.key);
            // A holder that stays is found, and waited for, by the next scenario.
            let _ = self.hook(&exclusive.how.freed_by.hook, &arguments);
        }
    }
}

impl Session for LiveStory<'_> {
    fn settings(&self) -> &Settings {
        &self.live.settings
    }

    fn send(&self, service: &str, request: &Request) -> Result<Response, SendFault> {
        let base = &self.live.bases[service];
        self.patiently(service, &|| {
            let response = self.exchange(base, request)?;
            let again = (response.status == UNAUTHORIZED)
                .then(|| self.with_another_token(service, request));
            match again.flatten() {
                Some(request) => self.exchange(base, &request),
                None => Ok(response),
            }
        })
    }

    fn get_elsewhere(&self, origin: &str, request: &Request) -> Result<Response, SendFault> {
        let base = BaseUrl::parse(origin).map_err(|why| SendFault {
            cause: Cause::Redirect,
            detail: format!("{origin}: {why}"),
            partial: None,
        })?;
        self.patiently(origin, &|| self.exchange(&base, request))
    }

    /// A service that lets nobody in ends the run.
    fn answered(&self, service: &str, operation: &str, status: u16) {
        let admission = &self.live.admission;
        if admission.note(service, operation, status) {
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
        let asked = clock::now();
        let answer = self.spending(
            |s| &mut s.hooks,
            || hooks::carry_out(hook, arguments, &self.live.client, &self.live.interrupted),
        )?;
        match name {
            ADVANCE_CLOCK => {
                let by_ms = asked_ms(arguments);
                self.ahead_ms.set(self.ahead_ms.get().saturating_add(by_ms));
                let told = Ahead::told(&answer, (asked, clock::now()));
                let mut ahead = self.live.ahead();
                *ahead = told.map_or(ahead.moved(by_ms), |told| ahead.moved(by_ms).and_then(told));
                self.look_at_the_clock(*ahead);
            }
            SET_CALLBACK => self.address_set.set(true),
            _ => {}
        }
        if let Some(exclusive) = self.live.settings.exclusive()
            && exclusive.how.freed_by.hook == name
        {
            let argument = arguments.get(&exclusive.how.freed_by.holder);
            let ended = argument.and_then(Value::as_str).unwrap_or_default();
            let mut holders = self.holders.borrow_mut();
            holders.retain(|made| made.key != ended);
        }
        Ok(answer)
    }

    fn act_concurrently(&self, actions: &[Action<'_>]) -> Result<Vec<Acted>, SendFault> {
        self.race(actions)
    }

    /// With `advance_clock` the target's time is moved by long waits; others are waited for.
    fn wait(&self, duration: Duration) {
        self.let_pass(duration, ADVANCE_FURTHER_FROM, |s| &mut s.time);
    }

    fn wait_between_looks(&self, duration: Duration) {
        self.let_pass(duration, ADVANCE_FROM, |s| &mut s.time);
    }

    fn listen(&self, duration: Duration) {
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

    fn callback_max(&self, _declared: Duration) -> Duration {
        self.live.settings.callback_max
    }

    /// Silence is listened to for as long as what was seen so far makes sense.
    fn silence(&self, declared: Duration) -> Duration {
        let seen = self.live.callback_ms_max.load(Ordering::Relaxed);
        if seen == u64::MAX {
            return declared;
        }
        declared.min((Duration::from_millis(seen) * SILENCE_TIMES).max(SILENCE_MIN))
    }

    fn callback_took(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX - 1);
        let keep = |seen: u64| Some(if seen == u64::MAX { ms } else { seen.max(ms) });
        // The closure never refuses, so that there is nothing to learn from the result.
        let _ = self
            .live
            .callback_ms_max
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, keep);
    }

    fn address_is_common(&self) -> bool {
        self.address_set.get()
    }

    fn address_may_be_taken(&self) -> bool {
        self.address_set.get() && self.lease.is_none() && self.live.settings.is_shared
    }

    fn is_gone(&self, service: &str) -> Option<SendFault> {
        let base = self.live.bases.get(service)?;
        // Any answer will do; the documents know none to this.
        let fault = self.exchange(base, &Request::new("OPTIONS", "/")).err()?;
        fault.cause.is_unreachable().then_some(fault)
    }

    fn is_live(&self) -> bool {
        true
    }

    fn seconds_since(&self, _began: Timestamp) -> f64 {
        self.opened.elapsed().as_secs_f64()
    }

    fn person(&self) -> Option<String> {
        self.person.as_ref().map(|person| person.number.clone())
    }

    fn shares_person(&self) -> bool {
        self.person.as_ref().is_some_and(|person| person.is_shared)
    }

    fn person_is_busy(&self) {
        if let Some(persons) = &self.live.persons {
            persons.once();
        }
    }

    fn made_holder(&self, scope: &str, holder: &str, path: &str) {
        self.holders.borrow_mut().push(Holder {
            scope: scope.to_owned(),
            key: holder.to_owned(),
            path: path.to_owned(),
        });
        if let Some(persons) = &self.live.persons {
            persons.note_made(holder);
        }
    }

    fn may_be_anothers(&self, holder: &str) -> bool {
        let persons = self.live.persons.as_ref();
        self.live.settings.is_shared && persons.is_none_or(|p| !p.have_made(holder))
    }

    fn turned_away(&self) -> Option<String> {
        let service = self.turned_away.borrow().clone();
        service.filter(|service| self.live.admission.is_doubtful(service))
    }

    fn cut_off(&self) -> Option<String> {
        self.cut_off.borrow().clone()
    }

    /// Another run may have moved the target's clock under this story's feet, and another story may have
    /// needed the same person.
    fn disturbed(&self) -> Option<String> {
        if self.lost_its_person() {
            return Some("another story had the same person in the flow".to_owned());
        }
        self.look_at_the_clock(self.live.ask_the_time()?);
        let off_ms = self.off_ms.get();
        (off_ms > CLOCK_OFF_MS).then(|| {
            format!(
                "the target's clock was moved by somebody else meanwhile, by {} s",
                off_ms / 1000
            )
        })
    }
}

impl LiveStory<'_> {
    fn exchange(&self, base: &BaseUrl, request: &Request) -> Result<Response, SendFault> {
        let client = &self.live.client;
        client
            .exchange_in(
                &mut self.share.borrow_mut(),
                base,
                request,
                client.limits().timeout,
            )
            .map(told)
            .map_err(|fault| {
                if fault.on_kept {
                    self.cut_off.replace(Some(fault.to_string()));
                }
                SendFault::from(&fault)
            })
    }

    /// The request with the token that follows the one it carried, where a command prints them: a token may expire
    /// before it said so. Credentials that are wrong on purpose stay so.
    fn with_another_token(&self, service: &str, request: &Request) -> Option<Request> {
        let bearer = self.live.settings.targets[service].bearer.as_ref()?;
        let carried = request
            .headers
            .get("Authorization")?
            .strip_prefix("Bearer ")?;
        let refused = (carried != conformant_judge::UNKNOWN).then_some(carried)?;
        // Where the command fails now, the refusal is what there is to tell.
        let token = bearer.after(refused).ok()?;
        let mut again = request.clone();
        again
            .headers
            .set("Authorization", format!("Bearer {token}"));
        Some(again)
    }

    /// Sends, and where whoever is asked limits how often that may be, sends again as it says.
    fn patiently(
        &self,
        whom: &str,
        send: &dyn Fn() -> Result<Response, SendFault>,
    ) -> Result<Response, SendFault> {
        let live = self.live;
        let mut tries = 0;
        loop {
            self.idle(live.schedule.place(), |s| &mut s.held_back);
            let response = self.spending(|s| &mut s.answers, send)?;
            match live.schedule.learn(&response, tries, live.deadline) {
                Next::Take | Next::GiveUp => return Ok(response),
                Next::Again(wait) => {
                    live.schedule.tell(whom, response.status, wait);
                    live.limits_told.call_once(|| {
                        let ms = wait.as_millis();
                        (live.tell)(&format!(
                            "{whom} limits how often it is asked (status {}): the run waits as it says, {ms} ms this time",
                            response.status
                        ));
                    });
                    tries += 1;
                }
            }
            if live.is_over() {
                return Ok(response);
            }
        }
    }

    /// Does nothing until then, and lets others act meanwhile.
    pub(super) fn idle(&self, until: Instant, on: Part) {
        if until <= clock::monotonic() {
            return;
        }
        drop(self.slot.take());
        self.spending(on, || self.live.pass(until));
        let slot = self.spending(|s| &mut s.turn, || self.live.slots.take(self.nth));
        self.slot.replace(Some(slot));
    }

    /// Does something and notes how long it took.
    pub(super) fn spending<T>(&self, on: Part, work: impl FnOnce() -> T) -> T {
        let began = clock::monotonic();
        let done = work();
        let mut waited = self.waited.get();
        *on(&mut waited) += began.elapsed().as_secs_f64();
        self.waited.set(waited);
        done
    }

    /// Moves the target's time where that can be done and it is that long, or lets it pass.
    fn let_pass(&self, duration: Duration, moved_from: Duration, on: Part) {
        let sharer = self.sharer.as_ref();
        let sharer = sharer.filter(|_| duration >= moved_from);
        if sharer.is_none_or(|sharer| !self.wait_with_others(sharer, duration)) {
            self.idle(clock::monotonic() + duration, on);
        }
    }

    /// Waits until the target's time was moved that far; false where it cannot be.
    fn wait_with_others(&self, sharer: &Sharer<'_>, duration: Duration) -> bool {
        let shift = |by: Duration| {
            let arguments = json!({"seconds": by.as_secs_f64()});
            // Those who share it may have had it for long.
            let _renewed = self.lease.as_ref().map(|_| self.live.lease());
            self.hook(ADVANCE_CLOCK, &arguments).is_ok()
        };
        let follow = |by: Duration| {
            let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
            self.ahead_ms.set(self.ahead_ms.get().saturating_add(by_ms));
        };
        let look = (WAIT_SLICE, || self.live.is_over());
        let (began, before) = (clock::monotonic(), self.waited.get().hooks);
        drop(self.slot.take());
        let has_passed = sharer.wait(duration, shift, follow, look);
        self.slot.replace(Some(self.live.slots.take(self.nth)));
        let mut waited = self.waited.get();
        // What moving it took is noted by itself.
        waited.turn += began.elapsed().as_secs_f64() - (waited.hooks - before);
        self.waited.set(waited);
        has_passed
    }

    /// Whether the target shows that a person can be in a flow once, and other stories had this one.
    fn lost_its_person(&self) -> bool {
        let Some(persons) = self.live.persons.as_ref().filter(|_| self.shares_person()) else {
            return false;
        };
        let holders = self.holders.borrow();
        let is_freed = |made: &Holder| is_freed(self, &made.path);
        if !persons.is_once() && holders.iter().any(is_freed) {
            persons.once();
        }
        persons.is_once()
    }
}

/// An answer with what was odd about it on the wire. What depended on the moment is none of that.
pub(super) fn told(answer: Answer) -> Response {
    Response {
        oddities: answer
            .notes
            .iter()
            .filter(|note| note.is_of_the_answer())
            .map(ToString::to_string)
            .collect(),
        ..answer.response
    }
}
