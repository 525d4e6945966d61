//! Whether somebody is there to carry out each configured hook; only the one that tells the time is carried out.

use super::Look;
use crate::cli::config::{Config, environment};
use conformant_base::http::Request;
use conformant_engine::sessions::ask;
use conformant_engine::settings::{Hook, HookWay};
use conformant_engine::split_url;
use conformant_net::transport::{BaseUrl, Client, Fault, UrlError};
use conformant_rulebook::{Rulebook, unlocked};
use serde_json::{Value, json};

pub(super) fn look(config: &Config, rulebook: &Rulebook, client: &Client, looks: &mut Vec<Look>) {
    let unlocked = unlocked::by_hook(rulebook);
    for known in rulebook.index.hooks() {
        let Some(hook) = config.settings.hooks.get(&known.name) else {
            continue;
        };
        let count = unlocked.get(&known.name).map_or(0, Vec::len);
        let (is_well, says) = match (known.name.as_str(), answers(hook, client)) {
            ("advance_clock", Ok(_)) => match ask(hook, &json!({"seconds": 0}), client) {
                Ok(answer) => (
                    true,
                    format!("it is {}", answer.get("now").unwrap_or(&Value::Null)),
                ),
                Err(why) => (false, why.to_string()),
            },
            (_, Ok(says)) => (true, says),
            (_, Err(error)) => (false, error.to_string()),
        };
        looks.push(Look {
            what: format!("hook {}", known.name),
            is_well,
            says: format!("{says}; needed by {count} must-rules"),
        });
    }
}

/// Why nobody would carry a hook out.
#[derive(Debug, thiserror::Error)]
enum AbsentHook {
    /// Its command begins with a program that is nowhere.
    #[error("there is no program {0}")]
    Program(String),
    /// Its address is none.
    #[error("{origin}: {source}")]
    Address { origin: String, source: UrlError },
    /// Nobody answers there.
    #[error(transparent)]
    Silent(#[from] Fault),
}

/// Whether somebody is there to carry it out.
fn answers(hook: &Hook, client: &Client) -> Result<String, AbsentHook> {
    match &hook.way {
        HookWay::Command(words) => {
            let program = words.first().map_or("", String::as_str);
            let paths = environment("PATH").unwrap_or_default();
            let mut places = std::env::split_paths(&paths).map(|folder| folder.join(program));
            let is_there = if program.contains('/') {
                std::path::Path::new(program).is_file()
            } else {
                places.any(|place| place.is_file())
            };
            if is_there {
                Ok(format!("{program} is there"))
            } else {
                Err(AbsentHook::Program(program.to_owned()))
            }
        }
        HookWay::Http { url, .. } => {
            let (origin, _) = split_url(url);
            let base = BaseUrl::parse(origin).map_err(|source| AbsentHook::Address {
                origin: origin.to_owned(),
                source,
            })?;
            // Any answer will do: who answers here is asked for nothing.
            let asked = Request::new("OPTIONS", "/");
            client.send(&base, &asked, client.limits().timeout)?;
            Ok(format!("{origin} answers"))
        }
    }
}
