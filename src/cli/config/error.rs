//! What may be wrong with a configuration. Each is one line that names the key or the flag; all are told at once.

use super::addresses::AddressError;
use super::reach::ReachError;
use conformant_base::text::InvalidSize;
use conformant_engine::bearer::BearerError;
use conformant_net::transport::UrlError;
use std::net::AddrParseError;

/// Something of a configuration that is of no use; completes "failed to read the configuration: …".
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfigError {
    /// A target that is none of the services.
    #[error("targets.{name}: no such service; known are {known}")]
    Service {
        /// What stands there.
        name: String,
        /// The services that there are.
        known: String,
    },
    /// A target that is nowhere.
    #[error(
        "targets.{service}: no url; write it in conformant.yaml, set CONFORMANT_{upper}_URL or give --target {service}=URL",
        upper = .service.to_uppercase()
    )]
    NoUrl {
        /// Its service.
        service: String,
    },
    /// An address that is none.
    #[error("{at}: {url}: {source}")]
    Url {
        /// The key or the flag.
        at: String,
        /// What stands there.
        url: String,
        /// Why not.
        source: UrlError,
    },
    /// An address to bind that is none.
    #[error("callbacks.listen: {address}: {source}")]
    Listen {
        /// What stands there.
        address: String,
        /// Why not.
        source: AddrParseError,
    },
    /// A flag that names no address of a service.
    #[error(transparent)]
    Flag(#[from] AddressError),
    /// A way for all targets that leads nowhere.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// The same for one of them.
    #[error("targets.{service}.{source}")]
    ReachOf {
        /// Its service.
        service: String,
        /// Why not.
        source: ReachError,
    },
    /// A command that prints no token.
    #[error("targets.{service}.credentials.command: {source}")]
    Token {
        /// Whose command.
        service: String,
        /// Why not.
        source: BearerError,
    },
    /// Half of what HTTP Basic takes.
    #[error(
        "targets.{service}.username: a username without a password; set CONFORMANT_{upper}_PASSWORD or write ${{NAME}}",
        upper = .service.to_uppercase()
    )]
    NoPassword {
        /// Whose credentials.
        service: String,
    },
    /// The other half.
    #[error("targets.{service}.password: a password without a username")]
    NoUsername {
        /// Whose credentials.
        service: String,
    },
    /// A variable that is not set.
    #[error("{at}: the environment has no {name}")]
    Unset {
        /// The key that names it.
        at: String,
        /// Its name.
        name: String,
    },
    /// A secret where everyone reads it.
    #[error("{at}: a secret stands in the file; write ${{NAME}} and set NAME in the environment")]
    Secret {
        /// Its key.
        at: String,
    },
    /// No digits alone.
    #[error("people.{key}: `{value}` is no calling code; write digits alone")]
    CallingCode {
        /// Its key.
        key: &'static str,
        /// What stands there.
        value: String,
    },
    /// A hook that no scenario calls.
    #[error("hooks.{name}: no such hook{help} (`conformant list hooks`)", help = help(.near.as_deref()))]
    Hook {
        /// What it is called.
        name: String,
        /// One that is called much the same.
        near: Option<String>,
    },
    /// A hook with no way to carry it out, or with two.
    #[error("hooks.{name}: give either `command: [program, …]` or `http: {{url}}`")]
    HookTransport {
        /// Its name.
        name: String,
    },
    /// A place of a result that is none.
    #[error("hooks.{name}.result: `{pointer}` is no JSON Pointer; write /data/sid")]
    Pointer {
        /// The hook's name.
        name: String,
        /// What stands there.
        pointer: String,
    },
    /// No duration.
    #[error("{at}: `{text}` is no duration; write 500ms, 10s or 5m")]
    Duration {
        /// Its key.
        at: &'static str,
        /// What stands there.
        text: String,
    },
    /// No size.
    #[error("limits.body: `{text}` is {source}")]
    Size {
        /// What stands there.
        text: String,
        /// Why not.
        source: InvalidSize,
    },
    /// No rate.
    #[error("limits.rate: `{0}` is no rate; write 50/s")]
    Rate(String),
}

fn help(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("; did you mean {name}?"))
}
