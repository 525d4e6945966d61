//! Checks what JSON Schema does not assert at the place needed: unlisted fields, texts that contain JSON,
//! and which rules a document exercises.
//!
//! The schema is flattened once into [`Places`]; documents are walked without the schema.

use super::DEFECTS_MAX;
use super::defect::{Defect, EXTRA_FIELDS_MAX};
use conformant_base::json;
use conformant_rulebook::{OTHER_FIELDS_KEY, Place, RULE_KEY, Resolved};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The schema of every place of a document, each once however often it is referenced.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: Vec<SchemaNode>,
    /// Ids of all rules, sorted; places store indexes.
    rules: Vec<String>,
}

/// The schema of one place.
#[derive(Debug, Default)]
struct SchemaNode {
    /// Listed members.
    members: Vec<(String, Member)>,
    /// The place of unlisted members, if they have a schema.
    others: Option<usize>,
    items: Option<usize>,
    /// Rules that the absence of a member exercises.
    always_judged: Vec<usize>,
    /// The rule that forbids unlisted members.
    no_others: Option<usize>,
    /// True if a string here contains JSON.
    json_text: bool,
}

impl SchemaNode {
    /// A listed member. Objects have few, so that a search in order is the quickest.
    fn member(&self, name: &str) -> Option<&Member> {
        let mut members = self.members.iter();
        members
            .find(|(listed, _)| listed == name)
            .map(|(_, member)| member)
    }
}

#[derive(Debug)]
struct Member {
    place: usize,
    /// Rules that it exercises.
    rules: Vec<usize>,
}

/// Result of a walk.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// For each rule, whether it was exercised.
    judged: Vec<bool>,
    pub(super) defects: Vec<Defect>,
}

impl Places {
    /// Flattens a bundled schema.
    pub(super) fn new(root: &Value) -> Self {
        let mut survey = Survey {
            rules: BTreeSet::new(),
            places: Vec::new(),
            known: BTreeMap::new(),
        };
        survey.rules_in(root);
        let rules: Vec<String> = survey.rules.iter().map(|rule| (*rule).to_owned()).collect();
        survey.place(&Place::root(root).any());
        Self {
            places: survey.places,
            rules,
        }
    }

    pub(super) fn walk(&self, value: &Value) -> Walked {
        let mut walk = Walk {
            of: self,
            pointer: String::with_capacity(json::POINTER_BYTES),
            judged: vec![false; self.rules.len()],
            defects: Vec::new(),
        };
        walk.visit(value, 0);
        Walked {
            judged: walk.judged,
            defects: walk.defects,
        }
    }

    /// Ids of the exercised rules, sorted.
    pub(super) fn judged(&self, walked: &Walked) -> Vec<String> {
        let judged = self.rules.iter().zip(&walked.judged);
        judged
            .filter(|(_, judged)| **judged)
            .map(|(rule, _)| rule.clone())
            .collect()
    }
}

/// Builder of [`Places`].
struct Survey<'a> {
    rules: BTreeSet<&'a str>,
    places: Vec<SchemaNode>,
    /// Places by the addresses of the schemas that apply there.
    known: BTreeMap<Vec<*const Value>, usize>,
}

impl<'a> Survey<'a> {
    fn rules_in(&mut self, schema: &'a Value) {
        match schema {
            Value::Object(members) => {
                for (key, value) in members {
                    match value.as_str() {
                        Some(rule) if key == RULE_KEY || key == OTHER_FIELDS_KEY => {
                            self.rules.insert(rule);
                        }
                        Some(_) | None => self.rules_in(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.rules_in(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The place to which these schemas apply.
    fn place(&mut self, resolved: &Resolved<'a>) -> usize {
        let key = resolved.key();
        if let Some(place) = self.known.get(&key) {
            return *place;
        }
        let index = self.places.len();
        self.known.insert(key, index);
        self.places.push(SchemaNode::default());
        let mut place = SchemaNode {
            no_others: resolved.rule_of_others().and_then(|rule| self.index(rule)),
            json_text: resolved
                .all("contentMediaType")
                .any(|media_type| media_type == "application/json"),
            ..SchemaNode::default()
        };
        for name in resolved.listed() {
            let mut member = Member {
                place: self.place(&resolved.member(name).any()),
                rules: Vec::new(),
            };
            for (property, is_required) in resolved.properties(name) {
                let rule = property.get(RULE_KEY).and_then(Value::as_str);
                let Some(rule) = rule.and_then(|rule| self.index(rule)) else {
                    continue;
                };
                if is_required || is_forbidden(property) {
                    place.always_judged.push(rule);
                } else {
                    member.rules.push(rule);
                }
            }
            place.members.push((name.to_owned(), member));
        }
        place.others = self.place_where_any(&resolved.others().any());
        place.items = self.place_where_any(&resolved.items().any());
        self.places[index] = place;
        index
    }

    fn place_where_any(&mut self, resolved: &Resolved<'a>) -> Option<usize> {
        (!resolved.is_empty()).then(|| self.place(resolved))
    }

    fn index(&self, rule: &str) -> Option<usize> {
        self.rules.iter().position(|known| *known == rule)
    }
}

/// The absence of a forbidden property exercises its rule.
fn is_forbidden(schema: &Value) -> bool {
    schema
        .get("not")
        .and_then(Value::as_object)
        .is_some_and(Map::is_empty)
}

/// A walk in progress.
struct Walk<'a> {
    of: &'a Places,
    pointer: String,
    judged: Vec<bool>,
    defects: Vec<Defect>,
}

impl Walk<'_> {
    fn visit(&mut self, value: &Value, place: usize) {
        let said = &self.of.places[place];
        match value {
            Value::Object(members) => {
                self.note(&said.always_judged);
                self.note(said.no_others.as_slice());
                let mut extra = 0;
                for (name, member) in members {
                    let above = self.pointer.len();
                    json::push(&mut self.pointer, name);
                    if let Some(listed) = said.member(name) {
                        self.note(&listed.rules);
                        self.visit(member, listed.place);
                    } else {
                        if let Some(rule) = said.no_others
                            && extra < EXTRA_FIELDS_MAX
                        {
                            extra += 1;
                            self.not_listed(member, rule);
                        }
                        if let Some(others) = said.others {
                            self.visit(member, others);
                        }
                    }
                    self.pointer.truncate(above);
                }
            }
            Value::Array(items) => {
                for (n, item) in items.iter().enumerate() {
                    let Some(place) = said.items else { return };
                    let above = self.pointer.len();
                    json::push(&mut self.pointer, &n.to_string());
                    self.visit(item, place);
                    self.pointer.truncate(above);
                }
            }
            Value::String(text) if said.json_text => self.json_text(text, value),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn note(&mut self, rules: &[usize]) {
        for rule in rules {
            self.judged[*rule] = true;
        }
    }

    fn not_listed(&mut self, value: &Value, rule: usize) {
        if self.defects.len() < DEFECTS_MAX {
            let expected = "only listed fields".to_owned();
            let mut defect = Defect::new(&self.pointer, "extra-field", expected, value);
            defect.rule = Some(self.of.rules[rule].clone());
            self.defects.push(defect);
        }
    }

    fn json_text(&mut self, text: &str, value: &Value) {
        if self.defects.len() < DEFECTS_MAX
            && let Err(fault) = json::parse(text.as_bytes(), json::Limits::default())
        {
            let expected = match text.trim().is_empty() {
                true => "a JSON text".to_owned(),
                false => format!("a JSON text ({fault})"),
            };
            let defect = Defect::new(&self.pointer, "json-text", expected, value);
            self.defects.push(defect);
        }
    }
}
