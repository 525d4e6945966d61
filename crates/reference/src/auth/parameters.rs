//! Parameters of a new approval request and their limits (D1, Create approval request).

use super::answer::Failure;
use super::input::{body, given, text};
use crate::{Call, Core, Fault, Variant};
use conformant_base::clock::iso_seconds;
use serde_json::{Map, Value, json};

/// D1, Limits.
const KEY_LENGTH_MAX: usize = 20;
/// D1, Limits.
const SECONDS_TO_EXPIRE_DEFAULT: u64 = 86_400;

/// Parameters of a new request.
#[derive(Clone, Debug)]
pub(super) struct Parameters {
    pub(super) message: String,
    /// Includes the timestamp that the service adds.
    pub(super) details: Map<String, Value>,
    pub(super) hidden_details: Map<String, Value>,
    pub(super) logos: Value,
    /// 0 never expires.
    pub(super) seconds_to_expire: u64,
}

impl Parameters {
    /// Parses a body in either encoding.
    pub(super) fn read(core: &Core, call: &Call<'_>) -> Result<Self, Failure> {
        let body = body(call)?;
        let is_xml = core.operation.is_xml;
        let is_loose = is_xml && core.fails(Fault::AuthXmlKeysUnchecked)
            || given(&body, "details").is_some()
                && given(&body, "hidden_details").is_some()
                && core.fails(Fault::AuthBothHashesUnchecked);
        Ok(Self {
            message: read_message(core, &body)?,
            details: read_details(core, &body, is_loose)?,
            hidden_details: read_hidden_details(core, &body, is_loose)?,
            logos: read_logos(core, &body)?,
            seconds_to_expire: read_seconds_to_expire(core, &body, is_xml)?,
        })
    }

    /// Those of a request that is refused for its logos alone.
    pub(super) fn without_logos(core: &Core, body: &Map<String, Value>) -> Option<Self> {
        read_logos(core, body).is_err().then_some(())?;
        Some(Self {
            message: read_message(core, body).ok()?,
            details: read_details(core, body, false).ok()?,
            hidden_details: read_hidden_details(core, body, false).ok()?,
            logos: Value::Null,
            seconds_to_expire: SECONDS_TO_EXPIRE_DEFAULT,
        })
    }
}

fn read_message(core: &Core, body: &Map<String, Value>) -> Result<String, Failure> {
    match given(body, "message").and_then(text) {
        Some(message)
            if message.contains('\n') && core.fails(Fault::AuthMessageLinesRefused)
                || message.chars().count() > 100
                    && core.fails(Fault::AuthMessageHundredRefused) =>
        {
            Err(Failure::new(400, "Message is too long"))
        }
        Some(message) => Ok(message),
        None if core.fails(Fault::AuthMessageNotRequired) => Ok(String::new()),
        None => Err(Failure::new(400, "Message cannot be blank")),
    }
}

fn read_details(
    core: &Core,
    body: &Map<String, Value>,
    is_loose: bool,
) -> Result<Map<String, Value>, Failure> {
    let key_length_max = bound(
        core,
        Fault::AuthDetailsKey21Kept,
        Fault::AuthDetailsKey20Refused,
        is_loose,
    );
    let mut details = read_hash(core, body, "details", key_length_max)?;
    if core.fails(Fault::AuthDetailsLost) {
        details.clear();
    }
    lose_second(core, &mut details, Fault::AuthSecondDetailLost);
    // D1, Resources: a timestamp is added automatically.
    if core.varies(Variant::AuthTimestampOtherwise) {
        details.insert("Time".to_owned(), json!(core.now.as_second()));
    } else {
        details
            .entry("timestamp")
            .or_insert_with(|| json!(iso_seconds(core.now)));
    }
    if core.fails(Fault::AuthHiddenDetailsShown) {
        details.extend(read_hash(core, body, "hidden_details", KEY_LENGTH_MAX)?);
    }
    Ok(details)
}

