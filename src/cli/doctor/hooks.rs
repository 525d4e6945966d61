//! Checks the configured hooks. A hook is ok only if a call succeeded and showed an effect or a result; a stub is not.
//!
//! - `advance_clock` is called by zero seconds, with `--probe` also by five seconds, which its time has to show.
//! - Other hooks are called with `--probe` only, by a call that they declare harmless.
//! - HTTP hooks that need arguments are called without any, to see whether they are supported.

use super::callbacks::CALL_BACK;
use super::{ADVANCE_CLOCK, Check, Diagnosis, rules_by_hook};
use crate::cli::config::{Config, environment};
use crate::cli::invocation::invocation;
use conformant_base::clock::{self, Timestamp};
use conformant_base::http::Request;
use conformant_base::text;
use conformant_engine::session::HookFault;
use conformant_engine::sessions::ask;
use conformant_engine::settings::{Hook, HookTransport};
use conformant_engine::split_url;
use conformant_net::transport::{BaseUrl, Client, Fault, UrlError};
use conformant_rulebook::Rulebook;
use conformant_rulebook::hooks::Hook as KnownHook;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What is known of a hook.
enum State {
    /// A call succeeded, with this result.
    Works(String),
    /// It was found, but was not called: the reason, and whether `--probe` would call it.
    Untried(String, bool),
    /// A call was answered, which shows nothing of its effect: what was seen, and what to do about it.
    Answered(String, Option<&'static str>),
    /// It reports that the target does not support it.
    Unsupported,
    /// It is missing, or its call failed.
    Fails(String),
    /// Its call failed because its address is wrong or nothing implements it: the error, and what to do.
    Absent(String, String),
}

/// Checks the configured hooks; returns those that the target does not support.
pub(super) fn check(
    config: &Config,
    rulebook: &Rulebook,
    client: &Client,
    is_probed: bool,
    diagnosis: &mut Diagnosis,
) -> Vec<String> {
    let mut unsupported = Vec::new();
    let silent = silent_origins(config, client);
    for (origin, (error, hooks)) in &silent {
        let says = format!("{error}; {} have this address", text::count(*hooks, "hook"));
        let todo = format!(
            "start what answers hooks at {origin}, or correct its address (--hooks, `hooks` in conformant.yaml)"
        );
        diagnosis.push(Check::failed("hooks".to_owned(), says, todo));
    }
    let by_hook = rules_by_hook(config, rulebook);
    for known in rulebook.index.hooks().filter(|hook| hook.name != CALL_BACK) {
        let name = &known.name;
        let Some(hook) = config.settings.hooks.get(name) else {
            continue;
        };
        if origin_of(hook).is_some_and(|origin| silent.contains_key(origin)) {
            continue;
        }
        let given = config.probes.get(name).or(known.probe.as_ref());
        let count = by_hook.get(name).map_or(0, Vec::len);
        let needed = match count {
            0 => String::new(),
            _ => format!("; needed by {}", text::count(count, "must-rule")),
        };
        let what = format!("hook {name}");
        let state = state(hook, known, given, client, is_probed);
        if count == 0 && matches!(state, State::Untried(..)) {
            // Nothing that is configured needs it.
            continue;
        }
        diagnosis.push(match state {
            State::Works(result) => Check::ok(what, format!("{result}{needed}")),
            State::Untried(why, is_probeable) => {
                let command = invocation();
                let todo = Some(match is_probeable {
                    true => format!("try the hooks by harmless calls: {command} --probe"),
                    false => "make sure that the hooks that were not called are implemented (those of `init` are stubs); with \
                              a harmless call of each (hooks.NAME.probe), --probe tries them"
                        .to_owned(),
                });
                let says = format!("{why}{needed}");
                Check {
                    rules: count,
                    ..Check::untried(what, says, todo)
                }
            }
            State::Answered(why, todo) => {
                let todo = todo.map(|todo| format!("let the hook {name} {todo}"));
                let says = format!("{why}{needed}");
                Check {
                    rules: count,
                    ..Check::untried(what, says, todo)
                }
            }
            State::Unsupported => {
                unsupported.push(name.clone());
                let says = format!("reports that it is not supported{needed}");
                Check::untried(what, says, None)
            }
            State::Fails(why) => {
                let todo =
                    format!("repair the hook {name}; `conformant explain {name}` describes it");
                Check::failed(what, format!("{why}{needed}"), todo)
            }
            State::Absent(why, todo) => Check::failed(what, format!("{why}{needed}"), todo),
        });
    }
    unsupported
}

/// Addresses of several hooks at which nothing answers, each with the error and the number of its hooks.
fn silent_origins(config: &Config, client: &Client) -> BTreeMap<String, (String, usize)> {
    let mut counts: BTreeMap<&str, (&Hook, usize)> = BTreeMap::new();
    for hook in config.settings.hooks.values() {
        if let Some(origin) = origin_of(hook) {
            counts.entry(origin).or_insert((hook, 0)).1 += 1;
        }
    }
    let several = counts.into_iter().filter(|(_, (_, count))| *count > 1);
    let silent = several.filter_map(|(origin, (hook, count))| {
        let error = answers(hook, client).err()?;
        Some((origin.to_owned(), (error.to_string(), count)))
    });
    silent.collect()
}

fn origin_of(hook: &Hook) -> Option<&str> {
    match &hook.transport {
        HookTransport::Http { url, .. } => Some(split_url(url).0),
        HookTransport::Command(_) => None,
    }
}

fn state(
    hook: &Hook,
    known: &KnownHook,
    probe: Option<&Map<String, Value>>,
    client: &Client,
    is_probed: bool,
) -> State {
    let there = match answers(hook, client) {
        Ok(there) => there,
        Err(error) => return State::Fails(error.to_string()),
    };
    let is_called = is_probed || known.name == ADVANCE_CLOCK;
    if let Some(arguments) = probe.filter(|_| is_called) {
        let state = called(hook, known, arguments, client);
        let is_moved = is_probed && known.name == ADVANCE_CLOCK;
        return match is_moved && matches!(state, State::Works(_)) {
            true => advanced(hook, client),
            false => state,
        };
    }
    // Without any arguments an HTTP hook that needs some changes nothing.
    let is_http = matches!(hook.transport, HookTransport::Http { .. });
    let mut there = there;
    if is_http && !known.required.is_empty() {
        const SERVER_ERROR: &str = "status 5";
        match ask(hook, &json!({}), client) {
            Err(HookFault::Unsupported) => return State::Unsupported,
            Err(fault @ HookFault::NoResult { .. }) => {
                return State::Fails(format!("called without arguments: {fault}"));
            }
            // Not necessarily a defect, because it needs its arguments.
            Err(HookFault::Failed(why)) if why.starts_with(SERVER_ERROR) => {
                there = format!("answered a call without arguments with {why}");
            }
            Ok(_) | Err(HookFault::Failed(_)) => {}
        }
    }
    match probe {
        Some(_) => State::Untried(format!("{there}, not called; add --probe"), true),
        None => {
            let why = format!(
                "{there}, not called, because no harmless call is declared (hooks.{}.probe)",
                known.name
            );
            State::Untried(why, false)
        }
    }
}

/// Calls a hook and checks the members of its result.
fn called(
    hook: &Hook,
    known: &KnownHook,
    arguments: &Map<String, Value>,
    client: &Client,
) -> State {
    let arguments = Value::Object(arguments.clone());
    match ask(hook, &arguments, client) {
        Ok(result) => {
            let mut members = known.result.iter();
            match members.find(|member| result.get(member.as_str()).is_none()) {
                Some(member) => State::Fails(format!(
                    "called with {arguments}: expected `{member}` in its result, got {}",
                    text::excerpt(&result.to_string(), EXCERPT_BYTES_MAX)
                )),
                None if known.name == ADVANCE_CLOCK => match result.get("now") {
                    Some(now) => State::Works(format!("it is {now}")),
                    None => State::Answered(
                        "answered; its effect was not checked, because its result has no `now`"
                            .to_owned(),
                        Some(
                            "return `now`, the time of the target afterwards, which shows its effect",
                        ),
                    ),
                },
                None if known.result.is_empty() => State::Answered(
                    format!("called with {arguments} and answered; its effect was not checked"),
                    None,
                ),
                None => State::Works(format!("called with {arguments}")),
            }
        }
        Err(HookFault::Unsupported) => State::Unsupported,
        Err(fault) => {
            let why = format!("called with {arguments}: {fault}");
            match absent_todo(hook, &known.name, &fault) {
                Some(todo) => State::Absent(why, todo),
                None => State::Fails(why),
            }
        }
    }
}

/// What to do about a hook whose address answers with status 404, the same for all hooks at this address.
pub(super) fn absent_todo(hook: &Hook, name: &str, fault: &HookFault) -> Option<String> {
    const NOT_FOUND: &str = "status 404";
    match (&hook.transport, fault) {
        (HookTransport::Http { url, .. }, HookFault::Failed(why)) if why.starts_with(NOT_FOUND) => {
            let address = url.strip_suffix(name)?;
            Some(format!(
                "correct the address of the hooks, {address} (--hooks, `hooks` in conformant.yaml), or implement the hooks \
                 that it answers with {NOT_FOUND}"
            ))
        }
        _ => None,
    }
}

/// Moves the clock by a few seconds, which its time has to show. One second could be that of a clock in whole seconds.
fn advanced(hook: &Hook, client: &Client) -> State {
    const BY_SECONDS: i64 = 5;
    let read = |seconds: i64| -> Result<Timestamp, String> {
        let result = ask(hook, &json!({"seconds": seconds}), client).map_err(|e| e.to_string())?;
        let now = result.get("now").unwrap_or(&Value::Null);
        let time = now.as_str().and_then(|text| text.parse().ok());
        time.ok_or_else(|| format!("expected a time as `now` in its result, got {now}"))
    };
    let began = clock::monotonic();
    let moved = read(0).and_then(|before| Ok((before, read(BY_SECONDS)?)));
    // The time that passes meanwhile shows no effect.
    let passed = i64::try_from(began.elapsed().as_secs()).unwrap_or_default();
    match moved {
        Err(why) => State::Fails(why),
        Ok((before, after)) => {
            let shown = after.duration_since(before).as_secs();
            match shown >= BY_SECONDS && shown > passed + 1 {
                true => State::Works(format!(
                    "moved the clock by {BY_SECONDS} s; it is \"{after}\""
                )),
                false => State::Fails(format!(
                    "did not move the clock: `now` in its result was {before}, and {after} after a call with {BY_SECONDS} seconds"
                )),
            }
        }
    }
}

/// Bytes of a result that are shown.
const EXCERPT_BYTES_MAX: usize = 200;

/// Why a hook is missing.
#[derive(Debug, thiserror::Error)]
enum AbsentHook {
    #[error("program {0} not found")]
    Program(String),
    #[error("{origin}: {source}")]
    Address { origin: String, source: UrlError },
    #[error(transparent)]
    Silent(#[from] Fault),
}

fn answers(hook: &Hook, client: &Client) -> Result<String, AbsentHook> {
    match &hook.transport {
        HookTransport::Command(words) => {
            let program = words.first().map_or("", String::as_str);
            let paths = environment("PATH").unwrap_or_default();
            let mut places = std::env::split_paths(&paths).map(|folder| folder.join(program));
            let is_there = if program.contains('/') {
                std::path::Path::new(program).is_file()
            } else {
                places.any(|place| place.is_file())
            };
            if is_there {
                Ok(format!("{program} found"))
            } else {
                Err(AbsentHook::Program(program.to_owned()))
            }
        }
        HookTransport::Http { url, .. } => {
            let (origin, _) = split_url(url);
            let base = BaseUrl::parse(origin).map_err(|source| AbsentHook::Address {
                origin: origin.to_owned(),
                source,
            })?;
            // Any response suffices, because the request has no effect.
            let asked = Request::new("OPTIONS", "/");
            client.send(&base, &asked, client.limits().timeout)?;
            Ok(format!("{origin} answers"))
        }
    }
}
