//! The validated model that everything above reads: rules with their origin, operations, kinds,
//! scenarios, open points. Built by `load`, never changed afterwards.

use super::all_rules::Rules;
use super::annotations::Annotations;
use super::check::Check;
use super::open_points::OpenPoint;
use super::paging::Paging;
use super::rules::Comparison;
use super::scenario::{Group, HappyPath, Scenario};
use super::service::ServiceIndex;
use conformant_base::source::Source;
use conformant_record::{Basis, Level};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The whole rulebook.
#[derive(Debug)]
pub struct Rulebook {
    /// Which rulebook this is; asked for with [`Rulebook::digest`].
    pub edition: Edition,
    /// Every rule, derived and written, by id.
    pub rules: Rules,
    /// What clients are held to, by id: derived from the same places as the rules about services, and
    /// never judged of a service.
    pub requests: BTreeMap<String, Rule>,
    /// Operations and scenarios by service.
    pub services: BTreeMap<String, Service>,
    /// Every open point by id.
    pub open_points: BTreeMap<String, OpenPointEntry>,
    /// Representations by kind (`flow/execution`, `flow/execution[]`, `events/MessageSent/4`).
    pub kinds: BTreeMap<String, Kind>,
    /// Schema version by event type: `com.svc.comms-api.message.sent` -> `events/MessageSent/4`;
    /// `None` where no schema is shown.
    pub event_types: BTreeMap<String, Option<String>>,
    /// What else is known of the services.
    pub index: Arc<ServiceIndex>,
}

/// Which rulebook one is: it takes longer to compute than many commands take for all else, and few tell it.
#[derive(Clone, Debug)]
pub enum Edition {
    /// The one that the program was built with.
    Embedded,
    /// The one whose files have this digest.
    Of(String),
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Kebab-case path that names what is ruled.
    pub id: String,
    /// The folder it belongs to.
    pub service: String,
    /// How binding it is.
    pub level: Level,
    /// What it rests on.
    pub basis: Basis,
    /// Where the document says it.
    pub source: Source,
    /// One line in our own words.
    pub says: String,
    /// File and line in the rulebook where it stands.
    pub place: String,
    /// What makes it a rule.
    pub origin: Origin,
}

/// What makes something a rule; decides which evidence it judges.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all rules with a check are kept for as long as the rulebook"
)]
pub enum Origin {
    /// A property of a representation, `pointer` as `/links/steps`.
    Property {
        /// Resource id such as `flow/execution`, or the operation for a page written inline.
        kind: String,
        /// Where, with `*` for array items.
        pointer: String,
    },
    /// Fields that a representation does not list.
    NoOtherFields {
        /// Resource id.
        kind: String,
    },
    /// The operation is accepted and brings its representation.
    Operation {
        /// Operation id.
        operation: String,
    },
    /// A parameter is required, bounded, honoured.
    Parameter {
        /// Operation id.
        operation: String,
        /// As the document spells it.
        parameter: String,
    },
    /// The operation needs credentials.
    Credentials {
        /// Operation id.
        operation: String,
    },
    /// `meta.key` names the array.
    ListKey {
        /// Operation id.
        operation: String,
    },
    /// A walk yields each item once and ends.
    ListWalk {
        /// Operation id.
        operation: String,
    },
    /// A predicate from `rules/`.
    Written(Check),
    /// One answer of several, kept throughout a run: an open point with `either`.
    Either,
}

/// One service folder.
#[derive(Debug)]
pub struct Service {
    /// The folder's name.
    pub name: String,
    /// Operations by id, without the service.
    pub operations: BTreeMap<String, Operation>,
    /// Groups of steps by name.
    pub groups: BTreeMap<String, Group>,
    /// Happy paths by operation id.
    pub happy: BTreeMap<String, HappyPath>,
    /// Written scenarios by id, each with file and line.
    pub scenarios: BTreeMap<String, (Scenario, String)>,
}

/// One operation of OpenAPI.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Kebab-case id without the service.
    pub id: String,
    /// The service's name.
    pub service: String,
    /// `GET`, `POST`, `DELETE`.
    pub method: String,
    /// `/v1/Flows/{FlowSid}`; empty when `path_from` is given.
    pub path: String,
    /// Configuration key that holds the path because no document shows it.
    pub path_from: Option<String>,
    /// One line in our own words.
    pub summary: String,
    /// Where the document shows it.
    pub source: Source,
    /// True when it needs credentials.
    pub secured: bool,
    /// Path, query, header and body parameters in the document's order.
    pub parameters: Vec<Parameter>,
    /// Media types a body may be sent as; empty without a body.
    pub bodies: Vec<String>,
    /// Whether answers may be XML.
    pub has_xml: bool,
    /// Kind of the accepted answer; `None` where no body is described.
    pub response: Option<String>,
    /// Kind of the refusing answer, where the document shows one (`4XX` in OpenAPI).
    pub error: Option<String>,
    /// The array's name of a list answer; empty where the answer is the array.
    pub list_key: Option<String>,
    /// How the list is read page by page.
    pub paging: Paging,
    /// No document shows that name: the answer itself may tell another.
    pub is_list_key_told: bool,
    /// What it does to its thing.
    pub does: Does,
    /// The kind of its thing as it shows it; nothing where no thing stands behind it.
    pub thing: Option<String>,
}

