//! Kinds of events: type, schema with version, fields (D1, Events and Resources).

use crate::{Core, Fault, Variant};
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

/// Faults that announce another schema version.
const OTHER_VERSIONS: &[(Fault, Kind)] = &[
    (
        Fault::EventsProcessingOtherVersion,
        Kind::OperationProcessing,
    ),
    (Fault::EventsCompletedOtherVersion, Kind::OperationCompleted),
    (Fault::EventsScheduledOtherVersion, Kind::OperationScheduled),
    (Fault::EventsQueuedOtherVersion, Kind::MessageQueued),
    (Fault::EventsSentOtherVersion, Kind::MessageSent),
    (Fault::EventsFailedOtherVersion, Kind::MessageFailed),
    (Fault::EventsDeliveredOtherVersion, Kind::MessageDelivered),
    (
        Fault::EventsUndeliveredOtherVersion,
        Kind::MessageUndelivered,
    ),
];

/// Faults that add fields of other kinds.
const FOREIGN_FIELDS: &[(Fault, &[Kind], &str)] = &[
    (
        Fault::EventsOperationWithMessageId,
        &[
            Kind::OperationProcessing,
            Kind::OperationCompleted,
            Kind::OperationScheduled,
        ],
        "message_id",
    ),
    (
        Fault::EventsAccountSidOutsideQueued,
        &[
            Kind::MessageSent,
            Kind::MessageFailed,
            Kind::MessageDelivered,
            Kind::MessageUndelivered,
        ],
        "account_sid",
    ),
    (
        Fault::EventsErrorCodeInQueued,
        &[Kind::MessageQueued],
        "error_code",
    ),
    (
        Fault::EventsErrorCodeInSent,
        &[Kind::MessageSent],
        "error_code",
    ),
    (
        Fault::EventsErrorCodeInDelivered,
        &[Kind::MessageDelivered],
        "error_code",
    ),
];

/// Value of a fault.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    Number,
    Null,
    Text(&'static str),
    List,
}

impl Wrong {
    fn value(self) -> Value {
        match self {
            Self::Number => json!(1),
            Self::Null => Value::Null,
            Self::Text(text) => json!(text),
            Self::List => json!([]),
        }
    }
}

/// Faults that set a wrong value at an existing pointer.
const WRONG_VALUES: &[(Fault, &str, Wrong)] = &[
    (Fault::EventsOperationIdNull, "/operation_id", Wrong::Null),
    (
        Fault::EventsOperationIdNumber,
        "/operation_id",
        Wrong::Number,
    ),
    (Fault::EventsMessageIdNumber, "/message_id", Wrong::Number),
    (Fault::EventsAccountSidNumber, "/account_sid", Wrong::Number),
    (Fault::EventsAttemptNumber, "/attempt", Wrong::Number),
    (
        Fault::EventsDownstreamIdNumber,
        "/downstream_id",
        Wrong::Number,
    ),
    (Fault::EventsDownstreamIdNull, "/downstream_id", Wrong::Null),
    (Fault::EventsErrorCodeNumber, "/error_code", Wrong::Number),
    (Fault::EventsErrorCodeNull, "/error_code", Wrong::Null),
    (Fault::EventsFromText, "/from", Wrong::Text("+15550100000")),
    (Fault::EventsToText, "/to", Wrong::Text("+15550100001")),
    (Fault::EventsFromIdNumber, "/from/id", Wrong::Number),
    (Fault::EventsToIdNumber, "/to/id", Wrong::Number),
    (
        Fault::EventsFromAddressNumber,
        "/from/address",
        Wrong::Number,
    ),
    (Fault::EventsToAddressNumber, "/to/address", Wrong::Number),
    (
        Fault::EventsFromChannelForeign,
        "/from/channel",
        Wrong::Text("voice"),
    ),
    (
        Fault::EventsToChannelForeign,
        "/to/channel",
        Wrong::Text("voice"),
    ),
    (
        Fault::EventsFromChannelNumber,
        "/from/channel",
        Wrong::Number,
    ),
    (Fault::EventsToChannelNumber, "/to/channel", Wrong::Number),
    (Fault::EventsTagsList, "/tags", Wrong::List),
];

/// Faults that add a member to the object at a pointer.
const EXTRAS: &[(Fault, &str, &str)] = &[
    (Fault::EventsExtraField, "", "priority"),
    (Fault::EventsFromExtraField, "/from", "country"),
    (Fault::EventsToExtraField, "/to", "country"),
];

/// Faults that swap the schemas of two kinds.
const SWAPPED: &[(Fault, [Kind; 2])] = &[
    (
        Fault::EventsSentDeliveredSwapped,
        [Kind::MessageSent, Kind::MessageDelivered],
    ),
    (
        Fault::EventsFailedUndeliveredSwapped,
        [Kind::MessageFailed, Kind::MessageUndelivered],
    ),
    (
        Fault::EventsProcessingCompletedSwapped,
        [Kind::OperationProcessing, Kind::OperationCompleted],
    ),
];

/// The announced schema name.
fn announced(core: &Core, kind: Kind, own: &'static str) -> &'static str {
    for (fault, [one, other]) in SWAPPED {
        let swapped = if kind == *one {
            other
        } else if kind == *other {
            one
        } else {
            continue;
        };
        if core.fails(*fault) {
            return swapped.schema(core).map_or(own, |(name, _)| name);
        }
    }
    own
}

/// `{type, schema, payload}`, without `schema` if none is shown.
pub(super) fn event(core: &Core, kind: Kind, facts: &Facts) -> Value {
    let prefix = if core.fails(Fault::EventsTypeForeign) {
        "com.svc.messages"
    } else {
        "com.svc.comms-api"
    };
    let mut event = Map::new();
    event.insert(
        "type".to_owned(),
        json!(format!("{prefix}.{}", kind.type_name())),
    );
    if let Some((name, version)) = kind.schema(core) {
        let name = announced(core, kind, name);
        let is_other = OTHER_VERSIONS
            .iter()
            .any(|(fault, of)| *of == kind && core.fails(*fault));
        let version = if is_other { version - 1 } else { version };
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
    if core.varies(Variant::EventsSparse) {
        payload.retain(|field, _| matches!(field.as_str(), "operation_id" | "message_id"));
    }
    for (fault, kinds, field) in FOREIGN_FIELDS {
        if core.fails(*fault) && kinds.contains(&kind) {
            payload.insert((*field).to_owned(), fact(field));
        }
    }
    if core.fails(Fault::EventsOtherOperationId) && payload.contains_key("message_id") {
        payload.insert("operation_id".to_owned(), json!("comms_operation_other"));
    }
    let mut payload = Value::Object(payload);
    for (fault, pointer, wrong) in WRONG_VALUES {
        if let Some(value) = payload.pointer_mut(pointer).filter(|_| core.fails(*fault)) {
            *value = wrong.value();
        }
    }
    for (fault, pointer, extra) in EXTRAS {
        if let Some(object) = payload.pointer_mut(pointer).filter(|_| core.fails(*fault)) {
            object[*extra] = json!("1");
        }
    }
    if let Some(Value::Object(tags)) = payload
        .get_mut("tags")
        .filter(|_| core.fails(Fault::EventsTagChanged))
    {
        tags.values_mut()
            .for_each(|value| *value = json!("another"));
    }
    if let Some(tags) = payload
        .get_mut("tags")
        .filter(|_| core.fails(Fault::EventsTagNumber))
    {
        tags["number"] = json!(1);
    }
    payload
}
