//! Judges files of one type, one after the other, and adds up their results.

use super::aside::LineAside;
use super::blocks::{Blocks, Source};
use super::document::DocumentJudge;
use super::lines::{Aside, BinaryPayload, Judged, LineJudge};
use super::payloads::{NOT_READABLE, Payloads};
use super::stream::Stream;
use super::unknown_types::FirstSeen;
use super::{CheckError, Kind, STANDARD_INPUT, SetAside, Surroundings, UnknownType};
use super::{har, lines, mistaken, sniff, wire};

use conformant_engine::Recorder;
use conformant_judge::{Judgment, Tally};
use conformant_record::{ArchiveSums, RunRecord};
use conformant_rulebook::{Rule, Rulebook};
use conformant_schema::Schemas;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek as _};
use std::sync::Arc;

/// Maximum size of a file that is read as a whole.
const WHOLE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum number of undocumented event types that are listed.
const UNKNOWN_TYPES_MAX: usize = 100;
/// Maximum number of listed findings; others are counted by rule.
pub(crate) const FINDINGS_MAX: usize = if cfg!(test) { 1_000 } else { 10_000 };
/// Judges files of one type, one after the other.
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
    hints: Vec<String>,
    types: BTreeMap<String, usize>,
    unknown_types: Vec<UnknownType>,
    aside: Option<SetAside>,
    /// Counts of files with one document a line, or with a wire header.
    sums: Option<ArchiveSums>,
}

/// Counts of judged and unlisted items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Documents or exchanges.
    pub documents: usize,
    /// Recorded requests without an operation, events of undocumented types.
    pub foreign: usize,
    /// Recorded exchanges without a response or without its body.
    pub unrecorded: usize,
    /// Invalid entries of recorded traffic, lines without an event.
    pub skipped: usize,
    /// Lines that are not documents.
    pub malformed: usize,
    /// Findings that are counted by rule but not listed, because of the limit.
    pub unlisted: usize,
    /// Files that end in the middle of a line.
    pub cut: usize,
    /// Files with at least one byte.
    pub filled: usize,
}

