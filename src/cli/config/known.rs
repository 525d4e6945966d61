//! What files and traffic can be judged against: the configuration as far as that needs no credentials.

use super::environment::environment;
use super::reader::open;
use crate::cli::Failure;
use conformant_engine::settings::{Reach, Target};
use conformant_record::SERVICES;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What files can be judged against: the targets as far as that needs no credentials.
#[derive(Debug)]
pub(in crate::cli) struct Known {
    /// Base URL by service, where one is configured.
    pub targets: BTreeMap<String, String>,
    /// What stands under `auth`: the application, otherwise the reference's, and configured paths.
    pub values: Map<String, Value>,
    /// Nothing about an application is configured.
    pub is_reference: bool,
    /// The longest that one exchange may take.
    pub timeout: Duration,
    /// The largest body that is read.
    pub body_bytes_max: usize,
    /// Certificates and proxies on the way.
    pub reach: Reach,
    /// What must appear in no output.
    pub secrets: Vec<String>,
}

impl Known {
    /// What traffic is judged against: of an application that is not configured nothing is known.
    pub(in crate::cli) fn of_traffic(&self) -> Map<String, Value> {
        let mut values = self.values.clone();
        if self.is_reference {
            values.remove("application");
        }
        values
    }

    /// A text of the application: `name`, `id`, `scheme`, `api_key`.
    pub(in crate::cli) fn of_application(&self, key: &str) -> Option<String> {
        let value = self.values.get("application")?.get(key)?;
        Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        )
    }
}

/// Reads of file and environment what files can be judged against.
pub(in crate::cli) fn known(config: Option<&Path>) -> Result<Known, Failure> {
    let (mut file, mut reader) = open(config)?;
    let reach = reader.reach(&file);
    let mut targets = BTreeMap::new();
    for service in SERVICES {
        let in_file = file.targets.get(service).and_then(|t| t.url.clone());
        let url = environment(&format!("CONFORMANT_{}_URL", service.to_uppercase())).or(in_file);
        if let Some(url) = url {
            targets.insert(
                service.to_owned(),
                reader.fill(&format!("targets.{service}.url"), &url),
            );
        }
    }
    let auth = file.targets.remove("auth").unwrap_or_default();
    let application = reader.application(
        "targets.auth.application",
        auth.application.unwrap_or_default(),
    );
    let is_reference = application.is_empty();
    let mut values = Target::of_reference("auth", "").values;
    if !is_reference {
        values.insert("application".to_owned(), Value::Object(application));
    }
    if let Some(path) = auth.user_status_path {
        values.insert("user_status_path".to_owned(), json!(path));
    }
    let timeout = reader.duration("limits.timeout", file.limits.timeout.as_deref(), 10);
    let body_bytes_max = reader.bytes(file.limits.body.as_deref());
    let secrets = reader.finish()?;
    Ok(Known {
        targets,
        values,
        is_reference,
        timeout,
        body_bytes_max,
        reach,
        secrets,
    })
}
