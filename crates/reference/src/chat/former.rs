//! Faults: what follows the deletion of a binding or the leave of a member.
//!
//! A service keeps its deleted bindings and a channel its former members: only these faults use them.

use super::channel::Channel;
use super::member::{self, Member};
use super::service::Service;
use super::table::Table;
use super::user::{self, Status, UserPath};
use crate::{Answer, Call, Core, Fault};

/// Added to the sequence number of an item that does not belong in its list, so that it is after all others.
pub(super) const BEHIND: u64 = 1 << 40;

/// Restores the deleted bindings of a service.
pub(super) fn restore_bindings(service: &mut Service, core: &Core, fault: Fault) {
    if service.lost_bindings.len() == 0 || !core.fails(fault) {
        return;
    }
    for lost in service.lost_bindings.drain() {
        service.bindings.insert(lost.sid.clone(), None, lost);
    }
}

/// Restores the former members of a channel.
pub(super) fn restore_members(service: &mut Service, core: &Core, channel_sid: &str, fault: Fault) {
    let Some(channel) = service.channels.by_sid_mut(channel_sid) else {
        return;
    };
    if channel.leavers.len() == 0 || !core.fails(fault) {
        return;
    }
    for leaver in channel.leavers.drain() {
        // A variation forgets the place of a former member, which every member needs.
        let user = service.users.by_sid(&leaver.user_sid);
        if user.is_some_and(|user| user.places.by_sid(channel_sid).is_some()) {
            insert(&mut channel.members, core, leaver);
        }
    }
}

/// Adds a current or former member.
pub(super) fn insert(members: &mut Table<Member>, core: &Core, member: Member) {
    let name = user::name_of(core, &member.identity).into_owned();
    members.insert(member.sid.clone(), Some(&name), member);
}

/// Removes the rows that satisfy the condition.
fn remove_all<T: Clone>(
    table: &mut Table<T>,
    core: &Core,
    fault: Fault,
    is_taken: impl Fn(&T) -> bool,
) {
    if table.rows().any(&is_taken) && core.fails(fault) {
        table.retain(|row| !is_taken(row));
    }
}

/// Faults by which the deletion of a binding changes channels.
pub(super) fn binding_deleted(service: &mut Service, core: &Core, user_sid: &str) {
    let is_member = |member: &Member| member.user_sid == user_sid;
    let has_member = |channel: &Channel| channel.members.rows().any(is_member);
    let is_in_one = service.channels.rows().any(has_member);
    if is_in_one && core.fails(Fault::ChatDeleteBindingEndsMemberships) {
        for channel in service.channels.rows_mut() {
            channel.members.retain(|member| !is_member(member));
        }
        let user = service.users.by_sid_mut(user_sid);
        let places = user.into_iter().flat_map(|user| user.places.rows_mut());
        for place in places.filter(|place| place.status == Status::Joined) {
            place.status = Status::NotParticipating;
        }
    }
    let channels: Vec<_> = service.channels.rows().map(|c| c.sid.clone()).collect();
    for channel in channels {
        let fault = Fault::ChatDeleteBindingRestoresMembers;
        restore_members(service, core, &channel, fault);
    }
}

/// Faults by which the deletion of a binding changes other services.
pub(super) fn delete_elsewhere(
    services: &mut Table<Service>,
    core: &Core,
    sid: &str,
    binding: &str,
) {
    let service = services.by_sid(sid);
    let deleted = service.and_then(|service| service.lost_bindings.by_sid(binding));
    let Some(deleted) = deleted.cloned() else {
        return;
    };
    for other in services.rows_mut().filter(|other| other.sid != sid) {
        let by_identity = Fault::ChatDeleteBindingTakesIdentityElsewhere;
        remove_all(&mut other.bindings, core, by_identity, |binding| {
            binding.identity == deleted.identity
        });
        let by_endpoint = Fault::ChatDeleteBindingTakesEndpointElsewhere;
        remove_all(&mut other.bindings, core, by_endpoint, |binding| {
            binding.endpoint == deleted.endpoint
        });
    }
}

