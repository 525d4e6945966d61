//! Notes at the end of a run: on waivers, errors of targets and hooks, and earlier runs. Of these, reports contain errors only.

use super::{Config, Run, RunConclusion};
use crate::cli::{Exit, config, earlier, note};
use conformant_base::text;
use conformant_engine::sessions::EXPIRED;
use conformant_engine::{Hook, HookTransport, RunEnd, Target};
use conformant_record::RunRecord;
use conformant_report::FailedHook;
use std::collections::BTreeMap;

pub(super) fn print(run: &Run<'_>, conclusion: &RunConclusion, record: &RunRecord) {
    if let Some(previous) = &run.previous {
        for notice in earlier::answered_differently(previous, record) {
            note(&notice);
        }
    }
    for problem in &conclusion.waiver_problems {
        note(&format!("waiver: {problem}"));
    }
    for error in &conclusion.errors {
        note(&format!("error: {error}"));
    }
    if let Some(names) = run
        .args
        .names
        .as_ref()
        .filter(|_| !record.findings.is_empty())
    {
        note(&format!(
            "the names {names} may exist at the target since an earlier run, so failed scenarios were repeated with other names; a run without --names needs no repetition"
        ));
    }
    if conclusion.errors.is_empty() {
        note_other_encodings(run, record);
    }
    run.signals.notice().into_iter().for_each(note);
}

/// What failed apart from findings and waivers, a line each.
pub(super) fn errors(ended: &RunEnd, record: &RunRecord, config: &Config) -> Vec<String> {
    let settings = &config.settings;
    let url_of = |service: &String| settings.targets.get(service).map_or("", |t| &t.url);
    let mut errors: Vec<String> = Vec::new();
    let mut denied_by = ended.denied_by.iter().peekable();
    while let Some(service) = denied_by.next() {
        let end = match denied_by.peek() {
            Some(_) => "",
            None => ": the run stops here",
        };
        errors.push(denied(service, settings.targets.get(service)) + end);
    }
    for service in &ended.read_only {
        errors.push(format!(
            "{service} accepts the configured credentials for reads, and answers 401 or 403 to every request that writes: give \
             targets.{service} credentials that may write (`explore --only-safe` reads only)"
        ));
    }
    let has_expired = |service: &String| {
        let gone = ended.gone.as_ref();
        gone.is_some_and(|(gone, why)| gone == service && why == EXPIRED)
    };
    let is_explained = |service: &String| has_expired(service) || ended.read_only.contains(service);
    let rejected = ended.rejected_account.as_ref();
    if let Some(service) = rejected.filter(|service| !is_explained(service)) {
        errors.push(format!(
            "{service} rejects the credentials of the second account; correct accounts.{service} (`conformant doctor` checks them)"
        ));
    }
    for (service, answer) in &ended.wrong_addresses {
        let url = url_of(service);
        errors.push(format!(
            "the address of {service} leads elsewhere: {url}, where {answer}; correct targets.{service}.url{} (`conformant doctor` checks it)",
            config::path_for(&settings.index, service, url)
        ));
    }
    for (service, status) in &ended.unserved {
        let todo = match status {
            429 => {
                "raise its rate limit, or set limits.rate (such as 5/s) and repeat the run later"
            }
            _ => "start the service behind this address",
        };
        errors.push(format!(
            "{service} at {} answers every request with status {status}, so that nothing of it is judged; {todo}",
            url_of(service)
        ));
    }
    for (service, why) in &ended.never_reached {
        errors.push(format!(
            "{service} cannot be reached at {}: {why}; `conformant doctor` checks every target",
            url_of(service)
        ));
    }
    // A hook of a target that is gone fails, too.
    if ended.never_reached.is_empty() && ended.gone.is_none() {
        errors.extend(hook_failures(
            &conformant_report::failed_hooks(record),
            &settings.hooks,
        ));
    }
    let cut = record.ended_early.as_ref();
    errors.extend(cut.filter(|_| ended.time_limit.is_some()).cloned());
    if let Some((service, why)) = &ended.gone {
        let what = match why == EXPIRED {
            true => format!("{service} rejects the configured credentials, which ended the run"),
            false => format!("{service} stopped answering, which ended the run"),
        };
        errors.push(format!(
            "{what}: {why}; what was not judged before is inconclusive"
        ));
    }
    let is_missing = errors.is_empty() && record.exit == Some(Exit::Trouble as u8);
    let unanswered = ended.unanswered.as_ref().filter(|_| is_missing);
    errors.extend(unanswered.map(|unanswered| {
        format!(
            "{} got no answer that can be judged, the first in {}; correct the service or what is between it and this program, and repeat the run",
            text::count(unanswered.count, "request"),
            unanswered.first
        )
    }));
    errors
}

