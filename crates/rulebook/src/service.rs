//! `service.yaml`: properties of a service besides its operations, and the index of all services.
//!
//! - Input: the `service.yaml` of each folder. A folder without one takes the embedded file of the same name.
//! - Output: [`ServiceIndex`], in the order of documents and names; services without a base come last.
//! - Problems: unknown keys, names that do not resolve, hooks and base paths that two services share.

use super::draft::{Draft, File, Files, read_file};
use super::hooks::{self, Effect, Hook};
use super::model::{Action, Kind, Operation, Service};
use super::problems::{Problem, Problems, suggest};
use super::sources;
use conformant_base::json;
use conformant_base::source::Document;
use conformant_yaml::{Content, Member, Node};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// The setting with the application that signs tokens: a group of `id`, `name`, `scheme` and `api_key`.
pub const APPLICATION: &str = "application";

/// The file's name in each folder.
pub(super) const FILE_NAME: &str = "service.yaml";

/// Names that no service may have: they have another meaning in flags and texts.
const RESERVED: [&str; 3] = ["all", "people", "reference"];

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
    #[schemars(with = "BTreeMap<String, Setting>")]
    pub settings: Vec<(String, Setting)>,
    /// Actions of people and devices.
    #[serde(default, rename = "hooks", deserialize_with = "in_order")]
    #[schemars(with = "BTreeMap<String, HookEntry>")]
    hook_entries: Vec<(String, HookEntry)>,
    /// Content of generated fields with these names, if it differs from other services.
    #[serde(default)]
    pub words: BTreeMap<String, Words>,
    /// Tokens that an application signs and the service reads.
    pub signed_token: Option<SignedToken>,
    /// The hooks of the entries, with their names.
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
    pub with: BTreeMap<String, String>,
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

/// The content of a generated value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Words {
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
    /// The value; a text with its spelling counts too.
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
    /// The value in requests if none is configured, or if the choice is a word for it.
    pub default: Option<String>,
    /// For a choice, words that represent another one of `values` in requests.
    #[serde(default)]
    pub stands_for: BTreeMap<String, String>,
    /// The members of a `group`.
    #[serde(default, deserialize_with = "in_order")]
    #[schemars(with = "BTreeMap<String, Setting>")]
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

/// The settings of one target as they are configured, by key.
pub type Configured = BTreeMap<String, SettingValue>;

/// A configured setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingValue {
    /// One text.
    One(String),
    /// One text or several, of a setting with `many`.
    Many(Vec<String>),
    /// The members of a group.
    Group(BTreeMap<String, String>),
}

/// The operations and hooks that take, list and free a value.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Exclusive {
    /// The setting within which a value is taken. If a hook creates one for each scenario, values are never shared.
    pub within: String,
    /// The operation that takes a value.
    pub taken_by: String,
    /// Its parameter with the scope of the value.
    pub scope: String,
    /// Its parameter with the value.
    pub parameter: String,
    /// The holders of values.
    pub held: Held,
    /// The operation that returns one holder.
    pub shown_by: String,
    /// Its state once the value is free.
    pub free: Condition,
    /// The hook that frees a value.
    pub freed_by: Freed,
}

/// The items of a list that hold a value.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Held {
    /// The list operation.
    #[serde(rename = "in")]
    pub list: String,
    /// The pointer to the value in an item.
    pub at: String,
    /// The state of the item while it holds the value.
    #[serde(rename = "while")]
    pub busy: Condition,
    /// The pointer to its key.
    pub key: String,
}

/// A hook that frees a value.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Freed {
    /// Its name.
    pub hook: String,
    /// Its argument with the scope of the value.
    pub scope: String,
    /// Its argument with the holder.
    pub holder: String,
}

