//! Sessions of the command line on pages.
//!
//! A line that is only `…` matches any lines, and `…` in a line matches its rest.

use crate::program::{root, run};
use std::path::Path;

/// One command with its output.
pub(crate) struct Session {
    page: String,
    /// Without the program's name.
    pub(crate) arguments: Vec<String>,
    printed: Vec<String>,
}

/// The sessions of a page: `$ conformant …` in text blocks, each with the lines below it.
pub(crate) fn of(page: &str) -> Vec<Session> {
    let text = std::fs::read_to_string(root().join(page)).expect("it is there");
    let mut sessions: Vec<Session> = Vec::new();
    for block in text.split("```text\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let lines: Vec<&str> = block.lines().map(str::trim_start).collect();
        // A block in a list is indented.
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

/// The words of a command as a shell reads them, with quotes.
pub(crate) fn words(command: &str) -> Vec<String> {
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
    /// A command of a page without the program's name; `>`, `|` or `#` and what follows are left out.
    pub(crate) fn new(page: &str, command: &str) -> Self {
        let own = command.split(['>', '|', '#']).next().unwrap_or_default();
        Self {
            page: page.to_owned(),
            arguments: words(own),
            printed: Vec::new(),
        }
    }

    /// A line that it should print.
    pub(crate) fn prints(&mut self, line: &str) {
        self.printed.push(line.to_owned());
    }

    /// The same with other words, such as a free port instead of the shown one.
    pub(crate) fn with(mut self, from: &str, to: &str) -> Self {
        for text in self.arguments.iter_mut().chain(&mut self.printed) {
            *text = text.replace(from, to);
        }
        self
    }

    /// The lines that it should print, without those that match anything.
    pub(crate) fn shown(&self) -> usize {
        let lines = self.printed.iter().map(|line| line.trim());
        lines
            .filter(|line| !line.is_empty() && *line != "…")
            .count()
    }

    /// Runs it and compares its output.
    pub(crate) fn run(&self, folder: &Path) {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let (_, out, err) = run(folder, &arguments);
        self.is_shown_in(&(out + &err));
    }

    /// Every printed line is present, in this order.
    pub(crate) fn is_shown_in(&self, output: &str) {
        let mut lines = output.lines();
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
                "{} shows {line:?}; `conformant {}` prints:\n{output}",
                self.page,
                self.arguments.join(" ")
            );
        }
    }
}
