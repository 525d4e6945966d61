//! Rules and open points that are written out: read, resolved and checked against operations and
//! kinds.
//!
//! What a predicate means is in `judge`.

use super::draft::{Derived, Draft, File, Files};
use super::model::{Kind, OpenPointEntry, Operation, Origin, Rule, Service};
use super::open_points::OpenPoint;
use super::problems::suggest;
use super::reach;
use super::rules::{self, Check};
use super::schemas::{self, At};
use super::words::is_id;
use super::yaml::{Member, Node};
use crate::verdict::Level;
use std::collections::BTreeMap;

/// The items of a file's one list, each with its pointer. Other keys are problems.
pub(super) fn list<'a>(
    draft: &mut Draft,
    file: &'a File,
    key: &str,
) -> impl Iterator<Item = (String, &'a Node)> {
    only(draft, file, &[key]);
    let items = file.node.get(key).map(Node::items).unwrap_or_default();
    let at = format!("/{key}");
    items
        .iter()
        .enumerate()
        .map(move |(n, node)| (format!("{at}/{n}"), node))
}

/// Keys of the file other than these are problems.
pub(super) fn only(draft: &mut Draft, file: &File, keys: &[&str]) {
    if file.node.members().is_empty() {
        let message = format!("expected a mapping with {}", keys.join(", "));
        draft.problems.push(file.problem("", message));
    }
    for Member { key, key_span, .. } in file.node.members() {
        if !keys.contains(&key.as_str()) {
            let problem = file.problem_at(*key_span, format!("unknown key `{key}`"));
            draft
                .problems
                .push(match suggest(key, keys.iter().copied()) {
                    Some(help) => problem.help(help),
                    None => problem,
                });
        }
    }
}

/// An id of its service in kebab-case; anything else is a problem.
pub(super) fn check_id(draft: &mut Draft, file: &File, pointer: &str, id: &str) {
    let at = format!("{pointer}/id");
    if !is_id(id) {
        let message = format!("`{id}` is no kebab-case path");
        draft.problems.push(
            file.problem(&at, message)
                .help("such as `chat/channel/unique-name`"),
        );
    } else if id.split('/').next() != Some(file.service()) {
        let message = format!("`{id}` stands in the folder of {}", file.service());
        let help = format!("ids in this folder begin with `{}/`", file.service());
        draft.problems.push(file.problem(&at, message).help(help));
    }
}

/// Reads the rules of one file; they are checked once all operations and kinds are known.
pub(super) fn read_rules(draft: &mut Draft, files: &Files, file: &File) {
    let items: Vec<_> = list(draft, file, "rules").collect();
    for (at, node) in items {
        let Some(written) = draft.typed::<rules::Rule>(file, node) else {
            continue;
        };
        check_id(draft, file, &at, &written.id);
        let Some(source) = draft.resolve(file, &format!("{at}/source"), &written.source) else {
            continue;
        };
        let check = self_contained(draft, files, file, &at, node, written.check);
        let rule = Derived {
            id: written.id,
            says: written.says,
            source,
            level: written.level,
            basis: written.basis,
            origin: Origin::Written(check),
        };
        let rule: Rule = rule.rule(file, &at);
        draft.add(file, &format!("{at}/id"), rule);
    }
}

/// Checks the schema of a `conforms` and resolves its references.
fn self_contained(
    draft: &mut Draft,
    files: &Files,
    file: &File,
    at: &str,
    node: &Node,
    mut check: Check,
) -> Check {
    if let Check::Conforms { schema, .. } = &mut check
        && let Some(written) = node
            .get("check")
            .and_then(|c| c.get("conforms"))
            .and_then(|c| c.get("schema"))
    {
        let at = format!("{at}/check/conforms/schema");
        schemas::derive(draft, files, file, &at, written, At::aside());
        *schema = schemas::inline(files, file, written);
    }
    check
}

