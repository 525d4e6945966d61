//! Registration tokens and QR codes (D1, Registration without personal data), decoded without trust and judged by the
//! rules of a registration.
//!
//! An unreadable part is a finding at its place.

use super::Surroundings;
use super::document::{DocumentJudge, made_of};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use conformant_base::json::{self, Limits};
use conformant_judge::Judgment;
use conformant_record::Finding;
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde_json::{Map, Value};

/// Maximum length of a token: a QR code contains less than half of it.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// An unreadable part of a token, with the reason.
#[derive(Debug)]
struct Unreadable {
    /// Pointer into the decoded token.
    pointer: &'static str,
    why: ReadError,
}

/// Why a text or a part of it is unreadable.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("it is empty")]
    Empty,
    #[error("{0} bytes where {TEXT_BYTES_MAX} are allowed")]
    TooLong(usize),
    #[error("not valid UTF-8 at byte {}", .0.valid_up_to())]
    Utf8(#[from] std::str::Utf8Error),
    #[error("an address in place of a token: judge the text of a QR code with --as qr")]
    Address,
    #[error("not an address: `://` is missing")]
    NoAddress,
    #[error("{}, expected three joined by dots", conformant_base::text::count(*.0, "part"))]
    Parts(usize),
    #[error("the signature is missing")]
    NoSignature,
    #[error("not base64url without padding: {0}")]
    Base64(#[from] base64::DecodeError),
    #[error("{0}")]
    Json(#[from] json::ParseFault),
}

/// Judges a registration token in its compact form.
pub fn judge_token(
    rulebook: &Rulebook,
    schemas: &Schemas,
    surroundings: &Surroundings,
    text: &str,
) -> Judgment {
    one(rulebook, schemas, surroundings).token(0, text.as_bytes())
}

/// Judges the text of a QR code with its token.
pub fn judge_qr(
    rulebook: &Rulebook,
    schemas: &Schemas,
    surroundings: &Surroundings,
    text: &str,
) -> Judgment {
    one(rulebook, schemas, surroundings).qr(0, text.as_bytes())
}

fn one<'a>(
    rulebook: &'a Rulebook,
    schemas: &'a Schemas,
    surroundings: &'a Surroundings,
) -> DocumentJudge<'a> {
    DocumentJudge {
        rulebook,
        schemas,
        surroundings,
        name: "",
    }
}

impl DocumentJudge<'_> {
    /// The resource type that a token is judged as.
    fn token_kind(&self) -> &str {
        let signed = self.rulebook.index.signed_token();
        signed.map_or("token", |(_, signed)| &signed.token)
    }

    /// The resource type that the text of a QR code is judged as.
    fn code_kind(&self) -> &str {
        let signed = self.rulebook.index.signed_token();
        signed.map_or("qr", |(_, signed)| &signed.code)
    }

    /// Decodes a registration token.
    pub(super) fn token(&self, line: usize, bytes: &[u8]) -> Judgment {
        match text(bytes) {
            Ok(text) if text.contains("://") => {
                let why = ReadError::Address.to_string();
                self.unreadable(self.token_kind(), line, &why)
            }
            Ok(text) => self.compact(line, text),
            Err(why) => self.unreadable(self.token_kind(), line, &why.to_string()),
        }
    }

    /// Decodes the text of a QR code with its token.
    pub(super) fn qr(&self, line: usize, bytes: &[u8]) -> Judgment {
        let text = match text(bytes) {
            Ok(text) => text,
            Err(why) => return self.unreadable(self.code_kind(), line, &why.to_string()),
        };
        let Some(address) = take_apart(text) else {
            return self.unreadable(self.code_kind(), line, &ReadError::NoAddress.to_string());
        };
        let token = address
            .get("token")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let mut judgment = self.payload(line, self.code_kind(), made_of(Value::Object(address)));
        // A text without the form of a token is reported once.
        if let Some(token) = token.filter(|token| token.split('.').count() == 3) {
            judgment.merge(self.compact(line, &token));
        }
        judgment
    }

    fn compact(&self, line: usize, text: &str) -> Judgment {
        let parts: Vec<&str> = text.split('.').collect();
        let [header, claims, signature] = parts[..] else {
            let why = ReadError::Parts(parts.len());
            return self.unreadable(self.token_kind(), line, &why.to_string());
        };
        let mut document = Map::new();
        let mut faults = Vec::new();
        for (pointer, part) in [("/header", header), ("/claims", claims)] {
            match json_part(part) {
                Ok(value) => {
                    document.insert(pointer[1..].to_owned(), value);
                }
                Err(why) => faults.push(Unreadable { pointer, why }),
            }
        }
        let message = &text[..text.len() - signature.len() - 1];
        match self.verify(document.get("header"), message, signature) {
            Ok(word) => {
                document.insert("signature".to_owned(), Value::from(word));
            }
            Err(why) => faults.push(Unreadable {
                pointer: "/signature",
                why,
            }),
        }
        let mut judgment = self.payload(line, self.token_kind(), made_of(Value::Object(document)));
        for finding in &mut judgment.findings {
            if let Some(fault) = faults.iter().find(|f| f.pointer == finding.pointer) {
                describe_fault(finding, fault);
            }
        }
        judgment
    }

    /// State of the signature: `valid`, `invalid`, or `unchecked` if the key is unknown or the algorithm already wrong; an
    /// error if it is unreadable.
    fn verify(
        &self,
        header: Option<&Value>,
        message: &str,
        signature: &str,
    ) -> Result<&'static str, ReadError> {
        let algorithm = header.and_then(|h| h.get("alg")).and_then(Value::as_str);
        if algorithm.is_some_and(|a| a != "HS256") {
            return Ok("unchecked");
        }
        if signature.is_empty() {
            return Err(ReadError::NoSignature);
        }
        decode(signature)?;
        let Some(key) = self.surroundings.api_key.as_deref() else {
            return Ok("unchecked");
        };
        let key = DecodingKey::from_secret(key.as_bytes());
        let fits = crypto::verify(signature, message.as_bytes(), &key, Algorithm::HS256);
        Ok(if fits.unwrap_or(false) {
            "valid"
        } else {
            "invalid"
        })
    }
}

