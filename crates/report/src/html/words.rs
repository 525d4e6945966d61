//! Formats numbers, durations and counts.

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
