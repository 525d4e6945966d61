//! Looking up what the parameters of a predicate name: kinds, operations, their parameters, and
//! pointers. Each name that leads to nothing is a problem with its place.

use super::draft::{Draft, File};
use super::model::{Kind, Operation, event_version};
use super::problems::suggest;
use super::reach;
use std::collections::BTreeMap;

/// What the names of one rule are looked up in.
#[derive(Debug)]
pub struct Names<'a> {
    pub(super) draft: &'a mut Draft,
    pub(super) file: &'a File,
    /// Where the parameters stand in the file.
    pub(super) at: String,
    pub(super) operations: Option<&'a BTreeMap<String, Operation>>,
    pub(super) kinds: &'a BTreeMap<String, Kind>,
}

impl<'a> Names<'a> {
    /// The parameter `key` names a kind; what follows leads into it.
    pub fn kind(&mut self, key: &str, kind: &str) -> OfKind<'_, 'a> {
        let known = self.kinds.get(kind);
        if known.is_none() {
            let span = self.file.node.place(&format!("{}/{key}", self.at));
            // Rules name an event without its version.
            let kinds = self.kinds.keys().map(|known| match event_version(known) {
                Some(_) => known
                    .rsplit_once('/')
                    .map_or(known.as_str(), |(event, _)| event),
                None => known.as_str(),
            });
            self.draft.unknown(self.file, span, "kind", kind, kinds);
        }
        OfKind { known, names: self }
    }

    /// The parameter `key` names an operation; what follows belongs to it.
    pub fn operation(&mut self, key: &str, operation: &str) -> OfOperation<'_, 'a> {
        let known = self.operations.and_then(|o| o.get(operation));
        if known.is_none() {
            let span = self.file.node.place(&format!("{}/{key}", self.at));
            let names = self.operations.into_iter().flat_map(BTreeMap::keys);
            let names = names.map(String::as_str);
            self.draft
                .unknown(self.file, span, "operation", operation, names);
        }
        OfOperation { known, names: self }
    }

    /// The parameter `key` names operations; `each` belongs to every one of them.
    pub fn operations(
        &mut self,
        key: &str,
        operations: &[String],
        mut each: impl FnMut(&mut OfOperation<'_, 'a>),
    ) {
        for (n, operation) in operations.iter().enumerate() {
            each(&mut self.operation(&format!("{key}/{n}"), operation));
        }
    }

    /// The parameter `key` names a parameter of some operation.
    pub fn any_parameter(&mut self, key: &str, parameter: &str) {
        let mut all = self.operations.into_iter().flat_map(BTreeMap::values);
        if !all.any(|o| o.parameters.iter().any(|p| p.name == *parameter)) {
            self.problem(key, format!("no operation has a parameter `{parameter}`"));
        }
    }

    /// The parameter `key` leads to something in a payload of some event.
    pub fn any_event(&mut self, key: &str, pointer: &str) {
        let mut kinds = self.kinds.values();
        let leads = |kind: &Kind| {
            event_version(&kind.name).is_some() && reach::reaches(&kind.schema, pointer).is_ok()
        };
        if !pointer.starts_with('/') || !kinds.any(leads) {
            self.problem(key, format!("`{pointer}` leads to nothing in any event"));
        }
    }

    /// Whether there is a hook of that name.
    pub fn has_hook(&self, name: &str) -> bool {
        self.draft.index.hook(name).is_some()
    }

    /// The parameter `key` is wrong as such.
    pub fn problem(&mut self, key: &str, message: impl Into<String>) {
        let problem = self.file.problem(&format!("{}/{key}", self.at), message);
        self.draft.problems.push(problem);
    }

    fn within(&mut self, known: &Kind, key: &str, pointer: &str) {
        let at = format!("{}/{key}", self.at);
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let message = format!("`{pointer}` is no JSON Pointer");
            let problem = self.file.problem(&at, message);
            let problem = problem.help(format!("write `/{pointer}`"));
            self.draft.problems.push(problem);
            return;
        }
        if let Err((segment, others)) = reach::reaches(&known.schema, pointer) {
            let kind = &known.name;
            let message =
                format!("`{pointer}` leads to nothing in {kind}: there is no `{segment}`");
            let problem = self.file.problem(&at, message);
            let help = suggest(&segment, others.iter().map(String::as_str));
            self.draft.problems.push(match help {
                Some(help) => problem.help(help),
                None => problem,
            });
        }
    }
}

/// A kind that was named; one that is not known has no further problems.
#[derive(Debug)]
pub struct OfKind<'n, 'a> {
    names: &'n mut Names<'a>,
    known: Option<&'a Kind>,
}

impl OfKind<'_, '_> {
    /// The parameter `key` leads to something in the kind.
    pub fn pointer(&mut self, key: &str, pointer: &str) -> &mut Self {
        if let Some(known) = self.known {
            self.names.within(known, key, pointer);
        }
        self
    }

    /// Each of the parameter `key` leads to something in the kind.
    pub fn pointers(&mut self, key: &str, pointers: &[String]) -> &mut Self {
        for (n, pointer) in pointers.iter().enumerate() {
            self.pointer(&format!("{key}/{n}"), pointer);
        }
        self
    }
}

/// An operation that was named; one that is not known has no further problems.
#[derive(Debug)]
pub struct OfOperation<'n, 'a> {
    names: &'n mut Names<'a>,
    known: Option<&'a Operation>,
}

impl OfOperation<'_, '_> {
    /// The parameter `key` names a parameter of the operation.
    pub fn parameter(&mut self, key: &str, parameter: &str) -> &mut Self {
        if let Some(operation) = self.known
            && !operation.parameters.iter().any(|p| p.name == parameter)
        {
            let span = self
                .names
                .file
                .node
                .place(&format!("{}/{key}", self.names.at));
            let names = operation.parameters.iter().map(|p| p.name.as_str());
            let what = format!("parameter of {}", operation.id);
            let file = self.names.file;
            self.names
                .draft
                .unknown(file, span, &what, parameter, names);
        }
        self
    }

    /// The parameter `key` leads into the answer of the operation.
    pub fn answers(&mut self, key: &str, pointer: &str) -> &mut Self {
        if let Some(operation) = self.known {
            let answer = operation.response.as_deref();
            match answer.and_then(|kind| self.names.kinds.get(kind)) {
                Some(kind) => self.names.within(kind, key, pointer),
                None => self.names.problem(
                    key,
                    format!("the answer of {} is not described", operation.id),
                ),
            }
        }
        self
    }

    /// Each of the parameter `key` leads into the answer of the operation.
    pub fn all_answer(&mut self, key: &str, pointers: &[String]) -> &mut Self {
        for (n, pointer) in pointers.iter().enumerate() {
            self.answers(&format!("{key}/{n}"), pointer);
        }
        self
    }
}