fn text(bytes: &[u8]) -> Result<&str, ReadError> {
    if bytes.is_empty() {
        return Err(ReadError::Empty);
    }
    if bytes.len() > TEXT_BYTES_MAX {
        return Err(ReadError::TooLong(bytes.len()));
    }
    Ok(std::str::from_utf8(bytes)?)
}

/// `scheme://host?name=value` as an object of scheme, host and parameters.
fn take_apart(text: &str) -> Option<Map<String, Value>> {
    let (scheme, rest) = text.split_once("://")?;
    let (host, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut address = Map::new();
    address.insert("scheme".to_owned(), Value::from(scheme));
    address.insert("host".to_owned(), Value::from(host));
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        // A parameter with the name of an address part, or of an earlier parameter, gets another name.
        let name = if address.contains_key(&*name) {
            format!("{name}=")
        } else {
            name.into_owned()
        };
        address.insert(name, Value::from(value.into_owned()));
    }
    Some(address)
}

fn json_part(part: &str) -> Result<Value, ReadError> {
    let bytes = decode(part)?;
    Ok(json::parse(&bytes, Limits::default())?.value)
}

fn decode(part: &str) -> Result<Vec<u8>, ReadError> {
    Ok(URL_SAFE_NO_PAD.decode(part)?)
}

/// Reports an unreadable part, which is not just missing.
fn describe_fault(finding: &mut Finding, fault: &Unreadable) {
    finding.kind = "unreadable".to_owned();
    finding.expected = format!("{} as base64url", fault.pointer.trim_start_matches('/'));
    finding.actual = fault.why.to_string();
    finding.message = format!("{} cannot be read: {}", fault.pointer, fault.why);
    finding.diff.clear();
}

#[cfg(test)]
mod tests {
    use crate::{Checker, Kind, Surroundings};
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use conformant_base::clock::{Timestamp, VIRTUAL_START_MS};
    use conformant_judge::load::shared as rulebook;
    use jsonwebtoken::{Algorithm, EncodingKey, crypto};
    use serde_json::{Value, json};

    const KEY: &str = "the-production-key";
    const NOW: i64 = VIRTUAL_START_MS / 1000;

