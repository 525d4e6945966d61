//! Compares written rules, levels, unspecified behaviors and scenarios.

use super::coordinates::{Action, Direction, What};
use super::ledger::{Ledger, Note, Subject};
use super::operations::union;
use conformant_base::source::Source;
use conformant_record::Level;
use conformant_rulebook::{OpenPointEntry, Origin, Rule, Rulebook};
use std::collections::BTreeSet;

/// Compares rules, unspecified behaviors and scenarios of both rulebooks.
pub(super) fn compare(ledger: &mut Ledger, old: &Rulebook, new: &Rulebook) {
    let ids: BTreeSet<&String> = old.rules.keys().chain(new.rules.keys()).collect();
    for id in ids.into_iter().cloned() {
        match (old.rules.get(&id), new.rules.get(&id)) {
            (Some(before), Some(after)) => rule(ledger, before, after),
            (None, Some(after)) if is_written(after) => added(ledger, after, old, new),
            (Some(before), None) if is_lost(before, new) => {
                let note = Note::new(What::Rule, Action::Removed, Direction::Neither)
                    .between(Some(before.says.clone()), None)
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
    match rule.origin {
        Origin::Written(_) | Origin::Either => true,
        Origin::Property { .. }
        | Origin::NoOtherFields { .. }
        | Origin::Operation { .. }
        | Origin::Parameter { .. }
        | Origin::Credentials { .. }
        | Origin::ListKey { .. }
        | Origin::ListWalk { .. } => false,
    }
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
        .between(None, Some(rule.says.clone()))
        .binding(rule.level == Level::Must);
    ledger.note(&Subject::Rule(rule.id.clone()), note);
}

fn overlap(a: &Source, b: &Source) -> bool {
    a.document == b.document && a.lines.iter().any(|line| b.lines.contains(line))
}

fn rule(ledger: &mut Ledger, old: &Rule, new: &Rule) {
    let subject = Subject::Rule(new.id.clone());
    let neither = |what, action| Note::new(what, action, Direction::Neither);
    let binding = old.level == Level::Must || new.level == Level::Must;
    if old.level != new.level {
        let levels = (Some(word(old.level)), Some(word(new.level)));
        let note = match (old.level, new.level) {
            (Level::Open, _) => neither(What::RuleOnOpenPoint, Action::Added),
            // Levels are ordered, the strictest first.
            (a, b) if b < a => neither(What::Level, Action::Narrowed).binding(binding),
            _ => neither(What::Level, Action::Widened).binding(binding),
        };
        ledger.note(&subject, note.between(levels.0, levels.1));
    }
    if !is_written(new) {
        return;
    }
    let (before, after) = (check(old), check(new));
    if before != after {
        let note = neither(What::Rule, Action::Changed)
            .between(before, after)
            .binding(binding);
        ledger.note(&subject, note);
    } else if old.says != new.says {
        let says = (Some(old.says.clone()), Some(new.says.clone()));
        ledger.note(
            &subject,
            neither(What::Words, Action::Changed).between(says.0, says.1),
        );
    }
}

fn word(level: Level) -> String {
    level.word().to_owned()
}

/// The predicate with its parameters, as JSON.
fn check(rule: &Rule) -> Option<String> {
    match &rule.origin {
        Origin::Written(check) => serde_json::to_string(check).ok(),
        Origin::Either
        | Origin::Property { .. }
        | Origin::NoOtherFields { .. }
        | Origin::Operation { .. }
        | Origin::Parameter { .. }
        | Origin::Credentials { .. }
        | Origin::ListKey { .. }
        | Origin::ListWalk { .. } => None,
    }
}

fn open_point(
    ledger: &mut Ledger,
    id: &str,
    old: Option<&OpenPointEntry>,
    new: Option<&OpenPointEntry>,
) {
    let words = |entry: &OpenPointEntry| format!("{} {}", entry.point.says, entry.point.treatment);
    let (before, after) = (old.map(words), new.map(words));
    let action = match (&before, &after) {
        (a, b) if a == b => return,
        (None, _) => Action::Added,
        (_, None) => Action::Removed,
        (Some(_), Some(_)) => Action::Changed,
    };
    let note = Note::new(What::OpenPoint, action, Direction::Neither).between(before, after);
    ledger.note(&Subject::OpenPoint(id.to_owned()), note);
}

fn scenarios(ledger: &mut Ledger, old: &Rulebook, new: &Rulebook) {
    for service in union(&old.services, &new.services) {
        let empty = std::collections::BTreeMap::new();
        let of = |rulebook: &Rulebook| {
            rulebook
                .services
                .get(&service)
                .map_or_else(|| empty.clone(), |s| s.scenarios.clone())
        };
        let (before, after) = (of(old), of(new));
        for id in union(&before, &after) {
            // Only the scenario: its position in the file does not matter.
            let (a, b) = (before.get(&id).map(|s| &s.0), after.get(&id).map(|s| &s.0));
            let action = match (a, b) {
                (None, _) => Action::Added,
                (_, None) => Action::Removed,
                (Some(a), Some(b)) if format!("{a:?}") == format!("{b:?}") => continue,
                (Some(_), Some(_)) => Action::Changed,
            };
            let note = Note::new(What::Scenario, action, Direction::Neither)
                .between(a.map(|s| s.says.clone()), b.map(|s| s.says.clone()));
            ledger.note(&Subject::Scenario(id), note);
        }
    }
}
