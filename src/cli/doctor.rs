//! `doctor`: checks whether a run can judge the targets, what it would leave out, and what to do about it.
//!
//! - Sends harmless requests to each target: a read with and without credentials, and empty bodies in both encodings.
//! - Calls `advance_clock` (by zero seconds) and `call_back`, and HTTP hooks that need arguments without any, to see whether
//!   they are supported. With `--probe` it calls each hook that declares a harmless call.
//! - Reports configured services only.

mod access;
mod accounts;
mod callbacks;
mod hooks;
mod strict;
mod targets;

pub(super) use access::Targets;

use super::args::{DoctorArgs, ListFormat};
use super::config::{self, Config, Reading};
use super::{Done, Exit, Failure, print};
use conformant_base::redact::Redactor;
use conformant_base::sorted::SortedMap;
use conformant_base::text;
use conformant_engine::{NEW_CELLPHONE, features};
use conformant_rulebook::hooks::ADVANCE_CLOCK;
use conformant_rulebook::{Rulebook, hook_rules};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// At most this many tasks about hooks; `not judged` lists all of them.
const TASKS_OF_HOOKS_MAX: usize = 5;

struct Check {
    what: String,
    /// None if it was not tried.
    is_ok: Option<bool>,
    says: String,
    /// What to do about it.
    todo: Option<String>,
    /// The rules that are not judged without it, if the check was not tried.
    rules: usize,
}

impl Check {
    fn ok(what: String, says: String) -> Self {
        Self {
            is_ok: Some(true),
            ..Self::untried(what, says, None)
        }
    }

    fn failed(what: String, says: String, todo: String) -> Self {
        Self {
            is_ok: Some(false),
            ..Self::untried(what, says, Some(todo))
        }
    }

    fn untried(what: String, says: String, todo: Option<String>) -> Self {
        Self {
            what,
            is_ok: None,
            says,
            todo,
            rules: 0,
        }
    }
}

#[derive(Default)]
struct Diagnosis {
    /// What makes judging impossible.
    headlines: Vec<String>,
    /// The services that answer at their address.
    answering: BTreeSet<String>,
    checks: Vec<Check>,
    left_out: Vec<LeftOut>,
    /// Settings that are not set, each with the scenarios that read it.
    unset: Vec<(String, Vec<String>)>,
    /// What to do, most important first.
    tasks: Vec<String>,
}

/// Rules that would not be judged, because a hook is missing.
struct LeftOut {
    hook: String,
    /// What the hook lacks.
    why: &'static str,
    rules: Vec<String>,
}

impl LeftOut {
    fn reason(&self) -> String {
        format!("hook {} {}", self.hook, self.why)
    }
}

impl Diagnosis {
    fn has_failed(&self) -> bool {
        self.checks.iter().any(|check| check.is_ok == Some(false))
    }

    fn push(&mut self, check: Check) {
        self.checks.push(check);
    }
}

pub(super) fn doctor(args: &DoctorArgs) -> Done {
    let config = config::read(&args.on, Reading::default())?;
    if config.settings.targets.is_empty() {
        let help = match config::found(args.on.config.as_deref()) {
            Some(path) => format!("name one in {} under `targets`", path.display()),
            None => "write a configuration with `conformant init --target SERVICE=URL`".to_owned(),
        };
        return Err(Failure::Usage(format!(
            "no target is configured: {help}, or give --target SERVICE=URL"
        )));
    }
    let rulebook = super::load(&args.on.specs)?;
    config::check_values(&rulebook, &config)?;
    let targets = Targets::new(&config, &rulebook)?;
    let mut diagnosis = Diagnosis::default();
    for service in config.settings.targets.keys() {
        if targets::check(service, &targets, &rulebook, &mut diagnosis) {
            diagnosis.answering.insert(service.clone());
        }
    }
    accounts::check(&config, &targets, &rulebook, &mut diagnosis);
    let client = &targets.client;
    let unsupported = hooks::check(&config, &rulebook, client, args.probe, &mut diagnosis);
    if callbacks::is_needed(&config, &rulebook) {
        let is_answering = !diagnosis.answering.is_empty();
        diagnosis.push(callbacks::check(&config, client, is_answering));
    }
    strict::check(&config, &mut diagnosis);
    diagnosis.left_out = left_out(&config, &rulebook, &unsupported);
    diagnosis.unset = unset(&config, &rulebook);
    diagnosis.tasks = tasks(&diagnosis, &config);
    let redactor = Redactor::new(&config.secrets);
    let text = match args.format {
        ListFormat::Text => as_text(&diagnosis),
        ListFormat::Json => as_json(&diagnosis),
    };
    print(&redactor.redact(&text));
    Ok(match diagnosis.has_failed() {
        false => Exit::Conformant,
        true => Exit::Trouble,
    })
}

