//! Compares one place of two schemas, with a witness of each difference.
//!
//! - Canonical keywords, numbers and texts are compared as sets of values.
//! - Conditions (`not`, `if`): an added one narrows, a removed one widens. Two different ones are undecided.
//! - Lists of branches (`anyOf`, `oneOf`, `allOf`): decided if one list contains the other. A `oneOf` whose branches
//!   overlap rejects what two of them accept; this is decided by the search for a witness. `openapi` reads `oneOf` as `anyOf`.
//! - If only one side has its branches in plain keywords, both schemas are compared as a whole.

use super::canonical::{WORDS, is_covered, named_types, texts, whole};
use super::coordinates::{Action, Direction, What};
use super::ledger::Note;
use super::schemas::{Walk, is_impossible};
use super::witness::{Probe, Witness, near};
use conformant_base::json::{self, equal};
use conformant_rulebook::{OTHER_FIELDS_KEY, RULE_KEY};
use serde_json::{Map, Value};
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
const FORMS: [&str; 3] = ["format", "contentMediaType", "contentEncoding"];
/// Lists of alternatives: another branch widens, unless it overlaps another one of a `oneOf`.
const ANY: [&str; 2] = ["anyOf", "oneOf"];
/// Conditions whose presence narrows.
const CONDITIONS: [&str; 11] = [
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "contentSchema",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "prefixItems",
];
const TYPES: [&str; 6] = ["array", "boolean", "null", "number", "object", "string"];

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
    /// Records everything that differs here, without fields and items. False if these are not comparable either.
    pub(super) fn compare(&mut self) -> bool {
        self.words();
        match (is_impossible(self.old), is_impossible(self.new)) {
            (false, false) => {}
            (true, true) => return true,
            (was_nothing, _) => {
                let action = if was_nothing {
                    Action::Widened
                } else {
                    Action::Narrowed
                };
                let accepted = |was_nothing| if was_nothing { "nothing" } else { "something" };
                let sides = [self.old, self.new].map(|side| accepted(is_impossible(side)));
                let [old, new] = sides.map(|word| Some(word.to_owned()));
                self.note(What::Type, action, |n| n.between(old, new));
                return false;
            }
        }
        if let Some(key) = self.uneven_combination() {
            self.default();
            self.whole(key);
            return false;
        }
        if enumerated(self.old).is_some() || enumerated(self.new).is_some() {
            self.enumeration();
        } else {
            self.types();
            self.numbers();
            self.texts();
        }
        self.counts();
        for key in FORMS {
            self.presence(What::Form, key, &Value::Null);
        }
        self.default();
        self.conditions();
        self.required();
        self.other_fields();
        true
    }

    /// The list of branches that only one side keeps, although the other side expresses branches in plain keywords.
    fn uneven_combination(&self) -> Option<&'static str> {
        let is_typed = |side: &Map<String, Value>| side.contains_key("type");
        ["anyOf", "oneOf", "allOf"].into_iter().find(|key| {
            let (keeper, other, written) = match (self.old.get(*key), self.new.get(*key)) {
                (Some(_), None) => (self.old, self.new, self.walk.new.keywords(self.schemas.1)),
                (None, Some(_)) => (self.new, self.old, self.walk.old.keywords(self.schemas.0)),
                (Some(_), Some(_)) | (None, None) => return false,
            };
            let is_simplified = match *key {
                "allOf" => written.contains_key("allOf"),
                _ => ANY
                    .iter()
                    .any(|any| written.contains_key(*any) && !other.contains_key(*any)),
            };
            is_simplified || (is_typed(other) && !is_typed(keeper))
        })
    }

    /// Compares both schemas as a whole: by their branches as they are written, otherwise by witnesses.
    fn whole(&mut self, key: &'static str) {
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
        // Branches of a `oneOf` overlap.
        if (action == Action::Widened && lost.is_some())
            || (action == Action::Narrowed && gained.is_some())
        {
            action = Action::Changed;
        }
        let is_decided = lost.is_some() && gained.is_some();
        self.note(What::Shape, action, |n| {
            let note = n.detail(key).values(old, new);
            if action == Action::Changed && !is_decided {
                note.undecided()
            } else {
                note
            }
        });
    }

    fn note(&mut self, what: What, action: Action, tell: impl FnOnce(Note) -> Note) {
        let subject = (self.walk.place)(self.pointer);
        let note = Note::new(what, action, self.walk.direction).binding(self.binding);
        let is_of_values = !matches!(what, What::Words | What::Default);
        let witnesses = if is_of_values {
            self.witnesses(action)
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
            }
            if let (Some(before), Some(after)) = (texts(self.old), texts(self.new))
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

    fn witnesses(&self, action: Action) -> Vec<Witness> {
        let (lost, gained) = self.found();
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
        let (old, new) = self.pair(key);
        let same = match (&old, &new) {
            (Some(a), Some(b)) => equal(&bare(a), &bare(b)),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        (!same).then_some((old, new))
    }

    fn words(&mut self) {
        for key in WORDS {
            if let Some((old, new)) = self.difference(key) {
                self.note(What::Words, Action::Changed, |n| {
                    n.detail(key).values(old.as_ref(), new.as_ref())
                });
            }
        }
    }

    fn types(&mut self) {
        let (old, new) = (types(self.old), types(self.new));
        let action = match (old.is_subset(&new), new.is_subset(&old)) {
            (true, true) => return,
            (true, false) => Action::Widened,
            (false, true) => Action::Narrowed,
            (false, false) => Action::Changed,
        };
        let words = |types: BTreeSet<&'static str>| {
            Some(types.into_iter().collect::<Vec<_>>().join(" or "))
        };
        self.note(What::Type, action, |n| n.between(words(old), words(new)));
    }

    /// Compares lists of values; each value is checked against the other side.
    fn enumeration(&mut self) {
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
                    self.note(What::Enumeration, Action::Narrowed, |n| {
                        n.values(None, Some(&values))
                    });
                }
                let was_wrong = new.iter().filter(|v| self.takes(v) == Some((false, true)));
                (Vec::new(), was_wrong.cloned().collect())
            }
            (Some(old), None) => {
                let values = Value::Array(old.clone());
                if !is_covered(self.new, old) {
                    self.note(What::Enumeration, Action::Widened, |n| {
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

    /// Compares numbers as intervals, with the tighter keyword for each end.
    fn numbers(&mut self) {
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
            self.note(What::Bound, action, |n| match names {
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
        self.note(What::Bound, action, |n| {
            n.detail("multipleOf").values(old.as_ref(), new.as_ref())
        });
    }

    /// Compares texts as sets if possible, otherwise lengths and pattern separately.
    fn texts(&mut self) {
        let apart = match (texts(self.old), texts(self.new)) {
            (Some(old), Some(new)) => old
                .apart(&new)
                .map(|(lost, gained)| (lost.is_some(), gained.is_some())),
            // Implied by the type.
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
                self.note(What::Bound, action, |n| {
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
        self.note(What::Form, action, |n| {
            let note = n.detail("pattern").values(old.as_ref(), new.as_ref());
            if apart.is_none() {
                note.undecided()
            } else {
                note
            }
        });
    }

    fn counts(&mut self) {
        for (key, is_upper) in COUNTS {
            if let Some((old, new)) = self.difference(key) {
                let action = ordered(old.as_ref(), new.as_ref(), is_upper);
                self.note(What::Bound, action, |n| {
                    n.detail(key).values(old.as_ref(), new.as_ref())
                });
            }
        }
        self.presence(What::Bound, "uniqueItems", &Value::Bool(false));
    }

    /// Compares a condition whose presence narrows; `nothing` is its value without effect.
    fn presence(&mut self, what: What, key: &str, nothing: &Value) {
        let Some((old, new)) = self.difference(key) else {
            return;
        };
        let asks = |v: &Option<Value>| v.as_ref().is_some_and(|v| v != nothing);
        let action = match (asks(&old), asks(&new)) {
            (false, false) => return,
            (false, true) => Action::Narrowed,
            (true, false) => Action::Widened,
            (true, true) => Action::Changed,
        };
        self.note(what, action, |n| {
            let note = n.detail(key).values(old.as_ref(), new.as_ref());
            if action == Action::Changed {
                note.undecided()
            } else {
                note
            }
        });
    }

    fn default(&mut self) {
        let Some((old, new)) = self.difference("default") else {
            return;
        };
        let action = match (&old, &new) {
            (None, _) => Action::Added,
            (_, None) => Action::Removed,
            (Some(_), Some(_)) => Action::Changed,
        };
        self.note(What::Default, action, |n| {
            n.values(old.as_ref(), new.as_ref())
        });
    }

    fn conditions(&mut self) {
        for key in CONDITIONS {
            self.presence(What::Shape, key, &Value::Null);
        }
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
    fn required(&mut self) {
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
        let witnesses = self.witnesses(match action {
            Action::Added => Action::Narrowed,
            Action::Removed | Action::Narrowed | Action::Widened | Action::Changed => {
                Action::Widened
            }
        });
        let note = Note::new(What::Required, action, self.walk.direction)
            .witnesses(witnesses)
            .binding(binding);
        self.walk.ledger.note(&subject, note);
    }

    fn other_fields(&mut self) {
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
        self.note(What::OtherFields, action, |n| n.between(old, new));
    }
}

/// One end of the accepted numbers.
struct End<'a> {
    key: &'static str,
    value: &'a Value,
    is_open: bool,
}

impl<'a> End<'a> {
    fn of(
        keywords: &'a Map<String, Value>,
        open: &'static str,
        shut: &'static str,
    ) -> Option<Self> {
        let end = |key: &'static str, is_open| {
            let value = keywords.get(key)?;
            Some(Self {
                key,
                value,
                is_open,
            })
        };
        end(open, true).or_else(|| end(shut, false))
    }

    /// Less if the other end accepts more numbers.
    fn reach(&self, other: &Self, is_upper: bool) -> Ordering {
        let exactly = whole(self.value).zip(whole(other.value));
        let by_number = exactly.map(|(a, b)| a.cmp(&b)).or_else(|| {
            let (a, b) = (self.value.as_f64()?, other.value.as_f64()?);
            a.partial_cmp(&b)
        });
        let Some(by_number) = by_number else {
            return Ordering::Equal;
        };
        let by_number = if is_upper {
            by_number
        } else {
            by_number.reverse()
        };
        // An exclusive end accepts one number less.
        by_number.then((!self.is_open).cmp(&!other.is_open))
    }
}

/// The branches of a list, without their texts.
fn branches(keywords: &Map<String, Value>, key: &str) -> Option<Vec<Value>> {
    let list = keywords.get(key)?.as_array()?;
    Some(list.iter().map(bare).collect())
}

/// How a list of branches changed; `None` if it has the same branches.
fn by_branches(key: &str, old: &[Value], new: &[Value]) -> Option<Action> {
    let within = |a: &[Value], b: &[Value]| a.iter().all(|v| b.iter().any(|w| equal(v, w)));
    let is_wider_with_more = ANY.contains(&key);
    match (within(old, new), within(new, old)) {
        (true, true) => None,
        (false, false) => Some(Action::Changed),
        (is_more, _) if is_more == is_wider_with_more => Some(Action::Widened),
        _ => Some(Action::Narrowed),
    }
}

/// Whether a number is a multiple of another one, by their decimal digits.
fn is_multiple(of: &Value, unit: &Value) -> bool {
    let exact = || {
        let ((a, a_places), (b, b_places)) = (decimal(of)?, decimal(unit)?);
        let places = a_places.max(b_places);
        let scaled = |n: i128, from: u32| n.checked_mul(10_i128.checked_pow(places - from)?);
        scaled(a, a_places)?.checked_rem(scaled(b, b_places)?)
    };
    let by_float = || Some(of.as_f64()? % unit.as_f64()? == 0.0);
    let exact = exact().map(|rest| rest == 0);
    exact.or_else(by_float).unwrap_or_default()
}

/// The digits of a number as an integer, and how many of them are decimal places.
fn decimal(value: &Value) -> Option<(i128, u32)> {
    let text = value.as_number()?.to_string();
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number: i128 = format!("{whole}{fraction}").parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()? - exponent.parse::<i32>().ok()?;
    match u32::try_from(places) {
        Ok(places) => Some((number, places)),
        Err(_) => {
            let zeros = 10_i128.checked_pow(places.unsigned_abs())?;
            Some((number.checked_mul(zeros)?, 0))
        }
    }
}

/// Direction in which a bound has moved.
fn ordered(old: Option<&Value>, new: Option<&Value>, is_upper: bool) -> Action {
    let number = |v: Option<&Value>| v.and_then(Value::as_f64);
    match (number(old), number(new)) {
        (None, _) => Action::Narrowed,
        (_, None) => Action::Widened,
        (Some(a), Some(b)) if (a < b) == is_upper => Action::Widened,
        (Some(_), Some(_)) => Action::Narrowed,
    }
}

pub(super) fn is_closed(keywords: &Map<String, Value>) -> bool {
    keywords.get("additionalProperties") == Some(&Value::Bool(false))
}

/// Unlisted fields that an object accepts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Openness {
    Closed,
    Shaped,
    Open,
}

fn openness(keywords: &Map<String, Value>) -> Openness {
    match keywords.get("additionalProperties") {
        Some(Value::Bool(false)) => Openness::Closed,
        Some(Value::Object(members)) if !members.is_empty() => Openness::Shaped,
        Some(
            Value::Object(_)
            | Value::Bool(true)
            | Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_),
        )
        | None => Openness::Open,
    }
}

/// A schema without keywords that do not restrict values: rule ids differ between versions of an event.
pub(super) fn bare(schema: &Value) -> Value {
    const NAMED: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(items) => return items.iter().map(bare).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return schema.clone();
        }
    };
    let says = |key: &str| !WORDS.contains(&key) && key != RULE_KEY && key != OTHER_FIELDS_KEY;
    let mut out = Map::new();
    for (key, value) in members.iter().filter(|(key, _)| says(key)) {
        // Here the keys are names of fields, not keywords.
        let named = value.as_object().filter(|_| NAMED.contains(&key.as_str()));
        let value = match named {
            Some(named) => {
                let fields = named
                    .iter()
                    .map(|(name, schema)| (name.clone(), bare(schema)));
                Value::Object(fields.collect())
            }
            None => bare(value),
        };
        out.insert(key.clone(), value);
    }
    Value::Object(out)
}

/// A value in an id.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn required(keywords: &Map<String, Value>) -> BTreeSet<String> {
    let names = keywords.get("required").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Allowed types; `number` includes `integer`.
fn types(keywords: &Map<String, Value>) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut add = |name: &str| {
        if matches!(name, "integer" | "number") {
            found.insert("integer");
        }
        found.extend(TYPES.into_iter().filter(|t| *t == name));
    };
    match keywords.get("type") {
        Some(Value::String(name)) => add(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).for_each(add),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            TYPES.into_iter().for_each(add);
        }
    }
    found
}

/// Enumerated values; a constant is a list of one.
fn enumerated(keywords: &Map<String, Value>) -> Option<Vec<Value>> {
    match (keywords.get("enum"), keywords.get("const")) {
        (Some(Value::Array(values)), _) => Some(values.clone()),
        (_, Some(value)) => Some(vec![value.clone()]),
        (_, None) => None,
    }
}
