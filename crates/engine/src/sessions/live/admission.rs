//! Detects services that reject all requests of a run, which indicates wrong credentials, and services that answer none as
//! documented, which indicates a wrong address. Neither is a fault of each operation.
//!
//! Counts the answers over all scenarios.

use crate::probe::is_page;
use conformant_base::http::Response;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rejections of several operations, without any other answer before, after which a service counts as closed.
const DENIED_MAX: usize = 5;
/// The same for a single operation, which alone may be forbidden.
const DENIED_MAX_OF_ONE: usize = 10;
/// Answers of another server or path to several operations, without any other answer before, after which the address
/// counts as wrong. More than rejections, because a service may lack operations.
const ELSEWHERE_MAX: usize = 40;
const ELSEWHERE_OPERATIONS_MIN: usize = 4;

/// The answers of services to requests with the configured credentials.
#[derive(Debug, Default)]
pub(super) struct Admission {
    services: Mutex<BTreeMap<String, Answers>>,
    /// The services that rejected the credentials of the second account.
    rejected_accounts: Mutex<BTreeSet<String>>,
}

/// Why a run against a service makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// It rejects all credentials.
    Denied,
    /// It seems to be at another address. Its probe can confirm that.
    Elsewhere,
}

/// What the probe of a service found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProbeResult {
    /// Nothing that shows wrong credentials or a wrong address.
    AsDocumented,
    /// It rejects the configured credentials.
    Denied,
    /// An answer of another server or path.
    Elsewhere(String),
}

#[derive(Debug, Default)]
struct Answers {
    /// Rejections with 401 or 403.
    denied: usize,
    /// The rejected operations.
    operations: BTreeSet<String>,
    /// Whether there was any other answer.
    is_admitted: bool,
    /// Answers with 404 or a page for people.
    elsewhere: usize,
    /// The operations with these answers.
    absent: BTreeSet<String>,
    /// Whether there was an answer of another kind, which also can be a rejection.
    is_there: bool,
    /// What the probe found, once it was sent.
    probed: Option<ProbeResult>,
}

impl Answers {
    fn closed(&self) -> Option<Closed> {
        let most = match self.operations.len() {
            0 | 1 => DENIED_MAX_OF_ONE,
            _ => DENIED_MAX,
        };
        let is_absent = self.is_elsewhere()
            && self.elsewhere >= ELSEWHERE_MAX
            && self.absent.len() >= ELSEWHERE_OPERATIONS_MIN;
        let is_denied = self.denied >= most || self.probed == Some(ProbeResult::Denied);
        match (self.is_denied() && is_denied, is_absent) {
            (true, _) => Some(Closed::Denied),
            (false, true) => Some(Closed::Elsewhere),
            (false, false) => None,
        }
    }

    /// Whether it has answered with rejections only.
    fn is_denied(&self) -> bool {
        self.denied > 0 && !self.is_admitted
    }

    /// Whether no answer was one of the service.
    fn is_elsewhere(&self) -> bool {
        let is_confirmed = |found: &ProbeResult| matches!(found, ProbeResult::Elsewhere(_));
        self.elsewhere > 0 && !self.is_there && self.probed.as_ref().is_none_or(is_confirmed)
    }
}

impl Admission {
    /// Records an answer. Returns the reason once the service counts as closed.
    pub(super) fn note(&self, service: &str, operation: &str, answer: &Response) -> Option<Closed> {
        let mut services = self.services();
        let answers = services.entry(service.to_owned()).or_default();
        match answer.status {
            401 | 403 => {
                answers.denied += 1;
                answers.operations.insert(operation.to_owned());
            }
            _ => answers.is_admitted = true,
        }
        let is_elsewhere = match answer.status {
            404 => true,
            // A gateway or the service itself failed.
            500.. => false,
            _ => is_page(answer),
        };
        if is_elsewhere {
            answers.elsewhere += 1;
            answers.absent.insert(operation.to_owned());
        } else {
            answers.is_there = true;
        }
        answers.closed()
    }

    /// Notes that a service rejected the credentials of the second account.
    pub(super) fn note_rejected_account(&self, service: &str) {
        let accounts = self.rejected_accounts.lock();
        let mut accounts = accounts.unwrap_or_else(PoisonError::into_inner);
        accounts.insert(service.to_owned());
    }

    /// The first service that rejected the credentials of the second account.
    pub(super) fn rejected_account(&self) -> Option<String> {
        let accounts = self.rejected_accounts.lock();
        let accounts = accounts.unwrap_or_else(PoisonError::into_inner);
        accounts.first().cloned()
    }

    /// Whether its answers may have to be voided.
    pub(super) fn is_doubtful(&self, service: &str) -> bool {
        let services = self.services();
        let answers = services.get(service);
        answers.is_some_and(|answers| answers.is_denied() || answers.is_elsewhere())
    }

    /// The service that rejected everything. Without credentials one rejection is enough; with them, few rejections are
    /// confirmed by its probe.
    pub(super) fn denied_by(
        &self,
        has_credentials: impl Fn(&str) -> bool,
        probe: impl Fn(&str) -> ProbeResult,
    ) -> Option<String> {
        let services = self.services();
        let doubtful = services.iter().filter(|(_, answers)| answers.is_denied());
        let doubtful: Vec<String> = doubtful.map(|(service, _)| service.clone()).collect();
        drop(services);
        for service in doubtful {
            self.probed(&service, || probe(&service));
        }
        let services = self.services();
        let mut shut = services.iter().filter(|(service, answers)| {
            answers.closed() == Some(Closed::Denied)
                || answers.is_denied() && !has_credentials(service)
        });
        shut.next().map(|(service, _)| service.clone())
    }

