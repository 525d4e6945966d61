//! Requests that are accepted as far as the document shows: what exists before them, and their values.

use crate::answers::Answer;
use crate::api::{Api, Operation, Place, names_in, plain};
use crate::paging::Paging;
use crate::resources::{Resources, ShownResource, with_article};
use crate::schema::{is_single, types_of};
use crate::values::{self, Wanted};
use conformant_rulebook::kebab;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The request of an operation.
#[derive(Clone, Default)]
pub(crate) struct Happy {
    /// Resources that exist before it, in the order in which they are made.
    pub(crate) needs: Vec<usize>,
    pub(crate) with: Map<String, Value>,
    pub(crate) optional: Map<String, Value>,
    /// Parameters and properties that are not sent, with the reason.
    pub(crate) unsent: Vec<(String, String)>,
    pub(crate) except: Map<String, Value>,
}

impl Happy {
    fn send(&mut self, name: &str, value: Value, is_required: bool) {
        let values = match is_required {
            true => &mut self.with,
            false => &mut self.optional,
        };
        values.insert(name.to_owned(), value);
    }

    fn leave(&mut self, name: &str, why: &str) {
        self.unsent.push((name.to_owned(), why.to_owned()));
    }
}

/// How a request differs from the first one.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'a> {
    /// In front of unique words.
    pub(crate) prefix: &'a str,
    pub(crate) is_other: bool,
}

impl<'a> Turn<'a> {
    pub(crate) const fn new(prefix: &'a str, is_other: bool) -> Self {
        Self { prefix, is_other }
    }
}

pub(crate) struct Requests<'a, 'd> {
    pub(crate) api: &'a Api<'d>,
    pub(crate) resources: &'a Resources<'d>,
    pub(crate) paging: &'a BTreeMap<usize, Paging>,
    pub(crate) service: &'a str,
    /// By schema file: its fields, and whether each holds one value.
    pub(crate) fields: BTreeMap<String, Vec<(String, bool)>>,
    /// Settings that requests need, with their descriptions.
    pub(crate) settings: RefCell<BTreeMap<String, String>>,
}

