//! Approval requests: from creation to approved, denied or expired (D1, States and transitions).
//!
//! Callbacks are handed to `callbacks`; which user reacts, and when, comes from the control plane.

use super::answer::{Done, Failure};
use super::application;
use super::callbacks::{self, Callbacks, Kind};
use super::input::{body, given, text};
use super::users::{User, record_id};
use crate::clock::{Timestamp, iso_seconds};
use crate::reference::{Call, Core, Fault, Variant};
use jiff::SignedDuration;
use rand::Rng as _;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// D1, Limits.
const KEY_LENGTH_MAX: usize = 20;
/// D1, Limits.
const SECONDS_TO_EXPIRE_DEFAULT: u64 = 86_400;

/// Where an approval request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Pending,
    Approved,
    Denied,
    Expired,
}

/// What a person does with an approval request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    Approve,
    Deny,
}

/// One approval request.
#[derive(Debug)]
struct Approval {
    uuid: String,
    record: String,
    user: User,
    status: Status,
    message: String,
    details: Map<String, Value>,
    hidden_details: Map<String, Value>,
    logos: Value,
    seconds_to_expire: u64,
    created_at: Timestamp,
    processed_at: Option<Timestamp>,
}

/// All approval requests.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    by_uuid: BTreeMap<String, Approval>,
}

impl Status {
    const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
        }
    }
}

impl Reaction {
    /// The reaction that a hook stands for.
    pub(super) fn from_hook(hook: &str) -> Option<Self> {
        match hook {
            "approve_request" => Some(Self::Approve),
            "deny_request" => Some(Self::Deny),
            _ => None,
        }
    }

    fn outcome(self, core: &Core) -> Status {
        match self {
            Self::Approve if core.fails(Fault::AuthApprovalNotTaken) => Status::Pending,
            Self::Approve => Status::Approved,
            Self::Deny if core.fails(Fault::AuthDenialNotTaken) => Status::Pending,
            Self::Deny if core.fails(Fault::AuthDenialApproves) => Status::Approved,
            Self::Deny => Status::Denied,
        }
    }
}

impl Approvals {
    /// `POST …/users/{AUTH_ID}/approval_requests`.
    pub(super) fn create(
        &mut self,
        core: &mut Core,
        call: &Call<'_>,
        user: User,
    ) -> Result<Done, Failure> {
        let parameters = body(call)?;
        let approval = Approval {
            message: read_message(core, &parameters)?,
            details: read_details(core, call.now, &parameters)?,
            hidden_details: read_hidden_details(core, &parameters)?,
            logos: read_logos(core, &parameters)?,
            seconds_to_expire: read_seconds_to_expire(core, &parameters)?,
            uuid: new_uuid(core),
            record: record_id(core),
            user,
            status: Status::Pending,
            created_at: call.now,
            processed_at: None,
        };
        let mut shown = json!({"uuid": approval.uuid});
        if !core.varies(Variant::AuthCreateMinimal) {
            shown["created_at"] = datetime(core, approval.created_at);
            shown["status"] = json!(approval.status.name());
        }
        self.by_uuid.insert(approval.uuid.clone(), approval);
        Ok(Done {
            is_new: true,
            body: json!({"approval_request": shown, "success": true}),
        })
    }

    /// `GET …/approval_requests/{PUSH_UUID}`.
    pub(super) fn fetch(
        &mut self,
        core: &Core,
        call: &Call<'_>,
        uuid: &str,
    ) -> Result<Done, Failure> {
        let approval = self.by_uuid.get_mut(uuid).ok_or_else(Failure::not_found)?;
        approval.settle(core, call.now);
        Ok(Done {
            is_new: false,
            body: json!({"approval_request": approval.shown(core), "success": true}),
        })
    }

