//! The operations of the document: parameters, bodies, responses and credentials.
//!
//! What an operation cannot do without but the rulebook cannot express leaves the operation out, with the reason.

use crate::answers::{Answer, Shape, answer, error};
use crate::auth::{Auth, auth};
use crate::document::{Document, Part};
use crate::schema::{Schemas, types_of};
use conformant_rulebook::kebab;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Operations that a folder holds, at most.
const OPERATIONS_MAX: usize = 400;
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
/// Header parameters that OpenAPI itself ignores.
const IGNORED_HEADERS: [&str; 3] = ["accept", "content-type", "authorization"];
/// What the document describes.
pub(crate) struct Api<'d> {
    pub(crate) title: String,
    pub(crate) version: String,
    pub(crate) servers: Vec<String>,
    pub(crate) auth: Auth,
    pub(crate) operations: Vec<Operation<'d>>,
    /// What was left out, with the reason.
    pub(crate) left_out: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Path,
    Query,
    Header,
}

pub(crate) struct Parameter<'d> {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) is_required: bool,
    pub(crate) schema: Map<String, Value>,
    pub(crate) example: Option<Value>,
    pub(crate) part: Part<'d>,
}

/// A property of a body.
pub(crate) struct Field<'d> {
    pub(crate) name: String,
    pub(crate) is_required: bool,
    pub(crate) schema: Map<String, Value>,
    pub(crate) example: Option<Value>,
    pub(crate) part: Part<'d>,
}

pub(crate) struct Body<'d> {
    pub(crate) media: String,
    pub(crate) fields: Vec<Field<'d>>,
}

pub(crate) struct Operation<'d> {
    pub(crate) id: String,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) part: Part<'d>,
    pub(crate) parameters: Vec<Parameter<'d>>,
    pub(crate) body: Option<Body<'d>>,
    pub(crate) answer: Answer<'d>,
    /// Where the response headers describe `Link`.
    pub(crate) has_link_header: bool,
    /// The body of every rejection.
    pub(crate) error: Option<Shape<'d>>,
    pub(crate) is_secured: bool,
}

impl<'d> Operation<'d> {
    /// Method and path.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), self.path)
    }

    pub(crate) fn body_fields(&self) -> impl Iterator<Item = &Field<'d>> {
        self.body.iter().flat_map(|body| &body.fields)
    }

    /// Names of the path parameters, in order.
    pub(crate) fn path_names(&self) -> Vec<&str> {
        names_in(&self.path)
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&Parameter<'d>> {
        self.parameters.iter().find(|p| p.name == name)
    }
}

/// The names in braces of a path.
pub(crate) fn names_in(path: &str) -> Vec<&str> {
    let braces = path.split('{').skip(1);
    braces
        .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
        .collect()
}

/// The name itself, or with the first number that makes it free.
pub(crate) fn first_free(name: &str, mut is_free: impl FnMut(&str) -> bool) -> String {
    let mut free = name.to_owned();
    for n in 2.. {
        if is_free(&free) {
            break;
        }
        free = format!("{name}-{n}");
    }
    free
}

/// A name without case and separators.
pub(crate) fn plain(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// The properties of an object schema, through references and `allOf`.
pub(crate) fn properties<'d>(doc: &'d Document, part: &Part<'d>) -> Vec<(&'d str, Part<'d>)> {
    fn gather<'d>(
        doc: &'d Document,
        part: &Part<'d>,
        depth: usize,
        found: &mut Vec<(&'d str, Part<'d>)>,
    ) {
        let Some(part) = doc.resolve(part).filter(|_| depth < 12) else {
            return;
        };
        for (name, property) in part.get("properties").into_iter().flat_map(|p| p.members()) {
            if found.iter().all(|(known, _)| *known != name) {
                found.push((name, property));
            }
        }
        for branch in part.get("allOf").into_iter().flat_map(|all| all.items()) {
            gather(doc, &branch, depth + 1, found);
        }
    }
    let mut found = Vec::new();
    gather(doc, part, 0, &mut found);
    found
}

