//! The reference as target: each scenario has a world of its own, with its own clock, so that
//! waiting costs nothing and stories do not meet.

use super::track::{Noting, Passed, Rerun, TakenUp, Track};
use crate::race::{Acted, Action, ActionResult};
use crate::session::{Callbacks, HookFault, OpenError, SendFault, Session};
use crate::settings::{Settings, Target};
use crate::{Planned, Sessions};
use conformant_base::clock::Timestamp;
use conformant_base::http::{Request, Response};
use conformant_net::server::{self, Deliver, Outcome, Server, World, WorldClock};
use conformant_net::transport::{BaseUrl, Client, Departure, Limits, Sink};
use conformant_record::REFERENCE;
use conformant_reference::SERVICES;
use conformant_reference::{Callback, Fault, Switch, Variant};
use serde_json::Value;
use std::cell::RefCell;
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

/// Offline sessions.
#[derive(Debug)]
pub struct Offline<'a> {
    seed: u64,
    faults: BTreeSet<Fault>,
    variants: BTreeSet<Variant>,
    /// The same for every world.
    settings: Settings,
    over_tcp: Option<(Server, Client)>,
    mangle: Option<&'a dyn Mangle>,
    tracks: Option<&'a Mutex<BTreeMap<String, Track>>>,
    sinks: Arc<Sinks>,
    between: Option<Arc<dyn Network>>,
}

/// What lies between the reference and the receivers of its callbacks.
pub trait Network: Send + Sync + fmt::Debug {
    /// Brings a callback to its receiver, or does not; `onward` is the way there.
    fn deliver(&self, callback: &Callback, onward: &Arc<dyn Deliver>) -> Outcome;
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
            settings: settings(targets),
            over_tcp: None,
            mangle: None,
            tracks: None,
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
    ) -> Result<Self, server::Error> {
        let sinks = Arc::new(Sinks::default());
        let server = Server::start(server::Settings {
            seed,
            faults: faults.clone(),
            variants: variants.clone(),
            virtual_clock: true,
            deliver: Some(Arc::clone(&sinks) as Arc<dyn Deliver>),
            origin: Some(ORIGIN.to_owned()),
            ..server::Settings::default()
        })?;
        let client = Client::new(Limits::default()).trusting_kept();
        Ok(Self {
            seed,
            faults,
            variants,
            settings: settings(targets),
            over_tcp: Some((server, client)),
            mangle: None,
            tracks: None,
            sinks,
            between: None,
        })
    }

    /// The same sessions with that many rounds of each race.
    #[must_use]
    pub fn with_rounds(mut self, rounds: usize) -> Self {
        self.settings.rounds = rounds;
        self
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

    /// The same sessions, which keep by scenario what passed in them; in process only.
    #[must_use]
    pub fn tracking(mut self, tracks: &'a Mutex<BTreeMap<String, Track>>) -> Self {
        self.tracks = Some(tracks);
        self
    }
}

impl Offline<'_> {
    /// A fresh world of that name.
    pub fn world(&self, scenario: &str) -> Result<Box<dyn Session + '_>, OpenError> {
        let name = super::short_name(scenario);
        let way = match &self.over_tcp {
            None => {
                let settings = conformant_reference::Settings {
                    seed: server::world_seed(self.seed, &name),
                    origin: ORIGIN.to_owned(),
                    faults: self.faults.clone(),
                    variants: self.variants.clone(),
                };
                let deliver = self.deliver();
                match self.tracks {
                    None => Way::InProcess(Box::new(fresh(settings, deliver))),
                    Some(tracks) => {
                        let noting = Arc::new(Noting::before(deliver));
                        let world = fresh(settings.clone(), Arc::clone(&noting) as _);
                        let track = RefCell::new(Track::of(settings, &world));
                        Way::Tracked {
                            world: Box::new(world),
                            noting,
                            track,
                            tracks,
                        }
                    }
                }
            }
            Some((server, client)) => {
                let url = server.world_url(&name);
                let base = BaseUrl::parse(&url).map_err(|source| OpenError { url, source })?;
                Way::Tcp {
                    server,
                    client,
                    base,
                }
            }
        };
        Ok(self.session(scenario, name, way))
    }

    /// The world of a story that is told again with something switched on, of which it is known what passes as long as
    /// it asks what it asked before.
    pub fn taken_up(
        &self,
        scenario: &str,
        switch: Switch,
        (rerun, passed): (&Rerun, Passed),
    ) -> Box<dyn Session + '_> {
        let world = rerun.take_up(switch, passed, self.deliver());
        let way = Way::TakenUp(RefCell::new(Box::new(world)));
        self.session(scenario, super::short_name(scenario), way)
    }

    fn deliver(&self) -> Arc<dyn Deliver> {
        let sinks = Arc::clone(&self.sinks) as Arc<dyn Deliver>;
        match &self.between {
            None => sinks,
            Some(network) => Arc::new(Through {
                network: Arc::clone(network),
                sinks,
            }),
        }
    }

    fn session<'s>(&'s self, scenario: &str, name: String, way: Way<'s>) -> Box<dyn Session + 's> {
        let callbacks = Callbacks {
            sink: self.sinks.open(&name),
            prefix: String::new(),
        };
        Box::new(OneWorld {
            way,
            name,
            scenario: scenario.to_owned(),
            callbacks,
            offline: self,
        })
    }
}

/// The reference's targets as every world has them.
fn settings(targets: BTreeMap<String, Target>) -> Settings {
    let mut settings = Settings {
        targets,
        // A fault shows in each round, because the order of requests follows from the seed.
        rounds: 1,
        ..Settings::default()
    };
    for (service, target) in &mut settings.targets {
        target.url = format!("{ORIGIN}/{service}");
    }
    settings
}

