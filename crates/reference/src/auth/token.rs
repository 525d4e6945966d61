//! Validates registration tokens in QR strings (D1, Registration without personal data).
//!
//! Parses tokens by hand, because faults must be able to skip each check.

use super::{application, input};
use crate::{Core, Fault, Variant};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use conformant_base::clock::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, crypto};
use serde_json::Value;

/// D1, Limits: registration token lifetime.
pub(super) const LIFETIME_MAX_SECONDS: u32 = 15 * 60;

/// Why a scan does not register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// A genuine token of this custom user id, scanned too late.
    Expired(String),
    /// Anything else.
    Invalid,
}

/// The custom user id of a valid QR string at `now`.
pub(super) fn accept(core: &Core, qr: &str) -> Result<String, Refused> {
    let claims = token_of(core, qr)
        .and_then(|token| verified(core, &token))
        .filter(|claims| is_ours(core, claims))
        .ok_or(Refused::Invalid)?;
    let custom_user_id = claims
        .pointer("/context/custom_user_id")
        .and_then(input::text)
        .filter(|id| !id.is_empty())
        .filter(|id| !(id.contains('_') && core.fails(Fault::AuthCustomUserIdUnderscoreRefused)))
        .ok_or(Refused::Invalid)?;
    if is_mistrusted(core, &claims) {
        return Err(Refused::Invalid);
    }
    match timeliness(core, &claims) {
        Some(Timeliness::Valid) if core.fails(Fault::AuthTokenGoodRefused) => Err(Refused::Invalid),
        Some(Timeliness::Valid) => Ok(custom_user_id),
        Some(Timeliness::Expired) => Err(Refused::Expired(custom_user_id)),
        None => Err(Refused::Invalid),
    }
}

/// `<app_scheme>://account?token=<JWT>`
fn token_of(core: &Core, qr: &str) -> Option<String> {
    let qr = url::Url::parse(qr).ok()?;
    let is_ours = qr.scheme() == application::SCHEME && qr.host_str() == Some("account");
    let mut tokens = qr.query_pairs().filter(|(name, _)| name == "token");
    // D1 shows one token; which of two counts is undefined.
    let (_, token) = tokens.next().filter(|_| is_ours)?;
    match tokens.next() {
        None => Some(token.into_owned()),
        Some((_, second)) => core
            .varies(Variant::AuthTokenSecondCounts)
            .then(|| second.into_owned()),
    }
}

/// Expiry of the token in a QR string, with any signature.
pub(super) fn expiry(core: &Core, qr: &str) -> Option<Timestamp> {
    let token = token_of(core, qr)?;
    let claims = decoded(token.split('.').nth(1)?)?;
    let millis = claims.get("exp")?.as_f64()? * 1000.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "beyond the bounds no date follows"
    )]
    Timestamp::from_millisecond(millis as i64).ok()
}

/// Custom user id in a QR string, with any signature.
pub(super) fn custom_user_id(core: &Core, qr: &str) -> Option<String> {
    let token = token_of(core, qr)?;
    let claims = decoded(token.split('.').nth(1)?)?;
    let named = claims.pointer("/context/custom_user_id");
    named.and_then(input::text)
}

/// True if a fault refuses valid but rare claims.
fn is_mistrusted(core: &Core, claims: &Value) -> bool {
    let fraction = |name| claims.get(name).is_some_and(|time| !time.is_i64());
    let known = ["iss", "iat", "exp", "context"];
    let mut names = claims.as_object().into_iter().flat_map(|all| all.keys());
    (fraction("iat") || fraction("exp")) && core.fails(Fault::AuthTokenFractionRefused)
        || names.any(|name| !known.contains(&name.as_str()))
            && core.fails(Fault::AuthTokenFurtherClaimRefused)
}

/// True if a fault accepts an invalid signature.
fn is_forged(core: &Core, message: &str, signature: &str) -> bool {
    let signed = |key: &[u8]| {
        let key = EncodingKey::from_secret(key);
        crypto::sign(message.as_bytes(), &key, Algorithm::HS256).unwrap_or_default()
    };
    let right = signed(application::API_KEY.as_bytes());
    if signature.is_empty() {
        return core.fails(Fault::AuthTokenSignatureEmpty);
    }
    signature.len() < right.len()
        && right.starts_with(signature)
        && core.fails(Fault::AuthTokenSignatureCut)
        || signature == signed(b"") && core.fails(Fault::AuthTokenKeyEmpty)
        || signature == signed(application::ID.to_string().as_bytes())
            && core.fails(Fault::AuthTokenKeyIsId)
        || signature.len() == right.len() && core.fails(Fault::AuthTokenClaimsUncovered)
}

