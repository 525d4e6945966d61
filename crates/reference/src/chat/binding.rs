//! Bindings: push subscriptions, listed by service and by user.
//!
//! Devices create them with a hook; the API lists, fetches and deletes them.

use super::former;
use super::pages;
use super::service::Service;
use super::updated;
use super::user;
use crate::{Answer, Call, Core, Fault, Listing, Refusal, Variant};
use conformant_base::clock::Timestamp;
use conformant_base::http::Response;
use serde_json::{Value, json};

/// Default message types of a device: the four shown in D2.
const MESSAGE_TYPES: [&str; 4] = [
    "removed_from_channel",
    "new_message",
    "added_to_channel",
    "invited_to_channel",
];

#[derive(Clone, Debug)]
#[expect(
    clippy::struct_field_names,
    reason = "`binding_type` is the document's own name"
)]
pub(super) struct Binding {
    pub(super) user_sid: String,
    pub(super) sid: String,
    pub(super) identity: String,
    device: String,
    pub(super) endpoint: String,
    binding_type: String,
    message_types: Vec<String>,
    credential_sid: String,
    created: Timestamp,
    updated: Timestamp,
}

/// Parameters of a registering device.
#[derive(Debug)]
pub(super) struct Registration<'a> {
    pub(super) identity: &'a str,
    pub(super) binding_type: &'a str,
    pub(super) endpoint: &'a str,
    pub(super) device: Option<&'a str>,
    pub(super) message_types: Option<Vec<String>>,
    pub(super) credential_sid: Option<&'a str>,
}

impl Binding {
    fn represent(&self, service: &Service, core: &Core) -> Value {
        let mut value = self.common(service, core);
        value["url"] = json!(service.url(core, &["Bindings", &self.sid]));
        value["user_sid"] = json!(self.user_sid);
        value["message_types"] = json!(self.message_types);
        value
    }

    fn represent_of_user(&self, service: &Service, core: &Core) -> Value {
        let mut value = self.common(service, core);
        value["user_sid"] = json!(self.user_sid);
        let first = service.bindings.rows().next();
        let first = first.filter(|first| first.message_types != self.message_types);
        value["message_types"] = match first {
            Some(first) if core.fails(Fault::ChatMessageTypesOfFirst) => json!(first.message_types),
            Some(_) | None => json!(self.message_types),
        };
        let url = ["Users", &self.user_sid, "Bindings", &self.sid];
        value["url"] = json!(service.url(core, &url));
        value
    }

    fn common(&self, service: &Service, core: &Core) -> Value {
        json!({
            "sid": self.sid,
            "account_sid": core.account_sid,
            "service_sid": service.sid,
            "date_created": core.date(self.created),
            "date_updated": updated(core, self.created, self.updated),
            "endpoint": self.endpoint,
            "identity": self.identity,
            "credential_sid": self.credential_sid,
            "binding_type": self.binding_type,
        })
    }
}

/// Length at which the fault cuts endpoints.
const ENDPOINT_CUT: usize = 100;

/// Registers a device. D2, Binding: unique per service, identity, device and channel, so that a repeated
/// registration changes the existing binding.
pub(super) fn register(
    service: &mut Service,
    core: &mut Core,
    registration: Registration<'_>,
) -> Result<String, String> {
    if !pages::BINDING_TYPES.contains(&registration.binding_type) {
        return Err("`binding_type` is gcm, apn or fcm".to_owned());
    }
    let user_sid = user::seen(service, core, registration.identity);
    // A device without a name is identified by its endpoint.
    let device = registration.device.unwrap_or(registration.endpoint);
    let message_types = registration
        .message_types
        .unwrap_or_else(|| MESSAGE_TYPES.map(str::to_owned).to_vec());
    let is_known = |binding: &Binding| {
        binding.user_sid == user_sid
            && binding.device == device
            && binding.binding_type == registration.binding_type
    };
    if core.varies(Variant::ChatBindingReplaced) {
        service.bindings.retain(|binding| !is_known(binding));
    }
    let bindings = &service.bindings;
    let is_there = core.read_or_stale(Fault::ChatRaceBinding, || bindings.rows().any(is_known));
    let mut bindings = service.bindings.rows_mut();
    if is_there
        && let Some(binding) = bindings.find(|binding| is_known(binding))
        && !core.fails(Fault::ChatBindingDuplicates)
    {
        registration.endpoint.clone_into(&mut binding.endpoint);
        binding.message_types = message_types;
        if core.varies(Variant::ChatCredentialRenewed) {
            binding.credential_sid = core.sid("CR");
        }
        binding.updated = core.now;
        return Ok(binding.sid.clone());
    }
    drop(bindings);
    if let Some(deleted) = service.deleted_bindings.last()
        && core.fails(Fault::ChatDeletedBindingStays)
    {
        return Ok(deleted.clone());
    }
    if core.fails(Fault::ChatBindingOnePerUser) {
        service
            .bindings
            .retain(|binding| binding.user_sid != user_sid);
    }
    if core.fails(Fault::ChatBindingOneUserPerDevice) {
        service
            .bindings
            .retain(|binding| binding.user_sid == user_sid || binding.device != device);
    }
    let binding = Binding {
        user_sid,
        sid: core.sid("BS"),
        identity: registration.identity.to_owned(),
        device: device.to_owned(),
        endpoint: match registration.endpoint.get(..ENDPOINT_CUT) {
            Some(start) if core.fails(Fault::ChatBindingEndpointCut) => start.to_owned(),
            Some(_) | None => registration.endpoint.to_owned(),
        },
        binding_type: registration.binding_type.to_owned(),
        message_types,
        credential_sid: registration
            .credential_sid
            .map_or_else(|| core.sid("CR"), str::to_owned),
        created: core.now,
        updated: core.now,
    };
    let sid = binding.sid.clone();
    former::restore_bindings(service, core, Fault::ChatDeletedBindingReturns);
    service.bindings.insert(sid.clone(), None, binding);
    Ok(sid)
}