/// A value at a place.
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
    #[serde(default)]
    takes: Vec<String>,
    /// Arguments that may be given.
    #[serde(default)]
    may_take: Vec<String>,
    /// True: further arguments of any name.
    #[serde(default)]
    takes_any: bool,
    /// Members that its result must have.
    #[serde(default)]
    result: Vec<String>,
    /// What it does to resources.
    #[serde(default)]
    effects: Vec<Effect>,
    /// Allowed values, by argument.
    #[serde(default)]
    values: BTreeMap<String, Vec<Value>>,
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
        let found = rejections.find(|rejection| {
            let found = response.pointer(&rejection.at);
            found.is_some_and(|found| {
                *found == rejection.is || found.as_str() == Some(&rejection.is.to_string())
            })
        })?;
        let name = found.at.rsplit('/').next().unwrap_or_default();
        Some(format!("{name} {}", found.is))
    }
}

/// All services of a rulebook.
#[derive(Clone, Debug, Default)]
pub struct ServiceIndex {
    files: BTreeMap<String, Arc<ServiceFile>>,
    /// Names in the order in which services are listed.
    order: Vec<String>,
}

impl ServiceIndex {
    /// The services that the program was built with.
    pub fn embedded() -> &'static Arc<Self> {
        static EMBEDDED: LazyLock<Arc<ServiceIndex>> = LazyLock::new(|| {
            let mut draft = Draft::default();
            let files = service_files(sources::embedded(), &mut draft);
            Arc::new(read(&mut draft, &files))
        });
        &EMBEDDED
    }

    /// The services of a rulebook folder, or the embedded ones. Reads only the `service.yaml` files.
    pub fn load(specs: Option<&Path>) -> Result<Arc<Self>, Problems> {
        let Some(folder) = specs else {
            return Ok(Arc::clone(Self::embedded()));
        };
        let mut draft = Draft::default();
        // Problems of other files are reported when the whole folder is loaded.
        let files = sources::from_dir(folder, &mut Problems::default());
        let files = service_files(files, &mut draft);
        let index = read(&mut draft, &files);
        if draft.problems.is_empty() {
            Ok(Arc::new(index))
        } else {
            draft.problems.sort();
            Err(draft.problems)
        }
    }

    /// The service of that name.
    pub fn get(&self, name: &str) -> Option<&ServiceFile> {
        self.files.get(name).map(|file| &**file)
    }

    /// All services with their names, those without a base last.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ServiceFile)> {
        let entry = |name: &String| self.files.get_key_value(name);
        let entries = self.order.iter().filter_map(entry);
        entries.map(|(name, file)| (name.as_str(), &**file))
    }

    /// The names of services that requests can be sent to.
    pub fn targets(&self) -> Vec<&str> {
        let targets = self.iter().filter(|(_, file)| file.base.is_some());
        targets.map(|(name, _)| name).collect()
    }

    /// The names of services that only send events; they are observed alongside any target.
    pub fn feeds(&self) -> Vec<&str> {
        let feeds = self.iter().filter(|(_, file)| file.base.is_none());
        feeds.map(|(name, _)| name).collect()
    }

    /// The feeds that belong to a run: those of the document of a target, and those with a configured hook.
    pub fn feeds_of(
        &self,
        is_targeted: impl Fn(&str) -> bool,
        is_configured: impl Fn(&str) -> bool,
    ) -> Vec<&str> {
        let targets = self.iter().filter(|(name, _)| is_targeted(name));
        let documents: Vec<Document> = targets.map(|(_, file)| file.document.id).collect();
        let feeds = self.iter().filter(|(_, file)| file.base.is_none());
        let is_part = |(_, file): &(&str, &ServiceFile)| {
            let mut hooks = file.hooks().iter();
            documents.contains(&file.document.id) || hooks.any(|hook| is_configured(&hook.name))
        };
        feeds.filter(is_part).map(|(name, _)| name).collect()
    }

    /// Whether requests can be sent to a service of that name.
    pub fn is_target(&self, name: &str) -> bool {
        self.get(name).is_some_and(|file| file.base.is_some())
    }

    /// The document that a service's sources cite by default.
    pub fn document_of(&self, service: &str) -> Option<Document> {
        Some(self.get(service)?.document.id)
    }

    /// All documents, by id.
    pub fn documents(&self) -> BTreeMap<Document, &str> {
        let files = self.files.values();
        files
            .map(|file| (file.document.id, file.document.title.as_str()))
            .collect()
    }

    /// All hooks: those of services, then the harness's own.
    pub fn hooks(&self) -> impl Iterator<Item = &Hook> {
        let of_services = self.iter().flat_map(|(_, file)| file.hooks());
        of_services.chain(hooks::built_in())
    }

    /// The hook of that name.
    pub fn hook(&self, name: &str) -> Option<&Hook> {
        self.hooks().find(|hook| hook.name == name)
    }

    /// Whether the result of a hook holds events.
    pub fn collects_events(&self, hook: &str) -> bool {
        self.hook(hook).is_some_and(Hook::collects_events)
    }

    /// The service that a hook belongs to.
    pub fn service_of_hook(&self, name: &str) -> Option<String> {
        let mut services = self.iter();
        let has = |file: &ServiceFile| file.hooks().iter().any(|hook| hook.name == name);
        services
            .find(|(_, file)| has(file))
            .map(|(service, _)| service.to_owned())
    }

    /// Whether a hook has that effect on resources of a type.
    pub fn does(&self, what: Action, kind: &str) -> bool {
        let mut effects = self.hooks().flat_map(|hook| &hook.effects);
        effects.any(|effect| effect.does == what && effect.kind == kind)
    }

    /// The settings of all services, each name once.
    pub fn settings(&self) -> Vec<(&str, &Setting)> {
        let mut settings: Vec<(&str, &Setting)> = Vec::new();
        for (_, file) in self.iter() {
            for (name, setting) in &file.settings {
                if settings.iter().all(|(known, _)| known != name) {
                    settings.push((name, setting));
                }
            }
        }
        settings
    }

    /// The service that reads the tokens of an application.
    pub fn token_reader(&self) -> Option<&str> {
        self.signed_token().map(|(name, _)| name)
    }

    /// The tokens that an application signs, with the service that reads them.
    pub fn signed_token(&self) -> Option<(&str, &SignedToken)> {
        let mut services = self.iter();
        services.find_map(|(name, file)| Some((name, file.signed_token.as_ref()?)))
    }

    /// Whether an application writes resources of that type, and the service reads them.
    pub fn is_written_by_clients(&self, kind: &str) -> bool {
        let signed = self.signed_token();
        signed.is_some_and(|(_, signed)| signed.token == kind || signed.code == kind)
    }

    /// The exclusive setting of a service, with its key.
    pub fn exclusive(&self, service: &str) -> Option<(&str, &Exclusive)> {
        let mut settings = self.get(service)?.settings.iter();
        settings.find_map(|(key, setting)| Some((key.as_str(), setting.exclusive.as_ref()?)))
    }
}

