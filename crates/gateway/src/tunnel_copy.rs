//! The two directions of a tunnel. It ends when one end closes, breaks, or both have been silent for too long: an end that
//! is gone without a word must not hold a slot for ever.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::watch;
use tokio::time::timeout;

/// Bytes that one direction has read and not written.
const BUFFER_BYTES: usize = 16 << 10;

/// Copies both ways until the tunnel ends.
pub(crate) async fn copy_both_ways<A, B>(caller: A, server: B, idle: Duration)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let (caller_read, caller_write) = split(caller);
    let (server_read, server_write) = split(server);
    // Every byte in either direction is a sign of life.
    let (alive, mut silent) = watch::channel(());
    let up = copy_one_way(caller_read, server_write, &alive);
    let down = copy_one_way(server_read, caller_write, &alive);
    let silence = async { while timeout(idle, silent.changed()).await.is_ok() {} };
    tokio::select! {
        _ = async { tokio::try_join!(up, down) } => {}
        () = silence => {}
    }
}

/// Copies until the end of one direction, which is passed on.
async fn copy_one_way<R, W>(mut from: ReadHalf<R>, mut to: WriteHalf<W>, alive: &watch::Sender<()>) -> io::Result<()>
where
    R: AsyncRead,
    W: AsyncWrite,
{
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(buffer.get(..read).unwrap_or_default()).await?;
        to.flush().await?;
        let _ = alive.send(()); // the other half listens for as long as this runs
    }
}
