//! The arguments of commands that judge, or that work with what was judged.

use super::super::completing;
use super::{ListFormat, Specs, Telling};
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use std::net::IpAddr;
use std::path::PathBuf;

/// `conformant run`.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Args, Debug, Default)]
pub struct RunArgs {
    /// Configuration file; otherwise conformant.yaml from here up to the repository's root.
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
    /// Base URL of a service under test; `all=URL` stands for URL/auth, URL/chat, URL/media, URL/flow.
    #[arg(long = "target", value_name = "SERVICE=URL")]
    pub targets: Vec<String>,
    /// Control plane: the hook NAME is `POST URL/NAME` with a JSON body.
    #[arg(long, value_name = "URL", env = "CONFORMANT_HOOKS")]
    pub hooks: Option<String>,
    /// Only this service.
    #[arg(long = "service", value_name = "SERVICE")]
    pub services: Vec<String>,
    /// Only scenarios whose id matches; `*` stands for any text.
    #[arg(long = "filter", value_name = "GLOB", add = ArgValueCompleter::new(completing::scenarios))]
    pub filters: Vec<String>,
    /// Further scenario files: DIR/SERVICE/TOPIC.yaml.
    #[arg(long, value_name = "DIR")]
    pub scenarios: Option<PathBuf>,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
    /// Reports, and what is said on the way.
    #[command(flatten)]
    pub telling: Telling,
    /// Accepted failures, each with reason and expiry.
    #[arg(long, value_name = "FILE")]
    pub waivers: Option<PathBuf>,
    /// A part of the scenarios, `hash:M/N` or `slice:M/N`.
    #[arg(long, value_name = "PART")]
    pub partition: Option<String>,
    /// Scenarios side by side [default: 8; without a target no more than processors, and one].
    #[arg(long, value_name = "N", env = "CONFORMANT_JOBS")]
    pub jobs: Option<usize>,
    /// Seed of names, identifiers and order.
    #[arg(long, value_name = "N", env = "CONFORMANT_SEED")]
    pub seed: Option<u64>,
    /// Run in an order drawn from the seed.
    #[arg(long)]
    pub shuffle: bool,
    /// Exit 4 unless every selected must-rule was judged that a run can judge.
    #[arg(long)]
    pub require_complete: bool,
    /// Exit 4 unless so many percent of the must-rules that were tried could be judged.
    #[arg(long, value_name = "PERCENT", default_value_t = 90, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub min_judged: u8,
    /// Prove what a pass is worth: change what was answered, one place at a time, and judge again: off, each rule (rules), and
    /// how much of all would be noticed (sample).
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub prove: Prove,
    /// Keep the record of each run in this folder, and tell what changed since the last ones.
    #[arg(long, value_name = "DIR")]
    pub history: Option<PathBuf>,
    /// Keep what was observed in this file, packed and without secrets: `judge FILE` judges it again by any later rulebook.
    #[arg(long, value_name = "FILE")]
    pub keep_evidence: Option<PathBuf>,
    /// Only what failed the last time.
    #[arg(long, value_name = "WHICH")]
    pub rerun: Option<Rerun>,
    /// Only scenarios that the rulebook's changes since this git revision touch.
    #[arg(long, value_name = "REF")]
    pub since: Option<String>,
    /// Show the requests of each scenario and send nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Tell where the time of a run against live targets went, and how quick its stories could have been told at best.
    #[arg(long)]
    pub timings: bool,
    /// The longest the whole run may take, such as 10m.
    #[arg(long, value_name = "DURATION")]
    pub global_timeout: Option<String>,
}

/// How far a run proves itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Prove {
    /// Not at all.
    Off,
    /// Each rule that passed is to be broken by some change of the answers.
    #[default]
    Rules,
    /// That, and answers are changed at random.
    Sample,
}

/// Whose CI is to run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Forge {
    /// A workflow.
    Github,
    /// A job.
    Gitlab,
    /// No file.
    None,
}

