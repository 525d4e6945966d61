//! `reproduce`: writes a finding of a stored run as the shortest chain of requests that leads to it.

use super::args::TargetArgs;
use super::config::{self, Reading};
use super::{Done, Exit, Failure, load_with, note, print, stored};
use clap::{Args, ValueEnum};
use conformant_base::redact::Redactor;
use conformant_base::text;
use conformant_engine::sessions::{Offline, hooks_of_reference};
use conformant_engine::{Planned, Settings, Target};
use conformant_explore::{Chain, ReproduceError, findings_of};
use conformant_fixtures::export::{
    About, ChainFormat, Decision, ExportError, Failed, Original, ScenarioFile, Scope, TARGETS,
    chain, scenario_script,
};
use conformant_record::{Finding, REFERENCE, RunRecord, title, with_types, without_names};
use conformant_report::findings_of_defect;
use conformant_rulebook::Rulebook;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
#[command(mut_arg("targets", |arg| arg.help("Send the chain to this base URL instead of the one of the run")))]
pub struct ReproduceArgs {
    /// Record of a run, from `run --report json=FILE`.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Select a defect: its number on the console and in the reports, or a rule for its first finding.
    #[arg(value_name = "DEFECT")]
    finding: String,
    /// Set the output format.
    #[arg(long, value_enum, default_value_t = ReproduceFormat::Sh)]
    format: ReproduceFormat,
    #[command(flatten)]
    on: TargetArgs,
    /// Add the scenarios in this folder, as the run did.
    #[arg(long, value_name = "DIR")]
    scenarios: Option<PathBuf>,
}

/// Output formats of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReproduceFormat {
    /// Bash script with curl and jq.
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

/// Why a chain was not written.
#[derive(Debug)]
enum Unwritten {
    /// This format cannot express it; the format `scenario` can.
    Inexpressible(ExportError),
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Unwritten {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

pub(super) fn reproduce(args: &ReproduceArgs) -> Done {
    /// The maximum number of scenarios that are tried; the first one that the format can express is taken.
    const TRIED_MAX: usize = 30;
    let record = stored::read(&args.run)?;
    let args = &with_files_of_run(args, &record);
    let mut findings = selected(&record, &args.finding)?;
    let mut seen = BTreeSet::new();
    let first = findings.first().map(title).unwrap_or_default();
    // Those that show the same as the title of the defect come first.
    findings.sort_by_key(|finding| title(finding) != first);
    findings.retain(|finding| seen.insert(finding.scenario.clone()));
    let folder: Vec<PathBuf> = args.scenarios.iter().cloned().collect();
    let rulebook = load_with(&args.on.specs, &folder)?;
    let worlds = Offline::faultless(0);
    let written = Written {
        args,
        record: &record,
        rulebook: &rulebook,
        worlds: &worlds,
    };
    let mut failure = None;
    let mut inexpressible = None;
    for finding in findings.iter().take(TRIED_MAX) {
        match written.of(finding, args.format) {
            Ok(chain) => {
                let shown = title(finding);
                if shown != first {
                    note(&format!(
                        "another finding of the same rule, because requests cannot express the first one: {}",
                        text::escape_line(&shown)
                    ));
                }
                return Ok(chain.print());
            }
            Err(Unwritten::Inexpressible(error)) => {
                inexpressible.get_or_insert((finding, error));
            }
            Err(Unwritten::Failed(error)) => {
                failure.get_or_insert(error);
            }
        }
    }
    let Some((finding, error)) = inexpressible else {
        return Err(failure.unwrap_or_else(|| ReproduceError::Nothing.into()));
    };
    if args.format == ReproduceFormat::Sh {
        return Ok(written.script_of_scenario(finding, &error)?.print());
    }
    let found = written.chain(finding)?;
    Err(Failure::Usage(format!(
        "failed to {error}; a scenario can:\n{}",
        written.again(&found, finding, &written.run_command())
    )))
}

/// The arguments with the scenarios, rulebook and configuration of the run where none are given and these are there.
fn with_files_of_run(args: &ReproduceArgs, record: &RunRecord) -> ReproduceArgs {
    let of_run = |flag: &str| flag_of_run(record, flag).map(PathBuf::from);
    let folder = |flag: &str| of_run(flag).filter(|path| path.is_dir());
    let mut args = args.clone();
    args.scenarios = args.scenarios.or_else(|| folder("--scenarios"));
    args.on.specs.specs = args.on.specs.specs.or_else(|| folder("--specs"));
    let config = || of_run("--config").filter(|path| path.is_file());
    args.on.config = args.on.config.or_else(config);
    args
}

/// The value of a flag of the run.
fn flag_of_run(record: &RunRecord, name: &str) -> Option<String> {
    let words = text::shell_words(&record.invocation);
    let mut flags = conformant_report::flags(&words).into_iter();
    let (_, words) = flags.find(|(flag, _)| *flag == name)?;
    let joined = words[0].split_once('=').map(|(_, value)| value);
    joined
        .or(words.get(1).map(String::as_str))
        .map(str::to_owned)
}

/// The text of a chain, and a line about it.
struct Chained {
    text: String,
    about: String,
}

impl Chained {
    fn print(&self) -> Exit {
        print(&self.text);
        note(&self.about);
        Exit::Conformant
    }
}

/// What the text of a chain is made from.
struct Written<'a> {
    args: &'a ReproduceArgs,
    record: &'a RunRecord,
    rulebook: &'a Rulebook,
    worlds: &'a Offline<'a>,
}

impl<'a> Written<'a> {
    fn chain(&self, finding: &Finding) -> Result<Chain<'a>, Failure> {
        Chain::of(finding, self.rulebook, self.worlds).map_err(|error| {
            let folder = flag_of_run(self.record, "--scenarios");
            match (&error, folder) {
                (ReproduceError::Gone { .. }, Some(folder)) => Failure::Usage(format!(
                    "{error}; the run had --scenarios {}",
                    text::shell_quoted(&folder)
                )),
                (_, _) => error.into(),
            }
        })
    }

