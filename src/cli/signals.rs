//! Signals: before anything is written each ends the process at once, with the exit code for it; while
//! a command works the first one ends that work in good order, and only the second one the process. Those that come together are one: who
//! ends a group of processes, as `timeout` does, sends to each of them and then to all.
//!
//! SIGPIPE stays ignored, as the Rust runtime has it: that nobody reads any more is no failure.

use super::Exit;
use conformant_base::clock;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Signals that are no further apart are one.
const APART_MIN: Duration = Duration::from_millis(250);
/// The signals that end a command.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// What the process listens to, from its first moment.
static SIGNALS: OnceLock<Signals> = OnceLock::new();

/// Flags that signals raise.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// Any of them came: the run is to end.
    pub interrupted: Arc<AtomicBool>,
    /// Which one came, by number.
    which: Arc<AtomicUsize>,
    /// The next one ends the process.
    armed: Arc<AtomicBool>,
}

impl Signals {
    /// Takes care that no signal ends the process without an exit code of ours.
    pub(super) fn begin() -> std::io::Result<()> {
        let signals = Self::default();
        signals.armed.store(true, Ordering::Relaxed);
        for signal in ENDING {
            let code = exit_of(signal) as i32;
            let number = usize::try_from(signal).unwrap_or_default();
            signal_hook::flag::register_conditional_shutdown(signal, code, signals.armed.clone())?;
            signal_hook::flag::register_usize(signal, signals.which.clone(), number)?;
            signal_hook::flag::register(signal, signals.interrupted.clone())?;
        }
        // Heeded by nobody: the write that went too far fails by itself.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        // The only call, at the beginning of the process.
        drop(SIGNALS.set(signals));
        Ok(())
    }

    /// From here on the first signal is the caller's to heed.
    pub(super) fn listen() -> std::io::Result<Self> {
        if SIGNALS.get().is_none() {
            Self::begin()?;
        }
        let signals = SIGNALS.get().cloned().unwrap_or_default();
        signals.armed.store(false, Ordering::Relaxed);
        let mut came = iterator::Signals::new(ENDING)?;
        let armed = signals.armed.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                if came.forever().next().is_some() {
                    clock::sleep(APART_MIN);
                    armed.store(true, Ordering::Relaxed);
                }
            })?;
        Ok(signals)
    }

    /// The exit code that a signal asks for.
    pub(super) fn exit(&self) -> Option<Exit> {
        match self.which.load(Ordering::Relaxed) {
            0 => None,
            which => Some(exit_of(i32::try_from(which).unwrap_or_default())),
        }
    }

    /// What there is to say about a signal whose exit code does not say it.
    pub(super) fn notice(&self) -> Option<&'static str> {
        (self.exit() == Some(Exit::Trouble)).then_some("ended by SIGHUP: the terminal is gone")
    }
}

fn exit_of(signal: i32) -> Exit {
    match signal {
        SIGINT => Exit::Interrupted,
        SIGTERM => Exit::Terminated,
        _ => Exit::Trouble,
    }
}
