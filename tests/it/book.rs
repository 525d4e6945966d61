//! Runs the commands of the book: each page is one session in a folder of its own, in which later commands use the output
//! of earlier ones.
//!
//! A command that is not run has one of a few reasons in the source of the page. `readme.rs` runs those of README.md.
//! A sample of the pages is run, and those of the last commit.

use crate::program::{
    Served, changed_files, conformant, copy_of, files, first_fixture, one_in, root,
};
use crate::services::{server_of, shown_files, tutorial_files, tutorial_server};
use crate::sessions::Session;
use clap::CommandFactory;
use clap::error::ErrorKind;
use regex::Regex;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// Why a command is not run, and how often that is so. A page says it behind the command or above its
/// block: `<!-- not run: REASON -->`.
const REASONS: [(&str, usize); 2] = [("builds the project", 8), ("other tool", 9)];

/// Address of the book's examples, and their service.
const SHOWN: &str = "http://127.0.0.1:4010";
const GATED: &str = "https://flow.staging.example";
/// The credentials of the reference, as docs/src/serve.md lists them.
const CREDENTIALS: &str = "Basic cmVmZXJlbmNlLWFwaS1rZXk6cmVmZXJlbmNlLWFwaS1zZWNyZXQ=";

/// First words of other programs' commands.
const OTHERS: [&str; 9] = [
    "pip ", "npm ", "cargo ", "docker ", "curl ", "zcat ", "mdbook ", "BLESS=", "openssl ",
];

/// The hand-written pages; the others are generated.
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

/// One command of a page.
struct Shown {
    /// With the output that the page shows, if any.
    session: Session,
    /// The text of the command.
    text: String,
    /// The file of its output.
    into: Option<String>,
    /// Why it is not run, as stated by the page.
    not_run: Option<String>,
}

impl Shown {
    fn new(page: &str, text: &str, around: &str) -> Self {
        let marker = Regex::new("<!-- not run: ([a-z ]+) -->").expect("well-formed");
        let own = text.strip_prefix("conformant ").unwrap_or_default();
        let into = text
            .split_once(" > ")
            .map(|(_, rest)| rest.trim().to_owned());
        Self {
            session: Session::new(page, own),
            text: text.to_owned(),
            into: into.filter(|_| !own.is_empty()),
            not_run: marker.captures(around).map(|found| found[1].to_owned()),
        }
    }

    fn is_ours(&self) -> bool {
        !self.session.arguments.is_empty()
    }

    fn begins(&self, words: &[&str]) -> bool {
        let own = &self.session.arguments;
        own.len() >= words.len() && own.iter().zip(words).all(|(a, b)| a == b)
    }
}

/// The commands of a page, in order: in blocks and in text.
fn commands(page: &str) -> Vec<Shown> {
    let code = Regex::new(r"(?s)```([a-z]*)\n(.*?)```|`([^`]+)`").expect("well-formed");
    let text = std::fs::read_to_string(root().join(page)).expect("it is there");
    let mut shown = Vec::new();
    for found in code.captures_iter(&text) {
        let all = found.get(0).expect("a match is whole");
        if let Some(inline) = found.get(3) {
            let command = inline
                .as_str()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            let behind = text[all.end()..].trim_start();
            let marker = behind.find("-->").filter(|_| behind.starts_with("<!--"));
            if is_command(&command) {
                let around = marker.map_or("", |end| &behind[..end + 3]);
                shown.push(Shown::new(page, &command, around));
            }
            continue;
        }
        // A marker above a block is a line of its own.
        let above = text[..all.start()].trim_end().lines().last();
        let above = above.filter(|line| line.trim_start().starts_with("<!--"));
        let above = above.unwrap_or_default();
        let margin = found[2].len() - found[2].trim_start_matches(' ').len();
        let lines = found[2]
            .lines()
            .map(|line| line.get(margin..).unwrap_or_default());
        match &found[1] {
            "sh" => {
                let lines = lines.filter(|line| !line.trim().is_empty());
                shown.extend(lines.map(|line| Shown::new(page, line, above)));
            }
            "text" => {
                let mut is_session = false;
                for line in lines {
                    if let Some(command) = line.strip_prefix("$ ") {
                        is_session = true;
                        shown.push(Shown::new(page, command, above));
                    } else if let Some(last) = shown.last_mut().filter(|_| is_session) {
                        last.session.prints(line);
                    }
                }
            }
            _ => {}
        }
    }
    shown
}

fn is_command(text: &str) -> bool {
    let is_ours = text.starts_with("conformant ");
    is_ours || OTHERS.iter().any(|tool| text.starts_with(tool))
}

