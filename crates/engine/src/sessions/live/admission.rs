//! Detects services that reject all requests of a run, which indicates wrong credentials, services that answer none as
//! documented, which indicates a wrong address, and services that serve none. None is a fault of each operation.
//!
//! Counts the answers over all scenarios.

use crate::probe::is_page;
use conformant_base::http::Response;
use conformant_base::parallel::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Rejections of several operations, without any other answer before, with which a service counts as closed.
const DENIALS_TO_CLOSE: usize = 5;
/// The same for a single operation, which alone may be forbidden.
const DENIALS_OF_ONE_TO_CLOSE: usize = 10;
/// The same by the number of operations.
fn denials_to_close(operations: usize) -> usize {
    match operations {
        0 | 1 => DENIALS_OF_ONE_TO_CLOSE,
        _ => DENIALS_TO_CLOSE,
    }
}

/// Answers of another server or path to several operations, without any other answer before, with which the address
/// counts as wrong. More than rejections, because a service may lack operations.
const ELSEWHERE_TO_CLOSE: usize = 40;
const ELSEWHERE_OPERATIONS_TO_CLOSE: usize = 4;

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
    /// Nothing that shows wrong credentials or a wrong address, also if no probe could be sent.
    NothingWrong,
    /// It accepts the configured credentials, and rejects requests without any.
    Admitted,
    /// It rejects the configured credentials.
    Denied,
    /// An answer of another server or path.
    Elsewhere(String),
}

/// Whether a service serves requests.
#[derive(Clone, Copy, Debug, Default)]
enum Serving {
    #[default]
    Unknown,
    /// All answers are those of a rate limit, or of a gateway without a service behind it. The status of the last one.
    Nothing(u16),
    Served,
}

/// The answers to requests that write.
#[derive(Debug, Default)]
struct Writes {
    /// Rejections, by kind of request.
    denied: BTreeMap<String, usize>,
    /// Whether there was any other answer.
    is_admitted: bool,
}

impl Writes {
    /// Whether each was rejected.
    fn are_rejected(&self) -> bool {
        !self.is_admitted && !self.denied.is_empty()
    }

    /// Whether this happened often enough.
    fn seem_forbidden(&self) -> bool {
        let denied: usize = self.denied.values().sum();
        self.are_rejected() && denied >= denials_to_close(self.denied.len())
    }
}

#[derive(Debug, Default)]
struct Answers {
    /// Rejections with 401 or 403.
    denied: usize,
    denied_operations: BTreeSet<String>,
    /// Whether there was any other answer.
    is_admitted: bool,
    /// Answers with 404, a redirect or a page for people.
    elsewhere: usize,
    elsewhere_operations: BTreeSet<String>,
    /// Whether there was an answer of another kind, which also can be a rejection.
    is_there: bool,
    serving: Serving,
    /// What the probe found, once it was sent.
    probed: Option<ProbeResult>,
    writes: Writes,
    /// Whether rejections have closed it. Answers to requests that were on their way do not open it again.
    is_closed: bool,
}

impl Answers {
    fn closed(&self) -> Option<Closed> {
        let most = denials_to_close(self.denied_operations.len());
        let is_elsewhere = self.has_only_foreign_answers()
            && self.elsewhere >= ELSEWHERE_TO_CLOSE
            && self.elsewhere_operations.len() >= ELSEWHERE_OPERATIONS_TO_CLOSE;
        let is_certain = match self.probed {
            Some(ProbeResult::Denied) => true,
            Some(ProbeResult::Admitted) => false,
            Some(ProbeResult::NothingWrong | ProbeResult::Elsewhere(_)) | None => {
                self.denied >= most
            }
        };
        match (self.has_only_rejections() && is_certain, is_elsewhere) {
            (true, _) => Some(Closed::Denied),
            (false, true) => Some(Closed::Elsewhere),
            (false, false) => None,
        }
    }

    /// Notes whether an answer can be one of the service.
    fn note_place(&mut self, operation: &str, answer: &Response) {
        let is_elsewhere = match answer.status {
            300..=399 | 404 => true,
            // A gateway or the service itself failed.
            500.. => false,
            _ => is_page(answer),
        };
        if is_elsewhere {
            self.elsewhere += 1;
            self.elsewhere_operations.insert(operation.to_owned());
        } else {
            self.is_there = true;
        }
    }

    fn has_only_rejections(&self) -> bool {
        self.is_closed || self.denied > 0 && !self.is_admitted
    }

    /// The status with which it serves no request.
    fn serves_nothing(&self) -> Option<u16> {
        match self.serving {
            Serving::Nothing(status) => Some(status),
            Serving::Unknown | Serving::Served => None,
        }
    }

