//! The page at `/` and its control-plane requests: resources, events, and QR codes.
//!
//! - A single file. Its policy allows its own styles and script by hash and requests to its origin only.
//! - Stateless: everything shown comes from the reference. Addresses, credentials and a sample request are there before
//!   the script runs.

use super::develop::{Answered, Wire};
use super::event_log::{EventLog, LogWriter};
use super::refusal;
use super::world::World;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformant_base::clock::Timestamp;
use conformant_base::http::{Request, Response};
use conformant_reference::account;
use conformant_reference::auth::application;
use qrcode::{Color, EcLevel, QrCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::error::Error;
use std::fmt::{self, Write as _};
use std::sync::{Arc, LazyLock};

/// Creates the QR code text of a custom user id at a time, as the application would.
pub type Offer = Arc<dyn Fn(&str, Timestamp) -> Result<String, NoOffer> + Send + Sync>;

/// Why there is no QR code. The caller of the server defines the error.
pub type NoOffer = Box<dyn Error + Send + Sync>;

/// What the page needs from a sandbox.
#[derive(Clone)]
pub(super) struct PageSettings {
    pub(super) log: LogWriter,
    pub(super) offer: Offer,
}

impl fmt::Debug for PageSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageSettings")
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}

/// Stands in the page for its own address.
const ORIGIN: &str = "http://ORIGIN";

struct Page {
    html: String,
    policy: String,
}

static PAGE: LazyLock<Page> = LazyLock::new(|| {
    // The style sheet of the report page, plus additions.
    let family = conformant_base::page::STYLE;
    let html = include_str!("page.html")
        .replace("/* the look of the report page */", family)
        .replace("ACCOUNT_KEY", account::API_KEY)
        .replace("ACCOUNT_SECRET", account::API_SECRET)
        .replace("APPLICATION_HEADER", application::API_KEY_HEADER)
        .replace("APPLICATION_KEY", application::API_KEY);
    let hashes = |name: &str| -> String {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let parts = html.split(open.as_str()).skip(1);
        let inside = parts.filter_map(|part| part.split(close.as_str()).next());
        inside
            .map(|source| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(source))))
            .collect()
    };
    let policy = format!(
        "default-src 'none'; style-src{}; script-src{}; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        hashes("style"),
        hashes("script")
    );
    Page { html, policy }
});

/// The page, if the request asks for it, with the address under which it was requested.
pub(super) fn page(request: &Request, scheme: &str) -> Option<Response> {
    if request.path() != "/" || !matches!(request.method.as_str(), "GET" | "HEAD") {
        return None;
    }
    let origin = format!("{scheme}://{}", host(request));
    let mut html = PAGE.html.replace(ORIGIN, &origin);
    if scheme == "https" {
        // The server does not know the file, and the certificate may be one that no authority signed.
        const TRY: &str = "<h3>Try it</h3>";
        let explained =
            format!("{TRY}<p>FILE is the certificate of <code>serve --tls FILE</code>.</p>");
        html = html
            .replace("curl -u", "curl --cacert FILE -u")
            .replace(TRY, &explained);
    }
    let mut response = Response::new(200, "text/html; charset=utf-8", html);
    for (name, value) in [
        ("Content-Security-Policy", PAGE.policy.as_str()),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cache-Control", "no-store"),
    ] {
        response.headers.set(name, value);
    }
    Some(response)
}

/// The host of a request; a placeholder where it would need escaping.
fn host(request: &Request) -> &str {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".:-[]".contains(c);
    let host = request.headers.get("Host").unwrap_or_default();
    match host.is_empty() || !host.chars().all(is_plain) {
        true => "localhost",
        false => host,
    }
}

impl World {
    /// Handles control-plane requests of the page; `None` for other requests.
    pub(super) fn show(&self, request: &Request) -> Option<Answered> {
        let people = self.people()?;
        Some(match (request.method.as_str(), request.path()) {
            ("GET", "/_control/resources") => self.resources().into(),
            ("GET", "/_control/events") => people.events(request),
            ("POST", "/_control/offer_registration") => self.offer(people, request),
            _ => return None,
        })
    }

