//! Command line: arguments, environment, terminal, exit codes. Only this module prints and exits.

mod archives;
mod args;
mod baseline;
mod broken;
mod build;
mod check;
mod claims;
mod completing;
mod completions;
mod config;
mod diff;
mod doctor;
mod earlier;
mod events;
mod explain;
mod explore;
mod fixtures;
mod generate;
mod glossary;
mod history;
mod import;
mod init;
mod invocation;
mod list;
mod matrix;
mod memory;
mod output;
mod preview;
mod proxy;
mod quoting;
mod repeat;
mod reproduce;
mod revision;
mod run;
mod schema;
mod selftest;
mod serve;
mod signals;
mod specs;
mod stored;
mod token;
mod trace;
mod traffic;
mod verify;
mod worlds;

pub use args::Cli;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use args::Command;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use conformant_base::files::{self, FileError};
use conformant_base::parallel::processors;
use conformant_base::text;
use conformant_engine::Conclusion;
use conformant_reference::{FEEDS, SERVICES};
use conformant_report::{Destination, Format, Report, ReportError};
use conformant_rulebook::Rulebook;
use conformant_rulebook::service::ServiceIndex;
use jiff::civil::Date;
use serde::de::DeserializeOwned;
use signals::Signals;
use std::io::{self, IsTerminal, Write};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Verdict of a command; the number is the exit code of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Nothing failed.
    Conformant = 0,
    /// Failing findings.
    Failed = 1,
    /// Usage, configuration or rulebook error.
    Usage = 2,
    /// The run ended early, a target was unreachable, or an internal error.
    Trouble = 3,
    /// Nothing was judged, or less than required.
    NothingJudged = 4,
    /// Ended by SIGINT.
    Interrupted = 130,
    /// Ended by SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// Whether something that was judged failed.
    fn failed_if(is_failed: bool) -> Self {
        match is_failed {
            true => Self::Failed,
            false => Self::Conformant,
        }
    }
}

impl From<Conclusion> for Exit {
    fn from(conclusion: Conclusion) -> Self {
        match conclusion {
            Conclusion::Conformant => Self::Conformant,
            Conclusion::Failed => Self::Failed,
            Conclusion::InfrastructureError => Self::Trouble,
            Conclusion::NothingJudged => Self::NothingJudged,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Error in arguments, configuration, rulebook or scenarios.
    #[error("{0}")]
    Usage(String),
    /// Error of the system, of the network or in this program.
    #[error("{0}")]
    Trouble(String),
    /// Problems with their places.
    #[error("{} found", conformant_base::text::count(.0.len(), "problem"))]
    Problems(conformant_rulebook::Problems),
}

impl Failure {
    /// A file or folder that cannot be written.
    fn unwritten(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::Trouble(format!("failed to write {}: {error}", path.display()))
    }

    /// All problems of the arguments or of a file; none is not a failure.
    fn unless_empty(problems: &[String]) -> Result<(), Self> {
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Self::Usage(problems.join("\nerror: "))),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) | Self::Problems(_) => Exit::Usage,
            Self::Trouble(_) => Exit::Trouble,
        }
    }
}

pub(crate) type Done = Result<Exit, Failure>;

/// Parses the arguments and runs the command.
pub fn main() -> ExitCode {
    // Completion scripts run this program for candidates; it then exits here.
    clap_complete::CompleteEnv::with_factory(Cli::command)
        .var(completing::VARIABLE)
        .complete();
    let done = Signals::begin().and_then(|()| done());
    let exit = match done {
        Ok(exit) => exit,
        Err(failure) => {
            complain(&failure);
            failure.exit()
        }
    };
    match (exit, output::Out::failure()) {
        (Exit::Interrupted | Exit::Terminated, _) | (_, None) => exit.into(),
        (_, Some(why)) => {
            note(&format!("error: failed to write to standard output: {why}"));
            Exit::Trouble.into()
        }
    }
}

