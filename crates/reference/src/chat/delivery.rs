//! Selects webhooks for an event and builds their requests.
//!
//! The core queues and retries them.

use super::channel::Channel;
use super::service::Service;
use crate::{Core, Fault, Variant};
use conformant_base::http::Request;
use serde_json::Value;
use std::time::Duration;

/// D2, Limits: webhook request timeout.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Characters of a body that a fault inspects.
const TRIGGER_START: usize = 100;

/// Length of the prefix of an event name that a fault compares: `onM`.
const EVENT_START: usize = 3;

/// An event for webhooks. The documents list no names and payloads; except for two names in D2 they are
/// specific to the reference.
#[derive(Clone, Debug)]
pub(super) struct Happening {
    /// Event type for the pre-event webhook.
    pub(super) before: &'static str,
    /// Event type for the post-event and channel webhooks.
    pub(super) after: &'static str,
    pub(super) fields: Vec<(&'static str, String)>,
    /// The text searched for triggers, if this is a message.
    pub(super) message_body: Option<String>,
}

impl Happening {
    /// An event without a text to search.
    pub(super) fn new([before, after]: [&'static str; 2], fields: &[(&'static str, &str)]) -> Self {
        let fields = fields.iter();
        Self {
            before,
            after,
            fields: fields
                .map(|(name, text)| (*name, (*text).to_owned()))
                .collect(),
            message_body: None,
        }
    }
}

/// One webhook request to queue.
struct Outgoing<'a> {
    url: &'a str,
    method: &'a str,
    event: &'a str,
    /// True if the event waits for it.
    is_before: bool,
    retries: u32,
}

/// Calls all subscribed webhooks.
pub(super) fn announce(
    core: &mut Core,
    service: &Service,
    channel: Option<&Channel>,
    happening: &Happening,
) {
    let is_late = happening.message_body.is_some() && channel.is_some_and(|c| c.messages.len() > 3);
    let mut outgoing = of_service(core, service, happening);
    if is_late && core.fails(Fault::ChatServiceWebhooksStop) {
        outgoing.clear();
    }
    if is_late
        && outgoing.iter().any(|call| call.is_before)
        && core.fails(Fault::ChatPreWebhookStops)
    {
        outgoing.retain(|call| !call.is_before);
    }
    if let Some(channel) = channel {
        if !(is_late && core.fails(Fault::ChatWebhooksStop)) {
            outgoing.extend(of_channel(core, channel, happening));
        }
        let others = service
            .channels
            .rows()
            .filter(|other| other.sid != channel.sid);
        if core.fails(Fault::ChatWebhookHearsOtherChannels) {
            outgoing.extend(others.flat_map(|other| of_channel(core, other, happening)));
        }
    }
    for call in outgoing {
        send(core, service, &call, happening);
    }
}

/// D2, Events: the pre- and post-event webhooks of the service.
fn of_service<'a>(
    core: &Core,
    service: &'a Service,
    happening: &'a Happening,
) -> Vec<Outgoing<'a>> {
    let fields = &service.fields;
    let wanted = |event: &str| {
        core.fails(Fault::ChatServiceWebhookFiltersIgnored)
            || fields.webhook_filters.as_ref().is_none_or(|filters| {
                let at = filters.iter().position(|f| f == event);
                at.is_some_and(|at| at == 0 || !core.fails(Fault::ChatServiceSecondFilterIgnored))
                    || (event.starts_with("onMember")
                        && core.fails(Fault::ChatServiceMemberEventsUnfiltered))
            })
    };
    let method = if core.fails(Fault::ChatServiceWebhookMethodIgnored) {
        other_method(&fields.webhook_method)
    } else {
        &fields.webhook_method
    };
    let (mut before, mut after) = (
        fields.pre_webhook_retry_count,
        fields.post_webhook_retry_count,
    );
    if core.fails(Fault::ChatPreRetryOfPost) {
        before = after;
    }
    if core.fails(Fault::ChatPostRetryOfPre) {
        after = fields.pre_webhook_retry_count;
    }
    let pre = fields
        .pre_webhook_url
        .as_deref()
        .filter(|_| !core.fails(Fault::ChatPreWebhookSilent))
        .map(|url| (url, happening.before, before));
    let post = fields
        .post_webhook_url
        .as_deref()
        .filter(|_| !core.fails(Fault::ChatPostWebhookSilent))
        .map(|url| (url, happening.after, after));
    let any = [&pre, &post].into_iter().any(Option::is_some);
    let swapped = any && core.varies(Variant::ChatPrePostSwapped);
    let unrepeated = any && core.fails(Fault::ChatServiceRetriesIgnored);
    [pre, post]
        .into_iter()
        .flatten()
        .filter(|(_, event, _)| {
            wanted(event)
                || (*event == happening.before && core.fails(Fault::ChatPreWebhookFiltersIgnored))
        })
        .map(|(url, event, retries)| {
            let sent = if !swapped {
                event
            } else if event == happening.before {
                happening.after
            } else {
                happening.before
            };
            Outgoing {
                url,
                method,
                event: sent,
                is_before: event == happening.before,
                retries: match retries {
                    0 if core.fails(Fault::ChatServiceRetriesUnasked) => 1,
                    _ if unrepeated => 0,
                    _ => retries,
                },
            }
        })
        .collect()
}

