//! The reference behind a socket: `httpmock` with one catch-all answer, callbacks delivered over HTTP.
//!
//! Decides nothing about the services: a request is led to its [`World`] and answered there. Each
//! world has its own state, so that stories told side by side do not see each other. `httpmock`
//! bounds neither bodies nor idle sockets; only clients of this machine are meant to talk to it.

mod chronicle;
mod courier;
mod develop;
mod gate;
mod http_delivery;
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

use self::chronicle::{Chronicle, Pen};
use self::courier::Courier;
use self::develop::{Answered, Beginning};
use self::gate::{Gate, is_control};
use self::page::People;
use self::relay::Relay;
use self::script::Script;
use conformant_base::clock::{self, Timestamp};
use conformant_base::http::{Request, Response};
use conformant_reference::{Fault, Variant};
use httpmock::{HttpMockRequest, HttpMockResponse, MockServer};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Hears of what clients of a server ask, and of what they are answered.
pub type Witness = Arc<dyn Fn(Exchanged<'_>) + Send + Sync>;

/// One request and its answer.
#[derive(Clone, Copy, Debug)]
pub struct Exchanged<'a> {
    /// The server's address.
    pub origin: &'a str,
    /// The world's name; empty for the default one.
    pub world: &'a str,
    /// As sent, without the world's name.
    pub request: &'a Request,
    /// As answered.
    pub response: &'a Response,
    /// Name of the scripted answer that it met.
    pub scripted: Option<&'a str>,
    /// How long the answer took to make.
    pub took: Duration,
}

/// What a server is started with.
#[derive(Clone, Default)]
pub struct Settings {
    /// The port; a free one when it is 0. Where none is said, one of the loopback interface is taken, and no
    /// scripted answer can touch a connection.
    pub port: Option<u16>,
    /// The interface; the loopback interface when absent.
    pub host: Option<IpAddr>,
    /// The certificate that is shown; where there is one, TLS is spoken. It wants a port.
    #[cfg(feature = "tls")]
    pub tls: Option<Identity>,
    /// Pages of these origins may ask the services from a browser; `*` stands for all.
    pub cors: Vec<String>,
    /// The operations that scripted answers name.
    pub routes: Vec<Route>,
    /// Scripted answers of every world.
    pub script: Vec<Scripted>,
    /// What worlds begin with.
    pub seeds: Option<Seeds>,
    /// Whether worlds keep what made them, so that they can be exported.
    pub keeps: bool,
    /// Seeds every world.
    pub seed: u64,
    /// Deliberate defects of every world.
    pub faults: BTreeSet<Fault>,
    /// Deliberate legal freedoms of every world.
    pub variants: BTreeSet<Variant>,
    /// Time stands still until it is advanced, in place of passing; callbacks are then delivered
    /// before the answer that caused them goes out.
    pub virtual_clock: bool,
    /// Who delivers callbacks; over HTTP when absent.
    pub deliver: Option<Arc<dyn Deliver>>,
    /// What links of every world start with, in place of the world's address: a client that knows
    /// the way by itself then sees nothing that differs from one port to the next.
    pub origin: Option<String>,
    /// Hears of each request to a service, and of its answer.
    pub witness: Option<Witness>,
    /// Shows people the page at `/`, whose QR codes this makes. It wants a port.
    pub page: Option<Offer>,
    /// Lets callers into the control plane that reach it under another name than this machine's own.
    pub control_token: Option<String>,
}

