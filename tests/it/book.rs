//! The book's sessions, played, and every command that it shows, as the program reads it.

use crate::program::{Served, conformant, files, root};
use crate::sessions::{self, Session, words};
use clap::CommandFactory;
use clap::error::ErrorKind;
use regex::Regex;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Stdio;

/// The pages that people write; the others are made.
fn pages() -> Vec<String> {
    let pages = files(&root().join("docs/src"), &["md"]).into_iter();
    let names = pages.map(|path| path.file_name().map(|n| n.to_string_lossy().into_owned()));
    let made = ["rules.md", "settings.md", "SUMMARY.md"];
    names
        .flatten()
        .filter(|name| !made.contains(&name.as_str()))
        .map(|name| format!("docs/src/{name}"))
        .collect()
}

fn begins(session: &Session, words: &[&str]) -> bool {
    session.arguments.iter().zip(words).all(|(a, b)| a == b)
}

/// Where the book's examples listen.
const SHOWN: &str = "http://127.0.0.1:4010";

#[test]
fn every_session_goes_as_written() {
    let mut played = 0;
    for page in pages() {
        let folder = tempfile::tempdir().expect("there is room");
        let fault = ["--fault", "flow/meta-page-size-wrong"];
        let mut served = None;
        for session in sessions::of(&page) {
            played += 1;
            if begins(&session, &["serve"]) {
                listens(session);
                continue;
            }
            if session.arguments.iter().any(|word| word.contains(SHOWN)) {
                let served = served.get_or_insert_with(|| Served::start(folder.path(), &fault));
                session.with(SHOWN, &served.url).play(folder.path());
            } else {
                session.play(folder.path());
            }
        }
    }
    assert!(played > 12, "{played} sessions");
}

/// `serve` says where it listens, and with `--judge requests` what a client does wrong, as it happens.
fn listens(session: Session) {
    let folder = tempfile::tempdir().expect("there is room");
    let session = session.with("4010", "0");
    let more = session.shown() - 1;
    assert!(more <= 1, "one request is sent, so one line comes");
    let arguments: Vec<&str> = session.arguments.iter().map(String::as_str).collect();
    let mut serve = conformant(folder.path(), &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program can be started");
    let mut out = BufReader::new(serve.stdout.take().expect("it is piped"));
    let mut said = String::new();
    out.read_line(&mut said).expect("it prints its address");
    let (_, address) = said.trim().split_once("http://").expect("an address");
    let address = address.to_owned();
    let mut client = TcpStream::connect(&address).expect("it listens");
    let body = "friendlyName=x";
    write!(
        client,
        "POST /chat/v2/Services HTTP/1.1\r\nHost: {address}\r\nAuthorization: Basic cmVmZXJlbmNlLWFwaS1rZXk6cmVmZXJlbmNlLWFwaS1zZWNyZXQ=\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .expect("it takes requests");
    for _ in 0..more {
        out.read_line(&mut said).expect("it tells");
    }
    serve.kill().expect("it goes on until it is ended");
    serve.wait().expect("it ends");
    let port = address.rsplit(':').next().unwrap_or_default();
    session
        .with("127.0.0.1:0", &format!("127.0.0.1:{port}"))
        .is_shown_in(&said);
}

#[test]
fn every_command_is_one_with_flags_that_it_has() {
    let code =
        Regex::new(r"(?s)```[a-z]*\n(.*?)```|`([^`]+)`").expect("the pattern is well-formed");
    let mut read = 0;
    let mut wrong = Vec::new();
    let mut texts = pages();
    texts.push("README.md".to_owned());
    for page in texts {
        let text = std::fs::read_to_string(root().join(&page)).expect("it is there");
        let spans = code.captures_iter(&text).flat_map(|found| {
            let block = found
                .get(1)
                .or(found.get(2))
                .map_or("", |text| text.as_str());
            block.lines().map(str::to_owned).collect::<Vec<_>>()
        });
        for line in spans {
            let line = line.trim().trim_start_matches("$ ");
            // What follows `>`, `|` or a comment is the shell's.
            let line = line.split(['>', '|', '#']).next().unwrap_or_default();
            // The first is what a run says, not what is said to it.
            let is_said = line.starts_with("conformant in what") || line == "conformant";
            if is_said || !line.starts_with("conformant ") {
                continue;
            }
            let line = line.replace(['[', ']'], "");
            read += 1;
            let parsed = conformant::cli::Cli::command().try_get_matches_from(words(&line));
            // A word in capitals stands for a value that the reader has.
            let is_wrong = |kind| {
                matches!(
                    kind,
                    ErrorKind::UnknownArgument
                        | ErrorKind::InvalidSubcommand
                        | ErrorKind::ArgumentConflict
                )
            };
            if let Err(error) = parsed.map_err(|error| error.kind())
                && is_wrong(error)
            {
                wrong.push(format!("{page}: {line} ({error:?})"));
            }
        }
    }
    assert!(read > 40, "{read} commands");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
