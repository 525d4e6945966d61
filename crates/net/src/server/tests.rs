//! The server over real sockets, and many sandboxes at once.

use super::*;
use crate::transport::{BaseUrl, Client, Limits};
use base64::Engine as _;
use conformant_base::clock;
use conformant_reference::account;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

fn started(settings: Settings) -> Server {
    Server::start(settings).unwrap()
}

fn still(seed: u64) -> Settings {
    Settings {
        seed,
        virtual_clock: true,
        ..Settings::default()
    }
}

/// One exchange over HTTP, with an API key or without credentials.
fn exchange(method: &str, url: &str, form: &str, signed: bool) -> Response {
    let authority = url.find("/_world").or(url.find("/flow")).unwrap();
    let base = BaseUrl::parse(&url[..authority]).unwrap();
    let mut request = Request::new(method, &url[authority..]);
    if signed {
        let key = format!("{}:{}", account::API_KEY, account::API_SECRET);
        let encoded = base64::engine::general_purpose::STANDARD.encode(key);
        request
            .headers
            .set("Authorization", format!("Basic {encoded}"));
    }
    request
        .headers
        .set("Content-Type", "application/x-www-form-urlencoded");
    request.body = form.into();
    let within = Duration::from_secs(10);
    Client::new(Limits::default())
        .send(&base, &request, within)
        .unwrap()
}

/// Status and body of one exchange over HTTP.
fn ask(method: &str, url: &str, form: &str) -> (u16, String) {
    let response = exchange(method, url, form, true);
    (response.status, String::from_utf8(response.body).unwrap())
}

/// Runs a short scenario at that address, following links, and returns all responses.
fn scenario(base: &str) -> String {
    let (_, flows) = ask("GET", &format!("{base}/flow/v1/Flows"), "");
    let listed: Value = serde_json::from_str(&flows).unwrap();
    let executions = listed["flows"][0]["links"]["executions"].as_str().unwrap();
    assert!(
        executions.starts_with(base),
        "{executions} is not below {base}"
    );
    let (status, made) = ask("POST", executions, "To=%2B15551234567&From=%2B15557654321");
    assert_eq!(status, 201, "{made}");
    let (status, page) = ask("GET", executions, "");
    assert_eq!(status, 200, "{page}");
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(
        page["executions"].as_array().unwrap().len(),
        1,
        "sandboxes share no state"
    );
    format!("{flows}\n{made}\n{page}").replace(base, "BASE")
}

#[test]
fn sandboxes_are_isolated_and_follow_their_seed() {
    let one = started(still(1));
    let other = started(still(1));
    let named = scenario(&one.world_url("a"));
    assert_eq!(named, scenario(&other.world_url("a")));
    assert_ne!(named, scenario(&one.world_url("b")));
    assert_ne!(named, scenario(one.url()));
    assert_ne!(named, scenario(&started(still(2)).world_url("a")));
    // A dropped sandbox is recreated.
    assert!(one.drop_world("a"));
    assert!(!one.drop_world("a"));
    assert_eq!(named, scenario(&one.world_url("a")));
    assert_eq!(ask("DELETE", &one.world_url("a"), "").0, 204);
    assert_eq!(ask("DELETE", &one.world_url("a"), "").0, 404);
    assert_eq!(named, scenario(&one.world_url("a")));
}

#[test]
fn a_sandbox_responds_equally_with_and_without_a_socket() {
    let server = started(still(1));
    let settings = conformant_reference::Settings {
        seed: world_seed(1, "a"),
        origin: server.world_url("a"),
        faults: [Fault::FlowCredentialsNotNeeded].into(),
        ..conformant_reference::Settings::default()
    };
    let world = World::new(settings, WorldClock::stands_still(), Arc::new(HttpDelivery));
    let inside = world.handle(&Request::new("GET", "/flow/v1/Flows"));
    let (_, outside) = ask("GET", &(server.world_url("a") + "/flow/v1/Flows"), "");
    assert_eq!(String::from_utf8(inside.body).unwrap(), outside);
}

#[test]
fn bodies_and_the_number_of_sandboxes_are_bounded() {
    let worlds = Worlds::new(still(1), "http://x".to_owned(), Arc::default()).unwrap();
    let mut request = Request::new("POST", "/flow/v1/Flows");
    request.body = vec![b'a'; Worlds::BODY_BYTES_MAX + 1];
    assert_eq!(worlds.answer(request).response.status, 413);
    let enter = |name: usize| worlds.answer(Request::new("GET", format!("/_world/{name}/flow")));
    for name in 0..Worlds::WORLDS_MAX {
        assert_ne!(enter(name).response.status, 503, "{name}");
    }
    assert_eq!(enter(Worlds::WORLDS_MAX).response.status, 503);
    assert!(worlds.forget("7"));
    assert_ne!(enter(Worlds::WORLDS_MAX).response.status, 503);
}

#[test]
fn names_of_sandboxes_are_checked() {
    let server = started(still(1));
    let check = |name: &str, status: u16| {
        let url = format!("{}/_world/{name}/flow/v1/Flows", server.url());
        assert_eq!(ask("GET", &url, "").0, status, "{name}");
    };
    check("flow-executions.1_a", 200);
    check(&"x".repeat(64), 200);
    check(&"x".repeat(65), 404);
    check("a%20b", 404);
    check(".hidden", 404);
}

