//! Comparisons of the embedded rulebook with edited copies.

use conformant_record::Level;
use conformant_rulebook::scenario::Scenario;
use conformant_rulebook::{Operation, Origin, Rulebook, Service};
use conformant_versions::coordinates::TABLE;
use conformant_versions::{
    Action, Class, Comparison, Coordinates, Direction, Format, Released, What, affected_payload,
    affected_scenarios, kinds, rulebooks, schemas,
};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The rulebook of this repository with edits: in each file the second text replaces the first.
struct Edited {
    dir: tempfile::TempDir,
}

impl Edited {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("the disk is writable");
        for file in conformant_specs::FILES {
            let to = dir.path().join("specs").join(file.path);
            let folder = to.parent().expect("it is in a folder");
            std::fs::create_dir_all(folder).expect("the disk is writable");
            std::fs::write(to, file.bytes).expect("the disk is writable");
        }
        Self { dir }
    }

    fn specs(&self) -> PathBuf {
        self.dir.path().join("specs")
    }

    fn edit(self, file: &str, from: &str, to: &str) -> Self {
        let path = self.specs().join(file);
        let text = std::fs::read_to_string(&path).expect("the file is there");
        assert!(text.contains(from), "{file} has no {from:?}");
        std::fs::write(path, text.replacen(from, to, 1)).expect("the disk is writable");
        self
    }

    fn copy(self, from: &str, to: &str) -> Self {
        std::fs::copy(self.specs().join(from), self.specs().join(to))
            .expect("the disk is writable");
        self
    }

    fn load(&self) -> Rulebook {
        conformant_judge::load::from_dir(&self.specs())
            .unwrap_or_else(|problems| panic!("{problems}"))
    }
}

pub(crate) fn today() -> Rulebook {
    conformant_judge::load::embedded().unwrap_or_else(|problems| panic!("{problems}"))
}

/// An invented next version: one more field, one enumerated value less.
fn message_sent_5() -> Edited {
    Edited::new()
        .copy("events/MessageSent/4.yaml", "events/MessageSent/5.yaml")
        .edit(
            "events/MessageSent/5.yaml",
            "  downstream_id:",
            "  carrier:\n    type: [string, \"null\"]\n    description: Carrier that took it.\n    \
             x-source: { section: Message event payload fields, lines: [21] }\n  downstream_id:",
        )
        .edit(
            "events/MessageSent/5.yaml",
            "enum: [sms, whatsapp, rcs, null]",
            "enum: [sms, whatsapp, null]",
        )
}

fn ids(comparison: &Comparison) -> Vec<&str> {
    comparison
        .changes
        .iter()
        .map(|change| change.id.as_str())
        .collect()
}

fn class<'a>(comparison: &'a Comparison, id: &str) -> &'a [Class] {
    let found = comparison.changes.iter().find(|change| change.id == id);
    &found
        .unwrap_or_else(|| panic!("{id} is not among {:#?}", ids(comparison)))
        .class
}

#[test]
fn affected_fixtures_are_distinguished() {
    let rulebook = message_sent_5().load();
    let comparison = kinds(&rulebook, "MessageSent/4", "MessageSent/5").unwrap();
    let [added, removed] = &comparison.changes[..] else {
        panic!("{:#?}", ids(&comparison))
    };
    for (change, kind, payload, is_affected) in [
        (removed, "4", json!({"from": {"channel": "rcs"}}), true),
        (removed, "4", json!({"from": {"channel": "sms"}}), false),
        (removed, "4", json!({"to": {"channel": "rcs"}}), false),
        (added, "4", json!({}), true),
        (added, "3", json!({}), false),
    ] {
        let kind = format!("events/MessageSent/{kind}");
        let found = affected_payload(change, &kind, &payload);
        assert_eq!(found, is_affected, "{kind} {payload}");
    }
}

#[test]
fn a_field_that_only_a_later_path_version_has_is_added() {
    let comparison = kinds(&today(), "chat/channel", "chat/channel-v3").unwrap();
    let id = "chat/channel-v3/messaging-service-sid/property-added";
    assert_eq!(class(&comparison, id), [Class::BreakingForConsumers]);
}

#[test]
fn equal_schemas_have_no_differences() {
    let comparison = rulebooks(("a", &today()), ("b", &Edited::new().load()));
    assert_eq!(ids(&comparison), Vec::<&str>::new());
    assert!(!comparison.fails());
}

