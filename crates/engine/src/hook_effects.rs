//! Whether a hook had its effect, and a configured resource exists, where a scenario of a live target has findings.
//!
//! A hook that only answers looks like a defect of the service. What can be checked is checked: whether the service has what a
//! hook says it created. Otherwise the finding names the hook as the other possible cause.

use super::provision::{shows_key, whole_list};
use super::session::Session;
use super::stop::SET_UP_FAILED;
use conformant_base::clock::Timestamp;
use conformant_judge::evidence::{Event, Evidence, Exchange, HookCall};
use conformant_record::Finding;
use conformant_rulebook::hooks::ADVANCE_CLOCK;
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::{Action, Operation, Origin, Rulebook};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Kinds of findings: about a state that time changes, the state after a hook, and an item that a list lacks.
const UNTIMELY: &str = "untimely";
const STATE: &str = "state";
const NOT_LISTED: &str = "not-listed";
/// A request that must be accepted.
const REFUSED: &str = "refused";

/// The reason why a hook failed although it answered: it returned the key of a resource that the service does not have. A
/// service that shows it anywhere has it, also where one of its operations is defective.
pub(super) fn missing_creation(
    rulebook: &Rulebook,
    evidence: &Evidence,
    session: &dyn Session,
) -> Option<String> {
    calls(evidence).find_map(|(_, call)| {
        let hook = rulebook.index.hook(&call.name)?;
        let mut effects = hook.effects.iter();
        let (key, effect) = effects
            .by_ref()
            .filter(|effect| effect.does == Action::Makes)
            .find_map(|effect| Some((result_of(call, effect.key.as_ref()?)?, effect)))?;
        if evidence.exchanges.iter().any(|one| accepts(one, key)) {
            return None;
        }
        let absent = absent(rulebook, session, &effect.kind, key)?;
        Some(format!(
            "hook {} failed: it returned {key}, {absent}",
            call.name
        ))
    })
}

/// The reason why a scenario says nothing: the configuration names a resource that the service does not have. A service that
/// shows it anywhere has it.
pub(super) fn missing_setting(
    rulebook: &Rulebook,
    evidence: &Evidence,
    session: &dyn Session,
) -> Option<String> {
    let settings = session.settings();
    settings.targets.iter().find_map(|(service, target)| {
        target.values.iter().find_map(|(key, value)| {
            let kind = kind_of_setting(rulebook, service, key)?;
            let value = value.as_str()?;
            let is_sent = |one: &Exchange| {
                one.request.target.contains(value)
                    || String::from_utf8_lossy(&one.request.body).contains(value)
            };
            let exchanges = &evidence.exchanges;
            if !exchanges.iter().any(is_sent) || exchanges.iter().any(|one| accepts(one, value)) {
                return None;
            }
            let absent = absent(rulebook, session, kind, value)?;
            Some(format!(
                "{SET_UP_FAILED}: targets.{service}.{key} is {value}, {absent}"
            ))
        })
    })
}

/// The type of the resource that a setting names, if a hook can create one.
fn kind_of_setting<'r>(rulebook: &'r Rulebook, service: &str, key: &str) -> Option<&'r str> {
    let settings = &rulebook.index.get(service)?.settings;
    let (_, setting) = settings.iter().find(|(name, _)| name == key)?;
    let hook = rulebook.index.hook(&setting.provisioned.as_ref()?.hook)?;
    let mut effects = hook.effects.iter();
    let made = effects.find(|effect| effect.does == Action::Makes)?;
    Some(&made.kind)
}

/// The request that shows the resource that a setting names.
pub fn fetch_of_setting(
    rulebook: &Rulebook,
    service: &str,
    key: &str,
    value: &str,
) -> Option<String> {
    let kind = kind_of_setting(rulebook, service, key)?;
    let (fetch, _) = ways_to(rulebook, kind)?;
    path_with(fetch, value)
}

/// The operations that show one resource of a type, and all.
fn ways_to<'r>(rulebook: &'r Rulebook, kind: &str) -> Option<(&'r Operation, &'r Operation)> {
    let (service, _) = kind.split_once('/')?;
    let operations = || rulebook.services.get(service).into_iter();
    let operations = || operations().flat_map(|service| service.operations.values());
    let is_about = |operation: &&Operation| operation.resource.as_deref() == Some(kind);
    let fetch = operations()
        .filter(is_about)
        .find(|o| o.does == Action::Shows && o.path.matches('{').count() == 1)?;
    let list = operations()
        .filter(is_about)
        .find(|o| o.does == Action::Lists && !o.path.contains('{'))?;
    Some((fetch, list))
}