pub(super) fn fetch(service: &Service, core: &Core, sid: &str) -> Answer {
    let binding = service.bindings.find(sid, false)?;
    if service.half_deleted.contains_key(sid) {
        return Err(Refusal::not_found());
    }
    Ok(core.ok(&binding.represent(service, core)))
}

pub(super) fn read(service: &Service, core: &Core, call: &Call<'_>) -> Answer {
    pages::BINDINGS_TYPE.check(core, call)?;
    let types = pages::BINDINGS_TYPE.wanted(core, call);
    let identities = pages::BINDINGS_IDENTITY.wanted(core, call);
    let items = listed(service, core, "Bindings", !types.is_empty())
        .filter(|(_, b)| {
            let has_type = types.is_empty() || types.contains(&b.binding_type.as_str());
            let is_of = identities.is_empty() || identities.iter().any(|i| is_of(core, b, i));
            let is_later = call.query.has("PageToken") && !types.is_empty();
            let has_type = has_type
                || (is_later
                    && !identities.is_empty()
                    && core.fails(Fault::ChatLaterPageOneFilter));
            let one_suffices = !types.is_empty()
                && !identities.is_empty()
                && has_type != is_of
                && core.fails(Fault::ChatBindingsFiltersNotCombined);
            (has_type && is_of) || one_suffices
        })
        .map(|(sequence, binding)| (sequence, move || binding.represent(service, core)));
    let filters = pages::filters(call, &[pages::BINDINGS_TYPE, pages::BINDINGS_IDENTITY]);
    let list = pages::list(core, "bindings", service.url(core, &["Bindings"]));
    Listing { filters, ..list }.page(core, call, items)
}

/// True if a binding belongs to the identity.
fn is_of(core: &Core, binding: &Binding, identity: &str) -> bool {
    user::name_of(core, identity) == user::name_of(core, &binding.identity)
        || (identity.eq_ignore_ascii_case(&binding.identity)
            && core.fails(Fault::ChatBindingsFilterAnyCase))
        || (binding.identity != identity
            && binding.identity.starts_with(identity)
            && core.fails(Fault::ChatBindingsFilterPrefix))
}

/// Bindings with their sequence numbers, as both lists use them.
fn listed<'a>(
    service: &'a Service,
    core: &'a Core,
    place: &'a str,
    is_by_type: bool,
) -> impl Iterator<Item = (u64, &'a Binding)> {
    let newest = service.bindings.last().map(|newest| newest.sid.as_str());
    let hidden = newest.filter(|_| core.fails(Fault::ChatNewestBindingNotListed));
    let deleted = service
        .lost_bindings
        .iter()
        .filter(move |_| is_by_type && core.fails(Fault::ChatDeletedBindingListedByType))
        .map(|(sequence, binding)| (former::BEHIND + sequence, binding));
    service
        .bindings
        .iter()
        .chain(deleted)
        .filter(move |(_, binding)| Some(binding.sid.as_str()) != hidden)
        .filter(move |(_, b)| {
            service
                .half_deleted
                .get(&b.sid)
                .is_none_or(|at| *at == place)
        })
        .filter(|(_, binding)| pages::is_listed(core, binding.created))
}

