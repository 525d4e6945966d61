//! The page from top to bottom: what each block shows, in the order in which people ask.

use super::anatomy::{self, Depth};
use super::listing;
use crate::report::Settings;
use crate::report::cards::{self, Card, ServiceTally};
use crate::report::points;
use crate::report::view::{self, Weight};
use crate::text;
use crate::verdict::{Asked, History, OpenPointResult, Proof, RunRecord, Verdict, share};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::{Environment, UndefinedBehavior, Value, context};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("page.html");
const CARD: &str = include_str!("card.html");
pub(super) const STYLE: &str = include_str!("page.css");
pub(super) const SCRIPT: &str = include_str!("page.js");
/// Beyond this only titles are written, and a line says so.
pub(super) const BYTES_MAX: usize = 1_900_000;
/// So many rules are told in full.
pub(super) const ANATOMIES_MAX: usize = 120;
/// Defects named at the top.
const FIRST_MAX: usize = 5;
/// Defects that stand open.
const OPEN_MAX: usize = 5;
/// Ids behind one reason.
const GROUPS_MAX: usize = 40;
/// Defects that may not be noticed, named.
const UNNOTICED_MAX: usize = 60;
/// Scenarios that took longest.
const SLOWEST_MAX: usize = 5;
/// Characters of one text.
pub(super) const TEXT_CHARACTERS_MAX: usize = 2_000;

/// The whole page.
pub(in crate::report) fn render(record: &RunRecord, settings: Settings) -> String {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    // The names' ending switches escaping for HTML on.
    for (name, text) in [("page.html", PAGE), ("card.html", CARD)] {
        templates
            .add_template(name, text)
            .expect("the templates are well-formed");
    }
    let cards = cards::cards(record, settings);
    let page = |told: &Told| {
        let template = templates.get_template("page.html").expect("it was added");
        let context = context! {
            groups => groups(&cards, record, settings, told),
            ..page(record, &cards, settings)
        };
        template
            .render(context)
            .expect("the template uses only what it is given")
    };
    let room = BYTES_MAX.saturating_sub(page(&Told::default()).len());
    page(&tell(&templates, record, &cards, room))
}

/// The cards as they stand on the page.
#[derive(Default)]
struct Told {
    by_weight: BTreeMap<Weight, String>,
    /// What was left out, in a sentence.
    left: String,
}

/// The cards as far as there is room, and what was left out.
fn tell(templates: &Environment, record: &RunRecord, cards: &[Card], room: usize) -> Told {
    let template = templates.get_template("card.html").expect("it was added");
    let mut by_weight: BTreeMap<Weight, String> = BTreeMap::new();
    let (mut told, mut shortened, mut dropped) = (0, 0, 0);
    let mut used = 0;
    for (at, card) in cards.iter().enumerate() {
        let render = |anatomies: usize, depth: Depth| {
            let context = anatomy::card(record, card, at, at < OPEN_MAX, anatomies, depth);
            template
                .render(context)
                .expect("the template uses only what it is given")
        };
        let mut text = render(ANATOMIES_MAX.saturating_sub(told), Depth::Full);
        told += card.rules.len();
        if used + text.len() > room {
            text = render(0, Depth::Titles);
            shortened += 1;
        }
        if used + text.len() > room {
            dropped += 1;
            continue;
        }
        used += text.len();
        *by_weight.entry(card.weight).or_default() += &text;
    }
    let left = match (shortened, dropped) {
        (0, 0) => String::new(),
        (_, 0) => format!(
            "To stay within what a browser opens at once, {shortened} of these show only the titles of their rules; the JSON record holds all."
        ),
        _ => format!(
            "To stay within what a browser opens at once, {dropped} further defects are left out here; the JSON record holds all."
        ),
    };
    Told { by_weight, left }
}

/// The sections of cards: what fails, what warns, what is advice to clients.
fn groups(cards: &[Card], record: &RunRecord, settings: Settings, told: &Told) -> Vec<Value> {
    let whole = cards::whole(record, settings);
    let weights = [Weight::Fails, Weight::Warns, Weight::Advises];
    let groups = weights.into_iter().filter_map(|weight| {
        let count = cards.iter().filter(|card| card.weight == weight).count();
        let (id, head, name, lead) = match weight {
            Weight::Fails => ("defects", "Fix this first", "Fix first", defects_lead(count, &whole)),
            Weight::Warns => (
                "warnings",
                "Warnings",
                "Warnings",
                "What the documents advise, or what reads more than one way. It fails nothing without --strict.".to_owned(),
            ),
            Weight::Advises => (
                "advice",
                "Advice to clients",
                "Advice",
                "No service is at fault here: these requests are allowed, and could be better.".to_owned(),
            ),
        };
        (count > 0).then(|| {
            context! {
                id, head, name, lead, count, left => "",
                cards => told.by_weight.get(&weight).map_or("", String::as_str),
            }
        })
    });
    let mut groups: Vec<Value> = groups.collect();
    if let Some(last) = groups.pop() {
        groups.push(context! { left => told.left.as_str(), ..last });
    }
    groups
}

