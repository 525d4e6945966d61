//! Assembles the blocks of the page.

use super::anatomy::{self, Depth};
use super::listing;
use super::words::{scenarios, thousands};
use super::{facts, open, services, top, unjudged};
use crate::Settings;
use crate::cards::{self, Card};
use crate::tally::{self, State, Tally};
use crate::view::{self, Effect};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformant_record::{ENDED_BEFORE, RunRecord, Verdict};
use minijinja::{Environment, UndefinedBehavior, Value, context};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("page.html");
const CARD: &str = include_str!("card.html");
pub(super) use conformant_base::page::STYLE;
pub(super) const SCRIPT: &str = include_str!("page.js");
/// Beyond this size cards contain only titles.
pub(super) const BYTES_MAX: usize = 1_900_000;
/// Rules with full details.
pub(super) const ANATOMIES_MAX: usize = 120;
/// Defects at the top.
const FIRST_MAX: usize = 5;
/// Expanded defects.
const OPEN_MAX: usize = 5;
/// Characters per text.
pub(super) const TEXT_CHARACTERS_MAX: usize = 2_000;

pub(crate) fn render(record: &RunRecord, settings: Settings) -> String {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    // The name's extension enables HTML escaping.
    for (name, text) in [("page.html", PAGE), ("card.html", CARD)] {
        templates
            .add_template(name, text)
            .expect("the templates are well-formed");
    }
    let cards = cards::cards(record, settings);
    let page = |rendered: &RenderedCards| {
        let template = templates.get_template("page.html").expect("it was added");
        let context = context! {
            groups => groups(&cards, record, settings, rendered),
            ..page(record, &cards, settings)
        };
        template
            .render(context)
            .expect("the template uses only what it is given")
    };
    let room = BYTES_MAX.saturating_sub(page(&RenderedCards::default()).len());
    page(&render_cards(&templates, record, &cards, room))
}

#[derive(Default)]
struct RenderedCards {
    by_effect: BTreeMap<Effect, String>,
    /// A sentence about what was left out.
    left: String,
}

/// Renders the cards that fit, and describes what was left out.
fn render_cards(
    templates: &Environment,
    record: &RunRecord,
    cards: &[Card],
    room: usize,
) -> RenderedCards {
    let template = templates.get_template("card.html").expect("it was added");
    let mut by_effect: BTreeMap<Effect, String> = BTreeMap::new();
    let (mut rendered, mut shortened, mut dropped) = (0, 0, 0);
    let mut used = 0;
    for (at, card) in cards.iter().enumerate() {
        let render = |anatomies: usize, depth: Depth| {
            let context = anatomy::card(record, card, at, at < OPEN_MAX, anatomies, depth);
            template
                .render(context)
                .expect("the template uses only what it is given")
        };
        let mut text = render(ANATOMIES_MAX.saturating_sub(rendered), Depth::Full);
        rendered += card.rules.len();
        if used + text.len() > room {
            text = render(0, Depth::Titles);
            shortened += 1;
        }
        if used + text.len() > room {
            dropped += 1;
            continue;
        }
        used += text.len();
        *by_effect.entry(card.effect).or_default() += &text;
    }
    let left = match (shortened, dropped) {
        (0, 0) => String::new(),
        (_, 0) => format!(
            "To limit the size of this page, {shortened} of these show only the titles of their rules. The JSON record has all details."
        ),
        _ => format!(
            "To limit the size of this page, {dropped} further defects are left out. The JSON record has all."
        ),
    };
    RenderedCards { by_effect, left }
}

/// Sections of cards: failures, warnings, advice to clients.
fn groups(
    cards: &[Card],
    record: &RunRecord,
    settings: Settings,
    rendered: &RenderedCards,
) -> Vec<Value> {
    let whole = tally::whole(record, settings);
    let effects = [Effect::Fails, Effect::Warns, Effect::Advises];
    let groups = effects.into_iter().filter_map(|effect| {
        let own = || cards.iter().filter(|card| card.effect == effect);
        let count = own().count();
        let (id, head, name, lead) = match effect {
            Effect::Fails if own().all(Card::is_of_clients) => (
                "defects",
                "Mistakes of clients",
                "Mistakes of clients",
                "These requests are not allowed. No service is at fault.".to_owned(),
            ),
            Effect::Fails => ("defects", "Fix this first", "Fix first", defects_lead(count, &whole)),
            Effect::Warns => (
                "warnings",
                "Warnings",
                "Warnings",
                "Recommendations, or requirements with several readings. They fail the run only with --strict.".to_owned(),
            ),
            Effect::Advises => (
                "advice",
                "Advice to clients",
                "Advice",
                "These requests are allowed but not recommended. No service is at fault.".to_owned(),
            ),
        };
        (count > 0).then(|| {
            context! {
                id, head, name, lead, count, count_said => view::count(count, "defect"), left => "",
                cards => rendered.by_effect.get(&effect).map_or("", String::as_str),
            }
        })
    });
    let mut groups: Vec<Value> = groups.collect();
    if let Some(last) = groups.pop() {
        groups.push(context! { left => rendered.left.as_str(), ..last });
    }
    groups
}

