//! A provider of language models: answers as its callers ask, by header fields of the request.
//!
//! | field | what |
//! |---|---|
//! | `X-Pieces` | pieces of text in a response |
//! | `X-Bytes` | bytes of each piece |
//! | `X-Tokens` | output tokens that are reported |
//! | `X-Pause` | pieces after which a stream waits until it is released |
//! | `X-Status` | another status than 200 |

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;

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
    let (pieces, bytes) = (field("x-pieces").unwrap_or(3), field("x-bytes").unwrap_or(4));
    let tokens = field("x-tokens").unwrap_or(pieces);
    if let Some(status) = field("x-status") {
        return write_json(stream, status, r#"{"error":{"message":"no"}}"#).await;
    }
    let is_anthropic = head.contains(" /v1/messages ");
    let text = LETTER.repeat(bytes);
    if !body.contains("\"stream\":true") {
        let whole = text.repeat(pieces);
        let body = match is_anthropic {
            true => format!(
                r#"{{"id":"msg_1","type":"message","content":[{{"type":"text","text":"{whole}"}}],"usage":{{"input_tokens":{PROMPT_TOKENS},"output_tokens":{tokens}}}}}"#
            ),
            false => format!(
                r#"{{"id":"c1","choices":[{{"index":0,"message":{{"content":"{whole}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":{PROMPT_TOKENS},"completion_tokens":{tokens}}}}}"#
            ),
        };
        return write_json(stream, 200, &body).await;
    }
    let start = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(start).await.ok()?;
    let (first, piece, last) = match is_anthropic {
        true => anthropic_events(&text, tokens),
        false => chat_events(&text, tokens, body.contains("\"include_usage\":true")),
    };
    write_chunk(stream, &first).await?;
    for sent in 0..pieces {
        if field("x-pause") == Some(sent) {
            released.wait_for(|released| *released > 0).await.ok()?;
        }
        write_chunk(stream, &piece).await?;
    }
    write_chunk(stream, &last).await?;
    stream.write_all(b"0\r\n\r\n").await.ok()
}

fn chat_events(text: &str, tokens: usize, reports: bool) -> (String, String, String) {
    let event = |delta: &str, reason: &str| {
        format!(
            "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\
             \"delta\":{{{delta}}},\"finish_reason\":{reason}}}]}}\n\n"
        )
    };
    let usage = match reports {
        true => format!(
            "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":\
             {{\"prompt_tokens\":{PROMPT_TOKENS},\"completion_tokens\":{tokens}}}}}\n\n"
        ),
        false => String::new(),
    };
    (
        event("\"role\":\"assistant\",\"content\":\"\"", "null"),
        event(&format!("\"content\":\"{text}\""), "null"),
        format!("{}{usage}data: [DONE]\n\n", event("", "\"stop\"")),
    )
}

fn anthropic_events(text: &str, tokens: usize) -> (String, String, String) {
    let event = |name: &str, rest: &str| format!("event: {name}\ndata: {{\"type\":\"{name}\"{rest}}}\n\n");
    let message = format!(
        ",\"message\":{{\"id\":\"msg_1\",\"role\":\"assistant\",\"usage\":{{\"input_tokens\":{PROMPT_TOKENS},\"output_tokens\":1}}}}"
    );
    let block = ",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}";
    let delta = format!(",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}");
    let stop = format!(",\"delta\":{{\"stop_reason\":\"end_turn\"}},\"usage\":{{\"output_tokens\":{tokens}}}");
    (
        event("message_start", &message) + &event("content_block_start", block),
        event("content_block_delta", &delta),
        event("content_block_stop", ",\"index\":0") + &event("message_delta", &stop) + &event("message_stop", ""),
    )
}

async fn write_json(stream: &mut TcpStream, status: usize, body: &str) -> Option<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all((head + body).as_bytes()).await.ok()
}

async fn write_chunk(stream: &mut TcpStream, text: &str) -> Option<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await.ok()
}