/// What an operation or a hook does to its thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Does {
    /// Brings a new one.
    Makes,
    /// Brings a new one, or the one that is there already.
    FindsOrMakes,
    /// Changes it.
    Changes,
    /// Ends it.
    Ends,
    /// Shows it.
    Shows,
    /// Shows those of a scope.
    Lists,
}

/// One parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// As the document spells it.
    pub name: String,
    /// Where it goes.
    pub place: Place,
    /// Whether leaving it out is refused.
    pub required: bool,
    /// Its JSON Schema, references resolved one level.
    pub schema: Value,
    /// Where and how it comes back.
    pub echo: Option<Echo>,
    /// Parameters beside which it has a meaning, each with the values that give it one.
    pub beside: BTreeMap<String, Vec<Value>>,
    /// Value that stands when it is left out.
    pub default: Option<Value>,
    /// Id of its rule.
    pub rule: String,
    /// One line in our own words.
    pub description: String,
    /// Where the document shows it.
    pub source: Source,
    /// What its texts match where clients follow the document's advice.
    pub advice: Option<String>,
    /// For a path parameter: the configuration key that supplies it when no earlier step does.
    pub path_from: Option<String>,
    /// Its schema's pattern, compiled when first asked for.
    pub(super) form: OnceLock<Option<regex::Regex>>,
}

/// Where a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// In a header field.
    Header,
    /// In the body.
    Body,
}

/// Where a parameter comes back.
#[derive(Clone, Debug)]
pub struct Echo {
    /// JSON Pointer into the accepted answer.
    pub at: String,
    /// How the two are compared.
    pub compare: Comparison,
    /// Other values that may stand there.
    pub or: Vec<Value>,
}

/// One representation.
#[derive(Debug)]
pub struct Kind {
    /// `flow/execution`, `flow/execution[]`, `events/MessageSent/4`.
    pub name: String,
    /// Self-contained JSON Schema: every `$ref` leads into its own `$defs`.
    pub schema: Value,
    /// What is known of it beside its shape.
    pub about: Annotations,
    /// For a page: the kind of its items and the array's name; `None` for the name when any array
    /// under `meta.key` will do.
    pub page_of: Option<(String, Option<String>)>,
}

/// An open point with its place.
#[derive(Clone, Debug)]
pub struct OpenPointEntry {
    /// The service's name.
    pub service: String,
    /// Resolved source.
    pub source: Source,
    /// As written.
    pub point: OpenPoint,
    /// File and line.
    pub place: String,
}

/// Name and version of an event's representation: `events/MessageSent/4` -> `MessageSent`, 4.
pub fn event_version(kind: &str) -> Option<(&str, u64)> {
    let (_, event) = kind.split_once('/')?;
    let (name, version) = event.split_once('/')?;
    Some((name, version.parse().ok()?))
}

/// Where a page contains the array of that name; the page itself if the name is empty.
pub fn items_at(key: &str) -> String {
    match key {
        "" => String::new(),
        key => conformant_base::json::join("", key),
    }
}

/// Whether both are versions of one event.
pub fn is_one_event(a: &str, b: &str) -> bool {
    let named = event_version(a).zip(event_version(b));
    named.is_some_and(|((a, _), (b, _))| a == b)
}

impl AsRef<str> for Rule {
    fn as_ref(&self) -> &str {
        &self.id
    }
}

impl Rule {
    /// Its predicate with parameters, if it was not derived from a schema or an operation.
    pub fn check(&self) -> Option<&Check> {
        match &self.origin {
            Origin::Written(check) => Some(check),
            Origin::Property { .. }
            | Origin::NoOtherFields { .. }
            | Origin::Operation { .. }
            | Origin::Parameter { .. }
            | Origin::Credentials { .. }
            | Origin::ListKey { .. }
            | Origin::ListWalk { .. }
            | Origin::Either => None,
        }
    }

    /// Where the property stands that it is about, `*` for array items.
    pub fn pointer(&self) -> Option<&str> {
        match &self.origin {
            Origin::Property { pointer, .. } => Some(pointer),
            Origin::NoOtherFields { .. }
            | Origin::Operation { .. }
            | Origin::Parameter { .. }
            | Origin::Credentials { .. }
            | Origin::ListKey { .. }
            | Origin::ListWalk { .. }
            | Origin::Written(_)
            | Origin::Either => None,
        }
    }

    /// The kind of representation that it judges, where it judges one.
    pub fn kind(&self) -> Option<&str> {
        match &self.origin {
            Origin::Property { kind, .. } | Origin::NoOtherFields { kind } => Some(kind),
            Origin::Written(written) => written.kind(),
            Origin::Operation { .. }
            | Origin::Parameter { .. }
            | Origin::Credentials { .. }
            | Origin::ListKey { .. }
            | Origin::ListWalk { .. }
            | Origin::Either => None,
        }
    }
}

