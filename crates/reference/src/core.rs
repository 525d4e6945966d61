//! State shared by all services: identifiers, credentials, switches, refusals, callbacks.

use super::effects::Operation;
use super::races::Phase;
use super::{Fault, Settings, Switch, Variant};
use conformant_base::clock::Timestamp;
use conformant_base::http::{Request, Response};
use conformant_base::ids;
use flate2::Compression;
use flate2::write::GzEncoder;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

/// The first account and its credentials (D2 and D3, Authentication): an API key with its secret or, for
/// local testing, the account SID with the auth token. They are public, because they protect nothing.
pub mod account {
    pub const SID: &str = "AC00000000000000000000000000c0ffee";
    /// Password for the account SID.
    pub const AUTH_TOKEN: &str = "reference-auth-token";
    /// API key, the user name in production.
    pub const API_KEY: &str = "reference-api-key";
    /// Secret of the API key.
    pub const API_SECRET: &str = "reference-api-secret";
}

/// Random values. A clone continues with the same values, which the generator of `rand` does not offer.
#[derive(Debug)]
pub struct Random(ChaCha8Rng);

impl Clone for Random {
    fn clone(&self) -> Self {
        Self(ChaCha8Rng::deserialize_state(&self.0.serialize_state()))
    }
}

impl Deref for Random {
    type Target = ChaCha8Rng;

    fn deref(&self) -> &ChaCha8Rng {
        &self.0
    }
}

impl DerefMut for Random {
    fn deref_mut(&mut self) -> &mut ChaCha8Rng {
        &mut self.0
    }
}

#[derive(Clone, Debug)]
pub struct Core {
    pub rng: Random,
    /// The account whose resources these are.
    pub account_sid: &'static str,
    /// Start of links: scheme, host, port and prefix.
    pub origin: String,
    /// Time of the current request.
    pub now: Timestamp,
    /// What the current request asks for.
    pub(super) operation: Operation,
    /// The first resource that was shown of each collection, by path.
    pub(super) firsts: RefCell<BTreeMap<(String, String), Arc<Value>>>,
    pub(super) phase: RefCell<Phase>,
    /// The last item of the page that was read last.
    pub(super) list_mark: Cell<Option<u64>>,
    settings: Settings,
    callbacks_made: u64,
    requests: u64,
    due: Vec<Callback>,
    /// Callbacks due with the next request.
    put_off: Vec<Callback>,
    waiting: BTreeMap<u64, Callback>,
    /// Retries by address.
    retried: BTreeMap<String, u32>,
    /// Result of a callback's last attempt.
    ended: BTreeMap<u64, Delivery>,
    /// Addresses whose callbacks failed with all retries.
    failed: BTreeSet<String>,
    /// One mark per switch in order of declaration: it was queried.
    asked: Vec<Cell<bool>>,
    /// The switches queried since the last call of `newly_asked`.
    newly_asked: RefCell<Vec<Switch>>,
}

/// An HTTP request to deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callback {
    /// Id of the callback, shared by its attempts.
    pub id: u64,
    pub url: String,
    /// `request.target` repeats path and query of `url`.
    pub request: Request,
    /// Timeout of the receiver.
    pub timeout: Duration,
    /// True if the causing request waits for the delivery or its failure.
    pub is_before: bool,
    /// Retries left.
    pub retries_left: u32,
    /// Retries so far.
    pub retried: u32,
}

/// Result of one delivery attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// A response in time.
    Answered(u16),
    /// No response within the timeout.
    TimedOut,
    /// No connection, or no HTTP.
    Unreachable,
}

impl Core {
    pub(super) fn new(settings: Settings, now: Timestamp) -> Self {
        Self {
            rng: Random(ChaCha8Rng::seed_from_u64(settings.seed)),
            account_sid: account::SID,
            origin: settings.origin.clone(),
            now,
            operation: Operation::callback(""),
            firsts: RefCell::default(),
            phase: RefCell::default(),
            list_mark: Cell::default(),
            settings,
            callbacks_made: 0,
            requests: 0,
            asked: vec![Cell::new(false); Fault::ALL.len() + Variant::ALL.len()],
            newly_asked: RefCell::default(),
            due: Vec::new(),
            put_off: Vec::new(),
            waiting: BTreeMap::new(),
            retried: BTreeMap::new(),
            ended: BTreeMap::new(),
            failed: BTreeSet::new(),
        }
    }

    pub fn sid(&mut self, prefix: &str) -> String {
        let sid = ids::new_sid(prefix, &mut *self.rng);
        if self.varies(Variant::UppercaseHex) {
            let (prefix, digits) = sid.split_at(2);
            return format!("{prefix}{}", digits.to_uppercase());
        }
        sid
    }

