//! Results that others can check: statements, `verify`, claims, and the table of several implementations.

use crate::program::run;
use serde_json::{Value, json};
use std::path::Path;

const FILTER: &str = "flow/fetch-flow/*";
const PASSED: &str = "flow/fetch-flow";
const OTHER_RULEBOOK: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// The number of altered bytes that are tried.
const CHANGES: usize = 100;

/// Runs some scenarios, and keeps the evidence and a statement.
fn judged(folder: &Path, name: &str, seed: &str) {
    let evidence = format!("{name}.gz");
    let statement = format!("statement={name}.json");
    let record = format!("json={name}.record.json");
    let mut words = vec![
        "run",
        "--reference",
        "-q",
        "--filter",
        FILTER,
        "--seed",
        seed,
    ];
    words.extend(["--keep-evidence", &evidence]);
    words.extend(["--report", &statement, "--report", &record]);
    let (code, out, err) = run(folder, &words);
    assert_eq!(code, 0, "{out}{err}");
}

fn verify(folder: &Path, words: &[&str]) -> (i32, String) {
    let all: Vec<&str> = ["verify"].iter().chain(words).copied().collect();
    let (code, out, err) = run(folder, &all);
    (code, out + &err)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("the temporary folder is writable")
}

fn read(folder: &Path, name: &str) -> Value {
    let bytes = std::fs::read(folder.join(name)).expect("it was written");
    serde_json::from_slice(&bytes).expect("it is JSON")
}

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) {
    std::fs::write(folder.join(name), text).expect("the folder is writable");
}

#[test]
fn a_statement_is_verified_by_its_evidence() {
    let folder = folder();
    let folder = folder.path();
    judged(folder, "run", "0");
    let words = ["run.json", "--evidence", "run.gz", "--require", PASSED];
    let (code, said) = verify(folder, &words);
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("verified: PASSED · "), "{said}");
    // `judge` makes a statement from the same evidence.
    let words = ["judge", "run.gz", "-q", "--report", "statement=again.json"];
    assert_eq!(run(folder, &words).0, 0);
    let lists = |name| read(folder, name)["predicate"].clone();
    assert_eq!(lists("again.json"), lists("run.json"));
    let record = read(folder, "run.record.json");
    let stated = read(folder, "run.json");
    assert_eq!(
        record["evidence"]["sha256"],
        stated["subject"][2]["digest"]["sha256"]
    );
}

#[test]
fn each_altered_byte_of_the_evidence_is_rejected() {
    let folder = folder();
    let folder = folder.path();
    judged(folder, "run", "0");
    let evidence = std::fs::read(folder.join("run.gz")).expect("it was kept");
    let mut accepted = Vec::new();
    for change in 0..CHANGES {
        let at = change * (evidence.len() - 1) / (CHANGES - 1);
        let mut altered = evidence.clone();
        altered[at] ^= 1 << (change % 8);
        write(folder, "altered.gz", altered);
        let (code, said) = verify(folder, &["run.json", "--evidence", "altered.gz"]);
        if code != 1 || !said.contains("was altered: expected sha256 ") {
            accepted.push((at, code, said));
        }
    }
    assert!(accepted.is_empty(), "{accepted:?}");
}