impl<'a> Checker<'a> {
    /// A checker for this type.
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
            hints: Vec::new(),
            types: BTreeMap::new(),
            unknown_types: Vec::new(),
            aside: None,
            sums: None,
        }
    }

    /// Sets lines with findings aside, of payloads and events.
    pub fn set_aside(&mut self, to: SetAside) {
        self.aside = Some(to);
    }

    /// Takes the receiver of lines that are set aside back, to finish it.
    pub fn take_set_aside(&mut self) -> Option<SetAside> {
        self.aside.take()
    }

    /// Judges a file: one document, or one a line if its name or its first lines indicate that.
    pub fn file(&mut self, name: &str, source: &mut (dyn Read + Send)) -> Result<(), CheckError> {
        self.source(name, Source::Stream(source))
    }

    /// Judges an open file, whose blocks each thread reads by itself.
    pub fn opened(&mut self, name: &str, file: &File) -> Result<(), CheckError> {
        self.source(name, Source::File(file))
    }

    fn source(&mut self, name: &str, mut source: Source<'_>) -> Result<(), CheckError> {
        let start = self.start(name, &mut source)?;
        let judgment = match self.kind.clone() {
            Kind::Representation(kind) => {
                let mut aside = self.aside.take();
                let payloads = Payloads::new(self.one(name), &kind);
                let judged = self.documents(name, start, source, &payloads, aside.as_mut());
                self.aside = aside;
                self.count(name, judged?)?
            }
            Kind::Events(mapping) => {
                let mut aside = self.aside.take();
                let stream = Stream::new(self.one(name), &mapping);
                let judged = self.documents(name, start, source, &stream, aside.as_mut());
                self.aside = aside;
                self.count(name, judged?)?
            }
            Kind::Token => self.tokens(name, start, source.reader(), |one, line, text| {
                one.token(line, text)
            })?,
            Kind::Qr => self.tokens(name, start, source.reader(), |one, line, text| {
                one.qr(line, text)
            })?,
            Kind::Har => self.har(name, &mut start.chain(source.reader()))?,
        };
        self.take(name, judgment);
        Ok(())
    }

    /// Reads the start of a file, and reports a format that is not read. The start of a seekable file is read again.
    fn start(&mut self, name: &str, source: &mut Source<'_>) -> Result<Vec<u8>, CheckError> {
        let mut start = Vec::new();
        let limited = source.reader().take(sniff::START_BYTES as u64);
        let mut limited = limited;
        match limited.read_to_end(&mut start) {
            Ok(_) => {}
            // The lines before the cut are judged.
            Err(error)
                if error.kind() == std::io::ErrorKind::UnexpectedEof && !start.is_empty() => {}
            Err(error) => return Err(CheckError::unreadable(name)(error)),
        }
        self.outcome.filled += usize::from(!start.is_empty());
        let by_line = lines::has_lines_by_name(name) && self.kind.has_lines();
        let payload = wire::split(&start).map_or(&start[..], |(_, payload)| payload);
        let of_text = self.kind.has_lines().then_some(payload);
        let of_text = of_text.and_then(sniff::text_format);
        let format = sniff::format(&start).or(of_text);
        let format = format.or_else(|| {
            (by_line && !sniff::is_json_or_xml(payload)).then_some("text that is not JSON")
        });
        let expected = self.kind.expected(by_line);
        if let Some(format) = format {
            return Err(CheckError::Format {
                name: name.to_owned(),
                format,
                expected,
            });
        }
        if start.trim_ascii().is_empty() && start.len() < sniff::START_BYTES && !by_line {
            return Err(CheckError::Empty {
                name: name.to_owned(),
                expected,
            });
        }
        if let Source::File(file) = source {
            let mut file: &File = file;
            file.rewind().map_err(CheckError::unreadable(name))?;
            start.clear();
        }
        Ok(start)
    }

    /// Unreadable items, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Files that look like another type than the given one.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Events by type, from streams.
    pub fn types(&self) -> &BTreeMap<String, usize> {
        &self.types
    }

    /// Undocumented types of events, in the order of files.
    pub fn unknown_types(&self) -> &[UnknownType] {
        &self.unknown_types
    }

    /// The record of all files, and the counts.
    pub fn finish(self) -> (RunRecord, Counts) {
        let kind = self.kind;
        let index = Arc::clone(&self.rulebook.index);
        let archive = self.sums.map(Into::into);
        let mut record = self
            .recorder
            .finish_judged(|rule: &Rule| kind.is_of(&index, &rule.service));
        if kind == Kind::Har {
            record.summary.exchanges = self.outcome.documents;
        }
        record.archive = archive;
        (record, self.outcome)
    }

    /// Judges tokens, one a line.
    fn tokens(
        &mut self,
        name: &str,
        start: Vec<u8>,
        source: &mut dyn Read,
        one: impl Fn(&DocumentJudge<'_>, usize, &[u8]) -> Judgment,
    ) -> Result<Judgment, CheckError> {
        let bytes = whole(name, start, source)?;
        let is_document = |bytes| serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
        if bytes.trim_ascii().starts_with(b"{") && is_document(&bytes) {
            return Err(CheckError::Document {
                name: name.to_owned(),
                expected: self.kind.expected(false),
            });
        }
        let lines: Vec<(usize, &[u8])> = bytes
            .split(|b| *b == b'\n')
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim_ascii()))
            .filter(|(_, line)| !line.is_empty())
            .collect();
        let mut judgment = Judgment::default();
        for (number, line) in &lines {
            let number = if lines.len() > 1 { *number } else { 0 };
            judgment.merge(one(&self.one(name), number, line));
        }
        self.outcome.documents += lines.len();
        Ok(judgment)
    }

    /// Judges documents, one a line or a whole file.
    fn documents(
        &self,
        name: &str,
        mut start: Vec<u8>,
        mut source: Source<'_>,
        lines: &impl LineJudge,
        aside: Option<&mut SetAside>,
    ) -> Result<Documents, CheckError> {
        let unreadable = CheckError::unreadable(name);
        let by_line = lines::has_lines(name, &mut start, source.reader()).map_err(&unreadable)?;
        if !by_line {
            let bytes = whole(name, start, source.reader())?;
            if let (Kind::Representation(kind), Some(count)) = (&self.kind, list_length(&bytes)) {
                // Each item is a resource, not a list page.
                return Err(several(name, (count, true), kind.trim_end_matches("[]")));
            }
            let judged = one_document(name, &bytes, lines, aside);
            if let (Err(CheckError::Malformed { .. }), Kind::Representation(kind)) =
                (&judged, &self.kind)
                && let Some(count) = documents_in_a_row(&bytes)
            {
                return Err(several(name, (count, false), kind));
            }
            return judged;
        }
        let keep = FINDINGS_MAX.saturating_sub(self.kept);
        let blocks = Blocks::of(source, start);
        let aside = aside.map(|to| Aside { file: name, to });
        let judged = lines::judge(lines, blocks, self.surroundings.jobs, keep, aside);
        let judged = judged.map_err(|error| match error {
            lines::LinesError::Read(source) => unreadable(source),
            lines::LinesError::Aside(error) => CheckError::NotSetAside(error),
        })?;
        Ok(Documents {
            is_archive: true,
            judged,
        })
    }

    /// Adds the results of lines.
    fn count(&mut self, name: &str, documents: Documents) -> Result<Judgment, CheckError> {
        let Documents { is_archive, judged } = documents;
        if let (Kind::Representation(kind), Some(first)) = (&self.kind, &judged.rejected)
            && let Some(kind) = mistaken::other_kind(self.rulebook, kind, first)
        {
            let kind = conformant_base::text::shell_quoted(&kind);
            let document = match is_archive {
                true => format!("the first document with a defect in {name}"),
                false => name.to_owned(),
            };
            self.hints.push(format!(
                "{document} looks like a document of another type: `--as {kind}` judges it as one"
            ));
        }
        if let Some(BinaryPayload { line, schema_id }) = judged.binary {
            return Err(CheckError::Binary {
                name: name.to_owned(),
                place: format!(", line {line}"),
                id: schema_id.to_string(),
            });
        }
        self.outcome.documents += judged.documents;
        self.outcome.foreign += judged.foreign.events;
        self.outcome.malformed += judged.malformed;
        self.outcome.skipped += judged.sums.unreadable - judged.malformed;
        for (name_of_type, seen) in judged.foreign.types {
            self.add_unknown_type(name, &name_of_type, seen);
        }
        self.outcome.cut += usize::from(judged.cut.is_some());
        let notes = judged.notes.iter().chain(&judged.cut);
        self.notes.extend(notes.map(|why| format!("{name}: {why}")));
        for (event, count) in judged.types {
            *self.types.entry(event).or_default() += count;
        }
        if is_archive || judged.sums.has_schema_ids() {
            self.sums.get_or_insert_default().merge(judged.sums);
        }
        Ok(judged.judgment)
    }

    /// Adds events of an undocumented type of a file.
    fn add_unknown_type(&mut self, file: &str, name: &str, seen: FirstSeen) {
        if let Some(known) = self.unknown_types.iter_mut().find(|t| t.name == name) {
            known.events += seen.events;
        } else if self.unknown_types.len() < UNKNOWN_TYPES_MAX {
            let unknown = UnknownType::new(self.rulebook, file, name, seen);
            self.unknown_types.push(unknown);
        }
    }

    fn har(&mut self, name: &str, source: &mut dyn Read) -> Result<Judgment, CheckError> {
        let judged =
            har::judge_file(&self.one(name), source).map_err(CheckError::unreadable(name))?;
        self.outcome.documents += judged.exchanges;
        self.outcome.foreign += judged.foreign;
        self.outcome.unrecorded += judged.unrecorded;
        self.outcome.skipped += judged.unreadable_count;
        self.notes
            .extend(judged.unreadable.iter().map(|why| format!("{name}: {why}")));
        if judged.foreign > 0 {
            const KINDS_SHOWN: usize = 3;
            let mut kinds: Vec<(String, usize)> = judged.foreign_kinds.into_iter().collect();
            kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let kinds: Vec<String> = kinds
                .iter()
                .take(KINDS_SHOWN)
                .map(|(kind, count)| format!("{kind} ({count})"))
                .collect();
            self.notes.push(format!(
                "{name}: {} of {} entries are not judged, because no documented operation has their address (responses may link to \
                 it): {}",
                judged.foreign,
                judged.foreign + judged.exchanges + judged.unreadable_count,
                kinds.join(", ")
            ));
        }
        Ok(judged.judgment)
    }

    fn one<'b>(&'b self, name: &'b str) -> DocumentJudge<'b> {
        DocumentJudge {
            rulebook: self.rulebook,
            schemas: &self.schemas,
            surroundings: &self.surroundings,
            name,
        }
    }

    /// Adds the result of a file, up to the limit of findings.
    fn take(&mut self, name: &str, mut judgment: Judgment) {
        let counted: usize = judgment.tallies.values().map(Tally::findings).sum();
        judgment
            .findings
            .truncate(FINDINGS_MAX.saturating_sub(self.kept));
        self.kept += judgment.findings.len();
        self.outcome.unlisted += counted - judgment.findings.len();
        self.recorder.add_judgment(name, judgment);
    }
}

