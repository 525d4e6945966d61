//! Checks what the configuration says of accounts: whether each target accepts the account SID with its auth token, and the
//! credentials of the second account; what is not judged without the latter; and whether configured resources exist.

use super::access::Targets;
use super::{Check, Diagnosis};
use crate::cli::config::Config;
use conformant_base::http::Request;
use conformant_base::text;
use conformant_rulebook::Rulebook;
use conformant_rulebook::scenario::Credentials;

pub(super) fn check(
    config: &Config,
    targets: &Targets<'_>,
    rulebook: &Rulebook,
    diagnosis: &mut Diagnosis,
) {
    let (mut missing, mut rules) = (Vec::new(), 0);
    for (service, target) in &config.settings.targets {
        if diagnosis.answering.contains(service) {
            if target.account.is_some() && target.has_credentials() {
                let keys = format!("targets.{service}.account_sid and auth_token");
                let what = format!("{service}: account SID");
                diagnosis.push(access(service, targets, (what, keys), Credentials::Account));
            }
            resources(service, config, (targets, rulebook), diagnosis);
        }
        let start = format!("{service}/accounts/");
        let own = rulebook
            .rules
            .keys()
            .filter(|id| id.starts_with(&start))
            .count();
        if own == 0 {
            continue;
        }
        if target.other_account.is_some() {
            if diagnosis.answering.contains(service) {
                let what = format!("{service}: second account");
                let keys = format!("accounts.{service}");
                let credentials = Credentials::OtherAccount;
                diagnosis.push(access(service, targets, (what, keys), credentials));
            }
        } else {
            missing.push(service.as_str());
            rules += own;
        }
    }
    if missing.is_empty() {
        return;
    }
    let says = format!(
        "not configured for {}; {} not judged",
        missing.join(", "),
        text::count(rules, "rule")
    );
    let todo = "configure `accounts`, credentials of a second account by service, so that a run checks that accounts are \
                separate: `conformant explain accounts` describes it";
    let what = "second account".to_owned();
    diagnosis.push(Check {
        rules,
        ..Check::untried(what, says, Some(todo.to_owned()))
    });
}

/// Whether a service refuses credentials; `keys` are those of the configuration.
fn access(
    service: &str,
    targets: &Targets<'_>,
    (what, keys): (String, String),
    credentials: Credentials,
) -> Check {
    let path = targets.path(service);
    let todo = format!("correct the credentials of {keys}");
    let asked = Request::new("GET", path.clone());
    match targets.send(service, asked, credentials) {
        Ok(answer) => {
            let status = format!("GET {path} answered {}", answer.status);
            match answer.status {
                401 | 403 => Check::failed(what, format!("refused: {status}"), todo),
                _ => Check::ok(what, format!("not refused: {status}")),
            }
        }
        Err(error) => Check::failed(what, error.to_string(), todo),
    }
}

/// Whether a service has the resources that its settings name.
fn resources(
    service: &str,
    config: &Config,
    (targets, rulebook): (&Targets<'_>, &Rulebook),
    diagnosis: &mut Diagnosis,
) {
    for (key, value) in &config.settings.targets[service].values {
        let value = value.as_str().unwrap_or_default();
        let Some(path) = conformant_engine::fetch_of_setting(rulebook, service, key, value) else {
            continue;
        };
        let path = targets.below(service, &path);
        let status = |credentials| {
            let asked = Request::new("GET", path.clone());
            let answer = targets.send(service, asked, credentials).ok()?;
            Some(answer.status)
        };
        let what = format!("{service}: {key}");
        let is_missing = status(Credentials::Default) == Some(404);
        let has_second = config.settings.targets[service].other_account.is_some();
        if is_missing {
            let says = format!("{value} is not there: GET {path} answered 404");
            let todo = format!("correct targets.{service}.{key}: {service} does not have {value}");
            diagnosis.push(Check::failed(what, says, todo));
        } else if has_second && status(Credentials::OtherAccount) == Some(200) {
            let says = format!("the second account sees {value}, too: GET {path} answered 200");
            let todo = format!(
                "check accounts.{service}: its credentials may belong to the account of targets.{service} (otherwise the service \
                 shows resources of other accounts)"
            );
            diagnosis.push(Check::untried(what, says, Some(todo)));
        }
    }
}
