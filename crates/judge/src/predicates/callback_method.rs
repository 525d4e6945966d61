//! `callback-method`: callbacks use the method that was requested with their address. Does not judge whether a callback
//! comes, nor its content.

use super::prelude::*;
use crate::evidence::{Delivery, Event};

/// A callback to an address uses the requested method.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct CallbackMethod {
    /// The operation or hook that sets the address.
    set_by: String,
    /// Only if the address was set with these values.
    #[serde(default)]
    with: serde_json::Map<String, Value>,
    /// The method, where it is always the same.
    #[serde(default)]
    method: Option<String>,
    /// The parameter or argument that requests a method. Not judged if it is omitted.
    #[serde(default)]
    parameter: Option<String>,
    /// The operation or hook that may change the method. Not judged from then on.
    #[serde(default)]
    changed_by: Option<String>,
}

impl Predicate for CallbackMethod {
    fn subject(&self) -> Subject {
        Subject::Service
    }

    fn references(&self, references: &mut References) {
        let requested = [
            ("set-by", Some(&self.set_by)),
            ("changed-by", self.changed_by.as_ref()),
        ];
        for (key, name) in requested {
            // Hooks are written with underscores, operations with hyphens.
            match name {
                Some(name) if name.contains('_') => references.hook(key, name),
                Some(name) => {
                    references.operation(key, name);
                }
                None => {}
            }
        }
        if self.method.is_some() == self.parameter.is_some() {
            references.problem(
                "method",
                "either a method or the parameter that asks for one",
            );
        }
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Callbacks]
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        for (event, happened) in context.evidence.events.iter().enumerate() {
            let Event::Delivery(delivery) = happened else {
                continue;
            };
            let Some(asked) = self.asked_for(context, verdicts.rule, delivery) else {
                continue;
            };
            let came = &delivery.request.method;
            let fact = (*came != asked).then(|| Fact::new("method", asked, came.clone()));
            verdicts.conclude(Site::delivery(event, "/method"), fact);
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        Mutation::at(sites.last(), [Change::To(json!("PATCH"))])
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let set = |method: Value| {
            let parameters = json!({
                "set-by": "create-webhook", "parameter": "Configuration.Method", "changed-by": "update-webhook",
            });
            let sent = json!({"Type": "webhook", "Configuration.Method": method});
            let scene = Example::for_rule("chat", parameters);
            scene.answered("create-webhook", sent, json!({"sid": "WH1"}))
        };
        let change = json!({"Sid": "WH1", "Configuration.Method": "GET"});
        let changed = set(json!("POST")).answered("update-webhook", change, json!({}));
        let subscribed = |kind: &str| {
            let parameters = json!({
                "set-by": "set_callback", "with": {"kind": "registration"}, "method": "POST",
            });
            let arguments = json!({"kind": kind, "url": "http://h/1"});
            Example::for_rule("auth", parameters).hook("set_callback", arguments, json!({}))
        };
        vec![
            set(json!("GET")).called(0, "GET").passes(),
            set(json!("POST")).called(0, "GET").fails("/method"),
            set(Value::Null).called(0, "GET").not_judged(),
            set(json!("get")).called(0, "GET").not_judged(),
            set(json!("POST")).not_judged(),
            changed.called(0, "GET").not_judged(),
            subscribed("registration").called(0, "POST").passes(),
            subscribed("registration").called(0, "GET").fails("/method"),
            subscribed("approval").called(0, "GET").not_judged(),
        ]
    }
}

impl CallbackMethod {
    /// The method by which this call should have come, where that is known.
    fn asked_for(&self, context: &Context<'_>, rule: &Rule, delivery: &Delivery) -> Option<String> {
        let events = &context.evidence.events;
        let subscription = delivery.subscription?;
        let requested = arguments(context, rule, events.get(subscription)?, &self.set_by)?;
        let fits = |(name, value): (&String, &Value)| requested(name).is_some_and(|v| v == value);
        if !self.with.iter().all(fits) {
            return None;
        }
        // A call may be under way while something else is asked for: whatever comes after is left alone.
        let is_changed = |event: &Event| {
            let changed = self.changed_by.as_deref();
            changed.is_some_and(|by| arguments(context, rule, event, by).is_some())
        };
        if events.iter().skip(subscription + 1).any(is_changed) {
            return None;
        }
        match (&self.method, &self.parameter) {
            (Some(method), _) => Some(method.clone()),
            // A service that takes `get` may well mean GET.
            (None, Some(parameter)) => {
                let is_method = |text: &&str| text.bytes().all(|b| b.is_ascii_uppercase());
                let asked = requested(parameter).and_then(Value::as_str);
                asked.filter(is_method).map(str::to_owned)
            }
            (None, None) => None,
        }
    }
}

/// The parameters or arguments of an event, if it is of that operation or hook.
fn arguments<'e>(
    context: &Context<'e>,
    rule: &Rule,
    event: &'e Event,
    of: &str,
) -> Option<impl Fn(&str) -> Option<&'e Value> + use<'e>> {
    let exchange = match event {
        Event::Exchange(index) => Some(&context.evidence.exchanges[*index]),
        Event::Hook(_) | Event::Delivery(_) | Event::Passed(_) => None,
    };
    let exchange = exchange.filter(|e| e.service == rule.service && e.operation == of);
    let call = event.hook().filter(|call| call.name == of);
    (exchange.is_some() || call.is_some()).then_some(move |name: &str| match exchange {
        Some(exchange) => exchange.sent.get(name),
        None => call?.arguments.get(name),
    })
}