impl Settings {
    fn interface(&self) -> IpAddr {
        self.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// Where plain HTTP is spoken; behind TLS nobody else has to find it.
    fn plainly(&self, port: u16) -> (IpAddr, u16) {
        match self.scheme() {
            "https" => (IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            _ => (self.interface(), port),
        }
    }

    /// Between what the name of the server stands in links of a world; nothing where it has one name.
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
    fn front(&self, to: std::net::SocketAddr) -> Result<Option<tls::Front>, Error> {
        let (Some(identity), Some(port)) = (&self.tls, self.port) else {
            return Ok(None);
        };
        let host = self.interface();
        let config = identity.config()?;
        let front = tls::Front::start((host, port).into(), to, config);
        let front = front.map_err(|source| Error::Listen { host, port, source })?;
        Ok(Some(front))
    }
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port cannot be listened on.
    #[error("listen on {host}:{port}: {source}")]
    Listen {
        /// The interface.
        host: IpAddr,
        /// The port that was asked for.
        port: u16,
        /// What the system says.
        source: std::io::Error,
    },
    /// Certificate and key are none.
    #[cfg(feature = "tls")]
    #[error("use the certificate: {0}")]
    Certificate(#[from] IdentityError),
    /// A scripted answer names nothing.
    #[error("take the script: {0}")]
    Script(#[from] ScriptError),
    /// Seed data are refused.
    #[error("begin world `{world}`: {source}")]
    Seeds {
        /// The world.
        world: String,
        /// What is wrong.
        source: SeedError,
    },
}

/// A running server; dropping it stops the answers.
pub struct Server {
    http: MockServer,
    worlds: Arc<Worlds>,
    /// Present when a certain port was asked for, which `httpmock` cannot take by itself.
    _relay: Option<Relay>,
    #[cfg(feature = "tls")]
    _front: Option<tls::Front>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("url", &self.url())
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Starts answering on the loopback interface.
    pub fn start(settings: Settings) -> Result<Self, Error> {
        let http = MockServer::start();
        let chronicle = Arc::<Chronicle>::default();
        let relay = match settings.port {
            None => None,
            Some(port) => {
                let (host, port) = settings.plainly(port);
                let told = Arc::clone(&chronicle);
                let relay = Relay::start((host, port).into(), *http.address(), told);
                Some(relay.map_err(|source| Error::Listen { host, port, source })?)
            }
        };
        let address = relay.as_ref().map_or(*http.address(), Relay::address);
        #[cfg(feature = "tls")]
        let front = settings.front(address)?;
        #[cfg(feature = "tls")]
        let address = front.as_ref().map_or(address, tls::Front::address);
        let scheme = settings.scheme();
        let worlds = Arc::new(Worlds::new(
            settings,
            format!("{scheme}://{address}"),
            chronicle,
        )?);
        worlds.begin()?;
        let answering = Arc::clone(&worlds);
        http.mock(|when, then| {
            when.any_request();
            then.respond_with(move |request| {
                let request = read(request);
                let is_head = request.method == "HEAD";
                written(relay::marked(answering.answer(request), is_head))
            });
        });
        Ok(Self {
            http,
            worlds,
            _relay: relay,
            #[cfg(feature = "tls")]
            _front: front,
        })
    }

    /// `http://127.0.0.1:PORT`, where the default world is.
    pub fn url(&self) -> &str {
        &self.worlds.origin
    }

    /// Where the world of that name is; it is made when it is first asked.
    pub fn world_url(&self, name: &str) -> String {
        self.worlds.origin_of(name)
    }

    /// The time in a world.
    pub fn now(&self, name: &str) -> Timestamp {
        self.worlds
            .world(name)
            .map_or(Timestamp::UNIX_EPOCH, |world| world.now())
    }

    /// Lets that much time pass in a world at once.
    pub fn advance(&self, name: &str, by: Duration) {
        if let Ok(world) = self.worlds.world(name) {
            world.advance(by);
        }
    }

    /// Forgets a world; asked again, it begins anew. False when there was none.
    pub fn drop_world(&self, name: &str) -> bool {
        self.worlds.forget(name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // `httpmock` keeps its servers for the next user, and this one's answer with them.
        self.http.reset();
        self.worlds.courier.close();
        self.worlds.chronicle.close();
    }
}

/// The seed of a named world: the same name under the same seed tells the same story, whatever
/// else runs beside it and in whatever order.
pub fn world_seed(seed: u64, name: &str) -> u64 {
    let digest = Sha256::new()
        .chain_update(seed.to_be_bytes())
        .chain_update(name)
        .finalize();
    digest[..8]
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Why there is no world of a name.
enum NoWorld {
    TooMany,
    Unseeded(SeedError),
}

/// The worlds of a server by name; the default one is nameless.
struct Worlds {
    settings: Settings,
    script: Script,
    gate: Gate,
    origin: String,
    by_name: Mutex<BTreeMap<String, Arc<World>>>,
    chronicle: Arc<Chronicle>,
    courier: Courier,
}

impl Worlds {
    /// Larger bodies are refused; media files are the largest that clients send.
    const BODY_BYTES_MAX: usize = 32 << 20;
    /// More worlds at once are refused.
    const WORLDS_MAX: usize = 4096;

    fn new(
        settings: Settings,
        origin: String,
        chronicle: Arc<Chronicle>,
    ) -> Result<Self, ScriptError> {
        let token = settings.control_token.clone();
        let script = Script::new(Arc::new(settings.routes.clone()), &settings.script)?;
        Ok(Self {
            settings,
            script,
            gate: Gate { token },
            origin,
            by_name: Mutex::default(),
            chronicle,
            courier: Courier::default(),
        })
    }

    /// Makes the worlds that seed data name, so that what is wrong with them is told at once.
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

    /// Names of the worlds that there are; the default one is nameless.
    fn names(&self) -> Vec<String> {
        let worlds = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        worlds
            .keys()
            .filter(|name| !name.is_empty())
            .cloned()
            .collect()
    }

    fn origin_of(&self, name: &str) -> String {
        format!("{}/_world/{name}", self.origin)
    }

    /// An answer, which pages of other origins may read where they may ask.
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

    /// The origin of a page that may ask the services. The control plane is no service.
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
        let page = self
            .settings
            .page
            .as_ref()
            .and_then(|_| page::page(&request));
        if let Some(page) = page {
            return page.into();
        }
        let Some(rest) = request.target.strip_prefix("/_world/") else {
            return self.answer_in("", &request);
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (name, target) = rest.split_at(end);
        if !is_name(name) {
            return refusal(
                404,
                "a world's name has 1 to 64 letters, digits, `-`, `_`, `.`",
            )
            .into();
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
                return refusal(503, "too many worlds; drop one with DELETE /_world/NAME").into();
            }
            Err(NoWorld::Unseeded(error)) => return refusal(500, &error.to_string()).into(),
        };
        let mut answered = world.answer(request);
        if let Some(people) = world.people() {
            let how = (began.elapsed(), answered.scripted.as_deref());
            people
                .pen
                .exchange(world.now(), request, &answered.response, how);
        }
        if self.settings.virtual_clock {
            answered = world.settle(answered);
        } else {
            let errands = std::mem::take(&mut answered.errands).into_iter();
            let (before, after) = errands.partition(|errand| errand.callback.is_before);
            answered.errands = before;
            answered = world.settle(answered);
            self.courier.take(&world, after);
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
        let mut worlds = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
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
        let beginning = Beginning {
            script: self.script.clone(),
            keeps: self.settings.keeps,
            follows: self.settings.follows(name),
            people: self.settings.page.clone().map(|offer| People {
                pen: Pen {
                    chronicle: Arc::clone(&self.chronicle),
                    world: name.to_owned(),
                },
                offer,
            }),
        };
        let seed = self
            .settings
            .seeds
            .as_ref()
            .and_then(|seeds| seeds.of(name));
        let world = World::new(settings, clock, deliver).begun(beginning, seed);
        let world = Arc::new(world.map_err(NoWorld::Unseeded)?);
        worlds.insert(name.to_owned(), Arc::clone(&world));
        Ok(world)
    }

    fn forget(&self, name: &str) -> bool {
        let mut worlds = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        worlds.remove(name).is_some()
    }
}

/// Names stand in paths and links as they are, so they need no encoding.
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

/// The request as the reference reads it; `httpmock` writes every target in absolute form.
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

fn written(response: Response) -> HttpMockResponse {
    HttpMockResponse::builder()
        .status(response.status)
        .headers(response.headers.iter())
        .body(response.body)
        .build()
}

#[cfg(test)]
mod tests;
