//! Recorded or live traffic as evidence: matches requests to operations, and collects bounded histories.
//!
//! The intent of the requests is unknown, so that a refusal is never reported.

use super::Surroundings;
use super::document::DocumentJudge;
use conformant_base::http::{Cause, Request, Response};
use conformant_engine::body;
use conformant_engine::link::Shown;
use conformant_engine::request::recognize;
use conformant_engine::split_url;
use conformant_judge::Judgment;
use conformant_judge::clients::{Completeness, validate_request};
use conformant_judge::evidence::{
    Event, Evidence, Exchange, FollowedLink, HookCall, Outcome, Span,
};
use conformant_judge::judge;
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::{Operation, Rulebook};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Maximum number of exchanges in a history.
const HISTORY_EXCHANGES_MAX: usize = 2_000;
/// Maximum size of its bodies, in bytes.
const HISTORY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Exchanges that are judged together.
#[derive(Debug, Default)]
pub(super) struct History {
    exchanges: Vec<Exchange>,
    hooks: Vec<HookCall>,
    /// Addresses in their responses.
    shown: Shown,
    bytes: usize,
}

impl History {
    /// Adds an exchange; true if the history is full.
    pub(super) fn take(&mut self, mut exchange: Exchange) -> bool {
        self.bytes += bytes_of(&exchange);
        if exchange.request.method == "GET" {
            let address = format!("{}{}", exchange.base, exchange.request.target);
            exchange.via = self.shown.find(&address);
        }
        if let Some(document) = exchange.document() {
            let origin = split_url(&exchange.base).0;
            self.shown.learn(origin, self.exchanges.len(), document);
        }
        self.exchanges.push(exchange);
        self.exchanges.len() >= HISTORY_EXCHANGES_MAX || self.bytes >= HISTORY_BYTES_MAX
    }

    /// Adds the call of a hook.
    pub(super) fn take_hook(&mut self, call: HookCall) {
        self.hooks.push(call);
    }

    /// Judges the history and clears it.
    pub(super) fn close(&mut self, one: &DocumentJudge<'_>) -> Judgment {
        let Self {
            exchanges, hooks, ..
        } = std::mem::take(self);
        if !one.surroundings.sides.has_responses() {
            return Judgment::default();
        }
        let mut judgment = Judgment::default();
        for exchanges in apart(exchanges) {
            let evidence = Evidence {
                scenario: one.name.to_owned(),
                events: events(&exchanges, &hooks),
                alone: one.surroundings.alone,
                has_unobserved_actions: !one.surroundings.alone,
                exchanges,
                configured: one.surroundings.configured.clone(),
                ..Evidence::default()
            };
            judgment.merge(judge_traffic(one, &evidence));
        }
        judgment
    }
}

/// Exchanges and hooks in the order of their ends. Where both end at once, the request may use what the hook made.
fn events(exchanges: &[Exchange], hooks: &[HookCall]) -> Vec<Event> {
    let ended = |event: &Event| match event {
        Event::Hook(call) => Some(call.span.ended),
        Event::Exchange(index) => Some(exchanges[*index].span.ended),
        Event::Delivery(_) | Event::Passed(_) => None,
    };
    let hooks = hooks.iter().cloned().map(Event::Hook);
    let mut events: Vec<Event> = hooks
        .chain(Evidence::in_order_of_their_ends(exchanges))
        .collect();
    events.sort_by_key(ended);
    events
}

/// Splits exchanges by origin: a service at several origins is several services with unrelated resources. Services at
/// one origin each belong together.
pub(super) fn apart(exchanges: Vec<Exchange>) -> Vec<Vec<Exchange>> {
    let mut origins: BTreeMap<&str, &str> = BTreeMap::new();
    let are_several = exchanges.iter().any(|exchange| {
        let origin = split_url(&exchange.base).0;
        *origins.entry(&exchange.service).or_insert(origin) != origin
    });
    if !are_several {
        return vec![exchanges];
    }
    let mut parts: Vec<Vec<Exchange>> = Vec::new();
    let mut of_origin: BTreeMap<String, usize> = BTreeMap::new();
    // For each exchange: its part and its index there.
    let mut places: Vec<(usize, usize)> = Vec::new();
    for mut exchange in exchanges {
        let origin = split_url(&exchange.base).0.to_owned();
        let part = *of_origin.entry(origin).or_insert(parts.len());
        if part == parts.len() {
            parts.push(Vec::new());
        }
        exchange.via = exchange.via.and_then(|via| {
            let (of, exchange) = *places.get(via.exchange)?;
            (of == part).then_some(FollowedLink { exchange, ..via })
        });
        places.push((part, parts[part].len()));
        parts[part].push(exchange);
    }
    parts
}

/// Judges exchanges; findings refer to their numbers.
fn judge_traffic(one: &DocumentJudge<'_>, evidence: &Evidence) -> Judgment {
    let mut judgment = judge(one.rulebook, one.schemas, evidence);
    for finding in &mut judgment.findings {
        let index = finding.exchange.checked_sub(1);
        if let Some(exchange) = index.and_then(|index| evidence.exchanges.get(index)) {
            finding.exchange = exchange.step;
        }
    }
    judgment
}

/// A request and its result.
pub(super) struct Observed {
    /// Number, from 1.
    pub(super) number: usize,
    pub(super) request: Request,
    /// The response, or why there is none: a stable word, and a text for people.
    pub(super) answer: Result<Response, (Cause, String)>,
    pub(super) span: Span,
}

