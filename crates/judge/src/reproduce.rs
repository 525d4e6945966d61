//! The curl command that repeats an exchange.
//!
//! Values from the environment are written as the variables of the configuration, so that the line works in the same
//! environment. Other secrets are redacted at the output.

use super::evidence::Exchange;
use conformant_base::text;
use conformant_rulebook::scenario::Credentials;
use serde::{Deserialize, Serialize};

/// Larger bodies are referenced by name only.
const BODY_SHOWN_MAX: usize = 4096;

/// Configured credentials and options as a shell spells them. In each text, `${NAME}` is a variable of the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shell {
    /// User name and password of HTTP Basic credentials.
    pub basic: Option<(String, String)>,
    /// Account SID and auth token.
    pub account: Option<(String, String)>,
    /// Header fields, a bearer token among them.
    pub headers: Vec<(String, String)>,
    /// A command that prints the value of `Authorization` behind `Bearer `.
    pub bearer: Option<String>,
    /// Further options of curl, each with its value: certificates, a proxy.
    pub options: Vec<(String, String)>,
}

impl Shell {
    /// The options for a header field in a curl command; `None` if the field is written as it was sent.
    pub fn field(&self, name: &str, credentials: Credentials) -> Option<String> {
        let pair = |name: &str, password: &str| {
            format!("-u {}", configured_word(&format!("{name}:{password}")))
        };
        let user = |(name, password): &(String, String)| pair(name, password);
        let configured = self
            .headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name));
        let authorizes = name.eq_ignore_ascii_case("Authorization");
        match credentials {
            Credentials::Account if authorizes => self.account.as_ref().map(user),
            Credentials::Default | Credentials::Account | Credentials::OtherAccount => {
                match (configured, &self.bearer) {
                    (Some((name, text)), _) => Some(format!(
                        "-H {}",
                        configured_word(&format!("{name}: {text}"))
                    )),
                    (None, Some(command)) if authorizes => {
                        Some(format!("-H \"Authorization: Bearer $({command})\""))
                    }
                    (None, _) if authorizes => self.basic.as_ref().map(user),
                    (None, _) => None,
                }
            }
            _ if !authorizes => None,
            Credentials::Unknown => Some(pair(UNKNOWN, &self.basic.as_ref()?.1)),
            Credentials::Wrong => Some(pair(&self.basic.as_ref()?.0, WRONG)),
            Credentials::MixedUser => {
                let ((sid, _), (_, password)) = (self.account.as_ref()?, self.basic.as_ref()?);
                Some(pair(sid, password))
            }
            Credentials::MixedPassword => {
                let ((name, _), (_, token)) = (self.basic.as_ref()?, self.account.as_ref()?);
                Some(pair(name, token))
            }
            Credentials::PasswordSpace => {
                let (name, password) = self.basic.as_ref()?;
                Some(pair(name, &format!("{password} ")))
            }
            Credentials::PasswordEmpty => Some(pair(&self.basic.as_ref()?.0, "")),
            Credentials::None
            | Credentials::UserOtherCase
            | Credentials::PasswordOtherCase
            | Credentials::PasswordShort
            | Credentials::OtherUser
            | Credentials::OtherPassword
            | Credentials::Bearer => None,
        }
    }
}

/// An unknown user name.
pub const UNKNOWN: &str = "not-the-right-key";
/// A wrong password.
pub const WRONG: &str = "not-the-right-secret";

/// A `curl` command that sends the same request.
pub fn curl(exchange: &Exchange) -> String {
    let request = &exchange.request;
    let mut command = String::from("curl -sS");
    for (option, value) in &exchange.shell.options {
        command.push_str(&format!(" {option} {}", configured_word(value)));
    }
    if request.method != "GET" || !request.body.is_empty() {
        command.push_str(&format!(" -X {}", request.method));
    }
    command.push(' ');
    command.push_str(&shell_word(&format!("{}{}", exchange.base, request.target)));
    for (name, value) in request.headers.iter() {
        if let Some(words) = exchange.shell.field(name, exchange.credentials) {
            command.push(' ');
            command.push_str(&words);
        } else if !name.eq_ignore_ascii_case("Host") && !name.eq_ignore_ascii_case("Content-Length")
        {
            command.push_str(" -H ");
            command.push_str(&shell_word(&format!("{name}: {value}")));
        }
    }
    if request.body.is_empty() {
        return command;
    }
    match std::str::from_utf8(&request.body) {
        Ok(body) if body.len() <= BODY_SHOWN_MAX => {
            command.push_str(" --data-binary ");
            command.push_str(&shell_word(body));
        }
        Ok(_) | Err(_) => {
            command.push_str(&format!(
                " --data-binary @BODY  # {} bytes",
                request.body.len()
            ));
        }
    }
    command
}

