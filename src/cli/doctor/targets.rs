//! Checks reachability, credentials, clock, rate limit and encodings of a target.

use super::access::{Access, ProbeError, Targets, headline};
use super::{Check, Diagnosis};
use conformant_base::http::{Cause, Request, Response};
use conformant_base::{clock, json, text};
use conformant_engine::link::unknown_address;
use conformant_engine::probe::{Probe, another_answer};
use conformant_net::transport::LIKE_TLS;
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::{Operation, ParameterLocation, Rulebook};
use serde_json::Value;

/// A larger clock offset makes short-lived tokens fail.
const CLOCK_OFF_SECONDS_MAX: i64 = 30;

/// What to do about a target that was not reached.
fn unreachable_todo(service: &str, url: &str, error: &ProbeError) -> String {
    let key = format!("targets.{service}.url ({url})");
    let fault = match error {
        ProbeError::Silent(fault) => fault,
        ProbeError::Credentials(_) => {
            return format!("correct the credentials of targets.{service}");
        }
    };
    if fault.detail.starts_with(LIKE_TLS) {
        format!("write https:// in {key}")
    } else if fault.cause == Cause::NotHttp {
        format!("correct {key}: another protocol is spoken there")
    } else if fault.cause == Cause::Tls {
        format!(
            "correct the certificate of the server, `tls` in the configuration, or {key}, as the message says"
        )
    } else {
        format!("start {service}, or correct {key}")
    }
}

/// Checks one target; returns whether the service answers at its address.
pub(super) fn check(
    service: &str,
    targets: &Targets<'_>,
    rulebook: &Rulebook,
    diagnosis: &mut Diagnosis,
) -> bool {
    let what = |what: &str| format!("{service}: {what}");
    let url = targets.target(service).url.clone();
    let access = targets.access(service);
    let headline = headline(service, targets.target(service), &access);
    diagnosis.headlines.extend(headline);
    let (answer, is_granted) = match &access {
        Access::Unreachable(error) => {
            let todo = unreachable_todo(service, &url, error);
            diagnosis.push(Check::failed(what("reachable"), error.to_string(), todo));
            return false;
        }
        Access::Refused(answer) => (answer, None),
        Access::Granted { answer, is_needed } => (answer, Some(*is_needed)),
    };
    let tls = match targets.is_tls(service) {
        true => ", TLS with a trusted certificate",
        false => "",
    };
    diagnosis.push(Check::ok(what("reachable"), format!("{url}{tls}")));
    let status = format!("GET {} answered {}", targets.path(service), answer.status);
    if let Some(why) = targets
        .wrong_address(service, answer)
        .filter(|_| is_granted.is_some())
    {
        let todo = format!(
            "correct targets.{service}.url ({url}): the documented paths are below it, and {} is one of them",
            targets.path(service)
        );
        diagnosis
            .headlines
            .push(format!("{service} at {url}: {status} {why}"));
        diagnosis.push(Check::failed(
            what("address"),
            format!("{status} {why}"),
            todo,
        ));
        return false;
    }
    let unusable = is_granted.and_then(|_| unusable(service, &url, (answer, &status), rulebook));
    if let Some((says, todo)) = unusable {
        diagnosis
            .headlines
            .push(format!("{service} at {url}: {says}"));
        diagnosis.push(Check::failed(what("answers"), says, todo));
        return false;
    }
    let has_credentials = targets.target(service).has_credentials();
    let says = match (has_credentials, is_granted) {
        (false, _) => format!("none are configured; {status}"),
        (true, None) => format!("refused: {status}"),
        (true, Some(true)) => format!("accepted: {status}, refused without them"),
        (true, Some(false)) => {
            format!("accepted: {status}, not needed for that request")
        }
    };
    diagnosis.push(match (is_granted, has_credentials) {
        (Some(_), _) => Check::ok(what("credentials"), says),
        (None, true) => {
            let todo = format!("correct the credentials of targets.{service}");
            Check::failed(what("credentials"), says, todo)
        }
        (None, false) => {
            let todo = format!(
                "configure credentials of targets.{service}; `conformant explain targets.{service}.username` describes them"
            );
            Check::failed(what("credentials"), says, todo)
        }
    });
    diagnosis
        .checks
        .extend(other_address(service, targets, answer));
    if let Some(off) = seconds_off(answer) {
        let says = format!("{off:+} s from ours");
        diagnosis.push(match off.abs() <= CLOCK_OFF_SECONDS_MAX {
            true => Check::ok(what("clock"), says),
            false => {
                let todo = format!("set the clock of {service} or of this machine");
                Check::failed(what("clock"), says, todo)
            }
        });
    }
    if let Some(limit) = rate_limit(answer) {
        diagnosis.push(Check::ok(what("rate limit"), limit));
    }
    if is_granted.is_some() {
        let known = rulebook.services.get(service).into_iter();
        let operations = known.flat_map(|service| service.operations.values());
        for operation in operations.filter(|o| o.bodies.len() > 1 && o.path_from.is_none()) {
            encodings(service, operation, targets, diagnosis);
        }
    }
    true
}

