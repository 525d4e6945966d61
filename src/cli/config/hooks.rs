//! Hooks as the file gives them: one of those that there are, carried out in one of two ways.

use super::error::ConfigError;
use super::file::{CommandLine, HookEntry};
use super::reader::Reader;
use conformant_base::redact::redact_userinfo;
use conformant_engine::settings::{Hook, HookTransport};
use conformant_net::transport::UrlError;
use std::path::Path;

impl Reader {
    /// A command in which relative paths of files in the folder of the configuration lead there from the current folder.
    pub(super) fn in_folder(&self, command: Vec<String>) -> Vec<String> {
        let here = std::env::current_dir().unwrap_or_default();
        let is_here = self.folder.as_os_str().is_empty() || self.folder == here;
        let words = command.into_iter().map(|word| {
            let path = self.folder.join(&word);
            let is_path = word.contains('/') && Path::new(&word).is_relative();
            match is_path && !is_here && path.is_file() {
                true => path.display().to_string(),
                false => word,
            }
        });
        words.collect()
    }

    pub(super) fn hook(&mut self, name: &str, entry: HookEntry) -> Option<Hook> {
        if self.index.hook(name).is_none() {
            let known: Vec<&str> = self.index.hooks().map(|h| h.name.as_str()).collect();
            let near = conformant_base::text::did_you_mean(name, &known);
            self.problems.push(ConfigError::Hook {
                name: name.to_owned(),
                near: near.map(str::to_owned),
            });
            return None;
        }
        if let Some(http) = &entry.http
            && redact_userinfo(&http.url) != http.url
        {
            self.problems.push(ConfigError::Url {
                at: format!("hooks.{name}.http.url"),
                url: http.url.clone(),
                source: UrlError::Credentials,
            });
            return None;
        }
        let transport = match (entry.command, entry.http) {
            (Some(CommandLine::Words(command)), None) if !command.is_empty() => {
                HookTransport::Command(self.in_folder(command))
            }
            (None, Some(http)) => HookTransport::Http {
                method: http.method.unwrap_or_else(|| "POST".to_owned()),
                url: self.fill_secret(&format!("hooks.{name}.http.url"), &http.url),
                headers: http
                    .headers
                    .iter()
                    .map(|(n, v)| {
                        let at = format!("hooks.{name}.http.headers.{n}");
                        if conformant_base::redact::is_secret_header(n) {
                            self.warn_of_secret(&at, v);
                        }
                        (n.clone(), self.fill_secret(&at, v))
                    })
                    .collect(),
                body: http.body,
            },
            (Some(_) | None, Some(_) | None) => {
                let name = name.to_owned();
                self.problems.push(ConfigError::HookTransport { name });
                return None;
            }
        };
        let wrong = |pointer: &&String| !pointer.is_empty() && !pointer.starts_with('/');
        if let Some(pointer) = entry.result.values().find(wrong) {
            self.problems.push(ConfigError::Pointer {
                name: name.to_owned(),
                pointer: pointer.clone(),
            });
        }
        Some(Hook {
            transport,
            result: entry.result.into_iter().collect(),
        })
    }
}
