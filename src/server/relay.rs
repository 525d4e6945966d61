//! Puts a server on a port of one's choice by passing bytes on to it.
//!
//! `httpmock` picks its own port. Reads nothing of what passes.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A listener that leads every connection to another address; dropping it frees the port.
#[derive(Debug)]
pub(super) struct Relay {
    address: SocketAddr,
    closed: Arc<AtomicBool>,
}

impl Relay {
    /// Connections at once; more are closed unanswered.
    const CONNECTIONS_MAX: usize = 256;

    /// Listens on that port of the loopback interface; 0 takes a free one.
    pub(super) fn start(port: u16, to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let closed = Arc::new(AtomicBool::new(false));
        let closing = Arc::clone(&closed);
        std::thread::spawn(move || accept(&listener, to, &closing));
        Ok(Self { address, closed })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        // The accepting thread looks at the flag once somebody connects.
        drop(TcpStream::connect(self.address));
    }
}

fn accept(listener: &TcpListener, to: SocketAddr, closed: &AtomicBool) {
    let open = Arc::new(AtomicUsize::new(0));
    for client in listener.incoming() {
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
        let open = Arc::clone(&open);
        std::thread::spawn(move || {
            // A connection that breaks has ended; there is nobody to tell.
            drop(lead(&client, to));
            open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// Passes bytes both ways until both sides have ended.
fn lead(client: &TcpStream, to: SocketAddr) -> io::Result<()> {
    let server = TcpStream::connect(to)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    std::thread::scope(|scope| {
        scope.spawn(|| pass(client, &server));
        pass(&server, client);
    });
    Ok(())
}

fn pass(mut from: &TcpStream, mut to: &TcpStream) {
    let ended = io::copy(&mut from, &mut to);
    let how = if ended.is_ok() {
        Shutdown::Write
    } else {
        Shutdown::Both
    };
    // Already closed is as good as closed.
    drop(to.shutdown(how));
    if ended.is_err() {
        drop(from.shutdown(Shutdown::Both));
    }
}
