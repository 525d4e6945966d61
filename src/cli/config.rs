//! Configuration: `conformant.yaml`, then `CONFORMANT_*`, then flags; the last one wins.
//!
//! Secrets come from the environment alone: the file names them as `${NAME}`.

#![expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]

use super::Failure;
use super::args::RunArgs;
use super::reach::{self, CredentialsEntry, TlsEntry};
use crate::engine::bearer::Bearer;
use crate::engine::sessions::hooks_of_reference;
use crate::engine::settings::{Hook, HookWay, People, Reach, Settings, Target};
use crate::rulebook;
use crate::text::{NoSize, Size};
use crate::transport::Detours;
use crate::verdict::SERVICES;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// `conformant.yaml`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfigFile {
    /// Services under test by name: auth, chat, media, flow.
    #[serde(default)]
    targets: BTreeMap<String, TargetEntry>,
    /// What people and devices do, by hook name.
    #[serde(default)]
    hooks: BTreeMap<String, HookEntry>,
    /// The harness's own receiver of callbacks.
    #[serde(default)]
    callbacks: CallbacksEntry,
    /// Limits of a run.
    #[serde(default)]
    limits: LimitsEntry,
    /// The people that scenarios speak of.
    #[serde(default)]
    people: PeopleEntry,
    /// Certificates, where a target has none of its own under its `tls`.
    tls: Option<TlsEntry>,
    /// The proxy on the way to every target and hook but those on this machine: http://HOST:PORT, or `environment` for
    /// what `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say. None unless named.
    proxy: Option<String>,
}

/// One service under test. Texts may hold `${NAME}`, a value from the environment.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TargetEntry {
    /// Base URL; documented paths are appended.
    url: Option<String>,
    /// The same base as the target's own links show it, where that differs: a gateway in front of it.
    public_url: Option<String>,
    /// Further origins at which content of media lies: redirects and links to it are followed there too, without
    /// credentials.
    #[serde(default)]
    content_origins: Vec<String>,
    /// API key, the user name of HTTP Basic credentials.
    username: Option<String>,
    /// API key secret, the password; only as `${NAME}`.
    password: Option<String>,
    /// Account SID, the user name for local testing.
    account_sid: Option<String>,
    /// Auth token of the account; only as `${NAME}`.
    auth_token: Option<String>,
    /// A bearer token, in place of user name and password; only as `${NAME}`.
    bearer: Option<String>,
    /// Where bearer tokens come from, in place of the above.
    credentials: Option<CredentialsEntry>,
    /// Certificates.
    tls: Option<TlsEntry>,
    /// Further header fields of each request.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// How bodies are sent that may be either: form (default) or json.
    body: Option<BodyForm>,
    /// What auth answers in: json (default), xml or both.
    format: Option<FormatChoice>,
    /// The application whose users register (auth).
    application: Option<ApplicationEntry>,
    /// Path of the user-status request (auth); `{AUTH_ID}` stands for the user's id.
    user_status_path: Option<String>,
    /// A flow to run executions of (flow).
    flow_sid: Option<String>,
    /// A flow that may be deleted (flow).
    disposable_flow_sid: Option<String>,
    /// Phone numbers in E.164 of persons, one or a list (flow). Each is in one execution of a shared
    /// flow at a time; with more numbers more executions go on side by side.
    to: Option<Numbers>,
    /// The flow's phone number in E.164 (flow).
    from: Option<String>,
    /// A messaging service to send from (flow, chat).
    message_service_sid: Option<String>,
}

/// One number or several.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Numbers {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

/// How a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum BodyForm {
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `application/json`.
    Json,
}

/// What an answer is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum FormatChoice {
    /// JSON.
    Json,
    /// XML.
    Xml,
    /// Each scenario asks for what it needs.
    Both,
}

/// The application that registers users.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApplicationEntry {
    /// Its identifier.
    id: Option<String>,
    /// Its name, the issuer of its tokens.
    name: Option<String>,
    /// Scheme of its QR strings.
    scheme: Option<String>,
    /// Its production API key; only as `${NAME}`.
    api_key: Option<String>,
}

/// A hook: exactly one of the two.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HookEntry {
    /// A command with its arguments.
    command: Option<Vec<String>>,
    /// An HTTP request.
    http: Option<HttpHookEntry>,
    /// Where in the answer each part of the result stands, as a JSON Pointer: `flow_sid: /data/sid`.
    /// Left out: the answer is the result.
    #[serde(default)]
    result: BTreeMap<String, String>,
}

