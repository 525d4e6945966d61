//! One connection to a target, and the bytes of one exchange under one deadline.
//!
//! - No knowledge of HTTP: moves bytes, keeps writing while a response arrives, reports why input ended.
//! - Both directions share one thread: the socket blocks for a short slice, then deadline and interrupt
//!   flag are checked.

use super::budget::BudgetShare;
use super::connect_settings::ConnectSettings;
use super::fault::Fault;
use super::origin::Origin;
use super::proxy::Proxy;
use super::tls;
use conformant_base::clock;
use conformant_base::failpoint::{self, Failpoint};
use conformant_base::http::Cause;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Longest blocking read.
const SLICE: Duration = Duration::from_millis(100);
/// Longest blocking write, which delays reading.
const WRITE_SLICE: Duration = Duration::from_millis(20);
/// Bytes per write.
const WRITE_BYTES: usize = 64 * 1024;
/// Initial size of the receive buffer.
const READ_BYTES: usize = 16 * 1024;

/// Resolves the host of an origin on a separate thread, because the system resolver has no deadline.
pub(super) fn resolve(origin: &Origin, within: Duration) -> Result<Vec<SocketAddr>, Fault> {
    let host = origin.host().trim_matches(['[', ']']);
    let port = origin.port();
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let unresolved =
        |why: String| Fault::new(Cause::Unresolved, format!("host name {host}: {why}"));
    let (found, answer) = mpsc::channel();
    let name = host.to_owned();
    std::thread::Builder::new()
        .name("resolve".into())
        .spawn(move || {
            let addresses = (name.as_str(), port).to_socket_addrs().map(Vec::from_iter);
            // The receiver is gone after the deadline.
            drop(found.send(addresses));
        })
        .map_err(|e| unresolved(e.to_string()))?;
    match answer.recv_timeout(within) {
        Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
        Ok(Ok(_)) => Err(unresolved("no address".into())),
        Ok(Err(e)) => Err(unresolved(e.to_string())),
        Err(_) => Err(unresolved(format!("no response within {within:?}"))),
    }
}

/// Settings of a new connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    /// Time to connect.
    pub(super) connect: Duration,
    /// Deadline of the whole exchange.
    pub(super) deadline: Instant,
    pub(super) interrupted: &'a AtomicBool,
    /// Certificates and proxy.
    pub(super) way: &'a ConnectSettings,
}

/// An open connection with its buffers.
#[derive(Debug)]
pub(super) struct Connection {
    wire: Wire,
    /// The proxy that forwards requests; `None` for a tunnel.
    pub(super) through: Option<Arc<Proxy>>,
    /// Received bytes; `start..end` is unconsumed.
    input: Vec<u8>,
    start: usize,
    end: usize,
    /// Head and small body of the current request.
    pub(super) output: Vec<u8>,
    /// The current read timeout of the socket.
    armed: Duration,
}

#[derive(Debug)]
enum Wire {
    Plain(TcpStream),
    Tls(Box<tls::Stream>),
}

impl Connection {
    /// Connects to the first address that accepts.
    pub(super) fn open(
        origin: &Origin,
        addresses: &[SocketAddr],
        terms: &Terms<'_>,
    ) -> Result<Self, Fault> {
        let connect_by = terms.deadline.min(clock::monotonic() + terms.connect);
        let mut last = None;
        for address in addresses {
            match connect(*address, connect_by, terms.connect) {
                Ok(socket) => return Self::over(origin, socket, terms),
                Err(fault) => last = Some(fault),
            }
        }
        Err(last.unwrap_or_else(|| Fault::new(Cause::Unresolved, "no address")))
    }

    fn over(origin: &Origin, mut socket: TcpStream, terms: &Terms<'_>) -> Result<Self, Fault> {
        socket
            .set_nodelay(true)
            .and_then(|()| socket.set_read_timeout(Some(SLICE)))
            .and_then(|()| socket.set_write_timeout(Some(WRITE_SLICE)))
            .map_err(|e| Fault::new(Cause::Unreachable, format!("socket options: {e}")))?;
        let proxy = terms.way.proxies.to(origin);
        if let Some(proxy) = proxy.filter(|_| origin.is_tls()) {
            proxy.tunnel(&mut socket, origin, terms.deadline, terms.interrupted)?;
        }
        let through = proxy.filter(|_| !origin.is_tls()).cloned();
        let wire = if origin.is_tls() {
            Wire::Tls(Box::new(tls::Stream::open(origin, socket, terms)?))
        } else {
            Wire::Plain(socket)
        };
        Ok(Self {
            wire,
            through,
            input: vec![0; READ_BYTES],
            start: 0,
            end: 0,
            output: Vec::with_capacity(1024),
            armed: SLICE,
        })
    }

