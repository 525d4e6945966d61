//! The index of all services.
//!
//! - Input: the `service.yaml` of each folder. A folder without one takes the embedded file of the same name.
//! - Output: [`ServiceIndex`], in the order of documents and names; services without a base come last.

use super::check::{check_against_others, check_alone};
use super::{Exclusive, FILE_NAME, ServiceFile, Setting, SignedToken};
use crate::draft::{Draft, Files, read_file};
use crate::hooks::{self, Hook};
use crate::model::Action;
use crate::problems::{Problem, Problems};
use crate::sources;
use conformant_base::sorted::SortedMap;
use conformant_base::source::Document;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// All services of a rulebook.
#[derive(Clone, Debug, Default)]
pub struct ServiceIndex {
    pub(super) files: SortedMap<String, Arc<ServiceFile>>,
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
            Err(draft.problems.sorted())
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
    pub fn documents(&self) -> SortedMap<Document, &str> {
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

    /// The service that reads the tokens that an application signs.
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

/// The `service.yaml` files that can be read; problems of files with other names are not reported.
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
pub(crate) fn add_embedded(sources: &mut sources::Sources) {
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
pub(crate) fn read(draft: &mut Draft, files: &Files) -> ServiceIndex {
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
                required: entry.required,
                optional: entry.optional,
                open: entry.open,
                effects: entry.effects,
                opens_all: false,
                result: entry.result,
                values: entry.values,
                probe: entry.probe,
            })
            .collect();
        if !draft.is_sound {
            check_alone(draft, file, &service);
            check_against_others(draft, file, &service, &index);
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
pub(crate) fn missing(folder: &str, first: &str) -> Problem {
    Problem::of_file(
        first,
        format!("the folder `{folder}` is not a service: it has no {FILE_NAME}"),
    )
    .help(format!(
        "write {folder}/{FILE_NAME}; specs/README.md shows its keys"
    ))
}
