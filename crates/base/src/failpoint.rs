//! Simulated system failures for tests: writes, renames, spawns.
//!
//! Compiled out of release builds.

use std::io;
#[cfg(debug_assertions)]
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An operation that a test can make fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failpoint {
    /// A connection to a target.
    Connect,
    /// A hook's process.
    HookSpawn,
    /// The socket of the callback listener.
    Listen,
    /// Writing the temporary file of a report.
    ReportWrite,
    /// Syncing it to disk.
    ReportSync,
    /// Renaming it to its final path.
    ReportRename,
    /// Writing a file of a temporary fixture set.
    SetWrite,
    /// Exchanging the new set with the old one.
    SetExchange,
    /// Renaming a set to a path without an old one, or where exchanging is unsupported.
    SetRename,
}

impl Failpoint {
    pub const ALL: [Self; 9] = [
        Self::Connect,
        Self::HookSpawn,
        Self::Listen,
        Self::ReportWrite,
        Self::ReportSync,
        Self::ReportRename,
        Self::SetWrite,
        Self::SetExchange,
        Self::SetRename,
    ];

    /// The name in a script.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::HookSpawn => "hook-spawn",
            Self::Listen => "listen",
            Self::ReportWrite => "report-write",
            Self::ReportSync => "report-sync",
            Self::ReportRename => "report-rename",
            Self::SetWrite => "set-write",
            Self::SetExchange => "set-exchange",
            Self::SetRename => "set-rename",
        }
    }
}

/// Failing places, and how often each succeeds first.
#[cfg(debug_assertions)]
static SCRIPT: Mutex<Vec<(Failpoint, usize)>> = Mutex::new(Vec::new());

#[cfg(debug_assertions)]
fn scripted() -> MutexGuard<'static, Vec<(Failpoint, usize)>> {
    SCRIPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the script: `report-write set-rename=2` fails the first write and the third rename.
#[cfg(debug_assertions)]
pub fn set_script(text: &str) {
    let entry = |word: &str| {
        let (name, after) = word.split_once('=').unwrap_or((word, "0"));
        let place = Failpoint::ALL
            .into_iter()
            .find(|place| place.name() == name)?;
        Some((place, after.parse().ok()?))
    };
    let entries = text.split_whitespace().filter_map(entry).collect();
    *scripted() = entries;
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
pub fn set_script(_text: &str) {}

/// Fails once if the script says so.
///
/// # Errors
/// The scripted error.
#[cfg(debug_assertions)]
pub fn check(place: Failpoint) -> io::Result<()> {
    let mut script = scripted();
    let Some(index) = script.iter().position(|(due, _)| *due == place) else {
        return Ok(());
    };
    if script[index].1 > 0 {
        script[index].1 -= 1;
        return Ok(());
    }
    script.remove(index);
    // The error kind of a full disk.
    let why = format!("no space left (failpoint {})", place.name());
    Err(io::Error::new(io::ErrorKind::StorageFull, why))
}

/// Never fails in a release build.
///
/// # Errors
/// None.
#[cfg(not(debug_assertions))]
pub fn check(_place: Failpoint) -> io::Result<()> {
    Ok(())
}
