//! `check`: payload files judged offline, without any exchange.

use super::args::CheckArgs;
use super::{Done, Exit, Failure, load, output, reports_of};
use crate::check::{self, Kind};
use crate::report::{Consumer, Settings};
use crate::verdict::{RunEvent, Verdict};
use std::io::Read;
use std::path::Path;

/// A payload file is read whole up to this size; NDJSON and HAR are streamed.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

pub(super) fn check(args: &CheckArgs) -> Done {
    let reports = reports_of(&args.reports, &[])?;
    let rulebook = load(&args.specs)?;
    let kind = Kind::parse(&rulebook, &args.kind).map_err(Failure::Usage)?;
    let mut checker = check::Checker::new(&rulebook, kind);
    for path in &args.files {
        let name = path.display().to_string();
        let bytes = read(path)?;
        checker.file(&name, &bytes);
    }
    let (record, judged) = checker.finish();
    let settings = Settings { strict: args.strict };
    {
        let mut out = std::io::stdout();
        let mut console = output::console(&mut out, settings);
        console.event(&RunEvent::Finished { record: Box::new(record.clone()) });
    }
    output::write_reports(&reports, &record, settings)?;
    let failed = record.findings.iter().any(|f| f.level == "must" || args.strict);
    Ok(match (failed, judged) {
        (true, _) => Exit::Failed,
        (false, 0) => Exit::NothingJudged,
        (false, _) if record.rules.iter().any(|r| r.verdict == Verdict::Error) => Exit::Trouble,
        (false, _) => Exit::Conformant,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let shown = path.display();
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| Failure::Trouble(format!("standard input could not be read: {e}")))?;
        return within(bytes, "standard input");
    }
    let meta = std::fs::metadata(path).map_err(|e| Failure::Usage(format!("{shown} could not be read: {e}")))?;
    if !meta.is_file() {
        return Err(Failure::Usage(format!("{shown} is no regular file")));
    }
    if meta.len() > FILE_BYTES_MAX {
        return Err(Failure::Usage(format!("{shown} is larger than {FILE_BYTES_MAX} bytes")));
    }
    std::fs::read(path).map_err(|e| Failure::Usage(format!("{shown} could not be read: {e}")))
}

fn within(bytes: Vec<u8>, name: &str) -> Result<Vec<u8>, Failure> {
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Failure::Usage(format!("{name} is larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}
