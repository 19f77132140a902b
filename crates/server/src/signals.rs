//! Signals: the first to end begins the drain, the second ends at once, SIGHUP reads everything again.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How a server is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// SIGTERM, as supervisors and orchestrators do.
    Terminate,
    /// SIGINT, as a person at a terminal does.
    Interrupt,
}

/// The signals that a server listens to.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Listens from now on: none that comes later is missed.
    pub(crate) fn listen() -> Result<Signals> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Signals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Ready at the next signal to end; calls `hang_up` for every SIGHUP before.
    pub(crate) async fn end(&mut self, hang_up: &(dyn Fn() + Sync)) -> Ending {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return Ending::Terminate,
                _ = self.interrupt.recv() => return Ending::Interrupt,
                _ = self.hang_up.recv() => hang_up(),
            }
        }
    }
}
