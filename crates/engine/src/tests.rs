//! Tests of the evidence of a scenario: the order of events, and the masking by broken values.

use super::record::Recorder;
use super::runner::ScenarioOutcome;
use super::session::OpenError;
use super::sessions::{Mutate, Offline};
use super::stop::{ENDED_BEFORE, Stop};
use super::summary::conclude_run;
use super::{Options, Planned, ScenarioRun, Session, Sessions, plan, run_scenario};
use conformant_base::http::{Request, Response};
use conformant_judge::evidence::{Event, Evidence, Exchange, WalkEnd};
use conformant_judge::history::Appearance;
use conformant_judge::load::shared as rulebook;
use conformant_judge::prove::Mode;
use conformant_judge::{Acceptance, Context, Judgment};
use conformant_record::{Finding, RunEvent, Verdict};
use conformant_rulebook::Rulebook;
use conformant_rulebook::paging::NextPage;
use conformant_rulebook::scenario::Scenario;
use conformant_schema::Schemas;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Sets a field of created services.
#[derive(Debug)]
struct Broken(&'static str, Value);

impl Mutate for Broken {
    fn response(&self, _: &str, request: &Request, response: &mut Response) {
        if request.method == "POST" && request.target.ends_with("/v2/Services") {
            let mut document: Value = serde_json::from_slice(&response.body).expect("a service");
            document[self.0] = self.1.clone();
            response.body = document.to_string().into_bytes();
        }
    }
}

fn run_steps(steps: &Value, mutator: Option<&dyn Mutate>) -> ScenarioOutcome {
    let rulebook = rulebook();
    let scenario = json!({"id": "chat/test/scenario", "says": "It runs.", "steps": steps});
    let scenario: Scenario = serde_json::from_value(scenario).expect("a scenario");
    let service = &rulebook.services["chat"];
    run_planned(&Planned { service, scenario }, mutator)
}

fn run_planned(planned: &Planned<'_>, mutator: Option<&dyn Mutate>) -> ScenarioOutcome {
    run_in(rulebook(), planned, mutator)
}

fn run_in(
    rulebook: &Rulebook,
    planned: &Planned<'_>,
    mutator: Option<&dyn Mutate>,
) -> ScenarioOutcome {
    let mut offline = Offline::faultless(0);
    if let Some(mutator) = mutator {
        offline = offline.mutated(mutator);
    }
    let session = offline.open(planned).expect("a session");
    let never_interrupted = AtomicBool::new(false);
    let schemas = Schemas::default();
    let scenario_run = ScenarioRun::new(rulebook, &schemas, planned, (0, 0));
    run_scenario(scenario_run, session.as_ref(), &never_interrupted)
}

/// Steps that fetch and compare a service and create a channel in it.
fn fetched() -> Value {
    json!([
        {"use": "a-service"},
        {
            "call": "fetch-service", "with": {"Sid": "${service.sid}"}, "capture": "again",
            "expect": [
                {"rule": "chat/rule/a", "at": "/sid", "equals": "${service.sid}"},
                {"rule": "chat/rule/b", "at": "/friendly_name", "equals": "${service.friendly_name}"},
            ],
        },
        {"call": "update-service", "with": {"Sid": "${again.sid}", "FriendlyName": "x"}, "accepted": "chat/rule/c"},
        {"call": "create-service", "with": {"FriendlyName": "other"}},
    ])
}

fn calls(evidence: &Evidence) -> Vec<(&str, Option<u16>)> {
    let call = |e: &'_ Exchange| e.status();
    evidence
        .exchanges
        .iter()
        .map(|e| (e.operation.as_str(), call(e)))
        .collect()
}

fn masked(evidence: &Evidence) -> Vec<(&str, Option<&str>)> {
    let missed = evidence.missed.iter();
    missed
        .map(|m| (m.rule.as_str(), m.masked_by.as_deref()))
        .collect()
}

#[test]
fn a_malformed_value_is_used_and_masks_dependent_rules() {
    let lower = Broken("sid", json!("is0123"));
    let ScenarioOutcome { evidence, stop, .. } = run_steps(&fetched(), Some(&lower));
    assert_eq!(stop, None);
    let broken = Some("chat/service/sid");
    // The request fails here. Steps that depend on it are skipped; the others run.
    assert_eq!(
        calls(&evidence),
        [
            ("create-service", Some(201)),
            ("fetch-service", Some(404)),
            ("create-service", Some(201))
        ]
    );
    assert!(evidence.exchanges[1].request.target.ends_with("/is0123"));
    assert_eq!(
        masked(&evidence),
        [
            ("chat/rule/a", broken),
            ("chat/rule/b", broken),
            ("chat/rule/c", broken)
        ]
    );
    assert!(evidence.statements.is_empty());
}

#[test]
fn a_rule_whose_scenario_was_cut_is_inconclusive_although_another_one_judged_it() {
    let rule = "chat/callbacks/trigger-fires";
    let (mut judged, mut cut) = (Judgment::default(), Judgment::default());
    judged.conclude(rule, None);
    cut.inconclusive(rule, ENDED_BEFORE);
    let mut recorder = Recorder::new(rulebook(), BTreeMap::new(), 0);
    recorder.add(conclude_run("chat/a", judged, None, 1, 0.0));
    recorder.add(conclude_run("chat/b", cut, Some(Stop::Interrupted), 0, 0.0));
    let record = recorder.finish(|r| r.id == rule, false);
    let result = &record.rules[0];
    assert_eq!(
        (result.verdict, result.reason.as_str(), result.judged),
        (Verdict::Inconclusive, ENDED_BEFORE, 1)
    );
}

#[test]
fn a_failing_scenario_that_was_cut_states_it() {
    let mut judgment = Judgment::default();
    let finding = Finding {
        rule: "chat/rule/a".to_owned(),
        ..Finding::default()
    };
    judgment.conclude("chat/rule/a", Some(finding));
    let result = conclude_run("chat/a", judgment, Some(Stop::Interrupted), 1, 0.0).result;
    assert_eq!(
        (result.verdict, result.reason.as_str()),
        (Verdict::Fail, ENDED_BEFORE)
    );
}

#[test]
fn a_resource_without_sid_is_found_by_its_url() {
    let missing = Broken("sid", Value::Null);
    let ScenarioOutcome { evidence, stop, .. } = run_steps(&fetched(), Some(&missing));
    assert_eq!(stop, None);
    let calls: Vec<_> = calls(&evidence).into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        calls,
        [
            "create-service",
            "fetch-service",
            "update-service",
            "create-service"
        ]
    );
    // Nothing is compared with the broken value; the rest is.
    assert_eq!(
        masked(&evidence),
        [("chat/rule/a", Some("chat/service/sid"))]
    );
    let stated: Vec<_> = evidence.statements.iter().map(|s| &s.expect.rule).collect();
    assert_eq!(stated, ["chat/rule/b"]);
}

