//! `openapi.yaml`: the subset of OpenAPI 3.1 that the rulebook uses, as operations with their
//! derived rules and inline pages.
//!
//! Unknown keys are problems. Nothing is sent from here.

use super::alike;
use super::annotations::Annotations;
use super::draft::{Derived, Draft, File, Files, RuleExtension};
use super::model::{Does, Echo, Kind, Operation, Origin, Parameter, Place, Service};
use super::rules::Comparison;
use super::schemas::{self, At, Bundler};
use super::tree::Node;
use super::words::{is_id, kebab};
use crate::json;
use crate::source::Source;
use crate::verdict::{Basis, Level};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Keys of the document itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "read to refuse unknown keys; the tree is walked for values"
)]
struct Document {
    openapi: String,
    info: Info,
    #[serde(default)]
    servers: Vec<Server>,
    #[serde(default)]
    security: Vec<BTreeMap<String, Vec<String>>>,
    paths: IgnoredAny,
    #[serde(default)]
    components: Components,
    tags: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read to refuse unknown keys")]
struct Info {
    title: String,
    version: String,
    description: Option<String>,
    summary: Option<String>,
    #[serde(rename = "x-requests")]
    requests: Option<Requests>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read to refuse unknown keys")]
struct Requests {
    description: Option<String>,
    #[serde(rename = "x-source")]
    source: Option<IgnoredAny>,
    #[serde(default)]
    advice: Vec<Advised>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "read to refuse unknown keys; the tree is walked for values"
)]
struct Advised {
    parameters: Vec<String>,
    pattern: String,
    description: String,
    #[serde(rename = "x-source")]
    source: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read to refuse unknown keys")]
struct Server {
    url: String,
    description: Option<String>,
    variables: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "read to refuse unknown keys")]
struct Components {
    #[serde(default)]
    security_schemes: BTreeMap<String, SecurityScheme>,
    schemas: Option<IgnoredAny>,
    parameters: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read to refuse unknown keys")]
struct SecurityScheme {
    r#type: String,
    scheme: Option<String>,
    name: Option<String>,
    r#in: Option<String>,
    description: Option<String>,
    #[serde(rename = "x-source")]
    source: Option<IgnoredAny>,
    #[serde(rename = "x-rule")]
    rule: Option<RuleExtension>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read to refuse unknown keys")]
struct PathItem {
    summary: Option<String>,
    description: Option<String>,
    parameters: Option<IgnoredAny>,
    get: Option<IgnoredAny>,
    post: Option<IgnoredAny>,
    put: Option<IgnoredAny>,
    patch: Option<IgnoredAny>,
    delete: Option<IgnoredAny>,
    #[serde(rename = "x-path-from")]
    path_from: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(
    dead_code,
    reason = "read to refuse unknown keys; the tree is walked for values"
)]
struct OperationObject {
    operation_id: String,
    summary: Option<String>,
    description: Option<String>,
    parameters: Option<IgnoredAny>,
    request_body: Option<RequestBody>,
    responses: BTreeMap<String, Response>,
    security: Option<Vec<BTreeMap<String, Vec<String>>>>,
    tags: Option<Vec<String>>,
    deprecated: Option<bool>,
    #[serde(rename = "x-source")]
    source: IgnoredAny,
    #[serde(rename = "x-rule")]
    rule: Option<RuleExtension>,
    #[serde(rename = "x-does")]
    does: Option<IgnoredAny>,
    #[serde(rename = "x-path-from")]
    path_from: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read to refuse unknown keys")]
struct RequestBody {
    required: Option<bool>,
    description: Option<String>,
    content: BTreeMap<String, MediaType>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read to refuse unknown keys")]
struct Response {
    description: String,
    #[serde(default)]
    content: BTreeMap<String, MediaType>,
    headers: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read to refuse unknown keys")]
struct MediaType {
    schema: IgnoredAny,
    encoding: Option<IgnoredAny>,
    example: Option<IgnoredAny>,
    examples: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "read to refuse unknown keys; the tree is walked for values"
)]
struct ParameterObject {
    name: String,
    r#in: String,
    required: Option<bool>,
    description: Option<String>,
    schema: IgnoredAny,
    style: Option<String>,
    explode: Option<bool>,
    deprecated: Option<bool>,
    example: Option<IgnoredAny>,
    #[serde(rename = "x-source")]
    source: Option<IgnoredAny>,
    #[serde(rename = "x-rule")]
    rule: Option<RuleExtension>,
    #[serde(rename = "x-echo")]
    echo: Option<String>,
    #[serde(rename = "x-echo-as")]
    echo_as: Option<Comparison>,
    #[serde(rename = "x-echo-or")]
    echo_or: Option<Vec<Value>>,
    #[serde(rename = "x-beside")]
    beside: Option<BTreeMap<String, Vec<Value>>>,
}

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// What an `openapi.yaml` describes.
#[derive(Default)]
pub(super) struct Described {
    pub(super) operations: BTreeMap<String, Operation>,
    pub(super) kinds: Vec<Kind>,
    /// What the document says of the bodies of requests: in our own words, and where.
    pub(super) bodies: Option<(String, Source)>,
    /// What it advises clients to send.
    pub(super) advice: Vec<Advice>,
}

/// What a document advises of the values of some parameters.
pub(super) struct Advice {
    /// Names of parameters, in queries and bodies.
    pub(super) parameters: Vec<String>,
    /// What their texts match.
    pub(super) pattern: String,
    /// In our own words.
    pub(super) says: String,
    pub(super) source: Source,
}

/// Reads a service's operations and adds their rules.
pub(super) fn read(draft: &mut Draft, files: &Files, file: &File) -> Described {
    // The typed reading refuses unknown keys; values and their places come from the tree.
    let _: Option<Document> = draft.typed(file, &file.node);
    let mut described = Described::default();
    derive_components(draft, files, file);
    if let Some(node) = file.node.get("info").and_then(|i| i.get("x-requests")) {
        requests(draft, file, node, &mut described);
    }
    let Some(paths) = file.node.get("paths") else {
        return described;
    };
    for path in paths.members() {
        let at = json::join("/paths", &path.key);
        let _: Option<PathItem> = draft.typed(file, &path.value);
        if !path.key.starts_with('/') {
            draft
                .problems
                .push(file.problem_at(path.key_span, "a path starts with `/`"));
        }
        for method in METHODS {
            if let Some(node) = path.value.get(method) {
                let reader = Reader {
                    files,
                    file,
                    item: &path.value,
                    item_at: &at,
                    path: &path.key,
                    method,
                    node,
                    at: format!("{at}/{method}"),
                };
                reader.read(draft, &mut described);
            }
        }
    }
    described
}

/// What `info` says of requests as a whole.
fn requests(draft: &mut Draft, file: &File, node: &Node, described: &mut Described) {
    const AT: &str = "/info/x-requests";
    if node.get("description").is_some() {
        let says = draft.says(file, AT, node, "description");
        let source = draft.source(file, AT, node, true);
        described.bodies = source.map(|source| (says, source));
    }
    let listed = node.get("advice").map(Node::items).unwrap_or_default();
    for (n, node) in listed.iter().enumerate() {
        let at = format!("{AT}/advice/{n}");
        let says = draft.says(file, &at, node, "description");
        let pattern = node.get("pattern").and_then(Node::text).unwrap_or_default();
        if let Some(fault) = draft.pattern_fault(pattern) {
            draft
                .problems
                .push(file.problem(&format!("{at}/pattern"), fault));
        }
        let names = node.get("parameters").map(Node::items).unwrap_or_default();
        let source = draft.source(file, &at, node, true);
        described.advice.extend(source.map(|source| {
            Advice {
                parameters: names
                    .iter()
                    .filter_map(Node::text)
                    .map(str::to_owned)
                    .collect(),
                pattern: pattern.to_owned(),
                says,
                source,
            }
        }));
    }
}

fn derive_components(draft: &mut Draft, files: &Files, file: &File) {
    let Some(schemas) = file.node.get("components").and_then(|c| c.get("schemas")) else {
        return;
    };
    for member in schemas.members() {
        let at = json::join("/components/schemas", &member.key);
        schemas::derive(draft, files, file, &at, &member.value, At::default());
    }
}

/// One operation while it is read.
struct Reader<'a> {
    files: &'a Files,
    file: &'a File,
    item: &'a Node,
    item_at: &'a str,
    path: &'a str,
    method: &'a str,
    node: &'a Node,
    at: String,
}

impl Reader<'_> {
    fn read(&self, draft: &mut Draft, described: &mut Described) {
        let (file, node) = (self.file, self.node);
        let checked: Option<OperationObject> = draft.typed(file, node);
        let Some(id) = node.get("operationId").and_then(Node::text) else {
            return;
        };
        let service = file.service().to_owned();
        let rule_id = format!("{service}/{id}");
        if !is_id(&rule_id) {
            let message = format!("`{id}` is no kebab-case operation id");
            draft.problems.push(
                file.problem(&format!("{}/operationId", self.at), message)
                    .help("verb-noun such as `create-channel`"),
            );
            return;
        }
        let summary = draft.says(file, &self.at, node, "summary");
        let Some(source) = draft.source(file, &self.at, node, true) else {
            return;
        };
        if checked.is_none() {
            return;
        }
        let extension = draft.extension(file, node);
        self.add(
            draft,
            &rule_id,
            &summary,
            &source,
            extension,
            Origin::Operation {
                operation: id.to_owned(),
            },
        );
        let parameters = self.parameters(draft, id);
        self.check_path(draft, &parameters);
        let response = self.response(draft, described, id, "2XX");
        let error = self
            .response(draft, described, id, "4XX")
            .and_then(|r| r.kind);
        let is_list_key_told = response.as_ref().is_some_and(|r| r.is_list_key_told);
        let list_key = response.as_ref().and_then(|r| r.list_key.clone());
        if let Some(list) = &list_key {
            self.list_rules(draft, id, list);
        }
        let secured = self.credentials(draft, id, &source);
        let path_from = node
            .get("x-path-from")
            .or_else(|| self.item.get("x-path-from"))
            .and_then(Node::text)
            .map(str::to_owned);
        let operation = Operation {
            id: id.to_owned(),
            service,
            method: self.method.to_ascii_uppercase(),
            path: if path_from.is_some() {
                String::new()
            } else {
                self.path.to_owned()
            },
            path_from,
            summary,
            source,
            secured,
            parameters,
            bodies: self.bodies().map(|(media, _)| media.to_owned()).collect(),
            response: response.and_then(|r| r.kind),
            error,
            does: self.does(draft, list_key.is_some()),
            thing: None,
            list_key,
            is_list_key_told,
        };
        rule_paths(draft, &operation);
        described.operations.insert(id.to_owned(), operation);
    }

