//! Loads the rulebook: all files or none, with all problems at once.

use super::annotations::{self, Annotations};
use super::asyncapi;
use super::check::PredicateRegistry;
use super::draft::{Draft, File, Files, read_file};
use super::invariants;
use super::model::{Edition, Kind, OpenPointEntry, Rule, Rulebook, Service, event_version};
use super::openapi;
use super::problems::{Problem, Problems};
use super::requests::{self, Clients};
use super::rule_files;
use super::scenarios;
use super::schemas::{self, At, Bundler};
use super::service::{self, Configured, ServiceIndex};
use super::sources::{self, Sources};
use super::spelling::kebab;
use super::x_like;
use conformant_base::sorted::SortedMap;
use conformant_yaml::Node;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// The role of a rulebook file, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Common,
    Service,
    Schema,
    OpenApi,
    AsyncApi,
    Rules,
    Invariants,
    OpenPoints,
    Scenarios,
    /// Not a source of rules: locks, matrices, text, the embedding package.
    Other,
}

fn role(path: &str) -> Option<Role> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let (stem, extension) = name.rsplit_once('.')?;
    if matches!(extension, "md" | "lock" | "rs" | "toml") {
        return Some(Role::Other);
    }
    if !matches!(extension, "yaml" | "json") {
        return None;
    }
    let segments: Vec<&str> = path.split('/').collect();
    match segments[..] {
        [_] if stem == "common" => Some(Role::Common),
        [_] if matches!(
            stem,
            "kill-matrix" | "not-yet-caught" | "explored" | "third-party-defects" | "first-runs"
        ) =>
        {
            Some(Role::Other)
        }
        [_, _] if stem == "service" => Some(Role::Service),
        [_, _] if stem == "openapi" => Some(Role::OpenApi),
        [_, _] if stem == "open-points" => Some(Role::OpenPoints),
        [_, _] if stem == "laws" => Some(Role::Invariants),
        [_, _] if stem == "asyncapi" => Some(Role::AsyncApi),
        [_, "schemas", _] => Some(Role::Schema),
        [_, "rules", _] => Some(Role::Rules),
        [_, "scenarios", _] => Some(Role::Scenarios),
        [_, _, _] if stem.bytes().all(|b| b.is_ascii_digit()) => Some(Role::Schema),
        _ => None,
    }
}

/// Whether rules come from a file of that path.
fn is_read(path: &str) -> bool {
    role(path) != Some(Role::Other)
}

impl Rulebook {
    /// The part of the embedded rulebook that validates representations of these services, with the digest of the
    /// whole. Without scenarios. Not checked here: tests check the whole.
    pub fn load_shapes(
        registry: &dyn PredicateRegistry,
        services: &[&str],
    ) -> Result<Self, Problems> {
        let mut sources = sources::embedded();
        sources.retain(|path, _| {
            let service = path.split('/').next().unwrap_or_default();
            match role(path) {
                Some(Role::Common | Role::Service) => true,
                None => false,
                Some(_) => services.contains(&service),
            }
        });
        read(&sources, Problems::default(), Extent::Shapes, registry)
    }

    /// The embedded rulebook for commands that only print it, optionally with scenarios. Not checked here, because tests check
    /// it; runs load it with all checks.
    pub fn load_unchecked(
        registry: &dyn PredicateRegistry,
        with_scenarios: bool,
    ) -> Result<Self, Problems> {
        let sources = sources::embedded();
        let extent = if with_scenarios {
            Extent::Sound
        } else {
            Extent::Shapes
        };
        read(&sources, Problems::default(), extent, registry)
    }

    /// One file together with the embedded ones of its service, without the scenarios of other files. For fuzzing of the
    /// loader.
    #[doc(hidden)]
    pub fn load_with_file(
        registry: &dyn PredicateRegistry,
        path: &str,
        bytes: &[u8],
    ) -> Result<Self, Problems> {
        let service = path.split('/').next().unwrap_or_default();
        let mut sources = sources::embedded();
        sources.retain(|other, _| match role(other) {
            Some(Role::Common | Role::Service) => true,
            Some(Role::Scenarios) | None => false,
            Some(_) => other.split('/').next() == Some(service),
        });
        sources.insert(path.to_owned(), bytes.to_vec().into());
        read(&sources, Problems::default(), Extent::Whole, registry)
    }

