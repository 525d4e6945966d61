//! Tests of reading files line by line.

use super::*;
use crate::checker::FINDINGS_MAX;
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
                .contains("one.json is 2 documents, expected one document"),
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
            b"id name\n1 a\n",
            "a.ndjson is text that is not JSON",
        ),
        ("a.ndjson", b"id,name\n1,a\n", "a.ndjson is CSV"),
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
    let text: String = (0..12_000)
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
    assert_eq!(checker.take_set_aside().unwrap().finish().unwrap(), 4_000);
    let (record, _) = checker.finish();
    let archive = record.archive.unwrap();
    // All are counted, also those beyond the listed findings.
    assert_eq!(
        (&*archive.findings[0].day, archive.findings[0].findings),
        ("2026-01-31", 4_000)
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
    let lines = FINDINGS_MAX + 100;
    let text = "{\"x\":1}\n".repeat(lines);
    let (record, documents) = check("events.ndjson", &mut text.as_bytes(), 2);
    assert_eq!((documents, record.findings.len()), (lines, FINDINGS_MAX));
    assert_eq!(
        record.rules.iter().map(|r| r.findings).sum::<usize>(),
        lines
    );
}
