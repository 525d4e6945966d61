//! NDJSON: one document a line, read in blocks that threads judge side by side, put together in
//! the order of the lines.
//!
//! Holds a few blocks and no more, however large the file is. A line that is no document is a
//! finding like any other; the lines behind it are judged all the same.

use crate::judge::Judgement;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

/// What is read at once and judged by one thread; a longer line makes a longer block.
const BLOCK_BYTES: usize = 256 * 1024;
/// A line longer than this is not read: as large as a document may be.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Blocks in memory for each thread that judges.
const BLOCKS_PER_JOB: usize = 3;
/// So many lines that could not be read are told one by one.
const NOTES_MAX: usize = 10;
/// How much of a file is looked at to tell whether it holds a document a line.
const START_BYTES: u64 = 64 * 1024;

/// What lines came to.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) judgement: Judgement,
    /// Documents that were judged; a line may hold none or several.
    pub(super) documents: usize,
    /// Events whose type is not documented.
    pub(super) foreign: usize,
    /// Lines of a stream that hold no event, counted.
    pub(super) unreadable: usize,
    /// The first of these, with the reason.
    pub(super) notes: Vec<String>,
    /// Events by type, where lines say theirs.
    pub(super) types: BTreeMap<String, usize>,
}

/// How one line is judged.
pub(super) trait OfLines: Sync {
    /// Looks at lines quickly, on one thread.
    type Quick<'q>: Quick
    where
        Self: 'q;
    /// Nothing where no line can be told quickly.
    fn quick(&self) -> Option<Self::Quick<'_>>;
    /// One line, the careful way; only such a line brings findings.
    fn careful(&self, line: usize, bytes: &[u8]) -> Judged;
    /// A line that cannot be read at all.
    fn unreadable(&self, line: usize, why: &str) -> Judged;
}

/// Tells of lines, one after the other, whether they surely break nothing.
pub(super) trait Quick {
    /// True when the line surely breaks nothing; then it is counted.
    fn passes(&mut self, line: &str) -> bool;
    /// What the lines that passed came to.
    fn finish(self) -> Judged;
}

impl Judged {
    /// What one document came to.
    pub(super) fn one(judgement: Judgement) -> Self {
        Self {
            judgement,
            documents: 1,
            ..Self::default()
        }
    }

    /// Takes up what later lines came to, with no more findings and notes than can be kept.
    pub(super) fn merge(&mut self, mut other: Self, findings_max: usize) {
        let kept = self.judgement.findings.len();
        other
            .judgement
            .findings
            .truncate(findings_max.saturating_sub(kept));
        self.judgement.merge(other.judgement);
        self.documents += other.documents;
        self.foreign += other.foreign;
        self.unreadable += other.unreadable;
        let room = NOTES_MAX.saturating_sub(self.notes.len());
        self.notes.extend(other.notes.into_iter().take(room));
        for (name, count) in other.types {
            *self.types.entry(name).or_default() += count;
        }
    }
}

/// Reads a file's start, and says whether the file holds a document a line: by its name, or, as
/// standard input has none, by its first lines.
pub(super) fn begin(name: &str, source: &mut dyn Read) -> io::Result<(Vec<u8>, bool)> {
    let mut start = Vec::new();
    let plain = name
        .strip_suffix(".gz")
        .or_else(|| name.strip_suffix(".zst"));
    let extension = std::path::Path::new(plain.unwrap_or(name)).extension();
    if extension.is_some_and(|e| e == "ndjson" || e == "jsonl") {
        return Ok((start, true));
    }
    if name != super::STANDARD_INPUT {
        return Ok((start, false));
    }
    source.take(START_BYTES).read_to_end(&mut start)?;
    let by_line = is_by_line(&start);
    Ok((start, by_line))
}

/// True when one of the first two lines is an object of its own and the whole is no document: one
/// of the two may be broken, and a document that is spread over lines begins with a part.
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

