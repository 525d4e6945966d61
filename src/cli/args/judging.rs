//! Arguments of the commands that judge, and of those that read stored runs.

use super::super::completing;
use super::{ListFormat, OutputArgs, Specs, TargetArgs};
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use conformant_engine::Demands;
use std::net::IpAddr;
use std::path::PathBuf;

#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    pub on: TargetArgs,
    /// Judge the built-in reference, whatever the configuration names.
    #[arg(long, conflicts_with_all = ["targets", "require_target"])]
    pub reference: bool,
    /// Exit 2 if no target is configured [default: where CI is set].
    #[arg(long)]
    pub require_target: bool,
    /// Run only this service.
    #[arg(long = "service", value_name = "SERVICE")]
    pub services: Vec<String>,
    /// Run only scenarios whose id matches; `*` matches any text.
    #[arg(long = "filter", value_name = "GLOB", add = ArgValueCompleter::new(completing::scenarios))]
    pub filters: Vec<String>,
    /// Add scenarios from DIR/SERVICE/TOPIC.yaml.
    #[arg(long, value_name = "DIR")]
    pub scenarios: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Accept the failures that this file lists, each with a reason and an expiry date.
    #[arg(long, value_name = "FILE")]
    pub waivers: Option<PathBuf>,
    /// Exit 1 if a service or feature that this file claims was not judged.
    #[arg(long, value_name = "FILE")]
    pub claims: Option<PathBuf>,
    /// Run one part of the scenarios: `hash:M/N` or `slice:M/N`.
    #[arg(long, value_name = "PART")]
    pub partition: Option<String>,
    /// Run N scenarios in parallel [default: 8; without a target at most one more than processors].
    #[arg(long, value_name = "N", env = "CONFORMANT_JOBS", value_parser = super::at_least_one::<usize>)]
    pub jobs: Option<usize>,
    /// Set the seed of names, identifiers and order.
    #[arg(long, value_name = "N", env = "CONFORMANT_SEED")]
    pub seed: Option<u64>,
    /// Use the names of an earlier run against live targets; without it each run has new names.
    #[arg(long, value_name = "NAMES")]
    pub names: Option<String>,
    /// Run in an order drawn from the seed.
    #[arg(long)]
    pub shuffle: bool,
    #[command(flatten)]
    pub demands: DemandArgs,
    /// Mutate the recorded responses and judge them again, to check that rules can fail.
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub prove: Prove,
    /// Run scenarios that send requests at the same time, or leave them out.
    #[arg(long, value_enum, value_name = "WHETHER", default_value_t)]
    pub races: Races,
    /// Run each of these scenarios until it fails, at most N times [default: 3; without a target 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: Option<u16>,
    /// Run everything N times, each time with other names; a rule that fails in any run fails.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(2..=100),
        conflicts_with_all = ["names", "keep_evidence", "partition", "timings", "dry_run"]
    )]
    pub repeat: Option<u8>,
    /// Keep the record of each run in this folder, and report what changed since earlier runs.
    #[arg(long, value_name = "DIR")]
    pub history: Option<PathBuf>,
    /// Keep the evidence in this file, compressed and without secrets, for `judge FILE`.
    #[arg(long, value_name = "FILE")]
    pub keep_evidence: Option<PathBuf>,
    /// Run only what failed in the last run.
    #[arg(long, value_name = "WHICH")]
    pub rerun: Option<Rerun>,
    /// Run only scenarios that rulebook changes since this git revision affect.
    #[arg(long, value_name = "REF")]
    pub since: Option<String>,
    /// Print the requests of each scenario and send nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Report where the time went on a live target, and the shortest possible run time.
    #[arg(long)]
    pub timings: bool,
    /// Stop the run after this time, such as 10m, and exit with 3.
    #[arg(long, value_name = "DURATION")]
    pub global_timeout: Option<String>,
}

/// How much has to be judged.
#[derive(Args, Clone, Copy, Debug)]
pub struct DemandArgs {
    /// Exit 4 unless every selected must-rule that a run can judge was judged.
    #[arg(long)]
    pub require_complete: bool,
    /// Exit 4 unless at least this percentage of the attempted must-rules was judged, and as many scenarios were set up.
    #[arg(long, value_name = "PERCENT", default_value_t = 90, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub min_judged: u8,
}

impl DemandArgs {
    /// The demands on a run, with those on its findings.
    pub(in crate::cli) fn with(self, strict: bool) -> Demands {
        Demands {
            strict,
            require_complete: self.require_complete,
            min_judged: self.min_judged,
            ..Demands::default()
        }
    }
}

