//! The kinds of listeners.

/// The API that a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// The HTTP data API.
    Data,
    /// The gateway.
    Gateway,
    /// gRPC.
    Grpc,
    /// RESP.
    Resp,
    /// The admin API.
    Admin,
    /// Metrics and health alone.
    Metrics,
}

impl Surface {
    /// What to do if its address cannot be bound.
    pub(crate) const fn bind_hint(self) -> &'static str {
        match self {
            Surface::Data => "choose another address with --http HOST:PORT (port 0 picks a free one)",
            Surface::Gateway => "choose another address with --listen HOST:PORT (port 0 picks a free one)",
            Surface::Grpc => "choose another address with --grpc HOST:PORT, or none with --grpc off",
            Surface::Resp => "choose another address with --resp HOST:PORT, or none with --resp off",
            Surface::Admin => "choose another address with --admin HOST:PORT, or none with --admin off",
            Surface::Metrics => "choose another address with --metrics HOST:PORT, or none with --metrics off",
        }
    }
}
