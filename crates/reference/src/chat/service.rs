//! Services: the parents of all other chat resources, and their settings.

use super::binding::Binding;
use super::channel::Channel;
use super::media::Media;
use super::role::{self, Role};
use super::table::Table;
use super::updated;
use super::user::User;
use super::{former, inputs, pages};
use crate::listing::url_of;
use crate::{Answer, Call, Core, Fault, Variant};
use conformant_base::clock::Timestamp;
use conformant_base::http::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Largest value of either limit (D2, Limits).
const LIMIT_MAX: u64 = 1000;

/// A service with its contents.
#[derive(Clone, Debug)]
pub(super) struct Service {
    pub(super) sid: String,
    pub(super) fields: Fields,
    pub(super) channels: Table<Channel>,
    pub(super) users: Table<User>,
    pub(super) roles: Table<Role>,
    pub(super) bindings: Table<Binding>,
    pub(super) media: Table<Media>,
    /// SIDs of former bindings.
    pub(super) deleted_bindings: BTreeSet<String>,
    /// Former bindings, for faults.
    pub(super) lost_bindings: Table<Binding>,
    /// Bindings that a fault deleted from only one of the two lists.
    pub(super) half_deleted: BTreeMap<String, &'static str>,
    /// Unique names that a fault keeps taken.
    pub(super) lost_names: BTreeSet<String>,
    /// The default service role at creation.
    pub(super) first_default_role: String,
    /// The default channel role at creation.
    pub(super) first_default_channel_role: String,
    created: Timestamp,
    updated: Timestamp,
}

/// Configurable fields, in the spelling of responses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fields {
    pub(super) friendly_name: String,
    pub(super) default_service_role_sid: String,
    pub(super) default_channel_role_sid: String,
    pub(super) default_channel_creator_role_sid: String,
    pub(super) read_status_enabled: bool,
    pub(super) reachability_enabled: bool,
    pub(super) typing_indicator_timeout: u64,
    pub(super) consumption_report_interval: u64,
    pub(super) limits: Limits,
    pub(super) pre_webhook_url: Option<String>,
    pub(super) post_webhook_url: Option<String>,
    pub(super) webhook_method: String,
    /// `None` until set; then only these events are sent.
    pub(super) webhook_filters: Option<Vec<String>>,
    pub(super) pre_webhook_retry_count: u32,
    pub(super) post_webhook_retry_count: u32,
    pub(super) notifications: Map<String, Value>,
    pub(super) media: MediaSettings,
}

/// Limits of members per channel and channels per user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) channel_members: u64,
    pub(super) user_channels: u64,
}

/// Settings of media messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MediaSettings {
    pub(super) size_limit_mb: u64,
    pub(super) compatibility_message: String,
}

impl Service {
    fn new(core: &mut Core, friendly_name: &str) -> Self {
        let mut roles = Table::default();
        let [service_role, channel_role, creator_role] = role::defaults(core, &mut roles);
        let fields = Fields {
            friendly_name: friendly_name.to_owned(),
            default_service_role_sid: service_role,
            default_channel_role_sid: channel_role,
            default_channel_creator_role_sid: creator_role,
            read_status_enabled: !core.fails(Fault::ChatReadStatusDefaultFalse),
            reachability_enabled: core.fails(Fault::ChatReachabilityDefaultTrue),
            typing_indicator_timeout: if core.varies(Variant::ChatTypingTimeoutTen) {
                10
            } else {
                5
            },
            consumption_report_interval: if core.varies(Variant::ChatReportIntervalZero) {
                0
            } else {
                10
            },
            limits: Limits {
                channel_members: 250,
                user_channels: 100,
            },
            pre_webhook_url: None,
            post_webhook_url: None,
            webhook_method: if core.fails(Fault::ChatServiceWebhookMethodDefaultGet) {
                "GET"
            } else {
                "POST"
            }
            .to_owned(),
            webhook_filters: None,
            pre_webhook_retry_count: u32::from(core.fails(Fault::ChatPreRetryDefaultOne)),
            post_webhook_retry_count: u32::from(core.fails(Fault::ChatPostRetryDefaultOne)),
            notifications: if core.varies(Variant::ChatNotificationsFilled) {
                let new_message = json!({"enabled": false, "template": "", "sound": null});
                Map::from_iter([("new_message".to_owned(), new_message)])
            } else {
                Map::new()
            },
            media: MediaSettings {
                size_limit_mb: if core.varies(Variant::ChatSizeLimitSmaller) {
                    20
                } else {
                    150
                },
                compatibility_message: "A media message was sent".to_owned(),
            },
        };
        Self {
            sid: core.sid("IS"),
            first_default_role: fields.default_service_role_sid.clone(),
            first_default_channel_role: fields.default_channel_role_sid.clone(),
            fields,
            channels: Table::default(),
            users: Table::default(),
            roles,
            bindings: Table::default(),
            media: Table::default(),
            deleted_bindings: BTreeSet::new(),
            lost_bindings: Table::default(),
            lost_names: BTreeSet::new(),
            half_deleted: BTreeMap::new(),
            created: core.now,
            updated: core.now,
        }
    }

