//! A run's evidence as a file: written story by story while the run goes on, and judged again by any
//! later rulebook.
//!
//! Lines of JSON, packed by gzip, each a member of its own, so that a file that was cut holds whole
//! stories: first what the run was ([`Head`]), then a line for each story ([`Played`]), last how it
//! ended ([`Tail`]). Secrets are taken out of every text before it is packed. Bodies stand as they
//! came, and are read again by the rulebook of the day.

use super::plan::{self, Selection};
use super::record::{Concluded, Recorder};
use super::stop::Stop;
use super::{Planned, body, concluded_of};
use crate::files;
use crate::judge::evidence::{BODY_EXCERPT_BYTES, Evidence, Outcome};
use crate::judge::{self, Judgement};
use crate::redact::{REDACTED, Redactor, is_secret_header, is_secret_parameter};
use crate::rulebook::Rulebook;
use crate::schema::Schemas;
use crate::verdict::RunRecord;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, crypto};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// What such a file calls itself.
const FORMAT: &str = "conformant-evidence";
const FORMAT_VERSION: u32 = 2;
/// How every file packed by gzip begins.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The longest line that is read: all answers of a story (10 MiB), with what was made of them.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// Stands for the application's key: whether a token is signed with it is judged.
const KEY_STAND_IN: &str = "[stands for the key]";
/// How the base64 of every JSON Web Token begins.
const JWT_START: &str = "eyJ";
/// Why a rule is not judged again where a secret stood in an answer.
const WITHHELD: &str = "an answer held a secret, which is not kept";

/// What the run was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// That it is such a file.
    pub format: String,
    /// By which form.
    pub format_version: u32,
    /// The program that wrote it.
    pub tool_version: String,
    /// The rulebook of the run.
    pub rulebook: String,
    /// What the run drew its names from.
    pub seed: u64,
    /// Base URL by service.
    pub targets: BTreeMap<String, String>,
    /// Services whose scenarios were selected.
    pub services: BTreeSet<String>,
    /// Scenarios that were selected.
    pub scenarios: usize,
    /// When the run began; nothing against the reference, where the same seed gives the same bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<String>,
}

/// How the run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// Stories that stand in front of this.
    pub stories: usize,
    /// Whether all was run.
    pub complete: bool,
    /// A service that let nobody in, for which the run was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_by: Option<String>,
}

/// One story with what the run knew of it beside what was observed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Played {
    /// All that was observed. Documents of answers are left out where the answer is whole.
    pub evidence: Evidence,
    /// Why it went no further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Why it says nothing at all: somebody else disturbed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
    /// A service that refused it, and had let in nobody yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turned_away: Option<String>,
    /// How long it took.
    pub seconds: f64,
    /// Statements about the document of their exchange: it is not written twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of_answers: Vec<usize>,
    /// Rules that the run found broken in it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub broken: BTreeSet<String>,
}

/// A line behind the first.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Story(Box<Played>),
    End(Tail),
}

/// Writes stories in the plan's order, whatever the order they end in.
pub struct Keeper {
    redactor: Redactor,
    state: Mutex<State>,
}

