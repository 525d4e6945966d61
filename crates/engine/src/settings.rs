//! Settings of a run: targets, credentials, hooks and limits.
//!
//! Plain values. The command line reads them from flags, environment and configuration file.

use super::bearer::Bearer;
use super::evidence_file::EvidenceWriter;
use conformant_judge::Shell;
use conformant_judge::prove::Mode;
use conformant_net::transport::{BaseUrl, Client, ConnectSettings, Limits};
use conformant_reference::{SERVICES, TargetSettings};
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::service::{Exclusive, Scheme, ServiceIndex};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Settings for all targets of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Properties of the services.
    pub index: Arc<ServiceIndex>,
    /// By service. A missing service is not targeted.
    pub targets: BTreeMap<String, Target>,
    /// Hooks by name.
    pub hooks: BTreeMap<String, Hook>,
    /// Address the callback listener binds; `127.0.0.1:0` by default.
    pub listen: Option<String>,
    /// URL under which the target reaches the listener, where it differs.
    pub public_url: Option<String>,
    /// Certificates and proxies.
    pub reach: Reach,
    /// The phone numbers and e-mail domain that scenarios use.
    pub people: People,
    /// How long to wait for callbacks. The documents state no limit.
    pub callback_max: Duration,
    /// Other runs may use the targets at the same time.
    pub is_shared: bool,
    /// Whether the run says that it is one of several, which may redirect the callbacks of an application.
    pub is_one_of_several: bool,
    /// How often a scenario with requests at the same time is run until it has a finding.
    pub rounds: usize,
    /// Distinguishes the names of this run from those of other runs with the same seed. Empty without live targets.
    pub names: String,
    /// Whether the caller chose the names, so that an earlier run may have used them.
    pub are_names_given: bool,
}

/// Rounds of a race against a live target: a window between check and write may be missed once.
pub const ROUNDS_LIVE: usize = 3;

impl Default for Settings {
    fn default() -> Self {
        Self {
            index: Arc::clone(ServiceIndex::embedded()),
            targets: BTreeMap::new(),
            hooks: BTreeMap::new(),
            listen: None,
            public_url: None,
            reach: Reach::default(),
            people: People::default(),
            callback_max: Duration::from_secs(30),
            is_shared: true,
            is_one_of_several: false,
            rounds: ROUNDS_LIVE,
            names: String::new(),
            are_names_given: false,
        }
    }
}

/// The exclusive setting of a target.
#[derive(Clone, Copy, Debug)]
pub struct ExclusiveSetting<'a> {
    /// The service.
    pub service: &'a str,
    /// The setting's key.
    pub key: &'a str,
    /// How its values are taken and freed.
    pub how: &'a Exclusive,
}

impl Settings {
    /// The exclusive setting of the targets; the first one where several have one.
    pub fn exclusive(&self) -> Option<ExclusiveSetting<'_>> {
        self.targets.keys().find_map(|service| {
            let (key, how) = self.index.exclusive(service)?;
            Some(ExclusiveSetting { service, key, how })
        })
    }

    /// The services that only send events and belong to the run: a target shares their document, or one of their hooks
    /// is configured.
    pub fn feeds(&self) -> Vec<&str> {
        self.index.feeds_of(
            |service| self.targets.contains_key(service),
            |hook| self.hooks.contains_key(hook),
        )
    }
}

/// The people of scenarios, as `${target.people.KEY}`. The default numbers and domain are reserved for fiction.
#[derive(Clone, Debug)]
pub struct People {
    /// Calling code of their country.
    pub country_code: String,
    /// Calling code of another country, where the same number belongs to another person.
    pub other_country_code: String,
    /// National phone number of the first person.
    pub cellphone: String,
    /// National phone number of the second person.
    pub second_cellphone: String,
    /// Number of a person with the app who is not registered yet.
    pub third_cellphone: String,
    /// Number of a person who moves to another country and back.
    pub fourth_cellphone: String,
    /// Number of a person without e-mail address; differs from the first one in the last digit.
    pub fifth_cellphone: String,
    /// Number of a person who adds an e-mail address later; differs from the first one in the first digit.
    pub sixth_cellphone: String,
    /// Numbers that the target does not know, with `#` for each digit that may be any. None for a target without them.
    pub new_cellphone: Option<String>,
    /// Domain of their e-mail addresses.
    pub email_domain: String,
}

impl Default for People {
    fn default() -> Self {
        let text = str::to_owned;
        Self {
            country_code: text("1"),
            other_country_code: text("44"),
            cellphone: text("201-555-0123"),
            second_cellphone: text("201-555-0145"),
            third_cellphone: text("201-555-0167"),
            fourth_cellphone: text("201-555-0189"),
            fifth_cellphone: text("201-555-0124"),
            sixth_cellphone: text("301-555-0123"),
            new_cellphone: Some(text("202-555-01##")),
            email_domain: text("example.com"),
        }
    }
}

