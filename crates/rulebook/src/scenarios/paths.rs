//! Fills the path parameters that a call leaves out.
//!
//! ```yaml
//! - { call: create-channel, with: { ServiceSid: "${service.sid}" }, capture: channel }
//! - { call: create-member, with: { Identity: ann } }
//! #   filled: ServiceSid: "${service.sid}", ChannelSid: "${channel.sid}"
//! ```
//!
//! - A parameter gets the value of the resource of its type that an earlier step used last. A step uses a resource if it
//!   creates it or names it in its path.
//! - All parameters of a call come from one such resource and its parents. It contradicts no parameter that the call
//!   gives. A resource that has the given inner parameters, such as the channel of a member, is preferred.
//! - Only calls that must be accepted, and hooks, count as uses. After a call with `rejected` or `either` the resource may
//!   not exist.
//! - The value of a created resource is its key in the capture of the call or hook, such as `${channel.sid}`.
//! - A group sees only its own steps. After the `use` step its resources have the names of the using scenario.
//! - If no step used such a resource, the configuration key of `x-path-from` supplies the value.
//!
//! Specified in specs/README.md, "Path parameters". Runs before validation, so that all later code
//! reads complete calls. A parameter without a value stays missing and is reported by `step`.

use super::checker::ALWAYS;
use crate::annotations::Annotations;
use crate::model::{Action, Kind, Operation, ParameterLocation, Service};
use crate::scenario::{Group, HappyPath};
use crate::service::ServiceIndex;
use crate::spelling::interpolations;
use crate::step::{Call, Demand, Hook, Step, Use, Verb};
use conformant_base::sorted::SortedMap;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A resource type and the path value of one resource of it: `chat/channel` and `${channel.sid}`.
type Level = (String, Value);

/// The address of a resource: the levels of its path, from the outermost parent to the resource itself.
#[derive(Clone, Debug, Default, PartialEq)]
struct Address(Vec<Level>);

impl Address {
    fn value_of(&self, kind: &str) -> Option<&Value> {
        let mut levels = self.0.iter();
        levels.find(|(k, _)| k == kind).map(|(_, value)| value)
    }

    /// Whether no type has different values in both.
    fn agrees_with(&self, others: &[Level]) -> bool {
        let differs = |(kind, value): &Level| self.value_of(kind).is_some_and(|v| v != value);
        !others.iter().any(differs)
    }

    fn has_all(&self, others: &[Level]) -> bool {
        let has = |(kind, value): &Level| self.value_of(kind) == Some(value);
        others.iter().all(has)
    }

    fn has_text(&self, part: &str) -> bool {
        let mut values = self.0.iter().filter_map(|(_, value)| value.as_str());
        values.any(|text| text.contains(part))
    }
}

/// Addresses in the order of use, the newest last.
#[derive(Clone, Debug, Default)]
struct UsedResources(Vec<Address>);

impl UsedResources {
    fn push(&mut self, address: Address) {
        if !address.0.is_empty() {
            self.0.retain(|known| *known != address);
            self.0.push(address);
        }
    }

    fn newest(&self, is_match: impl Fn(&Address) -> bool) -> Option<&Address> {
        self.0.iter().rev().find(|address| is_match(address))
    }
}

/// The resource types that path parameters name. By service and operation: parameter and type, outermost first.
#[derive(Debug, Default)]
pub(super) struct PathKinds(SortedMap<(String, String), Vec<(String, String)>>);

impl PathKinds {
    /// The types follow from the resource of the operation and its parents ([`types_by_position`]). If the path has more
    /// parameters than that, a parameter has the type that the other operations of the service give its name, as far as
    /// they agree.
    pub(super) fn from_services(
        services: &SortedMap<String, Service>,
        kinds: &SortedMap<String, Kind>,
    ) -> Self {
        let mut all = SortedMap::new();
        for service in services.values() {
            let mut kinds_by_name: SortedMap<&str, BTreeSet<&str>> = SortedMap::new();
            for operation in service.operations.values() {
                for (name, kind) in types_by_position(operation, kinds).unwrap_or_default() {
                    kinds_by_name.entry(name).or_default().insert(kind);
                }
            }
            for operation in service.operations.values() {
                let levels = types_by_position(operation, kinds).unwrap_or_else(|| {
                    let names = operation.path_names().map(|p| p.name.as_str());
                    let with_kind = names.filter_map(|name| {
                        let kinds = kinds_by_name.get(name).filter(|kinds| kinds.len() == 1)?;
                        Some((name, *kinds.first()?))
                    });
                    with_kind.collect()
                });
                let owned = levels.into_iter();
                let owned = owned.map(|(name, kind)| (name.to_owned(), kind.to_owned()));
                let key = (service.name.clone(), operation.id.clone());
                all.insert(key, owned.collect());
            }
        }
        Self(all)
    }

