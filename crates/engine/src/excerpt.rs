//! Excerpts of a scenario's evidence for the record: the exchanges and payloads of its findings.
//!
//! Truncated here to a bounded size. Redacted later with the rest of the record.

use conformant_base::json;
use conformant_base::text;
use conformant_judge::Judgment;
use conformant_judge::evidence::{Body, Delivery, Event, Evidence, Exchange, HookCall, Outcome};
use conformant_record::{Finding, PayloadOrigin, ShownExchange, ShownPayload};
use conformant_rulebook::expect::{Comparison, Expect};
use conformant_rulebook::hooks::ADVANCE_CLOCK;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a body that is not a document.
pub(super) const TEXT_BYTES_MAX: usize = 1_000;
/// Bytes of one header line.
const HEADER_BYTES_MAX: usize = 300;
/// Header lines of one request.
const HEADERS_MAX: usize = 20;
/// Exchanges before and after the one of a finding.
const BEFORE_MAX: usize = 16;
const AFTER_MAX: usize = 2;
/// Relevant header fields of a response.
const RESPONSE_HEADERS: [&str; 5] = [
    "content-type",
    "link",
    "location",
    "retry-after",
    "www-authenticate",
];

/// Exchanges, callbacks, events and hook results of the first finding of each rule, and the exchanges around it.
#[derive(Debug, Default)]
pub struct Shown {
    /// By number and pointer, with the rules that the excerpt illustrates.
    pub(super) exchanges: BTreeMap<(usize, String), (BTreeSet<String>, ShownExchange)>,
    /// By rule.
    pub(super) payloads: BTreeMap<String, ShownPayload>,
}

impl Shown {
    /// Excerpts for the first finding of each rule.
    pub(super) fn of(evidence: &Evidence, judgment: &Judgment) -> Self {
        let mut shown = Self::default();
        let mut rules = BTreeSet::new();
        for finding in &judgment.findings {
            if !rules.insert(&finding.rule) {
                continue;
            }
            let mut number = finding.exchange;
            let mut pointer = finding.pointer.as_str();
            if number == 0 {
                let payload = payload(evidence, finding);
                number = payload.as_ref().map_or(0, |payload| payload.cause);
                pointer = "";
                shown
                    .payloads
                    .extend(payload.map(|payload| (finding.rule.clone(), payload)));
            }
            if let Some(exchange) = number
                .checked_sub(1)
                .and_then(|n| evidence.exchanges.get(n))
            {
                let entry = shown.exchanges.entry((number, pointer.to_owned()));
                let entry =
                    entry.or_insert_with(|| (BTreeSet::new(), brief(exchange, number, pointer)));
                entry.0.insert(finding.rule.clone());
            }
            shown.add_surroundings(evidence, finding);
            shown.add(evidence, finding.earlier_exchange, &finding.rule);
        }
        shown
    }

    /// Adds the exchanges around a finding, as far as another finding does not illustrate them.
    fn add_surroundings(&mut self, evidence: &Evidence, finding: &Finding) {
        let all = &evidence.exchanges;
        let of_finding = match finding.exchange {
            0 => all.iter().filter(|e| e.step <= finding.step).count(),
            number => number,
        };
        let first = of_finding.saturating_sub(BEFORE_MAX).max(1);
        let last = (of_finding + AFTER_MAX).min(all.len());
        for number in first..=last {
            self.add(evidence, number, &finding.rule);
        }
    }

    /// Adds an exchange, unless a finding illustrates it; none for the number 0.
    fn add(&mut self, evidence: &Evidence, number: usize, rule: &str) {
        let index = number.checked_sub(1);
        let Some(exchange) = index.and_then(|index| evidence.exchanges.get(index)) else {
            return;
        };
        let from = (number, String::new());
        let known = self.exchanges.range_mut(from.clone()..).next();
        let known = known.filter(|((found, _), _)| *found == number);
        let rules = match known {
            Some((_, (rules, _))) => rules,
            None => {
                let excerpt = brief(exchange, number, "");
                &mut self
                    .exchanges
                    .entry(from)
                    .or_insert((BTreeSet::new(), excerpt))
                    .0
            }
        };
        rules.insert(rule.to_owned());
    }

