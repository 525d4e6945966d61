//! Escapes untrusted text for display; also excerpts, safe and canonical JSON, words and globs.
//!
//! Knows no report format and no terminal. Text from a target, a file or a callback must pass through
//! [`escape`] or [`escape_line`] first. Markup is up to the format.

use crate::diff::diff_ops;
use memchr::memmem;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use similar::diff_ratio;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

/// Marks the cut of an excerpt. The redactor looks for partial secrets before it.
pub const CUT: char = '…';

/// Makes every character visible that could deceive a terminal, a CI log or a reader.
///
/// - C0 (except line feed and tab), DEL, C1, bidirectional controls, line and paragraph separators and
///   zero-width characters become `\x1b` or `\u{202e}`.
/// - Commands that CI services read from logs are broken up in the same spelling. Indenting does not
///   disarm them: some are recognized after blanks, others anywhere in a line.
pub fn escape(text: &str) -> Cow<'_, str> {
    escaped(text, false)
}

/// Like [`escape`], but also escapes line feed and tab: the result is one line.
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escaped(text, true)
}

fn escaped(text: &str, one_line: bool) -> Cow<'_, str> {
    if is_plain(text.as_bytes(), one_line) {
        Cow::Borrowed(text)
    } else {
        escaped_one_by_one(text, one_line)
    }
}

fn escaped_one_by_one(text: &str, one_line: bool) -> Cow<'_, str> {
    let mut out: Option<String> = None;
    let mut starts_word = true;
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        let harmful = is_deceptive(c)
            || (one_line && matches!(c, '\n' | '\t'))
            || (starts_word && starts_line_command(rest))
            || starts_log_command(rest);
        if harmful {
            push_visible(out.get_or_insert_with(|| text[..at].to_owned()), c);
        } else if let Some(out) = &mut out {
            out.push(c);
        }
        starts_word = c.is_whitespace();
    }
    out.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Fast path: true if nothing needs escaping, as in nearly all texts.
fn is_plain(text: &[u8], one_line: bool) -> bool {
    let is_visible = |byte: &u8| matches!(byte, b' '..=b'~');
    let breaks_line = |byte: &u8| !one_line && matches!(byte, b'\n' | b'\t');
    let mut bytes = text.iter();
    bytes.all(|byte| is_visible(byte) || breaks_line(byte))
        && memmem::find(text, b"::").is_none()
        && memmem::find(text, b"##").is_none()
}

/// True for characters that must never reach a terminal raw, except line feed and tab.
pub fn is_deceptive(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        _ => c.is_control(),
    }
}

/// `::name` at the start of a line or after blanks, where a CI service reads a command. `::1` is an address.
fn starts_line_command(rest: &str) -> bool {
    rest.strip_prefix("::")
        .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// `##[name]`, `##vso[…]`, `##teamcity[…]`, read as a command anywhere in a line.
fn starts_log_command(rest: &str) -> bool {
    rest.strip_prefix("##").is_some_and(|name| {
        name.trim_start_matches(|c: char| c.is_ascii_alphabetic())
            .starts_with('[')
    })
}

fn push_visible(out: &mut String, c: char) {
    let written = match c {
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        '\0'..='\u{ff}' => write!(out, "\\x{:02x}", u32::from(c)),
        _ => write!(out, "\\u{{{:x}}}", u32::from(c)),
    };
    written.expect("writing to a String succeeds");
}

/// The text, or its first bytes (cut between characters) and the number of bytes left out.
pub fn excerpt(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let mut end = bytes_max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(format!(
        "{}{CUT} ({} more bytes)",
        &text[..end],
        text.len() - end
    ))
}

/// The first bytes received, in ASCII; [`CUT`] marks further ones.
pub fn wire(bytes: &[u8], bytes_max: usize) -> String {
    let shown = &bytes[..bytes.len().min(bytes_max)];
    let cut = if shown.len() < bytes.len() {
        CUT.to_string()
    } else {
        String::new()
    };
    format!("{}{cut}", shown.escape_ascii())
}

/// Puts `prefix` before every line, so that untrusted text never starts one.
pub fn indent(text: &str, prefix: &str) -> String {
    let mut out = String::with_capacity(text.len() + prefix.len());
    for line in text.lines() {
        out.push_str(prefix);
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// The most similar candidate, if any is similar.
pub fn did_you_mean<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    /// Lowest similarity of two words.
    const RATIO_MIN: f32 = 0.6;
    let word = characters(word);
    let alike = |candidate: &&'a str| {
        let other = characters(candidate);
        // Untrusted words may have any length: skip those that cannot be similar.
        let shared = word.len().min(other.len()) * 10;
        if shared < (word.len() + other.len()) * 3 {
            return None;
        }
        let ratio = diff_ratio(&diff_ops(&word, &other), word.len(), other.len());
        (ratio >= RATIO_MIN && has_similar_end(&word, &other)).then_some((ratio, *candidate))
    };
    let likest = candidates.iter().filter_map(alike);
    // Ties go to the first by name.
    let likest = likest.max_by(|(a, one), (b, other)| a.total_cmp(b).then(other.cmp(one)));
    likest.map(|(_, candidate)| candidate)
}

/// Whether two paths are similar also without the names that both begin with.
fn has_similar_end(word: &[&str], other: &[&str]) -> bool {
    const RATIO_MIN: f32 = 0.5;
    let shared = word.iter().zip(other).take_while(|(a, b)| a == b).count();
    let Some(slash) = word[..shared].iter().rposition(|c| *c == "/") else {
        return true;
    };
    let (word, other) = (&word[slash + 1..], &other[slash + 1..]);
    // Versions: `MessageSent/9` and `MessageSent/4`.
    let is_number = |text: &[&str]| text.iter().all(|c| c.as_bytes()[0].is_ascii_digit());
    if is_number(word) && is_number(other) {
        return true;
    }
    diff_ratio(&diff_ops(word, other), word.len(), other.len()) >= RATIO_MIN
}

fn characters(word: &str) -> Vec<&str> {
    let ends = word.char_indices().map(|(at, c)| (at, at + c.len_utf8()));
    ends.map(|(from, to)| &word[from..to]).collect()
}

/// Prints JSON for comparison: two blanks per level, sorted keys, numbers as spelled.
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    print_canonical(value, 0, &mut out);
    out.push('\n');
    out
}

