//! Client behavior against misbehaving targets on the loopback interface: one table row per expectation.
//!
//! A target serves one connection per script and gives up after a few seconds.

use super::*;
use conformant_base::clock;
use conformant_base::http::{Cause, Request};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Deadline of an exchange that must exceed it.
const SOON: Duration = Duration::from_millis(250);
/// Deadline of an exchange that must meet it.
const AMPLE: Duration = Duration::from_secs(5);

/// Action of a target on one connection; after the last one it closes.
#[derive(Clone, Debug)]
enum Act {
    /// Reads one request: its head, and its body by `Content-Length`.
    Request,
    /// Waits for the first byte without reading it: closing then resets the connection.
    Glance,
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends bytes one at a time, a pause after each.
    Drip(Vec<u8>, Duration),
    /// Sends the same bytes until the client closes, at most this many times.
    Flood(Vec<u8>, usize),
    /// Waits until the client closes.
    Hold,
}

fn send(bytes: impl AsRef<[u8]>) -> Act {
    Act::Send(bytes.as_ref().to_vec())
}

fn perform(socket: &mut TcpStream, acts: &[Act]) -> std::io::Result<()> {
    socket.set_read_timeout(Some(AMPLE))?;
    socket.set_write_timeout(Some(AMPLE))?;
    for act in acts {
        match act {
            Act::Request => read_request(socket)?,
            Act::Glance => drop(socket.peek(&mut [0])?),
            Act::Send(bytes) => socket.write_all(bytes)?,
            Act::Drip(bytes, pause) => {
                for byte in bytes {
                    socket.write_all(&[*byte])?;
                    clock::sleep(*pause);
                }
            }
            Act::Flood(bytes, times) => {
                for _ in 0..*times {
                    socket.write_all(bytes)?;
                }
            }
            Act::Hold => while socket.read(&mut [0; 4096])? > 0 {},
        }
    }
    Ok(())
}

fn read_request(socket: &mut TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = head
        .split_once("content-length: ")
        .and_then(|(_, rest)| rest.split("\r\n").next()?.parse().ok())
        .unwrap_or(0);
    socket.read_exact(&mut vec![0; length])
}

/// A target that runs one script per connection; its thread returns how many it ran.
fn target(scripts: Vec<Vec<Act>>) -> (BaseUrl, JoinHandle<usize>) {
    let (listener, base) = listening();
    let thread = std::thread::spawn(move || {
        let mut count = 0;
        for acts in scripts {
            let Ok((mut socket, _)) = listener.accept() else {
                break;
            };
            // Clients may leave early.
            drop(perform(&mut socket, &acts));
            count += 1;
        }
        count
    });
    (base, thread)
}

/// A socket that listens, and its address.
pub(super) fn listening() -> (TcpListener, BaseUrl) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    let base = BaseUrl::parse(&format!("http://{address}")).expect("a base");
    (listener, base)
}

fn client() -> Client {
    Client::new(Limits::default())
}

fn get() -> Request {
    Request::new("GET", "/x")
}

fn post(bytes: usize) -> Request {
    let mut request = Request::new("POST", "/x");
    request.body = vec![b'x'; bytes];
    request
}

/// `200 body`, or the cause.
fn outcome(result: &Result<Answer, Fault>) -> String {
    match result {
        Ok(answer) => {
            let body = String::from_utf8_lossy(&answer.response.body);
            let notes: Vec<_> = answer.notes.iter().map(|n| format!(" [{n}]")).collect();
            format!("{} {body}{}", answer.response.status, notes.concat())
        }
        Err(fault) => fault.cause.to_string(),
    }
}

/// The outcome of a request of a client.
fn answer_to(client: &Client, base: &BaseUrl, request: &Request) -> String {
    outcome(&client.exchange(base, request, AMPLE))
}

/// The outcome of a GET for one script.
fn acted(acts: Vec<Act>) -> String {
    outcome(&run_acts(acts, &get(), AMPLE))
}