    /// Rules with an excerpt.
    pub(super) fn rules(&self) -> BTreeSet<&str> {
        let of_exchanges = self.exchanges.values().flat_map(|(rules, _)| rules);
        of_exchanges
            .chain(self.payloads.keys())
            .map(String::as_str)
            .collect()
    }

    /// Keeps the excerpts of these rules.
    pub(super) fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.exchanges
            .retain(|_, (rules, _)| rules.iter().any(|rule| is_kept(rule)));
        self.payloads.retain(|rule, _| is_kept(rule));
    }

    /// Adds an offset to the numbers of exchanges.
    pub(super) fn count_from(&mut self, before: usize) {
        let counted = std::mem::take(&mut self.exchanges).into_iter();
        self.exchanges = counted
            .map(|((number, pointer), (rules, mut exchange))| {
                exchange.exchange += before;
                ((number + before, pointer), (rules, exchange))
            })
            .collect();
        for payload in self.payloads.values_mut() {
            if payload.cause > 0 {
                payload.cause += before;
            }
        }
    }

    /// Adds the excerpts of another scenario.
    pub(super) fn append(&mut self, other: Self) {
        self.exchanges.extend(other.exchanges);
        self.payloads.extend(other.payloads);
    }
}

fn brief(exchange: &Exchange, number: usize, pointer: &str) -> ShownExchange {
    let request = &exchange.request;
    let line = |(name, value): (&str, &str)| {
        text::excerpt(&format!("{name}: {value}"), HEADER_BYTES_MAX).into_owned()
    };
    let mut shown = ShownExchange {
        exchange: number,
        pointer: pointer.to_owned(),
        operation: name_of(exchange),
        method: request.method.clone(),
        url: text::excerpt(
            &format!("{}{}", exchange.base, request.target),
            TEXT_BYTES_MAX,
        )
        .into_owned(),
        request_headers: request.headers.iter().take(HEADERS_MAX).map(line).collect(),
        request_body: body_text(&request.body),
        milliseconds: usize::try_from(milliseconds(exchange)).unwrap_or_default(),
        ..ShownExchange::default()
    };
    match &exchange.outcome {
        Outcome::Fault {
            cause,
            detail,
            partial,
        } => {
            shown.fault = format!("{cause}: {detail}");
            if let Some(partial) = partial {
                shown.status = partial.status;
                shown.response_bytes = partial.body.len();
                shown.response_body = body_text(&partial.body);
            }
        }
        Outcome::Answered { response, body } => {
            shown.status = response.status;
            shown.oddities.clone_from(&response.oddities);
            let headers = response.headers.iter();
            // In one spelling, since that on the wire varies.
            shown.response_headers = headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value))
                .filter(|(name, _)| RESPONSE_HEADERS.contains(&name.as_str()))
                .map(|(name, value)| line((&name, value)))
                .collect();
            shown.response_bytes = response.body.len();
            // A finding about a whole XML response shows what was sent; a place in it is shown in the JSON that it is read as.
            let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&response.body).is_ok();
            if let Body::Document { value, .. } = body
                && (is_json || !pointer.is_empty())
            {
                (shown.response_body, shown.marked) = json::window(value, pointer);
            } else {
                shown.response_body = body_text(&response.body);
            }
        }
    }
    shown
}

/// Its duration on the run's clock.
pub(super) fn milliseconds(exchange: &Exchange) -> u64 {
    let took = exchange.span.ended.duration_since(exchange.span.began);
    u64::try_from(took.as_millis()).unwrap_or_default()
}

pub(super) fn name_of(exchange: &Exchange) -> String {
    if exchange.operation.is_empty() {
        "get".to_owned()
    } else {
        format!("{}/{}", exchange.service, exchange.operation)
    }
}

/// A body as text: one form parameter per line, JSON indented, other text as it is.
pub(super) fn body_text(bytes: &[u8]) -> String {
    let Ok(body) = std::str::from_utf8(bytes) else {
        return format!("{} bytes that are not text", bytes.len());
    };
    if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str::<Value>(body) {
        return json::window(&value, "").0;
    }
    let is_form = body.contains('=') && !body.contains(['\n', ' ', '<', '{']);
    let body = text::excerpt(body, TEXT_BYTES_MAX);
    if is_form {
        body.replace('&', "\n&")
    } else {
        body.into_owned()
    }
}

