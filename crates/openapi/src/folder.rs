//! The files of the folder.

use crate::api::{Answer, Api, Body, Field, Operation, Parameter, Place, plain};
use crate::document::{Document, Part};
use crate::paging::Paging;
use crate::requests::{Happy, Requests, Turn};
use crate::resources::{Parent, Resources, SchemaFile, ShownResource, noun, with_article};
use crate::schema::{Schemas, is_single, object, shape, types_of};
use crate::write;
use conformant_base::json::join;
use conformant_judge::load::predicates;
use conformant_rulebook::{Model, Rulebook, kebab};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A first request.
const FIRST: Turn<'static> = Turn {
    prefix: "",
    is_other: false,
};
/// A request for another resource.
const OTHER: Turn<'static> = Turn {
    prefix: "other",
    is_other: true,
};
/// A request that changes a resource.
const CHANGE: Turn<'static> = Turn {
    prefix: "changed",
    is_other: true,
};

/// Ends of ids of rules about an operation as a whole.
const RULES: [&str; 6] = [
    "credentials",
    "key",
    "page-limit",
    "page-size",
    "request",
    "walk",
];

pub(crate) struct Folder<'a, 'd> {
    doc: &'d Document,
    schemas: &'a Schemas<'d>,
    api: &'a Api<'d>,
    resources: &'a Resources<'d>,
    requests: Requests<'a, 'd>,
    service: &'a str,
    /// By operation; nothing where it is left out.
    happy: Vec<Option<Happy>>,
    /// By schema file, as written.
    written: BTreeMap<String, Map<String, Value>>,
    pub(crate) left_out: Vec<String>,
    pub(crate) decisions: BTreeMap<&'static str, Vec<String>>,
}

impl<'a, 'd> Folder<'a, 'd> {
    pub(crate) fn new(
        schemas: &'a Schemas<'d>,
        (api, resources): (&'a Api<'d>, &'a Resources<'d>),
        paging: &'a BTreeMap<usize, Paging>,
        service: &'a str,
    ) -> Self {
        let mut written = BTreeMap::new();
        for (name, kind) in &resources.schema_files {
            let noun = if kind.is_error {
                "an error body".to_owned()
            } else {
                with_article(name)
            };
            written.insert(name.clone(), schemas.answer(&kind.shape.part, &noun));
        }
        let fields = written.iter().map(|(name, schema)| {
            let properties = schema.get("properties").and_then(Value::as_object);
            let fields = properties.into_iter().flatten().map(|(field, schema)| {
                let is_scalar = schema.as_object().is_none_or(is_single);
                (field.clone(), is_scalar)
            });
            (name.clone(), fields.collect())
        });
        let requests = Requests {
            api,
            resources,
            paging,
            service,
            fields: fields.collect(),
            settings: std::cell::RefCell::default(),
        };
        let mut folder = Self {
            doc: schemas.doc,
            schemas,
            api,
            resources,
            requests,
            service,
            happy: Vec::new(),
            written,
            left_out: api.left_out.clone(),
            decisions: BTreeMap::new(),
        };
        for n in 0..api.operations.len() {
            let happy = folder.judged(n);
            folder.happy.push(happy);
        }
        folder
    }

    /// How many operations the folder describes.
    pub(crate) fn operation_count(&self) -> usize {
        self.operations().count()
    }

    fn decide(&mut self, file: &'static str, what: String) {
        let list = self.decisions.entry(file).or_default();
        if !list.contains(&what) {
            list.push(what);
        }
    }

    /// The first request of an operation, unless it is left out.
    fn judged(&mut self, n: usize) -> Option<Happy> {
        let operation = &self.api.operations[n];
        let name = operation.name();
        let is_sweeping = operation.method == "delete" && !operation.path.contains('{');
        let found = match is_sweeping {
            true => Err("it deletes a whole collection".to_owned()),
            false => self.requests.happy(n, FIRST),
        };
        match found {
            Ok(happy) => Some(happy),
            Err(why) => {
                self.doc
                    .problem(&operation.part, format!("{name} is left out: {why}"));
                self.left_out.push(format!("{name}: {why}"));
                None
            }
        }
    }

    /// All files with their paths in the folder.
    pub(crate) fn files(&mut self) -> Vec<(String, String)> {
        let service = self.service;
        let mut files = BTreeMap::new();
        files.insert("openapi.yaml".to_owned(), self.openapi());
        let kinds: Vec<String> = self.kinds_in_use();
        for name in kinds {
            let schema = self.schema(&name);
            files.insert(format!("schemas/{name}.yaml"), schema);
        }
        for (name, rules) in self.rules() {
            files.insert(
                format!("rules/{name}.yaml"),
                object(json!({ "rules": rules })),
            );
        }
        for (name, scenarios) in self.scenarios() {
            files.insert(format!("scenarios/{name}.yaml"), scenarios);
        }
        if let Some(file) = self.service_file() {
            files.insert("service.yaml".to_owned(), file);
        }
        let laws = self.laws(&files);
        files.insert("laws.yaml".to_owned(), laws);
        let written = files.into_iter().map(|(path, file)| {
            let comments = self.comments(&path);
            (format!("{service}/{path}"), write::file(&comments, &file))
        });
        written.collect()
    }

