//! What an OpenAPI document promises: operations with the schemas of everything that is sent and returned, for comparison.
//!
//! - Schemas are self-contained: references and `allOf` are folded in.
//! - A schema that contains itself is cut where it begins again.

use crate::api::{Api, is_secured, names_in};
use crate::document::{Document, Part};
use crate::schema::{Schemas, Side};
use crate::{service_name, unsupported};
use conformant_rulebook::{Problem, kebab};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const METHODS: [&str; 8] = [
    "get", "post", "put", "patch", "delete", "head", "options", "trace",
];

/// The operations of a document.
#[derive(Debug)]
pub struct Surface {
    /// Name of the service, from the title.
    pub service: String,
    pub operations: Vec<SurfaceOperation>,
    /// What could not be read as it stands.
    pub problems: Vec<Problem>,
}

/// One operation.
#[derive(Debug)]
pub struct SurfaceOperation {
    /// Its id in kebab case, or one from method and path.
    pub id: String,
    pub method: String,
    pub path: String,
    pub is_secured: bool,
    pub parameters: Vec<SurfaceParameter>,
    pub body: Option<SurfaceBody>,
    /// Schemas by status and media type.
    pub answers: BTreeMap<String, BTreeMap<String, Value>>,
}

/// One parameter.
#[derive(Debug)]
pub struct SurfaceParameter {
    pub name: String,
    /// `path`, `query`, `header` or `cookie`.
    pub place: String,
    pub is_required: bool,
    pub schema: Value,
}

/// A request body.
#[derive(Debug)]
pub struct SurfaceBody {
    pub is_required: bool,
    /// Schemas by media type.
    pub media: BTreeMap<String, Value>,
}

impl SurfaceOperation {
    /// Method and path, with the names of path parameters left out.
    pub fn address(&self) -> (String, String) {
        let mut path = self.path.clone();
        for name in names_in(&self.path) {
            path = path.replace(&format!("{{{name}}}"), "{}");
        }
        (self.method.clone(), path)
    }

    /// Names of the path parameters, in order.
    pub fn path_names(&self) -> Vec<&str> {
        names_in(&self.path)
    }
}

/// Reads the operations of an OpenAPI 3.0 or 3.1 document. The error says why nothing can be read.
pub fn surface(name: &str, text: &str) -> Result<Surface, Vec<Problem>> {
    let doc = Document::read(name, text).map_err(|problem| vec![problem])?;
    if let Some(problem) = unsupported(&doc) {
        return Err(vec![problem]);
    }
    let schemas = Schemas::new(&doc);
    let root = doc.root();
    let (mut ids, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    let mut operations = Vec::new();
    for (path, item) in root
        .get("paths")
        .into_iter()
        .flat_map(|paths| paths.members())
    {
        let Some(item) = doc.resolve(&item).filter(|_| path.starts_with('/')) else {
            continue;
        };
        let methods = item.members().filter(|(key, _)| METHODS.contains(key));
        for (method, part) in methods {
            let read = Reader {
                schemas: &schemas,
                root: &root,
                item: &item,
                part: &part,
            };
            let operation = read.operation(method, path);
            let written = part.text("operationId").unwrap_or(&operation.id);
            if !ids.insert(operation.id.clone()) {
                doc.problem(
                    &part,
                    format!(
                        "two operations have the id `{written}`: expected one for each operation"
                    ),
                );
            }
            if addresses.insert(operation.address()) {
                operations.push(operation);
            } else {
                doc.problem(&part, format!("two operations have the address {method} {path}: only the first one is compared"));
            }
        }
    }
    Ok(Surface {
        service: service_name(&Api::title(&doc)),
        operations,
        problems: doc.problems(),
    })
}

struct Reader<'a, 'd> {
    schemas: &'a Schemas<'d>,
    root: &'a Part<'d>,
    item: &'a Part<'d>,
    part: &'a Part<'d>,
}

impl<'d> Reader<'_, 'd> {
    fn operation(&self, method: &str, path: &str) -> SurfaceOperation {
        let written = self.part.text("operationId").map(kebab);
        let id = written.filter(|id| !id.is_empty());
        SurfaceOperation {
            id: id.unwrap_or_else(|| kebab(&format!("{method}-{path}"))),
            method: method.to_owned(),
            path: path.to_owned(),
            is_secured: is_secured(self.root, self.part),
            parameters: self.parameters(),
            body: self.body(),
            answers: self.answers(),
        }
    }

    /// Those of the path, replaced by those of the operation.
    fn parameters(&self) -> Vec<SurfaceParameter> {
        let doc = self.schemas.doc;
        let owners = [self.item, self.part];
        let written = owners
            .into_iter()
            .filter_map(|owner| owner.get("parameters"));
        let mut found: Vec<SurfaceParameter> = Vec::new();
        for part in written
            .flat_map(|list| list.items())
            .filter_map(|part| doc.resolve(&part))
        {
            let (Some(name), Some(place)) = (part.text("name"), part.text("in")) else {
                doc.problem(&part, "a parameter has a `name` and an `in`");
                continue;
            };
            let content = || part.get("content")?.members().next()?.1.get("schema");
            let schema = part.get("schema").or_else(content);
            found.retain(|known| known.name != name || known.place != place);
            found.push(SurfaceParameter {
                name: name.to_owned(),
                place: place.to_owned(),
                is_required: place == "path" || part.is_true("required"),
                schema: self.schema(schema, Side::Request),
            });
        }
        found
    }

    fn body(&self) -> Option<SurfaceBody> {
        let body = self.schemas.doc.resolve(&self.part.get("requestBody")?)?;
        Some(SurfaceBody {
            is_required: body.is_true("required"),
            media: self.media(&body, Side::Request),
        })
    }

    fn answers(&self) -> BTreeMap<String, BTreeMap<String, Value>> {
        let responses = self.part.get("responses").into_iter();
        let responses = responses.flat_map(|responses| responses.members());
        responses
            .filter(|(status, _)| !status.starts_with("x-"))
            .filter_map(|(status, answer)| {
                let answer = self.schemas.doc.resolve(&answer)?;
                Some((status.to_owned(), self.media(&answer, Side::Answer)))
            })
            .collect()
    }

    fn media(&self, owner: &Part<'d>, side: Side) -> BTreeMap<String, Value> {
        let content = owner.get("content").into_iter().flat_map(|c| c.members());
        content
            .map(|(media, part)| {
                let media = media.split(';').next().unwrap_or_default();
                let schema = self.schema(part.get("schema"), side);
                (media.trim().to_ascii_lowercase(), schema)
            })
            .collect()
    }

    fn schema(&self, part: Option<Part<'d>>, side: Side) -> Value {
        part.map_or(json!({}), |part| {
            Value::Object(self.schemas.plain(&part, side))
        })
    }
}
