//! Roles: permissions of users in a service or members in a channel; stored, never enforced.

use super::inputs::{self, Bound, Choice};
use super::pages;
use super::service::Service;
use super::table::Table;
use super::updated;
use crate::{Answer, Call, Core, Fault, Refusal, Variant};
use conformant_base::clock::Timestamp;
use serde_json::{Value, json};

/// Type of a role for channels.
pub(super) const CHANNEL: &str = "channel";
/// Type of a role for the whole service.
pub(super) const DEPLOYMENT: &str = "deployment";

const TYPE: Choice = Choice {
    values: &[DEPLOYMENT, CHANNEL],
    open: Fault::ChatRoleTypeOpen,
};
const FRIENDLY_NAME: Bound = Bound {
    unbounded: Fault::ChatRoleFriendlyNameUnbounded,
    one_more: Fault::ChatRoleName65,
};

#[derive(Clone, Debug)]
pub(super) struct Role {
    pub(super) sid: String,
    friendly_name: String,
    kind: String,
    permissions: Vec<String>,
    created: Timestamp,
}

impl Role {
    fn represent(&self, service: &Service, core: &Core) -> Value {
        json!({
            "sid": self.sid,
            "account_sid": core.account_sid,
            "service_sid": service.sid,
            "friendly_name": self.friendly_name,
            "type": self.kind,
            "permissions": self.permissions,
            "date_created": core.date(self.created),
            "date_updated": updated(core, self.created, self.created),
            "url": service.url(core, &["Roles", &self.sid]),
        })
    }
}

/// Creates the default roles of a new service: of users, of members, of channel creators.
pub(super) fn defaults(core: &mut Core, roles: &mut Table<Role>) -> [String; 3] {
    [
        (
            "service user",
            DEPLOYMENT,
            &["createChannel", "joinChannel"][..],
        ),
        ("channel user", CHANNEL, &["sendMessage", "leaveChannel"]),
        (
            "channel admin",
            CHANNEL,
            &[
                "sendMessage",
                "leaveChannel",
                "editOwnMessage",
                "deleteOwnMessage",
            ],
        ),
    ]
    .map(|(name, kind, permissions)| {
        let role = Role {
            sid: core.sid("RL"),
            friendly_name: name.to_owned(),
            kind: kind.to_owned(),
            permissions: permissions.iter().map(|&p| p.to_owned()).collect(),
            created: core.now,
        };
        let sid = role.sid.clone();
        roles.insert(sid.clone(), None, role);
        sid
    })
}

/// Refuses a SID without a role of that type in the service.
pub(super) fn require(
    service: &Service,
    parameter: &str,
    sid: &str,
    kind: &str,
) -> Result<(), Refusal> {
    match service.roles.by_sid(sid) {
        Some(role) if role.kind == kind => Ok(()),
        _ => Err(Refusal::bad_parameter(
            parameter,
            &format!("no {kind} role has this SID"),
        )),
    }
}

pub(super) fn create(service: &mut Service, core: &mut Core, call: &Call<'_>) -> Answer {
    let name = inputs::required(&call.form, "FriendlyName")?;
    let name = inputs::name(core, "FriendlyName", name, FRIENDLY_NAME)?;
    let kind = inputs::required(&call.form, "Type")?;
    let kind = inputs::choice(core, "Type", kind, TYPE);
    if kind.is_err() {
        service.disturb(core, Fault::ChatRefusedRoleRaisesInterval);
    }
    let kind = kind?;
    inputs::required(&call.form, "Permission")?;
    if kind == DEPLOYMENT && core.varies(Variant::ChatDeploymentRoleRefused) {
        return Err(Refusal::bad_parameter("Permission", "not for this type"));
    }
    let permissions = call.form.all("Permission").map(str::to_owned).collect();
    if service.roles.rows().any(|role| role.friendly_name == name)
        && core.fails(Fault::ChatRoleNameUnique)
    {
        return Err(Refusal::conflict("the friendly name exists"));
    }
    let role = Role {
        sid: core.sid("RL"),
        friendly_name: name,
        kind,
        permissions,
        created: core.now,
    };
    let answer = core.created(&role.represent(service, core));
    if !core.fails(Fault::ChatRoleNotStored) {
        service.roles.insert(role.sid.clone(), None, role);
    }
    Ok(answer)
}

/// The roles that a service's link points to.
pub(super) fn read(service: &Service, core: &Core, call: &Call<'_>) -> Answer {
    let list = ("roles", service.url(core, &["Roles"]));
    let show = |role: &Role| role.represent(service, core);
    pages::all(core, call, list, &service.roles, show)
}

pub(super) fn fetch(service: &Service, core: &Core, sid: &str) -> Answer {
    let role = service.roles.find(sid, false)?;
    Ok(core.ok(&role.represent(service, core)))
}
