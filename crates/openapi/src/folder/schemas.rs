//! `schemas/`: resource types with their annotations.

use super::Folder;
use crate::api::plain;
use crate::resources::{Parent, SchemaFile, ShownResource, noun, with_article};
use crate::schema::object;
use conformant_base::json::join;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

impl<'d> Folder<'_, 'd> {
    pub(super) fn schema(&mut self, name: &str) -> Map<String, Value> {
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
}
