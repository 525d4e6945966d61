//! Channels: created in version 2, type changed in version 3.

use super::delivery::{self, Happening};
use super::inputs::{self, Bound, Choice};
use super::invite::Invite;
use super::member::{self, Joining, Member};
use super::message::Message;
use super::pages;
use super::service::Service;
use super::table::Table;
use super::updated;
use super::user;
use super::webhook::Webhook;
use crate::{Answer, Call, Core, Fault, Refusal, Variant};
use conformant_base::clock::Timestamp;
use serde_json::{Value, json};

const CREATE_TYPE: Choice = Choice {
    values: &["public", "private"],
    open: Fault::ChatChannelTypeOpen,
};
const UPDATE_TYPE: Choice = Choice {
    values: &["public", "private"],
    open: Fault::ChatV3TypeOpen,
};
const FRIENDLY_NAME: Bound = Bound {
    unbounded: Fault::ChatChannelFriendlyNameUnbounded,
    one_more: Fault::ChatFriendlyName65,
};
const UNIQUE_NAME: Bound = Bound {
    unbounded: Fault::ChatChannelUniqueNameUnbounded,
    one_more: Fault::ChatUniqueName65,
};
/// Default creator of a channel (D2, Channel).
const SYSTEM: &str = "system";

/// A channel with its contents.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) sid: String,
    pub(super) created_by: String,
    pub(super) members: Table<Member>,
    pub(super) messages: Table<Message>,
    /// Index of the next message.
    pub(super) next_index: u64,
    pub(super) invites: Table<Invite>,
    pub(super) webhooks: Table<Webhook>,
    /// Number of former members.
    pub(super) left: usize,
    /// Former members, for faults.
    pub(super) leavers: Table<Member>,
    /// Number of messages that a fault did not count.
    pub(super) uncounted: usize,
    /// Number of refused webhooks, for a fault.
    pub(super) refused_webhooks: usize,
    /// Number of refused invites, for a fault.
    pub(super) refused: usize,
    pub(super) updated: Timestamp,
    pub(super) friendly_name: Option<String>,
    pub(super) unique_name: Option<String>,
    attributes: String,
    pub(super) kind: String,
    messaging_service_sid: Option<String>,
    created: Timestamp,
}

impl Channel {
    /// True if any user may join.
    pub(super) fn is_public(&self) -> bool {
        self.kind == "public"
    }

    fn represent(&self, service: &Service, core: &Core) -> Value {
        let messages = self.messages.len() - self.uncounted;
        let with_media = self.messages.rows().filter(|m| m.attachment.is_some());
        let uncounted = match with_media.count() {
            many @ 1.. if core.fails(Fault::ChatMediaUncounted) => many,
            _ => 0,
        };
        let messages = messages.saturating_sub(uncounted);
        let left = match self.left {
            1.. if core.fails(Fault::ChatMembersCountAfterLeaving) => self.left,
            _ => 0,
        };
        // The variant delays counts.
        let young = |created: &Timestamp| core.now.duration_since(*created).as_secs() < 5;
        let (members_young, messages_young) = if core.varies(Variant::ChatCountsLate) {
            let members = self.members.rows().filter(|m| young(&m.joined)).count();
            let messages = self.messages.rows().filter(|m| young(&m.received)).count();
            (members, messages)
        } else {
            (0, 0)
        };
        let below = |name: &str| service.url(core, &["Channels", &self.sid, name]);
        let last_message = match self.messages.rows().next() {
            Some(first) if self.messages.len() > 1 && core.fails(Fault::ChatLastMessageOfFirst) => {
                Some(first)
            }
            _ => self.messages.last(),
        };
        let last_message = last_message
            .map(|message| service.url(core, &["Channels", &self.sid, "Messages", &message.sid]));
        json!({
            "sid": self.sid,
            "account_sid": core.account_sid,
            "service_sid": service.sid,
            "friendly_name": self.friendly_name,
            "unique_name": self.unique_name,
            "attributes": self.attributes,
            "type": self.kind,
            "date_created": core.date(self.created),
            "date_updated": updated(core, self.created, self.updated),
            "created_by": self.created_by,
            "members_count": (self.members.len() + left + self.refused).saturating_sub(members_young),
            "messages_count": messages.saturating_sub(messages_young),
            "url": service.url(core, &["Channels", &self.sid]),
            "links": {
                "members": below("Members"),
                "messages": below("Messages"),
                "invites": below("Invites"),
                "webhooks": below("Webhooks"),
                "last_message": last_message,
            },
        })
    }

