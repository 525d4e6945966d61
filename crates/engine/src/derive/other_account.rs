//! Another account: its requests for our resources show nothing of ours and change nothing.
//!
//! The set-up creates the same resources with its credentials, if requests alone create them. So credentials that the target
//! rejects stop the scenario before anything is concluded. Otherwise a harmless request shows that it accepts them.

use super::cases::{Cases, accepted, calling, captured, either, rename_all, unique};
use super::credentials::{has_url, links_of};
use super::second_tenant::SecondTenant;
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::step::{Call, Get, Step, Verb};
use serde_json::{Map, Value};

/// The case of an operation whose service has rules about accounts.
pub(super) fn derive(cases: &mut Cases<'_>) {
    let rule = |name: &str| format!("{}/accounts/{name}", cases.operation.service);
    if !cases.rulebook.rules.contains_key(&rule("not-shown")) {
        return;
    }
    let kept = rule("kept");
    let mut steps = cases.setup();
    steps.extend(set_up(cases));
    let names_resource = !cases.path().is_empty();
    match cases.operation.method.as_str() {
        "GET" => steps.extend(read(cases)),
        "DELETE" => {
            let look = look(cases, &accepted(&kept));
            steps.extend(look.clone());
            steps.push(by_other(cases, &Map::new()));
            steps.extend(look);
        }
        _ if cases.creates() => {
            steps.push(by_other(cases, &foreign(&cases.happy.with)));
            steps.extend(look(cases, &either()));
        }
        _ => {
            let mut all = foreign(&cases.optional());
            all.extend(foreign(&own_parameters(cases)));
            steps.extend(look(cases, &either()));
            steps.push(by_other(cases, &all));
            steps.extend(look(cases, &either()));
        }
    }
    // A creation outside of any resource belongs to the account that requests it.
    if names_resource || cases.operation.method == "GET" || cases.reader().is_some() {
        cases.push(
            "other-account",
            "with the credentials of another account",
            steps,
        );
    }
}

/// The parameters that are not in the path, which stays as it is.
fn own_parameters(cases: &Cases<'_>) -> Map<String, Value> {
    let path = Cases::path_of(cases.operation, &cases.happy.with);
    let with = cases.happy.with.iter();
    let own = with.filter(|(name, _)| !path.contains_key(*name));
    own.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The same values with names that only the other account sends.
fn foreign(with: &Map<String, Value>) -> Map<String, Value> {
    rename_all(with, &unique(|word| format!("{word}-intruder")))
}

fn by_other(cases: &Cases<'_>, with: &Map<String, Value>) -> Step {
    let call = Call {
        credentials: Credentials::OtherAccount,
        ..either()
    };
    cases.call(call, with)
}

/// A read, then the same read and its addresses with the credentials of the other account.
fn read(cases: &Cases<'_>) -> Vec<Step> {
    let shown = captured("shown", accepted(&cases.own_rule()));
    let mut steps = vec![cases.call(shown, &Map::new()), by_other(cases, &Map::new())];
    let is_single = cases.operation.list_key.is_none();
    if let Some(kind) = cases.shown_by(cases.operation).filter(|_| is_single) {
        steps.extend(has_url(kind).then(|| follow("${shown.url}")));
        // Some links carry their permission.
        if !cases.happy.except.contains_key("link-credentials-none") {
            steps.extend(links_of(kind).iter().map(|link| follow(link)));
        }
    }
    steps
}

fn follow(url: &str) -> Step {
    Step::from(Get {
        credentials: Credentials::OtherAccount,
        ..super::credentials::follow(url)
    })
}

/// A read of the same path with the configured credentials.
fn look(cases: &Cases<'_>, call: &Call) -> Option<Step> {
    let reader = cases.reader()?;
    let with = Cases::path_of(reader, &cases.happy.with);
    Some(calling(reader, with, call.clone()))
}

/// Requests of the other account that its own credentials must be accepted for.
fn set_up(cases: &Cases<'_>) -> Vec<Step> {
    let mut steps = SecondTenant::sharing(cases, []).steps;
    let is_request = |step: &Step| matches!(step.verb, Verb::Call(_));
    if steps.is_empty() || !steps.iter().all(is_request) {
        steps = probe(cases).into_iter().collect();
    }
    for step in &mut steps {
        if let Verb::Call(call) = &mut step.verb {
            call.credentials = Credentials::OtherAccount;
        }
    }
    steps
}

/// The request that checks the credentials of the service, if it names no resource.
fn probe(cases: &Cases<'_>) -> Option<Step> {
    let service = cases.rulebook.index.get(&cases.operation.service)?;
    let probe = &service.base.as_ref()?.probe;
    let step = Step::from(Call {
        call: probe.call.clone(),
        ..Call::default()
    });
    probe.with.is_empty().then(|| step.of_setup())
}
