//! The program under test as a process: start, observation, output.

use crate::hostile::target::Target;
use conformant_base::clock;
use serde_json::Value;
use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum time, however slow the machine is.
const GUARD: Duration = Duration::from_secs(120);

/// The program without relevant environment variables.
pub(crate) fn conformant(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conformant"));
    command.current_dir(folder).env_clear().stdin(Stdio::null());
    command
}

/// The deadline of each step. Without optimization, and in parallel with other tests, the program uses part of it.
pub(crate) const TIMEOUT: &str = if cfg!(debug_assertions) {
    "1s"
} else {
    "300ms"
};

/// A folder with a `conformant.yaml` with tight limits, which also ends the search for a configuration.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join(".git")).expect("a folder");
    let limits = format!("limits: {{timeout: {TIMEOUT}}}\n");
    write(&folder.path().join("conformant.yaml"), limits);
    folder
}

/// Writes a file.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) {
    std::fs::write(path, content).expect("a file");
}

/// Result of a process.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
    /// High-water mark of its memory, as far as observed.
    pub(crate) peak_kib: u64,
    /// Its processor time.
    pub(crate) computed: Duration,
}

/// A running process.
pub(crate) struct Running {
    child: Child,
    begun: std::time::Instant,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.expect("the program starts");
        let stdout = drain(child.stdout.take().expect("piped"));
        let stderr = drain(child.stderr.take().expect("piped"));
        Self {
            child,
            begun: clock::monotonic(),
            stdout,
            stderr,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name: `INT`, `TERM`, `KILL`.
    pub(crate) fn signal(&self, name: &str) {
        let line = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh")
            .args(["-c", &line])
            .status()
            .expect("a shell");
        assert!(status.success(), "{line}");
    }

    /// Sends a signal, unless the process has ended already.
    pub(crate) fn signal_if_there(&self, name: &str) {
        let line = format!("kill -{name} {} 2>&-", self.child.id());
        drop(Command::new("sh").args(["-c", &line]).status());
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> Ended {
        let mut peak_kib = 0;
        let mut computed = Duration::ZERO;
        let status = loop {
            // The last value: before `exec` it belongs to the test process.
            let peak = peak_of(self.child.id());
            peak_kib = if peak > 0 { peak } else { peak_kib };
            computed = computed.max(computed_by(self.child.id()));
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                break status;
            }
            if self.begun.elapsed() > GUARD {
                self.child.kill().expect("a child of ours");
                panic!(
                    "still running after {GUARD:?}: {}",
                    self.stderr.join().expect("no panic")
                );
            }
            clock::sleep(Duration::from_millis(5));
        };
        let took = self.begun.elapsed();
        Ended {
            exit: status.code(),
            signal: status.signal(),
            stdout: self.stdout.join().expect("no panic"),
            stderr: self.stderr.join().expect("no panic"),
            took,
            peak_kib,
            computed,
        }
    }
}

fn drain(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The high-water mark of a process's memory, if the system reports it.
fn peak_of(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap_or(0)
}

/// The processor time of a process, if the system reports it.
fn computed_by(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses may contain anything; user and system time are the 12th and 13th field after it.
    let fields = stat.rsplit(')').next().unwrap_or_default().split(' ');
    let ticks: u64 = fields
        .skip(12)
        .take(2)
        .filter_map(|f| f.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 10)
}

/// Runs to the end.
pub(crate) fn run(command: &mut Command) -> Ended {
    let ended = Running::start(command).end();
    assert_eq!(ended.signal, None, "{ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    ended
}

/// A finished `run` with its reports.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) ended: Ended,
    pub(crate) record: Value,
    pub(crate) json: String,
}

/// `run` of these scenarios of the flow service against a target, in a new folder.
pub(crate) fn judge(target: &Target, filter: &str) -> Judged {
    judge_in(
        folder().path(),
        &format!("flow={}/flow", target.origin()),
        filter,
    )
}

/// Whether this is the campaign `samples`. The benchmarks and the soak test use this file too.
#[expect(
    clippy::disallowed_methods,
    reason = "a setting of the tests, not of the program"
)]
fn is_campaign() -> bool {
    std::env::var_os("CAMPAIGN").is_some_and(|name| name == "samples")
}

/// The same for `SERVICE=URL`, in a folder that may have a configuration. The campaign also mutates the responses.
pub(crate) fn judge_in(folder: &Path, target: &str, filter: &str) -> Judged {
    let mut command = conformant(folder);
    command.args(["run", "--filter", filter, "--target", target]);
    command.args(["--prove", if is_campaign() { "rules" } else { "off" }]);
    command.args(["--report", "json=run.json", "--report", "junit=junit.xml"]);
    let ended = run(&mut command);
    let (json, record) = reports(folder, &ended);
    Judged {
        ended,
        record,
        json,
    }
}

/// The reports of a run, which must always be valid.
pub(crate) fn reports(folder: &Path, ended: &Ended) -> (String, Value) {
    let read = |name: &str| {
        let path: PathBuf = folder.join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}: {ended:?}"))
    };
    let json = read("run.json");
    let record: Value = serde_json::from_str(&json).expect("the JSON report is JSON");
    assert_eq!(record["schema_version"], 2);
    assert!(
        record["rules"]
            .as_array()
            .is_some_and(|rules| !rules.is_empty())
    );
    let cases = cases_of(&read("junit.xml"));
    assert!(cases > 0, "the JUnit report holds no case");
    (json, record)
}

/// Test cases of a well-formed `JUnit` report.
fn cases_of(xml: &str) -> usize {
    use quick_xml::events::Event;
    let mut reader = quick_xml::Reader::from_str(xml);
    let mut cases = 0;
    loop {
        let event = reader
            .read_event()
            .expect("the JUnit report is well-formed");
        if let Event::Start(tag) | Event::Empty(tag) = &event {
            cases += usize::from(tag.name().as_ref() == "testcase");
        } else if event == Event::Eof {
            return cases;
        }
    }
}
