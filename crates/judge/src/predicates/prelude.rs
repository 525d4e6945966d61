//! What a predicate's file uses.

pub(super) use crate::case::{Case, Representation};
pub(super) use crate::change::Change;
#[cfg(test)]
pub(super) use crate::examples::{Example, Scene};
pub(super) use crate::mutation::Mutation;
pub(super) use crate::predicate::{Need, Predicate};
pub(super) use crate::sites::{Site, Sites};
pub(super) use crate::verdicts::{Fact, Trivial, Verdicts};
pub(super) use conformant_base::json;
pub(super) use conformant_rulebook::{
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

/// Implements [`Check`] for a law of one operation.
macro_rules! check_of_operation {
    ($predicate:ty) => {
        impl Check for $predicate {
            fn predicate(&self) -> &'static str {
                Self::NAME
            }

            fn subject(&self) -> Subject<'_> {
                Subject::Operations(vec![OfOperation::operation(self)])
            }

            fn names(&self, names: &mut Names<'_>) {
                names.operation("of", OfOperation::operation(self));
            }
        }
    };
}
pub(super) use check_of_operation;

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
