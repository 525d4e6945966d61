//! Chat and media through requests: what scenarios do not assert.

mod media;
mod resources;

use crate::{Reference, Settings, account};
use base64::Engine as _;
use conformant_base::clock::{Timestamp, from_unix_ms};
use conformant_base::http::{Request, Response};
use serde_json::{Value, json};

const START_MS: i64 = 1_767_225_600_000;

/// A reference with one service, asked the way clients ask.
struct World {
    reference: Reference,
    now: Timestamp,
    service: Value,
}

impl World {
    fn new() -> Self {
        let settings = Settings {
            seed: 7,
            origin: "http://x".to_owned(),
            ..Settings::default()
        };
        let now = from_unix_ms(START_MS);
        let mut world = Self {
            reference: Reference::new(settings, now),
            now,
            service: Value::Null,
        };
        world.service = world.accepted("POST", "/chat/v2/Services", &[("FriendlyName", "s")]);
        world
    }

    fn send(&mut self, mut request: Request) -> Response {
        let pair = format!("{}:{}", account::API_KEY, account::API_SECRET);
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        if request.headers.get("Authorization").is_none() {
            request
                .headers
                .set("Authorization", format!("Basic {encoded}"));
        }
        self.reference.handle(&request, self.now)
    }

    /// A path below the service, or an absolute one.
    fn path(&self, path: &str) -> String {
        if path.starts_with('/') {
            return path.to_owned();
        }
        format!("/chat/v2/Services/{}/{path}", text(&self.service, "/sid"))
    }

    fn call(&mut self, method: &str, path: &str, form: &[(&str, &str)]) -> Response {
        let mut request = Request::new(method, self.path(path));
        // Real clients label GET requests too.
        let form_type = "application/x-www-form-urlencoded";
        request.headers.set("Content-Type", form_type);
        request.body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish()
            .into_bytes();
        self.send(request)
    }

    fn accepted(&mut self, method: &str, path: &str, form: &[(&str, &str)]) -> Value {
        let response = self.call(method, path, form);
        assert!(
            response.is_success(),
            "{method} {path} {form:?}: {response:?}"
        );
        serde_json::from_slice(&response.body).unwrap()
    }

    fn get(&mut self, path: &str) -> Value {
        self.accepted("GET", path, &[])
    }

    fn refused(&mut self, method: &str, path: &str, form: &[(&str, &str)]) {
        let response = self.call(method, path, form);
        assert!(
            !response.is_success(),
            "{method} {path} {form:?}: {response:?}"
        );
    }

    fn hook(&mut self, hook: &str, mut args: Value) {
        args["service_sid"] = self.service["sid"].clone();
        let mut request = Request::new("POST", format!("/_control/{hook}"));
        request.body = args.to_string().into_bytes();
        let response = self.send(request);
        assert_eq!(response.status, 200, "{hook}: {response:?}");
    }

    /// A channel and its path.
    fn channel(&mut self, form: &[(&str, &str)]) -> (Value, String) {
        let channel = self.accepted("POST", "Channels", form);
        let path = format!("Channels/{}", text(&channel, "/sid"));
        (channel, path)
    }

    /// Uploads a file the way the document asks for.
    fn upload(&mut self, bytes: &[u8], change: impl FnOnce(&mut Request)) -> Response {
        let path = format!("/media/v1/Services/{}/Media", text(&self.service, "/sid"));
        let mut request = Request::new("POST", path);
        let boundary = "multipart/form-data; boundary=\"b0undary\"";
        request.headers.set("Content-Type", boundary);
        request.headers.set("Content-Size", bytes.len().to_string());
        let mut body = b"--b0undary\r\nContent-Disposition: form-data; name=\"media\"; \
            filename=\"p.png\"\r\nContent-Type: image/png\r\n\r\n"
            .to_vec();
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n--b0undary--\r\n");
        request.body = body;
        change(&mut request);
        self.send(request)
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no text at {pointer} in {value}"))
}

/// Each of the expected fields is there with that value.
fn shows(value: &Value, expected: &Value) {
    for (name, expected) in expected.as_object().unwrap() {
        assert_eq!(&value[name], expected, "{name} of {value}");
    }
}
