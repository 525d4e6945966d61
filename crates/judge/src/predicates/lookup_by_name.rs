//! `lookup-by-name`: a name in a path selects the resource of that name. Acceptance is judged by the operation's own rule.

use super::prelude::*;
use crate::compare::spelled;
use conformant_rulebook::scenario::Credentials;
use std::borrow::Cow;

/// In the paths of these operations, a name selects the resource that had it in an earlier response.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LookupByName {
    /// Operation ids without the service.
    operations: Vec<String>,
    /// The parameter of their paths.
    parameter: String,
    /// Whether the path contains the key, not a name.
    #[serde(default)]
    by_key: bool,
    /// The scope of the name.
    #[serde(default)]
    whose: NameScope,
}

/// The scope of a name in a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum NameScope {
    /// That of a resource of the scope that the path names.
    #[default]
    Here,
    /// A name that only a resource of another scope has: it selects nothing.
    Elsewhere,
    /// A name of a resource in the scope, in another letter case: it selects nothing.
    Nearly,
}

impl Predicate for LookupByName {
    fn references(&self, references: &mut References) {
        references.operations("operations", &self.operations, |operation| {
            operation.parameter("parameter", &self.parameter);
        });
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for operation in &self.operations {
            for (index, seen) in verdicts.exchanges_of(operation) {
                let credentials = seen.exchange.credentials;
                let flawed = !credentials.sees_ours();
                // A user name in another letter case may be rejected.
                let is_refused = credentials != Credentials::UserOtherCase
                    && matches!(seen.exchange.status(), Some(400..=499));
                let is_answered = seen.acceptance == Acceptance::Accepted || is_refused;
                if !is_answered || flawed {
                    continue;
                }
                match self.whose {
                    NameScope::Elsewhere => {
                        self.evaluate_foreign_name(index, verdicts);
                    }
                    NameScope::Nearly => self.evaluate_other_case(index, verdicts),
                    NameScope::Here => {
                        if let Some(named) = self.named(context, index) {
                            evaluate_request((index, named), verdicts);
                        }
                    }
                }
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let at = |name: &str| in_channel(json!({"Sid": name}));
        let fetched = |scene: &ExampleBuilder, name: &str, shown: Value| {
            scene.answered("fetch-member", at(name), shown)
        };
        let parameters = json!({"operations": ["fetch-member"], "parameter": "Sid"});
        let two = Example::for_rule("chat", parameters)
            .answered("create-member", in_channel(json!({})), member("1", "kim"))
            .answered("create-member", in_channel(json!({})), member("2", "Kim"));
        let members = || page("members", json!([]));
        let channel = |digit: &str, name: &str| {
            json!({
                "sid": sid("CH", digit), "service_sid": sid("IS", digit), "unique_name": name,
            })
        };
        let in_service =
            |digit: &str, parameter: &str| json!({"ServiceSid": sid("IS", digit), parameter: "a"});
        let parameters = json!({
            "operations": ["read-members"], "parameter": "ChannelSid", "whose": "elsewhere",
        });
        let strange = Example::for_rule("chat", parameters)
            .answered(
                "create-channel",
                in_service("1", "UniqueName"),
                channel("1", "a"),
            )
            .answered(
                "create-channel",
                json!({"ServiceSid": sid("IS", "2")}),
                channel("2", ""),
            )
            .answered("read-members", in_service("1", "ChannelSid"), members());
        let in_other = in_service("2", "ChannelSid");
        let parameters =
            json!({"operations": ["fetch-member"], "parameter": "Sid", "whose": "nearly"});
        let near = Example::for_rule("chat", parameters)
            .answered(
                "create-channel",
                in_service("1", "UniqueName"),
                channel("1", "a"),
            )
            .answered("create-member", at("kim"), member("1", "kim"));
        let near = fetched(&near, "kim", member("1", "kim"));
        let loud = near.answered("create-member", at("KIM"), member("2", "KIM"));
        vec![
            near.refused("fetch-member", at("KIM")).passes(),
            fetched(&near, "KIM", member("1", "kim")).fails(""),
            fetched(&loud, "KIM", member("2", "KIM")).not_judged(),
            fetched(&two, "kim", member("1", "kim")).passes(),
            fetched(&two, "kim", member("2", "Kim")).fails("/sid"),
            two.refused("fetch-member", at("kim")).fails(""),
            fetched(&two, &sid("MB", "1"), member("1", "kim")).not_judged(),
            two.not_judged(),
            strange.refused("read-members", in_other.clone()).passes(),
            strange
                .answered("read-members", in_other, members())
                .fails(""),
        ]
    }
}

/// What a parameter of a path names: its place among those of the path, and the resource.
#[derive(Clone, Copy)]
struct Meant {
    id: ResourceId,
    /// The place among the parents; `None` if it names the resource itself.
    above: Option<usize>,
}

impl LookupByName {
    /// A name that resources of another scope have, and none of the one that the path names.
    fn evaluate_foreign_name(&self, index: usize, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        let seen = &context.seen[index];
        let bound = &history.path_bindings[index];
        let Some((place, text)) = self.asked(seen) else {
            return;
        };
        let above = place
            .checked_sub(1)
            .and_then(|above| bound.parents.get(above));
        let Some(scope) = above
            .copied()
            .flatten()
            .filter(|&scope| history.is_exclusive(scope))
        else {
            return;
        };
        let when = history.moments[index];
        // The resource that had the name before, and where it was observed.
        let bears = |id: ResourceId| {
            borne(context, history.resources.get(id), &when).any(|name| name == text)
        };
        let kind = history.resources.get(scope).kind;
        let elsewhere = history.resources.iter().find(|(id, resource)| {
            let mut parents = resource.parents.iter();
            let of_kind = parents.find(|&&parent| history.resources.get(parent).kind == kind);
            let is_last = resource.parents.last() == of_kind;
            of_kind.is_some_and(|&parent| parent != scope) && is_last && bears(*id)
        });
        // Anything that was sent into this scope may have brought the name there.
        let brings = |(other, seen): (usize, &Seen<'_>)| {
            let sent = seen.exchange.sent.iter();
            let mut others = sent.filter(|(name, _)| **name != self.parameter);
            history.path_bindings[other].parents.contains(&Some(scope))
                && !matches!(seen.acceptance, Acceptance::Rejected(_))
                && others.any(|(_, value)| spelled(value) == text)
        };
        let brought = || context.seen[..index].iter().enumerate().any(brings);
        let site = Site::Exchange(index);
        let Some((id, _)) = elsewhere.filter(|_| !verdicts.has_finding_at(&site) && !brought())
        else {
            return;
        };
        let found = seen.acceptance == Acceptance::Accepted;
        let fact = found.then(|| {
            Fact::new(
                "wrong-scope",
                format!(
                    "nothing: it names {}, of another scope",
                    history.resources.get(id).key
                ),
                "found",
            )
        });
        verdicts.conclude(site, fact);
    }

    /// A name in another letter case than that of a resource in the scope of the path, if no resource there has
    /// exactly that name.
    fn evaluate_other_case(&self, index: usize, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        let (seen, bound) = (&context.seen[index], &history.path_bindings[index]);
        let Some((place, text)) = self.asked(seen) else {
            return;
        };
        let Some(about) = bound.shown_type.and_then(|shown| context.about(shown)) else {
            return;
        };
        let own = about.identity.as_ref().map(|identity| &identity.of);
        let kind = about.parents.get(place).map(|(_, kind)| kind).or(own);
        let above = &bound.parents[..place.min(bound.parents.len())];
        let when = history.moments[index];
        let folded = text.to_lowercase();
        let mut near = None;
        let named = kind.map(|kind| history.resources.of_kind(kind));
        for (id, resource) in named.into_iter().flatten() {
            let names = borne(context, resource, &when);
            if history.is_exclusive(id) && history.is_under(id, above) == Some(true) {
                for name in names.filter(|name| name.to_lowercase() == folded) {
                    if name == text {
                        return;
                    }
                    near = Some(name);
                }
            }
        }
        // The action that removed the name may have created another resource with it.
        let brings = |seen: &Seen<'_>| {
            let mut sent = seen.exchange.sent.values();
            !matches!(seen.acceptance, Acceptance::Rejected(_)) && sent.any(|v| spelled(v) == text)
        };
        let Some(near) = near.filter(|_| !context.seen[..index].iter().any(brings)) else {
            return;
        };
        let found = seen.acceptance == Acceptance::Accepted;
        let fact = found.then(|| {
            let expected = format!("nothing: what is there is {near}, in another letter case");
            Fact::new("wrong-case", expected, "found")
        });
        verdicts.conclude(Site::Exchange(index), fact);
    }

    /// The place of the parameter in the path, and the sent text.
    fn asked<'c>(&self, seen: &'c Seen<'_>) -> Option<(usize, Cow<'c, str>)> {
        let text = spelled(seen.exchange.sent.get(&self.parameter)?);
        let mut path = seen.operation?.path_names();
        Some((path.position(|p| p.name == self.parameter)?, text))
    }

