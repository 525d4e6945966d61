//! `specs export`: writes the embedded rulebook into a folder.

use super::args::SpecsCommand;
use super::{Done, Exit, Failure, print, write_file};
use conformant_base::text;
use conformant_specs::FILES;

pub(super) fn specs(command: &SpecsCommand) -> Done {
    let SpecsCommand::Export { folder } = command;
    let is_taken = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_taken || folder.is_file() {
        return Err(Failure::Usage(format!(
            "{} exists and is kept: expected a new or empty folder; choose another one, or delete it first",
            folder.display()
        )));
    }
    for file in FILES {
        write_file(&folder.join(file.path), file.bytes)?;
    }
    let shown = folder.display();
    print(&format!(
        "{shown}: {}. {shown}/README.md describes them; read them with `--specs {shown}`\n",
        text::count(FILES.len(), "file")
    ));
    Ok(Exit::Conformant)
}
