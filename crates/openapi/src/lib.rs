//! Makes a rulebook folder from an OpenAPI document.
//!
//! - Input: the text of an OpenAPI 3.0 or 3.1 document, YAML or JSON, with local references.
//! - Output: the files of one service, the problems of the document with their places, and what was left out.
//! - Everything inferred is marked `basis: inferred`; sources are pointers into the document with their line.
//! - The document is never executed or fetched; size, depth and work are limited.

mod api;
mod document;
mod folder;
mod paging;
mod requests;
mod resources;
mod schema;
mod values;
mod write;

use api::{Answer, Api};
use conformant_rulebook::{Problem, kebab};
use document::Document;
use folder::Folder;
use paging::Paging;
use resources::Resources;
use schema::Schemas;
use std::collections::BTreeMap;

pub use conformant_yaml::LARGE_BYTES_MAX as BYTES_MAX;

/// Names of services that mean something else in flags.
const RESERVED: [&str; 3] = ["all", "people", "reference"];

/// What was made of a document.
#[derive(Debug)]
pub struct Imported {
    /// The name of the service, which is the name of its folder.
    pub service: String,
    /// Paths inside the rulebook folder, with their texts.
    pub files: Vec<(String, String)>,
    /// What of the document could not be read as it stands.
    pub problems: Vec<Problem>,
    /// What is not judged, with the reason.
    pub left_out: Vec<String>,
    /// How many operations are judged.
    pub operations: usize,
    /// How many decisions the files list.
    pub decisions: usize,
}

/// Makes the files of a service. `name` stands for the document in problems. The error says why nothing can be made.
pub fn import(name: &str, text: &str) -> Result<Imported, Vec<Problem>> {
    if text.len() > BYTES_MAX {
        let message = format!(
            "the document has {} bytes; at most {BYTES_MAX} are read",
            text.len()
        );
        return Err(vec![Problem::of_file(name, message)]);
    }
    let doc = Document::read(name, text).map_err(|problem| vec![problem])?;
    if let Some(problem) = unsupported(&doc) {
        return Err(vec![problem]);
    }
    let made = {
        let schemas = Schemas::new(&doc);
        let mut api = Api::read(&doc, &schemas);
        let resources = Resources::find(&doc, &schemas, &api);
        // Ids of rules begin with the name of a resource type or an operation.
        for operation in &mut api.operations {
            if resources.kinds.contains_key(&operation.id) {
                operation.id = format!("{}-{}", operation.method, operation.id);
            }
        }
        let paging: BTreeMap<usize, Paging> = api
            .operations
            .iter()
            .enumerate()
            .filter_map(|(n, operation)| {
                let Answer::List { page, key, .. } = &operation.answer else {
                    return None;
                };
                Some((n, Paging::of(&doc, &schemas, operation, page, key)))
            })
            .collect();
        let service = service_name(&api.title);
        let mut folder = Folder::new(&doc, &schemas, (&api, &resources), &paging, &service);
        for decision in &resources.decisions {
            folder
                .decisions
                .entry("openapi")
                .or_default()
                .push(decision.clone());
        }
        let files = folder.files();
        let left_out = std::mem::take(&mut folder.left_out);
        let decisions = folder.decisions.values().map(Vec::len).sum();
        (
            service.clone(),
            files,
            left_out,
            folder.operation_count(),
            decisions,
        )
    };
    let (service, files, left_out, operations, decisions) = made;
    let has_service = files
        .iter()
        .any(|(path, _)| path.ends_with("/service.yaml"));
    if !has_service {
        let root = doc.root();
        let problem = doc
            .problem_at(
                &root,
                "no GET operation can be judged, so that nothing shows what requests do",
            )
            .help("describe at least one GET operation with its response");
        let mut problems = doc.into_problems();
        problems.push(problem);
        return Err(problems);
    }
    Ok(Imported {
        service,
        files,
        problems: doc.into_problems(),
        left_out,
        operations,
        decisions,
    })
}

/// Why a document is of no version that is read.
fn unsupported(doc: &Document) -> Option<Problem> {
    let root = doc.root();
    if !root.is_map() {
        return Some(doc.problem_at(
            &root,
            "expected an OpenAPI document: a mapping with the key `openapi`",
        ));
    }
    if let Some(swagger) = root.get("swagger") {
        let version = swagger
            .node
            .text()
            .map_or_else(|| swagger.to_json().to_string(), str::to_owned);
        let problem = doc.problem_at(
            &swagger,
            format!("Swagger {version} is not read: expected OpenAPI 3.0 or 3.1"),
        );
        return Some(problem.help("convert the document to OpenAPI 3 first"));
    }
    let Some(openapi) = root.get("openapi") else {
        return Some(doc.problem_at(
            &root,
            "the key `openapi` is missing: expected OpenAPI 3.0 or 3.1",
        ));
    };
    let version = openapi
        .node
        .text()
        .map_or_else(|| openapi.to_json().to_string(), str::to_owned);
    let is_read = version.starts_with("3.0") || version.starts_with("3.1");
    (!is_read).then(|| {
        doc.problem_at(
            &openapi,
            format!("OpenAPI {version} is not read: expected 3.0 or 3.1"),
        )
    })
}

/// The name of a service from the title of its document.
fn service_name(title: &str) -> String {
    let slug = kebab(title);
    let mut words: Vec<&str> = slug.split('-').filter(|word| !word.is_empty()).collect();
    while words.len() > 1
        && words.last().is_some_and(|word| {
            ["api", "service", "rest", "server", "http"].contains(word) || is_version(word)
        })
    {
        words.pop();
    }
    words.truncate(3);
    // Names of services and segments of ids have only letters and digits in common.
    let mut name = words.concat();
    name.truncate(40);
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name = format!("api{name}");
    }
    let is_embedded = conformant_specs::file(&format!("{name}/service.yaml")).is_some();
    if is_embedded || RESERVED.contains(&name.as_str()) {
        name.push_str("api");
    }
    name
}

fn is_version(word: &str) -> bool {
    let digits = word.strip_prefix('v').unwrap_or(word);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}
