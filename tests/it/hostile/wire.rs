//! Targets with invalid connections, heads and framing: one row each.

use crate::hostile::command::{Judged, judge};
use crate::hostile::pages::{answer, ok, only_page, page};
use crate::hostile::target::{Act, Target, keep, send};
use crate::program::{Folder, one_in};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The step's deadline in these runs and two seconds.
// Without optimization, and in parallel with other tests, the program takes most of it.
const SECONDS_MAX: f64 = if cfg!(debug_assertions) { 40.0 } else { 2.3 };
const PEAK_KIB_MAX: u64 = 128 * 1024;
/// Rows in parallel.
const HANDS: usize = 3;
const PAUSE: Duration = Duration::from_millis(25);

/// Expected result of a target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due {
    /// It cannot be judged: exit 3, with one of these causes.
    Cause(&'static [&'static str]),
    /// It breaks the contract: exit 1, and the report states how.
    Fails(&'static str),
    /// Its rate limit or gateway answers everything: exit 3, with the status.
    Unserved(&'static str),
    /// Unusual, but valid: exit 0.
    Fine,
}

/// Behavior of a target for one request.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) acts: Vec<Act>,
    pub(crate) due: Due,
}

pub(crate) fn row(name: &'static str, acts: Vec<Act>, due: Due) -> Row {
    Row { name, acts, due }
}

fn flood(start: impl AsRef<[u8]>, rest: impl AsRef<[u8]>) -> Vec<Act> {
    vec![
        Act::Send(start.as_ref().to_vec()),
        Act::Flood(rest.as_ref().to_vec()),
    ]
}

fn held(start: impl AsRef<[u8]>) -> Vec<Act> {
    vec![Act::Send(start.as_ref().to_vec()), Act::Hold]
}

fn drip(bytes: impl AsRef<[u8]>) -> Vec<Act> {
    vec![Act::Drip(bytes.as_ref().to_vec(), PAUSE)]
}

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
const UNTIL_CLOSE: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";

