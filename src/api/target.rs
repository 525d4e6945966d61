//! What is judged: services behind addresses, or the reference.

use super::error::Error;
use conformant_base::clock;
use conformant_base::redact::{Redactor, is_secret_header};
use conformant_engine::sessions::{Live, Manner, Offline};
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

/// What is judged.
///
/// Either services behind addresses, or the [`Reference`] in this process:
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
pub struct Target(Way);

#[derive(Clone, Debug)]
enum Way {
    Reference(Reference),
    Live {
        settings: Box<Settings>,
        secrets: Vec<String>,
    },
}

/// One service under test. What is not said of it is not assumed: no value of the reference ever reaches
/// it.
#[derive(Clone, Debug)]
pub struct Service {
    name: String,
    target: conformant_engine::Target,
    secrets: Vec<String>,
    /// Keys that there are not.
    unknown: Vec<String>,
}

impl Service {
    /// The service of that name (`auth`, `chat`, `media`, `flow`) at a base address, to which documented
    /// paths are appended.
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

    /// HTTP Basic credentials (D2 and D3, Authentication): API key and secret. The secret appears in no
    /// finding.
    #[must_use]
    pub fn basic(mut self, key: &str, secret: &str) -> Self {
        let variable = format!("${{CONFORMANT_{}_PASSWORD}}", self.name.to_uppercase());
        self.target.basic = Some((key.to_owned(), secret.to_owned()));
        self.shell(|shell| shell.basic = Some((key.to_owned(), variable)));
        self.secrets.push(secret.to_owned());
        self
    }

    /// A header field of each request, such as the API key of `auth` (D1, `X-Auth-API-Key`). Values of fields
    /// that carry credentials appear in no finding.
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

    /// Sends bodies as JSON that may be JSON or a form.
    #[must_use]
    pub fn json_bodies(mut self) -> Self {
        self.target.json_bodies = true;
        self
    }

    /// What else is known of it, by the keys of `targets` in `conformant.yaml`: `flow_sid`,
    /// `disposable_flow_sid`, `to` (once for each person), `from`, `message_service_sid`, `user_status_path`,
    /// `format` (`json` or `xml`). A key that there is not is told by [`Target::of`].
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

    /// The application whose users register at `auth` (D1): its id, its name, the scheme of its QR codes and
    /// its production API key, which appears in no finding.
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
    /// Services behind addresses. Their state lives on between runs: names are fresh for each.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a service or a key that there is not, [`Error::Unusable`] for an address that is
    /// none, or no service at all.
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
                why: "it has no service; give one with Service::at".to_owned(),
            });
        }
        Ok(Self(Way::Live { settings, secrets }))
    }

    /// Where people and devices are played: every hook is `POST URL/NAME` with a JSON body and answers an
    /// object. Without hooks rules that need somebody do not apply. The reference plays them itself.
    ///
    /// # Errors
    /// [`Error::Unusable`] for an address that is none.
    pub fn hooks(mut self, url: &str) -> Result<Self, Error> {
        address(url)?;
        if let Way::Live { settings, .. } = &mut self.0 {
            settings.hooks = Hook::control_plane(&settings.index, url, None);
        }
        Ok(self)
    }

    /// The scenarios that are played: those of its services, and of events, which are collected beside any.
    pub(super) fn selection(&self, filters: &[String]) -> Selection {
        let services = match &self.0 {
            Way::Reference(_) => Vec::new(),
            Way::Live { settings, .. } => {
                let names = settings.targets.keys().cloned();
                let feeds = settings.index.feeds();
                names.chain(feeds.into_iter().map(str::to_owned)).collect()
            }
        };
        Selection {
            services,
            filters: filters.to_vec(),
            ..Selection::default()
        }
    }

    /// A living target remembers the names of earlier runs; the reference is new each time.
    pub(super) fn seed(&self, given: Option<u64>) -> u64 {
        given.unwrap_or_else(|| match &self.0 {
            Way::Reference(reference) => reference.seed,
            Way::Live { .. } => u64::from(rand::random::<u32>()),
        })
    }

    /// Stories side by side unless it is said otherwise.
    pub(super) fn jobs(&self) -> usize {
        conformant_engine::jobs_default(matches!(self.0, Way::Reference(_)))
    }

    /// Takes what must appear nowhere out of what is told.
    pub(super) fn redactor(&self) -> Redactor {
        match &self.0 {
            Way::Reference(_) => Redactor::new(Vec::<String>::new()),
            Way::Live { secrets, .. } => Redactor::new(secrets),
        }
    }

    pub(super) fn sessions(
        &self,
        seed: u64,
        jobs: usize,
        longest: Duration,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<SharedSessions, Error> {
        match &self.0 {
            Way::Reference(reference) => {
                let (faults, variants) = (reference.faults.clone(), reference.variants.clone());
                let targets = conformant_engine::Target::all_of_reference();
                Ok(Arc::new(Offline::in_process(
                    seed, faults, variants, targets,
                )))
            }
            Way::Live { settings, .. } => {
                let manner = Manner {
                    limits: Limits {
                        connect: CONNECT_MAX,
                        ..Limits::default()
                    },
                    jobs,
                    deadline: clock::monotonic() + longest,
                    tell: Box::new(|_| ()),
                };
                let live = Live::new((**settings).clone(), manner, interrupted);
                let live = live.map_err(|why| Error::machine("open the target", why))?;
                Ok(Arc::new(live))
            }
        }
    }
}

