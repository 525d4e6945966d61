//! NDJSON: one document per line, judged block by block on several threads, with results in the order of lines.
//!
//! Each thread reads one block at a time, however large the file is. The result of a block waits for those of earlier
//! blocks; it holds findings and, with `--set-aside`, the lines to set aside. An unreadable line is counted and noted, and breaks
//! no rule; later lines are still judged.

use super::aside::{LineAside, Reason, SetAside};
use super::blocks::{Block, Blocks, LINE_BYTES_MAX};
use super::unknown_types::UnknownTypes;
use super::wire;
use conformant_base::parallel::{lock, recovered};
use conformant_judge::Judgment;
use conformant_record::{ArchiveSums, Level};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Maximum number of unreadable lines in the notes.
const NOTES_MAX: usize = 10;
/// Size of the prefix that decides whether a file has one document per line; it is longer if the first line is.
const START_BYTES: usize = 64 * 1024;
/// Why a line is not judged.
const IN_CUT_LINE: &str = "the compressed data ends in the middle of this line";

/// Results of lines.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) judgment: Judgment,
    /// Judged documents; a line may contain none or several.
    pub(super) documents: usize,
    /// Events of undocumented types.
    pub(super) foreign: UnknownTypes,
    /// Lines that are not documents.
    pub(super) malformed: usize,
    /// Lines that contain no event or are unreadable: the first [`NOTES_MAX`], with the reason.
    pub(super) notes: Vec<Note>,
    /// Events by type, for streams.
    pub(super) types: BTreeMap<String, usize>,
    /// Counts by kind, version, rule and day.
    pub(super) sums: ArchiveSums,
    /// Lines to set aside.
    pub(super) aside_lines: Vec<LineAside>,
    /// The first document that breaks a rule of level must, where documents of another type are recognized.
    pub(super) rejected: Option<Vec<u8>>,
    /// The first payload that is not JSON.
    pub(super) binary: Option<BinaryPayload>,
    /// The last line before the end of cut data, or of a file that ends within a line; it may be complete.
    pub(super) cut: Option<Note>,
}

/// A payload after a wire header that is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BinaryPayload {
    pub(super) line: usize,
    pub(super) schema_id: u32,
}

/// A line that was skipped, because it is unreadable or contains no event, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// 0 if the file has no other lines.
    pub(super) line: usize,
    pub(super) why: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        f.write_str(&self.why)
    }
}

/// Judge of lines.
pub(super) trait LineJudge: Sync {
    /// The fast path, for one thread.
    type Quick<'q>: Quick
    where
        Self: 'q;
    /// The fast path; none if it does not support the type.
    fn quick(&self) -> Option<Self::Quick<'_>>;
    /// Judges one line with the full validator; only this finds anything.
    fn full(&self, line: usize, bytes: &[u8]) -> Judged;
    /// Reports an unreadable line.
    fn unreadable(&self, line: usize, why: &str) -> Judged;
}

/// Fast path over lines.
pub(super) trait Quick {
    /// Reads the first line of a text. If it certainly breaks no rule, counts it and returns its length including its end.
    fn line(&mut self, text: &[u8]) -> Option<usize>;
    /// Results of the valid lines.
    fn finish(self) -> Judged;
}

impl Judged {
    /// Result of one document.
    pub(super) fn one(kind: &str, day: &str, judgment: Judgment) -> Self {
        let mut sums = ArchiveSums::default();
        let is_rejected = judgment.findings.iter().any(|f| f.level == Level::Must);
        sums.add_documents(kind, 1, usize::from(is_rejected));
        for finding in &judgment.findings {
            sums.add_finding(kind, &finding.rule, day);
        }
        Self {
            judgment,
            documents: 1,
            sums,
            ..Self::default()
        }
    }

    /// Whether a rule of level must is broken.
    pub(super) fn has_failure(&self) -> bool {
        let mut findings = self.judgment.findings.iter();
        findings.any(|finding| finding.level == Level::Must)
    }

    /// Result of a line that is not a document.
    pub(super) fn unreadable(line: usize, why: String) -> Self {
        Self {
            malformed: 1,
            ..Self::skipped(line, why)
        }
    }

