//! Serializes bodies: as text if they are text, otherwise in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredBody<'b> {
    Text(Cow<'b, str>),
    Base64(String),
}

pub(super) fn serialize<S: Serializer>(body: &[u8], to: S) -> Result<S::Ok, S::Error> {
    match std::str::from_utf8(body) {
        Ok(text) => StoredBody::Text(Cow::Borrowed(text)),
        Err(_) => StoredBody::Base64(STANDARD.encode(body)),
    }
    .serialize(to)
}

/// Invalid base64 is kept as it is: redaction may have removed a part.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    Ok(match StoredBody::deserialize(from)? {
        StoredBody::Text(text) => text.into_owned().into_bytes(),
        StoredBody::Base64(text) => STANDARD.decode(&text).unwrap_or_else(|_| text.into_bytes()),
    })
}
