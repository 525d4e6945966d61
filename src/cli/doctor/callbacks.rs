//! Checks whether callbacks reach the receiver, from this machine and from the target.

use super::Check;
use super::hooks::absent_todo;
use crate::cli::config::Config;
use conformant_base::http::Request;
use conformant_engine::session::HookFault;
use conformant_engine::sessions::ask;
use conformant_engine::{plan, split_url};
use conformant_net::transport::{
    BaseUrl, Client, Fault, ListenError, Listener, ServerSettings, UrlError,
};
use conformant_rulebook::Rulebook;
use conformant_rulebook::step::Verb;
use serde_json::json;
use std::time::Duration;

/// The hook that makes the target send a callback.
pub(super) const CALL_BACK: &str = "call_back";

/// Opens the callback receiver as a run would, and sends it callbacks. A target that does not answer sends none.
pub(super) fn check(config: &Config, client: &Client, is_answering: bool) -> Check {
    let result = listener(config).and_then(|listener| {
        from_here(&listener, client)?;
        match is_answering {
            true => from_target(&listener, config, client),
            false => Err(CallbackError::Silent),
        }
    });
    let what = "callback address".to_owned();
    match result {
        Ok(says) => Check::ok(what, says),
        Err(CallbackError::Hook(HookFault::Unsupported)) => {
            let says = "reachable from here; from the target unknown: hook call_back reports that it is not supported";
            Check::untried(what, says.to_owned(), None)
        }
        Err(error @ CallbackError::Silent) => Check::untried(what, error.to_string(), None),
        Err(error) => {
            let hook = config.settings.hooks.get(CALL_BACK);
            let absent = if let CallbackError::Hook(fault) = &error {
                hook.and_then(|hook| absent_todo(hook, CALL_BACK, fault))
            } else {
                None
            };
            let todo = absent.unwrap_or_else(|| error.todo().to_owned());
            Check::failed(what, error.to_string(), todo)
        }
    }
}

/// Whether callbacks are configured, or scenarios of the configured services wait for some.
pub(super) fn is_needed(config: &Config, rulebook: &Rulebook) -> bool {
    let settings = &config.settings;
    let is_configured = settings.listen.is_some()
        || settings.public_url.is_some()
        || settings.hooks.contains_key(CALL_BACK);
    let is_targeted = |name: &str| settings.targets.contains_key(name);
    is_configured
        || plan::all(rulebook).iter().any(|planned| {
            is_targeted(&planned.service.name)
                && planned.any_step(&|step| matches!(step.verb, Verb::Await(_)))
        })
}

/// Why callbacks do not arrive, as far as known.
#[derive(Debug, thiserror::Error)]
enum CallbackError {
    #[error("failed to listen: {0}")]
    Listen(#[from] ListenError),
    #[error("{origin} cannot be reached even from here: {source}")]
    NoAddress { origin: String, source: UrlError },
    #[error("{origin} cannot be reached even from here: {source}")]
    Unreached { origin: String, source: Fault },
    #[error("{origin} answers {status}, so it leads to another server")]
    Stranger { origin: String, status: u16 },
    #[error("reachable from here; not tried from the target, because no service answers")]
    Silent,
    #[error("hook {CALL_BACK}: {0}")]
    Hook(#[from] HookFault),
    #[error(
        "hook {CALL_BACK} answered, but no callback arrived within {within:?}: the hook may not have asked the target, \
         or the target does not reach {origin} (reachable from here)"
    )]
    Unheard { origin: String, within: Duration },
}

impl CallbackError {
    fn todo(&self) -> &'static str {
        match self {
            Self::Listen(error) if error.is_in_use() => {
                "set `callbacks.listen` to another port, or stop the program that uses this one"
            }
            Self::Listen(_) => "set `callbacks.listen` to an address of this machine",
            Self::NoAddress { .. } | Self::Unreached { .. } | Self::Stranger { .. } => {
                "correct `callbacks.public_url`: it has to lead to `callbacks.listen`"
            }
            Self::Silent => "start the service",
            Self::Hook(_) => {
                "repair the hook call_back; `conformant explain call_back` describes it"
            }
            Self::Unheard { .. } => {
                "check that the hook call_back lets the target send a request to its argument `url`; if it does, set \
                 `callbacks.public_url` to an address that the target reaches, and open the firewall for it"
            }
        }
    }
}

fn listener(config: &Config) -> Result<Listener, CallbackError> {
    let settings = &config.settings;
    let listen = settings.listen.as_ref();
    let public = settings.public_url.as_deref();
    let usual = ServerSettings::default();
    let listening = ServerSettings {
        listen: listen
            .and_then(|address| address.parse().ok())
            .unwrap_or(usual.listen),
        public_url: public.and_then(|url| BaseUrl::parse(url).ok()),
        ..usual
    };
    Ok(Listener::start(&listening)?)
}

fn from_here(listener: &Listener, client: &Client) -> Result<(), CallbackError> {
    const NAME: &str = "from-here";
    let address = listener.open(NAME, Vec::new());
    let (origin, path) = split_url(&address);
    let base = BaseUrl::parse(origin).map_err(|source| CallbackError::NoAddress {
        origin: origin.to_owned(),
        source,
    })?;
    let asked = Request::new("POST", path);
    let answer = client.send(&base, &asked, client.limits().timeout);
    let answer = answer.map_err(|source| CallbackError::Unreached {
        origin: origin.to_owned(),
        source,
    })?;
    match listener.sink().callbacks(NAME).len() {
        0 => Err(CallbackError::Stranger {
            origin: origin.to_owned(),
            status: answer.status,
        }),
        _ => Ok(()),
    }
}

fn from_target(
    listener: &Listener,
    config: &Config,
    client: &Client,
) -> Result<String, CallbackError> {
    const NAME: &str = "from-target";
    let address = listener.open(NAME, Vec::new());
    let (origin, _) = split_url(&address);
    let Some(hook) = config.settings.hooks.get(CALL_BACK) else {
        return Ok(format!(
            "{origin} is reachable from here; configure the hook `{CALL_BACK}` to check it from the target"
        ));
    };
    let within = config.settings.callback_max;
    ask(hook, &json!({"url": address}), client)?;
    match listener.sink().wait(NAME, 1, within) {
        0 => Err(CallbackError::Unheard {
            origin: origin.to_owned(),
            within,
        }),
        _ => Ok(format!(
            "{origin} is reachable from here and from the target"
        )),
    }
}
