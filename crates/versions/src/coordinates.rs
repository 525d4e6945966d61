//! The coordinates of a change, and the one table that says whom such a change breaks.
//!
//! A change is *what* changed, *how*, and *which way* the data flows. The table rests on one
//! thought: whoever writes is broken when less may be written, whoever reads when more may come.
//! In a response or an event the producer writes and the consumer reads, in a request it is the
//! other way round; and where the rulebook probes refusals, a producer that still accepts is broken
//! by a narrower request too. Compares nothing itself.

use serde::Serialize;

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A field of an object that may hold others too.
    Property,
    /// A field of an object that lists all it may hold.
    ClosedProperty,
    /// Whether an object may hold fields that it does not list.
    OtherFields,
    /// That a field or parameter must be there.
    Required,
    /// One value of an enumeration.
    EnumValue,
    /// That values are enumerated at all.
    Enumeration,
    /// The JSON types that may stand there.
    Type,
    /// A bound on size, length or number.
    Bound,
    /// What a text looks like: pattern, format, encoding.
    Form,
    /// A condition that combines schemas.
    Shape,
    /// The value that stands where none was given.
    Default,
    /// Title, description or summary.
    Words,
    /// A representation.
    Representation,
    /// An operation.
    Operation,
    /// Method and path of an operation.
    Address,
    /// A version that is a path segment: `/v2`.
    PathVersion,
    /// A parameter of an operation.
    Parameter,
    /// Where and how a parameter comes back.
    Echo,
    /// That an operation needs credentials.
    Credentials,
    /// A media type that a body may have.
    Encoding,
    /// Which representation an answer brings.
    Answer,
    /// The name under which a page holds its list.
    ListKey,
    /// A schema version of an event: `MessageSent/4`.
    EventVersion,
    /// A schema version that was released and must never change.
    ReleasedVersion,
    /// A subscription event type.
    EventType,
    /// Which schema version an event type's payload has.
    EventSchema,
    /// A written rule.
    Rule,
    /// A written rule about what was an open point.
    RuleOnOpenPoint,
    /// How binding a rule is.
    Level,
    /// Something the documents leave open.
    OpenPoint,
    /// A scenario.
    Scenario,
    /// A sentence or table row of a document that carries rules.
    Statement,
    /// A sentence or table row that leaves something open.
    OpenStatement,
    /// A sentence or table row that carries no rule.
    Narrative,
}

/// How it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// Less is allowed, or more is demanded.
    Narrowed,
    /// More is allowed, or less is demanded.
    Widened,
    /// It is another, and neither narrower nor wider.
    Changed,
}

/// Which way the data flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the consumer to the producer.
    Request,
    /// From the producer to the consumer: answers, events, callbacks.
    Response,
    /// Neither: a statement about behaviour, or a text.
    Neither,
}

/// What a change means for those who were right until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A consumer that was right may be wrong now.
    BreakingForConsumers,
    /// A producer that was right may be wrong now.
    BreakingForProducers,
    /// Something more is offered, and what was right stays right.
    Additive,
    /// Nobody's duties change.
    Clarified,
    /// The documents left it open, and now say it.
    WasOpenNowStated,
}

/// The coordinates of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Coordinates {
    /// What changed.
    pub what: What,
    /// How.
    pub action: Action,
    /// Which way the data flows.
    pub direction: Direction,
}

/// Whom a kind of change breaks, and why.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    at: Coordinates,
    /// Why a consumer breaks.
    pub(super) consumers: Option<&'static str>,
    /// Why a producer breaks.
    pub(super) producers: Option<&'static str>,
    /// The class where nobody breaks.
    pub(super) harmless: Class,
    /// Why nobody breaks.
    pub(super) why: &'static str,
}

impl What {
    /// All of them.
    pub const ALL: [Self; 34] = [
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
        Self::Level,
        Self::OpenPoint,
        Self::Scenario,
        Self::Statement,
        Self::OpenStatement,
        Self::Narrative,
    ];

    /// As an id spells it.
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
            Self::Rule | Self::RuleOnOpenPoint => "rule",
            Self::Level => "level",
            Self::OpenPoint => "open-point",
            Self::Scenario => "scenario",
            Self::Statement | Self::OpenStatement | Self::Narrative => "statement",
        }
    }

    /// How it can change at all; everything else has no row.
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
            Self::OtherFields | Self::Enumeration | Self::Level => &[Narrowed, Widened],
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

    /// Which way its data can flow.
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
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Added,
        Self::Removed,
        Self::Narrowed,
        Self::Widened,
        Self::Changed,
    ];

    /// As an id spells it.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Request, Self::Response, Self::Neither];
}

