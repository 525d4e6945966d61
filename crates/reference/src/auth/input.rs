//! Parses form or JSON bodies of the authentication service into one JSON object.
//!
//! The encoding is not shown (D1, Create user), so both are equivalent: `user[email]=…` becomes
//! `{"user": {"email": …}}`, and `logos[][res]=…` a list of objects. Validates no value.

use super::answer::Failure;
use crate::Call;
use serde_json::{Map, Value};

/// Form names nested deeper than this are plain names.
const NESTING_MAX: usize = 6;

/// The body's parameters.
pub(super) fn body(call: &Call<'_>) -> Result<Map<String, Value>, Failure> {
    if call.request.headers.media_type().as_deref() == Some("application/json") {
        return match call.json() {
            Some(Value::Object(body)) => Ok(body),
            _ => Err(Failure::new(400, "The body is not a JSON object")),
        };
    }
    let mut body = Map::new();
    for (name, value) in &call.form.0 {
        place(&mut body, &parts(name), value.clone());
    }
    Ok(body)
}

/// The parameter of that name. Nothing, null, an empty string, object or list count as absent, as clients
/// use all of them.
pub(super) fn given<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    })
}

/// A string or a number, as a string.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Splits `logos[][res]` into `logos`, an empty name and `res`; any other name stays whole.
fn parts(name: &str) -> Vec<&str> {
    let bracketed = name
        .split_once('[')
        .and_then(|(head, rest)| Some((head, rest.strip_suffix(']')?)));
    match bracketed {
        Some((head, inner)) if inner.matches("][").count() < NESTING_MAX => {
            std::iter::once(head).chain(inner.split("][")).collect()
        }
        _ => vec![name],
    }
}

fn place(into: &mut Map<String, Value>, path: &[&str], text: String) {
    let [first, rest @ ..] = path else { return };
    let Some(next) = rest.first() else {
        into.insert((*first).to_owned(), Value::String(text));
        return;
    };
    let slot = into.entry(*first).or_insert(Value::Null);
    if next.is_empty() {
        append(as_list(slot), &rest[1..], text);
    } else {
        place(as_object(slot), rest, text);
    }
}

/// Starts a new element if the last one already has the field.
fn append(list: &mut Vec<Value>, path: &[&str], text: String) {
    let Some(field) = path.first() else {
        list.push(Value::String(text));
        return;
    };
    let is_open = list
        .last()
        .and_then(Value::as_object)
        .is_some_and(|fields| !fields.contains_key(*field));
    if !is_open {
        list.push(Value::Object(Map::new()));
    }
    let last = list.last_mut().expect("an element is open or was pushed");
    place(as_object(last), path, text);
}

fn as_object(slot: &mut Value) -> &mut Map<String, Value> {
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut().expect("it was made an object")
}

fn as_list(slot: &mut Value) -> &mut Vec<Value> {
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    slot.as_array_mut().expect("it was made a list")
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_base::http::Request;
    use serde_json::json;

    fn read(media_type: &str, body_text: &str) -> Option<Value> {
        let mut request = Request::new("POST", "/auth");
        request.headers.set("Content-Type", media_type);
        request.body = body_text.into();
        let call = Call::new(&request, &[]);
        body(&call).ok().map(Value::Object)
    }

    #[test]
    fn forms_read_as_the_objects_they_spell() {
        for (form, object) in [
            ("a=1&b=2", json!({"a": "1", "b": "2"})),
            (
                "user[email]=a%40b.c&user%5Bcellphone%5D=5",
                json!({"user": {"email": "a@b.c", "cellphone": "5"}}),
            ),
            (
                "details[Account+Number]=9",
                json!({"details": {"Account Number": "9"}}),
            ),
            (
                "logos[][res]=default&logos[][url]=u&logos[][res]=low&logos[][url]=v",
                json!({"logos": [{"res": "default", "url": "u"}, {"res": "low", "url": "v"}]}),
            ),
            (
                "logos[0][res]=default",
                json!({"logos": {"0": {"res": "default"}}}),
            ),
            ("tags[]=a&tags[]=b", json!({"tags": ["a", "b"]})),
            ("a[b=1&c]=2", json!({"a[b": "1", "c]": "2"})),
            ("a=1&a[b]=2", json!({"a": {"b": "2"}})),
        ] {
            let read = read("application/x-www-form-urlencoded", form);
            assert_eq!(read, Some(object), "{form}");
        }
    }

    #[test]
    fn deep_nesting_is_a_plain_name() {
        let name = format!("a{}", "[b]".repeat(1000));
        let read = read("application/x-www-form-urlencoded", &format!("{name}=1"));
        assert_eq!(read, Some(json!({ name: "1" })));
    }

    #[test]
    fn only_json_objects_are_bodies() {
        assert_eq!(
            read("application/json", r#"{"a":1}"#),
            Some(json!({"a": 1}))
        );
        for wrong in ["", "[]", "{", "1"] {
            assert_eq!(read("application/json", wrong), None, "{wrong}");
        }
    }

    #[test]
    fn absent_options_have_many_spellings() {
        let object = json!({"a": null, "b": "", "c": [], "d": {}, "e": 0, "f": false, "g": "x"});
        let object = object.as_object().expect("an object");
        for name in ["a", "b", "c", "d", "z"] {
            assert_eq!(given(object, name), None, "{name}");
        }
        for name in ["e", "f", "g"] {
            assert!(given(object, name).is_some(), "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_form_is_too_odd(text in r"[a-b\[\]=&%.]{0,60}") {
            proptest::prop_assert!(read("application/x-www-form-urlencoded", &text).is_some());
        }
    }
}
