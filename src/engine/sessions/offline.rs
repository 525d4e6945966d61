//! The reference as target: each scenario has a world of its own, with its own clock, so that
//! waiting costs nothing and stories do not meet.

use crate::clock::Timestamp;
use crate::engine::session::{Callbacks, HookFault, SendFault, Session};
use crate::engine::settings::{Settings, Target};
use crate::engine::{Planned, Sessions};
use crate::http::{Request, Response};
use crate::reference::{Callback, Fault, Variant};
use crate::rulebook::hooks;
use crate::server::{self, Deliver, Outcome, Server, World, WorldClock};
use crate::transport::{BaseUrl, Client, Limits, Sink};
use crate::verdict::{REFERENCE, SERVICES};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Where links lead; nothing is ever asked there. The same in process and over TCP, so that no port
/// reaches a record.
pub const ORIGIN: &str = "http://reference.invalid";
/// Where callbacks of an offline run go; nothing is ever asked there either.
const SINK_ORIGIN: &str = "http://callbacks.invalid";

/// Changes what passes between scenario and reference: how the self-test makes generated faults.
pub trait Mangle: Sync + fmt::Debug {
    /// Changes a request on its way in.
    fn request(&self, service: &str, request: &mut Request);

    /// Changes a response on its way out.
    fn response(&self, service: &str, request: &Request, response: &mut Response);

    /// Changes an event or a callback's payload of that kind.
    fn payload(&self, kind: &str, document: &mut Value);
}

/// Which switches the reference asked about while it answered: only what was asked about can have
/// changed an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consulted {
    /// Faults.
    pub faults: BTreeSet<Fault>,
    /// Variants.
    pub variants: BTreeSet<Variant>,
}

/// Offline sessions.
#[derive(Debug)]
pub struct Offline<'a> {
    seed: u64,
    faults: BTreeSet<Fault>,
    variants: BTreeSet<Variant>,
    targets: BTreeMap<String, Target>,
    over_tcp: Option<(Server, Client)>,
    mangle: Option<&'a dyn Mangle>,
    consulted: Option<&'a Mutex<BTreeMap<String, Consulted>>>,
    sinks: Arc<Sinks>,
    between: Option<Arc<dyn Network>>,
}

/// What lies between the reference and the receivers of its callbacks.
pub trait Network: Send + Sync + fmt::Debug {
    /// Brings a callback to its receiver, or does not; `onward` is the way there.
    fn deliver(&self, callback: &Callback, onward: &dyn Deliver) -> Outcome;
}

impl<'a> Offline<'a> {
    /// Worlds in this process, without sockets. `targets` are the reference's, without URLs.
    pub fn in_process(
        seed: u64,
        faults: BTreeSet<Fault>,
        variants: BTreeSet<Variant>,
        targets: BTreeMap<String, Target>,
    ) -> Self {
        let sinks = Arc::new(Sinks::default());
        Self {
            seed,
            faults,
            variants,
            targets,
            over_tcp: None,
            mangle: None,
            consulted: None,
            sinks,
            between: None,
        }
    }

    /// Worlds behind `httpmock` on a free port of this machine.
    pub fn over_tcp(
        seed: u64,
        faults: BTreeSet<Fault>,
        variants: BTreeSet<Variant>,
        targets: BTreeMap<String, Target>,
    ) -> Result<Self, String> {
        let sinks = Arc::new(Sinks::default());
        let server = Server::start(server::Settings {
            seed,
            faults: faults.clone(),
            variants: variants.clone(),
            virtual_clock: true,
            deliver: Some(Arc::clone(&sinks) as Arc<dyn Deliver>),
            origin: Some(ORIGIN.to_owned()),
            ..server::Settings::default()
        })
        .map_err(|e| format!("failed to {e}"))?;
        let client = Client::new(Limits::default()).trusting_kept();
        Ok(Self {
            seed,
            faults,
            variants,
            targets,
            over_tcp: Some((server, client)),
            mangle: None,
            consulted: None,
            sinks,
            between: None,
        })
    }

    /// The same sessions with everything that passes changed.
    #[must_use]
    pub fn mangled(mut self, mangle: &'a dyn Mangle) -> Self {
        self.mangle = Some(mangle);
        self
    }

    /// The same sessions, whose callbacks go through a network that has its own mind; in process only.
    #[must_use]
    pub fn through(mut self, network: Arc<dyn Network>) -> Self {
        self.between = Some(network);
        self
    }

    /// The same sessions, which tell by scenario what the reference asked about; in process only.
    #[must_use]
    pub fn consulting(mut self, consulted: &'a Mutex<BTreeMap<String, Consulted>>) -> Self {
        self.consulted = Some(consulted);
        self
    }
}

impl Offline<'_> {
    /// A fresh world of that name.
    pub fn world(&self, scenario: &str) -> Result<Box<dyn Session + '_>, String> {
        let name = super::short_name(scenario);
        let sink = self.sinks.open(&name);
        let callbacks = Callbacks {
            sink,
            prefix: String::new(),
        };
        let way = match &self.over_tcp {
            None => {
                let settings = crate::reference::Settings {
                    seed: server::world_seed(self.seed, &name),
                    origin: ORIGIN.to_owned(),
                    faults: self.faults.clone(),
                    variants: self.variants.clone(),
                };
                let sinks = Arc::clone(&self.sinks) as Arc<dyn Deliver>;
                let deliver = match &self.between {
                    None => sinks,
                    Some(network) => Arc::new(Through {
                        network: Arc::clone(network),
                        sinks,
                    }),
                };
                let world = World::new(settings, WorldClock::stands_still(), deliver);
                Way::InProcess(Box::new(world))
            }
            Some((server, client)) => {
                let base = BaseUrl::parse(&server.world_url(&name)).map_err(|e| e.to_string())?;
                Way::Tcp {
                    server,
                    client,
                    base,
                }
            }
        };
        let mut settings = Settings {
            targets: self.targets.clone(),
            ..Settings::default()
        };
        for (service, target) in &mut settings.targets {
            target.url = format!("{ORIGIN}/{service}");
        }
        let scenario = scenario.to_owned();
        let offline = self;
        Ok(Box::new(OneWorld {
            way,
            name,
            scenario,
            settings,
            callbacks,
            offline,
        }))
    }
}