/// A hook that is an HTTP request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HttpHookEntry {
    /// POST unless said otherwise.
    method: Option<String>,
    /// Absolute URL.
    url: String,
    /// Header fields.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Body; left out: the arguments as JSON.
    body: Option<String>,
}

/// The receiver of callbacks.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallbacksEntry {
    /// Address to bind, `127.0.0.1:0` by default.
    listen: Option<String>,
    /// URL under which the target reaches it.
    public_url: Option<String>,
    /// No other run sets the target's callback addresses meanwhile, default false: then a callback that
    /// does not come is a finding although no hook `lease` keeps other runs away.
    #[serde(default)]
    exclusive: bool,
}

/// The people that scenarios speak of. What is left out comes from ranges that are reserved for
/// fiction: no such telephone and no such mailbox exists.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PeopleEntry {
    /// Calling code of their country, digits alone; default "1".
    country_code: Option<String>,
    /// Calling code of another country, where the same numbers are somebody else's; default "44".
    other_country_code: Option<String>,
    /// National number of the first person's phone, with or without separators; default 201-555-0123.
    cellphone: Option<String>,
    /// That of the second person; default 201-555-0145.
    second_cellphone: Option<String>,
    /// That of a person who has the app before being registered; default 201-555-0167.
    third_cellphone: Option<String>,
    /// That of a person who moves with it to the other country and back; default 201-555-0189.
    fourth_cellphone: Option<String>,
    /// Domain of their e-mail addresses; default example.com.
    email_domain: Option<String>,
}

/// Limits of a run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LimitsEntry {
    /// The longest that a connection may take to be made, default 3s.
    connect: Option<String>,
    /// The longest that one exchange may take, default 10s.
    timeout: Option<String>,
    /// The longest that a callback may take to come, default 30s.
    callback: Option<String>,
    /// The largest body that is read, default 8MiB.
    body: Option<String>,
    /// The longest that the run may take, default 10m.
    run: Option<String>,
    /// Requests per second, such as 50/s; no limit by default.
    rate: Option<String>,
}

/// Everything a run needs to know.
#[derive(Debug)]
pub(super) struct Config {
    /// Targets, hooks and the callback listener; no targets means the reference.
    pub settings: Settings,
    /// The longest that a connection may take to be made.
    pub connect: Duration,
    /// The longest that one exchange may take.
    pub timeout: Duration,
    /// The largest body that is read.
    pub body_bytes_max: usize,
    /// The longest that the run may take.
    pub run_max: Duration,
    /// Requests per second.
    pub rate: Option<u32>,
    /// What must appear in no output.
    pub secrets: Vec<String>,
}

/// Lets `serve` and `--hooks` agree on a token for the control plane.
pub(super) const CONTROL_TOKEN: &str = "CONFORMANT_CONTROL_TOKEN";

/// The longest that a command may take to print a token.
const COMMAND_MAX: Duration = Duration::from_secs(30);

/// A variable of the environment.
pub(super) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Reads file, environment and flags.
pub(super) fn read(args: &RunArgs) -> Result<Config, Failure> {
    let (file, mut reader) = open(args.config.as_deref())?;
    reader.is_dry = args.dry_run;
    let config = reader.resolve(file, args);
    super::output::hide(&reader.secrets);
    if reader.problems.is_empty() {
        Ok(Config {
            secrets: reader.secrets,
            ..config
        })
    } else {
        Err(Failure::Usage(reader.problems.join("\nerror: ")))
    }
}

/// What files can be judged against: the targets as far as that needs no credentials.
#[derive(Debug)]
pub(super) struct Known {
    /// Base URL by service, where one is configured.
    pub targets: BTreeMap<String, String>,
    /// What stands under `auth`: the application, otherwise the reference's, and configured paths.
    pub values: Map<String, Value>,
    /// Nothing about an application is configured.
    pub is_reference: bool,
    /// The longest that one exchange may take.
    pub timeout: Duration,
    /// The largest body that is read.
    pub body_bytes_max: usize,
    /// Certificates and proxies on the way.
    pub reach: Reach,
    /// What must appear in no output.
    pub secrets: Vec<String>,
}