    /// A rulebook from files in memory, by their path in the folder.
    pub fn from_files(
        registry: &dyn PredicateRegistry,
        files: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Self, Problems> {
        let sources = in_memory(files);
        let digest = sources::digest(&sources, is_read);
        let mut rulebook = read(&sources, Problems::default(), Extent::Whole, registry)?;
        rulebook.edition = Edition::Digest(digest);
        Ok(rulebook)
    }

    /// What files in memory describe, without checks: invariants may still lack rows.
    pub fn sound_of_files_by(
        registry: &dyn PredicateRegistry,
        files: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Self, Problems> {
        let sources = in_memory(files);
        read(&sources, Problems::default(), Extent::Shapes, registry)
    }

    /// The rulebook in a folder, or the embedded one, with further scenarios from other folders.
    /// Those are files as in `SERVICE/scenarios/`, in a folder named as the service.
    pub fn load_with(
        registry: &dyn PredicateRegistry,
        specs: Option<&Path>,
        scenarios: &[PathBuf],
    ) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let (mut sources, edition) = match specs {
            Some(dir) => {
                let sources = sources::from_dir(dir, &mut problems);
                let digest = sources::digest(&sources, is_read);
                (sources, Edition::Digest(digest))
            }
            None => (sources::embedded(), Edition::Embedded),
        };
        let mut added = SortedMap::new();
        for dir in scenarios {
            further_scenarios(dir, &mut sources, &mut added, &mut problems);
        }
        let mut rulebook = read(&sources, problems, Extent::Whole, registry)
            .map_err(|problems| problems.in_files(&added))?;
        rename_places(&mut rulebook, &added);
        rulebook.edition = edition;
        Ok(rulebook)
    }

    /// SHA-256 of the paths and bytes of all files that rules come from, in hexadecimal.
    pub fn digest(&self) -> &str {
        static EMBEDDED: LazyLock<String> =
            LazyLock::new(|| sources::digest(&sources::embedded(), is_read));
        match &self.edition {
            Edition::Embedded => &EMBEDDED,
            Edition::Digest(digest) => digest,
        }
    }
}

fn in_memory(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Sources {
    let files = files.into_iter();
    files.map(|(path, bytes)| (path, bytes.into())).collect()
}

/// The text of another file in the rulebook folder, such as `documents.lock`.
pub fn companion(specs: Option<&Path>, name: &str) -> std::io::Result<String> {
    match specs {
        Some(dir) => std::fs::read_to_string(dir.join(name)),
        None => sources::embedded()
            .remove(name)
            .and_then(|bytes| String::from_utf8(bytes.into_owned()).ok())
            .ok_or_else(|| std::io::Error::new(std::io::ErrorKind::NotFound, name.to_owned())),
    }
}

/// Parses a YAML or JSON file of another format (configuration, waivers) as strictly as the
/// rulebook's own.
pub fn parse_file<T: DeserializeOwned>(path: &str, bytes: &[u8]) -> Result<T, Problems> {
    let mut draft = Draft::default();
    let file = read_file(path, bytes, &mut draft.problems);
    let file = file.filter(|file| draft.is_mapping(file));
    let value = file.and_then(|file| draft.deserialize(&file, &file.node));
    match value {
        Some(value) if draft.problems.is_empty() => Ok(value),
        Some(_) | None => Err(draft.problems),
    }
}

/// Parses a configuration file. The settings of each target are removed first and returned by service; keys that are
/// neither settings nor `target_keys` are problems.
pub fn parse_configuration<T: DeserializeOwned>(
    path: &str,
    bytes: &[u8],
    index: &ServiceIndex,
    target_keys: &[&str],
) -> Result<(T, SortedMap<String, Configured>), Problems> {
    let mut draft = Draft::default();
    let file = read_file(path, bytes, &mut draft.problems);
    let mut configured = SortedMap::new();
    let value = file.filter(|file| draft.is_mapping(file)).and_then(|file| {
        let mut rest = file.node.clone();
        configured = service::take_settings(&mut draft, &file, &mut rest, index, target_keys);
        draft.deserialize(&file, &rest)
    });
    match value {
        Some(value) if draft.problems.is_empty() => Ok((value, configured)),
        Some(_) | None => Err(draft.problems.sorted()),
    }
}

/// `path:line` of the value below these keys, if the file has it.
pub fn place_of<'k>(
    path: &str,
    bytes: &[u8],
    keys: impl IntoIterator<Item = &'k str>,
) -> Option<String> {
    let file = read_file(path, bytes, &mut Problems::default())?;
    let (mut node, mut pointer) = (&file.node, String::new());
    for key in keys {
        node = node.get(key)?;
        pointer = conformant_base::json::join(&pointer, key);
    }
    Some(file.place(&pointer))
}

/// Adds scenario files of another folder: `SERVICE/….yaml` or `SERVICE/scenarios/….yaml`. `added` has the path of each
/// file by its path in the rulebook.
fn further_scenarios(
    dir: &Path,
    sources: &mut Sources,
    added: &mut SortedMap<String, String>,
    problems: &mut Problems,
) {
    for (path, bytes) in sources::from_dir(dir, problems) {
        let shown = dir.join(&path).display().to_string();
        let (service, rest) = path.split_once('/').unwrap_or(("", &path));
        let name = rest.strip_prefix("scenarios/").unwrap_or(rest);
        let is_service = sources.contains_key(&format!("{service}/{}", service::FILE_NAME));
        if !is_service || name.contains('/') {
            let folders = sources
                .keys()
                .filter_map(|path| path.strip_suffix(service::FILE_NAME));
            let folders: Vec<&str> = folders.collect();
            let help = format!("put scenario files under one of {}", folders.join(", "));
            problems.push(
                Problem::of_file(&shown, "not in a folder that is named as a service").help(help),
            );
            continue;
        }
        let inside = format!("{service}/scenarios/{name}");
        if sources.insert(inside.clone(), bytes).is_some() {
            let message = "a scenario file of this name is in the rulebook already";
            problems.push(Problem::of_file(&shown, message).help("rename it"));
            continue;
        }
        added.insert(inside, shown);
    }
}

/// Names the files of added scenarios as the user knows them.
fn rename_places(rulebook: &mut Rulebook, added: &SortedMap<String, String>) {
    let services = rulebook.services.values_mut();
    for (_, place) in services.flat_map(|service| service.scenarios.values_mut()) {
        if let Some((inside, rest)) = place.split_once(':')
            && let Some(shown) = added.get(inside)
        {
            *place = format!("{shown}:{rest}");
        }
    }
}

/// The part of a rulebook that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Everything, with all checks.
    Whole,
    /// Everything, without checks.
    Sound,
    /// Rules and representations, without scenarios and checks.
    Shapes,
}

