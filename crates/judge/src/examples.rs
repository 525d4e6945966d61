//! Examples of predicates: small evidence, and the expected verdict of a rule with given parameters.
//!
//! Resource types and operations are those of the rulebook, without their field rules, so that an example only exercises its
//! predicate.

use super::evidence::{
    Body, Delivery, Event, Evidence, Exchange, FollowedLink, HookCall, Outcome, Payload, Race,
    Span, Statement, Walk, WalkEnd,
};
use crate::history::SETTLE;
use conformant_base::clock::Timestamp;
use conformant_base::http::{Request, Response};
use conformant_base::json::Note;
use conformant_rulebook::scenario::Credentials;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The id of the rule in examples.
pub(super) const RULE: &str = "example/rule";

#[derive(Clone, Debug)]
pub struct Example {
    /// The service of the rule.
    pub service: &'static str,
    pub parameters: Value,
    pub evidence: Evidence,
    /// The expected verdict.
    pub expected: ExpectedVerdict,
}

/// The verdict of an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedVerdict {
    /// At least one instance and no finding.
    Passes,
    /// A finding at this pointer.
    Fails(&'static str),
    /// No instance.
    NotJudged,
}

/// Builder of an example.
#[derive(Clone, Debug)]
pub struct ExampleBuilder {
    service: &'static str,
    parameters: Value,
    evidence: Evidence,
    clock: Timestamp,
}

impl Example {
    /// A rule of a service with these parameters, without evidence.
    pub fn for_rule(service: &'static str, parameters: Value) -> ExampleBuilder {
        ExampleBuilder {
            service,
            parameters,
            evidence: Evidence {
                alone: true,
                ..Evidence::default()
            },
            clock: Timestamp::UNIX_EPOCH,
        }
    }
}

impl ExampleBuilder {
    /// An accepted request: the sent parameters and the response.
    pub fn answered(&self, operation: &str, sent: Value, answer: Value) -> Self {
        let response = Response::json(200, &answer);
        self.exchange(operation, sent, response, document(answer))
    }

    /// As `answered`, without parameters.
    pub fn shown(&self, operation: &str, answer: Value) -> Self {
        self.answered(operation, json!({}), answer)
    }

    /// An accepted request whose response has this text.
    pub fn written(&self, operation: &str, sent: Value, text: &str) -> Self {
        let response = Response::new(200, "application/octet-stream", text.as_bytes());
        let unreadable = || Body::Unreadable("no JSON".to_owned());
        let body = serde_json::from_str(text).map_or_else(|_| unreadable(), document);
        self.exchange(operation, sent, response, body)
    }

    /// A deletion with an empty response.
    pub fn deleted(&self, operation: &str, sent: Value) -> Self {
        self.exchange(operation, sent, Response::empty(204), Body::Empty)
    }

    /// A rejected request.
    pub fn refused(&self, operation: &str, sent: Value) -> Self {
        self.exchange(operation, sent, Response::empty(404), Body::Empty)
    }

    /// The last request was rejected with this text, which is judged as this type.
    pub fn rejected_as(&self, status: u16, kind: &str, text: &str) -> Self {
        let mut next = self.payload(kind, Value::Null);
        let step = next.evidence.exchanges.len();
        next.evidence
            .payloads
            .iter_mut()
            .for_each(|p| p.step = step);
        next.changed(|last| {
            last.outcome = Outcome::Answered {
                response: Response::new(status, "application/octet-stream", text.as_bytes()),
                body: Body::Empty,
            };
        })
    }

    /// The last requests were sent at the same time.
    pub fn raced(&self, count: usize) -> Self {
        let mut next = self.clone();
        let first = next.evidence.exchanges.len() - count;
        let began = next.evidence.exchanges[first].span.began;
        for exchange in &mut next.evidence.exchanges[first..] {
            exchange.span.began = began;
            exchange.race = Some(Race {
                number: 1,
                sent: Duration::ZERO,
                received: Duration::from_millis(1),
            });
        }
        next
    }

    /// An action of a person or device.
    pub fn hook(&self, name: &str, arguments: Value, result: Value) -> Self {
        self.happened(|step, span| {
            Event::Hook(HookCall {
                step,
                name: name.to_owned(),
                arguments,
                result: Ok(Arc::new(result)),
                span,
                race: None,
            })
        })
    }

    /// A callback to the address that this event sent.
    pub fn called(&self, subscription: usize, method: &str) -> Self {
        self.happened(|step, span| {
            Event::Delivery(Delivery {
                step,
                listener: "inbox".to_owned(),
                subscription: Some(subscription),
                request: Request::new(method, "/"),
                document: None,
                answered: 200,
                span,
            })
        })
    }

    /// A representation that is not a response.
    pub fn payload(&self, kind: &str, value: Value) -> Self {
        let mut next = self.clone();
        next.evidence.payloads.push(Payload {
            kind: kind.to_owned(),
            value: Arc::new(value),
            notes: Vec::new(),
            step: 0,
        });
        next
    }

    /// Adds an irregularity to the text of the payloads.
    pub fn noted(&self, note: &Note) -> Self {
        let mut next = self.clone();
        for payload in &mut next.evidence.payloads {
            payload.notes.push(note.clone());
        }
        next
    }

