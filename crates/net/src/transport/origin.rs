//! Where requests may go: base URLs from the configuration.
//!
//! Resolves and contacts nothing.

use std::fmt;
use std::sync::Arc;
use url::{Host, Url};

/// Longest URL.
const URL_BYTES: usize = 8 * 1024;

/// Why a URL is refused; completes "refused the URL: …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("it has {0} bytes, more than 8 KiB")]
    TooLong(usize),
    /// An unencoded character that no URL may contain: control, blank, backslash, non-ASCII.
    #[error("it contains {character} at byte {at}, which must be percent-encoded")]
    Character {
        /// Escaped, or as a code point.
        character: String,
        at: usize,
    },
    #[error("it is not an absolute URL ({0})")]
    NotAbsolute(String),
    #[error("its scheme is {0}, neither http nor https")]
    Scheme(String),
    #[error("it contains credentials, which are configured apart from the address")]
    Credentials,
    #[error("a base URL must not have a query or fragment")]
    NotABase,
}

/// Scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    tls: bool,
    host: String,
    port: u16,
    /// `host:port` of the `Host` header; without the default port.
    authority: String,
}

impl Origin {
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        Self::of(&parse(url)?)
    }

    fn of(url: &Url) -> Result<Self, UrlError> {
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => format!("[{address}]"),
            None => return Err(UrlError::NotAbsolute("no host".into())),
        };
        let port = url
            .port_or_known_default()
            .expect("http and https have a port of their own");
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.clone(),
        };
        Ok(Self {
            tls: url.scheme() == "https",
            host,
            port,
            authority,
        })
    }

    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// The host; an IPv6 address is in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, or the default of the scheme.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The value of the `Host` header.
    pub fn authority(&self) -> &str {
        &self.authority
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

/// An origin and the path prefix of a service: `http://127.0.0.1:4010/chat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    origin: Arc<Origin>,
    prefix: String,
}

impl BaseUrl {
    /// Parses a base URL; trailing slashes are ignored.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        let parsed = parse(url)?;
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(UrlError::NotABase);
        }
        Ok(Self {
            origin: Arc::new(Origin::of(&parsed)?),
            prefix: parsed.path().trim_end_matches('/').to_owned(),
        })
    }

    pub fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// The path before every request path; empty or `/…` without a trailing slash.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Appends a path to the prefix: `base.under("/chat")`.
    pub fn under(&self, path: &str) -> Result<Self, UrlError> {
        Self::parse(&self.url_of(path))
    }

    pub fn url_of(&self, target: &str) -> String {
        format!("{self}{target}")
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.prefix)
    }
}

/// Parses an absolute http or https URL without credentials. Characters that the parser would silently
/// drop or convert (tab, line break, backslash) are refused first.
fn parse(text: &str) -> Result<Url, UrlError> {
    if text.len() > URL_BYTES {
        return Err(UrlError::TooLong(text.len()));
    }
    let foreign = |c: &char| !c.is_ascii_graphic() || *c == '\\';
    if let Some((at, c)) = text.char_indices().find(|(_, c)| foreign(c)) {
        return Err(UrlError::Character {
            character: format!("U+{:04X}", u32::from(c)),
            at,
        });
    }
    let url = Url::parse(text).map_err(|e| {
        let is_relative = e == url::ParseError::RelativeUrlWithoutBase;
        let why = is_relative.then(|| "no scheme, such as http://".to_owned());
        UrlError::NotAbsolute(why.unwrap_or_else(|| e.to_string()))
    })?;
    // The parser reads `http:///x` and `http:x` as `http://x`.
    let behind = text.split_once(':').map_or("", |(_, behind)| behind);
    let is_special = matches!(url.scheme(), "http" | "https");
    if is_special && (!behind.starts_with("//") || behind.starts_with("///")) {
        return Err(UrlError::NotAbsolute("no host after //".to_owned()));
    }
    if !matches!(url.scheme(), "http" | "https") {
        return Err(UrlError::Scheme(url.scheme().to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlError::Credentials);
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_SCHEME: &str = "it is not an absolute URL (no scheme, such as http://)";
    const NO_HOST: &str = "it is not an absolute URL (no host after //)";
    const CREDENTIALS: &str =
        "it contains credentials, which are configured apart from the address";
    const NOT_A_BASE: &str = "a base URL must not have a query or fragment";

    fn character(character: &str, at: usize) -> String {
        format!("it contains {character} at byte {at}, which must be percent-encoded")
    }

    #[test]
    fn base_addresses_are_read_or_refused_with_a_reason() {
        for (text, expect) in [
            ("http://127.0.0.1:4010", "http://127.0.0.1:4010"),
            ("http://127.0.0.1:4010/", "http://127.0.0.1:4010"),
            ("http://h:80/chat//", "http://h/chat"),
            ("https://H.Example:443/a/../b", "https://h.example/b"),
            ("http://[::1]:8080/x", "http://[::1]:8080/x"),
            ("http://0x7f.1/", "http://127.0.0.1"),
            ("", NO_SCHEME),
            ("//h/x", NO_SCHEME),
            ("/v2", NO_SCHEME),
            ("http://", "it is not an absolute URL (empty host)"),
            ("http:///x", NO_HOST),
            ("http:x", NO_HOST),
            (
                "http://h:99999/",
                "it is not an absolute URL (invalid port number)",
            ),
            (
                "file:///etc/passwd",
                "its scheme is file, neither http nor https",
            ),
            (
                "javascript:x",
                "its scheme is javascript, neither http nor https",
            ),
            ("ftp://h/", "its scheme is ftp, neither http nor https"),
            ("http://u@h/", CREDENTIALS),
            ("http://u:p@h/", CREDENTIALS),
            ("http://h/?a=b", NOT_A_BASE),
            ("http://h/#x", NOT_A_BASE),
            ("http://h/\r\nX: y", &character("U+000D", 9)),
            ("http://h/\0", &character("U+0000", 9)),
            ("http://h/a b", &character("U+0020", 10)),
            ("http:\\\\h", &character("U+005C", 5)),
            ("http://ü/", &character("U+00FC", 7)),
        ] {
            let read = BaseUrl::parse(text).map_or_else(|e| e.to_string(), |b| b.to_string());
            assert_eq!(read, expect, "{text:?}");
        }
        let long = format!("http://h/{}", "a".repeat(URL_BYTES));
        assert_eq!(
            BaseUrl::parse(&long),
            Err(UrlError::TooLong(long.len())),
            "longest URL"
        );
    }

    #[test]
    fn bases_grow_by_a_path() {
        let all = BaseUrl::parse("http://127.0.0.1:4010/").expect("a base");
        let chat = all.under("/chat").expect("a base");
        assert_eq!(chat.prefix(), "/chat");
        assert_eq!(chat.url_of("/v2/x"), "http://127.0.0.1:4010/chat/v2/x");
        assert_eq!(chat.origin().authority(), "127.0.0.1:4010");
    }
}
