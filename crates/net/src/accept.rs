//! The accept loop: admits connections up to the caps and survives every error.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::{ConnectionLimiter, ConnectionPermit, ConnectionRefusal, Drain, Listener, Stream};

/// Pause after an accept error such as exhausted descriptors: without one the loop would spin until a connection
/// closes.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Time limit for sending a refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Refusals sent at the same time; further connections are closed without one.
const REFUSALS_MAX: usize = 64;

/// The file that the spare descriptor is open on.
const SPARE_FILE: &str = "/dev/null";

/// Handles the connections of a listener.
pub trait Accept: Clone + Send + Sync + 'static {
    /// Serves a connection until it closes, holding its permit.
    fn serve(self, stream: Stream, permit: ConnectionPermit) -> impl Future<Output = ()> + Send;
    /// The bytes sent to a connection that exceeds a cap; empty over TLS, where nothing can be sent before the
    /// handshake.
    fn too_many_connections(&self) -> &'static [u8];
    /// A connection exceeded a cap.
    fn refused(&self, refusal: ConnectionRefusal, address: Option<IpAddr>);
    /// Accepting failed.
    fn failed(&self, error: &io::Error);
}

/// Accepts until the drain begins, then serves the connections that were still in the backlog.
pub fn accept(
    listener: Listener,
    connections: ConnectionLimiter,
    drain: Drain,
    handler: impl Accept,
) -> impl Future<Output = ()> + Send {
    let running = drain.track(); // now, not when the loop first runs: an immediate drain waits for it too
    async move {
        accept_until(listener, connections, drain, handler).await;
        drop(running);
    }
}

async fn accept_until(listener: Listener, connections: ConnectionLimiter, drain: Drain, handler: impl Accept) {
    let mut spare = File::open(SPARE_FILE).ok();
    let refusals = ConnectionLimiter::new(REFUSALS_MAX, REFUSALS_MAX);
    let admit = |stream: Stream, address: Option<IpAddr>| match connections.acquire(address) {
        Ok(permit) => drain.spawn(handler.clone().serve(stream, permit)),
        Err(refusal) => {
            handler.refused(refusal, address);
            if let Ok(permit) = refusals.acquire(None) {
                tokio::spawn(refuse(stream, handler.too_many_connections(), permit));
            }
        }
    };
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            () = drain.begun() => break,
        };
        match accepted {
            Ok((stream, address)) => admit(stream, address),
            // The client closed before accept: not a failure of the server, so no pause.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                handler.failed(&error);
                if !(is_out_of_descriptors(&error) && close_next(&listener, &mut spare, &handler).await) {
                    sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }
    for (stream, address) in listener.close() {
        admit(stream, address);
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Frees the spare descriptor to accept the next connection and close it: without descriptors it would otherwise hang
/// in the backlog until another connection closes. True if there was one.
async fn close_next(listener: &Listener, spare: &mut Option<File>, handler: &impl Accept) -> bool {
    *spare = None;
    let taken = timeout(Duration::ZERO, listener.accept()).await;
    if let Ok(Ok((stream, address))) = &taken {
        handler.refused(ConnectionRefusal::Full, *address);
        if let Stream::Tcp(stream) = stream {
            let _ = stream.try_write(handler.too_many_connections()); // best effort
        }
    }
    let closed = matches!(taken, Ok(Ok(_)));
    drop(taken);
    *spare = File::open(SPARE_FILE).ok();
    closed
}

async fn refuse(mut stream: Stream, message: &[u8], _permit: ConnectionPermit) {
    let send = async {
        stream.write_all(message).await?;
        stream.shutdown().await?;
        // Closing with unread bytes would reset the connection and lose the message.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = timeout(REFUSAL_TIMEOUT, send).await; // best effort; dropping the stream closes it
}
