//! User channels: the relation of a user to a channel, and its settings.

use super::inputs::{self, Choice};
use super::service::Service;
use super::user::{self, Status, User, UserPath};
use super::{channel, former, member, pages};
use crate::{Answer, Call, Core, Fault, Variant};
use serde_json::{Value, json};

const NOTIFICATION_LEVEL: Choice = Choice {
    values: &["default", "muted"],
    open: Fault::ChatNotificationLevelOpen,
};

fn represent(place: &UserPath, user: &User, service: &Service, core: &Core) -> Value {
    let channel_sid = place.channel_sid.as_str();
    let first = user
        .places
        .rows()
        .next()
        .filter(|f| f.channel_sid != channel_sid);
    let of_first = first.filter(|_| core.fails(Fault::ChatUserChannelMemberOfFirst));
    let linked = of_first.unwrap_or(place);
    let member_url = [
        "Channels",
        &linked.channel_sid,
        "Members",
        &linked.member_sid,
    ];
    json!({
        "account_sid": core.account_sid,
        "service_sid": service.sid,
        "channel_sid": channel_sid,
        "user_sid": user.sid,
        "member_sid": place.member_sid,
        "status": status(place.status, user, core),
        "last_consumed_message_index": place.consumed_index,
        "unread_messages_count": unread(place, service, core),
        "notification_level": place.notification_level,
        "url": service.url(core, &["Users", &user.sid, "Channels", channel_sid]),
        "links": {
            "channel": service.url(core, &["Channels", channel_sid]),
            "member": service.url(core, &member_url),
        },
    })
}

/// D2, User channel: the third value has two spellings.
fn status(status: Status, user: &User, core: &Core) -> &'static str {
    match status {
        Status::Joined => "joined",
        Status::Invited
            if user.joined_channels() > 2 && core.fails(Fault::ChatInvitedAmongManyJoined) =>
        {
            "joined"
        }
        Status::Invited => "invited",
        Status::NotParticipating => "notParticipating",
    }
}

/// Number of messages after the last consumed one.
fn unread(place: &UserPath, service: &Service, core: &Core) -> usize {
    let Some(channel) = service.channels.by_sid(&place.channel_sid) else {
        return 0;
    };
    let consumed = place
        .consumed_index
        .filter(|_| !core.fails(Fault::ChatUnreadCountAll));
    let consumed = consumed
        .filter(|_| channel.messages.len() <= 3 || !core.fails(Fault::ChatUnreadAllBeyondThree));
    let left = match channel.left {
        1.. if core.fails(Fault::ChatLeavingRaisesUnreadCount) => channel.left,
        _ => 0,
    };
    let unread = channel
        .messages
        .rows()
        .rev()
        .take_while(|message| consumed.is_none_or(|index| message.index > index))
        .count();
    unread + left
}

pub(super) fn fetch(service: &mut Service, core: &Core, user: &str, channel: &str) -> Answer {
    let user = user::find(service, core, user)?;
    let channel = channel::find(service, core, channel)?;
    let mut place = user.places.find(&channel.sid, false)?.clone();
    let value = represent(&place, user, service, core);
    if core.fails(Fault::ChatReadingConsumes) {
        place.consumed_index = channel.messages.last().map(|message| message.index);
        let user_sid = user.sid.clone();
        store(service, &user_sid, place);
    }
    Ok(core.ok(&value))
}

pub(super) fn read(service: &Service, core: &Core, call: &Call<'_>, user: &str) -> Answer {
    let user = user::find(service, core, user)?;
    let others = service
        .users
        .rows()
        .filter(|other| other.sid != user.sid)
        .flat_map(|other| other.places.iter())
        .filter(|_| core.fails(Fault::ChatUserChannelsOfEverybody));
    let items = user
        .places
        .iter()
        .chain(others)
        .chain((former::BEHIND..).zip(&user.elsewhere))
        .map(|(sequence, place)| (sequence, place.clone()))
        .chain(public_channels(service, core, user))
        .filter(|(_, place)| {
            place.status == Status::Joined || !core.varies(Variant::ChatJoinedChannelsOnlyListed)
        })
        .map(|(sequence, place)| (sequence, move || represent(&place, user, service, core)));
    let url = service.url(core, &["Users", &user.sid, "Channels"]);
    pages::user_channels(core, call, url)?.page(core, call, items)
}

