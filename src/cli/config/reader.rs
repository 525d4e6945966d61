//! Reads one configuration: fills in variables, collects all problems, and lists the secrets to redact.
//!
//! The values are interpreted by `targets`, `hooks`, `people`, `limits` and `reach`.

use super::environment::environment;
use super::error::ConfigError;
use super::file::{self, ConfigFile};
use super::place::{find, found};
use crate::cli::{Failure, note, output};
use conformant_base::sorted::SortedMap;
use conformant_net::transport::{BaseUrl, Proxies};
use conformant_rulebook::service::{Configured, ServiceIndex};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The configuration file, given or found, and its reader.
pub(super) fn open(
    named: Option<&Path>,
    specs: Option<&Path>,
) -> Result<(ConfigFile, Reader), Failure> {
    if let Some(folder) = specs.filter(|folder| !folder.is_dir()) {
        let folder = folder.display();
        return Err(Failure::Usage(format!(
            "--specs {folder}: expected a folder with a rulebook; `conformant specs export {folder}` writes the embedded one"
        )));
    }
    let index = crate::cli::services_of(specs)?;
    let path = named.map(Path::to_owned).or_else(find);
    let (file, configured) = match &path {
        Some(path) => file::parse(path, &index)?,
        None => Default::default(),
    };
    let folder = path.as_deref().and_then(Path::parent).map(Path::to_owned);
    let reader = Reader {
        index,
        configured,
        problems: Vec::new(),
        warnings: Vec::new(),
        secrets: Vec::new(),
        is_reference: false,
        folder: folder.unwrap_or_default(),
        path,
        proxies: Proxies::default(),
        curl: Vec::new(),
        givers: SortedMap::new(),
        is_dry: false,
        is_of_stored_run: false,
    };
    Ok((file, reader))
}

/// The folder with the documents, if a readable configuration names one.
pub(in crate::cli) fn documents(named: Option<&Path>, specs: Option<&Path>) -> Option<PathBuf> {
    let in_environment = environment("CONFORMANT_CONFIG").map(PathBuf::from);
    let (file, reader) = open(named.or(in_environment.as_deref()), specs).ok()?;
    Some(reader.folder.join(file.documents?))
}

pub(super) struct Reader {
    /// Properties of the services.
    pub(super) index: Arc<ServiceIndex>,
    /// The settings of targets, by service.
    pub(super) configured: SortedMap<String, Configured>,
    /// The flag or variable that gives the address of a target, by service; otherwise the file does.
    pub(super) givers: SortedMap<String, String>,
    pub(super) problems: Vec<ConfigError>,
    pub(super) warnings: Vec<String>,
    pub(super) secrets: Vec<String>,
    /// Whether the control plane belongs to the reference.
    pub(super) is_reference: bool,
    pub(super) folder: PathBuf,
    path: Option<PathBuf>,
    pub(super) proxies: Proxies,
    /// Options of curl for all targets.
    pub(super) curl: Vec<(String, String)>,
    pub(super) is_dry: bool,
    /// Whether nothing is sent, so that credentials need not be known.
    pub(super) is_of_stored_run: bool,
}

impl Reader {
    /// The secrets to redact, or all problems.
    pub(super) fn finish(self) -> Result<Vec<String>, Failure> {
        output::hide(&self.secrets);
        for warning in &self.warnings {
            note(&format!("warning: {warning}"));
        }
        let path = self.path.as_deref().filter(|_| !self.problems.is_empty());
        let text = path.and_then(|path| std::fs::read(path).ok());
        let text = text.unwrap_or_default();
        let problems = self.problems.iter().map(|problem| {
            let key = problem.key();
            match key.and_then(|key| self.place_of(&text, &key)) {
                Some(place) => format!("{problem} ({place})"),
                None => problem.to_string(),
            }
        });
        Failure::unless_empty(&problems.collect::<Vec<_>>())?;
        Ok(self.secrets)
    }

    /// `FILE:LINE` of a key, if the file has it.
    fn place_of(&self, text: &[u8], key: &str) -> Option<String> {
        let shown = found(self.path.as_deref())?.display().to_string();
        // An item of a list is at the line of its list.
        let key = key.split('[').next().unwrap_or_default();
        conformant_rulebook::place_of(&shown, text, key.split('.'))
    }

    /// Fills in variables of the environment. Their names are upper case; the arguments of a hook (`${uuid}`) are
    /// lower case and stay.
    pub(super) fn fill(&mut self, at: &str, text: &str) -> String {
        self.fill_noting(at, text, |_, _| {})
    }

    /// The same for a value that may be a credential: variables are redacted.
    pub(super) fn fill_secret(&mut self, at: &str, text: &str) -> String {
        let (known, problems) = (self.secrets.len(), self.problems.len());
        let filled = self.fill_noting(at, text, |secrets, value| secrets.push(value.to_owned()));
        if let Some(text) = self.unread(problems, text) {
            return text;
        }
        if self.secrets[known..].iter().any(String::is_empty) {
            self.report_empty(at, text);
        }
        filled
    }

