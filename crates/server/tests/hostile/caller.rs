//! A client that sends bytes and reads answers, and knows how its connection ended.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Whatever is awaited comes within this time, or the test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Caller<S = TcpStream> {
    pub stream: S,
    read: Vec<u8>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// The connection ends with it.
    pub fn closes(&self) -> bool {
        self.head.contains("\r\nConnection: close")
    }
}

impl Caller {
    pub async fn connect(to: SocketAddr) -> Caller {
        Caller::from(to.ip(), to).await
    }

    /// Connects from another address of this machine.
    pub async fn from(source: IpAddr, to: SocketAddr) -> Caller {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(source, 0)).unwrap();
        let stream = within(socket.connect(to)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Caller::over(stream)
    }

    /// Waits until the other end has read all that was sent, so that what is sent next arrives by itself.
    pub async fn until_read(&self) {
        let (own, other) = (self.stream.local_addr().unwrap().port(), self.stream.peer_addr().unwrap().port());
        within(async {
            while waits_unread(own, other) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// Whether bytes of a connection of this machine are on their way, or at the other end and not read.
fn waits_unread(own: u16, other: u16) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let port = |field: &str| field.rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok());
        let (to_send, to_read) = fields[4].split_once(':').unwrap();
        match (port(fields[1]), port(fields[2])) {
            (Some(local), Some(remote)) if (local, remote) == (own, other) => to_send != "00000000",
            (Some(local), Some(remote)) if (local, remote) == (other, own) => to_read != "00000000",
            _ => false,
        }
    })
}

impl<S: AsyncRead + AsyncWrite + Unpin> Caller<S> {
    pub fn over(stream: S) -> Caller<S> {
        Caller { stream, read: Vec::new() }
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        within(async {
            self.stream.write_all(bytes.as_ref()).await?;
            self.stream.flush().await
        })
        .await
    }

    /// The next answer; `None` at the end of the connection. A reset, or an end in the middle, is an error.
    pub async fn answer(&mut self) -> io::Result<Option<Answer>> {
        loop {
            if let Some(answer) = self.take_answer() {
                return Ok(Some(answer));
            }
            match within(self.stream.read_buf(&mut self.read)).await? {
                0 if self.read.is_empty() => return Ok(None),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => {}
            }
        }
    }

    /// Reads raw bytes: some, or none at the end.
    pub async fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut some = vec![0; 64 << 10];
        let count = within(self.stream.read(&mut some)).await?;
        some.truncate(count);
        Ok(some)
    }

    /// Sends, and reads one answer.
    pub async fn ask(&mut self, bytes: impl AsRef<[u8]>) -> Answer {
        self.send(bytes).await.unwrap();
        self.answer().await.unwrap().expect("an answer")
    }

    /// The statuses of all answers until the connection ends properly.
    pub async fn rest(&mut self) -> Vec<u16> {
        let mut statuses = Vec::new();
        while let Some(answer) = self.answer().await.expect("a proper end") {
            statuses.push(answer.status);
        }
        statuses
    }

    fn take_answer(&mut self) -> Option<Answer> {
        let end = self.read.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let head = String::from_utf8(self.read[..end].to_vec()).expect("a head is text");
        let status = head.get(9..12).and_then(|code| code.parse().ok()).expect("a status line");
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let length: usize = length.unwrap_or(0);
        let body = String::from_utf8(self.read.get(end..end + length)?.to_vec()).expect("a body is text");
        self.read.drain(..end + length);
        Some(Answer { status, head, body })
    }
}

/// Waits, but not for ever.
pub async fn within<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("waited in vain")
}
