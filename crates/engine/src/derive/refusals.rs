//! Rejected creations, then an accepted one: the list of the scope is read after both.

use super::cases::{Cases, either, only, refused};
use super::partial_updates::wrong_value;
use conformant_rulebook::ParameterLocation;
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::step::Call;
use serde_json::{Map, Value};

/// One case with all rejections, if the operation creates something that can be listed.
pub(super) fn derive(cases: &mut Cases<'_>) {
    let Some(list) = cases.reader().filter(|_| cases.creates()) else {
        return;
    };
    let look = || Cases::look(list, Cases::path_of(list, &cases.happy.with));
    // The first creation shows that the list is up to date.
    let mut steps = vec![cases.call(either(), &cases.again(1)), look()];
    let required = cases.operation.parameters.iter();
    let required = required.filter(|p| p.required && p.place != ParameterLocation::Path);
    for parameter in required {
        let without = only(&parameter.name, Value::Null);
        steps.push(cases.call(refused(&parameter.rule), &without));
    }
    for (n, parameter) in cases.operation.parameters.iter().enumerate() {
        if let Some(wrong) = wrong_value(parameter) {
            let mut with = cases.again(n + 2);
            with.insert(parameter.name.clone(), wrong);
            steps.push(cases.call(either(), &with));
        }
    }
    if cases.operation.secured {
        steps.push(cases.call(
            Call {
                credentials: Credentials::Wrong,
                ..refused(&cases.credentials_rule())
            },
            &Map::new(),
        ));
    }
    steps.push(look());
    let another = cases.again(cases.operation.parameters.len() + 2);
    steps.extend([cases.call(either(), &another), look()]);
    let what = "refused, then the list of its scope";
    cases.after_setup("refused-then-listed", what, steps);
}
