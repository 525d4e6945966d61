//! `unique-name`: a name in use creates no second resource in its scope. In another scope or letter case it does.

use super::prelude::*;
use conformant_rulebook::Kind;

/// What a creation by this operation brings under a name that another resource has.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UniqueName {
    /// The operation that creates.
    operation: String,
    /// The parameter with the name.
    parameter: String,
    /// Where the created resource shows the name.
    at: String,
    /// Which resource has the name already.
    held: Held,
}

/// Who has a name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Held {
    /// A resource of the same scope, spelled the same: no second resource is created.
    Here,
    /// A resource of another scope: a second resource is created.
    Elsewhere,
    /// A resource of the same scope, in another letter case: a second resource is created.
    InOtherCase,
    /// A resource of the same scope, and the name is not unique: a second resource is created.
    Freely,
}

impl Predicate for UniqueName {
    fn references(&self, references: &mut References) {
        references
            .operation("operation", &self.operation)
            .parameter("parameter", &self.parameter)
            .answers("at", &self.at);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        for (index, seen) in verdicts.exchanges_of(&self.operation) {
            let refused = matches!(seen.exchange.status(), Some(400..=499));
            let accepted = seen.acceptance == Acceptance::Accepted;
            let name = seen.exchange.sent.get(&self.parameter).map(as_text);
            let flawed = !seen.exchange.credentials.sees_ours();
            if let Some(name) = name.filter(|name| !name.is_empty() && !flawed)
                && (accepted || refused && self.held == Held::Here)
            {
                self.evaluate_request((index, &name, accepted), verdicts);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let made = |scene: &ExampleBuilder, (service, digit): (&str, &str), mut sent: Value| {
            sent["ServiceSid"] = json!(sid("IS", service));
            let channel = json!({
                "sid": sid("CH", digit), "service_sid": sid("IS", service), "unique_name": sent["UniqueName"],
                "friendly_name": sent["FriendlyName"],
            });
            scene.answered("create-channel", sent, channel)
        };
        let of = |held: &str, (parameter, at): (&str, &str), sent: Value| {
            let parameters = json!({
                "operation": "create-channel", "parameter": parameter, "at": at, "held": held,
            });
            made(&Example::for_rule("chat", parameters), ("1", "1"), sent)
        };
        let named = |held: &str| {
            of(
                held,
                ("UniqueName", "/unique_name"),
                json!({"UniqueName": "a"}),
            )
        };
        let again = |held: &str, service: &str, digit: &str, name: &str| {
            made(&named(held), (service, digit), json!({"UniqueName": name}))
        };
        // Two resources may share a name that is not unique; a unique name sent with it is judged by its own rule.
        let freely = |digit: &str, sent: Value| {
            let first = json!({"UniqueName": "a", "FriendlyName": "x"});
            let first = of("freely", ("FriendlyName", "/friendly_name"), first);
            made(&first, ("1", digit), sent)
        };
        vec![
            again("here", "1", "1", "a").passes(),
            again("here", "1", "2", "a").fails("/unique_name"),
            again("elsewhere", "2", "2", "a").passes(),
            again("elsewhere", "2", "1", "a").fails("/unique_name"),
            again("in-other-case", "1", "2", "A").passes(),
            again("in-other-case", "1", "1", "A").fails("/unique_name"),
            freely("2", json!({"FriendlyName": "x"})).passes(),
            freely("1", json!({"FriendlyName": "x"})).fails("/friendly_name"),
            freely("1", json!({"FriendlyName": "x", "UniqueName": "a"})).not_judged(),
            again("here", "1", "2", "b").not_judged(),
            named("here").not_judged(),
        ]
    }
}

impl UniqueName {
    fn evaluate_request(
        &self,
        (index, name, accepted): (usize, &str, bool),
        verdicts: &mut Verdicts<'_>,
    ) {
        let context = verdicts.context;
        let history = &context.history;
        let when = history.moments[index];
        let scope = history.path_bindings[index].scope();
        let operation = context.seen[index].operation;
        let kind = operation.and_then(|o| context.rulebook.kinds.get(o.resource.as_deref()?));
        let Some(about) = kind.map(|kind| &kind.annotations) else {
            return;
        };
        // Resources without a parent share the scope of the whole service.
        let is_root = about.parents.is_empty();
        let Some(of) = about.of().filter(|_| scope.is_some() || is_root) else {
            return;
        };
        if self.held == Held::Freely && self.sends_a_name(context, index, kind) {
            return;
        }
        // In a scope that other clients reach, any resource may have the name.
        let is_own = scope.is_none_or(|scope| history.is_exclusive(scope));
        if !is_own && self.held != Held::Elsewhere {
            return;
        }
        let holder = history.resources.of_kind(of).find_map(|(id, resource)| {
            let mut observations = resource
                .observations
                .iter()
                .filter(|s| s.moment.is_before(&when));
            let bears = |text: &str| match self.held {
                Held::Here | Held::Elsewhere | Held::Freely => text == name,
                Held::InOtherCase => text != name && text.to_lowercase() == name.to_lowercase(),
            };
            let parent = resource.parents.last().copied();
            let fits = match self.held {
                Held::Elsewhere => parent.is_some() && parent != scope,
                Held::Here | Held::InOtherCase | Held::Freely => parent == scope,
            };
            let fits = fits && (!is_root || history.is_exclusive(id));
            let is_there = fits && history.exists_since(id, &when).is_some();
            let shown = observations.find(|s| {
                s.value(context, &self.at)
                    .and_then(Value::as_str)
                    .is_some_and(bears)
            });
            let shown = shown.filter(|_| is_there)?.representation(context)?;
            Some((id, shown))
        });
        let Some(holder) = holder else { return };
        // If a resource of the scope has the name, too, the other one does not matter.
        if self.held != Held::Here
            && self.held != Held::Freely
            && Self::is_taken(context, (index, name), scope)
        {
            return;
        }
        self.conclude((index, accepted), holder, verdicts);
    }

    fn conclude(
        &self,
        (index, accepted): (usize, bool),
        (holder, holding): (ResourceId, &Representation<'_>),
        verdicts: &mut Verdicts<'_>,
    ) {
        let context = verdicts.context;
        let key = &context.history.resources.get(holder).key;
        if !accepted {
            verdicts.conclude(Site::Exchange(index), None);
            return;
        }
        let identity = context
            .representations
            .iter()
            .find(|r| r.exchange == Some(index));
        let at = identity.and_then(|shown| context.identity(shown.kind)?.key.first());
        let Some((shown, at)) = identity.zip(at) else {
            return;
        };
        let Some(got) = shown.value(at) else { return };
        let site = shown.site(&self.at);
        if verdicts.has_finding_at(&site) {
            return;
        }
        let same = as_text(got) == *key;
        let wrong = match self.held {
            Held::Here => (!same).then(|| (format!("{key}, or a refusal"), as_text(got))),
            Held::Elsewhere | Held::InOtherCase | Held::Freely => {
                same.then(|| (format!("another resource than {key}"), as_text(got)))
            }
        };
        let fact = wrong.map(|(expected, actual)| Fact::new("name", expected, actual));
        let sites = Sites::collect([holding.site(at), shown.site(at), site]);
        if let Some(sites) = sites {
            verdicts.conclude(sites, fact);
        }
    }

    /// Whether a request also gives a name that binds.
    fn sends_a_name(&self, context: &Context<'_>, index: usize, kind: Option<&Kind>) -> bool {
        let names = kind.and_then(|kind| Some(&kind.annotations.identity.as_ref()?.names));
        let seen = &context.seen[index];
        let mut parameters = seen.operation.iter().flat_map(|o| &o.parameters);
        parameters.any(|p| {
            let is_name = p
                .echo
                .as_ref()
                .zip(names)
                .is_some_and(|(echo, n)| n.contains(&echo.at));
            is_name && p.name != self.parameter && seen.exchange.sent.contains_key(&p.name)
        })
    }

    /// Whether an earlier action may have brought the name into the scope.
    fn is_taken(
        context: &Context<'_>,
        (index, name): (usize, &str),
        scope: Option<ResourceId>,
    ) -> bool {
        let history = &context.history;
        context.seen[..index]
            .iter()
            .enumerate()
            .any(|(other, seen)| {
                let mut sent = seen.exchange.sent.values();
                let is_here =
                    scope.is_none() || history.path_bindings[other].parents.contains(&scope);
                is_here
                    && seen.acceptance == Acceptance::Accepted
                    && sent.any(|value| as_text(value) == name)
            })
    }
}
