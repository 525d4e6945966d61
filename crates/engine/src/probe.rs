//! The probe of a service: a documented request that changes nothing, and what its answer shows about the address.

use crate::body::{self, begins_as_page};
use conformant_base::http::Response;
use conformant_base::json::{self, Limits};
use conformant_judge::another_document;
use conformant_judge::evidence::Body;
use conformant_rulebook::Rulebook;
use std::collections::BTreeMap;

/// A documented `GET` request of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Path and query, below the address of the service.
    pub path: String,
    /// Whether the path names a resource by its id, which need not exist.
    names_a_resource: bool,
}

impl Probe {
    /// The probes of all services.
    pub fn of_all(rulebook: &Rulebook) -> BTreeMap<String, Self> {
        let services = rulebook.services.keys();
        let probes = services.filter_map(|name| Some((name.clone(), Self::of(rulebook, name)?)));
        probes.collect()
    }

    /// The probe that the rulebook declares for a service.
    pub fn of(rulebook: &Rulebook, service: &str) -> Option<Self> {
        let base = rulebook.index.get(service)?.base.as_ref()?;
        let operation = rulebook.operation(service, &base.probe.call)?;
        let mut path = operation.path.clone();
        let mut query = Vec::new();
        for (name, value) in &base.probe.with {
            let place = format!("{{{name}}}");
            if path.contains(&place) {
                path = path.replace(&place, value);
            } else {
                query.push(format!("{name}={value}"));
            }
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        Some(Self {
            path,
            names_a_resource: operation.path.contains('{'),
        })
    }

    /// Whether the resource that the probe names is not there. A service may say so with a page for people, so that alone
    /// does not show a wrong address.
    pub fn is_of_an_absent_resource(&self, answer: &Response) -> bool {
        self.names_a_resource && answer.status == 404
    }

    /// How the answer to the probe shows that the address leads to another server or path.
    pub fn wrong_address(&self, answer: &Response) -> Option<String> {
        match answer.status {
            500.. => None,
            300..=399 => {
                let to = answer.headers.get("Location")?;
                Some(format!("with a redirect to {to}"))
            }
            _ if is_page(answer) => Some("with text/html in place of JSON".to_owned()),
            404 if !self.names_a_resource => Some("where the documents have a resource".to_owned()),
            _ => None,
        }
    }
}

/// How a successful answer to the probe of a service differs from the documented representation as a whole: it is empty,
/// cannot be read, or is another document. A documented rejection is an answer, too.
pub fn another_answer(rulebook: &Rulebook, service: &str, answer: &Response) -> Option<String> {
    let index = rulebook.index.get(service)?;
    let operation = rulebook.operation(service, &index.base.as_ref()?.probe.call)?;
    let kind = operation.response.as_deref()?;
    if !(200..300).contains(&answer.status) {
        return None;
    }
    let answer = body::decoded(answer.clone());
    let body = body::receive(&answer, operation, rulebook.kinds.get(kind));
    let is_rejection = match &body {
        Body::Document { value, .. } => index.rejection(value).is_some(),
        Body::Empty | Body::Unreadable(_) => false,
    };
    another_document(rulebook, kind, &body).filter(|_| !is_rejection)
}

/// Whether an answer is a page for people. No document states a media type: JSON and XML under `text/html` are answers of
/// the service.
pub fn is_page(answer: &Response) -> bool {
    let media_type = answer.headers.media_type().unwrap_or_default();
    let is_document = || {
        let is_xml = answer.body.starts_with(b"<?xml") && !begins_as_page(&answer.body);
        is_xml || json::parse(&answer.body, Limits::default()).is_ok()
    };
    media_type == "text/html" && !is_document()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_under_text_html_is_no_page() {
        let is_page = |body: &str| is_page(&Response::new(200, "text/html; charset=utf-8", body));
        assert!(is_page("<!doctype html><title>Welcome</title>"));
        assert!(is_page("<h1>It works</h1>"));
        assert!(is_page(""));
        assert!(!is_page("{\"meta\": {}}"));
        assert!(!is_page("<?xml version=\"1.0\"?><hash/>"));
    }
}
