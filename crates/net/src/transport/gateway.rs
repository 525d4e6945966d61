//! A reverse proxy: forwards each request to the target named by its path, and the response unchanged.
//!
//! - Contacts the given targets only, follows no redirect and keeps no cookie.
//! - Rewrites no body, so links in responses bypass it.
//! - An observer receives each exchange and may block; the client waits for it.

use super::client::Client;
use super::fault::Fault;
use super::origin::BaseUrl;
use super::server::{
    Handler, HttpResponse, ListenError, RunningServer, ServerSettings, Whole, bare, line,
};
use conformant_base::clock::{self, Timestamp};
use conformant_base::http::{Headers, Request, Response, percent_decode_bytes};
use conformant_base::parallel::lock;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Headers of a single connection (RFC 9110, 7.6.1), and those that are generated again.
const HOP_BY_HOP: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// A forwarded request and its result.
#[derive(Debug)]
pub struct Forwarded {
    pub origin: String,
    /// As sent, with the base path.
    pub request: Request,
    pub answer: Result<Response, Fault>,
    /// Time of sending.
    pub began: Timestamp,
    /// Time of the complete response.
    pub ended: Timestamp,
}

/// Receives each exchange.
type Witness = dyn Fn(Forwarded) + Send + Sync;

/// Requests that were answered with 404 here, because their path names no target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misdirected {
    pub count: usize,
    /// Method and path of the first one.
    pub first: String,
    /// What their path must have.
    pub why: String,
}

/// A running gateway; closes its socket and every connection when dropped.
#[derive(Debug)]
pub struct Gateway {
    socket: RunningServer,
    misdirected: Arc<Mutex<Option<Misdirected>>>,
}

impl Gateway {
    /// Starts to listen. The first path segment names a target; the rest is appended to its base URL.
    pub fn start(
        settings: &ServerSettings,
        targets: BTreeMap<String, BaseUrl>,
        client: Client,
        witness: impl Fn(Forwarded) + Send + Sync + 'static,
    ) -> Result<Self, ListenError> {
        let misdirected = Arc::default();
        let front = Arc::new(Front {
            targets,
            client,
            witness: Box::new(witness),
            misdirected: Arc::clone(&misdirected),
        });
        let (socket, ()) =
            RunningServer::start(settings, "gateway", |_| (ProxyHandler { front }, ()))?;
        Ok(Self {
            socket,
            misdirected,
        })
    }

    /// The requests so far whose path names no target.
    pub fn misdirected(&self) -> Option<Misdirected> {
        lock(&self.misdirected).clone()
    }

    pub fn address(&self) -> SocketAddr {
        self.socket.address()
    }

    /// Ends once the clients have their responses, and no later than this.
    pub fn finish(self, within: Duration) {
        self.socket.finish(within);
    }
}

struct ProxyHandler {
    front: Arc<Front>,
}

struct Front {
    targets: BTreeMap<String, BaseUrl>,
    client: Client,
    witness: Box<Witness>,
    misdirected: Arc<Mutex<Option<Misdirected>>>,
}

impl Handler for ProxyHandler {
    fn route(&self, path: &str) -> Option<String> {
        let name = path.strip_prefix('/')?.split('/').next()?;
        self.front
            .targets
            .contains_key(name)
            .then(|| name.to_owned())
    }

    fn unrouted(&self, method: &str, path: &str) -> HttpResponse {
        let names = self.front.targets.keys().map(String::as_str);
        let why = format!(
            "the first path segment must be a service ({})",
            names.collect::<Vec<_>>().join(", ")
        );
        let mut misdirected = lock(&self.front.misdirected);
        let seen = misdirected.get_or_insert_with(|| Misdirected {
            count: 0,
            first: format!("{method} {path}"),
            why: why.clone(),
        });
        seen.count += 1;
        line(StatusCode::NOT_FOUND, why)
    }

    async fn answer(&self, route: String, request: Request) -> HttpResponse {
        let front = Arc::clone(&self.front);
        let passed = tokio::task::spawn_blocking(move || front.pass(&route, request)).await;
        passed.unwrap_or_else(|_| bare(StatusCode::INTERNAL_SERVER_ERROR))
    }
}

impl Front {
    /// Forwards a request and returns its response.
    fn pass(&self, name: &str, mut request: Request) -> HttpResponse {
        let base = &self.targets[name];
        let Some(target) = within_base(&request.target[name.len() + 1..]) else {
            return bare(StatusCode::BAD_REQUEST);
        };
        request.target = target;
        request.headers = end_to_end(&request.headers);
        // A compressed response could not be judged.
        request.headers.remove("Accept-Encoding");
        let began = clock::now();
        let within = self.client.limits().timeout;
        let answer = self.client.send(base, &request, within);
        let ended = clock::now();
        let answered = match &answer {
            // No request asks for another protocol, and none is supported.
            Ok(response) if response.status == 101 => bare(StatusCode::BAD_GATEWAY),
            Ok(response) => passed_back(response),
            Err(fault) => unanswered(fault),
        };
        request.target.insert_str(0, base.prefix());
        (self.witness)(Forwarded {
            origin: base.origin().to_string(),
            request,
            answer,
            began,
            ended,
        });
        answered
    }
}