#[test]
fn a_new_version_is_additive_until_an_event_type_moves_to_it() {
    let (old, apart) = (today(), message_sent_5());
    let comparison = rulebooks(("a", &old), ("b", &apart.load()));
    assert_eq!(
        ids(&comparison),
        ["events/message-sent/5/event-version-added"]
    );
    assert!(!comparison.fails());

    let moved = apart
        .edit(
            "events/asyncapi.yaml",
            "MessageSent/4.yaml",
            "MessageSent/5.yaml",
        )
        .load();
    let comparison = rulebooks(("a", &old), ("b", &moved));
    assert_eq!(comparison.changes.len(), 4, "{:#?}", ids(&comparison));
    assert_eq!(
        class(
            &comparison,
            "events/com-svc-comms-api-message-sent/event-schema-changed"
        ),
        [Class::BreakingForProducers]
    );
    let touched = affected_scenarios(&comparison.changes, &moved, written(&moved));
    assert!(
        !touched.is_empty() && touched.iter().all(|id| id.starts_with("events/")),
        "{touched:?}"
    );
}

#[test]
fn a_limit_in_a_rule_is_narrower_or_wider_and_a_level_concerns_producers() {
    let old = today();
    let new = Edited::new()
        .edit("chat/rules/webhooks.yaml", "at-most: 5", "at-most: 10")
        .edit("flow/rules/executions.yaml", "level: should", "level: must")
        .load();
    let wider = "chat/webhooks/five-in-a-list/at-most/rule-widened";
    let comparison = rulebooks(("a", &old), ("b", &new));
    assert_eq!(class(&comparison, wider), [Class::BreakingForConsumers]);
    let raised = comparison
        .changes
        .iter()
        .find(|c| c.id.ends_with("/level-narrowed"));
    assert_eq!(raised.unwrap().class, [Class::BreakingForProducers]);
    let back = rulebooks(("b", &new), ("a", &old));
    let narrower = "chat/webhooks/five-in-a-list/at-most/rule-narrowed";
    assert_eq!(class(&back, narrower), [Class::BreakingForProducers]);
    let lowered = back
        .changes
        .iter()
        .find(|c| c.id.ends_with("/level-widened"));
    assert!(
        lowered
            .unwrap()
            .class
            .contains(&Class::BreakingForProducers)
    );
}

/// The written scenarios with their services.
fn written(rulebook: &Rulebook) -> impl Iterator<Item = (&Service, &Scenario)> {
    let services = rulebook.services.values();
    services.flat_map(|service| service.scenarios.values().map(move |(s, _)| (service, s)))
}

#[test]
fn scenarios_are_touched_by_what_they_make_evidence_of() {
    let old = today();
    let touched = |edited: Edited| {
        let new = edited.load();
        let comparison = rulebooks(("a", &old), ("b", &new));
        affected_scenarios(&comparison.changes, &new, written(&new))
    };
    let page_size =
        touched(Edited::new().edit("flow/openapi.yaml", "maximum: 1000", "maximum: 500"));
    assert!(
        page_size.iter().any(|id| id.starts_with("flow/")),
        "{page_size:?}"
    );
    assert!(!page_size.iter().any(|id| id.starts_with("chat/")));
    let step = touched(Edited::new().edit(
        "flow/schemas/step.yaml",
        "  name:\n",
        "  name:\n    maxLength: 64\n",
    ));
    assert!(
        step.iter().any(|id| id.starts_with("flow/steps/")),
        "{step:?}"
    );
    assert!(!step.iter().any(|id| id.starts_with("flow/flows/")));
}

#[test]
fn every_format_has_the_same_content() {
    let rulebook = message_sent_5().load();
    let mut comparison = kinds(&rulebook, "MessageSent/4", "MessageSent/5").unwrap();
    comparison.fixtures = vec!["fixtures/MessageSent/4/valid/1.json".to_owned()];
    for format in [Format::Text, Format::Json, Format::Markdown, Format::Junit] {
        let text = comparison.render(format).unwrap();
        for change in &comparison.changes {
            assert!(
                text.contains(&change.id),
                "{format:?} without {}",
                change.id
            );
        }
    }
    let rendered = |format| comparison.render(format).unwrap();
    assert!(rendered(Format::Junit).contains("failures=\"2\""));
    assert!(rendered(Format::Text).contains("fixtures affected: 1"));
}

