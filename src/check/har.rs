//! HAR 1.2: recorded traffic as exchanges, judged by all that an exchange or a history allows.
//!
//! Nobody said what the requests were meant to bring, so a refusal accuses nobody. Entries are read
//! one by one; what belongs to no operation is passed over and counted.

use super::One;
use super::traffic::{History, Observed, Operations};
use crate::clients::Kept;
use crate::clock::Timestamp;
use crate::engine::request;
use crate::http::{Cause, Headers, Request, Response};
use crate::judge::Judgement;
use crate::judge::evidence::{Exchange, Span};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::cell::Cell;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::rc::Rc;
use std::time::Duration;

/// A file may have so many bytes (RELIABILITY F: streamed, not held).
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// One entry may have so many bytes, bodies included.
const ENTRY_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How many unreadable entries are told of one by one.
const UNREADABLE_SHOWN_MAX: usize = 20;

/// What a file came to.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) judgement: Judgement,
    /// Entries that belong to an operation and were judged.
    pub(super) exchanges: usize,
    /// Entries that belong to none.
    pub(super) foreign: usize,
    /// Entries that are no exchange, as `entry N: why`; the first ones.
    pub(super) unreadable: Vec<String>,
    /// How many those are in all.
    pub(super) unreadable_count: usize,
}

/// Judges every entry.
pub(super) fn judge_file(one: &One<'_>, source: &mut dyn Read) -> io::Result<Judged> {
    let mut file = File {
        one,
        operations: Operations::of(one.rulebook, one.surroundings),
        judged: Judged::default(),
        entry: 0,
        history: History::default(),
    };
    let read = Rc::new(Cell::new(Allowance {
        file: FILE_BYTES_MAX,
        entry: ENTRY_BYTES_MAX,
    }));
    let limited = Limited {
        source,
        allowance: Rc::clone(&read),
    };
    let mut deserializer =
        serde_json::Deserializer::from_reader(BufReader::with_capacity(64 * 1024, limited));
    let mut take = |entry: &RawValue| {
        file.take(entry);
        read.set(Allowance {
            entry: ENTRY_BYTES_MAX,
            ..read.get()
        });
    };
    let mut steps = Steps {
        path: &["log", "entries"],
        take: &mut take,
    };
    let outcome = Below(&mut steps)
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    file.close();
    match outcome {
        Ok(()) => Ok(file.judged),
        Err(error) => {
            let kind = error.io_error_kind();
            Err(io::Error::new(
                kind.unwrap_or(io::ErrorKind::InvalidData),
                format!("entry {}: {error}", file.entry + 1),
            ))
        }
    }
}

/// What was read of a file, as entries come.
struct File<'a> {
    one: &'a One<'a>,
    operations: Operations<'a>,
    judged: Judged,
    /// Number of the last entry, counted from 1.
    entry: usize,
    history: History,
}

impl File<'_> {
    /// Takes the next entry.
    fn take(&mut self, raw: &RawValue) {
        self.entry += 1;
        let entry: Entry = match serde_json::from_str(raw.get()) {
            Ok(entry) => entry,
            Err(error) => return self.unreadable(&error.to_string()),
        };
        match self.exchange(entry) {
            Ok(None) => self.judged.foreign += 1,
            Ok(Some(exchange)) => {
                self.judged.exchanges += 1;
                let client = self.one.client(&exchange, Kept::Cleaned);
                self.judged.judgement.merge(client);
                if self.history.take(exchange) {
                    self.close();
                }
            }
            Err(why) => self.unreadable(&why),
        }
    }

    fn unreadable(&mut self, why: &str) {
        self.judged.unreadable_count += 1;
        if self.judged.unreadable.len() < UNREADABLE_SHOWN_MAX {
            self.judged
                .unreadable
                .push(format!("entry {}: {why}", self.entry));
        }
    }

    fn close(&mut self) {
        let judgement = self.history.close(self.one);
        self.judged.judgement.merge(judgement);
    }

    fn exchange(&self, entry: Entry) -> Result<Option<Exchange>, String> {
        let (origin, target) = split(&entry.request.url)?;
        let mut request = Request::new(&entry.request.method.to_ascii_uppercase(), target);
        request.headers = headers(&entry.request.headers);
        if let Some(data) = entry.request.post_data {
            if request.headers.get("Content-Type").is_none()
                && let Some(media_type) = &data.mime_type
            {
                request.headers.set("Content-Type", media_type.clone());
            }
            let (media_type, body) = data.body()?;
            if let Some(media_type) = media_type {
                request.headers.set("Content-Type", media_type);
            }
            request.body = body;
        }
        let Some(found) = self.operations.find(&origin, &request) else {
            return Ok(None);
        };
        let span = span(&entry.started_date_time, entry.time);
        let answer = entry.response.into_response()?;
        Ok(Some(self.one.exchange(
            found,
            Observed {
                number: self.entry,
                request,
                answer: answer.map_err(|why| (Cause::NotRecorded, why)),
                span,
            },
        )))
    }
}

