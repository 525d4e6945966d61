//! Tests of `proof`.

use conformant_record::share;

#[test]
fn a_share_is_never_rounded_up() {
    assert_eq!(share(999, 1000), "0.99");
    assert_eq!(share(5, 5), "1.00");
    assert_eq!(share(1, 3), "0.33");
    assert_eq!(share(0, 0), "–");
}