/// Results of a file.
struct Documents {
    /// Whether it has one document per line.
    is_archive: bool,
    judged: Judged,
}

/// The error about documents that have to be judged one by one: how many, and whether they are the items of a list.
fn several(name: &str, (count, is_list): (usize, bool), kind: &str) -> CheckError {
    CheckError::Several {
        name: name.to_owned(),
        count,
        is_list,
        file: match name {
            STANDARD_INPUT => String::new(),
            file => format!(" {}", conformant_judge::shell_word(file)),
        },
        kind: kind.to_owned(),
    }
}

/// The number of objects that follow each other, such as indented ones; `None` for one.
fn documents_in_a_row(bytes: &[u8]) -> Option<usize> {
    let all = serde_json::Deserializer::from_slice(bytes).into_iter::<Map<String, Value>>();
    let count = all.map(|one| one.map(drop)).collect::<Result<Vec<()>, _>>();
    let count = count.ok()?.len();
    (count > 1).then_some(count)
}

/// The number of documents in a list that contains only objects.
fn list_length(bytes: &[u8]) -> Option<usize> {
    let is_list = bytes.trim_ascii_start().starts_with(b"[");
    let items = is_list.then(|| serde_json::from_slice::<Vec<Map<String, Value>>>(bytes));
    let count = items?.ok()?.len();
    (count > 0).then_some(count)
}

