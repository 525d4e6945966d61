//! Finds the resources of an OpenAPI document from its paths and response schemas.
//!
//! - A path that ends with a parameter, such as `/rooms/{roomId}`, addresses one resource. The path without that parameter
//!   addresses the collection of such resources.
//! - A resource has parents if its path begins with the path of other resources: `/rooms/{roomId}/bookings/{bookingId}`.
//! - The response schema of the resource becomes a schema file. If other operations return the same resource with another
//!   schema, that schema becomes a further file for it.

use crate::answers::Answer;
use crate::answers::Shape;
use crate::api::{Api, Operation, Place, first_free, names_in, plain, properties};
use crate::schema::{Schemas, types_of};
use conformant_base::json::join;
use conformant_rulebook::kebab;
use std::collections::{BTreeMap, BTreeSet};

/// Endings of schema names that are removed: `RoomResponse` is the schema of a room.
const ENDINGS: &str =
    "response dto out read resource representation model schema view entity object details";

/// Names of the field that identifies a resource. A field that refers to a resource ends with one of them: `customerId`.
const KEY_NAMES: [&str; 4] = ["id", "uuid", "key", "sid"];

/// A resource that a path of the document addresses. Operations are indexes into those of the document.
pub(crate) struct Resource<'d> {
    /// Name of its schema file.
    pub(crate) name: String,
    pub(crate) shape: Shape<'d>,
    pub(crate) item_path: String,
    /// The path of its collection.
    pub(crate) collection: String,
    /// The last path parameter, which selects the resource.
    pub(crate) parameter: String,
    /// The pointer to the field that identifies it, if one is known.
    pub(crate) key: Option<String>,
    /// The parents in its path, outermost first. Empty if one of them is unknown.
    pub(crate) parents: Vec<Parent>,
    pub(crate) creator: Option<usize>,
    pub(crate) list: Option<usize>,
    pub(crate) fetch: Option<usize>,
    pub(crate) update: Option<usize>,
    pub(crate) replace: Option<usize>,
    pub(crate) delete: Option<usize>,
}

/// A parent of a resource.
#[derive(Clone)]
pub(crate) struct Parent {
    /// Index of the resource.
    pub(crate) resource: usize,
    /// The pointer to the field of the child that has the key of the parent, or else the name of the path parameter.
    pub(crate) field: String,
    /// The path parameter that selects the parent.
    pub(crate) parameter: String,
}

/// A schema file of the rulebook.
pub(crate) struct SchemaFile<'d> {
    pub(crate) shape: Shape<'d>,
    /// The resource that it describes, if any.
    pub(crate) shown: Option<ShownResource>,
    /// The parents with the fields that they have in this schema. `None` if they are those of the resource.
    pub(crate) parents: Option<Vec<Parent>>,
    /// Whether it describes a rejection.
    pub(crate) is_error: bool,
}

/// A resource in a representation.
#[derive(Clone)]
pub(crate) struct ShownResource {
    /// Index of the resource.
    pub(crate) resource: usize,
    /// The pointer to the field that identifies it there.
    pub(crate) key: String,
}

/// All resources and schema files of a document.
pub(crate) struct Resources<'d> {
    pub(crate) all: Vec<Resource<'d>>,
    pub(crate) schema_files: BTreeMap<String, SchemaFile<'d>>,
    /// By operation: the schema file of its response or of the items of its list.
    pub(crate) response_schemas: Vec<Option<String>>,
    /// By operation: the schema file of its rejections.
    pub(crate) error_schemas: Vec<Option<String>>,
    /// What a person must decide, one text for each decision.
    pub(crate) decisions: Vec<String>,
}

/// A kebab-case name as words: `order line`.
pub(crate) fn noun(name: &str) -> String {
    name.replace('-', " ")
}

/// A kebab-case name as words with the article: `an order line`.
pub(crate) fn with_article(name: &str) -> String {
    let noun = noun(name);
    match noun.starts_with(['a', 'e', 'i', 'o']) {
        true => format!("an {noun}"),
        false => format!("a {noun}"),
    }
}

