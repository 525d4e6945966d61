//! Reads untrusted files: regular files only, within a size limit.
//!
//! Errors contain escaped paths.

use crate::text::escape_line;
use std::fs::File;
use std::io::{self, BufRead, Read as _};
use std::path::{Path, PathBuf};

/// Limit for files that people write: configuration, waivers, declarations, rulebook files.
pub const WRITTEN_BYTES_MAX: u64 = 8 << 20;
/// Limit for files that programs write and that are read whole: stored runs, manifests.
pub const STORED_BYTES_MAX: u64 = 64 << 20;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{} could not be read: {reason}", display_path(path))]
    Unreadable {
        path: PathBuf,
        #[source]
        reason: io::Error,
    },
    #[error("{} is a folder, not a file", display_path(.0))]
    Folder(PathBuf),
    /// A pipe, a device.
    #[error("{} is not a regular file", display_path(.0))]
    Irregular(PathBuf),
    #[error("{} is larger than {bytes_max} bytes", display_path(path))]
    TooLarge { path: PathBuf, bytes_max: u64 },
}

impl FileError {
    /// True if the file does not exist.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Unreadable { reason, .. } => matches!(
                reason.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ),
            Self::Folder(_) | Self::Irregular(_) | Self::TooLarge { .. } => false,
        }
    }
}

fn display_path(path: &Path) -> String {
    escape_line(&path.display().to_string()).into_owned()
}

/// Opens a regular file. Opening a pipe could block forever.
pub fn open(path: &Path) -> Result<File, FileError> {
    let unread = |reason| FileError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    let kind = std::fs::metadata(path).map_err(unread)?.file_type();
    if kind.is_dir() {
        return Err(FileError::Folder(path.to_owned()));
    }
    if !kind.is_file() {
        return Err(FileError::Irregular(path.to_owned()));
    }
    File::open(path).map_err(unread)
}

/// Reads a file. The size is checked first and enforced while reading, because a file may grow.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    let unread = |reason| FileError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    let too_large = || FileError::TooLarge {
        path: path.to_owned(),
        bytes_max,
    };
    let file = open(path)?;
    let size = file.metadata().map_err(unread)?.len();
    if size > bytes_max {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    let taken = file.take(bytes_max + 1).read_to_end(&mut bytes);
    taken.map_err(unread)?;
    if bytes.len() as u64 > bytes_max {
        return Err(too_large());
    }
    Ok(bytes)
}

/// Replaces the buffer by the next line without its end; false after the last line.
///
/// # Errors
/// I/O errors, and [`io::ErrorKind::InvalidData`] for a line over the limit, which is not read further.
pub fn read_line(
    source: &mut impl BufRead,
    line: &mut Vec<u8>,
    bytes_max: u64,
) -> io::Result<bool> {
    line.clear();
    let taken = source.take(bytes_max + 1).read_until(b'\n', line)?;
    if line.pop_if(|last| *last == b'\n').is_none() && line.len() as u64 > bytes_max {
        let why = format!("more than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(taken > 0)
}
