//! Examples of predicates: small evidence, and the expected verdict of a rule with given parameters.
//!
//! Resource types and operations are those of the rulebook, without their field rules, so that an example only exercises its
//! predicate.

use super::evidence::{
    Body, Delivery, Event, Evidence, Exchange, Expectation, FollowedLink, HookCall, Outcome,
    Payload, Poll, Race, Span, Statement, Walk, WalkEnd,
};
use conformant_base::clock::{self, Timestamp};
use conformant_base::http::{Request, Response};
use conformant_base::json::Note;
use conformant_rulebook::scenario::Credentials;
use serde_json::{Map, Value};
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
    pub fn answered(self, operation: &str, sent: Value, answer: Value) -> Self {
        let response = Response::json(200, &answer);
        let body = Body::Document {
            value: Arc::new(answer),
            notes: Vec::new(),
        };
        self.exchange(operation, sent, response, body)
    }

    /// Later evidence is of another service.
    pub fn of_service(mut self, service: &'static str) -> Self {
        self.service = service;
        self
    }

    /// As `answered`, without parameters.
    pub fn shown(self, operation: &str, answer: Value) -> Self {
        self.answered(operation, Value::Object(Map::new()), answer)
    }

    /// An accepted request whose response has this text.
    pub fn written(self, operation: &str, sent: Value, text: &str) -> Self {
        let response = Response::new(200, "application/octet-stream", text.as_bytes());
        let body = serde_json::from_str(text).map_or_else(
            |_| Body::Unreadable("no JSON".to_owned()),
            |value| Body::Document {
                value: Arc::new(value),
                notes: Vec::new(),
            },
        );
        self.exchange(operation, sent, response, body)
    }

    /// A deletion with an empty response.
    pub fn deleted(self, operation: &str, sent: Value) -> Self {
        self.exchange(operation, sent, Response::empty(204), Body::Empty)
    }

    /// A rejected request.
    pub fn refused(self, operation: &str, sent: Value) -> Self {
        self.exchange(operation, sent, Response::empty(404), Body::Empty)
    }

    /// A request that is rejected with a body that is judged as this type.
    pub fn rejected_as(
        self,
        status: u16,
        operation: &str,
        sent: Value,
        kind: &str,
        text: &str,
    ) -> Self {
        let response = Response::new(status, "application/octet-stream", text.as_bytes());
        let step = self.evidence.exchanges.len() + 1;
        let mut example = self
            .exchange(operation, sent, response, Body::Empty)
            .payload(kind, Value::Null);
        if let Some(payload) = example.evidence.payloads.last_mut() {
            payload.step = step;
        }
        example
    }

    /// The last requests were sent at the same time.
    pub fn raced(mut self, count: usize) -> Self {
        let first = self.evidence.exchanges.len() - count;
        let began = self.evidence.exchanges[first].span.began;
        for exchange in &mut self.evidence.exchanges[first..] {
            exchange.span.began = began;
            exchange.race = Some(Race {
                number: 1,
                sent: Duration::ZERO,
                received: Duration::from_millis(1),
            });
        }
        self
    }

    /// A request that is rejected with status 429.
    pub fn too_many(self, operation: &str, sent: Value) -> Self {
        self.exchange(operation, sent, Response::empty(429), Body::Empty)
    }

    /// An action of a person or device.
    pub fn hook(mut self, name: &str, arguments: Value, result: Value) -> Self {
        let at = self.clock;
        self.clock = clock::from_unix_ms(at.as_millisecond() + 1000);
        self.evidence.events.push(Event::Hook(HookCall {
            step: self.evidence.events.len() + 1,
            name: name.to_owned(),
            arguments,
            result: Ok(Arc::new(result)),
            span: Span {
                began: at,
                ended: at,
            },
            race: None,
        }));
        self
    }

    /// A callback to the address that this event sent.
    pub fn called(mut self, subscription: usize, method: &str) -> Self {
        let at = self.clock;
        self.clock = clock::from_unix_ms(at.as_millisecond() + 1000);
        self.evidence.events.push(Event::Delivery(Delivery {
            step: self.evidence.events.len() + 1,
            listener: "inbox".to_owned(),
            subscription: Some(subscription),
            request: Request::new(method, "/"),
            document: None,
            answered: 200,
            span: Span {
                began: at,
                ended: at,
            },
        }));
        self
    }

    /// A representation that is not a response.
    pub fn payload(mut self, kind: &str, value: Value) -> Self {
        self.evidence.payloads.push(Payload {
            kind: kind.to_owned(),
            value: Arc::new(value),
            notes: Vec::new(),
            step: 0,
        });
        self
    }

    /// Adds an irregularity to the text of the last payload.
    pub fn noted(mut self, note: Note) -> Self {
        if let Some(payload) = self.evidence.payloads.last_mut() {
            payload.notes.push(note);
        }
        self
    }

    /// The last exchanges were the pages of a walk.
    pub fn walked(mut self, pages: usize) -> Self {
        let end = self.evidence.exchanges.len();
        let last = self.evidence.exchanges.last();
        let (service, operation) = last
            .map(|e| (e.service.clone(), e.operation.clone()))
            .unwrap_or_default();
        self.evidence.walks.push(Walk {
            service,
            operation,
            pages: (end.saturating_sub(pages)..end).collect(),
            end: WalkEnd::Complete,
            moved: false,
            step: 0,
        });
        self
    }

    /// The last request was sent with the credentials of the second account.
    pub fn by_other_account(mut self) -> Self {
        if let Some(last) = self.evidence.exchanges.last_mut() {
            last.credentials = Credentials::OtherAccount;
        }
        self
    }

    /// The last exchange followed a link of an earlier response.
    pub fn via(mut self, exchange: usize, pointer: &str) -> Self {
        if let Some(last) = self.evidence.exchanges.last_mut() {
            let pointer = pointer.to_owned();
            last.via = Some(FollowedLink { exchange, pointer });
        }
        self
    }

    /// The last request had this body.
    pub fn sending(mut self, media_type: &str, body: &str) -> Self {
        if let Some(last) = self.evidence.exchanges.last_mut() {
            last.request.headers.set("Content-Type", media_type);
            last.request.body = body.as_bytes().to_vec();
        }
        self
    }

    /// The last request had this target.
    pub fn at(mut self, target: &str) -> Self {
        if let Some(last) = self.evidence.exchanges.last_mut() {
            last.request.target = target.to_owned();
        }
        self
    }

    /// A statement of a step about a result.
    ///
    /// # Panics
    /// If it is not a valid statement.
    pub fn stated(mut self, mut expect: Value, result: Value) -> Self {
        expect["rule"] = Value::from(RULE);
        self.evidence.statements.push(Statement {
            expect: serde_json::from_value(expect).expect("a statement as scenarios write it"),
            result: Arc::new(result),
            step: 0,
            exchange: None,
        });
        self
    }

    /// The configuration, by service.
    pub fn configured(mut self, configured: Value) -> Self {
        self.evidence.configured = configured;
        self
    }

    /// The time on the target's clock.
    pub fn now(mut self, at: Timestamp) -> Self {
        self.evidence.now = Some(at);
        self
    }

    pub fn passes(self) -> Example {
        self.expected(ExpectedVerdict::Passes)
    }

    /// The rule fails at this place.
    pub fn fails(self, pointer: &'static str) -> Example {
        self.expected(ExpectedVerdict::Fails(pointer))
    }

    pub fn not_judged(self) -> Example {
        self.expected(ExpectedVerdict::NotJudged)
    }

    fn expected(self, expected: ExpectedVerdict) -> Example {
        Example {
            service: self.service,
            parameters: self.parameters,
            evidence: self.evidence,
            expected,
        }
    }

    fn exchange(mut self, operation: &str, sent: Value, response: Response, body: Body) -> Self {
        let Value::Object(sent) = sent else {
            return self;
        };
        let at = self.clock;
        self.clock = clock::from_unix_ms(at.as_millisecond() + 1000);
        let index = self.evidence.exchanges.len();
        self.evidence.events.push(Event::Exchange(index));
        self.evidence.exchanges.push(Exchange {
            step: index + 1,
            service: self.service.to_owned(),
            operation: operation.to_owned(),
            sent: sent.into_iter().collect(),
            credentials: Credentials::Default,
            base: String::new(),
            request: Request::new("GET", "/"),
            outcome: Outcome::Answered { response, body },
            expectation: Expectation::Either,
            span: Span {
                began: at,
                ended: at,
            },
            via: None,
            poll: Poll::Once,
            race: None,
            shell: std::sync::Arc::default(),
            setup: false,
        });
        self
    }
}
