//! What the parameters of a predicate refer to: resource types, operations, their parameters, and pointers.
//!
//! A predicate collects [`References`] when it is read. They are resolved once all operations and resource types are
//! known. Each reference that resolves to nothing is a problem with its place.

use super::Place;
use super::check::{AppliesTo, Subject};
use super::draft::{Draft, File};
use super::hooks::Hook;
use super::model::{Kind, Operation, event_version};
use super::problems::suggest;
use conformant_base::sorted::SortedMap;

/// What the parameters of one predicate refer to.
#[derive(Clone, Debug, Default)]
pub struct References(Vec<Reference>);

/// A parameter of the predicate, and what it names.
#[derive(Clone, Debug)]
struct Named {
    key: String,
    name: String,
}

/// One reference.
#[derive(Clone, Debug)]
enum Reference {
    /// A resource type, with pointers into it.
    Kind { kind: Named, pointers: Vec<Named> },
    /// An operation, with its parameters and pointers into its response.
    Operation {
        operation: Named,
        parts: Vec<OperationPart>,
    },
    /// A parameter of any operation.
    AnyParameter(Named),
    /// An argument of any hook.
    AnyArgument(Named),
    /// A pointer into the payload of any event.
    AnyEvent(Named),
    /// A hook.
    Hook(Named),
    /// A parameter that is wrong in itself; the name is the message.
    Problem(Named),
}

/// A part of an operation.
#[derive(Clone, Debug)]
enum OperationPart {
    Parameter(Named),
    Response(Named),
}

impl Named {
    fn new(key: &str, name: impl Into<String>) -> Self {
        Self {
            key: key.to_owned(),
            name: name.into(),
        }
    }

    /// The parameter of the predicate: `operations/0` is an item of `operations`.
    fn parameter(&self) -> &str {
        self.key.split('/').next().unwrap_or_default()
    }
}

impl References {
    /// The parameter `key` names a resource type; what follows points into it.
    pub fn kind(&mut self, key: &str, kind: &str) -> KindPointers<'_> {
        self.0.push(Reference::Kind {
            kind: Named::new(key, kind),
            pointers: Vec::new(),
        });
        match self.0.last_mut() {
            Some(Reference::Kind { pointers, .. }) => KindPointers(pointers),
            _ => unreachable!("it was pushed just now"),
        }
    }

    /// The parameter `key` names an operation of the rule's service, by its id or as `SERVICE/ID`; what follows belongs
    /// to it.
    pub fn operation(&mut self, key: &str, operation: &str) -> OperationParts<'_> {
        self.0.push(Reference::Operation {
            operation: Named::new(key, operation),
            parts: Vec::new(),
        });
        match self.0.last_mut() {
            Some(Reference::Operation { parts, .. }) => OperationParts(parts),
            _ => unreachable!("it was pushed just now"),
        }
    }

    /// The parameter `key` names operations; what `each` adds belongs to every one of them.
    pub fn operations(
        &mut self,
        key: &str,
        operations: &[String],
        mut each: impl FnMut(&mut OperationParts<'_>),
    ) {
        for (n, operation) in operations.iter().enumerate() {
            each(&mut self.operation(&format!("{key}/{n}"), operation));
        }
    }

    /// The first resource type, or the operations that the first parameter with operations names, or else all of the service.
    pub fn subject(&self) -> Subject {
        let first = self.0.iter().find_map(|reference| match reference {
            Reference::Kind { kind, .. } => Some(Subject::kind(&kind.name)),
            Reference::Operation { operation, .. } => Some(Subject::Operations(
                self.operations_of(operation.parameter()),
            )),
            Reference::AnyParameter(_)
            | Reference::AnyArgument(_)
            | Reference::AnyEvent(_)
            | Reference::Hook(_)
            | Reference::Problem(_) => None,
        });
        first.unwrap_or(Subject::Service)
    }

    /// What the evidence must contain for a predicate about `subject`; for a resource type, it or another one that the same
    /// parameter names.
    pub fn applies_to(&self, subject: Subject) -> AppliesTo {
        match subject {
            Subject::Kind(kind) => AppliesTo::Kinds(self.kinds_beside(kind)),
            Subject::Operations(operations) => AppliesTo::Operations(operations),
            Subject::Steps => AppliesTo::Steps,
            Subject::Parameter(_) | Subject::Service => AppliesTo::Anything,
        }
    }

    /// Whether hooks are all that is named, apart from places in events.
    pub fn names_hooks_only(&self) -> bool {
        let is_hook = |one: &Reference| matches!(one, Reference::Hook(_) | Reference::AnyEvent(_));
        !self.0.is_empty() && self.0.iter().all(is_hook)
    }

    fn operations_of(&self, parameter: &str) -> Vec<String> {
        let mut operations = Vec::new();
        for reference in &self.0 {
            if let Reference::Operation { operation, .. } = reference
                && operation.parameter() == parameter
            {
                let id = operation.name.rsplit('/').next();
                operations.extend(id.map(str::to_owned));
            }
        }
        operations
    }

    fn kinds_beside(&self, kind: String) -> Vec<String> {
        let mut kinds = vec![kind];
        let mut parameter = None;
        for reference in &self.0 {
            if let Reference::Kind { kind, .. } = reference
                && (kind.name == kinds[0] || parameter == Some(&kind.key))
            {
                parameter.get_or_insert(&kind.key);
                if !kinds.contains(&kind.name) {
                    kinds.push(kind.name.clone());
                }
            }
        }
        kinds
    }

    /// The parameter `key` names a parameter of some operation.
    pub fn any_parameter(&mut self, key: &str, parameter: &str) {
        self.0
            .push(Reference::AnyParameter(Named::new(key, parameter)));
    }

    /// The parameter `key` names an argument of some hook.
    pub fn any_argument(&mut self, key: &str, argument: &str) {
        self.0
            .push(Reference::AnyArgument(Named::new(key, argument)));
    }

    /// The parameter `key` points into the payload of some event.
    pub fn any_event(&mut self, key: &str, pointer: &str) {
        self.0.push(Reference::AnyEvent(Named::new(key, pointer)));
    }

    /// The parameter `key` names a hook.
    pub fn hook(&mut self, key: &str, hook: &str) {
        self.0.push(Reference::Hook(Named::new(key, hook)));
    }

    /// The parameter `key` is wrong in itself.
    pub fn problem(&mut self, key: &str, message: impl Into<String>) {
        self.0.push(Reference::Problem(Named::new(key, message)));
    }
}

