//! Requests to a live target and callbacks from it, over real sockets.
//!
//! - [`Client`] sends requests; [`BaseUrl`] and [`Origin`] define where they may go.
//! - [`encode`] and [`Multipart`] encode values.
//! - [`Sink`] records callbacks and plans their responses without a socket; [`Listener`] adds the socket.
//! - [`Gateway`] forwards requests of other clients to targets.
//! - Non-goal: verdicts. A failed exchange is a [`Fault`] with a stable [`Cause`].
//!
//! The client is our own: blocking HTTP/1.1 with `httparse` and `rustls`, one kept connection per worker.
//! `ureq` was measured: it reports a dripping head, a silent body and an unread upload as the same timeout,
//! hides bytes that are not HTTP, and resolves conflicting lengths. Verdicts depend on these distinctions.
//! With 8 jobs on 2 cores `ureq` made 23,000 to 25,000 exchanges a second, this client 72,000 to 124,000.

mod budget;
mod client;
mod concurrent;
mod connect_settings;
mod connection;
pub mod encode;
mod fault;
mod framing;
mod gateway;
mod listener;
mod multipart;
mod origin;
mod proxy;
mod rate_limit;
mod reading;
mod server;
mod sink;
mod writing;

#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "tls_absent.rs"]
mod tls;

#[cfg(test)]
mod hostile;

pub use self::budget::BudgetShare;
pub use self::client::{Client, Limits};
pub use self::concurrent::{Arrival, Departure};
pub use self::connect_settings::{ConnectSettings, Pem};
pub use self::encode::{EncodeError, Place};
pub use self::fault::Fault;
pub use self::gateway::{Forwarded, Gateway, Misdirected};
pub use self::listener::Listener;
pub use self::multipart::Multipart;
pub use self::origin::{BaseUrl, Origin, UrlError};
pub use self::proxy::{Proxies, Proxy, ProxyError};
pub use self::reading::{Answer, LIKE_TLS, Note};
pub use self::server::{ListenError, ServerSettings};
pub use self::sink::{Callback, Reply, Sink};
pub use self::tls::TrustError;
