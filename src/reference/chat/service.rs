//! Services: the scope of everything else, and how each behaves.

use super::binding::Binding;
use super::channel::Channel;
use super::media::Media;
use super::misstate::{self, misstate};
use super::role::{self, Role};
use super::table::Table;
use super::user::User;
use super::{inputs, pages};
use crate::clock::Timestamp;
use crate::http::Response;
use crate::reference::listing::url_of;
use crate::reference::{Answer, Call, Core, Fault, Variant, account};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Largest value of either limit (D2, Limits).
const LIMIT_MAX: u64 = 1000;

/// One service with all that is in it.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) sid: String,
    pub(super) fields: Fields,
    pub(super) channels: Table<Channel>,
    pub(super) users: Table<User>,
    pub(super) roles: Table<Role>,
    pub(super) bindings: Table<Binding>,
    pub(super) media: Table<Media>,
    created: Timestamp,
    updated: Timestamp,
}

/// The fields that can be set, by an update or by configuration, in the spelling of responses.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// `None` until it is set; then only the events it names are sent.
    pub(super) webhook_filters: Option<Vec<String>>,
    pub(super) pre_webhook_retry_count: u32,
    pub(super) post_webhook_retry_count: u32,
    pub(super) notifications: Map<String, Value>,
    pub(super) media: MediaSettings,
}

/// How many members a channel and how many channels a user may have.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) channel_members: u64,
    pub(super) user_channels: u64,
}

/// What media messages may be.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MediaSettings {
    pub(super) size_limit_mb: u64,
    pub(super) compatibility_message: String,
}

impl Service {
    fn new(core: &mut Core, friendly_name: &str, now: Timestamp) -> Self {
        let mut roles = Table::default();
        let [service_role, channel_role, creator_role] = role::defaults(core, &mut roles, now);
        let limit = |default: u64, fault: Fault| {
            if core.fails(fault) {
                default + 1
            } else {
                default
            }
        };
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
            consumption_report_interval: 10,
            limits: Limits {
                channel_members: limit(250, Fault::ChatChannelMembersDefault),
                user_channels: limit(100, Fault::ChatUserChannelsDefault),
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
            notifications: Map::new(),
            media: MediaSettings {
                size_limit_mb: 150,
                compatibility_message: "A media message was sent".to_owned(),
            },
        };
        Self {
            sid: core.sid("IS"),
            fields,
            channels: Table::default(),
            users: Table::default(),
            roles,
            bindings: Table::default(),
            media: Table::default(),
            created: now,
            updated: now,
        }
    }

    /// The address of something below this service.
    pub(super) fn url(&self, core: &Core, below: &[&str]) -> String {
        url_of(
            &core.origin,
            &[&["chat", "v2", "Services", &self.sid], below].concat(),
        )
    }

    /// The representation.
    pub(super) fn represent(&self, core: &Core) -> Value {
        let mut value = json!({
            "sid": self.sid,
            "account_sid": account::SID,
            "date_created": core.date(self.created),
            "date_updated": misstate::updated(core, self.created, self.updated),
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
            let links: Map<String, Value> = ["Channels", "Users", "Roles", "Bindings"]
                .into_iter()
                .map(|name| (name.to_lowercase(), json!(self.url(core, &[name]))))
                .collect();
            value.insert("links".to_owned(), Value::Object(links));
        }
        misstate(
            core,
            value,
            &[
                ("url", Fault::ChatServiceUrlWrong),
                ("links", Fault::ChatServiceLinksWrong),
            ],
        )
    }

    /// Sets any fields, as an operator of the service would.
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
        let fields: Fields = serde_json::from_value(merged).map_err(|e| e.to_string())?;
        let limits = [fields.limits.channel_members, fields.limits.user_channels];
        if limits.iter().any(|limit| *limit > LIMIT_MAX) {
            return Err("`limits` are at most 1000".to_owned());
        }
        if !["POST", "GET"].contains(&fields.webhook_method.as_str()) {
            return Err("`webhook_method` is POST or GET".to_owned());
        }
        self.fields = fields;
        self.updated = now;
        Ok(())
    }
}

/// Creates a service.
pub(super) fn create(services: &mut Table<Service>, core: &mut Core, call: &Call<'_>) -> Answer {
    let name = inputs::required(
        core,
        &call.form,
        "FriendlyName",
        Fault::ChatServiceFriendlyNameOptional,
    )?;
    let name = if core.fails(Fault::ChatServiceFriendlyNameIgnored) {
        "service"
    } else {
        name
    };
    let mut service = Service::new(core, name, call.now);
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
        let sid = service.sid.clone();
        services.insert(&sid, None, service);
    }
    Ok(answer)
}

/// Fetches a service.
pub(super) fn fetch(service: &Service, core: &Core) -> Response {
    let value = service.represent(core);
    let moves = ("date_created", Fault::ChatFetchedServiceMoves);
    let changes = ("sid", Fault::ChatFetchedSidChanges);
    core.ok(&misstate(core, value, &[moves, changes]))
}

/// Lists the services.
pub(super) fn read(services: &Table<Service>, core: &Core, call: &Call<'_>) -> Answer {
    let items = services
        .iter()
        .map(|(sequence, service)| {
            let value = service.represent(core);
            let differs = ("default_service_role_sid", Fault::ChatListedServiceDiffers);
            (sequence, misstate(core, value, &[differs]))
        })
        .collect();
    let url = url_of(&core.origin, &["chat", "v2", "Services"]);
    pages::SERVICES.page(core, call, url, Vec::new(), items)
}

/// Updates a service: the two parameters that the document shows.
pub(super) fn update(service: &mut Service, core: &Core, call: &Call<'_>) -> Answer {
    let form = inputs::honoured(
        core,
        &call.form,
        &[
            ("FriendlyName", Fault::ChatUpdateServiceFriendlyNameIgnored),
            (
                "DefaultServiceRoleSid",
                Fault::ChatUpdateServiceDefaultRoleIgnored,
            ),
        ],
    );
    let role_sid = form.get("DefaultServiceRoleSid");
    if let Some(sid) = role_sid {
        role::known(service, "DefaultServiceRoleSid", sid, role::DEPLOYMENT)?;
    }
    let before = (service.fields.clone(), service.updated);
    if let Some(name) = form.get("FriendlyName") {
        name.clone_into(&mut service.fields.friendly_name);
    } else if core.fails(Fault::ChatUpdateServiceResetsFriendlyName) {
        service.fields.friendly_name.clear();
    }
    if let Some(sid) = role_sid {
        sid.clone_into(&mut service.fields.default_service_role_sid);
    }
    if !core.fails(Fault::ChatUpdateServiceDateStuck) {
        service.updated = call.now;
    }
    let changes = ("sid", Fault::ChatUpdatedSidChanges);
    let answer = core.ok(&misstate(core, service.represent(core), &[changes]));
    if core.fails(Fault::ChatUpdateServiceNotPersisted) {
        (service.fields, service.updated) = before;
    }
    Ok(answer)
}
