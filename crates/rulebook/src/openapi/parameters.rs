//! The parameters of an operation, in path, query, header fields and body, each with its rule.

use super::keys::ParameterObject;
use super::operation::Reader;
use crate::draft::{Derived, Draft, items_of, members_of};
use crate::model::{Echo, Origin, Parameter, ParameterLocation};
use crate::rules::Comparison;
use crate::schemas::{self, At};
use crate::spelling::kebab;
use crate::x_like;
use conformant_base::json;
use conformant_base::sorted::SortedMap;
use conformant_record::{Basis, Level};
use conformant_yaml::Node;
use std::sync::OnceLock;

impl Reader<'_> {
    pub(super) fn parameters(&self, draft: &mut Draft, operation: &str) -> Vec<Parameter> {
        let mut found = Vec::new();
        for (owner, at) in [(self.item, self.item_at), (self.node, self.at.as_str())] {
            let listed = items_of(owner, "parameters");
            for (n, node) in listed.iter().enumerate() {
                let at = format!("{at}/parameters/{n}");
                found.extend(self.parameter(draft, operation, node, &at));
            }
        }
        let mut bodies = self.bodies();
        if let Some((_, at)) = bodies.next() {
            found.extend(self.body_parameters(draft, operation, &at));
        }
        for (_, at) in bodies {
            // Other media types have the same parameters; their schemas are only checked.
            if let Some(node) = schemas::node_at(self.file, &at) {
                schemas::derive(draft, self.files, self.file, &at, node, At::default());
            }
        }
        found
    }

    /// Media types of the body with the places of their schemas.
    pub(super) fn bodies(&self) -> impl Iterator<Item = (&str, String)> {
        self.node
            .get("requestBody")
            .and_then(|body| body.get("content"))
            .map(Node::members)
            .unwrap_or_default()
            .iter()
            .map(|m| {
                let content = json::join(&format!("{}/requestBody/content", self.at), &m.key);
                (&*m.key, format!("{content}/schema"))
            })
    }

    /// Checks that braces in the path and parameters with `in: path` have the same names.
    pub(super) fn check_path(&self, draft: &mut Draft, parameters: &[Parameter]) {
        let braces: Vec<&str> = self
            .path
            .split('{')
            .skip(1)
            .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
            .collect();
        let declared: Vec<&str> = parameters
            .iter()
            .filter(|p| p.place == ParameterLocation::Path)
            .map(|p| p.name.as_str())
            .collect();
        for name in &braces {
            if !declared.contains(name) {
                let message =
                    format!("the path contains `{{{name}}}`, but no such parameter is defined");
                draft.refuse(self.file.problem(&self.at, message));
            }
        }
        for name in declared.iter().filter(|name| !braces.contains(*name)) {
            let span = self.file.node.place(&self.at);
            draft.unknown(
                self.file,
                span,
                "path segment for",
                name,
                braces.iter().copied(),
            );
        }
    }

    /// A parameter, inline or by reference. Members next to the reference replace those of the referenced one.
    fn parameter(
        &self,
        draft: &mut Draft,
        operation: &str,
        node: &Node,
        at: &str,
    ) -> Option<Parameter> {
        if let Some(reference) = node.get("$ref").and_then(Node::text) {
            return match schemas::target(self.files, &self.file.path, reference) {
                Ok((path, pointer)) if path == self.file.path => {
                    let target = schemas::node_at(self.file, &pointer)?;
                    if node.members().len() == 1 {
                        return self.parameter(draft, operation, target, &pointer);
                    }
                    self.parameter(draft, operation, &x_like::merge_reference(node, target), at)
                }
                Ok((path, _)) => {
                    let message = format!(
                        "a parameter in another file, {path}: expected this file's components"
                    );
                    draft.refuse(self.file.problem(at, message));
                    None
                }
                Err(error) => {
                    draft.refuse(self.file.problem(&format!("{at}/$ref"), error.to_string()));
                    None
                }
            };
        }
        let written: ParameterObject = draft.deserialize(self.file, node)?;
        let place = match written.r#in.as_str() {
            "path" => ParameterLocation::Path,
            "query" => ParameterLocation::Query,
            "header" => ParameterLocation::Header,
            other => {
                let message = format!("unsupported `in: {other}`: expected path, query or header");
                draft.refuse(self.file.problem(&format!("{at}/in"), message));
                return None;
            }
        };
        let schema = node.get("schema")?;
        let schema_at = format!("{at}/schema");
        schemas::derive(
            draft,
            self.files,
            self.file,
            &schema_at,
            schema,
            At::default(),
        );
        let required = written.required.unwrap_or(false);
        if place == ParameterLocation::Path && !required {
            draft.refuse(
                self.file
                    .problem(
                        at,
                        format!("the path parameter `{}` is always required", written.name),
                    )
                    .help("add `required: true`"),
            );
        }
        self.finish(
            draft,
            operation,
            node,
            at,
            schema,
            Named {
                name: &written.name,
                place,
                required,
            },
        )
    }

    fn body_parameters(&self, draft: &mut Draft, operation: &str, at: &str) -> Vec<Parameter> {
        let Some(mut node) = schemas::node_at(self.file, at) else {
            return Vec::new();
        };
        let mut at = at.to_owned();
        if let Some(reference) = node.get("$ref").and_then(Node::text) {
            let wrong = match schemas::target(self.files, &self.file.path, reference) {
                Ok((path, pointer)) if path == self.file.path => {
                    let Some(target) = schemas::node_at(self.file, &pointer) else {
                        return Vec::new();
                    };
                    (node, at) = (target, pointer);
                    None
                }
                Ok(_) => {
                    Some("expected an inline body, or one of this file's components".to_owned())
                }
                Err(error) => Some(error.to_string()),
            };
            if let Some(message) = wrong {
                draft.refuse(self.file.problem(&at, message));
                return Vec::new();
            }
        }
        schemas::derive(draft, self.files, self.file, &at, node, At::default());
        let required: Vec<&str> = items_of(node, "required")
            .iter()
            .filter_map(Node::text)
            .collect();
        let properties = members_of(node, "properties");
        properties
            .iter()
            .filter_map(|m| {
                let at = json::join(&format!("{at}/properties"), &m.key);
                self.finish(
                    draft,
                    operation,
                    &m.value,
                    &at,
                    &m.value,
                    Named {
                        name: &m.key,
                        place: ParameterLocation::Body,
                        required: required.contains(&&*m.key),
                    },
                )
            })
            .collect()
    }

    /// Adds the parameter's rule and returns the parameter.
    fn finish(
        &self,
        draft: &mut Draft,
        operation: &str,
        node: &Node,
        at: &str,
        schema: &Node,
        named: Named<'_>,
    ) -> Option<Parameter> {
        let description = draft.says(self.file, at, node, "description");
        let source = draft.source(self.file, at, node, true)?;
        let extension = draft.extension(self.file, node);
        let rule = format!("{}/{operation}/{}", self.file.service(), kebab(named.name));
        let derived = Derived {
            id: rule.clone(),
            says: description.clone(),
            source: source.clone(),
            level: extension.level.unwrap_or(Level::Must),
            basis: extension.basis.unwrap_or(Basis::Stated),
            origin: Origin::Parameter {
                operation: operation.to_owned(),
                parameter: named.name.to_owned(),
            },
        };
        draft.add(self.file, at, derived.rule(self.file, at));
        let schema = schemas::inline(self.files, self.file, schema);
        Some(Parameter {
            name: named.name.to_owned(),
            place: named.place,
            required: named.required,
            default: schema.get("default").cloned(),
            schema,
            echo: self.echo(draft, node, at),
            beside: match node.get("x-beside") {
                Some(written) => draft.deserialize(self.file, written)?,
                None => SortedMap::new(),
            },
            rule,
            description,
            source,
            advice: None,
            path_from: node
                .get("x-path-from")
                .and_then(Node::text)
                .filter(|_| named.place == ParameterLocation::Path)
                .map(str::to_owned),
            form: OnceLock::new(),
        })
    }

    fn echo(&self, draft: &mut Draft, node: &Node, at: &str) -> Option<Echo> {
        let Some(pointer) = node.get("x-echo") else {
            for key in ["x-echo-as", "x-echo-or"] {
                if node.get(key).is_some() {
                    let message = format!("`{key}` without `x-echo`");
                    draft.refuse(self.file.problem(&format!("{at}/{key}"), message));
                }
            }
            return None;
        };
        let compare = match node.get("x-echo-as") {
            Some(word) => draft.deserialize(self.file, word)?,
            None => Comparison::default(),
        };
        let or = node
            .get("x-echo-or")
            .map(|values| values.items().iter().map(Node::to_json).collect())
            .unwrap_or_default();
        let Some(pointer) = pointer.text().filter(|p| p.starts_with('/')) else {
            let message = "expected a JSON Pointer such as `/friendly_name`";
            draft.refuse(self.file.problem(&format!("{at}/x-echo"), message));
            return None;
        };
        Some(Echo {
            at: pointer.to_owned(),
            compare,
            or,
        })
    }
}

#[derive(Clone, Copy)]
struct Named<'a> {
    name: &'a str,
    place: ParameterLocation,
    required: bool,
}