/// Deletes a single binding.
fn remove(service: &mut Service, core: &Core, sid: &str) {
    former::restore_bindings(service, core, Fault::ChatDeletedBindingReturnsOnDeletion);
    service.deleted_bindings.insert(sid.to_owned());
    if core.fails(Fault::ChatDeletedBindingListed) {
        service.bindings.forget(sid);
        return;
    }
    let Some(removed) = service.bindings.remove(sid) else {
        return;
    };
    if core.fails(Fault::ChatDeleteBindingTakesType) {
        let taken = &removed.binding_type;
        service
            .bindings
            .retain(|binding| binding.binding_type != *taken);
    }
    if core.fails(Fault::ChatDeleteBindingTakesAll) {
        service
            .bindings
            .retain(|binding| binding.user_sid != removed.user_sid);
    }
    former::binding_deleted(service, core, &removed.user_sid);
    service.lost_bindings.insert(sid.to_owned(), None, removed);
}

/// The response to a deletion: empty (D2, Endpoints).
fn deleted(core: &Core, shown: &Value) -> Response {
    if core.fails(Fault::ChatDeleteAnswersBinding) {
        return core.ok(shown);
    }
    Response::empty(if core.varies(Variant::ChatDeleteAnswers200) {
        200
    } else {
        204
    })
}

pub(super) fn delete(service: &mut Service, core: &Core, sid: &str) -> Answer {
    if service.bindings.find(sid, false).is_err()
        && service.deleted_bindings.contains(sid)
        && core.varies(Variant::ChatDeleteAgainAccepted)
    {
        return Ok(deleted(core, &Value::Null));
    }
    let shown = service.bindings.find(sid, false)?.represent(service, core);
    if core.fails(Fault::ChatServiceDeletionHalf) {
        service.half_deleted.insert(sid.to_owned(), "Users");
    } else if !core.fails(Fault::ChatDeleteBindingDoesNothing) {
        remove(service, core, sid);
    }
    Ok(deleted(core, &shown))
}

/// The binding of a user in the path.
fn find_of_user<'a>(
    service: &'a Service,
    core: &Core,
    user: &str,
    sid: &str,
    anybodys: Fault,
) -> Result<&'a Binding, Refusal> {
    let user = user::find(service, core, user)?;
    match service.bindings.find(sid, false) {
        _ if service.half_deleted.contains_key(sid) => Err(Refusal::not_found()),
        Ok(binding) if binding.user_sid == user.sid => Ok(binding),
        Ok(binding) if core.fails(anybodys) => Ok(binding),
        _ => Err(Refusal::not_found()),
    }
}

pub(super) fn fetch_of_user(service: &Service, core: &Core, user: &str, sid: &str) -> Answer {
    let anybodys = Fault::ChatUserBindingInEveryUser;
    let binding = find_of_user(service, core, user, sid, anybodys)?;
    Ok(core.ok(&binding.represent_of_user(service, core)))
}

pub(super) fn read_of_user(service: &Service, core: &Core, call: &Call<'_>, user: &str) -> Answer {
    let user = user::find(service, core, user)?;
    pages::USER_BINDINGS_TYPE.check(core, call)?;
    let types = pages::USER_BINDINGS_TYPE.wanted(core, call);
    let items = listed(service, core, "Users", !types.is_empty())
        .filter(|(_, b)| {
            b.user_sid == user.sid || core.fails(Fault::ChatReadUserBindingsOfEverybody)
        })
        .filter(|(_, b)| types.is_empty() || types.contains(&b.binding_type.as_str()))
        .map(|(sequence, binding)| (sequence, || binding.represent_of_user(service, core)));
    let filters = pages::filters(call, &[pages::USER_BINDINGS_TYPE]);
    let url = service.url(core, &["Users", &user.sid, "Bindings"]);
    let list = pages::list(core, "bindings", url);
    Listing { filters, ..list }.page(core, call, items)
}

pub(super) fn delete_of_user(service: &mut Service, core: &Core, user: &str, sid: &str) -> Answer {
    let anybodys = Fault::ChatUserBindingDeletedByEveryUser;
    let shown = find_of_user(service, core, user, sid, anybodys)?.represent_of_user(service, core);
    if core.fails(Fault::ChatUserDeletionHalf) {
        service.half_deleted.insert(sid.to_owned(), "Bindings");
    } else if !core.fails(Fault::ChatDeleteUserBindingDoesNothing) {
        remove(service, core, sid);
    }
    Ok(deleted(core, &shown))
}
