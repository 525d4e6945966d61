//! Invalid files: configuration, rulebook, scenarios, payloads.

use crate::hostile::command::{Ended, conformant, run, write};
use crate::program::{Folder, one_in};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// One second in an optimized build.
const COMPUTED_MAX: Duration = Duration::from_secs(4);

/// Rejected with exit 2, soon.
fn refused(name: &str, command: &mut Command) -> Ended {
    let ended = run(command);
    assert_eq!(ended.exit, Some(2), "{name}: {ended:?}");
    assert!(
        ended.computed < COMPUTED_MAX,
        "{name}: {:?}",
        ended.computed
    );
    assert!(
        ended.peak_kib <= 128 * 1024,
        "{name}: {} KiB",
        ended.peak_kib
    );
    ended
}

fn bomb() -> String {
    let level = |n: usize| match n {
        0 => "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned(),
        _ => format!(
            "a{n}: &a{n} [{}]\n",
            vec![format!("*a{}", n - 1); 9].join(",")
        ),
    };
    (0..12).map(level).collect()
}

fn hostile_yaml() -> Vec<(&'static str, String, &'static str)> {
    vec![
        ("alias bomb", bomb(), ":"),
        (
            "self-reference",
            "limits: &a {timeout: *a}\n".to_owned(),
            ":1:",
        ),
        (
            "merge key",
            "base: &b {timeout: 1s}\nlimits: {<<: *b}\n".to_owned(),
            ":",
        ),
        ("100,000 levels", "[".repeat(100_000), ":1:"),
        (
            "duplicate key",
            "limits: {timeout: 1s}\nlimits: {timeout: 2s}\n".to_owned(),
            ":2:1",
        ),
        ("unknown key", "limits:\n  timeuot: 1s\n".to_owned(), ":2:3"),
        (
            "unknown tag",
            "limits: !!python/object:os.system {timeout: 1s}\n".to_owned(),
            ":1:",
        ),
        (
            "several documents",
            "limits: {}\n---\nlimits: {}\n".to_owned(),
            ":",
        ),
        ("not utf-8", "limits: {timeout: \u{1}}\n".to_owned(), ":1:"),
        ("a list", "- 1\n".to_owned(), ":1:"),
        ("an empty list", "[]\n".to_owned(), ":1:"),
        ("a text", "limits\n".to_owned(), ":1:"),
        ("half a mapping", "limits: {timeout: \n".to_owned(), ":"),
    ]
}

#[test]
fn configurations_are_refused_with_their_place() {
    let folder = Folder::with_limits();
    for (name, text, place) in hostile_yaml() {
        folder.write("bad.yaml", text);
        let mut command = conformant(&folder);
        let ended = refused(
            name,
            command.args(["run", "--config", "bad.yaml", "--dry-run"]),
        );
        assert!(
            ended.stderr.contains(&format!("bad.yaml{place}")),
            "{name}: {}",
            ended.stderr
        );
    }
}

#[test]
fn all_problems_of_scenario_files_are_reported_with_their_places() {
    let folder = Folder::with_limits();
    let scenarios = folder.join("mine/flow");
    std::fs::create_dir_all(&scenarios).expect("a folder");
    write(
        &scenarios.join("a.yaml"),
        "scenarios:\n  - id: flow/x/y\n    sayz: z\n    steps: []\n",
    );
    write(
        &scenarios.join("b.yaml"),
        "scenarios:\n  - id: flow/x/z\n    says: z\n    steps:\n      - call: no-such\n",
    );
    let check_places = |places: &[&str]| {
        let mut command = conformant(&folder);
        let ended = refused(
            "scenarios",
            command.args(["run", "--scenarios", "mine", "--dry-run"]),
        );
        for place in places {
            assert!(ended.stderr.contains(place), "{place} in {}", ended.stderr);
        }
    };
    check_places(&["a.yaml:3:5", "b.yaml:5:15"]);
    write(&scenarios.join("c.yaml"), bomb());
    write(&scenarios.join("d.yaml"), "scenarios: [\n");
    check_places(&["c.yaml:", "d.yaml:"]);
}

