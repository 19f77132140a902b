//! Signals: the first to end begins the drain, the second ends at once, SIGHUP reads everything again.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// Another signal within this time is the same one: wrappers pass on what reached the whole group already.
const DUPLICATE_SIGNAL_WINDOW: Duration = Duration::from_millis(500);

/// How a server is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// SIGTERM, as supervisors and orchestrators do.
    Terminate,
    /// SIGINT, as a person at a terminal does.
    Interrupt,
}

/// The signals that a server listens to.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    reload: Signal,
}

impl Signals {
    /// Listens from now on: none that comes later is missed.
    pub(crate) fn listen() -> Result<Signals> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Signals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            reload: listen(SignalKind::hangup())?,
        })
    }

    /// Ready at the next signal to end; calls `reload` for every SIGHUP before.
    pub(crate) async fn end(&mut self, reload: &(dyn Fn() + Sync)) -> StopSignal {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return StopSignal::Terminate,
                _ = self.interrupt.recv() => return StopSignal::Interrupt,
                _ = self.reload.recv() => reload(),
            }
        }
    }

    /// The same for a second signal, right after the first.
    pub(crate) async fn end_again(&mut self, reload: &(dyn Fn() + Sync)) {
        let first = Instant::now();
        while first.elapsed() < DUPLICATE_SIGNAL_WINDOW {
            self.end(reload).await;
        }
    }
}
