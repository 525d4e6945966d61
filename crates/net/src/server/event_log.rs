//! Event log of all sandboxes: requests with responses, callbacks, and actions of people and devices.
//!
//! Keeps the latest entries with excerpts of bodies, without headers and secrets. For display only.

use super::world::Outcome;
use conformant_base::clock::{self, Timestamp};
use conformant_base::http::{Headers, Request, Response};
use conformant_base::parallel::{lock, recovered};
use conformant_base::redact::Redactor;
use conformant_reference::Callback;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Entries kept.
const KEPT_MAX: usize = 2_000;
/// Bytes kept of a body.
const BODY_BYTES_MAX: usize = 2_000;

/// The latest events.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    pages: Mutex<LogState>,
    written: Condvar,
    redactor: Redactor,
}

#[derive(Debug, Default)]
struct LogState {
    /// Entries ever written.
    written: u64,
    latest: VecDeque<Entry>,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    world: String,
    shown: Value,
}

/// Writes the events of one sandbox.
#[derive(Clone, Debug)]
pub(super) struct LogWriter {
    pub(super) event_log: Arc<EventLog>,
    pub(super) world: String,
}

impl LogWriter {
    /// Logs an exchange, except reads of the control plane.
    pub(super) fn exchange(
        &self,
        at: Timestamp,
        request: &Request,
        response: &Response,
        (took, scripted): (Duration, Option<&str>),
    ) {
        if request.method == "GET" && super::is_control(&request.target) {
            return;
        }
        let log = &self.event_log;
        log.write(&self.world, at, |redactor| {
            json!({
                "kind": if super::is_control(&request.target) { "action" } else { "exchange" },
                "method": redactor.redact(&request.method),
                "target": redactor.redact(&request.target),
                "sent": excerpt(redactor, &request.headers, &request.body),
                "status": response.status,
                "answered": excerpt(redactor, &response.headers, &response.body),
                "ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                "scripted": scripted,
            })
        });
    }

    /// Logs one attempt to deliver a callback.
    pub(super) fn callback(
        &self,
        at: Timestamp,
        callback: &Callback,
        attempt: u32,
        outcome: Outcome,
    ) {
        let request = &callback.request;
        self.event_log.write(&self.world, at, |redactor| {
            json!({
                "kind": "callback",
                "method": request.method,
                "target": redactor.redact(&callback.url),
                "sent": excerpt(redactor, &request.headers, &request.body),
                "attempt": attempt,
                "outcome": match outcome {
                    Outcome::Answered { status, .. } => status.to_string(),
                    Outcome::Silent => "no response in time".to_owned(),
                    Outcome::Unreachable => "not reached".to_owned(),
                },
            })
        });
    }
}

/// The beginning of a body, if it is text, and its size.
fn excerpt(redactor: &Redactor, headers: &Headers, body: &[u8]) -> Value {
    let media_type = headers.media_type().unwrap_or_default();
    let is_text = media_type.starts_with("text/")
        || ["json", "xml", "x-www-form-urlencoded"]
            .iter()
            .any(|known| media_type.ends_with(known));
    let start = &body[..body.len().min(BODY_BYTES_MAX)];
    let text = (is_text && !start.is_empty()).then(|| String::from_utf8_lossy(start));
    json!({
        "text": text.map(|text| redactor.redact(&text).into_owned()),
        "bytes": body.len(),
    })
}

impl EventLog {
    fn write(&self, world: &str, at: Timestamp, show: impl FnOnce(&Redactor) -> Value) {
        let mut shown = show(&self.redactor);
        shown["at"] = json!(clock::iso_seconds(at));
        let mut pages = lock(&self.pages);
        pages.written += 1;
        let number = pages.written;
        shown["number"] = json!(number);
        let world = world.to_owned();
        pages.latest.push_back(Entry {
            number,
            world,
            shown,
        });
        if pages.latest.len() > KEPT_MAX {
            pages.latest.pop_front();
        }
        drop(pages);
        self.written.notify_all();
    }

    /// The entries after that number, once there are any; empty on a timeout, `None` after the log closed.
    pub(super) fn after(
        &self,
        world: &str,
        number: u64,
        within: Duration,
    ) -> Option<(u64, Vec<Value>)> {
        let has_news = |pages: &mut LogState| pages.written <= number && !pages.closed;
        let pages = lock(&self.pages);
        let waited = self.written.wait_timeout_while(pages, within, has_news);
        let (pages, _) = recovered(waited);
        if pages.closed {
            return None;
        }
        let fits = |entry: &&Entry| entry.number > number && entry.world == world;
        let entries = pages.latest.iter().filter(fits);
        let entries = entries.map(|entry| entry.shown.clone()).collect();
        Some((pages.written, entries))
    }

    /// Wakes all waiting readers.
    pub(super) fn close(&self) {
        let mut pages = lock(&self.pages);
        pages.closed = true;
        drop(pages);
        self.written.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> LogWriter {
        LogWriter {
            event_log: Arc::default(),
            world: "a".to_owned(),
        }
    }

    fn ask(log: &LogWriter, method: &str, target: &str, body: &str) {
        let mut request = Request::new(method, target);
        request.headers.set("Content-Type", "application/json");
        request.body = body.into();
        let response = Response::json(200, &json!({}));
        log.exchange(
            Timestamp::UNIX_EPOCH,
            &request,
            &response,
            (Duration::ZERO, None),
        );
    }

    #[test]
    fn readers_receive_new_entries_of_their_sandbox() {
        let log = log();
        ask(&log, "GET", "/chat/v2/Services", "");
        ask(&log, "POST", "/_control/approve_request", "{}");
        ask(&log, "GET", "/_control/resources", "");
        let other = LogWriter {
            world: "b".to_owned(),
            ..log.clone()
        };
        ask(&other, "GET", "/flow/v1/Flows", "");
        let entries_after = |after| {
            let entries = log.event_log.after("a", after, Duration::ZERO);
            entries.expect("it is open")
        };
        let (last, seen) = entries_after(0);
        assert_eq!(last, 3);
        let kinds: Vec<_> = seen.iter().map(|entry| &entry["kind"]).collect();
        assert_eq!(kinds, ["exchange", "action"]);
        assert_eq!(entries_after(last), (last, Vec::new()));
        log.event_log.close();
        assert_eq!(log.event_log.after("a", 0, Duration::from_secs(9)), None);
    }

    #[test]
    fn it_keeps_little_of_each_and_no_secrets() {
        let log = log();
        let body = format!(
            r#"{{"password": "hunter22", "x": "{}"}}"#,
            "y".repeat(9_000)
        );
        for _ in 0..KEPT_MAX + 5 {
            ask(&log, "POST", "/chat/v2/Services", &body);
        }
        let (_, seen) = log.event_log.after("a", 0, Duration::ZERO).expect("open");
        assert_eq!(seen.len(), KEPT_MAX);
        let text = seen[0]["sent"]["text"].as_str().expect("a text");
        // A redacted text may be longer than the original.
        let most = BODY_BYTES_MAX + "[redacted]".len();
        assert!(text.len() <= most && !text.contains("hunter22"), "{text}");
        assert_eq!(seen[0]["sent"]["bytes"], body.len());
    }
}
