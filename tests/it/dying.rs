//! A target that stops answering in the middle of a run ends the run with that as its result.

use crate::program::{Folder, Served, ended, one_in};
use conformant_base::clock;
use conformant_record::RunRecord;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The promise is 5 s for a target that answers quickly. Without optimization, and in parallel with other tests, answers are
/// slow, so that silence counts later (at most after the time limit of exchanges, 10 s), and judging takes longer.
const SOON: Duration = Duration::from_secs(if cfg!(debug_assertions) { 25 } else { 5 });

/// How a target ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// It closes its connections and refuses others.
    Closed,
    /// It keeps its connections and does not answer.
    Silent,
    /// The gateway in front of it answers with this status.
    Gateway(u16),
}

/// A route to a target that ends after a number of requests.
struct Route {
    url: String,
    died: Arc<OnceLock<Instant>>,
}

impl Route {
    fn to(served: &Served, death: Death, after: usize) -> Self {
        let count = AtomicUsize::new(0);
        Self::until(served, death, move |_| {
            count.fetch_add(1, Ordering::SeqCst) >= after
        })
    }

    /// A route that rejects every request that writes.
    fn read_only(served: &Served) -> Self {
        Self::until(served, Death::Gateway(403), |request| {
            !request.starts_with(b"GET ")
        })
    }

    fn until(
        served: &Served,
        death: Death,
        is_over: impl Fn(&[u8]) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let target = served.url.trim_start_matches("http://").to_owned();
        let died: Arc<OnceLock<Instant>> = Arc::default();
        let (end, is_over) = (Arc::clone(&died), Arc::new(is_over));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if death == Death::Closed && end.get().is_some() {
                    return;
                }
                let (target, end) = (target.clone(), Arc::clone(&end));
                let is_over = Arc::clone(&is_over);
                std::thread::spawn(move || {
                    let done = relay(client, &target, death, &*is_over, &end);
                    if death == Death::Closed && end.get().is_some() {
                        // Wakes the listener, which then closes.
                        drop(TcpStream::connect(address));
                    }
                    done
                });
            }
        });
        let url = format!("http://{address}");
        Self { url, died }
    }
}

/// Passes requests on, each in one piece, until the target has ended.
fn relay(
    mut client: TcpStream,
    target: &str,
    death: Death,
    is_over: impl Fn(&[u8]) -> bool,
    end: &OnceLock<Instant>,
) -> std::io::Result<()> {
    let mut server = TcpStream::connect(target)?;
    let (mut answers, mut back) = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
    let mut request = [0; 16 * 1024];
    loop {
        let length = client.read(&mut request)?;
        if length == 0 {
            return server.shutdown(Shutdown::Both);
        }
        if !is_over(&request[..length]) {
            server.write_all(&request[..length])?;
            continue;
        }
        end.get_or_init(clock::monotonic);
        match death {
            Death::Closed => {
                client.shutdown(Shutdown::Both)?;
                return server.shutdown(Shutdown::Both);
            }
            Death::Silent => {}
            Death::Gateway(status) => {
                let page = format!("HTTP/1.1 {status} Bad\r\nContent-Length: 3\r\n\r\nbad");
                client.write_all(page.as_bytes())?;
            }
        }
    }
}

/// Runs a command against a route; returns the exit code, both outputs, and the time since the target ended.
fn against(route: &Route, folder: &Folder, line: &str) -> (i32, String, Duration) {
    let mut command = folder.command(&format!("{line} --target chat={}/chat", route.url));
    let (name, secret) = (
        conformant_reference::account::API_KEY,
        conformant_reference::account::API_SECRET,
    );
    command.env("CONFORMANT_CHAT_USERNAME", name);
    command.env("CONFORMANT_CHAT_PASSWORD", secret);
    let (code, out, err) = ended(&mut command);
    let died = route.died.get().expect("the target ended");
    (code, out + &err, died.elapsed())
}

fn at_once(rows: &[impl Sync], check: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for index in 0..rows.len() {
            scope.spawn({
                let check = &check;
                move || check(index)
            });
        }
    });
}