    /// The decisions of a file as comment lines.
    fn comments(&self, path: &str) -> Vec<String> {
        let topic = match path.split('/').next().unwrap_or_default() {
            "schemas" => "schemas",
            "rules" => "rules",
            "scenarios" => "scenarios",
            "service.yaml" => "service",
            "laws.yaml" => "laws",
            _ => "openapi",
        };
        let prefix = format!("{}: ", path.rsplit('/').next().unwrap_or_default());
        let nothing = Vec::new();
        let decisions = self.decisions.get(topic).unwrap_or(&nothing);
        let own = decisions.iter().filter_map(|decision| match topic {
            "service" | "laws" | "openapi" => Some(decision.as_str()),
            _ => decision.strip_prefix(&prefix),
        });
        let own: Vec<&str> = own.collect();
        let mut lines = Vec::new();
        if !own.is_empty() {
            lines.push("Decisions, the most valuable first:".to_owned());
            lines.extend(own.iter().map(|decision| format!("- {decision}")));
            lines.push(String::new());
        }
        lines
    }

    fn operations(&self) -> impl Iterator<Item = (usize, &'a Operation<'d>)> {
        let all = self.api.operations.iter().enumerate();
        all.filter(|(n, _)| self.happy[*n].is_some())
    }

    fn kinds_in_use(&self) -> Vec<String> {
        let mut used: BTreeSet<String> = BTreeSet::new();
        for (n, _) in self.operations() {
            used.extend(self.resources.response_schemas[n].clone());
            used.extend(self.resources.error_schemas[n].clone());
        }
        let all = &self.resources.all;
        for name in used.clone() {
            if let Some(shown) = &self.resources.schema_files[&name].shown {
                let parents = all[shown.resource].parents.iter().map(|p| p.resource);
                let with_parents = parents.chain([shown.resource]);
                used.extend(with_parents.map(|n| all[n].name.clone()));
            }
        }
        used.into_iter().collect()
    }

    // ---- service.yaml

    fn service_file(&mut self) -> Option<Map<String, Value>> {
        let is_read = |o: &Operation<'_>| o.method == "get";
        let mut reads: Vec<(usize, &Operation<'_>)> =
            self.operations().filter(|(_, o)| is_read(o)).collect();
        reads.sort_by_key(|(n, o)| {
            let needs = self.happy[*n].as_ref().map_or(0, |happy| happy.with.len());
            (needs, !matches!(o.answer, Answer::List { .. }))
        });
        let (n, probe) = reads.first().copied()?;
        let mut call = Map::from_iter([("call".to_owned(), json!(probe.id))]);
        let with = self.happy[n].iter().flat_map(|happy| &happy.with);
        let with = with.map(|(name, value)| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let is_captured = text.contains("${");
            (
                name.clone(),
                Value::from(if is_captured { "0".to_owned() } else { text }),
            )
        });
        let with: Map<String, Value> = with.collect();
        if !with.is_empty() {
            call.insert("with".to_owned(), with.into());
        }
        let title = self.api.title.lines().next().unwrap_or_default();
        let mut file = object(json!({
            "title": title,
            "document": { "id": document_id(self.service), "title": title },
            "base": { "path": format!("/{}", self.service), "probe": call },
        }));
        if let Some((name, entry, _)) = &self.api.auth.scheme {
            // The key is the same word as the name of a service, which no literal may name.
            file.extend(object(json!({ (stringify!(auth)): [entry] })));
            let how = match entry.get("header").and_then(Value::as_str) {
                None => "username and password".to_owned(),
                Some(field) => format!("headers: {{ {field}: \"${{NAME}}\" }}"),
            };
            self.decide(
                "service",
                format!(
                    "credentials (`{name}`): write {how} under targets.{} of conformant.yaml",
                    self.service
                ),
            );
        }
        for unused in self.api.auth.unused.clone() {
            self.decide("service", unused);
        }
        if let Some(server) = self.api.servers.first() {
            self.decide(
                "service",
                format!(
                    "address: --target {}=URL is the address that paths follow, as in {server}",
                    self.service
                ),
            );
        }
        self.decide(
            "service",
            "hooks: what people, devices or other systems do to resources is not in the document"
                .to_owned(),
        );
        let settings = self.requests.settings.borrow().clone();
        if !settings.is_empty() {
            let entries = settings
                .iter()
                .map(|(name, says)| (name.clone(), json!({ "description": says })));
            file.insert("settings".to_owned(), entries.collect::<Map<_, _>>().into());
            let names: Vec<&str> = settings.keys().map(String::as_str).collect();
            self.decide(
                "service",
                format!("settings: no operation makes a value of {}; configure them, or write a hook that does", names.join(", ")),
            );
        }
        for what in self.left_out.clone() {
            self.decide("service", format!("left out: {what}"));
        }
        Some(file)
    }

    // ---- openapi.yaml

