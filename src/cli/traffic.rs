//! Live judging of client traffic for `proxy` and `serve`: reports findings at once and at the end, without secrets.

use super::args::{OutputArgs, Side};
use super::{Done, Exit, invocation, note, output, print, stored};
use conformant_base::http::Headers;
use conformant_base::redact::{Redactor, is_secret_header};
use conformant_base::text;
use conformant_check::{Inline, Passed, Sides};
use conformant_engine::Demands;
use conformant_record::{Finding, Level, Subject};
use conformant_report::Report;
use std::collections::BTreeSet;

/// Most credentials of clients that are kept for redaction.
const SECRETS_MAX: usize = 1_000;
/// Most requests without a documented operation that are named.
const UNKNOWN_MAX: usize = 3;

/// A judge of passing traffic that prints findings at once.
pub(super) struct Watch<'a> {
    inline: Inline<'a>,
    secrets: Secrets,
    /// The first requests without a documented operation: method and path.
    unknown: Vec<String>,
}

impl<'a> Watch<'a> {
    /// A judge that redacts these secrets and the credentials that it sees.
    pub(super) fn new(inline: Inline<'a>, secrets: Vec<String>) -> Self {
        Self {
            inline,
            secrets: Secrets::new(secrets),
            unknown: Vec::new(),
        }
    }

    pub(super) fn exchange_count(&self) -> usize {
        self.inline.counts().0
    }

    /// Judges an exchange and prints its findings.
    pub(super) fn take(&mut self, passed: Passed) {
        self.secrets.learn(&passed.request.headers);
        let shown = format!("{} {}", passed.request.method, passed.request.path());
        let (_, foreign) = self.inline.counts();
        let found = self.inline.take(passed);
        let is_unknown = self.inline.counts().1 > foreign;
        if is_unknown && self.unknown.len() < UNKNOWN_MAX && !self.unknown.contains(&shown) {
            self.unknown.push(shown);
        }
        print_findings(&found, &self.secrets.redactor);
    }

    /// Judges the rest, writes the reports, and returns the exit code.
    /// `conclude` may report a target that failed: it returns the exit code, errors of the record and other lines to print.
    pub(super) fn finish(
        self,
        reports: &[Report],
        how: &OutputArgs,
        conclude: impl FnOnce(Exit) -> (Exit, Vec<String>, Vec<String>),
    ) -> Done {
        let (seen, foreign) = self.inline.counts();
        let unlisted = self.inline.unlisted();
        let has_infrastructure_error = self.inline.had_infrastructure_error();
        let demands = Demands {
            strict: how.strict,
            of_service: self.inline.sides() != Sides::Requests,
            ..Demands::default()
        };
        let (mut record, remaining) = self.inline.finish();
        record.invocation = invocation::invocation();
        print_findings(&remaining, &self.secrets.redactor);
        let redactor = &self.secrets.redactor;
        let (exit, lines) = stored::conclude(&mut record, demands, &[], has_infrastructure_error);
        let (exit, errors, remarks) = conclude(exit);
        record.exit = Some(exit as u8);
        record.errors.clone_from(&errors);
        output::publish(record, redactor, reports, how)?;
        let named = match self.unknown.as_slice() {
            [] => String::new(),
            first => redactor
                .redact(&format!(", such as {}", first.join(", ")))
                .into_owned(),
        };
        note(&format!(
            "{} seen, {foreign} of them without a documented operation{named}",
            text::count(seen, "request")
        ));
        if unlisted > 0 {
            note(&format!(
                "{unlisted} further findings are counted with their rules and not listed"
            ));
        }
        for line in lines.into_iter().chain(remarks) {
            note(&redactor.redact(&line));
        }
        for error in errors {
            note(&format!("error: {error}"));
        }
        Ok(exit)
    }
}

impl From<Side> for Sides {
    fn from(side: Side) -> Self {
        match side {
            Side::Both => Self::Both,
            Side::Requests => Self::Requests,
            Side::Responses => Self::Responses,
        }
    }
}

fn print_findings(findings: &[Finding], redactor: &Redactor) {
    for finding in findings {
        let (whose, lenient) = match finding.subject {
            Subject::Service => ("exchange", "WARN"),
            Subject::Request => ("request", "NOTE"),
        };
        let word = if finding.level == Level::Must {
            "FAIL"
        } else {
            lenient
        };
        let line = format!(
            "{word} {} ({whose} {}, {}/{}): {}",
            finding.rule, finding.exchange, finding.service, finding.operation, finding.message
        );
        print(&format!("{}\n", text::escape_line(&redactor.redact(&line))));
    }
}

/// Secrets to redact: configured ones and credentials seen in traffic.
struct Secrets {
    known: BTreeSet<String>,
    redactor: Redactor,
}

impl Secrets {
    fn new(configured: Vec<String>) -> Self {
        let known: BTreeSet<String> = configured.into_iter().collect();
        let redactor = Redactor::new(&known);
        Self { known, redactor }
    }

    fn learn(&mut self, headers: &Headers) {
        let before = self.known.len();
        for (_, value) in headers.iter().filter(|(name, _)| is_secret_header(name)) {
            if self.known.len() < SECRETS_MAX {
                self.known.insert(value.to_owned());
                self.known.extend(in_credentials(value));
            }
        }
        if self.known.len() > before {
            self.redactor = Redactor::new(&self.known);
        }
    }
}

/// The secret part of an `Authorization` value: a token, or the password of Basic credentials.
fn in_credentials(value: &str) -> Vec<String> {
    use base64::Engine as _;
    let Some((scheme, rest)) = value.split_once(' ') else {
        return Vec::new();
    };
    let rest = rest.trim();
    if !scheme.eq_ignore_ascii_case("basic") {
        return vec![rest.to_owned()];
    }
    let decoded = base64::engine::general_purpose::STANDARD.decode(rest);
    let pair = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let password = pair.and_then(|pair| Some(pair.split_once(':')?.1.to_owned()));
    std::iter::once(rest.to_owned()).chain(password).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_traffic_are_redacted() {
        let mut secrets = Secrets::new(vec!["configured-secret".to_owned()]);
        let headers: Headers = [
            ("Authorization", "Basic dXNlcjpwYXNzd29yZC1vZi11c2Vy"),
            ("X-Auth-API-Key", "key-of-the-application"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into_iter()
        .collect();
        secrets.learn(&headers);
        let text = "a password-of-user b key-of-the-application c configured-secret d";
        let shown = secrets.redactor.redact(text);
        assert_eq!(shown, "a [redacted] b [redacted] c [redacted] d");
    }
}
