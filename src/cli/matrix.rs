//! `report`: shows stored runs of several implementations side by side.

use super::args::ReportArgs;
use super::{Done, Exit, Failure, load_to_tell, print, stored};
use conformant_engine::features;
use conformant_record::RunRecord;
use conformant_report::{Destination, Format, Matrix, Report, write_whole};
use std::path::{Path, PathBuf};

/// The files in the folder.
const PAGE: &str = "index.html";
const MARKDOWN: &str = "matrix.md";

pub(super) fn report(args: &ReportArgs) -> Done {
    check(&args.out)?;
    let runs = args.runs.iter().map(|path| {
        let record = stored::read(path)?;
        Ok((name_of(path, &args.runs), record))
    });
    let runs: Vec<(String, RunRecord)> = runs.collect::<Result<_, Failure>>()?;
    let rulebook = load_to_tell(&args.specs, true)?;
    let matrix = Matrix::of(&runs, &features(&rulebook));
    for (file, text) in [(PAGE, matrix.page()), (MARKDOWN, matrix.markdown())] {
        let path = args.out.join(file);
        write_whole(&path, text.as_bytes()).map_err(Failure::unwritten(&path))?;
        print(&format!("wrote {}\n", path.display()));
    }
    Ok(Exit::Conformant)
}

/// Refuses a folder whose files another program wrote and this one would replace.
fn check(folder: &Path) -> Result<(), Failure> {
    let page = Report {
        format: Format::Html,
        destination: Destination::File(folder.join(PAGE)),
    };
    let mut files = [PAGE, MARKDOWN].map(|file| folder.join(file)).into_iter();
    match files.find(|file| file.exists()) {
        Some(file) if !page.is_recognized() => Err(Failure::Usage(format!(
            "--out: {} was not written by conformant and would be replaced: name another folder",
            file.display()
        ))),
        Some(_) | None => Ok(()),
    }
}

/// The file's name without its ending, for records without claims; the path if several files have this name.
fn name_of(path: &Path, all: &[PathBuf]) -> String {
    let name = path.file_stem().unwrap_or_default();
    let is_unique = all
        .iter()
        .filter(|other| other.file_stem() == path.file_stem())
        .count()
        < 2;
    let shown = if is_unique { name } else { path.as_os_str() };
    conformant_base::text::escape_line(&shown.to_string_lossy()).into_owned()
}
