//! Results of hooks. The control plane returns the texts of errors in `error`.

use serde_json::Value;

/// Result of a hook.
pub type Done = Result<Value, String>;

/// Result of a hook; `None` if the service does not have it.
pub type Control = Option<Done>;

/// A required argument is missing or has a wrong type.
pub(super) fn missing(name: &str, kind: &str) -> String {
    format!("argument `{name}` ({kind}) is missing")
}

/// An optional argument has a wrong type.
pub(super) fn other_type(name: &str, kind: &str) -> String {
    format!("argument `{name}` is not {kind}")
}

/// Nothing matches an argument.
pub(super) fn unknown(thing: &str, key: &str, value: &str) -> String {
    format!("no {thing} has the {key} {value}")
}

/// A string argument of a hook.
pub fn text_arg<'a>(args: &'a Value, name: &str) -> Result<&'a str, String> {
    args.get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| missing(name, "a string"))
}
