//! Bad files: every kind of mistake is refused at its place, with what to do. Tests only.

use conformant_judge::load::predicates;
use conformant_rulebook::{Problems, Rulebook};

const COMMON: &str = "$defs:\n  sid-FW: { type: string, pattern: \"^FW[0-9a-f]{32}$\" }\n";
const FLOW: &str = "\
title: Flow
description: A flow.
x-source: { section: Flow, lines: [16] }
type: object
required: [sid]
properties:
  sid:
    $ref: ../../common.yaml#/$defs/sid-FW
    description: Names it.
    x-source: { section: Flow, lines: [19] }
  status:
    enum: [draft, published]
    description: Its state.
    x-source: { section: Flow, lines: [22] }
";
const OPENAPI: &str = "\
openapi: 3.1.0
info: { title: Flow, version: v1 }
paths:
  /v1/Flows/{Sid}:
    get:
      operationId: fetch-flow
      summary: Fetches a flow.
      x-source: { section: Endpoints, lines: [81] }
      parameters:
        - name: Sid
          in: path
          required: true
          description: The flow.
          schema: { $ref: \"../common.yaml#/$defs/sid-FW\" }
          x-source: { section: Endpoints, lines: [81] }
          x-echo: /sid
      responses:
        2XX:
          description: The flow.
          content: { application/json: { schema: { $ref: schemas/flow.yaml } } }
";
const RULES: &str = "\
rules:
  - id: flow/flow/draft
    source: { section: Flow status, lines: [71] }
    says: A new flow is a draft.
    check: { scenario: {} }
  - id: flow/fetch-flow/unknown
    source: { section: Endpoints, lines: [81] }
    says: An unknown flow is refused.
    check: { scenario: {} }
  - id: flow/flow/same
    source: { section: Endpoints, lines: [81] }
    says: A flow is the same everywhere.
    check: { immutable: { kind: flow/flow, key: /sid, fields: [/status] } }
";
const OPEN: &str = "\
open-points:
  - id: flow/open/delete
    source: { section: Endpoints, lines: [92] }
    basis: not-shown
    says: What deleting answers.
    treatment: Anything goes.
    either: true
    observe: [{ operation: fetch-flow, aspect: status }]
";
const SCENARIOS: &str = "\
groups:
  a-flow:
    says: A flow is there.
    with: { name: x }
    steps:
      - hook: create_flow
        with: { friendly_name: \"${with.name}\" }
        capture: made
operations:
  fetch-flow:
    setup: [{ use: a-flow }]
    with: { Sid: \"${made.flow_sid}\" }
scenarios:
  - id: flow/flows/draft
    says: A flow is a draft at first.
    matrix: { word: [a, b] }
    steps:
      - use: a-flow
        with: { name: \"${matrix.word}\" }
      - call: fetch-flow
        with: { Sid: \"${made.flow_sid}\" }
        expect: [{ rule: flow/flow/draft, at: /status, equals: draft }]
      - call: fetch-flow
        with: { Sid: FW00 }
        rejected: flow/fetch-flow/unknown
      - wait: 2s
";

fn files() -> Vec<(&'static str, String)> {
    [
        ("common.yaml", COMMON),
        ("flow/openapi.yaml", OPENAPI),
        ("flow/open-points.yaml", OPEN),
        ("flow/rules/flows.yaml", RULES),
        ("flow/scenarios/flows.yaml", SCENARIOS),
        ("flow/schemas/flow.yaml", FLOW),
    ]
    .map(|(path, text)| (path, text.to_owned()))
    .to_vec()
}

fn load(files: &[(&str, String)]) -> Result<Rulebook, Problems> {
    let files = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), text.clone().into_bytes()));
    Rulebook::from_files(predicates(), files)
}

/// Replaces one text in one file; the first problem is at the place marked by `^` in what is
/// put in, and its message and help hold the words.
#[track_caller]
fn refuses(path: &str, from: &str, to: &str, words: &[&str]) {
    let mut files = files();
    let (_, text) = files
        .iter_mut()
        .find(|(p, _)| *p == path)
        .expect("a file of the example");
    assert!(text.contains(from), "{from} is not in {path}");
    *text = text.replacen(from, &to.replacen('^', "", 1), 1);
    let mark = to.find('^').map(|n| {
        let at = text.find(&to.replacen('^', "", 1)).expect("was put in") + n;
        let before = &text[..at];
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        (before.matches('\n').count() + 1, column)
    });
    let problems = load(&files).expect_err("a bad file");
    let fits = problems.iter().any(|p| {
        let printed = format!("{} {}", p.message, p.help.as_deref().unwrap_or_default());
        p.file == path
            && words.iter().all(|w| printed.contains(w))
            && mark.is_none_or(|m| m == (p.line, p.column))
    });
    assert!(fits, "expected {words:?} at {mark:?} in:\n{problems}");
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
fn yaml_that_is_none() {
    refuses("common.yaml", "$defs:", "$defs: [", &[]);
    refuses(
        "flow/rules/flows.yaml",
        "says: A new",
        "says: a\n    ^says: A new",
        &["duplicate"],
    );
    refuses(
        "flow/rules/flows.yaml",
        "says: A new flow",
        "says: A: new flow",
        &["mapping values"],
    );
    refuses("common.yaml", "$defs:", "a: 1\n---\n$defs:", &["document"]);
    refuses(
        "flow/schemas/flow.yaml",
        "[draft, published]",
        "[draft, ^NO]",
        &["`NO`", "quote it"],
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
fn schemas() {
    let path = "flow/schemas/flow.yaml";
    refuses(
        path,
        "required: [sid]",
        "requird: [sid]",
        &["`requird`", "did you mean `required`?"],
    );
    refuses(
        path,
        "required: [sid]",
        "required: [^sidd]",
        &["`sidd`", "did you mean `sid`?"],
    );
    refuses(
        path,
        "$defs/sid-FW",
        "$defs/sid-FV",
        &["sid-FV", "did you mean `sid-FW`"],
    );
    refuses(
        path,
        "../../common",
        "../../comon",
        &["missing file `comon.yaml`"],
    );
    refuses(
        path,
        "../../common",
        "../../../common",
        &["is outside the rulebook"],
    );
    refuses(
        path,
        "    x-source: { section: Flow, lines: [22] }\n",
        "",
        &["x-source", "missing"],
    );
    refuses(path, "lines: [22]", "lines: []", &["names lines"]);
    refuses(
        path,
        "    description: Its state.\n",
        "",
        &["`description` is missing"],
    );
    refuses(
        path,
        "type: object",
        "type: ^objekt",
        &["`objekt`", "did you mean `object`?"],
    );
    refuses(
        path,
        "enum: [draft, published]",
        "pattern: ^\"(a\"",
        &["regular expression"],
    );
    refuses(
        path,
        "enum: [draft, published]",
        "pattern: ^\"(a)\\\\1\"",
        &["regular expression"],
    );
    refuses(
        path,
        "enum: [draft, published]",
        "format: datetime",
        &["did you mean `date-time`?"],
    );
    refuses(
        path,
        "enum: [draft, published]",
        "minLength: many",
        &["invalid JSON Schema"],
    );
}

#[test]
fn operations() {
    let path = "flow/openapi.yaml";
    refuses(
        path,
        "summary:",
        "^sumary:",
        &["`sumary`", "did you mean `summary`?"],
    );
    refuses(path, "fetch-flow", "^fetchFlow", &["expected kebab case"]);
    refuses(path, "name: Sid", "name: Side", &["`{Sid}`"]);
    refuses(
        path,
        "required: true",
        "required: false",
        &["always required"],
    );
    refuses(path, "in: path", "in: ^cookie", &["cookie"]);
    refuses(path, "x-echo: /sid", "x-echo: ^sid", &["JSON Pointer"]);
    refuses(
        path,
        "x-echo: /sid",
        "x-echo-as: json",
        &["without `x-echo`"],
    );
    refuses(
        path,
        "2XX:",
        "^\"200\":",
        &["the documents state no status codes"],
    );
    refuses(
        path,
        "info:",
        "security: [{ basik: [] }]\ninfo:",
        &["security scheme", "basik"],
    );
    refuses(
        path,
        "schemas/flow.yaml",
        "schemas/flew.yaml",
        &["flew.yaml"],
    );
}

#[test]
fn rules() {
    let path = "flow/rules/flows.yaml";
    refuses(
        path,
        "flow/flow/draft",
        "^flow/flow/sid",
        &["is taken by flow/schemas/flow.yaml"],
    );
    refuses(
        path,
        "flow/flow/draft",
        "^chat/flow/draft",
        &["folder of flow"],
    );
    refuses(
        path,
        "flow/flow/draft",
        "^flow/Flow_draft",
        &["expected a path in kebab case"],
    );
    refuses(
        path,
        "{ scenario: {} }",
        "{ ^scenaro: {} }",
        &["did you mean `scenario`?"],
    );
    refuses(
        path,
        "kind: flow/flow,",
        "kind: ^flow/flaw,",
        &["did you mean `flow/flow`?"],
    );
    refuses(
        path,
        "[/status]",
        "[^/state]",
        &["`/state` does not resolve", "did you mean `status`?"],
    );
    refuses(
        path,
        "[/status]",
        "[^status]",
        &["invalid JSON Pointer `status`"],
    );
    let ordered = |what: &str| format!("check: {{ {what} }}");
    let same = "check: { immutable: { kind: flow/flow, key: /sid, fields: [/status] } }";
    let wrong = "order: { operation: ^fetch-flov, at: /x, direction: ascending }";
    refuses(
        path,
        same,
        &ordered(wrong),
        &["operation `fetch-flov`", "did you mean"],
    );
    // A former name of a predicate is still accepted.
    let wrong = "default: { operations: [fetch-flow], parameter: ^Syd, at: /sid, value: 1 }";
    refuses(
        path,
        same,
        &ordered(wrong),
        &["parameter of fetch-flow `Syd`", "did you mean `Sid`?"],
    );
}

#[test]
fn open_points() {
    let path = "flow/open-points.yaml";
    refuses(
        path,
        "flow/open/delete",
        "^flow/delete",
        &["invalid id `flow/delete`"],
    );
    refuses(
        path,
        "operation: fetch-flow",
        "operation: ^fetch",
        &["operation `fetch`"],
    );
    refuses(
        path,
        "aspect: status",
        "aspect: ^statas",
        &["did you mean `status`?"],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of mistakes")]
fn steps() {
    let path = "flow/scenarios/flows.yaml";
    refuses(
        path,
        "- wait: 2s",
        "- wait: 2s\n        ^use: a-flow",
        &["2 verbs", "wait, use"],
    );
    refuses(path, "- wait: 2s", "- ^setup: true", &["without a verb"]);
    refuses(path, "wait: 2s", "wait: ^2 s", &["invalid duration `2 s`"]);
    refuses(
        path,
        "wait: 2s",
        "wait: 2s\n        ^walk: true",
        &["invalid key `walk` of `wait`", "it belongs to call"],
    );
    refuses(
        path,
        "- wait: 2s",
        "- walk: true\n        ^wait: 2s",
        &["invalid key `walk` of `wait`"],
    );
    refuses(
        path,
        "wait: 2s",
        "wait: 2s\n        ^setupp: true",
        &["unknown key", "did you mean `setup`?"],
    );
    let rejected = "rejected: flow/fetch-flow/unknown";
    refuses(
        path,
        rejected,
        &format!("either: true\n        {rejected}"),
        &[
            "only one of `accepted`, `rejected` and `either`",
            "accepted unless said",
        ],
    );
    refuses(
        path,
        rejected,
        "unless: { at: /sid, equals: x }",
        &["`unless` goes with `rejected` alone"],
    );
    refuses(
        path,
        "equals: draft",
        "equals: draft, at-least: 1",
        &["2 comparisons"],
    );
    refuses(path, ", equals: draft", "", &["0 comparisons"]);
    refuses(
        path,
        "equals: draft",
        "matches: ^\"(\"",
        &["regular expression"],
    );
    refuses(
        path,
        "equals: draft",
        "unlike: ^\"(\"",
        &["regular expression"],
    );
    refuses(
        path,
        "rule: flow/flow/draft",
        "rule: ^flow/flow/darft",
        &["did you mean"],
    );
    refuses(
        path,
        "rule: flow/flow/draft",
        "rule: ^flow/flow/sid",
        &["is not a rule of scenarios"],
    );
    refuses(
        path,
        "rejected: flow",
        "rejected: ^flaw",
        &["there is no rule"],
    );
    refuses(
        path,
        "- use: a-flow",
        "- use: ^a-flaw",
        &["group", "did you mean `a-flow`?"],
    );
    refuses(
        path,
        "hook: create_flow",
        "hook: ^creat_flow",
        &["did you mean `create_flow`?"],
    );
    refuses(
        path,
        "friendly_name:",
        "^friendly:",
        &["argument of create_flow"],
    );
    refuses(
        path,
        "with: { name: \"",
        "with: { ^nama: \"",
        &["parameter of the group"],
    );
    refuses(
        path,
        "with: { Sid: FW00",
        "with: { ^Side: FW00",
        &["did you mean `Sid`?"],
    );
    refuses(
        path,
        "with: { Sid: FW00 }",
        "with: {}",
        &["path parameter `Sid` is missing"],
    );
    refuses(
        path,
        "call: fetch-flow",
        "call: ^fetch-floww",
        &["did you mean `fetch-flow`?"],
    );
    refuses(path, "wait: 2s", "await: ^calls", &["listening address"]);
    refuses(
        path,
        "wait: 2s",
        "listen: x\n        judge: ^flow/flo",
        &["did you mean `flow/flow`?"],
    );
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
fn names_in_texts() {
    let path = "flow/scenarios/flows.yaml";
    refuses(
        path,
        "\"${with.name}\"",
        "^\"${with.nam}\"",
        &["did you mean `name`?"],
    );
    refuses(
        path,
        "\"${matrix.word}\"",
        "^\"${matrix.wort}\"",
        &["did you mean `word`?"],
    );
    refuses(
        path,
        "\"${matrix.word}\"",
        "y",
        &["the matrix `word` is never used"],
    );
    refuses(
        path,
        "Sid: FW00",
        "Sid: ^\"${mad.sid}\"",
        &["did you mean `made`?"],
    );
    refuses(
        path,
        "Sid: FW00",
        "Sid: ^\"${target.sid}\"",
        &["a service and a key"],
    );
    refuses(
        path,
        "Sid: FW00",
        "Sid: ^\"${target.flaw.sid}\"",
        &["did you mean `flow`?"],
    );
    refuses(
        path,
        "Sid: FW00",
        "Sid: ^\"${made.sid\"",
        &["without its `}`"],
    );
    refuses(
        path,
        "rejected:",
        "capture: ^again\n        rejected:",
        &["`again` is never used"],
    );
}

#[test]
fn scenarios_as_a_whole() {
    let path = "flow/scenarios/flows.yaml";
    let accepted =
        "      - call: fetch-flow\n        with: { Sid: \"${made.flow_sid}\" }\n        expect";
    let refused = "      - call: fetch-flow\n        either: true\n        with: { Sid: \"${made.flow_sid}\" }\n        expect";
    refuses(path, accepted, refused, &["has no accepted call"]);
    refuses(
        path,
        "  fetch-flow:\n    setup: [{ use: a-flow }]\n    with: { Sid: \"${made.flow_sid}\" }\nsc",
        "  ^fetch-flow:\n    setup: [{ use: a-flow }]\n    optional: { Sid: \"${made.flow_sid}\" }\nsc",
        &[
            "the path parameter `Sid` is missing",
            "give `Sid` under `with`",
        ],
    );
    refuses(
        path,
        "scenarios:",
        "    except: { without-Side: ^x }\nscenarios:",
        &["no case `without-Side`"],
    );
    refuses(
        path,
        "  fetch-flow:\n    setup",
        "  ^fetch-flaw:\n    setup",
        &["did you mean `fetch-flow`?"],
    );
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

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_make_it_panic(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        file in 0_usize..6,
        at in 0_usize..2_000,
        put in "[a-z:{}\\[\\]\\-\"$ \n/]{0,6}",
    ) {
        let mut broken = files();
        let text = &mut broken[file].1;
        let at = at % text.len();
        text.replace_range(at..at, &put);
        let _ = load(&broken);
        let files = [("flow/rules/x.yaml".to_owned(), bytes)];
        let _ = Rulebook::from_files(predicates(), files);
    }
}