    /// Result of a line without an event.
    pub(super) fn skipped(line: usize, why: String) -> Self {
        let mut judged = Self {
            notes: vec![Note { line, why }],
            ..Self::default()
        };
        judged.sums.unreadable = 1;
        judged
    }

    /// The reasons to set a line aside at this level.
    pub(super) fn reasons(&self, level: Level) -> Vec<Reason> {
        let findings = self.judgment.findings.iter();
        let failing = findings.filter(|f| f.level == Level::Must || level == Level::Should);
        let notes = self.notes.iter().map(|note| Reason::unreadable(&note.why));
        failing.map(Reason::from).chain(notes).collect()
    }

    /// Appends the results of later lines, up to the limits.
    pub(super) fn merge(&mut self, mut other: Self, findings_max: usize) {
        let kept = self.judgment.findings.len();
        other
            .judgment
            .findings
            .truncate(findings_max.saturating_sub(kept));
        self.judgment.merge(other.judgment);
        self.documents += other.documents;
        self.foreign.merge(other.foreign);
        self.malformed += other.malformed;
        self.sums.merge(other.sums);
        self.aside_lines.append(&mut other.aside_lines);
        self.rejected = self.rejected.take().or(other.rejected);
        self.binary = self.binary.take().or(other.binary);
        self.cut = self.cut.take().or(other.cut);
        let room = NOTES_MAX.saturating_sub(self.notes.len());
        self.notes.extend(other.notes.into_iter().take(room));
        for (name, count) in other.types {
            *self.types.entry(name).or_default() += count;
        }
    }

    /// Shifts line numbers.
    fn shift(&mut self, lines: usize) {
        for finding in &mut self.judgment.findings {
            finding.step += lines;
            finding.exchange += lines;
            finding.line += lines;
        }
        for note in self.notes.iter_mut().chain(&mut self.cut) {
            note.line += lines;
        }
        self.foreign.shift(lines);
        if let Some(binary) = &mut self.binary {
            binary.line += lines;
        }
        for line in &mut self.aside_lines {
            line.line += lines;
        }
    }
}

/// Whether a file has one document per line, by its name.
pub(super) fn has_lines_by_name(name: &str) -> bool {
    extension(name).is_some_and(|e| e == "ndjson" || e == "jsonl")
}

/// The extension of a file, without that of its compression.
fn extension(name: &str) -> Option<&OsStr> {
    let plain = name
        .strip_suffix(".gz")
        .or_else(|| name.strip_suffix(".zst"));
    Path::new(plain.unwrap_or(name)).extension()
}

/// Whether the name of a file is that of one document.
fn is_named_document(name: &str) -> bool {
    extension(name).is_some_and(|e| e == "json" || e == "xml" || e == "har")
}

/// Whether a file has one document per line, by its name or, without a known extension, by its first two lines. Extends the
/// start to the second line.
pub(super) fn has_lines(
    name: &str,
    start: &mut Vec<u8>,
    source: &mut dyn Read,
) -> io::Result<bool> {
    if has_lines_by_name(name) || is_named_document(name) {
        return Ok(has_lines_by_name(name));
    }
    let mut size = START_BYTES;
    loop {
        let rest = size.saturating_sub(start.len());
        (&mut *source).take(rest as u64).read_to_end(start)?;
        let is_whole = start.len() < size;
        if is_whole || size > LINE_BYTES_MAX || payloads(start).nth(1).is_some() {
            return Ok(is_by_line(start));
        }
        size *= 2;
    }
}

/// The lines of a text without wire headers, blank ones excepted.
fn payloads(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    let lines = std::iter::from_fn(move || {
        let payload = wire::split(rest).map_or(rest, |(_, payload)| payload);
        let end = memchr::memchr(b'\n', payload);
        let line = &payload[..end.unwrap_or(payload.len())];
        let is_end = rest.is_empty();
        rest = end.map_or(&[], |end| &payload[end + 1..]);
        (!is_end).then_some(line)
    });
    lines
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty())
}

