//! Live targets: requests over the network, hooks as the adopter supplies them, real time.
//!
//! Others may use the same target meanwhile. What it has only one of is asked for by the hook `lease`;
//! where its clock was moved by somebody else, [`Session::disturbed`] says so.

use super::admission::Admission;
use super::ahead::Ahead;
use super::hooks;
use super::limited::{Next, Schedule};
use super::persons::{Person, Persons};
use super::slots::{Slot, Slots};
use crate::clock::{self, Timestamp};
use crate::engine::provision::is_ended;
use crate::engine::session::{Callbacks, HookFault, SendFault, Session};
use crate::engine::settings::Settings;
use crate::engine::template::wait_of;
use crate::engine::{Planned, Room, Sessions};
use crate::http::{Cause, Request, Response};
use crate::transport::{Answer, BaseUrl, Client, Limits, Listener, Listening, Share};
use crate::verdict::{Part, Spent};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long one wait lasts before the interrupt flag is looked at again.
const WAIT_SLICE: Duration = Duration::from_millis(20);

/// Waits from this length on move the target's clock, where there is a hook for it; shorter ones
/// pass in real time.
const ADVANCE_FROM: Duration = Duration::from_secs(5);

/// HTTP's word for credentials that are missing or no good.
const UNAUTHORIZED: u16 = 401;

/// Stories under way for each job: those that wait leave their place to others.
const STORIES_PER_JOB: usize = 8;

/// How far the target's clock may be off for certain before somebody else has moved it: it may be rounded.
const CLOCK_OFF_MS: i64 = 1_000;
/// How often it is asked while answers take too long to tell much.
const TIME_ASKED_MAX: usize = 3;

/// For how long what the target has only one of is asked, and how often.
const LEASE_SECONDS: u64 = 120;
const LEASE_EVERY: Duration = Duration::from_millis(100);

/// Silence after callbacks is listened to for this many times as long as they took to come.
const SILENCE_TIMES: u32 = 5;
/// And at least for this long.
const SILENCE_MIN: Duration = Duration::from_secs(1);

/// The hooks that this module itself calls.
const ADVANCE_CLOCK: &str = "advance_clock";
const LEASE: &str = "lease";
const END_EXECUTION: &str = "end_execution";

/// Sessions with live targets; they share connections and time, not state.
pub struct Live {
    settings: Settings,
    bases: BTreeMap<String, BaseUrl>,
    client: Client,
    listener: Listener,
    interrupted: Arc<AtomicBool>,
    /// When the run must be over.
    deadline: Instant,
    /// Says something to the person who waits.
    tell: Box<dyn Fn(&str) + Send + Sync>,
    limits_told: Once,
    schedule: Schedule,
    admission: Admission,
    slots: Slots,
    /// Who can be brought into a flow; nothing where nobody is configured.
    persons: Option<Persons>,
    /// How far the target's clock is ahead of ours, by what `advance_clock` answers.
    ahead: Mutex<Ahead>,
    time_asked: Once,
    /// How far it was when the run began, and when that was; nothing where it is not told.
    began: OnceLock<(Ahead, Instant)>,
    /// The longest that a callback took to come so far; nothing until one came.
    callback_ms_max: AtomicU64,
    /// Tells this run from others in leases.
    owner: String,
    /// How many stories were begun, those that are told again included.
    opened: AtomicU64,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// How a run on live targets goes about it.
pub struct Manner {
    /// What the client never exceeds.
    pub limits: Limits,
    /// Stories that act at the same time.
    pub jobs: usize,
    /// When the run must be over.
    pub deadline: Instant,
    /// Says something to the person who waits.
    pub tell: Box<dyn Fn(&str) + Send + Sync>,
}

impl Live {
    /// Opens the callback listener and gets ready to connect. `interrupted` ends waits, hooks and
    /// exchanges under way.
    pub fn new(
        settings: Settings,
        manner: Manner,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let mut bases = BTreeMap::new();
        for (service, target) in &settings.targets {
            let (origin, _) = crate::engine::split_url(&target.url);
            let base = BaseUrl::parse(origin).map_err(|e| format!("targets.{service}.url: {e}"))?;
            bases.insert(service.clone(), base);
        }
        let mut listening = Listening::default();
        if let Some(address) = &settings.listen {
            listening.listen = address
                .parse()
                .map_err(|e| format!("callbacks.listen {address}: {e}"))?;
        }
        if let Some(url) = &settings.public_url {
            let base =
                BaseUrl::parse(url).map_err(|e| format!("callbacks.public_url {url}: {e}"))?;
            listening.public_url = Some(base);
        }
        let persons = settings
            .targets
            .get("flow")
            .map(|flow| flow.persons.clone());
        let persons = persons.filter(|p| !p.is_empty()).map(Persons::new);
        let listener =
            Listener::start(&listening).map_err(|e| format!("failed to receive callbacks: {e}"))?;
        let client = settings.reach.client(manner.limits, &bases);
        let client = client.interrupted_by(Arc::clone(interrupted));
        Ok(Self {
            settings,
            bases,
            client,
            listener,
            interrupted: Arc::clone(interrupted),
            deadline: manner.deadline,
            tell: manner.tell,
            limits_told: Once::new(),
            schedule: Schedule::new(),
            admission: Admission::default(),
            slots: Slots::new(manner.jobs),
            persons,
            ahead: Mutex::default(),
            time_asked: Once::new(),
            began: OnceLock::new(),
            callback_ms_max: AtomicU64::new(u64::MAX),
            owner: uuid::Uuid::from_u128(rand::random()).to_string(),
            opened: AtomicU64::new(0),
        })
    }