/// One text or several.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "invalid value: expected a text in quotes, or a list of them"
)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Takes the settings of targets out of a configuration.
pub(super) fn take_settings(
    draft: &mut Draft,
    file: &File,
    config: &mut Node,
    index: &ServiceIndex,
    target_keys: &[&str],
) -> BTreeMap<String, Configured> {
    let mut all = BTreeMap::new();
    let known = index.settings();
    for target in members_mut(config, "targets") {
        let service = index.get(&target.key);
        let Content::Map(members) = &mut target.value.content else {
            continue;
        };
        let mut configured = Configured::new();
        members.retain(|member| {
            let key: &str = &member.key;
            let of_service = service.and_then(|service| service.setting(key));
            let of_another = || known.iter().find(|(name, _)| *name == key);
            let setting = of_service.or_else(|| of_another().map(|(_, setting)| *setting));
            if let Some(setting) = setting {
                if let Some(value) = configured_value(draft, file, member, setting) {
                    configured.insert(key.to_owned(), value);
                }
                return false;
            }
            if target_keys.contains(&key) {
                return true;
            }
            let known = known.iter().map(|(name, _)| *name);
            unknown_key(
                draft,
                file,
                member,
                known.chain(target_keys.iter().copied()),
            );
            false
        });
        all.insert(target.key.to_string(), configured);
    }
    all
}

fn members_mut<'n>(node: &'n mut Node, key: &str) -> impl Iterator<Item = &'n mut Member> {
    let members: &mut [Member] = if let Content::Map(members) = &mut node.content {
        members
    } else {
        &mut []
    };
    let found = members.iter_mut().find(|member| *member.key == *key);
    let inside: &mut [Member] = match found.map(|member| &mut member.value.content) {
        Some(Content::Map(members)) => members,
        _ => &mut [],
    };
    inside.iter_mut()
}

