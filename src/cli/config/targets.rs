//! Settings of one target: addresses, credentials with their shell form, and values for scenarios.

use super::environment::environment;
use super::error::ConfigError;
use super::file::{BodyForm, BodyForms, TargetEntry};
use super::reader::Reader;
use conformant_base::redact::is_secret_header;
use conformant_base::sorted::SortedMap;
use conformant_engine::bearer::Bearer;
use conformant_engine::settings::Target;
use conformant_rulebook::service::{Setting, SettingType, SettingValue};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Time limit for a command that prints a token.
const COMMAND_MAX: Duration = Duration::from_secs(30);

/// A configured value, and its shell form: `${NAME}` if it comes from the environment.
pub(super) struct ConfiguredText {
    pub(super) value: String,
    pub(super) text: String,
}

impl ConfiguredText {
    /// The header field with a bearer token.
    pub(super) fn into_bearer(self) -> (String, Self) {
        let [value, text] = [self.value, self.text].map(|token| format!("Bearer {token}"));
        ("Authorization".to_owned(), Self { value, text })
    }
}

/// Whether each given member of a group is the known one.
fn is_part((known, given): (&Value, &Value)) -> bool {
    let (Some(known), Some(given)) = (known.as_object(), given.as_object()) else {
        return known == given;
    };
    given
        .iter()
        .all(|(name, value)| known.get(name) == Some(value))
}

impl Reader {
    pub(super) fn target(&mut self, name: &str, entry: TargetEntry) -> Target {
        let at = |key: &str| format!("targets.{name}.{key}");
        let text = entry.url.as_deref();
        let problems = self.problems.len();
        let giver = self.givers.get(name).cloned();
        let giver = giver.unwrap_or_else(|| at("url"));
        let url = text.map_or_else(String::new, |url| self.fill(&giver, url));
        match text {
            // The variable is reported.
            _ if self.problems.len() > problems => {}
            Some("") => self.report_empty(&giver, "\"\""),
            Some(text) if url.is_empty() => self.report_empty(&giver, text),
            Some(_) => self.base_url(&giver, &url),
            None => {}
        }
        let mut target = if self.is_reference {
            Target::of_reference(name, &url)
        } else {
            Target::foreign(&self.index, name, &url)
        };
        self.credentials(name, &entry, &mut target);
        target.public_url = entry
            .public_url
            .map(|url| self.fill(&at("public_url"), &url));
        if let Some(url) = &target.public_url {
            self.base_url(&at("public_url"), url);
        }
        for (at, origin) in entry.content_origins.iter().enumerate() {
            let at = format!("targets.{name}.content_origins[{at}]");
            let origin = self.fill(&at, origin);
            self.base_url(&at, &origin);
            target.content_origins.push(origin);
        }
        match entry.body {
            Some(BodyForms::All(form)) => target.json_bodies = form == BodyForm::Json,
            Some(BodyForms::Each(forms)) => {
                let forms = forms.into_iter();
                target.json_operations = forms
                    .map(|(id, form)| (id, form == BodyForm::Json))
                    .collect();
            }
            None => {}
        }
        self.settings(name, &mut target);
        target
    }

