//! The check of a rule: its predicate with parameters, as far as the rulebook knows it.
//!
//! - All that the rulebook needs of a predicate is data: what it judges, what it applies to, what it refers to.
//! - The compiled predicate is opaque here. The judge's registry makes it and is the only one that opens it.

use super::model::{Kind, Operation, Service, is_one_event};
use super::names::References;
use conformant_base::sorted::SortedMap;
use conformant_yaml::Fault;
use conformant_yaml::Node;
use conformant_yaml::from_node;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A predicate with its parameters.
#[derive(Clone, Debug)]
pub struct Check {
    /// The name of the predicate in rules.
    pub predicate: &'static str,
    /// Its parameters as written, references resolved.
    pub parameters: Value,
    /// What it judges.
    pub subject: Subject,
    /// What the evidence must contain before it can conclude anything.
    pub applies_to: AppliesTo,
    /// What it requires of one representation on its own, if that is all it requires.
    pub payload: Option<PayloadRule>,
    /// What its parameters refer to.
    pub references: References,
    /// Its place in the order of judging.
    pub order: usize,
    /// The predicate itself.
    pub compiled: Compiled,
}

/// A compiled predicate, opaque to the rulebook.
#[derive(Clone)]
pub struct Compiled(Arc<dyn Any + Send + Sync>);

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compiled")
    }
}

impl Compiled {
    /// Wraps the registry's own type.
    pub fn new<T: Send + Sync + 'static>(predicate: T) -> Self {
        Self(Arc::new(predicate))
    }

    /// The registry's own type.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

/// What a predicate judges.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Representations of a resource type.
    Kind(String),
    /// Operations of the rule's service.
    Operations(Vec<String>),
    /// A parameter of the rule's service, in every operation that takes it.
    Parameter(String),
    /// All responses of the rule's service.
    Service,
    /// Statements in scenario steps that name the rule.
    Steps,
}

impl Subject {
    /// Representations of a resource type.
    pub fn kind(kind: &str) -> Self {
        Self::Kind(kind.to_owned())
    }
}

/// What the evidence must contain before a predicate can conclude anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppliesTo {
    /// A representation of one of these resource types, or a request about one of them.
    Kinds(Vec<String>),
    /// A request to one of these operations of the rule's service.
    Operations(Vec<String>),
    /// A statement that names the rule.
    Steps,
    /// Unknown beforehand.
    Anything,
}

/// What a predicate requires of one representation on its own.
#[derive(Clone, Debug)]
pub enum PayloadRule {
    /// The value at `at`, if present, matches a schema.
    Conforms {
        /// Where, with `*` for items and members.
        at: String,
        /// Self-contained JSON Schema.
        schema: Value,
    },
    /// A field is present exactly when another one has one of these values.
    PresentOnlyWhen {
        /// The field whose presence is judged.
        field: String,
        /// The field that decides.
        when: String,
        /// Values under which `field` is present.
        is: Vec<Value>,
        /// Whether `field` may be absent under those values.
        may_be_absent: bool,
    },
}

/// The predicates that rules may use.
pub trait PredicateRegistry: Sync {
    /// All current names.
    fn names(&self) -> &'static [&'static str];

    /// The current name of a former predicate, with its parameters if they change.
    fn renamed(&self, name: &str, parameters: &Value) -> Option<(&'static str, Option<Value>)>;

    /// A predicate with its parameters.
    fn read(&self, predicate: &str, parameters: &Parameters<'_>) -> Result<Check, ParameterError>;

    /// For an invariant, all subjects that it applies to, as rows name them; `None` for other predicates.
    fn applicable_subjects(&self, invariant: &str, model: &Model<'_>) -> Option<Vec<String>>;
}

/// What the rulebook describes, as far as it is known when rules are read.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    /// Services with their operations.
    pub services: &'a SortedMap<String, Service>,
    /// Resource types.
    pub kinds: &'a SortedMap<String, Kind>,
}

impl<'a> Model<'a> {
    /// The operations of all services.
    pub fn operations(&self) -> impl Iterator<Item = &'a Operation> {
        let services = self.services.values();
        services.flat_map(|service| service.operations.values())
    }
}

/// The parameters of a predicate as they stand in a file.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a>(pub(super) &'a Node);

/// Why parameters could not be read.
#[derive(Debug)]
pub struct ParameterError(pub(super) Fault);

impl Parameters<'_> {
    /// The parameters as their type. An error has its place in the file.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ParameterError> {
        from_node(self.0).map_err(ParameterError)
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    /// The parameters as JSON.
    pub fn to_json(&self) -> Value {
        self.0.to_json()
    }
}

impl Serialize for Check {
    /// As a rule has it: `{PREDICATE: PARAMETERS}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.predicate, &self.parameters)])
    }
}

impl Check {
    /// A check that is not in a file.
    ///
    /// # Panics
    ///
    /// If the registry rejects the parameters.
    pub fn from_json(
        registry: &dyn PredicateRegistry,
        predicate: &str,
        parameters: &Value,
    ) -> Self {
        let node = Node::from_json(parameters);
        registry
            .read(predicate, &Parameters(&node))
            .unwrap_or_else(|unread| panic!("{predicate}: {}", unread.0))
    }

    /// The resource type whose representations it judges, if it judges one.
    pub fn kind(&self) -> Option<&str> {
        match &self.subject {
            Subject::Kind(kind) => Some(kind),
            Subject::Operations(_) | Subject::Parameter(_) | Subject::Service | Subject::Steps => {
                None
            }
        }
    }

    /// Whether it judges representations of that resource type; a rule about an event judges each version.
    pub fn is_about(&self, kind: &str) -> bool {
        let own = self.kind();
        own.is_some_and(|own| own == kind || is_one_event(own, kind))
    }

    /// The resource type whose representations it judges one by one, each on its own.
    pub fn payload_kind(&self) -> Option<&str> {
        self.payload.as_ref().and_then(|_| self.kind())
    }

    /// Whether only scenario steps that name its rule judge it.
    pub fn is_scenario_rule(&self) -> bool {
        self.subject == Subject::Steps
    }
}