fn unknown_key<'a>(
    draft: &mut Draft,
    file: &File,
    member: &Member,
    known: impl IntoIterator<Item = &'a str>,
) {
    let problem = file.problem_at(member.key_span, format!("unknown key `{}`", member.key));
    draft.problems.push(match suggest(&member.key, known) {
        Some(help) => problem.help(help),
        None => problem,
    });
}

fn configured_value(
    draft: &mut Draft,
    file: &File,
    member: &Member,
    setting: &Setting,
) -> Option<SettingValue> {
    let node = &member.value;
    if matches!(node.content, Content::Null) {
        return None;
    }
    if setting.many {
        return draft
            .deserialize::<OneOrMany>(file, node)
            .map(|given| match given {
                OneOrMany::One(value) => SettingValue::Many(vec![value]),
                OneOrMany::Many(values) => SettingValue::Many(values),
            });
    }
    match setting.kind {
        SettingType::Group => {
            if !matches!(node.content, Content::Map(_)) {
                let problem = file.problem_at(node.span, "expected settings by name");
                draft.problems.push(problem);
                return None;
            }
            let mut group = BTreeMap::new();
            for inner in node.members() {
                let mut members = setting.members.iter();
                if members.any(|(name, _)| *name == *inner.key) {
                    let value = draft
                        .deserialize::<Option<String>>(file, &inner.value)
                        .flatten();
                    group.extend(value.map(|value| (inner.key.to_string(), value)));
                } else {
                    let known = setting.members.iter().map(|(name, _)| name.as_str());
                    unknown_key(draft, file, inner, known);
                }
            }
            Some(SettingValue::Group(group))
        }
        SettingType::Choice => {
            let word = draft.deserialize::<String>(file, node)?;
            if setting.values.contains(&word) {
                return Some(SettingValue::One(word));
            }
            let problem = file.problem_at(node.span, format!("unknown word `{word}`"));
            let known = setting.values.iter().map(String::as_str);
            draft.problems.push(match suggest(&word, known) {
                Some(help) => problem.help(help),
                None => problem,
            });
            None
        }
        SettingType::Text | SettingType::Path => draft
            .deserialize::<String>(file, node)
            .map(SettingValue::One),
    }
}

/// The readable `service.yaml` files; problems of others are not reported.
fn service_files(mut sources: sources::Sources, draft: &mut Draft) -> Files {
    add_embedded(&mut sources);
    let mut files = Files::new();
    for (path, bytes) in &sources {
        if is_service_file(path)
            && let Some(file) = read_file(path, bytes, &mut draft.problems)
        {
            files.insert(path.clone(), file);
        }
    }
    files
}

/// Adds the embedded `service.yaml` to a folder without one, as rulebooks of earlier releases need.
pub(super) fn add_embedded(sources: &mut sources::Sources) {
    let folders = sources.keys().filter_map(|path| path.split_once('/'));
    let mut missing: Vec<String> = folders
        .map(|(folder, _)| format!("{folder}/{FILE_NAME}"))
        .filter(|path| !sources.contains_key(path))
        .collect();
    missing.dedup();
    for path in missing {
        if let Some(file) = conformant_specs::file(&path) {
            sources.insert(path, file.bytes.into());
        }
    }
}

/// Reads the index from the `service.yaml` files among all files.
pub(super) fn read(draft: &mut Draft, files: &Files) -> ServiceIndex {
    let mut index = ServiceIndex::default();
    for file in files.values().filter(|file| is_service_file(&file.path)) {
        if !draft.is_mapping(file) {
            continue;
        }
        let Some(mut service) = draft.deserialize::<ServiceFile>(file, &file.node) else {
            continue;
        };
        service.hooks = std::mem::take(&mut service.hook_entries)
            .into_iter()
            .map(|(name, entry)| Hook {
                name,
                required: entry.takes,
                optional: entry.may_take,
                open: entry.takes_any,
                effects: entry.effects,
                opens_all: false,
                result: entry.result,
                values: entry.values,
                probe: entry.probe,
            })
            .collect();
        if !draft.is_sound {
            check_alone(draft, file, &service);
            check_across_services(draft, file, &service, &index);
        }
        index
            .files
            .insert(file.service().to_owned(), Arc::new(service));
    }
    let mut order: Vec<&String> = index.files.keys().collect();
    order.sort_by_key(|name| {
        let file = &index.files[*name];
        (file.base.is_none(), file.document.id, *name)
    });
    index.order = order.into_iter().cloned().collect();
    index
}

