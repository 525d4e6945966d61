//! Builds the history of a scenario, event by event.

use super::History;
use super::identity::ResourceId;
use super::lists;
use super::observations::{Appearance, Moment, Observation, PathBinding};
use super::writes::{NamedValue, Origin, Outcome, Write};
use crate::acceptance::Acceptance;
use crate::compare::{as_text, spelled};
use crate::context::{Context, Representation, Seen};
use crate::evidence::{Event, HookCall, Poll};
use conformant_rulebook::annotations::Annotations;
use conformant_rulebook::hooks::Effect;
use conformant_rulebook::{Action, Operation, ParameterLocation, Rulebook, reach};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

impl<'a> History<'a> {
    /// The history of a scenario with validated payloads.
    pub fn from_context(context: &Context<'a>) -> Self {
        let mut reading = HistoryBuilder {
            context,
            shown: vec![Vec::new(); context.seen.len()],
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
                reading.shown[exchange].push(index);
            }
        }
        if context.evidence.events.is_empty() {
            (0..context.seen.len()).for_each(|index| reading.exchange(index, index));
        }
        for (index, event) in context.evidence.events.iter().enumerate() {
            match event {
                Event::Exchange(exchange) => reading.exchange(*exchange, index),
                Event::Hook(call) => reading.hook(index, call),
                Event::Delivery(_) | Event::Passed(_) => {}
            }
        }
        for (index, representation) in context.representations.iter().enumerate() {
            if representation.exchange.is_none() {
                reading.sight(index, None, Moment::UNKNOWN, &PathBinding::default());
            }
        }
        let mut history = reading.history;
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

/// For each resource type, the types whose creation may end it.
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
    /// Representations by exchange.
    shown: Vec<Vec<usize>>,
    history: History<'a>,
}

