//! A target as a run needs it: its addresses, who asks and how a shell spells that, and what stories are told of it.

use super::environment::environment;
use super::error::ConfigError;
use super::file::{ApplicationEntry, BodyForm, FormatChoice, Numbers, TargetEntry};
use super::reader::Reader;
use conformant_engine::bearer::Bearer;
use conformant_engine::settings::Target;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The longest that a command may take to print a token.
const COMMAND_MAX: Duration = Duration::from_secs(30);

/// A configured value, and the text that stands for it: `${NAME}` where it comes from the environment.
struct Said {
    value: String,
    text: String,
}

impl Reader {
    pub(super) fn target(&mut self, name: &str, entry: TargetEntry) -> Target {
        let at = |key: &str| format!("targets.{name}.{key}");
        let url = entry.url.as_deref();
        let url = url.map_or_else(String::new, |url| self.fill(&at("url"), url));
        if !url.is_empty() {
            self.base_url(&at("url"), &url);
        }
        let mut target = if self.is_reference {
            Target::of_reference(name, &url)
        } else {
            Target::foreign(name, &url)
        };
        self.credentials(name, &entry, &mut target);
        target.public_url = entry
            .public_url
            .map(|url| self.fill(&at("public_url"), &url));
        for (at, origin) in entry.content_origins.iter().enumerate() {
            let at = format!("targets.{name}.content_origins[{at}]");
            let origin = self.fill(&at, origin);
            self.base_url(&at, &origin);
            target.content_origins.push(origin);
        }
        target.json_bodies = entry.body == Some(BodyForm::Json);
        for (key, value) in [
            ("user_status_path", entry.user_status_path),
            ("flow_sid", entry.flow_sid),
            ("disposable_flow_sid", entry.disposable_flow_sid),
            ("from", entry.from),
            ("message_service_sid", entry.message_service_sid),
        ] {
            if let Some(value) = value {
                let value = self.fill(&at(key), &value);
                target.values.insert(key.to_owned(), json!(value));
            }
        }
        let numbers = match entry.to {
            None => Vec::new(),
            Some(Numbers::One(number)) => vec![number],
            Some(Numbers::Several(numbers)) => numbers,
        };
        target.persons = numbers.iter().map(|n| self.fill(&at("to"), n)).collect();
        if let Some(first) = target.persons.first() {
            target.values.insert("to".to_owned(), json!(first));
        }
        if let Some(format) = entry.format {
            let format = match format {
                FormatChoice::Json | FormatChoice::Both => "json",
                FormatChoice::Xml => "xml",
            };
            target.values.insert("format".to_owned(), json!(format));
        }
        if name == "auth" {
            let known = self.application(&at("application"), entry.application.unwrap_or_default());
            if !known.is_empty() {
                target
                    .values
                    .insert("application".to_owned(), Value::Object(known));
            }
        }
        target
    }

