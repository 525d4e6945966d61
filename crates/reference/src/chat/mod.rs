//! Chat and media (D2).
//!
//! Routes requests to resources, each of which has a file. Of undocumented operations only those reads exist
//! to which links point (D2, Resources: `url` and `links`).

mod binding;
mod channel;
mod delivery;
mod former;
mod hooks;
mod inputs;
mod invite;
mod media;
mod member;
mod message;
mod multipart;
mod overview;
mod pages;
mod role;
mod scopes;
mod service;
mod table;
mod user;
mod user_channel;
mod webhook;

#[cfg(test)]
mod tests;

use self::service::Service;
use self::table::Table;
use super::credentials::{self, CredentialFaults, authenticate};
use super::{Answer, Call, Control, Core, Fault, Refusal, Variant};
use conformant_base::clock::Timestamp;
use serde_json::Value;

#[derive(Clone, Debug)]
pub struct Chat {
    services: Table<Service>,
    /// `messaging_service_sid` until a version 3 update sets another.
    messaging_service_sid: String,
}

impl Chat {
    pub(super) fn new(core: &mut Core) -> Self {
        Self {
            services: Table::default(),
            messaging_service_sid: core.sid("MG"),
        }
    }

    /// Answers below `/chat`.
    pub(super) fn handle(&mut self, core: &mut Core, call: &Call<'_>) -> Answer {
        let (method, path) = call.route();
        if let Err(refusal) = authenticate(core, call, &CHAT_CREDENTIALS) {
            let done = match (method, call.path.len() % 2) {
                ("POST", 0) => core.fails(Fault::ChatUnauthorisedCreationDone),
                ("POST", _) => core.fails(Fault::ChatUnauthorisedUpdateDone),
                ("DELETE", _) => core.fails(Fault::ChatUnauthorisedDeletionDone),
                _ => false,
            };
            if done {
                let _ = self.route(core, call, method, &path);
            }
            if method == "POST" {
                self.tell_though_refused(core, call, &path);
            }
            return Err(refusal);
        }
        self.route(core, call, method, &path)
    }

    fn route(&mut self, core: &mut Core, call: &Call<'_>, method: &str, path: &[&str]) -> Answer {
        match (method, path) {
            ("POST", ["v2", "Services"]) => service::create(&mut self.services, core, call),
            ("GET", ["v2", "Services"]) => service::read(&self.services, core, call),
            (_, ["v2", "Services", sid, rest @ ..]) => {
                if method == "POST" {
                    self.refuse_foreign(core, call, sid, rest)?;
                }
                scopes::take_over(&mut self.services, core, (method, sid), rest);
                let sid = match rest {
                    ["Roles", role] if core.fails(Fault::ChatRoleInEveryService) => {
                        self.owner(sid, |service| service.roles.by_sid(role).is_some())
                    }
                    _ => scopes::service(&self.services, core, (method, sid), rest),
                };
                let sid = sid.to_owned();
                if method == "POST" {
                    scopes::adopt(&mut self.services, core, call, &sid, rest);
                }
                if method == "GET" {
                    former::lend_channels(&mut self.services, core, &sid, rest);
                }
                let service = self
                    .services
                    .by_sid_mut(&sid)
                    .ok_or_else(Refusal::not_found)?;
                let answer = in_service(service, core, call, method, rest);
                if ("POST", &[][..]) == (method, rest) && answer.is_ok() {
                    service::rename_others(&mut self.services, core, &sid);
                }
                if let ("DELETE", [.., binding]) = (method, rest) {
                    former::delete_elsewhere(&mut self.services, core, &sid, binding);
                }
                answer
            }
            ("POST", ["v3", "Services", sid, "Channels", channel]) => {
                let is_there = self.services.by_sid(sid).is_some();
                let own = if is_there && core.fails(Fault::ChatV3ChannelShownAsAsked) {
                    self.owner(sid, |service| service.channels.by_sid(channel).is_some())
                } else {
                    sid
                };
                let own = own.to_owned();
                let service = self
                    .services
                    .by_sid_mut(&own)
                    .ok_or_else(Refusal::not_found)?;
                let messaging = &self.messaging_service_sid;
                let answer = channel::update_type(service, core, call, channel, messaging);
                answer.map(|response| scopes::shown_as(response, &own, sid))
            }
            _ => Err(Refusal::not_found()),
        }
    }

    /// Fault: a message without valid credentials calls the webhooks.
    fn tell_though_refused(&self, core: &mut Core, call: &Call<'_>, path: &[&str]) {
        let ["v2", "Services", service, "Channels", channel, "Messages"] = path else {
            return;
        };
        if let Some(service) = self.services.by_sid(service)
            && inputs::webhooks_enabled(core, call)
            && core.fails(Fault::ChatRefusedMessageCallsWebhooks)
        {
            let mut happening = delivery::Happening::new(message::SENT, &[]);
            happening.message_body = call.form.get("Body").map(str::to_owned);
            delivery::announce(core, service, service.channels.by_sid(channel), &happening);
        }
    }