fn fresh(settings: conformant_reference::Settings, deliver: Arc<dyn Deliver>) -> World {
    World::new(settings, WorldClock::stands_still(), deliver)
}

impl Sessions for Offline<'_> {
    fn open(&self, planned: &Planned<'_>) -> Result<Box<dyn Session + '_>, OpenError> {
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
    callbacks: Callbacks,
    offline: &'a Offline<'a>,
}

enum Way<'a> {
    InProcess(Box<World>),
    Tracked {
        world: Box<World>,
        noting: Arc<Noting>,
        track: RefCell<Track>,
        tracks: &'a Mutex<BTreeMap<String, Track>>,
    },
    TakenUp(RefCell<Box<TakenUp>>),
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
            Way::Tracked {
                world,
                noting,
                track,
                ..
            } => {
                let response = world.handle(request);
                let delivered = noting.take();
                let mut track = track.borrow_mut();
                track.asked_for(world, request, &response, delivered);
                Ok(response)
            }
            Way::TakenUp(world) => Ok(world.borrow_mut().handle(request)),
            Way::Tcp { client, base, .. } => client
                .send(base, request, client.limits().timeout)
                .map_err(|fault| SendFault::from(&fault)),
        }
    }
}

impl OneWorld<'_> {
    /// Requests that arrive at the same time; a control request for each hook.
    fn exchange_concurrently(
        &self,
        requests: &[Request],
    ) -> Result<Vec<Result<Response, SendFault>>, SendFault> {
        let responses = match &self.way {
            Way::InProcess(world) => world.handle_concurrently(requests),
            Way::Tracked {
                world,
                noting,
                track,
                ..
            } => {
                let responses = world.handle_concurrently(requests);
                let delivered = noting.take();
                let mut track = track.borrow_mut();
                track.raced(world, requests, &responses, delivered);
                responses
            }
            Way::TakenUp(world) => world.borrow_mut().handle_concurrently(requests),
            Way::Tcp { client, base, .. } => {
                let departures: Vec<Departure<'_>> = requests
                    .iter()
                    .map(|request| Departure { base, request })
                    .collect();
                let timeout = client.limits().timeout;
                let arrived = client.send_concurrently(&departures, timeout, || {});
                let arrived = arrived.map_err(|fault| SendFault::from(&fault))?;
                let answers = arrived.into_iter().map(|one| one.answer);
                let answers = answers.map(|answer| match answer {
                    Ok(answer) => Ok(answer.response),
                    Err(fault) => Err(SendFault::from(&fault)),
                });
                return Ok(answers.collect());
            }
        };
        Ok(responses.into_iter().map(Ok).collect())
    }
}

impl Session for OneWorld<'_> {
    fn settings(&self) -> &Settings {
        &self.offline.settings
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
        self.offline.settings.index.hook(name).is_some()
    }

    fn hook(&self, name: &str, arguments: &Value) -> Result<Value, HookFault> {
        hook_result(self.exchange(&control_request(name, arguments)))
    }

    fn act_concurrently(&self, actions: &[Action<'_>]) -> Result<Vec<Acted>, SendFault> {
        let mangle = self.offline.mangle;
        let requests: Vec<Request> = actions
            .iter()
            .map(|action| match action {
                Action::Request { service, request } => {
                    let mut request = Request::clone(request);
                    if let Some(mangle) = mangle {
                        mangle.request(service, &mut request);
                    }
                    request
                }
                Action::Hook { name, arguments } => control_request(name, arguments),
            })
            .collect();
        let responses = self.exchange_concurrently(&requests)?;
        let acted = actions.iter().zip(responses);
        let acted = acted.map(|(action, mut response)| Acted {
            result: match action {
                Action::Request { service, request } => {
                    if let (Some(mangle), Ok(response)) = (mangle, &mut response) {
                        mangle.response(service, request, response);
                    }
                    ActionResult::Response(response)
                }
                Action::Hook { .. } => ActionResult::Hook(hook_result(response)),
            },
            // All arrive before the first is answered.
            sent: Duration::ZERO,
            received: Duration::from_micros(1),
        });
        Ok(acted.collect())
    }

    fn wait(&self, duration: Duration) {
        match &self.way {
            Way::InProcess(world) => world.advance(duration),
            Way::Tracked { world, track, .. } => {
                world.advance(duration);
                track.borrow_mut().waited(world, duration);
            }
            Way::TakenUp(world) => world.borrow_mut().advance(duration),
            Way::Tcp { server, .. } => server.advance(&self.name, duration),
        }
    }

    fn now(&self) -> Timestamp {
        match &self.way {
            Way::InProcess(world) | Way::Tracked { world, .. } => world.now(),
            Way::TakenUp(world) => world.borrow().now(),
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
            Way::InProcess(_) | Way::TakenUp(_) => {}
            Way::Tracked { track, tracks, .. } => {
                let mut all = tracks.lock().unwrap_or_else(PoisonError::into_inner);
                all.insert(self.scenario.clone(), track.take());
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
        self.network.deliver(callback, &self.sinks)
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

/// The request to the control plane that carries a hook out.
fn control_request(name: &str, arguments: &Value) -> Request {
    let mut request = Request::new("POST", format!("/_control/{name}"));
    request.headers.set("Content-Type", "application/json");
    request.body = arguments.to_string().into_bytes();
    request
}

fn hook_result(answer: Result<Response, SendFault>) -> Result<Value, HookFault> {
    let answer = answer.map_err(|f| HookFault::Failed(format!("{}: {}", f.cause, f.detail)))?;
    super::hooks::result(&answer)
}
