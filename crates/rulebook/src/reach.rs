//! Finds the parts of a bundled schema that apply to a place of an instance.
//!
//! Used wherever a schema is followed along a pointer: to attribute findings to rules, to check pointers of rules, to mutate.

use conformant_base::json;
use serde_json::Value;

/// The schema and all schemas that apply together with it: referenced ones, and the branches of `allOf`,
/// `anyOf`, `oneOf`, `then` and `else`.
pub fn applicable_schemas<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let mut found: Vec<&Value> = Vec::new();
    let mut waiting = vec![schema];
    while let Some(schema) = waiting.pop() {
        if found.iter().any(|f| std::ptr::eq(*f, schema)) {
            continue;
        }
        found.push(schema);
        if let Some(target) = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|r| json::get(root, r.strip_prefix('#')?))
        {
            waiting.push(target);
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            let branches = schema.get(key).and_then(Value::as_array);
            waiting.extend(branches.into_iter().flatten());
        }
        for key in ["then", "else"] {
            waiting.extend(schema.get(key));
        }
    }
    found
}

/// The schemas that apply to a member of an object to which `applying` apply.
pub fn member<'a>(root: &'a Value, applying: &[&'a Value], key: &str) -> Vec<&'a Value> {
    let mut found = Vec::new();
    for schema in applying {
        match schema.get("properties").and_then(|p| p.get(key)) {
            Some(property) => found.extend(applicable_schemas(root, property)),
            None => found.extend(unlisted(root, schema)),
        }
    }
    found
}

/// The schemas that apply to members of an object that none of `applying` lists.
pub fn others<'a>(root: &'a Value, applying: &[&'a Value]) -> Vec<&'a Value> {
    let rest = applying.iter().flat_map(|schema| unlisted(root, schema));
    rest.collect()
}

fn unlisted<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    schema
        .get("additionalProperties")
        .filter(|s| s.is_object())
        .map_or_else(Vec::new, |rest| applicable_schemas(root, rest))
}

/// The schemas that apply to the items of an array to which `applying` apply.
pub fn items<'a>(root: &'a Value, applying: &[&'a Value]) -> Vec<&'a Value> {
    applying
        .iter()
        .filter_map(|schema| schema.get("items"))
        .flat_map(|items| applicable_schemas(root, items))
        .collect()
}

/// Checks that a pointer, with `*` for items and members, leads to a described or unrestricted place.
/// Returns the segment that does not resolve, with the known names there.
pub fn reaches(root: &Value, pointer: &str) -> Result<(), (String, Vec<String>)> {
    let mut applying = applicable_schemas(root, root);
    for segment in json::segments(pointer) {
        if is_free(&applying) {
            return Ok(());
        }
        let is_index = !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit());
        let mut next = member(root, &applying, &segment);
        if segment == "*" || is_index {
            next.extend(items(root, &applying));
        }
        if segment == "*" {
            next.extend(all_members(root, &applying));
        }
        if next.is_empty() {
            return Err((segment, listed(&applying)));
        }
        applying = next;
    }
    Ok(())
}

/// The regular expression of the text at a pointer through members of objects, if the schema has one.
pub fn pattern<'a>(root: &'a Value, pointer: &str) -> Option<&'a str> {
    let mut applying = applicable_schemas(root, root);
    for segment in json::segments(pointer) {
        applying = member(root, &applying, &segment);
    }
    applying
        .iter()
        .find_map(|schema| schema.get("pattern")?.as_str())
}

/// Whether no schema restricts the content.
fn is_free(applying: &[&Value]) -> bool {
    const SHAPING: [&str; 4] = ["properties", "items", "additionalProperties", "prefixItems"];
    let shaped = |s: &&Value| SHAPING.iter().any(|key| s.get(*key).is_some());
    let scalar = |s: &&Value| {
        let is_container = |t: &Value| matches!(t.as_str(), Some("object" | "array"));
        s.get("type").is_some_and(|t| match t.as_array() {
            Some(types) => !types.iter().any(is_container),
            None => !is_container(t),
        })
    };
    !applying.iter().any(shaped) && !applying.iter().any(scalar)
}

fn all_members<'a>(root: &'a Value, applying: &[&'a Value]) -> Vec<&'a Value> {
    applying
        .iter()
        .filter_map(|s| s.get("properties").and_then(Value::as_object))
        .flat_map(|properties| properties.values())
        .flat_map(|property| applicable_schemas(root, property))
        .collect()
}

/// Names of the properties that the schemas list.
pub fn listed(applying: &[&Value]) -> Vec<String> {
    applying
        .iter()
        .filter_map(|s| s.get("properties").and_then(Value::as_object))
        .flat_map(|properties| properties.keys().cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pointers_reach_through_references_items_and_free_objects() {
        let schema = json!({
            "properties": {
                "meta": {"$ref": "#/$defs/meta"},
                "list": {"type": "array", "items": {"$ref": "#/$defs/item"}},
                "free": {"type": "object"},
            },
            "$defs": {
                "meta": {"properties": {"key": {"type": "string"}}},
                "item": {"anyOf": [{"properties": {"a": {}}}, {"type": "null"}],
                         "additionalProperties": {"type": "integer"}},
            },
        });
        for fine in [
            "",
            "/meta/key",
            "/list/*/a",
            "/list/0/a",
            "/free/x/y",
            "/*/key",
        ] {
            assert_eq!(reaches(&schema, fine), Ok(()), "{fine}");
        }
        let (segment, known) = reaches(&schema, "/meta/kye").unwrap_err();
        assert_eq!(
            (segment.as_str(), &known[..]),
            ("kye", &["key".to_owned()][..])
        );
        assert!(reaches(&schema, "/meta/key/deeper").is_err());
    }
}