impl People {
    /// The values that scenarios read, with other spellings of the configured numbers.
    pub fn values(&self) -> Value {
        let digits =
            |number: &str| -> String { number.chars().filter(char::is_ascii_digit).collect() };
        let phone = |number: &str| format!("+{}{}", self.country_code, digits(number));
        let groups: Vec<&str> = self
            .cellphone
            .split(|c: char| !c.is_ascii_digit())
            .filter(|group| !group.is_empty())
            .collect();
        json!({
            "country_code": self.country_code,
            "country_number": self.country_code.parse::<u64>().unwrap_or_default(),
            "other_country_number": self.other_country_code.parse::<u64>().unwrap_or_default(),
            "other_country_code": self.other_country_code,
            "cellphone": self.cellphone,
            "cellphone_dashes": groups.join("-"),
            "cellphone_dots": groups.join("."),
            "cellphone_spaces": groups.join(" "),
            "cellphone_digits": digits(&self.cellphone),
            "phone": phone(&self.cellphone),
            "second_cellphone": self.second_cellphone,
            "second_phone": phone(&self.second_cellphone),
            "third_cellphone": self.third_cellphone,
            "third_phone": phone(&self.third_cellphone),
            "fourth_cellphone": self.fourth_cellphone,
            "fourth_phone": phone(&self.fourth_cellphone),
            "fifth_cellphone": self.fifth_cellphone,
            "fifth_phone": phone(&self.fifth_cellphone),
            "sixth_cellphone": self.sixth_cellphone,
            "sixth_phone": phone(&self.sixth_cellphone),
            "new_cellphone": self.new_cellphone,
            "email_domain": self.email_domain,
        })
    }
}

/// Connection settings of the targets.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// All other addresses, including those of hooks.
    pub otherwise: Arc<ConnectSettings>,
    /// By service, for targets with separate certificates.
    pub ways: BTreeMap<String, Arc<ConnectSettings>>,
}

impl Reach {
    /// A client with the connection settings of each service.
    pub fn client(&self, limits: Limits, bases: &BTreeMap<String, BaseUrl>) -> Client {
        let client = Client::new(limits).otherwise(Arc::clone(&self.otherwise));
        self.ways
            .iter()
            .fold(client, |client, (service, way)| match bases.get(service) {
                Some(base) => client.reaching(base.origin(), Arc::clone(way)),
                None => client,
            })
    }
}

/// One service under test.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// Base URL; documented paths are appended.
    pub url: String,
    /// The base URL in the target's own links, if it differs.
    pub public_url: Option<String>,
    /// Further origins of its content. Redirects and links may lead there; requests to them carry no
    /// credentials.
    pub content_origins: Vec<String>,
    /// User name and password of HTTP Basic credentials.
    pub basic: Option<(String, String)>,
    /// Account SID and auth token, accepted alternatively (D2 and D3, Authentication).
    pub account: Option<(String, String)>,
    /// A command that prints a bearer token, in place of Basic credentials.
    pub bearer: Option<Arc<Bearer>>,
    /// The same service with the credentials of a second account.
    pub other_account: Option<Arc<Target>>,
    /// The configured values as shell expressions.
    pub shell: Arc<Shell>,
    /// Further header fields of each request; for auth they carry the API key.
    pub headers: Vec<(String, String)>,
    /// Whether bodies that may be JSON or a form are sent as JSON.
    pub json_bodies: bool,
    /// Operations whose bodies are sent in the other encoding, or explicitly in this one: whether as JSON.
    pub json_operations: BTreeMap<String, bool>,
    /// Values for `${target.SERVICE.KEY}`.
    pub values: Map<String, Value>,
    /// Values of the exclusive setting; each is in use by one scenario at a time.
    pub pool: Vec<String>,
}

impl Target {
    /// A target with a URL and the default settings only.
    pub fn foreign(index: &ServiceIndex, service: &str, url: &str) -> Self {
        let settings = index.get(service).map(|service| &service.settings);
        let defaults = settings.into_iter().flatten().filter_map(|(key, setting)| {
            let default = setting.default.as_ref()?;
            Some((key.clone(), json!(default)))
        });
        let values: Map<String, Value> = defaults.collect();
        Self {
            url: url.to_owned(),
            values,
            ..Self::default()
        }
    }

