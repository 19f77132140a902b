//! The accept loop: lets connections in while there is room, and outlives every error.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::{Drain, Guest, Guests, Listener, Refusal, Stream};

/// A pause when the process is out of descriptors or memory: without one the loop would spin until somebody leaves.
const BREATH: Duration = Duration::from_millis(50);

/// How long a refused caller is told so.
const FAREWELL: Duration = Duration::from_secs(1);

/// Refused callers that are told so at the same time; more are just closed.
const FAREWELLS_MAX: usize = 64;

/// What a spare descriptor is open on.
const NOTHING: &str = "/dev/null";

/// What is sent to a caller there is no room for, before a byte of it was read.
const NO_ROOM: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n\
    Cache-Control: no-store\r\nRetry-After: 1\r\nContent-Length: 118\r\nConnection: close\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Too many connections\",\"status\":503,\"code\":\"too_many_connections\",\"detail\":\"Try again.\"}";

/// Who is told about what happens at the door.
pub trait Accept: Clone + Send + Sync + 'static {
    /// Serves a connection until it ends. The guest is kept as long.
    fn serve(self, stream: Stream, guest: Guest) -> impl Future<Output = ()> + Send;
    /// True if callers understand plain HTTP; over TLS there is nothing that could be said before a handshake.
    fn speaks_plainly(&self) -> bool;
    /// A connection was not let in.
    fn refused(&self, refusal: Refusal, address: Option<IpAddr>);
    /// Accepting failed.
    fn failed(&self, error: &io::Error);
}

/// Accepts until the drain begins, and then whatever had connected before.
pub fn accept(listener: Listener, guests: Guests, drain: Drain, host: impl Accept) -> impl Future<Output = ()> + Send {
    let stay = drain.stay(); // from now on, not from when the loop first runs: an end that comes at once waits for it too
    async move {
        accept_until(listener, guests, drain, host).await;
        drop(stay);
    }
}

async fn accept_until(listener: Listener, guests: Guests, drain: Drain, host: impl Accept) {
    let mut spare = File::open(NOTHING).ok();
    let farewells = Guests::new(FAREWELLS_MAX, FAREWELLS_MAX);
    let let_in = |stream: Stream, address: Option<IpAddr>| match guests.enter(address) {
        Ok(guest) => drain.host(host.clone().serve(stream, guest)),
        Err(refusal) => {
            host.refused(refusal, address);
            if host.speaks_plainly()
                && let Ok(place) = farewells.enter(None)
            {
                tokio::spawn(say_no(stream, place));
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
            Ok((stream, address)) => let_in(stream, address),
            // A connection that was gone before we took it is not our trouble, and costs no pause.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                host.failed(&error);
                if !(is_out_of_descriptors(&error) && turn_away(&listener, &mut spare, &host).await) {
                    sleep(BREATH).await;
                }
            }
        }
    }
    for (stream, address) in listener.close() {
        let_in(stream, address);
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Gives up the spare descriptor to take the next connection, only to close it: whoever knocks while there are none
/// left would otherwise wait until somebody leaves. True if there was one.
async fn turn_away(listener: &Listener, spare: &mut Option<File>, host: &impl Accept) -> bool {
    *spare = None;
    let taken = timeout(Duration::ZERO, listener.accept()).await;
    if let Ok(Ok((stream, address))) = &taken {
        host.refused(Refusal::Full, *address);
        if let Stream::Tcp(stream) = stream
            && host.speaks_plainly()
        {
            let _ = stream.try_write(NO_ROOM); // told if it can be told at once
        }
    }
    let closed = matches!(taken, Ok(Ok(_)));
    drop(taken);
    *spare = File::open(NOTHING).ok();
    closed
}

async fn say_no(mut stream: Stream, _place: Guest) {
    let talk = async {
        stream.write_all(NO_ROOM).await?;
        stream.shutdown().await?;
        // Closing with unread bytes would reset the connection, and the answer with it.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = timeout(FAREWELL, talk).await; // told or not: it is closed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_says_how_long_it_is() {
        let text = str::from_utf8(NO_ROOM).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(serde_json::from_str::<serde_json::Value>(body).unwrap()["code"] == "too_many_connections");
    }
}
