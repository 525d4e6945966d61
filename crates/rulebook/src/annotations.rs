//! Annotations of representations: identity, parents and derived fields. Read from `schemas/`, and checked against the
//! resource types that they name.
//!
//! Invariants that use them are predicates of the judge.

use super::Place;
use super::draft::{Draft, File, members_of};
use super::model::{Kind, Service};
use super::problems::suggest;
use super::service::ServiceIndex;
use conformant_base::json;
use conformant_base::sorted::SortedMap;
use conformant_yaml::Node;
use serde::Deserialize;
use std::collections::BTreeSet;

/// The extensions, in the order of `specs/README.md`.
pub(super) const EXTENSIONS: [&str; 8] = [
    "x-identity",
    "x-parent",
    "x-immutable",
    "x-derived",
    "x-counts",
    "x-steps",
    "x-leads",
    "x-default-from",
];

/// Annotations of a representation; pointers lead into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// The resource that it represents; `None` without one.
    pub identity: Option<Identity>,
    /// What it belongs to, outermost first: the field that names it, or else the path parameter, and its kind.
    pub parents: Vec<(String, String)>,
    /// Fields that are equal in all observations.
    pub immutable: Vec<String>,
    /// Fields that change without being named.
    pub derived: SortedMap<String, Derived>,
    /// Fields that count resources.
    pub counts: SortedMap<String, Counts>,
    /// Fields that change by documented transitions.
    pub steps: SortedMap<String, Vec<Transition>>,
    /// Addresses and SIDs, each with its target.
    pub leads: SortedMap<String, String>,
    /// The field with the default value of a field: `chat/service/FIELD`.
    pub default_from: SortedMap<String, String>,
}

/// The resource of a representation, and its key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The type of the resource; the own type if omitted.
    #[serde(default)]
    pub of: String,
    /// Fields of the key, in every representation.
    pub key: Vec<String>,
    /// Fields whose value a path accepts in place of the key, within the parent.
    #[serde(default)]
    pub names: Vec<String>,
    /// Whether other clients may have the same resource, so that it is never exclusive.
    #[serde(default)]
    pub shared: bool,
    /// Resource types whose creation may end it without naming it.
    #[serde(default, rename = "ended-by")]
    pub ended_by: Vec<String>,
}

/// How a field changes without being named. Written as only the reason, it may change at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Derived {
    /// The reason.
    pub because: String,
    /// The operations, with their service, and hooks that change it if they name the resource; any
    /// of them if omitted.
    #[serde(default)]
    pub by: Vec<String>,
    /// The path parameter that changes its spelling.
    #[serde(default)]
    pub across: Option<String>,
    /// Whether it is unset until it is set once, and then stays.
    #[serde(default)]
    pub once: bool,
}

impl Derived {
    /// Whether it may change at any time.
    pub fn is_free(&self) -> bool {
        self.by.is_empty() && self.across.is_none() && !self.once
    }
}

/// The written form.
#[derive(Deserialize)]
#[serde(untagged)]
enum DerivedFormat {
    Because(String),
    How(Derived),
}

/// The resources that a field counts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// The type of the counted resources, below this one.
    pub of: String,
    /// The field that names the parent of the counted resources; this resource if omitted.
    #[serde(default, rename = "in")]
    pub within: Option<String>,
    /// A condition: the number in this field is above the one in that field.
    #[serde(default)]
    pub above: Option<Above>,
}

/// Two fields: of the counted resource, and of the counting one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Above {
    /// The number of the counted resource.
    pub at: String,
    /// The lower limit, exclusive; null counts all.
    pub than: String,
}

/// One transition of a state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// From this state.
    pub from: String,
    /// To this one.
    pub to: String,
    /// An operation, a hook, or `time`.
    pub by: String,
    /// For `time`: the field with the number of seconds until the transition.
    #[serde(default)]
    pub after: Option<String>,
}

impl Annotations {
    /// The type of the represented resource.
    pub fn of(&self) -> Option<&str> {
        self.identity.as_ref().map(|identity| identity.of.as_str())
    }

    /// Whether its key consists of its parents: a user's channel.
    pub fn is_composed(&self) -> bool {
        self.identity.as_ref().is_some_and(|identity| {
            let mut keys = identity.key.iter();
            keys.all(|key| self.parents.iter().any(|(at, _)| at == key))
        })
    }

    /// How the value at `pointer`, or one above it, changes without being named.
    pub fn derived_at(&self, pointer: &str) -> Option<&Derived> {
        let mut derived = self.derived.iter();
        derived
            .find(|(at, _)| json::within(at, pointer))
            .map(|(_, how)| how)
    }

