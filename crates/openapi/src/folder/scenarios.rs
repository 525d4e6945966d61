//! `scenarios/`: requests that create, read, change and delete each resource.

use super::{CHANGE, FIRST, Folder, OTHER};
use crate::api::Operation;
use crate::requests::{Happy, Turn};
use crate::resources::{noun, with_article};
use conformant_rulebook::kebab;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

impl<'d> Folder<'_, 'd> {
    pub(super) fn scenarios(&mut self) -> BTreeMap<String, Map<String, Value>> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (n, _) in self.operations() {
            for need in self.happy[n].iter().flat_map(|happy| happy.needs.clone()) {
                groups.extend(self.requests.closure(need).map(|closure| (need, closure)));
            }
        }
        let mut files: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        let mut used = BTreeSet::new();
        let mut happy_paths = Vec::new();
        let chosen: Vec<(usize, &Operation<'d>)> = self.operations().collect();
        for (n, operation) in chosen {
            let topic = self.topic(operation);
            let happy = self.happy[n].clone().unwrap_or_default();
            let mut path = Map::new();
            let sent = format!("{:?}{:?}", happy.with, happy.optional);
            let setup = self.setup(&happy.needs, &groups, &mut used);
            let setup = self.with_used_captures(setup, &sent);
            if !setup.is_empty() {
                path.insert("setup".to_owned(), setup.into());
            }
            for (key, values) in [
                ("with", happy.with),
                ("optional", happy.optional),
                ("except", happy.except),
            ] {
                if !values.is_empty() {
                    path.insert(key.to_owned(), values.into());
                }
            }
            happy_paths.push((topic, operation.id.clone(), path));
        }
        for resource in &used {
            let name = self.resources.all[*resource].name.clone();
            let steps: Vec<Value> = groups[resource]
                .iter()
                .map(|one| self.existing(*one))
                .collect();
            let group = json!({ "says": format!("{} that exists.", capital(&with_article(&name))), "steps": steps });
            section(&mut files, &name, "groups").insert(group_name(&name), group);
        }
        for (topic, id, path) in happy_paths {
            section(&mut files, &topic, "operations").insert(id, path.into());
        }
        for resource in 0..self.resources.all.len() {
            let scenarios = self.resource_scenarios(resource);
            if !scenarios.is_empty() {
                let topic = self.resources.all[resource].name.clone();
                let file = files.entry(topic.clone()).or_default();
                file.insert("scenarios".to_owned(), scenarios.into());
                self.decide(
                    "scenarios",
                    format!("{topic}.yaml: the values of requests follow from names and schemas; replace those that the service refuses"),
                );
            }
        }
        files
    }

    /// The steps before a request: a group where one makes all that is needed.
    fn setup(
        &self,
        needs: &[usize],
        groups: &BTreeMap<usize, Vec<usize>>,
        used: &mut BTreeSet<usize>,
    ) -> Vec<Value> {
        let whole = needs.last().filter(|last| {
            groups
                .get(last)
                .is_some_and(|g| g.len() == needs.len() && g.iter().all(|one| needs.contains(one)))
        });
        if let Some(last) = whole {
            used.insert(*last);
            return vec![json!({ "use": group_name(&self.resources.all[*last].name) })];
        }
        needs.iter().map(|one| self.existing(*one)).collect()
    }

    /// The step that makes a resource, or finds it, under its own name.
    fn existing(&self, resource: usize) -> Value {
        let capture = self.requests.capture(resource);
        self.requests.step(resource, FIRST, &capture)
    }

    /// The same for all that a scenario needs, as setup steps.
    fn existing_before(&self, needs: &[usize]) -> Vec<Value> {
        let steps = needs.iter().map(|one| {
            let mut step = self.existing(*one);
            step["setup"] = json!(true);
            step
        });
        steps.collect()
    }

    /// The steps without captures that neither later steps nor a request after them use.
    /// Steps that only find a resource, or make one for a scenario, are left out with their capture.
    fn with_used_captures(&self, steps: Vec<Value>, after: &str) -> Vec<Value> {
        let mut uses = after.to_owned();
        let mut kept = Vec::new();
        for mut step in steps.into_iter().rev() {
            let unused = step["capture"].as_str().filter(|name| {
                !uses.contains(&format!("${{{name}.")) && !uses.contains(&format!("${{{name}}}"))
            });
            if unused.is_some() {
                let mut all = self.resources.all.iter();
                let finds = all.any(|r| {
                    r.creator.is_none()
                        && r.list
                            .is_some_and(|n| step["call"] == self.api.operations[n].id)
                });
                if finds || step["setup"] == true {
                    continue;
                }
                step.as_object_mut()
                    .map(|step| step.shift_remove("capture"));
            }
            uses.push_str(&step.to_string());
            kept.push(step);
        }
        kept.reverse();
        kept
    }

    fn resource_scenarios(&self, resource: usize) -> Vec<Value> {
        let known = &self.resources.all[resource];
        let is_there = |n: &usize| self.happy[*n].is_some();
        let Some(creator) = known.creator.filter(is_there) else {
            return Vec::new();
        };
        if known.key.is_none() {
            return Vec::new();
        }
        let Ok(made) = self.requests.happy(creator, FIRST) else {
            return Vec::new();
        };
        let list = known.list.filter(is_there);
        let mut scenarios = vec![json!({
            "id": format!("{}/{}/life", self.service, known.name),
            "says": format!("Creates two resources of the type {}, changes and deletes one, and reads both after each step.", noun(&known.name)),
            "steps": self.with_used_captures(self.life(resource, &made, list), ""),
        })];
        scenarios.extend(self.filters(resource, list));
        scenarios
    }

    /// Two resources are created, one is changed and deleted, and both are read after each step.
    fn life(&self, resource: usize, made: &Happy, list: Option<usize>) -> Vec<Value> {
        let known = &self.resources.all[resource];
        let is_there = |n: &usize| self.happy[*n].is_some();
        let (one, other) = ("one", "other");
        let fetch = known.fetch.filter(is_there);
        let look =
            |capture: &str| fetch.map(|n| self.call(n, self.named(n, FIRST, (resource, capture))));
        let walk = || {
            let n = list?;
            let mut step = self.call(n, self.named(n, FIRST, (resource, one)));
            step["walk"] = json!(true);
            Some(step)
        };
        let mut steps = self.existing_before(&made.needs);
        steps.push(self.requests.step(resource, FIRST, one));
        steps.push(self.requests.step(resource, OTHER, other));
        steps.extend(look(one));
        steps.extend(look(other));
        steps.extend(walk());
        let changes = [known.update, known.replace].into_iter().flatten();
        for n in changes.filter(is_there) {
            let Some(change) = self.change(n, (resource, one), made) else {
                continue;
            };
            steps.push(change);
            steps.extend(look(one));
            steps.extend(look(other));
        }
        if let Some(n) = known.delete.filter(is_there) {
            steps.push(self.call(n, self.named(n, FIRST, (resource, one))));
            steps.extend(look(one).map(|mut step| {
                step["either"] = json!(true);
                step
            }));
            steps.extend(look(other));
        }
        if list.is_some()
            && (known.delete.is_some() || known.update.is_some() || known.replace.is_some())
        {
            steps.push(json!({ "wait": "settled" }));
            steps.extend(walk());
        }
        steps
    }

    /// The step that changes a resource, unless it needs more than its creation or sends nothing.
    fn change(&self, n: usize, (resource, capture): (usize, &str), made: &Happy) -> Option<Value> {
        let change = self.requests.happy(n, CHANGE).ok()?;
        let is_made = |need: &usize| *need == resource || made.needs.contains(need);
        if !change.needs.iter().all(is_made) {
            return None;
        }
        let mut with = self.named(n, CHANGE, (resource, capture));
        with.extend(change.optional);
        let is_empty = with.len() == self.api.operations[n].path_names().len();
        (!is_empty).then(|| self.call(n, with))
    }

    fn call(&self, n: usize, with: Map<String, Value>) -> Value {
        let mut step = json!({ "call": self.api.operations[n].id });
        step["with"] = with.into();
        step
    }

    /// The parameters of an operation, with the resource of a capture.
    fn named(&self, n: usize, turn: Turn<'_>, of: (usize, &str)) -> Map<String, Value> {
        let happy = self.requests.happy(n, turn);
        self.keyed(happy.map(|happy| happy.with).unwrap_or_default(), of)
    }

    /// Parameters in which a captured resource takes the place of the one that the operation needs.
    fn keyed(
        &self,
        with: Map<String, Value>,
        (resource, capture): (usize, &str),
    ) -> Map<String, Value> {
        let own = self.requests.key(resource);
        let key = self.requests.key_in(resource, capture).unwrap_or_default();
        let with = with.into_iter().map(|(name, value)| {
            let value = if value == own { key.clone() } else { value };
            (name, value)
        });
        with.collect()
    }

    /// Each filter of a list with two resources that differ in its field.
    fn filters(&self, resource: usize, list: Option<usize>) -> Vec<Value> {
        let known = &self.resources.all[resource];
        let (Some(list), Some(creator)) = (list, known.creator) else {
            return Vec::new();
        };
        let Some(happy) = &self.happy[list] else {
            return Vec::new();
        };
        let body = self.api.operations[creator].body_fields();
        let body: Vec<&str> = body.map(|f| f.name.as_str()).collect();
        let mut scenarios = Vec::new();
        for name in happy.optional.keys() {
            let Some((_, at)) = self.requests.filtered(list, name) else {
                continue;
            };
            let field = at.trim_start_matches('/');
            if !body.contains(&field) || self.requests_reference(field) {
                continue;
            }
            let Ok(make) = self.requests.happy(creator, FIRST) else {
                continue;
            };
            let mut steps = self.existing_before(&make.needs);
            let made = |turn: Turn<'_>, capture: &str| {
                let mut step = self.requests.step(resource, turn, capture);
                if let Ok(happy) = self.requests.happy(creator, turn)
                    && let Some(value) = happy.optional.get(field)
                {
                    step["with"][field] = value.clone();
                }
                step
            };
            steps.push(made(FIRST, "one"));
            steps.push(made(OTHER, "other"));
            for capture in ["one", "other"] {
                let mut with = happy.with.clone();
                with.insert(
                    name.clone(),
                    json!(format!("${{{capture}{}}}", at.replace('/', "."))),
                );
                let mut step = self.call(list, self.keyed(with, (resource, capture)));
                step["walk"] = json!(true);
                steps.push(step);
            }
            scenarios.push(json!({
                "id": format!("{}/{}/by-{}", self.service, known.name, kebab(name)),
                "says": format!("Creates two resources that differ in {field} and reads the list with each value of {name}."),
                "steps": self.with_used_captures(steps, ""),
            }));
        }
        scenarios
    }
}

/// A mapping of a file, empty where it is new.
fn section<'f>(
    files: &'f mut BTreeMap<String, Map<String, Value>>,
    topic: &str,
    key: &str,
) -> &'f mut Map<String, Value> {
    let file = files.entry(topic.to_owned()).or_default();
    let value = file.entry(key.to_owned()).or_insert_with(|| json!({}));
    value.as_object_mut().expect("sections are mappings")
}

fn group_name(resource: &str) -> String {
    with_article(resource).replace(' ', "-")
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}
