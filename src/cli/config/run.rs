//! What a run needs to know, of file, environment and flags; the last one wins.

use super::addresses::by_service;
use super::environment::{CONTROL_TOKEN, environment, names_in_environment};
use super::error::ConfigError;
use super::file::{ConfigFile, HookEntry};
use super::reader::{Reader, open};
use crate::cli::args::TargetArgs;
use crate::cli::{Failure, memory, note};
use conformant_base::http::Request;
use conformant_engine::sessions::hooks_of_reference;
use conformant_engine::settings::{Hook, Settings};
use conformant_engine::split_url;
use conformant_net::transport::{BaseUrl, Client, Limits};
use conformant_rulebook::service::ServiceIndex;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Everything a run needs to know.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Config {
    /// Targets, hooks and the callback listener; no targets means the reference.
    pub settings: Settings,
    /// Limits of each exchange.
    pub limits: Limits,
    /// The longest that the run may take.
    pub run_max: Duration,
    /// Arguments of harmless calls, by hook.
    pub probes: BTreeMap<String, Map<String, Value>>,
    /// What must appear in no output.
    pub secrets: Vec<String>,
}

impl Config {
    /// A client for single requests.
    pub(in crate::cli) fn client(&self, bases: &BTreeMap<String, BaseUrl>) -> Client {
        let limits = Limits {
            rate: None,
            ..self.limits
        };
        self.settings.reach.client(limits, bases)
    }
}

/// Base URLs by service, from `CONFORMANT_SERVICE_URL`.
pub(in crate::cli) fn targets_of_environment(index: &ServiceIndex) -> Vec<(String, String)> {
    let targets = index.targets().into_iter().filter_map(|service| {
        let url = environment(&format!("CONFORMANT_{}_URL", service.to_uppercase()))?;
        Some((service.to_owned(), url))
    });
    targets.collect()
}

/// Variables by which CI services are recognized; not all of them set `CI`.
const OF_CI: &str = "CI CODEBUILD_BUILD_ID JENKINS_URL TEAMCITY_VERSION TF_BUILD";

/// The variable of the CI service that runs this command.
fn variable_of_ci() -> Option<&'static str> {
    OF_CI.split(' ').find(|name| {
        environment(name).is_some_and(|value| !["", "0", "false"].contains(&value.as_str()))
    })
}

/// Whether a CI service runs this command.
pub(in crate::cli) fn is_ci() -> bool {
    variable_of_ci().is_some()
}

/// Refuses to judge the reference although a target is expected: in CI, and where a flag asks for a target.
pub(in crate::cli) fn check_target(
    args: &TargetArgs,
    is_reference: bool,
    is_requested: bool,
    config: &Config,
) -> Result<(), Failure> {
    let why = match (is_requested, variable_of_ci()) {
        (true, _) => "--require-target is given".to_owned(),
        (false, Some(name)) => format!("{name} is set"),
        (false, None) => return Ok(()),
    };
    if is_reference || !config.settings.targets.is_empty() {
        return Ok(());
    }
    let found = match super::place::found(args.config.as_deref()) {
        Some(path) => format!("{} names none", path.display()),
        None => "there is no conformant.yaml".to_owned(),
    };
    Err(Failure::Usage(format!(
        "no target to judge: {found}, and {why}; add --target SERVICE=URL, write a configuration with `conformant init`, \
         or judge the built-in reference with --reference"
    )))
}

/// Refuses `--hooks` without a target, or with an address at which nothing answers or that lacks the path of the
/// reference's hooks. Otherwise their failures would be blamed on the target.
pub(in crate::cli) fn check_hooks(
    hooks: Option<&str>,
    is_dry: bool,
    config: &Config,
) -> Result<(), Failure> {
    const HOOKS_OF_REFERENCE: &str = "/_control";
    let Some(base) = hooks else {
        return Ok(());
    };
    if config.settings.targets.is_empty() {
        return Err(Failure::Usage(
            "--hooks: expected a target whose hooks these are, got none; add --target SERVICE=URL, or set `targets` in \
             conformant.yaml"
                .to_owned(),
        ));
    }
    let (origin, path) = split_url(base);
    let Ok(origin) = BaseUrl::parse(origin) else {
        return Ok(());
    };
    if is_dry {
        return Ok(());
    }
    let client = config.client(&BTreeMap::new());
    let path = if path.is_empty() { "/" } else { path };
    let timeout = config.limits.timeout;
    if let Err(fault) = client.send(&origin, &Request::new("GET", path), timeout)
        && fault.cause.is_unreachable()
    {
        return Err(Failure::Trouble(format!(
            "--hooks {base}: nothing answers there: {fault}"
        )));
    }
    let control = format!("{}{HOOKS_OF_REFERENCE}", base.trim_end_matches('/'));
    match !hooks_of_reference(base) && hooks_of_reference(&control) {
        true => Err(Failure::Usage(format!(
            "--hooks {base}: no hooks are there; did you mean {control}?"
        ))),
        false => Ok(()),
    }
}

