//! `x-like: channel.yaml`: a schema file that states only its differences from another one in the same folder. Also parameters
//! that add to a `$ref`.
//!
//! The file's own properties replace those of the base one by one, every other member as a whole. Inherited members have the
//! position of `x-like`.

use super::draft::{Draft, File, Files};
use conformant_yaml::{Content, Member, Node, Span};
use serde_json::Value;

pub(super) const LIKE: &str = "x-like";
/// The reference of a parameter to another one.
const REFERENCE: &str = "$ref";
/// The only member that is merged member by member.
const PROPERTIES: &str = "properties";

/// Expands every schema file with `x-like`.
pub(super) fn expand_all(files: &mut Files, draft: &mut Draft) {
    let alike: Vec<(String, Node)> = files
        .values()
        .filter_map(|file| Some((file.path.clone(), expand(files, file, draft)?)))
        .collect();
    for (path, node) in alike {
        if let Some(file) = files.get_mut(&path) {
            file.node = node;
        }
    }
}

fn expand(files: &Files, file: &File, draft: &mut Draft) -> Option<Node> {
    let name = file.node.get(LIKE)?;
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let named = name.text().unwrap_or_default();
    let base = files.get(&format!("{folder}/{named}"));
    let Some(base) = base.filter(|base| base.node.get(LIKE).is_none() && !named.contains('/'))
    else {
        let message = format!("`{named}` is not a complete schema file in this folder");
        draft.refuse(file.problem_at(name.span, message));
        return None;
    };
    Some(merged(&file.node, &base.node, name.span))
}

/// The base of a file that was read as JSON.
pub fn base_name(own: &Value) -> Option<&str> {
    own.get(LIKE)?.as_str()
}

/// The expanded form of a file with `x-like`.
pub fn expand_json(own: &Value, base: &Value) -> Value {
    let nodes = [own, base].map(Node::from_json);
    merged(&nodes[0], &nodes[1], Span::default()).to_json()
}

/// A parameter with a reference and members of its own, merged.
pub(super) fn merge_reference(own: &Node, base: &Node) -> Node {
    merged(own, base, own.span)
}

/// As `merge_reference`, for JSON; `None` without members of its own.
pub fn merge_reference_json(own: &Value, base: &Value) -> Option<Value> {
    let is_bare = own.as_object().is_none_or(|members| members.len() == 1);
    (!is_bare).then(|| expand_json(own, base))
}

fn merged(own: &Node, base: &Node, place: Span) -> Node {
    let mut members: Vec<Member> = base.members().to_vec();
    for member in &mut members {
        member.key_span = place;
        set_position(&mut member.value, place);
    }
    let is_own = |m: &&Member| m.key != LIKE && m.key != REFERENCE;
    for mut member in own.members().iter().filter(is_own).cloned() {
        match members.iter_mut().find(|m| m.key == member.key) {
            Some(taken) if member.key == PROPERTIES => {
                member.value = merged(&member.value, &taken.value, place);
                *taken = member;
            }
            Some(taken) => *taken = member,
            None => members.push(member),
        }
    }
    Node {
        content: Content::Map(members),
        span: own.span,
    }
}

fn set_position(node: &mut Node, place: Span) {
    node.span = place;
    match &mut node.content {
        Content::List(items) => items.iter_mut().for_each(|item| set_position(item, place)),
        Content::Map(members) => {
            for member in members {
                member.key_span = place;
                set_position(&mut member.value, place);
            }
        }
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => {}
    }
}