    #[test]
    fn a_json_document_is_not_judged_as_a_token() {
        for (kind, expected) in [
            (Kind::Token, "expected a token"),
            (Kind::Qr, "expected the text of a QR code"),
        ] {
            let mut checker = Checker::new(rulebook(), kind, Surroundings::default());
            let read = checker.file("a.json", &mut b"{\n  \"a\": 1\n}\n".as_slice());
            let error = read.expect_err("it is a document");
            assert!(error.is_usage());
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    fn found_as(kind: Kind, text: &str, api_key: Option<&str>) -> Vec<String> {
        let surroundings = Surroundings {
            configured: json!({"auth": {"application": {"name": "App", "id": "42", "scheme": "app"}}}),
            api_key: api_key.map(str::to_owned),
            now: Timestamp::from_second(NOW).ok(),
            ..Surroundings::default()
        };
        let mut checker = Checker::new(rulebook(), kind, surroundings);
        checker.file("token", &mut text.as_bytes()).unwrap();
        let (record, counts) = checker.finish();
        assert_eq!(counts.documents, 1);
        for finding in &record.findings {
            let listed = record.rules.iter().find(|r| r.id == finding.rule);
            assert!(
                listed.is_some_and(|r| r.findings > 0),
                "{} is not in the record",
                finding.rule
            );
        }
        let short = |rule: &str| rule.trim_start_matches("auth/registration-").to_owned();
        record
            .findings
            .iter()
            .map(|f| format!("{} {} {}", short(&f.rule), f.pointer, f.kind))
            .collect()
    }

    fn found(token: &str) -> Vec<String> {
        found_as(Kind::Token, token, Some(KEY))
    }

    fn claims() -> Value {
        json!({"iss": "App", "iat": NOW, "exp": NOW + 900, "context": {"custom_user_id": "u-1", "auth_app_id": 42}})
    }

    fn signed(header: &Value, claims: &Value, key: &str, algorithm: Algorithm) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = crypto::sign(
            message.as_bytes(),
            &EncodingKey::from_secret(key.as_bytes()),
            algorithm,
        )
        .unwrap();
        format!("{message}.{signature}")
    }

    /// A token with this header.
    fn headed(header: &Value, key: &str, algorithm: Algorithm) -> String {
        signed(header, &claims(), key, algorithm)
    }

    /// The header of a valid token.
    fn header() -> Value {
        json!({"alg": "HS256", "typ": "JWT"})
    }

    fn changed(change: impl FnOnce(&mut Value)) -> String {
        let mut claims = claims();
        change(&mut claims);
        signed(&header(), &claims, KEY, Algorithm::HS256)
    }

    const SILENT: [&str; 0] = [];

    #[test]
    fn a_valid_token_breaks_nothing() {
        let valid = changed(|_| {});
        assert_eq!(found(&valid), SILENT);
        assert_eq!(found(&format!("{valid}\n")), SILENT);
        let spelled = changed(|c| c["context"]["auth_app_id"] = json!("42"));
        assert_eq!(found(&spelled), SILENT);
        // Further claims and fractions of seconds are legal.
        let free = changed(|c| {
            c["jti"] = json!("x");
            c["context"]["more"] = json!([1]);
            c["iat"] = serde_json::from_str(&format!("{NOW}.25")).unwrap();
            c["exp"] = serde_json::from_str(&format!("{}.25", NOW + 900)).unwrap();
        });
        assert_eq!(found(&free), SILENT);
    }

    #[test]
    fn only_hs256_signs_a_token_and_its_type_is_jwt() {
        let header = |algorithm: &str, kind: &str| json!({"alg": algorithm, "typ": kind});
        let other = headed(&header("HS384", "JWT"), KEY, Algorithm::HS384);
        assert_eq!(found(&other), ["token/header/alg /header/alg enum"]);
        let signed = headed(&header("none", "JWT"), KEY, Algorithm::HS256);
        let unsigned = &signed[..=signed.rfind('.').unwrap()];
        assert_eq!(found(unsigned), ["token/header/alg /header/alg enum"]);
        let other = headed(&header("HS256", "JWS"), KEY, Algorithm::HS256);
        assert_eq!(found(&other), ["token/header/typ /header/typ enum"]);
        let without = headed(&json!({"alg": "HS256"}), KEY, Algorithm::HS256);
        let missing = ["token/header/typ /header/typ missing-field"];
        assert_eq!(found(&without), missing);
    }

    #[test]
    fn the_key_is_the_applications() {
        let other = headed(&header(), "another", Algorithm::HS256);
        assert_eq!(found(&other), ["token/signature /signature enum"]);
        assert_eq!(found_as(Kind::Token, &other, None), SILENT);
    }

    #[test]
    fn issuer_and_application_are_the_configured_ones() {
        let other = changed(|c| c["iss"] = json!("Other"));
        let issuer = "token/issuer-is-application /claims/iss configured";
        assert_eq!(found(&other), [issuer]);
        let other = changed(|c| c["context"]["auth_app_id"] = json!(43));
        let application = "token/application-id /claims/context/auth_app_id configured";
        assert_eq!(found(&other), [application]);
    }

    #[test]
    fn fifteen_minutes_are_counted_in_seconds_from_issue_and_from_now() {
        for (issued, expires, wrong) in [
            (NOW - 1, NOW + 900, "token/lifetime /claims/exp too-late"),
            (
                NOW + 600,
                NOW + 1500,
                "token/expiry-bound /claims/exp too-late",
            ),
            (
                NOW - 900,
                NOW - 60,
                "token/not-expired /claims/exp too-late",
            ),
            (
                NOW * 1000,
                NOW + 900,
                "token/issued-in-seconds /claims/iat bound",
            ),
        ] {
            let token = changed(|c| {
                c["iat"] = json!(issued);
                c["exp"] = json!(expires);
            });
            assert_eq!(found(&token), [wrong]);
        }
    }

    #[test]
    fn an_identifier_is_not_personal_data() {
        let named = |id: &str| {
            let token = changed(|c| c["context"]["custom_user_id"] = json!(id));
            found(&token)
        };
        // Common spellings.
        for id in [
            "a@b.example",
            "mailto:a@b.example",
            "Ann <a@b.example>",
            "+12015550123",
            "+1 201-555-0123",
            "tel:+12015550123",
            "(201) 555-0123",
            "1-201-555-0123",
            "201.555.0123",
            "078-05-1120",
            "078 05 1120",
            "ssn:078-05-1120",
            "SSN 078051120",
            "user 078-05-1120",
            "tel 201 555 0123",
            "phone:+12015550123",
            "phone=2015550123",
        ] {
            let expected = ["token/no-personal-data /claims/context/custom_user_id shape"];
            assert_eq!(named(id), expected, "{id}");
        }
        // Identifiers of an application may contain numbers and dates.
        for id in [
            "2015550123",
            "2026-11-23-0001",
            "u-5",
            "user@",
            "user-1234567",
            "phone-1234567",
            "tel-1767225600",
            "a-078-05-1120",
        ] {
            assert_eq!(named(id), SILENT, "{id}");
        }
    }

    #[test]
    fn a_blank_file_is_an_error_of_usage() {
        for text in ["", " \n"] {
            let mut checker = Checker::new(rulebook(), Kind::Token, Surroundings::default());
            let error = checker.file("token", &mut text.as_bytes()).unwrap_err();
            assert!(error.is_usage(), "{error}");
            assert_eq!(error.to_string(), "token is empty, expected a token");
        }
    }

    #[test]
    fn unreadable_parts_are_reported_at_their_place() {
        let whole = changed(|_| {});
        let parts: Vec<&str> = whole.split('.').collect();
        let (header, claims, signature) = (parts[0], parts[1], parts[2]);
        for (text, wanted) in [
            ("no token".to_owned(), "token/header  unreadable"),
            (format!("{header}.{claims}"), "token/header  unreadable"),
            (format!("{whole}.x"), "token/header  unreadable"),
            (
                format!("{header}.{claims}."),
                "token/signature /signature unreadable",
            ),
            (
                format!("{header}.{claims}.{}", &signature[..20]),
                "token/signature /signature enum",
            ),
            (
                format!("{header}.{claims}.+/="),
                "token/signature /signature unreadable",
            ),
            (
                format!("{header}.{}.{signature}", &claims[..claims.len() / 2]),
                "token/claims /claims unreadable",
            ),
            (
                format!("{header}.b m.{signature}"),
                "token/claims /claims unreadable",
            ),
            (
                format!("{}.{claims}.{signature}", URL_SAFE_NO_PAD.encode("[")),
                "token/header /header unreadable",
            ),
            (
                format!("{}.{claims}.{signature}", URL_SAFE_NO_PAD.encode("[]")),
                "token/header /header type",
            ),
            (
                "\u{0}\u{1}.\u{2}.\u{3}".to_owned(),
                "token/header /header unreadable",
            ),
            ("x".repeat(100_000), "token/header  unreadable"),
        ] {
            let found = found(&text);
            assert!(found.iter().any(|f| f == wanted), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_qr_string_is_an_address_with_a_token() {
        let qr = |text: String| found_as(Kind::Qr, &text, Some(KEY));
        let whole = changed(|_| {});
        assert_eq!(qr(format!("app://account?token={whole}")), SILENT);
        let other = changed(|c| c["iss"] = json!("Other"));
        for (text, wrong) in [
            (
                format!("other://account?token={whole}"),
                "qr/scheme-is-application /scheme configured",
            ),
            (format!("app://user?token={whole}"), "qr/host /host enum"),
            ("app://account".to_owned(), "qr/token /token missing-field"),
            (
                "app://account?token=abc".to_owned(),
                "qr/token /token pattern",
            ),
            (
                format!("app://account?token={whole}&x=1"),
                "qr/no-other-fields /x extra-field",
            ),
            (
                format!("app://account?token={whole}&token={whole}"),
                "qr/no-other-fields /token= extra-field",
            ),
            (whole.clone(), "qr/scheme  unreadable"),
            (
                format!("app://account?token={other}"),
                "token/issuer-is-application /claims/iss configured",
            ),
        ] {
            assert_eq!(qr(text), [wrong]);
        }
    }
}
