//! Developer features of a sandbox: seed data, switches and scripted responses, and their control plane.
//!
//! `script` matches requests; `relay` interrupts connections.

use super::page::PageSettings;
use super::refusal;
use super::script::{self, Script};
use super::seeds::{Seed, SeedError, Seeds, Step};
use super::world::{PendingCallback, REFERENCE, World};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformant_base::clock::{self, Timestamp};
use conformant_base::http::{Request, Response};
use conformant_reference::auth::application::{API_KEY, API_KEY_HEADER};
use conformant_reference::{Fault, Reference, Settings, Variant, account};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Initial state of a sandbox.
#[derive(Clone, Debug, Default)]
pub(super) struct InitialState {
    pub(super) script: Script,
    /// Keeps changing requests for export.
    pub(super) keeps: bool,
    /// Present if there is a page.
    pub(super) people: Option<PageSettings>,
    /// Links start with the host name of the request, between these two parts.
    pub(super) follows: Option<(&'static str, String)>,
}

impl InitialState {
    /// The origin for links in a response, if it varies by request.
    pub(super) fn origin_for(&self, request: &Request) -> Option<String> {
        let (scheme, path) = self.follows.as_ref()?;
        let host = request.headers.get("Host")?;
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b".-:[]_".contains(&b);
        let is_host = (1..=255).contains(&host.len()) && host.bytes().all(is_name);
        is_host.then(|| format!("{scheme}://{host}{path}"))
    }

    /// Exportable changes; beyond that an export is refused.
    pub(super) const KEPT_MAX: usize = 100_000;
}

/// A response, the callbacks it causes, and how it is sent.
#[derive(Debug, Default)]
pub(super) struct Answered {
    pub(super) response: Response,
    pub(super) callbacks: Vec<PendingCallback>,
    pub(super) wire: Wire,
    /// Name of the matching scripted response.
    pub(super) scripted: Option<String>,
}

impl From<Response> for Answered {
    fn from(response: Response) -> Self {
        Self {
            response,
            ..Self::default()
        }
    }
}

/// How a response is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Wire {
    /// Normally.
    #[default]
    Whole,
    /// After a delay.
    Delay(Duration),
    /// The connection ends before the response.
    Cut,
    /// The connection ends within the response.
    Truncate,
    /// An endless stream: the events of a sandbox after an entry.
    Events { world: String, after: u64 },
}

/// A reference that has handled these requests, the last one just now.
pub(super) fn replay(
    settings: Settings,
    steps: &[Step],
    now: Timestamp,
) -> Result<Reference, SeedError> {
    let took: u64 = steps.iter().map(|step| step.after_ms).sum();
    let at = |ms: u64| {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX / 4);
        clock::from_unix_ms(now.as_millisecond().saturating_sub(ms))
    };
    let mut left = took;
    let mut reference = Reference::new(settings, at(took));
    let mut answers = BTreeMap::new();
    for (number, step) in (1..).zip(steps) {
        left -= step.after_ms;
        let mut request = step
            .request(&answers)
            .map_err(|why| SeedError::Line { line: number, why })?;
        sign(&mut request);
        let response = reference.handle(&request, at(left));
        // Callbacks of seed data are not delivered.
        drop(reference.take_callbacks());
        if !response.is_success() {
            let body = String::from_utf8_lossy(&response.body);
            return Err(SeedError::Refused {
                number,
                request: format!("{} {}", request.method, request.target),
                status: response.status,
                body: body.chars().take(200).collect(),
            });
        }
        if let Some(name) = &step.name {
            let answer = serde_json::from_slice(&response.body).unwrap_or_default();
            answers.insert(name.clone(), answer);
        }
    }
    Ok(reference)
}

/// Adds the credentials that every reference accepts.
fn sign(request: &mut Request) {
    if request.target.starts_with("/auth/") {
        request.headers.set(API_KEY_HEADER, API_KEY);
    } else if !request.target.starts_with("/_control/") {
        let key = STANDARD.encode(format!("{}:{}", account::API_KEY, account::API_SECRET));
        request.headers.set("Authorization", format!("Basic {key}"));
    }
}

