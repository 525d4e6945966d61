//! Whether a target can be reached and accepts the credentials, by one or two harmless requests.

use super::targets::is_no_service;
use crate::cli::Failure;
use crate::cli::config::{self, Config};
use conformant_base::http::{Request, Response};
use conformant_engine::probe::Probe;
use conformant_engine::request::{self, BuildError};
use conformant_engine::settings::Target;
use conformant_engine::split_url;
use conformant_net::transport::{BaseUrl, Client, Fault};
use conformant_rulebook::Rulebook;
use conformant_rulebook::scenario::Credentials;
use std::collections::BTreeMap;

/// The targets with the client that a run would use.
pub(in crate::cli) struct Targets<'a> {
    config: &'a Config,
    pub(super) rulebook: &'a Rulebook,
    bases: BTreeMap<String, BaseUrl>,
    pub(super) client: Client,
}

/// How a target answers its probe.
pub(super) enum Access {
    /// It does not answer.
    Unreachable(ProbeError),
    /// It rejects the credentials, or requests without any.
    Refused(Response),
    /// It answers; `is_needed` if it rejects the same request without credentials.
    Granted { answer: Response, is_needed: bool },
}

/// Why a probe failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError {
    #[error(transparent)]
    Credentials(#[from] BuildError),
    #[error(transparent)]
    Silent(#[from] Fault),
}

impl<'a> Targets<'a> {
    pub(in crate::cli) fn new(config: &'a Config, rulebook: &'a Rulebook) -> Result<Self, Failure> {
        let mut bases = BTreeMap::new();
        for (service, target) in &config.settings.targets {
            let base = BaseUrl::parse(split_url(&target.url).0);
            let base = base.map_err(|e| Failure::Usage(format!("targets.{service}.url: {e}")))?;
            bases.insert(service.clone(), base);
        }
        Ok(Self {
            config,
            rulebook,
            client: config.client(&bases),
            bases,
        })
    }

    /// Each selected target that cannot be judged, because it is unreachable, rejects the credentials or is at another
    /// address. An empty selection is all of them.
    pub(in crate::cli) fn headlines(&self, selected: &[String]) -> Vec<String> {
        let services = self.config.settings.targets.keys();
        services
            .filter(|service| selected.is_empty() || selected.contains(service))
            .filter_map(|service| {
                let access = self.access(service);
                let closed = headline(service, self.target(service), &access);
                let closed = closed.or_else(|| self.elsewhere(service, &access));
                closed.or_else(|| self.unserved(service, &access))
            })
            .collect()
    }

    /// The status which shows, also at a second request, that the service serves no request now.
    fn unserved(&self, service: &str, access: &Access) -> Option<String> {
        let failure = |access: &Access| match access {
            Access::Granted { answer, .. } => Some(answer.status).filter(|s| is_no_service(*s)),
            Access::Unreachable(_) | Access::Refused(_) => None,
        };
        failure(access)?;
        let (url, path) = (&self.target(service).url, self.path(service));
        failure(&self.access(service)).map(|status| {
            format!("{service} at {url} serves no request: GET {path} answered {status}")
        })
    }

    /// The answer which shows that the address leads elsewhere, if no documented list is there.
    fn elsewhere(&self, service: &str, access: &Access) -> Option<String> {
        let Access::Granted { answer, .. } = access else {
            return None;
        };
        let why = self.wrong_address(service, answer)?;
        let target = self.target(service);
        let operations = self.rulebook.services.get(service)?.operations.values();
        let mut lists = operations.filter(|o| o.method == "GET" && !o.path.contains('{'));
        let is_there = lists.any(|operation| {
            let asked = Request::new("GET", self.below(service, &operation.path));
            let answer = self.send(service, asked, Credentials::Default);
            answer.is_ok_and(|answer| self.wrong_address(service, &answer).is_none())
        });
        (!is_there).then(|| {
            format!(
                "the address of {service} leads elsewhere: {}, where GET {} answered {} {why}; correct targets.{service}.url{}",
                target.url,
                self.path(service),
                answer.status,
                config::path_for(&self.config.settings.index, service, &target.url)
            )
        })
    }

    pub(super) fn target(&self, service: &str) -> &Target {
        &self.config.settings.targets[service]
    }

    pub(super) fn is_tls(&self, service: &str) -> bool {
        self.bases[service].origin().is_tls()
    }

    /// Path and query of the probe, below the origin.
    pub(super) fn path(&self, service: &str) -> String {
        self.below(service, &probe(self.rulebook, service))
    }

    /// A path of a service, below the origin: the address of the service may have a path of its own.
    pub(super) fn below(&self, service: &str, path: &str) -> String {
        format!("{}{path}", split_url(&self.target(service).url).1)
    }

    /// How the answer to the probe alone shows that the address leads to another server or path.
    pub(super) fn wrong_address(&self, service: &str, answer: &Response) -> Option<String> {
        let probe = Probe::of(self.rulebook, service)?;
        probe
            .wrong_address(answer)
            .filter(|_| !probe.is_of_an_absent_resource(answer))
    }

    /// Sends a request with or without credentials.
    pub(super) fn send(
        &self,
        service: &str,
        mut asked: Request,
        credentials: Credentials,
    ) -> Result<Response, ProbeError> {
        request::authorize(self.target(service), credentials, &mut asked)?;
        let limit = self.client.limits().timeout;
        Ok(self.client.send(&self.bases[service], &asked, limit)?)
    }

    pub(super) fn access(&self, service: &str) -> Access {
        let ask = |credentials| {
            let asked = Request::new("GET", self.path(service));
            self.send(service, asked, credentials)
        };
        let answer = match ask(Credentials::Default) {
            Ok(answer) => answer,
            Err(error) => return Access::Unreachable(error),
        };
        let without = || ask(Credentials::None).ok().map(|answer| answer.status);
        if !self.target(service).has_credentials() {
            return match answer.status {
                401 | 403 => Access::Refused(answer),
                _ => Access::Granted {
                    answer,
                    is_needed: false,
                },
            };
        }
        match (answer.status, without()) {
            // The credentials were recognized; what they may not read does not matter here.
            (403, Some(401)) => Access::Granted {
                answer,
                is_needed: true,
            },
            (401 | 403, _) => Access::Refused(answer),
            (_, without) => Access::Granted {
                answer,
                is_needed: matches!(without, Some(401 | 403)),
            },
        }
    }
}

/// What makes judging a target impossible.
pub(super) fn headline(service: &str, target: &Target, access: &Access) -> Option<String> {
    let url = &target.url;
    match access {
        Access::Unreachable(error) => {
            Some(format!("{service} cannot be reached at {url}: {error}"))
        }
        Access::Refused(answer) if target.has_credentials() => Some(format!(
            "{service} at {url} rejects the credentials: status {}",
            answer.status
        )),
        Access::Refused(answer) => Some(format!(
            "{service} at {url} needs credentials, and none are configured: status {}",
            answer.status
        )),
        Access::Granted { .. } => None,
    }
}

/// Path and query of a request that changes nothing.
fn probe(rulebook: &Rulebook, service: &str) -> String {
    Probe::of(rulebook, service).map_or_else(|| "/".to_owned(), |probe| probe.path)
}
