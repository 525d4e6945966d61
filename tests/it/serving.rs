//! `serve` for development: scripted answers, seed data, export, switches, CORS, log, start and stop.

use crate::hostile::command::{conformant, write};
use crate::program::{BASIC, Folder, Served};
use conformant_base::clock;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The received part of a response.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    fn field(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }
}

impl Served {
    /// One exchange on a connection of its own; none without a response.
    fn ask(&self, method: &str, target: &str, fields: &str, body: &str) -> Option<Answer> {
        let host = self.url.strip_prefix("http://").expect("plain HTTP");
        let mut stream = TcpStream::connect(host).expect("it listens");
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic {BASIC}\r\n{fields}\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        let answer = String::from_utf8(answer).expect("text");
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some(Answer {
            status: head.split(' ').nth(1)?.parse().ok()?,
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }

    fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, "", "").expect("an answer")
    }

    fn form(&self, target: &str, form: &str) -> Option<Answer> {
        let form_type = "Content-Type: application/x-www-form-urlencoded\r\n";
        self.ask("POST", target, form_type, form)
    }

    fn control(&self, name: &str, body: &Value) -> Answer {
        let fields = "Content-Type: application/json\r\n";
        let target = format!("/_control/{name}");
        let answer = self.ask("POST", &target, fields, &body.to_string());
        answer.expect("an answer")
    }

    /// Statuses of calls that create a service each.
    fn statuses(&self, world: &str, count: usize) -> Vec<u16> {
        let target = format!("{world}/chat/v2/Services");
        let made = (0..count).map(|_| self.form(&target, "FriendlyName=a"));
        made.map(|answer| answer.map_or(0, |answer| answer.status))
            .collect()
    }
}

#[test]
fn the_nth_call_gets_the_scripted_answer() {
    let folder = Folder::with_limits();
    let script = json!([
        {"name": "gone", "on": "chat/create-service", "calls": "3-4", "answer": "503:7"},
        {"name": "lost", "on": "POST /chat/v2/Services", "calls": 5, "answer": "cut"},
    ]);
    folder.write("script.json", script.to_string());
    let serving = Served::start(
        &folder,
        &[
            "--script",
            "script.json",
            "--answer",
            "2@chat/create-service=429:2",
        ],
    );
    assert_eq!(serving.statuses("", 6), [201, 429, 503, 503, 0, 201]);
    // Each instance counts separately.
    assert_eq!(serving.statuses("/_world/a", 2), [201, 429]);
    let reply = serving.get("/_control").json();
    let listed = &reply["script"];
    assert_eq!(listed[0]["name"], "script-1", "{reply}");
    assert_eq!(listed[1]["answer"], "503:7", "{reply}");
    assert_eq!(
        (&listed[1]["called"], &listed[1]["played"]),
        (&json!(6), &json!(2))
    );
    // The request without a response was executed.
    let services = serving.get("/chat/v2/Services").json();
    assert_eq!(services["services"].as_array().map(Vec::len), Some(3));
    // A rejected request has its reason and is not executed.
    serving.control("reset", &json!({}));
    assert_eq!(serving.statuses("", 1), [201]);
    let busy = serving
        .form("/chat/v2/Services", "FriendlyName=a")
        .expect("an answer");
    assert_eq!((busy.status, busy.field("Retry-After")), (429, Some("2")));
}

#[test]
fn the_control_plane_scripts_while_it_runs() {
    let folder = Folder::with_limits();
    let serving = Served::start(&folder, &[]);
    assert_eq!(serving.statuses("", 1), [201]);
    let whole = serving.get("/chat/v2/Services");
    let add = |script: Value| serving.control("script", &script);
    add(json!({"name": "half", "on": "chat/read-services", "calls": 1, "answer": "truncate"}));
    let half = serving.get("/chat/v2/Services");
    assert_eq!(half.status, 200);
    assert!(whole.body.starts_with(&half.body), "{half:?}");
    assert_eq!(half.body.len(), whole.body.len() / 2);
    add(json!({"name": "slow", "on": "chat/read-services", "calls": 1, "answer": "delay:400ms"}));
    let began = clock::monotonic();
    assert_eq!(serving.get("/chat/v2/Services").body, whole.body);
    assert!(began.elapsed() >= Duration::from_millis(400));
    // A stale response shows the state before the last change.
    add(json!({"name": "old", "on": "chat/read-services", "answer": "stale"}));
    assert_eq!(serving.statuses("", 1), [201]);
    let count = |answer: &Answer| answer.json()["services"].as_array().map(Vec::len);
    assert_eq!(count(&serving.get("/chat/v2/Services")), Some(1));
    let removed = serving
        .ask("DELETE", "/_control/script/old", "", "")
        .expect("an answer");
    assert_eq!(removed.status, 200);
    assert_eq!(count(&serving.get("/chat/v2/Services")), Some(2));
    let wrong = add(json!({"on": "chat/create-servce", "answer": "cut"}));
    assert_eq!(wrong.status, 422);
    assert!(wrong.body.contains("matches no operation"), "{wrong:?}");
    let wrong = add(json!({"on": "*", "answer": "418"}));
    assert!(
        wrong.status == 422 && wrong.body.contains("invalid answer"),
        "{wrong:?}"
    );
}

