//! Polling of lists that may lag behind writes. The documents state no limit for the lag.
//!
//! Judges nothing; the last answer counts.

use super::calls::unanswered;
use super::{Called, Runner};
use crate::stop::Stop;
use conformant_judge::Acceptance;
use conformant_judge::evidence::{Exchange, Expectation, Poll, Span};
use conformant_rulebook::Operation;
use conformant_rulebook::expect::Expect;
use conformant_rulebook::step::Call;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Pauses between polls of a lagging list. Their sum is the consistency window.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(6),
];

impl Runner<'_> {
    /// Polls a list until it satisfies the step's statements or the consistency window is over.
    pub(super) fn poll_until_stated(
        &mut self,
        step: &Call,
        operation: &Operation,
        (mut value, mut called): (Arc<Value>, Called),
    ) -> Result<(Arc<Value>, Called), Stop> {
        for wait in PAUSES {
            let is_done =
                called.acceptance != Acceptance::Accepted || self.statements_hold(step, &value);
            if is_done || self.is_interrupted() {
                break;
            }
            self.pass_between_polls(wait);
            let again = self.call(step, operation)?;
            (value, called) = self.result(step, operation, again)?;
        }
        Ok((value, called))
    }

    /// Whether all statements of a step hold. A statement about a broken value counts as satisfied.
    fn statements_hold(&mut self, step: &Call, value: &Value) -> bool {
        let stated = step.expect.iter().map(|expect| self.fill_expect(expect));
        let stated: Vec<Expect> = stated.flatten().collect();
        let is_tainted = self.scope.take_taint().is_some();
        is_tainted
            || stated
                .iter()
                .all(|expect| conformant_judge::holds(expect, value))
    }

    /// Polls lists that lack a created resource or contain an ended one, because they may lag. The rules are evaluated
    /// after that.
    pub(super) fn poll_lagging_lists(&mut self) {
        for wait in PAUSES {
            let is_moved = self.session.has_moved_the_clock();
            let lagging = conformant_judge::lagging(self.rulebook, &self.evidence, is_moved);
            if lagging.is_empty() || self.is_interrupted() {
                return;
            }
            self.pass_between_polls(wait);
            for page in lagging {
                // A failed poll leaves the earlier evidence.
                let is_read = self.read_again(page).is_ok();
                if is_read && is_moved {
                    self.supersede(page);
                }
            }
        }
    }

    /// Makes the readings of a list up to that page attempts: the target's clock was moved, so they may have been too
    /// early in real time.
    fn supersede(&mut self, page: usize) {
        let (before, _) = self.evidence.exchanges.split_at_mut(page + 1);
        let Some((page, earlier)) = before.split_last_mut() else {
            return;
        };
        let is_same = |other: &&mut Exchange| {
            other.operation == page.operation && other.service == page.service
        };
        for other in earlier.iter_mut().filter(is_same) {
            other.poll = Poll::Attempt;
        }
        page.poll = Poll::Attempt;
    }

    /// The list whose first page was read by that exchange, from its beginning.
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
