//! The validated model of the rulebook: rules with their origin, operations, resource types, scenarios, open points.
//! Built by `load`, immutable afterwards.

use super::all_rules::Rules;
use super::annotations::Annotations;
use super::check::Check;
use super::compatibility::Compatibility;
use super::open_points::OpenPoint;
use super::paging::Paging;
use super::rules::Comparison;
use super::scenario::{Group, HappyPath, Scenario};
use super::service::ServiceIndex;
use conformant_base::sorted::SortedMap;
use conformant_base::source::Source;
use conformant_record::{Basis, Level};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

#[derive(Debug, Default)]
pub struct Rulebook {
    /// The identity of this rulebook, for [`Rulebook::digest`].
    pub edition: Edition,
    /// All rules, derived and written.
    pub rules: Rules,
    /// Rules about clients, by id: derived from the same places as the rules about services, and
    /// never judged of a service.
    pub requests: SortedMap<String, Rule>,
    /// Operations and scenarios by service.
    pub services: SortedMap<String, Service>,
    /// Every open point by id.
    pub open_points: SortedMap<String, OpenPointEntry>,
    /// Representations by resource type (`flow/execution`, `flow/execution[]`, `events/MessageSent/4`).
    pub kinds: SortedMap<String, Kind>,
    /// Schema version by event type: `com.svc.comms-api.message.sent` -> `events/MessageSent/4`;
    /// `None` if none is documented.
    pub event_types: SortedMap<String, Option<String>>,
    /// Declared compatibility level by event: `MessageSent`.
    pub compatibility: SortedMap<String, Compatibility>,
    /// The `service.yaml` files.
    pub index: Arc<ServiceIndex>,
}

/// The identity of a rulebook. The digest is computed on demand because many commands do not need it.
#[derive(Clone, Debug, Default)]
pub enum Edition {
    /// The rulebook in the binary.
    #[default]
    Embedded,
    /// The rulebook whose files have this digest.
    Digest(String),
}

#[derive(Clone, Debug)]
pub struct Rule {
    /// Kebab-case path that names the subject.
    pub id: String,
    pub service: String,
    pub level: Level,
    pub basis: Basis,
    pub source: Source,
    /// One line in our own words.
    pub says: String,
    /// File and line in the rulebook.
    pub place: String,
    pub origin: Origin,
}

/// The origin of a rule, which decides the evidence that it is judged on.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all rules with a check are kept for as long as the rulebook"
)]
pub enum Origin {
    /// A property of a representation, `pointer` as `/links/steps`.
    Property {
        /// Resource type such as `flow/execution`, or the operation for a page that is defined inline.
        kind: String,
        /// The pointer, with `*` for array items.
        pointer: String,
    },
    /// Fields that a representation does not list.
    NoOtherFields {
        /// Resource type.
        kind: String,
    },
    /// The operation is accepted and returns its representation.
    Operation {
        /// Operation id.
        operation: String,
    },
    /// The constraints of a parameter.
    Parameter {
        /// Operation id.
        operation: String,
        /// The name in the document.
        parameter: String,
    },
    /// The operation rejects requests without valid credentials.
    Credentials {
        /// Operation id.
        operation: String,
    },
    /// `meta.key` is the name of the array.
    ListKey {
        /// Operation id.
        operation: String,
    },
    /// A walk returns each item once and ends.
    ListWalk {
        /// Operation id.
        operation: String,
    },
    /// A predicate from `rules/`.
    Written(Check),
    /// The same behavior throughout a run: an open point with `either`.
    Either,
}

#[derive(Debug)]
pub struct Service {
    pub name: String,
    /// Operations by id, without the service.
    pub operations: SortedMap<String, Operation>,
    /// Groups of steps by name.
    pub groups: SortedMap<String, Group>,
    /// Happy paths by operation id.
    pub happy: SortedMap<String, HappyPath>,
    /// Written scenarios by id, each with file and line.
    pub scenarios: SortedMap<String, (Scenario, String)>,
}

