//! `list`: prints one line or JSON object for each item.

use super::args::{ListArgs, ListFormat, Listed};
use super::{Done, Exit, Failure, as_json, glossary, load_to_tell, print};
use conformant_base::source::Source;
use conformant_base::text;
use conformant_engine::plan;
use conformant_record::{Basis, Level};
use conformant_reference::{Fault, Variant};
use conformant_rulebook::hooks::Hook;
use conformant_rulebook::{Operation, Rule, Rulebook};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// An item: `id` and `says` first, then the others.
#[derive(Serialize)]
struct Row<'r> {
    id: Cow<'r, str>,
    says: Cow<'r, str>,
    #[serde(flatten)]
    more: ExtraColumns<'r>,
}

/// Members of the JSON object only.
#[derive(Serialize)]
#[serde(untagged)]
enum ExtraColumns<'r> {
    Nothing {},
    Rule {
        level: Level,
        basis: Basis,
        source: &'r Source,
    },
    Operation {
        method: &'r str,
        path: Cow<'r, str>,
        source: &'r Source,
    },
    OpenPoint {
        treatment: &'r str,
        source: &'r Source,
    },
    Event {
        schema: Option<&'r str>,
    },
}

pub(super) fn list(args: &ListArgs) -> Done {
    let rulebook = load_to_tell(&args.specs, args.what == Listed::Scenarios)?;
    let mut rows = rows(&rulebook, args.what);
    let filters = args.filters.as_slice();
    rows.retain(|row| filters.is_empty() || filters.iter().any(|f| text::glob(f, &row.id)));
    if rows.is_empty() && !args.filters.is_empty() {
        return Err(Failure::Usage(format!(
            "no id matches --filter {}: expected a glob over whole ids, such as `flow/*` (`conformant explain NAME` \
             finds ids by a part of their name)",
            args.filters.join(" ")
        )));
    }
    match args.format {
        ListFormat::Json => print(&as_json(&rows)?),
        ListFormat::Text => print(&table(&rows, &rulebook)),
    }
    Ok(Exit::Conformant)
}

impl<'r> Row<'r> {
    fn new(id: impl Into<Cow<'r, str>>, says: impl Into<Cow<'r, str>>) -> Self {
        Self {
            id: id.into(),
            says: says.into(),
            more: ExtraColumns::Nothing {},
        }
    }

    fn with(self, more: ExtraColumns<'r>) -> Self {
        Self { more, ..self }
    }
}

fn named_rows(all: Vec<(String, String)>) -> Vec<Row<'static>> {
    all.into_iter()
        .map(|(id, says)| Row::new(id, says))
        .collect()
}

fn of_rules<'r>(rules: impl Iterator<Item = &'r Rule>) -> Vec<Row<'r>> {
    let row = |rule: &'r Rule| {
        Row::new(&rule.id, &rule.says).with(ExtraColumns::Rule {
            level: rule.level,
            basis: rule.basis,
            source: &rule.source,
        })
    };
    rules.map(row).collect()
}

fn of_operation(operation: &Operation) -> Row<'_> {
    let path = match &operation.path_from {
        Some(key) => format!("<{key} of the configuration>").into(),
        None => operation.path.as_str().into(),
    };
    let id = format!("{}/{}", operation.service, operation.id);
    Row::new(id, &operation.summary).with(ExtraColumns::Operation {
        method: &operation.method,
        path,
        source: &operation.source,
    })
}

fn of_event<'r>(name: &'r str, schema: Option<&'r str>) -> Row<'r> {
    let says = schema.map_or_else(
        || "the documents do not describe its payload".into(),
        |schema| Cow::from(format!("carries {schema}")),
    );
    Row::new(name, says).with(ExtraColumns::Event { schema })
}

fn of_hook(hook: &Hook) -> Row<'_> {
    let mut arguments: Vec<String> = hook.required.clone();
    arguments.extend(hook.optional.iter().map(|a| format!("{a}?")));
    Row::new(hook.name.as_str(), arguments.join(", "))
}

fn rows(rulebook: &Rulebook, what: Listed) -> Vec<Row<'_>> {
    match what {
        Listed::Rules => of_rules(rulebook.rules.values()),
        Listed::Requests => of_rules(rulebook.requests.values()),
        Listed::Operations => {
            let services = rulebook.services.values();
            let operations = services.flat_map(|service| service.operations.values());
            operations.map(of_operation).collect()
        }
        Listed::Scenarios => plan::all(rulebook)
            .into_iter()
            .map(|p| Row::new(p.scenario.id.clone(), p.scenario.says.clone()))
            .collect(),
        Listed::OpenPoints => rulebook
            .open_points
            .values()
            .map(|entry| {
                Row::new(&entry.point.id, &entry.point.says).with(ExtraColumns::OpenPoint {
                    treatment: &entry.point.treatment,
                    source: &entry.source,
                })
            })
            .collect(),
        Listed::Faults => Fault::ALL
            .iter()
            .map(|f| Row::new(f.id(), f.says()))
            .collect(),
        Listed::Variants => Variant::ALL
            .iter()
            .map(|v| Row::new(v.id(), v.says()))
            .collect(),
        Listed::Hooks => rulebook.index.hooks().map(of_hook).collect(),
        Listed::Events => rulebook
            .event_types
            .iter()
            .map(|(name, schema)| of_event(name, schema.as_deref()))
            .collect(),
        Listed::Keys => named_rows(glossary::keys()),
        Listed::Causes => named_rows(glossary::causes()),
        Listed::Kinds => rulebook
            .kinds
            .values()
            .map(|kind| {
                let says = kind.schema.get("description").and_then(Value::as_str);
                Row::new(&kind.name, says.unwrap_or_default())
            })
            .collect(),
    }
}

/// One line for each item. Rules have their source; its document is named where it comes first.
fn table(rows: &[Row<'_>], rulebook: &Rulebook) -> String {
    let ids = rows.iter().map(|row| row.id.chars().count());
    let width = ids.max().unwrap_or_default();
    let mut titles = rulebook.index.documents();
    let mut table = String::new();
    for row in rows {
        let mut line = format!("{:width$}  {}", row.id, row.says);
        if let ExtraColumns::Rule { source, .. } = &row.more {
            let lines: Vec<String> = source.lines.iter().map(u32::to_string).collect();
            let title = titles.remove(&source.document);
            let title = title.map_or_else(String::new, |title| format!(" \"{title}\""));
            line += &format!(" ({}{title} {})", source.document, lines.join(", "));
        }
        table.push_str(line.trim_end());
        table.push('\n');
    }
    table
}
