//! Connection settings of targets in the configuration: certificates, proxies, and commands that print tokens.
//!
//! Reads files and parses values, but makes no connection.

use super::environment::environment;
use super::error::ConfigError;
use super::file::ConfigFile;
use super::reader::Reader;
use conformant_engine::settings::Reach;
use conformant_net::transport::{ConnectSettings, Pem, Proxies, Proxy};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Certificates, as files in PEM; paths are relative to the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TlsEntry {
    /// Authorities that are trusted in addition to those of the system (or of `SSL_CERT_FILE`).
    ca: Option<PathBuf>,
    /// Client certificate, for targets that require one.
    client_certificate: Option<PathBuf>,
    /// Its key.
    client_key: Option<PathBuf>,
}

/// A source of credentials that are in no file and no variable.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CredentialsEntry {
    /// A command with its arguments that prints a bearer token, alone or as JSON (`access_token`, `expires_in`). It
    /// runs again when the token expires or is rejected with 401.
    pub(super) command: Vec<String>,
}

/// An invalid connection setting; completes "failed to use `tls`: …".
#[derive(Debug, thiserror::Error)]
pub(super) enum ReachError {
    #[error("tls.{key}: {path}: {source}", path = .path.display())]
    File {
        key: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("tls: client_certificate and client_key belong together")]
    Half,
    #[error("tls: {0}")]
    Trust(#[from] conformant_net::transport::TrustError),
    #[error("{0}: {1}")]
    Proxy(String, conformant_net::transport::ProxyError),
}

impl TlsEntry {
    /// The connection settings for these certificates and proxies.
    pub(super) fn way(
        &self,
        folder: &Path,
        proxies: &Proxies,
    ) -> Result<Arc<ConnectSettings>, ReachError> {
        let read = |key, path: &Option<PathBuf>| {
            let path = path.as_ref().map(|path| folder.join(path));
            path.map(|path| {
                std::fs::read(&path).map_err(|source| ReachError::File { key, path, source })
            })
            .transpose()
        };
        let ca = read("ca", &self.ca)?;
        let certificate = read("client_certificate", &self.client_certificate)?;
        let key = read("client_key", &self.client_key)?;
        let client = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(ReachError::Half),
        };
        Ok(Arc::new(ConnectSettings::new(
            &Pem { ca, client },
            proxies.clone(),
        )?))
    }

    /// The same as options of curl.
    pub(super) fn curl(&self, folder: &Path) -> Vec<(String, String)> {
        [
            ("--cacert", &self.ca),
            ("--cert", &self.client_certificate),
            ("--key", &self.client_key),
        ]
        .into_iter()
        .filter_map(|(option, path)| {
            let path = folder.join(path.as_ref()?);
            Some((option.to_owned(), path.display().to_string()))
        })
        .collect()
    }
}

impl Reader {
    /// Certificates and proxies, as far as they are valid.
    pub(super) fn reach(&mut self, file: &ConfigFile) -> Reach {
        if let Some(proxy) = &file.proxy {
            let filled = self.fill_secret("proxy", proxy);
            if let Ok(url) = url::Url::parse(&filled)
                && let Some(password) = url.password()
            {
                self.secrets.push(password.to_owned());
                self.warn_of_secret("proxy", proxy);
            }
            match proxies(&filled, &environment) {
                Ok(proxies) => self.proxies = proxies,
                Err(why) => self.problems.push(why.into()),
            }
            if proxy != "environment" {
                self.curl.push(("-x".to_owned(), proxy.clone()));
            }
        }
        let mut reach = Reach::default();
        let common = file.tls.clone().unwrap_or_default();
        match common.way(&self.folder, &self.proxies) {
            Ok(way) => reach.otherwise = way,
            Err(why) => self.problems.push(why.into()),
        }
        for (service, entry) in &file.targets {
            let Some(tls) = &entry.tls else { continue };
            match tls.way(&self.folder, &self.proxies) {
                Ok(way) => drop(reach.ways.insert(service.clone(), way)),
                Err(source) => {
                    let service = service.clone();
                    self.problems.push(ConfigError::ReachOf { service, source });
                }
            }
        }
        self.curl.extend(common.curl(&self.folder));
        reach
    }
}

/// The proxies in `proxy:`: one URL for everything, or `environment` for the usual variables.
fn proxies(
    proxy: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Proxies, ReachError> {
    let parse = |from: &str, text: &str| {
        Proxy::parse(text)
            .map(Arc::new)
            .map_err(|e| ReachError::Proxy(from.to_owned(), e))
    };
    if proxy != "environment" {
        let detour = parse("proxy", proxy)?;
        return Ok(Proxies {
            http: Some(Arc::clone(&detour)),
            https: Some(detour),
            except: Vec::new(),
        });
    }
    let variable = |name: &str| {
        let found = environment(&name.to_lowercase()).or_else(|| environment(name));
        found.filter(|value| !value.is_empty())
    };
    let one = |name: &str| {
        let value = variable(name).or_else(|| variable("ALL_PROXY"));
        value.map(|value| parse(name, &value)).transpose()
    };
    let except = variable("NO_PROXY").unwrap_or_default();
    Ok(Proxies {
        http: one("HTTP_PROXY")?,
        https: one("HTTPS_PROXY")?,
        except: except.split(',').map(|e| e.trim().to_owned()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_named_or_comes_from_the_environment() {
        let nothing = |_: &str| None;
        let named = proxies("http://proxy.test:3128", &nothing).unwrap();
        assert!(named.http.is_some() && named.https.is_some());
        assert!(proxies("proxy.test:3128", &nothing).is_err());

        let variables = |name: &str| match name {
            "https_proxy" => Some("http://proxy.test:3128".to_owned()),
            "NO_PROXY" => Some("a.test, b.test".to_owned()),
            _ => None,
        };
        let found = proxies("environment", &variables).unwrap();
        assert!(found.http.is_none() && found.https.is_some());
        assert_eq!(found.except, ["a.test", "b.test"]);
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let entry = TlsEntry {
            ca: Some("ca.pem".into()),
            ..TlsEntry::default()
        };
        let error = entry.way(folder.path(), &Proxies::default()).unwrap_err();
        assert!(error.to_string().contains("ca.pem"), "{error}");
        std::fs::write(folder.path().join("ca.pem"), "nonsense").unwrap();
        let error = entry.way(folder.path(), &Proxies::default()).unwrap_err();
        assert_eq!(error.to_string(), "tls: no certificate in PEM format found");
        let half = TlsEntry {
            client_key: Some("ca.pem".into()),
            ..TlsEntry::default()
        };
        assert!(half.way(folder.path(), &Proxies::default()).is_err());
    }
}