    /// Whether no answer was one of the service.
    fn has_only_foreign_answers(&self) -> bool {
        let is_confirmed = |found: &ProbeResult| matches!(found, ProbeResult::Elsewhere(_));
        self.elsewhere > 0 && !self.is_there && self.probed.as_ref().is_none_or(is_confirmed)
    }
}

impl Admission {
    /// Records an answer. Returns the reason once the service counts as closed.
    pub(super) fn note(&self, service: &str, operation: &str, answer: &Response) -> Option<Closed> {
        let mut services = lock(&self.services);
        let answers = services.entry(service.to_owned()).or_default();
        match answer.status {
            401 | 403 => {
                answers.denied += 1;
                answers.denied_operations.insert(operation.to_owned());
            }
            _ => answers.is_admitted = true,
        }
        answers.note_place(operation, answer);
        let closed = answers.closed();
        answers.is_closed = closed == Some(Closed::Denied);
        closed
    }

    /// Records an answer to a request with other credentials than the configured ones: it does not show whether these are
    /// accepted, but it can show that the address leads elsewhere. Returns whether the answer may have to be voided for that.
    pub(super) fn note_other_credentials(
        &self,
        service: &str,
        operation: &str,
        answer: &Response,
    ) -> bool {
        // A gateway rejects credentials at every address.
        if matches!(answer.status, 401 | 403) {
            return false;
        }
        let mut services = lock(&self.services);
        let answers = services.entry(service.to_owned()).or_default();
        answers.note_place(operation, answer);
        answers.has_only_foreign_answers()
    }

    /// Records an answer to any request, also to one that is repeated. Returns whether the service has served none yet.
    pub(super) fn note_attempt(&self, service: &str, status: u16) -> bool {
        let mut services = lock(&self.services);
        let answers = services.entry(service.to_owned()).or_default();
        answers.serving = match (answers.serving, status) {
            (Serving::Unknown | Serving::Nothing(_), 429 | 502..=504) => Serving::Nothing(status),
            _ => Serving::Served,
        };
        answers.serves_nothing().is_some()
    }

    /// Records an answer to a request that writes, with the configured credentials. `shape` is its kind.
    pub(super) fn note_write(&self, service: &str, shape: String, status: u16) {
        let mut services = lock(&self.services);
        let answers = services.entry(service.to_owned()).or_default();
        match status {
            401 | 403 => *answers.writes.denied.entry(shape).or_default() += 1,
            429 | 502..=504 => {}
            _ => answers.writes.is_admitted = true,
        }
    }

    /// Whether credentials may only read: the probe, which reads, is accepted, and each of several requests that write is
    /// rejected.
    pub(super) fn is_read_only(&self, service: &str, probe: impl FnOnce() -> ProbeResult) -> bool {
        let seems = lock(&self.services)
            .get(service)
            .is_some_and(|answers| answers.writes.seem_forbidden());
        seems && self.probed(service, probe) == Some(ProbeResult::Admitted)
    }

    /// The services whose credentials may only read.
    pub(super) fn read_only(&self) -> Vec<String> {
        let services = lock(&self.services);
        let read_only = services.iter().filter(|(_, answers)| {
            answers.writes.seem_forbidden() && answers.probed == Some(ProbeResult::Admitted)
        });
        read_only.map(|(service, _)| service.clone()).collect()
    }

    /// Whether a service has served no request yet.
    pub(super) fn is_unserved(&self, service: &str) -> bool {
        let services = lock(&self.services);
        let answers = services.get(service);
        answers.is_some_and(|answers| answers.serves_nothing().is_some())
    }

    /// The services that served no request, each with the status of its answers.
    pub(super) fn unserved(&self) -> Vec<(String, u16)> {
        let services = lock(&self.services);
        let unserved = services.iter();
        unserved
            .filter_map(|(name, answers)| Some((name.clone(), answers.serves_nothing()?)))
            .collect()
    }

    /// Notes that a service rejected the credentials of the second account.
    pub(super) fn note_rejected_account(&self, service: &str) {
        let mut accounts = lock(&self.rejected_accounts);
        accounts.insert(service.to_owned());
    }

    /// The first service that rejected the credentials of the second account.
    pub(super) fn rejected_account(&self) -> Option<String> {
        let accounts = lock(&self.rejected_accounts);
        accounts.first().cloned()
    }

    /// Whether the answers of the service so far may have to be voided.
    pub(super) fn is_doubtful(&self, service: &str) -> bool {
        let services = lock(&self.services);
        let answers = services.get(service);
        answers.is_some_and(|answers| {
            answers.has_only_rejections()
                || answers.has_only_foreign_answers()
                || answers.serves_nothing().is_some()
                || answers.writes.are_rejected()
        })
    }

