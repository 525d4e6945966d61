//! How the console looks: width, colour, links, and how much it says.

use crate::Settings;
use std::fmt::Write as _;

/// Narrower terminals are written to as if they had this many columns.
pub(super) const WIDTH_MIN: usize = 20;
pub(super) const MEMORY: &str = "writing to a String succeeds";

/// How much is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// The defects, a line each, and the conclusion.
    Quiet,
    /// At most as much as a person reads.
    #[default]
    Normal,
    /// Everything.
    Verbose,
}

/// How the console looks; the caller asks the terminal and the environment.
#[derive(Clone, Debug)]
pub struct Look {
    /// Columns; text is wrapped there, commands and diffs are not.
    pub width: usize,
    /// Colour; not for `NO_COLOR`, not for a pipe.
    pub color: bool,
    /// A progress bar on standard error; only for a terminal.
    pub progress: bool,
    /// A line now and then that the run goes on; where no bar says so.
    pub alive: bool,
    /// How much is said.
    pub verbosity: Verbosity,
    /// Address of the report page, for terminals that take links.
    pub page: Option<String>,
    /// What fails the run.
    pub settings: Settings,
}

impl Default for Look {
    /// As into a pipe.
    fn default() -> Self {
        Self {
            width: 100,
            color: false,
            progress: false,
            alive: false,
            verbosity: Verbosity::default(),
            page: None,
            settings: Settings::default(),
        }
    }
}

impl Look {
    /// A rule's id, as a link to its place on the page where there is one. The id must have been
    /// escaped; in the address it is spelled with what every terminal takes.
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
}

/// The few styles a terminal is asked for.
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

/// Wraps each line at blanks, runs of which stay, further ones by `hang` columns behind the first; a word
/// that is too long stays whole, so that it can be copied.
pub(super) fn wrapped(text: &str, indent: &str, hang: usize, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let words = line.trim_start_matches(' ');
        let margin = format!("{indent}{}", &line[..line.len() - words.len()]);
        out.push_str(&margin);
        let mut column = margin.len();
        for (at, word) in words.split(' ').enumerate() {
            let length = word.chars().count();
            if at > 0 && column + 1 + length > width && length > 0 {
                write!(out, "\n{margin}{:hang$}", "").expect(MEMORY);
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

/// Cut to so many characters, with a sign that it was.
pub(super) fn cut(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(characters.saturating_sub(1)).collect();
    short.push('…');
    short
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
            (cut("abcd", 4), cut("abcde", 4)),
            ("abcd".into(), "abc…".into())
        );
    }
}