    fn scenario(&self, finding: &Finding) -> Result<Chained, Failure> {
        let found = self.chain(finding)?;
        let (file, text) = found.file(self.rulebook, finding);
        let about = format!(
            "{}; save it as DIR/{file} and run: {} --scenarios DIR --filter {}; if that passes, the whole scenario decides: --filter {}",
            steps_of(&found),
            self.run_command(),
            text::shell_quoted(&found.scenario.id),
            text::shell_quoted(&finding.scenario)
        );
        Ok(Chained { text, about })
    }

    /// The commands that judge the chain as a scenario, one a line.
    fn again(&self, found: &Chain<'_>, finding: &Finding, run: &str) -> String {
        const FOLDER: &str = "reproduced";
        let (file, _) = found.file(self.rulebook, finding);
        let args = self.args;
        let path = format!("{FOLDER}/{file}");
        let folder = path.rsplit_once('/').map_or(FOLDER, |(folder, _)| folder);
        let quoted = |path: &PathBuf| text::shell_quoted(&path.display().to_string()).into_owned();
        // Those of the run are found in its record.
        let given = [
            ("--specs", &args.on.specs.specs),
            ("--scenarios", &args.scenarios),
        ];
        let given = given
            .into_iter()
            .filter_map(|(flag, folder)| Some((flag, folder.as_ref()?)))
            .filter(|(flag, folder)| {
                flag_of_run(self.record, flag).map(PathBuf::from).as_ref() != Some(*folder)
            });
        let given: String = given
            .map(|(flag, folder)| format!(" {flag} {}", quoted(folder)))
            .collect();
        format!(
            "  mkdir -p {folder} && conformant reproduce {} {}{given} --format scenario >{path}\n  {} --scenarios {FOLDER} --filter '*/reproduced/*'",
            quoted(&args.run),
            text::shell_quoted(&args.finding),
            run
        )
    }

    /// The command `conformant run` with the targets, hooks and settings of the stored run; arguments replace them.
    fn run_command(&self) -> String {
        let words = self.run_words();
        let words: Vec<_> = words.iter().map(|word| text::shell_quoted(word)).collect();
        words.join(" ")
    }

    /// The flags of that command apart from those that a script states itself: target and hooks.
    fn flags_of_script(&self) -> Vec<String> {
        let stated = ["--target", "--hooks", "--reference"];
        let words = self.run_words();
        let flags = conformant_report::flags(&words).into_iter();
        let flags = flags.filter(|(flag, _)| !stated.contains(flag));
        flags.flat_map(|(_, words)| words.to_vec()).collect()
    }

