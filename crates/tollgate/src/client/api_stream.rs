//! Reads server-sent events of a server, until it ends or the caller has enough.

use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::api_call::ApiCall;
use super::api_client::{ApiClient, read_response, send_request};
use super::api_response::ApiResponse;

/// Longest silence: servers send a comment every fifteen seconds.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Longest event.
const EVENT_BYTES_MAX: usize = 1 << 20;

impl ApiClient {
    /// Sends a call, and passes every event of the response on: its type and its data. `Some` is a response that is none
    /// of events.
    pub fn listen(
        &mut self,
        call: &ApiCall,
        mut receive: impl FnMut(&str, &str) -> Result<ControlFlow<()>>,
    ) -> Result<Option<ApiResponse>> {
        let ApiClient { runtime, connector, token, open } = self;
        let runtime = runtime.as_ref().context("the client has ended")?;
        *open = None; // a stream keeps its connection
        runtime.block_on(async {
            let sent = timeout(call.timeout, send_request(connector, token.as_ref(), open, call)).await;
            let response = sent.map_err(|_| anyhow!("{} did not respond in time", connector.target()))??;
            if !response.status().is_success() {
                let read = timeout(call.timeout, read_response(connector, call, response)).await;
                return read.map_err(|_| anyhow!("{} did not respond in time", connector.target()))?.map(Some);
            }
            let (mut body, mut text) = (response.into_body(), Vec::new());
            loop {
                let frame = timeout(SILENCE_MAX, body.frame()).await;
                let frame = frame.map_err(|_| anyhow!("{} is silent", connector.target()))?;
                let Some(Ok(frame)) = frame else { return Ok(None) };
                text.extend_from_slice(frame.data_ref().map_or(&b""[..], |data| data));
                while let Some(end) = text.windows(2).position(|pair| pair == b"\n\n") {
                    let event: Vec<u8> = text.drain(..end + 2).collect();
                    if let Some((name, data)) = read_event(&String::from_utf8_lossy(&event))
                        && receive(&name, &data)?.is_break()
                    {
                        return Ok(None);
                    }
                }
                if text.len() > EVENT_BYTES_MAX {
                    return Err(anyhow!("{} sent an event that is too long", connector.target()));
                }
            }
        })
    }
}

/// The type and the data of an event; `None` for a comment.
fn read_event(text: &str) -> Option<(String, String)> {
    let (mut name, mut data) = ("message".to_owned(), Vec::new());
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("event", value)) => value.clone_into(&mut name),
            Some(("data", value)) => data.push(value),
            _ => {}
        }
    }
    (!data.is_empty()).then(|| (name, data.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::read_event;

    #[test]
    fn events_are_read_and_comments_are_not() {
        let event = |name: &str, data: &str| Some((name.to_owned(), data.to_owned()));
        assert_eq!(read_event(":\n\n"), None);
        assert_eq!(read_event("event: tick\ndata: {}\n\n"), event("tick", "{}"));
        assert_eq!(read_event("data: a\ndata: b\n\n"), event("message", "a\nb"));
    }
}