fn read_hidden_details(
    core: &Core,
    body: &Map<String, Value>,
    is_loose: bool,
) -> Result<Map<String, Value>, Failure> {
    let key_length_max = bound(
        core,
        Fault::AuthHiddenDetailsKey21Kept,
        Fault::AuthHiddenDetailsKey20Refused,
        is_loose,
    );
    let mut hidden = read_hash(core, body, "hidden_details", key_length_max)?;
    lose_second(core, &mut hidden, Fault::AuthSecondHiddenLost);
    mangle(core, &mut hidden);
    let has_logos = given(body, "logos").is_some();
    if hidden.len() > 1 && has_logos && core.fails(Fault::AuthLogosDropHidden) {
        hidden = hidden.into_iter().take(1).collect();
    }
    Ok(hidden)
}

/// Faults for rare members of a hash.
fn mangle(core: &Core, hash: &mut Map<String, Value>) {
    let mut seen: Vec<(String, Value)> = Vec::new();
    hash.retain(|key, value| {
        let is_double = |one: &(String, Value)| {
            one.1 == *value && core.fails(Fault::AuthHiddenEqualsDropped)
                || one.0.eq_ignore_ascii_case(key) && core.fails(Fault::AuthHiddenKeysFolded)
        };
        let is_lost = seen.iter().any(is_double);
        seen.push((key.clone(), value.clone()));
        !is_lost
    });
}

fn lose_second(core: &Core, hash: &mut Map<String, Value>, lost: Fault) {
    if let Some(second) = hash.keys().nth(1).cloned()
        && core.fails(lost)
    {
        hash.remove(&second);
    }
}

fn bound(core: &Core, loose: Fault, tight: Fault, is_loose: bool) -> usize {
    if is_loose || core.fails(loose) {
        usize::MAX
    } else if core.fails(tight) {
        KEY_LENGTH_MAX - 1
    } else {
        KEY_LENGTH_MAX
    }
}

/// A hash, sent as an object or as its JSON text.
fn read_hash(
    core: &Core,
    body: &Map<String, Value>,
    name: &str,
    key_length_max: usize,
) -> Result<Map<String, Value>, Failure> {
    let refusal = |why| Failure::new(400, &format!("{name} {why}"));
    let hash = match given(body, name) {
        None => return Ok(Map::new()),
        Some(Value::Object(hash)) => hash.clone(),
        Some(Value::String(text)) => {
            serde_json::from_str(text).map_err(|_| refusal("is not a hash"))?
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            return Err(refusal("is not a hash"));
        }
    };
    let length = |key: &String| key.chars().count();
    let longest = hash.keys().map(length).max().unwrap_or_default();
    let first = hash.keys().next().map(length).unwrap_or_default();
    let excused = longest > key_length_max
        && (longest == KEY_LENGTH_MAX + 1 && core.fails(Fault::AuthKey21Kept)
            || first <= KEY_LENGTH_MAX && core.fails(Fault::AuthOnlyFirstKeyChecked)
            || hash.keys().take(2).all(|key| length(key) <= KEY_LENGTH_MAX)
                && core.fails(Fault::AuthThirdKeyUnchecked));
    let is_rare = hash.len() > 2 && core.fails(Fault::AuthThreePairsRefused)
        || hash.keys().any(|key| key.contains(' ')) && core.fails(Fault::AuthKeyBlankRefused)
        || hash.values().any(|value| *value == "") && core.fails(Fault::AuthValueEmptyRefused);
    if is_rare {
        return Err(refusal("is not as it should be"));
    }
    if longest <= key_length_max || excused {
        return Ok(hash);
    }
    if core.varies(Variant::AuthLongKeyCut) {
        let cut = |key: String| key.chars().take(KEY_LENGTH_MAX).collect::<String>();
        return Ok(hash
            .into_iter()
            .map(|(key, value)| (cut(key), value))
            .collect());
    }
    Err(refusal("has a key that is too long"))
}

