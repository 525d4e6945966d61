//! Channel webhooks: a URL, a flow or trigger strings for events in a channel.

use super::channel::{self, Channel};
use super::inputs::{self, Choice};
use super::pages;
use super::service::Service;
use super::updated;
use crate::{Answer, Call, Core, Fault, Params, Refusal, Variant};
use conformant_base::clock::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// D2, Limits: channel webhooks per channel.
const PER_CHANNEL_MAX: usize = 5;
/// D2, Limits: trigger strings per channel webhook.
const TRIGGERS_MAX: usize = 5;
/// D2, Limits: retry count of a channel webhook.
const RETRIES_MAX: u32 = 3;

const TYPE: Choice = Choice {
    values: &["webhook", "trigger", "studio"],
    open: Fault::ChatWebhookTypeOpen,
};
const METHOD: Choice = Choice {
    values: &["POST", "GET"],
    open: Fault::ChatWebhookMethodOpen,
};

#[derive(Clone, Debug)]
pub(super) struct Webhook {
    pub(super) sid: String,
    pub(super) kind: String,
    pub(super) configuration: Configuration,
    created: Timestamp,
    updated: Timestamp,
    /// The webhook before its last update.
    before: Option<Box<Webhook>>,
}

/// Its configuration; the type determines which parts apply.
#[derive(Clone, Debug)]
pub(super) struct Configuration {
    pub(super) url: Option<String>,
    pub(super) method: String,
    method_given: bool,
    /// Event names; empty for all.
    pub(super) filters: Vec<String>,
    pub(super) triggers: Vec<String>,
    flow_sid: Option<String>,
    pub(super) retry_count: u32,
}

impl Webhook {
    pub(super) fn is_updated(&self) -> bool {
        self.before.is_some()
    }

    fn represent(&self, service: &Service, channel: &Channel, core: &Core) -> Value {
        let is_later = !channel.webhooks.rows().take(3).any(|w| w.sid == self.sid)
            && channel.webhooks.len() > 2;
        let mut configuration = self.configuration.represent(&self.kind, core);
        if is_later
            && self.configuration.retry_count > 0
            && core.fails(Fault::ChatFourthWebhookNoRetries)
        {
            configuration["retry_count"] = json!(0);
        }
        json!({
            "sid": self.sid,
            "account_sid": core.account_sid,
            "service_sid": service.sid,
            "channel_sid": channel.sid,
            "type": self.kind,
            "configuration": configuration,
            "url": service.url(core, &["Channels", &channel.sid, "Webhooks", &self.sid]),
            "date_created": core.date(self.created),
            "date_updated": updated(core, self.created, self.updated),
        })
    }
}

impl Configuration {
    fn new(core: &Core) -> Self {
        Self {
            url: None,
            method: if core.varies(Variant::ChatWebhookMethodDefaultGet) {
                "GET"
            } else {
                "POST"
            }
            .to_owned(),
            method_given: false,
            filters: Vec::new(),
            triggers: Vec::new(),
            flow_sid: None,
            retry_count: 0,
        }
    }

    fn represent(&self, kind: &str, core: &Core) -> Value {
        if kind == "studio" {
            return match &self.flow_sid {
                Some(sid) => json!({ "flow_sid": sid }),
                None => json!({}),
            };
        }
        let mut value = json!({
            "url": self.url,
            "method": self.method,
            "filters": self.filters,
            "retry_count": self.retry_count,
        });
        if kind == "trigger" {
            value["triggers"] = json!(self.triggers);
        }
        if core.varies(Variant::ChatUnsetConfigurationNull) {
            for (name, given) in [
                ("method", self.method_given),
                ("filters", !self.filters.is_empty()),
            ] {
                if !given {
                    value[name] = Value::Null;
                }
            }
        }
        value
    }

