//! NDJSON: one document per line, judged block by block on several threads, with results in the order of lines.
//!
//! Each thread reads one block at a time, however large the file is. The result of a block waits for those of earlier
//! blocks; it holds findings and, with `--set-aside`, the lines to set aside. An unreadable line is counted and noted, and breaks
//! no rule; later lines are still judged.

use super::aside::{LineAside, Reason, SetAside};
use super::blocks::{Block, Blocks, LINE_BYTES_MAX};
use super::unknown_types::UnknownTypes;
use super::wire;
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
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    let order = common
        .order
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
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
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
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
mod tests {
    use super::*;
    use crate::{Checker, Kind, Surroundings};
    use conformant_judge::load::shared as rulebook;
    use conformant_record::{Level, RunRecord};
    use std::io::Write as _;

    fn check(name: &str, source: &mut (dyn Read + Send), jobs: usize) -> (RunRecord, usize) {
        check_as("com.svc.comms-api.message.sent", name, source, jobs)
    }

    fn check_as(
        kind: &str,
        name: &str,
        source: &mut (dyn Read + Send),
        jobs: usize,
    ) -> (RunRecord, usize) {
        let mut checker = checker(kind, jobs);
        checker.file(name, source).unwrap();
        let (record, counts) = checker.finish();
        (record, counts.documents)
    }

