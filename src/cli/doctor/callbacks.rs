//! Whether callbacks can come in: from here to the address that targets are told, and from the target.

use super::Look;
use crate::cli::config::Config;
use conformant_base::http::Request;
use conformant_engine::session::HookFault;
use conformant_engine::sessions::ask;
use conformant_engine::split_url;
use conformant_net::transport::{
    BaseUrl, Client, Fault, ListenError, Listener, Listening, UrlError,
};
use serde_json::json;
use std::time::Duration;

/// The hook by which the target calls.
const CALL_BACK: &str = "call_back";

/// Opens the receiver of callbacks as a run would, and has it called.
pub(super) fn look(config: &Config, client: &Client) -> Look {
    let said = listener(config).and_then(|listener| {
        from_here(&listener, client)?;
        from_target(&listener, config, client)
    });
    let (is_well, says) = match said {
        Ok(says) => (true, says),
        Err(error) => (false, error.to_string()),
    };
    Look {
        what: "callback address".to_owned(),
        is_well,
        says,
    }
}

/// Why callbacks do not come in, as far as can be seen.
#[derive(Debug, thiserror::Error)]
enum CallbackError {
    /// Nothing can be listened on.
    #[error("failed to listen: {0}")]
    Listen(#[from] ListenError),
    /// The address that targets are told is none.
    #[error("{origin} cannot be reached even from here: {source}")]
    NoAddress { origin: String, source: UrlError },
    /// It does not answer us.
    #[error("{origin} cannot be reached even from here: {source}")]
    Unreached { origin: String, source: Fault },
    /// Somebody else answers.
    #[error("{origin} answers {status} and is not us")]
    Stranger { origin: String, status: u16 },
    /// The target was not brought to call.
    #[error("hook {CALL_BACK}: {0}")]
    Hook(#[from] HookFault),
    /// It called, and we heard nothing.
    #[error(
        "{origin} leads to us from here, and not from the target: nothing came within {within:?}; \
         `callbacks.public_url` says how it reaches us"
    )]
    Unheard { origin: String, within: Duration },
}

fn listener(config: &Config) -> Result<Listener, CallbackError> {
    let settings = &config.settings;
    let listen = settings.listen.as_ref();
    let public = settings.public_url.as_deref();
    let usual = Listening::default();
    let listening = Listening {
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
            "{origin} leads to us from here; the hook `{CALL_BACK}` would show whether it does from the target"
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
            "{origin} leads to us, from here and from the target"
        )),
    }
}