/// Extent of mutation testing after a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Prove {
    /// No mutations.
    Off,
    /// One mutation after another for each passed rule, until it fails.
    #[default]
    Rules,
    /// The same, and random mutations as an estimate of what would be missed.
    Sample,
}

/// Whether scenarios run that send requests at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Races {
    /// Leave them out.
    Off,
    /// Run them.
    #[default]
    On,
}

/// CI system to write a file for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Forge {
    /// GitHub workflow.
    Github,
    /// GitLab job.
    Gitlab,
    /// No CI file.
    None,
}

#[derive(Args, Debug)]
pub struct InitArgs {
    /// Set the base URL of a service; `all=URL` means URL/auth, URL/chat, URL/media and URL/flow [default: ask on a terminal].
    #[arg(long = "target", value_name = "SERVICE=URL")]
    pub targets: Vec<String>,
    /// Call hooks below this URL: hook NAME is `POST URL/NAME` with a JSON body [default: stubs in hooks/].
    #[arg(long, value_name = "URL")]
    pub hooks: Option<String>,
    /// Write a CI file for this system [default: the one whose files exist].
    #[arg(long, value_name = "FORGE")]
    pub ci: Option<Forge>,
    /// Write to this folder; existing files are kept.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Make a rulebook folder in DIR from this OpenAPI document (3.0 or 3.1, YAML or JSON), and no configuration.
    #[arg(long, value_name = "FILE", requires = "dir", conflicts_with_all = ["targets", "hooks", "ci", "out"])]
    pub from: Option<PathBuf>,
    /// With --from: the folder for the rulebook, empty or missing.
    #[arg(value_name = "DIR", requires = "from")]
    pub dir: Option<PathBuf>,
    #[command(flatten)]
    pub specs: Specs,
}

#[derive(Args, Debug)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub on: TargetArgs,
    /// Call each hook that declares a harmless call, and check its result.
    #[arg(long)]
    pub probe: bool,
    /// Set the output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
}

#[derive(Args, Debug)]
pub struct BaselineArgs {
    /// Record of the run, from `run --report json=PATH`.
    #[arg(value_name = "RUN.json", default_value = "reports/run.json")]
    pub run: PathBuf,
    /// Add the failures to this waivers file; existing entries are kept.
    #[arg(long, value_name = "FILE", default_value = "waivers.yaml")]
    pub out: PathBuf,
    /// Remove the entries whose rules now pass, and add none.
    #[arg(long)]
    pub update: bool,
    /// Give the reason why the failures are accepted.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Name the person who is responsible for them.
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Set the last day on which they are accepted [default: in 90 days].
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub expires: Option<String>,
    /// Also accept findings of level `should`.
    #[arg(long)]
    pub strict: bool,
}

/// Scenarios to run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rerun {
    /// Scenarios that did not pass in the last run.
    LastFailed,
}

#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Listen on this port; 0 selects a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Listen on this address [default: loopback]; others then need `CONFORMANT_CONTROL_TOKEN` for the control plane.
    #[arg(long, value_name = "ADDRESS")]
    pub host: Option<IpAddr>,
    /// Use TLS with a generated certificate for localhost, and write the certificate to this file.
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", conflicts_with = "tls_certificate")]
    pub tls: Option<PathBuf>,
    /// Use TLS with this certificate (PEM, followed by its issuers).
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// Use this private key of the certificate (PEM).
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// Allow browser requests from this origin; `*` allows all.
    #[arg(long, value_name = "ORIGIN")]
    pub cors: Vec<String>,
    /// Script answers of an operation: [CALLS@]OPERATION=ANSWER, such as 2@chat/create-message=429:1.
    /// CALLS is 2, 2-4 or 2+. ANSWER is 429[:SECONDS], 503[:SECONDS], delay:MILLISECONDSms, cut, truncate or stale.
    #[arg(long = "answer", value_name = "SCRIPT")]
    pub answers: Vec<String>,
    /// Read scripted answers from a JSON file: a list of {name, on, calls, answer}.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Preload each instance with these requests, one JSON object a line, as written by `GET /_control/export`.
    #[arg(long, value_name = "FILE")]
    pub seed_data: Option<PathBuf>,
    /// Log each request to this file, one JSON object a line, without secrets; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Write the address to this file, atomically, as soon as requests are answered.
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Exit when the parent process has ended.
    #[arg(long)]
    pub exit_with_parent: bool,
    /// Enable a fault.
    #[arg(long = "fault", value_name = "ID", add = ArgValueCompleter::new(completing::faults))]
    pub faults: Vec<String>,
    /// Enable an allowed variation.
    #[arg(long = "variant", value_name = "ID", add = ArgValueCompleter::new(completing::variants))]
    pub variants: Vec<String>,
    /// Set the seed of identifiers.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Judge the requests of clients, report each finding at once, and set the exit code.
    #[arg(long, value_enum, value_name = "SIDE")]
    pub judge: Option<OfClients>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Messages that `serve` judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OfClients {
    /// Requests of clients.
    Requests,
}

