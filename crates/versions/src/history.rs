//! History of runs against the same targets: new, fixed and flaky rules.
//!
//! Compares verdicts and judges nothing again. Runs with other rulebooks count for the trend only, because their
//! rules may differ.

use conformant_base::http::split_url;
use conformant_record::{EarlierRun, History, Level, Repeats, RunRecord, Verdict};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Compares a run with earlier, named runs, oldest first.
pub fn history(earlier: &[(String, RunRecord)], now: &RunRecord) -> History {
    let alike: Vec<&(String, RunRecord)> = earlier
        .iter()
        .filter(|(_, run)| is_alike(run, now))
        .collect();
    let broken = broken(now);
    let last = alike.last().map(|(_, run)| run);
    let before = last.map(self::broken).unwrap_or_default();
    let judged: BTreeSet<&str> = judged(now);
    let known: BTreeSet<&str> = last.map(self::judged).unwrap_or_default();
    History {
        // Counts for other targets or rules would not be comparable.
        earlier: alike
            .iter()
            .map(|(name, run)| EarlierRun {
                name: name.clone(),
                broken: self::broken(run).len(),
                judged: self::judged(run).len(),
            })
            .collect(),
        new: owned(
            broken
                .iter()
                .filter(|id| known.contains(*id) && !before.contains(*id)),
        ),
        fixed: owned(
            before
                .iter()
                .filter(|id| judged.contains(*id) && !broken.contains(*id)),
        ),
        flaky: flaky(&alike, now),
        first_seen: first_seen(&alike, &broken),
        changed: last.map(|last| changed(last, now)).unwrap_or_default(),
    }
}

fn owned<'a>(ids: impl Iterator<Item = &'a &'a str>) -> Vec<String> {
    ids.map(|id| (*id).to_owned()).collect()
}

/// Whether verdicts of two runs are comparable.
fn is_alike(run: &RunRecord, now: &RunRecord) -> bool {
    are_same_targets(run, now) && run.rulebook == now.rulebook
}

/// The base URLs of a run, without the paths of services at one address.
fn addresses(run: &RunRecord) -> Vec<String> {
    let urls = run.targets.values();
    let origins: BTreeSet<&str> = urls.map(|url| split_url(url).0).collect();
    origins.into_iter().map(str::to_owned).collect()
}

/// Whether two runs had the same target. On this machine each run uses another port.
fn are_same_targets(a: &RunRecord, b: &RunRecord) -> bool {
    a.targets.len() == b.targets.len()
        && a.targets.iter().all(|(service, url)| {
            let other = b.targets.get(service);
            other.is_some_and(|other| {
                let local = without_local_port(url);
                other == url || (local.is_some() && local == without_local_port(other))
            })
        })
}

/// An address, without its port if it is local.
fn without_local_port(url: &str) -> Option<(&str, &str)> {
    let (_, rest) = url.split_once("://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host);
    ["127.0.0.1", "localhost", "[::1]"]
        .contains(&host)
        .then_some((host, path))
}

/// Broken must-rules.
fn broken(run: &RunRecord) -> BTreeSet<&str> {
    let rules = run.rules.iter();
    rules
        .filter(|rule| rule.verdict == Verdict::Fail && rule.level == Level::Must)
        .map(|rule| rule.id.as_str())
        .collect()
}

fn judged(run: &RunRecord) -> BTreeSet<&str> {
    let is_judged = |verdict| matches!(verdict, Verdict::Pass | Verdict::Fail | Verdict::Waived);
    let rules = run.rules.iter().filter(|rule| is_judged(rule.verdict));
    rules.map(|rule| rule.id.as_str()).collect()
}

/// The first run of the present streak of each broken rule.
fn first_seen(alike: &[&(String, RunRecord)], now: &BTreeSet<&str>) -> BTreeMap<String, String> {
    let mut since: BTreeMap<String, String> = BTreeMap::new();
    let mut open = now.clone();
    for (name, run) in alike.iter().rev() {
        let then = broken(run);
        open.retain(|id| then.contains(id));
        for id in &open {
            since.insert((*id).to_owned(), name.clone());
        }
    }
    since
}

/// A rule that changed so often between broken and passed is flaky. A defect that came and was fixed makes two changes.
const FLAKY_CHANGES: usize = 3;

/// Rules that changed between broken and passed so often, or were flaky within the present run.
fn flaky(alike: &[&(String, RunRecord)], now: &RunRecord) -> Vec<String> {
    let runs: Vec<&RunRecord> = alike.iter().map(|(_, run)| run).chain([now]).collect();
    let mut turns: BTreeMap<&str, (Verdict, usize)> = BTreeMap::new();
    for rule in runs.iter().flat_map(|run| &run.rules) {
        if !matches!(rule.verdict, Verdict::Pass | Verdict::Fail) {
            continue;
        }
        let (last, turned) = turns.entry(&rule.id).or_insert((rule.verdict, 0));
        if *last != rule.verdict {
            (*last, *turned) = (rule.verdict, *turned + 1);
        }
    }
    let flaky = turns
        .into_iter()
        .filter(|(id, (_, turned))| *turned >= FLAKY_CHANGES || is_flaky(now, id));
    flaky.map(|(id, _)| id.to_owned()).collect()
}

/// Whether a rule was flaky within one repeated run.
fn is_flaky(run: &RunRecord, id: &str) -> bool {
    let mut flaky = run.repeats.iter().flat_map(Repeats::flaky);
    flaky.any(|rule| rule.rule == id)
}

/// Unspecified behaviors with another answer than before, in two complete runs of the same scenarios.
fn changed(last: &RunRecord, now: &RunRecord) -> Vec<String> {
    let scenarios = |run: &RunRecord| {
        run.scenarios
            .iter()
            .map(|s| s.id.clone())
            .collect::<Vec<_>>()
    };
    if !last.complete || !now.complete || scenarios(last) != scenarios(now) {
        return Vec::new();
    }
    let before = |id: &str| last.open_points.iter().find(|point| point.id == id);
    let points = now.open_points.iter();
    points
        .filter(|point| before(&point.id).is_some_and(|before| before.observed != point.observed))
        .map(|point| point.id.clone())
        .collect()
}

/// All runs of a folder, for `conformant history`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trend {
    /// Runs against the same targets as the last one, oldest first.
    pub runs: Vec<TrendRun>,
    /// Number of runs against other targets, which are left out.
    pub other_targets: usize,
    /// Rules that were broken in any of them.
    pub rules: Vec<TrendRule>,
}