/// An OpenAPI operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Kebab-case id without the service.
    pub id: String,
    pub service: String,
    /// `GET`, `POST`, `DELETE`.
    pub method: String,
    /// `/v1/Flows/{FlowSid}`; empty when `path_from` is given.
    pub path: String,
    /// Configuration key with the path, if no document states it.
    pub path_from: Option<String>,
    /// One line in our own words.
    pub summary: String,
    pub source: Source,
    /// Whether it needs credentials.
    pub secured: bool,
    /// Path, query, header and body parameters in the document's order.
    pub parameters: Vec<Parameter>,
    /// Media types of the body; empty without a body.
    pub bodies: Vec<String>,
    /// Whether responses may be XML.
    pub has_xml: bool,
    /// Resource type of the accepted response; `None` without a documented body.
    pub response: Option<String>,
    /// Resource type of a rejection, if documented (`4XX` in OpenAPI).
    pub error: Option<String>,
    /// The array's name of a list answer; empty where the answer is the array.
    pub list_key: Option<String>,
    /// How the list is read page by page.
    pub paging: Paging,
    /// Whether the name is undocumented, so that the response may use another one.
    pub is_list_key_undocumented: bool,
    pub does: Action,
    /// The resource type in its response; `None` if it has no resource.
    pub resource: Option<String>,
}

/// The effect of an operation or a hook on its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Creates a resource.
    Makes,
    /// Creates a resource, or returns the existing one.
    FindsOrMakes,
    /// Changes the resource.
    Changes,
    /// Ends the resource.
    Ends,
    /// Returns the resource.
    Shows,
    /// Returns all resources of a scope.
    Lists,
}

#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name in the document.
    pub name: String,
    pub place: ParameterLocation,
    /// Whether requests without it are rejected.
    pub required: bool,
    /// Its JSON Schema, with references resolved one level.
    pub schema: Value,
    /// Where and how it is echoed.
    pub echo: Option<Echo>,
    /// Parameters that it depends on, each with the values that enable it.
    pub beside: SortedMap<String, Vec<Value>>,
    /// The value if it is omitted.
    pub default: Option<Value>,
    /// The id of its rule.
    pub rule: String,
    /// One line in our own words.
    pub description: String,
    pub source: Source,
    /// The pattern that the document advises for its value.
    pub advice: Option<String>,
    /// For a path parameter: the configuration key with its value if no earlier step has one.
    pub path_from: Option<String>,
    /// The compiled pattern of its schema.
    pub(super) form: OnceLock<Option<regex::Regex>>,
}

/// Where a parameter is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParameterLocation {
    Path,
    Query,
    Header,
    Body,
}

/// Where a parameter is echoed.
#[derive(Clone, Debug)]
pub struct Echo {
    /// JSON Pointer into the accepted response.
    pub at: String,
    pub compare: Comparison,
    /// Other values that are accepted there.
    pub or: Vec<Value>,
}

/// A resource type in one representation.
#[derive(Debug)]
pub struct Kind {
    /// `flow/execution`, `flow/execution[]`, `events/MessageSent/4`.
    pub name: String,
    /// Self-contained JSON Schema: every `$ref` leads into its own `$defs`.
    pub schema: Value,
    /// Annotations from its schema file.
    pub annotations: Annotations,
    /// For a page: the resource type of its items and the name of the array; `None` if any array
    /// under `meta.key` is accepted.
    pub page_of: Option<(String, Option<String>)>,
}

/// An open point with its place in the rulebook.
#[derive(Clone, Debug)]
pub struct OpenPointEntry {
    pub service: String,
    pub source: Source,
    pub point: OpenPoint,
    pub place: String,
}

/// The name and version in the resource type of an event: `events/MessageSent/4` -> `MessageSent`, 4.
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
    /// Its predicate with parameters, if it has one.
    pub fn check(&self) -> Option<&Check> {
        let Origin::Written(check) = &self.origin else {
            return None;
        };
        Some(check)
    }

    /// The pointer to the property that it is about, with `*` for array items.
    pub fn pointer(&self) -> Option<&str> {
        let Origin::Property { pointer, .. } = &self.origin else {
            return None;
        };
        Some(pointer)
    }

    /// The resource type of the representation that it judges, if any.
    pub fn kind(&self) -> Option<&str> {
        if let Origin::Property { kind, .. } | Origin::NoOtherFields { kind } = &self.origin {
            return Some(kind);
        }
        self.check()?.kind()
    }
}

impl Action {
    /// Whether it may create a resource.
    pub const fn may_make(self) -> bool {
        matches!(self, Self::Makes | Self::FindsOrMakes)
    }

    /// Whether it changes any resource.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Shows | Self::Lists)
    }
}

impl Operation {
    /// Parameters in its path that name resources, in order; without the response format.
    pub fn path_names(&self) -> impl Iterator<Item = &Parameter> {
        let in_path = self
            .parameters
            .iter()
            .filter(|p| p.place == ParameterLocation::Path);
        in_path.filter(|p| p.schema.get("enum").is_none())
    }

