//! The contents of `conformant.yaml` and their JSON Schema, before variables are filled in and values are checked.

use super::reach::{CredentialsEntry, TlsEntry};
use crate::cli::Failure;
use conformant_base::sorted::SortedMap;
use conformant_rulebook::service::{Configured, ServiceIndex, Setting, SettingType};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// `conformant.yaml`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfigFile {
    /// Services under test by name.
    #[serde(default)]
    pub(super) targets: SortedMap<String, TargetEntry>,
    /// Credentials of a second account by service. With them a run checks that neither account sees or changes what the
    /// other one creates.
    #[serde(default)]
    pub(super) accounts: SortedMap<String, AccountEntry>,
    /// What people and devices do, by hook name.
    #[serde(default)]
    pub(super) hooks: SortedMap<String, HookEntry>,
    /// The harness's own receiver of callbacks.
    #[serde(default)]
    pub(super) callbacks: CallbacksEntry,
    /// Limits of a run.
    #[serde(default)]
    pub(super) limits: LimitsEntry,
    /// The people that scenarios use.
    #[serde(default)]
    pub(super) people: PeopleEntry,
    /// Certificates, where a target has none of its own under its `tls`.
    pub(super) tls: Option<TlsEntry>,
    /// Folder with the documents. `explain`, the page and the report folder then show the sentences that rules cite, as
    /// far as they are those of the rulebook.
    pub(super) documents: Option<PathBuf>,
    /// The proxy on the way to every target and hook but those on this machine: http://HOST:PORT, or `environment` for
    /// what `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say. None unless named.
    pub(super) proxy: Option<String>,
}

/// One service under test. Texts may hold `${NAME}`, a value from the environment.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a mapping, such as { url: \"https://flow.example\" }"
)]
pub(super) struct TargetEntry {
    /// Base URL; documented paths are appended.
    pub(super) url: Option<String>,
    /// The base URL in the target's own links, if it differs, for example behind a gateway.
    pub(super) public_url: Option<String>,
    /// Further origins of media content. Redirects and links to them are followed, without credentials.
    #[serde(default)]
    pub(super) content_origins: Vec<String>,
    /// API key, the user name of HTTP Basic credentials.
    pub(super) username: Option<String>,
    /// API key secret, the password; only as `${NAME}`.
    pub(super) password: Option<String>,
    /// Account SID, the user name for local testing.
    pub(super) account_sid: Option<String>,
    /// Auth token of the account; only as `${NAME}`.
    pub(super) auth_token: Option<String>,
    /// A bearer token, in place of user name and password; only as `${NAME}`.
    pub(super) bearer: Option<String>,
    /// A source of bearer tokens, in place of the above.
    pub(super) credentials: Option<CredentialsEntry>,
    /// Certificates.
    pub(super) tls: Option<TlsEntry>,
    /// Further header fields of each request.
    #[serde(default)]
    pub(super) headers: SortedMap<String, String>,
    /// The encoding of bodies that may be a form or JSON: form (default) or json, for all operations or for each.
    pub(super) body: Option<BodyForms>,
}

/// Credentials of a second account for one service. The address and everything else is that of the target.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AccountEntry {
    /// API key or account SID, the user name of HTTP Basic credentials.
    pub(super) username: Option<String>,
    /// Its secret, the password; only as `${NAME}`.
    pub(super) password: Option<String>,
    /// A bearer token, in place of user name and password; only as `${NAME}`.
    pub(super) bearer: Option<String>,
    /// Header fields, such as the one with the API key of the authentication service.
    #[serde(default)]
    pub(super) headers: SortedMap<String, String>,
}

/// The encodings of bodies.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "invalid body: expected form, json, or one of them by operation, such as { create-user: json }"
)]
pub(super) enum BodyForms {
    /// All bodies.
    All(BodyForm),
    /// The bodies of operations by id; others are forms.
    Each(SortedMap<String, BodyForm>),
}

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum BodyForm {
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `application/json`.
    Json,
}

