//! Parsers of untrusted input, with properties beyond the absence of panics: equal verdicts on another path, no control
//! characters in output, and round trips.
//!
//! Shared by `tests/it/fuzzed.rs` and by `fuzz/`, which needs a nightly compiler. Draws no random numbers.

use conformant_base::clock::{self, Timestamp};
use conformant_base::http::{Request, multipart_parts};
use conformant_base::json::{self, Limits, ParseFault};
use conformant_base::redact::Redactor;
use conformant_base::text::is_deceptive;
use conformant_check::{Checker, Kind, Surroundings};
use conformant_engine::{Hook, HookTransport, sessions};
use conformant_net::transport::{self, BaseUrl, Client, Multipart};
use conformant_record::RunRecord;
use conformant_record::waivers::{WaiverFile, Waivers};
use conformant_report::{Format, Settings};
use conformant_rulebook::xml;
use conformant_rulebook::{Problems, Rulebook, parse_file};
use conformant_versions::{DeclaredFile, Direction};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write as _};
use std::net::TcpListener;
use std::sync::LazyLock;
use std::time::Duration;

/// Takes untrusted bytes; panics on a violation.
pub(crate) type Entry = fn(&[u8]);

/// By name; `tests/corpus/fuzz/NAME` is the corpus.
pub(crate) const ENTRIES: [(&str, Entry); 16] = [
    ("http-answer", http_answer),
    ("json", json_scan),
    ("ndjson", ndjson),
    ("har", har),
    ("xml", xml),
    ("yaml", yaml),
    ("rulebook", rulebook),
    ("token", token),
    ("qr", qr),
    ("waivers", waivers),
    ("record", record),
    ("hook", hook),
    ("redact", redact),
    ("template", template),
    ("multipart", multipart),
    ("diff", diff),
];

static RULEBOOK: LazyLock<Rulebook> =
    LazyLock::new(|| conformant_judge::load::embedded().expect("the embedded rulebook is sound"));

/// A record with some content.
static RECORD: LazyLock<RunRecord> = LazyLock::new(|| {
    checked(
        "flow/flow",
        "x.json",
        &mut &b"{\"sid\": 1, \"status\": \"x\"}"[..],
        1,
    )
    .0
});

fn harmless(text: &str) {
    assert!(!text.contains(is_deceptive), "{text:?}");
}

/// Splits off the first byte.
fn steered(data: &[u8]) -> (usize, &[u8]) {
    data.split_first()
        .map_or((0, data), |(first, rest)| (usize::from(*first), rest))
}

/// One connection with these bytes as the response, in parts.
fn answering(parts: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    std::thread::spawn(move || {
        let Ok((mut socket, _)) = listener.accept() else {
            return;
        };
        let patience = Some(Duration::from_secs(5));
        let mut head = Vec::new();
        let mut byte = [0];
        let mut length = None;
        if socket.set_read_timeout(patience).is_err() || socket.set_nodelay(true).is_err() {
            return;
        }
        while !head.ends_with(b"\r\n\r\n") && socket.read_exact(&mut byte).is_ok() {
            head.push(byte[0]);
        }
        for line in String::from_utf8_lossy(&head).to_ascii_lowercase().lines() {
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse::<usize>().ok();
            }
        }
        let mut body = vec![0; length.unwrap_or_default()];
        // A client may disconnect early.
        if socket.read_exact(&mut body).is_ok() {
            drop(parts.iter().try_for_each(|part| socket.write_all(part)));
        }
    });
    format!("http://{address}")
}

/// In one piece or in two, a response is the same, or has the same error.
fn http_answer(data: &[u8]) {
    let (steer, data) = steered(data);
    let (method, at) = (
        if steer % 8 == 7 { "HEAD" } else { "GET" },
        steer % (data.len() + 1),
    );
    let limits = transport::Limits {
        timeout: Duration::from_secs(5),
        body: 64 * 1024,
        ..transport::Limits::default()
    };
    let asked = |parts: Vec<Vec<u8>>| {
        let base = BaseUrl::parse(&answering(parts)).expect("an address");
        let answer = Client::new(limits).send(&base, &Request::new(method, "/"), limits.timeout);
        match answer {
            Ok(response) => Ok((
                response.status,
                format!("{:?}", response.headers),
                response.body,
            )),
            Err(fault) => {
                harmless(&fault.to_string());
                Err(fault.cause.to_string())
            }
        }
    };
    let whole = asked(vec![data.to_vec()]);
    let parted = asked(vec![data[..at].to_vec(), data[at..].to_vec()]);
    assert_eq!(whole, parted);
    if let Ok((status, ..)) = whole {
        assert!((100..600).contains(&status), "{status}");
    }
}

