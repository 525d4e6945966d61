//! Tests of `files`.

use conformant_base::files::{read, read_line};
use std::io;
use std::path::Path;

#[test]
fn lines_are_read_within_their_size() {
    let mut source = io::BufReader::with_capacity(2, &b"abc\n\nde"[..]);
    let mut line = Vec::new();
    let mut read = Vec::new();
    while read_line(&mut source, &mut line, 3).unwrap() {
        read.push(String::from_utf8(line.clone()).unwrap());
    }
    assert_eq!(read, ["abc", "", "de"]);
    let endless = &mut io::BufReader::new(io::repeat(b'x'));
    let error = read_line(endless, &mut line, 1 << 20).unwrap_err();
    assert_eq!(error.to_string(), "more than 1048576 bytes");
    assert!(line.capacity() < 4 << 20, "{}", line.capacity());
}

#[test]
fn only_regular_files_within_the_size_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a\u{1b}[31m");
    std::fs::write(&path, "12345").unwrap();
    assert_eq!(read(&path, 5).unwrap(), b"12345");
    let message = |path: &Path, most| read(path, most).unwrap_err().to_string();
    assert!(message(&path, 4).ends_with("a\\x1b[31m is larger than 4 bytes"));
    assert!(message(folder.path(), 5).ends_with("is a folder, not a file"));
    #[cfg(unix)]
    assert!(message(Path::new("/dev/null"), 5).ends_with("is not a regular file"));
    let missing = folder.path().join("x");
    assert!(read(&missing, 5).unwrap_err().is_missing());
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_says_it_is_empty_and_is_not_is_read_within_the_size() {
    let error = read(Path::new("/proc/kallsyms"), 1000).unwrap_err();
    assert!(error.to_string().contains("larger than"), "{error}");
}
