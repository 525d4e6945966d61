//! Answers as documents: JSON under limits, XML brought into the same shape.

use crate::http::Response;
use crate::json::{self, Limits};
use crate::judge::evidence::Body;
use crate::rulebook::{Kind, Operation};
use crate::{text, xml};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// How much of an unreadable body a message shows.
const EXCERPT_BYTES: usize = 200;

/// Reads the body of an answer as it came over the wire, where a coding stands in the way.
pub(super) fn receive(response: &Response, operation: &Operation, kind: Option<&Kind>) -> Body {
    match foreign_coding(response) {
        Some(coding) if !response.body.is_empty() => Body::Unreadable(format!(
            "with Content-Encoding {coding}, which nobody asked for"
        )),
        Some(_) | None => read(response, operation, kind),
    }
}

/// Reads the body of an answer to `operation`; `kind` says how XML texts are typed.
pub(crate) fn read(response: &Response, operation: &Operation, kind: Option<&Kind>) -> Body {
    if response.body.is_empty() {
        return Body::Empty;
    }
    let media_type = response.headers.media_type().unwrap_or_default();
    let is_xml = media_type.ends_with("/xml") || media_type.ends_with("+xml");
    if is_xml && operation.service == xml::SERVICE {
        return match xml::to_value(&response.body, kind.map(|k| &k.schema)) {
            Ok(value) => Body::Document {
                value: Arc::new(value),
                notes: Vec::new(),
            },
            Err(why) => Body::Unreadable(format!("with XML that cannot be read: {why}")),
        };
    }
    match json::parse(&response.body, Limits::default()) {
        Ok(parsed) => Body::Document {
            value: Arc::new(parsed.value),
            notes: parsed.notes,
        },
        Err(fault) => {
            let start =
                String::from_utf8_lossy(&response.body[..response.body.len().min(EXCERPT_BYTES)]);
            let shown = media_type_or(&media_type);
            Body::Unreadable(format!(
                "with {shown} in place of JSON ({fault}): {}",
                text::escape_line(&start)
            ))
        }
    }
}

/// A coding of the body. None is asked for, so none is undone.
fn foreign_coding(response: &Response) -> Option<String> {
    let coding = response.headers.get("Content-Encoding")?.trim();
    let plain = coding.is_empty() || coding.eq_ignore_ascii_case("identity");
    (!plain).then(|| text::escape_line(&text::excerpt(coding, EXCERPT_BYTES)).into_owned())
}

/// What `get` keeps of an answer.
pub(super) fn view(response: &Response) -> Value {
    let sha256: String = Sha256::digest(&response.body)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    json!({
        "status": response.status,
        "content_type": response.headers.media_type(),
        "size": response.body.len(),
        "sha256": sha256,
        "text": std::str::from_utf8(&response.body).ok(),
        "json": json::parse(&response.body, Limits::default()).ok().map(|parsed| parsed.value),
    })
}

fn media_type_or(media_type: &str) -> String {
    if media_type.is_empty() {
        "no media type".to_owned()
    } else {
        text::escape_line(media_type).into_owned()
    }
}
