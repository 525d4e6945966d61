//! NDJSON: one document a line, judged block by block on several threads, with results in the order of lines.
//!
//! Each thread holds one block only, however large the file is. An invalid line is a finding; later lines are still
//! judged.

use super::blocks::{Block, Blocks, LINE_BYTES_MAX};
use conformant_judge::Judgment;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of unreadable lines in the notes.
const NOTES_MAX: usize = 10;
/// Size of the prefix that decides whether a file has a document a line.
const START_BYTES: u64 = 64 * 1024;

/// Results of lines.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) judgment: Judgment,
    /// Judged documents; a line may contain none or several.
    pub(super) documents: usize,
    /// Events of undocumented types.
    pub(super) foreign: usize,
    /// Lines of a stream without an event.
    pub(super) unreadable: usize,
    /// The first of these, with the reason.
    pub(super) notes: Vec<Note>,
    /// Events by type, for streams.
    pub(super) types: BTreeMap<String, usize>,
}

/// An unreadable line with the reason.
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

/// Judge of a line.
pub(super) trait OfLines: Sync {
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
    pub(super) fn one(judgment: Judgment) -> Self {
        Self {
            judgment,
            documents: 1,
            ..Self::default()
        }
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
        self.foreign += other.foreign;
        self.unreadable += other.unreadable;
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
        }
        for note in &mut self.notes {
            note.line += lines;
        }
    }
}

/// Whether a file has a document a line, by its name.
pub(super) fn is_named(name: &str) -> bool {
    let plain = name
        .strip_suffix(".gz")
        .or_else(|| name.strip_suffix(".zst"));
    let extension = std::path::Path::new(plain.unwrap_or(name)).extension();
    extension.is_some_and(|e| e == "ndjson" || e == "jsonl")
}

/// Reads the start of a file and decides whether it has a document a line, by its name or its first lines.
pub(super) fn begin(name: &str, source: &mut dyn Read) -> io::Result<(Vec<u8>, bool)> {
    let mut start = Vec::new();
    if is_named(name) {
        return Ok((start, true));
    }
    if name != super::STANDARD_INPUT {
        return Ok((start, false));
    }
    source.take(START_BYTES).read_to_end(&mut start)?;
    let by_line = is_by_line(&start);
    Ok((start, by_line))
}

/// Whether one of the first two lines is an object, and the whole is not a document. One of the two may be invalid;
/// the first line of an indented document is not an object.
fn is_by_line(start: &[u8]) -> bool {
    let lines: Vec<&[u8]> = start
        .split(|b| *b == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|l| !l.is_empty())
        .collect();
    let is_document = |text: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok();
    let is_object = |line: &&&[u8]| line.starts_with(b"{") && is_document(line);
    lines.len() > 1 && !is_document(start) && lines.iter().take(2).any(|line| is_object(&line))
}

/// Judges every line on that many threads; keeps the first `keep` findings.
pub(super) fn judge(
    lines: &impl OfLines,
    blocks: Blocks<'_>,
    jobs: usize,
    keep: usize,
) -> io::Result<Judged> {
    let common = Common {
        blocks,
        room: AtomicUsize::new(keep),
        order: Mutex::default(),
        is_over: AtomicBool::new(false),
    };
    let outcomes: Vec<io::Result<Judged>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..jobs.max(1))
            .map(|_| scope.spawn(|| common.work(lines)))
            .collect();
        let mut outcomes = vec![common.work(lines)];
        for other in others {
            outcomes.push(
                other
                    .join()
                    .unwrap_or_else(|_| Err(io::ErrorKind::Other.into())),
            );
        }
        outcomes
    });
    let mut whole = common
        .order
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .whole;
    for passed in outcomes {
        whole.merge(passed?, keep);
    }
    Ok(whole)
}

/// State that the threads of a file share.
struct Common<'s> {
    blocks: Blocks<'s>,
    /// Remaining number of findings.
    room: AtomicUsize,
    order: Mutex<Order>,
    /// Whether a thread failed to read.
    is_over: AtomicBool,
}

