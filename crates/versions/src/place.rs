//! Compares one place of two schemas. Each difference gets the witnesses that are found for the whole place.
//!
//! - Canonical keywords, numbers and texts are compared as sets of values.
//! - Conditions (`not`, `if`): an added one narrows, a removed one widens. Two different ones are decided by witnesses.
//!   `if`, `then` and `else` are one condition.
//! - Lists of branches (`anyOf`, `oneOf`, `allOf`): decided if one list contains the other. A `oneOf` whose branches
//!   overlap rejects what two of them accept; this is decided by the search for a witness. `openapi` reads `oneOf` as `anyOf`.
//! - If only one side has its branches in plain keywords, both schemas are compared as a whole.

use super::canonical::{CONDITIONAL, WORDS, accepted_texts, is_covered, named_types};
use super::coordinates::{Action, Direction, What};
use super::keywords::{
    ANY, End, Openness, bare, branches, by_branches, enumerated, is_multiple, openness, ordered,
    plain, required, types,
};
use super::ledger::Note;
use super::schemas::{Walk, is_impossible};
use super::witness::{Probe, Witness, near, near_conditions};
use conformant_base::json::{self, equal};
use serde_json::{Map, Value, json};
use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Lower and upper bounds of counts.
const COUNTS: [(&str, bool); 4] = [
    ("minItems", false),
    ("maxItems", true),
    ("minProperties", false),
    ("maxProperties", true),
];
/// Bounds of numbers, exclusive and inclusive.
const NUMBERS: [(&str, &str, bool); 2] = [
    ("exclusiveMinimum", "minimum", false),
    ("exclusiveMaximum", "maximum", true),
];
/// Keywords for the format of a text.
const FORMS: [&str; 3] = ["format", "contentMediaType", "contentEncoding"];
/// Conditions; `if` is compared with its `then` and `else`. The presence of most narrows: see [`WIDENING`].
const CONDITIONS: &str =
    "not contains propertyNames dependentRequired dependentSchemas patternProperties prefixItems";

/// Conditions whose presence may also widen, because they free members or items from another keyword.
const WIDENING: [&str; 2] = ["patternProperties", "prefixItems"];

/// State of the comparison of one place.
pub(super) struct SchemaPlace<'p, 'w> {
    pub(super) walk: &'p mut Walk<'w>,
    pub(super) pointer: &'p str,
    pub(super) old: &'p Map<String, Value>,
    pub(super) new: &'p Map<String, Value>,
    /// Both original schemas, for judging values.
    pub(super) schemas: (&'p Value, &'p Value),
    /// Whether a rule of level `must` requires this place.
    pub(super) binding: bool,
    pub(super) probe: OnceCell<Option<Probe>>,
}

impl SchemaPlace<'_, '_> {
    /// Records what differs at this place. Does not descend. Returns whether fields and items are to be compared.
    pub(super) fn compare(&mut self) -> bool {
        self.compare_words();
        match (is_impossible(self.old), is_impossible(self.new)) {
            (false, false) => {}
            (true, true) => return false,
            (was_nothing, _) => {
                let action = if was_nothing {
                    Action::Widened
                } else {
                    Action::Narrowed
                };
                let accepted = |was_nothing| if was_nothing { "nothing" } else { "something" };
                let sides = [self.old, self.new].map(|side| accepted(is_impossible(side)));
                let [old, new] = sides.map(|word| Some(word.to_owned()));
                self.note(What::Type, &[], action, |n| n.between(old, new));
                return false;
            }
        }
        if let Some(key) = self.uneven_combination() {
            self.compare_default();
            self.compare_as_whole(key);
            return false;
        }
        if enumerated(self.old).is_some() || enumerated(self.new).is_some() {
            self.compare_enumeration();
        } else {
            self.compare_types();
            self.compare_numbers();
            self.compare_texts();
        }
        self.compare_counts();
        for key in FORMS {
            self.compare_presence(What::Form, key, &Value::Null);
        }
        self.compare_default();
        self.compare_conditions();
        self.compare_required();
        self.compare_other_fields();
        true
    }

