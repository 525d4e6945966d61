//! `report`: shows stored runs of several implementations side by side.

use super::args::ReportArgs;
use super::{Done, Exit, Failure, load_to_tell, print, stored};
use conformant_engine::features;
use conformant_record::RunRecord;
use conformant_report::{Matrix, write_whole};
use std::path::Path;

/// The files in the folder.
const PAGE: &str = "index.html";
const MARKDOWN: &str = "matrix.md";

pub(super) fn report(args: &ReportArgs) -> Done {
    let runs = args.runs.iter().map(|path| {
        let record = stored::read(path)?;
        Ok((name_of(path), record))
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

/// The file's name without its ending, for records without claims.
fn name_of(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default();
    conformant_base::text::escape_line(&name.to_string_lossy()).into_owned()
}
