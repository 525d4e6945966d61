//! What was concluded of documents by themselves, so that evidence of which one document changes is not judged whole
//! again.

use super::payload::Outcome;
use foldhash::fast::FixedState;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

/// Outcomes by document and kind. It learns until it is closed: what is changed for a moment is not to stay in memory.
#[derive(Debug, Default)]
pub struct Memo {
    is_closed: Cell<bool>,
    /// By address; each document is held, so that no other one comes to stand there.
    known: RefCell<HashMap<usize, Known, FixedState>>,
}

/// A document, the kind it was judged as, and what came of it.
type Known = (Arc<Value>, String, Arc<Outcome>);

impl Memo {
    /// Learns nothing from now on.
    pub fn close(&self) {
        self.is_closed.set(true);
    }

    /// The outcome, judged where it is not known.
    pub fn of(
        &self,
        kind: &str,
        value: &Arc<Value>,
        judge: impl FnOnce() -> Outcome,
    ) -> Arc<Outcome> {
        self.known(kind, value).unwrap_or_else(|| {
            let outcome = Arc::new(judge());
            if !self.is_closed.get() {
                let known = (Arc::clone(value), kind.to_owned(), Arc::clone(&outcome));
                let address = Arc::as_ptr(value).addr();
                self.known.borrow_mut().insert(address, known);
            }
            outcome
        })
    }

    /// The outcome, where it is known.
    pub(super) fn known(&self, kind: &str, value: &Arc<Value>) -> Option<Arc<Outcome>> {
        let known = self.known.borrow();
        let (_, of, outcome) = known.get(&Arc::as_ptr(value).addr())?;
        (of == kind).then(|| Arc::clone(outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_judged_once_until_it_changes() {
        let memo = Memo::default();
        let document = Arc::new(Value::from(1));
        let judge = |rule: &str| Outcome {
            judged: vec![rule.to_owned()],
            violations: Vec::new(),
        };
        assert_eq!(memo.of("k", &document, || judge("first")).judged, ["first"]);
        assert_eq!(memo.of("k", &document, || judge("again")).judged, ["first"]);
        assert_eq!(
            memo.of("other", &document, || judge("other")).judged,
            ["other"]
        );
        memo.close();
        let changed = Arc::new(Value::from(1));
        assert_eq!(
            memo.of("k", &changed, || judge("changed")).judged,
            ["changed"]
        );
        assert_eq!(memo.of("k", &changed, || judge("anew")).judged, ["anew"]);
    }
}
