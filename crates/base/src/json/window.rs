//! Pretty-prints a document, cut to a few lines around one place.

use super::excerpt::excerpt;
use serde_json::Value;

/// Members or items printed before and after the place, on each level of its path.
const BESIDE: usize = 4;
/// Members printed if there is no place.
const MEMBERS_MAX: usize = 24;
/// Characters of a value off the path.
const VALUE_CHARACTERS_MAX: usize = 100;
/// Lines in total.
const LINES_MAX: usize = 40;
/// Levels followed.
const DEPTH_MAX: usize = 12;

/// The text, and the line of the place counted from 1; 0 without a place.
pub fn window(value: &Value, pointer: &str) -> (String, usize) {
    let way: Vec<String> = super::segments(pointer).collect();
    let mut lines = Lines {
        text: Vec::new(),
        marked: 0,
    };
    lines.value(value, &way, 0, "", "");
    lines.text.truncate(LINES_MAX);
    (lines.text.join("\n"), lines.marked.min(LINES_MAX))
}

struct Lines {
    text: Vec<String>,
    marked: usize,
}

impl Lines {
    fn value(&mut self, value: &Value, way: &[String], depth: usize, before: &str, behind: &str) {
        let margin = "  ".repeat(depth);
        let is_followed = !way.is_empty() || depth == 0;
        match value {
            Value::Object(members) if is_followed && !members.is_empty() && depth < DEPTH_MAX => {
                self.text.push(format!("{margin}{before}{{"));
                let names: Vec<&String> = members.keys().collect();
                let at = way
                    .first()
                    .and_then(|name| names.iter().position(|n| *n == name));
                let (from, to) = around(at, names.len());
                self.left_out(from, "field", depth + 1);
                for (n, name) in names.iter().enumerate().take(to).skip(from) {
                    let rest = if at == Some(n) { &way[1..] } else { &[] };
                    if at == Some(n) && rest.is_empty() {
                        self.marked = self.text.len() + 1;
                    }
                    let comma = if n + 1 < names.len() { "," } else { "" };
                    let quoted = Value::String((*name).clone());
                    self.value(
                        &members[name.as_str()],
                        rest,
                        depth + 1,
                        &format!("{quoted}: "),
                        comma,
                    );
                }
                self.left_out(names.len() - to, "field", depth + 1);
                self.missing(way, at.is_none(), depth + 1);
                self.text.push(format!("{margin}}}{behind}"));
            }
            Value::Array(items) if is_followed && !items.is_empty() && depth < DEPTH_MAX => {
                self.text.push(format!("{margin}{before}["));
                let at = way
                    .first()
                    .and_then(|n| n.parse().ok())
                    .filter(|n| *n < items.len());
                let (from, to) = around(at, items.len());
                self.left_out(from, "item", depth + 1);
                for (n, item) in items.iter().enumerate().take(to).skip(from) {
                    let rest = if at == Some(n) { &way[1..] } else { &[] };
                    if at == Some(n) && rest.is_empty() {
                        self.marked = self.text.len() + 1;
                    }
                    self.value(
                        item,
                        rest,
                        depth + 1,
                        "",
                        if n + 1 < items.len() { "," } else { "" },
                    );
                }
                self.left_out(items.len() - to, "item", depth + 1);
                self.text.push(format!("{margin}]{behind}"));
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => {
                let shown = excerpt(value, VALUE_CHARACTERS_MAX);
                self.text.push(format!("{margin}{before}{shown}{behind}"));
            }
        }
    }

    fn left_out(&mut self, count: usize, noun: &str, depth: usize) {
        if count > 0 {
            let plural = if count == 1 { "" } else { "s" };
            self.text.push(format!(
                "{}… {count} more {noun}{plural}",
                "  ".repeat(depth)
            ));
        }
    }

    /// Marks where a missing member would be.
    fn missing(&mut self, way: &[String], is_missing: bool, depth: usize) {
        if let (true, [name]) = (is_missing, way) {
            let shown = excerpt(&Value::String(name.clone()), VALUE_CHARACTERS_MAX);
            self.text
                .push(format!("{}… no {shown}", "  ".repeat(depth)));
            self.marked = self.text.len();
        }
    }
}

/// The range of entries to print: some around the place, or the first ones.
fn around(at: Option<usize>, of: usize) -> (usize, usize) {
    match at {
        Some(at) => (at.saturating_sub(BESIDE), (at + BESIDE + 1).min(of)),
        None => (0, MEMBERS_MAX.min(of)),
    }
}
