//! The supported schema keywords: JSON Schema's, by the type of their value, and our extensions.

/// Keywords whose value is a schema.
pub(super) const SINGLE_SCHEMA: [&str; 9] = [
    "items",
    "additionalProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];

/// Keywords whose value is a list of schemas.
pub(super) const SCHEMA_LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords whose value is a mapping of schemas.
pub(super) const SCHEMA_MAPS: [&str; 4] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
];

/// All other keywords.
pub(super) const PLAIN: [&str; 32] = [
    "$schema",
    "$id",
    "$ref",
    "$comment",
    "title",
    "description",
    "type",
    "enum",
    "const",
    "required",
    "dependentRequired",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minProperties",
    "maxProperties",
    "contentMediaType",
    "contentEncoding",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// Our extensions.
pub(super) const EXTENSIONS: [&str; 18] = [
    "x-source",
    "x-rule",
    "x-partial",
    "x-list-key",
    "x-list-key-told",
    "x-paging",
    "x-echo",
    "x-echo-as",
    "x-echo-or",
    "x-beside",
    "x-identity",
    "x-parent",
    "x-immutable",
    "x-derived",
    "x-counts",
    "x-steps",
    "x-leads",
    "x-default-from",
];

/// Formats that are asserted.
pub(super) const FORMATS: [&str; 6] =
    ["date-time", "date", "uri", "uri-reference", "uuid", "email"];
