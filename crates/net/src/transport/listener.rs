//! The callback listener: a small HTTP server for requests from the target.
//!
//! Open to untrusted senders: every wait and size is bounded, each connection carries one request, and
//! addresses contain an unguessable token. A [`Sink`] receives the requests and plans the responses.

use super::origin::BaseUrl;
use super::sink::{Reply, Sink};
use conformant_base::clock;
use conformant_base::failpoint::{self, Failpoint};
use conformant_base::http::{Headers, Request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::HeaderMap;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::AbortHandle;

/// Longest head.
const HEAD_BYTES: usize = 64 * 1024;
/// Maximum number of header fields.
const HEAD_LINES: usize = 256;
/// Younger connections are not dropped to make room: their request may be in progress.
const IDLE_MIN_AGE: Duration = Duration::from_millis(50);
/// Polling interval of a full listener.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Connections waiting to be accepted.
const QUEUE: u32 = 1024;
/// At most [`LARGE_BODIES`] larger bodies are read at once, to bound the total memory.
const LARGE_BODY: u64 = 16 * 1024;
/// Simultaneous blocking responses.
const BLOCKING_THREADS: usize = 16;
/// Large bodies read at once.
const LARGE_BODIES: usize = 32;

/// Address and limits of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// The socket address; port 0 for any free one.
    pub listen: SocketAddr,
    /// The URL for the target, if it differs from the socket address.
    pub public_url: Option<BaseUrl>,
    /// Deadline of a head.
    pub head_time: Duration,
    /// Deadline of a body.
    pub body_time: Duration,
    /// Maximum bytes of a body.
    pub body: usize,
    /// Connections; beyond that the oldest idle one is dropped.
    pub connections: usize,
}

impl Default for Listening {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            public_url: None,
            head_time: Duration::from_secs(5),
            body_time: Duration::from_secs(10),
            body: 1024 * 1024,
            connections: 256,
        }
    }
}

/// Why a listener did not start; completes "failed to receive callbacks: …".
#[derive(Debug, thiserror::Error)]
#[error("listen on {address}: {source}")]
pub struct ListenError {
    address: SocketAddr,
    source: std::io::Error,
}

/// A running callback listener; closes its socket and every connection when dropped.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    sink: Arc<Sink>,
}

/// A listening socket; closed with every connection when dropped.
#[derive(Debug)]
pub(super) struct Socket {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Handles incoming requests.
pub(super) trait Handler: Send + Sync + 'static {
    /// The name of the registered callback address for a path; `None` responds 404 without reading the body.
    fn place(&self, path: &str) -> Option<String>;

    /// The response to a request with a complete body.
    fn answer(&self, place: String, request: Request) -> impl Future<Output = Answered> + Send;
}

pub(super) type Answered = Response<Full<Bytes>>;

impl Socket {
    /// Starts to listen on a separate thread. `make` returns the handler, and is called once the address is known.
    pub(super) fn open<D: Handler, K>(
        settings: &Listening,
        name: &str,
        make: impl FnOnce(SocketAddr) -> (D, K),
    ) -> Result<(Self, K), ListenError> {
        let wrap = |source| ListenError {
            address: settings.listen,
            source,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(BLOCKING_THREADS)
            .build()
            .map_err(wrap)?;
        let socket = {
            let _context = runtime.enter();
            bind(settings.listen).map_err(wrap)?
        };
        let address = socket.local_addr().map_err(wrap)?;
        let (door, kept) = make(address);
        let site = Arc::new(Site {
            door,
            large_bodies: Semaphore::new(LARGE_BODIES),
            settings: settings.clone(),
        });
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = accept(socket, site) => {}
                        // Sent or dropped: no more callbacks are needed.
                        _ = stopped => {}
                    }
                });
            })
            .map_err(wrap)?;
        let socket = Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        };
        Ok((socket, kept))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was already reported by its thread.
            drop(thread.join());
        }
    }
}

impl Listener {
    /// Starts to listen on a separate thread.
    pub fn start(settings: &Listening) -> Result<Self, ListenError> {
        let token = format!("{:032x}", rand::random::<u128>());
        let (socket, sink) = Socket::open(settings, "callbacks", |address| {
            let base = match &settings.public_url {
                Some(url) => url.to_string(),
                None => format!("http://{address}"),
            };
            let sink = Arc::new(Sink::new(format!("{base}/{token}")));
            let door = Callbacks {
                marker: format!("/{token}/"),
                sink: Arc::clone(&sink),
            };
            (door, sink)
        })?;
        Ok(Self { socket, sink })
    }

