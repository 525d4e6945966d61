//! Faults of representations: a field has the right shape but a wrong value.

use crate::{Core, Fault, Variant};
use conformant_base::clock::Timestamp;
use serde_json::Value;

/// Applies the enabled faults to their fields.
pub(super) fn misstate(core: &Core, mut value: Value, faults: &[(&str, Fault)]) -> Value {
    for (field, fault) in faults {
        if core.fails(*fault)
            && let Some(field) = value.get_mut(*field)
        {
            alter(field);
        }
    }
    value
}

/// `date_updated`, which a variant leaves null until an update.
pub(super) fn updated(core: &Core, created: Timestamp, updated: Timestamp) -> Value {
    if created == updated && core.varies(Variant::ChatNeverUpdated) {
        Value::Null
    } else {
        core.date(updated)
    }
}

/// Changes the last hexadecimal digit of every string: SIDs and dates stay valid, URLs become wrong.
fn alter(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(at) = text.rfind(|c: char| c.is_ascii_hexdigit()) {
                let digit = if text[at..].starts_with('0') {
                    "1"
                } else {
                    "0"
                };
                text.replace_range(at..=at, digit);
            }
        }
        Value::Object(map) => map.values_mut().for_each(alter),
        Value::Array(items) => items.iter_mut().for_each(alter),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn altered_texts_keep_their_shape() {
        for (before, after) in [
            (json!("CH0a"), json!("CH00")),
            (json!("2026-01-01T00:00:00Z"), json!("2026-01-01T00:00:01Z")),
            (
                json!({"a": "http://x/Users"}),
                json!({"a": "http://x/Us0rs"}),
            ),
            (json!([null, 1]), json!([null, 1])),
        ] {
            let mut value = before;
            alter(&mut value);
            assert_eq!(value, after);
        }
    }
}
