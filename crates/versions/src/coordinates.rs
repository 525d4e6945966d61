//! Coordinates of a change, and the table of what each change breaks.
//!
//! The coordinates are *what* changed, *how*, and the *direction* of the data. The table follows one principle: a
//! writer breaks when less is allowed, a reader when more may arrive. In a response or an event the producer writes
//! and the consumer reads, in a request the other way around. Where the rulebook tests refusals, a narrower request
//! also breaks a producer that still accepts the old one.

use serde::Serialize;

/// Subject of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Coordinates {
    pub what: What,
    pub action: Action,
    pub direction: Direction,
}

/// A row of the table: what a change breaks, and why.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    at: Coordinates,
    /// Why a consumer breaks.
    pub(super) consumers: Option<&'static str>,
    /// Why a producer breaks.
    pub(super) producers: Option<&'static str>,
    /// The class if nothing breaks.
    pub(super) harmless: Class,
    /// Why nothing breaks.
    pub(super) why: &'static str,
}

impl What {
    pub const ALL: [Self; 35] = [
        Self::Property,
        Self::ClosedProperty,
        Self::OtherFields,
        Self::Required,
        Self::EnumValue,
        Self::Enumeration,
        Self::Type,
        Self::Bound,
        Self::Form,
        Self::Shape,
        Self::Default,
        Self::Words,
        Self::Representation,
        Self::Operation,
        Self::Address,
        Self::PathVersion,
        Self::Parameter,
        Self::Echo,
        Self::Credentials,
        Self::Encoding,
        Self::Answer,
        Self::ListKey,
        Self::EventVersion,
        Self::ReleasedVersion,
        Self::EventType,
        Self::EventSchema,
        Self::Rule,
        Self::RuleOnOpenPoint,
        Self::RuleLimit,
        Self::Level,
        Self::OpenPoint,
        Self::Scenario,
        Self::Statement,
        Self::OpenStatement,
        Self::Narrative,
    ];

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

    /// Possible types of change; others have no row.
    #[cfg(test)]
    fn actions(self) -> &'static [Action] {
        use Action::{Added, Changed, Narrowed, Removed, Widened};
        match self {
            Self::Property
            | Self::ClosedProperty
            | Self::Required
            | Self::EnumValue
            | Self::Representation
            | Self::Operation
            | Self::Parameter
            | Self::Credentials
            | Self::Encoding
            | Self::EventVersion
            | Self::EventType => &[Added, Removed],
            Self::OtherFields | Self::Enumeration | Self::RuleLimit | Self::Level => {
                &[Narrowed, Widened]
            }
            Self::Type | Self::Bound | Self::Form | Self::Shape => &[Narrowed, Widened, Changed],
            Self::Default
            | Self::Echo
            | Self::Answer
            | Self::PathVersion
            | Self::EventSchema
            | Self::Rule
            | Self::OpenPoint
            | Self::Scenario
            | Self::Statement
            | Self::OpenStatement
            | Self::Narrative => &[Added, Removed, Changed],
            Self::Words | Self::Address | Self::ListKey | Self::ReleasedVersion => &[Changed],
            Self::RuleOnOpenPoint => &[Added],
        }
    }

    /// Possible directions.
    #[cfg(test)]
    fn directions(self) -> &'static [Direction] {
        use Direction::{Neither, Request, Response};
        match self {
            Self::Property
            | Self::ClosedProperty
            | Self::OtherFields
            | Self::Required
            | Self::EnumValue
            | Self::Enumeration
            | Self::Type
            | Self::Bound
            | Self::Form
            | Self::Shape
            | Self::Default
            | Self::RuleLimit
            | Self::Representation => &[Request, Response],
            Self::Operation
            | Self::Address
            | Self::PathVersion
            | Self::Parameter
            | Self::Echo
            | Self::Credentials
            | Self::Encoding => &[Request],
            Self::Answer
            | Self::ListKey
            | Self::EventVersion
            | Self::ReleasedVersion
            | Self::EventType
            | Self::EventSchema => &[Response],
            Self::Rule
            | Self::RuleOnOpenPoint
            | Self::Level
            | Self::OpenPoint
            | Self::Scenario
            | Self::Statement
            | Self::OpenStatement
            | Self::Narrative => &[Neither],
            Self::Words => &[Request, Response, Neither],
        }
    }
}