impl Does {
    /// Whether anything is different afterwards.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Shows | Self::Lists)
    }
}

impl Operation {
    /// Parameters that name things in its path, in order; the format of answers is none.
    pub fn path_names(&self) -> impl Iterator<Item = &Parameter> {
        let in_path = self.parameters.iter().filter(|p| p.place == Place::Path);
        in_path.filter(|p| p.schema.get("enum").is_none())
    }

    /// Where a page contains the items; nothing where the operation is no list.
    pub fn items_at(&self) -> Option<String> {
        self.list_key.as_deref().map(items_at)
    }

    /// The items of a page.
    pub fn items_of<'v>(&self, page: &'v Value) -> &'v [Value] {
        let items = self.items_at().and_then(|at| page.pointer(&at)?.as_array());
        items.map_or(&[], Vec::as_slice)
    }

    /// Whether it takes a parameter with the number of items on a page.
    pub fn has_page_size(&self) -> bool {
        self.list_key.is_some() && self.page_size().is_some()
    }

    /// The parameter with the number of items on a page.
    pub fn page_size(&self) -> Option<&Parameter> {
        let size = self.paging.size.as_deref()?;
        self.parameters.iter().find(|p| p.name == size)
    }

    /// Whether the last name in its path is that of its thing, and not of a parent.
    pub fn names_its_thing(&self) -> bool {
        matches!(self.does, Does::Shows | Does::Changes | Does::Ends)
    }
}

impl Parameter {
    /// Whether it is part of a path that must name something for the operation to be accepted: not
    /// for lists, which may be empty, nor for deletions, which may be repeated.
    pub fn names_a_thing(&self, operation: &Operation) -> bool {
        self.place == Place::Path
            && self.schema.get("enum").is_none()
            && self.echo.is_none()
            && operation.list_key.is_none()
            && operation.method != "DELETE"
            && operation.path_from.is_none()
    }

    /// Whether it has a meaning in a request that sent these values.
    pub fn applies(&self, sent: &BTreeMap<String, Value>) -> bool {
        let has = |(name, values): (&String, &Vec<Value>)| {
            sent.get(name).is_some_and(|value| values.contains(value))
        };
        self.beside.iter().all(has)
    }

    /// Whether a value has the form that its schema states, if it states one.
    pub fn has_form(&self, value: &Value) -> bool {
        let form = self.form.get_or_init(|| {
            let pattern = self.schema.get("pattern").and_then(Value::as_str)?;
            regex::Regex::new(pattern).ok()
        });
        form.as_ref()
            .is_none_or(|form| value.as_str().is_some_and(|text| form.is_match(text)))
    }
}

impl Rulebook {
    /// The rule of that id, about a service or about its clients.
    pub fn rule(&self, id: &str) -> Option<&Rule> {
        self.rules.get(id).or_else(|| self.requests.get(id))
    }

    /// The operation `SERVICE/ID`.
    pub fn operation(&self, service: &str, id: &str) -> Option<&Operation> {
        self.services.get(service)?.operations.get(id)
    }

    /// The operation that a step of a service's story calls: one of its own, or another's as `SERVICE/ID`.
    pub fn called(&self, service: &str, call: &str) -> Option<&Operation> {
        let (service, id) = call.split_once('/').unwrap_or((service, call));
        self.operation(service, id)
    }

    /// The group that a step of a service's story runs, with the service it belongs to: one of its own, or
    /// another's as `SERVICE/NAME`.
    pub fn group<'a>(
        &'a self,
        service: &'a Service,
        name: &str,
    ) -> Option<(&'a Service, &'a Group)> {
        let (service, name) = match name.split_once('/') {
            Some((other, name)) => (self.services.get(other)?, name),
            None => (service, name),
        };
        Some((service, service.groups.get(name)?))
    }

    /// The operation with the full id `SERVICE/ID`.
    pub fn operation_by_id(&self, id: &str) -> Option<&Operation> {
        let (service, id) = id.split_once('/')?;
        self.operation(service, id)
    }

    /// The kind of an event's payload: that of the version which the address of its schema announces, where
    /// it is known, else the current one.
    pub fn announced<'r>(&'r self, current: &'r str, schema: Option<&str>) -> &'r str {
        let version = schema.and_then(|address| Some(address.rsplit_once('/')?.1));
        let announced = version
            .zip(current.rsplit_once('/'))
            .and_then(|(version, (event, _))| {
                let kind = format!("{event}/{version}");
                Some(self.kinds.get_key_value(&kind)?.0)
            });
        announced.map_or(current, String::as_str)
    }

    /// The schema of a kind, or of the page that an operation answers with.
    pub fn schema_of(&self, kind: &str) -> Option<&Value> {
        let page = self.operation_by_id(kind).and_then(|o| o.response.as_ref());
        self.kinds
            .get(page.map_or(kind, String::as_str))
            .map(|k| &k.schema)
    }
}
