//! Overview of chat and media for the page.

use super::Chat;
use super::channel::Channel;
use super::message::Message;
use super::service::Service;
use crate::overview::newest;
use conformant_base::clock;
use serde_json::{Value, json};

impl Chat {
    pub(crate) fn overview(&self) -> Value {
        newest(self.services.rows(), service)
    }
}

fn service(service: &Service) -> Value {
    json!({
        "sid": service.sid,
        "name": service.fields.friendly_name,
        "users": newest(service.users.rows(), |user| json!({
            "sid": user.sid,
            "identity": user.identity,
            "online": user.online,
        })),
        "media": newest(service.media.rows(), |media| json!({
            "sid": media.sid,
            "file_name": media.file_name,
            "content_type": media.content_type,
            "bytes": media.bytes.len(),
        })),
        "bindings": service.bindings.len(),
        "channels": newest(service.channels.rows(), channel),
    })
}

fn channel(channel: &Channel) -> Value {
    json!({
        "sid": channel.sid,
        "name": channel.friendly_name.as_ref().or(channel.unique_name.as_ref()),
        "type": channel.kind,
        "members": newest(channel.members.rows(), |member| json!(member.identity)),
        "messages": newest(channel.messages.rows(), message),
        "invites": channel.invites.len(),
        "webhooks": newest(channel.webhooks.rows(), |webhook| json!({
            "sid": webhook.sid,
            "type": webhook.kind,
        })),
    })
}

fn message(message: &Message) -> Value {
    json!({
        "index": message.index,
        "from": message.from,
        "body": message.body,
        "has_media": message.attachment.is_some(),
        "at": clock::iso_seconds(message.received),
    })
}
