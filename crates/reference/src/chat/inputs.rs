//! Reading parameters and headers: required, bounded, chosen from a list, of a stated form.
//!
//! Decides whether a value is acceptable, not what becomes of it.

use crate::garble::{Garble, garbled};
use crate::{Call, Core, Fault, Params, Refusal, Variant};
use conformant_base::clock::Timestamp;
use conformant_base::ids;
use std::borrow::Cow;

/// Longest friendly and unique names of channels and friendly names of roles (D2, Limits).
pub(super) const NAME_CHARS_MAX: usize = 64;

/// The two ways in which a bound can be broken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// Values beyond the bound are honoured.
    pub(super) unbounded: Fault,
    /// One character beyond the bound is honoured.
    pub(super) one_more: Fault,
    /// The bound itself is refused.
    pub(super) tight: Fault,
}

/// The values a parameter may take, and the two ways to break that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// The stated values.
    pub(super) values: &'static [&'static str],
    /// Any other value is honoured too.
    pub(super) open: Fault,
    /// The last of the values is refused.
    pub(super) short: Fault,
}

/// A required text; an empty one counts as missing.
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

/// Holds a name to [`NAME_CHARS_MAX`]; under a variant a longer one is cut instead of refused.
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

/// Holds a value to the stated ones.
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

/// A whole number that is not negative, when the parameter is there.
pub(super) fn index(params: &Params, name: &str) -> Result<Option<u64>, Refusal> {
    params
        .get(name)
        .map(|text| {
            text.parse()
                .map_err(|_| Refusal::bad_parameter(name, "a number from 0"))
        })
        .transpose()
}

/// A `date-time`, when the parameter is there.
pub(super) fn date(params: &Params, name: &str) -> Result<Option<Timestamp>, Refusal> {
    params
        .get(name)
        .map(|text| {
            text.parse()
                .map_err(|_| Refusal::bad_parameter(name, "a date-time"))
        })
        .transpose()
}

/// `DateCreated` and `DateUpdated`, which only a restored backup sends (D2, Endpoints: Channel).
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

/// A SID with that prefix.
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

/// How `Attributes` of one resource can be broken.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttributeFaults {
    /// Text that is not JSON is taken.
    pub(super) unchecked: Fault,
    /// Unset attributes come back as an empty text.
    pub(super) unset: Fault,
}

/// What `Attributes` of any resource can lose.
const TEXTS: &[(Fault, Garble)] = &[
    (Fault::ChatAttributesEmojiDropped, Garble::EmojiDropped),
    (Fault::ChatAttributesPlusIsSpace, Garble::PlusIsSpace),
];

/// `Attributes`, when the parameter is there: JSON in a string.
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

/// Whether an object stands within an object.
fn is_nested(attributes: &serde_json::Value) -> bool {
    let members = attributes.as_object();
    members.is_some_and(|members| members.values().any(serde_json::Value::is_object))
}

/// `attributes` as they are shown: as they were sent, or under a variant the same JSON in another
/// layout.
pub(super) fn shown(core: &Core, attributes: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(attributes) {
        Ok(value) if core.varies(Variant::ChatAttributesReformatted) => format!("{value:#}"),
        Ok(_) | Err(_) => attributes.to_owned(),
    }
}

/// What stands in `attributes` while they are unset (D2, Conventions).
pub(super) fn unset_attributes(core: &Core, faults: AttributeFaults) -> String {
    if core.fails(faults.unset) {
        String::new()
    } else if core.fails(Fault::ChatAttributesUnsetFilled) {
        r#"{"unset":true}"#.to_owned()
    } else {
        "{}".to_owned()
    }
}

/// True when the request asks for webhooks: `X-Platform-Webhook-Enabled: true` (D2, Conventions).
///
/// Its effect is not stated; without it this implementation calls nobody, a variant everybody.
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

/// Drops parameters whose fault says that they are not honoured.
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
