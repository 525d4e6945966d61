//! What an answer states about the rate limit of its target: `Retry-After`, and the headers that show what remains of it.

use super::pace::PERIOD_MAX;
use super::pacing::{FIRST_WAIT, TRIES_MAX};
use conformant_base::clock;
use conformant_base::http::{Headers, Response};
use std::time::Duration;

/// For a target without `Retry-After`: the time until its limit is reset.
pub(super) fn time_until_reset(headers: &Headers) -> Option<Duration> {
    let (left, reset) = remaining(headers)?;
    (left == 0 && !reset.is_zero() && reset <= PERIOD_MAX).then_some(reset)
}

/// The requests that the target still serves, and the time until its limit is reset. Names and forms differ; a reset
/// that is a time of day is not read.
pub(super) fn remaining(headers: &Headers) -> Option<(u32, Duration)> {
    /// A larger number of seconds is a time since 1970.
    const SECONDS_MAX: f64 = 1e8;
    let number = |name: &str| {
        let names = [name.to_owned(), format!("X-{name}")];
        let mut texts = names.iter().filter_map(|name| headers.get(name));
        texts.find_map(|text| text.trim().parse::<f64>().ok())
    };
    let left = number("RateLimit-Remaining").filter(|left| *left >= 0.0)?;
    let reset = number("RateLimit-Reset").filter(|reset| *reset >= 0.0)?;
    let reset = match reset > SECONDS_MAX {
        true => reset - clock::now().as_duration().as_secs_f64(),
        false => reset,
    };
    let reset = Duration::try_from_secs_f64(reset).ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of requests, which saturates"
    )]
    Some((left as u32, reset))
}

/// Whether a rate limit rejected the request.
pub(super) fn is_limit(response: &Response) -> bool {
    let is_unavailable = || response.status == 503 && requested_wait(&response.headers).is_some();
    response.status == 429 || is_unavailable()
}

pub(super) fn requested_wait(headers: &Headers) -> Option<Duration> {
    wait_of(headers.get("Retry-After")?, clock::now())
}

/// How long to wait before a request is sent again that a rate limit rejected; `None` for other answers. For clients
/// without a schedule.
pub(in crate::sessions) fn wait_before_retry(response: &Response, tries: u32) -> Option<Duration> {
    let wait = requested_wait(&response.headers).filter(|wait| !wait.is_zero());
    let wait = wait.unwrap_or(FIRST_WAIT * 2u32.saturating_pow(tries.min(16)));
    (is_limit(response) && tries < TRIES_MAX).then_some(wait)
}

/// `Retry-After` as defined in RFC 9110: seconds or a date.
fn wait_of(text: &str, now: clock::Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let wait = at.duration_since(now);
    Some(Duration::try_from(wait).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_as_a_wait() {
        let now = "2026-01-01T00:00:00Z".parse().expect("an instant");
        let wait = wait_of("Thu, 01 Jan 2026 00:00:07 GMT", now);
        assert_eq!(wait, Some(Duration::from_secs(7)));
        assert_eq!(
            wait_of("Wed, 31 Dec 2025 00:00:00 GMT", now),
            Some(Duration::ZERO)
        );
    }
}
