//! Builds the history of a scenario: which resources existed, what was observed of them, and which requests and hooks
//! changed them.
//!
//! Reads the events in order. A resource is identified by the key in a representation, by the path of the request, or by
//! an argument or result of a hook.

use super::History;
use super::identity::ResourceId;
use super::lists;
use super::observations::{Appearance, Moment, Observation, PathBinding};
use super::writes::{NamedValue, Origin, Outcome, Write};
use crate::acceptance::Acceptance;
use crate::compare::{as_text, spelled};
use crate::context::{Context, Representation, Seen};
use crate::evidence::{Event, HookCall, Poll, Race, Span};
use conformant_rulebook::annotations::Annotations;
use conformant_rulebook::hooks::Effect;
use conformant_rulebook::{Action, Operation, ParameterLocation, Place, Rulebook};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

impl<'a> History<'a> {
    /// The history of a scenario with validated payloads.
    pub fn from_context(context: &Context<'a>) -> Self {
        let mut builder = HistoryBuilder {
            context,
            representations: vec![Vec::new(); context.seen.len()],
            history: Self {
                path_bindings: vec![PathBinding::default(); context.seen.len()],
                moments: vec![Moment::UNKNOWN; context.seen.len()],
                alone: context.evidence.alone,
                has_unobserved_actions: context.evidence.has_unobserved_actions,
                ended_by: ended_by(context.rulebook),
                ended_unseen: ended_unseen(context),
                ..Self::default()
            },
        };
        for (index, representation) in context.representations.iter().enumerate() {
            if let Some(exchange) = representation.exchange {
                builder.representations[exchange].push(index);
            }
        }
        if context.evidence.events.is_empty() {
            (0..context.seen.len()).for_each(|index| builder.add_exchange(index, index));
        }
        for (index, event) in context.evidence.events.iter().enumerate() {
            match event {
                Event::Exchange(exchange) => builder.add_exchange(*exchange, index),
                Event::Hook(call) => builder.add_hook(index, call),
                Event::Delivery(_) | Event::Passed(_) => {}
            }
        }
        for (index, representation) in context.representations.iter().enumerate() {
            if representation.exchange.is_none() {
                builder.add_representation(index, None, Moment::UNKNOWN, &PathBinding::default());
            }
        }
        let mut history = builder.history;
        lists::read(context, &mut history);
        history
    }
}

/// Resource types that a hook may have ended unobserved.
fn ended_unseen<'a>(context: &Context<'a>) -> Vec<&'a str> {
    if !context.evidence.has_unobserved_actions {
        return Vec::new();
    }
    let effects = context
        .rulebook
        .index
        .hooks()
        .flat_map(|hook| &hook.effects);
    let ends = effects.filter(|effect| effect.does == Action::Ends);
    ends.map(|effect| effect.kind.as_str()).collect()
}

/// For each resource type, the types whose creation may end a resource of it.
fn ended_by(rulebook: &Rulebook) -> BTreeMap<&str, &[String]> {
    let kinds = rulebook.kinds.values();
    let ended = kinds.filter_map(|kind| Some((kind, kind.annotations.identity.as_ref()?)));
    let ended = ended.filter(|(_, identity)| !identity.ended_by.is_empty());
    ended
        .map(|(kind, identity)| (kind.name.as_str(), identity.ended_by.as_slice()))
        .collect()
}

struct HistoryBuilder<'c, 'a> {
    context: &'c Context<'a>,
    /// For each exchange, the indexes of the representations in its response.
    representations: Vec<Vec<usize>>,
    history: History<'a>,
}