#[test]
fn faults_and_variants_are_switched_while_it_runs() {
    let folder = Folder::with_limits();
    let serving = Served::start(&folder, &[]);
    let size = |serving: &Served| {
        serving.get("/flow/v1/Flows?PageSize=3").json()["meta"]["page_size"].clone()
    };
    assert_eq!(size(&serving), 3);
    let reply = serving
        .control("switch", &json!({"fault": "flow/meta-page-size-wrong"}))
        .json();
    assert_eq!(reply["faults"], json!(["flow/meta-page-size-wrong"]));
    assert_ne!(size(&serving), 3);
    serving.control(
        "switch",
        &json!({"fault": "flow/meta-page-size-wrong", "on": false}),
    );
    assert_eq!(size(&serving), 3);
    let wrong = serving.control("switch", &json!({"fault": "flow/no-such-fault"}));
    assert_eq!(wrong.status, 422);
}

#[test]
fn a_world_is_exported_and_begins_elsewhere_as_it_was() {
    let folder = Folder::with_limits();
    let one = Served::start(&folder, &["--seed", "7"]);
    let made = one
        .form("/chat/v2/Services", "FriendlyName=%C3%A4%26b")
        .expect("an answer");
    let service = made.json()["sid"].as_str().expect("a SID").to_owned();
    let users = format!("/chat/v2/Services/{service}/Users");
    one.form(&users, "Identity=alice&Attributes=%7B%22a%22%3A1%7D")
        .expect("an answer");
    one.form(&users, "Identity=alice").expect("a refusal");
    one.control("create_flow", &json!({"friendly_name": "mine"}));
    let lists = [users.as_str(), "/chat/v2/Services", "/flow/v1/Flows"];
    let shown = |serving: &Served| {
        let shown = lists.map(|list| serving.get(list).body.replace(&serving.url, ""));
        // Each process has its own dates.
        let dates = regex::Regex::new(r"\d{4}-\d\d-\d\dT[^\x22]*").expect("a pattern");
        shown.map(|text| dates.replace_all(&text, "DATE").into_owned())
    };
    let export = one.get("/_control/export");
    assert!(!export.body.contains(BASIC), "{export:?}");
    folder.write("world.ndjson", export.body);
    let other = Served::start(&folder, &["--seed-data", "world.ndjson"]);
    assert_eq!(shown(&one), shown(&other));
    // Each instance begins with this state, also after a reset.
    let first = shown(&other);
    other
        .form("/chat/v2/Services", "FriendlyName=more")
        .expect("an answer");
    assert_ne!(shown(&other), first);
    other.control("reset", &json!({}));
    assert_eq!(shown(&other), first);
    let named = other.get("/_world/a/chat/v2/Services");
    assert_eq!(named.json()["services"][0]["sid"], service.as_str());
    let worlds = other.get("/_control/worlds").json();
    assert_eq!(worlds, json!({"worlds": ["a"]}));
    // An import replaces the present state.
    let lines = "{\"path\": \"/chat/v2/Services\", \"form\": {\"FriendlyName\": \"x\"}, \"as\": \"s\"}\n\
                 {\"path\": \"/chat/v2/Services/${s.sid}/Users\", \"form\": {\"Identity\": \"bob\"}}\n";
    let imported = other
        .ask("POST", "/_control/import", "", lines)
        .expect("an answer");
    assert_eq!(imported.status, 200, "{imported:?}");
    let services = other.get("/chat/v2/Services").json();
    assert_eq!(services["services"][0]["friendly_name"], "x");
    let refused =
        "{\"path\": \"/chat/v2/Services/IS0/Users\", \"form\": {\"Identity\": \"bob\"}}\n";
    let refused = other
        .ask("POST", "/_control/import", "", refused)
        .expect("an answer");
    assert!(refused.body.contains("failed with 404"), "{refused:?}");
    assert_eq!(other.get("/chat/v2/Services").json(), services);
}