impl Class {
    /// All of them, the worst first.
    pub const ALL: [Self; 5] = [
        Self::BreakingForConsumers,
        Self::BreakingForProducers,
        Self::WasOpenNowStated,
        Self::Additive,
        Self::Clarified,
    ];

    /// As a person reads it.
    pub fn words(self) -> &'static str {
        match self {
            Self::BreakingForConsumers => "breaking for consumers",
            Self::BreakingForProducers => "breaking for producers",
            Self::Additive => "additive",
            Self::Clarified => "clarified",
            Self::WasOpenNowStated => "was open, now stated",
        }
    }

    /// Whether somebody who was right may be wrong now.
    pub fn is_breaking(self) -> bool {
        match self {
            Self::BreakingForConsumers | Self::BreakingForProducers => true,
            Self::Additive | Self::Clarified | Self::WasOpenNowStated => false,
        }
    }
}

impl Coordinates {
    /// The row of the table, where such a change can be.
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
    "old and new are neither wider nor narrower, so what was right may be wrong";
const MORE_TO_READ: &str = "they may meet what they were told would never come";
const LESS_TO_WRITE: &str = "they may write what is no longer right";
const MORE_TO_TAKE: &str = "they have to take what they were free to refuse";
const MORE_TO_REFUSE: &str = "they take what has to be refused now";
const GONE: &str = "what they read is no longer there";
const TEXT: &str = "only the words differ";
const OFFER: &str = "nothing that was right becomes wrong";
const EVIDENCE: &str = "a scenario produces evidence and asks nothing of anybody";

/// Whom each kind of change breaks. What cannot happen has no row; a test holds both lists.
pub(super) const TABLE: &[Row] = {
    use Action::{Added, Changed, Narrowed, Removed, Widened};
    use Class::{Additive, Clarified, WasOpenNowStated};
    use Direction::{Neither, Request, Response};
    &[
        at(What::Property, Added, Response)
            .harmless(Additive, "the object may hold fields that are not listed, so readers pass over it"),
        at(What::Property, Removed, Response).consumers(GONE),
        at(What::Property, Added, Request).harmless(Additive, OFFER),
        at(What::Property, Removed, Request).consumers("what they write there is no longer read"),
        at(What::ClosedProperty, Added, Response).consumers(
            "the object lists all it may hold, so those who check by the old list refuse the new field",
        ),
        at(What::ClosedProperty, Removed, Response)
            .consumers(GONE)
            .producers("the object lists all it may hold, so those who still write the field are wrong"),
        at(What::ClosedProperty, Added, Request).producers(
            "the object lists all it may hold, so those who check by the old list refuse the new field",
        ),
        at(What::ClosedProperty, Removed, Request)
            .consumers("the object lists all it may hold, so what they still write there is wrong"),
        at(What::OtherFields, Narrowed, Response)
            .producers("fields beyond the list, free until now, are wrong"),
        at(What::OtherFields, Widened, Response)
            .consumers("fields may come that the closed list ruled out"),
        at(What::OtherFields, Narrowed, Request)
            .consumers("fields beyond the list, free until now, are wrong"),
        at(What::OtherFields, Widened, Request)
            .producers("fields may come that the closed list ruled out"),
        at(What::Required, Added, Response).producers("they may leave out what has to be there now"),
        at(What::Required, Removed, Response).consumers("what was always there may be missing"),
        at(What::Required, Added, Request)
            .consumers("a request without it is refused now")
            .producers(MORE_TO_REFUSE),
        at(What::Required, Removed, Request).producers(MORE_TO_TAKE),
        at(What::EnumValue, Added, Response).consumers(MORE_TO_READ),
        at(What::EnumValue, Removed, Response).producers(LESS_TO_WRITE),
        at(What::EnumValue, Added, Request).producers(MORE_TO_TAKE),
        at(What::EnumValue, Removed, Request).consumers(LESS_TO_WRITE).producers(MORE_TO_REFUSE),
        at(What::Enumeration, Narrowed, Response).producers(LESS_TO_WRITE),
        at(What::Enumeration, Widened, Response).consumers(MORE_TO_READ),
        at(What::Enumeration, Narrowed, Request).consumers(LESS_TO_WRITE).producers(MORE_TO_REFUSE),
        at(What::Enumeration, Widened, Request).producers(MORE_TO_TAKE),
        at(What::Type, Narrowed, Response).producers(LESS_TO_WRITE),
        at(What::Type, Widened, Response).consumers(MORE_TO_READ),
        at(What::Type, Changed, Response).consumers(UNORDERED).producers(UNORDERED),
        at(What::Type, Narrowed, Request).consumers(LESS_TO_WRITE),
        at(What::Type, Widened, Request).producers(MORE_TO_TAKE),
        at(What::Type, Changed, Request).consumers(UNORDERED).producers(UNORDERED),
        at(What::Bound, Narrowed, Response).producers(LESS_TO_WRITE),
        at(What::Bound, Widened, Response).consumers(MORE_TO_READ),
        at(What::Bound, Changed, Response).consumers(UNORDERED).producers(UNORDERED),
        at(What::Bound, Narrowed, Request)
            .consumers(LESS_TO_WRITE)
            .producers("they honour in full what lies beyond the bound now"),
        at(What::Bound, Widened, Request).producers(MORE_TO_TAKE),
        at(What::Bound, Changed, Request).consumers(UNORDERED).producers(UNORDERED),
        at(What::Form, Narrowed, Response).producers(LESS_TO_WRITE),
        at(What::Form, Widened, Response).consumers(MORE_TO_READ),
        at(What::Form, Changed, Response).consumers(UNORDERED).producers(UNORDERED),
        at(What::Form, Narrowed, Request).consumers(LESS_TO_WRITE),
        at(What::Form, Widened, Request).producers(MORE_TO_TAKE),
        at(What::Form, Changed, Request).consumers(UNORDERED).producers(UNORDERED),
        at(What::Shape, Narrowed, Response).producers(LESS_TO_WRITE),
        at(What::Shape, Widened, Response).consumers(MORE_TO_READ),
        at(What::Shape, Changed, Response).consumers(UNORDERED).producers(UNORDERED),
        at(What::Shape, Narrowed, Request).consumers(LESS_TO_WRITE),
        at(What::Shape, Widened, Request).producers(MORE_TO_TAKE),
        at(What::Shape, Changed, Request).consumers(UNORDERED).producers(UNORDERED),
        at(What::Default, Added, Response).harmless(Clarified, TEXT),
        at(What::Default, Removed, Response).harmless(Clarified, TEXT),
        at(What::Default, Changed, Response).harmless(Clarified, TEXT),
        at(What::Default, Added, Request)
            .harmless(WasOpenNowStated, "which value stands when none is sent was not stated"),
        at(What::Default, Removed, Request)
            .consumers("the value that they relied on by sending none is no longer stated"),
        at(What::Default, Changed, Request)
            .consumers("sending none means another value now")
            .producers("they put the old value where none is sent"),
        at(What::Words, Changed, Request).harmless(Clarified, TEXT),
        at(What::Words, Changed, Response).harmless(Clarified, TEXT),
        at(What::Words, Changed, Neither).harmless(Clarified, TEXT),
        at(What::Representation, Added, Response).harmless(Additive, OFFER),
        at(What::Representation, Removed, Response).consumers(GONE),
        at(What::Representation, Added, Request).harmless(Additive, OFFER),
        at(What::Representation, Removed, Request).consumers("what they write is no longer described"),
        at(What::Operation, Added, Request).harmless(Additive, OFFER),
        at(What::Operation, Removed, Request).consumers("what they call is no longer there"),
        at(What::Address, Changed, Request)
            .consumers("they call the old address")
            .producers("they answer at the old address"),
        at(What::PathVersion, Added, Request).harmless(Additive, OFFER),
        at(What::PathVersion, Removed, Request).consumers("what they call is no longer there"),
        at(What::PathVersion, Changed, Request)
            .consumers("they call under the old version")
            .producers("they answer under the old version"),
        at(What::Parameter, Added, Request).harmless(Additive, OFFER),
        at(What::Parameter, Removed, Request).consumers("what they send no longer has an effect"),
        at(What::Echo, Added, Request).producers("what was sent has to come back now"),
        at(What::Echo, Removed, Request).consumers("what they sent need not come back"),
        at(What::Echo, Changed, Request)
            .consumers("what they sent comes back elsewhere or otherwise")
            .producers("what was sent has to come back elsewhere or otherwise"),
        at(What::Credentials, Added, Request)
            .consumers("a request without credentials is refused now")
            .producers(MORE_TO_REFUSE),
        at(What::Credentials, Removed, Request).producers(MORE_TO_TAKE),
        at(What::Encoding, Added, Request).producers(MORE_TO_TAKE),
        at(What::Encoding, Removed, Request).consumers(LESS_TO_WRITE),
        at(What::Answer, Added, Response)
            .harmless(WasOpenNowStated, "what the answer holds was not described"),
        at(What::Answer, Removed, Response).consumers(GONE),
        at(What::Answer, Changed, Response).consumers(UNORDERED).producers(UNORDERED),
        at(What::ListKey, Changed, Response)
            .consumers("they read the list under its old name")
            .producers("they write the list under its old name"),
        at(What::EventVersion, Added, Response)
            .harmless(Additive, "the older versions stay valid for their own number"),
        at(What::EventVersion, Removed, Response)
            .consumers("payloads of that version, fixtures included, can no longer be judged"),
        at(What::ReleasedVersion, Changed, Response)
            .consumers("a version that was released means something else now")
            .producers("a version that was released means something else now"),
        at(What::EventType, Added, Response).harmless(Additive, OFFER),
        at(What::EventType, Removed, Response).consumers("what they subscribed to no longer comes"),
        at(What::EventSchema, Added, Response)
            .harmless(WasOpenNowStated, "which schema the payload has was not shown"),
        at(What::EventSchema, Removed, Response).consumers("what the payload holds is no longer said"),
        at(What::EventSchema, Changed, Response)
            .producers("they write the old version; what consumers meet is listed field by field"),
        at(What::Rule, Added, Neither).producers("more is asked of them"),
        at(What::Rule, Removed, Neither).consumers("they may rely on what is no longer said"),
        at(What::Rule, Changed, Neither).consumers(UNORDERED).producers(UNORDERED),
        at(What::RuleOnOpenPoint, Added, Neither)
            .harmless(WasOpenNowStated, "an open point about the same lines is gone"),
        at(What::Level, Narrowed, Neither).producers("what was advice is a duty now"),
        at(What::Level, Widened, Neither).consumers("what they relied on is no duty any more"),
        at(What::OpenPoint, Added, Neither).harmless(Clarified, "nothing is asked of anybody"),
        at(What::OpenPoint, Removed, Neither).harmless(WasOpenNowStated, "it is no longer left open"),
        at(What::OpenPoint, Changed, Neither).harmless(Clarified, "nothing is asked of anybody"),
        at(What::Scenario, Added, Neither).harmless(Clarified, EVIDENCE),
        at(What::Scenario, Removed, Neither).harmless(Clarified, EVIDENCE),
        at(What::Scenario, Changed, Neither).harmless(Clarified, EVIDENCE),
        at(What::Statement, Added, Neither).harmless(Additive, "no rule rests on it yet"),
        at(What::Statement, Removed, Neither).consumers("rules rest on a sentence that is gone"),
        at(What::Statement, Changed, Neither)
            .consumers("rules rest on the old sentence, and nobody has read the new one")
            .producers("rules rest on the old sentence, and nobody has read the new one"),
        at(What::OpenStatement, Added, Neither).harmless(Clarified, "nothing is asked of anybody"),
        at(What::OpenStatement, Removed, Neither)
            .harmless(WasOpenNowStated, "the sentence that left it open is gone"),
        at(What::OpenStatement, Changed, Neither)
            .harmless(WasOpenNowStated, "the sentence that left it open says something else"),
        at(What::Narrative, Added, Neither).harmless(Additive, "no rule rests on it yet"),
        at(What::Narrative, Removed, Neither).harmless(Clarified, "no rule rests on it"),
        at(What::Narrative, Changed, Neither).harmless(Clarified, "no rule rests on it"),
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
    fn every_row_says_why() {
        for row in TABLE {
            let breaks = row.consumers.is_some() || row.producers.is_some();
            assert_eq!(row.why.is_empty(), breaks, "{:?}", row.at);
        }
    }

    /// The thought that the table rests on, for what is plainly narrower or wider.
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
