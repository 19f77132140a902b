//! The backend and the client of a proxy: HTTP/1.1, one request per connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Timeout of a response.
const PATIENCE: Duration = Duration::from_secs(30);

/// A backend that answers every request, and records the request heads.
pub struct App {
    pub port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl App {
    pub fn start() -> App {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = heads.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = kept.clone();
                thread::spawn(move || serve(stream, &kept));
            }
        });
        App { port, heads }
    }

    /// Request heads since the last call.
    pub fn heads(&self) -> Vec<String> {
        std::mem::take(&mut *self.heads.lock().unwrap())
    }
}

fn serve(mut stream: TcpStream, kept: &Mutex<Vec<String>>) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return, // a probe of the proxy
        }
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let body = if head.starts_with("head ") { "" } else { "from the app" };
    kept.lock().unwrap().push(head);
    let response = format!("HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\n{body}");
    let _ = stream.write_all(response.as_bytes());
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub text: String,
}

impl Answer {
    /// A header.
    pub fn field(&self, name: &str) -> Option<&str> {
        let head = self.text.split("\r\n\r\n").next().unwrap_or_default();
        let mut fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// Sends a request that the proxy must answer.
pub fn ask(proxy: SocketAddr, request: &str, fields: &str) -> Answer {
    attempt(proxy, request, fields).unwrap_or_else(|| panic!("no answer to {request} {fields}"))
}

/// Sends a request that the proxy may refuse: by a response, or by closing the connection without one. Bytes that the
/// proxy has not read make that a reset, which may come before, amid or after a response.
pub fn attempt(proxy: SocketAddr, request: &str, fields: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(proxy).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("{request} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n{fields}\r\n");
    let mut text = Vec::new();
    let sent = stream.write_all(head.as_bytes());
    // What the proxy wrote before it closed can be read even if the request could not be sent to its end.
    let read = stream.read_to_end(&mut text).map(drop);
    for end in [sent, read] {
        let closed =
            |error: &std::io::Error| matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
        assert!(end.as_ref().err().is_none_or(closed), "{request}: {end:?}");
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let (line, _) = text.split_once("\r\n")?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    Some(Answer { status: status.unwrap_or_else(|| panic!("{request}: no status in {line:?}")), text })
}
