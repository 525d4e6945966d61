//! Validates requests of clients against the documented parameters, body and credentials of an operation.
//!
//! - Findings are about the client only, never about a rule of the service.
//! - Not reported: unlisted parameters and headers, their order, escaping.
//! - No requests are sent.

mod parsed_request;
mod rulings;
#[cfg(test)]
mod tests;

use crate::evidence::{Evidence, Exchange, Expectation};
use crate::{Fact, Judgment, curl};
use conformant_record::{Finding, Level, Subject};
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::{Operation, Rule, Rulebook};
use conformant_schema::Schemas;
use parsed_request::ParsedRequest;
pub use parsed_request::bracketed;
use rulings::{RuleSubject, Ruling, rulings};

/// Completeness of a recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    Whole,
    /// A recording, possibly without credentials and file contents.
    Cleaned,
}

/// Validates the request of one exchange. Findings contain its step, and `name` as its source.
pub fn validate_request(
    rulebook: &Rulebook,
    schemas: &Schemas,
    operation: &Operation,
    exchange: &Exchange,
    kept: Completeness,
    name: &str,
) -> Judgment {
    let parsed = ParsedRequest::parse(operation, exchange);
    let mut judgment = Judgment::default();
    for Ruling { of, wrong } in rulings(schemas, operation, &parsed, kept) {
        let Some(rule) = rulebook.requests.get(&of.rule(operation)) else {
            continue;
        };
        let finding = wrong.map(|fact| finding(rule, of.at(), fact, exchange, name));
        judgment.conclude(&rule.id, finding);
    }
    judgment
}

fn finding(rule: &Rule, at: String, fact: Fact, exchange: &Exchange, name: &str) -> Finding {
    Finding {
        rule: rule.id.clone(),
        level: rule.level.of_finding(),
        service: exchange.service.clone(),
        operation: exchange.operation.clone(),
        scenario: name.to_owned(),
        step: exchange.step,
        exchange: exchange.step,
        pointer: at,
        kind: fact.kind.to_owned(),
        message: format!(
            "the client sent {}, expected {}",
            fact.actual, fact.expected
        ),
        expected: fact.expected,
        actual: fact.actual,
        reproduce: curl(exchange),
        subject: Subject::Request,
        ..Finding::default()
    }
}

/// Findings in the valid requests of one of the project's own scenarios. Invalid requests would lead to false positives.
///
/// `before` are the requests of the same scenario without mutations; equal requests in the same place are skipped.
pub fn find_invalid_requests(
    rulebook: &Rulebook,
    schemas: &Schemas,
    evidence: &Evidence,
    before: &[Exchange],
) -> Vec<Finding> {
    let meant = |exchange: &Exchange| {
        matches!(exchange.expectation, Expectation::Accepted(_))
            && exchange.via.is_none()
            && exchange.credentials == Credentials::Default
    };
    let is_known = |index: usize, exchange: &Exchange| {
        before.get(index).is_some_and(|known| {
            meant(known)
                && known.operation == exchange.operation
                && known.service == exchange.service
                && known.request == exchange.request
                && known.sent == exchange.sent
        })
    };
    let mut found = Vec::new();
    for (index, exchange) in evidence.exchanges.iter().enumerate() {
        if !meant(exchange) || is_known(index, exchange) {
            continue;
        }
        let Some(operation) = rulebook.operation(&exchange.service, &exchange.operation) else {
            continue;
        };
        let parsed = ParsedRequest::parse(operation, exchange);
        for Ruling { of, wrong } in rulings(schemas, operation, &parsed, Completeness::Whole) {
            // The credentials of a target depend on its configuration.
            let Some(fact) = wrong.filter(|_| of != RuleSubject::Credentials) else {
                continue;
            };
            let rule = rulebook.requests.get(&of.rule(operation));
            if let Some(rule) = rule.filter(|rule| rule.level.of_finding() == Level::Must) {
                found.push(finding(rule, of.at(), fact, exchange, &evidence.scenario));
            }
        }
    }
    found
}
