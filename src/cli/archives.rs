//! Files that `check` reads: expands folders and patterns, decompresses gzip and zstd. Writes rejected lines.

use super::Failure;
use conformant_base::files;
use conformant_base::text;
use conformant_check::{STANDARD_INPUT, SetAside};
use conformant_record::Level;
use conformant_report::Growing;
use ruzstd::decoding::StreamingDecoder;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Extensions of the files that are read from a folder.
const ENDINGS: [&str; 5] = ["ndjson", "jsonl", "json", "xml", "har"];

/// Maximum number of files that a note names.
const NAMED_MAX: usize = 5;

/// The files of the arguments.
#[derive(Debug, Default)]
pub(super) struct Expanded {
    pub(super) files: Vec<PathBuf>,
    /// Files of folders that are not read, because of their name or because they are links.
    pub(super) left_out: Vec<PathBuf>,
    /// Why folders below the arguments cannot be read.
    pub(super) unread: Vec<String>,
}

/// Expands the arguments to files, sorted by name within a folder.
pub(super) fn expand(arguments: &[PathBuf]) -> Result<Expanded, Failure> {
    let mut expanded = Expanded::default();
    for argument in arguments {
        let shown = argument.to_string_lossy();
        let before = expanded.files.len();
        if argument.is_dir() {
            let manifest = argument.join("manifest.json");
            let is_set = is_manifest(&manifest);
            let readme = argument.join("README.md");
            let is_of_set = |path: &Path| is_set && (path == manifest || path == readme);
            expanded.add_below(argument, &|path| match is_of_set(path) {
                true => None,
                false => Some(is_read(path)),
            });
            if expanded.files.len() == before && expanded.unread.is_empty() {
                let endings = ENDINGS.join(", .");
                return Err(Failure::Usage(format!(
                    "{shown}: no file to judge found; expected names that end in .{endings}, or one of these and .gz or .zst; the page Archives (docs/src/archives.md) names what reads other formats"
                )));
            }
        } else if shown.contains('*') && !argument.exists() {
            // Like a shell, `2026-*/` matches folders and everything in them.
            let pattern = shown.trim_end_matches('/');
            let is_matched = |path: &Path| text::glob(pattern, &path.to_string_lossy());
            let folder = folder_of(pattern);
            if !folder.is_dir() {
                let folder = folder.display();
                return Err(Failure::Usage(format!(
                    "{shown}: no file matches: the folder {folder} does not exist"
                )));
            }
            expanded.add_below(&folder, &|path| is_matched(path).then_some(true));
            if expanded.files.len() == before {
                return Err(Failure::Usage(format!("{shown}: no file matches")));
            }
        } else {
            expanded.files.push(argument.clone());
        }
    }
    Ok(expanded)
}

/// Names files of folders that are not read.
pub(super) fn left_out(files: &[PathBuf]) -> Option<String> {
    let named = files.iter().take(NAMED_MAX);
    let mut named: Vec<String> = named.map(|path| path.display().to_string()).collect();
    if files.len() > NAMED_MAX {
        named.push(format!("and {} more", files.len() - NAMED_MAX));
    }
    (!files.is_empty()).then(|| {
        format!(
            "WARN {} not read, because of the name or as a link: {}; expected names that end in .{}, plain or with .gz or .zst",
            text::count(files.len(), "file"),
            named.join(", "),
            ENDINGS.join(", .")
        )
    })
}

/// Whether a file lists the fixtures of its folder.
fn is_manifest(path: &Path) -> bool {
    const MANIFEST_BYTES_MAX: u64 = 64 * 1024 * 1024;
    let read = files::read(path, MANIFEST_BYTES_MAX).ok();
    let document = read.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    document.is_some_and(|document| document.get("fixtures").is_some_and(|list| list.is_array()))
}

/// The folder before the first star of a pattern.
fn folder_of(pattern: &str) -> PathBuf {
    let plain = pattern.split('*').next().unwrap_or_default();
    match plain.rsplit_once('/') {
        Some(("", _)) => PathBuf::from("/"),
        Some((folder, _)) => PathBuf::from(folder),
        None => PathBuf::from("."),
    }
}

impl Expanded {
    /// Adds what a folder contains: `is_wanted` decides whether a file is read or left out, or returns `None` for a file
    /// that is not of interest. Links are not followed.
    fn add_below(&mut self, folder: &Path, is_wanted: &dyn Fn(&Path) -> Option<bool>) {
        let entries = walkdir::WalkDir::new(folder)
            .sort_by_file_name()
            .into_iter();
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.unread
                        .push(format!("failed to read a folder: {error}"));
                    continue;
                }
            };
            let path = match entry.path().strip_prefix("./") {
                // As spelled in the pattern.
                Ok(plain) if folder == Path::new(".") => plain.to_owned(),
                _ => entry.path().to_owned(),
            };
            let kind = entry.file_type();
            if kind.is_dir() || (kind.is_symlink() && entry.depth() == 0) {
                continue;
            }
            match is_wanted(&path) {
                Some(true) if kind.is_file() => self.files.push(path),
                Some(_) => self.left_out.push(path),
                None => {}
            }
        }
    }
}

