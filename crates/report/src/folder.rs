//! A folder of small files that can be read alone: `README.md`, one file for each defect, and the record.
//!
//! Each file is replaced as a whole. The index comes last, so that it names only complete files.

use crate::cards::{self, Card};
use crate::destination::write_whole;
use crate::invocation;
use crate::markdown::{block_of, cell, code, errors, services, without_marks};
use crate::since;
use crate::view::{self, Broken};
use crate::{Settings, escaped, json};
use conformant_base::text;
use conformant_record::{RunRecord, ShownExchange};
use std::fs;
use std::io;
use std::path::Path;

/// At most this many files of defects; the index counts the others.
const DEFECTS_MAX: usize = 100;
/// Bytes of one file of a defect.
const FILE_BYTES_MAX: usize = 40_000;
/// Rules with details per defect.
const RULES_MAX: usize = 5;
/// Bytes of an expected or observed value, and of a block.
const VALUE_BYTES_MAX: usize = 1_000;
const BLOCK_BYTES_MAX: usize = 6_000;
/// Bytes of a title.
const TITLE_BYTES_MAX: usize = 300;

/// The last line of the index. A `README.md` without it was not written by a report.
pub(super) const MARK: &str = "\n<!-- Written by conformant. -->\n";

/// Name and content of each file except `run.json`.
pub fn files(record: &RunRecord, settings: Settings) -> Vec<(String, String)> {
    let record = &escaped(record);
    let cards = cards::cards(record, settings);
    let shown = cards.iter().take(DEFECTS_MAX);
    let mut files: Vec<(String, String)> = shown
        .map(|card| (name(card.number), defect(record, card)))
        .collect();
    files.push(("README.md".to_owned(), index(record, settings, &cards)));
    files
}

