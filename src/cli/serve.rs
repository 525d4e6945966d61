//! `serve`: serves the reference for client teams, until a signal.

use super::args::{OfClients, ServeArgs};
use super::config::{self, CONTROL_TOKEN};
use super::signals::Signals;
use super::traffic::Watch;
use super::{Done, Exit, Failure, note, print, reports_of};
use crate::api;
use conformant_base::clock;
use conformant_base::files;
use conformant_base::redact::Redactor;
use conformant_check::{Inline, Passed, Sides, Surroundings};
use conformant_engine::Target;
use conformant_engine::token::Application;
use conformant_judge::evidence::Span;
use conformant_net::server::{self, Exchanged, Route, Server};
use conformant_reference::SERVICES;
use conformant_reference::auth::application;
use conformant_rulebook::Rulebook;
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

/// Interval of the check for the end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Requests that wait for the judge; further ones are delayed.
const WAITING_MAX: usize = 64;
/// Validity of a QR code on the page.
const QR_LIFETIME: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

pub(super) fn serve(args: &ServeArgs) -> Done {
    if args.judge.is_none() && !args.output.reports.reports.is_empty() {
        return Err(Failure::Usage(
            "--report: there is nothing to report without --judge requests".to_owned(),
        ));
    }
    let signals = Signals::listen()?;
    // Without a judge only the routes are read.
    let rulebook = match args.judge {
        Some(_) => conformant_judge::load::embedded(),
        None => conformant_judge::load::embedded_unchecked(false),
    };
    let rulebook = rulebook.map_err(|p| Failure::Trouble(p.to_string()))?;
    let settings = settings(args, &rulebook)?;
    let end = End::of(&signals, args);
    match args.judge {
        None => {
            let log = args.log.as_deref().map(Log::open).transpose()?;
            let witness = log.map(|log| -> server::Witness { Arc::new(move |one| log.note(one)) });
            let _server = start(
                server::Settings {
                    witness,
                    ..settings
                },
                args,
            )?;
            while !end.has_come() {
                clock::sleep(LOOK_EVERY);
            }
            Ok(Exit::Conformant)
        }
        Some(OfClients::Requests) => judge(args, &rulebook, settings, &end),
    }
}

fn settings(args: &ServeArgs, rulebook: &Rulebook) -> Result<server::Settings, Failure> {
    let mut script = Vec::new();
    for text in &args.answers {
        let scripted = text.parse();
        let scripted: server::Scripted =
            scripted.map_err(|e| Failure::Usage(format!("--answer: {e}")))?;
        let is_id = !scripted.on.contains([' ', '*']);
        if is_id && rulebook.operation_by_id(&scripted.on).is_none() {
            let why = super::no_operation(rulebook, &scripted.on);
            return Err(Failure::Usage(format!("--answer {text}: {why}")));
        }
        if let Some((_, path)) = scripted.on.split_once(' ')
            && !is_of_service(rulebook, path)
        {
            note(&format!(
                "--answer {text}: no operation has the path {path}; paths begin with the service, such as /flow/v1/Flows"
            ));
        }
        script.push(scripted);
    }
    if let Some(path) = &args.script {
        let read = server::read_script(&super::read_file(path)?);
        let failure = |e| Failure::Usage(format!("--script {}: {e}", path.display()));
        script.extend(read.map_err(failure)?);
    }
    let seeds = match &args.seed_data {
        None => None,
        Some(path) => {
            let failure =
                |why: String| Failure::Usage(format!("--seed-data {}: {why}", path.display()));
            // Files of `fixtures generate --world` have any size.
            let bytes = files::read(path, files::STORED_BYTES_MAX)?;
            let text = std::str::from_utf8(&bytes).map_err(|e| failure(e.to_string()))?;
            Some(server::Seeds::read(text).map_err(|e| failure(e.to_string()))?)
        }
    };
    Ok(server::Settings {
        port: Some(args.port),
        host: args.host,
        #[cfg(feature = "tls")]
        tls: identity(args)?,
        cors: args.cors.clone(),
        routes: routes(rulebook),
        script,
        seeds,
        keeps: true,
        seed: args.seed,
        faults: args
            .faults
            .iter()
            .map(|id| api::fault(id).map_err(unknown))
            .collect::<Result<_, _>>()?,
        variants: args
            .variants
            .iter()
            .map(|id| api::variant(id).map_err(unknown))
            .collect::<Result<_, _>>()?,
        control_token: config::environment(CONTROL_TOKEN),
        page: Some(offer()),
        ..server::Settings::default()
    })
}

