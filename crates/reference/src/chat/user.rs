//! Users: known to a service by an identity that the application chooses; also their places in channels.

use super::delivery::{self, Happening};
use super::inputs;
use super::pages;
use super::role;
use super::service::Service;
use super::table::Table;
use super::updated;
use crate::{Answer, Call, Core, Fault, Refusal, Variant};
use conformant_base::clock::Timestamp;
use serde_json::{Value, json};
use std::borrow::Cow;

#[derive(Clone, Debug)]
pub(super) struct User {
    pub(super) sid: String,
    pub(super) identity: String,
    /// `None` if the user was never online.
    pub(super) online: Option<bool>,
    /// Places in channels, by the channel's SID.
    pub(super) places: Table<UserPath>,
    /// Fault: places in other services that the list of its channels contains.
    pub(super) elsewhere: Vec<UserPath>,
    pub(super) attributes: String,
    pub(super) friendly_name: Option<String>,
    role_sid: String,
    created: Timestamp,
}

/// Relation of a user to a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UserPath {
    pub(super) channel_sid: String,
    /// The SID of the member: former, current or future.
    pub(super) member_sid: String,
    pub(super) status: Status,
    /// The role of an invitation.
    pub(super) invited_role: Option<String>,
    pub(super) notification_level: String,
    pub(super) consumed_index: Option<u64>,
    pub(super) consumed_at: Option<Timestamp>,
}

impl UserPath {
    /// The place of a user without a relation to the channel.
    pub(super) fn strange(channel_sid: &str) -> Self {
        Self {
            channel_sid: channel_sid.to_owned(),
            member_sid: format!("MB{}", &channel_sid[2..]),
            status: Status::NotParticipating,
            invited_role: None,
            notification_level: "default".to_owned(),
            consumed_index: None,
            consumed_at: None,
        }
    }
}

/// User-channel status (D2, States and transitions).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// A member.
    Joined,
    /// Invited.
    Invited,
    /// Left.
    NotParticipating,
}

impl User {
    fn new(service: &Service, core: &mut Core, identity: &str) -> Self {
        let fields = &service.fields;
        let first = service.users.rows().next();
        let role_sid = if core.fails(Fault::ChatUserRoleDefaultIgnored) {
            &fields.default_channel_role_sid
        } else {
            &fields.default_service_role_sid
        };
        Self {
            sid: match first {
                Some(first) if core.fails(Fault::ChatUsersShareSid) => first.sid.clone(),
                Some(_) | None => core.sid("US"),
            },
            identity: identity.to_owned(),
            online: None,
            places: Table::default(),
            elsewhere: Vec::new(),
            attributes: inputs::unset_attributes(),
            friendly_name: None,
            role_sid: role_sid.clone(),
            created: core.now,
        }
    }

    /// Number of channels of which the user is a member.
    pub(super) fn joined_channels(&self) -> usize {
        self.places
            .rows()
            .filter(|place| place.status == Status::Joined)
            .count()
    }

    /// The shown number of joined channels.
    fn counted_channels(&self, core: &Core) -> usize {
        let others = |status, fault| {
            let places = self.places.rows().filter(|place| place.status == status);
            match places.count() {
                0 => 0,
                count if core.fails(fault) => count,
                _ => 0,
            }
        };
        self.joined_channels()
            + others(Status::NotParticipating, Fault::ChatJoinedCountAfterLeaving)
            + others(Status::Invited, Fault::ChatJoinedCountInvited)
    }

    /// The place in a channel; created as invited if there is none.
    pub(super) fn place_in(&mut self, core: &mut Core, channel_sid: &str) -> &mut UserPath {
        if self.places.by_sid(channel_sid).is_none() {
            let place = UserPath {
                channel_sid: channel_sid.to_owned(),
                member_sid: core.sid("MB"),
                status: Status::Invited,
                invited_role: None,
                notification_level: if core.varies(Variant::ChatMutedAtFirst) {
                    "muted"
                } else {
                    "default"
                }
                .to_owned(),
                consumed_index: None,
                consumed_at: None,
            };
            self.places.insert(channel_sid.to_owned(), None, place);
        }
        self.places
            .by_sid_mut(channel_sid)
            .expect("it was made if it was not there")
    }

    fn represent(&self, service: &Service, core: &Core) -> Value {
        // D2, User: null if reachability is off or the user was never online.
        let reachable = service.fields.reachability_enabled;
        let online = self.online.filter(|_| reachable);
        let online = match online {
            None if reachable && core.varies(Variant::ChatOfflineAtCreation) => Some(false),
            None if !reachable && core.fails(Fault::ChatOnlineWithoutReachability) => Some(false),
            online => online,
        };
        let is_bound = || {
            let mut bindings = service.bindings.rows();
            bindings.any(|binding| binding.user_sid == self.sid)
        };
        let notifiable = online.map(|_| is_bound());
        let url = service.url(core, &["Users", &self.sid]);
        let link = |below: &str| service.url(core, &["Users", &self.sid, below]);
        json!({
            "sid": self.sid,
            "account_sid": core.account_sid,
            "service_sid": service.sid,
            "attributes": self.attributes,
            "friendly_name": self.friendly_name,
            "role_sid": self.role_sid,
            "identity": self.identity,
            "is_online": online,
            "is_notifiable": notifiable,
            "date_created": core.date(self.created),
            "date_updated": updated(core, self.created, self.created),
            "joined_channels_count": self.counted_channels(core),
            "links": { "channels": link("Channels"), "bindings": link("Bindings") },
            "url": url,
        })
    }
}

/// The lookup key of an identity: itself (D2: case-sensitive).
pub(super) fn name_of<'a>(core: &Core, identity: &'a str) -> Cow<'a, str> {
    if core.fails(Fault::ChatIdentityIgnoresCase) {
        Cow::Owned(identity.to_lowercase())
    } else {
        Cow::Borrowed(identity)
    }
}

