//! Numbers of bytes, as text.

use std::fmt;
use std::str::FromStr;

/// A number of bytes, printed as `8 MiB`, `64 KiB`, `1000 B`; parsed with or without the blank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// Units, largest first.
const UNITS: [(&str, u64); 3] = [("MiB", 1024 * 1024), ("KiB", 1024), ("B", 1)];

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = *self;
        let whole = |(_, unit): &&(&str, u64)| bytes >= *unit && bytes.is_multiple_of(*unit);
        let (name, unit) = UNITS.iter().find(whole).unwrap_or(&("B", 1));
        write!(f, "{} {name}", bytes / unit)
    }
}

/// A text that is not a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid size: expected a number and a unit, such as `512KiB` or `8MiB`")]
pub struct InvalidSize;

impl FromStr for Size {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        let read = |(name, unit): &(&str, u64)| {
            let number: u64 = text.strip_suffix(name)?.trim().parse().ok()?;
            number.checked_mul(*unit)
        };
        UNITS.iter().find_map(read).map(Self).ok_or(InvalidSize)
    }
}
