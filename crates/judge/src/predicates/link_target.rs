//! `link-target` with `to`: an address leads to the stated resource. Does not judge addresses that were not followed, nor
//! the target of a redirect.

use super::prelude::*;
use crate::acceptance::Acceptance;
use crate::evidence::{Exchange, Outcome};
use crate::history::{Appearance, History, Observation, ResourceId};
use conformant_rulebook::Action;

/// An address in a representation, once it is followed, leads there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkTarget {
    /// The places of addresses.
    shown: Vec<LinkSource>,
    /// Where it leads.
    to: To,
}

/// An address in a representation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LinkSource {
    /// The representation.
    kind: String,
    /// Where in it; `/*` at the end stands for every member.
    at: String,
    /// The resource type of the list that it must lead to, if `to` is `no-other`.
    #[serde(default)]
    lists: Option<String>,
}

impl LinkSource {
    fn holds(&self, pointer: &str) -> bool {
        match self.at.strip_suffix("/*") {
            Some(above) => pointer.rsplit_once('/').is_some_and(|(at, _)| at == above),
            None => pointer == self.at,
        }
    }
}

/// Where an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum To {
    /// To the resource that shows it.
    Itself,
    /// To something that is there.
    Something,
    /// Wherever it leads, not to another resource of the same kind, nor to what belongs to another one.
    NoOther,
}

impl Predicate for LinkTarget {
    fn subject(&self) -> Subject {
        Subject::kind(self.shown.first().map_or("", |place| &place.kind))
    }

    fn applies_to(&self) -> AppliesTo {
        AppliesTo::Kinds(self.shown.iter().map(|place| place.kind.clone()).collect())
    }

