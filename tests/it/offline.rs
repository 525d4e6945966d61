//! Runs of the engine within the test's own process.

use conformant_engine::{Options, Planned, Sessions};
use conformant_judge::prove::Mode;
use conformant_record::{RunEvent, RunRecord};
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Compiled schemas of the embedded rulebook.
static SCHEMAS: LazyLock<Schemas> = LazyLock::new(Schemas::default);

/// Options of a run in the planned order that does not keep its evidence.
pub(crate) fn options(seed: u64, jobs: usize, prove: Mode) -> Options {
    Options {
        seed,
        jobs,
        shuffle: false,
        run_max: Duration::from_secs(600),
        prove,
        evidence_writer: None,
    }
}

/// Runs scenarios of the embedded rulebook to their end; returns the record.
pub(crate) fn record(
    rulebook: &Rulebook,
    planned: &[Planned<'_>],
    sessions: &dyn Sessions,
    options: &Options,
) -> RunRecord {
    let mut record = None;
    conformant_engine::run(
        rulebook,
        &SCHEMAS,
        planned,
        sessions,
        options,
        &AtomicBool::new(false),
        &mut |event| {
            if let RunEvent::Finished { record: finished } = event {
                record = Some(*finished);
            }
        },
        |_, _| {},
    );
    record.expect("a run ends with its record")
}
