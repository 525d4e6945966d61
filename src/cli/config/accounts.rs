//! `accounts`: the credentials of a second account, by service.
//!
//! Certificates, proxies and header fields that are not secret are those of the target.

use super::error::ConfigError;
use super::file::AccountEntry;
use super::reader::Reader;
use super::targets::ConfiguredText;
use conformant_base::http::{Headers, Request};
use conformant_base::redact::is_secret_header;
use conformant_base::sorted::SortedMap;
use conformant_engine::request::authorize;
use conformant_engine::settings::{Settings, Target};
use conformant_judge::Shell;
use conformant_rulebook::scenario::Credentials;
use std::sync::Arc;

impl Reader {
    /// Adds the second account of each service to its target.
    pub(super) fn accounts(
        &mut self,
        entries: SortedMap<String, AccountEntry>,
        settings: &mut Settings,
    ) {
        for (service, entry) in entries {
            let Some(target) = settings.targets.get_mut(&service) else {
                self.problems.push(ConfigError::AccountOfNone { service });
                continue;
            };
            let Some(other) = self.account(&service, &entry, target) else {
                continue;
            };
            let has_pair = |pair: &Option<(String, String)>| pair.is_some() && *pair == other.basic;
            let is_same = other.basic == target.basic && other.headers == target.headers;
            if is_same || has_pair(&target.basic) || has_pair(&target.account) {
                self.problems.push(ConfigError::SameAccount { service });
                continue;
            }
            target.other_account = Some(Arc::new(other));
        }
    }

    /// The header fields by which traffic of the second account is recognized: the secret ones, or all if none is secret.
    /// `None` if a variable of its credentials is not set: files can be checked without them.
    pub(super) fn fields_of_account(
        &mut self,
        service: &str,
        entry: &AccountEntry,
    ) -> Option<Headers> {
        let problems = self.problems.len();
        let other = self.account(service, entry, &Target::default());
        let is_complete = self.problems.len() == problems;
        self.problems.truncate(problems);
        let mut request = Request::new("GET", "/");
        let other = other.filter(|_| is_complete)?;
        authorize(&other, Credentials::Default, &mut request).ok()?;
        let mut names = request.headers.iter().map(|(name, _)| name);
        let is_plain = names.all(|name| !is_secret_header(name));
        let fields: Headers = request
            .headers
            .iter()
            .filter(|(name, _)| is_plain || is_secret_header(name))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let has_some = fields.iter().next().is_some();
        has_some.then_some(fields)
    }

    fn account(&mut self, service: &str, entry: &AccountEntry, target: &Target) -> Option<Target> {
        let at = |key: &str| format!("accounts.{service}.{key}");
        let plain = |headers: &[(String, String)]| -> Vec<(String, String)> {
            let plain = headers.iter().filter(|(field, _)| !is_secret_header(field));
            plain.cloned().collect()
        };
        let mut other = Target {
            headers: plain(&target.headers),
            ..Target::default()
        };
        let mut shell = Shell {
            headers: plain(&target.shell.headers),
            options: target.shell.options.clone(),
            ..Shell::default()
        };
        let mut own = self.headers(&format!("accounts.{service}"), &entry.headers);
        if let Some(text) = &entry.bearer {
            let value = self.secret(&at("bearer"), text)?;
            let text = text.clone();
            own.push(ConfiguredText { value, text }.into_bearer());
        }
        let has_own_fields = !own.is_empty();
        for (field, ConfiguredText { value, text }) in own {
            for headers in [&mut other.headers, &mut shell.headers] {
                headers.retain(|(name, _)| !name.eq_ignore_ascii_case(&field));
            }
            other.headers.push((field.clone(), value));
            shell.headers.push((field, text));
        }
        match (&entry.username, &entry.password) {
            (Some(username), Some(password)) => {
                let name = self.fill(&at("username"), username);
                let secret = self.secret(&at("password"), password)?;
                other.basic = Some((name, secret));
                shell.basic = Some((username.clone(), password.clone()));
            }
            (None, None) if has_own_fields => {}
            (_, _) => {
                let service = service.to_owned();
                self.problems.push(ConfigError::AccountWithout { service });
                return None;
            }
        }
        other.shell = Arc::new(shell);
        Some(other)
    }
}
