//! Files judged offline: payloads, NDJSON with one payload a line, HAR, registration tokens and QR
//! strings.
//!
//! The same rules as in a run, over what files hold; nothing is sent, and no rule that needs more
//! than a file shows is judged.

mod blocks;
mod envelope;
mod glance;
mod har;
mod inline;
mod lines;
mod stream;
mod token;
mod traffic;

pub use envelope::Mapping;
pub use inline::{Inline, Passed};
pub use token::{judge_qr, judge_token};

use blocks::{Blocks, Source};
use glance::{Glance, Look};
use lines::{Judged, OfLines, Quick};
use stream::Stream;

use conformant_base::clock::Timestamp;
use conformant_base::json::{self, Limits, Parsed};
use conformant_engine::Recorder;
use conformant_judge::evidence::{Evidence, Payload};
use conformant_judge::{Judgement, Tally, judge};
use conformant_record::{Finding, RunRecord};
use conformant_rulebook::service::{ServiceFile, ServiceIndex};
use conformant_rulebook::xml;
use conformant_rulebook::{Rule, Rulebook};
use conformant_schema::{Schemas, rule_of_whole};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

/// The name of standard input.
pub const STANDARD_INPUT: &str = "-";
/// A file that is read whole may have so many bytes.
const WHOLE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// So many findings are kept; the rest is counted with its rule.
const FINDINGS_MAX: usize = 10_000;

/// What files are judged as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A representation of the rulebook: `flow/execution`, `chat/channel[]`, `events/MessageSent/4`.
    Representation(String),
    /// A registration token in its compact form.
    Token,
    /// The text of a registration's QR code.
    Qr,
    /// Recorded traffic.
    Har,
    /// Events as captured: each says its type and schema address beside its payload.
    Events(Mapping),
}

/// Why a text names no kind that can be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// An event type whose payload no document shows.
    #[error("no document shows the payload of {0}, so nothing can be judged")]
    NotShown(String),
    /// Nothing has that name.
    #[error("{name}: no such kind; {help}")]
    Unknown {
        /// As given.
        name: String,
        /// A near one, or where all are listed.
        help: String,
    },
}

impl Kind {
    /// Reads what `--as` says; an event type stands for its current schema.
    pub fn parse(rulebook: &Rulebook, text: &str) -> Result<Self, KindError> {
        match text {
            "token" => return Ok(Self::Token),
            "qr" => return Ok(Self::Qr),
            "har" => return Ok(Self::Har),
            "events" => return Ok(Self::Events(Mapping::default())),
            _ if rulebook.kinds.contains_key(text) => {
                return Ok(Self::Representation(text.to_owned()));
            }
            _ => {}
        }
        match rulebook.event_types.get(text) {
            Some(Some(kind)) => return Ok(Self::Representation(kind.clone())),
            Some(None) => {
                return Err(KindError::NotShown(text.to_owned()));
            }
            None => {}
        }
        let mut known = vec!["token", "qr", "har", "events"];
        known.extend(rulebook.kinds.keys().map(String::as_str));
        known.extend(rulebook.event_types.keys().map(String::as_str));
        let near = conformant_base::text::did_you_mean(text, &known);
        let help = near.map_or_else(
            || "see `conformant list kinds`".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        let name = text.to_owned();
        Err(KindError::Unknown { name, help })
    }

    /// Whether rules of that service judge it.
    fn is_of(&self, index: &ServiceIndex, service: &str) -> bool {
        match self {
            Self::Representation(kind) => kind.split('/').next() == Some(service),
            Self::Token | Self::Qr => index.signer() == Some(service),
            Self::Events(_) => index.feeds().contains(&service),
            Self::Har => true,
        }
    }
}

/// What files are judged against beside the rulebook.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// What the configuration says, by service: `/auth/application/name`.
    pub configured: Value,
    /// The application's key, where it is known.
    pub api_key: Option<String>,
    /// Base address by service; without any, recorded traffic is recognised by its paths.
    pub targets: BTreeMap<String, String>,
    /// The time that tokens are judged at.
    pub now: Option<Timestamp>,
    /// Whether nobody else acts on the targets while traffic is recorded.
    pub alone: bool,
    /// Threads that judge lines side by side.
    pub jobs: usize,
    /// Of traffic: whom to judge.
    pub sides: Sides,
}

