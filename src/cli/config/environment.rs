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
