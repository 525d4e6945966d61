//! Writes JSON values as YAML: mappings in blocks, short values on one line.

use serde_json::{Map, Value};

/// Columns of a value on one line, at most.
const WIDTH: usize = 120;

/// A file: comment lines, then the mapping.
pub(crate) fn file(comments: &[String], members: &Map<String, Value>) -> String {
    let mut out = String::new();
    for line in comments {
        out.push('#');
        if !line.is_empty() {
            out.push(' ');
            // A line break would end the comment.
            out.extend(line.chars().map(|c| if c.is_control() { ' ' } else { c }));
        }
        out.push('\n');
    }
    block(members, 0, &mut out);
    out
}

fn block(members: &Map<String, Value>, indent: usize, out: &mut String) {
    for (key, value) in members {
        out.push_str(&" ".repeat(indent));
        out.push_str(&scalar(key));
        out.push(':');
        below(value, indent, out);
    }
}

fn below(value: &Value, indent: usize, out: &mut String) {
    match block_of(value, indent) {
        Some(Block::Mapping(members)) => {
            out.push('\n');
            block(members, indent + 2, out);
        }
        Some(Block::List(items)) => {
            out.push('\n');
            list(items, indent + 2, out);
        }
        None => {
            out.push(' ');
            out.push_str(&inline(value));
            out.push('\n');
        }
    }
}

fn list(items: &[Value], indent: usize, out: &mut String) {
    for item in items {
        out.push_str(&" ".repeat(indent));
        out.push_str("- ");
        if let Some(Block::Mapping(members)) = block_of(item, indent) {
            let mut inner = String::new();
            block(members, indent + 2, &mut inner);
            out.push_str(inner.trim_start());
        } else {
            out.push_str(&inline(item));
            out.push('\n');
        }
    }
}

/// A value that takes several lines.
enum Block<'v> {
    Mapping(&'v Map<String, Value>),
    List(&'v [Value]),
}

/// Nothing where a value reads well on one line: it is short and contains no mapping with a mapping in it.
fn block_of(value: &Value, indent: usize) -> Option<Block<'_>> {
    if depth(value) <= 2 && indent + inline(value).len() < WIDTH {
        return None;
    }
    match value {
        Value::Object(members) => (!members.is_empty()).then_some(Block::Mapping(members)),
        Value::Array(items) => (!items.is_empty()).then_some(Block::List(items)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(key, value)| format!("{}: {}", scalar(key), inline(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!(
                "[{}]",
                items.iter().map(inline).collect::<Vec<_>>().join(", ")
            )
        }
        Value::String(text) => scalar(text),
        Value::Number(number) => match (number.is_f64(), number.as_f64()) {
            // Without an exponent or a closing zero, which YAML readers disagree about.
            (true, Some(number)) => format!("{number}"),
            _ => number.to_string(),
        },
        Value::Null | Value::Bool(_) => value.to_string(),
    }
}

/// A text, in quotes unless every YAML reader reads it as that text without them.
fn scalar(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "_-/. ".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(is_safe)
        && !text.ends_with([' ', '.'])
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null"
        );
    match is_plain {
        true => text.to_owned(),
        false => Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn written_values_are_read_back_as_they_were() {
        let value = json!({
            "plain": "a word", "no": "no", "digits": "007", "colon": "a: b", "hash": "a #b", "empty": "",
            "quote": "it's \"so\"\n\u{1F600}", "{x}": [1, 2.5, null, true], "deep": [{"a": {"b": {"c": []}}}, {}],
            "list": [[1, [2]], "-"], "long": ["x".repeat(130)], "trailing": "a.", "date": "2026-01-31",
        });
        let text = file(&["two\nlines".to_owned()], value.as_object().unwrap());
        let read = conformant_yaml::read(&text).unwrap();
        assert_eq!(read.to_json(), value, "{text}");
        let mut found = Vec::new();
        conformant_yaml::ambiguous(&read, &text, &mut found);
        assert!(found.is_empty(), "{found:?}");
    }
}