/// A line for each failed hook; one for several that have no page at the same address, which is then wrong.
fn hook_failures(failed: &[FailedHook<'_>], hooks: &BTreeMap<String, Hook>) -> Vec<String> {
    let base = |hook: &FailedHook<'_>| match &hooks.get(hook.name)?.transport {
        HookTransport::Http { url, .. } if hook.why.starts_with("status 404") => {
            Some(url.strip_suffix(hook.name)?.to_owned())
        }
        HookTransport::Http { .. } | HookTransport::Command(_) => None,
    };
    let mut lines = Vec::new();
    let mut absent: BTreeMap<String, Vec<&FailedHook<'_>>> = BTreeMap::new();
    for hook in failed {
        match base(hook) {
            Some(base) => absent.entry(base).or_default().push(hook),
            None => lines.push(hook_failure(hook)),
        }
    }
    for (base, failed) in absent {
        if let [one] = failed.as_slice() {
            lines.push(hook_failure(one));
            continue;
        }
        let names: Vec<&str> = failed.iter().map(|hook| hook.name).collect();
        let scenarios = text::count(failed.iter().map(|hook| hook.scenarios).sum(), "scenario");
        lines.push(format!(
            "hooks failed and left {scenarios} inconclusive, because {base} answers each of them with status 404: {}; correct this \
             address (--hooks, or `hooks` in the configuration)",
            names.join(", ")
        ));
    }
    lines
}

fn hook_failure(hook: &FailedHook<'_>) -> String {
    let (name, why) = (hook.name, hook.why);
    let scenarios = text::count(hook.scenarios, "scenario");
    let cause = match hook.defect {
        Some(number) => format!(", probably because of defect {number}"),
        None if hook.has_defects => {
            format!(", perhaps because of a defect of {}", hook.service)
        }
        None => String::new(),
    };
    format!(
        "hook {name} failed and left {scenarios} inconclusive{cause}: {why}; `conformant explain {name}` describes it"
    )
}

/// The note for a run that ended because a service rejected the credentials.
fn denied(service: &str, target: Option<&Target>) -> String {
    // In the order of precedence, see the requests of the engine.
    let (token, what) = match target {
        Some(target) if target.header("Authorization").is_some() => {
            (true, "the configured bearer token or Authorization header")
        }
        Some(target) if target.bearer.is_some() => (true, "tokens of the configured command"),
        Some(target) if target.has_credentials() => (false, "the credentials that are configured"),
        Some(_) | None => (
            false,
            "requests without credentials, because none are configured",
        ),
    };
    let unsent = match target.is_some_and(|target| token && target.basic.is_some()) {
        true => "; username and password are configured too, but not sent",
        false => "",
    };
    format!(
        "{service} answers nothing but 401 and 403 to {what} (targets.{service}: username and password, bearer, or headers{unsent})"
    )
}

/// For each operation that rejected valid requests and supports two encodings: prints the key that selects the other one.
fn note_other_encodings(run: &Run<'_>, record: &RunRecord) {
    for (service, target) in &run.config.settings.targets {
        let model = run.rulebook.services.get(service).into_iter();
        let operations = model.flat_map(|model| model.operations.values());
        for operation in operations.filter(|o| o.bodies.len() > 1) {
            let id = &operation.id;
            let rule = format!("{service}/{id}");
            if record.findings.iter().any(|finding| finding.rule == rule) {
                let is_json = target.json_operations.get(id);
                let (sent, other) = match is_json.unwrap_or(&target.json_bodies) {
                    true => ("json", "form"),
                    false => ("form", "json"),
                };
                note(&format!(
                    "{rule} rejected valid requests, whose bodies were sent as {sent}: if it expects {other}, set `targets.{service}.body: {{ {id}: {other} }}`"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_rulebook::service::ServiceIndex;

    #[test]
    fn a_wrong_address_of_several_hooks_is_named_once() {
        let hooks = Hook::control_plane(ServiceIndex::embedded(), "http://127.0.0.1:9/x", None);
        let failed = |name, why| FailedHook {
            name,
            why,
            scenarios: 2,
            service: "flow",
            has_defects: false,
            defect: None,
        };
        let absent = "status 404: no page";
        let lines = hook_failures(
            &[
                failed("create_flow", absent),
                failed("end_execution", absent),
                failed("lease", "status 409: busy"),
            ],
            &hooks,
        );
        assert!(lines[0].starts_with("hook lease failed "), "{lines:?}");
        assert_eq!(
            lines[1..],
            [
                "hooks failed and left 4 scenarios inconclusive, because http://127.0.0.1:9/x/ answers each of them with status \
                 404: create_flow, end_execution; correct this address (--hooks, or `hooks` in the configuration)"
            ]
        );
        let one = hook_failures(&[failed("create_flow", absent)], &hooks);
        assert!(one[0].starts_with("hook create_flow failed "), "{one:?}");
    }
}
