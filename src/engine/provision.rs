//! What a scenario needs of the target and no documented operation can make: above all flows.
//!
//! `${target.flow.flow_sid}` and `${target.flow.disposable_flow_sid}` come from the configuration,
//! else from the hook `create_flow` (and `publish_flow`), else, for the former, from the list.

use super::runner::Stop;
use super::session::{HookFault, Session};
use super::settings::Settings;
use super::template::{Scope, TemplateError};
use crate::judge::evidence::{HookCall, Span};
use crate::rulebook::scenario::Step;
use serde_json::{Map, Value, json};

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

/// Makes what the step reads and nobody has configured.
pub(super) fn provide(
    scope: &mut Scope<'_>,
    session: &dyn Session,
    number: usize,
    step: &Step,
    calls: &mut Vec<HookCall>,
) -> Result<(), Stop> {
    for key in ["flow_sid", "disposable_flow_sid"] {
        let name = format!("${{target.flow.{key}}}");
        let reads = step
            .with
            .values()
            .any(|v| v.as_str() == Some(name.as_str()));
        if !reads || !matches!(scope.fill_text(&name), Err(TemplateError::Missing(_))) {
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

/// Has a person or device do something, and keeps that it was so.
pub(super) fn hook(
    session: &dyn Session,
    step: usize,
    name: &str,
    arguments: Value,
    calls: &mut Vec<HookCall>,
) -> Result<Value, HookFault> {
    let began = session.now();
    let result = session.hook(name, &arguments);
    calls.push(HookCall {
        step,
        name: name.to_owned(),
        arguments,
        result: result.clone().map_err(|fault| fault.to_string()),
        span: Span {
            began,
            ended: session.now(),
        },
    });
    result
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

/// A published flow of the first page, else any.
fn listed(session: &dyn Session) -> Result<Option<String>, Stop> {
    let settings = session.settings();
    let Some(target) = settings.targets.get("flow") else {
        return Ok(None);
    };
    let (_, prefix) = super::runner::split_url(&target.url);
    let mut request = crate::http::Request::new("GET", format!("{prefix}/v1/Flows"));
    super::request::authorize(
        target,
        crate::rulebook::scenario::Credentials::Default,
        &mut request,
    )?;
    let response = session.send("flow", &request).map_err(|fault| {
        let why = format!("{}: {}", fault.cause, fault.detail);
        if fault.unreachable {
            Stop::Unreachable(why)
        } else {
            Stop::Inconclusive(why)
        }
    })?;
    let page = crate::json::parse(&response.body, crate::json::Limits::default()).ok();
    let flows = page
        .as_ref()
        .and_then(|p| p.value.get("flows"))
        .and_then(Value::as_array);
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
