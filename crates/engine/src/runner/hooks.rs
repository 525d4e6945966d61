//! Steps that call hooks: actions of people and devices, and events that a hook collects.

use super::Runner;
use crate::provision;
use crate::stop::Stop;
use conformant_judge::evidence::Event;
use conformant_rulebook::step::Hook;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

impl Runner<'_> {
    pub(super) fn hook_step(&mut self, step: &Hook) -> Result<(), Stop> {
        let name = step.hook.as_str();
        if !self.session.has_hook(name) {
            return Err(Stop::NotApplicable(format!("hook missing: {name}")));
        }
        let arguments = self.hook_arguments(step)?;
        let taint = self.scope.take_taint();
        let mut hooks = Vec::new();
        let done = provision::hook(self.session, self.step, name, arguments, &mut hooks);
        self.evidence
            .events
            .extend(hooks.into_iter().map(Event::Hook));
        self.note_deliveries();
        let mut result = done.map_err(|fault| match taint {
            Some(rule) => Stop::Masked(rule),
            None => Stop::of_hook(name, &fault),
        })?;
        if self.rulebook.index.collects_events(name) {
            result = self.collect_late_events(name, result);
            self.keep_event_payloads(&result);
        }
        self.finish((step.capture.as_ref(), &step.expect), result, None, None)
    }

    /// The arguments of a hook. A null in place of a required one is a value that no answer contained, so that the hook cannot
    /// be called.
    pub(super) fn hook_arguments(&mut self, step: &Hook) -> Result<Value, Stop> {
        self.provide(&step.with)?;
        let arguments = self.scope.fill_map(&step.with)?;
        let known = self.rulebook.index.hook(&step.hook);
        let mut required = known.into_iter().flat_map(|hook| &hook.required);
        match required.find(|name| arguments.get(name.as_str()).is_some_and(Value::is_null)) {
            None => Ok(Value::Object(arguments)),
            Some(name) => Err(Stop::Inconclusive(format!(
                "no answer so far contains `{name}`, which the hook {} needs",
                step.hook
            ))),
        }
    }

    /// Collects again while events of a sent message are missing, because the documents do not state how soon events can be
    /// read. The last collection replaces the earlier ones.
    fn collect_late_events(&mut self, name: &str, mut result: Value) -> Value {
        const EVERY: Duration = Duration::from_secs(1);
        let within = self.session.callback_max(Duration::from_secs(10), &[]);
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

    /// Adds the payload of each collected event to the evidence, under the schema that it names or else the current one of
    /// its type.
    fn keep_event_payloads(&mut self, result: &Value) {
        let events = result.get("events").and_then(Value::as_array);
        for event in events.into_iter().flatten() {
            let kind = event
                .get("type")
                .and_then(Value::as_str)
                .and_then(|t| self.rulebook.event_types.get(t));
            if let (Some(Some(kind)), Some(payload)) = (kind, event.get("payload")) {
                let schema = event.get("schema").and_then(Value::as_str);
                let kind = self.rulebook.announced_version(kind, schema);
                self.keep_payload(kind, Arc::new(payload.clone()), Vec::new());
            }
        }
    }
}
