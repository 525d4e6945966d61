//! Bearer tokens printed by a configured command, which runs again when a token expires or is rejected.
//!
//! The output is the token alone, or JSON with `access_token` (or `token`) and optionally `expires_in` in seconds.

use super::command::{CommandError, printed};
use conformant_base::clock;
use conformant_base::parallel::lock;
use conformant_judge::shell_word;
use serde_json::Value;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long before its expiry a token is renewed, limited to a tenth of its lifetime.
const EARLY: Duration = Duration::from_secs(10);

/// Why no token is available; completes "failed to get a bearer token: …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BearerError {
    /// The command failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The output contains no token.
    #[error("{0} printed no token: write it alone, or as JSON with access_token")]
    NoToken(String),
}

/// A command that prints a bearer token.
pub struct Bearer {
    command: Vec<String>,
    timeout: Duration,
    interrupted: Arc<AtomicBool>,
    issued: Mutex<Option<Issued>>,
}

struct Issued {
    token: String,
    until: Option<Instant>,
    /// The member of the JSON object that held it; `None` for plain output.
    member: Option<&'static str>,
}

impl fmt::Debug for Bearer {
    /// Prints the command and never the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bearer").field(&self.command).finish()
    }
}

impl Bearer {
    /// Runs nothing yet.
    pub fn new(command: Vec<String>, timeout: Duration) -> Self {
        Self {
            command,
            timeout,
            interrupted: Arc::default(),
            issued: Mutex::default(),
        }
    }

    /// A token that has not expired, as far as known.
    pub fn token(&self) -> Result<String, BearerError> {
        let mut issued = lock(&self.issued);
        let now = clock::monotonic();
        if let Some(known) = &*issued
            && known.until.is_none_or(|until| until > now)
        {
            return Ok(known.token.clone());
        }
        let new = self.ask(now)?;
        let token = new.token.clone();
        *issued = Some(new);
        Ok(token)
    }

    /// The token that follows a rejected one. Concurrent callers get the same new token.
    pub fn after(&self, refused: &str) -> Result<String, BearerError> {
        let mut issued = lock(&self.issued);
        if issued.as_ref().is_some_and(|known| known.token == refused) {
            *issued = None;
        }
        drop(issued);
        self.token()
    }

    /// The shell command that prints the token, by the form of the last output.
    pub fn shell(&self) -> String {
        let words: Vec<String> = self.command.iter().map(|w| shell_word(w)).collect();
        let member = lock(&self.issued).as_ref().and_then(|known| known.member);
        match member {
            Some(member) => format!("{} | jq -r .{member}", words.join(" ")),
            None => words.join(" "),
        }
    }

    fn ask(&self, now: Instant) -> Result<Issued, BearerError> {
        let program = self.command.first().cloned().unwrap_or_default();
        let bytes = printed(&self.command, self.timeout, &self.interrupted)?;
        let text = String::from_utf8_lossy(&bytes);
        read(text.trim(), now).ok_or(BearerError::NoToken(program))
    }
}

fn read(text: &str, now: Instant) -> Option<Issued> {
    let said: Option<Value> = serde_json::from_str(text).ok();
    let Some(said) = said.filter(Value::is_object) else {
        let is_token = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '{');
        return is_token.then(|| Issued {
            token: text.to_owned(),
            until: None,
            member: None,
        });
    };
    let member = ["access_token", "token"]
        .into_iter()
        .find(|m| said.get(m).is_some())?;
    let token = said[member].as_str().filter(|token| !token.is_empty())?;
    let life = said.get("expires_in").and_then(Value::as_f64);
    let life = life.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Some(Issued {
        token: token.to_owned(),
        member: Some(member),
        until: life.map(|life| now + life.saturating_sub(EARLY.min(life / 10))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(script: &str) -> Bearer {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        Bearer::new(command, Duration::from_secs(10))
    }

    #[test]
    fn a_token_is_asked_for_once_until_it_is_refused_or_expires() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let counted = format!("echo x >> {0}; wc -l < {0} | tr -d ' '", count.display());
        let bearer = bearer(&counted);
        assert_eq!(bearer.token().unwrap(), "1");
        assert_eq!(bearer.token().unwrap(), "1");
        assert_eq!(bearer.after("1").unwrap(), "2");
        assert_eq!(
            bearer.after("1").unwrap(),
            "2",
            "renewed by the first caller"
        );

        let expiring = self::bearer(&format!(
            "printf '{{\"access_token\":\"%s\",\"expires_in\":0}}' \"$({counted})\""
        ));
        assert_eq!(expiring.token().unwrap(), "3");
        assert_eq!(expiring.token().unwrap(), "4");
    }

    #[test]
    fn output_without_a_token_is_an_error() {
        for (script, why) in [
            (
                "echo the key is gone >&2; exit 3",
                "sh ended with exit status: 3: the key is gone",
            ),
            ("echo", "sh printed no token"),
            ("echo not a token", "sh printed no token"),
            ("echo '{\"token\": 5}'", "sh printed no token"),
        ] {
            let error = bearer(script).token().unwrap_err().to_string();
            assert!(error.starts_with(why), "{error}");
        }
        let token = bearer("echo '{\"token\": \"a.b\"}'").token();
        assert_eq!(token.unwrap(), "a.b");
    }
}
