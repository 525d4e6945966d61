//! Two tenants used in turn, which detects data in the wrong place.

use super::cases::{Cases, accepted, captured, either};
use super::repeated_reads::settled;
use super::second_tenant::SecondTenant;
use serde_json::{Map, Value};

/// The operation on our resource and on the second tenant's, in turn.
pub(super) fn derive(cases: &mut Cases<'_>) {
    let method = cases.operation.method.clone();
    let path = cases.path();
    let ours = cases.happy.with.clone();
    let above = path.len().saturating_sub(1);
    let above = path[..above].iter().filter_map(|p| ours.get(&p.name));
    let second_tenant = SecondTenant::sharing(cases, above);
    let foreign = second_tenant.values(&ours);
    if foreign == ours {
        return;
    }
    let own_rule = cases.own_rule();
    let call = |with: &Map<String, Value>| cases.call(accepted(&own_rule), with);
    let kept = |with: &Map<String, Value>, name: &str| {
        cases.call(captured(name, accepted(&own_rule)), with)
    };
    let look = |with: &Map<String, Value>| cases.look_here(with);
    let mut steps = cases.setup();
    steps.extend(second_tenant.steps.iter().cloned());
    match method.as_str() {
        "GET" => steps.extend([call(&ours), call(&foreign), call(&ours)]),
        "DELETE" => {
            steps.extend(look(&ours));
            steps.push(call(&foreign));
            steps.extend(look(&ours));
            steps.extend(look(&foreign));
        }
        _ if cases.creates() => {
            let second = cases.again(1);
            steps.push(kept(&ours, "first"));
            steps.push(kept(&foreign, "elsewhere"));
            steps.push(kept(&second, "second"));
            steps.extend(cases.reread("elsewhere", &foreign));
            steps.extend(cases.reread("first", &ours));
            steps.extend(cases.reread("second", &ours).into_iter().take(1));
        }
        _ => {
            // Sets all parameters, so that a change would be visible on the other resource.
            let whole = |mut all: Map<String, Value>, own: &Map<String, Value>| {
                all.extend(own.clone());
                cases.call(either(), &all)
            };
            let optional = cases.optional();
            steps.extend(look(&foreign));
            steps.extend(look(&ours));
            steps.push(settled());
            steps.push(whole(optional.clone(), &ours));
            steps.extend(look(&foreign));
            steps.push(whole(second_tenant.values(&optional), &foreign));
            steps.extend(look(&ours));
        }
    }
    cases.push("in-turn", "ours and another's, in turn", steps);
}
