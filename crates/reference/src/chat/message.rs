//! Messages: text or media, in order of receipt.

use super::channel::{self, Channel};
use super::delivery::{self, Happening};
use super::former;
use super::inputs;
use super::pages;
use super::service::Service;
use super::updated;
use super::user;
use crate::{Answer, Call, Core, Fault, Refusal, Variant};
use conformant_base::clock::Timestamp;
use serde_json::{Value, json};

/// Names of the events when a message is sent.
pub(super) const SENT: [&str; 2] = ["onMessageSend", "onMessageSent"];
/// Default author (D2, Message).
const SYSTEM: &str = "system";

#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) sid: String,
    pub(super) index: u64,
    /// Time of receipt; independent of a restored `created`.
    pub(super) received: Timestamp,
    pub(super) from: String,
    /// `None` if none was sent and a variant shows null.
    pub(super) body: Option<String>,
    attributes: String,
    pub(super) attachment: Option<Attachment>,
    last_updated_by: Option<String>,
    was_edited: bool,
    created: Timestamp,
    updated: Timestamp,
}

/// Media of a message.
#[derive(Clone, Debug)]
pub(super) struct Attachment {
    sid: String,
    size: usize,
    content_type: String,
    file_name: Option<String>,
}

impl Message {
    fn represent(&self, service: &Service, channel: &Channel, core: &Core) -> Value {
        let media = self.attachment.as_ref().map(|media| {
            json!({
                "content_type": media.content_type,
                "filename": media.file_name,
                "sid": media.sid,
                "size": media.size,
            })
        });
        json!({
            "sid": self.sid,
            "account_sid": core.account_sid,
            "service_sid": service.sid,
            "to": channel.sid,
            "channel_sid": channel.sid,
            "attributes": self.attributes,
            "date_created": core.date(self.created),
            "date_updated": updated(core, self.created, self.updated),
            "last_updated_by": self.last_updated_by,
            "was_edited": self.was_edited,
            "from": self.from,
            "body": self.body,
            "index": self.index,
            "type": if self.attachment.is_some() { "media" } else { "text" },
            "media": media,
            "url": service.url(core, &["Channels", &channel.sid, "Messages", &self.sid]),
        })
    }
}

/// The message that its own `url` points to.
pub(super) fn fetch(service: &Service, core: &Core, channel: &str, sid: &str) -> Answer {
    let channel = service.channels.find(channel, true)?;
    let message = channel.messages.find(sid, false)?;
    Ok(core.ok(&message.represent(service, channel, core)))
}

/// The messages that a channel's link points to.
pub(super) fn read(service: &Service, core: &Core, call: &Call<'_>, channel: &str) -> Answer {
    let channel = service.channels.find(channel, true)?;
    let url = service.url(core, &["Channels", &channel.sid, "Messages"]);
    let show = |message: &Message| message.represent(service, channel, core);
    pages::all(core, call, ("messages", url), &channel.messages, show)
}

