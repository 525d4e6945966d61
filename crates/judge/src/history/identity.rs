//! Things: what several representations are of, by key and by name.

use super::sights::Sight;
use super::writes::WriteId;
use std::collections::BTreeMap;

/// Index of a thing.
pub type ThingId = usize;

/// One thing, whatever shows it.
#[derive(Debug)]
pub struct Thing<'a> {
    /// Its kind; faces have kinds of their own.
    pub kind: &'a str,
    /// What identifies it.
    pub key: String,
    /// What it belongs to, outermost first, as far as that is known.
    pub parents: Vec<ThingId>,
    /// Whether this case made it, or something that it belongs to.
    pub is_ours: bool,
    /// Each time that it was seen, in order.
    pub sights: Vec<Sight<'a>>,
    /// What was done to it, in order.
    pub writes: Vec<WriteId>,
    /// What brought it.
    pub made: Option<WriteId>,
    /// What ended it.
    pub ended: Option<WriteId>,
}

/// Things by name; nothing where two have it.
type Named = BTreeMap<String, Option<ThingId>>;

/// All things of a case.
#[derive(Debug, Default)]
pub struct Things<'a> {
    all: Vec<Thing<'a>>,
    /// By kind and key.
    keys: BTreeMap<&'a str, BTreeMap<String, ThingId>>,
    /// By kind and nearest parent.
    names: BTreeMap<(&'a str, Option<ThingId>), Named>,
}

impl<'a> Things<'a> {
    /// All in the order in which they were met.
    pub fn iter(&self) -> impl Iterator<Item = (ThingId, &Thing<'a>)> {
        self.all.iter().enumerate()
    }

    /// Those of a kind.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = (ThingId, &Thing<'a>)> {
        self.iter().filter(move |(_, thing)| thing.kind == kind)
    }

    /// One of them.
    pub fn get(&self, id: ThingId) -> &Thing<'a> {
        &self.all[id]
    }

    pub(super) fn get_mut(&mut self, id: ThingId) -> &mut Thing<'a> {
        &mut self.all[id]
    }

    /// The thing with that key.
    pub fn by_key(&self, kind: &'a str, key: &str) -> Option<ThingId> {
        self.keys.get(kind)?.get(key).copied()
    }

    /// The thing with that name within its nearest parent; nothing where two have it.
    pub fn by_name(&self, kind: &'a str, within: Option<ThingId>, name: &str) -> Option<ThingId> {
        self.names
            .get(&(kind, within))?
            .get(name)
            .copied()
            .flatten()
    }

    /// The names that stand for a thing.
    pub fn names_of(&self, id: ThingId) -> impl Iterator<Item = &String> {
        let kind = self.all[id].kind;
        let of_kind = self.names.range((kind, None)..);
        let of_kind = of_kind.take_while(move |((named, _), _)| *named == kind);
        let names = of_kind.flat_map(|(_, names)| names);
        let names = names.filter(move |(_, named)| **named == Some(id));
        names.map(|(name, _)| name)
    }

    /// The thing with that key, met now where it was not before.
    pub(super) fn meet(&mut self, kind: &'a str, key: &str) -> ThingId {
        if let Some(id) = self.by_key(kind, key) {
            return id;
        }
        let id = self.all.len();
        let keys = self.keys.entry(kind).or_default();
        keys.insert(key.to_owned(), id);
        self.all.push(Thing {
            kind,
            key: key.to_owned(),
            parents: Vec::new(),
            is_ours: false,
            sights: Vec::new(),
            writes: Vec::new(),
            made: None,
            ended: None,
        });
        id
    }

    /// From now on a name stands for a thing, unless it stands for another one that was not ended.
    pub(super) fn name(&mut self, id: ThingId, name: &str) {
        let within = self.all[id].parents.last().copied();
        let names = self.names.entry((self.all[id].kind, within)).or_default();
        let Some(named) = names.get_mut(name) else {
            names.insert(name.to_owned(), Some(id));
            return;
        };
        let is_free = named.is_some_and(|other| other == id || self.all[other].ended.is_some());
        *named = is_free.then_some(id);
    }

    /// Says what a thing belongs to, where that was not known, or not so closely.
    pub(super) fn place(&mut self, id: ThingId, parents: &[ThingId]) {
        if parents.starts_with(&self.all[id].parents) && !parents.contains(&id) {
            self.all[id].parents = parents.to_vec();
        }
        let of_ours = self.all[id].parents.iter().any(|&p| self.all[p].is_ours);
        self.all[id].is_ours |= of_ours;
    }

    /// Whether a thing is below another one.
    pub fn is_below(&self, id: ThingId, above: ThingId) -> bool {
        let mut parents = self.all[id].parents.iter();
        parents.any(|&parent| parent == above)
    }
}
