//! The reference behind a socket: `httpmock` with one catch-all answer, callbacks delivered over HTTP.
//!
//! Decides nothing about the services: a request is led to its [`World`] and answered there. Each
//! world has its own state, so that stories told side by side do not see each other. `httpmock`
//! bounds neither bodies nor idle sockets; only clients of this machine are meant to talk to it.

mod courier;
mod gate;
mod http_delivery;
mod relay;
mod world;

pub use self::gate::TOKEN_HEADER;
pub use self::http_delivery::HttpDelivery;
pub use self::world::{Deliver, Outcome, REFERENCE, World, WorldClock};

use self::courier::Courier;
use self::gate::{Gate, is_control};
use self::relay::Relay;
use crate::clock::Timestamp;
use crate::http::{Headers, Request, Response};
use crate::reference::{self, Fault, Variant};
use httpmock::{HttpMockRequest, HttpMockResponse, MockServer};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Hears of what clients of a server ask, and of what they are answered; its address comes first.
pub type Witness = Arc<dyn Fn(&str, &Request, &Response) + Send + Sync>;

/// What a server is started with.
#[derive(Clone, Default)]
pub struct Settings {
    /// The port on the loopback interface; a free one when absent.
    pub port: Option<u16>,
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
    /// Lets callers into the control plane that reach it under another name than this machine's own.
    pub control_token: Option<String>,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port cannot be listened on.
    #[error("listen on 127.0.0.1:{port}: {source}")]
    Listen {
        /// The port that was asked for.
        port: u16,
        /// What the system says.
        source: std::io::Error,
    },
}

/// A running server; dropping it stops the answers.
pub struct Server {
    http: MockServer,
    worlds: Arc<Worlds>,
    /// Present when a certain port was asked for, which `httpmock` cannot take by itself.
    _relay: Option<Relay>,
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
        let relay = match settings.port {
            None => None,
            Some(port) => Some(
                Relay::start(port, *http.address())
                    .map_err(|source| Error::Listen { port, source })?,
            ),
        };
        let address = relay.as_ref().map_or(*http.address(), Relay::address);
        let worlds = Arc::new(Worlds::new(settings, format!("http://{address}")));
        let answering = Arc::clone(&worlds);
        http.mock(|when, then| {
            when.any_request();
            then.respond_with(move |request| written(answering.answer(&read(request))));
        });
        Ok(Self {
            http,
            worlds,
            _relay: relay,
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
        if let Some(world) = self.worlds.world(name) {
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

/// The worlds of a server by name; the default one is nameless.
struct Worlds {
    settings: Settings,
    gate: Gate,
    origin: String,
    by_name: Mutex<BTreeMap<String, Arc<World>>>,
    courier: Courier,
}

impl Worlds {
    /// Larger bodies are refused; media files are the largest that clients send.
    const BODY_BYTES_MAX: usize = 32 << 20;
    /// More worlds at once are refused.
    const WORLDS_MAX: usize = 4096;

    fn new(settings: Settings, origin: String) -> Self {
        let token = settings.control_token.clone();
        Self {
            settings,
            gate: Gate { token },
            origin,
            by_name: Mutex::default(),
            courier: Courier::default(),
        }
    }

    fn origin_of(&self, name: &str) -> String {
        format!("{}/_world/{name}", self.origin)
    }

    fn answer(&self, request: &Request) -> Response {
        if request.body.len() > Self::BODY_BYTES_MAX {
            return refusal(413, "the body is too large");
        }
        let Some(rest) = request.target.strip_prefix("/_world/") else {
            return self.answer_in("", request);
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (name, target) = rest.split_at(end);
        if !is_name(name) {
            return refusal(
                404,
                "a world's name has 1 to 64 letters, digits, `-`, `_`, `.`",
            );
        }
        if target.is_empty() && request.method == "DELETE" {
            if let Some(refusal) = self.gate.refuses(request) {
                return refusal;
            }
            return if self.forget(name) {
                Response::empty(204)
            } else {
                refusal(404, "no world has that name")
            };
        }
        let inner = Request {
            target: target.to_owned(),
            ..request.clone()
        };
        self.answer_in(name, &inner)
    }

    fn answer_in(&self, name: &str, request: &Request) -> Response {
        let refused = is_control(&request.target).then(|| self.gate.refuses(request));
        if let Some(refusal) = refused.flatten() {
            return refusal;
        }
        let Some(world) = self.world(name) else {
            return refusal(503, "too many worlds; drop one with DELETE /_world/NAME");
        };
        let response = if self.settings.virtual_clock {
            world.handle(request)
        } else {
            let (response, errands) = world.answer(request);
            self.courier.take(&world, errands);
            response
        };
        if let Some(witness) = self.settings.witness.as_ref()
            && !is_control(&request.target)
        {
            witness(&self.origin, request, &response);
        }
        response
    }

    fn world(&self, name: &str) -> Option<Arc<World>> {
        let mut worlds = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(world) = worlds.get(name) {
            return Some(Arc::clone(world));
        }
        if worlds.len() >= Self::WORLDS_MAX {
            return None;
        }
        let (seed, address) = match name {
            "" => (self.settings.seed, self.origin.clone()),
            name => (world_seed(self.settings.seed, name), self.origin_of(name)),
        };
        let origin = self.settings.origin.clone().unwrap_or(address);
        let settings = reference::Settings {
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
        let world = Arc::new(World::new(settings, clock, deliver));
        worlds.insert(name.to_owned(), Arc::clone(&world));
        Some(world)
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
        headers: request.headers_vec().iter().cloned().collect::<Headers>(),
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