    /// Marks as updated core.now.
    pub(super) fn touch(&mut self, now: Timestamp) {
        self.updated = now;
    }

    /// Resources created in a service do not change its report interval.
    pub(super) fn disturb(&mut self, core: &Core, fault: Fault) {
        self.fields.consumption_report_interval += u64::from(core.fails(fault));
    }

    /// The URL of a resource in this service.
    pub(super) fn url(&self, core: &Core, below: &[&str]) -> String {
        url_of(
            core.link_origin(),
            &[&["chat", "v2", "Services", &self.sid], below].concat(),
        )
    }

    pub(super) fn represent(&self, core: &Core) -> Value {
        let mut value = json!({
            "sid": self.sid,
            "account_sid": core.account_sid,
            "date_created": core.date(self.created),
            "date_updated": updated(core, self.created, self.updated),
        });
        let fields = serde_json::to_value(&self.fields).expect("fields have text keys only");
        if let (Value::Object(value), Value::Object(fields)) = (&mut value, fields) {
            value.extend(fields);
            if self.fields.webhook_filters.is_none()
                && !core.varies(Variant::ChatUnsetConfigurationNull)
            {
                value.insert("webhook_filters".to_owned(), json!([]));
            }
            value.insert("url".to_owned(), json!(self.url(core, &[])));
            let links = json!({
                "channels": self.url(core, &["Channels"]),
                "users": self.url(core, &["Users"]),
                "roles": self.url(core, &["Roles"]),
                "bindings": self.url(core, &["Bindings"]),
            });
            value.insert("links".to_owned(), links);
        }
        value
    }

    /// Sets any fields, as an operator would.
    pub(super) fn configure(
        &mut self,
        settings: &Map<String, Value>,
        now: Timestamp,
    ) -> Result<(), String> {
        let mut merged = serde_json::to_value(&self.fields).expect("fields have text keys only");
        for (name, value) in settings {
            match (&mut merged[name.as_str()], value) {
                (Value::Object(present), Value::Object(changes)) => {
                    present.extend(changes.clone());
                }
                (present, value) => *present = value.clone(),
            }
        }
        let fields: Fields =
            serde_json::from_value(merged).map_err(|error| format!("invalid settings: {error}"))?;
        let limits = [fields.limits.channel_members, fields.limits.user_channels];
        if limits.iter().any(|limit| *limit > LIMIT_MAX) {
            return Err(format!("invalid `limits`: the maximum is {LIMIT_MAX}"));
        }
        if !["POST", "GET"].contains(&fields.webhook_method.as_str()) {
            return Err("`webhook_method` is POST or GET".to_owned());
        }
        self.fields = fields;
        self.updated = now;
        Ok(())
    }
}

pub(super) fn create(services: &mut Table<Service>, core: &mut Core, call: &Call<'_>) -> Answer {
    let name = inputs::required(&call.form, "FriendlyName");
    if name.is_err() && core.fails(Fault::ChatRefusedServiceStays) {
        let service = Service::new(core, "");
        services.insert(service.sid.clone(), None, service);
    }
    let name = name?;
    let mut service = Service::new(core, name);
    if core.fails(Fault::ChatDefaultRolesShared)
        && let Some(first) = services.rows().next()
    {
        let (own, other) = (&mut service.fields, &first.fields);
        own.default_service_role_sid
            .clone_from(&other.default_service_role_sid);
        own.default_channel_role_sid
            .clone_from(&other.default_channel_role_sid);
        own.default_channel_creator_role_sid
            .clone_from(&other.default_channel_creator_role_sid);
    }
    let answer = core.created(&service.represent(core));
    if !core.fails(Fault::ChatServiceNotStored) {
        services.insert(service.sid.clone(), None, service);
    }
    if core.fails(Fault::ChatServiceMadeTwice) {
        let twin = Service::new(core, name);
        services.insert(twin.sid.clone(), None, twin);
    }
    Ok(answer)
}

