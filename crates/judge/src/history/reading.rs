//! Reading a case as a history, event by event.

use super::History;
use super::identity::ThingId;
use super::lists;
use super::sights::{Bound, Shows, Sight, When};
use super::writes::{Named, Origin, Outcome, Write};
use crate::acceptance::Acceptance;
use crate::case::{Case, Representation, Seen};
use crate::compare::{as_text, spelled};
use crate::evidence::{Event, HookCall, Poll};
use conformant_rulebook::annotations::Annotations;
use conformant_rulebook::hooks::Effect;
use conformant_rulebook::{Does, Operation, Place, Rulebook, reach};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

impl<'a> History<'a> {
    /// The history of a case whose payloads are judged.
    pub fn of(case: &Case<'a>) -> Self {
        let mut reading = Reading {
            case,
            shown: vec![Vec::new(); case.seen.len()],
            history: Self {
                bound: vec![Bound::default(); case.seen.len()],
                moments: vec![When::UNKNOWN; case.seen.len()],
                alone: case.evidence.alone,
                deeds_unseen: case.evidence.deeds_unseen,
                ended_by: ended_by(case.rulebook),
                ended_unseen: ended_unseen(case),
                ..Self::default()
            },
        };
        for (index, representation) in case.representations.iter().enumerate() {
            if let Some(exchange) = representation.exchange {
                reading.shown[exchange].push(index);
            }
        }
        if case.evidence.events.is_empty() {
            (0..case.seen.len()).for_each(|index| reading.exchange(index, index));
        }
        for (index, event) in case.evidence.events.iter().enumerate() {
            match event {
                Event::Exchange(exchange) => reading.exchange(*exchange, index),
                Event::Hook(call) => reading.hook(index, call),
                Event::Delivery(_) | Event::Passed(_) => {}
            }
        }
        for (index, representation) in case.representations.iter().enumerate() {
            if representation.exchange.is_none() {
                reading.sight(index, None, When::UNKNOWN, &Bound::default());
            }
        }
        let mut history = reading.history;
        lists::read(case, &mut history);
        history
    }
}

/// Types of resources that a hook may have ended unseen.
fn ended_unseen<'a>(case: &Case<'a>) -> Vec<&'a str> {
    if !case.evidence.deeds_unseen {
        return Vec::new();
    }
    let effects = case.rulebook.index.hooks().flat_map(|hook| &hook.effects);
    let ends = effects.filter(|effect| effect.does == Does::Ends);
    ends.map(|effect| effect.kind.as_str()).collect()
}

/// By kind, the kinds whose making may end things of it.
fn ended_by(rulebook: &Rulebook) -> BTreeMap<&str, &[String]> {
    let kinds = rulebook.kinds.values();
    let ended = kinds.filter_map(|kind| Some((kind, kind.about.identity.as_ref()?)));
    let ended = ended.filter(|(_, identity)| !identity.ended_by.is_empty());
    ended
        .map(|(kind, identity)| (kind.name.as_str(), identity.ended_by.as_slice()))
        .collect()
}

struct Reading<'c, 'a> {
    case: &'c Case<'a>,
    /// Representations by exchange.
    shown: Vec<Vec<usize>>,
    history: History<'a>,
}

