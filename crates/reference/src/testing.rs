//! A client of one reference, for the tests of every service.

use crate::auth::application;
use crate::{Fault, Reference, Settings, Variant, account};
use base64::Engine as _;
use conformant_base::clock::{Timestamp, VIRTUAL_START_MS, from_unix_ms};
use conformant_base::http::{Request, Response};
use serde_json::Value;

pub(crate) struct Client {
    pub(crate) reference: Reference,
    pub(crate) now: Timestamp,
}

impl Client {
    pub(crate) fn new(faults: &[Fault], variants: &[Variant]) -> Self {
        let now = from_unix_ms(VIRTUAL_START_MS);
        let settings = Settings {
            seed: 7,
            origin: "http://x".to_owned(),
            faults: faults.iter().copied().collect(),
            variants: variants.iter().copied().collect(),
        };
        Self {
            reference: Reference::new(settings, now),
            now,
        }
    }

    /// Sends a request with the credentials of its service.
    pub(crate) fn send(&mut self, mut request: Request) -> Response {
        sign(&mut request);
        self.reference.handle(&request, self.now)
    }

    pub(crate) fn call(&mut self, method: &str, target: &str, form: &[(&str, &str)]) -> Response {
        let target = target.strip_prefix("http://x").unwrap_or(target);
        let mut request = Request::new(method, target);
        // Real clients label every request as a form.
        let form_type = "application/x-www-form-urlencoded";
        request.headers.set("Content-Type", form_type);
        request.body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish()
            .into_bytes();
        self.send(request)
    }

    /// The response to an accepted request.
    pub(crate) fn accepted(&mut self, method: &str, target: &str, form: &[(&str, &str)]) -> Value {
        let response = self.call(method, target, form);
        assert!(
            response.is_success(),
            "{method} {target} {form:?}: {response:?}"
        );
        parsed(&response)
    }

    pub(crate) fn get(&mut self, target: &str) -> Value {
        self.accepted("GET", target, &[])
    }

    pub(crate) fn try_hook(&mut self, name: &str, args: &Value) -> (u16, Value) {
        let mut request = Request::new("POST", format!("/_control/{name}"));
        request.body = args.to_string().into_bytes();
        let response = self.reference.handle(&request, self.now);
        (response.status, parsed(&response))
    }

    pub(crate) fn hook(&mut self, name: &str, args: &Value) -> Value {
        let (status, value) = self.try_hook(name, args);
        assert_eq!(status, 200, "{name} {args}: {value}");
        value
    }

    /// The JSON bodies of the due callbacks.
    pub(crate) fn callbacks(&mut self) -> Vec<Value> {
        let due = self.reference.take_callbacks();
        let body = |body: &[u8]| serde_json::from_slice(body).expect("JSON");
        due.iter().map(|one| body(&one.request.body)).collect()
    }
}

/// Adds the credentials of the service.
pub(crate) fn sign(request: &mut Request) {
    if request.target.starts_with("/auth/") {
        let field = application::API_KEY_HEADER;
        request.headers.set(field, application::API_KEY);
    } else {
        let pair = format!("{}:{}", account::API_KEY, account::API_SECRET);
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        let basic = format!("Basic {encoded}");
        request.headers.set("Authorization", basic);
    }
}

pub(crate) fn parsed(response: &Response) -> Value {
    serde_json::from_slice(&response.body).expect("a JSON body")
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
