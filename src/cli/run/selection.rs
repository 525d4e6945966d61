//! The scenarios that the flags of a run select, and notes about selections that are empty.

use super::RunArgs;
use crate::cli::args::{Races, Rerun};
use crate::cli::config::Config;
use crate::cli::{Failure, diff, earlier, hint, is_implemented, note};
use conformant_base::text;
use conformant_engine::{Partition, Planned, Selection, plan};
use conformant_rulebook::Rulebook;
use conformant_rulebook::service::ServiceIndex;

/// What a run executes.
pub(super) struct Selected<'a> {
    pub(super) planned: Vec<Planned<'a>>,
    pub(super) partition: Option<Partition>,
}

/// Plans the selected scenarios. Prints a note if there are none.
pub(super) fn select<'a>(
    args: &RunArgs,
    config: &Config,
    rulebook: &'a Rulebook,
    seed: u64,
) -> Result<Option<Selected<'a>>, Failure> {
    let mut selection = selection(args, config)?;
    if let Some(revision) = &args.since {
        narrow_since(revision, rulebook, &mut selection)?;
        if selection.only.is_empty() {
            return Ok(None);
        }
    }
    check_filters(rulebook, &selection)?;
    if !has_target(&args.services, config) {
        return Ok(None);
    }
    let mut planned = plan::plan(rulebook, &selection, args.shuffle.then_some(seed));
    if args.races == Races::Off {
        planned.retain(|planned| !planned.is_race());
    }
    // A single part may be empty: its record is needed for `merge`.
    let partition = selection.partition.take();
    if planned.is_empty() && plan::plan(rulebook, &selection, None).is_empty() {
        note_nothing_selected(args, rulebook, &selection.services);
        return Ok(None);
    }
    Ok(Some(Selected { planned, partition }))
}

/// Whether the run covers every rule that a waiver may name.
pub(super) fn is_whole(args: &RunArgs) -> bool {
    args.filters.is_empty()
        && args.rerun.is_none()
        && args.since.is_none()
        && args.races == Races::On
}

/// Rejects services that the rulebook does not have.
pub(in crate::cli) fn check_services(
    index: &ServiceIndex,
    services: &[String],
) -> Result<(), Failure> {
    let mut unknown = services.iter().filter(|name| index.get(name).is_none());
    let Some(service) = unknown.next() else {
        return Ok(());
    };
    let names: Vec<&str> = index.iter().map(|(name, _)| name).collect();
    Err(Failure::Usage(format!(
        "unknown --service `{service}`: expected {}",
        names.join(", ")
    )))
}

fn selection(args: &RunArgs, config: &Config) -> Result<Selection, Failure> {
    let index = &config.settings.index;
    check_services(index, &args.services)?;
    let mut services = args.services.clone();
    if config.settings.targets.is_empty() {
        services = offline(index, &args.filters, services)?;
    } else if services.is_empty() {
        services = config.settings.targets.keys().cloned().collect();
        let feeds = config.settings.feeds().into_iter().map(str::to_owned);
        services.extend(feeds);
    }
    Ok(Selection {
        services,
        filters: args.filters.clone(),
        only: match args.rerun {
            None => Vec::new(),
            Some(Rerun::LastFailed) => earlier::last_failed(&config.settings)?,
        },
        partition: args.partition.as_deref().map(partition).transpose()?,
    })
}

fn partition(given: &str) -> Result<Partition, Failure> {
    given.parse().map_err(|why| {
        let hashed = format!("hash:{given}");
        let near = match hashed.parse::<Partition>() {
            Ok(_) => format!("; did you mean `{hashed}`?"),
            Err(_) => String::new(),
        };
        Failure::Usage(format!("--partition: {why}{near}"))
    })
}

/// The services that are judged without a target: those that the reference implements. An empty list means all.
fn offline(
    index: &ServiceIndex,
    filters: &[String],
    wanted: Vec<String>,
) -> Result<Vec<String>, Failure> {
    let filtered = filters
        .iter()
        .filter_map(|filter| Some(filter.split_once('/')?.0));
    let missing = |name: &&str| index.get(name).is_some() && !is_implemented(name);
    let named = wanted.iter().map(String::as_str).chain(filtered);
    let named: Vec<&str> = named.filter(missing).collect();
    let all: Vec<&str> = index.iter().map(|(name, _)| name).collect();
    let (with, without): (Vec<&str>, Vec<&str>) =
        all.into_iter().partition(|name| is_implemented(name));
    let targets = with.iter().filter(|name| index.is_target(name));
    let unjudged = match (named.first(), without.first()) {
        (Some(named), _) => Some(*named),
        (None, Some(first)) if targets.count() == 0 => Some(*first),
        (None, _) => None,
    };
    if let Some(service) = unjudged {
        return Err(Failure::Usage(format!(
            "{service}: nothing to judge offline, because the reference does not implement it; name a target: \
             --target {service}=URL"
        )));
    }
    if wanted.is_empty() && !without.is_empty() {
        note(&format!(
            "not judged without a target: {} (--target SERVICE=URL names one)",
            without.join(", ")
        ));
        return Ok(with.into_iter().map(str::to_owned).collect());
    }
    Ok(wanted)
}

