//! Results that others can check: statements, `verify`, claims, and the table of several implementations.

use crate::program::{Folder, Served};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};

const FILTER: &str = "flow/fetch-flow/*";
const PASSED: &str = "flow/fetch-flow";
const OTHER_RULEBOOK: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// The number of altered bytes that are tried.
const CHANGES: usize = 100;

/// Runs some scenarios, and keeps the evidence and a statement.
fn judged(folder: &Folder, name: &str, seed: &str) {
    let selection = format!("--filter {FILTER} --seed {seed} --keep-evidence {name}.gz");
    let reports = format!("--report statement={name}.json --report json={name}.record.json");
    folder.run(0, &format!("run --reference -q {selection} {reports}"));
}

/// Runs it, which must end with that code; returns what it prints.
fn said(folder: &Folder, code: i32, line: &str) -> String {
    let (out, err) = folder.run(code, line);
    out + &err
}

#[test]
fn a_statement_is_verified_by_its_evidence() {
    let folder = Folder::new();
    judged(&folder, "run", "0");
    let line = format!("verify run.json --evidence run.gz --require {PASSED}");
    let said = said(&folder, 0, &line);
    assert!(said.starts_with("verified: PASSED · "), "{said}");
    // `judge` makes a statement from the same evidence.
    let (_, notes) = folder.run(0, "judge run.gz -q --report statement=again.json");
    assert!(notes.contains("judge makes no mutations"), "{notes}");
    let lists = |name| folder.json::<Value>(name)["predicate"].clone();
    assert_eq!(lists("again.json"), lists("run.json"));
    let record: Value = folder.json("run.record.json");
    let stated: Value = folder.json("run.json");
    assert_eq!(
        record["evidence"]["sha256"],
        stated["subject"][2]["digest"]["sha256"]
    );
}

#[test]
fn each_altered_byte_of_the_evidence_is_rejected() {
    let folder = Folder::new();
    judged(&folder, "run", "0");
    let evidence = std::fs::read(folder.join("run.gz")).expect("it was kept");
    let mut accepted = Vec::new();
    for change in 0..CHANGES {
        let at = change * (evidence.len() - 1) / (CHANGES - 1);
        let mut altered = evidence.clone();
        altered[at] ^= 1 << (change % 8);
        folder.write("altered.gz", altered);
        let (code, out, err) = folder.output("verify run.json --evidence altered.gz");
        let said = out + &err;
        if code != 1 || !said.contains("was altered: expected sha256 ") {
            accepted.push((at, code, said));
        }
    }
    assert!(accepted.is_empty(), "{accepted:?}");
}

#[test]
fn verdicts_that_differ_and_required_rules_that_did_not_pass_fail() {
    let folder = Folder::new();
    judged(&folder, "run", "0");
    let mut statement: Value = folder.json("run.json");
    statement["predicate"]["failedTests"] = json!([PASSED]);
    let passed = statement["predicate"]["passedTests"].as_array_mut();
    passed.expect("a list").retain(|rule| rule != PASSED);
    folder.write("other.json", statement.to_string());
    let verify = "verify other.json --evidence run.gz";
    let printed = said(&folder, 1, verify);
    let expected = format!("{PASSED}: expected failed (statement), got passed (evidence)");
    assert!(printed.contains(&expected), "{printed}");
    statement["subject"][0]["digest"]["sha256"] = json!("00");
    folder.write("other.json", statement.to_string());
    let printed = said(&folder, 1, verify);
    let expected = "another target: expected the digest 00";
    assert!(printed.contains(expected), "{printed}");
    for (required, exit, expected) in [
        (
            "flow/step/url",
            1,
            "expected passed (--require), got not judged",
        ),
        (
            "flow/execution*",
            1,
            "expected passed (--require), got not judged",
        ),
        ("flow/fetch-flaw", 2, "did you mean flow/fetch-flow?"),
    ] {
        let line = format!("verify run.json --evidence run.gz --require {required}");
        let printed = said(&folder, exit, &line);
        assert!(printed.contains(expected), "{printed}");
    }
}

#[test]
fn a_statement_that_was_altered_in_either_direction_is_rejected() {
    let folder = Folder::new();
    judged(&folder, "run", "0");
    let stated: Value = folder.json("run.json");
    let with = |key: &str, value: Value| {
        let mut altered = stated.clone();
        altered["predicate"][key] = value;
        folder.write("altered.json", altered.to_string());
        said(&folder, 1, "verify altered.json --evidence run.gz")
    };
    for worse in ["FAILED", "WARNED"] {
        let printed = with("result", json!(worse));
        let expected = format!("result: expected {worse} (statement), got PASSED (evidence)");
        assert!(printed.contains(&expected), "{printed}");
    }
    let passed = stated["predicate"]["passedTests"].as_array();
    let passed = passed.expect("a list");
    let printed = with("passedTests", json!(passed[1..]));
    let rule = passed[0].as_str().expect("an id");
    let expected = format!("{rule}: expected not judged (statement), got passed (evidence)");
    assert!(printed.contains(&expected), "{printed}");
}

