//! What a scenario needs of the target and no documented operation can make: above all flows.
//!
//! `${target.flow.flow_sid}` and `${target.flow.disposable_flow_sid}` come from the configuration,
//! else from the hook `create_flow` (and `publish_flow`), else, for the former, from the list.

use super::session::{HookFault, Session};
use super::settings::Settings;
use super::stop::{SET_UP_FAILED, Stop};
use super::template::{Scope, TemplateError};
use conformant_judge::evidence::{HookCall, Span};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The configured values of every target, as `target` in scenarios.
pub(super) fn values(settings: &Settings) -> Value {
    let services = settings.targets.iter().map(|(name, target)| {
        let mut values = target.values.clone();
        if let Some((username, _)) = &target.basic {
            values.entry("username").or_insert_with(|| json!(username));
        }
        (name.clone(), Value::Object(values))
    });
    let mut values: Map<String, Value> = services.collect();
    values.insert("people".to_owned(), settings.people.values());
    Value::Object(values)
}

/// Makes what the parameters of a step read and nobody has configured.
pub(super) fn provide(
    scope: &mut Scope<'_>,
    session: &dyn Session,
    number: usize,
    with: &Map<String, Value>,
    calls: &mut Vec<HookCall>,
) -> Result<(), Stop> {
    for (key, name) in [
        ("flow_sid", "${target.flow.flow_sid}"),
        ("disposable_flow_sid", "${target.flow.disposable_flow_sid}"),
    ] {
        let reads = with.values().any(|value| reads(value, name));
        if !reads || !matches!(scope.fill_text(name), Err(TemplateError::Missing(_))) {
            continue;
        }
        let sid = match made(session, number, calls)? {
            Some(sid) => Some(sid),
            None if key == "flow_sid" => listed(session)?,
            None => None,
        };
        let Some(sid) = sid else {
            return Err(Stop::NotApplicable(format!(
                "hook missing: create_flow (or configure targets.flow.{key})"
            )));
        };
        scope.set_target("flow", key, json!(sid));
    }
    Ok(())
}

