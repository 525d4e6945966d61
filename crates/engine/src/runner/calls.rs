//! Calls of operations: builds and sends requests, keeps evidence, and compares the outcome with the step's
//! expectation.

use super::{Called, Runner};
use crate::link::split_url;
use crate::session::{Holder, SendFault};
use crate::settings::ExclusiveSetting;
use crate::stop::{SET_UP_FAILED, Stop};
use crate::template::{Origin, wait_of};
use crate::{body, provision, request};
use conformant_base::http::{Cause, Response};
use conformant_base::json;
use conformant_judge::evidence::{
    BODY_EXCERPT_BYTES, Body, Event, Exchange, Expectation, Outcome, Poll, SkippedRule, Span,
};
use conformant_judge::{Acceptance, acceptance_among};
use conformant_rulebook::scenario::{Credentials, Until};
use conformant_rulebook::step::{Call, Demand};
use conformant_rulebook::{Operation, Rulebook};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of all responses of one scenario; parsed, they take about six times as much memory.
const EVIDENCE_BYTES_MAX: usize = 8 * 1024 * 1024;

impl<'a> Runner<'a> {
    pub(super) fn call_step(&mut self, step: &Call) -> Result<(), Stop> {
        let operation = self.targeted_operation(&step.call)?;
        self.provide(&step.with)?;
        let mut called = match &step.until {
            Some(until) => self.poll(step, operation, until)?,
            None => self.call(step, operation)?,
        };
        if step.demand.is_acceptance() && self.is_conflict(&called) && self.session.avoid_overlap()
        {
            // A legal rejection: the target may reject a request while it processes another one.
            self.evidence.exchanges[called.exchange].expectation = Expectation::Either;
            called = self.call(step, operation)?;
        }
        let mut tries = 0;
        while matches!(called.acceptance, Acceptance::Rejected(_))
            // The request may have been rejected for the broken value.
            && step.demand.is_acceptance()
            && self.value_was_busy(operation, called.exchange, tries)?
        {
            // A legal rejection: the exclusive value is in use.
            self.evidence.exchanges[called.exchange].expectation = Expectation::Either;
            called = self.call(step, operation)?;
            tries += 1;
        }
        let (mut value, mut called) = self.result(step, operation, called)?;
        if operation.list_key.is_some() && step.until.is_none() && step.between.is_empty() {
            (value, called) = self.poll_until_stated(step, operation, (value, called))?;
        }
        let expected = self.check_expectation(step, &called);
        let exchange = &self.evidence.exchanges[called.exchange];
        if matches!(called.acceptance, Acceptance::Rejected(_))
            && conformant_judge::is_plain_error(exchange)
        {
            let why = format!("answered {}", exchange.status().unwrap_or_default());
            let missed = step.expect.iter();
            let missed = missed.map(|e| SkippedRule::because(&e.rule, why.clone()));
            self.evidence.missed.extend(missed);
            if step.demand.is_either() {
                self.refused.extend(step.capture.clone());
            }
            return expected;
        }
        if matches!(called.acceptance, Acceptance::Rejected(_)) {
            if let Some(kind) = &step.judge {
                value = self.keep_payload(kind, value, Vec::new());
            }
            if step.demand.is_either() {
                self.refused.extend(step.capture.clone());
                return expected;
            }
        }
        if let Some(name) = &step.capture {
            self.refused.remove(name);
        }
        if let Some(rule) = called.taint {
            if expected == Err(Stop::Unexpected) {
                return Err(Stop::Masked(rule));
            }
            let named = step.demand.rule();
            let missed = named.map(|named| SkippedRule::behind(named, &rule));
            self.evidence.missed.extend(missed);
        }
        let is_captured = step.capture.is_some() && !step.walk;
        let origin = called.kind.filter(|_| is_captured).map(|kind| Origin {
            kind,
            sent: self.evidence.exchanges[called.exchange].sent.clone(),
        });
        let kept = (step.capture.as_ref(), step.expect.as_slice());
        self.finish(kept, value, origin, Some(called.exchange))?;
        expected
    }

    /// Whether a request was rejected because of the state of its resource.
    fn is_conflict(&self, called: &Called) -> bool {
        const CONFLICT: u16 = 409;
        const LOCKED: u16 = 423;
        let status = self.evidence.exchanges[called.exchange].status();
        matches!(called.acceptance, Acceptance::Rejected(_))
            && matches!(status, Some(CONFLICT | LOCKED))
    }

