//! Tests of live targets against local sockets.

use super::clock::ADVANCE_FURTHER_FROM;
use super::lease::LEASE_RENEWED;
use super::{Live, LiveOptions};
use crate::plan;
use crate::session::race::{Action, ActionResult};
use crate::settings::Settings;
use crate::settings::{Hook, Target};
use crate::{Concurrency, Sessions};
use conformant_base::clock;
use conformant_base::http::Request;
use conformant_net::transport::Limits;
use conformant_rulebook::hooks::ADVANCE_CLOCK;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

#[test]
fn a_rate_limit_of_a_content_store_is_respected() {
    let (store, origin) = listener();
    let serving = std::thread::spawn(move || {
        for answer in ["503 Busy\r\nRetry-After: 0", "200 OK"] {
            let (mut socket, _) = store.accept().unwrap();
            let _head = socket.read(&mut [0; 4096]).unwrap();
            write_head(&mut socket, answer);
        }
    });
    let rulebook = conformant_judge::load::shared();
    let live = live("media");
    let all = plan::all(rulebook);
    let session = live.open(&all[0]).unwrap();
    let answer = session.get_elsewhere(&origin, &Request::new("GET", "/file"));
    assert_eq!(answer.unwrap().status, 200);
    serving.join().unwrap();
}

/// A listener on a free port, and its origin.
fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    (listener, origin)
}

/// Answers without a body.
fn write_head(socket: &mut TcpStream, head: &str) {
    let answer = format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    socket.write_all(answer.as_bytes()).unwrap();
}

/// The arguments in the body of a hook request.
fn read_arguments(socket: &mut TcpStream) -> Value {
    let mut asked = Vec::new();
    loop {
        let mut part = [0; 4096];
        let length = socket.read(&mut part).unwrap();
        assert!(length > 0, "it ends within a request");
        asked.extend_from_slice(&part[..length]);
        let text = String::from_utf8_lossy(&asked);
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body);
        if let Some(Ok(arguments)) = body.map(serde_json::from_str) {
            return arguments;
        }
    }
}

fn write_answer(socket: &mut TcpStream, answer: &Value) {
    let body = answer.to_string();
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let answer = format!("{head}{body}");
    socket.write_all(answer.as_bytes()).unwrap();
}

/// A target with this hook only.
fn target_with_hook(hook: &str, url: &str) -> Live {
    let mut live = live("auth");
    let index = conformant_rulebook::service::ServiceIndex::embedded();
    let supplied = Hook::control_plane(index, url, None).remove(hook).unwrap();
    live.settings.hooks.insert(hook.to_owned(), supplied);
    live
}

/// A hook server that gives one answer per request and records the arguments.
struct HookServer {
    url: String,
    serving: JoinHandle<Vec<Value>>,
}

impl HookServer {
    fn of<F: FnOnce() -> Value + Send + 'static>(answers: impl IntoIterator<Item = F>) -> Self {
        let (listener, url) = listener();
        let answers: Vec<F> = answers.into_iter().collect();
        let answer_with = move |answer: F| {
            let (mut socket, _) = listener.accept().unwrap();
            let arguments = read_arguments(&mut socket);
            write_answer(&mut socket, &answer());
            arguments
        };
        let serving = std::thread::spawn(move || answers.into_iter().map(answer_with).collect());
        Self { url, serving }
    }

    /// One that reports a time with these offsets in milliseconds, one per request.
    fn with_offsets(ahead_ms: &'static [i64]) -> Self {
        Self::of(ahead_ms.iter().map(|ahead| {
            move || {
                let now = clock::from_unix_ms(clock::now().as_millisecond() + ahead);
                json!({"now": now.to_string()})
            }
        }))
    }

    /// A target with this hook only.
    fn of_target(&self, hook: &str) -> Live {
        target_with_hook(hook, &self.url)
    }

    /// The `seconds` of all requests.
    fn seconds(self) -> Vec<f64> {
        let asked = self.serving.join().unwrap();
        asked
            .iter()
            .map(|asked| asked["seconds"].as_f64().unwrap())
            .collect()
    }
}

#[test]
fn an_advance_counts_exactly_although_the_target_reports_whole_seconds() {
    let server = HookServer::with_offsets(&[0, 598_100, 598_100]);
    let live = server.of_target(ADVANCE_CLOCK);
    let rulebook = conformant_judge::load::shared();
    let session = live.open(&plan::all(rulebook)[0]).unwrap();
    let before = session.now();
    session
        .hook(ADVANCE_CLOCK, &json!({"seconds": 599}))
        .unwrap();
    let passed = session.now().duration_since(before);
    assert!(passed.as_millis() >= 599_000, "{passed:?}");
    assert_eq!(session.disturbed(), None);
    assert_eq!(server.seconds(), [0.0, 599.0, 0.0]);
}