/// An error if the folder has a `README.md` that no report wrote.
pub(super) fn check(folder: &Path) -> Result<(), String> {
    let index = folder.join("README.md");
    match fs::read_to_string(&index) {
        Ok(content) if !content.ends_with(MARK) => Err(format!(
            "{} was not written by conformant and would be replaced: name another folder",
            index.display()
        )),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Writes the folder, and removes the defects of an earlier run.
pub(super) fn write(folder: &Path, record: &RunRecord, settings: Settings) -> io::Result<()> {
    write_whole(&folder.join("run.json"), json::render(record).as_bytes())?;
    let files = files(record, settings);
    for number in files.len().. {
        let path = folder.join(name(number));
        // Files of others stay.
        if !fs::read_to_string(&path).is_ok_and(|content| content.starts_with(&title(number))) {
            break;
        }
        fs::remove_file(&path)?;
    }
    for (name, content) in &files {
        write_whole(&folder.join(name), content.as_bytes())?;
    }
    Ok(())
}

fn name(number: usize) -> String {
    format!("defect-{number}.md")
}

fn title(number: usize) -> String {
    format!("# Defect {number}: ")
}

/// The title of a defect for a code span.
fn of_title(card: &Card) -> String {
    text::excerpt(&without_marks(&card.defect.title), TITLE_BYTES_MAX).into_owned()
}

/// The index: verdict, defects with their files, services.
fn index(record: &RunRecord, settings: Settings, cards: &[Card]) -> String {
    let mut out = format!("# {}", view::headline(record, settings));
    let target = invocation::target_of(record);
    if !target.is_empty() {
        out += &format!(" · target: {}", code(&target));
    }
    out += "\n\n";
    let facts = [
        ("command", record.invocation.clone()),
        ("record", "run.json".to_owned()),
        ("since", since::since_last(record).unwrap_or_default()),
    ];
    for (label, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        out += &format!("- {label}: {}\n", code(value));
    }
    errors(record, settings, &mut out);
    if !cards.is_empty() {
        let head = match cards.iter().all(Card::is_of_clients) {
            true => "Mistakes of clients",
            false => "Defects",
        };
        out += &format!("\n## {head}\n\n");
        out += "| file | title | first rule | findings |\n|---|---|---|---|\n";
    }
    for card in cards.iter().take(DEFECTS_MAX) {
        let file = name(card.number);
        let first = card.rules.first().map_or("", |rule| rule.id);
        out += &format!(
            "| [{file}]({file}) | {} {} | {} | {} |\n",
            card.effect.word(),
            cell(&of_title(card)),
            cell(first),
            card.defect.findings,
        );
    }
    if cards.len() > DEFECTS_MAX {
        let more = view::count(cards.len() - DEFECTS_MAX, "more defect");
        out += &format!("\n{more} in run.json\n");
    }
    out += "\n## Services\n\n";
    services(record, settings, &mut out);
    out + MARK
}

/// One defect with its rules.
fn defect(record: &RunRecord, card: &Card) -> String {
    let mut out = format!("{}{}\n\n", title(card.number), code(&of_title(card)));
    out += &format!("{} · {}\n", card.effect.word(), code(&card.extent()));
    if let Some(guess) = card.guess() {
        out += &format!("\nLikely cause: {}\n", code(&guess));
    }
    let mut left = Vec::new();
    for (at, broken) in card.rules.iter().enumerate() {
        let part = rule(record, broken);
        if at >= RULES_MAX || out.len() + part.len() > FILE_BYTES_MAX {
            left.push(code(broken.id));
        } else {
            out += &part;
        }
    }
    if !left.is_empty() {
        let more = left.len().saturating_sub(RULES_MAX * 4);
        left.truncate(RULES_MAX * 4);
        out += &format!("\nAlso broken: {}", left.join(", "));
        if more > 0 {
            out += &format!(" and {more} more in run.json");
        }
        out.push('\n');
    }
    out
}

/// A broken rule: its place in the document, its first finding, the exchange and the commands.
fn rule(record: &RunRecord, broken: &Broken) -> String {
    let mut out = format!("\n## {}\n\n", code(broken.id));
    if let Some(says) = broken.says() {
        out += &format!("{}\n\n", code(&without_marks(says)));
    }
    out += &format!("- document: {}\n", code(&broken.origin()));
    for quote in record.quotes.get(broken.id).into_iter().flatten() {
        let says = text::excerpt(&quote.text, VALUE_BYTES_MAX);
        out += &format!("- line {}: {}\n", quote.line, code(&says));
    }
    let Some(first) = broken.findings.first() else {
        return out;
    };
    out += &format!("- where: {}\n", code(&view::place(first)));
    let line = |text: &str| code(&text::excerpt(text, VALUE_BYTES_MAX));
    out += &format!("- finding: {}\n", line(&first.message));
    out += &format!("- expected: {}\n", line(&first.expected));
    out += &format!("- got: {}\n", line(&first.actual));
    let exchange = cards::exchange_of(record, first).map(http);
    let command = invocation::reproduce_command(record, first);
    let blocks = [
        ("difference", "diff", Some(first.diff.clone())),
        ("exchange", "http", exchange),
        ("request", "sh", Some(first.reproduce.clone())),
        ("command", "sh", command),
    ];
    for (label, language, text) in blocks {
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            continue;
        };
        let text = text::excerpt(&text, BLOCK_BYTES_MAX);
        out += &format!("\n{label}:\n\n{}\n", block_of(language, &text));
    }
    if let Some(note) = view::credentials_note(&first.reproduce) {
        out += &format!("\nThe request needs {note}.\n");
    }
    let more = broken.findings.len() - 1;
    if more > 0 {
        out += &format!(
            "\n{} of this rule in run.json\n",
            view::count(more, "more finding")
        );
    }
    out
}

/// An exchange as text.
fn http(exchange: &ShownExchange) -> String {
    let mut out = format!("{} {}\n", exchange.method, exchange.url);
    let block = |lines: &[String], body: &str| {
        let head: String = lines.iter().map(|line| format!("{line}\n")).collect();
        if body.is_empty() {
            head
        } else {
            format!("{head}\n{body}\n")
        }
    };
    out += &block(&exchange.request_headers, &exchange.request_body);
    out += &match exchange.status {
        0 => format!("\nno response: {}\n", exchange.fault),
        status => format!("\n{status}\n"),
    };
    out + &block(&exchange.response_headers, &exchange.response_body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;
    use crate::sample::{assert_contains, sample};
    use conformant_record::Quote;

    #[test]
    fn a_folder_has_an_index_a_file_for_each_defect_and_the_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("defect-3.md"), "# Defect 3: `old`\n").unwrap();
        fs::write(path.join("defect-4.md"), "notes of mine\n").unwrap();
        let report: Report = format!("dir={}", path.display()).parse().unwrap();
        let quote = Quote {
            line: 37,
            text: "What an execution may be.".to_owned(),
        };
        let record = RunRecord {
            quotes: [("flow/execution/status".to_owned(), vec![quote])].into(),
            ..sample()
        };
        report
            .write(&record, Settings::default(), &mut io::sink())
            .unwrap();
        let read = |name: &str| fs::read_to_string(path.join(name)).unwrap();
        let index = read("README.md");
        let row = "| [defect-1.md](defect-1.md) | FAIL `An execution has a third state` | `flow/execution/status` | 2 |\n";
        assert!(index.contains(row), "{index}");
        let first = read("defect-1.md");
        assert_contains(
            &first,
            &[
                "# Defect 1: `An execution has a third state`\n",
                "- document: `must, D3 \"Execution (FN)\", line 37`\n- line 37: `What an execution may be.`\n",
                "- expected: `one of active, ended`\n",
                "\nPOST http://127.0.0.1:4010/flow/v1/Flows/FW00/Executions\n",
                "\nconformant run --seed 7 --filter flow/create-execution/happy\n",
            ],
        );
        assert_eq!(json::read(read("run.json").as_bytes()).unwrap(), record);
        assert!(
            !path.join("defect-3.md").exists(),
            "it is of an earlier run"
        );
        assert_eq!(read("defect-4.md"), "notes of mine\n");
        assert_eq!(report.check(), Ok(()));
        fs::write(path.join("README.md"), "# My project\n").unwrap();
        let refused = report.check().unwrap_err();
        assert_contains(&refused, &["was not written by conformant"]);
    }

    #[test]
    fn a_title_with_marks_of_code_is_one_code_span() {
        let mut record = sample();
        record.defects[0].title = "read: `sid` is 1".to_owned();
        let files: std::collections::BTreeMap<String, String> =
            files(&record, Settings::default()).into_iter().collect();
        assert_contains(&files["README.md"], &["| FAIL `read: sid is 1` |"]);
        assert_contains(&files["defect-1.md"], &["# Defect 1: `read: sid is 1`\n"]);
    }

    #[test]
    fn a_folder_is_bounded() {
        let mut record = sample();
        record.defects.clear();
        // More than the folder shows, and few enough that an index of all of them would be small, too.
        let defects = DEFECTS_MAX + 50;
        record.findings = (0..defects)
            .map(|n| {
                let mut finding = record.findings[0].clone();
                finding.rule = format!("flow/x/{n}");
                finding.message = format!("message {n}");
                finding.actual = "y".repeat(20_000);
                finding
            })
            .collect();
        let files = files(&record, Settings::default());
        assert_eq!(files.len(), DEFECTS_MAX + 1);
        for (name, content) in &files {
            assert!(
                content.len() < FILE_BYTES_MAX + 5_000,
                "{name}: {}",
                content.len()
            );
        }
        let (_, index) = files.last().expect("the index comes last");
        assert_eq!(index.matches("| [defect-").count(), DEFECTS_MAX);
        assert_contains(index, &["\n50 more defects in run.json\n"]);
    }
}
