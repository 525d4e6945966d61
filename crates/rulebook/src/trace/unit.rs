//! The units of a document: every sentence and table row, with its place and the hash of its text.

use crate::hex;
use conformant_base::source::Document;
use sha2::{Digest, Sha256};
use std::fmt;

/// Hexadecimal digits of a unit's hash.
pub(super) const HASH_DIGITS: usize = 12;

/// One sentence or table row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub document: Document,
    /// Its line, counted from 1.
    pub line: u32,
    /// Position of the unit in the line, counted from 1.
    pub index: usize,
    /// Its text, with normalized white space.
    pub text: String,
    /// First digits of the SHA-256 of its text.
    pub hash: String,
}

impl Unit {
    pub(super) fn place(&self) -> UnitPlace {
        UnitPlace {
            document: self.document,
            line: self.line,
            index: self.index,
        }
    }
}

/// The place of a unit: `D3 84.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnitPlace {
    pub document: Document,
    /// Its line, counted from 1.
    pub line: u32,
    /// Position of the unit in the line, counted from 1.
    pub index: usize,
}

impl fmt::Display for UnitPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}.{}", self.document, self.line, self.index)
    }
}

/// The units of a document in order.
pub fn units(document: Document, text: &str) -> Vec<Unit> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let is_head = lines.get(n + 1).is_some_and(|next| is_separator(next));
        let pieces = if line.trim().is_empty() || line.starts_with('#') || is_separator(line) {
            Vec::new()
        } else if is_row(line) {
            if is_head { Vec::new() } else { vec![*line] }
        } else {
            sentences(item(line))
        };
        for (index, piece) in pieces.into_iter().enumerate() {
            found.push(Unit {
                document,
                line: u32::try_from(n + 1).unwrap_or(u32::MAX),
                index: index + 1,
                hash: hash(piece),
                text: normalized(piece),
            });
        }
    }
    found
}

pub(super) fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

pub(super) fn is_separator(line: &str) -> bool {
    is_row(line) && line.contains('-') && line.trim().chars().all(|c| "|-: ".contains(c))
}

/// A list item without its marker.
fn item(line: &str) -> &str {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
        return rest;
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    match line[digits..].strip_prefix(". ") {
        Some(rest) if digits > 0 => rest,
        Some(_) | None => line,
    }
}

/// Splits at `.`, `?` and `!` before white space, not inside code or brackets.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let (mut in_code, mut depth) = (false, 0_usize);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '`' => in_code = !in_code,
            '(' | '[' if !in_code => depth += 1,
            ')' | ']' if !in_code => depth = depth.saturating_sub(1),
            '.' | '?' | '!'
                if !in_code
                    && depth == 0
                    && chars.peek().is_none_or(|(_, next)| next.is_whitespace()) =>
            {
                found.push(text[start..=at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let rest = text[start..].trim();
    if !rest.is_empty() {
        found.push(rest);
    }
    found
}

fn normalized(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn hash(text: &str) -> String {
    let mut digits = hex(&Sha256::digest(normalized(text).as_bytes()));
    digits.truncate(HASH_DIGITS);
    digits
}