/// Reads the open points of one file; those with `either` become rules.
pub(super) fn read_open_points(
    draft: &mut Draft,
    file: &File,
    points: &mut BTreeMap<String, OpenPointEntry>,
    services: &BTreeMap<String, Service>,
) {
    let items: Vec<_> = list(draft, file, "open-points").collect();
    for (at, node) in items {
        let Some(point) = draft.typed::<OpenPoint>(file, node) else {
            continue;
        };
        check_id(draft, file, &at, &point.id);
        if point.id.split('/').nth(1) != Some("open") {
            let message = format!("`{}` is no id of an open point", point.id);
            let help = format!("open points are named `{}/open/NAME`", file.service());
            draft
                .problems
                .push(file.problem(&format!("{at}/id"), message).help(help));
        }
        let Some(source) = draft.resolve(file, &format!("{at}/source"), &point.source) else {
            continue;
        };
        let operations = services.get(file.service()).map(|s| &s.operations);
        for (n, observation) in point.observe.iter().enumerate() {
            if let (Some(operation), Some(known)) = (&observation.operation, operations)
                && !known.contains_key(operation)
            {
                let span = file.node.place(&format!("{at}/observe/{n}/operation"));
                let known = known.keys().map(String::as_str);
                draft.unknown(file, span, "operation", operation, known);
            }
        }
        if point.either {
            let rule = Derived {
                id: point.id.clone(),
                says: point.says.clone(),
                source: source.clone(),
                level: Level::Must,
                basis: point.basis,
                origin: Origin::Either,
            };
            draft.add(file, &at, rule.rule(file, &at));
        }
        let entry = OpenPointEntry {
            service: file.service().to_owned(),
            source,
            place: file.place(&at),
            point,
        };
        if let Some(other) = points.insert(entry.point.id.clone(), entry) {
            let message = format!("the id `{}` is taken by {}", other.point.id, other.place);
            draft
                .problems
                .push(file.problem(&format!("{at}/id"), message));
        }
    }
}

/// Checks what the rules of one file name: operations, parameters, kinds, pointers.
pub(super) fn check_rules(
    draft: &mut Draft,
    file: &File,
    services: &BTreeMap<String, Service>,
    kinds: &BTreeMap<String, Kind>,
) {
    let items = file.node.get("rules").map(Node::items).unwrap_or_default();
    for (n, node) in items.iter().enumerate() {
        let Some(id) = node.get("id").and_then(Node::text) else {
            continue;
        };
        let Some(Origin::Written(check)) = draft.rules.get(id).map(|r| r.origin.clone()) else {
            continue;
        };
        let predicate = node
            .get("check")
            .map(Node::members)
            .and_then(|m| m.first())
            .map(|m| m.key.clone())
            .unwrap_or_default();
        let names = Names {
            file,
            at: format!("/rules/{n}/check/{predicate}"),
            operations: services.get(file.service()).map(|s| &s.operations),
            kinds,
        };
        names.check(draft, &check);
    }
}

/// What the names of one rule are looked up in.
struct Names<'a> {
    file: &'a File,
    at: String,
    operations: Option<&'a BTreeMap<String, Operation>>,
    kinds: &'a BTreeMap<String, Kind>,
}

