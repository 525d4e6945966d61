//! How an origin is reached: trusted certificates, client certificate, proxy.

use super::proxy::Proxies;
use super::tls::{Trust, TrustError};
use std::fmt;

/// Certificates and a key in PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pem {
    /// Authorities trusted in addition to the system's.
    pub ca: Option<Vec<u8>>,
    /// The client certificate with its intermediates, and its key.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for Pem {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pem")
            .field("ca", &self.ca.is_some())
            .field("client", &self.client.is_some())
            .finish()
    }
}

#[derive(Debug, Default)]
pub struct ConnectSettings {
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "unused without TLS"))]
    pub(super) trust: Trust,
    pub(super) proxies: Proxies,
}

impl ConnectSettings {
    /// Parses certificates; connects to nothing.
    pub fn new(pem: &Pem, proxies: Proxies) -> Result<Self, TrustError> {
        let trust = Trust::with(pem)?;
        Ok(Self { trust, proxies })
    }
}
