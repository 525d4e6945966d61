//! Parses ISO 8601 instants. Does not read the clock.

use jiff::civil::{Date, ISOWeekDate, Weekday};
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp, ToSpan};

/// Whether a time is written in whole minutes, so that its seconds are unknown.
pub fn is_in_minutes(text: &str) -> bool {
    let time = text.split_once(['T', 't']).map_or("", |(_, time)| time);
    let time = time.split(['Z', 'z', '+', '-']).next().unwrap_or_default();
    time.chars().filter(char::is_ascii_digit).count() < 6
}

/// The instant of a date, time and offset in any form of ISO 8601: calendar, week or ordinal date, basic
/// or extended, with decimals: `2026-01-01T00:00:00Z`, `20260101T0000+00`, `2026-W01-4T00,5Z`.
pub fn instant(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once(['T', 't'])?;
    let is_time = |b: u8| b.is_ascii_digit() || b":.,+-Zz".contains(&b);
    if !time.bytes().all(is_time) {
        return None;
    }
    let is_calendar = |b: u8| b.is_ascii_digit() || b == b'-';
    let usual = date.bytes().all(is_calendar).then(|| text.parse());
    match usual {
        Some(Ok(instant)) => Some(instant),
        Some(Err(_)) | None => rare(date, time),
    }
}

/// Whether a text is a date in any form of ISO 8601: calendar, week or ordinal date, basic or extended.
pub fn is_date(text: &str) -> bool {
    read_date(text).is_some()
}

/// Rarely used forms.
fn rare(date: &str, time: &str) -> Option<Timestamp> {
    let zone = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = time.split_at(zone);
    let midnight = read_date(date)?.at(0, 0, 0, 0);
    let midnight = read_offset(zone)?.to_timestamp(midnight).ok()?;
    midnight.checked_add(read_time(time)?).ok()
}

fn read_date(text: &str) -> Option<Date> {
    let dashes = places_of('-', text);
    let digits = text.replace('-', "");
    let number = |from: usize, to: usize| {
        let part = digits.get(from..to)?;
        let is_number = part.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| part.parse::<i16>().ok()).flatten()
    };
    let year = number(0, 4)?;
    match (digits.len(), dashes.as_slice()) {
        (8, [] | [4, 8]) if digits.as_bytes()[4] == b'W' => {
            let week = number(5, 7)?.try_into().ok()?;
            let day = Weekday::from_monday_one_offset(number(7, 8)?.try_into().ok()?).ok()?;
            Some(ISOWeekDate::new(year, week, day).ok()?.date())
        }
        (8, [] | [4, 7]) => {
            let (month, day) = (
                number(4, 6)?.try_into().ok()?,
                number(6, 8)?.try_into().ok()?,
            );
            Date::new(year, month, day).ok()
        }
        (7, [] | [4]) => {
            let first = Date::new(year, 1, 1).ok()?;
            let date = first.checked_add((number(4, 7)? - 1).days()).ok()?;
            (date.year() == year && date >= first).then_some(date)
        }
        _ => None,
    }
}

fn places_of(separator: char, text: &str) -> Vec<usize> {
    text.match_indices(separator).map(|(at, _)| at).collect()
}

/// The time since midnight from the given hours, minutes and seconds.
fn read_time(text: &str) -> Option<SignedDuration> {
    let (whole, decimals) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let colons = places_of(':', whole);
    let digits = whole.replace(':', "");
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (last_seconds, parts) = match (digits.len(), colons.as_slice()) {
        (2, []) => (3_600, 1),
        (4, [] | [2]) => (60, 2),
        (6, [] | [2, 5]) => (1, 3),
        _ => return None,
    };
    if !is_number(&digits) || !is_number(decimals) || text.ends_with(['.', ',']) {
        return None;
    }
    let bounds = [(24, 3_600), (60, 60), (60, 1)];
    let mut seconds = 0;
    for (part, (below, length)) in bounds.iter().take(parts).enumerate() {
        let number: i64 = digits.get(2 * part..2 * part + 2)?.parse().ok()?;
        if number >= *below {
            return None;
        }
        seconds += number * length;
    }
    // Digits below a nanosecond do not change the instant.
    let nanos = format!("{decimals:0<9}").get(..9)?.parse::<i64>().ok()?;
    let rest = SignedDuration::from_nanos(nanos * last_seconds);
    SignedDuration::from_secs(seconds).checked_add(rest)
}

fn read_offset(text: &str) -> Option<Offset> {
    let sign = match text.as_bytes().first()? {
        b'Z' | b'z' => return (text.len() == 1).then_some(Offset::UTC),
        b'-' => -1,
        _ => 1,
    };
    let (hours, minutes) = match text[1..].split_once(':') {
        Some(parts) => parts,
        None if text.len() == 3 => (&text[1..], "00"),
        None => text.get(1..3).zip(text.get(3..))?,
    };
    let number = |part: &str| {
        (part.len() == 2)
            .then(|| part.parse::<i32>().ok())
            .flatten()
    };
    let minutes = number(minutes).filter(|&minutes| minutes < 60)?;
    Offset::from_seconds(sign * (number(hours)? * 3_600 + minutes * 60)).ok()
}
