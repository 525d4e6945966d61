//! Kinds of events: type, schema with version, fields (D1, Events and Resources).

use crate::{Core, Variant};
use serde_json::{Map, Value, json};

/// Every documented kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    OperationProcessing,
    OperationCompleted,
    OperationScheduled,
    MessageQueued,
    MessageSent,
    MessageFailed,
    MessageDelivered,
    MessageUndelivered,
    MessageRead,
    /// A kind after the read event; undocumented.
    Further,
}

/// Data of an operation or message by field; each event contains the fields of its kind.
pub(super) type Facts = Map<String, Value>;

const OPERATION: &[&str] = &["operation_id"];
const QUEUED: &[&str] = &[
    "account_sid",
    "operation_id",
    "message_id",
    "downstream_id",
    "attempt",
    "from",
    "to",
    "tags",
];
const SENT: &[&str] = &[
    "operation_id",
    "message_id",
    "attempt",
    "downstream_id",
    "from",
    "to",
    "tags",
];
const FAILED: &[&str] = &[
    "operation_id",
    "message_id",
    "attempt",
    "downstream_id",
    "error_code",
    "from",
    "to",
    "tags",
];

impl Kind {
    /// The suffix of `com.svc.comms-api.`, the version of the schema, and the fields (D1, Resources). The schema and the
    /// fields of the read event are not shown: it has the fields of a delivered one.
    fn shape(self, core: &Core) -> (&'static str, Option<u32>, &'static [&'static str]) {
        match self {
            Self::OperationProcessing => ("operation.processing", Some(2), OPERATION),
            Self::OperationCompleted => ("operation.completed", Some(2), OPERATION),
            Self::OperationScheduled => ("operation.scheduled", Some(2), OPERATION),
            Self::MessageQueued => ("message.queued", Some(3), QUEUED),
            Self::MessageSent => ("message.sent", Some(4), SENT),
            Self::MessageFailed => ("message.failed", Some(4), FAILED),
            Self::MessageDelivered => ("message.delivered", Some(4), SENT),
            Self::MessageUndelivered => ("message.undelivered", Some(4), FAILED),
            Self::MessageRead => {
                let has_schema = core.varies(Variant::EventsReadHasSchema);
                ("message.read", has_schema.then_some(1), SENT)
            }
            Self::Further => ("message.link-clicked", Some(1), SENT),
        }
    }
}

/// `{type, schema, payload}`, without `schema` if none is shown.
pub(super) fn event(core: &Core, kind: Kind, facts: &Facts) -> Value {
    let (name, version, fields) = kind.shape(core);
    let mut event = json!({ "type": format!("com.svc.comms-api.{name}") });
    if let Some(version) = version {
        let words = name.split(['.', '-']);
        let schema: String = words
            .map(|word| word[..1].to_uppercase() + &word[1..])
            .collect();
        event["schema"] = json!(format!("CommsApi.{schema}/{version}"));
    }
    let fact = |field: &&str| {
        let value = facts.get(*field).cloned();
        (
            (*field).to_owned(),
            value.unwrap_or_else(|| json!("unknown")),
        )
    };
    event["payload"] = fields.iter().map(fact).collect();
    event
}
