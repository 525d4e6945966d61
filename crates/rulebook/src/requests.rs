//! What clients are held to: a rule for each parameter, body and pair of credentials that an operation
//! takes, from the places that the rules about services come from.
//!
//! Nothing is written a second time: an id is the service's with `request` behind the operation, the
//! source is the same. The rules of services never hear of what is found by these.

use super::model::{Operation, Origin, Parameter, Place, Rule, Service};
use super::openapi::Advice;
use conformant_base::source::Source;
use conformant_record::{Basis, Level};
use std::collections::BTreeMap;

/// The id of the rule about the advice that a document gives beside what it demands.
pub fn advised(rule: &str) -> String {
    format!("{rule}-advised")
}

/// The word behind an operation's id.
const REQUEST: &str = "request";

impl Operation {
    /// The id of the rule about its body as a whole: how it is encoded, and how names are spelled.
    pub fn body_rule(&self) -> String {
        format!("{}/{}/{REQUEST}", self.service, self.id)
    }

    /// The id of the rule about what clients send as a parameter, of which `rule` is what services do
    /// with it.
    pub fn client_rule(&self, rule: &str) -> String {
        let name = rule.rsplit('/').next().unwrap_or(rule);
        format!("{}/{name}", self.body_rule())
    }

    /// The id of the rule about the credentials that clients send.
    pub fn client_credentials(&self) -> String {
        format!("{}/credentials", self.body_rule())
    }
}

/// Lets parameters know what the document advises of them.
pub(super) fn advise(service: &mut Service, advice: &[Advice]) {
    let operations = service.operations.values_mut();
    for parameter in operations.flat_map(|o| &mut o.parameters) {
        let advised = advice.iter().find(|a| a.is_about(parameter));
        parameter.advice = advised.map(|a| a.pattern.clone());
    }
}

impl Advice {
    fn is_about(&self, parameter: &Parameter) -> bool {
        matches!(parameter.place, Place::Query | Place::Body)
            && self.parameters.contains(&parameter.name)
    }
}

/// What the rules about the clients of a service are made of.
pub(super) struct Clients<'a> {
    /// Those about the service itself.
    pub(super) rules: &'a BTreeMap<String, Rule>,
    pub(super) service: &'a Service,
    /// What the document says of bodies as a whole; nothing where it shows no encoding.
    pub(super) bodies: Option<&'a (String, Source)>,
    pub(super) advice: &'a [Advice],
    /// The file that all this stands in.
    pub(super) place: &'a str,
}

impl Clients<'_> {
    /// Every rule by id.
    pub(super) fn derive(&self) -> BTreeMap<String, Rule> {
        let operations = self.service.operations.values();
        let all = operations.flat_map(|operation| self.of(operation));
        all.map(|rule| (rule.id.clone(), rule)).collect()
    }

    fn of(&self, operation: &Operation) -> Vec<Rule> {
        let mut all = Vec::new();
        if let Some((says, source)) = self.bodies.filter(|_| !operation.bodies.is_empty()) {
            let origin = Origin::Operation {
                operation: operation.id.clone(),
            };
            let says = format!("Clients: {says}");
            all.push(self.rule(operation.body_rule(), says, source, origin));
        }
        for parameter in &operation.parameters {
            let origin = Origin::Parameter {
                operation: operation.id.clone(),
                parameter: parameter.name.clone(),
            };
            let id = operation.client_rule(&parameter.rule);
            if let Some(advice) = self.advice.iter().find(|a| a.is_about(parameter)) {
                all.push(Rule {
                    level: Level::Should,
                    ..self.rule(
                        advised(&id),
                        advice.says.clone(),
                        &advice.source,
                        origin.clone(),
                    )
                });
            }
            let of_service = self.rules.get(&parameter.rule);
            let says = format!("Clients send {}: {}", parameter.name, parameter.description);
            all.push(Rule {
                place: of_service.map_or(self.place, |r| &r.place).to_owned(),
                ..self.rule(id, says, &parameter.source, origin)
            });
        }
        let guarded = format!("{}/{}/credentials", self.service.name, operation.id);
        if let Some(guarded) = self.rules.get(&guarded).filter(|_| operation.secured) {
            let says = "Clients authenticate in the form that the document shows.".to_owned();
            all.push(Rule {
                place: guarded.place.clone(),
                ..self.rule(
                    operation.client_credentials(),
                    says,
                    &guarded.source,
                    guarded.origin.clone(),
                )
            });
        }
        all
    }

    fn rule(&self, id: String, says: String, source: &Source, origin: Origin) -> Rule {
        Rule {
            id,
            service: self.service.name.clone(),
            level: Level::Must,
            basis: Basis::Stated,
            source: source.clone(),
            says,
            place: self.place.to_owned(),
            origin,
        }
    }
}
