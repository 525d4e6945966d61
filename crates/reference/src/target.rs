//! How the reference is reached: its services, and for each the credentials and values that a target is configured with.
//!
//! None of these values is a secret.

use crate::auth::application;
use crate::core::account;
use crate::second_account;
use serde_json::{Map, Value, json};

/// The services that the reference implements.
pub const SERVICES: [&str; 4] = ["auth", "chat", "media", "flow"];

/// The services of the reference that only send events.
pub const FEEDS: [&str; 1] = ["events"];

/// What a target of the reference is configured with.
#[derive(Clone, Debug, Default)]
pub struct TargetSettings {
    /// Settings by key.
    pub values: Map<String, Value>,
    /// Header fields of each request.
    pub headers: Vec<(String, String)>,
    /// User name and password.
    pub basic: Option<(String, String)>,
    /// Account SID and auth token.
    pub account: Option<(String, String)>,
}

impl TargetSettings {
    /// Credentials of the second account for one service.
    pub fn of_second_account(service: &str) -> Self {
        if service == "auth" {
            let field = application::API_KEY_HEADER.to_owned();
            let headers = vec![(field, second_account::APPLICATION_KEY.to_owned())];
            return Self {
                headers,
                ..Self::default()
            };
        }
        let pair = (second_account::API_KEY, second_account::API_SECRET);
        Self {
            basic: Some((pair.0.to_owned(), pair.1.to_owned())),
            ..Self::default()
        }
    }

    /// Those of one service; none for a service that the reference does not implement.
    pub fn of(service: &str) -> Self {
        if !SERVICES.contains(&service) {
            return Self::default();
        }
        let sender = || format!("MG{}", "0123456789abcdef".repeat(2));
        let values = match service {
            "flow" => json!({
                "to": "+12025550123",
                "from": "+12025550100",
                "message_service_sid": sender(),
            }),
            "chat" => json!({ "message_service_sid": sender() }),
            "auth" => json!({
                "format": "json",
                "user_status_path": "/protected/{FORMAT}/users/{AUTH_ID}/status",
                "application": {
                    "id": application::ID.to_string(),
                    "name": application::NAME,
                    "scheme": application::SCHEME,
                    "api_key": application::API_KEY,
                },
            }),
            _ => Value::Null,
        };
        let mut settings = Self::default();
        if let Value::Object(values) = values {
            settings.values = values;
        }
        if service == "auth" {
            let field = (application::API_KEY_HEADER, application::API_KEY);
            settings.headers = vec![(field.0.to_owned(), field.1.to_owned())];
        } else {
            settings.basic = Some((account::API_KEY.to_owned(), account::API_SECRET.to_owned()));
            settings.account = Some((account::SID.to_owned(), account::AUTH_TOKEN.to_owned()));
        }
        settings
    }
}