    /// The last exchanges were the pages of a walk.
    pub fn walked(&self, pages: usize) -> Self {
        let mut next = self.clone();
        let end = next.evidence.exchanges.len();
        next.evidence.walks.push(Walk {
            service: next.evidence.exchanges[end - 1].service.clone(),
            operation: next.evidence.exchanges[end - 1].operation.clone(),
            pages: (end - pages..end).collect(),
            end: WalkEnd::Complete,
            moved: false,
            step: 0,
        });
        next
    }

    /// Later evidence comes after the consistency window.
    pub fn late(&self) -> Self {
        let clock = self.clock + SETTLE;
        Self {
            clock,
            ..self.clone()
        }
    }

    /// Later evidence is of another service.
    pub fn of_service(&self, service: &'static str) -> Self {
        Self {
            service,
            ..self.clone()
        }
    }

    /// The last request was sent with the credentials of the second account.
    pub fn by_other_account(&self) -> Self {
        self.changed(|last| last.credentials = Credentials::OtherAccount)
    }

    /// The last exchange followed a link of an earlier response.
    pub fn via(&self, exchange: usize, pointer: &str) -> Self {
        let pointer = pointer.to_owned();
        self.changed(|last| last.via = Some(FollowedLink { exchange, pointer }))
    }

    /// The last request had this body.
    pub fn sending(&self, media_type: &str, body: &str) -> Self {
        self.changed(|last| {
            last.request.headers.set("Content-Type", media_type);
            last.request.body = body.into();
        })
    }

    /// The last request had this target.
    pub fn at(&self, target: &str) -> Self {
        self.changed(|last| last.request.target = target.to_owned())
    }

    /// A statement of a step about a result.
    ///
    /// # Panics
    /// If it is not a valid statement.
    pub fn stated(&self, mut expect: Value, result: Value) -> Self {
        let mut next = self.clone();
        expect["rule"] = Value::from(RULE);
        next.evidence.statements.push(Statement {
            expect: serde_json::from_value(expect).expect("a statement as scenarios write it"),
            result: Arc::new(result),
            step: 0,
            exchange: None,
        });
        next
    }

    /// The configuration, by service.
    pub fn configured(&self, configured: Value) -> Self {
        let mut next = self.clone();
        next.evidence.configured = configured;
        next
    }

    /// The time on the target's clock.
    pub fn now(&self, at: Timestamp) -> Self {
        let mut next = self.clone();
        next.evidence.now = Some(at);
        next
    }

    pub fn passes(&self) -> Example {
        self.expected(ExpectedVerdict::Passes)
    }

    /// The rule fails at this place.
    pub fn fails(&self, pointer: &'static str) -> Example {
        self.expected(ExpectedVerdict::Fails(pointer))
    }

    pub fn not_judged(&self) -> Example {
        self.expected(ExpectedVerdict::NotJudged)
    }

    fn expected(&self, expected: ExpectedVerdict) -> Example {
        Example {
            service: self.service,
            parameters: self.parameters.clone(),
            evidence: self.evidence.clone(),
            expected,
        }
    }

    /// Adds an event, which takes a second.
    fn happened(&self, event: impl FnOnce(usize, Span) -> Event) -> Self {
        let mut next = self.clone();
        let event = event(self.evidence.events.len() + 1, Span::at(self.clock));
        next.evidence.events.push(event);
        next.clock += Duration::from_secs(1);
        next
    }

    /// Changes the last exchange.
    fn changed(&self, change: impl FnOnce(&mut Exchange)) -> Self {
        let mut next = self.clone();
        change(next.evidence.exchanges.last_mut().expect("an exchange"));
        next
    }

    fn exchange(&self, operation: &str, sent: Value, response: Response, body: Body) -> Self {
        let index = self.evidence.exchanges.len();
        let mut next = self.happened(|_, _| Event::Exchange(index));
        next.evidence.exchanges.push(Exchange {
            step: index + 1,
            service: self.service.to_owned(),
            operation: operation.to_owned(),
            sent: serde_json::from_value(sent).expect("an object"),
            request: Request::new("GET", "/"),
            outcome: Outcome::Answered { response, body },
            span: Span::at(self.clock),
            ..Exchange::default()
        });
        next
    }
}

fn document(value: Value) -> Body {
    Body::of(value)
}

/// A key of a resource: a prefix and a digit 32 times.
pub(super) fn sid(prefix: &str, digit: &str) -> String {
    format!("{prefix}{}", digit.repeat(32))
}

/// The only page of a list, or its last one.
pub(super) fn page(key: &str, items: impl Into<Value>) -> Value {
    json!({key: items.into(), "meta": {"next_page_url": null, "key": key}})
}

/// A service of the chat with a name.
pub(super) fn service(digit: &str, name: &str) -> Value {
    json!({"sid": sid("IS", digit), "friendly_name": name})
}

/// A member of the channel of the examples.
pub(super) fn member(digit: &str, identity: &str) -> Value {
    json!({
        "sid": sid("MB", digit), "service_sid": sid("IS", "1"), "channel_sid": sid("CH", "1"),
        "identity": identity,
    })
}

/// Parameters of a request for the channel of the examples, with further ones.
pub(super) fn in_channel(mut further: Value) -> Value {
    further["ServiceSid"] = json!(sid("IS", "1"));
    further["ChannelSid"] = json!(sid("CH", "1"));
    further
}