/// Runs one script against one request.
fn run_acts(acts: Vec<Act>, request: &Request, within: Duration) -> Result<Answer, Fault> {
    let (base, thread) = target(vec![acts]);
    let client = client();
    let begun = clock::monotonic();
    let result = client.exchange(&base, request, within);
    let took = clock::monotonic() - begun;
    assert!(took < within + Duration::from_secs(2), "bounded: {took:?}");
    drop(client);
    thread.join().expect("the target does not panic");
    result
}

/// The same for a target that sends these bytes once it has the request.
fn answered(bytes: impl AsRef<[u8]>) -> Result<Answer, Fault> {
    run_acts(vec![Act::Request, send(bytes)], &get(), AMPLE)
}

/// Each response, sent whole and then closed, and the expected outcome.
fn check(rows: &[(&str, &str)]) {
    for (answer, expect) in rows {
        let result = answered(answer);
        assert_eq!(outcome(&result), *expect, "{answer:?}: {result:?}");
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// Connection and time.

#[test]
fn refused_connections_name_address_and_system_error_and_end_further_tries() {
    let (listener, base) = listening();
    let address = base.origin().authority();
    drop(listener);
    let client = client();
    let mut fastest = AMPLE;
    for attempt in 1..=4 {
        let begun = clock::monotonic();
        let fault = client
            .send(&base, &get(), AMPLE)
            .expect_err("nothing listens");
        fastest = fastest.min(clock::monotonic() - begun);
        assert_eq!(fault.cause, Cause::Refused);
        assert_eq!(fault.fatal, attempt >= 3, "attempt {attempt}");
        assert!(fault.detail.contains(address), "{fault}");
        assert_eq!(fault.detail.contains("os error"), attempt <= 3, "{fault}");
    }
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
    assert!(client.gave_up(base.origin()));
}

#[test]
fn a_target_that_drops_connection_attempts_meets_the_connect_deadline() {
    // A full backlog drops further attempts.
    let (listener, base) = listening();
    let address = listener.local_addr().expect("a bound socket");
    let brief = Duration::from_millis(20);
    let fill = |_| TcpStream::connect_timeout(&address, brief);
    let attempts: Vec<_> = (0..5_000).map(fill).take_while(Result::is_ok).collect();
    let client = Client::new(Limits {
        connect: SOON,
        ..Limits::default()
    });
    let fault = client.send(&base, &get(), AMPLE).expect_err("not accepted");
    assert_eq!(fault.cause, Cause::ConnectTimeout, "{fault}");
    assert!(fault.detail.contains(&address.to_string()), "{fault}");
    drop(attempts);
}

#[test]
fn silence_and_drips_meet_the_total_deadline_and_say_where() {
    let drip = |text: &str| Act::Drip(text.as_bytes().to_vec(), Duration::from_millis(40));
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    let endless = "HTTP/1.1 200 OK\r\n\r\n";
    for (acts, expect) in [
        (vec![Act::Hold], "timeout(first-byte)"),
        (
            vec![drip("HTTP/1.1 200 OK\r\nX: "), Act::Hold],
            "timeout(headers)",
        ),
        (
            vec![send("HTTP/1.1 200 OK\r\n"), Act::Hold],
            "timeout(headers)",
        ),
        (
            vec![send(head), send("12345"), Act::Hold],
            "timeout(body, 5/10)",
        ),
        (vec![send(head), Act::Hold], "timeout(body, 0/10)"),
        (
            vec![send(endless), send("123"), Act::Hold],
            "timeout(body, 3/unknown)",
        ),
        (
            vec![
                send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
                Act::Hold,
            ],
            "timeout(body, 2/unknown)",
        ),
        (
            vec![send("HTTP/1.1 100 Continue\r\n\r\n"), Act::Hold],
            "timeout(headers)",
        ),
    ] {
        let result = run_acts([vec![Act::Request], acts.clone()].concat(), &get(), SOON);
        assert_eq!(outcome(&result), expect, "{acts:?}: {result:?}");
    }
    let drips = vec![Act::Request, send(head), drip("123456789")];
    let fault = run_acts(drips, &get(), SOON).expect_err("too slow");
    assert!(
        matches!(
            fault.cause,
            Cause::BodyTimeout {
                expected: Some(10),
                ..
            }
        ),
        "{fault}"
    );
    assert!(b"123456789".starts_with(&fault.partial) && !fault.partial.is_empty());
    assert_eq!(fault.status, Some(200));
}

#[test]
fn a_target_that_reads_no_body_meets_the_deadline_too() {
    let (_listener, base) = listening();
    let client = client();
    let fault = client
        .send(&base, &post(64 << 20), SOON)
        .expect_err("not read");
    let Cause::WriteTimeout { sent, total } = fault.cause else {
        panic!("{fault}");
    };
    assert!(sent < total && total > 64 << 20, "{fault}");
}

#[test]
fn an_early_answer_is_judged_although_the_upload_is_not_over() {
    let refusal = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig";
    // The target responds and keeps the connection open without reading …
    let held = run_acts(
        vec![Act::Glance, send(refusal), Act::Glance],
        &post(64 << 20),
        AMPLE,
    );
    // … or closes it, which resets the upload.
    let reset = run_acts(vec![Act::Glance, send(refusal)], &post(64 << 20), AMPLE);
    for result in [held, reset] {
        let answer = result.expect("the 413 is an answer");
        assert_eq!(answer.response.status, 413);
        assert_eq!(answer.response.body, b"big");
        assert!(
            matches!(answer.notes[..], [Note::Early { .. }]),
            "{:?}",
            answer.notes
        );
    }
}

#[test]
fn both_directions_flow_at_once() {
    // The response exceeds every socket buffer and is sent before the upload is read.
    let size = 7 << 20;
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").into_bytes();
    answer.resize(answer.len() + size, b'y');
    let acts = vec![Act::Glance, Act::Send(answer), Act::Request];
    let answer = run_acts(acts, &post(32 << 20), Duration::from_secs(20)).expect("no dead-lock");
    assert_eq!(answer.response.body.len(), size);
}

#[test]
fn closed_and_reset_connections_are_distinguished() {
    for (acts, expect) in [
        (vec![], "empty-response or reset"),
        (vec![Act::Request], "empty-response"),
        (vec![Act::Glance], "reset"),
        (
            vec![Act::Request, send("HTTP/1.1 200 OK\r\nContent-")],
            "truncated",
        ),
        (
            vec![Act::Glance, send("HTTP/1.1 200 OK\r\nContent-")],
            "truncated",
        ),
        (
            vec![Act::Request, send("HTTP/1.1 100 Continue\r\n\r\n")],
            "truncated",
        ),
    ] {
        let result = run_acts(acts.clone(), &get(), AMPLE);
        let found = outcome(&result);
        assert!(
            expect.split(" or ").any(|e| e == found),
            "{acts:?}: {result:?}"
        );
    }
}

#[test]
fn connections_are_kept_and_dead_ones_replaced() {
    let once = || vec![Act::Request, send(OK)];
    // Two exchanges on one connection.
    let (base, thread) = target(vec![[once(), once()].concat()]);
    let client = client();
    for _ in 0..2 {
        assert_eq!(answer_to(&client, &base, &get()), "200 ok");
    }
    assert_eq!(thread.join().expect("no panic"), 1);

    // The target closes after its response: the next exchange uses another connection, silently.
    let (base, thread) = target(vec![once(), once()]);
    assert_eq!(answer_to(&client, &base, &post(1)), "200 ok");
    wait_until_spoilt(&client, &base);
    assert_eq!(answer_to(&client, &base, &post(1)), "200 ok");
    assert_eq!(thread.join().expect("no panic"), 2);
}

/// Waits until the kept connection was closed or received extra bytes, for a deterministic outcome.
fn wait_until_spoilt(client: &Client, base: &BaseUrl) {
    let by = clock::monotonic() + AMPLE;
    while !client.kept_are_spoilt(base.origin()) {
        assert!(clock::monotonic() < by, "the target spoils it");
        std::thread::yield_now();
    }
}

#[test]
fn only_a_get_is_sent_once_more_when_a_kept_connection_dies() {
    // The second request reaches the target, which closes instead of responding.
    let dies = || vec![Act::Request, send(OK), Act::Request];
    let answers = vec![Act::Request, send(OK)];
    let (base, thread) = target(vec![dies(), answers.clone()]);
    let client = client();
    assert_eq!(answer_to(&client, &base, &get()), "200 ok");
    let again = client
        .exchange(&base, &get(), AMPLE)
        .expect("sent once more");
    assert_eq!(again.notes, [Note::Resent]);
    assert_eq!(thread.join().expect("no panic"), 2);

    // A request that must not be sent twice never uses a possibly dead connection: its outcome does not
    // depend on when the target closes.
    let (base, thread) = target(vec![dies(), [answers.clone(), answers].concat()]);
    assert_eq!(answer_to(&client, &base, &get()), "200 ok");
    assert_eq!(
        answer_to(&client, &base, &post(1)),
        "200 ok",
        "a fresh connection"
    );
    assert_eq!(
        answer_to(&client, &base, &get()),
        "200 ok",
        "which is then kept"
    );
    assert_eq!(thread.join().expect("no panic"), 2);

    let (base, thread) = target(vec![vec![Act::Request]]);
    assert_eq!(answer_to(&client, &base, &post(1)), "empty-response");
    assert_eq!(thread.join().expect("no panic"), 1);

    // A fresh connection that dies is a response to the first try: no retry.
    let (base, thread) = target(vec![vec![Act::Request]]);
    assert_eq!(answer_to(&client, &base, &get()), "empty-response");
    assert_eq!(thread.join().expect("no panic"), 1);
}

#[test]
fn in_a_scenario_kept_connections_are_trusted_until_one_is_closed() {
    let answers = || vec![Act::Request, send(OK)];
    // Two requests on one connection; the target closes it instead of responding to the third.
    let first = [answers(), answers(), vec![Act::Request]].concat();
    let (base, thread) = target(vec![first, answers(), answers()]);
    let client = client();
    let share = &client.share();
    let exchange = |request| client.exchange_in(share, &base, &request, AMPLE);
    assert_eq!(outcome(&exchange(post(1))), "200 ok");
    assert_eq!(outcome(&exchange(post(1))), "200 ok");
    let fault = exchange(post(1)).expect_err("it is not answered");
    assert!(
        fault.on_kept && fault.cause == Cause::EmptyResponse,
        "{fault}"
    );
    // From now on such requests use fresh connections.
    assert_eq!(outcome(&exchange(post(1))), "200 ok");
    assert_eq!(outcome(&exchange(post(1))), "200 ok");
    assert_eq!(thread.join().expect("no panic"), 3);

    // A fault on a fresh connection is caused by the target.
    let (base, thread) = target(vec![vec![Act::Request]]);
    let fault = client.exchange_in(share, &base, &post(1), AMPLE);
    assert!(!fault.expect_err("it is not answered").on_kept);
    assert_eq!(thread.join().expect("no panic"), 1);
}

#[test]
fn a_forged_second_answer_is_never_matched_to_a_later_request() {
    let forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
    for answers in [
        vec![send(format!("{OK}{forged}"))],
        vec![send(OK), send(forged)],
    ] {
        let (base, thread) = target(vec![
            [vec![Act::Request], answers, vec![Act::Hold]].concat(),
            vec![Act::Request, send(OK)],
        ]);
        let client = client();
        let first = answer_to(&client, &base, &get());
        assert!(first.starts_with("200 ok"), "{first}");
        wait_until_spoilt(&client, &base);
        assert_eq!(answer_to(&client, &base, &get()), "200 ok");
        assert_eq!(thread.join().expect("no panic"), 2);
    }
}

#[test]
fn other_protocols_are_recognized() {
    for (bytes, hint, hex) in [
        (
            &b"\x15\x03\x01\x00\x02\x02\x0a"[..],
            "looks like TLS",
            "15 03 01 00 02 02 0a",
        ),
        (
            b"SSH-2.0-x\r\n",
            "looks like SSH",
            "53 53 48 2d 32 2e 30 2d 78 0d 0a",
        ),
        (
            b"220 mail ESMTP\r\n",
            "looks like SMTP",
            "32 32 30 20 6d 61 69 6c 20 45 53 4d 54 50 0d 0a",
        ),
        (
            b"\0\0\x12\x04\0\0\0\0\0",
            "looks like HTTP/2",
            "00 00 12 04 00 00 00 00 00",
        ),
        (
            b"<html>hello</html> and more",
            "HTTP/0.9",
            "3c 68 74 6d 6c 3e 68 65 6c 6c 6f 3c 2f 68 74 6d…",
        ),
        (
            b"\xff\xfe\x01noise",
            "no known protocol",
            "ff fe 01 6e 6f 69 73 65",
        ),
    ] {
        let fault = answered(bytes).expect_err(hint);
        assert_eq!(fault.cause, Cause::NotHttp);
        assert!(fault.detail.contains(hint), "{fault}");
        assert!(fault.detail.ends_with(hex), "{fault}");
    }
}

#[test]
fn an_interrupted_run_leaves_its_exchanges() {
    let (base, thread) = target(vec![vec![Act::Request, send("HTTP/1.1 "), Act::Hold]]);
    let interrupted = Arc::new(AtomicBool::new(false));
    let client = client().interrupted_by(Arc::clone(&interrupted));
    let result = std::thread::scope(|scope| {
        let exchange = scope.spawn(|| client.exchange(&base, &get(), AMPLE));
        interrupted.store(true, Ordering::Relaxed);
        exchange.join().expect("no panic")
    });
    assert_eq!(outcome(&result), "interrupted");
    drop(client);
    drop(TcpStream::connect(base.origin().authority()));
    thread.join().expect("no panic");
}

// Head and framing.

#[test]
fn heads_that_are_not_http_1_1_are_never_judged() {
    check(&[
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 ok"),
        ("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", "200 ok"),
        ("HTTP/1.0 200 OK\r\n\r\nold", "200 old"),
        ("HTTP/1.1 599 Odd\r\nContent-Length: 0\r\n\r\n", "599 "),
        ("HTTP/9.9 200 OK\r\n\r\n", "malformed-head"),
        ("HTTP/2 200\r\n\r\n", "malformed-head"),
        ("HTTP/1.1 0 OK\r\n\r\n", "malformed-head"),
        ("HTTP/1.1 000 OK\r\n\r\n", "malformed-head"),
        ("HTTP/1.1 -1 OK\r\n\r\n", "malformed-head"),
        ("HTTP/1.1 999 OK\r\n\r\n", "malformed-head"),
        ("HTTP/1.1 2x0 OK\r\n\r\n", "malformed-head"),
        ("HTTP/1.1 200 O\0K\r\n\r\n", "malformed-head"),
        ("HTTP/1.1\r\n\r\n", "malformed-head"),
        ("HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n", "malformed-head"),
        ("HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", "malformed-head"),
        ("HTTP/1.1 200 OK\r\nX Y: a\r\n\r\n", "malformed-head"),
        ("HTTP/1.1 200 OK\r\nX : a\r\n\r\n", "malformed-head"),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "malformed-head"),
        (
            "HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n",
            "malformed-head",
        ),
        // Invalid before the target closes.
        ("HTTP/1.1 abc", "malformed-head"),
    ]);
    let odd = "HTTP/1.1 200 OK\r\nX: \u{fc}\u{202e}\r\nContent-Length: 0\r\n\r\n".as_bytes();
    let answer = answered(odd).expect("judged");
    assert_eq!(answer.response.headers.get("x"), Some("\u{fc}\u{202e}"));
    let raw = b"HTTP/1.1 200 OK\r\nX: \xfc\r\nContent-Length: 0\r\n\r\n";
    let answer = answered(raw).expect("judged");
    assert_eq!(answer.response.headers.get("x"), Some("\u{fc}"));
    let fault = run_acts(
        vec![Act::Request, send("HTTP/1.1 \x1b[31m\r\n\r\n")],
        &get(),
        AMPLE,
    )
    .expect_err("no status");
    assert!(fault.detail.contains("\\x1b[31m"), "escaped: {fault}");
}

#[test]
fn heads_are_capped() {
    let lines = |n: usize| {
        let lines = "X-Many: y\r\n".repeat(n);
        format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{lines}\r\n")
    };
    let value = |n: usize| {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: {}\r\n\r\n",
            "y".repeat(n)
        )
    };
    check(&[
        (&lines(255), "200 "),
        (&lines(256), "head-over-limit"),
        (&lines(5_000), "head-over-limit"),
        (&value(60_000), "200 "),
        (&value(70_000), "head-over-limit"),
    ]);
    let flood = |bytes: &[u8]| Act::Flood(bytes.to_vec(), 1 << 20);
    for endless in [&b"Set-Cookie: a=b; Domain=com\r\n"[..], b"endless header "] {
        let acts = vec![Act::Request, send("HTTP/1.1 200 OK\r\n"), flood(endless)];
        assert_eq!(acted(acts), "head-over-limit");
    }
    let acts = vec![Act::Request, flood(b"HTTP/1.1 103 Early Hints\r\n\r\n")];
    assert_eq!(acted(acts), "interim-over-limit");
    check(&[(
        &format!("{}{OK}", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(16)),
        "200 ok",
    )]);
}

