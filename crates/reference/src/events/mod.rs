//! Message and operation events (D1, part A): bulk sends and their events.
//!
//! Subscription and delivery are not shown, so hooks replace both; a URL set for `events` receives each event
//! when it is emitted. `kinds` builds the events.

mod kinds;

use self::kinds::{Facts, Kind};
use super::{Control, Core, Done, Fault, Variant, hook, text_arg};
use crate::effects::Operation;
use conformant_base::http::Request;
use rand::Rng as _;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Events {
    /// Shared with copies of the state.
    emitted: Vec<Arc<Emitted>>,
    url: Option<String>,
    /// Operation and channel of the first send.
    first: Option<(String, String)>,
    /// Tags of the previous send.
    tags: Map<String, Value>,
    /// Identifier of the first message of the previous send.
    message: Option<Value>,
}

/// One event in `collect_events`.
#[derive(Clone, Debug)]
struct Emitted {
    operation_id: String,
    event: Value,
}

impl Events {
    pub(super) fn control(&mut self, core: &mut Core, hook: &str, args: &Value) -> Control {
        match hook {
            "send_bulk_message" => Some(self.send(core, args)),
            "collect_events" => Some(Ok(self.collect(core, args))),
            "set_callback" => Some(self.set_callback(args)),
            _ => None,
        }
    }

    fn set_callback(&mut self, args: &Value) -> Done {
        let (kind, url) = (text_arg(args, "kind")?, text_arg(args, "url")?);
        if kind != "events" {
            return Err(format!("unknown kind of callback `{kind}`"));
        }
        self.url = Some(url.to_owned()).filter(|url| !url.is_empty());
        Ok(json!({}))
    }

    /// One bulk send: operation events around the events of each message.
    fn send(&mut self, core: &mut Core, args: &Value) -> Done {
        let mut send = BulkSend::read(args)?;
        let mut operation_id = identifier(core, "comms_operation");
        let is_first = self.first.is_none();
        match &self.first {
            None => self.first = Some((operation_id.clone(), send.channel.clone())),
            Some((operation, channel)) => {
                if core.fails(Fault::EventsOperationOfFirst) {
                    operation_id.clone_from(operation);
                }
                if send.channel != *channel && core.fails(Fault::EventsChannelOfFirst) {
                    send.channel.clone_from(channel);
                }
            }
        }
        if send.tags.is_empty() && !self.tags.is_empty() && core.fails(Fault::EventsTagsOfBefore) {
            send.tags.clone_from(&self.tags);
        }
        self.tags.clone_from(&send.tags);
        let operation = facts(json!({ "operation_id": operation_id }));
        if send.is_scheduled && !core.fails(Fault::EventsScheduledMissing) {
            self.emit(core, &operation_id, Kind::OperationScheduled, &operation);
        }
        let is_quiet = |fault| !is_first && core.fails(fault);
        let is_silent = core.fails(Fault::EventsProcessingMissing)
            || is_quiet(Fault::EventsProcessingOnlyFirst)
            || send.is_scheduled && core.fails(Fault::EventsScheduledNotProcessing)
            || send.outcome == Outcome::Undelivered
                && core.fails(Fault::EventsUndeliveredNotProcessing);
        if !is_silent {
            self.emit(core, &operation_id, Kind::OperationProcessing, &operation);
        }
        let mut first = None;
        let mut before: Option<Facts> = None;
        let only_first = core.fails(Fault::EventsOnlyFirstRecipient);
        for (n, to) in send
            .to
            .iter()
            .take(if only_first { 1 } else { usize::MAX })
            .enumerate()
        {
            if n > 2 && core.fails(Fault::EventsFourthRecipientMissing)
                || n > 4 && core.fails(Fault::EventsSixthRecipientMissing)
            {
                break;
            }
            let mut message = send.message(core, &operation_id, to);
            match &first {
                None => first = Some(message.clone()),
                Some(first) => take_from_first(core, &mut message, first),
            }
            if let Some(before) = before.filter(|_| n > 2)
                && core.fails(Fault::EventsFourthMessageIdOfThird)
            {
                message["message_id"] = before["message_id"].clone();
            }
            if n > 2 && core.fails(Fault::EventsFourthAddressOfFirst) {
                message["to"]["address"] = json!(send.to[0]);
            }
            match self.message.as_ref().filter(|_| n == 0) {
                Some(last) if core.fails(Fault::EventsMessageIdOfLastSend) => {
                    message["message_id"] = last.clone();
                }
                _ => {}
            }
            if n == 0 {
                self.message = Some(message["message_id"].clone());
            }
            before = Some(message.clone());
            let is_later = *to != send.to[0];
            if n > 2 && !send.tags.is_empty() && core.fails(Fault::EventsTagsStop) {
                message["tags"] = json!({});
            }
            for kind in send.course(core) {
                if is_lost(core, kind, &send, n) {
                    continue;
                }
                if kind == Kind::MessageQueued
                    && is_later
                    && core.fails(Fault::EventsQueuedOnlyFirst)
                {
                    continue;
                }
                if core.fails(Fault::EventsMessageIdEach) {
                    message["message_id"] = json!(identifier(core, "comms_message"));
                }
                self.emit(core, &operation_id, kind, &message);
            }
        }
        let is_silent = core.fails(Fault::EventsCompletedMissing)
            || !is_first && core.fails(Fault::EventsCompletedOnlyFirst)
            || send.is_scheduled && core.fails(Fault::EventsScheduledNotCompleted);
        if !is_silent {
            self.emit(core, &operation_id, Kind::OperationCompleted, &operation);
        }
        Ok(json!({ "operation_id": operation_id }))
    }