    /// D1 names a callback on the user's reaction only; one on expiry is a freedom.
    pub(super) fn call_back_expired(
        &mut self,
        core: &mut Core,
        callbacks: &Callbacks,
        now: Timestamp,
    ) {
        if !core.varies(Variant::AuthExpiryCallback) {
            return;
        }
        for approval in self.by_uuid.values_mut() {
            if approval.settle(core, now) {
                approval.call_back(core, callbacks);
            }
        }
    }

    /// The person approves or denies; what is final stays as it is.
    pub(super) fn react(
        &mut self,
        core: &mut Core,
        callbacks: &Callbacks,
        uuid: &str,
        reaction: Reaction,
        now: Timestamp,
    ) -> Result<(), String> {
        let approval = self
            .by_uuid
            .get_mut(uuid)
            .ok_or_else(|| format!("no approval request has the uuid {uuid}"))?;
        approval.settle(core, now);
        let is_open = match approval.status {
            Status::Pending => true,
            Status::Approved | Status::Denied => core.fails(Fault::AuthFinalStatusChanges),
            Status::Expired => core.fails(Fault::AuthExpiredCanBeApproved),
        };
        if !is_open {
            return Ok(());
        }
        approval.status = reaction.outcome(core);
        approval.processed_at = Some(now);
        let is_silent = core.fails(match reaction {
            Reaction::Approve => Fault::AuthApproveCallbackMissing,
            Reaction::Deny => Fault::AuthDenyCallbackMissing,
        });
        if !is_silent {
            approval.call_back(core, callbacks);
        }
        Ok(())
    }
}

impl Approval {
    /// Expires it when that is due by `now`, however long ago it was; true when it just did.
    fn settle(&mut self, core: &Core, now: Timestamp) -> bool {
        let due = self.expiry(core).filter(|expiry| *expiry <= now);
        if self.status != Status::Pending || due.is_none() {
            return false;
        }
        self.status = Status::Expired;
        self.processed_at = due;
        true
    }

    /// When it expires unless the user reacts first; 0 seconds mean never (D1, Limits).
    fn expiry(&self, core: &Core) -> Option<Timestamp> {
        if core.fails(Fault::AuthApprovalNeverExpires)
            || (self.seconds_to_expire == 0 && !core.fails(Fault::AuthZeroExpires))
        {
            return None;
        }
        let early = if core.fails(Fault::AuthApprovalExpiresEarly) {
            10
        } else {
            1
        };
        let seconds = i64::try_from(self.seconds_to_expire / early).ok()?;
        self.created_at
            .checked_add(SignedDuration::from_secs(seconds))
            .ok()
    }

    /// The fetch response's fields (D1, Resources), with the message and the visible details.
    fn shown(&self, core: &Core) -> Value {
        let updated_at = self.processed_at.unwrap_or(self.created_at);
        let auth_id = self.user.auth_id + u64::from(core.fails(Fault::AuthApprovalOtherAuthId));
        let uuid = if core.fails(Fault::AuthApprovalOtherUuid) {
            self.uuid.chars().rev().collect()
        } else {
            self.uuid.clone()
        };
        let seconds_to_expire = if core.fails(Fault::AuthSecondsToExpireNotKept) {
            self.seconds_to_expire + 60
        } else {
            self.seconds_to_expire
        };
        let mut shown = json!({
            "status": self.status.name(),
            "uuid": uuid,
            "notified": self.user.has_app,
            "hidden_details": self.hidden_details,
            "created_at": datetime(core, self.created_at),
            "updated_at": datetime(core, updated_at),
            "processed_at": self.processed_at.map(|at| datetime(core, at)),
            "seconds_to_expire": seconds_to_expire,
            "app_id": application::RECORD,
            "user_id": self.user.record,
            "_id": self.record,
            "_app_serial_id": application::ID,
            "_app_name": application::NAME,
            "_user_email": self.user.emails.first().map_or("", String::as_str),
            "_auth_id": auth_id,
        });
        if core.fails(Fault::AuthHiddenDetailsLost) {
            shown["hidden_details"] = json!({});
        }
        if !core.varies(Variant::AuthDetailsNotShown) {
            shown["message"] = json!(self.message);
            shown["details"] = json!(self.details);
        }
        if core.varies(Variant::AuthExtraFields) {
            shown["flagged"] = json!(false);
        }
        let shows_device = match self.status {
            Status::Pending => core.fails(Fault::AuthDeviceWhilePending),
            Status::Expired => core.fails(Fault::AuthDeviceAfterExpiry),
            Status::Approved => !core.fails(Fault::AuthDeviceMissingWhenApproved),
            Status::Denied => !core.fails(Fault::AuthDeviceMissingWhenDenied),
        };
        if shows_device {
            shown["device"] = self.device(core);
        }
        shown
    }