    pub fn address(&self) -> SocketAddr {
        self.socket.address()
    }

    /// Received callbacks and planned responses.
    pub fn sink(&self) -> &Arc<Sink> {
        &self.sink
    }

    /// Opens a place for callbacks and returns its URL for the target.
    pub fn open(&self, name: &str, plan: Vec<Reply>) -> String {
        self.sink.open(name, plan)
    }
}

/// State shared by all connections.
#[derive(Debug)]
struct Site<D> {
    door: D,
    large_bodies: Semaphore,
    settings: Listening,
}

/// A connection in the accept loop.
#[derive(Debug)]
struct Open {
    since: Instant,
    /// True once a head was received, with our token or not: this connection is not dropped.
    answering: Arc<AtomicBool>,
    task: AbortHandle,
}

/// A socket with a long queue. A burst overflows the default queue, and its senders retry after one second.
fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    failpoint::check(Failpoint::Listen)?;
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // On other systems this would let two programs listen on one address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(QUEUE)
}

/// Records callbacks and responds as planned.
struct Callbacks {
    /// `/TOKEN/`; a proxy may put a prefix before it.
    marker: String,
    sink: Arc<Sink>,
}

impl Handler for Callbacks {
    /// The name of the callback address, if the path has our token.
    fn place(&self, path: &str) -> Option<String> {
        let (_, name) = path.split_once(&self.marker)?;
        self.sink.name_at(&self.sink.address_of_segment(name))
    }

