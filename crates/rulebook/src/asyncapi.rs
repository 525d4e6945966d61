//! `events/asyncapi.yaml`: the event types, and the current schema version and the compatibility level of each.
//!
//! Only messages and references are read; webhooks and callbacks are documentation.

use super::compatibility::Compatibility;
use super::draft::{Draft, File, Files, members_of};
use super::model::event_version;
use super::schemas;
use conformant_base::json;
use conformant_base::sorted::SortedMap;
use conformant_yaml::{Content, Member, Node};

const KEYS: [&str; 9] = [
    "asyncapi",
    "id",
    "info",
    "defaultContentType",
    "servers",
    "channels",
    "operations",
    "components",
    "tags",
];

/// Key of a message with its compatibility level.
const LEVEL_KEY: &str = "x-compatibility";

/// The event types of a document.
#[derive(Default)]
pub(super) struct Described {
    /// Schema by event type; `None` if none is documented.
    pub(super) types: SortedMap<String, Option<String>>,
    /// Declared level by event: `MessageSent`.
    pub(super) compatibility: SortedMap<String, Compatibility>,
}

pub(super) fn read(draft: &mut Draft, files: &Files, file: &File) -> Described {
    for member in file.node.members() {
        if !KEYS.contains(&&*member.key) {
            draft.unknown(file, member.key_span, "AsyncAPI key", &member.key, KEYS);
        }
    }
    references(draft, files, file, "", &file.node);
    let mut described = Described::default();
    let channels = members_of(&file.node, "channels");
    let holders = channels
        .iter()
        .map(|channel| &channel.value)
        .chain(file.node.get("components"));
    for message in holders
        .filter_map(|holder| holder.get("messages"))
        .flat_map(Node::members)
    {
        // Only event types have dotted names; webhooks and callbacks have none.
        let name = message.value.get("name").and_then(Node::text);
        let Some(name) = name.filter(|name| name.contains('.')) else {
            continue;
        };
        let kind = payload(files, file, &message.value);
        level(draft, file, message, kind.as_deref(), &mut described);
        if described.types.insert(name.to_owned(), kind).is_some() {
            let wrong =
                format!("two messages have the name `{name}`: expected one for each event type");
            draft.refuse(file.problem_at(message.key_span, wrong));
        }
    }
    described
}

/// Reads the compatibility level of a message.
fn level(
    draft: &mut Draft,
    file: &File,
    message: &Member,
    kind: Option<&str>,
    described: &mut Described,
) {
    let Some(written) = message
        .value
        .members()
        .iter()
        .find(|m| &*m.key == LEVEL_KEY)
    else {
        return;
    };
    let mut wrong = |what: String| draft.refuse(file.problem_at(written.key_span, what));
    let Some(level) = written.value.text().and_then(Compatibility::named) else {
        let known = Compatibility::ALL.map(Compatibility::word).join(", ");
        return wrong(format!("invalid {LEVEL_KEY}: expected one of {known}"));
    };
    let Some((event, _)) = kind.and_then(event_version) else {
        return wrong(format!(
            "{LEVEL_KEY} needs a payload with versions, such as MessageSent/4.yaml"
        ));
    };
    let known = described.compatibility.insert(event.to_owned(), level);
    if let Some(other) = known.filter(|other| *other != level) {
        let (a, b) = (other.word(), level.word());
        wrong(format!(
            "{event} has the level {b} here and {a} in another message: expected one level for each event"
        ));
    }
}

fn payload(files: &Files, file: &File, message: &Node) -> Option<String> {
    let payload = message.get("payload")?;
    let reference = payload
        .get("$ref")
        .or_else(|| payload.get("schema").and_then(|s| s.get("$ref")))
        .and_then(Node::text)?;
    let (path, _) = schemas::target(files, &file.path, reference).ok()?;
    schemas::owner(&path).map(|(kind, _)| kind)
}

/// Checks that every reference resolves.
fn references(draft: &mut Draft, files: &Files, file: &File, pointer: &str, node: &Node) {
    match &node.content {
        Content::Map(members) => {
            for member in members {
                let below = json::join(pointer, &member.key);
                match (&*member.key, member.value.text()) {
                    ("$ref", Some(reference)) => {
                        if let Err(error) = schemas::target(files, &file.path, reference) {
                            draft.refuse(file.problem(&below, error.to_string()));
                        }
                    }
                    _ => references(draft, files, file, &below, &member.value),
                }
            }
        }
        Content::List(items) => {
            for (n, item) in items.iter().enumerate() {
                references(draft, files, file, &format!("{pointer}/{n}"), item);
            }
        }
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => {}
    }
}
