//! Live targets of a run: connections, callback listener and shared resources. Opens a session for each scenario.

use super::admission::{Admission, ProbeResult};
use super::barrier::ClockBarrier;
use super::clock_offset::ClockOffset;
use super::health::Health;
use super::holders::Holders;
use super::in_flight::InFlight;
use super::lease::Leased;
use super::pacing::Schedule;
use super::phone_numbers::{Needs, PhoneNumbers};
use super::scenario::LiveScenario;
use super::slots::Slots;
use super::waits::Waits;
use crate::probe::Probe;
use crate::provision;
use crate::session::{Callbacks, Holder, HookFault, OpenError, SendFault, Session};
use crate::sessions::{hooks, short_name};
use crate::settings::{Hook, Settings, Target};
use crate::{Concurrency, Planned, ResourceClaim, RunEnd, Sessions};
use conformant_base::clock;
use conformant_base::http::{Request, Response};
use conformant_net::transport::{
    BaseUrl, Client, Limits, ListenError, Listener, ServerSettings, UrlError,
};
use conformant_rulebook::hooks::ADVANCE_CLOCK;
use conformant_rulebook::scenario::Credentials;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::AddrParseError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock};
use std::time::{Duration, Instant};

/// Maximum length of one wait before the interrupt flag is checked again.
pub(super) const WAIT_SLICE: Duration = Duration::from_millis(20);

/// Stands for the longest delay of a callback before the first one.
pub(super) const NO_CALLBACK_YET: u64 = u64::MAX;

/// The hook that sets the address to which an application's callbacks go.
pub(super) const SET_CALLBACK: &str = "set_callback";

/// How long one action may take that restores what was changed. A run ends soon after a signal.
const CLEAN_UP_MAX: Duration = Duration::from_secs(1);

/// Scenario threads per job; waiting scenarios release their slot.
const SCENARIOS_PER_JOB: usize = 8;

