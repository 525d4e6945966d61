//! Appearance of the console: width, color, links and verbosity.

use crate::Settings;

/// Narrower terminals are treated as this wide.
pub(super) const WIDTH_MIN: usize = 20;

/// How much is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// One line per defect, and the conclusion.
    Quiet,
    /// A summary of bounded length.
    #[default]
    Normal,
    Verbose,
}

/// How the progress of a run is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    #[default]
    None,
    /// A status line from time to time.
    Lines,
    /// A bar on standard error; for terminals only.
    Bar,
}

/// Appearance of the console, set by the caller.
#[derive(Clone, Debug)]
pub struct Look {
    /// Columns. Text is wrapped; commands and diffs are not.
    pub width: usize,
    /// Colors; off for `NO_COLOR` and pipes.
    pub color: bool,
    pub progress: Progress,
    pub verbosity: Verbosity,
    /// URL of the report page, for terminals that support links.
    pub page: Option<String>,
    /// What fails the run.
    pub settings: Settings,
    /// Where the reports will be, for the last screen.
    pub reports: Vec<String>,
    /// The report among them that `reproduce` reads.
    pub record_path: Option<String>,
    /// The command line asks for the built-in reference.
    pub is_reference_named: bool,
}

impl Default for Look {
    /// The appearance in a pipe.
    fn default() -> Self {
        Self {
            width: 100,
            color: false,
            progress: Progress::default(),
            verbosity: Verbosity::default(),
            page: None,
            settings: Settings::default(),
            reports: Vec::new(),
            record_path: None,
            is_reference_named: false,
        }
    }
}

impl Look {
    /// An escaped rule id, as a link to the report page if there is one.
    pub(super) fn linked(&self, id: &str) -> String {
        match &self.page {
            Some(page) => {
                let anchor = conformant_base::http::percent_encode(id);
                format!("\u{1b}]8;;{page}#{anchor}\u{1b}\\{id}\u{1b}]8;;\u{1b}\\")
            }
            None => id.to_owned(),
        }
    }

    pub(super) fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    /// How many of the items of a list are printed.
    pub(super) fn shown(&self, all: usize, max: usize) -> usize {
        if self.is_verbose() { all } else { all.min(max) }
    }
}

/// Terminal styles.
#[derive(Clone, Copy)]
pub(super) enum Paint {
    Red,
    Green,
    Yellow,
    Blue,
    Bold,
    Dim,
}

impl Paint {
    pub(super) fn on(self, text: &str, look: &Look) -> String {
        if !look.color {
            return text.to_owned();
        }
        let code = match self {
            Self::Red => 31,
            Self::Green => 32,
            Self::Yellow => 33,
            Self::Blue => 34,
            Self::Bold => 1,
            Self::Dim => 2,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Wraps each line at blanks, with further lines indented by `hang`. Keeps runs of blanks and long words,
/// so that they can be copied.
pub fn wrapped(text: &str, indent: &str, hang: usize, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let words = line.trim_start_matches(' ');
        let margin = format!("{indent}{}", &line[..line.len() - words.len()]);
        out.push_str(&margin);
        let mut column = margin.len();
        for (at, word) in words.split(' ').enumerate() {
            let length = word.chars().count();
            if at > 0 && column + 1 + length > width && length > 0 {
                out += &format!("\n{margin}{:hang$}", "");
                column = margin.len() + hang;
            } else if at > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += length;
        }
        out.push('\n');
    }
    out
}

/// Truncates with a mark, after a word unless that loses much of the text.
pub(super) fn cut(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let begin: String = text.chars().take(characters.saturating_sub(2)).collect();
    let end = begin.rfind(' ').filter(|end| *end > begin.len() / 2);
    match end {
        Some(end) => format!("{} …", begin[..end].trim_end()),
        None => format!("{begin}…"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_the_rule_on_the_page_and_never_out_of_the_sequence() {
        let look = Look {
            page: Some("file:///r/run.html".into()),
            ..Look::default()
        };
        assert_eq!(
            look.linked("flow/execution/status"),
            "\u{1b}]8;;file:///r/run.html#flow%2Fexecution%2Fstatus\u{1b}\\flow/execution/status\u{1b}]8;;\u{1b}\\"
        );
        assert_eq!(Look::default().linked("x"), "x");
    }

    #[test]
    fn long_lines_break_at_blanks_and_long_words_stay_whole() {
        assert_eq!(
            wrapped("aaaa bbbb cccc", "", 4, 10),
            "aaaa bbbb\n    cccc\n"
        );
        assert_eq!(
            wrapped("x aaaaaaaaaaaaaaaa", "", 4, 10),
            "x\n    aaaaaaaaaaaaaaaa\n"
        );
        assert_eq!(
            (cut("abcd", 4), cut("abcde", 4), cut("abcd efgh ijkl", 12)),
            ("abcd".into(), "ab…".into(), "abcd efgh …".into())
        );
    }
}
