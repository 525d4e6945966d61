//! Approval requests: created, then approved, denied or expired (D1, States and transitions).
//!
//! `callbacks` sends callbacks; the control plane triggers user actions.

use super::answer::Failure;
use super::application;
use super::callbacks::{self, APPROVAL, Callbacks, REGISTRATION};
use super::parameters::Parameters;
use super::users::{User, record_id};
use crate::effects::Operation;
use crate::{Call, Core, Fault, Variant, hook};
use conformant_base::clock::Timestamp;
use jiff::SignedDuration;
use rand::Rng as _;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// State of an approval request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Pending,
    Approved,
    Denied,
    Expired,
}

/// A person's answer to an approval request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    Approve,
    Deny,
}

#[derive(Clone, Debug)]
pub(super) struct Approval {
    pub(super) uuid: String,
    record: String,
    pub(super) user: User,
    status: Status,
    pub(super) asked: Parameters,
    pub(super) created_at: Timestamp,
    /// Start of its time to live.
    began_at: Timestamp,
    processed_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Approvals {
    by_uuid: BTreeMap<String, Approval>,
    /// The message of the first request.
    first_message: Option<String>,
    /// Number of answered requests.
    answered: u64,
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
    ) -> Result<Value, Failure> {
        let asked = Parameters::read(core, call);
        for other in self.pending_of(user.auth_id) {
            if asked.is_err() && core.fails(Fault::AuthRefusedRequestExpiresOthers) {
                other.status = Status::Expired;
            }
        }
        if asked.is_err() && core.fails(Fault::AuthRefusedRequestOnDevice) {
            self.keep_refused(core, call, &user);
        }
        let mut asked = asked?;
        self.take_from_before(core, call, &user, &mut asked);
        self.take_from_others(core, call, &user, &mut asked);
        let first = self
            .first_message
            .get_or_insert_with(|| asked.message.clone());
        if *first != asked.message && core.fails(Fault::AuthMessageOfFirst) {
            asked.message.clone_from(first);
        }
        let uuid = match self.by_uuid.keys().next() {
            Some(first) if core.fails(Fault::AuthApprovalUuidReused) => first.clone(),
            Some(_) | None => new_uuid(core),
        };
        if core.fails(Fault::AuthNewRequestMovesOthers) {
            let others = self.by_uuid.values_mut();
            for other in others.filter(|other| other.user.auth_id == user.auth_id) {
                other.record = record_id(core);
            }
        }
        for other in self.pending_of(user.auth_id) {
            if core.fails(Fault::AuthNewRequestRestartsOthers) {
                other.began_at = core.now;
            }
        }
        let mut approval = Approval::new(core, uuid, user, asked);
        if core.fails(Fault::AuthApprovalStartsApproved) {
            approval.status = Status::Approved;
        }
        let shown = json!({
            "uuid": approval.uuid,
            "created_at": core.date(approval.created_at),
            "status": approval.status.name(),
        });
        self.by_uuid.insert(approval.uuid.clone(), approval);
        Ok(json!({"approval_request": shown, "success": true}))
    }

    fn pending_of(&mut self, auth_id: u64) -> impl Iterator<Item = &mut Approval> {
        let all = self.by_uuid.values_mut();
        all.filter(move |one| one.user.auth_id == auth_id && one.status == Status::Pending)
    }

    /// Faults: omitted parameters are those of the user's previous request.
    fn take_from_before(&self, core: &Core, call: &Call<'_>, user: &User, asked: &mut Parameters) {
        let of_user = self
            .by_uuid
            .values()
            .filter(|a| a.user.auth_id == user.auth_id);
        let Some(before) = of_user.max_by_key(|approval| approval.created_at) else {
            return;
        };
        let given = super::input::body(call).unwrap_or_default();
        let takes = |name: &str, fault| !given.contains_key(name) && core.fails(fault);
        if before.asked.details.len() > 1 && takes("details", Fault::AuthDetailsOfBefore) {
            asked.details.clone_from(&before.asked.details);
        }
        if !before.asked.hidden_details.is_empty()
            && takes("hidden_details", Fault::AuthHiddenOfBefore)
        {
            asked
                .hidden_details
                .clone_from(&before.asked.hidden_details);
        }
        if before.asked.seconds_to_expire != asked.seconds_to_expire
            && takes("seconds_to_expire", Fault::AuthSecondsOfBefore)
        {
            asked.seconds_to_expire = before.asked.seconds_to_expire;
        }
    }

