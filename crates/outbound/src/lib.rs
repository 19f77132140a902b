//! Short messages to other servers: webhooks, and exports of telemetry.
//!
//! Who may change rules may name a URL, and the server that calls it stands inside a network: without care it is a way
//! to reach what only this server can reach. So an [`OutboundUrl`] has one reading, its host is resolved once, every address
//! is checked ([`Networks`]), and the connection goes to an address that was checked. Redirects are not followed, and
//! time and bytes are bounded.
//!
//! There is no HTTP client library here: each of them resolves by itself, and follows redirects unless told otherwise.

mod client;
mod error;
mod networks;
mod url;

pub use client::OutboundClient;
pub use error::OutboundError;
pub use networks::Networks;
pub use url::{BadUrl, OutboundUrl};