/// Whom recorded or passing traffic is judged for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sides {
    /// What services answer, and what clients send.
    #[default]
    Both,
    /// What clients send.
    Requests,
    /// What services answer.
    Responses,
}

impl Sides {
    /// Whether clients are judged.
    pub const fn has_requests(self) -> bool {
        !matches!(self, Self::Responses)
    }

    /// Whether services are judged.
    pub const fn has_responses(self) -> bool {
        !matches!(self, Self::Requests)
    }
}

/// Why a file could not be judged at all.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// It could not be read.
    #[error("{name} could not be read: {source}")]
    Unreadable {
        /// The file.
        name: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is too large to be read whole.
    #[error(
        "{name} is larger than {limit} bytes; one document a line (.ndjson) is judged at any size"
    )]
    TooLarge {
        /// The file.
        name: String,
        /// Bytes allowed.
        limit: u64,
    },
}

/// Judges files of one kind, one after the other.
#[derive(Debug)]
pub struct Checker<'a> {
    rulebook: &'a Rulebook,
    schemas: Schemas,
    kind: Kind,
    surroundings: Surroundings,
    recorder: Recorder<'a>,
    kept: usize,
    outcome: Counts,
    notes: Vec<String>,
    types: BTreeMap<String, usize>,
}

/// How much was judged and how much of it is listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Documents or exchanges judged, unreadable documents included.
    pub documents: usize,
    /// Entries of recorded traffic that belong to no operation, events of no documented type.
    pub foreign: usize,
    /// Entries of recorded traffic that are no exchange, lines that are no event.
    pub unreadable: usize,
    /// Findings that are counted with their rule and not listed, as there are too many.
    pub unlisted: usize,
}

impl CheckError {
    /// True where the file is not what it was said to be, false where the machine failed.
    pub fn is_usage(&self) -> bool {
        use std::io::ErrorKind;
        match self {
            Self::Unreadable { source, .. } => matches!(
                source.kind(),
                ErrorKind::InvalidData | ErrorKind::FileTooLarge
            ),
            Self::TooLarge { .. } => true,
        }
    }
}

impl<'a> Checker<'a> {
    /// A checker for this kind.
    pub fn new(rulebook: &'a Rulebook, kind: Kind, surroundings: Surroundings) -> Self {
        let recorder = Recorder::new(rulebook, BTreeMap::new(), 0);
        let schemas = Schemas::default();
        Self {
            rulebook,
            schemas,
            kind,
            surroundings,
            recorder,
            kept: 0,
            outcome: Counts::default(),
            notes: Vec::new(),
            types: BTreeMap::new(),
        }
    }

    /// Judges a file: one document, or one a line where its name or its first lines say so.
    pub fn file(&mut self, name: &str, source: &mut (dyn Read + Send)) -> Result<(), CheckError> {
        self.source(name, Source::Stream(source))
    }

    /// The same of an open file, whose lines each thread reads for itself.
    pub fn opened(&mut self, name: &str, file: &File) -> Result<(), CheckError> {
        self.source(name, Source::File(file))
    }