/// The type of a schema, through references and `allOf`.
pub(crate) fn type_of(doc: &Document, part: &Part<'_>) -> Option<String> {
    fn look(doc: &Document, part: &Part<'_>, depth: usize) -> Option<String> {
        let part = doc.resolve(part).filter(|_| depth < 12)?;
        let written = part.get("type").and_then(|t| match t.node.text() {
            Some(one) => Some(one.to_owned()),
            None => {
                let mut types = t.node.items().iter().filter_map(|item| item.text());
                types.find(|one| *one != "null").map(str::to_owned)
            }
        });
        let implied = || match (part.node.get("properties"), part.node.get("items")) {
            (Some(_), _) => Some("object".to_owned()),
            (None, Some(_)) => Some("array".to_owned()),
            (None, None) => None,
        };
        written.or_else(implied).or_else(|| {
            let mut branches = part.get("allOf").into_iter().flat_map(|all| all.items());
            branches.find_map(|branch| look(doc, &branch, depth + 1))
        })
    }
    look(doc, part, 0)
}

pub(crate) fn component(part: &Part<'_>) -> Option<String> {
    let reference = part.text("$ref")?;
    let name = reference.strip_prefix("#/components/schemas/")?;
    (!name.contains('/')).then(|| conformant_base::http::percent_decode(name))
}

impl<'d> Api<'d> {
    /// The title of a document.
    pub(crate) fn title(doc: &Document) -> String {
        let info = doc.root().get("info");
        let title = info.as_ref().and_then(|info| info.text("title"));
        let title = title.filter(|title| !title.trim().is_empty());
        title.unwrap_or("Service").to_owned()
    }

    pub(crate) fn read(schemas: &Schemas<'d>) -> Self {
        let doc = schemas.doc;
        let root = doc.root();
        let info = root.get("info");
        let version = info.as_ref().and_then(|info| info.get("version"));
        let version = version.map(|version| version.shown());
        let servers = root.get("servers").into_iter().flat_map(|s| s.items());
        let servers: Vec<String> = servers
            .filter_map(|s| s.text("url").map(str::to_owned))
            .collect();
        if servers.is_empty() {
            doc.problem_with_help(
                &root,
                "no servers: the document names no address".to_owned(),
                "give the address of the service with --target",
            );
        }
        let mut api = Self {
            title: Self::title(doc),
            version: version.unwrap_or_default(),
            servers,
            auth: auth(doc),
            operations: Vec::new(),
            left_out: Vec::new(),
        };
        let mut ids = BTreeSet::new();
        for (path, item) in root
            .get("paths")
            .into_iter()
            .flat_map(|paths| paths.members())
        {
            if path.starts_with("x-") {
                continue;
            }
            let Some(item) = doc.resolve(&item) else {
                continue;
            };
            for (key, part) in item.members() {
                let Some(method) = METHODS.into_iter().find(|m| *m == key) else {
                    if matches!(key, "head" | "options" | "trace") {
                        api.left_out.push(format!(
                            "{} {path}: this method is not judged",
                            key.to_uppercase()
                        ));
                    }
                    continue;
                };
                let name = format!("{} {path}", method.to_uppercase());
                if api.operations.len() >= OPERATIONS_MAX {
                    api.left_out.push(format!(
                        "{name}: a folder holds at most {OPERATIONS_MAX} operations"
                    ));
                    continue;
                }
                let id = operation_id(doc, &part, (method, path), &mut ids);
                match operation(schemas, (&root, &item, &part), (id, method, path)) {
                    Ok(operation) => api.operations.push(operation),
                    Err(why) => {
                        doc.problem(&part, format!("{name} is left out: {why}"));
                        api.left_out.push(format!("{name}: {why}"));
                    }
                }
            }
        }
        let webhooks = root.get("webhooks");
        if webhooks.is_some_and(|part| part.members().next().is_some()) {
            let left_out = "webhooks: what the service sends is not judged";
            api.left_out.push(left_out.to_owned());
        }
        api
    }
}

/// The operation's id in kebab case, or one from its method and path.
fn operation_id(
    doc: &Document,
    part: &Part<'_>,
    (method, path): (&str, &str),
    ids: &mut BTreeSet<String>,
) -> String {
    let written = part.text("operationId");
    let is_usable = |id: &String| id.starts_with(|c: char| c.is_ascii_lowercase());
    let from_path = || {
        let verb = match method {
            "get" => "read",
            "post" => "create",
            "put" => "replace",
            "patch" => "update",
            other => other,
        };
        let path = path.replace(['{', '}'], "-");
        kebab(&format!("{verb}-{path}"))
    };
    let mut id = written
        .map(kebab)
        .filter(is_usable)
        .unwrap_or_else(from_path);
    if ids.contains(&id) {
        let message = format!(
            "the operation id `{}` is there twice",
            written.unwrap_or(&id)
        );
        doc.problem(part, message);
        id = from_path();
    }
    first_free(&id, |id| ids.insert(id.to_owned()))
}

