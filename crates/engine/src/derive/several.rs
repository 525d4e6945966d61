//! More than one: two of everything, used in turn, so that another's data is noticed.

use super::cases::{Cases, accepted, either};
use super::later::settled;
use super::neighbour::Neighbour;
use conformant_rulebook::step::Call;
use serde_json::{Map, Value};

/// The operation on ours and on the neighbour's, in turn.
pub(super) fn derive(cases: &mut Cases<'_>) {
    let method = cases.operation.method.clone();
    let path = cases.path();
    let ours = cases.happy.with.clone();
    let above = path.len().saturating_sub(1);
    let above = path[..above].iter().filter_map(|p| ours.get(&p.name));
    let neighbour = Neighbour::sharing(cases, above);
    let theirs = neighbour.values(&ours);
    if theirs == ours {
        return;
    }
    let own_rule = cases.own_rule();
    let call = |with: &Map<String, Value>, capture: Option<&str>| {
        let step = Call {
            capture: capture.map(str::to_owned),
            ..accepted(&own_rule)
        };
        cases.call(step, with)
    };
    let look = |with: &Map<String, Value>| {
        let reader = cases.reader()?;
        Some(Cases::look(reader, Cases::path_of(reader, with)))
    };
    let mut steps = cases.setup();
    steps.extend(neighbour.steps.iter().cloned());
    match method.as_str() {
        "GET" => steps.extend([call(&ours, None), call(&theirs, None), call(&ours, None)]),
        "DELETE" => {
            steps.extend(look(&ours));
            steps.push(call(&theirs, None));
            steps.extend(look(&ours));
            steps.extend(look(&theirs));
        }
        _ if cases.makes() => {
            let second = cases.again(1);
            steps.push(call(&ours, Some("first")));
            steps.push(call(&theirs, Some("elsewhere")));
            steps.push(call(&second, Some("second")));
            steps.extend(cases.seen_again("elsewhere", &theirs));
            steps.extend(cases.seen_again("first", &ours));
            steps.extend(cases.seen_again("second", &ours).into_iter().take(1));
        }
        _ => {
            // With everything that it may set, so that it would be seen on the other.
            let whole = |optional: Map<String, Value>, own: &Map<String, Value>| {
                let mut all = optional;
                all.extend(own.clone());
                cases.call(either(), &all)
            };
            let optional = cases.happy.optional.clone();
            steps.extend(look(&theirs));
            steps.extend(look(&ours));
            steps.push(settled());
            steps.push(whole(optional.clone(), &ours));
            steps.extend(look(&theirs));
            steps.push(whole(neighbour.values(&optional), &theirs));
            steps.extend(look(&ours));
        }
    }
    cases.push("in-turn", "ours and another's, in turn", steps);
}