/// Reads everything, or returns all problems.
#[expect(clippy::too_many_lines, reason = "one step of loading after the other")]
pub(super) fn read(
    given: &Sources,
    problems: Problems,
    extent: Extent,
    registry: &dyn PredicateRegistry,
) -> Result<Rulebook, Problems> {
    let mut draft = Draft {
        problems,
        is_sound: extent != Extent::Whole,
        ..Draft::default()
    };
    let mut sources = Cow::Borrowed(given);
    if extent == Extent::Whole {
        service::add_embedded(sources.to_mut());
    }
    let files = read_files(&sources, &mut draft);
    // Everything that such a file defines would be unknown. Only scenarios are not referred to by other files.
    let is_unreadable = |path: &String| {
        !matches!(role(path), None | Some(Role::Other | Role::Scenarios))
            && !files.contains_key(path)
    };
    if sources.keys().any(is_unreadable) {
        return Err(draft.problems.sorted());
    }
    let index = Arc::new(service::read(&mut draft, &files));
    draft.index = Arc::clone(&index);
    let is_known = |file: &File| !file.path.contains('/') || index.get(file.service()).is_some();
    // Without its `service.yaml`, every name in a folder would be unknown.
    if !files.values().all(is_known) {
        return Err(draft.problems.sorted());
    }
    let by_role = |wanted: Role| -> Vec<&File> {
        files
            .values()
            .filter(|file| role(&file.path) == Some(wanted))
            .collect()
    };

    let mut kinds: SortedMap<String, Kind> = SortedMap::new();
    for file in by_role(Role::Common) {
        for member in file.node.get("$defs").into_iter().flat_map(Node::members) {
            let at = conformant_base::json::join("/$defs", &member.key);
            schemas::derive(&mut draft, &files, file, &at, &member.value, At::default());
        }
    }
    let (mut event_types, mut compatibility) = (SortedMap::new(), SortedMap::new());
    for file in by_role(Role::AsyncApi) {
        let described = asyncapi::read(&mut draft, &files, file);
        event_types.extend(described.types);
        compatibility.extend(described.compatibility);
    }
    let mut schemas = by_role(Role::Schema);
    schemas.sort_by_cached_key(|file| precedence(&file.path, &event_types));
    for file in schemas {
        resource(&mut draft, &files, file, &mut kinds);
    }
    let mut services: SortedMap<String, Service> = index
        .iter()
        .map(|(name, _)| (name.to_owned(), empty_service(name)))
        .collect();
    let described = by_role(Role::OpenApi);
    let requests = operations(&mut draft, &files, &described, (&mut services, &mut kinds));
    generic_pages(&files, &mut kinds);
    for service in services.values_mut() {
        openapi::find_resources(service, &kinds);
    }
    if extent == Extent::Whole {
        let common = by_role(Role::Common);
        for file in by_role(Role::Schema).into_iter().chain(common) {
            meta_check(&mut draft, file);
        }
    }
    let current = current_versions(&kinds, &event_types);
    for file in by_role(Role::Rules) {
        rule_files::read_rules(&mut draft, &files, file, registry, &current);
    }
    let mut covered = invariants::Coverage::default();
    for file in by_role(Role::Invariants) {
        invariants::read(&mut draft, file, registry, &mut covered);
    }
    let mut open_points: SortedMap<String, OpenPointEntry> = SortedMap::new();
    for file in by_role(Role::OpenPoints) {
        rule_files::read_open_points(&mut draft, file, &mut open_points, &services);
    }
    let scenario_files = match extent {
        Extent::Whole | Extent::Sound => by_role(Role::Scenarios),
        Extent::Shapes => Vec::new(),
    };
    scenarios::read_rules(&mut draft, &by_role(Role::Scenarios), registry);
    scenarios::read(&mut draft, &scenario_files, &mut services);
    // An unreadable file would make its names unknown elsewhere.
    let readable = files.len()
        == sources
            .keys()
            .filter(|p| role(p).is_some_and(|r| r != Role::Other))
            .count();
    if !readable {
        return Err(draft.problems.sorted());
    }
    scenarios::fill_paths(&draft.index, &mut services, &kinds);
    if extent == Extent::Whole {
        for file in by_role(Role::Rules) {
            rule_files::check_rules(&mut draft, file, &services, &kinds);
        }
        let own = |path: &str| given.contains_key(path);
        service::check_names(&mut draft, &files, own, &index, (&services, &kinds));
        annotations::check(&mut draft, &files, &index, (&services, &kinds));
        invariants::check(&mut draft, &files, registry, (&services, &kinds), &covered);
        scenarios::check_names(&mut draft, &scenario_files, &services, &kinds);
        scenarios::check_whole(&mut draft, &files, &services);
    }

    if draft.problems.is_empty() {
        Ok(Rulebook {
            edition: Edition::Embedded,
            rules: draft.rules.into(),
            requests,
            services,
            open_points,
            kinds,
            event_types,
            compatibility,
            index,
        })
    } else {
        Err(draft.problems.sorted())
    }
}