pub(super) fn hash(source: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(source)))
}

fn page(record: &RunRecord, cards: &[Card], settings: Settings) -> Value {
    let whole = cards::whole(record, settings);
    let history = record.history.as_ref();
    let services = cards::services(record, settings);
    let (state, verdict) = verdict(record, cards, &whole);
    let unjudged = whole.unjudged();
    let judged = whole.judged();
    let percent = (judged * 100).checked_div(record.rules.len()).unwrap_or(0);
    let played = record
        .scenarios
        .iter()
        .filter(|s| s.verdict != Verdict::NotApplicable);
    context! {
        style => STYLE, script => SCRIPT, style_hash => hash(STYLE), script_hash => hash(SCRIPT),
        headline => view::headline(record, settings),
        state, verdict,
        short => short(&whole),
        what_of => what_of(record),
        lead => lead(cards, &whole, record),
        first => cards.iter().take(FIRST_MAX).map(first).collect::<Vec<_>>(),
        first_more => (cards.len() > FIRST_MAX).then(|| format!("and {} more", cards.len() - FIRST_MAX)),
        parts => bar(&whole),
        total_said => thousands(record.rules.len()),
        unjudged, unjudged_said => thousands(unjudged),
        judged_percent => percent,
        judged_said => format!(
            "{} of {} rules, in {} played and {} exchanges.",
            thousands(judged), thousands(record.rules.len()),
            scenarios(played.count()), thousands(record.summary.exchanges),
        ),
        sharpness => sharpness(record),
        proof => record.proof.as_ref().map(proof),
        trend => history.filter(|history| !history.earlier.is_empty()).map(|history| trend(history, whole.broken)),
        services => services.iter().map(|s| service(s, record.wall.is_some())).collect::<Vec<_>>(),
        documents => listing::documents(record, settings),
        waivers => waivers(record),
        unjudged_lead => unjudged_lead(unjudged),
        needs => needs(record),
        open => open_points(record),
        open_count => record.open_points.len(),
        open_lead => open_lead(history),
        invocation => record.invocation.as_str(),
        facts => facts(record),
        time_said => time_said(record),
        slowest => slowest(record),
        schedule => super::schedule::schedule(record),
    }
}

/// The state that colours the top, and the verdict in two words.
fn verdict(
    record: &RunRecord,
    cards: &[Card],
    whole: &ServiceTally,
) -> (&'static str, &'static str) {
    let judged = whole.judged();
    if cards.iter().any(|card| card.weight == Weight::Fails) {
        ("fail", "Not conformant")
    } else if !record.complete {
        ("warn", "Cut short")
    } else if whole.error > 0 {
        ("warn", "Not judged in full")
    } else if judged == 0 {
        ("warn", "Nothing was judged")
    } else {
        ("pass", "Conformant in what was judged")
    }
}

