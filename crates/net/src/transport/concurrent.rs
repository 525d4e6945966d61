//! Sends requests so that they arrive at the same time.
//!
//! - One new connection for each request. All but the last byte of each request is sent first; then the last
//!   bytes follow, one right after the other.
//! - No last byte is sent unless every connection is open and silent until then.
//! - Two instants for each exchange on one monotonic clock: the last byte was sent, the first byte of the
//!   response was received.

use super::budget::BudgetShare;
use super::client::Client;
use super::connection::Exchange;
use super::encode;
use super::fault::Fault;
use super::origin::BaseUrl;
use super::reading::{self, Answer};
use super::writing;
use conformant_base::clock;
use conformant_base::http::{Cause, Request};
use std::panic::resume_unwind;
use std::time::{Duration, Instant};

/// Time for a target to take in what was sent before the last bytes.
const TAKE_IN: Duration = Duration::from_millis(1);

/// One of several requests that are sent at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Departure<'a> {
    pub base: &'a BaseUrl,
    pub request: &'a Request,
}

/// The response to one of several requests that were sent at the same time.
#[derive(Debug)]
pub struct Arrival {
    pub answer: Result<Answer, Fault>,
    /// When its last byte was sent, or the first attempt failed because the connection was full.
    pub sent: Instant,
    /// When the first byte of its response was received, or its exchange ended without one.
    pub received: Instant,
}

impl Client {
    /// Sends requests at the same time and waits for all responses. All connections and responses share one deadline,
    /// `within` after the rate limit admitted the last request; the limit counts each. `before_last_bytes` starts whatever
    /// else takes part in the race, such as hooks.
    ///
    /// An error means that no last byte was sent: a request cannot be encoded, the run was interrupted, a target was not
    /// reached in time, or it answered or closed a connection early.
    pub fn send_concurrently(
        &self,
        share: &BudgetShare,
        departures: &[Departure<'_>],
        within: Duration,
        before_last_bytes: impl FnOnce(),
    ) -> Result<Vec<Arrival>, Fault> {
        for departure in departures {
            encode::check(departure.request)
                .map_err(|e| Fault::new(Cause::Unsendable, e.to_string()))?;
            self.wait_for_turn()?;
        }
        let deadline = clock::monotonic() + within;
        let mut connections = Vec::with_capacity(departures.len());
        for Departure { base, request } in departures {
            let mut connection = self.connect(&self.target(base.origin()), deadline)?;
            let through = connection.through.clone();
            let body = writing::render(&mut connection.output, base, request, through.as_deref());
            connections.push((connection, body));
        }
        let mut exchanges: Vec<Exchange<'_>> = connections
            .iter_mut()
            .map(|(connection, body)| Exchange::new(connection, body, deadline, &self.interrupted))
            .collect();
        for exchange in &mut exchanges {
            exchange.send_all_but_last()?;
        }
        clock::sleep(TAKE_IN);
        for exchange in &mut exchanges {
            exchange.check_silence()?;
        }
        before_last_bytes();
        let sent: Vec<Instant> = exchanges.iter_mut().map(Exchange::send_last).collect();
        let limit = self.limits().body;
        Ok(std::thread::scope(|scope| {
            let readers: Vec<_> = exchanges
                .into_iter()
                .zip(departures)
                .map(|(exchange, departure)| {
                    let method = &departure.request.method;
                    scope.spawn(move || receive(exchange, method, limit, share))
                })
                .collect();
            let arrived = readers.into_iter().zip(sent).map(|(reader, sent)| {
                let joined = reader.join();
                let (answer, received) = joined.unwrap_or_else(|panic| resume_unwind(panic));
                Arrival {
                    answer,
                    sent,
                    received,
                }
            });
            arrived.collect()
        }))
    }
}

fn receive(
    mut exchange: Exchange<'_>,
    method: &str,
    limit: usize,
    share: &BudgetShare,
) -> (Result<Answer, Fault>, Instant) {
    let answer = reading::read(&mut exchange, method, limit, share);
    let received = exchange.first_byte.unwrap_or_else(clock::monotonic);
    (answer, received)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Limits;
    use crate::transport::hostile::listening;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};

    const RACERS: usize = 3;
    /// Bytes by which the body of each request is larger than that of the previous one.
    const BODY_STEP: usize = 8_000_000;