/// D2, Events: channel webhooks call a URL or match trigger strings; flows are not called over HTTP.
fn of_channel<'a>(
    core: &Core,
    channel: &'a Channel,
    happening: &'a Happening,
) -> Vec<Outgoing<'a>> {
    channel
        .webhooks
        .rows()
        .enumerate()
        .filter_map(|(at, webhook)| {
            let configuration = &webhook.configuration;
            let wanted = match webhook.kind.as_str() {
                "trigger" => {
                    fires(core, &configuration.triggers, happening)
                        && !(channel.messages.len() > 3 && core.fails(Fault::ChatTriggersStop))
                }
                // A flow starts, which is not called over HTTP.
                "studio" => core.varies(Variant::ChatStudioCalled),
                _ => {
                    let filters = &configuration.filters;
                    let silent = core.fails(Fault::ChatWebhookSilent);
                    let begins_alike = |filter: &String| {
                        let start = filter.get(..EVENT_START).unwrap_or(filter);
                        happening.after.starts_with(start)
                    };
                    let named = if core.fails(Fault::ChatWebhookFirstFilterOnly) {
                        filters.first().is_some_and(|f| f == happening.after)
                    } else if core.fails(Fault::ChatWebhookFilterByStart) {
                        filters.iter().any(begins_alike)
                    } else {
                        let at = filters.iter().position(|f| f == happening.after);
                        at.is_some_and(|at| {
                            at < 3 || !core.fails(Fault::ChatWebhookFourthFilterIgnored)
                        })
                    };
                    !silent
                        && (named
                            || filters.is_empty()
                            || core.fails(Fault::ChatWebhookFiltersIgnored))
                }
            };
            let silenced = webhook.is_updated() && core.fails(Fault::ChatUpdatedWebhookSilent);
            let silenced = silenced || (at == 4 && core.fails(Fault::ChatFifthWebhookSilent));
            let url = configuration
                .url
                .as_deref()
                .filter(|_| wanted && !silenced)?;
            let is_trigger = webhook.kind == "trigger";
            let unrepeated = configuration.retry_count > 0
                && ((is_trigger && core.fails(Fault::ChatRetryNotOnTrigger))
                    || (at > 0 && core.fails(Fault::ChatRetryFirstWebhookOnly)));
            let method = if core.fails(Fault::ChatWebhookMethodIgnored) {
                other_method(&configuration.method)
            } else {
                &configuration.method
            };
            Some(Outgoing {
                url,
                method,
                event: happening.after,
                is_before: false,
                retries: if unrepeated {
                    0
                } else {
                    retries(core, configuration.retry_count)
                },
            })
        })
        .collect()
}