/// D1, Create approval request: an entry with res `default`, known res values, HTTPS URLs.
fn read_logos(core: &Core, body: &Map<String, Value>) -> Result<Value, Failure> {
    let refusal = |why: &str| Failure::new(400, &format!("logos {why}"));
    let default_logo = || json!([{"res": "default", "url": "https://logos.example/app.png"}]);
    let logos: Vec<Value> = match given(body, "logos") {
        None => return Ok(default_logo()),
        Some(Value::Array(logos)) => logos.clone(),
        // Forms index the list: `logos[0][res]`.
        Some(Value::Object(logos)) => logos.values().cloned().collect(),
        Some(Value::String(text)) => {
            serde_json::from_str(text).map_err(|_| refusal("is not a list"))?
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_)) => {
            return Err(refusal("is not a list"));
        }
    };
    let mut has_default = core.fails(Fault::AuthLogosWithoutDefaultAccepted);
    for (at, logo) in logos.iter().enumerate() {
        let res = logo.get("res").and_then(Value::as_str).unwrap_or_default();
        let url = logo.get("url").and_then(Value::as_str).unwrap_or_default();
        let is_other_case = res != "default" && res.eq_ignore_ascii_case("default");
        let is_default = res == "default" || is_other_case && core.fails(Fault::AuthLogoResAnyCase);
        has_default |= is_default;
        if at == 0 && !is_default && core.fails(Fault::AuthLogoDefaultFirst)
            || url.contains('?') && core.fails(Fault::AuthLogoQueryRefused)
        {
            return Err(refusal("are not as they should be"));
        }
        let is_known = match res {
            _ if is_default => true,
            "low" | "med" | "high" => !core.fails(Fault::AuthLogoResolutionRefused),
            _ => false,
        };
        let is_https = url::Url::parse(url).is_ok_and(|url| url.scheme() == "https");
        let is_late = at > 0 && !(is_known && is_https);
        if is_late && core.fails(Fault::AuthOnlyFirstLogoChecked)
            || is_late && at > 1 && core.fails(Fault::AuthThirdLogoUnchecked)
            || is_late && at > 2 && core.fails(Fault::AuthFourthLogoUnchecked)
        {
            continue;
        }
        if !is_known && !core.fails(Fault::AuthLogoForeignResAccepted) {
            return Err(refusal("have an unknown res"));
        }
        let begins = !is_https
            && url.starts_with("http")
            && !url.starts_with("http:")
            && core.fails(Fault::AuthLogoSchemePrefix)
            || !is_https && url.contains("https:") && core.fails(Fault::AuthLogoHttpsAnywhere);
        if !is_https && !begins && !core.fails(Fault::AuthLogoHttpAccepted) {
            return Err(refusal("have a url that is not HTTPS"));
        }
    }
    if has_default {
        Ok(Value::Array(logos))
    } else {
        Err(refusal("lack a default"))
    }
}

fn read_seconds_to_expire(
    core: &Core,
    body: &Map<String, Value>,
    is_xml: bool,
) -> Result<u64, Failure> {
    let has = |name| given(body, name).is_some();
    let value = given(body, "seconds_to_expire")
        .filter(|_| !(has("logos") && core.fails(Fault::AuthLogosDropSeconds)));
    let Some(value) = value else {
        let is_short = core.fails(Fault::AuthDefaultExpiryOther)
            || is_xml && core.fails(Fault::AuthXmlDefaultExpiryOther)
            || has("logos") && core.fails(Fault::AuthLogosDefaultExpiryOther)
            || has("details") && core.fails(Fault::AuthDetailsDefaultExpiryOther);
        return Ok(if is_short {
            3_600
        } else {
            SECONDS_TO_EXPIRE_DEFAULT
        });
    };
    let seconds: u64 = text(value)
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Failure::new(400, "seconds_to_expire is not a number of seconds"))?;
    if seconds == 0 && is_xml && core.fails(Fault::AuthXmlZeroIsDefault)
        || seconds > SECONDS_TO_EXPIRE_DEFAULT && core.fails(Fault::AuthDayAtMost)
    {
        return Ok(SECONDS_TO_EXPIRE_DEFAULT);
    }
    Ok(seconds)
}
