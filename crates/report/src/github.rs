//! GitHub workflow commands: one annotation per defect, because a run shows only the first few, and one for each error
//! apart from rules.

use super::Settings;
use super::cards::{self, Card};
use super::failing;
use super::view::{self, Effect};
use conformant_record::RunRecord;
use conformant_record::claims::UNJUDGED_CLAIM;
use conformant_record::waivers::WAIVER;
use std::fmt::Write as _;

/// The exit code of a run that judged too little.
const NOT_CONCLUDED: u8 = 4;

pub(super) fn render(record: &RunRecord, settings: Settings) -> String {
    let mut out = String::new();
    for card in cards::cards(record, settings) {
        let command = match card.effect {
            Effect::Fails => "error",
            Effect::Warns => "warning",
            Effect::Advises => "notice",
        };
        let place = card
            .first()
            .and_then(|first| view::written_at(record, first));
        let title = failing::name(&card);
        annotate(&mut out, command, &title, place, &message(record, &card));
    }
    let errors = view::undecided(record);
    for (reason, ids) in errors
        .iter()
        .filter(|(reason, _)| reason.starts_with("error"))
    {
        annotate(&mut out, "error", reason, None, &ids.join("\n"));
    }
    for error in view::errors(record, settings) {
        annotate(&mut out, "error", title(record, &error), None, &error);
    }
    let headline = view::conclusion(record, settings);
    annotate(&mut out, "notice", "conformant", None, &headline);
    out
}

/// What an error apart from rules is about.
fn title(record: &RunRecord, error: &str) -> &'static str {
    if error.starts_with(WAIVER) {
        "waivers"
    } else if error.starts_with(UNJUDGED_CLAIM) {
        "claims"
    } else if record.exit == Some(NOT_CONCLUDED) {
        "not concluded"
    } else {
        "target"
    }
}

/// Annotates the line of the scenario or target, if the record has it.
fn annotate(
    out: &mut String,
    command: &str,
    title: &str,
    place: Option<(&str, usize)>,
    message: &str,
) {
    let place = place.map(|(file, line)| format!("file={},line={line},", property(file)));
    writeln!(
        out,
        "::{command} {}title={}::{}",
        place.unwrap_or_default(),
        property(title),
        data(message)
    )
    .expect("writing to a String succeeds");
}

/// Where the first broken rule is stated, then what the defect breaks.
fn message(record: &RunRecord, card: &Card<'_>) -> String {
    let origin = card.rules.first().map_or_else(String::new, |rule| {
        format!("{} ({})\n", rule.id, rule.origin())
    });
    origin + &failing::details(record, card)
}

/// Text after the second `::`. The runner decodes exactly these escapes.
fn data(text: &str) -> String {
    text.trim_end()
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::sample::{HOSTILE, assert_contains, every_text_is, sample};

    #[test]
    fn a_run_reads_like_this() {
        let text = Format::Github.render(&sample(), Settings::default());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        let start =
            "::error title=1. An execution has a third state::flow/execution/status (must, ";
        assert!(lines[0].starts_with(start), "{}", lines[0]);
        let parts = [
            "(must, D3 \"Execution (FN)\", line 37)%0Aresembles the fault",
            "%0Abreaks flow/execution/status%0Ain flow/create-execution/happy%0A/status is \"running\", expected one of active, ended%0A  where     flow/create-execution",
        ];
        assert_contains(lines[0], &parts);
        assert!(lines[1].starts_with("::warning title=2. "), "{}", lines[1]);
        assert_eq!(
            lines[2],
            "::error title=error%3A predicate panicked::flow/execution/steps"
        );
        assert_eq!(
            lines[3],
            "::notice title=conformant::not conformant: 1 of 2 defects (1 rule) fails the run, 1 warning, 5 not decided · target: http://127.0.0.1:4010/flow"
        );
    }

    #[test]
    fn annotations_stand_where_the_adopter_wrote_the_target_or_scenario() {
        let mut record = sample();
        record.places = [("flow".to_owned(), "conformant.yaml:7".to_owned())].into();
        let text = Format::Github.render(&record, Settings::default());
        assert!(text.starts_with("::error file=conformant.yaml,line=7,title=1. "));
        let own = (
            "flow/create-execution/happy".to_owned(),
            "own/flow/a.yaml:3".to_owned(),
        );
        record.places.extend([own]);
        let text = Format::Github.render(&record, Settings::default());
        assert!(
            text.starts_with("::error file=own/flow/a.yaml,line=3,title="),
            "{text}"
        );
    }

    #[test]
    fn a_run_that_failed_without_findings_has_an_error() {
        let record = RunRecord {
            exit: Some(3),
            errors: vec!["flow cannot be reached".to_owned()],
            ..RunRecord::default()
        };
        let text = Format::Github.render(&record, Settings::default());
        assert!(text.starts_with("::error title=target::flow cannot be reached\n"));
    }

    #[test]
    fn an_error_apart_from_rules_is_titled_by_what_it_is_about() {
        let titled = |exit, error: &str| {
            let record = RunRecord {
                exit: Some(exit),
                errors: vec![error.to_owned()],
                ..RunRecord::default()
            };
            let text = Format::Github.render(&record, Settings::default());
            let (_, line) = text.split_once("title=").expect("a title");
            line.split("::").next().unwrap_or_default().to_owned()
        };
        let expired = format!("{WAIVER}flow/flow/name expired on 2026-01-01: known");
        let claim = format!("{UNJUDGED_CLAIM}flow: no hook");
        for (exit, error, expected) in [
            (1, expired.as_str(), "waivers"),
            (1, claim.as_str(), "claims"),
            (4, "54 of 199 rules judged", "not concluded"),
            (1, "the address of flow leads elsewhere", "target"),
            (3, "flow cannot be reached", "target"),
        ] {
            assert_eq!(titled(exit, error), expected, "{error}");
        }
    }

    #[test]
    fn hostile_texts_make_no_command_of_their_own() {
        for text in HOSTILE {
            let rendered = Format::Github.render(&every_text_is(text), Settings::default());
            for line in rendered.lines() {
                let rest = line.strip_prefix("::").expect("only commands of ours");
                let (head, _) = rest.split_once("::").expect("a head and a message");
                let (command, properties) = head.split_once(' ').expect("properties");
                for property in properties.split(',') {
                    let name = property.split('=').next().unwrap_or_default();
                    assert!(["file", "line", "title"].contains(&name), "{line}");
                }
                assert!(["error", "warning", "notice"].contains(&command), "{line}");
                assert!(!properties.contains(':'), "{line}");
                assert!(!line.contains("##[") && !line.contains("##vso["), "{line}");
            }
        }
    }
}
