//! Defects of representations: a field shows a value of the right shape that is not the right one.
//!
//! Missing fields, nulls and values of another shape are made elsewhere, over finished responses.

use crate::{Core, Fault, Variant};
use conformant_base::clock::Timestamp;
use serde_json::Value;

/// Applies the defects that are switched on to the fields they name.
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

/// `date_updated`, which a variant leaves null until something was updated.
pub(super) fn updated(core: &Core, created: Timestamp, updated: Timestamp) -> Value {
    if created == updated && core.varies(Variant::ChatNeverUpdated) {
        Value::Null
    } else {
        core.date(updated)
    }
}

/// Changes the last hexadecimal digit of every text: SIDs and dates keep their form, urls lead
/// elsewhere.
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