/// Whether it only mentions a command, such as `conformant fixtures export`.
fn is_name(words: &[String]) -> bool {
    let mut command = conformant::cli::Cli::command();
    for word in words {
        let Some(inner) = command.find_subcommand(word) else {
            return false;
        };
        command = inner.clone();
    }
    true
}

#[test]
fn every_command_of_the_book_runs() {
    let all = pages();
    let changed = changed_files("docs/src");
    let sample = one_in(9, all.clone());
    let is_run = |page: &String| sample.contains(page) || changed.contains(page);
    let (pages, others): (Vec<String>, Vec<String>) = all.into_iter().partition(is_run);
    let results = std::thread::scope(|scope| {
        let running = pages.iter().map(|page| scope.spawn(|| run_page(page)));
        let running: Vec<_> = running.collect();
        let results = running
            .into_iter()
            .map(|page| page.join().expect("a page runs to its end"));
        results.collect::<Vec<_>>()
    });
    let mut wrong = Vec::new();
    let (mut executed, mut reasons) = (0, BTreeMap::new());
    for page in results
        .into_iter()
        .chain(others.iter().map(|page| read_page(page)))
    {
        executed += page.commands;
        wrong.extend(page.wrong);
        for reason in page.reasons {
            *reasons.entry(reason).or_insert(0) += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let known: BTreeMap<String, usize> = REASONS.map(|(why, count)| (why.to_owned(), count)).into();
    assert_eq!(reasons, known, "why commands are not run");
    assert!(executed > 45, "{executed} commands");
}

/// A page that is not run this time: its commands are counted.
fn read_page(page: &str) -> PageResult {
    let mut result = PageResult::default();
    for shown in commands(page) {
        result.select(page, shown);
    }
    result
}

/// Result of a page.
#[derive(Default)]
struct PageResult {
    commands: usize,
    reasons: Vec<String>,
    wrong: Vec<String>,
}

impl PageResult {
    /// Counts a command; returns it if it is to be run.
    fn select(&mut self, page: &str, shown: Shown) -> Option<Shown> {
        if let Some(reason) = shown.not_run {
            self.reasons.push(reason);
            return None;
        }
        if !shown.is_ours() {
            let text = &shown.text;
            self.wrong.push(format!(
                "{page}: {text}: a command of others; say why it is not run"
            ));
            return None;
        }
        if is_name(&shown.session.arguments) {
            return None;
        }
        self.commands += 1;
        Some(shown)
    }
}

fn run_page(page: &str) -> PageResult {
    let mut result = PageResult::default();
    let above = tempfile::tempdir().expect("the temporary folder is writable");
    let folder = above.path().join("here");
    std::fs::create_dir(&folder).expect("the temporary folder is writable");
    prepare(page, &folder);
    let hosts = hosts(page, &folder);
    let mut served = None;
    for shown in commands(page) {
        let Some(shown) = result.select(page, shown) else {
            continue;
        };
        let place = format!("{page}: {}", shown.text);
        if shown.begins(&["serve"]) {
            listens(shown.session, &folder);
            continue;
        }
        let texts = std::iter::once(&shown.text);
        let is_asked = texts
            .chain(&shown.session.arguments)
            .any(|t| t.contains(SHOWN) || t.contains(GATED));
        let fault = ["--fault", "flow/meta-page-size-wrong"];
        if is_asked && served.is_none() {
            served = Some(Served::start(&folder, &fault));
        }
        let url = served.as_ref().map_or("", |served| served.url.as_str());
        let is_proxy = shown.begins(&["proxy"]);
        let session = shown
            .session
            .with(SHOWN, url)
            .with(GATED, &format!("{url}/flow"));
        let session = hosts.iter().fold(session, |session, (shown, server)| {
            session.with(shown, &server.url)
        });
        if is_proxy {
            proxies(session, &folder);
            continue;
        }
        // Large numbers are meant for manual use.
        let session = session.with("1000000", "10").with("10000", "200");
        let session = session
            .with("2000", "50")
            .with("flow/read-*", "flow/read-flows/*");
        given(&folder, &session.arguments);
        let (code, out, err) = run_command(&folder, &session.arguments);
        // A declared break is accepted.
        let is_accepted = session.arguments.iter().any(|word| word == "--declare");
        if code > 1 || (is_accepted && code == 1) {
            result
                .wrong
                .push(format!("{place}: exit code {code}\n{out}{err}"));
        }
        session.is_shown_in(&format!("{out}{err}"));
        if let Some(file) = shown.into {
            std::fs::write(folder.join(file), out).expect("the temporary folder is writable");
        }
        written(page, &folder, url);
        edited(page, &folder, &session.arguments);
    }
    result
}

/// Runs a command. A complete run or exploration takes too long, so that only a part of it runs.
fn run_command(folder: &Path, arguments: &[String]) -> (i32, String, String) {
    let mut all: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let has = |flag: &str| arguments.iter().any(|word| word == flag);
    if let Some(at) = all.iter().position(|word| *word == "--budget") {
        all[at + 1] = "25";
    }
    let is_of_others = has("--specs") && (has("--target") || has("--config"));
    if arguments[0] == "run" && !has("--filter") && !has("--since") && !is_of_others {
        all.extend(["--filter", "flow/read-flows/happy"]);
    }
    let output = conformant(folder, &all)
        .env("FLOW_KEY", "reference-api-key")
        .env("FLOW_SECRET", "reference-api-secret")
        .env("ROOMS_KEY", "open-sesame")
        .output()
        .expect("the program can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().expect("it ends by itself");
    (code, text(&output.stdout), text(&output.stderr))
}

/// Files that a page expects.
fn prepare(page: &str, folder: &Path) {
    let put = |path: &str, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("it lies in a folder"))
            .expect("the temporary folder is writable");
        std::fs::write(path, text).expect("the temporary folder is writable");
    };
    match page {
        "docs/src/versions.md" => {
            shown_files(page, folder);
            put(
                "recorded/sent.json",
                &first_fixture("events/MessageSent/4").to_string(),
            );
        }
        "docs/src/archives.md" => put(
            "archive/2026-01/sent.ndjson",
            &first_fixture("events/MessageSent/4").to_string(),
        ),
        "docs/src/reports.md" => copy_of(&["specs"], &folder.with_file_name("next")),
        "docs/src/traffic.md" => {
            let mut execution = first_fixture("flow/execution");
            execution["status"] = "running".into();
            put("execution.json", &execution.to_string());
        }
        "docs/src/scenario.md" => {
            let text = std::fs::read_to_string(root().join(page)).expect("it is there");
            let scenario = text
                .split("```yaml\n")
                .nth(1)
                .and_then(|rest| rest.split("```").next());
            put(
                "own/flow/first.yaml",
                scenario.expect("the page shows a scenario"),
            );
        }
        _ => {}
    }
}

/// Services of other documents that a page calls, by the addresses that it shows.
fn hosts(page: &str, folder: &Path) -> Vec<(&'static str, Served)> {
    if page != "docs/src/own.md" {
        return Vec::new();
    }
    tutorial_files(folder);
    shown_files(page, folder);
    let document = root().join("tests/services/rooms/openapi.yaml");
    std::fs::copy(document, folder.join("openapi.yaml")).expect("it is there");
    let hosts = vec![
        ("http://127.0.0.1:4022", server_of("rooms")),
        ("http://127.0.0.1:4020", tutorial_server(folder, &[])),
    ];
    let file = folder.join("rooms.yaml");
    let text = std::fs::read_to_string(&file).expect("the page shows it");
    std::fs::write(&file, text.replace(hosts[0].0, &hosts[0].1.url))
        .expect("the temporary folder is writable");
    hosts
}

/// Records for commands that compare or merge, if the page does not create them.
fn given(folder: &Path, arguments: &[String]) {
    if !["compare", "merge"].contains(&arguments[0].as_str()) {
        return;
    }
    let is_record = |word: &&String| Path::new(word).extension().is_some_and(|e| e == "json");
    let records = arguments.iter().filter(is_record);
    for (at, record) in records
        .filter(|record| !folder.join(record).exists())
        .enumerate()
    {
        let report = format!("json={record}");
        let part = format!("hash:{}/2", at + 1);
        // Records that are compared have one selection, which is that of `run_command`.
        let mut run = vec!["run", "--report", &report];
        if arguments[0] == "merge" {
            run.extend(["--filter", "flow/read-flows/*", "--partition", &part]);
        }
        let run: Vec<String> = run.into_iter().map(str::to_owned).collect();
        let (code, out, err) = run_command(folder, &run);
        assert!(code < 2, "{out}{err}");
    }
}

/// The configuration that a page shows, written after the preceding command.
fn written(page: &str, folder: &Path, url: &str) {
    let configuration = folder.join("conformant.yaml");
    if page != "docs/src/gate.md" || !configuration.exists() {
        return;
    }
    let text = std::fs::read_to_string(root().join(page)).expect("it is there");
    let block = text
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let block = block
        .expect("the page shows a configuration")
        .replace(GATED, &format!("{url}/flow"));
    let margin = block.len() - block.trim_start_matches(' ').len();
    let lines: Vec<&str> = block
        .lines()
        .map(|line| line.get(margin..).unwrap_or_default())
        .collect();
    std::fs::write(configuration, lines.join("\n")).expect("the temporary folder is writable");
}

/// What the text of a page demands after a command.
fn edited(page: &str, folder: &Path, arguments: &[String]) {
    let replace = |path: &str, from: &str, to: &str| {
        let path = folder.join("specs/events").join(path);
        let text = std::fs::read_to_string(&path).expect("it is there");
        assert!(text.contains(from), "{} has no {from}", path.display());
        std::fs::write(&path, text.replacen(from, to, 1))
            .expect("the temporary folder is writable");
    };
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match (page, &words[..]) {
        ("docs/src/versions.md", ["specs", "export", ..]) => commit_all(folder),
        ("docs/src/versions.md", ["events", "new", ..]) => {
            replace(
                "MessageSent/5.yaml",
                "enum: [sms, whatsapp, rcs, null]",
                "enum: [sms, whatsapp, null]",
            );
            replace("asyncapi.yaml", "MessageSent/4.yaml", "MessageSent/5.yaml");
        }
        _ => {}
    }
}

/// Makes a folder a git repository with one commit.
fn commit_all(folder: &Path) {
    let author = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
    let commit = [&author[..], &["commit", "--quiet", "-m", "the rulebook"]].concat();
    for arguments in [
        &["init", "--quiet", "--initial-branch", "main"][..],
        &["add", "specs"],
        &commit,
    ] {
        let mut git = Command::new("git");
        let done = git.args(arguments).current_dir(folder).status();
        assert!(done.expect("git is there").success(), "{arguments:?}");
    }
}

/// Compares the output of `serve`: the address, and with `--judge requests` each finding about a client.
fn listens(session: Session, folder: &Path) {
    let session = session.with("4010", "0");
    let more = session.shown().saturating_sub(1);
    assert!(more <= 1, "one request is sent, so one line comes");
    let arguments: Vec<&str> = session.arguments.iter().map(String::as_str).collect();
    let mut serve = conformant(folder, &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program can be started");
    let mut out = BufReader::new(serve.stdout.take().expect("it is piped"));
    let mut output = String::new();
    out.read_line(&mut output).expect("it prints its address");
    let (_, address) = output.trim().split_once("http://").expect("an address");
    let address = address.to_owned();
    let mut client = TcpStream::connect(&address).expect("it listens");
    let body = "friendlyName=x";
    write!(
        client,
        "POST /chat/v2/Services HTTP/1.1\r\nHost: {address}\r\nAuthorization: {CREDENTIALS}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .expect("it takes requests");
    for _ in 0..more {
        out.read_line(&mut output).expect("the output is readable");
    }
    serve.kill().expect("it goes on until it is ended");
    serve.wait().expect("it ends");
    let port = address.rsplit(':').next().unwrap_or_default();
    session
        .with("127.0.0.1:0", &format!("127.0.0.1:{port}"))
        .is_shown_in(&output);
}

/// Starts `proxy`, sends one request through it, and compares its output with what the page shows.
fn proxies(session: Session, folder: &Path) {
    let session = session.with("4020", "0");
    let arguments = session.arguments.iter().map(String::as_str);
    let arguments: Vec<&str> = arguments.chain(["--max-exchanges", "1"]).collect();
    let mut proxy = conformant(folder, &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program can be started");
    let mut out = BufReader::new(proxy.stdout.take().expect("it is piped"));
    let mut printed = String::new();
    out.read_line(&mut printed).expect("it prints its address");
    let address = printed.trim().strip_prefix("listening http://");
    let address = address.expect("the address comes first").to_owned();
    let mut client = TcpStream::connect(&address).expect("it listens");
    write!(
        client,
        "GET /flow/v1/Flows HTTP/1.1\r\nHost: {address}\r\nAuthorization: {CREDENTIALS}\r\nConnection: close\r\n\r\n"
    )
    .expect("it accepts requests");
    let mut response = String::new();
    client
        .read_to_string(&mut response)
        .expect("the response is text");
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    out.read_to_string(&mut printed)
        .expect("the output is text");
    let status = proxy.wait().expect("it ends after one exchange");
    assert_eq!(status.code(), Some(1), "{printed}");
    let port = address.rsplit(':').next().unwrap_or_default();
    session
        .with("127.0.0.1:0", &format!("127.0.0.1:{port}"))
        .is_shown_in(&printed);
}

#[test]
fn every_command_is_one_with_flags_that_it_has() {
    let mut wrong = Vec::new();
    let mut read = 0;
    for page in pages().iter().map(String::as_str).chain(["README.md"]) {
        for shown in commands(page).iter().filter(|shown| shown.is_ours()) {
            read += 1;
            let line = format!("conformant {}", shown.session.arguments.join(" "));
            let own = shown.session.arguments.iter();
            let own = own.map(|word| word.replace(['[', ']'], ""));
            let parsed = conformant::cli::Cli::command()
                .try_get_matches_from(std::iter::once("conformant".to_owned()).chain(own));
            // A word in capitals is a value of the reader.
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
    assert!(read > 85, "{read} commands");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