/// Answers every request for a page of services with the last page.
#[derive(Debug)]
struct LastPageRepeated;

impl Mutate for LastPageRepeated {
    fn request(&self, _: &str, request: &mut Request) {
        let (path, _) = request.target.split_once('?').unwrap_or_default();
        if request.method == "GET" && path.ends_with("/v2/Services") {
            request.target = format!("{path}?PageSize=50");
        }
    }
}

/// Fails on every request for a page of services after the first one.
#[derive(Debug)]
struct LaterPagesFail;

impl Mutate for LaterPagesFail {
    fn response(&self, _: &str, request: &Request, response: &mut Response) {
        if request.target.contains("/v2/Services?") && request.target.contains("Page=1") {
            *response = Response::empty(500);
        }
    }
}

/// Reads all services of a rulebook in which their pages have numbers.
fn walk_of_numbered_pages(mutation: &dyn Mutate) -> ScenarioOutcome {
    let mut rulebook = conformant_judge::load::load(None, &[]).expect("a rulebook");
    let services = rulebook.services.get_mut("chat").expect("chat");
    let list = services
        .operations
        .get_mut("read-services")
        .expect("a list");
    list.paging.next = NextPage::Page("Page".to_owned(), 0);
    let steps = json!([
        {"use": "a-service"},
        {
            "call": "read-services", "walk": true,
            "expect": [{"rule": "chat/rule/a", "at": "/pages", "equals": 1}],
        },
    ]);
    let scenario = json!({"id": "chat/test/scenario", "says": "It runs.", "steps": steps});
    let scenario: Scenario = serde_json::from_value(scenario).expect("a scenario");
    let service = &rulebook.services["chat"];
    let planned = Planned { service, scenario };
    run_in(&rulebook, &planned, Some(mutation))
}

#[test]
fn a_server_error_on_a_later_page_does_not_end_a_list() {
    let outcome = walk_of_numbered_pages(&LaterPagesFail);
    let [walk] = &outcome.evidence.walks[..] else {
        panic!("{:?}", outcome.stop);
    };
    assert!(matches!(walk.end, WalkEnd::Broken(_)), "{:?}", walk.end);
}

#[test]
fn items_of_a_repeated_last_page_are_counted_once() {
    let outcome = walk_of_numbered_pages(&LastPageRepeated);
    let [walk] = &outcome.evidence.walks[..] else {
        panic!("{:?}", outcome.stop);
    };
    assert_eq!((walk.pages.len(), &walk.end), (1, &WalkEnd::Complete));
    let [statement] = &outcome.evidence.statements[..] else {
        panic!("{:?}", outcome.stop);
    };
    assert_eq!(statement.result["pages"], 1);
    assert_eq!(statement.result["items"].as_array().map(Vec::len), Some(1));
}