/// `conformant init`.
#[derive(Args, Debug)]
pub struct InitArgs {
    /// Base URL of a service under test; `all=URL` stands for URL/auth, URL/chat, URL/media, URL/flow. Asked for when left out
    /// at a terminal.
    #[arg(long = "target", value_name = "SERVICE=URL")]
    pub targets: Vec<String>,
    /// Control plane: the hook NAME is `POST URL/NAME` with a JSON body [default: stubs in hooks/].
    #[arg(long, value_name = "URL")]
    pub hooks: Option<String>,
    /// CI file to write [default: for the forge whose files are found].
    #[arg(long, value_name = "FORGE")]
    pub ci: Option<Forge>,
    /// Folder to write to; files that are there stay as they are.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
}

/// `conformant doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Configuration file; otherwise conformant.yaml from here up to the repository's root.
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
    /// Base URL of a service under test; `all=URL` stands for URL/auth, URL/chat, URL/media, URL/flow.
    #[arg(long = "target", value_name = "SERVICE=URL")]
    pub targets: Vec<String>,
    /// Control plane: the hook NAME is `POST URL/NAME` with a JSON body.
    #[arg(long, value_name = "URL", env = "CONFORMANT_HOOKS")]
    pub hooks: Option<String>,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
}

/// `conformant baseline`.
#[derive(Args, Debug)]
pub struct BaselineArgs {
    /// The record of a run (`--report json=PATH`).
    #[arg(value_name = "RUN.json", default_value = "reports/run.json")]
    pub run: PathBuf,
    /// The waivers: what is there stays, what fails is added.
    #[arg(long, value_name = "FILE", default_value = "waivers.yaml")]
    pub out: PathBuf,
    /// Take out what was judged and passed, add nothing.
    #[arg(long)]
    pub update: bool,
    /// Why the failures are accepted.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Who sees to them.
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// The last day on which they are accepted [default: in 90 days].
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub expires: Option<String>,
    /// Accept findings of level `should` too.
    #[arg(long)]
    pub strict: bool,
}

/// Which scenarios are run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rerun {
    /// Those that did not pass in the last run.
    LastFailed,
}

/// `conformant serve`.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Interface to listen on [default: the loopback interface]. Who reaches it from elsewhere needs the token of
    /// `CONFORMANT_CONTROL_TOKEN` for the control plane.
    #[arg(long, value_name = "ADDRESS")]
    pub host: Option<IpAddr>,
    /// Speak TLS, with a certificate that is made up for this machine's own names and written to this file, so that clients can
    /// trust it.
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", conflicts_with = "tls_certificate")]
    pub tls: Option<PathBuf>,
    /// Speak TLS with this certificate (PEM, those that issued it behind it).
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// The certificate's private key (PEM).
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// Pages of this origin may ask the services from a browser; `*` stands for all.
    #[arg(long, value_name = "ORIGIN")]
    pub cors: Vec<String>,
    /// What calls of an operation get, in each world: [CALLS@]OPERATION=ANSWER, with calls 2, 2-4 or 2+ and the
    /// answers 429[:SECONDS], 503[:SECONDS], delay:MILLISECONDSms, cut, truncate and stale.
    #[arg(long = "answer", value_name = "SCRIPT")]
    pub answers: Vec<String>,
    /// The same from a JSON file: a list of {name, on, calls, answer}.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// What worlds begin with: requests, a line of JSON each, as `GET /_control/export` and
    /// `fixtures generate --world --format seed-data` write them.
    #[arg(long, value_name = "FILE")]
    pub seed_data: Option<PathBuf>,
    /// Write a line of JSON for each request to this file, without secrets; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Write the address to this file, whole, once requests are answered.
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// End when the process that started this one is gone.
    #[arg(long)]
    pub exit_with_parent: bool,
    /// Switch a fault on.
    #[arg(long = "fault", value_name = "ID", add = ArgValueCompleter::new(completing::faults))]
    pub faults: Vec<String>,
    /// Switch a variant on.
    #[arg(long = "variant", value_name = "ID", add = ArgValueCompleter::new(completing::variants))]
    pub variants: Vec<String>,
    /// Seed of identifiers.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Judge what clients send: each finding at once, all of them at the end, and the exit code by them.
    #[arg(long, value_enum, value_name = "SIDE")]
    pub judge: Option<OfClients>,
    /// Reports, with --judge, and what is said on the way.
    #[command(flatten)]
    pub telling: Telling,
}

