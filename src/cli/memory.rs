//! How the system's allocator is asked to treat many threads that each need much memory once.
//!
//! GNU's keeps for each thread what that thread gave back, so that eight jobs which judge one large
//! answer after the other come to eight times the largest, and small pieces that are kept hold large ones
//! apart. It takes the advice to share from the environment alone, when a process begins: so the process
//! begins anew, as itself, with that advice.

/// Begins anew with the advice, unless it was given already; where that cannot be, all goes on.
#[cfg(all(unix, target_env = "gnu"))]
pub(super) fn share_between_threads() {
    use super::config;
    use std::os::unix::process::CommandExt as _;
    // All threads take from one place, and none keeps more than small pieces for itself.
    let shared = ("MALLOC_ARENA_MAX", "1");
    let kept = ("GLIBC_TUNABLES", "glibc.malloc.tcache_max=256");
    // Whoever has set one knows better; by the first it is seen that the advice was given.
    let is_set = |(name, _): (&str, &str)| config::environment(name).is_some();
    if is_set(shared) {
        return;
    }
    if let Ok(program) = std::env::current_exe() {
        let arguments = std::env::args_os().skip(1);
        let advice = [shared, kept].into_iter().filter(|advice| !is_set(*advice));
        // It returns where it failed, and then nothing has changed.
        let _failed = std::process::Command::new(program)
            .args(arguments)
            .envs(advice)
            .exec();
    }
}

/// Other allocators give back what is not needed.
#[cfg(not(all(unix, target_env = "gnu")))]
pub(super) fn share_between_threads() {}
