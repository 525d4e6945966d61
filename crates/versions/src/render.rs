//! Renders a comparison as text, JSON, Markdown or `JUnit` XML.
//!
//! Pure functions; all foreign text is escaped.

use super::ledger::Change;
use super::runs::{RunDifference, VerdictDifference};
use super::{Class, Comparison, LevelVerdict};
use conformant_base::text::{count, escape_line, excerpt, safe_json};
use conformant_record::junit::{self, Case, Failure, Status, Suite};
use conformant_record::{Defect, Finding, Verdict};
use std::fmt::Write as _;

const MEMORY: &str = "writing to a String succeeds";

/// Formats of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Lines for people.
    #[default]
    Text,
    /// JSON.
    Json,
    /// Markdown for a job summary or a pull request.
    Markdown,
    /// Markdown for an upgrade: what to do, grouped by audience.
    Changelog,
    /// `JUnit` XML: one test case for each change, failed if it fails the gate.
    Junit,
    /// A page, of the versions of an event only.
    Html,
}

impl Format {
    /// The format of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            "markdown" => Some(Self::Markdown),
            "junit" => Some(Self::Junit),
            "changelog" => Some(Self::Changelog),
            "html" => Some(Self::Html),
            _ => None,
        }
    }
}

impl Comparison {
    /// Renders the comparison; none as a page.
    ///
    /// # Panics
    /// Never: its map keys are texts.
    pub fn render(&self, format: Format) -> Option<String> {
        let text = match format {
            Format::Text => text(self),
            Format::Json => safe_json(self).expect("its map keys are texts"),
            Format::Markdown => markdown(self),
            Format::Changelog => changelog(self),
            Format::Junit => junit(self),
            Format::Html => return None,
        };
        Some(text)
    }

    /// `2 breaking for consumers, 1 additive`.
    fn counts(&self) -> String {
        let counted = Class::ALL
            .iter()
            .filter_map(|class| Some((self.summary.get(class.words())?, class)))
            .filter(|(count, _)| **count > 0);
        let mut parts: Vec<String> = counted
            .map(|(count, class)| format!("{count} {}", class.words()))
            .collect();
        if !self.stale.is_empty() {
            parts.push(format!("{} stale", self.stale.len()));
        }
        if parts.is_empty() {
            "no change".to_owned()
        } else {
            parts.join(", ")
        }
    }
}

/// The word in front of a change, and how it ends.
fn standing(change: &Change) -> &'static str {
    match (change.is_breaking(), &change.declared) {
        (true, None) => "BREAKS",
        (true, Some(_)) => "declared",
        (false, _) => "ok",
    }
}

fn classes(change: &Change) -> String {
    change
        .class
        .iter()
        .map(|class| class.words())
        .collect::<Vec<_>>()
        .join(", ")
}

fn text(comparison: &Comparison) -> String {
    let mut lines = Vec::new();
    for change in &comparison.changes {
        lines.push(format!("{:8} {}", standing(change), change.id));
        lines.push(format!("         {} ({})", change.place, classes(change)));
        lines.push(format!("         {}", change.message));
        let witnesses = change.witnesses.iter();
        lines.extend(witnesses.map(|w| format!("         witness: {}", w.words())));
        let declared = change.declared.iter();
        lines.extend(declared.map(|reason| format!("         declared: {reason}")));
    }
    let stale = comparison.stale.iter();
    lines.extend(stale.map(|id| format!("STALE    {id} is declared, but not a change: remove it")));
    for (what, ids) in [
        ("scenarios affected", &comparison.scenarios),
        ("fixtures affected", &comparison.fixtures),
        (
            "payloads that were valid and are now invalid",
            &comparison.broken,
        ),
    ] {
        if !ids.is_empty() {
            lines.push(format!("{what}: {}", ids.len()));
            lines.extend(ids.iter().map(|id| format!("  {id}")));
        }
    }
    lines.push(format!(
        "{} -> {}: {}",
        comparison.old,
        comparison.new,
        comparison.counts()
    ));
    lines.extend(comparison.levels.iter().flat_map(LevelVerdict::lines));
    lines_of(&lines)
}

