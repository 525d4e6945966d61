//! Cost of judging: exchanges a second of a complete run, relative to a loop of the same client with the same requests and
//! server; and of the reference behind `httpmock`, relative to `hyper` with the same handler.
//!
//! Both sides alternate in one process, so that a busy machine slows both; read the ratios. Nothing fails here: figures
//! are goals, not tests.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use conformant_base::clock;
use conformant_base::http::{Request, Response};
use conformant_engine::sessions::{Mutate, Offline};
use conformant_engine::{Options, Planned, Target, plan};
use conformant_judge::prove::Mode;
use conformant_net::server::{Deliver, Outcome, Server, Settings, World, WorldClock};
use conformant_net::transport::{BaseUrl, Client, Limits};
use conformant_record::RunEvent;
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const JOBS: usize = 8;
const ROUNDS: usize = 7;
const SEED: u64 = 0;
/// Requests in a round against a single server.
const REQUESTS: usize = 20_000;

fn main() {
    let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
    let schemas = Schemas::default();
    let planned = plan::all(&rulebook);
    let run = Run {
        rulebook: &rulebook,
        schemas: &schemas,
        planned: &planned,
    };

    let scenarios = run.record();
    let sent: usize = scenarios.iter().map(Vec::len).sum();
    println!(
        "{} scenarios, {sent} requests, {JOBS} jobs, {ROUNDS} rounds",
        planned.len()
    );
    compare(
        "run over TCP",
        "bare loop",
        &mut || run.over_tcp(),
        &mut || bare_loop(&scenarios),
    );
    compare(
        "run in process",
        "run over TCP",
        &mut || run.in_process(),
        &mut || run.over_tcp(),
    );
    let request = listing();
    compare(
        "httpmock",
        "bare hyper",
        &mut || httpmock(&request),
        &mut || bare_hyper(&request),
    );
}

/// Runs both sides in turn and prints the median of each, and of their ratios.
fn compare(
    one: &str,
    other: &str,
    first: &mut dyn FnMut() -> f64,
    second: &mut dyn FnMut() -> f64,
) {
    let mut rates = (Vec::new(), Vec::new());
    // The first round warms up.
    for round in 0..=ROUNDS {
        let (a, b) = if round % 2 == 0 {
            let a = first();
            (a, second())
        } else {
            let b = second();
            (first(), b)
        };
        if round > 0 {
            rates.0.push(a);
            rates.1.push(b);
        }
    }
    let mut ratios: Vec<f64> = rates.0.iter().zip(&rates.1).map(|(a, b)| a / b).collect();
    ratios.sort_by(f64::total_cmp);
    println!(
        "{one:<16}{:>9.0} /s   {other:<14}{:>9.0} /s   ratio {:.2} ({:.2} to {:.2})",
        median(&mut rates.0),
        median(&mut rates.1),
        median(&mut ratios.clone()),
        ratios[0],
        ratios[ratios.len() - 1],
    );
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Rate of `work`, which does `count` items.
fn rate(count: usize, work: impl FnOnce()) -> f64 {
    let started = clock::monotonic();
    work();
    f64::from(u32::try_from(count).expect("counts are small")) / started.elapsed().as_secs_f64()
}

struct Run<'a> {
    rulebook: &'a Rulebook,
    schemas: &'a Schemas,
    planned: &'a [Planned<'a>],
}

impl Run<'_> {
    fn over_tcp(&self) -> f64 {
        let (faults, variants) = (BTreeSet::new(), BTreeSet::new());
        let sessions = Offline::over_tcp(SEED, faults, variants, Target::all_of_reference());
        self.measure(&sessions.expect("loopback is there"))
    }

    fn in_process(&self) -> f64 {
        let (faults, variants) = (BTreeSet::new(), BTreeSet::new());
        self.measure(&Offline::in_process(
            SEED,
            faults,
            variants,
            Target::all_of_reference(),
        ))
    }

    /// Judged exchanges a second.
    fn measure(&self, sessions: &Offline<'_>) -> f64 {
        let options = Options {
            seed: SEED,
            jobs: JOBS,
            shuffle: false,
            run_max: Duration::from_secs(600),
            prove: Mode::Off,
            evidence_writer: None,
        };
        let calm = AtomicBool::new(false);
        let mut exchanges = 0;
        let mut emit = |event: RunEvent| match event {
            RunEvent::ScenarioEnded {
                exchanges: more, ..
            } => exchanges += more,
            RunEvent::Started { .. }
            | RunEvent::ScenarioBegan { .. }
            | RunEvent::ScenarioPlayed { .. }
            | RunEvent::Waiting { .. }
            | RunEvent::Alive { .. }
            | RunEvent::Finished { .. } => {}
        };
        let started = clock::monotonic();
        conformant_engine::run(
            self.rulebook,
            self.schemas,
            self.planned,
            sessions,
            &options,
            &calm,
            &mut emit,
            |_, _| {},
        );
        let seconds = started.elapsed().as_secs_f64();
        f64::from(u32::try_from(exchanges).expect("counts are small")) / seconds
    }

    /// The requests of every scenario, in order, each scenario with an instance of its own.
    fn record(&self) -> Vec<Vec<Request>> {
        let calm = AtomicBool::new(false);
        let measure = |(index, one): (usize, &Planned<'_>)| {
            let recorder = Recorder {
                world: index,
                sent: Mutex::default(),
            };
            let (faults, variants) = (BTreeSet::new(), BTreeSet::new());
            let sessions = Offline::in_process(SEED, faults, variants, Target::all_of_reference());
            let sessions = sessions.mutated(&recorder);
            conformant_engine::conclude(self.rulebook, self.schemas, one, &sessions, SEED, &calm);
            drop(sessions);
            recorder
                .sent
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner)
        };
        self.planned.iter().enumerate().map(measure).collect()
    }
}

