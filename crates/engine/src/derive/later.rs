//! The same some time later: what is said once of a thing is said of it for good, the time of its creation
//! first of all, and lists say the same of it once they have followed.

use super::cases::{Cases, either};
use conformant_rulebook::Does;
use conformant_rulebook::step::{Call, Step, Wait};
use serde_json::{Map, Value};

/// Long enough for a time in whole seconds to be another.
const A_WHILE: &str = "2s";

/// A read and, where it shows one thing, the same once more after a while, and its list.
pub(super) fn derive(cases: &mut Cases<'_>) {
    if cases.operation.does != Does::Shows || cases.operation.resource.is_none() {
        return;
    }
    let again = || cases.call(either(), &Map::new());
    let mut steps = vec![again(), settled(), again()];
    steps.extend(walk(cases, &cases.happy.with));
    cases.after_setup("later", "the same again after a while, and its list", steps);
}

/// A walk over the list that holds the thing of the operation, where there is one.
pub(super) fn walk(cases: &Cases<'_>, with: &Map<String, Value>) -> Option<Step> {
    let (collection, _) = cases.operation.path.rsplit_once('/')?;
    let mut lists = cases.service.operations.values();
    let list = lists.find(|o| o.does == Does::Lists && o.path == collection)?;
    Some(Step::from(Call {
        call: list.id.clone(),
        with: Cases::path_of(list, with),
        walk: true,
        ..either()
    }))
}

/// Lets a while pass.
pub(super) fn a_while() -> Step {
    wait(A_WHILE)
}

/// Lets pass what lists and other faces may lag behind.
pub(super) fn settled() -> Step {
    wait(Wait::SETTLED)
}

/// Lets that time pass.
pub(super) fn wait(time: &str) -> Step {
    Step::from(Wait {
        wait: time.to_owned(),
    })
}
