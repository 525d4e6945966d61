//! Locks report files during a run, so that a second run with the same files fails at its start.
//!
//! Uses system locks, which end with the process. Files that cannot be locked are left unlocked: writing the
//! report then reports the error.

use super::Report;
use super::destination::folder_of;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// Suffix of lock files.
const LOCK: &str = ".conformant-lock";

/// The locked report files of a run.
#[derive(Debug, Default)]
pub struct ReportLock {
    locks: Vec<(PathBuf, File)>,
}

/// Another run is writing the same report.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("another run is writing {}; wait for it, or choose another file with --report", .0.display())]
pub struct ReportLockError(pub PathBuf);

impl ReportLock {
    /// Locks every file of these reports, or none.
    pub fn take(reports: &[Report]) -> Result<Self, ReportLockError> {
        let mut taken = Self::default();
        for report in reports {
            let Some(path) = report.file() else {
                continue;
            };
            // Devices and pipes are not locked.
            if fs::metadata(&path).is_ok_and(|meta| !meta.is_file()) {
                continue;
            }
            let Some(lock) = lock_of(&path).filter(|lock| !taken.holds(lock)) else {
                continue;
            };
            let Some(file) = open(&lock) else { continue };
            match file.try_lock() {
                Ok(()) => taken.locks.push((lock, file)),
                Err(TryLockError::WouldBlock) => return Err(ReportLockError(path)),
                Err(TryLockError::Error(_)) => fs::remove_file(&lock).unwrap_or_default(),
            }
        }
        Ok(taken)
    }

    fn holds(&self, lock: &Path) -> bool {
        self.locks.iter().any(|(held, _)| held == lock)
    }
}

impl Drop for ReportLock {
    fn drop(&mut self) {
        for (lock, _) in &self.locks {
            // Removed while locked; otherwise the next run reuses it.
            fs::remove_file(lock).unwrap_or_default();
        }
    }
}

/// `.run.json.conformant-lock` next to `run.json`, in the canonical folder.
fn lock_of(path: &Path) -> Option<PathBuf> {
    let folder = folder_of(path);
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
        let first = ReportLock::take(&reports).unwrap();
        assert_eq!(
            ReportLock::take(&reports).unwrap_err(),
            ReportLockError(path.clone())
        );
        drop(ReportLock::take(&[other]).unwrap());
        drop(first);
        drop(ReportLock::take(&reports).unwrap());
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
            assert!(
                ReportLock::take(&[report]).unwrap().locks.is_empty(),
                "{path}"
            );
        }
    }
}
