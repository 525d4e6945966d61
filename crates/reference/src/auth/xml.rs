//! Converts JSON values to XML documents with the same data.
//!
//! The XML format is not shown (D1, Endpoints): one element per field, repeated elements for lists, types as
//! attributes.

use quick_xml::Writer;
use quick_xml::escape::escape;
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use quick_xml::name::QName;
use serde_json::Value;
use std::io;

/// Attributes of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Root `hash`; `type` and `nil` attributes on values that are not strings.
    Typed,
    /// Root `response`; text only.
    Plain,
    /// As plain, without escaping: a fault.
    Raw,
}

pub(super) fn document(style: Style, body: &Value) -> String {
    let mut writer = Writer::new(Vec::new());
    let root = match style {
        Style::Typed => "hash",
        Style::Plain | Style::Raw => "response",
    };
    writer
        .write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))
        .and_then(|()| element(&mut writer, style, root, body))
        .expect("writing to memory does not fail");
    String::from_utf8(writer.into_inner()).expect("the writer was given UTF-8")
}

fn element(
    writer: &mut Writer<Vec<u8>>,
    style: Style,
    name: &str,
    value: &Value,
) -> io::Result<()> {
    // A key of `hidden_details` may be any text, unlike an element name.
    let tag = if is_name(name) { name } else { "entry" };
    let mut start = BytesStart::new(tag);
    if tag != name {
        // White space in an attribute would be read as spaces (XML 1.0, 3.3.3).
        let key = escape(legible(name).as_str())
            .replace('\t', "&#9;")
            .replace('\n', "&#10;")
            .replace('\r', "&#13;");
        start.push_attribute(Attribute {
            key: QName("key"),
            value: key.into(),
        });
    }
    if style == Style::Typed {
        match value {
            Value::Number(_) => start.push_attribute(("type", "integer")),
            Value::Bool(_) => start.push_attribute(("type", "boolean")),
            Value::Array(_) => start.push_attribute(("type", "array")),
            Value::Null => start.push_attribute(("nil", "true")),
            Value::String(_) | Value::Object(_) => {}
        }
    }
    writer.write_event(Event::Start(start))?;
    match value {
        Value::Null => {}
        Value::Bool(flag) => text(writer, &flag.to_string())?,
        Value::String(content) if style == Style::Raw => {
            writer.write_event(Event::Text(BytesText::from_escaped(content)))?;
        }
        Value::Number(number) => text(writer, &number.to_string())?,
        Value::String(content) => text(writer, &legible(content))?,
        Value::Array(items) => {
            let singular = name.strip_suffix('s').unwrap_or("item");
            for item in items {
                element(writer, style, singular, item)?;
            }
        }
        Value::Object(fields) => {
            for (field, value) in fields {
                element(writer, style, field, value)?;
            }
        }
    }
    writer.write_event(Event::End(BytesEnd::new(tag)))
}

fn text(writer: &mut Writer<Vec<u8>>, content: &str) -> io::Result<()> {
    // A bare carriage return would be read as a line feed (XML 1.0, 2.11).
    let escaped = escape(content).replace('\r', "&#13;");
    writer.write_event(Event::Text(BytesText::from_escaped(escaped)))
}

/// True for the plain ASCII subset of XML names.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// Replaces the characters that XML 1.0 cannot carry.
fn legible(text: &str) -> String {
    let is_legal = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    text.chars()
        .map(|c| {
            if is_legal(c) {
                c
            } else {
                char::REPLACEMENT_CHARACTER
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DECLARATION: &str = r#"<?xml version="1.0" encoding="UTF-8"?>"#;

    #[test]
    fn every_kind_of_value_has_its_element() {
        for (value, typed) in [
            (json!({}), "<hash></hash>"),
            (json!({"a": "x<&>"}), "<hash><a>x&lt;&amp;&gt;</a></hash>"),
            (json!({"a": 1}), r#"<hash><a type="integer">1</a></hash>"#),
            (
                json!({"a": true}),
                r#"<hash><a type="boolean">true</a></hash>"#,
            ),
            (json!({"a": null}), r#"<hash><a nil="true"></a></hash>"#),
            (
                json!({"devices": ["i"]}),
                r#"<hash><devices type="array"><device>i</device></devices></hash>"#,
            ),
            (
                json!({"a b": "1"}),
                r#"<hash><entry key="a b">1</entry></hash>"#,
            ),
            (json!({"a": "\u{1}"}), "<hash><a>\u{fffd}</a></hash>"),
            // Line ends and tabs survive normalization by the parser.
            (
                json!({"a\t": "\r\n\t"}),
                "<hash><entry key=\"a&#9;\">&#13;\n\t</entry></hash>",
            ),
        ] {
            assert_eq!(
                document(Style::Typed, &value),
                format!("{DECLARATION}{typed}")
            );
        }
    }

    #[test]
    fn the_plain_style_has_text_only() {
        let plain = document(Style::Plain, &json!({"a": 1, "b": null}));
        assert_eq!(
            plain,
            format!("{DECLARATION}<response><a>1</a><b></b></response>")
        );
    }

    #[test]
    fn any_key_and_any_text_are_well_formed() {
        let hostile: String = (0..0x300_u32).filter_map(char::from_u32).collect();
        let document = document(Style::Typed, &json!({ hostile.clone(): hostile }));
        let mut reader = quick_xml::Reader::from_str(&document);
        loop {
            match reader.read_event() {
                Ok(Event::Eof) => break,
                Ok(event) => {
                    if let Event::Start(start) = &event {
                        assert!(start.attributes().all(|a| a.is_ok()));
                    }
                }
                Err(e) => panic!("{e}: {document}"),
            }
        }
    }
}
