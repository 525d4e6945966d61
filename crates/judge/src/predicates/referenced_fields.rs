//! `referenced-fields`: fields copied from a referenced resource equal those of the resource. Does not judge resources
//! that were not observed, nor absent fields.

use super::prelude::*;
use crate::compare::is_unspecified;

/// A field references a resource; further fields are copies of the fields of that resource.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReferencedFields {
    /// The resource type with the reference.
    kind: String,
    /// Pointer to the reference.
    at: String,
    /// The resource type of the referenced resource.
    with: String,
    /// Equal fields: here, and in the resource.
    same: BTreeMap<String, String>,
    /// Whether the referenced resource copies the field, after the consistency window. It then has one reference only.
    #[serde(default)]
    follows: bool,
}

impl Predicate for ReferencedFields {
    fn references(&self, references: &mut References) {
        let here: Vec<String> = self.same.keys().cloned().collect();
        let there: Vec<String> = self.same.values().cloned().collect();
        references
            .kind("kind", &self.kind)
            .pointer("at", &self.at)
            .pointers("same", &here);
        references.kind("with", &self.with).pointers("same", &there);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        let mut naming: BTreeMap<ResourceId, Vec<(ResourceId, &Observation<'_>)>> = BTreeMap::new();
        for (id, resource) in history.resources.iter() {
            for observation in resource.seen_as(&self.kind) {
                let key = observation.value(context, &self.at).and_then(Value::as_str);
                let mut resources = history.resources.of_kind(&self.with);
                if let Some((named, _)) = resources.find(|(_, resource)| key == Some(&resource.key))
                {
                    naming.entry(named).or_default().push((id, observation));
                }
            }
        }
        for (named, by) in naming {
            let is_one = by.iter().all(|(id, _)| *id == by[0].0);
            if self.follows && !is_one {
                continue;
            }
            // A resource that is named in every message of a list is compared with each of them once.
            for (_, observation) in by {
                self.evaluate_observation((named, observation), verdicts);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let sent = |mut parameters: Value, size: i64| {
            parameters["kind"] = json!("chat/message");
            parameters["at"] = json!("/media/sid");
            parameters["with"] = json!("media/media");
            let message = json!({
                "sid": sid("IM", "1"), "service_sid": sid("IS", "1"), "channel_sid": sid("CH", "1"),
                "media": {"sid": sid("ME", "1"), "size": size},
            });
            let rule = Example::for_rule("chat", parameters);
            rule.answered("create-message", in_channel(json!({})), message)
        };
        let fetched = |scene: &ExampleBuilder, message: Value| {
            let path = json!({"ChatServiceSid": sid("IS", "1"), "MediaSid": sid("ME", "1")});
            let media = json!({
                "sid": sid("ME", "1"), "service_sid": sid("IS", "1"), "size": 5, "message_sid": message,
            });
            let scene = scene.of_service("media");
            scene.answered("fetch-media", path, media)
        };
        let with_size = |size: i64| sent(json!({"same": {"/media/size": "/size"}}), size);
        let back = sent(
            json!({"same": {"/sid": "/message_sid"}, "follows": true}),
            5,
        );
        let (its, other) = (json!(sid("IM", "1")), json!(sid("IM", "2")));
        vec![
            fetched(&with_size(5), Value::Null).passes(),
            fetched(&with_size(6), Value::Null).fails("/media/size"),
            with_size(6).not_judged(),
            fetched(&back.late(), its).passes(),
            fetched(&back.late(), other).fails("/message_sid"),
            fetched(&back.late(), Value::Null).fails("/message_sid"),
            fetched(&back, Value::Null).not_judged(),
        ]
    }
}

impl ReferencedFields {
    fn evaluate_observation(
        &self,
        (named, naming): (ResourceId, &Observation<'_>),
        verdicts: &mut Verdicts<'_>,
    ) {
        let context = verdicts.context;
        let Some(here) = naming.representation(context) else {
            return;
        };
        let resource = context.history.resources.get(named);
        let counts = |observation: &&Observation<'_>| {
            !self.follows || naming.moment.is_before(&observation.moment)
        };
        for observation in resource.seen_as(&self.with).filter(counts) {
            let Some(there) = observation.representation(context) else {
                continue;
            };
            let has_followed = naming.moment.is_settled(&observation.moment);
            for (mine, its) in &self.same {
                // With `follows` the field of the resource is at fault, otherwise the copy.
                let (site, beside) = match self.follows {
                    true => (there.site(its), here.site(mine)),
                    false => (here.site(mine), there.site(its)),
                };
                let values = here.value(mine).zip(there.value(its));
                let Some((a, b)) = values.filter(|_| !verdicts.has_finding_at(&site)) else {
                    continue;
                };
                let is_same = is_equivalent(a, b);
                let is_open = match self.follows {
                    true => !has_followed,
                    false => is_unspecified(its, b),
                };
                if is_open {
                    continue;
                }
                let (expected, actual) = if self.follows { (a, b) } else { (b, a) };
                let fact = Fact::new("disagrees", json::short(expected), json::short(actual));
                verdicts.conclude([beside, site], (!is_same).then_some(fact));
            }
        }
    }
}