    /// True if the connection is open without unread bytes. Bytes between two exchanges belong to neither,
    /// so such a connection is not reused.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.start == self.end
            && matches!(self.wire.read_now(&mut [0]), Err(e) if is_would_block(&e))
    }

    /// Makes room for at least one more byte.
    fn make_room(&mut self) {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
        if self.end < self.input.len() {
            return;
        }
        if self.start > 0 {
            self.input.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        } else {
            self.input.resize(self.input.len() * 2, 0);
        }
    }
}

fn connect(address: SocketAddr, by: Instant, within: Duration) -> Result<TcpStream, Fault> {
    let left = by.saturating_duration_since(clock::monotonic());
    let late = || {
        let detail = format!("connect to {address}: no response within {within:?}");
        Fault::new(Cause::ConnectTimeout, detail)
    };
    if left.is_zero() {
        return Err(late());
    }
    let connected = failpoint::check(Failpoint::Connect)
        .and_then(|()| TcpStream::connect_timeout(&address, left));
    let socket = connected.map_err(|e| {
        if matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) {
            return late();
        }
        let is_refused = e.kind() == ErrorKind::ConnectionRefused;
        let cause = if is_refused {
            Cause::Refused
        } else {
            Cause::Unreachable
        };
        Fault::new(cause, format!("connect to {address}: {e}"))
    })?;
    // A local port can be connected to itself by chance.
    if socket.local_addr().ok() == Some(address) {
        let detail = format!("connect to {address}: connection refused (self-connect)");
        return Err(Fault::new(Cause::Refused, detail));
    }
    Ok(socket)
}

impl Wire {
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.socket(),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }

    /// Reads what has arrived, without waiting.
    fn read_now(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket().set_nonblocking(true)?;
        let read = self.read(into);
        self.socket().set_nonblocking(false)?;
        read
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    /// True while written bytes are still buffered here.
    fn holds_back(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.holds_back(),
        }
    }
}

/// Why no more bytes come.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ending {
    /// The target closed its side properly.
    #[error("the connection was closed")]
    Closed,
    #[error("the connection broke ({0})")]
    Broken(io::Error),
    #[error("the deadline passed")]
    Late,
    #[error("the run was interrupted")]
    Interrupted,
}

/// One exchange on a connection.
#[derive(Debug)]
pub(super) struct Exchange<'a> {
    connection: &'a mut Connection,
    body: &'a [u8],
    sent: usize,
    /// Bytes received in this exchange.
    pub(super) received: usize,
    /// When the first byte was received.
    pub(super) first_byte: Option<Instant>,
    /// Why the target stopped accepting the request.
    pub(super) refused: Option<io::Error>,
    deadline: Instant,
    interrupted: &'a AtomicBool,
}

impl<'a> Exchange<'a> {
    /// Starts to send the connection's output followed by `body`.
    pub(super) fn new(
        connection: &'a mut Connection,
        body: &'a [u8],
        deadline: Instant,
        interrupted: &'a AtomicBool,
    ) -> Self {
        Self {
            connection,
            body,
            sent: 0,
            received: 0,
            first_byte: None,
            refused: None,
            deadline,
            interrupted,
        }
    }

    /// Received, unconsumed bytes.
    pub(super) fn available(&self) -> &[u8] {
        &self.connection.input[self.connection.start..self.connection.end]
    }

    /// Consumes bytes of [`Exchange::available`].
    pub(super) fn consume(&mut self, bytes: usize) {
        self.connection.start += bytes;
        debug_assert!(self.connection.start <= self.connection.end);
    }

    /// Bytes of the request sent, and its size.
    pub(super) fn progress(&self) -> (usize, usize) {
        (self.sent, self.total())
    }

    /// Waits for memory for a response of that size; the deadline moves by the wait.
    pub(super) fn admit(&mut self, bytes: usize, share: &BudgetShare) {
        self.deadline += share.admit(bytes, self.interrupted);
    }

