//! Checks the second account: whether each target accepts its credentials, and what is not judged without it.

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
                diagnosis.push(access(service, targets));
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

fn access(service: &str, targets: &Targets<'_>) -> Check {
    let what = format!("{service}: second account");
    let path = targets.path(service);
    let todo = format!("correct the credentials of accounts.{service}");
    let asked = Request::new("GET", path.clone());
    match targets.send(service, asked, Credentials::OtherAccount) {
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