    fn add(
        &self,
        draft: &mut Draft,
        id: &str,
        says: &str,
        source: &Source,
        extension: RuleExtension,
        origin: Origin,
    ) {
        let rule = Derived {
            id: id.to_owned(),
            says: says.to_owned(),
            source: source.clone(),
            level: extension.level.unwrap_or(Level::Must),
            basis: extension.basis.unwrap_or(Basis::Stated),
            origin,
        };
        draft.add(self.file, &self.at, rule.rule(self.file, &self.at));
    }

    /// What it does, as method and path say it, or else `x-does`.
    fn does(&self, draft: &mut Draft, is_list: bool) -> Does {
        let by_itself = match self.method {
            "delete" => Does::Ends,
            "get" if is_list => Does::Lists,
            "get" => Does::Shows,
            _ if self.path.ends_with('}') => Does::Changes,
            _ => Does::Makes,
        };
        let Some(written) = self.node.get("x-does") else {
            return by_itself;
        };
        let does = draft.typed(self.file, written).unwrap_or(by_itself);
        if does == by_itself {
            let message = "`x-does` says what method and path say already";
            let at = format!("{}/x-does", self.at);
            draft.problems.push(self.file.problem(&at, message));
        }
        does
    }

    /// Media types of the body with their schemas' places.
    fn bodies(&self) -> impl Iterator<Item = (&str, String)> {
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

    fn parameters(&self, draft: &mut Draft, operation: &str) -> Vec<Parameter> {
        let mut found = Vec::new();
        for (owner, at) in [(self.item, self.item_at), (self.node, self.at.as_str())] {
            let listed = owner.get("parameters").map(Node::items).unwrap_or_default();
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
            // A further media type carries the same parameters; its schema is only checked.
            if let Some(node) = schemas::node_at(self.file, &at) {
                schemas::derive(draft, self.files, self.file, &at, node, At::default());
            }
        }
        found
    }

    /// A parameter written out or referred to; what stands beside the reference takes the place of the other's.
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
                    self.parameter(draft, operation, &alike::referring(node, target), at)
                }
                Ok((path, _)) => {
                    let message = format!("a parameter in another file, {path}");
                    draft.problems.push(self.file.problem(at, message));
                    None
                }
                Err(message) => {
                    draft
                        .problems
                        .push(self.file.problem(&format!("{at}/$ref"), message));
                    None
                }
            };
        }
        let written: ParameterObject = draft.typed(self.file, node)?;
        let place = match written.r#in.as_str() {
            "path" => Place::Path,
            "query" => Place::Query,
            "header" => Place::Header,
            other => {
                let message = format!("`in: {other}` is not used; path, query or header are");
                draft
                    .problems
                    .push(self.file.problem(&format!("{at}/in"), message));
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
        if place == Place::Path && !required {
            draft.problems.push(
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
            match schemas::target(self.files, &self.file.path, reference) {
                Ok((path, pointer)) if path == self.file.path => {
                    let Some(target) = schemas::node_at(self.file, &pointer) else {
                        return Vec::new();
                    };
                    node = target;
                    at = pointer;
                }
                Ok(_) => {
                    let message = "a body is written out, or under this file's components";
                    draft.problems.push(self.file.problem(&at, message));
                    return Vec::new();
                }
                Err(message) => {
                    draft.problems.push(self.file.problem(&at, message));
                    return Vec::new();
                }
            }
        }
        schemas::derive(draft, self.files, self.file, &at, node, At::default());
        let required: Vec<&str> = node
            .get("required")
            .map(Node::items)
            .unwrap_or_default()
            .iter()
            .filter_map(Node::text)
            .collect();
        let properties = node
            .get("properties")
            .map(Node::members)
            .unwrap_or_default();
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
                        place: Place::Body,
                        required: required.contains(&&*m.key),
                    },
                )
            })
            .collect()
    }

    /// Adds the parameter's rule and gives the parameter.
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
                Some(written) => draft.typed(self.file, written)?,
                None => BTreeMap::new(),
            },
            rule,
            description,
            source,
            advice: None,
            form: OnceLock::new(),
        })
    }

    fn echo(&self, draft: &mut Draft, node: &Node, at: &str) -> Option<Echo> {
        let Some(pointer) = node.get("x-echo") else {
            for key in ["x-echo-as", "x-echo-or"] {
                if node.get(key).is_some() {
                    let message = format!("`{key}` without `x-echo`");
                    draft
                        .problems
                        .push(self.file.problem(&format!("{at}/{key}"), message));
                }
            }
            return None;
        };
        let compare = match node.get("x-echo-as") {
            Some(word) => draft.typed(self.file, word)?,
            None => Comparison::default(),
        };
        let or = node
            .get("x-echo-or")
            .map(|values| values.items().iter().map(Node::to_json).collect())
            .unwrap_or_default();
        let Some(pointer) = pointer.text().filter(|p| p.starts_with('/')) else {
            let message = "expected a JSON Pointer such as `/friendly_name`";
            draft
                .problems
                .push(self.file.problem(&format!("{at}/x-echo"), message));
            return None;
        };
        Some(Echo {
            at: pointer.to_owned(),
            compare,
            or,
        })
    }

    /// Braces in the path and parameters with `in: path` name the same things.
    fn check_path(&self, draft: &mut Draft, parameters: &[Parameter]) {
        let braces: Vec<&str> = self
            .path
            .split('{')
            .skip(1)
            .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
            .collect();
        let declared: Vec<&str> = parameters
            .iter()
            .filter(|p| p.place == Place::Path)
            .map(|p| p.name.as_str())
            .collect();
        for name in &braces {
            if !declared.contains(name) {
                let message = format!("the path names `{{{name}}}`, which is no parameter");
                draft.problems.push(self.file.problem(&self.at, message));
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

    fn response(
        &self,
        draft: &mut Draft,
        described: &mut Described,
        operation: &str,
        status: &str,
    ) -> Option<Answer> {
        let responses = self.node.get("responses")?;
        for member in responses.members() {
            if !["2XX", "4XX"].contains(&&*member.key) {
                let message = format!(
                    "`{}` is not used: no document shows status codes",
                    member.key
                );
                draft.problems.push(
                    self.file
                        .problem_at(member.key_span, message)
                        .help("write `2XX` for accepted and `4XX` for refused answers"),
                );
            }
        }
        let content = responses.get(status)?.get("content")?;
        let media = content
            .members()
            .iter()
            .find(|m| m.key == "application/json")
            .or_else(|| content.members().first())?;
        let schema = media.value.get("schema")?;
        let at = json::join(
            &format!("{}/responses/{status}/content", self.at),
            &media.key,
        );
        let at = format!("{at}/schema");
        if let Some(reference) = schema.get("$ref").and_then(Node::text) {
            schemas::derive(draft, self.files, self.file, &at, schema, At::default());
            let (path, _) = schemas::target(self.files, &self.file.path, reference).ok()?;
            return schemas::owner(&path).map(|(kind, _)| Answer {
                kind: Some(kind),
                list_key: None,
                is_list_key_told: false,
            });
        }
        let prefix = format!("{}/{operation}", self.file.service());
        let list_key = schema.get("x-list-key").and_then(Node::text);
        let page_of = match list_key {
            Some(key) => Some((
                self.item_kind(draft, schema, key, &at)?,
                Some(key.to_owned()),
            )),
            None => None,
        };
        let name = page_of
            .as_ref()
            .map_or_else(|| prefix.clone(), |(item, _)| format!("{item}[]"));
        let root = At::root(&name, &prefix);
        // The representation as a whole has the operation's source.
        schemas::derive(draft, self.files, self.file, &at, schema, root.clone());
        if described.kinds.iter().any(|k| k.name == name) {
            let message = format!("another operation of the service shows `{name}` already");
            draft.problems.push(self.file.problem(&at, message));
            return None;
        }
        described.kinds.push(Kind {
            name: name.clone(),
            schema: Bundler::new(self.files).bundle(self.file, schema, root),
            about: Annotations::default(),
            page_of,
        });
        Some(Answer {
            kind: Some(name),
            list_key: list_key.map(str::to_owned),
            is_list_key_told: schema.get("x-list-key-told").is_some(),
        })
    }

    /// Kind of the items of a page.
    fn item_kind(&self, draft: &mut Draft, schema: &Node, key: &str, at: &str) -> Option<String> {
        let Some(list) = schema.get("properties").and_then(|p| p.get(key)) else {
            let known = schema
                .get("properties")
                .map(Node::members)
                .unwrap_or_default();
            let span = self.file.node.place(&format!("{at}/x-list-key"));
            let known = known.iter().map(|m| &*m.key);
            draft.unknown(self.file, span, "property", key, known);
            return None;
        };
        let kind = list
            .get("items")
            .and_then(|items| items.get("$ref"))
            .and_then(Node::text)
            .and_then(|r| schemas::target(self.files, &self.file.path, r).ok())
            .and_then(|(path, _)| schemas::owner(&path));
        if kind.is_none() {
            draft.problems.push(
                self.file
                    .problem(
                        &format!("{at}/properties/{key}"),
                        "the items of a page refer to a resource",
                    )
                    .help("write `items: { $ref: schemas/RESOURCE.yaml }`"),
            );
        }
        kind.map(|(kind, _)| kind)
    }

    fn list_rules(&self, draft: &mut Draft, operation: &str, key: &str) {
        let at = format!("{}/responses/2XX/content/application~1json/schema", self.at);
        let property = json::join(&format!("{at}/properties"), key);
        let Some(node) = schemas::node_at(self.file, &property) else {
            return;
        };
        let Some(source) = draft.source(self.file, &property, node, false) else {
            return;
        };
        let id = |what: &str| format!("{}/{operation}/{what}", self.file.service());
        self.add(
            draft,
            &id("key"),
            &format!("The array stands under the name that meta.key gives, {key}."),
            &source,
            RuleExtension::default(),
            Origin::ListKey {
                operation: operation.to_owned(),
            },
        );
        self.add(
            draft,
            &id("walk"),
            "Following next_page_url yields each item exactly once and ends.",
            &source,
            RuleExtension {
                level: None,
                basis: Some(Basis::Inferred),
            },
            Origin::ListWalk {
                operation: operation.to_owned(),
            },
        );
    }

    /// True when the operation needs credentials; adds the rule.
    fn credentials(&self, draft: &mut Draft, operation: &str, source: &Source) -> bool {
        let (security, at) = match self.node.get("security") {
            Some(own) => (Some(own), format!("{}/security", self.at)),
            None => (self.file.node.get("security"), "/security".to_owned()),
        };
        let mut names = security
            .map(Node::items)
            .unwrap_or_default()
            .iter()
            .flat_map(Node::members);
        let Some(scheme) = names.next() else {
            return false;
        };
        let schemes = self
            .file
            .node
            .get("components")
            .and_then(|c| c.get("securitySchemes"));
        let Some(described) = schemes.and_then(|s| s.get(&scheme.key)) else {
            let known = schemes.map(Node::members).unwrap_or_default();
            let known = known.iter().map(|m| &*m.key);
            let span = self.file.node.place(&at);
            draft.unknown(self.file, span, "security scheme", &scheme.key, known);
            return true;
        };
        let described_at = json::join("/components/securitySchemes", &scheme.key);
        let stated = draft.source(self.file, &described_at, described, false);
        let extension = draft.extension(self.file, described);
        self.add(
            draft,
            &format!("{}/{operation}/credentials", self.file.service()),
            "Without credentials and with wrong ones it is refused.",
            &stated.unwrap_or_else(|| source.clone()),
            RuleExtension {
                level: extension.level,
                basis: Some(extension.basis.unwrap_or(Basis::Inferred)),
            },
            Origin::Credentials {
                operation: operation.to_owned(),
            },
        );
        true
    }
}

#[derive(Clone, Copy)]
struct Named<'a> {
    name: &'a str,
    place: Place,
    required: bool,
}

struct Answer {
    kind: Option<String>,
    list_key: Option<String>,
    is_list_key_told: bool,
}
/// A path parameter that nothing compares with the answer is ruled by what happens when it names
/// nothing, which no document states in words; where that may go either way it has no rule.
fn rule_paths(draft: &mut Draft, operation: &Operation) {
    for parameter in &operation.parameters {
        let is_compared = parameter.echo.is_some() || parameter.schema.get("enum").is_some();
        if parameter.place != Place::Path || is_compared {
            continue;
        }
        if !parameter.names_a_thing(operation) {
            draft.rules.remove(&parameter.rule);
        } else if let Some(rule) = draft.rules.get_mut(&parameter.rule) {
            rule.level = Level::Should;
            rule.basis = Basis::Inferred;
        }
    }
}

/// Says of each operation what thing stands behind it: the one that it shows or lists, or, where it
/// answers with nothing, the one that is shown under the same address.
pub(super) fn find_things(service: &mut Service, kinds: &BTreeMap<String, Kind>) {
    let shown = |operation: &Operation| -> Option<String> {
        let kind = kinds.get(operation.response.as_ref()?)?;
        let kind = match &kind.page_of {
            Some((item, _)) => kinds.get(item)?,
            None => kind,
        };
        kind.about.identity.is_some().then(|| kind.name.clone())
    };
    let by_path: BTreeMap<String, String> = service
        .operations
        .values()
        .filter(|operation| operation.does == Does::Shows)
        .filter_map(|operation| Some((operation.path.clone(), shown(operation)?)))
        .collect();
    for operation in service.operations.values_mut() {
        operation.thing = shown(operation).or_else(|| by_path.get(&operation.path).cloned());
    }
}