    /// Answers below `/media`.
    pub(super) fn handle_media(&mut self, core: &mut Core, call: &Call<'_>) -> Answer {
        let (method, path) = call.route();
        // A temporary URL contains its permission; all else needs credentials.
        if !matches!(path.as_slice(), [_, _, _, _, _, "Direct"]) {
            authenticate(core, call, &MEDIA_CREDENTIALS)?;
        }
        let ["v1", "Services", sid, "Media", rest @ ..] = path.as_slice() else {
            return Err(Refusal::not_found());
        };
        let sid = match rest {
            [media] if core.fails(Fault::MediaInEveryService) => {
                self.owner(sid, |service| service.media.by_sid(media).is_some())
            }
            _ => sid,
        };
        let sid = sid.to_owned();
        let service = self
            .services
            .by_sid_mut(&sid)
            .ok_or_else(Refusal::not_found)?;
        match (method, rest) {
            ("POST", []) => media::upload(service, core, call),
            ("GET", [sid]) => media::fetch(service, core, sid),
            ("GET", [sid, "Content"]) => media::content(service, core, sid),
            ("GET", [sid, "Direct"]) => media::content_direct(service, core, call, sid),
            _ => Err(Refusal::not_found()),
        }
    }

    /// The service that owns a resource, or else the requested one: for faults that search everywhere.
    fn owner<'a>(&'a self, asked: &'a str, has: impl Fn(&Service) -> bool) -> &'a str {
        self.services
            .rows()
            .find(|service| has(service))
            .map_or(asked, |service| &service.sid)
    }

    /// True if a channel or user has the unique name or identity of this representation: for a fault.
    pub(super) fn has_name(&self, shown: &Value) -> bool {
        let text = |key: &str| shown[key].as_str();
        self.services.rows().any(|service| {
            let channel = text("unique_name").and_then(|name| service.channels.by_name(name));
            let user = text("identity").and_then(|name| service.users.by_name(name));
            channel.is_some() || user.is_some()
        })
    }

    /// How many channels the user with the identity of this representation has joined: for a fault.
    pub(super) fn channels_joined(&self, shown: &Value) -> u64 {
        let identity = shown["identity"].as_str().unwrap_or_default();
        let users = self
            .services
            .rows()
            .filter_map(|service| service.users.by_name(identity));
        users.map(|user| user.joined_channels() as u64).sum()
    }

    /// Runs a user or device action.
    pub(super) fn control(&mut self, core: &mut Core, hook: &str, args: &Value) -> Control {
        hooks::control(&mut self.services, core, hook, args)
    }

    /// Faults: identities and unique names are unique across services.
    fn refuse_foreign(
        &self,
        core: &Core,
        call: &Call<'_>,
        sid: &str,
        rest: &[&str],
    ) -> Result<(), Refusal> {
        let (name, fault, why) = match rest {
            ["Users"] => (
                call.form.get("Identity"),
                Fault::ChatIdentityUniqueAcrossServices,
                "the identity exists",
            ),
            ["Channels"] => (
                call.form.get("UniqueName"),
                Fault::ChatUniqueNameUniqueAcrossServices,
                "the unique name exists",
            ),
            _ => return Ok(()),
        };
        let mut others = self.services.rows().filter(|service| service.sid != sid);
        let is_elsewhere = name.is_some_and(|name| {
            others.any(|other| match rest {
                ["Users"] => other.users.rows().any(|user| user.identity == name),
                _ => other.channels.by_name(name).is_some(),
            })
        });
        if is_elsewhere && core.fails(fault) {
            return Err(Refusal::conflict(why));
        }
        Ok(())
    }
}

/// `date_updated`, which a variant leaves null until an update.
fn updated(core: &Core, created: Timestamp, updated: Timestamp) -> Value {
    if created == updated && core.varies(Variant::ChatNeverUpdated) {
        Value::Null
    } else {
        core.date(updated)
    }
}

/// Finds the operation below `/v2/Services/{ServiceSid}`.
fn in_service(
    service: &mut Service,
    core: &mut Core,
    call: &Call<'_>,
    method: &str,
    rest: &[&str],
) -> Answer {
    match (method, rest) {
        ("GET", []) => Ok(service::fetch(service, core)),
        ("POST", []) => service::update(service, core, call),
        ("POST", ["Channels"]) => channel::create(service, core, call),
        ("GET", ["Channels"]) => channel::read(service, core, call),
        (_, ["Channels", channel, rest @ ..]) => {
            in_channel(service, core, call, method, channel, rest)
        }
        ("POST", ["Users"]) => user::create(service, core, call),
        ("GET", ["Users"]) => user::read(service, core, call),
        (_, ["Users", user, rest @ ..]) => of_user(service, core, call, method, user, rest),
        ("POST", ["Roles"]) => role::create(service, core, call),
        ("GET", ["Roles"]) => role::read(service, core, call),
        ("GET", ["Roles", sid]) => role::fetch(service, core, sid),
        ("GET", ["Bindings"]) => binding::read(service, core, call),
        ("GET", ["Bindings", sid]) => binding::fetch(service, core, sid),
        ("DELETE", ["Bindings", sid]) => binding::delete(service, core, sid),
        _ => Err(Refusal::not_found()),
    }
}

