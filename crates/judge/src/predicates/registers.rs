//! `registers`: a scanned token registers its user where nothing is wrong with it, and nobody where one thing is. Says
//! nothing of tokens with several flaws, of codes that were scanned before, nor of times that two clocks may see
//! differently.

use super::prelude::*;
use crate::evidence::{Event, HookCall};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use conformant_base::clock::Timestamp;
use conformant_base::redact::REDACTED;
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use std::collections::BTreeSet;

/// The hook that shows a code.
const ANNOUNCE: &str = "announce_registration";
/// The hook that scans one.
const SCAN: &str = "scan_registration";
/// What the scan brings.
const REGISTERED: &str = "/registered";
/// How long a token may live, and how far from now it may expire, in seconds.
const LIFETIME_MAX: f64 = 900.0;
/// Seconds by which clocks may differ.
const SKEW: f64 = 5.0;

/// A token of this kind that a person scans, and whether it registers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Registers {
    /// What the token is like.
    token: Like,
}

/// What a token is like: good in one of two ways, or bad for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Like {
    /// It keeps every rule.
    Good,
    /// The same, and it lives as long as a token may.
    LongestLived,
    /// It is signed by another algorithm, or not at all.
    OtherAlgorithm,
    /// Its header spells the algorithm in another letter case.
    AlgorithmInOtherCase,
    /// It is of another type.
    OtherType,
    /// It is signed with another key, or not at all.
    OtherKey,
    /// It names another issuer, or none.
    OtherIssuer,
    /// It does not say when it was issued.
    NoIssue,
    /// It lives too long.
    TooLong,
    /// It expires too far from now, or never.
    TooFar,
    /// It has expired.
    Expired,
    /// It is for another application.
    OtherApplication,
}

impl Predicate for Registers {
        fn subject(&self) -> Subject {
        Subject::Service
    }

    fn references(&self, _: &mut References) {}

    fn needs(&self) -> &'static [Need] {
        &[Need::Hooks, Need::Configuration, Need::Clock]
    }

    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        let Some(application) = json::get(&case.evidence.configured, "/auth/application") else {
            return;
        };
        let mut shown = BTreeSet::new();
        let mut scanned = BTreeSet::new();
        for (event, happened) in case.evidence.events.iter().enumerate() {
            let Event::Hook(call) = happened else {
                continue;
            };
            let (Ok(result), Some(qr)) = (&call.result, said(call, "qr")) else {
                continue;
            };
            if call.name == ANNOUNCE {
                shown.insert(qr);
            }
            let registered = json::get(result, REGISTERED).and_then(Value::as_bool);
            let Some(registered) = registered.filter(|_| call.name == SCAN) else {
                continue;
            };
            let Some(token) = Token::read(qr, application) else {
                continue;
            };
            // Who is registered already is not registered again.
            let is_first = scanned.insert(token.of.clone());
            let is_judged = is_first && shown.contains(qr);
            if !is_judged || token.like(application, call) != Some(self.token) {
                continue;
            }
            let wanted = self.token.is_good();
            let words = |registered: bool| {
                if registered {
                    "registered"
                } else {
                    "not registered"
                }
            };
            let fact = Fact {
                kind: "registered",
                expected: words(wanted).to_owned(),
                actual: words(registered).to_owned(),
                message: format!(
                    "a token that {}: expected {}, got {}",
                    self.token.words(),
                    words(wanted),
                    words(registered)
                ),
            };
            verdicts
                .instance(rule, Site::hook(event, REGISTERED))
                .conclude((registered != wanted).then_some(fact));
        }
    }

    fn break_it(&self, sites: &Sites) -> Vec<Mutation> {
        let other = Change::To(json!(!self.token.is_good()));
        vec![Mutation::new(sites.last().clone(), other)]
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let scene = |token: &str| {
            let application = json!({"name": "Shop", "id": "1", "scheme": "shop", "api_key": "k"});
            let scene = Example::of("auth", json!({ "token": token }));
            scene.configured(json!({"auth": {"application": application}}))
        };
        let claims = |expires: i64| {
            json!({
                "iss": "Shop", "iat": 0, "exp": expires,
                "context": {"custom_user_id": "u", "auth_app_id": "1"},
            })
        };
        let scanned = |scene: Scene, claims: &Value, key: &str, registered: bool| {
            let header = json!({"alg": "HS256", "typ": "JWT"});
            let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let message = format!("{}.{}", part(&header), part(claims));
            let key = jsonwebtoken::EncodingKey::from_secret(key.as_bytes());
            let signature = crypto::sign(message.as_bytes(), &key, Algorithm::HS256);
            let qr = format!(
                "shop://account?token={message}.{}",
                signature.unwrap_or_default()
            );
            let phone = json!({"qr": qr, "cellphone": "5550100", "country_code": "1"});
            scene
                .hook(
                    ANNOUNCE,
                    json!({"custom_user_id": "u", "qr": qr}),
                    json!({}),
                )
                .hook(SCAN, phone, json!({"registered": registered}))
        };
        let mut foreign = claims(600);
        foreign["iss"] = json!("shop");
        vec![
            scanned(scene("good"), &claims(600), "k", true).passes(),
            scanned(scene("good"), &claims(600), "k", false).fails(REGISTERED),
            scanned(scene("longest-lived"), &claims(900), "k", true).passes(),
            scanned(scene("other-issuer"), &foreign, "k", false).passes(),
            scanned(scene("other-issuer"), &foreign, "k", true).fails(REGISTERED),
            scanned(scene("other-key"), &claims(600), "another", true).fails(REGISTERED),
            // Two things are wrong with it: which one counts is nobody's to say.
            scanned(scene("other-issuer"), &foreign, "another", true).not_judged(),
            scanned(scene("too-long"), &claims(901), "k", true).fails(REGISTERED),
            // Clocks differ.
            scanned(scene("expired"), &claims(0), "k", true).not_judged(),
        ]
    }
}

