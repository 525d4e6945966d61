//! Hooks of the chat service: actions of people, devices and operators.

use super::binding::{self, Registration};
use super::member;
use super::service::Service;
use super::table::Table;
use super::user;
use crate::{Control, Core, Done, hook, text_arg};
use serde_json::{Value, json};

/// Runs a hook; `None` if it is not one of chat.
pub(super) fn control(
    services: &mut Table<Service>,
    core: &mut Core,
    hook: &str,
    args: &Value,
) -> Control {
    let hook = match hook {
        "configure_service" => configure_service,
        "register_binding" => register_binding,
        "set_online" => set_online,
        "join_channel" => join_channel,
        "leave_channel" => leave_channel,
        _ => return None,
    };
    let service = text_arg(args, "service_sid").and_then(|sid| {
        services
            .by_sid_mut(sid)
            .ok_or_else(|| hook::unknown("service", "sid", sid))
    });
    Some(service.and_then(|service| hook(service, core, args)))
}

fn configure_service(service: &mut Service, core: &mut Core, args: &Value) -> Done {
    let mut settings = args.as_object().cloned().unwrap_or_default();
    settings.remove("service_sid");
    service.configure(&settings, core.now)?;
    Ok(json!({}))
}

fn register_binding(service: &mut Service, core: &mut Core, args: &Value) -> Done {
    let optional = |name: &str| args.get(name).and_then(Value::as_str);
    let message_types = match args.get("message_types") {
        None | Some(Value::Null) => None,
        Some(types) => Some(
            serde_json::from_value(types.clone())
                .map_err(|_| hook::other_type("message_types", "a list of strings"))?,
        ),
    };
    let registration = Registration {
        identity: text_arg(args, "identity")?,
        binding_type: text_arg(args, "binding_type")?,
        endpoint: text_arg(args, "endpoint")?,
        device: optional("device"),
        message_types,
        credential_sid: optional("credential_sid"),
    };
    let sid = binding::register(service, core, registration)?;
    Ok(json!({ "binding_sid": sid }))
}

fn set_online(service: &mut Service, core: &mut Core, args: &Value) -> Done {
    let online = args
        .get("online")
        .and_then(Value::as_bool)
        .ok_or_else(|| hook::missing("online", "a boolean"))?;
    let sid = user::seen(service, core, text_arg(args, "identity")?);
    if let Some(user) = service.users.by_sid_mut(&sid) {
        user.online = Some(online);
    }
    Ok(json!({}))
}

fn join_channel(service: &mut Service, core: &mut Core, args: &Value) -> Done {
    let channel = channel_sid(service, args)?;
    let identity = text_arg(args, "identity")?;
    member::join_by_hand(service, core, &channel, identity)
        .map(|_| json!({}))
        .map_err(|refusal| refusal.message)
}

fn leave_channel(service: &mut Service, core: &mut Core, args: &Value) -> Done {
    let channel = channel_sid(service, args)?;
    let identity = text_arg(args, "identity")?;
    member::leave_by_hand(service, core, &channel, identity)
        .map(|()| json!({}))
        .map_err(|refusal| refusal.message)
}

fn channel_sid(service: &Service, args: &Value) -> Result<String, String> {
    let key = text_arg(args, "channel_sid")?;
    let channel = service
        .channels
        .find(key, true)
        .map_err(|_| hook::unknown("channel", "sid", key))?;
    Ok(channel.sid.clone())
}