fn is_service_file(path: &str) -> bool {
    path.split_once('/')
        .is_some_and(|(_, name)| name == FILE_NAME)
}

/// A folder with files of a service and no `service.yaml`.
pub(super) fn missing(folder: &str, first: &str) -> Problem {
    Problem::of_file(
        first,
        format!("the folder `{folder}` is not a service: it has no {FILE_NAME}"),
    )
    .help(format!(
        "write {folder}/{FILE_NAME}; specs/README.md shows its keys"
    ))
}

/// Checks one file on its own.
fn check_alone(draft: &mut Draft, file: &File, service: &ServiceFile) {
    let mut problem = |at: &str, message: String, help: &str| {
        draft.problems.push(file.problem(at, message).help(help));
    };
    let name = file.service();
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !is_name || RESERVED.contains(&name) {
        problem(
            "",
            format!("invalid service name `{name}`"),
            "begin with a lowercase letter, continue with lowercase letters, digits and `_`; all, people and reference are reserved",
        );
    }
    for (at, text) in [
        ("/title", &service.title),
        ("/document/title", &service.document.title),
    ] {
        if text.trim().is_empty() {
            problem(at, "the title is empty".to_owned(), "write one line");
        }
    }
    if let Some(base) = &service.base
        && (!base.path.starts_with('/') || base.path.len() < 2 || base.path.ends_with('/'))
    {
        problem(
            "/base/path",
            format!("invalid base path `{}`", base.path),
            "expected `/` and a name, such as `/orders`",
        );
    }
    if service.formats.is_empty() {
        problem("/formats", "no format is listed".to_owned(), "write [json]");
    }
    for (n, rejection) in service.rejected_when.iter().enumerate() {
        check_pointer(
            draft,
            file,
            &format!("/rejected-when/{n}/at"),
            &rejection.at,
        );
    }
    check_settings(draft, file, "/settings", &service.settings);
    for (key, setting) in &service.settings {
        let at = json::join("/settings", key);
        check_hooks_of_setting(draft, file, service, (&at, setting));
        check_pointers_of_setting(draft, file, (&at, setting));
        if let Some(exclusive) = &setting.exclusive
            && service.setting(&exclusive.within).is_none()
        {
            let known = service.settings.iter().map(|(key, _)| key.as_str());
            let span = file.node.place(&format!("{at}/exclusive/within"));
            draft.unknown(file, span, "setting", &exclusive.within, known);
        }
    }
    if service.signed_token.is_some() && service.setting(APPLICATION).is_none() {
        let problem = file.problem(
            "/signed-token",
            format!("the setting `{APPLICATION}` is missing"),
        );
        let help = "a signed token needs a group of the settings id, name, scheme and api_key";
        draft.problems.push(problem.help(help));
    }
    for hook in &service.hooks {
        check_hook(draft, file, hook);
    }
}

