//! `service.yaml`: properties of a service besides its operations. Here is its format.
//!
//! - `index`: reads the files of all services.
//! - `check`: rejects unknown names and what two services must not share.
//! - `settings`: reads `targets.SERVICE` of a configuration by the settings of the service.

mod check;
mod index;
mod settings;

use super::hooks::{Effect, Hook};
use conformant_base::sorted::SortedMap;
use conformant_base::source::Document;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use std::marker::PhantomData;

pub(super) use check::check_names;
pub use index::ServiceIndex;
pub(super) use index::{add_embedded, missing, read};
pub(super) use settings::take_settings;
pub use settings::{Configured, SettingValue};

/// The setting with the application that signs tokens: a group of `id`, `name`, `scheme` and `api_key`.
pub const APPLICATION: &str = "application";

/// The file's name in each folder.
pub(super) const FILE_NAME: &str = "service.yaml";

/// One service.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServiceFile {
    /// The name of the service for people.
    pub title: String,
    /// The document that its sources cite by default.
    pub document: DocumentEntry,
    /// The path of its operations; omitted for a service that only sends events.
    pub base: Option<Base>,
    /// How its requests carry credentials.
    #[serde(default)]
    pub auth: Vec<Scheme>,
    /// Values in a 2xx response that make it a rejection.
    #[serde(default)]
    pub rejected_when: Vec<Rejection>,
    /// The formats of its responses, the default first.
    #[serde(default = "json_alone")]
    pub formats: Vec<Format>,
    /// Keys of `targets.SERVICE` in `conformant.yaml`, and of `${target.SERVICE.KEY}` in scenarios.
    #[serde(default, deserialize_with = "in_order")]
    #[schemars(with = "SortedMap<String, Setting>")]
    pub settings: Vec<(String, Setting)>,
    /// Actions of people and devices.
    #[serde(default, deserialize_with = "in_order")]
    #[schemars(with = "SortedMap<String, HookEntry>")]
    #[serde(rename = "hooks")]
    hook_entries: Vec<(String, HookEntry)>,
    /// What generated values of fields with these names are.
    #[serde(default)]
    pub words: SortedMap<String, GeneratedValue>,
    /// Tokens that an application signs and the service reads.
    pub signed_token: Option<SignedToken>,
    /// The hooks, made from `hook_entries`.
    #[serde(skip)]
    hooks: Vec<Hook>,
}

/// A document.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentEntry {
    /// Its id in sources, such as `D3`.
    pub id: Document,
    /// Its first heading.
    pub title: String,
}

/// The location of a service's operations.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// The path below the address that all services share.
    pub path: String,
    /// A request that changes nothing, for `conformant doctor`.
    pub probe: Probe,
}

/// A request that changes nothing.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// A `GET` operation of the service.
    pub call: String,
    /// Its parameters.
    #[serde(default)]
    pub with: SortedMap<String, String>,
}

/// How a request carries credentials.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// HTTP Basic: user name and password.
    Basic,
    /// A header field of this name.
    Header(String),
}

/// A format of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// JSON.
    Json,
    /// XML.
    Xml,
}

/// What a generated value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GeneratedValue {
    /// A phone number in E.164.
    Phone,
    /// A phone number of which most digits are hidden.
    MaskedPhone,
    /// The name of a user in an application.
    Identity,
    /// The name of a step.
    StepName,
}

/// Tokens that an application signs. The setting [`APPLICATION`] of the same service identifies the signer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignedToken {
    /// The resource type of a decoded token.
    pub token: String,
    /// The resource type of a QR string with a token in it.
    pub code: String,
}

/// A value in a 2xx response that makes it a rejection.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rejection {
    /// JSON Pointer to the value.
    pub at: String,
    /// The value; the text `"false"` counts as `false`.
    pub is: Value,
}

/// A key of `targets.SERVICE`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Setting {
    /// One line for the JSON Schema and for people.
    pub description: String,
    /// The type of its value: text by default.
    #[serde(default, rename = "type")]
    pub kind: SettingType,
    /// The values of a `choice`.
    #[serde(default)]
    pub values: Vec<String>,
    /// The value if none is configured.
    pub default: Option<String>,
    /// For a choice: values that requests replace by another of `values`, such as `both: json`.
    #[serde(default)]
    pub stands_for: SortedMap<String, String>,
    /// The members of a `group`.
    #[serde(default, deserialize_with = "in_order")]
    #[schemars(with = "SortedMap<String, Setting>")]
    pub members: Vec<(String, Setting)>,
    /// True: only as `${NAME}`, a variable of the environment.
    #[serde(default)]
    pub secret: bool,
    /// A variable of the environment that overrides the file.
    pub variable: Option<String>,
    /// True: one value or a list.
    #[serde(default)]
    pub many: bool,
    /// Each value is in use by one scenario at a time.
    pub exclusive: Option<Exclusive>,
    /// Its source if it is not configured.
    pub provisioned: Option<Provisioned>,
    /// A value for the file that `conformant init` writes.
    pub example: Option<String>,
}

