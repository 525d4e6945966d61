//! Redacts secrets in evidence before it is compressed.

use conformant_base::redact::{REDACTED, Redactor, is_secret_header, is_secret_parameter};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, crypto};
use serde_json::Value;

/// Replaces the application's key, because the signature of tokens is judged.
const KEY_STAND_IN: &str = "[stands for the key]";
/// How the base64 of every JSON Web Token begins.
const JWT_START: &str = "eyJ";

/// Redacts the texts of a JSON document. The result is valid JSON.
pub(super) fn redacted(json: &str, redactor: &Redactor, key: Option<&str>) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    // The member name precedes its value.
    let mut name = String::new();
    while let Some(start) = rest.find('"') {
        let length = literal_length(&rest[start..]);
        let (before, literal) = (&rest[..start], &rest[start..start + length]);
        rest = &rest[start + length..];
        // As the value of a member, or after a header field's name in a list.
        let is_secret = match before {
            ":" => is_secret_parameter(&name) || is_secret_header(&name),
            "," => is_secret_header(&name),
            _ => false,
        };
        out.push_str(before);
        let plain = &literal[1..literal.len() - 1];
        let has_escapes = plain.contains('\\');
        let text = match has_escapes {
            true => serde_json::from_str(literal).unwrap_or_else(|_| plain.to_owned()),
            false => plain.to_owned(),
        };
        let kept = match text.contains(JWT_START) {
            true => without_secrets(&text, redactor, key).into(),
            false if is_secret && Some(text.as_str()) == key => KEY_STAND_IN.into(),
            // A text from a configuration file only contains the name of a variable.
            false if is_secret && !text.contains("${") => REDACTED.into(),
            false => redactor.redact(&text),
        };
        if kept == text {
            out.push_str(literal);
        } else {
            out.push_str(&Value::from(kept.as_ref()).to_string());
        }
        name = text;
    }
    out.push_str(rest);
    out
}

/// A text without its secrets. The contents of a JSON Web Token stay, because they are judged. A token signed with the
/// application's key is signed again with the stand-in.
fn without_secrets(text: &str, redactor: &Redactor, key: Option<&str>) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(JWT_START) {
        let length = rest[start..].find(|c| !is_part(c));
        let end = length.map_or(rest.len(), |length| start + length);
        let (before, token) = (&rest[..start], &rest[start..end]);
        rest = &rest[end..];
        out.push_str(&redactor.redact(before));
        match token.rsplit_once('.') {
            Some((message, signature)) => {
                out.push_str(&redactor.redact(message));
                out.push('.');
                out.push_str(&signature_kept(message, signature, key));
            }
            None => out.push_str(&redactor.redact(token)),
        }
    }
    out.push_str(&redactor.redact(rest));
    out
}

fn signature_kept(message: &str, signature: &str, key: Option<&str>) -> String {
    let own = key.map(|key| DecodingKey::from_secret(key.as_bytes()));
    let is_own = own.is_some_and(|own| {
        crypto::verify(signature, message.as_bytes(), &own, Algorithm::HS256).unwrap_or_default()
    });
    let stand_in = EncodingKey::from_secret(KEY_STAND_IN.as_bytes());
    is_own
        .then(|| crypto::sign(message.as_bytes(), &stand_in, Algorithm::HS256).ok())
        .flatten()
        .unwrap_or_else(|| REDACTED.to_owned())
}

/// The length of the JSON text that begins there, with quotes.
fn literal_length(json: &str) -> usize {
    let bytes = json.as_bytes();
    let mut at = 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at.min(bytes.len())..]) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}
