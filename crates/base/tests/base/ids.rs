//! Tests of `ids`.

use conformant_base::ids::{is_sid, new_sid, uuid};
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