    fn openapi(&mut self) -> Map<String, Value> {
        let mut paths: Map<String, Value> = Map::new();
        let chosen: Vec<(usize, &Operation<'d>)> = self.operations().collect();
        for (n, operation) in chosen {
            let written = self.operation(n, operation);
            let item = paths
                .entry(operation.path.clone())
                .or_insert_with(|| json!({}));
            if let Some(item) = item.as_object_mut() {
                item.insert(operation.method.to_owned(), written.into());
            }
        }
        let mut file = object(json!({
            "openapi": "3.1.0",
            "info": { "title": self.api.title, "version": self.api.version },
        }));
        let servers = self.api.servers.iter().map(|url| json!({ "url": url }));
        let servers: Vec<Value> = servers.collect();
        if !servers.is_empty() {
            file.insert("servers".to_owned(), servers.into());
        }
        let scheme = self.api.auth.scheme.as_ref();
        if let Some((name, _, _)) = scheme {
            file.insert("security".to_owned(), json!([{ name: [] }]));
        }
        file.insert("paths".to_owned(), paths.into());
        if let Some((name, _, scheme)) = scheme {
            let schemes = json!({ "securitySchemes": { name: scheme } });
            file.insert("components".to_owned(), schemes);
        }
        file
    }

    fn operation(&mut self, n: usize, operation: &'a Operation<'d>) -> Map<String, Value> {
        let mut out = Map::new();
        let source = self.doc.source(&operation.part);
        out.insert("operationId".to_owned(), operation.id.as_str().into());
        let what = match (&operation.answer, &self.resources.response_schemas[n]) {
            (Answer::List { .. }, Some(kind)) => {
                format!("returns a list of resources of the type {}", noun(kind))
            }
            (_, Some(kind)) => format!("returns {}", with_article(kind)),
            (_, None) => "is accepted".to_owned(),
        };
        out.insert(
            "summary".to_owned(),
            format!("A valid {} request {what}.", operation.id).into(),
        );
        out.insert("x-source".to_owned(), source);
        if let Some(does) = self.does(operation) {
            out.insert("x-does".to_owned(), does.into());
        }
        if self.api.auth.scheme.is_some() && !operation.is_secured {
            out.insert("security".to_owned(), json!([]));
        }
        let mut parameters = Vec::new();
        for parameter in &operation.parameters {
            if self.is_sent(n, "the parameter `{}`", &parameter.name) {
                parameters.push(self.parameter(n, operation, parameter));
            }
        }
        if !parameters.is_empty() {
            out.insert("parameters".to_owned(), parameters.into());
        }
        if let Some(body) = &operation.body {
            let schema = self.body(n, body);
            let content = json!({ &body.media: { "schema": schema } });
            out.insert(
                "requestBody".to_owned(),
                json!({ "required": true, "content": content }),
            );
        }
        out.insert("responses".to_owned(), self.responses(n, operation).into());
        out
    }

    /// Whether requests send a parameter or property; the decision says why not.
    fn is_sent(&mut self, n: usize, what: &str, name: &str) -> bool {
        let unsent = self.happy[n].iter().flat_map(|happy| &happy.unsent);
        let Some((_, why)) = unsent.into_iter().find(|(known, _)| known == name) else {
            return true;
        };
        let at = self.api.operations[n].name();
        let decision = format!("{at}: {} is left out: {why}", what.replace("{}", name));
        self.decide("openapi", decision);
        false
    }

    /// The schema of a request body.
    fn body(&mut self, n: usize, body: &'a Body<'d>) -> Map<String, Value> {
        let mut properties = Map::new();
        for field in &body.fields {
            if self.is_sent(n, "`{}` of the body", &field.name) {
                properties.insert(field.name.clone(), self.property(n, field).into());
            }
        }
        let required = body.fields.iter().filter(|f| f.is_required);
        let required: Vec<&str> = required.map(|f| f.name.as_str()).collect();
        let mut schema = object(json!({ "type": "object" }));
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema.insert("properties".to_owned(), properties.into());
        schema
    }

    /// The schema of a property of a request body, with its rule.
    fn property(&self, n: usize, field: &Field<'d>) -> Map<String, Value> {
        let mut schema = without_null(field.schema.clone());
        let says = format!(
            "{} of the body of {} is {}.",
            field.name,
            self.api.operations[n].id,
            shape(&schema)
        );
        schema.insert("description".to_owned(), says.into());
        schema.insert("x-source".to_owned(), self.doc.source(&field.part));
        let Some((at, compare)) = self.echo(n, field) else {
            schema.shift_remove("default");
            return schema;
        };
        schema.insert("x-echo".to_owned(), at.into());
        schema.extend(compare.map(|compare| ("x-echo-as".to_owned(), Value::from(compare))));
        let is_changing = ["status", "state", "phase"].contains(&plain(&field.name).as_str());
        if !field.is_required || is_changing {
            let level = if is_changing { "should" } else { "must" };
            schema.insert(
                "x-rule".to_owned(),
                json!({ "level": level, "basis": "inferred" }),
            );
        }
        schema
    }

    /// The effect of an operation where method and path do not show it.
    fn does(&self, operation: &Operation<'d>) -> Option<&'static str> {
        let path = operation.path.as_str();
        let is_list = matches!(operation.answer, Answer::List { .. });
        let is_collection = self.resources.all.iter().any(|r| r.collection == path)
            || self
                .operations()
                .any(|(_, o)| o.method == "get" && o.path == path);
        let is_below = self
            .resources
            .all
            .iter()
            .any(|r| path.starts_with(&format!("{}/", r.item_path)));
        match operation.method {
            "post" if is_list => Some("lists"),
            "post" if path.ends_with('}') || is_collection => None,
            "post" if is_below => Some("changes"),
            "put" | "patch" if !path.ends_with('}') => Some("changes"),
            _ => None,
        }
    }

    fn parameter(&self, n: usize, operation: &Operation<'d>, parameter: &Parameter<'d>) -> Value {
        let place = match parameter.place {
            Place::Path => "path",
            Place::Query => "query",
            Place::Header => "header",
        };
        let named = self.resources.resources_in_path(&operation.path);
        let resource = named
            .iter()
            .find(|(name, _)| *name == parameter.name)
            .and_then(|(_, r)| *r);
        let says = match (parameter.place, resource) {
            (Place::Path, Some(resource)) => format!(
                "{} names {}.",
                parameter.name,
                with_article(&self.resources.all[resource].name)
            ),
            _ => format!(
                "{} of {} is {}.",
                parameter.name,
                operation.id,
                shape(&parameter.schema)
            ),
        };
        let mut schema = without_null(parameter.schema.clone());
        schema.shift_remove("default");
        if let Some(default) = parameter.schema.get("default")
            && self
                .requests
                .paging
                .get(&n)
                .is_some_and(|p| p.size.as_ref() == Some(&parameter.name))
        {
            schema.insert("default".to_owned(), default.clone());
        }
        let mut out = object(json!({ "name": parameter.name, "in": place }));
        if parameter.is_required {
            out.insert("required".to_owned(), json!(true));
        }
        out.insert("description".to_owned(), says.into());
        out.insert("schema".to_owned(), schema.into());
        out.insert("x-source".to_owned(), self.doc.source(&parameter.part));
        out.into()
    }

    /// Where the response shows a property of the body, and how the two compare.
    fn echo(&self, n: usize, field: &Field<'d>) -> Option<(String, Option<&'static str>)> {
        let name = self.resources.response_schemas[n].as_ref()?;
        if !matches!(self.api.operations[n].answer, Answer::One(_)) {
            return None;
        }
        let kind = &self.resources.schema_files[name];
        kind.shown.as_ref()?;
        let mut schema = &self.written[name];
        if let Some(key) = kind.shape.inside.strip_prefix('/') {
            schema = schema.get("properties")?.get(key)?.as_object()?;
        }
        let shown = schema.get("properties")?.get(&field.name)?.as_object()?;
        let (sent, shown_types) = (types_of(&field.schema), types_of(shown));
        let is_alike = sent.iter().any(|t| *t != "null" && shown_types.contains(t))
            || sent.is_empty() && shown_types.is_empty();
        if !is_alike {
            return None;
        }
        let compare = if field.schema.get("format").is_some_and(|f| f == "date-time") {
            Some("instant")
        } else if sent.contains(&"array") {
            let items = field.schema.get("items").and_then(Value::as_object);
            items.filter(|items| is_single(items) && !types_of(items).is_empty())?;
            Some("set")
        } else if is_single(&field.schema) {
            None
        } else {
            return None;
        };
        Some((join(&kind.shape.inside, &field.name), compare))
    }

    fn responses(&mut self, n: usize, operation: &'a Operation<'d>) -> Map<String, Value> {
        let file = |kind: &str| json!({ "$ref": format!("schemas/{kind}.yaml") });
        let accepted = match (
            &operation.answer,
            self.resources.response_schemas[n].clone(),
        ) {
            (Answer::One(_), Some(kind)) => response("The accepted request.", &file(&kind)),
            (Answer::List { page, key, .. }, Some(kind)) => {
                let schema = self.page(n, operation, (page, key), file(&kind));
                response("A page of the list.", &schema)
            }
            (Answer::Other, _) => {
                let at = operation.name();
                self.decide("openapi", format!("{at}: the response is neither an object nor a list of objects, so its body is not judged"));
                json!({ "description": "The accepted request." })
            }
            _ => json!({ "description": "The accepted request." }),
        };
        let mut out = object(json!({ "2XX": accepted }));
        if let Some(error) = &self.resources.error_schemas[n] {
            let rejected = response("The rejected request.", &file(error));
            out.insert("4XX".to_owned(), rejected);
        }
        out
    }

    fn page(
        &mut self,
        n: usize,
        operation: &Operation<'d>,
        (page, key): (&Part<'d>, &str),
        item: Value,
    ) -> Value {
        let paging = self.requests.paging.get(&n);
        let written = paging.map_or_else(|| json!({}), Paging::written);
        if let Some(decision) = paging.and_then(|p| p.decision(operation)) {
            self.decide("openapi", decision);
        }
        if key.is_empty() {
            return json!({
                "type": "array",
                "x-list-key": "",
                "x-paging": written,
                "x-source": self.doc.source(page),
                "items": item,
            });
        }
        let owner = format!("a page of {}", operation.id);
        let mut schema = self.schemas.answer(page, &owner);
        let mut out = object(
            json!({ "type": "object", "x-partial": true, "x-list-key": key, "x-paging": written }),
        );
        if let Some(required) = schema.get("required") {
            out.insert("required".to_owned(), required.clone());
        }
        let mut properties = schema.remove("properties").map(object).unwrap_or_default();
        // Rules of a page and of parameters have the ids of the operation in common.
        let parameters = operation.parameters.iter().map(|p| kebab(&p.name));
        let taken: Vec<String> = parameters.chain(RULES.map(str::to_owned)).collect();
        let hidden: Vec<String> = properties
            .keys()
            .filter(|name| *name != key && taken.contains(&kebab(name)))
            .cloned()
            .collect();
        for name in &hidden {
            properties.shift_remove(name);
            self.decide(
                "openapi",
                format!(
                    "{}: `{name}` of the page is not judged: a parameter or rule has this name",
                    operation.name()
                ),
            );
        }
        if let Some(Value::Array(required)) = out.get_mut("required") {
            required.retain(|name| !hidden.iter().any(|hidden| name == hidden));
        }
        if let Some(Value::Object(list)) = properties.get_mut(key) {
            list.insert("items".to_owned(), item);
        }
        out.insert("properties".to_owned(), properties.into());
        out.into()
    }

    // ---- schemas/

    fn schema(&mut self, name: &str) -> Map<String, Value> {
        let kind: &SchemaFile<'d> = &self.resources.schema_files[name];
        let mut schema = self.written[name].clone();
        let says = if kind.is_error {
            "The body of a rejected request.".to_owned()
        } else {
            format!("The representation of {}.", with_article(name))
        };
        let mut out = object(json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": noun(name),
            "description": says,
            "x-source": self.doc.source(&self.doc.resolve(&kind.shape.part).unwrap_or_else(|| kind.shape.part.clone())),
        }));
        if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
            out.insert("x-partial".to_owned(), json!(true));
        }
        if let Some(ShownResource { resource, key }) = &kind.shown {
            let resource = &self.resources.all[*resource];
            let mut identity = Map::new();
            if resource.name != name {
                identity.insert(
                    "of".to_owned(),
                    json!(format!("{}/{}", self.service, resource.name)),
                );
            }
            identity.insert("key".to_owned(), json!([key]));
            out.insert("x-identity".to_owned(), identity.into());
            let parents: &[Parent] = kind.parents.as_deref().unwrap_or(&resource.parents);
            if !parents.is_empty() {
                let entries = parents.iter().map(|parent| {
                    let named = &self.resources.all[parent.resource].name;
                    (
                        parent.field.clone(),
                        json!(format!("{}/{named}", self.service)),
                    )
                });
                out.insert("x-parent".to_owned(), entries.collect::<Map<_, _>>().into());
            }
            self.annotate(name, kind, &mut schema);
        }
        if !schema.contains_key("type") {
            out.insert("type".to_owned(), json!("object"));
        }
        for (key, value) in schema {
            if key != "description" && key != "x-source" {
                out.insert(key, value);
            }
        }
        out
    }

