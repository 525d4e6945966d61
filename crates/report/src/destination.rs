//! Parses `FORMAT=PATH` and writes reports atomically.
//!
//! At any time a report file is absent, old or complete. The caller provides standard output.

use super::{Format, Settings, folder};
use conformant_base::failpoint::{self, Failpoint};
use conformant_base::text;
use conformant_record::RunRecord;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tempfile::NamedTempFile;

/// Removed formats and what replaces each.
const REMOVED: [(&str, &str); 2] = [
    (
        "badge",
        "`json`, whose `summary` counts the rules by verdict (`jq .summary.rules run.json`)",
    ),
    ("tap", "`junit` or `ctrf`"),
];
/// Suffix of temporary files, by which a later run removes leftovers.
const UNFINISHED: &str = ".conformant-unfinished";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    Stdout,
    /// A file, created or replaced, with its folder.
    File(PathBuf),
}

/// One `--report FORMAT=PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub format: Format,
    pub destination: Destination,
}

/// Why a `FORMAT=PATH` is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    #[error("expected FORMAT=PATH such as junit=report.xml (`-` is standard output), got `{0}`")]
    Shape(String),
    #[error("the report format `{given}` was removed; use {successor}")]
    Removed {
        given: String,
        successor: &'static str,
    },
    #[error(
        "the report format `dir` writes a folder: expected its path, such as dir=reports, got `-`"
    )]
    Folder,
    #[error("unknown report format `{given}`{}; expected one of {}", hint(.given), names().join(", "))]
    Format { given: String },
}

/// Why a report was not written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write the {} report to {}: {reason}", .format.name(), .path.display())]
pub struct WriteError {
    pub format: Format,
    pub path: PathBuf,
    #[source]
    pub reason: io::Error,
}

impl WriteError {
    /// Turns the error of a file into that of its report.
    pub fn of(format: Format, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |reason| Self {
            format,
            path,
            reason,
        }
    }
}

fn names() -> [&'static str; Format::ALL.len()] {
    Format::ALL.map(Format::name)
}

fn hint(given: &str) -> String {
    text::did_you_mean(&given.to_ascii_lowercase(), &names())
        .map(|name| format!(", did you mean `{name}`?"))
        .unwrap_or_default()
}

impl FromStr for Report {
    type Err = ReportError;

    fn from_str(text: &str) -> Result<Self, ReportError> {
        let shape = || ReportError::Shape(text.to_owned());
        let (name, path) = text.split_once('=').ok_or_else(shape)?;
        if name.is_empty() || path.is_empty() {
            return Err(shape());
        }
        if let Some((_, successor)) = REMOVED.iter().find(|(removed, _)| *removed == name) {
            return Err(ReportError::Removed {
                given: name.to_owned(),
                successor,
            });
        }
        let format = Format::ALL.into_iter().find(|format| format.name() == name);
        let format = format.ok_or_else(|| ReportError::Format {
            given: name.to_owned(),
        })?;
        let destination = if path == "-" {
            if format == Format::Dir {
                return Err(ReportError::Folder);
            }
            Destination::Stdout
        } else {
            Destination::File(path.into())
        };
        Ok(Self {
            format,
            destination,
        })
    }
}

impl Destination {
    /// An error if a file cannot be written here. Creates nothing.
    fn check(&self) -> Result<(), String> {
        let Self::File(path) = self else {
            return Ok(());
        };
        let shown = path.display();
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                return Err(format!("{shown} is a folder: name a file in it"));
            }
            // Devices and pipes have no folder of their own.
            Ok(meta) if !meta.is_file() => return Ok(()),
            Ok(_) | Err(_) => {}
        }
        let folders = path.ancestors().skip(1);
        let folders = folders.map(|folder| match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => folder,
        });
        // Missing folders are created with the report.
        let mut existing = folders.filter(|folder| folder.exists());
        let folder = existing.next().unwrap_or_else(|| Path::new("."));
        let tried = NamedTempFile::new_in(folder).map(drop);
        tried.map_err(|why| format!("{shown} cannot be written: {}", without_path(why)))
    }
}

/// An error of a temporary file without the path of that file, which the caller does not know.
fn without_path(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(std::error::Error::source);
    let code = inner
        .and_then(|inner| inner.downcast_ref::<io::Error>())
        .and_then(io::Error::raw_os_error);
    code.map_or(error, io::Error::from_raw_os_error)
}