/// Reads the operations into their services, with the resource types that they define; returns the rules about clients.
fn operations(
    draft: &mut Draft,
    files: &Files,
    described: &[&File],
    (services, kinds): (
        &mut SortedMap<String, Service>,
        &mut SortedMap<String, Kind>,
    ),
) -> SortedMap<String, Rule> {
    let mut requests: SortedMap<String, Rule> = SortedMap::new();
    for file in described {
        let described = openapi::read(draft, files, file);
        let Some(service) = services.get_mut(file.service()) else {
            continue;
        };
        service.operations = described.operations;
        requests::apply_advice(service, &described.advice);
        let clients = Clients {
            rules: &draft.rules,
            service,
            bodies: described.bodies.as_ref(),
            advice: &described.advice,
            place: &file.path,
        };
        requests.extend(clients.derive());
        for kind in described.kinds {
            if let Some(taken) = kinds.insert(kind.name.clone(), kind) {
                let message = format!("duplicate resource type `{}`", taken.name);
                draft.refuse(file.problem("", message));
            }
        }
    }
    requests
}

fn read_files(sources: &Sources, draft: &mut Draft) -> Files {
    let mut files = Files::new();
    for (path, bytes) in sources {
        match role(path) {
            Some(Role::Other) => {}
            Some(_) => {
                if let Some(file) = read_file(path, bytes, &mut draft.problems) {
                    files.insert(path.clone(), file);
                }
            }
            None => draft.refuse(
                Problem::of_file(path, "unexpected file in the rulebook")
                    .help("specs/README.md describes the folder layout"),
            ),
        }
    }
    let mut folders = BTreeSet::new();
    for path in files.keys() {
        if let Some((folder, _)) = path.split_once('/')
            && folders.insert(folder)
            && !sources.contains_key(&format!("{folder}/{}", service::FILE_NAME))
        {
            draft.refuse(service::missing(folder, path));
        }
    }
    x_like::expand_all(&mut files, draft);
    files
}

