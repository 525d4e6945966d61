//! `completions` and `man`: made from the arguments themselves.

use super::args::{Cli, CompletionsArgs};
use super::{Done, Exit, Failure, say};
use clap::CommandFactory;

#[expect(clippy::unnecessary_wraps, reason = "commands all have one shape")]
pub(super) fn completions(args: &CompletionsArgs) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "conformant", &mut script);
    say(&String::from_utf8_lossy(&script));
    Ok(Exit::Conformant)
}

pub(super) fn man() -> Done {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut page)
        .map_err(|e| Failure::Trouble(format!("the manual page could not be written: {e}")))?;
    say(&String::from_utf8_lossy(&page));
    Ok(Exit::Conformant)
}
