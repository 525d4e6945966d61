//! Envelope of a captured event: type, schema address and payload, at configurable pointers. The default is structured
//! CloudEvents 1.0.
//!
//! Nothing else of the envelope is judged, because the documents do not define it (D1, Events).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformant_base::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// JSON Pointers into an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Name of the type.
    pub type_at: String,
    /// Address of the payload's schema.
    pub schema_at: String,
    pub payload_at: String,
}

impl Default for Mapping {
    /// Structured JSON of CloudEvents 1.0.
    fn default() -> Self {
        Self {
            type_at: "/type".to_owned(),
            schema_at: "/dataschema".to_owned(),
            payload_at: "/data".to_owned(),
        }
    }
}

/// CloudEvents member for binary data, used instead of `payload_at`.
const BASE64_AT: &str = "/data_base64";
/// CloudEvents member for the time of the event, in any envelope.
const TIME_AT: &str = "/time";

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Envelope<'a> {
    pub(super) r#type: Option<String>,
    pub(super) schema: Option<String>,
    /// When it happened.
    pub(super) time: Option<String>,
    /// Text of the payload.
    pub(super) payload: Option<Cow<'a, [u8]>>,
}

/// Why a text contains no event.
#[derive(Debug, thiserror::Error)]
pub(super) enum EventError {
    #[error("not valid UTF-8 at byte {}", .0.valid_up_to())]
    Utf8(#[from] std::str::Utf8Error),
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("no object")]
    NoObject,
    #[error("{BASE64_AT} is not valid Base64: {0}")]
    Base64(#[from] base64::DecodeError),
    #[error("no type at {0}")]
    NoType(String),
    #[error("no payload at {0}")]
    NoPayload(String),
}

impl Mapping {
    /// The events of a text: one, or those of an array.
    pub(super) fn events<'a>(&self, text: &'a [u8]) -> Result<Vec<Envelope<'a>>, EventError> {
        let text = std::str::from_utf8(text)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let texts = if text.trim_start().starts_with('[') {
            serde_json::from_str::<Vec<&RawValue>>(text)?
        } else {
            vec![serde_json::from_str::<&RawValue>(text)?]
        };
        texts.into_iter().map(|text| self.event(text)).collect()
    }

    fn event<'a>(&self, event: &'a RawValue) -> Result<Envelope<'a>, EventError> {
        if !event.get().starts_with('{') {
            return Err(EventError::NoObject);
        }
        let string = |pointer: &str| {
            let text = at(event, pointer)?;
            serde_json::from_str::<String>(text.get()).ok()
        };
        let mut payload = at(event, &self.payload_at).map(|p| Cow::Borrowed(p.get().as_bytes()));
        if payload.is_none()
            && *self == Self::default()
            && let Some(bytes) = string(BASE64_AT)
        {
            payload = Some(Cow::Owned(STANDARD.decode(bytes)?));
        }
        Ok(Envelope {
            r#type: string(&self.type_at),
            schema: string(&self.schema_at),
            time: string(TIME_AT),
            payload,
        })
    }
}

/// The text at a pointer; for a duplicate member, the last one.
fn at<'a>(whole: &'a RawValue, pointer: &str) -> Option<&'a RawValue> {
    json::segments(pointer).try_fold(whole, |value, segment| {
        let text = value.get();
        if text.starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            items.get(segment.parse::<usize>().ok()?).copied()
        } else if text.starts_with('{') {
            let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            members.remove(&segment)
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(mapping: &Mapping, text: &str) -> (Option<String>, Option<String>, Option<String>) {
        let mut events = mapping.events(text.as_bytes()).unwrap();
        assert_eq!(events.len(), 1);
        let event = events.remove(0);
        let payload = event
            .payload
            .map(|p| String::from_utf8(p.into_owned()).unwrap());
        (event.r#type, event.schema, payload)
    }

    #[test]
    fn structured_events_are_found_in_any_order_and_as_bytes() {
        let cloud = Mapping::default();
        let text = r#"{"data":{"a":[1]},"x":{"type":"no"},"ty\u0070e":"t","dataschema":"s/1"}"#;
        assert_eq!(
            one(&cloud, text),
            (
                Some("t".to_owned()),
                Some("s/1".to_owned()),
                Some("{\"a\":[1]}".to_owned())
            )
        );
        let text = r#"{"type":"t","data_base64":"eyJhIjoxfQ=="}"#;
        assert_eq!(
            one(&cloud, text),
            (Some("t".to_owned()), None, Some("{\"a\":1}".to_owned()))
        );
        assert!(
            cloud
                .events(br#"{"type":"t","data_base64":"%"}"#)
                .unwrap_err()
                .to_string()
                .contains("Base64")
        );
        assert_eq!(one(&cloud, r#"{"type":7}"#), (None, None, None));
        let marked = one(&cloud, "\u{feff}{\"type\":\"t\"}");
        assert_eq!(marked, (Some("t".to_owned()), None, None));
    }

    #[test]
    fn an_array_contains_several_events_and_other_values_are_not_events() {
        let cloud = Mapping::default();
        let two = cloud.events(br#" [{"type":"a"},{"type":"b"}]"#).unwrap();
        assert_eq!(two.len(), 2);
        for text in ["7", "[7]", "{", "", "[[{}]]"] {
            assert!(cloud.events(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn other_envelopes_are_mapped() {
        let mapping = Mapping {
            type_at: "/meta/kinds/1".to_owned(),
            schema_at: "/meta/schema".to_owned(),
            payload_at: "/body/payload".to_owned(),
        };
        let text = r#"{"meta":{"schema":"s","kinds":["x","t"]},"body":{"payload":{"a":1}}}"#;
        assert_eq!(
            one(&mapping, text),
            (
                Some("t".to_owned()),
                Some("s".to_owned()),
                Some("{\"a\":1}".to_owned())
            )
        );
        assert_eq!(
            one(&mapping, r#"{"meta":1,"body":[1]}"#),
            (None, None, None)
        );
    }
}
