//! Whether callbacks can come in: from here to the address that targets are told, and from the target.

use super::Look;
use crate::cli::config::Config;
use crate::engine::sessions::ask;
use crate::engine::split_url;
use crate::http::Request;
use crate::transport::{BaseUrl, Client, Listener, Listening};
use serde_json::json;

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
        Err(why) => (false, why),
    };
    Look {
        what: "callback address".to_owned(),
        is_well,
        says,
    }
}

fn listener(config: &Config) -> Result<Listener, String> {
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
    Listener::start(&listening).map_err(|why| format!("failed to listen: {why}"))
}

fn from_here(listener: &Listener, client: &Client) -> Result<(), String> {
    const NAME: &str = "from-here";
    let address = listener.open(NAME, Vec::new());
    let (origin, path) = split_url(&address);
    let unreached = |why: String| format!("{origin} cannot be reached even from here: {why}");
    let base = BaseUrl::parse(origin).map_err(|e| unreached(e.to_string()))?;
    let asked = Request::new("POST", path);
    let answer = client.send(&base, &asked, client.limits().timeout);
    let answer = answer.map_err(|fault| unreached(fault.to_string()))?;
    match listener.sink().callbacks(NAME).len() {
        0 => Err(format!("{origin} answers {} and is not us", answer.status)),
        _ => Ok(()),
    }
}

fn from_target(listener: &Listener, config: &Config, client: &Client) -> Result<String, String> {
    const NAME: &str = "from-target";
    let address = listener.open(NAME, Vec::new());
    let (origin, _) = split_url(&address);
    let Some(hook) = config.settings.hooks.get(CALL_BACK) else {
        return Ok(format!(
            "{origin} leads to us from here; the hook `{CALL_BACK}` would show whether it does from the target"
        ));
    };
    let within = config.settings.callback_max;
    ask(hook, &json!({"url": address}), client)
        .map_err(|why| format!("hook {CALL_BACK}: {why}"))?;
    match listener.sink().wait(NAME, 1, within) {
        0 => Err(format!(
            "{origin} leads to us from here, and not from the target: nothing came within {within:?}; \
             `callbacks.public_url` says how it reaches us"
        )),
        _ => Ok(format!(
            "{origin} leads to us, from here and from the target"
        )),
    }
}
