//! What was observed of an open point, as people read it: values with a count, shapes counted and never
//! printed raw. Judges nothing: the documents leave these questions open.

use super::view;
use conformant_base::text;
use std::collections::BTreeMap;

/// Values of one open point.
const VALUES_MAX: usize = 12;

/// Observations as values with a count of the operations; shapes are counted, never printed raw.
pub(super) fn observed(observed: &[String]) -> (Vec<String>, Option<String>) {
    let mut values: BTreeMap<&str, usize> = BTreeMap::new();
    let mut shapes: Vec<Vec<&str>> = Vec::new();
    for one in observed {
        let value = one
            .split_once(": ")
            .map_or(one.as_str(), |(_, value)| value);
        if value.starts_with(['{', '[']) && value.len() > 2 {
            shapes.push(fields(value));
        } else {
            *values.entry(value).or_default() += 1;
        }
    }
    let more = values.len().saturating_sub(VALUES_MAX);
    let mut said: Vec<String> = values
        .into_iter()
        .take(VALUES_MAX)
        .map(|(value, count)| {
            let value = text::excerpt(value, 80);
            if count > 1 {
                format!("{value} ×{count}")
            } else {
                value.into_owned()
            }
        })
        .collect();
    if more > 0 {
        said.push(format!("and {more} more"));
    }
    (said, shapes_said(&shapes))
}

/// `10 shapes: 20 fields always, 6 at times`.
fn shapes_said(shapes: &[Vec<&str>]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for shape in shapes {
        let mut own = shape.clone();
        own.sort_unstable();
        own.dedup();
        for field in own {
            *counts.entry(field).or_default() += 1;
        }
    }
    let always = counts
        .values()
        .filter(|count| **count == shapes.len())
        .count();
    let at_times = counts.len() - always;
    let mut said = format!(
        "{}: {} always",
        view::count(shapes.len(), "shape"),
        view::count(always, "field")
    );
    if at_times > 0 {
        said += &format!(", {at_times} at times");
    }
    (!shapes.is_empty()).then_some(said)
}

/// Names of the fields in a shape such as `{a: string, b: {c: number}}`.
fn fields(shape: &str) -> Vec<&str> {
    let parts = shape.split(['{', '}', ',', '[', ']']);
    parts
        .filter_map(|part| Some(part.split_once(':')?.0.trim()))
        .filter(|name| !name.is_empty())
        .collect()
}