/// Collects pointers into a resource type. An unknown resource type has no further problems.
#[derive(Debug)]
pub struct KindPointers<'r>(&'r mut Vec<Named>);

impl KindPointers<'_> {
    /// The parameter `key` points into the resource type.
    pub fn pointer(&mut self, key: &str, pointer: &str) -> &mut Self {
        self.0.push(Named::new(key, pointer));
        self
    }

    /// Each item of the parameter `key` points into the resource type.
    pub fn pointers(&mut self, key: &str, pointers: &[String]) -> &mut Self {
        for (n, pointer) in pointers.iter().enumerate() {
            self.pointer(&format!("{key}/{n}"), pointer);
        }
        self
    }
}

/// Collects parts of an operation. An unknown operation has no further problems.
#[derive(Debug)]
pub struct OperationParts<'r>(&'r mut Vec<OperationPart>);

impl OperationParts<'_> {
    /// The parameter `key` names a parameter of the operation.
    pub fn parameter(&mut self, key: &str, parameter: &str) -> &mut Self {
        let named = Named::new(key, parameter);
        self.0.push(OperationPart::Parameter(named));
        self
    }

    /// The parameter `key` points into the response of the operation.
    pub fn answers(&mut self, key: &str, pointer: &str) -> &mut Self {
        let named = Named::new(key, pointer);
        self.0.push(OperationPart::Response(named));
        self
    }

    /// Each item of the parameter `key` points into the response of the operation.
    pub fn all_answer(&mut self, key: &str, pointers: &[String]) -> &mut Self {
        for (n, pointer) in pointers.iter().enumerate() {
            self.answers(&format!("{key}/{n}"), pointer);
        }
        self
    }
}

/// Resolves the references of one rule.
pub(super) struct Resolver<'a> {
    pub(super) draft: &'a mut Draft,
    pub(super) file: &'a File,
    /// Where the parameters stand in the file.
    pub(super) at: String,
    pub(super) operations: Option<&'a SortedMap<String, Operation>>,
    pub(super) kinds: &'a SortedMap<String, Kind>,
}

