//! `rules/<topic>.yaml`: rules about one exchange, a history of exchanges, or a story.
//!
//! Only the shape of the data; what a predicate means is in `judge`, one file each.

use crate::source::Document;
use crate::verdict::{Basis, Level};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One file of rules.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleFile {
    /// The rules, in the document's order.
    pub rules: Vec<Rule>,
}

/// A source as written: the document may be left out where the folder has one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceRef {
    /// Defaults to the folder's document: auth and events D1, chat and media D2, flow D3.
    pub document: Option<Document>,
    /// The heading the lines stand under, as the document spells it.
    pub section: String,
    /// Line numbers, counted from 1.
    pub lines: Vec<u32>,
}

/// One written rule.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Kebab-case path that names what is ruled: `flow/executions/most-recent-first`.
    pub id: String,
    /// How binding it is.
    #[serde(default = "must")]
    pub level: Level,
    /// What it rests on.
    #[serde(default = "stated")]
    pub basis: Basis,
    /// Where the document says it.
    pub source: SourceRef,
    /// One line in our own words.
    pub says: String,
    /// The predicate with its parameters.
    pub check: Check,
}

fn must() -> Level {
    Level::Must
}

fn stated() -> Basis {
    Basis::Stated
}

/// A predicate with its parameters. `at` and its like are JSON Pointers into the response body; a
/// segment `*` stands for every array item or every member.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
pub enum Check {
    /// Story: only scenario steps that name this rule (`expect`, `accepted`, `rejected`) judge it.
    Story {},
    /// Payload: the value at `at` in every representation of `kind` fits a JSON Schema. Where
    /// nothing is at `at`, nothing is judged.
    Conforms {
        /// The representation: `flow/execution`; list items and callbacks included.
        kind: String,
        /// Where; empty for the whole.
        #[serde(default)]
        at: String,
        /// JSON Schema 2020-12; may `$ref` common definitions as `common.yaml#/$defs/NAME`.
        schema: Value,
    },
    /// Payload: the value at `at` is the one in the service's configuration, compared as text; not
    /// judged where the configuration has none.
    Configured {
        /// The representation.
        kind: String,
        /// Where.
        at: String,
        /// Key below the service's target: `application.name`.
        key: String,
    },
    /// Payload: the time at `at`, in seconds since 1970, lies at most so long after another one.
    AtMostAfter {
        /// The representation.
        kind: String,
        /// The later time; now, when left out.
        at: Option<String>,
        /// The earlier time; now, when left out. One of the two is given.
        after: Option<String>,
        /// How long.
        seconds: u64,
    },
    /// Payload: `field` is present exactly when the value at `when` is one of `is`.
    PresentOnlyWhen {
        /// The representation.
        kind: String,
        /// The field that comes and goes.
        field: String,
        /// The field that decides.
        when: String,
        /// Values under which `field` is present.
        is: Vec<Value>,
        /// True when its absence under those values is no failure.
        #[serde(default)]
        may_be_absent: bool,
    },
    /// Exchange: a sent parameter comes back. Derived from `x-echo`; write it only for what that
    /// cannot say.
    Echoes {
        /// Operation ids without the service.
        operations: Vec<String>,
        /// Parameter as the document spells it.
        parameter: String,
        /// Where it comes back.
        at: String,
        /// How the two are compared.
        #[serde(default, rename = "as")]
        compare: Comparison,
        /// Further values that may stand there instead.
        #[serde(default)]
        or: Vec<Value>,
    },
    /// Exchange: when the parameter is left out, this value stands there.
    Default {
        /// Operation ids without the service.
        operations: Vec<String>,
        /// Parameter as the document spells it.
        parameter: String,
        /// Where to look.
        at: String,
        /// The stated default.
        value: Value,
    },
    /// Exchange: the values at `at` stand in that order; equal neighbours are free.
    OrderedBy {
        /// Operation id of the list.
        operation: String,
        /// For example `/executions/*/date_created`.
        at: String,
        /// Which way.
        direction: Direction,
    },
    /// Exchange: when the query parameter is sent, each listed item fits it.
    FilteredBy {
        /// Operation id of the list.
        operation: String,
        /// Query parameter as the document spells it.
        parameter: String,
        /// The items' values: `/executions/*/date_created`.
        at: String,
        /// How they must relate to what was sent.
        keeps: Keeps,
    },
    /// Exchange: the array at `at` holds at most that many items.
    Bounded {
        /// Operation ids without the service.
        operations: Vec<String>,
        /// The array.
        at: String,
        /// The bound.
        at_most: u64,
    },
    /// Exchange: the body of an accepted answer is written in the format that this path parameter
    /// names, `json` or `xml`.
    InFormat {
        /// Path parameter as the document spells it: `FORMAT`.
        parameter: String,
    },
    /// Exchange and payload: JSON of the service has no byte order mark and names no member twice.
    PlainJson {},
    /// Exchange: the array at `at` holds no more items than the number at `size` in the same answer.
    NoLongerThan {
        /// Operation ids without the service.
        operations: Vec<String>,
        /// The array.
        at: String,
        /// The number: `/meta/page_size`.
        size: String,
    },
    /// History: within one run of a scenario, representations of the same thing (same `key`) agree
    /// in these fields, whichever operation they came from.
    SameResource {
        /// The representation.
        kind: String,
        /// What identifies the thing: `/sid`.
        key: String,
        /// Fields that never change.
        fields: Vec<String>,
    },
    /// History: two things (different `key`) never share this value within the same scope.
    UniqueWithin {
        /// The representation.
        kind: String,
        /// What identifies the thing: `/sid`.
        key: String,
        /// The value that must differ; null is never a clash.
        at: String,
        /// Fields that make up the scope: `[/service_sid]`; empty for everywhere.
        scope: Vec<String>,
    },
    /// History: in order of creation, this number grows within each scope; gaps are free.
    IncreasingWithin {
        /// The operation that creates the things.
        operation: String,
        /// The number.
        at: String,
        /// Fields that make up the scope: `[/channel_sid]`.
        scope: Vec<String>,
    },
    /// History: the observed states of one thing move only along these steps.
    Transition {
        /// The representation.
        kind: String,
        /// What identifies the thing: `/sid`.
        key: String,
        /// The state: `/status`.
        at: String,
        /// Allowed steps as `[from, to]`; staying is always allowed.
        steps: Vec<(String, String)>,
    },
    /// History: once `after` was accepted, `operation` is not accepted for the same path
    /// parameters.
    NeverAfter {
        /// The operation that ends the thing: `delete-flow`.
        after: String,
        /// The operation that must fail from then on: `fetch-flow`.
        operation: String,
        /// Path parameters that name the thing, in both operations.
        parameters: Vec<String>,
    },
    /// History: the value at `at` keeps one spelling throughout a run, whatever its value.
    OneSpelling {
        /// The representation.
        kind: String,
        /// The value.
        at: String,
        /// The spellings of which only one may be used.
        of: Vec<String>,
    },
}

