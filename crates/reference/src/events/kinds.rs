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

impl Kind {
    /// Suffix of `com.svc.comms-api.`.
    const fn type_name(self) -> &'static str {
        match self {
            Self::OperationProcessing => "operation.processing",
            Self::OperationCompleted => "operation.completed",
            Self::OperationScheduled => "operation.scheduled",
            Self::MessageQueued => "message.queued",
            Self::MessageSent => "message.sent",
            Self::MessageFailed => "message.failed",
            Self::MessageDelivered => "message.delivered",
            Self::MessageUndelivered => "message.undelivered",
            Self::MessageRead => "message.read",
            Self::Further => "message.link-clicked",
        }
    }

    /// Schema name and version; not shown for the read event.
    fn schema(self, core: &Core) -> Option<(&'static str, u32)> {
        match self {
            Self::OperationProcessing => Some(("OperationProcessing", 2)),
            Self::OperationCompleted => Some(("OperationCompleted", 2)),
            Self::OperationScheduled => Some(("OperationScheduled", 2)),
            Self::MessageQueued => Some(("MessageQueued", 3)),
            Self::MessageSent => Some(("MessageSent", 4)),
            Self::MessageFailed => Some(("MessageFailed", 4)),
            Self::MessageDelivered => Some(("MessageDelivered", 4)),
            Self::MessageUndelivered => Some(("MessageUndelivered", 4)),
            Self::MessageRead => core
                .varies(Variant::EventsReadHasSchema)
                .then_some(("MessageRead", 1)),
            Self::Further => Some(("MessageLinkClicked", 1)),
        }
    }

    /// D1, Resources: fields per kind. Those of the read event are not shown; it has those of a delivered one.
    const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::OperationProcessing | Self::OperationCompleted | Self::OperationScheduled => {
                &["operation_id"]
            }
            Self::MessageQueued => &[
                "account_sid",
                "operation_id",
                "message_id",
                "downstream_id",
                "attempt",
                "from",
                "to",
                "tags",
            ],
            Self::MessageSent | Self::MessageDelivered | Self::MessageRead | Self::Further => &[
                "operation_id",
                "message_id",
                "attempt",
                "downstream_id",
                "from",
                "to",
                "tags",
            ],
            Self::MessageFailed | Self::MessageUndelivered => &[
                "operation_id",
                "message_id",
                "attempt",
                "downstream_id",
                "error_code",
                "from",
                "to",
                "tags",
            ],
        }
    }
}

/// `{type, schema, payload}`, without `schema` if none is shown.
pub(super) fn event(core: &Core, kind: Kind, facts: &Facts) -> Value {
    let mut event = Map::new();
    event.insert(
        "type".to_owned(),
        json!(format!("com.svc.comms-api.{}", kind.type_name())),
    );
    if let Some((name, version)) = kind.schema(core) {
        // D1, Events: the URL of a schema is a prefix, then name and version.
        let prefix = if core.varies(Variant::EventsSchemaAddress) {
            "https://events.example/schemas/"
        } else {
            ""
        };
        event.insert(
            "schema".to_owned(),
            json!(format!("{prefix}CommsApi.{name}/{version}")),
        );
    }
    event.insert("payload".to_owned(), payload(core, kind, facts));
    Value::Object(event)
}

fn payload(core: &Core, kind: Kind, facts: &Facts) -> Value {
    let mut payload = Map::new();
    let fact = |field: &str| {
        facts
            .get(field)
            .cloned()
            .unwrap_or_else(|| json!("unknown"))
    };
    for field in kind.fields() {
        payload.insert((*field).to_owned(), fact(field));
    }
    if core.varies(Variant::EventsErrorCodeAbsent) {
        payload.remove("error_code");
    }
    if facts.get("tags") == Some(&json!({})) && core.varies(Variant::EventsTagsAbsent) {
        payload.remove("tags");
    }
    if kind != Kind::MessageQueued && core.varies(Variant::EventsTagsOnlyQueued) {
        payload.remove("tags");
    }
    if core.varies(Variant::EventsSparse) {
        payload.retain(|field, _| matches!(field.as_str(), "operation_id" | "message_id"));
    }
    Value::Object(payload)
}
