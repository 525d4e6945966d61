//! Members: users in channels.
//!
//! The read position is stored with the user (`user::Place`), because the user channel uses it, too.

use super::channel::{self, Channel};
use super::delivery::{self, Happening};
use super::former;
use super::inputs;
use super::service::Service;
use super::updated;
use super::user::{self, Status};
use super::{pages, role};
use crate::{Answer, Call, Core, Fault, Listing, Params, Refusal, Variant};
use conformant_base::clock::Timestamp;
use serde_json::{Value, json};

const ATTRIBUTES_UNCHECKED: Fault = Fault::ChatMemberAttributesUnchecked;

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) sid: String,
    pub(super) user_sid: String,
    pub(super) identity: String,
    /// When the user joined; independent of a restored `created`.
    pub(super) joined: Timestamp,
    role_sid: String,
    attributes: String,
    created: Timestamp,
    updated: Timestamp,
    /// The member before its last update.
    before: Option<Box<Member>>,
}

impl Member {
    fn represent(&self, service: &Service, channel: &Channel, core: &Core) -> Value {
        let place = service
            .users
            .by_sid(&self.user_sid)
            .and_then(|user| user.places.by_sid(&channel.sid));
        json!({
            "sid": self.sid,
            "account_sid": core.account_sid,
            "channel_sid": channel.sid,
            "service_sid": service.sid,
            "identity": self.identity,
            "role_sid": self.role_sid,
            "last_consumed_message_index": place.and_then(|p| p.consumed_index),
            "last_consumption_timestamp":
                place.and_then(|p| p.consumed_at).map(|at| core.date(at)),
            "date_created": core.date(self.created),
            "date_updated": updated(core, self.created, self.updated),
            "attributes": self.attributes,
            "url": service.url(core, &["Channels", &channel.sid, "Members", &self.sid]),
        })
    }
}

/// A member to create, from a request or hook.
#[derive(Debug)]
pub(super) struct Joining<'a> {
    identity: &'a str,
    role_sid: Option<&'a str>,
    attributes: Option<String>,
    consumed_index: Option<u64>,
    consumed_at: Option<Timestamp>,
    dates: (Timestamp, Timestamp),
}

impl<'a> Joining<'a> {
    /// A member with only an identity and possibly a role.
    pub(super) fn by_hand(identity: &'a str, role_sid: Option<&'a str>, now: Timestamp) -> Self {
        Self {
            identity,
            role_sid,
            attributes: None,
            consumed_index: None,
            consumed_at: None,
            dates: (now, now),
        }
    }
}

/// Adds an identity as a member within the limits of the service.
pub(super) fn join(
    service: &mut Service,
    core: &mut Core,
    channel_sid: &str,
    joining: Joining<'_>,
) -> Result<String, Refusal> {
    let channel = service.channels.find(channel_sid, false)?;
    let name = user::name_of(core, joining.identity).into_owned();
    let is_member = channel.members.by_name(&name).is_some();
    let was_member = core.read_or_stale(Fault::ChatRaceMember, || is_member);
    if is_member && was_member {
        if core.fails(Fault::ChatRefusedMemberCounts)
            && let Some(channel) = service.channels.by_sid_mut(channel_sid)
        {
            channel.refused += 1;
        }
        return Err(Refusal::conflict("the user is a member already"));
    }
    check_limits(service, core, channel, &name)?;
    let known = service.users.by_name(&name);
    let status = known
        .and_then(|user| user.places.by_sid(channel_sid))
        .map(|p| p.status);
    if status == Some(Status::NotParticipating) && core.fails(Fault::ChatLeaverRefused) {
        return Err(Refusal::conflict("the user has left"));
    }
    let is_later = channel.members.len() > 2;
    let created_here = channel.created_by == joining.identity
        || (is_later && core.fails(Fault::ChatFourthMemberCreatorRole));
    let user_sid = user::seen(service, core, joining.identity);
    let role_sid = joining
        .role_sid
        .map_or_else(|| default_role(service, core, created_here), str::to_owned);
    let user = service
        .users
        .by_sid_mut(&user_sid)
        .expect("a user that was seen is there");
    let of_user = user.attributes.clone();
    let place = user.place_in(core, channel_sid);
    if is_member {
        place.member_sid = core.sid("MB");
    }
    let kept =
        (of_user != "{}" && core.fails(Fault::ChatMemberAttributesOfUser)).then_some(of_user);
    if status != Some(Status::Invited) || !core.fails(Fault::ChatGuestStaysInvited) {
        place.status = Status::Joined;
    }
    if joining.consumed_index.is_some() {
        place.consumed_index = joining.consumed_index;
        place.consumed_at = joining.consumed_at.or(Some(core.now));
    } else if joining.consumed_at.is_some() {
        place.consumed_at = joining.consumed_at;
    }
    let (created, updated) = joining.dates;
    let member = Member {
        sid: place.member_sid.clone(),
        user_sid,
        identity: joining.identity.to_owned(),
        role_sid,
        attributes: joining
            .attributes
            .or(kept)
            .unwrap_or_else(inputs::unset_attributes),
        joined: core.now,
        created,
        updated,
        before: None,
    };
    let sid = member.sid.clone();
    let channel = service
        .channels
        .by_sid_mut(channel_sid)
        .expect("the channel was found above");
    channel
        .leavers
        .retain(|leaver| leaver.user_sid != member.user_sid);
    channel.members.insert(sid.clone(), Some(&name), member);
    former::restore_members(
        service,
        core,
        channel_sid,
        Fault::ChatLeaverReturnsWithAnother,
    );
    former::restore_bindings(service, core, Fault::ChatDeletedBindingReturnsOnJoin);
    Ok(sid)
}

