//! SIDs, the 34-character identifiers of the chat, media and flow documents, and UUIDs.
//!
//! Creates both and recognizes SIDs. The rulebook defines what a prefix means.

use rand::Rng;

/// A two-letter prefix and 32 hexadecimal digits (D2, Conventions).
pub const SID_LENGTH: usize = 34;

/// Creates a SID with the given two-letter prefix and lower-case digits.
///
/// # Panics
/// Never: a nibble is always a hexadecimal digit.
pub fn new_sid(prefix: &str, rng: &mut impl Rng) -> String {
    let digits: [u8; 16] = std::array::from_fn(|_| (rng.next_u32() & 0xff) as u8);
    let mut sid = String::with_capacity(SID_LENGTH);
    sid.push_str(prefix);
    for byte in digits {
        sid.push(char::from_digit(u32::from(byte >> 4), 16).expect("a nibble is a hex digit"));
        sid.push(char::from_digit(u32::from(byte & 15), 16).expect("a nibble is a hex digit"));
    }
    sid
}

/// A UUID of version 4 (RFC 9562) with these random bits.
pub fn uuid(random: u128) -> String {
    let bits = random & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|part| &hex[part]).join("-")
}

/// True if `text` is a SID with that prefix, digits in either case (D2, Conventions).
pub fn is_sid(text: &str, prefix: &str) -> bool {
    text.len() == SID_LENGTH
        && text
            .strip_prefix(prefix)
            .is_some_and(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
}
