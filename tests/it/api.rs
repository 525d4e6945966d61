//! The library: its examples are built and run, its page shows them, and no internal type is public.

#![expect(
    clippy::disallowed_methods,
    reason = "BLESS is for the tests, not to the program"
)]

use crate::program::{Folder, Served, is_campaign, root};
use conformant::{Conclusion, Error, Reference, Rulebook, RunOptions, Service, Target, Verdict};
use regex::Regex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FAULT: &str = "flow/meta-page-size-wrong";
const BROKEN: &str = "flow/read-flows/page-size";
const SCENARIO: &str = "flow/read-flows/happy";

/// The program of an example. `cargo test` builds it; partial builds may not.
fn example(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("the test has a path");
    let profile = this
        .ancestors()
        .nth(2)
        .expect("it is in the folder `deps` of a profile");
    let program = profile.join("examples").join(name);
    let program = program.with_extension(std::env::consts::EXE_EXTENSION);
    if !is_newer_than_its_sources(&program) {
        build_example(name, profile);
    }
    program
}

/// Compares the program with the files that cargo lists in `NAME.d` next to it.
fn is_newer_than_its_sources(program: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let Ok(listed) = std::fs::read_to_string(program.with_extension("d")) else {
        return false;
    };
    let sources = listed.split_once(": ").map_or("", |(_, sources)| sources);
    let mut sources = sources.split_whitespace().map(Path::new);
    let Some(built) = changed(program) else {
        return false;
    };
    sources.all(|source| changed(source).is_some_and(|changed| changed <= built))
}

fn build_example(name: &str, profile: &Path) {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--offline", "--example", name]);
    if profile.file_name().is_some_and(|name| name == "release") {
        build.arg("--release");
    }
    // These variables would make build scripts run again, and cargo build everything that depends on them.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let set = [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_BIN_",
            "CARGO_CRATE_",
            "OUT_DIR",
            "RUSTC_BOOTSTRAP",
        ];
        if set.iter().any(|start| name.starts_with(start)) {
            build.env_remove(&*name);
        }
    }
    let built = build
        .current_dir(root())
        .status()
        .expect("cargo can be started");
    assert!(built.success(), "the example is built");
}