    fn emit(&mut self, core: &mut Core, operation_id: &str, kind: Kind, facts: &Facts) {
        const TIMEOUT: Duration = Duration::from_secs(10);
        let event = kinds::event(core, kind, facts);
        let event = core
            .with_effects(&Operation::callback("event"), &event)
            .into_owned();
        if let Some(url) = &self.url {
            let mut request = Request::new("POST", "");
            request.headers.set("Content-Type", "application/json");
            request.body = event.to_string().into_bytes();
            core.send(url, request, TIMEOUT, 0);
        }
        self.emitted.push(Arc::new(Emitted {
            operation_id: operation_id.to_owned(),
            event,
        }));
    }

    /// The events of one or all operations. Their order and repetition are not shown.
    fn collect(&self, core: &Core, args: &Value) -> Value {
        let operation_id = args.get("operation_id").and_then(Value::as_str);
        let mut events: Vec<Value> = self
            .emitted
            .iter()
            .filter(|emitted| operation_id.is_none_or(|id| emitted.operation_id == id))
            .map(|emitted| emitted.event.clone())
            .collect();
        if core.varies(Variant::EventsReordered) {
            events.reverse();
        }
        if core.varies(Variant::EventsRepeated) {
            events = events
                .into_iter()
                .flat_map(|event| [event.clone(), event])
                .collect();
        }
        json!({ "events": events })
    }
}

/// Outcome of the messages of a bulk send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Delivered,
    Failed,
    Undelivered,
    Read,
}

/// The arguments of `send_bulk_message`.
#[derive(Clone, Debug)]
struct BulkSend {
    channel: String,
    to: Vec<String>,
    tags: Map<String, Value>,
    is_scheduled: bool,
    outcome: Outcome,
}

