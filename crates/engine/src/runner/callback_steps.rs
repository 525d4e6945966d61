//! Steps that open an address for callbacks and wait for them, and the callbacks as events of the evidence.

use super::{Listener, Runner};
use crate::callbacks;
use crate::stop::Stop;
use conformant_base::json::Parsed;
use conformant_judge::evidence::{Delivery, Event, Evidence, Span};
use conformant_rulebook::expect::Expect;
use conformant_rulebook::step::{Await, Listen};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

impl Runner<'_> {
    pub(super) fn listen_step(&mut self, step: &Listen) -> Result<(), Stop> {
        let name = step.listen.as_str();
        let callbacks = self.callbacks()?;
        let result = callbacks::listen(callbacks, step)?;
        let url = result["url"].as_str().unwrap_or_default().to_owned();
        match self.listeners.iter_mut().find(|known| known.name == name) {
            Some(known) => known.url = url,
            None => self.listeners.push(Listener {
                operations_before: vec![
                    None;
                    callbacks.sink.callbacks(&callbacks.name_of(name)).len()
                ],
                name: name.to_owned(),
                url,
            }),
        }
        if let Some(kind) = &step.judge {
            self.judged_as.insert(name.to_owned(), kind.clone());
        }
        self.scope.capture(name, result, None);
        Ok(())
    }

    pub(super) fn await_step(&mut self, step: &Await) -> Result<(), Stop> {
        let callbacks = self.callbacks()?;
        let waiting = self.session.now();
        let stated: Vec<Expect> = step
            .expect
            .iter()
            .filter_map(|expect| self.fill_expect(expect).ok())
            .collect();
        let wait = callbacks::Wait {
            callbacks,
            session: self.session,
            service: &self.service.name,
            is_race: self.races > 0,
            looks_early: self.looks_early,
            unmet: &|result| {
                let unmet = stated
                    .iter()
                    .filter(|expect| !conformant_judge::holds(expect, result));
                unmet.map(|expect| expect.rule.clone()).collect()
            },
        };
        let (mut result, payloads) = wait.collect(step)?;
        let waited = self.session.now().duration_since(waiting);
        let waited = Duration::try_from(waited).unwrap_or_default();
        self.evidence.events.push(Event::Passed(waited));
        self.note_deliveries();
        let listener = self
            .listeners
            .iter()
            .find(|listener| listener.name == step.r#await);
        let requests = result["requests"].as_array_mut();
        let asked = listener
            .into_iter()
            .flat_map(|listener| &listener.operations_before);
        for (request, asked) in requests.into_iter().flatten().zip(asked) {
            request["asked_last"] = json!(asked);
        }
        if let Some(kind) = self.judged_as.get(&step.r#await).cloned() {
            for Parsed { value, notes } in payloads {
                self.keep_payload(&kind, Arc::new(value), notes);
            }
        }
        self.finish((step.capture.as_ref(), &step.expect), result, None, None)
    }

    /// Records the callbacks since the last check as events.
    pub(super) fn note_deliveries(&mut self) {
        let now = self.session.now();
        let span = Span {
            began: self.callbacks_checked_at,
            ended: now,
        };
        self.callbacks_checked_at = now;
        let Some(callbacks) = self.session.callbacks() else {
            return;
        };
        for listener in &mut self.listeners {
            let came = callbacks.sink.callbacks(&callbacks.name_of(&listener.name));
            for callback in came.iter().skip(listener.operations_before.len()) {
                let delivery = Delivery {
                    step: self.step,
                    listener: listener.name.clone(),
                    subscription: subscription(&self.evidence, &listener.url),
                    request: callback.request.clone(),
                    document: callbacks::document(&callback.request).map(|p| Arc::new(p.value)),
                    answered: callback.answered.status,
                    span,
                };
                self.evidence.events.push(Event::Delivery(delivery));
            }
            let asked = self.evidence.exchanges.last();
            let asked = asked.map(|exchange| exchange.operation.clone());
            listener.operations_before.resize(came.len(), asked);
        }
    }
}

/// The event that sent an address to the target; the last one if there are several.
fn subscription(evidence: &Evidence, url: &str) -> Option<usize> {
    let holds = |value: &Value| match value {
        Value::String(text) => text.starts_with(url),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::Array(_) | Value::Object(_) => value.to_string().contains(url),
    };
    evidence.events.iter().rposition(|event| match event {
        Event::Exchange(index) => evidence.exchanges[*index].sent.values().any(holds),
        Event::Hook(call) => holds(&call.arguments),
        Event::Delivery(_) | Event::Passed(_) => false,
    })
}