fn output_text(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn trials_pass_or_fail_with_the_rule() {
    let example = example("conformance");
    let green = Command::new(&example)
        .arg("flow/read-flows/")
        .output()
        .expect("it can be started");
    let text = output_text(&green);
    assert!(green.status.success(), "{text}");
    assert!(text.contains(&format!("test {SCENARIO}")), "{text}");

    let folder = Folder::new();
    let served = Served::start(&folder, &["--fault", FAULT]);
    let red = Command::new(&example)
        .args(["--exact", SCENARIO])
        .env("FLOW_URL", format!("{}/flow", served.url))
        .output()
        .expect("it can be started");
    let text = output_text(&red);
    assert_eq!(red.status.code(), Some(101), "{text}");
    for part in [
        BROKEN,
        "lines 77, 106",
        "expected 50",
        "actual   51",
        "$CONFORMANT_FLOW_PASSWORD",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains("reference-api-secret"), "{text}");
}

#[test]
fn own_payloads_are_read_and_judged() {
    let output = Command::new(example("payloads"))
        .output()
        .expect("it can be started");
    let text = output_text(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("valid-0.json: "), "{text}");
    assert!(!text.contains(" 0 fields are missing"), "{text}");
}

#[test]
fn the_same_is_found_in_process_and_over_the_network() {
    let rulebook = Rulebook::embedded().expect("it is ours");
    let faulty = Reference::new().fault(FAULT).expect("it is a fault");
    let server = faulty.serve().expect("there are ports");
    let filter = match is_campaign() {
        true => "flow/read-flows/*",
        false => SCENARIO,
    };
    let options = RunOptions::new().filter(filter);
    let runs = [faulty.into(), server.target()].map(|target: Target| {
        conformant::run(&rulebook, &target, &options).expect("it can be judged")
    });
    for run in &runs {
        assert_eq!(run.conclusion(), Conclusion::Failed, "{run}");
        assert_eq!(run.verdict(BROKEN), Some(Verdict::Fail), "{run}");
        assert!(run.to_string().contains(BROKEN), "{run}");
    }
    // Their instances differ, and so do the numbers in them.
    let lines = runs.each_ref().map(|run| {
        let found = run.findings().iter();
        found.map(|f| f.rule.clone()).collect::<BTreeSet<_>>()
    });
    assert_eq!(lines[0], lines[1]);
    let folder = Folder::new();
    let page = folder.join("report.html");
    runs[0]
        .report(&format!("html={}", page.display()))
        .expect("the temporary folder is writable");
    let page = std::fs::read_to_string(page).expect("it was written");
    assert!(page.replace("&#x2f;", "/").contains(BROKEN));
}

#[test]
fn inapplicable_scenarios_have_a_reason_and_trials_run_once() {
    let rulebook = Rulebook::embedded().expect("it is ours");
    let server = Reference::new().serve().expect("there are ports");
    let service = Service::at("flow", &server.service("flow"));
    let target = Target::of([service.basic("reference-api-key", "reference-api-secret")]);
    let trials = rulebook
        .trials(&target.expect("it is one"))
        .expect("it can be judged");
    let hook = trials
        .iter()
        .find(|trial| trial.id() == "flow/executions/ended-by-flow");
    let hook = hook.or_else(|| {
        trials
            .iter()
            .find(|t| t.id().starts_with("flow/executions/"))
    });
    let hook = hook.expect("there are such scenarios");
    let outcome = hook.run();
    let why = outcome.map(|outcome| outcome.not_applicable().map(str::to_owned));
    assert!(matches!(&why, Ok(Some(why)) if !why.is_empty()), "{why:?}");
    let again = hook.run().expect_err("it was run");
    assert_eq!(again.verdict(), Verdict::Error);
}

#[test]
fn what_cannot_be_done_is_an_error_that_helps() {
    let rulebook = Rulebook::embedded().expect("it is ours");
    let message_of = |error: Error| error.to_string();
    let near = "did you mean";
    for text in [
        message_of(
            Reference::new()
                .fault("flow/meta-page-size-wrog")
                .expect_err("no fault"),
        ),
        message_of(conformant::check(&rulebook, "flow/executon", b"{}").expect_err("no kind")),
        message_of(conformant::fixtures(&rulebook, "flow/executon", 0).expect_err("no kind")),
        message_of(
            conformant::diff_kinds(&rulebook, "MessageSent/4", "MesageSent/4")
                .expect_err("no kind"),
        ),
        message_of(
            Target::of([Service::at("chats", "http://127.0.0.1:1")]).expect_err("no service"),
        ),
        message_of(
            Target::of([Service::at("flow", "http://127.0.0.1:1").with("flowsid", "x")])
                .expect_err("no key"),
        ),
    ] {
        assert!(text.contains(near), "{text}");
    }
    for target in [
        Target::of([Service::at("chat", "not an address")]),
        Target::of([]),
    ] {
        assert!(matches!(target, Err(Error::Unusable { .. })), "{target:?}");
    }
    let nobody =
        Target::of([Service::at("flow", "http://127.0.0.1:1/flow")]).expect("it is an address");
    let run = conformant::run(&rulebook, &nobody, &RunOptions::new().filter(SCENARIO));
    let run = run.expect("an unreachable target is not an error of the library");
    assert_eq!(run.conclusion(), Conclusion::InfrastructureError, "{run}");
    assert!(run.findings().is_empty());
    assert!(run.report("html").is_err() && run.report("pdf=x").is_err());
    let empty = Rulebook::from_dir(Path::new("nowhere")).expect_err("no folder");
    assert!(matches!(empty, Error::Rulebook(_)), "{empty}");
}

/// Blocks of the page with the content of a file: `<!-- examples/NAME.rs -->` and the code below it.
#[test]
fn the_page_shows_the_examples_as_they_are() {
    let path = root().join("docs/src/rust.md");
    let page = std::fs::read_to_string(&path).expect("it is there");
    let block =
        Regex::new(r"(?s)<!-- (examples/[a-z]+\.rs) -->\n```rust\n.*?```\n").expect("well-formed");
    let made = block.replace_all(&page, |found: &regex::Captures<'_>| {
        let code = std::fs::read_to_string(root().join(&found[1])).expect("it is there");
        format!("<!-- {} -->\n```rust\n{code}```\n", &found[1])
    });
    assert_eq!(block.find_iter(&page).count(), 2);
    if std::env::var_os("BLESS").is_some() && std::env::var_os("CI").is_none() {
        std::fs::write(&path, made.as_bytes()).expect("the temporary folder is writable");
    }
    let page = std::fs::read_to_string(&path).expect("it is there");
    assert!(
        page == made,
        "docs/src/rust.md; BLESS=1 cargo test --test it api::"
    );
}

#[test]
fn only_the_interface_is_public() {
    let lib = std::fs::read_to_string(root().join("src/lib.rs")).expect("it is there");
    let lines: Vec<&str> = lib.lines().collect();
    let shown: Vec<&&str> = lines
        .iter()
        .enumerate()
        .filter(|(at, line)| {
            line.starts_with("pub mod ") && !lines[at - 1].ends_with("doc(hidden))]")
        })
        .map(|(_, line)| line)
        .collect();
    assert!(
        shown.is_empty(),
        "give it a place in src/api or hide it: {shown:?}"
    );
    let inner = Regex::new(r"\bpub (?:fn|enum|type)[^{;]*\b(?:engine|crate|server|serde_json)::")
        .expect("well-formed");
    for file in crate::program::files(&root().join("src/api"), &["rs"]) {
        let text = std::fs::read_to_string(&file).expect("it is readable");
        let leak = inner.find(&text);
        assert!(
            leak.is_none(),
            "{}: {:?} shows an inner type",
            file.display(),
            leak.map(|l| l.as_str())
        );
    }
}
