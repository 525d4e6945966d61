//! Predicates: what a rule requires, as a type with its parameters, in one file each.
//!
//! - [`Predicate`] is the only trait, and one line in `predicates/mod.rs` registers a type.
//! - The rulebook keeps a compiled predicate as an opaque part of a rule's `Check`; [`predicate_of`] opens it.

use super::evidence::{Evidence, Payload};
#[cfg(test)]
use super::examples::Example;
use super::mutation::Mutation;
use super::payload::Document;
use super::sites::Sites;
use super::verdicts::{Fact, Verdicts};
use conformant_rulebook::{
    AppliesTo, Check, Compiled, Model, ParameterError, Parameters, PayloadRule, References, Rule,
    Subject,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::sync::Arc;

/// One predicate with its parameters.
pub trait Predicate: Debug + Send + Sync {
    /// What it judges: the resource type or the operations that its parameters refer to first, or else all of the service.
    fn subject(&self) -> Subject {
        self.all_references().subject()
    }

    /// Collects what its parameters refer to.
    fn references(&self, references: &mut References);

    /// All that its parameters refer to.
    fn all_references(&self) -> References {
        let mut references = References::default();
        self.references(&mut references);
        references
    }

    /// What the evidence must contain before it can conclude anything.
    fn applies_to(&self) -> AppliesTo {
        self.all_references().applies_to(self.subject())
    }

    /// What it requires of one representation on its own, as data, if that is all it requires.
    fn payload(&self) -> Option<PayloadRule> {
        None
    }

    /// What evidence it uses: one representation if that is all it requires something of, hooks if it refers to nothing else.
    fn needs(&self) -> &'static [Need] {
        match self.payload() {
            Some(_) => &[Need::Document],
            None if self.all_references().names_hooks_only() => &[Need::Hooks],
            None => &[Need::History],
        }
    }

    /// Whether it judges only addresses that were followed.
    fn follows_links(&self) -> bool {
        false
    }

    /// Judges everything in the scenario that it applies to.
    fn evaluate(&self, verdicts: &mut Verdicts<'_>);

    /// For a rule about one representation on its own: its violations, each with a pointer into it. `None` if there is nothing
    /// to judge.
    fn payload_mismatches(&self, _document: &Document<'_>) -> Option<Vec<(String, Fact)>> {
        None
    }

    /// Mutations of the evidence that may make it fail, likeliest first.
    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        Mutation::of_sites(sites)
    }

    /// Evidence of one representation that conforms to the rule.
    fn example_evidence(&self, _rule: &Rule, kind: &str, value: Value) -> Evidence {
        of_payload(kind, value)
    }

    /// For an invariant, all subjects that it applies to, as rows name them; `None` for other predicates.
    fn fits(_model: &Model<'_>) -> Option<Vec<String>>
    where
        Self: Sized,
    {
        None
    }

    /// At least one that passes, one that fails, and one that is not judged.
    #[cfg(test)]
    fn examples() -> Vec<Example>
    where
        Self: Sized;
}

/// The predicate of a written rule.
pub fn predicate_of(rule: &Rule) -> Option<&dyn Predicate> {
    let compiled = &rule.check()?.compiled;
    compiled
        .get::<Box<dyn Predicate>>()
        .map(|predicate| &**predicate)
}

/// A kind of evidence that a predicate uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// One representation from any source.
    Document,
    /// One response with its request.
    Answer,
    /// Several responses about the same resources.
    History,
    /// The configuration of the service.
    Configuration,
    /// The time of the target.
    Clock,
    /// Hooks (actions of people and devices) with their results.
    Hooks,
    /// Callbacks, and the requests that set their address.
    Callbacks,
    /// A statement in a scenario.
    Steps,
}

impl Need {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Document => "one representation",
            Self::Answer => "one response with its request",
            Self::History => "several responses about the same resources",
            Self::Configuration => "the service's configuration",
            Self::Clock => "the time of the target",
            Self::Hooks => "hooks with their results",
            Self::Callbacks => "callbacks, and the requests that set their address",
            Self::Steps => "a statement in a scenario",
        }
    }
}

/// Evidence of one representation without a request.
pub(super) fn of_payload(kind: &str, value: Value) -> Evidence {
    let payload = Payload {
        kind: kind.to_owned(),
        value: Arc::new(value),
        notes: Vec::new(),
        step: 0,
    };
    Evidence {
        payloads: vec![payload],
        ..Evidence::default()
    }
}

/// A registered predicate.
#[derive(Clone, Copy)]
pub(super) struct Registration {
    pub(super) name: &'static str,
    /// The parameters that select this form of the predicate; none for the form of all other parameters.
    pub(super) selected_by: &'static [&'static str],
    /// Reads the parameters; the number is the place in the order of judging.
    pub(super) read: fn(&'static str, &Parameters<'_>, usize) -> Result<Check, ParameterError>,
    pub(super) fits: fn(&Model<'_>) -> Option<Vec<String>>,
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
    #[cfg(test)]
    pub(super) examples: fn() -> Vec<Example>,
}

impl Registration {
    pub(super) const fn new<T: Predicate + DeserializeOwned + JsonSchema + 'static>(
        name: &'static str,
        selected_by: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            selected_by,
            read: |name, parameters, order| {
                let predicate = parameters.read::<T>()?;
                Ok(check_of(name, *parameters, order, Box::new(predicate)))
            },
            fits: T::fits,
            schema: |generator| generator.subschema_for::<T>(),
            #[cfg(test)]
            examples: T::examples,
        }
    }
}

/// What the rulebook keeps of a predicate.
fn check_of(
    name: &'static str,
    parameters: Parameters<'_>,
    order: usize,
    predicate: Box<dyn Predicate>,
) -> Check {
    Check {
        predicate: name,
        parameters: parameters.to_json(),
        subject: predicate.subject(),
        applies_to: predicate.applies_to(),
        payload: predicate.payload(),
        references: predicate.all_references(),
        order,
        compiled: Compiled::new(predicate),
    }
}