    /// Fault: a request that is refused for its logos exists without them.
    fn keep_refused(&mut self, core: &mut Core, call: &Call<'_>, user: &User) {
        let given = super::input::body(call).unwrap_or_default();
        let Some(asked) = Parameters::without_logos(core, &given) else {
            return;
        };
        let uuid = new_uuid(core);
        let approval = Approval::new(core, uuid.clone(), user.clone(), asked);
        self.by_uuid.insert(uuid, approval);
    }

    /// Faults: later requests have details of others.
    fn take_from_others(&self, core: &Core, call: &Call<'_>, user: &User, asked: &mut Parameters) {
        let mut all: Vec<&Approval> = self.by_uuid.values().collect();
        all.sort_by_key(|approval| approval.created_at);
        let is_of_user = |approval: &&&Approval| approval.user.auth_id == user.auth_id;
        let of_user: Vec<_> = all.iter().filter(is_of_user).collect();
        let add = |to: &mut Map<String, Value>, from: &Map<String, Value>| {
            for (name, value) in from.iter().filter(|(name, _)| *name != "timestamp") {
                to.entry(name.clone()).or_insert_with(|| value.clone());
            }
        };
        if let Some(before) = of_user.last()
            && of_user.len() > 1
            && core.fails(Fault::AuthHiddenOfOthers)
        {
            add(&mut asked.hidden_details, &before.asked.hidden_details);
        }
        if let Some(first) = all.first()
            && all.len() > 2
            && core.fails(Fault::AuthDetailsOfOthers)
        {
            add(&mut asked.details, &first.asked.details);
        }
        let given = super::input::body(call).unwrap_or_default();
        if let Some(last) = all.last()
            && !given.contains_key("logos")
            && core.fails(Fault::AuthLogoOfLastRequest)
        {
            asked.logos.clone_from(&last.asked.logos);
        }
        if let Some(other) = all.iter().rev().find(|other| !is_of_user(other))
            && !given.contains_key("hidden_details")
            && core.fails(Fault::AuthHiddenOfOtherUser)
        {
            add(&mut asked.hidden_details, &other.asked.hidden_details);
        }
    }

    /// `GET …/approval_requests/{PUSH_UUID}`.
    pub(super) fn fetch(&mut self, core: &Core, uuid: &str) -> Result<Value, Failure> {
        let approval = self.by_uuid.get_mut(uuid).ok_or_else(Failure::not_found)?;
        approval.settle(core);
        let shown = approval.shown(core);
        Ok(json!({"approval_request": shown, "success": true}))
    }

    /// D1 names a callback on the user's answer only; one on expiry is an allowed variation.
    pub(super) fn call_back_expired(&mut self, core: &mut Core, callbacks: &Callbacks) {
        if !core.varies(Variant::AuthExpiryCallback) {
            return;
        }
        for approval in self.by_uuid.values_mut() {
            if approval.settle(core) {
                approval.call_back(core, callbacks);
            }
        }
    }

    /// Pending requests of the users whose app is on that phone, oldest first.
    pub(super) fn on_device(&mut self, core: &Core, owners: &[u64]) -> Vec<&Approval> {
        for approval in self.by_uuid.values_mut() {
            approval.settle(core);
        }
        let mut pending: Vec<&Approval> = self
            .by_uuid
            .values()
            .filter(|one| one.status == Status::Pending)
            .filter(|one| owners.contains(&one.user.auth_id))
            // The app fetches what was not pushed, such as requests before it was installed.
            .filter(|one| one.user.has_app || !core.fails(Fault::AuthAppShowsPushedOnly))
            .collect();
        pending.sort_by_key(|approval| approval.created_at);
        pending
    }

    /// All of them, oldest first.
    pub(super) fn in_order(&self) -> Vec<&Approval> {
        let mut all: Vec<&Approval> = self.by_uuid.values().collect();
        all.sort_by_key(|approval| (approval.created_at, &approval.record));
        all
    }