    /// Marks fields that never change, and those that change without being named.
    fn annotate(&mut self, name: &str, kind: &SchemaFile<'d>, schema: &mut Map<String, Value>) {
        let Some(ShownResource { resource, key }) = kind.shown.clone() else {
            return;
        };
        let known = &self.resources.all[resource];
        let mut settable: BTreeSet<String> = BTreeSet::new();
        for (_, operation) in self.operations() {
            if self.resources.resource_of_path(&operation.path) == Some(resource) {
                settable.extend(operation.body_fields().map(|f| f.name.clone()));
            }
        }
        let parents = kind.parents.as_ref().unwrap_or(&known.parents);
        let parents: Vec<String> = parents.iter().map(|p| p.field.clone()).collect();
        let inside = kind.shape.inside.clone();
        let properties = match inside.strip_prefix('/') {
            Some(inner) => schema
                .get_mut("properties")
                .and_then(|p| p.get_mut(inner)?.get_mut("properties")),
            None => schema.get_mut("properties"),
        };
        let mut derived = Vec::new();
        for (field, property) in properties
            .and_then(Value::as_object_mut)
            .into_iter()
            .flatten()
        {
            let at = join(&inside, field);
            let Some(property) = property.as_object_mut() else {
                continue;
            };
            let plain = plain(field);
            let is_created = plain.starts_with("created")
                || plain.ends_with("created")
                || plain.starts_with("creation");
            if at == key || parents.contains(&at) || is_created && !settable.contains(field) {
                property.insert("x-immutable".to_owned(), json!(true));
            } else if !settable.contains(field) {
                property.insert(
                    "x-derived".to_owned(),
                    json!("No request sets it, so the service may change it."),
                );
                derived.push(field.clone());
            }
        }
        if !derived.is_empty() {
            self.decide(
                "schemas",
                format!("{name}.yaml: x-derived: may the service change {} at any time? Remove the key where a field stays as it is", derived.join(", ")),
            );
        }
        if parents.iter().any(|at| !at.starts_with('/')) {
            self.decide(
                "schemas",
                format!(
                    "{name}.yaml: x-parent: no field names the parent, so that its path alone does"
                ),
            );
        }
    }

