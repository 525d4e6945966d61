//! A small HTTP server for the callback listener and the gateway of `proxy`.
//!
//! Open to untrusted senders: every wait and size is bounded, and each connection carries one request.
//! A [`Handler`] selects which paths exist and answers their requests.

use super::origin::BaseUrl;
use conformant_base::clock;
use conformant_base::failpoint::{self, Failpoint};
use conformant_base::http::{Headers, Request};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
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
/// Simultaneous blocking responses: each exchange that the gateway forwards blocks one thread.
const BLOCKING_THREADS: usize = 16;
/// Large bodies read at once.
const LARGE_BODIES: usize = 32;

/// Address and limits of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
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

impl Default for ServerSettings {
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

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[error("listen on {address}: {source}")]
pub struct ListenError {
    address: SocketAddr,
    source: std::io::Error,
}

impl ListenError {
    /// Whether another program listens there.
    pub fn is_in_use(&self) -> bool {
        self.source.kind() == std::io::ErrorKind::AddrInUse
    }
}

/// A listening socket; closed with every connection when dropped.
#[derive(Debug)]
pub(super) struct RunningServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<Duration>>,
    thread: Option<JoinHandle<()>>,
}

/// Handles incoming requests.
pub(super) trait Handler: Send + Sync + 'static {
    /// The name of the callback address or target of a path; `None` responds 404 without reading the body.
    fn route(&self, path: &str) -> Option<String>;

    /// The response to a request that has no route.
    fn unrouted(&self, _method: &str, _path: &str) -> HttpResponse {
        bare(StatusCode::NOT_FOUND)
    }

    /// The response to a request with a complete body.
    fn answer(&self, route: String, request: Request) -> impl Future<Output = HttpResponse> + Send;
}

pub(super) type HttpResponse = Response<Whole>;

/// A body that is sent in one piece.
#[derive(Default)]
pub(super) struct Whole(Option<Bytes>);

impl Whole {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, Bytes::len) as u64)
    }
}

/// Reads a body of at most `limit` bytes.
async fn collected(mut body: Incoming, limit: usize) -> Result<Vec<u8>, StatusCode> {
    let mut read = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
        let data = frame.into_data().unwrap_or_default();
        if data.len() > limit - read.len() {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        read.extend_from_slice(&data);
    }
    Ok(read)
}

impl RunningServer {
    /// Starts to listen on a separate thread. `make` returns the handler, and is called once the address is known.
    pub(super) fn start<H: Handler, K>(
        settings: &ServerSettings,
        name: &str,
        make: impl FnOnce(SocketAddr) -> (H, K),
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
        let (handler, kept) = make(address);
        let server = Arc::new(Server {
            handler,
            large_bodies: Semaphore::new(LARGE_BODIES),
            settings: settings.clone(),
        });
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    let mut connections = Vec::new();
                    let grace = tokio::select! {
                        never = accept(socket, server, &mut connections) => match never {},
                        // Sent or dropped: the socket is closed.
                        grace = stopped => grace.unwrap_or_default(),
                    };
                    drop(tokio::time::timeout(grace, all_answered(&connections)).await);
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

    /// Closes the socket, once each request that was received has its response, and no later than this.
    pub(super) fn finish(mut self, within: Duration) {
        if let Some(stop) = self.stop.take() {
            // The send fails only when the thread has ended.
            let _ = stop.send(within);
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was already reported by its thread.
            drop(thread.join());
        }
    }
}

/// State shared by all connections.
#[derive(Debug)]
struct Server<H> {
    handler: H,
    large_bodies: Semaphore,
    settings: ServerSettings,
}

/// A connection in the accept loop.
#[derive(Debug)]
struct Connection {
    since: Instant,
    /// True once a head was received, for any path: this connection is not dropped.
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

async fn accept<H: Handler>(
    socket: TcpListener,
    server: Arc<Server<H>>,
    connections: &mut Vec<Connection>,
) -> Infallible {
    loop {
        // Out of descriptors, or the client left: continue with the next one.
        let Ok((stream, _)) = socket.accept().await else {
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        };
        make_room(connections, server.settings.connections).await;
        let answering = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(serve(stream, Arc::clone(&server), Arc::clone(&answering)));
        connections.push(Connection {
            since: clock::monotonic(),
            answering,
            task: task.abort_handle(),
        });
    }
}

/// Waits until each request that was received has its response.
async fn all_answered(connections: &[Connection]) {
    let is_answering = |connection: &Connection| {
        connection.answering.load(Ordering::Relaxed) && !connection.task.is_finished()
    };
    while connections.iter().any(is_answering) {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Waits for room for one more connection. Drops the oldest without a complete head; if all have one,
/// the newcomer waits.
async fn make_room(connections: &mut Vec<Connection>, most: usize) {
    loop {
        connections.retain(|connection| !connection.task.is_finished());
        if connections.len() < most {
            return;
        }
        let now = clock::monotonic();
        // In order of arrival, so the first match is the oldest.
        let idle = connections.iter().position(|connection| {
            !connection.answering.load(Ordering::Relaxed) && now - connection.since >= IDLE_MIN_AGE
        });
        if let Some(oldest) = idle {
            connections.remove(oldest).task.abort();
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn serve<H: Handler>(stream: TcpStream, server: Arc<Server<H>>, answering: Arc<AtomicBool>) {
    let service = service_fn(|request| {
        let server = Arc::clone(&server);
        answering.store(true, Ordering::Relaxed);
        async move { Ok::<_, Infallible>(server.answer(request).await) }
    });
    // One request per connection: pipelined or smuggled bytes are never read.
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(server.settings.head_time)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_LINES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    // Broken connections are the sender's error; the handler received nothing.
    drop(served);
}

/// A response with a line of text.
pub(super) fn line(status: StatusCode, text: String) -> HttpResponse {
    let mut response = Response::new(Whole::new(Bytes::from(text + "\n")));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, plain);
    response
}

/// A response without a body.
pub(super) fn bare(status: StatusCode) -> HttpResponse {
    let mut response = Response::new(Whole::default());
    *response.status_mut() = status;
    response
}

impl<H: Handler> Server<H> {
    async fn answer(&self, request: hyper::Request<Incoming>) -> HttpResponse {
        // Tunnels and other protocols are not supported.
        let is_other = request.headers().contains_key(hyper::header::UPGRADE)
            || matches!(request.method().as_str(), "CONNECT" | "TRACE");
        if is_other {
            return bare(StatusCode::NOT_IMPLEMENTED);
        }
        let Some(route) = self.handler.route(request.uri().path()) else {
            let (method, path) = (request.method().as_str(), request.uri().path());
            return self.handler.unrouted(method, path);
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
        self.handler.answer(route, request).await
    }

    async fn read(&self, body: Incoming) -> Result<Vec<u8>, StatusCode> {
        let size = body.size_hint();
        if size.lower() > self.settings.body as u64 {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let permit = self.large_bodies.acquire();
        let permit = match size.exact() {
            Some(bytes) if bytes <= LARGE_BODY => None,
            _ => Some(permit.await.expect("the semaphore is never closed")),
        };
        let read = collected(body, self.settings.body).await;
        drop(permit);
        read
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
