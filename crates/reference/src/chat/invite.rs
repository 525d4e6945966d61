//! Invites: requests to join a channel.

use super::channel::{self, Channel};
use super::former;
use super::inputs;
use super::member;
use super::pages;
use super::role;
use super::service::Service;
use super::updated;
use super::user::{self, Status};
use crate::{Answer, Call, Core, Fault, Refusal, Variant};
use conformant_base::clock::Timestamp;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(super) struct Invite {
    sid: String,
    identity: String,
    role_sid: String,
    /// Whether it shows no role.
    hides_role: bool,
    created: Timestamp,
}

impl Invite {
    fn represent(&self, service: &Service, channel: &Channel, core: &Core) -> Value {
        let mut members = channel.members.rows();
        let joined = members
            .find(|member| member.identity == self.identity)
            .filter(|_| core.varies(Variant::ChatInviteMovesWithJoining));
        let moved = joined.map_or(self.created, |member| member.joined);
        json!({
            "sid": self.sid,
            "account_sid": core.account_sid,
            "channel_sid": channel.sid,
            "service_sid": service.sid,
            "identity": self.identity,
            "role_sid": (!self.hides_role).then_some(&self.role_sid),
            // Only this API invites, and no parameter names an author.
            "created_by": "system",
            "date_created": core.date(self.created),
            "date_updated": updated(core, self.created, moved),
            "url": service.url(core, &["Channels", &channel.sid, "Invites", &self.sid]),
        })
    }
}

pub(super) fn create(
    service: &mut Service,
    core: &mut Core,
    call: &Call<'_>,
    channel: &str,
) -> Answer {
    let form = &call.form;
    let identity = inputs::required(form, "Identity")?;
    let channel = channel::find(service, core, channel)?;
    let known = channel.invites.rows().find(|i| i.identity == identity);
    if let Some(known) = known
        && core.varies(Variant::ChatSecondInviteIsFirst)
    {
        return Ok(core.ok(&known.represent(service, channel, core)));
    }
    let channel_sid = channel.sid.clone();
    if channel
        .members
        .by_name(&user::name_of(core, identity))
        .is_some()
    {
        return Err(Refusal::conflict("the user is a member already"));
    }
    let named_role = form.get("RoleSid");
    if let Some(sid) = named_role {
        let role = role::require(service, "RoleSid", sid, role::CHANNEL);
        if role.is_err() && core.fails(Fault::ChatRefusedInviteInvites) {
            let user_sid = user::seen(service, core, identity);
            if let Some(user) = service.users.by_sid_mut(&user_sid) {
                user.place_in(core, &channel_sid).status = Status::Invited;
            }
        }
        if role.is_err()
            && core.fails(Fault::ChatRefusedInviteTouchesChannel)
            && let Some(channel) = service.channels.by_sid_mut(&channel_sid)
        {
            channel.refused += 1;
        }
        role?;
    }
    let hides_role = named_role.is_none() && core.varies(Variant::ChatInviteRoleNull);
    let role_sid = named_role
        .unwrap_or(&service.fields.default_channel_role_sid)
        .to_owned();
    let user_sid = user::seen(service, core, identity);
    if let Some(user) = service.users.by_sid_mut(&user_sid) {
        if user.friendly_name.is_some() && core.fails(Fault::ChatGuestUnnamed) {
            user.friendly_name = None;
        }
        let place = user.place_in(core, &channel_sid);
        place.invited_role = Some(role_sid.clone());
        place.status = Status::Invited;
    }
    if core.fails(Fault::ChatInviteReplacesOthers) {
        for channel in service.channels.rows_mut() {
            channel.invites.retain(|known| known.identity != identity);
        }
    }
    let invite = Invite {
        sid: core.sid("IN"),
        identity: identity.to_owned(),
        role_sid,
        hides_role,
        created: core.now,
    };
    let channel = service.channels.find(&channel_sid, false)?;
    let value = invite.represent(service, channel, core);
    if let Some(channel) = service.channels.by_sid_mut(&channel_sid)
        && !core.fails(Fault::ChatInviteNotStored)
    {
        channel.invites.insert(invite.sid.clone(), None, invite);
    }
    former::restore_members(
        service,
        core,
        &channel_sid,
        Fault::ChatLeaverReturnsWithInvite,
    );
    if core.fails(Fault::ChatInviteJoins) {
        member::join_by_hand(service, core, &channel_sid, identity)?;
    }
    Ok(core.created(&value))
}

/// The invites that a channel's link points to.
pub(super) fn read(service: &Service, core: &Core, call: &Call<'_>, channel: &str) -> Answer {
    let channel = service.channels.find(channel, true)?;
    let url = service.url(core, &["Channels", &channel.sid, "Invites"]);
    let show = |invite: &Invite| invite.represent(service, channel, core);
    pages::all(core, call, ("invites", url), &channel.invites, show)
}

pub(super) fn fetch(service: &Service, core: &Core, channel: &str, sid: &str) -> Answer {
    let channel = channel::find(service, core, channel)?;
    let invite = channel.invites.find(sid, false)?;
    Ok(core.ok(&invite.represent(service, channel, core)))
}