    // ---- rules/

    fn rules(&mut self) -> BTreeMap<String, Vec<Value>> {
        let mut rules: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (n, operation) in self.operations() {
            let topic = self.topic(operation);
            let source = self.doc.source(&operation.part);
            let Some(kind) = self.resources.response_schemas[n].as_ref() else {
                continue;
            };
            let shown = self.resources.schema_files[kind].shown.as_ref();
            if let (Answer::One(_), Some(ShownResource { resource, key })) =
                (&operation.answer, shown)
                && operation.path == self.resources.all[*resource].item_path
            {
                let parameter = &self.resources.all[*resource].parameter;
                rules.entry(topic.clone()).or_default().push(json!({
                    "id": format!("{}/{}/shows-what-the-path-names", self.service, operation.id),
                    "basis": "inferred",
                    "source": source,
                    "says": format!("The response to {} is about the {} that the path names.", operation.id, noun(&self.resources.all[*resource].name)),
                    "check": { "parameter-echo": { "operations": [operation.id], "parameter": parameter, "at": key } },
                }));
            }
            let Answer::List { key: array, .. } = &operation.answer else {
                continue;
            };
            let items = if array.is_empty() {
                "/*".to_owned()
            } else {
                format!("{}/*", join("", array))
            };
            for parameter in operation
                .parameters
                .iter()
                .filter(|p| p.place == Place::Query)
            {
                let Some((_, at)) = self.requests.filtered(n, &parameter.name) else {
                    continue;
                };
                if self.happy[n]
                    .as_ref()
                    .is_some_and(|h| h.unsent.iter().any(|(name, _)| *name == parameter.name))
                {
                    continue;
                }
                let schema = &parameter.schema;
                let is_exact = schema.contains_key("enum")
                    || types_of(schema)
                        .iter()
                        .any(|t| matches!(*t, "boolean" | "integer"))
                    || schema.get("format").is_some_and(|f| f == "uuid")
                    || self.requests_reference(&parameter.name);
                let level = if is_exact { "must" } else { "should" };
                let slug = kebab(&parameter.name);
                let source = self.doc.source(&parameter.part);
                let field = at.trim_start_matches('/');
                rules.entry(topic.clone()).or_default().extend([
                    json!({
                        "id": format!("{}/{}/{slug}-keeps-others-out", self.service, operation.id),
                        "level": level, "basis": "inferred", "source": source,
                        "says": format!("A list with {} contains only items with this {field}.", parameter.name),
                        "check": { "list-filter": { "operation": operation.id, "parameter": parameter.name, "at": format!("{items}{at}"), "keeps": "one-of" } },
                    }),
                    json!({
                        "id": format!("{}/{}/{slug}-keeps-all-that-match", self.service, operation.id),
                        "level": level, "basis": "inferred", "source": source,
                        "says": format!("A list with {} contains every item with this {field}.", parameter.name),
                        "check": { "list-filter": { "operations": [operation.id], "filters": { parameter.name.clone(): { "at": at, "keeps": "one-of" } } } },
                    }),
                ]);
            }
            if let Some(size) = self.requests.paging.get(&n).and_then(|p| p.size.clone()) {
                let parameter = operation.parameter(&size);
                // The rule of the parameter itself has the id that its name gives it.
                let is_taken = operation
                    .parameters
                    .iter()
                    .any(|p| kebab(&p.name) == "page-size");
                let end = if is_taken { "page-limit" } else { "page-size" };
                rules.entry(topic).or_default().push(json!({
                    "id": format!("{}/{}/{end}", self.service, operation.id),
                    "basis": "inferred",
                    "source": parameter.map_or(source, |p| self.doc.source(&p.part)),
                    "says": format!("A page contains at most {size} items."),
                    "check": { "list-size": { "operations": [operation.id], "parameter": size } },
                }));
            }
        }
        rules
    }