    /// The last one is larger than the buffers of a connection.
    fn requests() -> Vec<Request> {
        let request = |n: usize| {
            let mut request = Request::new("POST", format!("/{n}"));
            request.body = vec![b'x'; 1 + n * BODY_STEP];
            request
        };
        (0..RACERS).map(request).collect()
    }

    /// Accepts connections and runs `serve` on each with the number of the request and its length.
    fn serving<'s>(
        scope: &'s std::thread::Scope<'s, '_>,
        serve: &'s (dyn Fn(usize, TcpStream) + Sync),
    ) -> BaseUrl {
        let (listener, base) = listening();
        scope.spawn(move || {
            for place in 0..RACERS {
                let (socket, _) = listener.accept().unwrap();
                scope.spawn(move || serve(place, socket));
            }
        });
        base
    }

    /// Reads a request but for its last byte, and no byte more.
    fn all_but_last(socket: &mut TcpStream) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let (_, length) = head.split_once("Content-Length: ").unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        socket.read_exact(&mut vec![0; length - 1]).unwrap();
    }

    fn send(base: &BaseUrl, limits: Limits, release: impl FnOnce()) -> Result<Vec<Arrival>, Fault> {
        let requests = requests();
        let departures: Vec<Departure<'_>> = requests
            .iter()
            .map(|request| Departure { base, request })
            .collect();
        let client = Client::new(limits);
        client.send_concurrently(
            &client.share(),
            &departures,
            Duration::from_secs(10),
            release,
        )
    }

    #[test]
    fn last_bytes_follow_once_all_others_are_there() {
        let held = Barrier::new(RACERS);
        let is_released = AtomicBool::new(false);
        let serve = |_: usize, mut socket: TcpStream| {
            all_but_last(&mut socket);
            held.wait();
            socket.read_exact(&mut [0]).unwrap();
            assert!(is_released.load(Ordering::SeqCst));
            socket.write_all(b"HTTP/1.1 204 x\r\n\r\n").unwrap();
        };
        std::thread::scope(|scope| {
            let base = serving(scope, &serve);
            let arrived = send(&base, Limits::default(), || {
                is_released.store(true, Ordering::SeqCst);
            })
            .unwrap();
            assert_eq!(arrived.len(), RACERS);
            let last_sent = arrived.iter().map(|one| one.sent).max().unwrap();
            for one in &arrived {
                assert_eq!(one.answer.as_ref().unwrap().response.status, 204);
                assert!(one.received > one.sent);
                assert!(one.received > last_sent, "answered before all were sent");
            }
        });
    }

    #[test]
    fn nothing_is_released_to_a_target_that_closes_a_connection() {
        let closed = Barrier::new(RACERS);
        let serve = |place: usize, mut socket: TcpStream| {
            if place == 0 {
                drop(socket);
                closed.wait();
            } else {
                closed.wait();
                let mut bytes = Vec::new();
                // The client gives up, which may reset the connection.
                let _ = socket.read_to_end(&mut bytes);
                let text = String::from_utf8(bytes).unwrap();
                let body = text
                    .split_once("\r\n\r\n")
                    .map_or(0, |(_, body)| body.len());
                assert!(body <= place * BODY_STEP, "the last byte was sent");
            }
        };
        std::thread::scope(|scope| {
            let base = serving(scope, &serve);
            let fault = send(&base, Limits::default(), || panic!("released")).unwrap_err();
            assert!(
                matches!(fault.cause, Cause::EmptyResponse | Cause::Reset),
                "{fault}"
            );
        });
    }

    #[test]
    fn each_request_counts_against_the_rate_limit() {
        let serve = |_: usize, mut socket: TcpStream| {
            all_but_last(&mut socket);
            socket.read_exact(&mut [0]).unwrap();
            socket.write_all(b"HTTP/1.1 204 x\r\n\r\n").unwrap();
        };
        std::thread::scope(|scope| {
            let base = serving(scope, &serve);
            let limits = Limits {
                rate: Some(10),
                ..Limits::default()
            };
            let began = clock::monotonic();
            send(&base, limits, || {}).unwrap();
            assert!(began.elapsed() >= Duration::from_millis(150));
        });
    }
}
