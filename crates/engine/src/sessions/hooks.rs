//! Hooks of a live target: configured commands and HTTP requests.

use crate::command::printed;
use crate::session::HookFault;
use crate::sessions::live::wait_before_retry;
use crate::settings::{Hook, HookTransport};
use conformant_base::http::{Cause, Request, Response};
use conformant_base::json::{self, Limits};
use conformant_net::server::REFERENCE;
use conformant_net::transport::{BaseUrl, Client, Fault, Limits as ClientLimits};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Exit code of a command for an unsupported action.
const UNSUPPORTED_EXIT: i32 = 95;

/// Calls a hook outside of a run.
pub fn ask(hook: &Hook, arguments: &Value, client: &Client) -> Result<Value, HookFault> {
    carry_out(hook, arguments, client, &AtomicBool::new(false), &|_| {})
}

/// Calls a hook and reads its result. A rate limit is waited for; `on_limit` gets the wait.
pub(super) fn carry_out(
    hook: &Hook,
    arguments: &Value,
    client: &Client,
    interrupted: &AtomicBool,
    on_limit: &dyn Fn(Duration),
) -> Result<Value, HookFault> {
    let answer = match &hook.transport {
        HookTransport::Command(words) => {
            let done = command(words, arguments, client.limits().timeout, interrupted);
            done.map_err(|fault| match fault {
                HookFault::Failed(why) if why.contains(" took longer than ") => {
                    HookFault::Failed(format!("{why}{}", limit_of(client)))
                }
                HookFault::Unsupported | HookFault::NoResult { .. } | HookFault::Failed(_) => fault,
            })?
        }
        HookTransport::Http {
            method,
            url,
            headers,
            body,
        } => {
            let url = fill(url, arguments, &conformant_base::http::percent_encode);
            let parsed =
                url::Url::parse(&url).map_err(|e| HookFault::Failed(format!("{url}: {e}")))?;
            let base = BaseUrl::parse(&parsed.origin().ascii_serialization())
                .map_err(|e| HookFault::Failed(e.to_string()))?;
            let target = &parsed[url::Position::BeforePath..url::Position::AfterQuery];
            let mut request = Request::new(method, target);
            for (name, value) in headers {
                request
                    .headers
                    .add(name, fill(value, arguments, &str::to_owned));
            }
            match body {
                Some(body) => request.body = fill(body, arguments, &json_inner).into_bytes(),
                None => {
                    request.headers.set("Content-Type", "application/json");
                    request.body = arguments.to_string().into_bytes();
                }
            }
            let sent = send_within_limits(client, &base, &request, interrupted, on_limit);
            let response = sent.map_err(|fault| {
                let late = if is_late(&fault) {
                    limit_of(client)
                } else {
                    String::new()
                };
                HookFault::Failed(format!("{method} {url}: {fault}{late}"))
            })?;
            result(&response)?
        }
    };
    mapped(&hook.result, answer)
}

/// Sends the request again as long as a rate limit rejects it, and waits as requested.
fn send_within_limits(
    client: &Client,
    base: &BaseUrl,
    request: &Request,
    interrupted: &AtomicBool,
    on_limit: &dyn Fn(Duration),
) -> Result<Response, Fault> {
    const SLICE: Duration = Duration::from_millis(20);
    let mut tries = 0;
    loop {
        let response = crate::body::decoded(send(client, base, request)?);
        let Some(wait) = wait_before_retry(&response, tries) else {
            return Ok(response);
        };
        tries += 1;
        on_limit(wait);
        let until = conformant_base::clock::monotonic() + wait;
        while conformant_base::clock::monotonic() < until {
            if interrupted.load(Ordering::Relaxed) {
                return Ok(response);
            }
            conformant_base::clock::sleep(SLICE);
        }
    }
}

/// Sends the request, and retries once if no connection was made, because then nothing was done.
fn send(client: &Client, base: &BaseUrl, request: &Request) -> Result<Response, Fault> {
    const PAUSE: Duration = Duration::from_millis(200);
    let timeout = client.limits().timeout;
    match client.send(base, request, timeout) {
        Err(fault) if fault.is_unreachable() && !fault.fatal => {
            conformant_base::clock::sleep(PAUSE);
            client.send(base, request, timeout).map_err(|mut fault| {
                fault.detail.push_str(" (tried twice)");
                fault
            })
        }
        answer => answer,
    }
}