    fn requests_reference(&self, name: &str) -> bool {
        self.resources.resource_of_reference(name).is_some()
    }

    /// The file that an operation belongs to.
    fn topic(&self, operation: &Operation<'d>) -> String {
        let resource = self.resources.resource_of_path(&operation.path);
        resource.map_or_else(
            || "other".to_owned(),
            |r| self.resources.all[r].name.clone(),
        )
    }

    // ---- scenarios/

    fn scenarios(&mut self) -> BTreeMap<String, Map<String, Value>> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (n, _) in self.operations() {
            for need in self.happy[n].iter().flat_map(|happy| happy.needs.clone()) {
                groups.extend(self.requests.closure(need).map(|closure| (need, closure)));
            }
        }
        let mut files: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        let mut used = BTreeSet::new();
        let mut happy_paths = Vec::new();
        let chosen: Vec<(usize, &Operation<'d>)> = self.operations().collect();
        for (n, operation) in chosen {
            let topic = self.topic(operation);
            let happy = self.happy[n].clone().unwrap_or_default();
            let mut path = Map::new();
            let sent = format!("{:?}{:?}", happy.with, happy.optional);
            let setup = self.setup(&happy.needs, &groups, &mut used);
            let setup = self.with_used_captures(setup, &sent);
            if !setup.is_empty() {
                path.insert("setup".to_owned(), setup.into());
            }
            for (key, values) in [
                ("with", happy.with),
                ("optional", happy.optional),
                ("except", happy.except),
            ] {
                if !values.is_empty() {
                    path.insert(key.to_owned(), values.into());
                }
            }
            happy_paths.push((topic, operation.id.clone(), path));
        }
        for resource in &used {
            let name = self.resources.all[*resource].name.clone();
            let steps: Vec<Value> = groups[resource]
                .iter()
                .map(|one| self.existing(*one))
                .collect();
            let group = json!({ "says": format!("{} that exists.", capital(&with_article(&name))), "steps": steps });
            section(&mut files, &name, "groups").insert(group_name(&name), group);
        }
        for (topic, id, path) in happy_paths {
            section(&mut files, &topic, "operations").insert(id, path.into());
        }
        for resource in 0..self.resources.all.len() {
            let scenarios = self.resource_scenarios(resource);
            if !scenarios.is_empty() {
                let topic = self.resources.all[resource].name.clone();
                let file = files.entry(topic.clone()).or_default();
                file.insert("scenarios".to_owned(), scenarios.into());
                self.decide(
                    "scenarios",
                    format!("{topic}.yaml: the values of requests follow from names and schemas; replace those that the service refuses"),
                );
            }
        }
        files
    }

    /// The steps before a request: a group where one makes all that is needed.
    fn setup(
        &self,
        needs: &[usize],
        groups: &BTreeMap<usize, Vec<usize>>,
        used: &mut BTreeSet<usize>,
    ) -> Vec<Value> {
        let whole = needs.last().filter(|last| {
            groups
                .get(last)
                .is_some_and(|g| g.len() == needs.len() && g.iter().all(|one| needs.contains(one)))
        });
        if let Some(last) = whole {
            used.insert(*last);
            return vec![json!({ "use": group_name(&self.resources.all[*last].name) })];
        }
        needs.iter().map(|one| self.existing(*one)).collect()
    }

    /// The step that makes a resource, or finds it, under its own name.
    fn existing(&self, resource: usize) -> Value {
        let capture = self.requests.capture(resource);
        self.requests.step(resource, FIRST, &capture)
    }

    /// The same for all that a scenario needs, as setup steps.
    fn existing_before(&self, needs: &[usize]) -> Vec<Value> {
        let steps = needs.iter().map(|one| {
            let mut step = self.existing(*one);
            step["setup"] = json!(true);
            step
        });
        steps.collect()
    }