impl Known {
    /// What traffic is judged against: of an application that is not configured nothing is known.
    pub(super) fn of_traffic(&self) -> Map<String, Value> {
        let mut values = self.values.clone();
        if self.is_reference {
            values.remove("application");
        }
        values
    }

    /// A text of the application: `name`, `id`, `scheme`, `api_key`.
    pub(super) fn of_application(&self, key: &str) -> Option<String> {
        let value = self.values.get("application")?.get(key)?;
        Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        )
    }
}

/// Reads of file and environment what files can be judged against.
pub(super) fn known(config: Option<&Path>) -> Result<Known, Failure> {
    let (mut file, mut reader) = open(config)?;
    let reach = reader.reach(&file);
    let mut targets = BTreeMap::new();
    for service in SERVICES {
        let in_file = file.targets.get(service).and_then(|t| t.url.clone());
        let url = environment(&format!("CONFORMANT_{}_URL", service.to_uppercase())).or(in_file);
        if let Some(url) = url {
            targets.insert(
                service.to_owned(),
                reader.fill(&format!("targets.{service}.url"), &url),
            );
        }
    }
    let auth = file.targets.remove("auth").unwrap_or_default();
    let application = reader.application(
        "targets.auth.application",
        auth.application.unwrap_or_default(),
    );
    let is_reference = application.is_empty();
    let mut values = Target::of_reference("auth", "").values;
    if !is_reference {
        values.insert("application".to_owned(), Value::Object(application));
    }
    if let Some(path) = auth.user_status_path {
        values.insert("user_status_path".to_owned(), json!(path));
    }
    let timeout = reader.duration("limits.timeout", file.limits.timeout.as_deref(), 10);
    let body_bytes_max = reader.bytes(file.limits.body.as_deref());
    super::output::hide(&reader.secrets);
    if reader.problems.is_empty() {
        Ok(Known {
            targets,
            values,
            is_reference,
            timeout,
            body_bytes_max,
            reach,
            secrets: reader.secrets,
        })
    } else {
        Err(Failure::Usage(reader.problems.join("\nerror: ")))
    }
}

/// Why a flag names no address of a service.
#[derive(Debug, thiserror::Error)]
pub(super) enum AddressError {
    #[error("{flag} {value}: write SERVICE=URL, such as flow=http://127.0.0.1:4010/flow")]
    Form { flag: String, value: String },
    #[error("{flag} {value}: no service is named {service}; known are {known}, all", known = SERVICES.join(", "))]
    Service {
        flag: String,
        value: String,
        service: String,
    },
}

impl From<AddressError> for Failure {
    fn from(error: AddressError) -> Self {
        Self::Usage(error.to_string())
    }
}

/// What `SERVICE=URL` says: a base address by service; `all` stands for each below one address.
pub(super) fn by_service(flag: &str, value: &str) -> Result<Vec<(String, String)>, AddressError> {
    let Some((service, url)) = value.split_once('=') else {
        return Err(AddressError::Form {
            flag: flag.to_owned(),
            value: value.to_owned(),
        });
    };
    let url = url.trim_end_matches('/');
    if service == "all" {
        let each = |service: &&str| ((*service).to_owned(), format!("{url}/{service}"));
        return Ok(SERVICES.iter().map(each).collect());
    }
    if SERVICES.contains(&service) {
        return Ok(vec![(service.to_owned(), url.to_owned())]);
    }
    Err(AddressError::Service {
        flag: flag.to_owned(),
        value: value.to_owned(),
        service: service.to_owned(),
    })
}

/// Where each target is written: `FILE:LINE` by service; nothing for what flags alone say.
pub(super) fn places(config: Option<&Path>) -> BTreeMap<String, String> {
    let Some(path) = config.map(Path::to_owned).or_else(find) else {
        return BTreeMap::new();
    };
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default();
    let shown = path
        .strip_prefix(here)
        .unwrap_or(&path)
        .display()
        .to_string();
    let mut lines = text
        .lines()
        .enumerate()
        .skip_while(|(_, line)| !line.starts_with("targets:"));
    let first = lines.next().map(|(at, _)| at);
    let own = lines.take_while(|(_, line)| line.starts_with([' ', '#']) || line.trim().is_empty());
    let named = own.filter_map(|(at, line)| {
        let name = line.trim_start().split(':').next()?;
        SERVICES
            .contains(&name)
            .then(|| (name.to_owned(), format!("{shown}:{}", at + 1)))
    });
    let named: BTreeMap<String, String> = named.collect();
    match first {
        // All in one line: `targets: {flow: {…}}`.
        Some(at) if named.is_empty() => SERVICES
            .iter()
            .map(|name| ((*name).to_owned(), format!("{shown}:{}", at + 1)))
            .collect(),
        _ => named,
    }
}