/// Whether one of the first two lines is an object, and the whole is not a document. One of the two may be invalid;
/// the first line of an indented document is not an object.
fn is_by_line(start: &[u8]) -> bool {
    let lines: Vec<&[u8]> = payloads(start).take(2).collect();
    let is_document = |text: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok();
    let is_object = |line: &&&[u8]| line.starts_with(b"{") && is_document(line);
    lines.len() > 1 && !is_document(start) && lines.iter().any(|line| is_object(&line))
}

/// Why the lines of a file could not be judged.
#[derive(Debug)]
pub(super) enum LinesError {
    Read(io::Error),
    /// A line could not be set aside.
    Aside(io::Error),
}

/// Receives the lines of a file that are set aside.
#[derive(Debug)]
pub(super) struct Aside<'a> {
    pub(super) file: &'a str,
    pub(super) to: &'a mut SetAside,
}

/// Judges every line on that many threads; keeps the first findings, up to `findings_max`.
pub(super) fn judge(
    judge: &impl LineJudge,
    blocks: Blocks<'_>,
    jobs: usize,
    findings_max: usize,
    aside: Option<Aside<'_>>,
) -> Result<Judged, LinesError> {
    let common = Common {
        blocks,
        findings_left: AtomicUsize::new(findings_max),
        aside_level: aside.as_ref().map(|aside| aside.to.level()),
        order: Mutex::new(Order {
            aside,
            ..Order::default()
        }),
        is_over: AtomicBool::new(false),
    };
    let outcomes: Vec<Result<Judged, LinesError>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..jobs.max(1))
            .map(|_| scope.spawn(|| common.work(judge)))
            .collect();
        let mut outcomes = vec![common.work(judge)];
        for other in others {
            outcomes.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        outcomes
    });
    let order = recovered(common.order.into_inner());
    let mut whole = order.whole;
    for passed in outcomes {
        whole.merge(passed?, findings_max);
    }
    Ok(whole)
}

/// State that the threads of a file share.
struct Common<'s, 'a> {
    blocks: Blocks<'s>,
    /// How many more findings may be kept.
    findings_left: AtomicUsize,
    /// Level of the findings that set a line aside; `None` to set none aside.
    aside_level: Option<Level>,
    order: Mutex<Order<'a>>,
    /// Whether a thread failed to read or write, or found a binary payload.
    is_over: AtomicBool,
}