/// Faults by which a leave changes more than the membership.
pub(super) fn member_left(service: &mut Service, core: &Core, channel_sid: &str, user_sid: &str) {
    let bindings = Fault::ChatLeavingTakesBindings;
    remove_all(&mut service.bindings, core, bindings, |binding| {
        binding.user_sid == user_sid
    });
    if let Some(channel) = service.channels.by_sid_mut(channel_sid) {
        let (invites, webhooks) = (
            Fault::ChatLeavingTakesInvites,
            Fault::ChatLeavingTakesWebhooks,
        );
        remove_all(&mut channel.invites, core, invites, |_| true);
        remove_all(&mut channel.webhooks, core, webhooks, |_| true);
        if channel.messages.len() > channel.uncounted
            && core.fails(Fault::ChatLeavingLowersMessagesCount)
        {
            channel.uncounted += 1;
        }
    }
    let others = service.users.rows_mut().filter(|user| user.sid != user_sid);
    for place in others.filter_map(|user| user.places.by_sid_mut(channel_sid)) {
        if place.consumed_index.is_some() && core.fails(Fault::ChatLeavingClearsPositions) {
            place.consumed_index = None;
        }
    }
    restore_bindings(service, core, Fault::ChatDeletedBindingReturnsOnLeave);
}

/// The former member that a fetch finds.
pub(super) fn find_member<'a>(channel: &'a Channel, core: &Core, key: &str) -> Option<&'a Member> {
    let by_sid = channel.leavers.by_sid(key);
    let by_name = channel.leavers.by_name(key);
    by_sid
        .filter(|_| core.fails(Fault::ChatLeaverFetchedBySid))
        .or_else(|| by_name.filter(|_| core.fails(Fault::ChatLeaverFetchedByIdentity)))
}

/// Former members, and members of another channel, that faults list.
pub(super) fn listed_members<'a>(
    service: &'a Service,
    channel: &'a Channel,
    core: &'a Core,
    is_filtered: bool,
) -> impl Iterator<Item = (u64, &'a Member)> {
    let left = channel
        .leavers
        .iter()
        .filter(move |_| is_filtered && core.fails(Fault::ChatLeaverListedByIdentity));
    let others = service.channels.rows().filter(|_| channel.left > 0);
    let mut foreign = others
        .flat_map(|other| other.members.iter())
        .filter(|(_, other)| channel.members.by_name(&other.identity).is_none());
    let foreign = foreign.next();
    let foreign = foreign.filter(|_| core.fails(Fault::ChatLeavingListsOtherChannel));
    left.chain(foreign)
        .map(|(sequence, member)| (BEHIND + sequence, member))
}

/// Updates a former member; `None` if there is none, or without the fault.
pub(super) fn update_member(
    service: &mut Service,
    core: &mut Core,
    call: &Call<'_>,
    channel_sid: &str,
    key: &str,
) -> Option<Answer> {
    let channel = service.channels.by_sid_mut(channel_sid)?;
    let former = channel.leavers.find(key, true).ok()?;
    let user = service.users.by_sid(&former.user_sid)?;
    user.places.by_sid(channel_sid)?;
    if !core.fails(Fault::ChatLeaverUpdated) {
        return None;
    }
    let sid = former.sid.clone();
    let former = channel.leavers.remove(&sid)?;
    insert(&mut channel.members, core, former);
    let answer = member::update(service, core, call, channel_sid, &sid);
    let channel = service.channels.by_sid_mut(channel_sid)?;
    let former = channel.members.remove(&sid)?;
    insert(&mut channel.leavers, core, former);
    Some(answer)
}

/// Adds channels of the same identity in other services to the list of a former member.
pub(super) fn lend_channels(services: &mut Table<Service>, core: &Core, sid: &str, rest: &[&str]) {
    let ["Users", key, "Channels"] = rest else {
        return;
    };
    let service = services.by_sid(sid);
    let Some(user) = service.and_then(|service| service.users.find(key, true).ok()) else {
        return;
    };
    let has_left = |place: &UserPath| place.status == Status::NotParticipating;
    if !user.places.rows().any(has_left) {
        return;
    }
    let others = services.rows().filter(|other| other.sid != sid);
    let elsewhere: Vec<UserPath> = others
        .filter_map(|other| other.users.by_name(&user.identity))
        .flat_map(|user| user.places.rows().cloned())
        .collect();
    if elsewhere.is_empty() || !core.fails(Fault::ChatLeavingListsOtherService) {
        return;
    }
    let user_sid = user.sid.clone();
    let service = services.by_sid_mut(sid);
    if let Some(user) = service.and_then(|service| service.users.by_sid_mut(&user_sid)) {
        user.elsewhere = elsewhere;
    }
}