/// The rules of the configured services that would not be judged, by hook.
fn left_out(config: &Config, rulebook: &Rulebook, unsupported: &[String]) -> Vec<LeftOut> {
    let mut left_out = Vec::new();
    for (hook, rules) in rules_by_hook(config, rulebook) {
        let why = match config.settings.hooks.contains_key(&hook) {
            true if unsupported.contains(&hook) => "reports that it is not supported",
            true => continue,
            false => "is not configured",
        };
        if !rules.is_empty() {
            left_out.push(LeftOut { hook, why, rules });
        }
    }
    left_out
}

/// The rules of the configured services and of events, by the hook that they need.
fn rules_by_hook(config: &Config, rulebook: &Rulebook) -> SortedMap<String, Vec<String>> {
    let feeds = config.settings.feeds();
    let is_targeted = |rule: &String| {
        let service = rule.split('/').next().unwrap_or_default();
        feeds.contains(&service) || config.settings.targets.contains_key(service)
    };
    let mut by_hook = hook_rules::rules_by_hook(rulebook);
    for rules in by_hook.values_mut() {
        rules.retain(is_targeted);
    }
    by_hook
}

/// The settings of the configured services that scenarios read and that nothing provides.
fn unset(config: &Config, rulebook: &Rulebook) -> Vec<(String, Vec<String>)> {
    let targets = &config.settings.targets;
    let mut unset: SortedMap<String, Vec<String>> = SortedMap::new();
    for (service, features) in features(rulebook) {
        if !targets.contains_key(&service) {
            continue;
        }
        for (feature, scenarios) in features {
            let is_new_number = feature.strip_prefix("key ") == Some(NEW_CELLPHONE);
            if is_new_number && config.settings.people.new_cellphone.is_none() {
                let key = NEW_CELLPHONE.to_owned();
                unset.entry(key).or_default().extend(scenarios);
                continue;
            }
            let key = feature.strip_prefix("key targets.");
            let Some((owner, name)) = key.and_then(|key| key.split_once('.')) else {
                continue;
            };
            let Some(target) = targets.get(owner) else {
                continue;
            };
            let mut value = target
                .values
                .get(name.split('.').next().unwrap_or_default());
            for member in name.split('.').skip(1) {
                value = value.and_then(|value| value.get(member));
            }
            if value.is_none() {
                let key = format!("targets.{owner}.{name}");
                unset.entry(key).or_default().extend(scenarios);
            }
        }
    }
    let mut unset: Vec<(String, Vec<String>)> = unset.into_iter().collect();
    unset.sort_by_key(|(_, scenarios)| std::cmp::Reverse(scenarios.len()));
    unset
}

