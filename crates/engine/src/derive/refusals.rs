//! Rejected creations, then an accepted one: everything that they could have changed is read before and after.

use super::cases::{Cases, either, only, refused};
use super::partial_updates::wrong_values;
use super::repeated_reads::settled;
use super::witnesses;
use conformant_rulebook::ParameterLocation;
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::step::{Call, Step};
use serde_json::{Map, Value};

/// One case with all rejections, if the operation creates something whose effects can be read.
pub(super) fn derive(cases: &mut Cases<'_>) {
    if !cases.creates() {
        return;
    }
    let list = cases.look_here(&cases.happy.with);
    let witnesses = witnesses::looks(cases);
    if list.is_none() && witnesses.is_empty() {
        return;
    }
    // The first creation shows that the list is up to date.
    let first = list
        .is_some()
        .then(|| cases.call(either(), &cases.again(1)));
    let looks: Vec<Step> = list.clone().into_iter().chain(witnesses).collect();
    let mut steps: Vec<Step> = first.into_iter().collect();
    // Counts may lag behind the set-up.
    if witnesses::have_counts(cases) {
        steps.push(settled());
    }
    steps.extend(looks.clone());
    steps.extend(rejections(cases));
    steps.extend(looks);
    // Beyond the values of all rejections.
    let another = cases.again(2 * cases.operation.parameters.len() + 2);
    steps.push(cases.call(either(), &another));
    steps.extend(list);
    let what = "refused, then the list of its scope";
    cases.after_setup("refused-then-listed", what, steps);
}

/// A required parameter is missing, one of all is wrong, the credentials are wrong.
fn rejections(cases: &Cases<'_>) -> Vec<Step> {
    let parameters = &cases.operation.parameters;
    let required = parameters
        .iter()
        .filter(|p| p.required && p.place != ParameterLocation::Path);
    let without = required.map(|parameter| {
        let without = only(&parameter.name, Value::Null);
        cases.call(refused(&parameter.rule), &without)
    });
    let mut steps: Vec<Step> = without.collect();
    for (n, parameter) in parameters.iter().enumerate() {
        for (m, wrong) in wrong_values(cases, parameter).into_iter().enumerate() {
            // With all the others, so that a part of the request that is done is visible.
            let mut with = cases.again(n + 2 + m * parameters.len());
            with.extend(cases.optional());
            with.insert(parameter.name.clone(), wrong);
            steps.push(cases.call(either(), &with));
        }
    }
    if cases.operation.secured {
        let wrong = Call {
            credentials: Credentials::Wrong,
            ..refused(&cases.credentials_rule())
        };
        steps.push(cases.call(wrong, &Map::new()));
    }
    steps
}
