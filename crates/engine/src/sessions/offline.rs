//! Offline sessions: each scenario has its own reference instance with a virtual clock.
//!
//! Waits cost nothing, and scenarios are isolated.

use super::replay::{
    DeliveryRecorder, KnownOutcomes, Replay, ReplayLog, ReplayedInstance, answers,
};
use crate::session::race::{Acted, Action, ActionResult};
use crate::session::{Callbacks, Holder, HookFault, OpenError, SendFault, Session};
use crate::settings::{Settings, Target};
use crate::{Planned, Sessions};
use conformant_base::clock::Timestamp;
use conformant_base::http::{Request, Response};
use conformant_base::parallel::lock;
use conformant_net::server::{self, Deliver, Outcome, Server, World, WorldClock};
use conformant_net::transport::{BaseUrl, Client, Departure, Limits, Sink};
use conformant_record::REFERENCE;
use conformant_reference::SERVICES;
use conformant_reference::{Callback, Fault, Switch, Variant};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Origin of links. Never contacted, and equal in process and over TCP, so that records contain no port.
pub const ORIGIN: &str = "http://reference.invalid";
/// Origin of callback addresses. Never contacted.
const SINK_ORIGIN: &str = "http://callbacks.invalid";

/// Changes the traffic network scenario and reference, to generate the faults of the self-test.
pub trait Mutate: Sync + fmt::Debug {
    /// Changes a request before the reference receives it.
    fn request(&self, _service: &str, _request: &mut Request) {}

    /// Changes a response of the reference.
    fn response(&self, _service: &str, _request: &Request, _response: &mut Response) {}

    /// Changes an event or a callback's payload of that kind.
    fn payload(&self, _kind: &str, _document: &mut Value) {}
}

/// Offline sessions.
#[derive(Debug)]
pub struct Offline<'a> {
    seed: u64,
    faults: BTreeSet<Fault>,
    variants: BTreeSet<Variant>,
    /// Shared by all instances.
    settings: Settings,
    over_tcp: Option<(Server, Client)>,
    mutator: Option<&'a dyn Mutate>,
    logs: Option<&'a Mutex<BTreeMap<String, ReplayLog>>>,
    sinks: Arc<Sinks>,
    network: Option<Arc<dyn Network>>,
}

/// The network between the reference and the receivers of its callbacks.
pub trait Network: Send + Sync + fmt::Debug {
    /// Delivers a callback through `onward`, or loses it.
    fn deliver(&self, callback: &Callback, onward: &Arc<dyn Deliver>) -> Outcome;
}

impl<'a> Offline<'a> {
    /// Instances in this process, without sockets. `targets` are the reference's, without URLs.
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
            mutator: None,
            logs: None,
            sinks,
            network: None,
        }
    }

    /// Instances in this process without faults and variations, for all services.
    pub fn faultless(seed: u64) -> Self {
        let (faults, variants) = (BTreeSet::new(), BTreeSet::new());
        Self::in_process(seed, faults, variants, Target::all_of_reference())
    }

    /// Instances behind `httpmock` on a free port of this machine.
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
            mutator: None,
            logs: None,
            sinks,
            network: None,
        })
    }

    /// The same sessions with that many rounds of each race.
    #[must_use]
    pub fn with_rounds(mut self, rounds: usize) -> Self {
        self.settings.rounds = rounds;
        self
    }

    /// Applies `mutator` to all traffic.
    #[must_use]
    pub fn mutated(mut self, mutator: &'a dyn Mutate) -> Self {
        self.mutator = Some(mutator);
        self
    }

    /// Sends callbacks over a simulated network; in process only.
    #[must_use]
    pub fn with_network(mut self, network: Arc<dyn Network>) -> Self {
        self.network = Some(network);
        self
    }

    /// Stores a replay log for each scenario; in process only.
    #[must_use]
    pub fn with_replay_logs(mut self, logs: &'a Mutex<BTreeMap<String, ReplayLog>>) -> Self {
        self.logs = Some(logs);
        self
    }
}

