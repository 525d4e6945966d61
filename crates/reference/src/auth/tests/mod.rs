//! Tests of the authentication service through its requests and hooks alone; here what they share.

mod approvals;
mod formats;
mod registrations;
mod users;

use super::application;
use crate::testing::{Client, parsed};
use conformant_base::http::{Request, Response};
use serde_json::{Value, json};
use std::time::Duration;

/// One-line requests.
impl Client {
    fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    fn auth(&mut self, method: &str, target: &str, body: Option<&Value>) -> Response {
        let mut request = Request::new(method, format!("/auth/{target}"));
        if let Some(body) = body {
            request.headers.set("Content-Type", "application/json");
            request.body = body.to_string().into_bytes();
        }
        self.send(request)
    }

    fn read(&mut self, target: &str) -> Value {
        parsed(&self.auth("GET", target, None))
    }

    fn post(&mut self, target: &str, body: &Value) -> Response {
        self.auth("POST", target, Some(body))
    }

    fn user(&mut self, email: &str, cellphone: &str) -> u64 {
        let response = self.post(
            "protected/json/users/new",
            &user(email, cellphone, json!("1")),
        );
        assert!(response.is_success(), "{email} {cellphone}");
        parsed(&response)["user"]["id"]
            .as_u64()
            .expect("an integer")
    }

    fn approval(&mut self, parameters: &Value) -> Result<String, Response> {
        let auth_id = self.user("a@b.example", "555-010-0001");
        let target = format!("onetouch/json/users/{auth_id}/approval_requests");
        let response = self.post(&target, parameters);
        if !response.is_success() || parsed(&response)["success"] != json!(true) {
            return Err(response);
        }
        let uuid = &parsed(&response)["approval_request"]["uuid"];
        Ok(uuid.as_str().expect("a uuid").to_owned())
    }

    fn fetch(&mut self, uuid: &str) -> Value {
        self.read(&format!("onetouch/json/approval_requests/{uuid}"))["approval_request"].clone()
    }
}

fn user(email: &str, cellphone: &str, country_code: Value) -> Value {
    let mut user = json!({"email": email, "cellphone": cellphone});
    user["country_code"] = country_code;
    json!({ "user": user })
}

/// A QR string of a right token, `seconds` from its issue to its expiry.
fn qr(world: &Client, custom_user_id: &str, seconds: i64) -> String {
    let claims = json!({
        "iss": application::NAME,
        "iat": world.now.as_second(),
        "exp": world.now.as_second() + seconds,
        "context": {"custom_user_id": custom_user_id, "auth_app_id": application::ID},
    });
    let key = jsonwebtoken::EncodingKey::from_secret(application::API_KEY.as_bytes());
    let token = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key);
    format!(
        "{}://account?token={}",
        application::SCHEME,
        token.expect("a token")
    )
}

fn registration(world: &mut Client, custom_user_id: &str) -> Value {
    world.read(&format!(
        "protected/json/registrations/status?custom_user_id={custom_user_id}"
    ))
}