fn print_canonical(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            print_members(&fields, depth, ('{', '}'), out, |(name, value), out| {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push_str(": ");
                print_canonical(value, depth + 1, out);
            });
        }
        Value::Array(items) if !items.is_empty() => {
            print_members(items, depth, ('[', ']'), out, |item, out| {
                print_canonical(item, depth + 1, out);
            });
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => out.push_str(&value.to_string()),
    }
}

fn print_members<T>(
    members: &[T],
    depth: usize,
    (open, close): (char, char),
    out: &mut String,
    print: impl Fn(&T, &mut String),
) {
    out.push(open);
    for (at, member) in members.iter().enumerate() {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(depth + 1));
        print(member, out);
    }
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
    out.push(close);
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: impl IntoIterator<Item = u8>) -> String {
    bytes.into_iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").expect("writing to a String succeeds");
        out
    })
}

/// Pretty JSON that decodes to exactly the given value and is harmless in a terminal or log:
/// what [`escape`] would escape is written as `\uXXXX`.
///
/// # Errors
/// If the value does not serialize, such as a map whose keys are not strings.
pub fn safe_json<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::new();
    let formatter = SafeFormatter(PrettyFormatter::new());
    value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter))?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(serde::ser::Error::custom)
}

/// Escapes strings; [`PrettyFormatter`] does the layout.
struct SafeFormatter(PrettyFormatter<'static>);

impl Formatter for SafeFormatter {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut plain_from = 0;
        for (at, c) in fragment.char_indices() {
            // A JSON string never starts a line, so only commands recognized within a line matter.
            if is_deceptive(c) || starts_log_command(&fragment[at..]) {
                writer.write_all(&fragment.as_bytes()[plain_from..at])?;
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
                plain_from = at + c.len_utf8();
            }
        }
        writer.write_all(&fragment.as_bytes()[plain_from..])
    }

    fn begin_array<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

/// A word of a command line, quoted where a POSIX shell would change it.
pub fn shell_quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// The words of a command line that [`shell_quoted`] wrote.
pub fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        let word = words.last_mut();
        match (c, word) {
            ('\'', _) => is_quoted = !is_quoted,
            (' ', _) if !is_quoted => words.push(String::new()),
            ('\\', Some(word)) if !is_quoted => word.extend(characters.next()),
            (c, Some(word)) => word.push(c),
            (_, None) => {}
        }
    }
    words
}

/// True if `pattern` matches the whole of `text`; `*` matches any text. A pattern without `*` also
/// matches what is below it: `flow/executions` matches `flow/executions/ended`.
pub fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty() || rest.starts_with('/') || first.ends_with('/');
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// `1 rule`, `2 rules`.
pub fn count(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{plural}")
}
