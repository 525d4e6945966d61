//! The same some time later: what is said once of a thing is said of it for good, the time of its creation
//! first of all, and lists say the same of it once they have followed.

use super::cases::{Cases, either};
use crate::rulebook::Does;
use crate::rulebook::step::{Call, Step, Wait};
use serde_json::Map;

/// Long enough for a time in whole seconds to be another.
const A_WHILE: &str = "2s";
/// As long as what shows a thing otherwise may take to follow what was done to it.
const SETTLED: &str = "11s";

/// A read and, where it shows one thing, the same once more after a while, and its list.
pub(super) fn derive(cases: &mut Cases<'_>) {
    if cases.operation.does != Does::Shows || cases.operation.thing.is_none() {
        return;
    }
    let again = || cases.call(either(), &Map::new());
    let mut steps = vec![again(), settled(), again()];
    let collection = cases
        .operation
        .path
        .rsplit_once('/')
        .map(|(above, _)| above);
    let mut lists = cases
        .service
        .operations
        .values()
        .filter(|o| o.does == Does::Lists);
    if let Some(list) = lists.find(|list| Some(list.path.as_str()) == collection) {
        steps.push(Step::from(Call {
            call: list.id.clone(),
            with: Cases::path_of(list, &cases.happy.with),
            walk: true,
            ..either()
        }));
    }
    cases.after_setup("later", "the same again after a while, and its list", steps);
}

/// Lets a while pass.
pub(super) fn a_while() -> Step {
    wait(A_WHILE)
}

/// Lets pass what lists and other faces may lag behind.
pub(super) fn settled() -> Step {
    wait(SETTLED)
}

/// Lets that time pass.
pub(super) fn wait(time: &str) -> Step {
    Step::from(Wait {
        wait: time.to_owned(),
    })
}