/// Judges a file with one document.
fn one_document(
    name: &str,
    bytes: &[u8],
    lines: &impl LineJudge,
    aside: Option<&mut SetAside>,
) -> Result<Documents, CheckError> {
    let header = wire::split(bytes);
    let payload = header.map_or(bytes, |(_, payload)| payload);
    let schema_id = header.map(|(id, _)| id);
    if let Some(id) = schema_id.filter(|_| !wire::is_json(payload)) {
        return Err(CheckError::Binary {
            name: name.to_owned(),
            place: String::new(),
            id: id.to_string(),
        });
    }
    let mut judged = lines.full(0, payload);
    // The events of an array are numbered, so that such a note is about the whole file.
    if let Some(note) = judged.notes.iter().find(|note| note.line == 0) {
        let why = &note.why;
        return Err(CheckError::Malformed {
            name: name.to_owned(),
            why: why.strip_prefix(NOT_READABLE).unwrap_or(why).to_owned(),
        });
    }
    if let Some(id) = schema_id {
        judged.sums.add_schema_id(id, 1);
    }
    if let Some(to) = aside {
        let reasons = judged.reasons(to.level());
        let line = LineAside {
            line: 0,
            schema_id,
            bytes: payload.to_vec(),
            reasons,
        };
        if !line.reasons.is_empty() {
            to.write(name, &line).map_err(CheckError::NotSetAside)?;
        }
    }
    Ok(Documents {
        is_archive: false,
        judged,
    })
}