/// The scan accepts what the full parser accepts, within the limits, with the same result.
fn json_scan(data: &[u8]) {
    let plain = data.strip_prefix("\u{feff}".as_bytes()).unwrap_or(data);
    let careful = serde_json::from_slice::<Value>(plain);
    match json::parse(data, Limits::default()) {
        Ok(parsed) => {
            assert_eq!(parsed.value, careful.expect("what is read is JSON"));
            let written = parsed.value.to_string();
            let again = json::parse(written.as_bytes(), Limits::default());
            assert_eq!(again.expect("what is written is JSON").value, parsed.value);
            for note in &parsed.notes {
                harmless(&conformant_base::text::escape_line(&note.to_string()));
            }
        }
        Err(fault) => {
            let is_limit = matches!(
                fault,
                ParseFault::TooLarge { .. }
                    | ParseFault::TooDeep { .. }
                    | ParseFault::TooManyNodes { .. }
                    | ParseFault::ReservedKey { .. }
            );
            assert!(is_limit || careful.is_err(), "{fault}");
            harmless(&fault.to_string());
        }
    }
}

/// Bytes that arrive one at a time.
struct Drips<'a>(&'a [u8]);

impl Read for Drips<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let Some((first, rest)) = self.0.split_first() else {
            return Ok(0);
        };
        let Some(room) = into.first_mut() else {
            return Ok(0);
        };
        *room = *first;
        self.0 = rest;
        Ok(1)
    }
}

fn surroundings(jobs: usize) -> Surroundings {
    Surroundings {
        now: Some(Timestamp::UNIX_EPOCH),
        alone: true,
        jobs,
        ..Surroundings::default()
    }
}

/// A file's record, and whether it was readable.
fn checked(
    kind: &str,
    name: &str,
    source: &mut (dyn Read + Send),
    jobs: usize,
) -> (RunRecord, bool) {
    let kind = Kind::parse(&RULEBOOK, kind).expect("a kind");
    let mut checker = Checker::new(&RULEBOOK, kind, surroundings(jobs));
    let read = checker.file(name, source);
    (checker.finish().0, read.is_ok())
}

/// The record without places in files.
fn verdicts(record: &RunRecord) -> BTreeMap<&str, (&'static str, usize)> {
    let rules = record.rules.iter();
    rules
        .map(|rule| (rule.id.as_str(), (rule.verdict.word(), rule.findings)))
        .collect()
}

fn shown_harmlessly(record: &RunRecord) {
    for format in Format::ALL {
        harmless(&format.render(record, Settings::default()));
    }
}

