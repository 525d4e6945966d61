//! Bad files: every kind of mistake is refused at its place, with what to do. Tests only.

use conformant_judge::load::predicates;
use conformant_rulebook::{Problems, Rulebook};
use serde::Deserialize;

pub(crate) fn files() -> Vec<(&'static str, String)> {
    [
        ("common.yaml", include_str!("bad_files/common.yaml")),
        (
            "flow/openapi.yaml",
            include_str!("bad_files/flow/openapi.yaml"),
        ),
        (
            "flow/open-points.yaml",
            include_str!("bad_files/flow/open-points.yaml"),
        ),
        (
            "flow/rules/flows.yaml",
            include_str!("bad_files/flow/rules/flows.yaml"),
        ),
        (
            "flow/scenarios/flows.yaml",
            include_str!("bad_files/flow/scenarios/flows.yaml"),
        ),
        (
            "flow/schemas/flow.yaml",
            include_str!("bad_files/flow/schemas/flow.yaml"),
        ),
    ]
    .map(|(path, text)| (path, text.to_owned()))
    .to_vec()
}

pub(crate) fn load(files: &[(&str, String)]) -> Result<Rulebook, Problems> {
    let files = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), text.clone().into_bytes()));
    Rulebook::from_files(predicates(), files)
}

/// A mistake in a file, see `mistakes.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mistake {
    file: String,
    replace: String,
    with: String,
    says: Vec<String>,
}

impl Mistake {
    /// Why the mistake is not reported as stated.
    fn problem(&self) -> Option<String> {
        let mut files = files();
        let (_, text) = files
            .iter_mut()
            .find(|(path, _)| *path == self.file)
            .expect("a file of the example");
        let at = text.find(&self.replace).expect("a text of the file");
        let with = self.with.replacen('^', "", 1);
        text.replace_range(at..at + self.replace.len(), &with);
        let mark = self.with.find('^').map(|n| {
            let before = &text[..at + n];
            let line = before.rsplit('\n').next().unwrap_or_default();
            (before.matches('\n').count() + 1, line.chars().count() + 1)
        });
        let Err(problems) = load(&files) else {
            return Some(format!("{:?} is accepted", self.with));
        };
        let is_reported = problems.iter().any(|p| {
            let printed = format!("{} {}", p.message, p.help.as_deref().unwrap_or_default());
            p.file == self.file
                && self.says.iter().all(|words| printed.contains(words))
                && mark.is_none_or(|mark| mark == (p.line, p.column))
        });
        let expected = || format!("expected {:?} at {mark:?} in:\n{problems}", self.says);
        (!is_reported).then(expected)
    }
}

