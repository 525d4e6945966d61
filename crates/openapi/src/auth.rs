//! How requests carry credentials, from the security schemes of the document.

use crate::document::Document;
use serde_json::Value;

/// How requests carry credentials.
#[derive(Default)]
pub(crate) struct Auth {
    /// Name, `service.yaml` entry and `openapi.yaml` entry of the scheme that is used.
    pub(crate) scheme: Option<(String, Value, Value)>,
    /// Schemes that are not used, with the reason.
    pub(crate) unused: Vec<String>,
}

/// The credentials of the document's first scheme that can be sent.
pub(crate) fn auth(doc: &Document) -> Auth {
    let mut auth = Auth::default();
    let schemes = doc
        .root()
        .get("components")
        .and_then(|c| c.get("securitySchemes"));
    for (name, part) in schemes.into_iter().flat_map(|s| s.members()) {
        let Some(scheme) = doc.resolve(&part) else {
            continue;
        };
        let lower = scheme
            .text("scheme")
            .unwrap_or_default()
            .to_ascii_lowercase();
        let (entry, described) = match (scheme.text("type"), lower.as_str(), scheme.text("in")) {
            (Some("http"), "basic", _) => (
                Value::from("basic"),
                serde_json::json!({ "type": "http", "scheme": "basic" }),
            ),
            (Some("apiKey"), _, Some("header")) => {
                let field = scheme.text("name").unwrap_or("X-Api-Key");
                (
                    serde_json::json!({ "header": field }),
                    serde_json::json!({ "type": "apiKey", "in": "header", "name": field }),
                )
            }
            (Some("http" | "oauth2" | "openIdConnect"), _, _) => (
                serde_json::json!({ "header": "Authorization" }),
                serde_json::json!({ "type": "http", "scheme": "bearer" }),
            ),
            (Some("apiKey"), _, place) => {
                let place = place.unwrap_or("an unknown place");
                auth.unused.push(format!(
                    "the security scheme `{name}` is a key in {place}, which is not sent"
                ));
                continue;
            }
            _ => {
                auth.unused.push(format!(
                    "the security scheme `{name}` is of an unknown type"
                ));
                continue;
            }
        };
        if auth.scheme.is_some() {
            auth.unused
                .push(format!("the security scheme `{name}`: one scheme is used"));
            continue;
        }
        let mut described = crate::schema::object(described);
        described.insert(
            "description".to_owned(),
            Value::from("Requests carry credentials."),
        );
        described.insert("x-source".to_owned(), doc.source(&part));
        auth.scheme = Some((name.to_owned(), entry, described.into()));
    }
    auth
}