impl Action {
    pub const ALL: [Self; 5] = [
        Self::Added,
        Self::Removed,
        Self::Narrowed,
        Self::Widened,
        Self::Changed,
    ];

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

impl Direction {
    pub const ALL: [Self; 3] = [Self::Request, Self::Response, Self::Neither];
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

const fn at(what: What, action: Action, direction: Direction) -> Row {
    let at = Coordinates {
        what,
        action,
        direction,
    };
    Row {
        at,
        consumers: None,
        producers: None,
        harmless: Class::Clarified,
        why: "",
    }
}

impl Row {
    /// Its coordinates.
    #[cfg(test)]
    pub(super) fn at(&self) -> Coordinates {
        self.at
    }

    const fn consumers(self, why: &'static str) -> Self {
        Self {
            consumers: Some(why),
            ..self
        }
    }

    const fn producers(self, why: &'static str) -> Self {
        Self {
            producers: Some(why),
            ..self
        }
    }

    const fn harmless(self, harmless: Class, why: &'static str) -> Self {
        Self {
            harmless,
            why,
            ..self
        }
    }
}

const UNORDERED: &str =
    "neither wider nor narrower than before, so that valid data may become invalid";
const MORE_TO_READ: &str = "they may receive data that was excluded before";
const LESS_TO_WRITE: &str = "they may write data that is no longer valid";
const MORE_TO_TAKE: &str = "they must accept what they could refuse before";
const MORE_TO_REFUSE: &str = "they accept what must be refused now";
const GONE: &str = "data that they read was removed";
const TEXT: &str = "only the wording differs";
const OFFER: &str = "valid data stays valid";
const EVIDENCE: &str = "a scenario produces evidence and states no requirement";

/// What each possible change breaks. A test checks that no other change has a row.
pub(super) const TABLE: &[Row] = {
    use Action::{Added, Changed, Narrowed, Removed, Widened};
    use Class::{Additive, Clarified, WasOpenNowStated};
    use Direction::{Neither, Request, Response};
    &[
        at(What::Property, Added, Response).harmless(
            Additive,
            "unlisted fields are allowed, so readers ignore it",
        ),
        at(What::Property, Removed, Response).consumers(GONE),
        at(What::Property, Added, Request).harmless(Additive, OFFER),
        at(What::Property, Removed, Request).consumers("data that they write is no longer read"),
        at(What::ClosedProperty, Added, Response).consumers(
            "unlisted fields are not allowed, so validators with the old list reject the new field",
        ),
        at(What::ClosedProperty, Removed, Response)
            .consumers(GONE)
            .producers("unlisted fields are not allowed, so writing the field is now invalid"),
        at(What::ClosedProperty, Added, Request).producers(
            "unlisted fields are not allowed, so validators with the old list reject the new field",
        ),
        at(What::ClosedProperty, Removed, Request)
            .consumers("unlisted fields are not allowed, so writing the field is now invalid"),
        at(What::OtherFields, Narrowed, Response)
            .producers("unlisted fields were allowed and are now invalid"),
        at(What::OtherFields, Widened, Response)
            .consumers("unlisted fields may arrive, which were excluded before"),
        at(What::OtherFields, Narrowed, Request)
            .consumers("unlisted fields were allowed and are now invalid"),
        at(What::OtherFields, Widened, Request)
            .producers("unlisted fields may arrive, which were excluded before"),
        at(What::Required, Added, Response).producers("they may leave out what is now required"),
        at(What::Required, Removed, Response)
            .consumers("a field that was always present may be missing"),
        at(What::Required, Added, Request)
            .consumers("a request without it is refused now")
            .producers(MORE_TO_REFUSE),
        at(What::Required, Removed, Request).producers(MORE_TO_TAKE),
        at(What::EnumValue, Added, Response).consumers(MORE_TO_READ),
        at(What::EnumValue, Removed, Response).producers(LESS_TO_WRITE),
        at(What::EnumValue, Added, Request).producers(MORE_TO_TAKE),
        at(What::EnumValue, Removed, Request)
            .consumers(LESS_TO_WRITE)
            .producers(MORE_TO_REFUSE),
        at(What::Enumeration, Narrowed, Response).producers(LESS_TO_WRITE),
        at(What::Enumeration, Widened, Response).consumers(MORE_TO_READ),
        at(What::Enumeration, Narrowed, Request)
            .consumers(LESS_TO_WRITE)
            .producers(MORE_TO_REFUSE),
        at(What::Enumeration, Widened, Request).producers(MORE_TO_TAKE),
        at(What::Type, Narrowed, Response).producers(LESS_TO_WRITE),
        at(What::Type, Widened, Response).consumers(MORE_TO_READ),
        at(What::Type, Changed, Response)
            .consumers(UNORDERED)
            .producers(UNORDERED),
        at(What::Type, Narrowed, Request).consumers(LESS_TO_WRITE),
        at(What::Type, Widened, Request).producers(MORE_TO_TAKE),
        at(What::Type, Changed, Request)
            .consumers(UNORDERED)
            .producers(UNORDERED),
        at(What::Bound, Narrowed, Response).producers(LESS_TO_WRITE),
        at(What::Bound, Widened, Response).consumers(MORE_TO_READ),
        at(What::Bound, Changed, Response)
            .consumers(UNORDERED)
            .producers(UNORDERED),
        at(What::Bound, Narrowed, Request)
            .consumers(LESS_TO_WRITE)
            .producers("they still accept values beyond the new bound"),
        at(What::Bound, Widened, Request).producers(MORE_TO_TAKE),
        at(What::Bound, Changed, Request)
            .consumers(UNORDERED)
            .producers(UNORDERED),
        at(What::Form, Narrowed, Response).producers(LESS_TO_WRITE),
        at(What::Form, Widened, Response).consumers(MORE_TO_READ),
        at(What::Form, Changed, Response)
            .consumers(UNORDERED)
            .producers(UNORDERED),
        at(What::Form, Narrowed, Request).consumers(LESS_TO_WRITE),
        at(What::Form, Widened, Request).producers(MORE_TO_TAKE),
        at(What::Form, Changed, Request)
            .consumers(UNORDERED)
            .producers(UNORDERED),
        at(What::Shape, Narrowed, Response).producers(LESS_TO_WRITE),
        at(What::Shape, Widened, Response).consumers(MORE_TO_READ),
        at(What::Shape, Changed, Response)
            .consumers(UNORDERED)
            .producers(UNORDERED),
        at(What::Shape, Narrowed, Request).consumers(LESS_TO_WRITE),
        at(What::Shape, Widened, Request).producers(MORE_TO_TAKE),
        at(What::Shape, Changed, Request)
            .consumers(UNORDERED)
            .producers(UNORDERED),
        at(What::Default, Added, Response).harmless(Clarified, TEXT),
        at(What::Default, Removed, Response).harmless(Clarified, TEXT),
        at(What::Default, Changed, Response).harmless(Clarified, TEXT),
        at(What::Default, Added, Request)
            .harmless(WasOpenNowStated, "the default was not stated before"),
        at(What::Default, Removed, Request)
            .consumers("the default that they relied on is no longer stated"),
        at(What::Default, Changed, Request)
            .consumers("omitting the value now has another meaning")
            .producers("they use the old default"),
        at(What::Words, Changed, Request).harmless(Clarified, TEXT),
        at(What::Words, Changed, Response).harmless(Clarified, TEXT),
        at(What::Words, Changed, Neither).harmless(Clarified, TEXT),
        at(What::Representation, Added, Response).harmless(Additive, OFFER),
        at(What::Representation, Removed, Response).consumers(GONE),
        at(What::Representation, Added, Request).harmless(Additive, OFFER),
        at(What::Representation, Removed, Request)
            .consumers("data that they write is no longer described"),
        at(What::Operation, Added, Request).harmless(Additive, OFFER),
        at(What::Operation, Removed, Request).consumers("an operation that they call was removed"),
        at(What::Address, Changed, Request)
            .consumers("they call the old address")
            .producers("they respond at the old address"),
        at(What::PathVersion, Added, Request).harmless(Additive, OFFER),
        at(What::PathVersion, Removed, Request).consumers("operations that they call were removed"),
        at(What::PathVersion, Changed, Request)
            .consumers("they call under the old version")
            .producers("they respond under the old version"),
        at(What::Parameter, Added, Request).harmless(Additive, OFFER),
        at(What::Parameter, Removed, Request)
            .consumers("a parameter that they send no longer has an effect"),
        at(What::Echo, Added, Request).producers("the response must now return what was sent"),
        at(What::Echo, Removed, Request).consumers("the response need not return what they sent"),
        at(What::Echo, Changed, Request)
            .consumers("the response returns what they sent at another place or in another form")
            .producers(
                "the response must return what was sent at another place or in another form",
            ),
        at(What::Credentials, Added, Request)
            .consumers("a request without credentials is refused now")
            .producers(MORE_TO_REFUSE),
        at(What::Credentials, Removed, Request).producers(MORE_TO_TAKE),
        at(What::Encoding, Added, Request).producers(MORE_TO_TAKE),
        at(What::Encoding, Removed, Request).consumers(LESS_TO_WRITE),
        at(What::Answer, Added, Response).harmless(
            WasOpenNowStated,
            "the content of the response was not described before",
        ),
        at(What::Answer, Removed, Response).consumers(GONE),
        at(What::Answer, Changed, Response)
            .consumers(UNORDERED)
            .producers(UNORDERED),
        at(What::ListKey, Changed, Response)
            .consumers("they read the list under its old name")
            .producers("they write the list under its old name"),
        at(What::EventVersion, Added, Response).harmless(
            Additive,
            "the older versions stay valid for their own number",
        ),
        at(What::EventVersion, Removed, Response)
            .consumers("payloads of that version, fixtures included, can no longer be judged"),
        at(What::ReleasedVersion, Changed, Response)
            .consumers("a released version now has another meaning")
            .producers("a released version now has another meaning"),
        at(What::EventType, Added, Response).harmless(Additive, OFFER),
        at(What::EventType, Removed, Response)
            .consumers("events that they subscribed to no longer arrive"),
        at(What::EventSchema, Added, Response).harmless(
            WasOpenNowStated,
            "the schema of the payload was not stated before",
        ),
        at(What::EventSchema, Removed, Response)
            .consumers("the content of the payload is no longer described"),
        at(What::EventSchema, Changed, Response)
            .producers("they write the old version; see the changes of its fields for consumers"),
        at(What::Rule, Added, Neither).producers("there is one more requirement"),
        at(What::Rule, Removed, Neither).consumers("they may rely on what is no longer stated"),
        at(What::Rule, Changed, Neither)
            .consumers(UNORDERED)
            .producers(UNORDERED),
        at(What::RuleOnOpenPoint, Added, Neither).harmless(
            WasOpenNowStated,
            "an unspecified behavior of the same lines was removed",
        ),
        at(What::RuleLimit, Narrowed, Response).producers("they may go beyond the new limit"),
        at(What::RuleLimit, Widened, Response)
            .consumers("they may receive what was beyond the old limit"),
        at(What::RuleLimit, Narrowed, Request)
            .consumers("what they send may be beyond the new limit")
            .producers("they still accept what is beyond the new limit"),
        at(What::RuleLimit, Widened, Request).producers(MORE_TO_TAKE),
        at(What::Level, Narrowed, Neither).producers("a recommendation is now a requirement"),
        at(What::Level, Widened, Neither)
            .consumers("a requirement that they rely on is now a recommendation")
            .producers("what they must do is now a recommendation"),
        at(What::OpenPoint, Added, Neither).harmless(Clarified, "no requirement changes"),
        at(What::OpenPoint, Removed, Neither)
            .harmless(WasOpenNowStated, "it is no longer unspecified"),
        at(What::OpenPoint, Changed, Neither).harmless(Clarified, "no requirement changes"),
        at(What::Scenario, Added, Neither).harmless(Clarified, EVIDENCE),
        at(What::Scenario, Removed, Neither).harmless(Clarified, EVIDENCE),
        at(What::Scenario, Changed, Neither).harmless(Clarified, EVIDENCE),
        at(What::Statement, Added, Neither).harmless(Additive, "no rule cites it yet"),
        at(What::Statement, Removed, Neither).consumers("rules cite a sentence that was removed"),
        at(What::Statement, Changed, Neither)
            .consumers("rules cite the old sentence, and the new one was not reviewed")
            .producers("rules cite the old sentence, and the new one was not reviewed"),
        at(What::OpenStatement, Added, Neither).harmless(Clarified, "no requirement changes"),
        at(What::OpenStatement, Removed, Neither).harmless(
            WasOpenNowStated,
            "the sentence that left it unspecified was removed",
        ),
        at(What::OpenStatement, Changed, Neither).harmless(
            WasOpenNowStated,
            "the sentence that left it unspecified has changed",
        ),
        at(What::Narrative, Added, Neither).harmless(Additive, "no rule cites it yet"),
        at(What::Narrative, Removed, Neither).harmless(Clarified, "no rule cites it"),
        at(What::Narrative, Changed, Neither).harmless(Clarified, "no rule cites it"),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_possible_change_has_exactly_one_row_and_no_other_has_any() {
        for what in What::ALL {
            for action in Action::ALL {
                for direction in Direction::ALL {
                    let at = Coordinates {
                        what,
                        action,
                        direction,
                    };
                    let possible =
                        what.actions().contains(&action) && what.directions().contains(&direction);
                    let rows = TABLE.iter().filter(|row| row.at == at).count();
                    assert_eq!(rows, usize::from(possible), "{at:?}");
                }
            }
        }
    }

    #[test]
    fn every_row_has_a_reason() {
        for row in TABLE {
            let breaks = row.consumers.is_some() || row.producers.is_some();
            assert_eq!(row.why.is_empty(), breaks, "{:?}", row.at);
        }
    }

    /// The principle of the table, checked for narrower and wider changes.
    #[test]
    fn writers_break_by_less_and_readers_by_more() {
        use Action::{Narrowed, Widened};
        for row in TABLE {
            let Coordinates {
                what,
                action,
                direction,
            } = row.at;
            let (writer, reader) = match direction {
                Direction::Request => (row.consumers, row.producers),
                Direction::Response => (row.producers, row.consumers),
                Direction::Neither => continue,
            };
            match action {
                Narrowed => assert!(writer.is_some(), "{what:?} {direction:?}"),
                Widened => assert!(
                    reader.is_some() && writer.is_none(),
                    "{what:?} {direction:?}"
                ),
                Action::Added | Action::Removed | Action::Changed => {}
            }
        }
    }

    #[test]
    fn all_lists_every_one_once() {
        let mut seen = std::collections::BTreeSet::new();
        assert!(What::ALL.iter().all(|w| seen.insert(*w)));
        assert!(TABLE.iter().all(|row| seen.contains(&row.at.what)));
    }
}
