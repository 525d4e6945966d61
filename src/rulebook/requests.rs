//! What clients are held to: a rule for each parameter, body and pair of credentials that an operation
//! takes, from the places that the rules about services come from.
//!
//! Nothing is written a second time: an id is the service's with `request` behind the operation, the
//! source is the same. The rules of services never hear of what is found by these.

use super::model::{Operation, Origin, Rule, Service};
use crate::source::Source;
use crate::verdict::{Basis, Level};
use std::collections::BTreeMap;

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

/// The rules about the clients of a service; `bodies` is what the document says of bodies as a whole,
/// nothing where it shows no encoding.
pub(super) fn derive(
    rules: &BTreeMap<String, Rule>,
    service: &Service,
    bodies: Option<&(String, Source)>,
    place: &str,
) -> BTreeMap<String, Rule> {
    let mut derived = Vec::new();
    for operation in service.operations.values() {
        let rule = |id: String, says: String, source: &Source, place: &str, origin| Rule {
            id,
            service: service.name.clone(),
            level: Level::Must,
            basis: Basis::Stated,
            source: source.clone(),
            says,
            place: place.to_owned(),
            origin,
        };
        if let Some((says, source)) = bodies.filter(|_| !operation.bodies.is_empty()) {
            let origin = Origin::Operation {
                operation: operation.id.clone(),
            };
            derived.push(rule(
                operation.body_rule(),
                format!("Clients: {says}"),
                source,
                place,
                origin,
            ));
        }
        for parameter in &operation.parameters {
            let of_service = rules.get(&parameter.rule);
            let origin = Origin::Parameter {
                operation: operation.id.clone(),
                parameter: parameter.name.clone(),
            };
            derived.push(rule(
                operation.client_rule(&parameter.rule),
                format!("Clients send {}: {}", parameter.name, parameter.description),
                &parameter.source,
                of_service.map_or(place, |r| &r.place),
                origin,
            ));
        }
        let guarded = rules.get(&format!("{}/{}/credentials", service.name, operation.id));
        if let Some(guarded) = guarded.filter(|_| operation.secured) {
            derived.push(rule(
                operation.client_credentials(),
                "Clients authenticate in the form that the document shows.".to_owned(),
                &guarded.source,
                &guarded.place,
                guarded.origin.clone(),
            ));
        }
    }
    derived.into_iter().map(|r| (r.id.clone(), r)).collect()
}
