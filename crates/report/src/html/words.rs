//! Formats numbers, durations, counts and values.

use conformant_base::text;

/// `1,058`.
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `366 days`, `1 h 12 min`, `2 min 5 s`, `3.2 s`.
pub(super) fn duration(seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, non-negative seconds"
    )]
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..=59 => format!("{seconds:.1} s"),
        60..=3_599 => format!("{} min {} s", whole / 60, whole % 60),
        3_600..=172_799 => format!("{} h {} min", whole / 3_600, whole / 60 % 60),
        _ => format!("{} days", whole / 86_400),
    }
}

pub(super) fn scenarios(count: usize) -> String {
    let noun = if count == 1 { "scenario" } else { "scenarios" };
    format!("{} {noun}", thousands(count))
}

/// `1,089 rules pass`.
pub(super) fn hold(count: usize) -> String {
    match count {
        1 => "1 rule passes".to_owned(),
        n => format!("{} rules pass", thousands(n)),
    }
}

/// A value as it was, for a page: without the escapes of its JSON or shell spelling, which a reader would have to undo.
/// Characters that deceive stay escaped.
pub(super) fn as_it_was(text: &str) -> String {
    let text = match serde_json::from_str::<String>(text) {
        Ok(value) if text::escape(&value) == value => format!("\"{value}\""),
        Ok(_) | Err(_) => text.to_owned(),
    };
    with_joined_pictures(&text)
}

/// Undoes the escape of a joiner between two pictures, such as those of a family.
fn with_joined_pictures(text: &str) -> String {
    const JOINER: &str = "\\u{200d}";
    let is_picture = |c: char| matches!(u32::from(c), 0x2600..=0x27bf | 0xfe0f | 0x1f000..=0x1faff);
    let mut parts = text.split(JOINER);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_between = out.ends_with(is_picture) && part.starts_with(is_picture);
        out.push_str(if is_between { "\u{200d}" } else { JOINER });
        out.push_str(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shown_as_it_was_unless_it_deceives() {
        for (escaped, shown) in [
            (r#""fits {\"a\":\"b\"}""#, r#""fits {"a":"b"}""#),
            (r#""Zo\u00eb""#, "\"Zoë\""),
            ("\"👩\\u{200d}💻\"", "\"👩\u{200d}💻\""),
            ("\"a\\u{200d}b\"", "\"a\\u{200d}b\""),
            (r#""\u202e""#, r#""\u202e""#),
            ("one of a, b", "one of a, b"),
        ] {
            assert_eq!(as_it_was(escaped), shown);
        }
    }
}