    fn source(&mut self, name: &str, mut source: Source<'_>) -> Result<(), CheckError> {
        let judgement = match self.kind.clone() {
            Kind::Representation(kind) => {
                let payloads = Payloads::new(self.one(name), &kind);
                let judged = self.documents(name, source, &payloads)?;
                self.count(name, judged)
            }
            Kind::Events(mapping) => {
                let stream = Stream::new(self.one(name), &mapping);
                let judged = self.documents(name, source, &stream)?;
                self.count(name, judged)
            }
            Kind::Token => self.tokens(name, source.reader(), |one, line, text| {
                one.token(line, text)
            })?,
            Kind::Qr => self.tokens(name, source.reader(), |one, line, text| one.qr(line, text))?,
            Kind::Har => self.har(name, source.reader())?,
        };
        self.take(name, judgement);
        Ok(())
    }

    /// What could not be read, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Events by type, as streams named them.
    pub fn types(&self) -> &BTreeMap<String, usize> {
        &self.types
    }

    /// The record of all files, and how much was judged.
    pub fn finish(self) -> (RunRecord, Counts) {
        let kind = self.kind;
        let index = Arc::clone(&self.rulebook.index);
        let mut record = self
            .recorder
            .finish_judged(|rule: &Rule| kind.is_of(&index, &rule.service));
        if kind == Kind::Har {
            record.summary.exchanges = self.outcome.documents;
        }
        (record, self.outcome)
    }

    /// Tokens, one a line.
    fn tokens(
        &mut self,
        name: &str,
        source: &mut dyn Read,
        one: impl Fn(&One<'_>, usize, &[u8]) -> Judgement,
    ) -> Result<Judgement, CheckError> {
        let bytes = whole(name, Vec::new(), source)?;
        let lines: Vec<(usize, &[u8])> = bytes
            .split(|b| *b == b'\n')
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim_ascii()))
            .filter(|(_, line)| !line.is_empty())
            .collect();
        let mut judgement = Judgement::default();
        if lines.is_empty() {
            // A file of nothing holds a token that is none.
            judgement = one(&self.one(name), 0, b"");
        }
        for (number, line) in &lines {
            let number = if lines.len() > 1 { *number } else { 0 };
            judgement.merge(one(&self.one(name), number, line));
        }
        self.outcome.documents += lines.len().max(1);
        Ok(judgement)
    }

    /// Documents, one a line or a whole file.
    fn documents(
        &self,
        name: &str,
        mut source: Source<'_>,
        lines: &impl OfLines,
    ) -> Result<Judged, CheckError> {
        let unreadable = |source| CheckError::Unreadable {
            name: name.to_owned(),
            source,
        };
        let (start, by_line) = lines::begin(name, source.reader()).map_err(unreadable)?;
        if !by_line {
            return Ok(lines.careful(0, &whole(name, start, source.reader())?));
        }
        let keep = FINDINGS_MAX.saturating_sub(self.kept);
        let blocks = Blocks::of(source, start);
        lines::judge(lines, blocks, self.surroundings.jobs, keep).map_err(unreadable)
    }

    /// Adds up what lines came to.
    fn count(&mut self, name: &str, judged: Judged) -> Judgement {
        self.outcome.documents += judged.documents;
        self.outcome.foreign += judged.foreign;
        self.outcome.unreadable += judged.unreadable;
        self.notes
            .extend(judged.notes.iter().map(|why| format!("{name}: {why}")));
        for (event, count) in judged.types {
            *self.types.entry(event).or_default() += count;
        }
        judged.judgement
    }

    fn har(&mut self, name: &str, source: &mut dyn Read) -> Result<Judgement, CheckError> {
        let judged =
            har::judge_file(&self.one(name), source).map_err(|source| CheckError::Unreadable {
                name: name.to_owned(),
                source,
            })?;
        self.outcome.documents += judged.exchanges;
        self.outcome.foreign += judged.foreign;
        self.outcome.unreadable += judged.unreadable_count;
        self.notes
            .extend(judged.unreadable.iter().map(|why| format!("{name}: {why}")));
        Ok(judged.judgement)
    }

    fn one<'b>(&'b self, name: &'b str) -> One<'b> {
        One {
            rulebook: self.rulebook,
            schemas: &self.schemas,
            surroundings: &self.surroundings,
            name,
        }
    }

    /// Takes a file's judgement, without more findings than can be kept.
    fn take(&mut self, name: &str, mut judgement: Judgement) {
        let counted: usize = judgement.tallies.values().map(Tally::findings).sum();
        judgement
            .findings
            .truncate(FINDINGS_MAX.saturating_sub(self.kept));
        self.kept += judgement.findings.len();
        self.outcome.unlisted += counted - judgement.findings.len();
        self.recorder.add_judgement(name, judgement);
    }
}

