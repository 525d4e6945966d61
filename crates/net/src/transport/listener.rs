//! The callback listener: a server for requests from the target.
//!
//! Addresses contain an unguessable token. A [`Sink`] receives the requests and plans the responses.

use super::server::{Handler, HttpResponse, ListenError, RunningServer, ServerSettings, bare};
use super::sink::{Reply, Sink};
use conformant_base::clock;
use conformant_base::http::Request;
use hyper::StatusCode;
use std::net::SocketAddr;
use std::sync::Arc;

/// A running callback listener; closes its socket and every connection when dropped.
#[derive(Debug)]
pub struct Listener {
    socket: RunningServer,
    sink: Arc<Sink>,
}

impl Listener {
    /// Starts to listen on a separate thread.
    pub fn start(settings: &ServerSettings) -> Result<Self, ListenError> {
        let token = format!("{:032x}", rand::random::<u128>());
        let (socket, sink) = RunningServer::start(settings, "callbacks", |address| {
            let base = match &settings.public_url {
                Some(url) => url.to_string(),
                None => format!("http://{address}"),
            };
            let sink = Arc::new(Sink::new(format!("{base}/{token}")));
            let callbacks = Callbacks {
                marker: format!("/{token}/"),
                sink: Arc::clone(&sink),
            };
            (callbacks, sink)
        })?;
        Ok(Self { socket, sink })
    }

    pub fn address(&self) -> SocketAddr {
        self.socket.address()
    }

    /// Received callbacks and planned responses.
    pub fn sink(&self) -> &Arc<Sink> {
        &self.sink
    }

    /// Registers a callback address and returns its URL for the target.
    pub fn open(&self, name: &str, plan: Vec<Reply>) -> String {
        self.sink.open(name, plan)
    }
}

/// Records callbacks and responds as planned.
struct Callbacks {
    /// `/TOKEN/`; a proxy may put a prefix before it.
    marker: String,
    sink: Arc<Sink>,
}

impl Handler for Callbacks {
    /// The name of the callback address, if the path has our token.
    fn route(&self, path: &str) -> Option<String> {
        let (_, segment) = path.split_once(&self.marker)?;
        Sink::name_of_segment(segment)
    }