/// D2, Limits: members per channel and channels per user, as the service sets them.
fn check_limits(
    service: &Service,
    core: &Core,
    channel: &Channel,
    name: &str,
) -> Result<(), Refusal> {
    let limits = &service.fields.limits;
    let reached = |count: usize, limit: u64, [unbounded, one_more, tight]: [Fault; 3]| {
        let one_more = count as u64 == limit && core.fails(one_more);
        let limit = limit.saturating_sub(u64::from(core.fails(tight)));
        count as u64 >= limit && !one_more && !core.fails(unbounded)
    };
    let left = match channel.left {
        1.. if core.fails(Fault::ChatLeaversFillChannel) => channel.left,
        _ => 0,
    };
    let invited = match channel.invites.len() {
        count @ 1.. if core.fails(Fault::ChatInvitesFillChannel) => count,
        _ => 0,
    };
    let members = channel.members.len() + left + invited;
    let members = core.read_or_stale(Fault::ChatRaceMembers, || members);
    if reached(
        members,
        limits.channel_members,
        [
            Fault::ChatChannelMembersUnbounded,
            Fault::ChatChannelMembersOneMore,
            Fault::ChatChannelMembersTight,
        ],
    ) {
        return Err(Refusal::conflict(
            "the channel has all the members it may have",
        ));
    }
    let joined = service.users.by_name(name).map_or(0, |user| {
        let joined = user.joined_channels();
        let ever = user.places.len();
        if ever > joined && core.fails(Fault::ChatLeaversFillUser) {
            ever
        } else {
            joined
        }
    });
    let joined = core.read_or_stale(Fault::ChatRaceUserChannels, || joined);
    if reached(
        joined,
        limits.user_channels,
        [
            Fault::ChatUserChannelsUnbounded,
            Fault::ChatUserChannelsOneMore,
            Fault::ChatUserChannelsTight,
        ],
    ) {
        return Err(Refusal::conflict(
            "the user is in all the channels it may be in",
        ));
    }
    Ok(())
}

/// Default role of a member (D2, Service: the default roles).
fn default_role(service: &Service, core: &Core, is_creator: bool) -> String {
    let fields = &service.fields;
    let role = if core.fails(Fault::ChatMemberRoleDefaultIgnored) {
        &fields.default_service_role_sid
    } else if is_creator && !core.varies(Variant::ChatCreatorIsOrdinaryMember) {
        &fields.default_channel_creator_role_sid
    } else if service.first_default_channel_role != fields.default_channel_role_sid
        && core.fails(Fault::ChatNewMemberFirstDefaultRole)
    {
        &service.first_default_channel_role
    } else {
        &fields.default_channel_role_sid
    };
    role.clone()
}