/// What changes how a configuration is read.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(in crate::cli) struct Reading<'a> {
    /// `--reference` leaves out every target.
    pub is_reference: bool,
    /// Nothing is sent, and no command is run.
    pub is_dry: bool,
    /// The run is one of several of one target.
    pub is_partition: bool,
    /// The targets are those of a stored run, so that unused variables need no hint.
    pub is_of_stored_run: bool,
    /// With targets, the process starts again with settings for many threads, before anything is printed.
    pub is_run: bool,
    /// The time limit of the run, in place of that of the file.
    pub run_max: Option<&'a str>,
}

/// Reads file, environment and flags.
pub(in crate::cli) fn read(args: &TargetArgs, how: Reading<'_>) -> Result<Config, Failure> {
    let (mut file, mut reader) = open(args.config.as_deref(), args.specs.specs.as_deref())?;
    if how.is_reference {
        file = ConfigFile::default();
    }
    reader.is_dry = how.is_dry;
    reader.is_of_stored_run = how.is_of_stored_run;
    let config = reader.resolve(file, args, how);
    if !how.is_reference && !how.is_of_stored_run {
        reader.hint_at_unknown_services();
        if config.settings.targets.is_empty() {
            reader.hint_at_variables();
        }
    }
    if how.is_run && !config.settings.targets.is_empty() {
        memory::share_between_threads();
    }
    let secrets = reader.finish()?;
    Ok(Config { secrets, ..config })
}

impl Reader {
    /// Names variables such as `CONFORMANT_FLWO_URL`, whose service does not exist.
    fn hint_at_unknown_services(&self) {
        let known = self.index.targets();
        for name in names_in_environment() {
            let service = name.strip_prefix("CONFORMANT_");
            let Some(service) = service.and_then(|rest| rest.strip_suffix("_URL")) else {
                continue;
            };
            let service = service.to_lowercase();
            let is_known = known.contains(&service.as_str());
            let near = conformant_base::text::did_you_mean(&service, &known);
            if let Some(near) = near.filter(|_| !is_known) {
                note(&format!(
                    "warning: {name} is set, but no service is named `{service}`; did you mean CONFORMANT_{}_URL?",
                    near.to_uppercase()
                ));
            }
        }
    }

    /// Names variables of the environment that a target would read, because no target is configured.
    fn hint_at_variables(&mut self) {
        for (service, file) in self.index.iter() {
            let upper = service.to_uppercase();
            let own = "USERNAME PASSWORD ACCOUNT_SID AUTH_TOKEN BEARER".split(' ');
            let own = own.map(|key| format!("CONFORMANT_{upper}_{key}"));
            // As `init` writes them.
            let written = ["KEY", "SECRET", "API_KEY"].map(|key| format!("{upper}_{key}"));
            let settings = file.settings.iter().flat_map(|(_, setting)| {
                let members = setting.members.iter().map(|(_, member)| member);
                members.chain([setting]).filter_map(|s| s.variable.clone())
            });
            let mut all = own.chain(written).chain(settings);
            if let Some(name) = all.find(|name| environment(name).is_some()) {
                note(&format!(
                    "hint: {name} is set, but no target reads it: add --target {service}=URL, set CONFORMANT_{upper}_URL, or \
                     write a configuration with `conformant init`"
                ));
            }
        }
    }