    async fn answer(&self, route: String, mut request: Request) -> HttpResponse {
        // The path contains the token.
        request.target = match request.query() {
            "" => "/".to_owned(),
            query => format!("/?{query}"),
        };
        let began = clock::monotonic();
        let reply = self.sink.receive(&route, request, clock::now());
        tokio::time::sleep(reply.after).await;
        self.sink
            .note_response_time(&route, reply.after, began.elapsed());
        let status = StatusCode::from_u16(reply.status);
        bare(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{BaseUrl, Client, Limits};
    use conformant_base::http::Cause;
    use std::io::{Read as _, Write as _};
    use std::time::Duration;

    const AMPLE: Duration = Duration::from_secs(5);

    fn listener() -> Listener {
        with(&ServerSettings::default())
    }

    fn with(settings: &ServerSettings) -> Listener {
        Listener::start(settings).expect("a free port")
    }

    /// The path of an address, without its first slash.
    fn path_of(url: &str) -> &str {
        url.splitn(4, '/').nth(3).expect("a path")
    }

    /// The origin of an address, and its path with the query.
    fn parted(url: &str) -> (BaseUrl, String) {
        let (root, _) = url.split_at(url.len() - path_of(url).len() - 1);
        let root_url = BaseUrl::parse(root).expect("a base");
        (root_url, url[root.len()..].to_owned())
    }

    /// Posts a body; returns the status or the cause.
    fn post(client: &Client, url: &str, body: &[u8]) -> String {
        let (root, target) = parted(url);
        let mut request = Request::new("POST", target);
        request.headers.add("Content-Type", "application/json");
        request.body = body.to_vec();
        match client.send(&root, &request, AMPLE) {
            Ok(response) => response.status.to_string(),
            Err(fault) => fault.cause.to_string(),
        }
    }

    /// Sends raw bytes and returns the status of the response.
    fn raw(address: SocketAddr, bytes: &[u8]) -> String {
        let mut socket = std::net::TcpStream::connect(address).expect("a listener");
        socket
            .set_read_timeout(Some(AMPLE))
            .expect("a socket option");
        // The listener may close before it has read everything.
        drop(socket.write_all(bytes));
        let mut answer = Vec::new();
        drop(socket.read_to_end(&mut answer));
        let answer = String::from_utf8_lossy(&answer);
        answer.split(' ').nth(1).unwrap_or("closed").to_owned()
    }

    #[test]
    fn callbacks_are_recorded_and_answered_by_plan() {
        let listener = listener();
        let url = listener.open("chat/a b", vec![Reply::status(503), Reply::status(204)]);
        let client = Client::new(Limits::default());
        let statuses = [1, 2, 3].map(|_| post(&client, &format!("{url}?x=%20y"), b"{}"));
        assert_eq!(statuses, ["503", "204", "204"]);
        assert_eq!(listener.sink().wait("chat/a b", 3, AMPLE), 3);
        let first = &listener.sink().snapshot()[0];
        assert_eq!(first.request.method, "POST");
        assert_eq!(first.request.query_pairs(), [("x".into(), " y".into())]);
        assert_eq!(
            first.request.headers.get("Content-Type"),
            Some("application/json")
        );
        assert_eq!(
            (first.request.body.as_slice(), first.late),
            (&b"{}"[..], false)
        );
    }

    #[test]
    fn tunnels_traces_and_other_protocols_are_refused() {
        let listener = listener();
        let url = listener.open("a", Vec::new());
        let path = path_of(&url).to_owned();
        for head in [
            format!("CONNECT {} HTTP/1.1\r\n", listener.address()),
            format!("TRACE /{path} HTTP/1.1\r\n"),
            format!("POST /{path} HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"),
        ] {
            let head = format!("{head}Host: h\r\n\r\n");
            let status = raw(listener.address(), head.as_bytes());
            assert_eq!(status, "501", "{head}");
        }
        assert_eq!(listener.sink().snapshot().len(), 0);
    }

    #[test]
    fn answers_are_held_back_for_real() {
        let listener = listener();
        let slow = Reply {
            status: 200,
            after: Duration::from_secs(60),
        };
        let url = listener.open("slow", vec![slow]);
        let base = BaseUrl::parse(&url).expect("a base");
        let client = Client::new(Limits::default());
        let request = Request::new("POST", "/");
        // The client appends a slash to the URL, which makes it another address.
        let response = client.send(&base, &request, AMPLE).expect("an answer");
        assert_eq!(response.status, 404);
        let (root, target) = parted(&url);
        let within = Duration::from_millis(100);
        let fault = client
            .send(&root, &Request::new("POST", target), within)
            .expect_err("held back");
        assert_eq!(fault.cause, Cause::FirstByteTimeout);
        assert_eq!(listener.sink().snapshot().len(), 1, "received nevertheless");
    }

    #[test]
    fn two_thousand_at_once_are_all_recorded_in_one_order() {
        let listener = listener();
        let url = listener.open("burst", vec![]);
        std::thread::scope(|scope| {
            for worker in 0..20 {
                let url = &url;
                scope.spawn(move || {
                    let client = Client::new(Limits::default());
                    for event in 0..100 {
                        let body = format!("{worker}/{event}");
                        assert_eq!(post(&client, url, body.as_bytes()), "200");
                    }
                });
            }
        });
        let callbacks = listener.sink().snapshot();
        assert_eq!((callbacks.len(), listener.sink().dropped()), (2_000, 0));
        assert!(callbacks.iter().enumerate().all(|(i, c)| c.order == i));
        let mut bodies: Vec<_> = callbacks.iter().map(|c| c.request.body.clone()).collect();
        bodies.sort();
        bodies.dedup();
        assert_eq!(bodies.len(), 2_000, "none twice, none mixed up");
    }

    #[test]
    fn idle_and_slow_senders_do_not_keep_real_ones_out() {
        let listener = with(&ServerSettings {
            connections: 16,
            ..ServerSettings::default()
        });
        let url = listener.open("real", vec![]);
        let idle: Vec<_> = (0..60)
            .map(|i| {
                let mut socket =
                    std::net::TcpStream::connect(listener.address()).expect("a listener");
                if i % 2 == 0 {
                    drop(socket.write_all(b"POST /x HTTP/1.1\r\nX-Slow: "));
                }
                socket
            })
            .collect();
        assert_eq!(post(&Client::new(Limits::default()), &url, b"{}"), "200");
        drop(idle);
    }

    #[test]
    fn slow_heads_and_bodies_are_cut_off() {
        let brief = Duration::from_millis(80);
        let listener = with(&ServerSettings {
            head_time: brief,
            body_time: brief,
            ..ServerSettings::default()
        });
        let url = listener.open("a", vec![]);
        let path = path_of(&url);
        for (bytes, expect) in [
            (String::new(), "closed"),
            ("POST / HTTP/1.1\r\nX:".into(), "closed"),
            (
                format!("POST /{path} HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n123"),
                "408",
            ),
        ] {
            assert_eq!(
                raw(listener.address(), bytes.as_bytes()),
                expect,
                "{bytes:?}"
            );
        }
        assert!(listener.sink().snapshot().is_empty());
    }

    #[test]
    fn oversized_and_garbled_callbacks_are_refused_and_never_mixed_up() {
        let listener = listener();
        let url = listener.open("a", vec![]);
        let path = path_of(&url);
        let to = |head: &str| format!("POST /{path} HTTP/1.1\r\nHost: h\r\n{head}\r\n");
        let fields: String = "X-Many: y\r\n".repeat(100_000);
        let chunk = format!("100001\r\n{}\r\n0\r\n\r\n", "x".repeat((1 << 20) + 1));
        for (bytes, expect) in [
            (to("Content-Length: 1000000000000\r\n"), "413"),
            (to("Content-Length: 1048577\r\n"), "413"),
            (to("Transfer-Encoding: chunked\r\n") + &chunk, "413"),
            (to(&fields), "431"),
            (to("Content-Length: -1\r\n"), "400"),
            (to("Content-Length: 1\r\nContent-Length: 2\r\n"), "400"),
            (to("Transfer-Encoding: gzip\r\n"), "400"),
            (to("Transfer-Encoding: chunked\r\n") + "zz\r\n", "400"),
            ("\x16\x03\x01 noise\r\n\r\n".into(), "400"),
            ("GET http://[ HTTP/1.1\r\n\r\n".into(), "400"),
        ] {
            let shown = &bytes[..bytes.len().min(120)];
            assert_eq!(
                raw(listener.address(), bytes.as_bytes()),
                expect,
                "{shown:?}"
            );
        }
        assert!(listener.sink().snapshot().is_empty());

        let many = to(&("X-Many: y\r\n".repeat(200) + "Content-Length: 2\r\n")) + "ok";
        assert_eq!(raw(listener.address(), many.as_bytes()), "200");

        // Pipelined or smuggled requests: the first counts, the rest is never read.
        let second = to("Content-Length: 6\r\n") + "forged";
        let pipelined = to("Content-Length: 2\r\n") + "ok" + &second;
        assert_eq!(raw(listener.address(), pipelined.as_bytes()), "200");
        let smuggled =
            to("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n" + &second;
        raw(listener.address(), smuggled.as_bytes());
        let bodies: Vec<_> = listener
            .sink()
            .snapshot()
            .iter()
            .map(|c| c.request.body.clone())
            .collect();
        assert!(!bodies.contains(&b"forged".to_vec()), "{bodies:?}");
        assert_eq!(bodies[0], b"ok");
    }

    #[test]
    fn only_addresses_of_this_run_are_taken() {
        let (one, other) = (listener(), listener());
        let client = Client::new(Limits::default());
        let url = one.open("a", vec![]);
        let forged = other
            .open("a", vec![])
            .replace(&other.address().to_string(), &one.address().to_string());
        assert_ne!(url, forged);
        for wrong in [
            forged,
            format!("{url}/more"),
            url.replace("/a", "/never-opened"),
            format!("http://{}/a", one.address()),
            format!("http://{}//", one.address()),
        ] {
            assert_eq!(post(&client, &wrong, b"{}"), "404", "{wrong}");
        }
        assert!(one.sink().snapshot().is_empty());
        assert_eq!(post(&client, &url, b"{}"), "200");
    }

    #[test]
    fn a_public_url_works_with_and_without_its_path_prefix() {
        let listener = with(&ServerSettings {
            public_url: Some(BaseUrl::parse("https://ci.example/hooks/").expect("a base")),
            ..ServerSettings::default()
        });
        let url = listener.open("a", vec![]);
        let path = url
            .strip_prefix("https://ci.example")
            .expect("the public address");
        let client = Client::new(Limits::default());
        let own = format!("http://{}", listener.address());
        let stripped = path.strip_prefix("/hooks").expect("the prefix");
        for path in [path, stripped] {
            assert_eq!(post(&client, &format!("{own}{path}"), b"{}"), "200");
        }
    }

    #[test]
    fn a_taken_port_is_an_exact_error_and_a_dropped_listener_leaves_none() {
        let first = listener();
        let address = first.address();
        let error = Listener::start(&ServerSettings {
            listen: address,
            ..ServerSettings::default()
        })
        .expect_err("taken");
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("listen on {address}: ")),
            "{text}"
        );
        drop(first);
        assert!(std::net::TcpStream::connect(address).is_err(), "closed");
    }
}