    /// The result of a call: its answer, or the whole list that begins with it.
    pub(super) fn result(
        &mut self,
        step: &Call,
        operation: &Operation,
        called: Called,
    ) -> Result<(Arc<Value>, Called), Stop> {
        let value = match step.walk {
            true => Arc::new(self.walk(step, operation, &called)?),
            false => Arc::clone(&called.value),
        };
        Ok((value, called))
    }

    /// Provisions the unconfigured settings that the parameters read.
    pub(super) fn provide(&mut self, with: &Map<String, Value>) -> Result<(), Stop> {
        let mut hooks = Vec::new();
        let target = (self.session, self.rulebook);
        let done = provision::provide(&mut self.scope, target, self.step, with, &mut hooks);
        self.evidence
            .events
            .extend(hooks.into_iter().map(Event::Hook));
        done
    }

    pub(super) fn operation(&self, name: &str) -> Result<&'a Operation, Stop> {
        let found = self.rulebook.called(&self.service.name, name);
        found.ok_or_else(|| Stop::Error(format!("no operation is named {name}")))
    }

    /// An operation of a service that is a target.
    pub(super) fn targeted_operation(&self, name: &str) -> Result<&'a Operation, Stop> {
        let operation = self.operation(name)?;
        let targets = &self.session.settings().targets;
        match targets.contains_key(&operation.service) {
            true => Ok(operation),
            false => Err(Stop::NotApplicable(format!(
                "service {} is not targeted",
                operation.service
            ))),
        }
    }

    pub(super) fn call(&mut self, step: &Call, operation: &Operation) -> Result<Called, Stop> {
        let (exchange, taint) = self.built(step, operation)?;
        let called = self.exchange(exchange, operation)?;
        self.note_holder(&called);
        self.accept_existing(step, &called)?;
        Ok(Called { taint, ..called })
    }

    /// The request of a step, before it is sent, and the rule that a value breaks which it was built of.
    pub(super) fn built(
        &mut self,
        step: &Call,
        operation: &Operation,
    ) -> Result<(Exchange, Option<String>), Stop> {
        let with = self.scope.fill_map(&step.with)?;
        let taint = self.scope.take_taint();
        let settings = self.session.settings();
        let target = &settings.targets[&operation.service];
        let mut built = request::build(operation, target, with, step.credentials)?;
        let (origin, prefix) = split_url(&target.url);
        built.request.target = format!("{prefix}{}", built.request.target);
        let own_rule = format!("{}/{}", operation.service, operation.id);
        let expectation = match &step.demand {
            // A request with a broken value may be rejected.
            _ if taint.is_some() => Expectation::Either,
            Demand::Rejected { rule, .. } => Expectation::Rejected(rule.clone()),
            Demand::Accepted(rule) => Expectation::Accepted(rule.clone()),
            Demand::Either => Expectation::Either,
            Demand::Own => Expectation::Accepted(own_rule),
        };
        let exchange = Exchange {
            step: self.step,
            service: operation.service.clone(),
            operation: operation.id.clone(),
            sent: built.sent,
            credentials: step.credentials,
            base: origin.to_owned(),
            shell: target.shell_of(step.credentials),
            expectation,
            span: Span::at(self.session.now()),
            setup: self.setup,
            request: built.request,
            ..Exchange::default()
        };
        Ok((exchange, taint))
    }

    /// Notes the new holder of an exclusive value.
    pub(super) fn note_holder(&self, called: &Called) {
        let exchange = &self.evidence.exchanges[called.exchange];
        let Some(exclusive) = self.takes_exclusive(&exchange.service, &exchange.operation) else {
            return;
        };
        let how = exclusive.how;
        let scope = exchange.sent.get(&how.scope).and_then(Value::as_str);
        let value = exchange.sent.get(&how.parameter).and_then(Value::as_str);
        let key = called.value.pointer(&how.held.key).and_then(Value::as_str);
        if called.acceptance == Acceptance::Accepted
            && let (Some(scope), Some(value), Some(key)) = (scope, value, key)
            && let Some(path) = provision::path_of_holder(self.rulebook, exclusive, (scope, key))
        {
            self.session.record_holder(Holder {
                scope: scope.to_owned(),
                key: key.to_owned(),
                value: value.to_owned(),
                path,
            });
        }
    }

    /// The exclusive setting of which an operation takes a value.
    fn takes_exclusive(&self, service: &str, operation: &str) -> Option<ExclusiveSetting<'_>> {
        let exclusive = self.session.settings().exclusive();
        exclusive.filter(|e| e.service == service && e.how.taken_by == operation)
    }

    /// Whether an operation was rejected because its value was in use, and the value is free now.
    pub(super) fn value_was_busy(
        &self,
        operation: &Operation,
        exchange: usize,
        tries: usize,
    ) -> Result<bool, Stop> {
        let sent = &self.evidence.exchanges[exchange].sent;
        let text = |name: &str| sent.get(name).and_then(Value::as_str);
        let Some(exclusive) = self.takes_exclusive(&operation.service, &operation.id) else {
            return Ok(false);
        };
        match (text(&exclusive.how.scope), text(&exclusive.how.parameter)) {
            (Some(scope), Some(value)) => provision::free(
                self.session,
                self.rulebook,
                exclusive,
                (scope, value),
                tries,
            ),
            _ => Ok(false),
        }
    }

    /// Accepts an answer with the existing resource in place of a rejection.
    pub(super) fn accept_existing(&mut self, step: &Call, called: &Called) -> Result<(), Stop> {
        let Demand::Rejected {
            rule,
            unless: Some(existing),
        } = &step.demand
        else {
            return Ok(());
        };
        let value = self.scope.fill(&existing.equals)?;
        let there = called.value.pointer(&existing.at);
        if called.acceptance == Acceptance::Accepted
            && there.is_some_and(|v| json::equal(v, &value))
        {
            self.evidence.exchanges[called.exchange].expectation =
                Expectation::Accepted(rule.clone());
        }
        Ok(())
    }

    /// Keeps an exchange that has just ended.
    pub(super) fn keep(&mut self, mut exchange: Exchange) -> usize {
        if exchange.race.is_none() {
            exchange.span.ended = self.session.now();
        }
        if let Outcome::Answered { response, .. } = &exchange.outcome {
            let (service, operation) = (&exchange.service, &exchange.operation);
            self.session
                .answered(service, operation, exchange.credentials, response);
        }
        let index = self.evidence.exchanges.len();
        self.evidence.exchanges.push(exchange);
        self.evidence.events.push(Event::Exchange(index));
        if self.evidence.exchanges[index].race.is_none() {
            self.note_deliveries();
        }
        index
    }

    /// Sends a request and keeps the exchange.
    pub(super) fn exchange(
        &mut self,
        exchange: Exchange,
        operation: &Operation,
    ) -> Result<Called, Stop> {
        let answer = self.session.send(&exchange.service, &exchange.request);
        let unreachable = answer.as_ref().err().filter(|f| f.cause.is_unreachable());
        let unreachable = unreachable.map(ToString::to_string);
        let called = self.received(exchange, answer, operation);
        match unreachable {
            Some(why) => Err(Stop::Unreachable(why)),
            None => Ok(called),
        }
    }

    /// Keeps the outcome of a request.
    pub(super) fn received(
        &mut self,
        mut exchange: Exchange,
        answer: Result<Response, SendFault>,
        operation: &Operation,
    ) -> Called {
        let answer = answer.and_then(|response| self.within_budget(response));
        exchange.outcome = self.outcome(&exchange, answer, operation);
        let others = &self.evidence.exchanges;
        let acceptance = acceptance_among(self.rulebook, &exchange, Some(operation), others);
        let value = exchange
            .document()
            .map_or_else(|| Arc::new(Value::Null), Arc::clone);
        let kind = match &acceptance {
            Acceptance::Accepted => operation.response.clone(),
            Acceptance::Rejected(_) => operation.error.clone(),
            Acceptance::Inconclusive(_) => None,
        };
        Called {
            exchange: self.keep(exchange),
            acceptance,
            value,
            kind,
            taint: None,
        }
    }

    /// The outcome of a request. A document that is equal to the one of the recorded run shares its validation
    /// results.
    fn outcome(
        &self,
        exchange: &Exchange,
        answer: Result<Response, SendFault>,
        operation: &Operation,
    ) -> Outcome {
        let before = self.earlier.get(self.evidence.exchanges.len());
        let before = before.filter(|before| {
            before.service == exchange.service && before.operation == exchange.operation
        });
        let Some(Outcome::Answered {
            response: known,
            body: read,
        }) = before.map(|before| &before.outcome)
        else {
            return outcome(answer, operation, self.rulebook);
        };
        match answer {
            Ok(response) if response == *known => Outcome::Answered {
                response,
                body: read.clone(),
            },
            answer => {
                let mut outcome = outcome(answer, operation, self.rulebook);
                if let Outcome::Answered {
                    body: Body::Document { value, .. },
                    ..
                } = &mut outcome
                    && let Body::Document { value: known, .. } = read
                    && json::identical(value, known)
                {
                    *value = Arc::clone(known);
                }
                outcome
            }
        }
    }

    /// Limits the evidence, which is kept until the scenario is judged.
    pub(super) fn within_budget(&mut self, response: Response) -> Result<Response, SendFault> {
        let response = body::decoded(response);
        self.body_bytes += response.body.len();
        if self.body_bytes <= EVIDENCE_BYTES_MAX {
            return Ok(response);
        }
        let cause = Cause::EvidenceOverLimit(EVIDENCE_BYTES_MAX as u64);
        let why = "the answers of this scenario are larger in all";
        Err(SendFault::new(cause, why))
    }

    pub(super) fn poll(
        &mut self,
        step: &Call,
        operation: &Operation,
        until: &Until,
    ) -> Result<Called, Stop> {
        let time = |text: &Option<String>, default| {
            text.as_deref()
                .map_or(Some(default), wait_of)
                .ok_or_else(|| Stop::Error("not a duration".to_owned()))
        };
        let within = time(&until.within, Duration::from_secs(10))?;
        let every = time(&until.every, Duration::from_secs(1))?.max(Duration::from_millis(10));
        let wanted: Vec<Value> = until
            .equals
            .iter()
            .chain(until.one_of.iter().flatten())
            .cloned()
            .collect();
        let wanted: Vec<Value> = wanted
            .iter()
            .map(|v| self.scope.fill(v))
            .collect::<Result<_, _>>()?;
        let mut waited = Duration::ZERO;
        loop {
            let called = self.call(step, operation)?;
            let there = json::expand(&called.value, &until.at);
            let arrived = there.iter().any(|(_, v)| match wanted.is_empty() {
                true => !v.is_null(),
                false => wanted.iter().any(|w| json::equal(v, w)),
            });
            let is_last = arrived || waited >= within || self.is_interrupted();
            let poll = &mut self.evidence.exchanges[called.exchange].poll;
            if is_last {
                *poll = Poll::Last;
                return Ok(called);
            }
            *poll = Poll::Attempt;
            self.pass_between_polls(every);
            waited += every;
        }
    }

    /// Whether the scenario can continue after this answer.
    pub(super) fn check_expectation(&self, step: &Call, called: &Called) -> Result<(), Stop> {
        let name = &step.call;
        match &called.acceptance {
            Acceptance::Inconclusive(why) => Err(Stop::Inconclusive(format!("{name}: {why}"))),
            Acceptance::Rejected(why) if step.demand.is_acceptance() => {
                if self.setup {
                    let is_other = step.credentials == Credentials::OtherAccount;
                    let status = self.evidence.exchanges[called.exchange].status();
                    let whose = match status {
                        Some(401 | 403) if is_other => {
                            let service = &self.evidence.exchanges[called.exchange].service;
                            self.session.note_rejected_account(service);
                            format!(" to the second account; correct accounts.{service}")
                        }
                        _ => String::new(),
                    };
                    Err(Stop::Inconclusive(format!(
                        "{SET_UP_FAILED}: {name} was refused: {why}{whose}"
                    )))
                } else {
                    Err(Stop::Unexpected)
                }
            }
            Acceptance::Accepted | Acceptance::Rejected(_) => Ok(()),
        }
    }
}