#[test]
fn verdicts_that_differ_and_required_rules_that_did_not_pass_fail() {
    let folder = folder();
    let folder = folder.path();
    judged(folder, "run", "0");
    let mut statement = read(folder, "run.json");
    statement["predicate"]["failedTests"] = json!([PASSED]);
    let passed = statement["predicate"]["passedTests"].as_array_mut();
    passed.expect("a list").retain(|rule| rule != PASSED);
    write(folder, "other.json", statement.to_string());
    let (code, said) = verify(folder, &["other.json", "--evidence", "run.gz"]);
    assert_eq!(code, 1, "{said}");
    let expected = format!("{PASSED}: expected failed (statement), got passed (evidence)");
    assert!(said.contains(&expected), "{said}");
    statement["subject"][0]["digest"]["sha256"] = json!("00");
    write(folder, "other.json", statement.to_string());
    let (code, said) = verify(folder, &["other.json", "--evidence", "run.gz"]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("another target: expected the digest 00"),
        "{said}"
    );
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
        let words = ["run.json", "--evidence", "run.gz", "--require", required];
        let (code, said) = verify(folder, &words);
        assert_eq!(code, exit, "{required}: {said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn inputs_that_do_not_belong_together_are_errors_of_usage() {
    let folder = folder();
    let folder = folder.path();
    judged(folder, "run", "0");
    judged(folder, "second", "5");
    let mut other = read(folder, "run.json");
    other["predicate"]["configuration"][0]["digest"]["sha256"] = json!(OTHER_RULEBOOK);
    write(folder, "rulebook.json", other.to_string());
    write(folder, "text.json", "no JSON");
    write(
        folder,
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
        let (code, said) = verify(folder, &[statement, "--evidence", evidence]);
        assert_eq!(code, 2, "{statement} {evidence}: {said}");
        assert!(said.contains(expected), "{said}");
    }
    let words = ["run", "--reference", "--report", "statement=s.json"];
    let (code, _, said) = run(folder, &words);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("add --keep-evidence FILE"), "{said}");
}

#[test]
fn a_claim_that_was_not_judged_fails_the_run() {
    let folder = folder();
    let folder = folder.path();
    let run_with = |claims: &str, more: &[&str]| {
        let text = format!("implementation: Example 1.0\nservices: {claims}\n");
        write(folder, "claims.yaml", text);
        let words = [
            "run",
            "--reference",
            "-q",
            "--races",
            "off",
            "--prove",
            "off",
        ];
        let words = words.iter().chain(&["--claims", "claims.yaml"]).chain(more);
        let words: Vec<&str> = words.copied().collect();
        let (code, out, err) = run(folder, &words);
        (code, out + &err)
    };
    let media = ["--service", "media", "--report", "json=media.json"];
    let (code, said) = run_with("{ media: [all] }", &media);
    assert_eq!(code, 0, "{said}");
    let (code, said) = run_with("{ media: [], flow: [] }", &media);
    assert_eq!(code, 1, "{said}");
    let expected = "claimed, but not judged: flow: the run did not include this service";
    assert!(said.contains(expected), "{said}");
    let record = read(folder, "media.json");
    assert_eq!(record["claims"]["unjudged"][0]["service"], json!("flow"));
    let one = ["--filter", "media/fetch-media/happy"];
    let (code, said) = run_with("{ media: [] }", &one);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("claimed, but not judged: media: "), "{said}");
    for (claims, more, expected) in [
        (
            "{ midia: [] }",
            &one[..],
            "unknown service `midia`: did you mean `media`?",
        ),
        (
            "{ flow: [hook end_exekution] }",
            &one,
            "did you mean `hook end_execution`?",
        ),
        (
            "{ flow: [] }",
            &["--partition", "hash:1/2"],
            "give --claims to `merge`",
        ),
    ] {
        let (code, said) = run_with(claims, more);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn implementations_stand_side_by_side() {
    let folder = folder();
    let folder = folder.path();
    judged(folder, "first", "0");
    judged(folder, "second", "5");
    let words = [
        "report",
        "first.record.json",
        "second.record.json",
        "--out",
        "table",
    ];
    let (code, out, err) = run(folder, &words);
    assert_eq!(code, 0, "{out}{err}");
    let markdown = std::fs::read_to_string(folder.join("table/matrix.md")).expect("it is there");
    assert!(
        markdown.contains("| `first.record` | `second.record` |"),
        "{markdown}"
    );
    assert!(
        markdown.contains("`flow: hook end_execution`"),
        "{markdown}"
    );
    let page = std::fs::read_to_string(folder.join("table/index.html")).expect("it is there");
    assert!(page.contains("<th scope=\"col\">first.record</th>"));
    let (code, _, said) = run(folder, &["report", "first.gz", "--out", "table"]);
    assert_eq!(code, 2, "{said}");
}
