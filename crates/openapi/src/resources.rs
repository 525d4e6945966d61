//! Resources: what paths, identifiers and response schemas show of them.
//!
//! - A path that ends with a parameter addresses one resource; the path before it is its collection.
//! - Paths above it that address resources name its parents.
//! - A schema that another operation uses for the same resource is a further representation of it.

use crate::api::{Answer, Api, Operation, Place, Shape, first_free, names_in, plain, properties};
use crate::schema::{Schemas, types_of};
use conformant_base::json::join;
use conformant_rulebook::kebab;
use std::collections::{BTreeMap, BTreeSet};

/// Endings of component names that say nothing of the resource.
const ENDINGS: [&str; 12] = [
    "-response",
    "-dto",
    "-out",
    "-read",
    "-resource",
    "-representation",
    "-model",
    "-schema",
    "-view",
    "-entity",
    "-object",
    "-details",
];

pub(crate) struct Resource<'d> {
    /// Name of its schema file.
    pub(crate) name: String,
    pub(crate) shape: Shape<'d>,
    pub(crate) item_path: String,
    pub(crate) collection: String,
    /// The path parameter that names it.
    pub(crate) parameter: String,
    /// The field that identifies it.
    pub(crate) key: Option<String>,
    /// What its path names before it, outermost first; nothing where one of those is unknown.
    pub(crate) parents: Vec<Parent>,
    pub(crate) creator: Option<usize>,
    pub(crate) list: Option<usize>,
    pub(crate) fetch: Option<usize>,
    pub(crate) update: Option<usize>,
    pub(crate) replace: Option<usize>,
    pub(crate) delete: Option<usize>,
}

#[derive(Clone)]
pub(crate) struct Parent {
    pub(crate) resource: usize,
    /// The field that names it, or else the path parameter.
    pub(crate) at: String,
    /// The path parameter.
    pub(crate) parameter: String,
}

/// A schema file.
pub(crate) struct Kind<'d> {
    pub(crate) shape: Shape<'d>,
    /// The resource that it shows, and the field that identifies it there.
    pub(crate) shows: Option<(usize, String)>,
    /// Parents that differ from those of the resource.
    pub(crate) parents: Option<Vec<Parent>>,
    /// Whether it describes a rejection.
    pub(crate) is_error: bool,
}

pub(crate) struct Resources<'d> {
    pub(crate) all: Vec<Resource<'d>>,
    pub(crate) kinds: BTreeMap<String, Kind<'d>>,
    /// By operation: the schema file of its response or of the items of its list.
    pub(crate) answers: Vec<Option<String>>,
    /// By operation: the schema file of its rejections.
    pub(crate) errors: Vec<Option<String>>,
    pub(crate) decisions: Vec<String>,
}

/// The words of a kebab-case name.
pub(crate) fn noun(name: &str) -> String {
    name.replace('-', " ")
}