    fn checker(kind: &str, jobs: usize) -> Checker<'static> {
        let kind = Kind::parse(rulebook(), kind).unwrap();
        let surroundings = Surroundings {
            jobs,
            ..Surroundings::default()
        };
        Checker::new(rulebook(), kind, surroundings)
    }

    fn found(record: &RunRecord) -> Vec<(usize, &str, &str)> {
        let found = record.findings.iter();
        found
            .inspect(|f| assert_eq!((f.step, f.line), (f.exchange, f.exchange)))
            .map(|f| (f.exchange, f.pointer.as_str(), f.kind.as_str()))
            .collect()
    }

    #[test]
    fn every_line_is_judged_and_named() {
        let text = b"{\"attempt\":\"1\"}\r\n\n{\"attempt\":1}\n{broken\n\xff\xfe\n{\"attempt\":\"2\"}\n{\"x\":1}";
        let (record, documents) = check("events.ndjson", &mut &text[..], 1);
        assert_eq!(documents, 4);
        let wanted = [(3, "/attempt", "type"), (7, "/x", "extra-field")];
        assert_eq!(found(&record), wanted);
        for finding in &record.findings {
            assert!(
                record
                    .rules
                    .iter()
                    .any(|r| r.id == finding.rule && r.findings > 0),
                "{}",
                finding.rule
            );
        }
    }

    #[test]
    fn unreadable_lines_are_noted_with_their_place_and_break_no_rule() {
        let text = "{broken\n{\"attempt\":\"1\"}\n\"hello\"\n}\n";
        let mut checker = checker("events/MessageSent/4", 1);
        checker.file("a.ndjson", &mut text.as_bytes()).unwrap();
        let notes = checker.notes();
        assert!(
            notes[0].starts_with("a.ndjson: line 1: not a readable document: not JSON"),
            "{notes:?}"
        );
        assert!(notes[1].starts_with("a.ndjson: line 4: "), "{notes:?}");
        let (record, counts) = checker.finish();
        // A text is a document, but of another type.
        assert_eq!(found(&record), [(3, "", "type")]);
        assert_eq!((counts.documents, counts.malformed), (2, 2));
        assert_eq!(record.archive.unwrap().unreadable, 2);
    }

    #[test]
    fn duplicate_keys_and_marks_are_reported_with_their_place() {
        let text = "{\"attempt\":\"1\"}\n{\"attempt\":\"1\",\"attempt\":\"2\"}\n";
        let (record, _) = check("events.ndjson", &mut text.as_bytes(), 1);
        assert_eq!(found(&record), [(2, "/attempt", "duplicate-key")]);
        let message = &record.findings[0].message;
        assert!(message.contains("column 2 (byte 1)") && message.contains("(byte 15)"));
        let flow = format!(
            r#"{{"sid":"FW{0}","account_sid":"AC{0}","friendly_name":"A flow","status":"draft","version":1,"date_created":"2026-01-02T03:04:05Z","date_updated":null,"url":"http://h/x","links":{{"a":"http://h/a","a":"http://h/b"}}}}"#,
            "0".repeat(32)
        );
        let marked = format!("\u{feff}{flow}");
        for (name, line) in [("flows.ndjson", 1), ("flow.json", 0)] {
            let (record, _) = check_as("flow/flow", name, &mut marked.as_bytes(), 1);
            assert_eq!(
                found(&record),
                [
                    (line, "", "byte-order-mark"),
                    (line, "/links/a", "duplicate-key")
                ],
                "{name}"
            );
            assert!(record.findings.iter().all(|f| f.level == Level::Should));
        }
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        let mut text = String::new();
        for n in 0..20_000 {
            text.push_str(match n % 700 {
                3 => "{\"attempt\":1}\n",
                5 => "{\n",
                _ => "{\"attempt\":\"1\",\"from\":{\"id\":\"a\",\"address\":\"+15005550006\",\"channel\":\"sms\"}}\n",
            });
        }
        let (one, documents) = check("events.ndjson", &mut text.as_bytes(), 1);
        let (four, _) = check("events.ndjson", &mut text.as_bytes(), 4);
        assert_eq!((documents, one.findings.len()), (19_971, 29));
        let one = serde_json::to_string(&one).unwrap();
        assert_eq!(one, serde_json::to_string(&four).unwrap());
        // Nor does positioned reading.
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        for jobs in [1, 4] {
            let mut checker = checker("com.svc.comms-api.message.sent", jobs);
            checker.opened("events.ndjson", &file).unwrap();
            let (record, _) = checker.finish();
            assert_eq!(one, serde_json::to_string(&record).unwrap());
        }
    }

    #[test]
    fn standard_input_may_have_one_document_per_line() {
        for (text, documents) in [
            ("{\"attempt\":\"1\"}\n{\"attempt\":\"2\"}\n", 2),
            ("{broken\n{\"attempt\":\"2\"}\n", 1),
            ("{\"attempt\":\"1\"}\n", 1),
            ("{\n\"attempt\":\n\"1\"\n}\n", 1),
        ] {
            assert_eq!(check("-", &mut text.as_bytes(), 1).1, documents, "{text}");
        }
        let mut list = &b"[\n{\"attempt\":\"1\"}\n]"[..];
        let error = checker("events/MessageSent/4", 1).file("-", &mut list);
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("each of them: jq -c '.[]' | conformant check -"),
            "{error}"
        );
        // By its name, this file has one document.
        let mut checker = checker("events/MessageSent/4", 1);
        let error = checker.file("one.json", &mut &b"{}\n{}"[..]).unwrap_err();
        assert!(
            error.is_usage()
                && error
                    .to_string()
                    .contains("one.json is not a readable document"),
            "{error}"
        );
    }

    #[test]
    fn wire_headers_are_stripped_and_counted_wherever_blocks_are_cut() {
        // Schema ids that contain the byte of a line end, and lines that cross blocks.
        let ids = [10_u32, 7, 2560, 0x0a0a_0a0a, 0x000a_0a00];
        let mut text = Vec::new();
        for n in 0..30_000 {
            text.push(0);
            text.extend(ids[n % ids.len()].to_be_bytes());
            text.extend(match n % 1_000 {
                3 => &b"{\"attempt\":1}\n"[..],
                _ => b"{\"attempt\":\"1\"}\n",
            });
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&text).unwrap();
        let run = |is_stream: bool| {
            let mut checker = checker("events/MessageSent/4", 3);
            match is_stream {
                true => checker.file("events.ndjson", &mut &text[..]).unwrap(),
                false => checker.opened("events.ndjson", &file).unwrap(),
            }
            checker.finish()
        };
        let (record, counts) = run(true);
        assert_eq!((counts.documents, record.findings.len()), (30_000, 30));
        assert_eq!(
            (record.findings[1].exchange, &*record.findings[1].pointer),
            (1_004, "/attempt")
        );
        let archive = record.archive.clone().unwrap();
        assert_eq!(archive.schema_ids, ids.map(|id| (id, 6_000)).into());
        assert_eq!(
            (
                archive.documents[0].documents,
                archive.documents[0].rejected
            ),
            (30_000, 30)
        );
        assert_eq!(run(false).0, record);
        assert_eq!(check("-", &mut &text[..], 1).1, 30_000);
        let mut single = &b"\0\0\0\0\x07{\"attempt\":1}"[..];
        assert_eq!(
            found(&check("one.json", &mut single, 1).0),
            [(0, "/attempt", "type")]
        );
    }

    #[test]
    fn an_empty_payload_after_a_wire_header_is_no_avro() {
        let text = b"{\"attempt\":\"1\"}\n\0\0\0\0\x07\n\0\0\0\0\x07{\"attempt\":1}\n";
        let (record, documents) = check("events.ndjson", &mut &text[..], 2);
        assert_eq!(documents, 2);
        assert_eq!(found(&record), [(3, "/attempt", "type")]);
    }

    #[test]
    fn standard_input_with_a_long_first_line_is_read_by_line() {
        let long = format!(
            "{{\"x\":\"{}\"}}\n{{\"attempt\":1}}\n",
            "a".repeat(3 * START_BYTES)
        );
        let (record, documents) = check("-", &mut long.as_bytes(), 2);
        assert_eq!(documents, 2);
        assert_eq!(
            found(&record),
            [(1, "/x", "extra-field"), (2, "/attempt", "type")]
        );
        let single = format!("{{\"x\":\"{}\"}}", "a".repeat(3 * START_BYTES));
        assert_eq!(check("-", &mut single.as_bytes(), 2).1, 1);
    }

    #[test]
    fn a_wire_header_before_avro_is_named_with_its_line() {
        let text = b"{}\n\0\0\0\0\x07\x02\x06abc\n{}\n";
        for (name, text, place) in [
            ("events.ndjson", &text[..], ", line 2"),
            ("one.json", &text[3..10], ""),
        ] {
            let error = checker("events/MessageSent/4", 2)
                .file(name, &mut &text[..])
                .unwrap_err();
            assert!(error.is_usage());
            let wanted = format!(
                "{name}{place}: a Confluent wire header with schema id 7 before a payload that is not JSON"
            );
            assert!(error.to_string().starts_with(&wanted), "{error}");
        }
    }

    #[test]
    fn other_formats_malformed_and_empty_files_are_named_and_not_judged() {
        for (name, text, why) in [
            (
                "a.ndjson",
                &b"PAR1\x15\x04"[..],
                "a.ndjson is Parquet, expected one JSON document a line",
            ),
            (
                "a.json",
                b"Obj\x01\x04",
                "a.json is Avro, expected a JSON document",
            ),
            ("a.ndjson", b"ORC\x01", "a.ndjson is ORC"),
            ("a.json", b"PK\x03\x04", "a.json is a zip archive"),
            ("-", b"\xfd7zXZ\0", "- is xz"),
            ("a.json", b"\xff\xfe{\0}\0", "a.json is UTF-16 text"),
            (
                "a.ndjson",
                b"id,name\n1,a\n",
                "a.ndjson is text that is not JSON",
            ),
            (
                "a.json",
                b"{\"a\":",
                "a.json is not a readable document: not JSON",
            ),
            (
                "a.json",
                b"{\"a\":\"\xe9\"}",
                "a.json is not a readable document: not valid UTF-8",
            ),
            ("a.json", b" \n", "a.json is empty"),
        ] {
            for kind in ["events/MessageSent/4", "events"] {
                let mut checker = checker(kind, 1);
                let error = checker.file(name, &mut &text[..]).unwrap_err();
                assert!(error.is_usage(), "{error}");
                if kind == "events" {
                    continue;
                }
                assert!(error.to_string().starts_with(why), "{error}");
                assert_eq!(checker.finish().0.findings, []);
            }
        }
    }

    #[test]
    fn a_file_that_ends_in_the_middle_of_a_line_is_judged_up_to_it() {
        let mut checker = checker("events/MessageSent/4", 2);
        let mut text = &b"{\"attempt\":1}\n{\"attempt\":\"1\"}\n{\"atte"[..];
        checker.file("events.ndjson", &mut text).unwrap();
        assert_eq!(
            checker.notes(),
            ["events.ndjson: line 3: the file ends in the middle of this line"]
        );
        let (record, counts) = checker.finish();
        assert_eq!((counts.documents, counts.cut), (2, 1));
        assert_eq!(found(&record), [(1, "/attempt", "type")]);
    }

    #[test]
    fn a_complete_line_before_a_cut_is_judged_and_the_cut_noted() {
        /// Compressed data that ends too early.
        struct Cut<'a>(&'a [u8]);
        impl Read for Cut<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                match self.0.read(buffer)? {
                    0 => Err(io::ErrorKind::UnexpectedEof.into()),
                    count => Ok(count),
                }
            }
        }
        let first = "{\"attempt\":\"1\"}\n";
        for (last, documents, findings, why) in [
            ("{\"attempt\":\"1\"}", 2, 0, "after"),
            ("{\"attempt\":1}", 2, 1, "after"),
            ("{\"attempt\":1", 1, 0, "in the middle of"),
            ("12", 1, 0, "in the middle of"),
        ] {
            let text = [first, last].concat();
            let mut checker = checker("events/MessageSent/4", 1);
            let mut source = Cut(text.as_bytes());
            checker.file("events.ndjson", &mut source).unwrap();
            let note = format!("events.ndjson: line 2: the compressed data ends {why} this line");
            assert_eq!(checker.notes(), [note], "{last}");
            let (record, counts) = checker.finish();
            let found = (counts.documents, record.findings.len(), counts.cut);
            assert_eq!(found, (documents, findings, 1), "{last}");
        }
    }

    #[test]
    fn lines_with_findings_are_set_aside_in_order_with_their_place() {
        #[derive(Clone, Default)]
        struct Shared(std::sync::Arc<Mutex<Vec<u8>>>);
        impl io::Write for Shared {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().extend(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let text: String = (0..40_000)
            .map(|n| match n % 3 {
                0 => "{\"attempt\":1}\n",
                _ => "{\"attempt\":\"1\",\"from\":{\"id\":\"a\"}}\n",
            })
            .collect();
        let shared = Shared::default();
        let mut checker = checker("events/MessageSent/4", 4);
        checker.set_aside(SetAside::new(Box::new(shared.clone()), Level::Must));
        checker
            .file("2026-01-31/a.ndjson", &mut text.as_bytes())
            .unwrap();
        assert_eq!(checker.take_set_aside().unwrap().finish().unwrap(), 13_334);
        let (record, _) = checker.finish();
        let archive = record.archive.unwrap();
        // All are counted, also those beyond the listed findings.
        assert_eq!(
            (&*archive.findings[0].day, archive.findings[0].findings),
            ("2026-01-31", 13_334)
        );
        let written = shared.0.lock().unwrap();
        let lines: Vec<serde_json::Value> = written
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        for (n, line) in lines.iter().enumerate() {
            assert_eq!(line["line"], 3 * n + 1);
            assert_eq!(line["text"], "{\"attempt\":1}");
        }
        assert_eq!(lines[0]["file"], "2026-01-31/a.ndjson");
        assert_eq!(
            lines[0]["findings"][0]["rule"],
            "events/message-sent/attempt"
        );
        assert_eq!(lines[0]["findings"][0]["pointer"], "/attempt");
    }

    #[test]
    fn a_line_without_end_is_passed_over_without_being_held() {
        let long = io::repeat(b'x').take(3 * LINE_BYTES_MAX as u64);
        let mut source = (&b"{}\n"[..]).chain(long).chain(&b"\n{\"x\":1}\n"[..]);
        let (record, documents) = check("events.jsonl", &mut source, 2);
        assert_eq!(documents, 2);
        assert_eq!(found(&record), [(3, "/x", "extra-field")]);
        assert_eq!(record.archive.unwrap().unreadable, 1);
    }

    #[test]
    fn findings_beyond_those_kept_are_counted() {
        let text = "{\"x\":1}\n".repeat(10_100);
        let (record, documents) = check("events.ndjson", &mut text.as_bytes(), 2);
        assert_eq!((documents, record.findings.len()), (10_100, 10_000));
        assert_eq!(
            record.rules.iter().map(|r| r.findings).sum::<usize>(),
            10_100
        );
    }
}
