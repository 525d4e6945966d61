//! Renders run records in every report format.
//!
//! - One file per format: a pure function from a finished [`RunRecord`] to text. The console also consumes
//!   the event stream.
//! - Knows neither the engine nor the environment: the caller sets width, color and destination.
//! - [`Stream`] redacts events before any consumer; [`Format::render`] escapes records for formats that
//!   people read.

mod archive;
mod cards;
pub mod console;
mod ctrf;
mod destination;
mod failing;
mod folder;
mod github;
mod html;
mod invocation;
mod json;
mod jsonl;
mod junit;
mod markdown;
mod matrix;
mod points;
mod repeats;
mod report_lock;
mod sarif;
mod since;
pub mod statement;
mod stream;
mod tally;
mod texts;
mod timings;
mod view;

#[cfg(test)]
mod sample;

pub use self::cards::{FailedHook, failed_hooks, findings_of_defect};
pub use self::console::ALIVE_SECONDS;
pub use self::console::{Console, wrapped};
pub use self::destination::{Destination, Growing, Report, ReportError, WriteError, write_whole};
pub use self::folder::files as folder_files;
pub use self::invocation::{flags, limits, run_like, shown_target, target_of};
pub use self::json::{ReadError, read};
pub use self::jsonl::{EventLines, RunLine};
pub use self::matrix::{FeatureScenarios, Matrix, versions_page};
pub use self::repeats::render as render_repeats;
pub use self::report_lock::{ReportLock, ReportLockError};
pub use self::stream::{Consumer, Stream};
pub use self::texts::{escaped, redact};
pub use self::timings::render as render_timings;

use conformant_record::RunRecord;

/// A report format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The record itself.
    Json,
    /// `JUnit` XML, for CI dashboards.
    Junit,
    /// Events as JSON lines, written as the run goes.
    Jsonl,
    /// A folder: an index, one file for each defect, and the record.
    Dir,
    /// A self-contained HTML file.
    Html,
    /// Markdown, for a job summary.
    Markdown,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Common Test Report Format.
    Ctrf,
    /// Workflow commands that annotate a GitHub run.
    Github,
    /// An in-toto statement with the test-result predicate, for `conformant verify`.
    Statement,
}

/// Settings of the formats.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// `--strict`: a broken should-rule fails the run like a must-rule.
    pub strict: bool,
}

impl Format {
    /// Every format, in the order of the help.
    pub const ALL: [Self; 10] = [
        Self::Json,
        Self::Junit,
        Self::Jsonl,
        Self::Dir,
        Self::Html,
        Self::Markdown,
        Self::Sarif,
        Self::Ctrf,
        Self::Github,
        Self::Statement,
    ];

    /// Texts that every report of this format contains, and that together no other file has.
    fn marks(self) -> &'static [&'static str] {
        const TOOL: &str = r#""name": "conformant""#;
        match self {
            Self::Json => &[r#""schema_version": "#, TOOL],
            Self::Junit => &[r#"<testsuites name="conformant""#],
            Self::Jsonl => &[r#"{"event": "run-ended","#],
            Self::Dir => &[folder::MARK],
            Self::Html => &[r#"<b class="brand">conformant</b>"#],
            Self::Sarif => &["sarif", TOOL],
            Self::Ctrf => &[r#""reportFormat": "CTRF""#, TOOL],
            Self::Statement => &["https://in-toto.io/", r#""rulebook""#],
            Self::Markdown | Self::Github => &[],
        }
    }

    /// The name in `--report FORMAT=PATH`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Junit => "junit",
            Self::Jsonl => "jsonl",
            Self::Dir => "dir",
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Sarif => "sarif",
            Self::Ctrf => "ctrf",
            Self::Github => "github",
            Self::Statement => "statement",
        }
    }

    /// Renders the report. The record must be redacted ([`redact`]).
    ///
    /// A folder is rendered as the text of its files but the record.
    /// Data formats keep every text exactly, in safe spelling; the others escape it.
    pub fn render(self, record: &RunRecord, settings: Settings) -> String {
        match self {
            Self::Json => json::render(record),
            Self::Jsonl => jsonl::render(record, settings),
            Self::Dir => {
                let files = folder::files(record, settings).into_iter();
                files.map(|(_, content)| content).collect()
            }
            Self::Sarif => sarif::render(record, settings),
            Self::Ctrf => ctrf::render(record, settings),
            Self::Statement => statement::render(record),
            Self::Junit => junit::render(&escaped(record), settings),
            Self::Html => html::render(&escaped(record), settings),
            Self::Markdown => markdown::render(&escaped(record), settings),
            Self::Github => github::render(&escaped(record), settings),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sample::{HOSTILE, assert_contains, every_text_is, sample};
    use super::*;
    use conformant_base::redact::{REDACTED, Redactor};
    use conformant_base::text::is_deceptive;
    use proptest::prelude::*;

    const SECRET: &str = "hunter2/hunter2";

    #[test]
    fn every_format_shows_what_is_broken_and_by_what_source() {
        // A statement names rules only.
        let formats = Format::ALL.into_iter();
        for format in formats.filter(|format| *format != Format::Statement) {
            let report = format.render(&sample(), Settings::default());
            let report = report.replace("&#x2f;", "/");
            let parts = [
                "flow/execution/status",
                "one of active, ended",
                "[redacted]",
            ];
            assert_contains(&report, &parts);
            assert!(report.ends_with('\n'), "{format:?} ends within a line");
        }
    }

    #[test]
    fn no_format_shows_a_secret() {
        let redactor = Redactor::new([SECRET]);
        let encoded = conformant_base::http::percent_encode(SECRET);
        let mut record = every_text_is(&format!("a {SECRET} {encoded} b"));
        redact(&mut record, &redactor);
        for format in Format::ALL {
            let report = format.render(&record, Settings::default());
            assert!(report.contains(REDACTED), "{format:?}");
            assert!(!report.contains("hunter2"), "{format:?}");
        }
    }

    #[test]
    fn no_format_carries_controls_or_commands_of_others() {
        for (format, text) in Format::ALL
            .iter()
            .flat_map(|f| HOSTILE.map(|text| (f, text)))
        {
            let report = format.render(&every_text_is(text), Settings::default());
            assert!(!report.contains(is_deceptive), "{format:?} {text:?}");
            for command in ["##vso[", "##teamcity[", "##[", "\n::set", "\n  ::set"] {
                assert!(!report.contains(command), "{format:?} {text:?}");
            }
        }
    }

    proptest! {
        // Each case renders fourteen reports.
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn every_format_takes_any_text(text in any::<String>()) {
            let record = every_text_is(&text);
            for format in Format::ALL {
                let report = format.render(&record, Settings { strict: true });
                prop_assert!(!report.contains(is_deceptive));
                prop_assert_eq!(&report, &format.render(&record, Settings { strict: true }));
            }
        }
    }
}
