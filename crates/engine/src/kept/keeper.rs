//! Writes a run's evidence, story by story while the run goes on, in the plan's order whatever the order they end in.

use super::form::{Head, Line, Played, Tail};
use super::secrets::redacted;
use conformant_base::redact::Redactor;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Writes stories in the plan's order, whatever the order they end in.
pub struct Keeper {
    redactor: Redactor,
    state: Mutex<State>,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
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
    pub(crate) fn keep(&self, index: usize, mut played: Played) {
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
    pub(crate) fn pass_over(&self, index: usize) {
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

struct State {
    file: Box<dyn Write + Send>,
    /// Stories that ended before one in front of them.
    early: BTreeMap<usize, Vec<u8>>,
    due: usize,
    stories: usize,
    failure: Option<io::Error>,
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
}