impl Offline<'_> {
    /// A fresh instance with that name.
    pub fn world(&self, scenario: &str) -> Result<Box<dyn Session + '_>, OpenError> {
        let name = super::short_name(scenario);
        let transport = match &self.over_tcp {
            None => {
                let settings = conformant_reference::Settings {
                    seed: server::world_seed(self.seed, &name),
                    origin: ORIGIN.to_owned(),
                    faults: self.faults.clone(),
                    variants: self.variants.clone(),
                };
                let deliver = self.deliver();
                match self.logs {
                    None => Transport::InProcess(Box::new(fresh(settings, deliver))),
                    Some(logs) => {
                        let delivery_recorder = Arc::new(DeliveryRecorder::before(deliver));
                        let world = fresh(settings.clone(), Arc::clone(&delivery_recorder) as _);
                        let log = RefCell::new(ReplayLog::of(settings, &world));
                        Transport::Tracked {
                            world: Box::new(world),
                            delivery_recorder,
                            log,
                            logs,
                        }
                    }
                }
            }
            Some((server, client)) => {
                let url = server.world_url(&name);
                let base = BaseUrl::parse(&url).map_err(|source| OpenError { url, source })?;
                Transport::Tcp {
                    server,
                    client,
                    base,
                }
            }
        };
        Ok(self.session(scenario, name, transport))
    }

    /// A replayed instance with one switch on. It answers from the log as long as the scenario sends the logged
    /// requests.
    pub fn replayed(
        &self,
        scenario: &str,
        switch: Switch,
        (rerun, known): (&Replay, KnownOutcomes),
    ) -> Box<dyn Session + '_> {
        let world = rerun.resume(switch, known, self.deliver());
        let transport = Transport::ReplayedInstance(RefCell::new(Box::new(world)));
        self.session(scenario, super::short_name(scenario), transport)
    }

    fn deliver(&self) -> Arc<dyn Deliver> {
        let sinks = Arc::clone(&self.sinks) as Arc<dyn Deliver>;
        match &self.network {
            None => sinks,
            Some(network) => {
                let network = Arc::clone(network);
                Arc::new(move |callback: &Callback| network.deliver(callback, &sinks))
            }
        }
    }

    fn session<'s>(
        &'s self,
        scenario: &str,
        name: String,
        transport: Transport<'s>,
    ) -> Box<dyn Session + 's> {
        let callbacks = Callbacks {
            sink: self.sinks.open(&name),
            prefix: String::new(),
        };
        Box::new(OfflineSession {
            transport,
            name,
            scenario: scenario.to_owned(),
            callbacks,
            holders: RefCell::default(),
            offline: self,
        })
    }
}

/// The settings of all instances.
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

/// The instance of one scenario.
struct OfflineSession<'a> {
    transport: Transport<'a>,
    name: String,
    scenario: String,
    callbacks: Callbacks,
    holders: RefCell<Vec<Holder>>,
    offline: &'a Offline<'a>,
}

enum Transport<'a> {
    InProcess(Box<World>),
    Tracked {
        world: Box<World>,
        delivery_recorder: Arc<DeliveryRecorder>,
        log: RefCell<ReplayLog>,
        logs: &'a Mutex<BTreeMap<String, ReplayLog>>,
    },
    ReplayedInstance(RefCell<Box<ReplayedInstance>>),
    Tcp {
        server: &'a Server,
        client: &'a Client,
        base: BaseUrl,
    },
}

impl OfflineSession<'_> {
    fn exchange(&self, request: &Request) -> Result<Response, SendFault> {
        if let Transport::Tcp { client, base, .. } = &self.transport {
            let answer = client.send(base, request, client.limits().timeout);
            return answer.map_err(SendFault::from);
        }
        let mut responses = self.exchange_all(std::slice::from_ref(request))?;
        responses.pop().expect("one answer to one request")
    }

    /// Requests that arrive at the same time; a control request for each hook.
    fn exchange_all(
        &self,
        requests: &[Request],
    ) -> Result<Vec<Result<Response, SendFault>>, SendFault> {
        let responses = match &self.transport {
            Transport::InProcess(world) => answers(world, requests),
            Transport::Tracked {
                world,
                delivery_recorder,
                log,
                ..
            } => {
                let responses = answers(world, requests);
                let delivered = delivery_recorder.take();
                let mut log = log.borrow_mut();
                log.asked_for(world, requests, &responses, delivered);
                responses
            }
            Transport::ReplayedInstance(world) => world.borrow_mut().handle(requests),
            Transport::Tcp { client, base, .. } => {
                let departures: Vec<Departure<'_>> = requests
                    .iter()
                    .map(|request| Departure { base, request })
                    .collect();
                let timeout = client.limits().timeout;
                let arrived =
                    client.send_concurrently(&client.share(), &departures, timeout, || {})?;
                let answers = arrived.into_iter().map(|one| one.answer);
                return Ok(answers.map(|answer| Ok(answer?.response)).collect());
            }
        };
        Ok(responses.into_iter().map(Ok).collect())
    }
}