#[test]
fn bodies_that_a_status_forbids_are_noted() {
    check(&[
        ("HTTP/1.1 204 No Content\r\n\r\n", "204 "),
        (
            "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok",
            "204  [status 204 with a body]",
        ),
        (
            "HTTP/1.1 204 No Content\r\n\r\nok",
            "204  [status 204 with a body]",
        ),
        (
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n",
            "304 ",
        ),
        // RFC 9112, section 6.1: a 304 may have the header without a body.
        (
            "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
            "304 ",
        ),
        (
            "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
            "204  [status 204 with a body]",
        ),
        (
            "HTTP/1.1 304 Not Modified\r\n\r\nok",
            "304  [status 304 with a body]",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\n\r\n\x01\x02",
            "101  [unrequested status 101]",
        ),
    ]);
}

#[test]
fn bytes_after_a_response_are_a_body_or_a_second_response() {
    let head = Request::new("HEAD", "/x");
    for (answer, expect) in [
        (OK, "200  [a body in a response to HEAD]"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "200 "),
    ] {
        let result = run_acts(vec![Act::Request, send(answer)], &head, AMPLE);
        assert_eq!(outcome(&result), expect);
    }
    check(&[
        (
            &format!("{OK}{OK}"),
            "200 ok [a second response followed and was discarded]",
        ),
        (&format!("{OK}H"), "framing"),
    ]);
}

