//! What a hook of any service brings: a value, or why it refuses.
//!
//! Its texts are what the control plane says in `error`. What each hook does is its service's.

use super::Refusal;
use serde_json::Value;

/// What a hook does: `None` when this service does not know it.
pub type Control = Option<Result<Value, HookError>>;

/// Why a hook does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// An argument is not there, or of another type.
    #[error("argument `{name}` ({kind}) is missing")]
    Missing {
        /// The argument.
        name: &'static str,
        /// Its type.
        kind: &'static str,
    },
    /// An argument that may be left out is of another type.
    #[error("argument `{name}` is not {kind}")]
    OtherType {
        /// The argument.
        name: &'static str,
        /// Its type.
        kind: &'static str,
    },
    /// An argument has none of its few values.
    #[error("`{name}` is {values}")]
    NoneOf {
        /// The argument.
        name: &'static str,
        /// All of them.
        values: &'static str,
    },
    /// Nothing has what an argument says.
    #[error("no {thing} has the {key} {value}")]
    Unknown {
        /// What is looked for.
        thing: &'static str,
        /// By what it is looked for.
        key: &'static str,
        /// What the argument says.
        value: String,
    },
    /// A flow, or an execution within it, is not there.
    #[error("no such flow or execution")]
    NotInFlow,
    /// What has ended is to go on.
    #[error("the execution has ended")]
    Ended,
    /// A text that is no phone.
    #[error("invalid phone number `{cellphone}` with country code `{country_code}`")]
    NoPhone {
        /// The number as it was named.
        cellphone: String,
        /// Beside it, or its default.
        country_code: String,
    },
    /// A phone belongs to one user alone.
    #[error("the number is another user's")]
    NumberTaken,
    /// Nothing is called back of which it is told.
    #[error("no callback is of kind `{0}`")]
    NoCallback(String),
    /// Messages are sent on other channels.
    #[error("invalid channel `{0}`: expected sms, whatsapp or rcs")]
    NoChannel(String),
    /// Messages end in other ways.
    #[error("invalid outcome `{0}`")]
    NoOutcome(String),
    /// Settings that a service cannot have.
    #[error("the service's settings: {0}")]
    Settings(#[from] serde_json::Error),
    /// Limits that no service has.
    #[error("`limits` are at most {0}")]
    BeyondLimit(u64),
    /// The service refuses it to a request, too.
    #[error("{}", .0.message)]
    Refused(Refusal),
}

impl HookError {
    /// An argument is not there, or of another type.
    pub(super) fn missing(name: &'static str, kind: &'static str) -> Self {
        Self::Missing { name, kind }
    }

    /// Nothing of that kind has this.
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

/// A text argument of a hook.
pub fn text_arg<'a>(args: &'a Value, name: &'static str) -> Result<&'a str, HookError> {
    args.get(name)
        .and_then(Value::as_str)
        .ok_or(HookError::missing(name, "a string"))
}
