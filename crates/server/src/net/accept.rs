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

/// Who is told about what happens at the door.
pub trait Accept: Clone + Send + Sync + 'static {
    /// Serves a connection until it ends. The guest is kept as long.
    fn serve(self, stream: Stream, guest: Guest) -> impl Future<Output = ()> + Send;
    /// What a caller there is no room for is told. Over TLS there is nothing that could be said before a handshake.
    fn no_room(&self) -> &'static [u8];
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
            if let Ok(place) = farewells.enter(None) {
                tokio::spawn(say_no(stream, host.no_room(), place));
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
        if let Stream::Tcp(stream) = stream {
            let _ = stream.try_write(host.no_room()); // told if it can be told at once
        }
    }
    let closed = matches!(taken, Ok(Ok(_)));
    drop(taken);
    *spare = File::open(NOTHING).ok();
    closed
}

async fn say_no(mut stream: Stream, no_room: &[u8], _place: Guest) {
    let talk = async {
        stream.write_all(no_room).await?;
        stream.shutdown().await?;
        // Closing with unread bytes would reset the connection, and the answer with it.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = timeout(FAREWELL, talk).await; // told or not: it is closed
}
