//! Tests of `size`.

use conformant_base::size::{InvalidSize, Size};

#[test]
fn a_size_is_read_as_it_is_written() {
    for (bytes, text) in [
        (0, "0 B"),
        (1000, "1000 B"),
        (64 << 10, "64 KiB"),
        (8 << 20, "8 MiB"),
    ] {
        assert_eq!(Size(bytes).to_string(), text);
        assert_eq!(text.parse(), Ok(Size(bytes)));
    }
    assert_eq!("512KiB".parse(), Ok(Size(512 << 10)));
    for text in ["", "8", "MiB", "-1 B", "8 GiB", "99999999999999 MiB"] {
        assert_eq!(text.parse::<Size>(), Err(InvalidSize), "{text}");
    }
}
