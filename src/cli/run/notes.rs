//! Notes at the end of a run: on waivers, the target, hooks and earlier runs. Reports do not contain them.

use super::{Run, RunConclusion};
use crate::cli::{config, earlier, note};
use conformant_base::text;
use conformant_engine::{RunEnd, Target};
use conformant_record::RunRecord;
use conformant_report::FailedHook;

pub(super) fn print(run: &Run<'_>, conclusion: &RunConclusion, ended: &RunEnd, record: &RunRecord) {
    let settings = &run.config.settings;
    let url_of = |service: &String| settings.targets.get(service).map_or("", |t| &t.url);
    if let Some(previous) = &run.previous {
        for notice in earlier::answered_differently(previous, record) {
            note(&notice);
        }
    }
    for problem in &conclusion.waiver_problems {
        note(&format!("waiver: {problem}"));
    }
    let error = |text: &str| note(&format!("error: {text}"));
    if let Some(service) = &ended.denied_by {
        error(&denied(service, settings.targets.get(service)));
    }
    if let Some(service) = &ended.rejected_account {
        error(&format!(
            "{service} rejects the credentials of the second account; correct accounts.{service} (`conformant doctor` checks them)"
        ));
    }
    if let Some((service, answer)) = &ended.wrong_address {
        let url = url_of(service);
        error(&format!(
            "the address of {service} leads elsewhere: {url}, where {answer}; correct targets.{service}.url{} (`conformant doctor` checks it)",
            config::path_for(&settings.index, service, url)
        ));
    }
    for (service, why) in &ended.never_reached {
        error(&format!(
            "{service} cannot be reached at {}: {why}; `conformant doctor` checks every target",
            url_of(service)
        ));
    }
    // A hook of a target that is gone fails, too.
    if ended.never_reached.is_empty() && ended.gone.is_none() {
        for hook in conformant_report::failed_hooks(record) {
            error(&hook_failure(&hook));
        }
    }
    if let Some(why) = record
        .ended_early
        .as_ref()
        .filter(|_| ended.time_limit.is_some())
    {
        error(why);
    }
    if let Some((service, why)) = &ended.gone {
        error(&format!(
            "{service} stopped answering, which ended the run: {why}; what was not judged before is inconclusive"
        ));
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
    note_other_encodings(run, record);
    run.signals.notice().into_iter().for_each(note);
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
    let what = if target.is_some_and(Target::has_credentials) {
        "the credentials that are configured"
    } else {
        "requests without credentials, because none are configured"
    };
    format!(
        "{service} answers nothing but 401 and 403 to {what} (targets.{service}: username and password, or headers): the run stops here"
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