fn done() -> Done {
    if let Some(script) = config::environment("CONFORMANT_FAILPOINTS") {
        conformant_base::failpoint::set_script(&script);
    }
    if std::env::args_os().len() <= 1 {
        print(args::GUIDE);
        return Ok(Exit::Conformant);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            refuse(error);
            return Ok(Exit::Usage);
        }
        Err(shown) => {
            print(&help(&shown));
            return Ok(Exit::Conformant);
        }
    };
    match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Init(args) => init::init(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Baseline(args) => baseline::baseline(&args),
        Command::Serve(args) => serve::serve(&args),
        Command::Explore(args) => explore::explore(&args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::Selftest(args) => selftest::selftest(&args),
        Command::Check(args) => check::check(&args),
        Command::Proxy(args) => proxy::proxy(&args),
        Command::Fixtures(command) => fixtures::fixtures(&command),
        Command::Token(args) => token::token(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::List(args) => list::list(&args),
        Command::Docs { port: _ } => Err(Failure::Usage(
            "`docs` was removed: read docs/src/SUMMARY.md in the source tree, or run `mdbook serve docs`".into(),
        )),
        Command::Specs(command) => specs::specs(&command),
        Command::Trace(args) => trace::trace(&args),
        Command::Diff(args) => diff::diff(&args),
        Command::Compare(args) => stored::compare(&args),
        Command::Judge(args) => stored::judge(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Merge(args) => stored::merge(&args),
        Command::Report(args) => matrix::report(&args),
        Command::History(args) => history::history(&args),
        Command::Events(args) => events::events(&args),
        Command::Schema(args) => schema::schema(&args),
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => completions::man(&args),
    }
}

/// Prints help and version, with colors on terminals that support them.
fn help(shown: &clap::Error) -> String {
    if std::io::stdout().is_terminal() && config::environment("NO_COLOR").is_none() {
        shown.render().ansi().to_string()
    } else {
        shown.render().to_string()
    }
}

/// Loads the rulebook from a folder or the embedded one.
pub(crate) fn load(specs: &args::Specs) -> Result<Rulebook, Failure> {
    load_with(specs, &[])
}

pub(crate) fn load_with(specs: &args::Specs, scenarios: &[PathBuf]) -> Result<Rulebook, Failure> {
    let folder = specs.specs.as_deref();
    let rulebook = conformant_judge::load::load(folder, scenarios).map_err(Failure::Problems)?;
    match folder.filter(|_| rulebook.services.is_empty()) {
        None => Ok(rulebook),
        Some(folder) => Err(without_services(folder)),
    }
}

/// The services of a rulebook, without its rules.
pub(crate) fn services_of(specs: Option<&Path>) -> Result<Arc<ServiceIndex>, Failure> {
    let index = ServiceIndex::load(specs).map_err(Failure::Problems)?;
    match specs.filter(|_| index.iter().next().is_none()) {
        None => Ok(index),
        Some(folder) => Err(without_services(folder)),
    }
}

fn without_services(folder: &Path) -> Failure {
    Failure::Usage(format!(
        "{} has no rulebook: expected a folder for each service; `conformant specs export DIR` writes the embedded one",
        folder.display()
    ))
}

/// Whether the reference implements a service.
pub(crate) fn is_implemented(service: &str) -> bool {
    SERVICES.contains(&service) || FEEDS.contains(&service)
}

/// The services that the reference implements: all of them, or those selected. An error if one of them is missing, or
/// if the reference implements nothing of the rulebook.
pub(crate) fn of_reference(
    rulebook: &Rulebook,
    selected: &[String],
    what: &str,
) -> Result<Vec<String>, Failure> {
    let targets = rulebook.index.targets();
    let mut missing = selected.iter().map(String::as_str);
    let missing = missing.find(|name| !is_implemented(name));
    let missing = missing.or_else(|| {
        let is_any = targets.iter().any(|name| is_implemented(name));
        targets.first().copied().filter(|_| !is_any)
    });
    if let Some(service) = missing {
        return Err(Failure::Usage(format!(
            "{what} needs the reference, which does not implement {service}"
        )));
    }
    let all = rulebook.index.iter().map(|(name, _)| name.to_owned());
    Ok(match selected {
        [] => all.filter(|name| is_implemented(name)).collect(),
        _ => selected.to_vec(),
    })
}

/// The message about an unknown operation, with a similar one.
pub(crate) fn no_operation(rulebook: &Rulebook, id: &str) -> String {
    let services = rulebook.services.values();
    let operations = services.flat_map(|s| s.operations.values());
    let known: Vec<String> = operations
        .map(|o| format!("{}/{}", o.service, o.id))
        .collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let hint = hint(id, &known);
    format!("no operation is named {id}{hint} (`conformant list operations` shows them)")
}

/// Names the word that is most similar to an unknown one, if any is.
pub(crate) fn hint(word: &str, known: &[&str]) -> String {
    let near = text::did_you_mean(word, known);
    near.map_or_else(String::new, |near| format!("; did you mean {near}?"))
}

/// The same for commands that only print from it: the embedded rulebook is not checked again, and is never freed,
/// because that takes as long as reading it.
pub(crate) fn load_to_tell(
    specs: &args::Specs,
    with_scenarios: bool,
) -> Result<ManuallyDrop<Rulebook>, Failure> {
    match &specs.specs {
        Some(_) => load(specs),
        None => {
            conformant_judge::load::embedded_unchecked(with_scenarios).map_err(Failure::Problems)
        }
    }
    .map(ManuallyDrop::new)
}

/// Reads a file written by a person: configuration, waivers, declarations.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    Ok(files::read(path, files::WRITTEN_BYTES_MAX)?)
}

/// Reads such a file as YAML.
pub(crate) fn parse_file<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let shown = path.display().to_string();
    conformant_rulebook::parse_file(&shown, &read_file(path)?).map_err(Failure::Problems)
}