    /// The transitions of the state at `pointer`.
    pub fn steps_at(&self, pointer: &str) -> Option<&[Transition]> {
        let mut steps = self.steps.iter();
        let (_, steps) = steps.find(|(at, _)| json::within(at, pointer))?;
        Some(steps)
    }

    /// Whether the value at `pointer`, or one above it, changes without being named.
    pub fn is_derived(&self, pointer: &str) -> bool {
        let marked = self.derived.keys();
        let moved = self.counts.keys().chain(self.steps.keys());
        marked.chain(moved).any(|at| json::within(at, pointer))
    }
}

/// Reads the annotations of a schema file.
pub(super) fn read(draft: &mut Draft, file: &File, kind: &str) -> Annotations {
    let mut found = Annotations {
        identity: deserialize::<Identity>(draft, file, &file.node, "x-identity"),
        ..Annotations::default()
    };
    if let Some(identity) = &mut found.identity
        && identity.of.is_empty()
    {
        kind.clone_into(&mut identity.of);
    }
    if let Some(written) = file.node.get("x-parent") {
        for member in written.members() {
            match member.value.text() {
                Some(parent) => found
                    .parents
                    .push((member.key.to_string(), parent.to_owned())),
                None => {
                    let message = "expected the kind of the parent".to_owned();
                    draft.refuse(file.problem_at(member.value.span, message));
                }
            }
        }
    }
    fields(draft, file, &file.node, "", &mut found);
    found
}

fn deserialize<T: serde::de::DeserializeOwned>(
    draft: &mut Draft,
    file: &File,
    node: &Node,
    key: &str,
) -> Option<T> {
    let written = node.get(key)?;
    draft.deserialize(file, written)
}

/// Annotations of the properties below a node.
fn fields(draft: &mut Draft, file: &File, node: &Node, at: &str, found: &mut Annotations) {
    let properties = members_of(node, "properties");
    for property in properties {
        let at = json::join(at, &property.key);
        let node = &property.value;
        if deserialize::<bool>(draft, file, node, "x-immutable") == Some(true) {
            found.immutable.push(at.clone());
        }
        let derived = deserialize::<DerivedFormat>(draft, file, node, "x-derived");
        found.derived.extend(derived.map(|written| {
            let how = match written {
                DerivedFormat::Because(because) => Derived {
                    because,
                    ..Derived::default()
                },
                DerivedFormat::How(how) => how,
            };
            (at.clone(), how)
        }));
        let mut take = |key: &str, to: &mut SortedMap<String, String>| {
            to.extend(deserialize::<String>(draft, file, node, key).map(|text| (at.clone(), text)));
        };
        take("x-leads", &mut found.leads);
        take("x-default-from", &mut found.default_from);
        let counts = deserialize::<Counts>(draft, file, node, "x-counts");
        found
            .counts
            .extend(counts.map(|counts| (at.clone(), counts)));
        let steps = deserialize::<Vec<Transition>>(draft, file, node, "x-steps");
        found.steps.extend(steps.map(|steps| (at.clone(), steps)));
        fields(draft, file, node, &at, found);
        if let Some(items) = node.get("items") {
            fields(draft, file, items, &format!("{at}/*"), found);
        }
    }
}

/// Checks that all names resolve, and that no annotation is without effect.
pub(super) fn check(
    draft: &mut Draft,
    files: &SortedMap<String, File>,
    index: &ServiceIndex,
    (services, kinds): (&SortedMap<String, Service>, &SortedMap<String, Kind>),
) {
    let operations = services
        .values()
        .flat_map(|service| service.operations.values())
        .map(|operation| format!("{}/{}", operation.service, operation.id));
    let hooks = index.hooks().map(|hook| hook.name.clone());
    let movers: BTreeSet<String> = operations.chain(hooks).collect();
    for kind in kinds.values() {
        let path = kind.name.split_once('/');
        let path = path.map(|(service, name)| format!("{service}/schemas/{name}.yaml"));
        let Some(file) = path.and_then(|path| files.get(&path)) else {
            continue;
        };
        let checked = Checked { file, kind, kinds };
        let problems = checked.problems();
        for (at, message) in problems {
            draft.refuse(file.problem(&at, message));
        }
        for (at, by) in checked.movers().filter(|(_, by)| !movers.contains(*by)) {
            let message = format!("there is no operation or hook `{by}`");
            let service = kind.name.split('/').next().unwrap_or_default();
            let own = format!("{service}/{by}");
            let help = if movers.contains(&own) {
                format!("write `{own}`, with its service")
            } else {
                let known = movers.iter().map(String::as_str);
                suggest(by, known).unwrap_or_else(|| "name SERVICE/OPERATION or a hook".to_owned())
            };
            draft.refuse(file.problem(&at, message).help(help));
        }
    }
}