    /// The resource of the parameter, if an earlier response had exactly this name.
    fn named(&self, context: &Context<'_>, index: usize) -> Option<Meant> {
        let history = &context.history;
        let seen = &context.seen[index];
        let (place, text) = self.asked(seen)?;
        let bound = &history.path_bindings[index];
        let above = (place < bound.parents.len()).then_some(place);
        let id = match above {
            Some(place) => bound.parents.get(place).copied().flatten()?,
            None => bound.resource?,
        };
        let resource = history.resources.get(id);
        if self.by_key {
            let is_key = resource.key == text;
            return (is_key && history.is_exclusive(id)).then_some(Meant { id, above });
        }
        let when = history.moments[index];
        let known = borne(context, resource, &when).any(|name| name == text);
        (known && resource.key != text && history.is_exclusive(id)).then_some(Meant { id, above })
    }
}

/// The natural names that a resource was shown with before.
fn borne<'a>(
    context: &'a Context<'_>,
    resource: &'a Resource,
    when: &'a Moment,
) -> impl Iterator<Item = Cow<'a, str>> {
    resource.observations.iter().flat_map(move |observation| {
        let identity = context.identity(observation.shown_type);
        let names = identity.map_or(&[][..], |identity| &identity.names);
        let is_before = observation.moment.is_before(when);
        let values = names.iter().filter_map(|at| observation.value(context, at));
        values.filter(move |_| is_before).map(spelled)
    })
}

