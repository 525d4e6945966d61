//! References: the file and node that they resolve to, and the representation that a file defines.

use super::COMMON;
use crate::draft::{File, Files};
use crate::problems::suggest;
use crate::spelling::kebab;
use conformant_base::json;
use conformant_yaml::Node;

/// A reference that does not resolve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReferenceError {
    /// To a file outside the rulebook.
    #[error("`{reference}` is outside the rulebook")]
    Outside { reference: String },
    /// To a missing file.
    #[error("`{reference}` names the missing file `{file}`")]
    NoFile {
        reference: String,
        /// The file, from the rulebook's root.
        file: String,
    },
    /// To a missing node of a file.
    #[error(
        "`{reference}` does not resolve: there is no `{segment}` in {file}{}",
        .help.as_ref().map_or_else(String::new, |help| format!("; {help}"))
    )]
    Nothing {
        reference: String,
        /// The missing segment.
        segment: String,
        file: String,
        /// A suggestion.
        help: Option<String>,
    },
}

/// The target of a reference: file path and pointer inside it.
pub(crate) fn target(
    files: &Files,
    from: &str,
    reference: &str,
) -> Result<(String, String), ReferenceError> {
    let (path, pointer) = reference.split_once('#').unwrap_or((reference, ""));
    let full = if path.is_empty() {
        from.to_owned()
    } else {
        join(from, path).ok_or_else(|| ReferenceError::Outside {
            reference: reference.to_owned(),
        })?
    };
    // Rules may name the common definitions without a path.
    let full = if path == COMMON && !files.contains_key(&full) {
        COMMON.to_owned()
    } else {
        full
    };
    let file = files.get(&full).ok_or_else(|| ReferenceError::NoFile {
        reference: reference.to_owned(),
        file: full.clone(),
    })?;
    let mut node = &file.node;
    for segment in json::segments(pointer) {
        node = node
            .get(&segment)
            .or_else(|| node.items().get(segment.parse::<usize>().ok()?))
            .ok_or_else(|| {
                let known = node.members().iter().map(|m| &*m.key);
                ReferenceError::Nothing {
                    reference: reference.to_owned(),
                    segment: segment.clone(),
                    file: full.clone(),
                    help: suggest(&segment, known),
                }
            })?;
    }
    Ok((full, pointer.to_owned()))
}

/// Why a reference never arrives at a schema: it leads from reference to reference, back to one of them.
pub(crate) fn circle(files: &Files, from: &str, reference: &str) -> Option<String> {
    let (mut from, mut next) = (from.to_owned(), reference.to_owned());
    let mut seen = Vec::new();
    loop {
        let at = target(files, &from, &next).ok()?;
        let node = node_at(files.get(&at.0)?, &at.1)?;
        next = node.get("$ref")?.text()?.to_owned();
        from.clone_from(&at.0);
        if seen.contains(&at) {
            let way: Vec<String> = seen
                .iter()
                .map(|(path, at)| format!("{path}#{at}"))
                .collect();
            let way = way.join(" and ");
            return Some(format!(
                "`{reference}` leads back to itself by {way}: expected a schema in one of them"
            ));
        }
        seen.push(at);
    }
}

/// A path relative to the folder of another one.
fn join(from: &str, path: &str) -> Option<String> {
    if path.starts_with('/') || path.contains("://") {
        return None;
    }
    let mut names: Vec<&str> = from.split('/').collect();
    names.pop();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

/// The node of a pointer in a file.
pub(crate) fn node_at<'a>(file: &'a File, pointer: &str) -> Option<&'a Node> {
    json::segments(pointer).try_fold(&file.node, |node, segment| {
        node.get(&segment)
            .or_else(|| node.items().get(segment.parse::<usize>().ok()?))
    })
}

/// Resource type and rule prefix of a file that defines a representation.
pub(crate) fn owner(path: &str) -> Option<(String, String)> {
    let stem = path
        .strip_suffix(".yaml")
        .or_else(|| path.strip_suffix(".json"))?;
    match stem.split('/').collect::<Vec<_>>()[..] {
        [service, "schemas", name] => Some((
            format!("{service}/{name}"),
            format!("{service}/{}", kebab(name)),
        )),
        // Rules name the event without its version.
        ["events", name, version] if version.bytes().all(|b| b.is_ascii_digit()) => Some((
            format!("events/{name}/{version}"),
            format!("events/{}", kebab(name)),
        )),
        _ => None,
    }
}