    /// Sets every `Configuration.` parameter present.
    fn apply(&mut self, core: &Core, form: &Params) -> Result<(), Refusal> {
        let list = |name: &str| -> Option<Vec<String>> {
            form.has(name)
                .then(|| form.all(name).map(str::to_owned).collect())
        };
        if let Some(url) = form.get("Configuration.Url") {
            self.url = Some(url.to_owned());
        }
        if let Some(method) = form.get("Configuration.Method") {
            self.method = inputs::choice(core, "Configuration.Method", method, METHOD)?;
            self.method_given = true;
        }
        if let Some(mut filters) = list("Configuration.Filters") {
            let known: BTreeSet<String> = filters.iter().cloned().collect();
            if known.len() < filters.len() {
                if core.varies(Variant::ChatRepeatedFilterRefused) {
                    return Err(Refusal::bad_parameter("Configuration.Filters", "repeated"));
                }
                if core.varies(Variant::ChatRepeatedFilterOnce) {
                    filters = known.into_iter().collect();
                }
            }
            self.filters = filters;
        }
        if let Some(triggers) = list("Configuration.Triggers") {
            self.triggers = bounded_triggers(core, triggers)?;
        }
        if let Some(sid) = form.get("Configuration.FlowSid") {
            self.flow_sid = Some(inputs::sid("Configuration.FlowSid", sid, "FW")?);
        }
        if let Some(count) = form.get("Configuration.RetryCount") {
            self.retry_count = retry_count(core, count)?;
        }
        Ok(())
    }
}

fn bounded_triggers(core: &Core, mut triggers: Vec<String>) -> Result<Vec<String>, Refusal> {
    let max = TRIGGERS_MAX;
    let six = triggers.len() == TRIGGERS_MAX + 1 && core.fails(Fault::ChatTriggersSix);
    if triggers.len() > max && !six && !core.fails(Fault::ChatTriggersUnbounded) {
        if !core.varies(Variant::ChatTriggersCut) {
            return Err(Refusal::bad_parameter(
                "Configuration.Triggers",
                "at most 5",
            ));
        }
        triggers.truncate(max);
    }
    Ok(triggers)
}

fn retry_count(core: &Core, text: &str) -> Result<u32, Refusal> {
    let bad = || Refusal::bad_parameter("Configuration.RetryCount", "0 to 3");
    let count: i64 = text.parse().map_err(|_| bad())?;
    let max = RETRIES_MAX;
    let bounded = match u32::try_from(count) {
        Ok(4) if core.fails(Fault::ChatRetryCountFour) => Some(4),
        Ok(count) if count <= max || core.fails(Fault::ChatRetryCountUnbounded) => Some(count),
        Ok(_) => core.varies(Variant::ChatRetryCountClamped).then_some(max),
        Err(_) => core.varies(Variant::ChatRetryCountClamped).then_some(0),
    };
    bounded.ok_or_else(bad)
}

pub(super) fn create(
    service: &mut Service,
    core: &mut Core,
    call: &Call<'_>,
    channel: &str,
) -> Answer {
    let answer = store_webhook(service, core, call, channel);
    if answer.is_err()
        && let Some(channel) = service.channels.by_sid_mut(channel)
        && core.fails(Fault::ChatRefusedWebhooksCount)
    {
        channel.refused_webhooks += 1;
    }
    answer
}

fn store_webhook(service: &mut Service, core: &mut Core, call: &Call<'_>, channel: &str) -> Answer {
    let kind = inputs::required(&call.form, "Type")?;
    let kind = inputs::choice(core, "Type", kind, TYPE)?;
    let channel = channel::find(service, core, channel)?;
    let channel_sid = channel.sid.clone();
    let first_url = channel.webhooks.rows().next();
    let first_url = first_url.and_then(|w| w.configuration.url.clone());
    let mut configuration = Configuration::new(core);
    let applied = configuration.apply(core, &call.form);
    let refusal = match applied.and_then(|()| check_count(service, core, channel, &kind)) {
        Err(refusal) if core.fails(Fault::ChatRefusedWebhookStays) => Some(refusal),
        checked => checked.map(|()| None)?,
    };
    if first_url.is_some()
        && configuration.url != first_url
        && core.fails(Fault::ChatSecondWebhookUrlLost)
    {
        configuration.url = first_url;
    }
    let webhook = Webhook {
        sid: core.sid("WH"),
        kind,
        configuration,
        created: core.now,
        updated: core.now,
        before: None,
    };
    let value = webhook.represent(service, service.channels.find(&channel_sid, false)?, core);
    service.disturb(core, Fault::ChatNewWebhookMovesInterval);
    if let Some(channel) = service.channels.by_sid_mut(&channel_sid) {
        let sid = webhook.sid.clone();
        if core.fails(Fault::ChatWebhookMadeTwice) {
            let mut twin = webhook.clone();
            twin.sid = core.sid("WH");
            channel.webhooks.insert(twin.sid.clone(), None, twin);
        }
        channel.webhooks.insert(sid.clone(), None, webhook);
    }
    refusal.map_or_else(|| Ok(core.created(&value)), Err)
}

