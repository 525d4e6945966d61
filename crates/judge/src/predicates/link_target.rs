//! `link-target` with `to`: an address leads to the stated resource. Does not judge addresses that were not followed, nor
//! the target of a redirect.
//! Without `to`: `links_present.rs`. With `aspects`: `file_link.rs`.

mod file_link;
mod links_present;

pub(super) use file_link::FileLink;
pub(super) use links_present::LinksPresent;

use super::prelude::*;
use crate::evidence::Outcome;

/// An address in a representation, once it is followed, leads there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkTarget {
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
    /// The resource type of the list that it must lead to, and to no single resource, if `to` is `no-other`. The resource type, or that of the list, that
    /// one of the addresses must lead to, if `to` is `each`.
    #[serde(default)]
    lists: Option<String>,
    /// A field with the key of what one of the addresses must lead to, if `to` is `each`. Not judged where it is empty.
    #[serde(default)]
    given: Option<String>,
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
    /// One of the addresses, whatever its key, to each resource or list of `lists`.
    Each,
}

impl Predicate for LinkTarget {
    fn references(&self, references: &mut References) {
        for place in &self.shown {
            references
                .kind("kind", &place.kind)
                .pointer("at", place.at.trim_end_matches("/*"));
            if let Some(lists) = &place.lists {
                references.kind("lists", lists);
            }
            if let Some(given) = &place.given {
                references.kind("kind", &place.kind).pointer("given", given);
            }
        }
    }