    /// The person approves or denies; a final state stays.
    pub(super) fn react(
        &mut self,
        core: &mut Core,
        callbacks: &Callbacks,
        uuid: &str,
        reaction: Reaction,
    ) -> Result<(), String> {
        let approval = self
            .by_uuid
            .get_mut(uuid)
            .ok_or_else(|| hook::unknown("approval request", "uuid", uuid))?;
        let is_unlooked = approval.status == Status::Pending
            && approval.expiry(core).is_some_and(|due| due <= core.now)
            && core.fails(Fault::AuthLateUnlooked);
        if !is_unlooked {
            approval.settle(core);
        }
        let is_endless = approval.asked.seconds_to_expire == 0;
        let checked = core.read_or_stale(Fault::AuthRaceAnswer, || approval.status);
        // The window is that between two answers: an expiry within it counts.
        let status = match approval.status {
            Status::Expired => Status::Expired,
            Status::Pending | Status::Approved | Status::Denied => checked,
        };
        let is_open = match status {
            Status::Pending => !is_endless || !core.fails(Fault::AuthEndlessNotAnswered),
            Status::Approved | Status::Denied => core.fails(Fault::AuthFinalStatusChanges),
            Status::Expired => {
                core.fails(Fault::AuthExpiredCanBeApproved)
                    || reaction == Reaction::Deny && core.fails(Fault::AuthLateDenial)
            }
        };
        if !is_open {
            return Ok(());
        }
        approval.status = reaction.outcome(core);
        approval.processed_at = Some(core.now);
        self.answered += 1;
        let only_first = self.answered > 1 && core.fails(Fault::AuthCallbackOnlyFirst);
        let has_stopped = self.answered > 3 && core.fails(Fault::AuthCallbacksStop)
            || self.answered > 5 && core.fails(Fault::AuthCallbacksStopLate);
        let is_silent = core.fails(match reaction {
            Reaction::Approve => Fault::AuthApproveCallbackMissing,
            Reaction::Deny => Fault::AuthDenyCallbackMissing,
        }) || is_endless && core.fails(Fault::AuthEndlessCallbackMissing);
        if !is_silent && !only_first && !has_stopped {
            approval.call_back(core, callbacks);
        }
        let user = approval.user.auth_id;
        for other in self.pending_of(user).filter(|other| other.uuid != uuid) {
            if core.fails(Fault::AuthAnswerTakesAll) {
                other.status = reaction.outcome(core);
                other.processed_at = Some(core.now);
            }
        }
        Ok(())
    }
}

impl Approval {
    fn new(core: &mut Core, uuid: String, user: User, asked: Parameters) -> Self {
        Self {
            asked,
            uuid,
            record: record_id(core),
            user,
            status: Status::Pending,
            created_at: core.now,
            began_at: core.now,
            processed_at: None,
        }
    }