pub(super) fn create(
    service: &mut Service,
    core: &mut Core,
    call: &Call<'_>,
    channel: &str,
) -> Answer {
    let webhooks = inputs::webhooks_enabled(core, call);
    let form = &call.form;
    let named = channel;
    let channel_sid = channel::find(service, core, channel)?.sid.clone();
    let unchecked = Fault::ChatMessageAttributesUnchecked;
    let attributes = inputs::attributes(core, form, unchecked);
    let refusal = match &attributes {
        Err(refusal) if core.fails(Fault::ChatRefusedMessageCounts) => Some(refusal.clone()),
        Err(_) | Ok(_) => None,
    };
    let attributes = match attributes {
        Err(_) if refusal.is_some() => None,
        attributes => attributes?,
    };
    let (created, updated) = inputs::backup_dates(core, form)?;
    let attachment = form
        .get("MediaSid")
        .filter(|sid| !sid.is_empty())
        .map(|sid| attachment(service, core, sid))
        .transpose();
    let (attachment, refusal) = match attachment {
        Err(refusal) if core.fails(Fault::ChatUnknownMediaCounts) => (None, Some(refusal)),
        attachment => (attachment?, refusal),
    };
    let identity = |parameter| form.get(parameter).filter(|text| !text.is_empty());
    for writer in [identity("From"), identity("LastUpdatedBy")] {
        if let Some(writer) =
            writer.filter(|w| *w != SYSTEM && !core.varies(Variant::ChatAuthorIsNoUser))
        {
            user::seen(service, core, writer);
        }
    }
    let message = Message {
        sid: core.sid("IM"),
        index: next_index(service, core, &channel_sid)?,
        from: author(service, core, &channel_sid, identity("From")),
        body: body(core, form.get("Body")),
        attributes: attributes.unwrap_or_else(inputs::unset_attributes),
        attachment,
        last_updated_by: identity("LastUpdatedBy").map(str::to_owned),
        // A restore names the last editor, so the message was edited.
        was_edited: identity("LastUpdatedBy").is_some(),
        received: core.now,
        created,
        updated,
    };
    let count = service.channels.find(&channel_sid, false)?.messages.len();
    let is_first = core.read_or_stale(Fault::ChatRaceWithoutWebhook, || count) == count;
    add(service, core, &channel_sid, message.clone());
    former::restore_members(
        service,
        core,
        &channel_sid,
        Fault::ChatLeaverReturnsWithMessage,
    );
    former::restore_bindings(service, core, Fault::ChatDeletedBindingReturnsOnMessage);
    let channel = service.channels.find(&channel_sid, false)?;
    let mut value = message.represent(service, channel, core);
    let with_media = channel.messages.rows().filter(|m| m.attachment.is_some());
    if message.attachment.is_some()
        && with_media.count() > 1
        && core.fails(Fault::ChatSecondMediaNotCarried)
    {
        value["media"] = Value::Null;
    }
    let is_named = named != channel_sid && webhooks;
    if webhooks && is_first && !(is_named && core.fails(Fault::ChatMessageByNameWithoutWebhook)) {
        announce(service, core, channel, &message);
    }
    refusal.map_or_else(|| Ok(core.created(&value)), Err)
}

/// The author of a message: `From`, or else `system`.
fn author(service: &Service, core: &Core, channel_sid: &str, from: Option<&str>) -> String {
    if let Some(from) = from {
        let known = service.users.by_name_in_any_case(from);
        let known = known.filter(|user| user.identity != from);
        return match known {
            Some(user) if core.fails(Fault::ChatFromOfKnownCase) => user.identity.clone(),
            Some(_) | None => from.to_owned(),
        };
    }
    let channel = service.channels.by_sid(channel_sid);
    if let Some(channel) = channel
        && core.fails(Fault::ChatMessageFromCreator)
    {
        return channel.created_by.clone();
    }
    let before = channel.and_then(|c| c.messages.last().filter(|_| c.messages.len() > 2));
    match before.filter(|before| before.from != SYSTEM) {
        Some(before) if core.fails(Fault::ChatFourthMessageAuthorOfLast) => before.from.clone(),
        Some(_) | None => SYSTEM.to_owned(),
    }
}

/// `Body`; empty and null both mean the empty string (D2, Endpoints: Message).
fn body(core: &Core, sent: Option<&str>) -> Option<String> {
    match sent {
        None if core.varies(Variant::ChatNoBodyIsNull) => None,
        None => Some(String::new()),
        Some("") if core.fails(Fault::ChatMessageEmptyBodyNull) => None,
        Some(text) => Some(text.to_owned()),
    }
}