impl<'a> HistoryBuilder<'_, 'a> {
    fn moment(&self, event: usize, span: Span, race: Option<Race>) -> Moment {
        let settled_from = self.context.evidence.settled_from;
        Moment {
            span,
            event,
            race,
            counts_as_settled: settled_from.is_some_and(|from| event >= from),
        }
    }

    /// Adds an exchange: its observations, and its write if the operation changes something.
    fn add_exchange(&mut self, index: usize, event: usize) {
        let Some(seen) = self.context.seen.get(index) else {
            return;
        };
        let moment = self.moment(event, seen.exchange.span, seen.exchange.race);
        self.history.moments[index] = moment;
        let Some(operation) = seen.operation.filter(|_| seen.is_ours()) else {
            return;
        };
        let mut bound = self.bind(index, operation);
        // The first resource in the response, and whether it was unknown before.
        let mut returned = None;
        for representation in std::mem::take(&mut self.representations[index]) {
            let known_count = self.history.resources.iter().count();
            let resource = self.add_representation(representation, Some(index), moment, &bound);
            returned = returned.or(resource.map(|resource| (resource, resource >= known_count)));
        }
        if let Some((resource, _)) = returned
            && operation.names_its_resource()
            && bound.resource.is_none()
        {
            // The path contains an unknown name: it is a name of the resource in the response.
            bound.resource = Some(resource);
            bound.by_name = true;
        }
        if let Some(resource) = bound.resource
            && operation.does == Action::Shows
            && was_refused(self.context.rulebook, seen)
            // These rejections do not show whether the resource exists.
            && seen.exchange.credentials.flaw().is_none()
            && !matches!(seen.exchange.status(), Some(401 | 403 | 408 | 425 | 429))
        {
            let shown_type = bound.shown_type.unwrap_or_default();
            self.add_observation(
                resource,
                shown_type,
                Appearance::NotFound,
                Some(index),
                moment,
            );
        }
        if operation.does.writes() {
            self.add_write(index, operation, seen, &bound, returned);
        }
        self.history.path_bindings[index] = bound;
    }

    /// Finds the resources that the path of a request names: the parents, and the resource itself if the path ends with
    /// its name.
    fn bind(&mut self, index: usize, operation: &'a Operation) -> PathBinding<'a> {
        let seen = &self.context.seen[index];
        let rulebook = self.context.rulebook;
        let Some((shown_type, annotations)) =
            annotated_type(rulebook, operation.resource.as_deref())
        else {
            return PathBinding::default();
        };
        let texts: Vec<Option<Cow<'_, str>>> = operation
            .path_names()
            .map(|p| seen.exchange.sent.get(&p.name).map(spelled))
            .collect();
        let identity = annotations.identity.as_ref();
        // The key of a composed resource consists of the keys of its parents, such as user and channel, so that its path
        // has no further name for it.
        let is_composed = annotations.is_composed();
        let names_itself = operation.names_its_resource();
        let has_own_name = names_itself && !is_composed;
        let parent_count = texts.len().saturating_sub(usize::from(has_own_name));
        let mut bound = PathBinding {
            shown_type: Some(shown_type),
            ..PathBinding::default()
        };
        if parent_count > annotations.parents.len() {
            return bound;
        }
        for ((at, kind), text) in annotations.parents.iter().zip(&texts[..parent_count]) {
            let found = text.as_ref().and_then(|text| {
                let found = self.find(kind, &bound.parents, text);
                found.or_else(|| self.find_in_response((at, kind), &bound.parents, text, index))
            });
            bound.by_name |= found.is_some_and(|(_, by_name)| by_name);
            bound.parents.push(found.map(|(id, _)| id));
        }
        if is_composed && names_itself {
            let parts: Option<Vec<ResourceId>> = identity
                .into_iter()
                .flat_map(|identity| &identity.key)
                .map(|key| {
                    let at = annotations.parents.iter().position(|(at, _)| at == key)?;
                    bound.parents.get(at).copied().flatten()
                })
                .collect();
            let key = parts.map(|parts| self.history.resources.composed_key(&parts));
            if let (Some(key), Some(kind)) = (key, annotations.of()) {
                let parents: Vec<ResourceId> = bound.parents.iter().flatten().copied().collect();
                bound.resource = Some(self.get_or_add(kind, &key, &parents));
            }
        } else if has_own_name
            && let (Some(Some(text)), Some(kind)) = (texts.last(), annotations.of())
        {
            let found = self.find(kind, &bound.parents, text);
            bound.resource = found.map(|(id, _)| id);
            bound.by_name |= found.is_some_and(|(_, by_name)| by_name);
        }
        bound
    }

    /// The resource that a part of a path names, and whether that part is an alternative name instead of the key. A text
    /// in the form of a key counts as the key of a resource that was not observed yet.
    fn find(
        &mut self,
        kind: &'a str,
        parents: &[Option<ResourceId>],
        text: &str,
    ) -> Option<(ResourceId, bool)> {
        let scope = parents.last().copied().flatten();
        let resources = &self.history.resources;
        if let Some(id) = resources.by_key(kind, text) {
            return Some((id, false));
        }
        if let Some(id) = resources.by_name(kind, scope, text) {
            return Some((id, true));
        }
        // Its parents stay unknown, because a path may name a wrong parent.
        looks_like_key(self.context.rulebook, kind, text)
            .then(|| (self.history.resources.get_or_add(kind, text), false))
    }

    /// The parent that an unknown name in a path belongs to: the response contains its key at `at`. Also records the
    /// name.
    fn find_in_response(
        &mut self,
        (at, kind): (&str, &'a str),
        parents: &[Option<ResourceId>],
        name: &str,
        index: usize,
    ) -> Option<(ResourceId, bool)> {
        let representation = self.representations[index].first()?;
        let key = self.context.representations[*representation].value(at);
        let key = spelled(key.filter(|key| is_key(key))?);
        let parents: Option<Vec<ResourceId>> = parents.iter().copied().collect();
        let id = self.get_or_add(kind, &key, &parents?);
        self.history.resources.name(id, name);
        Some((id, true))
    }

    /// The resource with this key, added if it is unknown, with its parents set.
    fn get_or_add(&mut self, kind: &'a str, key: &str, parents: &[ResourceId]) -> ResourceId {
        let id = self.history.resources.get_or_add(kind, key);
        self.history.resources.set_parents(id, parents);
        id
    }

    /// Adds a representation as an observation of its resource. Returns the resource, if it can be identified.
    fn add_representation(
        &mut self,
        index: usize,
        exchange: Option<usize>,
        moment: Moment,
        bound: &PathBinding<'a>,
    ) -> Option<ResourceId> {
        let representation = &self.context.representations[index];
        let (shown_type, annotations) =
            annotated_type(self.context.rulebook, Some(representation.kind))?;
        let identity = annotations.identity.as_ref()?;
        let key = key_of(representation, &identity.key);
        let is_item = !representation.prefix.is_empty();
        let kind = self.context.rulebook.kinds.get(&identity.of)?.name.as_str();
        let id = match key {
            Some(key) => self.history.resources.get_or_add(kind, &key),
            // The representation has no valid key: the path of the request identifies the resource.
            None => bound.resource.filter(|_| !is_item)?,
        };
        self.set_parents(id, representation, annotations, bound);
        for name in &identity.names {
            let name = representation.value(name).and_then(Value::as_str);
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                self.history.resources.name(id, name);
            }
        }
        let appearance = if is_item {
            Appearance::Item(index)
        } else {
            Appearance::Whole(index)
        };
        self.add_observation(id, shown_type, appearance, exchange, moment);
        Some(id)
    }

    /// Sets the parents of a resource, from the path of the request or else from the representation. Sets none if the two
    /// differ.
    fn set_parents(
        &mut self,
        id: ResourceId,
        representation: &Representation<'a>,
        annotations: &'a Annotations,
        bound: &PathBinding<'a>,
    ) {
        let mut parents = Vec::new();
        for (n, (at, kind)) in annotations.parents.iter().enumerate() {
            let in_path = bound.parents.get(n).copied().flatten();
            let key = representation.value(at).filter(|key| is_key(key));
            let key = key.map(spelled);
            let parent = match (in_path, key.as_deref()) {
                // The response shows a resource of another parent: one of the two is wrong.
                (Some(in_path), Some(key)) if self.history.resources.get(in_path).key != key => {
                    return;
                }
                (Some(in_path), _) => Some(in_path),
                (None, Some(key)) => Some(self.get_or_add(kind, key, &parents)),
                (None, None) => None,
            };
            match parent {
                Some(parent) => parents.push(parent),
                None => return,
            }
        }
        self.history.resources.set_parents(id, &parents);
    }

    fn add_observation(
        &mut self,
        id: ResourceId,
        shown_type: &'a str,
        shows: Appearance,
        exchange: Option<usize>,
        moment: Moment,
    ) {
        let seen = exchange.map(|index| self.context.seen[index].exchange);
        self.history
            .resources
            .get_mut(id)
            .observations
            .push(Observation {
                shown_type,
                shows,
                exchange,
                moment,
                poll: seen.map_or(Poll::Once, |exchange| exchange.poll),
            });
    }

    /// Adds the write of an exchange. `returned` is the first resource in the response, and whether it was unknown before.
    fn add_write(
        &mut self,
        index: usize,
        operation: &'a Operation,
        seen: &Seen<'a>,
        bound: &PathBinding<'a>,
        returned: Option<(ResourceId, bool)>,
    ) {
        let rulebook = self.context.rulebook;
        let annotated = annotated_type(rulebook, operation.resource.as_deref());
        let identity = annotated.and_then(|(_, annotations)| annotations.identity.as_ref());
        let outcome = if seen.acceptance == Acceptance::Accepted {
            Outcome::Done
        } else if was_refused(self.context.rulebook, seen) {
            Outcome::Refused
        } else {
            Outcome::Unknown
        };
        let is_shared = identity.is_some_and(|identity| identity.shared);
        // A second creation may return the existing resource.
        let does = match (operation.does, returned) {
            (Action::Makes, Some((_, false))) => Action::FindsOrMakes,
            (does, _) => does,
        };
        let named = operation
            .parameters
            .iter()
            .filter(|p| p.place != ParameterLocation::Path);
        let named = named.filter_map(|p| {
            Some(NamedValue {
                parameter: &p.name,
                value: seen.exchange.sent.get(&p.name)?,
                echo: p.echo.as_ref()?,
            })
        });
        let write = Write {
            origin: Origin::Exchange(index),
            does,
            kind: identity.map(|identity| &*identity.of),
            resource: bound.resource.or(returned.map(|(resource, _)| resource)),
            parents: bound.parents.clone(),
            named: named.collect(),
            outcome,
            moment: self.history.moments[index],
        };
        self.apply_write(write, is_shared);
    }

    fn apply_write(&mut self, write: Write<'a>, is_shared: bool) {
        let id = self.history.writes.len();
        if let Some(resource) = write.resource {
            let resource = self.history.resources.get_mut(resource);
            resource.writes.push(id);
            match (write.does, write.outcome) {
                (Action::Makes, Outcome::Done) => {
                    resource.made = Some(id);
                    resource.is_ours |= !is_shared;
                }
                (Action::Ends, Outcome::Done) => resource.ended = Some(id),
                _ => {}
            }
        }
        self.history.writes.push(write);
    }

    /// Adds the writes of a hook: its `effects` in `service.yaml`.
    fn add_hook(&mut self, event: usize, call: &'a HookCall) {
        let Some(hook) = self.context.rulebook.index.hook(&call.name) else {
            return;
        };
        for effect in &hook.effects {
            let Some(kind) = self.context.rulebook.kinds.get(&effect.kind) else {
                continue;
            };
            let resource = self.affected(call, effect, &kind.name);
            let write = Write {
                origin: Origin::Hook(event),
                does: effect.does,
                kind: Some(&kind.name),
                resource,
                parents: Vec::new(),
                named: Vec::new(),
                outcome: match call.result {
                    Ok(_) => Outcome::Done,
                    Err(_) => Outcome::Unknown,
                },
                moment: self.moment(event, call.span, call.race),
            };
            self.apply_write(
                write,
                kind.annotations.identity.as_ref().is_some_and(|i| i.shared),
            );
        }
        if hook.opens_all {
            self.history.writes.push(Write {
                origin: Origin::Hook(event),
                does: Action::Changes,
                kind: None,
                resource: None,
                parents: Vec::new(),
                named: Vec::new(),
                outcome: Outcome::Unknown,
                moment: self.moment(event, call.span, call.race),
            });
        }
    }

    /// The resource that an effect of a hook changes. The result or the arguments of the hook contain its key or name.
    fn affected(
        &mut self,
        call: &'a HookCall,
        effect: &Effect,
        kind: &'a str,
    ) -> Option<ResourceId> {
        let text = |value: &Value, name: &str| value.get(name).map(as_text);
        let key = effect.key.as_ref().and_then(|name| {
            let from_result = call
                .result
                .as_ref()
                .ok()
                .and_then(|result| text(result, name));
            from_result.or_else(|| text(&call.arguments, name))
        });
        let scope = effect.within.as_ref().and_then(|scope| {
            let kind = self.context.rulebook.kinds.get(&scope.kind)?.name.as_str();
            let key = text(&call.arguments, &scope.key)?;
            self.history.resources.by_key(kind, &key)
        });
        if let Some(key) = key.filter(|key| !key.is_empty()) {
            let id = self.history.resources.get_or_add(kind, &key);
            if let Some(scope) = scope {
                let mut parents = self.history.resources.get(scope).parents.clone();
                parents.push(scope);
                self.history.resources.set_parents(id, &parents);
            }
            return Some(id);
        }
        // Without a key, the resource is known by its name in the scope.
        let name = effect
            .name
            .as_ref()
            .and_then(|name| text(&call.arguments, name))?;
        self.history.resources.by_name(kind, Some(scope?), &name)
    }
}