    fn resources(&self) -> Response {
        let mut seen = self.state().reference.overview(self.now());
        let registrations = seen.pointer_mut("/auth/registrations/newest");
        for one in registrations
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let code = one["qr"].as_str().filter(|_| one["state"] == "pending");
            one["code"] = code.map_or(Value::Null, draw);
        }
        Response::json(200, &seen)
    }

    /// `{"custom_user_id": TEXT}`: creates a QR code and announces it to the service.
    fn offer(&self, people: &PageSettings, request: &Request) -> Answered {
        let arguments: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let Some(id) = arguments.get("custom_user_id").and_then(Value::as_str) else {
            return refusal(422, "argument `custom_user_id` (string) is required").into();
        };
        let qr = match (people.offer)(id, self.now()) {
            Ok(qr) => qr,
            Err(why) => return refusal(422, &why.to_string()).into(),
        };
        let mut announced = Request::new("POST", "/_control/announce_registration");
        announced.headers.set("Content-Type", "application/json");
        announced.body = json!({"custom_user_id": id, "qr": qr})
            .to_string()
            .into_bytes();
        let mut answered = self.answer(&announced);
        if answered.response.is_success() {
            answered.response = Response::json(200, &json!({ "qr": qr }));
        }
        answered
    }
}

impl PageSettings {
    /// A stream written by the relay; `?after=N` skips earlier events.
    fn events(&self, request: &Request) -> Answered {
        let pairs = request.query_pairs();
        let after = pairs.iter().find(|(name, _)| name == "after");
        let after = after.and_then(|(_, value)| value.parse().ok());
        let mut response = Response::new(200, "text/event-stream", Vec::new());
        response.headers.set("Cache-Control", "no-store");
        Answered {
            wire: Wire::Events {
                world: self.log.world.clone(),
                after: after.unwrap_or(0),
            },
            ..response.into()
        }
    }
}

/// The events of a sandbox after that number, in stream format.
pub(super) fn events_after(event_log: &EventLog, world: &str, after: &mut u64) -> Option<String> {
    let (last, entries) = event_log.after(world, *after, super::relay::STREAM_BEATS_EVERY)?;
    *after = last;
    let mut text = String::new();
    for entry in entries {
        // Writing to a String cannot fail.
        let _ = write!(text, "id: {}\ndata: {entry}\n\n", entry["number"]);
    }
    if text.is_empty() {
        text = ": nothing new\n\n".to_owned();
    }
    Some(text)
}

/// A QR code as an SVG path, one unit per module; `null` if the text does not fit.
fn draw(text: &str) -> Value {
    const QUIET: usize = 4;
    let Ok(code) = QrCode::with_error_correction_level(text, EcLevel::L) else {
        return Value::Null;
    };
    let width = code.width();
    let mut path = String::new();
    for (at, color) in code.to_colors().into_iter().enumerate() {
        if color == Color::Dark {
            let _ = write!(
                path,
                "M{} {}h1v1h-1z",
                at % width + QUIET,
                at / width + QUIET
            );
        }
    }
    json!({"size": width + 2 * QUIET, "path": path})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_an_encrypted_server_name_its_certificate() {
        let mut asked = Request::new("GET", "/");
        asked.headers.set("Host", "localhost:4010");
        let html = |scheme: &str| {
            let response = page(&asked, scheme).expect("the page");
            String::from_utf8_lossy(&response.body).into_owned()
        };
        let plain = html("http");
        assert!(!plain.contains("--cacert"), "{plain}");
        let encrypted = html("https");
        assert!(encrypted.contains("curl --cacert FILE -u"), "{encrypted}");
        assert!(encrypted.contains("https://localhost:4010/flow/v1/Flows"));
        assert!(encrypted.contains("<code>serve --tls FILE</code>"));
    }
}
