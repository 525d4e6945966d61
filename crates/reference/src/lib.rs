//! The reference: a complete, stateful, in-memory implementation of the three documents.
//!
//! - Sans-IO: requests and the time go in, responses and callbacks come out. No socket, no clock, no
//!   randomness except from its seed.
//! - It **never reads the rulebook**: behavior is written twice, here and in `specs/`, so that a mistake in one
//!   shows in the other.
//! - Paths: `/auth`, `/chat`, `/media`, `/flow`, each followed by the documented path, and `/_control/HOOK` for
//!   actions of people and devices.

mod call;
mod core;
mod credentials;
mod effects;
mod garble;
mod hook;
mod listing;
mod overview;
mod races;
mod second_account;
mod switches;
mod target;
#[cfg(test)]
mod testing;

pub mod auth;
pub mod chat;
pub mod events;
pub mod flow;

pub use self::call::{Call, Params};
pub use self::core::{Callback, Core, Delivery, Refusal, account};
pub use self::hook::{Control, Done, text_arg};
pub use self::listing::{Listing, Order};
pub use self::races::StaleReads;
pub use self::switches::{Fault, Variant};
pub use self::target::{FEEDS, SERVICES, TargetSettings};

use self::effects::Operation;
use conformant_base::clock::Timestamp;
use conformant_base::http::{Request, Response};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Settings of a reference.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Seed of every identifier and token.
    pub seed: u64,
    /// Start of links: scheme, host, port and path prefix, such as `http://127.0.0.1:4010`.
    pub origin: String,
    /// Enabled faults.
    pub faults: BTreeSet<Fault>,
    /// Enabled variants.
    pub variants: BTreeSet<Variant>,
}

/// A fault or a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Switch {
    /// A deliberate defect.
    Fault(Fault),
    /// An allowed variation.
    Variant(Variant),
}

impl Switch {
    /// All faults, then all variants.
    pub fn all() -> impl Iterator<Item = Self> {
        let faults = Fault::ALL.iter().map(|fault| Self::Fault(*fault));
        faults.chain(Variant::ALL.iter().map(|variant| Self::Variant(*variant)))
    }

    /// Its place among all switches.
    fn index(self) -> usize {
        match self {
            Self::Fault(fault) => fault as usize,
            Self::Variant(variant) => Fault::ALL.len() + variant as usize,
        }
    }

    /// The one with that name.
    pub(crate) fn from_id(id: &str) -> Option<Self> {
        let variant = || Variant::from_id(id).map(Self::Variant);
        Fault::from_id(id).map(Self::Fault).or_else(variant)
    }

    /// Settings with only this switch on.
    pub fn alone(self) -> (BTreeSet<Fault>, BTreeSet<Variant>) {
        match self {
            Self::Fault(fault) => (BTreeSet::from([fault]), BTreeSet::new()),
            Self::Variant(variant) => (BTreeSet::new(), BTreeSet::from([variant])),
        }
    }
}

impl Settings {
    /// The same settings with only this switch on.
    #[must_use]
    pub fn with(mut self, switch: Option<Switch>) -> Self {
        (self.faults, self.variants) = switch.map_or_else(Default::default, Switch::alone);
        self
    }
}

/// Four services over one core.
#[derive(Clone, Debug)]
pub struct Reference {
    core: Core,
    /// The second account, once it was used.
    other: Option<Box<Self>>,
    flow: flow::Flow,
    chat: chat::Chat,
    auth: auth::Auth,
    events: events::Events,
}

/// A response or a refusal.
pub type Answer = Result<Response, Refusal>;

impl Reference {
    /// A fresh account at `now` with one published and one draft flow.
    pub fn new(settings: Settings, now: Timestamp) -> Self {
        let mut core = Core::new(settings, now);
        Self {
            flow: flow::Flow::new(&mut core),
            chat: chat::Chat::new(&mut core),
            auth: auth::Auth::default(),
            events: events::Events::default(),
            other: None,
            core,
        }
    }

