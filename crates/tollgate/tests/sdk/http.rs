//! HTTP/1.1 byte by byte: what goes over the socket is what a table says, and what comes back is looked at as it came.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

const PATIENCE: Duration = Duration::from_secs(30);
const BODY_MAX: usize = 1 << 20;

/// A request or a response.
#[derive(Debug, Default)]
pub struct Message {
    /// The first line.
    pub start: String,
    /// Fields in their order, as they were spelled.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Everything, as it came.
    pub bytes: Vec<u8>,
}

impl Message {
    /// The only value of a field, or all of them joined by commas.
    pub fn field(&self, name: &str) -> Option<String> {
        let values =
            self.fields.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str());
        let values: Vec<&str> = values.collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// The status of a response; 0 if it is none.
    pub fn status(&self) -> u16 {
        self.start.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends bytes from one of this machine's addresses, and reads the response.
pub fn exchange(to: SocketAddr, from: IpAddr, request: &[u8], has_body: bool) -> Result<Message, String> {
    let said = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).map_err(|error| said("socket", &error))?;
    bind(&socket, &SocketAddr::new(from, 0)).map_err(|error| said("bind", &error))?;
    connect(&socket, &to).map_err(|error| said("connect", &error))?;
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).map_err(|error| said("timeout", &error))?;
    // A server may answer, and close, before it has read everything.
    if let Err(error) = stream.write_all(request)
        && error.kind() != ErrorKind::BrokenPipe
    {
        return Err(said("write", &error));
    }
    match read(&mut BufReader::new(stream), has_body) {
        Ok(Some(message)) => Ok(message),
        Ok(None) => Err("the connection was closed without an answer".to_owned()),
        Err(error) => Err(said("read", &error)),
    }
}

/// Reads a message; none at the end of the connection. Without a length a response ends with its connection.
pub fn read(from: &mut BufReader<TcpStream>, has_body: bool) -> std::io::Result<Option<Message>> {
    let mut message = Message::default();
    loop {
        let mut line = Vec::new();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        message.bytes.extend_from_slice(&line);
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        match (message.start.is_empty(), line.split_once(':')) {
            (true, _) => message.start = line,
            (false, Some((name, value))) => message.fields.push((name.to_owned(), value.trim().to_owned())),
            (false, None) => break,
        }
    }
    let length = message.field("content-length").and_then(|length| length.parse::<usize>().ok());
    let is_request = !message.start.starts_with("HTTP/");
    if message.field("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        read_chunks(from, &mut message)?;
    } else if has_body && let Some(length) = length {
        message.body = vec![0; length.min(BODY_MAX)];
        from.read_exact(&mut message.body)?;
        message.bytes.extend_from_slice(&message.body);
    } else if has_body && !is_request && ![204, 304].contains(&message.status()) {
        from.take(BODY_MAX as u64).read_to_end(&mut message.body)?;
    }
    Ok(Some(message))
}

fn read_chunks(from: &mut BufReader<TcpStream>, message: &mut Message) -> std::io::Result<()> {
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        message.bytes.extend_from_slice(line.as_bytes());
        let size = line.trim().split(';').next().and_then(|size| usize::from_str_radix(size, 16).ok());
        let Some(size) = size.filter(|size| *size <= BODY_MAX) else {
            return Err(std::io::Error::other(format!("{line:?} is no size of a chunk")));
        };
        let mut chunk = vec![0; size + 2];
        from.read_exact(&mut chunk)?;
        message.bytes.extend_from_slice(&chunk);
        if size == 0 {
            return Ok(());
        }
        message.body.extend_from_slice(&chunk[..size]);
    }
}