    /// Whether waits of this story move the clock.
    fn moves_the_clock(&self, planned: &Planned<'_>) -> bool {
        let long = |text: &str| wait_of(text).is_none_or(|wait| wait >= ADVANCE_FROM);
        self.settings.hooks.contains_key(ADVANCE_CLOCK)
            && planned.any_step(&|step| step.wait().is_some_and(long))
    }

    /// Whether this story changes what the target has only one of: its time, or the address to which
    /// an application's callbacks go.
    fn takes_what_is_there_once(&self, planned: &Planned<'_>) -> bool {
        self.moves_the_clock(planned)
            || planned.any_step(&|step| {
                let hook = step.hook();
                let hook = hook.filter(|hook| matches!(*hook, ADVANCE_CLOCK | "set_callback"));
                hook.is_some_and(|hook| self.settings.hooks.contains_key(hook))
            })
    }

    /// With the hook each story has a flow of its own, and what is listed under it.
    fn has_own_flow(&self) -> bool {
        let flow = self.settings.targets.get("flow");
        self.settings.hooks.contains_key("create_flow")
            && flow.is_none_or(|flow| !flow.values.contains_key("flow_sid"))
    }

    /// Whether it brings somebody into a flow that other stories use too.
    fn enters_a_shared_flow(&self, planned: &Planned<'_>) -> bool {
        let reads = |value: &Value| value.as_str() == Some("${target.flow.to}");
        !self.has_own_flow() && planned.any_step(&|step| step.values().any(reads))
    }

    fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks how far the target's clock is ahead; nothing where it does not say.
    fn ask_the_time(&self) -> Option<Ahead> {
        let hook = self.settings.hooks.get(ADVANCE_CLOCK)?;
        let nothing = json!({"seconds": 0});
        let ask = || {
            let asked = clock::now();
            // A hook that fails now says so where a story needs it.
            let answer = hooks::carry_out(hook, &nothing, &self.client, &self.interrupted).ok()?;
            Ahead::told(&answer, (asked, clock::now()))
        };
        let mut told = ask()?;
        for _ in 1..TIME_ASKED_MAX {
            if told.is_narrow() {
                break;
            }
            told = told.and_then(ask()?);
        }
        let mut ahead = self.ahead();
        *ahead = ahead.and_then(told);
        Some(told)
    }

    /// Waits until no other run holds what a story needs alone. Where the target has no such hook,
    /// nothing is known of other runs.
    fn lease(&self) -> Option<Lease<'_>> {
        let hook = self.settings.hooks.get(LEASE)?;
        loop {
            let arguments = json!({"owner": self.owner, "seconds": LEASE_SECONDS});
            let answer =
                hooks::carry_out(hook, &arguments, &self.client, &self.interrupted).ok()?;
            if answer.get("granted").and_then(Value::as_bool) != Some(false) {
                return Some(Lease { live: self });
            }
            if self.is_over() {
                return None;
            }
            clock::sleep(LEASE_EVERY);
        }
    }

    fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || clock::monotonic() >= self.deadline
    }

    /// Lets real time pass.
    fn pass(&self, until: Instant) {
        while !self.is_over() {
            let left = until.saturating_duration_since(clock::monotonic());
            if left.is_zero() {
                return;
            }
            clock::sleep(left.min(WAIT_SLICE));
        }
    }
}

/// How far `advance_clock` was asked to move the time, in milliseconds.
fn asked_ms(arguments: &Value) -> i64 {
    let seconds = arguments.get("seconds").and_then(Value::as_f64);
    let by = Duration::try_from_secs_f64(seconds.unwrap_or_default()).unwrap_or_default();
    i64::try_from(by.as_millis()).unwrap_or(i64::MAX)
}