/// Everything that a target can do with a request for the list of flows.
#[expect(clippy::too_many_lines, reason = "a table of answers")]
fn rows() -> Vec<Row> {
    use Due::{Cause, Fails, Fine, Unserved};
    let body = only_page("http://127.0.0.1").to_string();
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let one_by_one: String = body.chars().map(|c| chunk(&c.to_string())).collect();
    let declared =
        |length: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
    let noise: Vec<u8> = (0..64_u8)
        .map(|n| n.wrapping_mul(89).wrapping_add(3))
        .collect();
    let coded = |coding: &str| answer("200 OK", &format!("Content-Encoding: {coding}\r\n"), &body);
    vec![
        // Connection and time.
        row("silent", vec![Act::Hold], Cause(&["timeout(first-byte)"])),
        row(
            "closes at once",
            vec![Act::Send(Vec::new())],
            Cause(&["empty-response"]),
        ),
        row("head drips", drip(ok(&body)), Cause(&["timeout(headers)"])),
        row(
            "head stops",
            held("HTTP/1.1 200 OK\r\nConte"),
            Cause(&["timeout(headers)"]),
        ),
        row(
            "body drips",
            [send(declared("9999")), drip("x".repeat(400))].concat(),
            Cause(&["timeout(body, "]),
        ),
        row(
            "half a body",
            held(declared("9999")),
            Cause(&["timeout(body, "]),
        ),
        row(
            "chunks stop",
            held(format!("{CHUNKED}{}", chunk(&body))),
            Cause(&["timeout(body, "]),
        ),
        row(
            "ends within the head",
            send("HTTP/1.1 200 OK\r\nConte"),
            Cause(&["truncated", "malformed-head"]),
        ),
        row(
            "ends within the body",
            send(declared("9999")),
            Cause(&["truncated"]),
        ),
        // Another protocol.
        row("ssh", send("SSH-2.0-OpenSSH_9.6\r\n"), Cause(&["not-http"])),
        row(
            "smtp",
            send("220 mail.example.invalid ESMTP\r\n"),
            Cause(&["not-http"]),
        ),
        row(
            "tls alert",
            send([21, 3, 3, 0, 2, 2, 40]),
            Cause(&["not-http"]),
        ),
        row(
            "http/2",
            send([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100]),
            Cause(&["not-http"]),
        ),
        row("http/0.9", send(&body), Cause(&["not-http"])),
        row("noise", send(&noise), Cause(&["not-http"])),
        row(
            "endless noise",
            flood([], [0_u8; 4096]),
            Cause(&["not-http", "head-over-limit"]),
        ),
        // Heads.
        row(
            "http/9.9",
            send("HTTP/9.9 200 OK\r\nContent-Length: 0\r\n\r\n"),
            Cause(&["malformed-head", "not-http"]),
        ),
        row(
            "code 0",
            send("HTTP/1.1 0 OK\r\nContent-Length: 0\r\n\r\n"),
            Cause(&["malformed-head"]),
        ),
        row(
            "code -1",
            send("HTTP/1.1 -1 OK\r\nContent-Length: 0\r\n\r\n"),
            Cause(&["malformed-head"]),
        ),
        row(
            "code 999",
            send(answer("999 X", "", &body)),
            Cause(&["malformed-head"]),
        ),
        row(
            "endless header",
            flood("HTTP/1.1 200 OK\r\nX: ", "x".repeat(4096)),
            Cause(&["head-over-limit"]),
        ),
        row(
            "endless headers",
            flood("HTTP/1.1 200 OK\r\n", "X: y\r\n".repeat(99)),
            Cause(&["head-over-limit"]),
        ),
        row(
            "5,000 cookies",
            send(answer("200 OK", &"Set-Cookie: a=b\r\n".repeat(5000), &body)),
            Cause(&["head-over-limit"]),
        ),
        row(
            "NUL in a header",
            send(answer("200 OK", "X: a\0b\r\n", &body)),
            Cause(&["malformed-head"]),
        ),
        row(
            "endless 1xx",
            flood([], "HTTP/1.1 100 Continue\r\n\r\n"),
            Cause(&["interim-over-limit"]),
        ),
        row(
            "three 1xx",
            [
                send("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(3)),
                send(ok(&body)),
            ]
            .concat(),
            Fine,
        ),
        row(
            "101",
            send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
            Fails("status 101"),
        ),
        row(
            "204",
            send("HTTP/1.1 204 No Content\r\n\r\n"),
            Fails("204 without a body"),
        ),
        row(
            "304",
            send("HTTP/1.1 304 Not Modified\r\n\r\n"),
            Cause(&["redirect 304"]),
        ),
        row(
            "302 to elsewhere",
            send(answer(
                "302 Found",
                "Location: http://127.0.0.1:9/x\r\n",
                "",
            )),
            Cause(&["302 with a redirect to", "redirect 302"]),
        ),
        row(
            "302 to nowhere",
            send(answer("302 Found", "", "")),
            Cause(&["redirect 302"]),
        ),
        row(
            "302 to a file",
            send(answer("302 Found", "Location: file:///etc/passwd\r\n", "")),
            Cause(&["302 with a redirect to", "redirect 302"]),
        ),
        row(
            "429 for ever",
            send(answer(
                "429 Too Many Requests",
                "Retry-After: 99999999999\r\n",
                "",
            )),
            Unserved("status 429"),
        ),
        row(
            "500",
            send(answer(
                "500 Internal Server Error",
                "Retry-After: -1\r\n",
                "",
            )),
            Fails("status 500"),
        ),
        row(
            "503",
            send(answer("503 Service Unavailable", "Retry-After: -1\r\n", "")),
            Unserved("status 503"),
        ),
        // Framing.
        row(
            "length too long",
            send(declared("99999999999")),
            Cause(&["truncated", "body-over-limit"]),
        ),
        row("length too short", send(declared("5")), Cause(&["framing"])),
        row(
            "length negative",
            send(declared("-1")),
            Cause(&["framing", "malformed-head"]),
        ),
        row(
            "length 2^64",
            send(declared("18446744073709551616")),
            Cause(&["framing", "body-over-limit"]),
        ),
        row(
            "two lengths",
            send(declared("5\r\nContent-Length: 6")),
            Cause(&["framing"]),
        ),
        row(
            "length and chunked",
            send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
                chunk(&body)
            )),
            Fine,
        ),
        row(
            "unknown transfer coding",
            send(answer("200 OK", "Transfer-Encoding: gzip\r\n", &body)),
            Cause(&["framing"]),
        ),
        row(
            "chunk without a number",
            send(format!("{CHUNKED}xyz\r\n{body}")),
            Cause(&["framing"]),
        ),
        row(
            "chunk of -1",
            send(format!("{CHUNKED}-1\r\n{body}")),
            Cause(&["framing"]),
        ),
        row(
            "chunk of 2^64",
            send(format!("{CHUNKED}10000000000000000\r\n{body}")),
            Cause(&["framing", "body-over-limit"]),
        ),
        row(
            "chunks without an end",
            send(format!("{CHUNKED}{}", chunk(&body))),
            Cause(&["truncated", "framing"]),
        ),
        row(
            "chunks of one byte",
            send(format!("{CHUNKED}{one_by_one}0\r\n\r\n")),
            Fine,
        ),
        row(
            "endless chunks",
            flood(CHUNKED, chunk(&" ".repeat(65_536))),
            Cause(&["body-over-limit", "timeout(body, "]),
        ),
        row(
            "endless body",
            flood(UNTIL_CLOSE, " ".repeat(65_536)),
            Cause(&["body-over-limit", "timeout(body, "]),
        ),
        row(
            "endless chunk extension",
            flood(format!("{CHUNKED}5;"), "x".repeat(4096)),
            Cause(&["framing"]),
        ),
        row(
            "endless trailers",
            flood(format!("{CHUNKED}{}0\r\n", chunk(&body)), "X: y\r\n"),
            Cause(&["framing"]),
        ),
        row(
            "no length, then the end",
            send(format!("{UNTIL_CLOSE}{body}")),
            Fine,
        ),
        row(
            "a second answer",
            [send(ok(&body)), send(ok("{}"))].concat(),
            Fine,
        ),
        // Codings that were not requested.
        row(
            "invalid gzip",
            send(coded("gzip")),
            Fails("Content-Encoding gzip"),
        ),
        row(
            "gzip",
            send(answer(
                "200 OK",
                "Content-Encoding: gzip\r\n",
                [0x1f, 0x8b, 8, 0, 0, 0, 0, 0],
            )),
            Fails("Content-Encoding gzip"),
        ),
        row(
            "layers of codings",
            send(coded("gzip, gzip, br")),
            Fails("Content-Encoding gzip, gzip, br"),
        ),
        row("identity", send(coded("identity")), Fine),
    ]
}

