//! Generates a new lock from the sources of rules and open points, and from the classification of the old lock.

use super::documents::read;
use super::lock::{Class, cited, format_line, parse_lock};
use super::problem::TraceProblem;
use super::unit::{Unit, UnitPlace};
use crate::Rulebook;
use conformant_base::sorted::SortedMap;
use conformant_base::source::Source;
use std::collections::BTreeSet;
use std::path::Path;

/// Generates a new lock: rules and open points by their sources, definitions and narrative as in
/// the old lock, everything else unclassified.
pub fn propose(
    documents: &Path,
    rulebook: &Rulebook,
    lock: &str,
) -> Result<String, Vec<TraceProblem>> {
    let mut problems = Vec::new();
    let documents = read(documents, &rulebook.index, &mut problems);
    let old = parse_lock(lock, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let sources = sources(rulebook);
    let mut text = String::new();
    for unit in &documents.units {
        let class = propose_class(unit, &old, &sources, rulebook);
        text.push_str(&format_line(unit, &class));
    }
    Ok(text)
}

fn propose_class(
    unit: &Unit,
    old: &[(UnitPlace, String, Class)],
    sources: &SortedMap<&str, (&Source, bool)>,
    rulebook: &Rulebook,
) -> Class {
    let same = |entry: &&(UnitPlace, String, Class)| {
        entry.0.document == unit.document && entry.1 == unit.hash
    };
    let known = old
        .iter()
        .filter(same)
        .min_by_key(|(place, _, _)| place.line.abs_diff(unit.line));
    if let Some((_, _, class @ (Class::Definition | Class::Narrative))) = known {
        return class.clone();
    }
    let names =
        |source: &Source| source.document == unit.document && source.lines.contains(&unit.line);
    // For a line with several sentences, the old lock may assign a rule to one of them.
    let settled: BTreeSet<&str> = old
        .iter()
        .filter(|(place, _, _)| place.document == unit.document && place.line == unit.line)
        .flat_map(|(_, _, class)| cited(class))
        .collect();
    let kept: BTreeSet<&str> = known
        .iter()
        .flat_map(|(_, _, class)| cited(class))
        .collect();
    let (mut rules, mut open) = (Vec::new(), Vec::new());
    // Rules about clients have the same sources as others: they are included only if the old lock has them.
    let clients = kept.iter().filter_map(|id| rulebook.requests.get(*id));
    rules.extend(clients.filter(|r| names(&r.source)).map(|r| r.id.clone()));
    for (id, (source, is_open)) in sources {
        if names(source) && (kept.contains(id) || !settled.contains(id)) {
            if *is_open {
                open.push((*id).to_owned());
            } else {
                rules.push((*id).to_owned());
            }
        }
    }
    rules.sort();
    if rules.is_empty() && open.is_empty() {
        Class::Unclassified
    } else {
        Class::Cited { rules, open }
    }
}

/// Sources of rules and open points, by id.
pub(super) fn sources(rulebook: &Rulebook) -> SortedMap<&str, (&Source, bool)> {
    let open = rulebook.open_points.iter();
    let open = open.map(|(id, point)| (id.as_str(), (&point.source, true)));
    let rules = rulebook.rules.iter();
    let rules = rules
        .filter(|(id, _)| !rulebook.open_points.contains_key(*id))
        .map(|(id, rule)| (id.as_str(), (&rule.source, false)));
    rules.chain(open).collect()
}
