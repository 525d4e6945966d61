//! Provisioned and exclusive settings: prerequisites at the target that no documented operation can create.
//!
//! - A provisioned setting comes from the configuration, else from a hook, else from a list (`provisioned` in `service.yaml`).
//! - A value of an exclusive setting is freed where an operation was rejected because the value is in use.

use super::session::{Holder, HookFault, Session};
use super::settings::{ExclusiveSetting, Settings};
use super::stop::{SET_UP_FAILED, Stop};
use super::template::{Scope, TemplateError};
use conformant_base::http::{Request, Response};
use conformant_base::json;
use conformant_judge::evidence::{HookCall, Span};
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::service::{Condition, Exclusive, Found, Provisioned, ServiceIndex};
use conformant_rulebook::{Operation, ParameterLocation, Rulebook};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The configured values of all targets, as `target` in scenarios.
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

/// Provisions the unconfigured settings that the parameters of a step read.
pub(super) fn provide(
    scope: &mut Scope<'_>,
    (session, rulebook): (&dyn Session, &Rulebook),
    number: usize,
    with: &Map<String, Value>,
    calls: &mut Vec<HookCall>,
) -> Result<(), Stop> {
    let index = Arc::clone(&session.settings().index);
    for (service, file) in index.iter() {
        for (key, setting) in &file.settings {
            let Some(provisioned) = &setting.provisioned else {
                continue;
            };
            let name = format!("${{target.{service}.{key}}}");
            let reads = with.values().any(|value| reads(value, &name));
            if !reads || !matches!(scope.fill_text(&name), Err(TemplateError::Missing(_))) {
                continue;
            }
            let made = match made(session, number, provisioned, calls)? {
                Some(made) => Some(made),
                None => listed(session, rulebook, service, provisioned.found.as_ref())?,
            };
            let Some(made) = made else {
                return Err(Stop::NotApplicable(format!(
                    "hook missing: {} (or configure targets.{service}.{key})",
                    provisioned.hook
                )));
            };
            scope.set_target(service, key, json!(made));
        }
    }
    Ok(())
}