#[test]
fn each_byte_of_a_trailer_counts_once() {
    let trailers = |count: usize| format!("X: {}\r\n", ";".repeat(4_000)).repeat(count);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n";
    check(&[
        (&format!("{chunked}{}\r\n", trailers(16)), "200 ok"),
        (&format!("{chunked}{}\r\n", trailers(17)), "framing"),
    ]);
}

#[test]
fn lengths_must_be_certain() {
    let with = |length: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nok");
    for (length, expect) in [
        ("2", "200 ok"),
        ("2, 2", "200 ok"),
        ("2\r\nContent-Length: 2", "200 ok"),
        ("2\r\nContent-Length: 3", "framing"),
        ("2, 3", "framing"),
        ("1", "framing"),
        ("9", "truncated"),
        ("-2", "framing"),
        ("+2", "framing"),
        ("0x2", "framing"),
        ("2.0", "framing"),
        ("", "framing"),
        ("18446744073709551616", "framing"),
        ("18446744073709551615", "body-over-limit(8 MiB)"),
        ("8388609", "body-over-limit(8 MiB)"),
        ("2\r\nTransfer-Encoding: gzip", "framing"),
        ("2\r\nTransfer-Encoding: identity", "framing"),
        ("2\r\nTransfer-Encoding: ", "framing"),
        ("2\r\nTransfer-Encoding: gzip, chunked", "framing"),
        (
            "2\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "framing",
        ),
        ("2\r\nTransfer-Encoding: xchunked", "framing"),
    ] {
        check(&[(&with(length), expect)]);
    }
    let detail = |answer: &str| answered(answer).expect_err("a fault").detail;
    assert_eq!(detail(&with("2, 3")), "Content-Length states both 2 and 3");
    assert_eq!(
        detail(&with("1")),
        "Content-Length states 1 bytes, but at least 2 came"
    );
    assert!(detail(&with("9")).ends_with("after 2 of 9 bytes of the body"));
}