#[test]
fn a_statement_that_names_another_target_or_exit_code_is_rejected() {
    let folder = Folder::new();
    let run = "run --reference --filter flow/read-flows/happy -q --keep-evidence run.gz";
    folder.run(0, &format!("{run} --report statement=run.json"));
    let printed = said(&folder, 0, "verify run.json --evidence run.gz");
    let first = printed.lines().next().unwrap_or_default();
    assert!(first.ends_with(" · target: built-in reference"), "{first}");
    let stated: Value = folder.json("run.json");
    let with = |pointer: &str, value: Value| {
        let mut altered = stated.clone();
        *altered.pointer_mut(pointer).expect("it is stated") = value;
        folder.write("altered.json", altered.to_string());
        said(&folder, 1, "verify altered.json --evidence run.gz")
    };
    let elsewhere = json!("https://api.production.example");
    let subject = |at: usize| stated["subject"][at].clone();
    for (pointer, value, expected) in [
        (
            "/subject/0/annotations/flow",
            elsewhere,
            "https://api.production.example",
        ),
        (
            "/subject/2/annotations/run",
            json!("00"),
            "expected evidence {\"run\":\"00\"} (statement)",
        ),
        (
            "/subject/1/annotations/exit",
            json!("1"),
            "result: expected PASSED (statement), got FAILED (evidence)",
        ),
        (
            "/subject",
            json!([subject(0), subject(1), subject(2), subject(0)]),
            "got none (evidence)",
        ),
    ] {
        let printed = with(pointer, value);
        assert!(printed.contains(expected), "{printed}");
    }
}

#[test]
fn a_failed_run_is_not_stated_to_have_ended_with_0() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--fault", "flow/meta-page-size-wrong"]);
    let run = "run --filter flow/read-flows/happy --prove off -q --keep-evidence run.gz";
    let line = format!("{run} {} --report statement=run.json", served.options());
    folder.run(1, &line);
    let printed = said(&folder, 0, "verify run.json --evidence run.gz");
    assert!(
        printed.contains(&format!(" · target: {}", served.url)),
        "{printed}"
    );
    let mut stated: Value = folder.json("run.json");
    stated["subject"][1]["annotations"]["exit"] = json!("0");
    folder.write("altered.json", stated.to_string());
    let printed = said(&folder, 1, "verify altered.json --evidence run.gz");
    let expected = "exit: expected 0 (statement), got a broken must-rule (evidence)";
    assert!(printed.contains(expected), "{printed}");
    // A header that names another address than the requests.
    let packed = std::fs::read(folder.join("run.gz")).expect("it was kept");
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(packed.as_slice())
        .read_to_string(&mut text)
        .expect("it is compressed text");
    let (head, rest) = text.split_once('\n').expect("a header");
    let head = head.replace(&served.url, "https://api.production.example");
    let mut forged = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    write!(forged, "{head}\n{rest}").expect("a buffer can be written");
    folder.write(
        "forged.gz",
        forged.finish().expect("a buffer can be written"),
    );
    folder.run(1, "judge forged.gz -q --report statement=forged.json");
    let printed = said(&folder, 1, "verify forged.json --evidence forged.gz");
    let expected = format!(
        "another target: the evidence has requests to {}",
        served.url
    );
    assert!(printed.contains(&expected), "{printed}");
}

#[test]
fn a_true_statement_about_a_failed_run_says_so_last() {
    let folder = Folder::new();
    // Each rule passes, but not enough is judged.
    let selection = format!("--filter {FILTER} --require-complete --keep-evidence run.gz");
    folder.run(
        4,
        &format!("run --reference -q {selection} --report statement=run.json"),
    );
    let (out, err) = folder.run(0, "verify run.json --evidence run.gz");
    assert!(out.starts_with("verified: FAILED · "), "{out}");
    let last = err.lines().last().unwrap_or_default();
    assert!(
        last.ends_with("it says that the run failed: the result is FAILED, not a pass"),
        "{err}"
    );
}