/// Updates a user channel: only three parameters are writable.
pub(super) fn update(
    service: &mut Service,
    core: &mut Core,
    call: &Call<'_>,
    user: &str,
    channel: &str,
) -> Answer {
    let form = &call.form;
    let consumed = (
        inputs::index(form, "LastConsumedMessageIndex")?,
        inputs::date(form, "LastConsumptionTimestamp")?,
    );
    let user = user::find(service, core, user)?;
    let channel = channel::find(service, core, channel)?;
    let found = user.places.find(&channel.sid, false)?;
    let read = |fault| core.read_or_stale(fault, || found.clone());
    let undone = read(Fault::ChatRaceUpdateUndone);
    let undone = Some(undone).filter(|then| then != found);
    let mut place = read(Fault::ChatRaceUpdateLost);
    let user_sid = user.sid.clone();
    let level = form
        .get("NotificationLevel")
        .map(|level| inputs::choice(core, "NotificationLevel", level, NOTIFICATION_LEVEL))
        .transpose();
    if level.is_err() && core.fails(Fault::ChatRefusedLevelMovesIndex) {
        let index = consumed.0.unwrap_or_default();
        member::consume(core, &mut place, (Some(index), consumed.1));
        store(service, &user_sid, place);
        return Err(level.expect_err("it was just one"));
    }
    let level = level?;
    if let Some(level) = &level {
        level.clone_into(&mut place.notification_level);
    }
    member::consume(core, &mut place, consumed);
    if consumed.0.is_none()
        && place.consumed_index.is_some()
        && core.fails(Fault::ChatUserChannelLevelClearsIndex)
    {
        place.consumed_index = None;
    }
    if level.is_none()
        && place.notification_level != "default"
        && core.fails(Fault::ChatUserChannelIndexResetsLevel)
    {
        "default".clone_into(&mut place.notification_level);
    }
    let value = represent(&place, user, service, core);
    if let Some(level) = &level {
        share_level(service, core, &user_sid, &place.channel_sid, level);
    }
    if let Some(index) = consumed.0 {
        let others = service.users.rows_mut().filter(|user| user.sid != user_sid);
        for other in others.filter_map(|user| user.places.by_sid_mut(&place.channel_sid)) {
            if core.fails(Fault::ChatUserChannelIndexOverUsers) {
                other.consumed_index = Some(index);
            }
        }
    }
    let here = (&*user_sid, &*place.channel_sid);
    let fault = Fault::ChatUserChannelConsumesEverywhere;
    member::consume_elsewhere(service, core, here, consumed.0, fault);
    if !core.fails(Fault::ChatUpdateUserChannelNotPersisted) {
        member::touch(service, core, &place);
        store(service, &user_sid, undone.unwrap_or(place));
    }
    Ok(core.ok(&value))
}

/// Public channels without a relation to the user, for the variant that lists them.
fn public_channels(service: &Service, core: &Core, user: &User) -> Vec<(u64, UserPath)> {
    if !core.varies(Variant::ChatPublicChannelsListed) {
        return Vec::new();
    }
    let behind = user
        .places
        .iter()
        .last()
        .map_or(0, |(sequence, _)| sequence);
    let channels = service.channels.iter();
    channels
        .filter(|(_, c)| c.is_public() && user.places.by_sid(&c.sid).is_none())
        .map(|(sequence, channel)| (behind + sequence, UserPath::strange(&channel.sid)))
        .collect()
}

/// Stores a place; a public channel without a relation has none before.
fn store(service: &mut Service, user_sid: &str, place: UserPath) {
    let Some(user) = service.users.by_sid_mut(user_sid) else {
        return;
    };
    match user.places.by_sid_mut(&place.channel_sid) {
        Some(stored) => *stored = place,
        None => {
            let channel_sid = place.channel_sid.clone();
            user.places.insert(channel_sid, None, place);
        }
    }
}

/// Faults: a level applies to more than its user and channel.
fn share_level(service: &mut Service, core: &Core, user_sid: &str, channel_sid: &str, level: &str) {
    let over_channels = core.fails(Fault::ChatNotificationLevelOverChannels);
    let over_users = core.fails(Fault::ChatNotificationLevelOverUsers);
    for user in service.users.rows_mut() {
        let same_user = user.sid == user_sid;
        for place in user.places.rows_mut() {
            let same_channel = place.channel_sid == channel_sid;
            if (same_user && over_channels) || (same_channel && over_users) {
                level.clone_into(&mut place.notification_level);
            }
        }
    }
}