/// What was judged, when, and for how long.
fn what_of(record: &RunRecord) -> String {
    const ORIGINS_MAX: usize = 3;
    let mut origins: Vec<&str> = Vec::new();
    for url in record.targets.values() {
        let host = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        let origin = host.split('/').next().unwrap_or(host);
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    let more = origins.len().saturating_sub(ORIGINS_MAX);
    origins.truncate(ORIGINS_MAX);
    let mut parts = vec![match origins.as_slice() {
        [] => "What was given".to_owned(),
        some => some.join(", "),
    }];
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    if let Some(wall) = &record.wall {
        let minute = wall.started.get(..16).unwrap_or(&wall.started);
        parts.push(format!("{} UTC", minute.replace('T', " ")));
        parts.push(duration(wall.seconds));
    }
    parts.join(" · ")
}

fn short(whole: &ServiceTally) -> String {
    match (whole.broken, whole.warned) {
        (0, 0) => format!("{} hold", thousands(whole.hold)),
        (0, warned) => view::count(warned, "warning"),
        (broken, _) => format!("{broken} broken"),
    }
}

fn lead(cards: &[Card], whole: &ServiceTally, record: &RunRecord) -> String {
    let fails = |card: &&Card| card.weight == Weight::Fails;
    let failing = cards.iter().filter(fails).count();
    let mut text = match (failing, whole.broken, whole.warned) {
        (0, _, 0) if whole.waived > 0 => format!(
            "{}; {} broken and accepted for now.",
            hold(whole.hold),
            are(whole.waived)
        ),
        (0, _, 0) => format!("{}, none is broken.", hold(whole.hold)),
        (0, _, warned) => format!(
            "{}; {} broken that only warn.",
            hold(whole.hold),
            are(warned)
        ),
        (1, 1, 0) => "One rule is broken.".to_owned(),
        (defects, broken, warned) => {
            let explain = if defects == 1 { "explains" } else { "explain" };
            let all = if broken == 1 {
                "the broken rule".to_owned()
            } else {
                format!("all {broken} broken rules")
            };
            let further = match warned {
                0 => String::new(),
                1 => ", 1 further one is only a warning".to_owned(),
                n => format!(", {n} further ones are only warnings"),
            };
            format!(
                "{} {explain} {all}{further}.",
                view::count(defects, "defect")
            )
        }
    };
    if failing > 0 {
        text += &format!(" {}", hold(whole.hold));
        text += if whole.unjudged() > 0 { ";" } else { "." };
    }
    if whole.unjudged() > 0 {
        let of = if failing > 0 { " of" } else { " Of" };
        text += &format!(
            "{of} {} this run says nothing.",
            thousands(whole.unjudged())
        );
    }
    match whole.advised {
        0 => {}
        1 => text += " One note is to clients.",
        n => text += &format!(" {n} notes are to clients."),
    }
    if !record.complete {
        text += " The run was cut short.";
    }
    text
}

fn scenarios(count: usize) -> String {
    let noun = if count == 1 { "scenario" } else { "scenarios" };
    format!("{} {noun}", thousands(count))
}

/// `1,089 rules hold`.
fn hold(count: usize) -> String {
    match count {
        1 => "1 rule holds".to_owned(),
        n => format!("{} rules hold", thousands(n)),
    }
}

fn are(count: usize) -> String {
    if count == 1 {
        "one is".to_owned()
    } else {
        format!("{count} are")
    }
}

fn first(card: &Card) -> Value {
    let warning = match card.weight {
        Weight::Fails => "",
        Weight::Warns => ", warning only",
        Weight::Advises => ", advice to clients",
    };
    let defect = &card.defect;
    context! {
        title => text::excerpt(&defect.title, 200),
        extent => format!("{} · {}{warning}", defect.service, view::count(card.rules.len(), "rule")),
    }
}

fn defects_lead(defects: usize, whole: &ServiceTally) -> String {
    let broken = whole.broken;
    let is = if broken == 1 { "rule is" } else { "rules are" };
    format!(
        "{broken} {is} broken, by what looks like {}. Rules that break together, in the way a known \
         defect breaks them, share a card. The one that touches most stands first. It is a guess: no \
         verdict rests on it.",
        view::count(defects, "defect")
    )
}

/// Parts of a bar a thousand wide, each visible, with a gap between.
fn bar(tally: &ServiceTally) -> Vec<Value> {
    const WIDTH: usize = 1_000;
    const GAP: usize = 2;
    const WIDTH_MIN: usize = 5;
    let parts = tally.parts();
    let all = tally.rules().max(1);
    let mut widths: Vec<usize> = parts
        .iter()
        .map(|(_, _, n)| (n * WIDTH / all).max(WIDTH_MIN))
        .collect();
    let over = (widths.iter().sum::<usize>() + GAP * parts.len()).saturating_sub(WIDTH);
    // What the small ones were given, the widest gives up.
    if let Some(widest) = widths.iter_mut().max() {
        *widest = widest.saturating_sub(over).max(WIDTH_MIN);
    }
    let mut x = 0;
    let drawn = parts
        .into_iter()
        .zip(widths)
        .map(|((class, word, count), width)| {
            let at = x;
            x += width + GAP;
            context! { class, word, count, said => thousands(count), x => at, width }
        });
    drawn.collect()
}

fn service(tally: &ServiceTally, timed: bool) -> Value {
    let mut say: Vec<(&str, &str, usize)> = tally
        .parts()
        .into_iter()
        .filter(|(class, _, _)| ["fail", "warn", "advice", "waived", "pass"].contains(class))
        .collect();
    // What is broken comes first here.
    say.sort_by_key(|(class, _, _)| *class == "pass");
    say.push(("not-judged", "not judged", tally.unjudged()));
    let say = say.into_iter().filter(|(_, _, n)| *n > 0);
    let say: Vec<Value> = say
        .map(|(class, word, n)| context! { class, word, said => thousands(n) })
        .collect();
    let target = tally
        .target
        .clone()
        .unwrap_or_else(|| match tally.name.as_str() {
            "events" => "heard through callbacks".to_owned(),
            _ => String::new(),
        });
    context! {
        name => tally.name.as_str(), target, parts => bar(tally), say,
        scenarios => format!("{} of {} scenarios pass", tally.scenarios_passed, tally.scenarios),
        asked => tally.asked.map(|asked| exchanges_with(asked, timed)),
    }
}

/// `48 exchanges, 12 ms each, 950 ms at most`: times where a real clock took them.
fn exchanges_with(asked: Asked, timed: bool) -> String {
    let many = if asked.exchanges == 1 { "" } else { "s" };
    let count = format!("{} exchange{many}", thousands(asked.exchanges));
    match asked.mean_milliseconds().filter(|_| timed) {
        Some(mean) => format!(
            "{count}, {mean} ms each, {} ms at most",
            asked.longest_milliseconds
        ),
        None => count,
    }
}

fn sharpness(record: &RunRecord) -> Option<Value> {
    let sharpness = record.sharpness.as_ref()?;
    let unnoticed = &sharpness.unnoticed;
    Some(context! {
        said => format!("{} of {}", sharpness.noticed, sharpness.known),
        known => sharpness.known, noticed => sharpness.noticed,
        missed => unnoticed.len(),
        unnoticed => unnoticed.iter().take(UNNOTICED_MAX).cloned().collect::<Vec<_>>(),
        more => (unnoticed.len() > UNNOTICED_MAX).then(|| format!("and {} more", unnoticed.len() - UNNOTICED_MAX)),
    })
}

/// What changes of these answers would have been noticed.
fn proof(proof: &Proof) -> Value {
    let tried = proof.proven + proof.vacuous;
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
        said => format!("{} of {}", thousands(proof.proven), thousands(tried)),
        says => view::proof(proof),
        sampled => sample.map(view::sensitivity),
        services => services.collect::<Vec<_>>(),
        missed => sample.map_or(0, |sample| sample.blind.len() + sample.more),
        blind => sample.map(|sample| sample.blind.iter().map(view::blind).collect::<Vec<_>>()),
        more => sample.filter(|s| s.more > 0).map(|s| format!("and {} more", s.more)),
    }
}