impl Sessions for Live {
    fn open(&self, planned: &Planned<'_>) -> Result<Box<dyn Session + '_>, String> {
        let person = self.persons.as_ref();
        let person = person.filter(|_| self.enters_a_shared_flow(planned));
        let person = person.map(Persons::take);
        let slot = self.slots.take();
        self.time_asked.call_once(|| {
            if let Some(ahead) = self.ask_the_time() {
                self.began.get_or_init(|| (ahead, clock::monotonic()));
            }
        });
        let lease = if self.takes_what_is_there_once(planned) {
            self.lease()
        } else {
            None
        };
        // Who waited for the lease waited while others moved the clock.
        if lease.is_some() {
            self.ask_the_time();
        }
        // A story that is told again listens elsewhere: what was called before may be called still.
        let nth = self.opened.fetch_add(1, Ordering::Relaxed);
        let prefix = super::short_name(&format!("{} {nth}", planned.scenario.id));
        let prefix = format!("{prefix}-");
        let callbacks = Callbacks {
            sink: Arc::clone(self.listener.sink()),
            prefix,
        };
        Ok(Box::new(LiveSession {
            live: self,
            callbacks,
            moves_the_clock: self.moves_the_clock(planned),
            share: RefCell::new(self.client.share()),
            slot: RefCell::new(Some(slot)),
            opened: clock::monotonic(),
            ahead_ms: Cell::new(self.ahead().ms()),
            off_ms: Cell::new(0),
            cut_off: RefCell::default(),
            address_set: Cell::new(false),
            turned_away: RefCell::new(None),
            person,
            executions: RefCell::default(),
            lease,
            waited: Cell::default(),
        }))
    }

    fn targets(&self) -> BTreeMap<String, String> {
        self.settings
            .targets
            .iter()
            .map(|(name, target)| (name.clone(), target.url.clone()))
            .collect()
    }

    fn room(&self, planned: &Planned<'_>) -> Room {
        let mut touches = planned.touches();
        let takes_all = self.takes_what_is_there_once(planned);
        if takes_all {
            // Where time and addresses matter most. Others are told again where they went wrong
            // because the clock was moved under their feet.
            touches.insert("auth".to_owned());
        }
        Room {
            touches,
            is_alone: takes_all || planned.walks_a_shared_list(self.has_own_flow()),
            needs_person: self.persons.is_some() && self.enters_a_shared_flow(planned),
            length: planned.length(),
            lasts: planned.length(),
        }
    }

    fn persons(&self) -> usize {
        self.persons.as_ref().map_or(usize::MAX, Persons::most)
    }

    fn waits(&self) -> Option<(String, String)> {
        self.schedule.waits()
    }

    fn denied_by(&self) -> Option<String> {
        self.admission.denied_by()
    }

    fn clock_seconds(&self) -> Option<f64> {
        let (ahead, began) = self.began.get()?;
        let moved = self.ahead().ms() - ahead.ms();
        let moved = Duration::from_millis(u64::try_from(moved).unwrap_or_default());
        Some((began.elapsed() + moved).as_secs_f64())
    }

    fn threads(&self, jobs: usize) -> usize {
        jobs.saturating_mul(STORIES_PER_JOB)
    }
}

/// What the target has only one of, held for one story; given back when dropped.
struct Lease<'a> {
    live: &'a Live,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(hook) = self.live.settings.hooks.get(LEASE) {
            let arguments = json!({"owner": self.live.owner, "seconds": 0});
            // Not given back it runs out by itself.
            let _ = hooks::carry_out(hook, &arguments, &self.live.client, &self.live.interrupted);
        }
    }
}

/// An answer with what was odd about it on the wire. What depended on the moment is none of that.
fn told(answer: Answer) -> Response {
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

impl LiveSession<'_> {
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
        let refused = (carried != crate::judge::UNKNOWN).then_some(carried)?;
        // Where the command fails now, the refusal is what there is to tell.
        let token = bearer.after(refused).ok()?;
        let mut again = request.clone();
        again
            .headers
            .set("Authorization", format!("Bearer {token}"));
        Some(again)
    }
}