/// Whether any text within a value is the interpolation `name`.
fn reads(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text.contains(name),
        Value::Array(items) => items.iter().any(|item| reads(item, name)),
        Value::Object(members) => members.values().any(|member| reads(member, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Triggers the action of a person or device and records it.
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
        .and_then(|result| complete(&session.settings().index, name, result));
    calls.push(HookCall {
        step,
        name: name.to_owned(),
        arguments,
        result: match &result {
            Ok(value) => Ok(Arc::new(value.clone())),
            Err(fault) => Err(fault.to_string()),
        },
        span: Span {
            began,
            ended: session.now(),
        },
        race: None,
    });
    result
}

/// A result without a required part is a hook failure and no evidence about the target.
pub(super) fn complete(
    index: &ServiceIndex,
    name: &str,
    result: Value,
) -> Result<Value, HookFault> {
    let wanted = index.hook(name).map_or(&[][..], |hook| &hook.result);
    match wanted
        .iter()
        .find(|part| result.get(part.as_str()).is_none())
    {
        None => Ok(result),
        Some(part) => Err(HookFault::Failed(format!(
            "its result has no {part}; if it is elsewhere, configure `result: {{{part}: /POINTER}}`"
        ))),
    }
}

fn made(
    session: &dyn Session,
    step: usize,
    provisioned: &Provisioned,
    calls: &mut Vec<HookCall>,
) -> Result<Option<String>, Stop> {
    let Provisioned {
        hook: name, result, ..
    } = provisioned;
    if !session.has_hook(name) {
        return Ok(None);
    }
    let answer = match hook(session, step, name, json!({}), calls) {
        Ok(answer) => answer,
        Err(HookFault::Unsupported) => return Ok(None),
        Err(fault) => return Err(Stop::of_hook(name, &fault)),
    };
    let made = answer.get(result).and_then(Value::as_str);
    let Some(made) = made.map(str::to_owned) else {
        let why = HookFault::Failed(format!("its result has no {result}"));
        return Err(Stop::of_hook(name, &why));
    };
    if let Some(then) = provisioned.then.as_deref().filter(|t| session.has_hook(t)) {
        let mut named = Map::new();
        named.insert(result.clone(), json!(made));
        hook(session, step, then, Value::Object(named), calls)
            .map_err(|fault| Stop::of_hook(then, &fault))?;
    }
    Ok(Some(made))
}

/// Waits for or ends the other holders of a value; true if there were any. The target may reject a second holder as
/// long as the first one exists.
pub(super) fn free(
    session: &dyn Session,
    rulebook: &Rulebook,
    exclusive: ExclusiveSetting<'_>,
    (scope, value): (&str, &str),
    tries: usize,
) -> Result<bool, Stop> {
    /// Maximum number of tries while other scenarios wait for the same value, and while no holder is listed because it
    /// has just ended.
    const TRIES_MAX: usize = 10;
    const UNSEEN_TRIES_MAX: usize = 2;
    /// How long other scenarios may hold the value.
    const OTHERS_MAX: Duration = Duration::from_secs(15);
    /// How long other scenarios of the same run may hold the value.
    const SIBLINGS_MAX: Duration = Duration::from_secs(60);
    const LOOK_EVERY: Duration = Duration::from_millis(500);
    let ExclusiveSetting { service, key, how } = exclusive;
    // The scenario begins again, with numbers that no other scenario uses.
    let begin_again = || {
        session.make_phone_numbers_exclusive();
        Err(Stop::Inconclusive(format!(
            "another scenario uses the same value of targets.{service}.{key}"
        )))
    };
    if session.shares_phone_number(value) && session.is_held_elsewhere(value, scope) {
        return begin_again();
    }
    let holders = || -> Result<Option<Vec<Holder>>, Stop> {
        let here = holders(session, rulebook, exclusive, (scope, value))?;
        match here.is_empty() {
            true => holders_elsewhere(session, rulebook, exclusive, (scope, value)),
            false => Ok(Some(here)),
        }
    };
    let Some(mut busy) = holders()? else {
        return Err(Stop::Inconclusive(format!(
            "{} was rejected, and too many places may hold the value of targets.{service}.{key}",
            how.taken_by
        )));
    };
    if busy.is_empty() {
        let may_have_ended = session.may_be_needed_elsewhere("") && tries < UNSEEN_TRIES_MAX;
        if !may_have_ended && session.are_phone_numbers_exclusive() {
            return Err(Stop::Inconclusive(format!(
                "{} was rejected, and this target accepts a value of targets.{service}.{key} once at a time: no list shows \
                 what holds it",
                how.taken_by
            )));
        }
        return Ok(may_have_ended);
    }
    if tries >= TRIES_MAX {
        return Err(Stop::Inconclusive(format!(
            "others use the same value of targets.{service}.{key}: configure further values"
        )));
    }
    if busy.iter().any(|holder| holder.scope != scope) {
        session.make_phone_numbers_exclusive();
    }
    let is_assigned = session.phone_number().as_deref() == Some(value);
    if is_assigned && session.shares_phone_number(value) {
        return begin_again();
    }
    let is_a_siblings = |holder: &Holder| session.is_held_by_a_sibling(&holder.key);
    let scopes: BTreeSet<String> = busy.iter().map(|holder| holder.scope.clone()).collect();
    let mut waited = Duration::ZERO;
    loop {
        let is_anothers = |holder: &Holder| session.may_be_needed_elsewhere(&holder.key);
        let max = match (busy.iter().any(is_a_siblings), busy.iter().any(is_anothers)) {
            (true, _) => SIBLINGS_MAX,
            (false, true) => OTHERS_MAX,
            (false, false) => break,
        };
        if waited >= max {
            if max == SIBLINGS_MAX {
                return Err(Stop::Inconclusive(
                    "another scenario of this run uses the same phone number".to_owned(),
                ));
            }
            break;
        }
        session.wait(LOOK_EVERY);
        waited += LOOK_EVERY;
        busy.clear();
        for scope in &scopes {
            busy.extend(self::holders(session, rulebook, exclusive, (scope, value))?);
        }
    }
    if busy.is_empty() {
        return Ok(true);
    }
    let name = &how.freed_by.hook;
    if !session.has_hook(name) {
        return Err(Stop::Inconclusive(format!(
            "{} was rejected while the value of targets.{service}.{key} is in use already: supply the hook {name}, or \
             configure further values",
            how.taken_by
        )));
    }
    for holder in &busy {
        session
            .hook(name, &freeing(how, &holder.scope, &holder.key))
            .map_err(|fault| Stop::of_hook(name, &fault))?;
    }
    Ok(true)
}

/// The arguments of the hook that frees a value.
pub(super) fn freeing(how: &Exclusive, scope: &str, holder: &str) -> Value {
    let arguments = [(&how.freed_by.scope, scope), (&how.freed_by.holder, holder)];
    let member = |(name, value): (&String, &str)| (name.clone(), json!(value));
    Value::Object(arguments.into_iter().map(member).collect())
}

/// The holders of a value in a scope: those that the list shows, and those that this run made, which a list may show later.
fn holders(
    session: &dyn Session,
    rulebook: &Rulebook,
    exclusive: ExclusiveSetting<'_>,
    (scope, value): (&str, &str),
) -> Result<Vec<Holder>, Stop> {
    let ExclusiveSetting { service, how, .. } = exclusive;
    let held = &how.held;
    let Some(operation) = rulebook.operation(service, &held.list) else {
        return Ok(Vec::new());
    };
    let path = filled(&operation.path, (&how.scope, scope), "");
    let path = format!("{path}{}", whole_page(operation));
    let page = page(session, service, &path)?.unwrap_or_default();
    let busy = operation
        .items_of(&page)
        .iter()
        .filter(|item| shows(item, &held.busy))
        .filter(|item| item.pointer(&held.at).and_then(Value::as_str) == Some(value))
        .filter_map(|item| item.pointer(&held.key)?.as_str())
        .map(|key| Holder {
            scope: scope.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
            path: path_of_holder(rulebook, exclusive, (scope, key)).unwrap_or_default(),
        });
    let mut busy: Vec<Holder> = busy.collect();
    for made in session.made_holders(value) {
        let is_listed = busy.iter().any(|holder| holder.key == made.key);
        if made.scope == scope && !is_listed && is_busy(session, exclusive, &made) {
            busy.push(made);
        }
    }
    Ok(busy)
}

/// Whether a holder that this run made still holds its value.
fn is_busy(session: &dyn Session, exclusive: ExclusiveSetting<'_>, holder: &Holder) -> bool {
    let shown = page(session, exclusive.service, &holder.path);
    let shown = shown.ok().flatten();
    shown.is_some_and(|shown| shows(&shown, &exclusive.how.held.busy))
}

/// The holders of a value in other scopes, because a person may be in one execution of all flows. `None` if there are
/// too many scopes to read.
fn holders_elsewhere(
    session: &dyn Session,
    rulebook: &Rulebook,
    exclusive: ExclusiveSetting<'_>,
    (scope, value): (&str, &str),
) -> Result<Option<Vec<Holder>>, Stop> {
    /// Maximum number of scopes to read.
    const SCOPES_MAX: usize = 200;
    let mut busy = session.made_holders(value);
    busy.retain(|made| made.scope != scope && is_busy(session, exclusive, made));
    if !busy.is_empty() {
        return Ok(Some(busy));
    }
    let ExclusiveSetting { service, how, .. } = exclusive;
    let file = session.settings().index.get(service);
    let setting = file.and_then(|file| file.setting(&how.within));
    let found = setting.and_then(|setting| setting.provisioned.as_ref()?.found.as_ref());
    let Some((found, operation)) =
        found.and_then(|found| Some((found, rulebook.operation(service, &found.list)?)))
    else {
        return Ok(Some(Vec::new()));
    };
    let page = page(session, service, &whole_list(operation))?.unwrap_or_default();
    let scopes = operation.items_of(&page).iter();
    let scopes = scopes.filter_map(|item| item.pointer(&found.key)?.as_str());
    let scopes: Vec<&str> = scopes.filter(|other| *other != scope).collect();
    for other in scopes.iter().rev().take(SCOPES_MAX) {
        busy.extend(holders(session, rulebook, exclusive, (other, value))?);
    }
    let is_known = !busy.is_empty() || scopes.len() <= SCOPES_MAX;
    Ok(is_known.then_some(busy))
}

/// The path of the operation that shows one holder.
pub(super) fn path_of_holder(
    rulebook: &Rulebook,
    exclusive: ExclusiveSetting<'_>,
    (scope, holder): (&str, &str),
) -> Option<String> {
    let operation = rulebook.operation(exclusive.service, &exclusive.how.shown_by)?;
    let scope = (exclusive.how.scope.as_str(), scope);
    Some(filled(&operation.path, scope, holder))
}

/// Whether another scenario ended a holder that is still needed; `path` shows it.
pub(super) fn is_freed(session: &dyn Session, path: &str) -> bool {
    let Some(exclusive) = session.settings().exclusive() else {
        return false;
    };
    let shown = page(session, exclusive.service, path).ok().flatten();
    shown.is_some_and(|shown| shows(&shown, &exclusive.how.free))
}

/// A path with the scope filled in, and every other parameter replaced by the holder.
fn filled(path: &str, (name, scope): (&str, &str), holder: &str) -> String {
    let segments = path.split('/').map(|segment| {
        let parameter = segment
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        match parameter {
            Some(parameter) if parameter == name => scope,
            Some(_) => holder,
            None => segment,
        }
    });
    segments.collect::<Vec<_>>().join("/")
}

/// The query for the largest page.
fn whole_page(operation: &Operation) -> String {
    let mut parameters = operation.parameters.iter();
    let size = parameters.find_map(|parameter| {
        let most = parameter.schema.get("maximum")?;
        (parameter.place == ParameterLocation::Query).then(|| format!("?{}={most}", parameter.name))
    });
    size.unwrap_or_default()
}

fn shows(value: &Value, condition: &Condition) -> bool {
    value.pointer(&condition.at) == Some(&condition.is)
}

/// An item of the first page, preferably one that satisfies `prefer`.
fn listed(
    session: &dyn Session,
    rulebook: &Rulebook,
    service: &str,
    found: Option<&Found>,
) -> Result<Option<String>, Stop> {
    let Some(found) = found else { return Ok(None) };
    let Some(operation) = rulebook.operation(service, &found.list) else {
        return Ok(None);
    };
    let Some(page) = page(session, service, &operation.path)? else {
        return Ok(None);
    };
    let items = operation.items_of(&page);
    let is_preferred = |item: &&Value| {
        found
            .prefer
            .as_ref()
            .is_some_and(|condition| shows(item, condition))
    };
    let item = items.iter().find(is_preferred).or(items.first());
    let value = item.and_then(|item| item.pointer(&found.key)?.as_str());
    Ok(value.map(str::to_owned))
}

/// A page of a service; `None` if the answer is not JSON.
fn page(session: &dyn Session, service: &str, path: &str) -> Result<Option<Value>, Stop> {
    let Some(response) = get(session, service, path)? else {
        return Ok(None);
    };
    // Other failures mean an empty list. Whether the list must be readable is for the scenario to state.
    if matches!(response.status, 401 | 403) {
        return Err(Stop::Inconclusive(format!(
            "{SET_UP_FAILED}: GET {path} answered {}",
            response.status
        )));
    }
    let page = json::parse(&response.body, json::Limits::default()).ok();
    Ok(page.map(|page| page.value))
}

/// The response to a read of a service; `None` if the service is not configured.
fn get(session: &dyn Session, service: &str, path: &str) -> Result<Option<Response>, Stop> {
    let settings = session.settings();
    let Some(target) = settings.targets.get(service) else {
        return Ok(None);
    };
    let (_, prefix) = super::link::split_url(&target.url);
    let mut request = Request::new("GET", format!("{prefix}{path}"));
    super::request::authorize(target, Credentials::Default, &mut request)?;
    let response = session.send(service, &request).map_err(|fault| {
        let why = fault.to_string();
        if fault.cause.is_unreachable() {
            Stop::Unreachable(why)
        } else {
            Stop::Inconclusive(why)
        }
    })?;
    let response = super::body::decoded(response);
    session.answered(service, path, Credentials::Default, &response);
    Ok(Some(response))
}

/// The status of a read, and whether it was accepted with a text in its response; `None` without a response.
pub(super) fn shows_key(
    session: &dyn Session,
    service: &str,
    path: &str,
    key: &str,
) -> Option<(u16, bool)> {
    let response = get(session, service, path).ok().flatten()?;
    let is_accepted = (200..300).contains(&response.status);
    let is_shown = is_accepted && String::from_utf8_lossy(&response.body).contains(key);
    Some((response.status, is_shown))
}

/// The path of a list with the query for its largest page.
pub(super) fn whole_list(operation: &Operation) -> String {
    format!("{}{}", operation.path, whole_page(operation))
}