/// The last runs as a line, and what changed since the last one.
fn trend(history: &History, broken: usize) -> Value {
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
        text += &format!(
            " Comes and goes: {}.",
            view::count(history.flaky.len(), "rule")
        );
    }
    context! {
        said, text, good => history.new.is_empty(),
        label => format!("Broken rules in the last {} runs: {}", counts.len(), listed.join(", ")),
        points => points.iter().map(|(x, y)| format!("{x},{y}")).collect::<Vec<_>>().join(" "),
        x => points[last].0, y => points[last].1,
    }
}

fn waivers(record: &RunRecord) -> Vec<Value> {
    let waivers = record.waivers.iter().map(|waiver| {
        let rule = record.rules.iter().find(|rule| rule.id == waiver.rule);
        let at = if waiver.pointer.is_empty() {
            String::new()
        } else {
            format!(" at {}", waiver.pointer)
        };
        context! {
            says => rule.map_or("", |rule| rule.says.as_str()),
            rule => format!("{}{at}", waiver.rule),
            reason => waiver.reason.as_str(),
            expires => waiver.expires.as_str(),
            findings => waiver.findings,
        }
    });
    waivers.collect()
}

fn unjudged_lead(unjudged: usize) -> String {
    match unjudged {
        0 => "Every selected rule was judged.".to_owned(),
        1 => "1 rule was not judged. It is not counted as passed.".to_owned(),
        n => format!(
            "{} rules were not judged. They are not counted as passed.",
            thousands(n)
        ),
    }
}

