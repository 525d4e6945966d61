//! Lists read again: they may follow later than what was done, and no document says how much later.
//!
//! Judges nothing: what the last reading shows is what counts.

use super::calls::unanswered;
use super::{Called, Runner};
use crate::stop::Stop;
use conformant_judge::Acceptance;
use conformant_judge::evidence::{Expectation, Span};
use conformant_rulebook::Operation;
use conformant_rulebook::expect::Expect;
use conformant_rulebook::step::Call;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Pauses before a lagging list is read again; together the consistency window.
const LOOKS: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(6),
];

impl Runner<'_> {
    /// Reads a list until it is as the step states, or until it may lag no longer.
    pub(super) fn look_until_stated(
        &mut self,
        step: &Call,
        operation: &Operation,
        (mut value, mut called): (Arc<Value>, Called),
    ) -> Result<(Arc<Value>, Called), Stop> {
        for wait in LOOKS {
            let is_done =
                called.acceptance != Acceptance::Accepted || self.is_as_stated(step, &value);
            if is_done || self.is_interrupted() {
                break;
            }
            self.pass_between_looks(wait);
            let again = self.call(step, operation)?;
            (value, called) = self.result(step, operation, again)?;
        }
        Ok((value, called))
    }

    /// Whether all statements of a step hold; one of what was broken is judged by nobody.
    fn is_as_stated(&mut self, step: &Call, value: &Value) -> bool {
        let stated = step.expect.iter().map(|expect| self.fill_expect(expect));
        let stated: Vec<Expect> = stated.flatten().collect();
        let is_tainted = self.scope.take_taint().is_some();
        is_tainted
            || stated
                .iter()
                .all(|expect| conformant_judge::holds(expect, value))
    }

    /// Reads lists again that lack what was made, or hold what was ended: they may follow later, and
    /// nobody is accused before.
    pub(super) fn look_again(&mut self) {
        for wait in LOOKS {
            let lagging = conformant_judge::lagging(self.rulebook, &self.evidence);
            if lagging.is_empty() || self.is_interrupted() {
                return;
            }
            self.pass_between_looks(wait);
            for page in lagging {
                // What cannot be read again says nothing.
                let _unread = self.read_again(page);
            }
        }
    }

    /// The list whose first page that exchange asked for, from its beginning.
    fn read_again(&mut self, page: usize) -> Result<Value, Stop> {
        let page = &self.evidence.exchanges[page];
        let operation = self.operation(&format!("{}/{}", page.service, page.operation))?;
        let mut again = unanswered(page);
        again.span = Span::at(self.session.now());
        again.expectation = Expectation::Either;
        let called = self.exchange(again, operation)?;
        self.walk(&Call::default(), operation, &called)
    }
}
