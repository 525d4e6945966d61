//! Chat and media through requests: what scenarios do not assert.

mod former;
mod media;
mod resources;

use crate::Fault;
use crate::testing::{Client, text};
use conformant_base::http::{Request, Response};
use serde_json::{Value, json};

/// A client of a reference with one service.
struct World {
    client: Client,
    service: Value,
}

impl World {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(faults: &[Fault]) -> Self {
        let mut client = Client::new(faults, &[]);
        let service = client.accepted("POST", "/chat/v2/Services", &[("FriendlyName", "s")]);
        Self { client, service }
    }

    /// A path below the service, or an absolute one.
    fn path(&self, path: &str) -> String {
        if path.starts_with('/') || path.starts_with("http") {
            return path.to_owned();
        }
        format!("/chat/v2/Services/{}/{path}", text(&self.service["sid"]))
    }

    fn accepted(&mut self, method: &str, path: &str, form: &[(&str, &str)]) -> Value {
        self.client.accepted(method, &self.path(path), form)
    }

    fn get(&mut self, path: &str) -> Value {
        self.accepted("GET", path, &[])
    }

    fn hook(&mut self, hook: &str, mut args: Value) {
        args["service_sid"] = self.service["sid"].clone();
        self.client.hook(hook, &args);
    }

    /// The SID of the binding of a device that registers.
    fn bind(&mut self, identity: &str, endpoint: &str) -> String {
        let service = &self.service["sid"];
        let args = json!({"service_sid": service, "identity": identity, "binding_type": "fcm", "endpoint": endpoint});
        text(&self.client.hook("register_binding", &args)["binding_sid"])
    }

    /// A channel and its path.
    fn channel(&mut self, form: &[(&str, &str)]) -> (Value, String) {
        let channel = self.accepted("POST", "Channels", form);
        let path = format!("Channels/{}", text(&channel["sid"]));
        (channel, path)
    }

    /// Uploads a file the way the document asks for.
    fn upload(&mut self, bytes: &[u8], change: impl FnOnce(&mut Request)) -> Response {
        let path = format!("/media/v1/Services/{}/Media", text(&self.service["sid"]));
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
        self.client.send(request)
    }
}

/// Each of the expected fields is there with that value.
fn shows(value: &Value, expected: &Value) {
    for (name, expected) in expected.as_object().unwrap() {
        assert_eq!(&value[name], expected, "{name} of {value}");
    }
}
