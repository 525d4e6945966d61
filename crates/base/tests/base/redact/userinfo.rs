//! Tests of `redact::userinfo`.

use conformant_base::redact::redact_userinfo;

#[test]
fn credentials_in_urls_are_redacted_and_other_text_stays() {
    for (text, expected) in [
        ("http://u:p@h/x", "http://[redacted]@h/x"),
        (
            "a `http://u@h`, https://u:p@q@h:1",
            "a `http://[redacted]@h`, https://[redacted]@h:1",
        ),
        (
            "flow=http://u:p/w@h/x: why",
            "flow=http://[redacted]@h/x: why",
        ),
        ("http://h:80/a@b.c and u@h", "http://h:80/a@b.c and u@h"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
        ("http:// u@h", "http:// u@h"),
    ] {
        assert_eq!(redact_userinfo(text), expected);
    }
}