impl Check {
    /// The kind of representation that it judges, where it judges one.
    pub fn kind(&self) -> Option<&str> {
        match self {
            Self::Conforms { kind, .. }
            | Self::Configured { kind, .. }
            | Self::AtMostAfter { kind, .. }
            | Self::PresentOnlyWhen { kind, .. }
            | Self::SameResource { kind, .. }
            | Self::UniqueWithin { kind, .. }
            | Self::Transition { kind, .. }
            | Self::OneSpelling { kind, .. } => Some(kind),
            Self::Story {}
            | Self::Echoes { .. }
            | Self::Default { .. }
            | Self::OrderedBy { .. }
            | Self::FilteredBy { .. }
            | Self::Bounded { .. }
            | Self::InFormat { .. }
            | Self::PlainJson {}
            | Self::NoLongerThan { .. }
            | Self::IncreasingWithin { .. }
            | Self::NeverAfter { .. } => None,
        }
    }

    /// The kind whose representations it judges one by one, by nothing but themselves.
    pub fn payload_kind(&self) -> Option<&str> {
        let by_itself = matches!(self, Self::Conforms { .. } | Self::PresentOnlyWhen { .. });
        self.kind().filter(|_| by_itself)
    }
}

/// How a sent value and a received one are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// The text sent equals the value, numbers and booleans by their JSON spelling; a form cannot
    /// tell an empty text from null, so null agrees with an empty text.
    #[default]
    Text,
    /// Both are JSON texts of the same value.
    Json,
    /// Both are the same instant.
    Instant,
    /// The parameter's repeated values are the array's items, order free.
    Set,
    /// What was sent, or a prefix of it, or something unrelated: only an over-long value stored in
    /// full is a failure.
    Limit,
}

/// Ascending or descending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Smallest or oldest first.
    Ascending,
    /// Largest or most recent first.
    Descending,
}

/// How listed values relate to a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Keeps {
    /// On or after the instant sent, at whole seconds.
    AtOrAfter,
    /// Before the instant sent, at whole seconds.
    Before,
    /// One of the values sent.
    OneOf,
}