/// Finds the operation below `Channels/{ChannelSid}`.
fn in_channel(
    service: &mut Service,
    core: &mut Core,
    call: &Call<'_>,
    method: &str,
    channel: &str,
    rest: &[&str],
) -> Answer {
    let channel = &scopes::channel(service, core, (method, channel), rest);
    match (method, rest) {
        ("GET", []) => channel::fetch(service, core, channel),
        ("POST", ["Members"]) => member::create(service, core, call, channel),
        ("GET", ["Members"]) => member::read(service, core, call, channel),
        ("GET", ["Members", member]) => member::fetch(service, core, channel, member),
        ("POST", ["Members", member]) => member::update(service, core, call, channel, member),
        ("POST", ["Messages"]) => message::create(service, core, call, channel),
        ("GET", ["Messages"]) => message::read(service, core, call, channel),
        ("GET", ["Messages", sid]) => message::fetch(service, core, channel, sid),
        ("POST", ["Invites"]) => invite::create(service, core, call, channel),
        ("GET", ["Invites"]) => invite::read(service, core, call, channel),
        ("GET", ["Invites", sid]) => invite::fetch(service, core, channel, sid),
        ("POST", ["Webhooks"]) => webhook::create(service, core, call, channel),
        ("GET", ["Webhooks"]) => webhook::read(service, core, call, channel),
        ("GET", ["Webhooks", sid]) => webhook::fetch(service, core, channel, sid),
        ("POST", ["Webhooks", sid]) => webhook::update(service, core, call, channel, sid),
        _ => Err(Refusal::not_found()),
    }
}

/// Finds the operation below `Users/{UserSid}`.
fn of_user(
    service: &mut Service,
    core: &mut Core,
    call: &Call<'_>,
    method: &str,
    user: &str,
    rest: &[&str],
) -> Answer {
    match (method, rest) {
        ("GET", []) => user::fetch(service, core, user),
        ("GET", ["Channels"]) => user_channel::read(service, core, call, user),
        ("GET", ["Channels", channel]) => user_channel::fetch(service, core, user, channel),
        ("POST", ["Channels", channel]) => user_channel::update(service, core, call, user, channel),
        ("GET", ["Bindings"]) => binding::read_of_user(service, core, call, user),
        ("GET", ["Bindings", sid]) => binding::fetch_of_user(service, core, user, sid),
        ("DELETE", ["Bindings", sid]) => binding::delete_of_user(service, core, user, sid),
        _ => Err(Refusal::not_found()),
    }
}

const CHAT_CREDENTIALS: CredentialFaults = CredentialFaults {
    account_refused: Fault::ChatAccountSidRefused,
    api_key_refused: Fault::ChatApiKeyRefused,
    accepting: &[
        (Fault::ChatMissingCredentialsAccepted, credentials::missing),
        (Fault::ChatWrongCredentialsAccepted, credentials::any),
        (Fault::ChatUserAnyCase, credentials::other_case),
        (Fault::ChatPasswordSpaced, credentials::spaced),
        (Fault::ChatHalvesOfTwoPairs, credentials::halves),
        (Fault::ChatSecretOfAnyAccount, credentials::other_account),
        (Fault::ChatOtherScheme, credentials::other_scheme),
        (Fault::ChatLaterPageOpen, credentials::open_page),
        (Fault::ChatNestedReadOpen, credentials::open_nested),
        (Fault::ChatV3Open, credentials::open_v3),
        (Fault::ChatUpdateOpen, credentials::open_update),
        (Fault::ChatDeleteOpen, credentials::open_delete),
    ],
};

const MEDIA_CREDENTIALS: CredentialFaults = CredentialFaults {
    account_refused: Fault::MediaAccountSidRefused,
    api_key_refused: Fault::MediaApiKeyRefused,
    accepting: &[
        (Fault::MediaMissingCredentialsAccepted, credentials::missing),
        (Fault::MediaWrongCredentialsAccepted, credentials::any),
        (Fault::MediaUserAnyCase, credentials::other_case),
        (Fault::MediaHalvesOfTwoPairs, credentials::halves),
        (Fault::MediaSecretOfAnyAccount, credentials::other_account),
        (Fault::MediaPasswordEmpty, credentials::empty_password),
    ],
};