    fn device(&self, core: &Core) -> Value {
        let registered = self.user.since.as_second();
        let reacted = self.processed_at.unwrap_or(self.created_at).as_second();
        json!({
            "city": "Springfield",
            "country": "United States",
            "ip": "192.0.2.17",
            "region": "Oregon",
            "registration_city": "Springfield",
            "registration_country": "United States",
            "registration_ip": "192.0.2.17",
            "registration_method": "push",
            "registration_region": "Oregon",
            "os_type": "ios",
            "last_account_recovery_at": core
                .varies(Variant::AuthAccountRecovered)
                .then(|| datetime(core, self.user.since)),
            "id": 70_000 + self.user.auth_id,
            "registration_date": registered,
            "last_sync_date": reacted,
            "enabled_unlock_methods": "pin",
            "last_unlock_method_used": "pin",
            "last_unlock_date": reacted,
        })
    }

    /// The payload is not shown (D1, Events); the uuid ties it to the request.
    fn call_back(&self, core: &mut Core, callbacks: &Callbacks) {
        let Some(url) = callbacks.url(Kind::Approval) else {
            return;
        };
        let body = json!({
            "callback_action": "approval_request_status",
            "uuid": self.uuid,
            "status": self.status.name(),
            "auth_id": self.user.auth_id,
            "device": self.device(core),
            "approval_request": {
                "message": self.message,
                "details": self.details,
                "hidden_details": self.hidden_details,
                "logos": self.logos,
                "status": self.status.name(),
                "uuid": self.uuid,
            },
        });
        let method = if core.varies(Variant::AuthCallbackIsGet) {
            "GET"
        } else {
            "POST"
        };
        callbacks::send(core, method, url, &body);
    }
}

/// A D1 datetime, whose spelling is not stated.
fn datetime(core: &Core, at: Timestamp) -> Value {
    if core.varies(Variant::AuthEpochDatetimes) {
        return json!(at.as_second());
    }
    core.date(at)
}

fn new_uuid(core: &mut Core) -> String {
    let mut bytes = [0; 16];
    core.rng.fill_bytes(&mut bytes);
    uuid::Builder::from_random_bytes(bytes)
        .into_uuid()
        .to_string()
}

fn read_message(core: &Core, parameters: &Map<String, Value>) -> Result<String, Failure> {
    match given(parameters, "message").and_then(text) {
        Some(message) => Ok(message),
        None if core.fails(Fault::AuthMessageNotRequired) => Ok(String::new()),
        None => Err(Failure::new(400, "Message cannot be blank")),
    }
}

fn read_details(
    core: &Core,
    now: Timestamp,
    parameters: &Map<String, Value>,
) -> Result<Map<String, Value>, Failure> {
    let mut details = read_hash(
        core,
        parameters,
        "details",
        bound(
            core,
            Fault::AuthDetailsKey21Kept,
            Fault::AuthDetailsKey20Refused,
        ),
    )?;
    // D1, Resources: a timestamp is added automatically.
    if !core.fails(Fault::AuthDetailsTimestampMissing) {
        details
            .entry("timestamp")
            .or_insert_with(|| json!(iso_seconds(now)));
    }
    if core.fails(Fault::AuthHiddenDetailsShown) {
        details.extend(read_hash(
            core,
            parameters,
            "hidden_details",
            KEY_LENGTH_MAX,
        )?);
    }
    Ok(details)
}

