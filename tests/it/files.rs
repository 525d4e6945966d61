//! `check` of files that are not what they should be: what is left out or cannot be judged is named, and CI notices it.

use super::program::Folder;

const SENT: &str = r#"{"type":"com.svc.comms-api.message.sent","data":{"attempt":"1"}}"#;

#[test]
fn unreadable_lines_break_no_rule_and_exit_2() {
    let here = Folder::new();
    here.write("good.ndjson", "{\"attempt\":\"1\"}\n{oops\n");
    here.write("bad.ndjson", "{\"attempt\":1}\n{oops}\n");
    here.write("pretty.ndjson", "{\n  \"attempt\": \"1\"\n}\n");
    let check = |code, file| {
        let line = format!("check {file} --as events/MessageSent/4 --report json=r.json");
        let (out, err) = here.run(code, &line);
        assert!(err.contains(": not a readable document: not JSON"), "{err}");
        let record: serde_json::Value =
            serde_json::from_str(&here.read("r.json")).expect("it is JSON");
        assert_eq!(record["complete"], false);
        (out, err, record)
    };
    let (out, _, record) = check(2, "good.ndjson");
    assert!(out.contains("a line cannot be read"), "{out}");
    assert_eq!(record["findings"], serde_json::json!([]));
    assert_eq!(record["archive"]["unreadable"], 1);
    // A broken rule decides.
    check(1, "bad.ndjson");
    let (_, err, _) = check(2, "pretty.ndjson");
    assert!(err.contains("as `jq -c . FILE` writes them"), "{err}");
    here.write("events.ndjson", format!("{SENT}\nnonsense\n"));
    here.run(2, "check events.ndjson --as events");
}

#[test]
fn an_event_type_that_may_be_a_mistake_is_named_and_fails_with_strict() {
    let here = Folder::new();
    let wrong = SENT.replace("sent", "sennt");
    let other = SENT.replace("com.svc.comms-api.message.sent", "org.example.made");
    here.write("e.ndjson", format!("{SENT}\n{wrong}\n{wrong}\n{other}\n"));
    let (out, err) = here.run(0, "check e.ndjson --as events");
    assert!(
        err.contains(
            "WARN e.ndjson: line 2: unknown event type `com.svc.comms-api.message.sennt` (2 events, not judged); did you \
             mean `com.svc.comms-api.message.sent`?"
        ),
        "{err}"
    );
    let others =
        "1 event of other types, not judged, such as `org.example.made` (e.ndjson: line 4)";
    assert!(err.contains(others), "{err}");
    assert!(out.contains("passed"), "{out}");
    let (out, _) = here.run(4, "check e.ndjson --as events --strict");
    assert!(out.contains("not concluded (exit 4)"), "{out}");
    // Types of another form do not fail.
    here.write("o.ndjson", format!("{SENT}\n{other}\n"));
    here.run(0, "check o.ndjson --as events --strict");
    let bare = r#"{"type":"com.svc.comms-api.message.sent"}"#;
    here.write("s.ndjson", format!("{SENT}\n{bare}\n{bare}\n"));
    let (_, err) = here.run(4, "check s.ndjson --as events");
    assert!(err.contains("2 of 3 entries contain no event"), "{err}");
    here.write("n.ndjson", format!("{other}\n"));
    let (_, err) = here.run(4, "check n.ndjson --as events");
    assert!(
        err.contains("no event is of a type that the documents describe"),
        "{err}"
    );
}

#[test]
fn files_of_a_folder_that_are_not_read_are_named() {
    let here = Folder::new();
    let (good, bad) = ("{\"attempt\":\"1\"}\n", "{\"attempt\":1}\n");
    here.write("all/a.ndjson", good);
    here.write("all/b.log", bad);
    here.write("all/c.ndjson.bz2", bad);
    let (out, err) = here.run(0, "check all --as events/MessageSent/4");
    assert!(
        err.contains(
            "WARN 2 files not read, because of the name or as a link: all/b.log, all/c.ndjson.bz2;"
        ),
        "{err}"
    );
    assert!(err.contains("read 1 document in 1 file"), "{err}");
    assert!(out.contains("files       1 pass"), "{out}");
    here.write("all/D.JSON", bad);
    here.run(1, "check all --as events/MessageSent/4");
}

