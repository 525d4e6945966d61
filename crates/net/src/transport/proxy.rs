//! Proxies: which one a request uses, and how a tunnel is opened.
//!
//! Off unless configured, and never used for this machine. Proxies are contacted in plain HTTP. `https://`
//! targets are tunneled, so that the proxy sees only their names.

use super::connection::is_would_block;
use super::encode;
use super::fault::Fault;
use super::origin::Origin;
use conformant_base::clock;
use conformant_base::http::{Cause, percent_decode};
use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Longest response of a proxy.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    origin: Origin,
    /// The `Proxy-Authorization` header.
    authorization: Option<String>,
}

impl fmt::Debug for Proxy {
    /// Omits the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Proxy").field(&self.origin).finish()
    }
}

/// Why a proxy URL is invalid; completes "failed to use the proxy: …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    #[error("{0}: expected http://HOST:PORT")]
    NotAUrl(String),
    #[error("unsupported scheme {0}: expected http://HOST:PORT")]
    Scheme(String),
}

impl Proxy {
    /// Parses `http://HOST:PORT`, with optional `USER:PASSWORD@` before the host.
    pub fn parse(text: &str) -> Result<Self, ProxyError> {
        let mut url = url::Url::parse(text).map_err(|e| ProxyError::NotAUrl(e.to_string()))?;
        if url.scheme() != "http" {
            return Err(ProxyError::Scheme(url.scheme().to_owned()));
        }
        let (user, password) = (url.username(), url.password().unwrap_or_default());
        let pair = (percent_decode(user), percent_decode(password));
        let authorization = (!user.is_empty())
            .then(|| encode::basic(&pair.0, &pair.1))
            .transpose()
            .map_err(|e| ProxyError::NotAUrl(e.to_string()))?;
        // This succeeds for every URL with a host.
        let _ = url.set_password(None);
        let _ = url.set_username("");
        let origin = Origin::parse(url.as_str()).map_err(|e| ProxyError::NotAUrl(e.to_string()))?;
        Ok(Self {
            origin,
            authorization,
        })
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }

    /// Opens a tunnel to an origin on this socket.
    pub(super) fn tunnel(
        &self,
        socket: &mut TcpStream,
        origin: &Origin,
        deadline: Instant,
        interrupted: &AtomicBool,
    ) -> Result<(), Fault> {
        let failed = |why: String| {
            let detail = format!("the proxy {} on the way to {origin}: {why}", self.origin);
            Fault::new(Cause::Unreachable, detail)
        };
        let place = format!("{}:{}", origin.host(), origin.port());
        let mut asked = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n");
        if let Some(word) = &self.authorization {
            asked.push_str(&format!("Proxy-Authorization: {word}\r\n"));
        }
        asked.push_str("\r\n");
        socket
            .write_all(asked.as_bytes())
            .map_err(|e| failed(e.to_string()))?;
        let mut head = Vec::new();
        // Byte by byte: bytes after the head belong to the target.
        while !head.ends_with(b"\r\n\r\n") {
            if interrupted.load(Ordering::Relaxed) {
                return Err(Fault::new(
                    Cause::Interrupted,
                    "while the proxy opened a tunnel",
                ));
            }
            if clock::monotonic() >= deadline || head.len() >= ANSWER_BYTES_MAX {
                return Err(failed("no response within the deadline".into()));
            }
            let mut byte = [0];
            match socket.read(&mut byte) {
                Ok(0) => return Err(failed("the proxy closed the connection".into())),
                Ok(_) => head.push(byte[0]),
                Err(e) if is_would_block(&e) => {}
                Err(e) => return Err(failed(e.to_string())),
            }
        }
        let text = String::from_utf8_lossy(&head);
        let first = text.lines().next().unwrap_or_default();
        let status = first.split(' ').nth(1).unwrap_or_default();
        if status.len() == 3 && status.starts_with('2') {
            return Ok(());
        }
        Err(failed(format!(
            "the proxy responded {}",
            conformant_base::text::escape_line(&conformant_base::text::excerpt(first, 100))
        )))
    }
}

/// Proxies by scheme.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    /// For `http://` targets.
    pub http: Option<Arc<Proxy>>,
    /// For `https://` targets.
    pub https: Option<Arc<Proxy>>,
    /// Directly contacted hosts, as in `NO_PROXY`: `example.test`, `.example.test`, `host:8080`, `*`.
    pub except: Vec<String>,
}

impl Proxies {
    /// The proxy for an origin; none for this machine.
    pub fn to(&self, origin: &Origin) -> Option<&Arc<Proxy>> {
        let proxy = if origin.is_tls() {
            &self.https
        } else {
            &self.http
        };
        let direct =
            is_loopback(origin.host()) || self.except.iter().any(|e| covers(e.trim(), origin));
        proxy.as_ref().filter(|_| !direct)
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    address.is_ok_and(|a| a.is_loopback()) || host == "localhost" || host.ends_with(".localhost")
}

/// True if a `NO_PROXY` entry matches the origin: the host itself and all subdomains.
fn covers(entry: &str, origin: &Origin) -> bool {
    let (name, port) = match entry.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() && !name.contains(':') => {
            (name, port.parse::<u16>().ok())
        }
        Some(_) | None => (entry, None),
    };
    let name = name.trim_start_matches('*').trim_start_matches('.');
    let host = origin.host().trim_matches(['[', ']']);
    let below = host
        .to_ascii_lowercase()
        .strip_suffix(&name.to_ascii_lowercase())
        .is_some_and(|front| front.is_empty() || front.ends_with('.'));
    entry == "*" || !name.is_empty() && below && port.is_none_or(|port| port == origin.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(except: &[&str]) -> Proxies {
        let proxy = Arc::new(Proxy::parse("http://me:s%40y@proxy.test:3128").unwrap());
        Proxies {
            http: Some(Arc::clone(&proxy)),
            https: Some(proxy),
            except: except.iter().map(|e| (*e).to_owned()).collect(),
        }
    }

    #[test]
    fn a_proxy_url_may_have_credentials() {
        let with = Proxy::parse("http://me:s%40y@proxy.test:3128").unwrap();
        assert_eq!(with.origin().to_string(), "http://proxy.test:3128");
        assert_eq!(with.authorization(), Some("Basic bWU6c0B5"));
        assert!(!format!("{with:?}").contains("bWU6"));
        let without = Proxy::parse("http://proxy.test").unwrap();
        assert_eq!(without.authorization(), None);
        for wrong in ["proxy:3128", "https://proxy.test", "socks5://proxy.test"] {
            assert!(Proxy::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn this_machine_and_exceptions_are_reached_directly() {
        let direct = ["internal.test", ".lab.example", "other.example:8443"];
        for (url, through) in [
            ("https://chat.example", true),
            ("http://chat.example", true),
            ("http://127.0.0.1:4010", false),
            ("http://[::1]:4010", false),
            ("https://localhost", false),
            ("https://a.localhost:1", false),
            ("https://internal.test", false),
            ("https://x.internal.test", false),
            ("https://notinternal.test", true),
            ("https://a.lab.example", false),
            ("https://other.example:8443", false),
            ("https://other.example", true),
        ] {
            let origin = Origin::parse(url).unwrap();
            assert_eq!(proxies(&direct).to(&origin).is_some(), through, "{url}");
        }
        let origin = Origin::parse("https://chat.example").unwrap();
        assert!(proxies(&["*"]).to(&origin).is_none());
        assert!(Proxies::default().to(&origin).is_none());
    }
}
