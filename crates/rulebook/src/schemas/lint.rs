//! Lints schemas: unknown keys, formats and types, unresolved references.

use super::at::At;
use super::keywords::{EXTENSIONS, FORMATS, PLAIN, SCHEMA_LISTS, SCHEMA_MAPS, SINGLE_SCHEMA};
use super::references::{circle, target};
use crate::draft::{Draft, File, Files};
use crate::problems::suggest;
use conformant_yaml::Node;

pub(super) fn lint(
    draft: &mut Draft,
    files: &Files,
    file: &File,
    pointer: &str,
    node: &Node,
    at: &At,
) {
    if draft.is_sound {
        return;
    }
    for member in node.members() {
        let key = &*member.key;
        let known = || {
            SINGLE_SCHEMA
                .iter()
                .chain(&SCHEMA_LISTS)
                .chain(&SCHEMA_MAPS)
                .chain(&PLAIN)
                .chain(&EXTENSIONS)
        };
        if !known().any(|k| *k == key) {
            let problem = file.problem_at(member.key_span, format!("unknown key `{key}`"));
            draft.refuse(match suggest(key, known().copied()) {
                Some(help) => problem.help(help),
                None => problem.help("specs/README.md lists the extensions"),
            });
        }
    }
    let pattern_problem = node
        .get("pattern")
        .and_then(Node::text)
        .and_then(|pattern| draft.pattern_fault(pattern));
    // A suggestion costs more than all else here.
    let mut check = |key: &str, fault: Option<String>, help: &dyn Fn() -> Option<String>| {
        if let Some(fault) = fault {
            let problem = file.problem(&format!("{pointer}/{key}"), fault);
            draft.refuse(problem.maybe_help(help()));
        }
    };
    if let Some(reference) = node.get("$ref") {
        let fault = match reference.text() {
            Some(text) => target(files, &file.path, text)
                .err()
                .map(|error| error.to_string())
                .or_else(|| circle(files, &file.path, text)),
            None => Some("expected a reference".to_owned()),
        };
        check("$ref", fault, &|| None);
    }
    if pattern_problem.is_some() {
        check("pattern", pattern_problem, &|| None);
    }
    if let Some(format) = node.get("format").and_then(Node::text) {
        let unknown = !FORMATS.contains(&format);
        check(
            "format",
            unknown.then(|| format!("unknown format `{format}`")),
            &|| suggest(format, FORMATS),
        );
    }
    if let Some(types) = node.get("type") {
        let words: Vec<&str> = types
            .text()
            .into_iter()
            .chain(types.items().iter().filter_map(Node::text))
            .collect();
        let known = [
            "null", "boolean", "integer", "number", "string", "array", "object",
        ];
        let fault = if words.is_empty() {
            Some("expected a type or a list of types; `null` is written `\"null\"`".to_owned())
        } else {
            let wrong = words.iter().find(|w| !known.contains(w));
            wrong.map(|w| format!("unknown type `{w}`"))
        };
        check("type", fault, &|| {
            suggest(words.first().unwrap_or(&""), known)
        });
    }
    if let (Some(required), Some(properties)) = (node.get("required"), node.get("properties"))
        && !at.tightening
    {
        for (n, name) in required.items().iter().enumerate() {
            let Some(name) = name.text() else { continue };
            if properties.get(name).is_none() {
                let known = || properties.members().iter().map(|m| &*m.key);
                check(
                    &format!("required/{n}"),
                    Some(format!(
                        "`{name}` is required, but not among the properties"
                    )),
                    &|| suggest(name, known()),
                );
            }
        }
    }
}
