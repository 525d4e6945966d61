//! Checks reachability, credentials and clock of a target with one or two harmless requests.

use super::Check;
use conformant_base::clock;
use conformant_base::http::{Request, Response};
use conformant_engine::request::{self, BuildError};
use conformant_engine::settings::Target;
use conformant_engine::split_url;
use conformant_net::transport::{BaseUrl, Client, Fault};
use conformant_rulebook::scenario::Credentials;

/// A larger clock offset makes short-lived tokens fail.
const CLOCK_OFF_SECONDS_MAX: i64 = 30;

pub(super) fn check(
    (service, probe): (&str, &str),
    target: &Target,
    base: &BaseUrl,
    client: &Client,
    checks: &mut Vec<Check>,
) {
    let mut push = |what: &str, is_ok, says: String| {
        checks.push(Check {
            what: format!("{service}: {what}"),
            is_ok,
            says,
        });
    };
    let path = format!("{}{}", split_url(&target.url).1, probe);
    let send = |credentials| -> Result<Response, ProbeError> {
        let mut asked = Request::new("GET", path.clone());
        request::authorize(target, credentials, &mut asked)?;
        Ok(client.send(base, &asked, client.limits().timeout)?)
    };
    let answer = match send(Credentials::Default) {
        Ok(answer) => answer,
        Err(error) => return push("reachable", false, error.to_string()),
    };
    let tls = if base.origin().is_tls() {
        ", TLS with a trusted certificate"
    } else {
        ""
    };
    push("reachable", true, format!("{}{tls}", target.url));
    let refused = |answer: &Response| matches!(answer.status, 401 | 403);
    let status_text = format!("GET {path} answered {}", answer.status);
    if !target.has_credentials() {
        push(
            "credentials",
            !refused(&answer),
            format!("none are configured; {status_text}"),
        );
    } else if refused(&answer) {
        push("credentials", false, format!("refused: {status_text}"));
    } else {
        let without = send(Credentials::None).is_ok_and(|without| refused(&without));
        let needed = if without {
            "refused without them"
        } else {
            "not needed for that request"
        };
        push(
            "credentials",
            true,
            format!("accepted: {status_text}, {needed}"),
        );
    }
    if let Some(off) = seconds_off(&answer) {
        let is_near = off.abs() <= CLOCK_OFF_SECONDS_MAX;
        push("clock", is_near, format!("{off:+} s from ours"));
    }
    push("rate limit", true, rate_limit(&answer));
}

/// Why a probe failed.
#[derive(Debug, thiserror::Error)]
enum ProbeError {
    /// The credentials could not be applied.
    #[error(transparent)]
    Credentials(#[from] BuildError),
    /// The target did not respond.
    #[error(transparent)]
    Silent(#[from] Fault),
}

/// How far the target's clock is ahead, from the date of its response.
fn seconds_off(answer: &Response) -> Option<i64> {
    let date = answer.headers.get("Date")?;
    let there = jiff::fmt::rfc2822::parse(date).ok()?;
    Some(there.timestamp().as_second() - clock::now().as_second())
}

fn rate_limit(answer: &Response) -> String {
    let fault_texts: Vec<String> = answer
        .headers
        .iter()
        .filter(|(name, _)| {
            let name = name.to_ascii_lowercase();
            name.contains("ratelimit") || name.contains("rate-limit") || name == "retry-after"
        })
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    match (answer.status, fault_texts.is_empty()) {
        (429 | 503, _) => format!(
            "reached (status {}); a run waits as long as the response asks for",
            answer.status
        ),
        (_, false) => conformant_base::text::escape_line(&fault_texts.join(", ")).to_string(),
        (_, true) => "the response states none; set one with `limits.rate`".to_owned(),
    }
}
