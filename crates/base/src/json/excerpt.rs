//! Bounded excerpts of JSON values for messages.

use crate::text;
use serde_json::Value;
use std::fmt;

/// An excerpt for a finding.
pub fn short(value: &Value) -> String {
    const SHOWN_MAX: usize = 160;
    excerpt(value, SHOWN_MAX)
}

/// The name of a JSON type in messages.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Compact JSON text, cut to about `max` characters plus a note of the length.
pub fn excerpt(value: &Value, max: usize) -> String {
    let mut cut = Cut {
        text: String::new(),
        left: max,
    };
    // A cut is reported as a write error, so that the rest of a large value is not printed.
    let complete = write_value(&mut cut, value).is_ok();
    if complete {
        return cut.text;
    }
    let of = |count, what| format!(" ({})", text::count(count, what));
    let size = match value {
        Value::String(text) => of(text.chars().count(), "character"),
        Value::Array(items) => of(items.len(), "item"),
        Value::Object(members) => of(members.len(), "field"),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    };
    format!("{}…{size}", cut.text)
}

struct Cut {
    text: String,
    left: usize,
}

impl fmt::Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.left == 0 {
                return Err(fmt::Error);
            }
            self.left -= 1;
            self.text.push(c);
        }
        Ok(())
    }
}

fn write_value(out: &mut Cut, value: &Value) -> fmt::Result {
    use fmt::Write;
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(b) => write!(out, "{b}"),
        Value::Number(n) => out.write_str(&n.to_string()),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.write_char('[')?;
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.write_char(',')?;
                }
                write_value(out, item)?;
            }
            out.write_char(']')
        }
        Value::Object(members) => {
            out.write_char('{')?;
            for (n, (key, member)) in members.iter().enumerate() {
                if n > 0 {
                    out.write_char(',')?;
                }
                write_text(out, key)?;
                out.write_char(':')?;
                write_value(out, member)?;
            }
            out.write_char('}')
        }
    }
}

fn write_text(out: &mut Cut, text: &str) -> fmt::Result {
    use fmt::Write;
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            c if c.is_control() => write!(out, "\\u{:04x}", u32::from(c))?,
            c => out.write_char(c)?,
        }
    }
    out.write_char('"')
}