/// Lines that are payloads of one kind.
#[derive(Debug)]
struct Payloads<'a> {
    one: One<'a>,
    kind: &'a str,
    glance: Option<Glance>,
}

impl<'a> Payloads<'a> {
    fn new(one: One<'a>, kind: &'a str) -> Self {
        let glance = Glance::of(one.rulebook, kind);
        Self { one, kind, glance }
    }
}

impl OfLines for Payloads<'_> {
    type Quick<'q>
        = Look<'q>
    where
        Self: 'q;

    fn quick(&self) -> Option<Look<'_>> {
        self.glance.as_ref().map(Look::new)
    }

    fn careful(&self, line: usize, bytes: &[u8]) -> Judged {
        Judged::one(self.one.document(self.kind, line, bytes))
    }

    fn unreadable(&self, line: usize, why: &str) -> Judged {
        Judged::one(self.one.unreadable(self.kind, line, why))
    }
}

impl Quick for Look<'_> {
    fn line(&mut self, text: &[u8]) -> Option<usize> {
        Look::line(self, text)
    }

    fn finish(self) -> Judged {
        let (documents, judgement) = Look::finish(self);
        Judged {
            judgement,
            documents,
            ..Judged::default()
        }
    }
}

/// Judges single documents of a file.
#[derive(Clone, Copy, Debug)]
struct One<'a> {
    rulebook: &'a Rulebook,
    schemas: &'a Schemas,
    surroundings: &'a Surroundings,
    name: &'a str,
}

impl One<'_> {
    /// One document, JSON or, of the service that answers in both, XML; `line` is 0 where the file
    /// holds no other.
    fn document(&self, kind: &str, line: usize, bytes: &[u8]) -> Judgement {
        let service = kind.split('/').next();
        let service = service.and_then(|name| self.rulebook.index.get(name));
        if service.is_some_and(ServiceFile::has_xml) && bytes.trim_ascii_start().starts_with(b"<") {
            let schema = self.rulebook.kinds.get(kind).map(|known| &known.schema);
            return match xml::to_value(bytes, schema) {
                Ok(value) => self.payload(line, kind, made_of(value)),
                Err(fault) => self.unreadable(kind, line, &format!("XML: {fault}")),
            };
        }
        match json::parse(bytes, Limits::default()) {
            Ok(parsed) => self.payload(line, kind, parsed),
            Err(fault) => self.unreadable(kind, line, &fault.to_string()),
        }
    }

    /// One document that could be read.
    fn payload(&self, line: usize, kind: &str, parsed: Parsed) -> Judgement {
        let payload = Payload {
            kind: kind.to_owned(),
            value: Arc::new(parsed.value),
            notes: parsed.notes,
            step: line,
        };
        let evidence = Evidence {
            scenario: self.name.to_owned(),
            payloads: vec![payload],
            configured: self.surroundings.configured.clone(),
            now: self.surroundings.now,
            ..Evidence::default()
        };
        let mut judgement = judge(self.rulebook, self.schemas, &evidence);
        for finding in &mut judgement.findings {
            finding.step = line;
            finding.exchange = line;
        }
        judgement
    }

    /// A document that is none breaks what its kind begins with, as one of another type does.
    fn unreadable(&self, kind: &str, line: usize, why: &str) -> Judgement {
        let mut judgement = Judgement::default();
        let rule = rule_of_whole(self.rulebook, kind).and_then(|id| self.rulebook.rules.get(&id));
        let Some(rule) = rule else { return judgement };
        let finding = Finding {
            kind: "unreadable".to_owned(),
            expected: format!("a document of {kind}"),
            actual: why.to_owned(),
            message: format!("not a readable document: {why}"),
            ..self.found(rule, line)
        };
        judgement.conclude(&rule.id, Some(finding));
        judgement
    }

    /// A finding of this rule in this file, with all but what was found.
    fn found(&self, rule: &Rule, line: usize) -> Finding {
        Finding {
            rule: rule.id.clone(),
            level: rule.level.of_finding(),
            service: rule.service.clone(),
            scenario: self.name.to_owned(),
            step: line,
            exchange: line,
            ..Finding::default()
        }
    }
}