/// A resource type whose annotations are checked.
struct Checked<'a> {
    file: &'a File,
    kind: &'a Kind,
    kinds: &'a SortedMap<String, Kind>,
}

impl Checked<'_> {
    /// Problems with their place in the file.
    fn problems(&self) -> Vec<(String, String)> {
        let about = &self.kind.annotations;
        let mut problems = Vec::new();
        let Some(identity) = &about.identity else {
            for key in EXTENSIONS {
                if self.file.node.get(key).is_some() {
                    let message = format!("`{key}` has no effect without `x-identity`");
                    problems.push((format!("/{key}"), message));
                }
            }
            let marked = about.immutable.iter().chain(about.derived.keys());
            problems.extend(marked.map(|at| {
                let message = "no effect without `x-identity`".to_owned();
                (in_file(at), message)
            }));
            return problems;
        };
        match self.kinds.get(&identity.of).map(|of| of.annotations.of()) {
            Some(of) if of == Some(identity.of.as_str()) => {}
            Some(_) => {
                let message = format!(
                    "{} is itself a representation of another resource type",
                    identity.of
                );
                problems.push(("/x-identity/of".to_owned(), message));
            }
            None => problems.push(("/x-identity/of".to_owned(), unknown(&identity.of))),
        }
        let unknown_ends = identity.ended_by.iter();
        let unknown_ends = unknown_ends.filter(|kind| !self.kinds.contains_key(*kind));
        problems.extend(unknown_ends.map(|k| ("/x-identity/ended-by".to_owned(), unknown(k))));
        let named = identity.key.iter().chain(&identity.names);
        problems.extend(named.filter_map(|at| self.missing("/x-identity", at)));
        for (at, parent) in &about.parents {
            // Without a slash it is the path parameter that names the parent where no field does.
            if at.starts_with('/') {
                problems.extend(self.missing("/x-parent", at));
            }
            let about = self.kinds.get(parent).map(|kind| &kind.annotations);
            if about.is_none_or(|about| about.identity.is_none()) {
                problems.push((json::join("/x-parent", at), unknown(parent)));
            }
        }
        let led = about
            .leads
            .iter()
            .map(|(at, to)| (at, to.trim_end_matches("[]")));
        let counted = about
            .counts
            .iter()
            .map(|(at, counts)| (at, counts.of.as_str()));
        for (at, kind) in led.chain(counted) {
            if !self.kinds.contains_key(kind) {
                problems.push((in_file(at), unknown(kind)));
            }
        }
        for (at, from) in &about.default_from {
            let (kind, field) = from.rsplit_once('/').unwrap_or((from, ""));
            let known = self.kinds.get(kind);
            let leads = known.is_some_and(|k| {
                Place::root(&k.schema)
                    .any()
                    .reaches(&format!("/{field}"))
                    .is_ok()
            });
            if !leads {
                problems.push((in_file(at), format!("`{from}` does not resolve")));
            }
        }
        for at in &about.immutable {
            if about.is_derived(at) {
                let message = "an immutable field cannot be derived, counted or stepped".to_owned();
                problems.push((in_file(at), message));
            }
        }
        problems
    }

    /// What moves fields, each with its place in the file.
    fn movers(&self) -> impl Iterator<Item = (String, &str)> {
        let about = &self.kind.annotations;
        let derived = about.derived.iter().flat_map(|(at, how)| {
            let place = in_file(at);
            let by = how.by.iter().enumerate();
            by.map(move |(n, by)| (format!("{place}/x-derived/by/{n}"), by.as_str()))
        });
        let steps = about.steps.iter().flat_map(|(at, steps)| {
            let place = in_file(at);
            let steps = steps.iter().enumerate();
            steps.map(move |(n, step)| (format!("{place}/x-steps/{n}/by"), step.by.as_str()))
        });
        derived.chain(steps.filter(|(_, by)| *by != "time"))
    }

    fn missing(&self, place: &str, at: &str) -> Option<(String, String)> {
        Place::root(&self.kind.schema)
            .any()
            .reaches(at)
            .err()
            .map(|_| {
                let message = format!("`{at}` does not resolve in {}", self.kind.name);
                (place.to_owned(), message)
            })
    }
}

fn unknown(kind: &str) -> String {
    format!("no resource has the type `{kind}`")
}

/// The pointer to a field's schema in its file.
fn in_file(pointer: &str) -> String {
    json::segments(pointer).fold(String::new(), |at, segment| match segment.as_str() {
        "*" => format!("{at}/items"),
        name => json::join(&format!("{at}/properties"), name),
    })
}
