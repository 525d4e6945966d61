//! Targets: live services, or the reference.

use super::error::Error;
use conformant_base::clock;
use conformant_base::redact::{Redactor, is_secret_header};
use conformant_engine::probe::Probe;
use conformant_engine::sessions::{Live, LiveOptions, Offline};
use conformant_engine::{Hook, Selection, Settings, SharedSessions};
use conformant_net::server;
use conformant_net::transport::{BaseUrl, Limits};
use conformant_reference::{Fault, SERVICES, Variant};
use conformant_rulebook::service::{APPLICATION, ServiceIndex};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The subject of a run.
///
/// Either live services, or the [`Reference`] in this process:
///
/// ```
/// use conformant::{Reference, Service, Target};
/// let own = Target::of([
///     Service::at("chat", "http://127.0.0.1:4010/chat").basic("key", "secret"),
///     Service::at("flow", "http://127.0.0.1:4010/flow").basic("key", "secret"),
/// ])?;
/// let own = own.hooks("http://127.0.0.1:4010/hooks")?;
/// let reference = Target::from(Reference::new());
/// # Ok::<(), conformant::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Target(TargetKind);

#[derive(Clone, Debug)]
enum TargetKind {
    Reference(Reference),
    Live {
        settings: Box<Settings>,
        secrets: Vec<String>,
    },
}

/// One service under test. It has no default settings, in particular none of the reference.
#[derive(Clone, Debug)]
pub struct Service {
    name: String,
    target: conformant_engine::Target,
    secrets: Vec<String>,
    /// Unknown keys.
    unknown: Vec<String>,
}

impl Service {
    /// The service of that name (`auth`, `chat`, `media`, `flow`) at a base address; documented paths are appended.
    pub fn at(name: &str, url: &str) -> Self {
        Self {
            name: name.to_owned(),
            target: conformant_engine::Target::foreign(
                ServiceIndex::embedded(),
                name,
                url.trim_end_matches('/'),
            ),
            secrets: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// Sets HTTP Basic credentials (D2 and D3, Authentication): API key and secret. Findings do not contain the secret.
    #[must_use]
    pub fn basic(mut self, key: &str, secret: &str) -> Self {
        let variable = format!("${{CONFORMANT_{}_PASSWORD}}", self.name.to_uppercase());
        self.target.basic = Some((key.to_owned(), secret.to_owned()));
        self.shell(|shell| shell.basic = Some((key.to_owned(), variable)));
        self.secrets.push(secret.to_owned());
        self
    }

    /// Adds a header field to each request, such as the API key of `auth` (D1, `X-Auth-API-Key`). Findings do not contain
    /// values of credential fields.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let field = (name.to_owned(), value.to_owned());
        if is_secret_header(name) {
            self.secrets.push(value.to_owned());
        }
        self.target.headers.push(field.clone());
        self.shell(|shell| shell.headers.push(field));
        self
    }

    /// Sends bodies as JSON if both JSON and forms are allowed.
    #[must_use]
    pub fn json_bodies(mut self) -> Self {
        self.target.json_bodies = true;
        self
    }

    /// Sets another key of `targets` in `conformant.yaml`: `flow_sid`, `disposable_flow_sid`, `to` (once for each phone
    /// number), `from`, `message_service_sid`, `user_status_path`, `format` (`json` or `xml`). [`Target::of`] reports
    /// unknown keys.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        let index = ServiceIndex::embedded();
        let mut settings = index.settings().into_iter();
        match settings.find(|(name, setting)| *name == key && setting.members.is_empty()) {
            Some((_, setting)) => {
                let is_next = setting.exclusive.is_some() && !self.target.pool.is_empty();
                if setting.exclusive.is_some() {
                    self.target.pool.push(value.to_owned());
                }
                if !is_next {
                    self.target.values.insert(key.to_owned(), json!(value));
                }
            }
            None => self.unknown.push(key.to_owned()),
        }
        self
    }

    /// Sets the application of users who register at `auth` (D1): id, name, scheme of its QR codes, and production API
    /// key, which findings do not contain.
    #[must_use]
    pub fn application(mut self, id: &str, name: &str, scheme: &str, api_key: &str) -> Self {
        let known = json!({"id": id, "name": name, "scheme": scheme, "api_key": api_key});
        self.target.values.insert(APPLICATION.to_owned(), known);
        self.secrets.push(api_key.to_owned());
        self
    }