/// Restricts a selection to scenarios that changed since a revision; prints a note if none is left.
fn narrow_since(
    revision: &str,
    rulebook: &Rulebook,
    selection: &mut Selection,
) -> Result<(), Failure> {
    let mut touched = diff::scenarios_since(&diff::rulebook_of(revision)?, rulebook);
    touched.retain(|id| selection.only.is_empty() || selection.only.contains(id));
    selection.only = touched;
    if selection.only.is_empty() {
        note(&format!(
            "nothing was judged: no selected scenario has changed since {revision}"
        ));
    }
    Ok(())
}

/// Rejects a filter that selects nothing while another one selects something: it is misspelled, or its service has no target.
fn check_filters(rulebook: &Rulebook, selection: &Selection) -> Result<(), Failure> {
    if selection.filters.len() < 2 {
        return Ok(());
    }
    let every = Selection {
        services: selection.services.clone(),
        ..Selection::default()
    };
    let planned = plan::plan(rulebook, &every, None);
    let selects = |filter: &str, p: &Planned<'_>| text::glob(filter, &p.scenario.id);
    let is_idle = |filter: &&String| !planned.iter().any(|planned| selects(filter, planned));
    let idle: Vec<&String> = selection.filters.iter().filter(is_idle).collect();
    if idle.len() == selection.filters.len() {
        return Ok(());
    }
    let of = match selection.services.as_slice() {
        [] => "the rulebook".to_owned(),
        services => services.join(", "),
    };
    let lines = idle.iter().map(|filter| {
        format!(
            "--filter {filter}: no scenario of {of} has such an id (`conformant list scenarios` shows them)"
        )
    });
    Failure::unless_empty(&lines.collect::<Vec<_>>())
}

/// Names the services of `--service` that have no target although others have one. False if none is left.
pub(in crate::cli) fn has_target(services: &[String], config: &Config) -> bool {
    let targets = &config.settings.targets;
    let has_none = |service: &&String| {
        config.settings.index.is_target(service) && !targets.contains_key(*service)
    };
    let (without, with): (Vec<&String>, Vec<&String>) = services.iter().partition(has_none);
    if targets.is_empty() || without.is_empty() {
        return true;
    }
    for service in without {
        note(&format!(
            "nothing of {service} is judged: {}",
            no_target(service)
        ));
    }
    !with.is_empty()
}

fn no_target(service: &str) -> String {
    format!("{service} has no target; configure targets.{service} or add --target {service}=URL")
}

/// Why filters select nothing, as the end of a sentence.
fn why_none(args: &RunArgs, rulebook: &Rulebook, ids: &[&str]) -> Option<String> {
    let is_selected = |filter: &String| ids.iter().any(|id| text::glob(filter, id));
    let has_others = args.rerun.is_some() || args.partition.is_some();
    if args.filters.iter().any(is_selected) && !has_others {
        return Some(", which exclude each other".to_owned());
    }
    let mut whole = args.filters.iter().filter(|filter| !filter.contains('*'));
    if let Some(rule) = whole.clone().find(|id| rulebook.rule(id).is_some()) {
        return Some(format!(
            "; {rule} is a rule: `conformant explain {rule}` shows what it judges"
        ));
    }
    whole.find_map(|filter| Some(hint(filter, ids)).filter(|near| !near.is_empty()))
}

fn note_nothing_selected(args: &RunArgs, rulebook: &Rulebook, services: &[String]) {
    let without_target = args.filters.iter().find_map(|filter| {
        let (service, _) = filter.split_once('/')?;
        let is_left_out = !services.is_empty() && !services.iter().any(|name| name == service);
        let is_service = rulebook.index.get(service).is_some();
        (args.services.is_empty() && is_service && is_left_out).then_some(service)
    });
    if let Some(service) = without_target {
        note(&format!("nothing was judged: {}", no_target(service)));
        return;
    }
    let given = [
        ("--filter", args.filters.as_slice()),
        ("--service", &args.services),
        ("--partition", args.partition.as_slice()),
    ];
    let options = given.iter().flat_map(|(flag, values)| {
        values
            .iter()
            .map(move |v| format!("{flag} {}", text::shell_quoted(v)))
    });
    let mut options: Vec<String> = options.collect();
    options.extend(args.rerun.map(|_| "--rerun last-failed".to_owned()));
    if options.is_empty() {
        options.push("this run".to_owned());
    }
    let all = plan::all(rulebook);
    let ids: Vec<&str> = all.iter().map(|p| p.scenario.id.as_str()).collect();
    note(&format!(
        "nothing was judged: no scenario is selected by {}{} (`conformant list scenarios` shows them)",
        options.join(" "),
        why_none(args, rulebook, &ids).unwrap_or_default()
    ));
}
