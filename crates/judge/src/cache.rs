//! Per-document validation cache, so that mutated evidence is evaluated incrementally.

use super::payload::Examination;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Examinations by document and resource type. A closed cache stores nothing, so that temporary mutations do not fill it.
#[derive(Debug, Default)]
pub struct DocumentCache {
    is_closed: Cell<bool>,
    /// By address. Each document is kept alive, so that its address is not reused.
    known: RefCell<BTreeMap<usize, Known>>,
}

/// A document, its resource type, and its outcome.
type Known = (Arc<Value>, String, Arc<Examination>);

impl DocumentCache {
    /// Stores nothing from now on.
    pub fn close(&self) {
        self.is_closed.set(true);
    }

    /// The outcome, from the cache or by validation.
    pub fn get_or_validate(
        &self,
        kind: &str,
        value: &Arc<Value>,
        judge: impl FnOnce() -> Examination,
    ) -> Arc<Examination> {
        self.get(kind, value).unwrap_or_else(|| {
            let outcome = Arc::new(judge());
            if !self.is_closed.get() {
                let known = (Arc::clone(value), kind.to_owned(), Arc::clone(&outcome));
                let address = Arc::as_ptr(value).addr();
                self.known.borrow_mut().insert(address, known);
            }
            outcome
        })
    }

    /// The cached outcome.
    pub(super) fn get(&self, kind: &str, value: &Arc<Value>) -> Option<Arc<Examination>> {
        let known = self.known.borrow();
        let (_, of, outcome) = known.get(&Arc::as_ptr(value).addr())?;
        (of == kind).then(|| Arc::clone(outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_validated_once_until_it_changes() {
        let cache = DocumentCache::default();
        let judged = |kind: &str, document: &Arc<Value>, rule: &str| {
            let judge = || Examination {
                judged: vec![rule.to_owned()],
                violations: Vec::new(),
            };
            cache.get_or_validate(kind, document, judge).judged.concat()
        };
        let document = Arc::new(Value::from(1));
        assert_eq!(judged("k", &document, "first"), "first");
        assert_eq!(judged("k", &document, "again"), "first");
        assert_eq!(judged("other", &document, "other"), "other");
        cache.close();
        let changed = Arc::new(Value::from(1));
        assert_eq!(judged("k", &changed, "changed"), "changed");
        assert_eq!(judged("k", &changed, "later"), "later");
    }
}
