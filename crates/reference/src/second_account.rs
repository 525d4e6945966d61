//! The second account: its credentials, and faults that mix it with the first one.
//!
//! It is a reference of its own, created with the first request that has its credentials, so that nothing changes where only
//! one account is used. Inside, its requests carry the credentials of the first one.

use super::auth::application;
use super::core::account;
use super::{Reference, Settings, Switch, switches};
use conformant_base::clock::Timestamp;
use conformant_base::http::{Request, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Callback ids of the second account begin after this one.
pub(super) const FIRST_CALLBACK: u64 = 1 << 32;
const SID: &str = "AC000000000000000000000000005ec0de";
/// Its credentials are as public as those of the first account.
pub(super) const API_KEY: &str = "second-api-key";
pub(super) const API_SECRET: &str = "second-api-secret";
/// Its application in the authentication service.
pub(super) const APPLICATION_KEY: &str = "reference-production-api-key-0002";
/// Distinguishes its identifiers from those of the first account.
const SEED: u64 = 0x5ec0_d000_acc0_0417;

/// How a fault lets a request of the second account reach the first one.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mix {
    /// If the second account has no such resource, the response is that of the first one.
    Shown,
    /// The response is always that of the first one.
    Replaced,
    /// The request takes effect in the first account, and the response refuses it.
    Done,
    /// The list contains the items of both.
    Joined(String),
    /// The refusal names the resource of the first account.
    Named(String),
    /// A name of the first account is taken.
    Taken,
    /// What the first account has is counted, too.
    Counted,
}

/// A fault of a request with this method and path.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MixFault {
    method: String,
    /// Segments; `*` is any.
    path: String,
    #[serde(rename = "reach")]
    mix: Mix,
}

/// The faults of `faults.json` that have `other-account`.
static FAULTS: LazyLock<Vec<(Switch, MixFault)>> =
    LazyLock::new(|| switches::data("other-account").collect());

impl MixFault {
    fn fits(&self, request: &Request) -> bool {
        let path = request.segments();
        let parts: Vec<&str> = self.path.split('/').collect();
        let mut both = parts.iter().zip(&path);
        self.method == request.method
            && parts.len() == path.len()
            && both.all(|(part, segment)| *part == "*" || part == segment)
    }
}

/// A request of the second account with the credentials of the first one; `None` for any other request.
pub(super) fn with_first_credentials(request: &Request) -> Option<Request> {
    let field = application::API_KEY_HEADER;
    if request.headers.get(field) == Some(APPLICATION_KEY) {
        let mut own = request.clone();
        own.headers.set(field, application::API_KEY);
        return Some(own);
    }
    let given = request.headers.get("Authorization")?;
    if given != basic(API_KEY, API_SECRET) {
        return None;
    }
    let mut own = request.clone();
    let first = basic(account::API_KEY, account::API_SECRET);
    own.headers.set("Authorization", first);
    Some(own)
}

fn basic(user: &str, password: &str) -> String {
    use base64::Engine as _;
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {pair}")
}

impl Reference {
    /// Handles one request of the second account.
    pub(super) fn handle_of_other(&mut self, request: &Request, now: Timestamp) -> Response {
        let answer = self.second(now).handle_own(request, now);
        let broken = FAULTS.iter().filter(|(_, fault)| fault.fits(request));
        let broken: Vec<&Mix> = broken
            .filter(|(switch, _)| self.core.has(*switch))
            .map(|(_, fault)| &fault.mix)
            .collect();
        broken
            .into_iter()
            .fold(answer, |answer, mix| self.mixed(mix, answer, request, now))
    }

    /// The second account, created with its first request.
    fn second(&mut self, now: Timestamp) -> &mut Self {
        let first = self.core.settings();
        let settings = Settings {
            seed: first.seed ^ SEED,
            ..first.clone()
        };
        let other = self.other.get_or_insert_with(|| {
            let mut other = Box::new(Self::new(settings, now));
            other.core.belong_to(SID, FIRST_CALLBACK);
            other
        });
        other.core.origin.clone_from(&self.core.origin);
        other
    }

    fn mixed(
        &mut self,
        mix: &Mix,
        answer: Response,
        request: &Request,
        now: Timestamp,
    ) -> Response {
        let is_refused = answer.status >= 400;
        match mix {
            Mix::Shown if is_refused => self.handle_own(request, now),
            Mix::Replaced => self.handle_own(request, now),
            Mix::Done if is_refused => {
                self.handle_own(request, now);
                answer
            }
            Mix::Joined(key) => {
                let first = self.handle_own(request, now);
                joined(key, answer, &first)
            }
            Mix::Named(field) if is_refused => {
                let first = self.handle_own(request, now);
                let name = body_of(&first)[field].clone();
                let name = name.as_str().unwrap_or_default();
                let message = format!("{name} belongs to another account");
                Response::json(answer.status, &json!({"message": message}))
            }
            Mix::Taken if !is_refused && self.chat.has_name(&body_of(&answer)) => {
                Response::json(409, &json!({"message": "the name exists"}))
            }
            Mix::Counted if !is_refused => {
                let mut shown = body_of(&answer);
                let own = shown["joined_channels_count"].as_u64().unwrap_or_default();
                shown["joined_channels_count"] = json!(own + self.chat.channels_joined(&shown));
                Response::json(answer.status, &shown)
            }
            Mix::Shown | Mix::Done | Mix::Named(_) | Mix::Taken | Mix::Counted => answer,
        }
    }
}

fn body_of(response: &Response) -> Value {
    serde_json::from_slice(&response.body).unwrap_or_default()
}

/// A list with the items of another one at its end.
fn joined(key: &str, answer: Response, other: &Response) -> Response {
    let mut list = body_of(&answer);
    let further = body_of(other)[key].as_array().cloned().unwrap_or_default();
    match list[key].as_array_mut() {
        Some(items) => items.extend(further),
        None => return answer,
    }
    Response::json(answer.status, &list)
}