#[test]
fn inputs_that_do_not_belong_together_are_errors_of_usage() {
    let folder = Folder::new();
    judged(&folder, "run", "0");
    judged(&folder, "second", "5");
    let mut other: Value = folder.json("run.json");
    other["predicate"]["configuration"][0]["digest"]["sha256"] = json!(OTHER_RULEBOOK);
    folder.write("rulebook.json", other.to_string());
    folder.write("text.json", "no JSON");
    folder.write(
        "envelope.json",
        json!({"payloadType": "application/vnd.in-toto+json", "payload": "", "signatures": []})
            .to_string(),
    );
    for (statement, evidence, expected) in [
        (
            "rulebook.json",
            "run.gz",
            "a statement about another rulebook: expected the digest ",
        ),
        ("rulebook.json", "run.gz", OTHER_RULEBOOK),
        (
            "run.json",
            "second.gz",
            "the evidence of another run: expected a run with the digest ",
        ),
        ("run.json", "absent.gz", "absent.gz could not be read"),
        (
            "text.json",
            "run.gz",
            "text.json: expected an in-toto statement",
        ),
        ("envelope.json", "run.gz", "this is a signed envelope"),
        (
            "run.record.json",
            "run.gz",
            "expected _type `https://in-toto.io/Statement/v1`",
        ),
    ] {
        let line = format!("verify {statement} --evidence {evidence}");
        let printed = said(&folder, 2, &line);
        assert!(printed.contains(expected), "{printed}");
    }
    let (_, said) = folder.run(2, "run --reference --report statement=s.json");
    assert!(said.contains("add --keep-evidence FILE"), "{said}");
}

#[test]
fn a_claim_that_was_not_judged_fails_the_run() {
    let folder = Folder::new();
    let run_with = |code: i32, claims: &str, more: &str| {
        let text = format!("implementation: Example 1.0\nservices: {claims}\n");
        folder.write("claims.yaml", text);
        let options = "--races off --prove off --claims claims.yaml";
        said(
            &folder,
            code,
            &format!("run --reference -q {options} {more}"),
        )
    };
    let media = "--service media --report json=media.json";
    run_with(0, "{ media: [all] }", media);
    let said = run_with(1, "{ media: [], flow: [] }", media);
    let expected = "claimed, but not judged: flow: the run did not include this service";
    assert!(said.contains(expected), "{said}");
    let record: Value = folder.json("media.json");
    assert_eq!(record["claims"]["unjudged"][0]["service"], json!("flow"));
    let one = "--filter media/fetch-media/happy";
    let said = run_with(1, "{ media: [] }", one);
    assert!(said.contains("claimed, but not judged: media: "), "{said}");
    for (claims, more, expected) in [
        (
            "{ midia: [] }",
            one,
            "unknown service `midia`: did you mean `media`?",
        ),
        (
            "{ flow: [hook end_exekution] }",
            one,
            "did you mean `hook end_execution`?",
        ),
        (
            "{ flow: [] }",
            "--partition hash:1/2",
            "give --claims to `merge`",
        ),
        ("{}", one, "claims.yaml: `services` is empty"),
        (
            "{ media: [] }",
            "--keep-evidence /dev/null/run.gz",
            "--keep-evidence /dev/null/run.gz: ",
        ),
    ] {
        let said = run_with(2, claims, more);
        assert!(said.contains(expected), "{said}");
    }
    folder.write("empty.json", "");
    let (_, out) = folder.run(2, "merge empty.json empty.json");
    assert!(out.contains("empty.json: the file is empty"), "{out}");
}

#[test]
fn implementations_stand_side_by_side() {
    let folder = Folder::new();
    judged(&folder, "first", "0");
    judged(&folder, "second", "5");
    folder.run(0, "report first.record.json second.record.json --out table");
    let markdown = folder.read("table/matrix.md");
    assert!(
        markdown.contains("| `first.record` | `second.record` |"),
        "{markdown}"
    );
    assert!(
        markdown.contains("`flow: hook end_execution`"),
        "{markdown}"
    );
    let facts = ": `target built-in reference`, `--filter ";
    assert!(markdown.contains(facts), "{markdown}");
    let page = folder.read("table/index.html");
    assert!(page.contains("<th scope=\"col\">first.record</th>"));
    // Files of the same name, as of several jobs.
    let copy = folder.read("second.record.json");
    folder.write("other/first.record.json", copy);
    folder.run(
        0,
        "report first.record.json other/first.record.json --out jobs",
    );
    let markdown = folder.read("jobs/matrix.md");
    let names = "| `first.record.json` | `other/first.record.json` |";
    assert!(markdown.contains(names), "{markdown}");
    folder.run(2, "report first.gz --out table");
    // Its own files are replaced, those of others are not.
    let again = "report first.record.json --out table";
    folder.run(0, again);
    folder.write("table/index.html", "<p>mine</p>");
    let (_, err) = folder.run(2, again);
    assert!(
        err.contains("table/index.html was not written by conformant"),
        "{err}"
    );
    assert_eq!(folder.read("table/index.html"), "<p>mine</p>");
}

