//! What changed since the last run with `--history`, in one line.

use crate::view;
use conformant_record::RunRecord;

/// Ids that are named for each kind of change.
const NAMED_MAX: usize = 3;

/// `run-1: 1 rule new (flow/execution/status) · 2 rules fixed (…)`; `None` without an earlier run that is comparable.
pub(super) fn since_last(record: &RunRecord) -> Option<String> {
    let history = record.history.as_ref()?;
    let last = history.earlier.last()?;
    let mut changes: Vec<String> = Vec::new();
    for (word, ids) in [
        ("new", &history.new),
        ("fixed", &history.fixed),
        ("flaky", &history.flaky),
    ] {
        if ids.is_empty() {
            continue;
        }
        let mut named = ids[..ids.len().min(NAMED_MAX)].join(", ");
        if ids.len() > NAMED_MAX {
            named += &format!(" and {} more", ids.len() - NAMED_MAX);
        }
        changes.push(format!(
            "{} {word} ({named})",
            view::count(ids.len(), "rule")
        ));
    }
    let changes = match changes.is_empty() {
        true => "no rule changed".to_owned(),
        false => changes.join(" · "),
    };
    Some(format!("{}: {changes}", last.name))
}

#[cfg(test)]
mod tests {
    use super::since_last;
    use crate::sample::sample;
    use conformant_record::{EarlierRun, History};

    #[test]
    fn changes_since_the_last_run_are_one_line() {
        let mut record = sample();
        assert_eq!(since_last(&record), None);
        record.history = Some(History::default());
        assert_eq!(since_last(&record), None);
        let earlier = vec![EarlierRun {
            name: "run-1".to_owned(),
            ..EarlierRun::default()
        }];
        record.history = Some(History {
            earlier: earlier.clone(),
            ..History::default()
        });
        assert_eq!(
            since_last(&record).as_deref(),
            Some("run-1: no rule changed")
        );
        record.history = Some(History {
            earlier,
            new: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
            fixed: vec!["e".to_owned()],
            ..History::default()
        });
        let expected = "run-1: 4 rules new (a, b, c and 1 more) · 1 rule fixed (e)";
        assert_eq!(since_last(&record).as_deref(), Some(expected));
    }
}