#[test]
fn chunks_must_be_certain() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n";
    let ones = "1\r\n{\r\n1\r\n}\r\n";
    for (chunks, expect) in [
        ("2\r\nok\r\n0\r\n\r\n", "200 ok"),
        ("02 ; ext=1\r\nok\r\n0\r\nX: trailer\r\n\r\n", "200 ok"),
        (&format!("{ones}0\r\n\r\n"), "200 {}"),
        ("2\r\nok\r\n", "framing"),
        ("2\r\nok", "framing"),
        ("2\r\no", "truncated"),
        ("2\r\nok\r\n0\r\n", "framing"),
        ("2\r\nokay\r\n0\r\n\r\n", "framing"),
        ("-2\r\nok\r\n0\r\n\r\n", "framing"),
        ("+2\r\nok\r\n0\r\n\r\n", "framing"),
        ("0x2\r\nok\r\n0\r\n\r\n", "framing"),
        ("\r\nok\r\n0\r\n\r\n", "framing"),
        ("zz\r\nok\r\n0\r\n\r\n", "framing"),
        ("2\nok\n0\n\n", "framing"),
        ("10000000000000002\r\nok\r\n0\r\n\r\n", "framing"),
        (
            "ffffffffffffffff\r\nok\r\n0\r\n\r\n",
            "body-over-limit(8 MiB)",
        ),
        ("2\r\nok\r\n0\r\nno trailer\r\n\r\n", "framing"),
    ] {
        check(&[(&format!("{head}\r\n{chunks}"), expect)]);
    }
    let both = format!("{head}Content-Length: 99\r\n\r\n2\r\nok\r\n0\r\n\r\n");
    check(&[(
        &both,
        "200 ok [both Content-Length and Transfer-Encoding; read as chunked]",
    )]);
    let many = format!("{head}\r\n{}0\r\n\r\n", "1\r\nx\r\n".repeat(20_000));
    let answer = answered(many).expect("benign");
    assert_eq!(answer.response.body.len(), 20_000);

    let flood = |bytes: &str| Act::Flood(bytes.as_bytes().to_vec(), 1 << 20);
    for (endless, expect) in [
        (
            flood("1;x=yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\nz\r\n"),
            "framing",
        ),
        (flood("0;ext"), "framing"),
        (flood("0\r\nX: y\r\n"), "framing"),
        (
            flood(&format!("10000\r\n{}\r\n", "x".repeat(65_536))),
            "body-over-limit(8 MiB)",
        ),
    ] {
        let acts = vec![Act::Request, send(head), send("\r\n"), endless];
        assert_eq!(acted(acts), expect);
    }
}

