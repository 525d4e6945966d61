//! `openapi.yaml`: operations, parameters and responses.

use super::{Folder, RULES};
use crate::answers::Answer;
use crate::api::{Body, Field, Operation, Parameter, Place, plain};
use crate::document::Part;
use crate::paging::Paging;
use crate::resources::{noun, with_article};
use crate::schema::{is_single, object, shape, types_of};
use conformant_base::json::join;
use conformant_rulebook::kebab;
use serde_json::{Map, Value, json};

impl<'a, 'd> Folder<'a, 'd> {
    pub(super) fn openapi(&mut self) -> Map<String, Value> {
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

    pub(super) fn parameter(
        &self,
        n: usize,
        operation: &Operation<'d>,
        parameter: &Parameter<'d>,
    ) -> Value {
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
        let taken: Vec<String> = parameters
            .chain(RULES.split(' ').map(str::to_owned))
            .collect();
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
}

fn response(description: &str, schema: &Value) -> Value {
    let content = json!({ "application/json": { "schema": schema } });
    json!({ "description": description, "content": content })
}

fn without_null(mut schema: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    schema
}
