//! The sessions that README.md shows, played: what it shows is what is said today.

use crate::program::{Served, conformant, copy_of};
use crate::sessions::{self, Session};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

fn sessions(begin: &str) -> Vec<Session> {
    let mut sessions = sessions::of("README.md");
    sessions.retain(|session| session.arguments.join(" ").starts_with(begin));
    assert!(
        !sessions.is_empty(),
        "README.md shows no `conformant {begin}`"
    );
    sessions
}

#[test]
fn the_gate() {
    let folder = tempfile::tempdir().expect("there is room");
    let served = Served::start(folder.path(), &["--fault", "flow/meta-page-size-wrong"]);
    for session in sessions("run --target") {
        session
            .with("http://127.0.0.1:4010", &served.url)
            .play(folder.path());
    }
    let mut execution = crate::program::first_fixture("flow/execution");
    execution["status"] = "running".into();
    let file = folder.path().join("execution.json");
    std::fs::write(file, execution.to_string()).expect("there is room");
    for session in sessions("check") {
        session.play(folder.path());
    }
}

#[test]
fn the_proxy() {
    let folder = tempfile::tempdir().expect("there is room");
    let served = Served::start(folder.path(), &["--fault", "flow/meta-page-size-wrong"]);
    for session in sessions("proxy") {
        let session = session
            .with("http://127.0.0.1:4010", &served.url)
            .with("4020", "0");
        let arguments = session.arguments.iter().map(String::as_str);
        let arguments: Vec<&str> = arguments.chain(["--max-exchanges", "1"]).collect();
        let mut proxy = conformant(folder.path(), &arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program can be started");
        let mut out = BufReader::new(proxy.stdout.take().expect("it is piped"));
        let mut said = String::new();
        out.read_line(&mut said).expect("it prints its address");
        let address = said
            .trim()
            .strip_prefix("listening http://")
            .expect("it comes first");
        let mut client = TcpStream::connect(address).expect("it listens");
        // Basic, with the credentials that README.md shows for the reference.
        let credentials = base64_of("reference-api-key:reference-api-secret");
        write!(
            client,
            "GET /flow/v1/Flows HTTP/1.1\r\nHost: {address}\r\nAuthorization: Basic {credentials}\r\nConnection: close\r\n\r\n"
        )
        .expect("it takes requests");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let port = address.rsplit(':').next().unwrap_or_default().to_owned();
        out.read_to_string(&mut said).expect("it prints text");
        assert_eq!(proxy.wait().expect("it ends").code(), Some(1), "{said}");
        session
            .with("127.0.0.1:0", &format!("127.0.0.1:{port}"))
            .is_shown_in(&said);
    }
}

fn base64_of(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[test]
fn a_version_bump_and_fixtures() {
    let folder = tempfile::tempdir().expect("there is room");
    copy_of(&["specs"], folder.path());
    let specs = folder.path().join("specs");
    for session in sessions("events new") {
        let mut session = session;
        session
            .arguments
            .extend(["--specs", "specs"].map(str::to_owned));
        session.play(folder.path());
    }
    // What README.md says was edited: an attempt is a number, and the words say so.
    let version = specs.join("events/MessageSent/5.yaml");
    let text = std::fs::read_to_string(&version).expect("it was begun");
    let edited = text
        .replacen(
            "description: A message was handed",
            "description: Another message was handed",
            1,
        )
        .replacen(
            "attempt:\n    type: [string, \"null\"]",
            "attempt:\n    type: [integer, \"null\"]",
            1,
        );
    std::fs::write(&version, edited).expect("it can be written");
    for session in sessions("diff") {
        session.play(folder.path());
    }
    for session in sessions("fixtures") {
        // A million documents are for a person who waits.
        session.with("1000000", "10").play(folder.path());
    }
}
