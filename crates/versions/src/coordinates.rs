//! Coordinates of a change, and the table of what each change breaks.
//!
//! The coordinates are *what* changed, *how*, and the *direction* of the data. The table follows one principle: a
//! writer breaks when less is allowed, a reader when more may arrive. In a response or an event the producer writes
//! and the consumer reads, in a request the other way around. Where the rulebook tests refusals, a narrower request
//! also breaks a producer that still accepts the old one.

use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// Subject of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A field of an open object.
    Property,
    /// A field of an object that lists all its fields.
    ClosedProperty,
    /// Whether an object may have unlisted fields.
    OtherFields,
    /// Whether a field or parameter is required.
    Required,
    /// One value of an enumeration.
    EnumValue,
    /// Presence of an enumeration.
    Enumeration,
    /// Allowed JSON types.
    Type,
    /// A bound on size, length or number.
    Bound,
    /// Format of a text: pattern, format, encoding.
    Form,
    /// A condition that combines schemas.
    Shape,
    /// Default value.
    Default,
    /// Title, description or summary.
    Words,
    /// A representation.
    Representation,
    /// An operation.
    Operation,
    /// Method and path of an operation.
    Address,
    /// A version in a path: `/v2`.
    PathVersion,
    /// A parameter of an operation.
    Parameter,
    /// Field of the response that returns a parameter.
    Echo,
    /// Whether an operation needs credentials.
    Credentials,
    /// A media type of a body.
    Encoding,
    /// The representation of a response.
    Answer,
    /// The key of the list in a page.
    ListKey,
    /// A schema version of an event: `MessageSent/4`.
    EventVersion,
    /// A released schema version, which must not change.
    ReleasedVersion,
    /// A subscription event type.
    EventType,
    /// The schema version of an event type's payload.
    EventSchema,
    /// A written rule.
    Rule,
    /// A written rule about a former unspecified behavior.
    RuleOnOpenPoint,
    /// A limit in a written rule.
    RuleLimit,
    /// The level of a rule.
    Level,
    /// An unspecified behavior.
    OpenPoint,
    /// A scenario.
    Scenario,
    /// A sentence or table row with rules.
    Statement,
    /// A sentence or table row that leaves behavior unspecified.
    OpenStatement,
    /// A sentence or table row without a rule.
    Narrative,
}

/// Type of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    Added,
    Removed,
    /// Less is allowed, or more is required.
    Narrowed,
    /// More is allowed, or less is required.
    Widened,
    /// Different, and neither narrower nor wider.
    Changed,
}

/// Direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the consumer to the producer.
    Request,
    /// From the producer to the consumer: responses, events, callbacks.
    Response,
    /// Neither: a statement about behavior, or a text.
    Neither,
}

/// Effect of a change on implementations that were correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A correct consumer may break.
    BreakingForConsumers,
    /// A correct producer may break.
    BreakingForProducers,
    /// Something is added; correct implementations stay correct.
    Additive,
    /// No requirement changes.
    Clarified,
    /// Formerly unspecified, now stated.
    WasOpenNowStated,
}

/// The coordinates of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Coordinates {
    pub what: What,
    pub action: Action,
    pub direction: Direction,
}

/// A row of the table: what a change breaks, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub at: Coordinates,
    /// Why a consumer breaks.
    pub consumers: Option<String>,
    /// Why a producer breaks.
    pub producers: Option<String>,
    /// The class if nothing breaks, with the reason.
    pub harmless: Option<(Class, String)>,
}

/// What each possible change breaks.
pub static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("effects.json")).expect("a table of this build")
});

impl What {
    /// Spelling in an id.
    pub fn word(self) -> &'static str {
        match self {
            Self::Property | Self::ClosedProperty => "property",
            Self::OtherFields => "other-fields",
            Self::Required => "required",
            Self::EnumValue => "enum-value",
            Self::Enumeration => "enumeration",
            Self::Type => "type",
            Self::Bound => "bound",
            Self::Form => "form",
            Self::Shape => "shape",
            Self::Default => "default",
            Self::Words => "words",
            Self::Representation => "representation",
            Self::Operation => "operation",
            Self::Address => "address",
            Self::PathVersion => "path-version",
            Self::Parameter => "parameter",
            Self::Echo => "echo",
            Self::Credentials => "credentials",
            Self::Encoding => "encoding",
            Self::Answer => "answer",
            Self::ListKey => "list-key",
            Self::EventVersion => "event-version",
            Self::ReleasedVersion => "released-version",
            Self::EventType => "event-type",
            Self::EventSchema => "event-schema",
            Self::Rule | Self::RuleOnOpenPoint | Self::RuleLimit => "rule",
            Self::Level => "level",
            Self::OpenPoint => "open-point",
            Self::Scenario => "scenario",
            Self::Statement | Self::OpenStatement | Self::Narrative => "statement",
        }
    }
}

impl Action {
    /// Whether something appears or disappears.
    pub(super) fn appears(is_there: bool) -> Self {
        if is_there { Self::Added } else { Self::Removed }
    }

    /// How a part changes; `None` if it stays.
    pub(super) fn of<T: PartialEq>(old: Option<&T>, new: Option<&T>) -> Option<Self> {
        match (old, new) {
            (a, b) if a == b => None,
            (Some(_), Some(_)) => Some(Self::Changed),
            (_, new) => Some(Self::appears(new.is_some())),
        }
    }

    /// Spelling in an id.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Narrowed => "narrowed",
            Self::Widened => "widened",
            Self::Changed => "changed",
        }
    }
}

impl Class {
    /// Worst first.
    pub const ALL: [Self; 5] = [
        Self::BreakingForConsumers,
        Self::BreakingForProducers,
        Self::WasOpenNowStated,
        Self::Additive,
        Self::Clarified,
    ];

    /// Text for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::BreakingForConsumers => "breaking for consumers",
            Self::BreakingForProducers => "breaking for producers",
            Self::Additive => "additive",
            Self::Clarified => "clarified",
            Self::WasOpenNowStated => "was open, now stated",
        }
    }

    /// Whether a correct implementation may break.
    pub fn is_breaking(self) -> bool {
        match self {
            Self::BreakingForConsumers | Self::BreakingForProducers => true,
            Self::Additive | Self::Clarified | Self::WasOpenNowStated => false,
        }
    }
}

impl Coordinates {
    /// The row of a possible change.
    pub(super) fn row(self) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.at == self)
    }
}