/// The name and the annotations of a resource type.
fn annotated_type<'a>(
    rulebook: &'a Rulebook,
    kind: Option<&str>,
) -> Option<(&'a str, &'a Annotations)> {
    let kind = rulebook.kinds.get(kind?)?;
    Some((kind.name.as_str(), &kind.annotations))
}

/// The key of a resource: the values at the pointers, one a line. `None` if one of them is missing or invalid.
fn key_of(representation: &Representation<'_>, pointers: &[String]) -> Option<String> {
    let mut key = String::new();
    for (n, at) in pointers.iter().enumerate() {
        let value = representation.value(at)?;
        if !is_key(value) {
            return None;
        }
        if n > 0 {
            key.push('\n');
        }
        key.push_str(&spelled(value));
    }
    Some(key)
}

/// Whether a value can identify a resource.
fn is_key(value: &Value) -> bool {
    value.is_number() || value.as_str().is_some_and(|text| !text.is_empty())
}

/// Whether a request was certainly rejected: with 4xx, or with a response that the service defines as a rejection.
fn was_refused(rulebook: &Rulebook, seen: &Seen<'_>) -> bool {
    let service = rulebook.index.get(&seen.exchange.service);
    let document = service.zip(seen.exchange.document());
    let denied = document.is_some_and(|(service, document)| service.rejection(document).is_some());
    let status = seen.exchange.status().unwrap_or_default();
    matches!(seen.acceptance, Acceptance::Rejected(_)) && (denied || (400..500).contains(&status))
}

/// Whether a text has the form of a key of that resource type. Known are only keys whose pattern is two characters and 32
/// hexadecimal digits, so for other keys the result is `false`.
fn looks_like_key(rulebook: &Rulebook, kind: &str, text: &str) -> bool {
    let kind = rulebook.kinds.get(kind);
    let key = kind.and_then(|kind| kind.annotations.identity.as_ref()?.key.first());
    let pattern = kind
        .zip(key)
        .and_then(|(kind, key)| Place::root(&kind.schema).any().at(key).text("pattern"));
    let Some(rest) = pattern.and_then(|p| p.strip_prefix('^')) else {
        return false;
    };
    let (Some(prefix), true) = (rest.get(..2), rest.contains("{32}")) else {
        return false;
    };
    let tail = text.strip_prefix(prefix);
    tail.is_some_and(|tail| tail.len() == 32 && tail.bytes().all(|b| b.is_ascii_hexdigit()))
}
