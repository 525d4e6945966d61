//! Results and errors of hooks. The control plane returns the texts in `error`.

use super::Refusal;
use serde_json::Value;

/// Result of a hook; `None` if the service does not have it.
pub type Control = Option<Result<Value, HookError>>;

/// Why a hook failed.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// A required argument is missing or has a wrong type.
    #[error("argument `{name}` ({kind}) is missing")]
    Missing {
        name: &'static str,
        kind: &'static str,
    },
    /// An optional argument has a wrong type.
    #[error("argument `{name}` is not {kind}")]
    OtherType {
        name: &'static str,
        kind: &'static str,
    },
    /// An argument is not one of its values.
    #[error("`{name}` is {values}")]
    NoneOf {
        name: &'static str,
        values: &'static str,
    },
    /// Nothing matches an argument.
    #[error("no {thing} has the {key} {value}")]
    Unknown {
        thing: &'static str,
        key: &'static str,
        value: String,
    },
    /// Unknown flow or execution.
    #[error("flow or execution not found")]
    NotInFlow,
    /// The execution has ended.
    #[error("the execution has ended")]
    Ended,
    /// Invalid phone.
    #[error("invalid phone `{cellphone}` with country code `{country_code}`")]
    NoPhone {
        cellphone: String,
        country_code: String,
    },
    /// The phone belongs to another user.
    #[error("the number belongs to another user")]
    NumberTaken,
    /// Unknown kind of callback.
    #[error("unknown kind of callback `{0}`")]
    NoCallback(String),
    /// Unknown channel of a message.
    #[error("unknown channel `{0}`: expected sms, whatsapp or rcs")]
    NoChannel(String),
    /// Unknown outcome of a message.
    #[error("unknown outcome `{0}`")]
    NoOutcome(String),
    /// Invalid settings of a service.
    #[error("invalid settings: {0}")]
    Settings(#[from] serde_json::Error),
    /// Invalid limits.
    #[error("invalid `limits`: the maximum is {0}")]
    BeyondLimit(u64),
    /// The service refuses the same request.
    #[error("{}", .0.message)]
    Refused(Refusal),
}

impl HookError {
    pub(super) fn missing(name: &'static str, kind: &'static str) -> Self {
        Self::Missing { name, kind }
    }

    pub(super) fn unknown(
        thing: &'static str,
        key: &'static str,
        value: impl Into<String>,
    ) -> Self {
        Self::Unknown {
            thing,
            key,
            value: value.into(),
        }
    }
}

/// A string argument of a hook.
pub fn text_arg<'a>(args: &'a Value, name: &'static str) -> Result<&'a str, HookError> {
    args.get(name)
        .and_then(Value::as_str)
        .ok_or(HookError::missing(name, "a string"))
}
