//! `explore`: sends random sequences of requests, judges the responses, and prints findings as scenarios.

use super::args::ExploreArgs;
use super::config::{self, Config, Reading};
use super::signals::Signals;
use super::{Done, Exit, Failure, doctor, invocation, load, note, print, run};
use conformant_base::redact::Redactor;
use conformant_base::text;
use conformant_engine::Sessions;
use conformant_engine::sessions::Offline;
use conformant_explore::{
    Budget, Certainty, Coverage, ExploreOptions, Explored, Explorer, Progress, Shrunk, file_of,
};
use conformant_record::{Level, REFERENCE};
use conformant_report::ALIVE_SECONDS;
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use indicatif::ProgressBar;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Default time of an exploration.
const BUDGET_DEFAULT: &str = "10s";
const JOBS_DEFAULT: usize = 2;

pub(super) fn explore(args: &ExploreArgs) -> Done {
    let budget = budget_of(args.budget.as_deref().unwrap_or(BUDGET_DEFAULT))?;
    if let Some(folder) = &args.save {
        can_be_written(folder)?;
    }
    let reading = Reading {
        is_reference: args.reference,
        ..Reading::default()
    };
    let mut config = config::read(&args.on, reading)?;
    config::check_target(&args.on, args.reference, false, &config)?;
    let hooks = args.on.hooks.as_deref().filter(|_| !args.reference);
    config::check_hooks(hooks, false, &config)?;
    if args.only_safe {
        // Hooks change state, too.
        config.settings.hooks.clear();
    }
    let rulebook = load(&args.on.specs)?;
    config::check_values(&rulebook, &config)?;
    run::check_services(&config.settings.index, &args.services)?;
    let redactor = Redactor::new(&config.secrets);
    let target = redactor
        .redact(&target_text(&config, args.reference))
        .into_owned();
    print(&format!("target: {}\n", text::escape_line(&target)));
    if !run::has_target(&args.services, &config) {
        return Ok(Exit::NothingJudged);
    }
    let headlines = doctor::Targets::new(&config, &rulebook)?.headlines(&args.services);
    if !headlines.is_empty() {
        let help = "`conformant doctor` checks every target";
        let why = format!("{}; {help}", headlines.join("\nerror: "));
        return Err(Failure::Trouble(redactor.redact(&why).into_owned()));
    }
    let schemas = Schemas::default();
    let signals = Signals::listen()?;
    let is_live = !config.settings.targets.is_empty();
    let given = (args.seed, args.names.as_deref());
    let (seed, names) = run::seed_and_names(given, is_live)?;
    if is_live {
        run::note_names(seed, &names);
    }
    config.settings.names = names;
    let jobs = args.jobs.unwrap_or(JOBS_DEFAULT);
    if let Budget::Time(time) = budget {
        // Waits for the target end with the budget, too.
        config.run_max = config.run_max.min(time);
    }
    let sessions = sessions(&config, &rulebook, (seed, jobs), &signals)?;
    let options = ExploreOptions {
        seed,
        budget,
        jobs,
        only_safe: args.only_safe,
        services: args.services.clone(),
        is_live,
    };
    let started = conformant_base::clock::monotonic();
    let explorer = Explorer::new(&rulebook, &schemas, options);
    let explored = watched(&explorer, sessions.as_ref(), || {
        explorer.explore(sessions.as_ref(), &signals.interrupted)
    });
    print(&redactor.redact(&text::escape(&report_text(&explored))));
    let seconds = started.elapsed().as_secs_f64();
    note(&format!(
        "{} in {seconds:.1} s",
        text::count(explored.exchanges, "exchange")
    ));
    if let Some(folder) = &args.save {
        let invocation = invocation::of_run(&args.on, &config, seed, false);
        let command = conformant_report::run_like(&invocation, is_live, seed);
        save(folder, &explored.found, &command, &redactor)?;
    }
    let void = sessions.services().void_services().into_iter().next();
    let void = void.map(|service| service.why);
    let (exit, verdict) = concluded(&explored, is_live, (signals.exit(), void));
    let specs = args.on.specs.specs.as_deref();
    let next = next_step(&explored, specs).unwrap_or_default();
    print(&redactor.redact(&text::escape(&format!(
        "{verdict} · target: {target}\n{next}"
    ))));
    Ok(exit)
}

