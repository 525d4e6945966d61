//! Former names of predicates, accepted for one release.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The successor of a predicate.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Successor {
    name: String,
    /// Parameters by their former name.
    #[serde(default)]
    rename: BTreeMap<String, String>,
    /// By parameter and value: the parameters that replace them.
    #[serde(default)]
    replace: BTreeMap<String, BTreeMap<String, Map<String, Value>>>,
    /// Parameters that are new.
    #[serde(default)]
    add: Map<String, Value>,
}

static FORMER: LazyLock<BTreeMap<String, Successor>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("former.json")).expect("the table is valid JSON")
});

/// The current name of a former predicate, with its parameters if they change.
pub(super) fn renamed(name: &str, parameters: &Value) -> Option<(&'static str, Option<Value>)> {
    let successor = FORMER.get(name)?;
    let changes =
        !successor.rename.is_empty() || !successor.replace.is_empty() || !successor.add.is_empty();
    let changed = parameters.as_object().filter(|_| changes).map(|given| {
        let mut now = Map::new();
        for (key, value) in given {
            let replaced = successor.replace.get(key);
            let replaced = replaced.and_then(|values| values.get(value.as_str()?));
            match replaced {
                Some(others) => now.extend(others.clone()),
                None => {
                    let key = successor.rename.get(key).unwrap_or(key);
                    now.insert(key.clone(), value.clone());
                }
            }
        }
        for (key, value) in &successor.add {
            now.entry(key.clone()).or_insert_with(|| value.clone());
        }
        Value::Object(now)
    });
    Some((&successor.name, changed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_former_name_leads_to_a_registered_one() {
        let names = crate::load::predicates().names();
        for (former, successor) in &*FORMER {
            assert!(names.contains(&successor.name.as_str()), "{former}");
            assert!(!names.contains(&former.as_str()), "{former}");
        }
    }

    #[test]
    fn former_parameters_are_renamed_replaced_and_completed() {
        let (name, now) = renamed("default", &json!({"value": 1, "at": "/a"})).expect("known");
        assert_eq!(
            (name, now),
            ("parameter-echo", Some(json!({"default": 1, "at": "/a"})))
        );
        let (_, now) = renamed("carries", &json!({"of": "tags", "how": "equal"})).expect("known");
        let now = now.expect("it changes");
        assert_eq!((&now["of"], &now["default"]), (&json!("tags"), &json!({})));
        assert_eq!(now["feed"]["send"], "send_bulk_message");
        assert_eq!(
            renamed("gone", &json!({})),
            Some(("deleted-is-absent", None))
        );
        assert_eq!(renamed("conforms", &json!({})), None);
    }
}