#[test]
fn bodies_are_capped_whatever_they_claim() {
    let limits = Limits {
        body: 1000,
        ..Limits::default()
    };
    for (answer, expect) in [
        (
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{}",
                "x".repeat(1000)
            ),
            "200 ",
        ),
        (
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n{}",
                "x".repeat(1001)
            ),
            "body-over-limit(1000 B)",
        ),
        (
            format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1000)),
            "200 ",
        ),
        (
            format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1001)),
            "body-over-limit(1000 B)",
        ),
    ] {
        let (base, thread) = target(vec![vec![Act::Request, send(&answer)]]);
        let client = Client::new(limits);
        let result = client.exchange(&base, &get(), AMPLE);
        assert!(outcome(&result).starts_with(expect), "{}", outcome(&result));
        if let Err(fault) = result {
            assert!(fault.partial.starts_with(b"xxx") && fault.partial.len() <= 4096);
        }
        drop(client);
        thread.join().expect("no panic");
    }
}

#[test]
fn a_reset_after_the_whole_body_does_not_matter_and_one_within_does() {
    let acts = |answer: &str| vec![Act::Glance, send(answer)];
    assert_eq!(acted(acts(OK)), "200 ok");
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
    let fault = run_acts(acts(half), &get(), AMPLE).expect_err("cut");
    assert_eq!(fault.cause, Cause::Truncated);
    assert_eq!(fault.partial, b"half");
    let endless = "HTTP/1.1 200 OK\r\n\r\nhalf";
    assert_eq!(acted(acts(endless)), "truncated");
}

