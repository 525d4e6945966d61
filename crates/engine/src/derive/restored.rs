//! Deletions, then another resource in the same place: the new one must not bring the deleted one back.

use super::cases::{Cases, either};
use super::repeated_reads::walk;
use conformant_rulebook::Action;
use conformant_rulebook::step::Step;
use serde_json::Map;

/// One case for each deletion of a resource that a request or a hook creates. The deleted resource is read afterwards, and
/// so is its list.
pub(super) fn derive(cases: &mut Cases<'_>) {
    let operation = cases.operation;
    if operation.does != Action::Ends {
        return;
    }
    let another = another(cases);
    if another.is_empty() {
        return;
    }
    let own = &cases.happy.with;
    let mut steps = vec![cases.call(either(), &Map::new())];
    steps.extend(another);
    steps.extend(
        cases
            .reader()
            .map(|reader| Cases::look(reader, Cases::path_of(reader, own))),
    );
    steps.extend(walk(cases, own));
    cases.after_setup("then-another", "then another one is created", steps);
}

/// The steps that create another resource below the same parent: those that add an item to its list.
fn another(cases: &Cases<'_>) -> Vec<Step> {
    let collection = cases.operation.path.rsplit_once('/');
    let mut lists = cases.service.operations.values();
    let list = lists
        .find(|o| o.does == Action::Lists && collection.is_some_and(|(path, _)| o.path == path));
    let happy = list.and_then(|list| Some((list, cases.service.happy.get(&list.id)?)));
    let Some((list, happy)) = happy else {
        return Vec::new();
    };
    Cases::new(cases.rulebook, cases.service, list, happy).more(1)
}
