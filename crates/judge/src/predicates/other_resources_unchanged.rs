//! `other-resources-unchanged`: a write changes only the resource that it names.
//!
//! Does not judge derived fields (`x-derived`, `x-counts`, `x-steps`), nor resources that other clients may reach.

use super::prelude::*;

/// What a request of this operation does not name stays as it was.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OtherResourcesUnchanged {
    /// The operation with its service.
    of: OperationName,
}

impl Predicate for OtherResourcesUnchanged {
    fn references(&self, references: &mut References) {
        references.operation("of", self.of.name());
    }

    fn fits(model: &Model<'_>) -> Option<Vec<String>> {
        Some(operations(model, |o| o.does.writes()))
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        let operation = self.of.id();
        if verdicts.exchanges_of(operation).next().is_none() {
            return;
        }
        let is_of = |write: &Write<'_>| {
            let exchange = write.exchange().map(|index| context.seen[index].exchange);
            exchange.is_some_and(|e| e.service == verdicts.rule.service && e.operation == operation)
        };
        let is_shared = |kind: &str| {
            context
                .identity(kind)
                .is_some_and(|identity| identity.shared)
        };
        let own = history
            .resources
            .iter()
            .filter(|(id, _)| history.is_exclusive(*id));
        for (id, resource) in own.filter(|(_, resource)| !is_shared(resource.kind)) {
            let is_alone = |s: &&Observation<'_>| !matches!(s.shows, Appearance::Item(_));
            let alone: Vec<&Observation<'_>> = resource.seen().filter(is_alone).collect();
            for pair in alone.windows(2) {
                let (before, after) = (pair[0], pair[1]);
                let mut writes = history.writes.iter().rev();
                let last = writes.find(|w| {
                    before.moment.is_before(&w.moment) && w.moment.is_before(&after.moment)
                });
                if let Some(write) = last.filter(|write| is_of(write)) {
                    evaluate_pair((write, id), (before, after), verdicts);
                }
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let rule = Example::for_rule("chat", json!({"of": "chat/update-service"}));
        let at = |digit: &str| json!({"Sid": sid("IS", digit)});
        let renames = |scene: &ExampleBuilder, digit: &str| {
            let sent = json!({"Sid": sid("IS", digit), "FriendlyName": "c"});
            scene.answered("update-service", sent, service(digit, "c"))
        };
        let made = rule.shown("create-service", service("1", "a"));
        let renamed = renames(&made.shown("create-service", service("2", "b")), "1");
        let fetched = |digit: &str, name: &str| {
            renamed.answered("fetch-service", at(digit), service(digit, name))
        };
        let binding = |types: Value| {
            json!({
                "sid": sid("BS", "1"), "service_sid": sid("IS", "1"), "identity": "a",
                "message_types": types,
            })
        };
        let of_binding = json!({"ServiceSid": sid("IS", "1"), "Sid": sid("BS", "1")});
        let sent = of_binding.clone();
        let bound = rule.answered("fetch-user-binding", sent, binding(json!(["new_message"])));
        let of_ann = in_channel(json!({"Identity": "a"}));
        let invited = |of: &str| {
            let mut invite = member("1", "a");
            invite["sid"] = json!(sid("IN", "1"));
            let rule = Example::for_rule("chat", json!({"of": of}));
            rule.answered("create-invite", of_ann.clone(), invite)
        };
        let of_invite = in_channel(json!({"Sid": sid("IN", "1")}));
        vec![
            // Joining may use up an invitation, whatever user name it was for.
            invited("chat/create-member")
                .answered("create-member", of_ann.clone(), member("1", "b"))
                .refused("fetch-invite", of_invite.clone())
                .not_judged(),
            renames(&invited("chat/update-service"), "1")
                .refused("fetch-invite", of_invite)
                .fails(""),
            renames(&bound, "2")
                .answered("fetch-binding", of_binding, binding(Value::Null))
                .passes(),
            fetched("2", "b").passes(),
            fetched("2", "c").fails("/friendly_name"),
            renamed.refused("fetch-service", at("2")).fails(""),
            fetched("1", "c").not_judged(),
        ]
    }
}

fn evaluate_pair(
    (write, id): (&Write<'_>, ResourceId),
    (before, after): (&Observation<'_>, &Observation<'_>),
    verdicts: &mut Verdicts<'_>,
) {
    let context = verdicts.context;
    let history = &context.history;
    let kind = history.resources.get(id).kind;
    // What else lies between the two did not touch it for certain; this write names another.
    let touched = history.writes.iter().any(|other| {
        let between =
            other.moment.may_follow(&before.moment) && !after.moment.is_before(&other.moment);
        between && (other.may_touch(id, kind) || history.may_end(other, id))
    });
    let Some(by) = write
        .exchange()
        .filter(|_| !touched && write.outcome != Outcome::Unknown)
    else {
        return;
    };
    let operation = &context.seen[by].exchange.operation;
    let key = history.resources.get(id).shown();
    let Some(shown) = after.representation(context) else {
        let at = after.exchange.unwrap_or_default();
        let own = history.is_under(id, &history.path_bindings[at].parents) == Some(true);
        let there = before.shows != Appearance::NotFound;
        let site = Site::Exchange(at);
        if own && there && !verdicts.has_finding_at(&site) {
            let expected = format!("{key}, which {operation} did not name");
            let fact = Fact::new("gone", expected, "not found");
            verdicts.conclude([Site::Exchange(by), site], Some(fact));
        }
        return;
    };
    let mut compared = history.compared(context, id, before, after);
    compared.retain(|c| !is_address(&c.pointer) && !verdicts.has_finding_in(shown, &c.pointer));
    let fact = |pointer: &str, was: &str, is: &str| Fact {
        kind: "changed",
        expected: format!("{was}, as before"),
        actual: is.to_owned(),
        message: format!(
            "{pointer} of {key} went from {was} to {is} although {operation} named another"
        ),
    };
    verdicts.conclude_changes(shown, &compared, before.exchange, fact);
}
