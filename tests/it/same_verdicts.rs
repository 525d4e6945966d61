//! The same seed gives the same record apart from races, byte for byte: with one job or sixteen, in any order, in process or over TCP.

use crate::offline;
use crate::program::{is_campaign, one_in};
use conformant_engine::plan::{self, Selection};
use conformant_engine::sessions::Offline;
use conformant_engine::{Sessions, Target};
use conformant_judge::load::shared as rulebook;
use conformant_judge::prove::Mode;
use conformant_reference::Fault;
use std::collections::BTreeSet;
use std::sync::LazyLock;

const SEED: u64 = 7;

/// Scenarios that find the faults below; the campaign runs all of the service, and a release build all services.
fn selection() -> Selection {
    let mut selection = Selection::default();
    if cfg!(debug_assertions) {
        selection.services = vec!["flow".to_owned()];
        if !is_campaign() {
            let filters = vec![
                "flow/read-flows/*page",
                "flow/read-flows/page-urls",
                "flow/executions/walk",
                "flow/steps/s*",
            ];
            selection.filters = one_in(2, filters).into_iter().map(str::to_owned).collect();
        }
    }
    selection
}

/// Faults, so that the records have findings to compare.
fn faults() -> BTreeSet<Fault> {
    [
        "flow/meta-page-size-wrong",
        "flow/page-skips",
        "flow/steps-oldest-first",
    ]
    .iter()
    .map(|id| Fault::from_id(id).expect("there is a fault of that name"))
    .collect()
}

/// The record that the others are compared with: one job, in order, in process.
static STRAIGHT: LazyLock<String> = LazyLock::new(|| record(&in_process(), 1, None));

fn in_process() -> Offline<'static> {
    Offline::in_process(SEED, faults(), BTreeSet::new(), Target::all_of_reference())
}

/// The record as in the JSON report.
fn record(sessions: &dyn Sessions, jobs: usize, shuffle: Option<u64>) -> String {
    let mut planned = plan::plan(rulebook(), &selection(), shuffle);
    // In process the seed decides which request of a race comes first, over sockets the threads do.
    planned.retain(|one| !one.is_race());
    let mut options = offline::options(SEED, jobs, Mode::Sample);
    options.shuffle = shuffle.is_some();
    let record = offline::record(rulebook(), &planned, sessions, &options);
    assert!(
        record.complete && record.findings.len() > 2,
        "the run has something to differ in"
    );
    serde_json::to_string_pretty(&record).expect("records are JSON")
}

/// Prints the first difference instead of two long texts.
fn assert_same(one: &str, other: &str, what: &str) {
    let differing = one
        .lines()
        .zip(other.lines())
        .enumerate()
        .find(|(_, (a, b))| a != b);
    if let Some((line, (a, b))) = differing {
        let before: Vec<&str> = one
            .lines()
            .take(line)
            .skip(line.saturating_sub(15))
            .collect();
        panic!(
            "{what}: the records part at line {}:\n{}\n- {a}\n+ {b}",
            line + 1,
            before.join("\n")
        );
    }
    assert_eq!(one.len(), other.len(), "{what}: one record goes on");
}

/// What differs from the record with one job, in order and in process.
struct Way {
    jobs: usize,
    shuffle: Option<u64>,
    is_over_tcp: bool,
}

/// All differences at once. The campaign also tries each of them alone.
fn ways() -> Vec<Way> {
    let way = |jobs, shuffle, is_over_tcp| Way {
        jobs,
        shuffle,
        is_over_tcp,
    };
    let mut ways = one_in(2, vec![way(16, Some(1), true), way(16, Some(2), true)]);
    if is_campaign() {
        ways.extend([
            way(16, None, false),
            way(4, Some(1), false),
            way(4, Some(2), false),
            way(8, None, true),
        ]);
    }
    ways
}

#[test]
fn jobs_order_and_sockets_change_no_conclusion() {
    for way in ways() {
        let sessions = match way.is_over_tcp {
            false => in_process(),
            true => {
                let targets = Target::all_of_reference();
                Offline::over_tcp(SEED, faults(), BTreeSet::new(), targets)
                    .expect("loopback is there")
            }
        };
        let Way { jobs, shuffle, .. } = way;
        let what = format!(
            "{jobs} jobs, shuffled by {shuffle:?}, TCP: {}",
            way.is_over_tcp
        );
        assert_same(&STRAIGHT, &record(&sessions, jobs, shuffle), &what);
    }
}