#[test]
fn released_versions_are_guarded() {
    let book = today();
    let released = Released::default().with_current(&book);
    assert_eq!(Released::parse(&released.lock()), Ok(released.clone()));
    assert_eq!(released.problems(&book), Vec::<String>::new());

    let mended = Edited::new().edit(
        "events/MessageSent/4.yaml",
        "A message was handed",
        "A message is handed",
    );
    assert_eq!(released.problems(&mended.load()), Vec::<String>::new());

    let edited = Edited::new()
        .edit("events/MessageSent/4.yaml", "rcs, null", "null")
        .load();
    let problems = released.problems(&edited);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].contains("MessageSent/4 was edited"),
        "{problems:?}"
    );
    assert_eq!(
        released.with_current(&edited),
        released,
        "blessing never changes a line"
    );

    let gap = Edited::new()
        .copy("events/MessageSent/4.yaml", "events/MessageSent/6.yaml")
        .load();
    assert_eq!(
        released.problems(&gap),
        ["MessageSent goes from version 4 to 6"]
    );
    for wrong in [
        "MessageSent/4",
        "MessageSent/4 abc",
        "MessageSent 00",
        &released.lock().repeat(2),
    ] {
        assert!(Released::parse(wrong).is_err(), "{wrong}");
    }
}

/// Differences of two schemas, there and back.
pub(crate) fn of_schemas(old: &Value, new: &Value, direction: Direction) -> Vec<Coordinates> {
    let there = schemas(old, new, direction).changes;
    let back = schemas(new, old, direction).changes;
    let both = there.into_iter().chain(back);
    both.map(|change| change.coordinates).collect()
}

fn both_ways(a: &Rulebook, b: &Rulebook) -> Vec<Coordinates> {
    let one = rulebooks(("a", a), ("b", b)).changes;
    let other = rulebooks(("b", b), ("a", a)).changes;
    one.into_iter()
        .chain(other)
        .map(|change| change.coordinates)
        .collect()
}

/// Pairs of schemas for every row about schemas.
fn turned(direction: Direction) -> Vec<Coordinates> {
    let listed = |properties: Value| json!({"properties": properties});
    let closed =
        |properties: Value| json!({"additionalProperties": false, "properties": properties});
    let pairs = [
        (listed(json!({"a": {}})), listed(json!({}))),
        (closed(json!({"a": {}})), closed(json!({}))),
        (listed(json!({})), closed(json!({}))),
        (
            listed(json!({"a": {}})),
            json!({"properties": {"a": {}}, "required": ["a"]}),
        ),
        (json!({"enum": ["a"]}), json!({"enum": ["a", "b"]})),
        (json!({}), json!({"const": 1})),
        (
            json!({"type": "string"}),
            json!({"type": ["string", "null"]}),
        ),
        (json!({"type": "string"}), json!({"type": "integer"})),
        (json!({"maxLength": 3}), json!({"maxLength": 4})),
        (json!({"multipleOf": 3}), json!({"multipleOf": 2})),
        (json!({"pattern": "a"}), json!({})),
        (json!({"pattern": "a"}), json!({"pattern": "b"})),
        (
            json!({"not": {"type": "null"}, "anyOf": [{"type": "string", "maxLength": 1}, {"type": "string", "minLength": 3}]}),
            json!({"not": {"type": "null"}, "anyOf": [{"type": "string", "maxLength": 1}, {"type": "string", "minLength": 3}, {"type": "boolean"}]}),
        ),
        (
            json!({"not": {"type": "null"}}),
            json!({"not": {"type": "string"}}),
        ),
        (json!({}), json!({"default": 1})),
        (json!({"default": 2}), json!({"default": 1})),
        (json!({"title": "a"}), json!({"title": "b"})),
    ];
    let pairs = pairs.iter();
    pairs
        .flat_map(|(a, b)| of_schemas(a, b, direction))
        .collect()
}

