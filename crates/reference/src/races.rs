//! Races: faults of servers that read a value, and write later what follows from it.
//!
//! - The server handles one request at a time, so another request never comes between reading and writing. A request of a
//!   race is therefore handled twice: [`Reference::read_early`] handles it on a copy and returns the values that a fault reads
//!   too early, and [`Reference::write_late`] handles it on the state, but reads these stale values.
//! - A request that is handled alone shows none of these faults.
//! - The id of such a fault has the form `SERVICE/race-NAME`. The scenarios with races show each of them: see the kill matrix.
//! - `conformant_net::server` decides which requests are handled so, and waits between the two.

use super::{Core, Fault, Reference, Refusal, Switch, Variant};
use conformant_base::clock::Timestamp;
use conformant_base::http::{Request, Response};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Part of the id of each fault of a race.
const PART_OF_ID: &str = "/race-";

/// The values that a request read before the others of its race wrote, by fault. Each has the type given to [`Core::read_or_stale`].
#[derive(Clone, Debug, Default)]
pub struct StaleReads(BTreeMap<Fault, Arc<dyn Any + Send + Sync>>);

/// Phase of the current request.
#[derive(Clone, Debug, Default)]
pub(super) enum Phase {
    /// It is handled at once.
    #[default]
    Whole,
    /// It is handled on a copy, and the values that it reads are kept.
    ReadEarly(StaleReads),
    /// It is handled on the state, and reads the stale values.
    WriteLate(StaleReads),
}

impl Core {
    /// The current value or, when a request of a race writes and the fault is on, the value that it read earlier.
    pub fn read_or_stale<T: Clone + Send + Sync + 'static>(
        &self,
        fault: Fault,
        now: impl FnOnce() -> T,
    ) -> T {
        match &mut *self.phase.borrow_mut() {
            Phase::Whole => now(),
            Phase::ReadEarly(stale) => {
                let now = now();
                stale.0.insert(fault, Arc::new(now.clone()));
                now
            }
            Phase::WriteLate(stale) => {
                let read = stale.0.get(&fault);
                let read = read.and_then(|value| value.downcast_ref::<T>());
                read.cloned().unwrap_or_else(now)
            }
        }
    }
}

impl Reference {
    /// First phase: handles the request on a copy and returns what it read. `None` if no fault that is on concerns this
    /// request, which then needs no second phase.
    pub fn read_early(&mut self, request: &Request, now: Timestamp) -> Option<StaleReads> {
        let mut copy = self.clone();
        copy.core
            .phase
            .replace(Phase::ReadEarly(StaleReads::default()));
        copy.handle(request, now);
        let Phase::ReadEarly(mut stale) = copy.core.phase.take() else {
            return None;
        };
        stale.0.retain(|fault, _| self.core.fails(*fault));
        (!stale.0.is_empty()).then_some(stale)
    }

    /// Second phase: handles the request with the values of the first one.
    pub fn write_late(&mut self, request: &Request, now: Timestamp, stale: StaleReads) -> Response {
        self.core.phase.replace(Phase::WriteLate(stale));
        let response = self.handle(request, now);
        self.core.phase.take();
        response
    }

    /// The rejection of a changing request that arrives while another one is in progress, if a variation that is on
    /// rejects such requests.
    pub fn contention_refusal(&self) -> Option<Response> {
        let refused = [
            (Variant::Contended409, 409),
            (Variant::Contended429, 429),
            (Variant::Contended503, 503),
        ]
        .into_iter()
        .find(|(variant, _)| self.core.varies(*variant));
        let (_, status) = refused?;
        let refusal = Refusal::new(
            status,
            20_000 + u32::from(status),
            "Another request is in progress",
        );
        let mut response = self.core.refuse(&refusal);
        if status != 409 {
            response.headers.set("Retry-After", "1");
        }
        Some(response)
    }

    /// True if a fault or a variation that is on can show in requests that arrive at the same time.
    pub fn can_race(&self) -> bool {
        self.core.switched_on().any(|switch| match switch {
            Switch::Fault(fault) => fault.id().contains(PART_OF_ID),
            Switch::Variant(variant) => variant.id().starts_with("contended-"),
        })
    }

    /// True if requests that arrive at the same time are served in order of arrival.
    pub fn is_serial(&self) -> bool {
        self.core.varies(Variant::Serial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Client, parsed, sign};

    fn post(target: &str, form: &str) -> Request {
        let mut request = Request::new("POST", target);
        request.body = form.into();
        sign(&mut request);
        request
    }

    /// A reference with a channel, two messages to it, and the time.
    fn with_messages(fault: Option<Fault>) -> (Reference, [Request; 2], Timestamp) {
        let mut client = Client::new(fault.as_slice(), &[]);
        let mut target = "/chat/v2/Services".to_owned();
        for below in ["Channels", "Messages"] {
            let made = client.accepted("POST", &target, &[("FriendlyName", "a")]);
            target = format!("{target}/{}/{below}", made["sid"].as_str().unwrap());
        }
        let messages = ["Body=one", "Body=two"].map(|body| post(&target, body));
        (client.reference, messages, client.now)
    }

    #[test]
    fn a_request_alone_shows_no_race_and_asks_for_none() {
        let (mut reference, messages, now) = with_messages(Some(Fault::ChatRaceIndex));
        let [one, two] = messages.map(|message| parsed(&reference.handle(&message, now)));
        assert_ne!(one["index"], two["index"]);
        let asked = reference.newly_asked();
        assert!(!asked.contains(&Switch::Fault(Fault::ChatRaceIndex)));
    }

    #[test]
    fn an_early_read_queries_its_faults_and_changes_nothing() {
        let (mut reference, messages, now) = with_messages(None);
        reference.newly_asked();
        let before = reference.overview(now);
        assert!(reference.read_early(&messages[0], now).is_none());
        assert_eq!(reference.overview(now), before);
        let asked = reference.newly_asked();
        let queried = [Fault::ChatRaceIndex, Fault::ChatRaceMessagesCount];
        assert!(
            queried
                .iter()
                .all(|fault| asked.contains(&Switch::Fault(*fault)))
        );
    }
}
