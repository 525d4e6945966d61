//! `serve`: the reference for client teams, until a signal ends it.

use super::args::{OfClients, ServeArgs};
use super::config::{self, CONTROL_TOKEN};
use super::signals::Signals;
use super::traffic::Watch;
use super::{Done, Exit, Failure, note, reports_of, say};
use crate::check::{Inline, Passed, Sides, Surroundings};
use crate::clock;
use crate::judge::evidence::Span;
use crate::reference::{Fault, Variant};
use crate::rulebook::Rulebook;
use crate::server::{self, Server};
use crate::verdict::SERVICES;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

/// How often the end is looked for while nobody asks.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Requests that wait to be judged; whoever asks beyond them waits, too.
const WAITING_MAX: usize = 64;

pub(super) fn serve(args: &ServeArgs) -> Done {
    let signals = Signals::listen().map_err(|e| Failure::Trouble(format!("signals: {e}")))?;
    let settings = server::Settings {
        port: (args.port != 0).then_some(args.port),
        seed: args.seed,
        faults: args
            .faults
            .iter()
            .map(|id| fault(id))
            .collect::<Result<_, _>>()?,
        variants: args
            .variants
            .iter()
            .map(|id| variant(id))
            .collect::<Result<_, _>>()?,
        control_token: config::environment(CONTROL_TOKEN),
        ..server::Settings::default()
    };
    match args.judge {
        None => {
            let _server = start(settings)?;
            while !signals.interrupted.load(Ordering::Relaxed) {
                clock::sleep(LOOK_EVERY);
            }
            Ok(Exit::Conformant)
        }
        Some(OfClients::Requests) => judge(args, settings, &signals),
    }
}

/// Answers until a signal comes, and says what clients did wrong.
fn judge(args: &ServeArgs, mut settings: server::Settings, signals: &Signals) -> Done {
    let reports = reports_of(&args.telling.reports, &[])?;
    let rulebook = Rulebook::embedded().map_err(|p| Failure::Trouble(p.to_string()))?;
    let (sender, asked) = mpsc::sync_channel(WAITING_MAX);
    settings.witness = Some(Arc::new(move |origin, request, response| {
        // Nobody listens any more only when the end has come.
        drop(sender.send(Passed {
            origin: origin.to_owned(),
            request: request.clone(),
            answer: Ok(response.clone()),
            span: Span::at(clock::now()),
        }));
    }));
    let server = start(settings)?;
    let origin = server.url().to_owned();
    let base = |service: &&str| ((*service).to_owned(), format!("{origin}/{service}"));
    let surroundings = Surroundings {
        targets: SERVICES.iter().map(base).collect(),
        configured: json!({"auth": config::known(None)?.of_traffic()}),
        sides: Sides::Requests,
        ..Surroundings::default()
    };
    let mut watch = Watch::new(Inline::new("serve", &rulebook, &surroundings), Vec::new());
    while !signals.interrupted.load(Ordering::Relaxed) {
        if let Ok(passed) = asked.recv_timeout(LOOK_EVERY) {
            watch.take(passed);
        }
    }
    for passed in asked.try_iter() {
        watch.take(passed);
    }
    drop(asked);
    drop(server);
    watch.finish(&reports, &args.telling)
}

fn start(settings: server::Settings) -> Result<Server, Failure> {
    let server = Server::start(settings).map_err(|e| Failure::Trouble(format!("failed to {e}")))?;
    let url = server.url();
    say(&format!("listening {url}\n"));
    note(&format!(
        "judge it: conformant run --target all={url} --hooks {url}/_control"
    ));
    Ok(server)
}

/// A fault by its id.
pub(super) fn fault(id: &str) -> Result<Fault, Failure> {
    let known: Vec<&str> = Fault::ALL.iter().map(|f| f.id()).collect();
    Fault::from_id(id).ok_or_else(|| unknown("fault", id, &known, "faults"))
}

/// A variant by its id.
pub(super) fn variant(id: &str) -> Result<Variant, Failure> {
    let known: Vec<&str> = Variant::ALL.iter().map(|v| v.id()).collect();
    Variant::from_id(id).ok_or_else(|| unknown("variant", id, &known, "variants"))
}

fn unknown(what: &str, id: &str, known: &[&str], list: &str) -> Failure {
    let near = crate::text::did_you_mean(id, known);
    let help = near.map_or_else(
        || format!("see `conformant list {list}`"),
        |n| format!("did you mean `{n}`?"),
    );
    Failure::Usage(format!("no {what} is named `{id}`; {help}"))
}
