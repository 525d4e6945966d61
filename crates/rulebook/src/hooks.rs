//! Hooks: actions of people and devices, with their arguments.
//!
//! Services declare their hooks in `service.yaml`; the harness's own hooks are here. The configuration defines how they are executed,
//! and `specs/README.md` documents their meaning and result.

use super::model::Action;
use conformant_base::sorted::SortedMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

#[derive(Clone, Debug, Default)]
pub struct Hook {
    /// Its name in scenarios and in the configuration.
    pub name: String,
    /// Arguments that must be given.
    pub required: Vec<String>,
    /// Arguments that may be given.
    pub optional: Vec<String>,
    /// Whether it accepts further arguments of any name.
    pub open: bool,
    pub effects: Vec<Effect>,
    /// Whether it may change any resource.
    pub opens_all: bool,
    /// Members that its result must have.
    pub result: Vec<String>,
    /// Allowed values, by argument.
    pub values: SortedMap<String, Vec<Value>>,
    /// The arguments of a call that changes nothing.
    pub probe: Option<Map<String, Value>>,
}

impl Hook {
    /// Whether its result holds events: a list under `events`, each with `type` and `payload`.
    pub fn collects_events(&self) -> bool {
        self.result.iter().any(|member| member == "events")
    }
}

/// The effect of a hook on a resource of one type. Without a key or name, any resource may be affected.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// The kind of effect.
    pub does: Action,
    /// The resource type.
    pub kind: String,
    /// The result or argument with the key.
    pub key: Option<String>,
    /// The argument with a name of the resource.
    pub name: Option<String>,
    /// The parent.
    pub within: Option<Scope>,
}

/// A parent of a resource.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Its type.
    pub kind: String,
    /// The argument with its key.
    pub key: String,
}

/// The hook that moves the target's clock.
pub const ADVANCE_CLOCK: &str = "advance_clock";

/// The harness's own hooks: clock, leases, callbacks and a fresh target.
pub fn built_in() -> &'static [Hook] {
    static HOOKS: LazyLock<[Hook; 4]> = LazyLock::new(|| {
        let hook = |name: &str, required: &[&str]| Hook {
            name: name.to_owned(),
            required: required.iter().map(|name| (*name).to_owned()).collect(),
            ..Hook::default()
        };
        let probed = |hook: Hook, arguments: Value| Hook {
            probe: arguments.as_object().cloned(),
            ..hook
        };
        [
            probed(hook(ADVANCE_CLOCK, &["seconds"]), json!({"seconds": 0})),
            probed(
                hook("lease", &["owner", "seconds"]),
                json!({"owner": "conformant-doctor", "seconds": 0}),
            ),
            hook("call_back", &["url"]),
            Hook {
                opens_all: true,
                ..hook("reset", &[])
            },
        ]
    });
    &*HOOKS
}