/// The JSON Schema of the file.
pub(super) fn schema() -> Value {
    schemars::schema_for!(ConfigFile).to_value()
}

/// `conformant.yaml` from the current folder upwards to the repository's root.
fn find() -> Option<PathBuf> {
    let mut folder = std::env::current_dir().ok()?;
    loop {
        let file = folder.join("conformant.yaml");
        if file.is_file() {
            return Some(file);
        }
        if folder.join(".git").exists() || !folder.pop() {
            return None;
        }
    }
}

/// The file that is named or found, and who reads it.
fn open(named: Option<&Path>) -> Result<(ConfigFile, Reader), Failure> {
    let path = named.map(Path::to_owned).or_else(find);
    let file = match &path {
        Some(path) => parse(path)?,
        None => ConfigFile::default(),
    };
    let folder = path.as_deref().and_then(Path::parent).map(Path::to_owned);
    let reader = Reader {
        problems: Vec::new(),
        secrets: Vec::new(),
        is_reference: false,
        folder: folder.unwrap_or_default(),
        detours: Detours::default(),
        curl: Vec::new(),
        is_dry: false,
    };
    Ok((file, reader))
}

fn parse(path: &Path) -> Result<ConfigFile, Failure> {
    let shown = path.display().to_string();
    let bytes = super::read_file(path)?;
    rulebook::parse_file(&shown, &bytes).map_err(Failure::Problems)
}

/// A configured value, and the text that stands for it: `${NAME}` where it comes from the environment.
struct Said {
    value: String,
    text: String,
}

struct Reader {
    problems: Vec<String>,
    secrets: Vec<String>,
    /// The control plane says that it belongs to the reference.
    is_reference: bool,
    /// Where the file is.
    folder: PathBuf,
    /// What `proxy` says.
    detours: Detours,
    /// How curl is told the way that leads everywhere.
    curl: Vec<(String, String)>,
    /// Nothing is asked of anybody.
    is_dry: bool,
}

impl Reader {
    /// Certificates and proxies, as far as they are of use.
    fn reach(&mut self, file: &ConfigFile) -> Reach {
        if let Some(proxy) = &file.proxy {
            let filled = self.fill_secret("proxy", proxy);
            match reach::detours(&filled, &environment) {
                Ok(detours) => self.detours = detours,
                Err(why) => self.problems.push(why.to_string()),
            }
            if proxy != "environment" {
                self.curl.push(("-x".to_owned(), proxy.clone()));
            }
        }
        let mut reach = Reach::default();
        let common = file.tls.clone().unwrap_or_default();
        match common.way(&self.folder, &self.detours) {
            Ok(way) => reach.otherwise = way,
            Err(why) => self.problems.push(why.to_string()),
        }
        for (service, entry) in &file.targets {
            let Some(tls) = &entry.tls else { continue };
            match tls.way(&self.folder, &self.detours) {
                Ok(way) => drop(reach.ways.insert(service.clone(), way)),
                Err(why) => self.problems.push(format!("targets.{service}.{why}")),
            }
        }
        self.curl.extend(common.curl(&self.folder));
        reach
    }