/// Some lines of the file.
#[derive(Debug)]
struct Block {
    /// Counted from 0.
    number: usize,
    /// Number of the first line, counted from 1.
    line: usize,
    /// Whole lines; empty for one that is too long to be read.
    bytes: Vec<u8>,
}

/// Judges every line on so many threads; at most `keep` findings are kept, the first ones.
pub(super) fn judge(
    lines: &impl OfLines,
    start: &[u8],
    source: &mut dyn Read,
    jobs: usize,
    keep: usize,
) -> io::Result<Judged> {
    let jobs = jobs.max(1);
    let room = AtomicUsize::new(keep);
    let (to_judge, blocks) = mpsc::sync_channel::<Block>(jobs);
    let blocks = Mutex::new(blocks);
    let (judged, results) = mpsc::channel::<(usize, Judged, Vec<u8>)>();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (blocks, judged, room) = (&blocks, judged.clone(), &room);
            scope.spawn(move || {
                loop {
                    let next = blocks.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(block) = next else { return };
                    let result = block_of_lines(lines, &block, room);
                    if judged.send((block.number, result, block.bytes)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(judged);
        let mut reader = Reader {
            source,
            rest: start.to_vec(),
            line: 1,
            is_done: false,
        };
        let mut order = Order::default();
        let mut spare: Vec<Vec<u8>> = (0..jobs * BLOCKS_PER_JOB).map(|_| Vec::new()).collect();
        let mut number = 0;
        loop {
            // A buffer comes back once its lines are counted: that bounds what is in memory.
            while spare.is_empty() {
                let Ok(result) = results.recv() else { break };
                order.take(result, &room, &mut spare);
            }
            while let Ok(result) = results.try_recv() {
                order.take(result, &room, &mut spare);
            }
            let Some((line, bytes)) = reader.next(spare.pop().unwrap_or_default())? else {
                break;
            };
            if to_judge
                .send(Block {
                    number,
                    line,
                    bytes,
                })
                .is_err()
            {
                break;
            }
            number += 1;
        }
        drop(to_judge);
        for result in results {
            order.take(result, &room, &mut spare);
        }
        Ok(order.whole)
    })
}

/// Puts results into the order of the blocks.
#[derive(Debug, Default)]
struct Order {
    whole: Judged,
    next: usize,
    early: BTreeMap<usize, (Judged, Vec<u8>)>,
}

impl Order {
    fn take(
        &mut self,
        (number, judged, bytes): (usize, Judged, Vec<u8>),
        room: &AtomicUsize,
        spare: &mut Vec<Vec<u8>>,
    ) {
        self.early.insert(number, (judged, bytes));
        while let Some((judged, bytes)) = self.early.remove(&self.next) {
            self.next += 1;
            spare.push(bytes);
            let kept = self.whole.judgement.findings.len();
            self.whole
                .merge(judged, kept + room.load(Ordering::Relaxed));
            let more = self.whole.judgement.findings.len() - kept;
            room.fetch_sub(more, Ordering::Relaxed);
        }
    }
}

fn block_of_lines(lines: &impl OfLines, block: &Block, room: &AtomicUsize) -> Judged {
    let mut judged = Judged::default();
    let mut take = |of_line: Judged| judged.merge(of_line, room.load(Ordering::Relaxed));
    if block.bytes.is_empty() {
        let why = format!("more than {LINE_BYTES_MAX} bytes in one line");
        take(lines.unreadable(block.line, &why));
    }
    // Where one line is not UTF-8, each is read for itself.
    let text = std::str::from_utf8(&block.bytes).ok();
    let mut quick = lines.quick();
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', &block.bytes).chain([block.bytes.len()]);
    for (index, end) in ends.enumerate() {
        let passes = quick
            .as_mut()
            .zip(text)
            .is_some_and(|(quick, text)| quick.passes(&text[start..end]));
        let line = &block.bytes[start..end];
        if !passes && !line.iter().all(u8::is_ascii_whitespace) {
            take(lines.careful(block.line + index, line));
        }
        start = end + 1;
    }
    if let Some(quick) = quick {
        take(quick.finish());
    }
    judged
}

/// Cuts a source into blocks of whole lines.
struct Reader<'a> {
    source: &'a mut dyn Read,
    /// What was read behind the last whole line.
    rest: Vec<u8>,
    /// Number of the line that `rest` begins with.
    line: usize,
    is_done: bool,
}

impl Reader<'_> {
    /// The next block, in the given buffer, and the number of its first line. A line that is too
    /// long comes as a block without bytes.
    fn next(&mut self, mut buffer: Vec<u8>) -> io::Result<Option<(usize, Vec<u8>)>> {
        buffer.clear();
        buffer.append(&mut self.rest);
        let line = self.line;
        loop {
            if !self.is_done && buffer.len() < BLOCK_BYTES {
                let wanted = BLOCK_BYTES - buffer.len();
                let read = (&mut *self.source)
                    .take(wanted as u64)
                    .read_to_end(&mut buffer)?;
                self.is_done = read < wanted;
            }
            if self.is_done {
                return Ok((!buffer.is_empty()).then_some((line, buffer)));
            }
            if let Some(end) = buffer.iter().rposition(|b| *b == b'\n') {
                self.rest.extend_from_slice(&buffer[end + 1..]);
                buffer.truncate(end);
                self.line += 1 + memchr::memchr_iter(b'\n', &buffer).count();
                // A block of line ends alone says nothing, and without bytes it would say too much.
                if buffer.is_empty() {
                    buffer.push(b'\n');
                }
                return Ok(Some((line, buffer)));
            }
            if buffer.len() >= LINE_BYTES_MAX {
                self.skip_line(&mut buffer)?;
                self.line += 1;
                return Ok(Some((line, Vec::new())));
            }
            let wanted = buffer.len();
            let read = (&mut *self.source)
                .take(wanted as u64)
                .read_to_end(&mut buffer)?;
            self.is_done = read < wanted;
        }
    }

    /// Reads on to the end of the line; what stands behind it is the rest.
    fn skip_line(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        loop {
            buffer.clear();
            let read = (&mut *self.source)
                .take(BLOCK_BYTES as u64)
                .read_to_end(buffer)?;
            if let Some(end) = buffer.iter().position(|b| *b == b'\n') {
                self.rest.extend_from_slice(&buffer[end + 1..]);
                return Ok(());
            }
            if read == 0 {
                self.is_done = true;
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Checker, Kind, Surroundings};
    use crate::rulebook::shared::of_specs as rulebook;
    use crate::verdict::{Level, RunRecord};

    fn check(name: &str, source: &mut (dyn Read + Send), jobs: usize) -> (RunRecord, usize) {
        check_as("com.svc.comms-api.message.sent", name, source, jobs)
    }

    fn check_as(
        kind: &str,
        name: &str,
        source: &mut (dyn Read + Send),
        jobs: usize,
    ) -> (RunRecord, usize) {
        let kind = Kind::parse(rulebook(), kind).unwrap();
        let mut checker = Checker::new(
            rulebook(),
            kind,
            Surroundings {
                jobs,
                ..Surroundings::default()
            },
        );
        checker.file(name, source).unwrap();
        let (record, counts) = checker.finish();
        (record, counts.documents)
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
    fn what_readers_trip_over_is_told_with_its_place() {
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
    fn threads_change_nothing() {
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
        assert_eq!(
            serde_json::to_string(&one).unwrap(),
            serde_json::to_string(&four).unwrap()
        );
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
        let text = "1\n".repeat(12_000);
        let (record, documents) = check("events.ndjson", &mut text.as_bytes(), 2);
        assert_eq!((documents, record.findings.len()), (12_000, 10_000));
        assert_eq!(
            record.rules.iter().map(|r| r.findings).sum::<usize>(),
            12_000
        );
    }
}