impl Report {
    /// Renders and writes the record, to `stdout` if that is the destination.
    ///
    /// # Errors
    /// If the file cannot be written. A closed standard output is not an error.
    pub fn write(
        &self,
        record: &RunRecord,
        settings: Settings,
        stdout: &mut dyn io::Write,
    ) -> Result<(), WriteError> {
        match &self.destination {
            Destination::File(path) if self.format == Format::Dir => {
                let written = folder::write(path, record, settings);
                written.map_err(WriteError::of(self.format, path))
            }
            Destination::File(_) | Destination::Stdout => {
                self.put(&self.format.render(record, settings), stdout)
            }
        }
    }

    /// An error if the report cannot be written. Creates nothing.
    pub fn check(&self) -> Result<(), String> {
        if let (Format::Dir, Destination::File(folder)) = (self.format, &self.destination) {
            folder::check(folder)?;
        }
        match self.file() {
            Some(file) => Destination::File(file).check(),
            None => Ok(()),
        }
    }

    /// The file to open first; the index of a folder.
    pub fn file(&self) -> Option<PathBuf> {
        match &self.destination {
            Destination::Stdout => None,
            Destination::File(path) if self.format == Format::Dir => Some(path.join("README.md")),
            Destination::File(path) => Some(path.clone()),
        }
    }

    /// Whether its file is known to be a report of this format. False for formats without a mark, such as Markdown.
    pub fn is_recognized(&self) -> bool {
        let content = self.file().and_then(|file| fs::read(file).ok());
        let content = content.unwrap_or_default();
        let content = String::from_utf8_lossy(&content);
        let marks = self.format.marks();
        !marks.is_empty() && marks.iter().all(|mark| content.contains(mark))
    }

    /// Writes a rendered report.
    ///
    /// # Errors
    /// Those of [`Report::write`].
    pub fn put(&self, content: &str, stdout: &mut dyn io::Write) -> Result<(), WriteError> {
        let (path, written) = match &self.destination {
            Destination::Stdout => {
                let written = stdout
                    .write_all(content.as_bytes())
                    .and_then(|()| stdout.flush());
                (Path::new("standard output"), unless_closed(written))
            }
            Destination::File(path) => (path.as_path(), write_whole(path, content.as_bytes())),
        };
        written.map_err(WriteError::of(self.format, path))
    }
}

/// The folder of a file.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A closed pipe is not an error.
pub(super) fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    // A device or a pipe is written to; replacing /dev/null by a file would be a surprise.
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(content);
    }
    let mut growing = Growing::begin(path)?;
    failpoint::check(Failpoint::ReportWrite)?;
    growing.file.write_all(content)?;
    growing.finish()
}

/// A file written in pieces and renamed when complete.
#[derive(Debug)]
pub struct Growing {
    path: PathBuf,
    folder: PathBuf,
    file: NamedTempFile,
}

impl Growing {
    /// Creates a temporary file next to the final path.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let name = path
            .file_name()
            .filter(|_| !path.is_dir())
            .ok_or(io::ErrorKind::IsADirectory)?
            .to_string_lossy();
        let folder = folder_of(path);
        fs::create_dir_all(folder)?;
        let prefix = format!(".{name}.");
        clear_unfinished(folder, &prefix);
        Ok(Self {
            file: unfinished(&prefix)
                .tempfile_in(folder)
                .map_err(without_path)?,
            path: path.to_owned(),
            folder: folder.to_owned(),
        })
    }

    pub fn file(&self) -> io::Result<Box<dyn io::Write + Send>> {
        Ok(Box::new(self.file.as_file().try_clone()?))
    }

    /// Sets another final name in the same folder, such as one that depends on the content.
    pub fn set_name(&mut self, name: &str) {
        self.path = self.folder.join(name);
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames it to the final path.
    pub fn finish(self) -> io::Result<()> {
        failpoint::check(Failpoint::ReportSync)?;
        self.file.as_file().sync_all()?;
        failpoint::check(Failpoint::ReportRename)?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        sync_folder(&self.folder);
        Ok(())
    }
}

/// Readable by all, like any build result: secrets are already redacted.
fn unfinished(prefix: &str) -> tempfile::Builder<'_, 'static> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    builder.prefix(prefix).suffix(UNFINISHED);
    builder
}

/// Removes temporary files of killed runs; ignores errors.
fn clear_unfinished(folder: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(prefix) && name.ends_with(UNFINISHED) {
            fs::remove_file(entry.path()).unwrap_or_default();
        }
    }
}

