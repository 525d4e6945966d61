//! Rules that are defined in the step that states them, in further scenarios of the embedded rulebook.

use conformant_judge::load::predicates;
use conformant_record::{Basis, Level};
use conformant_rulebook::{Problems, Rulebook};

fn load(expect: &str) -> Result<Rulebook, Problems> {
    let folder = tempfile::tempdir().expect("the disk is writable");
    let inside = folder.path().join("flow");
    std::fs::create_dir(&inside).expect("the disk is writable");
    let file = format!(
        "scenarios:\n  - id: flow/definitions/test\n    says: A test.\n    steps:\n      - call: read-flows\n{expect}"
    );
    std::fs::write(inside.join("definitions.yaml"), file).expect("the disk is writable");
    Rulebook::load_with(predicates(), None, &[folder.path().to_owned()])
}

#[test]
fn a_definition_in_a_step_is_a_rule() {
    let rulebook = load(
        "        accepted: { id: flow/definitions/accepted, source: { section: Endpoints, lines: [80] }, says: It is. }\n        \
         expect:\n          - id: flow/definitions/stated\n            level: should\n            basis: inferred\n            \
         source: { section: Endpoints, lines: [81, 82] }\n            says: A list.\n            at: /flows\n            at-least: 0\n          \
         - { rule: flow/definitions/stated, at: /flows, at-most: 9 }\n",
    )
    .unwrap_or_else(|problems| panic!("{problems}"));
    let rule = &rulebook.rules.get("flow/definitions/stated").unwrap();
    assert_eq!((rule.level, rule.basis), (Level::Should, Basis::Inferred));
    assert_eq!(rule.source.lines, [81, 82]);
    assert_eq!(rule.place, "flow/scenarios/definitions.yaml:8");
    assert!(
        rule.check()
            .is_some_and(conformant_rulebook::Check::is_scenario_rule)
    );
    let rule = &rulebook.rules.get("flow/definitions/accepted").unwrap();
    assert_eq!((rule.level, rule.basis), (Level::Must, Basis::Stated));
    let step = &rulebook.services["flow"].scenarios["flow/definitions/test"]
        .0
        .steps[0];
    assert_eq!(
        step.accepted().map(String::as_str),
        Some("flow/definitions/accepted")
    );
    assert!(
        step.expect()
            .iter()
            .all(|e| e.rule == "flow/definitions/stated")
    );
}

#[test]
fn a_bad_definition_is_refused() {
    for (expect, says) in [
        (
            "        expect: [{ rule: flow/definitions/x, says: X., at: /flows, at-least: 0 }]\n",
            "`expect` with `rule` and a definition",
        ),
        (
            "        expect: [{ id: flow/definitions/x, says: X., at: /flows, at-least: 0 }]\n",
            "the key `source` is missing",
        ),
        (
            "        accepted: { id: flow/definitions/x, source: { section: A, lines: [] }, says: X. }\n",
            "a source names lines",
        ),
        (
            "        accepted: { id: chat/definitions/x, source: { section: A, lines: [1] }, says: X. }\n",
            "is in the folder of flow",
        ),
        (
            "        expect: [{ id: flow/flow/sid, source: { section: A, lines: [1] }, says: X., at: /flows, at-least: 0 }]\n",
            "the rule id `flow/flow/sid` is taken",
        ),
    ] {
        let problems = load(expect).unwrap_err().to_string();
        assert!(problems.contains(says), "{problems}");
    }
}