/// The list is neither read again because the member ended before, nor because it was created again.
#[test]
fn a_list_with_a_member_that_came_back_does_not_lag() {
    let all = plan::all(rulebook()).into_iter();
    let mut all = all.filter(|planned| planned.scenario.id == "chat/members/comes-back");
    let run = run_planned(&all.next().unwrap(), None);
    let lists = run.evidence.exchanges.iter();
    let lists = lists.filter(|exchange| exchange.operation == "read-members");
    assert_eq!(lists.count(), 1);
}

#[test]
fn an_unexpected_answer_masks_the_later_steps() {
    let steps = json!([
        {"call": "fetch-service", "with": {"Sid": "IS0"}},
        {"call": "create-service", "with": {"FriendlyName": "x"}, "accepted": "chat/rule/a"},
    ]);
    let ScenarioOutcome { evidence, .. } = run_steps(&steps, None);
    assert_eq!(
        masked(&evidence),
        [("chat/rule/a", Some("chat/fetch-service"))]
    );
}

#[test]
fn a_hook_is_not_called_with_null_for_a_required_argument() {
    let steps = json!([
        {"call": "create-service", "with": {"FriendlyName": "one"}, "capture": "service"},
        {"hook": "configure_service", "with": {"service_sid": "${service.pre_webhook_url}"}},
    ]);
    let ScenarioOutcome { evidence, stop, .. } = run_steps(&steps, None);
    let why = "no answer so far contains `service_sid`, which the hook configure_service needs";
    assert_eq!(stop, Some(Stop::Inconclusive(why.to_owned())));
    assert!(evidence.events.iter().all(|e| !matches!(e, Event::Hook(_))));
}

#[test]
fn links_hooks_and_callbacks_are_events_in_order() {
    let steps = json!([
        {"listen": "inbox"},
        {"use": "a-channel-with-webhook", "with": {"url": "${inbox.url}", "method": "POST"}},
        {"get": "${service.url}"},
        {"hook": "set_online", "with": {"service_sid": "${service.sid}", "identity": "nobody", "online": true}},
        {"use": "an-announced-message", "with": {"service_sid": "${service.sid}", "channel_sid": "${channel.sid}"}},
        {"await": "inbox", "count": 1, "within": "30s"},
    ]);
    let ScenarioOutcome { evidence, .. } = run_steps(&steps, None);
    let word = |event: &Event| match event {
        Event::Exchange(index) => evidence.exchanges[*index].operation.clone(),
        Event::Hook(call) => call.name.clone(),
        Event::Delivery(delivery) => format!("-> {}", delivery.listener),
        Event::Passed(_) => "…".to_owned(),
    };
    let words: Vec<String> = evidence.events.iter().map(word).collect();
    let webhook = words
        .iter()
        .position(|w| w == "create-webhook")
        .expect("it is made");
    assert_eq!(
        words[webhook + 1..webhook + 3],
        ["fetch-service", "set_online"]
    );
    let came = words.iter().position(|w| w == "-> inbox").expect("it came");
    let sent = words
        .iter()
        .position(|w| w == "create-message")
        .expect("it was sent");
    assert!(sent < came, "{words:?}");
    let Event::Delivery(delivery) = &evidence.events[came] else {
        unreachable!()
    };
    assert_eq!(delivery.subscription, Some(webhook));
    assert_eq!(delivery.request.method, "POST");
    assert!(delivery.document.is_some() && evidence.alone);
    let followed = evidence
        .exchanges
        .iter()
        .find_map(|e| e.via.as_ref())
        .expect("a link");
    assert_eq!(followed.pointer, "/url");
    assert_eq!(
        evidence.exchanges[followed.exchange].operation,
        "create-service"
    );
}

/// The reference's SIDs identify the resource of each representation. Paths by SID and by name must lead to the same
/// resource, and an unchanged resource is equal in all observations. The campaign `samples` runs all scenarios, other
/// runs a sample.
const EVERY_SCENARIO: usize = 12;

#[expect(
    clippy::disallowed_methods,
    reason = "a setting of the tests, not of the program"
)]
fn is_campaign() -> bool {
    std::env::var_os("CAMPAIGN").is_some_and(|name| name == "samples")
}