    /// Handles one request. Its callbacks are in [`Reference::take_callbacks`].
    pub fn handle(&mut self, request: &Request, now: Timestamp) -> Response {
        match second_account::with_first_credentials(request) {
            Some(request) => self.handle_of_other(&request, now),
            None => self.handle_own(request, now),
        }
    }

    /// Handles one request of the first account.
    fn handle_own(&mut self, request: &Request, now: Timestamp) -> Response {
        let segments = request.segments();
        let (service, path) = match segments.split_first() {
            Some((service, path)) => (service.as_str(), path),
            None => return self.core.refuse(&Refusal::not_found()),
        };
        let mut call = Call::new(request, path);
        let core = &mut self.core;
        core.now = now;
        core.operation = Operation::from_call(service, &call);
        if service != "_control" && core.is_one_too_many() {
            let mut response = core.refuse(&Refusal::new(429, 20429, "Too many requests"));
            response.headers.set("Retry-After", "1");
            return response;
        }
        if let Err(refusal) = core.change_request(&mut call) {
            return core.refuse(&refusal);
        }
        let answer = match service {
            "flow" => self.flow.handle(core, &call),
            "chat" => self.chat.handle(core, &call),
            "media" => self.chat.handle_media(core, &call),
            "auth" => self.auth.handle(core, &call),
            "_control" => return self.control(&call),
            _ => Err(Refusal::not_found()),
        };
        let answer = answer.map(|response| self.core.finish(service, response));
        answer.unwrap_or_else(|refusal| self.core.refuse(&refusal))
    }

    /// Switches queried since the last call: only these can have made a difference.
    pub fn newly_asked(&self) -> Vec<Switch> {
        let mut asked = self.core.newly_asked();
        asked.extend(self.other.iter().flat_map(|other| other.newly_asked()));
        asked
    }

    /// Changes faults and variants; the state stays.
    pub fn switch(&mut self, faults: BTreeSet<Fault>, variants: BTreeSet<Variant>) {
        if let Some(other) = &mut self.other {
            other.switch(faults.clone(), variants.clone());
        }
        self.core.switch(faults, variants);
    }

    /// Changes the start of links.
    pub fn reached_at(&mut self, origin: String) {
        if let Some(other) = &mut self.other {
            other.reached_at(origin.clone());
        }
        self.core.origin = origin;
    }

    /// Due callbacks in order. Each is returned once, and [`Reference::delivered`] expects its outcome.
    pub fn take_callbacks(&mut self) -> Vec<Callback> {
        let mut due = self.core.take_callbacks();
        due.extend(
            self.other
                .iter_mut()
                .flat_map(|other| other.take_callbacks()),
        );
        due
    }

    /// Reports an outcome; a due retry is then in [`Reference::take_callbacks`].
    pub fn delivered(&mut self, id: u64, outcome: Delivery) {
        match &mut self.other {
            Some(other) if id > second_account::FIRST_CALLBACK => other.delivered(id, outcome),
            Some(_) | None => self.core.delivered(id, outcome),
        }
    }

    /// Queues a callback that no service caused.
    pub fn send(
        &mut self,
        url: &str,
        request: Request,
        timeout: std::time::Duration,
        retries: u32,
    ) {
        self.core.send(url, request, timeout, retries);
    }

    /// `POST /_control/HOOK` with a JSON object: an action of a person or a device.
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
            .control(core, hook, &args)
            .or_else(|| self.chat.control(core, hook, &args))
            .or_else(|| self.auth.control(core, hook, &args))
            .or_else(|| self.events.control(core, hook, &args));
        match (done, &mut self.other) {
            // The hook may be about a resource of the second account.
            (Some(Err(_)), Some(other)) => other.control(call),
            (done, _) => answer_of_hook(hook, done),
        }
    }
}

/// The response to a hook.
fn answer_of_hook(hook: &str, done: Control) -> Response {
    match done {
        Some(Ok(value)) => Response::json(200, &value),
        Some(Err(why)) => Response::json(422, &json!({"error": why})),
        None => Response::json(404, &json!({"error": format!("no hook is named {hook}")})),
    }
}