/// Numbers of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrendRun {
    /// File name.
    pub name: String,
    /// Base URLs, each once.
    pub targets: Vec<String>,
    /// False if it was interrupted.
    pub complete: bool,
    /// Broken must-rules.
    pub broken: usize,
    /// Judged rules.
    pub judged: usize,
    /// All rules.
    pub rules: usize,
}

/// One rule in all runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrendRule {
    pub id: String,
    /// A letter for each run: `x` broken, `~` flaky in a repeated run, `.` passed, `?` not judged.
    pub verdicts: String,
    /// The first of these runs in which it was broken.
    pub first_seen: String,
    /// Whether it changed three times or more, or was flaky in a repeated run.
    pub flaky: bool,
    /// Whether it is broken in the last run.
    pub broken: bool,
}

/// The trend of the last runs, at most `last`, oldest first, without those against other targets than the last one.
pub fn trend(runs: &[(String, RunRecord)], last: usize) -> Trend {
    let Some((_, now)) = runs.last() else {
        return Trend {
            runs: Vec::new(),
            other_targets: 0,
            rules: Vec::new(),
        };
    };
    let own: Vec<&(String, RunRecord)> = runs
        .iter()
        .filter(|(_, run)| are_same_targets(run, now))
        .collect();
    let other_targets = runs.len() - own.len();
    let own = &own[own.len().saturating_sub(last)..];
    let ids: BTreeSet<&str> = own.iter().flat_map(|(_, run)| broken(run)).collect();
    let letter = |run: &RunRecord, id: &str| {
        let rule = run.rules.iter().find(|rule| rule.id == id);
        match rule.map(|rule| rule.verdict) {
            Some(Verdict::Fail) if is_flaky(run, id) => '~',
            Some(Verdict::Fail) => 'x',
            Some(Verdict::Pass | Verdict::Waived) => '.',
            _ => '?',
        }
    };
    let is_broken = |c: char| matches!(c, 'x' | '~');
    let rules = ids.into_iter().map(|id| {
        let verdicts: String = own.iter().map(|(_, run)| letter(run, id)).collect();
        let known: Vec<char> = verdicts.chars().filter(|c| *c != '?').collect();
        let turns = known.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let first = verdicts.chars().position(is_broken).unwrap_or(0);
        TrendRule {
            id: id.to_owned(),
            first_seen: own[first].0.clone(),
            flaky: turns >= FLAKY_CHANGES || verdicts.contains('~'),
            broken: verdicts.ends_with(is_broken),
            verdicts,
        }
    });
    Trend {
        runs: own
            .iter()
            .map(|(name, run)| TrendRun {
                name: name.clone(),
                targets: addresses(run),
                complete: run.complete,
                broken: broken(run).len(),
                judged: judged(run).len(),
                rules: run.rules.len(),
            })
            .collect(),
        other_targets,
        rules: rules.collect(),
    }
}
