//! Reading from a peer until it closes the connection. A peer that closes before it has read everything resets the
//! connection, and whether the reader sees an end or a reset is a matter of timing: what came before counts either way.

use std::io::{self, ErrorKind, Read};

use tokio::io::{AsyncRead, AsyncReadExt};

/// All bytes up to the end of the connection. A reset that nothing came before is an error.
pub fn read_to_close(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let end = stream.read_to_end(&mut bytes);
    came_before(bytes, end)
}

/// The same in a task.
pub async fn read_to_close_async(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let end = stream.read_to_end(&mut bytes).await;
    came_before(bytes, end)
}

fn came_before(bytes: Vec<u8>, end: io::Result<usize>) -> io::Result<Vec<u8>> {
    match end {
        Err(error) if error.kind() != ErrorKind::ConnectionReset || bytes.is_empty() => Err(error),
        _ => Ok(bytes),
    }
}

#[test]
fn bytes_before_a_reset_count() {
    /// Ends as sockets do whose peer resets the connection.
    struct Reset;
    impl Read for Reset {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(ErrorKind::ConnectionReset.into())
        }
    }
    assert_eq!(read_to_close(&mut b"all".as_slice()).unwrap(), b"all");
    assert_eq!(read_to_close(&mut Read::chain(&b"some"[..], Reset)).unwrap(), b"some");
    assert_eq!(read_to_close(&mut Reset).unwrap_err().kind(), ErrorKind::ConnectionReset);
}
