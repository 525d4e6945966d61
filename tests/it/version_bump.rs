//! A version bump from one end to the other, as whoever bumps it meets it: begin the version, edit
//! it, see what breaks whom, which fixtures and scenarios it touches, and what must be declared.

use crate::program::{copy_of, run};
use std::path::Path;

const VERSION: &str = "specs/events/MessageSent/5.yaml";

fn edit(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).expect("it is there");
    assert!(text.contains(from), "{} without {from:?}", path.display());
    std::fs::write(path, text.replacen(from, to, 1)).expect("it can be written");
}

/// One field more, one enumerated value less.
fn bumped(folder: &Path) {
    copy_of(&["specs", "fixtures"], folder);
    let (code, out, err) = run(
        folder,
        &["events", "new", "MessageSent", "--specs", "specs"],
    );
    assert_eq!(code, 0, "{out}{err}");
    let carrier = "  carrier:\n    type: [string, \"null\"]\n    description: Carrier that took it.\n    \
                   x-source: { section: Message event payload fields, lines: [21] }\n  downstream_id:";
    edit(&folder.join(VERSION), "  downstream_id:", carrier);
    let (more, less) = ("[sms, whatsapp, rcs, null]", "[sms, whatsapp, null]");
    edit(&folder.join(VERSION), more, less);
}

#[test]
fn a_made_up_version_is_classified_with_the_fixtures_and_scenarios_it_touches() {
    let folder = tempfile::tempdir().expect("there is room");
    bumped(folder.path());
    let diff = [
        "diff",
        "--specs",
        "specs",
        "--fixtures",
        "fixtures",
        "--report",
        "json=diff.json",
        "MessageSent/4",
        "MessageSent/5",
    ];
    let (code, out, err) = run(folder.path(), &diff);
    assert_eq!(code, 1, "{out}{err}");
    let json = std::fs::read(folder.path().join("diff.json")).expect("the report is written");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("it is JSON");
    let changes: Vec<(&str, &serde_json::Value)> = json["changes"]
        .as_array()
        .expect("changes are listed")
        .iter()
        .map(|change| (change["id"].as_str().unwrap_or_default(), &change["class"]))
        .collect();
    let field = "events/message-sent/5/carrier/property-added";
    let value = "events/message-sent/5/from/channel/rcs/enum-value-removed";
    assert_eq!(
        changes,
        [
            (field, &serde_json::json!(["breaking-for-consumers"])),
            (value, &serde_json::json!(["breaking-for-producers"])),
        ]
    );
    let listed = |key: &str| -> Vec<&str> {
        let names = json[key].as_array().into_iter().flatten();
        names.filter_map(serde_json::Value::as_str).collect()
    };
    let fixtures = listed("fixtures");
    assert!(!fixtures.is_empty(), "{out}");
    for fixture in fixtures {
        assert!(fixture.contains("events/MessageSent/4."), "{fixture}");
    }
    assert!(
        listed("scenarios")
            .iter()
            .all(|id| id.starts_with("events/"))
    );

    // Of yesterday's fixtures those fail that show the value which is gone.
    let (code, out, err) = run(
        folder.path(),
        &[
            "fixtures",
            "verify",
            "fixtures",
            "--specs",
            "specs",
            "--against",
            "MessageSent/5",
        ],
    );
    assert_eq!(code, 1, "{out}{err}");
    let failing: Vec<&str> = out.lines().filter(|l| l.contains(" at `")).collect();
    assert!(!failing.is_empty(), "{out}");
    for line in failing {
        assert!(
            line.ends_with("events/message-sent/5/from/channel at `/from/channel`"),
            "{line}"
        );
    }

    // Declared with a reason, both pass; a declaration that declares nothing does not.
    let declared = |ids: &[&str]| {
        let mut text = "changes:\n".to_owned();
        for id in ids {
            text += &format!("  - {{ id: {id}, reason: agreed with all consumers }}\n");
        }
        std::fs::write(folder.path().join("declared.yaml"), text).expect("there is room");
        let diff = [&diff[..], &["--declare", "declared.yaml"]].concat();
        run(folder.path(), &diff)
    };
    let (code, out, err) = declared(&[field, value]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = declared(&[field, value, "events/message-sent/5/gone/property-removed"]);
    assert_eq!(code, 1, "{out}{err}");
}

#[test]
fn whoever_still_sends_the_old_version_fails_once_the_event_type_has_moved() {
    let folder = tempfile::tempdir().expect("there is room");
    bumped(folder.path());
    let asyncapi = folder.path().join("specs/events/asyncapi.yaml");
    edit(&asyncapi, "MessageSent/4.yaml", "MessageSent/5.yaml");
    let run = |arguments: &[&str]| run(folder.path(), arguments);
    let (code, out, err) = run(&[
        "run",
        "--specs",
        "specs",
        "--filter",
        "events/bulk-send/delivered*",
        "--report",
        "json=run.json",
    ]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(
        out.contains("FAIL  events/message-sent/5/from/channel"),
        "{out}"
    );
    // The fixtures of the old version stay right for it.
    let (code, out, err) = run(&["fixtures", "verify", "fixtures", "--specs", "specs"]);
    assert_eq!(code, 0, "{out}{err}");
}

#[test]
fn the_payloads_of_a_team_that_a_bump_breaks_are_listed() {
    let folder = tempfile::tempdir().expect("there is room");
    bumped(folder.path());
    let sdk = folder.path().join("sdk");
    std::fs::create_dir_all(sdk.join("recorded")).expect("there is room");
    let committed = crate::program::root().join("fixtures/events/MessageSent/4.ndjson");
    let lines = std::fs::read_to_string(committed).expect("it is committed");
    // By path, by what they are, and some that are none.
    std::fs::create_dir_all(sdk.join("events/MessageSent")).expect("there is room");
    std::fs::write(sdk.join("events/MessageSent/4.ndjson"), &lines).expect("there is room");
    let with_value = lines
        .lines()
        .find(|line| line.contains("\"channel\":\"rcs\""));
    let with_value = with_value.expect("a fixture shows the value");
    std::fs::write(sdk.join("recorded/one.json"), with_value).expect("there is room");
    std::fs::write(sdk.join("recorded/other.json"), "{\"a\": 1}").expect("there is room");
    let diff = [
        "diff",
        "--specs",
        "specs",
        "--sdk",
        "sdk",
        "--report",
        "json=diff.json",
        "--report",
        "changelog=-",
        "MessageSent/4",
        "MessageSent/5",
    ];
    let (code, out, err) = run(folder.path(), &diff);
    assert_eq!(code, 1, "{out}{err}");
    assert!(
        out.contains("## Breaks who answers, and who sends events"),
        "{out}"
    );
    assert!(out.contains("was right and is wrong now"), "{out}");
    let json = std::fs::read(folder.path().join("diff.json")).expect("the report is written");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("it is JSON");
    let broken: Vec<&str> = json["broken"]
        .as_array()
        .expect("payloads are listed")
        .iter()
        .filter_map(serde_json::Value::as_str)
        .collect();
    let showing = lines.matches("\"from\"").count();
    assert!(
        broken.len() >= 2 && broken.len() <= showing + 1,
        "{broken:#?}"
    );
    assert!(
        broken
            .iter()
            .any(|one| one.starts_with("recorded/one.json: ")),
        "{broken:#?}"
    );
    assert!(
        broken.iter().all(|one| one.contains("at `/from/channel`")),
        "{broken:#?}"
    );
}