pub(super) fn fetch(service: &Service, core: &Core) -> Response {
    core.ok(&service.represent(core))
}

pub(super) fn read(services: &Table<Service>, core: &Core, call: &Call<'_>) -> Answer {
    let mut names = BTreeSet::new();
    // Fault: one more service, which another account has.
    let last = services.iter().last();
    let foreign = last
        .filter(|_| core.fails(Fault::ChatServiceOfAnotherAccountListed))
        .map(|(sequence, service)| (sequence + 1, service, true));
    let items = services
        .iter()
        .filter(|(_, service)| {
            let is_new = names.insert(&service.fields.friendly_name);
            is_new || !core.fails(Fault::ChatServicesListedByName)
        })
        .map(|(sequence, service)| (sequence, service, false))
        .chain(foreign)
        .map(|(sequence, service, is_foreign)| {
            (sequence, move || {
                let mut value = service.represent(core);
                if is_foreign {
                    let turned = |sid: &Value| json!(turned(sid.as_str().unwrap_or_default()));
                    value["sid"] = turned(&value["sid"]);
                    value["account_sid"] = turned(&value["account_sid"]);
                }
                value
            })
        });
    let url = url_of(core.link_origin(), &["chat", "v2", "Services"]);
    pages::list(core, "services", url).page(core, call, items)
}

/// Updates a service: the two documented parameters.
pub(super) fn update(service: &mut Service, core: &Core, call: &Call<'_>) -> Answer {
    let form = &call.form;
    let role_sid = form.get("DefaultServiceRoleSid");
    if let Some(sid) = role_sid {
        let known = role::require(service, "DefaultServiceRoleSid", sid, role::DEPLOYMENT);
        let is_well_formed = || inputs::sid("DefaultServiceRoleSid", sid, "RL").is_ok();
        if known.is_err()
            && let Some(name) = form.get("FriendlyName")
            && (core.fails(Fault::ChatRefusedServiceUpdateChanges)
                || (is_well_formed() && core.fails(Fault::ChatUnknownRoleRenamesService)))
        {
            name.clone_into(&mut service.fields.friendly_name);
        }
        known?;
    }
    let read = |fault| core.read_or_stale(fault, || service.fields.clone());
    let undone = read(Fault::ChatRaceUpdateUndone);
    let undone = Some(undone).filter(|then| *then != service.fields);
    service.fields = read(Fault::ChatRaceUpdateLost);
    let before = (service.fields.clone(), service.updated);
    if let Some(name) = form.get("FriendlyName") {
        name.clone_into(&mut service.fields.friendly_name);
    } else if core.fails(Fault::ChatUpdateServiceResetsFriendlyName) {
        service.fields.friendly_name.clear();
    }
    if let Some(sid) = role_sid {
        sid.clone_into(&mut service.fields.default_service_role_sid);
    } else if service.first_default_role != service.fields.default_service_role_sid
        && core.fails(Fault::ChatUpdateServiceResetsRole)
    {
        service
            .first_default_role
            .clone_into(&mut service.fields.default_service_role_sid);
    }
    if core.fails(Fault::ChatUpdateServiceResetsLimits) {
        service.fields.limits = Limits {
            channel_members: 250,
            user_channels: 100,
        };
    }
    if core.fails(Fault::ChatUpdateServiceMovesCreation) {
        service.created = core.now;
    }
    if !core.fails(Fault::ChatUpdateServiceDateStuck) {
        service.updated = core.now;
    }
    let answer = core.ok(&service.represent(core));
    if let Some(undone) = undone {
        service.fields = undone;
    }
    if core.fails(Fault::ChatUpdateServiceNotPersisted) {
        (service.fields, service.updated) = before;
    }
    former::restore_bindings(service, core, Fault::ChatDeletedBindingReturnsOnUpdate);
    Ok(answer)
}

/// A SID with its last digits in another order.
fn turned(sid: &str) -> String {
    let (start, digits) = sid.split_at(sid.len().min(2));
    let digits: String = digits.chars().rev().collect();
    format!("{start}{digits}")
}

/// Fault: a name given to one service is given to all.
pub(super) fn rename_others(services: &mut Table<Service>, core: &Core, sid: &str) {
    let Some(name) = services.by_sid(sid).map(|s| s.fields.friendly_name.clone()) else {
        return;
    };
    let others = services
        .rows_mut()
        .filter(|other| other.fields.friendly_name != name);
    for other in others {
        if core.fails(Fault::ChatUpdateServiceTakesAll) {
            name.clone_into(&mut other.fields.friendly_name);
        }
    }
}