#[test]
fn a_target_that_stops_answering_ends_the_run_without_findings() {
    let rows = vec![
        (Death::Closed, 250, "1", true),
        (Death::Closed, 30, "16", false),
        (Death::Silent, 150, "16", true),
        (Death::Silent, 20, "1", false),
        (Death::Gateway(502), 300, "16", true),
        (Death::Gateway(503), 200, "1", true),
        // Credentials that expire.
        (Death::Gateway(401), 150, "16", false),
        (Death::Gateway(401), 40, "1", false),
    ];
    let rows = one_in(4, rows);
    at_once(&rows, |index| {
        let (death, after, jobs, has_hooks) = rows[index];
        let folder = Folder::new();
        let served = Served::start(&folder, &[]);
        let route = Route::to(&served, death, after);
        let hooks = match has_hooks {
            true => format!("--hooks {}/_control", route.url),
            false => String::new(),
        };
        let options = format!("--service chat --prove off --jobs {jobs} {hooks}");
        let line = format!("run {options} --report json=run.json");
        let (code, printed, took) = against(&route, &folder, &line);
        let name = format!("{death:?}, jobs {jobs}, hooks {has_hooks}: {printed}");
        assert_eq!(code, 3, "{name}");
        let headline = match death == Death::Gateway(401) {
            true => "chat rejects the configured credentials, which ended the run",
            false => "chat stopped answering, which ended the run",
        };
        assert!(printed.contains(headline), "{name}");
        assert!(took < SOON, "{took:?}, {name}");
        let record: RunRecord = folder.json("run.json");
        assert_eq!(record.findings, [], "{name}");
        assert!(!record.complete, "{name}");
    });
}

#[test]
fn a_target_that_stops_answering_ends_an_exploration_without_findings() {
    let rows = vec![
        (Death::Closed, 200, "1"),
        (Death::Silent, 200, "16"),
        (Death::Gateway(502), 200, "2"),
    ];
    let rows = one_in(3, rows);
    at_once(&rows, |index| {
        let (death, after, jobs) = rows[index];
        let folder = Folder::new();
        let served = Served::start(&folder, &[]);
        let route = Route::to(&served, death, after);
        let line = format!("explore --budget 100000 --jobs {jobs}");
        let (code, printed, took) = against(&route, &folder, &line);
        let name = format!("{death:?}, jobs {jobs}: {printed}");
        assert_eq!(code, 3, "{name}");
        assert!(printed.contains("the target stopped answering: "), "{name}");
        assert!(printed.contains("0 findings until then"), "{name}");
        assert!(took < SOON, "{took:?}, {name}");
    });
}

/// In each service the scenarios begin with one kind of request that writes.
#[test]
fn credentials_that_may_only_read_end_a_run_with_3() {
    let rows = vec![
        "auth/*",
        "chat/*",
        "flow/*",
        "media/*",
        "auth/create-user/*",
    ];
    let rows = one_in(3, rows);
    at_once(&rows, |index| {
        let folder = Folder::new();
        let served = Served::start(&folder, &[]);
        let route = Route::read_only(&served);
        let line = format!(
            "run --target all={} --hooks {}/_control --filter {}",
            route.url, served.url, rows[index]
        );
        let (out, err) = folder.run(3, &line);
        assert!(!out.contains("FAIL 1."), "{line}: {out}");
        assert_eq!(err.matches("error: ").count(), 1, "{line}: {err}");
        let why = " accepts the configured credentials for reads, and answers 401 or 403 to every request that writes: give ";
        assert!(err.contains(why), "{line}: {err}");
    });
}

/// The links of the service have the address behind the route.
#[test]
fn rules_about_links_to_another_origin_say_so() {
    let folder = Folder::new();
    let served = Served::start(&folder, &[]);
    let route = Route::until(&served, Death::Closed, |_| false);
    let line = format!(
        "run --target flow={}/flow --hooks {}/_control --filter flow/read-flows/* --prove off",
        route.url, served.url
    );
    let (out, _) = folder.run(4, &line);
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = format!(
        "3 rules, inconclusive: links lead to another origin; if {} is an address of the target, configure it as `public_url` of its entry in `targets`, with the path that comes before the documented ones",
        served.url
    );
    assert!(out.contains(&expected), "{out}");
    let hooks = format!("--hooks {}/_control", served.url);
    let command = format!("doctor --target flow={}/flow {hooks}", route.url);
    let (_, out, _) = folder.output(&command);
    let expected = format!("flow: links: they lead to {}/flow, where a run", served.url);
    assert!(out.contains(&expected), "{out}");
    let task = format!("set `public_url: {}/flow` in targets.flow", served.url);
    assert!(out.contains(&task), "{out}");
    // With it, the links are followed.
    let known = format!(
        "targets: {{flow: {{url: '{}/flow', public_url: '{}/flow'}}}}",
        route.url, served.url
    );
    folder.write("conformant.yaml", known);
    let (_, out, _) = folder.output(&format!("doctor {hooks}"));
    assert!(out.contains("flow: credentials: accepted"), "{out}");
    assert!(!out.contains("flow: links"), "{out}");
    // Without the path before the documented ones, they would lead elsewhere.
    let wrong = format!(
        "targets: {{flow: {{url: '{}/flow', public_url: '{}'}}}}",
        route.url, served.url
    );
    folder.write("conformant.yaml", wrong);
    let (_, out, _) = folder.output(&format!("doctor {hooks}"));
    assert!(out.contains(&task), "{out}");
}
