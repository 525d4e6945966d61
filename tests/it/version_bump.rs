//! A version bump as a user does it: create the version, edit it, see what breaks and which fixtures and scenarios are
//! affected, and declare it.

use crate::program::{Folder, copy_of};
use conformant_schema::Schemas;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

const VERSION: &str = "specs/events/MessageSent/5.yaml";

fn edit(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).expect("it is there");
    assert!(text.contains(from), "{} without {from:?}", path.display());
    std::fs::write(path, text.replacen(from, to, 1)).expect("it can be written");
}

/// One more field, one enumerated value less.
fn bumped(folder: &Folder) {
    copy_of(&["specs", "fixtures"], folder);
    folder.run(0, "events new MessageSent --specs specs");
    let carrier = "  carrier:\n    type: [string, \"null\"]\n    description: Carrier that took it.\n    \
                   x-source: { section: Message event payload fields, lines: [21] }\n  downstream_id:";
    edit(&folder.join(VERSION), "  downstream_id:", carrier);
    let (more, less) = ("[sms, whatsapp, rcs, null]", "[sms, whatsapp, null]");
    edit(&folder.join(VERSION), more, less);
}

#[test]
fn an_invented_version_is_classified_with_affected_fixtures_and_scenarios() {
    let folder = Folder::new();
    bumped(&folder);
    let diff = "diff --specs specs --fixtures fixtures --report json=diff.json MessageSent/4 MessageSent/5";
    let (out, _) = folder.run(1, diff);
    let json: serde_json::Value = folder.json("diff.json");
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

    // Old fixtures with the removed value fail.
    let verify = "fixtures verify fixtures --specs specs --against";
    let (out, _) = folder.run(1, &format!("{verify} MessageSent/5"));
    let failing: Vec<&str> = out.lines().filter(|l| l.contains(" at `")).collect();
    assert!(!failing.is_empty(), "{out}");
    for line in failing {
        assert!(
            line.ends_with("events/message-sent/from/channel at `/from/channel`"),
            "{line}"
        );
    }

    // Payloads that are not checked are counted.
    let recorded = folder.join("recorded");
    std::fs::create_dir(&recorded).expect("it can be made");
    let sdk = "diff --specs specs MessageSent/4 MessageSent/5 --sdk recorded";
    let (_, err) = folder.run(1, sdk);
    assert!(
        err.contains("warning: --sdk recorded: 0 payloads checked\n"),
        "{err}"
    );
    std::fs::write(recorded.join("a.json"), "{").expect("it can be written");
    std::fs::write(recorded.join("b.ndjson"), "1\n\n2\n").expect("it can be written");
    let (_, err) = folder.run(1, sdk);
    let skipped = "2 of no changed type or invalid before; 1 not JSON, such as a.json";
    assert!(
        err.contains(&format!("0 payloads checked; skipped: {skipped}\n")),
        "{err}"
    );

    // Several versions are in use: each has its own result.
    let (out, err) = folder.run(
        1,
        &format!("{verify} MessageSent/5 --against MessageSent/4"),
    );
    assert!(
        out.contains(" fail against events/MessageSent/5\n"),
        "{out}"
    );
    assert!(
        err.contains("nothing was judged against events/MessageSent/4"),
        "{err}"
    );
    let (out, _) = folder.run(4, &format!("{verify} MessageSent/4"));
    assert_eq!(out, "");

    // With declarations both pass; a stale declaration fails.
    let declared = |code: i32, ids: &[&str]| {
        let mut text = "changes:\n".to_owned();
        for id in ids {
            text += &format!("  - {{ id: {id}, reason: agreed with all consumers }}\n");
        }
        folder.write("declared.yaml", text);
        let line = format!("{diff} --report text=- --declare declared.yaml");
        folder.run(code, &line).0
    };
    declared(0, &[field, value]);
    let out = declared(
        1,
        &[field, value, "events/message-sent/5/gone/property-removed"],
    );
    let last = out.lines().last().unwrap_or_default();
    assert!(last.ends_with(", 1 stale"), "{last}");
}

#[test]
fn rules_contain_the_event_and_findings_the_version() {
    let folder = Folder::new();
    bumped(&folder);
    folder.write("sent.json", "{\"attempt\": 1}");
    for version in ["4", "5"] {
        let kind = format!("events/MessageSent/{version}");
        let (out, err) = folder.run(1, &format!("check sent.json --specs specs --as {kind}"));
        assert!(out.contains("events/message-sent/attempt"), "{out}{err}");
        let by = format!("(MessageSent version {version})");
        let words: Vec<&str> = out.split_whitespace().collect();
        assert!(words.join(" ").contains(&by), "{out}{err}");
    }
}