    /// Sets the switches. All count as read from then on, so that effects that are off are not tried.
    pub(super) fn switch(&mut self, faults: BTreeSet<Fault>, variants: BTreeSet<Variant>) {
        self.settings.faults = faults;
        self.settings.variants = variants;
        self.asked.fill(Cell::new(true));
    }

    /// Makes its resources those of another account, with callback ids from this number on.
    pub(super) fn belong_to(&mut self, account_sid: &'static str, first_callback: u64) {
        self.account_sid = account_sid;
        self.callbacks_made = first_callback;
    }

    pub(super) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// True if the fault is on. Also records that it was read, so that only faults that can make a difference are tried.
    pub fn fails(&self, fault: Fault) -> bool {
        self.has(Switch::Fault(fault))
    }

    /// True if the variant is on. Also records that it was read.
    pub fn varies(&self, variant: Variant) -> bool {
        self.has(Switch::Variant(variant))
    }

    /// True if the switch is on. Also records that it was read.
    pub(super) fn has(&self, switch: Switch) -> bool {
        if !self.asked[switch.index()].replace(true) {
            self.newly_asked.borrow_mut().push(switch);
        }
        self.is_on(switch)
    }

    fn is_on(&self, switch: Switch) -> bool {
        match switch {
            Switch::Fault(fault) => self.settings.faults.contains(&fault),
            Switch::Variant(variant) => self.settings.variants.contains(&variant),
        }
    }

    /// The switches that are on.
    pub(super) fn switched_on(&self) -> impl Iterator<Item = Switch> {
        let faults = self.settings.faults.iter().copied();
        let variants = self.settings.variants.iter().copied();
        faults
            .map(Switch::Fault)
            .chain(variants.map(Switch::Variant))
    }

    /// Whether the switch was read before, and is off.
    pub(super) fn is_known_off(&self, switch: Switch) -> bool {
        self.asked[switch.index()].get() && !self.is_on(switch)
    }

    /// Switches queried since the last call, in that order: only these can have made a difference.
    pub(super) fn newly_asked(&self) -> Vec<Switch> {
        self.newly_asked.take()
    }

    /// A success response with 201, or 200 under a variant.
    pub fn created(&self, value: &Value) -> Response {
        let status = if self.varies(Variant::CreatedIs200) {
            200
        } else {
            201
        };
        self.json(status, &self.with_effects(&self.operation, value))
    }

    /// A success response.
    pub fn ok(&self, value: &Value) -> Response {
        self.json(200, &self.with_effects(&self.operation, value))
    }

    /// A JSON response, formatted by the variants.
    fn json(&self, status: u16, value: &Value) -> Response {
        let reversed = self
            .varies(Variant::ReversedKeys)
            .then(|| with_keys_reversed(value));
        let value = reversed.as_ref().unwrap_or(value);
        let mut text = if self.varies(Variant::PrettyJson) {
            format!("{value:#}")
        } else {
            serde_json::to_string(value).expect("a tree can be written")
        };
        if !text.is_ascii() && self.varies(Variant::EscapedJson) {
            text = in_ascii(&text);
        }
        if self.varies(Variant::EscapedSlashes) {
            text = text.replace('/', "\\/");
        }
        if self.varies(Variant::SpacedJson) {
            text = format!(" \r\n\t{text}\n \n");
        }
        let content_type = if self.varies(Variant::CharsetParameter) {
            "application/json; charset=utf-8"
        } else {
            "application/json"
        };
        Response::new(status, content_type, text)
    }

    /// Writes an instant as a `date-time` in GMT.
    pub fn date(&self, at: Timestamp) -> Value {
        let text = conformant_base::clock::iso_seconds(at);
        for (variant, offset) in [
            (Variant::NumericOffset, "+00:00"),
            (Variant::HourOffset, "+00"),
            (Variant::BasicOffset, "+0000"),
        ] {
            if self.varies(variant) {
                return Value::String(text.replace('Z', offset));
            }
        }
        if self.varies(Variant::BasicDates) {
            return Value::String(text.replace(['-', ':'], ""));
        }
        if self.varies(Variant::Microseconds) {
            return Value::String(at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string());
        }
        if self.varies(Variant::WholeMinutes) {
            return Value::String(at.strftime("%Y-%m-%dT%H:%MZ").to_string());
        }
        if text.ends_with(":00Z") && self.varies(Variant::NoZeroSeconds) {
            return Value::String(text.replace(":00Z", "Z"));
        }
        if self.varies(Variant::FractionalSeconds) {
            return Value::String(at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string());
        }
        Value::String(text)
    }