/// Whom the reference judges: not itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OfClients {
    /// What clients send.
    Requests,
}

/// Whom traffic is judged for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// What clients send and what services answer.
    #[default]
    Both,
    /// What clients send.
    Requests,
    /// What services answer.
    Responses,
}

/// `conformant proxy`.
#[derive(Args, Debug)]
pub struct ProxyArgs {
    /// Base URL of the target behind `/SERVICE`: auth, chat, media, flow, or all for `URL/SERVICE` of
    /// each.
    #[arg(long = "upstream", value_name = "SERVICE=URL", required = true)]
    pub upstreams: Vec<String>,
    /// Port to listen on, on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// End after this time, such as 10m; otherwise a signal ends it.
    #[arg(long = "for", value_name = "DURATION")]
    pub time: Option<String>,
    /// End after so many requests.
    #[arg(long, value_name = "N")]
    pub max_exchanges: Option<usize>,
    /// Judge what clients send, what services answer, or both.
    #[arg(long, value_enum, value_name = "SIDE", default_value_t)]
    pub judge: Side,
    /// Nobody but this traffic acts on the targets: what exists, and what may not have changed
    /// meanwhile, is judged too.
    #[arg(long)]
    pub alone: bool,
    /// Configuration file; otherwise conformant.yaml from here up to the repository's root.
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
    /// Reports, and what is said on the way.
    #[command(flatten)]
    pub telling: Telling,
}

/// `conformant explore`.
#[derive(Args, Debug)]
pub struct ExploreArgs {
    /// Configuration file; otherwise conformant.yaml from here up to the repository's root.
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
    /// Base URL of a service under test; `all=URL` stands for URL/auth, URL/chat, URL/media, URL/flow. The reference
    /// when left out.
    #[arg(long = "target", value_name = "SERVICE=URL")]
    pub targets: Vec<String>,
    /// Control plane: the hook NAME is `POST URL/NAME` with a JSON body.
    #[arg(long, value_name = "URL", env = "CONFORMANT_HOOKS")]
    pub hooks: Option<String>,
    /// Only this service.
    #[arg(long = "service", value_name = "SERVICE")]
    pub services: Vec<String>,
    /// How long: a time, such as 60s, or a number of sequences, which makes the output the same each time [default: 10s].
    #[arg(long, value_name = "TIME|N")]
    pub budget: Option<String>,
    /// Draws the sequences.
    #[arg(long, value_name = "N", env = "CONFORMANT_SEED")]
    pub seed: Option<u64>,
    /// Save each finding as a scenario that `run --scenarios DIR` plays.
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Send nothing that writes, and ask nobody to do anything.
    #[arg(long)]
    pub only_safe: bool,
    /// Sequences side by side [default: 2].
    #[arg(long, value_name = "N", env = "CONFORMANT_JOBS")]
    pub jobs: Option<usize>,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
}

/// `conformant selftest`.
#[derive(Args, Debug)]
pub struct SelftestArgs {
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
    /// Only faults and variants whose id matches; `*` stands for any text.
    #[arg(long = "filter", value_name = "GLOB")]
    pub filters: Vec<String>,
    /// Draw N sequences of requests instead, without any story, and say which faults they find.
    #[arg(long, value_name = "N", conflicts_with = "pairs")]
    pub explore: Option<u64>,
    /// Try N pairs of variants and N pairs of defects instead, drawn at random.
    #[arg(long, value_name = "N")]
    pub pairs: Option<usize>,
    /// What pairs and sequences are drawn by; the recorded share is that of seed 0.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,
    /// Write what came of every trial: json or markdown, and where (`-` is standard output).
    #[arg(long = "report", value_name = "FORMAT=PATH", conflicts_with_all = ["explore", "pairs"])]
    pub reports: Vec<String>,
    /// Runs side by side.
    #[arg(long, value_name = "N", env = "CONFORMANT_JOBS")]
    pub jobs: Option<usize>,
}

