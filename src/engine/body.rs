//! Answers as documents: JSON under limits, XML brought into the same shape.

use crate::http::Response;
use crate::json::{self, Limits};
use crate::judge::evidence::Body;
use crate::rulebook::Kind;
use crate::{text, xml};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// How much of an unreadable body a message shows.
const EXCERPT_BYTES: usize = 200;

/// Reads an answer's body; `kind` says how XML texts are typed.
pub(crate) fn read(response: &Response, kind: Option<&Kind>) -> Body {
    if response.body.is_empty() {
        return Body::Empty;
    }
    let media_type = response.headers.media_type().unwrap_or_default();
    if media_type.ends_with("/xml") || media_type.ends_with("+xml") {
        return match xml::to_value(&response.body, kind.map(|k| &k.schema)) {
            Ok(value) => Body::Document { value: Arc::new(value), notes: Vec::new() },
            Err(why) => Body::Unreadable(format!("with XML that cannot be read: {why}")),
        };
    }
    match json::parse(&response.body, Limits::default()) {
        Ok(parsed) => Body::Document {
            value: Arc::new(parsed.value),
            notes: parsed.notes.iter().map(ToString::to_string).collect(),
        },
        Err(fault) => {
            let start = String::from_utf8_lossy(&response.body[..response.body.len().min(EXCERPT_BYTES)]);
            let shown = media_type_or(&media_type);
            Body::Unreadable(format!("with {shown} in place of JSON ({fault}): {}", text::escape_line(&start)))
        }
    }
}

/// What `get` keeps of an answer.
pub(super) fn view(response: &Response) -> Value {
    let sha256: String = Sha256::digest(&response.body).iter().map(|b| format!("{b:02x}")).collect();
    json!({
        "status": response.status,
        "content_type": response.headers.media_type(),
        "size": response.body.len(),
        "sha256": sha256,
        "text": std::str::from_utf8(&response.body).ok(),
    })
}

fn media_type_or(media_type: &str) -> String {
    if media_type.is_empty() { "no media type".to_owned() } else { text::escape_line(media_type).into_owned() }
}
