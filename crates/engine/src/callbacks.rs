//! Callbacks in scenarios: opens addresses, waits, and returns the received callbacks as one document.

use super::session::{Callbacks, Session};
use super::stop::Stop;
use super::template::wait_of;
use conformant_base::clock::Timestamp;
use conformant_base::http::Request;
use conformant_base::json::{self, Parsed};
use conformant_net::transport::{Callback, Reply};
use conformant_rulebook::step::{Await, Listen};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Default of `within` in `await`.
const WITHIN_DEFAULT: Duration = Duration::from_secs(5);
/// The minimum time to listen for an unexpected callback.
const SILENCE_MIN: Duration = Duration::from_secs(1);
/// The same for a race: what is sent twice at the same time arrives at about the same time.
const SILENCE_MIN_OF_RACE: Duration = Duration::from_millis(200);
/// The maximum in a round of a race that is not its last one.
const SILENCE_MAX_OF_EARLY_ROUND: Duration = Duration::from_millis(50);
/// The polling interval.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Opens an address; the result is `{url}`.
pub(super) fn listen(callbacks: &Callbacks, step: &Listen) -> Result<Value, Stop> {
    let mut plan = Vec::new();
    for answer in &step.answers {
        let after = time(answer.after.as_deref(), Duration::ZERO)?;
        plan.push(Reply {
            status: answer.status.unwrap_or(200),
            after,
        });
    }
    let url = callbacks.sink.open(&callbacks.name_of(&step.listen), plan);
    Ok(json!({"url": url}))
}

/// The context of an `await` step.
pub(super) struct Wait<'a> {
    pub(super) callbacks: &'a Callbacks,
    pub(super) session: &'a dyn Session,
    /// The service that is expected to call.
    pub(super) service: &'a str,
    /// Whether requests were sent at the same time before.
    pub(super) is_race: bool,
    /// Whether this is a round of a race that is not its last one.
    pub(super) looks_early: bool,
    /// The rules of the step's statements that the callbacks so far do not satisfy.
    pub(super) unmet: &'a dyn Fn(&Value) -> Vec<String>,
}

