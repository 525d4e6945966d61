//! `parent-scope` with `to`: a reference leads to a resource of the same scope. Does not judge resources that were not
//! observed.

use super::prelude::*;
use crate::history::{History, ResourceId};

/// A field names a resource of the same scope.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceScope {
    /// Pointer to the id.
    shown: Vec<ReferenceField>,
    /// The kind of the resource that it names.
    to: String,
}

/// A field that names another resource.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReferenceField {
    /// The representation.
    kind: String,
    /// Where in it.
    at: String,
}

impl Predicate for ReferenceScope {
    fn references(&self, references: &mut References) {
        for place in &self.shown {
            references
                .kind("kind", &place.kind)
                .pointer("at", &place.at);
        }
        references.kind("to", &self.to);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        for (id, resource) in history.resources.iter() {
            for observation in &resource.observations {
                let mut places = self.shown.iter();
                let place = places.find(|place| place.kind == observation.shown_type);
                let shown =
                    place.and_then(|place| Some((place, observation.representation(context)?)));
                let Some((place, shown)) = shown else {
                    continue;
                };
                let named = shown.value(&place.at).and_then(Value::as_str);
                let site = shown.site(&place.at);
                let Some(named) = named.filter(|_| !verdicts.has_finding_at(&site)) else {
                    continue;
                };
                self.evaluate_request((id, named, site), verdicts);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let in_service = |digit: &str| json!({"ServiceSid": sid("IS", digit)});
        let role = |scene: &ExampleBuilder, digit: &str| {
            let role = json!({"sid": sid("RL", digit), "service_sid": sid("IS", digit)});
            scene.answered("create-role", in_service(digit), role)
        };
        let shown = json!([{"kind": "chat/user", "at": "/role_sid"}]);
        let rule = Example::for_rule("chat", json!({"shown": shown, "to": "chat/role"}));
        let of_one = role(&rule, "1");
        let of_two = role(&of_one, "2");
        let given = |scene: &ExampleBuilder, role: &str| {
            let ann = json!({"ServiceSid": sid("IS", "1"), "Identity": "ann"});
            let user = json!({
                "sid": sid("US", "1"), "service_sid": sid("IS", "1"), "role_sid": sid("RL", role),
            });
            scene.answered("create-user", ann, user)
        };
        vec![
            given(&of_two, "1").passes(),
            given(&of_two, "2").fails("/role_sid"),
            given(&of_two, "3").not_judged(),
            given(&of_one, "1").not_judged(),
        ]
    }
}

/// Whether the reference leads into the scope of the resource; `None` if that is unknown.
fn is_within(history: &History<'_>, id: ResourceId, target: ResourceId) -> Option<bool> {
    let own = |kind: &str| {
        let resource = history.resources.get(id);
        let mut parents = resource.parents.iter().copied();
        if resource.kind == kind {
            return Some(id);
        }
        parents.find(|&parent| history.resources.get(parent).kind == kind)
    };
    let scopes = &history.resources.get(target).parents;
    let mut known = scopes
        .iter()
        .filter_map(|&scope| Some(own(history.resources.get(scope).kind)? == scope))
        .peekable();
    known.peek()?;
    Some(known.all(|is_own| is_own))
}

impl ReferenceScope {
    fn evaluate_request(
        &self,
        (id, named, site): (ResourceId, &str, Site),
        verdicts: &mut Verdicts<'_>,
    ) {
        let context = verdicts.context;
        let history = &context.history;
        let mut targets = history.resources.of_kind(&self.to);
        let target = targets.find(|(_, target)| target.key == named);
        let Some(is_own) = target.and_then(|(target, _)| is_within(history, id, target)) else {
            return;
        };
        // An invalid id for a mutation.
        let mut others = history.resources.of_kind(&self.to);
        let foreign = others.find_map(|(other, resource)| {
            let key = context.identity(&self.to)?.key.first()?;
            let shown = resource
                .observations
                .iter()
                .find_map(|s| s.representation(context))?;
            (is_within(history, id, other) == Some(false)).then(|| shown.site(key))
        });
        let Some(foreign) = foreign else {
            verdicts.record_vacuous(Vacuity::Alone);
            return;
        };
        let wrong = (!is_own).then(|| {
            Fact::new(
                "wrong-scope",
                "what belongs to the same scope",
                format!("{named}, which is of another one"),
            )
        });
        verdicts.conclude([foreign, site], wrong);
    }
}