fn path_with(fetch: &Operation, key: &str) -> Option<String> {
    let (before, rest) = fetch.path.split_once('{')?;
    let (_, after) = rest.split_once('}')?;
    Some(format!("{before}{key}{after}"))
}

/// That a service does not have a resource, if its answers to two requests show it.
fn absent(rulebook: &Rulebook, session: &dyn Session, kind: &str, key: &str) -> Option<String> {
    let (service, _) = kind.split_once('/')?;
    let (fetch, list) = ways_to(rulebook, kind)?;
    let path = path_with(fetch, key)?;
    let is_absent = shows_key(session, service, &path, key)? == (404, false)
        && !shows_key(session, service, &whole_list(list), key)?.1;
    is_absent.then(|| {
        format!(
            "which {service} does not have: GET {path} answered 404, and {} lacks it",
            list.id
        )
    })
}

/// The reason why the hook that moves the clock failed although it answered: it reported no time, and the dates of an operation
/// that was called before and after it show less than half of it.
pub(super) fn clock_stood_still(evidence: &Evidence) -> Option<String> {
    const SECONDS_MIN: i64 = 5;
    let mut newest: BTreeMap<(&str, &str), (Timestamp, i64)> = BTreeMap::new();
    let mut moved = 0;
    for event in &evidence.events {
        match event {
            Event::Hook(call) if call.name == ADVANCE_CLOCK => {
                let is_unseen = call.result.as_ref().is_ok_and(|it| it.get("now").is_none());
                let seconds = call.arguments.get("seconds").and_then(Value::as_i64);
                moved += seconds.filter(|_| is_unseen).unwrap_or_default();
            }
            Event::Exchange(index) => {
                let exchange = evidence.exchanges.get(*index)?;
                let Some(date) = date_of_creation(exchange) else {
                    continue;
                };
                let operation = (exchange.service.as_str(), exchange.operation.as_str());
                let before = newest.insert(operation, (date, moved));
                let Some((before, moved_before)) = before else {
                    continue;
                };
                let (by, shown) = (moved - moved_before, date.duration_since(before));
                if by >= SECONDS_MIN && shown.as_secs() < by / 2 {
                    return Some(format!(
                        "hook {ADVANCE_CLOCK} failed: it was to move the clock by {by} s, and the dates of {} show {} s",
                        exchange.operation,
                        shown.as_secs()
                    ));
                }
            }
            Event::Hook(_) | Event::Delivery(_) | Event::Passed(_) => {}
        }
    }
    None
}