/// A document that never was a JSON text.
fn made_of(value: Value) -> Parsed {
    Parsed {
        value,
        notes: Vec::new(),
    }
}

/// All that is left of a source, behind what was read already.
fn whole(name: &str, mut start: Vec<u8>, source: &mut dyn Read) -> Result<Vec<u8>, CheckError> {
    source
        .take((WHOLE_BYTES_MAX + 1).saturating_sub(start.len() as u64))
        .read_to_end(&mut start)
        .map_err(|source| CheckError::Unreadable {
            name: name.to_owned(),
            source,
        })?;
    if start.len() as u64 > WHOLE_BYTES_MAX {
        return Err(CheckError::TooLarge {
            name: name.to_owned(),
            limit: WHOLE_BYTES_MAX,
        });
    }
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_judge::load::shared as of_specs;

    /// Pointers of what is wrong with a document.
    fn found(kind: &str, name: &str, text: &str) -> Vec<String> {
        let rulebook = of_specs();
        let kind = Kind::parse(rulebook, kind).unwrap();
        let mut checker = Checker::new(rulebook, kind, Surroundings::default());
        checker.file(name, &mut text.as_bytes()).unwrap();
        let (record, counts) = checker.finish();
        assert_eq!(counts.documents, 1);
        record.findings.into_iter().map(|f| f.pointer).collect()
    }

    #[test]
    fn the_two_formats_of_an_answer_are_judged_alike() {
        let json = |id: &str, success: &str| {
            format!(r#"{{"message":"made","user":{{"id":{id}}},"success":{success}}}"#)
        };
        let xml = |id: &str, success: &str| {
            format!(
                "<?xml version=\"1.0\"?>\n<hash><message>made</message><user><id>{id}</id></user>\
                 <success>{success}</success></hash>"
            )
        };
        for (id, success, wrong) in [
            ("7", "true", &[][..]),
            ("7.5", "true", &["/user/id"][..]),
            ("7", "7", &["/success"][..]),
        ] {
            let kind = "auth/user-create";
            assert_eq!(found(kind, "user.json", &json(id, success)), wrong);
            assert_eq!(
                found(kind, "user.xml", &xml(id, success)),
                wrong,
                "{id} {success}"
            );
        }
    }

    #[test]
    fn xml_with_one_thing_wrong_breaks_one_rule() {
        let answer = |inside: &str| format!("<hash>{inside}<success>true</success></hash>");
        for (inside, wrong) in [
            ("<message>a</message><user>7<id>7</id></user>", "/user"),
            ("<message>a</message><person><id>7</id></person>", "/user"),
            ("<message>a & b</message><user><id>7</id></user>", ""),
            (
                "<message>a</message><message>b</message><user><id>7</id></user>",
                "/message",
            ),
        ] {
            let found = found("auth/user-create", "user.xml", &answer(inside));
            assert!(found.contains(&wrong.to_owned()), "{inside}: {found:?}");
        }
    }

    #[test]
    fn only_the_service_that_answers_in_xml_is_read_as_xml() {
        assert_eq!(found("flow/flow", "flow.xml", "<flow/>"), [""]);
    }
}
