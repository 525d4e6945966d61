//! `reproduce`: writes a finding of a stored run as the shortest chain of requests that leads to it.

use super::args::RunArgs;
use super::config;
use super::{Done, Exit, Failure, note, print, stored};
use clap::{Args, ValueEnum};
use conformant_base::redact::Redactor;
use conformant_base::text;
use conformant_engine::sessions::Offline;
use conformant_engine::{Planned, Settings, Target};
use conformant_explore::{Chain, ReproduceError, finding_of};
use conformant_fixtures::export::{About, ChainFormat, Scope, chain};
use conformant_judge::{Need, predicate_of};
use conformant_record::{Finding, Level, REFERENCE, RunRecord};
use conformant_rulebook::{Origin, Rulebook};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// `conformant reproduce`.
#[derive(Args, Debug)]
pub struct ReproduceArgs {
    /// Record of a run, from `run --report json=FILE`.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Select a finding: its number in the record, from 1, or a rule for its first finding.
    #[arg(value_name = "FINDING")]
    finding: String,
    /// Set the output format.
    #[arg(long, value_enum, default_value_t)]
    format: ReproduceFormat,
    /// Read this configuration [default: the nearest conformant.yaml, up to the root of the repository].
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    config: Option<PathBuf>,
    /// Send the chain to this base URL instead of the one of the run.
    #[arg(long = "target", value_name = "SERVICE=URL")]
    targets: Vec<String>,
    /// Call hooks below this URL: hook NAME is `POST URL/NAME` with a JSON body.
    #[arg(long, value_name = "URL", env = "CONFORMANT_HOOKS")]
    hooks: Option<String>,
    /// Add the scenarios in this folder, as the run did.
    #[arg(long, value_name = "DIR")]
    scenarios: Option<PathBuf>,
    /// The rulebook.
    #[command(flatten)]
    specs: super::args::Specs,
}

/// Output formats of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ReproduceFormat {
    /// Bash script with curl and jq.
    #[default]
    Sh,
    /// Hurl file.
    Hurl,
    /// Scenario for `run --scenarios DIR`.
    Scenario,
}

impl From<ReproduceError> for Failure {
    fn from(error: ReproduceError) -> Self {
        Self::Usage(error.to_string())
    }
}

pub(super) fn reproduce(args: &ReproduceArgs) -> Done {
    let record = stored::read(&args.run)?;
    let finding = finding_of(&record, &args.finding)?;
    let scenarios: Vec<PathBuf> = args.scenarios.iter().cloned().collect();
    let rulebook = conformant_judge::load::load(args.specs.specs.as_deref(), &scenarios)
        .map_err(Failure::Problems)?;
    let none = (BTreeSet::new(), BTreeSet::new());
    let worlds = Offline::in_process(0, none.0, none.1, Target::all_of_reference());
    let found = Chain::of(finding, &rulebook, &worlds)?;
    let requests = found.scenario.steps.len();
    let left = match found.left_out {
        0 => String::new(),
        count => format!(", {count} of the scenario left out"),
    };
    let format = match args.format {
        ReproduceFormat::Scenario => {
            let (file, text) = found.file(&rulebook, finding);
            print(&text::escape(&text));
            note(&format!(
                "{requests} steps{left}; save it as DIR/{file} and run: conformant run --scenarios DIR --filter '{}'",
                found.scenario.id
            ));
            return Ok(Exit::Conformant);
        }
        ReproduceFormat::Sh => ChainFormat::Sh,
        ReproduceFormat::Hurl => ChainFormat::Hurl,
    };
    let config = config::read(&RunArgs {
        config: args.config.clone(),
        targets: args.targets.clone(),
        hooks: args.hooks.clone(),
        specs: args.specs.clone(),
        // Ask the hooks whether they are those of the reference; nothing else is sent.
        dry_run: args.hooks.is_none(),
        ..RunArgs::default()
    })?;
    let targets = match args.targets.is_empty() {
        true => targets(&record, &config.settings),
        false => config.settings.targets,
    };
    let scope = Scope {
        rulebook: &rulebook,
        specs: args.specs.specs.as_deref(),
        services: &[],
        seed: record.seed,
    };
    let comment = comment(&rulebook, finding);
    let planned = Planned {
        service: found.service,
        scenario: found.scenario,
    };
    let about = About {
        targets: &targets,
        comment: &comment,
        judged_as: kind(&rulebook, finding).map(|kind| (kind, finding.level != Level::Must)),
    };
    let script = chain(scope, &planned, about, format)
        .map_err(|e| Failure::Usage(format!("failed to {e}; use --format scenario")))?;
    print(&Redactor::new(&config.secrets).redact(&text::escape(&script)));
    note(&format!("{requests} steps{left}"));
    Ok(Exit::Conformant)
}

/// The claim of the finding, without what the target returned.
fn comment(rulebook: &Rulebook, finding: &Finding) -> Vec<String> {
    let rule = rulebook.rules.get(&finding.rule);
    let place = match finding.pointer.as_str() {
        "" => String::new(),
        pointer => format!(", at {pointer}"),
    };
    let mut lines = vec![format!(
        "{} is broken by the response to the last request, {}/{}{place}.",
        finding.rule, finding.service, finding.operation
    )];
    if let Some(rule) = rule {
        lines.push(rule.says.clone());
        lines.push(rule.source.to_string());
    }
    lines
        .iter()
        .map(|line| text::escape_line(line).into_owned())
        .collect()
}

/// The type of the last response, if that response alone decides the rule.
fn kind<'r>(rulebook: &'r Rulebook, finding: &Finding) -> Option<&'r str> {
    let rule = rulebook.rules.get(&finding.rule)?;
    let is_of_one = match &rule.origin {
        Origin::Property { .. } | Origin::NoOtherFields { .. } => true,
        Origin::Operation { .. }
        | Origin::Parameter { .. }
        | Origin::Credentials { .. }
        | Origin::ListKey { .. }
        | Origin::ListWalk { .. }
        | Origin::Written(_)
        | Origin::Either => {
            predicate_of(rule).is_some_and(|predicate| predicate.needs() == [Need::Document])
        }
    };
    let operation = rulebook.operation(&finding.service, &finding.operation)?;
    operation.response.as_deref().filter(|_| is_of_one)
}

/// Base URLs and credentials of the run; those of the configuration if it names the same place.
fn targets(record: &RunRecord, settings: &Settings) -> BTreeMap<String, Target> {
    let mut targets = BTreeMap::new();
    for (service, url) in &record.targets {
        let is_here =
            |target: &&Target| target.url.trim_end_matches('/') == url.trim_end_matches('/');
        let target = match settings.targets.get(service).filter(is_here) {
            _ if url == REFERENCE => Target::of_reference(service, ""),
            Some(target) => target.clone(),
            None => Target {
                shell: Arc::new(Target::unconfigured(service)),
                ..Target::foreign(&settings.index, service, url)
            },
        };
        targets.insert(service.clone(), target);
    }
    targets
}