/// The newest date in the response to an accepted creation.
fn date_of_creation(exchange: &Exchange) -> Option<Timestamp> {
    let is_created = exchange.status() == Some(201);
    let document = exchange.document().filter(|_| is_created)?;
    let mut newest = None;
    let mut left: Vec<&Value> = vec![document];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(members) => left.extend(members.values()),
            Value::Array(items) => left.extend(items),
            Value::String(text) => newest = newest.max(text.parse::<Timestamp>().ok()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    newest
}

/// Adds the other possible cause of a finding to its message: the account that is configured, or a hook without effect.
pub(super) fn name_cause(
    rulebook: &Rulebook,
    evidence: &Evidence,
    is_clock_unseen: bool,
    finding: &mut Finding,
) {
    let of_account = finding.exchange.checked_sub(1);
    let of_account = of_account.and_then(|index| evidence.exchanges.get(index));
    if let Some(one) = of_account
        && one.credentials == Credentials::Account
        && finding.kind == REFUSED
        && matches!(one.status(), Some(401 | 403))
    {
        finding.message += &format!(
            " (or targets.{0}.account_sid and auth_token are not those of the account)",
            one.service
        );
    }
    if let Some(name) = cause(rulebook, evidence, is_clock_unseen, finding) {
        finding.message += &format!(" (or the hook {name} had no effect)");
    }
}

fn cause(
    rulebook: &Rulebook,
    evidence: &Evidence,
    is_clock_unseen: bool,
    finding: &Finding,
) -> Option<String> {
    if finding.kind == UNTIMELY {
        return is_clock_unseen.then(|| ADVANCE_CLOCK.to_owned());
    }
    let index = finding.exchange.checked_sub(1);
    let exchange = index.and_then(|index| evidence.exchanges.get(index));
    // The exchange or, without one, the hook whose result is wrong.
    let until = evidence.events.iter().position(|event| match event {
        Event::Exchange(of) => Some(*of) == index,
        Event::Hook(call) => index.is_none() && call.step == finding.step,
        Event::Delivery(_) | Event::Passed(_) => false,
    });
    let shown = until.and_then(|until| evidence.events.get(until));
    let until = until.unwrap_or(evidence.events.len());
    if finding.pointer == "/count" && exchange.is_none() {
        let are_too_few = finding.actual == "0" || finding.expected.starts_with("at least ");
        return are_too_few.then(|| causes(rulebook, evidence, finding.step))?;
    }
    let mut before: Vec<(usize, &HookCall)> = calls(evidence).collect();
    before.retain(|(event, _)| *event < until);
    let named = before.iter().rev().map(|(_, call)| *call).find(|call| {
        let after = format!(" after {}", call.name);
        let is_awaited = finding.kind == STATE && finding.expected.ends_with(&after);
        let lacks = |key: &str| finding.kind == NOT_LISTED && finding.expected.contains(key);
        let is_unknown = |key: &str| {
            exchange
                .is_some_and(|one| one.status() == Some(404) && one.request.target.contains(key))
        };
        is_awaited || results(call).any(|key| lacks(key) || is_unknown(key))
    });
    let last = named.or_else(|| {
        let acted = before.iter().rev().map(|(_, call)| *call);
        match (exchange, shown) {
            (Some(one), _) => changes_what_it_shows(rulebook, finding, one, acted),
            (None, Some(Event::Hook(shown))) => acts_on_what_it_shows(rulebook, shown, acted),
            (None, _) => None,
        }
    });
    last.map(|call| call.name.clone())
}

/// The last of the hooks that change resources of the type that a response shows, and have an argument in common with its
/// request. Not for rules about the form of a value, which no hook can explain.
fn changes_what_it_shows<'e>(
    rulebook: &Rulebook,
    finding: &Finding,
    exchange: &Exchange,
    mut acted: impl Iterator<Item = &'e HookCall>,
) -> Option<&'e HookCall> {
    let is_of_state = rulebook.rules.get(&finding.rule).is_some_and(|rule| {
        matches!(
            rule.origin,
            Origin::Written(_) | Origin::Operation { .. } | Origin::ListWalk { .. }
        )
    });
    let operation = rulebook.called(&exchange.service, &exchange.operation);
    let kind = operation.filter(|_| is_of_state)?.resource.as_deref()?;
    acted.find(|call| {
        let hook = rulebook.index.hook(&call.name);
        let mut effects = hook.into_iter().flat_map(|hook| &hook.effects);
        effects.any(|effect| effect.does != Action::Makes && effect.kind == kind)
            && texts(&call.arguments)
                .any(|text| exchange.sent.values().any(|sent| text_of(sent) == text))
    })
}

/// The last of the hooks with an effect on what another hook shows: both have an argument in common.
fn acts_on_what_it_shows<'e>(
    rulebook: &Rulebook,
    shown: &HookCall,
    mut acted: impl Iterator<Item = &'e HookCall>,
) -> Option<&'e HookCall> {
    acted.find(|call| {
        let hook = rulebook.index.hook(&call.name);
        hook.is_some_and(|hook| !hook.effects.is_empty())
            && texts(&call.arguments).any(|text| texts(&shown.arguments).any(|own| own == text))
    })
}

/// The texts and numbers in the arguments of a hook. Short ones are equal by chance.
fn texts(arguments: &Value) -> impl Iterator<Item = Cow<'_, str>> {
    const TEXT_BYTES_MIN: usize = 4;
    let members = arguments.as_object().into_iter();
    let texts = members.flat_map(|members| members.values()).map(text_of);
    texts.filter(|text| text.len() >= TEXT_BYTES_MIN)
}

fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        Value::Number(number) => Cow::Owned(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Cow::Borrowed(""),
    }
}