/// A noun with its article.
pub(crate) fn a(name: &str) -> String {
    let noun = noun(name);
    match noun.starts_with(['a', 'e', 'i', 'o']) {
        true => format!("an {noun}"),
        false => format!("a {noun}"),
    }
}

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
    for ending in ENDINGS {
        if let Some(stem) = name.strip_suffix(ending) {
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

/// The paths above a path that end with a parameter, outermost first.
fn item_paths_above(path: &str) -> Vec<&str> {
    let ends = path.match_indices('}').map(|(at, _)| &path[..=at]);
    ends.filter(|above| above.len() < path.len()).collect()
}

/// The collection and the last parameter of a path that addresses one resource.
fn item(path: &str) -> Option<(&str, &str)> {
    let (collection, last) = path.rsplit_once('/')?;
    let name = last.strip_prefix('{')?.strip_suffix('}')?;
    (!name.contains(['{', '}']) && !collection.is_empty()).then_some((collection, name))
}

impl<'d> Resources<'d> {
    pub(crate) fn find(schemas: &Schemas<'d>, api: &Api<'d>) -> Self {
        let mut found = Self {
            all: Vec::new(),
            kinds: BTreeMap::new(),
            answers: vec![None; api.operations.len()],
            errors: vec![None; api.operations.len()],
            decisions: Vec::new(),
        };
        let mut paths: Vec<&str> = api.operations.iter().map(|o| o.path.as_str()).collect();
        paths.retain(|path| item(path).is_some());
        paths.sort_by_key(|path| (path.matches('/').count(), *path));
        paths.dedup();
        for path in paths {
            found.address(schemas, api, path);
        }
        for (n, operation) in api.operations.iter().enumerate() {
            found.answers[n] = found.answer(schemas, operation);
            if let Some(error) = &operation.error {
                let name = found.free_name(&file_name(error, "/error"), error);
                found.kinds.entry(name.clone()).or_insert_with(|| Kind {
                    shape: error.clone(),
                    shows: None,
                    parents: None,
                    is_error: true,
                });
                found.errors[n] = Some(name);
            }
        }
        found.name_operations(api);
        found
    }

    /// The resource that a path addresses, where an operation shows it.
    fn address(&mut self, schemas: &Schemas<'d>, api: &Api<'d>, path: &str) {
        let Some((collection, parameter)) = item(path) else {
            return;
        };
        let at = |method: &str, path: &str| {
            let mut operations = api.operations.iter();
            operations.find(|o| o.method == method && o.path == path)
        };
        let one = |o: &Operation<'d>| {
            let Answer::One(shape) = &o.answer else {
                return None;
            };
            Some(shape.clone())
        };
        let item = |o: &Operation<'d>| {
            let Answer::List { items, .. } = &o.answer else {
                return None;
            };
            Some(items.clone())
        };
        let shape = ["get", "put", "patch"]
            .into_iter()
            .find_map(|method| one(at(method, path)?));
        let shape = shape.or_else(|| one(at("post", collection)?));
        let shape = shape.or_else(|| item(at("get", collection)?));
        let Some(shape) = shape else { return };
        let name = file_name(&shape, path);
        let key = key_of(schemas, &shape, &name, parameter);
        if key.is_none() {
            self.decisions.push(format!(
                "{path}: no field of {} holds the value of `{parameter}`; name it in x-identity of schemas/{name}.yaml",
                a(&name)
            ));
        }
        let parents = self.parents(schemas, &shape, path);
        let name = self.free_name(&name, &shape);
        let index = self.all.len();
        let is_new = !self.kinds.contains_key(&name);
        let name = match is_new {
            true => name,
            // The same type at a second address: another resource type of the same shape.
            false => self.other_name(&name, path),
        };
        self.kinds.insert(
            name.clone(),
            Kind {
                shape: shape.clone(),
                shows: key.clone().map(|key| (index, key)),
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

    fn parents(&self, schemas: &Schemas<'d>, shape: &Shape<'d>, path: &str) -> Vec<Parent> {
        let mut parents = Vec::new();
        for above in item_paths_above(path) {
            let mut known = self.all.iter().enumerate();
            let Some((n, resource)) = known.find(|(_, r)| r.item_path == above && r.key.is_some())
            else {
                return Vec::new();
            };
            let parameter = names_in(above)
                .last()
                .copied()
                .unwrap_or_default()
                .to_owned();
            let at = field_for(schemas, shape, &resource.name, &parameter);
            parents.push(Parent {
                resource: n,
                at: at.unwrap_or_else(|| parameter.clone()),
                parameter,
            });
        }
        parents
    }

    /// The name itself, or another one where a schema of another shape has it.
    fn free_name(&self, name: &str, shape: &Shape<'d>) -> String {
        first_free(name, |name| {
            self.kinds.get(name).is_none_or(|taken| {
                taken.shape.part.pointer == shape.part.pointer || taken.shape.is_same(shape)
            })
        })
    }

    fn other_name(&self, name: &str, path: &str) -> String {
        let above = item_paths_above(path).last().copied().unwrap_or_default();
        let parent = self.all.iter().find(|r| r.item_path == above);
        let base = match parent {
            Some(parent) => format!("{}-{name}", parent.name),
            None => format!("{name}-2"),
        };
        first_free(&base, |name| !self.kinds.contains_key(name))
    }

    /// The schema file of an operation's response, added where it is new.
    fn answer(&mut self, schemas: &Schemas<'d>, operation: &Operation<'d>) -> Option<String> {
        let (shape, is_list) = match &operation.answer {
            Answer::One(shape) => (shape.clone(), false),
            Answer::List { items, .. } => (items.clone(), true),
            Answer::Nothing | Answer::Other => return None,
        };
        let path = operation.path.as_str();
        let is_same = |r: &Resource<'_>| r.shape.is_same(&shape);
        let by_address = self
            .all
            .iter()
            .position(|r| r.item_path == path || r.collection == path);
        let below = || {
            let mut all = self.all.iter().enumerate();
            all.find(|(_, r)| path.starts_with(&format!("{}/", r.item_path)) && is_same(r))
                .map(|(n, _)| n)
        };
        let by_type = || self.all.iter().position(is_same).filter(|_| !is_list);
        // A list at another address may hold some of the resources only.
        let index = by_address.or_else(below).or_else(by_type);
        let index = index.filter(|&n| !is_list || self.all[n].collection == path);
        let name = match index {
            Some(n)
                if is_same(&self.all[n])
                    || self.all[n].shape.part.pointer == shape.part.pointer =>
            {
                return Some(self.all[n].name.clone());
            }
            Some(n) => {
                let own = file_name(&shape, path);
                if own == self.all[n].name {
                    let suffix = if is_list { "item" } else { "answer" };
                    format!("{own}-{suffix}")
                } else {
                    own
                }
            }
            None if is_list => format!("{}-item", operation.id),
            None => file_name(&shape, path),
        };
        let name = self.free_name(&name, &shape);
        let shows = index.and_then(|n| {
            let resource = &self.all[n];
            let key = key_of(schemas, &shape, &resource.name, &resource.parameter)?;
            resource.key.as_ref().map(|_| (n, key))
        });
        let parents = shows.as_ref().map(|(n, _)| {
            let parents = self.all[*n].parents.iter().cloned();
            let parents = parents.map(|parent| {
                let named = &self.all[parent.resource].name;
                let at = field_for(schemas, &shape, named, &parent.parameter);
                Parent {
                    at: at.unwrap_or_else(|| parent.parameter.clone()),
                    ..parent
                }
            });
            parents.collect()
        });
        self.kinds.entry(name.clone()).or_insert_with(|| Kind {
            shape,
            shows,
            parents,
            is_error: false,
        });
        Some(name)
    }

    /// Says of each resource which operations create, list, show, change and delete it.
    fn name_operations(&mut self, api: &Api<'d>) {
        let mut shown: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (n, answer) in self.answers.iter().enumerate() {
            let kind = answer.as_ref().and_then(|name| self.kinds.get(name));
            if let Some((resource, _)) = kind.and_then(|kind| kind.shows.as_ref()) {
                shown.entry(*resource).or_default().insert(n);
            }
        }
        for (index, resource) in self.all.iter_mut().enumerate() {
            let nothing = BTreeSet::new();
            let shows = shown.get(&index).unwrap_or(&nothing);
            let find = |method: &str, path: &str, needs_answer: bool| {
                let mut all = api.operations.iter().enumerate();
                all.find(|(n, o)| {
                    o.method == method && o.path == path && (!needs_answer || shows.contains(n))
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

    /// The resource that an operation is about, by its address.
    pub(crate) fn at(&self, path: &str) -> Option<usize> {
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

    /// The resource that each path parameter of an operation names, where one is known.
    pub(crate) fn named(&self, path: &str) -> Vec<(String, Option<usize>)> {
        let mut ends: Vec<&str> = item_paths_above(path);
        if path.ends_with('}') {
            ends.push(path);
        }
        ends.iter()
            .map(|above| {
                let name = names_in(above)
                    .last()
                    .copied()
                    .unwrap_or_default()
                    .to_owned();
                let resource = self
                    .all
                    .iter()
                    .position(|r| r.item_path == **above && r.key.is_some());
                (name, resource)
            })
            .collect()
    }

    /// The resource that a field or parameter of this name refers to: `customerId`, `customer_id`, `customer`.
    pub(crate) fn referred(&self, name: &str) -> Option<usize> {
        let wanted = plain(name);
        self.all.iter().position(|r| {
            let end = wanted.strip_prefix(&plain(&r.name));
            r.key.is_some() && end.is_some_and(|end| ["id", "uuid", "key", "sid"].contains(&end))
        })
    }
}

/// The fields of a shape that hold one text or number, with their pointers.
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

/// The field that holds the value of the path parameter.
fn key_of<'d>(
    schemas: &Schemas<'d>,
    shape: &Shape<'d>,
    name: &str,
    parameter: &str,
) -> Option<String> {
    let fields = scalars(schemas, shape);
    let (wanted, own) = (plain(parameter), plain(name));
    let tests: [&dyn Fn(&str) -> bool; 6] = [
        &|field| field == wanted,
        &|field| format!("{own}{field}") == wanted,
        &|field| field == "id",
        &|field| field == format!("{own}id"),
        &|field| ["uuid", "sid", "key"].contains(&field),
        &|field| field.len() > 1 && wanted.ends_with(field),
    ];
    let found = tests
        .iter()
        .find_map(|test| fields.iter().find(|(field, _)| test(&plain(field))));
    found.map(|(_, at)| at.clone())
}

/// The field of a child that names a parent.
fn field_for<'d>(
    schemas: &Schemas<'d>,
    shape: &Shape<'d>,
    parent: &str,
    parameter: &str,
) -> Option<String> {
    let fields = scalars(schemas, shape);
    let (wanted, parent) = (plain(parameter), plain(parent));
    let is_it = |field: &str| {
        field == wanted && !["id", "uuid", "key"].contains(&field)
            || field == format!("{parent}id")
            || field == format!("{parent}uuid")
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
