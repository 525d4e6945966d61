//! `token-registration`: a scanned token registers its user if it is valid, and does not if it has exactly one flaw.
//!
//! Does not judge tokens with several flaws, valid tokens of the future, codes that were scanned before, or times within
//! the clock skew.

use super::prelude::*;
use crate::evidence::HookCall;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use conformant_base::clock::Timestamp;
use conformant_base::redact::REDACTED;
use jsonwebtoken::{Algorithm, DecodingKey, crypto};

/// Seconds by which clocks may differ.
const SKEW: f64 = 5.0;
/// For how long after `exp` a service may still accept a token (RFC 7519, 4.1.4).
const LEEWAY: f64 = 300.0;
/// The only algorithm that tokens are verified with.
const ALGORITHM: &str = "HS256";

/// A token with this property registers its user, or does not.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenRegistration {
    /// The property of the token.
    token: TokenPart,
    /// How codes with tokens are shown and scanned.
    codes: Codes,
}

/// Codes with tokens: the hooks that show and scan them, and what a valid token contains.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Codes {
    /// The hook that shows a code.
    show: String,
    /// The hook that scans a code.
    scan: String,
    /// The argument of both hooks with the code.
    code: String,
    /// Pointer to the member of the scan's result that is true if the user was registered.
    registered: String,
    /// The setting of the service that describes the application.
    application: String,
    /// The member of the application with the scheme that codes begin with.
    scheme: String,
    /// The text of a code between the scheme and the token.
    path: String,
    /// The member of the application with the key that signs tokens.
    key: String,
    /// The type in a token's header.
    #[serde(rename = "type")]
    token_type: String,
    /// The claim with the user to register.
    user: String,
    /// The claim with the issuer.
    issuer: Claim,
    /// The claim with the application that the token is for.
    audience: Claim,
    /// The longest lifetime of a token, and the furthest expiry from now, in seconds.
    lifetime: f64,
}

/// A claim that has the value of a member of the application.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Claim {
    /// Where in the claims.
    at: String,
    /// The member of the application.
    is: String,
}

/// A property of a token: valid in one of two ways, or invalid for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum TokenPart {
    /// Valid.
    Good,
    /// Valid, with the longest lifetime.
    LongestLived,
    /// Signed with another algorithm, or unsigned.
    OtherAlgorithm,
    /// The header spells the algorithm in another letter case.
    AlgorithmInOtherCase,
    /// Of another type.
    OtherType,
    /// Signed with another key.
    OtherKey,
    /// Names another issuer, or none.
    OtherIssuer,
    /// Has no time of issue.
    NoIssue,
    /// Its lifetime is too long.
    TooLong,
    /// Expires too far from now, or never.
    TooFar,
    /// Expired within the leeway that services may allow.
    JustExpired,
    /// Expired before that.
    Expired,
    /// Names another application.
    OtherApplication,
}

