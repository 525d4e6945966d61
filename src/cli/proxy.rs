//! `proxy`: traffic judged on its way to a target, until a signal or a limit ends it.
//!
//! A proxy has no end of its own, so that a signal is an ordinary one: what was judged decides the exit
//! code, and a second signal ends the process at once.

use super::args::ProxyArgs;
use super::conclude::{Demands, conclude};
use super::signals::Signals;
use super::{Done, Failure, config, load, note, output, reports_of, say};
use crate::check::{Inline, Passed, Surroundings};
use crate::clock;
use crate::http::Headers;
use crate::judge::evidence::Span;
use crate::redact::{Redactor, is_secret_header};
use crate::report::{Consumer, Keep, Settings, Stream};
use crate::rulebook;
use crate::text;
use crate::transport::{BaseUrl, Forwarded, Gateway, Limits, Listening};
use crate::verdict::{Finding, RunEvent};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often the end is looked for while nothing passes.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Exchanges that wait to be judged; whoever asks beyond them waits, too.
const WAITING_MAX: usize = 4;
/// Credentials of others that are remembered to be taken out of findings.
const SECRETS_MAX: usize = 1_000;

pub(super) fn proxy(args: &ProxyArgs) -> Done {
    let reports = reports_of(&args.reports, &[])?;
    let rulebook = load(&args.specs)?;
    let known = config::known(args.config.as_deref())?;
    let upstreams = upstreams(&args.upstreams)?;
    let surroundings = Surroundings {
        configured: json!({"auth": Value::Object(known.of_traffic())}),
        targets: upstreams
            .iter()
            .map(|(service, base)| (service.clone(), base.to_string()))
            .collect(),
        alone: args.alone,
        ..Surroundings::default()
    };
    let deadline = args.time.as_deref().map(within).transpose()?;
    let signals = Signals::listen().map_err(|e| Failure::Trouble(format!("signals: {e}")))?;
    let limits = Limits {
        timeout: known.timeout,
        body: known.body_bytes_max,
        ..Limits::default()
    };
    let listening = Listening {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, args.port)),
        body: limits.body,
        ..Listening::default()
    };
    let client = known.reach.client(limits, &upstreams);
    let client = client.interrupted_by(Arc::clone(&signals.interrupted));
    let (sender, passed) = mpsc::sync_channel(WAITING_MAX);
    let gateway = Gateway::start(&listening, upstreams, client, move |forwarded| {
        // Nobody listens any more only when the end has come.
        drop(sender.send(forwarded));
    })
    .map_err(|e| Failure::Trouble(format!("failed to {e}")))?;
    say(&format!("listening http://{}\n", gateway.address()));
    let mut inline = Inline::new(&rulebook, &surroundings);
    let mut secrets = Secrets::new(known.secrets);
    loop {
        let ended = signals.interrupted.load(Ordering::Relaxed)
            || deadline.is_some_and(|end| clock::monotonic() >= end)
            || args
                .max_exchanges
                .is_some_and(|most| inline.counts().0 >= most);
        if ended {
            break;
        }
        match passed.recv_timeout(LOOK_EVERY) {
            Ok(forwarded) => take(forwarded, &mut inline, &mut secrets),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // Requests that are under way find nobody to wait for.
    drop(passed);
    drop(gateway);
    let (passed, foreign) = inline.counts();
    let (unlisted, trouble) = (inline.unlisted(), inline.met_trouble());
    let (record, told) = inline.finish();
    tell(&told, &secrets.redactor);
    let settings = Settings {
        strict: args.strict,
    };
    let mut keep = Keep::default();
    {
        let mut out = output::stream(&reports);
        let mut console = output::console(out.as_mut(), args.console, &reports, settings);
        let consumers = vec![&mut console as &mut dyn Consumer, &mut keep];
        Stream::new(&secrets.redactor, consumers).send(RunEvent::Finished {
            record: Box::new(record),
        });
    }
    let record = keep
        .record
        .ok_or_else(|| Failure::Trouble("the proxy left no record".to_owned()))?;
    output::write_reports(&reports, &record, settings)?;
    note(&format!(
        "{passed} requests passed, {foreign} of them belong to no documented operation"
    ));
    if unlisted > 0 {
        note(&format!(
            "{unlisted} further findings are counted with their rules and not listed"
        ));
    }
    let demands = Demands {
        strict: args.strict,
        ..Demands::default()
    };
    Ok(conclude(demands, &record, &[], trouble))
}

/// Judges what passed, and tells what was found in it.
fn take(forwarded: Forwarded, inline: &mut Inline<'_>, secrets: &mut Secrets) {
    secrets.learn(&forwarded.request.headers);
    let answer = forwarded.answer;
    let found = inline.take(Passed {
        origin: forwarded.origin,
        request: forwarded.request,
        answer: answer.map_err(|fault| (fault.cause.to_string(), fault.detail)),
        span: Span {
            began: forwarded.began,
            ended: forwarded.ended,
        },
    });
    tell(&found, &secrets.redactor);
}

/// One line for each finding.
fn tell(findings: &[Finding], redactor: &Redactor) {
    for finding in findings {
        let word = if finding.level == "must" {
            "FAIL"
        } else {
            "WARN"
        };
        let line = format!(
            "{word} {} (exchange {}, {}/{}): {}",
            finding.rule, finding.exchange, finding.service, finding.operation, finding.message
        );
        say(&format!("{}\n", text::escape_line(&redactor.redact(&line))));
    }
}

/// What must appear in no output: what is configured, and the credentials that pass by.
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

/// The secret part of what stands behind a scheme: a token, or the password of Basic credentials.
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

fn upstreams(flags: &[String]) -> Result<BTreeMap<String, BaseUrl>, Failure> {
    let mut upstreams = BTreeMap::new();
    for flag in flags {
        for (service, url) in config::by_service("--upstream", flag).map_err(Failure::Usage)? {
            let base = BaseUrl::parse(&url)
                .map_err(|e| Failure::Usage(format!("--upstream {service}={url}: {e}")))?;
            upstreams.insert(service, base);
        }
    }
    Ok(upstreams)
}

fn within(text: &str) -> Result<Instant, Failure> {
    let wrong = || Failure::Usage(format!("--for {text}: no duration; write 500ms, 10s or 5m"));
    let time = rulebook::duration(text).ok_or_else(wrong)?;
    Ok(clock::monotonic() + time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_that_pass_by_are_in_no_output() {
        let mut secrets = Secrets::new(vec!["configured-secret".to_owned()]);
        let headers: Headers = [
            ("Authorization", "Basic dXNlcjpwYXNzd29yZC1vZi11c2Vy"),
            ("X-Auth-API-Key", "key-of-the-application"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into_iter()
        .collect();
        secrets.learn(&headers);
        let told = "a password-of-user b key-of-the-application c configured-secret d";
        let shown = secrets.redactor.redact(told);
        assert_eq!(shown, "a [redacted] b [redacted] c [redacted] d");
    }
}
