//! TLS for `https://` targets: `rustls` over a socket that blocks for short slices only.
//!
//! Deliberately trusts the public roots and nothing else, and offers no way to switch checks off.

use super::connection::is_would_block;
use super::fault::{Cause, Fault};
use super::origin::Origin;
use crate::clock;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// An encrypted connection.
#[derive(Debug)]
pub(super) struct Stream {
    session: ClientConnection,
    socket: TcpStream,
}

impl Stream {
    /// Shakes hands; the socket has its time-outs already.
    pub(super) fn open(
        origin: &Origin,
        socket: TcpStream,
        deadline: Instant,
        interrupted: &AtomicBool,
    ) -> Result<Self, Fault> {
        let tls = |why: String| Fault::new(Cause::Tls, format!("{origin}: {why}"));
        let host = origin.host().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|e| tls(e.to_string()))?;
        let session = ClientConnection::new(config(), name).map_err(|e| tls(e.to_string()))?;
        let mut stream = Self { session, socket };
        while stream.session.is_handshaking() {
            if interrupted.load(Ordering::Relaxed) {
                return Err(Fault::new(Cause::Interrupted, "during the TLS handshake"));
            }
            if clock::monotonic() >= deadline {
                return Err(tls("no handshake within the deadline".into()));
            }
            match stream.session.complete_io(&mut stream.socket) {
                Ok(_) => {}
                Err(e) if is_would_block(&e) => {}
                Err(e) => return Err(tls(format!("handshake: {e}"))),
            }
        }
        Ok(stream)
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Reads plain bytes. An end without the peer's notice is an error: it may be a cut.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(into) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            self.session.read_tls(&mut self.socket)?;
            self.session
                .process_new_packets()
                .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        }
    }

    /// Encrypts some of the bytes and sends what the socket takes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.session.writer().write(bytes)?;
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(e) if is_would_block(&e) => break,
                Err(e) => return Err(e),
            }
        }
        Ok(taken)
    }

    /// True while encrypted bytes wait for the socket.
    pub(super) fn holds_back(&self) -> bool {
        self.session.wants_write()
    }
}

/// One configuration for the whole process: public roots, ring, HTTP/1.1 only.
fn config() -> Arc<ClientConfig> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    Arc::clone(CONFIG.get_or_init(|| {
        let roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring supports the default protocol versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }))
}
