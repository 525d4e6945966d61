//! Predicates: what a rule asks, as a type with its parameters, in one file each.
//!
//! The rulebook holds them as checks and does not know what they do; here is where a check becomes
//! a predicate again.

use super::case::Case;
use super::evidence::{Evidence, Payload};
#[cfg(test)]
use super::examples::Example;
use super::mutation::Mutation;
use super::payload::{Document, Wrong};
use super::sites::Sites;
use super::verdicts::Verdicts;
use conformant_rulebook::{
    Bears, Check, Model, Names, Parameters, PayloadRule, Rule, Subject, Unread,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::any::Any;
use std::sync::Arc;

/// One predicate. Its file has what it asks for, what it names, how it judges and is broken, and
/// examples.
pub trait Predicate: Check + DeserializeOwned + JsonSchema {
    /// Its name in rules.
    const NAME: &'static str;

    /// What evidence it judges by.
    fn needs() -> &'static [Need];

    /// For a law, what it fits, as rows name it; nothing for one that is written where it is wanted.
    fn fits(_model: &Model<'_>) -> Option<Vec<String>> {
        None
    }

    /// Judges all that the case has of its subject.
    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>);

    /// For a rule about one representation by itself: what is wrong with it; nothing where it has
    /// nothing to judge.
    fn in_payload(&self, _document: &Document<'_>) -> Option<Vec<Wrong>> {
        None
    }

    /// At least one that passes, one that fails, and one that is not judged.
    #[cfg(test)]
    fn examples() -> Vec<Example>;

    /// Changes of the evidence by which this instance may fail, likeliest first.
    fn break_it(&self, sites: &Sites) -> Vec<Mutation> {
        Mutation::of_sites(sites)
    }

    /// Evidence of one representation in which the rule holds.
    fn stage(&self, _rule: &Rule, kind: &str, value: Value) -> Evidence {
        of_payload(kind, value)
    }
}

/// What a predicate needs of the evidence to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// One representation, wherever it comes from.
    Document,
    /// One answer with its request.
    Answer,
    /// Several answers about the same things.
    History,
    /// What the configuration says of the service.
    Configuration,
    /// The time of the target.
    Clock,
    /// What people and devices were asked to do, and what came of it.
    Hooks,
    /// Callbacks, and who told whom where to call.
    Callbacks,
    /// A scenario that states what is to be seen.
    Steps,
}

impl Need {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Document => "one representation",
            Self::Answer => "one answer with its request",
            Self::History => "several answers about the same things",
            Self::Configuration => "the service's configuration",
            Self::Clock => "the time of the target",
            Self::Hooks => "what people and devices did",
            Self::Callbacks => "callbacks, and who told where to call",
            Self::Steps => "a scenario that states it",
        }
    }
}

/// Evidence of one representation that came by itself.
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

/// A predicate without its type.
trait Erased: Check {
    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>);
    fn in_payload(&self, document: &Document<'_>) -> Option<Vec<Wrong>>;
    fn break_it(&self, sites: &Sites) -> Vec<Mutation>;
    fn stage(&self, rule: &Rule, kind: &str, value: Value) -> Evidence;
    fn needs(&self) -> &'static [Need];
}

impl<T: Predicate> Erased for T {
    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        Predicate::judge(self, case, rule, verdicts);
    }

    fn in_payload(&self, document: &Document<'_>) -> Option<Vec<Wrong>> {
        Predicate::in_payload(self, document)
    }

    fn break_it(&self, sites: &Sites) -> Vec<Mutation> {
        Predicate::break_it(self, sites)
    }

    fn stage(&self, rule: &Rule, kind: &str, value: Value) -> Evidence {
        Predicate::stage(self, rule, kind, value)
    }

    fn needs(&self) -> &'static [Need] {
        T::needs()
    }
}

/// What the catalogue makes of a check: the one type behind all of them.
#[derive(Debug)]
pub struct Loaded {
    predicate: Box<dyn Erased>,
    /// Its place among all predicates.
    rank: usize,
}

impl Loaded {
    /// The predicate of a written rule.
    pub fn of(rule: &Rule) -> Option<&Self> {
        (&*rule.written()?.check as &dyn Any).downcast_ref()
    }

    /// The predicate of a written rule as its type, where it is of that type.
    pub fn typed<T: Predicate>(rule: &Rule) -> Option<&T> {
        Self::of(rule).and_then(|loaded| (&*loaded.predicate as &dyn Any).downcast_ref())
    }

    /// Judges all that the case has of its subject.
    pub fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        self.predicate.judge(case, rule, verdicts);
    }

    /// What is wrong with one representation by itself.
    pub(super) fn in_payload(&self, document: &Document<'_>) -> Option<Vec<Wrong>> {
        self.predicate.in_payload(document)
    }

    /// Changes of the evidence by which an instance may fail, likeliest first.
    pub fn break_it(&self, sites: &Sites) -> Vec<Mutation> {
        self.predicate.break_it(sites)
    }

    /// Evidence of one representation in which the rule holds.
    pub fn stage(&self, rule: &Rule, kind: &str, value: Value) -> Evidence {
        self.predicate.stage(rule, kind, value)
    }

    /// What evidence it judges by.
    pub fn needs(&self) -> &'static [Need] {
        self.predicate.needs()
    }
}

impl Check for Loaded {
    fn predicate(&self) -> &'static str {
        self.predicate.predicate()
    }

    fn subject(&self) -> Subject<'_> {
        self.predicate.subject()
    }

    fn names(&self, names: &mut Names<'_>) {
        self.predicate.names(names);
    }

    fn payload(&self) -> Option<PayloadRule<'_>> {
        self.predicate.payload()
    }

    fn bears_on(&self) -> Bears<'_> {
        self.predicate.bears_on()
    }

    fn rank(&self) -> usize {
        self.rank
    }
}

/// Reads a predicate's parameters; the number is its place in the order of judging.
type Read = fn(&Parameters<'_>, usize) -> Result<Arc<dyn Check>, Unread>;

/// One line of the catalogue.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) read: Read,
    pub(super) fits: fn(&Model<'_>) -> Option<Vec<String>>,
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
    #[cfg(test)]
    pub(super) examples: fn() -> Vec<Example>,
}

impl Entry {
    pub(super) const fn of<T: Predicate>() -> Self {
        Self {
            name: T::NAME,
            read: |parameters, rank| {
                let predicate = Box::new(parameters.read::<T>()?);
                Ok(Arc::new(Loaded { predicate, rank }))
            },
            fits: T::fits,
            schema: |generator| generator.subschema_for::<T>(),
            #[cfg(test)]
            examples: T::examples,
        }
    }
}