    /// The services that have answered no request as documented.
    pub(super) fn elsewhere(&self) -> Vec<String> {
        let services = self.services();
        let elsewhere = services
            .iter()
            .filter(|(_, answers)| answers.is_elsewhere());
        elsewhere.map(|(service, _)| service.clone()).collect()
    }

    /// The answer of another server or path to the probe, if the service answered no request as documented.
    pub(super) fn elsewhere_by_probe(
        &self,
        service: &str,
        probe: impl FnOnce() -> ProbeResult,
    ) -> Option<String> {
        let found = self.probed(service, probe)?;
        let is_elsewhere = self.services().get(service)?.is_elsewhere();
        match found {
            ProbeResult::Elsewhere(answer) if is_elsewhere => Some(answer),
            ProbeResult::Elsewhere(_) | ProbeResult::AsDocumented | ProbeResult::Denied => None,
        }
    }

    /// What the probe of a service found, which is sent once.
    fn probed(&self, service: &str, probe: impl FnOnce() -> ProbeResult) -> Option<ProbeResult> {
        let known = self.services().get(service)?.probed.clone();
        let found = known.unwrap_or_else(probe);
        self.services().get_mut(service)?.probed = Some(found.clone());
        Some(found)
    }

    fn services(&self) -> MutexGuard<'_, BTreeMap<String, Answers>> {
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = "application/json";

    fn answer(status: u16, media_type: &str) -> Response {
        Response::new(status, media_type, "")
    }

    #[test]
    fn the_probe_confirms_a_single_rejection() {
        let by_probe = |found: ProbeResult, admitted: bool| {
            let admission = Admission::default();
            admission.note("chat", "a", &answer(401, JSON));
            if admitted {
                admission.note("chat", "b", &answer(404, JSON));
            }
            admission.denied_by(|_| true, |_| found.clone())
        };
        assert_eq!(by_probe(ProbeResult::AsDocumented, false), None);
        assert_eq!(by_probe(ProbeResult::Denied, false), Some("chat".into()));
        assert_eq!(by_probe(ProbeResult::Denied, true), None);
    }

    #[test]
    fn only_refusals_alone_shut_a_service() {
        let shut_after = |answers: &[(&str, u16)]| {
            let admission = Admission::default();
            let note = |(operation, status): &(&str, u16)| {
                let closed = admission.note("chat", operation, &answer(*status, JSON));
                closed == Some(Closed::Denied)
            };
            let after = answers.iter().position(note).map(|at| at + 1);
            let denied_by = |has_credentials| {
                admission.denied_by(|_| has_credentials, |_| ProbeResult::AsDocumented)
            };
            assert_eq!(denied_by(true).is_some(), after.is_some());
            let is_denied_without = denied_by(false).is_some();
            assert_eq!(is_denied_without, admission.is_doubtful("chat"));
            let has_let_in = answers.iter().any(|(_, status)| *status == 404);
            assert_ne!(admission.is_doubtful("chat"), has_let_in);
            after
        };
        let of_two: Vec<_> = ["a", "b"]
            .into_iter()
            .cycle()
            .map(|o| (o, 401))
            .take(9)
            .collect();
        assert_eq!(shut_after(&of_two), Some(5));
        assert_eq!(
            shut_after(&[("a", 403); 12]),
            Some(10),
            "one operation may be forbidden"
        );
        assert_eq!(
            shut_after(&[[("a", 404)].as_slice(), &of_two].concat()),
            None
        );
    }

    #[test]
    fn a_service_that_answers_nothing_as_documented_is_elsewhere_if_its_probe_confirms_it() {
        let elsewhere_after = |answers: &[(u16, &str)], probe: Option<&str>| {
            let admission = Admission::default();
            let mut after = None;
            for (nth, (status, media_type)) in answers.iter().enumerate() {
                let operation = ["a", "b", "c", "d", "e"][nth % 5];
                let closed = admission.note("flow", operation, &answer(*status, media_type));
                if closed == Some(Closed::Elsewhere) {
                    after.get_or_insert(nth + 1);
                }
            }
            let elsewhere = |answer: &str| ProbeResult::Elsewhere(answer.to_owned());
            let probe = || probe.map_or(ProbeResult::AsDocumented, elsewhere);
            (after, admission.elsewhere_by_probe("flow", probe).is_some())
        };
        let found = Some("GET / answered 404");
        let absent = [(404, JSON)];
        let pages = [(200, "text/html; charset=utf-8")];
        assert_eq!(elsewhere_after(&absent, found), (None, true));
        assert_eq!(elsewhere_after(&absent, None), (None, false));
        assert_eq!(elsewhere_after(&absent.repeat(60), found), (Some(40), true));
        assert_eq!(elsewhere_after(&pages.repeat(60), found), (Some(40), true));
        for other in [(200, JSON), (400, JSON), (401, JSON), (500, "text/html")] {
            let mixed = [&[other], absent.repeat(60).as_slice()].concat();
            assert_eq!(elsewhere_after(&mixed, found), (None, false), "{other:?}");
        }
    }
}
