//! Allocator settings for threads that each need much memory for a short time.
//!
//! The GNU allocator keeps freed memory for each thread: eight jobs that judge large answers need eight times the
//! largest, and small allocations keep large blocks from being reused. It reads the setting from the environment
//! when a process starts, so the process executes itself again with that setting.

/// Executes the program again with the setting, unless it is present; continues if that fails.
#[cfg(all(unix, target_env = "gnu"))]
pub(super) fn share_between_threads() {
    use super::config;
    use std::os::unix::process::CommandExt as _;
    // All threads share one arena, which keeps only small free blocks.
    let shared = ("MALLOC_ARENA_MAX", "1");
    let kept = ("GLIBC_TUNABLES", "glibc.malloc.tcache_max=256");
    // A setting of the caller has priority. The first variable shows that the setting was made.
    let is_set = |(name, _): (&str, &str)| config::environment(name).is_some();
    if is_set(shared) {
        return;
    }
    if let Ok(program) = std::env::current_exe() {
        let arguments = std::env::args_os().skip(1);
        let advice = [shared, kept].into_iter().filter(|advice| !is_set(*advice));
        // `exec` returns only when it failed.
        let _failed = std::process::Command::new(program)
            .args(arguments)
            .envs(advice)
            .exec();
    }
}

/// Other allocators return unused memory.
#[cfg(not(all(unix, target_env = "gnu")))]
pub(super) fn share_between_threads() {}
