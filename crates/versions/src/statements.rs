//! Compares written rules, levels, unspecified behaviors and scenarios.

use super::coordinates::{Action, Direction, What};
use super::ledger::{Ledger, Note, Subject};
use super::operations::union;
use super::schemas;
use conformant_base::source::Source;
use conformant_record::Level;
use conformant_rulebook::{OpenPointEntry, Origin, Rule, Rulebook};
use serde_json::Value;
use std::collections::BTreeSet;

/// Compares rules, unspecified behaviors and scenarios of both rulebooks.
pub(super) fn compare(ledger: &mut Ledger, old: &Rulebook, new: &Rulebook) {
    let ids: BTreeSet<&String> = old.rules.keys().chain(new.rules.keys()).collect();
    for id in ids.into_iter().cloned() {
        match (old.rules.get(&id), new.rules.get(&id)) {
            (Some(before), Some(after)) => rule(ledger, before, (new, after)),
            (None, Some(after)) if is_written(after) => added(ledger, after, old, new),
            (Some(before), None) if is_lost(before, new) => {
                let note = Note::new(What::Rule, Action::Removed, Direction::Neither)
                    .between(Some(&before.says), None)
                    .binding(before.level == Level::Must);
                ledger.note(&Subject::Rule(id), note);
            }
            // Derived rules change with their source.
            (None | Some(_), None | Some(_)) => {}
        }
    }
    for id in union(&old.open_points, &new.open_points) {
        open_point(
            ledger,
            &id,
            old.open_points.get(&id),
            new.open_points.get(&id),
        );
    }
    scenarios(ledger, old, new);
}

/// Whether an id was removed although its source is still present: waivers and filters may name it.
fn is_lost(rule: &Rule, new: &Rulebook) -> bool {
    match &rule.origin {
        Origin::Written(_) | Origin::Either => true,
        Origin::Property { kind, .. } | Origin::NoOtherFields { kind } => {
            new.kinds.contains_key(kind)
        }
        Origin::Operation { operation }
        | Origin::Parameter { operation, .. }
        | Origin::Credentials { operation }
        | Origin::ListKey { operation }
        | Origin::ListWalk { operation } => new.operation(&rule.service, operation).is_some(),
    }
}

fn is_written(rule: &Rule) -> bool {
    matches!(rule.origin, Origin::Written(_) | Origin::Either)
}

fn added(ledger: &mut Ledger, rule: &Rule, old: &Rulebook, new: &Rulebook) {
    let answers = old.open_points.iter().any(|(id, point)| {
        (*id == rule.id || !new.open_points.contains_key(id))
            && overlap(&point.source, &rule.source)
    });
    let what = if answers {
        What::RuleOnOpenPoint
    } else {
        What::Rule
    };
    let note = Note::new(what, Action::Added, Direction::Neither)
        .between(None, Some(&rule.says))
        .binding(rule.level == Level::Must);
    ledger.note(&Subject::Rule(rule.id.clone()), note);
}

fn overlap(a: &Source, b: &Source) -> bool {
    a.document == b.document && a.lines.iter().any(|line| b.lines.contains(line))
}

fn rule(ledger: &mut Ledger, old: &Rule, (book, new): (&Rulebook, &Rule)) {
    let subject = Subject::Rule(new.id.clone());
    let neither = |what, action| Note::new(what, action, Direction::Neither);
    let binding = old.level == Level::Must || new.level == Level::Must;
    if old.level != new.level {
        let note = match (old.level, new.level) {
            (Level::Open, _) => neither(What::RuleOnOpenPoint, Action::Added),
            // Levels are ordered, the strictest first.
            (a, b) if b < a => neither(What::Level, Action::Narrowed).binding(binding),
            _ => neither(What::Level, Action::Widened).binding(binding),
        };
        let levels = (Some(old.level.word()), Some(new.level.word()));
        ledger.note(&subject, note.between(levels.0, levels.1));
    }
    if !is_written(new) {
        return;
    }
    let (before, after) = (check(old), check(new));
    if before != after {
        let note = match (&before, &after) {
            (Some(a), Some(b)) => limit(a, b).map(|(limit, action)| {
                let is_sent = limit.is_sent
                    || new
                        .kind()
                        .is_some_and(|kind| schemas::direction(book, kind) == Direction::Request);
                let direction = match is_sent {
                    true => Direction::Request,
                    false => Direction::Response,
                };
                Note::new(What::RuleLimit, action, direction).detail(limit.key)
            }),
            (None, _) | (_, None) => None,
        };
        let note = note.unwrap_or_else(|| neither(What::Rule, Action::Changed));
        ledger.note(
            &subject,
            note.between(shown(before), shown(after)).binding(binding),
        );
    } else if old.says != new.says {
        let note = neither(What::Words, Action::Changed);
        ledger.note(&subject, note.between(Some(&old.says), Some(&new.says)));
    }
}