    /// The version 3 representation, which includes the messaging service: the given one until an update.
    fn represent_v3(&self, service: &Service, core: &Core, default_is: &str) -> Value {
        let mut value = self.represent(service, core);
        let sid = self.messaging_service_sid.as_deref();
        value["messaging_service_sid"] = json!(sid.unwrap_or(default_is));
        value
    }
}

/// The channel with that SID or unique name (D2, Conventions).
pub(super) fn find<'a>(
    service: &'a Service,
    core: &Core,
    key: &str,
) -> Result<&'a Channel, Refusal> {
    let channels = &service.channels;
    channels.find(key, true).or_else(|refusal| {
        let other = channels.by_name_in_any_case(key);
        let found = other.filter(|_| core.fails(Fault::ChatChannelPathAnyCase));
        found.ok_or(refusal)
    })
}

/// The channel that its own `url` points to.
pub(super) fn fetch(service: &Service, core: &Core, key: &str) -> Answer {
    let channel = service.channels.find(key, true)?;
    Ok(core.ok(&channel.represent(service, core)))
}

/// The channels that a service's link points to.
pub(super) fn read(service: &Service, core: &Core, call: &Call<'_>) -> Answer {
    let list = ("channels", service.url(core, &["Channels"]));
    let show = |channel: &Channel| channel.represent(service, core);
    pages::all(core, call, list, &service.channels, show)
}

/// The type of a new channel.
fn asked_kind(
    service: &mut Service,
    core: &Core,
    call: &Call<'_>,
    known_as: Option<&String>,
) -> Result<String, Refusal> {
    let Some(kind) = call.form.get("Type") else {
        let is_private = core.varies(Variant::ChatChannelTypeDefaultPrivate);
        return Ok(if is_private { "private" } else { "public" }.to_owned());
    };
    let kind = inputs::choice(core, "Type", kind, CREATE_TYPE);
    if let (Err(_), Some(name)) = (&kind, known_as)
        && core.fails(Fault::ChatRefusedChannelTakesName)
    {
        service.lost_names.insert(name.clone());
    }
    kind
}

