//! Sets lines with findings aside as NDJSON, for a quarantine or a second attempt.
//!
//! - Each line has the file and line of the original, its text, and the findings that set it aside.
//! - Lines are written in the order of the archive while it is read, so that memory does not grow.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformant_record::{Finding, Level};
use serde::Serialize;
use std::fmt;
use std::io::{self, BufWriter, Write};

/// Receives lines that are set aside.
pub struct SetAside {
    out: BufWriter<Box<dyn Write + Send>>,
    lines: usize,
    /// Findings of this level and above set a line aside.
    level: Level,
}

/// A line that is set aside.
#[derive(Debug, Default)]
pub(super) struct LineAside {
    /// 0 if the file has no other lines.
    pub(super) line: usize,
    pub(super) schema_id: Option<u32>,
    pub(super) bytes: Vec<u8>,
    pub(super) reasons: Vec<Reason>,
}

/// Why a line is set aside.
#[derive(Debug, Serialize)]
pub(super) struct Reason {
    /// Absent for a line without an event, which no rule judges.
    #[serde(skip_serializing_if = "String::is_empty")]
    rule: String,
    level: &'static str,
    pointer: String,
    message: String,
}

/// A line of the output.
#[derive(Serialize)]
struct WrittenLine<'a> {
    file: &'a str,
    line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_id: Option<u32>,
    findings: &'a [Reason],
    /// The original line, if it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl fmt::Debug for SetAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetAside")
            .field("lines", &self.lines)
            .finish_non_exhaustive()
    }
}

impl SetAside {
    /// Writes lines with a finding of at least this level.
    pub fn new(out: Box<dyn Write + Send>, level: Level) -> Self {
        Self {
            out: BufWriter::new(out),
            lines: 0,
            level,
        }
    }

    /// Writes what is buffered; returns the number of lines.
    pub fn finish(mut self) -> io::Result<usize> {
        self.out.flush()?;
        Ok(self.lines)
    }

    pub(super) const fn level(&self) -> Level {
        self.level
    }

    pub(super) fn write(&mut self, file: &str, line: &LineAside) -> io::Result<()> {
        let text = std::str::from_utf8(&line.bytes).ok();
        let line = WrittenLine {
            file,
            line: line.line,
            schema_id: line.schema_id,
            findings: &line.reasons,
            text,
            base64: text.is_none().then(|| STANDARD.encode(&line.bytes)),
        };
        let mut written = serde_json::to_vec(&line)?;
        written.push(b'\n');
        self.lines += 1;
        self.out.write_all(&written)
    }
}

impl Reason {
    /// Why a line without an event is set aside.
    pub(super) fn unreadable(why: &str) -> Self {
        Self {
            rule: String::new(),
            level: Level::Must.word(),
            pointer: String::new(),
            message: why.to_owned(),
        }
    }
}

impl From<&Finding> for Reason {
    fn from(finding: &Finding) -> Self {
        Self {
            rule: finding.rule.clone(),
            level: finding.level.word(),
            pointer: finding.pointer.clone(),
            message: finding.message.clone(),
        }
    }
}