// URLs, redirects, what is sent.

#[test]
fn redirects_are_answers_and_nothing_else_is_contacted() {
    let (witness, elsewhere) = listening();
    for location in [
        format!("{elsewhere}/"),
        "file:///etc/passwd".into(),
        "data:text/plain,x".into(),
        "x".repeat(30_000),
        "\u{fc}".into(),
    ] {
        let redirect =
            format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        let answer = answered(redirect).expect("judged as text");
        assert_eq!(answer.response.status, 302);
        assert_eq!(
            answer.response.headers.get("Location"),
            Some(location.as_str())
        );
    }
    witness.set_nonblocking(true).expect("a socket option");
    assert!(witness.accept().is_err(), "no connection");
}

#[test]
fn no_compression_is_asked_for_and_none_is_undone() {
    let (listener, base) = listening();
    let thread = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a client");
        let mut seen = vec![0; 4096];
        let read = socket.read(&mut seen).expect("a request");
        let gzip =
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x01\x02";
        socket.write_all(gzip.as_bytes()).expect("a client");
        seen.truncate(read);
        String::from_utf8(seen).expect("ASCII")
    });
    let base = base.under("/base").expect("a base");
    let response = client().send(&base, &get(), AMPLE).expect("an answer");
    assert_eq!(response.body, b"\x1f\x01\x02");
    let seen = thread.join().expect("no panic");
    let (host, version) = (base.origin().authority(), env!("CARGO_PKG_VERSION"));
    let agent = format!("User-Agent: conformant/{version}");
    assert_eq!(
        seen,
        format!("GET /base/x HTTP/1.1\r\nHost: {host}\r\n{agent}\r\n\r\n")
    );
}