    /// The key of a list of branches that only one side has in its canonical form, if the sides are to be compared as a
    /// whole. They are if the other side's list was simplified away, or if only the other side has a `type`.
    fn uneven_combination(&self) -> Option<&'static str> {
        let is_typed = |side: &Map<String, Value>| side.contains_key("type");
        ["anyOf", "oneOf", "allOf"].into_iter().find(|key| {
            let (keeper, other, other_as_written) = match (self.old.get(*key), self.new.get(*key)) {
                (Some(_), None) => (self.old, self.new, self.walk.new.keywords(self.schemas.1)),
                (None, Some(_)) => (self.new, self.old, self.walk.old.keywords(self.schemas.0)),
                (Some(_), Some(_)) | (None, None) => return false,
            };
            let is_simplified = match *key {
                "allOf" => other_as_written.contains_key("allOf"),
                _ => ANY
                    .iter()
                    .any(|any| other_as_written.contains_key(*any) && !other.contains_key(*any)),
            };
            is_simplified || (is_typed(other) && !is_typed(keeper))
        })
    }

    /// Compares both schemas as a whole: by their branches as they are written, otherwise by witnesses.
    fn compare_as_whole(&mut self, key: &'static str) {
        let mut old = self.walk.old.keywords(self.schemas.0);
        let mut new = self.walk.new.keywords(self.schemas.1);
        let lists = (branches(&old, key), branches(&new, key));
        for keywords in [&mut old, &mut new] {
            keywords.retain(|name, _| name != key && name != "default");
        }
        let is_same_rest = equal(&bare(&Value::Object(old)), &bare(&Value::Object(new)));
        let action = match lists {
            (Some(old), Some(new)) if is_same_rest => match by_branches(key, &old, &new) {
                Some(action) => action,
                None => return,
            },
            _ => Action::Changed,
        };
        let schemas = (self.schemas.0.clone(), self.schemas.1.clone());
        self.note_shape(key, action, (Some(&schemas.0), Some(&schemas.1)));
    }

    /// Records a change of branches. One that is neither wider nor narrower is undecided without two witnesses.
    fn note_shape(
        &mut self,
        key: &'static str,
        mut action: Action,
        (old, new): (Option<&Value>, Option<&Value>),
    ) {
        let (lost, gained) = self.found();
        // Branches of a `oneOf` may overlap: a further branch can then reject what was accepted.
        if (action == Action::Widened && lost.is_some())
            || (action == Action::Narrowed && gained.is_some())
        {
            action = Action::Changed;
        }
        self.note_by_witnesses(What::Shape, key, action, (old, new));
    }

    /// Records a changed keyword that is decided if there are witnesses.
    fn note_by_witnesses(
        &mut self,
        what: What,
        key: &'static str,
        action: Action,
        (old, new): (Option<&Value>, Option<&Value>),
    ) {
        let needs_witness = key == "pattern" || WIDENING.contains(&key);
        let is_undecided = match (action, self.found()) {
            (Action::Changed, (lost, gained)) => lost.is_none() || gained.is_none(),
            (Action::Narrowed | Action::Removed, (lost, _)) => needs_witness && lost.is_none(),
            (Action::Widened | Action::Added, (_, gained)) => needs_witness && gained.is_none(),
        };
        let keys = match key {
            "if" => &CONDITIONAL[..],
            _ => &[key],
        };
        self.note(what, keys, action, |n| {
            let note = n.detail(key).values(old, new);
            if is_undecided { note.undecided() } else { note }
        });
    }

    /// Records a change with witnesses, preferably ones that break these keywords.
    fn note(&mut self, what: What, keys: &[&str], action: Action, tell: impl FnOnce(Note) -> Note) {
        let subject = (self.walk.place)(self.pointer);
        let note = Note::new(what, action, self.walk.direction).binding(self.binding);
        let is_of_values = !matches!(what, What::Words | What::Default);
        let part = |side: &Map<String, Value>| {
            let part = keys
                .iter()
                .filter_map(|key| Some(((*key).to_owned(), side.get(*key)?.clone())));
            Value::Object(part.collect())
        };
        let witnesses = if is_of_values {
            self.witnesses(action, (&part(self.old), &part(self.new)))
        } else {
            Vec::new()
        };
        self.walk
            .ledger
            .note(&subject, tell(note.witnesses(witnesses)));
    }

    /// Both validators with values near the limits of both sides; `None` if a schema does not compile on its own.
    fn probe(&self) -> Option<&Probe> {
        let probe = self.probe.get_or_init(|| {
            let sides = [(self.old, self.walk.old), (self.new, self.walk.new)];
            let [old, new] = sides.map(|(_, side)| side.root);
            let mut probe = Probe::new((self.schemas.0, old), (self.schemas.1, new))?;
            for (keywords, side) in sides {
                probe.propose(near(keywords, side.root));
                for branch in ANY
                    .iter()
                    .filter_map(|key| branches(keywords, key))
                    .flatten()
                {
                    probe.propose(near(&side.keywords(&branch), side.root));
                }
                probe.propose(near_conditions(keywords, side.root));
            }
            if let (Some(before), Some(after)) =
                (accepted_texts(self.old), accepted_texts(self.new))
                && let Some((lost, gained)) = before.apart(&after)
            {
                probe.propose(lost.into_iter().chain(gained).map(Value::from));
            }
            Some(probe)
        });
        probe.as_ref()
    }

    /// A value that only the old form accepts, and one that only the new form accepts, if found.
    fn found(&self) -> (Option<Witness>, Option<Witness>) {
        self.probe().map(Probe::found).unwrap_or_default()
    }

    /// The witnesses of a change, preferably ones that break these parts of the schemas.
    fn witnesses(&self, action: Action, (old, new): (&Value, &Value)) -> Vec<Witness> {
        let found =
            |probe: &Probe| probe.found_by((old, self.walk.old.root), (new, self.walk.new.root));
        let (lost, gained) = self.probe().map(found).unwrap_or_default();
        let shown = match action {
            Action::Narrowed | Action::Removed => [lost, None],
            Action::Widened | Action::Added => [gained, None],
            Action::Changed => [lost, gained],
        };
        shown.into_iter().flatten().collect()
    }

    fn pair(&self, key: &str) -> (Option<Value>, Option<Value>) {
        (self.old.get(key).cloned(), self.new.get(key).cloned())
    }

    /// Both values of a keyword if they differ.
    fn difference(&self, key: &str) -> Option<(Option<Value>, Option<Value>)> {
        different(self.pair(key))
    }

    fn compare_words(&mut self) {
        for key in WORDS {
            if let Some((old, new)) = self.difference(key) {
                self.note(What::Words, &[], Action::Changed, |n| {
                    n.detail(key).values(old.as_ref(), new.as_ref())
                });
            }
        }
    }

    fn compare_types(&mut self) {
        let (old, new) = (types(self.old), types(self.new));
        let action = match (old.is_subset(&new), new.is_subset(&old)) {
            (true, true) => return,
            (true, false) => Action::Widened,
            (false, true) => Action::Narrowed,
            (false, false) => Action::Changed,
        };
        let listed = |types: BTreeSet<&'static str>| {
            Some(types.into_iter().collect::<Vec<_>>().join(" or "))
        };
        self.note(What::Type, &["type"], action, |n| {
            n.between(listed(old), listed(new))
        });
    }

    /// Compares lists of values; each value is checked against the other side.
    fn compare_enumeration(&mut self) {
        let (old, new) = (enumerated(self.old), enumerated(self.new));
        let lacks = |list: &[Value], value: &Value| !list.iter().any(|v| equal(v, value));
        let (gone, come): (Vec<Value>, Vec<Value>) = match (&old, &new) {
            (Some(old), Some(new)) => (
                old.iter().filter(|v| lacks(new, v)).cloned().collect(),
                new.iter().filter(|v| lacks(old, v)).cloned().collect(),
            ),
            (None, Some(new)) => {
                let values = Value::Array(new.clone());
                if !is_covered(self.old, new) {
                    self.note(What::Enumeration, &["enum"], Action::Narrowed, |n| {
                        n.values(None, Some(&values))
                    });
                }
                let was_wrong = new.iter().filter(|v| self.takes(v) == Some((false, true)));
                (Vec::new(), was_wrong.cloned().collect())
            }
            (Some(old), None) => {
                let values = Value::Array(old.clone());
                if !is_covered(self.new, old) {
                    self.note(What::Enumeration, &["enum"], Action::Widened, |n| {
                        n.values(Some(&values), None)
                    });
                }
                let is_wrong = old.iter().filter(|v| self.takes(v) == Some((true, false)));
                (is_wrong.cloned().collect(), Vec::new())
            }
            (None, None) => return,
        };
        for value in &gone {
            self.enum_value(value, Action::Removed);
        }
        for value in &come {
            self.enum_value(value, Action::Added);
        }
    }

    /// Whether the older and the newer version accept a value.
    fn takes(&self, value: &Value) -> Option<(bool, bool)> {
        Some(self.probe()?.takes(value))
    }

    fn enum_value(&mut self, value: &Value, action: Action) {
        let subject = (self.walk.place)(self.pointer);
        let is_gone = action == Action::Removed;
        let (old, new) = if is_gone {
            (Some(value), None)
        } else {
            (None, Some(value))
        };
        let note = Note::new(What::EnumValue, action, self.walk.direction)
            .binding(self.binding)
            .detail(&plain(value))
            .values(old, new)
            .value(value)
            .witnesses(match self.takes(value) {
                Some((was_right, is_right)) if was_right != is_right => {
                    vec![Witness::of(value, was_right)]
                }
                Some(_) | None => Vec::new(),
            });
        self.walk.ledger.note(&subject, note);
    }

    /// Compares numbers as intervals. `canonical` left one keyword for each end, the tighter one.
    fn compare_numbers(&mut self) {
        for (open, shut, is_upper) in NUMBERS {
            let (old, new) = (End::of(self.old, open, shut), End::of(self.new, open, shut));
            let action = match (&old, &new) {
                (None, None) => continue,
                (None, Some(_)) => Action::Narrowed,
                (Some(_), None) => Action::Widened,
                (Some(a), Some(b)) => match a.reach(b, is_upper) {
                    Ordering::Equal => continue,
                    Ordering::Less => Action::Widened,
                    Ordering::Greater => Action::Narrowed,
                },
            };
            let key = new.as_ref().or(old.as_ref()).map_or(shut, |end| end.key);
            let value = |end: &Option<End<'_>>| end.as_ref().map(|end| end.value.clone());
            // Another keyword with the same number is another bound.
            let named = |end: &End<'_>| format!("{} {}", end.key, end.value);
            let differ = old.as_ref().zip(new.as_ref());
            let differ = differ.filter(|(a, b)| a.key != b.key);
            let names = differ.map(|(a, b)| (named(a), named(b)));
            self.note(What::Bound, &[open, shut], action, |n| match names {
                Some((a, b)) => n.detail(key).between(Some(a), Some(b)),
                None => n
                    .detail(key)
                    .values(value(&old).as_ref(), value(&new).as_ref()),
            });
        }
        let Some((old, new)) = self.difference("multipleOf") else {
            return;
        };
        let action = match (&old, &new) {
            (None, _) => Action::Narrowed,
            (_, None) => Action::Widened,
            (Some(a), Some(b)) if is_multiple(b, a) => Action::Narrowed,
            (Some(a), Some(b)) if is_multiple(a, b) => Action::Widened,
            (Some(_), Some(_)) => Action::Changed,
        };
        self.note(What::Bound, &["multipleOf"], action, |n| {
            n.detail("multipleOf").values(old.as_ref(), new.as_ref())
        });
    }

    /// Compares texts as sets if possible, otherwise lengths and pattern separately.
    fn compare_texts(&mut self) {
        let apart = match (accepted_texts(self.old), accepted_texts(self.new)) {
            (Some(old), Some(new)) => old
                .apart(&new)
                .map(|(lost, gained)| (lost.is_some(), gained.is_some())),
            // A side without limits of texts: its `type` decides.
            (None, _) | (_, None) => return,
        };
        for (key, is_upper) in [("minLength", false), ("maxLength", true)] {
            let Some((old, new)) = self.difference(key) else {
                continue;
            };
            let action = ordered(old.as_ref(), new.as_ref(), is_upper);
            let is_so = match (apart, action) {
                (Some((lost, _)), Action::Narrowed) => lost,
                (Some((_, gained)), Action::Widened) => gained,
                (None | Some(_), _) => true,
            };
            if is_so {
                self.note(What::Bound, &[key], action, |n| {
                    n.detail(key).values(old.as_ref(), new.as_ref())
                });
            }
        }
        let Some((old, new)) = self.difference("pattern") else {
            return;
        };
        let action = match (apart, &old, &new) {
            (Some((false, false)), _, _) => return,
            (Some((true, false)), _, _) | (None, None, _) => Action::Narrowed,
            (Some((false, true)), _, _) | (None, _, None) => Action::Widened,
            (Some((true, true)) | None, _, _) => Action::Changed,
        };
        if apart.is_some() {
            self.note(What::Form, &["pattern"], action, |n| {
                n.detail("pattern").values(old.as_ref(), new.as_ref())
            });
        } else {
            self.note_by_witnesses(What::Form, "pattern", action, (old.as_ref(), new.as_ref()));
        }
    }

    fn compare_counts(&mut self) {
        for (key, is_upper) in COUNTS {
            if let Some((old, new)) = self.difference(key) {
                let action = ordered(old.as_ref(), new.as_ref(), is_upper);
                self.note(What::Bound, &[key], action, |n| {
                    n.detail(key).values(old.as_ref(), new.as_ref())
                });
            }
        }
        self.compare_presence(What::Bound, "uniqueItems", &Value::Bool(false));
    }

    /// Compares a condition whose presence narrows; `nothing` is its value without effect.
    fn compare_presence(&mut self, what: What, key: &'static str, nothing: &Value) {
        self.compare_presence_of(what, key, self.pair(key), nothing);
    }

    /// The same for values that were read already.
    fn compare_presence_of(
        &mut self,
        what: What,
        key: &'static str,
        pair: (Option<Value>, Option<Value>),
        nothing: &Value,
    ) {
        let Some((old, new)) = different(pair) else {
            return;
        };
        let asks = |v: &Option<Value>| v.as_ref().is_some_and(|v| v != nothing);
        let action = match (asks(&old), asks(&new)) {
            (false, false) => return,
            (false, true) => Action::Narrowed,
            (true, false) => Action::Widened,
            (true, true) => Action::Changed,
        };
        let action = match (WIDENING.contains(&key), self.found()) {
            (true, (Some(_), None)) => Action::Narrowed,
            (true, (None, Some(_))) => Action::Widened,
            (true, (Some(_), Some(_))) => Action::Changed,
            (true, (None, None)) | (false, _) => action,
        };
        self.note_by_witnesses(what, key, action, (old.as_ref(), new.as_ref()));
    }

    fn compare_default(&mut self) {
        let Some((old, new)) = self.difference("default") else {
            return;
        };
        let action = match (&old, &new) {
            (Some(_), Some(_)) => Action::Changed,
            (_, new) => Action::appears(new.is_some()),
        };
        self.note(What::Default, &[], action, |n| {
            n.values(old.as_ref(), new.as_ref())
        });
    }

    fn compare_conditions(&mut self) {
        for key in CONDITIONS.split(' ') {
            self.compare_presence(What::Shape, key, &Value::Null);
        }
        let conditional = |side: &Map<String, Value>| {
            let keys = CONDITIONAL.into_iter();
            let parts = keys.filter_map(|key| Some((key.to_owned(), side.get(key)?.clone())));
            let parts: Map<String, Value> = parts.collect();
            (!parts.is_empty()).then_some(Value::Object(parts))
        };
        let pair = (conditional(self.old), conditional(self.new));
        self.compare_presence_of(What::Shape, "if", pair, &Value::Null);
        for key in ["anyOf", "oneOf", "allOf"] {
            let action = match (branches(self.old, key), branches(self.new, key)) {
                (None, None) => continue,
                (None, Some(_)) => Action::Narrowed,
                (Some(_), None) => Action::Widened,
                (Some(old), Some(new)) => match by_branches(key, &old, &new) {
                    Some(action) => action,
                    None => continue,
                },
            };
            let (old, new) = self.pair(key);
            self.note_shape(key, action, (old.as_ref(), new.as_ref()));
        }
    }

    /// Compares required fields. A removed field is reported as such; in a request its absence must also be accepted.
    fn compare_required(&mut self) {
        let (old, new) = (required(self.old), required(self.new));
        let listed = |keywords: &Map<String, Value>, name: &str| {
            keywords
                .get("properties")
                .is_some_and(|p| p.get(name).is_some())
        };
        for name in new.difference(&old) {
            self.required_of(name, Action::Added);
        }
        for name in old.difference(&new) {
            let is_removed = listed(self.old, name) && !listed(self.new, name);
            if self.walk.direction == Direction::Request || !is_removed {
                self.required_of(name, Action::Removed);
            }
        }
    }

    fn required_of(&mut self, name: &str, action: Action) {
        let property = |keywords: &Map<String, Value>| {
            keywords
                .get("properties")
                .and_then(|p| p.get(name))
                .cloned()
                .unwrap_or_default()
        };
        let duties = [
            self.walk
                .old
                .is_duty(&self.walk.old.keywords(&property(self.old))),
            self.walk
                .new
                .is_duty(&self.walk.new.keywords(&property(self.new))),
        ];
        let binding = match duties {
            [None, None] => self.binding,
            [a, b] => a.unwrap_or_default() || b.unwrap_or_default(),
        };
        let subject = (self.walk.place)(&json::join(self.pointer, name));
        // More requirements accept less.
        let narrows = match action {
            Action::Added => Action::Narrowed,
            Action::Removed | Action::Narrowed | Action::Widened | Action::Changed => {
                Action::Widened
            }
        };
        let part = json!({"required": [name]});
        let witnesses = self.witnesses(narrows, (&part, &part));
        let note = Note::new(What::Required, action, self.walk.direction)
            .witnesses(witnesses)
            .binding(binding);
        self.walk.ledger.note(&subject, note);
    }

    fn compare_other_fields(&mut self) {
        let speaks_of_objects = |k: &Map<String, Value>| named_types(k).contains(&"object");
        if !speaks_of_objects(self.old) || !speaks_of_objects(self.new) {
            return;
        }
        let action = match (openness(self.old), openness(self.new)) {
            (a, b) if a == b => return,
            (a, b) if a < b => Action::Widened,
            _ => Action::Narrowed,
        };
        let word = |keywords: &Map<String, Value>| {
            let word = match openness(keywords) {
                Openness::Closed => "none",
                Openness::Shaped => "of a given shape",
                Openness::Open => "any",
            };
            Some(word.to_owned())
        };
        let (old, new) = (word(self.old), word(self.new));
        self.note(What::OtherFields, &[], action, |n| n.between(old, new));
    }
}

/// The values of a keyword if they differ.
fn different(pair: (Option<Value>, Option<Value>)) -> Option<(Option<Value>, Option<Value>)> {
    let is_same = match &pair {
        (Some(a), Some(b)) => equal(&bare(a), &bare(b)),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    (!is_same).then_some(pair)
}
