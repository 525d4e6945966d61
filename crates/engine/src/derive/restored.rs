//! Deletions, then another resource in the same place: the new one must not bring the deleted one back.

use super::cases::{Cases, either, rename_all};
use super::races::{numbered, sendable};
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

/// The steps that create another resource below the same parent.
fn another(cases: &Cases<'_>) -> Vec<Step> {
    let Some((collection, _)) = cases.operation.path.rsplit_once('/') else {
        return Vec::new();
    };
    let siblings = || {
        let all = cases.service.operations.values();
        all.filter(|o| o.path == collection)
    };
    let maker = siblings().find(|o| o.does == Action::Makes);
    if let Some((maker, with)) = maker.and_then(|maker| Some((maker, sendable(cases, maker)?))) {
        return vec![Cases::look(maker, rename_all(with, &numbered(1)))];
    }
    let mut happy = siblings().filter_map(|o| cases.service.happy.get(&o.id));
    let more = happy.find_map(|happy| happy.more.clone());
    more.unwrap_or_default()
}
