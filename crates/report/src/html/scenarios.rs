//! A text list of all scenarios: sign, name, seconds, reason. The script turns the list into tables.

use crate::tally::State;
use crate::view;
use conformant_base::text;
use conformant_record::{RunRecord, ScenarioResult};
use minijinja::{Value, context};
use std::collections::BTreeMap;

/// Bytes of all lines; later scenarios are counted.
const LINES_BYTES_MAX: usize = 128 * 1024;
/// Bytes of one reason.
const REASON_BYTES_MAX: usize = 120;

pub(super) fn scenarios(record: &RunRecord) -> Vec<Value> {
    let mut services: BTreeMap<&str, Vec<&ScenarioResult>> = BTreeMap::new();
    for result in &record.scenarios {
        let service = view::service(&result.id);
        services.entry(service).or_default().push(result);
    }
    let mut room = LINES_BYTES_MAX;
    let groups = services.into_iter().map(|(name, results)| {
        context! { name, count => results.len(), lines => lines(&results, &mut room) }
    });
    groups.collect()
}

/// One line for each scenario, grouped by folder.
fn lines(results: &[&ScenarioResult], room: &mut usize) -> String {
    let mut out = String::new();
    let mut folder = "";
    for (at, result) in results.iter().enumerate() {
        // A value of a matrix may contain slashes and blanks.
        let plain = result.id.find('[').unwrap_or(result.id.len());
        let (above, name) = match result.id[..plain].rfind('/') {
            Some(at) => result.id.split_at(at + 1),
            None => ("", result.id.as_str()),
        };
        let head = if above == folder {
            String::new()
        } else {
            format!("{above}\n")
        };
        let sign = State::from(result.verdict).shown().sign;
        let reason = text::excerpt(&result.reason, REASON_BYTES_MAX);
        let line = format!("{head}{sign}{name} {:.1} {reason}\n", result.seconds);
        if line.len() > *room {
            *room = 0;
            let more = view::count(results.len() - at, "more scenario");
            out += &format!("{more} in the JSON record\n");
            break;
        }
        *room -= line.len();
        folder = above;
        out += &line;
    }
    out
}
