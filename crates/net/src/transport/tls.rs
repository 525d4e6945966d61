//! TLS for `https://` targets: `rustls` over a socket with short blocking slices.
//!
//! Checks cannot be disabled: a certificate must be issued by an authority of the system or of the
//! configuration.

use super::connect_settings::Pem;
use super::connection::{Terms, is_would_block};
use super::fault::Fault;
use super::origin::Origin;
use conformant_base::clock;
use conformant_base::http::Cause;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
pub(super) struct Stream {
    session: ClientConnection,
    socket: TcpStream,
}

impl Stream {
    /// Performs the handshake; the socket already has its timeouts.
    pub(super) fn open(
        origin: &Origin,
        socket: TcpStream,
        terms: &Terms<'_>,
    ) -> Result<Self, Fault> {
        let tls = |why: String| Fault::new(Cause::Tls, format!("{origin}: {why}"));
        let host = origin.host().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|e| tls(e.to_string()))?;
        let session = ClientConnection::new(terms.way.trust.config(), name)
            .map_err(|e| tls(e.to_string()))?;
        let mut stream = Self { session, socket };
        while stream.session.is_handshaking() {
            if terms.interrupted.load(Ordering::Relaxed) {
                return Err(Fault::new(Cause::Interrupted, "during the TLS handshake"));
            }
            if clock::monotonic() >= terms.deadline {
                return Err(tls("no handshake within the deadline".into()));
            }
            match stream.session.complete_io(&mut stream.socket) {
                Ok(_) => {}
                Err(e) if is_would_block(&e) => {}
                Err(e) => return Err(tls(format!("handshake: {e}{}", help(&e)))),
            }
        }
        Ok(stream)
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Reads plain bytes. An end without close notification is an error: it may be a truncation.
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

    /// Encrypts some of the bytes and sends as much as the socket accepts.
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

    /// True while encrypted bytes are buffered.
    pub(super) fn holds_back(&self) -> bool {
        self.session.wants_write()
    }
}

/// Advice for a failed handshake.
fn help(error: &io::Error) -> &'static str {
    let cause = error
        .get_ref()
        .and_then(|e| e.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "; set its authority with `tls: { ca: FILE }` or SSL_CERT_FILE"
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(other)))
            if other.to_string().contains("CaUsedAsEndEntity") =>
        {
            "; the server shows the certificate of an authority as its own: let that authority sign one for the server \
             (without `CA:TRUE`), and set `tls: { ca: FILE }` to the authority's"
        }
        Some(rustls::Error::AlertReceived(rustls::AlertDescription::CertificateRequired)) => {
            "; set one with `tls: { client_certificate: FILE, client_key: FILE }`"
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            "; the server does not speak TLS at this port: use http:// or another port"
        }
        _ => "",
    }
}