    async fn answer(&self, place: String, mut request: Request) -> Answered {
        // The path contains the token.
        request.target = match request.query() {
            "" => "/".to_owned(),
            query => format!("/?{query}"),
        };
        let began = clock::monotonic();
        let reply = self.sink.receive(&place, request, clock::now());
        tokio::time::sleep(reply.after).await;
        self.sink.note_left(&place, reply.after, began.elapsed());
        let status = StatusCode::from_u16(reply.status);
        bare(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
    }
}

async fn accept<D: Handler>(socket: TcpListener, site: Arc<Site<D>>) {
    let mut open: Vec<Open> = Vec::new();
    loop {
        // Out of descriptors, or the client left: continue with the next one.
        let Ok((stream, _)) = socket.accept().await else {
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        };
        make_room(&mut open, site.settings.connections).await;
        let answering = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(serve(stream, Arc::clone(&site), Arc::clone(&answering)));
        open.push(Open {
            since: clock::monotonic(),
            answering,
            task: task.abort_handle(),
        });
    }
}

/// Waits for room for one more connection. Drops the oldest without a complete head; if all have one,
/// the newcomer waits.
async fn make_room(open: &mut Vec<Open>, most: usize) {
    loop {
        open.retain(|connection| !connection.task.is_finished());
        if open.len() < most {
            return;
        }
        let now = clock::monotonic();
        // In order of arrival, so the first match is the oldest.
        let idle = open.iter().position(|connection| {
            !connection.answering.load(Ordering::Relaxed) && now - connection.since >= IDLE_MIN_AGE
        });
        if let Some(oldest) = idle {
            open.remove(oldest).task.abort();
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn serve<D: Handler>(stream: TcpStream, site: Arc<Site<D>>, answering: Arc<AtomicBool>) {
    let service = service_fn(|request| {
        let site = Arc::clone(&site);
        answering.store(true, Ordering::Relaxed);
        async move { Ok::<_, Infallible>(site.answer(request).await) }
    });
    // One request per connection: pipelined or smuggled bytes are never read.
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(site.settings.head_time)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_LINES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    // Broken connections are the sender's error; nothing was recorded.
    drop(served);
}

/// A response without a body.
pub(super) fn bare(status: StatusCode) -> Answered {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

impl<D: Handler> Site<D> {
    async fn answer(&self, request: hyper::Request<Incoming>) -> Answered {
        // Tunnels and other protocols are not supported.
        let is_other = request.headers().contains_key(hyper::header::UPGRADE)
            || matches!(request.method().as_str(), "CONNECT" | "TRACE");
        if is_other {
            return bare(StatusCode::NOT_IMPLEMENTED);
        }
        let Some(place) = self.door.place(request.uri().path()) else {
            return bare(StatusCode::NOT_FOUND);
        };
        let (head, body) = request.into_parts();
        let reading = tokio::time::timeout(self.settings.body_time, self.read(body));
        let body = match reading.await {
            Ok(Ok(body)) => body,
            Ok(Err(status)) => return bare(status),
            Err(_) => return bare(StatusCode::REQUEST_TIMEOUT),
        };
        let target = head
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str())
            .to_owned();
        let request = Request {
            method: head.method.as_str().to_owned(),
            target,
            headers: headers(&head.headers),
            body,
        };
        self.door.answer(place, request).await
    }

    async fn read(&self, body: Incoming) -> Result<Vec<u8>, StatusCode> {
        let size = body.size_hint();
        if size.lower() > self.settings.body as u64 {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let turn = self.large_bodies.acquire();
        let turn = match size.exact() {
            Some(bytes) if bytes <= LARGE_BODY => None,
            _ => Some(turn.await.expect("the semaphore is never closed")),
        };
        let read = Limited::new(body, self.settings.body).collect().await;
        drop(turn);
        match read {
            Ok(body) => Ok(body.to_bytes().to_vec()),
            Err(e) if e.is::<http_body_util::LengthLimitError>() => {
                Err(StatusCode::PAYLOAD_TOO_LARGE)
            }
            Err(_) => Err(StatusCode::BAD_REQUEST),
        }
    }
}

/// Headers in order with lower-case names; values that are not ASCII have one character per byte.
fn headers(map: &HeaderMap) -> Headers {
    map.iter()
        .map(|(name, value)| {
            let value: String = value.as_bytes().iter().map(|b| char::from(*b)).collect();
            (name.as_str(), value)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{Client, Limits};
    use conformant_base::http::Cause;
    use std::io::{Read as _, Write as _};

    const AMPLE: Duration = Duration::from_secs(5);

    fn listener() -> Listener {
        Listener::start(&Listening::default()).expect("a free port")
    }

    /// Posts a body; returns the status or the cause.
    fn post(client: &Client, url: &str, body: &[u8]) -> String {
        let base = BaseUrl::parse(url.split('?').next().expect("a URL")).expect("a base");
        let root = BaseUrl::parse(&base.origin().to_string()).expect("a base");
        let (_, target) = root.locate(url).expect("the same origin");
        let mut request = Request::new("POST", target);
        request.headers.add("Content-Type", "application/json");
        request.body = body.to_vec();
        match client.send(&root, &request, AMPLE) {
            Ok(response) => response.status.to_string(),
            Err(fault) => fault.cause.to_string(),
        }
    }

    /// Sends raw bytes and returns the status line of the response.
    fn raw(address: SocketAddr, bytes: &[u8]) -> String {
        let mut socket = std::net::TcpStream::connect(address).expect("a listener");
        socket
            .set_read_timeout(Some(AMPLE))
            .expect("a socket option");
        // The listener may close before it has read everything.
        drop(socket.write_all(bytes));
        let mut answer = Vec::new();
        drop(socket.read_to_end(&mut answer));
        let answer = String::from_utf8_lossy(&answer).into_owned();
        answer.lines().next().unwrap_or("closed").to_owned()
    }

    #[test]
    fn callbacks_are_recorded_and_answered_by_plan() {
        let listener = listener();
        let url = listener.open("chat/a b", vec![Reply::status(503), Reply::status(204)]);
        let client = Client::new(Limits::default());
        let statuses = [1, 2, 3].map(|_| post(&client, &format!("{url}?x=%20y"), b"{}"));
        assert_eq!(statuses, ["503", "204", "204"]);
        assert_eq!(listener.sink().wait("chat/a b", 3, AMPLE), 3);
        let first = &listener.sink().snapshot()[0];
        assert_eq!(first.request.method, "POST");
        assert_eq!(first.request.query_pairs(), [("x".into(), " y".into())]);
        assert_eq!(
            first.request.headers.get("Content-Type"),
            Some("application/json")
        );
        assert_eq!(
            (first.request.body.as_slice(), first.late),
            (&b"{}"[..], false)
        );
    }

    #[test]
    fn tunnels_traces_and_other_protocols_are_refused() {
        let listener = listener();
        let url = listener.open("a", Vec::new());
        let path = url.splitn(4, '/').nth(3).expect("a path").to_owned();
        for head in [
            format!("CONNECT {} HTTP/1.1\r\n", listener.address()),
            format!("TRACE /{path} HTTP/1.1\r\n"),
            format!("POST /{path} HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"),
        ] {
            let head = format!("{head}Host: h\r\n\r\n");
            let status = raw(listener.address(), head.as_bytes());
            assert!(status.contains("501"), "{head}: {status}");
        }
        assert_eq!(listener.sink().snapshot().len(), 0);
    }

    #[test]
    fn answers_are_held_back_for_real() {
        let listener = listener();
        let slow = Reply {
            status: 200,
            after: Duration::from_secs(60),
        };
        let url = listener.open("slow", vec![slow]);
        let base = BaseUrl::parse(&url).expect("a base");
        let client = Client::new(Limits::default());
        let request = Request::new("POST", "/");
        // Without a trailing slash the address is another place: not found.
        let response = client.send(&base, &request, AMPLE).expect("an answer");
        assert_eq!(response.status, 404);
        let (root, target) = BaseUrl::parse(&base.origin().to_string())
            .and_then(|root| root.locate(&url))
            .expect("the same origin");
        let within = Duration::from_millis(100);
        let fault = client
            .send(&root, &Request::new("POST", target), within)
            .expect_err("held back");
        assert_eq!(fault.cause, Cause::FirstByteTimeout);
        assert_eq!(listener.sink().snapshot().len(), 1, "received nevertheless");
    }

    #[test]
    fn two_thousand_at_once_are_all_recorded_in_one_order() {
        let listener = listener();
        let url = listener.open("burst", vec![]);
        std::thread::scope(|scope| {
            for worker in 0..20 {
                let url = &url;
                scope.spawn(move || {
                    let client = Client::new(Limits::default());
                    for event in 0..100 {
                        let body = format!("{worker}/{event}");
                        assert_eq!(post(&client, url, body.as_bytes()), "200");
                    }
                });
            }
        });
        let callbacks = listener.sink().snapshot();
        assert_eq!((callbacks.len(), listener.sink().dropped()), (2_000, 0));
        assert!(callbacks.iter().enumerate().all(|(i, c)| c.order == i));
        let mut bodies: Vec<_> = callbacks.iter().map(|c| c.request.body.clone()).collect();
        bodies.sort();
        bodies.dedup();
        assert_eq!(bodies.len(), 2_000, "none twice, none mixed up");
    }

    #[test]
    fn idle_and_slow_senders_do_not_keep_real_ones_out() {
        let listener = Listener::start(&Listening {
            connections: 16,
            ..Listening::default()
        })
        .expect("a free port");
        let url = listener.open("real", vec![]);
        let idle: Vec<_> = (0..60)
            .map(|i| {
                let mut socket =
                    std::net::TcpStream::connect(listener.address()).expect("a listener");
                if i % 2 == 0 {
                    drop(socket.write_all(b"POST /x HTTP/1.1\r\nX-Slow: "));
                }
                socket
            })
            .collect();
        assert_eq!(post(&Client::new(Limits::default()), &url, b"{}"), "200");
        drop(idle);
    }

    #[test]
    fn slow_heads_and_bodies_are_cut_off() {
        let brief = Duration::from_millis(80);
        let listener = Listener::start(&Listening {
            head_time: brief,
            body_time: brief,
            ..Listening::default()
        })
        .expect("a free port");
        let url = listener.open("a", vec![]);
        let path = url.splitn(4, '/').nth(3).expect("a path");
        for (bytes, expect) in [
            (String::new(), "closed"),
            ("POST / HTTP/1.1\r\nX:".into(), "closed"),
            (
                format!("POST /{path} HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n123"),
                "HTTP/1.1 408 Request Timeout",
            ),
        ] {
            assert_eq!(
                raw(listener.address(), bytes.as_bytes()),
                expect,
                "{bytes:?}"
            );
        }
        assert!(listener.sink().snapshot().is_empty());
    }

    #[test]
    fn oversized_and_garbled_callbacks_are_refused_and_never_mixed_up() {
        let listener = listener();
        let url = listener.open("a", vec![]);
        let path = url.splitn(4, '/').nth(3).expect("a path");
        let to = |head: &str| format!("POST /{path} HTTP/1.1\r\nHost: h\r\n{head}\r\n");
        let fields: String = "X-Many: y\r\n".repeat(100_000);
        let chunk = format!("100001\r\n{}\r\n0\r\n\r\n", "x".repeat((1 << 20) + 1));
        for (bytes, expect) in [
            (
                to("Content-Length: 1000000000000\r\n"),
                "HTTP/1.1 413 Payload Too Large",
            ),
            (
                to("Content-Length: 1048577\r\n"),
                "HTTP/1.1 413 Payload Too Large",
            ),
            (
                to("Transfer-Encoding: chunked\r\n") + &chunk,
                "HTTP/1.1 413 Payload Too Large",
            ),
            (to(&fields), "HTTP/1.1 431 Request Header Fields Too Large"),
            (to("Content-Length: -1\r\n"), "HTTP/1.1 400 Bad Request"),
            (
                to("Content-Length: 1\r\nContent-Length: 2\r\n"),
                "HTTP/1.1 400 Bad Request",
            ),
            (
                to("Transfer-Encoding: gzip\r\n"),
                "HTTP/1.1 400 Bad Request",
            ),
            (
                to("Transfer-Encoding: chunked\r\n") + "zz\r\n",
                "HTTP/1.1 400 Bad Request",
            ),
            (
                "\x16\x03\x01 noise\r\n\r\n".into(),
                "HTTP/1.1 400 Bad Request",
            ),
            (
                "GET http://[ HTTP/1.1\r\n\r\n".into(),
                "HTTP/1.1 400 Bad Request",
            ),
        ] {
            let shown = &bytes[..bytes.len().min(120)];
            assert_eq!(
                raw(listener.address(), bytes.as_bytes()),
                expect,
                "{shown:?}"
            );
        }
        assert!(listener.sink().snapshot().is_empty());

        let many = to(&("X-Many: y\r\n".repeat(200) + "Content-Length: 2\r\n")) + "ok";
        assert_eq!(raw(listener.address(), many.as_bytes()), "HTTP/1.1 200 OK");

        // Pipelined or smuggled requests: the first counts, the rest is never read.
        let second = to("Content-Length: 6\r\n") + "forged";
        let pipelined = to("Content-Length: 2\r\n") + "ok" + &second;
        assert_eq!(
            raw(listener.address(), pipelined.as_bytes()),
            "HTTP/1.1 200 OK"
        );
        let smuggled =
            to("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n" + &second;
        raw(listener.address(), smuggled.as_bytes());
        let bodies: Vec<_> = listener
            .sink()
            .snapshot()
            .iter()
            .map(|c| c.request.body.clone())
            .collect();
        assert!(!bodies.contains(&b"forged".to_vec()), "{bodies:?}");
        assert_eq!(bodies[0], b"ok");
    }

    #[test]
    fn only_addresses_of_this_run_are_taken() {
        let (one, other) = (listener(), listener());
        let client = Client::new(Limits::default());
        let url = one.open("a", vec![]);
        let forged = other
            .open("a", vec![])
            .replace(&other.address().to_string(), &one.address().to_string());
        assert_ne!(url, forged);
        for wrong in [
            forged,
            format!("{url}/more"),
            url.replace("/a", "/never-opened"),
            format!("http://{}/a", one.address()),
            format!("http://{}//", one.address()),
        ] {
            assert_eq!(post(&client, &wrong, b"{}"), "404", "{wrong}");
        }
        assert!(one.sink().snapshot().is_empty());
        assert_eq!(post(&client, &url, b"{}"), "200");
    }

    #[test]
    fn a_public_url_works_with_and_without_its_path_prefix() {
        let listener = Listener::start(&Listening {
            public_url: Some(BaseUrl::parse("https://ci.example/hooks/").expect("a base")),
            ..Listening::default()
        })
        .expect("a free port");
        let url = listener.open("a", vec![]);
        let path = url
            .strip_prefix("https://ci.example")
            .expect("the public address");
        let client = Client::new(Limits::default());
        let own = format!("http://{}", listener.address());
        let stripped = path.strip_prefix("/hooks").expect("the prefix");
        for path in [path, stripped] {
            assert_eq!(post(&client, &format!("{own}{path}"), b"{}"), "200");
        }
    }

    #[test]
    fn a_taken_port_is_an_exact_error_and_a_dropped_listener_leaves_none() {
        let first = listener();
        let address = first.address();
        let error = Listener::start(&Listening {
            listen: address,
            ..Listening::default()
        })
        .expect_err("taken");
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("listen on {address}: ")),
            "{text}"
        );
        drop(first);
        assert!(std::net::TcpStream::connect(address).is_err(), "closed");
    }
}
