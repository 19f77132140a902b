//! Grpc as a transport.

use std::sync::Arc;

use crate::api::Shared;
use crate::config::GrpcSettings;
use crate::net::{Ground, Peer, Speak, Stream};

/// Grpc as a listener speaks it.
pub struct Grpc {
    shared: Arc<Shared>,
}

impl Grpc {
    /// Grpc over what every call is answered with.
    pub fn new(shared: Arc<Shared>, _settings: &GrpcSettings) -> Grpc {
        Grpc { shared }
    }
}

impl Speak for Grpc {
    async fn speak(&self, _stream: Stream, _peer: &Peer, _ground: &Ground) {
        let _ = &self.shared;
    }

    fn no_room(&self) -> &'static [u8] {
        b""
    }
}