#[test]
fn parts_that_are_merged_and_kept_evidence_can_be_required_to_be_complete() {
    let folder = Folder::new();
    for part in [1, 2] {
        let selection = format!("--filter flow/read-flows/* --partition hash:{part}/2");
        let files = format!("--report json={part}.json --keep-evidence {part}.gz");
        folder.run(
            0,
            &format!("run --reference -q --prove off {selection} {files}"),
        );
    }
    for command in ["merge 1.json 2.json -q", "judge 1.gz -q"] {
        folder.run(0, &format!("{command} --min-judged 100"));
        let (_, err) = folder.run(4, &format!("{command} --require-complete"));
        assert!(
            err.contains("not judged although --require-complete"),
            "{err}"
        );
    }
}

#[test]
fn merged_parts_fail_as_the_whole_run_does() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--fault", "chat/updated-before-created"]);
    let waivers = |expires: &str| {
        folder.write(
            "waivers.yaml",
            format!(
                "waivers:\n  - {{ rule: media/media/not-edited, reason: known, expires: {expires} }}\n"
            ),
        );
    };
    let parts = |selection: &str, code: i32| {
        for part in [1, 2] {
            let line = format!(
                "run -q --prove off {selection} --partition hash:{part}/2 --report json={part}.json"
            );
            folder.run(code, &line);
        }
        folder.run(1, "merge 1.json 2.json -q")
    };
    let target = format!(
        "--target chat={0}/chat --hooks {0}/_control --service chat --seed 7 --names parts",
        served.url
    );
    let warnings = "--filter chat/create-*/happy --filter chat/fetch-*/happy --strict";
    parts(&format!("{target} {warnings}"), 1);

    let media = "--reference --service media --waivers waivers.yaml";
    waivers("2020-01-31");
    let (_, err) = parts(&format!("{media} --filter media/fetch-media/*"), 1);
    assert!(
        err.contains("the waiver of media/media/not-edited expired on 2020-01-31"),
        "{err}"
    );
    waivers("9999-01-31");
    let (_, err) = parts(media, 0);
    assert!(
        err.contains("the waiver of media/media/not-edited accepts no finding"),
        "{err}"
    );
}

/// A filter leaves out where a waiver may be needed, also when the run is judged again.
#[test]
fn an_unused_waiver_fails_no_filtered_run_that_is_judged_again() {
    let folder = Folder::new();
    folder.write(
        "waivers.yaml",
        "waivers:\n  - { rule: flow/flow/sid, reason: known, expires: 9999-01-31 }\n",
    );
    let run =
        "run --reference -q --prove off --filter flow/read-flows/happy --waivers waivers.yaml";
    let kept = "--report json=run.json --keep-evidence run.gz";
    folder.run(0, &format!("{run} {kept}"));
    for stored in ["run.json", "run.gz"] {
        folder.run(0, &format!("judge {stored} -q --waivers waivers.yaml"));
    }
}

/// The run is complete and breaks no rule, but a hook failed: what was judged is not all that was requested.
#[test]
fn a_stored_run_with_a_failed_hook_still_ends_with_3() {
    let folder = Folder::new();
    folder.run(
        0,
        "run -q --reference --prove off --filter flow/read-flows/happy --report json=run.json",
    );
    let record = folder.read("run.json");
    assert!(record.contains("\"exit\": 0"), "{record}");
    folder.write("run.json", record.replace("\"exit\": 0", "\"exit\": 3"));
    for command in ["judge run.json -q", "merge run.json -q"] {
        folder.run(3, command);
    }
}

#[test]
fn a_finding_of_kept_evidence_is_repeated_on_the_target_of_the_run() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--fault", "flow/meta-page-size-wrong"]);
    let line = format!(
        "run -q --prove off {} --filter flow/read-flows/happy --keep-evidence run.gz",
        served.options()
    );
    folder.run(1, &line);
    let (out, _) = folder.run(1, "judge run.gz");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (out, again) = (words(&out), words(&served.options()));
    let (_, repeated) = out.split_once("run again ").expect("a command");
    assert!(repeated.contains(&again), "{again} is missing in {out}");
}

#[test]
fn the_consequences_of_a_waived_defect_do_not_fail_the_run() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--fault", "chat/channel-unique-name-ignored"]);
    let line = format!(
        "run -q --prove off --target chat={0}/chat --hooks {0}/_control --filter chat/channels/*unique-name* --report json=run.json",
        served.url
    );
    folder.run(1, &line);
    folder.run(
        0,
        "baseline run.json --reason known --owner me --out waivers.yaml",
    );
    folder.run(0, &format!("{line} --waivers waivers.yaml"));
    let run = folder.json::<Value>("run.json");
    let mut rules = run["rules"].as_array().expect("a list").iter();
    let rule = rules.find(|rule| rule["id"] == "chat/channels/addressed-by-unique-name");
    let rule = rule.expect("a rule");
    let reason =
        "path parameter `ChannelSid` has no value, because an earlier answer has null there";
    assert_eq!(
        [&rule["verdict"], &rule["reason"]],
        ["inconclusive", reason]
    );
}