/// The TLS certificate: a given one, or a generated one that is written to a file.
#[cfg(feature = "tls")]
fn identity(args: &ServeArgs) -> Result<Option<server::Identity>, Failure> {
    if let Some(path) = &args.tls {
        let identity = server::Identity::generate(args.host)
            .map_err(|e| Failure::Trouble(format!("failed to generate a certificate: {e}")))?;
        whole(path, &identity.certificate).map_err(Failure::unwritten(path))?;
        return Ok(Some(identity));
    }
    let (Some(certificate), Some(key)) = (&args.tls_certificate, &args.tls_key) else {
        return Ok(None);
    };
    let text = |path: &Path| {
        let bytes = super::read_file(path)?;
        String::from_utf8(bytes)
            .map_err(|_| Failure::Usage(format!("{}: expected PEM", path.display())))
    };
    Ok(Some(server::Identity {
        certificate: text(certificate)?,
        key: text(key)?,
    }))
}

/// The variable with which a run trusts a certificate that no authority signed.
fn trust(args: &ServeArgs) -> String {
    #[cfg(feature = "tls")]
    if let Some(path) = &args.tls {
        let path = path.display().to_string();
        return format!(
            "SSL_CERT_FILE={} ",
            conformant_base::text::shell_quoted(&path)
        );
    }
    let _ = args;
    String::new()
}

/// QR codes of the reference's application.
fn offer() -> server::Offer {
    let application = Application {
        name: application::NAME.to_owned(),
        id: application::ID.to_string(),
        scheme: application::SCHEME.to_owned(),
        api_key: application::API_KEY.to_owned(),
    };
    Arc::new(move |user, now| Ok(application.offer(user, QR_LIFETIME, now)?.qr))
}

/// Whether a path of a scripted answer, which may have stars, can be one of a service.
fn is_of_service(rulebook: &Rulebook, path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next();
    let first = first.unwrap_or_default();
    first.contains('*') || first.starts_with('_') || rulebook.index.get(first).is_some()
}

/// Ids of the documented operations, for scripted answers.
fn routes(rulebook: &Rulebook) -> Vec<Route> {
    let services = rulebook.services.values();
    let operations = services.flat_map(|service| service.operations.values());
    let known = operations.filter(|operation| !operation.path.is_empty());
    known
        .map(|operation| Route {
            id: format!("{}/{}", operation.service, operation.id),
            method: operation.method.clone(),
            path: format!("/{}{}", operation.service, operation.path),
        })
        .collect()
}

/// Whether to stop: after a signal, or with the parent if requested.
struct End<'a> {
    signals: &'a Signals,
    parent: Option<u32>,
}

impl<'a> End<'a> {
    fn of(signals: &'a Signals, args: &ServeArgs) -> Self {
        Self {
            signals,
            parent: args.exit_with_parent.then(parent),
        }
    }

    fn has_come(&self) -> bool {
        let is_orphan = self.parent.is_some_and(|began_with| parent() != began_with);
        is_orphan || self.signals.interrupted.load(Ordering::Relaxed)
    }
}

/// The parent process, or its replacement.
#[cfg(unix)]
fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

#[cfg(not(unix))]
fn parent() -> u32 {
    0
}

/// Request log in JSON lines, without the credentials of the reference.
struct Log {
    out: Mutex<Box<dyn Write + Send>>,
    redactor: Redactor,
}

impl Log {
    fn open(path: &Path) -> Result<Self, Failure> {
        let out: Box<dyn Write + Send> = if path == Path::new("-") {
            Box::new(std::io::stdout())
        } else {
            let file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path);
            Box::new(file.map_err(|e| {
                Failure::Trouble(format!("failed to open --log {}: {e}", path.display()))
            })?)
        };
        let targets = Target::all_of_reference();
        let pairs = targets
            .values()
            .flat_map(|t| t.basic.iter().chain(&t.account));
        let passwords = pairs.map(|(_, password)| password.clone());
        let fields = targets
            .values()
            .flat_map(|t| t.headers.iter().map(|(_, value)| value.clone()));
        Ok(Self {
            out: Mutex::new(out),
            redactor: Redactor::new(passwords.chain(fields).collect::<Vec<_>>()),
        })
    }

    fn note(&self, one: Exchanged<'_>) {
        let line = json!({
            "at": clock::now().to_string(),
            "world": one.world,
            "method": self.redactor.redact(&one.request.method),
            "target": self.redactor.redact(&one.request.target),
            "status": one.response.status,
            "ms": u64::try_from(one.took.as_millis()).unwrap_or(u64::MAX),
            "sent_bytes": one.request.body.len(),
            "answered_bytes": one.response.body.len(),
            "scripted": one.scripted,
        });
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // A failing log does not stop the service.
        drop(out.write_all(format!("{line}\n").as_bytes()));
        drop(out.flush());
    }
}