    /// The steps without captures that neither later steps nor a request after them use.
    /// Steps that only find a resource, or make one for a scenario, are left out with their capture.
    fn with_used_captures(&self, steps: Vec<Value>, after: &str) -> Vec<Value> {
        let mut uses = after.to_owned();
        let mut kept = Vec::new();
        for mut step in steps.into_iter().rev() {
            let unused = step["capture"].as_str().filter(|name| {
                !uses.contains(&format!("${{{name}.")) && !uses.contains(&format!("${{{name}}}"))
            });
            if unused.is_some() {
                let mut all = self.resources.all.iter();
                let finds = all.any(|r| {
                    r.creator.is_none()
                        && r.list
                            .is_some_and(|n| step["call"] == self.api.operations[n].id)
                });
                if finds || step["setup"] == true {
                    continue;
                }
                step.as_object_mut()
                    .map(|step| step.shift_remove("capture"));
            }
            uses.push_str(&step.to_string());
            kept.push(step);
        }
        kept.reverse();
        kept
    }

    fn resource_scenarios(&self, resource: usize) -> Vec<Value> {
        let known = &self.resources.all[resource];
        let is_there = |n: &usize| self.happy[*n].is_some();
        let Some(creator) = known.creator.filter(is_there) else {
            return Vec::new();
        };
        if known.key.is_none() {
            return Vec::new();
        }
        let Ok(made) = self.requests.happy(creator, FIRST) else {
            return Vec::new();
        };
        let list = known.list.filter(is_there);
        let mut scenarios = vec![json!({
            "id": format!("{}/{}/life", self.service, known.name),
            "says": format!("Creates two resources of the type {}, changes and deletes one, and reads both after each step.", noun(&known.name)),
            "steps": self.with_used_captures(self.life(resource, &made, list), ""),
        })];
        scenarios.extend(self.filters(resource, list));
        scenarios
    }

    /// Two resources are created, one is changed and deleted, and both are read after each step.
    fn life(&self, resource: usize, made: &Happy, list: Option<usize>) -> Vec<Value> {
        let known = &self.resources.all[resource];
        let is_there = |n: &usize| self.happy[*n].is_some();
        let (one, other) = ("one", "other");
        let fetch = known.fetch.filter(is_there);
        let look =
            |capture: &str| fetch.map(|n| self.call(n, self.named(n, FIRST, (resource, capture))));
        let walk = || {
            let n = list?;
            let mut step = self.call(n, self.named(n, FIRST, (resource, one)));
            step["walk"] = json!(true);
            Some(step)
        };
        let mut steps = self.existing_before(&made.needs);
        steps.push(self.requests.step(resource, FIRST, one));
        steps.push(self.requests.step(resource, OTHER, other));
        steps.extend(look(one));
        steps.extend(look(other));
        steps.extend(walk());
        let changes = [known.update, known.replace].into_iter().flatten();
        for n in changes.filter(is_there) {
            let Some(change) = self.change(n, (resource, one), made) else {
                continue;
            };
            steps.push(change);
            steps.extend(look(one));
            steps.extend(look(other));
        }
        if let Some(n) = known.delete.filter(is_there) {
            steps.push(self.call(n, self.named(n, FIRST, (resource, one))));
            steps.extend(look(one).map(|mut step| {
                step["either"] = json!(true);
                step
            }));
            steps.extend(look(other));
        }
        if list.is_some()
            && (known.delete.is_some() || known.update.is_some() || known.replace.is_some())
        {
            steps.push(json!({ "wait": "settled" }));
            steps.extend(walk());
        }
        steps
    }

    /// The step that changes a resource, unless it needs more than its creation or sends nothing.
    fn change(&self, n: usize, (resource, capture): (usize, &str), made: &Happy) -> Option<Value> {
        let change = self.requests.happy(n, CHANGE).ok()?;
        let is_made = |need: &usize| *need == resource || made.needs.contains(need);
        if !change.needs.iter().all(is_made) {
            return None;
        }
        let mut with = self.named(n, CHANGE, (resource, capture));
        with.extend(change.optional);
        let is_empty = with.len() == self.api.operations[n].path_names().len();
        (!is_empty).then(|| self.call(n, with))
    }

    fn call(&self, n: usize, with: Map<String, Value>) -> Value {
        let mut step = json!({ "call": self.api.operations[n].id });
        step["with"] = with.into();
        step
    }

    /// The parameters of an operation, with the resource of a capture.
    fn named(&self, n: usize, turn: Turn<'_>, of: (usize, &str)) -> Map<String, Value> {
        let happy = self.requests.happy(n, turn);
        self.keyed(happy.map(|happy| happy.with).unwrap_or_default(), of)
    }

    /// Parameters in which a captured resource takes the place of the one that the operation needs.
    fn keyed(
        &self,
        with: Map<String, Value>,
        (resource, capture): (usize, &str),
    ) -> Map<String, Value> {
        let own = self.requests.key(resource);
        let key = self.requests.key_in(resource, capture).unwrap_or_default();
        let with = with.into_iter().map(|(name, value)| {
            let value = if value == own { key.clone() } else { value };
            (name, value)
        });
        with.collect()
    }