fn empty_service(name: &str) -> Service {
    Service {
        name: name.to_owned(),
        operations: SortedMap::new(),
        groups: SortedMap::new(),
        happy: SortedMap::new(),
        scenarios: SortedMap::new(),
    }
}

/// The order of event schemas: current versions first, then newer before older ones.
fn precedence(path: &str, event_types: &SortedMap<String, Option<String>>) -> (bool, Reverse<u64>) {
    let kind = schemas::owner(path).map(|(kind, _)| kind);
    let version = kind.as_deref().and_then(event_version);
    let is_current = event_types.values().any(|current| *current == kind);
    (
        version.is_some() && !is_current,
        Reverse(version.map_or(0, |(_, version)| version)),
    )
}

/// By event, such as `events/MessageSent`: the schema of its current version, or of its newest one without a current one.
fn current_versions(
    kinds: &SortedMap<String, Kind>,
    event_types: &SortedMap<String, Option<String>>,
) -> SortedMap<String, String> {
    let mut versions: Vec<(&str, u64, &String)> = kinds
        .keys()
        .filter_map(|kind| event_version(kind).map(|(event, version)| (event, version, kind)))
        .collect();
    versions.sort_unstable();
    let named = event_types.values().flatten();
    let named = named.filter_map(|kind| Some((event_version(kind)?.0, kind)));
    let newest = versions.into_iter().map(|(event, _, kind)| (event, kind));
    newest
        .chain(named)
        .map(|(event, kind)| (format!("events/{event}"), kind.clone()))
        .collect()
}

/// Reads one schema file: its rules and its resource type.
fn resource(draft: &mut Draft, files: &Files, file: &File, kinds: &mut SortedMap<String, Kind>) {
    let Some((kind, prefix)) = schemas::owner(&file.path) else {
        return;
    };
    draft.source(file, "", &file.node, true);
    draft.says(file, "", &file.node, "description");
    let root = At::root(&kind, &prefix);
    schemas::derive(draft, files, file, "", &file.node, root.clone());
    let schema = Bundler::new(files).bundle(file, &file.node, root);
    let annotations = annotations::read(draft, file, &kind);
    kinds.insert(
        kind.clone(),
        Kind {
            name: kind,
            schema,
            annotations,
            page_of: None,
        },
    );
}

/// Rejects invalid JSON Schema, such as a text in place of a number.
fn meta_check(draft: &mut Draft, file: &File) {
    let schema = file.node.to_json();
    if let Err(error) = jsonschema::draft202012::meta::validate(&schema) {
        let pointer = error.instance_path().as_str().to_owned();
        let message = format!("invalid JSON Schema: {error}");
        draft.refuse(file.problem(&pointer, message));
    }
}

/// A page for each resource type of a service with lists, if no operation returns one: the array
/// is under the key in `meta.key`.
fn generic_pages(files: &Files, kinds: &mut SortedMap<String, Kind>) {
    let resources: Vec<String> = kinds
        .values()
        .filter(|kind| kind.page_of.is_none())
        .map(|kind| kind.name.clone())
        .collect();
    for item in resources {
        let name = format!("{item}[]");
        let Some((service, resource)) = item.split_once('/') else {
            continue;
        };
        let meta = format!("{service}/schemas/list-meta.yaml");
        let path = format!("{service}/schemas/{resource}.yaml");
        let is_other = resource != "list-meta" && !kinds.contains_key(&name);
        if !is_other || !files.contains_key(&meta) || !files.contains_key(&path) {
            continue;
        }
        let mut bundler = Bundler::new(files);
        let (Some(meta_ref), Some(item_ref)) = (
            bundler.refer(&path, "list-meta.yaml"),
            bundler.refer(&path, &format!("{resource}.yaml")),
        ) else {
            continue;
        };
        let schema = bundler.finish(json!({
            "title": format!("Page of {}", kebab(resource)),
            "type": "object",
            "required": ["meta"],
            "properties": { "meta": { "$ref": meta_ref } },
            "additionalProperties": { "type": "array", "items": { "$ref": item_ref } },
        }));
        kinds.insert(
            name.clone(),
            Kind {
                name,
                schema,
                annotations: Annotations::default(),
                page_of: Some((item, None)),
            },
        );
    }
}
