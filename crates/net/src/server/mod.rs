//! The HTTP server of the reference: `httpmock` with a catch-all handler, callbacks over HTTP.
//!
//! - Routes each request to its [`World`], a sandbox with its own state, so that concurrent scenarios are
//!   isolated.
//! - `httpmock` bounds neither bodies nor idle sockets: the server is for clients of this machine only.

mod develop;
mod dispatcher;
mod event_log;
mod gate;
mod http_delivery;
mod interleaving;
mod page;
mod relay;
mod script;
mod seeds;
#[cfg(feature = "tls")]
mod tls;
mod world;

pub use self::gate::TOKEN_HEADER;
pub use self::http_delivery::HttpDelivery;
pub use self::page::{NoOffer, Offer};
pub use self::script::{Route, ScriptError, Scripted, read as read_script};
pub use self::seeds::{LineError, Seed, SeedError, Seeds, Step};
#[cfg(feature = "tls")]
pub use self::tls::{Identity, IdentityError};
pub use self::world::{Deliver, Outcome, REFERENCE, World, WorldClock};

use self::develop::{Answered, InitialState};
use self::dispatcher::Dispatcher;
use self::event_log::{EventLog, LogWriter};
use self::gate::{Gate, is_control};
use self::page::PageSettings;
use self::relay::Relay;
use self::script::Script;
use conformant_base::clock::{self, Timestamp};
use conformant_base::http::{Request, Response};
use conformant_base::parallel::lock;
use conformant_reference::{Fault, Variant};
use httpmock::{HttpMockRequest, HttpMockResponse, MockServer};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Requests that a server with a port handles at the same time: as many as a race sends.
const HANDLERS: usize = 8;

/// Observes requests of clients and their responses.
pub type Witness = Arc<dyn Fn(Exchanged<'_>) + Send + Sync>;

#[derive(Clone, Copy, Debug)]
pub struct Exchanged<'a> {
    /// Origin of the server.
    pub origin: &'a str,
    /// Name of the sandbox; empty for the default one.
    pub world: &'a str,
    /// Without the prefix of the sandbox.
    pub request: &'a Request,
    pub response: &'a Response,
    /// Name of the matching scripted response.
    pub scripted: Option<&'a str>,
    /// Time to create the response.
    pub took: Duration,
}

/// Settings of a server.
#[derive(Clone, Default)]
pub struct Settings {
    /// The port; 0 for any free one. `None` listens on a loopback port without a relay, so that scripted
    /// responses cannot interrupt connections.
    pub port: Option<u16>,
    /// The interface; loopback by default.
    pub host: Option<IpAddr>,
    /// Certificate; enables TLS. Requires a port.
    #[cfg(feature = "tls")]
    pub tls: Option<Identity>,
    /// Origins whose pages may call the services from a browser; `*` for all.
    pub cors: Vec<String>,
    /// Operations for scripted responses.
    pub routes: Vec<Route>,
    /// Scripted responses of every sandbox.
    pub script: Vec<Scripted>,
    /// Initial state of sandboxes.
    pub seeds: Option<Seeds>,
    /// Keeps changing requests for export.
    pub keeps: bool,
    /// Seed of every sandbox.
    pub seed: u64,
    /// Faults of every sandbox.
    pub faults: BTreeSet<Fault>,
    /// Allowed variations of every sandbox.
    pub variants: BTreeSet<Variant>,
    /// Time moves only when advanced. Callbacks are then delivered before the response is sent.
    pub virtual_clock: bool,
    /// Delivers callbacks; over HTTP by default.
    pub deliver: Option<Arc<dyn Deliver>>,
    /// Start of links in every sandbox, instead of its address: responses then do not depend on the port.
    pub origin: Option<String>,
    /// Observes each request to a service and its response.
    pub witness: Option<Witness>,
    /// Enables the page at `/` and creates its QR codes. Requires a port.
    pub page: Option<Offer>,
    /// Admits callers of the control plane that use another host name.
    pub control_token: Option<String>,
}