#[test]
fn requests_that_no_wire_can_carry_are_refused_before_a_connection() {
    let (listener, base) = listening();
    let mut request = get();
    request.headers.add("X-A", "a\r\nX-Forged: b");
    let fault = client().send(&base, &request, AMPLE).expect_err("refused");
    assert_eq!(fault.cause, Cause::Unsendable);
    assert_eq!(
        fault.detail,
        "value of header X-A: U+000D is not allowed at byte 1"
    );
    listener.set_nonblocking(true).expect("a socket option");
    assert!(listener.accept().is_err(), "no connection");
}

#[cfg(feature = "tls")]
#[test]
fn a_target_without_tls_differs_from_a_silent_one() {
    let (base, thread) = target(vec![vec![
        Act::Glance,
        send("HTTP/1.1 400 Bad Request\r\n\r\n"),
    ]]);
    let base = BaseUrl::parse(&format!("https://{}", base.origin().authority())).expect("a base");
    let client = client();
    let fault = client.send(&base, &get(), AMPLE).expect_err("no TLS");
    assert_eq!(fault.cause, Cause::Tls, "{fault}");
    assert!(thread.join().is_ok());

    let (base, thread) = target(vec![vec![Act::Hold]]);
    let base = BaseUrl::parse(&format!("https://{}", base.origin().authority())).expect("a base");
    let fault = client.send(&base, &get(), SOON).expect_err("silence");
    assert_eq!(fault.cause, Cause::Tls, "{fault}");
    assert!(fault.detail.contains("within the deadline"), "{fault}");
    assert!(thread.join().is_ok());
}

#[test]
fn names_that_lead_nowhere_are_unresolved() {
    let base = BaseUrl::parse("http://nowhere.invalid:1").expect("a base");
    let fault = client()
        .send(&base, &get(), AMPLE)
        .expect_err("no such name");
    assert_eq!(fault.cause, Cause::Unresolved, "{fault}");
}
