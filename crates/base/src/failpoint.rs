//! Places at which the machine may fail, made to fail by a script: one write, one rename, one spawn.
//!
//! For the tests of what happens then. A release build has none of them: [`at`] is then nothing.

use std::io;
#[cfg(debug_assertions)]
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A place at which the system may refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A connection to a target.
    Connect,
    /// A hook's process.
    HookSpawn,
    /// The socket of the callback listener.
    Listen,
    /// The bytes of a report beside its place.
    ReportWrite,
    /// Making them last.
    ReportSync,
    /// Putting the report in its place.
    ReportRename,
    /// A file of a set beside its place.
    SetWrite,
    /// Exchanging a set with the old one.
    SetExchange,
    /// Putting a set where none was, or where exchanging is unknown.
    SetRename,
}

impl Place {
    /// Every place.
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

    /// Its name in a script.
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

/// What fails: the place, and how often it still succeeds before it fails once.
#[cfg(debug_assertions)]
static SCRIPT: Mutex<Vec<(Place, usize)>> = Mutex::new(Vec::new());

#[cfg(debug_assertions)]
fn scripted() -> MutexGuard<'static, Vec<(Place, usize)>> {
    SCRIPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a script: `report-write set-rename=2` lets the first write and the third rename fail.
#[cfg(debug_assertions)]
pub fn script(text: &str) {
    let entry = |word: &str| {
        let (name, after) = word.split_once('=').unwrap_or((word, "0"));
        let place = Place::ALL.into_iter().find(|place| place.name() == name)?;
        Some((place, after.parse().ok()?))
    };
    let entries = text.split_whitespace().filter_map(entry).collect();
    *scripted() = entries;
}

/// Nothing is scripted in a release build.
#[cfg(not(debug_assertions))]
pub fn script(_text: &str) {}

/// Fails where the script says so.
///
/// # Errors
/// The scripted one, once.
#[cfg(debug_assertions)]
pub fn at(place: Place) -> io::Result<()> {
    let mut script = scripted();
    let Some(index) = script.iter().position(|(due, _)| *due == place) else {
        return Ok(());
    };
    if script[index].1 > 0 {
        script[index].1 -= 1;
        return Ok(());
    }
    script.remove(index);
    // The kind that stands for a full disk: what was meant to be there is not.
    let why = format!("no space left (failpoint {})", place.name());
    Err(io::Error::new(io::ErrorKind::StorageFull, why))
}

/// Nothing fails by script in a release build.
///
/// # Errors
/// None.
#[cfg(not(debug_assertions))]
pub fn at(_place: Place) -> io::Result<()> {
    Ok(())
}