/// A hook: either a command or an HTTP request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "{ command: [program, argument] } or { http: { url: \"https://…\" } }"
)]
pub(super) struct HookEntry {
    /// A command with its arguments.
    pub(super) command: Option<CommandLine>,
    /// An HTTP request.
    pub(super) http: Option<HttpHookEntry>,
    /// JSON Pointers of the parts of the result in the answer: `flow_sid: /data/sid`. By default the answer is the
    /// result.
    #[serde(default)]
    pub(super) result: SortedMap<String, String>,
    /// Arguments of a call that changes nothing, for `doctor --probe`.
    pub(super) probe: Option<Map<String, Value>>,
}

/// A list of words; a line of a shell is a frequent mistake.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "invalid command: expected a list of texts, such as [./hook.sh, approve, \"${uuid}\"]; put numbers, true, false and null in quotation marks"
)]
pub(super) enum CommandLine {
    /// The program and its arguments.
    Words(Vec<String>),
}

impl JsonSchema for CommandLine {
    fn schema_name() -> Cow<'static, str> {
        Vec::<String>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<String>::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

/// A hook that is an HTTP request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpHookEntry {
    /// POST by default.
    pub(super) method: Option<String>,
    /// Absolute URL.
    pub(super) url: String,
    /// Header fields.
    #[serde(default)]
    pub(super) headers: SortedMap<String, String>,
    /// Body; the arguments as JSON by default.
    pub(super) body: Option<String>,
}

/// The receiver of callbacks.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a mapping, such as { listen: \"127.0.0.1:8080\" }"
)]
pub(super) struct CallbacksEntry {
    /// Address to bind, `127.0.0.1:0` by default.
    pub(super) listen: Option<Quantity>,
    /// URL under which the target reaches it.
    pub(super) public_url: Option<String>,
    /// No other run uses the target meanwhile, default false.
    #[serde(default)]
    pub(super) exclusive: bool,
    /// Other runs set the target's callback addresses meanwhile, default false. Then a missing callback is
    /// inconclusive, unless the hook `lease` keeps other runs away. `--partition` implies it.
    #[serde(default)]
    pub(super) shared: bool,
}

/// The people that scenarios use. The defaults are reserved for fiction: no such phone number or mailbox exists.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PeopleEntry {
    /// Calling code of their country, digits alone; default "1".
    pub(super) country_code: Option<String>,
    /// Calling code of another country, where the same numbers belong to other people; default "44".
    pub(super) other_country_code: Option<String>,
    /// National phone number of the first person, with or without separators; default 201-555-0123.
    pub(super) cellphone: Option<String>,
    /// Number of the second person; default 201-555-0145.
    pub(super) second_cellphone: Option<String>,
    /// Number of a person with the app who is not registered yet; default 201-555-0167.
    pub(super) third_cellphone: Option<String>,
    /// Number of a person who moves to the other country and back; default 201-555-0189.
    pub(super) fourth_cellphone: Option<String>,
    /// Number of a person without e-mail address, preferably different from the first one in the last digit; default
    /// 201-555-0124.
    pub(super) fifth_cellphone: Option<String>,
    /// Number of a person who adds an e-mail address later, preferably different from the first one in the first
    /// digit; default 301-555-0123.
    pub(super) sixth_cellphone: Option<String>,
    /// Numbers that the target does not know yet, such as `202-555-01##`: each run replaces `#` by digits of its own.
    /// Without it, rules that need a new number are not applicable (auth).
    pub(super) new_cellphone: Option<String>,
    /// Domain of their e-mail addresses; default example.com.
    pub(super) email_domain: Option<String>,
}