fn check_settings(draft: &mut Draft, file: &File, at: &str, settings: &[(String, Setting)]) {
    for (key, setting) in settings {
        let at = json::join(at, key);
        let mut problem = |message: String, help: &str| {
            draft.problems.push(file.problem(&at, message).help(help));
        };
        let is_choice = setting.kind == SettingType::Choice;
        if is_choice == setting.values.is_empty() {
            problem(
                format!("`values` of `{key}` does not fit its type"),
                "a `choice` lists its words under `values`; other types have none",
            );
        }
        if let Some(default) = &setting.default
            && is_choice
            && !setting.values.contains(default)
        {
            problem(
                format!("the default `{default}` of `{key}` is not one of its values"),
                "use one of the words under `values`",
            );
        }
        if (setting.kind == SettingType::Group) == setting.members.is_empty() {
            problem(
                format!("`members` of `{key}` does not fit its type"),
                "a `group` lists its settings under `members`; other types have none",
            );
        }
        for (word, meaning) in &setting.stands_for {
            // Other types have no values.
            for word in [word, meaning] {
                if !setting.values.contains(word) {
                    problem(
                        format!("`{word}` in `stands-for` of `{key}` is not one of its values"),
                        "`stands-for` maps words of a `choice`; use words under `values`",
                    );
                }
            }
        }
        if setting.many && setting.kind != SettingType::Text {
            problem(
                format!("`many` of `{key}` does not fit its type"),
                "only a setting of the type `text` takes several values",
            );
        }
        if setting.exclusive.is_some() && !setting.many {
            problem(
                format!("the exclusive setting `{key}` takes one value"),
                "write `many: true`, so that scenarios can run side by side",
            );
        }
        check_members(draft, file, &json::join(&at, "members"), &setting.members);
    }
}

/// Checks the members of a group: each is one text.
fn check_members(draft: &mut Draft, file: &File, at: &str, members: &[(String, Setting)]) {
    for (key, member) in members {
        let is_text = member.kind == SettingType::Text && member.values.is_empty();
        let is_plain = member.members.is_empty() && member.stands_for.is_empty();
        let is_single = !member.many && member.exclusive.is_none() && member.provisioned.is_none();
        if !is_text || !is_plain || !is_single {
            let problem = file.problem(
                &json::join(at, key),
                format!("the member `{key}` of a group is not one text"),
            );
            let help = "leave out `type`, `values`, `stands-for`, `members`, `many`, `exclusive` and `provisioned`";
            draft.problems.push(problem.help(help));
        }
    }
}

fn check_hook(draft: &mut Draft, file: &File, hook: &Hook) {
    let at = json::join("/hooks", &hook.name);
    let is_name = !hook.name.is_empty()
        && hook
            .name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !is_name {
        draft.problems.push(
            file.problem(&at, format!("invalid hook name `{}`", hook.name))
                .help("expected lowercase letters, digits and `_`"),
        );
    }
    let probed = hook.probe.iter().flat_map(Map::keys);
    let named = probed.map(|name| ("probe", name));
    let named = named.chain(hook.values.keys().map(|name| ("values", name)));
    for (place, name) in named {
        let mut known = hook.required.iter().chain(&hook.optional);
        if !hook.open && !known.any(|known| known == name) {
            let known = hook.required.iter().chain(&hook.optional);
            let span = file.node.place(&format!("{at}/{place}/{name}"));
            draft.unknown(file, span, "argument", name, known.map(String::as_str));
        }
    }
    for (n, effect) in hook.effects.iter().enumerate() {
        let named = [
            ("key", effect.key.as_ref()),
            ("name", effect.name.as_ref()),
            ("within/key", effect.within.as_ref().map(|scope| &scope.key)),
        ];
        for (place, name) in named {
            let arguments = || hook.required.iter().chain(&hook.optional);
            let Some(name) = name else { continue };
            if !arguments().chain(&hook.result).any(|known| known == name) {
                let known = arguments().chain(&hook.result).map(String::as_str);
                let span = file.node.place(&format!("{at}/effects/{n}/{place}"));
                draft.unknown(file, span, "argument or result", name, known);
            }
        }
    }
}