pub(super) fn outcome(
    answer: Result<Response, SendFault>,
    operation: &Operation,
    rulebook: &Rulebook,
) -> Outcome {
    match answer {
        Ok(response) => {
            let kind = operation
                .response
                .as_deref()
                .and_then(|k| rulebook.kinds.get(k));
            let body = body::receive(&response, operation, kind);
            Outcome::Answered {
                response: kept(response),
                body,
            }
        }
        Err(fault) => Outcome::Fault {
            cause: fault.cause,
            detail: fault.detail,
            partial: fault.partial,
        },
    }
}

/// The part of an answer that is kept in addition to its document.
pub(super) fn kept(mut response: Response) -> Response {
    if response.body.len() > BODY_EXCERPT_BYTES {
        response.body.truncate(BODY_EXCERPT_BYTES);
        response.body.shrink_to_fit();
    }
    response
}

/// The same request without its outcome, which may be large.
pub(super) fn unanswered(exchange: &Exchange) -> Exchange {
    Exchange {
        sent: exchange.sent.clone(),
        request: exchange.request.clone(),
        service: exchange.service.clone(),
        operation: exchange.operation.clone(),
        base: exchange.base.clone(),
        shell: Arc::clone(&exchange.shell),
        expectation: exchange.expectation.clone(),
        step: exchange.step,
        credentials: exchange.credentials,
        span: exchange.span,
        setup: exchange.setup,
        ..Exchange::default()
    }
}