    /// Who asks, in each of the ways that there are, and how a shell spells it.
    fn credentials(&mut self, name: &str, entry: &TargetEntry, target: &mut Target) {
        let at = |key: &str| format!("targets.{name}.{key}");
        let mut shell = (*target.shell).clone();
        shell.options.clone_from(&self.curl);
        if let Some(tls) = &entry.tls {
            let (proxies, _): (Vec<_>, Vec<_>) = self
                .curl
                .iter()
                .cloned()
                .partition(|(option, _)| option == "-x");
            shell.options = proxies;
            shell.options.extend(tls.curl(&self.folder));
        }
        let mut headers: Vec<(String, Said)> = Vec::new();
        for (field, text) in &entry.headers {
            let value = self.fill_secret(&at(&format!("headers.{field}")), text);
            if conformant_base::redact::is_secret_header(field) {
                self.secrets.push(value.clone());
            }
            let text = text.clone();
            headers.push((field.clone(), Said { value, text }));
        }
        if let Some(token) = self.said(name, "bearer", entry.bearer.as_deref(), true) {
            let value = format!("Bearer {}", token.value);
            let text = format!("Bearer {}", token.text);
            headers.push(("Authorization".to_owned(), Said { value, text }));
        }
        if !headers.is_empty() {
            let field = |(name, said): &(String, Said)| (name.clone(), said.value.clone());
            target.headers = headers.iter().map(field).collect();
            let spelled = |(name, said): (String, Said)| (name, said.text);
            shell.headers = headers.into_iter().map(spelled).collect();
        }
        if let Some(credentials) = &entry.credentials {
            let bearer = Bearer::new(credentials.command.clone(), COMMAND_MAX);
            if !self.is_dry {
                // Asked for now, so that a command that fails is a mistake and not a finding.
                match bearer.token() {
                    Ok(token) => self.secrets.push(token),
                    Err(source) => {
                        let service = name.to_owned();
                        let problem = ConfigError::Token { service, source };
                        self.problems.push(problem);
                    }
                }
            }
            shell.bearer = Some(bearer.shell());
            target.bearer = Some(Arc::new(bearer));
        }
        let username = self.said(name, "username", entry.username.as_deref(), false);
        let password = self.said(name, "password", entry.password.as_deref(), true);
        match (username, password) {
            (Some(username), Some(password)) => {
                target.basic = Some((username.value, password.value));
                shell.basic = Some((username.text, password.text));
                // The reference's own account is of no use elsewhere.
                target.account = None;
                shell.account = None;
            }
            (None, None) => {}
            (Some(_), None) => {
                let service = name.to_owned();
                self.problems.push(ConfigError::NoPassword { service });
            }
            (None, Some(_)) => {
                let service = name.to_owned();
                self.problems.push(ConfigError::NoUsername { service });
            }
        }
        let account = self.said(name, "account_sid", entry.account_sid.as_deref(), false);
        let token = self.said(name, "auth_token", entry.auth_token.as_deref(), true);
        if let (Some(sid), Some(token)) = (account, token) {
            target.account = Some((sid.value, token.value));
            shell.account = Some((sid.text, token.text));
        }
        target.shell = Arc::new(shell);
    }

    /// What the environment says under the target's own variable, otherwise the file.
    fn said(
        &mut self,
        name: &str,
        key: &str,
        in_file: Option<&str>,
        is_secret: bool,
    ) -> Option<Said> {
        let at = format!("targets.{name}.{key}");
        let variable = format!("CONFORMANT_{}_{}", name.to_uppercase(), key.to_uppercase());
        if let Some(value) = environment(&variable) {
            if is_secret {
                self.secrets.push(value.clone());
            }
            let text = format!("${{{variable}}}");
            return Some(Said { value, text });
        }
        let text = in_file?.to_owned();
        let value = if is_secret {
            self.secret(&at, &text)?
        } else {
            self.fill(&at, &text)
        };
        Some(Said { value, text })
    }

    pub(super) fn application(&mut self, at: &str, entry: ApplicationEntry) -> Map<String, Value> {
        let mut known = Map::new();
        for (key, value) in [
            ("id", entry.id),
            ("name", entry.name),
            ("scheme", entry.scheme),
        ] {
            let from_environment = environment(&format!(
                "CONFORMANT_AUTH_APPLICATION_{}",
                key.to_uppercase()
            ));
            let in_file = value.map(|value| self.fill(&format!("{at}.{key}"), &value));
            if let Some(value) = from_environment.or(in_file) {
                known.insert(key.to_owned(), json!(value));
            }
        }
        let api_key = match environment("CONFORMANT_AUTH_API_KEY") {
            Some(key) => Some(self.keep_secret(key)),
            None => entry
                .api_key
                .and_then(|text| self.secret(&format!("{at}.api_key"), &text)),
        };
        if let Some(api_key) = api_key {
            known.insert("api_key".to_owned(), json!(api_key));
        }
        known
    }
}
