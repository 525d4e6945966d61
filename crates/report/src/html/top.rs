//! Top of the page: verdict, targets, defects, estimated detection, mutation testing, earlier runs.

use super::words::{duration, hold, thousands};
use crate::Settings;
use crate::cards::Card;
use crate::invocation;
use crate::tally::{State, Tally};
use crate::view::{self, Effect};
use conformant_base::text;
use conformant_record::{Build, History, Proof, RunRecord, share};
use minijinja::{Value, context};

/// The CSS state and the verdict in two words.
pub(super) fn verdict(
    record: &RunRecord,
    cards: &[Card],
    whole: &Tally,
) -> (&'static str, &'static str) {
    let judged = whole.judged();
    let mut failing = cards.iter().filter(|card| card.effect == Effect::Fails);
    if failing.clone().any(|card| !card.is_of_clients()) {
        ("fail", "Not conformant")
    } else if failing.next().is_some() {
        ("warn", "Mistakes of clients")
    } else if !record.complete && record.exit == Some(3) {
        ("warn", "Ended early")
    } else if !record.complete {
        ("warn", "Interrupted")
    } else if whole[State::Error] > 0
        || judged > 0 && !view::errors(record, Settings::default()).is_empty()
    {
        ("warn", "Not fully judged")
    } else if judged == 0 {
        ("warn", "Nothing judged")
    } else if judged * 2 < record.rules.len() && !invocation::limits(record).is_empty() {
        ("warn", "All judged rules pass, most were left out")
    } else {
        ("pass", "All judged rules pass")
    }
}