/// What is explored, as a run names it.
fn target_text(config: &Config, is_reference_named: bool) -> String {
    let targets = config.settings.targets.iter();
    let mut targets: BTreeMap<String, String> = targets
        .map(|(service, target)| (service.clone(), target.url.clone()))
        .collect();
    if targets.is_empty() {
        targets.insert(String::new(), REFERENCE.to_owned());
    }
    conformant_report::shown_target(&targets, is_reference_named)
}

/// Reports progress: continuously on a terminal, otherwise as often as a run does.
fn watched<T>(explorer: &Explorer<'_>, sessions: &dyn Sessions, work: impl FnOnce() -> T) -> T {
    const DRAWN_EVERY: Duration = Duration::from_millis(100);
    /// What waited so long ago waits no more.
    const WAIT_SHOWN: Duration = Duration::from_secs(2);
    let is_terminal = std::io::stderr().is_terminal();
    let every = if is_terminal {
        DRAWN_EVERY
    } else {
        Duration::from_secs(ALIVE_SECONDS)
    };
    let (ended, waits) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let bar = if is_terminal {
                ProgressBar::new_spinner()
            } else {
                ProgressBar::hidden()
            };
            let began = conformant_base::clock::monotonic();
            let mut waiting = None;
            while waits.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let now = conformant_base::clock::monotonic();
                if let Some(wait) = sessions.waits() {
                    waiting = Some((wait, now));
                }
                waiting = waiting.filter(|(_, since)| now < *since + WAIT_SHOWN);
                let wait = waiting.as_ref().map(|(wait, _)| wait);
                let far = progress_text(explorer.progress(), wait);
                if is_terminal {
                    bar.set_message(far);
                    bar.tick();
                } else {
                    note(&format!("… {} s: {far}", began.elapsed().as_secs()));
                }
            }
            bar.finish_and_clear();
        });
        let done = work();
        drop(ended);
        done
    })
}

fn progress_text(progress: Progress, wait: Option<&(String, String)>) -> String {
    let Progress {
        sequences,
        exchanges,
        shrinking,
    } = progress;
    let mut text = format!("{sequences} sequences · {exchanges} requests");
    if shrinking > 0 {
        text += &format!(" · shrinking finding {shrinking}");
    }
    match wait {
        None => {}
        Some((service, why)) if service.is_empty() => text += &format!(" · {why}"),
        Some((service, why)) => text += &format!(" · {service}: {why}"),
    }
    text
}

/// The exit code and the verdict. `void` is why a service could not be explored, such as credentials that may only read.
fn concluded(
    explored: &Explored,
    is_live: bool,
    (by_signal, void): (Option<Exit>, Option<String>),
) -> (Exit, String) {
    let sure = |level| {
        let found = explored.found.iter();
        let found = found.filter(|shrunk| !shrunk.is_flaky());
        found.filter(move |shrunk| shrunk.finding.level == level)
    };
    let failing = sure(Level::Must).count() + explored.more;
    let (judged, all) = explored.coverage.rules;
    let failed = format!("not conformant: {}", text::count(failing, "finding"));
    if let Some(exit) = by_signal {
        let found = if failing > 0 {
            failed
        } else {
            "no findings until then".to_owned()
        };
        return (exit, format!("interrupted: {found}"));
    }
    let gone = explored.given_up.as_ref();
    let gone = gone.map(|why| format!("the target stopped answering: {why}"));
    if let Some(why) = gone.or(void) {
        let found = text::count(failing, "finding");
        let verdict = format!("not fully explored: {why}; {found} until then");
        return (Exit::Trouble, verdict);
    }
    if explored.exchanges == 0 {
        let next = match is_live {
            true => "; `conformant doctor` shows what the targets answer",
            false => "",
        };
        let verdict =
            format!("nothing judged: no operation of the targeted services could be called{next}");
        return (Exit::NothingJudged, verdict);
    }
    if judged == 0 && failing == 0 && explored.found.is_empty() {
        let verdict =
            "nothing judged: the sequences that ran to their end judged no rule; raise --budget";
        return (Exit::NothingJudged, verdict.to_owned());
    }
    if failing > 0 {
        return (Exit::Failed, failed);
    }
    let warnings = match sure(Level::Should).count() {
        0 => String::new(),
        n => format!(", {}", text::count(n, "warning")),
    };
    let verdict = format!("passed: {judged} of {all} rules judged{warnings}");
    (Exit::Conformant, verdict)
}

