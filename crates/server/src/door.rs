//! What stands between a listener and whoever answers its calls: the handshake, the counting, and what is logged about it.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use tracing::{debug, warn};

use crate::net::tls::Tls;
use crate::net::{Accept, Ground, Guest, Peer, Refusal, Speak, Stream};
use crate::telemetry::{self, Metrics, Quiet};

/// Lines of one kind that may be written in ten seconds: whoever knocks often does not fill the disk.
const LINES_MAX: u32 = 5;

/// One listener's door.
pub struct Door<P>(Arc<Inner<P>>);

struct Inner<P> {
    protocol: P,
    metrics: Arc<Metrics>,
    tls: Option<Arc<Tls>>,
    ground: Ground,
    quiet: Quiet,
}

impl<P: Speak> Door<P> {
    /// A door to whoever speaks `protocol`, behind a handshake if there is a certificate.
    pub fn new(protocol: P, metrics: Arc<Metrics>, tls: Option<Arc<Tls>>, ground: Ground) -> Door<P> {
        Door(Arc::new(Inner { protocol, metrics, tls, ground, quiet: Quiet::new(LINES_MAX) }))
    }
}

impl<P> Clone for Door<P> {
    fn clone(&self) -> Door<P> {
        Door(self.0.clone())
    }
}

impl<P: Speak> Accept for Door<P> {
    async fn serve(self, stream: Stream, guest: Guest) {
        let Inner { protocol, metrics, tls, ground, .. } = &*self.0;
        let _open = Open::new(metrics.clone());
        let stream = match tls {
            None => stream,
            // In a box: most have none, and nobody needs it for long.
            Some(tls) => match Box::pin(tls.accept(stream, ground.limits.tls_timeout)).await {
                Some(stream) => stream,
                None => return metrics.connection_refused(telemetry::Refusal::Handshake),
            },
        };
        let peer = Peer { address: guest.address(), whole: guest.whole_address() };
        protocol.speak(stream, &peer, ground).await;
        drop(guest);
    }

    fn no_room(&self) -> &'static [u8] {
        if self.0.tls.is_some() { b"" } else { self.0.protocol.no_room() }
    }

    fn refused(&self, refusal: Refusal, address: Option<IpAddr>) {
        self.0.metrics.connection_refused(match refusal {
            Refusal::Full => telemetry::Refusal::Full,
            Refusal::Crowd => telemetry::Refusal::PerAddress,
        });
        if let Some(more) = self.0.quiet.admit(refusal.name()) {
            // Addresses are people's: the network is enough to find the culprit.
            warn!(reason = refusal.name(), network = %network(address), unsaid = more, "connection refused");
        }
    }

    fn failed(&self, error: &io::Error) {
        if let Some(more) = self.0.quiet.admit("accept") {
            warn!(error = %error, unsaid = more, "cannot accept connections; trying again");
        }
    }
}

/// Counts a connection as open while it lives.
struct Open(Arc<Metrics>);

impl Open {
    fn new(metrics: Arc<Metrics>) -> Open {
        metrics.connection_opened();
        Open(metrics)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connection_closed();
        debug!("connection closed");
    }
}

/// What is logged of an address: enough to find a culprit, too little to find a person.
pub(crate) fn network(address: Option<IpAddr>) -> String {
    match address {
        Some(IpAddr::V4(address)) => {
            let [a, b, c, _] = address.octets();
            format!("{a}.{b}.{c}.0/24")
        }
        Some(IpAddr::V6(address)) => {
            let [a, b, c, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}::/48")
        }
        None => "unix".to_owned(),
    }
}