    pub(super) fn is_sent(&self) -> bool {
        self.sent == self.total() && !self.connection.wire.holds_back()
    }

    /// Not all was sent before the deadline.
    pub(super) fn write_timeout(&self) -> Fault {
        let (sent, total) = (self.sent as u64, self.total() as u64);
        let detail = format!("deadline passed when {sent} of {total} bytes were sent");
        Fault::new(Cause::WriteTimeout { sent, total }, detail)
    }

    /// The connection broke without a byte of a response.
    pub(super) fn reset(&self, error: &io::Error) -> Fault {
        let (sent, total) = self.progress();
        let detail = format!("{error}, after {sent} of {total} bytes were sent");
        Fault::new(Cause::Reset, detail)
    }

    /// Waits for at least one more byte while sending the rest of the request.
    pub(super) fn more(&mut self) -> Result<(), Ending> {
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Ending::Interrupted);
            }
            let left = self.deadline.saturating_duration_since(clock::monotonic());
            if left.is_zero() {
                return Err(Ending::Late);
            }
            let is_over = self.is_sent() || self.refused.is_some();
            let read = if is_over {
                self.read_within(left)
            } else if self.sent == 0 {
                // Most requests are sent by this single call, before any response is possible.
                self.send_some(self.total());
                continue;
            } else {
                self.read_early()
            };
            match read {
                Ok(0) => return Err(Ending::Closed),
                Ok(bytes) => {
                    self.connection.end += bytes;
                    self.received += bytes;
                    self.first_byte.get_or_insert_with(clock::monotonic);
                    return Ok(());
                }
                // An early response is read first; then the upload continues.
                Err(e) if is_would_block(&e) => {
                    if !is_over {
                        self.send_some(self.total());
                    }
                }
                Err(e) => return Err(Ending::Broken(e)),
            }
        }
    }

    fn total(&self) -> usize {
        self.connection.output.len() + self.body.len()
    }

    /// Sends everything except the last byte.
    pub(super) fn send_all_but_last(&mut self) -> Result<(), Fault> {
        let until = self.total() - 1;
        while self.sent < until || self.connection.wire.holds_back() {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Fault::new(Cause::Interrupted, "sending the request"));
            }
            if clock::monotonic() >= self.deadline {
                return Err(self.write_timeout());
            }
            self.send_some(until);
            if let Some(error) = &self.refused {
                return Err(self.reset(error));
            }
        }
        Ok(())
    }

    /// Fails if the target answered or closed the connection before the last byte.
    pub(super) fn check_silence(&mut self) -> Result<(), Fault> {
        if self.connection.is_quiet() {
            return Ok(());
        }
        let detail = "the target answered or closed the connection before the last byte";
        Err(Fault::new(Cause::EmptyResponse, detail))
    }

    /// Sends the last byte; returns when that was done. A failure shows when the response is read.
    pub(super) fn send_last(&mut self) -> Instant {
        self.send_some(self.total());
        clock::monotonic()
    }

    /// Writes once, up to this byte.
    fn send_some(&mut self, until: usize) {
        let head = self.connection.output.len();
        let written = if self.sent < head {
            self.connection
                .wire
                .write(&self.connection.output[self.sent..head.min(until)])
        } else {
            let rest = &self.body[self.sent - head..until - head];
            self.connection
                .wire
                .write(&rest[..rest.len().min(WRITE_BYTES)])
        };
        match written {
            Ok(bytes) => self.sent += bytes,
            Err(e) if is_would_block(&e) => {}
            // The target's earlier response may still be readable.
            Err(e) => self.refused = Some(e),
        }
    }

    fn read_within(&mut self, left: Duration) -> io::Result<usize> {
        let connection = &mut *self.connection;
        // Setting the timeout costs a system call: only near the deadline.
        let slice = SLICE.min(left).max(Duration::from_millis(1));
        if slice != connection.armed {
            connection.wire.socket().set_read_timeout(Some(slice))?;
            connection.armed = slice;
        }
        connection.make_room();
        connection
            .wire
            .read(&mut connection.input[connection.end..])
    }

    fn read_early(&mut self) -> io::Result<usize> {
        let connection = &mut *self.connection;
        connection.make_room();
        connection
            .wire
            .read_now(&mut connection.input[connection.end..])
    }
}

/// True for errors after which a retry may succeed.
pub(super) fn is_would_block(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}
