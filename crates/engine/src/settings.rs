//! What a run is told: targets, credentials, hooks, limits. Plain values; `cli` reads them from
//! flags, environment and file.

use super::bearer::Bearer;
use super::kept::Keeper;
use conformant_judge::Shell;
use conformant_judge::prove::Mode;
use conformant_net::transport::{BaseUrl, Client, ConnectSettings, Limits};
use conformant_reference::{SERVICES, TargetSettings};
use conformant_rulebook::service::{Exclusive, ServiceIndex};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Everything about the targets of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What is known of the services.
    pub index: Arc<ServiceIndex>,
    /// By service. A service that is missing is not targeted.
    pub targets: BTreeMap<String, Target>,
    /// Hooks by name.
    pub hooks: BTreeMap<String, Hook>,
    /// Address the callback listener binds; `127.0.0.1:0` by default.
    pub listen: Option<String>,
    /// URL under which the target reaches the listener, where it differs.
    pub public_url: Option<String>,
    /// Certificates and proxies on the way.
    pub reach: Reach,
    /// The people that scenarios speak of.
    pub people: People,
    /// How long callbacks are waited for: how soon they come is not stated.
    pub callback_max: Duration,
    /// Other runs may use the targets at the same time.
    pub is_shared: bool,
    /// How often a scenario with requests at the same time is run until it has a finding.
    pub rounds: usize,
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
            rounds: ROUNDS_LIVE,
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
}

/// The people that scenarios speak of, as `${target.people.KEY}`. The default ones are nobody: their
/// numbers and their domain are reserved for fiction.
#[derive(Clone, Debug)]
pub struct People {
    /// Calling code of their country.
    pub country_code: String,
    /// Calling code of another country, where the same number is somebody else's.
    pub other_country_code: String,
    /// National number of the first person's phone.
    pub cellphone: String,
    /// National number of the second person's phone.
    pub second_cellphone: String,
    /// National number of a person who has the app before being registered.
    pub third_cellphone: String,
    /// National number of a person who moves to another country and back.
    pub fourth_cellphone: String,
    /// National number of a person who scans codes and gives no e-mail address; the first one's but for the last digit.
    pub fifth_cellphone: String,
    /// National number of a person who scans a code before giving an e-mail address; the first one's but for the first digit.
    pub sixth_cellphone: String,
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
            email_domain: text("example.com"),
        }
    }
}

impl People {
    /// What scenarios read; besides what is configured the same numbers in other spellings.
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
            "fourth_cellphone": self.fourth_cellphone,
            "fifth_cellphone": self.fifth_cellphone,
            "sixth_cellphone": self.sixth_cellphone,
            "email_domain": self.email_domain,
        })
    }
}

/// How targets are reached.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// Every address that nothing else is said of, hooks among them.
    pub otherwise: Arc<ConnectSettings>,
    /// By service, where a target has certificates of its own.
    pub ways: BTreeMap<String, Arc<ConnectSettings>>,
}

impl Reach {
    /// A client that reaches each service's address in its way.
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
    /// The same base as the target's own links show it, where that differs.
    pub public_url: Option<String>,
    /// Further origins at which its content lies: redirects and links to content may lead there, and
    /// nobody shows credentials.
    pub content_origins: Vec<String>,
    /// User name and password of HTTP Basic credentials.
    pub basic: Option<(String, String)>,
    /// Account SID and auth token, the second way in (D2 and D3, Authentication).
    pub account: Option<(String, String)>,
    /// A command that prints a bearer token, in place of Basic credentials.
    pub bearer: Option<Arc<Bearer>>,
    /// How a person's shell spells what is configured.
    pub shell: Arc<Shell>,
    /// Further header fields of each request; for auth they carry the API key.
    pub headers: Vec<(String, String)>,
    /// True: bodies that may be JSON or a form are sent as JSON.
    pub json_bodies: bool,
    /// Values for `${target.SERVICE.KEY}`.
    pub values: Map<String, Value>,
    /// Values of the exclusive setting; each is in use by one scenario at a time.
    pub pool: Vec<String>,
}

impl Target {
    /// A target of which nothing is known but where it is. What is not configured is not sent.
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

    /// Whether anything of it says who asks.
    pub fn has_credentials(&self) -> bool {
        self.basic.is_some() || self.bearer.is_some() || !self.headers.is_empty()
    }

    /// The reference as a target, so that it can be judged without any configuration. None of these
    /// values is a secret, and none of them goes to any other target.
    pub fn of_reference(service: &str, url: &str) -> Self {
        let known = TargetSettings::of(service);
        Self {
            url: url.to_owned(),
            shell: Arc::new(Shell {
                basic: known.basic.clone(),
                account: known.account.clone(),
                headers: known.headers.clone(),
                ..Shell::default()
            }),
            values: known.values,
            headers: known.headers,
            basic: known.basic,
            account: known.account,
            ..Self::default()
        }
    }

    /// The reference's targets by service, without URLs: where it runs is the session's business.
    pub fn all_of_reference() -> BTreeMap<String, Self> {
        SERVICES
            .iter()
            .map(|service| ((*service).to_owned(), Self::of_reference(service, "")))
            .collect()
    }
}

/// A hook as the adopter supplies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// How it is carried out.
    pub way: HookWay,
    /// Where in its answer each part of the result stands, as a JSON Pointer; empty: the answer is
    /// the result.
    pub result: BTreeMap<String, String>,
}

impl Hook {
    /// A hook for every name at one base URL: `POST URL/NAME`, with the token where there is one.
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
            let way = HookWay::Http {
                method: "POST".into(),
                url: format!("{base}/{}", hook.name),
                headers: headers.clone(),
                body: None,
            };
            let result = BTreeMap::new();
            (hook.name.clone(), Self { way, result })
        };
        index.hooks().map(over_http).collect()
    }
}

/// How a hook is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookWay {
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
        /// Body; left out: the arguments as JSON.
        body: Option<String>,
    },
}

/// How a run is carried out.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seeds names, order and the reference.
    pub seed: u64,
    /// Scenarios side by side.
    pub jobs: usize,
    /// Whether the plan's order is shuffled by the seed.
    pub shuffle: bool,
    /// The longest the whole run may take.
    pub run_max: Duration,
    /// How far the run proves what its green is worth.
    pub prove: Mode,
    /// Where evidence is kept.
    pub keeper: Option<Arc<Keeper>>,
}