#[test]
fn a_generated_data_set_is_served() {
    let folder = Folder::with_limits();
    let words = "fixtures generate --world --count 500 --seed 3 --format seed-data";
    let made = conformant(&folder)
        .args(words.split(' '))
        .output()
        .expect("it starts");
    assert!(made.status.success(), "{made:?}");
    let text = String::from_utf8(made.stdout).expect("text");
    folder.write("world.ndjson", text);
    let serving = Served::start(&folder, &["--seed-data", "world.ndjson"]);
    let worlds = serving.get("/_control/worlds").json();
    assert_eq!(worlds, json!({"worlds": ["account-1"]}));
    for world in ["", "/_world/account-1"] {
        let services = serving.get(&format!("{world}/chat/v2/Services")).json();
        let sid = services["services"][0]["sid"].as_str().expect("a service");
        let channels = serving
            .get(&format!("{world}/chat/v2/Services/{sid}/Channels"))
            .json();
        let channels = channels["channels"].as_array().expect("a list");
        assert!(
            channels
                .iter()
                .any(|channel| channel["messages_count"] != 0),
            "{channels:?}"
        );
    }
}

#[test]
fn cors_allows_given_origins_but_never_the_control_plane() {
    let folder = Folder::with_limits();
    let serving = Served::start(&folder, &["--cors", "http://app.example"]);
    let origin = "Origin: http://app.example\r\n";
    let asked =
        "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n";
    let fields = format!("{origin}{asked}");
    let before = serving
        .ask("OPTIONS", "/chat/v2/Services", &fields, "")
        .expect("an answer");
    assert_eq!(before.status, 204);
    assert_eq!(
        before.field("Access-Control-Allow-Headers"),
        Some("authorization")
    );
    let got = serving
        .ask("GET", "/chat/v2/Services", origin, "")
        .expect("an answer");
    assert_eq!(
        got.field("Access-Control-Allow-Origin"),
        Some("http://app.example")
    );
    let other = "Origin: http://evil.example\r\n";
    let got = serving
        .ask("GET", "/chat/v2/Services", other, "")
        .expect("an answer");
    assert_eq!(got.field("Access-Control-Allow-Origin"), None);
    for target in ["/_control/reset", "/_world/a/_control/reset"] {
        let asked = serving.ask("POST", target, origin, "").expect("an answer");
        assert_eq!(asked.status, 403, "{target}");
        assert_eq!(asked.field("Access-Control-Allow-Origin"), None);
    }
}

#[test]
fn the_log_lists_requests_without_secrets() {
    let folder = Folder::with_limits();
    let log = folder.join("log.ndjson");
    let serving = Served::start(
        &folder,
        &["--log", "log.ndjson", "--answer", "1@flow/read-flows=429"],
    );
    serving.get("/flow/v1/Flows");
    serving.get("/_world/a/chat/v2/Services?api_key=reference-production-api-key-0001");
    let text = std::fs::read_to_string(log).expect("it is written");
    assert!(
        !text.contains("reference-production-api-key-0001"),
        "{text}"
    );
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(
        (&lines[0]["status"], &lines[0]["scripted"]),
        (&json!(429), &json!("script-1"))
    );
    assert_eq!(lines[1]["world"], "a");
}

#[test]
fn the_ready_file_is_complete_and_the_process_exits_with_its_parent() {
    let folder = Folder::with_limits();
    let ready = folder.join("ready");
    // A shell that starts it and ends.
    let line = format!(
        "{} serve --ready-file ready --exit-with-parent >out 2>&1 & while [ ! -e ready ]; do sleep 0.05; done; echo $!",
        env!("CARGO_BIN_EXE_conformant")
    );
    let shell = Command::new("sh")
        .args(["-c", &line])
        .current_dir(&*folder)
        .output();
    let shell = shell.expect("a shell");
    let url = std::fs::read_to_string(ready).expect("it is there");
    let host = url.trim().strip_prefix("http://").expect("an address");
    let pid = String::from_utf8_lossy(&shell.stdout).trim().to_owned();
    let began = clock::monotonic();
    while TcpStream::connect(host).is_ok() {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{pid} still serves"
        );
        clock::sleep(Duration::from_millis(20));
    }
}