/// Serves and judges requests until a signal.
fn judge(
    args: &ServeArgs,
    rulebook: &Rulebook,
    mut settings: server::Settings,
    end: &End<'_>,
) -> Done {
    let reports = reports_of(&args.output.reports, &[])?;
    let log = args.log.as_deref().map(Log::open).transpose()?;
    let (sender, asked) = mpsc::sync_channel(WAITING_MAX);
    settings.witness = Some(Arc::new(move |one| {
        if let Some(log) = &log {
            log.note(one);
        }
        // The send fails only when the receiver has ended.
        drop(sender.send(Passed {
            origin: one.origin.to_owned(),
            request: one.request.clone(),
            answer: Ok(one.response.clone()),
            span: Span::at(clock::now()),
        }));
    }));
    let server = start(settings, args)?;
    let origin = server.url().to_owned();
    let base = |service: &&str| ((*service).to_owned(), format!("{origin}/{service}"));
    let surroundings = Surroundings {
        targets: SERVICES.iter().map(base).collect(),
        configured: config::known(None, None)?.of_traffic(),
        sides: Sides::Requests,
        ..Surroundings::default()
    };
    let mut watch = Watch::new(Inline::new("serve", rulebook, &surroundings), Vec::new());
    while !end.has_come() {
        if let Ok(passed) = asked.recv_timeout(LOOK_EVERY) {
            watch.take(passed);
        }
    }
    for passed in asked.try_iter() {
        watch.take(passed);
    }
    drop(asked);
    drop(server);
    watch.finish(&reports, &args.output, |exit| {
        (exit, Vec::new(), Vec::new())
    })
}

fn start(settings: server::Settings, args: &ServeArgs) -> Result<Server, Failure> {
    let server = Server::start(settings).map_err(|error| {
        let mut text = format!("failed to {error}");
        if let server::Error::Listen { source, .. } = &error
            && source.kind() == std::io::ErrorKind::AddrInUse
        {
            text.push_str("; --port 0 takes a free port");
        }
        match error {
            server::Error::Listen { .. } => Failure::Trouble(text),
            #[cfg(feature = "tls")]
            server::Error::Certificate(_) => Failure::Usage(text),
            server::Error::Script(_) | server::Error::Seeds { .. } => Failure::Usage(text),
        }
    })?;
    let url = server.url();
    if let Some(path) = &args.ready_file {
        whole(path, &format!("{url}\n")).map_err(|e| {
            Failure::Trouble(format!(
                "failed to write --ready-file {}: {e}",
                path.display()
            ))
        })?;
    }
    print(&format!("listening {url}\n"));
    let is_loopback = args.host.is_none_or(|host| host.is_loopback());
    // A client cannot connect to the address of every interface.
    let local = url
        .replace("//0.0.0.0:", "//127.0.0.1:")
        .replace("//[::]:", "//[::1]:");
    let token = match (is_loopback, config::environment(CONTROL_TOKEN)) {
        (true, None) => String::new(),
        // The value is a secret.
        (_, Some(_)) => format!("{CONTROL_TOKEN}=… "),
        (false, None) => {
            note(&format!(
                "the control plane is closed: set {CONTROL_TOKEN} for `serve` and for `run`"
            ));
            format!("{CONTROL_TOKEN}=… ")
        }
    };
    let trust = trust(args);
    note(&format!(
        "test it with: {token}{trust}conformant run --target all={local} --hooks {local}/_control"
    ));
    note(
        "scenarios with new phone numbers: set `people: { new_cellphone: 202-555-01## }` in conformant.yaml",
    );
    Ok(server)
}

fn whole(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}

/// An unknown fault or variation.
#[expect(clippy::needless_pass_by_value, reason = "it stands in `map_err`")]
fn unknown(error: api::Error) -> Failure {
    Failure::Usage(error.to_string())
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use super::*;
    use crate::cli::args::{Cli, Command};
    use clap::Parser;

    #[test]
    fn the_printed_command_trusts_a_generated_certificate() {
        for (words, expected) in [
            (&["conformant", "serve"][..], ""),
            (
                &["conformant", "serve", "--tls", "my ca.pem"],
                "SSL_CERT_FILE='my ca.pem' ",
            ),
        ] {
            let Command::Serve(args) = Cli::parse_from(words).command else {
                panic!("another command");
            };
            assert_eq!(trust(&args), expected);
        }
    }
}