/// D2, Channel webhook: a trigger fires when its string is in a message body.
fn fires(core: &Core, triggers: &[String], happening: &Happening) -> bool {
    let Some(body) = &happening.message_body else {
        return core.fails(Fault::ChatTriggerAlways) || core.fails(Fault::ChatTriggerOnMembers);
    };
    if core.fails(Fault::ChatTriggerNever) {
        return false;
    }
    let start: String = body.chars().take(TRIGGER_START).collect();
    let is_cut = start.len() < body.len() && core.fails(Fault::ChatTriggerAtTheStart);
    let body = if is_cut { &start } else { body };
    let first = body.lines().next().unwrap_or_default().to_owned();
    let is_cut = first.len() < body.len() && core.fails(Fault::ChatTriggerInFirstLine);
    let body = if is_cut { &first } else { body };
    let considered = if core.fails(Fault::ChatTriggerFirstOnly) {
        &triggers[..triggers.len().min(1)]
    } else {
        triggers
    };
    let in_any_case = |trigger: &str| {
        body.to_lowercase().contains(&trigger.to_lowercase())
            && core.fails(Fault::ChatTriggerAnyCase)
    };
    core.fails(Fault::ChatTriggerAlways)
        || considered.iter().enumerate().any(|(at, trigger)| {
            if core.fails(Fault::ChatTriggerWholeBody) {
                return body == trigger;
            }
            if !trigger.is_ascii() && core.fails(Fault::ChatTriggerAsciiOnly) {
                return false;
            }
            if trigger.trim() != trigger && core.fails(Fault::ChatTriggerTrimmed) {
                return body.contains(trigger.trim());
            }
            if core.fails(Fault::ChatTriggerWholeWord) {
                return is_a_word(body, trigger);
            }
            let is_second = at == 1 && core.fails(Fault::ChatSecondTriggerIgnored);
            let beside = |(_, text): &(&str, String)| text.contains(trigger.as_str());
            !is_second
                && (body.contains(trigger.as_str())
                    || in_any_case(trigger)
                    || (core.fails(Fault::ChatTriggerIsPattern) && is_like(body, trigger))
                    || (core.fails(Fault::ChatTriggerBesideBody)
                        && happening.fields.iter().any(beside)))
        })
}

/// True if the text occurs without adjacent letters or digits.
fn is_a_word(body: &str, text: &str) -> bool {
    body.match_indices(text).any(|(at, found)| {
        let before = body[..at].chars().next_back();
        let after = body[at + found.len()..].chars().next();
        ![before, after]
            .into_iter()
            .flatten()
            .any(char::is_alphanumeric)
    })
}

/// True if the text occurs, with dots as wildcards.
fn is_like(body: &str, text: &str) -> bool {
    let (body, text): (Vec<char>, Vec<char>) = (body.chars().collect(), text.chars().collect());
    !text.is_empty()
        && body.windows(text.len()).any(|part| {
            let mut pairs = part.iter().zip(&text);
            pairs.all(|(sign, wanted)| *wanted == '.' || sign == wanted)
        })
}

fn retries(core: &Core, configured: u32) -> u32 {
    if core.fails(Fault::ChatRetriesOneMore) {
        configured.saturating_add(1)
    } else if core.fails(Fault::ChatRetriesOneLess) {
        configured.saturating_sub(1)
    } else if core.fails(Fault::ChatRetriesNone) {
        0
    } else {
        configured
    }
}

fn other_method(method: &str) -> &'static str {
    if method == "GET" { "POST" } else { "GET" }
}

/// Queues one request: form fields in the body of a POST, in the query of a GET.
fn send(core: &mut Core, service: &Service, call: &Outgoing<'_>, happening: &Happening) {
    let Ok(mut url) = url::Url::parse(call.url) else {
        return;
    };
    if !matches!(url.scheme(), "http" | "https") || core.has_given_up(call.url) {
        return;
    }
    if url.query().is_some() && core.fails(Fault::ChatWebhookUrlQueryUncalled) {
        url.set_query(None);
    }
    let mut pairs = vec![
        ("EventType", call.event.to_owned()),
        ("AccountSid", core.account_sid.to_owned()),
        ("InstanceSid", service.sid.clone()),
    ];
    if !core.varies(Variant::ChatWebhookPayloadMinimal) {
        pairs.extend(happening.fields.iter().cloned());
    }
    if core.varies(Variant::ChatWebhookPayloadExtra) {
        pairs.push(("Extra", "1".to_owned()));
    }
    let mut request = Request::new(call.method, "");
    if call.method == "GET" {
        url.query_pairs_mut().extend_pairs(&pairs);
    } else if core.varies(Variant::ChatWebhookPayloadJson) {
        let body: serde_json::Map<String, Value> = pairs
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Value::String(value)))
            .collect();
        request.body = Value::Object(body).to_string().into_bytes();
        request.headers.set("Content-Type", "application/json");
    } else {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        request.body = body.extend_pairs(&pairs).finish().into_bytes();
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        request.headers.set("Content-Type", form);
    }
    let timeout = if core.fails(Fault::ChatWebhookTimeoutShort) {
        Duration::from_secs(2)
    } else if core.fails(Fault::ChatWebhookTimeoutLong) {
        Duration::from_secs(60)
    } else {
        TIMEOUT
    };
    let retries = core.retries_left(call.url, call.retries);
    core.send(url.as_str(), request, timeout, retries);
    if call.is_before {
        core.send_before();
    }
}
