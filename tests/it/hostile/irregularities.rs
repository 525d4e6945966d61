//! Irregularities of a response, and the received part of an incomplete one, are reported: in reports, on the console, in
//! kept evidence, and when that is judged again. The same for a failed set-up.
//!
//! For the verdict on each such response see `wire.rs`.

use crate::hostile::command::{Ended, conformant, reports, run};
use crate::hostile::pages::{answer, ok, only_page, page};
use crate::hostile::target::{Act, Target, keep, send};
use crate::program::{Folder, one_in};
use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::Path;

/// Maximum size of the kept part of an incomplete response.
const PARTIAL_BYTES_MAX: usize = 4096;

/// Message for a scenario whose set-up failed.
const NAMED: &str = "chat/lists/members: set-up failed: create-service was refused: status 400\n";

/// A run of one scenario against a target with that response, with its evidence; and the same judged again.
struct RunAndJudgement {
    ended: Ended,
    record: Value,
    html: String,
    /// The decompressed evidence.
    kept: String,
    again: Ended,
    again_record: Value,
}

fn run_and_judge(acts: Vec<Act>) -> RunAndJudgement {
    let target = Target::answering(move |_| acts.clone());
    let folder = Folder::with_limits();
    let address = format!("flow={}/flow", target.origin());
    let mut command = conformant(&folder);
    command.args(["run", "--filter", "flow/read-flows/happy", "--target"]);
    command.args([&address, "--keep-evidence", "kept", "--report"]);
    command.args(["html=run.html", "--report", "json=run.json"]);
    let ended = run(command.args(["--report", "junit=junit.xml"]));
    let record = reports(&folder, &ended).1;
    let mut command = conformant(&folder);
    command.args(["judge", "kept", "--report", "json=run.json"]);
    let again = run(command.args(["--report", "junit=junit.xml"]));
    let again_record = reports(&folder, &again).1;
    RunAndJudgement {
        html: folder.read("run.html"),
        kept: unpacked(&folder.join("kept")),
        ended,
        record,
        again,
        again_record,
    }
}

fn unpacked(path: &Path) -> String {
    let file = std::fs::File::open(path).expect("evidence was kept");
    let mut text = String::new();
    let read = MultiGzDecoder::new(file).read_to_string(&mut text);
    read.expect("it is text");
    text
}

/// A response with a page that breaks one rule, so that its exchange is shown, after this head.
fn broken_page(head: &str, rest: &str) -> Vec<Act> {
    let mut page = page("http://127.0.0.1", 0, None);
    page["flows"][0]["status"] = json!("neither");
    send(format!("{head}{page}{rest}"))
}

#[test]
fn irregularities_of_a_response_are_in_every_report() {
    let body = {
        let mut page = only_page("http://127.0.0.1");
        page["flows"][0]["status"] = json!("neither");
        page.to_string()
    };
    let json = "Content-Type: application/json\r\n";
    let length = body.len();
    let rows = vec![
        (
            "both Content-Length and Transfer-Encoding; read as chunked",
            format!(
                "HTTP/1.1 200 OK\r\n{json}Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
            ),
        ),
        (
            "a second response followed and was discarded",
            format!(
                "HTTP/1.1 200 OK\r\n{json}Content-Length: {length}\r\n\r\n{body}HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
            ),
        ),
        (
            "status 204 with a body",
            format!("HTTP/1.1 204 No Content\r\n{json}Content-Length: {length}\r\n\r\n{body}"),
        ),
        (
            "unrequested status 101",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n".to_owned(),
        ),
    ];
    for (odd, answer) in one_in(2, rows) {
        let outcome = run_and_judge(send(answer));
        assert_eq!(outcome.ended.exit, Some(1), "{odd}: {:?}", outcome.ended);
        let console = outcome
            .ended
            .stdout
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(console.contains(odd), "{odd}: {console}");
        let shown = &outcome.record["exchanges"][0]["oddities"];
        assert_eq!(*shown, json!([odd]), "{odd}");
        let observed = outcome.record["open_points"].to_string();
        assert!(
            observed.contains(&format!("read-flows: {odd}")),
            "{observed}"
        );
        assert!(outcome.html.contains(odd), "{odd}: not in the page");
        assert!(outcome.kept.contains(odd), "{odd}: not kept");
        assert_eq!(outcome.again.exit, Some(1), "{odd}: {:?}", outcome.again);
        assert_eq!(
            outcome.again_record["findings"][0]["rule"],
            outcome.record["findings"][0]["rule"]
        );
        let again = outcome.again_record["open_points"].to_string();
        assert!(again.contains(odd), "{odd}: not judged again");
    }
}