pub(super) fn create(service: &mut Service, core: &mut Core, call: &Call<'_>) -> Answer {
    let webhooks = inputs::webhooks_enabled(core, call);
    let form = &call.form;
    let name = |parameter: &str, bound: Bound| {
        form.get(parameter)
            .map(|text| inputs::name(core, parameter, text, bound))
            .transpose()
    };
    let friendly_name = name("FriendlyName", FRIENDLY_NAME)?;
    let unique_name = name("UniqueName", UNIQUE_NAME)?;
    // An empty name is not a name: it appears in no path, and several channels may have it.
    let known_as = unique_name.clone().filter(|name| !name.is_empty());
    let (attributes, refusal) =
        match inputs::attributes(core, form, Fault::ChatChannelAttributesUnchecked) {
            Err(refusal) if core.fails(Fault::ChatRefusedChannelStays) => (None, Some(refusal)),
            attributes => (attributes?, None),
        };
    let kind = asked_kind(service, core, call, known_as.as_ref())?;
    let (created, updated) = inputs::backup_dates(core, form)?;
    if known_as
        .as_ref()
        .is_some_and(|name| service.lost_names.contains(name))
    {
        return Err(Refusal::conflict("the unique name exists"));
    }
    let is_taken = |name: &String| service.channels.by_name(name).is_some();
    if let Some(name) = &known_as
        && core.read_or_stale(Fault::ChatRaceUniqueName, || is_taken(name))
        && let Some(known) = service.channels.by_name(name)
        && !core.fails(Fault::ChatUniqueNameNotUnique)
    {
        if core.varies(Variant::ChatSecondChannelIsFirst) {
            return Ok(core.ok(&known.represent(service, core)));
        }
        if known.friendly_name != friendly_name
            && core.fails(Fault::ChatRefusedNamesakeRenamesChannel)
        {
            let sid = known.sid.clone();
            if let Some(known) = service.channels.by_sid_mut(&sid) {
                known.friendly_name = friendly_name;
            }
        }
        return Err(Refusal::conflict("the unique name exists"));
    }
    if let Some(name) = friendly_name.as_ref().filter(|name| !name.is_empty())
        && core.fails(Fault::ChatChannelFriendlyNameUnique)
        && service
            .channels
            .rows()
            .any(|c| c.friendly_name.as_ref() == Some(name))
    {
        return Err(Refusal::conflict("the friendly name exists"));
    }
    let channel = Channel {
        sid: core.sid("CH"),
        created_by: creator(service, core, call),
        members: Table::default(),
        messages: Table::default(),
        next_index: u64::from(core.varies(Variant::ChatFirstIndexOne)),
        invites: Table::default(),
        webhooks: Table::default(),
        left: 0,
        leavers: Table::default(),
        uncounted: 0,
        refused_webhooks: 0,
        refused: 0,
        friendly_name,
        unique_name,
        attributes: attributes.unwrap_or_else(inputs::unset_attributes),
        kind,
        messaging_service_sid: None,
        created,
        updated,
    };
    let sid = channel.sid.clone();
    let creator = channel.created_by.clone();
    service
        .channels
        .insert(sid.clone(), known_as.as_deref(), channel);
    service.disturb(core, Fault::ChatNewChannelMovesInterval);
    if core.varies(Variant::ChatChannelMovesService) {
        service.touch(core.now);
    }
    if core.varies(Variant::ChatCreatorJoins) && creator != SYSTEM {
        let joining = Joining::by_hand(&creator, None, core.now);
        member::join(service, core, &sid, joining)?;
    }
    let value = service.channels.find(&sid, false)?.represent(service, core);
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    if webhooks {
        announce(service, core, &sid, ["onChannelAdd", "onChannelAdded"]);
    }
    Ok(core.created(&value))
}

/// `CreatedBy`, or `system`. D2, Channel says both that it can be given and that it is always `system`.
fn creator(service: &mut Service, core: &mut Core, call: &Call<'_>) -> String {
    match call.form.get("CreatedBy") {
        Some(identity)
            if !identity.is_empty() && !core.varies(Variant::ChatCreatedByAlwaysSystem) =>
        {
            if !core.varies(Variant::ChatAuthorIsNoUser) {
                user::seen(service, core, identity);
            }
            if core.fails(Fault::ChatCreatedByForeign) {
                return format!("{identity}-creator");
            }
            identity.to_owned()
        }
        _ => SYSTEM.to_owned(),
    }
}

