//! Validates parameters and headers: required, bounded, enumerated, formatted.

use crate::garble::{Garble, garbled};
use crate::{Call, Core, Fault, Params, Refusal, Variant};
use conformant_base::clock::Timestamp;
use conformant_base::ids;
use std::borrow::Cow;

/// Longest friendly and unique names of channels and friendly names of roles (D2, Limits).
pub(super) const NAME_CHARS_MAX: usize = 64;

/// Faults for a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// Values beyond the limit are accepted.
    pub(super) unbounded: Fault,
    /// One character beyond the limit is accepted.
    pub(super) one_more: Fault,
    /// The limit itself is refused.
    pub(super) tight: Fault,
}

/// The values of a parameter, and faults for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) values: &'static [&'static str],
    /// Any other value is accepted.
    pub(super) open: Fault,
    /// The last value is refused.
    pub(super) short: Fault,
}

/// A required string; an empty one counts as missing.
pub(super) fn required<'a>(
    core: &Core,
    params: &'a Params,
    name: &str,
    optional: Fault,
) -> Result<&'a str, Refusal> {
    match params.get(name) {
        Some(value) if !value.is_empty() => Ok(value),
        _ if core.fails(optional) => Ok(""),
        _ => Err(Refusal::bad_parameter(name, "required")),
    }
}

/// Limits a name to [`NAME_CHARS_MAX`]; a variant truncates instead of refusing.
pub(super) fn name(
    core: &Core,
    parameter: &str,
    value: &str,
    bound: Bound,
) -> Result<String, Refusal> {
    let chars_max = if core.fails(bound.tight) {
        NAME_CHARS_MAX - 1
    } else {
        NAME_CHARS_MAX
    };
    let length = value.chars().count();
    let one_more = length == NAME_CHARS_MAX + 1 && core.fails(bound.one_more);
    if length <= chars_max || one_more || core.fails(bound.unbounded) {
        return Ok(value.to_owned());
    }
    if core.varies(Variant::ChatLongNamesCut) {
        return Ok(value.chars().take(chars_max).collect());
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
    let known = choice.values.contains(&value);
    let lost = core.fails(choice.short) && choice.values.last() == Some(&value);
    if (known && !lost) || (!known && core.fails(choice.open)) {
        return Ok(value.to_owned());
    }
    Err(Refusal::bad_parameter(
        parameter,
        &format!("one of {}", choice.values.join(", ")),
    ))
}

/// A non-negative integer, if present.
pub(super) fn index(params: &Params, name: &str) -> Result<Option<u64>, Refusal> {
    params
        .get(name)
        .map(|text| {
            text.parse()
                .map_err(|_| Refusal::bad_parameter(name, "a number from 0"))
        })
        .transpose()
}

/// A `date-time`, if present.
pub(super) fn date(params: &Params, name: &str) -> Result<Option<Timestamp>, Refusal> {
    params
        .get(name)
        .map(|text| {
            text.parse()
                .map_err(|_| Refusal::bad_parameter(name, "a date-time"))
        })
        .transpose()
}

/// `DateCreated` and `DateUpdated`, which only a backup restore sends (D2, Endpoints: Channel).
pub(super) fn backup_dates(
    core: &Core,
    params: &Params,
    now: Timestamp,
) -> Result<(Timestamp, Timestamp), Refusal> {
    let created = date(params, "DateCreated")?;
    let updated = date(params, "DateUpdated")?;
    if core.varies(Variant::ChatBackupParametersIgnored) {
        return Ok((now, now));
    }
    let created = created.unwrap_or(now);
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

/// Faults of `Attributes`.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttributeFaults {
    /// Text that is not JSON is accepted.
    pub(super) unchecked: Fault,
    /// Unset attributes come back as an empty string.
    pub(super) unset: Fault,
}

/// Faults that change `Attributes`.
const TEXTS: &[(Fault, Garble)] = &[
    (Fault::ChatAttributesEmojiDropped, Garble::EmojiDropped),
    (Fault::ChatAttributesPlusIsSpace, Garble::PlusIsSpace),
];

/// `Attributes`, if present: JSON in a string.
pub(super) fn attributes(
    core: &Core,
    params: &Params,
    faults: AttributeFaults,
) -> Result<Option<String>, Refusal> {
    match params.get("Attributes") {
        None | Some("") => Ok(None),
        Some(text)
            if core.fails(faults.unchecked)
                || serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() =>
        {
            let parsed = serde_json::from_str(text).unwrap_or_default();
            if (is_nested(&parsed) && core.fails(Fault::ChatAttributesNestedRefused))
                || (!text.is_ascii() && core.fails(Fault::ChatAttributesAsciiOnly))
            {
                return Err(Refusal::bad_parameter("Attributes", "not like that"));
            }
            Ok(Some(garbled(core, text, TEXTS)))
        }
        Some(_) => Err(Refusal::bad_parameter("Attributes", "JSON")),
    }
}

/// True if an object contains an object.
fn is_nested(attributes: &serde_json::Value) -> bool {
    let members = attributes.as_object();
    members.is_some_and(|members| members.values().any(serde_json::Value::is_object))
}

/// `attributes` as shown: as sent or, under a variant, reformatted.
pub(super) fn format_attributes(core: &Core, attributes: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(attributes) {
        Ok(value) if core.varies(Variant::ChatAttributesReformatted) => format!("{value:#}"),
        Ok(_) | Err(_) => attributes.to_owned(),
    }
}

/// Value of unset `attributes` (D2, Conventions).
pub(super) fn unset_attributes(core: &Core, faults: AttributeFaults) -> String {
    if core.fails(faults.unset) {
        String::new()
    } else if core.fails(Fault::ChatAttributesUnsetFilled) {
        r#"{"unset":true}"#.to_owned()
    } else {
        "{}".to_owned()
    }
}

/// True if the request enables webhooks: `X-Platform-Webhook-Enabled: true` (D2, Conventions).
///
/// Its effect is undefined: without it the reference calls no webhook, a variant calls all.
pub(super) fn webhooks_enabled(
    core: &Core,
    call: &Call<'_>,
    refused: Fault,
) -> Result<bool, Refusal> {
    let value = call.request.headers.get("X-Platform-Webhook-Enabled");
    if value.is_some() && core.fails(refused) {
        return Err(Refusal::new(400, 20001, "A header is not understood"));
    }
    let asked = value.is_some_and(|v| v.trim().eq_ignore_ascii_case("true"));
    Ok(asked || core.varies(Variant::ChatWebhooksWithoutHeader))
}

/// Drops parameters that a fault ignores.
pub(super) fn honoured<'a>(
    core: &Core,
    params: &'a Params,
    faults: &[(&str, Fault)],
) -> Cow<'a, Params> {
    let ignored = |name: &str| faults.iter().any(|(n, f)| *n == name && core.fails(*f));
    if !params.0.iter().any(|(name, _)| ignored(name)) {
        return Cow::Borrowed(params);
    }
    Cow::Owned(Params(
        params
            .0
            .iter()
            .filter(|(name, _)| !ignored(name))
            .cloned()
            .collect(),
    ))
}
