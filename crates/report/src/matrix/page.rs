//! The table as a page.

use super::{Cell, Column, Matrix, Row, ServiceRows, State};
use crate::html::hash;
use conformant_base::page::STYLE;
use minijinja::{Environment, UndefinedBehavior, Value, context};

const PAGE: &str = include_str!("matrix.html");
const STYLE_OF_TABLES: &str = ".m { overflow-x: auto; } .m th[scope=row] { color: var(--ink); } \
     .m .of th { padding-left: 2.2rem; color: var(--soft); font-weight: 400; } .m td .tag { white-space: normal; }";

pub(super) fn render(matrix: &Matrix) -> String {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    // The name's extension enables HTML escaping.
    templates
        .add_template("matrix.html", PAGE)
        .expect("the template is well-formed");
    let template = templates.get_template("matrix.html").expect("it was added");
    let style = format!("{STYLE}{STYLE_OF_TABLES}");
    let context = context! {
        style_hash => hash(&style),
        style,
        notes => matrix.notes.clone(),
        columns => values(&matrix.columns, column),
        services => values(&matrix.services, service),
    };
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