#[test]
fn requests_are_bound_to_the_answering_resources() {
    let (mut by_name, mut by_key, mut compared) = (0, 0, 0);
    let mut wrong = BTreeSet::new();
    let every = if is_campaign() { 1 } else { EVERY_SCENARIO };
    for planned in plan::all(rulebook()).into_iter().step_by(every) {
        let ScenarioOutcome { evidence, .. } = run_planned(&planned, None);
        let mut judgment = Judgment::default();
        let case = Context::new(rulebook(), &Schemas::default(), &evidence, &mut judgment);
        let history = &case.history;
        let id = &planned.scenario.id;
        for (thing_id, thing) in history.resources.iter() {
            for observation in &thing.observations {
                let Some(shown) = observation.representation(&case) else {
                    continue;
                };
                if let Some(sid) = shown.value.get("sid")
                    && sid != thing.key.as_str()
                {
                    wrong.insert(format!("{id}: sid {sid}"));
                }
                let about = &rulebook().kinds[observation.shown_type].annotations;
                for ((at, _), parent) in about.parents.iter().zip(&thing.parents) {
                    let parent = &history.resources.get(*parent).key;
                    if shown.value.pointer(at) != Some(&json!(parent)) {
                        wrong.insert(format!("{id}: {} {at}", thing.kind));
                    }
                }
                let index = observation
                    .exchange
                    .expect("every observation is an answer");
                let bound = &history.path_bindings[index];
                let operation = case.seen[index].operation.expect("it is known");
                if operation.names_its_resource()
                    && matches!(observation.shows, Appearance::Whole(_))
                {
                    if bound.resource != Some(thing_id) {
                        wrong.insert(format!("{id}: {} is bound elsewhere", operation.id));
                    }
                    by_name += usize::from(bound.by_name);
                    by_key += usize::from(!bound.by_name);
                }
                if bound.parents.contains(&None) {
                    wrong.insert(format!("{id}: {} has unknown parents", operation.id));
                }
            }
            for pair in thing.observations.windows(2) {
                let moments = (&pair[0].moment, &pair[1].moment);
                if history.writes_between(thing_id, moments).next().is_some() {
                    continue;
                }
                let compared_fields = history.compared(&case, thing_id, &pair[0], &pair[1]);
                for change in compared_fields.iter().filter(|c| c.is_changed()) {
                    wrong.insert(format!(
                        "{id}: {} {} {} {}",
                        thing.kind, change.pointer, change.before, change.after
                    ));
                }
                compared += 1;
            }
        }
        for (seen, bound) in case.seen.iter().zip(&history.path_bindings) {
            let operation = seen
                .operation
                .filter(|o| o.names_its_resource() && o.resource.is_some());
            let accepted = operation.is_some() && seen.acceptance == Acceptance::Accepted;
            // What another account sees is not ours.
            let is_ours = seen.exchange.credentials.sees_ours();
            if accepted && is_ours && bound.resource.is_none() {
                wrong.insert(format!(
                    "{id}: {} is bound to nothing",
                    seen.exchange.request.target
                ));
            }
        }
        for list in &history.lists {
            if !list.is_readable() {
                wrong.insert(format!("{id}: {} cannot be read", list.operation.id));
            }
        }
    }
    assert_eq!(wrong, BTreeSet::new());
    assert!(
        by_name > 10 / every && by_key > 100 / every && compared > 100 / every,
        "{by_name} {by_key} {compared}"
    );
}

/// Offline sessions that report one wait.
struct Limited<'a>(Offline<'a>, AtomicBool);

impl Sessions for Limited<'_> {
    fn open(&self, planned: &Planned<'_>) -> Result<Box<dyn Session + '_>, OpenError> {
        self.0.open(planned)
    }

    fn targets(&self) -> BTreeMap<String, String> {
        self.0.targets()
    }

    fn waits(&self) -> Option<(String, String)> {
        let was_reported = self.1.swap(true, Ordering::Relaxed);
        (!was_reported).then(|| ("flow".to_owned(), "429, waiting 1 s".to_owned()))
    }
}

#[test]
fn a_run_reports_finished_scenarios_and_waits_at_once() {
    let planned: Vec<Planned<'_>> = plan::all(rulebook()).into_iter().take(20).collect();
    let offline = Offline::faultless(0);
    let options = Options {
        seed: 0,
        jobs: 4,
        shuffle: false,
        run_max: Duration::from_secs(60),
        prove: Mode::Off,
        evidence_writer: None,
    };
    let (mut finished, mut waits) = (BTreeSet::new(), Vec::new());
    super::run(
        rulebook(),
        &Schemas::default(),
        &planned,
        &Limited(offline, AtomicBool::new(false)),
        &options,
        &AtomicBool::new(false),
        &mut |event| match event {
            RunEvent::ScenarioPlayed { id, .. } => assert!(finished.insert(id), "once"),
            RunEvent::ScenarioEnded { result, .. } => assert!(finished.contains(&result.id)),
            RunEvent::Waiting { service, why } => waits.push((service, why)),
            RunEvent::Started { .. }
            | RunEvent::ScenarioBegan { .. }
            | RunEvent::Alive { .. }
            | RunEvent::Finished { .. } => {}
        },
        |_, _| {},
    );
    assert_eq!(finished.len(), planned.len());
    assert_eq!(waits, [("flow".to_owned(), "429, waiting 1 s".to_owned())]);
}
