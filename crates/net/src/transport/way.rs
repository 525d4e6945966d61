//! How an origin is reached: whose certificates are believed there, what we show of ourselves, through which proxy.

use super::detour::Detours;
use super::tls::{Trust, TrustError};
use std::fmt;

/// Certificates and a key, each in PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pem {
    /// Authorities that are believed beside those of the system.
    pub ca: Option<Vec<u8>>,
    /// Our own certificate with those between it and its authority, and the key to it.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for Pem {
    /// Says what there is, never the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pem")
            .field("ca", &self.ca.is_some())
            .field("client", &self.client.is_some())
            .finish()
    }
}

/// How an origin is reached.
#[derive(Debug, Default)]
pub struct Way {
    #[cfg_attr(
        not(feature = "tls"),
        expect(dead_code, reason = "without TLS nobody is believed")
    )]
    pub(super) trust: Trust,
    pub(super) detours: Detours,
}

impl Way {
    /// Reads certificates; nothing is connected to.
    pub fn new(pem: &Pem, detours: Detours) -> Result<Self, TrustError> {
        let trust = Trust::with(pem)?;
        Ok(Self { trust, detours })
    }
}
