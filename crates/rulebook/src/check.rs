//! What the rulebook knows of a predicate: its name, its parameters, what they name.
//!
//! Not what it does: that is for whoever judges, who hands the known predicates in as a catalogue.

use super::model::{Kind, Service, is_one_event};
use super::names::Names;
use conformant_yaml::Fault;
use conformant_yaml::Node;
use conformant_yaml::from_node;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

/// A predicate with its parameters.
pub trait Check: Any + Debug + Send + Sync {
    /// Its name in rules.
    fn predicate(&self) -> &'static str;

    /// What it is about.
    fn subject(&self) -> Subject<'_>;

    /// Looks up what its parameters name.
    fn names(&self, names: &mut Names<'_>);

    /// What it asks of one representation by itself, as data; nothing where it asks anything else.
    fn payload(&self) -> Option<PayloadRule<'_>> {
        None
    }

    /// Without which of these it concludes nothing.
    fn bears_on(&self) -> Bears<'_> {
        match self.subject() {
            Subject::Kind(kind) => Bears::Kinds(vec![kind]),
            Subject::Operations(operations) => Bears::Operations(operations),
            Subject::Steps => Bears::Steps,
            Subject::Parameter(_) | Subject::Service => Bears::Anything,
        }
    }

    /// Its place in the order in which predicates judge, where a catalogue gave it one.
    fn rank(&self) -> usize {
        0
    }
}

/// What a predicate is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject<'a> {
    /// Representations of a kind.
    Kind(&'a str),
    /// Operations of the rule's service.
    Operations(Vec<&'a str>),
    /// A parameter of the rule's service, whichever operation takes it.
    Parameter(&'a str),
    /// All that the rule's service answers.
    Service,
    /// What steps of scenarios state and name the rule for.
    Steps,
}

/// What must have come by for a predicate to conclude anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bears<'a> {
    /// A representation of one of these kinds, or a request that is about one of them.
    Kinds(Vec<&'a str>),
    /// A request to one of these operations of the rule's service.
    Operations(Vec<&'a str>),
    /// A statement that names the rule.
    Steps,
    /// That cannot be said beforehand.
    Anything,
}

/// What a predicate asks of one representation of its kind, by nothing but itself.
#[derive(Clone, Copy, Debug)]
pub enum PayloadRule<'a> {
    /// The value at `at`, where there is one, fits a schema.
    Conforms {
        /// Where, with `*` for items and members.
        at: &'a str,
        /// Self-contained JSON Schema.
        schema: &'a Value,
    },
    /// A field is present exactly when another one has one of these values.
    PresentOnlyWhen {
        /// The field that comes and goes.
        field: &'a str,
        /// The field that decides.
        when: &'a str,
        /// Values under which `field` is present.
        is: &'a [Value],
        /// True when its absence under those values is no failure.
        may_be_absent: bool,
    },
}

/// The predicates that rules may use; known above, and handed in.
pub trait Catalogue: Sync {
    /// The names of all.
    fn names(&self) -> &'static [&'static str];

    /// One of them with its parameters.
    fn read(&self, predicate: &str, parameters: &Parameters<'_>) -> Result<Arc<dyn Check>, Unread>;

    /// For a law, the subjects that it fits, as rows name them; nothing for other predicates.
    fn fits(&self, law: &str, model: &Model<'_>) -> Option<Vec<String>>;
}

/// What the rulebook describes, as far as it is read when rules are.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    /// Services with their operations.
    pub services: &'a BTreeMap<String, Service>,
    /// Representations.
    pub kinds: &'a BTreeMap<String, Kind>,
}

/// The parameters of a predicate as they stand in a file.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a>(pub(super) &'a Node);

/// Why parameters could not be read.
#[derive(Debug)]
pub struct Unread(pub(super) Fault);

impl Parameters<'_> {
    /// The parameters as their type; what does not fit knows its place.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Unread> {
        from_node(self.0).map_err(Unread)
    }
}

/// A predicate as a rule has it.
#[derive(Clone, Debug)]
pub struct Written {
    /// What it is.
    pub check: Arc<dyn Check>,
    /// Its parameters as they are written, references resolved.
    pub parameters: Value,
}

impl Serialize for Written {
    /// As a rule has it: `{PREDICATE: PARAMETERS}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.check.predicate(), &self.parameters)])
    }
}

impl Written {
    /// A predicate as no file has it.
    ///
    /// # Panics
    ///
    /// Where the catalogue does not take the parameters.
    pub fn of_json(catalogue: &dyn Catalogue, predicate: &str, parameters: Value) -> Self {
        let node = Node::of_json(&parameters);
        let check = catalogue
            .read(predicate, &Parameters(&node))
            .unwrap_or_else(|unread| panic!("{predicate}: {}", unread.0));
        Self { check, parameters }
    }

    /// The kind of representation that it judges, where it judges one.
    pub fn kind(&self) -> Option<&str> {
        match self.check.subject() {
            Subject::Kind(kind) => Some(kind),
            Subject::Operations(_) | Subject::Parameter(_) | Subject::Service | Subject::Steps => {
                None
            }
        }
    }

    /// Whether it judges representations of that kind; a rule about an event those of each version.
    pub fn is_about(&self, kind: &str) -> bool {
        let own = self.kind();
        own.is_some_and(|own| own == kind || is_one_event(own, kind))
    }

    /// The kind whose representations it judges one by one, by nothing but themselves.
    pub fn payload_kind(&self) -> Option<&str> {
        self.check.payload().and_then(|_| self.kind())
    }

    /// Whether only steps judge it that name its rule.
    pub fn is_story(&self) -> bool {
        self.check.subject() == Subject::Steps
    }
}