fn operation<'d>(
    schemas: &Schemas<'d>,
    (root, item, part): (&Part<'d>, &Part<'d>, &Part<'d>),
    (id, method, path): (String, &'static str, &str),
) -> Result<Operation<'d>, String> {
    let mut parameters: Vec<Parameter<'d>> = Vec::new();
    for owner in [item, part] {
        for written in owner.get("parameters").into_iter().flat_map(|p| p.items()) {
            let Some(found) = parameter(schemas, &written)? else {
                continue;
            };
            parameters.retain(|p| p.name != found.name || p.place != found.place);
            parameters.push(found);
        }
    }
    let names = names_in(path);
    for name in &names {
        if parameters
            .iter()
            .all(|p| p.place != Place::Path || p.name != *name)
        {
            return Err(format!(
                "its path has `{{{name}}}`, which is not a parameter"
            ));
        }
    }
    parameters.retain(|p| p.place != Place::Path || names.contains(&p.name.as_str()));
    let is_named_as_rule =
        |p: &Parameter<'_>| ["credentials", "walk"].contains(&kebab(&p.name).as_str());
    if let Some(one) = parameters
        .iter()
        .find(|p| p.is_required && is_named_as_rule(p))
    {
        return Err(format!(
            "its parameter `{}` has the name of a rule",
            one.name
        ));
    }
    parameters.retain(|p| !is_named_as_rule(p));
    let mut twice = BTreeSet::new();
    parameters.retain(|p| twice.insert(kebab(&p.name)));
    let body = match part.get("requestBody") {
        Some(body) => body_of(schemas, &body)?,
        None => None,
    };
    if let Some(body) = &body
        && let Some(field) = body.fields.iter().find(|f| !twice.insert(kebab(&f.name)))
    {
        return Err(format!(
            "`{}` is a parameter and a property of the body",
            field.name
        ));
    }
    let (answer, has_link_header) = answer(schemas.doc, part, path);
    Ok(Operation {
        id,
        method,
        path: path.to_owned(),
        part: part.clone(),
        parameters,
        body,
        answer,
        has_link_header,
        error: error(schemas.doc, part),
        is_secured: is_secured(root, part),
    })
}

/// Whether an operation needs credentials: one set of them, in every alternative.
pub(crate) fn is_secured(root: &Part<'_>, operation: &Part<'_>) -> bool {
    let security = operation.get("security").or_else(|| root.get("security"));
    let mut alternatives = security.into_iter().flat_map(|s| s.items()).peekable();
    alternatives.peek().is_some() && alternatives.all(|one| !one.node.members().is_empty())
}

fn example(part: &Part<'_>) -> Option<Value> {
    if let Some(example) = part.get("example") {
        return Some(example.to_json());
    }
    let examples = part.get("examples")?;
    let named = || examples.members().next()?.1.get("value");
    let first = examples.items().next().or_else(named)?;
    Some(first.to_json())
}

