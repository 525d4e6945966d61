//! Rules that are defined in the step that states them.
//!
//! Reads only definitions: `expect` with `id`, and `accepted` or `rejected` with a mapping.
//! The rest of a scenario file is read elsewhere.

use crate::check::{Parameters, PredicateRegistry};
use crate::draft::{Derived, Draft, File, items_of, members_of};
use crate::model::Origin;
use crate::rule_files::check_id;
use crate::rules::Definition;
use conformant_base::json;
use conformant_yaml::{Content, Node};

/// The predicate of rules that only steps judge.
const PREDICATE: &str = "scenario";

/// Adds the rules that a scenario file defines.
pub(super) fn read(draft: &mut Draft, file: &File, registry: &dyn PredicateRegistry) {
    let mut found = Vec::new();
    for (section, lists) in [
        ("groups", &["steps"][..]),
        ("operations", &["setup", "more"]),
    ] {
        for member in members_of(&file.node, section) {
            let at = json::join(&format!("/{section}"), &member.key);
            for list in lists {
                in_steps(member.value.get(list), &format!("{at}/{list}"), &mut found);
            }
        }
    }
    for (n, scenario) in items_of(&file.node, "scenarios").iter().enumerate() {
        let at = format!("/scenarios/{n}/steps");
        in_steps(scenario.get("steps"), &at, &mut found);
    }
    for (at, node) in found {
        define(draft, file, &at, node, registry);
    }
}

fn in_steps<'a>(steps: Option<&'a Node>, at: &str, found: &mut Vec<(String, &'a Node)>) {
    let steps = steps.map(Node::items).unwrap_or_default();
    for (n, step) in steps.iter().enumerate() {
        let at = format!("{at}/{n}");
        let statements = items_of(step, "expect");
        for (n, statement) in statements.iter().enumerate() {
            if statement.get("id").is_some() {
                found.push((format!("{at}/expect/{n}"), statement));
            }
        }
        for key in ["accepted", "rejected"] {
            if let Some(rule) = step.get(key).filter(|rule| !rule.members().is_empty()) {
                found.push((format!("{at}/{key}"), rule));
            }
        }
        in_steps(step.get("between"), &format!("{at}/between"), found);
    }
}

fn define(draft: &mut Draft, file: &File, at: &str, node: &Node, registry: &dyn PredicateRegistry) {
    let mut definition = node.clone();
    if let Content::Map(members) = &mut definition.content {
        members.retain(|member| Definition::KEYS.contains(&&*member.key));
    }
    let Some(written) = draft.deserialize::<Definition>(file, &definition) else {
        return;
    };
    check_id(draft, file, at, &written.id);
    let Some(source) = draft.resolve(file, &format!("{at}/source"), &written.source) else {
        return;
    };
    let parameters = Node::from_json(&serde_json::json!({}));
    let check = draft.deserialize_with(file, &parameters, |node| {
        let read = registry.read(PREDICATE, &Parameters(node));
        read.map_err(|unread| unread.0)
    });
    let Some(check) = check else {
        return;
    };
    let rule = Derived {
        id: written.id,
        says: written.says,
        source,
        level: written.level,
        basis: written.basis,
        origin: Origin::Written(check),
    };
    let rule = rule.rule(file, at);
    draft.add(file, &format!("{at}/id"), rule);
}
