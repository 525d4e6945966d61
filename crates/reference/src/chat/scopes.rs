//! Faults of scope: resources are found under a wrong parent.
//!
//! Each function returns its input unless a fault is on.

use super::channel::Channel;
use super::service::Service;
use super::table::Table;
use crate::{Call, Core, Fault};
use conformant_base::http::Response;

/// The service of a request.
pub(super) fn service<'a>(
    services: &'a Table<Service>,
    core: &Core,
    (method, named): (&str, &'a str),
    rest: &[&str],
) -> &'a str {
    type Has<'h> = Box<dyn Fn(&Service) -> bool + 'h>;
    let (anywhere, has): (Fault, Has<'_>) = match (method, rest) {
        ("GET", ["Channels", channel, _, ..])
            if core.fails(Fault::ChatUniqueNameInEveryService) =>
        {
            (
                Fault::ChatUniqueNameInEveryService,
                Box::new(|s| s.channels.by_name(channel).is_some()),
            )
        }
        ("GET", ["Channels", channel, _, ..]) => (
            Fault::ChatChannelInEveryService,
            Box::new(|s| s.channels.by_sid(channel).is_some()),
        ),
        ("GET", ["Users", user, _, ..])
            if services
                .by_sid(named)
                .is_some_and(|s| s.users.find(user, true).is_err())
                && core.fails(Fault::ChatIdentityInEveryService) =>
        {
            (
                Fault::ChatIdentityInEveryService,
                Box::new(|s| s.users.by_name(user).is_some()),
            )
        }
        ("GET", ["Users", user, _, ..]) => (
            Fault::ChatUserInEveryService,
            Box::new(|s| s.users.by_sid(user).is_some()),
        ),
        ("GET", ["Bindings", sid]) => (
            Fault::ChatBindingInEveryService,
            Box::new(|s| s.bindings.by_sid(sid).is_some()),
        ),
        ("DELETE", ["Bindings", sid]) => (
            Fault::ChatBindingDeletedInEveryService,
            Box::new(|s| s.bindings.by_sid(sid).is_some()),
        ),
        _ => return named,
    };
    if services.by_sid(named).is_none_or(&has) {
        return named;
    }
    match services.rows().find(|service| has(service)) {
        Some(own) if core.fails(anywhere) => &own.sid,
        _ => named,
    }
}

/// The channel of a request.
pub(super) fn channel(
    service: &Service,
    core: &Core,
    (method, named): (&str, &str),
    rest: &[&str],
) -> String {
    let has = |channel: &Channel| match rest {
        ["Members", sid] => channel.members.by_sid(sid).is_some(),
        ["Invites", sid] => channel.invites.by_sid(sid).is_some(),
        ["Webhooks", sid] => channel.webhooks.by_sid(sid).is_some(),
        _ => false,
    };
    let anywhere = match (method, rest) {
        ("GET", ["Members", _]) => Fault::ChatMemberInEveryChannel,
        ("POST", ["Members", _]) => Fault::ChatMemberUpdatedInEveryChannel,
        ("GET", ["Invites", _]) => Fault::ChatInviteInEveryChannel,
        ("POST", ["Webhooks", _]) => Fault::ChatWebhookUpdatedInEveryChannel,
        _ => return named.to_owned(),
    };
    let is_right = service.channels.find(named, true).is_ok_and(&has);
    match service.channels.rows().find(|channel| has(channel)) {
        Some(own) if !is_right && service.channels.find(named, true).is_ok() => {
            let own = if core.fails(anywhere) {
                &own.sid
            } else {
                named
            };
            own.to_owned()
        }
        _ => named.to_owned(),
    }
}

/// Copies the resource in the path from the service that has it.
pub(super) fn take_over(
    services: &mut Table<Service>,
    core: &Core,
    (method, sid): (&str, &str),
    rest: &[&str],
) {
    let others = || services.rows().filter(|service| service.sid != sid);
    let mut bindings = Vec::new();
    match (method, rest) {
        ("GET", ["Bindings", binding]) if core.fails(Fault::ChatBindingShownAsAsked) => {
            bindings.extend(others().find_map(|other| other.bindings.by_sid(binding)));
        }
        ("GET", ["Bindings"]) if core.fails(Fault::ChatBindingsShownAsAsked) => {
            bindings.extend(others().flat_map(|other| other.bindings.rows()));
        }
        _ => return,
    }
    let bindings: Vec<_> = bindings.into_iter().cloned().collect();
    let Some(service) = services.by_sid_mut(sid) else {
        return;
    };
    for binding in bindings {
        if service.bindings.by_sid(&binding.sid).is_none() {
            service.bindings.insert(binding.sid.clone(), None, binding);
        }
    }
}

/// A response about one service, presented as another's.
pub(super) fn shown_as(mut response: Response, own: &str, asked: &str) -> Response {
    if own != asked {
        let text = String::from_utf8_lossy(&response.body).replace(own, asked);
        response.body = text.into_bytes();
    }
    response
}

/// Copies the resource in the body from the service that has it.
pub(super) fn adopt(
    services: &mut Table<Service>,
    core: &Core,
    call: &Call<'_>,
    sid: &str,
    rest: &[&str],
) {
    let (parameter, taken) = match rest {
        [] => ("DefaultServiceRoleSid", Fault::ChatServiceForeignRole),
        ["Users"] => ("RoleSid", Fault::ChatUserForeignRole),
        ["Channels", _, "Members", ..] => ("RoleSid", Fault::ChatMemberForeignRole),
        ["Channels", _, "Invites"] => ("RoleSid", Fault::ChatInviteForeignRole),
        ["Channels", _, "Messages"] => ("MediaSid", Fault::ChatMessageForeignMedia),
        _ => return,
    };
    let Some(named) = call.form.get(parameter) else {
        return;
    };
    let others = || services.rows().filter(|service| service.sid != sid);
    let role = others()
        .find_map(|other| other.roles.by_sid(named))
        .cloned();
    let media = others()
        .find_map(|other| other.media.by_sid(named))
        .cloned();
    if (role.is_none() && media.is_none()) || !core.fails(taken) {
        return;
    }
    let Some(service) = services.by_sid_mut(sid) else {
        return;
    };
    if let Some(role) = role {
        service.roles.insert(role.sid.clone(), None, role);
    }
    if let Some(media) = media {
        service.media.insert(named.to_owned(), None, media);
    }
}
