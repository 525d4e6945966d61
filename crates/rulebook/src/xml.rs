//! Converts XML responses to JSON values, so that the same rules judge both formats (D1, Endpoints: FORMAT).
//!
//! The documents do not define the XML. Names and texts are converted as they are, types
//! come from the schema. A text that does not match its type stays a text and is judged as one.

use crate::{Place, Resolved, types};
use quick_xml::Reader;
use quick_xml::encoding::{DetectedEncoding, detect_encoding};
use quick_xml::events::{BytesDecl, BytesStart, Event};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;

const DEPTH_MAX: usize = 64;
const ATTRIBUTES_MAX: usize = 256;
const ELEMENTS_MAX: usize = 250_000;
/// Maximum length of a declaration in bytes.
const DECLARATION_BYTES_MAX: usize = 256;
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// The reason why a document could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XmlFault {
    /// Larger than the limit.
    #[error("{0} bytes where {BYTES_MAX} are allowed")]
    TooLarge(usize),
    /// Not UTF-8.
    #[error("not valid UTF-8 at byte {0}")]
    NotUtf8(usize),
    /// Not in the encoding that it declares.
    #[error("invalid {0}, the declared encoding")]
    Undecodable(&'static str),
    /// A document type, which could contain entities or reference files.
    #[error("a document type at byte {0}, which is not supported")]
    DocumentType(u64),
    /// Nested too deeply.
    #[error("nesting over {DEPTH_MAX} at byte {0}")]
    TooDeep(u64),
    /// Too many elements or attributes.
    #[error("too many elements or attributes at byte {0}")]
    TooMany(u64),
    /// Not well-formed.
    #[error("not well-formed at byte {at}: {reason}")]
    Syntax {
        /// Byte offset.
        at: u64,
        /// The reason.
        reason: String,
    },
}

/// An element before conversion.
#[derive(Debug, Default)]
struct Element {
    name: String,
    is_nil: bool,
    r#type: Option<String>,
    text: String,
    children: Vec<Element>,
}

/// Converts an XML document to a value of that schema. Without one, types come from the elements' own
/// `type` attributes. The root element may have any name.
pub fn to_value(xml: &[u8], schema: Option<&Value>) -> Result<Value, XmlFault> {
    let element = read(xml)?;
    let free = Value::Bool(true);
    let root = schema.unwrap_or(&free);
    Ok(convert(&Place::root(root).any(), &element))
}

/// The decoded text: by its byte order mark, else by its declaration, else as UTF-8 (XML 1.0, 4.3.3).
fn decode(xml: &[u8]) -> Result<Cow<'_, str>, XmlFault> {
    let declared = || {
        let encoding = declaration(xml)?.encoder()?;
        encoding.is_ascii_compatible().then_some(encoding)
    };
    let utf8 = DetectedEncoding::Utf8Bom.encoding();
    let mark = detect_encoding(xml).filter(|detected| detected.bom_len() > 0);
    let (encoding, text) = match mark {
        Some(mark) => (mark.encoding(), &xml[mark.bom_len()..]),
        None => (declared().unwrap_or(utf8), xml),
    };
    if encoding == utf8 {
        let text = std::str::from_utf8(text).map_err(|e| XmlFault::NotUtf8(e.valid_up_to()))?;
        return Ok(Cow::Borrowed(text));
    }
    quick_xml::encoding::decode(text, encoding).map_err(|_| XmlFault::Undecodable(encoding.name()))
}

fn declaration(xml: &[u8]) -> Option<BytesDecl<'_>> {
    let head = &xml[..xml.len().min(DECLARATION_BYTES_MAX)];
    let head = head.strip_prefix(b"<?")?;
    let head = &head[..head.windows(2).position(|end| end == b"?>")?];
    let head = std::str::from_utf8(head).ok()?;
    let start = BytesStart::from_content(head, "xml".len());
    head.starts_with("xml")
        .then(|| BytesDecl::from_start(start))
}

fn read(xml: &[u8]) -> Result<Element, XmlFault> {
    if xml.len() > BYTES_MAX {
        return Err(XmlFault::TooLarge(xml.len()));
    }
    let text = decode(xml)?;
    let mut reader = Reader::from_str(&text);
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<Element> = vec![Element::default()];
    let mut elements = 0;
    loop {
        let at = reader.buffer_position();
        let syntax = |reason: String| XmlFault::Syntax { at, reason };
        match reader.read_event().map_err(|e| syntax(e.to_string()))? {
            Event::Start(start) => {
                elements += 1;
                if open.len() > DEPTH_MAX {
                    return Err(XmlFault::TooDeep(at));
                }
                if elements > ELEMENTS_MAX {
                    return Err(XmlFault::TooMany(at));
                }
                open.push(begin(&start, at)?);
            }
            Event::End(_) => {
                let closed = open
                    .pop()
                    .expect("the reader refuses an end without its start");
                match open.last_mut() {
                    Some(parent) => parent.children.push(closed),
                    None => return Err(syntax("an end without its start".to_owned())),
                }
            }
            Event::Text(piece) => {
                append(&mut open, &piece);
            }
            Event::CData(piece) => {
                append(&mut open, &piece);
            }
            Event::GeneralRef(reference) => {
                let name: &str = &reference;
                let resolved = entity(name)
                    .or_else(|| reference.resolve_char_ref().ok().flatten())
                    .ok_or_else(|| syntax(format!("the unknown entity `{name}`")))?;
                append(&mut open, resolved.encode_utf8(&mut [0; 4]));
            }
            Event::DocType(_) => return Err(XmlFault::DocumentType(at)),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => break,
        }
    }
    let at = reader.buffer_position();
    let mut roots = open
        .pop()
        .filter(|_| open.is_empty())
        .map(|outer| outer.children);
    match roots.as_mut().map(|roots| (roots.len(), roots.pop())) {
        Some((1, Some(root))) => Ok(root),
        Some((_, _)) => Err(XmlFault::Syntax {
            at,
            reason: "expected one root element".to_owned(),
        }),
        None => Err(XmlFault::Syntax {
            at,
            reason: "an element is not closed".to_owned(),
        }),
    }
}