/// The callback, event or hook result of a finding without an exchange.
fn payload(evidence: &Evidence, finding: &Finding) -> Option<ShownPayload> {
    let of_step = |step: usize| step == finding.step;
    let statements = || {
        let statements = evidence.statements.iter();
        statements.filter(|s| of_step(s.step) && s.exchange.is_none())
    };
    let event = finding.event.checked_sub(1);
    let of_event = || match evidence.events.get(event?)? {
        Event::Hook(call) => {
            let result = call.result.as_ref().ok()?;
            Some((PayloadOrigin::Hook(call.name.clone()), Value::clone(result)))
        }
        Event::Delivery(delivery) => Some((PayloadOrigin::Callback, view_of(delivery))),
        Event::Exchange(_) | Event::Passed(_) => None,
    };
    let event = event.or_else(|| {
        let result = statements().next().map(|s| &s.result);
        result.and_then(|result| hook_at(evidence, finding.step, result))
    });
    let hook = event.and_then(|event| evidence.hook(event));
    let of_statement = hook.map_or(PayloadOrigin::Callback, |hook| {
        PayloadOrigin::Hook(hook.name.clone())
    });
    let payloads = evidence.payloads.iter().filter(|p| of_step(p.step));
    let mut values = of_event()
        .into_iter()
        .chain(statements().map(|s| (of_statement.clone(), callbacks_of(&s.result))))
        .chain(payloads.map(|p| {
            let kind = PayloadOrigin::Event(p.kind.clone());
            (kind, Value::clone(&p.value))
        }));
    let fitting = |value: &Value| value.pointer(&finding.pointer).is_some();
    let (what, (body, marked)) = if let Some((kind, shown)) = collected(evidence, finding) {
        (PayloadOrigin::Event(kind.to_owned()), shown)
    } else {
        let first = values.next()?;
        let (what, value) = if fitting(&first.1) || finding.event > 0 {
            first
        } else {
            values.find(|(_, value)| fitting(value)).unwrap_or(first)
        };
        (what, json::window(&value, &finding.pointer))
    };
    let is_missing = hook.is_none()
        && statements().any(|s| s.expect.rule == finding.rule && is_missing(&s.expect, &s.result));
    Some(ShownPayload {
        scenario: finding.scenario.clone(),
        step: finding.step,
        pointer: finding.pointer.clone(),
        what,
        missing: is_missing,
        body,
        marked,
        cause: request_before(evidence, finding.step, event),
        action: action_before(evidence, finding.step, hook).unwrap_or_default(),
    })
}

/// A callback as findings about the request point into it.
fn view_of(delivery: &Delivery) -> Value {
    let request = &delivery.request;
    let body = match &delivery.document {
        Some(document) => Value::clone(document),
        None => json!(body_text(&request.body)),
    };
    json!({"method": request.method, "path": request.target, "body": body})
}

/// The type and an excerpt of the collected event that a finding is about. The excerpt is empty if the finding is about
/// all of them, such as a missing one: none of the others is to blame.
fn collected<'e>(evidence: &'e Evidence, finding: &Finding) -> Option<(&'e str, (String, usize))> {
    let place = finding.pointer.strip_prefix("/events")?;
    let hooks = evidence.events.iter().filter_map(Event::hook);
    let mut lists = hooks
        .filter(|call| call.step == finding.step)
        .filter_map(|call| call.result.as_ref().ok()?.get("events")?.as_array());
    let events = lists.next_back()?;
    let mut parts = place.splitn(3, '/').skip(1);
    let number = parts.next().and_then(|number| number.parse::<usize>().ok());
    let Some(event) = number.and_then(|number| events.get(number)) else {
        return Some(("events", (String::new(), 0)));
    };
    let inside = parts
        .next()
        .map_or_else(String::new, |inside| format!("/{inside}"));
    let kind = event.get("type").and_then(Value::as_str);
    Some((kind.unwrap_or("event"), json::window(event, &inside)))
}

/// Hooks that the harness calls in steps of any kind.
const OF_HARNESS: [&str; 6] = [
    "collect_events",
    "set_callback",
    ADVANCE_CLOCK,
    "lease",
    "call_back",
    "reset",
];

fn is_action(call: &HookCall) -> bool {
    !OF_HARNESS.contains(&call.name.as_str())
}