impl Predicate for TokenRegistration {
    fn references(&self, references: &mut References) {
        references.hook("codes/show", &self.codes.show);
        references.hook("codes/scan", &self.codes.scan);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Hooks, Need::Configuration, Need::Clock]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let Some(application) =
            configured(context, &verdicts.rule.service, &self.codes.application)
        else {
            return;
        };
        let mut shown = BTreeSet::new();
        let mut scanned = BTreeSet::new();
        for (event, call) in context.evidence.hooks() {
            let (Ok(result), Some(qr)) = (&call.result, argument(call, &self.codes.code)) else {
                continue;
            };
            if call.name == self.codes.show {
                shown.insert(qr);
            }
            let registered = json::get(result, &self.codes.registered).and_then(Value::as_bool);
            let Some(registered) = registered.filter(|_| call.name == self.codes.scan) else {
                continue;
            };
            let Some(token) = Token::read(qr, application, &self.codes) else {
                continue;
            };
            // A second scan does not register the user again.
            let is_first = scanned.insert(token.of.clone());
            // Another scan at the same time may have been the first.
            let is_contended = call.race.is_some() && self.token.is_good();
            let is_judged = is_first && shown.contains(qr) && !is_contended;
            if !is_judged || token.like(application, call, &self.codes) != Some(self.token) {
                continue;
            }
            let wanted = self.token.is_good();
            let shown = |registered: bool| {
                let member = self.codes.registered.trim_start_matches('/');
                format!("{member}: {registered}")
            };
            let fact = Fact {
                kind: "registered",
                expected: shown(wanted),
                actual: shown(registered),
                message: format!(
                    "{} {} the user (`{}` returned {})",
                    self.token.words(),
                    match registered {
                        true => "registers",
                        false => "does not register",
                    },
                    self.codes.scan,
                    shown(registered)
                ),
            };
            let fact = (registered != wanted).then_some(fact);
            verdicts.conclude(Site::hook(event, self.codes.registered.clone()), fact);
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let other = json!(!self.token.is_good());
        Mutation::at(sites.last(), [Change::To(other)])
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        const REGISTERED: &str = "/registered";
        let rule = |token: &str| {
            let codes = json!({
                "show": "announce_registration", "scan": "scan_registration", "code": "qr",
                "registered": REGISTERED, "application": "application", "scheme": "scheme",
                "path": "://account?token=", "key": "api_key", "type": "JWT",
                "user": "/context/custom_user_id", "issuer": {"at": "/iss", "is": "name"},
                "audience": {"at": "/context/auth_app_id", "is": "id"}, "lifetime": 900,
            });
            let application = json!({"name": "Shop", "id": "1", "scheme": "shop", "api_key": "k"});
            let rule = Example::for_rule("auth", json!({"token": token, "codes": codes}));
            rule.configured(json!({"auth": {"application": application}}))
        };
        let claims = |issuer: &str, issued: i64, expires: i64| {
            json!({
                "iss": issuer, "iat": issued, "exp": expires,
                "context": {"custom_user_id": "u", "auth_app_id": "1"},
            })
        };
        let scanned = |token: &str, claims: &Value, key: &str, registered: bool| {
            let header = json!({"alg": "HS256", "typ": "JWT"});
            let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let message = format!("{}.{}", part(&header), part(claims));
            let key = jsonwebtoken::EncodingKey::from_secret(key.as_bytes());
            let signature = crypto::sign(message.as_bytes(), &key, Algorithm::HS256);
            let signature = signature.unwrap_or_default();
            let code = json!({"qr": format!("shop://account?token={message}.{signature}")});
            rule(token)
                .hook("announce_registration", code.clone(), json!({}))
                .hook("scan_registration", code, json!({"registered": registered}))
        };
        let valid = |token: &str, expires: i64, registered: bool| {
            scanned(token, &claims("Shop", 0, expires), "k", registered)
        };
        let foreign = claims("shop", 0, 600);
        vec![
            valid("good", 600, true).passes(),
            valid("good", 600, false).fails(REGISTERED),
            scanned("longest-lived", &claims("Shop", -5, 895), "k", true).passes(),
            scanned("longest-lived", &claims("Shop", -5, 895), "k", false).fails(REGISTERED),
            // A service whose clock is behind sees it expire too far from now.
            valid("longest-lived", 900, false).not_judged(),
            scanned("other-issuer", &foreign, "k", false).passes(),
            scanned("other-issuer", &foreign, "k", true).fails(REGISTERED),
            scanned("other-key", &claims("Shop", 0, 600), "another", true).fails(REGISTERED),
            // With two flaws, either may be the reason.
            scanned("other-issuer", &foreign, "another", true).not_judged(),
            valid("too-long", 901, true).fails(REGISTERED),
            // A token of the future may be valid.
            scanned("good", &claims("Shop", 300, 600), "k", false).not_judged(),
            // Clocks differ.
            valid("expired", 0, true).not_judged(),
            valid("just-expired", -60, true).fails(REGISTERED),
            valid("expired", -60, true).not_judged(),
            valid("expired", -600, true).fails(REGISTERED),
        ]
    }
}

impl TokenPart {
    const fn is_good(self) -> bool {
        matches!(self, Self::Good | Self::LongestLived)
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Good => "a valid token",
            Self::LongestLived => "a token with the longest lifetime",
            Self::OtherAlgorithm => "a token that is not signed with HS256",
            Self::AlgorithmInOtherCase => "a token that spells HS256 in another letter case",
            Self::OtherType => "a token of another type",
            Self::OtherKey => "a token that is not signed with the key of the application",
            Self::OtherIssuer => "a token that names another issuer or none",
            Self::NoIssue => "a token without a time of issue",
            Self::TooLong => "a token with too long a lifetime",
            Self::TooFar => "a token that expires too far from now",
            Self::JustExpired => "a token that expired less than five minutes ago",
            Self::Expired => "a token that expired more than five minutes ago",
            Self::OtherApplication => "a token for another application",
        }
    }
}