/// Writes a file, with its folder.
pub(crate) fn write_file(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = folder.and_then(|()| std::fs::write(path, bytes));
    written.map_err(Failure::unwritten(path))
}

/// A value as indented JSON, with the line feed of a file.
pub(crate) fn as_json(value: &impl serde::Serialize) -> Result<String, Failure> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => Ok(text + "\n"),
        Err(e) => Err(Failure::Trouble(format!("failed to write the JSON: {e}"))),
    }
}

/// The present day, on which waivers apply.
pub(crate) fn today() -> Date {
    let now = conformant_base::clock::now();
    now.to_zoned(jiff::tz::TimeZone::UTC).date()
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self::Usage(error.to_string())
    }
}

/// The requested reports, or the default ones, of a command that keeps no evidence.
pub(crate) fn reports_of(
    reports: &args::Reports,
    default: &[&str],
) -> Result<Vec<Report>, Failure> {
    let reports = reports_about_evidence(reports, default)?;
    require_evidence(&reports)?;
    output::check_reports(&reports)?;
    Ok(reports)
}

/// Rejects a statement about a run without evidence, which cannot be verified.
pub(crate) fn require_evidence(reports: &[Report]) -> Result<(), Failure> {
    let is_statement = |report: &Report| report.format == Format::Statement;
    match reports.iter().any(is_statement) {
        true => Err(Failure::Usage(
            "--report statement: expected evidence of the run, got none; add --keep-evidence FILE to `run`, or judge \
             an evidence file with `judge FILE`"
                .to_owned(),
        )),
        false => Ok(()),
    }
}

/// The requested reports, or the default ones.
pub(crate) fn reports_about_evidence(
    reports: &args::Reports,
    default: &[&str],
) -> Result<Vec<Report>, Failure> {
    let given: Vec<&str> = reports.reports.iter().map(String::as_str).collect();
    let wanted = if given.is_empty() { default } else { &given };
    let mut reports: Vec<Report> = Vec::new();
    for text in wanted {
        let report: Report = text
            .parse()
            .map_err(|e: ReportError| Failure::Usage(format!("--report {text}: {e}")))?;
        let is_taken = |known: &Report| place_of(known) == place_of(&report);
        if reports.iter().any(is_taken) {
            return Err(Failure::Usage(format!(
                "--report {text}: another report is written to the same place"
            )));
        }
        reports.push(report);
    }
    Ok(reports)
}

/// The file of a report, whatever the spelling of its path; none for standard output.
fn place_of(report: &Report) -> Option<PathBuf> {
    match &report.destination {
        Destination::Stdout => None,
        Destination::File(path) => Some(std::path::absolute(path).unwrap_or_else(|_| path.clone())),
    }
}