/// When an entry began and ended: an end that was not recorded is not known, nor is what a recorder
/// wrote as a time that is none.
fn span(started: &str, took_ms: Option<f64>) -> Span {
    let Ok(began) = started.parse::<Timestamp>() else {
        return Span::UNKNOWN;
    };
    let took = took_ms.filter(|ms| *ms >= 0.0);
    let took = took.and_then(|ms| Duration::try_from_secs_f64(ms / 1_000.0).ok());
    let ended = took.and_then(|took| began.checked_add(took).ok());
    Span {
        began,
        ended: ended.unwrap_or(Timestamp::MAX),
    }
}

/// An absolute address as origin and request target.
fn split(url: &str) -> Result<(String, String), String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(format!("no absolute address: {url}"));
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, target) = rest.split_at(end);
    let target = if target.starts_with('/') {
        target.to_owned()
    } else {
        format!("/{target}")
    };
    Ok((format!("{scheme}://{host}"), target))
}

fn headers(fields: &[Field]) -> Headers {
    let mut headers = Headers::default();
    // Recordings of HTTP/2 list what is no header field in HTTP/1.1, `:authority` for example.
    for field in fields.iter().filter(|f| !f.name.starts_with(':')) {
        headers.add(&field.name, field.value.clone());
    }
    headers
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    started_date_time: String,
    time: Option<f64>,
    request: RecordedRequest,
    response: RecordedResponse,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordedRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Field>,
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Field {
    name: String,
    #[serde(default)]
    value: String,
    file_name: Option<String>,
    content_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    mime_type: Option<String>,
    text: Option<String>,
    encoding: Option<String>,
    #[serde(default)]
    params: Vec<Field>,
}

#[derive(Deserialize)]
struct RecordedResponse {
    status: i32,
    #[serde(default)]
    headers: Vec<Field>,
    #[serde(default)]
    content: Content,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    #[serde(default)]
    size: i64,
    mime_type: Option<String>,
    text: Option<String>,
    encoding: Option<String>,
}

impl PostData {
    /// The body and, where it was made anew, its media type.
    fn body(self) -> Result<(Option<String>, Vec<u8>), String> {
        if let Some(text) = self
            .text
            .filter(|text| !text.is_empty() || self.params.is_empty())
        {
            return Ok((None, decoded(text, self.encoding.as_deref())?));
        }
        let media_type = self.mime_type.unwrap_or_default().to_ascii_lowercase();
        if media_type.starts_with("multipart/form-data") {
            let (media_type, body) = parts(&self.params)?;
            return Ok((Some(media_type), body));
        }
        let mut form = form_urlencoded::Serializer::new(String::new());
        for field in &self.params {
            form.append_pair(&field.name, &field.value);
        }
        Ok((None, form.finish().into_bytes()))
    }
}

/// The parts of an upload; recordings leave out what files hold.
fn parts(params: &[Field]) -> Result<(String, Vec<u8>), String> {
    let fields = params.iter().map(|field| {
        let media_type = field.content_type.as_deref();
        let media_type = media_type.unwrap_or("application/octet-stream");
        request::Field {
            name: &field.name,
            value: &field.value,
            file: field.file_name.as_deref().map(|name| (name, media_type)),
        }
    });
    request::upload(fields).map_err(|e| e.to_string())
}

impl RecordedResponse {
    /// The answer; why there is none where none was recorded.
    fn into_response(self) -> Result<Result<Response, String>, String> {
        let Ok(status @ 100..=999) = u16::try_from(self.status) else {
            return Ok(Err(format!(
                "no answer was recorded (status {})",
                self.status
            )));
        };
        let mut headers = headers(&self.headers);
        if let (None, Some(media_type)) = (headers.get("Content-Type"), &self.content.mime_type) {
            headers.set("Content-Type", media_type.clone());
        }
        let body = match self.content.text {
            Some(text) => decoded(text, self.content.encoding.as_deref())?,
            None if self.content.size > 0 => {
                return Ok(Err(format!(
                    "the body of {} bytes was not recorded",
                    self.content.size
                )));
            }
            None => Vec::new(),
        };
        Ok(Ok(Response {
            status,
            headers,
            body,
            oddities: Vec::new(),
        }))
    }
}

fn decoded(text: String, encoding: Option<&str>) -> Result<Vec<u8>, String> {
    match encoding {
        None | Some("") => Ok(text.into_bytes()),
        Some("base64") => STANDARD
            .decode(text.trim())
            .map_err(|error| format!("a body is not base64: {error}")),
        Some(other) => Err(format!(
            "a body is encoded as {other}, which HAR does not have"
        )),
    }
}

// --- reading without holding the file ------------------------------------------------------------

/// Bytes that may still be read.
#[derive(Clone, Copy)]
struct Allowance {
    file: u64,
    entry: u64,
}

/// A source that ends in an error where a file or one entry is too large.
struct Limited<'a> {
    source: &'a mut dyn Read,
    allowance: Rc<Cell<Allowance>>,
}

