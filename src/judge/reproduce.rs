//! The command that repeats an exchange.
//!
//! Credentials stand in it as the engine says; whatever is secret is redacted at the output.

use super::evidence::Exchange;

/// Bodies beyond this are named, not shown.
const BODY_SHOWN_MAX: usize = 4096;

/// A `curl` command line that sends the same request again.
pub(super) fn curl(exchange: &Exchange) -> String {
    let request = &exchange.request;
    let mut command = String::from("curl -sS");
    if request.method != "GET" || !request.body.is_empty() {
        command.push_str(&format!(" -X {}", request.method));
    }
    command.push(' ');
    command.push_str(&quote(&format!("{}{}", exchange.base, request.target)));
    for (name, value) in request.headers.iter() {
        if name.eq_ignore_ascii_case("Authorization") && !exchange.credentials_hint.is_empty() {
            command.push(' ');
            command.push_str(&exchange.credentials_hint);
        } else if !name.eq_ignore_ascii_case("Host") && !name.eq_ignore_ascii_case("Content-Length")
        {
            command.push_str(" -H ");
            command.push_str(&quote(&format!("{name}: {value}")));
        }
    }
    if request.body.is_empty() {
        return command;
    }
    match std::str::from_utf8(&request.body) {
        Ok(body) if body.len() <= BODY_SHOWN_MAX => {
            command.push_str(" --data-binary ");
            command.push_str(&quote(body));
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

/// Quotes text for a POSIX shell; control characters are written as `$'\xNN'`.
fn quote(text: &str) -> String {
    if text.chars().any(char::is_control) {
        let escaped: String = text
            .chars()
            .map(|c| match c {
                '\'' => "\\'".to_owned(),
                '\\' => "\\\\".to_owned(),
                '\n' => "\\n".to_owned(),
                '\r' => "\\r".to_owned(),
                '\t' => "\\t".to_owned(),
                c if c.is_control() && c.is_ascii() => format!("\\x{:02x}", u32::from(c)),
                c => c.to_string(),
            })
            .collect();
        return format!("$'{escaped}'");
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn quoting_leaves_nothing_for_the_shell() {
        for (text, quoted) in [
            ("plain", "'plain'"),
            ("it's $HOME", r"'it'\''s $HOME'"),
            ("a\nb'\\", r"$'a\nb\'\\'"),
            ("\u{1b}[0m", r"$'\x1b[0m'"),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }
}
