//! The API behind the gateway: HTTP/1.1 on raw sockets, so that it can also answer what no library would.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// An API. Its task ends with it, and so do its connections.
pub struct App {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    /// What `/hold` and `/stream` wait for.
    pub released: watch::Sender<usize>,
    connections: Arc<Mutex<usize>>,
    task: JoinHandle<()>,
}

impl Drop for App {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
struct Shared {
    seen: Arc<Mutex<Vec<String>>>,
    released: watch::Receiver<usize>,
}

impl App {
    pub async fn start() -> App {
        App::on(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub fn on(listener: TcpListener) -> App {
        let address = listener.local_addr().unwrap();
        let (released, receiver) = watch::channel(0);
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let connections: Arc<Mutex<usize>> = Arc::default();
        let shared = Shared { seen: seen.clone(), released: receiver };
        let counted = connections.clone();
        let task = tokio::spawn(async move {
            let mut tasks = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                *counted.lock().unwrap() += 1;
                let shared = shared.clone();
                tasks.spawn(serve(stream, shared));
            }
        });
        App { address, seen, released, connections, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Heads and bodies of the requests since the last call.
    pub fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    /// Connections that were accepted.
    pub fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

/// Reads requests and answers them by their path, until one of both is over.
async fn serve(mut stream: TcpStream, shared: Shared) {
    let mut input = Vec::new();
    while let Some(head) = read_head(&mut stream, &mut input).await {
        let path = head.split(' ').nth(1).unwrap().split('?').next().unwrap().to_owned();
        if path == "/early" {
            shared.seen.lock().unwrap().push(head);
            let _ = stream.write_all(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\nearly").await;
            continue;
        }
        if path == "/tunnel" {
            shared.seen.lock().unwrap().push(head);
            return tunnel(stream, input).await;
        }
        let Some(body) = read_body(&mut stream, &mut input, &head).await else { return };
        shared.seen.lock().unwrap().push(head.clone() + &String::from_utf8_lossy(&body));
        if answer(&mut stream, &path, &head, &body, &shared).await.is_none() {
            return;
        }
    }
}

async fn read_head(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = input.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = input.split_off(end + 4);
            let head = std::mem::replace(input, rest);
            return Some(String::from_utf8_lossy(&head).into_owned());
        }
        if stream.read_buf(input).await.ok()? == 0 {
            return None;
        }
    }
}

/// The body as it was sent: chunks with their sizes.
async fn read_body(stream: &mut TcpStream, input: &mut Vec<u8>, head: &str) -> Option<Vec<u8>> {
    let field = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let length: Option<usize> = field("content-length").map(|length| length.parse().unwrap());
    let is_chunked = field("transfer-encoding").is_some();
    loop {
        let end = match (length, is_chunked) {
            (Some(length), _) => (input.len() >= length).then_some(length),
            (None, true) => end_of_chunks(input),
            (None, false) => Some(0),
        };
        if let Some(end) = end {
            let rest = input.split_off(end);
            return Some(std::mem::replace(input, rest));
        }
        if stream.read_buf(input).await.ok()? == 0 {
            return None;
        }
    }
}

fn end_of_chunks(input: &[u8]) -> Option<usize> {
    let last = input.windows(5).position(|five| five == b"0\r\n\r\n").map(|at| at + 5);
    // With trailers, the last chunk is followed by fields.
    last.or_else(|| {
        let zero = input.windows(3).position(|three| three == b"0\r\n")?;
        input.get(zero..)?.windows(4).position(|four| four == b"\r\n\r\n").map(|at| zero + at + 4)
    })
}

async fn answer(stream: &mut TcpStream, path: &str, head: &str, body: &[u8], shared: &Shared) -> Option<()> {
    if path.starts_with("/v1") {
        return crate::model::answer(stream, head, body, shared.released.clone()).await;
    }
    let text: &[u8] = match path {
        "/priced" => {
            b"HTTP/1.1 200 OK\r\nX-Points: 7\r\nContent-Type: application/json\r\nContent-Length: 29\r\n\r\n\
              {\"usage\":{\"rows\":41.5},\"a\":1}"
        }
        "/hold" => {
            shared.released.clone().wait_for(|released| *released > 0).await.ok()?;
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nheld"
        }
        "/silent" => {
            stream.read_u8().await.ok()?; // until the gateway gives up
            return None;
        }
        "/hangup" => return None,
        "/cut" => b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        "/garbage" => b"this is no HTTP\r\n\r\n",
        "/both" => b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "/lengths" => b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
        "/huge-head" => {
            let field = format!("X-Large: {}\r\n", "a".repeat(1_000));
            let text = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 0\r\n\r\n", field.repeat(200));
            stream.write_all(text.as_bytes()).await.ok()?;
            return Some(());
        }
        "/fails" => b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 5\r\n\r\nfails",
        "/empty" => b"HTTP/1.1 204 No Content\r\n\r\n",
        "/fields" => {
            b"HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
              Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-RateLimit-Limit: 999\r\nContent-Length: 2\r\n\r\nok"
        }
        "/trailers" => {
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n"
        }
        "/stream" => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
                .await
                .ok()?;
            for event in 1..=3_usize {
                shared.released.clone().wait_for(|released| *released >= event).await.ok()?;
                stream.write_all(format!("9\r\ndata: {event}\n\n\r\n").as_bytes()).await.ok()?;
            }
            b"0\r\n\r\n"
        }
        "/echo" if !body.is_empty() => {
            let length = body.len();
            stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").as_bytes()).await.ok()?;
            body
        }
        _ if head.starts_with("HEAD ") => b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n",
        _ => b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nfrom the app",
    };
    stream.write_all(text).await.ok()?;
    (path != "/cut").then_some(())
}

/// Agrees to another protocol, in which every byte is sent back.
async fn tunnel(mut stream: TcpStream, read: Vec<u8>) {
    let agreed = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    if stream.write_all(agreed).await.is_err() || stream.write_all(&read).await.is_err() {
        return;
    }
    let (mut from, mut to) = stream.split();
    let _ = tokio::io::copy(&mut from, &mut to).await;
}