/// `conformant check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Files to judge, plain or packed by gzip or zstd; folders and patterns (`*`) stand for their
    /// files, `-` for standard input.
    #[arg(required = true, value_name = "FILE|DIR|GLOB")]
    pub files: Vec<PathBuf>,
    /// What they are: SERVICE/RESOURCE (`[]` for a list page), events/NAME/VERSION, an event type,
    /// events (each with its type and schema address beside it), har, token or qr.
    #[arg(long = "as", value_name = "KIND", add = ArgValueCompleter::new(completing::kinds))]
    pub kind: String,
    /// With `--as events`: JSON Pointer to an event's type [default: /type, as in CloudEvents].
    #[arg(long, value_name = "POINTER")]
    pub type_at: Option<String>,
    /// With `--as events`: JSON Pointer to the address of its schema [default: /dataschema].
    #[arg(long, value_name = "POINTER")]
    pub schema_at: Option<String>,
    /// With `--as events`: JSON Pointer to its payload [default: /data].
    #[arg(long, value_name = "POINTER")]
    pub payload_at: Option<String>,
    /// Configuration file; otherwise conformant.yaml from here up to the repository's root.
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
    /// The moment at which tokens are judged, such as 2026-01-01T00:00:00Z [default: now].
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// For har: judge what clients sent, what services answered, or both [default: both].
    #[arg(long, value_enum, value_name = "SIDE", hide_possible_values = true)]
    pub judge: Option<Side>,
    /// For har: nobody but this traffic acts on the targets: what exists, and what may not have changed
    /// meanwhile, is judged too.
    #[arg(long)]
    pub alone: bool,
    /// Threads that judge lines side by side [default: as many as there are processors].
    #[arg(long, value_name = "N", env = "CONFORMANT_JOBS")]
    pub jobs: Option<usize>,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
    /// Reports, and what is said on the way.
    #[command(flatten)]
    pub telling: Telling,
}

/// `conformant compare`.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// Record of the first run, as `run --report json=FILE` writes it.
    #[arg(value_name = "A.json")]
    pub a: PathBuf,
    /// Record of the second run.
    #[arg(value_name = "B.json")]
    pub b: PathBuf,
    /// Write the difference: text, json or markdown, and where (`-` is standard output).
    #[arg(long = "report", value_name = "FORMAT=PATH")]
    pub reports: Vec<String>,
    /// Exit 1 on any failing finding that the first run does not have, also of a rule that it broke
    /// elsewhere.
    #[arg(long)]
    pub fail_on_new: bool,
}

/// `conformant judge`.
#[derive(Args, Debug)]
pub struct JudgeArgs {
    /// Record of the run, or the evidence that `run --keep-evidence` kept of it.
    #[arg(value_name = "RUN.json|FILE")]
    pub run: PathBuf,
    /// The rulebook.
    #[command(flatten)]
    pub specs: Specs,
    /// Accepted failures, each with reason and expiry.
    #[arg(long, value_name = "FILE")]
    pub waivers: Option<PathBuf>,
    /// Reports, and what is said on the way.
    #[command(flatten)]
    pub telling: Telling,
}

/// `conformant history`.
#[derive(Args, Debug)]
pub struct HistoryArgs {
    /// The folder that `run --history` keeps records in.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
}

/// `conformant merge`.
#[derive(Args, Debug)]
pub struct MergeArgs {
    /// Records of the parts.
    #[arg(required = true, value_name = "RUN.json")]
    pub runs: Vec<PathBuf>,
    /// Reports of the whole run, and what is said on the way.
    #[command(flatten)]
    pub telling: Telling,
}