fn check_count(
    service: &Service,
    core: &Core,
    channel: &Channel,
    kind: &str,
) -> Result<(), Refusal> {
    let max = PER_CHANNEL_MAX - usize::from(core.fails(Fault::ChatWebhooksTight));
    let count = if core.fails(Fault::ChatWebhooksCountedPerService) {
        service.channels.rows().map(|c| c.webhooks.len()).sum()
    } else if core.fails(Fault::ChatWebhooksCountedPerType) {
        let of_type = |webhook: &&Webhook| webhook.kind == kind;
        channel.webhooks.rows().filter(of_type).count()
    } else {
        channel.webhooks.len() + channel.refused_webhooks
    };
    let count = core.read_or_stale(Fault::ChatRaceWebhooks, || count);
    let six = count == PER_CHANNEL_MAX && core.fails(Fault::ChatWebhooksSix);
    if count >= max && !six && !core.fails(Fault::ChatWebhooksUnbounded) {
        return Err(Refusal::conflict("a channel has at most five webhooks"));
    }
    Ok(())
}

pub(super) fn fetch(service: &Service, core: &Core, channel: &str, sid: &str) -> Answer {
    let channel = channel::find(service, core, channel)?;
    let found = channel.webhooks.find(sid, false);
    let mut anywhere = service
        .channels
        .rows()
        .filter_map(|c| c.webhooks.by_sid(sid));
    let webhook = match anywhere.next() {
        Some(webhook) if core.fails(Fault::ChatWebhookInEveryChannel) => webhook,
        Some(_) | None => found?,
    };
    let webhook = match &webhook.before {
        Some(before) if core.fails(Fault::ChatWebhookFetchStale) => before,
        Some(_) | None => webhook,
    };
    Ok(core.ok(&webhook.represent(service, channel, core)))
}

pub(super) fn read(service: &Service, core: &Core, call: &Call<'_>, channel: &str) -> Answer {
    let channel = channel::find(service, core, channel)?;
    let items = channel
        .webhooks
        .iter()
        .filter(|(_, webhook)| pages::is_listed(core, webhook.created))
        .filter(|(_, webhook)| {
            webhook.kind == "webhook" || !core.fails(Fault::ChatWebhooksOfOneTypeListed)
        })
        .map(|(sequence, webhook)| (sequence, move || webhook.represent(service, channel, core)))
        .skip(usize::from(core.fails(Fault::ChatFirstWebhookNotListed)));
    let url = service.url(core, &["Channels", &channel.sid, "Webhooks"]);
    pages::list(core, "webhooks", url).page(core, call, items)
}

/// Updates a channel webhook. Its parameters are not shown: those of creation except the type.
pub(super) fn update(
    service: &mut Service,
    core: &mut Core,
    call: &Call<'_>,
    channel: &str,
    sid: &str,
) -> Answer {
    if call.form.0.is_empty() && core.varies(Variant::ChatWebhookUpdateRefused) {
        return Err(Refusal::new(400, 20001, "nothing to update"));
    }
    let channel = channel::find(service, core, channel)?;
    let channel_sid = channel.sid.clone();
    let before = channel.webhooks.find(sid, false)?.clone();
    let mut webhook = before.clone();
    if core.fails(Fault::ChatUpdateWebhookResets) {
        webhook.configuration = Configuration::new(core);
    }
    let names_filters = call.form.has("Configuration.Filters");
    if !webhook.configuration.filters.is_empty()
        && !names_filters
        && core.fails(Fault::ChatUpdateWebhookLosesFilters)
    {
        webhook.configuration.filters.clear();
    }
    let applied = webhook.configuration.apply(core, &call.form);
    let is_over = call.form.get("Configuration.RetryCount") == Some("4");
    if let Err(refusal) = &applied
        && !core.fails(Fault::ChatRefusedWebhookUpdateChanges)
        && !(is_over && core.fails(Fault::ChatRetryCountOverMaxChanges))
    {
        return Err(refusal.clone());
    }
    webhook.updated = core.now;
    webhook.before = Some(Box::new(before));
    if core.fails(Fault::ChatUpdateWebhookMovesCreation) {
        webhook.created = core.now;
    }
    let value = webhook.represent(service, channel, core);
    if let Some(channel) = service.channels.by_sid_mut(&channel_sid) {
        for other in channel.webhooks.rows_mut().filter(|other| other.sid != sid) {
            if core.fails(Fault::ChatUpdateWebhookTakesAll) {
                other.configuration = webhook.configuration.clone();
            }
        }
        if let Some(stored) = channel.webhooks.by_sid_mut(sid) {
            *stored = webhook;
        }
    }
    applied?;
    Ok(core.ok(&value))
}