/// The event of the hook of a step that returned this result, or else the first hook of the step.
fn hook_at(evidence: &Evidence, step: usize, result: &Value) -> Option<usize> {
    let mut hooks = evidence
        .hooks()
        .filter(|(_, call)| call.step == step && is_action(call));
    let has_result = |call: &HookCall| call.result.as_ref().is_ok_and(|own| **own == *result);
    let first = hooks.next()?;
    let found = std::iter::once(first)
        .chain(hooks)
        .find(|(_, call)| has_result(call));
    Some(found.unwrap_or(first).0)
}

/// Whether a violated statement about callbacks expects one that did not come.
fn is_missing(expect: &Expect, result: &Value) -> bool {
    let expects_more = matches!(
        expect.is,
        Comparison::AtLeast(_) | Comparison::Includes(_) | Comparison::Absent(false)
    );
    expects_more || json::expand(result, &expect.at).is_empty()
}

/// The call of this hook, or else the last action of a person or device before the end of a step. Hooks for the harness
/// itself do not count.
fn action_before(evidence: &Evidence, step: usize, hook: Option<&HookCall>) -> Option<String> {
    let hooks = evidence.events.iter().filter_map(Event::hook);
    let actions: Vec<_> = hooks
        .filter(|call| call.step <= step && is_action(call))
        .collect();
    let last = hook.or_else(|| actions.last().copied())?;
    let words = |call: &HookCall| format!("{} {}", call.name, shortened(&call.arguments));
    let raced = actions
        .iter()
        .filter(|call| last.race.is_some() && call.race.is_some() && call.step == last.step);
    let raced: Vec<String> = raced.map(|call| words(call)).collect();
    Some(match raced.as_slice() {
        [] | [_] => words(last),
        _ => format!("{} at the same time", raced.join(" and ")),
    })
}

/// Arguments of a hook as JSON that stays well-formed: long texts and further members are left out with a mark.
fn shortened(arguments: &Value) -> String {
    const MEMBERS_MAX: usize = 8;
    const TEXT_CHARACTERS_MAX: usize = 80;
    let Some(members) = arguments.as_object() else {
        return json::short(arguments);
    };
    let shown = members.iter().take(MEMBERS_MAX).map(|(name, value)| {
        let value = match value.as_str() {
            Some(text) if text.chars().count() > TEXT_CHARACTERS_MAX => {
                let begin: String = text.chars().take(TEXT_CHARACTERS_MAX).collect();
                json!(format!("{begin}…")).to_string()
            }
            _ => json::short(value),
        };
        format!("{}:{value}", json!(name))
    });
    let mut shown: Vec<String> = shown.collect();
    if let Some(more) = members.len().checked_sub(MEMBERS_MAX).filter(|n| *n > 0) {
        shown.push(format!("… {}", text::count(more, "more argument")));
    }
    format!("{{{}}}", shown.join(","))
}

/// The result of an `await` step without headers.
fn callbacks_of(result: &Value) -> Value {
    let Some(requests) = result.get("requests").and_then(Value::as_array) else {
        return result.clone();
    };
    let requests: Vec<Value> = requests
        .iter()
        .map(|request| {
            let mut request = request.clone();
            if let Value::Object(members) = &mut request {
                members.retain(|name, value| name != "headers" && *value != json!({}));
            }
            request
        })
        .collect();
    json!({"count": requests.len(), "requests": requests})
}