/// A setting of a service.
fn configured<'c>(context: &'c Context<'_>, service: &str, key: &str) -> Option<&'c Value> {
    context.evidence.configured.get(service)?.get(key)
}

/// An argument of a hook that is a text.
fn argument<'c>(call: &'c HookCall, name: &str) -> Option<&'c str> {
    call.arguments.get(name)?.as_str()
}

/// A token in a code.
struct Token<'c> {
    header: Value,
    claims: Value,
    message: &'c str,
    signature: &'c str,
    /// The user to register.
    of: String,
}

impl<'c> Token<'c> {
    fn read(qr: &'c str, application: &Value, codes: &Codes) -> Option<Self> {
        let scheme = application.get(&codes.scheme)?.as_str()?;
        let rest = qr.strip_prefix(scheme)?.strip_prefix(&*codes.path)?;
        let (message, signature) = rest.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let part = |text: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
            serde_json::from_slice::<Value>(&bytes).ok()
        };
        let claims = part(claims)?;
        let of = json::get(&claims, &codes.user)?;
        let of = of.as_str()?.to_owned();
        Some(Self {
            header: part(header)?,
            claims,
            message,
            signature,
            of,
        })
    }

    /// Its property; `None` if it is uncertain, or if there are several flaws.
    fn like(&self, application: &Value, call: &HookCall, codes: &Codes) -> Option<TokenPart> {
        let own = |name: &str| application.get(name).filter(|value| **value != REDACTED);
        let claim = |pointer: &str| json::get(&self.claims, pointer);
        let mut flaws = Vec::new();
        let algorithm = self
            .header
            .get("alg")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let is_own = algorithm.eq_ignore_ascii_case(ALGORITHM);
        match algorithm {
            ALGORITHM => {}
            _ if is_own => flaws.push(TokenPart::AlgorithmInOtherCase),
            _ => flaws.push(TokenPart::OtherAlgorithm),
        }
        if is_own && !self.is_signed_with(own(&codes.key)?.as_str()?) {
            flaws.push(TokenPart::OtherKey);
        }
        let differs =
            |value: Option<&Value>, wanted: &str| value.and_then(Value::as_str) != Some(wanted);
        if differs(self.header.get("typ"), &codes.token_type) {
            flaws.push(TokenPart::OtherType);
        }
        if differs(claim(&codes.issuer.at), own(&codes.issuer.is)?.as_str()?) {
            flaws.push(TokenPart::OtherIssuer);
        }
        if differs(
            claim(&codes.audience.at),
            own(&codes.audience.is)?.as_str()?,
        ) {
            flaws.push(TokenPart::OtherApplication);
        }
        let (issued, expires) = (number(claim("/iat")), number(claim("/exp")));
        if issued.is_none() {
            flaws.push(TokenPart::NoIssue);
        }
        let lifetime = expires
            .zip(issued)
            .map(|(expires, issued)| expires - issued);
        if lifetime.is_some_and(|lifetime| lifetime > codes.lifetime) {
            flaws.push(TokenPart::TooLong);
        }
        let (began, ended) = (seconds(call.span.began), seconds(call.span.ended));
        match expires {
            None => flaws.push(TokenPart::TooFar),
            Some(expires) if expires > ended + codes.lifetime + SKEW => {
                flaws.push(TokenPart::TooFar);
            }
            // A token issued now with the longest lifetime expires within the clock skew of the bound.
            Some(expires) if flaws.is_empty() && expires > began + codes.lifetime - SKEW => {
                return None;
            }
            Some(expires) if expires < began - LEEWAY - SKEW => flaws.push(TokenPart::Expired),
            Some(expires) if expires < began - SKEW => flaws.push(TokenPart::JustExpired),
            Some(expires) if expires < ended + SKEW => return None,
            Some(_) => {}
        }
        // No line says whether a token counts before its time of issue.
        let is_early = issued.is_some_and(|issued| issued > ended + SKEW);
        match (flaws.as_slice(), lifetime) {
            ([], _) if is_early => None,
            ([], Some(lifetime)) if lifetime >= codes.lifetime => Some(TokenPart::LongestLived),
            ([], Some(_)) => Some(TokenPart::Good),
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