    /// Writes a refusal with an undocumented body.
    pub fn refuse(&self, refusal: &Refusal) -> Response {
        if self.varies(Variant::RefusalsAre400) && refusal.status < 429 {
            return Response::json(400, &json!({"message": refusal.message}));
        }
        let status = match refusal.status {
            status if !self.varies(Variant::OtherErrorStatus) => status,
            400 => 422,
            401 => 403,
            404 => 410,
            409 => 400,
            status => status,
        };
        if self.varies(Variant::EmptyErrorBody) {
            return Response::empty(status);
        }
        if self.varies(Variant::HtmlErrorBody) {
            let page = format!("<!doctype html><title>{status}</title><h1>Refused</h1>");
            return Response::new(status, "text/html; charset=utf-8", page);
        }
        if self.varies(Variant::ListErrorBody) {
            return self.json(status, &json!([refusal.message]));
        }
        if self.varies(Variant::OtherErrorBody) {
            return Response::new(status, "text/plain", refusal.message.clone());
        }
        self.json(
            status,
            &json!({"code": refusal.code, "message": refusal.message, "status": status}),
        )
    }

    /// Finishes a response.
    pub fn finish(&self, service: &str, mut response: Response) -> Response {
        let fault = match service {
            "flow" => Fault::FlowByteOrderMark,
            "chat" => Fault::ChatByteOrderMark,
            "media" => Fault::MediaByteOrderMark,
            _ => Fault::AuthByteOrderMark,
        };
        if response.body.starts_with(b"{") && self.fails(fault) {
            response.body.splice(..0, *b"\xef\xbb\xbf");
        }
        self.write_otherwise(&mut response);
        if self.varies(Variant::ExtraHeaders) {
            for (name, value) in [
                ("X-Request-Id", "5c1f"),
                ("Cache-Control", "no-store"),
                ("Set-Cookie", "node=1; Path=/"),
                ("Vary", "Accept-Encoding"),
            ] {
                response.headers.add(name, value);
            }
        }
        response
    }

    /// Other media types and codings of documents.
    fn write_otherwise(&self, response: &mut Response) {
        let media_type = response.headers.media_type().unwrap_or_default();
        if !media_type.ends_with("json") && !media_type.ends_with("xml") {
            return;
        }
        if self.varies(Variant::OtherMediaType) {
            response.headers.set("Content-Type", "text/html");
        }
        if self.varies(Variant::WithoutMediaType) {
            response.headers.remove("Content-Type");
        }
        if !response.body.is_empty() && self.varies(Variant::Gzipped) {
            let mut coder = GzEncoder::new(Vec::new(), Compression::fast());
            let written = coder
                .write_all(&response.body)
                .and_then(|()| coder.finish());
            response.body = written.expect("a buffer takes everything");
            response.headers.set("Content-Encoding", "gzip");
        }
    }

    /// Start of links; empty if they are relative.
    pub fn link_origin(&self) -> &str {
        if self.varies(Variant::RelativeUrls) {
            ""
        } else {
            &self.origin
        }
    }

    /// Counts a request; true if it exceeds the rate limit.
    pub(super) fn is_one_too_many(&mut self) -> bool {
        self.requests += 1;
        self.due.append(&mut self.put_off);
        self.requests.is_multiple_of(20) && self.varies(Variant::RateLimited)
    }

    /// Queues a callback.
    pub fn send(&mut self, url: &str, mut request: Request, timeout: Duration, retries: u32) {
        self.callbacks_made += 1;
        if let Ok(parsed) = url::Url::parse(url) {
            parsed[url::Position::BeforePath..url::Position::AfterQuery]
                .clone_into(&mut request.target);
        }
        self.due.push(Callback {
            id: self.callbacks_made,
            url: url.to_owned(),
            request,
            timeout,
            is_before: false,
            retries_left: retries,
            retried: 0,
        });
    }

    /// Retries of a callback; under the fault those left from earlier callbacks.
    pub fn retries_left(&self, url: &str, configured: u32) -> u32 {
        match self.retried.get(url) {
            Some(spent) if self.fails(Fault::ChatRetriesForLife) => {
                configured.saturating_sub(*spent)
            }
            Some(_) | None => configured,
        }
    }

    /// True if an address is no longer called: a fault.
    pub fn has_given_up(&self, url: &str) -> bool {
        self.failed.contains(url) && self.fails(Fault::ChatWebhookDeadAfterFailure)
    }