fn evaluate_request((index, meant): (usize, Meant), verdicts: &mut Verdicts<'_>) {
    let context = verdicts.context;
    let history = &context.history;
    let seen = &context.seen[index];
    let when = history.moments[index];
    let Some(operation) = seen.operation else {
        return;
    };
    let key = &history.resources.get(meant.id).key;
    let is_there = history.exists_since(meant.id, &when).is_some();
    let is_own = match history.path_bindings[index].resource {
        Some(resource) => {
            history.is_under(resource, &history.path_bindings[index].parents) == Some(true)
        }
        None => true,
    };
    if !is_own || verdicts.has_finding_at(&Site::Exchange(index)) {
        return;
    }
    if seen.acceptance != Acceptance::Accepted {
        // Only what is not found was not named; and what is elsewhere is not to be found here.
        let parents = &history.path_bindings[index].parents;
        let above = &parents[..meant.above.unwrap_or(parents.len()).min(parents.len())];
        let is_here = history.is_under(meant.id, above) == Some(true);
        let shown_by = history.resources.get(meant.id).observations.iter();
        let is_ours = shown_by
            .filter_map(|observation| observation.exchange)
            .any(|shown| !context.is_by_another(shown, index));
        if seen.exchange.status() != Some(404) || !is_here || !is_ours {
            return;
        }
        let target = history.path_bindings[index].resource;
        let reads = match operation.does {
            Action::Lists => is_there,
            Action::Shows => {
                is_there && target.is_some_and(|id| history.exists_since(id, &when).is_some())
            }
            Action::Makes | Action::FindsOrMakes | Action::Changes | Action::Ends => false,
        };
        if reads {
            let expected = format!("{key}, which the path names");
            let fact = Fact::new("not-named", expected, "rejected");
            verdicts.conclude(Site::Exchange(index), Some(fact));
        }
        return;
    }
    let mut sites = Vec::new();
    let mut wrong = None;
    let shown = context.representations.iter();
    for representation in shown.filter(|r| r.exchange == Some(index)) {
        let Some(about) = context.about(representation.kind) else {
            continue;
        };
        let at = match meant.above {
            Some(place) => about.parents.get(place).map(|(at, _)| at),
            None => about
                .identity
                .as_ref()
                .and_then(|identity| identity.key.first()),
        };
        let Some((at, got)) = at.and_then(|at| Some((at, representation.value(at)?))) else {
            continue;
        };
        let site = representation.site(at);
        if verdicts.has_finding_at(&site) {
            continue;
        }
        if spelled(got) != *key {
            let fact = Fact {
                kind: "wrong-name",
                expected: json::short(&json!(key)),
                actual: json::short(got),
                message: format!("the path names {key}, got {}", json::short(got)),
            };
            wrong.get_or_insert((site.clone(), fact));
        }
        sites.push(site);
    }
    if sites.iter().any(|site| matches!(site, Site::Answer { .. }))
        && let Some(sites) = Sites::collect(sites)
    {
        verdicts.conclude_at(sites, wrong);
    }
}