    /// The pointer to the items of a page; `None` if the operation is not a list.
    pub fn items_at(&self) -> Option<String> {
        self.list_key.as_deref().map(items_at)
    }

    /// The items of a page.
    pub fn items_of<'v>(&self, page: &'v Value) -> &'v [Value] {
        let items = self.items_at().and_then(|at| page.pointer(&at)?.as_array());
        items.map_or(&[], Vec::as_slice)
    }

    /// The parameter with the number of items on a page.
    pub fn page_size(&self) -> Option<&Parameter> {
        let size = self.paging.size.as_deref()?;
        self.parameters.iter().find(|p| p.name == size)
    }

    /// Whether the last name in its path is that of its resource, not of a parent.
    pub fn names_its_resource(&self) -> bool {
        matches!(self.does, Action::Shows | Action::Changes | Action::Ends)
    }
}

impl Parameter {
    /// Whether it is part of a path that must name an existing resource: not for lists, which may be
    /// empty, nor for deletions, which may be repeated.
    pub fn names_a_resource(&self, operation: &Operation) -> bool {
        self.place == ParameterLocation::Path
            && self.schema.get("enum").is_none()
            && self.echo.is_none()
            && operation.list_key.is_none()
            && operation.method != "DELETE"
            && operation.path_from.is_none()
    }

    /// Whether it has an effect in a request with these values.
    pub fn applies(&self, sent: &BTreeMap<String, Value>) -> bool {
        let has = |(name, values): (&String, &Vec<Value>)| {
            sent.get(name).is_some_and(|value| values.contains(value))
        };
        self.beside.iter().all(has)
    }

    /// Whether a value matches the schema's pattern, if there is one.
    pub fn has_form(&self, value: &Value) -> bool {
        let form = self.form.get_or_init(|| {
            let pattern = self.schema.get("pattern").and_then(Value::as_str)?;
            regex::Regex::new(pattern).ok()
        });
        let has_pattern = form
            .as_ref()
            .is_none_or(|form| value.as_str().is_some_and(|text| form.is_match(text)));
        has_pattern && value.as_str().is_none_or(|text| self.has_type(text))
    }

    /// Whether a text is a value of the parameter's type, so that a service can be expected to understand it.
    fn has_type(&self, text: &str) -> bool {
        let word = |key: &str| self.schema.get(key).and_then(Value::as_str);
        match (word("type"), word("format")) {
            (Some("integer"), _) => text.parse::<i128>().is_ok(),
            (Some("number"), _) => text.parse::<f64>().is_ok(),
            (Some("boolean"), _) => matches!(text, "true" | "false"),
            (_, Some("date-time")) => conformant_base::instant::instant(text).is_some(),
            _ => true,
        }
    }
}

impl Rulebook {
    /// The rule about a service or about its clients.
    pub fn rule(&self, id: &str) -> Option<&Rule> {
        self.rules.get(id).or_else(|| self.requests.get(id))
    }

    /// The operation `SERVICE/ID`.
    pub fn operation(&self, service: &str, id: &str) -> Option<&Operation> {
        self.services.get(service)?.operations.get(id)
    }

    /// The operations of all services.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        let services = self.services.values();
        services.flat_map(|service| service.operations.values())
    }

    /// The operation that a step of a service's scenario calls: its own, or another one as `SERVICE/ID`.
    pub fn called(&self, service: &str, call: &str) -> Option<&Operation> {
        let (service, id) = call.split_once('/').unwrap_or((service, call));
        self.operation(service, id)
    }

    /// The group that a step of a service's scenario runs, with its service: its own, or another one
    /// as `SERVICE/NAME`.
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

    /// The resource type of an event's payload: the version in the address of its schema, if known,
    /// else the current one.
    pub fn announced_version<'r>(&'r self, current: &'r str, schema: Option<&str>) -> &'r str {
        let version = schema.and_then(|address| Some(address.rsplit_once('/')?.1));
        let announced = version
            .zip(current.rsplit_once('/'))
            .and_then(|(version, (event, _))| {
                let kind = format!("{event}/{version}");
                Some(self.kinds.get_key_value(&kind)?.0)
            });
        announced.map_or(current, String::as_str)
    }

    /// The schema of a resource type, or of the page that an operation returns.
    pub fn schema_of(&self, kind: &str) -> Option<&Value> {
        let page = self.operation_by_id(kind).and_then(|o| o.response.as_ref());
        self.kinds
            .get(page.map_or(kind, String::as_str))
            .map(|k| &k.schema)
    }
}
