//! Makes a rulebook folder from an OpenAPI document, and reads its operations for comparison.
//!
//! - Input: the text of an OpenAPI 3.0 or 3.1 document, YAML or JSON, with local references.
//! - Output: the files of one service, the problems of the document with their places, and what was left out.
//! - Everything inferred is marked `basis: inferred`; sources are pointers into the document with their line.
//! - The document is never executed or fetched; size, depth and work are limited.

mod answers;
mod api;
mod auth;
mod document;
mod folder;
mod paging;
mod requests;
mod resources;
mod schema;
mod surface;
mod values;
mod write;

use answers::Answer;
use api::Api;
use conformant_rulebook::{Problem, kebab};
use document::Document;
use folder::Folder;
use paging::Paging;
use resources::Resources;
use schema::Schemas;
use std::collections::BTreeMap;

pub use conformant_yaml::LARGE_BYTES_MAX as BYTES_MAX;
pub use surface::{Surface, SurfaceBody, SurfaceOperation, SurfaceParameter, surface};

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
    let schemas = Schemas::new(&doc);
    let mut api = Api::read(&schemas);
    let resources = Resources::find(&schemas, &api);
    // Ids of rules begin with the name of a resource type or an operation.
    for operation in &mut api.operations {
        if resources.schema_files.contains_key(&operation.id) {
            operation.id = format!("{}-{}", operation.method, operation.id);
        }
    }
    let operations = api.operations.iter().enumerate();
    let paging: BTreeMap<usize, Paging> = operations
        .filter_map(|(n, operation)| {
            let Answer::List { page, key, .. } = &operation.answer else {
                return None;
            };
            Some((n, Paging::of(&schemas, operation, page, key)))
        })
        .collect();
    let service = service_name(&api.title);
    let mut folder = Folder::new(&schemas, (&api, &resources), &paging, &service);
    let openapi = folder.decisions.entry("openapi").or_default();
    openapi.extend(resources.decisions.iter().cloned());
    let files = folder.files();
    let mut paths = files.iter().map(|(path, _)| path);
    if !paths.any(|path| path.ends_with("/service.yaml")) {
        let message = "no GET operation can be judged, so that nothing shows what requests do";
        let problem = doc.problem_at(&doc.root(), message);
        let problem = problem.help("describe at least one GET operation with its response");
        let mut problems = doc.problems();
        problems.push(problem);
        return Err(problems);
    }
    Ok(Imported {
        problems: doc.problems(),
        operations: folder.operation_count(),
        decisions: folder.decisions.values().map(Vec::len).sum(),
        left_out: folder.left_out,
        service: service.clone(),
        files,
    })
}

/// Why a document is of no version that is read.
fn unsupported(doc: &Document) -> Option<Problem> {
    let root = doc.root();
    if !root.is_map() {
        let message = "expected an OpenAPI document: a mapping with the key `openapi`";
        return Some(doc.problem_at(&root, message));
    }
    if let Some(swagger) = root.get("swagger") {
        let version = swagger.shown();
        let message = format!("Swagger {version} is not read: expected OpenAPI 3.0 or 3.1");
        let problem = doc.problem_at(&swagger, message);
        return Some(problem.help("convert the document to OpenAPI 3 first"));
    }
    let Some(openapi) = root.get("openapi") else {
        let message = "the key `openapi` is missing: expected OpenAPI 3.0 or 3.1";
        return Some(doc.problem_at(&root, message));
    };
    let version = openapi.shown();
    let is_read = version.starts_with("3.0") || version.starts_with("3.1");
    (!is_read).then(|| {
        let message = format!("OpenAPI {version} is not read: expected 3.0 or 3.1");
        doc.problem_at(&openapi, message)
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