    /// Path parameters of an operation that name a resource, outermost first, each with its type.
    fn levels(&self, operation: &Operation) -> &[(String, String)] {
        let key = (operation.service.clone(), operation.id.clone());
        self.0.get(&key).map(Vec::as_slice).unwrap_or_default()
    }

    /// The type of one path parameter.
    pub(super) fn kind_of(&self, operation: &Operation, parameter: &str) -> Option<&str> {
        let mut levels = self.levels(operation).iter();
        levels
            .find(|(name, _)| name == parameter)
            .map(|(_, kind)| kind.as_str())
    }
}

/// The path parameters with their types, by their positions: first the parents of the operation's resource, and last the
/// resource itself if the path ends with its name. `None` if the path has more parameters than types are known.
fn types_by_position<'a>(
    operation: &'a Operation,
    kinds: &'a SortedMap<String, Kind>,
) -> Option<Vec<(&'a str, &'a str)>> {
    let annotations = annotations_of(operation, kinds)?;
    let names: Vec<&str> = operation.path_names().map(|p| p.name.as_str()).collect();
    let has_own_name = operation.names_its_resource() && !annotations.is_composed();
    let parents = annotations.parents.iter().map(|(_, kind)| kind.as_str());
    let mut types: Vec<&str> = parents.collect();
    let parent_count = names.len().saturating_sub(usize::from(has_own_name));
    if parent_count > types.len() {
        return None;
    }
    types.truncate(parent_count);
    if has_own_name {
        types.extend(annotations.of());
    }
    Some(names.into_iter().zip(types).collect())
}

/// The annotations of an operation's resource.
fn annotations_of<'a>(
    operation: &Operation,
    kinds: &'a SortedMap<String, Kind>,
) -> Option<&'a Annotations> {
    Some(&kinds.get(operation.resource.as_ref()?)?.annotations)
}

/// Fills the calls of all groups, happy paths and scenarios.
pub(super) fn fill(
    services: &mut SortedMap<String, Service>,
    kinds: &SortedMap<String, Kind>,
    index: &ServiceIndex,
    path_kinds: &PathKinds,
) {
    let mut groups = SortedMap::new();
    let mut operations = SortedMap::new();
    for (name, service) in services.iter_mut() {
        for (group, steps) in std::mem::take(&mut service.groups) {
            groups.insert((name.clone(), group), steps);
        }
        operations.insert(name.clone(), std::mem::take(&mut service.operations));
    }
    let mut filler = Filler {
        operations: &operations,
        kinds,
        index,
        path_kinds,
        groups,
        used_by_group: SortedMap::new(),
        in_progress: BTreeSet::new(),
    };
    let names: Vec<(String, String)> = filler.groups.keys().cloned().collect();
    for name in &names {
        filler.fill_group(name);
    }
    for (name, service) in services.iter_mut() {
        for (operation, path) in &mut service.happy {
            filler.fill_happy_path(name, operation, path);
        }
        for (scenario, _) in service.scenarios.values_mut() {
            filler.fill_steps(name, &mut scenario.steps, &mut UsedResources::default());
        }
    }
    for ((service, name), group) in filler.groups {
        if let Some(service) = services.get_mut(&service) {
            service.groups.insert(name, group);
        }
    }
    for (name, operations) in operations {
        if let Some(service) = services.get_mut(&name) {
            service.operations = operations;
        }
    }
}

struct Filler<'a> {
    operations: &'a SortedMap<String, SortedMap<String, Operation>>,
    kinds: &'a SortedMap<String, Kind>,
    index: &'a ServiceIndex,
    path_kinds: &'a PathKinds,
    groups: SortedMap<(String, String), Group>,
    /// The resources that each filled group uses, with the names that its steps give them.
    used_by_group: SortedMap<(String, String), UsedResources>,
    /// Groups that are being filled. A group that uses itself is not filled again; another check reports it.
    in_progress: BTreeSet<(String, String)>,
}

