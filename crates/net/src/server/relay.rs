//! Puts a server on a chosen interface and port by forwarding bytes; delays, cuts and truncates responses.
//!
//! `httpmock` chooses its own port and always responds completely. Only the framing of responses is parsed.

use super::develop::{Answered, Wire};
use super::event_log::EventLog;
use conformant_base::clock;
use conformant_base::http::Response;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Internal header from server to relay; never reaches a client.
const MARK: &str = "X-Conformant-Wire";
/// Interval of keep-alive messages in an event stream, which detect closed connections.
pub(super) const STREAM_BEATS_EVERY: Duration = Duration::from_secs(5);
/// Longest response head.
const HEAD_BYTES_MAX: u64 = 256 << 10;

/// The response with a mark, unless it is sent normally.
pub(super) fn mark_response(answered: Answered, is_head: bool) -> Response {
    let mut response = answered.response;
    let mark = match answered.wire {
        Wire::Whole if is_head => "head".to_owned(),
        Wire::Whole => return response,
        Wire::Delay(by) => format!("delay {}", by.as_millis()),
        Wire::Cut => "cut".to_owned(),
        Wire::Truncate => "truncate".to_owned(),
        Wire::Events { world, after } => format!("events {after} {world}"),
    };
    response.headers.set(MARK, mark);
    response
}

/// A listener that serves each connection on a thread of its own; dropping it frees the port.
#[derive(Debug)]
pub(super) struct Relay {
    address: SocketAddr,
    closed: Arc<AtomicBool>,
}

impl Relay {
    /// Connections; further ones are closed.
    const CONNECTIONS_MAX: usize = 2048;

    /// Starts listening, port 0 for any free one, and forwards connections to the other addresses in turn. Event streams
    /// read the event log.
    pub(super) fn start(
        at: SocketAddr,
        to: Vec<SocketAddr>,
        event_log: Arc<EventLog>,
    ) -> io::Result<Self> {
        Self::serve(at, move |count, client| {
            forward(client, to[count % to.len()], &event_log)
        })
    }