    fn follows_links(&self) -> bool {
        true
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        if self.to == To::Each {
            return self.evaluate_each(verdicts);
        }
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
            if context.is_by_another(via.exchange, index) {
                continue;
            }
            let sees = shows(&context.history, shown);
            if let Some(id) = sees.filter(|_| seen.exchange.credentials.sees_ours()) {
                self.evaluate_link((id, index, place), verdicts);
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
        const LINK: &str = "/links/bindings";
        let service = |digit: &str| {
            json!({
                "sid": sid("IS", digit), "url": "http://h/1", "links": {"bindings": "http://h/2"},
            })
        };
        let of = |shown: Value, to: &str| {
            Example::for_rule("chat", json!({"shown": [shown], "to": to})).answered(
                "create-service",
                json!({"FriendlyName": "a"}),
                service("1"),
            )
        };
        let url = |to: &str| of(json!({"kind": "chat/service", "at": "/url"}), to);
        let followed = |to: &str, digit: &str| {
            url(to)
                .shown("fetch-service", service(digit))
                .via(0, "/url")
        };
        let lists = |at: &str, lists: &str, to: &str| {
            of(
                json!({"kind": "chat/service", "at": at, "lists": lists}),
                to,
            )
        };
        let bindings = |scene: &ExampleBuilder, operation: &str| {
            let path = json!({"ServiceSid": sid("IS", "1")});
            scene.answered(operation, path, page("bindings", json!([])))
        };
        let roles = lists(LINK, "chat/role", "no-other");
        let each = |kind: &str| bindings(&lists("/links/*", kind, "each"), "read-bindings");
        vec![
            each("chat/binding").via(0, LINK).passes(),
            each("chat/binding").not_judged(),
            each("chat/role").via(0, LINK).fails("/links"),
            followed("itself", "1").passes(),
            followed("itself", "2").fails(""),
            url("itself")
                .refused("fetch-service", json!({}))
                .via(0, "/url")
                .fails(""),
            followed("no-other", "1").passes(),
            followed("no-other", "2").fails(""),
            of(json!({"kind": "chat/service", "at": LINK}), "something")
                .refused("read-bindings", json!({}))
                .via(0, LINK)
                .fails(""),
            url("itself").not_judged(),
            bindings(&roles, "read-bindings").via(0, LINK).fails(""),
            bindings(&roles, "fetch-service").via(0, LINK).fails(""),
            // The key of an undocumented list shows what it contains.
            lists(LINK, "chat/member", "no-other")
                .written("", json!({}), r#"{"meta": {"key": "messages"}}"#)
                .via(0, LINK)
                .fails(""),
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
    /// Judges resources whose addresses were all followed.
    fn evaluate_each(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for (representation, shown) in context.representations.iter().enumerate() {
            let Some(source) = shown.exchange else {
                continue;
            };
            for place in self.shown.iter().filter(|place| place.kind == shown.kind) {
                let above = place.at.trim_end_matches("/*");
                let links = shown.value(above).and_then(Value::as_object);
                let (Some(links), Some(wanted)) = (links, place.lists.as_deref()) else {
                    continue;
                };
                let key = place.given.as_deref().map(|given| {
                    let key = shown.value(given).and_then(Value::as_str);
                    key.unwrap_or_default()
                });
                if key == Some("") {
                    continue;
                }
                let site = shown.site(above);
                let id = shows(&context.history, representation);
                let Some(id) = id.filter(|_| !verdicts.has_finding_at(&site)) else {
                    continue;
                };
                // Where it must lead exists from the start, so that null leads nowhere.
                let led = links.iter().map(|(name, link)| {
                    if link.is_null() || link == "" {
                        return Some((source, false));
                    }
                    let pointer = json::join(&format!("{}{above}", shown.prefix), name);
                    let followed = context.seen.iter().position(|seen| {
                        let via = seen.exchange.via.as_ref();
                        via.is_some_and(|via| via.exchange == source && via.pointer == pointer)
                    })?;
                    // An address of no operation may show it as well.
                    let seen = &context.seen[followed];
                    let is_it = key.is_some_and(|key| names(context, followed, key));
                    if seen.operation.is_none() && is_it {
                        return None;
                    }
                    Some((followed, lead(context, (source, followed), id, wanted)?))
                });
                let led: Vec<Option<(usize, bool)>> = led.collect();
                let mut known = led.iter().flatten();
                let there = known.find(|(_, leads_there)| *leads_there);
                if led.is_empty() || there.is_none() && led.contains(&None) {
                    continue;
                }
                let fact = there.is_none().then(|| {
                    Fact::new(
                        "missing-link",
                        format!("one link that leads to {wanted}"),
                        match links.values().filter(|link| link.is_null()).count() {
                            0 => format!("{} links, all followed, none of which does", led.len()),
                            null => format!(
                                "{} links, {null} of them null, none of which does",
                                led.len()
                            ),
                        },
                    )
                });
                let followed = there.map(|(followed, _)| Site::answer(*followed, ""));
                if let Some(sites) = Sites::collect(followed.into_iter().chain([site])) {
                    verdicts.conclude(sites, fact);
                }
            }
        }
    }

    /// The fields of a response that identify its content. If one of them is invalid, the response is
    /// not judged further.
    fn telling<'c>(&self, context: &Context<'c>, kind: &str) -> Vec<&'c str> {
        match (&self.to, context.identity(kind)) {
            (To::Itself | To::NoOther, Some(identity)) => {
                identity.key.iter().map(String::as_str).collect()
            }
            (To::Something | To::Each, _) | (_, None) => vec![""],
        }
    }

    fn evaluate_link(
        &self,
        (id, index, place): (ResourceId, usize, &LinkSource),
        verdicts: &mut Verdicts<'_>,
    ) {
        let context = verdicts.context;
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
            verdicts.inconclusive(why);
            return;
        }
        let Some(status) = seen.exchange.status() else {
            return;
        };
        // Requests without valid credentials, or beyond the rate limit, do not show the target.
        if matches!(status, 401 | 403 | 429) || status >= 500 {
            return;
        }
        let resource = history.resources.get(id);
        let (kind, key) = (resource.kind, &resource.key);
        let lists = place.lists.as_deref();
        let other = other(context, index, id).or_else(|| of_others(context, index, lists?));
        let found = (200..300).contains(&status);
        let wrong = match self.to {
            To::NoOther if !found => return,
            To::Itself if other.is_some() => other,
            To::Itself if found && !names(context, index, key) => Some("something else".to_owned()),
            To::Something | To::Itself => (!found).then(|| format!("status {status}")),
            To::NoOther | To::Each => other,
        };
        let via = seen.exchange.via.as_ref();
        let link = via.and_then(|via| via.pointer.rsplit('/').next());
        let fact = wrong.map(|actual| match (self.to, link) {
            (To::Something, Some(link)) => Fact {
                kind: "leads-elsewhere",
                expected: format!("a resource at this link of {kind} {}", resource.shown()),
                actual,
                message: format!("the link {link} returns {status}, expected a resource"),
            },
            _ => Fact::new(
                "leads-elsewhere",
                format!("{kind} {}", resource.shown()),
                actual,
            ),
        });
        let named = match self.to {
            To::NoOther => parents_named(context, index, kind),
            To::Itself | To::Something | To::Each => Vec::new(),
        };
        if let Some(sites) = Sites::collect(std::iter::once(site).chain(named)) {
            let instance = verdicts.instance(sites);
            instance.after(via.map(|via| via.exchange)).conclude(fact);
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
    Some(format!("{kind} {}", history.resources.get(other).shown()))
}

/// The resources that a response lists, each with its representation.
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

/// Where the items of a response name the resource of that kind that they belong to.
fn parents_named(context: &Context<'_>, index: usize, kind: &str) -> Vec<Site> {
    let named = items(context, index).flat_map(|(_, item)| {
        let about = context.about(item.kind);
        let parents = about.into_iter().flat_map(|about| about.parents.iter());
        let fields = parents.filter(move |(_, of)| *of == kind);
        fields
            .map(|(field, _)| item.site(field))
            .collect::<Vec<_>>()
    });
    named.collect()
}

/// Whether a followed address of a resource leads to a resource or list of the wanted type, or to something that may be it;
/// `None` if the response does not show it.
fn lead(
    context: &Context<'_>,
    (shown, index): (usize, usize),
    id: ResourceId,
    wanted: &str,
) -> Option<bool> {
    let seen = &context.seen[index];
    let when = context.history.moments[index];
    let is_ours = seen.exchange.credentials.sees_ours() && !context.is_by_another(shown, index);
    let is_there = context.history.exists_since(id, &when).is_some();
    let status = seen.exchange.status().filter(|_| is_ours && is_there);
    match (status, &seen.acceptance) {
        (None | Some(300..=399 | 401 | 403 | 429 | 500..), _)
        | (_, Acceptance::Inconclusive(_)) => return None,
        (Some(400..), _) => return Some(false),
        (Some(_), _) => {}
    }
    let Some(operation) = seen.operation else {
        return is_page_of(context, index, wanted);
    };
    let is_wanted = operation.resource.as_deref() == Some(wanted)
        && matches!(operation.does, Action::Lists | Action::Shows)
        && seen.acceptance == Acceptance::Accepted;
    Some(is_wanted)
}

/// What the list holds that a response is a page of, where it is not what it should hold.
fn of_others(context: &Context<'_>, index: usize, lists: &str) -> Option<String> {
    let seen = &context.seen[index];
    let Some(operation) = seen.operation else {
        return of_another_key(context, index, lists);
    };
    let held = operation.resource.as_deref()?;
    match operation.does {
        Action::Lists if held != lists => Some(format!("a list of {held}")),
        Action::Shows => Some(format!("a single {held}")),
        Action::Lists | Action::Makes | Action::FindsOrMakes | Action::Changes | Action::Ends => {
            None
        }
    }
}

/// The key by which a page of no documented list goes, where the list that it should be of has a key of its own.
fn of_another_key(context: &Context<'_>, index: usize, lists: &str) -> Option<String> {
    let key = documented_key(context, lists)?;
    let page = undocumented(context, index)?;
    let listed = page.pointer("/meta/key")?.as_str()?;
    (listed != key).then(|| format!("a list of {listed}"))
}

/// Whether the response at an address of no documented operation is a page of a documented list; `None` if it does not show
/// that. Every page names its list.
fn is_page_of(context: &Context<'_>, index: usize, lists: &str) -> Option<bool> {
    let page = undocumented(context, index)?;
    match page.pointer("/meta/key") {
        Some(listed) => Some(listed.as_str()? == documented_key(context, lists)?),
        None => page.is_object().then_some(false),
    }
}

/// The key of the documented list of a resource type.
fn documented_key<'c>(context: &'c Context<'_>, lists: &str) -> Option<&'c str> {
    context.rulebook.operations().find_map(|o| {
        let is_it = o.does == Action::Lists && o.resource.as_deref() == Some(lists);
        o.list_key
            .as_deref()
            .filter(|_| is_it && !o.is_list_key_undocumented)
    })
}

/// The response at an address that belongs to no operation, which was read as a file.
fn undocumented(context: &Context<'_>, index: usize) -> Option<Value> {
    let Outcome::Answered { response, .. } = &context.seen[index].exchange.outcome else {
        return None;
    };
    let page = json::parse(&response.body, json::Limits::default()).ok()?;
    Some(page.value)
}

/// Whether a response names the key of a resource, where its body can be read at all.
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