/// What to do: failed checks first, then what makes a run faster, then what makes it judge more, most of it first.
fn tasks(diagnosis: &Diagnosis, config: &Config) -> Vec<String> {
    let todos = |is_failed: bool| {
        let checks = diagnosis.checks.iter();
        let checks = checks.filter(move |check| (check.is_ok == Some(false)) == is_failed);
        checks.filter_map(|check| Some((check.rules, check.todo.clone()?)))
    };
    let mut tasks: Vec<String> = todos(true).map(|(_, task)| task).collect();
    // Nothing else can be tried before a target answers.
    if diagnosis.answering.is_empty() && !tasks.is_empty() {
        tasks.push("then call this command again: it lists what else a run needs".to_owned());
        return tasks;
    }
    if !config.settings.hooks.contains_key(ADVANCE_CLOCK) {
        tasks.push(format!(
            "configure the hook {ADVANCE_CLOCK}: a run is then about six times faster, because it does not wait in real time"
        ));
    }
    let mut others: Vec<(usize, String)> = todos(false).collect();
    for (key, scenarios) in &diagnosis.unset {
        let shown = match scenarios.len() {
            1 => "1 scenario reads".to_owned(),
            n => format!("{n} scenarios read"),
        };
        let task = format!("set {key}, which {shown}: `conformant explain {key}` describes it");
        others.push((scenarios.len(), task));
    }
    let hooks = diagnosis.left_out.iter();
    let mut hooks: Vec<&LeftOut> = hooks.filter(|one| one.hook != ADVANCE_CLOCK).collect();
    hooks.sort_by_key(|one| std::cmp::Reverse(one.rules.len()));
    for LeftOut { hook, rules, .. } in hooks.into_iter().take(TASKS_OF_HOOKS_MAX) {
        let task = format!(
            "implement the hook {hook}, needed by {}: `conformant explain {hook}` describes it",
            text::count(rules.len(), "rule")
        );
        others.push((rules.len(), task));
    }
    others.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    tasks.extend(others.into_iter().map(|(_, task)| task));
    // Several hooks have the same task.
    let mut seen = BTreeSet::new();
    tasks.retain(|task| seen.insert(task.clone()));
    tasks
}

fn as_text(diagnosis: &Diagnosis) -> String {
    let mut out = String::new();
    for headline in &diagnosis.headlines {
        out.push_str(&format!("cannot judge: {headline}\n"));
    }
    for check in &diagnosis.checks {
        let mark = match check.is_ok {
            Some(true) => "ok  ",
            Some(false) => "FAIL",
            None => "--  ",
        };
        out.push_str(&format!("{mark} {}: {}\n", check.what, check.says));
    }
    if diagnosis.left_out.is_empty() && diagnosis.unset.is_empty() && !diagnosis.has_failed() {
        out.push_str("all rules of these services can be judged\n");
    }
    let hooks = diagnosis.left_out.iter();
    let hooks = hooks.map(|one| ("rule", one.reason(), &one.rules));
    let settings = diagnosis.unset.iter();
    let settings = settings.map(|(key, ids)| ("scenario", format!("{key} is not set"), ids));
    for (what, why, ids) in hooks.chain(settings) {
        let first: Vec<&str> = ids.iter().take(3).map(String::as_str).collect();
        let more = if ids.len() > first.len() { ", …" } else { "" };
        out.push_str(&format!(
            "not judged: {}, {why} ({}{more})\n",
            text::count(ids.len(), what),
            first.join(", ")
        ));
    }
    match diagnosis.tasks.is_empty() {
        true => out.push_str("\nto do: nothing\n"),
        false => out.push_str("\nto do\n"),
    }
    for (index, task) in diagnosis.tasks.iter().enumerate() {
        out.push_str(&format!("{:>3}. {task}\n", index + 1));
    }
    out
}

fn as_json(diagnosis: &Diagnosis) -> String {
    let checks = diagnosis.checks.iter();
    let checks: Vec<Value> = checks
        .map(|check| json!({"what": check.what, "ok": check.is_ok, "says": check.says}))
        .collect();
    let left_out: Vec<Value> = diagnosis
        .left_out
        .iter()
        .map(|one| json!({"why": one.reason(), "rules": one.rules}))
        .collect();
    let unset = diagnosis.unset.iter();
    let unset: Vec<Value> = unset
        .map(|(key, scenarios)| json!({"key": key, "scenarios": scenarios}))
        .collect();
    let whole = json!({
        "headlines": diagnosis.headlines,
        "checks": checks,
        "not_judged": left_out,
        "not_set": unset,
        "to_do": diagnosis.tasks,
    });
    format!("{whole:#}\n")
}