/// The target below a base URL without `.` and `..`, encoded or not; `None` if it leaves the base or if
/// servers differ about where a segment ends.
fn within_base(target: &str) -> Option<String> {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let mut segments: Vec<&str> = Vec::new();
    let mut ends_open = true;
    for segment in path.split('/').skip(1) {
        let decoded = percent_decode_bytes(segment);
        ends_open = matches!(&decoded[..], b"" | b"." | b"..");
        match &decoded[..] {
            b"." => {}
            b".." => drop(segments.pop()?),
            decoded => {
                let parts = || decoded.split(|b| matches!(b, b'/' | b'\\'));
                let is_plain = parts().all(|part| !matches!(part, b"." | b".."));
                if !is_plain || decoded.contains(&b'\\') || decoded.contains(&0) {
                    return None;
                }
                segments.push(segment);
            }
        }
    }
    let mut within = segments
        .iter()
        .fold(String::new(), |path, one| path + "/" + one);
    if within.is_empty() || (ends_open && !within.ends_with('/')) {
        within.push('/');
    }
    if let Some(query) = query {
        within.push('?');
        within.push_str(query);
    }
    Some(within)
}

/// Headers that are not specific to one connection.
fn end_to_end(headers: &Headers) -> Headers {
    let named: Vec<String> = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("Connection"))
        .flat_map(|(_, value)| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    headers
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .filter(|(name, _)| {
            let name = name.to_ascii_lowercase();
            !HOP_BY_HOP.contains(&name.as_str()) && !named.contains(&name)
        })
        .collect()
}

fn passed_back(response: &Response) -> HttpResponse {
    let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut answered = hyper::Response::new(Whole::new(Bytes::copy_from_slice(&response.body)));
    *answered.status_mut() = status;
    for (name, value) in end_to_end(&response.headers).iter() {
        let field = HeaderName::from_bytes(name.as_bytes()).ok();
        // Values are kept as one character per byte.
        let bytes: Vec<u8> = value
            .chars()
            .map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?'))
            .collect();
        if let (Some(name), Ok(value)) = (field, HeaderValue::from_bytes(&bytes)) {
            answered.headers_mut().append(name, value);
        }
    }
    answered
}

