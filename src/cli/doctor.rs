//! `doctor`: checks whether a run can judge the targets, and what it would leave out.
//!
//! Sends one harmless request to each target and judges nothing. Of the hooks `advance_clock` (by zero seconds) and
//! `call_back` are called, and HTTP hooks that need arguments without any, to see whether they are supported.

mod callbacks;
mod hooks;
mod targets;

use super::args::{DoctorArgs, ListFormat, RunArgs};
use super::config::{self, Config};
use super::{Done, Exit, Failure, print};
use conformant_base::redact::Redactor;
use conformant_engine::split_url;
use conformant_net::transport::{BaseUrl, Limits};
use conformant_rulebook::{Rulebook, hook_rules};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One check and its result.
struct Check {
    what: String,
    is_ok: bool,
    says: String,
}

pub(super) fn doctor(args: &DoctorArgs) -> Done {
    let config = config::read(&RunArgs {
        config: args.config.clone(),
        targets: args.targets.clone(),
        hooks: args.hooks.clone(),
        specs: args.specs.clone(),
        ..RunArgs::default()
    })?;
    if config.settings.targets.is_empty() {
        let help = "write a configuration with `conformant init`, or give --target SERVICE=URL";
        return Err(Failure::Usage(format!("no target is configured: {help}")));
    }
    let rulebook = super::load(&args.specs)?;
    let mut checks = Vec::new();
    let mut bases = BTreeMap::new();
    for (service, target) in &config.settings.targets {
        let base = BaseUrl::parse(split_url(&target.url).0);
        let base = base.map_err(|e| Failure::Usage(format!("targets.{service}.url: {e}")))?;
        bases.insert(service.clone(), base);
    }
    let limits = Limits {
        connect: config.connect,
        timeout: config.timeout,
        ..Limits::default()
    };
    let client = config.settings.reach.client(limits, &bases);
    for (service, target) in &config.settings.targets {
        let path = probe(&rulebook, service);
        targets::check(
            (service, &path),
            target,
            &bases[service],
            &client,
            &mut checks,
        );
    }
    let unsupported = hooks::check(&config, &rulebook, &client, &mut checks);
    checks.push(callbacks::check(&config, &client));
    let left_out = left_out(&config, &rulebook, &unsupported);
    let redactor = Redactor::new(&config.secrets);
    let text = match args.format {
        ListFormat::Text => as_text(&checks, &left_out),
        ListFormat::Json => as_json(&checks, &left_out),
    };
    print(&redactor.redact(&text));
    let is_ok = checks.iter().all(|check| check.is_ok);
    Ok(if is_ok {
        Exit::Conformant
    } else {
        Exit::Trouble
    })
}

/// Path and query of a request that changes nothing.
fn probe(rulebook: &Rulebook, service: &str) -> String {
    let base = rulebook.index.get(service).and_then(|s| s.base.as_ref());
    let found = base.and_then(|base| {
        let operation = rulebook.operation(service, &base.probe.call)?;
        Some((operation, &base.probe.with))
    });
    let Some((operation, with)) = found else {
        return "/".to_owned();
    };
    let mut path = operation.path.clone();
    let mut query = Vec::new();
    for (name, value) in with {
        let place = format!("{{{name}}}");
        if path.contains(&place) {
            path = path.replace(&place, value);
        } else {
            query.push(format!("{name}={value}"));
        }
    }
    match query.is_empty() {
        true => path,
        false => format!("{path}?{}", query.join("&")),
    }
}

/// The rules of the configured services that would not be judged, by reason.
fn left_out(
    config: &Config,
    rulebook: &Rulebook,
    unsupported: &[String],
) -> Vec<(String, Vec<String>)> {
    let untargeted = rulebook.index.targets();
    let untargeted: Vec<&str> = untargeted
        .into_iter()
        .filter(|service| !config.settings.targets.contains_key(*service))
        .collect();
    let is_targeted = |rule: &String| {
        let service = rule.split('/').next().unwrap_or_default();
        !untargeted.contains(&service)
    };
    let mut left_out = Vec::new();
    for (hook, mut rules) in hook_rules::rules_by_hook(rulebook) {
        let why = match config.settings.hooks.contains_key(&hook) {
            true if unsupported.contains(&hook) => "reports that it is not supported",
            true => continue,
            false => "is not configured",
        };
        rules.retain(is_targeted);
        if !rules.is_empty() {
            left_out.push((format!("hook {hook} {why}"), rules));
        }
    }
    left_out
}

fn as_text(checks: &[Check], left_out: &[(String, Vec<String>)]) -> String {
    let mut text = String::new();
    for check in checks {
        let mark = if check.is_ok { "ok  " } else { "FAIL" };
        text.push_str(&format!("{mark} {}: {}\n", check.what, check.says));
    }
    if left_out.is_empty() {
        text.push_str("a run would leave out nothing\n");
    }
    for (why, rules) in left_out {
        let first: Vec<&str> = rules.iter().take(3).map(String::as_str).collect();
        let more = if rules.len() > first.len() {
            ", …"
        } else {
            ""
        };
        text.push_str(&format!(
            "not judged: {} rules, {why} ({}{more})\n",
            rules.len(),
            first.join(", ")
        ));
    }
    text
}

fn as_json(checks: &[Check], left_out: &[(String, Vec<String>)]) -> String {
    let checks: Vec<Value> = checks
        .iter()
        .map(|check| json!({"what": check.what, "ok": check.is_ok, "says": check.says}))
        .collect();
    let left_out: Vec<Value> = left_out
        .iter()
        .map(|(why, rules)| json!({"why": why, "rules": rules}))
        .collect();
    let whole = json!({"checks": checks, "not_judged": left_out});
    format!("{whole:#}\n")
}