/// The result, extracted from an answer as configured.
fn mapped(places: &BTreeMap<String, String>, answer: Value) -> Result<Value, HookFault> {
    if places.is_empty() {
        return Ok(answer);
    }
    let part = |(name, pointer): (&String, &String)| {
        let found = answer.pointer(pointer).cloned().ok_or_else(|| {
            HookFault::Failed(format!(
                "its answer has nothing at {pointer}, where `result.{name}` should be"
            ))
        });
        found.map(|value| (name.clone(), value))
    };
    let parts: Result<Map<String, Value>, HookFault> = places.iter().map(part).collect();
    parts.map(Value::Object)
}

/// A hook's result: a JSON object in a 2xx answer, or nothing for an empty body. 501 means that the action is
/// unsupported.
pub(super) fn result(response: &Response) -> Result<Value, HookFault> {
    const NOT_IMPLEMENTED: u16 = 501;
    let text = String::from_utf8_lossy(&response.body);
    if response.status == NOT_IMPLEMENTED {
        return Err(HookFault::Unsupported);
    }
    if !response.is_success() {
        let shown = conformant_base::text::excerpt(&text, 200);
        let location = match (300..400).contains(&response.status) {
            true => response.headers.get("Location").unwrap_or_default(),
            false => "",
        };
        let shown = match location {
            "" => shown.into_owned(),
            location => format!("a redirect to {location}"),
        };
        return Err(HookFault::Failed(format!(
            "status {}: {}",
            response.status,
            conformant_base::text::escape_line(&shown)
        )));
    }
    let media_type = response.headers.get("Content-Type");
    read(&response.body, media_type)
}

/// Whether the answer took longer than the time limit.
fn is_late(fault: &Fault) -> bool {
    matches!(
        fault.cause,
        Cause::FirstByteTimeout | Cause::HeadersTimeout | Cause::BodyTimeout { .. }
    )
}

fn limit_of(client: &Client) -> String {
    format!(" (limits.timeout is {:?})", client.limits().timeout)
}

/// Whether a control plane identifies itself as the reference's: `GET URL` names it. Only then the reference's values
/// are used for a target.
pub fn hooks_of_reference(base: &str) -> bool {
    let limits = ClientLimits {
        timeout: Duration::from_secs(2),
        ..ClientLimits::default()
    };
    let (origin, path) = crate::split_url(base);
    let Ok(origin) = BaseUrl::parse(origin) else {
        return false;
    };
    let request = Request::new("GET", path);
    let answer = Client::new(limits).send(&origin, &request, limits.timeout);
    let said = answer.ok().and_then(|a| read(&a.body, None).ok());
    said.is_some_and(|said| said.get(REFERENCE.0).and_then(Value::as_str) == Some(REFERENCE.1))
}

/// Reads a result. `media_type` is that of an HTTP answer.
fn read(bytes: &[u8], media_type: Option<&str>) -> Result<Value, HookFault> {
    const SHOWN_BYTES_MAX: usize = 60;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(json!({}));
    }
    let parsed = json::parse(bytes, Limits::default()).map_err(|fault| {
        let text = String::from_utf8_lossy(bytes);
        let shown = conformant_base::text::excerpt(text.trim(), SHOWN_BYTES_MAX);
        let shown = conformant_base::text::escape_line(&shown);
        let came = match media_type {
            Some(media_type) => format!("{media_type}, beginning with `{shown}`"),
            None => format!("`{shown}`"),
        };
        HookFault::NoResult { fault, came }
    })?;
    Ok(parsed.value)
}

fn command(
    words: &[String],
    arguments: &Value,
    timeout: Duration,
    interrupted: &AtomicBool,
) -> Result<Value, HookFault> {
    let filled = words.iter().map(|w| fill(w, arguments, &str::to_owned));
    let filled: Vec<String> = filled.collect();
    match printed(&filled, timeout, interrupted) {
        Ok(bytes) => read(&bytes, None),
        Err(error) if error.code() == Some(UNSUPPORTED_EXIT) => Err(HookFault::Unsupported),
        Err(error) => Err(HookFault::Failed(error.to_string())),
    }
}

