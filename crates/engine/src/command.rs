//! Configured commands for hooks and credentials, with limits on time and output.

use conformant_base::clock;
use conformant_base::failpoint::{self, Failpoint};
use conformant_base::text;
use std::collections::VecDeque;
use std::io::Read;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// The largest output of a command.
const OUTPUT_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes kept from the end of standard error.
const STDERR_BYTES_MAX: usize = 1024;
/// Characters quoted from its last line.
const QUOTE_CHARS_MAX: usize = 200;
/// How long to wait for standard error after the command has ended. A background process may hold it open.
const STDERR_WAIT: Duration = Duration::from_millis(200);
const POLL: Duration = Duration::from_millis(5);

/// Why a command returned no output. Each message begins with the program's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The command is empty.
    #[error("an empty command")]
    Empty,
    /// It could not be started.
    #[error("{0} could not be started: {1}")]
    Start(String, String),
    /// It ended with an error status.
    #[error("{program} ended with {status}{}", quoted(said))]
    Ended {
        program: String,
        status: ExitStatus,
        /// The last line on standard error, or empty.
        said: String,
    },
    /// Its output is too large.
    #[error("{0} printed more than {OUTPUT_BYTES_MAX} bytes")]
    TooLong(String),
    /// It exceeded its time limit.
    #[error("{0} took longer than {1:?}")]
    Late(String, Duration),
    /// It ended, and a background process holds its output open.
    #[error("{0} ended, but its output did not within {1:?}")]
    Open(String, Duration),
    /// The run was interrupted.
    #[error("{0} was interrupted")]
    Interrupted(String),
    /// The system reported an error.
    #[error("{0}: {1}")]
    Read(String, String),
}

impl CommandError {
    /// Its exit code, if it has one.
    pub(super) fn code(&self) -> Option<i32> {
        let Self::Ended { status, .. } = self else {
            return None;
        };
        status.code()
    }
}

fn quoted(said: &str) -> String {
    match said {
        "" => String::new(),
        said => format!(": {said}"),
    }
}

/// Runs a command and returns its output if it succeeds.
pub(crate) fn printed(
    words: &[String],
    timeout: Duration,
    interrupted: &AtomicBool,
) -> Result<Vec<u8>, CommandError> {
    let [program, rest @ ..] = words else {
        return Err(CommandError::Empty);
    };
    let name = || program.clone();
    let mut command = Command::new(program);
    let command = command
        .args(rest)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = failpoint::check(Failpoint::HookSpawn)
        .and_then(|()| command.spawn())
        .map_err(|e| CommandError::Start(name(), e.to_string()))?;
    let out = child.stdout.take().expect("standard output was piped");
    let err = child.stderr.take().expect("standard error was piped");
    let mut running = Running {
        program,
        child,
        timeout,
        deadline: clock::monotonic() + timeout,
        output: None,
        printed: in_background(move || read_bounded(out)),
    };
    let said = in_background(move || last_line(err));
    let status = running.end(interrupted)?;
    if !status.success() {
        return Err(CommandError::Ended {
            program: name(),
            status,
            said: said.recv_timeout(STDERR_WAIT).unwrap_or_default(),
        });
    }
    running.output()
}

type Output = std::io::Result<Vec<u8>>;

struct Running<'c> {
    program: &'c str,
    child: Child,
    timeout: Duration,
    deadline: Instant,
    output: Option<Output>,
    printed: Receiver<Output>,
}

impl Running<'_> {
    /// Waits for the end. Kills the command if its output is too large, its time is over or the run is interrupted.
    fn end(&mut self, interrupted: &AtomicBool) -> Result<ExitStatus, CommandError> {
        loop {
            if self.output.is_none() {
                self.output = self.printed.try_recv().ok();
            }
            let ended = self.child.try_wait();
            let ended = ended.map_err(|e| CommandError::Read(self.name(), e.to_string()))?;
            let why = if matches!(&self.output, Some(Ok(bytes)) if is_too_much(bytes)) {
                CommandError::TooLong(self.name())
            } else if let Some(status) = ended {
                return Ok(status);
            } else if interrupted.load(Ordering::Relaxed) {
                CommandError::Interrupted(self.name())
            } else if clock::monotonic() > self.deadline {
                CommandError::Late(self.name(), self.timeout)
            } else {
                clock::sleep(POLL);
                continue;
            };
            // The child may have ended in the meantime; in both cases it is gone afterwards.
            let _ = self.child.kill();
            let _ = self.child.wait();
            return Err(why);
        }
    }

    /// Its output. A background process may hold it open.
    fn output(self) -> Result<Vec<u8>, CommandError> {
        let left = self.deadline.saturating_duration_since(clock::monotonic());
        let name = || self.program.to_owned();
        let output = match self.output {
            Some(output) => output,
            None => self
                .printed
                .recv_timeout(left)
                .map_err(|_| CommandError::Open(name(), self.timeout))?,
        };
        let bytes = output.map_err(|e| {
            CommandError::Read(name(), format!("its output could not be read: {e}"))
        })?;
        match is_too_much(&bytes) {
            true => Err(CommandError::TooLong(name())),
            false => Ok(bytes),
        }
    }

    fn name(&self) -> String {
        self.program.to_owned()
    }
}

fn is_too_much(bytes: &[u8]) -> bool {
    bytes.len() as u64 > OUTPUT_BYTES_MAX
}

fn read_bounded(out: ChildStdout) -> Output {
    let mut bytes = Vec::new();
    out.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads to the end, so that the command never blocks, and returns the last line that is not empty.
fn last_line(mut from: ChildStderr) -> String {
    let mut kept = VecDeque::new();
    let mut buffer = [0; STDERR_BYTES_MAX];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        kept.extend(&buffer[..count]);
        kept.drain(..kept.len().saturating_sub(STDERR_BYTES_MAX));
    }
    let kept = Vec::from(kept);
    let kept = String::from_utf8_lossy(&kept);
    let line = kept
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty());
    let shown = text::excerpt(line.unwrap_or_default(), QUOTE_CHARS_MAX);
    text::escape_line(&shown).into_owned()
}

fn in_background<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        // The receiver may have stopped waiting for a slow command.
        let _ = sender.send(work());
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_hanging_and_flooding_commands_have_distinct_errors() {
        let interrupted = AtomicBool::new(false);
        let run = |script: &str, ms| {
            let words = ["sh", "-c", script].map(str::to_owned);
            let timeout = Duration::from_millis(ms);
            printed(&words, timeout, &interrupted)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(run("exit 3", 5000), "sh ended with exit status: 3");
        assert_eq!(
            run("printf 'first\\nno \\033[1mdisk\\n\\n' >&2; exit 4", 5000),
            "sh ended with exit status: 4: no \\x1b[1mdisk"
        );
        // A flood on standard error is not waited for, and only its end is quoted.
        let long = run(
            "yes a long word | head -c 300000 >&2; echo end >&2; exit 1",
            10_000,
        );
        assert_eq!(long, "sh ended with exit status: 1: end");
        assert!(run("exec sleep 5", 50).contains("took longer"));
        // A hook that never stops printing is neither waited for nor kept in memory.
        assert!(run("exec yes", 30_000).contains("printed more than"));
        assert!(run("sleep 2 &", 100).contains("its output did not"));
        interrupted.store(true, Ordering::Relaxed);
        assert!(run("exec sleep 5", 60_000).contains("was interrupted"));
    }
}