    /// Its words.
    fn run_words(&self) -> Vec<String> {
        let args = self.args;
        let shown = |path: &Option<PathBuf>| path.iter().map(|p| p.display().to_string()).collect();
        let given: [(&str, Vec<String>); 4] = [
            ("--specs", shown(&args.on.specs.specs)),
            ("--config", shown(&args.on.config)),
            ("--target", args.on.targets.clone()),
            ("--hooks", args.on.hooks.iter().cloned().collect()),
        ];
        let is_live = self.record.is_live() || !args.on.targets.is_empty();
        let mut words = vec!["conformant".to_owned(), "run".to_owned()];
        words.extend((!is_live).then(|| "--reference".to_owned()));
        let of_run = text::shell_words(&self.record.invocation);
        for (flag, of_run) in conformant_report::flags(&of_run) {
            let is_replaced = given
                .iter()
                .find(|(name, _)| *name == flag)
                .map(|(_, values)| !values.is_empty());
            if is_replaced.unwrap_or(flag != "--strict") {
                continue;
            }
            words.extend_from_slice(of_run);
        }
        for (flag, values) in given {
            let values = values.into_iter();
            words.extend(values.flat_map(|value| [flag.to_owned(), value]));
        }
        words
    }

    /// A script that has `conformant` run the scenario, for what requests alone cannot express.
    fn script_of_scenario(&self, finding: &Finding, why: &ExportError) -> Result<Chained, Failure> {
        let found = self.chain(finding)?;
        let (path, text) = found.file(self.rulebook, finding);
        let about = format!("{}; conformant runs them as a scenario", steps_of(&found));
        let flags = self.flags_of_script();
        let file = ScenarioFile {
            path: &path,
            text: &text,
            flags: &flags,
            why,
        };
        self.written(found, finding, |planned, about| {
            Ok(scenario_script(planned, file, about))
        })
        .map(|text| Chained { text, about })
    }

    fn of(&self, finding: &Finding, format: ReproduceFormat) -> Result<Chained, Unwritten> {
        let format = match format {
            ReproduceFormat::Scenario => return Ok(self.scenario(finding)?),
            ReproduceFormat::Sh => ChainFormat::Sh,
            ReproduceFormat::Hurl => ChainFormat::Hurl,
        };
        let found = self.chain(finding)?;
        let about = steps_of(&found);
        let scope = Scope {
            rulebook: self.rulebook,
            specs: self.args.on.specs.specs.as_deref(),
            services: &[],
            seed: self.record.seed,
        };
        let text = self.written(found, finding, |planned, about| {
            chain(scope, planned, about, format).map_err(Unwritten::Inexpressible)
        })?;
        Ok(Chained { text, about })
    }

    /// The text that `write` makes of a chain and its context.
    fn written<E: From<Failure>>(
        &self,
        found: Chain<'_>,
        finding: &Finding,
        write: impl FnOnce(&Planned<'_>, About<'_>) -> Result<String, E>,
    ) -> Result<String, E> {
        let (args, record, rulebook) = (self.args, self.record, self.rulebook);
        let reading = Reading {
            // Ask the hooks whether they are those of the reference; nothing else is sent.
            is_dry: args.on.hooks.is_none(),
            is_of_stored_run: true,
            ..Reading::default()
        };
        let config = config::read(&args.on, reading)?;
        let hooks = hooks(args, record);
        let targets = match args.on.targets.is_empty() {
            true => targets(record, &config.settings, hooks.as_deref()),
            false => config.settings.targets,
        };
        let comment = comment(rulebook, finding);
        let flags_of_script = self.flags_of_script();
        let flags = flags_of_script.iter().map(|word| text::shell_quoted(word));
        let run = [Cow::Borrowed("conformant run"), Cow::Borrowed(TARGETS)];
        let run: Vec<_> = run.into_iter().chain(flags).collect();
        let again = self.again(&found, finding, &run.join(" "));
        let mut flags_of_original = flags_of_script.clone();
        if !flags_of_original
            .iter()
            .any(|flag| flag.starts_with("--seed"))
        {
            flags_of_original.extend(["--seed".to_owned(), record.seed.to_string()]);
        }
        let services = found.services;
        let planned = Planned {
            service: found.service,
            scenario: found.scenario,
        };
        let about = About {
            targets: &targets,
            comment: &comment,
            decision: &decision(rulebook, finding),
            failed: Failed {
                service: &finding.service,
                operation: &finding.operation,
                rule: &finding.rule,
            },
            hooks: hooks.as_deref(),
            again: &again,
            original: Original {
                scenario: &finding.scenario,
                services: &services,
                flags: &flags_of_original,
            },
        };
        let script = write(&planned, about)?;
        // Texts in it are quoted so that they are harmless; escaping would change what is sent.
        Ok(Redactor::new(&config.secrets).redact(&script).into_owned())
    }
}

