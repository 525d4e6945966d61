//! Path parameters that calls leave out, in further scenarios of the embedded rulebook.

use conformant_judge::load::predicates;
use conformant_rulebook::step::Step;
use conformant_rulebook::{Problems, Rulebook};

/// Loads one scenario of a service, and groups before it.
fn load(service: &str, groups: &str, steps: &str) -> Result<Vec<Step>, Problems> {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let inside = folder.path().join(service);
    std::fs::create_dir(&inside).expect("the disk is writable");
    let id = format!("{service}/paths/test");
    let file = format!("{groups}scenarios:\n  - id: {id}\n    says: A test.\n    steps:\n{steps}");
    std::fs::write(inside.join("paths.yaml"), file).expect("the disk is writable");
    let rulebook = Rulebook::load_with(predicates(), None, &[folder.path().to_owned()])?;
    Ok(rulebook.services[service].scenarios[&id].0.steps.clone())
}

/// The parameters of the last step, and of a step between its pages.
#[track_caller]
fn last(service: &str, groups: &str, steps: &str) -> Vec<String> {
    let steps = load(service, groups, steps).unwrap_or_else(|problems| panic!("{problems}"));
    let step = steps.last().expect("there is a step");
    let step = step.nested().last().unwrap_or(step);
    let with = step.with().into_iter().flatten();
    let mut with: Vec<String> = with
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    with.sort();
    with
}

const CHANNEL: &str = "      - use: a-channel\n";
const FETCH_MEMBER: &str = "      - call: read-members\n";

#[test]
fn path_parameters_come_from_the_resource_used_last() {
    let other = "      - call: create-channel\n        capture: other\n";
    assert_eq!(
        last("chat", "", &format!("{CHANNEL}{other}{FETCH_MEMBER}")),
        ["ChannelSid=${other.sid}", "ServiceSid=${service.sid}"]
    );
    let named = "      - call: read-members\n        with: { ChannelSid: \"${channel.sid}\" }\n";
    assert_eq!(
        last(
            "chat",
            "",
            &format!("{CHANNEL}{other}{FETCH_MEMBER}{named}{FETCH_MEMBER}")
        ),
        ["ChannelSid=${channel.sid}", "ServiceSid=${service.sid}"]
    );
}

#[test]
fn given_path_parameters_bring_their_parents() {
    let steps = "      - use: a-channel\n        as: one\n      - use: a-channel\n        as: two\n      \
                 - call: read-members\n        with: { ChannelSid: \"${one.channel.sid}\" }\n";
    let found = last("chat", "", steps);
    let expected = [
        "ChannelSid=${one.channel.sid}",
        "ServiceSid=${one.service.sid}",
    ];
    // `${two…}` is captured for nothing else, which loading allows for groups.
    assert_eq!(found, expected);
}

#[test]
fn rejected_either_and_repeated_calls_do_not_fill_path_parameters() {
    let steps = format!(
        "{CHANNEL}      - call: create-channel\n        capture: maybe\n        either: true\n      \
         - call: create-channel\n        repeat: 2\n        capture: many\n{FETCH_MEMBER}        \
         expect: [{{ id: chat/paths/x, source: {{ section: A, lines: [1] }}, says: X., at: /a, \
         equals: \"${{maybe.sid}}${{many.0.sid}}\" }}]\n"
    );
    assert_eq!(
        last("chat", "", &steps),
        ["ChannelSid=${channel.sid}", "ServiceSid=${service.sid}"]
    );
}

#[test]
fn what_a_group_used_is_known_by_the_names_outside() {
    let groups = "groups:\n  within:\n    says: A channel of a service.\n    with: { sid: \"\" }\n    steps:\n      \
                  - call: create-channel\n        with: { ServiceSid: \"${with.sid}\" }\n        capture: inner\n      \
                  - call: read-members\n";
    let steps = "      - use: a-service\n      - use: within\n        with: { sid: \"${service.sid}\" }\n        \
                 as: it\n      - call: read-members\n";
    assert_eq!(
        last("chat", groups, steps),
        ["ChannelSid=${it.inner.sid}", "ServiceSid=${service.sid}"]
    );
}

#[test]
fn steps_between_pages_know_the_call_around_them() {
    let steps = format!(
        "{CHANNEL}      - call: read-members\n        walk: true\n        between:\n          - call: create-member\n            \
         with: {{ Identity: x }}\n"
    );
    let mut found = last("chat", "", &steps);
    found.sort();
    assert_eq!(
        found,
        [
            "ChannelSid=${channel.sid}",
            "Identity=x",
            "ServiceSid=${service.sid}"
        ]
    );
}

#[test]
fn a_hook_that_creates_a_resource_counts_and_the_configuration_is_the_last_resort() {
    let hook = "      - hook: create_flow\n        capture: made\n";
    let read = "      - call: read-executions\n";
    assert_eq!(
        last("flow", "", &format!("{hook}{read}")),
        ["FlowSid=${made.flow_sid}"]
    );
    assert_eq!(last("flow", "", read), ["FlowSid=${target.flow.flow_sid}"]);
}

#[test]
fn a_path_parameter_that_nothing_fills_is_reported_at_its_call() {
    let problems = load("chat", "", FETCH_MEMBER).unwrap_err();
    let messages: Vec<String> = problems
        .iter()
        .map(|p| {
            format!(
                "{}:{} {} {}",
                p.line,
                p.column,
                p.message,
                p.help.as_deref().unwrap_or_default()
            )
        })
        .collect();
    assert!(
        messages.iter().any(|t| t.starts_with("5:15 the path parameter `ChannelSid` is missing, and no earlier step creates or names a chat/channel give `ChannelSid` under `with`")),
        "{messages:?}"
    );
}