#[test]
fn a_document_of_another_type_is_recognized() {
    let here = Folder::new();
    here.write("page.json", r#"{"flows":[],"meta":{"key":"flows"}}"#);
    let (_, err) = here.run(1, "check page.json --as flow/flow");
    let hint =
        "page.json looks like a document of another type: `--as 'flow/flow[]'` judges it as one";
    assert!(err.contains(hint), "{err}");
}

#[test]
fn a_recording_passes_no_service_by_its_requests() {
    let here = Folder::new();
    let recorded = |status: u16, text: Option<&str>| {
        let mut content = serde_json::json!({"size": 500, "mimeType": "application/json"});
        content["text"] = text.map_or(serde_json::Value::Null, serde_json::Value::from);
        let request = serde_json::json!({
            "method": "GET", "url": "http://flow.example/flow/v1/Flows", "httpVersion": "HTTP/1.1",
            "headers": [{"name": "Authorization", "value": "Basic YTpi"}], "queryString": [],
        });
        let response = serde_json::json!({"status": status, "headers": [], "content": content});
        let entry = serde_json::json!({"request": request, "response": response});
        serde_json::json!({"log": {"version": "1.2", "entries": [entry]}}).to_string()
    };
    here.write("broken.har", recorded(500, Some("broken")));
    here.write("empty.har", recorded(200, None));
    let nothing = "nothing judged of the service (exit 4): requests of clients keep 1 rule";
    for (file, is_complete) in [("broken.har", true), ("empty.har", false)] {
        let (out, _) = here.run(4, &format!("check {file} --as har --report json=r.json"));
        assert!(out.contains(nothing), "{out}");
        let record: serde_json::Value = here.json("r.json");
        assert_eq!(record["complete"], is_complete);
        let lacks = out.contains("a response was not recorded with its body");
        assert_eq!(lacks, !is_complete, "{out}");
    }
    // A request does not need its response.
    here.run(0, "check empty.har --as har --judge requests --strict");
    let line = "check broken.har --as har --judge requests --report json=r.json";
    let (out, _) = here.run(0, line);
    let all = "passed: 1 rule judged, all about requests of clients";
    assert!(out.contains(all), "{out}");
    assert!(here.run(0, "judge r.json").0.contains(all));
    let (_, err) = here.run(2, "check empty.har --as har --strict");
    let lacking = "the recording lacks the response or its body in 1 of 1 exchange";
    assert!(err.contains(lacking), "{err}");
}

#[test]
fn records_of_files_are_merged_as_one_check_reads_them() {
    let here = Folder::new();
    here.write("a.ndjson", "{\"attempt\":1}\n");
    here.write("b.ndjson", "{\"attempt\":\"1\",\"tags\":3}\n");
    let verdict = |line: &str| {
        let (out, _) = here.run(1, line);
        let verdict = out
            .lines()
            .find(|line| line.starts_with("not conformant: "));
        verdict.expect("a verdict").to_owned()
    };
    for file in ["a", "b"] {
        let kind = "--as events/MessageSent/4";
        verdict(&format!(
            "check {file}.ndjson {kind} --report json={file}.json"
        ));
    }
    let whole = verdict("check a.ndjson b.ndjson --as events/MessageSent/4");
    let merged = verdict("merge a.json b.json --report json=m.json");
    assert_eq!(merged, whole);
    let record: serde_json::Value = here.json("m.json");
    assert_eq!(record["defects"].as_array().map_or(0, Vec::len), 0);
}

/// What `token` builds is judged by the rules of `check`: a broken one is a note.
#[test]
fn a_token_that_services_may_refuse_has_a_note() {
    let here = Folder::new();
    for (flags, rules) in [
        ("", vec![]),
        ("--expires 16m", vec!["expiry-bound", "lifetime"]),
        ("--custom-user-id a@example.com", vec!["no-personal-data"]),
    ] {
        let (_, err) = here.run(0, &format!("token {flags}"));
        let notes = err
            .lines()
            .filter(|line| line.starts_with("a service may refuse"));
        let notes: Vec<&str> = notes.collect();
        assert_eq!(notes.len(), rules.len(), "{flags}: {err}");
        for (note, rule) in notes.iter().zip(rules) {
            let end = format!("(auth/registration-token/{rule})");
            assert!(note.ends_with(&end), "{note}");
        }
    }
    let (code, _) = here.run(0, "token --qr");
    here.write("code.txt", code);
    let (out, _) = here.run(1, "check code.txt --as token");
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        out.contains("judge the text of a QR code with --as qr"),
        "{out}"
    );
}