impl BulkSend {
    fn read(args: &Value) -> Result<Self, String> {
        let channel = text_arg(args, "channel")?;
        if !matches!(channel, "sms" | "whatsapp" | "rcs") {
            return Err(format!(
                "unknown channel `{channel}`: expected sms, whatsapp or rcs"
            ));
        }
        let to: Option<Vec<String>> = args
            .get("to")
            .and_then(Value::as_array)
            .and_then(|to| to.iter().map(|to| to.as_str().map(str::to_owned)).collect());
        let to = to.filter(|to| !to.is_empty());
        let outcome = match args
            .get("outcome")
            .and_then(Value::as_str)
            .unwrap_or("delivered")
        {
            "delivered" => Outcome::Delivered,
            "failed" => Outcome::Failed,
            "undelivered" => Outcome::Undelivered,
            "read" => Outcome::Read,
            other => return Err(format!("unknown outcome `{other}`")),
        };
        let tags = match args.get("tags") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(tags)) if tags.values().all(Value::is_string) => tags.clone(),
            Some(_) => {
                return Err(hook::other_type("tags", "an object of strings"));
            }
        };
        Ok(Self {
            channel: channel.to_owned(),
            to: to.ok_or_else(|| hook::missing("to", "a list of strings"))?,
            tags,
            is_scheduled: args
                .get("scheduled")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            outcome,
        })
    }

    fn message(&self, core: &mut Core, operation_id: &str, to: &str) -> Facts {
        let mut party = |address: &str| {
            json!({
                "id": identifier(core, "comms_address"),
                "address": address,
                "channel": self.channel,
            })
        };
        let (from, to) = (party("+15550100000"), party(to));
        facts(json!({
            "operation_id": operation_id,
            "account_sid": core.account_sid,
            "message_id": identifier(core, "comms_message"),
            "attempt": "1",
            "downstream_id": core.sid("SM"),
            "error_code": "30003",
            "from": from,
            "to": to,
            "tags": self.tags,
        }))
    }

    /// The events of one message. The transitions are not shown; this is one possibility.
    fn course(&self, core: &Core) -> Vec<Kind> {
        let end: &[Kind] = match self.outcome {
            Outcome::Delivered => &[Kind::MessageSent, Kind::MessageDelivered],
            Outcome::Failed if core.varies(Variant::EventsFailedAfterSent) => {
                &[Kind::MessageSent, Kind::MessageFailed]
            }
            Outcome::Failed => &[Kind::MessageFailed],
            Outcome::Undelivered => &[Kind::MessageSent, Kind::MessageUndelivered],
            Outcome::Read => &[Kind::MessageSent, Kind::MessageDelivered, Kind::MessageRead],
        };
        let mut course = vec![Kind::MessageQueued];
        course.extend_from_slice(end);
        if core.varies(Variant::EventsFurtherKind) {
            course.push(Kind::Further);
        }
        course.retain(|kind| {
            !core.fails(match kind {
                Kind::MessageQueued => Fault::EventsQueuedMissing,
                Kind::MessageSent => Fault::EventsSentMissing,
                Kind::MessageFailed
                | Kind::MessageDelivered
                | Kind::MessageUndelivered
                | Kind::MessageRead
                | Kind::Further
                | Kind::OperationProcessing
                | Kind::OperationCompleted
                | Kind::OperationScheduled => Fault::EventsOutcomeMissing,
            })
        });
        course
    }
}

/// Faults: later messages of a send, or messages of some sends, emit fewer events.
fn is_lost(core: &Core, kind: Kind, send: &BulkSend, n: usize) -> bool {
    match kind {
        Kind::MessageFailed if n > 0 => core.fails(Fault::EventsFailedOnlyFirst),
        Kind::MessageUndelivered if n > 0 => core.fails(Fault::EventsUndeliveredOnlyFirst),
        Kind::MessageRead if n > 0 => core.fails(Fault::EventsReadOnlyFirst),
        Kind::MessageDelivered if n > 2 => core.fails(Fault::EventsOutcomeStops),
        Kind::MessageQueued if n > 3 => core.fails(Fault::EventsFifthNotQueued),
        Kind::MessageQueued if send.outcome == Outcome::Undelivered => {
            core.fails(Fault::EventsUndeliveredNotQueued)
        }
        Kind::MessageSent if send.outcome == Outcome::Read => core.fails(Fault::EventsReadNotSent),
        Kind::OperationProcessing
        | Kind::OperationCompleted
        | Kind::OperationScheduled
        | Kind::MessageQueued
        | Kind::MessageSent
        | Kind::MessageFailed
        | Kind::MessageDelivered
        | Kind::MessageUndelivered
        | Kind::MessageRead
        | Kind::Further => false,
    }
}

/// Faults: later messages have data of the first.
fn take_from_first(core: &Core, message: &mut Facts, first: &Facts) {
    if core.fails(Fault::EventsMessageIdOfFirst) {
        message["message_id"] = first["message_id"].clone();
    }
    if core.fails(Fault::EventsAddressOfFirst) {
        message["to"]["address"] = first["to"]["address"].clone();
    }
    if core.fails(Fault::EventsTagsOnlyFirst) {
        message["tags"] = json!({});
    }
}

fn facts(object: Value) -> Facts {
    match object {
        Value::Object(facts) => facts,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Facts::new()
        }
    }
}

/// An identifier with a prefix for its kind.
fn identifier(core: &mut Core, word: &str) -> String {
    if core.varies(Variant::EventsOtherIds) {
        return format!("{}-{}", core.rng.next_u64(), core.rng.next_u64());
    }
    format!(
        "{word}_{:016x}{:016x}",
        core.rng.next_u64(),
        core.rng.next_u64()
    )
}

#[cfg(test)]
mod tests;