    fn references(&self, references: &mut References) {
        for place in &self.shown {
            references
                .kind("kind", &place.kind)
                .pointer("at", place.at.trim_end_matches("/*"));
            if let Some(lists) = &place.lists {
                references.kind("lists", lists);
            }
        }
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::History]
    }

    fn evaluate(&self, context: &Context<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        for (index, seen) in context.seen.iter().enumerate() {
            let Some(via) = &seen.exchange.via else {
                continue;
            };
            let shown = context.representations.iter().enumerate();
            let mut shown = shown.filter(|(_, r)| r.exchange == Some(via.exchange));
            let found = shown.find_map(|(at, r)| {
                let mut places = self.shown.iter().filter(|place| place.kind == r.kind);
                let below = via.pointer.strip_prefix(r.prefix.as_str());
                let place = places.find(|place| below.is_some_and(|below| place.holds(below)));
                place.map(|place| (at, place))
            });
            let Some((shown, place)) = found else {
                continue;
            };
            // In a recording, another account may have followed the link.
            let authorization = |exchange: &Exchange| {
                let header = exchange.request.headers.get("Authorization");
                header.map(str::to_owned)
            };
            let is_by_another = context.evidence.has_unobserved_actions
                && authorization(seen.exchange)
                    != authorization(context.seen[via.exchange].exchange);
            if is_by_another {
                continue;
            }
            let sees = shows(&context.history, shown);
            if let Some(id) = sees.filter(|_| seen.exchange.credentials.sees_ours()) {
                self.evaluate_link(context, rule, (id, index, place), verdicts);
            }
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let mut mutations = Mutation::of_sites(sites);
        for site in sites.iter() {
            let other = Change::To(json!(format!("IS{}", "f".repeat(32))));
            mutations.push(Mutation::new(site.below("/sid"), other));
        }
        mutations
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let service = |digit: &str| {
            json!({
                "sid": format!("IS{}", digit.repeat(32)), "account_sid": "AC1", "friendly_name": "a",
                "default_service_role_sid": "RL1", "default_channel_role_sid": "RL2",
                "default_channel_creator_role_sid": "RL3", "read_status_enabled": true,
                "reachability_enabled": false, "typing_indicator_timeout": 5,
                "consumption_report_interval": 10, "limits": {}, "date_created": "", "date_updated": "",
                "url": "http://h/1", "links": {"bindings": "http://h/2"},
            })
        };
        let of = |at: &str, to: &str| {
            let parameters = json!({"shown": [{"kind": "chat/service", "at": at}], "to": to});
            Example::for_rule("chat", parameters).answered(
                "create-service",
                json!({}),
                service("1"),
            )
        };
        let followed = |scene: ExampleBuilder, digit: &str| {
            scene
                .answered("fetch-service", json!({}), service(digit))
                .via(0, "/url")
        };
        let links = |operation: &str| {
            let lists =
                json!({"kind": "chat/service", "at": "/links/bindings", "lists": "chat/role"});
            Example::for_rule("chat", json!({"shown": [lists], "to": "no-other"}))
                .answered("create-service", json!({}), service("1"))
                .answered(
                    operation,
                    json!({"ServiceSid": format!("IS{}", "1".repeat(32))}),
                    json!({"meta": {"key": "bindings"}, "bindings": []}),
                )
                .via(0, "/links/bindings")
        };
        // The key of an undocumented list shows what it contains.
        let unshown = || {
            let at = "/links/bindings";
            let lists = json!({"kind": "chat/service", "at": at, "lists": "chat/member"});
            Example::for_rule("chat", json!({"shown": [lists], "to": "no-other"}))
                .answered("create-service", json!({}), service("1"))
                .written("", json!({}), r#"{"meta": {"key": "messages"}}"#)
                .via(0, at)
        };
        vec![
            followed(of("/url", "itself"), "1").passes(),
            followed(of("/url", "itself"), "2").fails(""),
            of("/url", "itself")
                .refused("fetch-service", json!({}))
                .via(0, "/url")
                .fails(""),
            followed(of("/url", "no-other"), "1").passes(),
            followed(of("/url", "no-other"), "2").fails(""),
            of("/links/bindings", "something")
                .refused("read-bindings", json!({}))
                .via(0, "/links/bindings")
                .fails(""),
            of("/url", "itself").not_judged(),
            links("read-bindings").fails(""),
            unshown().fails(""),
        ]
    }
}

/// The resource that a representation shows.
fn shows(history: &History<'_>, representation: usize) -> Option<ResourceId> {
    let holds = |shows: Appearance| match shows {
        Appearance::Whole(index) | Appearance::Item(index) => index == representation,
        Appearance::NotFound => false,
    };
    let mut resources = history.resources.iter();
    resources
        .find(|(_, resource)| {
            resource
                .observations
                .iter()
                .any(|observation| holds(observation.shows))
        })
        .map(|(id, _)| id)
}

impl LinkTarget {
    /// The fields of a response that identify its content. If one of them is invalid, the response is
    /// not judged further.
    fn telling<'c>(&self, context: &Context<'c>, kind: &str) -> Vec<&'c str> {
        let rulebook = context.rulebook;
        let identity = rulebook
            .kinds
            .get(kind)
            .and_then(|k| k.annotations.identity.as_ref());
        match (&self.to, identity) {
            (To::Itself | To::NoOther, Some(identity)) => {
                identity.key.iter().map(String::as_str).collect()
            }
            (To::Something, _) | (_, None) => vec![""],
        }
    }

    fn evaluate_link(
        &self,
        context: &Context<'_>,
        rule: &Rule,
        (id, index, place): (ResourceId, usize, &LinkSource),
        verdicts: &mut Verdicts<'_>,
    ) {
        let history = &context.history;
        let seen = &context.seen[index];
        let when = history.moments[index];
        let site = Site::answer(index, "");
        let is_there = history.exists_since(id, &when).is_some();
        let mut telling = self
            .telling(context, history.resources.get(id).kind)
            .into_iter();
        if !is_there || telling.any(|at| verdicts.has_finding_at(&Site::answer(index, at))) {
            return;
        }
        if let Acceptance::Inconclusive(why) = &seen.acceptance {
            verdicts.inconclusive(rule, why);
            return;
        }
        let Some(status) = seen.exchange.status() else {
            return;
        };
        // Requests without valid credentials, or beyond the rate limit, do not show the target.
        if matches!(status, 401 | 403 | 429) || status >= 500 {
            return;
        }
        let kind = history.resources.get(id).kind;
        let key = &history.resources.get(id).key;
        let lists = place.lists.as_deref();
        let other = other(context, index, id).or_else(|| of_others(context, index, lists?));
        let found = (200..300).contains(&status);
        let wrong = match self.to {
            To::NoOther if !found => return,
            To::Itself if other.is_some() => other,
            To::Itself if found && !names(context, index, key) => Some("something else".to_owned()),
            To::Something | To::Itself => (!found).then(|| format!("status {status}")),
            To::NoOther => other,
        };
        let fact = wrong.map(|actual| Fact {
            kind: "leads-elsewhere",
            expected: match self.to {
                To::Something => format!("something of {kind} {key}"),
                To::Itself | To::NoOther => format!("{kind} {key}"),
            },
            actual,
            ..Fact::default()
        });
        let named = match self.to {
            To::NoOther => parents_named(context, index, kind),
            To::Itself | To::Something => Vec::new(),
        };
        if let Some(sites) = Sites::collect(std::iter::once(site).chain(named)) {
            verdicts.instance(rule, sites).conclude(fact);
        }
    }
}

