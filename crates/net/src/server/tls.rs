//! TLS in front of the server: takes connections, shakes hands with a certificate that was given or made up, and
//! leads what was said on to the plain server on the loopback interface.
//!
//! Reads no HTTP. A certificate that was made up is issued by itself, so that clients trust it by being given it.

use conformant_base::clock;
use rcgen::{CertifiedKey as MadeUp, generate_simple_self_signed};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Whoever has not shaken hands by then is let go of.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Bytes that are passed on at once.
const PART_BYTES: usize = 16 << 10;
/// Connections at once; more are closed unanswered.
const CONNECTIONS_MAX: usize = 2048;

/// A certificate with its key, both in PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificate, and those that issued it.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl std::fmt::Debug for Identity {
    /// Says nothing of the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// Why there is no identity, or why nobody can be shown it.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// None could be made up.
    #[error("{0}")]
    Unmade(#[from] rcgen::Error),
    /// What is no PEM where the certificate should be.
    #[error("the certificate: {0}")]
    Certificate(#[source] pem::Error),
    /// PEM of something else, or nothing.
    #[error("the certificate: there is none in PEM")]
    NoCertificate,
    /// What is no key in PEM.
    #[error("the key: {0}")]
    Key(#[source] pem::Error),
    /// A key that belongs to another certificate.
    #[error("the key and its certificate: {0}")]
    Pair(#[source] rustls::Error),
}

impl Identity {
    /// A fresh one for this machine's own names, and for that interface where it is a certain one.
    pub fn made_up(host: Option<IpAddr>) -> Result<Self, IdentityError> {
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

/// A listener that speaks TLS; dropping it frees the port.
#[derive(Debug)]
pub(super) struct Front {
    address: SocketAddr,
    closed: Arc<AtomicBool>,
}

impl Front {
    /// Listens there, and leads to that address in plain.
    pub(super) fn start(
        at: SocketAddr,
        to: SocketAddr,
        config: Arc<ServerConfig>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        let address = listener.local_addr()?;
        let closed = Arc::new(AtomicBool::new(false));
        let closing = Arc::clone(&closed);
        std::thread::spawn(move || accept(&listener, to, &config, &closing));
        Ok(Self { address, closed })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        super::relay::knock(self.address);
    }
}

fn accept(listener: &TcpListener, to: SocketAddr, config: &Arc<ServerConfig>, closed: &AtomicBool) {
    let open = Arc::new(AtomicUsize::new(0));
    for client in listener.incoming() {
        if closed.load(Ordering::SeqCst) {
            return;
        }
        let Ok(client) = client else {
            continue;
        };
        if open.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let (open, config) = (Arc::clone(&open), Arc::clone(config));
        std::thread::spawn(move || {
            // A connection that breaks has ended; there is nobody to tell.
            drop(lead(&client, to, config));
            drop(client.shutdown(Shutdown::Both));
            open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// One connection: the session is locked only while it computes and writes, never while it waits for bytes.
struct Session<'a> {
    tls: Mutex<ServerConnection>,
    client: &'a TcpStream,
}

impl Session<'_> {
    fn lock(&self) -> MutexGuard<'_, ServerConnection> {
        self.tls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes of the client; what they say in plain.
    fn hear(&self, mut bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut tls = self.lock();
        let mut said = Vec::new();
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes)?;
            let state = tls.process_new_packets();
            // An alert says to the client what is wrong.
            self.flush(&mut tls)?;
            state.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            match tls.reader().read_to_end(&mut said) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
        Ok(said)
    }

    fn say(&self, plain: &[u8]) -> io::Result<()> {
        let mut tls = self.lock();
        tls.writer().write_all(plain)?;
        self.flush(&mut tls)
    }

    fn end(&self) -> io::Result<()> {
        let mut tls = self.lock();
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

fn lead(client: &TcpStream, to: SocketAddr, config: Arc<ServerConfig>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let tls = ServerConnection::new(config).map_err(io::Error::other)?;
    let session = Session {
        tls: Mutex::new(tls),
        client,
    };
    let mut first = Vec::new();
    let due = clock::monotonic() + HANDSHAKE_MAX;
    while session.lock().is_handshaking() {
        let left = due.saturating_duration_since(clock::monotonic());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        let Some(bytes) = part(client)? else {
            return Ok(());
        };
        first.extend(session.hear(&bytes)?);
    }
    client.set_read_timeout(None)?;
    let server = TcpStream::connect(to)?;
    server.set_nodelay(true)?;
    (&server).write_all(&first)?;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let ended = asks(&session, &server);
            let how = if ended.is_ok() {
                Shutdown::Write
            } else {
                Shutdown::Both
            };
            // Already closed is as good as closed.
            drop(server.shutdown(how));
        });
        let ended = answers(&server, &session);
        drop(server.shutdown(Shutdown::Both));
        // Whoever still reads of the client learns that it is over.
        drop(client.shutdown(Shutdown::Both));
        ended
    })
}

/// What the client says, until it has said all.
fn asks(session: &Session<'_>, mut server: &TcpStream) -> io::Result<()> {
    while let Some(bytes) = part(session.client)? {
        let said = session.hear(&bytes)?;
        server.write_all(&said)?;
        if session
            .lock()
            .process_new_packets()
            .is_ok_and(|state| state.peer_has_closed())
        {
            return Ok(());
        }
    }
    Ok(())
}

/// What the server answers, until it ends.
fn answers(server: &TcpStream, session: &Session<'_>) -> io::Result<()> {
    while let Some(plain) = part(server)? {
        session.say(&plain)?;
    }
    session.end()
}

/// The next bytes; nothing at the end.
fn part(mut from: &TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; PART_BYTES];
    let read = from.read(&mut bytes)?;
    bytes.truncate(read);
    Ok((read > 0).then_some(bytes))
}
