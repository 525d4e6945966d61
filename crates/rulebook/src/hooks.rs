//! The hooks: what people and devices do, with the arguments that scenarios may give.
//!
//! Services declare theirs in `service.yaml`; those that the harness itself calls stand here. How they are carried out is
//! configuration, and `specs/README.md` says what each one means and returns.

use super::model::Does;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::LazyLock;

/// One hook.
#[derive(Clone, Debug, Default)]
pub struct Hook {
    /// Its name in scenarios and in the configuration.
    pub name: String,
    /// Arguments that must be given.
    pub required: Vec<String>,
    /// Arguments that may be given.
    pub optional: Vec<String>,
    /// True when it takes further arguments of any name.
    pub open: bool,
    /// What it does to resources.
    pub effects: Vec<Effect>,
    /// True when anything may be different afterwards.
    pub opens_all: bool,
    /// What its result must have.
    pub result: Vec<String>,
}

impl Hook {
    /// Whether its result holds events: a list under `events`, each with `type` and `payload`.
    pub fn collects_events(&self) -> bool {
        self.result.iter().any(|member| member == "events")
    }
}

/// What a hook does to resources of one type; where it names none, it may be any of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// What it does.
    pub does: Does,
    /// To resources of this type.
    pub kind: String,
    /// The result or argument with the key.
    pub key: Option<String>,
    /// The argument with a name of the resource.
    pub name: Option<String>,
    /// What it is within.
    pub within: Option<Scope>,
}

/// What a resource is within.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Its type.
    pub kind: String,
    /// The argument with its key.
    pub key: String,
}

/// The hooks of the harness: time, reservations, callbacks and a fresh target.
pub fn built_in() -> &'static [Hook] {
    static HOOKS: LazyLock<[Hook; 4]> = LazyLock::new(|| {
        let hook = |name: &str, required: &[&str]| Hook {
            name: name.to_owned(),
            required: required.iter().map(|name| (*name).to_owned()).collect(),
            ..Hook::default()
        };
        [
            hook("advance_clock", &["seconds"]),
            hook("lease", &["owner", "seconds"]),
            hook("call_back", &["url"]),
            Hook {
                opens_all: true,
                ..hook("reset", &[])
            },
        ]
    });
    &*HOOKS
}

#[cfg(test)]
mod tests {
    use crate::service::ServiceIndex;

    /// The table in the authoring guide and the files name the same hooks and arguments.
    #[test]
    fn the_guide_and_the_list_agree() {
        let guide = conformant_specs::text("README.md");
        let index = ServiceIndex::embedded();
        for hook in index.hooks() {
            let row = guide
                .lines()
                .find(|l| l.starts_with("| `") && l.contains(&format!("`{}`", hook.name)))
                .unwrap_or_else(|| panic!("{} is not in specs/README.md", hook.name));
            let arguments: Vec<String> = row
                .split('|')
                .nth(2)
                .unwrap()
                .split('`')
                .skip(1)
                .step_by(2)
                .flat_map(|cell| cell.split(", "))
                .map(|argument| argument.trim_matches(['`', ' ']).to_owned())
                .collect();
            for name in &hook.required {
                assert!(arguments.contains(name), "{}: {name}", hook.name);
            }
            for name in &hook.optional {
                assert!(
                    arguments.contains(&format!("{name}?")),
                    "{}: {name}?",
                    hook.name
                );
            }
        }
        let rows = guide.lines().skip_while(|l| !l.starts_with("## Hooks"));
        let named: usize = rows
            .take_while(|l| !l.starts_with("## Open points"))
            .filter(|l| l.starts_with("| `"))
            .map(|l| l.split('|').nth(1).unwrap().matches('`').count() / 2)
            .sum();
        assert_eq!(named, index.hooks().count());
    }
}
