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

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn a_new_sid_is_recognized_and_follows_its_seed() {
        let draw = |seed| new_sid("FW", &mut rand::rngs::ChaCha8Rng::seed_from_u64(seed));
        assert!(is_sid(&draw(1), "FW"));
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn a_uuid_has_version_4_and_the_bits_that_are_not_fixed() {
        for (random, expected) in [
            (0, "00000000-0000-4000-8000-000000000000"),
            (u128::MAX, "ffffffff-ffff-4fff-bfff-ffffffffffff"),
            (
                0x0123_4567_89ab_cdef_0123_4567_89ab_cdef,
                "01234567-89ab-4def-8123-456789abcdef",
            ),
        ] {
            assert_eq!(uuid(random), expected);
        }
    }

    #[test]
    fn boundary_invalid_values_are_not_sids() {
        let sid = format!("FW{}", "0a".repeat(16));
        assert!(is_sid(&sid, "FW") && is_sid(&sid.to_uppercase(), "FW"));
        for wrong in [
            &sid[..33],
            &format!("{sid}0"),
            &sid.replace('0', "g"),
            "FN00",
            "",
        ] {
            assert!(!is_sid(wrong, "FW"), "{wrong}");
        }
        assert!(!is_sid(&sid, "FN"));
    }
}