pub(super) fn create(
    service: &mut Service,
    core: &mut Core,
    call: &Call<'_>,
    channel: &str,
) -> Answer {
    let webhooks = inputs::webhooks_enabled(core, call);
    let form = &call.form;
    let identity = inputs::required(form, "Identity")?;
    let channel_sid = channel::find(service, core, channel)?.sid.clone();
    let role_sid = form.get("RoleSid");
    let name = user::name_of(core, identity);
    let channel = service.channels.find(&channel_sid, false)?;
    if let Some(known) = channel.members.by_name(&name)
        && core.varies(Variant::ChatSecondMemberIsFirst)
    {
        return Ok(core.ok(&known.represent(service, channel, core)));
    }
    if let Some(sid) = role_sid {
        let known = role::require(service, "RoleSid", sid, role::CHANNEL);
        if known.is_err() && core.fails(Fault::ChatRefusedMemberMakesUser) {
            user::seen(service, core, identity);
        }
        let is_well_formed = || inputs::sid("RoleSid", sid, "RL").is_ok();
        if known.is_err()
            && (core.fails(Fault::ChatRefusedMemberStays)
                || (is_well_formed() && core.fails(Fault::ChatUnknownRoleMemberStays)))
        {
            let joining = Joining::by_hand(identity, None, core.now);
            join(service, core, &channel_sid, joining)?;
        }
        known?;
    }
    change_namesake(service, core, &channel_sid, identity, form);
    let restored = !core.varies(Variant::ChatBackupParametersIgnored);
    let joining = Joining {
        identity,
        role_sid,
        attributes: inputs::attributes(core, form, ATTRIBUTES_UNCHECKED)?,
        consumed_index: inputs::index(form, "LastConsumedMessageIndex")?.filter(|_| restored),
        consumed_at: inputs::date(form, "LastConsumptionTimestamp")?.filter(|_| restored),
        dates: inputs::backup_dates(core, form)?,
    };
    let sid = join(service, core, &channel_sid, joining)?;
    service.disturb(core, Fault::ChatNewMemberMovesInterval);
    if core.fails(Fault::ChatMemberMadeTwice)
        && let Some(channel) = service.channels.by_sid_mut(&channel_sid)
    {
        let mut twin = channel.members.find(&sid, false)?.clone();
        twin.sid = core.sid("MB");
        channel.members.insert(twin.sid.clone(), None, twin);
    }
    let channel = service.channels.find(&channel_sid, false)?;
    let value = channel
        .members
        .find(&sid, false)?
        .represent(service, channel, core);
    if webhooks {
        announce(service, core, &channel_sid, &sid, ADDED);
    }
    Ok(core.created(&value))
}

/// Fault: a refused second member changes the attributes of the first.
fn change_namesake(
    service: &mut Service,
    core: &Core,
    channel_sid: &str,
    identity: &str,
    form: &Params,
) {
    let name = user::name_of(core, identity);
    let channel = service.channels.by_sid_mut(channel_sid);
    let known = channel.and_then(|channel| {
        let sid = channel.members.by_name(&name)?.sid.clone();
        channel.members.by_sid_mut(&sid)
    });
    if let (Some(known), Some(attributes)) = (known, form.get("Attributes"))
        && known.attributes != attributes
        && core.fails(Fault::ChatRefusedNamesakeChangesMember)
    {
        attributes.clone_into(&mut known.attributes);
    }
}

/// A person joins a channel on a device, with the role of an invitation.
pub(super) fn join_by_hand(
    service: &mut Service,
    core: &mut Core,
    channel_sid: &str,
    identity: &str,
) -> Result<String, Refusal> {
    let invited_role = service
        .users
        .by_name(&user::name_of(core, identity))
        .and_then(|user| user.places.by_sid(channel_sid))
        .and_then(|place| place.invited_role.clone());
    let joining = Joining::by_hand(identity, invited_role.as_deref(), core.now);
    let sid = join(service, core, channel_sid, joining)?;
    announce(service, core, channel_sid, &sid, ADDED);
    Ok(sid)
}

