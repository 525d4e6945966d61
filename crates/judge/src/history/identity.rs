//! Resources: the representations that belong together, by key and by name.

use super::observations::Observation;
use super::writes::WriteId;
use std::collections::BTreeMap;

/// Index of a resource.
pub type ResourceId = usize;

/// One resource, in all its representations.
#[derive(Debug, Default)]
pub struct Resource<'a> {
    /// Its resource type; other representations have types of their own.
    pub kind: &'a str,
    pub key: String,
    /// Its known parents, outermost first.
    pub parents: Vec<ResourceId>,
    /// Whether this scenario created it, or one of its parents.
    pub is_ours: bool,
    /// Its observations, in order.
    pub observations: Vec<Observation<'a>>,
    /// The writes that changed it, in order.
    pub writes: Vec<WriteId>,
    /// The write that created it.
    pub made: Option<WriteId>,
    /// The write that ended it.
    pub ended: Option<WriteId>,
}

impl Resource<'_> {
    /// The key as findings show it: a key of several values is one line.
    pub fn shown(&self) -> String {
        self.key.replace('\n', " and ")
    }

    /// Its observations without the attempts of polls.
    pub fn seen(&self) -> impl DoubleEndedIterator<Item = &Observation<'_>> + Clone {
        self.observations.iter().filter(|s| !s.is_attempt())
    }

    /// As `seen`, in representations of one type.
    pub fn seen_as(&self, shown_type: &str) -> impl DoubleEndedIterator<Item = &Observation<'_>> {
        self.seen().filter(move |s| s.shown_type == shown_type)
    }
}

/// Resources by name; `None` for an ambiguous one.
type ResourcesByName = BTreeMap<String, Option<ResourceId>>;

/// All resources of a scenario.
#[derive(Debug, Default)]
pub struct Resources<'a> {
    all: Vec<Resource<'a>>,
    /// By kind and key.
    keys: BTreeMap<&'a str, BTreeMap<String, ResourceId>>,
    /// By kind and nearest parent.
    names: BTreeMap<(&'a str, Option<ResourceId>), ResourcesByName>,
}

impl<'a> Resources<'a> {
    /// All resources in the order of their first observation.
    pub fn iter(&self) -> impl Iterator<Item = (ResourceId, &Resource<'a>)> {
        self.all.iter().enumerate()
    }

    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = (ResourceId, &Resource<'a>)> {
        self.iter()
            .filter(move |(_, resource)| resource.kind == kind)
    }

    pub fn get(&self, id: ResourceId) -> &Resource<'a> {
        &self.all[id]
    }

    pub(super) fn get_mut(&mut self, id: ResourceId) -> &mut Resource<'a> {
        &mut self.all[id]
    }

    /// The key of a composed resource: the keys of its parts, one a line.
    pub fn composed_key(&self, parts: &[ResourceId]) -> String {
        let keys = parts.iter().map(|&id| self.get(id).key.as_str());
        keys.collect::<Vec<_>>().join("\n")
    }

    /// The resource with a key.
    pub fn by_key(&self, kind: &'a str, key: &str) -> Option<ResourceId> {
        self.keys.get(kind)?.get(key).copied()
    }

    /// The resource with a name within its nearest parent; `None` if the name is ambiguous.
    pub fn by_name(
        &self,
        kind: &'a str,
        within: Option<ResourceId>,
        name: &str,
    ) -> Option<ResourceId> {
        self.names
            .get(&(kind, within))?
            .get(name)
            .copied()
            .flatten()
    }

    /// The names of a resource.
    pub fn names_of(&self, id: ResourceId) -> impl Iterator<Item = &String> {
        let kind = self.all[id].kind;
        let of_kind = self.names.range((kind, None)..);
        let of_kind = of_kind.take_while(move |((named, _), _)| *named == kind);
        let names = of_kind.flat_map(|(_, names)| names);
        let names = names.filter(move |(_, named)| **named == Some(id));
        names.map(|(name, _)| name)
    }

    /// The resource with this key, added if it is unknown.
    pub(super) fn get_or_add(&mut self, kind: &'a str, key: &str) -> ResourceId {
        if let Some(id) = self.by_key(kind, key) {
            return id;
        }
        let id = self.all.len();
        let keys = self.keys.entry(kind).or_default();
        keys.insert(key.to_owned(), id);
        self.all.push(Resource {
            kind,
            key: key.to_owned(),
            ..Resource::default()
        });
        id
    }

    /// Assigns a name to a resource, unless an existing one has it.
    pub(super) fn name(&mut self, id: ResourceId, name: &str) {
        let within = self.all[id].parents.last().copied();
        let names = self.names.entry((self.all[id].kind, within)).or_default();
        let Some(named) = names.get_mut(name) else {
            names.insert(name.to_owned(), Some(id));
            return;
        };
        let is_free = named.is_some_and(|other| other == id || self.all[other].ended.is_some());
        *named = is_free.then_some(id);
    }

    /// Sets the parents of a resource, if more are known than before.
    pub(super) fn set_parents(&mut self, id: ResourceId, parents: &[ResourceId]) {
        if parents.starts_with(&self.all[id].parents) && !parents.contains(&id) {
            self.all[id].parents = parents.to_vec();
        }
        let of_ours = self.all[id].parents.iter().any(|&p| self.all[p].is_ours);
        self.all[id].is_ours |= of_ours;
    }

    /// Whether a resource is a descendant of another one.
    pub fn is_below(&self, id: ResourceId, above: ResourceId) -> bool {
        let mut parents = self.all[id].parents.iter();
        parents.any(|&parent| parent == above)
    }
}
