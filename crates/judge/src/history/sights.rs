//! Sights: each time that a representation of a thing was seen, and where its exchange led.

use super::SETTLE;
use super::identity::ThingId;
use crate::case::{Case, Representation};
use crate::evidence::{Poll, Race, Span};
use serde_json::Value;

/// One sight of one thing.
#[derive(Clone, Debug)]
pub struct Sight<'a> {
    /// The kind that it was shown as.
    pub face: &'a str,
    /// How.
    pub shows: Shows,
    /// The exchange that it came by; nothing for what came in another way.
    pub exchange: Option<usize>,
    /// When.
    pub when: When,
    /// Its exchange's place among the tries of a poll.
    pub poll: Poll,
}

/// How a thing was shown; representations are indexes into the case's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// By itself.
    Whole(usize),
    /// As an item of a list.
    Item(usize),
    /// As not there: its own address was refused.
    NotFound,
}

/// When something happened: its time, and its place among the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// From when to when.
    pub span: Span,
    /// Index of the event.
    pub event: usize,
    /// Set if it was sent at the same time as others.
    pub race: Option<Race>,
}

/// What the path of an exchange names.
#[derive(Clone, Debug, Default)]
pub struct Bound<'a> {
    /// The kind of the operation's thing, as it shows it.
    pub face: Option<&'a str>,
    /// What the names before the last one stand for, outermost first.
    pub parents: Vec<Option<ThingId>>,
    /// What the last name stands for, where it is that of the thing.
    pub thing: Option<ThingId>,
    /// Whether that name is no key.
    pub by_name: bool,
}

impl Sight<'_> {
    /// Whether it was one try of several; what is missing there says nothing.
    pub fn is_attempt(&self) -> bool {
        self.poll == Poll::Attempt
    }

    /// What was shown.
    pub fn representation<'c, 'a>(&self, case: &'c Case<'a>) -> Option<&'c Representation<'a>> {
        match self.shows {
            Shows::Whole(index) | Shows::Item(index) => Some(&case.representations[index]),
            Shows::NotFound => None,
        }
    }

    /// The value at `pointer`; nothing where it broke a rule of its own.
    pub fn value<'a>(&self, case: &Case<'a>, pointer: &str) -> Option<&'a Value> {
        self.representation(case)?.value(pointer)
    }
}

impl When {
    /// What came without a time.
    pub const UNKNOWN: Self = Self {
        span: Span::UNKNOWN,
        event: usize::MAX,
        race: None,
    };

    /// Whether this had ended when the other began. Of two that overlap, neither is before the other.
    pub fn is_before(&self, other: &Self) -> bool {
        let raced = self.race.zip(other.race);
        let raced = raced.and_then(|(one, other)| one.is_before(&other));
        raced.unwrap_or_else(|| self.event < other.event && self.span.is_before(&other.span))
    }

    /// Whether this may have taken effect after the other: it is another event that had not ended when the
    /// other began.
    pub fn may_follow(&self, other: &Self) -> bool {
        self.event != other.event && !self.is_before(other)
    }

    /// Whether neither of two events is before the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.may_follow(other) && other.may_follow(self)
    }

    /// Whether what was done then had time to show by the other moment, however what shows it lags.
    pub fn is_settled(&self, until: &Self) -> bool {
        let since = until.span.began.duration_since(self.span.ended);
        self.is_before(until) && since.unsigned_abs() >= SETTLE
    }
}

impl Bound<'_> {
    /// The nearest parent.
    pub fn scope(&self) -> Option<ThingId> {
        self.parents.last().copied().flatten()
    }
}