impl Settings {
    fn interface(&self) -> IpAddr {
        self.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// Address of the plain HTTP server; loopback behind TLS.
    fn plainly(&self, port: u16) -> (IpAddr, u16) {
        match self.scheme() {
            "https" => (IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            _ => (self.interface(), port),
        }
    }

    /// Parts of a link around the host name of the server; `None` if it has a fixed name.
    fn follows(&self, world: &str) -> Option<(&'static str, String)> {
        let is_every = self.host.is_some_and(|host| host.is_unspecified());
        let path = match world {
            "" => String::new(),
            name => format!("/_world/{name}"),
        };
        (is_every && self.origin.is_none()).then(|| (self.scheme(), path))
    }

    #[cfg(feature = "tls")]
    fn scheme(&self) -> &'static str {
        match (&self.tls, self.port) {
            (Some(_), Some(_)) => "https",
            _ => "http",
        }
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_self, reason = "with TLS it depends on the certificate")]
    fn scheme(&self) -> &'static str {
        "http"
    }

    #[cfg(feature = "tls")]
    fn front(&self, to: std::net::SocketAddr) -> Result<Option<Relay>, Error> {
        let (Some(identity), Some(port)) = (&self.tls, self.port) else {
            return Ok(None);
        };
        let host = self.interface();
        let config = identity.config()?;
        let front = tls::listen((host, port).into(), to, config);
        let front = front.map_err(|source| Error::Listen { host, port, source })?;
        Ok(Some(front))
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("listen on {host}:{port}: {source}")]
    Listen {
        host: IpAddr,
        port: u16,
        source: std::io::Error,
    },
    #[cfg(feature = "tls")]
    #[error("use the certificate: {0}")]
    Certificate(#[from] IdentityError),
    #[error("use the script: {0}")]
    Script(#[from] ScriptError),
    #[error("seed {}: {source}", sandbox(world))]
    Seeds { world: String, source: SeedError },
}

/// A sandbox in a message.
fn sandbox(name: &str) -> String {
    match name {
        "" => "the default sandbox".to_owned(),
        name => format!("sandbox `{name}`"),
    }
}

/// A running server; stops when dropped.
pub struct Server {
    /// Several behind a relay: each handles one request at a time.
    http: Vec<MockServer>,
    worlds: Arc<Worlds>,
    /// Present if a port was requested, which `httpmock` does not support.
    _relay: Option<Relay>,
    #[cfg(feature = "tls")]
    _front: Option<Relay>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("url", &self.url())
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Starts a server.
    pub fn start(settings: Settings) -> Result<Self, Error> {
        let handlers = if settings.port.is_some() { HANDLERS } else { 1 };
        let http: Vec<MockServer> = (0..handlers).map(|_| MockServer::start()).collect();
        let event_log = Arc::<EventLog>::default();
        let relay = match settings.port {
            None => None,
            Some(port) => {
                let (host, port) = settings.plainly(port);
                let log = Arc::clone(&event_log);
                let handlers = http.iter().map(|http| *http.address()).collect();
                let relay = Relay::start((host, port).into(), handlers, log);
                Some(relay.map_err(|source| Error::Listen { host, port, source })?)
            }
        };
        let address = relay.as_ref().map_or(*http[0].address(), Relay::address);
        #[cfg(feature = "tls")]
        let front = settings.front(address)?;
        #[cfg(feature = "tls")]
        let address = front.as_ref().map_or(address, Relay::address);
        let scheme = settings.scheme();
        let worlds = Arc::new(Worlds::new(
            settings,
            format!("{scheme}://{address}"),
            event_log,
        )?);
        worlds.begin()?;
        for http in &http {
            let answering = Arc::clone(&worlds);
            http.mock(|when, then| {
                when.any_request();
                then.respond_with(move |request| {
                    let request = read(request);
                    let is_head = request.method == "HEAD";
                    to_httpmock(relay::mark_response(answering.answer(request), is_head))
                });
            });
        }
        Ok(Self {
            http,
            worlds,
            _relay: relay,
            #[cfg(feature = "tls")]
            _front: front,
        })
    }

    /// `http://127.0.0.1:PORT`, the default sandbox.
    pub fn url(&self) -> &str {
        &self.worlds.origin
    }

    /// URL of a named sandbox, which is created on first use.
    pub fn world_url(&self, name: &str) -> String {
        self.worlds.origin_of(name)
    }

    /// The time in a sandbox.
    pub fn now(&self, name: &str) -> Timestamp {
        self.worlds
            .world(name)
            .map_or(Timestamp::UNIX_EPOCH, |world| world.now())
    }

    /// Advances the time of a sandbox at once.
    pub fn advance(&self, name: &str, by: Duration) {
        if let Ok(world) = self.worlds.world(name) {
            world.advance(by);
        }
    }

    /// Deletes a sandbox; the next request recreates it. False if there was none.
    pub fn drop_world(&self, name: &str) -> bool {
        self.worlds.forget(name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // `httpmock` reuses servers together with their handlers.
        self.http.iter().for_each(MockServer::reset);
        self.worlds.dispatcher.close();
        self.worlds.event_log.close();
    }
}

/// The seed of a named sandbox: the same name and seed give the same identifiers, whatever else runs.
pub fn world_seed(seed: u64, name: &str) -> u64 {
    let digest = Sha256::new()
        .chain_update(seed.to_be_bytes())
        .chain_update(name)
        .finalize();
    let first = digest.first_chunk().copied();
    first.map_or(0, u64::from_be_bytes)
}

/// Why a sandbox cannot be created.
enum NoWorld {
    TooMany,
    Unseeded(SeedError),
}

/// The sandboxes of a server by name; the default one has an empty name.
struct Worlds {
    settings: Settings,
    script: Script,
    gate: Gate,
    origin: String,
    by_name: Mutex<BTreeMap<String, Arc<World>>>,
    event_log: Arc<EventLog>,
    dispatcher: Dispatcher,
}

impl Worlds {
    /// Larger bodies are refused; media files are the largest.
    const BODY_BYTES_MAX: usize = 32 << 20;
    /// Limit of simultaneous sandboxes.
    const WORLDS_MAX: usize = 4096;

    fn new(
        settings: Settings,
        origin: String,
        event_log: Arc<EventLog>,
    ) -> Result<Self, ScriptError> {
        let token = settings.control_token.clone();
        let script = Script::new(Arc::new(settings.routes.clone()), &settings.script)?;
        Ok(Self {
            settings,
            script,
            gate: Gate { token },
            origin,
            by_name: Mutex::default(),
            event_log,
            dispatcher: Dispatcher::default(),
        })
    }

    /// Creates the sandboxes that seed data names, to report errors at once.
    fn begin(&self) -> Result<(), Error> {
        let Some(seeds) = &self.settings.seeds else {
            return Ok(());
        };
        for name in std::iter::once("").chain(seeds.names()) {
            let begun = self.world(name);
            if let Err(NoWorld::Unseeded(source)) = begun {
                let world = name.to_owned();
                return Err(Error::Seeds { world, source });
            }
        }
        Ok(())
    }

    /// Names of the existing sandboxes; the default one has an empty name.
    fn names(&self) -> Vec<String> {
        let worlds = lock(&self.by_name);
        worlds
            .keys()
            .filter(|name| !name.is_empty())
            .cloned()
            .collect()
    }

    fn origin_of(&self, name: &str) -> String {
        format!("{}/_world/{name}", self.origin)
    }

    /// Handles a request and adds CORS headers.
    fn answer(&self, request: Request) -> Answered {
        let Some(origin) = self.allowed_origin(&request) else {
            return self.answer_plainly(request);
        };
        let preflight = (request.method == "OPTIONS").then(|| request.headers.clone());
        let mut answered = if preflight.is_some() {
            Response::empty(204).into()
        } else {
            self.answer_plainly(request)
        };
        let headers = &mut answered.response.headers;
        headers.set("Access-Control-Allow-Origin", origin);
        headers.set("Vary", "Origin");
        headers.set("Access-Control-Expose-Headers", "Retry-After, Location");
        if let Some(asking) = preflight {
            headers.set("Access-Control-Allow-Methods", "GET, POST, DELETE");
            let asked = asking.get("Access-Control-Request-Headers");
            headers.set("Access-Control-Allow-Headers", asked.unwrap_or_default());
            headers.set("Access-Control-Max-Age", "600");
        }
        answered
    }

    /// The origin of a page that may call the services; never the control plane.
    fn allowed_origin(&self, request: &Request) -> Option<String> {
        let origin = request.headers.get("Origin")?;
        let allowed = &self.settings.cors;
        let target = request.target.as_str();
        let inner = target
            .strip_prefix("/_world/")
            .and_then(|rest| rest.find('/').map(|at| &rest[at..]));
        let is_open = allowed.iter().any(|known| known == origin || known == "*");
        (is_open && !is_control(inner.unwrap_or(target))).then(|| origin.to_owned())
    }

    fn answer_plainly(&self, mut request: Request) -> Answered {
        if request.body.len() > Self::BODY_BYTES_MAX {
            return refusal(413, "the body is too large").into();
        }
        if self.settings.page.is_some()
            && let Some(page) = page::page(&request, self.settings.scheme())
        {
            return page.into();
        }
        let Some(rest) = request.target.strip_prefix("/_world/") else {
            return self.answer_in("", &request);
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (name, target) = rest.split_at(end);
        if !is_name(name) {
            let why = "invalid name: expected 1 to 64 letters, digits, `-`, `_`, `.`";
            return refusal(404, why).into();
        }
        if target.is_empty() && request.method == "DELETE" {
            if let Some(refusal) = self.gate.refuses(&request) {
                return refusal.into();
            }
            return if self.forget(name) {
                Response::empty(204).into()
            } else {
                refusal(404, "no world has that name").into()
            };
        }
        let (name, target) = (name.to_owned(), target.to_owned());
        request.target = target;
        self.answer_in(&name, &request)
    }

    fn answer_in(&self, name: &str, request: &Request) -> Answered {
        let refused = is_control(&request.target).then(|| self.gate.refuses(request));
        if let Some(refusal) = refused.flatten() {
            return refusal.into();
        }
        if request.method == "GET" && request.target == "/_control/worlds" {
            return Response::json(200, &json!({ "worlds": self.names() })).into();
        }
        let began = clock::monotonic();
        let world = match self.world(name) {
            Ok(world) => world,
            Err(NoWorld::TooMany) => {
                let why = "too many sandboxes: delete one with DELETE /_world/NAME";
                return refusal(503, why).into();
            }
            Err(NoWorld::Unseeded(error)) => return refusal(500, &error.to_string()).into(),
        };
        let mut answered = world.answer_overlapping(request);
        if let Some(people) = world.people() {
            let how = (began.elapsed(), answered.scripted.as_deref());
            people
                .log
                .exchange(world.now(), request, &answered.response, how);
        }
        if self.settings.virtual_clock {
            answered = world.settle(answered);
        } else {
            let callbacks = std::mem::take(&mut answered.callbacks).into_iter();
            let (before, after) = callbacks.partition(|callback| callback.callback.is_before);
            answered.callbacks = before;
            answered = world.settle(answered);
            self.dispatcher.take(&world, after);
        }
        if let Some(witness) = self.settings.witness.as_ref()
            && !is_control(&request.target)
        {
            witness(Exchanged {
                origin: &self.origin,
                world: name,
                request,
                response: &answered.response,
                scripted: answered.scripted.as_deref(),
                took: began.elapsed(),
            });
        }
        answered
    }

    fn world(&self, name: &str) -> Result<Arc<World>, NoWorld> {
        let mut worlds = lock(&self.by_name);
        if let Some(world) = worlds.get(name) {
            return Ok(Arc::clone(world));
        }
        if worlds.len() >= Self::WORLDS_MAX {
            return Err(NoWorld::TooMany);
        }
        let (seed, address) = match name {
            "" => (self.settings.seed, self.origin.clone()),
            name => (world_seed(self.settings.seed, name), self.origin_of(name)),
        };
        let origin = self.settings.origin.clone().unwrap_or(address);
        let settings = conformant_reference::Settings {
            seed,
            origin,
            faults: self.settings.faults.clone(),
            variants: self.settings.variants.clone(),
        };
        let clock = if self.settings.virtual_clock {
            WorldClock::stands_still()
        } else {
            WorldClock::passes()
        };
        let deliver = self
            .settings
            .deliver
            .clone()
            .unwrap_or_else(|| Arc::new(HttpDelivery));
        let beginning = InitialState {
            script: self.script.clone(),
            keeps: self.settings.keeps,
            follows: self.settings.follows(name),
            people: self.settings.page.clone().map(|offer| PageSettings {
                log: LogWriter {
                    event_log: Arc::clone(&self.event_log),
                    world: name.to_owned(),
                },
                offer,
            }),
        };
        let seed = self
            .settings
            .seeds
            .as_ref()
            .and_then(|seeds| seeds.for_world(name));
        let world = World::new(settings, clock, deliver).with_initial_state(beginning, seed);
        let world = Arc::new(world.map_err(NoWorld::Unseeded)?);
        worlds.insert(name.to_owned(), Arc::clone(&world));
        Ok(world)
    }

    fn forget(&self, name: &str) -> bool {
        let mut worlds = lock(&self.by_name);
        worlds.remove(name).is_some()
    }
}

/// Names appear verbatim in paths and links.
fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && !text.starts_with('.')
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn refusal(status: u16, why: &str) -> Response {
    Response::json(status, &json!({"error": why}))
}

/// Converts a request; `httpmock` writes every target in absolute form.
fn read(request: &HttpMockRequest) -> Request {
    let uri = request.uri_str();
    let behind_scheme = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let target = behind_scheme
        .find(['/', '?'])
        .map_or("/", |at| &behind_scheme[at..]);
    Request {
        method: request.method_str().to_owned(),
        target: target.to_owned(),
        headers: request
            .headers_vec()
            .iter()
            .map(|(name, value)| (name, value))
            .collect(),
        body: request.body_vec(),
    }
}

fn to_httpmock(response: Response) -> HttpMockResponse {
    HttpMockResponse::builder()
        .status(response.status)
        .headers(response.headers.iter())
        .body(response.body)
        .build()
}

#[cfg(test)]
mod tests;
