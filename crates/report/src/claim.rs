//! Report files are one run's own while it lasts: a second run that would write the same ones is
//! told so before it begins.
//!
//! The lock is the system's and ends with the process, however that ends; the file that carries it
//! is removed by the run, or by the next one. Where files cannot be locked or made, nothing is
//! claimed: writing the report tells why.

use super::{Destination, Report};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// Marks our lock files.
const LOCK: &str = ".conformant-lock";

/// The report files of a run, until it is dropped.
#[derive(Debug, Default)]
pub struct Claim {
    locks: Vec<(PathBuf, File)>,
}

/// Another run is under way that writes the same report.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("another run is writing {}; wait for it, or write elsewhere with --report", .0.display())]
pub struct ClaimError(pub PathBuf);

impl Claim {
    /// Claims every file among these reports, or none.
    pub fn take(reports: &[Report]) -> Result<Self, ClaimError> {
        let mut claim = Self::default();
        for report in reports {
            let Destination::File(path) = &report.destination else {
                continue;
            };
            // A device or a pipe is nobody's own.
            if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
                continue;
            }
            let Some(lock) = lock_of(path).filter(|lock| !claim.holds(lock)) else {
                continue;
            };
            let Some(file) = open(&lock) else { continue };
            match file.try_lock() {
                Ok(()) => claim.locks.push((lock, file)),
                Err(TryLockError::WouldBlock) => return Err(ClaimError(path.clone())),
                Err(TryLockError::Error(_)) => fs::remove_file(&lock).unwrap_or_default(),
            }
        }
        Ok(claim)
    }

    fn holds(&self, lock: &Path) -> bool {
        self.locks.iter().any(|(held, _)| held == lock)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        for (lock, _) in &self.locks {
            // Removed while it is held; should that fail, the next run takes it over.
            fs::remove_file(lock).unwrap_or_default();
        }
    }
}

/// `.run.json.conformant-lock` beside `run.json`, in the folder's one name.
fn lock_of(path: &Path) -> Option<PathBuf> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder).ok()?;
    let name = path.file_name()?.to_string_lossy();
    Some(
        fs::canonicalize(folder)
            .ok()?
            .join(format!(".{name}{LOCK}")),
    )
}

fn open(lock: &Path) -> Option<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(lock)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_belongs_to_one_run_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/run.json");
        let reports: Vec<Report> = [
            format!("json={}", path.display()),
            format!("junit={}", path.display()),
        ]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
        let other: Report = format!("json={}", folder.path().join("new/other.json").display())
            .parse()
            .unwrap();
        let first = Claim::take(&reports).unwrap();
        assert_eq!(Claim::take(&reports).unwrap_err(), ClaimError(path.clone()));
        drop(Claim::take(&[other]).unwrap());
        drop(first);
        drop(Claim::take(&reports).unwrap());
        assert_eq!(
            fs::read_dir(path.parent().unwrap()).unwrap().count(),
            0,
            "no lock is left"
        );
    }

    #[test]
    fn what_cannot_be_claimed_is_left_to_the_writing() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        for path in ["file/run.json", "", "."] {
            let report: Report = format!("json={}/{path}", folder.path().display())
                .parse()
                .unwrap();
            assert!(Claim::take(&[report]).unwrap().locks.is_empty(), "{path}");
        }
    }
}