/// Messages to judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// Requests and responses.
    #[default]
    Both,
    /// Requests of clients.
    Requests,
    /// Responses of services.
    Responses,
}

#[derive(Args, Debug)]
pub struct ProxyArgs {
    /// Forward `/SERVICE` to this base URL; `all=URL` means URL/auth, URL/chat, URL/media and URL/flow.
    #[arg(long = "upstream", value_name = "SERVICE=URL", required = true)]
    pub upstreams: Vec<String>,
    /// Listen on this port of 127.0.0.1; 0 selects a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Exit after this time, such as 10m [default: at a signal].
    #[arg(long = "for", value_name = "DURATION")]
    pub time: Option<String>,
    /// Exit after N requests.
    #[arg(long, value_name = "N", value_parser = super::at_least_one::<usize>)]
    pub max_exchanges: Option<usize>,
    /// Judge the requests of clients, the responses of services, or both.
    #[arg(long, value_enum, value_name = "SIDE", default_value_t)]
    pub judge: Side,
    /// Assume that this traffic is the only writer, and also judge state and what must not change.
    #[arg(long)]
    pub alone: bool,
    /// Read this configuration [default: the nearest conformant.yaml, up to the root of the repository].
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub specs: Specs,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Args, Debug)]
#[command(mut_arg("targets", |arg| arg.help("Set the base URL of a service; `all=URL` means URL/auth, URL/chat, URL/media and URL/flow [default: the reference]")))]
pub struct ExploreArgs {
    #[command(flatten)]
    pub on: TargetArgs,
    /// Explore the built-in reference, whatever the configuration names [default: without a target, unless CI is set].
    #[arg(long, conflicts_with = "targets")]
    pub reference: bool,
    /// Explore only this service.
    #[arg(long = "service", value_name = "SERVICE")]
    pub services: Vec<String>,
    /// Stop after a time, such as 60s, or after N sequences, which makes the output reproducible [default: 10s].
    #[arg(long, value_name = "TIME|N")]
    pub budget: Option<String>,
    /// Set the seed of the sequences.
    #[arg(long, value_name = "N", env = "CONFORMANT_SEED")]
    pub seed: Option<u64>,
    /// Use the names of an earlier exploration of live targets; without it each has new names.
    #[arg(long, value_name = "NAMES")]
    pub names: Option<String>,
    /// Save each finding as a scenario for `run --scenarios DIR`.
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Send only requests that write nothing, and call no hooks.
    #[arg(long)]
    pub only_safe: bool,
    /// Run N sequences in parallel [default: 2].
    #[arg(long, value_name = "N", env = "CONFORMANT_JOBS", value_parser = super::at_least_one::<usize>)]
    pub jobs: Option<usize>,
}

#[derive(Args, Debug)]
pub struct SelftestArgs {
    #[command(flatten)]
    pub specs: Specs,
    /// Try only faults and variations whose id matches; `*` matches any text.
    #[arg(long = "filter", value_name = "GLOB")]
    pub filters: Vec<String>,
    /// Try each fault in every scenario, not only until the recorded rules have caught it.
    #[arg(long)]
    pub every_scenario: bool,
    /// Run N random sequences of requests instead of scenarios, and report the faults that they find.
    #[arg(long, value_name = "N", conflicts_with = "pairs")]
    pub explore: Option<u64>,
    /// Try N random combinations of variations and N pairs of faults instead.
    #[arg(long, value_name = "N")]
    pub pairs: Option<usize>,
    /// Set the seed of combinations, pairs and sequences; `specs/explored.yaml` records seed 0.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,
    /// Write the result of each trial: json or markdown, and a path (`-` is standard output).
    #[arg(long = "report", value_name = "FORMAT=PATH", conflicts_with_all = ["explore", "pairs"])]
    pub reports: Vec<String>,
    /// Run N trials in parallel.
    #[arg(long, value_name = "N", env = "CONFORMANT_JOBS", value_parser = super::at_least_one::<usize>)]
    pub jobs: Option<usize>,
}