/// The rest of a source.
fn whole(name: &str, mut start: Vec<u8>, source: &mut dyn Read) -> Result<Vec<u8>, CheckError> {
    source
        .take((WHOLE_BYTES_MAX + 1).saturating_sub(start.len() as u64))
        .read_to_end(&mut start)
        .map_err(CheckError::unreadable(name))?;
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

    /// Why a file is not judged.
    fn error(kind: &str, name: &str, text: &str) -> String {
        let kind = Kind::parse(of_specs(), kind).unwrap();
        let mut checker = Checker::new(of_specs(), kind, Surroundings::default());
        let error = checker.file(name, &mut text.as_bytes()).unwrap_err();
        assert!(error.is_usage());
        error.to_string()
    }

    #[test]
    fn documents_of_another_type_have_a_hint_that_names_it() {
        let execution = r#"{"sid":"FN0","account_sid":"AC0"}"#;
        let hints = |name: &str, text: &str| {
            let kind = Kind::parse(of_specs(), "flow/flow[]").unwrap();
            let mut checker = Checker::new(of_specs(), kind, Surroundings::default());
            checker.file(name, &mut text.as_bytes()).unwrap();
            checker.hints().to_vec()
        };
        let rest = "looks like a document of another type: `--as flow/flow` judges it as one";
        assert_eq!(hints("one.json", execution), [format!("one.json {rest}")]);
        let lines = format!("{execution}\n{execution}\n");
        let of_lines = format!("the first document with a defect in many.ndjson {rest}");
        assert_eq!(hints("many.ndjson", &lines), [of_lines]);
    }

    /// Pointers of the findings in a document.
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
    fn several_documents_and_tables_are_errors_that_state_how_to_judge_each() {
        let error = error("flow/flow", "my list.json", " [{\"sid\":1},\n{}]");
        let expected = "my list.json is a list of 2 documents, expected one document; judge each of them: \
                        jq -c '.[]' 'my list.json' | conformant check - --as flow/flow";
        assert_eq!(error, expected);
        let of_page = self::error("flow/flow[]", "my list.json", "[{},{}]");
        assert_eq!(of_page, expected);
        let of_row = self::error("flow/flow", "row.json", "{\n}\n{\n\"sid\": 1\n}");
        assert_eq!(
            of_row,
            "row.json is 2 documents, expected one document; judge each of them: \
             jq -c . 'row.json' | conformant check - --as flow/flow"
        );
        let csv = self::error("flow/flow", "x.csv", "a,b\n1,2\n");
        assert!(
            csv.starts_with("x.csv is CSV, expected a JSON document; "),
            "{csv}"
        );
        let cut = self::error("flow/flow", "row.json", "{\n}\n{\n");
        assert!(cut.contains("not JSON: "), "{cut}");
        // The answer of a service that should be an object.
        assert_eq!(found("flow/flow", "answer.json", "[]"), [""]);
    }

    #[test]
    fn xml_with_one_error_breaks_one_rule() {
        let answer = |inside: &str| format!("<hash>{inside}<success>true</success></hash>");
        for (inside, wrong) in [
            ("<message>a</message><user>7<id>7</id></user>", "/user"),
            ("<message>a</message><person><id>7</id></person>", "/user"),
            (
                "<message>a</message><message>b</message><user><id>7</id></user>",
                "/message",
            ),
        ] {
            let found = found("auth/user-create", "user.xml", &answer(inside));
            assert!(found.contains(&wrong.to_owned()), "{inside}: {found:?}");
        }
        let text = answer("<message>a & b</message><user><id>7</id></user>");
        let error = error("auth/user-create", "user.xml", &text);
        assert!(
            error.starts_with("user.xml is not a readable document: XML: "),
            "{error}"
        );
    }

    #[test]
    fn only_the_service_that_answers_in_xml_is_read_as_xml() {
        let error = error("flow/flow", "flow.xml", "<flow/>");
        assert!(
            error
                .contains("flow.xml is not a readable document: it begins like XML, expected JSON"),
            "{error}"
        );
    }
}
