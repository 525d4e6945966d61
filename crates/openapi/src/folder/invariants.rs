//! `laws.yaml`: the invariants that apply.

use super::Folder;
use crate::schema::object;
use crate::write;
use conformant_judge::load::predicates;
use conformant_rulebook::{Model, Rulebook};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

impl Folder<'_, '_> {
    /// A row for everything that an invariant applies to.
    pub(super) fn laws(
        &mut self,
        files: &BTreeMap<String, Map<String, Value>>,
    ) -> Map<String, Value> {
        let texts = files.iter().map(|(path, file)| {
            (
                format!("{}/{path}", self.service),
                write::file(&[], file).into_bytes(),
            )
        });
        let Ok(rulebook) = Rulebook::sound_of_files_by(predicates(), texts) else {
            return object(json!({ "laws": [] }));
        };
        let model = Model {
            services: &rulebook.services,
            kinds: &rulebook.kinds,
        };
        let mut laws = Vec::new();
        for law in predicates().names() {
            let Some(subjects) = predicates().applicable_subjects(law, &model) else {
                continue;
            };
            let mut rows = Map::new();
            let mut except = Map::new();
            let prefix = format!("{}/", self.service);
            let subjects: BTreeSet<&str> = subjects
                .iter()
                .filter_map(|s| s.strip_prefix(&prefix))
                .collect();
            for subject in subjects {
                let operation = self.api.operations.iter().find(|o| o.id == subject);
                let kind = self.resources.schema_files.get(subject);
                let part = operation
                    .map(|o| &o.part)
                    .or_else(|| kind.map(|k| &k.shape.part));
                let Some(part) = part else { continue };
                if *law == "other-fields-unchanged" && operation.is_some_and(|o| o.method == "put")
                {
                    except.insert(subject.to_owned(), json!("PUT replaces the resource, so that fields that are left out may be unset."));
                    continue;
                }
                let mut row = object(self.doc.source(part));
                row.insert(
                    "id".to_owned(),
                    json!(format!("{}/{subject}/{}", self.service, suffix(law))),
                );
                rows.insert(subject.to_owned(), row.into());
            }
            if rows.is_empty() && except.is_empty() {
                continue;
            }
            let mut written = object(json!({ "law": law, "says": says(law), "basis": "inferred" }));
            if *law == "response-format" {
                written.insert("level".to_owned(), json!("should"));
            }
            written.insert("rows".to_owned(), rows.into());
            if !except.is_empty() {
                written.insert("except".to_owned(), except.into());
            }
            laws.push(Value::Object(written));
        }
        self.decide("laws", "an invariant that the service does not promise: move its row to `except` with the reason, or add `level: should`".to_owned());
        object(json!({ "laws": laws }))
    }
}

/// What the ids of the rows of an invariant end in.
fn suffix(law: &str) -> &str {
    match law {
        "consistent-reads" => "reads-agree",
        "response-format" => "empty-response",
        other => other,
    }
}

fn says(law: &str) -> &'static str {
    match law {
        "immutable" => "A field that never changes has the same value in every response.",
        "page-links" => "Each page URL in a list response leads to the page that it names.",
        "write-persists" => {
            "What a request sets is shown by every later response until a request changes it."
        }
        "parent-scope" => "A resource is found under its own parent and under no other parent.",
        "list-complete" => "A list contains each existing resource of its scope exactly once.",
        "deleted-is-absent" => "A deleted resource is absent from every endpoint and list.",
        "response-format" => "The response to a delete request has no body.",
        "other-resources-unchanged" => {
            "A request does not change any resource that it does not name."
        }
        "other-fields-unchanged" => "An update does not change fields that it does not name.",
        "rejected-create" => "A rejected create request does not create a resource.",
        "consistent-reads" => {
            "A resource has the same field values in every response as long as no request changes it."
        }
        _ => "The invariant holds.",
    }
}
