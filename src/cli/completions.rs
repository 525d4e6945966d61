//! `completions` and `man`: generated from the arguments.

use super::args::{Cli, CompletionsArgs, ManArgs};
use super::completing::VARIABLE;
use super::{Done, Exit, Failure, print};
use clap::CommandFactory;

pub(super) fn completions(args: &CompletionsArgs) -> Done {
    let mut script = Vec::new();
    let shells = clap_complete::env::Shells::builtins();
    let name = args.shell.to_string();
    let shell = shells
        .completer(&name)
        .ok_or_else(|| Failure::Usage(format!("unknown shell `{name}`")))?;
    shell
        .write_registration(
            VARIABLE,
            "conformant",
            "conformant",
            "conformant",
            &mut script,
        )
        .map_err(|e| Failure::Trouble(format!("failed to write the script: {e}")))?;
    print(&String::from_utf8_lossy(&script));
    Ok(Exit::Conformant)
}

pub(super) fn man(args: &ManArgs) -> Done {
    if let Some(folder) = &args.out {
        let failed = Failure::unwritten(folder);
        std::fs::create_dir_all(folder).map_err(&failed)?;
        clap_mangen::generate_to(Cli::command(), folder).map_err(&failed)?;
        return Ok(Exit::Conformant);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut page)
        .map_err(|e| Failure::Trouble(format!("failed to write the manual page: {e}")))?;
    print(&String::from_utf8_lossy(&page));
    Ok(Exit::Conformant)
}
