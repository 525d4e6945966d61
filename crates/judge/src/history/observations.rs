//! Observations of resources, and the resources in the path of an exchange.

use super::SETTLE;
use super::identity::ResourceId;
use crate::context::{Context, Representation};
use crate::evidence::{Poll, Race, Span};
use jiff::SignedDuration;
use serde_json::Value;
use std::time::Duration;

/// One observation of one resource.
#[derive(Clone, Debug)]
pub struct Observation<'a> {
    /// The resource type of the representation.
    pub shown_type: &'a str,
    pub shows: Appearance,
    /// The exchange that returned it; `None` for other payloads.
    pub exchange: Option<usize>,
    pub moment: Moment,
    /// The role of its exchange in a poll.
    pub poll: Poll,
}

/// The form of an observation; representations are indexes into those of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appearance {
    /// By itself.
    Whole(usize),
    /// As an item of a list.
    Item(usize),
    /// Absent: its address was rejected.
    NotFound,
}

/// The moment of an event: its time, and its position among the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub span: Span,
    /// Index of the event.
    pub event: usize,
    /// Set if it was sent at the same time as others.
    pub race: Option<Race>,
    /// Whether what came before [`Evidence::settled_from`](crate::evidence::Evidence::settled_from) counts as settled.
    pub counts_as_settled: bool,
}

/// The resources in the path of an exchange.
#[derive(Clone, Debug, Default)]
pub struct PathBinding<'a> {
    /// The resource type that the operation returns.
    pub shown_type: Option<&'a str>,
    /// The parents, outermost first: the resources of all segments, or of all but the last if that one names the resource.
    pub parents: Vec<Option<ResourceId>>,
    /// The resource itself, if the operation names one.
    pub resource: Option<ResourceId>,
    /// Whether a segment is an alternative name instead of a key.
    pub by_name: bool,
}

impl Observation<'_> {
    /// Whether it is a poll attempt; absence is not a violation there.
    pub fn is_attempt(&self) -> bool {
        self.poll == Poll::Attempt
    }

    pub fn representation<'c, 'a>(
        &self,
        context: &'c Context<'a>,
    ) -> Option<&'c Representation<'a>> {
        match self.shows {
            Appearance::Whole(index) | Appearance::Item(index) => {
                Some(&context.representations[index])
            }
            Appearance::NotFound => None,
        }
    }

    /// The value at `pointer`; `None` if it violates its own rule.
    pub fn value<'a>(&self, context: &Context<'a>, pointer: &str) -> Option<&'a Value> {
        self.representation(context)?.value(pointer)
    }
}

impl Moment {
    /// The moment of a payload without a time.
    pub const UNKNOWN: Self = Self {
        span: Span::UNKNOWN,
        event: usize::MAX,
        race: None,
        counts_as_settled: false,
    };

    /// Whether this one ended before the other began. Overlapping moments are unordered.
    pub fn is_before(&self, other: &Self) -> bool {
        let raced = self.race.zip(other.race);
        let raced = raced.and_then(|(one, other)| one.is_before(&other));
        raced.unwrap_or_else(|| self.event < other.event && self.span.is_before(&other.span))
    }

    /// The time from the end of an earlier moment to the beginning of this one.
    pub fn since(&self, earlier: &Self) -> SignedDuration {
        self.span.began.duration_since(earlier.span.ended)
    }

    /// Whether this one may have taken effect after the other: it is another event and had not ended when
    /// the other began.
    pub fn may_follow(&self, other: &Self) -> bool {
        self.event != other.event && !self.is_before(other)
    }

    /// Whether neither of two moments is before the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.may_follow(other) && other.may_follow(self)
    }

    /// Whether the consistency window after this moment ended before the other.
    pub fn is_settled(&self, until: &Self) -> bool {
        self.is_over(until, SETTLE)
    }

    /// Whether this moment and that time after it ended before the other.
    pub fn is_over(&self, until: &Self, lag: Duration) -> bool {
        let since = until.since(self);
        let has_settled = until.counts_as_settled && !self.counts_as_settled;
        self.is_before(until) && (has_settled || since.unsigned_abs() >= lag)
    }
}

impl PathBinding<'_> {
    /// The nearest parent.
    pub fn scope(&self) -> Option<ResourceId> {
        self.parents.last().copied().flatten()
    }
}
