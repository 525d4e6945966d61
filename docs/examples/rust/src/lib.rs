//! A minimal client of the chat service that respects Retry-After.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use std::{env, error::Error, thread, time::Duration};
use ureq::http::{Request, Response};
use ureq::{Agent, Body};

const KEY: &str = "reference-api-key:reference-api-secret";
const TRIES: u32 = 5;

/// The service at an address.
pub struct Chat {
    base: String,
    agent: Agent,
    tries: u32,
}

type Answer = Result<Value, Box<dyn Error>>;

impl Chat {
    /// A new client.
    pub fn new(base: &str) -> Self {
        let refusals_are_answers = Agent::config_builder().http_status_as_error(false);
        // Setting IMPATIENT disables retries, which makes the tests fail.
        let tries = env::var("IMPATIENT").map_or(TRIES, |_| 1);
        let agent = refusals_are_answers.build().into();
        Self {
            base: base.to_owned(),
            agent,
            tries,
        }
    }

    fn ask(&self, method: &str, path: &str, form: &str) -> Answer {
        let url = format!("{}{path}", self.base);
        for left in (0..self.tries).rev() {
            let request = Request::builder()
                .method(method)
                .uri(&url)
                .header("Authorization", format!("Basic {}", STANDARD.encode(KEY)))
                .header("Content-Type", "application/x-www-form-urlencoded");
            let mut answer: Response<Body> = self.agent.run(request.body(form.to_owned())?)?;
            if answer.status().is_success() {
                return Ok(answer.body_mut().read_json()?);
            }
            let status = answer.status().as_u16();
            if left == 0 || ![429, 503].contains(&status) {
                return Err(format!("{method} {path}: {status}").into());
            }
            let seconds_text = answer.headers().get("Retry-After");
            let seconds =
                seconds_text.and_then(|seconds_text| seconds_text.to_str().ok()?.parse().ok());
            thread::sleep(Duration::from_secs(seconds.unwrap_or(1)));
        }
        unreachable!("the last try returns")
    }

    /// Makes a service.
    pub fn create_service(&self, name: &str) -> Answer {
        self.ask("POST", "/chat/v2/Services", &format!("FriendlyName={name}"))
    }

    /// Lists services.
    pub fn services(&self) -> Answer {
        Ok(self.ask("GET", "/chat/v2/Services", "")?["services"].take())
    }
}
