//! `proxy`: forwards traffic to a target and judges it, until a signal or a limit.
//!
//! A signal is the ordinary end of a proxy: the exit code follows from what was judged. A second signal ends the
//! process at once.

use super::args::ProxyArgs;
use super::signals::Signals;
use super::traffic::Watch;
use super::{Done, Exit, Failure, config, load, print, reports_of};
use conformant_base::{clock, text};
use conformant_check::{Inline, Passed, Sides, Surroundings};
use conformant_judge::evidence::Span;
use conformant_net::transport::{BaseUrl, Forwarded, Gateway, Misdirected, ServerSettings};
use conformant_rulebook::service::ServiceIndex;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Interval of the check for the end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long clients may take at the end for responses that are on their way.
const RESPONSES_WITHIN: Duration = Duration::from_secs(1);
/// Exchanges that wait for the judge; further requests are delayed.
const WAITING_MAX: usize = 4;

pub(super) fn proxy(args: &ProxyArgs) -> Done {
    let reports = reports_of(&args.output.reports, &[])?;
    let rulebook = load(&args.specs)?;
    let known = config::known(args.config.as_deref(), args.specs.specs.as_deref())?;
    let upstreams = upstreams(&rulebook.index, &args.upstreams)?;
    let surroundings = Surroundings {
        configured: known.of_traffic(),
        targets: upstreams
            .iter()
            .map(|(service, base)| (service.clone(), base.to_string()))
            .collect(),
        second_accounts: known.second_accounts.clone(),
        alone: args.alone,
        sides: args.judge.into(),
        ..Surroundings::default()
    };
    let deadline = args.time.as_deref().map(deadline).transpose()?;
    let signals = Signals::listen()?;
    let listening = ServerSettings {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, args.port)),
        body: known.limits.body,
        ..ServerSettings::default()
    };
    let client = known.reach.client(known.limits, &upstreams);
    let client = client.interrupted_by(Arc::clone(&signals.interrupted));
    let (sender, passed) = mpsc::sync_channel(WAITING_MAX);
    let gateway = Gateway::start(&listening, upstreams, client, move |forwarded| {
        // The send fails only when the receiver has ended.
        drop(sender.send(forwarded));
    })
    .map_err(|e| Failure::Trouble(format!("failed to {e}")))?;
    print(&format!("listening http://{}\n", gateway.address()));
    let inline = Inline::new("proxy", &rulebook, &surroundings);
    let mut watch = Watch::new(inline, known.secrets);
    let mut upstreams_seen = Seen::default();
    let most = args.max_exchanges;
    let is_full = |watch: &Watch<'_>| most.is_some_and(|most| watch.exchange_count() >= most);
    loop {
        let ended = signals.interrupted.load(Ordering::Relaxed)
            || deadline.is_some_and(|end| clock::monotonic() >= end)
            || is_full(&watch);
        if ended {
            break;
        }
        match passed.recv_timeout(LOOK_EVERY) {
            Ok(forwarded) => {
                upstreams_seen.note(&forwarded);
                watch.take(passed_of(forwarded));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // A response that was sent counts, even if the end follows at once.
    while !is_full(&watch)
        && let Ok(forwarded) = passed.try_recv()
    {
        upstreams_seen.note(&forwarded);
        watch.take(passed_of(forwarded));
    }
    // Requests in progress are not judged.
    drop(passed);
    let misdirected = gateway.misdirected();
    gateway.finish(RESPONSES_WITHIN);
    watch.finish(&reports, &args.output, |exit| {
        let (exit, errors) = upstreams_seen.concluded(exit, surroundings.sides);
        (
            exit,
            errors,
            misdirected.iter().map(misdirected_text).collect(),
        )
    })
}

/// Says why requests were not forwarded, which a client may take for an answer of the service.
fn misdirected_text(misdirected: &Misdirected) -> String {
    format!(
        "{} answered by the proxy with 404, such as {}: {}",
        text::count(misdirected.count, "request"),
        text::escape_line(&misdirected.first),
        misdirected.why
    )
}

/// How the upstreams answered, by origin.
#[derive(Default)]
struct Seen(BTreeMap<String, Answers>);

/// The answers of one upstream.
#[derive(Default)]
struct Answers {
    all: usize,
    /// Requests without a connection, and why.
    unreachable: usize,
    why: String,
    /// Answers 401 and 403.
    unauthorized: usize,
    /// Redirects, server errors and pages for people, by status.
    useless: BTreeMap<u16, usize>,
}

impl Seen {
    fn note(&mut self, forwarded: &Forwarded) {
        let answers = self.0.entry(forwarded.origin.clone()).or_default();
        answers.all += 1;
        match &forwarded.answer {
            Ok(answer) => {
                answers.unauthorized += usize::from(matches!(answer.status, 401 | 403));
                let media_type = answer.headers.get("Content-Type").unwrap_or_default();
                if matches!(answer.status, 300..=399 | 500..) || media_type.starts_with("text/html")
                {
                    *answers.useless.entry(answer.status).or_default() += 1;
                }
            }
            Err(fault) if fault.cause.is_unreachable() => {
                answers.unreachable += 1;
                answers.why = fault.to_string();
            }
            Err(_) => {}
        }
    }

    /// Reports upstreams that were never reached, or answered nothing but 401 and 403: they decide, as in a run. So does one
    /// that answers as no service does, if responses are judged.
    fn concluded(&self, exit: Exit, sides: Sides) -> (Exit, Vec<String>) {
        let (mut concluded, mut lines) = (exit, Vec::new());
        for (origin, answers) in &self.0 {
            if answers.unreachable == answers.all {
                lines.push(format!("{origin} cannot be reached: {}", answers.why));
                concluded = Exit::Trouble;
            } else if answers.unauthorized == answers.all {
                lines.push(format!(
                    "{origin} answered nothing but 401 and 403: the clients of the proxy need credentials that it accepts"
                ));
                concluded = Exit::Trouble;
            } else if sides.has_responses()
                && answers.useless.values().sum::<usize>() == answers.all
            {
                let statuses = answers.useless.iter();
                let statuses = statuses.map(|(status, count)| format!("{status} ({count})"));
                lines.push(format!(
                    "{origin} answered as no service does, with redirects, server errors or HTML: status {}; check the address in \
                     --upstream",
                    statuses.collect::<Vec<_>>().join(", ")
                ));
                concluded = Exit::Trouble;
            }
        }
        (concluded, lines)
    }
}

/// An exchange, as input of the judge.
fn passed_of(forwarded: Forwarded) -> Passed {
    let answer = forwarded.answer;
    Passed {
        origin: forwarded.origin,
        request: forwarded.request,
        answer: answer.map_err(|fault| (fault.cause, fault.detail)),
        span: Span {
            began: forwarded.began,
            ended: forwarded.ended,
        },
    }
}

fn upstreams(index: &ServiceIndex, flags: &[String]) -> Result<BTreeMap<String, BaseUrl>, Failure> {
    let mut upstreams = BTreeMap::new();
    for (service, url) in config::by_service(index, "--upstream", flags)? {
        let base = BaseUrl::parse(&url).map_err(|e| {
            let near = config::scheme_for(&url);
            Failure::Usage(format!("--upstream {service}={url}: {e}{near}"))
        })?;
        upstreams.insert(service, base);
    }
    Ok(upstreams)
}

fn deadline(text: &str) -> Result<Instant, Failure> {
    let wrong = || {
        Failure::Usage(format!(
            "invalid --for `{text}`: expected a number and a unit, such as `500ms`, `10s` or `5m`"
        ))
    };
    let time = conformant_rulebook::duration(text).ok_or_else(wrong)?;
    Ok(clock::monotonic() + time)
}