/// The number of the last request before an event, or else before the end of a step, preferably one that changed
/// something.
fn request_before(evidence: &Evidence, step: usize, event: Option<usize>) -> usize {
    let is_later = |exchange: usize| {
        let later = event.and_then(|event| evidence.events.get(event..));
        let mut later = later.into_iter().flatten();
        later.any(|event| matches!(event, Event::Exchange(index) if *index == exchange))
    };
    let mut before = evidence
        .exchanges
        .iter()
        .enumerate()
        .filter(|(index, e)| e.step <= step && !is_later(*index));
    let last = before.clone().next_back();
    let change = before.rfind(|(_, e)| e.request.method != "GET");
    change.or(last).map_or(0, |(index, _)| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_base::clock::Timestamp;
    use conformant_judge::evidence::{Payload, Span};
    use serde_json::Map;
    use std::sync::Arc;

    #[test]
    fn arguments_of_a_hook_stay_json_when_they_are_long() {
        let long = json!({"qr": "x".repeat(200), "user_name": "ann", "flags": [true]});
        let shown: Value = serde_json::from_str(&shortened(&long)).expect("it is JSON");
        let begin = format!("{}…", "x".repeat(80));
        assert_eq!(
            shown,
            json!({"qr": begin, "user_name": "ann", "flags": [true]})
        );
        let many: Map<String, Value> = (0..10).map(|n| (format!("a{n}"), json!(n))).collect();
        let shown = shortened(&json!(many));
        assert!(shown.ends_with(r#""a7":7,… 2 more arguments}"#), "{shown}");
    }

    #[test]
    fn a_finding_about_collected_events_shows_its_event_or_none() {
        let attempt = json!({"attempt": 1});
        let events = json!({"events": [{"type": "queued", "payload": {}}, {"type": "sent", "payload": attempt}]});
        let evidence = Evidence {
            payloads: vec![Payload {
                kind: "events/MessageQueued/1".to_owned(),
                value: Arc::new(json!({})),
                notes: Vec::new(),
                step: 2,
            }],
            events: vec![Event::Hook(HookCall {
                step: 2,
                name: "collect_events".to_owned(),
                arguments: json!({}),
                result: Ok(Arc::new(events)),
                span: Span::at(Timestamp::UNIX_EPOCH),
                race: None,
            })],
            ..Evidence::default()
        };
        let shown = |pointer: &str| {
            let finding = Finding {
                step: 2,
                pointer: pointer.to_owned(),
                ..Finding::default()
            };
            payload(&evidence, &finding).unwrap()
        };
        let one = shown("/events/1/payload/attempt");
        assert_eq!(one.what, PayloadOrigin::Event("sent".to_owned()));
        assert!(
            one.body
                .lines()
                .nth(one.marked - 1)
                .unwrap()
                .contains("\"attempt\": 1")
        );
        for pointer in ["/events", "/events/*/payload/attempt"] {
            let all = shown(pointer);
            assert_eq!(all.what, PayloadOrigin::Event("events".to_owned()));
            assert_eq!((&*all.body, all.marked), ("", 0));
        }
    }

    #[test]
    fn a_callback_is_missing_where_the_statement_expects_one_more() {
        let none = json!({"count": 0, "requests": []});
        let one = json!({"count": 1, "requests": [{"details": {}}]});
        for (expect, result, expected) in [
            (json!({"at": "/count", "at-least": 1}), &none, true),
            (json!({"at": "/requests/0/json", "equals": 1}), &none, true),
            (
                json!({"at": "/requests/*/details", "includes": 1}),
                &one,
                true,
            ),
            (
                json!({"at": "/requests/*/details", "excludes": {}}),
                &one,
                false,
            ),
            (json!({"at": "/count", "at-most": 0}), &one, false),
        ] {
            let mut expect = expect;
            expect["rule"] = json!("x/y");
            let expect: Expect = serde_json::from_value(expect).expect("a statement");
            assert_eq!(is_missing(&expect, result), expected, "{expect:?}");
        }
    }

    #[test]
    fn a_finding_about_a_hook_shows_the_result_and_the_call_of_that_hook() {
        let at = Timestamp::UNIX_EPOCH;
        let scan = |qr: &str, registered: bool| {
            Event::Hook(HookCall {
                step: 1,
                name: "scan".to_owned(),
                arguments: json!({"qr": qr}),
                result: Ok(Arc::new(json!({"registered": registered}))),
                span: Span::at(at),
                race: None,
            })
        };
        let evidence = Evidence {
            events: vec![scan("a", true), scan("b", false), scan("c", true)],
            ..Evidence::default()
        };
        let finding = Finding {
            step: 1,
            event: 2,
            pointer: "/registered".to_owned(),
            ..Finding::default()
        };
        let shown = payload(&evidence, &finding).expect("an excerpt");
        assert_eq!(shown.what, PayloadOrigin::Hook("scan".to_owned()));
        assert!(shown.body.contains("\"registered\": false"), "{shown:?}");
        assert_eq!(shown.action, "scan {\"qr\":\"b\"}");
    }
}
