//! Errors in a configuration. Each is one line that names the key or the flag; all of them are reported at once.

use super::addresses::AddressError;
use super::reach::ReachError;
use conformant_base::size::InvalidSize;
use conformant_engine::bearer::BearerError;
use conformant_net::transport::UrlError;
use conformant_rulebook::service::ServiceIndex;

/// An error in a configuration; completes "failed to read the configuration: …".
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfigError {
    #[error("targets.{name}: no such service; known are {known}")]
    Service { name: String, known: String },
    #[error(
        "targets.all: only a flag names all services at once: give --target all=URL, or write each service that you have, such as \
         {first}: {{ url: URL/{first} }}"
    )]
    AllServices { first: String },
    #[error(
        "targets.{service}: no url; write it in conformant.yaml, set CONFORMANT_{upper}_URL or give --target {service}=URL",
        upper = .service.to_uppercase()
    )]
    NoUrl { service: String },
    #[error(
        "{at}: {}: {source}{}{}",
        without_query(url),
        credentials_for(at, source),
        scheme_for(url)
    )]
    Url {
        at: String,
        url: String,
        source: UrlError,
    },
    #[error(
        "callbacks.listen: invalid address `{address}`: expected ADDRESS:PORT, such as 127.0.0.1:8080 (port 0: any free one)"
    )]
    Listen { address: String },
    #[error(transparent)]
    Flag(#[from] AddressError),
    #[error(transparent)]
    Reach(#[from] ReachError),
    #[error("targets.{service}.{source}")]
    ReachOf { service: String, source: ReachError },
    #[error("targets.{service}.credentials.command: {source}")]
    Token {
        service: String,
        source: BearerError,
    },
    #[error(
        "targets.{service}.username: a username without a password; set CONFORMANT_{upper}_PASSWORD or write ${{NAME}}",
        upper = .service.to_uppercase()
    )]
    NoPassword { service: String },
    #[error("targets.{service}.password: a password without a username")]
    NoUsername { service: String },
    #[error("accounts.{service}: targets.{service} is not configured")]
    AccountOfNone { service: String },
    #[error(
        "accounts.{service}: incomplete credentials: expected `username` and `password`, `bearer`, or `headers`"
    )]
    AccountWithout { service: String },
    #[error(
        "accounts.{service}: these are the credentials of targets.{service}; name those of another account"
    )]
    SameAccount { service: String },
    // A field before a colon would be redacted with the rest: `Authorization: …`. The same below.
    #[error("the environment has no {name}, which {at} names")]
    Unset { at: String, name: String },
    #[error("`${{{name}` at {at} is not closed: write `${{{name}}}`")]
    Unclosed { at: String, name: String },
    #[error("{text} at {at} is empty; set it to the value that the service expects")]
    Empty { at: String, text: String },
    #[error(
        "{at}: invalid phone number `{value}`: expected E.164, such as `{example}` (in quotes)"
    )]
    Number {
        at: String,
        value: String,
        example: String,
    },
    #[error(
        "the file contains the secret itself at {at}; write `${{{variable}}}` and set {variable} in the environment"
    )]
    Secret { at: String, variable: String },
    #[error("people.{key}: invalid calling code `{value}`: expected digits, such as `44`")]
    CallingCode { key: &'static str, value: String },
    #[error("hooks.{name}: no such hook{help} (`conformant list hooks`)", help = help(.near.as_deref()))]
    Hook { name: String, near: Option<String> },
    #[error("hooks.{name}: give either `command: [program, …]` or `http: {{url}}`")]
    HookTransport { name: String },
    #[error(
        "hooks.{name}.result: invalid JSON Pointer `{pointer}`: expected a path such as `/data/sid`"
    )]
    Pointer { name: String, pointer: String },
    #[error(
        "{at}: invalid duration `{text}`: expected a number above zero and a unit, such as `500ms`, `10s` or `5m`{}",
        with_unit(text, "s")
    )]
    Duration { at: &'static str, text: String },
    #[error("limits.body: `{text}` is {source}")]
    Size { text: String, source: InvalidSize },
    #[error(
        "limits.rate: invalid rate `{text}`: expected requests per second, such as `50/s`{}",
        with_unit(text, "/s")
    )]
    Rate { text: String },
}