/// Changes one item of each sort about operations, events and statements.
fn turn(book: &mut Rulebook) {
    let flow = book.services.get_mut("flow").expect("it is a service");
    let operation =
        |flow: &mut conformant_rulebook::Service, id: &str, turn: &dyn Fn(&mut Operation)| {
            turn(flow.operations.get_mut(id).expect("it is an operation"));
        };
    operation(flow, "fetch-flow", &|o| {
        o.summary.push_str(" Really.");
        o.secured = false;
        o.response = None;
        o.parameters[0].echo = None;
    });
    operation(flow, "read-flows", &|o| {
        o.path = "/v2/Flows".into();
        o.list_key = Some("streams".into());
        o.parameters[0].echo.as_mut().expect("it has an echo").at = "/elsewhere".into();
        o.parameters.pop();
    });
    operation(flow, "create-execution", &|o| {
        o.path = "/v1/Runs".into();
        o.bodies.clear();
        o.response = Some("flow/flow".into());
    });
    flow.operations.remove("delete-flow");
    let ended = flow
        .scenarios
        .get_mut("flow/executions/ended")
        .expect("it is a scenario");
    ended.0.steps.pop();
    let first = flow
        .scenarios
        .keys()
        .next()
        .expect("it has scenarios")
        .clone();
    flow.scenarios.remove(&first);

    let types = &mut book.event_types;
    types.remove("com.svc.comms-api.message.failed");
    types.insert("com.svc.comms-api.message.sent".into(), None);
    types.insert(
        "com.svc.comms-api.message.queued".into(),
        Some("events/MessageSent/4".into()),
    );
    book.kinds.remove("events/MessageUndelivered/4");
    book.kinds
        .get_mut("events/MessageDelivered/4")
        .expect("it is a resource type")
        .schema["type"] = json!("array");

    let rule = |id: &str| id.to_owned();
    book.rules
        .get_mut(&rule("flow/execution/only-ends"))
        .expect("it is a rule")
        .says
        .push('!');
    book.rules
        .get_mut(&rule("flow/execution/sid"))
        .expect("it is a rule")
        .level = Level::Should;
    book.rules
        .get_mut(&rule("flow/execution/ends-when-removed"))
        .expect("it is a rule")
        .origin = Origin::Either;
    // One rule is removed, and one cites lines that were unspecified before.
    book.rules.remove("flow/execution/same-everywhere");
    let mut points = std::mem::take(&mut book.open_points);
    let first = points.keys().next().expect("it has open points").clone();
    let gone = points.remove(&first).expect("an open point");
    let mut answer = book.rules["flow/execution/only-ends"].clone();
    (answer.id, answer.source) = ("flow/made-up/answer".into(), gone.source);
    book.rules.insert(answer);
    let second = points.values_mut().next().expect("it has open points");
    second.point.says.push('!');
    book.open_points = points;
}

#[test]
fn every_row_of_the_table_has_a_pair() {
    let mut seen = turned(Direction::Response);
    seen.extend(turned(Direction::Request));
    let (book, mut other) = (today(), today());
    other
        .kinds
        .retain(|name, _| !["flow/step", "auth/registration-qr"].contains(&name.as_str()));
    seen.extend(both_ways(&book, &other));
    turn(&mut other);
    seen.extend(both_ways(&book, &other));
    let limits = Edited::new()
        .edit("chat/rules/webhooks.yaml", "at-most: 5", "at-most: 10")
        .edit("chat/rules/channels.yaml", "max: 64", "max: 65");
    seen.extend(both_ways(&book, &limits.load()));
    seen.extend(crate::documents::shown());
    let missing: Vec<_> = TABLE
        .iter()
        .map(|row| row.at)
        .filter(|at| !seen.contains(at))
        .collect();
    assert_eq!(missing, []);
}

/// The actions of a subject for two schemas of a response, there and back.
fn actions_of(what: What, old: &Value, new: &Value) -> Vec<Action> {
    let found = of_schemas(old, new, Direction::Response);
    assert!(found.iter().all(|at| at.what == what), "{found:?}");
    found.iter().map(|at| at.action).collect()
}

#[test]
fn a_branch_that_prevents_plain_keywords_only_widens() {
    let first = json!({"type": "string", "maxLength": 5});
    let two = json!({"anyOf": [first, {"type": "integer"}]});
    let third = json!({"type": "string", "pattern": "^x"});
    let three = json!({"anyOf": [first, {"type": "integer"}, third]});
    let actions = actions_of(What::Shape, &two, &three);
    assert_eq!(actions, [Action::Widened, Action::Narrowed]);
    // Without common branches neither direction is proven.
    let actions = actions_of(What::Shape, &json!({"type": ["string", "integer"]}), &three);
    assert_eq!(actions, [Action::Changed, Action::Changed]);
    // Fields next to a kept list are still compared one by one.
    let object = json!({"type": "object", "properties": {"a": {}}});
    let asked = json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let mut either = object.clone();
    either["anyOf"] = asked["anyOf"].clone();
    let actions = actions_of(What::Shape, &object, &either);
    assert_eq!(actions, [Action::Narrowed, Action::Widened]);
}

