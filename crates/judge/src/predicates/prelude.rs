//! What a predicate's file uses.

pub(super) use crate::json;
pub(super) use crate::judge::case::{Case, Representation};
pub(super) use crate::judge::change::Change;
#[cfg(test)]
pub(super) use crate::judge::examples::{Example, Scene};
pub(super) use crate::judge::mutation::Mutation;
pub(super) use crate::judge::predicate::{Need, Predicate};
pub(super) use crate::judge::sites::{Site, Sites};
pub(super) use crate::judge::verdicts::{Fact, Trivial, Verdicts};
pub(super) use crate::rulebook::{
    Bears, Check, Model, Names, Operation, PayloadRule, Rule, Subject,
};
pub(super) use schemars::JsonSchema;
pub(super) use serde::Deserialize;
pub(super) use serde_json::{Value, json};

/// A law of one operation, which its parameter `of` names with the service.
pub(super) trait OfOperation: Predicate {
    /// `SERVICE/OPERATION`.
    fn of(&self) -> &str;

    /// The operation's id.
    fn operation(&self) -> &str {
        operation_of(self.of())
    }
}

impl<T: OfOperation> Check for T {
    fn predicate(&self) -> &'static str {
        Self::NAME
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Operations(vec![self.operation()])
    }

    fn names(&self, names: &mut Names<'_>) {
        names.operation("of", self.operation());
    }
}

/// The kinds of representations that a law is about; the first names its subject.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub(super) struct Kinds(Vec<String>);

impl Kinds {
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(super) fn contain(&self, kind: &str) -> bool {
        self.iter().any(|own| own == kind)
    }

    pub(super) fn subject(&self) -> Subject<'_> {
        Subject::Kind(self.iter().next().unwrap_or_default())
    }

    pub(super) fn bear(&self) -> Bears<'_> {
        Bears::Kinds(self.iter().collect())
    }
}

/// The id of an operation that is written with its service.
pub(super) fn operation_of(of: &str) -> &str {
    of.rsplit('/').next().unwrap_or_default()
}

/// The operations that a law fits, with their service.
pub(super) fn operations(model: &Model<'_>, fits: impl Fn(&Operation) -> bool) -> Vec<String> {
    let services = model.services.values();
    let operations = services.flat_map(|service| service.operations.values());
    let fitting = operations.filter(|o| o.thing.is_some() && fits(o));
    fitting.map(|o| format!("{}/{}", o.service, o.id)).collect()
}

/// Whether an address stands there: some lead to the newest of what a thing holds.
pub(super) fn is_address(pointer: &str) -> bool {
    ["/url", "/links"]
        .iter()
        .any(|at| json::within(at, pointer))
}