impl<'a> HistoryBuilder<'_, 'a> {
    fn exchange(&mut self, index: usize, event: usize) {
        let Some(seen) = self.context.seen.get(index) else {
            return;
        };
        let moment = Moment {
            span: seen.exchange.span,
            event,
            race: seen.exchange.race,
        };
        self.history.moments[index] = moment;
        let Some(operation) = seen.operation else {
            return;
        };
        let mut bound = self.bind(index, operation);
        let mut shown = None;
        for representation in std::mem::take(&mut self.shown[index]) {
            let is_known = self.history.resources.iter().count();
            let resource = self.sight(representation, Some(index), moment, &bound);
            // Whether an accepted creation returned a new resource or a known one.
            shown = shown.or(resource.map(|resource| (resource, resource >= is_known)));
        }
        if let Some((resource, _)) = shown
            && operation.names_its_resource()
            && bound.resource.is_none()
        {
            // A name that is new belongs to the resource in the response.
            bound.resource = Some(resource);
            bound.by_name = true;
        }
        if let Some(resource) = bound.resource
            && operation.does == Action::Shows
            && was_refused(self.context.rulebook, seen)
            // Rejected credentials hide what exists.
            && seen.exchange.credentials.flaw().is_none()
            && !matches!(seen.exchange.status(), Some(401 | 403 | 408 | 425 | 429))
        {
            let face = bound.face.unwrap_or_default();
            self.add_observation(resource, face, Appearance::NotFound, Some(index), moment);
        }
        if operation.does.writes() {
            self.write(index, operation, seen, &bound, shown);
        }
        self.history.path_bindings[index] = bound;
    }

    /// The resources in the path of a request.
    fn bind(&mut self, index: usize, operation: &'a Operation) -> PathBinding<'a> {
        let seen = &self.context.seen[index];
        let rulebook = self.context.rulebook;
        let Some((face, about)) = face(rulebook, operation.resource.as_deref()) else {
            return PathBinding::default();
        };
        let texts: Vec<Option<Cow<'_, str>>> = operation
            .path_names()
            .map(|p| seen.exchange.sent.get(&p.name).map(spelled))
            .collect();
        let identity = about.identity.as_ref();
        // An alternative name of a resource may be that of its parent: a user's channel.
        let is_composed = about.is_composed();
        let names_itself = operation.names_its_resource();
        let own = usize::from(names_itself && !is_composed);
        let above = texts.len().saturating_sub(own);
        let mut bound = PathBinding {
            face: Some(face),
            ..PathBinding::default()
        };
        if above > about.parents.len() {
            return bound;
        }
        for ((at, kind), text) in about.parents.iter().zip(&texts[..above]) {
            let found = text.as_ref().and_then(|text| {
                let found = self.find(kind, &bound.parents, text);
                found.or_else(|| self.learn((at, kind), &bound.parents, text, index))
            });
            bound.by_name |= found.is_some_and(|(_, by_name)| by_name);
            bound.parents.push(found.map(|(id, _)| id));
        }
        if is_composed && names_itself {
            let parts: Option<Vec<ResourceId>> = identity
                .into_iter()
                .flat_map(|identity| &identity.key)
                .map(|key| {
                    let at = about.parents.iter().position(|(at, _)| at == key)?;
                    bound.parents.get(at).copied().flatten()
                })
                .collect();
            let keys = parts.map(|parts| self.joined(&parts));
            if let (Some(key), Some(of)) = (keys, about.of()) {
                let parents: Vec<ResourceId> = bound.parents.iter().flatten().copied().collect();
                bound.resource = Some(self.find_or_add(of, &key, &parents));
            }
        } else if own == 1
            && let (Some(Some(text)), Some(of)) = (texts.last(), about.of())
        {
            let found = self.find(of, &bound.parents, text);
            bound.resource = found.map(|(id, _)| id);
            bound.by_name |= found.is_some_and(|(_, by_name)| by_name);
        }
        bound
    }

    fn joined(&self, parts: &[ResourceId]) -> String {
        let keys = parts
            .iter()
            .map(|&id| self.history.resources.get(id).key.as_str());
        keys.collect::<Vec<_>>().join("\n")
    }

    /// The resource of a name in a path, and whether the name is not its key. A name in the form of a key is one, even
    /// if its resource was not observed.
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
        // The representation determines the parents: a path may name another parent, and be rejected.
        looks_like_key(self.context.rulebook, kind, text)
            .then(|| (self.history.resources.meet(kind, text), false))
    }

    /// The resource of an unknown name in a path: the one in the response.
    fn learn(
        &mut self,
        (at, kind): (&str, &'a str),
        parents: &[Option<ResourceId>],
        text: &str,
        index: usize,
    ) -> Option<(ResourceId, bool)> {
        let shown = self.shown[index].first()?;
        let key = self.context.representations[*shown].value(at);
        let key = spelled(key.filter(|key| is_key(key))?);
        let parents: Option<Vec<ResourceId>> = parents.iter().copied().collect();
        let id = self.find_or_add(kind, &key, &parents?);
        self.history.resources.name(id, text);
        Some((id, true))
    }

    /// The resource with a key and its parents.
    fn find_or_add(&mut self, kind: &'a str, key: &str, parents: &[ResourceId]) -> ResourceId {
        let id = self.history.resources.meet(kind, key);
        self.history.resources.place(id, parents);
        id
    }

    /// Records a representation as an observation of its resource.
    fn sight(
        &mut self,
        index: usize,
        exchange: Option<usize>,
        moment: Moment,
        bound: &PathBinding<'a>,
    ) -> Option<ResourceId> {
        let representation = &self.context.representations[index];
        let (face, about) = face(self.context.rulebook, Some(representation.kind))?;
        let identity = about.identity.as_ref()?;
        let key = key_of(representation, &identity.key);
        let is_item = !representation.prefix.is_empty();
        let of = self.context.rulebook.kinds.get(&identity.of)?.name.as_str();
        let id = match key {
            Some(key) => self.history.resources.meet(of, &key),
            // It violates a rule or is not in the representation: the address names it.
            None => bound.resource.filter(|_| !is_item)?,
        };
        self.place(id, representation, about, bound);
        for name in &identity.names {
            let name = representation.value(name).and_then(Value::as_str);
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                self.history.resources.name(id, name);
            }
        }
        let shows = if is_item {
            Appearance::Item(index)
        } else {
            Appearance::Whole(index)
        };
        self.add_observation(id, face, shows, exchange, moment);
        Some(id)
    }

    /// The parents of a resource from its path or from its representation; unknown if the two
    /// differ.
    fn place(
        &mut self,
        id: ResourceId,
        representation: &Representation<'a>,
        about: &'a Annotations,
        bound: &PathBinding<'a>,
    ) {
        let mut parents = Vec::new();
        for (n, (at, kind)) in about.parents.iter().enumerate() {
            let named = bound.parents.get(n).copied().flatten();
            let said = representation.value(at).filter(|said| is_key(said));
            let said = said.map(spelled);
            let parent = match (named, said.as_deref()) {
                // It was shown where it does not belong: its address says nothing of it.
                (Some(named), Some(said)) if self.history.resources.get(named).key != said => {
                    return;
                }
                (Some(named), _) => Some(named),
                (None, Some(said)) => Some(self.find_or_add(kind, said, &parents)),
                (None, None) => None,
            };
            match parent {
                Some(parent) => parents.push(parent),
                None => return,
            }
        }
        self.history.resources.place(id, &parents);
    }

    fn add_observation(
        &mut self,
        id: ResourceId,
        face: &'a str,
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
                face,
                shows,
                exchange,
                moment,
                poll: seen.map_or(Poll::Once, |exchange| exchange.poll),
            });
    }

    fn write(
        &mut self,
        index: usize,
        operation: &'a Operation,
        seen: &Seen<'a>,
        bound: &PathBinding<'a>,
        shown: Option<(ResourceId, bool)>,
    ) {
        let rulebook = self.context.rulebook;
        let face = face(rulebook, operation.resource.as_deref());
        let identity = face.and_then(|(_, about)| about.identity.as_ref());
        let outcome = if seen.acceptance == Acceptance::Accepted {
            Outcome::Done
        } else if was_refused(self.context.rulebook, seen) {
            Outcome::Refused
        } else {
            Outcome::Unknown
        };
        let shared = identity.is_some_and(|identity| identity.shared);
        // A second creation may return the existing resource.
        let does = match (operation.does, shown) {
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
            kind: identity.map_or("", |identity| &identity.of),
            resource: bound.resource.or(shown.map(|(resource, _)| resource)),
            parents: bound.parents.clone(),
            named: named.collect(),
            outcome,
            moment: self.history.moments[index],
        };
        self.apply_write(write, shared);
    }

    fn apply_write(&mut self, write: Write<'a>, shared: bool) {
        let id = self.history.writes.len();
        if let Some(resource) = write.resource {
            let resource = self.history.resources.get_mut(resource);
            resource.writes.push(id);
            match (write.does, write.outcome) {
                (Action::Makes, Outcome::Done) => {
                    resource.made = Some(id);
                    resource.is_ours |= !shared;
                }
                (Action::Ends, Outcome::Done) => resource.ended = Some(id),
                _ => {}
            }
        }
        self.history.writes.push(write);
    }

    /// Records the effect of a hook, by its table.
    fn hook(&mut self, event: usize, call: &'a HookCall) {
        let Some(hook) = self.context.rulebook.index.hook(&call.name) else {
            return;
        };
        for effect in &hook.effects {
            let Some(kind) = self.context.rulebook.kinds.get(&effect.kind) else {
                continue;
            };
            let resource = self.touched(call, effect, &kind.name);
            let write = Write {
                origin: Origin::Hook(event),
                does: effect.does,
                kind: &kind.name,
                resource,
                parents: Vec::new(),
                named: Vec::new(),
                outcome: match call.result {
                    Ok(_) => Outcome::Done,
                    Err(_) => Outcome::Unknown,
                },
                moment: Moment {
                    span: call.span,
                    event,
                    race: call.race,
                },
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
                kind: "",
                resource: None,
                parents: Vec::new(),
                named: Vec::new(),
                outcome: Outcome::Unknown,
                moment: Moment {
                    span: call.span,
                    event,
                    race: call.race,
                },
            });
        }
    }

    /// The resource that a hook names or returns.
    fn touched(
        &mut self,
        call: &'a HookCall,
        effect: &Effect,
        kind: &'a str,
    ) -> Option<ResourceId> {
        let text = |value: &Value, name: &str| value.get(name).map(as_text);
        let key = effect.key.as_ref().and_then(|name| {
            let told = call
                .result
                .as_ref()
                .ok()
                .and_then(|result| text(result, name));
            told.or_else(|| text(&call.arguments, name))
        });
        let scope = effect.within.as_ref().and_then(|scope| {
            let kind = self.context.rulebook.kinds.get(&scope.kind)?.name.as_str();
            let key = text(&call.arguments, &scope.key)?;
            self.history.resources.by_key(kind, &key)
        });
        if let Some(key) = key.filter(|key| !key.is_empty()) {
            let id = self.history.resources.meet(kind, &key);
            if let Some(scope) = scope {
                self.history.resources.place(id, &[scope]);
            }
            return Some(id);
        }
        // By a name, within the nearest resource that is named by its key.
        let name = effect
            .name
            .as_ref()
            .and_then(|name| text(&call.arguments, name))?;
        self.history.resources.by_name(kind, Some(scope?), &name)
    }
}