    /// The credentials of each kind, and their shell form.
    fn credentials(&mut self, name: &str, entry: &TargetEntry, target: &mut Target) {
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
        let mut headers = self.headers(&format!("targets.{name}"), &entry.headers);
        let bearer = self.configured_text(name, "bearer", entry.bearer.as_deref(), true);
        headers.extend(bearer.map(ConfiguredText::into_bearer));
        if !headers.is_empty() {
            (target.headers, shell.headers) = headers
                .into_iter()
                .map(|(name, field)| ((name.clone(), field.value), (name, field.text)))
                .unzip();
        }
        if let Some(credentials) = &entry.credentials {
            let bearer = Bearer::new(self.in_folder(credentials.command.clone()), COMMAND_MAX);
            if !self.is_dry && !self.is_of_stored_run {
                // Run now, so that a failing command is an error of the configuration and not a finding.
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
        let username = self.configured_text(name, "username", entry.username.as_deref(), false);
        let password = self.configured_text(name, "password", entry.password.as_deref(), true);
        match (username, password) {
            (Some(username), Some(password)) => {
                let given = Some((username.value, password.value));
                shell.basic = Some((username.text, password.text));
                // The reference's account is useless for other targets.
                if !self.is_reference || given != target.basic {
                    target.account = None;
                    shell.account = None;
                }
                target.basic = given;
            }
            (Some(_), None) if entry.password.is_none() => {
                let service = name.to_owned();
                self.problems.push(ConfigError::NoPassword { service });
            }
            // A password that is an error itself.
            (None | Some(_), None) => {}
            (None, Some(_)) => {
                let service = name.to_owned();
                self.problems.push(ConfigError::NoUsername { service });
            }
        }
        let account =
            self.configured_text(name, "account_sid", entry.account_sid.as_deref(), false);
        let token = self.configured_text(name, "auth_token", entry.auth_token.as_deref(), true);
        if let (Some(sid), Some(token)) = (account, token) {
            target.account = Some((sid.value, token.value));
            shell.account = Some((sid.text, token.text));
        }
        target.shell = Arc::new(shell);
    }

    /// The header fields below a key.
    pub(super) fn headers(
        &mut self,
        at: &str,
        entries: &SortedMap<String, String>,
    ) -> Vec<(String, ConfiguredText)> {
        let mut headers = Vec::new();
        for (field, text) in entries {
            let at = format!("{at}.headers.{field}");
            let value = self.fill_secret(&at, text);
            if is_secret_header(field) {
                self.secrets.push(value.clone());
                self.warn_of_secret(&at, text);
            }
            let text = text.clone();
            headers.push((field.clone(), ConfiguredText { value, text }));
        }
        headers
    }

    /// The value of the target's own variable, otherwise that of the file.
    fn configured_text(
        &mut self,
        name: &str,
        key: &str,
        in_file: Option<&str>,
        is_secret: bool,
    ) -> Option<ConfiguredText> {
        let at = format!("targets.{name}.{key}");
        let variable = format!("CONFORMANT_{}_{}", name.to_uppercase(), key.to_uppercase());
        if let Some(value) = environment(&variable) {
            if is_secret {
                self.secrets.push(value.clone());
            }
            let text = format!("${{{variable}}}");
            if value.is_empty() {
                self.report_empty(&at, &text);
            }
            return Some(ConfiguredText { value, text });
        }
        let text = in_file?.to_owned();
        let problems = self.problems.len();
        let value = if is_secret {
            self.secret(&at, &text)?
        } else {
            self.warn_of_missing_braces(&at, &text);
            let filled = self.fill(&at, &text);
            self.unread(problems, &text).unwrap_or(filled)
        };
        // A variable that is not set is one problem.
        if value.is_empty() && !is_secret && self.problems.len() == problems {
            self.report_empty(&at, &text);
        }
        Some(ConfiguredText { value, text })
    }

    /// The settings of a target: from the environment, otherwise from the file.
    pub(super) fn settings(&mut self, name: &str, target: &mut Target) {
        let index = Arc::clone(&self.index);
        let mut configured = self.configured.remove(name).unwrap_or_default();
        let own = index.get(name).map(|service| service.settings.as_slice());
        let own = own.unwrap_or_default().iter();
        let own: Vec<(&str, &Setting)> = own.map(|(key, s)| (key.as_str(), s)).collect();
        let others = index.settings();
        let others = others
            .iter()
            .filter(|(key, _)| own.iter().all(|(known, _)| known != key));
        for (key, setting) in own.iter().chain(others) {
            let at = format!("targets.{name}.{key}");
            let value = match (configured.remove(*key), setting.kind) {
                (Some(SettingValue::Many(values)), _) => {
                    let filled: Vec<String> = values.iter().map(|v| self.fill(&at, v)).collect();
                    let first = filled.first().map(|first| json!(first));
                    if setting.exclusive.is_some() {
                        target.pool = filled;
                    }
                    first
                }
                (given, SettingType::Group) => {
                    let mut given = match given {
                        Some(SettingValue::Group(given)) => given,
                        _ => SortedMap::new(),
                    };
                    let mut group = Map::new();
                    for (member, setting) in &setting.members {
                        let at = format!("{at}.{member}");
                        let value = self.setting(&at, setting, given.remove(member));
                        group.extend(value.map(|value| (member.clone(), json!(value))));
                    }
                    (!group.is_empty()).then_some(Value::Object(group))
                }
                (given, SettingType::Text | SettingType::Path | SettingType::Choice) => {
                    let given = match given {
                        Some(SettingValue::One(given)) => Some(given),
                        _ => None,
                    };
                    let word = self.setting(&at, setting, given);
                    let is_path = setting.kind == SettingType::Path;
                    let word = word.map(|word| match is_path && !word.starts_with('/') {
                        true => format!("/{word}"),
                        false => word,
                    });
                    word.map(|word| json!(setting.stands_for.get(&word).unwrap_or(&word)))
                }
            };
            // The variables that a report names are those of the reference, whose other settings stay.
            let is_known = self.is_reference
                && target
                    .values
                    .get(*key)
                    .zip(value.as_ref())
                    .is_some_and(is_part);
            if let Some(value) = value.filter(|_| !is_known) {
                let others = target.pool.iter().filter(|_| setting.exclusive.is_some());
                let numbers = others.map(String::as_str);
                for number in value.as_str().into_iter().chain(numbers) {
                    self.check_number(&at, setting, number);
                }
                target.values.insert((*key).to_owned(), value);
            }
        }
    }

    /// Reports a text that is not a phone number in E.164, where the setting has one as its example.
    fn check_number(&mut self, at: &str, setting: &Setting, value: &str) {
        let example = setting.example.as_deref().unwrap_or_default();
        let example = example.trim_matches('"');
        // An address of another kind, such as `client:bob`, and a SID.
        let is_other = |text: &str| {
            let is_sid = text.len() == 34 && text.starts_with(|c: char| c.is_ascii_uppercase());
            is_sid || text.contains(':')
        };
        let is_e164 = |text: &str| {
            let digits = text.strip_prefix('+').unwrap_or_default();
            (2..=15).contains(&digits.len())
                && !digits.starts_with('0')
                && digits.bytes().all(|b| b.is_ascii_digit())
        };
        if is_e164(example) && !is_other(value) && !is_e164(value) {
            let error = ConfigError::Number {
                at: at.to_owned(),
                value: value.to_owned(),
                example: example.to_owned(),
            };
            let mut known = self.problems.iter().map(ToString::to_string);
            if !known.any(|known| known == error.to_string()) {
                self.problems.push(error);
            }
        }
    }

    /// One text: from the variable with precedence, otherwise from the file.
    fn setting(&mut self, at: &str, setting: &Setting, given: Option<String>) -> Option<String> {
        if let Some(value) = setting.variable.as_deref().and_then(environment) {
            return Some(match setting.secret {
                true => self.keep_secret(value),
                false => value,
            });
        }
        let text = given?;
        match setting.secret {
            true => self.secret(at, &text),
            false => Some(self.fill(at, &text)),
        }
    }
}
