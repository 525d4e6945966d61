//! The one application of the reference's authentication service, as its settings would show it.
//!
//! Everything here is public on purpose: nothing it opens is worth guarding. How the API key is
//! presented is not shown (D1, Authentication), so this implementation takes its own header or query
//! parameter.

/// Identifier of the application: `context.auth_app_id` in tokens, `s_app_id` in webhooks.
pub const ID: u64 = 4242;
/// Name of the application: `iss` in tokens.
pub const NAME: &str = "Reference Application";
/// Scheme of the application's QR strings.
pub const SCHEME: &str = "refauth";
/// Production API key: opens the service and signs registration tokens. HS256 wants a key of at
/// least 32 bytes (RFC 7518, 3.2).
pub const API_KEY: &str = "reference-production-api-key-0001";
/// Header that carries the API key.
pub const API_KEY_HEADER: &str = "X-Auth-API-Key";
/// Query parameter that carries the API key in place of the header.
pub const API_KEY_PARAMETER: &str = "api_key";
/// Internal identifier of the application in approval requests.
pub const RECORD: &str = "5f1e0c9a7b3d2e4f6a8b9c0d";