/// A person leaves a channel on a device.
pub(super) fn leave_by_hand(
    service: &mut Service,
    core: &mut Core,
    channel_sid: &str,
    identity: &str,
) -> Result<(), Refusal> {
    let name = user::name_of(core, identity);
    let channel = service.channels.find(channel_sid, false)?;
    let member = channel
        .members
        .by_name(&name)
        .ok_or_else(Refusal::not_found)?;
    let (sid, user_sid) = (member.sid.clone(), member.user_sid.clone());
    announce(service, core, channel_sid, &sid, REMOVED);
    if let Some(channel) = service.channels.by_sid_mut(channel_sid) {
        if core.fails(Fault::ChatLeftMemberListed) {
            channel.members.forget(&sid);
        } else if let Some(removed) = channel.members.remove(&sid) {
            former::insert(&mut channel.leavers, core, removed);
        }
        channel.left += 1;
        if channel.members.len() > 0 && core.fails(Fault::ChatLeavingTakesOthers) {
            channel.members.retain(|_| false);
        }
    }
    if core.fails(Fault::ChatLeavingTakesElsewhere) {
        for channel in service.channels.rows_mut() {
            channel.members.retain(|other| other.user_sid != user_sid);
        }
    }
    former::member_left(service, core, channel_sid, &user_sid);
    let Some(user) = service.users.by_sid_mut(&user_sid) else {
        return Ok(());
    };
    if core.varies(Variant::ChatLeftChannelForgotten) {
        user.places.remove(channel_sid);
    } else if let Some(place) = user.places.by_sid_mut(channel_sid) {
        place.status = Status::NotParticipating;
    }
    Ok(())
}

/// The member with that SID or identity (D2, Conventions).
fn find<'a>(channel: &'a Channel, core: &Core, key: &str) -> Result<&'a Member, Refusal> {
    let faults = [
        Fault::ChatMemberPathAccentless,
        Fault::ChatMemberPathAnyCase,
    ];
    user::find_in(&channel.members, core, key, faults)
}

pub(super) fn fetch(service: &Service, core: &Core, channel: &str, member: &str) -> Answer {
    let channel = channel::find(service, core, channel)?;
    let found = find(channel, core, member);
    let member =
        found.or_else(|refusal| former::find_member(channel, core, member).ok_or(refusal))?;
    let member = match &member.before {
        Some(before) if core.fails(Fault::ChatMemberFetchStale) => before,
        Some(_) | None => member,
    };
    Ok(core.ok(&member.represent(service, channel, core)))
}

/// Lists the members of a channel, all or those with the given identities.
pub(super) fn read(service: &Service, core: &Core, call: &Call<'_>, channel: &str) -> Answer {
    let channel = channel::find(service, core, channel)?;
    let wanted = pages::MEMBERS_IDENTITY.wanted(core, call);
    let others = service
        .channels
        .rows()
        .filter(|other| other.sid != channel.sid && core.fails(Fault::ChatMembersOfAllChannels))
        .flat_map(|other| other.members.iter());
    let items: Vec<_> = channel
        .members
        .iter()
        .chain(others)
        .chain(former::listed_members(
            service,
            channel,
            core,
            !wanted.is_empty(),
        ))
        .filter(|(_, member)| {
            wanted.is_empty()
                || wanted.iter().any(|w| {
                    user::name_of(core, w) == user::name_of(core, &member.identity)
                        || (w.eq_ignore_ascii_case(&member.identity)
                            && core.fails(Fault::ChatMembersFilterAnyCase))
                        || (member.identity == w.replace('é', "e")
                            && core.fails(Fault::ChatMembersFilterAccentless))
                        || (member.identity.starts_with(&**w)
                            && core.fails(Fault::ChatMembersFilterPrefix))
                })
        })
        .filter(|(_, member)| pages::is_listed(core, member.joined))
        .flat_map(|(sequence, member)| {
            let show = move || member.represent(service, channel, core);
            let asked = wanted.iter().filter(|w| member.identity == ***w);
            let is_repeated = asked.count() > 1 && core.fails(Fault::ChatFilterValueTwice);
            vec![(sequence, show); 1 + usize::from(is_repeated)]
        })
        .collect();
    if items.is_empty() && !wanted.is_empty() && core.fails(Fault::ChatFilterForNothingRefused) {
        return Err(Refusal::not_found());
    }
    let url = service.url(core, &["Channels", &channel.sid, "Members"]);
    let filters = pages::filters(call, &[pages::MEMBERS_IDENTITY]);
    let list = pages::list(core, "members", url);
    Listing { filters, ..list }.page(core, call, items)
}