#[test]
fn a_clock_moved_by_another_client_is_reported() {
    let server = HookServer::with_offsets(&[0, 604_000, 604_000]);
    let live = server.of_target(ADVANCE_CLOCK);
    let rulebook = conformant_judge::load::shared();
    let session = live.open(&plan::all(rulebook)[0]).unwrap();
    session
        .hook(ADVANCE_CLOCK, &json!({"seconds": 599}))
        .unwrap();
    let why = session.disturbed().unwrap();
    assert!(why.contains("another client moved"), "{why}");
    assert_eq!(server.seconds(), [0.0, 599.0, 0.0]);
}

/// Advances the clock of a target and queries it at the same time, in this order. The target serves both concurrently and
/// keeps the first answer back until it could have answered the second.
fn move_and_query_clock(is_advanced_first: bool) {
    const DELAY: Duration = Duration::from_millis(300);
    let (reached, arrival) = std::sync::mpsc::channel();
    let (listener, url) = listener();
    let serving = std::thread::spawn(move || {
        let mut ahead_ms = 0;
        let mut answering = Vec::new();
        // The first query is that of `open`.
        for (nth, answered_after) in [Duration::ZERO, DELAY, Duration::ZERO].iter().enumerate() {
            let (mut socket, _) = listener.accept().unwrap();
            let seconds = read_arguments(&mut socket)["seconds"].as_f64().unwrap();
            if seconds > 0.0 {
                ahead_ms += 599_000;
            }
            let now = clock::from_unix_ms(clock::now().as_millisecond() + ahead_ms);
            if nth == 1 {
                reached.send(()).unwrap();
            }
            answering.push(std::thread::spawn(move || {
                clock::sleep(*answered_after);
                write_answer(&mut socket, &json!({"now": now.to_string()}));
            }));
        }
        for one in answering {
            one.join().unwrap();
        }
    });
    let live = target_with_hook(ADVANCE_CLOCK, &url);
    let all = plan::all(conformant_judge::load::shared());
    let session = live.open(&all[0]).unwrap();
    let advance = || {
        let seconds = json!({"seconds": 599});
        session.hook(ADVANCE_CLOCK, &seconds).unwrap();
    };
    std::thread::scope(|scope| {
        let query = || live.query_clock().unwrap();
        if is_advanced_first {
            let queried = scope.spawn(move || {
                arrival.recv().unwrap();
                query()
            });
            advance();
            queried.join().unwrap();
        } else {
            let queried = scope.spawn(query);
            arrival.recv().unwrap();
            advance();
            queried.join().unwrap();
        }
    });
    serving.join().unwrap();
    assert!((live.ahead().ms() - 599_000).abs() < 1_000);
}

#[test]
fn a_query_during_an_advance_does_not_make_it_look_ignored() {
    move_and_query_clock(true);
}

#[test]
fn an_older_answer_does_not_replace_the_offset_after_an_advance() {
    move_and_query_clock(false);
}

#[test]
fn polls_take_real_time_and_stated_waits_move_the_clock() {
    let server = HookServer::with_offsets(&[0, 1_000]);
    let live = server.of_target(ADVANCE_CLOCK);
    let rulebook = conformant_judge::load::shared();
    let all = plan::all(rulebook);
    let planned = all.iter().find(|planned| live.moves_the_clock(planned));
    let session = live.open(planned.unwrap()).unwrap();
    let began = clock::monotonic();
    session.wait_between_polls(ADVANCE_FURTHER_FROM);
    assert!(began.elapsed() >= ADVANCE_FURTHER_FROM);
    let before = session.now();
    session.wait(ADVANCE_FURTHER_FROM);
    let passed = session.now().duration_since(before);
    assert!(passed.unsigned_abs() >= ADVANCE_FURTHER_FROM, "{passed:?}");
    drop(session);
    assert_eq!(server.seconds(), [0.0, 1.0], "moved once");
}

#[test]
fn a_lease_is_requested_once_and_renewed() {
    let granted = || json!({"granted": true});
    let server = HookServer::of([granted; 3]);
    let live = server.of_target("lease");
    let (one, other) = (live.lease().unwrap(), live.lease().unwrap());
    live.leased.lock().unwrap().age(LEASE_RENEWED);
    drop((one, live.lease().unwrap()));
    drop(other);
    assert_eq!(server.seconds(), [120.0, 120.0, 0.0]);
}

