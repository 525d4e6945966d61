//! What files and traffic can be judged against: the configuration as far as that needs no credentials.

use super::environment::environment;
use super::reader::open;
use crate::cli::Failure;
use conformant_base::http::Headers;
use conformant_engine::settings::{Reach, Target};
use conformant_net::transport::Limits;
use conformant_rulebook::service::{APPLICATION, ServiceIndex};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What files can be judged against: the targets as far as that needs no credentials.
#[derive(Debug)]
pub(in crate::cli) struct Known {
    /// Base URL by service, where one is configured.
    pub targets: BTreeMap<String, String>,
    /// The name of each hook by its URL, where a call is a `POST` of its arguments.
    pub hooks: BTreeMap<String, String>,
    /// By service, the header fields by which requests of the second account are recognized.
    pub second_accounts: BTreeMap<String, Headers>,
    /// The settings of the service whose tokens an application signs, those of the reference where none are configured.
    pub values: Map<String, Value>,
    /// That service.
    token_reader: Option<String>,
    /// Nothing about an application is configured.
    pub is_reference: bool,
    /// Limits of each exchange.
    pub limits: Limits,
    /// Certificates and proxies on the way.
    pub reach: Reach,
    /// What must appear in no output.
    pub secrets: Vec<String>,
}

impl Known {
    /// What files and traffic are judged against: of an application that is not configured nothing is known.
    pub(in crate::cli) fn of_traffic(&self) -> Value {
        let mut values = self.values.clone();
        if self.is_reference {
            values.remove(APPLICATION);
        }
        let token_reader = self.token_reader.iter();
        let services =
            token_reader.map(|token_reader| (token_reader.clone(), Value::Object(values.clone())));
        Value::Object(services.collect())
    }

    /// Where a text of the application is configured: its key, and the variable of the environment.
    pub(in crate::cli) fn place_of(&self, index: &ServiceIndex, key: &str) -> (String, String) {
        let service = self.token_reader.as_deref().unwrap_or_default();
        let setting = index
            .get(service)
            .and_then(|file| file.setting(APPLICATION));
        let mut members = setting.into_iter().flat_map(|setting| &setting.members);
        let member = members.find(|(name, _)| name == key);
        let variable = member.and_then(|(_, member)| member.variable.clone());
        (
            format!("targets.{service}.{APPLICATION}.{key}"),
            variable.unwrap_or_default(),
        )
    }

    /// A text of the application: `name`, `id`, `scheme`, `api_key`.
    pub(in crate::cli) fn of_application(&self, key: &str) -> Option<String> {
        let value = self.values.get(APPLICATION)?.get(key)?;
        Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        )
    }
}

/// Reads of file and environment what files can be judged against.
pub(in crate::cli) fn known(config: Option<&Path>, specs: Option<&Path>) -> Result<Known, Failure> {
    let (file, mut reader) = open(config, specs)?;
    let index = Arc::clone(&reader.index);
    let reach = reader.reach(&file);
    let mut targets = BTreeMap::new();
    for service in index.targets() {
        let in_file = file.targets.get(service).and_then(|t| t.url.clone());
        let url = environment(&format!("CONFORMANT_{}_URL", service.to_uppercase())).or(in_file);
        if let Some(url) = url {
            targets.insert(
                service.to_owned(),
                reader.fill(&format!("targets.{service}.url"), &url),
            );
        }
    }
    let mut hooks = BTreeMap::new();
    for (name, entry) in &file.hooks {
        let Some(http) = &entry.http else { continue };
        let method = http.method.as_deref().unwrap_or("POST");
        let is_plain = method == "POST" && http.body.is_none() && entry.result.is_empty();
        if is_plain && !http.url.contains("${") {
            hooks.insert(http.url.clone(), name.clone());
        }
    }
    let mut second_accounts = BTreeMap::new();
    for (service, entry) in &file.accounts {
        if let Some(fields) = reader.fields_of_account(service, entry) {
            second_accounts.insert(service.clone(), fields);
        }
    }
    let token_reader = index.token_reader().map(str::to_owned);
    let mut target = Target::default();
    if let Some(token_reader) = &token_reader {
        reader.settings(token_reader, &mut target);
    }
    let is_reference = !target.values.contains_key(APPLICATION);
    let mut values = token_reader
        .as_deref()
        .map_or_else(Map::new, |token_reader| {
            Target::of_reference(token_reader, "").values
        });
    values.extend(target.values);
    let limits = Limits {
        timeout: reader.duration("limits.timeout", file.limits.timeout.as_deref(), 10),
        body: reader.bytes(file.limits.body.as_deref()),
        ..Limits::default()
    };
    let secrets = reader.finish()?;
    Ok(Known {
        targets,
        hooks,
        second_accounts,
        values,
        token_reader,
        is_reference,
        limits,
        reach,
        secrets,
    })
}
