//! Requests and hooks that are sent at the same time.
//!
//! - All are built before the first is sent, so that none reads what another brings.
//! - Evidence is kept in the order of the scenario, whatever the order of the answers.
//! - Each may be accepted or refused: a refused one makes later steps that read its result skip.

use super::Runner;
use crate::provision;
use crate::session::SendFault;
use crate::session::race::{Acted, Action, ActionResult};
use crate::stop::Stop;
use crate::template::Origin;
use conformant_base::http::Response;
use conformant_judge::Acceptance;
use conformant_judge::evidence::{Event, Exchange, HookCall, Race, Span};
use conformant_rulebook::Operation;
use conformant_rulebook::step::{Concurrently, Step, Verb};
use serde_json::{Value, json};
use std::sync::Arc;

/// The maximum number of attempts to send a race, if no request of it was completed.
const ATTEMPTS_MAX: usize = 3;

/// An action that is ready to be sent.
enum Ready<'a> {
    Call {
        operation: &'a Operation,
        exchange: Box<Exchange>,
        capture: Option<String>,
    },
    Hook {
        name: String,
        arguments: Value,
        capture: Option<String>,
    },
}

/// A captured value with its name and, of a request, its exchange.
type RacedCapture = (String, Arc<Value>, Option<usize>);

impl Ready<'_> {
    fn action(&self) -> Action<'_> {
        match self {
            Self::Call { exchange, .. } => Action::Request {
                service: &exchange.service,
                request: &exchange.request,
            },
            Self::Hook {
                name, arguments, ..
            } => Action::Hook { name, arguments },
        }
    }
}

/// The places of `count` actions in the order of an attempt: that of the scenario, the reverse, and with the second half first.
fn order(count: usize, attempt: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    match attempt % 3 {
        0 => {}
        1 => order.reverse(),
        _ => order.rotate_left(count / 2),
    }
    order
}

impl<'a> Runner<'a> {
    pub(super) fn race_step(&mut self, race: &Concurrently) -> Result<(), Stop> {
        let mut ready = Vec::with_capacity(race.size());
        for step in &race.concurrently {
            match step.repeat {
                None => ready.push(self.ready_with_own_value(step, ready.len())?),
                Some(times) => {
                    for index in 0..times {
                        let outer = self.scope.set_local("index", Some(json!(index)));
                        let one = self.ready_with_own_value(step, ready.len());
                        self.scope.set_local("index", outer);
                        ready.push(one?);
                    }
                }
            }
        }
        let began = self.session.now();
        let acted = self.act(&ready)?;
        let ended = self.session.now();
        self.races += 1;
        let mut captured = Vec::new();
        for (ready, acted) in ready.into_iter().zip(acted) {
            let race = Race {
                number: self.races,
                sent: acted.sent,
                received: acted.received,
            };
            let span = Span { began, ended };
            captured.extend(self.keep_raced(ready, acted.result, (race, span))?);
        }
        self.note_deliveries();
        // The capture of a repeated action is the list of what was accepted.
        let repeated = race.concurrently.iter().filter(|s| s.repeat.is_some());
        for name in repeated.filter_map(Step::capture) {
            let of_name = captured.extract_if(.., |(of, ..)| of == name);
            let values = of_name.map(|(_, value, _)| Value::clone(&value)).collect();
            self.refused.remove(name);
            self.scope.capture(name, Value::Array(values), None);
        }
        for (name, value, exchange) in captured {
            let origin = exchange.and_then(|exchange| self.origin_of(exchange));
            self.finish((Some(&name), &[]), value, origin, exchange)?;
        }
        Ok(())
    }

    /// Sends all; again where a target was not reached or closed a connection before the last byte. Each attempt of the
    /// scenario has another order, because a target that takes equally long for each action ends them in this order.
    fn act(&mut self, ready: &[Ready<'_>]) -> Result<Vec<Acted>, Stop> {
        let order = order(ready.len(), self.attempt);
        let actions: Vec<Action<'_>> = order.iter().map(|place| ready[*place].action()).collect();
        let mut attempt = 1;
        loop {
            let fault = match self.session.act_concurrently(&actions) {
                Ok(acted) => {
                    let mut placed: Vec<_> = order.into_iter().zip(acted).collect();
                    placed.sort_unstable_by_key(|(place, _)| *place);
                    return Ok(placed.into_iter().map(|(_, acted)| acted).collect());
                }
                Err(fault) => fault,
            };
            let why = fault.to_string();
            if self.is_interrupted() {
                return Err(Stop::Interrupted);
            }
            if fault.cause.is_unreachable() {
                return Err(Stop::Unreachable(why));
            }
            if attempt >= ATTEMPTS_MAX {
                return Err(Stop::Inconclusive(format!(
                    "requests could not be sent at the same time: {why}"
                )));
            }
            attempt += 1;
        }
    }

    /// The `place`th action of a race, with its own value of the exclusive setting as far as values are configured: a target
    /// may reject a second request with the same one. A value that the session was assigned stays.
    fn ready_with_own_value(&mut self, step: &Step, place: usize) -> Result<Ready<'a>, Stop> {
        let exclusive = self.session.settings().exclusive();
        let own = exclusive.filter(|_| self.session.phone_number().is_none());
        let own = own.and_then(|exclusive| {
            let pool = &self.session.settings().targets[exclusive.service].pool;
            let value = pool.get(place.checked_rem(pool.len())?)?;
            Some((exclusive.service, exclusive.key, value))
        });
        let Some((service, key, value)) = own else {
            return self.ready(step);
        };
        let outer = self.scope.set_target(service, key, json!(value));
        let ready = self.ready(step);
        self.scope.set_target(service, key, outer);
        ready
    }