#[test]
fn another_branch_of_one_of_is_a_change_where_branches_overlap() {
    let short = json!({"type": "string", "maxLength": 1});
    let long = json!({"type": "string", "minLength": 3});
    let old = json!({"oneOf": [short, long]});
    let apart = json!({"oneOf": [short, long, {"type": "boolean"}]});
    let overlapping = json!({"oneOf": [short, long, {"type": "string", "minLength": 5}]});
    let actions = |new| actions_of(What::Shape, &old, new);
    assert_eq!(actions(&apart), [Action::Widened, Action::Narrowed]);
    assert_eq!(actions(&overlapping), [Action::Changed, Action::Changed]);
    let number = json!({"type": "number"});
    let integers_twice = json!({"oneOf": [{"type": "integer"}, number]});
    let actions = actions_of(What::Shape, &number, &integers_twice);
    assert_eq!(actions, [Action::Changed, Action::Changed]);
}

#[test]
fn if_then_and_else_are_one_change_with_a_witness() {
    let plain =
        json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}});
    let with = |condition: Value| {
        let mut schema = plain.clone();
        let members = schema.as_object_mut().expect("it is an object");
        members.extend(condition.as_object().cloned().unwrap_or_default());
        schema
    };
    for ineffective in [
        json!({"if": {"required": ["a"]}}),
        json!({"then": {"required": ["a"]}}),
        json!({"else": {"required": ["a"]}, "then": false}),
    ] {
        let found = of_schemas(&plain, &with(ineffective), Direction::Response);
        assert_eq!(found, []);
    }
    let on_a = json!({"required": ["a"], "properties": {"a": {"const": 1}}});
    for condition in [
        json!({"if": on_a, "then": {"required": ["b"]}}),
        json!({"if": on_a, "then": {}, "else": {"required": ["b"]}}),
        json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": false}),
    ] {
        let changes = schemas(&plain, &with(condition), Direction::Response).changes;
        let [change] = &changes[..] else {
            panic!("{changes:?}")
        };
        assert!(change.id.ends_with("if/shape-narrowed"), "{}", change.id);
        assert_eq!(change.witnesses.len(), 1, "{changes:?}");
    }
}

#[test]
fn bounds_by_different_keywords_are_named() {
    let of = |key: &str| json!({"type": "number", key: 5});
    let (open, shut) = (of("exclusiveMinimum"), of("minimum"));
    let changes = schemas(&shut, &open, Direction::Response).changes;
    let [change] = &changes[..] else {
        panic!("{changes:?}")
    };
    let sides = (change.old.as_deref(), change.new.as_deref());
    assert_eq!(sides, (Some("minimum 5"), Some("exclusiveMinimum 5")));
}

#[test]
fn what_accepted_nothing_has_one_change() {
    let object =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
    let actions = actions_of(What::Type, &json!({"not": {}}), &object);
    assert_eq!(actions, [Action::Widened, Action::Narrowed]);
}

#[test]
fn multiples_are_compared_by_their_decimal_digits() {
    let multiple = |text: &str| serde_json::from_str(&format!("{{\"multipleOf\": {text}}}"));
    for (old, new, action) in [
        ("0.1", "0.3", Action::Narrowed),
        ("0.1", "0.2", Action::Narrowed),
        ("1e-2", "0.07", Action::Narrowed),
        ("20", "1e1", Action::Widened),
        ("0.2", "0.3", Action::Changed),
    ] {
        let (old, new) = (multiple(old).unwrap(), multiple(new).unwrap());
        let actions = actions_of(What::Bound, &old, &new);
        assert_eq!(actions.first(), Some(&action), "{old} {new}");
    }
}

#[test]
fn pattern_properties_and_prefix_items_are_decided_by_witnesses() {
    let closed = json!({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "string"}}});
    let integers = json!({"type": "array", "items": {"type": "integer"}});
    for (old, key, value) in [
        (
            closed,
            "patternProperties",
            json!({"^x-": {"type": "string"}}),
        ),
        (integers, "prefixItems", json!([{}])),
    ] {
        let mut new = old.clone();
        new[key] = value;
        let changes = schemas(&old, &new, Direction::Response).changes;
        let decided = changes.iter().filter(|change| !change.undecided);
        let narrowed: Vec<_> = decided.filter(|c| c.id.ends_with("narrowed")).collect();
        assert!(narrowed.is_empty() && !changes.is_empty(), "{changes:?}");
    }
}
