//! Serializes a request.
//!
//! Adds as little as HTTP/1.1 requires: `Host`, a length if there is or could be a body, and the user agent.
//! No `Accept-Encoding`: bodies are judged as the target wrote them.

use super::origin::BaseUrl;
use super::proxy::Proxy;
use conformant_base::http::Request;
use std::io::Write as _;

/// Bodies up to this size are sent in one write with the head.
pub(super) const INLINE_BODY: usize = 64 * 1024;

const USER_AGENT: &str = concat!("conformant/", env!("CARGO_PKG_VERSION"));

/// Writes the head and a small body over the buffer; returns the part of the body still to be sent. A
/// forwarding proxy gets the absolute URL.
///
/// The request must have passed [`encode::check`](super::encode::check). Its own
/// `Content-Length` and `Transfer-Encoding` are left out: the framing is decided here.
pub(super) fn render<'r>(
    out: &mut Vec<u8>,
    base: &BaseUrl,
    request: &'r Request,
    through: Option<&Proxy>,
) -> &'r [u8] {
    out.clear();
    let (scheme, authority) = match through {
        Some(_) => ("http://", base.origin().authority()),
        None => ("", ""),
    };
    for piece in [
        request.method.as_str(),
        " ",
        scheme,
        authority,
        base.prefix(),
        request.target.as_str(),
        " HTTP/1.1\r\n",
    ] {
        out.extend_from_slice(piece.as_bytes());
    }
    if request.headers.get("Host").is_none() {
        field(out, "Host", base.origin().authority());
    }
    if let Some(word) = through.and_then(Proxy::authorization) {
        field(out, "Proxy-Authorization", word);
    }
    if request.headers.get("User-Agent").is_none() {
        field(out, "User-Agent", USER_AGENT);
    }
    for (name, value) in request.headers.iter() {
        if !is_framing(name) {
            field(out, name, value);
        }
    }
    let needs_length = matches!(request.method.as_str(), "POST" | "PUT" | "PATCH");
    if needs_length || !request.body.is_empty() {
        write!(out, "Content-Length: {}\r\n", request.body.len())
            .expect("writing to a Vec succeeds");
    }
    out.extend_from_slice(b"\r\n");
    if request.body.len() > INLINE_BODY {
        return &request.body;
    }
    out.extend_from_slice(&request.body);
    &[]
}

fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    for piece in [name, ": ", value, "\r\n"] {
        out.extend_from_slice(piece.as_bytes());
    }
}

fn is_framing(name: &str) -> bool {
    name.eq_ignore_ascii_case("Content-Length") || name.eq_ignore_ascii_case("Transfer-Encoding")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_written_as_http_1_1() {
        let base = BaseUrl::parse("http://h:81/chat").expect("a base");
        let mut post = Request::new("POST", "/v2/x?a=b");
        post.headers.add("content-length", "999");
        post.headers.add("X-A", "1");
        post.body = b"Body=x".to_vec();
        let mut out = b"left over".to_vec();
        assert!(render(&mut out, &base, &post, None).is_empty());
        assert_eq!(
            String::from_utf8_lossy(&out),
            format!(
                "POST /chat/v2/x?a=b HTTP/1.1\r\nHost: h:81\r\nUser-Agent: {USER_AGENT}\r\n\
                 X-A: 1\r\nContent-Length: 6\r\n\r\nBody=x"
            )
        );

        let mut get = Request::new("GET", "/");
        get.headers.add("Host", "other");
        get.headers.add("User-Agent", "me");
        render(&mut out, &base, &get, None);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "GET /chat/ HTTP/1.1\r\nHost: other\r\nUser-Agent: me\r\n\r\n"
        );

        let mut large = Request::new("POST", "/");
        large.body = vec![b'x'; INLINE_BODY + 1];
        assert_eq!(render(&mut out, &base, &large, None).len(), INLINE_BODY + 1);
        assert!(out.ends_with(b"\r\n\r\n"));
    }

    #[test]
    fn a_forwarding_proxy_gets_the_absolute_url() {
        let base = BaseUrl::parse("http://chat.example:8080/chat").unwrap();
        let proxy = Proxy::parse("http://me:you@proxy.test:3128").unwrap();
        let mut out = Vec::new();
        render(&mut out, &base, &Request::new("GET", "/v2"), Some(&proxy));
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with(
            "GET http://chat.example:8080/chat/v2 HTTP/1.1\r\nHost: chat.example:8080\r\n"
        ));
        assert!(text.contains("Proxy-Authorization: Basic bWU6eW91\r\n"));
    }
}