pub(crate) fn hash(source: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(source)))
}

fn page(record: &RunRecord, cards: &[Card], settings: Settings) -> Value {
    let whole = tally::whole(record, settings);
    let history = record.history.as_ref();
    let tallies = tally::services(record, settings);
    let (state, verdict) = top::verdict(record, cards, &whole);
    let not_judged = whole.undecided();
    let judged = whole.judged();
    let percent = (judged * 100).checked_div(record.rules.len()).unwrap_or(0);
    let played = record
        .scenarios
        .iter()
        .filter(|s| s.verdict != Verdict::NotApplicable);
    let cut = played.clone().filter(|s| s.reason == ENDED_BEFORE).count();
    let played = match (played.count(), cut) {
        (all, 0) => scenarios(all),
        (all, cut) => format!(
            "{} of {} run to the end",
            thousands(all - cut),
            scenarios(all)
        ),
    };
    context! {
        style => STYLE, script => SCRIPT, style_hash => hash(STYLE), script_hash => hash(SCRIPT),
        headline => view::conclusion(record, settings),
        state, verdict,
        short => top::short(&whole),
        what_of => top::what_of(record),
        lead => top::lead(cards, &whole, record),
        errors => &record.errors,
        first => cards.iter().take(FIRST_MAX).map(top::first).collect::<Vec<_>>(),
        first_more => (cards.len() > FIRST_MAX).then(|| format!("{} more", cards.len() - FIRST_MAX)),
        parts => services::bar(&whole),
        total_said => thousands(record.rules.len()),
        unjudged => not_judged, unjudged_said => thousands(not_judged),
        judged_percent => percent,
        judged_said => format!(
            "{} of {} rules, in {} and {} exchange{}.",
            thousands(judged), thousands(record.rules.len()),
            played, thousands(record.summary.exchanges),
            if record.summary.exchanges == 1 { "" } else { "s" },
        ),
        left_out => crate::invocation::limits(record),
        detection => top::detection(record),
        no_estimate => view::has_no_estimate(record).then_some(view::NO_ESTIMATE),
        proof => record.proof.as_ref().map(top::proof),
        trend => history.filter(|history| !history.earlier.is_empty()).map(|history| top::trend(history, whole[State::Broken])),
        services => tallies.iter().map(|s| services::service(s, record.wall.is_some())).collect::<Vec<_>>(),
        documents => listing::documents(record, settings),
        waivers => unjudged::waivers(record),
        unjudged_lead => unjudged::unjudged_lead(not_judged),
        needs => unjudged::needs(record),
        open => open::open_points(record),
        open_lead => open::open_lead(history),
        invocation => record.invocation.as_str(),
        facts => facts::facts(record),
        time_said => facts::time_said(record),
        slowest => facts::slowest(record),
        schedule => super::schedule::schedule(record),
        archive => record.archive.as_ref().map(super::archive::archive),
        repeats => record.repeats.as_ref().map(super::repeats::repeats),
        scenarios => super::scenarios::scenarios(record),
        scenarios_said => thousands(record.scenarios.len()),
        build => record.build.as_ref().map(top::build),
    }
}

fn defects_lead(defects: usize, whole: &Tally) -> String {
    let broken = whole[State::Broken];
    let is = if broken == 1 { "rule is" } else { "rules are" };
    format!(
        "{broken} {is} broken, probably by {}. Rules that match the pattern of a fault of the reference are \
         grouped in one card, by urgency. Grouping is a guess and does not affect any \
         verdict.",
        view::count(defects, "defect")
    )
}
