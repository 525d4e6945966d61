//! Reads a file of evidence as far as it is whole.

use super::form::{FORMAT, FORMAT_VERSION, Head, Line, Played, Tail};
use conformant_base::files;
use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

/// How every file packed by gzip begins.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The longest line that is read: all answers of a story (10 MiB), with what was made of them.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// A file of evidence that is being read.
pub struct Reader<R: Read> {
    lines: BufReader<MultiGzDecoder<BufReader<R>>>,
    line: Vec<u8>,
    /// What the run was.
    pub head: Head,
    /// How it ended; nothing until its end was read.
    pub tail: Option<Tail>,
    /// Why nothing further can be read, where it was cut or damaged.
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
    /// Reads what the run was.
    ///
    /// # Errors
    /// For anything but evidence of a form that is known.
    pub fn open(file: R) -> Result<Self, KeptError> {
        /// What any form says of itself.
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
            return Err(KeptError::Other(form.format));
        }
        if form.format_version > FORMAT_VERSION {
            return Err(KeptError::Newer(form.format_version));
        }
        let head = serde_json::from_slice(&line)?;
        Ok(Self {
            lines,
            line,
            head,
            tail: None,
            cut: None,
        })
    }

    /// The next story; nothing behind the last whole one.
    fn read(&mut self) -> Result<Option<Played>, Cut> {
        if !files::read_line(&mut self.lines, &mut self.line, LINE_BYTES_MAX)? {
            return Err(Cut::Short);
        }
        match serde_json::from_slice(&self.line)? {
            Line::Story(played) => Ok(Some(*played)),
            Line::End(tail) => {
                // Behind it the packing ends, too: only then its sum was looked at.
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
    type Item = Played;

    fn next(&mut self) -> Option<Played> {
        if self.tail.is_some() || self.cut.is_some() {
            return None;
        }
        self.read().unwrap_or_else(|why| {
            self.cut = Some(why);
            None
        })
    }
}

/// Why evidence is not read.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// It cannot be unpacked.
    #[error("no evidence of a run: {0}")]
    Unpacked(#[from] io::Error),
    /// It does not begin as one.
    #[error("no evidence of a run: {0}")]
    Foreign(#[from] serde_json::Error),
    /// It is something else.
    #[error("no evidence of a run: it calls itself {0}")]
    Other(String),
    /// A later program wrote it.
    #[error("written in form {0} of evidence, and this program knows {FORMAT_VERSION}")]
    Newer(u32),
}

/// Why nothing further can be read of a file that began well.
#[derive(Debug, thiserror::Error)]
pub enum Cut {
    /// It ends before it says how the run ended.
    #[error("its end is missing")]
    Short,
    /// It goes on behind that.
    #[error("something stands behind its end")]
    Long,
    /// It cannot be unpacked from there on.
    #[error(transparent)]
    Unpacked(#[from] io::Error),
    /// A line is no story.
    #[error(transparent)]
    Line(#[from] serde_json::Error),
}

/// Whether a file begins as those that are packed.
pub fn is_packed(file: &mut impl BufRead) -> io::Result<bool> {
    Ok(file.fill_buf()?.starts_with(&GZIP_MAGIC))
}