/// Replaces each `${NAME}` once.
fn fill(text: &str, arguments: &Value, encode: &dyn Fn(&str) -> String) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(end) = rest[start..].find('}').map(|e| start + e) else {
            break;
        };
        filled.push_str(&rest[..start]);
        let value = arguments.get(&rest[start + 2..end]).unwrap_or(&Value::Null);
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                value.to_string()
            }
        };
        filled.push_str(&encode(&value));
        rest = &rest[end + 1..];
    }
    filled.push_str(rest);
    filled
}

/// A text escaped for a JSON string.
fn json_inner(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_filled_in_and_its_output_read() {
        let words: Vec<String> = ["sh", "-c", "printf '{\"got\":\"%s\"}' \"$0\"", "${uuid}"]
            .map(str::to_owned)
            .to_vec();
        let idle = AtomicBool::new(false);
        let done = command(
            &words,
            &json!({"uuid": "a b;c"}),
            Duration::from_secs(5),
            &idle,
        );
        assert_eq!(done, Ok(json!({"got": "a b;c"})));
    }

    #[test]
    fn a_failed_hook_has_a_reason() {
        let run = |script: &str| {
            let words = ["sh", "-c", script].map(str::to_owned);
            let idle = AtomicBool::new(false);
            let done = command(&words, &json!({}), Duration::from_secs(5), &idle);
            done.unwrap_err().to_string()
        };
        assert!(run("echo no such flow >&2; exit 3").contains("exit status: 3: no such flow"));
        assert!(run("echo not json").contains("not JSON"));
    }

    #[test]
    fn an_answer_that_is_no_result_is_shown() {
        let page = Response::new(200, "text/html", "<html><body>Sign in</body></html>");
        let said = result(&page).unwrap_err().to_string();
        let expected = "got text/html, beginning with `<html><body>Sign in</body></html>`";
        assert!(said.contains(expected), "{said}");
        let mut moved = Response::empty(302);
        moved.headers.set("Location", "https://sso.example.com/");
        let said = result(&moved).unwrap_err().to_string();
        assert_eq!(said, "status 302: a redirect to https://sso.example.com/");
    }

    #[test]
    fn an_unsupported_hook_is_reported_as_such() {
        let idle = AtomicBool::new(false);
        let words: Vec<String> = ["sh", "-c", "exit 95"].map(str::to_owned).to_vec();
        let said = command(&words, &json!({}), Duration::from_secs(5), &idle);
        assert_eq!(said, Err(HookFault::Unsupported));
        assert_eq!(result(&Response::empty(501)), Err(HookFault::Unsupported));
        assert!(matches!(
            result(&Response::empty(500)),
            Err(HookFault::Failed(_))
        ));
    }

    #[test]
    fn results_are_extracted_by_configured_pointers() {
        let places = BTreeMap::from([("flow_sid".to_owned(), "/data/sid".to_owned())]);
        let answer = json!({"data": {"sid": "FW1"}, "more": 1});
        assert_eq!(mapped(&places, answer), Ok(json!({"flow_sid": "FW1"})));
        let wrong = mapped(&places, json!({"data": {}})).unwrap_err();
        assert!(
            wrong.to_string().contains("nothing at /data/sid"),
            "{wrong}"
        );
        let whole = json!({"flow_sid": "FW2"});
        assert_eq!(mapped(&BTreeMap::new(), whole.clone()), Ok(whole));
    }

    #[test]
    fn an_unreachable_hook_is_retried_once_and_named() {
        let hook = Hook {
            transport: HookTransport::Http {
                method: "POST".to_owned(),
                url: "http://127.0.0.1:9/approve".to_owned(),
                headers: Vec::new(),
                body: None,
            },
            result: BTreeMap::new(),
        };
        let client = Client::new(ClientLimits::default());
        let said = carry_out(&hook, &json!({}), &client, &AtomicBool::new(false), &|_| {});
        let said = said.unwrap_err().to_string();
        assert!(said.contains("POST http://127.0.0.1:9/approve"), "{said}");
        assert!(said.contains("tried twice"), "{said}");
    }

    #[test]
    fn arguments_are_encoded_for_their_position() {
        let arguments = json!({"id": "a/b \"c\"", "n": 5});
        assert_eq!(
            fill(
                "x/${id}/${n}",
                &arguments,
                &conformant_base::http::percent_encode
            ),
            "x/a%2Fb%20%22c%22/5"
        );
        assert_eq!(
            fill("{\"i\":\"${id}\"}", &arguments, &json_inner),
            r#"{"i":"a/b \"c\""}"#
        );
    }
}