fn begin(start: &BytesStart<'_>, at: u64) -> Result<Element, XmlFault> {
    let syntax = |reason: String| XmlFault::Syntax { at, reason };
    let mut element = Element {
        name: start.local_name().as_ref().to_owned(),
        ..Element::default()
    };
    for (n, attribute) in start.attributes().enumerate() {
        if n >= ATTRIBUTES_MAX {
            return Err(XmlFault::TooMany(at));
        }
        let attribute = attribute.map_err(|e| syntax(e.to_string()))?;
        let value = attribute.value.into_owned();
        match attribute.key.local_name().as_ref() {
            "nil" | "null" => element.is_nil = value == "true",
            "type" => element.r#type = Some(value),
            "key" => element.name = unescaped(&value),
            _ => {}
        }
    }
    Ok(element)
}

fn append(open: &mut [Element], piece: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(piece);
    }
}

fn entity(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "apos" => Some('\''),
        "quot" => Some('"'),
        _ => None,
    }
}

fn unescaped(text: &str) -> String {
    quick_xml::escape::unescape(text).map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
}

fn convert(place: &Resolved<'_>, element: &Element) -> Value {
    let allowed = place.possible_types();
    if element.is_nil {
        return Value::Null;
    }
    let hint = element.r#type.as_deref();
    if allowed & types::ARRAY != 0 || (allowed == types::NONE && hint == Some("array")) {
        let below = place.items().any();
        let items = element.children.iter().map(|c| convert(&below, c));
        return Value::Array(items.collect());
    }
    // JSON has no text between members, so the element stays a text.
    let is_mixed = !element.text.trim().is_empty() && allowed & types::STRING == 0;
    if element.children.is_empty() || (is_mixed && allowed & types::OBJECT != 0) {
        return scalar(allowed, element);
    }
    object(place, element)
}

fn object(place: &Resolved<'_>, element: &Element) -> Value {
    let mut members: Map<String, Value> = Map::new();
    let mut repeated: Vec<&str> = Vec::new();
    for child in &element.children {
        let below = place.member(&child.name).any();
        let is_list = below.possible_types() & types::ARRAY != 0;
        // A list may be repeated elements without an element around them.
        let is_bare_item = is_list && child.children.is_empty() && !child.text.trim().is_empty();
        let value = if is_bare_item {
            Value::Array(vec![convert(&below.items().any(), child)])
        } else {
            convert(&below, child)
        };
        match members.get_mut(&child.name) {
            None => {
                members.insert(child.name.clone(), value);
            }
            Some(Value::Array(items)) if is_list => match value {
                Value::Array(more) => items.extend(more),
                one @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Object(_)) => items.push(one),
            },
            // A single element is repeated: its type rule reports the list.
            Some(Value::Array(items)) if repeated.contains(&child.name.as_str()) => {
                items.push(value);
            }
            Some(first) => {
                *first = Value::Array(vec![first.take(), value]);
                repeated.push(&child.name);
            }
        }
    }
    Value::Object(members)
}

fn scalar(allowed: u8, element: &Element) -> Value {
    let text = element.text.as_str();
    let word = text.trim();
    let hint = element.r#type.as_deref().unwrap_or_default();
    if word.is_empty() {
        return match (allowed & types::NULL != 0, allowed & types::OBJECT != 0) {
            (true, _) => Value::Null,
            (false, true) => Value::Object(Map::new()),
            (false, false) => Value::String(text.to_owned()),
        };
    }
    if allowed & types::BOOLEAN != 0 || (allowed == types::NONE && hint == "boolean") {
        match word {
            // XML Schema, part 2: both spellings are booleans.
            "true" | "1" => return Value::Bool(true),
            "false" | "0" => return Value::Bool(false),
            _ => {}
        }
    }
    let is_number = allowed & (types::INTEGER | types::FRACTION) != 0
        || (allowed == types::NONE && matches!(hint, "integer" | "float" | "decimal"));
    // An identifier such as 57e8 remains a text where texts are allowed.
    let is_read = |number: &Number| allowed & types::STRING == 0 || number.to_string() == word;
    if is_number
        && let Ok(number) = word.parse::<Number>()
        && is_read(&number)
    {
        return Value::Number(number);
    }
    Value::String(text.to_owned())
}