impl Read for Limited<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Allowance { file, entry } = self.allowance.get();
        let read = self.source.read(buffer)?;
        let size = read as u64;
        if size > entry {
            let why = format!("larger than {ENTRY_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        if size > file {
            let why = format!("the file is larger than {FILE_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        self.allowance.set(Allowance {
            file: file - size,
            entry: entry - size,
        });
        Ok(read)
    }
}

/// The way to the list of entries, and who takes them.
struct Steps<'a> {
    path: &'static [&'static str],
    take: &'a mut dyn FnMut(&RawValue),
}

/// Whatever stands at the present step of the way.
struct Below<'a, 'b>(&'a mut Steps<'b>);

impl<'de> DeserializeSeed<'de> for Below<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.0.path.is_empty() {
            deserializer.deserialize_seq(self)
        } else {
            deserializer.deserialize_map(self)
        }
    }
}

impl<'de> Visitor<'de> for Below<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.path {
            [] => f.write_str("a list of entries"),
            [name, ..] => write!(f, "an object with `{name}`"),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (name, rest) = self
            .0
            .path
            .split_first()
            .ok_or_else(|| A::Error::custom("an object where a list is due"))?;
        let mut is_found = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == *name && !is_found {
                is_found = true;
                let mut steps = Steps {
                    path: rest,
                    take: &mut *self.0.take,
                };
                map.next_value_seed(Below(&mut steps))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if is_found {
            Ok(())
        } else {
            Err(A::Error::custom(format!("no HAR: there is no `{name}`")))
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(entry) = entries.next_element::<Box<RawValue>>()? {
            (self.0.take)(&entry);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::traffic::apart;
    use super::*;
    use crate::check::{Checker, Kind, Surroundings};
    use crate::engine::plan;
    use crate::engine::sessions::Offline;
    use crate::engine::{Planned, Sessions, Target, Telling, play};
    use crate::judge::evidence::{Evidence, Expectation, Outcome, Via};
    use crate::judge::judge;
    use crate::reference::Fault;
    use crate::rulebook::shared::of_specs as rulebook;
    use crate::schema::Schemas;
    use crate::verdict::{Finding, SERVICES, Subject};
    use serde_json::Value;
    use serde_json::json;
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::OnceLock;
    use std::sync::atomic::AtomicBool;

    /// The exchanges of a scenario as another tool records them.
    fn recorded(exchanges: &[Exchange]) -> Vec<Value> {
        let fields = |headers: &Headers| -> Vec<Value> {
            headers
                .iter()
                .map(|(name, value)| json!({"name": name, "value": value}))
                .collect()
        };
        let record = |exchange: &Exchange| {
            let Outcome::Answered { response, .. } = &exchange.outcome else {
                panic!("no answer in process")
            };
            let mut request = json!({
                "method": exchange.request.method, "url": format!("{}{}", exchange.base, exchange.request.target),
                "httpVersion": "HTTP/1.1", "headers": fields(&exchange.request.headers), "cookies": [],
                "queryString": [], "headersSize": -1, "bodySize": exchange.request.body.len(),
            });
            if !exchange.request.body.is_empty() {
                request["postData"] = json!({"mimeType": "", "text": String::from_utf8_lossy(&exchange.request.body)});
            }
            json!({
                "startedDateTime": exchange.span.began.to_string(), "time": 0, "cache": {}, "timings": {},
                "request": request,
                "response": {
                    "status": response.status, "statusText": "", "headers": fields(&response.headers),
                    "content": {"size": response.body.len(), "encoding": "base64", "text": STANDARD.encode(&response.body)},
                },
            })
        };
        exchanges.iter().map(record).collect()
    }

    fn har(entries: &[Value]) -> String {
        json!({"log": {"version": "1.2", "creator": {"name": "x"}, "pages": [{"id": "p"}], "entries": entries}}).to_string()
    }

    fn check(
        text: &str,
        targets: &[(&str, &str)],
    ) -> (Checker<'static>, Result<(), crate::check::CheckError>) {
        let targets = targets
            .iter()
            .map(|(service, url)| ((*service).to_owned(), (*url).to_owned()));
        let surroundings = Surroundings {
            targets: targets.collect(),
            ..Surroundings::default()
        };
        let mut checker = Checker::new(rulebook(), Kind::Har, surroundings);
        let result = checker.file("run.har", &mut text.as_bytes());
        (checker, result)
    }

    /// What is the same of a finding, recorded and live.
    fn essence(
        findings: &[Finding],
        numbers: Option<&[usize]>,
    ) -> BTreeSet<(String, usize, String, String)> {
        findings
            .iter()
            .map(|f| {
                let number = numbers.map_or(f.exchange, |numbers| numbers[f.exchange - 1]);
                (f.rule.clone(), number, f.pointer.clone(), f.kind.clone())
            })
            .collect()
    }

    /// What the same exchanges bring live, without what only a scenario can say of them.
    fn live(exchanges: Vec<Exchange>, configured: Value) -> Vec<Finding> {
        let exchanges = exchanges.into_iter().map(|e| Exchange {
            expectation: Expectation::Either,
            ..e
        });
        let evidence = Evidence {
            exchanges: exchanges.collect(),
            configured,
            ..Evidence::default()
        };
        judge(rulebook(), &Schemas::default(), &evidence).findings
    }

    fn exchanges_of(scenario: &str, fault: Option<Fault>) -> (Vec<Exchange>, Value) {
        let targets: BTreeMap<String, Target> = SERVICES
            .iter()
            .map(|s| {
                (
                    (*s).to_owned(),
                    Target::of_reference(s, &format!("http://127.0.0.1:9/{s}")),
                )
            })
            .collect();
        let sessions =
            Offline::in_process(0, fault.into_iter().collect(), BTreeSet::new(), targets);
        let planned = planned()
            .iter()
            .find(|p| p.scenario.id == scenario)
            .unwrap();
        let session = sessions.open(planned).unwrap();
        let schemas = Schemas::default();
        let calm = AtomicBool::new(false);
        let telling = Telling::new(rulebook(), &schemas, planned, (0, 0));
        let story = play(telling, session.as_ref(), &calm);
        (story.evidence.exchanges, story.evidence.configured)
    }

    #[test]
    fn a_service_at_several_origins_is_several_services() {
        let (first, _) = exchanges_of("flow/executions/ended", None);
        let elsewhere = first.iter().cloned().map(|exchange| Exchange {
            base: exchange.base.replacen("://", "://other.", 1),
            ..exchange
        });
        let both = first.iter().cloned().zip(elsewhere);
        let mut mixed: Vec<Exchange> = both.flat_map(|(one, other)| [one, other]).collect();
        for follower in [2, 3] {
            mixed[follower].via = Some(Via {
                exchange: 0,
                pointer: "/url".to_owned(),
            });
        }
        let parts = apart(mixed);
        let sizes: Vec<usize> = parts.iter().map(Vec::len).collect();
        assert_eq!(sizes, [first.len(), first.len()]);
        assert!(
            parts[0][1]
                .via
                .as_ref()
                .is_some_and(|via| via.exchange == 0)
        );
        assert!(parts[1][1].via.is_none(), "what another service showed");
        assert_eq!(apart(first).len(), 1);
    }

    /// The plan, made once for all tests.
    fn planned() -> &'static [Planned<'static>] {
        static PLANNED: OnceLock<Vec<Planned<'static>>> = OnceLock::new();
        PLANNED.get_or_init(|| plan::all(rulebook()))
    }

    #[test]
    fn a_recording_brings_the_same_findings_as_the_exchanges_live() {
        let mut found = 0;
        for fault in Fault::ALL {
            let service = fault.id().split('/').next().unwrap_or_default();
            let scenario = match service {
                "chat" => "chat/create-channel/happy",
                "flow" => "flow/create-execution/happy",
                _ => continue,
            };
            let (exchanges, configured) = exchanges_of(scenario, Some(*fault));
            let text = har(&recorded(&exchanges));
            let (checker, result) = check(&text, &[]);
            result.unwrap();
            let (record, counts) = checker.finish();
            assert_eq!(
                (counts.documents, counts.foreign),
                (exchanges.len(), 0),
                "{}",
                fault.id()
            );
            let live = live(exchanges, configured);
            assert_eq!(
                essence(&record.findings, None),
                essence(&live, None),
                "{}",
                fault.id()
            );
            found += live.len();
        }
        assert!(found > 5, "the faults show in {found} findings");
    }

    #[test]
    fn a_recording_of_what_is_right_brings_nothing_although_it_shows_no_deeds_of_people() {
        let plan = planned();
        let mut judged = 0;
        let mut found = BTreeSet::new();
        for planned in plan {
            let (exchanges, _) = exchanges_of(&planned.scenario.id, None);
            let (checker, result) = check(&har(&recorded(&exchanges)), &[]);
            result.unwrap();
            let (record, counts) = checker.finish();
            judged += counts.documents;
            // What accuses a client is right: many stories try what is wrong.
            let told = record.findings.into_iter();
            let told = told.filter(|finding| finding.subject == Subject::Service);
            found
                .extend(told.map(|f| format!("{}: {} {}", planned.scenario.id, f.rule, f.message)));
        }
        assert!(judged > 4_000, "{judged} exchanges");
        assert!(found.is_empty(), "{} findings: {found:#?}", found.len());
    }

    #[test]
    fn what_was_not_timed_is_before_and_after_nothing() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let first = span("2026-01-01T00:00:00Z", Some(1.5));
        assert_eq!(first.ended, at("2026-01-01T00:00:00.0015Z"));
        let second = span("2026-01-01T00:00:01Z", Some(0.0));
        assert!(first.is_before(&second) && !second.is_before(&first));
        for unknown in [
            span("", Some(1.0)),
            span("yesterday", None),
            span("2025-01-01T00:00:00Z", None),
            span("2025-01-01T00:00:00Z", Some(-1.0)),
            span("2025-01-01T00:00:00Z", Some(f64::NAN)),
        ] {
            assert!(!unknown.is_before(&first), "{unknown:?}");
        }
    }

    fn execution(change: impl FnOnce(&mut Value)) -> Value {
        let (exchanges, _) = exchanges_of("flow/fetch-execution/happy", None);
        let mut entry = recorded(&exchanges).pop().unwrap();
        change(&mut entry);
        entry
    }

    #[test]
    fn entries_are_named_by_number_and_foreign_ones_passed_over() {
        let broken = |entry: &mut Value| {
            let bytes = STANDARD
                .decode(entry["response"]["content"]["text"].as_str().unwrap())
                .unwrap();
            let mut body: Value = serde_json::from_slice(&bytes).unwrap();
            body["status"] = json!("done");
            entry["response"]["content"] =
                json!({"size": 1, "mimeType": "application/json", "text": body.to_string()});
        };
        let foreign = json!({
            "request": {"method": "GET", "url": "https://cdn.example/logo.png", "headers": []},
            "response": {"status": 200, "headers": [], "content": {"size": 3, "text": "png"}},
        });
        let text = har(&[foreign, execution(|_| {}), execution(broken)]);
        for targets in [&[][..], &[("flow", "http://reference.invalid/flow/")][..]] {
            let (checker, result) = check(&text, targets);
            result.unwrap();
            let (record, counts) = checker.finish();
            assert_eq!(
                (counts.documents, counts.foreign, counts.unreadable),
                (2, 1, 0)
            );
            let found: Vec<_> = record
                .findings
                .iter()
                .map(|f| (f.rule.as_str(), f.exchange, f.step))
                .collect();
            assert_eq!(found, [("flow/execution/status", 3, 3)]);
            assert!(
                record.findings[0]
                    .reproduce
                    .contains("http://reference.invalid/flow/v1/"),
                "{}",
                record.findings[0].reproduce
            );
        }
        let (checker, _) = check(&text, &[("flow", "http://other.invalid/flow")]);
        assert_eq!(checker.finish().1.foreign, 3);
    }

    #[test]
    fn what_was_not_recorded_accuses_nobody() {
        let unrecorded = execution(|e| e["response"]["content"] = json!({"size": 99}));
        let blocked = execution(|e| e["response"]["status"] = json!(0));
        let refused = execution(|e| {
            e["response"] = json!({"status": 404, "content": {"size": 0, "text": ""}});
        });
        let (checker, result) = check(&har(&[unrecorded, blocked, refused]), &[]);
        result.unwrap();
        let (record, counts) = checker.finish();
        assert_eq!((record.findings.len(), counts.documents), (0, 3));
    }

    #[test]
    fn entries_that_are_none_are_counted_and_the_others_judged() {
        let wrong = [
            json!(1),
            json!({}),
            execution(|e| e["request"]["url"] = json!("no address")),
            execution(|e| e["response"]["content"]["text"] = json!("%%%")),
            execution(|e| e["response"]["content"]["encoding"] = json!("rot13")),
            execution(|e| e["request"]["headers"] = json!({"a": "b"})),
            execution(|_| {}),
        ];
        let (checker, result) = check(&har(&wrong), &[]);
        result.unwrap();
        assert_eq!(checker.notes().len(), 6);
        let (_, counts) = checker.finish();
        assert_eq!((counts.unreadable, counts.documents), (6, 1));
    }

    #[test]
    fn a_file_that_is_no_har_is_an_error() {
        for text in [
            "",
            "[]",
            "{}",
            "{\"log\": 1}",
            "{\"log\": {}}",
            "{\"log\": {\"entries\": [1,",
            "{\"log\": {\"entries\": []}} x",
        ] {
            assert!(check(text, &[]).1.is_err(), "{text}");
        }
        assert!(check("{\"log\": {\"entries\": []}}", &[]).1.is_ok());
    }

    #[test]
    fn an_upload_is_read_from_its_parameters() {
        let data = json!({
            "mimeType": "multipart/form-data; boundary=gone",
            "params": [{"name": "media", "fileName": "dot.png", "contentType": "image/png"}],
        });
        let data: PostData = serde_json::from_value(data).unwrap();
        let (media_type, body) = data.body().unwrap();
        assert!(
            media_type
                .unwrap()
                .starts_with("multipart/form-data; boundary=part-")
        );
        assert!(
            String::from_utf8(body)
                .unwrap()
                .contains("filename=\"dot.png\"")
        );
    }

    #[test]
    fn a_huge_entry_is_refused_without_being_held() {
        let start: &[u8] = b"{\"log\": {\"entries\": [\"";
        let mut endless = start.chain(io::repeat(b'x'));
        let mut checker = Checker::new(rulebook(), Kind::Har, Surroundings::default());
        let error = checker
            .file("run.har", &mut endless)
            .unwrap_err()
            .to_string();
        assert!(error.contains("entry 1"), "{error}");
    }
}
