//! The environment: the one place that reads it.

#![expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]

/// Lets `serve` and `--hooks` agree on a token for the control plane.
pub(in crate::cli) const CONTROL_TOKEN: &str = "CONFORMANT_CONTROL_TOKEN";

pub(in crate::cli) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The names of all variables.
pub(in crate::cli) fn names_in_environment() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
}
