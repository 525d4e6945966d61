//! `parent-scope` with `of`: a resource is read, changed, deleted and listed under its own parent only.
//!
//! `parent-scope` with `to`: a reference leads to a resource of the same scope. Does not judge resources that were not
//! observed.
//!
//! `parent-scope` with `other`: a reference names another resource than the one that shows it.

use super::prelude::*;

/// This operation finds a resource under the parents that it belongs to, and under no others.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ParentScope {
    /// The operation with its service.
    of: OperationName,
}

impl Predicate for ParentScope {
    fn references(&self, references: &mut References) {
        references.operation("of", self.of.name());
    }

    fn fits(model: &Model<'_>) -> Option<Vec<String>> {
        Some(operations(model, |o| {
            let kind = o.resource.as_ref().and_then(|kind| model.kinds.get(kind));
            let about = kind.map(|kind| &kind.annotations);
            let Some(about) = about.filter(|about| !about.parents.is_empty()) else {
                return false;
            };
            match o.does {
                Action::Lists => true,
                // What is known by its parents is never under others.
                Action::Shows | Action::Changes | Action::Ends => !about.is_composed(),
                Action::Makes | Action::FindsOrMakes => false,
            }
        }))
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        for (index, seen) in verdicts.exchanges_of(self.of.id()) {
            match (seen.operation.map(|o| o.does), &seen.acceptance) {
                (_, Acceptance::Inconclusive(_)) | (None, _) => {}
                (Some(Action::Lists), _) => evaluate_page(index, verdicts),
                (Some(does), found) => {
                    let accepted = *found == Acceptance::Accepted;
                    evaluate_request((index, does, accepted), verdicts);
                }
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let shown = |channel: &str| {
            let mut member = member(channel, "ann");
            member["channel_sid"] = json!(sid("CH", channel));
            member
        };
        let path =
            |channel: &str| json!({"ServiceSid": sid("IS", "1"), "ChannelSid": sid("CH", channel)});
        let to_first = |channel: &str| {
            let mut path = path(channel);
            path["Sid"] = json!(sid("MB", "1"));
            path
        };
        let two = |operation: &str| {
            Example::for_rule("chat", json!({"of": operation}))
                .answered("create-member", path("1"), shown("1"))
                .answered("create-member", path("2"), shown("2"))
        };
        let fetched = two("chat/fetch-member").answered("fetch-member", to_first("1"), shown("1"));
        let list = |shown: Value| {
            let listed = page("members", json!([shown]));
            two("chat/read-members").answered("read-members", path("1"), listed)
        };
        vec![
            fetched.refused("fetch-member", to_first("2")).passes(),
            fetched
                .answered("fetch-member", to_first("2"), shown("1"))
                .fails(""),
            fetched.not_judged(),
            list(shown("1")).passes(),
            list(shown("2")).fails("/members/0"),
        ]
    }
}

/// What belongs to it instead.
fn belongs(context: &Context<'_>, id: ResourceId) -> String {
    let parents = context.history.resources.get(id).parents.iter();
    let mut keys = parents.map(|&parent| context.history.resources.get(parent).key.as_str());
    keys.next_back().unwrap_or_default().to_owned()
}

fn evaluate_request((index, does, accepted): (usize, Action, bool), verdicts: &mut Verdicts<'_>) {
    let context = verdicts.context;
    let history = &context.history;
    let bound = &history.path_bindings[index];
    let when = history.moments[index];
    let Some(id) = bound.resource else { return };
    let Some(is_own) = history.is_under(id, &bound.parents) else {
        return;
    };
    let site = Site::Exchange(index);
    // The operation's own rule judges requests under the right parent.
    let is_there = history.exists_since(id, &when).is_some();
    if !is_there || is_own || verdicts.has_finding_at(&site) {
        return;
    }
    let (found, witness) = match does {
        // A deletion may return nothing: judge it by whether the resource survives.
        Action::Ends => match survives(context, id, &when) {
            Some((survives, exchange)) => (!survives, exchange),
            None => return,
        },
        Action::Shows | Action::Lists | Action::Changes | Action::Makes | Action::FindsOrMakes => {
            (accepted, None)
        }
    };
    let wrong = found.then(|| {
        Fact::new(
            "wrong-parent",
            format!("nothing there: it belongs to {}", belongs(context, id)),
            format!("{} found", history.resources.get(id).shown()),
        )
    });
    let earlier = history
        .resources
        .get(id)
        .observations
        .iter()
        .find_map(|s| s.exchange.filter(|&e| e < index));
    let others = earlier.into_iter().chain(witness).map(Site::Exchange);
    let sites = Sites::collect(others.chain([site]));
    if let Some(sites) = sites {
        verdicts.conclude(sites, wrong);
    }
}

/// Whether a resource still exists after a moment, and the exchange that shows it; `None` if something
/// else happened to it before the next observation.
fn survives(
    context: &Context<'_>,
    id: ResourceId,
    after: &Moment,
) -> Option<(bool, Option<usize>)> {
    let history = &context.history;
    let resource = history.resources.get(id);
    let observation = resource.observations.iter().find(|s| {
        let under = s.exchange.map(|e| &history.path_bindings[e].parents);
        let is_own = under.is_some_and(|parents| history.is_under(id, parents) == Some(true));
        after.is_before(&s.moment) && is_own
    })?;
    let ends = [after.event, observation.moment.event];
    let mut between = history.writes_between(id, (after, &observation.moment));
    let touched = between.any(|write| !ends.contains(&write.moment.event));
    (!touched).then_some((
        observation.shows != Appearance::NotFound,
        observation.exchange,
    ))
}

/// The items of a page, if a resource of another parent is known that must not be among them.
fn evaluate_page(index: usize, verdicts: &mut Verdicts<'_>) {
    let context = verdicts.context;
    let history = &context.history;
    let bound = &history.path_bindings[index];
    let about = bound.shown_type.and_then(|shown| context.about(shown));
    let identity = about.and_then(|about| about.identity.as_ref());
    let Some(key) = identity.and_then(|identity| identity.key.first()) else {
        return;
    };
    let of = about.and_then(Annotations::of).unwrap_or_default();
    let (mut items, mut foreign) = (Vec::new(), None);
    for (id, resource) in history.resources.of_kind(of) {
        let is_own = history.is_under(id, &bound.parents);
        let on_page = resource
            .observations
            .iter()
            .find(|s| s.exchange == Some(index));
        match on_page.and_then(|observation| observation.representation(context)) {
            Some(item) => items.push((id, item, is_own)),
            None if is_own == Some(false) => {
                let mut observations = resource.observations.iter();
                foreign = foreign
                    .or(observations.find_map(|observation| observation.representation(context)));
            }
            None => {}
        }
    }
    items.sort_by_key(|(_, item, _)| item.prefix.clone());
    let wrong = items.iter().find(|(_, _, is_own)| *is_own == Some(false));
    let sites = foreign
        .into_iter()
        .chain(items.iter().map(|(_, item, _)| *item));
    let Some(sites) = Sites::collect(sites.map(|shown| shown.site(key))) else {
        return;
    };
    if (foreign.is_none() && wrong.is_none()) || items.is_empty() {
        verdicts.record_vacuous(Vacuity::Alone);
        return;
    }
    let wrong = wrong.map(|&(id, item, _)| {
        let fact = Fact::new(
            "wrong-parent",
            format!("nothing of {}", belongs(context, id)),
            format!("{} in the list", history.resources.get(id).shown()),
        );
        (item.site(""), fact)
    });
    if wrong
        .as_ref()
        .is_some_and(|(site, _)| verdicts.has_finding_at(site))
    {
        return;
    }
    verdicts.conclude_at(sites, wrong);
}

/// A field names a resource of the same scope.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReferenceScope {
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

/// A field names another resource of the same kind.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReferenceToOther {
    /// The representation.
    kind: String,
    /// The field that names a resource of that kind.
    at: String,
    /// That it never names the resource itself.
    #[serde(rename = "other")]
    _other: bool,
}

impl Predicate for ReferenceToOther {
    fn references(&self, references: &mut References) {
        references.kind("kind", &self.kind).pointer("at", &self.at);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Answer]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let identity = context.identity(&self.kind);
        let Some(key) = identity.and_then(|identity| identity.key.first()) else {
            return;
        };
        for shown in context.of_kind(&self.kind) {
            let names = |at: &str| {
                let text = shown.value(at)?.as_str()?;
                let is_broken = verdicts.has_finding_at(&shown.site(at));
                (!text.is_empty() && !is_broken).then_some(text)
            };
            let (Some(own), Some(named)) = (names(key), names(&self.at)) else {
                continue;
            };
            let wrong = (own == named).then(|| {
                Fact::new(
                    "names-itself",
                    "another resource",
                    format!("{named}, the resource itself"),
                )
            });
            let sites = [shown.site(key), shown.site(&self.at)];
            verdicts.conclude(sites, wrong);
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let parameters = json!({"kind": "flow/step", "at": "/parent_step_sid", "other": true});
        let step = |parent: Value| {
            let rule = Example::for_rule("flow", parameters.clone());
            rule.payload(
                "flow/step",
                json!({"sid": "FT1", "parent_step_sid": parent}),
            )
        };
        vec![
            step(json!("FT2")).passes(),
            step(json!("FT1")).fails("/parent_step_sid"),
            step(Value::Null).not_judged(),
        ]
    }
}
