//! Tables as pages without a script: implementations, and versions of an event.

use super::{Cell, Column, Matrix, Row, ServiceRows, State};
use crate::html::hash;
use conformant_base::page::STYLE;
use minijinja::{Environment, UndefinedBehavior, Value, context};

const LAYOUT: &str = include_str!("layout.html");
const PAGE: &str = include_str!("matrix.html");
const PAGE_OF_VERSIONS: &str = include_str!("versions.html");
const STYLE_OF_TABLES: &str = ".m { overflow-x: auto; } .m th[scope=row] { color: var(--ink); } \
     .m .of th { padding-left: 2.2rem; color: var(--soft); font-weight: 400; } .m td .tag { white-space: normal; }";

pub(super) fn render(matrix: &Matrix) -> String {
    let context = context! {
        title => matrix.title(),
        differing => values(&matrix.differing, row),
        differing_note => matrix.differing_note(),
        notes => matrix.notes.clone(),
        columns => values(&matrix.columns, column),
        services => values(&matrix.services, service),
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
    let row = |(name, cells): &(&str, Vec<bool>)| {
        context! { name => (*name).to_owned(), cells => cells.clone() }
    };
    let context = context! {
        title => format!("Versions of {event}"),
        event => event.to_owned(),
        versions => versions.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>(),
        rows => values(readers, row),
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

fn values<T>(items: &[T], value: impl Fn(&T) -> Value) -> Vec<Value> {
    items.iter().map(value).collect()
}

fn column(column: &Column) -> Value {
    context! {
        name => column.name.clone(),
        verdict => column.verdict.clone(),
        state => class(column.state),
        facts => column.facts.clone(),
    }
}

fn service(service: &ServiceRows) -> Value {
    context! {
        name => service.name.clone(),
        cells => values(&service.cells, cell),
        features => values(&service.features, row),
        groups => values(&service.groups, row),
    }
}

fn row(row: &Row) -> Value {
    context! { name => row.name.clone(), cells => values(&row.cells, cell) }
}

fn cell(cell: &Cell) -> Value {
    context! { state => class(cell.state), text => cell.text.clone() }
}

/// The class in the style sheet.
const fn class(state: State) -> &'static str {
    match state {
        State::Pass => "pass",
        State::Fail => "fail",
        State::Warn => "warn",
        State::NotJudged => "not-judged",
    }
}