    /// The text of a credential whose variables are not set, where nothing is sent. Takes back the problems from number
    /// `problems` on if they say only that.
    pub(super) fn unread(&mut self, problems: usize, text: &str) -> Option<String> {
        let new = &self.problems[problems..];
        let is_unset = |problem: &ConfigError| matches!(problem, ConfigError::Unset { .. });
        let is_unread = self.is_of_stored_run && !new.is_empty() && new.iter().all(is_unset);
        is_unread.then(|| {
            self.problems.truncate(problems);
            text.to_owned()
        })
    }

    pub(super) fn report_empty(&mut self, at: &str, text: &str) {
        let (at, text) = (at.to_owned(), text.to_owned());
        self.problems.push(ConfigError::Empty { at, text });
    }

    fn report_unset(&mut self, at: &str, name: &str) {
        let (at, name) = (at.to_owned(), name.to_owned());
        self.problems.push(ConfigError::Unset { at, name });
    }

    fn report_unclosed(&mut self, at: &str, name: &str) {
        let (at, name) = (at.to_owned(), name.to_owned());
        self.problems.push(ConfigError::Unclosed { at, name });
    }

    pub(super) fn secret(&mut self, at: &str, text: &str) -> Option<String> {
        let named = text.strip_prefix("${").and_then(|t| t.strip_suffix('}'));
        if let Some(name) = unclosed(text) {
            self.report_unclosed(at, name);
            return None;
        }
        let Some(name) = named else {
            // It stays out of all output.
            self.secrets.push(text.to_owned());
            self.problems.push(secret_in_file(at));
            return None;
        };
        let value = environment(name);
        match value.as_deref() {
            None if self.is_of_stored_run => return Some(text.to_owned()),
            None => self.report_unset(at, name),
            Some("") => self.report_empty(at, text),
            Some(_) => {}
        }
        value.map(|value| self.keep_secret(value))
    }

    /// Warns of a variable that is written as in a shell, without braces.
    pub(super) fn warn_of_missing_braces(&mut self, at: &str, text: &str) {
        if let Some(name) = text.strip_prefix('$').filter(|name| is_name(name)) {
            self.warnings.push(format!(
                "{at}: `{text}` is used as it is written; for the value of the variable write `${{{name}}}`"
            ));
        }
    }

    /// Warns of a credential that is written in the file itself.
    pub(super) fn warn_of_secret(&mut self, at: &str, text: &str) {
        if !text.contains("${") {
            let warning = secret_in_file(at).to_string();
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }

    pub(super) fn keep_secret(&mut self, value: String) -> String {
        self.secrets.push(value.clone());
        value
    }

    pub(super) fn base_url(&mut self, at: &str, url: &str) {
        if let Err(source) = BaseUrl::parse(url) {
            self.problems.push(ConfigError::Url {
                at: at.to_owned(),
                url: url.to_owned(),
                source,
            });
        }
    }

    fn fill_noting(&mut self, at: &str, text: &str, note: fn(&mut Vec<String>, &str)) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let Some(end) = rest[start..].find('}').map(|e| start + e) else {
                if let Some(name) = unclosed(&rest[start..]) {
                    self.report_unclosed(at, name);
                }
                break;
            };
            let name = &rest[start + 2..end];
            filled.push_str(&rest[..start]);
            if name.chars().any(|c| c.is_ascii_lowercase()) {
                filled.push_str(&rest[start..=end]);
            } else if let Some(value) = environment(name) {
                note(&mut self.secrets, &value);
                filled.push_str(&value);
            } else {
                self.report_unset(at, name);
            }
            rest = &rest[end + 1..];
        }
        filled.push_str(rest);
        filled
    }
}

/// Whether a text is the name of a variable as configurations write them.
fn is_name(text: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    text.starts_with(|c: char| c.is_ascii_uppercase()) && text.bytes().all(is_letter)
}

/// The variable at the start of a text that lacks its closing brace: `${NAME`.
fn unclosed(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?;
    let is_end = |c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let name = name.split(is_end).next()?;
    (is_name(name) && !text.contains('}')).then_some(name)
}

fn secret_in_file(at: &str) -> ConfigError {
    let variable = variable_for(at);
    let at = at.to_owned();
    ConfigError::Secret { at, variable }
}

/// A name for the variable of a secret: `targets.flow.password` -> `FLOW_PASSWORD`.
fn variable_for(at: &str) -> String {
    let parts: Vec<&str> = at.split('.').collect();
    let last = parts.last().copied().unwrap_or_default();
    let owner = parts.get(1).copied().unwrap_or_default();
    let owner = &match parts.first() {
        Some(&"accounts") => format!("second_{owner}"),
        _ => owner.to_owned(),
    };
    let last = last.trim_start_matches("X-");
    let last = if last.eq_ignore_ascii_case("authorization") {
        "TOKEN"
    } else {
        last
    };
    let name = match owner.is_empty() {
        true => last.to_owned(),
        false => format!("{owner}_{last}"),
    };
    let name = name.to_uppercase().replace('-', "_");
    // `X-Auth-API-Key` of `auth` names the service already.
    let twice = format!("{0}_{0}_", owner.to_uppercase());
    match name.strip_prefix(&twice) {
        Some(rest) => format!("{}_{rest}", owner.to_uppercase()),
        None => name,
    }
}
