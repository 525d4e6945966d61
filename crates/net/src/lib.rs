//! HTTP client, callback listener, proxy gateway, and the server of the reference.

pub mod server;
pub mod transport;