impl Resolver<'_> {
    /// Reports each reference that resolves to nothing.
    pub(super) fn resolve(&mut self, references: &References) {
        for reference in &references.0 {
            match reference {
                Reference::Kind { kind, pointers } => self.kind(kind, pointers),
                Reference::Operation { operation, parts } => self.operation(operation, parts),
                Reference::AnyParameter(named) => self.any_parameter(named),
                Reference::AnyArgument(named) => self.any_argument(named),
                Reference::AnyEvent(named) => self.any_event(named),
                Reference::Hook(named) if self.draft.index.hook(&named.name).is_none() => {
                    self.problem(&named.key, "there is no such hook");
                }
                Reference::Hook(_) => {}
                Reference::Problem(named) => self.problem(&named.key, &*named.name),
            }
        }
    }

    fn unknown<'n>(&mut self, named: &Named, what: &str, known: impl Iterator<Item = &'n str>) {
        let span = self.file.node.place(&format!("{}/{}", self.at, named.key));
        self.draft
            .unknown(self.file, span, what, &named.name, known);
    }

    fn kind(&mut self, named: &Named, pointers: &[Named]) {
        let kinds = self.kinds;
        let Some(known) = kinds.get(&named.name) else {
            // Rules name an event without its version.
            let kinds = kinds.keys().map(|known| match event_version(known) {
                Some(_) => known
                    .rsplit_once('/')
                    .map_or(known.as_str(), |(event, _)| event),
                None => known.as_str(),
            });
            self.unknown(named, "kind", kinds);
            return;
        };
        for pointer in pointers {
            self.within(known, pointer);
        }
    }

    fn operation(&mut self, named: &Named, parts: &[OperationPart]) {
        let operations = self.operations;
        let (service, id) = match named.name.rsplit_once('/') {
            Some((service, id)) => (Some(service), id),
            None => (None, named.name.as_str()),
        };
        let Some(operation) = operations.and_then(|o| o.get(id)) else {
            let names = operations.into_iter().flat_map(SortedMap::keys);
            self.unknown(named, "operation", names.map(String::as_str));
            return;
        };
        if let Some(service) = service.filter(|service| operation.service != *service) {
            let own = &operation.service;
            let message =
                format!("`{service}` is another service than that of the rule: write {own}/{id}");
            self.problem(&named.key, message);
        }
        for part in parts {
            match part {
                OperationPart::Parameter(named) => self.parameter(operation, named),
                OperationPart::Response(named) => self.response(operation, named),
            }
        }
    }

    fn parameter(&mut self, operation: &Operation, named: &Named) {
        if !operation.parameters.iter().any(|p| p.name == named.name) {
            let names = operation.parameters.iter().map(|p| p.name.as_str());
            let what = format!("parameter of {}", operation.id);
            self.unknown(named, &what, names);
        }
    }

    fn response(&mut self, operation: &Operation, named: &Named) {
        let kinds = self.kinds;
        let response = operation.response.as_deref();
        match response.and_then(|kind| kinds.get(kind)) {
            Some(kind) => self.within(kind, named),
            None => self.problem(
                &named.key,
                format!("the response of {} is not described", operation.id),
            ),
        }
    }

    fn any_parameter(&mut self, named: &Named) {
        let mut all = self.operations.into_iter().flat_map(SortedMap::values);
        if !all.any(|o| o.parameters.iter().any(|p| p.name == named.name)) {
            let message = format!("no operation has a parameter `{}`", named.name);
            self.problem(&named.key, message);
        }
    }

    fn any_argument(&mut self, named: &Named) {
        let takes = |hook: &Hook| {
            let mut arguments = hook.required.iter().chain(&hook.optional);
            arguments.any(|argument| *argument == named.name)
        };
        if !self.draft.index.hooks().any(takes) {
            let message = format!("no hook has an argument `{}`", named.name);
            self.problem(&named.key, message);
        }
    }

    fn any_event(&mut self, named: &Named) {
        let pointer = &named.name;
        let mut kinds = self.kinds.values();
        let leads = |kind: &Kind| {
            event_version(&kind.name).is_some()
                && Place::root(&kind.schema).any().reaches(pointer).is_ok()
        };
        if !pointer.starts_with('/') || !kinds.any(leads) {
            let message = format!("`{pointer}` does not resolve in any event");
            self.problem(&named.key, message);
        }
    }

    fn problem(&mut self, key: &str, message: impl Into<String>) {
        let problem = self.file.problem(&format!("{}/{key}", self.at), message);
        self.draft.refuse(problem);
    }

    fn within(&mut self, known: &Kind, named: &Named) {
        let pointer = &named.name;
        let at = format!("{}/{}", self.at, named.key);
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let message = format!("invalid JSON Pointer `{pointer}`");
            let problem = self.file.problem(&at, message);
            let problem = problem.help(format!("write `/{pointer}`"));
            self.draft.refuse(problem);
            return;
        }
        if let Err((segment, others)) = Place::root(&known.schema).any().reaches(pointer) {
            let kind = &known.name;
            let message =
                format!("`{pointer}` does not resolve in {kind}: there is no `{segment}`");
            let problem = self.file.problem(&at, message);
            let help = suggest(&segment, others.iter().copied());
            self.draft.refuse(problem.maybe_help(help));
        }
    }
}