/// The singular of an English plural, by its ending.
fn singular(word: &str) -> String {
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() > 1) {
        return format!("{stem}y");
    }
    for ending in ["sses", "xes", "ches", "shes"] {
        if word.ends_with(ending) {
            return word[..word.len() - 2].to_owned();
        }
    }
    match word
        .strip_suffix('s')
        .filter(|stem| stem.len() > 1 && !stem.ends_with(['s', 'u', 'i']))
    {
        Some(stem) => stem.to_owned(),
        None => word.to_owned(),
    }
}

/// The name of a schema file: from the name of the schema, or else from the last fixed segment of the path.
fn file_name(shape: &Shape<'_>, path: &str) -> String {
    let mut name = match &shape.component {
        Some(component) => kebab(component),
        None => {
            let literal = path
                .rsplit('/')
                .find(|s| !s.is_empty() && !s.starts_with('{'));
            singular(&kebab(literal.unwrap_or("resource")))
        }
    };
    for ending in ENDINGS.split(' ') {
        let stem = name.strip_suffix(ending);
        if let Some(stem) = stem.and_then(|stem| stem.strip_suffix('-')) {
            name = stem.to_owned();
        }
    }
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    if starts_well {
        name
    } else {
        format!("type-{name}")
    }
}

/// The paths of the parents of a path, outermost first: those of its beginnings that end with a parameter.
fn parent_paths(path: &str) -> Vec<&str> {
    let ends = path.match_indices('}').map(|(at, _)| &path[..=at]);
    ends.filter(|parent| parent.len() < path.len()).collect()
}

/// Splits the path of a resource into the path of its collection and the last parameter. `None` for other paths.
fn split_item_path(path: &str) -> Option<(&str, &str)> {
    let (collection, last) = path.rsplit_once('/')?;
    let name = last.strip_prefix('{')?.strip_suffix('}')?;
    (!name.contains(['{', '}']) && !collection.is_empty()).then_some((collection, name))
}

impl<'d> Resources<'d> {
    pub(crate) fn find(schemas: &Schemas<'d>, api: &Api<'d>) -> Self {
        let mut found = Self {
            all: Vec::new(),
            schema_files: BTreeMap::new(),
            response_schemas: vec![None; api.operations.len()],
            error_schemas: vec![None; api.operations.len()],
            decisions: Vec::new(),
        };
        let mut paths: Vec<&str> = api.operations.iter().map(|o| o.path.as_str()).collect();
        paths.retain(|path| split_item_path(path).is_some());
        paths.sort_by_key(|path| (path.matches('/').count(), *path));
        paths.dedup();
        for path in paths {
            found.add_resource(schemas, api, path);
        }
        for (n, operation) in api.operations.iter().enumerate() {
            found.response_schemas[n] = found.response_schema(schemas, operation);
            if let Some(error) = &operation.error {
                let name = found.free_name(&file_name(error, "/error"), error);
                found
                    .schema_files
                    .entry(name.clone())
                    .or_insert_with(|| SchemaFile {
                        shape: error.clone(),
                        shown: None,
                        parents: None,
                        is_error: true,
                    });
                found.error_schemas[n] = Some(name);
            }
        }
        found.assign_operations(api);
        found
    }

