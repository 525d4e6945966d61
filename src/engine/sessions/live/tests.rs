//! Living targets and the stories told of them, against sockets of this machine.

use super::clock::ADVANCE_CLOCK;
use super::{Live, Manner};
use crate::clock;
use crate::engine::plan;
use crate::engine::settings::Settings;
use crate::engine::settings::{Hook, Target};
use crate::engine::{Company, Sessions};
use crate::http::Request;
use crate::rulebook::Rulebook;
use crate::transport::Limits;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn a_store_of_files_that_limits_is_asked_again_too() {
    let store = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", store.local_addr().unwrap());
    let answers = [
        "503 Busy\r\nRetry-After: 0\r\nContent-Length: 0",
        "200 OK\r\nContent-Length: 0",
    ];
    let serving = std::thread::spawn(move || {
        for answer in answers {
            let (mut socket, _) = store.accept().unwrap();
            let _head = socket.read(&mut [0; 4096]).unwrap();
            let answer = format!("HTTP/1.1 {answer}\r\nConnection: close\r\n\r\n");
            socket.write_all(answer.as_bytes()).unwrap();
        }
    });
    let rulebook = Rulebook::embedded().unwrap();
    let live = live("media", clock::monotonic() + Duration::from_secs(60));
    let all = plan::all(&rulebook);
    let session = live.open(&all[0]).unwrap();
    let answer = session.get_elsewhere(&origin, &Request::new("GET", "/file"));
    assert_eq!(answer.unwrap().status, 200);
    serving.join().unwrap();
}

/// A hook that tells the time some milliseconds ahead of ours, once for each of them.
fn telling(ahead_ms: &'static [i64]) -> (Hook, std::thread::JoinHandle<()>) {
    let bench = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", bench.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        for ahead in ahead_ms {
            let (mut socket, _) = bench.accept().unwrap();
            let _head = socket.read(&mut [0; 4096]).unwrap();
            let now = clock::from_unix_ms(clock::now().as_millisecond() + ahead);
            let body = json!({"now": now.to_string()}).to_string();
            let length = body.len();
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            socket
                .write_all(format!("{head}{body}").as_bytes())
                .unwrap();
        }
    });
    let hook = Hook::control_plane(&url, None).remove(ADVANCE_CLOCK);
    (hook.unwrap(), serving)
}

#[test]
fn what_the_clock_was_moved_by_is_what_passed_however_coarsely_the_target_tells_it() {
    let (hook, serving) = telling(&[0, 598_100, 598_100]);
    let mut live = live("auth", clock::monotonic() + Duration::from_secs(60));
    live.settings.hooks.insert(ADVANCE_CLOCK.to_owned(), hook);
    let rulebook = Rulebook::embedded().unwrap();
    let session = live.open(&plan::all(&rulebook)[0]).unwrap();
    let before = session.now();
    session
        .hook(ADVANCE_CLOCK, &json!({"seconds": 599}))
        .unwrap();
    let passed = session.now().duration_since(before);
    assert!(passed.as_millis() >= 599_000, "{passed:?}");
    assert_eq!(session.disturbed(), None);
    serving.join().unwrap();
}

#[test]
fn a_clock_that_somebody_else_moved_is_told() {
    let (hook, serving) = telling(&[0, 604_000, 604_000]);
    let mut live = live("auth", clock::monotonic() + Duration::from_secs(60));
    live.settings.hooks.insert(ADVANCE_CLOCK.to_owned(), hook);
    let rulebook = Rulebook::embedded().unwrap();
    let session = live.open(&plan::all(&rulebook)[0]).unwrap();
    session
        .hook(ADVANCE_CLOCK, &json!({"seconds": 599}))
        .unwrap();
    let why = session.disturbed().unwrap();
    assert!(why.contains("moved by somebody else"), "{why}");
    serving.join().unwrap();
}

fn live(service: &str, deadline: Instant) -> Live {
    let target = Target::of_reference(service, &format!("http://127.0.0.1:9/{service}"));
    let settings = Settings {
        targets: [(service.to_owned(), target)].into(),
        ..Settings::default()
    };
    let manner = Manner {
        limits: Limits::default(),
        jobs: 1,
        deadline,
        tell: Box::new(|_| {}),
    };
    Live::new(settings, manner, &Arc::default()).unwrap()
}

#[test]
fn nobody_else_plays_while_a_shared_list_is_walked() {
    let rulebook = Rulebook::embedded().unwrap();
    let live = live("flow", clock::monotonic());
    let all = plan::all(&rulebook);
    let alone = |id: &str| {
        let planned = all.iter().find(|p| p.scenario.id == id).unwrap();
        live.room(planned).company == Company::Nobody
    };
    assert!(
        alone("flow/read-executions/walk"),
        "someone else may insert"
    );
    assert!(!alone("flow/create-execution/happy"));
    assert!(
        !alone("auth/registrations/completed-webhook"),
        "without a hook it moves nothing"
    );
}