    fn shell(&mut self, change: impl FnOnce(&mut conformant_judge::Shell)) {
        change(Arc::make_mut(&mut self.target.shell));
    }
}

impl Target {
    /// A target of live services. They keep state between runs, so that each run uses new names.
    ///
    /// # Errors
    /// [`Error::Unknown`] for an unknown service or key, [`Error::Unusable`] for an invalid address or without any
    /// service.
    pub fn of(services: impl IntoIterator<Item = Service>) -> Result<Self, Error> {
        let mut settings = Box::<Settings>::default();
        let mut secrets = Vec::new();
        for service in services {
            let name = service.name;
            if !settings.index.is_target(&name) {
                let known = settings.index.targets();
                return Err(Error::unknown("service", &name, &known, "operations"));
            }
            if let Some(key) = service.unknown.first() {
                let known = settings.index.settings();
                let known: Vec<&str> = known.into_iter().map(|(name, _)| name).collect();
                return Err(Error::unknown("key", key, &known, "keys"));
            }
            address(&service.target.url)?;
            secrets.extend(service.secrets);
            settings.targets.insert(name, service.target);
        }
        if settings.targets.is_empty() {
            return Err(Error::Unusable {
                what: "a target".to_owned(),
                why: "it has no service; add one with Service::at".to_owned(),
            });
        }
        Ok(Self(TargetKind::Live { settings, secrets }))
    }

    /// Sets the URL of the hooks, which simulate people and devices: every hook is `POST URL/NAME` with a JSON body and
    /// responds with an object. Without hooks, rules that need them do not apply. The reference has its own.
    ///
    /// # Errors
    /// [`Error::Unusable`] for an invalid address.
    pub fn hooks(mut self, url: &str) -> Result<Self, Error> {
        address(url)?;
        if let TargetKind::Live { settings, .. } = &mut self.0 {
            settings.hooks = Hook::control_plane(&settings.index, url, None);
        }
        Ok(self)
    }

    /// The scenarios of its services, and of events.
    pub(super) fn selection(&self, filters: &[String]) -> Selection {
        let services = match &self.0 {
            TargetKind::Reference(_) => Vec::new(),
            TargetKind::Live { settings, .. } => {
                let names = settings.targets.keys().cloned();
                let feeds = settings.feeds();
                names.chain(feeds.into_iter().map(str::to_owned)).collect()
            }
        };
        Selection {
            services,
            filters: filters.to_vec(),
            ..Selection::default()
        }
    }

    /// A live target keeps the names of earlier runs; the reference starts empty.
    pub(super) fn seed(&self, given: Option<u64>) -> u64 {
        given.unwrap_or_else(|| match &self.0 {
            TargetKind::Reference(reference) => reference.seed,
            TargetKind::Live { .. } => u64::from(rand::random::<u32>()),
        })
    }

    /// Default number of scenarios in parallel.
    pub(super) fn jobs(&self) -> usize {
        conformant_engine::jobs_default(matches!(self.0, TargetKind::Reference(_)))
    }

    /// Redacts secrets from output.
    pub(super) fn redactor(&self) -> Redactor {
        match &self.0 {
            TargetKind::Reference(_) => Redactor::new(Vec::<String>::new()),
            TargetKind::Live { secrets, .. } => Redactor::new(secrets),
        }
    }