/// The next command, if something was found.
fn next_step(explored: &Explored, specs: Option<&Path>) -> Option<String> {
    let first = explored.found.first()?;
    let specs = specs.map(|folder| folder.display().to_string());
    let specs = specs.map(|folder| format!(" --specs {}", text::shell_quoted(&folder)));
    Some(format!(
        "next: conformant explain {}{}\n",
        first.finding.rule,
        specs.unwrap_or_default()
    ))
}

/// Parses `60s`, or a number of sequences.
fn budget_of(text: &str) -> Result<Budget, Failure> {
    let nothing = || {
        Failure::Usage(format!(
            "--budget {text} is too small: expected at least one sequence or some time, such as 60s or 1000"
        ))
    };
    if let Ok(count) = text.parse::<u64>() {
        return if count == 0 {
            Err(nothing())
        } else {
            Ok(Budget::Sequences(count))
        };
    }
    let time = conformant_rulebook::duration(text).ok_or_else(|| {
        Failure::Usage(format!(
            "invalid --budget `{text}`: expected a time, such as 60s, or a number of sequences"
        ))
    })?;
    if time.is_zero() {
        Err(nothing())
    } else {
        Ok(Budget::Time(time))
    }
}

fn sessions<'a>(
    config: &Config,
    rulebook: &Rulebook,
    (seed, jobs): (u64, usize),
    signals: &'a Signals,
) -> Result<Box<dyn Sessions + 'a>, Failure> {
    if config.settings.targets.is_empty() {
        return Ok(Box::new(Offline::faultless(seed)));
    }
    run::sessions(config, rulebook, (seed, jobs), signals)
}

/// Checks, before anything is sent, that the folder is writable.
fn can_be_written(folder: &Path) -> Result<(), Failure> {
    let fails = |why: std::io::Error| {
        Failure::Usage(format!(
            "failed to write to --save {}: {why}",
            folder.display()
        ))
    };
    std::fs::create_dir_all(folder).map_err(fails)?;
    let probe = folder.join(".conformant");
    std::fs::write(&probe, "").map_err(fails)?;
    std::fs::remove_file(&probe).map_err(fails)
}

fn save(
    folder: &Path,
    found: &[Shrunk],
    command: &str,
    redactor: &Redactor,
) -> Result<(), Failure> {
    for shrunk in found.iter().filter(|shrunk| !shrunk.is_flaky()) {
        let (name, text) = file_of(shrunk);
        super::write_file(&folder.join(name), redactor.redact(&text).as_bytes())?;
    }
    let sure = found.iter().filter(|shrunk| !shrunk.is_flaky()).count();
    if sure > 0 {
        let folder = folder.display().to_string();
        let line = format!(
            "{sure} saved; run them: {command} --scenarios {} --filter '*/explored/*'",
            text::shell_quoted(&folder)
        );
        note(&redactor.redact(&line));
    }
    Ok(())
}