/// Syncs the rename where the file system supports it.
fn sync_folder(folder: &Path) {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{assert_contains, sample};

    fn parse(text: &str) -> Result<Report, ReportError> {
        text.parse()
    }

    fn refusal(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn formats_and_paths_are_read() {
        for format in Format::ALL {
            let report = parse(&format!("{}=a=b.out", format.name())).unwrap();
            assert_eq!(report.format, format);
            assert_eq!(report.destination, Destination::File("a=b.out".into()));
        }
        assert_eq!(parse("github=-").unwrap().destination, Destination::Stdout);
    }

    #[test]
    fn a_written_report_is_recognized_where_its_format_has_a_mark() {
        let folder = tempfile::tempdir().unwrap();
        let mut unmarked = Vec::new();
        for format in Format::ALL {
            let report = Report {
                format,
                destination: Destination::File(folder.path().join(format.name())),
            };
            assert!(!report.is_recognized(), "absent: {format:?}");
            let settings = Settings::default();
            report.write(&sample(), settings, &mut Vec::new()).unwrap();
            if !report.is_recognized() {
                unmarked.push(format);
                continue;
            }
            let of_others = r#"{"name": "mine", "$schema": "sarif"}"#;
            fs::write(report.file().unwrap(), of_others).unwrap();
            assert!(!report.is_recognized(), "of others: {format:?}");
        }
        assert_eq!(unmarked, [Format::Markdown, Format::Github]);
    }

    #[test]
    fn a_check_creates_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("new");
        let report = |path: &Path| parse(&format!("json={}", path.display())).unwrap();
        assert_eq!(report(&new.join("deep/run.json")).check(), Ok(()));
        assert!(!new.exists());
        fs::write(&new, "a file").unwrap();
        let refused = report(&new.join("run.json")).check().unwrap_err();
        assert!(refused.contains("cannot be written"), "{refused}");
    }

    #[test]
    fn an_unknown_format_gets_a_suggestion() {
        let error = refusal("juint=x");
        assert_contains(
            &error,
            &["`juint`, did you mean `junit`?; expected one of json, junit"],
        );
        assert!(!refusal("pdf=x").contains("did you mean"));
        for text in ["json", "=x", "json=", ""] {
            assert!(refusal(text).starts_with("expected FORMAT=PATH"));
        }
    }

    #[test]
    fn a_removed_format_is_refused_with_its_successor() {
        for (name, successor) in REMOVED {
            assert_eq!(
                refusal(&format!("{name}=x")),
                format!("the report format `{name}` was removed; use {successor}")
            );
        }
    }

    #[test]
    fn files_are_replaced_atomically_without_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/run.json");
        fs::create_dir(folder.path().join("new")).unwrap();
        let stray = folder.path().join(format!("new/.run.json.abc{UNFINISHED}"));
        fs::write(&stray, "half").unwrap();
        fs::write(&path, "x".repeat(1_000_000)).unwrap();
        let report = parse(&format!("json={}", path.display())).unwrap();
        report
            .write(&sample(), Settings::default(), &mut io::sink())
            .unwrap();
        assert!(fs::read_to_string(&path).unwrap().ends_with("}\n"));
        let beside = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(beside, 1, "only the report itself");
    }

    #[test]
    fn failures_name_the_path_and_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let report = parse(&format!("ctrf={}", folder.path().display())).unwrap();
        let error = report
            .write(&sample(), Settings::default(), &mut io::sink())
            .unwrap_err();
        let text = error.to_string();
        assert!(text.contains("the ctrf report to"), "{text}");
        assert!(
            text.contains(&folder.path().display().to_string()),
            "{text}"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_named_and_not_hidden() {
        let report = parse("json=/dev/full").unwrap();
        let error = report
            .write(&sample(), Settings::default(), &mut io::sink())
            .unwrap_err();
        let text = error.to_string();
        assert_contains(&text, &["the json report to /dev/full: No space left"]);
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_written_to_and_not_replaced() {
        use std::os::unix::fs::FileTypeExt as _;
        write_whole(Path::new("/dev/null"), b"x").unwrap();
        assert!(
            fs::metadata("/dev/null")
                .unwrap()
                .file_type()
                .is_char_device()
        );
    }

    #[test]
    fn a_closed_standard_output_is_no_error() {
        let report = parse("json=-").unwrap();
        report
            .write(&sample(), Settings::default(), &mut Closed)
            .unwrap();
    }

    struct Closed;

    impl io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }
}