/// 502 with the reason in one line.
fn unanswered(fault: &Fault) -> HttpResponse {
    let detail = conformant_base::text::escape_line(&fault.detail);
    line(
        StatusCode::BAD_GATEWAY,
        format!("{}: {detail}", fault.cause),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::hostile::listening;
    use crate::transport::{Limits, Listener};

    const AMPLE: Duration = Duration::from_secs(5);

    #[test]
    fn what_is_meant_for_one_connection_is_not_passed_on() {
        let headers: Headers = [
            ("Host", "h"),
            ("Connection", "close, X-Hop"),
            ("X-Hop", "1"),
            ("Transfer-Encoding", "chunked"),
            ("Set-Cookie", "a=1"),
            ("Set-Cookie", "b=2"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into_iter()
        .collect();
        let kept = end_to_end(&headers);
        assert_eq!(
            kept.iter().collect::<Vec<_>>(),
            [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
        );
    }

    #[test]
    fn a_path_is_kept_within_its_base_address() {
        for (target, expected) in [
            ("", Some("/")),
            ("/", Some("/")),
            ("/v1/Flows?a=../b", Some("/v1/Flows?a=../b")),
            ("/v1/./Flows/", Some("/v1/Flows/")),
            ("/v1/x/../Flows", Some("/v1/Flows")),
            ("/v1/x/%2e%2E/Flows", Some("/v1/Flows")),
            ("/v1/x/..", Some("/v1/")),
            ("/v1//Flows", Some("/v1//Flows")),
            ("/a%2Fb", Some("/a%2Fb")),
            ("?x=1", Some("/?x=1")),
            ("/..", None),
            ("/../chat/v1", None),
            ("/v1/../../chat", None),
            ("/%2e%2e/chat", None),
            ("/..%2fchat", None),
            ("/v1/x%2f..%2f..%2f..%2fchat", None),
            ("/..%5cchat", None),
            ("/x%00", None),
        ] {
            assert_eq!(within_base(target).as_deref(), expected, "{target}");
        }
    }

    /// A target that responds to one request with these bytes, or never.
    fn answering(bytes: &'static [u8]) -> (BaseUrl, std::thread::JoinHandle<()>) {
        use std::io::{Read as _, Write as _};
        let (socket, base) = listening();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = socket.accept().expect("a caller");
            let mut head = [0; 1024];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(bytes);
            // Waits until the caller gives up.
            let _ = stream.read(&mut head);
        });
        (base.under("/base").expect("a base"), thread)
    }

    #[test]
    fn other_protocols_silence_and_ways_out_are_answered_here() {
        let cases: [(&'static [u8], &str, u16); 3] = [
            (
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
                "/flow/x",
                502,
            ),
            (b"", "/flow/x", 502),
            (
                b"HTTP/1.1 204 No Content\r\n\r\n",
                "/flow/x/%2e%2e/%2e%2e/y",
                400,
            ),
        ];
        for (bytes, path, expected) in cases {
            let (base, thread) = answering(bytes);
            let origin = base.origin().to_string();
            let limits = Limits {
                timeout: Duration::from_millis(300),
                ..Limits::default()
            };
            let targets = [("flow".to_owned(), base)].into();
            let gateway = Gateway::start(
                &ServerSettings::default(),
                targets,
                Client::new(limits),
                |_| {},
            )
            .expect("a port");
            let front = BaseUrl::parse(&format!("http://{}", gateway.address())).expect("a base");
            let client = Client::new(Limits::default());
            let answer = client.send(&front, &Request::new("GET", path), AMPLE);
            assert_eq!(answer.expect("an answer").status, expected, "{path}");
            drop(gateway);
            // The unused target still waits.
            drop(std::net::TcpStream::connect(&origin["http://".len()..]));
            thread.join().expect("no panic");
        }
    }

    #[test]
    fn a_response_is_delivered_although_the_gateway_ends_once_it_is_judged() {
        for _ in 0..20 {
            let (base, thread) = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            let (sender, judged) = std::sync::mpsc::channel();
            let gateway = Gateway::start(
                &ServerSettings::default(),
                [("flow".to_owned(), base)].into(),
                Client::new(Limits::default()),
                move |_| sender.send(()).expect("the test waits"),
            )
            .expect("a port");
            let front = BaseUrl::parse(&format!("http://{}", gateway.address())).expect("a base");
            let asking = std::thread::spawn(move || {
                Client::new(Limits::default()).send(&front, &Request::new("GET", "/flow/x"), AMPLE)
            });
            judged.recv().expect("one exchange");
            gateway.finish(AMPLE);
            let answer = asking.join().expect("no panic").expect("an answer");
            assert_eq!(&answer.body[..], b"ok");
            thread.join().expect("no panic");
        }
    }

    #[test]
    fn requests_go_to_the_target_that_the_path_names_and_nowhere_else() {
        let target = Listener::start(&ServerSettings::default()).expect("a port");
        let url = target.open("x", Vec::new());
        let (origin, path) = url.split_at("http://".len() + target.address().to_string().len());
        let base = BaseUrl::parse(origin).expect("a base");
        let seen: Arc<Mutex<Vec<Forwarded>>> = Arc::default();
        let witness = Arc::clone(&seen);
        let gateway = Gateway::start(
            &ServerSettings::default(),
            [("flow".to_owned(), base)].into(),
            Client::new(Limits::default()),
            move |passed| witness.lock().expect("no panic").push(passed),
        )
        .expect("a port");
        let base = BaseUrl::parse(&format!("http://{}", gateway.address())).expect("a base");
        let client = Client::new(Limits::default());
        let ask = |path: String| {
            let mut request = Request::new("POST", path);
            request.headers.set("Accept-Encoding", "gzip");
            request.body = b"a=1".to_vec();
            client
                .send(&base, &request, AMPLE)
                .expect("an answer")
                .status
        };
        assert_eq!(ask(format!("/flow{path}?q=1")), 200);
        assert_eq!(ask("/chat/x".to_owned()), 404);
        assert_eq!(ask(format!("/{origin}/x")), 404);
        let misdirected = gateway.misdirected().expect("two were answered here");
        assert_eq!(
            (misdirected.count, misdirected.first.as_str()),
            (2, "POST /chat/x")
        );
        let expected = "the first path segment must be a service (flow)";
        assert_eq!(misdirected.why, expected);
        let callbacks = target.sink().callbacks("x");
        assert_eq!(callbacks.len(), 1);
        let came = &callbacks[0].request;
        assert_eq!(
            (came.target.as_str(), &came.body[..]),
            ("/?q=1", &b"a=1"[..])
        );
        assert_eq!(came.headers.get("Accept-Encoding"), None);
        let host = target.address().to_string();
        assert_eq!(came.headers.get("Host"), Some(host.as_str()));
        let seen = seen.lock().expect("no panic");
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].request.target, format!("{path}?q=1"));
    }
}
