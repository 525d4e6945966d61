//! Soak test: runs with random faults, hostile targets, numbers of jobs and signals, one after the other. It fails for a
//! changed verdict, a leaked secret, a partial report, or excessive use of resources.
//!
//! `cargo test --test soak -- --seconds 3600` runs for an hour, `--runs 10000` that many runs, `--seed N` sets the seed.
//! Without arguments it does a few runs, which keeps it working.

#![expect(clippy::print_stdout, reason = "it prints its result")]

#[expect(dead_code, reason = "the soak needs a part of what the tests share")]
#[path = "../it/hostile/command.rs"]
mod command;
#[expect(dead_code, reason = "the soak needs a part of what the tests share")]
#[path = "../it/hostile/pages.rs"]
mod pages;
#[expect(dead_code, reason = "the soak needs a part of what the tests share")]
#[path = "../it/hostile/target.rs"]
mod target;

/// As the files above know each other.
mod hostile {
    pub(crate) use crate::target;
}

use command::{Ended, Running, conformant, folder, write};
use conformant_base::clock;
use conformant_base::failpoint::Failpoint;
use pages::{answer, ok, only_page};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use target::{Act, Target, keep};

/// Default filter.
const RUNS: u64 = 6;
/// Memory limit of a run.
const PEAK_KIB_MAX: u64 = 128 * 1024;
/// Processor time limit of a run, in a build without optimization.
const SLOWEST: Duration = Duration::from_secs(30);
const SECRET: &str = "hunter2&<\"p@ss/w0rd+e";
const TOKEN: &str = "t0ken-4711-plainly-secret";

/// Totals.
#[derive(Default)]
struct Sums {
    runs: u64,
    by_kind: BTreeMap<&'static str, u64>,
    /// The first result of each type of run.
    known: BTreeMap<String, String>,
    changed: Vec<String>,
    leaks: Vec<String>,
    broken: Vec<String>,
    peak_kib: u64,
}

/// Arguments.
struct Asked {
    seed: u64,
    runs: Option<u64>,
    seconds: Option<u64>,
}

impl Asked {
    fn read() -> Self {
        let words: Vec<String> = std::env::args().collect();
        let number = |name: &str| {
            let at = words.iter().position(|word| word == name)?;
            words.get(at + 1)?.parse().ok()
        };
        Self {
            seed: number("--seed").unwrap_or(16),
            runs: number("--runs"),
            seconds: number("--seconds"),
        }
    }

    fn goes_on(&self, runs: u64, so_far: Duration) -> bool {
        match (self.runs, self.seconds) {
            (None, None) => runs < RUNS,
            (most, seconds) => {
                most.is_none_or(|most| runs < most)
                    && seconds.is_none_or(|seconds| so_far.as_secs() < seconds)
            }
        }
    }
}

fn main() -> ExitCode {
    // Test runners that list or run single tests of every binary find one here.
    if std::env::args().any(|word| word == "--list") {
        println!("soak: test");
        return ExitCode::SUCCESS;
    }
    let asked = Asked::read();
    let begun = clock::monotonic();
    let mut chance = ChaCha8Rng::seed_from_u64(asked.seed);
    let mut sums = Sums::default();
    while asked.goes_on(sums.runs, begun.elapsed()) {
        sums.runs += 1;
        let kind = chance.random_range(0..6_u8);
        let (name, scenario): (&'static str, fn(&mut ChaCha8Rng, &mut Sums)) = match kind {
            0 | 1 => ("reference", reference),
            2 | 3 => ("hostile target", hostile_target),
            4 => ("signal", signal),
            _ => ("failpoint", failpoint),
        };
        *sums.by_kind.entry(name).or_default() += 1;
        scenario(&mut chance, &mut sums);
    }
    conclude(&sums, asked.seed, begun.elapsed())
}

