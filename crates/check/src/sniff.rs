//! Names the format of a file that `check` does not read, by its first bytes.

/// Bytes that are read to recognize a format.
pub(super) const START_BYTES: usize = 512;

/// First bytes and name.
const MAGIC: [(&[u8], &str); 22] = [
    (b"PAR1", "Parquet"),
    (b"PARE", "encrypted Parquet"),
    (b"Obj\x01", "Avro"),
    (b"ORC", "ORC"),
    (b"ARROW1", "Arrow"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xff\x06\0\0sNaPpY", "snappy"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"%PDF-", "PDF"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x89PNG\r\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"\xff\xfe\0\0", "UTF-32 text"),
    (b"\0\0\xfe\xff", "UTF-32 text"),
    (
        b"version https://git-lfs.github.com/spec/",
        "a Git LFS pointer",
    ),
];

/// Magic bytes of a tar archive and their position.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// The format, if it is a known one that is neither JSON nor XML nor text in UTF-8.
pub fn format(start: &[u8]) -> Option<&'static str> {
    let known = MAGIC.iter().find(|(magic, _)| start.starts_with(magic));
    if let Some((_, name)) = known {
        return Some(name);
    }
    let text = start.trim_ascii_start();
    let is_html = [&b"<!doctype html"[..], b"<html"].iter().any(|tag| {
        text.get(..tag.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(tag))
    });
    if is_html {
        return Some("HTML");
    }
    if start
        .get(TAR.0..)
        .is_some_and(|rest| rest.starts_with(TAR.1))
    {
        return Some("a tar archive");
    }
    match start {
        // ASCII in UTF-32 without a byte order mark.
        [b'{' | b'[' | b'<', 0, 0, 0, ..] | [0, 0, 0, b'{' | b'[' | b'<', ..]
            if start.len().is_multiple_of(4) =>
        {
            Some("UTF-32 text")
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16 text"),
        // ASCII in UTF-16 without a byte order mark.
        [b'{' | b'[' | b'<', 0, ..] | [0, b'{' | b'[' | b'<', ..]
            if start.len().is_multiple_of(2) =>
        {
            Some("UTF-16 text")
        }
        _ => None,
    }
}

/// The format of text that is neither JSON nor XML, if it is a known one.
pub(super) fn text_format(text: &[u8]) -> Option<&'static str> {
    if is_csv(text) {
        return Some("CSV");
    }
    is_yaml(text).then_some("YAML")
}

/// Whether the first two lines are cells of one table: neither JSON nor XML, with as many separators. The second one may be cut.
fn is_csv(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else {
        return false;
    };
    let is_cut = text.len() + 1 >= START_BYTES && lines.next().is_none();
    !is_json_or_xml(text)
        && !second.starts_with(b"{")
        && [b',', b';', b'\t'].into_iter().any(|separator| {
            let cells = |line: &[u8]| memchr::memchr_iter(separator, line).count();
            let (head, row) = (cells(first), cells(second));
            row > 0 && (row == head || is_cut && row < head)
        })
}

/// Whether text begins with the mark of a YAML document, or with two lines that are keys or list items.
fn is_yaml(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let Some(first) = lines.next() else {
        return false;
    };
    first == b"---" || first.starts_with(b"%YAML ") || {
        let is_of_yaml = |line: &[u8]| line.starts_with(b"- ") || has_yaml_key(line);
        is_of_yaml(first) && lines.next().is_some_and(is_of_yaml)
    }
}

/// Whether a line is `key:` or `key: value`, with a key without quotes.
fn has_yaml_key(line: &[u8]) -> bool {
    let is_of_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let end = line.iter().position(|byte| !is_of_key(byte));
    end.is_some_and(|end| end > 0 && matches!(line[end..], [b':'] | [b':', b' ', ..]))
}

/// Whether text begins like a JSON value, or like XML.
pub(super) fn is_json_or_xml(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    match start.trim_ascii_start() {
        [] | [b'{' | b'[' | b'"' | b'-' | b'<' | b'0'..=b'9', ..] => true,
        text => [&b"true"[..], b"false", b"null"]
            .iter()
            .any(|word| text.starts_with(word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_formats_are_named_and_text_is_not() {
        let mut tar = vec![b'a'; 300];
        tar[257..262].copy_from_slice(b"ustar");
        for (start, name) in [
            (&b"PAR1\x15"[..], Some("Parquet")),
            (b"Obj\x01\x04", Some("Avro")),
            (b"ORC\x08", Some("ORC")),
            (b"PK\x03\x04", Some("a zip archive")),
            (b"BZh91AY", Some("bzip2")),
            (b"\xfd7zXZ\0\0", Some("xz")),
            (&tar, Some("a tar archive")),
            (b"\xff\xfe{\0", Some("UTF-16 text")),
            (b"{\0\"\0", Some("UTF-16 text")),
            (b"\n<!DOCTYPE html><html>", Some("HTML")),
            (b"<html lang=en>", Some("HTML")),
            (b"SQLite format 3\0\x10", Some("a SQLite database")),
            (b"Rar!\x1a\x07\x01", Some("a RAR archive")),
            (b"\x89PNG\r\n\x1a\n", Some("PNG")),
            (b"\xff\xd8\xff\xe0", Some("JPEG")),
            (b"\xff\xfe\0\0{\0\0\0", Some("UTF-32 text")),
            (b"\0\0\xfe\xff\0\0\0{", Some("UTF-32 text")),
            (b"{\0\0\0}\0\0\0", Some("UTF-32 text")),
            (b"\0\0\0{\0\0\0}", Some("UTF-32 text")),
            (
                b"version https://git-lfs.github.com/spec/v1\noid",
                Some("a Git LFS pointer"),
            ),
            (b"<hash/>", None),
            (b"{}", None),
            (b"", None),
            (b"\0\0\0\0\x07{}", None),
        ] {
            assert_eq!(format(start), name, "{start:?}");
        }
        for (text, is) in [
            (&b"sid,name\n1,\"a\"\n"[..], true),
            (b"sid;name\r\n1;a", true),
            (b"sid,name\n", false),
            (b"cut, line\n{\"a\":1,\"b\":2}\n", false),
            (b"one, two\nthree", false),
            (b"{\"a\":1,\n\"b\":2,\n", false),
        ] {
            assert_eq!(is_csv(text), is, "{text:?}");
        }
        for (text, is) in [
            (&b"---\nsid: FW1\n"[..], true),
            (b"# a flow\nsid: FW1\nsteps:\n", true),
            (b"- sid: FW1\n  name: a\n", true),
            (b"Error: no such file\n", false),
            (b"otpauth://totp/a\notpauth://totp/b\n", false),
            (b"- -1\n", false),
            (b"{\"a\":1}\n{\"a\":2}\n", false),
        ] {
            assert_eq!(is_yaml(text), is, "{text:?}");
        }
        assert!(is_json_or_xml(b"\xef\xbb\xbf {") && is_json_or_xml(b"null"));
        assert!(!is_json_or_xml(b"id,name\n1,a\n"));
    }
}