impl<'a> Reading<'_, 'a> {
    fn exchange(&mut self, index: usize, event: usize) {
        let Some(seen) = self.case.seen.get(index) else {
            return;
        };
        let span = seen.exchange.span;
        let when = When { span, event };
        self.history.moments[index] = when;
        let Some(operation) = seen.operation else {
            return;
        };
        let mut bound = self.bind(index, operation);
        let mut shown = None;
        for representation in std::mem::take(&mut self.shown[index]) {
            let is_known = self.history.things.iter().count();
            let thing = self.sight(representation, Some(index), when, &bound);
            // What an accepted creation brought was never met before, or it is no new thing.
            shown = shown.or(thing.map(|thing| (thing, thing >= is_known)));
        }
        if let Some((thing, _)) = shown
            && operation.names_its_thing()
            && bound.thing.is_none()
        {
            // A name that is met for the first time stands for what answers to it.
            bound.thing = Some(thing);
            bound.by_name = true;
        }
        if let Some(thing) = bound.thing
            && operation.does == Does::Shows
            && was_refused(self.case.rulebook, seen)
            // Rejected credentials hide what exists.
            && seen.exchange.credentials.flaw().is_none()
            && !matches!(seen.exchange.status(), Some(401 | 403 | 408 | 425 | 429))
        {
            let face = bound.face.unwrap_or_default();
            self.look(thing, face, Shows::NotFound, Some(index), when);
        }
        if operation.does.writes() {
            self.write(index, operation, seen, &bound, shown);
        }
        self.history.bound[index] = bound;
    }

    /// What the path of a request names.
    fn bind(&mut self, index: usize, operation: &'a Operation) -> Bound<'a> {
        let seen = &self.case.seen[index];
        let rulebook = self.case.rulebook;
        let Some((face, about)) = face(rulebook, operation.thing.as_deref()) else {
            return Bound::default();
        };
        let texts: Vec<Option<Cow<'_, str>>> = operation
            .path_names()
            .map(|p| seen.exchange.sent.get(&p.name).map(spelled))
            .collect();
        let identity = about.identity.as_ref();
        // What a thing is known by may be what it belongs to: a user's channel.
        let is_composed = about.is_composed();
        let names_itself = operation.names_its_thing();
        let own = usize::from(names_itself && !is_composed);
        let above = texts.len().saturating_sub(own);
        let mut bound = Bound {
            face: Some(face),
            ..Bound::default()
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
            let parts: Option<Vec<ThingId>> = identity
                .into_iter()
                .flat_map(|identity| &identity.key)
                .map(|key| {
                    let at = about.parents.iter().position(|(at, _)| at == key)?;
                    bound.parents.get(at).copied().flatten()
                })
                .collect();
            let keys = parts.map(|parts| self.joined(&parts));
            if let (Some(key), Some(of)) = (keys, about.of()) {
                let parents: Vec<ThingId> = bound.parents.iter().flatten().copied().collect();
                bound.thing = Some(self.met(of, &key, &parents));
            }
        } else if own == 1
            && let (Some(Some(text)), Some(of)) = (texts.last(), about.of())
        {
            let found = self.find(of, &bound.parents, text);
            bound.thing = found.map(|(id, _)| id);
            bound.by_name |= found.is_some_and(|(_, by_name)| by_name);
        }
        bound
    }

    fn joined(&self, parts: &[ThingId]) -> String {
        let keys = parts
            .iter()
            .map(|&id| self.history.things.get(id).key.as_str());
        keys.collect::<Vec<_>>().join("\n")
    }

    /// What a name in a path stands for, and whether it is no key. What looks like a key is one,
    /// though the case has not seen its thing.
    fn find(
        &mut self,
        kind: &'a str,
        parents: &[Option<ThingId>],
        text: &str,
    ) -> Option<(ThingId, bool)> {
        let scope = parents.last().copied().flatten();
        let things = &self.history.things;
        if let Some(id) = things.by_key(kind, text) {
            return Some((id, false));
        }
        if let Some(id) = things.by_name(kind, scope, text) {
            return Some((id, true));
        }
        // What it belongs to is said by what shows it: a path may name another parent, and be refused.
        looks_like_key(self.case.rulebook, kind, text)
            .then(|| (self.history.things.meet(kind, text), false))
    }

    /// What a name in a path stands for that was never seen: what the answer says of itself there.
    fn learn(
        &mut self,
        (at, kind): (&str, &'a str),
        parents: &[Option<ThingId>],
        text: &str,
        index: usize,
    ) -> Option<(ThingId, bool)> {
        let shown = self.shown[index].first()?;
        let key = self.case.representations[*shown].value(at);
        let key = spelled(key.filter(|key| is_key(key))?);
        let parents: Option<Vec<ThingId>> = parents.iter().copied().collect();
        let id = self.met(kind, &key, &parents?);
        self.history.things.name(id, text);
        Some((id, true))
    }

    /// A thing by its key, with what it belongs to.
    fn met(&mut self, kind: &'a str, key: &str, parents: &[ThingId]) -> ThingId {
        let id = self.history.things.meet(kind, key);
        self.history.things.place(id, parents);
        id
    }

    /// Takes a representation as a sight of its thing.
    fn sight(
        &mut self,
        index: usize,
        exchange: Option<usize>,
        when: When,
        bound: &Bound<'a>,
    ) -> Option<ThingId> {
        let representation = &self.case.representations[index];
        let (face, about) = face(self.case.rulebook, Some(representation.kind))?;
        let identity = about.identity.as_ref()?;
        let key = key_of(representation, &identity.key);
        let is_item = !representation.prefix.is_empty();
        let of = self.case.rulebook.kinds.get(&identity.of)?.name.as_str();
        let id = match key {
            Some(key) => self.history.things.meet(of, &key),
            // It broke, or is not shown: the address says whose it is.
            None => bound.thing.filter(|_| !is_item)?,
        };
        self.place(id, representation, about, bound);
        for name in &identity.names {
            let name = representation.value(name).and_then(Value::as_str);
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                self.history.things.name(id, name);
            }
        }
        let shows = if is_item {
            Shows::Item(index)
        } else {
            Shows::Whole(index)
        };
        self.look(id, face, shows, exchange, when);
        Some(id)
    }

    /// What a thing belongs to: what its path names, else what it says itself.
    /// Where the two differ nothing is known.
    fn place(
        &mut self,
        id: ThingId,
        representation: &Representation<'a>,
        about: &'a Annotations,
        bound: &Bound<'a>,
    ) {
        let mut parents = Vec::new();
        for (n, (at, kind)) in about.parents.iter().enumerate() {
            let named = bound.parents.get(n).copied().flatten();
            let said = representation.value(at).filter(|said| is_key(said));
            let said = said.map(spelled);
            let parent = match (named, said.as_deref()) {
                // It was shown where it does not belong: its address says nothing of it.
                (Some(named), Some(said)) if self.history.things.get(named).key != said => return,
                (Some(named), _) => Some(named),
                (None, Some(said)) => Some(self.met(kind, said, &parents)),
                (None, None) => None,
            };
            match parent {
                Some(parent) => parents.push(parent),
                None => return,
            }
        }
        self.history.things.place(id, &parents);
    }

    fn look(
        &mut self,
        id: ThingId,
        face: &'a str,
        shows: Shows,
        exchange: Option<usize>,
        when: When,
    ) {
        let seen = exchange.map(|index| self.case.seen[index].exchange);
        self.history.things.get_mut(id).sights.push(Sight {
            face,
            shows,
            exchange,
            when,
            poll: seen.map_or(Poll::Once, |exchange| exchange.poll),
        });
    }

    fn write(
        &mut self,
        index: usize,
        operation: &'a Operation,
        seen: &Seen<'a>,
        bound: &Bound<'a>,
        shown: Option<(ThingId, bool)>,
    ) {
        let rulebook = self.case.rulebook;
        let face = face(rulebook, operation.thing.as_deref());
        let identity = face.and_then(|(_, about)| about.identity.as_ref());
        let outcome = if seen.acceptance == Acceptance::Accepted {
            Outcome::Done
        } else if was_refused(self.case.rulebook, seen) {
            Outcome::Refused
        } else {
            Outcome::Unknown
        };
        let shared = identity.is_some_and(|identity| identity.shared);
        // A second creation may bring the thing that is there already.
        let does = match (operation.does, shown) {
            (Does::Makes, Some((_, false))) => Does::FindsOrMakes,
            (does, _) => does,
        };
        let named = operation
            .parameters
            .iter()
            .filter(|p| p.place != Place::Path);
        let named = named.filter_map(|p| {
            Some(Named {
                parameter: &p.name,
                value: seen.exchange.sent.get(&p.name)?,
                echo: p.echo.as_ref()?,
            })
        });
        let write = Write {
            origin: Origin::Exchange(index),
            does,
            kind: identity.map_or("", |identity| &identity.of),
            thing: bound.thing.or(shown.map(|(thing, _)| thing)),
            parents: bound.parents.clone(),
            named: named.collect(),
            outcome,
            when: self.history.moments[index],
        };
        self.done(write, shared);
    }

    fn done(&mut self, write: Write<'a>, shared: bool) {
        let id = self.history.writes.len();
        if let Some(thing) = write.thing {
            let thing = self.history.things.get_mut(thing);
            thing.writes.push(id);
            match (write.does, write.outcome) {
                (Does::Makes, Outcome::Done) => {
                    thing.made = Some(id);
                    thing.is_ours |= !shared;
                }
                (Does::Ends, Outcome::Done) => thing.ended = Some(id),
                _ => {}
            }
        }
        self.history.writes.push(write);
    }

    /// What a person or device did, by the hook's table.
    fn hook(&mut self, event: usize, call: &'a HookCall) {
        let Some(hook) = self.case.rulebook.index.hook(&call.name) else {
            return;
        };
        for effect in &hook.effects {
            let Some(kind) = self.case.rulebook.kinds.get(&effect.kind) else {
                continue;
            };
            let thing = self.touched(call, effect, &kind.name);
            let write = Write {
                origin: Origin::Hook(event),
                does: effect.does,
                kind: &kind.name,
                thing,
                parents: Vec::new(),
                named: Vec::new(),
                outcome: match call.result {
                    Ok(_) => Outcome::Done,
                    Err(_) => Outcome::Unknown,
                },
                when: When {
                    span: call.span,
                    event,
                },
            };
            self.done(
                write,
                kind.about.identity.as_ref().is_some_and(|i| i.shared),
            );
        }
        if hook.opens_all {
            self.history.writes.push(Write {
                origin: Origin::Hook(event),
                does: Does::Changes,
                kind: "",
                thing: None,
                parents: Vec::new(),
                named: Vec::new(),
                outcome: Outcome::Unknown,
                when: When {
                    span: call.span,
                    event,
                },
            });
        }
    }

    /// The thing that a hook names or brings.
    fn touched(&mut self, call: &'a HookCall, effect: &Effect, kind: &'a str) -> Option<ThingId> {
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
            let kind = self.case.rulebook.kinds.get(&scope.kind)?.name.as_str();
            let key = text(&call.arguments, &scope.key)?;
            self.history.things.by_key(kind, &key)
        });
        if let Some(key) = key.filter(|key| !key.is_empty()) {
            let id = self.history.things.meet(kind, &key);
            if let Some(scope) = scope {
                self.history.things.place(id, &[scope]);
            }
            return Some(id);
        }
        // By a name, within the nearest thing that is named by its key.
        let name = effect
            .name
            .as_ref()
            .and_then(|name| text(&call.arguments, name))?;
        self.history.things.by_name(kind, Some(scope?), &name)
    }
}

/// A kind with what is known of it.
fn face<'a>(rulebook: &'a Rulebook, kind: Option<&str>) -> Option<(&'a str, &'a Annotations)> {
    let kind = rulebook.kinds.get(kind?)?;
    Some((kind.name.as_str(), &kind.about))
}

/// The values that identify a thing, as one text.
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

/// Whether a text has the form of the key of that kind.
fn looks_like_key(rulebook: &Rulebook, kind: &str, text: &str) -> bool {
    let known = rulebook.kinds.get(kind);
    let key = known.and_then(|kind| kind.about.identity.as_ref()?.key.first());
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
