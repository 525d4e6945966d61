//! `trace`: compares the documents with `documents.lock`.

use super::args::TraceArgs;
use super::{Done, Exit, Failure, load, note, print};
use conformant_base::text;
use conformant_rulebook::trace;
use std::path::PathBuf;

const LOCK: &str = "documents.lock";

pub(super) fn trace(args: &TraceArgs) -> Done {
    if !args.documents.is_dir() {
        return Err(Failure::Usage(format!(
            "{} cannot be read as a folder: expected the folder with the documents",
            args.documents.display()
        )));
    }
    let rulebook = load(&args.specs)?;
    let specs = args.specs.specs.as_deref();
    let lock = match conformant_rulebook::companion(specs, LOCK) {
        Ok(lock) => lock,
        Err(_) if args.update => String::new(),
        // Sources that are pointers need no lock.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => {
            return Err(Failure::Usage(format!(
                "failed to read {LOCK}: {e}; write it with --update"
            )));
        }
    };
    if args.update {
        let path = specs
            .map_or_else(|| PathBuf::from("specs"), PathBuf::from)
            .join(LOCK);
        let proposed = trace::propose(&args.documents, &rulebook, &lock).map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Failure::Usage(lines.join("\nerror: "))
        })?;
        std::fs::write(&path, &proposed).map_err(Failure::unwritten(&path))?;
        note(&format!("{} was updated: review its diff", path.display()));
        return Ok(Exit::Conformant);
    }
    let problems = trace::check(&args.documents, &rulebook, &lock);
    for problem in &problems {
        print(&format!("{problem}\n"));
    }
    if problems.is_empty() {
        let units = lock.lines().filter(|l| l.starts_with('D')).count();
        print(&format!(
            "{units} sentences and table rows: each is a rule, unspecified, a definition or narrative\n"
        ));
        return Ok(Exit::Conformant);
    }
    note(&format!(
        "{}; `conformant trace --update DIR` proposes a new {LOCK}",
        text::count(problems.len(), "problem")
    ));
    Ok(Exit::Failed)
}