impl Session for OfflineSession<'_> {
    fn settings(&self) -> &Settings {
        &self.offline.settings
    }

    fn send(&self, service: &str, request: &Request) -> Result<Response, SendFault> {
        let Some(mutator) = self.offline.mutator else {
            return self.exchange(request);
        };
        let mut mutated = request.clone();
        mutator.request(service, &mut mutated);
        let mut response = self.exchange(&mutated)?;
        mutator.response(service, request, &mut response);
        Ok(response)
    }

    fn has_hook(&self, name: &str) -> bool {
        self.offline.settings.index.hook(name).is_some()
    }

    fn hook(&self, name: &str, arguments: &Value) -> Result<Value, HookFault> {
        hook_result(self.exchange(&control_request(name, arguments)))
    }

    fn act_concurrently(&self, actions: &[Action<'_>]) -> Result<Vec<Acted>, SendFault> {
        let mutator = self.offline.mutator;
        let requests: Vec<Request> = actions
            .iter()
            .map(|action| match action {
                Action::Request { service, request } => {
                    let mut request = Request::clone(request);
                    if let Some(mutator) = mutator {
                        mutator.request(service, &mut request);
                    }
                    request
                }
                Action::Hook { name, arguments } => control_request(name, arguments),
            })
            .collect();
        let responses = self.exchange_all(&requests)?;
        let acted = actions.iter().zip(responses);
        let acted = acted.map(|(action, mut response)| Acted {
            result: match action {
                Action::Request { service, request } => {
                    if let (Some(mutator), Ok(response)) = (mutator, &mut response) {
                        mutator.response(service, request, response);
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
        match &self.transport {
            Transport::InProcess(world) => world.advance(duration),
            Transport::Tracked { world, log, .. } => {
                world.advance(duration);
                log.borrow_mut().waited(world, duration);
            }
            Transport::ReplayedInstance(world) => world.borrow_mut().advance(duration),
            Transport::Tcp { server, .. } => server.advance(&self.name, duration),
        }
    }

    fn now(&self) -> Timestamp {
        match &self.transport {
            Transport::InProcess(world) | Transport::Tracked { world, .. } => world.now(),
            Transport::ReplayedInstance(world) => world.borrow().now(),
            Transport::Tcp { server, .. } => server.now(&self.name),
        }
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn record_holder(&self, holder: Holder) {
        self.holders.borrow_mut().push(holder);
    }

    fn made_holders(&self, value: &str) -> Vec<Holder> {
        let holders = self.holders.borrow();
        let of_value = holders.iter().filter(|holder| holder.value == value);
        of_value.cloned().collect()
    }

    fn callbacks(&self) -> Option<&Callbacks> {
        Some(&self.callbacks)
    }

    fn mutate_payload(&self, kind: &str, document: &mut Value) {
        if let Some(mutator) = self.offline.mutator {
            mutator.payload(kind, document);
        }
    }
}

impl Drop for OfflineSession<'_> {
    fn drop(&mut self) {
        self.offline.sinks.close(&self.name);
        match &self.transport {
            Transport::InProcess(_) | Transport::ReplayedInstance(_) => {}
            Transport::Tracked { log, logs, .. } => {
                let mut all = lock(logs);
                all.insert(self.scenario.clone(), log.take());
            }
            Transport::Tcp { server, .. } => {
                server.drop_world(&self.name);
            }
        }
    }
}

/// Receivers of callbacks by instance. Delivery is in process, so a time-out passes on the virtual clock.
#[derive(Debug, Default)]
struct Sinks {
    by_instance: Mutex<BTreeMap<String, Arc<Sink>>>,
}

impl Sinks {
    fn open(&self, world: &str) -> Arc<Sink> {
        let sink = Arc::new(Sink::new(format!("{SINK_ORIGIN}/{world}")));
        lock(&self.by_instance).insert(world.to_owned(), Arc::clone(&sink));
        sink
    }

    fn close(&self, world: &str) {
        lock(&self.by_instance).remove(world);
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
        let sink = lock(&self.by_instance).get(world).cloned();
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
    let answer = answer.map_err(|fault| HookFault::Failed(fault.to_string()))?;
    super::hooks::result(&answer)
}
