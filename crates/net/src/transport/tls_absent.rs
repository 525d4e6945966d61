//! Replacement for TLS in a build without it: refuses every `https://` target.
//!
//! Uninhabited, so that the compiler knows that no encrypted stream exists.

use super::connect_settings::Pem;
use super::connection::Terms;
use super::fault::Fault;
use super::origin::Origin;
use conformant_base::http::Cause;
use std::io;
use std::net::TcpStream;

/// Why certificates or a key cannot be used; completes "failed to use the certificates: …".
#[derive(Debug, thiserror::Error)]
#[error("this program was built without TLS")]
pub struct TrustError;

#[derive(Debug)]
pub(super) enum Stream {}

impl Stream {
    pub(super) fn open(_: &Origin, _: TcpStream, _: &Terms<'_>) -> Result<Self, Fault> {
        Err(Fault::new(Cause::Tls, TrustError.to_string()))
    }

    pub(super) fn socket(&self) -> &TcpStream {
        match *self {}
    }

    pub(super) fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }

    pub(super) fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    pub(super) fn holds_back(&self) -> bool {
        match *self {}
    }
}

#[derive(Debug, Default)]
pub(super) struct Trust;

impl Trust {
    pub(super) fn with(pem: &Pem) -> Result<Self, TrustError> {
        if *pem == Pem::default() {
            return Ok(Self);
        }
        Err(TrustError)
    }
}