#[test]
fn a_rejection_within_a_race_delays_the_scenario_once_and_leaves_the_rate() {
    const RACERS: usize = 2;
    let (listener, origin) = listener();
    let serving = std::thread::spawn(move || {
        for nth in 0..=RACERS {
            let (mut socket, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                socket.read_exact(&mut byte).unwrap();
                asked.extend(byte);
            }
            let answer = match nth {
                RACERS => "200 OK",
                _ => "429 Busy\r\nRetry-After: 1",
            };
            write_head(&mut socket, answer);
        }
    });
    let live = live_at(&origin, "chat");
    let all = plan::all(conformant_judge::load::shared());
    let session = live.open(&all[0]).unwrap();
    let request = Request::new("GET", "/v2/Services");
    let service = "chat";
    let racer = Action::Request {
        service,
        request: &request,
    };
    let began = clock::monotonic();
    let acted = session.act_concurrently(&[racer; RACERS]).unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1));
    for one in acted {
        let ActionResult::Response(Ok(response)) = one.result else {
            panic!("{one:?}");
        };
        assert_eq!(response.status, 429);
    }
    assert!(!live.schedule.is_limited(), "the rate stays");
    assert_eq!(session.send(service, &request).unwrap().status, 200);
    serving.join().unwrap();
}

#[test]
fn a_change_that_overlaps_another_one_is_known_and_the_next_ones_wait() {
    let (listener, origin) = listener();
    let serving = std::thread::spawn(move || {
        // Both arrive before one is answered; the last two do not overlap.
        for together in [2, 1, 1] {
            let arrived: Vec<_> = (0..together)
                .map(|_| listener.accept().unwrap().0)
                .collect();
            for mut socket in arrived {
                let _head = socket.read(&mut [0; 4096]).unwrap();
                write_head(&mut socket, "409 Busy");
            }
        }
    });
    let live = live_at(&origin, "chat");
    let all = plan::all(conformant_judge::load::shared());
    let send_both = || {
        std::thread::scope(|scope| {
            let sending = [0, 1].map(|nth| {
                let (live, planned) = (&live, &all[nth]);
                scope.spawn(move || {
                    let session = live.open(planned).unwrap();
                    let change = Request::new("POST", "/v2/Services");
                    assert_eq!(session.send("chat", &change).unwrap().status, 409);
                    session.avoid_overlap()
                })
            });
            sending.map(|one| one.join().unwrap())
        })
    };
    assert_eq!(send_both(), [true, true]);
    assert_eq!(send_both(), [false, false]);
    serving.join().unwrap();
}

#[test]
fn only_callbacks_of_broken_rules_are_waited_for_briefly() {
    let live = live("auth");
    let all = plan::all(conformant_judge::load::shared());
    let max = |rules: &[&str]| {
        let session = live.open(&all[0]).unwrap();
        session.callback_max(Duration::ZERO, rules).as_secs()
    };
    let miss = || {
        let session = live.open(&all[0]).unwrap();
        session.callback_missing(&["auth/a".to_owned()]);
    };
    miss();
    assert_eq!(max(&["auth/a"]), 30, "one wait may be an accident");
    let session = live.open(&all[0]).unwrap();
    session.callbacks_came(&["auth/a"], &[]);
    miss();
    assert_eq!(max(&["auth/a"]), 30, "one came in between");
    session.callbacks_came(&["auth/a", "auth/b"], &["auth/a".to_owned()]);
    miss();
    assert_eq!(max(&["auth/a"]), 5);
    for others in [&["auth/a", "auth/b"][..], &["auth/b"], &[]] {
        assert_eq!(max(others), 30, "{others:?} may break another rule");
    }
    session.callback_took(Duration::from_secs(2));
    assert_eq!(max(&["auth/a"]), 10, "others are that slow");
    session.callback_took(Duration::from_secs(20));
    assert_eq!(max(&["auth/a"]), 30);
}

fn live(service: &str) -> Live {
    live_at("http://127.0.0.1:9", service)
}

fn live_at(origin: &str, service: &str) -> Live {
    let target = Target::of_reference(service, &format!("{origin}/{service}"));
    let settings = Settings {
        targets: [(service.to_owned(), target)].into(),
        ..Settings::default()
    };
    let options = LiveOptions {
        limits: Limits::default(),
        jobs: 2,
        deadline: clock::monotonic() + Duration::from_secs(60),
        notify: Box::new(|_| {}),
        probes: BTreeMap::new(),
    };
    Live::new(settings, options, &Arc::default()).unwrap()
}

#[test]
fn walks_of_shared_lists_are_exclusive() {
    let rulebook = conformant_judge::load::shared();
    let live = live("flow");
    let all = plan::all(rulebook);
    let alone = |id: &str| {
        let planned = all.iter().find(|p| p.scenario.id == id).unwrap();
        live.resource_claim(planned).concurrency == Concurrency::Exclusive
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