impl<'d> Requests<'_, 'd> {
    fn operation(&self, n: usize) -> &Operation<'d> {
        &self.api.operations[n]
    }

    /// The name under which a resource is kept.
    pub(crate) fn capture(&self, resource: usize) -> String {
        let known = &self.resources.all[resource];
        match known.creator {
            Some(_) => known.name.clone(),
            None => format!("{}-list", known.name),
        }
    }

    /// The key of the resource that a capture contains.
    pub(crate) fn key_in(&self, resource: usize, capture: &str) -> Option<Value> {
        let known = &self.resources.all[resource];
        let key = self.resources.response_schemas[known.creator?].as_ref();
        let ShownResource { key, .. } = self.resources.schema_files.get(key?)?.shown.as_ref()?;
        Some(json!(format!("${{{capture}{}}}", key.replace('/', "."))))
    }

    /// The value that names a resource in a path.
    pub(crate) fn key(&self, resource: usize) -> Value {
        let known = &self.resources.all[resource];
        let capture = self.capture(resource);
        if let Some(key) = self.key_in(resource, &capture) {
            return key;
        }
        if let Some(list) = known.list
            && let Answer::List { key: array, .. } = &self.operation(list).answer
        {
            let kind = self.resources.response_schemas[list].as_ref();
            let shown = kind.and_then(|kind| self.resources.schema_files.get(kind)?.shown.as_ref());
            if let Some(ShownResource { key, .. }) = shown {
                let array = if array.is_empty() {
                    String::new()
                } else {
                    format!(".{array}")
                };
                return json!(format!("${{{capture}{array}.0{}}}", key.replace('/', ".")));
            }
        }
        self.setting(
            &format!("{}_{}", known.name, known.parameter),
            &format!(
                "The {} of {} that exists.",
                known.parameter,
                with_article(&known.name)
            ),
        )
    }

    fn setting(&self, name: &str, says: &str) -> Value {
        let name = kebab(name).replace('-', "_");
        self.settings
            .borrow_mut()
            .entry(name.clone())
            .or_insert_with(|| says.to_owned());
        json!(format!("${{target.{}.{name}}}", self.service))
    }

    /// Whether a resource can be made, or found in a list.
    fn is_available(&self, resource: usize) -> bool {
        let known = &self.resources.all[resource];
        known.creator.is_some() || known.list.is_some()
    }

    /// What must exist for a resource to exist, in order, the resource itself last. Nothing where that leads in a circle.
    pub(crate) fn closure(&self, resource: usize) -> Option<Vec<usize>> {
        let mut found = Vec::new();
        self.close(resource, &mut Vec::new(), &mut found)
            .then_some(found)
    }

    fn close(&self, resource: usize, open: &mut Vec<usize>, found: &mut Vec<usize>) -> bool {
        if found.contains(&resource) {
            return true;
        }
        if open.contains(&resource) || open.len() > 12 {
            return false;
        }
        open.push(resource);
        let known = &self.resources.all[resource];
        let above = self.resources.resources_in_path(&known.collection);
        let mut needed: Vec<usize> = above.into_iter().filter_map(|(_, r)| r).collect();
        if let Some(creator) = known.creator {
            let fields = self.operation(creator).body_fields();
            let required = fields.filter(|f| f.is_required);
            needed.extend(required.filter_map(|f| self.resources.resource_of_reference(&f.name)));
        }
        let is_closed = needed
            .into_iter()
            .all(|other| self.close(other, open, found));
        open.pop();
        if self.is_available(resource) {
            found.push(resource);
        }
        is_closed
    }

    /// The step that makes a resource, or finds it.
    pub(crate) fn step(&self, resource: usize, turn: Turn<'_>, capture: &str) -> Value {
        let known = &self.resources.all[resource];
        let Some(n) = known.creator.or(known.list) else {
            return Value::Null;
        };
        let happy = self.happy(n, turn);
        let mut step = Map::from_iter([("call".to_owned(), json!(self.operation(n).id))]);
        let with = happy.map(|happy| happy.with).unwrap_or_default();
        if !with.is_empty() {
            step.insert("with".to_owned(), with.into());
        }
        step.insert("capture".to_owned(), json!(capture));
        step.into()
    }

    /// The first request of an operation; `Err` says why there is none.
    pub(crate) fn happy(&self, n: usize, turn: Turn<'_>) -> Result<Happy, String> {
        let operation = self.operation(n);
        let mut happy = Happy::default();
        let own = self.resources.resource_of_path(&operation.path);
        let is_creator = own.is_some_and(|r| self.resources.all[r].creator == Some(n));
        let is_list = matches!(operation.answer, Answer::List { .. });
        let mut needs: Vec<usize> = Vec::new();
        for (name, resource) in self.resources.resources_in_path(&operation.path) {
            match resource {
                Some(resource) => {
                    needs.push(resource);
                    happy.with.insert(name, self.key(resource));
                }
                None => {
                    let value = self.free(operation, &name);
                    happy.with.insert(name, value);
                }
            }
        }
        // Parameters in the middle of a segment.
        for name in names_in(&operation.path) {
            if !happy.with.contains_key(name) {
                let value = self.free(operation, name);
                happy.with.insert(name.to_owned(), value);
            }
        }
        if is_list && let Some(resource) = own.filter(|&r| self.resources.all[r].list == Some(n)) {
            needs.push(resource);
        }
        self.queries(n, turn, &mut needs, &mut happy)?;
        self.body(n, turn, (own, is_creator), &mut needs, &mut happy)?;
        for need in needs {
            if Some(need) == own && is_creator {
                continue;
            }
            let closure = self.closure(need).ok_or_else(|| {
                let name = &self.resources.all[need].name;
                format!("{} needs itself to be created", with_article(name))
            })?;
            for one in closure {
                if !happy.needs.contains(&one) {
                    happy.needs.push(one);
                }
            }
        }
        Ok(happy)
    }

    /// A path parameter that names nothing known.
    fn free(&self, operation: &Operation<'d>, name: &str) -> Value {
        let parameter = operation.parameter(name);
        let words = parameter.and_then(|p| p.schema.get("enum")?.as_array()?.first().cloned());
        let example = || parameter.and_then(|p| p.example.clone());
        words.or_else(example).unwrap_or_else(|| {
            self.setting(name, &format!("A value of `{name}` in {}.", operation.path))
        })
    }

    fn queries(
        &self,
        n: usize,
        turn: Turn<'_>,
        needs: &mut Vec<usize>,
        happy: &mut Happy,
    ) -> Result<(), String> {
        let operation = self.operation(n);
        let paging = self.paging.get(&n);
        let parameters = operation.parameters.iter();
        for parameter in parameters.filter(|p| p.place != Place::Path) {
            let name = &parameter.name;
            let slug = kebab(name);
            let wanted = Wanted {
                name,
                prefix: turn.prefix,
                schema: &parameter.schema,
                example: parameter.example.as_ref(),
                format: None,
                is_other: turn.is_other,
            };
            if let Some(paging) = paging.filter(|p| p.is_of_paging(name)) {
                let value = match paging.size.as_ref() == Some(name) {
                    true => Some(size(&parameter.schema)),
                    false => paging.value(name),
                };
                if let Some(value) = value {
                    happy.send(name, value, parameter.is_required);
                }
                if paging.size.as_ref() != Some(name) {
                    let cases = ["at-max", "over-max"];
                    let (schema, except) = (&parameter.schema, &mut happy.except);
                    leave(&slug, schema, &cases, "No page may be there.", except);
                }
                continue;
            }
            let filter = self.filter(n, name);
            let value = match (&filter, self.resources.resource_of_reference(name)) {
                (Some(value), _) => Some(value.clone()),
                (None, Some(resource)) if self.is_available(resource) => {
                    needs.push(resource);
                    Some(self.key(resource))
                }
                _ => {
                    let is_known = ["enum", "const"]
                        .iter()
                        .any(|key| parameter.schema.contains_key(*key))
                        || parameter.example.is_some()
                        || parameter.is_required
                        || parameter.schema.contains_key("format")
                        || types_of(&parameter.schema) == ["boolean"];
                    is_known.then(|| values::value(&wanted)).flatten()
                }
            };
            let includes = ["include", "with", "show", "expand", "fields"];
            let is_including = includes.iter().any(|word| slug.starts_with(word));
            match value {
                None if parameter.is_required => {
                    return Err(format!("no value of `{name}` is known"));
                }
                Some(_) if is_including && !parameter.is_required => {
                    happy.leave(name, "it may change what a response contains");
                }
                Some(value) => happy.send(name, value, parameter.is_required),
                None => happy.leave(name, "neither a field nor an example shows its values"),
            }
            let is_filter = filter.is_some();
            exceptions(&slug, &parameter.schema, is_filter, &mut happy.except);
        }
        Ok(())
    }

    /// The value of a filter of a list: what the resource shows that was made before.
    pub(crate) fn filter(&self, n: usize, name: &str) -> Option<Value> {
        let (resource, at) = self.filtered(n, name)?;
        let capture = self.capture(resource);
        self.resources.all[resource].creator?;
        Some(json!(format!("${{{capture}{}}}", at.replace('/', "."))))
    }

    /// The resource of a list and the field that a query parameter of it is named as.
    pub(crate) fn filtered(&self, n: usize, parameter: &str) -> Option<(usize, String)> {
        let resource = self.resources.all.iter().position(|r| r.list == Some(n))?;
        let name = self.resources.response_schemas[n].as_ref()?;
        let kind = self.resources.schema_files.get(name)?;
        let creator = self.resources.all[resource].creator?;
        // The creation shows the field as well.
        if self.resources.response_schemas[creator].as_ref() != Some(name)
            || !kind.shape.inside.is_empty()
        {
            return None;
        }
        let operation = self.operation(n);
        if !is_single(&operation.parameter(parameter)?.schema) {
            return None;
        }
        let mut fields = self.fields.get(name)?.iter();
        let is_it = |field: &str| plain(field) == plain(parameter);
        let (field, _) = fields.find(|(field, is_scalar)| *is_scalar && is_it(field))?;
        Some((resource, conformant_base::json::join("", field)))
    }

    fn body(
        &self,
        n: usize,
        turn: Turn<'_>,
        (own, is_creator): (Option<usize>, bool),
        needs: &mut Vec<usize>,
        happy: &mut Happy,
    ) -> Result<(), String> {
        let operation = self.operation(n);
        let Some(body) = &operation.body else {
            return Ok(());
        };
        let key = own.and_then(|r| self.resources.all[r].key.as_deref());
        let key = key.and_then(|key| key.rsplit('/').next());
        for field in &body.fields {
            let name = &field.name;
            let slug = kebab(name);
            let is_key = key == Some(name)
                && own.is_some_and(|r| {
                    self.resources.all[r].collection == operation.path
                        || self.resources.all[r].item_path == operation.path
                });
            let reference = self
                .resources
                .resource_of_reference(name)
                .filter(|r| self.is_available(*r) && !(Some(*r) == own && is_creator));
            let reference = reference.filter(|&r| field.is_required || self.may_need(r, own));
            let is_new = is_creator || operation.method == "post";
            let value = if let Some(own) = own.filter(|_| is_key && !is_new) {
                needs.push(own);
                Some(self.key(own))
            } else if is_key && !field.is_required {
                happy.leave(name, "the service may choose the identifier itself");
                continue;
            } else if let Some(resource) = reference {
                needs.push(resource);
                Some(self.key(resource))
            } else {
                let format = field.part.text("format");
                values::value(&Wanted {
                    name,
                    prefix: turn.prefix,
                    schema: &field.schema,
                    example: field.example.as_ref(),
                    format,
                    is_other: turn.is_other,
                })
            };
            let is_reference = reference.is_some() || is_key || looks_like_reference(name);
            exceptions(&slug, &field.schema, is_reference, &mut happy.except);
            let is_replacement = operation.method == "put";
            match value {
                None if field.is_required => {
                    return Err(format!("no value of `{name}` in its body is known"));
                }
                None => happy.leave(name, "no value of it is known"),
                Some(_)
                    if looks_like_reference(name)
                        && reference.is_none()
                        && !field.is_required
                        && !is_key =>
                {
                    let why = "it seems to name a resource that no operation creates";
                    happy.leave(name, why);
                }
                Some(value) => happy.send(name, value, field.is_required || is_replacement),
            }
        }
        Ok(())
    }

    /// Whether an optional reference can be made without the resource that refers to it.
    fn may_need(&self, resource: usize, own: Option<usize>) -> bool {
        let closure = self.closure(resource);
        closure.is_some_and(|closure| !own.is_some_and(|own| closure.contains(&own)))
    }
}