    /// The services that rejected everything. Without credentials one rejection is enough; with them, few rejections are
    /// confirmed by its probe.
    pub(super) fn denied_by(
        &self,
        has_credentials: impl Fn(&str) -> bool,
        probe: impl Fn(&str) -> ProbeResult,
    ) -> Vec<String> {
        let services = lock(&self.services);
        let doubtful = services
            .iter()
            .filter(|(_, answers)| answers.has_only_rejections());
        let doubtful: Vec<String> = doubtful.map(|(service, _)| service.clone()).collect();
        drop(services);
        for service in doubtful {
            self.probed(&service, || probe(&service));
        }
        let services = lock(&self.services);
        let closed = services.iter().filter(|(service, answers)| {
            answers.closed() == Some(Closed::Denied)
                || answers.has_only_rejections() && !has_credentials(service)
        });
        closed.map(|(service, _)| service.clone()).collect()
    }

    /// The services that have answered no request as documented.
    pub(super) fn elsewhere(&self) -> Vec<String> {
        let services = lock(&self.services);
        let elsewhere = services
            .iter()
            .filter(|(_, answers)| answers.has_only_foreign_answers());
        elsewhere.map(|(service, _)| service.clone()).collect()
    }

    /// The answer of another server or path to the probe, if the service answered no request as documented.
    pub(super) fn elsewhere_by_probe(
        &self,
        service: &str,
        probe: impl FnOnce() -> ProbeResult,
    ) -> Option<String> {
        let found = self.probed(service, probe)?;
        let is_elsewhere = lock(&self.services)
            .get(service)?
            .has_only_foreign_answers();
        match found {
            ProbeResult::Elsewhere(answer) if is_elsewhere => Some(answer),
            ProbeResult::Elsewhere(_)
            | ProbeResult::NothingWrong
            | ProbeResult::Admitted
            | ProbeResult::Denied => None,
        }
    }

    /// Whether a service that rejected so many requests rejects the credentials: its probe may show that it accepts them.
    pub(super) fn is_denied(&self, service: &str, probe: impl FnOnce() -> ProbeResult) -> bool {
        self.probed(service, probe);
        let services = lock(&self.services);
        let closed = services.get(service).and_then(Answers::closed);
        closed == Some(Closed::Denied)
    }

    /// What the probe of a service found. It is sent once, or once more by each scenario that asks meanwhile; the first
    /// result stays.
    fn probed(&self, service: &str, probe: impl FnOnce() -> ProbeResult) -> Option<ProbeResult> {
        let known = lock(&self.services).get(service)?.probed.clone();
        let found = known.unwrap_or_else(probe);
        let mut services = lock(&self.services);
        let answers = services.get_mut(service)?;
        let found = answers.probed.get_or_insert(found).clone();
        if found == ProbeResult::Admitted {
            (answers.is_admitted, answers.is_closed) = (true, false);
        }
        Some(found)
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
        assert!(by_probe(ProbeResult::NothingWrong, false).is_empty());
        assert!(by_probe(ProbeResult::Admitted, false).is_empty());
        assert_eq!(by_probe(ProbeResult::Denied, false), ["chat"]);
        assert!(by_probe(ProbeResult::Denied, true).is_empty());
    }

    #[test]
    fn only_rejections_alone_close_a_service() {
        let closed_after = |answers: &[(&str, u16)]| {
            let admission = Admission::default();
            let note = |(operation, status): &(&str, u16)| {
                let closed = admission.note("chat", operation, &answer(*status, JSON));
                closed == Some(Closed::Denied)
            };
            let after = answers.iter().position(note).map(|at| at + 1);
            let denied_by = |has_credentials| {
                admission.denied_by(|_| has_credentials, |_| ProbeResult::NothingWrong)
            };
            assert_eq!(!denied_by(true).is_empty(), after.is_some());
            let is_denied_without = !denied_by(false).is_empty();
            assert_eq!(is_denied_without, admission.is_doubtful("chat"));
            let was_admitted = answers.iter().any(|(_, status)| *status == 404);
            assert_ne!(admission.is_doubtful("chat"), was_admitted);
            after
        };
        let of_two: Vec<_> = ["a", "b"]
            .into_iter()
            .cycle()
            .map(|o| (o, 401))
            .take(9)
            .collect();
        assert_eq!(closed_after(&of_two), Some(5));
        assert_eq!(
            closed_after(&[("a", 403); 12]),
            Some(10),
            "one operation may be forbidden"
        );
        assert_eq!(
            closed_after(&[[("a", 404)].as_slice(), &of_two].concat()),
            None
        );
    }