impl Names<'_> {
    fn check(&self, draft: &mut Draft, check: &Check) {
        match check {
            Check::Story {} | Check::PlainJson {} => {}
            Check::Conforms { kind, at, .. } | Check::Configured { kind, at, .. } => {
                if self.kind(draft, kind) {
                    self.within(draft, kind, "at", at);
                }
            }
            Check::AtMostAfter {
                kind, at, after, ..
            } => {
                if self.kind(draft, kind) {
                    for (key, pointer) in [("at", at), ("after", after)] {
                        if let Some(pointer) = pointer {
                            self.within(draft, kind, key, pointer);
                        }
                    }
                }
            }
            Check::InFormat { parameter } => {
                let mut all = self.operations.into_iter().flat_map(BTreeMap::values);
                if !all.any(|o| o.parameters.iter().any(|p| p.name == *parameter)) {
                    let message = format!("no operation has a parameter `{parameter}`");
                    draft.problems.push(
                        self.file
                            .problem(&format!("{}/parameter", self.at), message),
                    );
                }
            }
            Check::PresentOnlyWhen {
                kind, field, when, ..
            } => {
                if self.kind(draft, kind) {
                    self.within(draft, kind, "field", field);
                    self.within(draft, kind, "when", when);
                }
            }
            Check::Echoes {
                operations,
                parameter,
                at,
                ..
            }
            | Check::Default {
                operations,
                parameter,
                at,
                ..
            } => {
                for (n, operation) in operations.iter().enumerate() {
                    if self.operation(draft, &format!("operations/{n}"), operation) {
                        self.parameter(draft, "parameter", operation, parameter);
                        self.answered(draft, "at", operation, at);
                    }
                }
            }
            Check::OrderedBy { operation, at, .. } => {
                if self.operation(draft, "operation", operation) {
                    self.answered(draft, "at", operation, at);
                }
            }
            Check::FilteredBy {
                operation,
                parameter,
                at,
                ..
            } => {
                if self.operation(draft, "operation", operation) {
                    self.parameter(draft, "parameter", operation, parameter);
                    self.answered(draft, "at", operation, at);
                }
            }
            Check::Bounded { operations, at, .. } => {
                for (n, operation) in operations.iter().enumerate() {
                    if self.operation(draft, &format!("operations/{n}"), operation) {
                        self.answered(draft, "at", operation, at);
                    }
                }
            }
            Check::NoLongerThan {
                operations,
                at,
                size,
            } => {
                for (n, operation) in operations.iter().enumerate() {
                    if self.operation(draft, &format!("operations/{n}"), operation) {
                        self.answered(draft, "at", operation, at);
                        self.answered(draft, "size", operation, size);
                    }
                }
            }
            Check::SameResource { kind, key, fields } => {
                if self.kind(draft, kind) {
                    self.within(draft, kind, "key", key);
                    for (n, field) in fields.iter().enumerate() {
                        self.within(draft, kind, &format!("fields/{n}"), field);
                    }
                }
            }
            Check::UniqueWithin {
                kind,
                key,
                at,
                scope,
            } => {
                if self.kind(draft, kind) {
                    self.within(draft, kind, "key", key);
                    self.within(draft, kind, "at", at);
                    for (n, field) in scope.iter().enumerate() {
                        self.within(draft, kind, &format!("scope/{n}"), field);
                    }
                }
            }
            Check::IncreasingWithin {
                operation,
                at,
                scope,
            } => {
                if self.operation(draft, "operation", operation) {
                    self.answered(draft, "at", operation, at);
                    for (n, field) in scope.iter().enumerate() {
                        self.answered(draft, &format!("scope/{n}"), operation, field);
                    }
                }
            }
            Check::Transition { kind, key, at, .. } => {
                if self.kind(draft, kind) {
                    self.within(draft, kind, "key", key);
                    self.within(draft, kind, "at", at);
                }
            }
            Check::NeverAfter {
                after,
                operation,
                parameters,
            } => {
                for (key, name) in [("after", after), ("operation", operation)] {
                    if self.operation(draft, key, name) {
                        for (n, parameter) in parameters.iter().enumerate() {
                            self.parameter(draft, &format!("parameters/{n}"), name, parameter);
                        }
                    }
                }
            }
            Check::OneSpelling { kind, at, of } => {
                if self.kind(draft, kind) {
                    self.within(draft, kind, "at", at);
                }
                if of.len() < 2 {
                    let message = "one spelling of several: name at least two";
                    draft
                        .problems
                        .push(self.file.problem(&format!("{}/of", self.at), message));
                }
            }
        }
    }

    fn kind(&self, draft: &mut Draft, kind: &str) -> bool {
        let known = self.kinds.contains_key(kind);
        if !known {
            let span = self.file.node.place(&format!("{}/kind", self.at));
            let kinds = self.kinds.keys().map(String::as_str);
            draft.unknown(self.file, span, "kind", kind, kinds);
        }
        known
    }

    fn within(&self, draft: &mut Draft, kind: &str, key: &str, pointer: &str) {
        let at = format!("{}/{key}", self.at);
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let message = format!("`{pointer}` is no JSON Pointer");
            let help = format!("write `/{pointer}`");
            draft
                .problems
                .push(self.file.problem(&at, message).help(help));
            return;
        }
        let Some(schema) = self.kinds.get(kind).map(|k| &k.schema) else {
            return;
        };
        if let Err((segment, known)) = reach::reaches(schema, pointer) {
            let message =
                format!("`{pointer}` leads to nothing in {kind}: there is no `{segment}`");
            let problem = self.file.problem(&at, message);
            draft
                .problems
                .push(match suggest(&segment, known.iter().map(String::as_str)) {
                    Some(help) => problem.help(help),
                    None => problem,
                });
        }
    }

    fn operation(&self, draft: &mut Draft, key: &str, operation: &str) -> bool {
        let known = self.operations.is_some_and(|o| o.contains_key(operation));
        if !known {
            let span = self.file.node.place(&format!("{}/{key}", self.at));
            let names = self.operations.into_iter().flat_map(BTreeMap::keys);
            let names = names.map(String::as_str);
            draft.unknown(self.file, span, "operation", operation, names);
        }
        known
    }

    fn parameter(&self, draft: &mut Draft, key: &str, operation: &str, parameter: &str) {
        let Some(operation) = self.operations.and_then(|o| o.get(operation)) else {
            return;
        };
        if !operation.parameters.iter().any(|p| p.name == parameter) {
            let span = self.file.node.place(&format!("{}/{key}", self.at));
            let names = operation.parameters.iter().map(|p| p.name.as_str());
            let what = format!("parameter of {}", operation.id);
            draft.unknown(self.file, span, &what, parameter, names);
        }
    }

    /// The pointer leads into the answer of the operation.
    fn answered(&self, draft: &mut Draft, key: &str, operation: &str, pointer: &str) {
        let answer = self
            .operations
            .and_then(|o| o.get(operation))
            .and_then(|o| o.response.as_deref());
        if let Some(kind) = answer {
            self.within(draft, kind, key, pointer);
        } else {
            let message = format!("the answer of {operation} is not described");
            draft
                .problems
                .push(self.file.problem(&format!("{}/{key}", self.at), message));
        }
    }
}