/// Checks the hooks that a setting names, with their arguments and results.
fn check_hooks_of_setting(
    draft: &mut Draft,
    file: &File,
    service: &ServiceFile,
    (at, setting): (&str, &Setting),
) {
    let mut named = |place: &str, name: &str| {
        let at = format!("{at}/{place}");
        find_hook(draft, file, service, (&at, name))
    };
    let provisioned = setting.provisioned.as_ref();
    let made_by = provisioned.and_then(|p| named("provisioned/hook", &p.hook));
    let then = provisioned.and_then(|p| named("provisioned/then", p.then.as_ref()?));
    let exclusive = setting.exclusive.as_ref();
    let freed_by = exclusive.and_then(|e| named("exclusive/freed-by/hook", &e.freed_by.hook));
    let mut unknown = |place: &str, what: &str, name: &str, known: &[&String]| {
        if known.iter().all(|known| *known != name) {
            let span = file.node.place(&format!("{at}/{place}"));
            let known = known.iter().map(|known| known.as_str());
            draft.unknown(file, span, what, name, known);
        }
    };
    if let Some((hook, how)) = made_by.zip(provisioned) {
        let known = Vec::from_iter(&hook.result);
        unknown(
            "provisioned/result",
            "result of the hook",
            &how.result,
            &known,
        );
    }
    if let Some((hook, how)) = then.zip(provisioned)
        && !hook.open
    {
        let what = format!("argument of the hook `{}`", hook.name);
        unknown("provisioned/result", &what, &how.result, &hook.arguments());
    }
    if let Some((hook, how)) = freed_by.zip(exclusive)
        && !hook.open
    {
        let freed = &how.freed_by;
        for (place, name) in [("scope", &freed.scope), ("holder", &freed.holder)] {
            let place = format!("exclusive/freed-by/{place}");
            unknown(&place, "argument of the hook", name, &hook.arguments());
        }
    }
}

/// The hook of that name; a problem if the service has none.
fn find_hook<'s>(
    draft: &mut Draft,
    file: &File,
    service: &'s ServiceFile,
    (at, name): (&str, &str),
) -> Option<&'s Hook> {
    let found = service.hooks.iter().find(|hook| hook.name == name);
    if found.is_none() {
        let known = service.hooks.iter().map(|hook| hook.name.as_str());
        draft.unknown(
            file,
            file.node.place(at),
            "hook of this service",
            name,
            known,
        );
    }
    found
}

/// Checks the JSON Pointers of a setting.
fn check_pointers_of_setting(draft: &mut Draft, file: &File, (at, setting): (&str, &Setting)) {
    let mut pointers: Vec<(&str, &String)> = Vec::new();
    if let Some(found) = setting.provisioned.as_ref().and_then(|p| p.found.as_ref()) {
        pointers.push(("provisioned/found/key", &found.key));
        let prefer = found.prefer.iter();
        pointers.extend(prefer.map(|prefer| ("provisioned/found/prefer/at", &prefer.at)));
    }
    if let Some(exclusive) = &setting.exclusive {
        pointers.extend([
            ("exclusive/held/at", &exclusive.held.at),
            ("exclusive/held/while/at", &exclusive.held.busy.at),
            ("exclusive/held/key", &exclusive.held.key),
            ("exclusive/free/at", &exclusive.free.at),
        ]);
    }
    for (place, pointer) in pointers {
        check_pointer(draft, file, &format!("{at}/{place}"), pointer);
    }
}

fn check_pointer(draft: &mut Draft, file: &File, at: &str, pointer: &str) {
    if !pointer.starts_with('/') {
        let problem = file.problem(at, format!("invalid JSON Pointer `{pointer}`"));
        draft
            .problems
            .push(problem.help("expected a pointer such as `/success`"));
    }
}

/// Checks that an operation has a parameter.
fn check_parameter(
    draft: &mut Draft,
    file: &File,
    at: &str,
    (operation, name): (&Operation, &str),
) {
    if operation.parameters.iter().all(|p| p.name != name) {
        let known = operation.parameters.iter().map(|p| p.name.as_str());
        draft.unknown(file, file.node.place(at), "parameter", name, known);
    }
}

/// Checks for hooks, base paths and document titles that clash with another service.
fn check_across_services(
    draft: &mut Draft,
    file: &File,
    service: &ServiceFile,
    index: &ServiceIndex,
) {
    let mut problem = |at: &str, message: String, help: &str| {
        draft.problems.push(file.problem(at, message).help(help));
    };
    for hook in &service.hooks {
        let at = json::join("/hooks", &hook.name);
        let other = index.files.iter().find_map(|(name, other)| {
            let mut hooks = other.hooks.iter();
            hooks
                .any(|known| known.name == hook.name)
                .then_some(name.as_str())
        });
        if let Some(other) = other {
            problem(
                &at,
                format!("the service {other} has a hook `{}` as well", hook.name),
                "a hook belongs to one service; rename one of the two",
            );
        } else if hooks::built_in()
            .iter()
            .any(|known| known.name == hook.name)
        {
            problem(
                &at,
                format!("the hook `{}` is built in", hook.name),
                "rename it: its name would hide the built-in hook",
            );
        }
    }
    for (name, other) in &index.files {
        let paths = service.base.as_ref().zip(other.base.as_ref());
        if paths.is_some_and(|(base, taken)| base.path == taken.path) {
            problem(
                "/base/path",
                format!("{name} has the same base path"),
                "use a unique path for each service",
            );
        }
        let (own, known) = (&service.document, &other.document);
        if own.id == known.id && own.title != known.title {
            problem(
                "/document/title",
                format!("{name} gives the document {} another title", own.id),
                "use the same title for it everywhere",
            );
        }
    }
}

