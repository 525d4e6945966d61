//! How the system's allocator is asked to treat many threads that each need much memory once.
//!
//! GNU's keeps for each thread what that thread gave back, so that eight jobs which judge one large
//! answer after the other come to eight times the largest. It takes the advice to share from the
//! environment alone, when a process begins: so the process begins anew, as itself, with that advice.

use super::config;

/// The allocator's own variable; whoever has set it knows better.
const ADVICE: &str = "MALLOC_ARENA_MAX";

/// Begins anew with the advice, unless it was given already; where that cannot be, all goes on.
#[cfg(all(unix, target_env = "gnu"))]
pub(super) fn share_between_threads() {
    use std::os::unix::process::CommandExt as _;
    if config::environment(ADVICE).is_some() {
        return;
    }
    if let Ok(program) = std::env::current_exe() {
        let arguments = std::env::args_os().skip(1);
        // It returns where it failed, and then nothing has changed.
        let _failed = std::process::Command::new(program)
            .args(arguments)
            .env(ADVICE, "1")
            .exec();
    }
}

/// Other allocators give back what is not needed.
#[cfg(not(all(unix, target_env = "gnu")))]
pub(super) fn share_between_threads() {}