fn read_hidden_details(
    core: &Core,
    parameters: &Map<String, Value>,
) -> Result<Map<String, Value>, Failure> {
    let key_length_max = bound(
        core,
        Fault::AuthHiddenDetailsKey21Kept,
        Fault::AuthHiddenDetailsKey20Refused,
    );
    read_hash(core, parameters, "hidden_details", key_length_max)
}

fn bound(core: &Core, loose: Fault, tight: Fault) -> usize {
    if core.fails(loose) {
        usize::MAX
    } else if core.fails(tight) {
        KEY_LENGTH_MAX - 1
    } else {
        KEY_LENGTH_MAX
    }
}

/// A hash, sent as an object or as an object's JSON text.
fn read_hash(
    core: &Core,
    parameters: &Map<String, Value>,
    name: &str,
    key_length_max: usize,
) -> Result<Map<String, Value>, Failure> {
    let refusal = |why| Failure::new(400, &format!("{name} {why}"));
    let hash = match given(parameters, name) {
        None => return Ok(Map::new()),
        Some(Value::Object(hash)) => hash.clone(),
        Some(Value::String(text)) => {
            serde_json::from_str(text).map_err(|_| refusal("is not a hash"))?
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            return Err(refusal("is not a hash"));
        }
    };
    let is_long = |key: &String| key.chars().count() > key_length_max;
    if !hash.keys().any(is_long) {
        return Ok(hash);
    }
    if core.varies(Variant::AuthLongKeyCut) {
        let cut = |key: String| key.chars().take(KEY_LENGTH_MAX).collect::<String>();
        return Ok(hash
            .into_iter()
            .map(|(key, value)| (cut(key), value))
            .collect());
    }
    Err(refusal("has a key that is too long"))
}

/// D1, Create approval request: an entry with res `default`, known res values, HTTPS urls.
fn read_logos(core: &Core, parameters: &Map<String, Value>) -> Result<Value, Failure> {
    let refusal = |why: &str| Failure::new(400, &format!("logos {why}"));
    let default_logo = || json!([{"res": "default", "url": "https://logos.example/app.png"}]);
    let logos: Vec<Value> = match given(parameters, "logos") {
        None => return Ok(default_logo()),
        Some(Value::Array(logos)) => logos.clone(),
        // Forms index the list: `logos[0][res]`.
        Some(Value::Object(logos)) => logos.values().cloned().collect(),
        Some(Value::String(text)) => {
            serde_json::from_str(text).map_err(|_| refusal("is not a list"))?
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_)) => {
            return Err(refusal("is not a list"));
        }
    };
    let mut has_default = core.fails(Fault::AuthLogosWithoutDefaultAccepted);
    for logo in &logos {
        let res = logo.get("res").and_then(Value::as_str).unwrap_or_default();
        let url = logo.get("url").and_then(Value::as_str).unwrap_or_default();
        has_default |= res == "default";
        let is_known = matches!(res, "default" | "low" | "med" | "high");
        if !is_known && !core.fails(Fault::AuthLogoForeignResAccepted) {
            return Err(refusal("have an unknown res"));
        }
        if !url.starts_with("https://") && !core.fails(Fault::AuthLogoHttpAccepted) {
            return Err(refusal("have a url that is not HTTPS"));
        }
    }
    if has_default {
        Ok(Value::Array(logos))
    } else {
        Err(refusal("lack a default"))
    }
}

fn read_seconds_to_expire(core: &Core, parameters: &Map<String, Value>) -> Result<u64, Failure> {
    match given(parameters, "seconds_to_expire") {
        None if core.fails(Fault::AuthDefaultExpiryOther) => Ok(3_600),
        None => Ok(SECONDS_TO_EXPIRE_DEFAULT),
        Some(value) => text(value)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Failure::new(400, "seconds_to_expire is not a number of seconds")),
    }
}