/// Whether a text within a value reads that.
fn reads(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text.contains(name),
        Value::Array(items) => items.iter().any(|item| reads(item, name)),
        Value::Object(members) => members.values().any(|member| reads(member, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Has a person or device do something, and keeps that it was so.
pub(super) fn hook(
    session: &dyn Session,
    step: usize,
    name: &str,
    arguments: Value,
    calls: &mut Vec<HookCall>,
) -> Result<Value, HookFault> {
    let began = session.now();
    let result = session
        .hook(name, &arguments)
        .and_then(|result| complete(name, result));
    calls.push(HookCall {
        step,
        name: name.to_owned(),
        arguments,
        result: match &result {
            Ok(value) => Ok(std::sync::Arc::new(value.clone())),
            Err(fault) => Err(fault.to_string()),
        },
        span: Span {
            began,
            ended: session.now(),
        },
    });
    result
}

/// A result that lacks what the hook is there for says nothing of the target.
fn complete(name: &str, result: Value) -> Result<Value, HookFault> {
    let wanted = conformant_rulebook::hooks::find(name).map_or(&[][..], |hook| hook.result);
    match wanted.iter().find(|part| result.get(part).is_none()) {
        None => Ok(result),
        Some(part) => Err(HookFault::Failed(format!(
            "its result has no {part}; where it stands elsewhere, say so: `result: {{{part}: /POINTER}}`"
        ))),
    }
}

fn made(
    session: &dyn Session,
    step: usize,
    calls: &mut Vec<HookCall>,
) -> Result<Option<String>, Stop> {
    if !session.has_hook("create_flow") {
        return Ok(None);
    }
    let answer = match hook(session, step, "create_flow", json!({}), calls) {
        Ok(answer) => answer,
        Err(HookFault::Unsupported) => return Ok(None),
        Err(fault) => return Err(Stop::of_hook("create_flow", &fault)),
    };
    let sid = answer
        .get("flow_sid")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let Some(sid) = sid else {
        let why = HookFault::Failed("its result has no flow_sid".to_owned());
        return Err(Stop::of_hook("create_flow", &why));
    };
    if session.has_hook("publish_flow") {
        let named = json!({"flow_sid": sid});
        hook(session, step, "publish_flow", named, calls)
            .map_err(|fault| Stop::of_hook("publish_flow", &fault))?;
    }
    Ok(Some(sid))
}

/// Ends the executions of somebody who is in a flow; true when there were any. It is legal to refuse
/// a second one while the first goes on.
pub(super) fn end_executions_of(
    session: &dyn Session,
    flow_sid: &str,
    to: &str,
    tries: usize,
) -> Result<bool, Stop> {
    /// How often a person is tried for whom others wait too, and how often where nobody is seen in the flow: who was
    /// may have left just now.
    const TRIES_MAX: usize = 10;
    const UNSEEN_TRIES_MAX: usize = 2;
    /// For how long others may go on with an execution of theirs.
    const OTHERS_MAX: Duration = Duration::from_secs(15);
    const LOOK_EVERY: Duration = Duration::from_millis(500);
    let mut waited = Duration::ZERO;
    let mut busy = active_executions_of(session, flow_sid, to)?;
    if busy.is_empty() {
        return Ok(session.may_be_anothers("") && tries < UNSEEN_TRIES_MAX);
    }
    if tries >= TRIES_MAX {
        let why =
            "others have the same person in the flow: configure further numbers in targets.flow.to";
        return Err(Stop::Inconclusive(why.to_owned()));
    }
    if session.shares_person() {
        session.person_is_busy();
        let why = "another story has the same person in the flow".to_owned();
        return Err(Stop::Inconclusive(why));
    }
    while busy.iter().any(|sid| session.may_be_anothers(sid)) && waited < OTHERS_MAX {
        session.wait(LOOK_EVERY);
        waited += LOOK_EVERY;
        busy = active_executions_of(session, flow_sid, to)?;
    }
    if busy.is_empty() {
        return Ok(true);
    }
    if !session.has_hook("end_execution") {
        return Err(Stop::Inconclusive(
            "an execution was refused while its person is in the flow already: supply the hook \
             end_execution, or further numbers in targets.flow.to"
                .to_owned(),
        ));
    }
    for sid in &busy {
        let arguments = json!({"flow_sid": flow_sid, "execution_sid": sid});
        session
            .hook("end_execution", &arguments)
            .map_err(|fault| Stop::of_hook("end_execution", &fault))?;
    }
    Ok(true)
}

fn active_executions_of(
    session: &dyn Session,
    flow_sid: &str,
    to: &str,
) -> Result<Vec<String>, Stop> {
    let path = format!("/v1/Flows/{flow_sid}/Executions?PageSize=1000");
    let page = page(session, &path)?.unwrap_or_default();
    let listed = page.get("executions").and_then(Value::as_array);
    let text = |one: &Value, key: &str| one.get(key).and_then(Value::as_str).map(str::to_owned);
    let active = listed
        .into_iter()
        .flatten()
        .filter(|one| text(one, "status").as_deref() == Some("active"))
        .filter(|one| text(one, "contact_channel_address").as_deref() == Some(to))
        .filter_map(|one| text(one, "sid"));
    Ok(active.collect())
}

/// Whether an execution that is still needed was ended by somebody else.
pub(super) fn is_ended(session: &dyn Session, flow_sid: &str, execution_sid: &str) -> bool {
    let path = format!("/v1/Flows/{flow_sid}/Executions/{execution_sid}");
    let shown = page(session, &path).ok().flatten();
    shown.is_some_and(|shown| shown.get("status").and_then(Value::as_str) == Some("ended"))
}

/// A published flow of the first page, else any.
fn listed(session: &dyn Session) -> Result<Option<String>, Stop> {
    let Some(page) = page(session, "/v1/Flows")? else {
        return Ok(None);
    };
    let flows = page.get("flows").and_then(Value::as_array);
    let flows = flows.map_or(&[][..], Vec::as_slice);
    let published = flows
        .iter()
        .find(|f| f.get("status").and_then(Value::as_str) == Some("published"));
    let sid = published
        .or(flows.first())
        .and_then(|f| f.get("sid"))
        .and_then(Value::as_str);
    Ok(sid.map(str::to_owned))
}

/// A page of the flow service; nothing where the answer is none.
fn page(session: &dyn Session, path: &str) -> Result<Option<Value>, Stop> {
    let settings = session.settings();
    let Some(target) = settings.targets.get("flow") else {
        return Ok(None);
    };
    let (_, prefix) = super::link::split_url(&target.url);
    let mut request = conformant_base::http::Request::new("GET", format!("{prefix}{path}"));
    super::request::authorize(
        target,
        conformant_rulebook::scenario::Credentials::Default,
        &mut request,
    )?;
    let response = session.send("flow", &request).map_err(|fault| {
        let why = format!("{}: {}", fault.cause, fault.detail);
        if fault.cause.is_unreachable() {
            Stop::Unreachable(why)
        } else {
            Stop::Inconclusive(why)
        }
    })?;
    session.answered("flow", path, response.status);
    // What else is no page holds nothing; that the flow may not be listed at all is for the story to say.
    if matches!(response.status, 401 | 403) {
        return Err(Stop::Inconclusive(format!(
            "{SET_UP_FAILED}: GET {path} answered {}",
            response.status
        )));
    }
    let page =
        conformant_base::json::parse(&response.body, conformant_base::json::Limits::default()).ok();
    Ok(page.map(|page| page.value))
}