/// The claims of a token with valid header and signature.
fn verified(core: &Core, token: &str) -> Option<Value> {
    let (message, signature) = token.rsplit_once('.')?;
    let (header, claims) = message.split_once('.')?;
    let (header, claims) = (decoded(header)?, decoded(claims)?);
    let typ = header.get("typ").and_then(Value::as_str);
    if typ != Some("JWT") && !core.fails(Fault::AuthTokenTypUnchecked) {
        return None;
    }
    let algorithm = match header.get("alg").and_then(Value::as_str)? {
        "HS256" => Algorithm::HS256,
        "HS384" if core.fails(Fault::AuthTokenAlgUnchecked) => Algorithm::HS384,
        "HS512" if core.fails(Fault::AuthTokenAlgUnchecked) => Algorithm::HS512,
        other if other.eq_ignore_ascii_case("HS256") && core.fails(Fault::AuthTokenAlgAnyCase) => {
            Algorithm::HS256
        }
        "none" if core.fails(Fault::AuthTokenNoneAccepted) => return Some(claims),
        other
            if other != "none"
                && other.eq_ignore_ascii_case("none")
                && core.fails(Fault::AuthTokenNoneAnyCase) =>
        {
            return Some(claims);
        }
        _ => return None,
    };
    let key = DecodingKey::from_secret(application::API_KEY.as_bytes());
    let is_signed = crypto::verify(signature, message.as_bytes(), &key, algorithm).unwrap_or(false);
    (is_signed
        || core.fails(Fault::AuthTokenSignatureUnchecked)
        || is_forged(core, message, signature))
    .then_some(claims)
}