/// Does the actions from the given request on; before it the target responds with valid pages.
fn hostile_from(first: usize, acts: Vec<Act>) -> Target {
    Target::answering(move |asked| {
        if asked.number >= first {
            return acts.clone();
        }
        let origin = format!("http://{}", asked.header("Host"));
        let next = format!(
            "{origin}/flow/v1/Flows?PageSize=2&Page={0}&PageToken=t{0}",
            asked.number
        );
        let page = page(&origin, asked.number - 1, Some(&next));
        keep(ok(page.to_string()))
    })
}

pub(crate) fn check(name: &str, judged: &Judged, due: Due) {
    let Judged {
        ended,
        record,
        json,
    } = judged;
    let (exit, words): (i32, &[&str]) = match due {
        Due::Cause(words) => (3, words),
        Due::Fails(ref word) => (1, std::slice::from_ref(word)),
        Due::Unserved(ref word) => (3, std::slice::from_ref(word)),
        Due::Fine => (0, &[""]),
    };
    assert_eq!(
        ended.exit,
        Some(exit),
        "{name}: {}{}",
        ended.stdout,
        ended.stderr
    );
    assert!(
        words.iter().any(|w| json.contains(w)),
        "{name}: none of {words:?} in {}",
        ended.stdout
    );
    // A target that stops answering ends the run.
    let has_ended = exit == 3 && ended.stderr.contains("stopped answering");
    assert!(
        has_ended || record["complete"] == true,
        "{name}: {}{}",
        ended.stdout,
        ended.stderr
    );
    assert_eq!(
        record["scenarios"].as_array().map(Vec::len),
        Some(1),
        "{name}"
    );
    let seconds = record["scenarios"][0]["seconds"]
        .as_f64()
        .expect("a number");
    assert!(seconds <= SECONDS_MAX, "{name}: {seconds} s");
    assert!(
        ended.peak_kib <= PEAK_KIB_MAX,
        "{name}: {} KiB",
        ended.peak_kib
    );
}

/// Does the work for every row, a few in parallel; all failures are printed.
pub(crate) fn each(rows: &[Row], work: impl Fn(&Row) + Sync) {
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..HANDS {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(row)));
                    failed.fetch_add(usize::from(done.is_err()), Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(failed.into_inner(), 0, "rows failed; see above");
}

#[test]
fn targets_that_misbehave_from_the_first_request() {
    each(&one_in(6, rows()), |row| {
        let target = hostile_from(1, row.acts.clone());
        check(row.name, &judge(&target, "flow/read-flows/happy"), row.due);
    });
}

#[test]
fn targets_that_misbehave_from_the_third_request() {
    let mut rows = rows();
    // Valid for one page, but not for a page of this walk.
    rows.retain(|row| !matches!(row.due, Due::Fine | Due::Unserved(_)));
    let every_third: Vec<Row> = rows.into_iter().step_by(3).collect();
    each(&one_in(3, every_third), |row| {
        let target = hostile_from(3, row.acts.clone());
        let judged = judge(&target, "flow/read-flows/walk");
        assert!(
            target.asked().len() >= 3,
            "{}: {:?}",
            row.name,
            target.asked()
        );
        check(row.name, &judged, row.due);
    });
}

#[test]
fn connections_that_are_reset() {
    let target = Target::greeting(vec![Act::Reset]);
    let judged = judge(&target, "flow/read-flows/happy");
    check("reset", &judged, Due::Cause(&["reset"]));
}

#[test]
fn nobody_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    drop(listener);
    let folder = Folder::with_limits();
    let judged = crate::hostile::command::judge_in(
        &folder,
        &format!("flow=http://{address}/flow"),
        "flow/*",
    );
    let Judged {
        ended,
        record,
        json,
    } = judged;
    assert_eq!(ended.exit, Some(3), "{ended:?}");
    assert!(
        json.contains(&format!("connect to {address}")) && json.contains("(os error"),
        "{ended:?}"
    );
    assert_eq!(record["complete"], true);
    let counts = &record["summary"]["rules"];
    assert!(
        counts["inconclusive"].as_u64() > Some(0) && counts["pass"] == 0 && counts["fail"] == 0,
        "{counts}"
    );
    let seconds = record["summary"]["seconds"].as_f64().expect("a number");
    assert!(seconds < 5.0, "given up soon: {seconds} s");
}