/// A configured text as a word of a POSIX shell: only `${NAME}` is expanded.
pub fn configured_word(text: &str) -> String {
    let mut inner = String::new();
    let mut rest = text;
    let mut has_variable = false;
    while let Some(start) = rest.find("${") {
        let Some(end) = rest[start..].find('}').map(|e| start + e) else {
            break;
        };
        let name = &rest[start + 2..end];
        let is_variable = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        inner.push_str(&double_quoted(&rest[..start]));
        if is_variable {
            has_variable = true;
            let goes_on =
                rest[end + 1..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            inner.push_str(&if goes_on {
                format!("${{{name}}}")
            } else {
                format!("${name}")
            });
        } else {
            inner.push_str(&double_quoted(&rest[start..=end]));
        }
        rest = &rest[end + 1..];
    }
    if !has_variable {
        return shell_word(text);
    }
    inner.push_str(&double_quoted(rest));
    format!("\"{inner}\"")
}

/// Escapes the characters that are special between double quotation marks.
fn double_quoted(text: &str) -> String {
    let mut inner = String::new();
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '`' | '$') {
            inner.push('\\');
        }
        inner.push(c);
    }
    inner
}

/// A text as a word of a POSIX shell without expansion. What must not reach a terminal or a CI log as it is, such as
/// control characters, becomes `$'\xNN'`: the shell passes exactly the same bytes on.
pub fn shell_word(text: &str) -> String {
    if text::escape_line(text) == text {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    let has_command = text.contains("::") || text.contains("##");
    let mut inner = String::new();
    for c in text.chars() {
        match c {
            '\'' => inner.push_str("\\'"),
            '\\' => inner.push_str("\\\\"),
            '\n' => inner.push_str("\\n"),
            '\r' => inner.push_str("\\r"),
            '\t' => inner.push_str("\\t"),
            // Two of them may begin a command of a CI service.
            c if text::is_deceptive(c) || (has_command && matches!(c, ':' | '#')) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    inner.push_str(&format!("\\x{byte:02x}"));
                }
            }
            c => inner.push(c),
        }
    }
    format!("$'{inner}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_environment_are_expanded_by_the_shell() {
        for (text, spelled) in [
            ("key:secret", "'key:secret'"),
            ("key:${SECRET}", "\"key:$SECRET\""),
            ("${KEY}:${SECRET}", "\"$KEY:$SECRET\""),
            ("X-Key: a${KEY}b", "\"X-Key: a${KEY}b\""),
            ("$5 \"x\" ${KEY}", "\"\\$5 \\\"x\\\" $KEY\""),
            ("${uuid}", "'${uuid}'"),
        ] {
            assert_eq!(configured_word(text), spelled);
        }
    }

    #[test]
    fn credentials_become_their_curl_options() {
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        let mut shell = Shell {
            basic: pair("key", "${SECRET}"),
            account: pair("AC1", "${TOKEN}"),
            headers: vec![("X-Key".to_owned(), "${OTHER}".to_owned())],
            ..Shell::default()
        };
        let field = |shell: &Shell, name: &str, credentials| {
            shell.field(name, credentials).unwrap_or_default()
        };
        for (credentials, spelled) in [
            (Credentials::Default, "-u \"key:$SECRET\""),
            (Credentials::Account, "-u \"AC1:$TOKEN\""),
            (Credentials::Wrong, "-u 'key:not-the-right-secret'"),
            (Credentials::Unknown, "-u \"not-the-right-key:$SECRET\""),
            (Credentials::MixedUser, "-u \"AC1:$SECRET\""),
            (Credentials::MixedPassword, "-u \"key:$TOKEN\""),
            (Credentials::PasswordSpace, "-u \"key:$SECRET \""),
            (Credentials::PasswordEmpty, "-u 'key:'"),
            (Credentials::PasswordShort, ""),
            (Credentials::None, ""),
        ] {
            let found = field(&shell, "authorization", credentials);
            assert_eq!(found, spelled, "{credentials:?}");
        }
        let key = "-H \"X-Key: $OTHER\"";
        assert_eq!(field(&shell, "x-key", Credentials::Default), key);
        assert_eq!(field(&shell, "x-key", Credentials::Wrong), "");
        assert_eq!(field(&shell, "Accept", Credentials::Default), "");
        shell.bearer = Some("./token.sh".to_owned());
        let bearer = "-H \"Authorization: Bearer $(./token.sh)\"";
        assert_eq!(field(&shell, "Authorization", Credentials::Default), bearer);
    }

    #[test]
    fn quoted_words_are_not_expanded() {
        for (text, quoted) in [
            ("plain", "'plain'"),
            ("it's $HOME", r"'it'\''s $HOME'"),
            ("a\nb'\\", r"$'a\nb\'\\'"),
            ("\u{1b}[0m", r"$'\x1b[0m'"),
            ("a\u{200d}🚀\u{85}", r"$'a\xe2\x80\x8d🚀\xc2\x85'"),
            ("a: ::error b", r"$'a\x3a \x3a\x3aerror b'"),
        ] {
            assert_eq!(shell_word(text), quoted);
        }
    }
}
