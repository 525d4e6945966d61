//! Tests of `xml`.

use conformant_rulebook::xml::{XmlFault, to_value};
use serde_json::{Value, json};

/// The elements that a document may have.
const ELEMENTS_MAX: usize = 250_000;

#[test]
fn all_encodings_have_the_same_value() {
    let text = "<a><name>Zoë</name></a>";
    let utf16 = |bom: [u8; 2], bytes: fn(u16) -> [u8; 2]| {
        let said = format!("<?xml version=\"1.0\" encoding=\"UTF-16\"?>{text}");
        let units = said.encode_utf16().flat_map(bytes);
        bom.into_iter().chain(units).collect::<Vec<u8>>()
    };
    let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><a><name>Zo\xeb</name></a>".to_vec();
    for xml in [
        text.as_bytes().to_vec(),
        [b"\xef\xbb\xbf".as_slice(), text.as_bytes()].concat(),
        utf16([0xff, 0xfe], u16::to_le_bytes),
        utf16([0xfe, 0xff], u16::to_be_bytes),
        latin,
    ] {
        assert_eq!(to_value(&xml, None), Ok(json!({"name": "Zoë"})));
    }
    let half = utf16([0xff, 0xfe], u16::to_le_bytes);
    let cut = to_value(&half[..half.len() - 1], None);
    assert_eq!(cut, Err(XmlFault::Undecodable("UTF-16LE")));
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "ok": {"type": "boolean"},
            "name": {"type": "string"},
            "gone": {"type": ["string", "null"]},
            "free": {"type": "object"},
            "devices": {"type": "array", "items": {"type": "string"}},
            "user": {"$ref": "#/$defs/user"},
        },
        "$defs": {"user": {"type": "object", "properties": {"n": {"type": ["integer", "null"]}}}},
    })
}

fn value(xml: &str) -> Value {
    to_value(xml.as_bytes(), Some(&schema())).expect("it is XML")
}

#[test]
fn types_come_from_the_schema() {
    assert_eq!(
        value(
            "<hash><id>7</id><ok>true</ok><name>12 &amp; &#x41;</name><gone/><free/>\
               <user><n>1</n></user></hash>"
        ),
        json!({"id": 7, "ok": true, "name": "12 & A", "gone": null, "free": {}, "user": {"n": 1}})
    );
}

#[test]
fn lists_come_with_and_without_an_element_around_them() {
    let expected = json!({"devices": ["a", "b"]});
    for xml in [
        "<r><devices><device>a</device><device>b</device></devices></r>",
        "<r><devices>a</devices><devices>b</devices></r>",
    ] {
        assert_eq!(value(xml), expected);
    }
    assert_eq!(value("<r><devices/></r>"), json!({"devices": []}));
}

#[test]
fn a_value_of_another_type_stays_a_text() {
    assert_eq!(
        value("<r><id>seven</id><ok>yes</ok><name>a</name><name>b</name></r>"),
        json!({"id": "seven", "ok": "yes", "name": ["a", "b"]})
    );
}

#[test]
fn text_between_elements_prevents_an_object() {
    assert_eq!(value("<r>x<id>7</id></r>"), json!("x"));
    assert_eq!(
        value("<r>\n <user>x<n>1</n></user> </r>"),
        json!({"user": "x"})
    );
}

#[test]
fn attributes_apply_without_a_schema() {
    let xml = br#"<r><a type="integer">1</a><b nil="true"/><entry key="x &lt;y">z</entry></r>"#;
    assert_eq!(
        to_value(xml, None).unwrap(),
        json!({"a": 1, "b": null, "x <y": "z"})
    );
}

#[test]
fn hostile_documents_are_rejected() {
    let fault = |xml: &str| to_value(xml.as_bytes(), None).expect_err("it is rejected");
    let bomb = fault("<!DOCTYPE r [<!ENTITY a \"x\">]><r>&a;</r>");
    assert!(matches!(bomb, XmlFault::DocumentType(_)));
    let deep = fault(&"<a>".repeat(100_000));
    assert!(matches!(deep, XmlFault::TooDeep(_)));
    let attributes: Vec<String> = (0..300).map(|n| format!("a{n}='1'")).collect();
    let wide = fault(&format!("<a {}/>", attributes.join(" ")));
    assert!(matches!(wide, XmlFault::TooMany(_)));
    let many = fault(&format!("<r>{}</r>", "<a/>".repeat(ELEMENTS_MAX + 1)));
    assert!(matches!(many, XmlFault::TooMany(_)));
    for xml in [
        "",
        "text",
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "</a>",
        "<a>&x;</a>",
        "<a b=>",
    ] {
        assert!(to_value(xml.as_bytes(), None).is_err(), "{xml}");
    }
    assert_eq!(to_value(b"<a>\xff</a>", None), Err(XmlFault::NotUtf8(3)));
}