/// Targets, date and duration.
pub(super) fn what_of(record: &RunRecord) -> String {
    const ORIGINS_MAX: usize = 3;
    let mut origins: Vec<&str> = Vec::new();
    let is_reference = |url: &String| url == conformant_record::REFERENCE;
    if record.targets.values().any(is_reference) {
        origins.push("built-in reference");
    }
    for url in record.targets.values().filter(|url| !is_reference(url)) {
        let host = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        let origin = host.split('/').next().unwrap_or(host);
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    let more = origins.len().saturating_sub(ORIGINS_MAX);
    origins.truncate(ORIGINS_MAX);
    let mut parts = vec![match origins.as_slice() {
        [] => "Given files".to_owned(),
        some => some.join(", "),
    }];
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    if let Some(wall) = &record.wall {
        let minute = wall.started.get(..16).unwrap_or(&wall.started);
        parts.push(format!("{} UTC", minute.replace('T', " ")));
        parts.push(duration(wall.seconds).replace(' ', "\u{a0}"));
    }
    parts.join(" · ")
}

/// Revision and page of the build that made the run. Only a web address becomes a link.
pub(super) fn build(build: &Build) -> Value {
    const REVISION_CHARACTERS: usize = 12;
    let is_web = ["https://", "http://"]
        .iter()
        .any(|scheme| build.url.starts_with(scheme));
    let revision: String = build.revision.chars().take(REVISION_CHARACTERS).collect();
    context! { revision, url => if is_web { build.url.as_str() } else { "" } }
}

pub(super) fn short(whole: &Tally) -> String {
    match (whole[State::Broken], whole[State::Warned]) {
        (0, 0) => format!("{} pass", thousands(whole[State::Passed])),
        (0, warned) => format!("{warned} warning only"),
        (broken, _) => format!("{broken} broken"),
    }
}

pub(super) fn lead(cards: &[Card], whole: &Tally, record: &RunRecord) -> String {
    let fails = |card: &&Card| card.effect == Effect::Fails;
    let of_clients = cards.iter().filter(fails);
    let of_clients = of_clients.filter(|card| card.is_of_clients());
    let by_clients: usize = of_clients.clone().map(|card| card.rules.len()).sum();
    let failing = cards.iter().filter(fails).count() - of_clients.count();
    let broken = whole[State::Broken].saturating_sub(by_clients);
    let mut text = match (failing, broken, whole[State::Warned]) {
        (0, _, _) if by_clients > 0 => format!("{}.", hold(whole[State::Passed])),
        (0, _, 0) if whole[State::Waived] > 0 => format!(
            "{}, {} broken but waived.",
            hold(whole[State::Passed]),
            are(whole[State::Waived])
        ),
        (0, _, 0) => format!("{}, none is broken.", hold(whole[State::Passed])),
        (0, _, warned) => format!(
            "{}, {} broken with a warning only.",
            hold(whole[State::Passed]),
            are(warned)
        ),
        (1, 1, 0) => "One rule is broken.".to_owned(),
        (defects, broken, _) => {
            let warnings = cards.iter().filter(|card| card.effect == Effect::Warns);
            let explain = if defects == 1 { "explains" } else { "explain" };
            let all = if broken == 1 {
                "the broken rule".to_owned()
            } else {
                format!("all {broken} broken rules")
            };
            match warnings.count() {
                0 => format!("{} {explain} {all}.", view::count(defects, "defect")),
                warnings => format!(
                    "{}: {defects} {explain} {all}, {}.",
                    view::count(defects + warnings, "defect"),
                    match warnings {
                        1 => "1 is a warning".to_owned(),
                        n => format!("{n} are warnings"),
                    }
                ),
            }
        }
    };
    if failing > 0 {
        text += &format!(" {}", hold(whole[State::Passed]));
        text += if whole.undecided() > 0 { ";" } else { "." };
    }
    if by_clients > 0 {
        text += &format!(" Clients break {}.", view::count(by_clients, "rule"));
    }
    if whole.undecided() > 0 {
        text += &format!(" {} not decided.", thousands(whole.undecided()));
    }
    match whole[State::Advised] {
        0 => {}
        1 => text += " There is 1 note to clients.",
        n => text += &format!(" There are {n} notes to clients."),
    }
    if !record.complete {
        text += match record.exit {
            Some(3) => " The run ended early.",
            _ => " The run was interrupted.",
        };
    }
    text
}

fn are(count: usize) -> String {
    if count == 1 {
        "one is".to_owned()
    } else {
        format!("{count} are")
    }
}

pub(super) fn first(card: &Card) -> Value {
    let warning = match card.effect {
        Effect::Fails if card.is_of_clients() => ", mistake of a client",
        Effect::Fails => "",
        Effect::Warns => ", warning only",
        Effect::Advises => ", advice to clients",
    };
    let defect = &card.defect;
    context! {
        title => text::excerpt(&defect.title, 200),
        extent => format!("{} · {}{warning}", defect.service, view::count(card.rules.len(), "rule")),
    }
}

pub(super) fn detection(record: &RunRecord) -> Option<Value> {
    let detection = record.detection.as_ref()?;
    Some(context! {
        percent => detection.percent, low => detection.low, high => detection.high,
        of => view::unknown_implementation(record),
        // No break between a number and its unit.
        raised_by => view::raised_by(detection).map(|text| text.replace(" %", "\u{a0}%")),
    })
}

/// The mutations detected in this run.
pub(super) fn proof(proof: &Proof) -> Value {
    let passing = proof.proven + proof.unproven;
    let sample = proof.sample.as_ref();
    let services = proof.services.iter().map(|(name, c)| {
        let drawn = sample.and_then(|sample| sample.services.get(name));
        context! {
            name,
            rules => share(c.noticed, c.made),
            drawn => drawn.map(|c| share(c.noticed, c.made)),
        }
    });
    context! {
        said => format!("{} of {}", thousands(proof.proven), thousands(passing)),
        says => view::proof(proof),
        services => services.collect::<Vec<_>>(),
        missed => sample.map_or(0, |sample| sample.blind.len() + sample.more),
        blind => sample.map(|sample| sample.blind.iter().map(view::blind).collect::<Vec<_>>()),
        more => sample.filter(|s| s.more > 0).map(|s| format!("{} more", s.more)),
    }
}

/// The last runs as a line, and changes since the last one.
pub(super) fn trend(history: &History, broken: usize) -> Value {
    const RUNS_MAX: usize = 8;
    const WIDTH: usize = 100;
    const HEIGHT: usize = 26;
    let from = history.earlier.len().saturating_sub(RUNS_MAX);
    let mut counts: Vec<usize> = history.earlier[from..]
        .iter()
        .map(|run| run.broken)
        .collect();
    counts.push(broken);
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let last = counts.len() - 1;
    let points: Vec<(usize, usize)> = counts
        .iter()
        .enumerate()
        .map(|(at, count)| {
            (
                2 + at * WIDTH / last.max(1),
                3 + HEIGHT - count * HEIGHT / most,
            )
        })
        .collect();
    let listed: Vec<String> = counts.iter().map(usize::to_string).collect();
    let said = match (history.new.len(), history.fixed.len()) {
        (0, 0) => "nothing new".to_owned(),
        (0, fixed) => format!("{fixed} fixed"),
        (new, _) => format!("{new} new"),
    };
    let mut text = format!(
        "{} fixed, {} still broken. Broken in the last runs: {}.",
        history.fixed.len(),
        broken.saturating_sub(history.new.len()),
        listed.join(", ")
    );
    if !history.flaky.is_empty() {
        text += &format!(" Flaky: {}.", view::count(history.flaky.len(), "rule"));
    }
    context! {
        said, text, good => history.new.is_empty(),
        label => format!("Broken rules in the last {} runs: {}", counts.len(), listed.join(", ")),
        points => points.iter().map(|(x, y)| format!("{x},{y}")).collect::<Vec<_>>().join(" "),
        x => points[last].0, y => points[last].1,
    }
}