impl DocumentJudge<'_> {
    /// Findings about the client in an exchange, if requested.
    pub(super) fn client(&self, exchange: &Exchange, kept: Completeness) -> Judgment {
        let operation = self
            .rulebook
            .operation(&exchange.service, &exchange.operation);
        match operation.filter(|_| self.surroundings.sides.has_requests()) {
            Some(operation) => validate_request(
                self.rulebook,
                self.schemas,
                operation,
                exchange,
                kept,
                self.name,
            ),
            None => Judgment::default(),
        }
    }

    /// An exchange as evidence, with a request target relative to the base address.
    pub(super) fn exchange(&self, found: Found<'_>, observed: Observed) -> Exchange {
        let Observed {
            number,
            mut request,
            answer,
            span,
        } = observed;
        request.target = request.target.split_off(found.prefix);
        let operation = found.operation;
        let kind = operation.response.as_ref();
        let kind = kind.and_then(|kind| self.rulebook.kinds.get(kind));
        let outcome = match answer {
            Ok(response) => Outcome::Answered {
                body: body::read(&response, operation, kind),
                response,
            },
            Err((cause, detail)) => Outcome::Fault {
                cause,
                detail,
                partial: None,
            },
        };
        let second = self.surroundings.second_accounts.get(&operation.service);
        let is_second = second.is_some_and(|fields| {
            let mut fields = fields.iter();
            fields.all(|(name, value)| request.headers.get(name) == Some(value))
        });
        Exchange {
            step: number,
            service: operation.service.clone(),
            operation: operation.id.clone(),
            sent: found.sent,
            // Recordings may be redacted, so that missing credentials mean nothing.
            credentials: match is_second {
                true => Credentials::OtherAccount,
                false => Credentials::Default,
            },
            base: found.base,
            request,
            outcome,
            span,
            ..Exchange::default()
        }
    }
}

/// Size of an exchange's bodies; trees count as their text.
fn bytes_of(exchange: &Exchange) -> usize {
    let answered = exchange
        .response()
        .map_or(0, |response| response.body.len());
    exchange.request.body.len() + answered
}

/// Operations with their paths, for matching.
#[derive(Debug)]
pub(super) struct Operations<'a> {
    all: Vec<Operation>,
    surroundings: &'a Surroundings,
}

/// The operation of a request.
pub(super) struct Found<'a> {
    pub(super) operation: &'a Operation,
    pub(super) sent: BTreeMap<String, Value>,
    /// Base address before the documented path.
    pub(super) base: String,
    /// Length of the request target before the documented path.
    pub(super) prefix: usize,
}

impl<'a> Operations<'a> {
    /// An undocumented path comes from the configuration; without it the operation is not matched.
    pub(super) fn of(rulebook: &Rulebook, surroundings: &'a Surroundings) -> Self {
        let all = rulebook.operations().cloned();
        let all = all.filter_map(|mut operation| {
            if let Some(key) = operation.path_from.take() {
                let at = format!("/{}/{key}", operation.service);
                surroundings
                    .configured
                    .pointer(&at)?
                    .as_str()?
                    .clone_into(&mut operation.path);
            }
            Some(operation)
        });
        Self {
            all: all.collect(),
            surroundings,
        }
    }

    pub(super) fn find(&self, origin: &str, request: &Request) -> Option<Found<'_>> {
        if self.surroundings.targets.is_empty() {
            return self.by_suffix(origin, request);
        }
        let url = format!("{origin}{}", request.target);
        // Configured paths are substituted already.
        let nothing = Map::new();
        let mut best: Option<(usize, Found<'_>)> = None;
        for (service, base) in &self.surroundings.targets {
            let base = base.trim_end_matches('/');
            let path = url.strip_prefix(base).filter(|rest| rest.starts_with('/'));
            let Some(path) = path.map(|rest| rest.split('?').next().unwrap_or_default()) else {
                continue;
            };
            let of_service = self.all.iter().filter(|o| o.service == *service);
            let Some((operation, sent)) = recognize(of_service, request, path, &nothing) else {
                continue;
            };
            let prefix = base.len().saturating_sub(origin.len());
            if best.as_ref().is_none_or(|(length, _)| base.len() > *length) {
                best = Some((
                    base.len(),
                    Found {
                        operation,
                        sent,
                        base: base.to_owned(),
                        prefix,
                    },
                ));
            }
        }
        best.map(|(_, found)| found)
    }

    /// The operation whose path is the end of the request's path; the most specific one wins.
    fn by_suffix(&self, origin: &str, request: &Request) -> Option<Found<'_>> {
        let (path, nothing) = (request.path(), Map::new());
        let starts: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
        let mut best: Option<(usize, Found<'_>)> = None;
        for prefix in starts {
            let Some((operation, sent)) =
                recognize(self.all.iter(), request, &path[prefix..], &nothing)
            else {
                continue;
            };
            let literal = operation
                .path
                .split('/')
                .filter(|s| !s.is_empty() && !s.starts_with('{'))
                .count();
            if best.as_ref().is_none_or(|(most, _)| literal > *most) {
                let base = format!("{origin}{}", &path[..prefix]);
                best = Some((
                    literal,
                    Found {
                        operation,
                        sent,
                        base,
                        prefix,
                    },
                ));
            }
        }
        best.map(|(_, found)| found)
    }
}
