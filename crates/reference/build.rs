//! Makes the enums of the switches from `faults.json` and `variants.json`.
//!
//! Reads their names and texts only: `src/effects.rs` reads the effects.

use serde_json::{Map, Value};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes the folder in the environment"
)]
fn main() -> Result<(), Box<dyn Error>> {
    let out = std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    let mut code = String::new();
    for (name, file, doc) in [
        (
            "Fault",
            "faults.json",
            "A deliberate defect; its id begins with the service it is in.",
        ),
        (
            "Variant",
            "variants.json",
            "An allowed variation with its id and its behavior.",
        ),
    ] {
        let groups: Map<String, Value> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
        writeln!(code, "switches! {{\n    /// {doc}\n    {name} {{")?;
        for (id, row) in groups.values().filter_map(Value::as_object).flatten() {
            let says = row.as_str().or_else(|| row["says"].as_str());
            let says = says.ok_or_else(|| format!("{file}: `{id}` has no text"))?;
            writeln!(code, "        {} = {id:?}: {says:?},", variant_name(id))?;
        }
        code.push_str("    }\n}\n");
    }
    Ok(std::fs::write(Path::new(&out).join("switches.rs"), code)?)
}

/// `FlowNameNull` for `flow/name-null`.
fn variant_name(id: &str) -> String {
    let words = id.split(['/', '-']);
    words
        .map(|word| word[..1].to_uppercase() + &word[1..])
        .collect()
}
