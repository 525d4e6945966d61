//! Unspecified behavior: observations and changes since the last run.

use crate::points;
use crate::view;
use conformant_record::{History, OpenPointResult, RunRecord};
use minijinja::{Value, context};
use std::collections::BTreeMap;

pub(super) fn open_lead(history: Option<&History>) -> String {
    let changed = history.map_or(0, |history| history.changed.len());
    let moved = match changed {
        0 => String::new(),
        n => format!(" {n} changed since the last run, which may affect clients."),
    };
    format!(
        "Behavior that the documents leave unspecified always passes. These are the observations.{moved}"
    )
}

pub(super) fn open_points(record: &RunRecord) -> Vec<Value> {
    let mut groups: BTreeMap<&str, Vec<&OpenPointResult>> = BTreeMap::new();
    for point in &record.open_points {
        groups
            .entry(view::service(&point.id))
            .or_default()
            .push(point);
    }
    let history = record.history.as_ref();
    let is_changed = |id: &String| history.is_some_and(|history| history.changed.contains(id));
    let listed = groups.into_iter().map(|(name, mut points)| {
        // Changes first.
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
    listed.collect()
}