#[test]
fn invalid_settings_are_reported_at_start() {
    let folder = Folder::with_limits();
    folder.write("bad.ndjson", "{\"path\": \"/chat/v2/Services/IS1\"}\n");
    for (arguments, expected) in [
        (
            ["--seed-data", "bad.ndjson"],
            "failed to seed the default sandbox: request 1 of the seed data",
        ),
        (
            ["--answer", "chat/nothing=cut"],
            "no operation is named chat/nothing",
        ),
        (
            ["--answer", "chat/create-service"],
            "invalid scripted answer",
        ),
    ] {
        let ended = conformant(&folder).arg("serve").args(arguments).output();
        let ended = ended.expect("it starts");
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
        let error = String::from_utf8_lossy(&ended.stderr);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_thousand_idle_clients_do_not_block_others() {
    let folder = Folder::with_limits();
    let serving = Served::start(&folder, &[]);
    let host = serving.url.strip_prefix("http://").expect("plain HTTP");
    let idle: Vec<TcpStream> = (0..1_000)
        .map(|_| TcpStream::connect(host).expect("it listens"))
        .collect();
    assert_eq!(serving.statuses("", 3), [201, 201, 201]);
    drop(idle);
}

#[test]
fn the_page_is_complete_and_shows_events() {
    let folder = Folder::with_limits();
    let serving = Served::start(&folder, &[]);
    let page = serving.get("/");
    assert_eq!(page.status, 200);
    let policy = page.field("Content-Security-Policy").expect("a policy");
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
    assert!(
        policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(page.body.contains("<title>") && !page.body.contains("/* the look of"));
    // Before its script runs, it shows addresses, credentials and a request to try.
    let sample = format!(
        ">curl -u reference-api-key:reference-api-secret {}/flow/v1/Flows<",
        serving.url
    );
    assert!(page.body.contains(&sample), "{}", page.body);
    assert!(
        page.body
            .contains("X-Auth-API-Key: reference-production-api-key-0001")
    );
    assert!(!page.body.contains("ORIGIN") && !page.body.contains("ACCOUNT_"));

    let offered = serving.control("offer_registration", &json!({"custom_user_id": "u1"}));
    let qr = offered.json()["qr"].as_str().expect("a text").to_owned();
    let there = |pointer: &str| {
        let seen = serving.get("/_control/resources").json();
        seen.pointer(pointer).cloned().unwrap_or_default()
    };
    let first = "/auth/registrations/newest/0";
    assert_eq!(there(&format!("{first}/state")), "pending");
    assert!(
        there(&format!("{first}/code/path"))
            .as_str()
            .is_some_and(|path| path.len() > 1000)
    );
    let scanned = serving.control("scan_registration", &json!({ "qr": qr }));
    assert_eq!(scanned.json()["registered"], true);
    assert_eq!(there(&format!("{first}/state")), "completed");

    // A stream continues until its reader leaves.
    let host = serving.url.strip_prefix("http://").expect("plain HTTP");
    let mut stream = TcpStream::connect(host).expect("it listens");
    let request = format!("GET /_control/events?after=1 HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut next = |start: &str| {
        lines
            .find(|line| line.to_ascii_lowercase().starts_with(start))
            .expect("a line")
    };
    let kind = next("content-type");
    assert!(kind.contains("text/event-stream"), "{kind}");
    assert!(next("data: ").contains("scan_registration"));
    serving.form("/chat/v2/Services", "FriendlyName=seen");
    let reply = next("data: ");
    assert!(
        reply.contains("FriendlyName=seen") && !reply.contains(BASIC),
        "{reply}"
    );

    // Pages of other origins cannot use what the page uses.
    for target in ["/_control/resources", "/_control/events"] {
        let evil = "Origin: http://evil.example\r\n";
        assert_eq!(
            serving
                .ask("GET", target, evil, "")
                .expect("an answer")
                .status,
            403
        );
    }
}

/// A run of some scenarios against the flow service with that trusted certificate; returns exit code and output.
fn judged_over_tls(folder: &Path, url: &str, ca: &str) -> (Option<i32>, String) {
    judged_with_certificate(folder, (url, ca), "flow", &["flow/*list*"])
}

/// A run against a service with that trusted certificate and these arguments after `--filter`.
fn judged_with_certificate(
    folder: &Path,
    (url, ca): (&str, &str),
    service: &str,
    filter: &[&str],
) -> (Option<i32>, String) {
    let target = json!({
        "url": format!("{url}/{service}"),
        "username": "reference-api-key",
        "password": "${PASSWORD}",
        "tls": { "ca": ca },
    });
    let config = json!({ "targets": { service: target } });
    write(&folder.join("conformant.yaml"), config.to_string());
    let mut command = conformant(folder);
    command.args(["run", "--min-judged", "0", "--filter"]);
    command.args(filter);
    let out = command.env("PASSWORD", "reference-api-secret").output();
    let out = out.expect("the program starts");
    let output = [out.stdout, out.stderr].concat();
    (
        out.status.code(),
        String::from_utf8_lossy(&output).into_owned(),
    )
}

#[test]
fn tls_is_spoken_with_a_certificate_that_clients_can_be_given() {
    let folder = Folder::with_limits();
    let made_up = Served::start(&folder, &["--tls", "ca.pem"]);
    assert!(
        made_up.url.starts_with("https://127.0.0.1:"),
        "{}",
        made_up.url
    );
    let (code, output) = judged_over_tls(&folder, &made_up.url, "ca.pem");
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("passed: "), "{output}");

    // The certificate of another server is not trusted.
    let other = Served::start(&folder, &["--tls", "other.pem"]);
    let (code, output) = judged_over_tls(&folder, &other.url, "ca.pem");
    assert_eq!(code, Some(3), "{output}");
    assert!(output.contains("invalid peer certificate"), "{output}");

    let names = vec!["127.0.0.1".to_owned()];
    let given = rcgen::generate_simple_self_signed(names).expect("a certificate");
    for (file, pem) in [
        ("given.pem", given.cert.pem()),
        ("key.pem", given.signing_key.serialize_pem()),
    ] {
        std::fs::write(folder.join(file), pem).expect("the disk is writable");
    }
    let flags = ["--tls-certificate", "given.pem", "--tls-key", "key.pem"];
    let given = Served::start(&folder, &flags);
    let (code, output) = judged_over_tls(&folder, &given.url, "given.pem");
    assert_eq!(code, Some(0), "{output}");

    for words in [
        &["--tls-certificate", "ca.pem"][..],
        &["--tls-certificate", "ca.pem", "--tls-key", "ca.pem"],
    ] {
        let mut command = conformant(&folder);
        let out = command.arg("serve").args(words).output();
        assert_eq!(
            out.expect("the program starts").status.code(),
            Some(2),
            "{words:?}"
        );
    }
}

#[test]
fn a_race_over_tls_is_found_and_a_clean_target_passes() {
    let folder = Folder::with_limits();
    let filter = ["chat/create-channel/race-unique-name", "--rounds", "20"];
    for (flags, expected) in [
        (&["--tls", "ca.pem"][..], 0),
        (
            &["--tls", "ca.pem", "--fault", "chat/race-unique-name"][..],
            1,
        ),
    ] {
        let serving = Served::start(&folder, flags);
        let target = (serving.url.as_str(), "ca.pem");
        let (code, output) = judged_with_certificate(&folder, target, "chat", &filter);
        assert_eq!(code, Some(expected), "{flags:?}: {output}");
        let names_the_race = output.contains("requests sent at the same time");
        assert_eq!(names_the_race, expected == 1, "{output}");
    }
}

#[test]
fn links_begin_with_the_name_that_a_client_used() {
    let folder = Folder::with_limits();
    let serving = Served::start(&folder, &["--host", "0.0.0.0"]);
    let port = serving.url.rsplit(':').next().expect("a port");
    let links = |host: &str| {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
        let request = format!(
            "GET /_world/a/flow/v1/Flows HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic {BASIC}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    for host in ["localhost:7", "build-host.example"] {
        let link = format!("\"url\":\"http://{host}/_world/a/flow/v1/Flows");
        assert!(links(host).contains(&link), "{host}");
    }
    assert!(
        !links("a\"b").contains("a\\\"b"),
        "an invalid name is not part of a link"
    );
}