/// Sessions with live targets. They share connections and time, but no state.
pub struct Live {
    pub(super) settings: Settings,
    pub(super) bases: BTreeMap<String, BaseUrl>,
    pub(super) client: Client,
    /// Restores what was changed, also after an interruption.
    pub(super) cleaner: Client,
    /// Whether an action of it failed.
    clean_up_failed: AtomicBool,
    pub(super) listener: Listener,
    pub(super) interrupted: Arc<AtomicBool>,
    /// When the run must end.
    pub(super) deadline: Instant,
    /// Prints a message for the user.
    pub(super) notify: Box<dyn Fn(&str) + Send + Sync>,
    pub(super) limit_reported: Once,
    pub(super) clock_reported: Once,
    pub(super) schedule: Schedule,
    pub(super) waits: Waits,
    pub(super) in_flight: InFlight,
    pub(super) health: Health,
    pub(super) admission: Admission,
    /// The probe of each service, below its address.
    probes: BTreeMap<String, Probe>,
    pub(super) slots: Slots,
    /// The numbers of the exclusive setting.
    pub(super) phone_numbers: PhoneNumbers,
    pub(super) holders: Holders,
    /// Offset of the target's clock, by the answers of `advance_clock`.
    pub(super) ahead: Mutex<ClockOffset>,
    /// Whether `advance_clock` was to move the clock and its answer had no time.
    pub(super) is_clock_unseen: AtomicBool,
    pub(super) clock_queried: Once,
    /// The first offset and its time; `None` if the target does not report its time.
    pub(super) began: OnceLock<(ClockOffset, Instant)>,
    /// The longest delay of a callback so far, or [`NO_CALLBACK_YET`].
    pub(super) callback_ms_max: AtomicU64,
    /// How often in a row a callback that a rule demands did not come, by rule.
    pub(super) missing_callbacks: Mutex<BTreeMap<String, u32>>,
    /// Identifies this run in leases.
    pub(super) owner: String,
    pub(super) leased: Mutex<Leased>,
    pub(super) lease_reported: Once,
    /// The clock barrier of the scenarios that move the target's clock.
    pub(super) barrier: ClockBarrier,
    /// Number of sessions opened so far, retries included.
    pub(super) opened: AtomicU64,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Settings for how a run uses live targets.
pub struct LiveOptions {
    /// Limits of the client.
    pub limits: Limits,
    /// Scenarios that act at the same time.
    pub jobs: usize,
    /// When the run must end.
    pub deadline: Instant,
    /// Prints a message for the user.
    pub notify: Box<dyn Fn(&str) + Send + Sync>,
    /// The probe of each service, which finds an address that leads elsewhere.
    pub probes: BTreeMap<String, Probe>,
}

/// Why the sessions cannot be set up: an invalid configuration key, or a failed callback listener.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The URL of a target is invalid.
    #[error("targets.{service}.url: {source}")]
    Target { service: String, source: UrlError },
    /// The address of the callback listener is invalid.
    #[error("callbacks.listen {address}: {source}")]
    Listen {
        address: String,
        source: AddrParseError,
    },
    /// The public URL of the callback listener is invalid.
    #[error("callbacks.public_url {url}: {source}")]
    PublicUrl { url: String, source: UrlError },
    /// The callback listener could not be started.
    #[error("failed to receive callbacks: {0}")]
    Callbacks(#[from] ListenError),
}

impl Live {
    /// Opens the callback listener. `interrupted` ends waits, hooks and exchanges in flight.
    pub fn new(
        settings: Settings,
        options: LiveOptions,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Self, LiveError> {
        let mut bases = BTreeMap::new();
        for (service, target) in &settings.targets {
            let (origin, _) = crate::split_url(&target.url);
            let base = BaseUrl::parse(origin).map_err(|source| LiveError::Target {
                service: service.clone(),
                source,
            })?;
            bases.insert(service.clone(), base);
        }
        let mut listening = ServerSettings::default();
        if let Some(address) = &settings.listen {
            listening.listen = address.parse().map_err(|source| LiveError::Listen {
                address: address.clone(),
                source,
            })?;
        }
        if let Some(url) = &settings.public_url {
            let base = BaseUrl::parse(url).map_err(|source| LiveError::PublicUrl {
                url: url.clone(),
                source,
            })?;
            listening.public_url = Some(base);
        }
        let exclusive = settings.exclusive();
        let phone_numbers = exclusive.and_then(|e| settings.targets.get(e.service));
        let phone_numbers = phone_numbers.map(|target| target.pool.clone());
        let phone_numbers = PhoneNumbers::new(phone_numbers.unwrap_or_default());
        let listener = Listener::start(&listening)?;
        let client = settings.reach.client(options.limits, &bases);
        let client = client.interrupted_by(Arc::clone(interrupted));
        let brief = Limits {
            connect: options.limits.connect.min(CLEAN_UP_MAX),
            timeout: options.limits.timeout.min(CLEAN_UP_MAX),
            ..options.limits
        };
        let cleaner = settings.reach.client(brief, &bases);
        Ok(Self {
            settings,
            bases,
            client,
            cleaner,
            clean_up_failed: AtomicBool::new(false),
            listener,
            interrupted: Arc::clone(interrupted),
            deadline: options.deadline,
            notify: options.notify,
            limit_reported: Once::new(),
            clock_reported: Once::new(),
            schedule: Schedule::new(),
            waits: Waits::default(),
            in_flight: InFlight::default(),
            health: Health::default(),
            admission: Admission::default(),
            probes: options.probes,
            slots: Slots::new(options.jobs),
            phone_numbers,
            holders: Holders::default(),
            ahead: Mutex::default(),
            is_clock_unseen: AtomicBool::new(false),
            clock_queried: Once::new(),
            began: OnceLock::new(),
            callback_ms_max: AtomicU64::new(NO_CALLBACK_YET),
            missing_callbacks: Mutex::default(),
            owner: conformant_base::ids::uuid(rand::random()),
            leased: Mutex::default(),
            lease_reported: Once::new(),
            barrier: ClockBarrier::default(),
            opened: AtomicU64::new(0),
        })
    }

    /// Whether this scenario changes the target's clock or an application's callback address.
    fn needs_lease(&self, planned: &Planned<'_>) -> bool {
        self.moves_the_clock(planned)
            || self.calls(planned, ADVANCE_CLOCK)
            || self.calls(planned, SET_CALLBACK)
    }

    /// Whether a step calls this hook and the hook is configured.
    fn calls(&self, planned: &Planned<'_>, hook: &str) -> bool {
        self.settings.hooks.contains_key(hook)
            && planned.any_step(&|step| step.hook() == Some(hook))
    }

    fn concurrency(&self, planned: &Planned<'_>) -> Concurrency {
        if self.calls(planned, ADVANCE_CLOCK)
            || self.calls(planned, SET_CALLBACK)
            || planned.walks_a_shared_list(self.own_scope())
        {
            Concurrency::Exclusive
        } else if self.moves_the_clock(planned) {
            Concurrency::SharedClock
        } else {
            Concurrency::Shared
        }
    }

    /// The scope of exclusive values, as service and key, if a hook provisions one for each scenario.
    fn own_scope(&self) -> Option<(&str, &str)> {
        let exclusive = self.settings.exclusive()?;
        let (service, key) = (exclusive.service, exclusive.how.within.as_str());
        let setting = self.settings.index.get(service)?.setting(key)?;
        let hook = &setting.provisioned.as_ref()?.hook;
        let target = self.settings.targets.get(service)?;
        let is_own = self.settings.hooks.contains_key(hook) && !target.values.contains_key(key);
        is_own.then_some((service, key))
    }

    /// The values of the exclusive setting that a scenario takes. Where each scenario has a scope of its own, the target
    /// may still allow one holder in all scopes.
    fn needed_numbers(&self, planned: &Planned<'_>) -> Needs {
        let Some(exclusive) = self.settings.exclusive() else {
            return Needs::default();
        };
        let (service, key, how) = (exclusive.service, exclusive.key, exclusive.how);
        let from_pool = format!("${{target.{service}.{key}}}");
        let values = provision::values(&self.settings);
        let needs = RefCell::new(Needs {
            is_assigned: self.own_scope().is_none(),
            ..Needs::default()
        });
        planned.any_step(&|step| {
            let takes = step.operation().is_some_and(|operation| {
                operation == how.taken_by || operation == format!("{service}/{}", how.taken_by)
            });
            let value = step.with().and_then(|with| with.get(&how.parameter));
            let text = value.and_then(Value::as_str).filter(|_| takes);
            let mut needs = needs.borrow_mut();
            match text {
                Some(text) if text == from_pool && self.phone_numbers.has_pool() => {
                    needs.any = true;
                }
                Some(text) => needs.named.extend(configured(&values, text)),
                None => {}
            }
            false
        });
        needs.into_inner()
    }

    /// Calls a hook.
    pub(super) fn call(&self, hook: &Hook, arguments: &Value) -> Result<Value, HookFault> {
        let wait = |by| self.schedule.learn_from_hook(by);
        let result = hooks::carry_out(hook, arguments, &self.client, &self.interrupted, &wait);
        self.schedule.count_hook();
        result
    }

    /// Waits until the rate limit of the target allows a hook.
    pub(super) fn await_hook_slot(&self) {
        self.pass(self.schedule.reserve_for_hook());
    }

    /// Calls a hook that restores what was changed, also after an interruption.
    pub(super) fn clean_up(&self, hook: &str, arguments: &Value) {
        let Some(hook) = self.settings.hooks.get(hook) else {
            return;
        };
        // A run that must end does not wait for each action of a bench that hangs.
        if self.is_over() && self.clean_up_failed.load(Ordering::Relaxed) {
            return;
        }
        let never = AtomicBool::new(false);
        self.await_hook_slot();
        // What remains expires, or the next run finds it.
        let done = hooks::carry_out(hook, arguments, &self.cleaner, &never, &|_| {});
        self.clean_up_failed
            .fetch_or(done.is_err(), Ordering::Relaxed);
    }

    /// Ends holders of exclusive values.
    pub(super) fn end_holders(&self, holders: Vec<Holder>) {
        let Some(exclusive) = self.settings.exclusive() else {
            return;
        };
        for holder in holders {
            let arguments = provision::freeing(exclusive.how, &holder.scope, &holder.key);
            self.clean_up(&exclusive.how.freed_by.hook, &arguments);
            self.holders.remove(&holder.key);
        }
    }

    /// The answer to the probe of a service that answered no request as documented, if it confirms that the address leads
    /// elsewhere.
    pub(super) fn leads_elsewhere(&self, service: &str) -> Option<String> {
        self.admission
            .elsewhere_by_probe(service, || self.send_probe(service))
    }

    /// Whether a request has the configured credentials of its service, and these stay the same during the run.
    pub(super) fn has_fixed_credentials(&self, service: &str, request: &Request) -> bool {
        let target = self.settings.targets.get(service);
        let Some(target) = target.filter(|target| target.bearer.is_none()) else {
            return false;
        };
        let mut own = Request::new("GET", "/");
        let is_complete = crate::request::authorize(target, Credentials::Default, &mut own).is_ok();
        let mut fields = own.headers.iter();
        is_complete && fields.all(|(name, value)| request.headers.get(name) == Some(value))
    }

    /// Whether a service that rejected many requests rejects the credentials.
    pub(super) fn is_denied(&self, service: &str) -> bool {
        self.admission
            .is_denied(service, || self.send_probe(service))
    }

    /// Whether the credentials of a service may only read.
    pub(super) fn is_read_only(&self, service: &str) -> bool {
        self.admission
            .is_read_only(service, || self.send_probe(service))
    }

    /// The probe of a service, its documented harmless read. `None` if it has none, or if these credentials are not configured.
    pub(super) fn probe_with(&self, service: &str, credentials: Credentials) -> Option<Request> {
        let probe = self.probes.get(service)?;
        let target = self.settings.targets.get(service)?;
        let path = format!("{}{}", crate::split_url(&target.url).1, probe.path);
        let mut request = Request::new("GET", path);
        crate::request::authorize(target, credentials, &mut request).ok()?;
        Some(request)
    }

    /// Sends the probe of a service.
    fn send_probe(&self, service: &str) -> ProbeResult {
        let sent = || {
            let (probe, base) = (self.probes.get(service)?, self.bases.get(service)?);
            let limits = *self.client.limits();
            // Not interrupted: another service may have ended the run.
            let client = self.settings.reach.client(limits, &self.bases);
            let ask = |credentials| {
                let request = self.probe_with(service, credentials)?;
                client.send(base, &request, limits.timeout).ok()
            };
            let answer = ask(Credentials::Default)?;
            // A service rejects missing credentials before it looks for a resource.
            let is_absent_anyway = || {
                let is_absent = |answer: &Response| probe.is_of_an_absent_resource(answer);
                is_absent(&answer) && ask(Credentials::None).is_some_and(|other| is_absent(&other))
            };
            let is_needed = || {
                let other = ask(Credentials::None);
                other.is_some_and(|other| matches!(other.status, 401 | 403))
            };
            let why = probe.wrong_address(&answer);
            let why =
                why.or_else(|| is_absent_anyway().then(|| "also without credentials".to_owned()));
            Some(match (answer.status, why) {
                (401, _) | (403, None) => ProbeResult::Denied,
                (status, Some(why)) => {
                    let asked = self.probe_with(service, Credentials::Default)?;
                    ProbeResult::Elsewhere(format!("GET {} answered {status} {why}", asked.target))
                }
                // Also a service that does not have the resource has looked at the credentials before.
                (200..=299 | 400 | 404 | 409 | 410 | 422, None) if is_needed() => {
                    ProbeResult::Admitted
                }
                (_, None) => ProbeResult::NothingWrong,
            })
        };
        sent().unwrap_or(ProbeResult::NothingWrong)
    }

    pub(super) fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || clock::monotonic() >= self.deadline
    }

