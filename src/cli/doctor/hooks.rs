//! Checks whether each configured hook exists and is supported.

use super::Check;
use crate::cli::config::{Config, environment};
use conformant_base::http::Request;
use conformant_engine::session::HookFault;
use conformant_engine::sessions::ask;
use conformant_engine::settings::{Hook, HookTransport};
use conformant_engine::split_url;
use conformant_net::transport::{BaseUrl, Client, Fault, UrlError};
use conformant_rulebook::{Rulebook, hook_rules};
use serde_json::{Value, json};

/// The hook that moves the target's clock.
const ADVANCE_CLOCK: &str = "advance_clock";

/// Checks the configured hooks; returns those that the target does not support.
pub(super) fn check(
    config: &Config,
    rulebook: &Rulebook,
    client: &Client,
    checks: &mut Vec<Check>,
) -> Vec<String> {
    let mut unsupported = Vec::new();
    let hook_rules = hook_rules::rules_by_hook(rulebook);
    for known in rulebook.index.hooks() {
        let Some(hook) = config.settings.hooks.get(&known.name) else {
            continue;
        };
        if is_unsupported(hook, known, client) {
            unsupported.push(known.name.clone());
            continue;
        }
        let count = hook_rules.get(&known.name).map_or(0, Vec::len);
        let (is_ok, says) = match (known.name.as_str(), answers(hook, client)) {
            (ADVANCE_CLOCK, Ok(_)) => match ask(hook, &json!({"seconds": 0}), client) {
                Ok(answer) => (
                    true,
                    format!("it is {}", answer.get("now").unwrap_or(&Value::Null)),
                ),
                Err(why) => (false, why.to_string()),
            },
            (_, Ok(says)) => (true, says),
            (_, Err(error)) => (false, error.to_string()),
        };
        checks.push(Check {
            what: format!("hook {}", known.name),
            is_ok,
            says: format!("{says}; needed by {count} must-rules"),
        });
    }
    if !config.settings.hooks.contains_key(ADVANCE_CLOCK) {
        checks.push(Check {
            what: format!("hook {ADVANCE_CLOCK}"),
            is_ok: true,
            says: "not configured, so a run waits in real time; with it a run of all services took 15 s instead of 90 s"
                .to_owned(),
        });
    }
    unsupported
}

/// Whether a hook reports that the target does not support it. Only HTTP hooks that need an argument are called,
/// without any, which changes nothing.
fn is_unsupported(hook: &Hook, known: &conformant_rulebook::hooks::Hook, client: &Client) -> bool {
    let is_http = matches!(hook.transport, HookTransport::Http { .. });
    let is_harmless = is_http && !known.required.is_empty() && known.name != ADVANCE_CLOCK;
    is_harmless && ask(hook, &json!({}), client) == Err(HookFault::Unsupported)
}

/// Why a hook is missing.
#[derive(Debug, thiserror::Error)]
enum AbsentHook {
    /// The program of its command is missing.
    #[error("program {0} not found")]
    Program(String),
    /// Its address is invalid.
    #[error("{origin}: {source}")]
    Address { origin: String, source: UrlError },
    /// Its address does not respond.
    #[error(transparent)]
    Silent(#[from] Fault),
}

/// Checks whether the hook exists.
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
