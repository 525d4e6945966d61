//! Sessions of the command line as a page shows them, to be played.
//!
//! A line that is only `…` stands for any lines, and `…` within a line for the rest of it.

use crate::program::{root, run};
use std::path::Path;

/// One command with what it prints.
pub(crate) struct Session {
    page: String,
    /// Without the program's name.
    pub(crate) arguments: Vec<String>,
    printed: Vec<String>,
}

/// The sessions of a page: `$ conformant …` in blocks of text, each with the lines below it.
pub(crate) fn of(page: &str) -> Vec<Session> {
    let text = std::fs::read_to_string(root().join(page)).expect("it is there");
    let mut sessions: Vec<Session> = Vec::new();
    for block in text.split("```text\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let lines: Vec<&str> = block.lines().map(str::trim_start).collect();
        // A block in a list stands behind blanks, which are the list's.
        let margin = block.len() - block.trim_start_matches(' ').len();
        let Some(begin) = lines
            .iter()
            .position(|line| line.starts_with("$ conformant "))
        else {
            continue;
        };
        for line in block.lines().skip(begin) {
            let line = line.get(margin..).unwrap_or_default();
            if let Some(command) = line.strip_prefix("$ conformant ") {
                sessions.push(Session::new(page, command));
            } else if let Some(session) = sessions.last_mut() {
                session.prints(line);
            }
        }
    }
    sessions
}

/// The words of a command as a shell reads them, as far as quotes go.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.trim().chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == ' ' => words.push(String::new()),
            Some(_) | None => words.last_mut().expect("it is never empty").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

impl Session {
    /// A command as a page shows it, without the program's name; what follows `>`, `|` or `#` is the shell's.
    pub(crate) fn new(page: &str, command: &str) -> Self {
        let own = command.split(['>', '|', '#']).next().unwrap_or_default();
        Self {
            page: page.to_owned(),
            arguments: words(own),
            printed: Vec::new(),
        }
    }

    /// A line that it is shown to print.
    pub(crate) fn prints(&mut self, line: &str) {
        self.printed.push(line.to_owned());
    }

    /// The same with other words, such as a free port in place of the one that is shown.
    pub(crate) fn with(mut self, from: &str, to: &str) -> Self {
        for text in self.arguments.iter_mut().chain(&mut self.printed) {
            *text = text.replace(from, to);
        }
        self
    }

    /// Lines that it is shown to print, those that stand for any not counted.
    pub(crate) fn shown(&self) -> usize {
        let lines = self.printed.iter().map(|line| line.trim());
        lines
            .filter(|line| !line.is_empty() && *line != "…")
            .count()
    }

    /// Runs it to its end; what it prints is what is shown.
    pub(crate) fn play(&self, folder: &Path) {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let (_, out, err) = run(folder, &arguments);
        self.is_shown_in(&(out + &err));
    }

    /// Every printed line is there, in this order.
    pub(crate) fn is_shown_in(&self, said: &str) {
        let mut lines = said.lines();
        for line in self.printed.iter().filter(|line| !line.trim().is_empty()) {
            let begin = line.split('…').next().unwrap_or_default();
            let whole = begin.len() == line.len();
            assert!(
                begin.trim().is_empty()
                    || lines.any(|l| if whole {
                        l == line
                    } else {
                        l.starts_with(begin)
                    }),
                "{} shows {line:?}; `conformant {}` says:\n{said}",
                self.page,
                self.arguments.join(" ")
            );
        }
    }
}
