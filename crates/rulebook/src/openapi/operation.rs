//! One operation: its effect, its credentials, and its derived rules.

use super::document::Described;
use super::keys::OperationObject;
use crate::draft::{Derived, Draft, File, Files, RuleExtension};
use crate::model::{Action, Operation, Origin, ParameterLocation};
use crate::spelling::is_id;
use conformant_base::json;
use conformant_base::source::Source;
use conformant_record::{Basis, Level};
use conformant_yaml::Node;

/// Reads one operation.
pub(super) struct Reader<'a> {
    pub(super) files: &'a Files,
    pub(super) file: &'a File,
    pub(super) item: &'a Node,
    pub(super) item_at: &'a str,
    pub(super) path: &'a str,
    pub(super) method: &'a str,
    pub(super) node: &'a Node,
    pub(super) at: String,
}

impl Reader<'_> {
    pub(super) fn read(&self, draft: &mut Draft, described: &mut Described) {
        let (file, node) = (self.file, self.node);
        let checked: Option<OperationObject> = draft.deserialize(file, node);
        let Some(id) = node.get("operationId").and_then(Node::text) else {
            return;
        };
        let service = file.service().to_owned();
        let rule_id = format!("{service}/{id}");
        if !is_id(&rule_id) {
            let message = format!("invalid operation id `{id}`: expected kebab case");
            draft.refuse(
                file.problem(&format!("{}/operationId", self.at), message)
                    .help("verb-noun such as `create-channel`"),
            );
            return;
        }
        let summary = draft.says(file, &self.at, node, "summary");
        let Some(source) = draft.source(file, &self.at, node, true) else {
            return;
        };
        if checked.is_none() {
            return;
        }
        let extension = draft.extension(file, node);
        self.add(
            draft,
            &rule_id,
            &summary,
            &source,
            extension,
            Origin::Operation {
                operation: id.to_owned(),
            },
        );
        let parameters = self.parameters(draft, id);
        self.check_path(draft, &parameters);
        let response = self.response(draft, described, id, "2XX");
        let error = self
            .response(draft, described, id, "4XX")
            .and_then(|r| r.kind);
        let is_list_key_undocumented = response
            .as_ref()
            .is_some_and(|r| r.is_list_key_undocumented);
        let list_key = response.as_ref().and_then(|r| r.list_key.clone());
        if let Some(list) = &list_key {
            let has_meta = response.as_ref().is_some_and(|r| r.paging.has_meta());
            self.list_rules(draft, id, list, has_meta);
        }
        let secured = self.credentials(draft, id, &source);
        let path_from = node
            .get("x-path-from")
            .or_else(|| self.item.get("x-path-from"))
            .and_then(Node::text)
            .map(str::to_owned);
        let file = draft.index.get(&service);
        let operation = Operation {
            has_xml: file.is_some_and(|file| file.has_xml()),
            id: id.to_owned(),
            service,
            method: self.method.to_ascii_uppercase(),
            path: if path_from.is_some() {
                String::new()
            } else {
                self.path.to_owned()
            },
            path_from,
            summary,
            source,
            secured,
            parameters,
            bodies: self.bodies().map(|(media, _)| media.to_owned()).collect(),
            response: response.as_ref().and_then(|r| r.kind.clone()),
            error,
            does: self.does(draft, list_key.is_some()),
            resource: None,
            list_key,
            paging: response.map(|r| r.paging).unwrap_or_default(),
            is_list_key_undocumented,
        };
        rule_paths(draft, &operation);
        described.operations.insert(id.to_owned(), operation);
    }

    pub(super) fn add(
        &self,
        draft: &mut Draft,
        id: &str,
        says: &str,
        source: &Source,
        extension: RuleExtension,
        origin: Origin,
    ) {
        let rule = Derived {
            id: id.to_owned(),
            says: says.to_owned(),
            source: source.clone(),
            level: extension.level.unwrap_or(Level::Must),
            basis: extension.basis.unwrap_or(Basis::Stated),
            origin,
        };
        draft.add(self.file, &self.at, rule.rule(self.file, &self.at));
    }

    /// Its effect, by method and path, or by `x-does`.
    fn does(&self, draft: &mut Draft, is_list: bool) -> Action {
        let by_itself = match self.method {
            "delete" => Action::Ends,
            "get" if is_list => Action::Lists,
            "get" => Action::Shows,
            _ if self.path.ends_with('}') => Action::Changes,
            _ => Action::Makes,
        };
        let Some(written) = self.node.get("x-does") else {
            return by_itself;
        };
        let does = draft.deserialize(self.file, written).unwrap_or(by_itself);
        if does == by_itself {
            let message = "redundant `x-does`: method and path determine the same";
            let at = format!("{}/x-does", self.at);
            draft.refuse(self.file.problem(&at, message));
        }
        does
    }

    /// Whether the operation needs credentials; adds the rule.
    fn credentials(&self, draft: &mut Draft, operation: &str, source: &Source) -> bool {
        let (security, at) = match self.node.get("security") {
            Some(own) => (Some(own), format!("{}/security", self.at)),
            None => (self.file.node.get("security"), "/security".to_owned()),
        };
        let mut names = security
            .map(Node::items)
            .unwrap_or_default()
            .iter()
            .flat_map(Node::members);
        let Some(scheme) = names.next() else {
            return false;
        };
        let schemes = self
            .file
            .node
            .get("components")
            .and_then(|c| c.get("securitySchemes"));
        let Some(described) = schemes.and_then(|s| s.get(&scheme.key)) else {
            let known = schemes.map(Node::members).unwrap_or_default();
            let known = known.iter().map(|m| &*m.key);
            let span = self.file.node.place(&at);
            draft.unknown(self.file, span, "security scheme", &scheme.key, known);
            return true;
        };
        let described_at = json::join("/components/securitySchemes", &scheme.key);
        let stated = draft.source(self.file, &described_at, described, false);
        let extension = draft.extension(self.file, described);
        self.add(
            draft,
            &format!("{}/{operation}/credentials", self.file.service()),
            "It accepts valid credentials, and refuses missing and wrong ones.",
            &stated.unwrap_or_else(|| source.clone()),
            RuleExtension {
                level: extension.level,
                basis: Some(extension.basis.unwrap_or(Basis::Inferred)),
            },
            Origin::Credentials {
                operation: operation.to_owned(),
            },
        );
        true
    }
}

/// Removes rules of path parameters without an echo and without a documented
/// outcome for unknown names.
fn rule_paths(draft: &mut Draft, operation: &Operation) {
    for parameter in &operation.parameters {
        let is_compared = parameter.echo.is_some() || parameter.schema.get("enum").is_some();
        if parameter.place != ParameterLocation::Path || is_compared {
            continue;
        }
        if !parameter.names_a_resource(operation) {
            draft.rules.remove(&parameter.rule);
        } else if let Some(rule) = draft.rules.get_mut(&parameter.rule) {
            rule.level = Level::Should;
            rule.basis = Basis::Inferred;
        }
    }
}