/// Why certificates or a key cannot be used; completes "failed to use the certificates: …".
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("{0}")]
    Certificates(#[source] pem::Error),
    #[error("no certificate in PEM format found")]
    NoCertificate,
    /// A certificate that cannot be an authority.
    #[error("{0}")]
    Authority(#[source] rustls::Error),
    #[error("the key: {0}")]
    Key(#[source] pem::Error),
    /// The key of another certificate.
    #[error("the key and its certificate: {0}")]
    Pair(#[source] rustls::Error),
}

/// Trusted authorities, from the system and the configuration, and the client certificate.
#[derive(Debug, Default)]
pub(super) struct Trust {
    named: Vec<CertificateDer<'static>>,
    shown: Option<Arc<SingleCertAndKey>>,
    /// Created for the first encrypted connection: most runs need none.
    config: OnceLock<Arc<ClientConfig>>,
}

fn ring() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificates of a PEM file, at least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let found = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(TrustError::Certificates)?;
    if found.is_empty() {
        return Err(TrustError::NoCertificate);
    }
    Ok(found)
}

impl Trust {
    /// Parses certificates and key.
    pub(super) fn with(pem: &Pem) -> Result<Self, TrustError> {
        let named = match &pem.ca {
            Some(ca) => certificates(ca)?,
            None => Vec::new(),
        };
        let mut check = RootCertStore::empty();
        for certificate in &named {
            check
                .add(certificate.clone())
                .map_err(TrustError::Authority)?;
        }
        let shown = match &pem.client {
            Some((chain, key)) => Some(client_identity(chain, key)?),
            None => None,
        };
        Ok(Self {
            named,
            shown,
            config: OnceLock::new(),
        })
    }

    /// ring, HTTP/1.1 only. `SSL_CERT_FILE` replaces the system's authorities.
    fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(self.config.get_or_init(|| {
            let mut roots = RootCertStore::empty();
            // An unreadable authority is reported by the handshake that needs it.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots.add_parsable_certificates(self.named.iter().cloned());
            let builder = ClientConfig::builder_with_provider(ring())
                .with_safe_default_protocol_versions()
                .expect("ring supports the default protocol versions")
                .with_root_certificates(roots);
            let mut config = match &self.shown {
                Some(shown) => builder.with_client_cert_resolver(Arc::clone(shown) as _),
                None => builder.with_no_client_auth(),
            };
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Arc::new(config)
        }))
    }
}

/// The client certificate, if the key belongs to it.
fn client_identity(chain: &[u8], key: &[u8]) -> Result<Arc<SingleCertAndKey>, TrustError> {
    let key = PrivateKeyDer::from_pem_slice(key).map_err(TrustError::Key)?;
    let certified =
        CertifiedKey::from_der(certificates(chain)?, key, &ring()).map_err(TrustError::Pair)?;
    Ok(Arc::new(SingleCertAndKey::from(certified)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Identity;
    use crate::transport::hostile::listening;
    use crate::transport::{BaseUrl, Client, ConnectSettings, Limits, Proxies};
    use conformant_base::http::Request;
    use rustls::server::WebPkiClientVerifier;
    use rustls::{ServerConfig, ServerConnection, StreamOwned};
    use std::sync::LazyLock;
    use std::thread::JoinHandle;
    use std::time::Duration;

    /// Self-signed for 127.0.0.1.
    static IDENTITY: LazyLock<Identity> =
        LazyLock::new(|| Identity::generate(None).expect("a certificate"));

    /// Sends one response per connection after that many bytes; returns the received bytes.
    fn target(answers: Vec<(usize, Vec<u8>)>) -> (BaseUrl, JoinHandle<Vec<u8>>) {
        target_that(answers, false)
    }

    /// The same; may require a client certificate.
    fn target_that(
        answers: Vec<(usize, Vec<u8>)>,
        insists: bool,
    ) -> (BaseUrl, JoinHandle<Vec<u8>>) {
        target_with(&IDENTITY, answers, insists)
    }

    /// The same with another certificate.
    fn target_with(
        identity: &Identity,
        answers: Vec<(usize, Vec<u8>)>,
        insists: bool,
    ) -> (BaseUrl, JoinHandle<Vec<u8>>) {
        let certificate =
            CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("a key");
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).expect("a root");
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), ring());
        let verifier = if insists {
            verifier.build().expect("a verifier")
        } else {
            WebPkiClientVerifier::no_client_auth()
        };
        let config = ServerConfig::builder_with_provider(ring())
            .with_safe_default_protocol_versions()
            .and_then(|c| {
                c.with_client_cert_verifier(verifier)
                    .with_single_cert(vec![certificate], key)
            })
            .expect("a server");
        let config = Arc::new(config);
        let (listener, base) = listening();
        let base = format!("https://{}", base.origin().authority());
        let thread = std::thread::spawn(move || {
            let mut received = Vec::new();
            for (enough, answer) in answers {
                let (socket, _) = listener.accept().expect("a client");
                let session = ServerConnection::new(Arc::clone(&config)).expect("a session");
                let mut stream = StreamOwned::new(session, socket);
                let mut bytes = [0; 4096];
                // Clients that do not trust the certificate leave during the handshake.
                let Ok(read) = stream.read(&mut bytes) else {
                    continue;
                };
                received.extend_from_slice(&bytes[..read]);
                while received.len() < enough {
                    let read = stream.read(&mut bytes).expect("a client");
                    received.extend_from_slice(&bytes[..read]);
                }
                stream.write_all(&answer).expect("a client");
                while stream.read(&mut bytes).is_ok_and(|read| read > 0) {}
            }
            received
        });
        (BaseUrl::parse(&base).expect("a base"), thread)
    }

    fn trusting() -> Pem {
        Pem {
            ca: Some(IDENTITY.certificate.clone().into()),
            client: None,
        }
    }

    fn client(pem: &Pem) -> Client {
        let way = ConnectSettings::new(pem, Proxies::default()).expect("certificates");
        Client::new(Limits::default()).otherwise(Arc::new(way))
    }

    const AMPLE: Duration = Duration::from_secs(5);

    #[test]
    fn exchanges_are_encrypted_and_certificates_checked() {
        let body = "x".repeat(100_000);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{body}");
        let (base, thread) = target(vec![(1, answer.into_bytes()), (1, vec![])]);
        let client = client(&trusting());
        let request = Request::new("GET", "/secret");
        let response = client.send(&base, &request, AMPLE).expect("an answer");
        assert_eq!(response.body, body.as_bytes());
        drop(client);

        let stranger = Client::new(Limits::default());
        let fault = stranger
            .send(&base, &request, AMPLE)
            .expect_err("not trusted");
        assert_eq!(fault.cause, Cause::Tls);
        assert!(fault.detail.contains("UnknownIssuer"), "{fault}");
        assert!(fault.detail.contains("SSL_CERT_FILE"), "{fault}");
        let received = thread.join().expect("no panic");
        assert!(received.starts_with(b"GET /secret HTTP/1.1\r\n"));
    }

    #[test]
    fn the_certificate_of_an_authority_as_that_of_a_server_is_named() {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = Identity {
            certificate: params.self_signed(&key).expect("a certificate").pem(),
            key: key.serialize_pem(),
        };
        let (base, thread) = target_with(&authority, vec![(1, vec![])], false);
        let client = client(&Pem {
            ca: Some(authority.certificate.into()),
            client: None,
        });
        let fault = client.send(&base, &Request::new("GET", "/"), AMPLE);
        let fault = fault.expect_err("no certificate of a server");
        assert_eq!(fault.cause, Cause::Tls);
        let advice = "the server shows the certificate of an authority as its own";
        assert!(fault.detail.contains(advice), "{fault}");
        drop(client);
        thread.join().expect("no panic");
    }

    #[test]
    fn large_uploads_are_encrypted_without_a_dead_lock() {
        let refusal = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
        let size = 8 << 20;
        let thanks = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";
        let (base, thread) = target(vec![(1, refusal.to_vec()), (size, thanks.to_vec())]);
        let client = client(&trusting());
        let mut request = Request::new("POST", "/");
        request.body = vec![b'x'; size];
        let response = client.send(&base, &request, AMPLE).expect("an answer");
        assert_eq!(response.status, 413);
        let response = client.send(&base, &request, AMPLE).expect("an answer");
        assert_eq!(response.status, 201);
        drop(client);
        assert!(thread.join().expect("no panic").len() >= size);
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        for pem in ["", "nonsense", &IDENTITY.key] {
            let ca = Some(pem.into());
            let error = Trust::with(&Pem { ca, client: None }).expect_err("no root");
            assert_eq!(error.to_string(), "no certificate in PEM format found");
            let client = Some((IDENTITY.certificate.clone().into(), pem.into()));
            assert_eq!(
                Trust::with(&Pem { ca: None, client }).is_err(),
                pem != IDENTITY.key,
                "{pem}"
            );
        }
    }

    #[test]
    fn a_required_client_certificate_is_sent() {
        let thanks = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let (base, thread) = target_that(vec![(1, vec![]), (1, thanks.to_vec())], true);
        let request = Request::new("GET", "/");
        let fault = client(&trusting())
            .send(&base, &request, AMPLE)
            .expect_err("nothing was shown");
        assert!(
            matches!(
                fault.cause,
                Cause::Tls | Cause::Reset | Cause::EmptyResponse | Cause::Truncated
            ),
            "{fault}"
        );
        let shown = Pem {
            client: Some((
                IDENTITY.certificate.clone().into(),
                IDENTITY.key.clone().into(),
            )),
            ..trusting()
        };
        let client = client(&shown);
        let answer = client.send(&base, &request, AMPLE).expect("an answer");
        assert_eq!(answer.status, 200);
        drop(client);
        thread.join().expect("no panic");
    }
}
