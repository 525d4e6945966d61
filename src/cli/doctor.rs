//! `doctor`: whether a run could judge these targets, and what it would leave out. Sends one harmless request to each.
//!
//! Judges nothing. Hooks are not carried out, those apart that tell the time and call us back: whether they are there is all that
//! can be seen without making anything happen.

mod callbacks;

use super::args::{DoctorArgs, ListFormat, RunArgs};
use super::config::{self, Config};
use super::{Done, Exit, Failure, say};
use crate::clock;
use crate::engine::sessions::ask;
use crate::engine::settings::{HookWay, Target};
use crate::engine::{Hook, request, split_url};
use crate::http::{Request, Response};
use crate::redact::Redactor;
use crate::rulebook::hooks::HOOKS;
use crate::rulebook::scenario::Credentials;
use crate::rulebook::{Rulebook, unlocked};
use crate::transport::{BaseUrl, Client, Limits};
use crate::verdict::SERVICES;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A clock that is further off than this makes tokens fail that live for minutes.
const CLOCK_OFF_SECONDS_MAX: i64 = 30;

/// What was looked at, and what it says.
struct Look {
    what: String,
    is_well: bool,
    says: String,
}

pub(super) fn doctor(args: &DoctorArgs) -> Done {
    let config = config::read(&RunArgs {
        config: args.config.clone(),
        targets: args.targets.clone(),
        hooks: args.hooks.clone(),
        ..RunArgs::default()
    })?;
    if config.settings.targets.is_empty() {
        let help = "`conformant init` writes a configuration, --target SERVICE=URL names one";
        return Err(Failure::Usage(format!("no target is configured: {help}")));
    }
    let rulebook = super::load(&args.specs)?;
    let mut looks = Vec::new();
    let mut bases = BTreeMap::new();
    for (service, target) in &config.settings.targets {
        let base = BaseUrl::parse(split_url(&target.url).0);
        let base = base.map_err(|e| Failure::Usage(format!("targets.{service}.url: {e}")))?;
        bases.insert(service.clone(), base);
    }
    let limits = Limits {
        connect: config.connect,
        timeout: config.timeout,
        ..Limits::default()
    };
    let client = config.settings.reach.client(limits, &bases);
    for (service, target) in &config.settings.targets {
        look_at_target(service, target, &bases[service], &client, &mut looks);
    }
    look_at_hooks(&config, &rulebook, &client, &mut looks);
    looks.push(callbacks::look(&config, &client));
    let left_out = left_out(&config, &rulebook);
    let redactor = Redactor::new(&config.secrets);
    let text = match args.format {
        ListFormat::Text => as_text(&looks, &left_out),
        ListFormat::Json => as_json(&looks, &left_out),
    };
    say(&redactor.redact(&text));
    let is_well = looks.iter().all(|look| look.is_well);
    Ok(if is_well {
        Exit::Conformant
    } else {
        Exit::Trouble
    })
}

/// A request of each service that changes nothing.
fn probe(service: &str) -> String {
    match service {
        "flow" => "/v1/Flows".to_owned(),
        "chat" => "/v2/Services".to_owned(),
        "media" => {
            let zeros = "0".repeat(32);
            format!("/v1/Services/IS{zeros}/Media/ME{zeros}")
        }
        // The authentication service.
        _ => "/protected/json/registrations/status?custom_user_id=conformant-doctor".to_owned(),
    }
}

fn look_at_target(
    service: &str,
    target: &Target,
    base: &BaseUrl,
    client: &Client,
    looks: &mut Vec<Look>,
) {
    let mut push = |what: &str, is_well, says: String| {
        looks.push(Look {
            what: format!("{service}: {what}"),
            is_well,
            says,
        });
    };
    let path = format!("{}{}", split_url(&target.url).1, probe(service));
    let send = |credentials| {
        let mut asked = Request::new("GET", path.clone());
        request::authorize(target, credentials, &mut asked).map_err(|e| e.to_string())?;
        let answer = client.send(base, &asked, client.limits().timeout);
        answer.map_err(|fault| fault.to_string())
    };
    let answer = match send(Credentials::Default) {
        Ok(answer) => answer,
        Err(why) => return push("reachable", false, why),
    };
    let tls = if base.origin().is_tls() {
        ", TLS with a certificate that is believed"
    } else {
        ""
    };
    push("reachable", true, format!("{}{tls}", target.url));
    let refused = |answer: &Response| matches!(answer.status, 401 | 403);
    let said = format!("GET {path} answered {}", answer.status);
    if !target.has_credentials() {
        push(
            "credentials",
            !refused(&answer),
            format!("none are configured; {said}"),
        );
    } else if refused(&answer) {
        push("credentials", false, format!("refused: {said}"));
    } else {
        let without = send(Credentials::None).is_ok_and(|without| refused(&without));
        let needed = if without {
            "refused without them"
        } else {
            "not needed for that request"
        };
        push("credentials", true, format!("accepted: {said}, {needed}"));
    }
    if let Some(off) = seconds_off(&answer) {
        let is_near = off.abs() <= CLOCK_OFF_SECONDS_MAX;
        push("clock", is_near, format!("{off:+} s from ours"));
    }
    push("rate limit", true, rate_limit(&answer));
}

