//! Validates parameters and headers: required, bounded, enumerated, formatted.

use crate::{Call, Core, Fault, Params, Refusal, Variant};
use conformant_base::clock::Timestamp;
use conformant_base::ids;
use jiff::SignedDuration;
use std::str::FromStr;

/// Longest friendly and unique names of channels and friendly names of roles (D2, Limits).
pub(super) const NAME_CHARS_MAX: usize = 64;

/// Faults for a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// Values beyond the limit are accepted.
    pub(super) unbounded: Fault,
    /// One character beyond the limit is accepted.
    pub(super) one_more: Fault,
}

/// The values of a parameter, and a fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) values: &'static [&'static str],
    /// Any other value is accepted.
    pub(super) open: Fault,
}

/// A required string; an empty one counts as missing.
pub(super) fn required<'a>(params: &'a Params, name: &str) -> Result<&'a str, Refusal> {
    let given = params.get(name).filter(|value| !value.is_empty());
    given.ok_or_else(|| Refusal::bad_parameter(name, "required"))
}

/// Limits a name to [`NAME_CHARS_MAX`]; a variant truncates instead of refusing.
pub(super) fn name(
    core: &Core,
    parameter: &str,
    value: &str,
    bound: Bound,
) -> Result<String, Refusal> {
    let length = value.chars().count();
    let one_more = length == NAME_CHARS_MAX + 1 && core.fails(bound.one_more);
    if length <= NAME_CHARS_MAX || one_more || core.fails(bound.unbounded) {
        return Ok(value.to_owned());
    }
    if core.varies(Variant::ChatLongNamesCut) {
        return Ok(value.chars().take(NAME_CHARS_MAX).collect());
    }
    Err(Refusal::bad_parameter(parameter, "at most 64 characters"))
}

/// Checks a value against the allowed ones.
pub(super) fn choice(
    core: &Core,
    parameter: &str,
    value: &str,
    choice: Choice,
) -> Result<String, Refusal> {
    if choice.values.contains(&value) || core.fails(choice.open) {
        return Ok(value.to_owned());
    }
    Err(Refusal::bad_parameter(
        parameter,
        &format!("one of {}", choice.values.join(", ")),
    ))
}

/// A non-negative integer, if present.
pub(super) fn index(params: &Params, name: &str) -> Result<Option<u64>, Refusal> {
    parsed(params, name, "a number from 0")
}

/// A `date-time`, if present.
pub(super) fn date(params: &Params, name: &str) -> Result<Option<Timestamp>, Refusal> {
    parsed(params, name, "a date-time")
}

fn parsed<T: FromStr>(params: &Params, name: &str, what: &str) -> Result<Option<T>, Refusal> {
    let value = params.get(name).map(str::parse).transpose();
    value.map_err(|_| Refusal::bad_parameter(name, what))
}

/// `DateCreated` and `DateUpdated`, which only a backup restore sends (D2, Endpoints: Channel).
pub(super) fn backup_dates(
    core: &Core,
    params: &Params,
) -> Result<(Timestamp, Timestamp), Refusal> {
    let created = date(params, "DateCreated")?;
    let updated = date(params, "DateUpdated")?;
    if core.varies(Variant::ChatBackupParametersIgnored) {
        return Ok((core.now, core.now));
    }
    // A second before, so that the resource counts as updated.
    let moved = updated
        .filter(|at| *at < core.now && core.varies(Variant::ChatBackupMovesCreation))
        .map(|at| at.checked_sub(SignedDuration::from_secs(1)).unwrap_or(at));
    let created = created.or(moved).unwrap_or(core.now);
    Ok((created, updated.unwrap_or(created)))
}

pub(super) fn sid(name: &str, value: &str, prefix: &str) -> Result<String, Refusal> {
    if ids::is_sid(value, prefix) {
        Ok(value.to_owned())
    } else {
        Err(Refusal::bad_parameter(
            name,
            &format!("a SID beginning with {prefix}"),
        ))
    }
}

/// `Attributes`, if present: JSON in a string.
pub(super) fn attributes(
    core: &Core,
    params: &Params,
    unchecked: Fault,
) -> Result<Option<String>, Refusal> {
    match params.get("Attributes") {
        None | Some("") => Ok(None),
        Some(text)
            if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
                || core.fails(unchecked) =>
        {
            Ok(Some(text.to_owned()))
        }
        Some(_) => Err(Refusal::bad_parameter("Attributes", "JSON")),
    }
}

/// Value of unset `attributes` (D2, Conventions).
pub(super) fn unset_attributes() -> String {
    "{}".to_owned()
}

/// True if the request enables webhooks: `X-Platform-Webhook-Enabled: true` (D2, Conventions).
///
/// Its effect is undefined: without it the reference calls no webhook, a variant calls all.
pub(super) fn webhooks_enabled(core: &Core, call: &Call<'_>) -> bool {
    let value = call.request.headers.get("X-Platform-Webhook-Enabled");
    let asked = value.is_some_and(|v| v.trim().eq_ignore_ascii_case("true"));
    asked || core.varies(Variant::ChatWebhooksWithoutHeader)
}