    /// The addresses by service that the environment and flags give; the last one wins.
    fn given_urls(&mut self, args: &TargetArgs, is_reference: bool) -> Vec<(String, String)> {
        let mut given = Vec::new();
        if !is_reference {
            given = targets_of_environment(&self.index);
        }
        for (service, _) in &given {
            let variable = format!("CONFORMANT_{}_URL", service.to_uppercase());
            self.givers.insert(service.clone(), variable);
        }
        match by_service(&self.index, "--target", &args.targets) {
            Ok(urls) => {
                for (service, url) in urls {
                    let flag = format!("--target {service}");
                    self.givers.insert(service.clone(), flag);
                    given.push((service, url));
                }
            }
            Err(problem) => self.problems.push(problem.into()),
        }
        given
    }

    fn resolve(&mut self, file: ConfigFile, args: &TargetArgs, how: Reading<'_>) -> Config {
        let reach = self.reach(&file);
        let index = Arc::clone(&self.index);
        let mut entries = file.targets;
        for name in entries.keys() {
            if !index.is_target(name) {
                let known = index.targets();
                self.problems.push(match (name.as_str(), known.first()) {
                    ("all", Some(first)) => ConfigError::AllServices {
                        first: (*first).to_owned(),
                    },
                    _ => ConfigError::Service {
                        name: name.clone(),
                        known: known.join(", "),
                    },
                });
            }
        }
        for (service, url) in self.given_urls(args, how.is_reference) {
            entries.entry(service).or_default().url = Some(url);
        }
        let is_live = entries.values().any(|entry| entry.url.is_some());
        let mut settings = Settings {
            index: Arc::clone(&self.index),
            listen: file.callbacks.listen.as_deref().map(str::to_owned),
            public_url: file.callbacks.public_url,
            people: self.people(file.people, is_live),
            callback_max: self.duration("limits.callback", file.limits.callback.as_deref(), 30),
            is_shared: !file.callbacks.exclusive,
            is_one_of_several: file.callbacks.shared || how.is_partition,
            reach,
            ..Settings::default()
        };
        let control = args.hooks.as_deref().filter(|_| !how.is_dry);
        self.is_reference = control.is_some_and(hooks_of_reference);
        for (name, entry) in entries {
            if entry.url.is_none() {
                let service = name.clone();
                self.problems.push(ConfigError::NoUrl { service });
            }
            let target = self.target(&name, entry);
            settings.targets.insert(name, target);
        }
        self.accounts(file.accounts, &mut settings);
        if let Some(base) = &args.hooks {
            self.base_url("--hooks", base);
            let token = environment(CONTROL_TOKEN).map(|token| self.keep_secret(token));
            settings.hooks = Hook::control_plane(&index, base, token.as_deref());
        }
        if let Some(url) = &settings.public_url {
            self.base_url("callbacks.public_url", url);
        }
        if let Some(address) = &settings.listen
            && address.parse::<std::net::SocketAddr>().is_err()
        {
            let address = address.clone();
            self.problems.push(ConfigError::Listen { address });
        }
        // A hook with an address of its own in the file stays; `init` writes commands that are stubs.
        let is_replaced = |entry: &HookEntry| args.hooks.is_some() && entry.http.is_none();
        if file.hooks.values().any(is_replaced) {
            let unused = "the commands of hooks in the configuration file are not used, because --hooks is given";
            self.warnings.push(unused.to_owned());
        }
        let mut probes = BTreeMap::new();
        let hooks = file.hooks.into_iter();
        for (name, mut entry) in hooks.filter(|(_, entry)| !is_replaced(entry)) {
            if let Some(probe) = entry.probe.take() {
                probes.insert(name.clone(), probe);
            }
            if let Some(hook) = self.hook(&name, entry) {
                settings.hooks.insert(name, hook);
            }
        }
        let limits = file.limits;
        let connect = self.duration("limits.connect", limits.connect.as_deref(), 3);
        let timeout = self.duration("limits.timeout", limits.timeout.as_deref(), 10);
        let run = how.run_max.or(limits.run.as_deref());
        Config {
            settings,
            run_max: self.duration("limits.run (--global-timeout)", run, 600),
            limits: Limits {
                connect,
                timeout,
                body: self.bytes(limits.body.as_deref()),
                rate: self.rate(limits.rate.as_deref()),
            },
            probes,
            secrets: Vec::new(),
        }
    }
}