    /// Each filter of a list with two resources that differ in its field.
    fn filters(&self, resource: usize, list: Option<usize>) -> Vec<Value> {
        let known = &self.resources.all[resource];
        let (Some(list), Some(creator)) = (list, known.creator) else {
            return Vec::new();
        };
        let Some(happy) = &self.happy[list] else {
            return Vec::new();
        };
        let body = self.api.operations[creator].body_fields();
        let body: Vec<&str> = body.map(|f| f.name.as_str()).collect();
        let mut scenarios = Vec::new();
        for name in happy.optional.keys() {
            let Some((_, at)) = self.requests.filtered(list, name) else {
                continue;
            };
            let field = at.trim_start_matches('/');
            if !body.contains(&field) || self.requests_reference(field) {
                continue;
            }
            let Ok(make) = self.requests.happy(creator, FIRST) else {
                continue;
            };
            let mut steps = self.existing_before(&make.needs);
            let made = |turn: Turn<'_>, capture: &str| {
                let mut step = self.requests.step(resource, turn, capture);
                if let Ok(happy) = self.requests.happy(creator, turn)
                    && let Some(value) = happy.optional.get(field)
                {
                    step["with"][field] = value.clone();
                }
                step
            };
            steps.push(made(FIRST, "one"));
            steps.push(made(OTHER, "other"));
            for capture in ["one", "other"] {
                let mut with = happy.with.clone();
                with.insert(
                    name.clone(),
                    json!(format!("${{{capture}{}}}", at.replace('/', "."))),
                );
                let mut step = self.call(list, self.keyed(with, (resource, capture)));
                step["walk"] = json!(true);
                steps.push(step);
            }
            scenarios.push(json!({
                "id": format!("{}/{}/by-{}", self.service, known.name, kebab(name)),
                "says": format!("Creates two resources that differ in {field} and reads the list with each value of {name}."),
                "steps": self.with_used_captures(steps, ""),
            }));
        }
        scenarios
    }

    // ---- laws.yaml

    /// A row for everything that an invariant applies to.
    fn laws(&mut self, files: &BTreeMap<String, Map<String, Value>>) -> Map<String, Value> {
        let texts = files.iter().map(|(path, file)| {
            (
                format!("{}/{path}", self.service),
                write::file(&[], file).into_bytes(),
            )
        });
        let Ok(rulebook) = Rulebook::sound_of_files_by(predicates(), texts) else {
            return object(json!({ "laws": [] }));
        };
        let model = Model {
            services: &rulebook.services,
            kinds: &rulebook.kinds,
        };
        let mut laws = Vec::new();
        for law in predicates().names() {
            let Some(subjects) = predicates().applicable_subjects(law, &model) else {
                continue;
            };
            let mut rows = Map::new();
            let mut except = Map::new();
            let prefix = format!("{}/", self.service);
            let subjects: BTreeSet<&str> = subjects
                .iter()
                .filter_map(|s| s.strip_prefix(&prefix))
                .collect();
            for subject in subjects {
                let operation = self.api.operations.iter().find(|o| o.id == subject);
                let kind = self.resources.schema_files.get(subject);
                let part = operation
                    .map(|o| &o.part)
                    .or_else(|| kind.map(|k| &k.shape.part));
                let Some(part) = part else { continue };
                if *law == "other-fields-unchanged" && operation.is_some_and(|o| o.method == "put")
                {
                    except.insert(subject.to_owned(), json!("PUT replaces the resource, so that fields that are left out may be unset."));
                    continue;
                }
                let mut row = object(self.doc.source(part));
                row.insert(
                    "id".to_owned(),
                    json!(format!("{}/{subject}/{}", self.service, suffix(law))),
                );
                rows.insert(subject.to_owned(), row.into());
            }
            if rows.is_empty() && except.is_empty() {
                continue;
            }
            let mut written = object(json!({ "law": law, "says": says(law), "basis": "inferred" }));
            if *law == "response-format" {
                written.insert("level".to_owned(), json!("should"));
            }
            written.insert("rows".to_owned(), rows.into());
            if !except.is_empty() {
                written.insert("except".to_owned(), except.into());
            }
            laws.push(Value::Object(written));
        }
        self.decide("laws", "an invariant that the service does not promise: move its row to `except` with the reason, or add `level: should`".to_owned());
        object(json!({ "laws": laws }))
    }
}

/// What the ids of the rows of an invariant end in.
fn suffix(law: &str) -> &str {
    match law {
        "consistent-reads" => "reads-agree",
        "response-format" => "empty-response",
        other => other,
    }
}

fn says(law: &str) -> &'static str {
    match law {
        "immutable" => "A field that never changes has the same value in every response.",
        "page-links" => "Each page URL in a list response leads to the page that it names.",
        "write-persists" => {
            "What a request sets is shown by every later response until a request changes it."
        }
        "parent-scope" => "A resource is found under its own parent and under no other parent.",
        "list-complete" => "A list contains each existing resource of its scope exactly once.",
        "deleted-is-absent" => "A deleted resource is absent from every endpoint and list.",
        "response-format" => "The response to a delete request has no body.",
        "other-resources-unchanged" => {
            "A request does not change any resource that it does not name."
        }
        "other-fields-unchanged" => "An update does not change fields that it does not name.",
        "rejected-create" => "A rejected create request does not create a resource.",
        "consistent-reads" => {
            "A resource has the same field values in every response as long as no request changes it."
        }
        _ => "The invariant holds.",
    }
}

fn response(description: &str, schema: &Value) -> Value {
    let content = json!({ "application/json": { "schema": schema } });
    json!({ "description": description, "content": content })
}

/// A mapping of a file, empty where it is new.
fn section<'f>(
    files: &'f mut BTreeMap<String, Map<String, Value>>,
    topic: &str,
    key: &str,
) -> &'f mut Map<String, Value> {
    let file = files.entry(topic.to_owned()).or_default();
    let value = file.entry(key.to_owned()).or_insert_with(|| json!({}));
    value.as_object_mut().expect("sections are mappings")
}

fn without_null(mut schema: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    schema
}

fn group_name(resource: &str) -> String {
    with_article(resource).replace(' ', "-")
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

/// The id of the document that sources cite.
pub(crate) fn document_id(service: &str) -> String {
    service.to_ascii_uppercase().chars().take(16).collect()
}