#[test]
fn the_received_part_of_an_incomplete_response_is_reported_and_kept() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n";
    let cause = ["timeout(body, ", "truncated"];
    for (n, hold) in [true, false].into_iter().enumerate() {
        let long = "y".repeat(2 * PARTIAL_BYTES_MAX);
        let mut acts = broken_page(head, &long);
        acts.extend(hold.then_some(Act::Hold));
        let outcome = run_and_judge(acts);
        assert_eq!(outcome.ended.exit, Some(3), "{:?}", outcome.ended);
        for (record, which) in [
            (&outcome.record, "run"),
            (&outcome.again_record, "judged again"),
        ] {
            let rules = record["rules"].as_array().expect("rules");
            let judged = |r: &&Value| r["verdict"] == "pass" || r["verdict"] == "fail";
            let judged: Vec<_> = rules.iter().filter(judged).map(|r| &r["id"]).collect();
            assert!(
                judged.is_empty(),
                "{which}: half an answer was judged: {judged:?}"
            );
            let reason = record["scenarios"][0]["reason"]
                .as_str()
                .unwrap_or_default();
            for word in [cause[n], "status 200", "began with {\"meta\":{\"page\""] {
                assert!(reason.contains(word), "{which}: no {word} in {reason}");
            }
        }
        let answered = scenario(&outcome.kept)["evidence"]["exchanges"][0]["outcome"].clone();
        let partial = answered.to_string();
        assert!(partial.contains("neither"), "{partial}");
        let ys = partial.matches('y').count();
        assert!(
            ys > 1_000 && ys <= PARTIAL_BYTES_MAX,
            "{ys} bytes were kept"
        );
    }
}

/// The first scenario of kept evidence.
fn scenario(kept: &str) -> Value {
    let line = kept.lines().nth(1).expect("a scenario");
    let line: Value = serde_json::from_str(line).expect("a line of JSON");
    line["story"].clone()
}

#[test]
fn a_failed_set_up_is_reported_with_its_cause() {
    let target = Target::answering(|asked| {
        let origin = format!("http://{}", asked.header("Host"));
        let answer = if asked.head.starts_with("GET /flow/") {
            ok(only_page(&origin).to_string())
        } else {
            answer(
                "400 Bad Request",
                "Content-Type: application/json\r\n",
                "{}",
            )
        };
        keep(answer)
    });
    let judged = |demand: &[&str]| {
        let folder = Folder::with_limits();
        let mut command = conformant(&folder);
        command.args([
            "run",
            "--filter",
            "flow/read-flows/happy",
            "--filter",
            "chat/lists/members",
        ]);
        for service in ["chat", "flow"] {
            command.args([
                "--target",
                &format!("{service}={}/{service}", target.origin()),
            ]);
        }
        run(command.args(demand))
    };
    let enough = judged(&["--min-judged", "50"]);
    assert_eq!(enough.exit, Some(0), "{enough:?}");
    assert!(enough.stderr.contains(NAMED), "{enough:?}");
    let less = judged(&[]);
    assert_eq!(less.exit, Some(4), "{less:?}");
    assert!(less.stderr.contains(NAMED), "{less:?}");
    let expected = "not concluded (exit 4): ";
    assert!(less.stdout.contains(expected), "{less:?}");
}