/// Whether a file of a folder is judged, compressed or not.
fn is_read(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let plain = name
        .strip_suffix(".gz")
        .or_else(|| name.strip_suffix(".zst"))
        .unwrap_or(&name);
    let ending = plain.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// An opened input.
pub(super) enum OpenedArchive {
    /// A plain, seekable file.
    Plain(File),
    /// A stream that is decompressed while it is read.
    Unpacked(Box<dyn Read + Send>),
    StandardInput,
}

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// Opens a file; `-` is standard input. A compressed file is recognized by its name or its first bytes.
pub(super) fn open(path: &Path) -> Result<OpenedArchive, Failure> {
    if path == Path::new(STANDARD_INPUT) {
        return Ok(OpenedArchive::StandardInput);
    }
    let mut file = files::open(path)?;
    let mut start = Vec::new();
    let read = (&mut file).take(4).read_to_end(&mut start);
    read.and_then(|_| file.rewind())
        .map_err(|error| Failure::Trouble(format!("failed to read {}: {error}", path.display())))?;
    let ending = path.extension().unwrap_or_default();
    Ok(if ending == "gz" || start.starts_with(GZIP) {
        OpenedArchive::Unpacked(Box::new(flate2::read::MultiGzDecoder::new(file)))
    } else if ending == "zst" || start.starts_with(ZSTD) {
        OpenedArchive::Unpacked(Box::new(Frames::Between(BufReader::new(file))))
    } else {
        OpenedArchive::Plain(file)
    })
}

/// The frames of a zstd file, one after the other, as `zstd` and `cat` write them.
enum Frames<R: BufRead> {
    Between(R),
    Within(Box<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>),
    Done,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Self::Done) {
                Self::Done => return Ok(0),
                Self::Between(mut source) => {
                    if source.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let damaged = "its zstd data is damaged or cut off";
                    let decoder = StreamingDecoder::new(source)
                        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, damaged))?;
                    *self = Self::Within(Box::new(decoder));
                }
                Self::Within(mut decoder) => {
                    let count = match decoder.read(buffer) {
                        Ok(count) => count,
                        // The decoder does not say that its source ended too early.
                        Err(_) if decoder.get_mut().fill_buf()?.is_empty() => {
                            return Err(io::ErrorKind::UnexpectedEof.into());
                        }
                        Err(error) => return Err(error),
                    };
                    if count > 0 || buffer.is_empty() {
                        *self = Self::Within(decoder);
                        return Ok(count);
                    }
                    *self = Self::Between(decoder.into_inner());
                }
            }
        }
    }
}

/// A reader or writer with a digest of everything that passes. The digest names standard input in the record, so that
/// records of several parts differ, and the file of rejected lines, so that a second attempt replaces it.
pub(super) struct Digested<R> {
    source: R,
    digest: Arc<Mutex<Sha256>>,
}

impl<R> Digested<R> {
    /// Returns the reader or writer, and the digest for use at the end.
    pub(super) fn new(source: R) -> (Self, Arc<Mutex<Sha256>>) {
        let digest = Arc::<Mutex<Sha256>>::default();
        let known = Arc::clone(&digest);
        (Self { source, digest }, known)
    }

    fn update(&self, bytes: &[u8]) {
        let mut digest = self.digest.lock().unwrap_or_else(PoisonError::into_inner);
        digest.update(bytes);
    }
}

impl<R: Read> Read for Digested<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.update(&buffer[..count]);
        Ok(count)
    }
}

impl<W: Write> Write for Digested<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.source.write(buffer)?;
        self.update(&buffer[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.source.flush()
    }
}

/// The digest of everything that passed.
pub(super) fn finished(digest: &Mutex<Sha256>) -> impl IntoIterator<Item = u8> {
    let digest = digest.lock().unwrap_or_else(PoisonError::into_inner);
    digest.clone().finalize()
}

/// `stdin-0123456789ab`.
pub(super) fn name_of(digest: &Mutex<Sha256>) -> String {
    format!("stdin-{}", short(digest))
}

fn short(digest: &Mutex<Sha256>) -> String {
    text::hex(finished(digest).into_iter().take(6))
}