/// The predicate with its parameters.
fn check(rule: &Rule) -> Option<Value> {
    let Origin::Written(check) = &rule.origin else {
        return None;
    };
    serde_json::to_value(check).ok()
}

fn shown(check: Option<Value>) -> Option<String> {
    check.map(|check| check.to_string())
}

/// A parameter of predicates that limits something.
struct Limit {
    key: &'static str,
    is_upper: bool,
    /// Whether it limits what clients send.
    is_sent: bool,
}

const fn limit_of(key: &'static str, is_upper: bool, is_sent: bool) -> Limit {
    Limit {
        key,
        is_upper,
        is_sent,
    }
}

const LIMITS: [Limit; 5] = [
    limit_of("at-most", true, false),
    limit_of("at-least", false, false),
    limit_of("seconds", true, false),
    limit_of("max", true, true),
    limit_of("name-length-max", true, true),
];

/// The limit in which two checks differ, if they differ in nothing else.
fn limit(old: &Value, new: &Value) -> Option<(&'static Limit, Action)> {
    LIMITS.iter().find_map(|limit| {
        let (mut a, mut b) = (old.clone(), new.clone());
        let (before, after) = (take(&mut a, limit.key)?, take(&mut b, limit.key)?);
        if a != b {
            return None;
        }
        let action = match (after > before) == limit.is_upper {
            true => Action::Widened,
            false => Action::Narrowed,
        };
        Some((limit, action))
    })
}

/// Removes a number from the parameters of a check.
fn take(check: &mut Value, key: &str) -> Option<f64> {
    let parameters = check.as_object_mut()?.values_mut();
    let mut found = parameters.filter_map(|p| p.as_object_mut()?.remove(key)?.as_f64());
    found.next()
}

fn open_point(
    ledger: &mut Ledger,
    id: &str,
    old: Option<&OpenPointEntry>,
    new: Option<&OpenPointEntry>,
) {
    let words = |entry: &OpenPointEntry| format!("{} {}", entry.point.says, entry.point.treatment);
    let (before, after) = (old.map(words), new.map(words));
    if let Some(action) = Action::of(before.as_ref(), after.as_ref()) {
        let note = Note::new(What::OpenPoint, action, Direction::Neither).between(before, after);
        ledger.note(&Subject::OpenPoint(id.to_owned()), note);
    }
}

fn scenarios(ledger: &mut Ledger, old: &Rulebook, new: &Rulebook) {
    for service in union(&old.services, &new.services) {
        let of = |rulebook: &Rulebook| {
            let service = rulebook.services.get(&service);
            service.map_or_else(Default::default, |s| s.scenarios.clone())
        };
        let (before, after) = (of(old), of(new));
        for id in union(&before, &after) {
            // Only the scenario: its position in the file does not matter.
            let (a, b) = (before.get(&id).map(|s| &s.0), after.get(&id).map(|s| &s.0));
            let [old, new] = [a, b].map(|scenario| scenario.map(|s| format!("{s:?}")));
            if let Some(action) = Action::of(old.as_ref(), new.as_ref()) {
                let note = Note::new(What::Scenario, action, Direction::Neither);
                let note = note.between(a.map(|s| &s.says), b.map(|s| &s.says));
                ledger.note(&Subject::Scenario(id), note);
            }
        }
    }
}