fn report_text(explored: &Explored) -> String {
    let mut out = String::new();
    for (at, shrunk) in explored.found.iter().enumerate() {
        let finding = &shrunk.finding;
        let word = match (shrunk.is_flaky(), finding.level) {
            (true, _) => "FLAKY",
            (false, Level::Must) => "FAIL",
            (false, _) => "WARN",
        };
        let _ = writeln!(
            out,
            "{word} {}. {}\n  {} ({}/{})",
            at + 1,
            conformant_record::title(finding),
            finding.rule,
            finding.service,
            finding.operation
        );
        match &shrunk.certainty {
            Certainty::Sure => out += &shrunk.to_text(),
            Certainty::Untried => {
                out += "  not shortened, because the target or the time was gone:\n";
                out += &shrunk.to_text();
            }
            Certainty::Flaky { first, again } => {
                let _ = writeln!(
                    out,
                    "  found once, in sequence {}, but not when the same requests were sent again:",
                    shrunk.sequence
                );
                out += &shrunk.to_text();
                for (when, lines) in [("first", first), ("again", again)] {
                    let _ = writeln!(out, "  {when}");
                    for line in lines {
                        let _ = writeln!(out, "    {line}");
                    }
                }
            }
        }
        if !finding.reproduce.is_empty() {
            let _ = writeln!(out, "  last request: {}", finding.reproduce);
        }
        out.push('\n');
    }
    if explored.more > 0 {
        let _ = writeln!(out, "… {} more, not shrunk", explored.more);
    }
    let Coverage {
        operations,
        parameters,
        pairs,
        rules,
        states,
    } = explored.coverage;
    let of = |(reached, all): (usize, usize)| format!("{reached} of {all}");
    let _ = writeln!(
        out,
        "sequences   {}\nrequests    {}\nreached     operations {} · parameters {} · pairs {} · rules judged {} · states {}",
        explored.sequences,
        explored.exchanges,
        of(operations),
        of(parameters),
        of(pairs),
        of(rules),
        of(states),
    );
    if explored.in_doubt > 0 {
        let _ = writeln!(
            out,
            "in doubt    {} sequences were cut short by the budget or a signal, or another client moved the clock of the target: their findings are left out",
            explored.in_doubt
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exploration_that_judged_no_rule_does_not_pass() {
        let mut explored = Explored {
            exchanges: 29,
            ..Explored::default()
        };
        assert_eq!(
            concluded(&explored, true, (None, None)).0,
            Exit::NothingJudged
        );
        // A finding that there was no time to shrink counts.
        explored.more = 1;
        assert_eq!(concluded(&explored, true, (None, None)).0, Exit::Failed);
        explored.more = 0;
        explored.coverage.rules = (4, 21);
        assert_eq!(concluded(&explored, true, (None, None)).0, Exit::Conformant);
        let void = Some("flow rejects every request that writes".to_owned());
        assert_eq!(concluded(&explored, true, (None, void)).0, Exit::Trouble);
    }

    #[test]
    fn progress_names_what_is_waited_for() {
        let progress = Progress {
            sequences: 20,
            exchanges: 12,
            shrinking: 1,
        };
        let text = |service: &str, why: &str| {
            progress_text(progress, Some(&(service.to_owned(), why.to_owned())))
        };
        let known = "20 sequences · 12 requests · shrinking finding 1";
        assert_eq!(progress_text(progress, None), known);
        assert_eq!(
            text("", "1 scenario waits"),
            format!("{known} · 1 scenario waits")
        );
        assert_eq!(text("flow", "429"), format!("{known} · flow: 429"));
    }

    #[test]
    fn a_budget_is_a_time_or_a_number_above_zero() {
        assert_eq!(budget_of("5").ok(), Some(Budget::Sequences(5)));
        assert_eq!(
            budget_of("2s").ok(),
            Some(Budget::Time(Duration::from_secs(2)))
        );
        for wrong in ["0", "0s", "soon", "-1"] {
            let message = budget_of(wrong)
                .expect_err("the budget is invalid")
                .to_string();
            assert!(message.contains(wrong), "{message}");
        }
    }
}