struct LiveSession<'a> {
    live: &'a Live,
    callbacks: Callbacks,
    moves_the_clock: bool,
    /// Given back once the story is judged: what it holds is its evidence.
    share: RefCell<Share>,
    /// Nothing while it waits.
    slot: RefCell<Option<Slot<'a>>>,
    opened: Instant,
    /// How far the target's clock was ahead when it began, and then by its own moves, which are known exactly:
    /// what it learns meanwhile would make the time between two of its exchanges longer or shorter than it was.
    ahead_ms: Cell<i64>,
    /// How far the clock had been moved by somebody else when this story moved it.
    off_ms: Cell<i64>,
    /// A request that met a connection which the target closed.
    cut_off: RefCell<Option<String>>,
    /// Callbacks of a whole application were led here.
    address_set: Cell<bool>,
    person: Option<Person<'a>>,
    /// A service that refused a request of this story before it had let in any.
    turned_away: RefCell<Option<String>>,
    /// Executions that it made and did not end, each with its flow.
    executions: RefCell<Vec<(String, String)>>,
    lease: Option<Lease<'a>>,
    waited: Cell<Spent>,
}

impl Drop for LiveSession<'_> {
    /// Where a person can be in a flow once, nobody is left in one.
    fn drop(&mut self) {
        let is_once = self.live.persons.as_ref().is_some_and(Persons::is_once);
        if self.person.is_none() || !is_once || self.live.is_over() {
            return;
        }
        for (flow_sid, execution_sid) in self.executions.take() {
            let arguments = json!({"flow_sid": flow_sid, "execution_sid": execution_sid});
            // Who stays in it is found, and waited for, by the next story.
            let _ = self.hook(END_EXECUTION, &arguments);
        }
    }
}

impl LiveSession<'_> {
    /// Whether the target shows that a person can be in a flow once, and other stories had this one.
    fn lost_its_person(&self) -> bool {
        let Some(persons) = self.live.persons.as_ref().filter(|_| self.shares_person()) else {
            return false;
        };
        let executions = self.executions.borrow();
        let is_ended = |(flow, execution): &(String, String)| is_ended(self, flow, execution);
        if !persons.is_once() && executions.iter().any(is_ended) {
            persons.once();
        }
        persons.is_once()
    }

    /// Notes by how much somebody else has moved the target's clock, and goes on from there.
    fn look_at_the_clock(&self, there: Ahead) {
        let off_ms = there.off_ms(self.ahead_ms.get());
        self.off_ms.set(self.off_ms.get().max(off_ms));
        if off_ms > CLOCK_OFF_MS {
            self.ahead_ms.set(there.ms());
        }
    }

    /// Does nothing until then, and lets others act meanwhile.
    fn idle(&self, until: Instant, on: Part) {
        if until <= clock::monotonic() {
            return;
        }
        drop(self.slot.take());
        self.spending(on, || self.live.pass(until));
        let slot = self.spending(|s| &mut s.turn, || self.live.slots.take());
        self.slot.replace(Some(slot));
    }

    /// Does something and notes how long it took.
    fn spending<T>(&self, on: Part, work: impl FnOnce() -> T) -> T {
        let began = clock::monotonic();
        let done = work();
        let mut waited = self.waited.get();
        *on(&mut waited) += began.elapsed().as_secs_f64();
        self.waited.set(waited);
        done
    }

    /// Moves the target's time where that can be done, or lets it pass.
    fn let_pass(&self, duration: Duration, on: Part) {
        let arguments = json!({"seconds": duration.as_secs_f64()});
        if self.moves_the_clock
            && duration >= ADVANCE_FROM
            && self.hook(ADVANCE_CLOCK, &arguments).is_ok()
        {
            return;
        }
        self.idle(clock::monotonic() + duration, on);
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
}

