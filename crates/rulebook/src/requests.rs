//! Rules about clients: one for each parameter, body and pair of credentials of an operation. They are derived from the same
//! places as the rules about services.
//!
//! Ids are those of the service with `request` after the operation; sources are the same. Findings of these rules never affect
//! rules about services.

use super::model::{Operation, Origin, Parameter, ParameterLocation, Rule, Service};
use super::openapi::Advice;
use conformant_base::sorted::SortedMap;
use conformant_base::source::Source;
use conformant_record::{Basis, Level};

/// The id of the rule about the documented advice for a parameter.
pub fn advice_rule_id(rule: &str) -> String {
    format!("{rule}-advised")
}

/// The segment after an operation's id.
const REQUEST: &str = "request";

impl Operation {
    /// The id of the rule about the body as a whole: its encoding and the spelling of names.
    pub fn body_rule(&self) -> String {
        format!("{}/{}/{REQUEST}", self.service, self.id)
    }

    /// The id of the rule about a parameter in requests; `rule` is the one about how services handle
    /// it.
    pub fn client_rule(&self, rule: &str) -> String {
        let name = rule.rsplit('/').next().unwrap_or(rule);
        format!("{}/{name}", self.body_rule())
    }

    /// The id of the rule about the credentials in requests.
    pub fn client_credentials(&self) -> String {
        format!("{}/credentials", self.body_rule())
    }
}

/// Adds the documented advice to parameters.
pub(super) fn apply_advice(service: &mut Service, advice: &[Advice]) {
    let operations = service.operations.values_mut();
    for parameter in operations.flat_map(|o| &mut o.parameters) {
        let advice_rule_id = advice.iter().find(|a| a.is_about(parameter));
        parameter.advice = advice_rule_id.map(|a| a.pattern.clone());
    }
}

impl Advice {
    fn is_about(&self, parameter: &Parameter) -> bool {
        matches!(
            parameter.place,
            ParameterLocation::Query | ParameterLocation::Body
        ) && self.parameters.contains(&parameter.name)
    }
}

/// The source of the rules about clients of a service.
pub(super) struct Clients<'a> {
    /// The rules about the service itself.
    pub(super) rules: &'a SortedMap<String, Rule>,
    pub(super) service: &'a Service,
    /// Documented statements about all bodies; `None` without a documented encoding.
    pub(super) bodies: Option<&'a (String, Source)>,
    pub(super) advice: &'a [Advice],
    /// The file of the operations.
    pub(super) place: &'a str,
}

impl Clients<'_> {
    /// Derives all rules, by id.
    pub(super) fn derive(&self) -> SortedMap<String, Rule> {
        let operations = self.service.operations.values();
        let all = operations.flat_map(|operation| self.rules_of(operation));
        all.map(|rule| (rule.id.clone(), rule)).collect()
    }

    fn rules_of(&self, operation: &Operation) -> Vec<Rule> {
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
                        advice_rule_id(&id),
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