impl Sessions for Offline<'_> {
    fn open(&self, planned: &Planned<'_>) -> Result<Box<dyn Session + '_>, String> {
        self.world(&planned.scenario.id)
    }

    fn targets(&self) -> BTreeMap<String, String> {
        SERVICES
            .iter()
            .map(|s| ((*s).to_owned(), REFERENCE.to_owned()))
            .collect()
    }
}

/// One scenario's world.
struct OneWorld<'a> {
    way: Way<'a>,
    name: String,
    scenario: String,
    settings: Settings,
    callbacks: Callbacks,
    offline: &'a Offline<'a>,
}

enum Way<'a> {
    InProcess(Box<World>),
    Tcp {
        server: &'a Server,
        client: &'a Client,
        base: BaseUrl,
    },
}

impl OneWorld<'_> {
    fn exchange(&self, request: &Request) -> Result<Response, SendFault> {
        match &self.way {
            Way::InProcess(world) => Ok(world.handle(request)),
            Way::Tcp { client, base, .. } => client
                .send(base, request, client.limits().timeout)
                .map_err(|fault| SendFault::from(&fault)),
        }
    }
}

impl Session for OneWorld<'_> {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn send(&self, service: &str, request: &Request) -> Result<Response, SendFault> {
        let Some(mangle) = self.offline.mangle else {
            return self.exchange(request);
        };
        let mut mangled = request.clone();
        mangle.request(service, &mut mangled);
        let mut response = self.exchange(&mangled)?;
        mangle.response(service, request, &mut response);
        Ok(response)
    }

    fn has_hook(&self, name: &str) -> bool {
        hooks::find(name).is_some()
    }

    fn hook(&self, name: &str, arguments: &Value) -> Result<Value, HookFault> {
        let mut request = Request::new("POST", format!("/_control/{name}"));
        request.headers.set("Content-Type", "application/json");
        request.body = arguments.to_string().into_bytes();
        let response = self
            .exchange(&request)
            .map_err(|f| HookFault::Failed(format!("{}: {}", f.cause, f.detail)))?;
        super::hooks::result(&response)
    }

    fn wait(&self, duration: Duration) {
        match &self.way {
            Way::InProcess(world) => world.advance(duration),
            Way::Tcp { server, .. } => server.advance(&self.name, duration),
        }
    }

    fn now(&self) -> Timestamp {
        match &self.way {
            Way::InProcess(world) => world.now(),
            Way::Tcp { server, .. } => server.now(&self.name),
        }
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn callbacks(&self) -> Option<&Callbacks> {
        Some(&self.callbacks)
    }

    fn mangle_payload(&self, kind: &str, document: &mut Value) {
        if let Some(mangle) = self.offline.mangle {
            mangle.payload(kind, document);
        }
    }
}

impl Drop for OneWorld<'_> {
    fn drop(&mut self) {
        self.offline.sinks.close(&self.name);
        match &self.way {
            Way::InProcess(world) => {
                if let Some(consulted) = self.offline.consulted {
                    let (faults, variants) = world.consulted();
                    let mut all = consulted.lock().unwrap_or_else(PoisonError::into_inner);
                    all.insert(self.scenario.clone(), Consulted { faults, variants });
                }
            }
            Way::Tcp { server, .. } => {
                server.drop_world(&self.name);
            }
        }
    }
}

/// The way of callbacks through a network.
struct Through {
    network: Arc<dyn Network>,
    sinks: Arc<dyn Deliver>,
}

impl Deliver for Through {
    fn deliver(&self, callback: &Callback) -> Outcome {
        self.network.deliver(callback, self.sinks.as_ref())
    }
}

/// Receivers of callbacks by world: an offline run delivers in process, so that a time-out passes
/// on the world's clock and not on ours.
#[derive(Debug, Default)]
struct Sinks {
    by_world: Mutex<BTreeMap<String, Arc<Sink>>>,
}

impl Sinks {
    fn open(&self, world: &str) -> Arc<Sink> {
        let sink = Arc::new(Sink::new(format!("{SINK_ORIGIN}/{world}")));
        self.lock().insert(world.to_owned(), Arc::clone(&sink));
        sink
    }

    fn close(&self, world: &str) {
        self.lock().remove(world);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Sink>>> {
        self.by_world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deliver for Sinks {
    fn deliver(&self, callback: &Callback) -> Outcome {
        let behind = callback
            .url
            .strip_prefix(SINK_ORIGIN)
            .and_then(|path| path.strip_prefix('/'));
        let world = behind
            .and_then(|path| path.split('/').next())
            .unwrap_or_default();
        let sink = self.lock().get(world).cloned();
        let Some((sink, name)) =
            sink.and_then(|sink| sink.name_at(&callback.url).map(|n| (sink, n)))
        else {
            return Outcome::Unreachable;
        };
        let reply = sink.receive(&name, callback.request.clone(), Timestamp::UNIX_EPOCH);
        Outcome::Answered {
            status: reply.status,
            after: reply.after,
        }
    }
}
