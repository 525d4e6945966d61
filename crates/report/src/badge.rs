//! Badge data for the shields endpoint: the result in four words.

use super::Settings;
use super::cards;
use super::view;
use conformant_base::text;
use conformant_record::RunRecord;
use serde_json::json;

pub(super) fn render(record: &RunRecord, settings: Settings) -> String {
    let whole = cards::whole(record, settings);
    let judged = whole.judged();
    let unjudged = whole.unjudged();
    let (message, color) = if !record.complete {
        ("cut short".to_owned(), "lightgrey")
    } else if whole.broken > 0 {
        (
            format!("{} broken", view::count(whole.broken, "rule")),
            "red",
        )
    } else if whole.error > 0 {
        (view::count(whole.error, "error"), "lightgrey")
    } else if judged == 0 {
        ("not judged".to_owned(), "lightgrey")
    } else if whole.warned > 0 {
        (view::count(whole.warned, "warning"), "yellow")
    } else if whole.waived > 0 {
        (
            format!("{} pass, {} waived", whole.hold, whole.waived),
            "yellowgreen",
        )
    } else if unjudged > 0 {
        (
            format!("{} pass, {unjudged} not judged", whole.hold),
            "green",
        )
    } else {
        (format!("{} pass", whole.hold), "brightgreen")
    };
    let badge = json!({
        "schemaVersion": 1,
        "label": "conformant",
        "message": message,
        "color": color,
        "isError": whole.broken > 0 || whole.error > 0 || !record.complete,
    });
    text::safe_json(&badge).expect("map keys are strings")
}

#[cfg(test)]
mod tests {
    use crate::sample::sample;
    use crate::{Format, Settings};
    use conformant_record::Verdict;
    use serde_json::Value;

    #[test]
    fn a_badge_says_the_worst_first() {
        let mut record = sample();
        let badge = |record: &_| -> Value {
            serde_json::from_str(&Format::Badge.render(record, Settings::default())).unwrap()
        };
        let broken = badge(&record);
        assert_eq!(
            (&broken["schemaVersion"], &broken["message"]),
            (&1.into(), &"1 rule broken".into())
        );
        assert_eq!(
            (&broken["color"], &broken["isError"]),
            (&"red".into(), &true.into())
        );
        record
            .rules
            .retain(|rule| rule.id == "flow/execution/sid" || rule.id == "flow/executions/walk");
        assert_eq!(badge(&record)["message"], "1 pass, 1 not judged");
        // A waiver is visible on the badge.
        let waived = sample()
            .rules
            .into_iter()
            .find(|r| r.verdict == Verdict::Waived);
        record.rules.extend(waived);
        assert_eq!(badge(&record)["message"], "1 pass, 1 waived");
        assert_eq!(badge(&record)["color"], "yellowgreen");
        record.complete = false;
        assert_eq!(badge(&record)["color"], "lightgrey");
    }
}