/// Changes the type of a channel: the only operation of version 3.
pub(super) fn update_type(
    service: &mut Service,
    core: &mut Core,
    call: &Call<'_>,
    channel: &str,
    messaging_service_sid: &str,
) -> Answer {
    let webhooks = inputs::webhooks_enabled(core, call);
    let channel_key = channel;
    let sid = find(service, core, channel)?.sid.clone();
    let asked = asked_of_v3(core, call);
    let stale = service.channels.find(&sid, false)?;
    let stale = stale.represent_v3(service, core, messaging_service_sid);
    let channel = service
        .channels
        .by_sid_mut(&sid)
        .expect("a channel that was found is there");
    if asked.is_err() && core.varies(Variant::ChatRefusedV3Changes) {
        channel.updated = core.now;
    }
    let counted = channel.messages.len() - channel.uncounted;
    let counted = core.read_or_stale(Fault::ChatRaceChannelUpdate, || counted);
    channel.uncounted = channel.messages.len() - counted;
    let (kind, messaging) = asked?;
    // D2, States: other transitions of the type are not shown.
    if channel.kind == "private" && kind.is_some() && core.varies(Variant::ChatPrivateTypeRefused) {
        return Err(Refusal::conflict("a private channel stays private"));
    }
    let before = (
        channel.kind.clone(),
        channel.messaging_service_sid.clone(),
        channel.updated,
    );
    if let Some(kind) = kind {
        channel.kind = kind;
    }
    if channel.webhooks.len() > 0 && core.fails(Fault::ChatV3DropsWebhooks) {
        channel.webhooks = Table::default();
    }
    if core.fails(Fault::ChatV3ClearsFriendlyName) {
        channel.friendly_name = None;
    }
    if core.fails(Fault::ChatV3ClearsAttributes) {
        "{}".clone_into(&mut channel.attributes);
    }
    if messaging.is_none() && core.fails(Fault::ChatV3ForgetsMessagingService) {
        channel.messaging_service_sid = None;
    }
    if let Some(messaging) = messaging
        && !core.fails(Fault::ChatV3MessagingServiceIgnored)
    {
        channel.messaging_service_sid = Some(messaging);
    }
    if !core.fails(Fault::ChatV3DateStuck) {
        channel.updated = core.now;
    }
    let kind = channel.kind.clone();
    for other in service.channels.rows_mut().filter(|c| c.sid != sid) {
        if core.fails(Fault::ChatV3TakesAll) {
            kind.clone_into(&mut other.kind);
            other.updated = core.now;
        }
    }
    let places = service.users.rows_mut();
    for place in places.filter_map(|user| user.places.by_sid_mut(&sid)) {
        if place.consumed_index.is_some() && core.fails(Fault::ChatV3ForgetsConsumption) {
            place.consumed_index = None;
        }
    }
    let channel = service.channels.by_sid(&sid).expect("it was just there");
    let mut value = channel.represent_v3(service, core, messaging_service_sid);
    if core.fails(Fault::ChatV3AnswerStale) {
        value = stale;
    }
    if webhooks {
        announce(service, core, &sid, ["onChannelUpdate", "onChannelUpdated"]);
    }
    let is_by_name = channel_key != sid;
    if (core.fails(Fault::ChatV3NotPersisted)
        || (is_by_name && core.fails(Fault::ChatV3ByNameNotStored)))
        && let Some(channel) = service.channels.by_sid_mut(&sid)
    {
        (channel.kind, channel.messaging_service_sid, channel.updated) = before;
    }
    Ok(core.ok(&value))
}

/// The parameters of the version 3 update: a type, and a messaging service.
fn asked_of_v3(core: &Core, call: &Call<'_>) -> Result<(Option<String>, Option<String>), Refusal> {
    let kind = call
        .form
        .get("Type")
        .map(|kind| inputs::choice(core, "Type", kind, UPDATE_TYPE))
        .transpose()?;
    let messaging = call
        .form
        .get("MessagingServiceSid")
        .map(|sid| inputs::sid("MessagingServiceSid", sid, "MG"))
        .transpose()?;
    Ok((kind, messaging))
}

fn announce(service: &Service, core: &mut Core, sid: &str, names: [&'static str; 2]) {
    let Some(channel) = service.channels.by_sid(sid) else {
        return;
    };
    let fields = [
        ("ChannelSid", sid),
        ("ChannelType", &channel.kind),
        ("Attributes", &channel.attributes),
        ("CreatedBy", &channel.created_by),
    ];
    let happening = Happening::new(names, &fields);
    delivery::announce(core, service, Some(channel), &happening);
}
