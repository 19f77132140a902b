//! Calls put together by hand, on `h2` itself.

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::Request;
use prost::Message;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::Code;

use crate::rig::{PATIENCE, Rig};

pub const CHECK: &str = "/tollgate.v1.Tollgate/Check";
pub const BATCH: &str = "/tollgate.v1.Tollgate/BatchCheck";
pub const RLS: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// A connection.
pub struct Raw(SendRequest<Bytes>);

/// What came back.
#[derive(Debug)]
#[expect(dead_code, reason = "told when a test fails")]
pub struct Answer {
    pub status: u16,
    /// `None` if it is no gRPC.
    pub code: Option<Code>,
    pub message: String,
    pub body: Vec<u8>,
}

impl Raw {
    pub async fn connect(rig: &Rig) -> Raw {
        let stream = TcpStream::connect(rig.tcp()).await.unwrap();
        let (send, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        Raw(send)
    }

    /// Begins a call; the body is still to be sent.
    pub async fn begin(&self, path: &str, fields: &[(&str, &str)]) -> (ResponseFuture, SendStream<Bytes>) {
        self.try_begin(path, fields).await.unwrap()
    }

    /// The same on a connection that may have ended.
    pub async fn try_begin(
        &self,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        let mut request = Request::post(format!("http://localhost{path}"));
        if !fields.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/grpc");
        }
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let mut send = timeout(PATIENCE, self.0.clone().ready()).await.unwrap()?;
        send.send_request(request.body(()).unwrap(), false)
    }

    /// A whole call.
    pub async fn call(&self, path: &str, fields: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
        let (response, mut sending) = self.begin(path, fields).await;
        let _ = sending.send_data(body.into(), true); // fails if it was refused meanwhile
        answer(response).await
    }
}

pub async fn answer(response: ResponseFuture) -> Answer {
    let (head, mut body) = timeout(PATIENCE, response).await.expect("an answer in time").unwrap().into_parts();
    let mut bytes = Vec::new();
    let read = async {
        while let Some(Ok(piece)) = body.data().await {
            let _ = body.flow_control().release_capacity(piece.len());
            bytes.extend(piece);
        }
    };
    timeout(PATIENCE, read).await.expect("an end in time");
    let trailers = trailers(body).await.unwrap_or(head.headers);
    let field = |name: &str| trailers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let code = field("grpc-status").map(|code| Code::from_bytes(code.as_bytes()));
    let message = field("grpc-message").unwrap_or_default();
    Answer { status: head.status.as_u16(), code, message, body: bytes }
}

async fn trailers(mut body: RecvStream) -> Option<http::HeaderMap> {
    timeout(PATIENCE, body.trailers()).await.expect("an end in time").ok()?
}

/// A message with its prefix.
pub fn framed(message: &impl Message) -> Vec<u8> {
    prefixed(&message.encode_to_vec())
}

/// Bytes as if they were a message.
pub fn prefixed(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
    [&[0], &length[..], bytes].concat()
}
