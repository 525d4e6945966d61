//! Living targets and the stories told of them, against sockets of this machine.

use super::clock::{ADVANCE_CLOCK, ADVANCE_FURTHER_FROM};
use super::lease::LEASE_RENEWED;
use super::{Live, Manner};
use crate::plan;
use crate::settings::Settings;
use crate::settings::{Hook, Target};
use crate::{Company, Sessions};
use conformant_base::clock;
use conformant_base::http::Request;
use conformant_net::transport::Limits;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
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
    let rulebook = conformant_judge::load::shared();
    let live = live("media", clock::monotonic() + Duration::from_secs(60));
    let all = plan::all(rulebook);
    let session = live.open(&all[0]).unwrap();
    let answer = session.get_elsewhere(&origin, &Request::new("GET", "/file"));
    assert_eq!(answer.unwrap().status, 200);
    serving.join().unwrap();
}

/// A service of hooks that answers so, once with each of them, and keeps what it was asked.
struct Bench {
    url: String,
    serving: JoinHandle<Vec<Value>>,
}

impl Bench {
    fn of<F: FnOnce() -> Value + Send + 'static>(answers: impl IntoIterator<Item = F>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answers: Vec<F> = answers.into_iter().collect();
        let answer_with = move |answer: F| {
            let (mut socket, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            let arguments = loop {
                let mut part = [0; 4096];
                let length = socket.read(&mut part).unwrap();
                assert!(length > 0, "it ends within a request");
                asked.extend_from_slice(&part[..length]);
                let text = String::from_utf8_lossy(&asked);
                let body = text.split_once("\r\n\r\n").map(|(_, body)| body);
                if let Some(Ok(arguments)) = body.map(serde_json::from_str) {
                    break arguments;
                }
            };
            let body = answer().to_string();
            let length = body.len();
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            socket
                .write_all(format!("{head}{body}").as_bytes())
                .unwrap();
            arguments
        };
        let serving = std::thread::spawn(move || answers.into_iter().map(answer_with).collect());
        Self { url, serving }
    }

    /// One that tells the time some milliseconds ahead of ours, once for each of them.
    fn telling(ahead_ms: &'static [i64]) -> Self {
        Self::of(ahead_ms.iter().map(|ahead| {
            move || {
                let now = clock::from_unix_ms(clock::now().as_millisecond() + ahead);
                json!({"now": now.to_string()})
            }
        }))
    }

    /// A target that has this hook, and no other.
    fn of_target(&self, hook: &str) -> Live {
        let mut live = live("auth", clock::monotonic() + Duration::from_secs(60));
        let supplied = Hook::control_plane(
            conformant_rulebook::service::ServiceIndex::embedded(),
            &self.url,
            None,
        )
        .remove(hook)
        .unwrap();
        live.settings.hooks.insert(hook.to_owned(), supplied);
        live
    }

    /// The `seconds` of everything that it was asked.
    fn seconds(self) -> Vec<f64> {
        let asked = self.serving.join().unwrap();
        asked
            .iter()
            .map(|asked| asked["seconds"].as_f64().unwrap())
            .collect()
    }
}

#[test]
fn what_the_clock_was_moved_by_is_what_passed_however_coarsely_the_target_tells_it() {
    let bench = Bench::telling(&[0, 598_100, 598_100]);
    let live = bench.of_target(ADVANCE_CLOCK);
    let rulebook = conformant_judge::load::shared();
    let session = live.open(&plan::all(rulebook)[0]).unwrap();
    let before = session.now();
    session
        .hook(ADVANCE_CLOCK, &json!({"seconds": 599}))
        .unwrap();
    let passed = session.now().duration_since(before);
    assert!(passed.as_millis() >= 599_000, "{passed:?}");
    assert_eq!(session.disturbed(), None);
    assert_eq!(bench.seconds(), [0.0, 599.0, 0.0]);
}

#[test]
fn a_clock_that_somebody_else_moved_is_told() {
    let bench = Bench::telling(&[0, 604_000, 604_000]);
    let live = bench.of_target(ADVANCE_CLOCK);
    let rulebook = conformant_judge::load::shared();
    let session = live.open(&plan::all(rulebook)[0]).unwrap();
    session
        .hook(ADVANCE_CLOCK, &json!({"seconds": 599}))
        .unwrap();
    let why = session.disturbed().unwrap();
    assert!(why.contains("moved by somebody else"), "{why}");
    assert_eq!(bench.seconds(), [0.0, 599.0, 0.0]);
}

#[test]
fn what_is_looked_at_again_is_looked_at_in_real_time_and_a_stated_wait_moves_the_clock() {
    let bench = Bench::telling(&[0, 1_000]);
    let live = bench.of_target(ADVANCE_CLOCK);
    let rulebook = conformant_judge::load::shared();
    let all = plan::all(rulebook);
    let planned = all.iter().find(|planned| live.moves_the_clock(planned));
    let session = live.open(planned.unwrap()).unwrap();
    let began = clock::monotonic();
    session.wait_between_looks(ADVANCE_FURTHER_FROM);
    assert!(began.elapsed() >= ADVANCE_FURTHER_FROM);
    let before = session.now();
    session.wait(ADVANCE_FURTHER_FROM);
    let passed = session.now().duration_since(before);
    assert!(passed.unsigned_abs() >= ADVANCE_FURTHER_FROM, "{passed:?}");
    drop(session);
    assert_eq!(bench.seconds(), [0.0, 1.0], "moved once");
}

#[test]
fn a_lease_is_asked_for_once_by_all_who_share_it_and_again_after_a_while() {
    let granted = || json!({"granted": true});
    let bench = Bench::of([granted; 3]);
    let live = bench.of_target("lease");
    let (one, other) = (live.lease().unwrap(), live.lease().unwrap());
    live.leased.lock().unwrap().age(LEASE_RENEWED);
    drop((one, live.lease().unwrap()));
    drop(other);
    assert_eq!(bench.seconds(), [120.0, 120.0, 0.0]);
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
    let rulebook = conformant_judge::load::shared();
    let live = live("flow", clock::monotonic());
    let all = plan::all(rulebook);
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
