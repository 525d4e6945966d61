//! Cost of the program as a process: start, memory, and growth with its input.
//!
//! Nothing fails here: figures are goals, not tests. `cargo bench --bench program -- start` runs one part; the others
//! are `memory` and `growth`.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

#[expect(dead_code, reason = "a bench needs a part of what the tests share")]
#[path = "../tests/it/hostile/command.rs"]
mod command;
#[expect(dead_code, reason = "a bench needs a part of what the tests share")]
#[path = "../tests/it/hostile/pages.rs"]
mod pages;
#[expect(dead_code, reason = "a bench needs a part of what the tests share")]
#[path = "../tests/it/hostile/target.rs"]
mod target;

/// Module names that the files above use.
mod hostile {
    pub(crate) use crate::target;
}

use command::{Ended, conformant, run, write};
use conformant_base::clock;
use conformant_base::http::Request;
use conformant_net::server::{Server, Settings};
use conformant_net::transport::{BaseUrl, Client, Limits};
use conformant_reference::account;
use pages::{many_objects, ok, page};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use target::{Act, Target};

const ROUNDS: usize = 7;
/// Number of starts of a command that takes a few milliseconds.
const STARTS: usize = 25;
const SIZES: [usize; 3] = [1, 10, 100];

fn main() {
    const PARTS: [&str; 3] = ["start", "memory", "growth"];
    let mut wanted: Vec<String> = std::env::args().collect();
    wanted.retain(|word| PARTS.contains(&word.as_str()));
    for part in PARTS {
        if !wanted.is_empty() && !wanted.iter().any(|word| word == part) {
            continue;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        match part {
            "start" => starts(folder.path()),
            "memory" => memory(folder.path()),
            _ => growth(folder.path()),
        }
        println!();
    }
}

fn growth(folder: &Path) {
    println!("growth: processor time and memory at 1, 10 and 100 times");
    println!("then what each further one takes beyond 10 times as many, by what it took before");
    findings(folder);
    things_in_a_list(folder);
    explored(folder);
    defects_in_pairs(folder);
    rules(folder);
}

/// Commands that print, relative to a process that does nothing.
fn starts(folder: &Path) {
    println!("start: wall time of {STARTS} starts in turn, median (least to most), and in no-ops");
    let event = run(conformant(folder).args(ONE_EVENT));
    write(&folder.join("event.json"), event.stdout);
    let sides: [(&str, &[&str]); 6] = [
        ("a no-op", &[]),
        ("--help", &["--help"]),
        ("list", &["list", "rules"]),
        ("explain", &["explain", "flow/read-flows/page-size"]),
        (
            "check of one event",
            &["check", "--as", EVENT, "event.json"],
        ),
        (
            "check of one page",
            &["check", "--as", "flow/flow[]", "page.json"],
        ),
    ];
    write(
        &folder.join("page.json"),
        page("http://127.0.0.1", 0, None).to_string(),
    );
    let mut times = vec![Vec::new(); sides.len()];
    for _ in 0..STARTS {
        for (times, (_, words)) in times.iter_mut().zip(sides) {
            let mut command = match words {
                [] => Command::new("true"),
                _ => conformant(folder),
            };
            command
                .args(words)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let begun = clock::monotonic();
            let status = command.status().expect("it starts");
            assert!(status.success(), "{words:?}");
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    let no_op = spread(&mut times[0]).1;
    for ((name, _), times) in sides.iter().zip(&mut times) {
        let (least, median, most) = spread(times);
        let ratio = median / no_op;
        println!("{name:32} {median:7.1} ms ({least:.1} to {most:.1})  {ratio:6.1}");
    }
}

const EVENT: &str = "events/MessageSent/4";
const ONE_EVENT: [&str; 6] = ["fixtures", "generate", "--kind", EVENT, "--count", "1"];

/// Maximum memory of a process.
fn memory(folder: &Path) {
    println!("memory: high-water mark of {ROUNDS} runs, median (least to most)");
    let server = reference();
    let live = |jobs: &'static str| {
        let url = server.url();
        move |world: usize| {
            let mut command = conformant(folder);
            // An instance for each, so that none finds resources of others.
            let url = format!("{url}/_world/{jobs}-{world}");
            command.args(["run", "--jobs", jobs, "--target", &format!("all={url}")]);
            command.args(["--hooks", &format!("{url}/_control")]);
            command
        }
    };
    let answer = ok(many_objects().to_string());
    let large = Target::answering(move |_| vec![Act::Send(answer.clone()), Act::Keep]);
    let large = format!("flow={}/flow", large.origin());
    let objects = |_| {
        let mut command = conformant(folder);
        command.args([
            "run",
            "--jobs",
            "8",
            "--filter",
            "flow/read-flows/*",
            "--target",
            &large,
        ]);
        command
    };
    let offline = |_| {
        let mut command = conformant(folder);
        command.args(["run"]);
        command
    };
    let sides: [(&str, &dyn Fn(usize) -> Command); 4] = [
        ("offline", &offline),
        ("live, 8 jobs", &live("8")),
        ("live, 32 jobs", &live("32")),
        ("80,000 objects to each of 8 jobs", &objects),
    ];
    let mut peaks = vec![Vec::new(); sides.len()];
    let mut took = vec![Vec::new(); sides.len()];
    for round in 0..ROUNDS {
        for (side, (_, command)) in sides.iter().enumerate() {
            let ended = done(&mut command(round));
            peaks[side].push(mebibytes(&ended));
            took[side].push(ended.took.as_secs_f64());
        }
    }
    for (side, (name, _)) in sides.iter().enumerate() {
        let (least, median, most) = spread(&mut peaks[side]);
        let seconds = spread(&mut took[side]).1;
        println!("{name:32} {median:7.1} MiB ({least:.1} to {most:.1})  in {seconds:.2} s");
    }
}

/// Events that break as many rules as they have fields, and reports of them.
fn findings(folder: &Path) {
    let event = run(conformant(folder).args(ONE_EVENT)).stdout;
    let mut event: Value = serde_json::from_str(&event).expect("an event is JSON");
    for field in event.as_object_mut().expect("an object").values_mut() {
        *field = json!(7);
    }
    let event = event.to_string() + "\n";
    for format in ["json", "junit", "html", "sarif", "markdown"] {
        let report = format!("{format}=report");
        grow(&format!("100 wrong events as {format}"), &mut |times| {
            write(&folder.join("wrong.ndjson"), event.repeat(100 * times));
            let mut command = conformant(folder);
            command.args(["check", "--as", EVENT, "wrong.ndjson", "--report", &report]);
            command
        });
        let bytes = std::fs::metadata(folder.join("report")).map_or(0, |file| file.len());
        println!("{:32} {:7.2} MB at the last", "", megabytes(bytes));
    }
}

/// Existing services, for a run that walks over all of them.
fn things_in_a_list(folder: &Path) {
    let server = reference();
    let client = Client::new(Limits::default());
    let base = BaseUrl::parse(server.url()).expect("it is a URL");
    let mut there = 0;
    grow("a walk over 30 resources", &mut |times| {
        while there < 30 * times {
            let mut request = Request::new("POST", "/chat/v2/Services");
            request.headers.set("Authorization", credentials());
            request
                .headers
                .set("Content-Type", "application/x-www-form-urlencoded");
            request.body = format!("FriendlyName=thing{there}").into_bytes();
            let answer = client
                .send(&base, &request, Duration::from_secs(10))
                .expect("the reference answers");
            assert!(answer.status < 300, "{answer:?}");
            there += 1;
        }
        let mut command = conformant(folder);
        command.args([
            "run",
            "--filter",
            "chat/lists/services",
            "--min-judged",
            "0",
        ]);
        command.args(["--target", &format!("all={}", server.url())]);
        command.args(["--hooks", &format!("{}/_control", server.url())]);
        command
    });
}

/// Sequences of requests, one after the other.
fn explored(folder: &Path) {
    grow("20 drawn sequences", &mut |times| {
        let mut command = conformant(folder);
        let budget = (20 * times).to_string();
        command.args(["explore", "--seed", "1", "--jobs", "1", "--budget", &budget]);
        command
    });
}

/// Faults that a self-test tries.
fn defects_in_pairs(folder: &Path) {
    grow("a pair of defects", &mut |times| {
        let mut command = conformant(folder);
        let pairs = times.to_string();
        command.args(["selftest", "--jobs", "1", "--pairs", &pairs]);
        command
    });
}

/// The embedded rulebook, and one with each rule and scenario ten times.
fn rules(folder: &Path) {
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs");
    let folders = [(1, folder.join("once")), (10, folder.join("tenfold"))];
    for (times, folder) in &folders {
        let (rules, stories) = multiply(&specs, folder, *times);
        println!(
            "{:32} {rules} written rules, {stories} written scenarios",
            ""
        );
    }
    let jobs: [(&str, &[&str]); 2] = [
        ("a rulebook is loaded", &["list", "rules"]),
        // The same scenarios with both: the cost of an exchange with ten times the rules.
        (
            "and judges what it did before",
            &["run", "--reference", "--jobs", "1", "--filter", "*/happy"],
        ),
    ];
    for (name, words) in jobs {
        let mut times = vec![Vec::new(); folders.len()];
        for _ in 0..ROUNDS {
            for (times, (_, specs)) in times.iter_mut().zip(&folders) {
                let mut command = conformant(folder);
                command.args(words).arg("--specs").arg(specs);
                times.push(computed(&done(&mut command)));
            }
        }
        let [once, tenfold] = [0, 1].map(|side| spread(&mut times[side]).1);
        let ratio = tenfold / once / 10.0;
        println!("{name:32} {once:7.2} s{tenfold:9.2} s at 10 x  {ratio:.2}");
    }
}

/// Copies a rulebook with each written rule and scenario that many times, under new names; returns their numbers.
fn multiply(specs: &Path, to: &Path, times: usize) -> (usize, usize) {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for entry in walkdir::WalkDir::new(specs) {
        let entry = entry.expect("the rulebook is there");
        if entry.file_type().is_file() {
            let path = entry.path().strip_prefix(specs).expect("it is below");
            let bytes = std::fs::read(entry.path()).expect("a file");
            files.insert(path.to_str().expect("a plain name").to_owned(), bytes);
        }
    }
    let lists = |part: &str, key: &str| -> Vec<(String, Vec<Value>)> {
        let of_part = files.iter().filter(|(path, _)| path.contains(part));
        let read = |(path, bytes): (&String, &Vec<u8>)| {
            let text = std::str::from_utf8(bytes).expect("text");
            let mut file: Value = serde_saphyr::from_str(text).expect("YAML");
            let list = file[key].as_array_mut().map(std::mem::take);
            (path.clone(), list.unwrap_or_default())
        };
        of_part.map(read).collect()
    };
    let id = |thing: &Value| thing["id"].as_str().unwrap_or_default().to_owned();
    let (rules, stories) = (lists("/rules/", "rules"), lists("/scenarios/", "scenarios"));
    let all = rules.iter().chain(&stories).flat_map(|(_, list)| list);
    let known: BTreeSet<String> = all.map(id).collect();
    let mut copies = Vec::new();
    for (key, part) in [("rules", &rules), ("scenarios", &stories)] {
        for (path, list) in part {
            for copy in 1..times {
                let list = list.iter().map(|thing| renamed(thing, &known, copy));
                let list: Vec<Value> = list.collect();
                let path = path.replace(".yaml", &format!("-{copy}.json"));
                copies.push((path, json!({ key: list }).to_string().into_bytes()));
            }
        }
    }
    files.extend(copies);
    for (path, bytes) in &files {
        let path = to.join(path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        write(&path, bytes);
    }
    let count = |part: &[(String, Vec<Value>)]| part.iter().map(|(_, l)| l.len()).sum::<usize>();
    let (rules, stories) = (count(&rules) * times, count(&stories) * times);
    (rules, stories)
}

/// The same value with replaced names.
fn renamed(value: &Value, known: &BTreeSet<String>, copy: usize) -> Value {
    let rename = |text: &String| match known.contains(text) {
        true => format!("{text}-{copy}"),
        false => text.clone(),
    };
    match value {
        Value::String(text) => Value::String(rename(text)),
        Value::Array(items) => items
            .iter()
            .map(|item| renamed(item, known, copy))
            .collect(),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, m)| (rename(name), renamed(m, known, copy)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Processor time and memory at each size, and for each additional item: the cost should be the same from the second to
/// the third size as from the first to the second.
fn grow(name: &str, command: &mut dyn FnMut(usize) -> Command) {
    let mut line = format!("{name:32}");
    let mut seconds = Vec::new();
    for times in SIZES {
        let ended: Vec<Ended> = (0..ROUNDS).map(|_| done(&mut command(times))).collect();
        let mut computed: Vec<f64> = ended.iter().map(computed).collect();
        let mut peaks: Vec<f64> = ended.iter().map(mebibytes).collect();
        let (_, median, _) = spread(&mut computed);
        let (_, peak, _) = spread(&mut peaks);
        line.push_str(&format!(" {median:7.2} s {peak:4.0} MiB"));
        seconds.push(median);
    }
    let further = |from: usize| {
        let more = count(SIZES[from + 1] - SIZES[from]);
        (seconds[from + 1] - seconds[from]).max(0.001) / more
    };
    println!("{line}  {:.2}", further(1) / further(0));
}

/// Runs to the end, with or without findings.
fn done(command: &mut Command) -> Ended {
    let ended = run(command);
    assert!(matches!(ended.exit, Some(0 | 1)), "{ended:?}");
    ended
}

fn count(times: usize) -> f64 {
    f64::from(u32::try_from(times).expect("sizes are small"))
}

fn reference() -> Server {
    Server::start(Settings::default()).expect("loopback is there")
}

fn credentials() -> String {
    let pair = format!("{}:{}", account::API_KEY, account::API_SECRET);
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, pair);
    format!("Basic {encoded}")
}

/// Minimum, median, maximum.
fn spread(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (
        values[0],
        values[values.len() / 2],
        values[values.len() - 1],
    )
}

fn computed(ended: &Ended) -> f64 {
    ended.computed.max(Duration::from_millis(1)).as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn mebibytes(ended: &Ended) -> f64 {
    ended.peak_kib as f64 / 1024.0
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