impl Common<'_> {
    /// Judges blocks until the end; returns the lines that passed the fast path, whose order does not matter.
    fn work(&self, lines: &impl OfLines) -> io::Result<Judged> {
        let mut buffer = Vec::new();
        let mut quick = lines.quick();
        while !self.is_over.load(Ordering::Relaxed) {
            let next = self.blocks.next(&mut buffer).inspect_err(|_| {
                self.is_over.store(true, Ordering::Relaxed);
            });
            let Some(block) = next? else { break };
            let judged = self.block(lines, quick.as_mut(), &block, &buffer);
            self.order().take(block.number, judged, &self.room);
        }
        Ok(quick.map(Quick::finish).unwrap_or_default())
    }

    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges the lines of a block that did not pass the fast path.
    fn block<L: OfLines>(
        &self,
        lines: &L,
        mut quick: Option<&mut L::Quick<'_>>,
        block: &Block,
        buffer: &[u8],
    ) -> OfBlock {
        let mut judged = Judged::default();
        let mut take = |of_line| judged.merge(of_line, self.room.load(Ordering::Relaxed));
        let mut count = 0;
        let mut rest = &buffer[block.lines.clone()];
        while !rest.is_empty() {
            count += 1;
            let passed = quick.as_mut().and_then(|quick| quick.line(rest));
            let taken = passed.unwrap_or_else(|| {
                let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                let line = &rest[..end];
                if !line.iter().all(u8::is_ascii_whitespace) {
                    take(lines.full(count, line));
                }
                rest.len().min(end + 1)
            });
            rest = &rest[taken..];
        }
        if block.is_too_long {
            count += 1;
            let why = format!("more than {LINE_BYTES_MAX} bytes in one line");
            take(lines.unreadable(count, &why));
        }
        OfBlock {
            judged,
            lines: count,
        }
    }
}

/// Result of a block.
#[derive(Debug, Default)]
struct OfBlock {
    judged: Judged,
    /// Number of lines.
    lines: usize,
}

/// Sorts results into the order of blocks.
#[derive(Debug, Default)]
struct Order {
    whole: Judged,
    /// Index of the next block, and the number of lines before it.
    next: usize,
    lines: usize,
    early: BTreeMap<usize, OfBlock>,
}

impl Order {
    fn take(&mut self, number: usize, of_block: OfBlock, room: &AtomicUsize) {
        self.early.insert(number, of_block);
        while let Some(OfBlock { mut judged, lines }) = self.early.remove(&self.next) {
            self.next += 1;
            judged.shift(self.lines);
            self.lines += lines;
            let kept = self.whole.judgment.findings.len();
            self.whole
                .merge(judged, kept + room.load(Ordering::Relaxed));
            let more = self.whole.judgment.findings.len() - kept;
            room.fetch_sub(more, Ordering::Relaxed);
        }
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
            .inspect(|f| assert_eq!(f.step, f.exchange))
            .map(|f| (f.exchange, f.pointer.as_str(), f.kind.as_str()))
            .collect()
    }

    #[test]
    fn every_line_is_judged_and_named() {
        let text = b"{\"attempt\":\"1\"}\r\n\n{\"attempt\":1}\n{broken\n\xff\xfe\n{\"attempt\":\"2\"}\n{\"x\":1}";
        let (record, documents) = check("events.ndjson", &mut &text[..], 1);
        assert_eq!(documents, 6);
        let wanted = [
            (3, "/attempt", "type"),
            (4, "", "unreadable"),
            (5, "", "unreadable"),
            (7, "/x", "extra-field"),
        ];
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
    fn unreadable_lines_are_reported_with_their_place() {
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
        assert_eq!((documents, one.findings.len()), (20_000, 58));
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
    fn standard_input_may_hold_a_document_a_line() {
        for (text, documents) in [
            ("{\"attempt\":\"1\"}\n{\"attempt\":\"2\"}\n", 2),
            ("{broken\n{\"attempt\":\"2\"}\n", 2),
            ("{\"attempt\":\"1\"}\n", 1),
            ("{\n\"attempt\":\n\"1\"\n}\n", 1),
            ("[\n{\"attempt\":\"1\"}\n]", 1),
        ] {
            assert_eq!(check("-", &mut text.as_bytes(), 1).1, documents, "{text}");
        }
        assert_eq!(check("one.json", &mut &b"{}\n{}"[..], 1).1, 1);
    }

    #[test]
    fn a_line_without_end_is_passed_over_without_being_held() {
        let long = io::repeat(b'x').take(3 * LINE_BYTES_MAX as u64);
        let mut source = (&b"{}\n"[..]).chain(long).chain(&b"\n{\"x\":1}\n"[..]);
        let (record, documents) = check("events.jsonl", &mut source, 2);
        assert_eq!(documents, 3);
        assert_eq!(
            found(&record),
            [(2, "", "unreadable"), (3, "/x", "extra-field")]
        );
    }

    #[test]
    fn findings_beyond_those_kept_are_counted() {
        let text = "1\n".repeat(10_100);
        let (record, documents) = check("events.ndjson", &mut text.as_bytes(), 2);
        assert_eq!((documents, record.findings.len()), (10_100, 10_000));
        assert_eq!(
            record.rules.iter().map(|r| r.findings).sum::<usize>(),
            10_100
        );
    }
}