/// Lines for people, each escaped.
pub(super) fn lines_of(lines: &[String]) -> String {
    let lines = lines.iter().map(|line| escape_line(line));
    lines.fold(String::new(), |out, line| out + &line + "\n")
}

fn markdown(comparison: &Comparison) -> String {
    let mut out = format!(
        "## {} to {}: {}\n",
        code(&comparison.old),
        code(&comparison.new),
        comparison.counts()
    );
    if !comparison.changes.is_empty() {
        out.push_str(
            "\n| | change | class | old | new | what it means |\n|---|---|---|---|---|---|\n",
        );
    }
    for change in &comparison.changes {
        let value = |v: &Option<String>| v.as_deref().map_or_else(String::new, cell);
        let declared = change
            .declared
            .as_ref()
            .map_or_else(String::new, |r| format!(" declared: {r}"));
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            standing(change),
            cell(&change.id),
            classes(change),
            value(&change.old),
            value(&change.new),
            cell(&format!("{}{declared}", change.message)),
        )
        .expect(MEMORY);
    }
    let levels: Vec<String> = comparison
        .levels
        .iter()
        .flat_map(LevelVerdict::lines)
        .collect();
    let lists = [
        ("Compatibility", &levels),
        ("Declared, but not a change", &comparison.stale),
        ("Scenarios affected", &comparison.scenarios),
        ("Fixtures affected", &comparison.fixtures),
        (
            "Payloads that were valid and are now invalid",
            &comparison.broken,
        ),
    ];
    for (title, ids) in lists.into_iter().filter(|(_, ids)| !ids.is_empty()) {
        write!(out, "\n### {title}\n\n").expect(MEMORY);
        for id in ids {
            writeln!(out, "- {}", code(id)).expect(MEMORY);
        }
    }
    out
}

/// Changes for people: breaking ones first, then new ones, each with its place and an example.
fn changelog(comparison: &Comparison) -> String {
    let mut out = format!(
        "# {} to {}\n\n{}.\n",
        code(&comparison.old),
        code(&comparison.new),
        comparison.counts()
    );
    let titles = [
        (
            Class::BreakingForConsumers,
            "Breaks readers of responses and events, and senders of requests",
        ),
        (
            Class::BreakingForProducers,
            "Breaks services that respond or send events",
        ),
        (Class::WasOpenNowStated, "Was unspecified, is now stated"),
        (Class::Additive, "New"),
        (Class::Clarified, "Clarified"),
    ];
    for (class, title) in titles {
        let of_class = comparison
            .changes
            .iter()
            .filter(|c| c.class.contains(&class));
        for (turn, change) in of_class.enumerate() {
            if turn == 0 {
                write!(out, "\n## {title}\n\n").expect(MEMORY);
            }
            let (place, message) = (code(&change.place), code(&change.message));
            writeln!(out, "- {place}: {message}").expect(MEMORY);
            for witness in &change.witnesses {
                writeln!(out, "  - for example {}", code(&witness.words())).expect(MEMORY);
            }
            if let Some(reason) = &change.declared {
                writeln!(out, "  - meant: {}", code(reason)).expect(MEMORY);
            }
        }
    }
    if !comparison.broken.is_empty() {
        out.push_str("\n## Payloads that were valid and are now invalid\n\n");
        for one in &comparison.broken {
            writeln!(out, "- {}", code(one)).expect(MEMORY);
        }
    }
    out
}

/// A code span, with a longer fence around a text with backticks.
pub(super) fn code(text: &str) -> String {
    let text = escape_line(text);
    if text.trim().is_empty() {
        return "(empty)".to_owned();
    }
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or_default() + 1);
    // The reader removes these spaces.
    let space = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{text}{space}{fence}")
}