/// `12 steps, 3 of the scenario left out`.
fn steps_of(found: &Chain) -> String {
    let steps = text::count(found.scenario.steps.len(), "step");
    match found.left_out {
        0 => steps,
        count => format!("{steps}, {count} of the scenario left out"),
    }
}

/// The findings of a defect by its number, or those of a rule.
fn selected(record: &RunRecord, wanted: &str) -> Result<Vec<Finding>, Failure> {
    let Ok(number) = wanted.parse::<usize>() else {
        return Ok(findings_of(record, wanted)?);
    };
    findings_of_defect(record, number).map_err(|count| {
        let error = match count {
            0 => ReproduceError::Nothing,
            count => ReproduceError::Beyond { number, count },
        };
        Failure::Usage(format!(
            "{error}; it is the record of: {}",
            record.invocation
        ))
    })
}

/// The claim of the finding with the expected and the actual value, without identifiers of the target.
fn comment(rulebook: &Rulebook, finding: &Finding) -> Vec<String> {
    let rule = rulebook.rules.get(&finding.rule);
    let mut lines = vec![title(finding)];
    if let Some(rule) = rule {
        lines.push(format!("{} ({}): {}", finding.rule, rule.source, rule.says));
    }
    let (expected, actual) = (with_types(&finding.expected), with_types(&finding.actual));
    let another = if expected == actual { "another " } else { "" };
    lines.push(format!("Expected: {expected}"));
    lines.push(format!("Actual: {another}{actual}"));
    lines
        .iter()
        .map(|line| text::escape_line(line).into_owned())
        .collect()
}

/// How a script decides whether the defect shows: by itself where values of one response suffice that are the same in
/// each run, otherwise by the rulebook.
fn decision(rulebook: &Rulebook, finding: &Finding) -> Decision {
    let pointer = finding.pointer.clone();
    let is_named = |segment: &str| !segment.bytes().all(|b| b.is_ascii_digit());
    let is_stable = !pointer.is_empty() && pointer.split('/').skip(1).all(is_named);
    let is_of_response = finding.exchange > 0 && is_stable;
    let kind = || {
        let operation = rulebook.operation(&finding.service, &finding.operation)?;
        let is_read = finding.actual.starts_with("status ");
        operation.response.clone().filter(|_| !is_read)
    };
    // A rule about a hook or a deletion states what it expects afterwards.
    let expected = finding.expected.split(" after ").next().unwrap_or_default();
    let due = serde_json::from_str::<Value>(expected).ok();
    // The finding is about one member of the value at its pointer.
    let due = due.filter(|_| finding.kind != "not-kept");
    let is_same_each_time = without_names(&finding.expected) == finding.expected;
    match (finding.kind.as_str(), due) {
        ("refused", _) => Decision::Accepted {
            is_due: true,
            kind: kind(),
        },
        ("accepted", _) => Decision::Accepted {
            is_due: false,
            kind: None,
        },
        ("missing-field", _) if is_of_response => Decision::Member {
            pointer,
            is_due: true,
        },
        ("extra-field", _) if is_of_response => Decision::Member {
            pointer,
            is_due: false,
        },
        (_, Some(due)) if is_of_response && is_same_each_time => Decision::Value { pointer, due },
        _ => Decision::Rule {
            id: finding.rule.clone(),
        },
    }
}

/// The base URL of the hooks of the run.
fn hooks(args: &ReproduceArgs, record: &RunRecord) -> Option<String> {
    let given = args.on.hooks.clone();
    given.or_else(|| flag_of_run(record, "--hooks"))
}

/// Base URLs, credentials and values of the run: those of the configuration if it names the same place, else those of the
/// reference if the hooks of the run are its hooks.
fn targets(
    record: &RunRecord,
    settings: &Settings,
    hooks: Option<&str>,
) -> BTreeMap<String, Target> {
    let mut targets = BTreeMap::new();
    let is_reference = hooks.is_some_and(hooks_of_reference);
    for (service, url) in &record.targets {
        let is_here =
            |target: &&Target| target.url.trim_end_matches('/') == url.trim_end_matches('/');
        let target = match settings.targets.get(service).filter(is_here) {
            _ if url == REFERENCE => Target::of_reference(service, ""),
            // The hooks of the reference gave the run its credentials.
            Some(target) if is_reference && !target.has_credentials() => Target {
                public_url: target.public_url.clone(),
                ..Target::of_reference(service, url)
            },
            Some(target) => target.clone(),
            None if is_reference => Target::of_reference(service, url),
            None => Target::unconfigured(&settings.index, service, url),
        };
        targets.insert(service.clone(), target);
    }
    targets
}
