//! Actions of people and devices, and what the target sends by itself: callbacks and events.

use super::{Listener, Runner};
use crate::stop::Stop;
use crate::{callbacks, provision};
use conformant_base::json::Parsed;
use conformant_judge::evidence::{Delivery, Event, Evidence, Payload, Span};
use conformant_rulebook::expect::Expect;
use conformant_rulebook::step::{Await, Hook, Listen};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

impl Runner<'_> {
    pub(super) fn hook_step(&mut self, step: &Hook) -> Result<(), Stop> {
        let name = step.hook.as_str();
        if !self.session.has_hook(name) {
            return Err(Stop::NotApplicable(format!("hook missing: {name}")));
        }
        self.provide(&step.with)?;
        let arguments = Value::Object(self.scope.fill_map(&step.with)?);
        let taint = self.scope.take_taint();
        let mut hooks = Vec::new();
        let done = provision::hook(self.session, self.step, name, arguments, &mut hooks);
        self.evidence
            .events
            .extend(hooks.into_iter().map(Event::Hook));
        self.note_deliveries();
        let result = done.map_err(|fault| match taint {
            Some(rule) => Stop::Masked(rule),
            None => Stop::of_hook(name, &fault),
        })?;
        let mut result = result;
        if self.rulebook.index.collects_events(name) {
            result = self.collect_late_events(name, result);
            self.collect_events(&result);
        }
        self.finish((step.capture.as_ref(), &step.expect), result, None, None)
    }

    /// Collects again while events of a send are missing, because the documents do not state how soon events can be
    /// read. The last collection replaces the earlier ones.
    fn collect_late_events(&mut self, name: &str, mut result: Value) -> Value {
        const EVERY: Duration = Duration::from_secs(1);
        let within = self.session.callback_max(Duration::from_secs(10));
        let is_hook = |event: &Event| matches!(event, Event::Hook(_));
        let Some(at) = self.evidence.events.iter().rposition(is_hook) else {
            return result;
        };
        let mut waited = Duration::ZERO;
        while waited < within
            && !self.is_interrupted()
            && conformant_judge::lacks_events(self.rulebook, &self.evidence)
        {
            self.pass_between_polls(EVERY);
            waited += EVERY;
            let Event::Hook(call) = &self.evidence.events[at] else {
                break;
            };
            let arguments = call.arguments.clone();
            let mut again = Vec::new();
            // A failure leaves the earlier result.
            match provision::hook(self.session, self.step, name, arguments, &mut again) {
                Ok(newer) => result = newer,
                Err(_) => break,
            }
            if let Some(call) = again.pop() {
                self.evidence.events[at] = Event::Hook(call);
            }
        }
        result
    }

    /// Judges each collected event by the schema it names, otherwise by the current schema of its type.
    pub(super) fn collect_events(&mut self, result: &Value) {
        let events = result.get("events").and_then(Value::as_array);
        for event in events.into_iter().flatten() {
            let kind = event
                .get("type")
                .and_then(Value::as_str)
                .and_then(|t| self.rulebook.event_types.get(t));
            if let (Some(Some(kind)), Some(payload)) = (kind, event.get("payload")) {
                let schema = event.get("schema").and_then(Value::as_str);
                let kind = self.rulebook.announced_version(kind, schema);
                let mut payload = payload.clone();
                self.session.mutate_payload(kind, &mut payload);
                let value = Arc::new(payload);
                self.evidence.payloads.push(Payload {
                    kind: kind.to_owned(),
                    value,
                    notes: Vec::new(),
                    step: self.step,
                });
            }
        }
    }

    pub(super) fn listen_step(&mut self, step: &Listen) -> Result<(), Stop> {
        let name = step.listen.as_str();
        let callbacks = self
            .session
            .callbacks()
            .ok_or_else(|| Stop::NotApplicable("no callback listener is configured".to_owned()))?;
        let result = callbacks::listen(callbacks, step)?;
        let url = result["url"].as_str().unwrap_or_default().to_owned();
        match self.listeners.iter_mut().find(|known| known.name == name) {
            Some(known) => known.url = url,
            None => self.listeners.push(Listener {
                noted: vec![None; callbacks.sink.callbacks(&callbacks.name_of(name)).len()],
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
        let callbacks = self
            .session
            .callbacks()
            .ok_or_else(|| Stop::NotApplicable("no callback listener is configured".to_owned()))?;
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
            holds: &|result| {
                stated
                    .iter()
                    .all(|expect| conformant_judge::holds(expect, result))
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
        let asked = listener.into_iter().flat_map(|listener| &listener.noted);
        for (request, asked) in requests.into_iter().flatten().zip(asked) {
            request["asked_last"] = json!(asked);
        }
        if let Some(kind) = self.judged_as.get(&step.r#await) {
            let step = self.step;
            for Parsed { mut value, notes } in payloads {
                self.session.mutate_payload(kind, &mut value);
                self.evidence.payloads.push(Payload {
                    kind: kind.clone(),
                    value: Arc::new(value),
                    notes,
                    step,
                });
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
            for callback in came.iter().skip(listener.noted.len()) {
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
            listener.noted.resize(came.len(), asked);
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
