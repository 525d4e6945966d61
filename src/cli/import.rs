//! `init --from`: makes a rulebook folder from an OpenAPI document.
//!
//! Writes into a folder that is empty or missing. Problems of the document are printed with their places; the rest is made.

use super::{Done, Exit, Failure, note, print, print_problem, write_file};
use annotate_snippets::Level;
use conformant_base::files;
use conformant_base::text;
use conformant_openapi::{BYTES_MAX, import};
use conformant_rulebook::{Problem, Problems};
use std::path::Path;

/// Operations that the console lists as left out.
const LEFT_OUT_SHOWN_MAX: usize = 20;

pub(super) fn init_from(document: &Path, folder: &Path) -> Done {
    refuse_used(folder)?;
    let made = read_openapi(document, import)?;
    warn(&made.problems);
    for (path, text) in &made.files {
        let path = folder.join(path);
        write_file(&path, text)?;
        print(&format!("{}\n", path.display()));
    }
    conformant_judge::load::from_dir(folder).map_err(Failure::Problems)?;
    for what in made.left_out.iter().take(LEFT_OUT_SHOWN_MAX) {
        note(&format!("left out: {what}"));
    }
    if let Some(more) = made.left_out.len().checked_sub(LEFT_OUT_SHOWN_MAX + 1) {
        note(&format!(
            "left out: {} more, listed at the top of service.yaml",
            more + 1
        ));
    }
    let problems = match made.problems.len() {
        0 => String::new(),
        n => format!("; {} of the document above", text::count(n, "problem")),
    };
    note(&format!(
        "{}: {}, {} left out; {} for you at the top of the files{problems}",
        made.service,
        text::count(made.operations, "operation"),
        made.left_out.len(),
        text::count(made.decisions, "decision"),
    ));
    note(&format!(
        "next: conformant run --specs {} --target {}=URL",
        text::shell_quoted(&folder.display().to_string()),
        made.service
    ));
    Ok(Exit::Conformant)
}

/// Reads an OpenAPI document by one of the functions of its crate.
pub(super) fn read_openapi<T>(
    path: &Path,
    read: impl Fn(&str, &str) -> Result<T, Vec<Problem>>,
) -> Result<T, Failure> {
    let shown = path.display().to_string();
    let unread = |why: String| Failure::Usage(format!("failed to read {shown}: {why}"));
    let bytes = files::read(path, BYTES_MAX as u64)?;
    if let Some(format) = conformant_check::format_of(&bytes) {
        return Err(unread(format!(
            "it is {format}, expected an OpenAPI document"
        )));
    }
    let text = String::from_utf8(bytes).map_err(|e| unread(format!("it is not UTF-8: {e}")))?;
    read(&shown, text.trim_start_matches('\u{feff}')).map_err(|problems| {
        let mut all = Problems::default();
        for problem in problems {
            all.push(problem);
        }
        Failure::Problems(all)
    })
}

/// Prints what cannot be imported or compared.
pub(super) fn warn(problems: &[Problem]) {
    for problem in problems {
        print_problem(problem, Level::WARNING);
    }
}

/// Refuses a folder in which something is already.
fn refuse_used(folder: &Path) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::Usage(format!("{} {why}", folder.display())));
    match std::fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => refuse("is not empty: name a folder that is empty or does not exist"),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => refuse(&format!("cannot be used: {e}")),
    }
}
