//! The server of an issuer's keys, which also fails as such servers do.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// What it answers.
#[derive(Clone)]
pub enum KeyAnswer {
    /// A key set.
    Keys(String),
    /// These bytes, and then the connection ends.
    Bytes(Vec<u8>),
    /// These bytes, again and again.
    Endless(&'static str),
    /// Nothing, and the connection stays open.
    Silence,
}

pub fn status(line: &str) -> KeyAnswer {
    KeyAnswer::Bytes(format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n").into_bytes())
}

#[derive(Clone)]
struct KeyState {
    answer: Arc<Mutex<KeyAnswer>>,
    heads: Arc<Mutex<Vec<String>>>,
}

pub struct KeyServer {
    pub address: SocketAddr,
    state: KeyState,
    task: JoinHandle<()>,
}

impl Drop for KeyServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl KeyServer {
    pub async fn start(answer: KeyAnswer) -> KeyServer {
        KeyServer::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), answer)
    }

    pub fn on(listener: TcpListener, answer: KeyAnswer) -> KeyServer {
        let address = listener.local_addr().unwrap();
        let state = KeyState { answer: Arc::new(Mutex::new(answer)), heads: Arc::default() };
        let shared = state.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, shared.clone()));
            }
        });
        KeyServer { address, state, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}/keys?tenant=1", self.address)
    }

    pub fn answers(&self, answer: KeyAnswer) {
        *self.state.answer.lock().unwrap() = answer;
    }

    /// The heads of all requests.
    pub fn heads(&self) -> Vec<String> {
        self.state.heads.lock().unwrap().clone()
    }

    /// How often it was asked.
    pub fn asked(&self) -> usize {
        self.heads().len()
    }
}

async fn serve(mut stream: TcpStream, state: KeyState) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    state.heads.lock().unwrap().push(String::from_utf8_lossy(&head).into_owned());
    let answer = state.answer.lock().unwrap().clone();
    // A client that has what it wants leaves before the end.
    let _ = match answer {
        KeyAnswer::Keys(keys) => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
            let text = format!("{head}Content-Length: {}\r\n\r\n{keys}", keys.len());
            stream.write_all(text.as_bytes()).await
        }
        KeyAnswer::Bytes(bytes) => stream.write_all(&bytes).await,
        KeyAnswer::Endless(text) => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
            let chunk = format!("{:x}\r\n{text}\r\n", text.len());
            while stream.write_all(chunk.as_bytes()).await.is_ok() {}
            Ok(())
        }
        KeyAnswer::Silence => stream.read_u8().await.map(drop),
    };
}