/// The file of rejected lines. It gets its name when it is complete.
pub(super) struct Quarantine {
    file: Growing,
    digest: Arc<Mutex<Sha256>>,
}

impl Quarantine {
    /// Creates a temporary file in the folder; several processes may use one folder.
    pub(super) fn begin(folder: &Path, level: Level) -> Result<(Self, SetAside), Failure> {
        let process = format!("rejected-{}.ndjson", std::process::id());
        let begun = Growing::begin(&folder.join(process)).and_then(|file| {
            let (out, digest) = Digested::new(file.file()?);
            Ok((Self { file, digest }, SetAside::new(Box::new(out), level)))
        });
        begun.map_err(|error| {
            let folder = folder.display();
            Failure::Usage(format!("--set-aside {folder} cannot be written: {error}"))
        })
    }

    /// Names the file after its content. Without a rejected line there is no file.
    pub(super) fn finish(self, lines: SetAside) -> Result<Option<(usize, PathBuf)>, Failure> {
        let Self { mut file, digest } = self;
        let finished = lines.finish().and_then(|lines| {
            if lines == 0 {
                return Ok(None);
            }
            file.set_name(&format!("rejected-{}.ndjson", short(&digest)));
            let path = file.path().to_owned();
            file.finish().map(|()| Some((lines, path)))
        });
        finished.map_err(|error| {
            Failure::Trouble(format!(
                "failed to set lines aside: {error}; no line is kept"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    fn unpacked(path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match open(path).unwrap() {
            OpenedArchive::Unpacked(mut source) => source.read_to_end(&mut bytes)?,
            OpenedArchive::Plain(_) | OpenedArchive::StandardInput => {
                panic!("the file is compressed")
            }
        };
        Ok(bytes)
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn the_manifest_of_a_fixture_set_is_not_judged() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a.json"), "{}").unwrap();
        for (manifest, found) in [(r#"{"fixtures": []}"#, 1), ("{}", 2)] {
            std::fs::write(at("manifest.json"), manifest).unwrap();
            let files = expand(&[folder.path().to_owned()]).unwrap();
            assert_eq!(files.files.len(), found, "{manifest}");
            assert_eq!(files.left_out, [] as [PathBuf; 0]);
        }
    }

    #[test]
    fn folders_and_patterns_expand_to_plain_and_compressed_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("deep")).unwrap();
        for (name, bytes) in [
            ("a.ndjson", b"{}\n".to_vec()),
            ("b.ndjson.gz", [gzip(b"1\n"), gzip(b"2\n")].concat()),
            ("deep/c.ndjson.zst", [zstd(b"3\n"), zstd(b"4\n")].concat()),
            ("e.JSON", b"{}".to_vec()),
            ("read.me", b"no".to_vec()),
        ] {
            std::fs::write(at(name), bytes).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(at("deep"), at("link")).unwrap();
        let found = expand(&[folder.path().to_owned()]).unwrap();
        assert_eq!(
            found.files,
            [
                at("a.ndjson"),
                at("b.ndjson.gz"),
                at("deep/c.ndjson.zst"),
                at("e.JSON")
            ]
        );
        #[cfg(unix)]
        assert_eq!(found.left_out, [at("link"), at("read.me")]);
        let line = left_out(&[at("read.me")]).unwrap();
        assert!(line.starts_with("WARN 1 file not read"), "{line}");
        let found = expand(&[at("*.gz")]).unwrap();
        assert_eq!(found.files, [at("b.ndjson.gz")]);
        assert_eq!(found.left_out, [] as [PathBuf; 0]);
        for nothing in ["*.none", "nowhere/*.json"] {
            let error = expand(&[at(nothing)]).unwrap_err().to_string();
            assert!(error.contains("no file matches"), "{error}");
        }
        let read = |name: &str| {
            let bytes = unpacked(&at(name)).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(read("b.ndjson.gz"), "1\n2\n");
        assert_eq!(read("deep/c.ndjson.zst"), "3\n4\n");
    }

    #[test]
    fn an_invalid_archive_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["x.gz", "x.zst"] {
            let path = folder.path().join(name);
            std::fs::write(&path, b"neither").unwrap();
            assert!(unpacked(&path).is_err(), "{name}");
        }
    }

    #[test]
    fn standard_input_is_named_by_its_digest() {
        let name = |text: &'static str| {
            let (mut reader, digest) = Digested::new(text.as_bytes());
            io::copy(&mut reader, &mut io::sink()).unwrap();
            name_of(&digest)
        };
        assert_eq!(name("a"), name("a"));
        assert_ne!(name("a"), name("b"));
        assert!(name("").starts_with("stdin-") && name("").len() == 18);
    }
}
