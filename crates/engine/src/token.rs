//! Registration tokens and QR strings as an application builds them (D1, Registration without personal data), and
//! invalid ones.

use super::boundary::BoundaryChange;
use super::settings::Settings;
use super::stop::Stop;
use super::template::{Scope, duration};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use conformant_base::clock::Timestamp;
use conformant_rulebook::scenario::TokenSpec;
use conformant_rulebook::service::APPLICATION;
use jsonwebtoken::{Algorithm, EncodingKey, crypto};
use serde_json::{Value, json};

/// Default time of issue. Clocks may differ by five seconds, and no line says whether a token counts before its time of issue.
const ISSUED_DEFAULT: &str = "-5s";
/// Default expiry of a token; the document allows a lifetime of 15 minutes.
const LIFETIME_DEFAULT: &str = "10m";

/// Builds `{token, qr, header, claims}`.
pub(super) fn build(
    spec: &TokenSpec,
    scope: &Scope<'_>,
    settings: &Settings,
    now: Timestamp,
) -> Result<Value, Stop> {
    let mut targets = settings.targets.values();
    let application = targets.find_map(|target| target.values.get(APPLICATION));
    let configured = |key: &str| {
        application
            .and_then(|a| a.get(key))
            .and_then(Value::as_str)
            .map(str::to_owned)
            .ok_or_else(|| {
                let service = settings.index.token_reader().unwrap_or("SERVICE");
                Stop::NotApplicable(format!(
                    "not configured: targets.{service}.{APPLICATION}.{key}"
                ))
            })
    };
    let filled = |text: &Option<String>| -> Result<Option<String>, Stop> {
        match text {
            None => Ok(None),
            Some(text) => Ok(scope.fill_text(text)?.as_str().map(str::to_owned)),
        }
    };
    let at = |text: &str| {
        let shift = duration(text).ok_or_else(|| Stop::Error(format!("not a duration: {text}")))?;
        let at = now
            .checked_add(shift)
            .map_err(|e| Stop::Error(e.to_string()))?;
        Ok::<_, Stop>(numeric(at, spec.fraction))
    };
    let or_configured = |value: Option<String>, key: &str| match value {
        Some(value) => Ok(value),
        None => configured(key),
    };
    let algorithm = filled(&spec.algorithm)?.unwrap_or_else(|| "HS256".to_owned());
    let header = json!({
        "alg": algorithm,
        "typ": filled(&spec.typ)?.unwrap_or_else(|| "JWT".to_owned()),
    });
    let mut issuer = or_configured(filled(&spec.issuer)?, "name")?;
    if let Some(by) = filled(&spec.issuer_near)? {
        let near = BoundaryChange::named(&by);
        let near =
            near.ok_or_else(|| Stop::Error(format!("unknown change of `issuer-near`: {by}")))?;
        issuer = near.apply(&issuer);
    }
    let mut claims = json!({
        "iss": issuer,
        "iat": at(spec.issued.as_deref().unwrap_or(ISSUED_DEFAULT))?,
        "exp": at(spec.expires.as_deref().unwrap_or(LIFETIME_DEFAULT))?,
        "context": {
            "custom_user_id": filled(&spec.custom_user_id)?,
            "auth_app_id": or_configured(filled(&spec.auth_app_id)?, "id")?,
        },
    });
    if let Some(claims) = claims.as_object_mut() {
        claims.extend(spec.claims.clone());
        if let Some(claim) = filled(&spec.without)? {
            claims.remove(&claim);
        }
    }
    let key = match filled(&spec.key)? {
        Some(key) => key,
        None if spec.wrong_key => "not-the-application-key".to_owned(),
        None => configured("api_key")?,
    };
    let signed = |claims: &Value| {
        sign(&header, claims, &algorithm, &key).map_err(|e| Stop::Error(e.to_string()))
    };
    let mut token = signed(&claims)?;
    if let Some(how) = filled(&spec.signature)? {
        let mut others = claims.clone();
        others["context"]["custom_user_id"] = json!("another");
        token = forged(&how, &token, &signed(&others)?)
            .ok_or_else(|| Stop::Error(format!("unknown signature: {how}")))?;
    }
    let qr = format!("{}://account?token={token}", configured("scheme")?);
    Ok(json!({"token": token, "qr": qr, "header": header, "claims": claims}))
}

/// A registration that an application offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The signed token in compact form.
    pub token: String,
    /// The text of the QR code.
    pub qr: String,
}

/// The properties of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// Its name, used as issuer.
    pub name: String,
    pub id: String,
    /// The scheme of its QR codes.
    pub scheme: String,
    /// Its production API key.
    pub api_key: String,
}

impl Application {
    /// Builds the token of one user, valid from now on for this duration.
    pub fn offer(
        &self,
        custom_user_id: &str,
        lifetime: jiff::SignedDuration,
        now: Timestamp,
    ) -> Result<Offer, TokenError> {
        let expires = now.checked_add(lifetime)?;
        let header = json!({"alg": "HS256", "typ": "JWT"});
        let claims = json!({
            "iss": self.name,
            "iat": now.as_second(),
            "exp": expires.as_second(),
            "context": {"custom_user_id": custom_user_id, "auth_app_id": self.id},
        });
        let token = sign(&header, &claims, "HS256", &self.api_key)?;
        let qr = format!("{}://account?token={token}", self.scheme);
        Ok(Offer { token, qr })
    }
}

/// Why no token could be built.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Its expiry is out of range.
    #[error(transparent)]
    Lifetime(#[from] jiff::Error),
    /// Unknown algorithm.
    #[error("unknown token algorithm: {0}")]
    Algorithm(String),
    /// The signature failed.
    #[error("the token could not be signed: {0}")]
    Unsigned(#[from] jsonwebtoken::errors::Error),
}

/// A date in a token, optionally with a fraction (RFC 7519).
fn numeric(at: Timestamp, fraction: bool) -> Value {
    if fraction {
        json!(at.as_duration().as_secs_f64().floor() + 0.25)
    } else {
        json!(at.as_second())
    }
}

/// The token with another signature.
fn forged(how: &str, token: &str, another: &str) -> Option<String> {
    let (message, signature) = token.rsplit_once('.')?;
    let signature = match how {
        "empty" => "",
        "cut" => signature.get(..signature.len() / 2)?,
        "another" => another.rsplit_once('.')?.1,
        _ => return None,
    };
    Some(format!("{message}.{signature}"))
}

fn sign(header: &Value, claims: &Value, algorithm: &str, key: &str) -> Result<String, TokenError> {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(header), part(claims));
    let algorithm = match algorithm {
        none if none.eq_ignore_ascii_case("none") => return Ok(format!("{message}.")),
        "HS384" => Algorithm::HS384,
        "HS512" => Algorithm::HS512,
        "HS256" | "hs256" => Algorithm::HS256,
        other => return Err(TokenError::Algorithm(other.to_owned())),
    };
    let signature = crypto::sign(
        message.as_bytes(),
        &EncodingKey::from_secret(key.as_bytes()),
        algorithm,
    )?;
    Ok(format!("{message}.{signature}"))
}