impl Like {
    const fn is_good(self) -> bool {
        matches!(self, Self::Good | Self::LongestLived)
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Good => "keeps every rule",
            Self::LongestLived => "lives fifteen minutes",
            Self::OtherAlgorithm => "is not signed with HS256",
            Self::AlgorithmInOtherCase => "spells HS256 in another letter case",
            Self::OtherType => "is of another type",
            Self::OtherKey => "the application's key has not signed",
            Self::OtherIssuer => "names another issuer or none",
            Self::NoIssue => "does not say when it was issued",
            Self::TooLong => "lives longer than fifteen minutes",
            Self::TooFar => "expires more than fifteen minutes from now",
            Self::Expired => "has expired",
            Self::OtherApplication => "is for another application",
        }
    }
}

/// An argument of a hook that is a text.
fn said<'c>(call: &'c HookCall, name: &str) -> Option<&'c str> {
    call.arguments.get(name)?.as_str()
}

/// A token as it stood in a code.
struct Token<'c> {
    header: Value,
    claims: Value,
    message: &'c str,
    signature: &'c str,
    /// Whom it is to register.
    of: String,
}

impl<'c> Token<'c> {
    fn read(qr: &'c str, application: &Value) -> Option<Self> {
        let scheme = application.get("scheme")?.as_str()?;
        let rest = qr.strip_prefix(scheme)?.strip_prefix("://account?token=")?;
        let (message, signature) = rest.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let part = |text: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
            serde_json::from_slice::<Value>(&bytes).ok()
        };
        let claims = part(claims)?;
        let of = json::get(&claims, "/context/custom_user_id")?;
        let of = of.as_str()?.to_owned();
        Some(Self {
            header: part(header)?,
            claims,
            message,
            signature,
            of,
        })
    }

    /// What it is like; nothing where that cannot be said for certain, or in one word.
    fn like(&self, application: &Value, call: &HookCall) -> Option<Like> {
        let own = |name: &str| application.get(name).filter(|value| **value != REDACTED);
        let claim = |pointer: &str| json::get(&self.claims, pointer);
        let mut flaws = Vec::new();
        let algorithm = self
            .header
            .get("alg")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let is_own = algorithm.eq_ignore_ascii_case("HS256");
        match algorithm {
            "HS256" => {}
            _ if is_own => flaws.push(Like::AlgorithmInOtherCase),
            _ => flaws.push(Like::OtherAlgorithm),
        }
        if is_own && !self.is_signed_with(own("api_key")?.as_str()?) {
            flaws.push(Like::OtherKey);
        }
        let differs =
            |value: Option<&Value>, wanted: &str| value.and_then(Value::as_str) != Some(wanted);
        if differs(self.header.get("typ"), "JWT") {
            flaws.push(Like::OtherType);
        }
        if differs(claim("/iss"), own("name")?.as_str()?) {
            flaws.push(Like::OtherIssuer);
        }
        if differs(claim("/context/auth_app_id"), own("id")?.as_str()?) {
            flaws.push(Like::OtherApplication);
        }
        let (issued, expires) = (number(claim("/iat")), number(claim("/exp")));
        if issued.is_none() {
            flaws.push(Like::NoIssue);
        }
        let lifetime = expires
            .zip(issued)
            .map(|(expires, issued)| expires - issued);
        if lifetime.is_some_and(|lifetime| lifetime > LIFETIME_MAX) {
            flaws.push(Like::TooLong);
        }
        let (began, ended) = (seconds(call.span.began), seconds(call.span.ended));
        match expires {
            None => flaws.push(Like::TooFar),
            Some(expires) if expires > ended + LIFETIME_MAX + SKEW => flaws.push(Like::TooFar),
            // Issued now for as long as may be, it expires on the bound whatever the clocks.
            Some(expires) if expires > began + LIFETIME_MAX => return None,
            Some(expires) if expires < began - SKEW => flaws.push(Like::Expired),
            Some(expires) if expires < ended + SKEW => return None,
            Some(_) => {}
        }
        match (flaws.as_slice(), lifetime) {
            ([], Some(lifetime)) if lifetime >= LIFETIME_MAX => Some(Like::LongestLived),
            ([], Some(_)) => Some(Like::Good),
            ([flaw], _) => Some(*flaw),
            _ => None,
        }
    }

    fn is_signed_with(&self, key: &str) -> bool {
        let key = DecodingKey::from_secret(key.as_bytes());
        let message = self.message.as_bytes();
        crypto::verify(self.signature, message, &key, Algorithm::HS256).unwrap_or_default()
    }
}

fn number(value: Option<&Value>) -> Option<f64> {
    value.and_then(Value::as_f64)
}

fn seconds(instant: Timestamp) -> f64 {
    instant.as_duration().as_secs_f64()
}