impl Session for LiveSession<'_> {
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
            "set_callback" => self.address_set.set(true),
            END_EXECUTION => {
                let ended = arguments["execution_sid"].as_str().unwrap_or_default();
                let mut executions = self.executions.borrow_mut();
                executions.retain(|(_, execution_sid)| execution_sid != ended);
            }
            _ => {}
        }
        Ok(answer)
    }

    /// With `advance_clock` the target's time is moved by long waits; others are waited for.
    fn wait(&self, duration: Duration) {
        self.let_pass(duration, |s| &mut s.time);
    }

    fn listen(&self, duration: Duration) {
        self.let_pass(duration, |s| &mut s.callbacks);
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

    fn made_execution(&self, flow_sid: &str, execution_sid: &str) {
        let made = (flow_sid.to_owned(), execution_sid.to_owned());
        self.executions.borrow_mut().push(made);
        if let Some(persons) = &self.live.persons {
            persons.note_made(execution_sid);
        }
    }

    fn may_be_anothers(&self, execution_sid: &str) -> bool {
        let persons = self.live.persons.as_ref();
        self.live.settings.is_shared && persons.is_none_or(|p| !p.have_made(execution_sid))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plan;
    use crate::engine::settings::{Hook, Target};
    use crate::rulebook::Rulebook;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    #[test]
    fn a_store_of_files_that_limits_is_asked_again_too() {
        let store = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", store.local_addr().unwrap());
        let answers = [
            "503 Busy\r\nRetry-After: 0\r\nContent-Length: 0",
            "200 OK\r\nContent-Length: 0",
        ];
        let serving = std::thread::spawn(move || {
            for answer in answers {
                let (mut socket, _) = store.accept().unwrap();
                let _head = socket.read(&mut [0; 4096]).unwrap();
                let answer = format!("HTTP/1.1 {answer}\r\nConnection: close\r\n\r\n");
                socket.write_all(answer.as_bytes()).unwrap();
            }
        });
        let rulebook = Rulebook::embedded().unwrap();
        let live = live("media", clock::monotonic() + Duration::from_secs(60));
        let all = plan::all(&rulebook);
        let session = live.open(&all[0]).unwrap();
        let answer = session.get_elsewhere(&origin, &Request::new("GET", "/file"));
        assert_eq!(answer.unwrap().status, 200);
        serving.join().unwrap();
    }

    /// A hook that tells the time some milliseconds ahead of ours, once for each of them.
    fn telling(ahead_ms: &'static [i64]) -> (Hook, std::thread::JoinHandle<()>) {
        let bench = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", bench.local_addr().unwrap());
        let serving = std::thread::spawn(move || {
            for ahead in ahead_ms {
                let (mut socket, _) = bench.accept().unwrap();
                let _head = socket.read(&mut [0; 4096]).unwrap();
                let now = clock::from_unix_ms(clock::now().as_millisecond() + ahead);
                let body = json!({"now": now.to_string()}).to_string();
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
                );
                socket
                    .write_all(format!("{head}{body}").as_bytes())
                    .unwrap();
            }
        });
        let hook = Hook::control_plane(&url, None).remove(ADVANCE_CLOCK);
        (hook.unwrap(), serving)
    }

    #[test]
    fn what_the_clock_was_moved_by_is_what_passed_however_coarsely_the_target_tells_it() {
        let (hook, serving) = telling(&[0, 598_100, 598_100]);
        let mut live = live("auth", clock::monotonic() + Duration::from_secs(60));
        live.settings.hooks.insert(ADVANCE_CLOCK.to_owned(), hook);
        let rulebook = Rulebook::embedded().unwrap();
        let session = live.open(&plan::all(&rulebook)[0]).unwrap();
        let before = session.now();
        session
            .hook(ADVANCE_CLOCK, &json!({"seconds": 599}))
            .unwrap();
        let passed = session.now().duration_since(before);
        assert!(passed.as_millis() >= 599_000, "{passed:?}");
        assert_eq!(session.disturbed(), None);
        serving.join().unwrap();
    }

    #[test]
    fn a_clock_that_somebody_else_moved_is_told() {
        let (hook, serving) = telling(&[0, 604_000, 604_000]);
        let mut live = live("auth", clock::monotonic() + Duration::from_secs(60));
        live.settings.hooks.insert(ADVANCE_CLOCK.to_owned(), hook);
        let rulebook = Rulebook::embedded().unwrap();
        let session = live.open(&plan::all(&rulebook)[0]).unwrap();
        session
            .hook(ADVANCE_CLOCK, &json!({"seconds": 599}))
            .unwrap();
        let why = session.disturbed().unwrap();
        assert!(why.contains("moved by somebody else"), "{why}");
        serving.join().unwrap();
    }

    fn live(service: &str, deadline: Instant) -> Live {
        let target = Target::of_reference(service, &format!("http://127.0.0.1:9/{service}"));
        let settings = Settings {
            targets: [(service.to_owned(), target)].into(),
            ..Settings::default()
        };
        let manner = Manner {
            limits: Limits::default(),
            jobs: 1,
            deadline,
            tell: Box::new(|_| {}),
        };
        Live::new(settings, manner, &Arc::default()).unwrap()
    }

    #[test]
    fn nobody_else_plays_while_a_shared_list_is_walked() {
        let rulebook = Rulebook::embedded().unwrap();
        let live = live("flow", clock::monotonic());
        let all = plan::all(&rulebook);
        let alone = |id: &str| {
            let planned = all.iter().find(|p| p.scenario.id == id).unwrap();
            live.room(planned).is_alone
        };
        assert!(
            alone("flow/read-executions/walk"),
            "someone else may insert"
        );
        assert!(!alone("flow/create-execution/happy"));
        assert!(
            !alone("auth/registrations/completed-webhook"),
            "without a hook it moves nothing"
        );
    }
}
