//! A run's targets: connections, the callback listener and what its stories share. Opens a session for each of them.

use super::admission::Admission;
use super::ahead::Ahead;
use super::clock::ADVANCE_CLOCK;
use super::lease::Leased;
use super::limited::Schedule;
use super::persons::Persons;
use super::slots::Slots;
use super::story::LiveStory;
use super::together::Together;
use crate::session::{Callbacks, OpenError, Session};
use crate::sessions::short_name;
use crate::settings::Settings;
use crate::{Company, Planned, Room, Sessions};
use conformant_base::clock;
use conformant_net::transport::{
    BaseUrl, Client, Limits, ListenError, Listener, Listening, UrlError,
};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::net::AddrParseError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock};
use std::time::{Duration, Instant};

/// How long one wait lasts before the interrupt flag is looked at again.
pub(super) const WAIT_SLICE: Duration = Duration::from_millis(20);

/// The hook that sets the address to which an application's callbacks go.
pub(super) const SET_CALLBACK: &str = "set_callback";

/// Stories under way for each job: those that wait leave their place to others.
const STORIES_PER_JOB: usize = 8;

/// Sessions with live targets; they share connections and time, not state.
pub struct Live {
    pub(super) settings: Settings,
    pub(super) bases: BTreeMap<String, BaseUrl>,
    pub(super) client: Client,
    pub(super) listener: Listener,
    pub(super) interrupted: Arc<AtomicBool>,
    /// When the run must be over.
    pub(super) deadline: Instant,
    /// Says something to the person who waits.
    pub(super) tell: Box<dyn Fn(&str) + Send + Sync>,
    pub(super) limits_told: Once,
    pub(super) schedule: Schedule,
    pub(super) admission: Admission,
    pub(super) slots: Slots,
    /// Who can be brought into a flow; nothing where nobody is configured.
    pub(super) persons: Option<Persons>,
    /// How far the target's clock is ahead of ours, by what `advance_clock` answers.
    pub(super) ahead: Mutex<Ahead>,
    pub(super) time_asked: Once,
    /// How far it was when the run began, and when that was; nothing where it is not told.
    pub(super) began: OnceLock<(Ahead, Instant)>,
    /// The longest that a callback took to come so far; nothing until one came.
    pub(super) callback_ms_max: AtomicU64,
    /// Tells this run from others in leases.
    pub(super) owner: String,
    pub(super) leased: Mutex<Leased>,
    /// Stories that move the target's clock.
    pub(super) together: Together,
    /// How many stories were begun, those that are told again included.
    pub(super) opened: AtomicU64,
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

/// Why there is nothing that sessions could be opened with: a key of the configuration, or the callback listener.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// A target's address is none.
    #[error("targets.{service}.url: {source}")]
    Target {
        /// Its service.
        service: String,
        /// Why not.
        source: UrlError,
    },
    /// Callbacks cannot be received at such an address.
    #[error("callbacks.listen {address}: {source}")]
    Listen {
        /// What is configured.
        address: String,
        /// Why not.
        source: AddrParseError,
    },
    /// Nor be sent to such a one.
    #[error("callbacks.public_url {url}: {source}")]
    PublicUrl {
        /// What is configured.
        url: String,
        /// Why not.
        source: UrlError,
    },
    /// The machine has nothing to listen on.
    #[error("failed to receive callbacks: {0}")]
    Callbacks(#[from] ListenError),
}

impl Live {
    /// Opens the callback listener and gets ready to connect. `interrupted` ends waits, hooks and
    /// exchanges under way.
    pub fn new(
        settings: Settings,
        manner: Manner,
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
        let mut listening = Listening::default();
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
        let persons = exclusive.and_then(|e| settings.targets.get(e.service));
        let persons = persons.map(|target| target.pool.clone());
        let persons = persons.filter(|p| !p.is_empty()).map(Persons::new);
        let listener = Listener::start(&listening)?;
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
            leased: Mutex::default(),
            together: Together::default(),
            opened: AtomicU64::new(0),
        })
    }

    /// Whether this story changes what the target has only one of: its time, or the address to which
    /// an application's callbacks go.
    fn takes_what_is_there_once(&self, planned: &Planned<'_>) -> bool {
        self.moves_the_clock(planned)
            || self.calls(planned, ADVANCE_CLOCK)
            || self.calls(planned, SET_CALLBACK)
    }

    /// Whether it has a step that calls such a hook, and there is one.
    fn calls(&self, planned: &Planned<'_>, hook: &str) -> bool {
        self.settings.hooks.contains_key(hook)
            && planned.any_step(&|step| step.hook() == Some(hook))
    }

    fn company(&self, planned: &Planned<'_>) -> Company {
        if self.calls(planned, ADVANCE_CLOCK)
            || self.calls(planned, SET_CALLBACK)
            || planned.walks_a_shared_list(self.own_scope())
        {
            Company::Nobody
        } else if self.moves_the_clock(planned) {
            Company::Movers
        } else {
            Company::Anybody
        }
    }

    /// The setting of which a hook makes a value for each scenario, within which exclusive values are taken: its service and
    /// key.
    fn own_scope(&self) -> Option<(&str, &str)> {
        let exclusive = self.settings.exclusive()?;
        let (service, key) = (exclusive.service, exclusive.how.within.as_str());
        let setting = self.settings.index.get(service)?.setting(key)?;
        let hook = &setting.provisioned.as_ref()?.hook;
        let target = self.settings.targets.get(service)?;
        let is_own = self.settings.hooks.contains_key(hook) && !target.values.contains_key(key);
        is_own.then_some((service, key))
    }

    /// Whether it takes an exclusive value where other scenarios take one too.
    fn takes_a_shared_value(&self, planned: &Planned<'_>) -> bool {
        let Some(exclusive) = self.settings.exclusive() else {
            return false;
        };
        let name = format!("${{target.{}.{}}}", exclusive.service, exclusive.key);
        let reads = |value: &Value| value.as_str() == Some(name.as_str());
        self.own_scope().is_none() && planned.any_step(&|step| step.values().any(reads))
    }

    pub(super) fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || clock::monotonic() >= self.deadline
    }

    /// Lets real time pass.
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
        let person = self.persons.as_ref();
        let person = person.filter(|_| self.takes_a_shared_value(planned));
        let person = person.map(Persons::take);
        // A story that is told again begins anew.
        let nth = self.opened.fetch_add(1, Ordering::Relaxed);
        let slot = self.slots.take(nth);
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
        let prefix = short_name(&format!("{} {nth}", planned.scenario.id));
        let prefix = format!("{prefix}-");
        let callbacks = Callbacks {
            sink: Arc::clone(self.listener.sink()),
            prefix,
        };
        Ok(Box::new(LiveStory {
            live: self,
            nth,
            callbacks,
            sharer: self.moves_the_clock(planned).then(|| self.together.join()),
            share: RefCell::new(self.client.share()),
            slot: RefCell::new(Some(slot)),
            opened: clock::monotonic(),
            ahead_ms: Cell::new(self.ahead().ms()),
            off_ms: Cell::new(0),
            cut_off: RefCell::default(),
            address_set: Cell::new(false),
            turned_away: RefCell::new(None),
            person,
            holders: RefCell::default(),
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
        if self.takes_what_is_there_once(planned) {
            // Where time and addresses matter most. Others are told again where they went wrong
            // because the clock was moved under their feet.
            touches.extend(self.settings.index.service_of_hook(SET_CALLBACK));
        }
        Room {
            touches,
            company: self.company(planned),
            moves_the_clock: self.moves_the_clock(planned) || self.calls(planned, ADVANCE_CLOCK),
            needs_person: self.persons.is_some() && self.takes_a_shared_value(planned),
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