/// A code span in a table cell, without bars.
fn cell(text: &str) -> String {
    code(&text.replace('|', "\\x7c"))
}

fn junit(comparison: &Comparison) -> String {
    let case = |id: &str, class: &str, status, output: Option<String>| Case {
        name: escape_line(id).into(),
        class: escape_line(class).into(),
        seconds: None,
        status,
        failed_before: Vec::new(),
        output: output.map(|text| escape_line(&text).into()),
    };
    let failed = |kind, message: &str| {
        Status::Failed(Failure {
            kind,
            message: escape_line(message).into(),
            details: String::new(),
        })
    };
    let changes = comparison.changes.iter().map(|change| {
        let status = match (&change.declared, change.is_breaking()) {
            (None, true) => failed("breaking", &change.message),
            (Some(reason), true) => {
                Status::Skipped(escape_line(&format!("declared: {reason}")).into())
            }
            (_, false) => Status::Passed,
        };
        let output = format!("{}: {}", change.place, change.message);
        case(&change.id, &classes(change), status, Some(output))
    });
    let stale = comparison.stale.iter().map(|id| {
        let status = failed("stale", "declared, but not a change: remove it");
        case(id, "stale declaration", status, None)
    });
    let levels = comparison.levels.iter().map(|level| {
        let status = match level.holds {
            true => Status::Passed,
            false => failed("incompatible", &level.words()),
        };
        case(
            level.level.word(),
            "compatibility",
            status,
            Some(level.lines().join("\n")),
        )
    });
    let suite = Suite {
        name: escape_line(&format!("{} to {}", comparison.old, comparison.new)).into(),
        cases: changes.chain(stale).chain(levels).collect(),
        ..Suite::default()
    };
    junit::render("conformant diff", None, &[suite])
}

/// The first lines, and the number of the others.
fn shortened(mut lines: Vec<String>) -> Vec<String> {
    /// Lines of a section, so that one defect is compared on a screen.
    const LINES_MAX: usize = 5;
    if lines.len() > LINES_MAX {
        let more = lines.len() - (LINES_MAX - 1);
        lines.truncate(LINES_MAX - 1);
        lines.push(format!("… {more} more (all: --report json=-)"));
    }
    lines
}

/// The answers of two runs where behavior is unspecified. Of answers that the runs share, only the others are shown.
fn answers(a: &[String], b: &[String]) -> String {
    let without = |words: &[String], others: &[String]| -> Vec<String> {
        let words = words.iter().filter(|word| !others.contains(word));
        words.cloned().collect()
    };
    let (only_a, only_b) = (without(a, b), without(b, a));
    if only_a.len() == a.len() {
        return format!("{} -> {}", listed_answers(a), listed_answers(b));
    }
    let of_one = [("first", only_a), ("second", only_b)];
    let of_one = of_one.iter().filter(|(_, words)| !words.is_empty());
    let of_one: Vec<String> = of_one
        .map(|(run, words)| format!("only in the {run} run: {}", listed_answers(words)))
        .collect();
    match of_one.is_empty() {
        true => "the same answers in another order".to_owned(),
        false => of_one.join("; "),
    }
}

/// The first answers of a run.
fn listed_answers(words: &[String]) -> String {
    /// Answers of one run that are shown.
    const SHOWN_MAX: usize = 3;
    /// Bytes of one answer that are shown.
    const EXCERPT_BYTES_MAX: usize = 120;
    if words.is_empty() {
        return "not observed".to_owned();
    }
    // An answer without an operation begins with the colon that follows its name.
    let plain = |word: &String| {
        let word = word.strip_prefix(": ").unwrap_or(word);
        excerpt(word, EXCERPT_BYTES_MAX).into_owned()
    };
    let mut shown: Vec<String> = words.iter().take(SHOWN_MAX).map(plain).collect();
    if words.len() > SHOWN_MAX {
        let more = words.len() - SHOWN_MAX;
        shown.push(format!("… {more} more (all: --report json=-)"));
    }
    shown.join(", ")
}