impl ConfigError {
    /// The key in the file whose value is wrong; `None` if that is not a key, or if one is missing.
    pub(super) fn key(&self) -> Option<String> {
        match self {
            Self::Url { at, .. }
            | Self::Unset { at, .. }
            | Self::Unclosed { at, .. }
            | Self::Empty { at, .. }
            | Self::Number { at, .. }
            | Self::Secret { at, .. } => Some(at.clone()),
            // The flag that sets the same is named behind the key.
            Self::Duration { at, .. } => at.split(' ').next().map(str::to_owned),
            Self::Service { name, .. } => Some(format!("targets.{name}")),
            Self::AllServices { .. } => Some("targets.all".to_owned()),
            Self::NoPassword { service } => Some(format!("targets.{service}.username")),
            Self::NoUsername { service } => Some(format!("targets.{service}.password")),
            Self::Token { service, .. } => Some(format!("targets.{service}.credentials")),
            Self::AccountOfNone { service }
            | Self::AccountWithout { service }
            | Self::SameAccount { service } => Some(format!("accounts.{service}")),
            Self::CallingCode { key, .. } => Some(format!("people.{key}")),
            Self::Hook { name, .. } | Self::HookTransport { name } => Some(format!("hooks.{name}")),
            Self::Pointer { name, .. } => Some(format!("hooks.{name}.result")),
            Self::Listen { .. } => Some("callbacks.listen".to_owned()),
            Self::Size { .. } => Some("limits.body".to_owned()),
            Self::Rate { .. } => Some("limits.rate".to_owned()),
            Self::NoUrl { .. } | Self::Flag(_) | Self::Reach(_) | Self::ReachOf { .. } => None,
        }
    }
}

/// The address without its query and fragment, which may hold a secret.
fn without_query(url: &str) -> String {
    match url.find(['?', '#']) {
        Some(at) => format!("{}…", &url[..=at]),
        None => url.to_owned(),
    }
}

fn help(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

/// Advice for a number without its unit, or with a blank before it, such as `10` and `10 s`.
fn with_unit(text: &str, unit: &str) -> String {
    let written = text.replace(char::is_whitespace, "");
    match written
        .strip_suffix(unit)
        .unwrap_or(&written)
        .parse::<u64>()
    {
        Ok(number) if number > 0 => format!("; did you mean `{number}{unit}`?"),
        Ok(_) | Err(_) => String::new(),
    }
}

/// Where the credentials of an address belong, if it contains any.
fn credentials_for(at: &str, source: &UrlError) -> String {
    if *source != UrlError::Credentials {
        return String::new();
    }
    let service = at.strip_prefix("--target ").or_else(|| {
        let of_variable = at.strip_prefix("CONFORMANT_");
        of_variable.and_then(|rest| rest.strip_suffix("_URL"))
    });
    if let Some(service) = service.map(str::to_lowercase) {
        return format!("; set targets.{service}.username and targets.{service}.password");
    }
    match at.strip_suffix(".url") {
        Some(hook) if at.starts_with("hooks.") => {
            format!("; send them in {hook}.headers, such as Authorization")
        }
        Some(target) => format!("; set {target}.username and {target}.password"),
        None if at == "--hooks" => "; set a token in CONFORMANT_CONTROL_TOKEN, or configure \
             `hooks: {NAME: {http: {url, headers}}}` in conformant.yaml"
            .to_owned(),
        None => String::new(),
    }
}

/// Advice for an address without a path, where the paths of the service are usually below one.
pub(in crate::cli) fn path_for(index: &ServiceIndex, service: &str, url: &str) -> String {
    let base = index.get(service).and_then(|file| file.base.as_ref());
    let below = conformant_engine::split_url(url).1;
    match base.filter(|base| below.is_empty() && !base.path.is_empty()) {
        Some(base) => format!(
            "; the documents have the path {}, so that {url}{} is a guess, which was not tried",
            base.path, base.path
        ),
        None => String::new(),
    }
}

/// Advice for an address without a scheme, such as `127.0.0.1:4010`.
pub(in crate::cli) fn scheme_for(url: &str) -> String {
    match url.contains("://") {
        true => String::new(),
        false => format!("; did you mean http://{url}?"),
    }
}