/// Faults that change something although the update is refused.
fn change_though_refused(
    service: &mut Service,
    core: &Core,
    call: &Call<'_>,
    (channel_sid, before): (&str, &Member),
) {
    if core.fails(Fault::ChatRefusedMemberUpdateChanges) {
        let mut member = before.clone();
        member.updated = core.now;
        store(service, channel_sid, member);
        return;
    }
    if let Ok(index @ Some(_)) = inputs::index(&call.form, "LastConsumedMessageIndex")
        && let Some(sid) = call.form.get("RoleSid")
        && inputs::sid("RoleSid", sid, "RL").is_ok()
        && core.fails(Fault::ChatUnknownRoleMemberChanges)
    {
        consume(core, place(service, before, channel_sid), (index, None));
    }
}

pub(super) fn update(
    service: &mut Service,
    core: &mut Core,
    call: &Call<'_>,
    channel: &str,
    member: &str,
) -> Answer {
    let webhooks = inputs::webhooks_enabled(core, call);
    let form = &call.form;
    let channel = channel::find(service, core, channel)?;
    let channel_sid = channel.sid.clone();
    if find(channel, core, member).is_err()
        && let Some(answer) = former::update_member(service, core, call, &channel_sid, member)
    {
        return answer;
    }
    let found = find(service.channels.find(&channel_sid, false)?, core, member)?;
    let (before, place_before) = core.read_or_stale(Fault::ChatRaceUpdateLost, || {
        let user = service.users.by_sid(&found.user_sid);
        let place = user.and_then(|user| user.places.by_sid(&channel_sid));
        (found.clone(), place.cloned())
    });
    let mut member = before.clone();
    let asked = Change::asked(service, core, form);
    if asked.is_err() {
        change_though_refused(service, core, call, (&channel_sid, &before));
    }
    let Change {
        role_sid,
        attributes,
        consumed,
    } = asked?;
    match role_sid {
        Some(sid) => member.role_sid = sid,
        None if core.fails(Fault::ChatUpdateMemberResetsRole) => {
            member.role_sid = default_role(service, core, false);
        }
        None => {}
    }
    match attributes {
        Some(attributes) => member.attributes = attributes,
        None if member.attributes != "{}"
            && core.fails(Fault::ChatUpdateMemberClearsAttributes) =>
        {
            "{}".clone_into(&mut member.attributes);
        }
        None => {}
    }
    if core.fails(Fault::ChatUpdateMemberMovesCreation) {
        member.created = core.now;
    }
    if !core.fails(Fault::ChatUpdateMemberDateStuck) {
        member.updated = core.now;
    }
    member.before = Some(Box::new(before.clone()));
    let place_now = place(service, &before, &channel_sid);
    if let Some(then) = place_before {
        *place_now = then;
    }
    if place_now.notification_level != "default" && core.fails(Fault::ChatUpdateMemberResetsLevel) {
        "default".clone_into(&mut place_now.notification_level);
    }
    let place_before = place_now.clone();
    if consumed.0.is_none()
        && place_now.consumed_index.is_some()
        && core.fails(Fault::ChatUpdateMemberClearsConsumption)
    {
        place_now.consumed_index = None;
    }
    consume(core, place_now, consumed);
    consume_elsewhere(
        service,
        core,
        (&member.user_sid, &channel_sid),
        consumed.0,
        Fault::ChatMemberConsumesEverywhere,
    );
    store(service, &channel_sid, member.clone());
    if form.has("RoleSid") {
        share_role(service, core, &channel_sid, &member);
        if core.fails(Fault::ChatUpdateMemberHitsNamesakes) {
            let members = service
                .channels
                .rows_mut()
                .flat_map(|c| c.members.rows_mut());
            for other in members.filter(|other| other.identity == member.identity) {
                other.role_sid.clone_from(&member.role_sid);
            }
        }
    }
    let value = member.represent(service, service.channels.find(&channel_sid, false)?, core);
    if core.fails(Fault::ChatUpdateMemberNotPersisted) {
        *place(service, &before, &channel_sid) = place_before;
        store(service, &channel_sid, before);
    }
    if webhooks {
        announce(service, core, &channel_sid, &member.sid, UPDATED);
    }
    former::restore_members(
        service,
        core,
        &channel_sid,
        Fault::ChatLeaverReturnsWithUpdate,
    );
    Ok(core.ok(&value))
}

