//! The OpenAPI document: statements about requests, components, and an operation for each method of each path.

use super::keys::{Document, PathItem};
use super::operation::Reader;
use crate::draft::{Draft, File, Files, items_of};
use crate::model::{Kind, Operation};
use crate::schemas::{self, At};
use conformant_base::json;
use conformant_base::sorted::SortedMap;
use conformant_base::source::Source;
use conformant_yaml::Node;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The content of an `openapi.yaml`.
#[derive(Default)]
pub(crate) struct Described {
    pub(crate) operations: SortedMap<String, Operation>,
    pub(crate) kinds: Vec<Kind>,
    /// Statements about the bodies of requests: in our own words, and where.
    pub(crate) bodies: Option<(String, Source)>,
    /// Advice to clients.
    pub(crate) advice: Vec<Advice>,
}

/// Documented advice about the values of some parameters.
pub(crate) struct Advice {
    pub(crate) parameters: Vec<String>,
    /// The pattern of their texts.
    pub(crate) pattern: String,
    pub(crate) says: String,
    pub(crate) source: Source,
}

/// Reads a service's operations and adds their rules.
pub(crate) fn read(draft: &mut Draft, files: &Files, file: &File) -> Described {
    // The typed structs reject unknown keys; values and their places come from the tree.
    let _: Option<Document> = draft.deserialize(file, &file.node);
    let mut described = Described::default();
    derive_components(draft, files, file);
    if let Some(node) = file.node.get("info").and_then(|i| i.get("x-requests")) {
        requests(draft, file, node, &mut described);
    }
    let Some(paths) = file.node.get("paths") else {
        return described;
    };
    for path in paths.members() {
        let at = json::join("/paths", &path.key);
        let _: Option<PathItem> = draft.deserialize(file, &path.value);
        if !path.key.starts_with('/') {
            draft.refuse(file.problem_at(path.key_span, "invalid path: expected a leading `/`"));
        }
        for method in METHODS {
            if let Some(node) = path.value.get(method) {
                let reader = Reader {
                    files,
                    file,
                    item: &path.value,
                    item_at: &at,
                    path: &path.key,
                    method,
                    node,
                    at: format!("{at}/{method}"),
                };
                reader.read(draft, &mut described);
            }
        }
    }
    described
}

/// Statements in `info` about all requests.
fn requests(draft: &mut Draft, file: &File, node: &Node, described: &mut Described) {
    const AT: &str = "/info/x-requests";
    if node.get("description").is_some() {
        let says = draft.says(file, AT, node, "description");
        let source = draft.source(file, AT, node, true);
        described.bodies = source.map(|source| (says, source));
    }
    let listed = items_of(node, "advice");
    for (n, node) in listed.iter().enumerate() {
        let at = format!("{AT}/advice/{n}");
        let says = draft.says(file, &at, node, "description");
        let pattern = node.get("pattern").and_then(Node::text).unwrap_or_default();
        if let Some(fault) = draft.pattern_fault(pattern) {
            draft.refuse(file.problem(&format!("{at}/pattern"), fault));
        }
        let names = items_of(node, "parameters");
        let source = draft.source(file, &at, node, true);
        described.advice.extend(source.map(|source| {
            Advice {
                parameters: names
                    .iter()
                    .filter_map(Node::text)
                    .map(str::to_owned)
                    .collect(),
                pattern: pattern.to_owned(),
                says,
                source,
            }
        }));
    }
}

fn derive_components(draft: &mut Draft, files: &Files, file: &File) {
    let Some(schemas) = file.node.get("components").and_then(|c| c.get("schemas")) else {
        return;
    };
    for member in schemas.members() {
        let at = json::join("/components/schemas", &member.key);
        schemas::derive(draft, files, file, &at, &member.value, At::default());
    }
}
