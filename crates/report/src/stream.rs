//! Redacts run events once and sends them to all consumers.
//!
//! Consumers receive events only from [`Stream`].

use super::texts::redact_event;
use conformant_base::redact::Redactor;
use conformant_record::{RunEvent, RunRecord};

/// Receives the events of a run. Reports never fail a run: a consumer keeps its own errors.
pub trait Consumer {
    /// Handles a redacted event.
    fn event(&mut self, event: &RunEvent);
}

/// Redacts each event, then sends it to every consumer in order.
pub struct Stream<'a> {
    redactor: &'a Redactor,
    consumers: Vec<&'a mut dyn Consumer>,
}

impl<'a> Stream<'a> {
    pub fn new(redactor: &'a Redactor, consumers: Vec<&'a mut dyn Consumer>) -> Self {
        Self {
            redactor,
            consumers,
        }
    }

    /// Sends one event.
    pub fn send(&mut self, mut event: RunEvent) {
        redact_event(&mut event, self.redactor);
        for consumer in &mut self.consumers {
            consumer.event(&event);
        }
    }
}

/// Stores the final record for formats that are written at the end.
#[derive(Debug, Default)]
pub struct Keep {
    pub record: Option<RunRecord>,
}

impl Consumer for Keep {
    fn event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started { .. }
            | RunEvent::ScenarioBegan { .. }
            | RunEvent::ScenarioPlayed { .. }
            | RunEvent::Waiting { .. }
            | RunEvent::Alive { .. }
            | RunEvent::ScenarioEnded { .. } => {}
            RunEvent::Finished { record } => self.record = Some((**record).clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::every_text_is;

    #[test]
    fn no_consumer_sees_a_secret() {
        let redactor = Redactor::new(["hunter2-hunter2"]);
        let (mut first, mut second) = (Keep::default(), Keep::default());
        let mut stream = Stream::new(&redactor, vec![&mut first, &mut second]);
        stream.send(RunEvent::Finished {
            record: Box::new(every_text_is("x hunter2-hunter2")),
        });
        for kept in [first, second] {
            assert!(!format!("{kept:?}").contains("hunter2"));
            assert_eq!(kept.record.unwrap().rules[0].id, "x [redacted]");
        }
    }
}