/// Limits of a run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsEntry {
    /// Time limit for a connection, default 3s.
    pub(super) connect: Option<Quantity>,
    /// Time limit for one exchange, default 10s.
    pub(super) timeout: Option<Quantity>,
    /// Time limit for a callback, default 30s. Where a rule was broken twice because none came, further waits for it are shorter.
    pub(super) callback: Option<Quantity>,
    /// Largest body that is read, default 8MiB.
    pub(super) body: Option<Quantity>,
    /// Time limit of the run, default 10m. A run that reaches it ends early, with exit code 3.
    pub(super) run: Option<Quantity>,
    /// Requests per second, such as 50/s; no limit by default.
    pub(super) rate: Option<Quantity>,
}

/// A number with a unit, or an address with a port. A bare number is read too, so that the error names what is missing.
#[derive(Clone, Debug)]
pub(super) struct Quantity(String);

impl Deref for Quantity {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number with a unit, such as 10s")
            }

            fn visit_str<E>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity(text.to_owned()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

/// The JSON Schema of the file, with the settings of all services.
pub(in crate::cli) fn schema(index: &ServiceIndex) -> Value {
    let mut schema = schemars::schema_for!(ConfigFile).to_value();
    let mut shared = Map::new();
    let mut settings = Map::new();
    for (key, setting) in index.settings() {
        settings.insert(key.to_owned(), schema_of(key, setting, &mut shared));
    }
    let definitions = schema.get_mut("$defs").and_then(Value::as_object_mut);
    let Some(definitions) = definitions else {
        return schema;
    };
    let target = definitions.get_mut("TargetEntry");
    if let Some(properties) = target.and_then(|target| target["properties"].as_object_mut()) {
        properties.extend(settings);
    }
    definitions.extend(shared);
    schema
}

/// The schema of one setting; the definitions it refers to are added to `shared`.
fn schema_of(key: &str, setting: &Setting, shared: &mut Map<String, Value>) -> Value {
    let capital = key[..1].to_uppercase();
    let name = format!("{capital}{}", &key[1..]);
    let (name, definition) = match setting.kind {
        _ if setting.many => (
            "Numbers".to_owned(),
            json!({"anyOf": [
                {"type": "string", "description": "One."},
                {"type": "array", "items": {"type": "string"}, "description": "Several."},
            ], "description": "One value or several."}),
        ),
        SettingType::Text | SettingType::Path => {
            return json!({"type": ["string", "null"], "description": setting.description});
        }
        SettingType::Choice => {
            let words = setting.values.iter();
            let words = words.map(|word| json!({"type": "string", "const": word}));
            (
                format!("{name}Choice"),
                json!({"oneOf": words.collect::<Vec<_>>(), "description": setting.description}),
            )
        }
        SettingType::Group => {
            let members = setting.members.iter();
            let members: Map<String, Value> = members
                .map(|(key, member)| (key.clone(), schema_of(key, member, shared)))
                .collect();
            (
                format!("{name}Entry"),
                json!({
                    "type": "object",
                    "additionalProperties": false,
                    "properties": members,
                    "description": setting.description,
                }),
            )
        }
    };
    let reference = format!("#/$defs/{name}");
    shared.insert(name, definition);
    json!({"anyOf": [{"$ref": reference}, {"type": "null"}], "description": setting.description})
}

pub(super) fn parse(
    path: &Path,
    index: &ServiceIndex,
) -> Result<(ConfigFile, SortedMap<String, Configured>), Failure> {
    let shown = path.display().to_string();
    let bytes = crate::cli::read_file(path)?;
    if bytes.trim_ascii().is_empty() {
        return Err(Failure::Usage(format!(
            "{shown} is empty, expected a configuration; delete it and write one with `conformant init --target SERVICE=URL`"
        )));
    }
    let target = schemars::schema_for!(TargetEntry).to_value();
    let keys = target["properties"].as_object();
    let keys: Vec<&str> = keys
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .collect();
    conformant_rulebook::parse_configuration(&shown, &bytes, index, &keys)
        .map_err(Failure::Problems)
}
