//! TLS in front of the server: accepts connections and forwards the decrypted bytes to the plain server on
//! the loopback interface.
//!
//! Does not parse HTTP. A generated certificate is self-signed, so that clients can trust it directly.

use super::relay::Relay;
use conformant_base::clock;
use conformant_base::parallel::lock;
use rcgen::{CertifiedKey as MadeUp, generate_simple_self_signed};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Deadline of the handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Bytes forwarded at once.
const PART_BYTES: usize = 16 << 10;

/// A certificate with its key, both in PEM.
#[derive(Clone)]
pub struct Identity {
    /// With its issuers.
    pub certificate: String,
    pub key: String,
}

impl std::fmt::Debug for Identity {
    /// Omits the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// Why an identity cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("{0}")]
    Unmade(#[from] rcgen::Error),
    /// Invalid PEM instead of a certificate.
    #[error("the certificate: {0}")]
    Certificate(#[source] pem::Error),
    /// No certificate in the PEM file.
    #[error("the certificate: no certificate in PEM format found")]
    NoCertificate,
    #[error("the key: {0}")]
    Key(#[source] pem::Error),
    /// The key of another certificate.
    #[error("the key and its certificate: {0}")]
    Pair(#[source] rustls::Error),
}

impl Identity {
    /// Generates a certificate for the names of this machine and for the interface, if it is specific.
    pub fn generate(host: Option<IpAddr>) -> Result<Self, IdentityError> {
        let mut names = vec![
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
            "::1".to_owned(),
        ];
        names.extend(
            host.filter(|host| !host.is_unspecified() && !host.is_loopback())
                .map(|host| host.to_string()),
        );
        let MadeUp { cert, signing_key } = generate_simple_self_signed(names)?;
        Ok(Self {
            certificate: cert.pem(),
            key: signing_key.serialize_pem(),
        })
    }

    pub(super) fn config(&self) -> Result<Arc<ServerConfig>, IdentityError> {
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(IdentityError::Certificate)?;
        if chain.is_empty() {
            return Err(IdentityError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(IdentityError::Key)?;
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(ring)
            .with_safe_default_protocol_versions()
            .expect("ring supports the default protocol versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(IdentityError::Pair)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Starts a TLS listener that forwards decrypted bytes to that address.
pub(super) fn listen(
    at: SocketAddr,
    to: SocketAddr,
    config: Arc<ServerConfig>,
) -> io::Result<Relay> {
    Relay::serve(at, move |_, client| {
        serve_connection(client, to, Arc::clone(&config))
    })
}

/// One connection. The session is locked only while it computes and writes, never while it waits.
struct Session<'a> {
    tls: Mutex<ServerConnection>,
    client: &'a TcpStream,
}

impl Session<'_> {
    /// Decrypts bytes of the client.
    fn decrypt(&self, mut bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut tls = lock(&self.tls);
        let mut plaintext = Vec::new();
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes)?;
            let state = tls.process_new_packets();
            // Sends the alert to the client.
            self.flush(&mut tls)?;
            state.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            match tls.reader().read_to_end(&mut plaintext) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
        Ok(plaintext)
    }

    fn encrypt(&self, plain: &[u8]) -> io::Result<()> {
        let mut tls = lock(&self.tls);
        tls.writer().write_all(plain)?;
        self.flush(&mut tls)
    }

    fn end(&self) -> io::Result<()> {
        let mut tls = lock(&self.tls);
        tls.send_close_notify();
        self.flush(&mut tls)
    }

    fn flush(&self, tls: &mut ServerConnection) -> io::Result<()> {
        let mut client = self.client;
        while tls.wants_write() {
            tls.write_tls(&mut client)?;
        }
        Ok(())
    }
}

fn serve_connection(
    client: &TcpStream,
    to: SocketAddr,
    config: Arc<ServerConfig>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    let tls = ServerConnection::new(config).map_err(io::Error::other)?;
    let session = Session {
        tls: Mutex::new(tls),
        client,
    };
    let mut first = Vec::new();
    let due = clock::monotonic() + HANDSHAKE_MAX;
    while lock(&session.tls).is_handshaking() {
        let left = due.saturating_duration_since(clock::monotonic());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        let Some(bytes) = read_part(client)? else {
            return Ok(());
        };
        first.extend(session.decrypt(&bytes)?);
    }
    client.set_read_timeout(None)?;
    let server = TcpStream::connect(to)?;
    server.set_nodelay(true)?;
    (&server).write_all(&first)?;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let ended = forward_requests(&session, &server);
            let how = if ended.is_ok() {
                Shutdown::Write
            } else {
                Shutdown::Both
            };
            // Ignore sockets that are already closed.
            drop(server.shutdown(how));
        });
        let ended = forward_responses(&server, &session);
        drop(server.shutdown(Shutdown::Both));
        // Wakes the thread that still reads from the client.
        drop(client.shutdown(Shutdown::Both));
        ended
    })
}

/// Forwards the client's bytes until their end.
fn forward_requests(session: &Session<'_>, mut server: &TcpStream) -> io::Result<()> {
    while let Some(bytes) = read_part(session.client)? {
        let plaintext = session.decrypt(&bytes)?;
        server.write_all(&plaintext)?;
        if lock(&session.tls)
            .process_new_packets()
            .is_ok_and(|state| state.peer_has_closed())
        {
            return Ok(());
        }
    }
    Ok(())
}

/// Forwards the server's bytes until their end.
fn forward_responses(server: &TcpStream, session: &Session<'_>) -> io::Result<()> {
    while let Some(plain) = read_part(server)? {
        session.encrypt(&plain)?;
    }
    session.end()
}

/// The next bytes; `None` at the end.
fn read_part(mut from: &TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; PART_BYTES];
    let read = from.read(&mut bytes)?;
    bytes.truncate(read);
    Ok((read > 0).then_some(bytes))
}
