//! The file format of a call: three keys, at most one of them present, express the expected outcome.
//!
//! The rest of the program uses [`Call`] with its [`Demand`].

use super::expect::{Expect, RuleName};
use super::scenario::{Credentials, Existing, Until};
use super::step::{Call, Demand, Step};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Sends a request of an operation.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct CallFormat {
    /// Verb: send a request of this operation; one of another service is written `media/upload-media`.
    call: String,
    /// Parameters by the document's names. A list repeats the parameter; null omits it.
    #[serde(default)]
    with: Map<String, Value>,
    /// Credentials to send; `default` if omitted.
    #[serde(default)]
    credentials: Credentials,
    /// Name of the result for `${NAME.field}`.
    capture: Option<String>,
    /// Statements about the result, each judging one scenario rule.
    #[serde(default)]
    expect: Vec<Expect>,
    /// Rules that this step exercises without a statement: their own predicates judge them.
    #[serde(default)]
    shows: Vec<String>,
    /// The rule that a rejection violates; defaults to the operation's own rule.
    #[serde(default, deserialize_with = "RuleName::optional")]
    #[schemars(with = "Option<RuleName>")]
    accepted: Option<String>,
    /// The rule that an acceptance violates.
    #[serde(default, deserialize_with = "RuleName::optional")]
    #[schemars(with = "Option<RuleName>")]
    rejected: Option<String>,
    /// For `rejected`: an accepted response is valid, too, if it contains the existing
    /// resource.
    unless: Option<Existing>,
    /// Any outcome is valid; the response is only observed. If it is rejected, its `expect` and later steps
    /// that need its capture are skipped and judge nothing.
    #[serde(default)]
    either: bool,
    /// Repeat the call until the value is there, or the time is over.
    until: Option<Until>,
    /// Follow `meta.next_page_url` to the end; the result is `{pages, items}`.
    #[serde(default)]
    walk: bool,
    /// For `walk`: steps to run after the first page. Such a walk is judged by its `expect` only,
    /// because no document defines a list that changes meanwhile.
    #[serde(default)]
    between: Vec<Step>,
    /// For a rejection: the resource type that the response is validated as.
    judge: Option<String>,
}

/// Contradictory expectations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Contradiction {
    /// More than one of the three keys.
    #[error(
        "only one of `accepted`, `rejected` and `either`: a call is expected to be accepted unless said"
    )]
    Several,
    /// An exception without its rule.
    #[error("`unless` goes with `rejected` alone")]
    Unless,
}

impl TryFrom<CallFormat> for Call {
    type Error = Contradiction;

    fn try_from(written: CallFormat) -> Result<Self, Contradiction> {
        let demand = match (written.accepted, written.rejected, written.either) {
            (None, Some(rule), false) => Demand::Rejected {
                rule,
                unless: written.unless,
            },
            (Some(_), Some(_), _) | (Some(_), _, true) | (_, Some(_), true) => {
                return Err(Contradiction::Several);
            }
            _ if written.unless.is_some() => return Err(Contradiction::Unless),
            (None, None, false) => Demand::Own,
            (Some(rule), None, false) => Demand::Accepted(rule),
            (None, None, true) => Demand::Either,
        };
        Ok(Self {
            call: written.call,
            with: written.with,
            credentials: written.credentials,
            capture: written.capture,
            expect: written.expect,
            shows: written.shows,
            until: written.until,
            walk: written.walk,
            between: written.between,
            judge: written.judge,
            demand,
        })
    }
}

impl From<Call> for CallFormat {
    fn from(call: Call) -> Self {
        let either = call.demand.is_either();
        let (accepted, rejected, unless) = match call.demand {
            Demand::Own | Demand::Either => (None, None, None),
            Demand::Accepted(rule) => (Some(rule), None, None),
            Demand::Rejected { rule, unless } => (None, Some(rule), unless),
        };
        Self {
            accepted,
            rejected,
            unless,
            either,
            call: call.call,
            with: call.with,
            credentials: call.credentials,
            capture: call.capture,
            expect: call.expect,
            shows: call.shows,
            until: call.until,
            walk: call.walk,
            between: call.between,
            judge: call.judge,
        }
    }
}

impl JsonSchema for Call {
    fn schema_name() -> Cow<'static, str> {
        CallFormat::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        CallFormat::json_schema(generator)
    }
}
