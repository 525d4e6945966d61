//! `rejected-create` with `of`: a rejected creation creates nothing, and with `once` an accepted one creates one resource. Compares
//! the list of its scope before and after the creation.
//!
//! `rejected-create` with `path`: a name whose creation was rejected selects nothing, whole or cut to the maximum length.
//! With `free`, the same request with valid values may have the name.

use super::prelude::*;

/// A rejected request of this operation has created nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RejectedCreate {
    /// The operation with its service.
    of: OperationName,
    /// Judge accepted creations in place of rejected ones.
    #[serde(default)]
    once: bool,
}

impl Predicate for RejectedCreate {
    fn references(&self, references: &mut References) {
        references.operation("of", self.of.name());
    }

    fn fits(model: &Model<'_>) -> Option<Vec<String>> {
        let is_listed = |made: &Operation| {
            let service = model.services.get(&made.service);
            let mut others = service.into_iter().flat_map(|s| s.operations.values());
            others.any(|o| o.does == Action::Lists && o.path == made.path)
        };
        Some(operations(model, |o| {
            o.does == Action::Makes && is_listed(o)
        }))
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;

        let outcome = if self.once {
            Outcome::Done
        } else {
            Outcome::Refused
        };
        let writes = context.writes_of(&verdicts.rule.service, self.of.id());
        let mut judged: Vec<usize> = Vec::new();
        for (_, write) in writes.filter(|(_, write)| write.outcome == outcome) {
            let mut lists = history.lists.iter().filter(|list| {
                let shown = context.about(list.item_type).and_then(Annotations::of);
                shown.is_some()
                    && shown == write.kind
                    && list.parents == write.parents
                    && list.filters.is_empty()
                    && list.is_complete
            });
            let before = lists
                .clone()
                .rfind(|list| list.last.is_before(&write.moment));
            let after = lists.find(|list| write.moment.is_before(&list.first) && !list.is_attempt);
            if let (Some(before), Some(after)) = (before, after)
                && !judged.contains(&after.pages[0])
            {
                judged.push(after.pages[0]);
                evaluate_lists(write, (before, after), verdicts);
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let made = |once: bool| {
            let rule = Example::for_rule("chat", json!({"of": "chat/create-member", "once": once}));
            rule.shown("create-service", service("1", "a")).answered(
                "create-member",
                in_channel(json!({})),
                member("1", "1"),
            )
        };
        let listed = |scene: &ExampleBuilder, digits: &[&str]| {
            let members: Vec<Value> = digits.iter().map(|digit| member(digit, digit)).collect();
            let sent = in_channel(json!({}));
            scene.answered("read-members", sent, page("members", members))
        };
        let refused =
            |scene: &ExampleBuilder| scene.refused("create-member", in_channel(json!({})));
        let again = |once: bool| {
            let listed = listed(&made(once), &["1"]);
            listed.answered("create-member", in_channel(json!({})), member("2", "2"))
        };
        let once = refused(&listed(&made(false), &["1"]));
        let unlisted = refused(&listed(&made(false), &[]));
        let twice = refused(&again(false));
        let copied = page(
            "members",
            json!([member("1", "1"), member("4", "2"), member("2", "2")]),
        );
        vec![
            listed(&once, &["1"]).passes(),
            listed(&once, &["1", "2"]).fails("/members/1"),
            listed(&unlisted, &["1"]).not_judged(),
            listed(&refused(&made(false)), &["1"]).not_judged(),
            listed(&again(true), &["1", "2"]).passes(),
            listed(&again(true), &["1", "2", "3"]).fails("/members/2"),
            listed(&again(false), &["1", "2", "3"]).not_judged(),
            twice
                .answered("read-members", in_channel(json!({})), copied)
                .passes(),
            listed(&twice, &["1", "2", "3"]).fails("/members/2"),
        ]
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        // Another key: it is no longer what was listed before.
        Mutation::at(sites.last(), [Change::Near])
    }
}

fn evaluate_lists(
    write: &Write<'_>,
    (before, after): (&List<'_>, &List<'_>),
    verdicts: &mut Verdicts<'_>,
) {
    let context = verdicts.context;
    let history = &context.history;
    let scope = before.scope();
    if scope.map_or(!history.alone, |scope| !history.is_exclusive(scope)) {
        return;
    }
    // A list that lags may show later what came before.
    let made_before = |id: ResourceId| {
        let made = history.creation_of(id);
        made.is_some_and(|made| made.moment.is_before(&before.first))
    };
    let newest = history
        .resources
        .of_kind(write.kind.unwrap_or_default())
        .map(|(id, _)| id)
        .filter(|&id| made_before(id) && history.belongs(id, before) == Some(true));
    let newest = newest.max_by_key(|&id| history.resources.get(id).made);
    let opened = history.writes.iter().any(|other| {
        let between =
            other.moment.may_follow(&before.first) && !after.last.is_before(&other.moment);
        let named = other.resource.is_some() && other.does == Action::Makes;
        let makes = other.does.may_make();
        let may_bring = (other.kind == write.kind && makes) || other.kind.is_none();
        between && may_bring && other.outcome != Outcome::Refused && !named
    });
    if opened || !newest.is_some_and(|id| before.holds(id)) {
        return;
    }
    let is_new = |item: &&Item| match item.resource {
        Some(id) => !before.holds(id) && history.resources.get(id).made.is_none(),
        None => false,
    };
    let key = context
        .identity(after.item_type)
        .and_then(|identity| identity.key.first());
    let key = key.map_or("", String::as_str);
    let shown = |item: &Item| &context.representations[item.representation];
    let items = after.items.iter().map(|item| shown(item).site(key));
    let Some(sites) = Sites::collect(items) else {
        verdicts.record_vacuous(Vacuity::Empty);
        return;
    };
    // A copy of what an accepted creation made is that creation's second resource, which `once` judges.
    let is_made_between = |item: &&Item| {
        let made = item.resource.and_then(|id| history.creation_of(id));
        made.is_some_and(|made| made.moment.may_follow(&before.first))
    };
    let is_copy = |item: &&Item| {
        let mut accepted = after.items.iter().filter(is_made_between);

        write.outcome == Outcome::Refused
            && accepted.any(|made| is_copy_of(shown(made).value, shown(item).value, key))
    };
    let mut extra = after.items.iter().filter(is_new);
    let wrong = extra.find(|item| !is_copy(item)).map(|item| {
        let (kind, actual) = match write.outcome {
            Outcome::Done => ("made-twice", "one more than was made"),
            Outcome::Refused | Outcome::Unknown => {
                ("made-though-refused", "one more after a refusal")
            }
        };
        let fact = Fact::new(kind, "nothing that was not made", actual);
        (shown(item).site(""), fact)
    });
    verdicts.conclude_at(sites, wrong);
}

/// Whether two representations differ only in their keys, also within addresses, and in times. `key` is a pointer.
fn is_copy_of(made: &Value, other: &Value, key: &str) -> bool {
    fn is_same(made: &Value, other: &Value, keys: (&str, &str)) -> bool {
        match (made, other) {
            (Value::Object(made), Value::Object(other)) => {
                made.len() == other.len()
                    && made.iter().all(|(name, value)| {
                        other
                            .get(name)
                            .is_some_and(|other| is_same(value, other, keys))
                    })
            }
            (Value::String(text), Value::String(other_text)) => {
                text.replace(keys.0, keys.1) == *other_text
                    || (instant(made).is_some() && instant(other).is_some())
            }
            _ => made == other,
        }
    }
    let text = |value: &Value| Some(value.pointer(key)?.as_str()?.to_owned());
    match (text(made), text(other)) {
        (Some(own), Some(others)) => is_same(made, other, (&own, &others)),
        _ => false,
    }
}

/// After a rejected creation by this operation, no path selects a resource by the name in the request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RejectedName {
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
                let expected = format!("nothing under {name}, whose creation was refused");
                Fact::new("refused-and-made", expected, "something found")
            });
            verdicts.conclude([Site::Exchange(refused), site], fact);
        }
    }
}