    /// Adds the resource that a path addresses, if an operation returns it.
    fn add_resource(&mut self, schemas: &Schemas<'d>, api: &Api<'d>, path: &str) {
        let Some((collection, parameter)) = split_item_path(path) else {
            return;
        };
        let operation_at = |method: &str, path: &str| {
            let mut operations = api.operations.iter();
            operations.find(|o| o.method == method && o.path == path)
        };
        let single_shape = |o: &Operation<'d>| {
            let Answer::One(shape) = &o.answer else {
                return None;
            };
            Some(shape.clone())
        };
        let item_shape = |o: &Operation<'d>| {
            let Answer::List { items, .. } = &o.answer else {
                return None;
            };
            Some(items.clone())
        };
        let shape = ["get", "put", "patch"]
            .into_iter()
            .find_map(|method| single_shape(operation_at(method, path)?));
        let shape = shape.or_else(|| single_shape(operation_at("post", collection)?));
        let shape = shape.or_else(|| item_shape(operation_at("get", collection)?));
        let Some(shape) = shape else { return };
        let name = file_name(&shape, path);
        let key = key_of(schemas, &shape, &name, parameter);
        if key.is_none() {
            self.decisions.push(format!(
                "{path}: no field of {} holds the value of `{parameter}`; name it in x-identity of schemas/{name}.yaml",
                with_article(&name)
            ));
        }
        let parents = self.parents(schemas, &shape, path);
        let name = self.free_name(&name, &shape);
        let index = self.all.len();
        let is_new = !self.schema_files.contains_key(&name);
        let name = match is_new {
            true => name,
            // The schema also describes the resources at another path: these are a type of their own.
            false => self.other_name(&name, path),
        };
        self.schema_files.insert(
            name.clone(),
            SchemaFile {
                shape: shape.clone(),
                shown: key.clone().map(|key| ShownResource {
                    resource: index,
                    key,
                }),
                parents: None,
                is_error: false,
            },
        );
        self.all.push(Resource {
            name,
            shape,
            item_path: path.to_owned(),
            collection: collection.to_owned(),
            parameter: parameter.to_owned(),
            key,
            parents,
            creator: None,
            list: None,
            fetch: None,
            update: None,
            replace: None,
            delete: None,
        });
    }

    /// The parents in a path, with the fields of the child that refer to them. Empty if one of them is unknown.
    fn parents(&self, schemas: &Schemas<'d>, shape: &Shape<'d>, path: &str) -> Vec<Parent> {
        let mut parents = Vec::new();
        for parent_path in parent_paths(path) {
            let mut known = self.all.iter().enumerate();
            let Some((n, resource)) =
                known.find(|(_, r)| r.item_path == parent_path && r.key.is_some())
            else {
                return Vec::new();
            };
            let parameter = names_in(parent_path)
                .last()
                .copied()
                .unwrap_or_default()
                .to_owned();
            let field = parent_field(schemas, shape, &resource.name, &parameter);
            parents.push(Parent {
                resource: n,
                field: field.unwrap_or_else(|| parameter.clone()),
                parameter,
            });
        }
        parents
    }

    /// The name for a schema file. It is changed if a file with another schema has that name.
    fn free_name(&self, name: &str, shape: &Shape<'d>) -> String {
        first_free(name, |name| {
            self.schema_files.get(name).is_none_or(|taken| {
                taken.shape.part.pointer == shape.part.pointer || taken.shape.is_same(shape)
            })
        })
    }

    /// A free name for a resource whose schema file has the name of another resource: with the name of its parent.
    fn other_name(&self, name: &str, path: &str) -> String {
        let parent_path = parent_paths(path).last().copied().unwrap_or_default();
        let parent = self.all.iter().find(|r| r.item_path == parent_path);
        let base = match parent {
            Some(parent) => format!("{}-{name}", parent.name),
            None => format!("{name}-2"),
        };
        first_free(&base, |name| !self.schema_files.contains_key(name))
    }

    /// The schema file of an operation's response, added if it is new. `None` if the response has no schema.
    fn response_schema(
        &mut self,
        schemas: &Schemas<'d>,
        operation: &Operation<'d>,
    ) -> Option<String> {
        let (shape, is_list) = match &operation.answer {
            Answer::One(shape) => (shape.clone(), false),
            Answer::List { items, .. } => (items.clone(), true),
            Answer::Nothing | Answer::Other => return None,
        };
        let path = operation.path.as_str();
        let is_same = |r: &Resource<'_>| r.shape.is_same(&shape);
        let by_path = self
            .all
            .iter()
            .position(|r| r.item_path == path || r.collection == path);
        let below = || {
            let mut all = self.all.iter().enumerate();
            all.find(|(_, r)| path.starts_with(&format!("{}/", r.item_path)) && is_same(r))
                .map(|(n, _)| n)
        };
        let by_type = || self.all.iter().position(is_same).filter(|_| !is_list);
        // A list at another path may contain only some of the resources.
        let index = by_path.or_else(below).or_else(by_type);
        let index = index.filter(|&n| !is_list || self.all[n].collection == path);
        let name = match index {
            Some(n)
                if is_same(&self.all[n])
                    || self.all[n].shape.part.pointer == shape.part.pointer =>
            {
                return Some(self.all[n].name.clone());
            }
            Some(n) => {
                let name = file_name(&shape, path);
                if name == self.all[n].name {
                    let suffix = if is_list { "item" } else { "answer" };
                    format!("{name}-{suffix}")
                } else {
                    name
                }
            }
            None if is_list => format!("{}-item", operation.id),
            None => file_name(&shape, path),
        };
        let name = self.free_name(&name, &shape);
        let shown = index.and_then(|n| {
            let resource = &self.all[n];
            let key = key_of(schemas, &shape, &resource.name, &resource.parameter)?;
            resource
                .key
                .as_ref()
                .map(|_| ShownResource { resource: n, key })
        });
        let parents = shown.as_ref().map(|shown| {
            let parents = self.all[shown.resource].parents.iter().cloned();
            let parents = parents.map(|parent| {
                let name = &self.all[parent.resource].name;
                let field = parent_field(schemas, &shape, name, &parent.parameter);
                Parent {
                    field: field.unwrap_or_else(|| parent.parameter.clone()),
                    ..parent
                }
            });
            parents.collect()
        });
        self.schema_files
            .entry(name.clone())
            .or_insert_with(|| SchemaFile {
                shape,
                shown,
                parents,
                is_error: false,
            });
        Some(name)
    }

    /// Sets for each resource the operations that create, list, fetch, change and delete it.
    fn assign_operations(&mut self, api: &Api<'d>) {
        // By resource: the operations that return it.
        let mut returning: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (n, name) in self.response_schemas.iter().enumerate() {
            let file = name.as_ref().and_then(|name| self.schema_files.get(name));
            if let Some(shown) = file.and_then(|file| file.shown.as_ref()) {
                returning.entry(shown.resource).or_default().insert(n);
            }
        }
        for (index, resource) in self.all.iter_mut().enumerate() {
            let no_operations = BTreeSet::new();
            let returning = returning.get(&index).unwrap_or(&no_operations);
            let find = |method: &str, path: &str, must_return_it: bool| {
                let mut all = api.operations.iter().enumerate();
                all.find(|(n, o)| {
                    o.method == method
                        && o.path == path
                        && (!must_return_it || returning.contains(n))
                })
                .map(|(n, _)| n)
            };
            resource.creator = find("post", &resource.collection, true);
            resource.fetch = find("get", &resource.item_path, true);
            resource.update = find("patch", &resource.item_path, false);
            resource.replace = find("put", &resource.item_path, false);
            resource.delete = find("delete", &resource.item_path, false);
            let list = find("get", &resource.collection, true);
            resource.list =
                list.filter(|n| matches!(api.operations[*n].answer, Answer::List { .. }));
        }
    }

    /// The resource of an operation with this path: the one at the path, or else the innermost one whose path it begins
    /// with.
    pub(crate) fn resource_of_path(&self, path: &str) -> Option<usize> {
        let exact = self
            .all
            .iter()
            .position(|r| r.item_path == path || r.collection == path);
        exact.or_else(|| {
            let mut below: Vec<usize> = (0..self.all.len())
                .filter(|&n| path.starts_with(&format!("{}/", self.all[n].item_path)))
                .collect();
            below.sort_by_key(|&n| self.all[n].item_path.len());
            below.last().copied()
        })
    }

    /// The parameters of a path, each with the resource that it selects, if that is known.
    pub(crate) fn resources_in_path(&self, path: &str) -> Vec<(String, Option<usize>)> {
        let mut item_paths: Vec<&str> = parent_paths(path);
        if path.ends_with('}') {
            item_paths.push(path);
        }
        item_paths
            .iter()
            .map(|item_path| {
                let name = names_in(item_path)
                    .last()
                    .copied()
                    .unwrap_or_default()
                    .to_owned();
                let resource = self
                    .all
                    .iter()
                    .position(|r| r.item_path == **item_path && r.key.is_some());
                (name, resource)
            })
            .collect()
    }

    /// The resource that a field or parameter of this name refers to: `customerId`, `customer_uuid`.
    pub(crate) fn resource_of_reference(&self, name: &str) -> Option<usize> {
        let wanted = plain(name);
        self.all.iter().position(|r| {
            let end = wanted.strip_prefix(&plain(&r.name));
            r.key.is_some() && end.is_some_and(|end| KEY_NAMES.contains(&end))
        })
    }
}