/// The type of a setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SettingType {
    /// Any text.
    #[default]
    Text,
    /// A path; a leading slash may be left out.
    Path,
    /// One of `values`.
    Choice,
    /// Further settings.
    Group,
}

/// The operations and the hook that take, list and free the values of a setting.
///
/// Example: an execution (the holder, made by `taken-by`) holds a contact address (the value, sent as `parameter`) within
/// a flow (the scope, sent as `scope`) until it has ended (`free`) or the hook `freed-by` ends it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Exclusive {
    /// The setting with the scope. If a hook makes a scope for each scenario, values are never shared.
    pub within: String,
    /// The operation that makes a holder.
    pub taken_by: String,
    /// The parameter of `taken-by` with the scope.
    pub scope: String,
    /// The parameter of `taken-by` with the value.
    pub parameter: String,
    /// The list of holders.
    pub held: Held,
    /// The operation that returns one holder.
    pub shown_by: String,
    /// The state of a holder that has freed its value.
    pub free: Condition,
    /// The hook that makes a holder free its value.
    pub freed_by: Freed,
}

/// A list of holders.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Held {
    /// The list operation.
    #[serde(rename = "in")]
    pub list: String,
    /// The pointer to the value in a holder.
    pub at: String,
    /// The state of a holder while it holds the value.
    #[serde(rename = "while")]
    pub busy: Condition,
    /// The pointer to the key of a holder, such as its SID.
    pub key: String,
}

/// The hook that makes a holder free its value.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Freed {
    /// The name of the hook.
    pub hook: String,
    /// The argument of the hook with the scope.
    pub scope: String,
    /// The argument of the hook with the key of the holder.
    pub holder: String,
}

/// A condition: the value at a place.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// JSON Pointer.
    pub at: String,
    /// The value.
    pub is: Value,
}

/// The source of a setting that is not configured.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Provisioned {
    /// The hook that creates one.
    pub hook: String,
    /// The member of its result.
    pub result: String,
    /// A hook that is called with that member afterwards, if the target has it.
    pub then: Option<String>,
    /// A list in which one is searched if no hook creates any.
    pub found: Option<Found>,
}

/// An item of a list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Found {
    /// The list operation.
    #[serde(rename = "in")]
    pub list: String,
    /// The state of the preferred item.
    pub prefer: Option<Condition>,
    /// The pointer to the value.
    pub key: String,
}

/// A hook as written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct HookEntry {
    /// Arguments that must be given.
    #[serde(default, rename = "takes")]
    required: Vec<String>,
    /// Arguments that may be given.
    #[serde(default, rename = "may-take")]
    optional: Vec<String>,
    /// True: further arguments of any name.
    #[serde(default, rename = "takes-any")]
    open: bool,
    /// Members that its result must have.
    #[serde(default)]
    result: Vec<String>,
    /// What it does to resources.
    #[serde(default)]
    effects: Vec<Effect>,
    /// Allowed values, by argument.
    #[serde(default)]
    values: SortedMap<String, Vec<Value>>,
    /// The arguments of a call that changes nothing, for `conformant doctor --probe`.
    probe: Option<Map<String, Value>>,
}

fn json_alone() -> Vec<Format> {
    vec![Format::Json]
}

/// The entries of a mapping in the order of the file.
fn in_order<'de, T, D>(deserializer: D) -> Result<Vec<(String, T)>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct InOrder<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
        type Value = Vec<(String, T)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a mapping")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = map.next_entry()? {
                entries.push(entry);
            }
            Ok(entries)
        }
    }

    deserializer.deserialize_map(InOrder(PhantomData))
}

impl ServiceFile {
    /// Its hooks, in the order of the file.
    pub fn hooks(&self) -> &[Hook] {
        &self.hooks
    }

    /// One of its settings.
    pub fn setting(&self, key: &str) -> Option<&Setting> {
        let mut settings = self.settings.iter();
        settings
            .find(|(name, _)| name == key)
            .map(|(_, setting)| setting)
    }

    /// Whether its requests carry a user name and a password.
    pub fn has_basic(&self) -> bool {
        self.auth.contains(&Scheme::Basic)
    }

    /// The header field that carries credentials, if any.
    pub fn credential_header(&self) -> Option<&str> {
        self.auth.iter().find_map(|scheme| match scheme {
            Scheme::Header(name) => Some(name.as_str()),
            Scheme::Basic => None,
        })
    }

    /// Whether responses may be XML.
    pub fn has_xml(&self) -> bool {
        self.formats.contains(&Format::Xml)
    }

    /// The value in a 2xx response that makes it a rejection, such as `success false`.
    pub fn rejection(&self, response: &Value) -> Option<String> {
        let mut rejections = self.rejected_when.iter();
        let rejection = rejections.find(|rejection| {
            let value = response.pointer(&rejection.at);
            value.is_some_and(|value| {
                *value == rejection.is || value.as_str() == Some(&rejection.is.to_string())
            })
        })?;
        let name = rejection.at.rsplit('/').next().unwrap_or_default();
        Some(format!("{name} {}", rejection.is))
    }
}