#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Files to judge, also compressed with gzip or zstd; folders and patterns (`*`) are expanded, `-` is standard input.
    #[arg(required = true, value_name = "FILE|DIR|GLOB")]
    pub files: Vec<PathBuf>,
    /// Set their type: SERVICE/RESOURCE (`[]` for a list page), events/NAME/VERSION, an event type, events, har, token or qr.
    #[arg(long = "as", value_name = "KIND", add = ArgValueCompleter::new(completing::kinds))]
    pub kind: String,
    /// With `--as events`: set the JSON Pointer to the type of an event [default: /type, as in CloudEvents].
    #[arg(long, value_name = "POINTER")]
    pub type_at: Option<String>,
    /// With `--as events`: set the JSON Pointer to the address of its schema [default: /dataschema].
    #[arg(long, value_name = "POINTER")]
    pub schema_at: Option<String>,
    /// With `--as events`: set the JSON Pointer to its payload [default: /data].
    #[arg(long, value_name = "POINTER")]
    pub payload_at: Option<String>,
    /// Read this configuration [default: the nearest conformant.yaml, up to the root of the repository].
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    pub config: Option<PathBuf>,
    /// Judge tokens at this time, such as 2026-01-01T00:00:00Z [default: now].
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// With `--as har`: judge the requests of clients, the responses of services, or both [default: both].
    #[arg(long, value_enum, value_name = "SIDE", hide_possible_values = true)]
    pub judge: Option<Side>,
    /// With `--as har`: assume that the recorded traffic is the only writer, and also judge state.
    #[arg(long)]
    pub alone: bool,
    /// Judge lines on N threads [default: one for each processor].
    #[arg(long, value_name = "N", env = "CONFORMANT_JOBS", value_parser = super::at_least_one::<usize>)]
    pub jobs: Option<usize>,
    /// Write rejected lines to a new file in DIR as NDJSON, with their findings and their original file and line.
    #[arg(long, value_name = "DIR")]
    pub set_aside: Option<PathBuf>,
    #[command(flatten)]
    pub specs: Specs,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Args, Debug)]
pub struct CompareArgs {
    /// Record of the first run, from `run --report json=FILE`.
    #[arg(value_name = "A.json")]
    pub a: PathBuf,
    /// Record of the second run.
    #[arg(value_name = "B.json")]
    pub b: PathBuf,
    /// Write the difference: text, json or markdown, and a path (`-` is standard output).
    #[arg(long = "report", value_name = "FORMAT=PATH")]
    pub reports: Vec<String>,
    /// Exit 1 on any failing finding that the first run does not have, and 4 if the second run ended early or did not judge
    /// every must-rule that the first one judged.
    #[arg(long)]
    pub fail_on_new: bool,
}

#[derive(Args, Debug)]
pub struct JudgeArgs {
    /// Record of the run, or its evidence from `run --keep-evidence`.
    #[arg(value_name = "RUN.json|FILE")]
    pub run: PathBuf,
    #[command(flatten)]
    pub specs: Specs,
    /// Accept the failures that this file lists, each with a reason and an expiry date.
    #[arg(long, value_name = "FILE")]
    pub waivers: Option<PathBuf>,
    /// Exit 1 if a service or feature that this file claims was not judged.
    #[arg(long, value_name = "FILE")]
    pub claims: Option<PathBuf>,
    #[command(flatten)]
    pub demands: DemandArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Args, Debug)]
pub struct VerifyStatementArgs {
    /// The statement, from `--report statement=FILE`.
    #[arg(value_name = "STATEMENT")]
    pub statement: PathBuf,
    /// The evidence of the run, from `run --keep-evidence`.
    #[arg(long, value_name = "FILE")]
    pub evidence: PathBuf,
    /// Exit 1 unless these rules passed: ids separated by commas, or patterns of must-rules (`*` matches any text).
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub require: Vec<String>,
    /// Accept the failures that the run accepted: its waivers file.
    #[arg(long, value_name = "FILE")]
    pub waivers: Option<PathBuf>,
    #[command(flatten)]
    pub specs: Specs,
}

#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Records of the implementations, from `run --report json=FILE`.
    #[arg(required = true, value_name = "RUN.json")]
    pub runs: Vec<PathBuf>,
    /// Write index.html and matrix.md to this folder.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    #[command(flatten)]
    pub specs: Specs,
}

#[derive(Args, Debug)]
pub struct HistoryArgs {
    /// Folder of `run --history`.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Show the results of the last N runs.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub last: u16,
    /// Set the output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
}

#[derive(Args, Debug)]
pub struct MergeArgs {
    /// Records of the parts.
    #[arg(required = true, value_name = "RUN.json")]
    pub runs: Vec<PathBuf>,
    /// Exit 1 if a service or feature that this file claims was not judged.
    #[arg(long, value_name = "FILE")]
    pub claims: Option<PathBuf>,
    #[command(flatten)]
    pub demands: DemandArgs,
    #[command(flatten)]
    pub specs: Specs,
    #[command(flatten)]
    pub output: OutputArgs,
}