/// The hooks whose effects should have caused callbacks: the actions since the last write before the step that waits for
/// them, and those that set where callbacks go.
fn causes(rulebook: &Rulebook, evidence: &Evidence, step: usize) -> Option<String> {
    let is_write = |event: &&Event| match event {
        Event::Exchange(index) => {
            let exchange = &evidence.exchanges[*index];
            exchange.step < step && exchange.request.method != "GET"
        }
        Event::Hook(_) | Event::Delivery(_) | Event::Passed(_) => false,
    };
    let since = evidence.events.iter().rev().take_while(|e| !is_write(e));
    let mut names: BTreeSet<&str> = since
        .filter_map(Event::hook)
        .filter(|call| call.step < step)
        .map(|call| call.name.as_str())
        .filter(|name| {
            let hook = rulebook.index.hook(name);
            hook.is_some_and(|hook| !hook.effects.is_empty())
        })
        .collect();
    let before = calls(evidence).filter(|(_, call)| call.step < step);
    let sets_address =
        |call: &&HookCall| texts(&call.arguments).any(|text| text.starts_with("http"));
    names.extend(
        before
            .map(|(_, call)| call)
            .filter(sets_address)
            .map(|call| call.name.as_str()),
    );
    (!names.is_empty()).then(|| Vec::from_iter(names).join(" or "))
}

/// The hooks that succeeded, with the indexes of their events.
fn calls(evidence: &Evidence) -> impl Iterator<Item = (usize, &HookCall)> {
    evidence.hooks().filter(|(_, call)| call.result.is_ok())
}

fn result_of<'e>(call: &'e HookCall, member: &str) -> Option<&'e str> {
    call.result.as_ref().ok()?.get(member)?.as_str()
}

/// The keys in the result of a hook. Short texts occur elsewhere by chance.
fn results(call: &HookCall) -> impl Iterator<Item = &str> {
    const KEY_BYTES_MIN: usize = 8;
    let members = call
        .result
        .as_ref()
        .ok()
        .and_then(|result| result.as_object());
    let texts = members.into_iter().flat_map(|members| members.values());
    let texts = texts.filter_map(Value::as_str);
    texts.filter(|text| text.len() >= KEY_BYTES_MIN)
}

