//! `called-by`: who was told an address is called there by the method that was asked for with it. Says nothing of whether
//! a call comes, nor of what it carries.

use super::prelude::*;
use crate::evidence::{Delivery, Event};

/// A call of an address that was told so comes by that method.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CalledBy {
    /// The operation or hook that tells the address.
    told_by: String,
    /// Only where it was told with these values.
    #[serde(default)]
    with: serde_json::Map<String, Value>,
    /// The method, where it is always the same.
    #[serde(default)]
    method: Option<String>,
    /// The parameter or argument that asks for a method; nothing is known where it was left out.
    #[serde(default)]
    parameter: Option<String>,
    /// The operation or hook that may ask for another method later: from then on nothing is known.
    #[serde(default)]
    changed_by: Option<String>,
}

impl Check for CalledBy {
    fn predicate(&self) -> &'static str {
        Self::NAME
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Service
    }

    fn names(&self, names: &mut Names<'_>) {
        let told = [
            ("told-by", Some(&self.told_by)),
            ("changed-by", self.changed_by.as_ref()),
        ];
        for (key, name) in told {
            // Hooks are written with underscores, operations with hyphens.
            if let Some(name) = name.filter(|name| !names.has_hook(name)) {
                names.operation(key, name);
            }
        }
        if self.method.is_some() == self.parameter.is_some() {
            names.problem(
                "method",
                "either a method or the parameter that asks for one",
            );
        }
    }
}

impl Predicate for CalledBy {
    const NAME: &'static str = "called-by";

    fn needs() -> &'static [Need] {
        &[Need::Callbacks]
    }

    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        for (event, happened) in case.evidence.events.iter().enumerate() {
            let Event::Delivery(delivery) = happened else {
                continue;
            };
            let Some(asked) = self.asked_for(case, rule, delivery) else {
                continue;
            };
            let came = &delivery.request.method;
            let fact = (*came != asked).then(|| Fact {
                kind: "method",
                expected: asked,
                actual: came.clone(),
                ..Fact::default()
            });
            verdicts
                .instance(rule, Site::delivery(event, "/method"))
                .conclude(fact);
        }
    }

    fn break_it(&self, sites: &Sites) -> Vec<Mutation> {
        let other = Change::To(json!("PATCH"));
        vec![Mutation::new(sites.last().clone(), other)]
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let told = |method: Value| {
            let parameters = json!({
                "told-by": "create-webhook", "parameter": "Configuration.Method",
                "changed-by": "update-webhook",
            });
            let sent = json!({"Type": "webhook", "Configuration.Method": method});
            Example::of("chat", parameters).answered("create-webhook", sent, json!({"sid": "WH1"}))
        };
        let changed = told(json!("POST")).answered(
            "update-webhook",
            json!({"Sid": "WH1", "Configuration.Method": "GET"}),
            json!({}),
        );
        let subscribed = |kind: &str| {
            let parameters = json!({
                "told-by": "set_callback", "with": {"kind": "registration"}, "method": "POST",
            });
            let arguments = json!({"kind": kind, "url": "http://h/1"});
            Example::of("auth", parameters).hook("set_callback", arguments, json!({}))
        };
        vec![
            told(json!("GET")).called(0, "GET").passes(),
            told(json!("POST")).called(0, "GET").fails("/method"),
            told(Value::Null).called(0, "GET").not_judged(),
            told(json!("get")).called(0, "GET").not_judged(),
            told(json!("POST")).not_judged(),
            changed.called(0, "GET").not_judged(),
            subscribed("registration").called(0, "POST").passes(),
            subscribed("registration").called(0, "GET").fails("/method"),
            subscribed("approval").called(0, "GET").not_judged(),
        ]
    }
}

impl CalledBy {
    /// The method by which this call should have come, where that is known.
    fn asked_for(&self, case: &Case<'_>, rule: &Rule, delivery: &Delivery) -> Option<String> {
        let events = &case.evidence.events;
        let subscription = delivery.subscription?;
        let told = arguments(case, rule, events.get(subscription)?, &self.told_by)?;
        let fits = |(name, value): (&String, &Value)| told(name).is_some_and(|v| v == value);
        if !self.with.iter().all(fits) {
            return None;
        }
        // A call may be under way while something else is asked for: whatever comes after is left alone.
        let is_changed = |event: &Event| {
            let changed = self.changed_by.as_deref();
            changed.is_some_and(|by| arguments(case, rule, event, by).is_some())
        };
        if events.iter().skip(subscription + 1).any(is_changed) {
            return None;
        }
        match (&self.method, &self.parameter) {
            (Some(method), _) => Some(method.clone()),
            // A service that takes `get` may well mean GET.
            (None, Some(parameter)) => {
                let is_method = |text: &&str| text.bytes().all(|b| b.is_ascii_uppercase());
                let asked = told(parameter).and_then(Value::as_str);
                asked.filter(is_method).map(str::to_owned)
            }
            (None, None) => None,
        }
    }
}

/// What was said in this event, by name, where it is of that operation or hook.
fn arguments<'e>(
    case: &Case<'e>,
    rule: &Rule,
    event: &'e Event,
    of: &str,
) -> Option<impl Fn(&str) -> Option<&'e Value> + use<'e>> {
    let arguments: Vec<(&'e str, &'e Value)> = match event {
        Event::Exchange(index) => {
            let exchange = &case.evidence.exchanges[*index];
            let is_it = exchange.service == rule.service && exchange.operation == of;
            let sent = is_it.then_some(&exchange.sent)?;
            sent.iter()
                .map(|(name, value)| (name.as_str(), value))
                .collect()
        }
        Event::Hook(call) if call.name == of => {
            let given = call.arguments.as_object()?;
            given
                .iter()
                .map(|(name, value)| (name.as_str(), value))
                .collect()
        }
        Event::Hook(_) | Event::Delivery(_) | Event::Passed(_) => return None,
    };
    Some(move |name: &str| {
        arguments
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, v)| *v)
    })
}
