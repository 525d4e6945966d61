//! Where a story stood before each of its steps, so that one which is told again can pass over steps that would come to what
//! they came to before.
//!
//! A step does the same again where it reads the same of what was captured, all that it asks the world for is answered as
//! before, and the story stands where it stood. What steps read of evidence they only count; one that looks into it, as
//! for the answer which showed a link, is always carried out, and so is one that opens an address for callbacks.

use super::{Listener, Runner};
use crate::clock::Timestamp;
use crate::engine::template::Notes;
use crate::judge::evidence::Evidence;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A story told before, step by step.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// One for each step, and where it ended.
    places: Vec<Place>,
    /// By step: what it read and captured; nothing where it has to be carried out.
    steps: Vec<Option<Notes>>,
}

/// Where a story stands.
#[derive(Debug)]
struct Place {
    passages: usize,
    now: Timestamp,
    /// How much was observed, by its sort.
    observed: [usize; 6],
    body_bytes: usize,
    target: Value,
    captured_at: BTreeMap<String, usize>,
    refused: BTreeSet<String>,
    judged_as: BTreeMap<String, String>,
    listeners: Vec<Listener>,
    looked: Timestamp,
}

impl Runner<'_> {
    /// Begins to note what a step does.
    pub(super) fn mark(&mut self, marks: &mut Marks) {
        marks.places.push(self.place());
        self.is_told_always = false;
        self.scope.begin_noting();
    }

    /// Notes what the step did.
    pub(super) fn mark_end(&mut self, marks: &mut Marks) {
        let notes = self.scope.noted();
        let is_known = !self.is_told_always && self.soft_stop.is_none();
        marks.steps.push(notes.filter(|_| is_known));
    }

    /// Notes where the story ended.
    pub(super) fn mark_last(&self, marks: &mut Marks) {
        marks.places.push(self.place());
    }

    /// Passes over a step that would come to what it came to before; false where it has to be carried out.
    pub(super) fn pass_over_step(
        &mut self,
        index: usize,
        before: &Evidence,
        marks: &Marks,
    ) -> bool {
        let (Some(here), Some(there)) = (marks.places.get(index), marks.places.get(index + 1))
        else {
            return false;
        };
        let Some(Some(notes)) = marks.steps.get(index) else {
            return false;
        };
        let is_same = self.stands_at(here) && self.scope.reads_alike(notes);
        if !is_same || !self.session.pass_over(there.passages) {
            return false;
        }
        let evidence = &mut self.evidence;
        let range = |sort: usize| here.observed[sort]..there.observed[sort];
        extend(&mut evidence.exchanges, &before.exchanges[range(0)]);
        extend(&mut evidence.statements, &before.statements[range(1)]);
        extend(&mut evidence.payloads, &before.payloads[range(2)]);
        extend(&mut evidence.walks, &before.walks[range(3)]);
        extend(&mut evidence.missed, &before.missed[range(4)]);
        extend(&mut evidence.events, &before.events[range(5)]);
        self.body_bytes = there.body_bytes;
        self.captured_at.clone_from(&there.captured_at);
        self.refused.clone_from(&there.refused);
        self.judged_as.clone_from(&there.judged_as);
        self.listeners.clone_from(&there.listeners);
        self.looked = there.looked;
        self.scope.write(notes, &there.target);
        true
    }

    fn place(&self) -> Place {
        Place {
            passages: self.session.passages(),
            now: self.session.now(),
            observed: observed(&self.evidence),
            body_bytes: self.body_bytes,
            target: self.scope.target().clone(),
            captured_at: self.captured_at.clone(),
            refused: self.refused.clone(),
            judged_as: self.judged_as.clone(),
            listeners: self.listeners.clone(),
            looked: self.looked,
        }
    }

    fn stands_at(&self, place: &Place) -> bool {
        self.soft_stop.is_none()
            && self.session.passages() == place.passages
            && self.session.now() == place.now
            && observed(&self.evidence) == place.observed
            && self.body_bytes == place.body_bytes
            && self.looked == place.looked
            && self.captured_at == place.captured_at
            && self.refused == place.refused
            && self.judged_as == place.judged_as
            && self.listeners == place.listeners
            && *self.scope.target() == place.target
    }
}

fn observed(evidence: &Evidence) -> [usize; 6] {
    [
        evidence.exchanges.len(),
        evidence.statements.len(),
        evidence.payloads.len(),
        evidence.walks.len(),
        evidence.missed.len(),
        evidence.events.len(),
    ]
}

fn extend<T: Clone>(observed: &mut Vec<T>, before: &[T]) {
    observed.extend_from_slice(before);
}