/// An identity in a path, as faults read it.
pub(super) fn in_path<'a>(core: &Core, identity: &'a str) -> Cow<'a, str> {
    if let Some((stem, _)) = identity.rsplit_once('.')
        && core.fails(Fault::ChatPathIdentityCutAtDot)
    {
        return Cow::Borrowed(stem);
    }
    if identity.contains('+') && core.fails(Fault::ChatPathPlusIsSpace) {
        return Cow::Owned(identity.replace('+', " "));
    }
    Cow::Borrowed(identity)
}

/// The user with that SID or identity (D2, Conventions).
pub(super) fn find<'a>(service: &'a Service, core: &Core, key: &str) -> Result<&'a User, Refusal> {
    let faults = [Fault::ChatUserPathAccentless, Fault::ChatUserPathAnyCase];
    find_in(&service.users, core, key, faults)
}

/// The row with that SID or identity.
pub(super) fn find_in<'a, T: Clone>(
    table: &'a Table<T>,
    core: &Core,
    key: &str,
    [accentless, any_case]: [Fault; 2],
) -> Result<&'a T, Refusal> {
    let mut key = in_path(core, key);
    let plain = key.replace('é', "e");
    if plain != *key && core.fails(accentless) {
        key = plain.into();
    }
    let found = table.find(&key, false);
    let found = found.or_else(|_| table.find(&name_of(core, &key), true));
    found.or_else(|refusal| {
        let other = table.by_name_in_any_case(&key);
        other.filter(|_| core.fails(any_case)).ok_or(refusal)
    })
}

/// The SID of the user with that identity, who is created if new (D2, What the service does).
pub(super) fn seen(service: &mut Service, core: &mut Core, identity: &str) -> String {
    let name = name_of(core, identity).into_owned();
    let known = service.users.by_name(&name);
    let was_known = core.read_or_stale(Fault::ChatRaceUser, || known.is_some());
    if let Some(user) = known.filter(|_| was_known) {
        let sid = user.sid.clone();
        if user.attributes != "{}"
            && core.fails(Fault::ChatSeenUserCleared)
            && let Some(user) = service.users.by_sid_mut(&sid)
        {
            "{}".clone_into(&mut user.attributes);
        }
        return sid;
    }
    let mut user = User::new(service, core, identity);
    if service.first_default_role != user.role_sid
        && core.fails(Fault::ChatSeenUserFirstDefaultRole)
    {
        user.role_sid.clone_from(&service.first_default_role);
    }
    let sid = user.sid.clone();
    // The fault keeps the user but hides it from lookups by identity.
    let known_as = (!core.fails(Fault::ChatNewIdentityWithoutUser)).then_some(name);
    service.users.insert(sid.clone(), known_as.as_deref(), user);
    sid
}

/// The user that its own `url` points to.
pub(super) fn fetch(service: &Service, core: &Core, key: &str) -> Answer {
    let user = service.users.find(key, true)?;
    Ok(core.ok(&user.represent(service, core)))
}

/// The users that a service's link points to. D2, User: online and notifiable are null in lists.
pub(super) fn read(service: &Service, core: &Core, call: &Call<'_>) -> Answer {
    let list = ("users", service.url(core, &["Users"]));
    pages::all(core, call, list, &service.users, |user| {
        let mut value = user.represent(service, core);
        value["is_online"] = Value::Null;
        value["is_notifiable"] = Value::Null;
        value
    })
}

pub(super) fn create(service: &mut Service, core: &mut Core, call: &Call<'_>) -> Answer {
    let webhooks = inputs::webhooks_enabled(core, call);
    let form = &call.form;
    let identity = inputs::required(form, "Identity")?;
    let attributes = inputs::attributes(core, form, Fault::ChatUserAttributesUnchecked)?;
    let role_sid = form.get("RoleSid");
    if let Some(sid) = role_sid {
        let role = role::require(service, "RoleSid", sid, role::DEPLOYMENT);
        if role.is_err() && core.fails(Fault::ChatRefusedUserStays) {
            seen(service, core, identity);
        }
        role?;
    }
    let name = name_of(core, identity).into_owned();
    let is_taken = || service.users.by_name(&name).is_some();
    if core.read_or_stale(Fault::ChatRaceIdentity, is_taken)
        && let Some(known) = service.users.by_name(&name)
        && !core.fails(Fault::ChatIdentityNotUnique)
    {
        if core.varies(Variant::ChatSecondUserIsFirst) {
            return Ok(core.ok(&known.represent(service, core)));
        }
        if let Some(attributes) = attributes
            && attributes != known.attributes
            && core.fails(Fault::ChatRefusedNamesakeChangesUser)
        {
            let sid = known.sid.clone();
            if let Some(known) = service.users.by_sid_mut(&sid) {
                known.attributes = attributes;
            }
        }
        return Err(Refusal::conflict("the identity exists"));
    }
    let mut user = User::new(service, core, identity);
    if let Some(attributes) = attributes {
        user.attributes = attributes;
    }
    if let Some(sid) = role_sid {
        sid.clone_into(&mut user.role_sid);
    }
    user.friendly_name = form.get("FriendlyName").map(str::to_owned);
    let value = user.represent(service, core);
    let sid = user.sid.clone();
    service.users.insert(sid.clone(), Some(&name), user);
    if webhooks {
        let fields = [("UserSid", sid.as_str()), ("Identity", identity)];
        let happening = Happening::new(["onUserAdd", "onUserAdded"], &fields);
        delivery::announce(core, service, None, &happening);
    }
    Ok(core.created(&value))
}
