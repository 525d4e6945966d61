//! The keys of an `openapi.yaml`, read to reject others. Values and their places come from the tree.

#![expect(dead_code, reason = "read to reject unknown keys")]

use crate::draft::RuleExtension;
use crate::rules::Comparison;
use conformant_base::sorted::SortedMap;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    openapi: String,
    info: Info,
    #[serde(default)]
    servers: Vec<Server>,
    #[serde(default)]
    security: Vec<SortedMap<String, Vec<String>>>,
    paths: IgnoredAny,
    #[serde(default)]
    components: Components,
    tags: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
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
struct Requests {
    description: Option<String>,
    #[serde(rename = "x-source")]
    source: Option<IgnoredAny>,
    #[serde(default)]
    advice: Vec<Advised>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advised {
    parameters: Vec<String>,
    pattern: String,
    description: String,
    #[serde(rename = "x-source")]
    source: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    url: String,
    description: Option<String>,
    variables: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Components {
    #[serde(default)]
    security_schemes: SortedMap<String, SecurityScheme>,
    schemas: Option<IgnoredAny>,
    parameters: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
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
pub(super) struct PathItem {
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
pub(super) struct OperationObject {
    operation_id: String,
    summary: Option<String>,
    description: Option<String>,
    parameters: Option<IgnoredAny>,
    request_body: Option<RequestBody>,
    responses: SortedMap<String, Response>,
    security: Option<Vec<SortedMap<String, Vec<String>>>>,
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
struct RequestBody {
    required: Option<bool>,
    description: Option<String>,
    content: SortedMap<String, MediaType>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Response {
    description: String,
    #[serde(default)]
    content: SortedMap<String, MediaType>,
    headers: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MediaType {
    schema: IgnoredAny,
    encoding: Option<IgnoredAny>,
    example: Option<IgnoredAny>,
    examples: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ParameterObject {
    pub(super) name: String,
    pub(super) r#in: String,
    pub(super) required: Option<bool>,
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
    beside: Option<SortedMap<String, Vec<Value>>>,
    #[serde(rename = "x-path-from")]
    path_from: Option<String>,
}
