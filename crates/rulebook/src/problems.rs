//! Problems of a rulebook: each with its file, place, offending word and advice.
//!
//! Rendered by `cli`.

use conformant_base::text;
use conformant_yaml::Span;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// One problem in one file.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// Path inside the rulebook folder.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// What is wrong, naming the offending word.
    pub message: String,
    /// What was expected and what to do.
    pub help: Option<String>,
    text: Arc<str>,
    span: Range<usize>,
}

impl Problem {
    /// A problem at a span of a file.
    pub fn new(file: &str, text: &Arc<str>, span: Span, message: impl Into<String>) -> Self {
        let start = floor(text, span.start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |n| n + 1);
        Self {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
            help: None,
            text: Arc::clone(text),
            span: start..floor(text, start + span.length.min(text.len() - start)),
        }
    }

    /// The problem with this advice, if there is any.
    #[must_use]
    pub(super) fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    /// A problem with a file as a whole, such as one that cannot be read.
    pub fn of_file(file: &str, message: impl Into<String>) -> Self {
        Self::new(file, &Arc::from(""), Span::default(), message)
    }

    /// The line of the problem with one line before and after, the number of the first line from 1, and the byte range of the
    /// problem; `None` for a file as a whole.
    pub fn snippet(&self) -> Option<(&str, usize, Range<usize>)> {
        if self.text.is_empty() {
            return None;
        }
        let starts = |at: usize| self.text[..at].rfind('\n').map_or(0, |n| n + 1);
        let ends = |at: usize| {
            self.text[at..]
                .find('\n')
                .map_or(self.text.len(), |n| at + n)
        };
        let (own_start, own_end) = (starts(self.span.start), ends(self.span.start));
        let first = starts(own_start.saturating_sub(1));
        let last = ends((own_end + 1).min(self.text.len()));
        let end = self.span.end.clamp(self.span.start, own_end);
        let number = self.line - usize::from(first != own_start);
        Some((
            &self.text[first..last],
            number,
            self.span.start - first..end - first,
        ))
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The nearest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|n| text.is_char_boundary(*n))
        .unwrap_or_default()
}

/// All problems of all files, by file and place.
#[derive(Clone, Debug, Default)]
pub struct Problems(Vec<Problem>);

impl Problems {
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The same with other names of files.
    pub(super) fn in_files(
        mut self,
        names: &conformant_base::sorted::SortedMap<String, String>,
    ) -> Self {
        for problem in &mut self.0 {
            if let Some(name) = names.get(&problem.file) {
                problem.file.clone_from(name);
            }
        }
        self
    }

    /// In order of file and place.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// Sorts by file and place, and removes duplicates.
    #[must_use]
    pub(super) fn sorted(mut self) -> Self {
        self.0.sort_by(|a, b| {
            (&a.file, a.line, a.column, &a.message).cmp(&(&b.file, b.line, b.column, &b.message))
        });
        self.0.dedup_by(|a, b| {
            (&a.file, a.line, a.column, &a.message) == (&b.file, b.line, b.column, &b.message)
        });
        self
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} in the rulebook",
            text::count(self.0.len(), "problem")
        )?;
        for p in &self.0 {
            write!(f, "\n{}:{}:{}: {}", p.file, p.line, p.column, p.message)?;
            if let Some(help) = &p.help {
                write!(f, " ({help})")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// `did you mean …?` if a known word is similar, else a short list of known words.
pub(super) fn suggest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_unstable();
    known.dedup();
    let near = known
        .iter()
        .map(|k| (distance(word, k), *k))
        .min()
        .filter(|(d, _)| *d <= 1 + word.chars().count() / 4);
    match near {
        Some((_, near)) => Some(format!("did you mean `{near}`?")),
        None if known.is_empty() => None,
        None if known.len() <= 40 => Some(format!("known are: {}", known.join(", "))),
        None => None,
    }
}

/// Edit distance: insertions, deletions, replacements.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