    /// Starts listening. `serve` gets each connection, and the number of those before it.
    pub(super) fn serve(
        at: SocketAddr,
        serve: impl Fn(usize, &TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        let address = listener.local_addr()?;
        let closed = Arc::new(AtomicBool::new(false));
        let closing = Arc::clone(&closed);
        std::thread::spawn(move || accept(&listener, &Arc::new(serve), &closing));
        Ok(Self { address, closed })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        // Connects once, because an accepting thread checks its flag only then.
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        drop(TcpStream::connect(address));
    }
}

fn accept(
    listener: &TcpListener,
    serve: &Arc<impl Fn(usize, &TcpStream) -> io::Result<()> + Send + Sync + 'static>,
    closed: &AtomicBool,
) {
    let open = Arc::new(AtomicUsize::new(0));
    for (count, client) in listener.incoming().enumerate() {
        if closed.load(Ordering::SeqCst) {
            return;
        }
        let Ok(client) = client else {
            continue;
        };
        if open.fetch_add(1, Ordering::SeqCst) >= Relay::CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let (open, serve) = (Arc::clone(&open), Arc::clone(serve));
        std::thread::spawn(move || {
            // A broken connection has ended; the error has no receiver.
            drop(serve(count, &client));
            drop(client.shutdown(Shutdown::Both));
            open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// Forwards bytes both ways until both sides have ended.
fn forward(client: &TcpStream, to: SocketAddr, event_log: &EventLog) -> io::Result<()> {
    let server = TcpStream::connect(to)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pass(client, &server, |mut from, mut to| {
                io::copy(&mut from, &mut to).map(drop)
            });
        });
        pass(&server, client, |from, to| {
            forward_responses(from, to, event_log)
        });
    });
    Ok(())
}

fn pass(
    from: &TcpStream,
    to: &TcpStream,
    bytes: impl FnOnce(&TcpStream, &TcpStream) -> io::Result<()>,
) {
    let ended = bytes(from, to);
    let how = if ended.is_ok() {
        Shutdown::Write
    } else {
        Shutdown::Both
    };
    // Ignore sockets that are already closed.
    drop(to.shutdown(how));
    if ended.is_err() {
        drop(from.shutdown(Shutdown::Both));
    }
}

/// Forwards responses; an error ends the connection early.
fn forward_responses(from: &TcpStream, mut to: &TcpStream, event_log: &EventLog) -> io::Result<()> {
    let mut from = BufReader::new(from);
    loop {
        let mut head = Vec::new();
        loop {
            let read = from
                .by_ref()
                .take(HEAD_BYTES_MAX)
                .read_until(b'\n', &mut head)?;
            if read == 0 {
                to.write_all(&head)?;
                return Ok(());
            }
            let is_over = head.ends_with(b"\r\n\r\n");
            if is_over || head.len() as u64 >= HEAD_BYTES_MAX {
                break;
            }
        }
        let Some(frame) = Frame::of(&head) else {
            // Unknown framing: forward everything that follows.
            to.write_all(&head)?;
            return io::copy(&mut from, &mut to).map(drop);
        };
        let mark = frame.mark.as_deref();
        if let Some(ms) = mark.and_then(|mark| mark.strip_prefix("delay ")) {
            clock::sleep(Duration::from_millis(ms.parse().unwrap_or(0)));
        }
        if let Some(events) = mark.and_then(|mark| mark.strip_prefix("events ")) {
            return write_events(&frame.head, events, to, event_log);
        }
        let ends = |why| io::Error::new(io::ErrorKind::ConnectionAborted, why);
        let length = match mark {
            Some("cut") => return Err(ends("a scripted response")),
            Some("head") => 0,
            Some("truncate") => frame.length / 2,
            Some(_) | None => frame.length,
        };
        to.write_all(&frame.head)?;
        io::copy(&mut from.by_ref().take(length), &mut to)?;
        if mark == Some("truncate") {
            to.flush()?;
            return Err(ends("a scripted response"));
        }
    }
}

/// Writes events until the client or the server ends the connection.
fn write_events(
    head: &[u8],
    events: &str,
    mut to: &TcpStream,
    event_log: &EventLog,
) -> io::Result<()> {
    let (after, world) = events.split_once(' ').unwrap_or((events, ""));
    let mut after = after.parse().unwrap_or(0);
    let head = String::from_utf8_lossy(head);
    let fields = head.split("\r\n").filter(|line| {
        let name = line.split(':').next().unwrap_or_default();
        !line.is_empty() && !name.eq_ignore_ascii_case("Content-Length")
    });
    let head: String = fields.map(|line| format!("{line}\r\n")).collect();
    to.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
    while let Some(text) = super::page::events_after(event_log, world, &mut after) {
        to.write_all(text.as_bytes())?;
        to.flush()?;
    }
    Err(io::Error::new(
        io::ErrorKind::ConnectionAborted,
        "the server stopped",
    ))
}

/// Framing of a response.
struct Frame {
    /// Without the internal header.
    head: Vec<u8>,
    mark: Option<String>,
    length: u64,
}

impl Frame {
    /// `None` unless the response is framed by its length.
    fn of(head: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(head).ok()?;
        let mut frame = Self {
            head: Vec::new(),
            mark: None,
            length: 0,
        };
        let mut has_length = false;
        let status = text.split(' ').nth(1)?;
        for line in text.split_inclusive("\r\n") {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            if name.eq_ignore_ascii_case(MARK) {
                frame.mark = Some(value.trim().to_owned());
                continue;
            }
            if name.eq_ignore_ascii_case("Content-Length") {
                frame.length = value.trim().parse().ok()?;
                has_length = true;
            }
            if name.eq_ignore_ascii_case("Transfer-Encoding") {
                return None;
            }
            frame.head.extend(line.as_bytes());
        }
        (has_length || matches!(status, "204" | "304")).then_some(frame)
    }
}