#[test]
fn a_rulebook_of_others_is_refused_with_its_places() {
    let folder = Folder::with_limits();
    let specs = folder.join("specs/flow");
    std::fs::create_dir_all(specs.join("rules")).expect("a folder");
    write(
        &specs.join("openapi.yaml"),
        "openapi: 3.1.0\nopenapi: 3.1.0\n",
    );
    write(&specs.join("rules/a.yaml"), bomb());
    let mut command = conformant(&folder);
    let ended = refused("specs", command.args(["list", "rules", "--specs", "specs"]));
    assert!(
        ended.stderr.contains("openapi.yaml:2:1"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("rules/a.yaml"), "{}", ended.stderr);
}

/// Files other than regular ones, in the folder.
fn irregular(folder: &Path) -> Vec<String> {
    let made = Command::new("mkfifo").arg(folder.join("fifo")).status();
    assert!(made.expect("mkfifo").success());
    std::os::unix::fs::symlink("loop", folder.join("loop")).expect("a link");
    write(
        &folder.join("binary"),
        (0..=255).cycle().take(4096).collect::<Vec<u8>>(),
    );
    let paths = [
        "fifo",
        "loop",
        "binary",
        ".",
        "/dev/zero",
        "no-such-file",
        "/dev/stdin/x",
    ];
    paths.map(str::to_owned).to_vec()
}

#[test]
fn only_regular_files_are_read() {
    let folder = Folder::with_limits();
    for path in irregular(&folder) {
        let uses: [&[&str]; 10] = [
            &["judge", &path],
            &["merge", &path],
            &["compare", &path, "run.json"],
            &["compare", "run.json", &path],
            &["check", &path, "--as", "har"],
            &["diff", "--declare", &path, "MessageSent/3", "MessageSent/4"],
            &["run", "--dry-run", "--config", &path],
            &["run", "--dry-run", "--waivers", &path],
            &["run", "--dry-run", "--scenarios", &path],
            &["list", "rules", "--specs", &path],
        ];
        for arguments in one_in(3, uses.into()) {
            // A folder without scenarios adds none.
            if arguments.contains(&"--scenarios") && path == "." {
                continue;
            }
            refused(
                &format!("{arguments:?}"),
                conformant(&folder).args(arguments),
            );
        }
        let mut command = conformant(&folder);
        refused(&path, command.args(["check", &path, "--as", "flow/flow"]));
    }
}

#[test]
fn files_that_are_too_large_are_refused_unread() {
    let folder = Folder::with_limits();
    let file = std::fs::File::create(folder.join("large")).expect("a file");
    file.set_len(5 << 30).expect("a file with a hole");
    let uses: [&[&str]; 6] = [
        &["judge", "large"],
        &["merge", "large", "large"],
        &["compare", "large", "large"],
        &["run", "--dry-run", "--config", "large"],
        &["run", "--dry-run", "--waivers", "large"],
        &["check", "large", "--as", "flow/flow"],
    ];
    for arguments in uses {
        let name = format!("{arguments:?}");
        let ended = refused(&name, conformant(&folder).args(arguments));
        assert!(ended.stderr.contains("larger than"), "{name}: {ended:?}");
    }
}

#[test]
fn what_is_quoted_of_files_and_arguments_is_escaped() {
    let folder = Folder::with_limits();
    let hostile = "\u{1b}]52;c;x\u{7}\n::error::x\u{202e}";
    folder.write(
        "run.json",
        format!(
            "{{\"schema_version\": 1, \"tool\": \"{}\"}}",
            "\u{202e}\u{9b}31m"
        ),
    );
    folder.write("har.json", "{\"log\": {\"entries\": \"\u{202e}\"}}");
    folder.write("bad.yaml", "limits: {\"\u{202e}x\": 1}\n");
    let uses: [&[&str]; 9] = [
        &["judge", "run.json"],
        &["judge", hostile],
        &["check", hostile, "--as", "flow/flow"],
        &["check", "har.json", "--as", "har"],
        &["run", "--dry-run", "--config", "bad.yaml"],
        &["run", "--dry-run", "--waivers", "bad.yaml"],
        &["explain", hostile],
        &["fixtures", "generate", "--kind", hostile],
        &["run", hostile],
    ];
    for arguments in uses {
        let ended = run(conformant(&folder).args(arguments));
        assert_ne!(ended.exit, Some(0), "{arguments:?}: {ended:?}");
        for output in [&ended.stdout, &ended.stderr] {
            assert!(
                !output.contains(conformant_base::text::is_deceptive),
                "{arguments:?}: {output:?}"
            );
            let command = output
                .lines()
                .find(|line| line.trim_start().starts_with("::error"));
            assert_eq!(command, None, "{arguments:?}: {output:?}");
        }
    }
}

#[test]
fn an_address_without_a_host_is_refused_wherever_one_stands() {
    let folder = Folder::with_limits();
    folder.write("hooks.yaml", "callbacks: {public_url: \"http:///x\"}\n");
    let uses: [&[&str]; 5] = [
        &["run", "--dry-run", "--target", "flow=http:///x"],
        &["run", "--dry-run", "--target", "flow=http:x"],
        &[
            "run",
            "--dry-run",
            "--target",
            "flow=http://h/",
            "--hooks",
            "http:///x",
        ],
        &["run", "--dry-run", "--config", "hooks.yaml"],
        &["proxy", "--upstream", "flow=http:///x"],
    ];
    for arguments in uses {
        let name = format!("{arguments:?}");
        let ended = refused(&name, conformant(&folder).args(arguments));
        assert!(ended.stderr.contains("no host"), "{name}: {ended:?}");
    }
}

/// Recorded traffic: invalid files are rejected, and files without evidence do not pass.
#[test]
fn a_recording_without_evidence_does_not_pass() {
    let folder = Folder::with_limits();
    let entry = |url: &str, status: u16| {
        serde_json::json!({
            "request": {"method": "GET", "url": url, "headers": []},
            "response": {"status": status, "headers": [], "content": {"text": "x"}},
        })
    };
    let of = |entries: &[serde_json::Value]| serde_json::json!({"log": {"entries": entries}});
    for (name, text, exit) in [
        ("nothing", of(&[]).to_string(), 4),
        ("foreign", of(&[entry("http://h/else", 200)]).to_string(), 4),
        (
            "no exchange",
            of(&[serde_json::json!({"request": 1})]).to_string(),
            4,
        ),
        ("no recording", "{\"log\": []}".to_owned(), 2),
        ("no JSON", "<html>".to_owned(), 2),
        ("cut off", "{\"log\": {\"entries\": [".to_owned(), 2),
        ("empty", String::new(), 2),
    ] {
        folder.write("x.har", text);
        let mut command = conformant(&folder);
        let ended = run(command.args(["check", "x.har", "--as", "har"]));
        assert_eq!(ended.exit, Some(exit), "{name}: {ended:?}");
    }
}

#[test]
fn files_within_a_folder_of_scenarios_are_regular_too() {
    let folder = Folder::with_limits();
    let scenarios = folder.join("mine/flow");
    std::fs::create_dir_all(&scenarios).expect("a folder");
    for (name, target) in [("zero.yaml", "/dev/zero"), ("loop.yaml", "loop.yaml")] {
        let path = scenarios.join(name);
        std::os::unix::fs::symlink(target, &path).expect("a link");
        let mut command = conformant(&folder);
        let ended = refused(
            name,
            command.args(["run", "--scenarios", "mine", "--dry-run"]),
        );
        assert!(ended.stderr.contains(name), "{}", ended.stderr);
        std::fs::remove_file(path).expect("the link");
    }
}

#[test]
fn secrets_come_from_the_environment_alone() {
    let folder = Folder::with_limits();
    let config = "targets:\n  flow: {url: \"http://127.0.0.1:9\", username: me, password: plain}\n";
    folder.write("conformant.yaml", config);
    let ended = refused("plain", conformant(&folder).args(["run", "--dry-run"]));
    assert!(
        ended.stderr.contains("targets.flow.password") && !ended.stderr.contains("plain\n"),
        "{ended:?}"
    );
    folder.write("conformant.yaml", config.replace("plain", "\"${HIDDEN}\""));
    let ended = refused("unset", conformant(&folder).args(["run", "--dry-run"]));
    assert!(
        ended.stderr.contains("the environment has no HIDDEN"),
        "{ended:?}"
    );
}

/// An endless line of a stream is rejected at the maximum size of a document.
#[test]
fn a_stream_that_is_verified_is_read_within_bounds() {
    let folder = Folder::with_limits();
    let generated = run(conformant(&folder).args([
        "fixtures",
        "generate",
        "--kind",
        "flow/flow",
        "--format",
        "ndjson",
        "--count",
        "2000",
        "--out",
        "set",
    ]));
    assert_eq!(generated.exit, Some(0), "{generated:?}");
    let set = folder.join("set");
    let stream = walkdir::WalkDir::new(&set)
        .into_iter()
        .flatten()
        .find(|entry| entry.path().extension().is_some_and(|e| e == "ndjson"))
        .expect("a stream");
    let file = std::fs::File::create(stream.path()).expect("a file");
    file.set_len(5 << 30).expect("a hole takes no room");
    let ended = run(conformant(&folder).args(["fixtures", "verify", "set"]));
    assert_eq!(ended.exit, Some(1), "{ended:?}");
    let output = format!("{}{}", ended.stdout, ended.stderr);
    assert!(
        output.contains("line 1: more than 8388608 bytes"),
        "{ended:?}"
    );
    assert!(ended.peak_kib <= 128 * 1024, "{} KiB", ended.peak_kib);
    assert!(ended.computed < COMPUTED_MAX, "{:?}", ended.computed);
}