impl World {
    /// Handles developer requests to the control plane; `None` for other requests.
    pub(super) fn develop(&self, request: &Request) -> Option<Response> {
        let path = request.path();
        let name = path.strip_prefix("/_control/script/");
        Some(match (request.method.as_str(), path, name) {
            ("GET", "/_control", _) => self.describe(),
            ("GET", "/_control/export", _) => self.export(),
            ("POST", "/_control/import", _) => self.import(request),
            ("POST", "/_control/script", _) => self.add_script(request),
            ("DELETE", "/_control/script", _) => self.remove_script(None),
            ("DELETE", _, Some(name)) => self.remove_script(Some(name)),
            ("POST", "/_control/switch", _) => self.set_switch(request),
            _ => return None,
        })
    }

    fn describe(&self) -> Response {
        let state = self.state();
        let Settings {
            seed,
            faults,
            variants,
            ..
        } = &state.settings;
        let faults: Vec<&str> = faults.iter().map(|fault| fault.id()).collect();
        let variants: Vec<&str> = variants.iter().map(|variant| variant.id()).collect();
        Response::json(
            200,
            &json!({
                REFERENCE.0: REFERENCE.1,
                "now": clock::iso_seconds(self.now()),
                "seed": seed,
                "faults": faults,
                "variants": variants,
                "script": state.script.list(),
                "changes": state.begun_with.len() + state.since.len(),
            }),
        )
    }

    /// Seed data that recreates this sandbox.
    fn export(&self) -> Response {
        let state = self.state();
        if state.begun_with.len() + state.since.len() >= InitialState::KEPT_MAX {
            return refusal(409, "too many changes to export");
        }
        let steps = state.begun_with.iter().chain(&state.since).cloned();
        let seed = Seed {
            number: Some(state.settings.seed),
            steps: steps.collect(),
        };
        Response::new(200, "application/x-ndjson", seed.to_lines(""))
    }

    /// Replaces the current state.
    fn import(&self, request: &Request) -> Response {
        let Ok(text) = std::str::from_utf8(&request.body) else {
            return refusal(422, "seed data must be UTF-8 lines of JSON");
        };
        let seeds = match Seeds::read(text) {
            Ok(seeds) => seeds,
            Err(error) => return refusal(422, &error.to_string()),
        };
        let seed = seeds.for_world("").cloned().unwrap_or_default();
        let mut state = self.state();
        let before = state.settings.seed;
        state.settings.seed = seed.number.unwrap_or(before);
        let response = self.restart(&mut state, seed.steps);
        if !response.is_success() {
            state.settings.seed = before;
        }
        response
    }

    fn add_script(&self, request: &Request) -> Response {
        let added = script::read(&request.body).and_then(|all| self.state().script.add(all));
        match added {
            Ok(names) => Response::json(200, &json!({ "names": names })),
            Err(error) => refusal(422, &error.to_string()),
        }
    }

    fn remove_script(&self, name: Option<&str>) -> Response {
        let removed = self.state().script.remove(name);
        if removed == 0 && name.is_some() {
            return refusal(404, "no scripted response of that name");
        }
        Response::json(200, &json!({ "removed": removed }))
    }

    /// `{"fault": ID, "on": BOOLEAN}`, or `variant` instead of `fault`.
    fn set_switch(&self, request: &Request) -> Response {
        let arguments: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let id = |name: &str| arguments.get(name).and_then(Value::as_str);
        let on = arguments.get("on").and_then(Value::as_bool).unwrap_or(true);
        let (fault, variant) = (id("fault"), id("variant"));
        let known = (
            fault.and_then(Fault::from_id),
            variant.and_then(Variant::from_id),
        );
        let mut state = self.state();
        let Settings {
            faults, variants, ..
        } = &mut state.settings;
        match known {
            (Some(fault), None) if on => drop(faults.insert(fault)),
            (Some(fault), None) => drop(faults.remove(&fault)),
            (None, Some(variant)) if on => drop(variants.insert(variant)),
            (None, Some(variant)) => drop(variants.remove(&variant)),
            (Some(_), Some(_)) | (None, None) => {
                let error = format!(
                    "expected the id of one existing `fault` or `variant`, found {}",
                    fault.or(variant).unwrap_or("nothing")
                );
                return refusal(422, &error);
            }
        }
        let (faults, variants) = (faults.clone(), variants.clone());
        state.reference.switch(faults, variants);
        drop(state);
        self.describe()
    }
}