fn decoded(part: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// Issued for this application, under its name.
fn is_ours(core: &Core, claims: &Value) -> bool {
    let names_us = match claims.get("iss").and_then(Value::as_str) {
        Some(application::NAME) => true,
        Some(other) if other.eq_ignore_ascii_case(application::NAME) => {
            core.fails(Fault::AuthTokenIssAnyCase)
        }
        Some(other) if other.starts_with(application::NAME) => {
            core.fails(Fault::AuthTokenIssPrefix)
        }
        Some(_) => false,
        None => core.fails(Fault::AuthTokenIssAbsent),
    };
    let app_id = claims.pointer("/context/auth_app_id").and_then(input::text);
    (names_us || core.fails(Fault::AuthTokenIssUnchecked))
        && (app_id == Some(application::ID.to_string())
            || core.fails(Fault::AuthTokenApplicationUnchecked))
}

enum Timeliness {
    Valid,
    Expired,
}

/// Limits of the lifetime, from `iat` and from the time of the scan. A `NumericDate` may have a fraction
/// (RFC 7519).
fn timeliness(core: &Core, claims: &Value) -> Option<Timeliness> {
    let lifetime_max = if core.fails(Fault::AuthTokenFifteenMinutesRefused) {
        f64::from(LIFETIME_MAX_SECONDS) - 1.0
    } else {
        f64::from(LIFETIME_MAX_SECONDS)
    };
    let time = core.now.as_duration().as_secs_f64();
    let exp = match claims.get("exp") {
        None if core.fails(Fault::AuthTokenExpAbsent) => time + 1.0,
        exp => exp?.as_f64()?,
    };
    let remaining = exp - time;
    let beyond_by_one = |length: f64| length > lifetime_max && length <= lifetime_max + 1.0;
    if !core.fails(Fault::AuthTokenLifetimeUnchecked) {
        let iat = match claims.get("iat") {
            None if core.fails(Fault::AuthTokenIatAbsent) => time,
            iat => iat?.as_f64()?,
        };
        let excused = beyond_by_one(exp - iat) && core.fails(Fault::AuthTokenLifetimeOneMore);
        if exp - iat > lifetime_max && !excused {
            return None;
        }
        // An `iat` after any possible expiry is not in seconds.
        let ahead = iat - time;
        if ahead > lifetime_max && !core.varies(Variant::AuthTokenIatMillis) {
            return None;
        }
    }
    let excused = beyond_by_one(remaining) && core.varies(Variant::AuthTokenExpiryOneMore);
    if remaining > lifetime_max && !excused && !core.fails(Fault::AuthTokenFarExpiryAccepted) {
        return None;
    }
    let is_late = remaining <= 0.0;
    let excused = is_late
        && ((remaining > -2.0 && core.varies(Variant::AuthTokenJustExpired))
            || (remaining > -300.0 && core.varies(Variant::AuthTokenLeeway)));
    if is_late && !excused && !core.fails(Fault::AuthTokenExpiredAccepted) {
        return Some(Timeliness::Expired);
    }
    Some(Timeliness::Valid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use conformant_base::clock::VirtualClock;
    use serde_json::json;

    const NOW: i64 = conformant_base::clock::VIRTUAL_START_MS / 1000;

    fn core_with(settings: Settings) -> Core {
        Core::new(settings, VirtualClock::default().now())
    }

    /// A QR string with changes to valid claims.
    fn qr(changes: &[(&str, Value)]) -> String {
        let mut claims = json!({
            "iss": application::NAME,
            "iat": NOW,
            "exp": NOW + 900,
            "context": {"custom_user_id": "u-1", "auth_app_id": application::ID},
        });
        for (pointer, value) in changes {
            *claims.pointer_mut(pointer).expect("a claim") = value.clone();
        }
        let key = EncodingKey::from_secret(application::API_KEY.as_bytes());
        let token = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key);
        let token = token.expect("a token");
        format!("{}://account?token={token}", application::SCHEME)
    }

    fn scan(faults: &[Fault], qr: &str) -> Result<String, Refused> {
        let settings = Settings {
            faults: faults.iter().copied().collect(),
            ..Settings::default()
        };
        accept(&core_with(settings), qr)
    }

    #[test]
    fn right_tokens_register() {
        for changes in [
            vec![],
            vec![("/context/auth_app_id", json!(application::ID.to_string()))],
            vec![("/exp", json!(NOW + 1))],
            vec![
                ("/exp", json!(1_767_226_499.75)),
                ("/iat", json!(1_767_225_599.75)),
            ],
        ] {
            let scanned = scan(&[], &qr(&changes));
            assert_eq!(scanned, Ok("u-1".to_owned()), "{changes:?}");
        }
        let longest = qr(&[]);
        assert!(scan(&[Fault::AuthTokenFifteenMinutesRefused], &longest).is_err());
        assert!(scan(&[Fault::AuthTokenGoodRefused], &longest).is_err());
    }

    #[test]
    fn what_no_line_says_of_a_token_is_a_freedom() {
        let right = qr(&[]);
        for (variant, qr) in [
            (
                Variant::AuthTokenIatMillis,
                qr(&[("/iat", json!(NOW * 1000))]),
            ),
            (
                Variant::AuthTokenExpiryOneMore,
                qr(&[("/iat", json!(NOW + 1)), ("/exp", json!(NOW + 901))]),
            ),
            (
                Variant::AuthTokenJustExpired,
                qr(&[("/iat", json!(NOW - 9)), ("/exp", json!(NOW - 1))]),
            ),
            (
                Variant::AuthTokenSecondCounts,
                right.replace("token=", "token=x&token="),
            ),
        ] {
            assert!(scan(&[], &qr).is_err(), "{variant:?}");
            let settings = Settings {
                variants: [variant].into_iter().collect(),
                ..Settings::default()
            };
            let freely = accept(&core_with(settings), &qr);
            assert!(freely.is_ok(), "{variant:?}");
        }
    }

    #[test]
    fn what_is_no_token_of_ours_never_registers() {
        let right = qr(&[]);
        let foreign_app = [("/context/auth_app_id", json!(1))];
        let nameless = [("/context/custom_user_id", json!(""))];
        for qr in [
            String::new(),
            "refauth://account".to_owned(),
            "refauth://account?token=".to_owned(),
            "refauth://account?token=a.b.c".to_owned(),
            right.replace("refauth:", "otherapp:"),
            right.replace("account", "login"),
            format!("{right}x"),
            format!("{right}.x"),
            format!("{right}&token=x"),
            format!("{right}&{}", right.split_once('?').expect("a query").1),
            qr(&[("/iat", json!(NOW * 1000))]),
            qr(&foreign_app),
            qr(&nameless),
        ] {
            assert_eq!(scan(&[], &qr), Err(Refused::Invalid), "{qr}");
        }
        let late = qr(&[("/exp", json!(NOW - 5))]);
        assert_eq!(scan(&[], &late), Err(Refused::Expired("u-1".to_owned())));
    }

    proptest::proptest! {
        #[test]
        fn a_damaged_qr_string_never_registers(at in 0_usize..400, letter in "[ -~]") {
            let right = qr(&[]);
            let at = at % right.len();
            // The last character of a signature has bits that decoding may drop.
            if at + 1 < right.len() && !right[at..].starts_with(&letter) {
                let damaged = format!("{}{letter}{}", &right[..at], &right[at + 1..]);
                let core = core_with(Settings::default());
                let is_same = token_of(&core, &damaged) == token_of(&core, &right);
                proptest::prop_assert!(is_same || scan(&[], &damaged).is_err(), "{}", damaged);
            }
        }
    }
}
