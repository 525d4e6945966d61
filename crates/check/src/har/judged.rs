//! Judges the entries of a recording while it is read; those without an operation are counted.

use super::entry::{Entry, EntryError};
use super::reading::read_entries;
use crate::document::DocumentJudge;
use crate::traffic::{History, Observed, Operations};
use conformant_base::http::{Cause, Request};
use conformant_judge::Judgment;
use conformant_judge::clients::Completeness;
use conformant_judge::evidence::{Exchange, HookCall, Outcome};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

/// Maximum number of unreadable entries in the notes.
const UNREADABLE_SHOWN_MAX: usize = 20;

/// Maximum number of kinds of requests without an operation that are counted apart.
const FOREIGN_KINDS_MAX: usize = 100;

/// Results of a file.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    pub(crate) judgment: Judgment,
    /// Judged entries.
    pub(crate) exchanges: usize,
    /// Judged entries whose response or body was not recorded, if responses are judged.
    pub(crate) unrecorded: usize,
    /// Entries without an operation.
    pub(crate) foreign: usize,
    /// Their number by method and path, with identifiers left out.
    pub(crate) foreign_kinds: BTreeMap<String, usize>,
    /// The first invalid entries, as `entry N: why`.
    pub(crate) unreadable: Vec<String>,
    /// Number of invalid entries.
    pub(crate) unreadable_count: usize,
}

/// Judges every entry.
pub(crate) fn judge_file(one: &DocumentJudge<'_>, source: &mut dyn Read) -> io::Result<Judged> {
    let mut file = File {
        one,
        operations: Operations::of(one.rulebook, one.surroundings),
        judged: Judged::default(),
        entry: 0,
        history: History::default(),
    };
    let outcome = read_entries(source, &mut |entry| file.take(entry));
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

/// A request without the identifiers in its path: segments of which a half or more are digits, or that are longer than a word.
fn kind_of(request: &str) -> String {
    const WORD_MAX: usize = 24;
    let is_identifier = |segment: &&str| {
        let digits = segment.bytes().filter(u8::is_ascii_digit).count();
        segment.len() > WORD_MAX || (segment.len() > 2 && digits * 2 >= segment.len())
    };
    let segments = request.split('/').map(|segment| match &segment {
        segment if is_identifier(segment) => "…",
        segment => segment,
    });
    segments.collect::<Vec<_>>().join("/")
}

/// State while a file is read.
struct File<'a> {
    one: &'a DocumentJudge<'a>,
    operations: Operations<'a>,
    judged: Judged,
    /// Number of the last entry, from 1.
    entry: usize,
    history: History,
}

impl File<'_> {
    /// Adds the next entry.
    fn take(&mut self, raw: &RawValue) {
        self.entry += 1;
        let entry: Entry = match serde_json::from_str(raw.get()) {
            Ok(entry) => entry,
            Err(error) => return self.unreadable(&error.into()),
        };
        let request = entry.request.without_query();
        match self.exchange(entry) {
            Ok(Some(Taken::Hook(call))) => self.history.take_hook(call),
            Ok(None) => {
                self.judged.foreign += 1;
                let kinds = &mut self.judged.foreign_kinds;
                if let Some(kind) = request.as_deref().map(kind_of)
                    && (kinds.len() < FOREIGN_KINDS_MAX || kinds.contains_key(&kind))
                {
                    *kinds.entry(kind).or_default() += 1;
                }
            }
            Ok(Some(Taken::Exchange(exchange))) => {
                self.judged.exchanges += 1;
                let exchange = *exchange;
                let is_unrecorded = self.one.surroundings.sides.has_responses()
                    && matches!(exchange.outcome, Outcome::Fault { .. });
                self.judged.unrecorded += usize::from(is_unrecorded);
                let client = self.one.client(&exchange, Completeness::Cleaned);
                self.judged.judgment.merge(client);
                if self.history.take(exchange) {
                    self.close();
                }
            }
            Err(why) => self.unreadable(&why),
        }
    }

    fn unreadable(&mut self, why: &EntryError) {
        self.judged.unreadable_count += 1;
        if self.judged.unreadable.len() < UNREADABLE_SHOWN_MAX {
            self.judged
                .unreadable
                .push(format!("entry {}: {why}", self.entry));
        }
    }

    fn close(&mut self) {
        let judgment = self.history.close(self.one);
        self.judged.judgment.merge(judgment);
    }

    fn exchange(&self, entry: Entry) -> Result<Option<Taken>, EntryError> {
        let span = entry.span();
        let (origin, request) = entry.request.into_request()?;
        let hook = self.hook(&origin, &request);
        if let Some(name) = hook {
            let answer = entry.response.into_response()?;
            return Ok(Some(Taken::Hook(HookCall {
                step: self.entry,
                name: name.to_owned(),
                arguments: serde_json::from_slice(&request.body).unwrap_or_default(),
                result: match answer {
                    Ok(response) if (200..300).contains(&response.status) => Ok(Arc::new(
                        serde_json::from_slice(&response.body).unwrap_or_default(),
                    )),
                    Ok(response) => Err(format!("status {}", response.status)),
                    Err(why) => Err(why.to_string()),
                },
                span,
                race: None,
            })));
        }
        let Some(found) = self.operations.find(&origin, &request) else {
            return Ok(None);
        };
        let answer = entry.response.into_response()?;
        Ok(Some(Taken::Exchange(Box::new(self.one.exchange(
            found,
            Observed {
                number: self.entry,
                request,
                answer: answer.map_err(|why| (Cause::NotRecorded, why.to_string())),
                span,
            },
        )))))
    }

    /// The hook that a request calls.
    fn hook(&self, origin: &str, request: &Request) -> Option<&str> {
        let url = format!("{origin}{}", request.target);
        let name = self.one.surroundings.hooks.get(&url)?;
        (request.method == "POST").then_some(name)
    }
}

/// What an entry is.
enum Taken {
    /// A request to a service.
    Exchange(Box<Exchange>),
    /// An action of a person or device.
    Hook(HookCall),
}