impl RunDifference {
    /// Renders the difference; none for test cases and changelog, which need changes.
    ///
    /// # Panics
    /// Never: it has no maps.
    pub fn render(&self, format: Format) -> Option<String> {
        match format {
            Format::Text => Some(self.text()),
            Format::Json => Some(safe_json(self).expect("it has no maps")),
            Format::Markdown => Some(self.markdown()),
            Format::Changelog | Format::Junit | Format::Html => None,
        }
    }

    /// Title and lines of each section that is not empty.
    fn parts(&self) -> Vec<(String, Vec<String>)> {
        let shown = |verdict: Option<Verdict>| verdict.map_or("not selected", Verdict::word);
        let verdicts = |list: &[VerdictDifference]| -> Vec<String> {
            list.iter()
                .map(|d| format!("{}: {} -> {}", d.id, shown(d.a), shown(d.b)))
                .collect()
        };
        let findings = |list: &[Finding]| -> Vec<String> {
            list.iter()
                .map(|f| {
                    let by = if f.scenario.is_empty() {
                        &f.operation
                    } else {
                        &f.scenario
                    };
                    format!("{} ({by}): {}", f.rule, f.message)
                })
                .collect()
        };
        let defects = |list: &[Defect], finding: &str| -> Vec<String> {
            let line = |defect: &Defect| {
                let rules = count(defect.rules.len(), "rule");
                let findings = count(defect.findings, finding);
                let scenarios = count(defect.scenarios, "scenario");
                format!("{} ({rules}, {findings}, {scenarios})", defect.title)
            };
            list.iter().map(line).collect()
        };
        [
            ("limits of this comparison", self.cautions.clone()),
            ("new defects", defects(&self.new_defects, "new finding")),
            (
                "defects of the first run only",
                defects(&self.gone_defects, "finding"),
            ),
            ("rules whose verdict differs", verdicts(&self.rules)),
            ("scenarios whose verdict differs", verdicts(&self.scenarios)),
            (
                "unspecified behaviors answered differently",
                self.open_points
                    .iter()
                    .map(|p| format!("{}: {}", p.id, answers(&p.a, &p.b)))
                    .collect(),
            ),
            ("new findings", findings(&self.new)),
            ("findings of the first run only", findings(&self.gone)),
        ]
        .into_iter()
        .filter(|(_, lines)| !lines.is_empty())
        .map(|(title, lines)| {
            let heading = format!("{title}: {}", lines.len());
            // A defect is one line already.
            let is_whole = title.contains("defects");
            (heading, if is_whole { lines } else { shortened(lines) })
        })
        .collect()
    }

    fn conclusion(&self) -> String {
        match (self.is_empty(), self.regressions().count()) {
            (true, _) => "no difference".to_owned(),
            (false, 0) if !self.new.is_empty() => format!(
                "the second breaks no further rule, but breaks known ones in new places ({})",
                count(self.new.len(), "new finding")
            ),
            (false, 0) => "the second breaks no rule that the first keeps".to_owned(),
            (false, count) => format!("rules that only the second breaks: {count}"),
        }
    }

    fn text(&self) -> String {
        let parts = self.parts().into_iter().flat_map(|(title, lines)| {
            let lines = lines.into_iter().map(|line| format!("  {line}"));
            std::iter::once(title).chain(lines)
        });
        let last = format!("{} -> {}: {}", self.a, self.b, self.conclusion());
        lines_of(&parts.chain([last]).collect::<Vec<_>>())
    }

    fn markdown(&self) -> String {
        let mut out = format!(
            "## {} to {}: {}\n",
            code(&self.a),
            code(&self.b),
            self.conclusion()
        );
        for (title, lines) in self.parts() {
            write!(out, "\n### {title}\n\n").expect(MEMORY);
            for line in lines {
                writeln!(out, "- {}", code(&line)).expect(MEMORY);
            }
        }
        out
    }
}
