//! `list`: what there is, a line or a JSON object each.

use super::args::{ListArgs, ListFormat, Listed};
use super::{Done, Exit, Failure, glossary, load_to_tell, say};
use crate::engine::plan;
use crate::reference::{Fault, Variant};
use crate::rulebook::{self, Rule, Rulebook};
use serde_json::{Value, json};

pub(super) fn list(args: &ListArgs) -> Done {
    let rulebook = load_to_tell(&args.specs, args.what == Listed::Scenarios)?;
    let wanted =
        |id: &str| args.filters.is_empty() || args.filters.iter().any(|f| crate::text::glob(f, id));
    let mut rows = rows(&rulebook, args.what);
    rows.retain(|row| wanted(row["id"].as_str().unwrap_or_default()));
    match args.format {
        ListFormat::Json => {
            let text = serde_json::to_string_pretty(&rows)
                .map_err(|e| Failure::Trouble(format!("the list could not be written: {e}")))?;
            say(&format!("{text}\n"));
        }
        ListFormat::Text => say(&table(&rows)),
    }
    Ok(Exit::Conformant)
}

fn named(all: Vec<(String, String)>) -> Vec<Value> {
    all.into_iter()
        .map(|(id, says)| json!({"id": id, "says": says}))
        .collect()
}

fn of_rules<'r>(rules: impl Iterator<Item = &'r Rule>) -> Vec<Value> {
    let row = |rule: &Rule| {
        json!({
            "id": rule.id, "says": rule.says, "level": rule.level, "basis": rule.basis,
            "source": rule.source,
        })
    };
    rules.map(row).collect()
}

/// Rows with `id` and `says` first, whatever else there is behind them.
fn rows(rulebook: &Rulebook, what: Listed) -> Vec<Value> {
    match what {
        Listed::Rules => of_rules(rulebook.rules.values()),
        Listed::Requests => of_rules(rulebook.requests.values()),
        Listed::Operations => rulebook
            .services
            .values()
            .flat_map(|service| service.operations.values())
            .map(|operation| {
                let path = operation.path_from.as_ref().map_or_else(
                    || operation.path.clone(),
                    |key| format!("<{key} of the configuration>"),
                );
                json!({
                    "id": format!("{}/{}", operation.service, operation.id), "says": operation.summary,
                    "method": operation.method, "path": path, "source": operation.source,
                })
            })
            .collect(),
        Listed::Scenarios => plan::all(rulebook)
            .iter()
            .map(|p| json!({"id": p.scenario.id, "says": p.scenario.says}))
            .collect(),
        Listed::OpenPoints => rulebook
            .open_points
            .values()
            .map(|entry| {
                json!({
                    "id": entry.point.id, "says": entry.point.says,
                    "treatment": entry.point.treatment, "source": entry.source,
                })
            })
            .collect(),
        Listed::Faults => Fault::ALL.iter().map(|f| json!({"id": f.id(), "says": f.says()})).collect(),
        Listed::Variants => Variant::ALL.iter().map(|v| json!({"id": v.id(), "says": v.says()})).collect(),
        Listed::Hooks => rulebook::hooks::HOOKS
            .iter()
            .map(|hook| {
                let mut arguments: Vec<String> = hook.required.iter().map(|a| (*a).to_owned()).collect();
                arguments.extend(hook.optional.iter().map(|a| format!("{a}?")));
                json!({"id": hook.name, "says": arguments.join(", ")})
            })
            .collect(),
        Listed::Events => rulebook
            .event_types
            .iter()
            .map(|(name, schema)| match schema {
                Some(schema) => json!({"id": name, "says": format!("carries {schema}"), "schema": schema}),
                None => json!({"id": name, "says": "no document shows its payload", "schema": null}),
            })
            .collect(),
        Listed::Keys => named(glossary::keys()),
        Listed::Causes => named(glossary::causes()),
        Listed::Kinds => rulebook
            .kinds
            .values()
            .map(|kind| {
                let says = kind.schema.get("description").and_then(Value::as_str).unwrap_or_default();
                json!({"id": kind.name, "says": says})
            })
            .collect(),
    }
}

fn table(rows: &[Value]) -> String {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let width = rows
        .iter()
        .map(|row| text(row, "id").chars().count())
        .max()
        .unwrap_or_default();
    rows.iter()
        .map(|row| {
            let line = format!("{:width$}  {}", text(row, "id"), text(row, "says"));
            format!("{}\n", line.trim_end())
        })
        .collect()
}