/// The fast path over many lines agrees with the full validator on each.
fn ndjson(data: &[u8]) {
    let (steer, data) = steered(data);
    let kind = [
        "flow/flow",
        "flow/execution",
        "chat/channel",
        "events/MessageSent/4",
    ][steer % 4];
    let (one, _) = checked(kind, "x.ndjson", &mut &data[..], 1);
    let (several, _) = checked(kind, "x.ndjson", &mut Drips(data), 3);
    assert_eq!(verdicts(&one), verdicts(&several));
    let lines: Vec<&[u8]> = data
        .split(|b| *b == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .collect();
    if (1..20).contains(&lines.len()) {
        let parsed = Kind::parse(&RULEBOOK, kind).expect("a kind");
        let mut checker = Checker::new(&RULEBOOK, parsed, surroundings(1));
        // A malformed document is an error, and a malformed line is counted.
        let mut are_documents = true;
        for line in lines {
            are_documents &= checker.file("x.json", &mut &line[..]).is_ok();
        }
        if are_documents {
            assert_eq!(verdicts(&one), verdicts(&checker.finish().0));
        }
    }
    harmless(&Format::Json.render(&one, Settings::default()));
}

/// A recording is judged the same however it is read.
fn har(data: &[u8]) {
    let whole = checked("har", "x.har", &mut &data[..], 1);
    let dripped = checked("har", "x.har", &mut Drips(data), 1);
    assert_eq!(
        (verdicts(&whole.0), whole.1),
        (verdicts(&dripped.0), dripped.1)
    );
    harmless(&Format::Json.render(&whole.0, Settings::default()));
}

/// Document types are rejected, and a text in an element is read back unchanged.
fn xml(data: &[u8]) {
    match xml::to_value(data, None) {
        Ok(value) => {
            let nested = depth(&value);
            assert!(nested <= 65, "{nested}");
            assert_eq!(
                value,
                xml::to_value(data, None).expect("it was read before")
            );
        }
        Err(fault) => harmless(&conformant_base::text::escape_line(&fault.to_string())),
    }
    let marked = [b"<!DOCTYPE a>".as_slice(), data].concat();
    assert!(
        xml::to_value(&marked, None).is_err(),
        "a document type is refused"
    );
    let text: String = String::from_utf8_lossy(data)
        .chars()
        .filter(|c| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}'))
        .collect();
    let wrapped = format!("<a><b>x{}x</b></a>", quick_xml::escape::escape(&text));
    let read = xml::to_value(wrapped.as_bytes(), None).expect("it is well-formed");
    assert_eq!(read, json!({ "b": format!("x{text}x") }));
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn check_problems(problems: &Problems, data: &[u8]) {
    assert!(
        !problems.is_empty(),
        "what is refused is refused for a reason"
    );
    let lines = data.split(|b| *b == b'\n').count();
    for problem in problems {
        assert!((1..=lines + 1).contains(&problem.line), "{problem:?}");
        harmless(&conformant_base::text::escape(&problem.message));
    }
}

/// A YAML value written as JSON is the same for both parsers.
fn yaml(data: &[u8]) {
    match parse_file::<Value>("x.yaml", data) {
        Ok(value) => {
            let written = value.to_string();
            let as_json = parse_file::<Value>("x.json", written.as_bytes());
            assert_eq!(as_json.expect("it was written as JSON"), value);
            if written.is_ascii() && !written.contains('\u{7f}') {
                match parse_file::<Value>("x.yaml", written.as_bytes()) {
                    Ok(as_yaml) => assert_eq!(as_yaml, value),
                    // JSON writes a very large number with an exponent, which some YAML parsers reject.
                    Err(problems) => assert!(
                        format!("{problems:?}").contains("read differently by YAML readers"),
                        "such JSON is YAML: {problems}"
                    ),
                }
            }
        }
        Err(problems) => check_problems(&problems, data),
    }
    if let Err(problems) = parse_file::<DeclaredFile>("x.yaml", data) {
        check_problems(&problems, data);
    }
}

/// All files of a rulebook; an accepted rulebook does not differ from itself, and differences are symmetric.
fn rulebook(data: &[u8]) {
    const FILES: [&str; 8] = [
        "flow/openapi.yaml",
        "flow/schemas/flow.yaml",
        "flow/rules/flows.yaml",
        "flow/laws.yaml",
        "flow/open-points.yaml",
        "flow/scenarios/flows.yaml",
        "events/asyncapi.yaml",
        "common.yaml",
    ];
    static PLAIN: LazyLock<Option<Rulebook>> =
        LazyLock::new(|| conformant_judge::load::embedded_shapes(&["flow"]).ok());
    let (steer, data) = steered(data);
    let path = FILES[steer % FILES.len()];
    match conformant_judge::load::embedded_with(path, data) {
        Ok(read) => {
            let changes = |a: &Rulebook, b: &Rulebook| {
                let comparison = conformant_versions::rulebooks(("a", a), ("b", b));
                let subjects = comparison
                    .changes
                    .iter()
                    .map(|c| format!("{:?}", c.subject));
                subjects.collect::<BTreeSet<_>>().len()
            };
            assert_eq!(changes(&read, &read), 0);
            if let Some(plain) = PLAIN.as_ref().filter(|_| path.starts_with("flow/schemas/")) {
                assert_eq!(changes(plain, &read) > 0, changes(&read, plain) > 0);
            }
        }
        Err(problems) => {
            for problem in &problems {
                assert!(problem.line > 0, "{problem:?}");
                harmless(&conformant_base::text::escape(&problem.message));
            }
        }
    }
}

/// A token is judged the same alone and in a file, and its output is harmless.
fn token(data: &[u8]) {
    text_kind("token", data);
}

/// The same for the text of a QR code.
fn qr(data: &[u8]) {
    text_kind("qr", data);
}

fn text_kind(kind: &str, data: &[u8]) {
    let (record, read) = checked(kind, "x.txt", &mut &data[..], 1);
    let (again, _) = checked(kind, "x.txt", &mut Drips(data), 1);
    assert_eq!(verdicts(&record), verdicts(&again));
    let line = String::from_utf8_lossy(data);
    if read && !line.contains(['\n', '\r']) && !line.trim().is_empty() {
        let ended = format!("{line}\n");
        let (again, _) = checked(kind, "x.txt", &mut ended.as_bytes(), 1);
        if std::str::from_utf8(data).is_ok() {
            assert_eq!(verdicts(&record), verdicts(&again));
        }
    }
    harmless(&Format::Json.render(&record, Settings::default()));
}

/// A waiver removes no finding; an expired one has no effect.
fn waivers(data: &[u8]) {
    let file: WaiverFile = match parse_file("waivers.yaml", data) {
        Ok(file) => file,
        Err(problems) => return check_problems(&problems, data),
    };
    for (day, is_over) in [("1000-01-01", false), ("9999-12-30", true)] {
        let mut record = RECORD.clone();
        let day: jiff::civil::Date = day.parse().expect("a day");
        let problems = Waivers::on(&file.waivers, day).apply(&mut record, true);
        assert_eq!(record.findings.len(), RECORD.findings.len());
        let waived = record
            .findings
            .iter()
            .filter(|f| !f.waived.is_empty())
            .count();
        if is_over && file.waivers.iter().all(|w| w.expires < day) {
            assert_eq!(waived, 0);
            assert!(problems.len() >= file.waivers.len());
        }
        shown_harmlessly(&record);
    }
}

/// A stored run is written back unchanged, and every format renders it.
fn record(data: &[u8]) {
    match conformant_report::read(data) {
        Ok(record) => {
            let written = Format::Json.render(&record, Settings::default());
            let again = conformant_report::read(written.as_bytes()).expect("it was written here");
            assert_eq!(written, Format::Json.render(&again, Settings::default()));
            shown_harmlessly(&record);
            let merged = conformant_versions::merge(&[record.clone(), RECORD.clone()]);
            if let Err(error) = merged {
                harmless(&conformant_base::text::escape_line(&error.to_string()));
            }
        }
        Err(error) => harmless(&conformant_base::text::escape_line(&error.to_string())),
    }
}

/// The result of a hook is JSON within the limits, or an error.
fn hook(data: &[u8]) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", data.len());
    let url = answering(vec![[head.as_bytes(), data].concat()]);
    let hook = Hook {
        transport: HookTransport::Http {
            method: "POST".to_owned(),
            url: format!("{url}/${{name}}"),
            headers: Vec::new(),
            body: None,
        },
        result: BTreeMap::new(),
    };
    let client = Client::new(transport::Limits::default());
    match sessions::ask(&hook, &json!({ "name": "x" }), &client) {
        Ok(value) if data.trim_ascii().is_empty() => assert_eq!(value, json!({})),
        Ok(value) => {
            let parsed = json::parse(data, Limits::default()).expect("it was taken");
            assert_eq!(value, parsed.value);
        }
        Err(fault) => harmless(&conformant_base::text::escape_line(&fault.to_string())),
    }
}

/// A secret is redacted in any context; other text is kept, and time is bounded by size.
fn redact(data: &[u8]) {
    const SECRET: &str = "k3y|0123\\n\"456%41=789";
    static KNOWING: LazyLock<Redactor> = LazyLock::new(|| Redactor::new([SECRET]));
    let (steer, data) = steered(data);
    let text = String::from_utf8_lossy(data);
    let at = (0..=steer.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or_default();
    let (before, after) = text.split_at(at);
    for spelled in [
        SECRET.to_owned(),
        conformant_base::http::percent_encode(SECRET),
        json!(SECRET).to_string(),
    ] {
        let echoed = format!("{before}{spelled}{after}");
        let shown = KNOWING.redact(&echoed);
        assert!(!shown.contains(&spelled), "{echoed:?}");
    }
    let begun = clock::monotonic();
    drop(KNOWING.redact(&text));
    let bound = Duration::from_millis(500 + text.len() as u64 / 4);
    assert!(begun.elapsed() < bound * 4, "{:?}", begun.elapsed());
}

/// Interpolated once: a captured text is data.
fn template(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    let captures = BTreeMap::from([("a".to_owned(), json!(text))]);
    let filled = |template: &Value| conformant_engine::filled(&RULEBOOK, &captures, template);
    assert_eq!(filled(&json!("${a}")), Ok(json!(text)));
    assert_eq!(filled(&json!("x${a}y")), Ok(json!(format!("x{text}y"))));
    assert_eq!(filled(&json!({"k": ["${a}"]})), Ok(json!({"k": [text]})));
    // As a template it is rejected, or unchanged without interpolations.
    match filled(&json!(text)) {
        Ok(value) if !text.contains("${") => assert_eq!(value, json!(text)),
        Ok(_) => {}
        Err(error) => harmless(&conformant_base::text::escape_line(&error.to_string())),
    }
    if let Ok(parsed) = json::parse(
        data,
        Limits {
            bytes: 4096,
            ..Limits::default()
        },
    ) {
        let is_bounded = !text.contains("$repeat") && !text.contains("$text");
        if is_bounded && let Err(error) = filled(&parsed.value) {
            harmless(&conformant_base::text::escape_line(&error.to_string()));
        }
    }
}

/// Generated parts are read back; parts of other input are within that input.
fn multipart(data: &[u8]) {
    let (steer, data) = steered(data);
    let text = String::from_utf8_lossy(data);
    let (kind, body) = Multipart::new().text("name", &text).finish();
    let parts = multipart_parts(&kind, &body);
    assert_eq!(parts.len(), 1);
    assert_eq!(
        (parts[0].name.as_str(), parts[0].content),
        ("name", text.as_bytes())
    );
    let kind = [
        "multipart/form-data; boundary=b",
        "multipart/form-data; boundary=\"b c\"",
        "multipart/form-data; boundary=",
        "multipart/mixed; boundary=--",
    ][steer % 4];
    let parts = multipart_parts(kind, data);
    let held: usize = parts.iter().map(|part| part.content.len()).sum();
    assert!(held <= data.len());
}

/// Two schemas, one a line: a schema does not differ from itself, differences and witnesses are symmetric, and their
/// output is harmless.
fn diff(data: &[u8]) {
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let schema = |line: Option<&[u8]>| json::parse(line?, Limits::default()).ok();
    let (Some(old), Some(new)) = (schema(lines.next()), schema(lines.next())) else {
        return;
    };
    let compared =
        |old: &Value, new: &Value| conformant_versions::schemas(old, new, Direction::Response);
    let (old, new) = (&old.value, &new.value);
    assert_eq!(compared(old, old).changes, [], "{old} and itself");
    let (there, back) = (compared(old, new), compared(new, old));
    assert_eq!(
        there.changes.is_empty(),
        back.changes.is_empty(),
        "{old} and {new}"
    );
    // If they are considered equal, each accepts what the other accepts.
    if there.changes.is_empty()
        && !old.to_string().contains("\"$")
        && !new.to_string().contains("\"$")
    {
        let both = [old, new].map(|schema| jsonschema::validator_for(schema).ok());
        if let [Some(before), Some(after)] = &both {
            for value in [
                json!(null),
                json!(0),
                json!(1.5),
                json!(""),
                json!("a"),
                json!([]),
                json!({}),
                json!({"a": 1}),
                json!({"a": "x"}),
            ] {
                assert_eq!(
                    before.is_valid(&value),
                    after.is_valid(&value),
                    "{value} by {old} and {new}"
                );
            }
        }
    }
    for change in there.changes.iter().chain(&back.changes) {
        for witness in &change.witnesses {
            assert_ne!(witness.was_right, witness.is_right, "{witness:?}");
        }
    }
    for format in [
        conformant_versions::Format::Text,
        conformant_versions::Format::Json,
        conformant_versions::Format::Markdown,
        conformant_versions::Format::Changelog,
        conformant_versions::Format::Junit,
    ] {
        harmless(&there.render(format).expect("a text format"));
    }
}