#[test]
fn concurrent_sandboxes_respond_as_in_sequence() {
    let server = started(still(5));
    let alone = started(still(5));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (server, alone) = (&server, &alone);
            scope.spawn(move || {
                for round in 0..4 {
                    let name = format!("w{thread}-{round}");
                    let together = scenario(&server.world_url(&name));
                    assert_eq!(together, scenario(&alone.world_url(&name)), "{name}");
                }
            });
        }
    });
}

#[test]
fn one_sandbox_serves_many_threads() {
    let server = started(still(6));
    let (_, flows) = ask("GET", &format!("{}/flow/v1/Flows", server.url()), "");
    let flows: Value = serde_json::from_str(&flows).unwrap();
    let executions = flows["flows"][0]["links"]["executions"].as_str().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    ask("POST", executions, "To=%2B15551234567&From=%2B15557654321");
                }
            });
        }
    });
    let (_, page) = ask("GET", executions, "");
    let page: Value = serde_json::from_str(&page).unwrap();
    let sids: BTreeSet<_> = page["executions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|execution| execution["sid"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(sids.len(), 40);
}

#[test]
fn a_port_can_be_chosen_and_is_freed() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    let chosen = Settings {
        port: Some(port),
        ..still(1)
    };
    let Err(Error::Listen { port: refused, .. }) = Server::start(chosen.clone()) else {
        panic!("the port is taken");
    };
    assert_eq!(refused, port);
    drop(free);
    let server = started(chosen);
    assert_eq!(server.url(), format!("http://127.0.0.1:{port}"));
    scenario(server.url());
    scenario(&server.world_url("a"));
    drop(server);
    for _ in 0..100 {
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return;
        }
        clock::sleep(Duration::from_millis(20));
    }
    panic!("the port is still taken");
}

#[test]
fn faults_and_variants_apply_to_every_sandbox() {
    let server = started(Settings {
        faults: [Fault::FlowCredentialsNotNeeded].into(),
        variants: [Variant::CharsetParameter].into(),
        ..still(1)
    });
    for base in [server.url(), &server.world_url("a")] {
        let response = exchange("GET", &format!("{base}/flow/v1/Flows"), "", false);
        assert_eq!(response.status, 200);
        let kind = response.headers.get("Content-Type");
        assert_eq!(kind, Some("application/json; charset=utf-8"));
    }
}

/// Starts a receiver that responds with these statuses in turn and forwards request lines.
fn receiver(statuses: Vec<u16>) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook?x=1", listener.local_addr().unwrap());
    let (sender, seen) = mpsc::channel();
    std::thread::spawn(move || {
        for status in statuses {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = vec![0; 4096];
            let count = stream.read(&mut bytes).unwrap();
            let head = String::from_utf8_lossy(&bytes[..count]).into_owned();
            sender
                .send(head.lines().next().unwrap().to_owned())
                .unwrap();
            if status > 0 {
                let answer = format!(
                    "HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
                stream.write_all(answer.as_bytes()).unwrap();
            } else {
                // Sends nothing until the sender gives up.
                drop(stream.read(&mut bytes));
            }
        }
    });
    (url, seen)
}

#[test]
fn callbacks_are_delivered_over_http_and_retried() {
    let check = |statuses: &[u16], attempts: usize| {
        let (url, seen) = receiver([statuses, &[200; 4]].concat());
        let settings = conformant_reference::Settings::default();
        let world = World::new(settings, WorldClock::stands_still(), Arc::new(HttpDelivery));
        let world = Arc::new(world);
        let dispatcher = Dispatcher::default();
        let mut request = Request::new("POST", "");
        request.body = b"a=b".to_vec();
        let callbacks = world.callbacks(&url, request, Duration::from_millis(300), 3);
        dispatcher.take(&world, callbacks);
        for attempt in 0..attempts {
            let line = seen.recv_timeout(Duration::from_secs(10)).unwrap();
            assert_eq!(line, "POST /hook?x=1 HTTP/1.1", "{statuses:?} {attempt}");
        }
        assert!(
            seen.recv_timeout(Duration::from_millis(100)).is_err(),
            "{statuses:?}"
        );
    };
    check(&[200], 1);
    check(&[500], 1);
    check(&[503, 429, 504, 503], 4);
    check(&[0, 200], 2);
}

#[test]
fn a_silent_receiver_delays_no_other() {
    let (slow, slow_seen) = receiver(vec![0]);
    let (quick, quick_seen) = receiver(vec![200; 2]);
    let settings = conformant_reference::Settings::default();
    let world = World::new(settings, WorldClock::stands_still(), Arc::new(HttpDelivery));
    let world = Arc::new(world);
    let dispatcher = Dispatcher::default();
    for url in [&slow, &quick, &quick] {
        let within = Duration::from_secs(30);
        let callbacks = world.callbacks(url, Request::new("GET", ""), within, 0);
        dispatcher.take(&world, callbacks);
    }
    for seen in [&slow_seen, &quick_seen, &quick_seen] {
        let line = seen.recv_timeout(Duration::from_secs(15)).unwrap();
        assert_eq!(line, "GET /hook?x=1 HTTP/1.1");
    }
    dispatcher.close();
}