    /// The value of the configured header field of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.headers.iter();
        let field = fields.find(|(n, _)| n.eq_ignore_ascii_case(name))?;
        Some(&field.1)
    }

    /// Whether credentials or header fields are configured.
    pub fn has_credentials(&self) -> bool {
        self.basic.is_some() || self.bearer.is_some() || !self.headers.is_empty()
    }

    /// The reference as a target, which needs no configuration. Its credentials are not secret, and
    /// are not sent to any other target.
    pub fn of_reference(service: &str, url: &str) -> Self {
        let known = TargetSettings::of(service);
        Self {
            url: url.to_owned(),
            shell: Arc::new(Self::variables_of_reference(service)),
            values: known.values,
            headers: known.headers,
            basic: known.basic,
            account: known.account,
            other_account: Some(Arc::new(Self::of_second_account(service))),
            ..Self::default()
        }
    }

    /// The credentials of the reference's second account.
    fn of_second_account(service: &str) -> Self {
        let known = TargetSettings::of_second_account(service);
        let shell = Shell {
            basic: known.basic.clone(),
            headers: known.headers.clone(),
            ..Shell::default()
        };
        Self {
            shell: Arc::new(shell),
            headers: known.headers,
            basic: known.basic,
            ..Self::default()
        }
    }

    /// The configured values as shell expressions, for a request with these credentials.
    pub fn shell_of(&self, credentials: Credentials) -> Arc<Shell> {
        let other = self.other_account.as_ref();
        let other = other.filter(|_| credentials == Credentials::OtherAccount);
        Arc::clone(other.map_or(&self.shell, |other| &other.shell))
    }

    /// A target without configured credentials: those that its service declares are variables of the environment.
    pub fn unconfigured(index: &ServiceIndex, service: &str, url: &str) -> Self {
        let mut shell = Self::variables_of_reference(service);
        let declared = index.get(service).map(|known| known.auth.as_slice());
        for scheme in declared.unwrap_or_default() {
            match scheme {
                Scheme::Basic => {
                    let pair = ("USERNAME", "PASSWORD");
                    shell.basic = Some((variable(service, pair.0), variable(service, pair.1)));
                }
                Scheme::Header(field) if shell.headers.iter().all(|(name, _)| name != field) => {
                    let value = variable(service, "API_KEY");
                    shell.headers.push((field.clone(), value));
                }
                Scheme::Header(_) => {}
            }
        }
        Self {
            shell: Arc::new(shell),
            ..Self::foreign(index, service, url)
        }
    }

    /// The credentials of a service of the reference as variables of the environment.
    pub fn variables_of_reference(service: &str) -> Shell {
        let known = TargetSettings::of(service);
        let name = |key: &str| variable(service, key);
        let headers = known.headers.into_iter();
        Shell {
            basic: known.basic.map(|_| (name("USERNAME"), name("PASSWORD"))),
            account: known
                .account
                .map(|_| (name("ACCOUNT_SID"), name("AUTH_TOKEN"))),
            headers: headers.map(|(field, _)| (field, name("API_KEY"))).collect(),
            ..Shell::default()
        }
    }

    /// The reference's targets by service, without URLs, which the session adds.
    pub fn all_of_reference() -> BTreeMap<String, Self> {
        SERVICES
            .iter()
            .map(|service| ((*service).to_owned(), Self::of_reference(service, "")))
            .collect()
    }
}

fn variable(service: &str, key: &str) -> String {
    format!("${{CONFORMANT_{}_{key}}}", service.to_uppercase())
}

/// A configured hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The transport.
    pub transport: HookTransport,
    /// JSON Pointers of the parts of the result in the answer. If empty, the answer is the result.
    pub result: BTreeMap<String, String>,
}

impl Hook {
    /// Hooks for all names at one base URL: `POST URL/NAME`, with the token if there is one.
    pub fn control_plane(
        index: &ServiceIndex,
        base: &str,
        token: Option<&str>,
    ) -> BTreeMap<String, Self> {
        let base = base.trim_end_matches('/');
        let header = |token: &str| {
            (
                conformant_net::server::TOKEN_HEADER.to_owned(),
                token.to_owned(),
            )
        };
        let headers: Vec<(String, String)> = token.map(header).into_iter().collect();
        let over_http = |hook: &conformant_rulebook::hooks::Hook| {
            let transport = HookTransport::Http {
                method: "POST".into(),
                url: format!("{base}/{}", hook.name),
                headers: headers.clone(),
                body: None,
            };
            let result = BTreeMap::new();
            (hook.name.clone(), Self { transport, result })
        };
        index.hooks().map(over_http).collect()
    }
}

/// The transport of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookTransport {
    /// A command with arguments; `${NAME}` is filled in, the answer is JSON on standard output.
    Command(Vec<String>),
    /// An HTTP request; `${NAME}` is filled in, the answer is a JSON body.
    Http {
        /// Method.
        method: String,
        /// Absolute URL.
        url: String,
        /// Header fields.
        headers: Vec<(String, String)>,
        /// Body; the arguments as JSON by default.
        body: Option<String>,
    },
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of names, order and the reference.
    pub seed: u64,
    /// Number of concurrent scenarios.
    pub jobs: usize,
    /// Whether the plan's order is shuffled by the seed.
    pub shuffle: bool,
    /// Time limit of the run.
    pub run_max: Duration,
    /// The extent of mutation testing.
    pub prove: Mode,
    /// Stores the evidence, if requested.
    pub evidence_writer: Option<Arc<EvidenceWriter>>,
}