/// Checks that names in the files resolve: operations, their parameters, resource types. Embedded files that an older
/// rulebook uses are not checked.
pub(super) fn check_names(
    draft: &mut Draft,
    files: &Files,
    own: impl Fn(&str) -> bool,
    index: &ServiceIndex,
    (services, kinds): (&BTreeMap<String, Service>, &BTreeMap<String, Kind>),
) {
    for (name, service) in index.iter() {
        let path = format!("{name}/{FILE_NAME}");
        let Some(file) = files.get(&path).filter(|_| own(&path)) else {
            continue;
        };
        let operations = services.get(name).map(|service| &service.operations);
        let operation = |draft: &mut Draft, at: &str, id: &str| {
            let found = operations.and_then(|operations| operations.get(id));
            if found.is_none() {
                let known = operations.into_iter().flat_map(BTreeMap::keys);
                let span = file.node.place(at);
                draft.unknown(file, span, "operation", id, known.map(String::as_str));
            }
            found
        };
        if let Some(base) = &service.base
            && let Some(found) = operation(draft, "/base/probe/call", &base.probe.call)
        {
            if found.method != "GET" {
                let problem = file.problem(
                    "/base/probe/call",
                    format!("the probe `{}` is a {}", found.id, found.method),
                );
                let help = "name a GET operation: the probe must change nothing";
                draft.problems.push(problem.help(help));
            }
            for parameter in base.probe.with.keys() {
                let at = json::join("/base/probe/with", parameter);
                check_parameter(draft, file, &at, (found, parameter));
            }
        }
        for (key, setting) in &service.settings {
            let at = json::join("/settings", key);
            let found = setting.provisioned.as_ref().and_then(|p| p.found.as_ref());
            if let Some(found) = found {
                operation(draft, &format!("{at}/provisioned/found/in"), &found.list);
            }
            if let Some(exclusive) = &setting.exclusive {
                for (place, id) in [
                    ("held/in", &exclusive.held.list),
                    ("shown-by", &exclusive.shown_by),
                ] {
                    operation(draft, &format!("{at}/exclusive/{place}"), id);
                }
                let at = format!("{at}/exclusive");
                let taken_by = operation(draft, &format!("{at}/taken-by"), &exclusive.taken_by);
                for (place, name) in [
                    ("scope", &exclusive.scope),
                    ("parameter", &exclusive.parameter),
                ] {
                    if let Some(found) = taken_by {
                        check_parameter(draft, file, &json::join(&at, place), (found, name));
                    }
                }
            }
        }
        let mut named: Vec<(String, &str)> = Vec::new();
        for hook in service.hooks() {
            for (n, effect) in hook.effects.iter().enumerate() {
                let at = format!("{}/effects/{n}", json::join("/hooks", &hook.name));
                named.push((format!("{at}/kind"), &effect.kind));
                let within = effect.within.iter();
                named.extend(within.map(|scope| (format!("{at}/within/kind"), &*scope.kind)));
            }
        }
        if let Some(signed) = &service.signed_token {
            named.push(("/signed-token/token".to_owned(), &signed.token));
            named.push(("/signed-token/code".to_owned(), &signed.code));
        }
        for (at, kind) in named {
            if !kinds.contains_key(kind) {
                let known = kinds.keys().map(String::as_str);
                draft.unknown(file, file.node.place(&at), "resource type", kind, known);
            }
        }
    }
}