/// Whether links in the answer lead to another address, where a run follows none.
fn other_address(service: &str, targets: &Targets<'_>, answer: &Response) -> Option<Check> {
    let target = targets.target(service);
    let document: Value = serde_json::from_slice(&answer.body).ok()?;
    let probe = Probe::of(targets.rulebook, service)?;
    let documented = probe.path.split('?').next()?;
    let mut address = None;
    json::visit_leaves(&document, &mut |_, value| {
        let link = value.as_str().filter(|_| address.is_none());
        address = link
            .and_then(|link| unknown_address(target, link, documented))
            .or(address.take());
    });
    let address = text::escape_line(&address?).into_owned();
    Some(Check::failed(
        format!("{service}: links"),
        format!("they lead to {address}, where a run does not follow them"),
        format!(
            "set `public_url: {address}` in targets.{service} if this is an address of {service}; otherwise its links are wrong, and rules about them are not decided"
        ),
    ))
}

/// Why a run could judge nothing by such answers, and what to do about it.
fn unusable(
    service: &str,
    url: &str,
    (answer, status): (&Response, &str),
    rulebook: &Rulebook,
) -> Option<(String, String)> {
    if is_no_service(answer.status) {
        let todo = format!("find out why {service} does not serve this request");
        return Some((status.to_owned(), todo));
    }
    let why = another_answer(rulebook, service, answer)?;
    let todo = format!(
        "find out what answers at {url}, or correct targets.{service}.url: a run would flag these answers"
    );
    Some((format!("{status} {why}"), todo))
}

/// Whether a status says nothing about credentials: the service redirects, limits requests or fails, or what answers does not
/// serve a documented read, such as a proxy that needs a password of its own (407).
pub(super) fn is_no_service(status: u16) -> bool {
    matches!(status, 300..=399 | 402 | 405..=408 | 421 | 426 | 429 | 451 | 500..)
}

/// Sends an empty body in both encodings of an operation. Required parameters are missing, so nothing is created.
fn encodings(
    service: &str,
    operation: &Operation,
    targets: &Targets<'_>,
    diagnosis: &mut Diagnosis,
) {
    const UNSUPPORTED: u16 = 415;
    if !operation
        .parameters
        .iter()
        .any(|p| p.required && p.place == ParameterLocation::Body)
    {
        return;
    }
    let target = targets.target(service);
    let is_json = target.json_operations.get(&operation.id);
    let is_json = *is_json.unwrap_or(&target.json_bodies);
    let status = |media_type: &str, body: &str| {
        let below = conformant_engine::split_url(&target.url).1;
        let mut asked = Request::new(&operation.method, format!("{below}{}", path(operation)));
        asked.headers.set("Content-Type", media_type);
        asked.body = body.as_bytes().to_vec();
        let answer = targets.send(service, asked, Credentials::Default);
        answer.ok().map(|answer| answer.status)
    };
    let (Some(form), Some(json)) = (
        status("application/x-www-form-urlencoded", ""),
        status("application/json", "{}"),
    ) else {
        return;
    };
    let (sent, own, other, others) = match is_json {
        true => ("json", json, "form", form),
        false => ("form", form, "json", json),
    };
    let id = &operation.id;
    let what = format!("{service}: body of {id}");
    let says = format!("sent as {sent}; an empty body got {form} as form and {json} as json");
    let is_absent = (form, json) == (404, 404) && !names_a_resource(operation);
    if is_absent {
        let url = &target.url;
        diagnosis.headlines.push(format!(
            "{service} at {url}: {} {} answered 404 where the documents have an operation",
            operation.method,
            path(operation)
        ));
        let todo = format!("correct targets.{service}.url ({url})");
        diagnosis.push(Check::failed(what, says, todo));
        return;
    }
    diagnosis.push(match own == UNSUPPORTED && others != UNSUPPORTED {
        true => Check::failed(
            what,
            says,
            format!("set `targets.{service}.body: {{ {id}: {other} }}`"),
        ),
        false => Check::ok(what, says),
    });
}

/// Whether the path contains the identifier of a resource.
fn names_a_resource(operation: &Operation) -> bool {
    operation
        .parameters
        .iter()
        .any(|p| p.place == ParameterLocation::Path && p.schema["enum"][0].is_null())
}

/// The path with values for its parameters that name nothing.
fn path(operation: &Operation) -> String {
    let mut path = operation.path.clone();
    for parameter in &operation.parameters {
        let first = parameter.schema["enum"][0].as_str();
        let value = first.unwrap_or("0");
        path = path.replace(&format!("{{{}}}", parameter.name), value);
    }
    path
}

/// How far the target's clock is ahead, from the date of its response.
fn seconds_off(answer: &Response) -> Option<i64> {
    let date = answer.headers.get("Date")?;
    let there = jiff::fmt::rfc2822::parse(date).ok()?;
    Some(there.timestamp().as_second() - clock::now().as_second())
}

/// The rate limit that a response states.
fn rate_limit(answer: &Response) -> Option<String> {
    if matches!(answer.status, 429 | 503) {
        return Some(format!(
            "reached (status {}); a run waits as long as the response asks for",
            answer.status
        ));
    }
    let stated: Vec<String> = answer
        .headers
        .iter()
        .filter(|(name, _)| {
            let name = name.to_ascii_lowercase();
            name.contains("ratelimit") || name.contains("rate-limit") || name == "retry-after"
        })
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let shown = text::escape_line(&stated.join(", ")).into_owned();
    (!stated.is_empty()).then_some(shown)
}