/// A number of items that a page may hold.
fn size(schema: &Map<String, Value>) -> Value {
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    let size = 20
        .min(bound("maximum").unwrap_or(20))
        .max(bound("minimum").unwrap_or(1));
    json!(size)
}

fn looks_like_reference(name: &str) -> bool {
    let slug = kebab(name);
    slug.ends_with("-id") || slug.ends_with("-ids") || slug.ends_with("-uuid")
}

/// Leaves out those of the cases of bounds that the schema brings.
fn leave(
    slug: &str,
    schema: &Map<String, Value>,
    cases: &[&str],
    why: &str,
    except: &mut Map<String, Value>,
) {
    for case in cases {
        let keys: &[&str] = match case.ends_with("max") {
            true => &["maxLength", "maximum", "maxItems"],
            false => &["minimum"],
        };
        if keys.iter().any(|key| schema.contains_key(*key)) {
            except.insert(format!("{slug}-{case}"), json!(why));
        }
    }
}

/// Leaves out cases whose values an accepted request cannot have.
fn exceptions(
    slug: &str,
    schema: &Map<String, Value>,
    is_reference: bool,
    except: &mut Map<String, Value>,
) {
    let has = |key: &str| schema.contains_key(key);
    let mut leave = |cases: &[&str], why| leave(slug, schema, cases, why, except);
    let is_formed = has("pattern") || has("format");
    let upper = ["at-max", "over-max"];
    if types_of(schema).contains(&"string") && has("maxLength") && is_formed {
        leave(&upper, "A text of this length must have the form, too.");
    }
    if is_reference {
        let why = "The value must name a resource that exists.";
        leave(&["at-max", "over-max", "at-min", "under-min"], why);
    }
    let items = schema.get("items").and_then(Value::as_object);
    let is_free = items.is_some_and(|items| {
        let keys = ["enum", "pattern", "format", "maxLength"];
        types_of(items) == ["string"] && !keys.iter().any(|key| items.contains_key(*key))
    });
    if has("maxItems") && !is_free {
        let why = "The items must have the form that the document states.";
        leave(&upper, why);
    }
    if has("multipleOf") {
        leave(&["at-max", "at-min"], "The bound may be no multiple.");
    }
}