fn needs(record: &RunRecord) -> Vec<Value> {
    let groups = cards::needs(record);
    let shown = groups.iter().take(GROUPS_MAX).map(|(need, ids)| {
        let advice = cards::advice(need);
        let mut letters = advice.chars();
        let first = letters
            .next()
            .map(|c| c.to_uppercase().to_string())
            .unwrap_or_default();
        let scenarios = record.scenarios.iter().filter(|s| {
            s.verdict == Verdict::NotApplicable
                && need
                    .split_once(' ')
                    .is_some_and(|(_, name)| s.reason.contains(name))
        });
        let scenarios = scenarios.count();
        let says = (scenarios > 0)
            .then(|| format!("{} would be played.", view::count(scenarios, "scenario")));
        context! {
            advice => format!("{first}{}", letters.as_str()), says,
            count => thousands(ids.len()),
            ids => cards::together(ids, 4),
        }
    });
    shown.collect()
}

fn open_lead(history: Option<&History>) -> String {
    let changed = history.map_or(0, |history| history.changed.len());
    let moved = match changed {
        0 => String::new(),
        n => format!("; {n} changed since the last run, which may surprise clients"),
    };
    format!(
        "Where the documents leave a question open, any answer passes. This is what was seen{moved}."
    )
}

fn open_points(record: &RunRecord) -> Vec<Value> {
    let mut groups: BTreeMap<&str, Vec<&OpenPointResult>> = BTreeMap::new();
    for point in &record.open_points {
        groups
            .entry(view::service(&point.id))
            .or_default()
            .push(point);
    }
    let history = record.history.as_ref();
    let is_changed = |id: &String| history.is_some_and(|history| history.changed.contains(id));
    let told = groups.into_iter().map(|(name, mut points)| {
        // What moved stands first.
        points.sort_by_key(|point| !is_changed(&point.id));
        let rows = points.iter().map(|point| {
            let (values, shapes) = points::observed(&point.observed);
            context! {
                id => point.id.as_str(), values, shapes,
                says => if point.says.is_empty() { &point.id } else { &point.says },
                treatment => point.treatment.as_str(),
                before => match history {
                    None => "–",
                    Some(_) if is_changed(&point.id) => "changed",
                    Some(_) => "as before",
                },
            }
        });
        context! {
            name,
            changed => points.iter().filter(|point| is_changed(&point.id)).count(),
            said => view::count(points.len(), "question"),
            points => rows.collect::<Vec<_>>(),
        }
    });
    told.collect()
}

fn facts(record: &RunRecord) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("version", record.tool.version.clone()),
        ("seed", record.seed.to_string()),
        (
            "rulebook",
            text::excerpt(&record.rulebook.digest, 64).into_owned(),
        ),
        (
            "complete",
            if record.complete {
                "yes"
            } else {
                "no: it was cut short"
            }
            .to_owned(),
        ),
    ];
    if let Some(part) = &record.partition {
        facts.push((
            "part",
            format!("{} of {} by {}", part.part, part.of, part.kind),
        ));
    }
    if let Some(exit) = record.exit {
        facts.push(("exit code", exit.to_string()));
    }
    if let Some(wall) = &record.wall {
        facts.push(("began", wall.started.clone()));
    }
    facts
}

fn time_said(record: &RunRecord) -> String {
    let summary = &record.summary;
    let played = summary
        .clock_seconds
        .map(|seconds| format!(", {} played", duration(seconds)));
    match &record.wall {
        Some(wall) => format!(
            "Where the time went: {}{}",
            duration(wall.seconds),
            played.unwrap_or_default()
        ),
        None => format!("Where the time went: {} played", duration(summary.seconds)),
    }
}

fn slowest(record: &RunRecord) -> Vec<(String, String)> {
    let mut all: Vec<_> = record
        .scenarios
        .iter()
        .filter(|s| s.seconds > 0.0)
        .collect();
    all.sort_by(|a, b| {
        b.seconds
            .total_cmp(&a.seconds)
            .then_with(|| a.id.cmp(&b.id))
    });
    let slowest = all.iter().take(SLOWEST_MAX);
    slowest
        .map(|scenario| (duration(scenario.seconds), scenario.id.clone()))
        .collect()
}

/// `366 days`, `1 h 12 min`, `2 min 5 s`, `3.2 s`.
fn duration(seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a span of time: whole seconds, and none is negative"
    )]
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..=59 => format!("{seconds:.1} s"),
        60..=3_599 => format!("{} min {} s", whole / 60, whole % 60),
        3_600..=172_799 => format!("{} h {} min", whole / 3_600, whole / 60 % 60),
        _ => format!("{} days", whole / 86_400),
    }
}

/// `1,058`.
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