/// How far the target's clock is ahead, by the date of its answer.
fn seconds_off(answer: &Response) -> Option<i64> {
    let date = answer.headers.get("Date")?;
    let there = jiff::fmt::rfc2822::parse(date).ok()?;
    Some(there.timestamp().as_second() - clock::now().as_second())
}

fn rate_limit(answer: &Response) -> String {
    let told: Vec<String> = answer
        .headers
        .iter()
        .filter(|(name, _)| {
            let name = name.to_ascii_lowercase();
            name.contains("ratelimit") || name.contains("rate-limit") || name == "retry-after"
        })
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    match (answer.status, told.is_empty()) {
        (429 | 503, _) => format!(
            "reached already (status {}); a run waits as told",
            answer.status
        ),
        (_, false) => crate::text::escape_line(&told.join(", ")).to_string(),
        (_, true) => "the answer tells of none; `limits.rate` sets one".to_owned(),
    }
}

fn look_at_hooks(config: &Config, rulebook: &Rulebook, client: &Client, looks: &mut Vec<Look>) {
    let unlocked = unlocked::by_hook(rulebook);
    for known in HOOKS {
        let Some(hook) = config.settings.hooks.get(known.name) else {
            continue;
        };
        let count = unlocked.get(known.name).map_or(0, Vec::len);
        let (is_well, says) = match (known.name, answers(hook, client)) {
            ("advance_clock", Ok(_)) => match ask(hook, &json!({"seconds": 0}), client) {
                Ok(answer) => (
                    true,
                    format!("it is {}", answer.get("now").unwrap_or(&Value::Null)),
                ),
                Err(why) => (false, why.to_string()),
            },
            (_, Ok(says)) => (true, says),
            (_, Err(why)) => (false, why),
        };
        looks.push(Look {
            what: format!("hook {}", known.name),
            is_well,
            says: format!("{says}; needed by {count} must-rules"),
        });
    }
}

/// Whether somebody is there to carry it out.
fn answers(hook: &Hook, client: &Client) -> Result<String, String> {
    match &hook.way {
        HookWay::Command(words) => {
            let program = words.first().map_or("", String::as_str);
            let paths = config::environment("PATH").unwrap_or_default();
            let mut places = std::env::split_paths(&paths).map(|folder| folder.join(program));
            let is_there = if program.contains('/') {
                std::path::Path::new(program).is_file()
            } else {
                places.any(|place| place.is_file())
            };
            if is_there {
                Ok(format!("{program} is there"))
            } else {
                Err(format!("there is no program {program}"))
            }
        }
        HookWay::Http { url, .. } => {
            let (origin, _) = split_url(url);
            let base = BaseUrl::parse(origin).map_err(|e| format!("{origin}: {e}"))?;
            // Any answer will do: who answers here is asked for nothing.
            let asked = Request::new("OPTIONS", "/");
            let answer = client.send(&base, &asked, client.limits().timeout);
            answer.map_err(|fault| fault.to_string())?;
            Ok(format!("{origin} answers"))
        }
    }
}

/// What would not be judged, each with the reason.
fn left_out(config: &Config, rulebook: &Rulebook) -> Vec<(String, Vec<String>)> {
    let mut left_out = Vec::new();
    for service in SERVICES {
        if !config.settings.targets.contains_key(service) {
            let own = format!("{service}/");
            let rules = rulebook.rules.keys().filter(|id| id.starts_with(&own));
            left_out.push((
                format!("targets.{service} is not configured"),
                rules.cloned().collect(),
            ));
        }
    }
    for (hook, rules) in unlocked::by_hook(rulebook) {
        if !config.settings.hooks.contains_key(&hook) {
            left_out.push((format!("hook {hook} is not configured"), rules));
        }
    }
    left_out
}

fn as_text(looks: &[Look], left_out: &[(String, Vec<String>)]) -> String {
    let mut text = String::new();
    for look in looks {
        let mark = if look.is_well { "ok  " } else { "FAIL" };
        text.push_str(&format!("{mark} {}: {}\n", look.what, look.says));
    }
    if left_out.is_empty() {
        text.push_str("nothing that a run judges would be left out\n");
    }
    for (why, rules) in left_out {
        let first: Vec<&str> = rules.iter().take(3).map(String::as_str).collect();
        let more = if rules.len() > first.len() {
            ", …"
        } else {
            ""
        };
        text.push_str(&format!(
            "not judged: {} rules, {why} ({}{more})\n",
            rules.len(),
            first.join(", ")
        ));
    }
    text
}

fn as_json(looks: &[Look], left_out: &[(String, Vec<String>)]) -> String {
    let looks: Vec<Value> = looks
        .iter()
        .map(|look| json!({"what": look.what, "ok": look.is_well, "says": look.says}))
        .collect();
    let left_out: Vec<Value> = left_out
        .iter()
        .map(|(why, rules)| json!({"why": why, "rules": rules}))
        .collect();
    let whole = json!({"checks": looks, "not_judged": left_out});
    format!("{whole:#}\n")
}