/// Records what is sent, and changes nothing.
#[derive(Debug)]
struct Recorder {
    world: usize,
    sent: Mutex<Vec<Request>>,
}

impl Mutate for Recorder {
    fn request(&self, _service: &str, request: &mut Request) {
        let target = format!("/_world/{}{}", self.world, request.target);
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.push(Request {
            target,
            ..request.clone()
        });
    }

    fn response(&self, _service: &str, _request: &Request, _response: &mut Response) {}

    fn payload(&self, _kind: &str, _document: &mut Value) {}
}

/// The same requests by the same client, without judging.
fn bare_loop(scenarios: &[Vec<Request>]) -> f64 {
    let server = Server::start(Settings {
        seed: SEED,
        virtual_clock: true,
        ..Settings::default()
    })
    .expect("loopback is there");
    let base = BaseUrl::parse(server.url()).expect("it is a URL");
    let client = Client::new(Limits::default());
    let next = AtomicUsize::new(0);
    rate(scenarios.iter().map(Vec::len).sum(), || {
        parallel_map(|| {
            while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                for request in scenario {
                    send(&client, &base, request);
                }
            }
        });
    })
}

/// One cheap request, with credentials.
fn listing() -> Request {
    let mut request = Request::new("GET", "/flow/v1/Flows");
    let credentials = conformant_reference::account::API_KEY.to_owned()
        + ":"
        + conformant_reference::account::API_SECRET;
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, credentials);
    request
        .headers
        .set("Authorization", format!("Basic {encoded}"));
    request
}

fn httpmock(request: &Request) -> f64 {
    let server = Server::start(Settings {
        seed: SEED,
        virtual_clock: true,
        ..Settings::default()
    })
    .expect("loopback is there");
    hammer(server.url(), request)
}

/// The same instance behind plain `hyper`, on one thread like `httpmock`.
fn bare_hyper(request: &Request) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    let listener = runtime
        .block_on(tokio::net::TcpListener::bind(SocketAddr::from((
            [127, 0, 0, 1],
            0,
        ))))
        .expect("loopback is there");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let settings = conformant_reference::Settings {
        seed: SEED,
        origin: url.clone(),
        ..conformant_reference::Settings::default()
    };
    let world = Arc::new(World::new(
        settings,
        WorldClock::stands_still(),
        Arc::new(Nowhere),
    ));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| runtime.block_on(serve(listener, &world, stopped)));
        let rate = hammer(&url, request);
        // It may have ended already.
        let _ = stop.send(());
        rate
    })
}

async fn serve(
    listener: tokio::net::TcpListener,
    world: &Arc<World>,
    mut stopped: tokio::sync::oneshot::Receiver<()>,
) {
    let tasks = tokio::task::LocalSet::new();
    tasks
        .run_until(async {
            loop {
                let stream = tokio::select! {
                    _ = &mut stopped => return,
                    accepted = listener.accept() => accepted.expect("loopback accepts").0,
                };
                let world = Arc::clone(world);
                tokio::task::spawn_local(async move {
                    let service = service_fn(move |request| answer(Arc::clone(&world), request));
                    // A client that disconnects ends its connection only.
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        })
        .await;
}

async fn collected(mut body: Incoming) -> Vec<u8> {
    let mut read = Vec::new();
    while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        read.extend(frame.into_data().unwrap_or_default());
    }
    read
}

async fn answer(
    world: Arc<World>,
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<String>, Infallible> {
    let (head, body) = request.into_parts();
    let text =
        |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let request = Request {
        method: head.method.to_string(),
        target: head
            .uri
            .path_and_query()
            .map_or("/", |p| p.as_str())
            .to_owned(),
        headers: head
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect(),
        body: collected(body).await,
    };
    let response = world.handle(&request);
    let mut built = hyper::Response::builder().status(response.status);
    for (name, value) in response.headers.iter() {
        built = built.header(name, value);
    }
    Ok(built
        .body(String::from_utf8(response.body).expect("these answers are texts"))
        .expect("the reference answers in HTTP"))
}

/// Callbacks are dropped.
struct Nowhere;

impl Deliver for Nowhere {
    fn deliver(&self, _callback: &conformant_reference::Callback) -> Outcome {
        Outcome::Unreachable
    }
}

/// Repeats one request, in parallel.
fn hammer(url: &str, request: &Request) -> f64 {
    let base = BaseUrl::parse(url).expect("it is a URL");
    let client = Client::new(Limits::default());
    rate(REQUESTS, || {
        parallel_map(|| {
            for _ in 0..REQUESTS / JOBS {
                send(&client, &base, request);
            }
        });
    })
}

fn send(client: &Client, base: &BaseUrl, request: &Request) {
    let answer = client.send(base, request, client.limits().timeout);
    assert!(
        answer.is_ok(),
        "{} {}: {answer:?}",
        request.method,
        request.target
    );
}

fn parallel_map(work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 0..JOBS {
            scope.spawn(&work);
        }
    });
}