struct State {
    file: Box<dyn Write + Send>,
    /// Stories that ended before one in front of them.
    early: BTreeMap<usize, Vec<u8>>,
    due: usize,
    stories: usize,
    failure: Option<io::Error>,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Head {
    /// Of a run that is about to begin.
    pub fn of(rulebook: &Rulebook, planned: &[Planned<'_>], seed: u64) -> Self {
        Self {
            format: FORMAT.to_owned(),
            format_version: FORMAT_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            rulebook: rulebook.digest().to_owned(),
            seed,
            targets: BTreeMap::new(),
            services: planned.iter().map(|p| p.service.name.clone()).collect(),
            scenarios: planned.len(),
            begun: None,
        }
    }
}

impl Keeper {
    /// Begins a file; that it cannot be written is told at its end.
    pub fn begin(file: Box<dyn Write + Send>, redactor: Redactor, head: &Head) -> Arc<Self> {
        let state = State {
            file,
            early: BTreeMap::new(),
            due: 0,
            stories: 0,
            failure: None,
        };
        let keeper = Self {
            redactor,
            state: Mutex::new(state),
        };
        let packed = keeper.packed(head);
        keeper.state().write(packed);
        Arc::new(keeper)
    }

    /// Keeps the story that stands there in the plan; packed at once, so that those that wait for
    /// their turn are small.
    pub(super) fn keep(&self, index: usize, mut played: Played) {
        played.part_documents();
        let application = played
            .evidence
            .configured
            .pointer("/auth/application/api_key");
        let key = application.and_then(Value::as_str).map(str::to_owned);
        let packed = self.packed_signed(&Line::Story(Box::new(played)), key.as_deref());
        let mut state = self.state();
        match packed {
            Ok(packed) => state.early.insert(index, packed),
            failed @ Err(_) => {
                state.write(failed);
                state.early.insert(index, Vec::new())
            }
        };
        state.settle(false);
    }

    /// Notes that the story there left nothing.
    pub(super) fn pass_over(&self, index: usize) {
        let mut state = self.state();
        state.early.insert(index, Vec::new());
        state.settle(false);
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first thing that kept it from being written.
    pub fn end(&self, complete: bool, denied_by: Option<String>) -> io::Result<()> {
        let mut state = self.state();
        state.settle(true);
        let tail = Tail {
            stories: state.stories,
            complete,
            denied_by,
        };
        let packed = self.packed(&Line::End(tail));
        state.write(packed);
        match state.failure.take() {
            Some(failure) => Err(failure),
            None => state.file.flush(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn packed(&self, line: &impl Serialize) -> io::Result<Vec<u8>> {
        self.packed_signed(line, None)
    }

    fn packed_signed(&self, line: &impl Serialize, key: Option<&str>) -> io::Result<Vec<u8>> {
        let text = serde_json::to_string(line).map_err(io::Error::other)?;
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(redacted(&text, &self.redactor, key).as_bytes())?;
        packer.write_all(b"\n")?;
        packer.finish()
    }
}

impl State {
    /// Writes the stories whose turn it is; at the end all, for those that never ended have no turn.
    fn settle(&mut self, at_end: bool) {
        while let Some(first) = self.early.first_entry() {
            if *first.key() != self.due && !at_end {
                return;
            }
            self.due = *first.key() + 1;
            let packed = first.remove();
            if !packed.is_empty() {
                self.stories += 1;
                self.write(Ok(packed));
            }
        }
    }

    fn write(&mut self, packed: io::Result<Vec<u8>>) {
        let written = packed.and_then(|packed| self.file.write_all(&packed));
        if let Err(failure) = written {
            self.failure.get_or_insert(failure);
        }
    }
}

/// JSON with the secrets taken out of its texts: it stays JSON.
fn redacted(json: &str, redactor: &Redactor, key: Option<&str>) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    // What a text is called by stands in front of it.
    let mut name = String::new();
    while let Some(start) = rest.find('"') {
        let length = literal_length(&rest[start..]);
        let (before, literal) = (&rest[..start], &rest[start..start + length]);
        rest = &rest[start + length..];
        // As the value of a member, or behind a header field's name in a list.
        let is_secret = match before {
            ":" => is_secret_parameter(&name) || is_secret_header(&name),
            "," => is_secret_header(&name),
            _ => false,
        };
        out.push_str(before);
        let plain = &literal[1..literal.len() - 1];
        let has_escapes = plain.contains('\\');
        let text = match has_escapes {
            true => serde_json::from_str(literal).unwrap_or_else(|_| plain.to_owned()),
            false => plain.to_owned(),
        };
        let kept = match text.contains(JWT_START) {
            true => without_secrets(&text, redactor, key).into(),
            false if is_secret && Some(text.as_str()) == key => KEY_STAND_IN.into(),
            // What a configuration file says holds the name of a variable alone.
            false if is_secret && !text.contains("${") => REDACTED.into(),
            false => redactor.redact(&text),
        };
        if kept == text {
            out.push_str(literal);
        } else {
            out.push_str(&Value::from(kept.as_ref()).to_string());
        }
        name = text;
    }
    out.push_str(rest);
    out
}

/// A text without its secrets. Of a JSON Web Token what it says is left, for that is judged; one that was signed with the
/// application's key is signed with what stands for that key.
fn without_secrets(text: &str, redactor: &Redactor, key: Option<&str>) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(JWT_START) {
        let length = rest[start..].find(|c| !is_part(c));
        let end = length.map_or(rest.len(), |length| start + length);
        let (before, token) = (&rest[..start], &rest[start..end]);
        rest = &rest[end..];
        out.push_str(&redactor.redact(before));
        match token.rsplit_once('.') {
            Some((message, signature)) => {
                out.push_str(&redactor.redact(message));
                out.push('.');
                out.push_str(&signature_kept(message, signature, key));
            }
            None => out.push_str(&redactor.redact(token)),
        }
    }
    out.push_str(&redactor.redact(rest));
    out
}

fn signature_kept(message: &str, signature: &str, key: Option<&str>) -> String {
    let own = key.map(|key| DecodingKey::from_secret(key.as_bytes()));
    let is_own = own.is_some_and(|own| {
        crypto::verify(signature, message.as_bytes(), &own, Algorithm::HS256).unwrap_or_default()
    });
    let stand_in = EncodingKey::from_secret(KEY_STAND_IN.as_bytes());
    is_own
        .then(|| crypto::sign(message.as_bytes(), &stand_in, Algorithm::HS256).ok())
        .flatten()
        .unwrap_or_else(|| REDACTED.to_owned())
}

/// The length of the JSON text that begins there, quotes included.
fn literal_length(json: &str) -> usize {
    let bytes = json.as_bytes();
    let mut at = 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at.min(bytes.len())..]) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

impl Played {
    /// Takes the documents away that exchanges hold already.
    fn part_documents(&mut self) {
        let evidence = &mut self.evidence;
        for (index, statement) in evidence.statements.iter_mut().enumerate() {
            let exchange = statement.exchange.map(|at| &evidence.exchanges[at]);
            let document = exchange.and_then(|exchange| exchange.document());
            if document.is_some_and(|document| Arc::ptr_eq(document, &statement.result)) {
                statement.result = Arc::default();
                self.of_answers.push(index);
            }
        }
    }

    /// Reads the answers by this rulebook.
    fn read_answers(&mut self, rulebook: &Rulebook) {
        let evidence = &mut self.evidence;
        for exchange in &mut evidence.exchanges {
            let Some(operation) = rulebook.operation(&exchange.service, &exchange.operation) else {
                continue;
            };
            if let Outcome::Answered { response, body } = &mut exchange.outcome
                && response.body.len() < BODY_EXCERPT_BYTES
            {
                let kind = operation.response.as_ref();
                let kind = kind.and_then(|kind| rulebook.kinds.get(kind));
                *body = body::receive(response, operation, kind);
            }
        }
        for &index in &self.of_answers {
            let Some(statement) = evidence.statements.get_mut(index) else {
                continue;
            };
            let exchange = statement.exchange.and_then(|at| evidence.exchanges.get(at));
            if let Some(document) = exchange.and_then(|exchange| exchange.document()) {
                statement.result = Arc::clone(document);
            }
        }
    }

    /// Whether something was taken out of what the target sent.
    fn is_withheld(&self) -> bool {
        let holds = |text: &str| text.contains(REDACTED);
        let answers = self.evidence.exchanges.iter();
        let answers = answers.filter_map(|exchange| match &exchange.outcome {
            Outcome::Answered { response, .. } => Some(response),
            Outcome::Fault { .. } => None,
        });
        let mut payloads = self.evidence.payloads.iter();
        let told = |(name, value): (&str, &str)| !is_secret_header(name) && holds(value);
        answers.into_iter().any(|response| {
            response.headers.iter().any(told)
                || memchr::memmem::find(&response.body, REDACTED.as_bytes()).is_some()
        }) || payloads.any(|payload| holds(&payload.value.to_string()))
    }

    /// What this rulebook concludes of it; `planned` is the scenario where there is one still.
    pub fn judge(
        mut self,
        rulebook: &Rulebook,
        schemas: &Schemas,
        planned: Option<&Planned<'_>>,
    ) -> Concluded {
        self.read_answers(rulebook);
        let mut judgement = judge::judge(rulebook, schemas, &self.evidence);
        if self.is_withheld() {
            withhold(&mut judgement, &self.broken);
        }
        if let Some(why) = &self.void {
            judgement = judgement.void(why);
        }
        let concluded = concluded_of(
            rulebook,
            planned.map(|planned| &planned.scenario),
            &self.evidence,
            (judgement, self.stop),
            self.seconds,
        );
        Concluded {
            turned_away: self.turned_away,
            ..concluded
        }
    }
}

/// What differs from the run may differ because a secret is missing: then it accuses and acquits nobody.
fn withhold(judgement: &mut Judgement, broken: &BTreeSet<String>) {
    let found: BTreeSet<String> = judgement.findings.iter().map(|f| f.rule.clone()).collect();
    for rule in found.symmetric_difference(broken) {
        judgement.withdraw(rule, WITHHELD);
    }
}

/// Why evidence is not read.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// Nothing of it: no such file, or one of another form.
    #[error("no evidence of a run: {0}")]
    Foreign(String),
    /// A later program wrote it.
    #[error("written in form {0} of evidence, and this program knows {FORMAT_VERSION}")]
    Newer(u32),
}

/// A file of evidence that is being read.
pub struct Reader<R: Read> {
    lines: BufReader<MultiGzDecoder<BufReader<R>>>,
    line: Vec<u8>,
    /// What the run was.
    pub head: Head,
    /// How it ended; nothing until its end was read.
    pub tail: Option<Tail>,
    /// Why nothing further can be read, where it was cut or damaged.
    pub cut: Option<String>,
}

impl<R: Read> fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

impl<R: Read> Reader<R> {
    /// Reads what the run was.
    ///
    /// # Errors
    /// For anything but evidence of a form that is known.
    pub fn open(file: R) -> Result<Self, KeptError> {
        /// What any form says of itself.
        #[derive(Deserialize)]
        struct Form {
            format: String,
            format_version: u32,
        }
        let mut lines = BufReader::new(MultiGzDecoder::new(BufReader::new(file)));
        let mut line = Vec::new();
        let foreign = |why: &dyn fmt::Display| KeptError::Foreign(why.to_string());
        files::read_line(&mut lines, &mut line, LINE_BYTES_MAX).map_err(|e| foreign(&e))?;
        let form: Form = serde_json::from_slice(&line).map_err(|e| foreign(&e))?;
        if form.format != FORMAT {
            return Err(foreign(&format!("it calls itself {}", form.format)));
        }
        if form.format_version > FORMAT_VERSION {
            return Err(KeptError::Newer(form.format_version));
        }
        let head = serde_json::from_slice(&line).map_err(|e| foreign(&e))?;
        Ok(Self {
            lines,
            line,
            head,
            tail: None,
            cut: None,
        })
    }

    /// The next story; nothing behind the last whole one.
    fn read(&mut self) -> Result<Option<Played>, String> {
        let more = files::read_line(&mut self.lines, &mut self.line, LINE_BYTES_MAX);
        if !more.map_err(|error| error.to_string())? {
            return Err("its end is missing".to_owned());
        }
        match serde_json::from_slice(&self.line).map_err(|error| error.to_string())? {
            Line::Story(played) => Ok(Some(*played)),
            Line::End(tail) => {
                // Behind it the packing ends, too: only then its sum was looked at.
                let behind = files::read_line(&mut self.lines, &mut self.line, LINE_BYTES_MAX);
                if behind.map_err(|error| error.to_string())? {
                    return Err("something stands behind its end".to_owned());
                }
                self.tail = Some(tail);
                Ok(None)
            }
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Played;

    fn next(&mut self) -> Option<Played> {
        if self.tail.is_some() || self.cut.is_some() {
            return None;
        }
        self.read().unwrap_or_else(|why| {
            self.cut = Some(why);
            None
        })
    }
}

/// A run judged again from its evidence.
#[derive(Clone, Debug)]
pub struct JudgedAgain {
    /// The record as it stands now.
    pub record: RunRecord,
    /// A target or a hook got in the way of the run.
    pub trouble: bool,
    /// What there is to say beside, a sentence each.
    pub notes: Vec<String>,
}

/// Judges every whole story of a file by this rulebook; where the file was cut, the record is
/// incomplete and a note says so.
pub fn judge_again<R: Read>(reader: &mut Reader<R>, rulebook: &Rulebook) -> JudgedAgain {
    let schemas = Schemas::default();
    let planned = plan::plan(rulebook, &Selection::default(), None);
    let planned: BTreeMap<&str, &Planned<'_>> = planned
        .iter()
        .map(|p| (p.scenario.id.as_str(), p))
        .collect();
    let head = reader.head.clone();
    let mut recorder = Recorder::new(rulebook, head.targets, head.seed);
    let (mut trouble, mut stories) = (false, 0);
    for played in reader.by_ref() {
        let planned = planned.get(played.evidence.scenario.as_str()).copied();
        let concluded = played.judge(rulebook, &schemas, planned);
        trouble |= concluded.trouble;
        stories += 1;
        recorder.add(concluded);
    }
    let mut notes = Vec::new();
    if let Some(why) = &reader.cut {
        notes.push(format!(
            "the evidence is cut behind {stories} of {} stories ({why}): these are judged, the others are not there",
            head.scenarios
        ));
    }
    if head.rulebook != rulebook.digest() {
        notes.push(
            "the run was played by another rulebook: what was sent is as it was then, what is concluded of it is by this one"
                .to_owned(),
        );
    }
    let tail = reader.tail.take();
    if let Some(service) = tail.as_ref().and_then(|tail| tail.denied_by.as_ref()) {
        recorder.turned_away_by(service);
    }
    let complete = tail.is_some_and(|tail| tail.complete && tail.stories == stories);
    let record = recorder.finish(|rule| head.services.contains(&rule.service), complete);
    JudgedAgain {
        record,
        trouble,
        notes,
    }
}

/// Whether a file begins as those that are packed.
pub fn is_packed(file: &mut impl BufRead) -> io::Result<bool> {
    Ok(file.fill_buf()?.starts_with(&GZIP_MAGIC))
}
