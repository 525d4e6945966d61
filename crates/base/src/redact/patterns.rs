//! Search patterns for one secret.
//!
//! A view undoes every escape that it finds, real or not. A secret that itself contains an escape, or
//! forms one with the text around it, therefore needs further patterns.

use super::redactor::SECRET_BYTES_MIN;
use super::view::{Order, View};
use crate::text;
use std::collections::BTreeSet;

/// Bytes of a secret that an escape across its border can take.
const REACH: usize = 12;
/// Levels of escapes within a secret.
const ROUNDS: usize = 4;

/// One form of a secret. The flags include the byte before or after it, which belongs to an escape
/// that swallowed the rest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pattern {
    pub(super) bytes: Vec<u8>,
    pub(super) before: bool,
    pub(super) after: bool,
}

/// Adds every form of a secret.
pub(super) fn patterns(secret: &str, into: &mut BTreeSet<Pattern>) {
    // Bytes, because an escape may split a character.
    let mut forms = vec![secret.as_bytes().to_vec()];
    for order in [Order::AtOnce, Order::BackslashesLast] {
        let mut form = secret.as_bytes().to_vec();
        for _ in 0..ROUNDS {
            let Some(unescaped) = View::new(&form).unescaped(order) else {
                break;
            };
            form = unescaped.bytes().to_vec();
            if !forms.contains(&form) {
                forms.push(form.clone());
            }
        }
    }
    // Form encoding writes blanks as plus signs.
    let plus = |byte: &u8| if *byte == b' ' { b'+' } else { *byte };
    let with_plus: Vec<Vec<u8>> = forms
        .iter()
        .map(|form| form.iter().map(plus).collect())
        .collect();
    forms.extend(with_plus);
    for form in &forms {
        let starts = eaten_in_front(form);
        let ends = eaten_behind(form);
        for (start, before) in starts {
            for &(end, after) in &ends {
                add(form.get(start..end), before, after, into);
            }
        }
    }
    let pairs: Vec<String> = secret.bytes().map(|b| text::hex([b])).collect();
    for between in ["", " "] {
        let digits = pairs.join(between);
        add(
            Some(digits.to_ascii_uppercase().as_bytes()),
            false,
            false,
            into,
        );
        add(Some(digits.as_bytes()), false, false, into);
    }
}

fn add(bytes: Option<&[u8]>, before: bool, after: bool, into: &mut BTreeSet<Pattern>) {
    let bytes = bytes.unwrap_or_default().to_vec();
    if bytes.len() >= SECRET_BYTES_MIN {
        into.insert(Pattern {
            bytes,
            before,
            after,
        });
    }
}

/// Where the secret may begin in a view: at its first byte, or after the end of an escape that began
/// before it.
fn eaten_in_front(secret: &[u8]) -> Vec<(usize, bool)> {
    let is_hex = |range: std::ops::Range<usize>| {
        secret
            .get(range)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let mut starts = vec![(0, false)];
    let mut eaten = |bytes: usize| starts.push((bytes, true));
    // `\n`, `~1`; `%41`, and `%4` whose `4` came before; `\x41`; `\u0041`.
    match secret.first() {
        Some(b'n' | b'r' | b't' | b'b' | b'f' | b'0' | b'1' | b'"' | b'\'' | b'\\' | b'/') => {
            eaten(1);
        }
        Some(b'x') if is_hex(1..3) => eaten(3),
        Some(b'u') if is_hex(1..5) => eaten(5),
        _ => {}
    }
    for digits in 1..=4 {
        if is_hex(0..digits) {
            eaten(digits);
        }
    }
    // An entity, or a line break removed with the `=` before it.
    let ends = secret.iter().take(REACH).enumerate();
    for (at, _) in ends.filter(|(_, b)| matches!(b, b';' | b'}')) {
        eaten(at + 1);
    }
    let breaks = secret.iter().take_while(|b| matches!(b, b'\r' | b'\n'));
    for at in 1..=breaks.count() {
        eaten(at);
    }
    starts
}

/// Where the secret may end in a view: at its end, or before an escape that the following text completes.
fn eaten_behind(secret: &[u8]) -> Vec<(usize, bool)> {
    let tail = secret.len().saturating_sub(REACH);
    let mut ends = vec![(secret.len(), false)];
    for (at, byte) in secret.iter().enumerate().skip(tail) {
        if matches!(byte, b'%' | b'&' | b'\\' | b'=' | b'~') {
            ends.push((at, true));
        }
    }
    ends
}