    fn ready(&mut self, step: &Step) -> Result<Ready<'a>, Stop> {
        match &step.verb {
            Verb::Call(call) => {
                let operation = self.targeted_operation(&call.call)?;
                self.provide(&call.with)?;
                let (exchange, taint) = self.built(call, operation)?;
                match taint {
                    Some(rule) => Err(Stop::Masked(rule)),
                    None => Ok(Ready::Call {
                        operation,
                        exchange: Box::new(exchange),
                        capture: call.capture.clone(),
                    }),
                }
            }
            Verb::Hook(hook) => {
                if !self.session.has_hook(&hook.hook) {
                    return Err(Stop::NotApplicable(format!("hook missing: {}", hook.hook)));
                }
                let arguments = self.hook_arguments(hook)?;
                match self.scope.take_taint() {
                    Some(rule) => Err(Stop::Masked(rule)),
                    None => Ok(Ready::Hook {
                        name: hook.hook.clone(),
                        arguments,
                        capture: hook.capture.clone(),
                    }),
                }
            }
            Verb::Get(_)
            | Verb::Listen(_)
            | Verb::Await(_)
            | Verb::Token(_)
            | Verb::Wait(_)
            | Verb::Use(_)
            | Verb::Concurrently(_) => Err(Stop::Error(format!(
                "`{}` cannot be sent at the same time as another step",
                step.verb.word()
            ))),
        }
    }

    /// Keeps one action with its result; returns the capture with its value and exchange.
    fn keep_raced(
        &mut self,
        ready: Ready<'_>,
        result: ActionResult,
        when: (Race, Span),
    ) -> Result<Option<RacedCapture>, Stop> {
        match (ready, result) {
            (
                Ready::Call {
                    operation,
                    exchange,
                    capture,
                },
                ActionResult::Response(answer),
            ) => Ok(self.keep_raced_call(operation, (*exchange, capture), answer, when)),
            (
                Ready::Hook {
                    name,
                    arguments,
                    capture,
                },
                ActionResult::Hook(result),
            ) => {
                let index = &self.session.settings().index;
                let result = result.and_then(|result| provision::complete(index, &name, result));
                let fault = match &result {
                    Err(fault @ crate::session::HookFault::Unsupported) => {
                        Some(Stop::of_hook(&name, fault))
                    }
                    _ => None,
                };
                let result = result.map(Arc::new);
                let (race, span) = when;
                self.evidence.events.push(Event::Hook(HookCall {
                    step: self.step,
                    name,
                    arguments,
                    result: result.clone().map_err(|fault| fault.to_string()),
                    span,
                    race: Some(race),
                }));
                match (fault, result, capture) {
                    (Some(stop), ..) => Err(stop),
                    (None, Ok(value), Some(name)) => Ok(Some((name, value, None))),
                    // Another action at the same time may have made it impossible.
                    (None, Err(_), capture) => {
                        self.refused.extend(capture);
                        Ok(None)
                    }
                    (None, Ok(_), None) => Ok(None),
                }
            }
            (Ready::Call { .. }, ActionResult::Hook(_))
            | (Ready::Hook { .. }, ActionResult::Response(_)) => {
                Err(Stop::Error("results of a race are out of order".to_owned()))
            }
        }
    }

    fn keep_raced_call(
        &mut self,
        operation: &Operation,
        (mut exchange, capture): (Exchange, Option<String>),
        answer: Result<Response, SendFault>,
        (race, span): (Race, Span),
    ) -> Option<RacedCapture> {
        exchange.race = Some(race);
        exchange.span = span;
        let called = self.received(exchange, answer, operation);
        self.note_holder(&called);
        let name = capture?;
        match called.acceptance {
            Acceptance::Accepted => {
                self.refused.remove(&name);
                Some((name, called.value, Some(called.exchange)))
            }
            Acceptance::Rejected(_) | Acceptance::Inconclusive(_) => {
                self.refused.insert(name);
                None
            }
        }
    }

    /// What a later value that is read from an exchange comes from.
    fn origin_of(&self, exchange: usize) -> Option<Origin> {
        let exchange = &self.evidence.exchanges[exchange];
        let operation = self
            .rulebook
            .operation(&exchange.service, &exchange.operation)?;
        Some(Origin {
            kind: operation.response.clone()?,
            sent: exchange.sent.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn each_action_is_early_and_late_in_some_attempt() {
        assert_eq!(order(3, 0), [0, 1, 2]);
        assert_eq!(order(3, 1), [2, 1, 0]);
        assert_eq!(order(3, 2), [1, 2, 0]);
        assert_eq!(order(2, 5), [1, 0]);
        assert!(order(0, 2).is_empty());
    }
}