fn conclude(sums: &Sums, seed: u64, took: Duration) -> ExitCode {
    for (what, lines) in [
        ("changed", &sums.changed),
        ("leaked", &sums.leaks),
        ("broken", &sums.broken),
    ] {
        for line in lines {
            println!("{what}: {line}");
        }
    }
    println!(
        "soak: seed {seed}, {} runs in {} s {:?}, {} changed verdicts, {} leaks, {} broken, peak {} KiB",
        sums.runs,
        took.as_secs(),
        sums.by_kind,
        sums.changed.len(),
        sums.leaks.len(),
        sums.broken.len(),
        sums.peak_kib,
    );
    let is_sound = [&sums.changed, &sums.leaks, &sums.broken]
        .iter()
        .all(|l| l.is_empty());
    if is_sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

impl Sums {
    /// Properties of every run: a documented exit code, bounded time and memory, no secret.
    fn take(&mut self, what: &str, folder: &Path, ended: &Ended) {
        self.peak_kib = self.peak_kib.max(ended.peak_kib);
        let exit = ended.exit.unwrap_or(-1);
        if ![0, 1, 2, 3, 4, 130, 143].contains(&exit) {
            self.broken.push(format!("{what}: {ended:?}"));
        }
        if ended.stderr.contains("panicked") || ended.computed > SLOWEST {
            self.broken.push(format!("{what}: {ended:?}"));
        }
        if ended.peak_kib > PEAK_KIB_MAX {
            self.broken.push(format!("{what}: {} KiB", ended.peak_kib));
        }
        let mut outputs = vec![
            ("stdout".to_owned(), ended.stdout.clone()),
            ("stderr".to_owned(), ended.stderr.clone()),
        ];
        for entry in walkdir::WalkDir::new(folder).into_iter().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().is_file() && name != "conformant.yaml" {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                outputs.push((name, String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
        for (name, output) in outputs {
            for trace in traces() {
                if output.contains(&trace) {
                    self.leaks.push(format!("{what}: {name} holds {trace}"));
                }
            }
        }
    }

    /// A run has the result of the same run before.
    fn same(&mut self, key: String, verdicts: &str) {
        let known = self.known.entry(key).or_insert_with(|| verdicts.to_owned());
        if *known != verdicts {
            self.changed.push(format!("{known} became {verdicts}"));
        }
    }
}

/// Text that contains the secret only, in the encodings that a search finds.
fn traces() -> Vec<String> {
    let mut traces = Vec::new();
    for secret in [SECRET, TOKEN] {
        traces.push(secret.to_owned());
        traces.push(conformant_base::http::percent_encode(secret));
        traces.push(conformant_base::text::hex(secret.bytes()));
        traces.push(base64(&secret.as_bytes()[..secret.len() / 3 * 3]));
    }
    traces
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// The JSON report, if it is readable.
fn report(folder: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(folder.join("run.json")).ok()?;
    serde_json::from_str(&text).ok()
}

/// Verdicts by scenario and rule, in order.
fn verdicts(record: &Value) -> String {
    let of = |list: &str| -> Vec<String> {
        let entries = record[list].as_array().into_iter().flatten();
        entries
            .map(|entry| format!("{}={}", entry["id"], entry["verdict"]))
            .collect()
    };
    [of("scenarios"), of("rules")].concat().join(" ")
}

/// The reference in process, with or without a fault, with any number of jobs in any order.
fn reference(chance: &mut ChaCha8Rng, sums: &mut Sums) {
    const FILTERS: [&str; 6] = [
        "flow/read-flows/*",
        "flow/read-flow*",
        "flow/executions/*",
        "flow/*steps*",
        "chat/*invite*",
        "auth/*registration*",
    ];
    let folder = folder();
    let filter = FILTERS[chance.random_range(0..FILTERS.len())];
    let jobs = chance.random_range(1..=16_u8).to_string();
    let seed = chance.random_range(1..4_u8).to_string();
    let mut command = conformant(folder.path());
    command.args(["run", "--reference", "--filter", filter]);
    command.args(["--jobs", &jobs, "--seed", &seed]);
    command.args(["--report", "json=run.json"]);
    if chance.random_ratio(1, 2) {
        command.arg("--shuffle");
    }
    let ended = Running::start(&mut command).end();
    sums.take(filter, folder.path(), &ended);
    match report(folder.path()) {
        // The seed determines names and order; it does not affect the verdict.
        Some(record) => sums.same(filter.to_owned(), &verdicts(&record)),
        None => sums.broken.push(format!("{filter}: no report: {ended:?}")),
    }
}

/// Possible actions of a target.
fn mischief(chance: &mut ChaCha8Rng) -> Vec<Act> {
    let echoed = match chance.random_range(0..6_u8) {
        0 => SECRET.to_owned(),
        1 => base64(format!("me:{SECRET} {TOKEN}").as_bytes()),
        2 => conformant_base::http::percent_encode(&format!("{SECRET}/{TOKEN}")),
        3 => json!(format!("{TOKEN} {SECRET}")).to_string(),
        4 => base64(conformant_base::http::percent_encode(SECRET).as_bytes()),
        _ => conformant_base::text::hex(SECRET.bytes()),
    };
    let mut page = only_page("http://127.0.0.1");
    match chance.random_range(0..13_u8) {
        0 => vec![Act::Reset],
        1 => vec![Act::Hold],
        2 => vec![Act::Send(
            b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf".to_vec(),
        )],
        3 => vec![Act::Drip(ok("{}"), Duration::from_millis(20))],
        4 => vec![Act::Flood(b"x".repeat(4096))],
        5 => {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            vec![Act::Send(head), Act::Flood(b"4\r\n[[[[\r\n".repeat(500))]
        }
        6 => {
            page["flows"][0]["status"] = json!(echoed);
            page["flows"][0]["extra"] = (0..5_000).map(|n| json!({ echoed.clone(): n })).collect();
            keep(ok(page.to_string()))
        }
        7 => keep(answer("500 Oops", "X: y\r\n", &echoed)),
        8 => keep(answer("401 No", "", "{}")),
        9 => {
            let location = format!("Location: http://elsewhere.invalid/{TOKEN}\r\n");
            vec![Act::Send(answer("302 Found", &location, &echoed))]
        }
        10 => keep(answer("429 Slow", "Retry-After: 0\r\n", "{}")),
        11 => vec![Act::Send(
            format!("SSH-2.0 \u{1b}]52;{echoed}\u{7}").into_bytes(),
        )],
        _ => keep(ok(page.to_string())),
    }
}

/// A target that misbehaves from some request on.
fn misbehaving(chance: &mut ChaCha8Rng) -> Target {
    let from = chance.random_range(1..6_usize);
    let acts: Vec<Vec<Act>> = (0..3).map(|_| mischief(chance)).collect();
    Target::answering(move |asked| {
        if asked.number < from {
            let page = only_page("http://127.0.0.1").to_string();
            return keep(ok(page));
        }
        acts[asked.number % acts.len()].clone()
    })
}

/// `run` against a target, with secrets in the configuration.
fn against(folder: &Path, target: &Target, chance: &mut ChaCha8Rng) -> std::process::Command {
    let config = format!(
        "targets:\n  flow:\n    url: {}/flow\n    username: me\n    password: ${{PASSWORD}}\n    headers: {{ \
         Authorization-Token: \"${{TOKEN}}\" }}\nlimits: {{timeout: 300ms}}\n",
        target.origin()
    );
    write(&folder.join("conformant.yaml"), config);
    let jobs = chance.random_range(1..=8_u8).to_string();
    let mut command = conformant(folder);
    command.env("PASSWORD", SECRET).env("TOKEN", TOKEN);
    command.args(["run", "--filter", "flow/read-flows/p*", "--jobs", &jobs]);
    for format in [
        "json", "junit", "html", "markdown", "sarif", "ctrf", "github",
    ] {
        let name = if format == "json" {
            "run.json".to_owned()
        } else {
            format!("r.{format}")
        };
        command.args(["--report", &format!("{format}={name}")]);
    }
    command
}

fn hostile_target(chance: &mut ChaCha8Rng, sums: &mut Sums) {
    let folder = folder();
    let target = misbehaving(chance);
    let ended = Running::start(&mut against(folder.path(), &target, chance)).end();
    sums.take("hostile target", folder.path(), &ended);
    if report(folder.path()).is_none_or(|record| record["rules"].as_array().is_none()) {
        sums.broken
            .push(format!("hostile target: no report: {ended:?}"));
    }
}

/// A signal at some moment: the old report, or one that is marked correctly.
fn signal(chance: &mut ChaCha8Rng, sums: &mut Sums) {
    let folder = folder();
    write(&folder.path().join("run.json"), "\"the old one\"");
    let target = misbehaving(chance);
    let signals = [("INT", 2, 130), ("TERM", 15, 143), ("HUP", 1, 3)];
    let (name, number, exit) = signals[chance.random_range(0..signals.len())];
    let mut command = against(folder.path(), &target, chance);
    // With the allocator setting the process does not execute itself again, during which it would ignore signals.
    command.env("MALLOC_ARENA_MAX", "1");
    let running = Running::start(&mut command);
    clock::sleep(Duration::from_millis(chance.random_range(0..1_500)));
    // Before it installs handlers, which takes long on a busy machine, a process has no exit code of its own.
    let was_under_way = catches(running.id(), number);
    running.signal_if_there(name);
    let ended = running.end();
    if was_under_way || ended.exit.is_some() {
        sums.take(name, folder.path(), &ended);
    }
    let Some(record) = report(folder.path()) else {
        return sums
            .broken
            .push(format!("{name}: half a report: {ended:?}"));
    };
    let claims_all = record["complete"] == true;
    if claims_all && ended.exit == Some(exit) && exit != 3 {
        sums.broken
            .push(format!("{name}: a false statement: {ended:?}"));
    }
}

/// Whether a process handles the signal of this number; always true if the system does not report it.
fn catches(process: u32, number: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_none_or(|mask| mask >> (number - 1) & 1 == 1)
}

/// One place that fails once: the old report or a complete one, and no other file.
fn failpoint(chance: &mut ChaCha8Rng, sums: &mut Sums) {
    let folder = folder();
    write(&folder.path().join("run.json"), "\"the old one\"");
    let place = Failpoint::ALL[chance.random_range(0..Failpoint::ALL.len())];
    let after = chance.random_range(0..4_u8);
    let target = misbehaving(chance);
    let mut command = against(folder.path(), &target, chance);
    command.env("CONFORMANT_FAILPOINTS", format!("{}={after}", place.name()));
    let ended = Running::start(&mut command).end();
    sums.take(place.name(), folder.path(), &ended);
    if report(folder.path()).is_none() {
        sums.broken
            .push(format!("{}: half a report: {ended:?}", place.name()));
    }
}