/// Whether a request was accepted that names the resource, or whose response contains it.
fn accepts(exchange: &Exchange, key: &str) -> bool {
    let Some(response) = exchange.response() else {
        return false;
    };
    let is_accepted = (200..300).contains(&response.status);
    let is_shown = || String::from_utf8_lossy(&response.body).contains(key);
    is_accepted && (exchange.request.target.contains(key) || is_shown())
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_base::http::{Request, Response};
    use conformant_judge::evidence::{Body, Outcome, Span};
    use conformant_judge::load::shared;
    use serde_json::json;
    use std::sync::Arc;

    fn created(evidence: &mut Evidence, date: &str) {
        let document = json!({"sid": "AB1", "date_created": date});
        evidence
            .events
            .push(Event::Exchange(evidence.exchanges.len()));
        evidence.exchanges.push(Exchange {
            step: 1,
            service: "service".to_owned(),
            operation: "create-thing".to_owned(),
            base: "http://127.0.0.1".to_owned(),
            request: Request::new("POST", "/Things"),
            outcome: Outcome::Answered {
                response: Response::new(201, "application/json", document.to_string()),
                body: Body::of(document),
            },
            ..Exchange::default()
        });
    }

    fn called(evidence: &mut Evidence, name: &str, arguments: Value, result: Value) {
        evidence.events.push(Event::Hook(HookCall {
            step: 1,
            name: name.to_owned(),
            arguments,
            result: Ok(Arc::new(result)),
            span: Span::UNKNOWN,
            race: None,
        }));
    }

    #[test]
    fn dates_show_whether_an_unseen_clock_moved() {
        for (result, later, stood_still) in [
            (json!({}), "2026-01-01T00:00:02Z", true),
            (json!({}), "2026-01-01T00:01:01Z", false),
            // A hook that reports the time is checked by it.
            (
                json!({"now": "2026-01-01T00:01:00Z"}),
                "2026-01-01T00:00:02Z",
                false,
            ),
        ] {
            let mut evidence = Evidence::default();
            created(&mut evidence, "2026-01-01T00:00:00Z");
            called(&mut evidence, ADVANCE_CLOCK, json!({"seconds": 60}), result);
            created(&mut evidence, later);
            let why = clock_stood_still(&evidence);
            assert_eq!(why.is_some(), stood_still, "{later}: {why:?}");
        }
    }

    #[test]
    fn a_finding_names_the_hook_on_whose_effect_it_depends() {
        let sid = "FW00000000000000000000000000000001";
        let mut evidence = Evidence::default();
        called(
            &mut evidence,
            "create_flow",
            json!({}),
            json!({"flow_sid": sid}),
        );
        called(&mut evidence, "approve_request", json!({}), json!({}));
        created(&mut evidence, "2026-01-01T00:00:00Z");
        let cause_of = |kind: &str, expected: &str, actual: &str, is_unseen| {
            let finding = Finding {
                kind: kind.to_owned(),
                expected: expected.to_owned(),
                actual: actual.to_owned(),
                exchange: 1,
                ..Finding::default()
            };
            cause(shared(), &evidence, is_unseen, &finding)
        };
        assert_eq!(
            cause_of(UNTIMELY, "expired", "pending", true).as_deref(),
            Some(ADVANCE_CLOCK)
        );
        assert_eq!(cause_of(UNTIMELY, "expired", "pending", false), None);
        let after = "\"approved\" after approve_request";
        assert_eq!(
            cause_of(STATE, after, "\"pending\"", false).as_deref(),
            Some("approve_request")
        );
        let listed = format!("{sid} in the list");
        assert_eq!(
            cause_of(NOT_LISTED, &listed, "a list without it", false).as_deref(),
            Some("create_flow")
        );
        assert_eq!(cause_of(STATE, "\"approved\"", "\"pending\"", false), None);
    }

    #[test]
    fn a_finding_about_what_a_hook_acts_on_names_the_hook() {
        let mut evidence = Evidence::default();
        let person = json!({"channel_sid": "CH1234", "identity": "somebody"});
        called(&mut evidence, "leave_channel", person, json!({}));
        created(&mut evidence, "2026-01-01T00:00:00Z");
        let exchange = &mut evidence.exchanges[0];
        exchange.service = "chat".to_owned();
        exchange.operation = "fetch-member".to_owned();
        exchange.sent = BTreeMap::from([("ChannelSid".to_owned(), json!("CH1234"))]);
        let phone = json!({"cellphone": "2015550123"});
        called(&mut evidence, "install_app", phone.clone(), json!({}));
        called(&mut evidence, "show_device", phone, json!({}));
        let Some(Event::Hook(shown)) = evidence.events.last_mut() else {
            unreachable!("it was called last");
        };
        shown.step = 2;
        let cause_of = |rule: &str, exchange: usize, step: usize| {
            let rule = rule.to_owned();
            let finding = Finding {
                rule,
                exchange,
                step,
                ..Finding::default()
            };
            cause(shared(), &evidence, false, &finding)
        };
        let member = cause_of("chat/fetch-member", 1, 1);
        assert_eq!(member.as_deref(), Some("leave_channel"));
        let shown = cause_of("auth/devices/request-shown", 0, 2);
        assert_eq!(shown.as_deref(), Some("install_app"));
        // No action of people makes a value ill-formed.
        assert_eq!(cause_of("chat/member/sid", 1, 1), None);
    }

    #[test]
    fn missing_callbacks_name_the_hooks_since_the_last_write() {
        let mut evidence = Evidence::default();
        called(&mut evidence, "deny_request", json!({}), json!({}));
        created(&mut evidence, "2026-01-01T00:00:00Z");
        called(&mut evidence, "scan_registration", json!({}), json!({}));
        called(&mut evidence, "approve_request", json!({}), json!({}));
        let hooks = Some("approve_request or scan_registration");
        for (expected, actual, hooks) in [
            ("at least 1", "0", hooks),
            ("at least 6", "3", hooks),
            ("at most 1", "2", None),
        ] {
            let finding = Finding {
                pointer: "/count".to_owned(),
                expected: expected.to_owned(),
                actual: actual.to_owned(),
                step: 2,
                ..Finding::default()
            };
            let cause = cause(shared(), &evidence, false, &finding);
            assert_eq!(cause.as_deref(), hooks, "{actual}");
        }
    }
}
