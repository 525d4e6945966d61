//! Help of the program: its commands in four groups, and the short guide that `conformant` alone prints.

use super::Command;
use clap::Subcommand;
use clap::builder::Styles;
use std::fmt::Write as _;

/// Width of the help text in columns.
const WIDTH: usize = 80;
/// Width of the column with the names.
const NAMES: usize = 15;

/// The commands by purpose, each in the order in which they are usually needed.
pub(super) const GROUPS: [(&str, &str); 4] = [
    ("Judge", "init doctor run explore check proxy baseline"),
    (
        "Results",
        "reproduce compare judge merge report history verify",
    ),
    ("Build", "serve fixtures token completions man"),
    (
        "Rulebook",
        "explain list specs events diff schema selftest trace",
    ),
];

/// What `conformant` alone prints.
pub(in crate::cli) const GUIDE: &str = "\
conformant judges services against a rulebook. Start with one of these:

  conformant run --reference           judge the built-in reference
  conformant init --target flow=URL    write conformant.yaml for your service
  conformant doctor                    check addresses, credentials and hooks
  conformant run                       judge your service
  conformant check FILE --as KIND      judge payload files
  conformant serve                     serve the reference to client teams
  conformant explain ID                explain a rule, hook or setting

`conformant --help` lists all commands, `conformant COMMAND --help` their flags.
";

/// The template of `--help`: clap lists commands without groups.
pub(super) fn template() -> String {
    let all = Command::augment_subcommands(clap::Command::new("conformant"));
    let header = Styles::default();
    let header = header.get_header();
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, names) in GROUPS {
        let _ = writeln!(template, "\n{header}{group}:{header:#}");
        for name in names.split(' ') {
            let command = all.find_subcommand(name);
            let about = command.and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            entry(name, &about, &mut template);
        }
    }
    let _ = write!(
        template,
        "\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    template
}

/// A name and its text, with the further lines of the text below the first.
fn entry(name: &str, text: &str, out: &mut String) {
    let mut line = format!("  {name:width$}", width = NAMES - 2);
    for word in text.split_whitespace() {
        if line.len() > NAMES && line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(out, "{line}");
            line = " ".repeat(NAMES);
        }
        if line.len() > NAMES {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(out, "{line}");
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, WIDTH, template};
    use crate::cli::args::Cli;
    use clap::CommandFactory;

    #[test]
    fn every_visible_command_is_in_one_group() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
        let mut shown: Vec<&str> = shown.map(clap::Command::get_name).collect();
        let names = GROUPS.iter().flat_map(|(_, names)| names.split(' '));
        let mut grouped: Vec<&str> = names.collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped);
    }

    #[test]
    fn help_fits_into_80_columns() {
        let long = template();
        let long = long.lines().find(|line| line.chars().count() > WIDTH);
        assert_eq!(long, None);
    }
}