    /// Delivers the last queued callback before the causing request completes, or only after the next one.
    pub fn send_before(&mut self) {
        let is_late = self.fails(Fault::ChatPreWebhookLate);
        let Some(mut callback) = self.due.pop() else {
            return;
        };
        callback.is_before = !is_late;
        if is_late {
            &mut self.put_off
        } else {
            &mut self.due
        }
        .push(callback);
    }

    pub(super) fn take_callbacks(&mut self) -> Vec<Callback> {
        for callback in &self.due {
            self.waiting.insert(callback.id, callback.clone());
        }
        std::mem::take(&mut self.due)
    }

    /// D2, Events: retried on a timeout, 429, 503 and 504, up to the configured count.
    pub(super) fn delivered(&mut self, id: u64, outcome: Delivery) {
        let Some(mut callback) = self.waiting.remove(&id) else {
            return;
        };
        let again = match outcome {
            Delivery::TimedOut => !self.fails(Fault::ChatRetryNotOnTimeout),
            Delivery::Answered(429) => !self.fails(Fault::ChatRetryNotOn429),
            Delivery::Answered(503) => !self.fails(Fault::ChatRetryNotOn503),
            Delivery::Answered(504) => !self.fails(Fault::ChatRetryNotOn504),
            Delivery::Answered(200..=299) => self.fails(Fault::ChatRetryOn200),
            Delivery::Answered(500) => self.fails(Fault::ChatRetryOn500),
            Delivery::Answered(502) => self.fails(Fault::ChatRetryOn502),
            Delivery::Answered(400) => self.fails(Fault::ChatRetryOn400),
            Delivery::Answered(_) | Delivery::Unreachable => false,
        };
        let before = self.ended.insert(id, outcome);
        let differs = before.is_some_and(|before| before != outcome);
        let again = again
            && !(differs && self.fails(Fault::ChatRetrySameStatusOnly))
            && !(callback.request.method == "GET" && self.fails(Fault::ChatRetryNotOnGet));
        let given_up = match callback.retried {
            0 => false,
            1 => self.fails(Fault::ChatRetryOnlyOnce),
            _ => self.fails(Fault::ChatRetryOnlyOnce) || self.fails(Fault::ChatRetryThirdMissing),
        };
        if again && callback.retries_left == 0 {
            self.failed.insert(callback.url);
        } else if again && !given_up {
            callback.retries_left -= 1;
            callback.retried += 1;
            *self.retried.entry(callback.url.clone()).or_default() += 1;
            if self.fails(Fault::ChatRetryLosesBody) {
                callback.request.body.clear();
            }
            let media_type = callback.request.headers.get("Content-Type");
            let is_form = media_type.is_some_and(|media_type| media_type.contains("form"));
            if is_form && self.varies(Variant::ChatRetriesNumbered) {
                let number = format!("&Retry={}", callback.retried);
                callback.request.body.extend_from_slice(number.as_bytes());
            }
            self.due.push(callback);
        }
    }
}

/// The same JSON in ASCII.
fn in_ascii(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}

fn with_keys_reversed(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .rev()
            .map(|(key, value)| (key.clone(), with_keys_reversed(value)))
            .collect(),
        Value::Array(items) => items.iter().map(with_keys_reversed).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Why a request is refused. Status codes and bodies are undocumented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    /// Code in the body.
    pub code: u32,
    /// Message in the body.
    pub message: String,
}

impl Refusal {
    pub fn new(status: u16, code: u32, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
        }
    }

    /// Not found.
    pub fn not_found() -> Self {
        Self::new(404, 20404, "The requested resource was not found")
    }

    /// A parameter is missing or invalid.
    pub fn bad_parameter(name: &str, why: &str) -> Self {
        Self::new(400, 20001, format!("Parameter {name}: {why}"))
    }

    /// A conflict, or a limit is reached.
    pub fn conflict(why: &str) -> Self {
        Self::new(409, 20409, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng as _;

    #[test]
    fn a_clone_draws_what_the_original_draws() {
        let mut original = Random(ChaCha8Rng::seed_from_u64(1));
        let values =
            |mut random: Random| -> Vec<u64> { (0..40).map(|_| random.next_u64()).collect() };
        for _ in 0..100 {
            assert_eq!(values(original.clone()), values(original.clone()));
            let ahead = values(original.clone());
            // Half of a value, so that clones are made between and within values.
            original.next_u32();
            assert_ne!(values(original.clone()), ahead);
        }
        let mut plain = ChaCha8Rng::seed_from_u64(1);
        (0..100).for_each(|_| _ = plain.next_u32());
        assert_eq!(values(original), values(Random(plain)));
    }
}