    /// Its state at a time, for the overview page.
    pub(super) fn state_at(&self, now: Timestamp) -> &'static str {
        let seconds = i64::try_from(self.asked.seconds_to_expire).unwrap_or(i64::MAX);
        let is_over = seconds > 0 && now.duration_since(self.created_at).as_secs() >= seconds;
        if is_over && self.status == Status::Pending {
            return Status::Expired.name();
        }
        self.status.name()
    }

    /// The logo that the request names.
    pub(super) fn logo(&self) -> Option<&str> {
        self.asked.logos.pointer("/0/url")?.as_str()
    }

    /// Expires the request if due by now; true if it just expired.
    fn settle(&mut self, core: &Core) -> bool {
        let due = self.expiry(core).filter(|expiry| *expiry <= core.now);
        let can_expire = match self.status {
            Status::Pending => true,
            Status::Approved | Status::Denied => core.fails(Fault::AuthAnsweredExpires),
            Status::Expired => false,
        };
        if !can_expire || due.is_none() {
            return false;
        }
        self.status = Status::Expired;
        self.processed_at = due;
        true
    }

    /// Expiry without an answer; 0 seconds mean never (D1, Limits).
    fn expiry(&self, core: &Core) -> Option<Timestamp> {
        if core.fails(Fault::AuthApprovalNeverExpires)
            || (self.asked.seconds_to_expire == 0 && !core.fails(Fault::AuthZeroExpires))
        {
            return None;
        }
        let early = if core.fails(Fault::AuthApprovalExpiresEarly) {
            30
        } else {
            1
        };
        let seconds = i64::try_from(self.asked.seconds_to_expire / early).ok()?;
        let second = SignedDuration::from_secs(1);
        let due = self
            .began_at
            .checked_add(SignedDuration::from_secs(seconds))
            .ok()?;
        let off_by = core.now.duration_since(due).as_secs();
        if due > core.now && due - second <= core.now && core.fails(Fault::AuthExpiresSecondEarly) {
            return Some(due - second);
        }
        if due <= core.now && off_by == 0 && core.varies(Variant::AuthExpiresSecondLate) {
            return Some(due + second);
        }
        Some(due)
    }

    /// Fields of a fetch response (D1, Resources), with message and visible details.
    fn shown(&self, core: &Core) -> Value {
        let updated_at = self.processed_at.unwrap_or(self.created_at);
        let emails = &self.user.emails;
        let email = if core.varies(Variant::AuthRequestShowsLastEmail) {
            emails.last()
        } else {
            emails.first()
        };
        let mut shown = json!({
            "status": self.status.name(),
            "uuid": self.uuid,
            "notified": self.user.has_app,
            "hidden_details": self.asked.hidden_details,
            "created_at": core.date(self.created_at),
            "updated_at": core.date(updated_at),
            "processed_at": self.processed_at.map(|at| core.date(at)),
            "seconds_to_expire": self.asked.seconds_to_expire,
            "app_id": application::RECORD,
            "user_id": self.user.record,
            "_id": self.record,
            "_app_serial_id": application::ID,
            "_app_name": application::NAME,
            "_user_email": email.map_or("", String::as_str),
            "_auth_id": self.user.auth_id,
            "message": self.asked.message,
            "details": self.asked.details,
        });
        let shows_device = match self.status {
            Status::Pending => core.fails(Fault::AuthDeviceWhilePending),
            Status::Expired => core.fails(Fault::AuthDeviceAfterExpiry),
            Status::Approved | Status::Denied => true,
        };
        if shows_device {
            shown["device"] = self.device();
        }
        shown
    }

    fn device(&self) -> Value {
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
            "last_account_recovery_at": null,
            "id": 70_000 + self.user.auth_id,
            "registration_date": registered,
            "last_sync_date": reacted,
            "enabled_unlock_methods": "pin",
            "last_unlock_method_used": "pin",
            "last_unlock_date": reacted,
        })
    }

    /// The payload is not shown (D1, Events); the uuid refers to the request.
    fn call_back(&self, core: &mut Core, callbacks: &Callbacks) {
        let registration = callbacks.get(REGISTRATION);
        let registration =
            registration.filter(|_| core.fails(Fault::AuthCallbackToRegistrationUrl));
        let Some(url) = registration.or(callbacks.get(APPROVAL)) else {
            return;
        };
        let body = json!({
            "callback_action": "approval_request_status",
            "uuid": self.uuid,
            "status": self.status.name(),
            "auth_id": self.user.auth_id,
            "device": self.device(),
            "approval_request": {
                "message": self.asked.message,
                "details": self.asked.details,
                "hidden_details": self.asked.hidden_details,
                "logos": self.asked.logos,
                "status": self.status.name(),
                "uuid": self.uuid,
            },
        });
        let body = core.with_effects(&Operation::callback("approval-callback"), &body);
        let method = if core.varies(Variant::AuthCallbackIsGet) {
            "GET"
        } else {
            "POST"
        };
        callbacks::send(core, method, url, &body);
    }
}

fn new_uuid(core: &mut Core) -> String {
    let mut bytes = [0; 16];
    core.rng.fill_bytes(&mut bytes);
    let uuid = conformant_base::ids::uuid(u128::from_be_bytes(bytes));
    if core.varies(Variant::AuthUppercaseUuid) {
        return uuid.to_uppercase();
    }
    uuid
}
