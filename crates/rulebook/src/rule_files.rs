//! Rules and open points in files: read, resolved and checked against operations and resource
//! types.
//!
//! The registry defines predicates.

use super::check::{Check, Parameters, PredicateRegistry};
use super::draft::{Derived, Draft, File, Files, items_of, members_of};
use super::model::{Kind, OpenPointEntry, Origin, Rule, Service, event_version};
use super::names::Resolver;
use super::open_points::OpenPoint;
use super::problems::suggest;
use super::rules;
use super::schemas::{self, At};
use super::spelling::is_id;
use conformant_base::sorted::SortedMap;
use conformant_record::Level;
use conformant_yaml::{Content, Member, Node};

/// The items of the only list in a file, each with its pointer. Other keys are problems.
pub(super) fn list<'a>(
    draft: &mut Draft,
    file: &'a File,
    key: &str,
) -> impl Iterator<Item = (String, &'a Node)> {
    only(draft, file, &[key]);
    let items = items_of(&file.node, key);
    let at = format!("/{key}");
    items
        .iter()
        .enumerate()
        .map(move |(n, node)| (format!("{at}/{n}"), node))
}

/// Reports all other keys of the file as problems.
pub(super) fn only(draft: &mut Draft, file: &File, keys: &[&str]) {
    if file.node.members().is_empty() {
        let message = format!("expected a mapping with {}", keys.join(", "));
        draft.refuse(file.problem("", message));
    }
    for Member { key, key_span, .. } in file.node.members() {
        if !keys.contains(&&**key) {
            let problem = file.problem_at(*key_span, format!("unknown key `{key}`"));
            draft.refuse(problem.maybe_help(suggest(key, keys.iter().copied())));
        }
    }
}

/// Reports an id that is not of its service in kebab case as a problem.
pub(super) fn check_id(draft: &mut Draft, file: &File, pointer: &str, id: &str) {
    let at = format!("{pointer}/id");
    if !is_id(id) {
        let message = format!("invalid id `{id}`: expected a path in kebab case");
        draft.refuse(
            file.problem(&at, message)
                .help("such as `chat/channel/unique-name`"),
        );
    } else if id.split('/').next() != Some(file.service()) {
        let message = format!("`{id}` is in the folder of {}", file.service());
        let help = format!("ids in this folder begin with `{}/`", file.service());
        draft.refuse(file.problem(&at, message).help(help));
    }
}

/// Reads the rules of one file; they are checked once all operations and resource types are known.
pub(super) fn read_rules(
    draft: &mut Draft,
    files: &Files,
    file: &File,
    registry: &dyn PredicateRegistry,
    current: &SortedMap<String, String>,
) {
    let items: Vec<_> = list(draft, file, "rules").collect();
    for (at, node) in items {
        let Some(written) = draft.deserialize::<rules::Rule>(file, node) else {
            continue;
        };
        check_id(draft, file, &at, &written.id);
        let Some(source) = draft.resolve(file, &format!("{at}/source"), &written.source) else {
            continue;
        };
        let Some(check) = check(draft, files, file, &at, node, (registry, current)) else {
            continue;
        };
        let rule = Derived {
            id: written.id,
            says: written.says,
            source,
            level: written.level,
            basis: written.basis,
            origin: Origin::Written(check),
        };
        let rule: Rule = rule.rule(file, &at);
        draft.add(file, &format!("{at}/id"), rule);
    }
}

/// The predicate of a rule, with its parameters.
fn check(
    draft: &mut Draft,
    files: &Files,
    file: &File,
    at: &str,
    node: &Node,
    (registry, current): (&dyn PredicateRegistry, &SortedMap<String, String>),
) -> Option<Check> {
    let node = node.get("check")?;
    let [member] = node.members() else {
        let message = "expected a mapping with exactly one key, the predicate";
        draft.refuse(file.problem_at(node.span, message));
        return None;
    };
    let at = format!("{at}/check/{}", member.key);
    let parameters = self_contained(draft, files, file, &at, &member.value);
    let former = registry.renamed(&member.key, &parameters.to_json());
    let (name, parameters) = match former {
        Some((name, Some(changed))) => (name, Node::from_json(&changed)),
        Some((name, None)) => (name, parameters),
        None => (&*member.key, parameters),
    };
    let known = registry.names();
    if !known.contains(&name) {
        let span = member.key_span;
        draft.unknown(file, span, "predicate", name, known.iter().copied());
        return None;
    }
    let of_version = of_current_version(draft, file, &at, &parameters, current);
    let check = draft.deserialize_with(file, &of_version, |node| {
        let read = registry.read(name, &Parameters(node));
        read.map_err(|unread| unread.0)
    })?;
    Some(Check {
        parameters: parameters.to_json(),
        ..check
    })
}

