//! Hooks of a live target: commands and HTTP requests that the adopter supplies.

use crate::engine::settings::Hook;
use crate::http::{Request, Response};
use crate::json::{self, Limits};
use crate::server::REFERENCE;
use crate::transport::{BaseUrl, Client, Limits as ClientLimits};
use serde_json::{Value, json};
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// The most that a hook may print.
const OUTPUT_BYTES_MAX: u64 = 1024 * 1024;

/// Carries a hook out and reads its result.
pub(super) fn carry_out(
    hook: &Hook,
    arguments: &Value,
    client: &Client,
    interrupted: &AtomicBool,
) -> Result<Value, String> {
    let timeout = client.limits().timeout;
    match hook {
        Hook::Command(words) => command(words, arguments, timeout, interrupted),
        Hook::Http {
            method,
            url,
            headers,
            body,
        } => {
            let url = fill(url, arguments, &crate::http::percent_encode);
            let parsed = url::Url::parse(&url).map_err(|e| format!("{url}: {e}"))?;
            let base = BaseUrl::parse(&parsed.origin().ascii_serialization())
                .map_err(|e| e.to_string())?;
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
            let response = client
                .send(&base, &request, timeout)
                .map_err(|f| f.to_string())?;
            result(&response)
        }
    }
}

/// A hook's result: a JSON object in a 2xx answer, nothing when the body is empty.
pub(super) fn result(response: &Response) -> Result<Value, String> {
    let text = String::from_utf8_lossy(&response.body);
    if !response.is_success() {
        let shown = crate::text::excerpt(&text, 200);
        return Err(format!(
            "status {}: {}",
            response.status,
            crate::text::escape_line(&shown)
        ));
    }
    read(&response.body)
}

/// Whether a control plane says that it is the reference's own: `GET URL` names it. Only then are the
/// reference's values used for a target.
pub fn hooks_of_reference(base: &str) -> bool {
    let limits = ClientLimits {
        timeout: Duration::from_secs(2),
        ..ClientLimits::default()
    };
    let (origin, path) = crate::engine::split_url(base);
    let Ok(origin) = BaseUrl::parse(origin) else {
        return false;
    };
    let request = Request::new("GET", path);
    let answer = Client::new(limits).send(&origin, &request, limits.timeout);
    let said = answer.ok().and_then(|a| read(&a.body).ok());
    said.is_some_and(|said| said.get(REFERENCE.0).and_then(Value::as_str) == Some(REFERENCE.1))
}

fn read(bytes: &[u8]) -> Result<Value, String> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(json!({}));
    }
    json::parse(bytes, Limits::default())
        .map(|p| p.value)
        .map_err(|e| format!("its result is not JSON: {e}"))
}

fn command(
    words: &[String],
    arguments: &Value,
    timeout: Duration,
    interrupted: &AtomicBool,
) -> Result<Value, String> {
    let filled: Vec<String> = words
        .iter()
        .map(|w| fill(w, arguments, &str::to_owned))
        .collect();
    let [program, rest @ ..] = filled.as_slice() else {
        return Err("an empty command".to_owned());
    };
    let mut child = Command::new(program)
        .args(rest)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("{program} could not be started: {e}"))?;
    let out = child.stdout.take().expect("standard output was piped");
    let (sender, printed) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = out.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
        // Nobody waits any longer for what a slow command prints.
        let _ = sender.send(read.map(|_| bytes));
    });
    let deadline = crate::clock::monotonic() + timeout;
    let status = loop {
        match child.try_wait().map_err(|e| format!("{program}: {e}"))? {
            Some(status) => break status,
            None if crate::clock::monotonic() > deadline || interrupted.load(Ordering::Relaxed) => {
                // The child may have ended meanwhile; either way it is gone afterwards.
                let _ = child.kill();
                let _ = child.wait();
                let interrupted = interrupted.load(Ordering::Relaxed);
                let why = if interrupted {
                    "was interrupted".to_owned()
                } else {
                    format!("took longer than {timeout:?}")
                };
                return Err(format!("{program} {why}"));
            }
            None => crate::clock::sleep(Duration::from_millis(5)),
        }
    };
    if !status.success() {
        return Err(format!("{program} ended with {status}"));
    }
    // What it left running in the background may hold its output open.
    let left = deadline.saturating_duration_since(crate::clock::monotonic());
    let bytes = printed
        .recv_timeout(left)
        .map_err(|_| format!("{program} ended, but its output did not within {timeout:?}"))?
        .map_err(|e| format!("{program}: its output could not be read: {e}"))?;
    read(&bytes)
}

/// Puts arguments in for `${NAME}`, once.
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

/// A text as it stands between quotation marks in JSON.
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
    fn a_hook_that_fails_hangs_or_babbles_is_told_apart() {
        let interrupted = AtomicBool::new(false);
        let run = |script: &str, ms| {
            let words: Vec<String> = ["sh", "-c", script].map(str::to_owned).to_vec();
            command(&words, &json!({}), Duration::from_millis(ms), &interrupted).unwrap_err()
        };
        assert!(run("exit 3", 5000).contains("exit status: 3"));
        assert!(run("exec sleep 5", 50).contains("took longer"));
        assert!(run("echo not json", 5000).contains("not JSON"));
        assert!(run("sleep 2 &", 100).contains("its output did not"));
        interrupted.store(true, Ordering::Relaxed);
        assert!(run("exec sleep 5", 60_000).contains("was interrupted"));
    }

    #[test]
    fn filled_values_are_encoded_for_their_place() {
        let arguments = json!({"id": "a/b \"c\"", "n": 5});
        assert_eq!(
            fill("x/${id}/${n}", &arguments, &crate::http::percent_encode),
            "x/a%2Fb%20%22c%22/5"
        );
        assert_eq!(
            fill("{\"i\":\"${id}\"}", &arguments, &json_inner),
            r#"{"i":"a/b \"c\""}"#
        );
    }
}