/// The fields of a shape whose value is one text or number, with their pointers.
fn scalars<'d>(schemas: &Schemas<'d>, shape: &Shape<'d>) -> Vec<(&'d str, String)> {
    let mut all = properties(schemas.doc, &shape.part);
    if let Some(key) = shape.inside.strip_prefix('/') {
        let inner = all.into_iter().find(|(name, _)| *name == key);
        all = inner.map_or_else(Vec::new, |(_, inner)| properties(schemas.doc, &inner));
    }
    all.retain(|(_, part)| {
        let schema = schemas.request(part);
        let types = types_of(&schema);
        types.iter().any(|t| matches!(*t, "string" | "integer"))
            || types.is_empty() && schema.get("enum").is_none()
    });
    let names = all.into_iter().map(|(name, _)| name);
    names
        .map(|name| (name, join(&shape.inside, name)))
        .collect()
}

/// The pointer to the field that has the value of a path parameter. The tests run from the most to the least specific one;
/// the first one that a field passes decides.
fn key_of<'d>(
    schemas: &Schemas<'d>,
    shape: &Shape<'d>,
    name: &str,
    parameter: &str,
) -> Option<String> {
    let fields = scalars(schemas, shape);
    let (parameter, resource) = (plain(parameter), plain(name));
    let tests: [&dyn Fn(&str) -> bool; 6] = [
        // The parameter `{roomId}`: `roomId`, then `id` of a room.
        &|field| field == parameter,
        &|field| format!("{resource}{field}") == parameter,
        // Common names, for any parameter: `id`, `roomId`, `uuid`, `sid`, `key`.
        &|field| field == "id",
        &|field| field == format!("{resource}id"),
        &|field| KEY_NAMES.contains(&field),
        // A part of the parameter: `name` for `{roomName}`.
        &|field| field.len() > 1 && parameter.ends_with(field),
    ];
    let found = tests
        .iter()
        .find_map(|test| fields.iter().find(|(field, _)| test(&plain(field))));
    found.map(|(_, at)| at.clone())
}

/// The pointer to the field of a child that has the key of a parent: the name of the path parameter, or the name of the
/// parent with an ending such as `Id`. A field `id` alone is the child's own key.
fn parent_field<'d>(
    schemas: &Schemas<'d>,
    shape: &Shape<'d>,
    parent: &str,
    parameter: &str,
) -> Option<String> {
    let fields = scalars(schemas, shape);
    let (parameter, parent) = (plain(parameter), plain(parent));
    let is_it = |field: &str| {
        field == parameter && !KEY_NAMES.contains(&field)
            || field
                .strip_prefix(parent.as_str())
                .is_some_and(|ending| KEY_NAMES.contains(&ending))
    };
    let found = fields.iter().find(|(field, _)| is_it(&plain(field)));
    found.map(|(_, at)| at.clone())
}

/// Query parameters of an operation.
pub(crate) fn queries<'a, 'd>(
    operation: &'a Operation<'d>,
) -> impl Iterator<Item = &'a crate::api::Parameter<'d>> {
    operation
        .parameters
        .iter()
        .filter(|p| p.place == Place::Query)
}