/// Parameters with the current version in place of each event, because rules name events without version.
fn of_current_version(
    draft: &mut Draft,
    file: &File,
    at: &str,
    parameters: &Node,
    current: &SortedMap<String, String>,
) -> Node {
    let mut parameters = parameters.clone();
    if let Content::Map(members) = &mut parameters.content
        && let Some(kind) = members.iter_mut().find(|m| m.key == "kind")
        && let Content::Text(named) = &mut kind.value.content
    {
        if let Some((event, version)) = event_version(named) {
            let message = format!("the rule names version {version} of an event");
            let help = format!("name the event, `events/{event}`: its rules apply to all versions");
            draft.refuse(file.problem(&format!("{at}/kind"), message).help(help));
        }
        if let Some(kind) = current.get(&**named) {
            *named = kind.clone().into();
        }
    }
    parameters
}

/// Parameters with a checked `schema` whose references are resolved.
fn self_contained(
    draft: &mut Draft,
    files: &Files,
    file: &File,
    at: &str,
    parameters: &Node,
) -> Node {
    let mut parameters = parameters.clone();
    if let Content::Map(members) = &mut parameters.content
        && let Some(schema) = members.iter_mut().find(|m| m.key == "schema")
    {
        let at = format!("{at}/schema");
        schemas::derive(draft, files, file, &at, &schema.value, At::aside());
        schema.value = Node::from_json(&schemas::inline(files, file, &schema.value));
    }
    parameters
}

/// Reads the open points of one file; those with `either` become rules.
pub(super) fn read_open_points(
    draft: &mut Draft,
    file: &File,
    points: &mut SortedMap<String, OpenPointEntry>,
    services: &SortedMap<String, Service>,
) {
    let items: Vec<_> = list(draft, file, "open-points").collect();
    for (at, node) in items {
        let Some(point) = draft.deserialize::<OpenPoint>(file, node) else {
            continue;
        };
        check_id(draft, file, &at, &point.id);
        if point.id.split('/').nth(1) != Some("open") {
            let message = format!("invalid id `{}` of an unspecified behavior", point.id);
            let help = format!("open points are named `{}/open/NAME`", file.service());
            draft.refuse(file.problem(&format!("{at}/id"), message).help(help));
        }
        let Some(source) = draft.resolve(file, &format!("{at}/source"), &point.source) else {
            continue;
        };
        let operations = services.get(file.service()).map(|s| &s.operations);
        for (n, observation) in point.observe.iter().enumerate() {
            if let (Some(operation), Some(known)) = (&observation.operation, operations)
                && !known.contains_key(operation)
            {
                let span = file.node.place(&format!("{at}/observe/{n}/operation"));
                let known = known.keys().map(String::as_str);
                draft.unknown(file, span, "operation", operation, known);
            }
        }
        if point.either {
            let rule = Derived {
                id: point.id.clone(),
                says: point.says.clone(),
                source: source.clone(),
                level: Level::Must,
                basis: point.basis,
                origin: Origin::Either,
            };
            draft.add(file, &at, rule.rule(file, &at));
        }
        let entry = OpenPointEntry {
            service: file.service().to_owned(),
            source,
            place: file.place(&at),
            point,
        };
        if let Some(other) = points.insert(entry.point.id.clone(), entry) {
            let message = format!("the id `{}` is taken by {}", other.point.id, other.place);
            draft.refuse(file.problem(&format!("{at}/id"), message));
        }
    }
}

/// Checks the names in the rules of one file: operations, parameters, resource types, pointers.
pub(super) fn check_rules(
    draft: &mut Draft,
    file: &File,
    services: &SortedMap<String, Service>,
    kinds: &SortedMap<String, Kind>,
) {
    let items = items_of(&file.node, "rules");
    for (n, node) in items.iter().enumerate() {
        let Some(id) = node.get("id").and_then(Node::text) else {
            continue;
        };
        let Some(references) = draft
            .rules
            .get(id)
            .and_then(Rule::check)
            .map(|c| c.references.clone())
        else {
            continue;
        };
        // The file may contain a former name of the predicate.
        let check = members_of(node, "check");
        let name = check.first().map_or("", |member| &*member.key);
        Resolver {
            draft,
            file,
            at: format!("/rules/{n}/check/{name}"),
            operations: services.get(file.service()).map(|s| &s.operations),
            kinds,
        }
        .resolve(&references);
    }
}