/// Makes the folder a repository with one revision.
fn commit(folder: &Path) {
    let steps: [&[&str]; 3] = [
        &["init", "--quiet"],
        &["add", "--all"],
        &["commit", "--quiet", "--message", "as it was"],
    ];
    for step in steps {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"]);
        let status = git.args(step).current_dir(folder).status();
        assert!(status.expect("git is installed").success(), "{step:?}");
    }
}

#[test]
fn since_a_revision_only_changed_scenarios_run() {
    let folder = Folder::new();
    copy_of(&["specs"], &folder);
    commit(&folder);
    let since = "run --specs specs --since HEAD --report json=run.json --prove off";
    let (_, err) = folder.run(4, since);
    assert!(
        err.contains("no selected scenario has changed since HEAD"),
        "{err}"
    );

    let schema = folder.join("specs/flow/schemas/step.yaml");
    edit(
        &schema,
        "  name:\n    type: string",
        "  name:\n    type: integer",
    );
    folder.run(1, since);
    let record: Value = folder.json("run.json");
    let executed: Vec<&str> = record["scenarios"]
        .as_array()
        .expect("scenarios are listed")
        .iter()
        .filter_map(|scenario| scenario["id"].as_str())
        .collect();
    assert!(
        executed.len() > 2 && executed.iter().all(|id| id.starts_with("flow/")),
        "{executed:?}"
    );

    // Only recorded responses with a step break.
    let committed = |kind: &str| -> Value {
        let path = crate::program::root().join(format!("fixtures/flow/{kind}.ndjson"));
        let lines = std::fs::read_to_string(path).expect("it is committed");
        let line = lines.lines().next().expect("it holds a document");
        serde_json::from_str(line).expect("one document per line")
    };
    let entries: Vec<Value> = ["flow", "execution", "step"]
        .map(committed)
        .iter()
        .map(|shown| {
            json!({
                "startedDateTime": "2026-01-02T03:04:05Z", "time": 1, "cache": {}, "timings": { "send": 0, "wait": 1, "receive": 0 },
                "request": { "method": "GET", "url": shown["url"], "httpVersion": "HTTP/1.1", "headers": [], "queryString": [], "cookies": [], "headersSize": -1, "bodySize": 0 },
                "response": {
                    "status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1", "headers": [], "cookies": [], "redirectURL": "", "headersSize": -1, "bodySize": -1,
                    "content": { "size": -1, "mimeType": "application/json", "text": shown.to_string() },
                },
            })
        })
        .collect();
    let recording = json!({ "log": { "version": "1.2", "creator": { "name": "t", "version": "1" }, "entries": entries } });
    folder.write("sdk/traffic.har", recording.to_string());
    let (out, _) = folder.run(1, "diff HEAD specs --sdk sdk");
    let broken: Vec<&str> = out.lines().filter(|l| l.contains("traffic.har")).collect();
    assert_eq!(broken.len(), 1, "{out}");
    assert!(
        broken[0].contains("traffic.har, entry 3: flow/step/name at `/name`"),
        "{broken:?}"
    );
}

#[test]
fn the_old_version_fails_after_the_event_type_has_moved() {
    let folder = Folder::new();
    bumped(&folder);
    let asyncapi = folder.join("specs/events/asyncapi.yaml");
    edit(&asyncapi, "MessageSent/4.yaml", "MessageSent/5.yaml");
    let line = "run --specs specs --filter events/bulk-send/delivered* --report json=run.json";
    let (out, _) = folder.run(1, line);
    let is_broken = |rule: &str| {
        let heading = format!("  {rule} (must");
        out.lines().any(|line| line.starts_with(&heading))
    };
    assert!(is_broken("events/schema-address"), "{out}");
    // It sends valid data for the version that it announces.
    assert!(!is_broken("events/message-sent/from"), "{out}");
    // Old fixtures stay valid for their version.
    folder.run(0, "fixtures verify fixtures --specs specs");
}

#[test]
fn the_payloads_of_a_team_that_a_bump_breaks_are_listed() {
    let folder = Folder::new();
    bumped(&folder);
    let committed = crate::program::root().join("fixtures/events/MessageSent/4.ndjson");
    let lines = std::fs::read_to_string(committed).expect("it is committed");
    // By path, by content, and some of no type.
    folder.write("sdk/events/MessageSent/4.ndjson", &lines);
    let with_value = lines
        .lines()
        .find(|line| line.contains("\"channel\":\"rcs\""));
    let with_value = with_value.expect("a fixture shows the value");
    folder.write("sdk/recorded/one.json", with_value);
    folder.write("sdk/recorded/other.json", "{\"a\": 1}");
    let reports = "--report json=diff.json --report changelog=-";
    let line = format!("diff --specs specs --sdk sdk {reports} MessageSent/4 MessageSent/5");
    let (out, _) = folder.run(1, &line);
    assert!(
        out.contains("## Breaks services that respond or send events"),
        "{out}"
    );
    assert!(out.contains("was valid and is now invalid"), "{out}");
    let json: serde_json::Value = folder.json("diff.json");
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

/// An edit of `edits.yaml`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    from: String,
    to: String,
    /// Classes of the expected changes, by the end of their ids.
    changes: BTreeMap<String, Value>,
    /// Place of a witness in an event.
    place: String,
}

