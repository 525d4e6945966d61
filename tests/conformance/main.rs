//! One trial for each scenario of the rulebook, run on the clean reference in this process, and one for each committed
//! fixture.
//!
//! `cargo test --test conformance -- flow/` runs one service. No socket is used; for other targets see `conformant run`.

use conformant_engine::plan::{self, Planned};
use conformant_engine::sessions::Offline;
use conformant_engine::{Concluded, Target};
use conformant_fixtures::Verifier;
use conformant_record::{Finding, Verdict};
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

/// The seed of every trial, so that failures are reproducible.
const SEED: u64 = 0;

/// State of all trials. A rulebook that fails to load fails all of them.
static RULEBOOK: LazyLock<Rulebook> = LazyLock::new(|| match conformant_judge::load::embedded() {
    Ok(rulebook) => rulebook,
    Err(problems) => panic!("the embedded rulebook has problems:\n{problems:?}"),
});

struct Suite {
    schemas: Schemas,
    sessions: Offline<'static>,
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let targets = Target::all_of_reference();
    let sessions = Offline::in_process(SEED, BTreeSet::new(), BTreeSet::new(), targets);
    let suite = Arc::new(Suite {
        schemas: Schemas::default(),
        sessions,
    });
    let mut trials: Vec<Trial> = plan::all(&RULEBOOK)
        .into_iter()
        .map(|planned| {
            let suite = Arc::clone(&suite);
            Trial::test(planned.scenario.id.clone(), move || suite.run(&planned))
        })
        .collect();
    trials.extend(fixtures());
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// One trial for each fixture, and one for files without an entry.
fn fixtures() -> Vec<Trial> {
    const REPAIR: &str = "BLESS=1 cargo test --test it fixtures";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let manifest = match conformant_fixtures::read(&folder) {
        Ok(manifest) => manifest,
        Err(error) => {
            let message = format!("failed to {error}");
            return vec![Trial::test(
                "fixtures/manifest",
                move || Err(message.into()),
            )];
        }
    };
    let verifier = Arc::new(Verifier::new(&RULEBOOK, &folder, &manifest));
    let unlisted = verifier.unlisted(&manifest);
    let mut trials = vec![Trial::test("fixtures/manifest", move || {
        if unlisted.is_empty() {
            return Ok(());
        }
        Err(format!("not listed in the manifest: {unlisted:?}; repair: {REPAIR}").into())
    })];
    trials.extend(manifest.fixtures.into_iter().map(|entry| {
        let verifier = Arc::clone(&verifier);
        Trial::test(format!("fixtures/{}", entry.name), move || {
            verifier
                .verify(&entry)
                .map_err(|why| format!("{why}\n  repair: {REPAIR}").into())
        })
    }));
    trials
}

impl Suite {
    /// Passes if the scenario finishes and there is no finding of any level.
    fn run(&self, planned: &Planned<'_>) -> Result<(), Failed> {
        let calm = AtomicBool::new(false);
        let concluded = conformant_engine::conclude(
            &RULEBOOK,
            &self.schemas,
            planned,
            &self.sessions,
            SEED,
            &calm,
        );
        if concluded.result.verdict == Verdict::Pass && concluded.judgment.findings.is_empty() {
            return Ok(());
        }
        Err(failure_text(&concluded).into())
    }
}

fn failure_text(concluded: &Concluded) -> String {
    let result = &concluded.result;
    let mut text = format!(
        "{}: {} {}\n",
        result.id,
        result.verdict.word(),
        result.reason
    );
    for finding in &concluded.judgment.findings {
        write_finding(&mut text, finding);
    }
    let _ = writeln!(
        text,
        "  again: cargo test --test conformance -- --exact '{}'",
        result.id
    );
    text
}

fn write_finding(text: &mut String, finding: &Finding) {
    let source = RULEBOOK
        .rules
        .get(&finding.rule)
        .map(|r| r.source.to_string())
        .unwrap_or_default();
    let _ = writeln!(
        text,
        "  {} {} ({source})\n    step {}, {} {}\n    {}\n    expected {}\n    actual   {}",
        finding.level.word(),
        finding.rule,
        finding.step,
        finding.operation,
        finding.pointer,
        finding.message,
        finding.expected,
        finding.actual,
    );
    for line in finding.diff.lines() {
        let _ = writeln!(text, "    {line}");
    }
}