    fn resolve(&mut self, file: ConfigFile, args: &RunArgs) -> Config {
        let reach = self.reach(&file);
        let mut entries = file.targets;
        for name in entries.keys() {
            if !SERVICES.contains(&name.as_str()) {
                let known = SERVICES.join(", ");
                self.problems.push(format!(
                    "targets.{name}: no such service; known are {known}"
                ));
            }
        }
        for service in SERVICES {
            if let Some(url) = environment(&format!("CONFORMANT_{}_URL", service.to_uppercase())) {
                entries.entry(service.to_owned()).or_default().url = Some(url);
            }
        }
        self.target_flags(args, &mut entries);
        let mut settings = Settings {
            listen: file.callbacks.listen,
            public_url: file.callbacks.public_url,
            people: self.people(file.people),
            callback_max: self.duration("limits.callback", file.limits.callback.as_deref(), 30),
            is_shared: !file.callbacks.exclusive,
            reach,
            ..Settings::default()
        };
        let control = args.hooks.as_deref().filter(|_| !args.dry_run);
        self.is_reference = control.is_some_and(hooks_of_reference);
        for (name, entry) in entries {
            if entry.url.is_none() {
                self.problems.push(format!(
                    "targets.{name}: no url; write it in conformant.yaml, set CONFORMANT_{}_URL or give --target {name}=URL",
                    name.to_uppercase()
                ));
            }
            let target = self.target(&name, entry);
            settings.targets.insert(name, target);
        }
        if let Some(base) = &args.hooks {
            self.base_url("--hooks", base);
            let token = environment(CONTROL_TOKEN).map(|token| self.keep_secret(token));
            settings.hooks = Hook::control_plane(base, token.as_deref());
        }
        if let Some(url) = &settings.public_url {
            self.base_url("callbacks.public_url", url);
        }
        if let Some(address) = &settings.listen
            && let Err(why) = address.parse::<std::net::SocketAddr>()
        {
            self.problems
                .push(format!("callbacks.listen: {address}: {why}"));
        }
        for (name, entry) in file.hooks {
            if let Some(hook) = self.hook(&name, entry) {
                settings.hooks.insert(name, hook);
            }
        }
        let limits = file.limits;
        let connect = self.duration("limits.connect", limits.connect.as_deref(), 3);
        let timeout = self.duration("limits.timeout", limits.timeout.as_deref(), 10);
        let run = args.global_timeout.as_deref().or(limits.run.as_deref());
        let run_max = self.duration("limits.run (--global-timeout)", run, 600);
        let body_bytes_max = self.bytes(limits.body.as_deref());
        let rate = self.rate(limits.rate.as_deref());
        Config {
            settings,
            connect,
            timeout,
            body_bytes_max,
            run_max,
            rate,
            secrets: Vec::new(),
        }
    }

    fn target_flags(&mut self, args: &RunArgs, entries: &mut BTreeMap<String, TargetEntry>) {
        for flag in &args.targets {
            match by_service("--target", flag) {
                Ok(urls) => {
                    for (service, url) in urls {
                        entries.entry(service).or_default().url = Some(url);
                    }
                }
                Err(problem) => self.problems.push(problem.to_string()),
            }
        }
    }