    pub(super) fn sessions(
        &self,
        rulebook: &conformant_rulebook::Rulebook,
        (seed, jobs): (u64, usize),
        longest: Duration,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<SharedSessions, Error> {
        match &self.0 {
            TargetKind::Reference(reference) => {
                let (faults, variants) = (reference.faults.clone(), reference.variants.clone());
                let targets = conformant_engine::Target::all_of_reference();
                Ok(Arc::new(Offline::in_process(
                    seed, faults, variants, targets,
                )))
            }
            TargetKind::Live { settings, .. } => {
                let manner = LiveOptions {
                    limits: Limits {
                        connect: CONNECT_MAX,
                        ..Limits::default()
                    },
                    jobs,
                    deadline: clock::monotonic() + longest,
                    notify: Box::new(|_| ()),
                    probes: Probe::of_all(rulebook),
                };
                let live = Live::new((**settings).clone(), manner, interrupted);
                let live = live.map_err(|why| Error::machine("open the target", why))?;
                Ok(Arc::new(live))
            }
        }
    }
}

/// Connection timeout, as in a run of the command line.
const CONNECT_MAX: Duration = Duration::from_secs(3);

impl From<Reference> for Target {
    fn from(reference: Reference) -> Self {
        Self(TargetKind::Reference(reference))
    }
}

fn address(url: &str) -> Result<(), Error> {
    match BaseUrl::parse(url) {
        Ok(_) => Ok(()),
        Err(why) => Err(Error::Unusable {
            what: url.to_owned(),
            why: why.to_string(),
        }),
    }
}

/// The reference implementation of the three documents: stateful, in memory, reproducible by seed.
///
/// As a [`Target`] it runs in this process, without a socket, in virtual time. [`serve`](Self::serve) opens a port,
/// for tests of clients.
///
/// ```
/// use conformant::{Reference, RunOptions, Rulebook, Target, run};
/// let rulebook = Rulebook::embedded()?;
/// let faulty = Target::from(Reference::new().fault("flow/meta-page-size-wrong")?);
/// let run = run(&rulebook, &faulty, &RunOptions::new().filter("flow/read-flows/happy"))?;
/// assert_eq!(run.findings()[0].rule, "flow/read-flows/page-size");
/// # Ok::<(), conformant::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Reference {
    seed: u64,
    faults: BTreeSet<Fault>,
    variants: BTreeSet<Variant>,
}

impl Reference {
    /// The reference without faults, with seed 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the seed of generated values, such as identifiers.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Enables a fault; `conformant list faults` has the ids.
    ///
    /// # Errors
    /// [`Error::Unknown`] with a similar id.
    pub fn fault(mut self, id: &str) -> Result<Self, Error> {
        self.faults.insert(fault(id)?);
        Ok(self)
    }

    /// Enables an allowed variation; `conformant list variants` has the ids.
    ///
    /// # Errors
    /// [`Error::Unknown`] with a similar id.
    pub fn variant(mut self, id: &str) -> Result<Self, Error> {
        self.variants.insert(variant(id)?);
        Ok(self)
    }

    /// Serves it on a free port of this machine until the server is dropped, for tests of clients.
    ///
    /// ```
    /// let server = conformant::Reference::new().serve()?;
    /// let base = server.service("chat"); // http://127.0.0.1:PORT/chat
    /// # assert!(base.starts_with("http://127.0.0.1:") && base.ends_with("/chat"));
    /// # Ok::<(), conformant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Machine`] if no port is available.
    pub fn serve(&self) -> Result<Server, Error> {
        let server = server::Server::start(server::Settings {
            seed: self.seed,
            faults: self.faults.clone(),
            variants: self.variants.clone(),
            ..server::Settings::default()
        });
        let inner = server.map_err(|why| Error::machine("serve the reference", why))?;
        Ok(Server { inner })
    }
}

/// A [`Reference`] on a port; it stops when dropped.
#[derive(Debug)]
pub struct Server {
    inner: server::Server,
}

impl Server {
    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        self.inner.url()
    }

    /// The base address of one service: `URL/chat`. `docs/src/serve.md` lists the credentials.
    pub fn service(&self, name: &str) -> String {
        format!("{}/{name}", self.url())
    }

    /// The control plane, which simulates people and devices: `POST URL/_control/approve_request`.
    pub fn control_plane(&self) -> String {
        format!("{}/_control", self.url())
    }

    /// A target with its credentials, over the network and in real time.
    pub fn target(&self) -> Target {
        let mut settings = Box::<Settings>::default();
        for name in SERVICES {
            let target = conformant_engine::Target::of_reference(name, &self.service(name));
            settings.targets.insert(name.to_owned(), target);
        }
        settings.hooks = Hook::control_plane(&settings.index, &self.control_plane(), None);
        let secrets = Vec::new();
        Target(TargetKind::Live { settings, secrets })
    }
}

/// A fault by its id.
pub(crate) fn fault(id: &str) -> Result<Fault, Error> {
    let known: Vec<&str> = Fault::ALL.iter().map(|f| f.id()).collect();
    Fault::from_id(id).ok_or_else(|| Error::unknown("fault", id, &known, "faults"))
}

/// A variation by its id.
pub(crate) fn variant(id: &str) -> Result<Variant, Error> {
    let known: Vec<&str> = Variant::ALL.iter().map(|v| v.id()).collect();
    Variant::from_id(id).ok_or_else(|| Error::unknown("variant", id, &known, "variants"))
}