#[test]
fn each_of_ten_edits_is_reported_with_a_witness() {
    let folder = Folder::new();
    copy_of(&["specs"], &folder);
    folder.run(0, "events new MessageSent --specs specs");
    let edits = include_str!("../edits.yaml");
    let edits: Vec<Edit> = serde_saphyr::from_str(edits).expect("a list of edits");
    assert_eq!(edits.len(), 10);
    for one in &edits {
        edit(&folder.join(VERSION), &one.from, &one.to);
    }
    let diff = "diff --specs specs --report json=diff.json MessageSent/4 MessageSent/5";
    let (out, _) = folder.run(1, diff);
    let diff: Value = folder.json("diff.json");
    let mut changes: BTreeMap<&str, &Value> = diff["changes"]
        .as_array()
        .expect("changes are listed")
        .iter()
        .map(|change| (change["id"].as_str().expect("an id"), change))
        .collect();
    let version = |number: u32| -> Value {
        let text = folder.read(&format!("specs/events/MessageSent/{number}.yaml"));
        serde_saphyr::from_str(&text).expect("it is YAML")
    };
    let (before, after) = (version(4), version(5));
    let schemas = Schemas::default();
    for Edit {
        changes: due,
        place,
        ..
    } in &edits
    {
        for (id, classes) in due {
            let id = format!("events/message-sent/5/{id}");
            let change = changes.remove(id.as_str());
            let change = change.unwrap_or_else(|| panic!("{id} is not reported: {out}"));
            assert_eq!(change["class"], *classes, "{id}");
            let witnesses = change["witnesses"].as_array().expect("a list");
            assert!(!witnesses.is_empty(), "{id} has no witness");
            for witness in witnesses {
                let value = witness["value"].as_str().expect("a text");
                let value: Value = serde_json::from_str(value).expect("a whole value");
                let levels = place.split('/').skip(1).collect::<Vec<_>>();
                let mut event = levels
                    .into_iter()
                    .rev()
                    .fold(value, |inside, name| json!({ name: inside }));
                if place.starts_with("/to/") {
                    // Results of another edit.
                    event["to"]["address"] = Value::Null;
                }
                let is = (
                    schemas.fits("before", &before, &event),
                    schemas.fits("after", &after, &event),
                );
                let says = [&witness["was_right"], &witness["is_right"]];
                assert_eq!(says, [&json!(is.0), &json!(is.1)], "{id}: {event}");
            }
        }
    }
    assert!(changes.is_empty(), "without an edit: {:?}", changes.keys());
}

#[test]
fn the_matrix_of_versions_is_a_table_and_a_page() {
    let folder = Folder::new();
    bumped(&folder);
    let reports = "--report text=- --report html=versions.html";
    let line = format!("diff --specs specs --matrix MessageSent {reports}");
    let (out, _) = folder.run(0, &line);
    let page = folder.read("versions.html");
    let mut reasons = out
        .lines()
        .filter(|line| line.contains(" does not read "))
        .peekable();
    assert!(reasons.peek().is_some(), "{out}");
    for reason in reasons {
        let (versions, _) = reason.split_once(':').expect("the reason follows");
        assert!(page.contains(versions), "{reason}: {page}");
    }
    for part in [
        "<title>Versions of ",
        "writes 5</th>",
        "reads 4</th>",
        "tag fail\">no<",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let line = "diff --specs specs MessageSent/4 MessageSent/5 --report html=-";
    let (_, err) = folder.run(2, line);
    assert!(err.contains("is not available here"), "{err}");
}

#[test]
fn a_version_is_released_if_it_has_its_level() {
    const LOCK: &str = "specs/events/released.lock";
    let folder = Folder::new();
    bumped(&folder);
    let in_use = folder.join("specs/events/asyncapi.yaml");
    let (out, _) = folder.run(1, "events check --specs specs");
    let note = "MessageSent/5 is not in use: events/asyncapi.yaml does not name it";
    assert!(out.contains(note), "{out}");
    edit(&in_use, "MessageSent/4", "MessageSent/5");
    folder.run(1, "events check --specs specs --release");
    assert!(!folder.read(LOCK).contains("MessageSent/5"));
    let last = folder.read("specs/events/MessageSent/4.yaml");
    folder.write(VERSION, last);
    folder.run(1, "events check --specs specs");
    folder.run(0, "events check --specs specs --release");
    assert!(folder.read(LOCK).contains("MessageSent/5"));
    folder.run(0, "events check --specs specs");
}
