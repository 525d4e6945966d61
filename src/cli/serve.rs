//! `serve`: the reference for client teams, until a signal ends it.

use super::args::ServeArgs;
use super::config::{self, CONTROL_TOKEN};
use super::signals::Signals;
use super::{Done, Exit, Failure, note, say};
use crate::clock;
use crate::reference::{Fault, Variant};
use crate::server::{self, Server};
use std::sync::atomic::Ordering;
use std::time::Duration;

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
    let server = Server::start(settings).map_err(|e| Failure::Trouble(format!("failed to {e}")))?;
    let url = server.url();
    say(&format!("listening {url}\n"));
    note(&format!(
        "judge it: conformant run --target all={url} --hooks {url}/_control"
    ));
    while !signals.interrupted.load(Ordering::Relaxed) {
        clock::sleep(Duration::from_millis(50));
    }
    Ok(Exit::Conformant)
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
