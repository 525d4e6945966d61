//! The files of the folder.

mod invariants;
mod operations;
mod rules;
mod scenarios;
mod schemas;
mod service;

use crate::api::{Api, Operation};
use crate::document::Document;
use crate::paging::Paging;
use crate::requests::{Happy, Requests, Turn};
use crate::resources::{Resources, with_article};
use crate::schema::{Schemas, is_single, object};
use crate::write;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A first request.
const FIRST: Turn<'static> = Turn::new("", false);
/// A request for another resource.
const OTHER: Turn<'static> = Turn::new("other", true);
/// A request that changes a resource.
const CHANGE: Turn<'static> = Turn::new("changed", true);

/// Ends of ids of rules about an operation as a whole.
const RULES: &str = "credentials key page-limit page-size request walk";

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
        for name in self.kinds_in_use() {
            let schema = self.schema(&name);
            files.insert(format!("schemas/{name}.yaml"), schema);
        }
        for (name, rules) in self.rules() {
            let file = object(json!({ "rules": rules }));
            files.insert(format!("rules/{name}.yaml"), file);
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
}

/// The id of the document that sources cite.
pub(crate) fn document_id(service: &str) -> String {
    service.to_ascii_uppercase().chars().take(16).collect()
}