/// Parameters of an update.
struct Change {
    role_sid: Option<String>,
    attributes: Option<String>,
    consumed: (Option<u64>, Option<Timestamp>),
}

impl Change {
    fn asked(service: &Service, core: &Core, form: &Params) -> Result<Self, Refusal> {
        if let Some(sid) = form.get("RoleSid") {
            role::require(service, "RoleSid", sid, role::CHANNEL)?;
        }
        Ok(Self {
            role_sid: form.get("RoleSid").map(str::to_owned),
            attributes: inputs::attributes(core, form, ATTRIBUTES_UNCHECKED)?,
            consumed: (
                inputs::index(form, "LastConsumedMessageIndex")?,
                inputs::date(form, "LastConsumptionTimestamp")?,
            ),
        })
    }
}

/// Fault: a role given to one member is given to all members of the channel.
fn share_role(service: &mut Service, core: &Core, channel_sid: &str, of: &Member) {
    let Some(channel) = service.channels.by_sid_mut(channel_sid) else {
        return;
    };
    for other in channel.members.rows_mut().filter(|m| m.sid != of.sid) {
        if core.fails(Fault::ChatUpdateMemberTakesAll) {
            of.role_sid.clone_into(&mut other.role_sid);
        }
    }
}

/// Stores the read position, and its time: given or now.
pub(super) fn consume(
    core: &Core,
    place: &mut user::UserPath,
    (index, at): (Option<u64>, Option<Timestamp>),
) {
    if index.is_some() {
        place.consumed_index = index;
        // D2, Member, does not say what changes the time of consumption.
        if !core.varies(Variant::ChatConsumptionNotTimed) {
            place.consumed_at = Some(core.now);
        }
    }
    if at.is_some() {
        place.consumed_at = at;
    }
}

/// Fault: a read position in one channel counts in all channels of the user.
pub(super) fn consume_elsewhere(
    service: &mut Service,
    core: &Core,
    (user_sid, channel_sid): (&str, &str),
    index: Option<u64>,
    fault: Fault,
) {
    let Some(user) = service.users.by_sid_mut(user_sid) else {
        return;
    };
    let others = user
        .places
        .rows_mut()
        .filter(|p| p.channel_sid != channel_sid);
    for other in others.filter(|_| index.is_some()) {
        if core.fails(fault) {
            other.consumed_index = index;
        }
    }
}

/// Variant: an update of a user channel also updates the member.
pub(super) fn touch(service: &mut Service, core: &Core, place: &user::UserPath) {
    let channel = service.channels.by_sid_mut(&place.channel_sid);
    if let Some(member) = channel.and_then(|c| c.members.by_sid_mut(&place.member_sid))
        && core.varies(Variant::ChatConsumptionMovesMember)
    {
        member.updated = core.now;
    }
}

fn place<'a>(
    service: &'a mut Service,
    member: &Member,
    channel_sid: &str,
) -> &'a mut user::UserPath {
    service
        .users
        .by_sid_mut(&member.user_sid)
        .and_then(|user| user.places.by_sid_mut(channel_sid))
        .expect("a member's user has a place in the channel")
}

fn store(service: &mut Service, channel_sid: &str, member: Member) {
    let stored = service
        .channels
        .by_sid_mut(channel_sid)
        .and_then(|channel| channel.members.by_sid_mut(&member.sid))
        .expect("a member that was found is there");
    *stored = member;
}

/// Names of the events when a member comes, changes and leaves.
const ADDED: [&str; 2] = ["onMemberAdd", "onMemberAdded"];
const UPDATED: [&str; 2] = ["onMemberUpdate", "onMemberUpdated"];
const REMOVED: [&str; 2] = ["onMemberRemove", "onMemberRemoved"];

fn announce(
    service: &Service,
    core: &mut Core,
    channel_sid: &str,
    member_sid: &str,
    names: [&'static str; 2],
) {
    let channel = service.channels.by_sid(channel_sid);
    if let Some(channel) = channel
        && let Some(member) = channel.members.by_sid(member_sid)
    {
        let fields = [
            ("ChannelSid", channel.sid.as_str()),
            ("MemberSid", &member.sid),
            ("Identity", &member.identity),
            ("RoleSid", &member.role_sid),
        ];
        let happening = Happening::new(names, &fields);
        delivery::announce(core, service, Some(channel), &happening);
    }
}
