//! Tables as pages without a script: implementations, and versions of an event.

use super::Matrix;
use crate::html::hash;
use conformant_base::page::STYLE;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value, context};

const LAYOUT: &str = include_str!("layout.html");
const PAGE: &str = include_str!("matrix.html");
const PAGE_OF_VERSIONS: &str = include_str!("versions.html");
const STYLE_OF_TABLES: &str = ".m { overflow-x: auto; } .m th[scope=row] { color: var(--ink); } \
     .m .of th { padding-left: 2.2rem; color: var(--soft); font-weight: 400; } .m td .tag { white-space: normal; }";

pub(super) fn render(matrix: &Matrix) -> String {
    let context = context! {
        title => matrix.title(),
        differing_note => matrix.differing_note(),
        ..Serde(matrix)
    };
    fill(PAGE, context)
}

/// A page with the versions of an event: for each reader whether it reads each writer, and what is not read.
pub fn versions_page(
    event: &str,
    versions: &[&str],
    readers: &[(&str, Vec<bool>)],
    reasons: &[String],
) -> String {
    let rows = readers
        .iter()
        .map(|(name, cells)| context! { name => *name, cells => cells.clone() });
    let context = context! {
        title => format!("Versions of {event}"),
        event,
        versions => versions.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>(),
        rows => rows.collect::<Vec<_>>(),
        reasons => reasons.to_vec(),
    };
    fill(PAGE_OF_VERSIONS, context)
}

fn fill(page: &str, content: Value) -> String {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    // The name's extension enables HTML escaping.
    for (name, source) in [("layout.html", LAYOUT), ("page.html", page)] {
        templates
            .add_template(name, source)
            .expect("the template is well-formed");
    }
    let template = templates.get_template("page.html").expect("it was added");
    let style = format!("{STYLE}{STYLE_OF_TABLES}");
    let context = context! { style_hash => hash(&style), style, ..content };
    template
        .render(context)
        .expect("the template uses only what it is given")
}
