//! `events/asyncapi.yaml`: the event types and the current schema version of each.
//!
//! Only messages and references are read; webhooks and callbacks are documentation.

use super::draft::{Draft, File, Files};
use super::schemas;
use conformant_base::json;
use conformant_yaml::{Content, Node};
use std::collections::BTreeMap;

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

/// Schema by event type; `None` if none is documented.
pub(super) fn read(
    draft: &mut Draft,
    files: &Files,
    file: &File,
) -> BTreeMap<String, Option<String>> {
    for member in file.node.members() {
        if !KEYS.contains(&&*member.key) {
            draft.unknown(file, member.key_span, "AsyncAPI key", &member.key, KEYS);
        }
    }
    references(draft, files, file, "", &file.node);
    let mut types = BTreeMap::new();
    let channels = file
        .node
        .get("channels")
        .map(Node::members)
        .unwrap_or_default();
    let holders = channels
        .iter()
        .map(|channel| &channel.value)
        .chain(file.node.get("components"));
    for holder in holders {
        for message in holder
            .get("messages")
            .map(Node::members)
            .unwrap_or_default()
        {
            // Only event types have dotted names; webhooks and callbacks have none.
            let Some(name) = message.value.get("name").and_then(Node::text) else {
                continue;
            };
            if name.contains('.') {
                let kind = payload(files, file, &message.value);
                types.insert(name.to_owned(), kind);
            }
        }
    }
    types
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
                            draft.problems.push(file.problem(&below, error.to_string()));
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
