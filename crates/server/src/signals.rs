//! Signals: the first SIGTERM or SIGINT begins the drain, the second ends at once, SIGHUP reloads everything.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// A second signal within this time is a duplicate: wrappers forward what the whole process group already got.
const DUPLICATE_SIGNAL_WINDOW: Duration = Duration::from_millis(500);

/// A signal that ends the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// SIGTERM, from supervisors and orchestrators.
    Terminate,
    /// SIGINT, from a terminal.
    Interrupt,
}

/// The signals that a server listens to.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    reload: Signal,
}

impl Signals {
    /// Installs the handlers: no later signal is missed.
    pub(crate) fn listen() -> Result<Signals> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Signals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            reload: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal that ends the server; calls `reload` for every SIGHUP before it.
    pub(crate) async fn end(&mut self, reload: &(dyn Fn() + Sync)) -> StopSignal {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return StopSignal::Terminate,
                _ = self.interrupt.recv() => return StopSignal::Interrupt,
                _ = self.reload.recv() => reload(),
            }
        }
    }

    /// Waits for a second signal, right after the first.
    pub(crate) async fn end_again(&mut self, reload: &(dyn Fn() + Sync)) {
        let first = Instant::now();
        while first.elapsed() < DUPLICATE_SIGNAL_WINDOW {
            self.end(reload).await;
        }
    }
}
