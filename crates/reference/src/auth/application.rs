//! The only application of the reference's authentication service, with its settings.
//!
//! Everything is public, because it protects nothing. How the API key is sent is not shown (D1,
//! Authentication): the reference uses its own header or query parameter.

/// Identifier of the application: `context.auth_app_id` in tokens, `s_app_id` in webhooks.
pub const ID: u64 = 4242;
/// Name of the application: `iss` in tokens.
pub const NAME: &str = "Reference Application";
/// Scheme of the application's QR strings.
pub const SCHEME: &str = "refauth";
/// Production API key; also signs registration tokens. HS256 requires a key of at least 32 bytes
/// (RFC 7518, 3.2).
pub const API_KEY: &str = "reference-production-api-key-0001";
/// Header that carries the API key.
pub const API_KEY_HEADER: &str = "X-Auth-API-Key";
/// Query parameter for the API key instead of the header.
pub const API_KEY_PARAMETER: &str = "api_key";
/// Its uploaded logo.
pub const LOGO: &str = "https://logos.example/app.png";
/// Internal identifier of the application in approval requests.
pub const RECORD: &str = "5f1e0c9a7b3d2e4f6a8b9c0d";
