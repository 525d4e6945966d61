//! Repeated reads: constant properties such as the creation time do not change, and lists agree once they have caught
//! up.

use super::cases::{Cases, either};
use conformant_rulebook::Action;
use conformant_rulebook::step::{Step, Wait};
use serde_json::{Map, Value};

/// Long enough to change a time in whole seconds.
const A_WHILE: &str = "2s";

/// A read; if it returns one resource, the same read after a pause, and its list.
pub(super) fn derive(cases: &mut Cases<'_>) {
    if cases.operation.does != Action::Shows || cases.operation.resource.is_none() {
        return;
    }
    let again = || cases.call(either(), &Map::new());
    let mut steps = vec![again(), settled(), again()];
    steps.extend(walk(cases, &cases.happy.with));
    cases.after_setup("later", "the same again after a while, and its list", steps);
}

/// A walk over the list that contains the operation's resource, if there is one.
pub(super) fn walk(cases: &Cases<'_>, with: &Map<String, Value>) -> Option<Step> {
    let (collection, _) = cases.operation.path.rsplit_once('/')?;
    let mut lists = cases.service.operations.values();
    let list = lists.find(|o| o.does == Action::Lists && o.path == collection)?;
    Some(Cases::walk(list, with))
}

/// Lets some time pass.
pub(super) fn a_while() -> Step {
    wait(A_WHILE)
}

/// Waits for the consistency window.
pub(super) fn settled() -> Step {
    wait(Wait::SETTLED)
}

pub(super) fn wait(time: &str) -> Step {
    Step::from(Wait {
        wait: time.to_owned(),
    })
}
