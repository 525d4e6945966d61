//! Signal handling.
//!
//! - Before output begins, a signal ends the process at once with its exit code.
//! - While a command runs, the first signal ends its work in order, the second one the process.
//! - Signals within a short time are one, because `timeout` sends each to the process and to its group.
//!
//! SIGPIPE stays ignored, as set by the Rust runtime: a closed pipe is not an error.

use super::{Done, Exit, Failure, note};
use conformant_base::clock;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Signals within this time are one.
const APART_MIN: Duration = Duration::from_millis(250);
/// Signals that end a command.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Flags of the process, set up at its start.
static SIGNALS: OnceLock<Signals> = OnceLock::new();

/// Flags set by signals.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// Any signal arrived: the run must end.
    pub interrupted: Arc<AtomicBool>,
    /// Number of the signal.
    which: Arc<AtomicUsize>,
    /// The next signal ends the process.
    armed: Arc<AtomicBool>,
}

impl Signals {
    /// Installs handlers, so that every signal leads to a documented exit code.
    pub(super) fn begin() -> Result<(), Failure> {
        Self::install().map_err(|e| failed(&e))
    }

    fn install() -> io::Result<()> {
        let signals = Self::default();
        signals.armed.store(true, Ordering::Relaxed);
        for signal in ENDING {
            let code = exit_of(signal) as i32;
            let number = usize::try_from(signal).unwrap_or_default();
            signal_hook::flag::register_conditional_shutdown(signal, code, signals.armed.clone())?;
            signal_hook::flag::register_usize(signal, signals.which.clone(), number)?;
            signal_hook::flag::register(signal, signals.interrupted.clone())?;
        }
        // Ignored: the write that exceeds the limit fails by itself.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        // The only call, at the start of the process.
        drop(SIGNALS.set(signals));
        Ok(())
    }

    /// Leaves the first signal to the caller from here on.
    pub(super) fn listen() -> Result<Self, Failure> {
        let signals = SIGNALS.get().cloned().unwrap_or_default();
        signals.armed.store(false, Ordering::Relaxed);
        let mut came = iterator::Signals::new(ENDING).map_err(|e| failed(&e))?;
        let armed = signals.armed.clone();
        let wait = move || {
            if came.forever().next().is_some() {
                clock::sleep(APART_MIN);
                armed.store(true, Ordering::Relaxed);
            }
        };
        let thread = std::thread::Builder::new().name("signals".to_owned());
        thread.spawn(wait).map_err(|e| failed(&e))?;
        Ok(signals)
    }

    /// Concludes the writing of a set or stream, which a signal ends with an error.
    pub(super) fn conclude(&self, done: Done) -> Done {
        match self.exit() {
            Some(exit) if done.is_err() => {
                note("interrupted; no partial output was left");
                Ok(exit)
            }
            Some(_) | None => done,
        }
    }

    pub(super) fn exit(&self) -> Option<Exit> {
        match self.which.load(Ordering::Relaxed) {
            0 => None,
            which => Some(exit_of(i32::try_from(which).unwrap_or_default())),
        }
    }

    /// A note for a signal without an exit code of its own.
    pub(super) fn notice(&self) -> Option<&'static str> {
        (self.exit() == Some(Exit::Trouble)).then_some("stopped by SIGHUP: the terminal was closed")
    }
}

fn failed(error: &io::Error) -> Failure {
    Failure::Trouble(format!("failed to listen for signals: {error}"))
}

fn exit_of(signal: i32) -> Exit {
    match signal {
        SIGINT => Exit::Interrupted,
        SIGTERM => Exit::Terminated,
        _ => Exit::Trouble,
    }
}
