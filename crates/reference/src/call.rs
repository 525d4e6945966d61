//! A parsed request: path segments, query and body parameters, credentials.
//!
//! Unambiguous bodies are parsed whatever their `Content-Type`, because real clients label GET requests as
//! forms, and some send JSON instead of forms.

use base64::Engine as _;
use conformant_base::http::Request;
use serde_json::Value;

#[derive(Debug)]
pub struct Call<'a> {
    pub request: &'a Request,
    /// Decoded path segments after the prefix of the service.
    pub path: &'a [String],
    /// Query parameters in order.
    pub query: Params,
    /// Parameters of an `application/x-www-form-urlencoded` body, in order; otherwise empty.
    pub form: Params,
}

impl<'a> Call<'a> {
    /// Parses a request; `path` has the segments after the prefix of the service.
    pub fn new(request: &'a Request, path: &'a [String]) -> Self {
        let media_type = request.headers.media_type();
        let form = match media_type.as_deref() {
            None | Some("application/x-www-form-urlencoded") => Params(
                url::form_urlencoded::parse(&request.body)
                    .into_owned()
                    .collect(),
            ),
            Some(_) => Params::default(),
        };
        Self {
            request,
            path,
            query: Params(request.query_pairs()),
            form,
        }
    }

    /// Method and path segments, for matching: `("GET", ["v1", "Flows", sid])`.
    pub fn route(&self) -> (&str, Vec<&str>) {
        (
            self.request.method.as_str(),
            self.path.iter().map(String::as_str).collect(),
        )
    }

    /// The body, if it is declared and valid JSON.
    pub fn json(&self) -> Option<Value> {
        let media_type = self.request.headers.media_type()?;
        if media_type != "application/json" {
            return None;
        }
        serde_json::from_slice(&self.request.body).ok()
    }

    /// Scheme, user name and password of credentials in Basic form.
    pub(super) fn credentials(&self) -> Option<(String, String, String)> {
        let value = self.request.headers.get("Authorization")?;
        let (scheme, encoded) = value.split_once(' ')?;
        let decoded = base64::engine::general_purpose::STANDARD
            .decode(encoded.trim())
            .ok()?;
        let text = String::from_utf8(decoded).ok()?;
        let (user, password) = text.split_once(':')?;
        Some((scheme.to_owned(), user.to_owned(), password.to_owned()))
    }
}

/// Parameters in order; a name may occur several times (D2, Conventions: array parameters).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params(pub Vec<(String, String)>);

impl Params {
    /// The first value of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    /// Every value of that name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    /// Gives the parameter these values.
    pub(super) fn set(&mut self, name: &str, values: Vec<String>) {
        let at = self.0.iter().position(|(n, _)| n == name);
        let at = at.unwrap_or(self.0.len());
        self.0.retain(|(n, _)| n != name);
        let values = values.into_iter().map(|value| (name.to_owned(), value));
        self.0.splice(at..at, values);
    }

    /// True if the name occurs, even with an empty value.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}
