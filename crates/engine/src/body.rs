//! Response bodies as documents: JSON within limits, and XML mapped to the same shape.

use conformant_base::http::Response;
use conformant_base::json::{self, Limits};
use conformant_base::text;
use conformant_judge::evidence::Body;
use conformant_rulebook::xml;
use conformant_rulebook::{Kind, Operation};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::Read as _;
use std::sync::Arc;

/// The longest excerpt of an unreadable body in a message.
const EXCERPT_BYTES: usize = 200;

/// Largest decoded body.
const DECODED_BYTES_MAX: usize = 10 * 1024 * 1024;

/// The response without its content coding, if that is gzip. Only the beginning of a body above the limit is decoded.
pub(super) fn decoded(mut response: Response) -> Response {
    let coding = content_coding(&response).unwrap_or_default();
    if !["gzip", "x-gzip"].contains(&coding.to_ascii_lowercase().as_str()) {
        return response;
    }
    let mut body = Vec::new();
    let decoder = flate2::read::MultiGzDecoder::new(response.body.as_slice());
    // One more byte shows that the body is too large.
    let mut limited = decoder.take(DECODED_BYTES_MAX as u64 + 1);
    if limited.read_to_end(&mut body).is_ok() {
        response.body = body;
        response.headers.remove("Content-Encoding");
        response
            .oddities
            .push("gzip, which was not requested".to_owned());
    }
    response
}

/// Reads the body of a received response. A content coding makes it unreadable.
pub(super) fn receive(response: &Response, operation: &Operation, kind: Option<&Kind>) -> Body {
    match content_coding(response) {
        Some(coding) if !response.body.is_empty() => Body::Unreadable(format!(
            "with Content-Encoding {coding}, which was not requested"
        )),
        Some(_) | None => read(response, operation, kind),
    }
}

/// Reads the body of an answer to `operation`; `kind` determines the types of XML texts.
pub fn read(response: &Response, operation: &Operation, kind: Option<&Kind>) -> Body {
    if response.body.is_empty() {
        return Body::Empty;
    }
    // No document states a media type: what the body begins with decides.
    let media_type = response.headers.media_type().unwrap_or_default();
    let mut characters = response.body.iter().filter(|b| b.is_ascii_graphic());
    let is_xml = characters.next() == Some(&b'<') && !begins_as_page(&response.body);
    if is_xml && operation.has_xml {
        return match xml::to_value(&response.body, kind.map(|k| &k.schema)) {
            Ok(value) => Body::of(value),
            Err(why) => Body::Unreadable(format!("with XML that cannot be read: {why}")),
        };
    }
    match json::parse(&response.body, Limits::default()) {
        Ok(mut parsed) => {
            name_list(&mut parsed.value, operation);
            Body::Document {
                value: Arc::new(parsed.value),
                notes: parsed.notes,
            }
        }
        Err(fault) => {
            let start =
                String::from_utf8_lossy(&response.body[..response.body.len().min(EXCERPT_BYTES)]);
            let what = match media_type_or(&media_type) {
                shown if shown.ends_with("json") => "JSON that cannot be read".to_owned(),
                shown => format!("{shown} in place of JSON"),
            };
            Body::Unreadable(format!(
                "with {what} ({fault}): {}",
                text::escape_line(&start)
            ))
        }
    }
}

/// Whether a body begins as an HTML document does, with or without an XML declaration.
pub(crate) fn begins_as_page(body: &[u8]) -> bool {
    let start =
        String::from_utf8_lossy(&body[..body.len().min(EXCERPT_BYTES)]).to_ascii_lowercase();
    let start = start.trim_start_matches(|c: char| !c.is_ascii_graphic());
    let start = match start.strip_prefix("<?xml") {
        Some(declaration) => declaration.split_once("?>").map_or("", |(_, rest)| rest),
        None => start,
    };
    let start = start.trim_start();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// Where no document shows the key of a list, the key is the value of `meta.key` (D2, Paging). The items are moved to
/// the key of the rulebook.
fn name_list(page: &mut Value, operation: &Operation) {
    let Some(key) = operation
        .list_key
        .as_deref()
        .filter(|_| operation.is_list_key_undocumented)
    else {
        return;
    };
    let sent_key = page.pointer("/meta/key").and_then(Value::as_str);
    let sent_key = sent_key
        .filter(|sent_key| *sent_key != key)
        .map(str::to_owned);
    let (Some(sent_key), Some(members)) = (sent_key, page.as_object_mut()) else {
        return;
    };
    if members.contains_key(key) || !members.get(&sent_key).is_some_and(Value::is_array) {
        return;
    }
    if let Some(items) = members.remove(&sent_key) {
        members.insert(key.to_owned(), items);
        members["meta"]["key"] = json!(key);
    }
}

/// A content coding. None is requested, so none is decoded.
fn content_coding(response: &Response) -> Option<String> {
    let coding = response.headers.get("Content-Encoding")?.trim();
    let plain = coding.is_empty() || coding.eq_ignore_ascii_case("identity");
    (!plain).then(|| text::escape_line(&text::excerpt(coding, EXCERPT_BYTES)).into_owned())
}

/// The result of `get` for later steps.
pub(super) fn view(response: &Response) -> Value {
    json!({
        "status": response.status,
        "content_type": response.headers.media_type(),
        "size": response.body.len(),
        "sha256": text::hex(Sha256::digest(&response.body)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_decides_whether_it_is_a_page() {
        for page in [
            "<!DOCTYPE html><p>",
            "\u{feff} <HTML lang=en>",
            "<?xml version=\"1.0\"?>\n<html/>",
        ] {
            assert!(begins_as_page(page.as_bytes()), "{page}");
        }
        for document in ["", "{}", "<hash/>", "<?xml version=\"1.0\"?><hash/>"] {
            assert!(!begins_as_page(document.as_bytes()), "{document}");
        }
        let rulebook = conformant_judge::load::shared();
        let operation = rulebook
            .operation("auth", "poll-registration-status")
            .unwrap();
        let answer = Response::new(200, "text/html", "<hash><success>true</success></hash>");
        assert!(matches!(
            read(&answer, operation, None),
            Body::Document { .. }
        ));
    }

    #[test]
    fn a_list_with_an_undocumented_key_is_found_by_its_meta_key() {
        let rulebook = conformant_judge::load::shared();
        let named = |operation: &str, page: Value| {
            let operation = rulebook.operation("chat", operation).unwrap();
            let mut page = page;
            name_list(&mut page, operation);
            page
        };
        let own = json!({"meta": {"key": "subscriptions"}, "subscriptions": [1]});
        let ours = json!({"meta": {"key": "bindings"}, "bindings": [1]});
        assert_eq!(named("read-bindings", own.clone()), ours);
        assert_eq!(named("read-bindings", ours.clone()), ours);
        assert_eq!(
            named("read-user-bindings", own.clone()),
            own,
            "this key is shown"
        );
        let false_key = json!({"meta": {"key": "items"}, "bindings": [1]});
        assert_eq!(named("read-bindings", false_key.clone()), false_key);
    }
}