/// What the response shows that is another resource of the kind, or belongs to another one.
fn other(context: &Context<'_>, index: usize, id: ResourceId) -> Option<String> {
    let history = &context.history;
    let kind = history.resources.get(id).kind;
    let shown = history.resources.iter().find(|(other, resource)| {
        let is_whole = |s: &crate::history::Observation<'_>| {
            s.exchange == Some(index) && matches!(s.shows, Appearance::Whole(_))
        };
        *other != id && resource.kind == kind && resource.observations.iter().any(is_whole)
    });
    let above = history.path_bindings[index].parents.iter().flatten();
    let strange = above.copied().find(|&parent| {
        let is_kind = history.resources.get(parent).kind == kind;
        is_kind && parent != id
    });
    let item = items(context, index).find_map(|(item, _)| {
        let mut above = history.resources.get(item).parents.iter().copied();
        above.find(|&parent| parent != id && history.resources.get(parent).kind == kind)
    });
    let other = shown.map(|(other, _)| other).or(strange).or(item)?;
    Some(format!("{kind} {}", history.resources.get(other).key))
}

/// The resources that an response lists, each with its representation.
fn items<'c>(
    context: &'c Context<'_>,
    index: usize,
) -> impl Iterator<Item = (ResourceId, &'c Representation<'c>)> {
    context
        .history
        .resources
        .iter()
        .filter_map(move |(id, resource)| {
            let mut observations = resource.observations.iter();
            let item = |s: &&Observation<'_>| {
                s.exchange == Some(index) && matches!(s.shows, Appearance::Item(_))
            };
            Some((id, observations.find(item)?.representation(context)?))
        })
}

/// Where the items of an response name the resource of that kind that they belong to.
fn parents_named(context: &Context<'_>, index: usize, kind: &str) -> Vec<Site> {
    let named = items(context, index).flat_map(|(_, item)| {
        let about = context
            .rulebook
            .kinds
            .get(item.kind)
            .map(|kind| &kind.annotations);
        let parents = about.into_iter().flat_map(|about| about.parents.iter());
        let fields = parents.filter(move |(_, of)| *of == kind);
        fields
            .map(|(field, _)| item.site(field))
            .collect::<Vec<_>>()
    });
    named.collect()
}

/// What the list holds that an response is a page of, where it is not what it should hold.
fn of_others(context: &Context<'_>, index: usize, lists: &str) -> Option<String> {
    let seen = &context.seen[index];
    let Some(operation) = seen.operation else {
        return of_another_key(context, index, lists);
    };
    let held = operation.resource.as_deref()?;
    (operation.does == Action::Lists && held != lists).then(|| format!("a list of {held}"))
}

/// The key by which a page of no documented list goes, where the list that it should be of has a key of its own.
fn of_another_key(context: &Context<'_>, index: usize, lists: &str) -> Option<String> {
    let services = context.rulebook.services.values();
    let mut operations = services.flat_map(|service| service.operations.values());
    let key = operations.find_map(|o| {
        let is_it = o.does == Action::Lists && o.resource.as_deref() == Some(lists);
        o.list_key
            .as_deref()
            .filter(|_| is_it && !o.is_list_key_undocumented)
    })?;
    let Outcome::Answered { response, .. } = &context.seen[index].exchange.outcome else {
        return None;
    };
    // What belongs to no operation was read as a file.
    let page = json::parse(&response.body, json::Limits::default()).ok()?;
    let listed = page.value.pointer("/meta/key")?.as_str()?;
    (listed != key).then(|| format!("a list of {listed}"))
}

/// Whether an response names the key of a resource, where its body can be read at all.
fn names(context: &Context<'_>, index: usize, key: &str) -> bool {
    let exchange = context.seen[index].exchange;
    let part = key.rsplit('\n').next().unwrap_or(key);
    match (&exchange.outcome, exchange.document()) {
        (_, Some(document)) => document.to_string().contains(part),
        (Outcome::Answered { response, .. }, None) => {
            response.body.is_empty() || String::from_utf8_lossy(&response.body).contains(part)
        }
        (Outcome::Fault { .. }, None) => true,
    }
}