/// The longest that a connection may take to be made, as in a run of the command line.
const CONNECT_MAX: Duration = Duration::from_secs(3);

impl From<Reference> for Target {
    fn from(reference: Reference) -> Self {
        Self(Way::Reference(reference))
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

/// Our own implementation of the three documents: stateful, in memory, the same for the same seed.
///
/// As a [`Target`] it is asked in this process, without a socket, in virtual time. For tests of clients
/// [`serve`](Self::serve) puts it behind a port.
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
    /// The reference as the documents want it, of seed 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Seeds what it makes up, identifiers above all.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Makes it wrong in one way; `conformant list faults` has the ids.
    ///
    /// # Errors
    /// [`Error::Unknown`] with a near id.
    pub fn fault(mut self, id: &str) -> Result<Self, Error> {
        self.faults.insert(fault(id)?);
        Ok(self)
    }

    /// Makes it different in a way that the documents allow; `conformant list variants` has the ids.
    ///
    /// # Errors
    /// [`Error::Unknown`] with a near id.
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
    /// [`Error::Machine`] where no port can be had.
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

/// A [`Reference`] behind a port; it ends when dropped.
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

    /// The control plane, which does what people and devices do: `POST URL/_control/approve_request`.
    pub fn control_plane(&self) -> String {
        format!("{}/_control", self.url())
    }

    /// It as a target, with its own credentials, over the network and in real time.
    pub fn target(&self) -> Target {
        let mut settings = Box::<Settings>::default();
        for name in SERVICES {
            let target = conformant_engine::Target::of_reference(name, &self.service(name));
            settings.targets.insert(name.to_owned(), target);
        }
        settings.hooks = Hook::control_plane(&settings.index, &self.control_plane(), None);
        let secrets = Vec::new();
        Target(Way::Live { settings, secrets })
    }
}

/// A fault by its id.
pub(crate) fn fault(id: &str) -> Result<Fault, Error> {
    let known: Vec<&str> = Fault::ALL.iter().map(|f| f.id()).collect();
    Fault::from_id(id).ok_or_else(|| Error::unknown("fault", id, &known, "faults"))
}

/// A variant by its id.
pub(crate) fn variant(id: &str) -> Result<Variant, Error> {
    let known: Vec<&str> = Variant::ALL.iter().map(|v| v.id()).collect();
    Variant::from_id(id).ok_or_else(|| Error::unknown("variant", id, &known, "variants"))
}
