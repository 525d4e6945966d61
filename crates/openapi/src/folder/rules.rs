//! `rules/`: rules that a schema cannot state.

use super::Folder;
use crate::answers::Answer;
use crate::api::{Operation, Place};
use crate::resources::{ShownResource, noun};
use crate::schema::types_of;
use conformant_base::json::join;
use conformant_rulebook::kebab;
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl<'d> Folder<'_, 'd> {
    pub(super) fn rules(&mut self) -> BTreeMap<String, Vec<Value>> {
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

    pub(super) fn requests_reference(&self, name: &str) -> bool {
        self.resources.resource_of_reference(name).is_some()
    }

    /// The file that an operation belongs to.
    pub(super) fn topic(&self, operation: &Operation<'d>) -> String {
        let resource = self.resources.resource_of_path(&operation.path);
        resource.map_or_else(
            || "other".to_owned(),
            |r| self.resources.all[r].name.clone(),
        )
    }
}
