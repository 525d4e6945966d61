//! Traverses a schema: lints it, and adds the rules of its properties.
//!
//! It reads the files as they are written, not `Resolved`: each rule belongs to the line that states it.

use super::at::At;
use super::keywords::{SCHEMA_LISTS, SCHEMA_MAPS, SINGLE_SCHEMA};
use super::lint::lint;
use super::references::{node_at, target};
use crate::draft::{Derived, Draft, File, Files, members_of};
use crate::model::Origin;
use conformant_base::json;
use conformant_record::{Basis, Level};
use conformant_yaml::{Content, Node};

/// Checks a schema and adds the rules of its properties.
pub(crate) fn derive(
    draft: &mut Draft,
    files: &Files,
    file: &File,
    pointer: &str,
    node: &Node,
    mut at: At,
) {
    match &node.content {
        Content::Map(_) => {}
        Content::Bool(_) => return,
        Content::Null | Content::Number(_) | Content::Text(_) | Content::List(_) => {
            draft.refuse(file.problem(pointer, "expected a schema: a mapping, `true` or `false`"));
            return;
        }
    }
    lint(draft, files, file, pointer, node, &at);
    let above = at.other.clone();
    if at.enter(node).is_some() && at.other != above {
        derive_no_other_fields(draft, file, pointer, node, &at);
    }
    for member in node.members() {
        let key = &*member.key;
        let below = json::join(pointer, key);
        if key == "properties" {
            derive_properties(draft, files, file, &below, &member.value, &at);
        } else if SCHEMA_MAPS.contains(&key) {
            for sub in member.value.members() {
                let at = if key == "$defs" {
                    At::default()
                } else {
                    at.restricting()
                };
                derive(
                    draft,
                    files,
                    file,
                    &json::join(&below, &sub.key),
                    &sub.value,
                    at,
                );
            }
        } else if SINGLE_SCHEMA.contains(&key) {
            let at = match key {
                "items" | "additionalProperties" => at.item(),
                _ => at.restricting(),
            };
            derive(draft, files, file, &below, &member.value, at);
        } else if SCHEMA_LISTS.contains(&key) {
            for (n, sub) in member.value.items().iter().enumerate() {
                derive(
                    draft,
                    files,
                    file,
                    &format!("{below}/{n}"),
                    sub,
                    at.restricting(),
                );
            }
        }
    }
}

fn derive_no_other_fields(draft: &mut Draft, file: &File, pointer: &str, node: &Node, at: &At) {
    let Some((id, level)) = at.other.clone() else {
        return;
    };
    // A schema without a source of its own has that of its first property with one, such as the list of a page.
    let listed = members_of(node, "properties");
    let Some(source) = std::iter::once(node)
        .chain(listed.iter().map(|m| &m.value))
        .find(|n| n.get("x-source").is_some())
        .and_then(|n| draft.source(file, pointer, n, false))
    else {
        return;
    };
    let rule = Derived {
        id,
        says: "It has no fields other than the documented ones.".to_owned(),
        source,
        level,
        basis: if level == Level::Must {
            Basis::Stated
        } else {
            Basis::Inferred
        },
        origin: Origin::NoOtherFields {
            kind: at.kind.clone(),
        },
    };
    draft.add(file, pointer, rule.rule(file, pointer));
}

fn derive_properties(
    draft: &mut Draft,
    files: &Files,
    file: &File,
    pointer: &str,
    properties: &Node,
    at: &At,
) {
    for member in properties.members() {
        let below = json::join(pointer, &member.key);
        let inner = if at.kind.is_empty() {
            at.clone()
        } else {
            at.property(&member.key)
        };
        if !at.kind.is_empty() && !at.is_restriction_only(&member.value) {
            derive_property(draft, files, file, &below, &member.value, &inner);
        }
        derive(draft, files, file, &below, &member.value, inner);
    }
}

fn derive_property(
    draft: &mut Draft,
    files: &Files,
    file: &File,
    pointer: &str,
    node: &Node,
    at: &At,
) {
    let extension = draft.extension(file, node);
    // A reference without a source of its own has the source of its target. It has the description of its target if that
    // is in another file.
    let referred = node
        .get("$ref")
        .and_then(Node::text)
        .and_then(|r| target(files, &file.path, r).ok())
        .and_then(|(path, inside)| files.get(&path).map(|f| (f, inside)));
    let (referred_to, pointer_referred_to, node_referred_to) = match referred {
        Some((other, inside)) if node.get("x-source").is_none() => {
            let Some(target) = node_at(other, &inside) else {
                return;
            };
            (other, inside, target)
        }
        Some(_) | None => (file, pointer.to_owned(), node),
    };
    let source = if node.get("x-source").is_none() && node_referred_to.get("x-source").is_none() {
        draft.source(file, pointer, node, true)
    } else {
        draft.source(referred_to, &pointer_referred_to, node_referred_to, true)
    };
    let says = if node.get("description").is_some() {
        draft.says(file, pointer, node, "description")
    } else if node_referred_to.get("description").is_some() && referred_to.path != file.path {
        draft.says(
            referred_to,
            &pointer_referred_to,
            node_referred_to,
            "description",
        )
    } else {
        draft.says(file, pointer, node, "description")
    };
    let Some(source) = source else { return };
    let rule = Derived {
        id: at.prefix.clone(),
        says,
        source,
        level: extension.level.unwrap_or(Level::Must),
        basis: extension.basis.unwrap_or(Basis::Stated),
        origin: Origin::Property {
            kind: at.kind.clone(),
            pointer: at.instance.clone(),
        },
    };
    draft.add(file, pointer, rule.rule(file, pointer));
}
