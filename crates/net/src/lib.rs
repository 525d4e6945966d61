//! HTTP client, callback listener, proxy gateway, and the server around the reference.

pub mod server;
pub mod transport;
