//! SIGINT and SIGTERM: the first ends the run at its next step, the second ends the process.

use super::Exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Flags that signals raise.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// Any of them came: the run is to end.
    pub interrupted: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
    by_signal: Arc<AtomicBool>,
}

impl Signals {
    /// Starts listening.
    pub(super) fn listen() -> std::io::Result<Self> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let signals = Self::default();
        for (signal, exit) in [(SIGINT, Exit::Interrupted), (SIGTERM, Exit::Terminated)] {
            // Armed by the first signal, so that only a second one ends the process at once.
            let code = exit as i32;
            signal_hook::flag::register_conditional_shutdown(
                signal,
                code,
                signals.by_signal.clone(),
            )?;
            signal_hook::flag::register(signal, signals.by_signal.clone())?;
            signal_hook::flag::register(signal, signals.interrupted.clone())?;
        }
        signal_hook::flag::register(SIGTERM, signals.terminated.clone())?;
        Ok(signals)
    }

    /// The exit code that a signal asks for.
    pub(super) fn exit(&self) -> Option<Exit> {
        if !self.by_signal.load(Ordering::Relaxed) {
            return None;
        }
        Some(if self.terminated.load(Ordering::Relaxed) {
            Exit::Terminated
        } else {
            Exit::Interrupted
        })
    }
}
