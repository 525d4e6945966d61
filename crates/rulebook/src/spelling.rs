//! Spellings: rule ids from the documents' names, durations, interpolations.

use std::time::Duration;

/// A name of the documents as part of a rule id: `unique_name`, `UniqueName` -> `unique-name`;
/// `user[cellphone]` -> `user-cellphone`; `Configuration.Url` -> `configuration-url`.
pub fn kebab(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (n, c) in chars.iter().enumerate() {
        if !c.is_ascii_alphanumeric() {
            if !out.ends_with('-') && !out.is_empty() {
                out.push('-');
            }
            continue;
        }
        let previous = n.checked_sub(1).map(|n| chars[n]);
        let follows_lower = previous.is_some_and(|p| p.is_ascii_lowercase() || p.is_ascii_digit());
        let ends_capitals = previous.is_some_and(|p| p.is_ascii_uppercase())
            && chars.get(n + 1).is_some_and(char::is_ascii_lowercase);
        if c.is_ascii_uppercase() && (follows_lower || ends_capitals) && !out.ends_with('-') {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    while out.ends_with('-') {
        out.pop();
    }
    out
}

/// True for a kebab-case path of at least two segments: `chat/channel/unique-name`.
pub(super) fn is_id(id: &str) -> bool {
    let segment = |s: &str| {
        !s.is_empty()
            && !s.starts_with('-')
            && !s.ends_with('-')
            && s.bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    id.contains('/') && id.split('/').all(segment)
}

/// A duration such as `250ms`, `3s`, `5m`, `1h`, with its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    /// True for `-5m`.
    pub negative: bool,
    /// How long.
    pub length: Duration,
}

/// Parses a duration such as `250ms`, `3s`, `5m`, `1h`, `1d`; with a sign for `-5m`.
pub fn shift(text: &str) -> Option<Shift> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = unsigned.find(|c: char| !c.is_ascii_digit())?;
    let amount: u64 = unsigned[..digits].parse().ok()?;
    let length = match &unsigned[digits..] {
        "ms" => Duration::from_millis(amount),
        "s" => Duration::from_secs(amount),
        "m" => Duration::from_secs(amount.checked_mul(60)?),
        "h" => Duration::from_secs(amount.checked_mul(3_600)?),
        "d" => Duration::from_secs(amount.checked_mul(86_400)?),
        _ => return None,
    };
    Some(Shift {
        negative: text.starts_with('-'),
        length,
    })
}

/// Parses a duration without a sign.
pub fn duration(text: &str) -> Option<Duration> {
    text.starts_with(|c: char| c.is_ascii_digit())
        .then(|| shift(text).map(|s| s.length))
        .flatten()
}

/// One `${…}` in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpolation {
    /// Byte offset of the `$`.
    pub start: usize,
    /// Byte offset after the `}`.
    pub end: usize,
    /// The segments: `${a.b.0}` -> `a`, `b`, `0`.
    pub path: Vec<String>,
}

/// The interpolations of a text in order, or the offset and reason of a malformed one.
pub fn interpolations(text: &str) -> Result<Vec<Interpolation>, (usize, &'static str)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("${").map(|n| n + from) {
        let Some(close) = text[start..].find('}').map(|n| n + start) else {
            return Err((start, "`${` without its `}`"));
        };
        let inner = &text[start + 2..close];
        let fits = |s: &str| {
            !s.is_empty()
                && s.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        };
        if !inner.split('.').all(fits) {
            return Err((
                start,
                "expected an interpolation such as `${name.field.0.field}`",
            ));
        }
        found.push(Interpolation {
            start,
            end: close + 1,
            path: inner.split('.').map(str::to_owned).collect(),
        });
        from = close + 1;
    }
    Ok(found)
}
