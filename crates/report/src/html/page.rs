//! The page from top to bottom: what each block shows, in the order in which people ask.

use super::anatomy::{self, Depth};
use super::listing;
use super::words::{scenarios, thousands};
use super::{facts, open, services, top, unjudged};
use crate::Settings;
use crate::cards::{self, Card, ServiceTally};
use crate::view::{self, Weight};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformant_record::{RunRecord, Verdict};
use minijinja::{Environment, UndefinedBehavior, Value, context};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("page.html");
const CARD: &str = include_str!("card.html");
pub(super) use conformant_base::page::STYLE;
pub(super) const SCRIPT: &str = include_str!("page.js");
/// Beyond this only titles are written, and a line says so.
pub(super) const BYTES_MAX: usize = 1_900_000;
/// So many rules are told in full.
pub(super) const ANATOMIES_MAX: usize = 120;
/// Defects named at the top.
const FIRST_MAX: usize = 5;
/// Defects that stand open.
const OPEN_MAX: usize = 5;
/// Characters of one text.
pub(super) const TEXT_CHARACTERS_MAX: usize = 2_000;

/// The whole page.
pub(crate) fn render(record: &RunRecord, settings: Settings) -> String {
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
    let tallies = cards::services(record, settings);
    let (state, verdict) = top::verdict(record, cards, &whole);
    let not_judged = whole.unjudged();
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
        short => top::short(&whole),
        what_of => top::what_of(record),
        lead => top::lead(cards, &whole, record),
        first => cards.iter().take(FIRST_MAX).map(top::first).collect::<Vec<_>>(),
        first_more => (cards.len() > FIRST_MAX).then(|| format!("and {} more", cards.len() - FIRST_MAX)),
        parts => services::bar(&whole),
        total_said => thousands(record.rules.len()),
        unjudged => not_judged, unjudged_said => thousands(not_judged),
        judged_percent => percent,
        judged_said => format!(
            "{} of {} rules, in {} played and {} exchanges.",
            thousands(judged), thousands(record.rules.len()),
            scenarios(played.count()), thousands(record.summary.exchanges),
        ),
        sharpness => top::sharpness(record),
        proof => record.proof.as_ref().map(top::proof),
        trend => history.filter(|history| !history.earlier.is_empty()).map(|history| top::trend(history, whole.broken)),
        services => tallies.iter().map(|s| services::service(s, record.wall.is_some())).collect::<Vec<_>>(),
        documents => listing::documents(record, settings),
        waivers => unjudged::waivers(record),
        unjudged_lead => unjudged::unjudged_lead(not_judged),
        needs => unjudged::needs(record),
        open => open::open_points(record),
        open_count => record.open_points.len(),
        open_lead => open::open_lead(history),
        invocation => record.invocation.as_str(),
        facts => facts::facts(record),
        time_said => facts::time_said(record),
        slowest => facts::slowest(record),
        schedule => super::schedule::schedule(record),
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
