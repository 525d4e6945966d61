//! Misbehaving targets on loopback; their actions are data.
//!
//! Written without an HTTP server, because a library would prevent the faults to test.

use conformant_base::clock;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Maximum time of a connection.
const PATIENCE: Duration = Duration::from_secs(20);

/// Actions of a target, in order; then it closes the connection.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends bytes one at a time, a pause after each.
    Drip(Vec<u8>, Duration),
    /// Sends the same bytes until the client is gone.
    Flood(Vec<u8>),
    /// Waits until the client disconnects.
    Hold,
    /// Closes with unread data, so that the client gets a reset.
    Reset,
    /// Reads the next request on the same connection.
    Keep,
}

/// Sends bytes and closes.
pub(crate) fn send(bytes: impl AsRef<[u8]>) -> Vec<Act> {
    vec![Act::Send(bytes.as_ref().to_vec())]
}

/// Sends bytes and reads the next request.
pub(crate) fn keep(bytes: impl AsRef<[u8]>) -> Vec<Act> {
    vec![Act::Send(bytes.as_ref().to_vec()), Act::Keep]
}

/// A received request: number, from 1, and head.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) number: usize,
    pub(crate) head: String,
}

impl Asked {
    /// The value of a header field.
    pub(crate) fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut values = lines
            .filter(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v);
        values.next().unwrap_or_default()
    }
}

type Answer = dyn Fn(&Asked) -> Vec<Act> + Send + Sync;

/// A target that listens until it is dropped.
pub(crate) struct Target {
    address: String,
    shared: Arc<Shared>,
}

struct Shared {
    answer: Box<Answer>,
    greeting: Vec<Act>,
    connections: AtomicUsize,
    asked: Mutex<Vec<Asked>>,
    over: AtomicBool,
}

impl Target {
    /// Responds to each request with the function.
    pub(crate) fn answering(answer: impl Fn(&Asked) -> Vec<Act> + Send + Sync + 'static) -> Self {
        Self::start(Vec::new(), Box::new(answer))
    }

    /// Does the same on every connection.
    pub(crate) fn greeting(acts: Vec<Act>) -> Self {
        Self::start(acts, Box::new(|_| Vec::new()))
    }

    fn start(greeting: Vec<Act>, answer: Box<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket").to_string();
        let shared = Arc::new(Shared {
            answer,
            greeting,
            connections: AtomicUsize::new(0),
            asked: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let listening = Arc::clone(&shared);
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                if listening.over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(socket) = socket else { continue };
                listening.connections.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&listening);
                // A client may disconnect early.
                std::thread::spawn(move || drop(shared.serve(socket)));
            }
        });
        Self { address, shared }
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().expect("no holder panics").clone()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // Wakes the listener for its end.
        drop(TcpStream::connect(&self.address));
    }
}

impl Shared {
    fn serve(&self, mut socket: TcpStream) -> std::io::Result<()> {
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        if !self.greeting.is_empty() {
            return self.perform(&mut socket, &self.greeting).map(drop);
        }
        loop {
            let head = read_request(&mut socket)?;
            let asked = {
                let mut all = self.asked.lock().expect("no holder panics");
                let asked = Asked {
                    number: all.len() + 1,
                    head,
                };
                all.push(asked.clone());
                asked
            };
            if !self.perform(&mut socket, &(self.answer)(&asked))? {
                return Ok(());
            }
        }
    }

    /// True if the connection continues.
    fn perform(&self, socket: &mut TcpStream, acts: &[Act]) -> std::io::Result<bool> {
        for act in acts {
            match act {
                Act::Send(bytes) => socket.write_all(bytes)?,
                Act::Drip(bytes, pause) => {
                    for byte in bytes {
                        socket.write_all(&[*byte])?;
                        clock::sleep(*pause);
                    }
                }
                Act::Flood(bytes) => {
                    while !self.over.load(Ordering::Relaxed) {
                        socket.write_all(bytes)?;
                    }
                }
                Act::Hold => while socket.read(&mut [0; 4096])? > 0 {},
                Act::Reset => {
                    // After a greeting the request itself is still unread.
                    socket.peek(&mut [0])?;
                }
                Act::Keep => return Ok(true),
            }
        }
        Ok(false)
    }
}

fn read_request(socket: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let lower = head.to_ascii_lowercase();
    let length = lower
        .split_once("content-length: ")
        .and_then(|(_, rest)| rest.split("\r\n").next()?.parse().ok())
        .unwrap_or(0);
    socket.read_exact(&mut vec![0; length])?;
    Ok(head)
}
