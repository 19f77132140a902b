//! An upstream that answers by a script: any bytes, any pauses, any end. What no HTTP server would do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// What it does once it has the head of a request.
#[derive(Clone)]
pub enum Act {
    Send(Vec<u8>),
    /// Sends this again and again until the connection ends.
    Flood(Vec<u8>),
    /// Sends a byte at a time, and yields in between.
    Trickle(Vec<u8>),
    /// Reads nothing and sends nothing until the connection ends.
    Stall,
    /// Closes the connection; without it, the next request is read.
    Close,
    /// Closes it with RST.
    Reset,
}

pub fn text(text: &str) -> Act {
    Act::Send(text.as_bytes().to_vec())
}

pub struct ScriptedApi {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for ScriptedApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ScriptedApi {
    /// Answers `/0` by the first script, `/1` by the second, and so on; any other path with a plain response that names it.
    pub async fn start(scripts: Vec<Vec<Act>>) -> ScriptedApi {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections: Arc<AtomicUsize> = Arc::default();
        let (counted, scripts) = (connections.clone(), Arc::new(scripts));
        let task = tokio::spawn(async move {
            let mut tasks = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                tasks.spawn(serve(stream, scripts.clone()));
            }
        });
        ScriptedApi { address, connections, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Connections that were accepted.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(mut stream: TcpStream, scripts: Arc<Vec<Vec<Act>>>) {
    let mut input = Vec::new();
    loop {
        while !input.windows(4).any(|four| four == b"\r\n\r\n") {
            if !matches!(stream.read_buf(&mut input).await, Ok(read) if read > 0) {
                return;
            }
        }
        let head = String::from_utf8_lossy(&std::mem::take(&mut input)).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let script = path.get(1..).and_then(|number| number.parse::<usize>().ok()).and_then(|at| scripts.get(at));
        let plain = [text(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{path}", path.len()))];
        for act in script.map_or(&plain[..], Vec::as_slice) {
            if perform(&mut stream, act).await.is_none() {
                return;
            }
        }
    }
}

/// None once the connection is over.
async fn perform(stream: &mut TcpStream, act: &Act) -> Option<()> {
    match act {
        Act::Send(bytes) => stream.write_all(bytes).await.ok(),
        Act::Flood(bytes) => loop {
            stream.write_all(bytes).await.ok()?;
        },
        Act::Trickle(bytes) => {
            for byte in bytes {
                stream.write_all(&[*byte]).await.ok()?;
                tokio::task::yield_now().await;
            }
            Some(())
        }
        Act::Stall => {
            // Writable for ever, readable never looked at: only an error of the socket ends it.
            while stream.ready(tokio::io::Interest::ERROR).await.is_err() {}
            None
        }
        Act::Close => None,
        Act::Reset => {
            stream.set_zero_linger().ok()?;
            None
        }
    }
}