    /// Such as credentials that may only read, in a run of scenarios that write.
    #[test]
    fn a_service_that_accepts_the_credentials_of_its_probe_is_not_closed() {
        for (found, is_denied) in [
            (ProbeResult::Admitted, false),
            (ProbeResult::NothingWrong, true),
            (ProbeResult::Denied, true),
        ] {
            let admission = Admission::default();
            let mut closed = None;
            for operation in ["a", "b", "c", "d", "e"] {
                closed = admission.note("flow", operation, &answer(403, JSON));
            }
            assert_eq!(closed, Some(Closed::Denied));
            assert_eq!(admission.is_denied("flow", || found.clone()), is_denied);
            let denied_by = admission.denied_by(|_| true, |_| found.clone());
            assert_eq!(!denied_by.is_empty(), is_denied, "{found:?}");
        }
    }

    #[test]
    fn credentials_that_may_only_read_are_recognized_by_several_writes() {
        let is_read_only = |writes: &[(&str, u16)], found: ProbeResult| {
            let admission = Admission::default();
            for (shape, status) in writes {
                admission.note_write("flow", (*shape).to_owned(), *status);
            }
            let is_read_only = admission.is_read_only("flow", || found);
            assert_eq!(!admission.read_only().is_empty(), is_read_only);
            is_read_only
        };
        let denied = [("POST a", 403), ("POST b", 403)].repeat(3);
        assert!(is_read_only(&denied, ProbeResult::Admitted));
        assert!(!is_read_only(&denied, ProbeResult::NothingWrong));
        let one = [("POST a", 403)];
        assert!(!is_read_only(&one.repeat(9), ProbeResult::Admitted));
        assert!(is_read_only(&one.repeat(10), ProbeResult::Admitted));
        let written = [denied.as_slice(), &[("POST a", 400)]].concat();
        assert!(!is_read_only(&written, ProbeResult::Admitted));
    }

    #[test]
    fn an_answer_on_its_way_opens_no_closed_service() {
        let admission = Admission::default();
        for operation in ["a", "b", "c", "d", "e"] {
            admission.note("chat", operation, &answer(401, JSON));
        }
        let late = admission.note("chat", "a", &answer(200, JSON));
        assert_eq!(late, Some(Closed::Denied));
        let denied_by = admission.denied_by(|_| true, |_| ProbeResult::NothingWrong);
        assert_eq!(denied_by, ["chat"]);
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
            let probe = || probe.map_or(ProbeResult::NothingWrong, elsewhere);
            (after, admission.elsewhere_by_probe("flow", probe).is_some())
        };
        let found = Some("GET / answered 404");
        let absent = [(404, JSON)];
        let pages = [(200, "text/html; charset=utf-8")];
        assert_eq!(elsewhere_after(&absent, found), (None, true));
        assert_eq!(elsewhere_after(&absent, None), (None, false));
        assert_eq!(elsewhere_after(&absent.repeat(60), found), (Some(40), true));
        let redirects = [(302, "")];
        assert_eq!(elsewhere_after(&pages.repeat(60), found), (Some(40), true));
        assert_eq!(
            elsewhere_after(&redirects.repeat(60), found),
            (Some(40), true)
        );
        for other in [(200, JSON), (400, JSON), (401, JSON), (500, "text/html")] {
            let mixed = [&[other], absent.repeat(60).as_slice()].concat();
            assert_eq!(elsewhere_after(&mixed, found), (None, false), "{other:?}");
        }
    }

    #[test]
    fn answers_to_other_credentials_show_a_wrong_address_but_not_an_admission() {
        let found = || ProbeResult::Elsewhere("GET / answered 404".to_owned());
        let admission = Admission::default();
        assert!(admission.note_other_credentials("flow", "a", &answer(404, JSON)));
        assert!(!admission.note_other_credentials("flow", "a", &answer(401, JSON)));
        assert!(admission.elsewhere_by_probe("flow", found).is_some());
        // A second probe that could not be sent does not change what the first one found.
        let unsent = || ProbeResult::NothingWrong;
        assert!(admission.elsewhere_by_probe("flow", unsent).is_some());
        assert!(!admission.note_other_credentials("flow", "a", &answer(200, JSON)));
        assert_eq!(admission.elsewhere_by_probe("flow", found), None);

        let admission = Admission::default();
        admission.note_other_credentials("chat", "a", &answer(404, JSON));
        admission.note("chat", "a", &answer(401, JSON));
        assert_eq!(admission.denied_by(|_| false, |_| unsent()), ["chat"]);
    }

    #[test]
    fn a_service_that_served_one_request_is_not_unserved() {
        let admission = Admission::default();
        assert!(admission.note_attempt("chat", 429));
        assert!(admission.note_attempt("chat", 503));
        assert_eq!(admission.unserved(), [("chat".to_owned(), 503)]);
        assert!(admission.is_doubtful("chat"));
        assert!(!admission.note_attempt("chat", 401));
        assert!(!admission.note_attempt("chat", 429));
        assert!(admission.unserved().is_empty());
        assert!(!admission.is_doubtful("chat"));
    }
}
