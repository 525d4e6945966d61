//! Reads an evidence file up to its first damaged or missing line.

use super::format::{EvidenceRecord, FORMAT, FORMAT_VERSION, Head, Line, Tail};
use conformant_base::{files, text};
use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

/// First bytes of every gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The longest line: the responses of a scenario and what was derived from them.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// An evidence file that is being read.
pub struct Reader<R: Read> {
    lines: BufReader<MultiGzDecoder<BufReader<R>>>,
    line: Vec<u8>,
    pub head: Head,
    /// SHA-256 of the first line, which identifies the run.
    pub run: String,
    /// How the run ended; `None` until the last line was read.
    pub tail: Option<Tail>,
    /// Why no further line can be read, if the file is truncated or damaged.
    pub cut: Option<Cut>,
}

impl<R: Read> fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

impl<R: Read> Reader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// If the file is not evidence in a known format.
    pub fn open(file: R) -> Result<Self, EvidenceFileError> {
        /// The fields that all versions share.
        #[derive(Deserialize)]
        struct Form {
            format: String,
            format_version: u32,
        }
        let mut lines = BufReader::new(MultiGzDecoder::new(BufReader::new(file)));
        let mut line = Vec::new();
        files::read_line(&mut lines, &mut line, LINE_BYTES_MAX)?;
        let form: Form = serde_json::from_slice(&line)?;
        if form.format != FORMAT {
            return Err(EvidenceFileError::Other(form.format));
        }
        if form.format_version > FORMAT_VERSION {
            return Err(EvidenceFileError::Newer(form.format_version));
        }
        let head = serde_json::from_slice(&line)?;
        let run = text::hex(Sha256::digest(&line));
        Ok(Self {
            lines,
            line,
            head,
            run,
            tail: None,
            cut: None,
        })
    }

    /// The next scenario; `None` after the last complete one.
    fn read(&mut self) -> Result<Option<EvidenceRecord>, Cut> {
        if !files::read_line(&mut self.lines, &mut self.line, LINE_BYTES_MAX)? {
            return Err(Cut::Short);
        }
        match serde_json::from_slice(&self.line)? {
            Line::Scenario(record) => Ok(Some(*record)),
            Line::End(tail) => {
                // The gzip member ends here, too; only then its checksum is verified.
                if files::read_line(&mut self.lines, &mut self.line, LINE_BYTES_MAX)? {
                    return Err(Cut::Long);
                }
                self.tail = Some(tail);
                Ok(None)
            }
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = EvidenceRecord;

    fn next(&mut self) -> Option<EvidenceRecord> {
        if self.tail.is_some() || self.cut.is_some() {
            return None;
        }
        self.read().unwrap_or_else(|why| {
            self.cut = Some(why);
            None
        })
    }
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceFileError {
    /// It cannot be decompressed.
    #[error("not an evidence file: {0}")]
    Unpacked(#[from] io::Error),
    /// Its first line is not JSON.
    #[error("not an evidence file: {0}")]
    Foreign(#[from] serde_json::Error),
    /// It has another format.
    #[error("not an evidence file: its format is {0}")]
    Other(String),
    /// It has a newer version.
    #[error("evidence format {0} is newer than {FORMAT_VERSION}, which this program reads")]
    Newer(u32),
}

/// Why the rest of a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Cut {
    /// The last line is missing.
    #[error("its end is missing")]
    Short,
    /// There is data after the last line.
    #[error("there is data after its end")]
    Long,
    /// The rest cannot be decompressed.
    #[error(transparent)]
    Unpacked(#[from] io::Error),
    /// A line is malformed.
    #[error(transparent)]
    Line(#[from] serde_json::Error),
}

/// Whether a file is compressed by gzip.
pub fn is_packed(file: &mut impl BufRead) -> io::Result<bool> {
    Ok(file.fill_buf()?.starts_with(&GZIP_MAGIC))
}
