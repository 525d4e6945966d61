//! Responses of an operation: a resource, or a page of a list, with the resource types and rules that they add.

use super::document::Described;
use super::operation::Reader;
use crate::annotations::Annotations;
use crate::draft::{Draft, RuleExtension, members_of};
use crate::model::{Kind, Origin};
use crate::paging::{Paging, Written};
use crate::schemas::{self, At, Bundler};
use conformant_base::json;
use conformant_record::Basis;
use conformant_yaml::Node;

pub(super) struct Answer {
    pub(super) kind: Option<String>,
    pub(super) list_key: Option<String>,
    pub(super) is_list_key_undocumented: bool,
    pub(super) paging: Paging,
}

impl Reader<'_> {
    pub(super) fn response(
        &self,
        draft: &mut Draft,
        described: &mut Described,
        operation: &str,
        status: &str,
    ) -> Option<Answer> {
        let responses = self.node.get("responses")?;
        for member in responses.members() {
            if !["2XX", "4XX"].contains(&&*member.key) {
                let message = format!(
                    "unsupported status `{}`: the documents state no status codes",
                    member.key
                );
                draft.refuse(
                    self.file
                        .problem_at(member.key_span, message)
                        .help("write `2XX` for accepted and `4XX` for rejected requests"),
                );
            }
        }
        let content = responses.get(status)?.get("content")?;
        let media = content
            .members()
            .iter()
            .find(|m| m.key == "application/json")
            .or_else(|| content.members().first())?;
        let schema = media.value.get("schema")?;
        let at = json::join(
            &format!("{}/responses/{status}/content", self.at),
            &media.key,
        );
        let at = format!("{at}/schema");
        if let Some(reference) = schema.get("$ref").and_then(Node::text) {
            schemas::derive(draft, self.files, self.file, &at, schema, At::default());
            let (path, _) = schemas::target(self.files, &self.file.path, reference).ok()?;
            return schemas::owner(&path).map(|(kind, _)| Answer {
                kind: Some(kind),
                list_key: None,
                is_list_key_undocumented: false,
                paging: Paging::default(),
            });
        }
        let prefix = format!("{}/{operation}", self.file.service());
        let list_key = schema.get("x-list-key").and_then(Node::text);
        let page_of = match list_key {
            Some(key) => Some((
                self.item_kind(draft, schema, key, &at)?,
                Some(key.to_owned()),
            )),
            None => None,
        };
        let mut name = page_of
            .as_ref()
            .map_or_else(|| prefix.clone(), |(item, _)| format!("{item}[]"));
        // A second list of the same type goes by its operation.
        if page_of.is_some() && described.kinds.iter().any(|k| k.name == name) {
            name.clone_from(&prefix);
        }
        let root = At::root(&name, &prefix);
        // The source of the whole representation is that of the operation.
        schemas::derive(draft, self.files, self.file, &at, schema, root.clone());
        if described.kinds.iter().any(|k| k.name == name) {
            let message = format!("another operation of the service already returns `{name}`");
            draft.refuse(self.file.problem(&at, message));
            return None;
        }
        described.kinds.push(Kind {
            name: name.clone(),
            schema: Bundler::new(self.files).bundle(self.file, schema, root),
            annotations: Annotations::default(),
            page_of,
        });
        Some(Answer {
            kind: Some(name),
            list_key: list_key.map(str::to_owned),
            is_list_key_undocumented: schema.get("x-list-key-told").is_some(),
            paging: self.paging(draft, schema, &at),
        })
    }

    /// How the list is read page by page.
    fn paging(&self, draft: &mut Draft, schema: &Node, at: &str) -> Paging {
        let Some(written) = schema.get("x-paging") else {
            return Paging::default();
        };
        let Some(written) = draft.deserialize::<Written>(self.file, written) else {
            return Paging::default();
        };
        written.read().unwrap_or_else(|message| {
            let at = format!("{at}/x-paging");
            draft.refuse(self.file.problem(&at, message));
            Paging::default()
        })
    }

    /// The resource type of the items of a page.
    fn item_kind(&self, draft: &mut Draft, schema: &Node, key: &str, at: &str) -> Option<String> {
        let listed = match key {
            "" => Some(schema),
            key => schema.get("properties").and_then(|p| p.get(key)),
        };
        let Some(list) = listed else {
            let known = members_of(schema, "properties");
            let span = self.file.node.place(&format!("{at}/x-list-key"));
            let known = known.iter().map(|m| &*m.key);
            draft.unknown(self.file, span, "property", key, known);
            return None;
        };
        let kind = list
            .get("items")
            .and_then(|items| items.get("$ref"))
            .and_then(Node::text)
            .and_then(|r| schemas::target(self.files, &self.file.path, r).ok())
            .and_then(|(path, _)| schemas::owner(&path));
        if kind.is_none() {
            draft.refuse(
                self.file
                    .problem(
                        &format!("{at}/properties/{key}"),
                        "expected a reference to a resource type for the items of a page",
                    )
                    .help("write `items: { $ref: schemas/RESOURCE.yaml }`"),
            );
        }
        kind.map(|(kind, _)| kind)
    }

    pub(super) fn list_rules(&self, draft: &mut Draft, operation: &str, key: &str, has_meta: bool) {
        let at = format!("{}/responses/2XX/content/application~1json/schema", self.at);
        let property = match key {
            "" => at,
            key => json::join(&format!("{at}/properties"), key),
        };
        let Some(node) = schemas::node_at(self.file, &property) else {
            return;
        };
        let Some(source) = draft.source(self.file, &property, node, false) else {
            return;
        };
        let id = |what: &str| format!("{}/{operation}/{what}", self.file.service());
        if has_meta {
            self.add(
                draft,
                &id("key"),
                &format!("The array stands under the name that meta.key gives, {key}."),
                &source,
                RuleExtension::default(),
                Origin::ListKey {
                    operation: operation.to_owned(),
                },
            );
        }
        self.add(
            draft,
            &id("walk"),
            match has_meta {
                true => "Following next_page_url yields each item exactly once and ends.",
                false => "Reading page after page yields each item exactly once and ends.",
            },
            &source,
            RuleExtension {
                level: None,
                basis: Some(Basis::Inferred),
            },
            Origin::ListWalk {
                operation: operation.to_owned(),
            },
        );
    }
}
