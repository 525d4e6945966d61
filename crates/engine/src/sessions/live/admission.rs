//! Detects services that reject all requests of a run, which indicates wrong credentials and not a fault of each
//! operation.
//!
//! Counts the answers over all scenarios.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rejections of several operations, without any other answer before, after which a service counts as closed.
const DENIED_MAX: usize = 5;
/// The same for a single operation, which alone may be forbidden.
const DENIED_MAX_OF_ONE: usize = 10;

/// The answers of services to requests with the configured credentials.
#[derive(Debug, Default)]
pub(super) struct Admission {
    services: Mutex<BTreeMap<String, Answers>>,
}

#[derive(Debug, Default)]
struct Answers {
    /// Rejections with 401 or 403.
    denied: usize,
    /// The rejected operations.
    operations: BTreeSet<String>,
    /// Whether there was any other answer.
    is_admitted: bool,
}

impl Answers {
    fn is_shut(&self) -> bool {
        let most = match self.operations.len() {
            0 | 1 => DENIED_MAX_OF_ONE,
            _ => DENIED_MAX,
        };
        !self.is_admitted && self.denied >= most
    }
}

impl Admission {
    /// Records an answer. True once the service counts as closed.
    pub(super) fn note(&self, service: &str, operation: &str, status: u16) -> bool {
        let mut services = self.services();
        let answers = services.entry(service.to_owned()).or_default();
        match status {
            401 | 403 => {
                answers.denied += 1;
                answers.operations.insert(operation.to_owned());
            }
            _ => answers.is_admitted = true,
        }
        answers.is_shut()
    }

    /// Whether it has answered with rejections only.
    pub(super) fn is_doubtful(&self, service: &str) -> bool {
        let services = self.services();
        let answers = services.get(service);
        answers.is_some_and(|answers| answers.denied > 0 && !answers.is_admitted)
    }

    /// At the end of a run, the service that rejected everything. Without credentials one rejection is enough.
    pub(super) fn denied_by(&self, has_credentials: impl Fn(&str) -> bool) -> Option<String> {
        let services = self.services();
        let mut shut = services.iter().filter(|(service, answers)| {
            let is_open = answers.denied == 0 || answers.is_admitted;
            answers.is_shut() || !is_open && !has_credentials(service)
        });
        shut.next().map(|(service, _)| service.clone())
    }

    fn services(&self) -> MutexGuard<'_, BTreeMap<String, Answers>> {
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refusals_alone_shut_a_service() {
        let shut_after = |answers: &[(&str, u16)]| {
            let admission = Admission::default();
            let note =
                |(operation, status): &(&str, u16)| admission.note("chat", operation, *status);
            let after = answers.iter().position(note).map(|at| at + 1);
            assert_eq!(admission.denied_by(|_| true).is_some(), after.is_some());
            let is_denied_without = admission.denied_by(|_| false).is_some();
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
}
