//! Equality of JSON values.

use super::pointer::member;
use serde_json::{Number, Value};

/// True if both are the same JSON value. Member order does not matter. Numbers compare as decimals,
/// never as floating point: `1`, `1.0` and `10e-1` are equal.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || Decimal::parse(a) == Decimal::parse(b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| member(b, key).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

/// True if both are equal including the order of members and the spelling of numbers.
pub fn identical(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| identical(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let mut members = a.iter().zip(b);
            a.len() == b.len() && members.all(|((k, a), (l, b))| k == l && identical(a, b))
        }
        (a, b) => a == b,
    }
}

/// The digits of a number without fraction and exponent, such as 7330061 for `7330061e0` and `7330061.0`; of others as
/// they are.
pub fn digits(number: &Number) -> String {
    /// No identifier is longer.
    const DIGITS_MAX: i64 = 40;
    let text = number.to_string();
    if !text.contains(['.', 'e', 'E']) {
        return text;
    }
    let decimal = Decimal::parse(number);
    match decimal.exponent {
        Exponent::Counted(zeros @ 0..=DIGITS_MAX) if !decimal.digits.is_empty() => {
            let sign = if decimal.negative { "-" } else { "" };
            let zeros = "0".repeat(usize::try_from(zeros).unwrap_or_default());
            format!("{sign}{}{zeros}", decimal.digits)
        }
        Exponent::Counted(_) | Exponent::Text(_) => text,
    }
}

/// A number in one spelling: sign, digits without zeros at either end, power of ten.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: Exponent,
}

/// A power of ten, or its text if it does not fit.
#[derive(PartialEq, Eq)]
enum Exponent {
    Counted(i64),
    Text(String),
}

impl Decimal {
    fn parse(number: &Number) -> Self {
        let text = number.to_string();
        let unsigned = text.strip_prefix('-').unwrap_or(&text);
        let (mantissa, power) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_start_matches('0').trim_end_matches('0');
        if significant.is_empty() {
            return Self {
                negative: false,
                digits: String::new(),
                exponent: Exponent::Counted(0),
            };
        }
        let trailing = digits.len() - digits.trim_end_matches('0').len();
        let shift = i64::try_from(trailing).unwrap_or(i64::MAX)
            - i64::try_from(fraction.len()).unwrap_or(i64::MAX);
        let exponent = power
            .parse::<i64>()
            .ok()
            .and_then(|power| power.checked_add(shift))
            .map_or_else(|| Exponent::Text(power.to_owned()), Exponent::Counted);
        Self {
            negative: text.starts_with('-'),
            digits: significant.to_owned(),
            exponent,
        }
    }
}