#[test]
fn each_mistake_is_reported_at_its_place_with_what_to_do() {
    let mistakes = conformant_yaml::read(include_str!("bad_files/mistakes.yaml")).unwrap();
    let mistakes: Vec<Mistake> = conformant_yaml::from_node(&mistakes).unwrap();
    let problems: Vec<String> = mistakes.iter().filter_map(Mistake::problem).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_example_is_good() {
    let rulebook = load(&files()).unwrap_or_else(|problems| panic!("{problems}"));
    let rules: Vec<&str> = rulebook.rules.keys().map(String::as_str).collect();
    assert_eq!(
        rules,
        [
            "flow/fetch-flow",
            "flow/fetch-flow/sid",
            "flow/fetch-flow/unknown",
            "flow/flow/draft",
            "flow/flow/no-other-fields",
            "flow/flow/same",
            "flow/flow/sid",
            "flow/flow/status",
            "flow/open/delete",
        ]
    );
    let operation = rulebook.operation("flow", "fetch-flow").unwrap();
    assert_eq!(operation.response.as_deref(), Some("flow/flow"));
    assert_eq!(
        operation.parameters[0].schema["pattern"],
        "^FW[0-9a-f]{32}$"
    );
    assert_eq!(
        rulebook.rules["flow/flow/sid"].place,
        "flow/schemas/flow.yaml:7"
    );
}

#[test]
fn all_problems_of_all_files_come_at_once() {
    let mut files = files();
    for (_, text) in &mut files {
        *text = text
            .replace("says:", "sayz:")
            .replace("description:", "descripton:");
    }
    let problems = load(&files).unwrap_err();
    let mut named: Vec<&str> = problems.iter().map(|p| p.file.as_str()).collect();
    named.dedup();
    assert_eq!(
        named,
        [
            "flow/open-points.yaml",
            "flow/openapi.yaml",
            "flow/rules/flows.yaml",
            "flow/scenarios/flows.yaml",
            "flow/schemas/flow.yaml"
        ]
    );
    assert!(problems.to_string().contains("did you mean `says`?"));
}

#[test]
fn an_unreadable_file_does_not_hide_problems_of_others() {
    let mut with = files();
    with.push(("flow/scenarios/unreadable.yaml", "scenarios: [".to_owned()));
    let misshapen = "scenarios: [{ id: flow/x, sayz: A scenario., steps: [] }]";
    with.push(("flow/scenarios/misshapen.yaml", misshapen.to_owned()));
    let problems = load(&with).unwrap_err();
    let named: Vec<&str> = problems.iter().map(|p| p.file.as_str()).collect();
    assert!(
        named.contains(&"flow/scenarios/unreadable.yaml"),
        "{named:?}"
    );
    assert!(
        named.contains(&"flow/scenarios/misshapen.yaml"),
        "{named:?}"
    );
    // Names of the unreadable file are not reported as missing.
    assert!(
        named.iter().all(|file| file.starts_with("flow/scenarios/")),
        "{named:?}"
    );
}

#[test]
fn an_unreadable_file_that_others_need_is_the_only_problem() {
    for (at, text) in [
        ("flow/openapi.yaml", "foo: ["),
        ("common.yaml", "$defs: ["),
        ("flow/rules/flows.yaml", ""),
    ] {
        let mut with = files();
        for (path, content) in &mut with {
            if *path == at {
                text.clone_into(content);
            }
        }
        let problems = load(&with).unwrap_err();
        let named: Vec<&str> = problems.iter().map(|p| p.file.as_str()).collect();
        assert_eq!(named, [at], "{problems}");
    }
}

#[test]
fn files_in_no_place_and_that_are_no_text() {
    let mut with = files();
    with.push(("flow/scenario/x.yaml", "a: 1".to_owned()));
    assert!(
        load(&with)
            .unwrap_err()
            .to_string()
            .contains("unexpected file in the rulebook")
    );
    let files = [("common.yaml".to_owned(), b"\xff".to_vec())];
    let problems = Rulebook::from_files(predicates(), files).unwrap_err();
    assert!(problems.to_string().contains("not valid UTF-8 at byte 0"));
}

#[test]
fn rules_name_an_event_without_its_version() {
    let mut with = files();
    let rule = "rules:\n  - id: events/x/y\n    source: { section: S, lines: [1] }\n    says: It is.\n    \
                check: { conforms: { kind: events/MessageSent/4, schema: { type: object } } }\n";
    with.push(("events/rules/x.yaml", rule.to_owned()));
    let printed = load(&with).unwrap_err().to_string();
    for says in [
        "events/rules/x.yaml:5:32: the rule names version 4 of an event",
        "name the event, `events/MessageSent`",
    ] {
        assert!(printed.contains(says), "{printed}");
    }
}

#[test]
fn what_is_missing_in_the_whole() {
    let mut without_path = files();
    without_path[4].1 = without_path[4].1.replace("operations:\n  fetch-flow:\n    setup: [{ use: a-flow }]\n    with: { Sid: \"${made.flow_sid}\" }\n", "");
    let printed = load(&without_path).unwrap_err().to_string();
    assert!(
        printed.contains("the operation `fetch-flow` has no happy path"),
        "{printed}"
    );
    let mut without_scenario = files();
    without_scenario[4].1 = without_scenario[4].1.replace(
        "        rejected: flow/fetch-flow/unknown\n",
        "        either: true\n",
    );
    let printed = load(&without_scenario).unwrap_err().to_string();
    assert!(
        printed.contains("no scenario names the rule `flow/fetch-flow/unknown`"),
        "{printed}"
    );
}