impl<'a> Common<'_, 'a> {
    /// Judges blocks until the end; returns the lines that passed the fast path, whose order does not matter.
    fn work(&self, judge: &impl LineJudge) -> Result<Judged, LinesError> {
        let mut buffer = Vec::new();
        let mut quick = judge.quick();
        while !self.is_over.load(Ordering::Relaxed) {
            let next = self.blocks.next(&mut buffer).inspect_err(|_| {
                self.is_over.store(true, Ordering::Relaxed);
            });
            let Some(block) = next.map_err(LinesError::Read)? else {
                break;
            };
            let result = self.judge_block(judge, quick.as_mut(), &block, &buffer);
            let added = self.order().add(block.number, result, &self.findings_left);
            let next = added.inspect_err(|_| {
                self.is_over.store(true, Ordering::Relaxed);
            });
            if next.map_err(LinesError::Aside)?.is_break() {
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
        Ok(quick.map(Quick::finish).unwrap_or_default())
    }

    fn order(&self) -> MutexGuard<'_, Order<'a>> {
        lock(&self.order)
    }

    /// Adds the result of a line, and the line itself if it is set aside.
    fn add(
        &self,
        judged: &mut Judged,
        of_line: Judged,
        line: usize,
        schema_id: Option<u32>,
        bytes: &[u8],
    ) {
        let reasons = self.aside_level.map(|level| of_line.reasons(level));
        judged.merge(of_line, self.findings_left.load(Ordering::Relaxed));
        if let Some(reasons) = reasons.filter(|reasons| !reasons.is_empty()) {
            judged.aside_lines.push(LineAside {
                line,
                schema_id,
                bytes: bytes.to_vec(),
                reasons,
            });
        }
    }

    /// Judges the lines of a block: each by the fast path, which counts the valid lines itself, and the others by the full
    /// validator.
    fn judge_block<L: LineJudge>(
        &self,
        judge: &L,
        mut quick: Option<&mut L::Quick<'_>>,
        block: &Block,
        buffer: &[u8],
    ) -> BlockResult {
        let mut judged = Judged::default();
        let mut count = 0;
        let mut rest = &buffer[block.lines.clone()];
        while !rest.is_empty() {
            count += 1;
            let header = wire::split(rest);
            let payload = header.map_or(rest, |(_, payload)| payload);
            let schema_id = header.map(|(id, _)| id);
            if let Some(id) = schema_id {
                if !wire::is_json(payload) {
                    judged.binary = Some(BinaryPayload {
                        line: count,
                        schema_id: id,
                    });
                    break;
                }
                judged.sums.add_schema_id(id, 1);
            }
            // The fast path would count a number that goes on after the cut; `incomplete` detects it.
            let is_cut = block.is_cut && !payload.contains(&b'\n');
            let quick = quick.as_mut().filter(|_| !is_cut);
            if let Some(taken) = quick.and_then(|quick| quick.line(payload)) {
                rest = &payload[taken..];
                continue;
            }
            let end = memchr::memchr(b'\n', payload);
            let line = &payload[..end.unwrap_or(payload.len())];
            rest = end.map_or(&[], |end| &payload[end + 1..]);
            if let Some(why) = end
                .is_none()
                .then(|| incomplete(line, block.is_cut))
                .flatten()
            {
                judged.cut = Some(Note { line: count, why });
            } else if !line.iter().all(u8::is_ascii_whitespace) {
                self.add(&mut judged, judge.full(count, line), count, schema_id, line);
            }
        }
        if block.is_too_long {
            count += 1;
            let why = format!("more than {LINE_BYTES_MAX} bytes in one line");
            self.add(&mut judged, judge.unreadable(count, &why), count, None, b"");
        }
        if block.is_cut && judged.cut.is_none() {
            judged.cut = Some(Note {
                line: count,
                why: "the compressed data ends after this line".to_owned(),
            });
        }
        BlockResult {
            judged,
            line_count: count,
        }
    }
}

/// Why the last line of a file is not complete: a cut in compressed data, or in a JSON document. A complete document
/// before a cut is judged; the cut is noted after it.
fn incomplete(line: &[u8], is_cut: bool) -> Option<String> {
    let line = line.trim_ascii_end();
    let end = line.last()?;
    let why = match serde_json::from_slice::<serde::de::IgnoredAny>(line) {
        // A number or word may go on after the cut.
        Ok(_) if is_cut && !b"}]\"".contains(end) => IN_CUT_LINE,
        Err(_) if is_cut => IN_CUT_LINE,
        Err(error) if error.is_eof() => "the file ends in the middle of this line",
        Ok(_) | Err(_) => return None,
    };
    Some(why.to_owned())
}

/// Result of a block.
#[derive(Debug, Default)]
struct BlockResult {
    judged: Judged,
    line_count: usize,
}

/// Sorts results into the order of blocks.
#[derive(Debug, Default)]
struct Order<'a> {
    aside: Option<Aside<'a>>,
    whole: Judged,
    /// Index of the next block.
    next: usize,
    /// Number of lines before the next block.
    lines_before: usize,
    /// Results that wait for an earlier block; their number is unlimited.
    early: BTreeMap<usize, BlockResult>,
}

impl Order<'_> {
    /// Adds the result of a block. A binary payload ends the reading.
    fn add(
        &mut self,
        number: usize,
        result: BlockResult,
        findings_left: &AtomicUsize,
    ) -> io::Result<ControlFlow<()>> {
        self.early.insert(number, result);
        while let Some(result) = self.early.remove(&self.next) {
            let mut judged = result.judged;
            self.next += 1;
            judged.shift(self.lines_before);
            self.lines_before += result.line_count;
            let aside_lines = std::mem::take(&mut judged.aside_lines);
            if let Some(aside) = &mut self.aside {
                for line in &aside_lines {
                    aside.to.write(aside.file, line)?;
                }
            }
            let kept = self.whole.judgment.findings.len();
            self.whole
                .merge(judged, kept + findings_left.load(Ordering::Relaxed));
            let more = self.whole.judgment.findings.len() - kept;
            findings_left.fetch_sub(more, Ordering::Relaxed);
        }
        Ok(match self.whole.binary {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        })
    }
}

#[cfg(test)]
mod tests;