/// Rejects a file that a report is written to, too.
pub(crate) fn check_own_place(flag: &str, path: &Path, reports: &[Report]) -> Result<(), Failure> {
    let place = std::path::absolute(path).ok();
    match reports.iter().any(|report| place_of(report) == place) {
        true => Err(Failure::Usage(format!(
            "{flag} {}: a report is written to the same place",
            path.display()
        ))),
        false => Ok(()),
    }
}

/// Writes to standard output; a closed pipe ends the writing, not the program.
pub(crate) fn print(text: &str) {
    let mut out = output::Out;
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

pub(crate) fn note(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = writeln!(out, "{}", output::note_of(text));
}

/// Prints an error in the arguments. Unsafe arguments (several lines, control characters) are escaped and parsed
/// again for the message.
fn refuse(mut error: clap::Error) {
    let given: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let escaped: Vec<String> = given
        .iter()
        .map(|word| text::escape_line(word).into_owned())
        .collect();
    if given != escaped {
        match Cli::try_parse_from(escaped) {
            Err(again) if again.use_stderr() => note(again.render().to_string().trim_end()),
            Ok(_) | Err(_) => note(&text::escape_line(&error.render().to_string())),
        }
        return;
    }
    let shown = error.render().to_string();
    if shown.contains(NO_NUMBER) {
        note(shown.replace(NO_NUMBER, "expected a number").trim_end());
        return;
    }
    let command = similar_command(&mut error);
    // A closed pipe is not an error.
    let _ = error.print();
    if let Some(command) = command {
        note(&format!("did you mean `conformant {command}`?"));
    }
}

/// What the standard library says about a text that is not a number.
const NO_NUMBER: &str = "invalid digit found in string";

/// The command most similar to an unknown one for which clap suggests none, or only one that was removed.
fn similar_command(error: &mut clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let word = word.clone();
    let all = Cli::command();
    let is_removed = |name: &str| {
        let known = all.find_subcommand(name);
        known.is_some_and(clap::Command::is_hide_set)
    };
    if let Some(ContextValue::Strings(names)) = error.get(ContextKind::SuggestedSubcommand) {
        if !names.iter().any(|name| is_removed(name)) {
            return None;
        }
        error.remove(ContextKind::SuggestedSubcommand);
    }
    let shown = all.get_subcommands().filter(|one| !one.is_hide_set());
    let shown: Vec<&clap::Command> = shown.collect();
    let mut parents = shown.iter();
    if let Some(parent) = parents.find(|one| one.find_subcommand(&word).is_some()) {
        return Some(format!("{} {word}", parent.get_name()));
    }
    let names: Vec<&str> = shown.iter().map(|one| one.get_name()).collect();
    text::did_you_mean(&word, &names).map(str::to_owned)
}

fn complain(failure: &Failure) {
    match failure {
        Failure::Usage(why) | Failure::Trouble(why) => note(&format!("error: {why}")),
        Failure::Problems(problems) => {
            for problem in problems {
                print_problem(problem, Level::ERROR);
            }
            note(&format!("error: {failure}"));
        }
    }
}

/// Prints a problem with its source lines, in color if the terminal supports it and nothing has to be escaped.
fn print_problem(problem: &conformant_rulebook::Problem, level: Level<'static>) {
    let plain = rendered(problem, level.clone(), &Renderer::plain());
    let is_harmless = output::sayable(&plain) == plain;
    let mut out = std::io::stderr().lock();
    let colors = out.is_terminal() && config::environment("NO_COLOR").is_none();
    let text = if is_harmless && colors {
        rendered(problem, level, &Renderer::styled())
    } else {
        output::sayable(&plain)
    };
    let _ = writeln!(out, "{text}");
}

/// A problem with the lines around its place, as compilers print it.
fn rendered(
    problem: &conformant_rulebook::Problem,
    level: Level<'static>,
    renderer: &Renderer,
) -> String {
    let title = level.primary_title(&problem.message);
    let place = match problem.snippet() {
        Some((lines, first, span)) => title.element(
            Snippet::source(lines)
                .line_start(first)
                .path(&problem.file)
                .annotation(AnnotationKind::Primary.span(span)),
        ),
        None => title.element(Origin::path(&problem.file)),
    };
    let place = match &problem.help {
        Some(help) => place.element(Level::HELP.message(help)),
        None => place,
    };
    renderer.render(&[place])
}
