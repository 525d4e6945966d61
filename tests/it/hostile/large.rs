//! Responses of maximum size on every job: memory of the process.

use crate::hostile::command::{conformant, reports, run};
use crate::hostile::pages::{many_objects, ok, page};
use crate::hostile::target::{Target, keep};
use crate::program::{Folder, one_in};
use serde_json::{Value, json};

/// Memory that any target may cost. A program without optimization is itself larger by some 30 MiB.
const PEAK_KIB_MAX: u64 = if cfg!(debug_assertions) {
    160 * 1024
} else {
    128 * 1024
};
/// Just below the maximum size of a body.
const BODY_BYTES: usize = 8 * 1024 * 1024 - 64 * 1024;

/// One flow with a name of maximum length.
fn long_name() -> Value {
    let mut page = page("http://127.0.0.1", 0, None);
    page["flows"][0]["friendly_name"] = json!("x".repeat(BODY_BYTES - 2_000));
    page
}

#[test]
fn the_largest_answers_to_all_jobs_at_once_stay_within_bounds() {
    let pages = vec![("name", long_name()), ("objects", many_objects())];
    for (name, page) in one_in(2, pages) {
        let body = page.to_string();
        assert!(body.len() <= BODY_BYTES + 4_096, "{name}: {}", body.len());
        let answer = ok(&body);
        let target = Target::answering(move |_| keep(answer.clone()));
        let folder = Folder::with_limits();
        folder.write("conformant.yaml", "limits: {timeout: 20s}\n");
        let mut command = conformant(&folder);
        command.args(["run", "--filter", "flow/read-flows/*", "--jobs", "8"]);
        command.args(["--target", &format!("flow={}/flow", target.origin())]);
        command.args(["--report", "json=run.json", "--report", "junit=junit.xml"]);
        let ended = run(&mut command);
        reports(&folder, &ended);
        assert!(
            ended.peak_kib <= PEAK_KIB_MAX,
            "{name}: {} KiB, {:?}",
            ended.peak_kib,
            ended.took
        );
    }
}