    /// Waits in real time.
    pub(super) fn pass(&self, until: Instant) {
        while !self.is_over() {
            let left = until.saturating_duration_since(clock::monotonic());
            if left.is_zero() {
                return;
            }
            clock::sleep(left.min(WAIT_SLICE));
        }
    }
}

impl Sessions for Live {
    fn open(&self, planned: &Planned<'_>) -> Result<Box<dyn Session + '_>, OpenError> {
        let needs = self.needed_numbers(planned);
        let numbers = (!needs.is_empty()).then(|| self.phone_numbers.take(&needs));
        if let Some(used) = numbers.as_ref().filter(|used| !used.is_shared) {
            // What a scenario left behind as long as numbers were shared.
            self.end_holders(self.holders.take_left(&used.numbers));
        }
        // A retry has a new number, and with it new addresses and a new place in the queue.
        let nth = self.opened.fetch_add(1, Ordering::Relaxed);
        let slot = self.slots.take(nth);
        self.clock_queried.call_once(|| {
            if let Some(ahead) = self.query_clock() {
                self.began.get_or_init(|| (ahead, clock::monotonic()));
            }
        });
        let lease = match self.needs_lease(planned) {
            true => self.lease(),
            false => Ok(None),
        };
        let (lease, withheld) = match lease {
            Ok(lease) => (lease, None),
            Err(stop) => (None, Some(stop)),
        };
        // While it waited for the lease, others may have moved the clock.
        if lease.is_some() {
            self.query_clock();
        }
        // A retry listens at new addresses, because late callbacks may arrive at the old ones.
        let prefix = short_name(&format!("{} {nth}", planned.scenario.id));
        let prefix = format!("{prefix}-");
        let callbacks = Callbacks {
            sink: Arc::clone(self.listener.sink()),
            prefix,
        };
        Ok(Box::new(LiveScenario {
            live: self,
            nth,
            callbacks,
            participant: self.moves_the_clock(planned).then(|| self.barrier.join()),
            share: self.client.share(),
            slot: RefCell::new(Some(slot)),
            opened: clock::monotonic(),
            ahead_ms: Cell::new(self.ahead().ms()),
            off_ms: Cell::new(0),
            has_overlapped: Cell::new(false),
            cut_off: RefCell::default(),
            address_set: Cell::new(false),
            callback_kinds: RefCell::default(),
            callback_missed: Cell::new(false),
            confirms_missing_callback: Cell::new(false),
            turned_away: RefCell::new(None),
            numbers,
            lease,
            withheld,
            waited: Cell::default(),
            has_moved: Cell::default(),
        }))
    }

    fn targets(&self) -> BTreeMap<String, String> {
        self.settings
            .targets
            .iter()
            .map(|(name, target)| (name.clone(), target.url.clone()))
            .collect()
    }

    fn resource_claim(&self, planned: &Planned<'_>) -> ResourceClaim {
        let mut services = planned.touches();
        if self.needs_lease(planned) {
            // Only these services depend on time and addresses. Scenarios of others are retried if a moved clock
            // disturbed them.
            services.extend(self.settings.index.service_of_hook(SET_CALLBACK));
        }
        ResourceClaim {
            services,
            concurrency: self.concurrency(planned),
            moves_the_clock: self.moves_the_clock(planned) || self.calls(planned, ADVANCE_CLOCK),
            needs_phone_number: !self.needed_numbers(planned).is_empty(),
            target_time: planned.length(),
            real_time: planned.length(),
        }
    }

    fn phone_numbers(&self) -> usize {
        self.phone_numbers.limit()
    }

    fn waits(&self) -> Option<(String, String)> {
        self.waits.take()
    }

    fn probe_untried(&self, services: &BTreeSet<String>) {
        for service in services {
            let untried = self.bases.get(service).filter(|_| !self.is_over());
            let untried = untried.filter(|_| !self.health.has_been_tried(service));
            let probe = self.probe_with(service, Credentials::Default);
            let probe = probe.or_else(|| self.probe_with(service, Credentials::None));
            let (Some(base), Some(probe)) = (untried, probe) else {
                continue;
            };
            let in_flight = self.health.begin(service);
            let answer = self.client.send(base, &probe, self.client.limits().timeout);
            let answer = answer.map_err(SendFault::from);
            in_flight.note(&probe, &answer, self.has_fixed_credentials(service, &probe));
            // A limit of the rate may be that of the requests to other services.
            if let Ok(answer) = &answer
                && answer.status != 429
            {
                self.admission.note_attempt(service, answer.status);
                self.admission.note(service, "probe", answer);
            }
        }
    }

    fn services(&self) -> RunEnd {
        let targets = &self.settings.targets;
        let denied_by = self.admission.denied_by(
            |service| targets.get(service).is_some_and(Target::has_credentials),
            |service| self.send_probe(service),
        );
        let doubtful = self.admission.elsewhere().into_iter();
        let doubtful = doubtful.filter(|service| !denied_by.contains(service));
        let wrong_addresses = doubtful
            .filter_map(|service| Some((service.clone(), self.leads_elsewhere(&service)?)))
            .collect();
        RunEnd {
            denied_by,
            wrong_addresses,
            rejected_account: self.admission.rejected_account(),
            unserved: self.admission.unserved(),
            read_only: self.admission.read_only(),
            never_reached: self.health.never_reached(),
            ..RunEnd::default()
        }
    }

    fn gone(&self) -> Option<(String, String)> {
        self.health.gone()
    }

    fn watch(&self, is_done: &dyn Fn() -> bool) {
        self.watch_services(is_done);
    }

    fn clock_seconds(&self) -> Option<f64> {
        let (ahead, began) = self.began.get()?;
        let moved = self.ahead().ms() - ahead.ms();
        let moved = Duration::from_millis(u64::try_from(moved).unwrap_or_default());
        Some((began.elapsed() + moved).as_secs_f64())
    }

    fn threads(&self, jobs: usize) -> usize {
        jobs.saturating_mul(SCENARIOS_PER_JOB)
    }
}

/// The configured text that `${target.…}` stands for.
fn configured(values: &Value, text: &str) -> Option<String> {
    let path = text.strip_prefix("${target.")?.strip_suffix('}')?;
    let pointer = format!("/{}", path.replace('.', "/"));
    values.pointer(&pointer)?.as_str().map(str::to_owned)
}