fn attachment(service: &Service, core: &Core, sid: &str) -> Result<Attachment, Refusal> {
    let named = service
        .media
        .by_sid(sid)
        .ok_or_else(|| Refusal::bad_parameter("MediaSid", "no media has this SID"))?;
    let first = service.media.rows().next();
    let media = match first.filter(|first| first.sid != named.sid) {
        Some(first) if core.fails(Fault::ChatMessageMediaOfFirst) => first,
        Some(_) | None => named,
    };
    Ok(Attachment {
        sid: media.sid.clone(),
        size: media.bytes.len(),
        content_type: media.content_type.clone(),
        file_name: media.file_name.clone(),
    })
}

/// Takes the next index: in order of receipt, and numbers may be skipped (D2, Message).
fn next_index(service: &mut Service, core: &Core, channel_sid: &str) -> Result<u64, Refusal> {
    let channel = service
        .channels
        .by_sid_mut(channel_sid)
        .ok_or_else(Refusal::not_found)?;
    let index = core.read_or_stale(Fault::ChatRaceIndex, || channel.next_index);
    let step = if core.varies(Variant::ChatIndexesSkip) {
        3
    } else {
        1
    };
    channel.next_index = index + step;
    Ok(if core.fails(Fault::ChatMessageIndexStuck) {
        0
    } else if core.fails(Fault::ChatMessageIndexDecreasing) {
        1_000_000_u64.saturating_sub(index)
    } else if channel.messages.len() == 4 && core.fails(Fault::ChatFifthIndexRepeats) {
        channel.messages.last().map_or(index, |last| last.index)
    } else if index > 9 && core.fails(Fault::ChatIndexWrongFromTenth) {
        index % 10
    } else {
        index
    })
}

fn add(service: &mut Service, core: &Core, channel_sid: &str, message: Message) {
    let channel = service.channels.by_sid(channel_sid);
    let is_later = channel.is_some_and(|c| c.messages.rows().any(|m| m.attachment.is_some()));
    if let Some(attachment) = &message.attachment
        && let Some(media) = service.media.by_sid_mut(&attachment.sid)
        && media.attached_to.is_none()
        && !core.fails(Fault::MediaNotAttached)
        && !(is_later && core.fails(Fault::MediaSecondUnattached))
    {
        let place = (channel_sid.to_owned(), message.sid.clone());
        media.attached_to = Some(place.clone());
        let others = service.media.rows_mut().filter(|m| m.attached_to.is_none());
        for other in others {
            if core.fails(Fault::MediaAttachesAll) {
                other.attached_to = Some(place.clone());
            }
        }
    }
    if let Some(channel) = service.channels.by_sid_mut(channel_sid) {
        let sid = message.sid.clone();
        if core.varies(Variant::ChatMessageMovesChannel) {
            channel.updated = core.now;
        }
        let counted = channel.messages.len() - channel.uncounted;
        let counted = core.read_or_stale(Fault::ChatRaceMessagesCount, || counted);
        channel.messages.insert(sid.clone(), None, message);
        channel.uncounted = channel.messages.len() - counted - 1;
        channel.kind = core.read_or_stale(Fault::ChatRaceChannelType, || channel.kind.clone());
    }
}

fn announce(service: &Service, core: &mut Core, channel: &Channel, message: &Message) {
    let body = message.body.clone().unwrap_or_default();
    let mut earlier = channel.messages.rows().rev().skip(1);
    let says_the_same = |before: &Message| before.body == message.body;
    if earlier.next().is_some_and(says_the_same) && core.fails(Fault::ChatSameTextWithoutWebhook) {
        return;
    }
    let is_unheard = message.attachment.is_some() && core.fails(Fault::ChatTriggerDeafToMedia);
    let fields = [
        ("ChannelSid", channel.sid.as_str()),
        ("MessageSid", &message.sid),
        ("Index", &message.index.to_string()),
        ("From", &message.from),
        ("Body", &body),
        ("Attributes", &message.attributes),
    ];
    let mut happening = Happening::new(SENT, &fields);
    happening.message_body = (!is_unheard).then_some(body);
    delivery::announce(core, service, Some(channel), &happening);
}