impl Wait<'_> {
    /// Waits for callbacks. Returns `{count, requests, waited}` and the payloads to judge; `waited` is the limit.
    pub(super) fn collect(&self, step: &Await) -> Result<(Value, Vec<Parsed>), Stop> {
        let session = self.session;
        let name = self.callbacks.name_of(&step.r#await);
        let rules: Vec<&str> = step.expect.iter().map(|e| e.rule.as_str()).collect();
        let declared = time(step.within.as_deref(), WITHIN_DEFAULT)?;
        let within = session.callback_max(declared, &rules);
        let quiet = time(step.quiet.as_deref(), Duration::ZERO)?;
        let wanted = step.count.unwrap_or(1);
        let (mut waited, mut received, mut last) = (Duration::ZERO, 0, Duration::ZERO);
        while waited < within {
            let all = self.callbacks.sink.callbacks(&name);
            if all.len() > received {
                // A delay that our own late answer causes says nothing about the target.
                if delay_of(all[..received].last()).is_zero() {
                    session.callback_took(waited.saturating_sub(last));
                }
                (received, last) = (all.len(), waited);
            }
            if received >= wanted && !self.may_come_later(&name) {
                break;
            }
            // Callbacks that would break the statement only need a listening period.
            let is_settled = session.is_live() && !step.expect.is_empty();
            if is_settled && waited >= last + self.silence_after(within) && self.holds_now(&name) {
                break;
            }
            session.listen(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
        if !quiet.is_zero() {
            let answered = delay_of(self.callbacks.sink.callbacks(&name).last());
            session.listen((self.quiet_for(quiet) + answered).min(quiet));
        }
        if received == 0
            && wanted > 0
            && session.address_may_be_overwritten()
            && !self.holds_now(&name)
        {
            return Err(Stop::Inconclusive(format!(
                "no callback within {within:?}, but another run may have set the application's address \
                 meanwhile: supply the hook `lease`, or set `callbacks: {{exclusive: true}}` if no other \
                 run uses the target"
            )));
        }
        let unmet = self.unmet_now(&name);
        session.callbacks_came(&rules, &unmet);
        if received < wanted && !unmet.is_empty() {
            session.callback_missing(&unmet);
            // An unreachable service cannot call; which says nothing about its callbacks.
            if let Some(fault) = session.reachability_fault(self.service) {
                let why = format!("no callback within {within:?}, and {fault}");
                return Err(Stop::Unreachable(why));
            }
        }
        if let Some(took) = self.callbacks.sink.overdue(&name) {
            let took = took.as_secs_f64();
            return Err(Stop::Inconclusive(format!(
                "our response to a callback left after {took:.1} s, because this machine is overloaded, so that a retry is right"
            )));
        }
        let received = self.callbacks.sink.callbacks(&name);
        let views = received.iter().map(|callback| view(callback));
        let (requests, payloads): (Vec<Value>, Vec<Option<Parsed>>) = views.unzip();
        let limit = format!("{within:?}");
        Ok((
            json!({"count": requests.len(), "requests": requests, "waited": limit}),
            payloads.into_iter().flatten().collect(),
        ))
    }

    /// How long to listen after the last callback.
    fn silence_after(&self, declared: Duration) -> Duration {
        let least = if self.is_race {
            SILENCE_MIN_OF_RACE
        } else {
            SILENCE_MIN
        };
        self.session.silence(declared, least)
    }

    /// How long to listen for an unexpected callback. A round that is not the last one only waits for the expected ones, which
    /// would otherwise arrive at the address of the next round.
    fn quiet_for(&self, declared: Duration) -> Duration {
        match self.is_race && self.looks_early {
            true => declared.min(SILENCE_MAX_OF_EARLY_ROUND),
            false => self.silence_after(declared),
        }
    }

    /// Whether callbacks of other scenarios also arrive at this address, so that ours may still be missing.
    fn may_come_later(&self, name: &str) -> bool {
        self.session.is_live() && self.session.address_is_shared() && !self.holds_now(name)
    }

    fn holds_now(&self, name: &str) -> bool {
        self.unmet_now(name).is_empty()
    }

    fn unmet_now(&self, name: &str) -> Vec<String> {
        let received = self.callbacks.sink.callbacks(name);
        let requests: Vec<Value> = received.iter().map(|callback| view(callback).0).collect();
        (self.unmet)(&json!({"count": requests.len(), "requests": requests}))
    }
}

/// The delay of our answer to a callback.
fn delay_of(callback: Option<&Arc<Callback>>) -> Duration {
    callback.map_or(Duration::ZERO, |callback| callback.answered.after)
}

/// A callback as scenarios see it, and its payload.
fn view(callback: &Callback) -> (Value, Option<Parsed>) {
    let request = &callback.request;
    let mut view = json!({
        "method": request.method,
        "query": object(request.query_pairs()),
        "headers": object(request.headers.iter().map(|(n, v)| (n.to_ascii_lowercase(), v.to_owned())).collect()),
        "text": String::from_utf8_lossy(&request.body),
        "answered": callback.answered.status,
    });
    // Offline, no time passes by itself.
    if callback.at != Timestamp::UNIX_EPOCH {
        view["at"] = callback.at.to_string().into();
    }
    let payload = document(request);
    if let Some(payload) = &payload {
        let name = if is_form(request) { "form" } else { "json" };
        view[name] = payload.value.clone();
    }
    (view, payload)
}

fn is_form(request: &Request) -> bool {
    request.headers.media_type().as_deref() == Some("application/x-www-form-urlencoded")
}

/// The payload of a callback, where it can be read.
pub(super) fn document(request: &Request) -> Option<Parsed> {
    if request.body.is_empty() {
        return None;
    }
    if is_form(request) {
        let value = object(
            url::form_urlencoded::parse(&request.body)
                .into_owned()
                .collect(),
        );
        let notes = Vec::new();
        return Some(Parsed { value, notes });
    }
    json::parse(&request.body, json::Limits::default()).ok()
}

/// Pairs as an object; the values of a repeated name become a list.
fn object(pairs: Vec<(String, String)>) -> Value {
    let mut object = Map::new();
    for (name, value) in pairs {
        match object.get_mut(&name) {
            None => {
                object.insert(name, Value::String(value));
            }
            Some(Value::Array(values)) => values.push(Value::String(value)),
            Some(first) => *first = json!([first.take(), value]),
        }
    }
    Value::Object(object)
}

fn time(text: Option<&str>, default: Duration) -> Result<Duration, Stop> {
    match text {
        None => Ok(default),
        Some(text) => wait_of(text).ok_or_else(|| Stop::Error(format!("not a duration: {text}"))),
    }
}
