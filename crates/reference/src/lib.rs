//! The reference: a complete, stateful, in-memory implementation of the three documents.
//!
//! Sans-IO: requests and the time go in, responses and callbacks come out. It opens no socket, reads
//! no clock, draws no randomness but from its seed, and **never reads the rulebook**: behaviour is
//! written twice, here and in `specs/`, so that one mistake cannot be judge and judged at once.
//!
//! Paths: `/auth`, `/chat`, `/media`, `/flow`, each followed by the documented path, and
//! `/_control/HOOK` for what people and devices do.

mod call;
mod core;
mod credentials;
pub mod faults;
mod garble;
mod hook;
mod listing;
mod overview;
mod target;
pub mod variants;

pub mod auth;
pub mod chat;
pub mod events;
pub mod flow;

pub use self::call::{Call, Params};
pub use self::core::{Callback, Core, Delivery, Refusal, account};
pub use self::faults::Fault;
pub use self::hook::text_arg;
pub use self::hook::{Control, HookError};
pub use self::listing::{Listing, Order};
pub use self::target::{FEEDS, SERVICES, TargetSettings};
pub use self::variants::Variant;

use conformant_base::clock::Timestamp;
use conformant_base::http::{Request, Response};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What a reference is made with.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Seeds every identifier and token.
    pub seed: u64,
    /// Scheme, host, port and path prefix that links start with: `http://127.0.0.1:4010`.
    pub origin: String,
    /// Deliberate defects that are switched on.
    pub faults: BTreeSet<Fault>,
    /// Deliberate legal freedoms that are switched on.
    pub variants: BTreeSet<Variant>,
}

/// A fault or a variant: one thing in which a reference may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Switch {
    /// A deliberate defect.
    Fault(Fault),
    /// A deliberate legal freedom.
    Variant(Variant),
}

impl Switch {
    /// Every one: faults, then variants.
    pub fn all() -> impl Iterator<Item = Self> {
        let faults = Fault::ALL.iter().map(|fault| Self::Fault(*fault));
        faults.chain(Variant::ALL.iter().map(|variant| Self::Variant(*variant)))
    }

    /// This and nothing else, as settings have it.
    pub fn alone(self) -> (BTreeSet<Fault>, BTreeSet<Variant>) {
        match self {
            Self::Fault(fault) => (BTreeSet::from([fault]), BTreeSet::new()),
            Self::Variant(variant) => (BTreeSet::new(), BTreeSet::from([variant])),
        }
    }
}

impl Settings {
    /// The same with nothing switched on but this.
    #[must_use]
    pub fn with(mut self, switch: Option<Switch>) -> Self {
        (self.faults, self.variants) = switch.map_or_else(Default::default, Switch::alone);
        self
    }
}

/// The whole implementation: four services over one core.
#[derive(Clone, Debug)]
pub struct Reference {
    core: Core,
    flow: flow::Flow,
    chat: chat::Chat,
    auth: auth::Auth,
    events: events::Events,
}

/// What a service answers: a response, or why it refuses.
pub type Answer = Result<Response, Refusal>;

impl Reference {
    /// An implementation with the state that a fresh account has at `now`: one published and one
    /// draft flow, and nothing else.
    pub fn new(settings: Settings, now: Timestamp) -> Self {
        let mut core = Core::new(settings);
        Self {
            flow: flow::Flow::new(&mut core, now),
            chat: chat::Chat::new(&mut core, now),
            auth: auth::Auth::new(&mut core, now),
            events: events::Events::new(&mut core, now),
            core,
        }
    }

    /// Answers one request. Callbacks it causes wait in [`Reference::take_callbacks`].
    pub fn handle(&mut self, request: &Request, now: Timestamp) -> Response {
        let segments = request.segments();
        let (service, path) = match segments.split_first() {
            Some((service, path)) => (service.as_str(), path),
            None => return self.core.refuse(&Refusal::not_found()),
        };
        let call = Call::new(request, path, now);
        let core = &mut self.core;
        core.now = now;
        if service != "_control" && core.is_one_too_many() {
            let mut response = core.refuse(&Refusal::new(429, 20429, "Too many requests"));
            response.headers.set("Retry-After", "1");
            return response;
        }
        let answer = match service {
            "flow" => self.flow.handle(core, &call),
            "chat" => self.chat.handle(core, &call),
            "media" => self.chat.handle_media(core, &call),
            "auth" => self.auth.handle(core, &call),
            "_control" => return self.control(&call),
            _ => Err(Refusal::not_found()),
        };
        let answer = answer.map(|response| self.core.written(service, response));
        answer.unwrap_or_else(|refusal| self.core.refuse(&refusal))
    }

    /// Switches that were asked about since this was last asked: only those can have made a difference.
    pub fn newly_asked(&self) -> Vec<Switch> {
        self.core.newly_asked()
    }

    /// Switches faults and variants while it runs; what is there stays as it is.
    pub fn switch(&mut self, faults: BTreeSet<Fault>, variants: BTreeSet<Variant>) {
        self.core.switch(faults, variants);
    }

    /// Links begin with this from now on.
    pub fn reached_at(&mut self, origin: String) {
        self.core.origin = origin;
    }

    /// Callbacks that are due, in the order they were caused; each is handed out once and its
    /// outcome is expected in [`Reference::delivered`].
    pub fn take_callbacks(&mut self) -> Vec<Callback> {
        self.core.take_callbacks()
    }

    /// Tells how a delivery went; a retry, where one is due, waits in [`Reference::take_callbacks`].
    pub fn delivered(&mut self, id: u64, outcome: Delivery) {
        self.core.delivered(id, outcome);
    }

    /// Queues a callback that nothing in the services has caused.
    pub fn send(
        &mut self,
        url: &str,
        request: Request,
        timeout: std::time::Duration,
        retries: u32,
    ) {
        self.core.send(url, request, timeout, retries);
    }

    /// `POST /_control/HOOK` with a JSON object: what a person or a device does.
    fn control(&mut self, call: &Call<'_>) -> Response {
        let [hook] = call.path else {
            return Response::json(
                404,
                &json!({"error": "the control plane is POST /_control/HOOK"}),
            );
        };
        let args = if call.request.body.is_empty() {
            json!({})
        } else {
            match serde_json::from_slice::<Value>(&call.request.body) {
                Ok(args) => args,
                Err(e) => {
                    return Response::json(
                        400,
                        &json!({"error": format!("body is not JSON: {e}")}),
                    );
                }
            }
        };
        let core = &mut self.core;
        let done = self
            .flow
            .control(core, hook, &args, call.now)
            .or_else(|| self.chat.control(core, hook, &args, call.now))
            .or_else(|| self.auth.control(core, hook, &args, call.now))
            .or_else(|| self.events.control(core, hook, &args, call.now));
        match done {
            Some(Ok(value)) => Response::json(200, &value),
            Some(Err(why)) => Response::json(422, &json!({"error": why.to_string()})),
            None => Response::json(404, &json!({"error": format!("no hook is named {hook}")})),
        }
    }
}
