//! Summarizes observations of unspecified behavior: values and shapes with counts.

use super::view;
use conformant_base::text;
use std::collections::BTreeMap;

/// Values per point.
const VALUES_MAX: usize = 12;

/// Values with their counts, and a summary of the shapes.
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
        said.push(format!("{more} more"));
    }
    (said, shapes_said(&shapes))
}

/// `10 shapes: 20 fields always, 6 sometimes`.
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
        said += &format!(", {at_times} sometimes");
    }
    (!shapes.is_empty()).then_some(said)
}

/// Field names of a shape such as `{a: string, b: {c: number}}`.
fn fields(shape: &str) -> Vec<&str> {
    let parts = shape.split(['{', '}', ',', '[', ']']);
    parts
        .filter_map(|part| Some(part.split_once(':')?.0.trim()))
        .filter(|name| !name.is_empty())
        .collect()
}