/// A resource type with its annotations.
fn face<'a>(rulebook: &'a Rulebook, kind: Option<&str>) -> Option<(&'a str, &'a Annotations)> {
    let kind = rulebook.kinds.get(kind?)?;
    Some((kind.name.as_str(), &kind.annotations))
}

/// The values of the key of a resource, as one text.
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

/// Whether a request was rejected for certain: 4xx, and 2xx where the response says so.
fn was_refused(rulebook: &Rulebook, seen: &Seen<'_>) -> bool {
    let service = rulebook.index.get(&seen.exchange.service);
    let document = service.zip(seen.exchange.document());
    let denied = document.is_some_and(|(service, document)| service.rejection(document).is_some());
    let status = seen.exchange.status().unwrap_or_default();
    matches!(seen.acceptance, Acceptance::Rejected(_)) && (denied || (400..500).contains(&status))
}

/// Whether a text has the form of a key of that resource type.
fn looks_like_key(rulebook: &Rulebook, kind: &str, text: &str) -> bool {
    let known = rulebook.kinds.get(kind);
    let key = known.and_then(|kind| kind.annotations.identity.as_ref()?.key.first());
    let pattern = known
        .zip(key)
        .and_then(|(kind, key)| reach::pattern(&kind.schema, key));
    let Some(rest) = pattern.and_then(|p| p.strip_prefix('^')) else {
        return false;
    };
    let (Some(prefix), true) = (rest.get(..2), rest.contains("{32}")) else {
        return false;
    };
    let tail = text.strip_prefix(prefix);
    tail.is_some_and(|tail| tail.len() == 32 && tail.bytes().all(|b| b.is_ascii_hexdigit()))
}