    fn target(&mut self, name: &str, entry: TargetEntry) -> Target {
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

    fn base_url(&mut self, at: &str, url: &str) {
        if let Err(why) = crate::transport::BaseUrl::parse(url) {
            self.problems.push(format!("{at}: {url}: {why}"));
        }
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
            if crate::redact::is_secret_header(field) {
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
                    Err(why) => self
                        .problems
                        .push(format!("{}: {why}", at("credentials.command"))),
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
            (Some(_), None) => self.problems.push(format!(
                "{}: a username without a password; set CONFORMANT_{}_PASSWORD or write ${{NAME}}",
                at("username"),
                name.to_uppercase()
            )),
            (None, Some(_)) => self
                .problems
                .push(format!("{}: a password without a username", at("password"))),
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

    fn application(&mut self, at: &str, entry: ApplicationEntry) -> Map<String, Value> {
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

    fn people(&mut self, entry: PeopleEntry) -> People {
        let mut people = People::default();
        for (key, value, slot) in [
            ("country_code", entry.country_code, &mut people.country_code),
            (
                "other_country_code",
                entry.other_country_code,
                &mut people.other_country_code,
            ),
        ] {
            let Some(value) = value else { continue };
            if value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit()) {
                self.problems.push(format!(
                    "people.{key}: `{value}` is no calling code; write digits alone"
                ));
            }
            *slot = value;
        }
        for (value, slot) in [
            (entry.cellphone, &mut people.cellphone),
            (entry.second_cellphone, &mut people.second_cellphone),
            (entry.third_cellphone, &mut people.third_cellphone),
            (entry.fourth_cellphone, &mut people.fourth_cellphone),
            (entry.email_domain, &mut people.email_domain),
        ] {
            if let Some(value) = value {
                *slot = value;
            }
        }
        people
    }

    fn hook(&mut self, name: &str, entry: HookEntry) -> Option<Hook> {
        if rulebook::hooks::find(name).is_none() {
            let known: Vec<&str> = rulebook::hooks::HOOKS.iter().map(|h| h.name).collect();
            let near = crate::text::did_you_mean(name, &known);
            let help = near.map_or_else(String::new, |n| format!("; did you mean {n}?"));
            self.problems.push(format!(
                "hooks.{name}: no such hook{help} (`conformant list hooks`)"
            ));
            return None;
        }
        let way = match (entry.command, entry.http) {
            (Some(command), None) if !command.is_empty() => HookWay::Command(command),
            (None, Some(http)) => HookWay::Http {
                method: http.method.unwrap_or_else(|| "POST".to_owned()),
                url: self.fill_secret(&format!("hooks.{name}.http.url"), &http.url),
                headers: http
                    .headers
                    .iter()
                    .map(|(n, v)| {
                        (
                            n.clone(),
                            self.fill_secret(&format!("hooks.{name}.http.headers.{n}"), v),
                        )
                    })
                    .collect(),
                body: http.body,
            },
            (Some(_) | None, Some(_) | None) => {
                self.problems.push(format!(
                    "hooks.{name}: give either `command: [program, …]` or `http: {{url}}`"
                ));
                return None;
            }
        };
        let wrong = |pointer: &&String| !pointer.is_empty() && !pointer.starts_with('/');
        if let Some(pointer) = entry.result.values().find(wrong) {
            self.problems.push(format!(
                "hooks.{name}.result: `{pointer}` is no JSON Pointer; write /data/sid"
            ));
        }
        Some(Hook {
            way,
            result: entry.result,
        })
    }

    /// Puts variables of the environment in. What a hook is called with (`${uuid}`) is lower case
    /// and stays; what the environment holds is upper case.
    fn fill(&mut self, at: &str, text: &str) -> String {
        self.fill_noting(at, text, |_, _| {})
    }

    /// The same where a credential may stand: what the environment holds is taken for one.
    fn fill_secret(&mut self, at: &str, text: &str) -> String {
        self.fill_noting(at, text, |secrets, value| secrets.push(value.to_owned()))
    }

    fn fill_noting(&mut self, at: &str, text: &str, note: fn(&mut Vec<String>, &str)) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let Some(end) = rest[start..].find('}').map(|e| start + e) else {
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
                self.problems
                    .push(format!("{at}: the environment has no {name}"));
            }
            rest = &rest[end + 1..];
        }
        filled.push_str(rest);
        filled
    }

    fn secret(&mut self, at: &str, text: &str) -> Option<String> {
        let named = text.strip_prefix("${").and_then(|t| t.strip_suffix('}'));
        let Some(name) = named else {
            self.problems.push(format!(
                "{at}: a secret stands in the file; write ${{NAME}} and set NAME in the environment"
            ));
            return None;
        };
        let value = environment(name);
        if value.is_none() {
            self.problems
                .push(format!("{at}: the environment has no {name}"));
        }
        value.map(|value| self.keep_secret(value))
    }

    fn keep_secret(&mut self, value: String) -> String {
        self.secrets.push(value.clone());
        value
    }

    fn duration(&mut self, at: &str, text: Option<&str>, seconds: u64) -> Duration {
        let Some(text) = text else {
            return Duration::from_secs(seconds);
        };
        rulebook::duration(text).unwrap_or_else(|| {
            self.problems.push(format!(
                "{at}: `{text}` is no duration; write 500ms, 10s or 5m"
            ));
            Duration::from_secs(seconds)
        })
    }

    fn bytes(&mut self, text: Option<&str>) -> usize {
        const DEFAULT: usize = 8 * 1024 * 1024;
        let Some(text) = text else { return DEFAULT };
        let read: Result<Size, NoSize> = text.parse();
        let read = read.and_then(|Size(bytes)| usize::try_from(bytes).map_err(|_| NoSize));
        read.unwrap_or_else(|error| {
            self.problems
                .push(format!("limits.body: `{text}` is {error}"));
            DEFAULT
        })
    }

    fn rate(&mut self, text: Option<&str>) -> Option<u32> {
        let text = text?;
        let rate = text
            .strip_suffix("/s")
            .and_then(|n| n.trim().parse().ok())
            .filter(|n| *n > 0);
        if rate.is_none() {
            self.problems
                .push(format!("limits.rate: `{text}` is no rate; write 50/s"));
        }
        rate
    }
}
