//! Examples of predicates: a little evidence, and what a rule with these parameters makes of it.
//!
//! Kinds and operations are those of the rulebook, without their field rules: an example shows only
//! what its predicate looks at.

use super::evidence::{
    Body, Delivery, Event, Evidence, Exchange, Expectation, HookCall, Outcome, Payload, Poll, Race,
    Span, Statement, Via, Walk, WalkEnd,
};
use conformant_base::clock::{self, Timestamp};
use conformant_base::http::{Request, Response};
use conformant_base::json::Note;
use conformant_rulebook::scenario::Credentials;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// The rule that an example judges by.
pub(super) const RULE: &str = "example/rule";

/// One example.
#[derive(Clone, Debug)]
pub struct Example {
    /// The service whose rule it is.
    pub service: &'static str,
    /// The parameters of the rule.
    pub parameters: Value,
    /// What the rule judges.
    pub evidence: Evidence,
    /// What comes of it.
    pub comes_to: ComesTo,
}

/// What an example comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComesTo {
    /// At least one instance and no finding.
    Passes,
    /// A finding at this pointer.
    Fails(&'static str),
    /// No instance.
    NotJudged,
}

/// An example that is being written.
#[derive(Clone, Debug)]
pub struct Scene {
    service: &'static str,
    parameters: Value,
    evidence: Evidence,
    clock: Timestamp,
}

impl Example {
    /// A rule of that service with these parameters, and nothing to judge yet.
    pub fn of(service: &'static str, parameters: Value) -> Scene {
        Scene {
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

impl Scene {
    /// An accepted request: what was sent, by parameter, and the answer.
    pub fn answered(self, operation: &str, sent: Value, answer: Value) -> Self {
        let response = Response::json(200, &answer);
        let body = Body::Document {
            value: Arc::new(answer),
            notes: Vec::new(),
        };
        self.exchange(operation, sent, response, body)
    }

    /// What follows is of another service.
    pub fn of_service(mut self, service: &'static str) -> Self {
        self.service = service;
        self
    }

    /// The same without anything sent that matters.
    pub fn shown(self, operation: &str, answer: Value) -> Self {
        self.answered(operation, Value::Object(Map::new()), answer)
    }

    /// An accepted request that is answered with this text.
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

    /// A deletion that is answered with nothing.
    pub fn deleted(self, operation: &str, sent: Value) -> Self {
        self.exchange(operation, sent, Response::empty(204), Body::Empty)
    }

    /// A request that is refused.
    pub fn refused(self, operation: &str, sent: Value) -> Self {
        self.exchange(operation, sent, Response::empty(404), Body::Empty)
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

    /// A request that is answered with too many requests.
    pub fn too_many(self, operation: &str, sent: Value) -> Self {
        self.exchange(operation, sent, Response::empty(429), Body::Empty)
    }

    /// A person or device did something.
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

    /// A callback to the address that this event told.
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

    /// A representation that came in another way.
    pub fn payload(mut self, kind: &str, value: Value) -> Self {
        self.evidence.payloads.push(Payload {
            kind: kind.to_owned(),
            value: Arc::new(value),
            notes: Vec::new(),
            step: 0,
        });
        self
    }

    /// The text of the last payload had this oddity.
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

    /// The last exchange followed a link that an earlier one showed there.
    pub fn via(mut self, exchange: usize, pointer: &str) -> Self {
        if let Some(last) = self.evidence.exchanges.last_mut() {
            let pointer = pointer.to_owned();
            last.via = Some(Via { exchange, pointer });
        }
        self
    }

    /// The last request carried this.
    pub fn sending(mut self, media_type: &str, body: &str) -> Self {
        if let Some(last) = self.evidence.exchanges.last_mut() {
            last.request.headers.set("Content-Type", media_type);
            last.request.body = body.as_bytes().to_vec();
        }
        self
    }

    /// The last request went there.
    pub fn at(mut self, target: &str) -> Self {
        if let Some(last) = self.evidence.exchanges.last_mut() {
            last.request.target = target.to_owned();
        }
        self
    }

    /// A step states this of a result.
    ///
    /// # Panics
    /// When scenarios cannot write it so.
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

    /// What the configuration says, by service.
    pub fn configured(mut self, configured: Value) -> Self {
        self.evidence.configured = configured;
        self
    }

    /// The time of the target.
    pub fn now(mut self, at: Timestamp) -> Self {
        self.evidence.now = Some(at);
        self
    }

    /// The rule passes.
    pub fn passes(self) -> Example {
        self.comes_to(ComesTo::Passes)
    }

    /// The rule is broken at this place.
    pub fn fails(self, pointer: &'static str) -> Example {
        self.comes_to(ComesTo::Fails(pointer))
    }

    /// The rule has nothing to judge.
    pub fn not_judged(self) -> Example {
        self.comes_to(ComesTo::NotJudged)
    }

    fn comes_to(self, comes_to: ComesTo) -> Example {
        Example {
            service: self.service,
            parameters: self.parameters,
            evidence: self.evidence,
            comes_to,
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
