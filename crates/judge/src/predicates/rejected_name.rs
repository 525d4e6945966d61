//! `rejected-create` with `path`: a name whose creation was rejected selects nothing, whole or cut to the maximum length.
//! With `free`, the same request with valid values may have the name.

use super::prelude::*;
use crate::acceptance::Acceptance;
use crate::compare::as_text;
use crate::history::Outcome;
use conformant_rulebook::Action;

/// After a rejected creation by this operation, no path selects a resource by the name in the request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RejectedName {
    /// The operation that makes.
    operation: String,
    /// Its parameter with the name.
    parameter: String,
    /// The parameter of paths that takes the name.
    path: String,
    /// How long names are at most.
    #[serde(default)]
    max: Option<usize>,
    /// Judge later creations under the name in place of paths with the name.
    #[serde(default)]
    free: bool,
}

impl Predicate for RejectedName {
    fn references(&self, references: &mut References) {
        references
            .operation("operation", &self.operation)
            .parameter("parameter", &self.parameter);
        references.any_parameter("path", &self.path);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        for (index, write) in context.writes_of(&verdicts.rule.service, &self.operation) {
            let exchange = context.seen[index].exchange;
            let is_refused = write.outcome == Outcome::Refused && write.does == Action::Makes;
            let name = exchange.sent.get(&self.parameter).map(as_text);
            if let Some(name) = name.filter(|name| is_refused && !name.is_empty())
                && history.path_bindings[index]
                    .scope()
                    .is_some_and(|scope| history.is_exclusive(scope))
            {
                if self.free {
                    self.evaluate_creations((index, &name), verdicts);
                } else {
                    self.evaluate_name((index, &name), verdicts);
                }
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let named = |name: &str| json!({"ServiceSid": sid("IS", "1"), "UniqueName": name});
        let made = |scene: &ExampleBuilder, digit: &str, name: &str| {
            let channel = json!({"sid": sid("CH", digit), "service_sid": sid("IS", "1"), "unique_name": name});
            scene.answered("create-channel", named(name), channel)
        };
        let of = |mut parameters: Value| {
            parameters["operation"] = json!("create-channel");
            parameters["parameter"] = json!("UniqueName");
            parameters["path"] = json!("ChannelSid");
            made(&Example::for_rule("chat", parameters), "1", "")
        };
        let found = |scene: &ExampleBuilder, name: &str| {
            let path = json!({"ServiceSid": sid("IS", "1"), "ChannelSid": name});
            scene.answered("read-members", path, page("members", json!([])))
        };
        let refused = of(json!({"max": 2})).refused("create-channel", named("abc"));
        // The list is there, so that a mutation can use its response.
        let good = found(&of(json!({})), "other").refused("create-channel", named("abc"));
        let path = json!({"ServiceSid": sid("IS", "1"), "ChannelSid": "abc"});
        let wrong = json!({"ServiceSid": sid("IS", "1"), "UniqueName": "abc", "Type": "other"});
        let twin = made(&of(json!({"free": true})), "2", "first").refused("create-channel", wrong);
        vec![
            made(&twin, "3", "abc").passes(),
            twin.refused("create-channel", named("abc")).fails(""),
            twin.not_judged(),
            good.refused("read-members", path).passes(),
            found(&refused, "abc").fails(""),
            found(&refused, "ab").fails(""),
            found(&refused, "a").not_judged(),
            refused.not_judged(),
        ]
    }
}

impl RejectedName {
    /// A creation under the name that differs only in the name from an accepted one is accepted, too.
    fn evaluate_creations(&self, (refused, name): (usize, &str), verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        let scope = history.path_bindings[refused].scope();
        let of_scope = |index: &usize| {
            let exchange = context.seen[*index].exchange;
            let is_this =
                exchange.service == verdicts.rule.service && exchange.operation == self.operation;
            is_this
                && exchange.credentials.sees_ours()
                && history.path_bindings[*index].scope() == scope
        };
        let creations: Vec<usize> = (0..context.seen.len()).filter(of_scope).collect();
        let sent = |index: usize| &context.seen[index].exchange.sent;
        let has_name = |index: usize| {
            let named = sent(index).get(&self.parameter).map(as_text);
            named.is_some_and(|named| named == name)
        };
        let is_accepted = |index: usize| context.seen[index].acceptance == Acceptance::Accepted;
        let is_rejected =
            |index: usize| matches!(context.seen[index].acceptance, Acceptance::Rejected(_));
        // The first one under the name, apart from those that may have been rejected for another value.
        let differs_in_name = |one: usize, other: usize| {
            let all = |index: usize| sent(index).iter().filter(|(p, _)| **p != self.parameter);
            one != other && sent(one).contains_key(&self.parameter) && all(one).eq(all(other))
        };
        let later = creations.iter().copied().find(|&later| {
            let is_after = history.moments[refused].is_before(&history.moments[later]);
            let mut others = creations.iter();
            is_after
                && has_name(later)
                && others.any(|&o| is_accepted(o) && differs_in_name(o, later))
        });
        let Some(later) = later.filter(|&later| is_accepted(later) || is_rejected(later)) else {
            return;
        };
        let mut before = creations.iter().take_while(|&&index| index < later);
        let site = Site::Exchange(later);
        if before.any(|&index| has_name(index) && !is_rejected(index))
            || verdicts.has_finding_at(&site)
        {
            return;
        }
        let fact = is_rejected(later).then(|| {
            Fact::new(
                "refused-and-taken",
                format!("{name} to be free: the request that named it first was rejected"),
                "rejected",
            )
        });
        verdicts.conclude([Site::Exchange(refused), site], fact);
    }

    fn evaluate_name(&self, (refused, name): (usize, &str), verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        let cut: Option<String> = self.max.map(|max| name.chars().take(max).collect());
        let is_it = |text: &str| text == name || cut.as_deref() == Some(text);
        let scope = |index: usize| {
            history.path_bindings[index]
                .parents
                .first()
                .copied()
                .flatten()
        };
        for (index, seen) in context.seen.iter().enumerate().skip(refused + 1) {
            let named = seen.exchange.sent.get(&self.path).map(as_text);
            let later = history.moments[refused].is_before(&history.moments[index]);
            let is_answered = matches!(seen.exchange.status(), Some(200..=299 | 400..=499));
            let looked = named.is_some_and(|named| is_it(&named)) && later && is_answered;
            if !looked || scope(index) != scope(refused) || !seen.exchange.credentials.sees_ours() {
                continue;
            }
            // Another request may have brought it all the same.
            let brought = context.seen[..index]
                .iter()
                .enumerate()
                .any(|(other, seen)| {
                    let sent = seen.exchange.sent.get(&self.parameter).map(as_text);
                    let done = matches!(
                        seen.acceptance,
                        Acceptance::Accepted | Acceptance::Inconclusive(_)
                    );
                    other != refused
                        && done
                        && sent.is_some_and(|sent| is_it(&sent) || sent.starts_with(name))
                });
            let site = Site::Exchange(index);
            if brought || verdicts.has_finding_at(&site) {
                continue;
            }
            let found = seen.acceptance == Acceptance::Accepted;
            let fact = found.then(|| {
                Fact::new(
                    "refused-and-made",
                    format!("nothing under {name}, whose creation was refused"),
                    "something found",
                )
            });
            verdicts.conclude([Site::Exchange(refused), site], fact);
        }
    }
}
