//! A provider of language models: answers as its callers ask, by header fields of the request, in the form of its path.
//!
//! | field | what |
//! |---|---|
//! | `X-Pieces` | pieces of text in a response |
//! | `X-Bytes` | bytes of each piece |
//! | `X-Tokens` | output tokens that are reported |
//! | `X-Pause` | pieces after which a stream waits until it is released |
//! | `X-Status` | another status than 200 |
//!
//! Its responses have the reported tokens in `X-Usage`, too, for gateways that count when a response has ended.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::model_forms::{Form, Generated};

/// The text of a response, a letter that is nowhere else in it.
pub const LETTER: &str = "z";

/// Prompt tokens that are reported.
pub const PROMPT_TOKENS: u64 = 11;

pub async fn answer(
    stream: &mut TcpStream,
    head: &str,
    body: &[u8],
    mut released: watch::Receiver<usize>,
) -> Option<()> {
    let field = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).and_then(|(_, value)| value.parse::<usize>().ok())
    };
    let body = String::from_utf8_lossy(body);
    let pieces = field("x-pieces").unwrap_or(3);
    let piece = LETTER.repeat(field("x-bytes").unwrap_or(4));
    let tokens = field("x-tokens").unwrap_or(pieces);
    if let Some(status) = field("x-status") {
        return write_json(stream, status, tokens, r#"{"error":{"message":"no"}}"#).await;
    }
    let target = head.split(' ').nth(1)?;
    let form = Form::of_path(target)?;
    let generated = Generated { piece, pieces, tokens, reports: body.contains("\"include_usage\":true") };
    if !form.is_stream(&body) {
        return write_json(stream, 200, tokens, &form.body(&generated)).await;
    }
    let media = form.stream_media();
    let start =
        format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nX-Usage: {tokens}\r\nTransfer-Encoding: chunked\r\n\r\n");
    stream.write_all(start.as_bytes()).await.ok()?;
    write_chunk(stream, &form.start()).await?;
    for sent in 0..pieces {
        if field("x-pause") == Some(sent) {
            released.wait_for(|released| *released > 0).await.ok()?;
        }
        write_chunk(stream, &form.piece(sent, &generated)).await?;
    }
    write_chunk(stream, &form.end(&generated)).await?;
    stream.write_all(b"0\r\n\r\n").await.ok()
}

async fn write_json(stream: &mut TcpStream, status: usize, tokens: usize, body: &str) -> Option<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nX-Usage: {tokens}\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).await.ok()
}

/// Nothing at all is no chunk: it would end the body.
async fn write_chunk(stream: &mut TcpStream, text: &str) -> Option<()> {
    if text.is_empty() {
        return Some(());
    }
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await.ok()
}
