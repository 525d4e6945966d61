//! The example run of all format tests: one rule per verdict, two kinds of finding.

use crate::texts::replaced;
use conformant_record::{ArchiveCounts, Repeats, RunRecord};
use serde_json::{Map, Value};

/// A finished run.
pub(super) fn sample() -> RunRecord {
    read(&[include_str!("sample.json")])
}

/// Counts of an archive of events.
pub(super) fn archive() -> ArchiveCounts {
    with_every_field().archive.expect("an archive")
}

/// A record in which every text is the given one.
pub(super) fn every_text_is(text: &str) -> RunRecord {
    let mut record = replaced(&with_every_field(), text);
    for place in record.places.values_mut() {
        *place += ":1";
    }
    record
}

/// Two runs with a flaky rule.
pub(super) fn repeats(text: &str) -> Repeats {
    every_text_is(text).repeats.expect("repeated runs")
}

/// The sample with an example of every field.
fn with_every_field() -> RunRecord {
    read(&[
        include_str!("sample.json"),
        include_str!("sample-texts.json"),
    ])
}

/// The record with the fields of each text; those of later ones count.
fn read(texts: &[&str]) -> RunRecord {
    let mut fields = Map::new();
    for text in texts {
        fields.extend(serde_json::from_str::<Map<_, _>>(text).expect("an object"));
    }
    serde_json::from_value(Value::Object(fields)).expect("a record")
}

/// Fails if a report lacks one of the parts.
#[track_caller]
pub(super) fn assert_contains(report: &str, parts: &[&str]) {
    for part in parts {
        assert!(report.contains(part), "{part}\nis missing in\n{report}");
    }
}

/// Texts that attack readers of a report; each format is tested with all of them.
pub(super) const HOSTILE: [&str; 14] = [
    "\u{1b}[2J\u{1b}]52;c;Zm9v\u{7}\u{9b}31m\u{8}\r\0",
    "\u{202e}txt.exe\u{2066}\u{200b}\u{2028}\u{feff}",
    "::error::pwned\n  ::set-output name=a::b\r\n::add-mask::x",
    "##vso[task.complete result=Succeeded;]\n##[error]x ##teamcity[testFinished]",
    "section_start:1:a\r\u{1b}[0K",
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "\" onmouseover=\"alert(1)\" x='",
    "]]></failure><x>&lt;&#0;\u{fffe}\u{ffff}",
    "{{ 7*7 }}{% raw %}",
    "`` ``` a`b\n```\n# heading\n| a | b |\n<b>x</b> [l](javascript:x) @all",
    "\\` | \\| \\\\| x",
    "=1+1 @x -x",
    "ok 1 - # TODO x # SKIP\nBail out!\n1..0\n  ...\n---\nyaml: [",
    "%0A%0D,title=x::y",
];