fn parameter<'d>(
    schemas: &Schemas<'d>,
    written: &Part<'d>,
) -> Result<Option<Parameter<'d>>, String> {
    let doc = schemas.doc;
    let Some(part) = doc.resolve(written) else {
        return Err("a parameter cannot be read".to_owned());
    };
    let (Some(name), Some(place)) = (part.text("name"), part.text("in")) else {
        doc.problem(&part, "a parameter has a `name` and an `in`");
        return Err("a parameter has no name or place".to_owned());
    };
    let is_required = part.is_true("required");
    let place = match place {
        "path" => Place::Path,
        "query" => Place::Query,
        "header" if IGNORED_HEADERS.contains(&name.to_ascii_lowercase().as_str()) => {
            return Ok(None);
        }
        "header" => Place::Header,
        other if is_required => {
            return Err(format!("its required parameter `{name}` is in {other}"));
        }
        other => {
            doc.problem(
                &part,
                format!("the parameter `{name}` in {other} is not sent"),
            );
            return Ok(None);
        }
    };
    let content = part.get("content").and_then(|c| c.members().next());
    let Some(schema) = part.get("schema").or_else(|| content?.1.get("schema")) else {
        doc.problem(&part, format!("the parameter `{name}` has no schema"));
        return Ok((place == Place::Path).then(|| Parameter {
            name: name.to_owned(),
            place,
            is_required: true,
            schema: crate::schema::object(serde_json::json!({ "type": "string" })),
            example: None,
            part: part.clone(),
        }));
    };
    let found = schemas.request(&schema);
    let target = doc.resolve(&schema);
    let is_object =
        types_of(&found).contains(&"object") || part.text("style") == Some("deepObject");
    if is_object && place != Place::Path {
        if is_required {
            return Err(format!("its required parameter `{name}` is an object"));
        }
        doc.problem(
            &part,
            format!("the parameter `{name}` is not sent: it is an object"),
        );
        return Ok(None);
    }
    Ok(Some(Parameter {
        name: name.to_owned(),
        place,
        is_required: is_required || place == Place::Path,
        schema: found,
        example: example(&part).or_else(|| example(&target?)),
        part,
    }))
}

fn body_of<'d>(schemas: &Schemas<'d>, written: &Part<'d>) -> Result<Option<Body<'d>>, String> {
    let doc = schemas.doc;
    let Some(body) = doc.resolve(written) else {
        return Err("its body cannot be read".to_owned());
    };
    let is_required = body.is_true("required");
    let contents = contents(&body);
    let preferred = contents
        .iter()
        .find(|(media, _)| *media == "application/json");
    let preferred = preferred.or_else(|| contents.iter().find(|(media, _)| is_json(media)));
    let form = |media: &str| media == "application/x-www-form-urlencoded";
    let preferred = preferred.or_else(|| contents.iter().find(|(media, _)| form(media)));
    let Some((media, content)) = preferred else {
        let listed: Vec<&str> = contents.iter().map(|(media, _)| *media).collect();
        return match is_required || contents.is_empty() {
            true => Err(format!(
                "its body is neither JSON nor a form: {}",
                listed.join(", ")
            )),
            false => Ok(None),
        };
    };
    let Some(schema) = content.get("schema") else {
        return Ok(None);
    };
    let mut schema = schema;
    let mut target = doc
        .resolve(&schema)
        .ok_or_else(|| "its body cannot be read".to_owned())?;
    for key in ["oneOf", "anyOf"] {
        if let Some(first) = target.get(key).and_then(|branches| branches.items().next())
            && target.node.get("properties").is_none()
        {
            doc.problem(&target, format!("only the first of `{key}` is sent"));
            schema = first;
            target = doc
                .resolve(&schema)
                .ok_or_else(|| "its body cannot be read".to_owned())?;
        }
    }
    let whole = schemas.request(&schema);
    let Some(members) = whole.get("properties").and_then(Value::as_object) else {
        return match is_required || type_of(doc, &schema).is_some_and(|t| t != "object") {
            true => Err("its body has no properties that can be sent one by one".to_owned()),
            false => Ok(None),
        };
    };
    let required: Vec<&str> = whole
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let parts = properties(doc, &schema);
    let whole_example = example(content).or_else(|| example(&target));
    let fields = members.iter().filter_map(|(name, schema)| {
        let (_, part) = parts.iter().find(|(known, _)| known == name)?;
        let own = doc.resolve(part).and_then(|target| example(&target));
        let example = example(part)
            .or(own)
            .or_else(|| whole_example.as_ref()?.get(name).cloned());
        Some(Field {
            name: name.clone(),
            is_required: required.contains(&name.as_str()),
            schema: schema.as_object()?.clone(),
            example,
            part: part.clone(),
        })
    });
    Ok(Some(Body {
        media: without_parameters(media).to_owned(),
        fields: fields.collect(),
    }))
}

/// The media types of a body with their descriptions.
pub(crate) fn contents<'d>(body: &Part<'d>) -> Vec<(&'d str, Part<'d>)> {
    let content = body.get("content").into_iter();
    content.flat_map(|content| content.members()).collect()
}

pub(crate) fn without_parameters(media: &str) -> &str {
    media.split(';').next().unwrap_or_default().trim()
}

pub(crate) fn is_json(media: &str) -> bool {
    let media = without_parameters(media);
    media == "application/json" || media.ends_with("+json")
}