impl<'a> Filler<'a> {
    fn operation(&self, service: &str, name: &str) -> Option<&'a Operation> {
        let (service, name) = name.split_once('/').unwrap_or((service, name));
        self.operations.get(service)?.get(name)
    }

    /// Fills a group, unless that is done, and returns the resources that it uses.
    fn fill_group(&mut self, name: &(String, String)) -> UsedResources {
        if let Some(used) = self.used_by_group.get(name) {
            return used.clone();
        }
        if !self.in_progress.insert(name.clone()) {
            return UsedResources::default();
        }
        let Some(mut steps) = self.groups.get(name).map(|group| group.steps.clone()) else {
            return UsedResources::default();
        };
        let mut used = UsedResources::default();
        self.fill_steps(&name.0, &mut steps, &mut used);
        if let Some(group) = self.groups.get_mut(name) {
            group.steps = steps;
        }
        self.in_progress.remove(name);
        self.used_by_group.insert(name.clone(), used.clone());
        used
    }

    fn fill_happy_path(&mut self, service: &str, operation: &str, path: &mut HappyPath) {
        let mut used = UsedResources::default();
        self.fill_steps(service, &mut path.setup, &mut used);
        if let Some(operation) = self.operation(service, operation) {
            self.fill_path(operation, &mut path.with, &used);
            let address = self.address_in_path(operation, &path.with, &used);
            used.push(address);
        }
        if let Some(more) = &mut path.more {
            self.fill_steps(service, more, &mut used);
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other verbs use no resource"
    )]
    fn fill_steps(&mut self, service: &str, steps: &mut [Step], used: &mut UsedResources) {
        for step in steps {
            let is_repeated = step.repeat.is_some();
            let mut used_here = UsedResources::default();
            match &mut step.verb {
                Verb::Call(call) => {
                    if let Some(operation) = self.operation(service, &call.call) {
                        self.fill_path(operation, &mut call.with, used);
                        let path = self.address_in_path(operation, &call.with, used);
                        if matches!(call.demand, Demand::Own | Demand::Accepted(_)) {
                            used_here.push(path.clone());
                            if !is_repeated {
                                used_here.push(self.address_in_response(operation, path, call));
                            }
                        }
                    }
                }
                Verb::Hook(hook) if !is_repeated => {
                    used_here.push(address_in_result(self.index, hook));
                }
                Verb::Use(group) if !is_repeated => used_here = self.used_in(service, group),
                _ => {}
            }
            for address in used_here.0 {
                // Each repetition uses a resource of its own.
                if !address.has_text("${index}") {
                    used.push(address);
                }
            }
            match &mut step.verb {
                Verb::Call(call) => self.fill_steps(service, &mut call.between, used),
                Verb::Concurrently(race) => self.fill_steps(service, &mut race.concurrently, used),
                _ => {}
            }
        }
    }

    /// Fills omitted parameters in `with`, the innermost first.
    fn fill_path(
        &self,
        operation: &Operation,
        with: &mut Map<String, Value>,
        used: &UsedResources,
    ) {
        let levels = self.path_kinds.levels(operation);
        let mut known = self.given_levels(levels, with, used);
        for (n, (name, kind)) in levels.iter().enumerate().rev() {
            if with.contains_key(name) {
                continue;
            }
            let inner_levels = self.given_levels(&levels[n + 1..], with, used);
            let is_match = |a: &Address| a.value_of(kind).is_some() && a.agrees_with(&known);
            let parent_of_inner = used.newest(|a| is_match(a) && a.has_all(&inner_levels));
            let newest = parent_of_inner.or_else(|| used.newest(is_match));
            if let Some(value) = newest.and_then(|address| address.value_of(kind)).cloned() {
                with.insert(name.clone(), value.clone());
                known.push((kind.clone(), value));
            }
        }
        for parameter in &operation.parameters {
            if let Some(key) = &parameter.path_from
                && parameter.place == ParameterLocation::Path
                && !with.contains_key(&parameter.name)
            {
                let value = format!("${{target.{}.{key}}}", operation.service);
                with.insert(parameter.name.clone(), Value::from(value));
            }
        }
    }

    /// The resource in the path of a request.
    fn address_in_path(
        &self,
        operation: &Operation,
        with: &Map<String, Value>,
        used: &UsedResources,
    ) -> Address {
        Address(self.given_levels(self.path_kinds.levels(operation), with, used))
    }

    /// The levels whose parameters `with` contains.
    fn given_levels(
        &self,
        levels: &[(String, String)],
        with: &Map<String, Value>,
        used: &UsedResources,
    ) -> Vec<Level> {
        let given = levels.iter().filter_map(|(name, kind)| {
            let value = with.get(name).filter(|value| !value.is_null())?;
            Some((kind.clone(), self.with_key(kind, value, used)))
        });
        given.collect()
    }

    /// Replaces a reference to an alternative name, such as `${channel.unique_name}`, by the reference to the key of the
    /// same resource, `${channel.sid}`. Leaves other values, and names of resources that no earlier step used.
    fn with_key(&self, kind: &str, value: &Value, used: &UsedResources) -> Value {
        let annotations = self.kinds.get(kind).map(|kind| &kind.annotations);
        let identity = annotations.and_then(|annotations| annotations.identity.as_ref());
        let by_key = identity.and_then(|identity| {
            let [key] = &identity.key[..] else {
                return None;
            };
            let end = |pointer: &str| format!("{}}}", pointer.replace('/', "."));
            let text = value.as_str()?;
            let mut names = identity.names.iter();
            let resource = names.find_map(|name| text.strip_suffix(&end(name)))?;
            Some(Value::from(format!("{resource}{}", end(key))))
        });
        by_key
            .filter(|key| used.newest(|a| a.value_of(kind) == Some(key)).is_some())
            .unwrap_or_else(|| value.clone())
    }

    /// The address of the resource that a call creates: its key in the capture, within the resource in the path. Empty if
    /// the call creates none, or captures nothing.
    fn address_in_response(&self, operation: &Operation, path: Address, call: &Call) -> Address {
        let annotations = annotations_of(operation, self.kinds);
        let identity = annotations.and_then(|annotations| annotations.identity.as_ref());
        let (Some(name), Some(identity)) = (&call.capture, identity) else {
            return Address::default();
        };
        let makes = matches!(operation.does, Action::Makes | Action::FindsOrMakes);
        let [key] = &identity.key[..] else {
            return Address::default();
        };
        if !makes || call.walk {
            return Address::default();
        }
        let value = format!("${{{name}{}}}", key.replace('/', "."));
        let mut levels = path.0;
        levels.push((identity.of.clone(), Value::from(value)));
        Address(levels)
    }

    /// The resources that a group uses, with the names that they have after the `use` step.
    fn used_in(&mut self, service: &str, group: &Use) -> UsedResources {
        let (service, name) = group
            .r#use
            .split_once('/')
            .unwrap_or((service, &group.r#use));
        let name = (service.to_owned(), name.to_owned());
        let inside = self.fill_group(&name);
        let Some(defaults) = self.groups.get(&name).map(|group| &group.with) else {
            return UsedResources::default();
        };
        let outside = inside.0.into_iter().filter_map(|address| {
            let levels = address.0.into_iter().map(|(kind, value)| {
                let value = renamed(value, group, defaults)?;
                Some((kind, value))
            });
            levels.collect::<Option<Vec<_>>>().map(Address)
        });
        UsedResources(outside.collect())
    }
}

/// Translates a value from within a group to the scenario that uses the group: adds the prefix to captures, and replaces
/// parameters of the group by their values. `None` if a parameter has no value.
///
/// For `use: a-channel` with `as: first`, `${channel.sid}` becomes `${first.channel.sid}`.
fn renamed(value: Value, group: &Use, defaults: &Map<String, Value>) -> Option<Value> {
    let Value::String(text) = &value else {
        return Some(value);
    };
    let found = interpolations(text).ok()?;
    let mut out = String::new();
    let mut from = 0;
    for one in &found {
        out.push_str(&text[from..one.start]);
        from = one.end;
        match &one.path[..] {
            [root, name] if root == "with" => {
                let given = group.with.get(name).or_else(|| defaults.get(name));
                let given = given.filter(|value| !value.is_null())?;
                if one.start == 0 && one.end == text.len() {
                    return Some(given.clone());
                }
                out.push_str(given.as_str()?);
            }
            [root, ..] if root == "with" => return None,
            [root, ..] => match &group.r#as {
                Some(prefix) if !ALWAYS.contains(&root.as_str()) => {
                    out.push_str(&format!("${{{prefix}.{}}}", one.path.join(".")));
                }
                Some(_) | None => out.push_str(&text[one.start..one.end]),
            },
            [] => return None,
        }
    }
    out.push_str(&text[from..]);
    Some(Value::from(out))
}

/// The address of the resource that a hook creates: its key in the capture, within the resource that an argument names.
fn address_in_result(index: &ServiceIndex, hook: &Hook) -> Address {
    let created = index.hook(&hook.hook).and_then(|known| {
        let makes = |does| matches!(does, Action::Makes | Action::FindsOrMakes);
        let mut effects = known.effects.iter().filter(|effect| makes(effect.does));
        effects.find(|effect| {
            effect
                .key
                .as_ref()
                .is_some_and(|key| known.result.contains(key))
        })
    });
    let (Some(effect), Some(name)) = (created, &hook.capture) else {
        return Address::default();
    };
    let scope = effect.within.as_ref().and_then(|within| {
        let value = hook.with.get(&within.key)?;
        Some((within.kind.clone(), value.clone()))
    });
    let own = effect.key.as_ref().map(|key| {
        let value = Value::from(format!("${{{name}.{key}}}"));
        (effect.kind.clone(), value)
    });
    Address(scope.into_iter().chain(own).collect())
}
