//! Writes evidence during a run, one scenario at a time, in the plan's order.

use super::format::{EvidenceRecord, Head, Line, Tail};
use super::secrets::redacted;
use crate::RunEnd;
use conformant_base::parallel::lock;
use conformant_base::redact::Redactor;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// Writes scenarios in the plan's order, whatever the order they end in.
pub struct EvidenceWriter {
    redactor: Redactor,
    state: Mutex<State>,
}

impl fmt::Debug for EvidenceWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvidenceWriter").finish_non_exhaustive()
    }
}

impl EvidenceWriter {
    /// Begins a file. A write error is returned by [`Self::end`].
    pub fn begin(file: Box<dyn Write + Send>, redactor: Redactor, head: &Head) -> Arc<Self> {
        let state = State {
            file,
            early: BTreeMap::new(),
            next: 0,
            scenarios: 0,
            failure: None,
        };
        let writer = Self {
            redactor,
            state: Mutex::new(state),
        };
        let packed = writer.packed(head, None);
        lock(&writer.state).write(packed);
        Arc::new(writer)
    }

    /// Adds the scenario with this index. It is compressed at once, so that waiting scenarios use little memory.
    pub(crate) fn keep(&self, index: usize, mut record: EvidenceRecord) {
        record.part_documents();
        let application = record
            .evidence
            .configured
            .pointer("/auth/application/api_key");
        let key = application.and_then(Value::as_str).map(str::to_owned);
        let packed = self.packed(&Line::Scenario(Box::new(record)), key.as_deref());
        let mut state = lock(&self.state);
        match packed {
            Ok(packed) => state.early.insert(index, packed),
            failed @ Err(_) => {
                state.write(failed);
                state.early.insert(index, Vec::new())
            }
        };
        state.settle(false);
    }

    /// Notes that the scenario left no evidence.
    pub(crate) fn skip(&self, index: usize) {
        let mut state = lock(&self.state);
        state.early.insert(index, Vec::new());
        state.settle(false);
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first error that occurred while writing.
    pub fn end(&self, complete: bool, ended: &RunEnd) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.settle(true);
        let tail = Tail {
            stories: state.scenarios,
            complete,
            void: ended.void_services(),
        };
        let packed = self.packed(&Line::End(tail), None);
        state.write(packed);
        match state.failure.take() {
            Some(failure) => Err(failure),
            None => state.file.flush(),
        }
    }

    fn packed(&self, line: &impl Serialize, key: Option<&str>) -> io::Result<Vec<u8>> {
        let text = serde_json::to_string(line).map_err(io::Error::other)?;
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(redacted(&text, &self.redactor, key).as_bytes())?;
        packer.write_all(b"\n")?;
        packer.finish()
    }
}

struct State {
    file: Box<dyn Write + Send>,
    /// Scenarios that ended before an earlier one of the plan.
    early: BTreeMap<usize, Vec<u8>>,
    next: usize,
    scenarios: usize,
    failure: Option<io::Error>,
}

impl State {
    /// Writes the scenarios whose predecessors are written; at the end, all of them.
    fn settle(&mut self, at_end: bool) {
        while let Some(first) = self.early.first_entry() {
            if *first.key() != self.next && !at_end {
                return;
            }
            self.next = *first.key() + 1;
            let packed = first.remove();
            if !packed.is_empty() {
                self.scenarios += 1;
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

impl EvidenceRecord {
    /// Removes documents that exchanges already contain.
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
}
