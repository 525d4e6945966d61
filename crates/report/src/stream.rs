//! Redacts run events once and sends them to all consumers.
//!
//! Consumers receive events only from [`Stream`].

use super::texts::redact;
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
        redact(&mut event, self.redactor);
        self.deliver(&event);
    }

    /// Sends the finished record, and returns it redacted, for formats that are written at the end.
    pub fn finish(mut self, mut record: RunRecord) -> RunRecord {
        redact(&mut record, self.redactor);
        self.deliver(&RunEvent::Finished {
            record: Box::new(record.clone()),
        });
        record
    }

    fn deliver(&mut self, event: &RunEvent) {
        for consumer in &mut self.consumers {
            consumer.event(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::every_text_is;

    /// The events that a consumer received.
    #[derive(Default)]
    struct Received(String);

    impl Consumer for Received {
        fn event(&mut self, event: &RunEvent) {
            self.0 += &format!("{event:?}");
        }
    }

    #[test]
    fn no_consumer_sees_a_secret() {
        let redactor = Redactor::new(["hunter2-hunter2"]);
        let (mut first, mut second) = (Received::default(), Received::default());
        let mut stream = Stream::new(&redactor, vec![&mut first, &mut second]);
        let record = every_text_is("x hunter2-hunter2");
        stream.send(RunEvent::Started {
            scenarios: 1,
            targets: record.targets.clone(),
        });
        let id = "y hunter2-hunter2".to_owned();
        stream.send(RunEvent::ScenarioBegan { id });
        stream.send(RunEvent::ScenarioEnded {
            result: record.scenarios[0].clone(),
            findings: record.findings.clone(),
            exchanges: 1,
        });
        let record = stream.finish(record);
        assert_eq!(record.rules[0].id, "x [redacted]");
        assert!(!format!("{record:?}").contains("hunter2"));
        for Received(events) in [first, second] {
            assert!(!events.contains("hunter2"));
            assert!(events.contains("\"y [redacted]\"") && events.contains("\"x [redacted]\""));
        }
    }
}
