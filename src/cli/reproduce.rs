//! `reproduce`: a finding of a stored run as the shortest chain of requests that asks the same.

use super::args::RunArgs;
use super::config;
use super::{Done, Exit, Failure, note, say, stored};
use clap::{Args, ValueEnum};
use conformant_base::redact::Redactor;
use conformant_base::text;
use conformant_engine::sessions::Offline;
use conformant_engine::{Planned, Settings, Target};
use conformant_explore::{Chain, ReproduceError, finding_of};
use conformant_fixtures::export::{About, ChainFormat, Scope, chain};
use conformant_judge::{Loaded, Need, Shell};
use conformant_record::{Finding, Level, REFERENCE, RunRecord};
use conformant_rulebook::{Origin, Rulebook};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// `conformant reproduce`.
#[derive(Args, Debug)]
pub struct ReproduceArgs {
    /// The record of a run: what `run --report json=FILE` wrote.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The finding: its number in the record from 1 on, or a rule for the first one of it.
    #[arg(value_name = "FINDING")]
    finding: String,
    /// How it is written.
    #[arg(long, value_enum, default_value_t)]
    format: ReproduceFormat,
    /// Configuration file; otherwise conformant.yaml from here up to the repository's root.
    #[arg(long, value_name = "FILE", env = "CONFORMANT_CONFIG")]
    config: Option<PathBuf>,
    /// Where the chain goes, where that is not where the run went.
    #[arg(long = "target", value_name = "SERVICE=URL")]
    targets: Vec<String>,
    /// Control plane: the hook NAME is `POST URL/NAME` with a JSON body.
    #[arg(long, value_name = "URL", env = "CONFORMANT_HOOKS")]
    hooks: Option<String>,
    /// Folder with the run's own scenarios.
    #[arg(long, value_name = "DIR")]
    scenarios: Option<PathBuf>,
    /// The rulebook.
    #[command(flatten)]
    specs: super::args::Specs,
}

/// What a chain is written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ReproduceFormat {
    /// A script for bash with curl and jq.
    #[default]
    Sh,
    /// A file for hurl.
    Hurl,
    /// A scenario that `run --scenarios DIR` plays and judges.
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
        count => format!(", {count} of the story left out"),
    };
    let format = match args.format {
        ReproduceFormat::Scenario => {
            let (file, text) = found.file(&rulebook, finding);
            say(&text::escape(&text));
            note(&format!(
                "{requests} steps{left}; as DIR/{file} it is played by: conformant run --scenarios DIR --filter '{}'",
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
        // Whether the hooks are those of the reference is asked of them; nothing else is asked for here.
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
        .map_err(|e| Failure::Usage(format!("failed to {e}; --format scenario can say it")))?;
    say(&Redactor::new(&config.secrets).redact(&text::escape(&script)));
    note(&format!("{requests} steps{left}"));
    Ok(Exit::Conformant)
}

/// What the finding is about, without what the target answered.
fn comment(rulebook: &Rulebook, finding: &Finding) -> Vec<String> {
    let rule = rulebook.rules.get(&finding.rule);
    let place = match finding.pointer.as_str() {
        "" => String::new(),
        pointer => format!(", at {pointer}"),
    };
    let mut lines = vec![format!(
        "{} is broken by the answer of the last request, {}/{}{place}.",
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

/// The kind of what came back, where the last answer alone tells whether the rule holds.
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
            Loaded::of(rule).is_some_and(|predicate| predicate.needs() == [Need::Document])
        }
    };
    let operation = rulebook.operation(&finding.service, &finding.operation)?;
    operation.response.as_deref().filter(|_| is_of_one)
}

/// Where the run's requests went, and as whom: as configured now where that is the same place.
fn targets(record: &RunRecord, settings: &Settings) -> BTreeMap<String, Target> {
    let mut targets = BTreeMap::new();
    for (service, url) in &record.targets {
        let is_here =
            |target: &&Target| target.url.trim_end_matches('/') == url.trim_end_matches('/');
        let target = match settings.targets.get(service).filter(is_here) {
            _ if url == REFERENCE => Target::of_reference(service, ""),
            Some(target) => target.clone(),
            None => Target {
                shell: Arc::new(unconfigured(service)),
                ..Target::foreign(&settings.index, service, url)
            },
        };
        targets.insert(service.clone(), target);
    }
    targets
}

/// Credentials by the names that the environment has for them where no file says more.
fn unconfigured(service: &str) -> Shell {
    let name = |key: &str| format!("${{CONFORMANT_{}_{key}}}", service.to_uppercase());
    let header = |(field, _): (String, String)| (field, name("API_KEY"));
    let reference = Target::of_reference(service, "");
    Shell {
        basic: reference
            .basic
            .map(|_| (name("USERNAME"), name("PASSWORD"))),
        account: reference
            .account
            .map(|_| (name("ACCOUNT_SID"), name("AUTH_TOKEN"))),
        headers: reference.headers.into_iter().map(header).collect(),
        ..Shell::default()
    }
}
